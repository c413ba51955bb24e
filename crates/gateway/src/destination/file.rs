//! Files with one line per value: JSON or CSV.
//!
//! A record is always one line, also if its text has line breaks. So no text of a device can look like the beginning of a record,
//! and an incomplete record is what follows the last line break.
//!
//! If the process is killed after writing a batch, the key in the last line of its queue identifies the last written record, so
//! that no value is written twice. Several writers of a folder take turns: each locks it while it writes a batch. So the last
//! line of a queue may be behind many lines of others.

mod search;

use super::block::Record;
use super::settings::DestinationSettings;
use super::template::status;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::value::to_json;
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use taktwerk_files::FileLock;

/// How long a batch waits for another writer of the folder, and how often it looks.
const TURN_MAX: Duration = Duration::from_secs(2);
const TURN_EVERY: Duration = Duration::from_millis(10);
const CSV_HEAD: &str = "key,time,received,tag,status,value\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    JsonLines,
    Csv,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
        }
    }
}

/// Files in a directory.
#[derive(Debug)]
pub struct Files {
    settings: Arc<FileSettings>,
}

#[derive(Debug)]
struct FileSettings {
    folder: PathBuf,
    format: Format,
    bytes_max: u64,
    sync: bool,
    /// The queue of the last batch.
    queue: Mutex<Option<(String, Arc<Mutex<Writing>>)>>,
}

/// Writes of a queue. A write past its deadline continues in the background, also after the settings of its destination have
/// changed. The next write waits for it, and then knows its records.
#[derive(Debug, Default)]
struct Writing {
    /// The number of the queue's last record in the files, if it has any; `None` if it is unknown.
    last: Option<Option<u64>>,
    /// Parked records that were written, as long as they may be sent again. Their numbers are not in the order of the writes.
    parked: BTreeSet<u64>,
    /// Whether the log says that the file system has no locks.
    is_warned: bool,
}

/// The folder, format and queue of each [`Writing`].
type Writers = BTreeMap<(PathBuf, &'static str, String), Weak<Mutex<Writing>>>;

/// Those of all destinations in this process.
static WRITERS: Mutex<Writers> = Mutex::new(Writers::new());

impl Files {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let (_, folder) = fields.required("folder", "\"values\"")?;
        let formats = [("json", Format::JsonLines), ("csv", Format::Csv)];
        let settings = FileSettings {
            folder: fields.path().parent().map(|parent| parent.join(&folder)).unwrap_or_default(),
            format: fields.word("format", &formats)?.unwrap_or(Format::JsonLines),
            bytes_max: fields.integer("file_mb_max", 1, 1 << 20)?.unwrap_or(256) << 20,
            sync: settings.limits.sync,
            queue: Mutex::default(),
        };
        Ok(Self { settings: Arc::new(settings) })
    }
}

impl FileSettings {
    /// The file of a day: `2026-01-02.jsonl`, then `2026-01-02.1.jsonl` when it is full. The first record of a batch determines
    /// the day.
    fn file(&self, day: &str, part: u32) -> PathBuf {
        let end = self.format.extension();
        let name = if part == 0 { format!("{day}.{end}") } else { format!("{day}.{part}.{end}") };
        self.folder.join(name)
    }

    /// Opens the last existing file of the day, or the next one if it is full, or if a folder or the like has its name.
    fn open(&self, day: &str) -> io::Result<(File, u64)> {
        let mut part = 0;
        while self.file(day, part + 1).exists() {
            part += 1;
        }
        loop {
            let path = self.file(day, part);
            let failed = |error: io::Error| named("write", &path, &error);
            if !is_occupied(&path).map_err(failed)? {
                let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
                let mut file = opened.map_err(failed)?;
                let len = file.metadata().map_err(failed)?.len();
                let len = repair(&mut file, len).map_err(failed)?;
                if len < self.bytes_max {
                    return Ok((file, len));
                }
            }
            part += 1;
        }
    }

    fn line(&self, batch: &Batch, record: &Record, out: &mut Vec<u8>) -> Result<(), csv::Error> {
        let key = batch.key(record);
        let status = status(record);
        let (time, received) = (record.time.to_string(), record.received.to_string());
        let value = to_json(&record.value);
        match self.format {
            Format::JsonLines => {
                let line = serde_json::json!({
                    "key": key, "time": time, "received": received, "tag": &*record.tag, "status": status,
                    "value": value,
                });
                out.extend_from_slice(line.to_string().as_bytes());
                out.push(b'\n');
            }
            Format::Csv => {
                let value = match &value {
                    serde_json::Value::String(text) => cell(text),
                    other => Cow::Owned(other.to_string()),
                };
                let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
                let tag = cell(&record.tag);
                writer.write_record([&*key, &time, &received, &tag, &status, &value])?;
                writer.flush()?;
            }
        }
        Ok(())
    }

    /// The writes of a queue in this folder, also those that other settings have begun.
    fn writing(&self, queue: &str) -> Arc<Mutex<Writing>> {
        let mut own = lock(&self.queue);
        if let Some((_, writing)) = own.as_ref().filter(|(known, _)| known == queue) {
            return Arc::clone(writing);
        }
        let mut all = lock(&WRITERS);
        all.retain(|_, writing| writing.strong_count() > 0);
        let place = all.entry((self.folder.clone(), self.format.extension(), queue.to_owned())).or_default();
        let writing = place.upgrade().unwrap_or_default();
        *place = Arc::downgrade(&writing);
        *own = Some((queue.to_owned(), Arc::clone(&writing)));
        writing
    }

