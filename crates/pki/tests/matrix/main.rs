//! The certificate matrix: every step of Part 4 §6.1.3 for servers, clients and users, with the exact status that is logged and
//! the exact status that the peer receives.
//!
//! Names follow the conformance test tool where it has them: `app`, `ca1` (a root) and `ca2` (below it). T means trusted, I known
//! as issuer, U unknown; C means with its revocation list; TE expired, TV not yet valid, TR revoked.

#![allow(clippy::unwrap_used)] // tests

mod authorities;
mod constraints;
mod fields;
mod forge;
mod hostile;
mod revocation;
mod table;
