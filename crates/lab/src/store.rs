//! All results in one SQLite file: named runs that are only ever added.
//!
//! Each measurement is one transaction, so what is in the file is whole. A run whose writer has ended before it finished
//! is found by its writer's identity (boot, process id, start time and PID namespace): its measurements are kept, it is marked
//! as incomplete, and comparisons and reports skip it unless it is named. Whether a writer in another container has ended
//! cannot be seen from here: its run is left alone until the user says that it has.

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

/// Version of the tables, in SQLite's `user_version`.
const VERSION: i32 = 1;
/// How long one program waits for another to let go of the file.
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
    /// SQLite refuses.
    #[error("the results in {path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The directory cannot be made.
    #[error("cannot create {path}: {source}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A later version of this program wrote it.
    #[error(
        "{path} was written by a later version of this program (format {found}, this one knows {VERSION})"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i32,
    },
    /// There is no such run.
    #[error("there is no run {wanted:?} in {path}; `taktwerk lab runs` lists them")]
    NoRun {
        /// What was asked for.
        wanted: String,
        /// The file.
        path: PathBuf,
    },
    /// No run has come to its end with anything measured.
    #[error(
        "no run in {path} is complete and has measurements: `taktwerk lab reproduce` or `taktwerk lab run` makes one, and `--resume` ends one that was interrupted"
    )]
    NoneComplete {
        /// The file.
        path: PathBuf,
    },
    /// Another process is measuring it.
    #[error("the run {name:?} in {path} is being measured by another process: wait for it, or end it")]
    Running {
        /// Which.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// Perhaps another process is measuring it.
    #[error(
        "the run {name:?} in {path} was begun in another container (PID namespace), whose processes cannot be seen from here: if \
         it has ended there, go on with it here with --take-over"
    )]
    Elsewhere {
        /// Which.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// Another process goes on with a run of this one.
    #[error(
        "run {run} in {path} has been taken over by another process (--resume): nothing of it is written here any more"
    )]
    TakenOver {
        /// Which.
        run: i64,
        /// The file.
        path: PathBuf,
    },
    /// A database of something else.
    #[error(
        "{path} is a database of something else, with tables of its own: name another file for the results"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// What stands in a column is not what this program writes.
    #[error("measurement {measurement} in {path} cannot be read: {problem}")]
    Damaged {
        /// Its id.
        measurement: i64,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its writer has not ended yet.
    Running,
    /// All was measured.
    Complete,
    /// It was interrupted or killed; what it has is whole, but it is not all.
    Incomplete,
    /// It is not complete, and its writer is in another container: whether it runs cannot be seen from here.
    Unknown,
}

impl State {
    /// In one word.
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
    /// Ascending.
    pub id: i64,
    /// Given by the user, or made from what was measured and when.
    pub name: String,
    /// The experiments or the scenario.
    pub what: String,
    /// Whether it was the short form.
    pub quick: bool,
    /// When it began, milliseconds since 1970.
    pub started_unix_ms: i64,
    /// When it ended.
    pub finished_unix_ms: Option<i64>,
    /// What became of it.
    pub state: State,
    /// The machine and the versions.
    pub fingerprint: Value,
    /// What was skipped and why.
    pub notes: Vec<String>,
    /// Measurements in it.
    pub measurements: u64,
    /// Of these, invalid ones.
    pub invalid: u64,
}

/// The file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// Where results are kept unless the user says otherwise: `$TAKTWERK_RESULTS`, or `taktwerk/results.sqlite` in the
/// user's data directory.
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

/// Switches to write-ahead logging. SQLite does not wait for others with this, whatever the timeout: two programs that open a new
/// file at the same moment would get in each other's way.
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
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// If it cannot be made or is no store of this program.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            fs::create_dir_all(directory)
                .map_err(|source| StoreError::Directory { path: directory.to_owned(), source })?;
        }
        let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        // Looked at before anything is changed in it, its journal included.
        let tables = "SELECT (SELECT user_version FROM pragma_user_version), COUNT(*) FROM sqlite_master";
        let (version, tables): (i32, i64) =
            connection.query_row(tables, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        if version == 0 && tables > 0 {
            return Err(StoreError::Foreign { path: path.to_owned() });
        }
        // With write-ahead logging, a reader sees whole transactions while a run is being written.
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

    /// Begins a run. A name that is taken gets a number behind it: nothing is ever overwritten. So does a name of digits only,
    /// which is, or will be, the number of another run.
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
        // Nobody else begins one between the look whether the name is free and its use.
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

    /// Goes on with a run that was interrupted, or adds to one that was complete: from now on it is this process's. Who takes
    /// over knows that a writer has ended that cannot be seen from here.
    ///
    /// # Errors
    /// Of SQLite, or if somebody is writing it, or perhaps is.
    pub fn resume(&mut self, run: &Run, takes_over: bool) -> Result<(), StoreError> {
        // Asked again, and written only if nobody else took it over in between.
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
        // A Condition holds nothing that JSON cannot.
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

    /// Ends a run. `notes` is what was skipped and why.
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

    /// The run that was named, or the last complete one that has measurements.
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

    /// The run that was named, or the last complete one with measurements of one of these experiments.
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
            wanted: format!("a complete one of {}", experiments.join(" or ")),
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
                // One that did not come about has none: earlier versions wrote null.
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

/// The id of the run of this number or name. A number comes first: who just made a run asks for it by that.
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
