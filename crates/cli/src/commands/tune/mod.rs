//! `taktwerk tune`: finds the best settings for a plant or a running server.

mod chart;
mod measure;
mod probe;
mod source;

use super::model::ModelArgs;
use super::sim::{self, Origin};
use crate::connection::SecurityArgs;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::overwrite::Overwrite;
use crate::progress::Progress;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use taktwerk_lab::confirmation::Confirmed;
use taktwerk_lab::outcome::wrapped;
use taktwerk_lab::table::{Align, Table};
use taktwerk_lab::tuning::{Processors, Simulation};
use taktwerk_model::Model;
use taktwerk_model::tune::analytic::Analytic;
use taktwerk_model::tune::confirm;
use taktwerk_model::tune::explain::{self, Reason};
use taktwerk_model::tune::problem::Options;
use taktwerk_model::tune::search::Point;
use taktwerk_model::tune::{Evaluate, Metric, Problem, Stage, TuneError, Tuned, tune, write};

/// Text after the examples of `--help`.
const EXPLAINED: &str = "\
How the recommended point is chosen:
  Every point of the Pareto front is better than all others in one figure. The recommended
  one is the knee: each figure is scaled to 0 at its best on the front and to 1 at its worst
  (a resource such as the link: where it is used up), and the sum is smallest there.
  Points whose sums differ by less than 10 % count as equally good: their middle is taken.
  A figure with a fixed bound belongs into --constraint instead.";

/// Arguments of `taktwerk tune`.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{}\n\n{EXPLAINED}", crate::examples::TUNE))]
pub(crate) struct TuneArgs {
    /// A plant (TOML), a scenario of the laboratory (TOML), or the URL of a running server, which is only read.
    #[arg(value_name = "TARGET")]
    target: String,

    /// Change a value of the file, such as link.rate=5M. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Constraint, such as 'delay_p99_ms <= 50'. Can be repeated.
    #[arg(long, value_name = "BOUND")]
    constraint: Vec<String>,

    /// Figures to minimise: one or more of delay_mean_ms, delay_p99_ms, delay_max_ms, bandwidth_bits_s, utilisation,
    /// total_utilisation, loss, server_cpu, client_cpu, energy_w.
    #[arg(long, value_name = "FIGURES", value_delimiter = ',')]
    minimize: Vec<String>,

    /// Seeds of the final simulations.
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,

    /// Use formulas only. Quick and rough.
    #[arg(long)]
    no_simulation: bool,

    /// Simulate with processors: a file of `taktwerk lab calibrate --host`, or epyc-vm, which comes with taktwerk. The CPU
    /// of server and clients, threads and busy-polling then follow from the simulation. A plant can name one as
    /// tune.host.
    #[arg(long, visible_alias = "profile", value_name = "FILE", conflicts_with = "no_simulation")]
    host_profile: Option<PathBuf>,

    /// Use host profiles of other builds too.
    #[arg(long)]
    any_build: bool,

    /// Measure the recommended setting and the default one (500 ms, a queue of one value): run server and clients over
    /// the emulated link of the plant, five times each, and compare with what was promised. Needs root, for network
    /// namespaces, and a machine without other load. Exit code 99 if a promise is broken, 5 if the measurements do not
    /// decide it.
    #[arg(long)]
    measure: bool,

    /// Write server.toml, users.toml, client.toml, publishednodes.json, telegraf.conf and front.svg into this directory, and
    /// confirm.toml, a scenario that measures what is promised, if the laboratory has such a load.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// URL of the server in the written files. Default: the target, or opc.tcp://localhost:4840.
    #[arg(long, value_name = "URL")]
    endpoint: Option<Endpoint>,

    /// Nodes of a running server: NodeIds or browse paths. Default: the variables below Objects that are not the server's own.
    #[arg(long, value_name = "NODE")]
    node: Vec<crate::node::NodeSpec>,

    /// How long to observe a running server.
    #[arg(long, value_name = "SPAN", default_value = "10", value_parser = crate::span::seconds)]
    watch: Duration,

    #[command(flatten)]
    source: ModelArgs,

    #[command(flatten)]
    security: SecurityArgs,
}

/// Share of lost values from which a recommendation says so.
const LOSS_NOTED: f64 = 0.01;

/// The files that are written. An existing users file is kept.
const WRITTEN: [&str; 6] =
    ["server.toml", "client.toml", "publishednodes.json", "telegraf.conf", "confirm.toml", "front.svg"];

