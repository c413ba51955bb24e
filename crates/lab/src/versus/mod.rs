//! Compares this project's figures with a peer's in the same run.
//!
//! The same load generator (`taktwerk bench`) drives both servers; a bare TCP program gives the floor. Repetitions are
//! interleaved, so that other load on the machine affects all sides alike. Medians are compared. The confidence
//! interval of their ratio decides, by the laboratory's rule ([`statistics::within`](crate::statistics::within)).
//!
//! - `figures`: the figures and their limits, one file per kind;
//! - `stand`: the programs, where they run, and one measurement;
//! - `samples`: repetitions by side and quantity; `row`: verdicts, the table and the JSON document.

mod figures;
mod row;
mod samples;
mod stand;

pub use row::{Row, table};
pub use samples::Side;
pub use stand::{Programs, VersusError};

use figures::Figure;
use samples::Samples;
use serde_json::Value;
use stand::Stand;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Id of the rows of PubSub. They are measured only on request, because their peer takes minutes to build.
pub const PUBSUB: &str = "pubsub";

/// Above this load average, other programs distort the figures.
pub const BUSY: f64 = 0.5;

/// What to compare.
#[derive(Debug, Clone)]
pub struct Options {
    /// Short windows, to test the comparison itself.
    pub quick: bool,
    /// Ids of the rows to measure; empty means all except PubSub.
    pub rows: Vec<String>,
    /// Repetitions per side.
    pub repetitions: usize,
}

impl Options {
    /// Checks the ids of the rows.
    ///
    /// # Errors
    /// A message with the first unknown id and the known ids.
    pub fn check(&self) -> Result<(), String> {
        let known: Vec<&str> = figures::all(self.quick).iter().map(|figure| figure.id()).collect();
        match self.rows.iter().find(|row| !known.contains(&row.as_str()) && *row != PUBSUB) {
            Some(unknown) => Err(format!("unknown row {unknown:?}: the rows are {}", known.join(", "))),
            None => Ok(()),
        }
    }

    /// Whether a row of PubSub is requested.
    #[must_use]
    pub fn wants_pubsub(&self) -> bool {
        self.rows.iter().any(|row| row.starts_with(PUBSUB))
    }

    fn wants(&self, id: &str) -> bool {
        let is_pubsub = id.starts_with(PUBSUB);
        self.rows.iter().any(|row| row == id || (row == PUBSUB && is_pubsub))
            || (self.rows.is_empty() && !is_pubsub)
    }
}

/// Progress events.
#[derive(Debug)]
pub enum Event<'a> {
    /// A repetition begins.
    Repetition {
        /// The row.
        id: &'static str,
        /// The measured side.
        side: Side,
        /// Number of the repetition, starting at 1.
        at: usize,
        /// Number of repetitions.
        of: usize,
    },
    /// A step of a search, or a measurement that is repeated.
    Note(&'a str),
    /// A figure is complete: its rows, how long it took, and the document with all rows so far.
    Measured {
        /// The new rows.
        rows: &'a [Row],
        /// The time it took.
        took: Duration,
        /// All rows so far, to be saved in case the comparison is interrupted.
        document: &'a Value,
    },
    /// A row is left out, with the reason.
    Skipped(&'static str, &'static str),
}

