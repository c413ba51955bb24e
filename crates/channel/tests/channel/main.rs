//! Two channels that are joined in memory: conversations, hostile peers, and real security.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod hostile;
mod pair;
mod real;
mod steady_state;
