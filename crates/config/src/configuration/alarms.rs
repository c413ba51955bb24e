//! `[alarms]`: alarms of variables, and where their states are kept.

use serde::Deserialize;
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
    pub members: Vec<String>,
    /// Whether they say which of them was active first.
    #[serde(default)]
    pub first_in_group: bool,
    /// The alarms that it suppresses as long as a member is active.
    #[serde(default)]
    pub suppresses: Vec<String>,
}

/// One alarm. Spans are in milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmSection {
    /// The variable that is watched: `nsu=urn:plant;s=Boiler/Temperature` or `ns=2;…`.
    pub variable: Spanned<String>,
    /// ConditionName. Default: what it watches, such as LevelAlarm.
    pub name: Option<String>,
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
    /// Instead of limits: the normal value, and any other one raises the alarm.
    pub normal: Option<NormalValue>,
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

/// A normal value: it is compared as the type of the variable.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum NormalValue {
    /// true or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// A text.
    Text(String),
}
