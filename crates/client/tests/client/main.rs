//! The client core and a scripted server in virtual time.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod hostile;
mod reconnect;
mod restart;
mod session;
mod subscriptions;
mod types;
