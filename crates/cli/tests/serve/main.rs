//! `serve`, the commands of a client, and the commands for its files.

#![allow(clippy::print_stderr, clippy::unwrap_used)] // a test fails by panicking, and says what it skips

mod alarms;
mod backup;
mod configured;
#[cfg(feature = "postgres")]
#[path = "../../../history/src/postgres/database.rs"]
mod database;
mod durable;
mod endless_files;
mod escapes;
mod events;
mod following;
mod history;
mod history_postgres;
mod pki;
mod reconnecting;
mod recording;
mod smoke;
mod watch;
