//! Sockets for what honest clients never do.
//!
//! - [`Raw`]: plain bytes. Handshake messages are built by hand;
//! - [`Wire`]: a session on a blocking socket, for services beyond their limits.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use taktwerk_channel::{Body, Channel, ChannelConfig, Event, OpenParams};
use taktwerk_crypto::{NullProvider, Provider};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::service::{Request, Response};
use taktwerk_schema::{
    ActivateSessionRequest, CreateSessionRequest, RequestHeader, ServiceFault, UserNameIdentityToken,
};
use taktwerk_types::{Decode, DecodeLimits, Decoder, Encode, ExtensionObject, NodeId, StatusCode, Structure};

/// Timeout for anything that a peer does.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("socket: {0}")]
    Io(#[from] io::Error),
    #[error("the server closed the connection ({0})")]
    Closed(StatusCode),
    #[error("the server answered {0}")]
    Fault(StatusCode),
    #[error("the server sent invalid data: {0}")]
    Protocol(String),
}

impl WireError {
    /// The StatusCode, if the server sent one.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Closed(status) | Self::Fault(status) => Some(*status),
            Self::Io(_) | Self::Protocol(_) => None,
        }
    }
}

/// Connects from a given address. A small receive buffer limits what the kernel buffers for a client that does not
/// read.
pub(crate) fn dial(
    to: SocketAddr,
    from: Option<IpAddr>,
    receive_buffer: Option<usize>,
) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    if let Some(bytes) = receive_buffer {
        sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
    }
    if let Some(from) = from {
        bind(&fd, &SocketAddr::new(from, 0))?;
    }
    connect(&fd, &to)?;
    let stream = TcpStream::from(fd);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A Hello.
pub(crate) fn hello() -> Vec<u8> {
    let mut message = b"HELF\0\0\0\0".to_vec();
    for field in [0u32, 65_536, 65_536, 0, 0] {
        field.encode(&mut message);
    }
    taktwerk_types::UaString::from("opc.tcp://localhost:4840").encode(&mut message);
    sized(message)
}

/// An OpenSecureChannel request with a policy, a certificate and an unencrypted body.
pub(crate) fn open(
    policy: &str,
    certificate: Option<&[u8]>,
    thumbprint: Option<&[u8]>,
    body: &[u8],
) -> Vec<u8> {
    let mut message = b"OPNF\0\0\0\0\0\0\0\0".to_vec();
    taktwerk_types::codec::encode_bytes(Some(policy.as_bytes()), &mut message);
    taktwerk_types::codec::encode_bytes(certificate, &mut message);
    taktwerk_types::codec::encode_bytes(thumbprint, &mut message);
    message.extend_from_slice(body);
    sized(message)
}

/// The header of a message chunk of `size` bytes on a channel: 24 bytes.
pub(crate) fn chunk_head(
    flag: u8,
    size: u32,
    channel: u32,
    token: u32,
    sequence: u32,
    request: u32,
) -> Vec<u8> {
    let mut head = b"MSG".to_vec();
    head.push(flag);
    for field in [size, channel, token, sequence, request] {
        field.encode(&mut head);
    }
    head
}

/// Writes a message's length into its header.
fn sized(mut message: Vec<u8>) -> Vec<u8> {
    let len = u32::try_from(message.len()).unwrap_or(u32::MAX).to_le_bytes();
    if let Some(place) = message.get_mut(4..8) {
        place.copy_from_slice(&len);
    }
    message
}

/// A non-blocking socket.
#[derive(Debug)]
pub(crate) struct Raw {
    stream: TcpStream,
    /// The received bytes that are kept.
    pub(crate) heard: Vec<u8>,
    pub(crate) is_closed: bool,
}

impl Raw {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, heard: Vec::new(), is_closed: false })
    }

    /// Sends what the kernel accepts, and returns the number of bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> usize {
        match self.stream.write(bytes) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => {
                self.is_closed = true;
                0
            }
        }
    }

    /// Reads what has arrived.
    pub(crate) fn listen(&mut self) {
        let mut buffer = [0u8; 4096];
        while !self.is_closed {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_closed = true,
                Ok(count) => {
                    let room = 8192usize.saturating_sub(self.heard.len());
                    self.heard.extend_from_slice(buffer.get(..count.min(room)).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_closed = true,
            }
        }
    }

    /// The status of the Error message at the end of the received bytes.
    pub(crate) fn error(&self) -> Option<StatusCode> {
        let at = self.heard.windows(4).rposition(|window| window == b"ERRF")?;
        let status = self.heard.get(at + 8..)?.first_chunk::<4>()?;
        Some(StatusCode(u32::from_le_bytes(*status)))
    }
}

