//! A gateway in front of other OPC UA servers.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod alarms;
mod changes;
mod exploring;
mod history;
mod mirror;
mod redundancy;
#[path = "../stand/mod.rs"]
mod stand;
mod types;
mod users;
