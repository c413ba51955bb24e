//! A running server whose configuration changes.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod alarm_table;
mod applied;
mod hangs;
mod installation;
mod nodeset_load;
mod rules;
