//! Two channels joined in memory, in virtual time.
#![allow(clippy::unwrap_used)] // helpers of tests are tests
#![allow(dead_code, unreachable_pub)] // each test file uses its part

use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::{
    Body, Channel, ChannelConfig, ChannelError, ChannelLimits, Closed, Event, OpenParams,
};
use taktwerk_crypto::{Job, MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_types::{Instant, StatusCode};

/// What an end has observed, owned so that tests can compare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Opened,
    Renewed,
    Message(u32, Vec<u8>),
    Aborted(u32, StatusCode, String),
    Closed(Closed),
    ReverseHello(String, String),
    Failed(ChannelError),
}

/// One end, with the bytes that have arrived and the bytes to be sent.
pub struct End {
    pub channel: Channel,
    pub provider: Arc<dyn Provider>,
    pub inbox: Vec<u8>,
    pub out: Vec<u8>,
    pub seen: Vec<Seen>,
    pub jobs: Vec<Job>,
    /// Jobs are kept until [`End::run_jobs`] instead of being run at once.
    pub slow_jobs: bool,
}

impl End {
    pub fn new(channel: Channel, provider: Arc<dyn Provider>, out: Vec<u8>) -> Self {
        Self { channel, provider, inbox: vec![], out, seen: vec![], jobs: vec![], slow_jobs: false }
    }

    /// Delivers bytes.
    pub fn deliver(&mut self, bytes: &[u8], now: Instant) {
        self.inbox.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let buf = &mut self.inbox[at..];
            match self.channel.receive(buf, now, &mut self.out) {
                Ok(received) => {
                    assert!(received.consumed <= buf.len());
                    if let Event::NeedMore { at_least } = received.event {
                        assert!(at_least > buf.len() && received.consumed == 0);
                        break;
                    }
                    assert!(received.consumed > 0, "no progress");
                    let seen = match &received.event {
                        Event::Message { request_id, body } => {
                            Some(Seen::Message(*request_id, body.bytes(buf).to_vec()))
                        }
                        _ => None,
                    };
                    at += received.consumed;
                    match seen {
                        Some(seen) => self.seen.push(seen),
                        None => self.note(received.event, now),
                    }
                }
                Err(error) => {
                    if error != taktwerk_channel::ApiMisuse::Closed.into() {
                        self.seen.push(Seen::Failed(error));
                    }
                    at = self.inbox.len();
                    break;
                }
            }
        }
        self.inbox.drain(..at);
    }

    fn note(&mut self, event: Event, now: Instant) {
        match event {
            Event::NeedMore { .. } | Event::Handled => {}
            Event::Effect(job) => {
                self.jobs.push(*job);
                if !self.slow_jobs {
                    self.run_jobs(now);
                }
            }
            Event::ReverseHello { server_uri, endpoint_url } => {
                self.seen.push(Seen::ReverseHello(server_uri.into(), endpoint_url.into()));
            }
            Event::Opened => self.seen.push(Seen::Opened),
            Event::Renewed => self.seen.push(Seen::Renewed),
            Event::Message { .. } => panic!("handled by the caller"),
            Event::Aborted { request_id, status, reason } => {
                self.seen.push(Seen::Aborted(request_id, status, reason.into()));
            }
            Event::Closed(closed) => self.seen.push(Seen::Closed(closed)),
        }
    }

    pub fn run_jobs(&mut self, now: Instant) {
        while let Some(job) = self.jobs.pop() {
            let result = job.run(self.provider.as_ref());
            match self.channel.complete(result, now, &mut self.out) {
                Ok(event) => self.note(event, now),
                Err(error) => self.seen.push(Seen::Failed(error)),
            }
        }
    }

    pub fn tick(&mut self, now: Instant) {
        match self.channel.handle_timeout(now, &mut self.out) {
            Ok(None) => {}
            Ok(Some(event)) => self.note(event, now),
            Err(error) => self.seen.push(Seen::Failed(error)),
        }
    }

    pub fn send(&mut self, request_id: u32, body: &[u8]) -> Result<(), ChannelError> {
        let start = self.channel.begin(&mut self.out);
        self.out.extend_from_slice(body);
        self.channel.finish(start, request_id, &mut self.out)
    }

    pub fn take_seen(&mut self) -> Vec<Seen> {
        core::mem::take(&mut self.seen)
    }
}

/// A client and a server.
pub struct Pair {
    pub client: End,
    pub server: End,
    pub now: Instant,
}

/// Test parameters.
pub struct Setup {
    pub policy: SecurityPolicy,
    pub mode: MessageSecurityMode,
    pub client: ChannelLimits,
    pub server: ChannelLimits,
    pub lifetime_ms: u32,
    pub key_bits: u16,
    pub offered: Option<Vec<(SecurityPolicy, MessageSecurityMode)>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            policy: SecurityPolicy::None,
            mode: MessageSecurityMode::None,
            client: ChannelLimits::default(),
            server: ChannelLimits::default(),
            lifetime_ms: 3_600_000,
            key_bits: 2048,
            offered: None,
        }
    }
}

