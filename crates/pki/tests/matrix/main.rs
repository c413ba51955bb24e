//! The certificate matrix: every step of Part 4 §6.1.3 for servers, clients and users, with the exact status that we
//! log and the exact status that a peer is told. Names as the conformance test tool has them where it has them:
//! `app`, `ca1` (a root) and `ca2` (below it) are T trusted, I known as issuer or U unknown; C means with its
//! revocation list; TE expired, TV not yet valid, TR revoked.

#![allow(clippy::unwrap_used)] // tests

mod authorities;
mod constraints;
mod fields;
mod forge;
mod hostile;
mod revocation;
mod table;
