//! The published experiments: their protocols, their figures, and what must come out.
//!
//! Each makes a plan of conditions, and afterwards makes an [`Outcome`] from the measurements alone, so that a report can
//! be written again from the store at any time.

mod burger;
mod cgw;
mod morato;
mod published;
mod rocha;
mod sizing;

use crate::latency::Times;
use crate::measurement::{Group, Measurement, group};
use crate::outcome::{Grid, Outcome, interval};
use crate::place::Place;
use crate::scenario::{Condition, Kind, Scenario, TimeSpec};

/// How an experiment is to be run.
#[derive(Debug)]
pub struct Wish<'a> {
    /// Minutes instead of hours: fewer repetitions, shorter windows, fewer conditions.
    pub quick: bool,
    /// Stacks to measure.
    pub stacks: Vec<String>,
    /// Where.
    pub place: &'a Place,
}

/// What an experiment wants to be measured.
#[derive(Debug, Default)]
pub struct Plan {
    /// All of it.
    pub conditions: Vec<Condition>,
    /// What is left out, and why.
    pub skipped: Vec<String>,
}

/// A published experiment.
pub trait Experiment: Sync {
    /// As in the register of experiments.
    fn id(&self) -> &'static str;
    /// What it asks.
    fn question(&self) -> &'static str;
    /// Where the published figures stand.
    fn source(&self) -> &'static str;
    /// The experiment whose measurements it uses: its own, or another one's.
    fn data(&self) -> &'static str {
        self.id()
    }
    /// Whether it looks at measurements of a kind: those of publishers only if it knows them.
    fn uses(&self, kind: Kind) -> bool {
        kind != Kind::PubSub
    }
    /// Why it cannot be run yet, if so.
    fn missing(&self) -> Option<&'static str> {
        None
    }
    /// What to measure.
    fn plan(&self, wish: &Wish<'_>) -> Plan;
    /// What the measurements say. Nothing but valid and invalid measurements of [`Self::data`] is in `measurements`.
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome);
}

/// All experiments in the order of the register.
#[must_use]
pub fn all() -> Vec<&'static dyn Experiment> {
    let mut all: Vec<&'static dyn Experiment> = Vec::new();
    all.extend(morato::ALL);
    all.extend(burger::ALL);
    all.extend(sizing::ALL);
    all.extend(cgw::ALL);
    all.extend(rocha::ALL);
    all
}

/// An experiment by its id.
#[must_use]
pub fn find(id: &str) -> Option<&'static dyn Experiment> {
    all().into_iter().find(|experiment| experiment.id() == id)
}

/// The outcome of an experiment from all measurements of a run.
#[must_use]
pub fn evaluate(experiment: &dyn Experiment, measurements: &[Measurement], notes: &[String]) -> Outcome {
    let mut outcome = Outcome {
        id: experiment.id().to_owned(),
        question: experiment.question().to_owned(),
        source: experiment.source().to_owned(),
        ..Outcome::default()
    };
    if let Some(missing) = experiment.missing() {
        outcome.skipped.push(missing.to_owned());
        return outcome;
    }
    let own: Vec<Measurement> = measurements
        .iter()
        .filter(|one| one.experiment == experiment.data() && experiment.uses(one.condition.kind))
        .cloned()
        .collect();
    let prefix = format!("{}: ", experiment.data());
    outcome.skipped.extend(notes.iter().filter_map(|note| note.strip_prefix(&prefix)).map(str::to_owned));
    if own.is_empty() {
        outcome.skipped.push("nothing was measured in this run".to_owned());
        return outcome;
    }
    experiment.evaluate(&own, &mut outcome);
    for group in group(&own) {
        let Some(first) = group.invalid.first().and_then(|one| one.invalid.first()) else { continue };
        outcome.skipped.push(format!(
            "{} of {} measurements of {} are invalid: {first}",
            group.invalid.len(),
            group.invalid.len() + group.valid.len(),
            group.condition.label()
        ));
    }
    outcome
}

// ---- what experiments share

/// Warm-up, window and repetitions.
fn time(warmup_s: f64, duration_s: f64, repetitions: u32) -> TimeSpec {
    TimeSpec { warmup_s, duration_s, steady: false, repetitions }
}

/// The conditions of scenarios on all stacks that are wished for.
fn conditions(wish: &Wish<'_>, scenarios: Vec<Scenario>) -> Vec<Condition> {
    let with_stacks = |mut scenario: Scenario| {
        scenario.stacks.clone_from(&wish.stacks);
        scenario.conditions()
    };
    scenarios.into_iter().flat_map(with_stacks).collect()
}

