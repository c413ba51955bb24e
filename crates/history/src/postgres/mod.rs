//! History in PostgreSQL: one database for many servers.
//!
//! Values are copied in batches. With the extension TimescaleDB the value table is a hypertable, and old values are compressed. A
//! broken connection is reopened with the next batch; until then the recorder queues values.
//!
//! - `connector`: opens connections; `append`: adds values; `edit`: changes and deletes them; `read`: reads them; `annotation`:
//!   annotations; `events`: events; `row`: values as rows; `portion`: reads rows in portions to bound memory.
//!
//! The calls block. Do not make them on a thread of an asynchronous runtime.

mod annotation;
mod append;
mod connector;
#[cfg(test)]
mod database;
mod edit;
mod error;
mod events;
mod portion;
mod read;
mod retention;
mod row;
mod schema;
#[cfg(test)]
mod tests;
mod timescale;

use connector::Connector;
use core::fmt;
use core::time::Duration;
use error::failed;
use postgres::tls::{MakeTlsConnect, TlsConnect};
use postgres::{Client, Socket};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_schema::Annotation;
use taktwerk_server::history::{
    AnnotationKey, EventCursor, HistoryStore, HistoryValue, Modification, ModifiedValue, NodeKey, Order,
    Perform, ReadLimit, Sees, Span, StoreCapabilities, StoreError, StoredEvent,
};
use taktwerk_types::{ByteString, StatusCode, UtcTime, Variant};

pub use error::explained;
/// Address of the database and credentials.
pub use postgres::Config;
/// Connections without TLS.
pub use postgres::NoTls;
/// Hosts of a [`Config`], and whether its connections use TLS.
pub use postgres::config::{Host, SslMode};

/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Most time that the database may take for a client's read.
const READ_MAX: Duration = Duration::from_secs(15);
/// Timeout for an unresponsive database: a host that lost power does not close its connections.
const UNANSWERED: Duration = Duration::from_secs(30);
/// Idle connections that are kept for reading.
const READERS_MAX: usize = 4;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    /// Whether the database compresses old values.
    is_compressing: bool,
    connector: Connector,
    /// The ApplicationUri of the recording server.
    owner: String,
    keep: Duration,
    writer: parking_lot::Mutex<Writer>,
    readers: Mutex<Vec<Client>>,
}

/// The connection that writes, and its state.
#[derive(Default)]
struct Writer {
    client: Option<Client>,
    nodes: BTreeMap<NodeKey, i32>,
    /// Variables that are marked as recorded in the database.
    recorded: BTreeSet<i32>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may contain a password.
        f.debug_struct("PostgresStore").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// The name of this kind of store.
    pub const KIND: &'static str = "postgresql";

    /// What clients can do with a store that keeps values for `keep`.
    #[must_use]
    pub const fn capabilities_of(keep: Duration) -> StoreCapabilities {
        StoreCapabilities { time_max: keep, ..StoreCapabilities::ALL }
    }

    /// Connects to a database, such as `postgresql://taktwerk@localhost/history`, and creates missing tables. `owner` is the
    /// ApplicationUri of the recording server. Values are kept for `keep`; zero means for ever. If the owner's process was not
    /// shut down properly, its histories have Bad_DataLost after their last values.
    ///
    /// # Errors
    /// The URL is invalid, the connection fails, or the user may not create tables.
    pub fn open(url: &str, owner: &str, keep: Duration) -> Result<Self, StoreError> {
        let config: Config = url.parse().map_err(|error| failed(&error))?;
        Self::open_with(move || Ok(config.clone()), NoTls, owner, keep)
    }

