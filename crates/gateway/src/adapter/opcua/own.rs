//! Additional fields: those that the other server's event and alarm types add to namespace 0, and those of the standard alarm
//! types. Determines which exist, selects them, and translates their values.

use super::translation::Translation;
use crate::plant::Plant;
use taktwerk_client::EventQuery;
use taktwerk_schema::ids::object_type_ids as types;
use taktwerk_server::FieldName;
use taktwerk_types::{Encode, NodeId, QualifiedName, Variant};

/// Most additional fields of event types, and of alarm types.
const OWN_MAX: usize = 200;
/// Longest value of an alarm's additional field, in bytes.
const VALUE_LEN_MAX: usize = 16 << 10;

/// The fields that standard subtypes add to AlarmConditionType (Part 9 §5.8.18 to §5.8.25). NodeIds of the other server have no
/// meaning here and are omitted.
const STANDARD: [(u32, &[&str]); 8] = [
    (
        types::LIMIT_ALARM_TYPE,
        &[
            "HighHighLimit",
            "HighLimit",
            "LowLimit",
            "LowLowLimit",
            "HighHighDeadband",
            "HighDeadband",
            "LowDeadband",
            "LowLowDeadband",
        ],
    ),
    (types::EXCLUSIVE_LIMIT_ALARM_TYPE, &["LimitState/CurrentState", "LimitState/CurrentState/Id"]),
    (
        types::NON_EXCLUSIVE_LIMIT_ALARM_TYPE,
        &[
            "HighHighState",
            "HighHighState/Id",
            "HighState",
            "HighState/Id",
            "LowState",
            "LowState/Id",
            "LowLowState",
            "LowLowState/Id",
        ],
    ),
    (types::EXCLUSIVE_RATE_OF_CHANGE_ALARM_TYPE, &["EngineeringUnits"]),
    (types::NON_EXCLUSIVE_RATE_OF_CHANGE_ALARM_TYPE, &["EngineeringUnits"]),
    (types::DISCREPANCY_ALARM_TYPE, &["ExpectedTime", "Tolerance"]),
    (
        types::CERTIFICATE_EXPIRATION_ALARM_TYPE,
        &["ExpirationDate", "ExpirationLimit", "CertificateType", "Certificate"],
    ),
    (types::TRUST_LIST_OUT_OF_DATE_ALARM_TYPE, &["LastUpdateTime", "UpdateFrequency"]),
];

/// A field declared by an event type of the other server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OwnField {
    /// The remote type and path.
    there: (NodeId, Vec<QualifiedName>),
    /// The local path.
    pub(super) name: FieldName,
}

/// The additional fields of a source's types.
#[derive(Debug, Default, Clone)]
pub(super) struct OwnFields {
    /// Fields of events that are not conditions.
    pub(super) events: Vec<OwnField>,
    /// Fields of alarms.
    pub(super) alarms: Vec<OwnField>,
}

impl OwnFields {
    pub(super) fn of(plant: &Plant, source: &str, translation: &Translation) -> Self {
        let mut own = Self::default();
        for (kind, path) in plant.catalogue().members(source) {
            let name = FieldName::new(&path);
            // Other ObjectTypes have members, too.
            if plant.space().event_field(&kind, &name).is_none() {
                continue;
            }
            let path: Option<_> = path.iter().map(|name| translation.name_there(name)).collect();
            let Some(there) = translation.there(&kind).zip(path) else { continue };
            let is_alarm = plant.space().is_event_subtype(&kind, &ALARM);
            let list = if is_alarm { &mut own.alarms } else { &mut own.events };
            if list.len() < OWN_MAX {
                list.push(OwnField { there, name });
            }
        }
        own
    }
}

/// AlarmConditionType.
pub(super) const ALARM: NodeId = NodeId::numeric(0, types::ALARM_CONDITION_TYPE);

/// The additional fields of the standard alarm types.
pub(super) fn standard() -> Vec<OwnField> {
    let field = |kind: u32, path: &str| {
        let name = FieldName::from(path);
        OwnField { there: (NodeId::numeric(0, kind), name.path().to_vec()), name }
    };
    STANDARD.iter().flat_map(|(kind, paths)| paths.iter().map(|path| field(*kind, path))).collect()
}

/// Appends fields to the selection of a query.
pub(super) fn select(query: EventQuery, own: &[OwnField]) -> EventQuery {
    own.iter().fold(query, |query, field| query.select_of(&field.there.0, field.there.1.clone()))
}

/// The local values of fields, for a local type. Values that have a meaning only on the other server become null, and so do
/// values that an alarm cannot store.
pub(super) fn values(
    own: &[OwnField],
    values: &[Variant],
    kind: &NodeId,
    (plant, translation): (&Plant, &Translation),
) -> Vec<(FieldName, Variant)> {
    let space = plant.space();
    let pairs = own.iter().zip(values);
    let has = pairs.filter(|(field, _)| space.event_field(kind, &field.name).is_some());
    has.map(|(field, value)| {
        let value = translation.argument_here(value.clone());
        (field.name.clone(), value.filter(|value| len(value) <= VALUE_LEN_MAX).unwrap_or_default())
    })
    .collect()
}

/// Approximate memory of a value in bytes.
pub(super) fn len(value: &Variant) -> usize {
    value.encode_to_vec().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_fields_belong_to_subtypes_of_the_alarm_type() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        for field in standard() {
            let declared = |kind: &NodeId| server.space().event_field(kind, &field.name).is_some();
            assert!(declared(&field.there.0) && !declared(&ALARM), "{field:?}");
        }
    }
}
