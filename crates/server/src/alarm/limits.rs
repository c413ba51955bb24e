//! Limits of a value, with deadbands (Part 9 §5.8.18).

use core::fmt;

/// The limits that a value exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct LimitSet(u8);

impl LimitSet {
    /// None.
    pub const NONE: Self = Self(0);
    /// Below LowLowLimit.
    pub const LOW_LOW: Self = Self(1);
    /// Below LowLimit.
    pub const LOW: Self = Self(2);
    /// Above HighLimit.
    pub const HIGH: Self = Self(4);
    /// Above HighHighLimit.
    pub const HIGH_HIGH: Self = Self(8);

    /// The union of two sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The limits that are in both sets.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set contains a limit.
    #[must_use]
    pub const fn contains(self, limit: Self) -> bool {
        self.0 & limit.0 == limit.0 && limit.0 != 0
    }

    /// Whether the value is within all limits.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The one limit that an exclusive alarm shows (§5.8.19): the outer one if two are exceeded.
    #[must_use]
    pub const fn outermost(self) -> Option<Self> {
        if self.contains(Self::HIGH_HIGH) {
            Some(Self::HIGH_HIGH)
        } else if self.contains(Self::LOW_LOW) {
            Some(Self::LOW_LOW)
        } else if self.contains(Self::HIGH) {
            Some(Self::HIGH)
        } else if self.contains(Self::LOW) {
            Some(Self::LOW)
        } else {
            None
        }
    }

    /// The stored form.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Restores the stored form.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 15)
    }

    /// The name of a single limit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            1 => "LowLow",
            2 => "Low",
            4 => "High",
            8 => "HighHigh",
            _ => "",
        }
    }
}

/// The limits of an alarm. `None` limits are not monitored.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// HighHighLimit.
    pub high_high: Option<f64>,
    /// HighLimit.
    pub high: Option<f64>,
    /// LowLimit.
    pub low: Option<f64>,
    /// LowLowLimit.
    pub low_low: Option<f64>,
    /// How far a value must return inside a limit before it counts as within it.
    pub deadband: f64,
}

/// Why limits are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitsProblem {
    /// No limit is set.
    None,
    /// A limit or the deadband is not a finite number, or the deadband is negative.
    NoNumber,
    /// The limits do not rise from LowLow to HighHigh.
    Order,
}

impl fmt::Display for LimitsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "it has no limit: set at least one of high_high, high, low and low_low",
            Self::NoNumber => "limits and the deadband must be finite numbers, and the deadband not negative",
            Self::Order => "the limits must rise: low_low < low < high < high_high",
        })
    }
}

impl std::error::Error for LimitsProblem {}

impl Limits {
    /// The limits that are set, from the lowest to the highest.
    pub fn all(&self) -> impl Iterator<Item = (LimitSet, f64)> {
        [
            (LimitSet::LOW_LOW, self.low_low),
            (LimitSet::LOW, self.low),
            (LimitSet::HIGH, self.high),
            (LimitSet::HIGH_HIGH, self.high_high),
        ]
        .into_iter()
        .filter_map(|(limit, value)| Some((limit, value?)))
    }

    /// The limits that have the same value in both.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> LimitSet {
        let is_same = |one: &(LimitSet, f64)| other.all().any(|known| known == *one);
        self.all().filter(is_same).fold(LimitSet::NONE, |found, (limit, _)| found.with(limit))
    }

    /// Whether the limits are valid.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self) -> Result<(), LimitsProblem> {
        let values: Vec<f64> = self.all().map(|(_, value)| value).collect();
        if values.is_empty() {
            return Err(LimitsProblem::None);
        }
        let is_number = |value: &f64| value.is_finite();
        if !values.iter().all(is_number) || !self.deadband.is_finite() || self.deadband < 0.0 {
            return Err(LimitsProblem::NoNumber);
        }
        let rises = values.windows(2).all(|pair| matches!(pair, [low, high] if low < high));
        if rises { Ok(()) } else { Err(LimitsProblem::Order) }
    }

    /// The limits that a value exceeds, given those exceeded in `before`. A value equal to a limit is within it. An
    /// exceeded limit stays exceeded until the value has returned by the deadband. NaN keeps `before`.
    #[must_use]
    pub fn evaluate(&self, value: f64, before: LimitSet) -> LimitSet {
        if value.is_nan() {
            return before;
        }
        self.all().fold(LimitSet::NONE, |found, (limit, at)| {
            let band = if before.contains(limit) { self.deadband } else { 0.0 };
            let is_high = limit == LimitSet::HIGH || limit == LimitSet::HIGH_HIGH;
            let is_beyond = if is_high { value > at - band } else { value < at + band };
            if is_beyond { found.with(limit) } else { found }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        high_high: Some(95.0),
        high: Some(80.0),
        low: Some(20.0),
        low_low: Some(5.0),
        deadband: 1.0,
    };

    #[test]
    fn a_value_must_return_by_the_deadband() {
        let mut now = LimitSet::NONE;
        let mut seen = |value: f64| {
            now = LIMITS.evaluate(value, now);
            now.outermost().map_or("", LimitSet::name)
        };
        assert_eq!(["", "", "High"], [seen(50.0), seen(80.0), seen(80.1)]);
        assert_eq!(["High", ""], [seen(79.5), seen(79.0)]);
        assert_eq!(["HighHigh", "HighHigh", "High"], [seen(96.0), seen(94.5), seen(94.0)]);
        assert_eq!(["LowLow", "LowLow", "Low", "Low", ""], [4.9, 5.9, 6.0, 20.9, 21.0].map(seen));
        assert_eq!(LIMITS.evaluate(f64::NAN, LimitSet::HIGH), LimitSet::HIGH);
        assert_eq!(LIMITS.evaluate(f64::INFINITY, LimitSet::NONE).outermost(), Some(LimitSet::HIGH_HIGH));
    }

    #[test]
    fn invalid_limits_are_refused() {
        assert_eq!(LIMITS.check(), Ok(()));
        assert_eq!(Limits::default().check(), Err(LimitsProblem::None));
        assert_eq!(Limits { low: Some(80.0), ..LIMITS }.check(), Err(LimitsProblem::Order));
        assert_eq!(Limits { high: Some(f64::NAN), ..LIMITS }.check(), Err(LimitsProblem::NoNumber));
        assert_eq!(Limits { deadband: -1.0, ..LIMITS }.check(), Err(LimitsProblem::NoNumber));
    }

    proptest! {
        #[test]
        fn the_outer_limit_is_never_exceeded_alone(value in -200.0f64..200.0, before in 0u8..16) {
            // All limits share one deadband, so a value beyond HighHigh is also beyond High.
            let found = LIMITS.evaluate(value, LimitSet::from_bits(before));
            if value > 95.0 {
                prop_assert!(found.contains(LimitSet::HIGH) && found.contains(LimitSet::HIGH_HIGH));
            }
            if (21.0..=79.0).contains(&value) {
                prop_assert!(found.is_empty());
            }
            prop_assert_eq!(LIMITS.evaluate(value, found), found, "evaluated twice");
        }
    }
}