    /// Like [`Self::open`], with TLS. `config` is called before each connection, because passwords change while a server runs.
    /// Its TLS mode applies: [`SslMode::Require`] rules out connections without TLS.
    ///
    /// # Errors
    /// The connection fails, or the user may not create tables.
    pub fn open_with<T>(
        config: impl Fn() -> Result<Config, StoreError> + Send + Sync + 'static,
        tls: T,
        owner: &str,
        keep: Duration,
    ) -> Result<Self, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send,
        T::Stream: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let connect = move |tries: &dyn Fn(usize)| {
            let mut config = config()?;
            tries(connector::addresses(&config));
            config.application_name("taktwerk").connect_timeout(CONNECT);
            config.keepalives_idle(UNANSWERED).tcp_user_timeout(UNANSWERED);
            config.connect(tls.clone()).map_err(|error| failed(&error))
        };
        let mut store = Self {
            is_compressing: false,
            connector: Connector::new(CONNECT, connect),
            owner: owner.to_owned(),
            keep,
            writer: parking_lot::Mutex::default(),
            readers: Mutex::default(),
        };
        if let Some(missing) = store.writing(|client, _| schema::missing(client))? {
            return Err(StoreError::mistake(format!("PostgreSQL: {missing}")));
        }
        store.is_compressing = store.writing(|client, writer| {
            let is_compressing = schema::prepare(client)?;
            append::mark_gaps(client, &store.owner)?;
            writer.recorded.clear();
            Ok(is_compressing)
        })?;
        Ok(store)
    }

    /// The owner key of a node's events.
    fn of<'a>(&'a self, node: &'a NodeKey) -> events::Of<'a> {
        events::Of { server: &self.owner, node }
    }

    fn connect(&self) -> Result<Client, StoreError> {
        self.connector.connect()
    }

    /// A connection for reading. A client waits for the answer, so the database ends what takes too long: a table can be
    /// locked by an administrator.
    fn connect_reader(&self) -> Result<Client, StoreError> {
        let mut client = self.connect()?;
        let limits = format!("SET lock_timeout = '5s'; SET statement_timeout = '{}s'", READ_MAX.as_secs());
        client.batch_execute(&limits).map_err(|error| failed(&error))?;
        Ok(client)
    }

    /// Runs `run` with the writing connection, which is opened if necessary.
    fn writing<T>(
        &self,
        run: impl FnOnce(&mut Client, &mut Writer) -> Result<T, postgres::Error>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer.lock();
        let mut client = match writer.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => {
                let mut client = self.connect()?;
                if self.is_compressing {
                    timescale::lift_limit(&mut client);
                }
                client
            }
        };
        let result = run(&mut client, &mut writer).map_err(|error| failed(&error));
        if !client.is_closed() {
            writer.client = Some(client);
        }
        // Those that wait are next: a client may change many parts.
        parking_lot::MutexGuard::unlock_fair(writer);
        result
    }

    /// Runs `run` with a separate connection.
    fn reading<T>(&self, run: impl Fn(&mut Client) -> Result<T, postgres::Error>) -> Result<T, StoreError> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let was_kept = kept.is_some();
        let mut client = match kept {
            Some(client) => client,
            None => self.connect_reader()?,
        };
        let mut result = run(&mut client);
        if was_kept && result.is_err() && client.is_closed() {
            // The connection broke while it was idle.
            client = self.connect_reader()?;
            result = run(&mut client);
        }
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if !client.is_closed() && readers.len() < READERS_MAX {
            readers.push(client);
        }
        result.map_err(|error| failed(&error))
    }
}

