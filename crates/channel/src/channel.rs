//! The state of a channel, its lifecycle and its deadlines.

use crate::assembly::{Assembly, MessageLimits, Overrun};
use crate::config::{ChannelConfig, OpenParams};
use crate::error::{ApiMisuse, ChannelError, PeerFault};
use crate::event::Event;
use crate::header::MessageType;
use crate::hello::{PROTOCOL_VERSION, Sizes, append_error, append_hello, append_reverse_hello};
use crate::pending::Pending;
use crate::sequence;
use crate::token::Tokens;
use core::fmt;
use std::sync::Arc;
use taktwerk_crypto::{CryptoError, MessageSecurityMode, Role, SecurityPolicy};
use taktwerk_types::{Instant, StatusCode, UtcTime};

/// State of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Client of a reversed connection: the server speaks first.
    AwaitReverseHello,
    /// Client of a reversed connection: the application decides whether it wants this server.
    ReverseHello,
    /// Server.
    AwaitHello,
    /// Client.
    AwaitAcknowledge,
    /// Both roles: the OpenSecureChannel exchange has not finished.
    AwaitOpen,
    /// Messages can be sent and received.
    Open,
    /// Nothing more is accepted or sent.
    Closed,
}

/// What is known of the peer.
#[derive(Default)]
pub(crate) struct Peer {
    /// The endpoint URL in the client's Hello.
    pub(crate) endpoint_url: Box<str>,
    /// The certificate the channel was opened with.
    pub(crate) certificate: Option<Arc<[u8]>>,
    /// The last nonce. The peer must not use it again.
    pub(crate) nonce: Box<[u8]>,
    /// On a server: RequestedLifetime of the last OpenSecureChannel request, in milliseconds.
    pub(crate) requested_lifetime_ms: Option<u32>,
}

impl fmt::Debug for Peer {
    /// With RSA policies the nonce is half of the key material, so it is not printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("endpoint_url", &self.endpoint_url).finish_non_exhaustive()
    }
}

/// One end of a secure channel over one connection. See the crate's documentation for how it is driven.
#[derive(Debug)]
pub struct Channel {
    pub(crate) config: Arc<ChannelConfig>,
    pub(crate) role: Role,
    pub(crate) state: State,
    pub(crate) id: u32,
    pub(crate) policy: SecurityPolicy,
    pub(crate) mode: MessageSecurityMode,
    /// Largest chunk we accept, in bytes.
    pub(crate) receive_buffer_size: u32,
    /// Largest chunk we send, in bytes.
    pub(crate) send_buffer_size: u32,
    /// Largest message the peer accepts, in bytes of the body; 0 is no limit.
    pub(crate) peer_message_size_max: u32,
    /// Most chunks of a message the peer accepts; 0 is no limit.
    pub(crate) peer_chunk_count_max: u32,
    pub(crate) sent: sequence::Sent,
    pub(crate) received: sequence::Received,
    /// Present exactly while the channel is open.
    pub(crate) tokens: Option<Tokens>,
    pub(crate) last_token_id: u32,
    pub(crate) last_request_id: u32,
    pub(crate) assembly: Option<Box<Assembly>>,
    /// Deadline of the current handshake stage.
    pub(crate) stage_deadline: Instant,
    /// Deadline for the rest of a partly received chunk.
    pub(crate) chunk_deadline: Instant,
    pub(crate) pending: Option<Box<Pending>>,
    /// Chunks numbered after an OpenSecureChannel chunk that is still being secured.
    pub(crate) held: Vec<u8>,
    pub(crate) peer: Peer,
    /// The signature of the first OpenSecureChannel response (Part 6 §6.7.5).
    pub(crate) thumbprint: Box<[u8]>,
    /// What a client requested.
    pub(crate) params: Option<Box<OpenParams>>,
    /// Why a message could not be secured. Reported to the owner by the next [`Channel::handle_timeout`].
    pub(crate) send_failure: Option<Box<ChannelError>>,
}

impl Channel {
    fn new(config: Arc<ChannelConfig>, role: Role, state: State, id: u32, now: Instant) -> Self {
        let limits = &config.limits;
        let (receive_buffer_size, send_buffer_size) = (limits.receive_buffer_size, limits.send_buffer_size);
        let stage_deadline = now + limits.hello_timeout;
        Self {
            config,
            role,
            state,
            id,
            policy: SecurityPolicy::None,
            mode: MessageSecurityMode::None,
            receive_buffer_size,
            send_buffer_size,
            peer_message_size_max: 0,
            peer_chunk_count_max: 0,
            sent: sequence::Sent::new(true),
            received: sequence::Received::new(true),
            tokens: None,
            last_token_id: 0,
            last_request_id: 0,
            assembly: None,
            stage_deadline,
            chunk_deadline: Instant::FAR,
            pending: None,
            held: Vec::new(),
            peer: Peer::default(),
            thumbprint: Box::default(),
            params: None,
            send_failure: None,
        }
    }

