//! `pubsub` and `serve --pubsub`.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

mod brokers;
mod exchange;
mod refusals;