/// Progress callback and stop flag.
#[derive(Clone)]
pub struct Watch {
    /// Called for each event.
    pub tell: Arc<dyn Fn(Event<'_>) + Send + Sync>,
    /// Ends the comparison when set; the rows so far are kept.
    pub stop: Option<Arc<AtomicBool>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// All rows, with the machine they were measured on.
#[derive(Debug)]
pub struct Comparison {
    /// In the order of measurement.
    pub rows: Vec<Row>,
    /// The rows as JSON.
    pub document: Value,
    /// Whether it was stopped before all rows were measured.
    pub stopped: bool,
}

/// The load average of the last minute; 0 if the system does not provide it.
#[must_use]
pub fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// Measures all requested rows.
///
/// # Errors
/// If the machine has fewer than two CPUs, the peer is not installed, or creating certificates fails. A row that cannot
/// be measured is not an error; it contains the reason.
pub fn compare(programs: Programs, options: &Options, watch: Watch) -> Result<Comparison, VersusError> {
    let load = load_average();
    let stand = Stand::new(programs, watch.clone())?;
    let document = |rows: &[Row]| row::document(rows, options.repetitions, options.quick, load);
    let mut rows: Vec<Row> = Vec::new();
    for mut figure in figures::all(options.quick) {
        if !options.wants(figure.id()) {
            continue;
        }
        if let Some(what) = figure.lacks(stand.programs()) {
            (watch.tell)(Event::Skipped(figure.id(), what));
            continue;
        }
        let started = Instant::now();
        let Some(samples) = repeat(&stand, figure.as_mut(), options.repetitions, &watch) else {
            return Ok(Comparison { document: document(&rows), rows, stopped: true });
        };
        let first = rows.len();
        rows.extend(figure.judge(&samples).into_iter().map(|row| row.with_problems(&samples)));
        let new = rows.get(first..).unwrap_or_default();
        (watch.tell)(Event::Measured { rows: new, took: started.elapsed(), document: &document(&rows) });
    }
    Ok(Comparison { document: document(&rows), rows, stopped: false })
}

/// All repetitions of a figure; `None` if it was stopped.
fn repeat(stand: &Stand, figure: &mut dyn Figure, repetitions: usize, watch: &Watch) -> Option<Samples> {
    let mut samples = Samples::default();
    for repetition in 0..repetitions {
        let mut sides = figure.sides().to_vec();
        // Alternate the order of the sides: the first after a pause runs on a cooler machine.
        if repetition % 2 == 1 {
            sides.reverse();
        }
        for side in sides {
            let at = repetition + 1;
            (watch.tell)(Event::Repetition { id: figure.id(), side, at, of: repetitions });
            measure(stand, figure, side, &mut samples);
            if stand.is_stopped() {
                return None;
            }
        }
    }
    Some(samples)
}

/// One measurement, repeated if it was invalid: another program may have used the CPU for a moment.
fn measure(stand: &Stand, figure: &mut dyn Figure, side: Side, samples: &mut Samples) {
    const ATTEMPTS: usize = 3;
    for attempt in 1..=ATTEMPTS {
        match figure.measure(side, stand) {
            Ok(quantities) => {
                for (name, value) in quantities {
                    samples.add(side, name, value);
                }
                return;
            }
            Err(_) if stand.is_stopped() => return,
            Err(error) if attempt == ATTEMPTS => {
                stand.note(&format!("{side}: {error}"));
                samples.problem(side, error.to_string());
            }
            Err(error) => stand.note(&format!("{side}: {error}; trying again")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(rows: &[&str]) -> Options {
        Options { quick: true, rows: rows.iter().map(|row| (*row).to_owned()).collect(), repetitions: 2 }
    }

    #[test]
    fn rows_are_chosen_by_id_and_pubsub_only_on_request() {
        let unknown = options(&["nothing"]).check().unwrap_err();
        assert!(unknown.contains("read-rtt") && unknown.contains("pubsub-cpu"), "{unknown}");
        assert!(options(&["pubsub", "idle-rss"]).check().is_ok());
        assert!(options(&["pubsub"]).wants("pubsub-cpu") && !options(&["pubsub"]).wants("read-rtt"));
        assert!(
            options(&["pubsub-rate"]).wants("pubsub-rate") && !options(&["pubsub-rate"]).wants("pubsub-cpu")
        );
        assert!(options(&[]).wants("read-rtt") && !options(&[]).wants("pubsub-cpu"));
    }

    #[test]
    fn without_the_peer_the_error_says_how_to_get_it() {
        let programs = Programs {
            taktwerk: "/nowhere/taktwerk".into(),
            peer: "/nowhere/bin".into(),
            library: None,
            allocations: None,
            cipher: None,
        };
        let watch = Watch { tell: Arc::new(|_| ()), stop: None };
        match compare(programs, &options(&["read-rtt"]), watch) {
            // On a machine with one CPU, that error comes first.
            Err(VersusError::Cpus(_)) => {}
            Err(error) => assert!(error.to_string().contains("lab peers install open62541"), "{error}"),
            Ok(_) => panic!("there is no peer"),
        }
    }
}