pub fn small_buffers() -> ChannelLimits {
    ChannelLimits { receive_buffer_size: 8192, send_buffer_size: 8192, ..ChannelLimits::default() }
}

pub fn secured(policy: SecurityPolicy, mode: MessageSecurityMode) -> Setup {
    Setup { policy, mode, ..Setup::default() }
}

pub const START: Instant = Instant::from_nanos(1_000_000_000);
pub const URL: &str = "opc.tcp://host:4840/path";

impl Setup {
    fn providers(&self) -> (Arc<dyn Provider>, Arc<dyn Provider>) {
        if self.policy == SecurityPolicy::None {
            (Arc::new(NullProvider), Arc::new(NullProvider))
        } else {
            let dummy = |name| Arc::new(DummyProvider::new(name, self.key_bits));
            (dummy("client"), dummy("server"))
        }
    }

    pub fn configs(&self) -> (Arc<ChannelConfig>, Arc<ChannelConfig>) {
        let (client, server) = self.providers();
        let offered = self.offered.clone().unwrap_or_else(|| vec![(self.policy, self.mode)]);
        let config = |provider, limits: &ChannelLimits| {
            Arc::new(ChannelConfig {
                limits: limits.clone(),
                provider,
                security: offered.clone(),
                ..ChannelConfig::default()
            })
        };
        (config(client, &self.client), config(server, &self.server))
    }

    pub fn params(&self) -> OpenParams {
        OpenParams {
            endpoint_url: URL.into(),
            policy: self.policy,
            mode: self.mode,
            server_certificate: (self.policy != SecurityPolicy::None)
                .then(|| certificate("server", self.key_bits).into()),
            lifetime_ms: self.lifetime_ms,
        }
    }

    /// Both ends before the first byte is sent.
    pub fn pair(&self) -> Pair {
        let (client_config, server_config) = self.configs();
        let mut out = Vec::new();
        let (client_provider, server_provider) =
            (client_config.provider.clone(), server_config.provider.clone());
        let client = Channel::client(client_config, self.params(), START, &mut out).unwrap();
        let server = Channel::server(server_config, 77, START);
        Pair {
            client: End::new(client, client_provider, out),
            server: End::new(server, server_provider, vec![]),
            now: START,
        }
    }

    /// Both ends with the channel open.
    pub fn open(&self) -> Pair {
        let mut pair = self.pair();
        pair.deliver_all();
        assert_eq!(
            (pair.client.take_seen(), pair.server.take_seen()),
            (vec![Seen::Opened], vec![Seen::Opened])
        );
        pair
    }
}

impl Pair {
    /// Carries bytes until neither end has output.
    pub fn deliver_all(&mut self) {
        self.deliver_all_in_pieces(|len| len);
    }

    /// The same in pieces: `piece` returns how many of the waiting bytes are delivered next.
    pub fn deliver_all_in_pieces(&mut self, mut piece: impl FnMut(usize) -> usize) {
        for _ in 0..1_000_000 {
            let to_server = core::mem::take(&mut self.client.out);
            let to_client = core::mem::take(&mut self.server.out);
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
            for (end, bytes) in [(&mut self.server, to_server), (&mut self.client, to_client)] {
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(piece(rest.len()).clamp(1, rest.len()));
                    end.deliver(now, self.now);
                    rest = later;
                }
            }
        }
        panic!("the ends never fall silent");
    }

    /// Advances the time, handling timeouts in order.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let due = |end: &End| end.channel.poll_timeout().map_or(Instant::FAR, |(at, _)| at);
            let next = due(&self.client).min(due(&self.server));
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.client.tick(self.now);
            self.server.tick(self.now);
            self.deliver_all();
        }
        self.now = end;
    }
}

/// A body in which each byte reveals its position.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8)) as u8).collect()
}

/// Every policy and mode to test: each chunk layout, each key agreement.
pub fn securities() -> Vec<(SecurityPolicy, MessageSecurityMode)> {
    let mut all = vec![(SecurityPolicy::None, MessageSecurityMode::None)];
    for policy in SecurityPolicy::ALL.iter().copied().filter(|policy| *policy != SecurityPolicy::None) {
        all.push((policy, MessageSecurityMode::Sign));
        all.push((policy, MessageSecurityMode::SignAndEncrypt));
    }
    all
}

pub fn assembled(body: &Body) -> bool {
    matches!(body, Body::Assembled(_))
}

/// One security per chunk layout, for tests that move many bytes.
pub fn layouts() -> Vec<(SecurityPolicy, MessageSecurityMode)> {
    use MessageSecurityMode::{None, Sign, SignAndEncrypt};
    vec![
        (SecurityPolicy::None, None),
        (SecurityPolicy::Basic256, SignAndEncrypt),
        (SecurityPolicy::Basic256Sha256, Sign),
        (SecurityPolicy::Aes256_Sha256_RsaPss, SignAndEncrypt),
        (SecurityPolicy::ECC_nistP384, SignAndEncrypt),
        (SecurityPolicy::ECC_nistP256_AesGcm, SignAndEncrypt),
    ]
}
