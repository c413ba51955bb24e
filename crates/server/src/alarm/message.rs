//! Messages of alarm events for operators.

use super::condition::ConditionSpec;
use super::detector::{Kind, Quantity};
use super::machine::Finding;
use taktwerk_types::Variant;

/// Longest text of a value in a message.
const VALUE_LEN_MAX: usize = 64;

/// The message for a finding.
pub(crate) fn message(spec: &ConditionSpec, finding: &Finding, value: &Variant) -> String {
    let source = &spec.source_name;
    let value = shown(value);
    if !finding.active {
        return format!("{source}: back to normal ({value})");
    }
    match &spec.kind {
        Kind::Limit { quantity, limits, .. } => {
            let Some(limit) = finding.limits.outermost() else { return format!("{source}: {value}") };
            let at = limits.all().find(|(known, _)| *known == limit).map_or(f64::NAN, |(_, at)| at);
            let name = limit.name();
            match quantity {
                Quantity::Level => format!("{source}: {value} is beyond the {name} limit {at}"),
                Quantity::Deviation => {
                    format!("{source}: {value} is off its setpoint, beyond the {name} limit {at}")
                }
                Quantity::RateOfChange => {
                    format!("{source}: {value} changes faster than the {name} limit {at} per second")
                }
            }
        }
        Kind::OffNormal { normal } => format!("{source}: {value} instead of {}", shown(normal)),
        Kind::Discrepancy { .. } => format!("{source}: {value} does not follow its target"),
        Kind::Expiration { .. } if spec.certified.is_some() => {
            format!("{source}: the certificate expires at {value}")
        }
        Kind::Expiration { .. } => format!("{source}: expires at {value}"),
        Kind::OutOfDate { .. } => format!("{source}: was updated last at {value}"),
        Kind::Set | Kind::Acknowledgeable | Kind::Condition => source.to_string(),
    }
}

/// A value as text: numbers have at most four decimal places.
fn shown(value: &Variant) -> String {
    let text = match value {
        Variant::Double(value) => rounded(*value),
        Variant::Float(value) => rounded(f64::from(*value)),
        other => other.to_string(),
    };
    text.chars().take(VALUE_LEN_MAX).collect()
}

fn rounded(value: f64) -> String {
    if value.abs() >= 1e15 || (value != 0.0 && value.abs() < 1e-4) {
        return format!("{value:e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::limits::{LimitSet, Limits};
    use taktwerk_types::{NodeId, StatusCode};

    #[test]
    fn messages_name_the_value_and_the_exceeded_limit() {
        let limits = Limits { high: Some(80.0), high_high: Some(95.5), ..Limits::default() };
        let kind = Kind::Limit { quantity: Quantity::Level, limits, is_exclusive: true };
        let mut spec = ConditionSpec::new(NodeId::numeric(1, 1), "a", NodeId::numeric(1, 2), kind);
        spec.source_name = "Boiler/Temperature".into();
        let finding = |active, limits| Finding { active, limits, severity: 500, quality: StatusCode::GOOD };
        let both = LimitSet::HIGH.with(LimitSet::HIGH_HIGH);
        let text = message(&spec, &finding(true, both), &Variant::from(96.123_456));
        assert_eq!(text, "Boiler/Temperature: 96.1235 is beyond the HighHigh limit 95.5");
        let text = message(&spec, &finding(false, LimitSet::NONE), &Variant::from(75.0));
        assert_eq!(text, "Boiler/Temperature: back to normal (75)");
    }

    #[test]
    fn values_of_any_size_fit() {
        assert_eq!(shown(&Variant::from(1e300)), "1e300");
        assert_eq!(shown(&Variant::from(1e-9)), "1e-9");
        assert_eq!(shown(&Variant::from("x".repeat(1000).as_str())).len(), VALUE_LEN_MAX);
    }
}
