//! Audit records as lines of JSON in files.
//!
//! Dedicated threads write, so a slow or full disk delays no client. Records that cannot be queued or written are
//! counted by class, and the next line that can be written contains the counts. Records of strangers go to a second
//! file (`audit.jsonl.strangers`) with its own queue and thread. A flood of them can therefore not displace the other
//! records.
//!
//! Written lines reach the operating system at once, and the disk within [`SYNC`] and at the end. A crash of the
//! program loses the queue. A power failure loses the last second.

mod rotating;

pub use rotating::Rotation;

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use rotating::RotatingFile;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;
use taktwerk_files::FileLock;
use taktwerk_net::AuditSink;
use taktwerk_net::server::audit::AuditTracing;
use taktwerk_server::audit::{AuditClass, AuditField, AuditRecord};

/// Maximum number of queued lines.
const QUEUE_MAX: usize = 4096;
/// Maximum number of lines per write.
const BATCH_MAX: usize = 1024;
/// Maximum time until written lines are synced to the disk.
const SYNC: Duration = Duration::from_secs(1);

/// Suffix of the file for records of strangers.
const STRANGERS: &str = ".strangers";

/// Writes audit records to files and to the log. Dropping it waits until all records are written.
#[derive(Debug)]
pub struct AuditFile {
    known: Log,
    strangers: Log,
    /// Released after the last records. It keeps a second server from rotating the same file.
    _lock: Option<FileLock>,
}

impl AuditFile {
    /// Opens both files for appending. Only their owner can read them.
    ///
    /// # Errors
    /// A file cannot be opened or is used by another server, or a thread cannot be started.
    pub fn open(path: &Path, rotation: &Rotation) -> io::Result<Self> {
        let mut strangers = path.as_os_str().to_owned();
        strangers.push(STRANGERS);
        // Devices and pipes may have several writers, so they are not locked. Opening a pipe to find out would show its
        // reader an early end.
        let is_file = std::fs::metadata(path).map_or(true, |found| found.is_file());
        let lock = if is_file { Some(FileLock::of(path)?) } else { None };
        if let Some(warning) = lock.as_ref().and_then(|lock| lock.warning(path)) {
            tracing::warn!("{warning}");
        }
        Ok(Self {
            _lock: lock,
            known: Log::open(path, rotation.clone())?,
            strangers: Log::open(Path::new(&strangers), rotation.clone())?,
        })
    }
}

impl AuditSink for AuditFile {
    fn record(&self, record: &AuditRecord) {
        AuditTracing.record(record);
        let log = if record.class == AuditClass::Stranger { &self.strangers } else { &self.known };
        log.write(record);
    }
}

/// Records that were lost, by class.
type Lost = [AtomicU64; AuditClass::ALL.len()];

fn lose(lost: &Lost, class: AuditClass, count: u64) {
    if let Some(lost) = lost.get(class.index()) {
        lost.fetch_add(count, Ordering::Relaxed);
    }
}

/// A line and the class of its record.
type Line = (AuditClass, String);

/// One file with its queue and its writer thread.
#[derive(Debug)]
struct Log {
    lines: Option<SyncSender<Line>>,
    lost: Arc<Lost>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let file = RotatingFile::open(path, rotation)?;
        let (lines, receiver) = sync_channel(QUEUE_MAX);
        let lost = Arc::<Lost>::default();
        let path = path.to_owned();
        let writer =
            Writer { path, file, lost: Arc::clone(&lost), is_failing: false, synced: Instant::now() };
        let thread = std::thread::Builder::new().name("audit".to_owned()).stack_size(128 << 10);
        let thread = thread.spawn(move || writer.run(&receiver))?;
        Ok(Self { lines: Some(lines), lost, thread: Some(thread) })
    }

    fn write(&self, record: &AuditRecord) {
        let Some(lines) = &self.lines else { return };
        match lines.try_send((record.class, line(record))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => lose(&self.lost, record.class, 1),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Closing the channel ends the thread after it has written everything.
        self.lines = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the audit thread has panicked: the last records may be missing in the file");
        }
    }
}

struct Writer {
    path: PathBuf,
    file: RotatingFile,
    lost: Arc<Lost>,
    is_failing: bool,
    synced: Instant,
}

impl Writer {
    fn run(mut self, lines: &Receiver<Line>) {
        loop {
            match lines.recv_timeout(SYNC) {
                Ok(first) => {
                    let batch: Vec<Line> =
                        core::iter::once(first).chain(lines.try_iter()).take(BATCH_MAX).collect();
                    self.write(&batch);
                    if self.synced.elapsed() >= SYNC {
                        self.sync();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.write(&[]);
                    self.sync();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.write(&[]);
                    self.sync();
                    return;
                }
            }
        }
    }

    fn sync(&mut self) {
        self.synced = Instant::now();
        let synced = self.file.sync();
        self.report(&synced);
    }

    /// Writes lines, and the number of records lost before.
    fn write(&mut self, batch: &[Line]) {
        let mut text = String::new();
        let mut lost = Vec::new();
        for (class, count) in AuditClass::ALL.iter().zip(&*self.lost) {
            let count = count.swap(0, Ordering::Relaxed);
            if count > 0 {
                lost.push((*class, count));
                let class = class.name();
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "{{\"SourceName\":\"Server/Audit\",\"LostClass\":\"{class}\",\"LostCount\":{count}}}"
                );
            }
        }
        for (_, line) in batch {
            text.push_str(line);
            text.push('\n');
        }
        if text.is_empty() {
            return;
        }
        let written = self.file.append(text.as_bytes());
        self.report(&written);
        if written.is_err() {
            lost.iter().for_each(|(class, count)| lose(&self.lost, *class, *count));
            batch.iter().for_each(|(class, _)| lose(&self.lost, *class, 1));
        }
    }

