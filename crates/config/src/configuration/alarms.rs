//! `[alarms]`: alarms of variables, and the file for their states.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// Alarms.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlarmsSection {
    /// The file that stores states over a restart. Without it, states are lost.
    pub file: Option<PathBuf>,
    /// The interval in minutes for the rates of AlarmMetrics in the Server Object. Default: alarms are not counted.
    pub metrics_minutes: Option<u16>,
    /// How long before a server certificate expires its alarm becomes active, in milliseconds; 0 disables the alarm.
    /// Default: two weeks.
    pub certificate_expires_before: Option<f64>,
    /// The interval in milliseconds in which the trust list must be updated; otherwise an alarm becomes active.
    /// Default: no alarm.
    pub trust_list_update: Option<f64>,
    /// `[[alarms.alarm]]`
    pub alarm: Vec<AlarmSection>,
    /// `[[alarms.group]]`
    pub group: Vec<AlarmGroupSection>,
}

/// A group of alarms.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmGroupSection {
    /// The name.
    pub name: Spanned<String>,
    /// Its alarms: `nsu=urn:plant;s=Boiler/Temperature/LevelAlarm`. Groups that suppress may also contain Boolean
    /// variables.
    pub members: Vec<Spanned<String>>,
    /// Whether the alarms show which of them became active first.
    #[serde(default)]
    pub first_in_group: bool,
    /// The alarms that are suppressed while a member is active.
    #[serde(default)]
    pub suppresses: Vec<Spanned<String>>,
}

/// One alarm. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmSection {
    /// The monitored variable: `nsu=urn:plant;s=Boiler/Temperature` or `ns=2;…`.
    pub variable: Spanned<String>,
    /// ConditionName. Default: the kind of alarm, such as LevelAlarm.
    pub name: Option<String>,
    /// Its ObjectType, for example of an imported NodeSet. It must be a subtype of the default type.
    #[serde(rename = "type")]
    pub own_type: Option<Spanned<String>>,
    /// An alarm instance of an imported NodeSet. It gets the behaviour, and no node is added.
    pub instance: Option<Spanned<String>>,
    /// Values of the fields that its own type adds, by name: `Cause` in the namespace of the type, or
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
    /// How far a value must return inside a limit before the alarm ends.
    #[serde(default)]
    pub deadband: f64,
    /// The limits apply to the distance from this variable (SetpointNode).
    pub setpoint: Option<Spanned<String>>,
    /// The limits are for the change per second.
    #[serde(default)]
    pub rate_of_change: bool,
    /// Instead of limits: the variable that the value must follow (TargetValueNode), with `expected_time` and
    /// `tolerance`.
    pub target: Option<Spanned<String>>,
    /// ExpectedTime: how long the value may be farther from `target` than `tolerance`.
    pub expected_time: Option<f64>,
    /// Tolerance.
    pub tolerance: Option<f64>,
    /// Instead of limits: the value is an expiry time, and the alarm is active from this long before it.
    pub expires_before: Option<f64>,
    /// Instead of limits: the normal value. Any other value raises the alarm.
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
    /// Whether confirmation is required after acknowledgement.
    #[serde(default)]
    pub confirm: bool,
    /// Whether AudibleEnabled is set while the alarm is active and unacknowledged.
    #[serde(default)]
    pub audible: bool,
    /// The sound file that clients play then. It implies `audible`.
    pub sound: Option<PathBuf>,
    /// Whether the alarm stays active until it is reset.
    #[serde(default)]
    pub latching: bool,
    /// Whether unacknowledged states are kept as branches.
    #[serde(default)]
    pub branches: bool,
    /// Whether each limit has its own state.
    #[serde(default)]
    pub non_exclusive: bool,
}

/// A value of a variable or a field, converted to its DataType.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a text in quotation marks, a number, or true or false")]
pub enum FieldValue {
    /// true or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// A string, also for other types: `2026-01-31T12:00:00Z`, `ns=2;s=Pump`, `[1, 2]`.
    Text(String),
}
