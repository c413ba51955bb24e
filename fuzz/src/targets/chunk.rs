//! The chunk reader of a channel, in both roles, with bytes from a malicious peer.

use crate::input::Input;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::{ApiMisuse, Channel, ChannelConfig, ChannelError, ChannelLimits, Event, OpenParams};
use taktwerk_crypto::{Job, MessageSecurityMode, NullProvider, Provider, Role, SecurityPolicy};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_types::Instant;

/// Maximum message of the reader: small, so that the fuzzer reaches it.
const MESSAGE_SIZE_MAX: u32 = 20_000;
const BUFFER_SIZE: u32 = 8192;

/// A server's channel.
pub fn server(data: &[u8]) {
    run(Role::Server, data);
}

/// A client's channel.
pub fn client(data: &[u8]) {
    run(Role::Client, data);
}

fn run(role: Role, data: &[u8]) {
    let mut input = Input::new(data);
    let secured = input.flag();
    let mut pair = Pair::new(role, secured);
    if input.flag() {
        pair.exchange();
        assert!(pair.reader.channel.is_open() && pair.peer.channel.is_open());
    }
    while !input.is_empty() && !pair.reader.channel.is_closed() {
        match input.below(6) {
            0 => {
                let bytes = input.piece();
                pair.reader.deliver(bytes, pair.now);
            }
            1 => pair.forged(&mut input),
            2 => pair.damaged(&mut input),
            3 => pair.wait(Duration::from_millis(u64::from(input.edgy_u32()))),
            4 => {
                let len = usize::from(input.u16());
                pair.reader.send(len);
                pair.exchange();
            }
            _ => pair.exchange(),
        }
        pair.check();
    }
}

/// The reader under test and a correct peer whose bytes are damaged in transit.
struct Pair {
    reader: End,
    peer: End,
    now: Instant,
}

struct End {
    channel: Channel,
    provider: Arc<dyn Provider>,
    inbox: Vec<u8>,
    out: Vec<u8>,
}

impl Pair {
    fn new(role: Role, secured: bool) -> Self {
        let (policy, mode) = if secured {
            (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt)
        } else {
            (SecurityPolicy::None, MessageSecurityMode::None)
        };
        let provider = |name: &str| -> Arc<dyn Provider> {
            if secured { Arc::new(DummyProvider::new(name, 2048)) } else { Arc::new(NullProvider) }
        };
        let config = |provider: &Arc<dyn Provider>| {
            let limits = ChannelLimits {
                receive_buffer_size: BUFFER_SIZE,
                send_buffer_size: BUFFER_SIZE,
                message_size_max: MESSAGE_SIZE_MAX,
                chunk_count_max: 4,
                ..ChannelLimits::default()
            };
            let security = vec![(policy, mode)];
            Arc::new(ChannelConfig {
                limits,
                provider: Arc::clone(provider),
                security,
                ..ChannelConfig::default()
            })
        };
        let params = OpenParams {
            policy,
            mode,
            server_certificate: secured.then(|| certificate("server", 2048).into()),
            ..OpenParams::insecure("opc.tcp://host:4840")
        };
        let now = Instant::from_nanos(1);
        let (ours, theirs) = (provider("client"), provider("server"));
        let mut out = Vec::new();
        let client = Channel::client(config(&ours), params, now, &mut out).expect("the parameters fit");
        let server = Channel::server(config(&theirs), 77, now);
        let client = End { channel: client, provider: ours, inbox: vec![], out };
        let server = End { channel: server, provider: theirs, inbox: vec![], out: vec![] };
        let (reader, peer) = if role == Role::Client { (client, server) } else { (server, client) };
        Self { reader, peer, now }
    }

    /// Transfers bytes in both directions until there are none.
    fn exchange(&mut self) {
        for _ in 0..100 {
            let (there, back) = (core::mem::take(&mut self.peer.out), core::mem::take(&mut self.reader.out));
            if there.is_empty() && back.is_empty() {
                return;
            }
            self.reader.deliver(&there, self.now);
            self.peer.deliver(&back, self.now);
        }
        panic!("the exchange does not end");
    }