/// Tunes and prints the result.
pub(crate) fn run(arguments: &TuneArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let options = Options {
        sets: arguments.set.clone(),
        constraints: arguments.constraint.clone(),
        minimize: arguments.minimize.clone(),
        seeds: arguments.seeds,
    };
    for file in arguments.output.iter().flat_map(|directory| WRITTEN.map(|name| directory.join(name))) {
        arguments.overwrite.check(&file)?;
    }
    let target = source::read(arguments, &options, interrupt)?;
    if let Some(directory) = &arguments.output {
        create(directory)?;
    }
    let problem = target.problem;
    let processors = processors(arguments, &problem)?;
    let cpu = cost_model(arguments, &problem, processors.is_some())?;
    let formulas = Analytic::new(&problem, cpu.as_ref());
    let simulation = Simulation::new(&problem, cpu.as_ref()).with_processors(processors);
    let evaluator: &dyn Evaluate = if arguments.no_simulation { &formulas } else { &simulation };
    let mut bar = Progress::new("simulating", 0);
    let mut report = |progress: taktwerk_model::tune::Progress| {
        bar.of(stage(progress.stage), progress.done as u64, progress.expected as u64);
        !interrupt.asked()
    };
    let tuned = tune(&problem, &formulas, evaluator, &mut report);
    drop(bar);
    let tuned = tuned.map_err(|error| failure(&error))?;
    let reasons = explain::reasons(&problem, &tuned);
    let mut notes = target.notes;
    let loss = tuned.recommended.figures.loss;
    if loss > LOSS_NOTED {
        notes.push(format!(
            "the recommended setting loses {} of the values: --constraint 'loss <= 0' allows none",
            Metric::Loss.text(loss)
        ));
    }
    let link = &problem.link;
    if arguments.no_simulation && [&link.up, &link.down].iter().any(|one| one.loss.share() > 0.0) {
        notes.push(
            "the link loses packets: formulas do not count what is sent again, the simulation does"
                .to_owned(),
        );
    }
    let endpoint = arguments.endpoint.as_ref().map_or(target.endpoint, ToString::to_string);
    if !output.is_json() {
        print(&problem, &tuned, &reasons, &notes, output)?;
    }
    let confirmed = match arguments.measure && !interrupt.asked() {
        true => Some(measure::run(&problem, &tuned, evaluator, interrupt)?),
        false => None,
    };
    if output.is_json() {
        output.document(&document(&problem, &tuned, &reasons, &notes, confirmed.as_ref()))?;
    } else if let Some(Ok(confirmed)) = &confirmed {
        output.text(&format!("\n{}", confirmed.outcome().text().trim_end()))?;
    }
    if let Some(directory) = &arguments.output {
        save(directory, &problem, &tuned, &endpoint, output)?;
    }
    if interrupt.asked() {
        return Err(Failure::Interrupted);
    }
    confirmed.map_or(Ok(()), |confirmed| verdict(&confirmed))
}

/// The exit status of a measurement.
fn verdict(confirmed: &Result<Confirmed, String>) -> Result<(), Failure> {
    match confirmed {
        Err(why) => Err(Failure::Environment(format!("the recommendation was not confirmed: {why}"))),
        Ok(Confirmed { confirmed: Some(true), .. }) => Ok(()),
        Ok(Confirmed { confirmed: Some(false), findings, .. }) => super::lab::judged(findings),
        Ok(Confirmed { confirmed: None, findings, invalid, .. }) => {
            let open = findings.iter().filter(|finding| finding.holds.is_none());
            let open = open.map(|finding| format!("open: {}: {}", finding.claim, finding.evidence));
            let why: Vec<String> = open.take(1).chain(invalid.iter().cloned()).collect();
            Err(Failure::InvalidReported(format!("the recommendation was not confirmed: {}", why.join("; "))))
        }
    }
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Model => "calculating",
        Stage::Coarse => "first look",
        Stage::Fine => "around the knee",
        Stage::Seeds => "with all seeds",
        Stage::Alternatives => "other choices",
    }
}

fn failure(error: &TuneError) -> Failure {
    match error {
        TuneError::Infeasible { .. } => Failure::Threshold(error.to_string()),
        TuneError::Stopped => Failure::Interrupted,
        TuneError::Failed(_) => Failure::InvalidReported(error.to_string()),
        // As in `taktwerk sim`: the plant contradicts itself.
        TuneError::NoCapacity { .. } | TuneError::Unknown(_) => Failure::Usage(error.to_string()),
    }
}

