//! Loads on servers and brokers, some of which stop responding.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod interrupted;
mod tune_probe;
mod unanswered;
