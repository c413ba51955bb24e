//! The published experiments: their protocols, their figures, and the expected results.
//!
//! Each makes a plan of conditions and later an [`Outcome`] from the measurements only, so that a report can be rebuilt
//! from the store at any time.

mod beside;
mod burger;
mod cavalieri;
mod cgw;
mod footprint;
mod morato;
mod networks;
mod power;
mod published;
mod publishing;
mod removed;
mod rocha;
mod sizing;

use crate::latency::Times;
use crate::measurement::{Group, Measurement, cpu_conditions, group, lacking};
use crate::outcome::{Grid, Outcome, interval};
use crate::peers;
use crate::place::Place;
use crate::scenario::{Condition, CpuCondition, Kind, Labels, Scenario, TimeSpec, stack_name};
use crate::statistics::{Repeated, median_ratio, within};
use taktwerk_load::result::Figure;

/// How an experiment is to be run.
#[derive(Debug)]
pub struct Wish<'a> {
    /// Minutes instead of hours: fewer repetitions, shorter windows, fewer conditions.
    pub quick: bool,
    /// Stacks to measure.
    pub stacks: Vec<String>,
    /// The machine and programs to measure with.
    pub place: &'a Place,
}

/// The measurements that an experiment requests.
#[derive(Debug, Default)]
pub struct Plan {
    /// The conditions to measure.
    pub conditions: Vec<Condition>,
    /// Parts that are left out, each with the reason.
    pub skipped: Vec<String>,
}

/// A published experiment.
pub trait Experiment: Sync {
    /// Its id in the register of experiments.
    fn id(&self) -> &'static str;
    /// The question that it answers.
    fn question(&self) -> &'static str;
    /// The source of the published figures.
    fn source(&self) -> &'static str;
    /// The experiment whose measurements it uses: its own or another one.
    fn data(&self) -> &'static str {
        self.id()
    }
    /// Whether it uses measurements of this kind of load. Most experiments ignore those of publishers.
    fn uses(&self, kind: Kind) -> bool {
        kind != Kind::PubSub
    }
    /// Why it cannot be run, or `None`.
    fn missing(&self) -> Option<&'static str> {
        None
    }
    /// Whether it is simulated instead of measured: see [`simulate`].
    fn is_simulated(&self) -> bool {
        false
    }
    /// Runs the simulation. Its results are the same on every machine, except its duration.
    fn simulate(&self, quick: bool, outcome: &mut Outcome) {
        let _ = (quick, outcome);
    }
    /// The measurements to make.
    fn plan(&self, wish: &Wish<'_>) -> Plan;
    /// Evaluates measurements. `measurements` contains only those of [`Self::data`], valid and invalid.
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome);
}

/// All experiments in the order of the register.
#[must_use]
pub fn all() -> Vec<&'static dyn Experiment> {
    let mut all: Vec<&'static dyn Experiment> = Vec::new();
    all.extend(morato::ALL);
    all.extend(power::ALL);
    all.extend(burger::ALL);
    all.extend(sizing::ALL);
    all.extend(cavalieri::ALL);
    all.extend(cgw::ALL);
    all.extend(rocha::ALL);
    all
}

/// An experiment by its id.
#[must_use]
pub fn find(id: &str) -> Option<&'static dyn Experiment> {
    all().into_iter().find(|experiment| experiment.id() == id)
}

/// An outcome without results.
fn empty(experiment: &dyn Experiment) -> Outcome {
    Outcome {
        id: experiment.id().to_owned(),
        question: experiment.question().to_owned(),
        source: experiment.source().to_owned(),
        ..Outcome::default()
    }
}

/// The outcome of an experiment that is simulated.
#[must_use]
pub fn simulate(experiment: &dyn Experiment, quick: bool) -> Outcome {
    let mut outcome = empty(experiment);
    experiment.simulate(quick, &mut outcome);
    outcome
}

