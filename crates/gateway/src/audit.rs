//! Audit records as lines of JSON in a file.
//!
//! A thread of its own writes, so that a slow or full disk holds up no client. What it cannot take is counted and said in
//! the next line that it can.

use core::sync::atomic::{AtomicU64, Ordering};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use taktwerk_net::AuditSink;
use taktwerk_net::server::audit::AuditTracing;
use taktwerk_server::audit::{AuditField, AuditRecord};

/// Lines on their way to the disk.
const QUEUE_MAX: usize = 4096;

/// Writes audit records to a file, and logs them as well.
#[derive(Debug)]
pub struct AuditFile {
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

impl AuditFile {
    /// Appends to a file, which only its owner can read, from a thread of its own.
    ///
    /// # Errors
    /// The file cannot be opened, or there is no thread.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(crate::file::PRIVATE).open(path)?;
        let (lines, receiver) = sync_channel(QUEUE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer { path: path.to_owned(), file: BufWriter::new(file), lost: Arc::clone(&lost) };
        let thread = std::thread::Builder::new().name("audit".to_owned()).stack_size(128 << 10);
        thread.spawn(move || writer.run(&receiver))?;
        Ok(Self { lines, lost })
    }
}

impl AuditSink for AuditFile {
    fn record(&self, record: &AuditRecord) {
        AuditTracing.record(record);
        if self.lines.try_send(line(record)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, lines: &Receiver<String>) {
        let mut is_failing = false;
        // One line at least, then all that are there, then the disk.
        while let Ok(first) = lines.recv() {
            let mut written = self.write(&first);
            for line in lines.try_iter() {
                written = written.and_then(|()| self.write(&line));
            }
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                let note = format!("{{\"SourceName\":\"Server/Audit\",\"LostCount\":{lost}}}");
                written = written.and_then(|()| self.write(&note));
            }
            let written = written.and_then(|()| self.file.flush());
            if let (Err(error), false) = (&written, is_failing) {
                tracing::error!(path = %self.path.display(), %error, "audit records cannot be written");
            }
            is_failing = written.is_err();
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")
    }
}

/// A record as one line of JSON with the specification's names.
#[must_use]
pub fn line(record: &AuditRecord) -> String {
    let object: Map<String, Value> = record
        .fields()
        .into_iter()
        .map(|(name, field)| {
            let value = match field {
                AuditField::Text(text) => Value::from(text.into_owned()),
                AuditField::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                    Value::from(number as i64)
                }
                AuditField::Number(number) => Value::from(number),
                AuditField::Boolean(yes) => Value::from(yes),
                AuditField::List(list) => list.into_iter().map(std::borrow::Cow::into_owned).collect(),
            };
            (name.to_owned(), value)
        })
        .collect();
    Value::Object(object).to_string()
}
