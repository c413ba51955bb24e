//! `lab calibrate`: what loads cost on this machine, measured for a model.

use super::session::{self, SessionArgs};
use crate::commands::model;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Args;
use taktwerk_lab::scenario::{Kind, LoadSpec, Scenario, Sweep};

/// Arguments of `taktwerk lab calibrate`.
#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Two minutes instead of an hour.
    #[arg(long)]
    quick: bool,

    /// Stacks to calibrate, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "own")]
    stacks: Vec<String>,

    #[command(flatten)]
    session: SessionArgs,
}

/// What its measurements are called in the store.
pub(crate) const DATA: &str = "calibrate";

/// Loads that vary everything a model knows: clients, signals and intervals.
fn scenarios(quick: bool, stacks: &[String]) -> Vec<Scenario> {
    let make = |interval: f64, clients: &[u32], rates: &[u32]| {
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.clients = Some(Sweep::Many(clients.to_vec()));
        load.items =
            Some(Sweep::Many(rates.iter().map(|rate| (f64::from(*rate) * interval / 1e3) as u32).collect()));
        load.publishing_ms = Some(interval.into());
        load.sampling_ms = Some(interval);
        load.queue = Some(1);
        let mut scenario = Scenario::new("calibrate", load);
        scenario.stacks = stacks.to_vec();
        scenario.server.update_ms = interval;
        let time = &mut scenario.time;
        (time.warmup_s, time.duration_s, time.repetitions) =
            if quick { (0.05, 1.0, 2) } else { (5.0, 20.0, 5) };
        time.steady = true;
        scenario
    };
    if quick {
        return vec![
            make(100.0, &[1, 5, 20, 50], &[10_000, 50_000, 200_000]),
            make(50.0, &[2, 10, 30], &[10_000, 50_000, 200_000]),
            make(250.0, &[1, 10, 50], &[10_000, 100_000]),
        ];
    }
    let rates = [2_000, 10_000, 25_000, 50_000, 100_000, 200_000, 300_000];
    vec![
        make(50.0, &[1, 5, 20, 50], &rates),
        make(100.0, &[1, 2, 5, 10, 20, 30, 50, 100], &rates),
        make(500.0, &[1, 10, 50, 100], &rates),
    ]
}

/// Measures and fits.
pub(crate) fn run(arguments: &CalibrateArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let place = super::place(arguments.session.program.as_ref())?;
    let conditions: Vec<_> = scenarios(arguments.quick, &arguments.stacks)
        .iter()
        .flat_map(Scenario::conditions)
        .map(|condition| (DATA.to_owned(), condition))
        .collect();
    let finished =
        session::measure(&arguments.session, DATA, arguments.quick, &place, &conditions, &[], interrupt)?;
    let models = model::fit_all(&finished.measurements)?;
    model::print(&models, output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_short_and_every_load_has_items_for_every_client() {
        let own = ["own".to_owned()];
        for quick in [true, false] {
            for condition in scenarios(quick, &own).iter().flat_map(Scenario::conditions) {
                assert!(condition.items.unwrap() >= condition.clients, "{}", condition.label());
            }
        }
        let conditions: Vec<_> = scenarios(true, &own).iter().flat_map(Scenario::conditions).collect();
        let seconds: f64 = conditions.iter().map(|c| c.seconds() * f64::from(c.time.repetitions)).sum();
        assert!(seconds < 150.0, "{seconds}");
    }
}