/// The stacks in measurements, in the order of their appearance.
fn stacks(measurements: &[Measurement]) -> Vec<String> {
    let mut stacks: Vec<String> = Vec::new();
    for measurement in measurements {
        if !stacks.contains(&measurement.condition.stack) {
            stacks.push(measurement.condition.stack.clone());
        }
    }
    // Ours first, whichever was measured first.
    stacks.sort_by_key(|stack| stack != "own");
    stacks
}

/// What a stack is called in tables.
fn stack_name(stack: &str) -> &str {
    if stack == "own" { "taktwerk" } else { stack }
}

/// Groups with at least one valid measurement, ours first.
fn valid_groups(measurements: &[Measurement]) -> Vec<Group<'_>> {
    let mut groups = group(measurements);
    groups.retain(|group| !group.valid.is_empty());
    groups.sort_by_key(|group| {
        let condition = group.condition;
        let sizes =
            [Some(condition.clients), condition.items, condition.batch, condition.payload, condition.threads];
        let stack = (condition.stack != "own", condition.stack.clone());
        (stack, condition.link.clone(), condition.server.signals, sizes, !condition.security.is_none())
    });
    groups
}

/// Percentiles of distributions as a table, in microseconds or milliseconds.
fn times_grid(title: &str, first: &[&str], rows: &[(Vec<String>, Times)], is_ms: bool) -> Grid {
    let unit = if is_ms { "ms" } else { "µs" };
    let mut columns: Vec<String> = first.iter().map(|&name| name.to_owned()).collect();
    columns.push("samples".to_owned());
    columns.extend(["mean", "std", "p50", "p99", "p99.9", "max"].map(|name| format!("{name} {unit}")));
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut grid = Grid::new(title, first.len(), &names);
    let divisor = if is_ms { 1e3 } else { 1.0 };
    for (cells, times) in rows {
        let summary = times.summary();
        let mut row = cells.clone();
        row.push(crate::figures::thousands(i64::try_from(summary.count).unwrap_or(i64::MAX)));
        let figures = [
            summary.mean_us,
            summary.std_us,
            summary.p50_us,
            summary.p99_us,
            summary.p999_us,
            summary.max_us,
        ];
        row.extend(figures.map(|us| crate::figures::number(us / divisor)));
        grid.rows.push(row);
    }
    grid
}

/// A figure of a group with its interval.
fn shown(group: &Group<'_>, metric: &str) -> String {
    interval(group.metric(metric).as_ref())
}

/// A ratio in words.
fn times_as(ratio: f64) -> String {
    format!("{} times", crate::figures::number(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn place() -> Place {
        Place::new("/bin/true".into(), "/none".into())
    }

    #[test]
    fn ids_are_unique_and_all_of_the_register_are_there() {
        let ids: BTreeSet<&str> = all().iter().map(|one| one.id()).collect();
        assert_eq!(ids.len(), all().len());
        for id in [
            "morato-cpu",
            "morato-read",
            "morato-subscription",
            "morato-pubsub",
            "morato-power",
            "burger-cpu",
            "burger-memory",
            "burger-network",
            "burger-security",
            "burger-threads",
            "burger-model",
            "burger-sizing",
            "burger-igmp",
            "cgw-rtd",
            "cgw-outliers",
            "cgw-profile",
            "rocha-overhead",
            "rocha-payload",
            "rocha-location",
            "rocha-clients",
        ] {
            assert!(ids.contains(id), "{id}");
        }
    }

    #[test]
    fn the_short_form_of_everything_takes_less_than_nine_minutes() {
        let place = place();
        let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
        let mut seconds = 0.0;
        for experiment in all().iter().filter(|one| one.data() == one.id() && one.missing().is_none()) {
            let plan = experiment.plan(&wish);
            let own: f64 = plan.conditions.iter().map(|c| c.seconds() * f64::from(c.time.repetitions)).sum();
            seconds += own;
        }
        assert!(seconds < 540.0, "{seconds} s");
    }

    #[test]
    fn plans_have_at_least_five_repetitions_in_the_full_form() {
        let place = place();
        let wish = Wish { quick: false, stacks: vec!["own".into()], place: &place };
        for experiment in all() {
            for condition in experiment.plan(&wish).conditions {
                assert!(condition.time.repetitions >= 5, "{}", condition.label());
            }
        }
    }

    #[test]
    fn without_measurements_everything_says_so() {
        for experiment in all() {
            let outcome = evaluate(experiment, &[], &[]);
            assert!(!outcome.skipped.is_empty() && outcome.findings.is_empty(), "{}", experiment.id());
        }
    }
}