/// The machines that the plant or the command line names. They are also read if nothing is simulated, because a wrong
/// file must be noticed.
fn processors(arguments: &TuneArgs, problem: &Problem) -> Result<Option<Processors>, Failure> {
    let directory = Path::new(&arguments.target).parent().unwrap_or_else(|| Path::new(""));
    // What is promised for another machine cannot be confirmed on this one.
    let origin = match arguments.measure && !arguments.any_build {
        true => Origin::ThisMachine,
        false => Origin::of_build(arguments.any_build),
    };
    let read = |directory: &Path, name: &Path, place: &str| {
        let profile = sim::profile(directory, name, origin);
        profile.map_err(|error| Failure::Usage(format!("{place}: {error}")))
    };
    let of_plant = |key: &str, name: &String| read(directory, Path::new(name), &problem.place(key));
    let of_line = arguments.host_profile.as_ref();
    let server = match &problem.host {
        Some(name) => Some(of_plant("tune.host", name)?),
        None => of_line.map(|path| read(Path::new(""), path, "--host-profile")).transpose()?,
    };
    let client = problem.client_host.as_ref().map(|name| of_plant("tune.client_host", name)).transpose()?;
    let client = client.or_else(|| server.clone());
    let processors = server.zip(client).map(|(server, client)| Processors { server, client });
    Ok(processors.filter(|_| !arguments.no_simulation))
}

/// The cost model, if a figure needs it or the user names it.
fn cost_model(
    arguments: &TuneArgs,
    problem: &Problem,
    has_processors: bool,
) -> Result<Option<Model>, Failure> {
    let of_cpu = [Metric::ServerCpu, Metric::EnergyW];
    let counts = |metric: &Metric| {
        problem.minimize.contains(metric) || problem.constraints.iter().any(|one| one.metric == *metric)
    };
    let is_needed = of_cpu.iter().any(counts) && !has_processors || arguments.source.is_named();
    is_needed.then(|| arguments.source.load()).transpose()
}

/// The columns of the table: minimized figures first, then all other known ones.
fn columns(problem: &Problem, tuned: &Tuned) -> Vec<Metric> {
    let mut all = problem.minimize.clone();
    let usual =
        [Metric::DelayP99Ms, Metric::BandwidthBitsS, Metric::ServerCpu, Metric::ClientCpu, Metric::Loss];
    let constrained = problem.constraints.iter().map(|one| one.metric);
    for metric in constrained.chain(usual) {
        if !all.contains(&metric) && metric.of(&tuned.recommended.figures).is_some() {
            all.push(metric);
        }
    }
    all
}

/// Settings that differ between the points of the front, besides the interval.
fn differing(points: &[&Point]) -> Vec<&'static str> {
    const NAMES: [&str; 9] = [
        "sampling_ms",
        "queue_size",
        "publish_requests",
        "notifications_max",
        "keep_alive_count",
        "security",
        "transport",
        "busy_poll_us",
        "threads",
    ];
    let differs = |name: &&str| {
        let mut values = points.iter().map(|point| explain::text(name, &point.settings));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    NAMES.into_iter().filter(differs).collect()
}

fn print(
    problem: &Problem,
    tuned: &Tuned,
    reasons: &[Reason],
    notes: &[String],
    output: Output,
) -> Result<(), Failure> {
    let chosen = &tuned.recommended;
    let front: Vec<&Point> = tuned.points.iter().filter(|point| point.on_front).collect();
    let shared = if problem.is_shared { ", shared by both directions" } else { "" };
    // The rate below is the remaining rate of the link.
    let busy = match problem.link.down.busy {
        busy if busy > 0.0 => format!("; other traffic takes {} % of the line", (busy * 100.0).round()),
        _ => String::new(),
    };
    let load = format!(
        "{} signals, {} values/s, {} client{}, over {}{shared}{busy}",
        problem.items(),
        taktwerk_model::figures::count(problem.values_per_s().round()),
        problem.clients,
        if problem.clients == 1 { "" } else { "s" },
        problem.link.down,
    );
    output.text(wrapped("", &format!("{}: {load}", problem.name)).trim_end())?;
    for note in notes {
        output.text(wrapped("  note  ", note).trim_end())?;
    }
    output.text("")?;
    let metrics = columns(problem, tuned);
    let others = differing(&front);
    let heads: Vec<(&str, Align)> = std::iter::once(("interval", Align::Right))
        .chain(others.iter().map(|name| (*name, Align::Right)))
        .chain(metrics.iter().map(|metric| (metric.words(), Align::Right)))
        .chain([("by", Align::Left), ("", Align::Left)])
        .collect();
    let mut table = Table::new(&heads);
    for point in &front {
        let is_chosen = point.settings == chosen.settings;
        let cells = std::iter::once(explain::text("publishing_ms", &point.settings))
            .chain(others.iter().map(|name| explain::text(name, &point.settings)))
            .chain(metrics.iter().map(|metric| {
                metric.of(&point.figures).map_or_else(|| "–".to_owned(), |value| metric.text(value))
            }))
            .chain([point.by.to_owned(), if is_chosen { "recommended".to_owned() } else { String::new() }]);
        table.row(cells);
    }
    output.text(&format!("The Pareto front, {} evaluations:", tuned.evaluations))?;
    output.text(&table.to_string())?;
    if tuned.sorted_out > 0 {
        output.text(&format!(
            "{} combinations of other settings were excluded by formulas.",
            tuned.sorted_out
        ))?;
    }
    if let Some((count, reason)) = &tuned.impossible {
        output.text(
            wrapped("", &format!("{count} choices have no figures; the first: {reason}.")).trim_end(),
        )?;
    }
    output.text("\nRecommended:")?;
    let [settings, values] = widths(reasons);
    for reason in reasons {
        let name = format!("  {:<settings$}  {:<values$}  ", reason.setting, reason.value);
        output.text(wrapped(&name, &format!("{}.", reason.why)).trim_end())?;
    }
    Ok(())
}

