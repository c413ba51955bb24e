//! Secure channels over a byte stream, both roles, without I/O: the OPC UA connection protocol (Part 6 §7.1) and
//! secure conversation (Part 6 §6.7).
//!
//! A [`Channel`] belongs to one connection. Its driver owns the buffers:
//!
//! - received bytes go to [`Channel::receive`], which looks at the first chunk of the buffer, decrypts it in place and
//!   says what came; a message of one chunk is a range of that very buffer ([`Body`]);
//! - outgoing messages are encoded by the caller straight behind [`Channel::begin`] into the connection's send buffer;
//!   [`Channel::finish`] patches the head, cuts the message into chunks in place if it must, signs and encrypts;
//! - slow cryptography comes out as [`Event::Effect`] and goes back in through [`Channel::complete`];
//! - time goes in as an argument; [`Channel::poll_timeout`] says when [`Channel::handle_timeout`] has something to do.
//!
//! After an error the channel is closed, except where [`LimitHit`] says otherwise; what the peer is to be told has
//! then been appended to the send buffer. Files: [`config`] (limits and settings), [`error`] (failures by blame and
//! their one mapping to the wire), [`ephemeral`] (keys that travel in headers); inside, `header`, `hello`, `open` (the messages), `event` (what
//! the owner is told), `sequence`, `token`, `assembly`, `pending` (the rules), `channel`, `handshake`, `receive`, `send` (the state machine).
//!
//! Deliberately absent: sessions, services, sockets, clocks.

#![forbid(unsafe_code)]

// The helpers of the integration tests name the crate as those do.
#[cfg(test)]
extern crate self as taktwerk_channel;

mod assembly;
mod channel;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
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
