//! `taktwerk size`: checks whether a plant fits its hardware.

use super::model::ModelArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::text_file;
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use taktwerk_lab::outcome::wrapped;
use taktwerk_lab::table::{Align, Table};
use taktwerk_model::Model;
use taktwerk_model::document::Document;
use taktwerk_model::figures;
use taktwerk_model::plant::{Change, Need, Plant, Sized, Verdict};

/// Text after the examples of `--help`.
const EXPLAINED: &str = "\
How points and clients multiply:
  `points` are the monitored values of one node over all its clients. A value that
  four clients monitor counts four times.
      signals/s  = points x changing / interval
      messages/s = clients / interval
  A plant has `count` nodes of each kind. CPU, memory and network are those of one node.";

/// Arguments of `taktwerk size`.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{}\n\n{EXPLAINED}", crate::examples::SIZE))]
pub(crate) struct SizeArgs {
    /// The plant (TOML): nodes with points, clients and intervals, and their hardware.
    #[arg(value_name = "PLANT")]
    file: PathBuf,

    #[command(flatten)]
    source: ModelArgs,
}

/// The expected need and its 90 % interval.
fn need(need: Option<&Need>) -> String {
    let Some(need) = need else { return "–".to_owned() };
    let (low, high) = need.interval90;
    let [expected, low, high] = [need.expected, low, high].map(figures::number);
    format!("{expected} ({low}–{high})")
}

/// Reads the plant, sizes it and prints the result.
pub(crate) fn run(arguments: &SizeArgs, output: Output) -> Result<(), Failure> {
    let file = arguments.file.display().to_string();
    let text = text_file::read(&arguments.file)?;
    let document = Document::parse(&text, &file, &[]).map_err(|error| Failure::Usage(error.to_string()))?;
    let plant = Plant::read(&document).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut calibrated = BTreeMap::new();
    for (at, hardware, file) in plant.calibrations() {
        // Relative to the directory of the plant file.
        let directory = arguments.file.parent().unwrap_or_else(|| Path::new(""));
        let model = arguments.source.read(directory, Path::new(file));
        let place = || document.place(&format!("hardware.{at}.calibration"));
        calibrated.insert(
            hardware.to_owned(),
            model.map_err(|error| Failure::Usage(format!("{}: {error}", place())))?,
        );
    }
    // If all hardware has its own calibration, no other model is needed.
    let model = match calibrated.values().next().filter(|_| !plant.needs_a_model()) {
        Some(calibrated) => calibrated.clone(),
        None => arguments.source.load()?,
    };
    let sized = plant.size(&model, &calibrated);
    if output.is_json() {
        output.document(&json!({"plant": plant.name, "stack": model.stack, "nodes": sized}))?;
    } else {
        print(&plant, &model, &sized, output)?;
    }
    if sized.iter().any(|one| one.verdict == Verdict::DoesNotFit) {
        return Err(Failure::Threshold("not every node fits".to_owned()));
    }
    Ok(())
}

fn print(plant: &Plant, model: &Model, sized: &[Sized], output: Output) -> Result<(), Failure> {
    let mut table = Table::new(&[
        ("node", Align::Wrap),
        ("CPU % of a core", Align::Right),
        ("memory MB", Align::Right),
        ("Mbit/s", Align::Right),
        ("verdict", Align::Wrap),
    ]);
    for one in sized {
        table.row([
            format!("{} × {}", one.node.count, one.node.name),
            need(Some(&one.cpu)),
            need(one.memory.as_ref()),
            need(one.network.as_ref()),
            one.verdict.name().to_owned(),
        ]);
    }
    let title =
        format!("{}, by the model of {}; nine of ten lie in the parentheses", plant.name, model.name());
    output.text(wrapped("", &title).trim_end())?;
    output.text("")?;
    output.text(&table.to_string())?;
    output.text("")?;
    sized.iter().try_for_each(|one| explain(one, output))
}

/// The resource closest to its limit after a change, and its use.
fn after(change: &Change) -> String {
    let figure = match (change.nearest, change.memory_mb, change.network_mbit) {
        ("memory", Some(memory), _) => format!("{} MB", figures::number(memory)),
        ("network", _, Some(network)) => format!("{} Mbit/s", figures::number(network)),
        _ => format!("CPU {} %", figures::number(change.cpu_percent)),
    };
    if change.fits { figure } else { format!("{figure}, still beyond the limit") }
}

fn explain(one: &Sized, output: Output) -> Result<(), Failure> {
    let name = &one.node.name;
    let is_enough = one.changes.iter().any(|change| change.fits);
    let intro = match one.verdict {
        Verdict::Fits if one.changes.is_empty() => "no change of its load would make it cheaper",
        Verdict::Fits => "would get cheaper with",
        _ if one.changes.is_empty() => "no change of its load or hardware would help",
        _ if is_enough => "ways out, the cheapest first:",
        _ => "nothing alone is enough, what helps most:",
    };
    let changes: Vec<String> =
        one.changes.iter().map(|change| format!("{} ({})", change.what, after(change))).collect();
    let limit = match (one.first_limit, one.headroom) {
        (_, None) => "no limit is near".to_owned(),
        (first, Some(0.0)) => format!("{first} is beyond its limit, however few the points"),
        (first, Some(times)) => {
            format!("{first} is the first limit, at {} times the points", figures::number(times))
        }
    };
    let mut text = wrapped(&format!("{name}: "), &format!("{limit}; {intro} {}", changes.join("; ")));
    let unknown = [("memory", &one.memory), ("network", &one.network)];
    let unknown: Vec<&str> =
        unknown.iter().filter(|(_, need)| need.is_none()).map(|(name, _)| *name).collect();
    if !unknown.is_empty() {
        let what = format!("{} not measured by this model, so not judged", unknown.join(" and "));
        text.push_str(&wrapped("  note  ", &what));
    }
    if one.scaled {
        text.push_str(&wrapped(
            "  note  ",
            "scaled from the model's machine; a calibration on the target is more accurate",
        ));
    }
    if !one.outside.is_empty() {
        let outside = one.outside.join("; ");
        text.push_str(&wrapped(
            "  note  ",
            &format!("outside the measured range, so the interval is too narrow: {outside}"),
        ));
    }
    output.text(text.trim_end())
}
