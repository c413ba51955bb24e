//! The sans-IO server: address space, sessions, services, subscriptions (design §3 to §6).
//!
//! A server consists of one [`ServerShared`] (configuration, address space, registries) and one [`Shard`] per core. A
//! shard is a state machine: bytes and time go in; bytes, deadlines and effects come out. It does no I/O, reads no
//! clock and starts no thread. So sockets, a simulator or a fuzzer can drive it.
//!
//! Modules use only those above them in this list:
//! - basic types and interfaces for applications: [`error`], [`now`], [`work`], [`callback`], [`identity`], [`source`],
//!   `ids`, `slab`, `spread`, `node_ix`, `origin`, `job_kind`;
//! - limits: [`account`] (memory accounting), [`limits`], [`admission`] (connections and handshakes), `eviction`;
//! - [`authorization`]: roles and permissions; [`audit`]: audit records; [`config`], `discovery`: the server's
//!   configuration and descriptions; [`diagnostics`]: counters;
//! - `content_filter`: the filters of Part 4 §7.7; [`event`]: events, their filters and queues;
//! - [`history`]: the interface of history stores, aggregates, and the jobs of HistoryRead and HistoryUpdate;
//! - `query`: nodes by their types and relations;
//! - [`space`]: nodes and values; [`recorder`]: recording of Variables; `subscription`: the subscription engine;
//!   `session`: the state of a session;
//! - [`durable`]: persistent data of durable subscriptions;
//! - `effect`: slow work; `request`, `reply`: headers; `connection`: channels and send buffers; [`shared`]: data shared
//!   by all shards;
//! - `service`: the services, one file each, with waiting and postponed requests; `setup`: creates a server from its
//!   parts;
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
mod spread;
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
