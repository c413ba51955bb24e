//! Ramps up clients against one running server and compares the CPU predicted by its headroom with the CPU used.
//!
//! [`calibration`] returns the loads for fitting the server's cost model. The ramp uses other numbers of clients and of
//! items per client.

use crate::figures::number;
use crate::measurement::{Group, Measurement, group};
use crate::model::{Model, Observation};
use crate::outcome::{Grid, Outcome};
use crate::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};
use crate::statistics::median;
use serde::Serialize;
use taktwerk_load::result::Figure;

/// Variables of the server, which all change in every interval.
pub const VARIABLES: u32 = 1_000;
/// Publishing interval, sampling interval, and interval between changes, in milliseconds.
pub const INTERVAL_MS: f64 = 20.0;
/// Items per client in the ramp. With many more, the load generator would need more CPU than the server, and a
/// saturated generator slows down the server.
pub const ITEMS: u32 = 30;
/// Clients and items per client of the loads for fitting.
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
/// Maximum number of clients of a step.
const CLIENTS_MAX: u32 = 4_000;
/// Minimum share of delivered signals for a step to count.
const DELIVERED: f64 = 0.97;
/// Maximum CPU of the load generator for a step to count, in percent of its core. Above this, the server waits for the
/// generator, and needs more sends and wake-ups for the same signals.
const GENERATOR_MAX: f64 = 95.0;
/// Length of the initial phase of a step, in milliseconds; the load has run for at most a second.
const BEGINNING_MS: f64 = 500.0;
/// Maximum error of the prediction at each step.
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

/// For each load, the valid repetition with the median CPU, so that disturbed repetitions do not count.
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

/// The number of clients for which the model predicts this CPU, in percent of a core; at least one.
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

/// One reading of the server's headroom variables. CPU is in percent of a core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Milliseconds since 1970.
    pub unix_ms: f64,
    /// Predicted CPU for the current requests of clients.
    pub predicted: f64,
    /// Actual CPU of the previous second.
    pub actual: f64,
    /// Remaining capacity in signals per second.
    pub remaining: f64,
}

/// One step of the ramp. CPU is in percent of a core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Number of the step in its ramp.
    pub number: u32,
    /// Clients.
    pub clients: u32,
    /// Signals per second that arrived.
    pub signals_per_s: f64,
    /// CPU of the load generator.
    pub generator: f64,
    /// CPU that the server predicted at the beginning of the step, with the costs from before the step.
    pub predicted: f64,
    /// CPU that the server predicted during the seconds of `actual`, with costs that it has adjusted to this load.
    pub adjusted: f64,
    /// Actual CPU, as measured by the server.
    pub actual: f64,
    /// Remaining capacity in signals per second, as reported by the server.
    pub remaining: f64,
}

impl Step {
    /// From the readings of a window from `from_ms` to `until_ms`; `None` if there are too few. `predicted` is from the
    /// beginning of the window, when the server cannot have learned from this load. The first second of the actual CPU
    /// is skipped, because it refers to the previous second.
    #[must_use]
    pub fn of(
        (number, clients): (u32, u32),
        (signals_per_s, generator): (f64, f64),
        readings: &[Reading],
        (from_ms, until_ms): (f64, f64),
    ) -> Option<Self> {
        // The median: another program can disturb single seconds.
        let over = |from_ms: f64, until_ms: f64, of: fn(&Reading) -> f64| {
            let within = |one: &&Reading| one.unix_ms >= from_ms && one.unix_ms <= until_ms;
            median(&readings.iter().filter(within).map(of).collect::<Vec<f64>>())
        };
        let begins_until = from_ms + BEGINNING_MS;
        Some(Self {
            number,
            clients,
            signals_per_s,
            generator,
            predicted: over(from_ms, begins_until, |one| one.predicted)?,
            adjusted: over(from_ms + 1_500.0, until_ms, |one| one.predicted)?,
            actual: over(from_ms + 1_500.0, until_ms, |one| one.actual)?,
            remaining: over(from_ms, begins_until, |one| one.remaining)?,
        })
    }

    /// Why the step does not test the prediction: clients did not receive what they requested, or the generator was
    /// saturated.
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
                "the load generator used {} % of its core, which slows down the server",
                number(self.generator)
            )
        })
    }

    /// The relative error of the prediction at the beginning of the step.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.actual.max(1e-9) - 1.0
    }

    /// The relative error of the prediction with adjusted costs.
    #[must_use]
    pub fn adjusted_error(&self) -> f64 {
        self.adjusted / self.actual.max(1e-9) - 1.0
    }
}

