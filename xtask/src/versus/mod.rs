//! `cargo xtask versus open62541`: the figures that this project promises, measured against a peer in the same run.
//!
//! The same load generator (`taktwerk bench`) drives both servers; a bare TCP program gives the floor. Repetitions are
//! interleaved, so what else happens on the machine hits all sides alike; medians are compared. The map:
//!
//! - [`figures`]: what is measured and what must hold, one file per kind;
//! - [`stand`]: the programs, where they run, and one measurement;
//! - [`samples`]: repetitions by side and quantity; [`report`]: the table and the JSON document.

mod figures;
mod report;
mod samples;
mod stand;

use report::Row;
use samples::{Samples, Side};
use stand::{Stand, StandError};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask versus open62541 [--json] [--quick] [--rows ID,…] [--repetitions N] [--out FILE]
       [--programs DIR]

  --json            print the JSON document instead of the table (it is always written to --out)
  --quick           2 repetitions and short windows: does it work, not how good is it
  --rows ID,…       only these rows; `pubsub` stands for all that begin so, which are measured only when they are asked for
  --repetitions N   default 5
  --out FILE        default target/versus.json
  --programs DIR    build nothing of ours: taktwerk and the benchmarks (floor, allocations, minimal) lie there

exit codes: 0 every row holds, 99 one does not, 6 something is missing, 2 usage";

/// Some row does not hold.
const THRESHOLD_FAILED: u8 = 99;

/// Above this load average, something else is running.
const BUSY: f64 = 0.5;

/// The load average of the last minute.
fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// What the user asked for.
#[derive(Debug)]
struct Options {
    json: bool,
    quick: bool,
    rows: Vec<String>,
    repetitions: usize,
    out: Option<String>,
    programs: Option<std::path::PathBuf>,
}

/// Runs the comparison; never fails silently.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match compare(root, &options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(THRESHOLD_FAILED),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(6)
        }
    }
}

fn parse(arguments: &[&str]) -> Result<Options, String> {
    let mut options =
        Options { json: false, quick: false, rows: Vec::new(), repetitions: 0, out: None, programs: None };
    let mut rest = arguments.iter();
    if rest.next() != Some(&"open62541") {
        return Err("the peer is missing: only open62541 can be compared with".into());
    }
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
        match *argument {
            "--json" => options.json = true,
            "--quick" => options.quick = true,
            "--rows" => options.rows = value()?.split(',').map(str::to_owned).collect(),
            "--repetitions" => {
                let text = value()?;
                options.repetitions = text
                    .parse()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or(format!("{text:?} is no number of repetitions"))?;
            }
            "--out" => options.out = Some((*value()?).to_owned()),
            "--programs" => options.programs = Some(value()?.into()),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    if options.repetitions == 0 {
        options.repetitions = if options.quick { 2 } else { 5 };
    }
    let known: Vec<&str> = figures::all(options.quick).iter().map(|figure| figure.id()).collect();
    match options.rows.iter().find(|row| !known.contains(&row.as_str()) && *row != PUBSUB) {
        Some(unknown) => Err(format!("there is no row {unknown:?}: the rows are {}", known.join(", "))),
        None => Ok(options),
    }
}

/// The rows of PubSub: of another issue, and with a peer that takes minutes to build.
const PUBSUB: &str = "pubsub";

/// Whether a row is wanted.
fn is_wanted(rows: &[String], id: &str) -> bool {
    let is_pubsub = id.starts_with(PUBSUB);
    rows.iter().any(|row| row == id || (row == PUBSUB && is_pubsub)) || (rows.is_empty() && !is_pubsub)
}

fn compare(root: &Path, options: &Options) -> Result<bool, StandError> {
    let wants_pubsub = options.rows.iter().any(|row| row.starts_with(PUBSUB));
    let stand = match &options.programs {
        None => Stand::build(root, wants_pubsub)?,
        Some(folder) => Stand::of(root, folder)?,
    };
    let load = load_average();
    if load > BUSY {
        eprintln!("warning: the load average is {load:.1}: what else runs here distorts the figures");
    }
    let mut rows: Vec<Row> = Vec::new();
    for mut figure in figures::all(options.quick) {
        if !is_wanted(&options.rows, figure.id()) {
            continue;
        }
        let mut samples = Samples::default();
        let started = std::time::Instant::now();
        for repetition in 0..options.repetitions {
            let mut sides = figure.sides().to_vec();
            // Alternate who goes first: the first after a pause meets a cooler machine.
            if repetition % 2 == 1 {
                sides.reverse();
            }
            for side in sides {
                eprintln!(
                    "{}: repetition {} of {}, {side}",
                    figure.id(),
                    repetition + 1,
                    options.repetitions
                );
                measure(&stand, figure.as_mut(), side, &mut samples);
            }
        }
        eprintln!("{}: {:.0} s", figure.id(), started.elapsed().as_secs_f64());
        rows.extend(figure.judge(&samples).into_iter().map(|row| row.with_problems(&samples)));
    }
    let holds = rows.iter().all(Row::holds);
    let document = report::document(&rows, options.repetitions, options.quick, load);
    let out = options.out.clone().map_or_else(|| root.join("target/versus.json"), Into::into);
    std::fs::write(&out, format!("{document:#}\n"))
        .map_err(|source| StandError::Write { path: out.clone(), source })?;
    if options.json {
        println!("{document:#}")
    } else {
        println!("{}", report::table(&rows))
    }
    eprintln!("written to {}", out.display());
    Ok(holds)
}

/// One measurement, tried again if it was invalid: something else may have taken the machine for a moment.
fn measure(stand: &Stand, figure: &mut dyn figures::Figure, side: Side, samples: &mut Samples) {
    const ATTEMPTS: usize = 3;
    for attempt in 1..=ATTEMPTS {
        match figure.measure(side, stand) {
            Ok(quantities) => {
                for (name, value) in quantities {
                    samples.add(side, name, value);
                }
                return;
            }
            Err(error) if attempt == ATTEMPTS => {
                eprintln!("  {side}: {error}");
                samples.problem(side, error.to_string());
            }
            Err(error) => eprintln!("  {side}: {error}; again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line() {
        let options = parse(&["open62541", "--quick", "--rows", "read-rtt,idle-rss"]).unwrap();
        assert_eq!((options.repetitions, options.rows.len(), options.json), (2, 2, false));
        assert_eq!(parse(&["open62541"]).unwrap().repetitions, 5);
        assert!(parse(&["milo"]).is_err() && parse(&[]).is_err());
        assert!(parse(&["open62541", "--rows", "nothing"]).unwrap_err().contains("read-rtt"));
        assert!(parse(&["open62541", "--repetitions", "0"]).is_err());
        let rows = |text: &str| parse(&["open62541", "--rows", text]).unwrap().rows;
        assert!(is_wanted(&rows("pubsub"), "pubsub-cpu") && !is_wanted(&rows("pubsub"), "read-rtt"));
        assert!(
            is_wanted(&rows("pubsub-rate"), "pubsub-rate") && !is_wanted(&rows("pubsub-rate"), "pubsub-cpu")
        );
        assert!(is_wanted(&[], "read-rtt") && !is_wanted(&[], "pubsub-cpu"));
        let programs = parse(&["open62541", "--programs", "somewhere"]).unwrap().programs;
        assert_eq!(programs, Some("somewhere".into()));
    }
}
