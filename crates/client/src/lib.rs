//! An OPC UA client without I/O: connection, session, requests, subscriptions and reconnection (Part 4).
//!
//! [`Client`] is a state machine. Its driver
//!
//! - executes the actions from [`Client::poll_effect`] ([`Effect`]: connect, disconnect, run cryptography) and reports
//!   the results ([`Client::handle_connected`], [`Client::handle_closed`], [`Client::complete`]);
//! - passes received bytes to [`Client::received`] and sends from [`Client::transmit`];
//! - calls [`Client::handle_timeout`] at the time that [`Client::poll_timeout`] returns.
//!
//! The application calls [`Client::connect`], [`Client::request`], [`Client::operate`], [`Client::create_subscription`]
//! and others. The client delivers everything through a [`Sink`]. Responses and notifications are views of the receive
//! buffer; [`EventQueue`] keeps copies for later. After every call, drain the effects and send the transmit buffer. The
//! time passed in must not go backwards.
//!
//! Modules:
//!
//! - [`config`], [`error`], [`event`], [`effect`]: the interface;
//! - `link`: channel and outstanding requests; `phase`, `connect`: phases, back-off, transfer; `endpoint`: choosing an
//!   endpoint;
//! - `session`, `activate`: creating and activating sessions; `identity`: user identity tokens;
//! - `batch`, `split`: requests larger than the server's [`limits`]; [`history`]: reading history in pages;
//! - [`subscription`], `sync`: wanted and existing subscriptions; `publisher`, `publish`, [`notification`]:
//!   notification messages in order;
//! - [`types`]: structures that only the server defines; [`work`]: counters.
//!
//! There are no sockets, clocks, threads or async functions here. Requests interrupted by a lost connection fail with
//! an error and are never sent again: only the application can decide whether to repeat them.

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
pub mod shelving;
mod split;
pub mod subscription;
mod sync;
pub mod types;
pub mod work;

pub use batch::Splittable;
pub use client::Client;
pub use config::{ClientConfig, EndpointUrl, Identity, ReconnectPolicy, Secret, Security, Target};
pub use effect::{ConnectionId, Effect, JobToken};
pub use endpoint::endpoint_rank;
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
