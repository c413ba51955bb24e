//! The Pareto front of points, and its knee.
//!
//! A point is on the front if no other point is better in one figure and at least as good in all others. Every point of
//! the front is a sensible choice. The knee is the point at which more of one figure is no longer worth its cost in the
//! others. Each figure is scaled to 0 at its best and to 1 at its worst on the front; the sum of the scaled figures is
//! smallest at the knee. A resource is scaled to 1 where it is full instead of at the worst point, so that half of the
//! remaining capacity costs the same on slow and fast links.
//!
//! Around the knee, the sum hardly changes, and curves have ripples: a message just fits into a packet, or an interval
//! is a multiple of a period. Points whose sums differ by less than [`EQUAL`] form a plateau of equally good points,
//! and the knee is its middle. For a delay that grows linearly with the interval and a cost that falls with its
//! reciprocal, the middle on a logarithmic scale is where the sum is smallest, for any width of the plateau.

use super::problem::Problem;
use super::settings::{Figures, Metric};

/// The figures to minimize of a point; `None` if one is unknown.
fn values(figures: &Figures, metrics: &[Metric]) -> Option<Vec<f64>> {
    metrics.iter().map(|metric| metric.of(figures).filter(|value| value.is_finite())).collect()
}

/// Whether `a` is at least as good as `b` in all figures, and better in one.
fn dominates(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| a < b)
}

/// Indices of the points on the front, in the order of the points. Of equal points, only the first is included.
#[must_use]
pub fn front(points: &[Figures], metrics: &[Metric]) -> Vec<usize> {
    let all: Vec<Option<Vec<f64>>> = points.iter().map(|one| values(one, metrics)).collect();
    let is_best = |at: usize, own: &[f64]| {
        !all.iter().enumerate().any(|(other, values)| {
            values.as_deref().is_some_and(|values| dominates(values, own) || (other < at && values == own))
        })
    };
    all.iter()
        .enumerate()
        .filter(|(at, own)| own.as_deref().is_some_and(|own| is_best(*at, own)))
        .map(|(at, _)| at)
        .collect()
}

/// The scales of the figures on a front.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    metrics: Vec<Metric>,
    /// Best and worst value of each figure.
    ends: Vec<(f64, f64)>,
}

impl Scale {
    /// From the points of a front.
    #[must_use]
    pub fn new(points: &[Figures], front: &[usize], problem: &Problem) -> Self {
        let metrics = problem.minimize.clone();
        let on_front: Vec<Vec<f64>> =
            front.iter().filter_map(|at| values(points.get(*at)?, &metrics)).collect();
        let ends = metrics.iter().enumerate().map(|(column, metric)| {
            let of = || on_front.iter().filter_map(|values| values.get(column).copied());
            let (best, worst) = (of().fold(f64::MAX, f64::min), of().fold(f64::MIN, f64::max));
            (best, problem.capacity(*metric).filter(|capacity| *capacity > best).unwrap_or(worst))
        });
        let ends = ends.collect();
        Self { metrics, ends }
    }

    /// Sum of the scaled figures; smaller is better. `None` if a figure is unknown.
    #[must_use]
    pub fn score(&self, figures: &Figures) -> Option<f64> {
        let values = values(figures, &self.metrics)?;
        let scaled = values
            .iter()
            .zip(&self.ends)
            .map(|(value, (best, worst))| if worst > best { (value - best) / (worst - best) } else { 0.0 });
        Some(scaled.sum())
    }
}

/// Sums with a smaller relative difference are equal, given the accuracy of the simulation.
pub const EQUAL: f64 = 0.1;

/// Indices of the points on the plateau around the knee.
#[must_use]
pub fn plateau(points: &[Figures], front: &[usize], problem: &Problem) -> Vec<usize> {
    let scale = Scale::new(points, front, problem);
    let scores: Vec<(usize, f64)> =
        front.iter().filter_map(|at| Some((*at, scale.score(points.get(*at)?)?))).collect();
    let best = scores.iter().map(|(_, score)| *score).fold(f64::MAX, f64::min);
    scores.into_iter().filter(|(_, score)| *score <= best * (1.0 + EQUAL)).map(|(at, _)| at).collect()
}

