//! Weighted linear least squares for a few unknowns.

/// Ridge that selects the solution of least norm if the data cannot separate features. Small enough to have no other
/// effect.
const RIDGE: f64 = 1e-12;

/// Weights w that minimise Σ (importance · (row · w − target))². With `positive`, no weight is negative, because
/// negative costs only explain noise. `None` if there is too little data or no solution.
///
/// Inseparable features (such as a cost per message and an idle cost, if all loads have the same number of messages)
/// share what they explain together in proportion to `shares`, which default to 1. Giving everything to one of them
/// would cause the largest error for other loads.
pub(crate) fn least_squares(
    rows: &[Vec<f64>],
    targets: &[f64],
    importance: &[f64],
    shares: &[f64],
    positive: bool,
) -> Option<Vec<f64>> {
    let width = rows.first()?.len();
    // Features that are always zero get no weight.
    let mut active: Vec<usize> = (0..width)
        .filter(|at| rows.iter().any(|row| row.get(*at).is_some_and(|value| *value != 0.0)))
        .collect();
    loop {
        let solved = solve(rows, targets, importance, shares, &active)?;
        let worst = solved.iter().enumerate().filter(|(_, weight)| **weight < 0.0).min_by(|a, b| {
            // Compare contributions, not units.
            let size = |(at, weight): &(usize, &f64)| -> f64 {
                let column = active.get(*at).copied().unwrap_or(0);
                let mean = rows.iter().filter_map(|row| row.get(column)).sum::<f64>();
                **weight * mean
            };
            size(a).total_cmp(&size(b))
        });
        match worst {
            Some((at, _)) if positive && active.len() > 1 => {
                active.remove(at);
            }
            _ => {
                let mut weights = vec![0.0; width];
                for (column, weight) in active.iter().zip(solved) {
                    if let Some(slot) = weights.get_mut(*column) {
                        *slot = if positive { weight.max(0.0) } else { weight };
                    }
                }
                return Some(weights);
            }
        }
    }
}

