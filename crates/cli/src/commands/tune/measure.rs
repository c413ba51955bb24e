//! `--measure`: runs server and clients with the recommended setting and with the default one over the emulated link.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use taktwerk_lab::confirmation::{Confirmation, Confirmed};
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::place::Place;
use taktwerk_lab::runner::order;
use taktwerk_lab::scenario::seconds;
use taktwerk_model::tune::search::Point;
use taktwerk_model::tune::{Evaluate, Figures, Problem, Tuned, confirm};

/// Measures, and compares with the promises. The inner error says why nothing could be measured.
pub(super) fn run(
    problem: &Problem,
    tuned: &Tuned,
    evaluator: &dyn Evaluate,
    interrupt: &Interrupt,
) -> Result<Result<Confirmed, String>, Failure> {
    let default = default(problem, tuned, evaluator);
    let confirmation = match Confirmation::new(problem, tuned, Some(default)) {
        Ok(confirmation) => confirmation,
        Err(why) => return Ok(Err(why.to_string())),
    };
    let place = super::super::lab::place(None)?.with_stop(interrupt.flag());
    if let Err(why) = place.check_namespaces(confirmation.link()) {
        return Ok(Err(why.to_string()));
    }
    Ok(Ok(confirmation.judge(measure(&confirmation, &place, interrupt)?)))
}

/// The default setting with what the evaluator promises for it; without figures if it is impossible on this link.
fn default(problem: &Problem, tuned: &Tuned, evaluator: &dyn Evaluate) -> Point {
    let settings = confirm::default_setting(&tuned.recommended.settings);
    let unknown = Figures {
        delay_mean_ms: f64::NAN,
        delay_p99_ms: f64::NAN,
        bandwidth_bits_s: f64::NAN,
        ..Figures::default()
    };
    let figures = evaluator.evaluate(&settings, 1).unwrap_or(unknown);
    let is_feasible = problem.constraints.iter().all(|one| one.holds(&figures) == Some(true));
    Point { settings, figures, by: evaluator.name(), seeds: 1, is_feasible, on_front: false }
}

fn measure(
    confirmation: &Confirmation<'_>,
    place: &Place,
    interrupt: &Interrupt,
) -> Result<Vec<Measurement>, Failure> {
    let conditions = confirmation.conditions();
    let all: Vec<_> = conditions.iter().map(|(_, condition)| condition.clone()).collect();
    let planned = seconds(&all).ceil() as u64;
    let mut bar = Progress::new("measuring", planned);
    let plan: Vec<(usize, u32)> = order(conditions).collect();
    let mut measurements = Vec::new();
    for (done, (at, repetition)) in plan.iter().enumerate() {
        bar.of("measuring, seconds", planned * done as u64 / plan.len().max(1) as u64, planned);
        let Some((name, condition)) = conditions.get(*at) else { continue };
        let measured = place.measure(name, condition, *repetition);
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        measurements.push(measured.unwrap_or_else(|error| {
            Measurement::failed(name, condition.clone(), *repetition, error.to_string())
        }));
    }
    Ok(measurements)
}
