//! The connection with its channel, and sending requests on it.

use crate::batch::DynRequest;
use crate::effect::ConnectionId;
use crate::error::{ClientError, Misuse};
use crate::event::RequestHandle;
use crate::notification::ns0;
use crate::outstanding::{Entry, Outstanding, Purpose};
use crate::work::Work;
use core::time::Duration;
use taktwerk_channel::Channel;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::{
    Decode, DecodeError, DecodeLimits, Decoder, DiagnosticInfo, Encode, ExtensionObject, Instant, NodeId,
    NodeIdRef, StatusCode, UaString, UtcTime,
};

/// The current connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: Option<Channel>,
    /// Bytes to be sent.
    pub(crate) out: Vec<u8>,
    pub(crate) outstanding: Outstanding,
    /// The session's authentication token, encoded; the null NodeId without a session.
    token: Vec<u8>,
    /// The wall time at [`Instant::ZERO`].
    pub(crate) utc_origin: UtcTime,
    next_handle: u32,
    /// Time of the last send.
    pub(crate) last_sent: Instant,
    /// Time of the last receive.
    pub(crate) last_heard: Instant,
    /// A smoothed round-trip time, without Publish.
    pub(crate) round_trip: Duration,
    /// Requests and bytes sent since the last count.
    sent: (u64, u64),
    /// Chunks of the current channel that were counted.
    chunks_counted: u32,
}

/// The encoding of the null NodeId: two zero bytes.
const NULL_TOKEN: [u8; 2] = [0; 2];

impl Link {
    pub(crate) fn new(utc_origin: UtcTime) -> Self {
        Self {
            connection: ConnectionId(0),
            channel: None,
            out: Vec::new(),
            outstanding: Outstanding::default(),
            token: NULL_TOKEN.to_vec(),
            utc_origin,
            next_handle: 0,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            round_trip: Duration::ZERO,
            sent: (0, 0),
            chunks_counted: 0,
        }
    }

    pub(crate) fn is_secured(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.mode() != MessageSecurityMode::None)
    }

    /// Adds the work since the last call to the counters.
    pub(crate) fn count_sent(&mut self, work: &mut Work) {
        let (requests, bytes) = core::mem::take(&mut self.sent);
        work.requests += requests;
        work.bytes_sent += bytes;
        let made = self.channel.as_ref().map_or(0, Channel::chunks_sent);
        // A new channel starts at zero.
        let chunks = u64::from(made.checked_sub(self.chunks_counted).unwrap_or(made));
        self.chunks_counted = made;
        work.chunks_sent += chunks;
        if self.is_secured() {
            work.signatures += chunks;
        }
    }

    pub(crate) fn set_token(&mut self, token: &NodeId) {
        self.token = token.encode_to_vec();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.channel.as_ref().is_some_and(Channel::is_open)
    }

    pub(crate) fn utc(&self, now: Instant) -> UtcTime {
        self.utc_origin.plus(now.since(Instant::ZERO))
    }

    pub(crate) fn next_handle(&mut self) -> RequestHandle {
        self.next_handle = self.next_handle.checked_add(1).unwrap_or(1);
        RequestHandle(self.next_handle)
    }

    /// Fills in the header of a request, encodes it directly into the send buffer and registers it as outstanding.
    pub(crate) fn send(
        &mut self,
        request: &mut dyn DynRequest,
        handle: RequestHandle,
        purpose: Purpose,
        timeout: Option<Duration>,
        now: Instant,
    ) -> Result<(), ClientError> {
        let timestamp = self.utc(now);
        let Some(channel) = self.channel.as_mut().filter(|channel| channel.is_open()) else {
            return Err(Misuse::NotConnected.into());
        };
        let header = request.header_mut();
        header.timestamp = timestamp;
        header.request_handle = handle.0;
        if let (0, Some(timeout)) = (header.timeout_hint, timeout) {
            header.timeout_hint = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        }
        header.authentication_token = NodeId::NULL;
        let before_session = matches!(purpose, Purpose::GetEndpoints | Purpose::CreateSession);
        let token = if before_session { NULL_TOKEN.as_slice() } else { &self.token };
        let start_len = self.out.len();
        let start = channel.begin(&mut self.out);
        NodeId::numeric(0, request.encoding_id()).encode(&mut self.out);
        // The request encodes its null token as two zero bytes. The encoded token is inserted there without moving or
        // cloning anything: all but its last two bytes are written before the rest, and the last two replace the zeros.
        let (front, last) = token.split_at(token.len() - NULL_TOKEN.len());
        self.out.extend_from_slice(front);
        let null_at = self.out.len();
        request.append(&mut self.out);
        if let Some(null) = self.out.get_mut(null_at..null_at + NULL_TOKEN.len()) {
            null.copy_from_slice(last);
        }
        let request_id = channel.next_request_id();
        channel.finish(start, request_id, &mut self.out)?;
        self.sent.0 += 1;
        self.sent.1 += (self.out.len() - start_len) as u64;
        self.last_sent = now;
        let service = taktwerk_schema::message_name(request.encoding_id()).unwrap_or("request");
        let service = service.strip_suffix("Request").unwrap_or(service);
        let deadline = timeout.map_or(Instant::FAR, |timeout| now + timeout);
        self.outstanding.push(Entry { request_id, handle, purpose, service, sent_at: now, deadline });
        Ok(())
    }

    /// Records a response time.
    pub(crate) fn measure(&mut self, sent_at: Instant, now: Instant) {
        let sample = now.since(sent_at);
        self.round_trip = if self.round_trip.is_zero() { sample } else { (self.round_trip * 7 + sample) / 8 };
    }
}

/// A received response with its decoded header.
#[derive(Debug, Clone)]
pub(crate) struct Answer<'a> {
    pub(crate) type_id: u32,
    pub(crate) status: StatusCode,
    /// After the type id.
    pub(crate) body: &'a [u8],
    /// After the header.
    pub(crate) rest: Decoder<'a>,
}

impl<'a> Answer<'a> {
    pub(crate) fn parse(message: &'a [u8], limits: DecodeLimits) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(message, limits);
        let type_id = ns0(NodeIdRef::decode(&mut decoder)?);
        let body = decoder.rest();
        UtcTime::decode(&mut decoder)?;
        // The request handle, which the request id already identifies.
        u32::decode(&mut decoder)?;
        let status = StatusCode::decode(&mut decoder)?;
        DiagnosticInfo::decode(&mut decoder)?;
        Vec::<UaString>::decode(&mut decoder)?;
        <ExtensionObject as Decode>::decode(&mut decoder)?;
        Ok(Self { type_id, status, body, rest: decoder })
    }

    /// Decodes the whole response, which must have this type.
    pub(crate) fn read<T: taktwerk_schema::service::Response>(
        &self,
        service: &'static str,
    ) -> Result<T, ClientError> {
        if self.type_id != T::BINARY_ENCODING_ID {
            return Err(ClientError::UnexpectedResponse(service));
        }
        Ok(T::decode_from(self.body, self.rest.limits())?)
    }
}
