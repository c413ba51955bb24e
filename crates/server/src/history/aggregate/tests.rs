//! Aggregates against an independent implementation that examines every millisecond, and examples calculated by hand.

use super::bound::{self, Rules};
use super::naive::{Naive, UNIT, shown};
use super::*;
use crate::history::store::HistoryValue;
use proptest::prelude::*;
use taktwerk_types::{UtcTime, Variant};

fn time(ticks: i64) -> UtcTime {
    UtcTime::from_ticks(1_000_000 + ticks)
}

fn value(at: i64, number: f64, status: StatusCode) -> HistoryValue {
    HistoryValue { source: time(at), server: time(at), status, value: number.into() }
}

const GOOD: StatusCode = StatusCode::GOOD;
const BAD: StatusCode = StatusCode::BAD_COMMUNICATION_ERROR;
const UNCERTAIN: StatusCode = StatusCode::UNCERTAIN_LAST_USABLE_VALUE;

fn interval(values: &[HistoryValue], start: i64, end: i64, rules: Rules) -> Interval<'_> {
    Interval { values, start: time(start), end: time(end), is_short: false, annotations: 3, rules }
}

fn number(value: &HistoryValue) -> Option<f64> {
    bound::number(&value.value)
}

fn rules(stepped: bool, treat_uncertain_as_bad: bool) -> Rules {
    Rules::new(stepped, Configuration { treat_uncertain_as_bad, ..Configuration::default() })
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * (1.0 + one.abs().max(other.abs()))
}

/// Whether two values of an interval, including bounding values, differ by no more than rounding errors.
fn has_near_tie(values: &[HistoryValue], start: i64, end: i64, rules: Rules) -> bool {
    let bounds = [start, end].map(|at| number(&bound::interpolated(values, time(at * UNIT), rules)));
    let all: Vec<f64> = values.iter().map(number).chain(bounds).flatten().collect();
    all.iter().enumerate().any(|(at, one)| all[..at].iter().any(|other| one != other && close(*one, *other)))
}

/// Values at whole milliseconds, with all mixtures of qualities.
fn values() -> impl Strategy<Value = Vec<HistoryValue>> {
    let other = StatusCode::BAD_SENSOR_FAILURE;
    let status = prop_oneof![6 => Just(GOOD), 2 => Just(BAD), 1 => Just(other), 2 => Just(UNCERTAIN)];
    prop::collection::btree_map(0i64..60, (-3i32..4, status), 0..14).prop_map(|all| {
        all.into_iter().map(|(at, (number, status))| value(at * UNIT, f64::from(number), status)).collect()
    })
}

