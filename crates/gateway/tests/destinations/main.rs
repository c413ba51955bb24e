//! Destinations of a gateway: every kind in the default build, with real servers and brokers where they are installed.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

mod apply;
#[path = "../authority/mod.rs"]
mod authority;
#[path = "../broker/mod.rs"]
mod broker;
#[path = "../counting/mod.rs"]
mod counting;
#[cfg(feature = "postgres")]
#[path = "../database/mod.rs"]
mod database;
#[path = "../device/mod.rs"]
mod device;
#[path = "../foreign/mod.rs"]
mod foreign;
mod influx;
#[path = "../missing/mod.rs"]
mod missing;
mod mqtt;
mod opcua;
mod postgres;
mod pubsub;
mod sparkplug;
#[path = "../stand/mod.rs"]
mod stand;
mod tls;