/// The outcome of an experiment from all measurements of a run.
#[must_use]
pub fn evaluate(experiment: &dyn Experiment, measurements: &[Measurement], notes: &[String]) -> Outcome {
    let mut outcome = empty(experiment);
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
        outcome.skipped.push("no measurements in this run".to_owned());
        return outcome;
    }
    outcome.errors = lacking(&own);
    experiment.evaluate(&own, &mut outcome);
    outcome.grids.extend(networks::grid(&own));
    // Tables without valid measurements are removed.
    outcome.grids.retain(|grid| !grid.rows.is_empty());
    outcome.remarks.extend(cpu_conditions(&own));
    let groups = group(&own);
    outcome.remarks.extend(unsteady(&groups));
    outcome.skipped.extend(invalid(&groups));
    outcome
}

/// Loads that were not steady before the window.
#[must_use]
pub fn unsteady(groups: &[Group<'_>]) -> Vec<String> {
    let labels = Labels::of(groups.iter().map(|group| group.condition));
    let one = |(group, label): (&Group<'_>, &str)| {
        let count = group.unsteady();
        let all = group.valid.len();
        (count > 0).then(|| {
            format!("Not steady: {label}: {count} of {all} measurements. Their figures include the start-up phase.")
        })
    };
    groups.iter().zip(labels.iter()).filter_map(one).collect()
}

/// Invalid measurements by load, each with the reason.
#[must_use]
pub fn invalid(groups: &[Group<'_>]) -> Vec<String> {
    let labels = Labels::of(groups.iter().map(|group| group.condition));
    let one = |(group, label): (&Group<'_>, &str)| {
        let first = group.invalid.first().and_then(|one| one.invalid.first())?;
        let all = group.invalid.len() + group.valid.len();
        Some(format!("{label}: {} of {all} measurements are invalid: {first}", group.invalid.len()))
    };
    groups.iter().zip(labels.iter()).filter_map(one).collect()
}

// ---- shared by experiments

/// Warm-up, window and repetitions.
fn time(warmup_s: f64, duration_s: f64, repetitions: u32) -> TimeSpec {
    TimeSpec { warmup_s, duration_s, steady: false, repetitions }
}

/// The conditions of scenarios for all requested stacks.
fn conditions(wish: &Wish<'_>, scenarios: Vec<Scenario>) -> Vec<Condition> {
    let with_stacks = |mut scenario: Scenario| {
        scenario.stacks.clone_from(&wish.stacks);
        scenario.conditions()
    };
    scenarios.into_iter().flat_map(with_stacks).collect()
}

/// The stacks in measurements, in the order of their appearance, ours first.
fn stacks(measurements: &[Measurement]) -> Vec<String> {
    let mut stacks: Vec<String> = Vec::new();
    for measurement in measurements {
        if !stacks.contains(&measurement.condition.stack) {
            stacks.push(measurement.condition.stack.clone());
        }
    }
    stacks.sort_by_key(|stack| stack != "own");
    stacks
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

/// Number of samples that must lie beyond a percentile for it to be shown.
const BEYOND: f64 = 3.0;

/// Percentiles of distributions as a table, in microseconds or milliseconds.
fn times_grid(title: &str, first: &[&str], rows: &[(Vec<String>, Times)], is_ms: bool) -> Grid {
    let unit = if is_ms { "ms" } else { "µs" };
    let mut columns: Vec<String> = first.iter().map(|&name| name.to_owned()).collect();
    columns.push("samples".to_owned());
    columns.extend(["mean", "std", "min", "p50", "p99", "p99.9", "max"].map(|name| format!("{name} {unit}")));
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
            summary.min_us,
            summary.p50_us,
            summary.p99_us,
            summary.p999_us,
            summary.max_us,
        ];
        // Hide percentiles with too few samples beyond them.
        let shares = [0.0, 0.0, 0.0, 0.5, 0.99, 0.999, 0.0];
        let shown = |(us, share): (f64, f64)| {
            let is_carried = summary.count > 0 && summary.count as f64 * (1.0 - share) >= BEYOND;
            if is_carried { crate::figures::number(us / divisor) } else { "–".to_owned() }
        };
        row.extend(figures.into_iter().zip(shares).map(shown));
        grid.rows.push(row);
    }
    grid
}

/// A figure of a group with its interval.
fn shown(group: &Group<'_>, figure: Figure) -> String {
    interval(group.metric(figure).as_ref())
}

/// The largest ratio of two windows of the same load within a quarter of an hour (docs/lab/notes/figures.md, "Noise").
const ONE_WINDOW: f64 = 1.5;

/// Whether one figure is below another one, by the 95 % interval of their ratio; `None` if the interval contains 1. With a single
/// sample, differences below [`ONE_WINDOW`] times are not reported.
fn is_less(one: &Repeated, other: &Repeated) -> Option<bool> {
    let (low, high) = if one.values.len().min(other.values.len()) < 2 {
        let ratio = one.median / other.median;
        (ratio / ONE_WINDOW, ratio * ONE_WINDOW)
    } else {
        median_ratio(&one.values, &other.values)?.1
    };
    match (high < 1.0, low > 1.0) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// The same, if both were measured.
fn is_below(one: Option<&Repeated>, other: Option<&Repeated>) -> Option<bool> {
    is_less(one?, other?)
}

/// Whether a figure is within a limit, by the 95 % interval of its mean. A single sample has no interval: it counts
/// only if it differs from the limit by a factor of [`ONE_WINDOW`] or more.
fn is_under(one: &Repeated, limit: f64) -> Option<bool> {
    let single = [one.median / ONE_WINDOW, one.median * ONE_WINDOW];
    within(one.mean_ci95.unwrap_or((single[0].min(single[1]), single[0].max(single[1]))), limit)
}

/// Whether all of these hold: false if one fails, undecided if one is undecided.
fn all_hold(verdicts: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(true);
    for verdict in verdicts {
        match verdict {
            Some(true) => {}
            Some(false) => return Some(false),
            None => all = None,
        }
    }
    all
}

/// A percentile of each repetition, in microseconds. Verdicts need the variation between repetitions.
fn percentile(group: &Group<'_>, name: &str, percent: f64) -> Option<Repeated> {
    let each = group.valid.iter().filter_map(|one| one.histograms.get(name));
    let of = |times: &Times| times.percentile(percent) as f64 / 1e3;
    Repeated::new(each.filter(|times| times.count() > 0).map(of).collect())
}

/// A figure of each repetition times a factor.
fn scaled(figure: &Repeated, factor: f64) -> Option<Repeated> {
    Repeated::new(figure.values.iter().map(|value| value * factor).collect())
}

/// The claim that an isolated CPU shortens the tail of a stack's round trips compared with a shared or loaded one.
fn isolation_shortens(
    outcome: &mut Outcome,
    what: &str,
    alone: Option<Repeated>,
    (cpu, other): (CpuCondition, Option<Repeated>),
) {
    let (Some(alone), Some(other)) = (alone, other) else { return };
    outcome.finding(
        &format!("an isolated CPU has a shorter tail than a {} one", cpu.name()),
        is_less(&alone, &other),
        format!(
            "{what}: p99 {} isolated, {} {}",
            crate::figures::micros(alone.median),
            crate::figures::micros(other.median),
            cpu.name()
        ),
    );
}

/// Whether a stack's program is compiled ahead of time; `None` for just-in-time compilation.
fn is_compiled(stack: &str) -> Option<bool> {
    match (stack, peers::find(stack).map(|peer| peer.language)) {
        ("own", _) | (_, Some("C" | "Rust" | "Go")) => Some(true),
        (_, Some("Python")) => Some(false),
        _ => None,
    }
}

/// The finding that each compiled stack is below each interpreted one, if there are both.
fn compiled_before_interpreted(outcome: &mut Outcome, what: &str, figures: &[(&str, Option<Repeated>)]) {
    let of = |wanted: bool| {
        let those = figures.iter().filter(move |(stack, _)| is_compiled(stack) == Some(wanted));
        those.filter_map(|(stack, value)| Some((stack_name(stack), value.as_ref()?)))
    };
    let slowest = of(true).max_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let quickest = of(false).min_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let (Some(compiled), Some(interpreted)) = (slowest, quickest) else { return };
    outcome.finding(
        &format!("compiled stacks are faster than interpreted ones ({what})"),
        is_less(compiled.1, interpreted.1),
        format!(
            "slowest compiled: {} ({}), fastest interpreted: {} ({})",
            crate::figures::number(compiled.1.median),
            compiled.0,
            crate::figures::number(interpreted.1.median),
            interpreted.0
        ),
    );
}

/// Label of a network in charts.
fn network_name(link: Option<&str>) -> &str {
    match link {
        None => "loopback",
        Some("ethernet-100m") => "Ethernet",
        Some("ethernet-100m+vpn") => "Ethernet+VPN",
        Some("wifi-802.11g") => "Wi-Fi",
        Some("wifi-802.11g+vpn") => "Wi-Fi+VPN",
        Some("3g+vpn") => "3G+VPN",
        Some("wan-sao-paulo") => "São Paulo",
        Some("wan-oregon") => "Oregon",
        Some("wan-frankfurt") => "Frankfurt",
        Some("wan-tokyo") => "Tokyo",
        Some(other) => other,
    }
}

/// A number of clients in words.
fn clients(count: u32) -> String {
    if count == 1 { "1 client".to_owned() } else { format!("{count} clients") }
}

/// A ratio in words.
fn times_as(ratio: f64) -> String {
    format!("{} times", crate::figures::number(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::EMBEDDED;
    use serde_json::json;
    use std::collections::BTreeSet;

    /// A place with only the built-in broker, as in a first run.
    fn place() -> Place {
        Place::new("/bin/true".into(), "/none".into()).with_embedded_broker(true)
    }

    #[test]
    fn orderings_are_undecided_if_repetitions_overlap() {
        let of = |values: &[f64]| Repeated::new(values.to_vec());
        let (low, high, wide) = (of(&[1.0, 1.1, 1.2]), of(&[2.0, 2.1, 2.2]), of(&[0.9, 1.1, 3.0]));
        assert_eq!(is_below(low.as_ref(), high.as_ref()), Some(true));
        assert_eq!(is_below(high.as_ref(), low.as_ref()), Some(false));
        assert_eq!(is_below(low.as_ref(), wide.as_ref()), None);
        assert_eq!(is_below(low.as_ref(), None), None);
        // A single measurement has no interval and must differ by more.
        assert_eq!(is_less(&of(&[1.0]).unwrap(), high.as_ref().unwrap()), Some(true));
        assert_eq!(is_less(high.as_ref().unwrap(), &of(&[1.0]).unwrap()), Some(false));
        assert_eq!(is_less(&of(&[1.7]).unwrap(), high.as_ref().unwrap()), None);
        assert_eq!(is_less(low.as_ref().unwrap(), wide.as_ref().unwrap()), None);
        // Two repetitions each that do not overlap but differ no more than they vary.
        let (one, two) = (of(&[1.0, 1.2]).unwrap(), of(&[1.25, 1.4]).unwrap());
        assert_eq!(is_less(&one, &two), None);
        let limits = [9.0, 1.1, 0.1].map(|limit| is_under(low.as_ref().unwrap(), limit));
        assert_eq!(limits, [Some(true), None, Some(false)]);
        let once = [1.6, 1.1, 0.6].map(|limit| is_under(&of(&[1.0]).unwrap(), limit));
        assert_eq!(once, [Some(true), None, Some(false)]);
        assert_eq!(all_hold([Some(true), None]), None);
        assert_eq!(all_hold([None, Some(false), Some(true)]), Some(false));
        assert_eq!(all_hold([Some(true), Some(true)]), Some(true));
    }

    #[test]
    fn compiled_and_interpreted_stacks() {
        let of = |value: f64| Repeated::new(vec![value, value * 1.01]);
        let figures = [("own", of(1.0)), ("open62541", of(2.0)), ("milo", of(9.0)), ("asyncua", of(5.0))];
        let mut outcome = Outcome::default();
        compiled_before_interpreted(&mut outcome, "µs", &figures);
        compiled_before_interpreted(&mut outcome, "µs", &figures[..3]);
        assert_eq!(outcome.findings.len(), 1);
        assert_eq!(outcome.findings[0].holds, Some(true));
        assert!(outcome.findings[0].evidence.contains("open62541"), "{:?}", outcome.findings);
    }

    #[test]
    fn ids_are_unique_and_match_the_register() {
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
            "cavalieri-validate",
            "cavalieri-session",
            "cavalieri-rtt",
            "cavalieri-publish",
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
    fn the_short_form_of_all_experiments_fits_its_time() {
        let place = place();
        let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
        let measured = all().into_iter().filter(|one| one.data() == one.id() && one.missing().is_none());
        let mut conditions: Vec<Condition> = measured.flat_map(|one| one.plan(&wish).conditions).collect();
        // Use the built-in broker: this machine may have a faster one installed.
        for condition in &mut conditions {
            condition.stack = condition.stack.replace("mosquitto", EMBEDDED);
        }
        assert!(conditions.iter().any(|one| one.stack == "embedded-qos0"));
        let seconds = crate::scenario::seconds(&conditions);
        // The limit is 690 s: repetitions that do not fit are left out.
        assert!(seconds < 680.0, "{seconds} s");
        // On a busy or slow machine only repetitions may be left out, so one pass must fit with a margin.
        let once = conditions.into_iter().map(|mut condition| {
            condition.time.repetitions = 1;
            condition
        });
        let seconds = crate::scenario::seconds(&once.collect::<Vec<_>>());
        assert!(seconds < 400.0, "{seconds} s");
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
    fn a_table_without_rows_is_not_shown() {
        let place = place();
        let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
        for experiment in all().into_iter().filter(|one| one.missing().is_none()) {
            let failed = |condition| Measurement::failed(experiment.data(), condition, 0, "broken".into());
            let measured: Vec<_> = experiment.plan(&wish).conditions.into_iter().map(failed).collect();
            let outcome = evaluate(experiment, &measured, &[]);
            assert!(outcome.grids.iter().all(|grid| !grid.rows.is_empty()), "{}", experiment.id());
            let said = measured.is_empty() || outcome.skipped.iter().any(|why| why.contains("broken"));
            assert!(said, "{}: {:?}", experiment.id(), outcome.skipped);
        }
    }

    #[test]
    fn each_experiment_states_what_is_comparable() {
        let place = place();
        let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
        for experiment in all().into_iter().filter(|one| one.missing().is_none()) {
            let fine = |condition| Measurement::from_document(experiment.data(), condition, 0, json!({}));
            let measured: Vec<_> = experiment.plan(&wish).conditions.into_iter().map(fine).collect();
            // The switch cannot be measured if none can be created here.
            if measured.is_empty() {
                continue;
            }
            let outcome = evaluate(experiment, &measured, &[]);
            let said = outcome.remarks.join(" ");
            let is_told = ["Comparable: ", "Not comparable: "].map(|word| said.contains(word));
            assert_eq!(is_told, [true; 2], "{}: {said}", experiment.id());
        }
    }

    #[test]
    fn experiments_without_measurements_are_skipped() {
        for experiment in all() {
            let outcome = evaluate(experiment, &[], &[]);
            assert!(!outcome.skipped.is_empty() && outcome.findings.is_empty(), "{}", experiment.id());
        }
    }
}
