//! The receive path: one chunk at a time, decrypted in place, parsed once.

use crate::assembly::{Assembly, Overrun};
use crate::channel::{Channel, State};
use crate::error::{ApiMisuse, ChannelError, LimitHit, PeerFault};
use crate::event::{Body, Closed, Event, Received};
use crate::header::{
    HEAD_LEN, HEADER_LEN, Header, IsFinal, MessageType, SYMMETRIC_LEN, SequenceHead, SymmetricHead,
};
use crate::hello::{HELLO_SIZE_MAX, parse_error_body, parse_reverse_hello};
use taktwerk_crypto::{ChunkNonce, CryptoError, Role, SymmetricKeys, job::padding_start};
use taktwerk_types::{Instant, StatusCode};

impl Channel {
    /// Processes the first chunk of `buf`, which holds everything received and not consumed yet. Call again with the
    /// rest until it returns [`Event::NeedMore`]. Secured chunks are decrypted in place. Answers are appended to `out`.
    ///
    /// Work is bounded: one chunk per call.
    ///
    /// # Errors
    /// The failure that closed the channel. Send what `out` holds for the peer, then close the connection.
    #[inline]
    pub fn receive(
        &mut self,
        buf: &mut [u8],
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Received, ChannelError> {
        let result = self.try_receive(buf, now, out);
        if let Err(error) = &result {
            self.fail(error, now, out);
        }
        result
    }

    fn try_receive(
        &mut self,
        buf: &mut [u8],
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Received, ChannelError> {
        if self.state == State::Closed {
            return Err(ApiMisuse::Closed.into());
        }
        let Some(header) = Header::parse(buf)? else { return Ok(self.need_more(buf.len(), HEADER_LEN, now)) };
        let limit = self.size_limit(header.message_type)?;
        if header.size > limit {
            return Err(LimitHit::ChunkTooLarge { size: header.size, limit }.into());
        }
        let size = header.size as usize;
        let arrived = buf.len();
        let Some(chunk) = buf.get_mut(..size) else { return Ok(self.need_more(arrived, size, now)) };
        self.chunk_deadline = Instant::FAR;
        let event = match header.message_type {
            MessageType::Message | MessageType::Close => self.on_secured(header, chunk, now)?,
            MessageType::Open => self.on_open(chunk, now, out)?,
            MessageType::Hello => self.on_hello(chunk, now, out)?,
            MessageType::Acknowledge => self.on_acknowledge(chunk, now, out)?,
            MessageType::ReverseHello => {
                let (server_uri, endpoint_url) = parse_reverse_hello(chunk)?;
                self.state = State::ReverseHello;
                Event::ReverseHello { server_uri: server_uri.into(), endpoint_url: endpoint_url.into() }
            }
            MessageType::Error => {
                let (status, reason) = parse_error_body(chunk.get(HEADER_LEN..).unwrap_or_default())?;
                let reason = reason.into();
                self.set_closed();
                Event::Closed(Closed::Error { status, reason })
            }
        };
        Ok(Received { consumed: size, event })
    }

    fn need_more(&mut self, arrived: usize, at_least: usize, now: Instant) -> Received {
        if arrived > 0 && self.chunk_deadline == Instant::FAR {
            self.chunk_deadline = now + self.config.limits.chunk_timeout;
        }
        Received { consumed: 0, event: Event::NeedMore { at_least } }
    }

    /// The largest message of a type that is acceptable now, in bytes.
    #[inline]
    fn size_limit(&self, message_type: MessageType) -> Result<u32, PeerFault> {
        use MessageType as T;
        let open_max = self.config.limits.open_size_max.min(self.receive_buffer_size);
        match (self.state, message_type, self.role) {
            (State::Open, T::Message | T::Close, _) => Ok(self.receive_buffer_size),
            (State::AwaitOpen | State::Open, T::Open, _) => Ok(open_max),
            (State::AwaitHello, T::Hello, _) | (State::AwaitReverseHello, T::ReverseHello, _) => {
                Ok(HELLO_SIZE_MAX)
            }
            (State::AwaitAcknowledge, T::Acknowledge, _) => Ok(HELLO_SIZE_MAX),
            (_, T::Error, Role::Client) => Ok(HELLO_SIZE_MAX),
            // A client refuses a reversed connection with an Error message (Part 6 §7.1.3).
            (State::AwaitHello, T::Error, Role::Server) => Ok(HELLO_SIZE_MAX),
            (State::AwaitOpen, T::Message | T::Close, Role::Server) => Err(PeerFault::ChannelUnknown),
            _ => Err(PeerFault::Unexpected(message_type.name())),
        }
    }

    /// A chunk secured with a token (Part 6 §6.7.7): runs the checks in order, then handles the content.
    #[inline]
    fn on_secured(&mut self, header: Header, chunk: &mut [u8], now: Instant) -> Result<Event, ChannelError> {
        let head = SymmetricHead::parse(chunk).ok_or(PeerFault::HeaderInvalid)?;
        if head.channel_id != self.id {
            return Err(PeerFault::ChannelUnknown.into());
        }
        let tokens = self.tokens.as_mut().ok_or(PeerFault::ChannelUnknown)?;
        let token = tokens.receiving(head.token_id, now)?;
        let end = match &mut token.keys {
            None => chunk.len(),
            Some(keys) => {
                let nonce =
                    ChunkNonce { token_id: head.token_id, last_sequence_number: self.received.last() };
                let end = open_secured(keys.as_mut(), chunk, nonce)?;
                token.count_received()?;
                end
            }
        };
        let sequence = SequenceHead::parse(chunk, SYMMETRIC_LEN).ok_or(PeerFault::HeaderInvalid)?;
        self.received.accept(sequence.sequence_number)?;
        tokens.verified(head.token_id);
        if header.message_type == MessageType::Close {
            self.set_closed();
            return Ok(Event::Closed(Closed::Close));
        }
        let body_len = end - HEAD_LEN;
        if header.is_final == IsFinal::Final
            && self.assembly.is_none()
            && body_len <= self.config.limits.message_size_max as usize
        {
            let body = Body::InBuffer { start: HEAD_LEN, end };
            return Ok(Event::Message { request_id: sequence.request_id, body });
        }
        let body = chunk.get(HEAD_LEN..end).unwrap_or_default();
        self.on_part(header.is_final, sequence.request_id, body, now)
    }

    /// A chunk that is not the whole message, or that exceeds the limits.
    fn on_part(
        &mut self,
        is_final: IsFinal,
        request_id: u32,
        body: &[u8],
        now: Instant,
    ) -> Result<Event, ChannelError> {
        let limits = self.message_limits();
        if is_final == IsFinal::Abort {
            if self.assembly.take().is_some_and(|assembly| assembly.request_id != request_id) {
                return Err(PeerFault::Interleaved.into());
            }
            let (status, reason) = parse_error_body(body)?;
            return Ok(Event::Aborted { request_id, status, reason: reason.into() });
        }
        let deadline = now + self.config.limits.message_timeout;
        let assembly = self.assembly.get_or_insert_with(|| Box::new(Assembly::new(request_id, deadline)));
        assembly.push(request_id, body, limits)?;
        if is_final == IsFinal::Intermediate {
            return Ok(Event::Handled);
        }
        let whole = self.assembly.take().and_then(|assembly| assembly.finish());
        Ok(match whole {
            Some(bytes) => Event::Message { request_id, body: Body::Assembled(bytes) },
            None => {
                debug_assert_eq!(limits.overrun, Overrun::Drop);
                let status = StatusCode::BAD_RESPONSE_TOO_LARGE;
                Event::Aborted {
                    request_id,
                    status,
                    reason: "the response passes the client's limits".into(),
                }
            }
        })
    }
}

/// Decrypts and verifies a chunk. Returns where its body ends.
fn open_secured(
    keys: &mut dyn SymmetricKeys,
    chunk: &mut [u8],
    nonce: ChunkNonce,
) -> Result<usize, ChannelError> {
    let signed_end = keys.open(chunk, SYMMETRIC_LEN, nonce)?;
    let mut end = signed_end;
    if keys.layout().block_len > 1 {
        // The signature has been verified, so invalid padding is no oracle: only the holder of the key can write it.
        let secured = chunk.get(SYMMETRIC_LEN..signed_end).ok_or(CryptoError::Malformed)?;
        end = padding_start(secured, false).ok_or(CryptoError::Decryption)? + SYMMETRIC_LEN;
    }
    if end < HEAD_LEN || end > chunk.len() {
        return Err(CryptoError::Malformed.into());
    }
    Ok(end)
}
