//! Every generated structure, with its type and with its description.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod dynamic;
mod filler;
mod generated;
