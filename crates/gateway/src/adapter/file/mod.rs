//! Files written by other programs: whole files read at an interval, and lines appended to log files.
//!
//! - `work`: blocking reads with a timeout; `tail`: appended lines; `open`: safe opening of files.

mod open;
pub mod tail;
mod work;

use crate::extract::Extractor;
use crate::fault::{Fault, plain};
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake, Setting};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Advice, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tail::{Start, Tail};
use taktwerk_types::UtcTime;
use tokio::time::{MissedTickBehavior, interval};
use work::Work;

/// A file that is read completely at an interval.
#[derive(Debug)]
pub struct WholeFile {
    place: Place,
    whole: Whole,
    unchanged_max: Option<Duration>,
    work: Work<io::Result<(Option<String>, SystemTime)>>,
}

/// How to distinguish a complete file from one that is being written.
#[derive(Debug, Clone)]
struct Whole {
    size_max: u64,
    /// The file must not have changed for this time.
    settle: Duration,
    /// The text at the end of a complete file.
    end: Option<String>,
}

/// Default time without changes.
const SETTLE: Duration = Duration::from_millis(100);
/// Attempts to read a file that changes during reading.
const TRIES: usize = 5;

/// A file to which lines are appended.
#[derive(Debug)]
pub struct Log {
    place: Place,
    check_every: Duration,
    tail: Arc<Mutex<Tail>>,
    work: Work<io::Result<Arc<tail::Step>>>,
}

/// Settings common to both.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    extractor: Extractor,
}

impl Place {
    fn take(fields: &mut Fields, example: &str) -> Result<Self, Mistake> {
        let (_, file) = fields.required("file", example)?;
        let path = fields.path().parent().unwrap_or(Path::new("")).join(file);
        let extractor = Extractor::take(fields, &path)?;
        Ok(Self { path, extractor })
    }

    fn target(&self) -> String {
        self.path.display().to_string()
    }

    fn failed(&self, error: &io::Error) -> Fault {
        Fault::other(self.target(), plain(error))
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields) -> Result<Placement, Mistake> {
        if tag.access == Access::ReadWrite {
            return Err(fields.mistake("tags of files cannot be written", "use access = \"read\""));
        }
        self.extractor.add_tag(tag, fields).map(Placement::Variable)
    }

    /// The file may be created later, so this is only a warning.
    fn review(&self) -> Vec<Advice> {
        if self.path.is_file() {
            return Vec::new();
        }
        let problem = format!("there is no file {} now", self.path.display());
        let hint = "check the path; it starts from the folder of this configuration".to_owned();
        vec![Advice { position: None, key: "file", problem, hint }]
    }
}

/// Reads the content, with the time of the last change; `None` while a program is writing the file.
fn read(path: &Path, whole: &Whole) -> io::Result<(Option<String>, SystemTime)> {
    let mut changed = SystemTime::UNIX_EPOCH;
    for _ in 0..TRIES {
        let text;
        (text, changed) = read_once(path, whole)?;
        if text.is_some() {
            return Ok((text, changed));
        }
    }
    Ok((None, changed))
}

