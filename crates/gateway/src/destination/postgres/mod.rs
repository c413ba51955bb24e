//! Rows in a PostgreSQL database.
//!
//! A batch is one transaction, which also stores the number of its last record. That number identifies a repeated batch, so each
//! value is stored once.

mod row;

use super::block::Record;
use super::settings::DestinationSettings;
use super::{Batch, Sink, Taken};
use crate::database::{self, Database};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use core::pin::pin;
use core::time::Duration;
use futures_util::future::BoxFuture;
use row::Row;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::Error;

/// A database that receives values.
pub struct PostgresSink {
    database: Database,
    /// The schema with its dot, if configured.
    schema: String,
    table: String,
    client: Option<Client>,
}

/// Why a transaction failed.
enum Failed {
    /// The database rejects a value.
    Data(String),
    Other(Fault),
}

impl PostgresSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let (line, url) = fields.required("url", "\"postgresql://gateway@database/plant\"")?;
        let database = Database::take(fields, (line, &url), |config| {
            config
                .application_name("taktwerk-gateway")
                .connect_timeout(settings.deadline)
                .keepalives_idle(Duration::from_secs(30));
        })?;
        let name = fields.text_at("table")?;
        let name_line = name.as_ref().map_or(0, |(line, _)| *line);
        let name = name.map_or_else(|| "tag_values".to_owned(), |(_, name)| name);
        let is_word = |word: &str| {
            word.len() <= 50
                && word.starts_with(|char: char| char.is_ascii_lowercase() || char == '_')
                && word.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        };
        let (schema, table) = name.rsplit_once('.').map_or(("", &*name), |(schema, table)| (schema, table));
        if !is_word(table) || !(schema.is_empty() && !name.contains('.') || is_word(schema)) {
            let hint = "write lower-case letters, digits and _, such as table = \"tag_values\" or \"plant.tag_values\"";
            return Err(fields.mistake_in(
                name_line,
                "table",
                format!("{name:?} is no name of a table"),
                hint,
            ));
        }
        Ok(Self {
            database,
            schema: if schema.is_empty() { String::new() } else { format!("{schema}.") },
            table: table.to_owned(),
            client: None,
        })
    }

    async fn connect(&self) -> Result<Client, Fault> {
        let client = self.database.connect().await?;
        self.prepare(&client).await.map_err(|error| self.database.failed(&error))?;
        Ok(client)
    }

    /// Creates missing tables. If none is missing, the user needs no permission to create tables.
    async fn prepare(&self, client: &Client) -> Result<(), Error> {
        let Self { schema, table, .. } = self;
        let sql = "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL";
        let (values, queues) = (format!("{schema}{table}"), format!("{schema}taktwerk_queue"));
        if client.query_one(sql, &[&values, &queues]).await?.try_get(0)? {
            return Ok(());
        }
        // The lock keeps gateways that start at the same time from creating the same tables.
        let made = client
            .batch_execute(&format!(
                "BEGIN; SELECT pg_advisory_xact_lock(7812); \
                 CREATE TABLE IF NOT EXISTS {values} (time timestamptz NOT NULL, received timestamptz NOT NULL, \
                 tag text NOT NULL, value double precision, other jsonb, status bigint NOT NULL); \
                 CREATE INDEX IF NOT EXISTS {table}_tag_time ON {values} (tag, time); \
                 CREATE TABLE IF NOT EXISTS {queues} (queue text PRIMARY KEY, number bigint NOT NULL); COMMIT"
            ))
            .await;
        if made.is_err() {
            client.batch_execute("ROLLBACK").await?;
        }
        made?;
        let has = client.query_opt("SELECT 1 FROM pg_extension WHERE extname = 'timescaledb'", &[]).await?;
        if has.is_some() {
            let sql = format!(
                "SELECT create_hypertable('{values}', 'time', if_not_exists => true, migrate_data => true)"
            );
            client.batch_execute(&sql).await?;
        }
        Ok(())
    }

    /// Copies records in one transaction, except existing ones.
    async fn copy(&self, client: &mut Client, queue: &str, records: &[Record]) -> Result<(), Error> {
        let Self { schema, table, .. } = self;
        let Some(last) = records.last() else { return Ok(()) };
        let transaction = client.transaction().await?;
        let sql = format!("SELECT number FROM {schema}taktwerk_queue WHERE queue = $1 FOR UPDATE");
        let found = transaction.query_opt(&sql, &[&queue]).await?;
        let done: i64 = found.map(|row| row.try_get(0)).transpose()?.unwrap_or(0);
        let sql =
            format!("COPY {schema}{table} (time, received, tag, value, other, status) FROM STDIN BINARY");
        let mut writer = pin!(BinaryCopyInWriter::new(transaction.copy_in(&sql).await?, &row::TYPES));
        for record in records.iter().filter(|record| record.number as i64 > done) {
            let row = Row::of(record);
            let columns: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                [&row.time, &row.received, &row.tag, &row.value, &row.other, &row.status];
            writer.as_mut().write(&columns).await?;
        }
        writer.finish().await?;
        let sql = format!(
            "INSERT INTO {schema}taktwerk_queue AS q VALUES ($1, $2) \
             ON CONFLICT (queue) DO UPDATE SET number = greatest(q.number, excluded.number)"
        );
        transaction.execute(&sql, &[&queue, &(last.number as i64)]).await?;
        transaction.commit().await
    }

    async fn store(&self, client: &mut Client, queue: &str, records: &[Record]) -> Result<(), Failed> {
        self.copy(client, queue, records).await.map_err(|error| match error.code() {
            // Classes 22 and 23: data exception, integrity constraint violation.
            Some(code) if code.code().starts_with("22") || code.code().starts_with("23") => {
                Failed::Data(database::told(&error))
            }
            _ => Failed::Other(self.database.failed(&error)),
        })
    }

    async fn send_all(&mut self, batch: &Batch) -> Result<Taken, Fault> {
        let mut client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.connect().await?,
        };
        let mut taken = Taken::default();
        // If the table's constraints reject a value, the part is halved until only that value is omitted.
        let mut parts: Vec<&[Record]> = vec![&batch.records];
        while let Some(part) = parts.pop() {
            match self.store(&mut client, &batch.queue, part).await {
                Ok(()) => {}
                Err(Failed::Data(reason)) if part.len() <= 1 => {
                    taken.refused += part.len();
                    taken.reason = Some(reason);
                }
                Err(Failed::Data(_)) => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.extend([right, left]);
                }
                Err(Failed::Other(fault)) => return Err(fault),
            }
        }
        // After a failure or a missed deadline a transaction may be open, so the connection is not used again.
        self.client = Some(client);
        Ok(taken)
    }
}

