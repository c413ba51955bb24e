//! The sans-IO server: address space, sessions, services, subscriptions (design §3 to §6).
//!
//! A server is one [`ServerShared`] (configuration, address space, registries) and a [`Shard`] per core. A shard is a
//! state machine: bytes and time go in, bytes, deadlines and effects come out. It does no I/O, reads no clock, starts
//! no thread, and can be run by sockets, by a simulator and by a fuzzer alike.
//!
//! - [`limits`], [`account`], [`admission`]: what may be kept, what is kept, and who may come; `eviction`: who has to go
//!   when the server is full;
//! - [`shard`]: the state machine and its contract; [`shared`], [`config`], [`error`], [`now`]: what it
//!   works with;
//! - `service`: the services, one file each; `session`: what a client keeps between requests;
//! - [`authorization`]: roles and permissions; [`audit`]: who did what;
//! - [`identity`]: who uses a session, and who decides on it;
//! - `subscription`: the subscription engine; [`space`]: nodes and values; [`callback`]: the application's code;
//! - [`diagnostics`]: what the server shows of itself in namespace 0.

#![forbid(unsafe_code)]

pub mod account;
pub mod admission;
pub mod audit;
pub mod authorization;
pub mod callback;
pub mod config;
pub mod diagnostics;
mod effect;
pub mod error;
mod eviction;
pub mod identity;
mod ids;
mod job_kind;
pub mod limits;
mod node_ix;
pub mod now;
mod origin;
mod service;
mod session;
pub mod shard;
pub mod shared;
mod slab;
pub mod source;
pub mod space;
mod subscription;
#[cfg(test)]
mod tests;
pub mod work;

pub use account::{Account, Category};
pub use admission::Refusal;
pub use authorization::Authorization;
pub use config::{BuildInfo, ConfigProblem, EndpointConfig, ServerConfig, UserTokenConfig, UserTokenKind};
pub use error::Fault;
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