/// A channel, possibly with a session, on a blocking socket.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    channel: Channel,
    provider: Arc<dyn Provider>,
    round_trip: Duration,
    inbox: Vec<u8>,
    out: Vec<u8>,
    token: NodeId,
    handle: u32,
    /// Number of bytes received so far.
    pub(crate) received: u64,
}

impl Wire {
    /// Opens a channel without security.
    pub(crate) fn open(to: SocketAddr, from: Option<IpAddr>) -> Result<Self, WireError> {
        Self::open_with(dial(to, from, None)?)
    }

    pub(crate) fn open_with(stream: TcpStream) -> Result<Self, WireError> {
        let params = OpenParams::insecure("opc.tcp://localhost:4840");
        Self::open_as(stream, Arc::new(NullProvider), params, Duration::ZERO)
    }

    /// Opens a channel over a link with a round-trip time of `round_trip`: each request that depends on a response is
    /// delayed by it.
    pub(crate) fn open_as(
        stream: TcpStream,
        provider: Arc<dyn Provider>,
        params: OpenParams,
        round_trip: Duration,
    ) -> Result<Self, WireError> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut out = Vec::new();
        let config = Arc::new(ChannelConfig { provider: Arc::clone(&provider), ..ChannelConfig::default() });
        let channel = Channel::client(config, params, monotonic(), &mut out)
            .map_err(|error| WireError::Protocol(error.to_string()))?;
        let (inbox, token) = (Vec::new(), NodeId::NULL);
        let mut wire =
            Self { stream, channel, provider, round_trip, inbox, out, token, handle: 0, received: 0 };
        while !wire.channel.is_open() {
            wire.flush()?;
            wire.step()?;
        }
        wire.flush()?;
        Ok(wire)
    }

    /// Opens a channel and activates an anonymous session.
    pub(crate) fn session(to: SocketAddr, from: Option<IpAddr>) -> Result<Self, WireError> {
        let mut wire = Self::open(to, from)?;
        wire.create_session()?;
        wire.activate(ExtensionObject::NULL)?;
        Ok(wire)
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Sets the authentication token of later requests.
    pub(crate) fn set_token(&mut self, token: NodeId) {
        self.token = token;
    }

    pub(crate) fn channel_id(&self) -> u32 {
        self.channel.id()
    }

    /// The socket, for operations outside the protocol.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// A second handle of the same socket. The socket becomes non-blocking.
    pub(crate) fn raw(&self) -> Result<Raw, WireError> {
        Ok(Raw::new(self.stream.try_clone()?)?)
    }

    pub(crate) fn create_session(&mut self) -> Result<(), WireError> {
        let mut request = CreateSessionRequest {
            endpoint_url: "opc.tcp://localhost:4840".into(),
            requested_session_timeout: 60_000.0,
            session_name: "flood".into(),
            ..CreateSessionRequest::default()
        };
        self.token = self.call(&mut request)?.authentication_token;
        Ok(())
    }

    pub(crate) fn activate(&mut self, user_identity_token: ExtensionObject) -> Result<(), WireError> {
        let mut request = ActivateSessionRequest { user_identity_token, ..ActivateSessionRequest::default() };
        self.call(&mut request).map(drop)
    }

    /// Activates the session with a name and an unencrypted password.
    pub(crate) fn login(&mut self, name: &str, password: &str) -> Result<(), WireError> {
        let token = UserNameIdentityToken {
            policy_id: "username".into(),
            user_name: name.into(),
            password: password.as_bytes().into(),
            ..UserNameIdentityToken::default()
        };
        self.activate(ExtensionObject::new(&token))
    }

    fn flush(&mut self) -> Result<(), WireError> {
        // A Hello arrives together with the last packet of the TCP handshake, so it is not delayed.
        if self.received > 0 && !self.out.is_empty() {
            std::thread::sleep(self.round_trip);
        }
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Takes one event from the channel, and reads while there is none.
    fn step(&mut self) -> Result<Option<(u32, Vec<u8>)>, WireError> {
        loop {
            let received = self
                .channel
                .receive(&mut self.inbox, monotonic(), &mut self.out)
                .map_err(|error| WireError::Protocol(error.to_string()))?;
            let message = match received.event {
                Event::NeedMore { .. } => {
                    let mut buffer = [0u8; 65_536];
                    let count = match self.stream.read(&mut buffer) {
                        Ok(0) => return Err(WireError::Closed(StatusCode::BAD_CONNECTION_CLOSED)),
                        Ok(count) => count,
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        Err(error) => return Err(error.into()),
                    };
                    self.received += count as u64;
                    self.inbox.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    continue;
                }
                Event::Closed(closed) => {
                    let status = match closed {
                        taktwerk_channel::Closed::Error { status, .. } => status,
                        taktwerk_channel::Closed::Close => StatusCode::BAD_SECURE_CHANNEL_CLOSED,
                    };
                    return Err(WireError::Closed(status));
                }
                Event::Message { request_id, body } => {
                    let bytes = match &body {
                        Body::Assembled(bytes) => bytes.clone(),
                        in_buffer => in_buffer.bytes(&self.inbox).to_vec(),
                    };
                    Some((request_id, bytes))
                }
                Event::Aborted { status, .. } => return Err(WireError::Fault(status)),
                Event::Effect(job) => {
                    let result = job.run(&*self.provider);
                    self.channel
                        .complete(result, monotonic(), &mut self.out)
                        .map_err(|error| WireError::Protocol(error.to_string()))?;
                    None
                }
                _ => None,
            };
            self.inbox.drain(..received.consumed);
            return Ok(message);
        }
    }

    fn header(&mut self) -> RequestHeader {
        self.handle += 1;
        RequestHeader {
            authentication_token: self.token.clone(),
            request_handle: self.handle,
            timeout_hint: 20_000,
            ..RequestHeader::default()
        }
    }

    /// Sends a request without waiting for the response. Returns the request id.
    pub(crate) fn send<R: Request>(&mut self, request: &mut R) -> Result<u32, WireError> {
        let id = self.write(request)?;
        self.flush()?;
        Ok(id)
    }

    /// The bytes of a request, for sending elsewhere.
    pub(crate) fn written<R: Request>(&mut self, request: &mut R) -> Result<Vec<u8>, WireError> {
        self.write(request)?;
        Ok(core::mem::take(&mut self.out))
    }

    fn write<R: Request>(&mut self, request: &mut R) -> Result<u32, WireError> {
        *request.header_mut() = self.header();
        let start = self.channel.begin(&mut self.out);
        NodeId::numeric(0, R::BINARY_ENCODING_ID).encode(&mut self.out);
        request.encode(&mut self.out);
        let id = self.channel.next_request_id();
        self.channel
            .finish(start, id, &mut self.out)
            .map_err(|error| WireError::Protocol(error.to_string()))?;
        Ok(id)
    }

    /// The next response: request id and body.
    pub(crate) fn next(&mut self) -> Result<(u32, Vec<u8>), WireError> {
        loop {
            if let Some(message) = self.step()? {
                return Ok(message);
            }
        }
    }

    /// Sends a request and returns its response. Other responses before it are dropped.
    pub(crate) fn call<R: Request>(&mut self, request: &mut R) -> Result<R::Response, WireError> {
        let id = self.send(request)?;
        loop {
            let (answered, body) = self.next()?;
            if answered == id {
                return decode(&body);
            }
        }
    }
}

/// Decodes a response.
pub(crate) fn decode<T: Response>(body: &[u8]) -> Result<T, WireError> {
    let wrong = |error: taktwerk_types::DecodeError| WireError::Protocol(error.to_string());
    let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
    let id = NodeId::decode(&mut decoder).map_err(wrong)?;
    if id == NodeId::numeric(0, ServiceFault::BINARY_ENCODING_ID) {
        let fault = ServiceFault::decode(&mut decoder).map_err(wrong)?;
        return Err(WireError::Fault(fault.response_header.service_result));
    }
    let response = T::decode(&mut decoder).map_err(wrong)?;
    match response.header().service_result {
        StatusCode::GOOD => Ok(response),
        status => Err(WireError::Fault(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_their_length() {
        for message in [hello(), open("urn:policy", Some(&[1; 10]), None, &[0; 40])] {
            let size = u32::from_le_bytes(message[4..8].try_into().unwrap());
            assert_eq!(size as usize, message.len());
        }
        assert_eq!(chunk_head(b'C', 100, 1, 2, 3, 4).len(), 24);
    }
}
