//! Compares a recommendation of `tune` with measurements: of the recommended setting, and of the default setting.

use crate::capacity::WAITED;
use crate::measurement::{Group, Measurement, group};
use crate::outcome::{Finding, Grid, Outcome};
use crate::scenario::{Condition, Scenario, ScenarioError};
use crate::statistics::{Repeated, mean, within};
use serde::Serialize;
use taktwerk_load::result::{Figure, LineRates};
use taktwerk_model::tune::confirm::{self, ALLOWED, ALLOWED_MS, NoScenario};
use taktwerk_model::tune::front::{Scale, front};
use taktwerk_model::tune::search::Point;
use taktwerk_model::tune::{Constraint, Figures, Metric, Problem, Tuned};

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum UnmeasuredError {
    /// The laboratory has no such load.
    #[error(transparent)]
    NoScenario(#[from] NoScenario),
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario has no load.
    #[error("the scenario has no load")]
    NoLoad,
}

/// The figures that are promised and measured.
const COMPARED: [Metric; 3] = [Metric::DelayMeanMs, Metric::DelayP99Ms, Metric::BandwidthBitsS];

/// The two settings, and the loads that measure them.
#[derive(Debug, Clone)]
pub struct Confirmation<'a> {
    problem: &'a Problem,
    tuned: &'a Tuned,
    /// The default setting with its promise, which has fewer figures if it is not possible on this link.
    default: Option<Point>,
    conditions: Vec<(String, Condition)>,
}

/// A figure of a setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// `recommended` or `default`.
    pub setting: &'static str,
    /// Publishing interval, milliseconds.
    pub publishing_ms: f64,
    /// The figure.
    pub figure: Metric,
    /// Its predicted value.
    pub promised: Option<f64>,
    /// Mean of the valid measurements.
    pub measured: Option<f64>,
    /// 95 % confidence interval of that mean.
    pub interval: Option<(f64, f64)>,
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Confirmed {
    /// Whether the promise is kept; `None` if the measurements do not decide it.
    pub confirmed: Option<bool>,
    /// The emulated link.
    pub link: String,
    /// Measurements of each setting.
    pub repetitions: u32,
    /// Length of each window, seconds.
    pub window_s: f64,
    /// Promised and measured figures.
    pub rows: Vec<Row>,
    /// Claims with their verdicts.
    pub findings: Vec<Finding>,
    /// Settings with invalid measurements: how many, and why.
    pub invalid: Vec<String>,
    /// The recommended setting is the default one, so there is nothing to compare.
    pub is_default: bool,
}

impl<'a> Confirmation<'a> {
    /// Prepares the measurement of a recommendation. `default` is the default setting, if it can be measured.
    ///
    /// # Errors
    /// See [`UnmeasuredError`].
    pub fn new(
        problem: &'a Problem,
        tuned: &'a Tuned,
        default: Option<Point>,
    ) -> Result<Self, UnmeasuredError> {
        let mut conditions = Vec::new();
        let queue = tuned.queue_size;
        // The same load twice would only show by how much measurements differ.
        let default = default.filter(|_| !confirm::is_default(tuned));
        let settings = std::iter::once((RECOMMENDED, &tuned.recommended.settings))
            .chain(default.iter().map(|point| (DEFAULT, &point.settings)));
        for (name, settings) in settings {
            let text = confirm::load(name, problem, settings, queue)?;
            let scenario = Scenario::parse(&text, name)?;
            let condition = scenario.conditions().into_iter().next().ok_or(UnmeasuredError::NoLoad)?;
            conditions.push((name.to_owned(), condition));
        }
        Ok(Self { problem, tuned, default, conditions })
    }

    /// The loads, each with the name of its setting.
    #[must_use]
    pub fn conditions(&self) -> &[(String, Condition)] {
        &self.conditions
    }

    /// The emulated link that the loads need.
    #[must_use]
    pub fn link(&self) -> &str {
        self.conditions.first().and_then(|(_, condition)| condition.link.as_deref()).unwrap_or_default()
    }

