//! The state of the live view, independent of the terminal.

use crate::commands::lab::scenario;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;
use taktwerk_lab::outcome::interval;
use taktwerk_lab::runner::Step;
use taktwerk_lab::scenario::{Condition, Labels, Pace, seconds};
use taktwerk_lab::statistics::Repeated;

/// Maximum number of figures beside the name of a load.
const FIGURES: usize = 3;
/// Length of the CPU history, in samples.
const PAST: usize = 120;

/// The running measurement.
#[derive(Debug)]
pub(super) struct Current {
    /// Index of its load.
    pub(super) row: usize,
    /// Start time.
    pub(super) begun: Instant,
    /// Estimated duration in seconds.
    pub(super) seconds: f64,
}

/// A load and its results so far.
#[derive(Debug)]
pub(super) struct Row {
    /// The experiment that contains it.
    pub(super) experiment: String,
    /// The condition.
    pub(super) condition: Condition,
    /// The label in the list.
    pub(super) label: String,
    /// Planned number of measurements.
    pub(super) wanted: u32,
    /// Number of valid measurements.
    pub(super) valid: u32,
    /// Number of invalid measurements.
    pub(super) invalid: u32,
    /// Names and values of the main figures.
    figures: Vec<(&'static str, Vec<f64>)>,
}

impl Row {
    /// The figures as text: name, and mean with interval.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.figures.iter().map(|(name, values)| (*name, interval(Repeated::new(values.clone()).as_ref())))
    }
}

/// The state.
#[derive(Debug)]
pub(super) struct State {
    /// Name and kind of the run.
    pub(super) title: String,
    /// All loads, in the order of the plan.
    pub(super) rows: Vec<Row>,
    /// The running measurement.
    pub(super) current: Option<Current>,
    /// Completed and total measurements.
    pub(super) done: (usize, usize),
    /// Completed and total seconds of measurements.
    pub(super) seconds: (f64, f64),
    /// Estimator for durations.
    pace: Pace,
    /// CPU use in percent by CPU, newest last.
    pub(super) cpus: Vec<VecDeque<u64>>,
    /// Rows above the first that is shown; `None` follows what is measured.
    pub(super) scroll: Option<usize>,
    /// Whether the user wants to end the run.
    pub(super) is_ending: bool,
}

impl State {
    /// The state before the first measurement.
    pub(super) fn new(name: &str, what: &str, conditions: &[(String, Condition)]) -> Self {
        let mut state = Self {
            title: format!("{what} · run {name}"),
            rows: Vec::new(),
            current: None,
            done: (0, conditions.iter().map(|(_, c)| c.time.repetitions as usize).sum()),
            seconds: (0.0, seconds(conditions.iter().map(|(_, condition)| condition))),
            pace: Pace::default(),
            cpus: Vec::new(),
            scroll: None,
            is_ending: false,
        };
        for (experiment, condition) in conditions {
            let at = state.row(experiment, condition);
            if let Some(row) = state.rows.get_mut(at) {
                row.wanted = row.wanted.max(condition.time.repetitions);
            }
        }
        state.name();
        state
    }

    /// Labels each load by the factors that distinguish it within its experiment.
    fn name(&mut self) {
        let mut rows = BTreeMap::<String, Vec<usize>>::new();
        for (at, row) in self.rows.iter().enumerate() {
            rows.entry(row.experiment.clone()).or_default().push(at);
        }
        for rows in rows.into_values() {
            let those = rows.iter().filter_map(|at| self.rows.get(*at));
            let labels = Labels::of(those.map(|row| &row.condition));
            for (at, label) in rows.iter().zip(labels.iter()) {
                if let Some(row) = self.rows.get_mut(*at) {
                    label.clone_into(&mut row.label);
                }
            }
        }
    }

    /// The row of a load; added if it is missing.
    fn row(&mut self, experiment: &str, condition: &Condition) -> usize {
        let is_it = |row: &Row| row.experiment == experiment && row.condition.is_repeated_by(condition);
        if let Some(at) = self.rows.iter().position(is_it) {
            return at;
        }
        let figures = scenario::shown(condition.kind).iter().take(FIGURES);
        self.rows.push(Row {
            experiment: experiment.to_owned(),
            condition: condition.clone(),
            label: condition.label(),
            wanted: 0,
            valid: 0,
            invalid: 0,
            figures: figures.map(|(title, _)| (*title, Vec::new())).collect(),
        });
        self.rows.len() - 1
    }

    /// Records a step of the runner.
    pub(super) fn step(&mut self, step: &Step<'_>) {
        match step {
            Step::Begin { experiment, condition, .. } => {
                let row = self.row(experiment, condition);
                self.current = Some(Current { row, begun: Instant::now(), seconds: condition.seconds() });
            }
            Step::End(measurement) => {
                let condition = &measurement.condition;
                let at = self.row(&measurement.experiment, condition);
                self.current = None;
                self.done.0 += 1;
                self.seconds.0 += self.pace.seconds(condition);
                let Some(row) = self.rows.get_mut(at) else { return };
                if measurement.is_valid() {
                    row.valid += 1;
                    for ((_, values), (_, figure)) in
                        row.figures.iter_mut().zip(scenario::shown(condition.kind))
                    {
                        values.extend(measurement.get(*figure));
                    }
                } else {
                    row.invalid += 1;
                }
            }
        }
    }

    /// Records the use of the CPUs since the previous sample, in percent.
    pub(super) fn sample(&mut self, percents: &[u64]) {
        self.cpus.resize_with(percents.len(), VecDeque::new);
        for (past, percent) in self.cpus.iter_mut().zip(percents) {
            past.push_back(*percent);
            if past.len() > PAST {
                past.pop_front();
            }
        }
    }

    /// Completed share of the work, including the running measurement.
    pub(super) fn share(&self) -> f64 {
        let current = self
            .current
            .as_ref()
            .map_or(0.0, |current| current.begun.elapsed().as_secs_f64().min(current.seconds));
        ((self.seconds.0 + current) / self.seconds.1.max(1e-9)).clamp(0.0, 1.0)
    }

    /// Estimated remaining seconds.
    pub(super) fn seconds_left(&self) -> f64 {
        (1.0 - self.share()) * self.seconds.1
    }

    /// Scrolls the list. At the end it follows the running measurement again.
    pub(super) fn scroll(&mut self, by: isize, first: usize) {
        let next = self.scroll.unwrap_or(first).saturating_add_signed(by);
        self.scroll = (next < self.rows.len()).then_some(next);
    }
}
