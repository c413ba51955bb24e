//! Linear models for memory and bytes on the wire, with their error.

use super::shuffled;
use super::solve::least_squares;
use crate::statistics::quantile;

/// Measurements of a quantity that is a sum of costs.
#[derive(Debug, Default)]
pub(super) struct Linear {
    /// Number of the load of each measurement; the numbers are arbitrary.
    loads: Vec<usize>,
    rows: Vec<Vec<f64>>,
    values: Vec<f64>,
}

impl Linear {
    pub(super) fn add(&mut self, load: usize, row: Vec<f64>, value: f64) {
        self.loads.push(load);
        self.rows.push(row);
        self.values.push(value);
    }

    /// The costs, fitted to relative errors of some loads; `None` if there is too little data. Relative to the
    /// measurement or to the prediction makes no difference, because these figures hardly vary between windows.
    pub(super) fn fit(&self, of: impl Fn(usize) -> bool) -> Option<Vec<f64>> {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for ((load, row), value) in self.loads.iter().zip(&self.rows).zip(&self.values) {
            if of(*load) && *value > 0.0 {
                rows.push(row.clone());
                values.push(*value);
            }
        }
        let relative: Vec<f64> = values.iter().map(|value| 1.0 / value).collect();
        least_squares(&rows, &values, &relative, &[], true)
    }

    /// 5th and 95th percentile of measured over predicted, each load predicted from the others (tenfold). `None` for
    /// fewer than ten measurements, which do not determine such percentiles, or fewer than two loads.
    pub(super) fn ratio90(&self) -> Option<(f64, f64)> {
        const FOLDS: usize = 10;
        const FEW: usize = 10;
        let mut loads = self.loads.clone();
        loads.sort_unstable();
        loads.dedup();
        if self.values.len() < FEW || loads.len() < 2 {
            return None;
        }
        let folds = FOLDS.min(loads.len());
        let mut ratios = Vec::new();
        for fold in 0..folds {
            let dealt = shuffled(loads.len(), 0).into_iter().enumerate().filter(|(at, _)| at % folds == fold);
            let out: Vec<usize> = dealt.filter_map(|(_, index)| loads.get(index).copied()).collect();
            let prices = self.fit(|load| !out.contains(&load))?;
            for ((load, row), value) in self.loads.iter().zip(&self.rows).zip(&self.values) {
                let predicted: f64 = row.iter().zip(&prices).map(|(one, price)| one * price).sum();
                if out.contains(load) && predicted > 0.0 {
                    ratios.push(value / predicted);
                }
            }
        }
        Some((quantile(&ratios, 0.05)?, quantile(&ratios, 0.95)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_covers_the_errors_of_unseen_loads() {
        let of = |spread: f64| {
            let mut linear = Linear::default();
            for load in 0..20usize {
                let row = vec![1.0, (load * load) as f64];
                for repetition in 0..3 {
                    // Loads alternate between more and less expensive than their row.
                    let factor = 1.0 + if load % 2 == 0 { spread } else { -spread };
                    let value = (100.0 + 2.0 * row[1]) * factor * (1.0 + 1e-3 * f64::from(repetition));
                    linear.add(load, row.clone(), value);
                }
            }
            linear
        };
        let exact = of(0.0);
        let prices = exact.fit(|_| true).unwrap();
        assert!((prices[0] / 100.0 - 1.0).abs() < 0.01 && (prices[1] / 2.0 - 1.0).abs() < 0.01, "{prices:?}");
        let (low, high) = exact.ratio90().unwrap();
        assert!(low > 0.99 && high < 1.01, "{low} {high}");
        let (low, high) = of(0.1).ratio90().unwrap();
        assert!((0.8..0.95).contains(&low) && (1.05..1.25).contains(&high), "{low} {high}");
        assert_eq!(Linear::default().ratio90(), None);
    }
}
