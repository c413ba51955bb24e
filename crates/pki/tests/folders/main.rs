//! Certificates, keys and trust lists in folders.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test fails by panicking; a child reports its progress

mod lists;
mod managed;
mod store;
