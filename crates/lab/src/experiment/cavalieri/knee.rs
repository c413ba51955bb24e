//! The knee of the curves of delay and bandwidth, by two criteria that are independent of the published answer.
//!
//! `taktwerk tune` scales delay to its range on the Pareto front and link usage to the limit at which the link counts
//! as full: see [`taktwerk_model::tune::front`]. A reader of charts has only the ends of the curves. For charts, the
//! knee is the point farthest below the line that joins the ends.

use super::Failed;
use crate::tuning::Simulation;
use taktwerk_model::tune::analytic::Analytic;
use taktwerk_model::tune::problem::{Options, Problem};
use taktwerk_model::tune::{Tuned, tune};
use taktwerk_sim::publishing::Setup;

/// The plant of the paper, as shipped with the documentation.
const PLANT: &str = include_str!("../../../../../docs/lab/plants/cavalieri.toml");
/// Path of that file, for error messages.
const FILE: &str = "docs/lab/plants/cavalieri.toml";

/// The plant with some values changed, as `--set` does.
pub(super) fn problem(sets: &[String]) -> Result<Problem, Failed> {
    let options = Options { sets: sets.to_vec(), ..Options::default() };
    Problem::parse(PLANT, FILE, &options).map_err(|error| error.to_string())
}

/// What `taktwerk tune` recommends for the plant with some changes.
pub(super) fn recommended(sets: &[String], change: impl FnOnce(&mut Setup)) -> Result<Tuned, Failed> {
    let problem = problem(sets)?;
    let formulas = Analytic::new(&problem, None);
    let mut simulation = Simulation::new(&problem, None);
    change(simulation.setup_mut());
    tune(&problem, &formulas, &simulation, &mut |_| true).map_err(|error| error.to_string())
}

/// A publishing interval with its delay and bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) interval_ms: f64,
    pub(super) delay: f64,
    pub(super) bandwidth: f64,
}

/// The sample farthest below the line through the ends of the curve, with both axes scaled from the smallest to the
/// largest value.
pub(super) fn of_chart(samples: &[Sample]) -> Option<f64> {
    let ends = |of: fn(&Sample) -> f64| {
        let values = || samples.iter().map(of);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        (high > low).then_some((low, high))
    };
    let (delay, bandwidth) = (ends(|one| one.delay)?, ends(|one| one.bandwidth)?);
    let scaled = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
    let score = |one: &Sample| scaled(one.delay, delay) + scaled(one.bandwidth, bandwidth);
    let best = samples.iter().min_by(|a, b| score(a).total_cmp(&score(b)))?;
    Some(best.interval_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_of_a_chart_depends_on_its_ends_alone() {
        let curve = |from: u32, to: u32, cost: f64| {
            let one = |ms: u32| {
                let interval_ms = f64::from(ms);
                Sample { interval_ms, delay: 3.0 + interval_ms / 2.0, bandwidth: 0.5 + cost / interval_ms }
            };
            of_chart(&(from..=to).map(one).collect::<Vec<_>>()).unwrap()
        };
        // √(5 · 250), independent of the cost of a message.
        for cost in [0.1, 1.0, 3.0] {
            assert!((curve(5, 250, cost) - 35.4).abs() < 1.0, "{}", curve(5, 250, cost));
        }
        assert!((curve(10, 1_000, 1.0) - 100.0).abs() < 1.0);
        assert_eq!(of_chart(&[]), None);
    }

    /// Uses the shipped file with a short simulation; the experiment itself runs all seeds.
    #[test]
    fn tune_finds_the_published_interval_from_the_shipped_plant() {
        let at = |rate: &str| {
            let rate = format!("link.rate={rate}");
            let sets = ["tune.measured_s=3", "tune.seeds=1", &rate].map(str::to_owned);
            recommended(&sets, |_| {}).unwrap().recommended.settings.publishing_ms
        };
        let [slow, faster, fastest] = ["2M", "5M", "10M"].map(at);
        assert!((30.0..=40.0).contains(&slow), "{slow}");
        assert!((10.0..=25.0).contains(&faster) && (10.0..=25.0).contains(&fastest), "{faster} {fastest}");
    }
}
