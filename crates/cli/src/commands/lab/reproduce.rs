//! `lab reproduce`: runs published experiments, and compares published with measured results.

use super::report;
use super::session::{self, SessionArgs, Task};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use taktwerk_lab::experiment::{self, Experiment, Wish};
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::place::Place;
use taktwerk_lab::report::PROTOCOL;
use taktwerk_lab::scenario::Condition;

/// Arguments of `taktwerk lab reproduce`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReproduceArgs {
    /// Ids from `lab list`, the beginning of ids (burger), or all.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,

    /// Minutes instead of hours: fewer repetitions, shorter windows, fewer conditions.
    #[arg(long)]
    quick: bool,

    /// Stacks to measure, separated by commas. Default: all installed ones.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stacks: Option<Vec<String>>,

    /// Window of each load, instead of the protocol's. Loads with a fixed number of requests keep it.
    #[arg(long, value_name = "SPAN", value_parser = crate::span::seconds)]
    window: Option<Duration>,

    /// Warm-up of each load, instead of the protocol's. Loads that wait until they are steady still do.
    #[arg(long, value_name = "SPAN", value_parser = crate::span::seconds)]
    warmup: Option<Duration>,

    /// Repetitions of each load, instead of the protocol's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repetitions: Option<u32>,

    /// Skip repetitions that do not fit into this time; every load is measured at least once, also if this takes longer.
    /// Default for the short form of the own stack: 690s, unless --window or --repetitions is given.
    #[arg(long, value_name = "SPAN", value_parser = crate::span::seconds)]
    within: Option<Duration>,

    /// Move all other programs off the server's CPU where a load has the CPU for itself. Needs root and control groups,
    /// or a kernel started with isolcpus. Undone afterwards.
    #[arg(long)]
    isolate: bool,

    /// Where to write the report. Default: taktwerk-report.html, or taktwerk-report-2.html and so on if it exists.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    session: SessionArgs,
}

/// A single invalid window is omitted with a note. The run fails only if a stack has no valid measurement.
const EXIT_CODES: &str = "Exit code 0: every experiment has a valid measurement of each stack that was planned for it, \
    whether or not the findings hold. 5: some have none; the report is written all the same, and says which and why.";

/// Time limit of the short form of all experiments with the own stack only. Slow or busy machines get fewer
/// repetitions.
const SHORT_FORM: Duration = Duration::from_secs(690);

impl ReproduceArgs {
    fn within(&self, stacks: &[String]) -> Option<Duration> {
        let is_as_planned = self.window.is_none() && self.warmup.is_none() && self.repetitions.is_none();
        let is_ours = stacks.iter().all(|stack| stack == "own");
        self.within.or((self.quick && is_ours && is_as_planned).then_some(SHORT_FORM))
    }
}

