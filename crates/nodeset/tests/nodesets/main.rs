//! NodeSet files: published, malformed, and that of namespace 0.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod event_types;
mod files;
mod malformed;
mod namespace_zero;
mod published;
