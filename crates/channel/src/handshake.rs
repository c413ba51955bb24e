//! Hello, Acknowledge and OpenSecureChannel, both roles (Part 6 §7.1.3, §6.7.4).

use crate::channel::{Channel, State};
use crate::error::{ApiMisuse, ChannelError, PeerFault};
use crate::event::Event;
use crate::header::{AsymmetricHead, Header, MessageType, SEQUENCE_LEN, SequenceHead, patch_size};
use crate::hello::{PROTOCOL_VERSION, Sizes, append_acknowledge, parse_acknowledge, parse_hello};
use crate::open::{OpenRequest, append_open_response, parse_open_request, parse_open_response};
use crate::pending::{Exchange, Pending, ReservedNumber};
use crate::sequence;
use crate::token::{Token, Tokens};
use core::ops::Range;
use std::sync::Arc;
use taktwerk_crypto::{
    Agreed, Agreement, CertificatePurpose, CryptoError, Job, JobOutput, MessageSecurityMode, OpenChunk, Role,
    SealChunk, SecurityPolicy, TokenKeys,
};
use taktwerk_schema::{
    ChannelSecurityToken, OpenSecureChannelResponse, ResponseHeader, SecurityTokenRequestType,
};
use taktwerk_types::{DecodeError, Instant};

/// The contents of an OpenSecureChannel message, unencrypted.
struct Plain<'a> {
    chunk: &'a [u8],
    body: Range<usize>,
    sequence: SequenceHead,
}

impl<'a> Plain<'a> {
    fn parse(chunk: &'a [u8], headers_len: usize, body_end: usize) -> Result<Self, ChannelError> {
        let truncated = DecodeError::Truncated { needed: SEQUENCE_LEN };
        let sequence = SequenceHead::parse(chunk, headers_len).ok_or(truncated)?;
        let start = headers_len + SEQUENCE_LEN;
        if start > body_end {
            return Err(truncated.into());
        }
        Ok(Self { chunk, body: start..body_end, sequence })
    }

    fn body(&self) -> &'a [u8] {
        self.chunk.get(self.body.clone()).unwrap_or_default()
    }
}

/// An OpenSecureChannel message under construction.
struct Draft {
    at: usize,
    headers_len: usize,
    nonce_at: usize,
}

impl Channel {
    /// Server: the client's Hello (Part 6 §7.1.2.3).
    pub(crate) fn on_hello(
        &mut self,
        chunk: &[u8],
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let (hello, endpoint_url) = parse_hello(chunk)?;
        let size_min = self.config.buffer_size_min();
        if hello.receive_buffer_size < size_min || hello.send_buffer_size < size_min {
            return Err(PeerFault::BufferSizeInvalid.into());
        }
        let limits = &self.config.limits;
        self.receive_buffer_size = limits.receive_buffer_size.min(hello.send_buffer_size);
        self.send_buffer_size = limits.send_buffer_size.min(hello.receive_buffer_size);
        self.peer_message_size_max = hello.message_size_max;
        self.peer_chunk_count_max = hello.chunk_count_max;
        self.peer.endpoint_url = endpoint_url.into();
        // Version 0 is the lowest, so every client requests it or a higher one, and receives it.
        let answer = Sizes {
            version: PROTOCOL_VERSION,
            receive_buffer_size: self.receive_buffer_size,
            send_buffer_size: self.send_buffer_size,
            message_size_max: limits.message_size_max,
            chunk_count_max: limits.chunk_count_max,
        };
        append_acknowledge(answer, out);
        self.state = State::AwaitOpen;
        self.stage_deadline = now + limits.open_timeout;
        Ok(Event::Handled)
    }

    /// Client: the server's Acknowledge (Part 6 §7.1.2.4). The version is ignored: servers of earlier editions send the
    /// latest version they support, and only version 0 exists.
    pub(crate) fn on_acknowledge(
        &mut self,
        chunk: &[u8],
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let sizes = parse_acknowledge(chunk)?;
        let size_min = if self.policy.info().is_ecc() { 1024 } else { 8192 };
        if sizes.receive_buffer_size < size_min || sizes.send_buffer_size < size_min {
            return Err(PeerFault::BufferSizeInvalid.into());
        }
        self.send_buffer_size = self.send_buffer_size.min(sizes.receive_buffer_size);
        self.peer_message_size_max = sizes.message_size_max;
        self.peer_chunk_count_max = sizes.chunk_count_max;
        self.state = State::AwaitOpen;
        self.stage_deadline = now + self.config.limits.open_timeout;
        self.request_open(false, now, out)
    }

