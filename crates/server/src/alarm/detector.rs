//! Detectors decide whether an input is abnormal, for each kind of alarm (Part 9 §5.8.18 to §5.8.25).

use super::limits::{LimitSet, Limits, LimitsProblem};
use super::machine::Finding;
use taktwerk_schema::ids::object_type_ids as t;
use taktwerk_types::{NodeId, StatusCode, UtcTime, Variant};

/// The quantity compared with the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantity {
    /// The value itself (§5.8.21).
    #[default]
    Level,
    /// Its distance from a setpoint (§5.8.22).
    Deviation,
    /// Its rate of change per second (§5.8.23).
    RateOfChange,
}

/// The kind of alarm: what is monitored.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A number has limits.
    Limit {
        /// What is compared.
        quantity: Quantity,
        /// The limits.
        limits: Limits,
        /// Whether only the outermost limit is shown (§5.8.19), or each by itself (§5.8.20).
        is_exclusive: bool,
    },
    /// A value differs from the normal one (§5.8.24.2).
    OffNormal {
        /// The normal one.
        normal: Variant,
    },
    /// A value does not follow a target value (§5.8.25).
    Discrepancy {
        /// The allowed difference.
        tolerance: f64,
        /// The allowed time, in milliseconds (ExpectedTime).
        expected_time: f64,
    },
    /// A date approaches: the input is the ExpirationDate (§5.8.24.7).
    Expiration {
        /// How long before the date the alarm becomes active, in milliseconds (ExpirationLimit).
        limit: f64,
    },
    /// A trust list has not been updated in time: the input is the LastUpdateTime (Part 12 §7.8.2.11).
    OutOfDate {
        /// Required update interval, in milliseconds (UpdateFrequency).
        frequency: f64,
        /// TrustListId.
        trust_list: NodeId,
    },
    /// The application sets whether it is active.
    Set,
    /// A condition that is not an alarm and needs acknowledgement (§5.7). The application sets whether it is in a state
    /// that operators must acknowledge.
    Acknowledgeable,
    /// A condition without acknowledgement (§5.5). The application sets whether operators should see it (Retain). It
    /// needs a type of its own, because ConditionType is abstract. If that type is an alarm type or acknowledgeable, so
    /// is the condition.
    Condition,
}

/// Severities by limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Severities {
    /// Of LowLow and HighHigh.
    pub outer: u16,
    /// Of Low and High, and of alarms without limits.
    pub inner: u16,
}

impl Severities {
    /// The severity while these limits are exceeded.
    #[must_use]
    pub const fn of(self, limits: LimitSet) -> u16 {
        let is_outer = limits.contains(LimitSet::HIGH_HIGH) || limits.contains(LimitSet::LOW_LOW);
        if is_outer { self.outer } else { self.inner }
    }
}

impl Default for Severities {
    /// In the upper and the middle band of Part 5 §6.4.2.
    fn default() -> Self {
        Self { outer: 800, inner: 500 }
    }
}

/// Evaluates inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Detector {
    kind: Kind,
    severities: Severities,
    limits: LimitSet,
    /// Limits whose deadband still applies. Set if the limits were redefined before the first quantity.
    held: Option<LimitSet>,
    /// The last quantity that was compared with the limits.
    quantity: Option<f64>,
    /// Of RateOfChange: the previous input.
    before: Option<(f64, UtcTime)>,
    /// Of Discrepancy: since when the value has differed.
    off_since: Option<UtcTime>,
    /// Of date alarms: when they become active.
    due: Option<UtcTime>,
    is_active: bool,
}

/// An input: a value, and the target it is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input<'a> {
    /// The value.
    pub value: &'a Variant,
    /// Its status.
    pub status: StatusCode,
    /// When it was measured.
    pub time: UtcTime,
    /// The setpoint, or the target.
    pub target: Option<&'a Variant>,
}

/// The value as a number, whatever numeric type it has.
pub(crate) fn number(value: &Variant) -> Option<f64> {
    Some(match value {
        Variant::Boolean(value) => f64::from(u8::from(*value)),
        Variant::SByte(value) => f64::from(*value),
        Variant::Byte(value) => f64::from(*value),
        Variant::Int16(value) => f64::from(*value),
        Variant::UInt16(value) => f64::from(*value),
        Variant::Int32(value) => f64::from(*value),
        Variant::UInt32(value) => f64::from(*value),
        Variant::Int64(value) => *value as f64,
        Variant::UInt64(value) => *value as f64,
        Variant::Float(value) => f64::from(*value),
        Variant::Double(value) => *value,
        _ => return None,
    })
}

