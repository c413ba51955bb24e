//! What happens on a channel, for the layers above it.

use taktwerk_crypto::Job;
use taktwerk_types::StatusCode;

/// What [`crate::Channel::receive`] found at the start of the buffer.
#[derive(Debug)]
#[must_use]
pub struct Received {
    /// How many bytes of the buffer are done with. A [`Body::InBuffer`] lies within them.
    pub consumed: usize,
    /// What came.
    pub event: Event,
}

/// What happened on a channel.
#[derive(Debug)]
pub enum Event {
    /// The chunk is not complete: call again when the buffer holds at least this many bytes.
    NeedMore {
        /// Bytes from the start of the buffer.
        at_least: usize,
    },
    /// A message of the channel's own or a part of a longer message; an answer has been appended if one was due.
    Handled,
    /// Slow work to be run anywhere; its result goes to [`crate::Channel::complete`]. There is at most one at a time.
    Effect(Box<Job>),
    /// A server that opened the connection introduces itself: go on with [`crate::Channel::accept_reverse`], or
    /// [`crate::Channel::reject`] it. The texts are the peer's claims.
    ReverseHello {
        /// The server's ApplicationUri.
        server_uri: Box<str>,
        /// The endpoint to be opened.
        endpoint_url: Box<str>,
    },
    /// The channel is open: messages can be sent.
    Opened,
    /// The security token has been renewed.
    Renewed,
    /// A message has arrived whole.
    Message {
        /// Ties the response to the request.
        request_id: u32,
        /// Type id and body.
        body: Body,
    },
    /// The sender gave a message up (Part 6 §6.7.3), or a client received one that passes its limits.
    Aborted {
        /// The request that will get no other answer.
        request_id: u32,
        /// Why.
        status: StatusCode,
        /// The sender's words, possibly none.
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
        /// The peer's words, possibly none.
        reason: Box<str>,
    },
}

/// The body of a received message, starting with its type id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Message of one chunk: offsets into the buffer that was given to [`crate::Channel::receive`].
    InBuffer {
        /// Of the first byte.
        start: usize,
        /// Behind the last byte.
        end: usize,
    },
    /// Message of several chunks.
    Assembled(Vec<u8>),
}

impl Body {
    /// The bytes; `buf` is what was given to [`crate::Channel::receive`].
    #[must_use]
    #[inline]
    pub fn bytes<'a>(&'a self, buf: &'a [u8]) -> &'a [u8] {
        match self {
            Self::InBuffer { start, end } => buf.get(*start..*end).unwrap_or_default(),
            Self::Assembled(bytes) => bytes,
        }
    }
}