    /// Either role: an OPN chunk.
    pub(crate) fn on_open(
        &mut self,
        chunk: &mut [u8],
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let head = AsymmetricHead::parse(chunk)?;
        let uri = chunk.get(head.policy_uri.clone()).and_then(|uri| core::str::from_utf8(uri).ok());
        let policy = uri.and_then(SecurityPolicy::from_uri).ok_or(PeerFault::PolicyRejected)?;
        match self.role {
            Role::Server => self.on_open_request(head, policy, chunk, now, out),
            Role::Client => self.on_open_response(head, policy, chunk),
        }
    }

    fn on_open_request(
        &mut self,
        head: AsymmetricHead,
        policy: SecurityPolicy,
        chunk: &[u8],
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let renewal = self.state == State::Open;
        if self.pending.is_some() {
            return Err(PeerFault::Unexpected("a second OPN").into());
        }
        let id_fits = head.channel_id == if renewal { self.id } else { 0 };
        if !id_fits {
            return Err(PeerFault::ChannelUnknown.into());
        }
        // Policies that are not offered, including the broken ones, are refused before any cryptography.
        let offered = self.config.security.iter().any(|(offered, _)| *offered == policy);
        if !offered || !self.config.provider.supports(policy) || renewal && policy != self.policy {
            return Err(PeerFault::PolicyRejected.into());
        }
        if !renewal {
            self.received = sequence::Received::new(policy.info().legacy_sequence_numbers);
        }
        if policy == SecurityPolicy::None {
            let plain = Plain::parse(chunk, head.len, chunk.len())?;
            self.received.accept(plain.sequence.sequence_number)?;
            return self.answer_open(&plain, policy, None, Vec::new(), now, out);
        }
        let certificate = chunk.get(head.sender_certificate.clone()).unwrap_or_default();
        if renewal && self.peer.certificate.as_deref() != Some(certificate) {
            return Err(PeerFault::CertificateChanged.into());
        }
        let certificate = Arc::from(certificate);
        let reserved = self.reserve_number();
        let job =
            open_chunk_job(&head, policy, chunk, CertificatePurpose::Client { address: None }, Vec::new())?;
        self.pending =
            Some(Box::new(Pending::CheckRequest { headers_len: head.len, certificate, policy, reserved }));
        Ok(job)
    }

    fn reserve_number(&mut self) -> ReservedNumber {
        let before = self.received.skip();
        ReservedNumber { before, number: self.received.last() }
    }

    /// Checks the number of a chunk whose position in the sequence was reserved.
    fn check_number(&mut self, reserved: ReservedNumber, number: u32) -> Result<(), PeerFault> {
        let mut received = reserved.before;
        received.accept(number)?;
        if self.received.last() == reserved.number {
            // No other chunk has arrived since: this also covers the first chunk and a wrap.
            self.received = received;
            return Ok(());
        }
        if number == reserved.number { Ok(()) } else { Err(PeerFault::SequenceInvalid) }
    }