fn configurations() -> impl Strategy<Value = Configuration> {
    let percents =
        prop_oneof![3 => Just((100, 100)), 1 => Just((50, 50)), 1 => Just((0, 100)), 1 => Just((40, 70))];
    (any::<bool>(), percents, any::<bool>()).prop_map(|(strict, (bad, good), slope)| Configuration {
        treat_uncertain_as_bad: strict,
        percent_data_bad: bad,
        percent_data_good: good,
        use_sloped_extrapolation: slope,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]
    #[test]
    fn aggregates_equal_a_naive_implementation(
        values in values(),
        start in 0i64..60,
        len in 1i64..40,
        reverse: bool,
        stepped: bool,
        configuration in configurations(),
    ) {
        let rules = Rules::new(stepped, configuration);
        let (start, end) = if reverse { (start + len, start) } else { (start, start + len) };
        let interval = interval(&values, start * UNIT, end * UNIT, rules);
        let naive = Naive { values: &values, rules, start, end, annotations: 3, origin: time(0) };
        for aggregate in Aggregate::ALL.iter().copied().filter(|aggregate| *aggregate != Aggregate::Interpolative) {
            let result = compute(aggregate, &interval);
            let (number, status, at) = naive.expected(aggregate);
            let number = number.filter(|_| !result.status.is_bad());
            // If bounding values nearly equal others, whether the extreme occurs several times depends on the last bit.
            let is_tie = (result.status.0 ^ status.0) == bits::MULTI_VALUE && has_near_tie(&values, start, end, rules);
            prop_assert!(is_tie || result.status == status, "{:?}: {:?}, not {:?}", aggregate, result, status);
            match (number, shown(&result.value)) {
                (Some(expected), Some(found)) => {
                    prop_assert!(close(expected, found), "{:?}: {} is not {}", aggregate, found, expected);
                }
                (expected, found) => prop_assert_eq!(expected, found, "{:?}", aggregate),
            }
            // Millisecond 0 has no predecessor.
            if at >= 0 {
                prop_assert_eq!(result.source, time(at * UNIT), "{:?}", aggregate);
            }
        }
    }

    #[test]
    fn interpolated_values_lie_between_their_neighbours(values in values(), at in 0i64..65, strict: bool) {
        let rules = rules(false, strict);
        let at = at * UNIT;
        let result = bound::interpolated(&values, time(at), rules);
        let usable: Vec<_> = values.iter().filter(|value| rules.configuration.is_usable(value.status)).collect();
        let before = usable.iter().rfind(|value| value.source <= time(at));
        let after = usable.iter().find(|value| value.source >= time(at));
        match (before, after, number(&result)) {
            (None, _, number) => prop_assert_eq!(number, None),
            (Some(before), None, found) => prop_assert_eq!(found, number(before)),
            (Some(before), Some(after), found) => {
                let (low, high) = (number(before).unwrap(), number(after).unwrap());
                let found = found.unwrap();
                prop_assert!(low.min(high) - 1e-9 <= found && found <= low.max(high) + 1e-9);
            }
        }
    }
}

#[test]
fn all_37_aggregates_exist() {
    assert_eq!(Aggregate::ALL.len(), 37);
    for aggregate in Aggregate::ALL {
        assert_eq!(Aggregate::from_id(aggregate.id()), Some(*aggregate));
        assert_eq!(Aggregate::from_name(&aggregate.name().to_lowercase()), Some(*aggregate));
        let node = taktwerk_schema::ns0::Ns0::get().node(aggregate.id()).unwrap();
        assert_eq!(node.browse_name(), aggregate.name());
    }
}

/// A line from 10 at second 0 to 50 at second 40, with a bad value at 20.
fn line() -> Vec<HistoryValue> {
    let second = 10_000_000;
    vec![
        value(0, 10.0, GOOD),
        value(10 * second, 20.0, GOOD),
        value(20 * second, 99.0, BAD),
        value(30 * second, 40.0, GOOD),
        value(40 * second, 50.0, GOOD),
    ]
}

#[test]
fn a_line_with_a_bad_value() {
    let second = 10_000_000;
    let values = line();
    let sloped = rules(false, true);
    let make = |aggregate, from: i64, to: i64, rules| {
        let result = compute(aggregate, &interval(&values, from * second, to * second, rules));
        (number(&result), result.status.code(), result.status.0 & 0x1f)
    };
    let sub_normal = StatusCode::UNCERTAIN_DATA_SUB_NORMAL;
    assert_eq!(make(Aggregate::Interpolative, 5, 10, sloped), (Some(15.0), GOOD, 2));
    assert_eq!(make(Aggregate::Interpolative, 25, 30, sloped), (Some(35.0), sub_normal, 2));
    assert_eq!(make(Aggregate::Interpolative, 10, 20, sloped), (Some(20.0), GOOD, 0));
    assert_eq!(make(Aggregate::TimeAverage, 0, 10, sloped), (Some(15.0), GOOD, 1));
    assert_eq!(make(Aggregate::TimeAverage, 0, 40, sloped), (Some(30.0), sub_normal, 1));
    assert_eq!(make(Aggregate::Total, 0, 10, sloped), (Some(150.0), GOOD, 1));
    let stepped = rules(true, true);
    assert_eq!(make(Aggregate::TimeAverage2, 0, 20, stepped), (Some(15.0), GOOD, 1));
    // Ten of twenty seconds are bad.
    assert_eq!(make(Aggregate::TimeAverage2, 10, 30, stepped), (Some(20.0), sub_normal, 1));
    assert_eq!(make(Aggregate::DurationBad, 10, 30, stepped), (Some(10_000.0), GOOD, 1));
    assert_eq!(make(Aggregate::PercentGood, 10, 30, stepped), (Some(50.0), GOOD, 1));
    assert_eq!(make(Aggregate::Minimum2, 5, 10, sloped), (Some(15.0), GOOD, 2));
    assert_eq!(make(Aggregate::Maximum2, 5, 8, sloped), (Some(18.0), GOOD, 2));
    assert_eq!(make(Aggregate::DeltaBounds, 5, 8, sloped), (Some(3.0), GOOD, 1));
    assert_eq!(make(Aggregate::StartBound, 25, 30, sloped), (None, StatusCode::BAD_NO_DATA, 0));
    assert_eq!(make(Aggregate::NumberOfTransitions, 5, 40, sloped), (Some(2.0), sub_normal, 1));
    let worst = compute(Aggregate::WorstQuality, &interval(&values, 0, 40 * second, sloped));
    assert_eq!(worst.value, Variant::StatusCode(BAD));
    // After the last value.
    assert_eq!(make(Aggregate::Interpolative, 45, 50, sloped), (Some(50.0), sub_normal, 2));
    let slope = Configuration { use_sloped_extrapolation: true, ..Configuration::default() };
    assert_eq!(make(Aggregate::Interpolative, 45, 50, Rules::new(false, slope)), (Some(55.0), sub_normal, 2));
}

#[test]
fn contradictory_configurations_are_refused() {
    let wanted = |good, bad| AggregateConfiguration {
        percent_data_good: good,
        percent_data_bad: bad,
        ..AggregateConfiguration::default()
    };
    let default = Configuration::default();
    assert!(Configuration::requested(&wanted(60, 40), default).is_ok());
    for (good, bad) in [(50, 40), (101, 0), (0, 101)] {
        let refused = Configuration::requested(&wanted(good, bad), default).unwrap_err();
        assert_eq!(refused, StatusCode::BAD_AGGREGATE_CONFIGURATION_REJECTED);
    }
    let server = AggregateConfiguration { use_server_capabilities_defaults: true, ..wanted(200, 0) };
    assert_eq!(Configuration::requested(&server, default), Ok(default));
}