impl ReproduceArgs {
    /// Deviations from the protocol, as notes.
    fn changes(&self) -> Vec<String> {
        let span = |name: &str, value: Option<Duration>| {
            value.map(|value| format!("{PROTOCOL}{name} of {} s", value.as_secs_f64()))
        };
        let repetitions = self.repetitions.map(|count| format!("{PROTOCOL}{count} repetitions"));
        [span("windows", self.window), span("warm-up", self.warmup), repetitions]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// The selected experiments.
pub(super) fn chosen(ids: &[String]) -> Result<Vec<&'static dyn Experiment>, Failure> {
    let all = experiment::all();
    let mut chosen: Vec<&'static dyn Experiment> = Vec::new();
    for id in ids {
        let exact = |one: &&&dyn Experiment| one.id() == id;
        let fits =
            |one: &&&dyn Experiment| id == "all" || one.id() == id || one.id().starts_with(&format!("{id}-"));
        let found: Vec<_> = match all.iter().find(exact) {
            Some(one) => vec![*one],
            None => all.iter().filter(fits).copied().collect(),
        };
        if found.is_empty() {
            let known: Vec<&str> = all.iter().map(|one| one.id()).collect();
            return Err(Failure::Usage(format!(
                "unknown experiment {id:?}; known experiments: {}",
                known.join(", ")
            )));
        }
        for one in found {
            if !chosen.iter().any(|known| known.id() == one.id()) {
                chosen.push(one);
            }
        }
    }
    Ok(chosen)
}

/// The conditions to measure, each once, and notes about omitted ones.
pub(super) fn plan(
    chosen: &[&'static dyn Experiment],
    quick: bool,
    stacks: &[String],
    place: &Place,
) -> (Vec<(String, Condition)>, Vec<String>) {
    let (mut conditions, mut notes, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for experiment in chosen {
        let data = experiment.data();
        if sources.contains(&data) || experiment.missing().is_some() {
            continue;
        }
        sources.push(data);
        let plan = experiment.plan(&Wish { quick, stacks: stacks.to_vec(), place });
        notes.extend(plan.skipped.into_iter().map(|note| format!("{data}: {note}")));
        conditions.extend(plan.conditions.into_iter().map(|condition| (data.to_owned(), condition)));
    }
    (conditions, notes)
}

/// The selected stacks. Default: all installed ones.
pub(super) fn stacks(asked: Option<&Vec<String>>, place: &Place) -> Result<Vec<String>, Failure> {
    let installed = place.stacks();
    let stacks = asked.cloned().unwrap_or_else(|| installed.clone());
    match stacks.iter().find(|stack| !installed.contains(stack)) {
        None => Ok(stacks),
        Some(unknown) => Err(Failure::Environment(format!(
            "the stack {unknown:?} is not installed; installed: {}",
            installed.join(", ")
        ))),
    }
}

/// Isolates the server's CPU for loads that have it for themselves.
fn isolate(conditions: &mut [(String, Condition)], place: &Place) -> Result<(), Failure> {
    let mut is_tried = false;
    for (_, condition) in conditions.iter_mut().filter(|(_, condition)| condition.can_isolate()) {
        condition.cpu.isolate = true;
        if !is_tried {
            place.check_cpu(condition).map_err(|error| Failure::Environment(error.to_string()))?;
            is_tried = true;
        }
    }
    Ok(())
}

/// Runs the experiments and writes the report.
pub(crate) fn run(arguments: &ReproduceArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    arguments.session.check(output)?;
    let path = report::destination(arguments.output.as_deref(), arguments.session.overwrite)?;
    let place = super::place(arguments.session.program.as_ref())?.with_stop(interrupt.flag());
    let chosen = chosen(&arguments.ids)?;
    let stacks = stacks(arguments.stacks.as_ref(), &place)?;
    let (mut conditions, notes) = plan(&chosen, arguments.quick, &stacks, &place);
    for (_, condition) in &mut conditions {
        let time = &mut condition.time;
        time.duration_s = arguments.window.map_or(time.duration_s, |window| window.as_secs_f64());
        time.warmup_s = arguments.warmup.map_or(time.warmup_s, |warmup| warmup.as_secs_f64());
        time.repetitions = arguments.repetitions.unwrap_or(time.repetitions);
    }
    if arguments.isolate {
        isolate(&mut conditions, &place)?;
    }
    let simulated = || chosen.iter().filter(|one| one.is_simulated());
    let notes =
        [arguments.changes(), notes, simulated().map(|one| simulated_note(one.id())).collect()].concat();
    let what =
        if arguments.ids.iter().any(|id| id == "all") { "all".to_owned() } else { arguments.ids.join(" ") };
    if cfg!(debug_assertions) && arguments.session.program.is_none() {
        tracing::warn!("this is a debug build: its results are not valid for a release");
    }
    let task = Task {
        what: &format!("reproduce {what}"),
        quick: arguments.quick,
        conditions: &conditions,
        notes: &notes,
        within: arguments.within(&stacks),
    };
    let finished = if chosen.iter().all(|one| one.is_simulated()) {
        session::without_measurements(&arguments.session, &task, &place)?
    } else {
        session::measure(&arguments.session, &task, &place, interrupt)?
    };
    let mut outcomes = Vec::new();
    for one in &chosen {
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        outcomes.push(if one.is_simulated() {
            tracing::info!("simulating {}", one.id());
            experiment::simulate(*one, arguments.quick)
        } else {
            experiment::evaluate(*one, &finished.measurements, &finished.notes)
        });
    }
    let run = finished.store.choose(Some(&finished.run.to_string()))?;
    report::write(&path, &run, &outcomes)?;
    if output.is_json() {
        output.document(&json!({"run": run, "outcomes": outcomes, "report": path}))?;
    } else {
        for outcome in &outcomes {
            output.text(&format!("{}\n", outcome.text()))?;
        }
        session::wrote(output, &path)?;
    }
    let mut lacking = lacking(&conditions, &finished.measurements);
    lacking.extend(outcomes.iter().flat_map(|outcome| outcome.errors.clone()));
    if lacking.is_empty() { Ok(()) } else { Err(Failure::InvalidReported(lacking.join("; "))) }
}

/// The note in a run that an experiment was simulated. A report simulates it again.
pub(super) fn simulated_note(id: &str) -> String {
    format!("{id}: simulated in virtual time")
}

/// Experiments and stacks without a valid measurement, with the reason.
fn lacking(conditions: &[(String, Condition)], measured: &[Measurement]) -> Vec<String> {
    let mut planned: Vec<(&str, &str)> = Vec::new();
    for (experiment, condition) in conditions {
        let pair = (experiment.as_str(), condition.stack.as_str());
        if !planned.contains(&pair) {
            planned.push(pair);
        }
    }
    let why = |(experiment, stack): (&str, &str)| {
        let is_it = |one: &&Measurement| one.experiment == experiment && one.condition.stack == stack;
        if measured.iter().filter(is_it).any(Measurement::is_valid) {
            return None;
        }
        let first = measured.iter().find(is_it).and_then(|one| one.invalid.first());
        let first = first.map_or("it was not measured", String::as_str);
        Some(format!("{experiment} has no valid measurement of {stack}: {first}"))
    };
    planned.into_iter().filter_map(why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_prefixes_and_all() {
        let ids = |texts: &[&str]| -> Vec<&str> {
            let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
            chosen(&texts).unwrap().iter().map(|one| one.id()).collect()
        };
        assert_eq!(ids(&["burger-cpu"]), ["burger-cpu"]);
        assert_eq!(ids(&["cgw"]), ["cgw-rtd", "cgw-outliers", "cgw-profile"]);
        assert_eq!(ids(&["all", "cgw"]).len(), experiment::all().len());
        assert!(chosen(&["burgers".to_owned()]).is_err());
    }

    #[test]
    fn the_short_form_of_the_own_stack_is_bounded() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            reproduce: ReproduceArgs,
        }
        let within = |line: &str, stacks: &[&str]| {
            let stacks: Vec<String> = stacks.iter().map(|&stack| stack.to_owned()).collect();
            let words = ["x"].into_iter().chain(line.split(' '));
            Line::try_parse_from(words).unwrap().reproduce.within(&stacks).map(|span| span.as_secs())
        };
        assert_eq!(within("all --quick", &["own"]), Some(690));
        assert_eq!(within("all --quick", &["own", "milo"]), None);
        assert_eq!(within("all", &["own"]), None);
        assert_eq!(within("burger --quick --repetitions 9", &["own"]), None);
        assert_eq!(within("all --within 1h", &["own", "milo"]), Some(3_600));
        let changes = |line: &str| {
            let words = ["x"].into_iter().chain(line.split(' '));
            Line::try_parse_from(words).unwrap().reproduce.changes()
        };
        assert_eq!(
            changes("all --window 3s --repetitions 9"),
            ["protocol: windows of 3 s", "protocol: 9 repetitions"]
        );
        assert!(changes("all --quick").is_empty());
    }

    #[test]
    fn stacks_without_valid_measurements_are_reported() {
        use taktwerk_lab::scenario::{Kind, LoadSpec, Scenario};
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        scenario.stacks = vec!["own".to_owned(), "milo".to_owned()];
        let conditions: Vec<_> =
            scenario.conditions().into_iter().map(|condition| ("a".to_owned(), condition)).collect();
        let of = |at: usize, is_valid: bool| {
            let condition = conditions[at].1.clone();
            if is_valid {
                return Measurement::from_document("a", condition, 0, json!({"invalid": []}));
            }
            Measurement::failed("a", condition, 0, "not ready".to_owned())
        };
        // An invalid measurement beside a valid one is accepted.
        assert_eq!(lacking(&conditions, &[of(0, true), of(0, false), of(1, true)]), Vec::<String>::new());
        assert_eq!(
            lacking(&conditions, &[of(0, true), of(1, false)]),
            ["a has no valid measurement of milo: not ready"]
        );
        assert_eq!(
            lacking(&conditions, &[of(1, true)]),
            ["a has no valid measurement of own: it was not measured"]
        );
        assert!(lacking(&[], &[]).is_empty());
    }

    #[test]
    fn experiments_that_share_data_are_measured_once() {
        let place = Place::new("/bin/true".into(), "/none".into());
        let own = ["own".to_owned()];
        let all = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
            plan(&chosen(&ids).unwrap(), true, &own, &place).0.len()
        };
        assert_eq!(all(&["burger-cpu", "burger-memory", "burger-model"]), all(&["burger-model"]));
        assert!(all(&["morato-pubsub"]) > 0);
        assert_eq!(all(&["morato-pubsub", "morato-pubsub"]), all(&["morato-pubsub"]));
    }
}