/// A step over several ramps: medians, and the single errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repeated {
    /// Medians.
    #[serde(flatten)]
    pub step: Step,
    /// The relative errors of the predictions at the beginning of the step, in ascending order.
    pub errors: Vec<f64>,
    /// The relative errors of the predictions with adjusted costs, in ascending order.
    pub adjusted_errors: Vec<f64>,
}

/// Combines the steps of several ramps. Steps that gave a figure in at most half of the `ramps` are left out, because a
/// single measurement is not reliable: the same work does not cost the same CPU in each minute.
#[must_use]
pub fn repeated(steps: &[Step], ramps: u32) -> Vec<Repeated> {
    let mut numbers: Vec<u32> = steps.iter().map(|step| step.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let of = |number: u32| {
        let own: Vec<&Step> = steps.iter().filter(|step| step.number == number).collect();
        let middle = |of: fn(&Step) -> f64| median(&own.iter().map(|step| of(step)).collect::<Vec<f64>>());
        let sorted = |of: fn(&Step) -> f64| {
            let mut errors: Vec<f64> = own.iter().map(|step| of(step)).collect();
            errors.sort_by(f64::total_cmp);
            errors
        };
        let step = Step {
            number,
            clients: own.first()?.clients,
            signals_per_s: middle(|step| step.signals_per_s)?,
            generator: middle(|step| step.generator)?,
            predicted: middle(|step| step.predicted)?,
            adjusted: middle(|step| step.adjusted)?,
            actual: middle(|step| step.actual)?,
            remaining: middle(|step| step.remaining)?,
        };
        let (errors, adjusted_errors) = (sorted(Step::error), sorted(Step::adjusted_error));
        (own.len() * 2 > ramps as usize).then_some(Repeated { step, errors, adjusted_errors })
    };
    numbers.into_iter().filter_map(of).collect()
}

/// Whether the errors are within the limit at every step. True if all are; false if all errors of one step are beyond the
/// limit in the same direction; otherwise undecided, also if one of the `expected` steps has no result.
fn verdict<'a>(steps: impl Iterator<Item = &'a [f64]> + Clone, expected: u32) -> Option<bool> {
    let is_off = |errors: &[f64]| {
        errors.first().is_some_and(|lowest| *lowest > ALLOWED)
            || errors.last().is_some_and(|highest| *highest < -ALLOWED)
    };
    let is_complete = steps.clone().count() >= expected.max(1) as usize;
    if steps.clone().any(is_off) {
        return Some(false);
    }
    (is_complete && steps.clone().flatten().all(|error| error.abs() <= ALLOWED)).then_some(true)
}