impl Sink for PostgresSink {
    fn describe(&self) -> String {
        format!("{}, table {}{}", self.database.target(), self.schema, self.table)
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(self.send_all(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    fn sink(text: &str) -> Result<PostgresSink, String> {
        let text = format!("[[destination]]\n{text}\n");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().destinations.remove(0);
        let settings = DestinationSettings::take(&mut fields, "d".to_owned()).unwrap();
        PostgresSink::take(&mut fields, &settings).map_err(|error| error.to_string())
    }

    #[test]
    fn urls_are_read_and_what_is_unsafe_is_refused() {
        let far = sink("url = \"postgresql://u@db:5433/plant\"\ntable = \"s.t\"").unwrap();
        assert_eq!(far.describe(), "PostgreSQL db:5433, table s.t");
        assert!(far.database.is_tls());
        let near = sink("url = \"postgresql://u@localhost/plant\"").unwrap();
        assert_eq!(near.describe(), "PostgreSQL localhost:5432, table tag_values");
        assert!(!near.database.is_tls());
        for (text, said) in [
            ("url = \"postgresql://u:secret@db/p\"", "name it with password_file"),
            ("url = \"nothing\"", "write \"postgresql://user@host:5432/database\""),
            ("url = \"postgresql://db/p\"", "there is no user"),
            ("url = \"postgresql://u@db/p\"\ntable = \"a;b\"", "\"a;b\" is no name of a table"),
            ("url = \"postgresql://u@db/p\"\ntable = \".t\"", "\".t\" is no name of a table"),
        ] {
            let error = sink(text).err().unwrap();
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
    }
}