impl HistoryStore for PostgresStore {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn capabilities(&self) -> StoreCapabilities {
        Self::capabilities_of(self.keep)
    }

    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        if values.is_empty() {
            return Ok(());
        }
        self.writing(|client, writer| append::append(client, writer, &self.owner, values))
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        if !span.is_empty() {
            out.extend(self.reading(|client| read::values(client, node, span, order, limit))?);
        }
        Ok(())
    }

    fn read_modified(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        skip: usize,
        limit: ReadLimit,
    ) -> Result<Vec<ModifiedValue>, StoreError> {
        self.reading(|client| read::modified(client, node, span, order, skip, limit))
    }

    fn update(
        &self,
        node: &NodeKey,
        perform: Perform,
        values: Vec<HistoryValue>,
        by: &Modification,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let values: Vec<(NodeKey, HistoryValue)> =
            values.into_iter().map(|value| (Arc::clone(node), value)).collect();
        self.writing(|client, writer| {
            let nodes = append::numbers(client, writer, &self.owner, &values)?;
            edit::update(client, &nodes, perform, &values, by)
        })
    }

    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        let mut all = edit::Deletion { left: Some(span), deleted: 0 };
        while all.left.is_some() {
            // In between, the recorder stores values.
            self.writing(|client, _| edit::delete_part(client, node, &mut all, by))?;
        }
        Ok(all.deleted)
    }

    fn delete_at(
        &self,
        node: &NodeKey,
        times: &[UtcTime],
        by: &Modification,
    ) -> Result<Vec<bool>, StoreError> {
        self.writing(|client, _| edit::delete_at(client, node, times, by))
    }

    fn delete_modified(&self, node: &NodeKey, span: Span) -> Result<u64, StoreError> {
        let (mut deleted, mut is_more) = (0, true);
        while is_more {
            let count = self.writing(|client, _| edit::delete_modified(client, node, span))?;
            (deleted, is_more) = (deleted + count, count > 0);
        }
        Ok(deleted)
    }

    fn annotations(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<&AnnotationKey>,
        limit: ReadLimit,
    ) -> Result<Vec<(UtcTime, Annotation)>, StoreError> {
        self.reading(|client| annotation::read(client, node, span, order, after, limit))
    }

    fn annotate(
        &self,
        node: &NodeKey,
        perform: Perform,
        annotations: Vec<(UtcTime, Annotation)>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let nothing = HistoryValue {
            source: UtcTime::NULL,
            server: UtcTime::NULL,
            status: StatusCode::GOOD,
            value: Variant::Empty,
        };
        let key = [(Arc::clone(node), nothing)];
        self.writing(|client, writer| {
            let node =
                append::numbers(client, writer, &self.owner, &key)?.first().copied().unwrap_or_default();
            let mut transaction = client.transaction()?;
            let mut results = Vec::with_capacity(annotations.len());
            for (time, annotation) in &annotations {
                results.push(annotation::change(&mut transaction, node, perform, *time, annotation)?);
            }
            transaction.commit()?;
            Ok(results)
        })
    }

    fn append_events(&self, node: &NodeKey, events: &[StoredEvent]) -> Result<(), StoreError> {
        self.writing(|client, _| events::append(client, self.of(node), events))
    }

    fn read_events(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<EventCursor>,
        limit: ReadLimit,
        out: &mut Vec<(EventCursor, StoredEvent)>,
    ) -> Result<(), StoreError> {
        out.extend(self.reading(|client| events::read(client, self.of(node), span, order, after, limit))?);
        Ok(())
    }

    fn update_events(
        &self,
        node: &NodeKey,
        perform: Perform,
        events: Vec<StoredEvent>,
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.writing(|client, _| events::update(client, self.of(node), perform, events, sees))
    }

    fn delete_events(
        &self,
        node: &NodeKey,
        ids: &[ByteString],
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.writing(|client, _| events::remove(client, self.of(node), ids, sees))
    }

    fn maintain(&self, now: UtcTime) -> Result<(), StoreError> {
        if self.keep.is_zero() {
            return Ok(());
        }
        let age = i64::try_from(self.keep.as_nanos() / 100).unwrap_or(i64::MAX);
        let oldest = now.ticks().saturating_sub(age);
        // With a connection of its own: deleting many values takes long. The recorder must not wait for it, and it may take longer
        // than a read.
        let mut client = self.connect()?;
        if self.is_compressing {
            timescale::lift_limit(&mut client);
        }
        let expired = retention::expire(&mut client, &self.owner, oldest, self.is_compressing);
        expired.map_err(|error| failed(&error))
    }

    fn finish(&self) -> Result<(), StoreError> {
        let owner = &self.owner;
        self.writing(|client, writer| {
            writer.recorded.clear();
            client.execute("UPDATE taktwerk_node SET recorded_by = NULL WHERE recorded_by = $1", &[owner])
        })?;
        Ok(())
    }
}