/// Householder reflections on the scaled columns; normal equations would square the condition number.
fn solve(
    rows: &[Vec<f64>],
    targets: &[f64],
    importance: &[f64],
    shares: &[f64],
    columns: &[usize],
) -> Option<Vec<f64>> {
    if rows.len() < columns.len() || columns.is_empty() {
        return None;
    }
    let (height, width) = (rows.len(), columns.len());
    let cell = |row: usize, column: usize| -> Option<f64> {
        Some(rows.get(row)?.get(*columns.get(column)?)? * importance.get(row)?)
    };
    let mut a: Vec<Vec<f64>> = (0..width)
        .map(|column| (0..height).map(|row| cell(row, column)).collect::<Option<Vec<f64>>>())
        .collect::<Option<_>>()?;
    let mut b: Vec<f64> = targets.iter().zip(importance).map(|(target, weight)| target * weight).collect();
    let scales: Vec<f64> = a.iter().map(|column| norm(column)).collect();
    for (own, (column, scale)) in a.iter_mut().zip(&scales).enumerate() {
        column.iter_mut().for_each(|value| *value /= scale.max(1e-300));
        let share = columns.get(own).and_then(|column| shares.get(*column)).copied().unwrap_or(1.0);
        let ridge = (RIDGE / share.max(1e-3)).sqrt();
        column.extend((0..width).map(|at| if at == own { ridge } else { 0.0 }));
    }
    b.extend(std::iter::repeat_n(0.0, width));
    let mut diagonal = Vec::with_capacity(width);
    for step in 0..width {
        let (head, rest) = a.split_at_mut(step + 1);
        let pivot = head.get_mut(step)?;
        let length = norm(pivot.get(step..)?);
        let first = *pivot.get(step)?;
        let alpha = if first > 0.0 { -length } else { length };
        *pivot.get_mut(step)? -= alpha;
        let reflector: Vec<f64> = pivot.get(step..)?.to_vec();
        let size = reflector.iter().map(|value| value * value).sum::<f64>();
        for column in rest.iter_mut() {
            reflect(column.get_mut(step..)?, &reflector, size);
        }
        reflect(b.get_mut(step..)?, &reflector, size);
        diagonal.push(alpha);
    }
    // Back substitution: above the diagonal, column k contains row j < k of R.
    let mut solution = vec![0.0; width];
    for row in (0..width).rev() {
        let mut value = *b.get(row)?;
        for column in row + 1..width {
            value -= a.get(column)?.get(row)? * solution.get(column)?;
        }
        *solution.get_mut(row)? = value / diagonal.get(row)?;
    }
    for (value, scale) in solution.iter_mut().zip(&scales) {
        *value /= scale.max(1e-300);
    }
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn reflect(target: &mut [f64], reflector: &[f64], size: f64) {
    let along = target.iter().zip(reflector).map(|(a, b)| a * b).sum::<f64>() * 2.0 / size;
    target.iter_mut().zip(reflector).for_each(|(value, part)| *value -= along * part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_systems_are_solved_exactly() {
        let rows = [[1.0, 1.0], [1.0, 2.0], [1.0, 4.0]].map(|row| row.to_vec());
        let weights = least_squares(&rows, &[3.0, 5.0, 9.0], &[1.0; 3], &[], false).unwrap();
        assert!((weights[0] - 1.0).abs() < 1e-9 && (weights[1] - 2.0).abs() < 1e-9, "{weights:?}");
    }

    #[test]
    fn negative_costs_are_left_out() {
        let rows = [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]].map(|row| row.to_vec());
        let free = least_squares(&rows, &[3.0, 2.0, 1.5], &[1.0; 3], &[], false).unwrap();
        assert!(free[1] < 0.0);
        let positive = least_squares(&rows, &[3.0, 2.0, 1.5], &[1.0; 3], &[], true).unwrap();
        assert!(positive[1] == 0.0 && (positive[0] - 6.5 / 3.0).abs() < 1e-9, "{positive:?}");
    }

    #[test]
    fn unsolvable_systems_give_none() {
        assert!(least_squares(&[], &[], &[], &[], false).is_none());
        assert!(least_squares(&[vec![1.0, 2.0]], &[1.0], &[1.0], &[], false).is_none());
    }

    #[test]
    fn inseparable_features_share_their_cost() {
        // A cost of 1 per unit of the second feature; the first and the third are constant in all data.
        let rows = [[1.0, 5.0, 100.0], [1.0, 10.0, 100.0], [1.0, 40.0, 100.0]].map(|row| row.to_vec());
        let targets = [8.0 + 5.0, 8.0 + 10.0, 8.0 + 40.0];
        for positive in [false, true] {
            let weights =
                least_squares(&rows, &targets, &targets.map(|target| 1.0 / target), &[], positive).unwrap();
            assert!((weights[0] - 4.0).abs() < 1e-3 && (weights[2] - 0.04).abs() < 1e-5, "{weights:?}");
            assert!((weights[1] - 1.0).abs() < 1e-3, "{weights:?}");
            let importance = targets.map(|target| 1.0 / target);
            let weights = least_squares(&rows, &targets, &importance, &[1.5, 1.0, 0.5], positive).unwrap();
            assert!((weights[0] - 6.0).abs() < 1e-3 && (weights[2] - 0.02).abs() < 1e-5, "{weights:?}");
        }
    }

    proptest! {
        #[test]
        fn finds_the_weights_that_made_the_data(
            weights in prop::collection::vec(0.1..10.0f64, 3),
            points in prop::collection::vec((0.1..100.0f64, 0.1..1e6f64), 6..30),
        ) {
            let rows: Vec<Vec<f64>> = points.iter().map(|(x, y)| vec![1.0, *x, *y]).collect();
            let targets: Vec<f64> =
                rows.iter().map(|row| row.iter().zip(&weights).map(|(a, b)| a * b).sum()).collect();
            let importance: Vec<f64> = targets.iter().map(|target| 1.0 / target).collect();
            if let Some(found) = least_squares(&rows, &targets, &importance, &[], true) {
                for (row, target) in rows.iter().zip(&targets) {
                    let predicted: f64 = row.iter().zip(&found).map(|(a, b)| a * b).sum();
                    prop_assert!((predicted / target - 1.0).abs() < 1e-5, "{} {}", predicted, target);
                }
            }
        }
    }
}