/// Widths of the columns for settings and values.
fn widths(reasons: &[Reason]) -> [usize; 2] {
    let widest = |text: fn(&Reason) -> String| {
        reasons.iter().map(|reason| text(reason).chars().count()).max().unwrap_or(0)
    };
    [widest(|reason| reason.setting.to_owned()), widest(|reason| reason.value.clone())]
}

fn document(
    problem: &Problem,
    tuned: &Tuned,
    reasons: &[Reason],
    notes: &[String],
    confirmed: Option<&Result<Confirmed, String>>,
) -> serde_json::Value {
    let mut recommended = json!(tuned.recommended);
    if let Some(fields) = recommended.as_object_mut() {
        if tuned.queue_size > 0 {
            fields.insert("queue_size".to_owned(), json!(tuned.queue_size));
        }
        fields.insert("reasons".to_owned(), json!(reasons));
    }
    let front: Vec<&Point> = tuned.points.iter().filter(|point| point.on_front).collect();
    let impossible =
        tuned.impossible.as_ref().map(|(count, reason)| json!({"count": count, "first": reason}));
    let confirmation = confirmed.map(|confirmed| match confirmed {
        Ok(confirmed) => json!(confirmed),
        Err(why) => json!({"confirmed": null, "why": why}),
    });
    let mut document = json!({
        "plant": problem.name,
        "link": problem.link.name,
        "shared_line": problem.is_shared,
        "signals": problem.items(),
        "values_per_s": problem.values_per_s(),
        "clients": problem.clients,
        "minimize": problem.minimize,
        "constraints": problem.constraints.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "seeds": problem.seeds,
        "notes": notes,
        "recommended": recommended,
        "front": front,
        "points": tuned.points,
        "alternatives": tuned.alternatives,
        "sorted_out": tuned.sorted_out,
        "impossible": impossible,
        "evaluations": tuned.evaluations,
    });
    if let (Some(confirmation), Some(fields)) = (confirmation, document.as_object_mut()) {
        fields.insert("confirmation".to_owned(), confirmation);
    }
    document
}

/// Creates the directory of the written files. Called before the search, too: a wrong path must not cost minutes.
fn create(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::Environment(format!("cannot make {}: {error}", directory.display())))
}

fn save(
    directory: &std::path::Path,
    problem: &Problem,
    tuned: &Tuned,
    endpoint: &str,
    output: Output,
) -> Result<(), Failure> {
    create(directory)?;
    let mut names = Vec::new();
    for file in write::files(problem, tuned, endpoint) {
        super::lab::write_whole(&directory.join(file.name), &file.text)?;
        names.push(file.name);
    }
    // The configuration names a users file. Create an empty one, but keep an existing one.
    let users = directory.join("users.toml");
    if !users.exists() {
        let saved = taktwerk_config::users::Users::default().save(&users);
        saved.map_err(|error| Failure::Environment(error.to_string()))?;
        names.push("users.toml");
    }
    let confirm = confirm::scenario(problem, tuned);
    if let Ok(text) = &confirm {
        super::lab::write_whole(&directory.join("confirm.toml"), text)?;
        names.push("confirm.toml");
    }
    super::lab::write_whole(&directory.join("front.svg"), &chart::front(problem, tuned).file())?;
    names.push("front.svg");
    if output.is_json() {
        return Ok(());
    }
    output.text(&format!("\nwritten to {}: {}", directory.display(), names.join(", ")))?;
    if let Err(why) = confirm {
        output.text(wrapped("", &format!("No confirm.toml: {why}.")).trim_end())?;
    }
    let has_nodes =
        problem.nodes.iter().zip(&problem.signals).all(|(nodes, one)| nodes.len() >= one.count as usize);
    if has_nodes {
        return Ok(());
    }
    output.text("The NodeIds in these files are examples. Set yours as `nodes` of [[signals]].")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_content() {
        let reason =
            |setting, value: &str| Reason { setting, value: value.to_owned(), why: "It is best".to_owned() };
        let reasons = [reason("security", "sign-and-encrypt"), reason("notifications_max", "no limit")];
        assert_eq!(widths(&reasons), ["notifications_max".len(), "sign-and-encrypt".len()]);
        assert_eq!(widths(&[]), [0, 0]);
    }
}
