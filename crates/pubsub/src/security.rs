//! Message security of UADP NetworkMessages (Part 14 §7.2.4.4.3) and its keys (Part 14 §8).
//!
//! - [`seal`](fn@seal) and [`verify`], [`decrypt`]: one message;
//! - [`KeyRing`]: past, current and future keys of a SecurityGroup, and the nonces of what we send;
//! - [`ReplayGuard`]: what was received before; [`ReplayFloor`]: the same, for after a restart;
//! - [`KeyStore`]: the rings an engine uses, and when it wants new keys (the pull client);
//! - [`KeyService`]: the other side, which makes the keys (SKS).
//!
//! A key is used until its time is up, then the next one; when there is none, the group is in error. Nothing is ever
//! sent in clear because a key is missing. Keys that the key service has invalidated are not used and not accepted any more
//! as soon as that is known.

mod floor;
mod message;
mod replay;
mod ring;
mod service;
mod store;

pub use floor::{ReplayFloor, ReplayMark};
pub use message::{SecurityError, decrypt, seal, verify};
pub use replay::{Replay, ReplayGuard};
pub(crate) use ring::nonce_number;
pub use ring::{KeyRing, KeyUpdate, Nonce, SecurityKeys};
pub(crate) use service::LIFETIME_MIN;
pub use service::{KeyService, SecurityGroupKeys};
pub use store::{KeyRequest, KeyStore, KeyStoreOptions};
