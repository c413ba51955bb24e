//! An OPC UA client without I/O: connection, session, requests, subscriptions and reconnection (Part 4).
//!
//! [`Client`] is one state machine. Its driver
//!
//! - does what [`Client::poll_effect`] asks for ([`Effect`]: connect, disconnect, run cryptography) and reports back
//!   ([`Client::handle_connected`], [`Client::handle_closed`], [`Client::complete`]);
//! - hands over received bytes ([`Client::received`]) and sends from [`Client::transmit`];
//! - calls [`Client::handle_timeout`] when [`Client::poll_timeout`] says so.
//!
//! The application gives commands ([`Client::connect`], [`Client::request`], [`Client::operate`],
//! [`Client::create_subscription`], …) and is told everything through a [`Sink`]; responses and notifications are views
//! on the receive buffer, [`EventQueue`] keeps copies for who wants them later. After every call the effects are
//! to be drained and the transmit buffer to be sent. Time never goes backwards.
//!
//! The map, inside out: [`config`], [`error`], [`event`], [`effect`] (the interface); `link` (channel, outstanding
//! requests), `phase`, `connect` (phases, back-off, transfer), `endpoint` (choosing one), `session`,
//! `activate` (create, activate),
//! `identity` (who the user is); `batch` and `split` (requests over the server's limits), [`limits`]; [`history`] (pages of history); [`subscription`] and `sync` (what is
//! wanted and what is there), `publisher`, `publish` and [`notification`] (messages in order); [`types`] (structures that only the
//! server knows); [`work`] (counters).
//!
//! Deliberately absent: sockets, clocks, threads, async. Requests interrupted by a lost connection are answered with
//! an error and never sent again: only the application knows whether they may be.

#![forbid(unsafe_code)]

mod activate;
mod batch;
mod changes;
mod client;
pub mod condition;
pub mod config;
mod connect;
pub mod effect;
mod endpoint;
pub mod error;
pub mod event;
pub mod event_query;
mod filter_namespaces;
pub mod history;
mod identity;
mod learned;
pub mod limits;
mod link;
mod namespaces;
mod new_node;
pub mod notification;
mod outstanding;
mod phase;
mod publish;
mod publisher;
mod session;
mod split;
pub mod subscription;
mod sync;
pub mod types;
pub mod work;

pub use batch::Splittable;
pub use client::Client;
pub use config::{ClientConfig, EndpointUrl, Identity, ReconnectPolicy, Secret, Security, Target};
pub use effect::{ConnectionId, Effect, JobToken};
pub use error::{ClientError, Misuse, SecurityProblem};
pub use event::{
    Delivery, Event, EventQueue, Note, OwnedReply, Reply, RequestHandle, Restored, SessionInfo, Sink,
    SubscriptionEvent,
};
pub use event_query::{EventQuery, EventQueryError};
pub use limits::{OperationKind, OperationLimits};
pub use namespaces::Namespaces;
pub use new_node::NewNode;
pub use notification::{DataChanges, EventNotifications};
pub use subscription::{ItemResult, SubscriptionHandle, SubscriptionParams, WantedItem};
pub use types::{TypeQuestion, TypeReader};
pub use work::Work;