fn read_once(path: &Path, whole: &Whole) -> io::Result<(Option<String>, SystemTime)> {
    let file = open::open_regular(path)?;
    let before = file.metadata()?;
    let changed = before.modified()?;
    // A program that writes the file in place may not be finished. Atomic replacement is not affected. Files of the kernel
    // (/proc, /sys) have no size and are generated on reading.
    let age = changed.elapsed().unwrap_or(whole.settle);
    if let Some(left) = whole.settle.checked_sub(age).filter(|left| !left.is_zero() && before.len() > 0) {
        std::thread::sleep(left);
    }
    let mut bytes = Vec::new();
    (&file).take(whole.size_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > whole.size_max {
        return Err(io::Error::other(format!("has more than {} bytes; set size_max", whole.size_max)));
    }
    let after = file.metadata()?;
    let is_same = (after.len(), after.modified()?) == (before.len(), changed);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let has_end = match &whole.end {
        None => true,
        Some(end) => match text.trim_end().strip_suffix(end.as_str()).map(str::len) {
            Some(len) => {
                text.truncate(len);
                true
            }
            None => false,
        },
    };
    Ok(((is_same && has_end).then_some(text), changed))
}

impl WholeFile {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        Ok(Self {
            place: Place::take(fields, "\"state.json\"")?,
            whole: Whole {
                size_max: fields.integer("size_max", 1, 64 << 20)?.unwrap_or(1 << 20),
                settle: fields.span("settle")?.unwrap_or(SETTLE).min(Duration::from_secs(60)),
                end: fields.text("end")?.map(|end| end.trim().to_owned()).filter(|end| !end.is_empty()),
            },
            unchanged_max: fields.span("unchanged_max")?,
            work: Work::default(),
        })
    }

    async fn look(&mut self, feed: &Feed) -> Result<Result<(), String>, Fault> {
        let (path, whole) = (self.place.path.clone(), self.whole.clone());
        // Waiting for the end of a write does not count towards the deadline.
        let deadline = feed.settings().deadline + whole.settle * TRIES as u32;
        let done = self.work.within(deadline, &self.place.target(), move || read(&path, &whole)).await?;
        let (text, changed) = done.map_err(|error| self.place.failed(&error))?;
        feed.connected();
        let Some(text) = text else {
            let reason = match &self.whole.end {
                Some(end) => format!("does not end with {end:?}, or is written while it is read"),
                None => "is written while it is read; set settle to less than the pauses of the program that writes it".to_owned(),
            };
            return Ok(Err(reason));
        };
        // If the clock was set back, a recent file may have a time in the future.
        let age = changed.elapsed().unwrap_or_else(|error| error.duration());
        if self.unchanged_max.is_some_and(|most| age > most) {
            // The file is no longer updated: its values expire.
            return Ok(Ok(()));
        }
        let changed = changed.duration_since(SystemTime::UNIX_EPOCH).ok().map(UtcTime::from_unix);
        // The file's time is the time of its values only if a program is known to update it.
        let changed = changed.filter(|_| self.unchanged_max.is_some());
        let readings = match self.place.extractor.whole(&text) {
            Ok(readings) => readings,
            Err(reason) => return Ok(Err(reason)),
        };
        let timed = |reading: Reading| {
            let time = reading.time.or(changed);
            reading.at(time)
        };
        feed.deliver(readings.into_iter().map(timed).enumerate());
        Ok(Ok(()))
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let mut ticks = interval(feed.settings().interval.unwrap_or(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut was_wrong = false;
        loop {
            tokio::select! {
                _ = writes.next() => feed.statistics().add(Count::WriteErrors, 1),
                _ = ticks.tick() => {
                    feed.statistics().add(Count::Requests, 1);
                    match self.look(feed).await? {
                        Ok(()) => was_wrong = false,
                        // Tolerated once, because it may be half written.
                        Err(_) if !was_wrong => {
                            feed.statistics().add(Count::Invalid, 1);
                            was_wrong = true;
                        }
                        Err(reason) => return Err(Fault::other(self.place.target(), reason)),
                    }
                }
            }
        }
    }
}

impl Log {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let mut place = Place::take(fields, "\"/var/log/machine.log\"")?;
        let start = fields.word("from", &[("end", Start::End), ("start", Start::Begin)])?;
        let line_max = fields.integer("line_max", 1, 1 << 20)?.unwrap_or(16 << 10) as usize;
        let check_every = fields.span("check_every")?.unwrap_or(Duration::from_millis(250));
        if let Some((line, setting)) = fields.take("columns") {
            let Setting::List(list) = setting else {
                let hint = "write columns = [\"time\", \"temperature\"]";
                return Err(fields.mistake_in(line, "columns", "this is no list", hint));
            };
            place.extractor.set_columns(list.iter().filter_map(|(_, name)| name.as_text()).collect());
        }
        let tail = Tail::new(place.path.clone(), start.unwrap_or(Start::End), line_max);
        Ok(Self {
            place,
            // A shorter interval would use a whole core.
            check_every: check_every.max(Duration::from_millis(1)),
            tail: Arc::new(Mutex::new(tail)),
            work: Work::default(),
        })
    }

    /// Reads new lines. Returns whether more may be available immediately.
    async fn look(&mut self, feed: &Feed) -> Result<bool, Fault> {
        let deadline = feed.settings().deadline;
        let tail = Arc::clone(&self.tail);
        let step = move || tail.lock().unwrap_or_else(PoisonError::into_inner).step();
        let step = self.work.within(deadline, &self.place.target(), step).await?;
        let step = step.map_err(|error| self.place.failed(&error))?;
        feed.connected();
        let (mut dropped, mut invalid) = (step.dropped, 0);
        let mut readings = Vec::new();
        let at_once = self.place.extractor.lines_at_once();
        for (at, line) in step.lines.iter().filter(|line| !line.trim().is_empty()).enumerate() {
            if at % at_once == at_once - 1 {
                if !readings.is_empty() {
                    feed.deliver(core::mem::take(&mut readings));
                }
                // Let other sources of this thread run.
                tokio::task::yield_now().await;
            }
            match self.place.extractor.line(line) {
                None => invalid += 1,
                Some(found) if found.is_empty() => dropped += 1,
                Some(found) => readings.extend(found),
            }
        }
        feed.statistics().add(Count::Dropped, dropped as usize);
        feed.statistics().add(Count::Invalid, invalid);
        if !readings.is_empty() {
            feed.deliver(readings);
        }
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).done();
        Ok(step.has_more)
    }

    /// Continues where a predecessor with the same name stopped, so that lines written during a change of settings are not lost.
    fn go_on(&self, feed: &Feed) {
        let name = feed.settings().name.as_str();
        let before = feed.plant().kept::<Mutex<Tail>>(name);
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, &self.tail))
            // If a hanging thread holds it, there is no position to continue from.
            && let Ok(mut before) = before.try_lock()
        {
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).go_on_from(&mut before);
        }
        feed.plant().keep(name, self.tail.clone());
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        self.go_on(feed);
        let mut ticks = interval(self.check_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = writes.next() => feed.statistics().add(Count::WriteErrors, 1),
                _ = ticks.tick() => {
                    feed.statistics().add(Count::Requests, 1);
                    while self.look(feed).await? {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
}

impl Adapter for WholeFile {
    fn describe(&self) -> String {
        format!("file {}", self.place.path.display())
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        self.place.add_tag(tag, fields)
    }

    fn review(&self, _: &SourceSettings, _: &[String]) -> Vec<Advice> {
        self.place.review()
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}

impl Adapter for Log {
    fn describe(&self) -> String {
        format!("lines of {}", self.place.path.display())
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        self.place.add_tag(tag, fields)
    }

    fn review(&self, _: &SourceSettings, _: &[String]) -> Vec<Advice> {
        self.place.review()
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::thread::{sleep, spawn};

    fn whole(settle: u64, end: Option<&str>) -> Whole {
        Whole { size_max: 1000, settle: Duration::from_millis(settle), end: end.map(str::to_owned) }
    }

    #[test]
    fn a_file_written_in_place_is_read_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.csv");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"temperature;21.5\n").unwrap();
        let writer = spawn(move || {
            for _ in 0..4 {
                sleep(Duration::from_millis(30));
                file.write_all(b"pressure;1.5\n").unwrap();
            }
        });
        let (text, _) = read(&path, &whole(500, None)).unwrap();
        assert_eq!(text.unwrap().lines().count(), 5, "not the first line alone");
        writer.join().unwrap();
        // A file unchanged for that time is read immediately; so is a kernel file.
        let begin = std::time::Instant::now();
        sleep(Duration::from_millis(600));
        assert!(read(&path, &whole(500, None)).unwrap().0.is_some());
        assert!(read(Path::new("/proc/self/stat"), &whole(60_000, None)).unwrap().0.is_some());
        assert!(begin.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_file_without_its_end_mark_is_incomplete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.txt");
        std::fs::write(&path, "21.5\n1.").unwrap();
        assert_eq!(read(&path, &whole(0, Some("END"))).unwrap().0, None);
        std::fs::write(&path, "21.5\n1.5\nEND\n").unwrap();
        assert_eq!(read(&path, &whole(0, Some("END"))).unwrap().0.as_deref(), Some("21.5\n1.5\n"));
    }
}
