//! The ShelvedStateMachine (Part 9 §5.8.17, Table 73): operators shelve an alarm to hide it for a while.

use taktwerk_types::{StatusCode, UtcTime};

/// Whether an alarm is shelved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shelving {
    /// Not shelved.
    #[default]
    Unshelved,
    /// Until a time.
    TimedShelved {
        /// When shelving ends.
        until: UtcTime,
    },
    /// Until the alarm is no longer active.
    OneShotShelved {
        /// The latest end: MaxTimeShelved, if set.
        until: Option<UtcTime>,
    },
}

/// Longest duration in milliseconds for which the end fits into an OPC UA time.
const MILLIS_MAX: f64 = 1e14;

/// Milliseconds in the resolution of times: ticks of 100 ns.
fn ticks(millis: f64) -> i64 {
    (millis.clamp(0.0, MILLIS_MAX) * 1e4) as i64
}

/// The time some milliseconds later.
pub(crate) fn later(now: UtcTime, millis: f64) -> UtcTime {
    UtcTime::from_ticks(now.ticks().saturating_add(ticks(millis)))
}

impl Shelving {
    /// TimedShelve (§5.8.17.4): transitions UnshelvedToTimedShelved, OneShotShelvedToTimedShelved.
    ///
    /// # Errors
    /// Bad_ShelvingTimeOutOfRange if the time is not a number, is less than 100 ns or exceeds MaxTimeShelved;
    /// Bad_ConditionAlreadyShelved if the alarm is TimedShelved: its timer is not reset.
    pub fn timed_shelve(
        self,
        millis: f64,
        millis_max: Option<f64>,
        now: UtcTime,
    ) -> Result<Self, StatusCode> {
        let max = millis_max.unwrap_or(MILLIS_MAX).min(MILLIS_MAX);
        // A shelving that ends when it begins would be none.
        if millis.is_nan() || ticks(millis) == 0 || millis > max {
            return Err(StatusCode::BAD_SHELVING_TIME_OUT_OF_RANGE);
        }
        match self {
            Self::TimedShelved { .. } => Err(StatusCode::BAD_CONDITION_ALREADY_SHELVED),
            Self::Unshelved | Self::OneShotShelved { .. } => {
                Ok(Self::TimedShelved { until: later(now, millis) })
            }
        }
    }

    /// OneShotShelve (§5.8.17.6): transitions UnshelvedToOneShotShelved, TimedShelvedToOneShotShelved.
    ///
    /// # Errors
    /// Bad_ConditionAlreadyShelved if the alarm is OneShotShelved.
    pub fn one_shot_shelve(self, millis_max: Option<f64>, now: UtcTime) -> Result<Self, StatusCode> {
        match self {
            Self::OneShotShelved { .. } => Err(StatusCode::BAD_CONDITION_ALREADY_SHELVED),
            Self::Unshelved | Self::TimedShelved { .. } => {
                Ok(Self::OneShotShelved { until: millis_max.map(|max| later(now, max)) })
            }
        }
    }

    /// Unshelve (§5.8.17.2): transitions TimedShelvedToUnshelved, OneShotShelvedToUnshelved.
    ///
    /// # Errors
    /// Bad_ConditionNotShelved.
    pub fn unshelve(self) -> Result<Self, StatusCode> {
        match self {
            Self::Unshelved => Err(StatusCode::BAD_CONDITION_NOT_SHELVED),
            Self::TimedShelved { .. } | Self::OneShotShelved { .. } => Ok(Self::Unshelved),
        }
    }

    /// The alarm became inactive (§5.8.17.1): OneShotShelved ends.
    #[must_use]
    pub fn inactive(self) -> Self {
        match self {
            Self::OneShotShelved { .. } => Self::Unshelved,
            other => other,
        }
    }

    /// Advances the time (§5.8.17.1, "Time expired"): both kinds of shelving end when their time is over.
    #[must_use]
    pub fn at(self, now: UtcTime) -> Self {
        if self.ends().is_some_and(|until| now.ticks() >= until.ticks()) { Self::Unshelved } else { self }
    }