    /// Compares the measurements with the promises.
    #[must_use]
    pub fn judge(&self, mut measurements: Vec<Measurement>) -> Confirmed {
        for one in &mut measurements {
            one.invalid.extend(disturbance(one));
        }
        let groups = group(&measurements);
        let of = |name: &str| groups.iter().find(|group| group.condition.scenario == name);
        let mut rows = Vec::new();
        let mut findings = Vec::new();
        let (recommended, default) = (of(RECOMMENDED), of(DEFAULT));
        for metric in COMPARED {
            let row = self.row(RECOMMENDED, &self.tuned.recommended, metric, recommended);
            findings.push(closeness(&row, self.problem.follows_writes));
            rows.push(row);
        }
        if let Some(point) = &self.default {
            rows.extend(COMPARED.map(|metric| self.row(DEFAULT, point, metric, default)));
        }
        for constraint in &self.problem.constraints {
            let values = recommended.and_then(|group| self.values(group, constraint.metric));
            let holds =
                values.as_ref().and_then(|values| limit(values, constraint.limit, constraint.at_most));
            findings.push(Finding {
                claim: format!("the recommended setting meets {constraint}"),
                holds,
                evidence: shown(constraint.metric, values.as_ref()),
            });
        }
        if let (Some(recommended), Some(default)) = (recommended, default) {
            findings.push(self.comparison(recommended, default));
        }
        Confirmed {
            confirmed: verdict(&findings),
            link: self.link().to_owned(),
            repetitions: self.conditions.first().map_or(0, |(_, one)| one.time.repetitions),
            window_s: self.conditions.first().map_or(0.0, |(_, one)| one.time.duration_s),
            rows,
            findings,
            invalid: groups.iter().filter_map(invalid).collect(),
            is_default: confirm::is_default(self.tuned),
        }
    }

    fn row(&self, setting: &'static str, point: &Point, figure: Metric, group: Option<&Group<'_>>) -> Row {
        let values = group.and_then(|group| self.values(group, figure));
        Row {
            setting,
            publishing_ms: point.settings.publishing_ms,
            figure,
            promised: figure.of(&point.figures).filter(|value| value.is_finite()),
            measured: values.as_ref().and_then(|values| mean(&values.values)),
            interval: values.and_then(|values| values.mean_ci95),
        }
    }

    fn values(&self, group: &Group<'_>, metric: Metric) -> Option<Repeated> {
        let values = group.valid.iter().filter_map(|one| metric.of(&self.figures(one)?));
        Repeated::new(values.collect())
    }

    /// The figures of a measurement in the units of the promise; `None` without delays.
    fn figures(&self, one: &Measurement) -> Option<Figures> {
        let ms = |name: &str| one.metrics.get(name).map(|us| us / 1e3);
        let line = |name: &str| one.metrics.get(name).copied();
        let rates = line("line.up_bits_s").zip(line("line.down_bits_s"));
        let (up, down) = rates?;
        let LineRates { up_bits_s, down_bits_s, .. } = LineRates::new(up, down);
        let (problem, clients) = (self.problem, f64::from(self.problem.clients));
        let written = problem.values_per_s() * clients * one.get(Figure::WINDOW_S)?;
        let received = one.get(Figure::NOTIFICATIONS)?;
        // Each is a lost value at least.
        let reports = [Figure::PROGRESS_OVERFLOWS, Figure::LOST_MESSAGES].map(|figure| one.get(figure));
        let reported: f64 = reports.iter().flatten().sum();
        let loss = if reported > 0.0 {
            lost(written, received, 0.0).max(reported / written.max(1.0))
        } else if reports.iter().all(Option::is_some) && !self.replaces(one) {
            0.0
        } else {
            lost(written, received, self.under_way(one))
        };
        Some(Figures {
            delay_mean_ms: ms("age.mean_us")?,
            delay_p99_ms: ms("age.p99_us")?,
            delay_max_ms: ms("age.max_us")?,
            bandwidth_bits_s: problem.busiest(up_bits_s, down_bits_s),
            utilisation: problem.utilisation(up_bits_s, down_bits_s),
            total_utilisation: problem.total_utilisation(up_bits_s, down_bits_s),
            loss,
            server_cpu: one.get(Figure::SERVER_CPU_PERCENT),
            client_cpu: one.get(Figure::GENERATOR_CPU_PERCENT),
            energy_w: None,
        })
    }

