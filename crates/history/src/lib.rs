//! Stores of history (Part 11) behind the server's [`HistoryStore`](taktwerk_server::history::HistoryStore), and of durable
//! subscriptions (Part 4 §6.8) behind its [`DurableStore`](taktwerk_server::durable::DurableStore).
//!
//! - [`chunk`]: compression of values;
//! - [`sqlite`]: history in a file on this machine; the default;
//! - `subscriptions`: logs of durable subscriptions in a file;
//! - `postgres` (feature `postgres`): history of many servers in one database.

#![forbid(unsafe_code)]

pub mod chunk;

#[cfg(test)]
mod annotation_tests;
#[cfg(test)]
mod event_tests;
#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod lock;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
mod snapshot;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "sqlite")]
mod subscriptions;

#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use snapshot::snapshot;
#[cfg(feature = "sqlite")]
pub use sqlite::{Retention, SqliteStore};
#[cfg(feature = "sqlite")]
pub use subscriptions::SubscriptionStore;

/// The wall clock.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn now() -> taktwerk_types::UtcTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    taktwerk_types::UtcTime::from_unix(since.unwrap_or_default())
}

/// Where a gap is marked that a crash left: after the last value, and also now if that value is in the future. Nobody would
/// find only the first mark if the clock of a device was wrong, nor only the second one if the clock of the server is.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn gap(newest: i64, now: i64) -> impl Iterator<Item = taktwerk_types::UtcTime> {
    let is_in_future = newest > now;
    let times = [Some(newest), is_in_future.then_some(now)].into_iter().flatten();
    times.map(|ticks| taktwerk_types::UtcTime::from_ticks(ticks.saturating_add(1)))
}

/// Compiles what the page about history shows; it shows both stores.
#[cfg(all(doctest, feature = "sqlite", feature = "postgres"))]
#[doc = include_str!("../../../docs/history.md")]
struct HistoryPage;
