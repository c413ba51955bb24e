//! Stores of history (Part 11) behind the server's [`HistoryStore`](taktwerk_server::history::HistoryStore).
//!
//! - [`chunk`]: how values are compressed;
//! - [`sqlite`]: a file on this machine; the default;
//! - `postgres` (feature `postgres`): one database for many servers.

#![forbid(unsafe_code)]

pub mod chunk;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
mod snapshot;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use snapshot::snapshot;
#[cfg(feature = "sqlite")]
pub use sqlite::{Retention, SqliteStore};
