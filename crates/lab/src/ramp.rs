//! A ramp of clients against one running server: the CPU that its headroom predicts, and the CPU that it uses.
//!
//! [`calibration`] has the loads that the server's cost model is fitted to. The ramp has other numbers of clients and other
//! numbers of items per client.

use crate::figures::number;
use crate::measurement::{Group, Measurement, group};
use crate::model::{Model, Observation};
use crate::outcome::{Grid, Outcome};
use crate::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};
use crate::statistics::median;
use serde::Serialize;
use taktwerk_load::result::Figure;

/// Variables of the server, all of which change in every interval.
pub const VARIABLES: u32 = 1_000;
/// Publishing interval, sampling interval, and time between two changes of a variable, in milliseconds.
pub const INTERVAL_MS: f64 = 20.0;
/// Items of each client of the ramp. With many more, receiving takes the load generator longer than sending takes the server,
/// and the server is slowed down by a generator that has no processor left.
pub const ITEMS: u32 = 30;
/// Clients, and items of each, of the loads that the model is fitted to.
const FITTED: [(u32, u32); 10] = [
    (2, 10),
    (4, 250),
    (40, 40),
    (60, 250),
    (150, 10),
    (150, 120),
    (300, 20),
    (300, 150),
    (700, 130),
    (1_200, 60),
];
/// Most clients of a step.
const CLIENTS_MAX: u32 = 4_000;
/// The least share of the signals that must arrive for a step to count.
const DELIVERED: f64 = 0.97;
/// The most CPU of the load generator for a step to count, in percent of its core: beyond it, the server waits for the generator, and
/// sends and wakes more often for the same signals.
const GENERATOR_MAX: f64 = 95.0;
/// The beginning of a step, in milliseconds: the load has run for at most a second.
const BEGINNING_MS: f64 = 500.0;
/// How far the prediction may be off at every step.
const ALLOWED: f64 = 0.15;

fn scenario(stack: &str, clients: u32, items: u32, window_s: f64, repetitions: u32) -> Scenario {
    let mut load = LoadSpec::new(Kind::Subscribe);
    load.clients = Some(Sweep::One(clients));
    load.items = Some(Sweep::One(clients.saturating_mul(items)));
    load.publishing_ms = Some(Sweep::One(INTERVAL_MS));
    load.sampling_ms = Some(INTERVAL_MS);
    load.queue = Some(1);
    let mut scenario = Scenario::new("headroom", load);
    scenario.stacks = vec![stack.to_owned()];
    (scenario.server.signals, scenario.server.update_ms) = (VARIABLES, INTERVAL_MS);
    let time = &mut scenario.time;
    (time.warmup_s, time.duration_s, time.repetitions, time.steady) = (0.5, window_s, repetitions, true);
    scenario
}

/// The loads for the cost model.
#[must_use]
pub fn calibration(window_s: f64, repetitions: u32) -> Vec<Condition> {
    let of = |(clients, items)| scenario("own", clients, items, window_s, repetitions).conditions();
    FITTED.into_iter().flat_map(of).collect()
}

/// Of each load the valid repetition with the median CPU: what disturbs one of them is no cost.
#[must_use]
pub fn typical(measurements: &[Measurement]) -> Vec<Measurement> {
    let of = |group: Group<'_>| {
        let mut valid = group.valid;
        let cpu = |one: &Measurement| one.get(Figure::SERVER_CPU_PERCENT).unwrap_or(f64::MAX);
        valid.sort_by(|one, other| cpu(one).total_cmp(&cpu(other)));
        valid.get(valid.len().saturating_sub(1) / 2).map(|one| (*one).clone())
    };
    group(measurements).into_iter().filter_map(of).collect()
}

/// One step against a running server.
#[must_use]
pub fn step(url: &str, clients: u32, window_s: f64) -> Option<Condition> {
    scenario(url, clients, ITEMS, window_s, 1).conditions().into_iter().next()
}

/// The clients for which the model predicts so much CPU, in percent of a core; at least one.
#[must_use]
pub fn clients_for(model: &Model, cpu_percent: f64) -> u32 {
    let cpu = |clients: u32| {
        let clients = f64::from(clients);
        let load = Observation::planned(clients * f64::from(ITEMS), clients, INTERVAL_MS, false);
        model.predict(&load).cpu_percent
    };
    let (mut low, mut high) = (1, CLIENTS_MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if cpu(middle) < cpu_percent { low = middle + 1 } else { high = middle }
    }
    low
}