    /// Logs only the first failure and the first success after it.
    fn report(&mut self, written: &io::Result<()>) {
        let path = self.path.display();
        match written {
            Err(error) if !self.is_failing => {
                tracing::error!(%path, %error, "cannot write audit records; lost records are counted, and the counts are written later");
            }
            Ok(()) if self.is_failing => tracing::warn!(%path, "audit records can be written again"),
            _ => {}
        }
        self.is_failing = written.is_err();
    }
}

/// A record as one line of JSON with the specification's field names.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;
    use taktwerk_types::{StatusCode, UtcTime};

    fn record(class: AuditClass) -> AuditRecord {
        let mut record = AuditRecord::overlooked(UtcTime::NULL, StatusCode::BAD_CERTIFICATE_UNTRUSTED, "AB");
        record.class = class;
        record
    }

    fn lines(path: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn records_of_strangers_go_to_their_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let rotation = Rotation { bytes_max: 4096, files: 2, ..Rotation::default() };
        let file = AuditFile::open(&path, &rotation).unwrap();
        file.record(&record(AuditClass::Trusted));
        for _ in 0..50_000 {
            file.record(&record(AuditClass::Stranger));
        }
        file.record(&record(AuditClass::KnownUser));
        drop(file);
        assert_eq!(lines(&path).len(), 2, "a flood of strangers does not displace known users");
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 4, "the file, two files of strangers, and the lock");
    }

    /// Two servers would mix their lines and rotate each other's file.
    #[test]
    fn an_audit_file_belongs_to_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let first = AuditFile::open(&path, &Rotation::default()).unwrap();
        let refused = AuditFile::open(&path, &Rotation::default()).unwrap_err().to_string();
        assert!(refused.contains("audit.jsonl is used by this process"), "{refused}");
        drop(first);
        AuditFile::open(&path, &Rotation::default()).unwrap();
    }

    /// Opening a pipe without a reader would block for ever.
    #[test]
    fn a_pipe_without_a_reader_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(AuditFile::open(&path, &Rotation::default()).map(|_| ())));
        assert!(told.recv_timeout(Duration::from_secs(20)).expect("it must not wait").is_err());
    }

    #[test]
    fn lost_records_are_counted_by_class() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut writer = Writer {
            path: path.clone(),
            file: RotatingFile::open(&path, Rotation::default()).unwrap(),
            lost: Arc::default(),
            is_failing: false,
            synced: Instant::now(),
        };
        lose(&writer.lost, AuditClass::Stranger, 7);
        lose(&writer.lost, AuditClass::Trusted, 1);
        writer.write(&[(AuditClass::Trusted, line(&record(AuditClass::Trusted)))]);
        let said = lines(&path);
        assert_eq!(said.len(), 3);
        assert_eq!((&said[0]["LostClass"], &said[0]["LostCount"]), (&"Trusted".into(), &1.into()));
        assert_eq!((&said[1]["LostClass"], &said[1]["LostCount"]), (&"Stranger".into(), &7.into()));
    }

    /// A full disk is reported, blocks no client, and lost records are counted.
    #[test]
    fn a_full_disk_is_survived() {
        let full = Path::new("/dev/full");
        if !std::fs::metadata(full).is_ok_and(|metadata| metadata.file_type().is_char_device()) {
            return;
        }
        let file = RotatingFile::open(full, Rotation::default()).unwrap();
        let path = full.to_owned();
        let lost = Arc::<Lost>::default();
        let mut writer =
            Writer { path, file, lost: Arc::clone(&lost), is_failing: false, synced: Instant::now() };
        let batch = [(AuditClass::Trusted, "{}".to_owned()), (AuditClass::Configuration, "{}".to_owned())];
        writer.write(&batch);
        writer.write(&batch);
        assert!(writer.is_failing);
        let count = |class: AuditClass| lost[class.index()].load(Ordering::Relaxed);
        assert_eq!((count(AuditClass::Trusted), count(AuditClass::Configuration)), (2, 2));
        // Writing continues as soon as there is space.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        writer.file = RotatingFile::open(&path, Rotation::default()).unwrap();
        writer.write(&[]);
        assert!(!writer.is_failing);
        assert_eq!(lines(&path).len(), 2);
        assert_eq!(count(AuditClass::Trusted), 0);
    }
}