    /// The server's end of a connection opened by a client. `channel_id` becomes the SecureChannelId. It must not be
    /// zero and should not have been used before a restart (Part 6 §6.7.2.2).
    #[must_use]
    pub fn server(config: Arc<ChannelConfig>, channel_id: u32, now: Instant) -> Self {
        Self::new(config, Role::Server, State::AwaitHello, channel_id, now)
    }

    /// The server's end of a connection that the server opened to a waiting client. Appends a ReverseHello (Part 6
    /// §7.1.2.6). Each text has at most 4096 bytes.
    #[must_use]
    pub fn server_reverse(
        config: Arc<ChannelConfig>,
        channel_id: u32,
        server_uri: &str,
        endpoint_url: &str,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Self {
        append_reverse_hello(server_uri, endpoint_url, out);
        Self::server(config, channel_id, now)
    }

    /// The client's end of a connection that the client opened. Appends the Hello.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`] if the provider does not support the policy, if policy and mode do not match,
    /// or if the server's certificate is missing.
    pub fn client(
        config: Arc<ChannelConfig>,
        params: OpenParams,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Self, ChannelError> {
        let mut channel = Self::new(config, Role::Client, State::ReverseHello, 0, now);
        channel.accept_reverse(params, now, out)?;
        Ok(channel)
    }

    /// The client's end of a connection that a server opened. Waits for the ReverseHello.
    #[must_use]
    pub fn client_reverse(config: Arc<ChannelConfig>, now: Instant) -> Self {
        Self::new(config, Role::Client, State::AwaitReverseHello, 0, now)
    }

    /// After [`Event::ReverseHello`]: accepts this server and appends the Hello.
    ///
    /// # Errors
    /// As [`Channel::client`]; [`ApiMisuse::NotOpen`] if no ReverseHello has arrived.
    pub fn accept_reverse(
        &mut self,
        params: OpenParams,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        if self.state != State::ReverseHello {
            return Err(ApiMisuse::NotOpen.into());
        }
        let secured = params.policy != SecurityPolicy::None;
        let fits = secured == (params.mode != MessageSecurityMode::None)
            && self.config.provider.supports(params.policy)
            && (!secured || params.server_certificate.is_some());
        if !fits {
            return Err(CryptoError::PolicyUnsupported.into());
        }
        let limits = &self.config.limits;
        let sizes = Sizes {
            version: PROTOCOL_VERSION,
            receive_buffer_size: limits.receive_buffer_size,
            send_buffer_size: limits.send_buffer_size,
            message_size_max: limits.message_size_max,
            chunk_count_max: limits.chunk_count_max,
        };
        append_hello(sizes, &params.endpoint_url, out);
        self.state = State::AwaitAcknowledge;
        self.stage_deadline = now + limits.hello_timeout;
        self.set_security(params.policy, params.mode);
        self.peer.certificate.clone_from(&params.server_certificate);
        self.params = Some(Box::new(params));
        Ok(())
    }

    pub(crate) fn set_security(&mut self, policy: SecurityPolicy, mode: MessageSecurityMode) {
        self.policy = policy;
        self.mode = mode;
        let legacy = policy.info().legacy_sequence_numbers;
        self.sent = self.sent.switched(legacy);
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether the channel has ended. The driver then sends what is left and closes the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The SecureChannelId. On a client it is 0 until the channel is open.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The security policy.
    #[must_use]
    pub fn policy(&self) -> SecurityPolicy {
        self.policy
    }

    /// The security mode.
    #[must_use]
    pub fn mode(&self) -> MessageSecurityMode {
        self.mode
    }

    /// The endpoint URL in the client's Hello. Empty on a client.
    #[must_use]
    pub fn endpoint_url(&self) -> &str {
        &self.peer.endpoint_url
    }

    /// The peer's certificate with its chain; `None` without security.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&Arc<[u8]>> {
        self.peer.certificate.as_ref()
    }

    /// The signature of the first OpenSecureChannel response. Policies with the channel enhancements bind session
    /// signatures to it (Part 6 §6.7.5, Part 4 §6.1.8). Empty without security.
    #[must_use]
    pub fn thumbprint(&self) -> &[u8] {
        &self.thumbprint
    }

    /// The lifetime that the client requested with its last OpenSecureChannel request, in milliseconds; `None` before it.
    #[must_use]
    pub fn requested_lifetime_ms(&self) -> Option<u32> {
        self.peer.requested_lifetime_ms
    }

    /// The lifetime of the newest security token in milliseconds, as revised by the server.
    #[must_use]
    pub fn token_lifetime_ms(&self) -> Option<u32> {
        self.tokens.as_ref().map(|tokens| tokens.newest().lifetime_ms)
    }

    /// Number of chunks prepared for sending, modulo 2^32.
    #[must_use]
    pub fn chunks_sent(&self) -> u32 {
        self.sent.count()
    }

    /// Largest chunk that can arrive, in bytes. The driver's receive buffer must hold one.
    #[must_use]
    pub fn receive_buffer_size(&self) -> u32 {
        self.receive_buffer_size
    }

    /// Memory held by the channel, in bytes: parts of an incomplete message, and chunks that wait for a renewal.
    #[must_use]
    pub fn buffered_len(&self) -> usize {
        self.held.capacity() + self.assembly.as_ref().map_or(0, |assembly| assembly.len())
    }

    /// On a client: the id of the next request. Ids repeat after 2^32 requests; 0 is not used.
    pub fn next_request_id(&mut self) -> u32 {
        self.last_request_id = self.last_request_id.checked_add(1).unwrap_or(1);
        self.last_request_id
    }

    /// Ends the channel. A client with an open channel appends a CloseSecureChannel request; a server appends nothing
    /// (Part 6 §7.1.4). Buffered data is dropped.
    pub fn close(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.role == Role::Client && self.state == State::Open {
            self.append_close(now, out);
        }
        self.set_closed();
    }

    /// Ends a server's channel with an Error message, for reasons of the layers above (Bad_TcpServerTooBusy, a refused
    /// session). On a client it only ends the channel, but the server of a reversed connection gets an Error message
    /// (Part 6 §7.1.3).
    pub fn reject(&mut self, status: StatusCode, reason: &str, out: &mut Vec<u8>) {
        if self.state != State::Closed && (self.role == Role::Server || self.state == State::ReverseHello) {
            append_error(status, reason, out);
        }
        self.set_closed();
    }

    /// Ends the channel after a failure and sends the peer what it may know (Part 6 §7.1.5).
    pub(crate) fn fail(&mut self, error: &ChannelError, now: Instant, out: &mut Vec<u8>) {
        if self.state == State::Closed {
            return;
        }
        match (self.role, error.wire()) {
            // The peer gets no message, and the channel stays open.
            (_, None) => return,
            (Role::Server, Some((status, reason))) => append_error(status, reason, out),
            // A client sends no Error message on a connection it has opened; it closes the channel.
            (Role::Client, Some(_)) if self.state == State::Open => self.append_close(now, out),
            (Role::Client, Some(_)) => {}
        }
        self.set_closed();
    }

    fn append_close(&mut self, now: Instant, out: &mut Vec<u8>) {
        let request_id = self.next_request_id();
        let start = self.begin(out);
        crate::open::append_close_request(self.utc(now), out);
        // A close that cannot be sent does not matter: the connection is closed next.
        let _ = self.finish_as(start, MessageType::Close, request_id, out);
    }

    pub(crate) fn set_closed(&mut self) {
        self.state = State::Closed;
        self.tokens = None;
        self.assembly = None;
        self.pending = None;
        self.held = Vec::new();
        self.send_failure = None;
        self.stage_deadline = Instant::FAR;
        self.chunk_deadline = Instant::FAR;
    }

    pub(crate) fn utc(&self, now: Instant) -> UtcTime {
        self.config.utc_origin.plus(now.since(Instant::ZERO))
    }

    pub(crate) fn message_limits(&self) -> MessageLimits {
        MessageLimits {
            size_max: self.config.limits.message_size_max,
            chunk_count_max: self.config.limits.chunk_count_max,
            overrun: if self.role == Role::Server { Overrun::Fail } else { Overrun::Drop },
        }
    }

    /// When [`Channel::handle_timeout`] has to be called, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.send_failure.is_some() {
            return Some((Instant::ZERO, "a message could not be secured"));
        }
        let stage = match self.state {
            State::AwaitReverseHello | State::ReverseHello | State::AwaitHello | State::AwaitAcknowledge => {
                "hello"
            }
            _ => "open",
        };
        let mut first = (self.stage_deadline, stage);
        let mut consider = |at: Instant, reason| {
            if at < first.0 {
                first = (at, reason);
            }
        };
        consider(self.chunk_deadline, "rest of a chunk");
        if let Some(assembly) = &self.assembly {
            consider(assembly.deadline, "rest of a message");
        }
        if let Some(tokens) = &self.tokens {
            let (at, reason) = self.token_due(tokens);
            consider(at, reason);
        }
        (first.0 != Instant::FAR).then_some(first)
    }