/// Index of the knee: the middle of the plateau by the first figure to minimize. `None` without a front.
#[must_use]
pub fn knee(points: &[Figures], front: &[usize], problem: &Problem) -> Option<usize> {
    let plateau = plateau(points, front, problem);
    let first = problem.minimize.first()?;
    // Figures that can be zero have no logarithm.
    let value =
        |at: &usize| points.get(*at).and_then(|one| first.of(one)).map_or(0.0, |value| value.max(1e-9).ln());
    let least = plateau.iter().map(value).fold(f64::MAX, f64::min);
    let most = plateau.iter().map(value).fold(f64::MIN, f64::max);
    let off = |at: &usize| (value(at) - f64::midpoint(least, most)).abs();
    plateau.iter().copied().min_by(|a, b| off(a).total_cmp(&off(b)))
}

#[cfg(test)]
mod tests {
    use super::super::problem::tests::problem;
    use super::*;

    fn at(delay_mean_ms: f64, utilisation: f64) -> Figures {
        Figures { delay_mean_ms, utilisation: Some(utilisation), ..Figures::default() }
    }

    const METRICS: [Metric; 2] = [Metric::DelayMeanMs, Metric::Utilisation];

    #[test]
    fn dominated_points_are_left_out() {
        let points =
            [at(10.0, 0.9), at(20.0, 0.5), at(30.0, 0.5), at(40.0, 0.4), at(40.0, 0.4), at(50.0, 0.8)];
        assert_eq!(front(&points, &METRICS), [0, 1, 3]);
        let unknown = [at(10.0, 0.9), Figures { delay_mean_ms: 1.0, ..Figures::default() }];
        assert_eq!(front(&unknown, &METRICS), [0]);
        assert_eq!(front(&[], &METRICS), [0usize; 0]);
    }

    /// Delay of half an interval, and a share of the link that falls with the interval.
    fn curve(cost: f64) -> (Vec<f64>, Vec<Figures>) {
        let intervals: Vec<f64> = (5..=250).map(f64::from).collect();
        let points = intervals.iter().map(|ms| at(ms / 2.0, 0.5 + cost / ms)).collect();
        (intervals, points)
    }

    #[test]
    fn ripples_of_the_curve_do_not_move_the_knee() {
        let problem = problem(&[]);
        let at = |ripple: f64| {
            let (intervals, mut points) = curve(1.0);
            // Every fifth interval is slightly better, and one of them a little more.
            for (interval, point) in intervals.iter().zip(&mut points).filter(|(ms, _)| **ms % 5.0 == 0.0) {
                point.delay_mean_ms -= ripple * if *interval == 25.0 { 1.5 } else { 1.0 };
            }
            let front = front(&points, &METRICS);
            let plateau = plateau(&points, &front, &problem);
            assert!(plateau.len() > 3, "{plateau:?}");
            intervals[knee(&points, &front, &problem).unwrap()]
        };
        let smooth = at(0.0);
        for ripple in [0.5, 1.0, 2.0] {
            assert!((at(ripple) / smooth - 1.0).abs() < 0.2, "{ripple}: {} {smooth}", at(ripple));
        }
    }

    #[test]
    fn the_knee_follows_the_cost_of_a_message() {
        let problem = problem(&[]);
        let knee_at = |cost: f64| {
            let (intervals, points) = curve(cost);
            let front = front(&points, &METRICS);
            intervals[knee(&points, &front, &problem).unwrap()]
        };
        // x² + y² is smallest where T² · (T − 5) = (245 · cost / free)² · (1/T − 1/250), with the free capacity at 250
        // ms.
        for cost in [0.25f64, 1.0, 2.0] {
            let free = problem.full_at - 0.5 - cost / 250.0;
            let wanted = (245.0 * cost / free).powi(2);
            let expected = (50..2_500).map(|ms| f64::from(ms) / 10.0).min_by(|a, b| {
                let off = |ms: f64| (ms.powi(2) * (ms - 5.0) - wanted * (1.0 / ms - 1.0 / 250.0)).abs();
                off(*a).total_cmp(&off(*b))
            });
            let expected = expected.unwrap();
            assert!((knee_at(cost) - expected).abs() <= 1.5, "{cost}: {} {expected}", knee_at(cost));
        }
        assert!(knee_at(0.25) < knee_at(1.0) && knee_at(1.0) < knee_at(2.0));
    }
}