impl Kind {
    /// Whether the settings are valid.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), LimitsProblem> {
        match self {
            Self::Limit { limits, .. } => limits.check(),
            Self::Discrepancy { tolerance, expected_time } => {
                let is_sound = tolerance.is_finite() && expected_time.is_finite();
                if is_sound && *tolerance >= 0.0 && *expected_time >= 0.0 {
                    Ok(())
                } else {
                    Err(LimitsProblem::NoNumber)
                }
            }
            Self::Expiration { limit } if limit.is_finite() && *limit >= 0.0 => Ok(()),
            Self::OutOfDate { frequency, .. } if frequency.is_finite() && *frequency >= 0.0 => Ok(()),
            Self::Expiration { .. } | Self::OutOfDate { .. } => Err(LimitsProblem::NoNumber),
            Self::OffNormal { .. } | Self::Set | Self::Acknowledgeable | Self::Condition => Ok(()),
        }
    }

    /// The ObjectType.
    #[must_use]
    pub fn type_id(&self) -> u32 {
        match self {
            Self::Limit { quantity, is_exclusive, .. } => match (quantity, is_exclusive) {
                (Quantity::Level, true) => t::EXCLUSIVE_LEVEL_ALARM_TYPE,
                (Quantity::Level, false) => t::NON_EXCLUSIVE_LEVEL_ALARM_TYPE,
                (Quantity::Deviation, true) => t::EXCLUSIVE_DEVIATION_ALARM_TYPE,
                (Quantity::Deviation, false) => t::NON_EXCLUSIVE_DEVIATION_ALARM_TYPE,
                (Quantity::RateOfChange, true) => t::EXCLUSIVE_RATE_OF_CHANGE_ALARM_TYPE,
                (Quantity::RateOfChange, false) => t::NON_EXCLUSIVE_RATE_OF_CHANGE_ALARM_TYPE,
            },
            Self::OffNormal { .. } => t::OFF_NORMAL_ALARM_TYPE,
            Self::Discrepancy { .. } => t::DISCREPANCY_ALARM_TYPE,
            Self::Expiration { .. } => t::CERTIFICATE_EXPIRATION_ALARM_TYPE,
            Self::OutOfDate { .. } => t::TRUST_LIST_OUT_OF_DATE_ALARM_TYPE,
            Self::Set => t::ALARM_CONDITION_TYPE,
            Self::Acknowledgeable => t::ACKNOWLEDGEABLE_CONDITION_TYPE,
            Self::Condition => t::CONDITION_TYPE,
        }
    }

    /// Whether it is an alarm: it has an ActiveState and the Methods of alarms (§5.8).
    #[must_use]
    pub const fn is_alarm(&self) -> bool {
        !matches!(self, Self::Acknowledgeable | Self::Condition)
    }

    /// The default name of an alarm.
    #[must_use]
    pub fn default_name(&self) -> &'static str {
        match self {
            Self::Limit { quantity: Quantity::Level, .. } => "LevelAlarm",
            Self::Limit { quantity: Quantity::Deviation, .. } => "DeviationAlarm",
            Self::Limit { quantity: Quantity::RateOfChange, .. } => "RateOfChangeAlarm",
            Self::OffNormal { .. } => "OffNormalAlarm",
            Self::Discrepancy { .. } => "DiscrepancyAlarm",
            Self::Expiration { .. } => "ExpirationAlarm",
            Self::OutOfDate { .. } => "OutOfDateAlarm",
            Self::Set => "Alarm",
            Self::Acknowledgeable | Self::Condition => "Condition",
        }
    }
}

impl Detector {
    /// Creates a detector without any previous input.
    #[must_use]
    pub fn new(kind: Kind, severities: Severities) -> Self {
        let limits = LimitSet::NONE;
        Self {
            kind,
            severities,
            limits,
            held: None,
            quantity: None,
            before: None,
            off_since: None,
            due: None,
            is_active: false,
        }
    }

    /// What it monitors.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// After a restart: restores the exceeded limits, for their deadbands.
    pub(crate) fn resume(&mut self, limits: LimitSet, is_active: bool) {
        (self.limits, self.held, self.is_active) = (limits, None, is_active);
    }

    /// Sets whether it is active, on behalf of the application.
    pub fn set(&mut self, is_active: bool) {
        self.is_active = is_active;
    }

