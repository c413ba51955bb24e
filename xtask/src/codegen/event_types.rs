//! Typed events of namespace 0, for the library.

use super::output::Output;
use crate::Failure;
use taktwerk_nodeset::NodeSet;
use taktwerk_nodeset::event_types::EventTypes;

const UA: &str = "http://opcfoundation.org/UA/";

/// Condition types with typed events: those with instances in applications. The others have hardly any fields of their
/// own.
const CONDITIONS: [&str; 16] = [
    "ConditionType",
    "DialogConditionType",
    "AcknowledgeableConditionType",
    "AlarmConditionType",
    "LimitAlarmType",
    "ExclusiveLimitAlarmType",
    "NonExclusiveLimitAlarmType",
    "ExclusiveLevelAlarmType",
    "ExclusiveDeviationAlarmType",
    "ExclusiveRateOfChangeAlarmType",
    "NonExclusiveLevelAlarmType",
    "NonExclusiveDeviationAlarmType",
    "NonExclusiveRateOfChangeAlarmType",
    "OffNormalAlarmType",
    "DiscrepancyAlarmType",
    "CertificateExpirationAlarmType",
];

pub(super) fn generate(set: &NodeSet, output: &mut Output) -> Result<(), Failure> {
    let mut types = EventTypes::new();
    types.add(set);
    let source = types
        .generate_some(UA, |name| name.ends_with("EventType") || CONDITIONS.contains(&name))
        .map_err(|error| error.to_string())?;
    let text = format!("//! Event types of namespace 0.\n\n{source}");
    output.rust("crates/taktwerk/src/event/standard.rs", text);
    Ok(())
}
