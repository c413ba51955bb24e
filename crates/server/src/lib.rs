//! The sans-IO server: address space, sessions, services, subscriptions (design §3 to §6).
//!
//! A server is one [`ServerShared`] (configuration, address space, registries) and a [`Shard`] per core. A shard is a
//! state machine: bytes and time go in, bytes, deadlines and effects come out. It does no I/O, reads no clock, starts
//! no thread, and can be run by sockets, by a simulator and by a fuzzer alike.
//!
//! Modules use only those above them in this list:
//! - [`error`], [`now`], [`work`], [`callback`], [`identity`], [`source`], `ids`, `slab`, `node_ix`, `origin`, `job_kind`:
//!   what the others name things by; [`callback`], [`identity`], [`source`]: the application's code;
//! - [`account`], [`limits`], [`admission`], `eviction`: what is kept, what may be kept, who may come, and who has to go
//!   when the server is full;
//! - [`authorization`]: roles and permissions; [`audit`]: what a record says; [`config`], `discovery`: how a server is
//!   configured and describes itself; [`diagnostics`]: what it counts;
//! - `content_filter`: the filters of Part 4 §7.7; [`event`]: events, their filters and queues;
//! - [`history`]: what stores of history do, aggregates, and the jobs of HistoryRead and HistoryUpdate;
//! - `query`: nodes by their types and relations;
//! - [`space`]: nodes and values; [`recorder`]: takes the writes of Variables that are recorded; `subscription`: the subscription engine; `session`: what a client keeps between requests;
//! - [`durable`]: what is written down of durable subscriptions;
//! - `effect`: slow work; `request`, `reply`: headers; `connection`: channels and send buffers; [`shared`]: what all shards
//!   share;
//! - `service`: the services, one file each, with what waits and what was left; `setup`: a server from its parts;
//! - [`shard`]: the state machine and its contract.

#![forbid(unsafe_code)]

pub mod account;
pub mod admission;
pub mod alarm;
pub mod audit;
pub mod authorization;
pub mod callback;
pub mod config;
mod connection;
mod content_filter;
pub mod diagnostics;
mod discovery;
pub mod durable;
mod effect;
pub mod error;
pub mod event;
mod eviction;
pub mod headroom;
pub mod history;
pub mod identity;
mod ids;
mod job_kind;
pub mod limits;
mod node_ix;
pub mod now;
mod origin;
mod query;
pub mod recorder;
mod reply;
mod request;
mod service;
mod session;
mod setup;
pub mod shard;
pub mod shared;
mod slab;
pub mod source;
pub mod space;
mod subscription;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod work;

pub use account::{Account, Category};
pub use admission::Refusal;
pub use authorization::Authorization;
pub use config::{BuildInfo, ConfigProblem, EndpointConfig, ServerConfig, UserTokenConfig, UserTokenKind};
pub use error::Fault;
pub use event::{Event, EventBus, FieldName, ModelChangeEvents, NewEvent};
pub use identity::{Accepted, Credential, IdentityVerifier, User, Verdict, Verification};
pub use limits::{Limits, Rate, SubscriptionLimits};
pub use now::Now;
pub use shard::{
    Command, ConnectionId, ConnectionState, Effect, Job, JobKind, JobResult, Shard, ShardMessage, Token,
    UserProofKind,
};
pub use shared::ServerShared;
pub use space::AddressSpace;
pub use work::Work;
