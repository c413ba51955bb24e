//! Stores all results in one SQLite file, as named runs that are only ever appended.
//!
//! Each measurement is one transaction. A run whose writer ended before finishing it is detected by the writer's
//! identity (boot, process id, start time and PID namespace). Its measurements are kept, it is marked as incomplete,
//! and comparisons and reports skip it unless it is named. Processes in another container are not visible here, so
//! their runs are left alone until the user confirms that they have ended.

use crate::latency::Times;
use crate::measurement::Measurement;
use crate::orphans::{Fate, fate_of_writer, writer};
use crate::scenario::Condition;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Version of the schema, in SQLite's `user_version`.
const VERSION: i32 = 1;
/// How long to wait for a lock that another program holds.
const BUSY: Duration = Duration::from_secs(20);

const TABLES: &str = "
    CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        what TEXT NOT NULL,
        quick INTEGER NOT NULL,
        started_unix_ms INTEGER NOT NULL,
        finished_unix_ms INTEGER,
        outcome TEXT,
        fingerprint TEXT NOT NULL,
        notes TEXT NOT NULL,
        writer TEXT NOT NULL
    );
    CREATE TABLE measurement (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES run(id),
        experiment TEXT NOT NULL,
        condition TEXT NOT NULL,
        repetition INTEGER NOT NULL,
        invalid TEXT NOT NULL,
        document TEXT NOT NULL
    );
    CREATE INDEX measurement_of_run ON measurement(run, experiment);
    CREATE TABLE metric (
        measurement INTEGER NOT NULL REFERENCES measurement(id),
        name TEXT NOT NULL,
        value REAL NOT NULL,
        PRIMARY KEY (measurement, name)
    ) WITHOUT ROWID;
    CREATE TABLE histogram (
        measurement INTEGER NOT NULL REFERENCES measurement(id),
        name TEXT NOT NULL,
        hdr_v2_deflate BLOB NOT NULL,
        PRIMARY KEY (measurement, name)
    ) WITHOUT ROWID;
";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An SQLite error.
    #[error("cannot access the results in {path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rusqlite::Error,
    },
    /// Creating the directory failed.
    #[error("cannot create {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Written by a later version of this program.
    #[error(
        "{path} was written by a later version of this program (format {found}; this version reads {VERSION})"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i32,
    },
    /// The run does not exist.
    #[error("there is no run {wanted:?} in {path}; `taktwerk lab runs` lists them")]
    NoRun {
        /// The requested name.
        wanted: String,
        /// The file.
        path: PathBuf,
    },
    /// No run is complete and has measurements.
    #[error(
        "no complete run with measurements in {path}: start one with `taktwerk lab reproduce` or `taktwerk lab run`, \
         or complete an interrupted one with `--resume`"
    )]
    NoneComplete {
        /// The file.
        path: PathBuf,
    },
    /// Another process is writing the run.
    #[error("the run {name:?} in {path} is being measured by another process: wait for it, or end it")]
    Running {
        /// The run.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// A process in another container may be writing the run.
    #[error(
        "the run {name:?} in {path} was started in another container (PID namespace), whose processes are not visible \
         here. If it has ended there, continue it here with --take-over"
    )]
    Elsewhere {
        /// The run.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// Another process has taken over a run of this process.
    #[error(
        "run {run} in {path} has been taken over by another process (--resume): this process stops writing it"
    )]
    TakenOver {
        /// The run.
        run: i64,
        /// The file.
        path: PathBuf,
    },
    /// The file is another application's database.
    #[error("{path} is a database of another application: use another file for the results")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A column has content that this program does not write.
    #[error("measurement {measurement} in {path} cannot be read: {problem}")]
    Damaged {
        /// Its id.
        measurement: i64,
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its writer is still running.
    Running,
    /// All measurements are done.
    Complete,
    /// Interrupted or killed; existing measurements are intact.
    Incomplete,
    /// Not complete, and its writer is in another container, so whether it still runs is unknown.
    Unknown,
}

impl State {
    /// The state in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Unknown => "unknown",
        }
    }
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Ascending number.
    pub id: i64,
    /// Given by the user, or generated from the content and the time.
    pub name: String,
    /// The experiments or the scenario.
    pub what: String,
    /// Whether it is the short form.
    pub quick: bool,
    /// Start time, milliseconds since 1970.
    pub started_unix_ms: i64,
    /// End time.
    pub finished_unix_ms: Option<i64>,
    /// State.
    pub state: State,
    /// The machine and the versions.
    pub fingerprint: Value,
    /// Skipped parts, with reasons.
    pub notes: Vec<String>,
    /// Number of measurements.
    pub measurements: u64,
    /// Number of invalid measurements.
    pub invalid: u64,
}

