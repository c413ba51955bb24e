//! The alarm of a tag: its settings, and how it is added to the server.

use crate::fields::{Fields, Mistake};
use crate::value::Kind;
use core::time::Duration;
use taktwerk::Variable;
use taktwerk::alarms::{Alarm, AlarmError, Kind as AlarmKind, Limits, Quantity};
use taktwerk_server::authorization::Access;
use taktwerk_types::{BuiltInType, Variant};

/// Settings of an alarm that require a limit or a normal value.
const DETAILS: [&str; 7] = [
    "alarm_deadband",
    "alarm_severity",
    "alarm_on_delay",
    "alarm_off_delay",
    "alarm_confirm",
    "alarm_latching",
    "alarm_name",
];

/// The alarm of a tag.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TagAlarm {
    limits: Limits,
    /// Instead of limits: any other value activates the alarm.
    normal: Option<String>,
    name: Option<String>,
    severity: Option<u16>,
    on_delay: Duration,
    off_delay: Duration,
    confirms: bool,
    latches: bool,
}

impl TagAlarm {
    /// Takes the settings of an alarm; `None` if there are none.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields) -> Result<Option<Self>, Mistake> {
        let limits = Limits {
            high_high: fields.number("alarm_high_high")?,
            high: fields.number("alarm_high")?,
            low: fields.number("alarm_low")?,
            low_low: fields.number("alarm_low_low")?,
            deadband: 0.0,
        };
        let normal = fields.take("alarm_normal").map(|(line, setting)| {
            let hint = "write the normal value, such as false, 0 or \"closed\"";
            let wrong = || fields.mistake_in(line, "alarm_normal", "this is no value", hint);
            setting.as_text().ok_or_else(wrong)
        });
        let normal = normal.transpose()?;
        let has_limits = limits.all().next().is_some();
        if !has_limits && normal.is_none() {
            return match DETAILS.iter().find(|key| fields.has(key)) {
                Some(key) => Err(fields.mistake(
                    format!("{key} is there, and there is no alarm"),
                    "add alarm_high, alarm_low or alarm_normal",
                )),
                None => Ok(None),
            };
        }
        if has_limits && normal.is_some() {
            let problem = "an alarm has limits or a normal value, and not both";
            return Err(fields.mistake(problem, "remove alarm_normal, or the limits"));
        }
        let deadband = fields.number("alarm_deadband")?.unwrap_or(0.0);
        let limits = Limits { deadband, ..limits };
        let kind = AlarmKind::Limit { quantity: Quantity::Level, limits, is_exclusive: true };
        if has_limits && let Err(problem) = kind.check() {
            return Err(
                fields.mistake(format!("alarm: {problem}"), "write limits that rise from low to high")
            );
        }
        Ok(Some(Self {
            limits,
            normal,
            name: fields.text("alarm_name")?,
            severity: fields.integer("alarm_severity", 1, 1000)?.map(|severity| severity as u16),
            on_delay: fields.span("alarm_on_delay")?.unwrap_or_default(),
            off_delay: fields.span("alarm_off_delay")?.unwrap_or_default(),
            confirms: fields.flag("alarm_confirm")?.unwrap_or(false),
            latches: fields.flag("alarm_latching")?.unwrap_or(false),
        }))
    }

    /// Why a variable of this type cannot have the alarm, and how to correct it.
    #[must_use]
    pub fn problem(&self, kind: Kind) -> Option<(String, &'static str)> {
        let element = kind.element;
        if kind.is_array {
            return Some((
                "alarms are for single values, and this is an array".to_owned(),
                "remove the alarm",
            ));
        }
        match &self.normal {
            Some(normal) if value(normal, kind).is_none() => {
                Some((format!("alarm_normal: {normal:?} is no {element}"), "write a value of the tag"))
            }
            None if !kind.is_number() => {
                Some((format!("limits are for numbers, and this is a {element}"), "use alarm_normal"))
            }
            _ => None,
        }
    }

    /// Adds the alarm to the variable of its tag.
    ///
    /// # Errors
    /// The server has an alarm of that name.
    pub fn add(&self, variable: &Variable<Variant>, kind: Kind, access: Access) -> Result<Alarm, AlarmError> {
        let mut builder = variable.alarm().access(access);
        let Limits { high_high, high, low, low_low, deadband } = self.limits;
        builder = match self.normal.as_ref().and_then(|normal| value(normal, kind)) {
            Some(normal) => builder.off_normal(normal),
            None => builder.deadband(deadband),
        };
        builder = high_high.into_iter().fold(builder, |builder, limit| builder.high_high(limit));
        builder = high.into_iter().fold(builder, |builder, limit| builder.high(limit));
        builder = low.into_iter().fold(builder, |builder, limit| builder.low(limit));
        builder = low_low.into_iter().fold(builder, |builder, limit| builder.low_low(limit));
        builder = self.name.iter().fold(builder, |builder, name| builder.name(name));
        builder = self.severity.into_iter().fold(builder, |builder, severity| builder.severity(severity));
        builder = builder.on_delay(self.on_delay).off_delay(self.off_delay);
        builder = if self.confirms { builder.confirm() } else { builder };
        builder = if self.latches { builder.latching() } else { builder };
        builder.add()
    }
}

/// A text as a value of a type.
fn value(text: &str, kind: Kind) -> Option<Variant> {
    let value = match kind.element {
        BuiltInType::Boolean => match text {
            "true" | "1" => Variant::Boolean(true),
            "false" | "0" => Variant::Boolean(false),
            _ => return None,
        },
        BuiltInType::String => Variant::from(text),
        _ => text.parse::<f64>().ok()?.into(),
    };
    kind.coerce(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    fn alarm(text: &str) -> Result<Option<TagAlarm>, Mistake> {
        let text = format!("[[tag]]\n{text}");
        TagAlarm::take(&mut Sections::parse(Path::new("g.toml"), &text).unwrap().tags.remove(0))
    }

    #[test]
    fn an_alarm_has_limits_or_a_normal_value() {
        assert_eq!(alarm("").unwrap(), None);
        let limits = alarm("alarm_high = 80\nalarm_low = 10.5\nalarm_severity = 700\n").unwrap().unwrap();
        assert_eq!(
            (limits.limits.high, limits.limits.low, limits.severity),
            (Some(80.0), Some(10.5), Some(700))
        );
        let normal = alarm("alarm_normal = true\n").unwrap().unwrap();
        let kind = |element| Kind::scalar(element);
        assert_eq!(normal.problem(kind(BuiltInType::Boolean)), None);
        assert!(limits.problem(kind(BuiltInType::String)).is_some());
        assert!(normal.problem(kind(BuiltInType::UInt16)).is_some());
        for (text, said) in [
            ("alarm_severity = 5\n", "alarm_severity is there, and there is no alarm"),
            ("alarm_high = 1\nalarm_normal = 1\n", "and not both"),
            ("alarm_high = 1\nalarm_low = 2\n", "alarm: "),
            ("alarm_high = 1\nalarm_severity = 0\n", "alarm_severity"),
            ("alarm_normal = [1]\n", "this is no value"),
        ] {
            let error = alarm(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