    /// Server: answers a decrypted request.
    fn answer_open(
        &mut self,
        plain: &Plain<'_>,
        policy: SecurityPolicy,
        certificate: Option<Arc<[u8]>>,
        request_signature: Vec<u8>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let request = parse_open_request(plain.body())?;
        let renewal = self.state == State::Open;
        let wanted = if renewal { SecurityTokenRequestType::RENEW } else { SecurityTokenRequestType::ISSUE };
        if request.request_type != wanted {
            return Err(PeerFault::RequestTypeInvalid.into());
        }
        let mode =
            MessageSecurityMode::from_number(request.security_mode.0).ok_or(PeerFault::ModeRejected)?;
        let mode_fits =
            if renewal { mode == self.mode } else { self.config.security.contains(&(policy, mode)) };
        if !mode_fits || (policy == SecurityPolicy::None) != (mode == MessageSecurityMode::None) {
            return Err(PeerFault::ModeRejected.into());
        }
        if policy != SecurityPolicy::None {
            // ClientNonce: the policy's length, and never used before (Part 4 §5.6.2.2).
            let nonce = request.client_nonce.as_bytes();
            if nonce.len() != policy.info().nonce_len || *nonce == *self.peer.nonce {
                return Err(PeerFault::NonceInvalid.into());
            }
            self.peer.nonce = nonce.into();
        }
        if !renewal {
            self.set_security(policy, mode);
            self.peer.certificate.clone_from(&certificate);
        }
        let limits = &self.config.limits;
        self.peer.requested_lifetime_ms = Some(request.requested_lifetime);
        // Zero requests the server's choice.
        let asked = if request.requested_lifetime == 0 { u32::MAX } else { request.requested_lifetime };
        let lifetime_ms =
            asked.clamp(limits.lifetime_min_ms, limits.lifetime_max_ms.max(limits.lifetime_min_ms));
        self.last_token_id = self.last_token_id.checked_add(1).unwrap_or(1);
        let token_id = self.last_token_id;
        let utc = self.utc(now);
        let response = OpenSecureChannelResponse {
            response_header: ResponseHeader {
                timestamp: utc,
                request_handle: request.request_header.request_handle,
                ..ResponseHeader::default()
            },
            security_token: ChannelSecurityToken {
                channel_id: self.id,
                token_id,
                created_at: utc,
                revised_lifetime: lifetime_ms,
            },
            ..OpenSecureChannelResponse::default()
        };
        let request_id = plain.sequence.request_id;
        if policy == SecurityPolicy::None {
            self.draft_open(self.id, request_id, out, |out| append_open_response(response, 0, out));
            return Ok(self.install(Token::new(token_id, now, lifetime_ms, None)));
        }
        let mut chunk = Vec::with_capacity(2048);
        let nonce_len = policy.info().nonce_len;
        let draft = self.draft_open(self.id, request_id, &mut chunk, |out| {
            append_open_response(response, nonce_len, out)
        });
        let previous = self.chain_secret();
        let agreement = Agreement::Answer { peer_nonce: request.client_nonce.as_bytes().to_vec(), previous };
        let binding = if policy.info().enhancements { request_signature } else { Vec::new() };
        let job = self.seal_chunk_job(draft, chunk, agreement, binding)?;
        self.pending = Some(Box::new(Pending::SealResponse { token_id, lifetime_ms, renewal }));
        Ok(job)
    }

    fn chain_secret(&self) -> Option<Vec<u8>> {
        self.tokens
            .as_ref()
            .and_then(|tokens| tokens.newest().keys.as_ref())
            .and_then(|keys| keys.chain_secret())
    }