/// The file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// The default file: `$TAKTWERK_RESULTS`, or `taktwerk/results.sqlite` in the user's data directory.
#[must_use]
pub fn default_path() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("TAKTWERK_RESULTS").unwrap_or_else(|| {
        let data = variable("XDG_DATA_HOME")
            .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
            .unwrap_or_else(|| PathBuf::from("."));
        data.join("taktwerk").join("results.sqlite")
    })
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

/// Switches to write-ahead logging, with retries: SQLite ignores its busy timeout for this statement, so two programs
/// that open a new file at the same time would fail.
fn write_ahead(connection: &Connection) -> Result<(), rusqlite::Error> {
    let end = Instant::now() + BUSY;
    loop {
        let error = match connection.pragma_update(None, "journal_mode", "WAL") {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let is_busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        if !is_busy || Instant::now() >= end {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Store {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// If it cannot be created, or is not a store of this program.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            fs::create_dir_all(directory)
                .map_err(|source| StoreError::Directory { path: directory.to_owned(), source })?;
        }
        let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        // Checked before anything is changed, including the journal mode.
        let tables = "SELECT (SELECT user_version FROM pragma_user_version), COUNT(*) FROM sqlite_master";
        let (version, tables): (i32, i64) =
            connection.query_row(tables, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        if version == 0 && tables > 0 {
            return Err(StoreError::Foreign { path: path.to_owned() });
        }
        // With write-ahead logging, readers see complete transactions while a run is being written.
        write_ahead(&connection).map_err(failed)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failed)?;
        let found: i32 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
        match found {
            0 => {
                transaction.execute_batch(TABLES).map_err(failed)?;
                transaction.pragma_update(None, "user_version", VERSION).map_err(failed)?;
            }
            VERSION => {}
            found => return Err(StoreError::Version { path: path.to_owned(), found }),
        }
        transaction.commit().map_err(failed)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), source }
    }

    /// Starts a run. If the name is taken, a number is appended; runs are never overwritten. A number is also appended
    /// to names of digits only, which could be confused with the number of another run.
    ///
    /// # Errors
    /// Of SQLite.
    pub fn begin(
        &mut self,
        name: &str,
        what: &str,
        quick: bool,
        fingerprint: &Value,
    ) -> Result<i64, StoreError> {
        let path = self.path.clone();
        let failed = |source| StoreError::Sqlite { path: path.clone(), source };
        // One transaction, so that no other process can take the name in between.
        let transaction = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(failed)?;
        let mut free = name.to_owned();
        let mut number = 1;
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        while is_number(&free) || named(&transaction, &free).map_err(failed)?.is_some() {
            number += 1;
            free = format!("{name}-{number}");
        }
        transaction
            .execute(
                "INSERT INTO run (name, what, quick, started_unix_ms, fingerprint, notes, writer)
                 VALUES (?1, ?2, ?3, ?4, ?5, '[]', ?6)",
                params![free, what, quick, now_ms(), fingerprint.to_string(), writer()],
            )
            .map_err(failed)?;
        let id = transaction.last_insert_rowid();
        transaction.commit().map_err(failed)?;
        Ok(id)
    }

    /// Continues an interrupted run, or adds to a complete one. From now on this process owns it. `takes_over` confirms
    /// that a writer in another container has ended.
    ///
    /// # Errors
    /// Of SQLite, or if another process is or may be writing it.
    pub fn resume(&mut self, run: &Run, takes_over: bool) -> Result<(), StoreError> {
        // Read again, and updated only if no other process took it over in between.
        let (before, is_open): (String, bool) = self
            .connection
            .query_row("SELECT writer, finished_unix_ms IS NULL FROM run WHERE id = ?1", [run.id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(|error| self.failed(error))?;
        let taken = || StoreError::Running { name: run.name.clone(), path: self.path.clone() };
        match fate_of_writer(&before) {
            Fate::Runs if is_open => return Err(taken()),
            Fate::Unknown if is_open && !takes_over => {
                return Err(StoreError::Elsewhere { name: run.name.clone(), path: self.path.clone() });
            }
            _ => {}
        }
        let changed = self
            .connection
            .execute(
                "UPDATE run SET writer = ?2, finished_unix_ms = NULL WHERE id = ?1 AND writer = ?3",
                params![run.id, writer(), before],
            )
            .map_err(|error| self.failed(error))?;
        if changed == 1 { Ok(()) } else { Err(taken()) }
    }

    /// Adds a measurement, all of it or nothing.
    ///
    /// # Errors
    /// Of SQLite, or if another process has taken the run over.
    pub fn add(&mut self, run: i64, measurement: &Measurement) -> Result<(), StoreError> {
        let path = self.path.clone();
        let failed = |source| StoreError::Sqlite { path: path.clone(), source };
        let transaction = self.connection.transaction().map_err(failed)?;
        // Serializing a Condition cannot fail.
        let condition = serde_json::to_string(&measurement.condition).unwrap_or_default();
        let added = transaction
            .execute(
                "INSERT INTO measurement (run, experiment, condition, repetition, invalid, document)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6 FROM run WHERE id = ?1 AND writer = ?7",
                params![
                    run,
                    measurement.experiment,
                    condition,
                    measurement.repetition,
                    serde_json::to_string(&measurement.invalid).unwrap_or_default(),
                    measurement.document.to_string(),
                    writer(),
                ],
            )
            .map_err(failed)?;
        if added == 0 {
            return Err(StoreError::TakenOver { run, path });
        }
        let id = transaction.last_insert_rowid();
        for (name, value) in &measurement.metrics {
            transaction
                .execute("INSERT INTO metric VALUES (?1, ?2, ?3)", params![id, name, value])
                .map_err(failed)?;
        }
        for (name, times) in &measurement.histograms {
            transaction
                .execute("INSERT INTO histogram VALUES (?1, ?2, ?3)", params![id, name, times.to_bytes()])
                .map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    /// Finishes a run. `notes` are the skipped parts with reasons.
    ///
    /// # Errors
    /// Of SQLite, or if another process has taken the run over.
    pub fn finish(&mut self, run: i64, notes: &[String]) -> Result<(), StoreError> {
        let notes = serde_json::to_string(notes).unwrap_or_default();
        let ended = self
            .connection
            .execute(
                "UPDATE run SET finished_unix_ms = ?2, notes = ?3 WHERE id = ?1 AND writer = ?4",
                params![run, now_ms(), notes, writer()],
            )
            .map_err(|error| self.failed(error))?;
        if ended == 1 { Ok(()) } else { Err(StoreError::TakenOver { run, path: self.path.clone() }) }
    }

    /// All runs, the oldest first.
    ///
    /// # Errors
    /// Of SQLite.
    pub fn runs(&self) -> Result<Vec<Run>, StoreError> {
        let query =
            "SELECT id, name, what, quick, started_unix_ms, finished_unix_ms, fingerprint, notes, writer,
            (SELECT COUNT(*) FROM measurement WHERE run = run.id),
            (SELECT COUNT(*) FROM measurement WHERE run = run.id AND invalid != '[]')
            FROM run ORDER BY id";
        let mut statement = self.connection.prepare(query).map_err(|error| self.failed(error))?;
        let rows = statement.query_map([], run).map_err(|error| self.failed(error))?;
        rows.collect::<Result<_, _>>().map_err(|error| self.failed(error))
    }

    /// A run by its name or number.
    ///
    /// # Errors
    /// Of SQLite.
    pub fn find(&self, wanted: &str) -> Result<Option<Run>, StoreError> {
        let id = named(&self.connection, wanted).map_err(|error| self.failed(error))?;
        Ok(self.runs()?.into_iter().find(|run| Some(run.id) == id))
    }

    /// The named run, or the last complete run with measurements.
    ///
    /// # Errors
    /// If there is none.
    pub fn choose(&self, wanted: Option<&str>) -> Result<Run, StoreError> {
        let path = self.path.clone();
        match wanted {
            Some(wanted) => {
                self.find(wanted)?.ok_or_else(|| StoreError::NoRun { wanted: wanted.to_owned(), path })
            }
            None => {
                let is_usable = |run: &Run| run.state == State::Complete && run.measurements > 0;
                self.runs()?.into_iter().rev().find(is_usable).ok_or(StoreError::NoneComplete { path })
            }
        }
    }

    /// The named run, or the last complete run with measurements of one of these experiments.
    ///
    /// # Errors
    /// If there is none.
    pub fn choose_of(&self, wanted: Option<&str>, experiments: &[&str]) -> Result<Run, StoreError> {
        if wanted.is_some() {
            return self.choose(wanted);
        }
        for run in self.runs()?.into_iter().rev().filter(|run| run.state == State::Complete) {
            let found = self
                .connection
                .prepare("SELECT DISTINCT experiment FROM measurement WHERE run = ?1")
                .and_then(|mut statement| {
                    let names = statement.query_map([run.id], |row| row.get::<_, String>(0))?;
                    names.collect::<rusqlite::Result<Vec<String>>>()
                })
                .map_err(|error| self.failed(error))?;
            if found.iter().any(|name| experiments.contains(&name.as_str())) {
                return Ok(run);
            }
        }
        Err(StoreError::NoRun {
            wanted: format!("a complete run of {}", experiments.join(" or ")),
            path: self.path.clone(),
        })
    }

    /// All measurements of a run, in the order they were made.
    ///
    /// # Errors
    /// Of SQLite, or if something in the file is not what this program wrote.
    pub fn measurements(&self, run: i64) -> Result<Vec<Measurement>, StoreError> {
        let failed = |error| self.failed(error);
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, experiment, condition, repetition, invalid, document FROM measurement
                 WHERE run = ?1 ORDER BY id",
            )
            .map_err(failed)?;
        let columns = |row: &Row<'_>| -> rusqlite::Result<(i64, String, String, u32, String, String)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        };
        let rows = statement.query_map([run], columns).map_err(failed)?;
        let mut measurements = Vec::new();
        for row in rows {
            let (id, experiment, condition, repetition, invalid, document) = row.map_err(failed)?;
            let damaged = |problem: serde_json::Error| StoreError::Damaged {
                measurement: id,
                path: self.path.clone(),
                problem: problem.to_string(),
            };
            let condition: Condition = serde_json::from_str(&condition).map_err(damaged)?;
            measurements.push(Measurement {
                experiment,
                condition,
                repetition,
                invalid: serde_json::from_str(&invalid).map_err(damaged)?,
                // Failed measurements have no document; earlier versions wrote null.
                document: serde_json::from_str::<Option<_>>(&document).map_err(damaged)?.unwrap_or_default(),
                metrics: self.metrics(id)?,
                histograms: self.histograms(id)?,
            });
        }
        Ok(measurements)
    }

    fn metrics(&self, measurement: i64) -> Result<BTreeMap<String, f64>, StoreError> {
        let failed = |error| self.failed(error);
        let query = "SELECT name, value FROM metric WHERE measurement = ?1";
        let mut statement = self.connection.prepare_cached(query).map_err(failed)?;
        let rows =
            statement.query_map([measurement], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    fn histograms(&self, measurement: i64) -> Result<BTreeMap<String, Times>, StoreError> {
        let failed = |error| self.failed(error);
        let query = "SELECT name, hdr_v2_deflate FROM histogram WHERE measurement = ?1";
        let mut statement = self.connection.prepare_cached(query).map_err(failed)?;
        let columns =
            |row: &Row<'_>| -> rusqlite::Result<(String, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?)) };
        let mut histograms = BTreeMap::new();
        for row in statement.query_map([measurement], columns).map_err(failed)? {
            let (name, bytes) = row.map_err(failed)?;
            let times = Times::from_bytes(&bytes).ok_or_else(|| StoreError::Damaged {
                measurement,
                path: self.path.clone(),
                problem: format!("histogram {name:?}"),
            })?;
            histograms.insert(name, times);
        }
        Ok(histograms)
    }
}

/// The id of a run by number or name. Numbers have priority, because a caller that has just created a run refers to it
/// by number.
fn named(connection: &Connection, wanted: &str) -> rusqlite::Result<Option<i64>> {
    let query = "SELECT id FROM run WHERE name = ?1 OR CAST(id AS TEXT) = ?1 ORDER BY name = ?1 LIMIT 1";
    connection.query_row(query, [wanted], |row| row.get(0)).optional()
}

fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let finished: Option<i64> = row.get(5)?;
    let fingerprint: String = row.get(6)?;
    let notes: String = row.get(7)?;
    let writer: String = row.get(8)?;
    let state = match (finished, fate_of_writer(&writer)) {
        (Some(_), _) => State::Complete,
        (None, Fate::Runs) => State::Running,
        (None, Fate::Gone) => State::Incomplete,
        (None, Fate::Unknown) => State::Unknown,
    };
    Ok(Run {
        id: row.get(0)?,
        name: row.get(1)?,
        what: row.get(2)?,
        quick: row.get(3)?,
        started_unix_ms: row.get(4)?,
        finished_unix_ms: finished,
        state,
        fingerprint: serde_json::from_str(&fingerprint).unwrap_or_default(),
        notes: serde_json::from_str(&notes).unwrap_or_default(),
        measurements: u64::try_from(row.get::<_, i64>(9)?).unwrap_or(0),
        invalid: u64::try_from(row.get::<_, i64>(10)?).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests;