    /// How many values can be under way at an edge of the window: those of a publishing interval, and one of each item.
    fn under_way(&self, one: &Measurement) -> f64 {
        let interval_s = one.condition.publishing_ms.unwrap_or(0.0) / 1e3;
        let (problem, clients) = (self.problem, f64::from(self.problem.clients));
        (problem.values_per_s() * interval_s + f64::from(problem.items())) * clients
    }

    /// Whether items drop values without telling: a queue of one value has no Overflow bit (Part 4 §7.39), and sampling
    /// skips changes.
    fn replaces(&self, one: &Measurement) -> bool {
        let sampling = one.condition.sampling_ms.unwrap_or(0.0);
        one.condition.queue == Some(1)
            || self.problem.signals.iter().any(|signals| sampling > signals.period_ms)
    }

    /// Whether the recommended setting is better than the default one.
    fn comparison(&self, recommended: &Group<'_>, default: &Group<'_>) -> Finding {
        let verdict = |group: &Group<'_>, constraint: &Constraint| {
            limit(&self.values(group, constraint.metric)?, constraint.limit, constraint.at_most)
        };
        // If the queue was left open, `tune` has found one that loses nothing.
        let lossless = Constraint { metric: Metric::Loss, at_most: true, limit: 0.0 };
        let lossless = Some(&lossless).filter(|_| self.tuned.queue_size > 0);
        for constraint in self.problem.constraints.iter().chain(lossless) {
            if verdict(default, constraint) == Some(false) && verdict(recommended, constraint) == Some(true) {
                let of = |group| shown(constraint.metric, self.values(group, constraint.metric).as_ref());
                return Finding {
                    claim: "the recommended setting dominates the default one".to_owned(),
                    holds: Some(true),
                    evidence: format!(
                        "the default does not meet {constraint}: {}; recommended: {}",
                        of(default),
                        of(recommended)
                    ),
                };
            }
        }
        let metrics = &self.problem.minimize;
        let evidence: Vec<String> = metrics
            .iter()
            .map(|metric| {
                let of = |group| shown(*metric, self.values(group, *metric).as_ref());
                format!("{}: {}, default {}", metric.words(), of(recommended), of(default))
            })
            .collect();
        let evidence = evidence.join("; ");
        let is_better = |metric: &Metric| {
            let [ours, theirs] = [recommended, default].map(|group| self.values(group, *metric));
            less(&ours?, &theirs?)
        };
        if metrics.iter().all(|metric| is_better(metric) == Some(true)) {
            let claim = "the recommended setting dominates the default one".to_owned();
            return Finding { claim, holds: Some(true), evidence };
        }
        // Each is better in one figure. The rule of the recommendation decides.
        let points: Vec<Figures> =
            self.tuned.points.iter().filter(|point| point.is_feasible).map(|point| point.figures).collect();
        let scale = Scale::new(&points, &front(&points, metrics), self.problem);
        let scores = |group: &Group<'_>| {
            let of = |one: &&Measurement| scale.score(&self.figures(one)?);
            Repeated::new(group.valid.iter().filter_map(of).collect())
        };
        let holds = scores(recommended).zip(scores(default)).and_then(|(ours, theirs)| less(&ours, &theirs));
        Finding {
            claim: "the recommended setting is better than the default one by the sum of the scaled figures"
                .to_owned(),
            holds,
            evidence,
        }
    }
}

/// Name of the recommended setting.
const RECOMMENDED: &str = "recommended";
/// Name of the default setting.
const DEFAULT: &str = "default";

/// The share of lost values. Fewer than `under_way` are not lost: they arrive after the window, or were written before
/// it.
fn lost(written: f64, received: f64, under_way: f64) -> f64 {
    if written - received <= under_way { 0.0 } else { 1.0 - received / written.max(1.0) }
}

/// Why a measurement says little: the server or the load waited for a CPU, because the machine is busy.
fn disturbance(one: &Measurement) -> Option<String> {
    let window = one.get(Figure::WINDOW_S).filter(|window| *window > 0.0)?;
    let waits =
        [(Figure::SERVER_RUNQUEUE_WAIT_S, "the server"), (Figure::GENERATOR_RUNQUEUE_WAIT_S, "the load")];
    waits.into_iter().find_map(|(figure, words)| {
        let share = one.get(figure)? / window;
        (share > WAITED).then(|| {
            format!(
                "this machine is busy: {words} waited for a CPU during {:.0} % of the window",
                share * 100.0
            )
        })
    })
}

