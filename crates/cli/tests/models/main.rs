//! Simulations, models, plants and reports: commands that measure nothing.

#![allow(clippy::print_stderr, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

#[path = "../browser/mod.rs"]
mod browser;
mod report;
mod sim;
mod sizing;
mod tuned;
