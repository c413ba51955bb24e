//! A recording in a CSV or Parquet file, played again at its own speed, faster, slower, or one row per interval.
//!
//! - `rows`: the rows of a file; `parquet`: those of a Parquet file.

#[cfg(feature = "parquet")]
mod parquet;
mod rows;

use crate::fault::Fault;
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake};
use crate::json_time::time_of;
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::{Kind, parse};
use core::time::Duration;
use futures_util::future::BoxFuture;
use rows::Rows;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::PathBuf;
use taktwerk_types::{BuiltInType, StatusCode, UtcTime};

/// Longest pause between two rows: a gap in a recording is not waited for longer.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// A file that is played.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    delimiter: u8,
    time: Option<String>,
    /// The columns with the name of a tag and its value, if each row has one value.
    narrow: Option<(String, String)>,
    speed: f64,
    repeats: bool,
    tags: Vec<(String, Kind)>,
    /// The positions of tags by their column, or by what stands in the tag column.
    by_column: HashMap<String, Vec<usize>>,
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
        Ok(Self {
            path,
            delimiter: delimiter.unwrap_or(b','),
            time: fields.text("time_column")?,
            narrow: tag.map(|tag| (tag, value.unwrap_or_else(|| "value".to_owned()))),
            speed: speed.map_or(1.0, |(_, speed)| speed),
            repeats: fields.flag("repeat")?.unwrap_or(true),
            tags: Vec::new(),
            by_column: HashMap::new(),
        })
    }

    /// Plays the file once; gives the number of rows.
    async fn play(&self, feed: &Feed, writes: &mut Writes) -> Result<usize, Fault> {
        let target = self.path.display().to_string();
        let (mut rows, headers) = Rows::open(&self.path, self.delimiter)?;
        let column = |name: &str| {
            let found = headers.iter().position(|header| header.as_str() == name);
            found.ok_or_else(|| {
                let names = headers.join(", ");
                Fault::other(target.clone(), format!("there is no column {name:?}; there are {names}"))
            })
        };
        let time_column = self.time.as_deref().map(column).transpose()?;
        // Where the value of each tag is, or the tag and the value are.
        let narrow = match &self.narrow {
            Some((tag, value)) => Some((column(tag)?, column(value)?)),
            None => None,
        };
        let columns = match narrow {
            None => self.tags.iter().map(|(name, _)| column(name)).collect::<Result<Vec<_>, _>>()?,
            Some(_) => Vec::new(),
        };
        // Our own files have texts in a column beside the numbers.
        let text = column("text").ok();
        let interval = feed.settings().interval.unwrap_or(Duration::from_secs(1));
        let mut due = tokio::time::Instant::now();
        let mut last: Option<UtcTime> = None;
        let mut row: Vec<String> = Vec::new();
        let mut count = 0;
        feed.connected();
        // Rows are short and come from the page cache; a row at a time does not hold up other sources.
        while rows.next(&mut row).map_err(|error| Fault::other(target.as_str(), error))? {
            let time = time_column.and_then(|at| row.get(at)).and_then(|cell| time_of_cell(cell));
            let pause = match (last, time) {
                (Some(last), Some(time)) => {
                    let nanos = u64::try_from(time.unix_nanos() - last.unix_nanos()).unwrap_or(0);
                    Duration::from_nanos(nanos).div_f64(self.speed).min(PAUSE_MAX)
                }
                (None, Some(_)) => Duration::ZERO,
                // Without times one row per interval.
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
            let reading = |kind: &Kind, cell: &str| {
                parse(kind.element, cell)
                    .map_or_else(|| Reading::bad(StatusCode::BAD_TYPE_MISMATCH), Reading::good)
            };
            let cell = |at: usize| row.get(at).map(String::as_str).filter(|cell| !cell.is_empty());
            let readings: Vec<(usize, Reading)> = match narrow {
                Some((tag, value)) => {
                    let name = cell(tag).unwrap_or_default();
                    let value = cell(value).or_else(|| cell(text?));
                    let found = self.by_column.get(name).into_iter().flatten().filter_map(|position| {
                        let (_, kind) = self.tags.get(*position)?;
                        Some((*position, reading(kind, value?)))
                    });
                    found.collect()
                }
                None => {
                    let found = self.tags.iter().zip(&columns).enumerate();
                    let found = found.filter_map(|(position, ((_, kind), column))| {
                        Some((position, reading(kind, cell(*column)?)))
                    });
                    found.collect()
                }
            };
            feed.statistics().add(Count::Requests, 1);
            feed.deliver(readings);
            count += 1;
        }
        Ok(count)
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        loop {
            let rows = self.play(feed, writes).await?;
            if !self.repeats {
                // The last values stay what they are until they are too old.
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

/// ISO 8601, or a number since 1970.
fn time_of_cell(cell: &str) -> Option<UtcTime> {
    match cell.parse::<f64>() {
        Ok(number) => time_of(&Json::from(number)),
        Err(_) => UtcTime::parse(cell),
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
        self.by_column.entry(column.clone()).or_default().push(self.tags.len());
        self.tags.push((column, kind));
        Ok(Placement::Variable(kind))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}