/// The number of invalid measurements of a setting, and the reason for the first.
fn invalid(group: &Group<'_>) -> Option<String> {
    let first = group.invalid.first()?;
    let all = group.invalid.len() + group.valid.len();
    Some(format!(
        "{}: {} of {all} measurements are invalid; the first: {}",
        group.condition.scenario,
        group.invalid.len(),
        first.invalid.join("; ")
    ))
}

/// The verdict on a limit by the confidence interval; `None` for a single measurement that has none.
fn limit(values: &Repeated, limit: f64, at_most: bool) -> Option<bool> {
    let (low, high) = values.mean_ci95?;
    if at_most { within((low, high), limit) } else { within((-high, -low), -limit) }
}

/// Whether one mean is below another: the interval of the difference decides.
fn less(one: &Repeated, other: &Repeated) -> Option<bool> {
    let ((low, high), (other_low, other_high)) = (one.mean_ci95?, other.mean_ci95?);
    within((low - other_high, high - other_low), 0.0)
}

/// Whether a promise is kept.
fn closeness(row: &Row, follows_writes: bool) -> Finding {
    let words = row.figure.words();
    let percent = ALLOWED * 100.0;
    let bounds = row.promised.map(|promised| confirm::allowed(row.figure, promised, follows_writes));
    let is_short = row.promised.is_some_and(|promised| confirm::is_short(row.figure, promised));
    let margin = if is_short { format!("{ALLOWED_MS} ms") } else { format!("{percent:.0} %") };
    let claim = match bounds {
        Some((_, None)) => format!("the {words} is at most {margin} above the promise"),
        _ => format!("the {words} is within {margin} of the promise"),
    };
    let told = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| row.figure.text(value));
    let evidence = format!("promised {}, measured {}", told(row.promised), told(row.measured));
    let holds = bounds.zip(row.interval).and_then(|((below, above), (low, high))| {
        let is_above = above.map_or(Some(true), |above| within((-high, -low), -above));
        match (within((low, high), below), is_above) {
            (Some(true), Some(true)) => Some(true),
            (Some(false), _) | (_, Some(false)) => Some(false),
            _ => None,
        }
    });
    Finding { claim, holds, evidence }
}

fn shown(metric: Metric, values: Option<&Repeated>) -> String {
    let value = values.and_then(|values| mean(&values.values));
    value.map_or_else(|| "not measured".to_owned(), |value| metric.text(value))
}

fn verdict(findings: &[Finding]) -> Option<bool> {
    if findings.iter().any(|finding| finding.holds == Some(false)) {
        return Some(false);
    }
    findings.iter().all(|finding| finding.holds == Some(true)).then_some(true)
}

impl Confirmed {
    /// As a table with findings.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let columns =
            ["setting", "figure", "interval", "promised", "measured", "95 % interval", "difference"];
        let title = format!(
            "Promised and measured over {}, {} measurements of {} s each",
            self.link,
            self.repetitions,
            crate::figures::number(self.window_s)
        );
        let mut grid = Grid::new(&title, 2, &columns);
        for row in &self.rows {
            let told =
                |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| row.figure.text(value));
            let difference = row.measured.zip(row.promised.filter(|promised| *promised > 0.0));
            grid.row([
                row.setting.to_owned(),
                row.figure.words().to_owned(),
                Metric::DelayMeanMs.text(row.publishing_ms),
                told(row.promised),
                told(row.measured),
                row.interval.map_or_else(
                    || "–".to_owned(),
                    |(low, high)| format!("{} to {}", row.figure.text(low), row.figure.text(high)),
                ),
                difference.map_or_else(
                    || "–".to_owned(),
                    |(measured, promised)| format!("{:+.1} %", (measured / promised - 1.0) * 100.0),
                ),
            ]);
        }
        let id = match self.confirmed {
            Some(true) => "Confirmed by measurement",
            Some(false) => "Not confirmed: the measurements contradict the promise",
            None => "Not confirmed: the measurements do not decide it",
        };
        let mut outcome = Outcome {
            id: id.to_owned(),
            grids: vec![grid],
            findings: self.findings.clone(),
            skipped: self.invalid.clone(),
            ..Outcome::default()
        };
        if self.is_default {
            outcome.remark("The recommended setting is the default one, so there is nothing to compare.");
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
