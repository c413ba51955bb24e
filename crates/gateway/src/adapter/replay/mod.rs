//! Replays a recording in a CSV or Parquet file at its own speed, faster, slower, or one row per interval.
//!
//! - [`rows`]: the rows of a file; `parquet`: rows of a Parquet file; [`layout`]: which columns hold values.

pub mod layout;
#[cfg(feature = "parquet")]
mod parquet;
pub mod rows;

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::Kind;
use core::time::Duration;
use futures_util::future::BoxFuture;
use layout::Tags;
use rows::Rows;
use std::path::PathBuf;
use taktwerk_types::{BuiltInType, UtcTime};

/// Longest pause between two rows. Longer gaps in a recording are shortened.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// A recording to replay.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    delimiter: u8,
    speed: f64,
    repeats: bool,
    /// Whether source timestamps are the times in the file, instead of the time of playing.
    keeps_times: bool,
    tags: Tags,
}

impl Replay {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let (line, file) = fields.required("file", "\"recording.csv\"")?;
        let path =
            fields.path().parent().map(|folder| folder.join(&file)).unwrap_or_else(|| PathBuf::from(&file));
        if !path.is_file() {
            let hint = "paths start from the folder of this configuration";
            return Err(fields.mistake_in(
                line,
                "file",
                format!("there is no file {}", path.display()),
                hint,
            ));
        }
        if rows::is_parquet(&path) && cfg!(not(feature = "parquet")) {
            let hint = "install one with it: cargo install --path crates/cli --features parquet";
            return Err(fields.mistake_in(
                line,
                "file",
                "this program is built without the feature parquet",
                hint,
            ));
        }
        let tag = fields.text("tag_column")?;
        let value = fields.text("value_column")?;
        if tag.is_none() && value.is_some() {
            return Err(
                fields.mistake("value_column is for files with a tag_column", "set tag_column, or remove it")
            );
        }
        let delimiter = fields.word("delimiter", &[(",", b','), (";", b';'), ("tab", b'\t')])?;
        let speed = fields.number_at("speed")?;
        if let Some((line, speed)) = speed
            && !(1e-6..=1e6).contains(&speed)
        {
            return Err(fields.mistake_in(
                line,
                "speed",
                "is no speed",
                "write 1.0 for real time, 10.0 for ten times as fast",
            ));
        }
        let time = fields.text("time_column")?;
        let keeps_times = fields.word("timestamps", &[("now", false), ("recorded", true)])?.unwrap_or(false);
        if keeps_times && time.is_none() {
            let hint = "set time_column, or use timestamps = \"now\"";
            return Err(fields.mistake("recorded timestamps need a column with the times", hint));
        }
        let narrow = tag.map(|tag| (tag, value.unwrap_or_else(|| "value".to_owned())));
        let mut tags = Tags::default();
        (tags.narrow, tags.time) = (narrow, time);
        Ok(Self {
            path,
            delimiter: delimiter.unwrap_or(b','),
            speed: speed.map_or(1.0, |(_, speed)| speed),
            repeats: fields.flag("repeat")?.unwrap_or(true),
            keeps_times,
            tags,
        })
    }

    /// Replays the file once; returns the number of rows.
    async fn play(&self, feed: &Feed, writes: &mut Writes) -> Result<usize, Fault> {
        let target = self.path.display().to_string();
        let (mut rows, headers) = Rows::open(&self.path, self.delimiter)?;
        let layout = self.tags.layout(&headers).map_err(|error| Fault::other(target.as_str(), error))?;
        let interval = feed.settings().interval.unwrap_or(Duration::from_secs(1));
        let mut due = tokio::time::Instant::now();
        let mut last: Option<UtcTime> = None;
        let mut row: Vec<String> = Vec::new();
        let mut count = 0;
        feed.connected();
        // Rows are short and in the page cache, so reading one row does not block other sources.
        while rows.next(&mut row).map_err(|error| Fault::other(target.as_str(), error))? {
            let time = layout.time(&row);
            let pause = match (last, time) {
                (Some(last), Some(time)) => {
                    let nanos = u64::try_from(time.unix_nanos() - last.unix_nanos()).unwrap_or(0);
                    Duration::from_nanos(nanos).div_f64(self.speed).min(PAUSE_MAX)
                }
                (None, Some(_)) => Duration::ZERO,
                // Without times, one row per interval.
                (_, None) => interval.div_f64(self.speed),
            };
            last = time.or(last);
            due += pause;
            loop {
                tokio::select! {
                    _ = writes.next() => feed.statistics().add(Count::WriteErrors, 1),
                    () = tokio::time::sleep_until(due) => break,
                }
            }
            // A row without a time belongs to the one before it.
            let recorded = last.filter(|_| self.keeps_times);
            let readings = layout.readings(&row);
            feed.statistics().add(Count::Requests, 1);
            feed.deliver(readings.into_iter().map(|(position, reading)| (position, reading.at(recorded))));
            count += 1;
        }
        Ok(count)
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        loop {
            let rows = self.play(feed, writes).await?;
            if !self.repeats {
                // The last values stay until they expire.
                loop {
                    writes.next().await;
                    feed.statistics().add(Count::WriteErrors, 1);
                }
            }
            if rows == 0 {
                return Err(Fault::other(self.path.display().to_string(), "has no rows"));
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Adapter for Replay {
    fn describe(&self) -> String {
        format!("replay of {}", self.path.display())
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        if tag.access == Access::ReadWrite {
            return Err(fields.mistake("recorded values cannot be written", "use access = \"read\""));
        }
        let element = tag.kind.filter(|_| tag.scaling.is_identity()).unwrap_or(BuiltInType::Double);
        let kind = Kind::scalar(element);
        let column = fields.text("column")?.unwrap_or_else(|| tag.name.clone());
        self.tags.add(column, kind);
        Ok(Placement::Variable(kind))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}
