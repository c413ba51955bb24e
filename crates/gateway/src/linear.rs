//! Linear scaling with decimal results: 229 with a factor of 0.1 is 22.9, not 22.900000000000002.
//!
//! 0.1 has no exact binary form, so a product with it carries the error of the factor. Configured factors and offsets are
//! decimal, so they are kept as integers over a power of ten. For integer inputs, such as registers, only the last step rounds.

/// `number · factor + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    factor: f64,
    offset: f64,
    decimal: Option<Decimal>,
}

/// The same as `(number · factor + offset) / power`, all of them integers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Decimal {
    factor: f64,
    offset: f64,
    power: f64,
}

/// Most decimal digits: a double has no more significant ones.
const DIGITS_MAX: i32 = 15;
/// Integers below this are exact in a double.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

impl Linear {
    /// The scaling that changes nothing.
    pub const IDENTITY: Self = Self { factor: 1.0, offset: 0.0, decimal: None };

    /// `factor` must not be 0.
    #[must_use]
    pub fn new(factor: f64, offset: f64) -> Self {
        let at = |digits| {
            let power = 10f64.powi(digits);
            let whole = |number: f64| {
                let whole = (number * power).round();
                (whole.abs() < WHOLE_MAX && whole / power == number).then_some(whole)
            };
            Some(Decimal { factor: whole(factor)?, offset: whole(offset)?, power })
        };
        Self { factor, offset, decimal: (0..=DIGITS_MAX).find_map(at) }
    }

    /// Whether the scaling changes nothing.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.factor == 1.0 && self.offset == 0.0
    }

    /// The scaled number.
    #[must_use]
    pub fn apply(&self, number: f64) -> f64 {
        if self.is_identity() {
            return number;
        }
        let exact = |of: Decimal| {
            let whole = number * of.factor + of.offset;
            (number.fract() == 0.0 && whole.abs() < WHOLE_MAX).then_some(whole / of.power)
        };
        self.decimal.and_then(exact).unwrap_or(number * self.factor + self.offset)
    }

    /// The original of a scaled number.
    #[must_use]
    pub fn revert(&self, scaled: f64) -> f64 {
        if self.is_identity() {
            return scaled;
        }
        let exact = self.decimal.map(|of| (scaled * of.power - of.offset) / of.factor);
        let number = exact.filter(|it| it.is_finite()).unwrap_or((scaled - self.offset) / self.factor);
        // The product is rounded: 0.29 · 100 is 28.999999999999996. Return the whole number if it is this close.
        let whole = number.round();
        let error = 4.0 * f64::EPSILON * (scaled.abs() + self.offset.abs()) / self.factor.abs();
        // For larger numbers the error does not tell which whole number was meant.
        let is_meant = error < 0.01 && (number - whole).abs() <= error;
        if is_meant { whole } else { number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts decimal digits to a double.
    fn decimal(whole: i64, digits: u32) -> f64 {
        let sign = if whole < 0 { "-" } else { "" };
        let (whole, power) = (whole.unsigned_abs(), 10u64.pow(digits));
        format!("{sign}{}.{:0width$}", whole / power, whole % power, width = digits as usize).parse().unwrap()
    }

    #[test]
    fn decimal_factors_give_the_nearest_decimal_number() {
        assert_eq!(Linear::new(0.1, 0.0).apply(229.0), 22.9);
        for (factor, digits) in
            [(1i64, 1u32), (1, 2), (1, 3), (5, 1), (25, 2), (3, 1), (15, 1), (125, 4), (7, 6), (-1, 1)]
        {
            for offset in [0, 2, -400, 27_315] {
                let linear = Linear::new(decimal(factor, digits), decimal(offset, digits));
                for number in (-70_000..70_000).step_by(7) {
                    let expected = decimal(number * factor + offset, digits);
                    assert_eq!(
                        linear.apply(number as f64),
                        expected,
                        "{number} × {factor}e-{digits} + {offset}e-{digits}"
                    );
                    assert_eq!(linear.revert(expected), number as f64, "{expected} back");
                }
            }
        }
    }

    #[test]
    fn other_factors_and_huge_numbers_are_multiplied() {
        let third = Linear::new(1.0 / 3.0, 0.5);
        assert_eq!((third.decimal, third.apply(6.0)), (None, 2.5));
        assert_eq!(third.revert(2.5), 6.0);
        let small = Linear::new(1e-12, 0.0);
        assert_eq!(Linear::new(0.3, 0.0).apply(f64::MAX), f64::MAX * 0.3);
        assert!(small.apply(f64::NAN).is_nan());
        assert_eq!(small.apply(f64::INFINITY), f64::INFINITY);
        // Values halfway between whole numbers are not rounded.
        assert_eq!(Linear::new(0.1, 0.0).revert(22.95), 229.5);
        assert_eq!(Linear::new(2.0, 0.0).apply(0.25), 0.5);
        assert!(Linear::new(1.0, 0.0).is_identity() && Linear::IDENTITY.is_identity());
        // Unscaled numbers are not rounded, nor those for which a whole number is not more likely.
        for number in [3.000_000_000_000_000_4, 1e15 + 0.125, -0.1] {
            assert_eq!((Linear::IDENTITY.apply(number), Linear::IDENTITY.revert(number)), (number, number));
        }
        assert_eq!(Linear::new(1.0, 1e14).revert(1e14 + 3.25), 3.25);
        assert_eq!(Linear::new(0.1, 0.0).apply(0.3), 0.3 * 0.1);
    }
}
