//! `taktwerk bench`: reads a [`Specification`], runs the load and prints the result.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::{Progress, Waiting};
use crate::tell::StandardError;
use clap::Subcommand;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::time::Duration;
use taktwerk_generator::{Attendant, Context, Finished, Lines, Step};
use taktwerk_lab::figures;
use taktwerk_lab::table::{Align, Table};
use taktwerk_load::Specification;
use taktwerk_load::result::Compared;

/// The load.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one, for as long as the command runs
pub(crate) enum BenchCommand {
    /// A load that the laboratory can start as well.
    #[command(flatten)]
    Load(Specification),
    /// Read a specification from standard input, one line of JSON, and print the document: for the laboratory.
    #[command(hide = true)]
    Specified,
}

/// Longest specification, in bytes: 500 nodes with long names.
const SPECIFICATION_MAX: u64 = 8 << 20;

/// Runs a command.
pub(crate) fn run(command: &mut BenchCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        BenchCommand::Load(load) => {
            if load.ends_with_stdin() {
                crate::supervised::end_with_stdin()?;
            }
            generate(load, output, interrupt)
        }
        BenchCommand::Specified => {
            let load = read_specification(io::stdin().lock())?;
            crate::supervised::end_with_stdin()?;
            generate(&mut { load }, output.as_json(), interrupt)
        }
    }
}

/// Reads one line. The input stays open, because a load may watch its end.
fn read_specification(input: impl BufRead) -> Result<Specification, Failure> {
    let mut line = String::new();
    input
        .take(SPECIFICATION_MAX)
        .read_line(&mut line)
        .map_err(|error| Failure::Environment(format!("cannot read the specification: {error}")))?;
    serde_json::from_str(&line).map_err(|error| Failure::Usage(format!("the specification: {error}")))
}

fn generate(load: &mut Specification, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if cfg!(not(feature = "gateway")) && load.name().starts_with("gateway") {
        let what = "this needs a `taktwerk` that was built with the feature `gateway`";
        return Err(Failure::Environment(what.to_owned()));
    }
    let context = Context::new(&StandardError, interrupt.flag());
    print(taktwerk_generator::run(load, &context)?, output)
}

/// Progress on standard error.
impl Attendant for StandardError {
    fn step(&self, what: &str, total: u64) -> Box<dyn Step> {
        Box::new(Progress::new(what, total))
    }

    fn wait(&self, what: &str, span: Duration) -> Box<dyn Step> {
        Box::new(Waiting::of_time(what, span))
    }

    fn program(&self) -> io::Result<PathBuf> {
        std::env::current_exe()
    }
}

impl Step for Progress {
    fn at(&mut self, position: u64) {
        Self::at(self, position);
    }
}

/// The bar moves by itself.
impl Step for Waiting {
    fn at(&mut self, _: u64) {}
}

/// Prints the result. An invalid or interrupted result is printed too, and then fails.
fn print(finished: Finished, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        output.document(&finished.document.into_value())?;
    } else {
        if let Ok(compared) = finished.document.part() {
            output.text(&format!("{}\n", comparison(&compared)))?;
        }
        if !finished.lines.times.is_empty() {
            output.text(&format!("{}\n", times(&finished.lines)))?;
        }
        output.text(&facts(&finished.lines).to_string())?;
    }
    Ok(finished.outcome?)
}

fn table(first: &'static str, others: &[&'static str]) -> Table {
    let others = others.iter().map(|title| (*title, Align::Right));
    Table::new(&std::iter::once((first, Align::Left)).chain(others).collect::<Vec<_>>())
}

fn times(lines: &Lines) -> Table {
    let mut table = table("", &["count", "mean", "p50", "p90", "p99", "p99.9", "max"]);
    for (what, of) in &lines.times {
        let count = figures::thousands(i64::try_from(of.count).unwrap_or(i64::MAX));
        let figures =
            [of.mean_us, of.p50_us, of.p90_us, of.p99_us, of.p999_us, of.max_us].map(figures::micros);
        table.row([what.clone(), count].into_iter().chain(figures));
    }
    table
}

fn facts(lines: &Lines) -> Table {
    let mut table = Table::new(&[("what", Align::Left), ("value", Align::Wrap)]);
    for (what, value) in &lines.facts {
        table.row([what.clone(), value.clone()]);
    }
    table
}

/// The comparison of gateways.
fn comparison(compared: &Compared) -> Table {
    let columns = ["devices", "changes/s", "in time", "p50", "p99", "CPU", "per value", "ratio", "holds"];
    let mut table = table("gateway", &columns);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    for row in &compared.comparison {
        let mut cells = vec![row.gateway.clone(), row.devices.to_string()];
        match &row.measured {
            Some(it) => cells.extend([
                figures::number(it.changes_per_s),
                format!("{:.1} %", it.in_time * 100.0),
                figures::micros(it.delay.p50_us),
                figures::micros(it.delay.p99_us),
                or_dash(it.cpu_percent.map(|percent| format!("{} %", figures::number(percent)))),
                or_dash(it.cpu_us_per_value.map(figures::micros)),
                or_dash(it.ratio.map(figures::number)),
            ]),
            // The reason is printed below the table.
            None => cells.extend(["–"; 7].map(str::to_owned)),
        }
        cells.push((if row.holds { "yes" } else { "no" }).to_owned());
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_load::latency::Summary;
    use taktwerk_load::result::{Contest, Load};

    #[test]
    fn a_specification_is_one_line() {
        let mut input = &b"{\"load\":\"read\",\"batch\":7}\nrest"[..];
        assert!(
            matches!(read_specification(&mut input).unwrap(), Specification::Read(load) if load.batch == 7)
        );
        assert_eq!(input, b"rest");
        for (text, why) in
            [("", "EOF"), ("{\"load\":\"reed\"}", "reed"), ("{\"load\":\"read\",\"bach\":1}", "bach")]
        {
            let refused = read_specification(text.as_bytes()).unwrap_err();
            assert!(matches!(refused, Failure::Usage(_)) && refused.to_string().contains(why), "{refused}");
        }
    }

    #[test]
    fn the_comparison_of_gateways_fits_a_terminal() {
        let row = |gateway: &str, cpu_us: f64| Contest {
            gateway: gateway.to_owned(),
            version: "1".to_owned(),
            devices: 50,
            holds: true,
            measured: Some(Load {
                values_per_s: 100.0,
                changes_per_s: 100.0,
                in_time: 1.0,
                delay: Summary::default(),
                cpu_percent: Some(1.0),
                cpu_us_per_value: Some(cpu_us),
                rss_bytes: 1,
                ratio: Some(cpu_us / 0.3),
                invalid: None,
            }),
            error: None,
        };
        let failed = Contest { gateway: "node-red".to_owned(), devices: 1, ..Contest::default() };
        let rows = vec![row("asyncua-pymodbus", 123.4), row("taktwerk", 0.3), failed];
        let text = comparison(&Compared { comparison: rows, ..Compared::default() }).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("411") && text.contains("yes") && text.contains("no"), "{text}");
    }
}