    fn token_due(&self, tokens: &Tokens) -> (Instant, &'static str) {
        match self.role {
            Role::Server => tokens.server_due(),
            Role::Client if self.pending.is_none() => {
                (tokens.newest().renew_at(), "renew the security token")
            }
            Role::Client => (tokens.newest().accepted_until(), "security token expires"),
        }
    }

    /// Handles what is due: ends a channel whose deadline has passed, renews a client's token.
    ///
    /// # Errors
    /// The deadline that ended the channel, or the failure with which [`Channel::finish`] ended it.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) -> Result<Option<Event>, ChannelError> {
        let result = self.try_timeout(now, out);
        if let Err(error) = &result {
            self.fail(error, now, out);
        }
        result
    }

    fn try_timeout(&mut self, now: Instant, out: &mut Vec<u8>) -> Result<Option<Event>, ChannelError> {
        if let Some(error) = self.send_failure.take() {
            return Err(*error);
        }
        if self.stage_deadline <= now {
            let stage =
                if self.state == State::AwaitOpen { "the channel was not opened" } else { "no hello" };
            return Err(PeerFault::Timeout(stage).into());
        }
        if self.chunk_deadline <= now {
            return Err(PeerFault::Timeout("a chunk did not arrive whole").into());
        }
        if self.assembly.as_ref().is_some_and(|assembly| assembly.deadline <= now) {
            return Err(PeerFault::Timeout("a message did not arrive whole").into());
        }
        let Some(tokens) = &mut self.tokens else { return Ok(None) };
        match self.role {
            Role::Server => {
                if !tokens.server_tick(now) {
                    return Err(PeerFault::TokenExpired.into());
                }
                Ok(None)
            }
            Role::Client => {
                if tokens.newest().accepted_until() <= now {
                    return Err(PeerFault::TokenExpired.into());
                }
                let due = self.pending.is_none() && tokens.newest().renew_at() <= now;
                if due { self.request_open(true, now, out).map(Some) } else { Ok(None) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto_dummy::{DummyProvider, certificate};

    /// Carries bytes and jobs between two channels until neither has output. Returns how many messages arrived.
    fn deliver_all(one: &mut Channel, other: &mut Channel, out: &mut Vec<u8>) -> usize {
        let mut messages = 0;
        let mut ends = [one, other];
        while !out.is_empty() {
            ends.swap(0, 1);
            let [end, _] = &mut ends;
            let mut wire = core::mem::take(out);
            let mut at = 0;
            while at < wire.len() {
                let received = end.receive(&mut wire[at..], Instant::ZERO, out).unwrap();
                at += received.consumed;
                let mut event = received.event;
                while let Event::Effect(job) = event {
                    let result = job.run(end.config.provider.clone().as_ref());
                    event = end.complete(result, Instant::ZERO, out).unwrap();
                }
                messages += usize::from(matches!(event, Event::Message { .. }));
            }
        }
        messages
    }

    /// Messages of several chunks across the wrap of the sequence numbers, for both numbering rules and with
    /// authenticated ciphers, whose nonces depend on the numbers.
    #[test]
    fn numbers_wrap_in_the_middle_of_messages() {
        for (policy, mode) in [
            (SecurityPolicy::None, MessageSecurityMode::None),
            (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt),
            (SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt),
        ] {
            let config = |name| {
                let mut config = ChannelConfig { security: vec![(policy, mode)], ..ChannelConfig::default() };
                if policy != SecurityPolicy::None {
                    config.provider = Arc::new(DummyProvider::new(name, 2048));
                }
                config.limits.send_buffer_size = 8192;
                Arc::new(config)
            };
            let params = OpenParams {
                policy,
                mode,
                server_certificate: Some(certificate("server", 2048).into()),
                ..OpenParams::insecure("opc.tcp://host")
            };
            let mut out = Vec::new();
            let mut client = Channel::client(config("client"), params, Instant::ZERO, &mut out).unwrap();
            let mut server = Channel::server(config("server"), 1, Instant::ZERO);
            deliver_all(&mut client, &mut server, &mut out);
            let legacy = policy.info().legacy_sequence_numbers;
            let near = if legacy { u32::MAX - 1034 } else { u32::MAX - 10 };
            client.sent = sequence::Sent::starting_at(legacy, near);
            server.received = sequence::Received::after(legacy, near - 1);
            for round in 0..20 {
                let start = client.begin(&mut out);
                out.resize(start.body() + 20_000, 7);
                client.finish(start, round, &mut out).unwrap();
                assert_eq!(deliver_all(&mut client, &mut server, &mut out), 1);
            }
            assert!(server.received.last() < 100);
        }
    }
}
