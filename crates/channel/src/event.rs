//! Events of a channel, for the layers above it.

use taktwerk_crypto::Job;
use taktwerk_types::StatusCode;

/// What [`crate::Channel::receive`] found at the start of the buffer.
#[derive(Debug)]
#[must_use]
pub struct Received {
    /// Bytes of the buffer that are consumed. A [`Body::InBuffer`] lies within them.
    pub consumed: usize,
    /// What arrived.
    pub event: Event,
}

/// An event of a channel.
#[derive(Debug)]
pub enum Event {
    /// The chunk is not complete: call again when the buffer holds at least this many bytes.
    NeedMore {
        /// Bytes from the start of the buffer.
        at_least: usize,
    },
    /// A message of the channel itself, or a part of a longer message. Any answer has been appended.
    Handled,
    /// A slow job to run anywhere. Pass its result to [`crate::Channel::complete`]. At most one is outstanding.
    Effect(Box<Job>),
    /// A server that opened the connection introduces itself. Call [`crate::Channel::accept_reverse`] or
    /// [`crate::Channel::reject`]. The texts are claims of the peer.
    ReverseHello {
        /// The server's ApplicationUri.
        server_uri: Box<str>,
        /// The endpoint to open.
        endpoint_url: Box<str>,
    },
    /// The channel is open: messages can be sent.
    Opened,
    /// The security token has been renewed.
    Renewed,
    /// A complete message has arrived.
    Message {
        /// Links the response to its request.
        request_id: u32,
        /// Type id and body.
        body: Body,
    },
    /// The sender aborted a message (Part 6 §6.7.3), or a client received one that exceeds its limits.
    Aborted {
        /// The request that will get no other response.
        request_id: u32,
        /// Why.
        status: StatusCode,
        /// The sender's text, possibly empty.
        reason: Box<str>,
    },
    /// The peer ended the channel.
    Closed(Closed),
}

/// How the peer ended a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// CloseSecureChannel.
    Close,
    /// An Error message (Part 6 §7.1.2.5).
    Error {
        /// The error.
        status: StatusCode,
        /// The peer's text, possibly empty.
        reason: Box<str>,
    },
}

/// The body of a received message, starting with its type id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Message of one chunk: offsets into the buffer passed to [`crate::Channel::receive`].
    InBuffer {
        /// Offset of the first byte.
        start: usize,
        /// Offset after the last byte.
        end: usize,
    },
    /// Message of several chunks.
    Assembled(Vec<u8>),
}

impl Body {
    /// The bytes. `buf` is the buffer passed to [`crate::Channel::receive`].
    #[must_use]
    #[inline]
    pub fn bytes<'a>(&'a self, buf: &'a [u8]) -> &'a [u8] {
        match self {
            Self::InBuffer { start, end } => buf.get(*start..*end).unwrap_or_default(),
            Self::Assembled(bytes) => bytes,
        }
    }
}