    /// When shelving ends by itself.
    #[must_use]
    pub fn ends(self) -> Option<UtcTime> {
        match self {
            Self::Unshelved => None,
            Self::TimedShelved { until } => Some(until),
            Self::OneShotShelved { until } => until,
        }
    }

    /// UnshelveTime in milliseconds (§5.8.17.1): 0 if not shelved, the largest Duration if there is no end.
    #[must_use]
    pub fn unshelve_time(self, now: UtcTime) -> f64 {
        match (self, self.ends()) {
            (Self::Unshelved, _) => 0.0,
            (_, Some(until)) => (until.ticks().saturating_sub(now.ticks()).max(0)) as f64 / 1e4,
            (_, None) => f64::MAX,
        }
    }

    /// Whether it is shelved.
    #[must_use]
    pub fn is_shelved(self) -> bool {
        self != Self::Unshelved
    }

    /// The name of its state.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unshelved => "Unshelved",
            Self::TimedShelved { .. } => "Timed Shelved",
            Self::OneShotShelved { .. } => "One Shot Shelved",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UtcTime = UtcTime::from_ticks(1_000_000_000);
    const MAX: f64 = 60_000.0;

    /// Table 73: every input in every state.
    #[test]
    fn the_table_of_transitions_is_complete() {
        use StatusCode as S;
        let timed = Shelving::TimedShelved { until: later(NOW, 10_000.0) };
        let one_shot = Shelving::OneShotShelved { until: Some(later(NOW, MAX)) };
        let states = [Shelving::Unshelved, timed, one_shot];
        let timed_shelve = states.map(|state| state.timed_shelve(10_000.0, Some(MAX), NOW));
        assert_eq!(timed_shelve, [Ok(timed), Err(S::BAD_CONDITION_ALREADY_SHELVED), Ok(timed)]);
        let one_shot_shelve = states.map(|state| state.one_shot_shelve(Some(MAX), NOW));
        assert_eq!(one_shot_shelve, [Ok(one_shot), Ok(one_shot), Err(S::BAD_CONDITION_ALREADY_SHELVED)]);
        let unshelve = states.map(Shelving::unshelve);
        let unshelved = Ok(Shelving::Unshelved);
        assert_eq!(unshelve, [Err(S::BAD_CONDITION_NOT_SHELVED), unshelved, unshelved]);
        let inactive = states.map(Shelving::inactive);
        assert_eq!(inactive, [Shelving::Unshelved, timed, Shelving::Unshelved]);
        let soon = states.map(|state| state.at(later(NOW, 9_999.0)));
        assert_eq!(soon, states);
        let due = states.map(|state| state.at(later(NOW, 10_000.0)));
        assert_eq!(due, [Shelving::Unshelved, Shelving::Unshelved, one_shot]);
        assert_eq!(one_shot.at(later(NOW, MAX)), Shelving::Unshelved);
        assert_eq!(states.map(|state| state.unshelve_time(NOW)), [0.0, 10_000.0, MAX]);
    }

    #[test]
    fn invalid_shelving_times_are_out_of_range() {
        for millis in [0.0, -1.0, f64::NAN, f64::INFINITY, MAX + 1.0, f64::MAX, 1e-300, 9.9e-5] {
            let result = Shelving::Unshelved.timed_shelve(millis, Some(MAX), NOW);
            assert_eq!(result, Err(StatusCode::BAD_SHELVING_TIME_OUT_OF_RANGE), "{millis}");
        }
        assert!(Shelving::Unshelved.timed_shelve(1e15, None, NOW).is_err());
        let shortest = Shelving::Unshelved.timed_shelve(1e-4, Some(MAX), NOW).unwrap();
        assert!(shortest.at(NOW).is_shelved() && !shortest.at(later(NOW, 1e-4)).is_shelved());
        let endless = Shelving::Unshelved.one_shot_shelve(None, NOW).unwrap();
        assert_eq!((endless.ends(), endless.unshelve_time(NOW)), (None, f64::MAX));
    }
}
