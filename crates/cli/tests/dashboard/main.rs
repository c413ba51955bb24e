//! The dashboard in a real browser.

#![allow(clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

mod accessibility;
mod devtools;
mod gateway;
#[path = "../browser/headless.rs"]
mod headless;
#[path = "../lines/mod.rs"]
mod lines;
mod pages;
mod shown;
mod trust;
