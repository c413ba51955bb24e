//! Stores of history (Part 11) behind the server's [`HistoryStore`](taktwerk_server::history::HistoryStore).
//!
//! - [`chunk`]: how values are compressed;
//! - [`sqlite`]: a file on this machine.

#![forbid(unsafe_code)]

pub mod chunk;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{Retention, SqliteStore};