    /// Appends an OPN message: headers, sequence header, body. `body` returns the position of its nonce.
    fn draft_open(
        &mut self,
        channel_id: u32,
        request_id: u32,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>) -> usize,
    ) -> Draft {
        let sequence_number = self.sent.take();
        let at = Header::begin(MessageType::Open, out);
        let provider = self.config.provider.as_ref();
        let receiver = self.peer.certificate.as_deref().filter(|_| self.policy != SecurityPolicy::None);
        let (certificate, thumbprint) = match receiver {
            Some(receiver) => (provider.own_certificate(self.policy), Some(provider.thumbprint(receiver))),
            None => (None, None),
        };
        AsymmetricHead::append(
            channel_id,
            self.policy.uri(),
            certificate.unwrap_or_default(),
            thumbprint.as_ref().map_or(&[], |thumbprint| thumbprint.as_slice()),
            out,
        );
        let headers_len = out.len() - at;
        SequenceHead { sequence_number, request_id }.append(out);
        let nonce_at = body(out) - at;
        patch_size(at, out);
        Draft { at, headers_len, nonce_at }
    }

    fn seal_chunk_job(
        &self,
        draft: Draft,
        chunk: Vec<u8>,
        agreement: Agreement,
        binding: Vec<u8>,
    ) -> Result<Event, ChannelError> {
        debug_assert_eq!(draft.at, 0);
        let receiver_certificate = self.peer.certificate.clone().ok_or(CryptoError::Internal)?;
        Ok(Event::Effect(Box::new(Job::SealChunk(SealChunk {
            policy: self.policy,
            mode: self.mode,
            role: self.role,
            chunk,
            headers_len: draft.headers_len,
            nonce_at: draft.nonce_at,
            receiver_certificate,
            agreement,
            binding,
        }))))
    }

    /// Activates a token.
    fn install(&mut self, token: Token) -> Event {
        self.pending = None;
        if let Some(log) = &self.config.key_log
            && let Some(keys) = token.keys.as_ref().and_then(|keys| keys.disclosed())
        {
            log.token(&TokenKeys::new((self.id, token.id), self.policy, self.mode, keys));
        }
        match &mut self.tokens {
            Some(tokens) => {
                tokens.renew(token);
                Event::Renewed
            }
            None => {
                self.tokens = Some(Tokens::new(self.role, token));
                self.state = State::Open;
                self.stage_deadline = Instant::FAR;
                Event::Opened
            }
        }
    }

    /// Client: requests a token.
    pub(crate) fn request_open(
        &mut self,
        renewal: bool,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let params = self.params.as_deref().ok_or(ApiMisuse::NotOpen)?;
        let lifetime_ms = params.lifetime_ms;
        let request_id = self.next_request_id();
        let timeout_ms = u32::try_from(self.config.limits.open_timeout.as_millis()).unwrap_or(u32::MAX);
        let request = OpenRequest {
            request_handle: request_id,
            renewal,
            mode: self.mode,
            nonce_len: self.policy.info().nonce_len,
            lifetime_ms,
            timestamp: self.utc(now),
            timeout_hint_ms: timeout_ms,
        };
        let exchange = Exchange { request_id, renewal, sent_at: now, half: None, signature: Vec::new() };
        let channel_id = self.id;
        let body = |out: &mut Vec<u8>| request.append(out);
        if self.policy == SecurityPolicy::None {
            self.draft_open(channel_id, request_id, out, body);
            self.pending = Some(Box::new(Pending::AwaitResponse(exchange)));
            return Ok(Event::Handled);
        }
        let mut chunk = Vec::with_capacity(2048);
        let draft = self.draft_open(channel_id, request_id, &mut chunk, body);
        let job = self.seal_chunk_job(draft, chunk, Agreement::Start, Vec::new())?;
        self.pending = Some(Box::new(Pending::SealRequest(exchange)));
        Ok(job)
    }

    fn on_open_response(
        &mut self,
        head: AsymmetricHead,
        policy: SecurityPolicy,
        chunk: &[u8],
    ) -> Result<Event, ChannelError> {
        let exchange = match self.pending.take().map(|pending| *pending) {
            Some(Pending::AwaitResponse(exchange)) => exchange,
            _ => return Err(PeerFault::Unexpected("OPN").into()),
        };
        if policy != self.policy {
            return Err(PeerFault::PolicyRejected.into());
        }
        // On a renewal the channel id is known. In the first exchange the server may omit it from a fault.
        if exchange.renewal && head.channel_id != self.id {
            return Err(PeerFault::ChannelUnknown.into());
        }
        if !exchange.renewal {
            self.received = sequence::Received::new(policy.info().legacy_sequence_numbers);
        }
        if policy == SecurityPolicy::None {
            let plain = Plain::parse(chunk, head.len, chunk.len())?;
            self.received.accept(plain.sequence.sequence_number)?;
            return self.accept_open(&plain, exchange, Vec::new());
        }
        // The server that answers must be the one the request was encrypted for (Part 6 §6.7.4).
        let certificate = chunk.get(head.sender_certificate.clone()).unwrap_or_default();
        if !same_leaf(self.peer.certificate.as_deref().unwrap_or_default(), certificate) {
            return Err(PeerFault::CertificateChanged.into());
        }
        let host_name =
            self.params.as_deref().map(|params| params.host_name().to_owned()).unwrap_or_default();
        let binding = if policy.info().enhancements { exchange.signature.clone() } else { Vec::new() };
        let reserved = self.reserve_number();
        let job = open_chunk_job(&head, policy, chunk, CertificatePurpose::Server { host_name }, binding)?;
        self.pending = Some(Box::new(Pending::CheckResponse { headers_len: head.len, exchange, reserved }));
        Ok(job)
    }

    /// Client: accepts a decrypted response.
    fn accept_open(
        &mut self,
        plain: &Plain<'_>,
        exchange: Exchange,
        signature: Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let response = parse_open_response(plain.body())?;
        if plain.sequence.request_id != exchange.request_id {
            return Err(PeerFault::ResponseMismatch.into());
        }
        let token = &response.security_token;
        if exchange.renewal && token.channel_id != self.id {
            return Err(PeerFault::ChannelUnknown.into());
        }
        let keys = match exchange.half {
            None => None,
            Some(half) => {
                let nonce = response.server_nonce.as_bytes();
                if *nonce == *self.peer.nonce {
                    return Err(PeerFault::NonceInvalid.into());
                }
                self.peer.nonce = nonce.into();
                Some(half.derive(nonce, self.chain_secret().as_deref())?)
            }
        };
        if !exchange.renewal {
            self.id = token.channel_id;
            self.thumbprint = signature.into();
        }
        // Counting from the time of the request is the safe side. A lifetime of zero would cause endless renewals.
        let lifetime_ms = token.revised_lifetime.max(1);
        let asked_ms = self.params.as_deref().map_or(0, |params| params.lifetime_ms);
        let token = Token::new(token.token_id, exchange.sent_at, lifetime_ms, keys).asked_for(asked_ms);
        Ok(self.install(token))
    }

    /// Whether an OPN chunk is being secured, so that later chunks must wait for it.
    pub(crate) fn is_sealing(&self) -> bool {
        matches!(self.pending.as_deref(), Some(Pending::SealResponse { .. } | Pending::SealRequest(_)))
    }

    /// Accepts the result of a job from [`Event::Effect`].
    ///
    /// # Errors
    /// The failure that closed the channel, as in [`Channel::receive`]. [`ApiMisuse::NoJob`] if no job is outstanding,
    /// for example because the channel was closed while the job ran.
    pub fn complete(
        &mut self,
        result: Result<JobOutput, CryptoError>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        let event = self.try_complete(result, now, out);
        if let Err(error) = &event {
            self.fail(error, now, out);
        }
        event
    }

    fn try_complete(
        &mut self,
        result: Result<JobOutput, CryptoError>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event, ChannelError> {
        match self.pending.as_deref() {
            None | Some(Pending::AwaitResponse(_)) => return Err(ApiMisuse::NoJob.into()),
            Some(_) => {}
        }
        let pending = self.pending.take().map(|pending| *pending);
        match (pending, result?) {
            (
                Some(Pending::CheckRequest { headers_len, certificate, policy, reserved }),
                JobOutput::Opened { chunk, body_end, signature },
            ) => {
                let plain = Plain::parse(&chunk, headers_len, body_end)?;
                self.check_number(reserved, plain.sequence.sequence_number)?;
                self.answer_open(&plain, policy, Some(certificate), signature, now, out)
            }
            (
                Some(Pending::SealResponse { token_id, lifetime_ms, renewal }),
                JobOutput::Sealed { chunk, signature, agreed: Agreed::Keys(keys) },
            ) => {
                self.release(&chunk, out);
                if !renewal {
                    self.thumbprint = signature.into();
                }
                Ok(self.install(Token::new(token_id, now, lifetime_ms, Some(keys))))
            }
            (
                Some(Pending::SealRequest(mut exchange)),
                JobOutput::Sealed { chunk, signature, agreed: Agreed::Half(half) },
            ) => {
                self.release(&chunk, out);
                exchange.half = Some(half);
                exchange.signature = signature;
                self.pending = Some(Box::new(Pending::AwaitResponse(exchange)));
                Ok(Event::Handled)
            }
            (
                Some(Pending::CheckResponse { headers_len, exchange, reserved }),
                JobOutput::Opened { chunk, body_end, signature },
            ) => {
                let plain = Plain::parse(&chunk, headers_len, body_end)?;
                self.check_number(reserved, plain.sequence.sequence_number)?;
                self.accept_open(&plain, exchange, signature)
            }
            _ => Err(CryptoError::Internal.into()),
        }
    }

    /// Appends a secured OPN chunk and the chunks that waited for it.
    fn release(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(chunk);
        out.extend_from_slice(&core::mem::take(&mut self.held));
    }
}

/// Whether two certificate fields start with the same certificate. Each may or may not include its chain.
fn same_leaf(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    !short.is_empty() && long.starts_with(short)
}

fn open_chunk_job(
    head: &AsymmetricHead,
    policy: SecurityPolicy,
    chunk: &[u8],
    purpose: CertificatePurpose,
    binding: Vec<u8>,
) -> Result<Event, ChannelError> {
    let thumbprint = chunk.get(head.receiver_thumbprint.clone()).unwrap_or_default();
    let receiver_thumbprint = thumbprint.try_into().map_err(|_| CryptoError::ThumbprintMismatch)?;
    Ok(Event::Effect(Box::new(Job::OpenChunk(OpenChunk {
        policy,
        chunk: chunk.to_vec(),
        headers_len: head.len,
        sender_certificate: head.sender_certificate.clone(),
        receiver_thumbprint,
        purpose,
        binding,
    }))))
}
