//! Structures of namespace 0 as JSON, by their descriptions.

use taktwerk_schema::description::{self, StructureDescription, StructureKind};
use taktwerk_schema::dynamic::{DynamicStructure, DynamicValue, TypeRegistry};
use taktwerk_types::json::write::{Members, array, plain, string};
use taktwerk_types::json::{Json, JsonContext, JsonError, StructureJson, encode_value, variant_from_json};
use taktwerk_types::{BuiltInType, DecodeLimits, ExtensionObject, NodeId, Structure};

/// Converts the structures of namespace 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standard;

impl StructureJson for Standard {
    fn encode_fields(
        &self,
        object: &ExtensionObject,
        context: &JsonContext<'_>,
        out: &mut Vec<u8>,
    ) -> Option<NodeId> {
        let registry = TypeRegistry::new();
        let value = registry.decode(object, DecodeLimits::DEFAULT).ok()?;
        fields(&value, context, &mut Members::inside(), out);
        Some(value.data_type)
    }

    fn decode_fields(
        &self,
        data_type: &NodeId,
        json: &Json<'_>,
        context: &JsonContext<'_>,
    ) -> Option<Result<ExtensionObject, JsonError>> {
        let known = description::structure(data_type.ns0()?)?;
        Some(read(known, json, context, 0).and_then(|value| {
            TypeRegistry::new().encode(&value).map_err(|error| JsonError::Structure(error.to_string()))
        }))
    }
}

/// Appends a structure of the schema as an object of its fields.
pub fn encode<T: Structure>(value: &T, context: &JsonContext<'_>, out: &mut Vec<u8>) {
    let mut members = Members::open(out);
    if let Ok(value) = TypeRegistry::new().decode(&ExtensionObject::new(value), DecodeLimits::DEFAULT) {
        fields(&value, context, &mut members, out);
    }
    members.close(out);
}

/// Decodes a structure of the schema from an object with its fields.
///
/// # Errors
/// The type of a member differs from the structure's field.
pub fn decode<T: Structure>(json: &Json<'_>, context: &JsonContext<'_>) -> Result<T, JsonError> {
    let data_type = NodeId::numeric(0, T::DATA_TYPE_ID);
    let object = Standard.decode_fields(&data_type, json, context);
    let object = object.ok_or_else(|| JsonError::Structure(format!("{data_type} is not known")))??;
    Ok(object.decode()?)
}

fn fields(value: &DynamicStructure, context: &JsonContext<'_>, members: &mut Members, out: &mut Vec<u8>) {
    use taktwerk_types::Variant;
    use taktwerk_types::json::JsonEncode;
    let known = value.data_type.ns0().and_then(description::structure);
    for (name, field) in &value.fields {
        // A field of any type contains its type; there 0 is a value, not a default.
        let is_any =
            known.is_some_and(|known| known.fields.iter().any(|one| *one.name == **name && is_variant(one)));
        if let (true, DynamicValue::Variant(value)) = (is_any, field) {
            if context.verbose || *value != Variant::Empty {
                members.name(name, out);
                value.encode_json(context, out);
            }
        } else if context.verbose || !is_default(field) {
            members.name(name, out);
            write(field, context, out);
        }
    }
}

/// Whether a field is one Variant.
fn is_variant(field: &description::FieldDescription) -> bool {
    field.value_rank < 0
        && description::built_in_type(field.type_id).unwrap_or(BuiltInType::Variant) == BuiltInType::Variant
}