    /// When the result changes without a new input.
    #[must_use]
    pub fn deadline(&self) -> Option<UtcTime> {
        match self.kind {
            Kind::Discrepancy { expected_time, .. } if !self.is_active => {
                self.off_since.map(|since| super::shelving::later(since, expected_time))
            }
            Kind::Expiration { .. } | Kind::OutOfDate { .. } => self.due,
            _ => None,
        }
    }

    /// Evaluates an input. A Bad value changes only the quality (§5.5.2, Quality).
    pub fn look(&mut self, input: Input<'_>, now: UtcTime) -> Finding {
        if !input.status.is_bad() {
            self.evaluate(input, now);
        }
        Finding {
            active: self.is_active,
            limits: self.limits,
            severity: self.severities.of(self.limits),
            quality: input.status,
        }
    }

    /// Takes over changed settings of the same kind. Limits are compared with the last value at once, the other kinds
    /// with the next input. The deadband of a limit that has another value now does not apply: the value has never
    /// exceeded the new limit.
    pub(crate) fn redefine(&mut self, kind: Kind, severities: Severities, now: UtcTime) {
        match (&self.kind, &kind) {
            (Kind::Limit { limits: old, .. }, Kind::Limit { limits: new, .. }) => {
                let held = self.held.unwrap_or(self.limits).common(new.same_as(old));
                match self.quantity {
                    Some(quantity) => {
                        self.limits = new.evaluate(quantity, held);
                        self.is_active = !self.limits.is_empty();
                    }
                    None => self.held = Some(held),
                }
            }
            (Kind::Discrepancy { .. }, Kind::Discrepancy { expected_time, .. }) => {
                let is_due = |since| now.ticks() >= super::shelving::later(since, *expected_time).ticks();
                self.is_active = self.is_active && self.off_since.is_none_or(is_due);
            }
            _ => {}
        }
        (self.kind, self.severities) = (kind, severities);
    }

    fn evaluate(&mut self, input: Input<'_>, now: UtcTime) {
        match &self.kind {
            Kind::Limit { quantity, limits, is_exclusive } => {
                let Some(quantity) = quantity_of(*quantity, input, &mut self.before) else { return };
                self.quantity = Some(quantity);
                let found = limits.evaluate(quantity, self.held.take().unwrap_or(self.limits));
                self.limits = match (is_exclusive, found.outermost()) {
                    // The deadband of the inner limit still applies beyond the outer one.
                    (true, Some(_)) | (false, _) => found,
                    (true, None) => LimitSet::NONE,
                };
                self.is_active = !self.limits.is_empty();
            }
            Kind::OffNormal { normal } => self.is_active = input.value != normal,
            Kind::Discrepancy { tolerance, expected_time } => {
                let is_off = match (number(input.value), input.target.and_then(number)) {
                    (Some(value), Some(target)) => {
                        let distance = (value - target).abs();
                        distance.is_nan() || distance > *tolerance
                    }
                    _ => input.target.is_some_and(|target| target != input.value),
                };
                if is_off {
                    let since = *self.off_since.get_or_insert(now);
                    let due = super::shelving::later(since, *expected_time);
                    self.is_active = self.is_active || now.ticks() >= due.ticks();
                } else {
                    (self.off_since, self.is_active) = (None, false);
                }
            }
            Kind::Expiration { limit } => self.active_from(input.value, -*limit, now),
            Kind::OutOfDate { frequency, .. } => self.active_from(input.value, *frequency, now),
            Kind::Set | Kind::Acknowledgeable | Kind::Condition => {}
        }
    }

    /// Active from `millis` milliseconds after a date. Without a date there is no deadline and the previous result
    /// stays, as it does for limits with a value that is not a number.
    fn active_from(&mut self, date: &Variant, millis: f64, now: UtcTime) {
        self.due = None;
        let Variant::DateTime(date) = date else { return };
        if date.is_null() {
            return;
        }
        let at = UtcTime::from_ticks(date.ticks().saturating_add((millis * 1e4) as i64));
        self.is_active = now.ticks() >= at.ticks();
        self.due = (!self.is_active).then_some(at);
    }
}

