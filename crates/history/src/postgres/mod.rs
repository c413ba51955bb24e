//! History in PostgreSQL: one database for many servers.
//!
//! Values are copied in batches. With the extension TimescaleDB the value table is a hypertable, and old values are compressed. A broken connection is reopened
//! with the next batch; until then the recorder queues values.
//!
//! - `connector`: opens connections; `annotation`: annotations; `events`: events; `row`: values as rows; `portion`: reads rows in portions to bound memory.
//!
//! The calls block. Do not make them on a thread of an asynchronous runtime.

mod annotation;
mod connector;
#[cfg(test)]
mod database;
mod events;
mod portion;
mod retention;
mod row;
mod schema;
#[cfg(test)]
mod tests;
mod timescale;

use connector::Connector;
use core::fmt;
use core::time::Duration;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::error::SqlState;
use postgres::tls::{MakeTlsConnect, TlsConnect};
use postgres::types::{ToSql, Type};
use postgres::{Client, Socket, Transaction};
use row::Columns;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_schema::{Annotation, HistoryUpdateType};
use taktwerk_server::history::{
    AnnotationKey, EventCursor, HistoryStore, HistoryValue, Modification, ModifiedValue, NodeKey, Order,
    Perform, ReadLimit, Sees, Span, StoreCapabilities, StoreError, StoredEvent,
};
use taktwerk_types::{ByteString, StatusCode, UtcTime, Variant};

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

fn failed(error: &postgres::Error) -> StoreError {
    let message = format!("PostgreSQL: {}", explained(error));
    match error.code() {
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN => {
            StoreError::mistake(format!(
                "{message}. A table of the history was dropped, renamed or changed: rename it back, or restore it from a backup"
            ))
        }
        // Wrong user or password; no such database; no permission.
        Some(code) if ["28", "3D", "42"].iter().any(|class| code.code().starts_with(class)) => {
            StoreError::mistake(message)
        }
        _ => StoreError::unavailable(message),
    }
}

