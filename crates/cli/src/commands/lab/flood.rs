//! `taktwerk lab flood`: attacks a server on this machine, and checks whether honest clients are affected.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::serve::{APPLICATION_NAME, APPLICATION_URI};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::time::Duration;
use taktwerk_attack::{Attack, AttackError, Limits, Memory, Options, Report, ServerProgram};
use taktwerk_lab::leftovers::clean_up;
use taktwerk_lab::table::{Align, Table};

/// Arguments of `taktwerk lab flood`.
#[derive(Debug, Args)]
pub(crate) struct FloodArgs {
    /// Attack to run.
    #[arg(value_parser = attacks())]
    attack: Attack,

    /// Number of connections of the attacker. Default: depends on the attack.
    #[arg(long, short = 'c', value_name = "N")]
    connections: Option<usize>,

    /// Duration of the attack; some attacks end by themselves.
    #[arg(long, short = 'd', value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,

    /// Time between the attack and the comparison of memory.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    settle: u64,

    /// For `chunks`: total amount of data to send, in MB.
    #[arg(long, value_name = "MB", default_value_t = 10_000)]
    megabytes: u64,

    /// Start the server with the limits of `taktwerk serve` on loopback instead of those of a public server.
    #[arg(long)]
    wide: bool,

    /// Limit for the 99th percentile of the canary's reads.
    #[arg(long, value_name = "MS", default_value_t = 200.0)]
    p99: f64,

    /// Report the canary's latency and the memory without judging them, for busy machines.
    #[arg(long)]
    no_times: bool,
}

fn attacks() -> impl TypedValueParser<Value = Attack> {
    let values =
        Attack::ALL.map(|attack| clap::builder::PossibleValue::new(attack.name()).help(attack.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Attack>())
}

impl FloodArgs {
    fn options(&self) -> Result<Options, Failure> {
        let path = std::env::current_exe()
            .map_err(|error| Failure::Environment(format!("cannot find this program: {error}")))?;
        let server = ServerProgram {
            path,
            application_name: APPLICATION_NAME.to_owned(),
            application_uri: APPLICATION_URI.to_owned(),
        };
        Ok(Options {
            limits: if self.wide { Limits::Loopback } else { Limits::Strangers },
            connections: self.connections,
            duration: Duration::from_secs(self.seconds),
            settle: Duration::from_secs(self.settle),
            bytes: self.megabytes * 1_000_000,
            p99_max_ms: self.p99,
            judges_times: !self.no_times,
            ..Options::new(self.attack, server)
        })
    }
}

/// Runs an attack and prints the result.
pub(crate) fn run(arguments: &FloodArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    clean_up();
    let report =
        taktwerk_attack::run(&arguments.options()?, &interrupt.flag()).map_err(|error| match error {
            AttackError::Environment(what) => Failure::Environment(what),
        })?;
    print(&report, output)?;
    match report.first_failure() {
        _ if interrupt.asked() => Err(Failure::Interrupted),
        None => Ok(()),
        Some(claim) => Err(Failure::Threshold(claim.to_owned())),
    }
}

fn print(report: &Report, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let document = serde_json::to_value(report)
            .map_err(|error| Failure::Environment(format!("cannot write the report: {error}")))?;
        return output.line(&document);
    }
    let mebi = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let mut facts = Table::new(&[("", Align::Left), ("", Align::Left)]);
    facts.row(["attack", &format!("{} ({} connections)", report.attack, report.connections)]);
    let limits = match report.limits {
        Limits::Strangers => "for strangers",
        Limits::Loopback => "for loopback",
    };
    facts.row(["limits", limits]);
    facts.row(["took", &format!("{:.1} s", report.seconds)]);
    for (name, value) in &report.facts {
        facts.row([name, value]);
    }
    let Memory { before, peak, after } = report.memory;
    facts.row(["memory", &format!("{} before, {} at most, {} after", mebi(before), mebi(peak), mebi(after))]);
    let canary = &report.canary;
    facts.row([
        "canary reads",
        &format!(
            "{}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
            canary.reads, canary.read_p50_ms, canary.read_p99_ms, canary.read_max_ms
        ),
    ]);
    facts.row(["canary values", &format!("{}, {} lost", canary.values, canary.lost_values)]);
    output.text(&facts.to_string())?;
    if report.claims.is_empty() {
        return output.text("interrupted: nothing was judged");
    }
    let mut claims = Table::new(&[("holds", Align::Left), ("claim", Align::Left)]);
    for claim in &report.claims {
        claims.row([if claim.holds { "yes" } else { "NO" }, &claim.claim]);
    }
    output.text(&claims.to_string())
}