fn is_default(value: &DynamicValue) -> bool {
    use taktwerk_types::json::JsonEncode;
    use taktwerk_types::{ArrayValues, Variant};
    match value {
        DynamicValue::Enumeration { value, .. } => *value == 0,
        DynamicValue::Structure(value) => value.fields.iter().all(|field| is_default(&field.1)),
        DynamicValue::Array { values, .. } => values.is_empty(),
        DynamicValue::Variant(Variant::Array(array)) => array.values.is_empty(),
        DynamicValue::Variant(Variant::Empty) => true,
        DynamicValue::Variant(value) => {
            match ArrayValues::empty(value.built_in_type().unwrap_or(BuiltInType::Byte)) {
                ArrayValues::ExtensionObject(_) => value.is_json_default(),
                _ => {
                    let mut text = Vec::new();
                    encode_value(value, &JsonContext::default(), &mut text);
                    matches!(
                        &*text,
                        b"null"
                            | b"0"
                            | b"false"
                            | b"\"0\""
                            | b"{}"
                            | b"\"i=0\""
                            | b"\"0001-01-01T00:00:00Z\""
                    ) || text == b"\"00000000-0000-0000-0000-000000000000\""
                }
            }
        }
    }
}

fn write(value: &DynamicValue, context: &JsonContext<'_>, out: &mut Vec<u8>) {
    match value {
        DynamicValue::Variant(value) => encode_value(value, context, out),
        DynamicValue::Enumeration { value, name } => match name {
            Some(name) if context.verbose => string(&format!("{name}_{value}"), out),
            _ => plain(value, out),
        },
        DynamicValue::Structure(value) => {
            let mut members = Members::open(out);
            fields(value, context, &mut members, out);
            members.close(out);
        }
        DynamicValue::Array { values, .. } => array(values, out, |value, out| write(value, context, out)),
    }
}

/// Maximum nesting of structures.
const DEPTH_MAX: usize = 32;

fn read(
    known: &StructureDescription,
    json: &Json<'_>,
    context: &JsonContext<'_>,
    depth: usize,
) -> Result<DynamicStructure, JsonError> {
    if depth >= DEPTH_MAX {
        return Err(JsonError::Limit { what: "nesting of structures", limit: DEPTH_MAX });
    }
    if json.as_object().is_none() && !json.is_null() {
        return Err(JsonError::Expected("the fields of a structure"));
    }
    if matches!(known.kind, StructureKind::Union | StructureKind::UnionWithSubtypedValues) {
        return Err(JsonError::Structure(format!("{} is a union", known.name)));
    }
    let mut value = DynamicStructure::new(NodeId::numeric(0, known.data_type_id), known.name);
    for field in known.fields {
        let Some(member) = json.get(field.name).filter(|member| !member.is_null()) else { continue };
        value = value.with(field.name, read_field(field, member, context, depth)?);
    }
    Ok(value)
}

fn read_field(
    field: &description::FieldDescription,
    json: &Json<'_>,
    context: &JsonContext<'_>,
    depth: usize,
) -> Result<DynamicValue, JsonError> {
    if let Some(known) = description::structure(field.type_id)
        && known.binary_encoding_id != 0
    {
        if field.value_rank < 0 {
            return Ok(DynamicValue::Structure(read(known, json, context, depth + 1)?));
        }
        let elements = json.as_array().ok_or(JsonError::Expected("an array"))?;
        let values: Result<Vec<_>, _> =
            elements.iter().map(|element| read(known, element, context, depth + 1)).collect();
        return Ok(DynamicValue::structures(values?));
    }
    let is_enumeration = description::enumeration(field.type_id).is_some_and(|known| !known.is_option_set);
    if is_enumeration && field.value_rank < 0 {
        let value = match json.as_str() {
            // Verbose: the name, followed by the number.
            Some(text) => text.rsplit('_').next().and_then(|number| number.parse().ok()),
            None => match json {
                Json::Number(number) => number.parse().ok(),
                _ => None,
            },
        };
        let value = value.ok_or(JsonError::Expected("an enumeration value"))?;
        return Ok(DynamicValue::Enumeration { value, name: None });
    }
    let kind = description::built_in_type(field.type_id).unwrap_or(BuiltInType::Variant);
    Ok(DynamicValue::Variant(variant_from_json(kind, json, context)?))
}
