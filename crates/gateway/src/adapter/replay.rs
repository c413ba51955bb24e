//! A recording in a CSV file, played again at its own speed, faster, slower, or one row per interval.

use crate::fault::{Fault, plain};
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
use serde_json::Value as Json;
use std::fs::File;
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
    speed: f64,
    repeats: bool,
    tags: Vec<(String, Kind)>,
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
            speed: speed.map_or(1.0, |(_, speed)| speed),
            repeats: fields.flag("repeat")?.unwrap_or(true),
            tags: Vec::new(),
        })
    }

    fn reader(&self) -> Result<csv::Reader<File>, Fault> {
        let target = self.path.display().to_string();
        let file =
            File::open(&self.path).map_err(|error| Fault::Connect { target, reason: plain(&error) })?;
        Ok(csv::ReaderBuilder::new()
            .delimiter(self.delimiter)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(file))
    }

    /// Plays the file once; gives the number of rows.
    async fn play(&self, feed: &Feed, writes: &mut Writes) -> Result<usize, Fault> {
        let target = self.path.display().to_string();
        let fail = |error: csv::Error| Fault::other(target.clone(), error);
        let mut reader = self.reader()?;
        let headers = reader.headers().map_err(fail)?.clone();
        let column = |name: &str| {
            let found = headers.iter().position(|header| header == name);
            found.ok_or_else(|| {
                let names = headers.iter().collect::<Vec<_>>().join(", ");
                Fault::other(target.clone(), format!("there is no column {name:?}; there are {names}"))
            })
        };
        let time_column = self.time.as_deref().map(column).transpose()?;
        let columns = self.tags.iter().map(|(name, _)| column(name)).collect::<Result<Vec<_>, _>>()?;
        let interval = feed.settings().interval.unwrap_or(Duration::from_secs(1));
        let mut due = tokio::time::Instant::now();
        let mut last: Option<UtcTime> = None;
        let mut row = csv::StringRecord::new();
        let mut count = 0;
        feed.connected();
        // Rows are short and come from the page cache; a row at a time does not hold up other sources.
        while reader.read_record(&mut row).map_err(fail)? {
            let time = time_column.and_then(|at| row.get(at)).and_then(time_of_cell);
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
            let readings =
                self.tags.iter().zip(&columns).enumerate().filter_map(|(position, ((_, kind), column))| {
                    let cell = row.get(*column).filter(|cell| !cell.is_empty())?;
                    let value = parse(kind.element, cell);
                    Some((
                        position,
                        value.map_or_else(|| Reading::bad(StatusCode::BAD_TYPE_MISMATCH), Reading::good),
                    ))
                });
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
        self.tags.push((fields.text("column")?.unwrap_or_else(|| tag.name.clone()), kind));
        Ok(Placement::Variable(kind))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}
