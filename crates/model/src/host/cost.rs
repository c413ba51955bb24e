//! A cost: a number, or a distribution.

use serde::{Deserialize, Serialize};

/// A cost in nanoseconds, or a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cost {
    /// Constant.
    Fixed(f64),
    /// Quantiles at equal distances, from minimum to maximum.
    Quantiles(Vec<f64>),
}

impl Cost {
    /// The quantile at `fraction`, from 0 to 1.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Quantiles(values) => {
                let last = values.len().saturating_sub(1);
                let place = fraction.clamp(0.0, 1.0) * last as f64;
                let below = (place as usize).min(last);
                let low = values.get(below).copied().unwrap_or(0.0);
                let high = values.get(below + 1).copied().unwrap_or(low);
                low + (high - low) * (place - below as f64)
            }
        }
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Quantiles(values) => {
                // Values between two quantiles are assumed to be evenly distributed.
                let pairs = values.windows(2).map(|pair| pair.iter().sum::<f64>() / 2.0);
                let count = values.len().saturating_sub(1).max(1);
                let sum: f64 = if values.len() == 1 { values.iter().sum() } else { pairs.sum() };
                sum / count as f64
            }
        }
    }

    /// Quantiles of measured values; `None` if there are none.
    #[must_use]
    pub fn of(values: &[f64], steps: usize) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let steps = steps.clamp(1, last.max(1));
        let quantiles = (0..=steps).filter_map(|step| sorted.get(step * last / steps).copied());
        Some(Self::Quantiles(quantiles.collect()))
    }

    /// Whether there is at least one value, and all are numbers from 0 to `max` in ascending order.
    pub(super) fn is_within(&self, max: f64) -> bool {
        match self {
            Self::Fixed(value) => (0.0..=max).contains(value),
            Self::Quantiles(values) => {
                !values.is_empty()
                    && values.iter().all(|value| (0.0..=max).contains(value))
                    && values.is_sorted()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        let cost = Cost::Quantiles(vec![10.0, 20.0, 60.0]);
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|at| cost.quantile(at)), [10.0, 15.0, 20.0, 40.0, 60.0]);
        assert_eq!(cost.mean(), 27.5);
        assert_eq!(Cost::Quantiles(vec![7.0]).mean(), 7.0);
        assert_eq!(Cost::Quantiles(vec![7.0]).quantile(0.9), 7.0);
        assert_eq!(Cost::Fixed(3.0).quantile(0.1), 3.0);
        assert_eq!(Cost::of(&[3.0, 1.0, 2.0], 2), Some(Cost::Quantiles(vec![1.0, 2.0, 3.0])));
        assert_eq!(Cost::of(&[], 2), None);
        assert_eq!(Cost::of(&[5.0], 10), Some(Cost::Quantiles(vec![5.0, 5.0])));
    }
}
