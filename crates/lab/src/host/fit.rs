//! From times of steps to costs per counter.

use super::cores::Step;
use std::collections::BTreeMap;
use taktwerk_model::host::{Cost, prices};

/// Quantiles of a distribution of jobs: minimum, then every tenth, without the longest hundredth, which is somebody else's.
const QUANTILES: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99];
/// Distinct kinds of steps without which there is nothing to fit.
const LEAST: usize = 8;

/// Steps that occur less often are left out if there are enough others.
const RARE: f64 = 5.0;

/// Nanoseconds of a short step.
const SHORT: f64 = 20_000.0;

/// Costs, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    /// Per counter, in the order of their names.
    pub(super) costs: Vec<f64>,
    /// Of serving deadlines.
    pub(super) timer: f64,
    /// What a step takes longer after the processor has slept.
    pub(super) cold: f64,
    /// The same after a long sleep.
    pub(super) cold_deep: f64,
    /// Median relative error of a step.
    pub(super) error: f64,
}

/// Fits non-negative costs to relative errors. Equal steps count by their median: what interrupts one of them is no cost.
pub(super) fn fit(steps: &[Step], asleep: &[Step], deep: &[Step]) -> Option<Fitted> {
    let by_counts = medians(steps);
    if by_counts.len() < LEAST {
        return None;
    }
    // What happens once, such as the creation of items, is not what a server does all day, and its times are noise.
    let is_common = by_counts.values().filter(|(_, number)| *number as f64 >= RARE).count() >= LEAST;
    let (mut rows, mut targets, mut importance) = (Vec::new(), Vec::new(), Vec::new());
    for ((counts, is_timer), (median, number)) in &by_counts {
        let (median, number) = (*median, *number as f64);
        if number < RARE && is_common {
            continue;
        }
        let row = counts.iter().map(|count| *count as f64).chain([f64::from(u8::from(*is_timer))]);
        rows.push(row.collect::<Vec<f64>>());
        targets.push(median);
        importance.push(number.min(1_000.0).sqrt() / median.max(1.0));
    }
    let mut costs = prices(&rows, &targets, &importance)?;
    let predicted = |row: &[f64]| -> f64 { row.iter().zip(&costs).map(|(count, cost)| count * cost).sum() };
    let errors = rows.iter().zip(&targets).map(|(row, target)| (predicted(row) / target - 1.0).abs());
    let error = quantile(errors.collect(), 0.5)?;
    let timer = costs.pop()?;
    Some(Fitted { costs, timer, cold: cold(&by_counts, asleep), cold_deep: cold(&by_counts, deep), error })
}

/// The median time of equal steps, and how many there are.
type Medians = BTreeMap<(Vec<u64>, bool), (f64, usize)>;

fn medians(steps: &[Step]) -> Medians {
    let mut by_counts: BTreeMap<(Vec<u64>, bool), Vec<f64>> = BTreeMap::new();
    for step in steps {
        by_counts.entry((step.counts.clone(), step.is_timer)).or_default().push(step.nanos);
    }
    let median = |(key, times): (_, Vec<f64>)| {
        let count = times.len();
        quantile(times, 0.5).map(|median| (key, (median, count)))
    };
    by_counts.into_iter().filter_map(median).collect()
}

/// What steps take longer behind a pause: the median of the differences. Equal steps are compared, those of a few microseconds:
/// long ones warm the caches by themselves.
fn cold(awake: &Medians, asleep: &[Step]) -> f64 {
    let of = |step: &Step| {
        let (before, _) = awake.get(&(step.counts.clone(), step.is_timer))?;
        (*before < SHORT).then(|| step.nanos - before)
    };
    quantile(asleep.iter().filter_map(of).collect(), 0.5).unwrap_or(0.0).max(0.0)
}

/// A distribution for the simulator.
pub(super) fn distribution(times: Vec<f64>) -> Cost {
    let mut times = times;
    times.sort_by(f64::total_cmp);
    Cost::Quantiles(QUANTILES.iter().filter_map(|share| at(&times, *share)).map(super::rounded).collect())
}

pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    at(&values, share)
}

fn at(sorted: &[f64], share: f64) -> Option<f64> {
    sorted.get(((sorted.len().checked_sub(1)?) as f64 * share).round() as usize).copied()
}
