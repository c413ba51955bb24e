//! Message security of UADP NetworkMessages (Part 14 §7.2.4.4.3) and its keys (Part 14 §8).
//!
//! - [`seal`](fn@seal) and [`verify`], [`decrypt`]: one message;
//! - [`KeyRing`]: past, current and future keys of a SecurityGroup, and nonces for sending;
//! - [`ReplayGuard`]: replay detection; [`ReplayFloor`]: its state, kept across restarts;
//! - [`KeyStore`]: the rings of an engine, and when it needs new keys (the pull client);
//! - [`KeyService`]: the server side, which creates the keys (SKS).
//!
//! A key is used until its lifetime ends, then the next one. If there is none, the group is in error. A missing key
//! never leads to sending in clear. Keys that the key service has invalidated are neither used nor accepted once that
//! is known.

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
