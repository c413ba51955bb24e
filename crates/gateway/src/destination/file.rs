//! Files with one line per value: JSON or CSV.
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
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use taktwerk_files::FileLock;

/// Bytes at the end of a file that are searched for its last line.
const TAIL: u64 = 1 << 20;
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
    /// A write past its deadline continues in the background. The next write waits for it, and then knows its records.
    writing: Mutex<Writing>,
}

#[derive(Debug, Default)]
struct Writing {
    /// The queue, and the number of its last record in the files, if it has any.
    last: Option<(String, Option<u64>)>,
    /// Whether the log says that the file system has no locks.
    is_warned: bool,
}

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
            writing: Mutex::default(),
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

    /// Opens the last existing file of the day, or the next one if it is full.
    fn open(&self, day: &str) -> io::Result<(File, u64)> {
        let mut part = 0;
        while self.file(day, part + 1).exists() {
            part += 1;
        }
        loop {
            let path = self.file(day, part);
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
            let mut len = file.metadata()?.len();
            if len < self.bytes_max {
                len = repair(&mut file, len)?;
                return Ok((file, len));
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
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
                writer.write_record([&*key, &time, &received, &record.tag, &status, &value])?;
                writer.flush()?;
            }
        }
        Ok(())
    }

    fn write(&self, batch: &Batch) -> io::Result<()> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::create_dir_all(&self.folder)?;
        // Others may write meanwhile: only this queue's writer writes its lines.
        let known = writing.last.take().filter(|(queue, _)| *queue == batch.queue);
        let written = match known {
            Some((_, number)) => number,
            None => search::last_number(&self.folder, self.format.extension(), &batch.queue)?,
        };
        writing.last = Some((batch.queue.clone(), written));
        // Another writer would cut lines that this one is writing. Not longer than for a batch: if a lease passes to another gateway,
        // that one writes here. Declared before the files, so that they are closed before it is released.
        let lock = self.turn()?;
        if let (Some(warning), false) = (lock.warning(&self.folder), writing.is_warned) {
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
        for record in batch.records.iter().filter(|record| written.is_none_or(|last| record.number > last)) {
            self.line(batch, record, &mut out).map_err(io::Error::other)?;
        }
        let done = file.write_all(&out).and_then(|()| if self.sync { file.sync_data() } else { Ok(()) });
        match done {
            Ok(()) => {
                let last = batch.records.last().map(|record| record.number).max(written);
                writing.last = Some((batch.queue.clone(), last));
            }
            // Without locks, others may have written behind it. Then the next write searches how much of it there is.
            Err(_) if lock.warning(&self.folder).is_some() || file.set_len(len).is_err() => {
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

/// Truncates an incomplete last line. Returns the new length.
fn repair(file: &mut File, len: u64) -> io::Result<u64> {
    let tail = tail(file, len)?;
    let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let kept = len - (tail.len() - whole) as u64;
    if kept < len {
        file.set_len(kept)?;
    }
    Ok(kept)
}

fn tail(file: &mut File, len: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    // Not what others append meanwhile.
    file.take(len.min(TAIL)).read_to_end(&mut tail)?;
    Ok(tail)
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
mod tests {
    use super::*;
    use std::path::Path;
    use taktwerk_types::{StatusCode, UtcTime};

    fn batch(numbers: core::ops::Range<u64>) -> Batch {
        let time = UtcTime::parse("2026-01-02T03:04:05Z").unwrap();
        let record = |number: u64| Record {
            number,
            tag: "Line, 1/T".into(),
            value: format!("v{number}\n00ff-9").as_str().into(),
            status: StatusCode::GOOD,
            time,
            received: time,
        };
        Batch { queue: "00ff".to_owned(), records: numbers.map(record).collect(), is_last: true }
    }

    fn lines(settings: &FileSettings) -> String {
        std::fs::read_to_string(settings.file("2026-01-02", 0)).unwrap()
    }

    fn writer(folder: &Path, format: Format) -> FileSettings {
        FileSettings {
            folder: folder.to_owned(),
            format,
            bytes_max: 1 << 20,
            sync: false,
            writing: Mutex::default(),
        }
    }

    #[test]
    fn a_batch_that_is_sent_again_is_written_once() {
        for format in [Format::JsonLines, Format::Csv] {
            let folder = tempfile::tempdir().unwrap();
            let settings = FileSettings { sync: true, ..writer(folder.path(), format) };
            settings.write(&batch(1..4)).unwrap();
            let once = lines(&settings);
            settings.write(&batch(1..4)).unwrap();
            assert_eq!(lines(&settings), once);
            settings.write(&batch(1..6)).unwrap();
            let all = lines(&settings);
            for number in 1..6 {
                assert_eq!(all.matches(&format!("00ff-{number}")).count(), 1, "{all}");
            }
            // The process was killed in the middle of a line.
            let path = settings.file("2026-01-02", 0);
            std::fs::write(&path, format!("{all}{{\"key\":\"00ff-6\",\"ti")).unwrap();
            settings.write(&batch(6..7)).unwrap();
            let repaired = lines(&settings);
            assert!(repaired.starts_with(&all) && repaired.matches("00ff-6").count() == 1, "{repaired}");
        }
    }

    /// The process was killed before its queue had noted that a batch was taken, and others have written since.
    #[test]
    fn a_writer_that_starts_again_finds_its_last_record_behind_those_of_others() {
        for format in [Format::JsonLines, Format::Csv] {
            let folder = tempfile::tempdir().unwrap();
            let settings = writer(folder.path(), format);
            settings.write(&batch(1..4)).unwrap();
            let other = writer(folder.path(), format);
            // More than one part of a day, and the next day.
            let day = UtcTime::parse("2026-01-03T03:04:05Z").unwrap();
            for (numbers, received) in
                [(1..30_000, None), (30_000..60_000, None), (60_000..60_002, Some(day))]
            {
                let mut others = Batch { queue: "aaaa".to_owned(), ..batch(numbers) };
                if let Some(received) = received {
                    others.records.iter_mut().for_each(|record| record.received = received);
                }
                other.write(&others).unwrap();
            }
            assert!(settings.file("2026-01-02", 1).exists() && settings.file("2026-01-03", 0).exists());
            writer(folder.path(), format).write(&batch(1..6)).unwrap();
            let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
            let texts: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
            for number in 1..6 {
                let key = |line: &&str| {
                    let key = line.split(['"', ',']).find(|part| part.starts_with("00ff-"));
                    key == Some(&*format!("00ff-{number}")) && !line.ends_with('"')
                };
                assert_eq!(texts.lines().filter(key).count(), 1, "{format:?} {number}");
            }
        }
    }

    /// Two gateways with leases, of which one polls the sources at a time, and both live on.
    #[test]
    fn writers_of_a_folder_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let of = |format| writer(folder.path(), format);
        let (first, second, other) = (of(Format::JsonLines), of(Format::JsonLines), of(Format::Csv));
        let theirs = |numbers| Batch { queue: "ffff".to_owned(), ..batch(numbers) };
        for round in 0..3 {
            first.write(&batch(round + 1..round + 2)).unwrap();
            second.write(&theirs(round + 1..round + 2)).unwrap();
            // Sent again, because the answer came too late.
            first.write(&batch(round + 1..round + 2)).unwrap();
        }
        // Both at once.
        std::thread::scope(|scope| {
            scope.spawn(|| (4..50).for_each(|number| first.write(&batch(number..number + 1)).unwrap()));
            scope.spawn(|| (4..50).for_each(|number| second.write(&theirs(number..number + 1)).unwrap()));
        });
        let all = lines(&first);
        let keys = all.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["key"].as_str().unwrap().to_owned()
        });
        let mut keys: Vec<String> = keys.collect();
        keys.sort_unstable();
        let mut expected: Vec<String> =
            (1..50).flat_map(|number| [format!("00ff-{number}"), format!("ffff-{number}")]).collect();
        expected.sort_unstable();
        assert_eq!(keys, expected);
        other.write(&batch(2..3)).unwrap();
    }

    /// Another writer would repair the line that is being written.
    #[test]
    fn a_folder_that_another_writer_keeps_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let settings = writer(folder.path(), Format::JsonLines);
        let lock = FileLock::of_folder(folder.path(), "jsonl.lock").unwrap();
        let refused = settings.write(&batch(1..2)).unwrap_err().to_string();
        assert!(refused.contains("is used by"), "{refused}");
        assert!(!settings.file("2026-01-02", 0).exists());
        drop(lock);
        settings.write(&batch(1..2)).unwrap();
        assert!(lines(&settings).contains("00ff-1"));
    }

    /// A search may read many lines of others. They write meanwhile, and a retry does not read them again.
    #[test]
    fn a_search_needs_no_turn_and_happens_once() {
        let folder = tempfile::tempdir().unwrap();
        writer(folder.path(), Format::JsonLines).write(&batch(1..4)).unwrap();
        let settings = writer(folder.path(), Format::JsonLines);
        let lock = FileLock::of_folder(folder.path(), "jsonl.lock").unwrap();
        settings.write(&batch(3..5)).unwrap_err();
        drop(lock);
        // Another search would find this line.
        let path = settings.file("2026-01-02", 0);
        std::fs::write(&path, lines(&settings) + "{\"key\":\"00ff-9\"}\n").unwrap();
        settings.write(&batch(3..5)).unwrap();
        let all = lines(&settings);
        assert!([3, 4].iter().all(|number| all.matches(&format!("\"00ff-{number}\"")).count() == 1), "{all}");
    }

    /// A device that is always full instead of a full disk: it cannot be truncated, so the lines are searched again.
    #[test]
    fn a_batch_whose_write_failed_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let settings = writer(folder.path(), Format::JsonLines);
        let path = settings.file("2026-01-02", 0);
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        settings.write(&batch(1..4)).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        // What the device would have taken of it.
        writer(folder.path(), Format::JsonLines).write(&batch(1..3)).unwrap();
        settings.write(&batch(1..4)).unwrap();
        assert_eq!(lines(&settings).matches("\"00ff-").count(), 3);
    }

    #[test]
    fn the_lines_of_others_do_not_hide_the_last_record() {
        let folder = tempfile::tempdir().unwrap();
        let settings = writer(folder.path(), Format::JsonLines);
        settings.write(&batch(1..4)).unwrap();
        let path = settings.file("2026-01-02", 0);
        let line = format!("{{\"key\":\"ffff-1\",\"value\":\"{}\"}}\n", "x".repeat(TAIL as usize));
        std::fs::write(&path, lines(&settings) + &line).unwrap();
        let settings = FileSettings { bytes_max: 1 << 30, ..settings };
        settings.write(&batch(1..6)).unwrap();
        assert_eq!(lines(&settings).matches("\"00ff-").count(), 5);
    }

    #[test]
    fn a_full_file_is_followed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let settings = FileSettings { bytes_max: 10, ..writer(folder.path(), Format::JsonLines) };
        settings.write(&batch(1..2)).unwrap();
        settings.write(&batch(1..2)).unwrap();
        settings.write(&batch(2..3)).unwrap();
        let read = |part| std::fs::read_to_string(settings.file("2026-01-02", part)).unwrap();
        assert!(read(0).contains("00ff-1") && read(1).contains("00ff-2") && !read(1).contains("00ff-1\""));
    }
}
