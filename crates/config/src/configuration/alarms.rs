//! `[alarms]`: alarms of variables, and where their states are kept.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// Alarms.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlarmsSection {
    /// The file that keeps states over a restart; without it alarms begin anew.
    pub file: Option<PathBuf>,
    /// Counts alarms in AlarmMetrics of the Server Object; rates are alarms per so many minutes.
    pub metrics_minutes: Option<u16>,
    /// How long before a certificate of the server expires its alarm becomes active, in milliseconds; 0: there is no such
    /// alarm. Default: two weeks.
    pub certificate_expires_before: Option<f64>,
    /// How often the trust list has to be updated, in milliseconds: an alarm becomes active if it was not. Default: there is
    /// no such alarm.
    pub trust_list_update: Option<f64>,
    /// `[[alarms.alarm]]`
    pub alarm: Vec<AlarmSection>,
    /// `[[alarms.group]]`
    pub group: Vec<AlarmGroupSection>,
}

/// Alarms that belong together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmGroupSection {
    /// What it is called.
    pub name: Spanned<String>,
    /// Its alarms: `nsu=urn:plant;s=Boiler/Temperature/LevelAlarm`. Groups that suppress may also have variables that are true
    /// or false.
    pub members: Vec<Spanned<String>>,
    /// Whether they say which of them was active first.
    #[serde(default)]
    pub first_in_group: bool,
    /// The alarms that it suppresses as long as a member is active.
    #[serde(default)]
    pub suppresses: Vec<Spanned<String>>,
}

/// One alarm. Spans are in milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmSection {
    /// The variable that is watched: `nsu=urn:plant;s=Boiler/Temperature` or `ns=2;…`.
    pub variable: Spanned<String>,
    /// ConditionName. Default: what it watches, such as LevelAlarm.
    pub name: Option<String>,
    /// Its ObjectType, such as one of an imported NodeSet: a subtype of the type that it would have without this.
    #[serde(rename = "type")]
    pub own_type: Option<Spanned<String>>,
    /// An instance of a type of alarms that an imported NodeSet has: it gets the behaviour, and no other node is added.
    pub instance: Option<Spanned<String>>,
    /// Values of the fields that its own type adds, by their names: `Cause` of the namespace of the type, or
    /// `nsu=urn:plant;Cause`.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldValue>,
    /// HighHighLimit.
    pub high_high: Option<f64>,
    /// HighLimit.
    pub high: Option<f64>,
    /// LowLimit.
    pub low: Option<f64>,
    /// LowLowLimit.
    pub low_low: Option<f64>,
    /// How far a value must come back behind a limit.
    #[serde(default)]
    pub deadband: f64,
    /// The limits are for the distance from this variable (SetpointNode).
    pub setpoint: Option<Spanned<String>>,
    /// The limits are for the change per second.
    #[serde(default)]
    pub rate_of_change: bool,
    /// Instead of limits: the variable that the value has to follow (TargetValueNode), with `expected_time` and `tolerance`.
    pub target: Option<Spanned<String>>,
    /// ExpectedTime: how long the value may be farther from `target` than `tolerance`.
    pub expected_time: Option<f64>,
    /// Tolerance.
    pub tolerance: Option<f64>,
    /// Instead of limits: the value is a time at which something expires, and the alarm is active from so long before on.
    pub expires_before: Option<f64>,
    /// Instead of limits: the normal value, and any other one raises the alarm.
    pub normal: Option<FieldValue>,
    /// Severity, 1 to 1000. Default: 500.
    pub severity: Option<u16>,
    /// Severity beyond high_high and low_low. Default: 800.
    pub outer_severity: Option<u16>,
    /// OnDelay.
    #[serde(default)]
    pub on_delay: f64,
    /// OffDelay.
    #[serde(default)]
    pub off_delay: f64,
    /// ReAlarmTime; 0 never.
    #[serde(default)]
    pub re_alarm: f64,
    /// MaxTimeShelved; 0 is no limit.
    #[serde(default)]
    pub max_shelving: f64,
    /// Whether it has to be confirmed too.
    #[serde(default)]
    pub confirm: bool,
    /// Whether it can be heard while it is active and unacknowledged.
    #[serde(default)]
    pub audible: bool,
    /// The file with the sound that clients play then; it is audible without `audible`.
    pub sound: Option<PathBuf>,
    /// Whether it stays until it is reset.
    #[serde(default)]
    pub latching: bool,
    /// Whether states that were not acknowledged are kept as branches.
    #[serde(default)]
    pub branches: bool,
    /// Whether each limit is shown by itself.
    #[serde(default)]
    pub non_exclusive: bool,
}

/// A value of a variable or a field, read as its DataType says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a text in quotation marks, a number, or true or false")]
pub enum FieldValue {
    /// true or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// A text, also of other types: `2026-01-31T12:00:00Z`, `ns=2;s=Pump`, `[1, 2]`.
    Text(String),
}
