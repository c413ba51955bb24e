//! PubSub of servers: Variables, Actions, nodes.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

mod actions;
mod model;
mod variables;
