//! Rust types of values.

use super::EventTypesError;
use super::model::{Id, Model};

const STRUCTURE: u32 = 22;
const ENUMERATION: u32 = 29;
const OPTION_SET: u32 = 12755;
const UNION: u32 = 12756;

/// The Rust type for a DataType and ValueRank: Variant for abstract types and for values that can be scalar or array,
/// ExtensionObject for structures of other namespaces.
pub(super) fn rust(model: &Model, data_type: &Id, rank: i32, of: &str) -> Result<String, EventTypesError> {
    let ancestors = model.ancestors(data_type).map_err(|error| match error {
        EventTypesError::Missing { id, uri, .. } => EventTypesError::Missing { of: of.to_owned(), id, uri },
        other => other,
    })?;
    let scalar = scalar(model, data_type, &ancestors)?;
    Ok(match rank {
        -1 => scalar,
        1 => format!("Vec<{scalar}>"),
        _ => VARIANT.to_owned(),
    })
}

const VARIANT: &str = "taktwerk::Variant";

fn scalar(model: &Model, data_type: &Id, ancestors: &[Id]) -> Result<String, EventTypesError> {
    let numbers = || ancestors.iter().filter_map(Id::number);
    let is_a = |number: u32| numbers().any(|ancestor| ancestor == number);
    if is_a(STRUCTURE) {
        let entry = model.get(data_type, "a field")?;
        let is_typed = data_type.number().is_some_and(|number| number != STRUCTURE)
            && !entry.is_abstract
            && !is_a(OPTION_SET)
            && !is_a(UNION)
            && entry.name.1.starts_with(|first: char| first.is_ascii_alphabetic());
        return Ok(if is_typed {
            format!("taktwerk::Struct<taktwerk::schema::{}>", entry.name.1)
        } else {
            "taktwerk::types::ExtensionObject".to_owned()
        });
    }
    let built_in = numbers().find_map(|number| {
        Some(match number {
            1 => "bool",
            2 => "i8",
            3 => "u8",
            4 => "i16",
            5 => "u16",
            6 | ENUMERATION => "i32",
            7 => "u32",
            8 => "i64",
            9 => "u64",
            10 => "f32",
            11 => "f64",
            12 => "String",
            13 => "taktwerk::UtcTime",
            14 => "taktwerk::types::Guid",
            15 => "taktwerk::types::ByteString",
            16 => "taktwerk::types::XmlElement",
            17 => "taktwerk::NodeId",
            18 => "taktwerk::types::ExpandedNodeId",
            19 => "taktwerk::StatusCode",
            20 => "taktwerk::QualifiedName",
            21 => "taktwerk::LocalizedText",
            _ => return None,
        })
    });
    Ok(built_in.unwrap_or(VARIANT).to_owned())
}