/// What the server showed of its headroom, at one moment. CPU is in percent of a core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Milliseconds since 1970.
    pub unix_ms: f64,
    /// CPU of what clients have asked for.
    pub predicted: f64,
    /// CPU of the second before.
    pub actual: f64,
    /// Signals per second that still fit.
    pub remaining: f64,
}

/// One step of the ramp. CPU is in percent of a core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Clients.
    pub clients: u32,
    /// Signals per second that arrived.
    pub signals_per_s: f64,
    /// CPU of the load generator.
    pub generator: f64,
    /// CPU that the server predicted.
    pub predicted: f64,
    /// CPU that it measured.
    pub actual: f64,
    /// Signals per second that still fitted, as the server said.
    pub remaining: f64,
}

impl Step {
    /// From the readings of a window that began at `from_ms` and ended at `until_ms`; `None` if there are too few. The prediction
    /// is that of the window's beginning: servers learn from the CPU that they use, and by then they cannot know that of this load.
    /// For the actual CPU, the first second is of no use: it is that of the second before.
    #[must_use]
    pub fn of(
        clients: u32,
        (signals_per_s, generator): (f64, f64),
        readings: &[Reading],
        (from_ms, until_ms): (f64, f64),
    ) -> Option<Self> {
        // Another program disturbs a second, not the median of several.
        let over = |from_ms: f64, until_ms: f64, of: fn(&Reading) -> f64| {
            let within = |one: &&Reading| one.unix_ms >= from_ms && one.unix_ms <= until_ms;
            median(&readings.iter().filter(within).map(of).collect::<Vec<f64>>())
        };
        let begins_until = from_ms + BEGINNING_MS;
        Some(Self {
            clients,
            signals_per_s,
            generator,
            predicted: over(from_ms, begins_until, |one| one.predicted)?,
            actual: over(from_ms + 1_500.0, until_ms, |one| one.actual)?,
            remaining: over(from_ms, begins_until, |one| one.remaining)?,
        })
    }

    /// Why the step tells nothing about the prediction, which is for what the clients have asked for: they did not get it, or
    /// could hardly take it.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let asked = f64::from(self.clients) * f64::from(ITEMS) * 1e3 / INTERVAL_MS;
        if self.signals_per_s < asked * DELIVERED {
            return Some(format!(
                "{} of {} signals/s arrived: the load generator or the server could not keep up",
                number(self.signals_per_s),
                number(asked)
            ));
        }
        (self.generator > GENERATOR_MAX).then(|| {
            format!(
                "the load generator took {} % of its core, and slows the server down",
                number(self.generator)
            )
        })
    }

    /// The relative error of the prediction.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.actual.max(1e-9) - 1.0
    }
}

