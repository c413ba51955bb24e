//! Maps values to positions on an axis, and chooses ticks.

use super::Axis;
use serde::Serialize;

/// Mapping from values to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences have equal length.
    Linear,
    /// Equal ratios have equal length. Values must be positive.
    Log,
}

/// An axis with its limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    /// Limits that contain all values, rounded to ticks.
    pub(super) fn around(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let usable = |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
        let (mut low, mut high) =
            values.filter(usable).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = if axis.scale == Scale::Log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        match axis.scale {
            Scale::Linear => {
                if axis.from_zero {
                    (low, high) = (low.min(0.0), high.max(0.0));
                }
                if high - low < f64::EPSILON * high.abs().max(1.0) {
                    high = low + low.abs().max(1.0);
                }
                let step = step(high - low);
                Self {
                    scale: axis.scale,
                    low: (low / step).floor() * step,
                    high: (high / step).ceil() * step,
                }
            }
            Scale::Log => {
                // At least a factor of two, so that a constant appears as a line.
                if high < low * 2.0 {
                    (low, high) = (low / 1.5, high * 1.5);
                }
                Self { scale: axis.scale, low: low / 1.05, high: high * 1.05 }
            }
        }
    }

    /// Position of a value, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Values at which the axis has a grid line and a label.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high - self.low);
                let count = ((self.high - self.low) / step).round() as i64;
                (0..=count).map(|at| self.low + at as f64 * step).collect()
            }
            Scale::Log => {
                let decades = (self.high / self.low).log10();
                let factors: &[f64] = match decades {
                    d if d < 1.2 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
                    d if d < 3.0 => &[1.0, 2.0, 5.0],
                    _ => &[1.0],
                };
                let first = self.low.log10().floor() as i32;
                let last = self.high.log10().ceil() as i32;
                (first..=last)
                    .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
                    .filter(|value| (self.low..=self.high).contains(value))
                    .collect()
            }
        }
    }
}

/// A round distance that gives five to ten ticks.
fn step(span: f64) -> f64 {
    let raw = span / 6.0;
    let decade = 10f64.powf(raw.log10().floor());
    let factor = match raw / decade {
        f if f <= 1.0 => 1.0,
        f if f <= 2.0 => 2.0,
        f if f <= 5.0 => 5.0,
        _ => 10.0,
    };
    factor * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_all_values() {
        let range = Range::around(&Axis::linear("x"), [3.0, 97.0].into_iter());
        assert_eq!(range.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!((range.place(0.0), range.place(50.0), range.place(100.0)), (0.0, 0.5, 1.0));
        let range = Range::around(&Axis::log("x"), [5.0, 5_000.0].into_iter());
        assert_eq!(range.ticks(), [10.0, 100.0, 1_000.0]);
        assert!(range.place(5.0) < 0.02 && range.place(5_000.0) > 0.98);
    }

    #[test]
    fn empty_and_constant_data_have_an_axis() {
        for axis in [Axis::linear("x"), Axis::around("x"), Axis::log("x")] {
            for values in [vec![], vec![7.0], vec![0.0, -1.0], vec![f64::NAN, f64::INFINITY]] {
                let range = Range::around(&axis, values.iter().copied());
                assert!(range.place(7.0).is_finite() && !range.ticks().is_empty(), "{axis:?} {values:?}");
            }
        }
    }
}
