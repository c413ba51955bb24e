//! Plants as users describe them: results, traces, captures, campaigns.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod authorities;
mod campaign;
mod capture;
mod events;
mod logins;
mod publishing;
mod scenario;
mod trace;