/// A table of the steps, and whether every prediction is near enough. Open if a step gave no figure and no other is off: nobody
/// knows about that one.
#[must_use]
pub fn outcome(steps: &[Step], skipped: Vec<String>) -> Outcome {
    let mut outcome = Outcome {
        id: "headroom".to_owned(),
        question: "Does the running server know its load?".to_owned(),
        source: format!(
            "one server with {VARIABLES} variables that change every {INTERVAL_MS} ms; clients with {ITEMS} items each"
        ),
        skipped,
        ..Outcome::default()
    };
    let mut grid = Grid::new(
        "CPU of the server, percent of a core",
        0,
        &["clients", "signals/s", "predicted", "actual", "error %", "signals/s that still fit", "load CPU"],
    );
    for step in steps {
        grid.row([
            step.clients.to_string(),
            number(step.signals_per_s),
            number(step.predicted),
            number(step.actual),
            format!("{:+.1}", step.error() * 100.0),
            number(step.remaining),
            number(step.generator),
        ]);
    }
    outcome.grids.push(grid);
    let worst = steps.iter().map(|step| step.error().abs()).fold(0.0, f64::max);
    let is_off = worst > ALLOWED;
    let is_complete = !steps.is_empty() && outcome.skipped.is_empty();
    let holds = (is_off || is_complete).then_some(!is_off);
    outcome.finding(
        &format!("the prediction is off by at most {:.0} % at every step", ALLOWED * 100.0),
        holds,
        format!("{:.1} % at most over {} steps", worst * 100.0, steps.len()),
    );
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 % at rest, 2 ppm of a core per signal and second, 1 ms per second and 50 messages.
    fn model() -> Model {
        let data: Vec<Observation> = calibration(1.0, 1)
            .iter()
            .map(|one| {
                let (clients, items) = (f64::from(one.clients), f64::from(one.items.unwrap()));
                let mut load = Observation::planned(items, clients, INTERVAL_MS, false);
                load.cpu_percent = 1.0 + load.signals_per_s * 1e-5 + load.messages_per_s * 1e-3;
                load
            })
            .collect();
        Model::new("own", &data).unwrap()
    }

    #[test]
    fn steps_have_the_clients_that_the_model_wants() {
        let model = model();
        let clients: Vec<u32> = [10.0, 40.0, 80.0].map(|cpu| clients_for(&model, cpu)).to_vec();
        // A client costs 1 500 signals and 50 messages a second: 0.065 %.
        for (found, wanted) in clients.iter().zip([138.0, 600.0, 1_215.0]) {
            assert!((f64::from(*found) / wanted - 1.0).abs() < 0.15, "{clients:?}");
        }
        assert_eq!((clients_for(&model, 0.0), clients_for(&model, 1e6)), (1, CLIENTS_MAX));
        let condition = step("opc.tcp://localhost:1", 7, 3.0).unwrap();
        assert_eq!((condition.clients, condition.items, condition.kind), (7, Some(210), Kind::Subscribe));
    }

    #[test]
    fn a_disturbed_repetition_is_not_learnt_from() {
        let condition = calibration(1.0, 3).remove(0);
        let of = |repetition, cpu: f64, is_valid: bool| {
            let mut one = Measurement::failed("headroom", condition.clone(), repetition, "late".to_owned());
            one.metrics.insert(Figure::SERVER_CPU_PERCENT.name().to_owned(), cpu);
            if is_valid {
                one.invalid.clear();
            }
            one
        };
        let all = [of(0, 9.0, true), of(1, 5.0, true), of(2, 5.2, true), of(3, 1.0, false)];
        let kept = typical(&all);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].get(Figure::SERVER_CPU_PERCENT), Some(5.2));
        assert!(typical(&all[3..]).is_empty());
    }

    #[test]
    fn no_load_of_the_ramp_is_one_of_the_calibration() {
        assert!(FITTED.iter().all(|(_, items)| *items != ITEMS));
    }

    #[test]
    fn a_step_is_what_was_predicted_at_its_beginning_and_used_later() {
        let reading =
            |unix_ms: f64, predicted, actual| Reading { unix_ms, predicted, actual, remaining: 5.0 };
        let readings = [
            reading(900.0, 9.0, 9.0),
            reading(1_200.0, 20.0, 9.0),
            reading(1_400.0, 20.0, 9.0),
            reading(2_000.0, 30.0, 9.0),
            reading(2_600.0, 30.0, 18.0),
            reading(2_800.0, 30.0, 90.0),
            reading(3_000.0, 30.0, 20.0),
            reading(4_100.0, 9.0, 9.0),
        ];
        let found = Step::of(3, (100.0, 50.0), &readings, (1_000.0, 4_000.0)).unwrap();
        assert_eq!((found.predicted, found.actual, found.remaining), (20.0, 20.0, 5.0));
        assert_eq!(Step::of(3, (100.0, 50.0), &readings, (5_000.0, 9_000.0)), None);
        let holds = |steps: &[Step]| outcome(steps, Vec::new()).findings[0].holds;
        assert_eq!((holds(&[]), holds(std::slice::from_ref(&found))), (None, Some(true)));
        let off = Step { predicted: 24.0, ..found.clone() };
        assert_eq!(holds(&[found.clone(), off.clone()]), Some(false));
        // A step without a figure leaves it open, unless another one is off.
        let skipped = |steps: &[Step]| outcome(steps, vec!["7 clients: no".to_owned()]).findings[0].holds;
        assert_eq!((skipped(std::slice::from_ref(&found)), skipped(&[off])), (None, Some(false)));
    }

    #[test]
    fn a_step_whose_values_do_not_arrive_tells_nothing() {
        let of = |signals_per_s, generator| Step {
            clients: 10,
            signals_per_s,
            generator,
            predicted: 1.0,
            actual: 9.0,
            remaining: 0.0,
        };
        assert_eq!(of(14_700.0, 90.0).problem(), None);
        let problem = of(14_700.0, 99.0).problem().unwrap();
        assert!(problem.contains("99"), "{problem}");
        let problem = of(14_000.0, 50.0).problem().unwrap();
        assert!(problem.contains(&number(14_000.0)) && problem.contains("could not keep up"), "{problem}");
    }
}
