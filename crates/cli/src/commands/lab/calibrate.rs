//! `lab calibrate`: measures the cost of loads on this machine, for a cost model.

use super::session::{self, SessionArgs, Task};
use crate::commands::model;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Args;
use std::path::PathBuf;
use taktwerk_lab::place;
use taktwerk_lab::scenario::{Kind, LoadSpec, Scenario, SecuritySpec, Sweep};

/// Arguments of `taktwerk lab calibrate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 5: no model could be fitted, or more than a fifth of the measurements are invalid."
)]
pub(crate) struct CalibrateArgs {
    /// Two minutes instead of an hour, for each stack.
    #[arg(long)]
    quick: bool,

    /// Stacks to calibrate, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "own")]
    stacks: Vec<String>,

    /// Measure what work takes on this machine instead, for `taktwerk sim`, and write the host profile here.
    #[arg(long, value_name = "FILE", conflicts_with = "stacks")]
    host: Option<PathBuf>,

    #[command(flatten)]
    session: SessionArgs,
}

/// Name of the measurements in the store.
pub(crate) const DATA: &str = "calibrate";

/// Loads with one interval, for the given numbers of clients and total signals per second.
fn scenario(quick: bool, stack: &str, interval: f64, clients: &[u32], rates: &[u32]) -> Scenario {
    let mut load = LoadSpec::new(Kind::Subscribe);
    load.clients = Some(Sweep::Many(clients.to_vec()));
    load.items =
        Some(Sweep::Many(rates.iter().map(|rate| (f64::from(*rate) * interval / 1e3) as u32).collect()));
    load.publishing_ms = Some(interval.into());
    load.sampling_ms = Some(interval);
    load.queue = Some(1);
    let mut scenario = Scenario::new("calibrate", load);
    scenario.stacks = vec![stack.to_owned()];
    scenario.server.update_ms = interval;
    let time = &mut scenario.time;
    (time.warmup_s, time.duration_s, time.repetitions) = if quick { (0.05, 1.0, 2) } else { (1.0, 5.0, 5) };
    time.steady = true;
    scenario
}

/// Loads that vary all factors of a model: clients, signals, intervals and security. They range from the load of a
/// small field device, so that no extrapolation is needed, to a large part of a core.
fn scenarios(quick: bool, stacks: &[String]) -> Vec<Scenario> {
    let mut all = Vec::new();
    for stack in stacks {
        let make =
            |interval: f64, clients: &[u32], rates: &[u32]| scenario(quick, stack, interval, clients, rates);
        let secret = |mut scenario: Scenario| {
            scenario.security = SecuritySpec::encrypted();
            scenario
        };
        if quick {
            all.extend([
                make(50.0, &[5, 30], &[2_000, 200_000]),
                make(100.0, &[1, 50], &[2_000, 20_000, 200_000]),
                make(100.0, &[10], &[20_000]),
                make(250.0, &[1], &[200_000]),
                make(250.0, &[50], &[20_000]),
            ]);
            if place::can_encrypt(stack) {
                all.push(secret(make(100.0, &[1, 20], &[20_000, 200_000])));
            }
        } else {
            let rates = [1_000, 5_000, 20_000, 100_000, 300_000];
            all.extend([
                make(50.0, &[1, 5, 20, 50], &rates),
                make(100.0, &[1, 2, 5, 10, 20, 30, 50, 100], &rates),
                make(500.0, &[1, 10, 100], &rates),
            ]);
            if place::can_encrypt(stack) {
                all.push(secret(make(100.0, &[1, 10, 50], &[5_000, 50_000, 200_000])));
            }
        }
    }
    all
}

/// Measures and fits.
pub(crate) fn run(arguments: &CalibrateArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(file) = &arguments.host {
        session::can_write(file, arguments.session.overwrite)?;
        let place = super::place(arguments.session.program.as_ref())?.with_stop(interrupt.flag());
        return super::host::run(file, &place, arguments.quick, output, interrupt);
    }
    arguments.session.check(output)?;
    let place = super::place(arguments.session.program.as_ref())?.with_stop(interrupt.flag());
    let conditions: Vec<_> = scenarios(arguments.quick, &arguments.stacks)
        .iter()
        .flat_map(Scenario::conditions)
        .map(|condition| (DATA.to_owned(), condition))
        .collect();
    let task = Task { what: DATA, quick: arguments.quick, conditions: &conditions, notes: &[], within: None };
    let finished = session::measure(&arguments.session, &task, &place, interrupt)?;
    let (all, run) = (finished.measurements.len(), finished.run);
    let failed = finished.measurements.iter().filter(|one| !one.is_valid()).count();
    let said = format!(
        "{failed} of {all} measurements are invalid and were left out: `taktwerk lab report {run}` shows the \
         reasons"
    );
    let models = model::fit_all(&finished.measurements)
        .map_err(|_| Failure::InvalidReported(format!("there are too few for a model: {said}")))?;
    model::print(&models, output)?;
    if !output.is_json() {
        output.text(&format!(
            "\nstored as run {run}; to predict the cost of a load: taktwerk model predict, taktwerk size"
        ))?;
    }
    if is_too_much(failed, all) {
        return Err(Failure::InvalidReported(said));
    }
    if failed > 0 {
        tracing::warn!("{said}");
    }
    Ok(())
}

/// Whether more than a fifth of the measurements for a model are missing.
fn is_too_much(failed: usize, all: usize) -> bool {
    failed * 5 > all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_short_and_every_client_has_items() {
        let own = ["own".to_owned()];
        for quick in [true, false] {
            for condition in scenarios(quick, &own).iter().flat_map(Scenario::conditions) {
                assert!(condition.items.unwrap() >= condition.clients, "{}", condition.label());
            }
        }
        let seconds = |quick: bool| -> f64 {
            let conditions: Vec<_> = scenarios(quick, &own).iter().flat_map(Scenario::conditions).collect();
            taktwerk_lab::scenario::seconds(&conditions)
        };
        assert!(seconds(true) < 95.0, "{}", seconds(true));
        assert!((2_400.0..4_200.0).contains(&seconds(false)), "{}", seconds(false));
    }

    #[test]
    fn up_to_a_fifth_may_be_missing() {
        assert!(!is_too_much(0, 0) && !is_too_much(7, 35) && is_too_much(8, 35));
    }

    #[test]
    fn small_loads_and_encryption_are_measured() {
        let all = |stack: &str| {
            let stacks = [stack.to_owned()];
            scenarios(true, &stacks).iter().flat_map(Scenario::conditions).collect::<Vec<_>>()
        };
        let rate = |c: &taktwerk_lab::scenario::Condition| {
            f64::from(c.items.unwrap()) * 1e3 / c.publishing_ms.unwrap()
        };
        // The smallest node of the plants in docs/lab: 150 points every 50 ms.
        assert!(all("own").iter().map(rate).fold(f64::MAX, f64::min) <= 3_000.0);
        assert!(all("own").iter().any(|c| !c.security.is_none()));
        assert!(all("asyncua").iter().all(|c| c.security.is_none()));
    }
}