/// The quantity to compare with the limits.
fn quantity_of(quantity: Quantity, input: Input<'_>, before: &mut Option<(f64, UtcTime)>) -> Option<f64> {
    let value = number(input.value)?;
    match quantity {
        Quantity::Level => Some(value),
        Quantity::Deviation => Some(value - input.target.and_then(number)?),
        Quantity::RateOfChange => {
            let last = before.replace((value, input.time));
            let (old, time) = last?;
            let seconds = input.time.ticks().saturating_sub(time.ticks()) as f64 / 1e7;
            if seconds <= 0.0 {
                // There is no newer measurement: keep the previous rate.
                *before = last;
                return None;
            }
            Some((value - old) / seconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> UtcTime {
        UtcTime::from_ticks(1_000_000_000 + seconds * 10_000_000)
    }

    fn look(
        detector: &mut Detector,
        value: impl Into<Variant>,
        target: Option<f64>,
        seconds: i64,
    ) -> Finding {
        let (value, target) = (value.into(), target.map(Variant::from));
        let input =
            Input { value: &value, status: StatusCode::GOOD, time: at(seconds), target: target.as_ref() };
        detector.look(input, at(seconds))
    }

    fn limit(quantity: Quantity, limits: Limits) -> Detector {
        Detector::new(Kind::Limit { quantity, limits, is_exclusive: true }, Severities::default())
    }

    #[test]
    fn levels_of_any_number_type() {
        let limits = Limits { high: Some(80.0), high_high: Some(95.0), ..Limits::default() };
        let mut detector = limit(Quantity::Level, limits);
        assert!(!look(&mut detector, 80i32, None, 0).active);
        let high = look(&mut detector, 81u8, None, 1);
        assert_eq!((high.active, high.severity, high.limits.outermost()), (true, 500, Some(LimitSet::HIGH)));
        let worst = look(&mut detector, 99.0f32, None, 2);
        assert_eq!((worst.severity, worst.limits.outermost()), (800, Some(LimitSet::HIGH_HIGH)));
        // A text has no level: the previous result stays.
        assert_eq!(look(&mut detector, "hot", None, 3), worst);
        assert!(!look(&mut detector, true, None, 4).active);
    }

    #[test]
    fn a_bad_value_changes_the_quality_and_nothing_else() {
        let mut detector = limit(Quantity::Level, Limits { high: Some(80.0), ..Limits::default() });
        assert!(look(&mut detector, 90.0, None, 0).active);
        let input = Input {
            value: &Variant::Empty,
            status: StatusCode::BAD_COMMUNICATION_ERROR,
            time: at(1),
            target: None,
        };
        let finding = detector.look(input, at(1));
        assert_eq!((finding.active, finding.quality), (true, StatusCode::BAD_COMMUNICATION_ERROR));
    }

    #[test]
    fn deviations_need_a_setpoint() {
        let limits = Limits { high: Some(5.0), low: Some(-5.0), ..Limits::default() };
        let mut detector = limit(Quantity::Deviation, limits);
        assert!(!look(&mut detector, 100.0, None, 0).active);
        assert!(!look(&mut detector, 100.0, Some(96.0), 1).active);
        assert_eq!(look(&mut detector, 100.0, Some(94.0), 2).limits.outermost(), Some(LimitSet::HIGH));
        assert_eq!(look(&mut detector, 100.0, Some(106.0), 3).limits.outermost(), Some(LimitSet::LOW));
    }

    #[test]
    fn rates_are_per_second_of_source_time() {
        let mut detector = limit(Quantity::RateOfChange, Limits { high: Some(2.0), ..Limits::default() });
        assert!(!look(&mut detector, 0.0, None, 0).active);
        assert!(!look(&mut detector, 20.0, None, 10).active, "2 per second is at the limit");
        assert!(look(&mut detector, 41.0, None, 20).active);
        assert!(look(&mut detector, 0.0, None, 20).active, "the same moment has no rate");
        assert!(!look(&mut detector, 42.0, None, 30).active);
    }

    #[test]
    fn off_normal_compares_with_the_normal_value() {
        let mut detector = Detector::new(Kind::OffNormal { normal: true.into() }, Severities::default());
        assert!(!look(&mut detector, true, None, 0).active);
        assert!(look(&mut detector, false, None, 1).active);
    }

    /// After a restart, there is no value to compare with changed limits.
    #[test]
    fn an_active_alarm_keeps_its_limits_until_there_is_a_value() {
        let kind = |high: f64| {
            let limits = Limits { high: Some(high), deadband: 5.0, ..Limits::default() };
            Kind::Limit { quantity: Quantity::Level, limits, is_exclusive: true }
        };
        let bad = Input {
            value: &Variant::Empty,
            status: StatusCode::BAD_NOT_CONNECTED,
            time: at(1),
            target: None,
        };
        for (limit, remains) in [(80.0, true), (81.0, false)] {
            let mut detector = Detector::new(kind(80.0), Severities::default());
            detector.resume(LimitSet::HIGH, true);
            detector.redefine(kind(limit), Severities::default(), at(0));
            let found = detector.look(bad, at(1));
            assert_eq!((found.active, found.limits), (true, LimitSet::HIGH));
            // The deadband of the former limit does not apply.
            assert_eq!(look(&mut detector, 78.0, None, 2).active, remains);
        }
    }

    #[test]
    fn a_discrepancy_needs_time() {
        let kind = Kind::Discrepancy { tolerance: 1.0, expected_time: 5_000.0 };
        let mut detector = Detector::new(kind, Severities::default());
        assert!(!look(&mut detector, 0.0, Some(10.0), 0).active);
        assert_eq!(detector.deadline(), Some(at(5)));
        assert!(!look(&mut detector, 5.0, Some(10.0), 4).active);
        assert!(look(&mut detector, 5.0, Some(10.0), 5).active);
        assert_eq!(detector.deadline(), None);
        assert!(!look(&mut detector, 9.0, Some(10.0), 6).active);
        assert!(!look(&mut detector, 5.0, Some(10.0), 7).active, "the time begins anew");
    }

    #[test]
    fn expiration_alarms_become_active_before_the_date() {
        let mut detector = Detector::new(Kind::Expiration { limit: 60_000.0 }, Severities::default());
        assert!(!look(&mut detector, at(100), None, 39).active);
        assert_eq!(detector.deadline(), Some(at(40)), "time alone raises it");
        assert!(look(&mut detector, at(100), None, 40).active);
        assert!(look(&mut detector, at(100), None, 200).active);
        assert!(!look(&mut detector, at(1000), None, 200).active, "it was renewed");
    }

    #[test]
    fn a_missing_update_raises_the_alarm() {
        let kind = Kind::OutOfDate { frequency: 60_000.0, trust_list: NodeId::NULL };
        let mut detector = Detector::new(kind, Severities::default());
        assert!(!look(&mut detector, at(100), None, 159).active);
        assert_eq!(detector.deadline(), Some(at(160)));
        assert!(look(&mut detector, at(100), None, 160).active);
        assert!(!look(&mut detector, at(161), None, 162).active, "it was updated");
        let broken = Kind::OutOfDate { frequency: f64::NAN, trust_list: NodeId::NULL };
        assert!(broken.check().is_err());
    }

    /// An old deadline would raise an alarm about a date that is no longer the input.
    #[test]
    fn without_a_date_there_is_no_deadline_and_the_result_stays() {
        let kinds = [
            Kind::Expiration { limit: 60_000.0 },
            Kind::OutOfDate { frequency: 60_000.0, trust_list: NodeId::NULL },
        ];
        for kind in kinds {
            for no_date in [Variant::from("soon"), Variant::Empty, UtcTime::NULL.into()] {
                let mut detector = Detector::new(kind.clone(), Severities::default());
                assert!(!look(&mut detector, at(1000), None, 0).active);
                assert!(detector.deadline().is_some());
                assert!(!look(&mut detector, no_date.clone(), None, 1).active, "{kind:?}: {no_date}");
                assert_eq!(detector.deadline(), None, "{kind:?}: {no_date}");
                assert!(!look(&mut detector, no_date.clone(), None, 5000).active);
                assert!(look(&mut detector, at(1000), None, 5000).active);
                assert!(look(&mut detector, no_date, None, 5001).active, "it was not renewed");
                assert_eq!(detector.deadline(), None);
            }
        }
    }

    #[test]
    fn every_kind_is_a_type_that_has_instances() {
        use taktwerk_schema::ns0::Ns0;
        let limits = Limits::default();
        let mut kinds: Vec<Kind> = [Quantity::Level, Quantity::Deviation, Quantity::RateOfChange]
            .into_iter()
            .flat_map(|quantity| {
                [true, false].map(|is_exclusive| Kind::Limit { quantity, limits, is_exclusive })
            })
            .collect();
        kinds.extend([
            Kind::OffNormal { normal: true.into() },
            Kind::Discrepancy { tolerance: 0.0, expected_time: 0.0 },
            Kind::Expiration { limit: 0.0 },
            Kind::OutOfDate { frequency: 0.0, trust_list: NodeId::NULL },
            Kind::Set,
            Kind::Acknowledgeable,
            Kind::Condition,
        ]);
        for kind in kinds {
            let node = Ns0::get().node(kind.type_id()).unwrap();
            assert!(node.browse_name().ends_with("Type"), "{kind:?}");
        }
    }
}