/// The text of an error: the database's message with its hint, or the underlying cause.
#[must_use]
pub fn explained(error: &postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return match error.hint() {
            Some(hint) => format!("{}; {hint}", error.message()),
            None => error.message().to_owned(),
        };
    }
    match core::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
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
        let connect = move || {
            let mut config = config()?;
            config.application_name("taktwerk").connect_timeout(CONNECT);
            config.keepalives_idle(UNANSWERED).tcp_user_timeout(UNANSWERED);
            config.connect(tls.clone()).map_err(|error| failed(&error))
        };
        let mut store = Self {
            is_compressing: false,
            connector: Connector::new(connect),
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
            mark_gaps(client, &store.owner)?;
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

/// Marks the gap after the last value if the previous process was not shut down properly.
fn mark_gaps(client: &mut Client, owner: &str) -> Result<(), postgres::Error> {
    let rows = client.query(
        "SELECT n.id, (SELECT max(ticks) FROM taktwerk_value v WHERE v.node = n.id AND v.time = \
         (SELECT max(time) FROM taktwerk_value w WHERE w.node = n.id)) FROM taktwerk_node n WHERE recorded_by = $1",
        &[&owner],
    )?;
    if !rows.is_empty() {
        tracing::warn!(
            variables = rows.len(),
            "history: the process that recorded last was not shut down properly; up to its last second of values is missing \
             and marked Bad_DataLost"
        );
    }
    let mut transaction = client.transaction()?;
    for row in rows {
        if let Some(ticks) = row.try_get::<_, Option<i64>>(1)? {
            let source = UtcTime::from_ticks(ticks.saturating_add(1));
            let status = StatusCode::BAD_DATA_LOST;
            let value = HistoryValue { source, server: source, status, value: Variant::Empty };
            put(&mut transaction, row.try_get(0)?, &value)?;
        }
    }
    transaction.execute("UPDATE taktwerk_node SET recorded_by = NULL WHERE recorded_by = $1", &[&owner])?;
    transaction.commit()
}

const INSERT: &str = "INSERT INTO taktwerk_value (node, time, ticks, server_ticks, status, type, value, other) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (node, time, ticks) DO UPDATE SET \
                      server_ticks = excluded.server_ticks, status = excluded.status, type = excluded.type, \
                      value = excluded.value, other = excluded.other";

/// Adds or replaces one value.
fn put(transaction: &mut Transaction<'_>, node: i32, value: &HistoryValue) -> Result<(), postgres::Error> {
    let c = Columns::of(value);
    let parameters: [&(dyn ToSql + Sync); 8] =
        [&node, &c.time, &c.ticks, &c.server_ticks, &c.status, &c.kind, &c.value, &c.other];
    transaction.execute(INSERT, &parameters)?;
    Ok(())
}

const TYPES: [Type; 8] = [
    Type::INT4,
    Type::TIMESTAMPTZ,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT2,
    Type::FLOAT8,
    Type::BYTEA,
];

/// Copies values into a table.
fn copy<'a>(
    transaction: &mut Transaction<'_>,
    table: &str,
    values: impl Iterator<Item = (i32, &'a HistoryValue)>,
) -> Result<(), postgres::Error> {
    let statement = format!(
        "COPY {table} (node, time, ticks, server_ticks, status, type, value, other) FROM STDIN BINARY"
    );
    let mut writer = BinaryCopyInWriter::new(transaction.copy_in(&statement)?, &TYPES);
    for (node, value) in values {
        let c = Columns::of(value);
        writer.write(&[&node, &c.time, &c.ticks, &c.server_ticks, &c.status, &c.kind, &c.value, &c.other])?;
    }
    writer.finish()?;
    Ok(())
}

impl Writer {
    /// The numbers of Variables. New Variables get a number and this owner.
    fn numbers(
        &mut self,
        client: &mut Client,
        owner: &str,
        values: &[(NodeKey, HistoryValue)],
    ) -> Result<Vec<i32>, postgres::Error> {
        let mut missing: BTreeSet<&str> = BTreeSet::new();
        missing.extend(values.iter().map(|(key, _)| &**key).filter(|key| !self.nodes.contains_key(*key)));
        if !missing.is_empty() {
            let keys: Vec<&str> = missing.into_iter().collect();
            client.execute(
                "INSERT INTO taktwerk_node (key, owner) SELECT unnest($1::text[]), $2 ON CONFLICT (key) DO NOTHING",
                &[&keys, &owner],
            )?;
            for row in client.query("SELECT key, id FROM taktwerk_node WHERE key = ANY($1)", &[&keys])? {
                self.nodes.insert(row.try_get::<_, &str>(0)?.into(), row.try_get(1)?);
            }
        }
        Ok(values.iter().map(|(key, _)| self.nodes.get(key).copied().unwrap_or_default()).collect())
    }
}

/// A row limit as the database's integer.
fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

const VALUE: &str = "ticks, server_ticks, status, type, value, other";

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
        let owner = &self.owner;
        self.writing(|client, writer| {
            let nodes = writer.numbers(client, owner, values)?;
            let new: Vec<i32> =
                nodes.iter().copied().filter(|node| !writer.recorded.contains(node)).collect::<BTreeSet<_>>().into_iter().collect();
            if !new.is_empty() {
                client.execute("UPDATE taktwerk_node SET recorded_by = $1, owner = $1 WHERE id = ANY($2)", &[owner, &new])?;
                writer.recorded.extend(new);
            }
            let pairs = || nodes.iter().copied().zip(values.iter().map(|(_, value)| value));
            let mut transaction = client.transaction()?;
            match copy(&mut transaction, "taktwerk_value", pairs()) {
                Ok(()) => return transaction.commit(),
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => transaction.rollback()?,
                Err(error) => return Err(error),
            }
            // Some values exist already: sent before a connection broke, or with the same time.
            let mut transaction = client.transaction()?;
            transaction.batch_execute(
                "CREATE TEMPORARY TABLE taktwerk_new (LIKE taktwerk_value, n bigint GENERATED ALWAYS AS IDENTITY) ON COMMIT DROP",
            )?;
            copy(&mut transaction, "taktwerk_new", pairs())?;
            transaction.batch_execute(
                "INSERT INTO taktwerk_value SELECT DISTINCT ON (node, time, ticks) node, time, ticks, server_ticks, status, \
                 type, value, other FROM taktwerk_new ORDER BY node, time, ticks, n DESC ON CONFLICT (node, time, ticks) DO \
                 UPDATE SET server_ticks = excluded.server_ticks, status = excluded.status, type = excluded.type, \
                 value = excluded.value, other = excluded.other",
            )?;
            transaction.commit()
        })
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        if span.is_empty() {
            return Ok(());
        }
        let direction = if order == Order::Forward { "ASC" } else { "DESC" };
        let query = format!(
            "SELECT {VALUE} FROM taktwerk_value WHERE node = (SELECT id FROM taktwerk_node WHERE key = $1) \
             AND time >= $2 AND time <= $3 AND ticks BETWEEN $4 AND $5 ORDER BY time {direction}, ticks {direction}"
        );
        let found = self.reading(|client| {
            let (first, last) = (row::time(span.first), row::time(span.last));
            let key: &str = node;
            let parameters: [&(dyn ToSql + Sync); 5] =
                [&key, &first, &last, &span.first.ticks(), &span.last.ticks()];
            portion::read(client, &query, &parameters, limit, |row| row::value(row, 0).map(Some))
        })?;
        out.extend(found);
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
        let direction = if order == Order::Forward { "ASC" } else { "DESC" };
        let query = format!(
            "SELECT {VALUE}, changed_at, change, changed_by FROM taktwerk_modified WHERE node = (SELECT id FROM \
             taktwerk_node WHERE key = $1) AND ticks BETWEEN $2 AND $3 ORDER BY ticks {direction}, id {direction} \
             OFFSET $4"
        );
        self.reading(|client| {
            let key: &str = node;
            let parameters: [&(dyn ToSql + Sync); 4] =
                [&key, &span.first.ticks(), &span.last.ticks(), &limited(skip)];
            let one = |row: &postgres::Row| {
                let by = Modification {
                    time: UtcTime::from_ticks(row.try_get(6)?),
                    kind: HistoryUpdateType(row.try_get(7)?),
                    user: row.try_get::<_, &str>(8)?.into(),
                };
                Ok(Some(ModifiedValue { value: row::value(row, 0)?, by }))
            };
            portion::read(client, &query, &parameters, limit, one)
        })
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
            let nodes = writer.numbers(client, &self.owner, &values)?;
            let mut transaction = client.transaction()?;
            // One change of a Variable at a time, whichever server makes it. Compressed values themselves cannot be locked.
            transaction.execute("SELECT 1 FROM taktwerk_node WHERE id = ANY($1) FOR UPDATE", &[&nodes])?;
            let mut results = Vec::with_capacity(values.len());
            for (node, (_, value)) in nodes.into_iter().zip(&values) {
                results.push(update(&mut transaction, node, perform, value, by)?);
            }
            transaction.commit()?;
            Ok(results)
        })
    }

    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        let query = format!(
            "WITH gone AS (DELETE FROM taktwerk_value WHERE node = $1 \
             AND time >= $2 AND time <= $3 AND ticks BETWEEN $4 AND $5 RETURNING node, {VALUE}) \
             INSERT INTO taktwerk_modified (node, {VALUE}, changed_at, change, changed_by) \
             SELECT node, {VALUE}, $6, $7, $8 FROM gone ORDER BY ticks"
        );
        self.writing(|client, _| {
            let (first, last) = (row::time(span.first), row::time(span.last));
            let (key, user): (&str, &str) = (node, &by.user);
            // Apart: a database that compresses would decompress the values of all Variables for a query within the query.
            let row = client.query_opt("SELECT id FROM taktwerk_node WHERE key = $1", &[&key])?;
            let Some(row) = row else { return Ok(0) };
            let number: i32 = row.try_get(0)?;
            let kind = HistoryUpdateType::DELETE.0;
            let parameters: [&(dyn ToSql + Sync); 8] = [
                &number,
                &first,
                &last,
                &span.first.ticks(),
                &span.last.ticks(),
                &by.time.ticks(),
                &kind,
                &user,
            ];
            client.execute(&query, &parameters)
        })
    }

    fn delete_modified(&self, node: &NodeKey, span: Span) -> Result<u64, StoreError> {
        let query = "DELETE FROM taktwerk_modified WHERE node = (SELECT id FROM taktwerk_node WHERE key = $1) \
                     AND ticks BETWEEN $2 AND $3";
        let key: &str = node;
        self.writing(|client, _| client.execute(query, &[&key, &span.first.ticks(), &span.last.ticks()]))
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
            let node = writer.numbers(client, &self.owner, &key)?.first().copied().unwrap_or_default();
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

fn update(
    transaction: &mut Transaction<'_>,
    node: i32,
    perform: Perform,
    value: &HistoryValue,
    by: &Modification,
) -> Result<StatusCode, postgres::Error> {
    let query = format!("SELECT {VALUE} FROM taktwerk_value WHERE node = $1 AND time = $2 AND ticks = $3");
    let (time, ticks) = (row::time(value.source), value.source.ticks());
    let old = transaction.query_opt(&query, &[&node, &time, &ticks])?;
    let old = old.map(|row| row::value(&row, 0)).transpose()?;
    Ok(match (perform, old) {
        (Perform::Insert, Some(_)) => StatusCode::BAD_ENTRY_EXISTS,
        (Perform::Replace, None) => StatusCode::BAD_NO_ENTRY_EXISTS,
        (Perform::Remove, _) => StatusCode::BAD_HISTORY_OPERATION_INVALID,
        (Perform::Replace | Perform::Update, Some(old)) => {
            let kind = if perform == Perform::Update {
                HistoryUpdateType::UPDATE
            } else {
                HistoryUpdateType::REPLACE
            };
            note(transaction, node, &old, by, kind)?;
            put(transaction, node, value)?;
            StatusCode::GOOD_ENTRY_REPLACED
        }
        (Perform::Insert | Perform::Update, None) => {
            note(transaction, node, value, by, HistoryUpdateType::INSERT)?;
            put(transaction, node, value)?;
            StatusCode::GOOD_ENTRY_INSERTED
        }
    })
}

fn note(
    transaction: &mut Transaction<'_>,
    node: i32,
    value: &HistoryValue,
    by: &Modification,
    kind: HistoryUpdateType,
) -> Result<(), postgres::Error> {
    let c = Columns::of(value);
    let user: &str = &by.user;
    let query = format!(
        "INSERT INTO taktwerk_modified (node, {VALUE}, changed_at, change, changed_by) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    let at = by.time.ticks();
    let parameters: [&(dyn ToSql + Sync); 10] =
        [&node, &c.ticks, &c.server_ticks, &c.status, &c.kind, &c.value, &c.other, &at, &kind.0, &user];
    transaction.execute(&query, &parameters)?;
    Ok(())
}
