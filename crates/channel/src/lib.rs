//! Secure channels over a byte stream, both roles, without I/O: the OPC UA connection protocol (Part 6 §7.1) and
//! secure conversation (Part 6 §6.7).
//!
//! A [`Channel`] belongs to one connection. Its driver owns the buffers:
//!
//! - Received: pass the bytes to [`Channel::receive`]. It processes the first chunk of the buffer, decrypts it in place
//!   and returns an event. A message of one chunk is returned as a range of the same buffer ([`Body`]).
//! - Sent: call [`Channel::begin`], encode the message into the connection's send buffer, then call
//!   [`Channel::finish`]. It fills in the headers, splits the message into chunks if necessary, and signs and encrypts
//!   in place.
//! - Slow cryptography: run the job in [`Event::Effect`] and pass its result to [`Channel::complete`].
//! - Time is an argument. [`Channel::poll_timeout`] returns when to call [`Channel::handle_timeout`].
//!
//! After an error the channel is closed, except where [`LimitHit`] says otherwise. Any message for the peer has then
//! been appended to the send buffer.
//!
//! Public modules: [`config`] (limits and settings), [`error`] (failures and their mapping to the wire), [`ephemeral`]
//! (keys for user secrets, in request and response headers). Private modules:
//!
//! - messages: `header`, `hello`, `open`, `event`
//! - rules: `sequence`, `token`, `assembly`, `pending`
//! - state machine: `channel`, `handshake`, `receive`, `send`
//!
//! Not part of this crate: sessions, services, sockets, clocks.

#![forbid(unsafe_code)]

// The shared test helpers refer to the crate by its name.
#[cfg(test)]
extern crate self as taktwerk_channel;

mod assembly;
mod channel;
#[cfg(test)]
#[path = "../tests/channel/common/mod.rs"]
mod common;
pub mod config;
pub mod ephemeral;
pub mod error;
mod event;
mod handshake;
mod header;
mod hello;
mod open;
mod pending;
mod receive;
#[cfg(test)]
mod rules;
mod send;
mod sequence;
mod token;

pub use channel::Channel;
pub use config::{ChannelConfig, ChannelLimits, OpenParams};
pub use error::{ApiMisuse, ChannelError, LimitHit, PeerFault};
pub use event::{Body, Closed, Event, Received};
pub use send::MessageStart;
