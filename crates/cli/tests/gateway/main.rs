//! The program as a gateway: configurations, child processes, metrics.

#![cfg(feature = "gateway")]
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

mod adapters;
mod configurations;
mod otlp;
mod profile;
mod references;
#[path = "../workspace/mod.rs"]
mod workspace;