/// A table of the steps, and whether the predictions are accurate enough.
#[must_use]
pub fn outcome(steps: &[Repeated], expected: u32, skipped: Vec<String>) -> Outcome {
    let mut outcome = Outcome {
        id: "headroom".to_owned(),
        question: "How accurately does a running server predict its CPU load?".to_owned(),
        source: format!(
            "one server with {VARIABLES} variables that change every {INTERVAL_MS} ms; clients with {ITEMS} items each"
        ),
        skipped,
        ..Outcome::default()
    };
    let mut grid = Grid::new(
        "CPU of the server, percent of a core: medians of the ramps; errors: median (lowest to highest)",
        0,
        &["clients", "signals/s", "actual", "adjusted", "error %", "initial", "error %", "load CPU"],
    );
    let percent = |errors: &[f64]| {
        let of =
            |error: Option<f64>| error.map_or_else(String::new, |error| format!("{:+.1}", error * 100.0));
        let (lowest, highest) = (of(errors.first().copied()), of(errors.last().copied()));
        format!("{} ({lowest} to {highest})", of(median(errors)))
    };
    for Repeated { step, errors, adjusted_errors } in steps {
        grid.row([
            step.clients.to_string(),
            number(step.signals_per_s),
            number(step.actual),
            number(step.adjusted),
            percent(adjusted_errors),
            number(step.predicted),
            percent(errors),
            number(step.generator),
        ]);
    }
    outcome.grids.push(grid);
    let mut finding = |claim: String, of: fn(&Repeated) -> &[f64]| {
        let medians = steps.iter().filter_map(|one| median(of(one)));
        let middle = medians.fold(0.0, |worst: f64, error| worst.max(error.abs()));
        let single = steps.iter().flat_map(of).fold(0.0, |worst: f64, error| worst.max(error.abs()));
        outcome.finding(
            &claim,
            verdict(steps.iter().map(of), expected),
            format!(
                "at most {:.1} % in a single ramp; at most {:.1} % for the medians of {} steps",
                single * 100.0,
                middle * 100.0,
                steps.len()
            ),
        );
    };
    let limit = ALLOWED * 100.0;
    finding(format!("the error of the adjusted prediction is at most {limit:.0} % at every step"), |one| {
        &one.adjusted_errors
    });
    finding(
        format!(
            "the error of the initial prediction, before the server has measured the load, is at most {limit:.0} % at every step"
        ),
        |one| &one.errors,
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
    fn steps_have_the_clients_that_the_model_predicts() {
        let model = model();
        let clients: Vec<u32> = [10.0, 40.0, 80.0].map(|cpu| clients_for(&model, cpu)).to_vec();
        // A client causes 1 500 signals and 50 messages per second: 0.065 %.
        for (found, wanted) in clients.iter().zip([138.0, 600.0, 1_215.0]) {
            assert!((f64::from(*found) / wanted - 1.0).abs() < 0.15, "{clients:?}");
        }
        assert_eq!((clients_for(&model, 0.0), clients_for(&model, 1e6)), (1, CLIENTS_MAX));
        let condition = step("opc.tcp://localhost:1", 7, 3.0).unwrap();
        assert_eq!((condition.clients, condition.items, condition.kind), (7, Some(210), Kind::Subscribe));
    }

    #[test]
    fn disturbed_repetitions_are_ignored() {
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
    fn steps_use_the_initial_and_the_adjusted_prediction() {
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
        let found = Step::of((1, 3), (100.0, 50.0), &readings, (1_000.0, 4_000.0)).unwrap();
        assert_eq!((found.predicted, found.adjusted, found.actual, found.remaining), (20.0, 30.0, 20.0, 5.0));
        assert_eq!((found.error(), found.adjusted_error()), (0.0, 0.5));
        assert_eq!(Step::of((1, 3), (100.0, 50.0), &readings, (5_000.0, 9_000.0)), None);
    }

    fn of(number: u32, predicted: f64, adjusted: f64) -> Step {
        Step {
            number,
            clients: 7,
            signals_per_s: 100.0,
            generator: 50.0,
            predicted,
            adjusted,
            actual: 20.0,
            remaining: 0.0,
        }
    }

    #[test]
    fn medians_and_ranges_of_the_ramps() {
        let steps = [(3, 21.0), (9, 20.0), (3, 30.0), (9, 16.0), (3, 19.0), (5, 20.0)];
        let steps = steps.map(|(number, predicted)| of(number, predicted, 20.0));
        let found = repeated(&steps, 3);
        assert_eq!(found.iter().map(|one| one.step.number).collect::<Vec<_>>(), [3, 9]);
        assert_eq!(found[0].step.predicted, 21.0);
        assert_eq!(found[0].errors.len(), 3);
        assert!(
            (found[0].errors[0] + 0.05).abs() < 1e-9 && (found[0].errors[2] - 0.5).abs() < 1e-9,
            "{found:?}"
        );
        let told = outcome(&found, 2, Vec::new());
        let evidence = &told.findings[1].evidence;
        assert!(
            evidence.contains("at most 50.0 % in a single ramp; at most 10.0 % for the medians"),
            "{told:?}"
        );
        // Half of the ramps is not enough.
        assert_eq!(repeated(&steps, 4).len(), 1);
    }

    #[test]
    fn verdicts_are_symmetric() {
        let of = |steps: &[(f64, f64)], expected, ramps| {
            let steps: Vec<Step> = steps.iter().map(|(one, other)| of(1, *one, *other)).collect();
            let outcome = outcome(&repeated(&steps, ramps), expected, Vec::new());
            (outcome.findings[0].holds, outcome.findings[1].holds)
        };
        assert_eq!(of(&[(20.0, 20.0)], 1, 1), (Some(true), Some(true)));
        assert_eq!(of(&[(24.0, 20.0)], 1, 1), (Some(true), Some(false)));
        assert_eq!(of(&[(20.0, 16.0)], 1, 1), (Some(false), Some(true)));
        // Ramps with different results.
        assert_eq!(of(&[(20.0, 20.0), (24.0, 16.0)], 1, 2), (None, None));
        assert_eq!(of(&[(24.0, 16.0), (23.5, 22.0)], 1, 2), (None, Some(false)));
        // A step without a result, unless another one fails.
        assert_eq!(of(&[(20.0, 20.0)], 2, 1), (None, None));
        assert_eq!(of(&[(24.0, 24.0)], 2, 1), (Some(false), Some(false)));
        assert_eq!(of(&[], 0, 1), (None, None));
    }

    #[test]
    fn steps_with_missing_values_do_not_count() {
        let of = |signals_per_s, generator| Step {
            number: 1,
            clients: 10,
            signals_per_s,
            generator,
            predicted: 1.0,
            adjusted: 1.0,
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
