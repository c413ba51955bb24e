//! Sources of a gateway: field devices, brokers, files, programs, web servers; and tags.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

mod apply;
#[path = "../broker/mod.rs"]
mod broker;
#[path = "../device/mod.rs"]
mod device;
mod files;
#[path = "../foreign/mod.rs"]
mod foreign;
mod http;
mod line;
#[path = "../missing/mod.rs"]
mod missing;
mod modbus;
mod mqtt;
mod programs;
mod sparkplug;
#[path = "../stand/mod.rs"]
mod stand;
mod tags;
