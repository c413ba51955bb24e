//! What a live view shows, without a terminal.

use crate::commands::lab::scenario;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;
use taktwerk_lab::outcome::interval;
use taktwerk_lab::runner::Step;
use taktwerk_lab::scenario::{Condition, Labels, Pace, seconds};
use taktwerk_lab::statistics::Repeated;

/// How many figures of a load fit beside its name.
const FIGURES: usize = 3;
/// How much of the CPUs' past is kept, in samples.
const PAST: usize = 120;

/// A measurement under way.
#[derive(Debug)]
pub(super) struct Current {
    /// Of which load.
    pub(super) row: usize,
    /// When it began.
    pub(super) begun: Instant,
    /// How long it takes, roughly.
    pub(super) seconds: f64,
}

/// A load with what is known of it so far.
#[derive(Debug)]
pub(super) struct Row {
    /// The experiment that asked for it.
    pub(super) experiment: String,
    /// What it is.
    pub(super) condition: Condition,
    /// What it is called in the list.
    pub(super) label: String,
    /// How often it is to be measured.
    pub(super) wanted: u32,
    /// How often it was, and counts.
    pub(super) valid: u32,
    /// How often it was worth nothing.
    pub(super) invalid: u32,
    /// Name and values of what matters.
    figures: Vec<(&'static str, Vec<f64>)>,
}

impl Row {
    /// Its figures as text: name and mean with interval.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.figures.iter().map(|(name, values)| (*name, interval(Repeated::new(values.clone()).as_ref())))
    }
}

/// Everything.
#[derive(Debug)]
pub(super) struct State {
    /// The run's name and what it is.
    pub(super) title: String,
    /// All loads, in the order of the plan.
    pub(super) rows: Vec<Row>,
    /// What is measured now.
    pub(super) current: Option<Current>,
    /// Measurements done, and all of them.
    pub(super) done: (usize, usize),
    /// Seconds of measurements done, and all of them.
    pub(super) seconds: (f64, f64),
    /// How long measurements take.
    pace: Pace,
    /// Use of each CPU in percent, newest last.
    pub(super) cpus: Vec<VecDeque<u64>>,
    /// Rows above the first that is shown; `None` follows what is measured.
    pub(super) scroll: Option<usize>,
    /// Whether the user wants it to end.
    pub(super) is_ending: bool,
}

impl State {
    /// Before anything was measured.
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

    /// Calls each load by what tells it apart from the others of its experiment.
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

    /// The row of a load; a new one if it has none yet.
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

    /// Notes a step of the runner.
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

    /// Notes how busy the CPUs were since the last time, in percent each.
    pub(super) fn sample(&mut self, percents: &[u64]) {
        self.cpus.resize_with(percents.len(), VecDeque::new);
        for (past, percent) in self.cpus.iter_mut().zip(percents) {
            past.push_back(*percent);
            if past.len() > PAST {
                past.pop_front();
            }
        }
    }

    /// Share of the work that is done, with that of the measurement under way.
    pub(super) fn share(&self) -> f64 {
        let current = self
            .current
            .as_ref()
            .map_or(0.0, |current| current.begun.elapsed().as_secs_f64().min(current.seconds));
        ((self.seconds.0 + current) / self.seconds.1.max(1e-9)).clamp(0.0, 1.0)
    }

    /// Seconds left, roughly.
    pub(super) fn seconds_left(&self) -> f64 {
        (1.0 - self.share()) * self.seconds.1
    }

    /// Moves the list by so many rows; the end follows what is measured again.
    pub(super) fn scroll(&mut self, by: isize, first: usize) {
        let next = self.scroll.unwrap_or(first).saturating_add_signed(by);
        self.scroll = (next < self.rows.len()).then_some(next);
    }
}
