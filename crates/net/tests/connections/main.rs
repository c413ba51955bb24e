//! Client drivers and the server driver over loopback.

#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "../common/mod.rs"]
mod common;
mod fleet;
mod moves;
mod sessions;
mod transfer;