    fn write(&self, batch: &Batch) -> io::Result<()> {
        let writing = self.writing(&batch.queue);
        let mut writing = lock(&writing);
        std::fs::create_dir_all(&self.folder)?;
        // Others may write meanwhile: all that write lines of this queue have its lock.
        let written = match writing.last {
            Some(number) => number,
            None => search::last_number(&self.folder, self.format, batch)?,
        };
        writing.last = Some(written);
        // Another writer would cut lines that this one is writing. Not longer than for a batch: if a lease passes to another gateway,
        // that one writes here. Declared before the files, so that they are closed before it is released.
        let turn = self.turn()?;
        if let (Some(warning), false) = (turn.warning(&self.folder), writing.is_warned) {
            tracing::warn!("{warning}");
            writing.is_warned = true;
        }
        let day = batch.records.first().map(|record| record.received.to_string()).unwrap_or_default();
        let day = day.split('T').next().unwrap_or_default();
        let (mut file, len) = self.open(day)?;
        let mut out = Vec::new();
        if len == 0 && self.format == Format::Csv {
            out.extend_from_slice(CSV_HEAD.as_bytes());
        }
        let is_new = |number: u64| match batch.is_parked {
            true => !writing.parked.contains(&number),
            false => written.is_none_or(|last| number > last),
        };
        for record in batch.records.iter().filter(|record| is_new(record.number)) {
            self.line(batch, record, &mut out).map_err(io::Error::other)?;
        }
        let done = file.write_all(&out).and_then(|()| if self.sync { file.sync_data() } else { Ok(()) });
        match done {
            Ok(()) if batch.is_parked => {
                let numbers = batch.records.iter().map(|record| record.number);
                // What has not come again was confirmed.
                if numbers.clone().all(is_new) {
                    writing.parked.clear();
                }
                writing.parked.extend(numbers);
            }
            Ok(()) => {
                writing.last = Some(batch.records.last().map(|record| record.number).max(written));
            }
            // Without locks, others may have written behind it. Then the next write searches how much of it there is.
            Err(_) if turn.warning(&self.folder).is_some() || file.set_len(len).is_err() => {
                writing.last = None
            }
            Err(_) => {}
        }
        done
    }

    /// Locks the folder as soon as no other writer has it.
    fn turn(&self) -> io::Result<FileLock> {
        // Each format has its own files.
        let name = format!("{}.lock", self.format.extension());
        let end = Instant::now() + TURN_MAX;
        loop {
            match FileLock::of_folder(&self.folder, &name) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {
                    std::thread::sleep(TURN_EVERY);
                }
                lock => return lock,
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text in a CSV file. A text with line breaks becomes a JSON string, which has none. A text that begins with a quotation mark
/// becomes a JSON string, too, so that readers can tell the two apart.
fn cell(text: &str) -> Cow<'_, str> {
    if text.starts_with('"') || text.contains(['\n', '\r']) {
        Cow::Owned(serde_json::Value::from(text).to_string())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether the name of a file leads to something else: a folder, a pipe, a socket, or nothing.
fn is_occupied(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(found) => {
            let kind = found.file_type();
            Ok(kind.is_dir() || kind.is_fifo() || kind.is_socket())
        }
        Err(error) if leads_nowhere(&error) => Ok(path.is_symlink()),
        Err(error) => Err(error),
    }
}

/// Whether no file is there, also behind a link. After other errors, such as of a disk, there may be one with records.
fn leads_nowhere(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// An error with the name of a file of the folder.
fn named(doing: &str, path: &Path, error: &io::Error) -> io::Error {
    let name = path.file_name().map_or(path, Path::new).display();
    io::Error::new(error.kind(), format!("cannot {doing} {name}: {}", crate::fault::plain(error)))
}

/// Truncates an incomplete last line. Returns the new length.
fn repair(file: &mut File, len: u64) -> io::Result<u64> {
    let (mut end, mut kept) = (len, 0);
    // A line may be longer than a block.
    while end > 0 {
        let start = end.saturating_sub(search::BLOCK);
        let block = search::read_block(file, start, end)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            kept = start + at as u64 + 1;
            break;
        }
        end = start;
    }
    if kept < len {
        file.set_len(kept)?;
    }
    Ok(kept)
}

impl Sink for Files {
    fn describe(&self) -> String {
        format!("files in {}", self.settings.folder.display())
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(async move {
            let (settings, copy) = (Arc::clone(&self.settings), batch.clone());
            let target = self.settings.folder.display().to_string();
            match tokio::task::spawn_blocking(move || settings.write(&copy)).await {
                Ok(Ok(())) => Ok(Taken::default()),
                Ok(Err(error)) => Err(Fault::other(target, crate::fault::plain(&error))),
                Err(error) => Err(Fault::other(target, error)),
            }
        })
    }
}

#[cfg(test)]
mod tests;