    /// A message of the peer with forged headers.
    fn forged(&mut self, input: &mut Input<'_>) {
        self.exchange();
        let body = input.piece().to_vec();
        let mut chunk = self.peer.message(&body);
        if let Some(head) = chunk.first_chunk_mut::<4>() {
            let letters =
                input.pick(&[b"MSG", b"MSG", b"MSG", b"CLO", b"OPN", b"HEL", b"ACK", b"ERR", b"RHE"]);
            head[..3].copy_from_slice(letters);
            head[3] = input.pick(b"FCAx");
        }
        self.reader.deliver(&chunk, self.now);
    }

    /// A message of the peer with some changed bytes, in pieces.
    fn damaged(&mut self, input: &mut Input<'_>) {
        self.exchange();
        let len = usize::from(input.u16());
        let mut bytes = self.peer.message(&vec![0x5a; len]);
        for _ in 0..input.below(4) {
            let at = usize::from(input.u16());
            let change = input.byte();
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= change;
            }
        }
        let piece = 1 + usize::from(input.u16());
        for piece in bytes.chunks(piece) {
            self.reader.deliver(piece, self.now);
        }
    }

    fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        for end in [&mut self.reader, &mut self.peer] {
            // Bounded: each call processes what is due, or closes the channel.
            for _ in 0..4 {
                if end.channel.poll_timeout().is_none_or(|(at, _)| at > self.now) {
                    break;
                }
                if let Ok(Some(event)) = end.channel.handle_timeout(self.now, &mut end.out) {
                    end.effect(event, self.now);
                }
            }
            let due = end.channel.poll_timeout().filter(|(at, _)| *at <= self.now);
            assert_eq!(due, None, "a deadline stays due");
        }
    }

    fn check(&self) {
        let held = self.reader.channel.buffered_len();
        // Messages that wait for a renewal are our own; the target sends few of them.
        assert!(held <= MESSAGE_SIZE_MAX as usize + (1 << 20), "{held} bytes held");
        if self.reader.channel.is_closed() {
            assert_eq!(
                (held, self.reader.channel.poll_timeout()),
                (0, None),
                "a closed channel keeps nothing"
            );
        }
    }
}

impl End {
    fn deliver(&mut self, bytes: &[u8], now: Instant) {
        self.inbox.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let buf = &mut self.inbox[at..];
            let len = buf.len();
            match self.channel.receive(buf, now, &mut self.out) {
                Ok(received) => {
                    if let Event::NeedMore { at_least } = received.event {
                        assert!(received.consumed == 0 && at_least > len, "requests bytes that it has");
                        assert!(at_least <= 65_536, "requests more than a chunk can have");
                        break;
                    }
                    assert!((1..=len).contains(&received.consumed));
                    if let Event::Message { body, .. } = &received.event {
                        assert!(body.bytes(buf).len() <= MESSAGE_SIZE_MAX as usize);
                    }
                    at += received.consumed;
                    self.effect(received.event, now);
                }
                Err(_) => {
                    assert!(self.channel.is_closed(), "an error ends the channel");
                    let again = self.channel.receive(&mut [], now, &mut self.out);
                    assert!(matches!(again, Err(ChannelError::Local(ApiMisuse::Closed))));
                    at = self.inbox.len();
                    break;
                }
            }
        }
        self.inbox.drain(..at);
    }

    /// Runs slow jobs at once.
    fn effect(&mut self, event: Event, now: Instant) {
        let mut event = Ok(event);
        while let Ok(Event::Effect(job)) = event {
            let result = Job::run(*job, self.provider.as_ref());
            event = self.channel.complete(result, now, &mut self.out);
        }
    }

    fn send(&mut self, len: usize) {
        let start = self.channel.begin(&mut self.out);
        self.out.resize(self.out.len() + len, 0x33);
        let id = self.channel.next_request_id();
        if self.channel.finish(start, id, &mut self.out).is_err() {
            assert_eq!(self.out.len(), start.offset(), "a message that was refused leaves nothing");
        }
    }

    /// The bytes of a message, not sent yet.
    fn message(&mut self, body: &[u8]) -> Vec<u8> {
        let start = self.channel.begin(&mut self.out);
        self.out.extend_from_slice(body);
        let id = self.channel.next_request_id();
        let _ = self.channel.finish(start, id, &mut self.out);
        core::mem::take(&mut self.out)
    }
}
