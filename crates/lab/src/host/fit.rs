//! Fits costs per counter to the times of steps.

use super::cores::Step;
use std::collections::BTreeMap;
use taktwerk_model::host::{Cost, prices};

/// Quantiles of a distribution of jobs: minimum, every tenth, and 0.99. The longest 1 % are left out as disturbed by
/// other programs.
const QUANTILES: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99];
/// Minimum number of distinct kinds of steps for a fit.
const LEAST: usize = 8;

/// Steps that occur less often are left out if enough others remain.
const RARE: f64 = 5.0;

/// Maximum duration of a short step, in nanoseconds.
const SHORT: f64 = 20_000.0;

/// Costs, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    /// Per counter, in the order of their names.
    pub(super) costs: Vec<f64>,
    /// Serving deadlines.
    pub(super) timer: f64,
    /// Additional time of a step after the processor has slept.
    pub(super) cold: f64,
    /// The same after a long sleep.
    pub(super) cold_deep: f64,
    /// Median relative error of a step.
    pub(super) error: f64,
}

/// Fits non-negative costs to relative errors. The median of equal steps counts, so that interruptions are not taken
/// for costs.
pub(super) fn fit(steps: &[Step], asleep: &[Step], deep: &[Step]) -> Option<Fitted> {
    let by_counts = medians(steps);
    if by_counts.len() < LEAST {
        return None;
    }
    // Rare steps, such as the creation of items, are not typical of a server, and their times are noisy.
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

/// Median time of equal steps, and their number.
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

/// Additional time of steps after a pause: the median of the differences between equal steps. Only steps of a few
/// microseconds are compared, because longer steps warm the caches themselves.
fn cold(awake: &Medians, asleep: &[Step]) -> f64 {
    let of = |step: &Step| {
        let (before, _) = awake.get(&(step.counts.clone(), step.is_timer))?;
        (*before < SHORT).then(|| step.nanos - before)
    };
    quantile(asleep.iter().filter_map(of).collect(), 0.5).unwrap_or(0.0).max(0.0)
}

/// A cost distribution for the simulator.
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
