//! Fields that the types of events and alarms of the other server add to those of namespace 0, and fields of the standard
//! types of alarms: which there are, how they are asked for, and what their values are here.

use super::translation::Translation;
use crate::plant::Plant;
use taktwerk_client::EventQuery;
use taktwerk_schema::ids::object_type_ids as types;
use taktwerk_server::FieldName;
use taktwerk_types::{Encode, NodeId, QualifiedName, Variant};

/// Fields of own types of events, and of alarms, that are passed on.
const OWN_MAX: usize = 200;
/// The longest value of a field that an alarm keeps, in bytes.
const VALUE_LEN_MAX: usize = 16 << 10;

/// What AlarmConditionType has not, and its standard subtypes have (Part 9 §5.8.18 to §5.8.25). Fields that are NodeIds of the
/// other server mean nothing here.
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

/// A field that a type of events of the other server declares.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OwnField {
    /// The type and the path there.
    there: (NodeId, Vec<QualifiedName>),
    /// The path here.
    pub(super) name: FieldName,
}

/// The fields of the types that a source uses.
#[derive(Debug, Default, Clone)]
pub(super) struct OwnFields {
    /// Those of events that are no conditions.
    pub(super) events: Vec<OwnField>,
    /// Those of alarms.
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

/// The fields of the standard types of alarms.
pub(super) fn standard() -> Vec<OwnField> {
    let field = |kind: u32, path: &str| {
        let name = FieldName::from(path);
        OwnField { there: (NodeId::numeric(0, kind), name.path().to_vec()), name }
    };
    STANDARD.iter().flat_map(|(kind, paths)| paths.iter().map(|path| field(*kind, path))).collect()
}

/// Selects fields behind what a query has.
pub(super) fn select(query: EventQuery, own: &[OwnField]) -> EventQuery {
    own.iter().fold(query, |query, field| query.select_of(&field.there.0, field.there.1.clone()))
}

/// The values of fields as they are here, for a type here. What means something on the other server only is null, as is
/// what an alarm cannot keep.
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

/// About how many bytes a value is kept in.
pub(super) fn len(value: &Variant) -> usize {
    value.encode_to_vec().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_fields_are_those_of_their_types_and_not_of_alarms_in_general() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        for field in standard() {
            let declared = |kind: &NodeId| server.space().event_field(kind, &field.name).is_some();
            assert!(declared(&field.there.0) && !declared(&ALARM), "{field:?}");
        }
    }
}
