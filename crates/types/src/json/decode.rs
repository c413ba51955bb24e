//! Converts trees to values. Missing and null members get the type's default (Part 6 §5.4.2.1).

use super::{Json, JsonContext, JsonError};
use crate::node_id::unbase64;
use crate::variant::{element_count, for_element_types};
use crate::{
    Array, ArrayValues, BuiltInType, ByteString, DataValue, DiagnosticInfo, ExpandedNodeId, ExtensionObject,
    ExtensionObjectBody, Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, UtcTime, Variant,
    XmlElement,
};

/// Decodes a value from its JSON.
pub trait JsonDecode: Sized {
    /// Decodes one value.
    ///
    /// # Errors
    /// The JSON is not of this type.
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError>;
}

fn text<'a>(json: &'a Json<'_>, what: &'static str) -> Result<&'a str, JsonError> {
    json.as_str().ok_or(JsonError::Expected(what))
}

impl JsonDecode for bool {
    fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Bool(value) => Ok(*value),
            Json::Null => Ok(false),
            _ => Err(JsonError::Expected("true or false")),
        }
    }
}

/// Integers are numbers or strings of digits; both are accepted for all sizes.
macro_rules! integers {
    ($($type:ty = $what:literal),*) => {$(
        impl JsonDecode for $type {
            fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
                match json {
                    Json::Null => Ok(0),
                    Json::Number(number) => number.parse().map_err(|_| JsonError::Expected($what)),
                    Json::String(number) => number.trim().parse().map_err(|_| JsonError::Expected($what)),
                    _ => Err(JsonError::Expected($what)),
                }
            }
        }
    )*};
}
integers!(
    i8 = "an SByte",
    u8 = "a Byte",
    i16 = "an Int16",
    u16 = "a UInt16",
    i32 = "an Int32",
    u32 = "a UInt32",
    i64 = "an Int64",
    u64 = "a UInt64"
);

macro_rules! reals {
    ($($type:ident),*) => {$(
        impl JsonDecode for $type {
            fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
                match json {
                    Json::Null => Ok(0.0),
                    Json::Number(number) => number.parse().map_err(|_| JsonError::Expected("a number")),
                    Json::String(name) => match &**name {
                        "NaN" => Ok($type::NAN),
                        "Infinity" => Ok($type::INFINITY),
                        "-Infinity" => Ok($type::NEG_INFINITY),
                        _ => Err(JsonError::Expected("a number, NaN, Infinity or -Infinity")),
                    },
                    _ => Err(JsonError::Expected("a number")),
                }
            }
        }
    )*};
}
reals!(f32, f64);

impl JsonDecode for UaString {
    fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Null => Ok(Self::NULL),
            json => Ok(text(json, "a string")?.into()),
        }
    }
}

impl JsonDecode for XmlElement {
    fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Null => Ok(Self::default()),
            json => Ok(text(json, "XML text")?.into()),
        }
    }
}

impl JsonDecode for ByteString {
    fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Null => Ok(Self::NULL),
            json => {
                let bytes = unbase64(text(json, "base64 text")?).ok_or(JsonError::Expected("base64 text"))?;
                Ok(bytes.into())
            }
        }
    }
}

impl JsonDecode for UtcTime {
    fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Null => Ok(Self::NULL),
            json => match text(json, "a DateTime such as 2026-11-21T18:00:00Z")? {
                "0001-01-01T00:00:00Z" => Ok(Self::NULL),
                "9999-12-31T23:59:59Z" => Ok(Self::MAX),
                time => {
                    Self::parse(time).ok_or(JsonError::Expected("a DateTime such as 2026-11-21T18:00:00Z"))
                }
            },
        }
    }
}

impl JsonDecode for Guid {
    fn decode_json(json: &Json<'_>, _: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Null => Ok(Self::NULL),
            json => text(json, "a Guid")?.parse().map_err(|_| JsonError::Expected("a Guid")),
        }
    }
}

/// The index of a namespace URI.
fn index_of(context: &JsonContext<'_>, uri: &str) -> Option<u16> {
    let position = context.namespaces.iter().position(|known| *known == uri)?;
    u16::try_from(position).ok()
}

impl JsonDecode for ExpandedNodeId {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        if json.is_null() {
            return Ok(Self::default());
        }
        let id = text(json, "a NodeId")?;
        if id.is_empty() {
            return Ok(Self::default());
        }
        let mut id: Self = id.parse().map_err(|_| JsonError::Expected("a NodeId"))?;
        if id.server_index == 0
            && let Some(index) = id.namespace_uri.as_deref().and_then(|uri| index_of(context, uri))
        {
            id.namespace_uri = UaString::NULL;
            id.node_id.namespace_index = index;
        }
        Ok(id)
    }
}

impl JsonDecode for NodeId {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        let id = ExpandedNodeId::decode_json(json, context)?;
        id.local().cloned().ok_or(JsonError::Expected("a NodeId of a known namespace"))
    }
}

impl JsonDecode for StatusCode {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Null => Ok(Self::GOOD),
            Json::Number(_) => u32::decode_json(json, context).map(Self),
            Json::Object(_) => field::<u32>(json, "Code", context).map(Self),
            _ => Err(JsonError::Expected("a StatusCode")),
        }
    }
}

impl JsonDecode for QualifiedName {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        if json.is_null() {
            return Ok(Self::default());
        }
        let name = text(json, "a QualifiedName")?;
        let Some((uri, name)) = name.strip_prefix("nsu=").and_then(|rest| rest.split_once(';')) else {
            return Ok(Self::parse(name));
        };
        let uri = uri.replace("%3B", ";").replace("%25", "%");
        let index = index_of(context, &uri);
        Ok(Self::new(index.ok_or(JsonError::Expected("a QualifiedName of a known namespace"))?, name))
    }
}

/// A member of an object, or its default.
fn field<T: JsonDecode>(json: &Json<'_>, name: &str, context: &JsonContext<'_>) -> Result<T, JsonError> {
    T::decode_json(json.get(name).unwrap_or(&Json::Null), context)
}

/// A member of an object, if present.
fn optional<T: JsonDecode>(
    json: &Json<'_>,
    name: &str,
    context: &JsonContext<'_>,
) -> Result<Option<T>, JsonError> {
    json.get(name).filter(|value| !value.is_null()).map(|value| T::decode_json(value, context)).transpose()
}

fn object<'a, 'b>(json: &'a Json<'b>, what: &'static str) -> Result<&'a Json<'b>, JsonError> {
    if json.as_object().is_some() { Ok(json) } else { Err(JsonError::Expected(what)) }
}

impl JsonDecode for LocalizedText {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        match json {
            Json::Null => Ok(Self::default()),
            Json::String(text) => Ok(Self::from_text(&**text)),
            json => {
                let json = object(json, "a LocalizedText")?;
                Ok(Self { locale: field(json, "Locale", context)?, text: field(json, "Text", context)? })
            }
        }
    }
}

impl JsonDecode for ExtensionObject {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        if json.is_null() || json.as_object().is_some_and(<[_]>::is_empty) {
            return Ok(Self::NULL);
        }
        let json = object(json, "an ExtensionObject")?;
        let type_id: NodeId = field(json, "UaTypeId", context)?;
        let body = match field::<u8>(json, "UaEncoding", context)? {
            0 => {
                let known = context
                    .structures
                    .and_then(|structures| structures.decode_fields(&type_id, json, context));
                match known {
                    Some(object) => return object,
                    // Without fields nothing is lost.
                    None if json.as_object().is_some_and(|members| members.len() == 1) => {
                        ExtensionObjectBody::None
                    }
                    None => return Err(JsonError::Structure(format!("no definition of {type_id} is known"))),
                }
            }
            1 => ExtensionObjectBody::Binary(field(json, "UaBody", context)?),
            2 => ExtensionObjectBody::Xml(field(json, "UaBody", context)?),
            _ => return Err(JsonError::Expected("UaEncoding 0, 1 or 2")),
        };
        Ok(Self { type_id, body })
    }
}

impl JsonDecode for DiagnosticInfo {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        if json.is_null() {
            return Ok(Self::default());
        }
        let json = object(json, "a DiagnosticInfo")?;
        Ok(Self {
            symbolic_id: optional(json, "SymbolicId", context)?,
            namespace_uri: optional(json, "NamespaceUri", context)?,
            locale: optional(json, "Locale", context)?,
            localized_text: optional(json, "LocalizedText", context)?,
            additional_info: optional(json, "AdditionalInfo", context)?,
            inner_status_code: optional(json, "InnerStatusCode", context)?,
            inner_diagnostic_info: optional::<Self>(json, "InnerDiagnosticInfo", context)?.map(Box::new),
        })
    }
}

impl JsonDecode for Variant {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        if json.is_null() {
            return Ok(Self::Empty);
        }
        variant_members(object(json, "a Variant")?, context)
    }
}

fn variant_members(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Variant, JsonError> {
    let number: u8 = field(json, "UaType", context)?;
    if number == 0 {
        return Ok(Variant::Empty);
    }
    let kind = BuiltInType::from_number(number).ok_or(JsonError::Expected("UaType from 1 to 25"))?;
    let value = json.get("Value").unwrap_or(&Json::Null);
    let Some(dimensions) = json.get("Dimensions").filter(|dimensions| !dimensions.is_null()) else {
        return variant_from_json(kind, value, context);
    };
    let lengths = dimensions.as_array().ok_or(JsonError::Expected("Dimensions as an array"))?;
    let lengths: Vec<u32> =
        lengths.iter().map(|length| u32::decode_json(length, context)).collect::<Result<_, _>>()?;
    let elements = value.as_array().ok_or(JsonError::Expected("an array for a matrix"))?;
    let values = array_from_json(kind, elements, context)?;
    if element_count(&lengths) != Some(values.len()) {
        return Err(JsonError::Expected("Dimensions whose product is the number of elements"));
    }
    let dimensions = if lengths.len() > 1 { lengths } else { Vec::new() };
    Ok(Variant::Array(Box::new(Array { values, dimensions })))
}

/// A value of a known type: an array if the JSON is one.
///
/// # Errors
/// The JSON is not of this type.
pub fn variant_from_json(
    kind: BuiltInType,
    json: &Json<'_>,
    context: &JsonContext<'_>,
) -> Result<Variant, JsonError> {
    if let Some(elements) = json.as_array() {
        let values = array_from_json(kind, elements, context)?;
        return Ok(Variant::Array(Box::new(Array { values, dimensions: Vec::new() })));
    }
    // Recursive types have their own branch: the general function's stack frame is large without optimization.
    match kind {
        BuiltInType::DataValue => DataValue::decode_json(json, context).map(Variant::from),
        // A Variant contains Variants only in arrays.
        BuiltInType::Variant => Variant::decode_json(json, context),
        BuiltInType::DiagnosticInfo => DiagnosticInfo::decode_json(json, context).map(Variant::from),
        _ => scalar(kind, json, context),
    }
}

fn scalar(kind: BuiltInType, json: &Json<'_>, context: &JsonContext<'_>) -> Result<Variant, JsonError> {
    Ok(match kind {
        BuiltInType::Boolean => bool::decode_json(json, context)?.into(),
        BuiltInType::SByte => i8::decode_json(json, context)?.into(),
        BuiltInType::Byte => u8::decode_json(json, context)?.into(),
        BuiltInType::Int16 => i16::decode_json(json, context)?.into(),
        BuiltInType::UInt16 => u16::decode_json(json, context)?.into(),
        BuiltInType::Int32 => i32::decode_json(json, context)?.into(),
        BuiltInType::UInt32 => u32::decode_json(json, context)?.into(),
        BuiltInType::Int64 => i64::decode_json(json, context)?.into(),
        BuiltInType::UInt64 => u64::decode_json(json, context)?.into(),
        BuiltInType::Float => f32::decode_json(json, context)?.into(),
        BuiltInType::Double => f64::decode_json(json, context)?.into(),
        BuiltInType::String => UaString::decode_json(json, context)?.into(),
        BuiltInType::DateTime => UtcTime::decode_json(json, context)?.into(),
        BuiltInType::Guid => Guid::decode_json(json, context)?.into(),
        BuiltInType::ByteString => ByteString::decode_json(json, context)?.into(),
        BuiltInType::XmlElement => XmlElement::decode_json(json, context)?.into(),
        BuiltInType::NodeId => NodeId::decode_json(json, context)?.into(),
        BuiltInType::ExpandedNodeId => ExpandedNodeId::decode_json(json, context)?.into(),
        BuiltInType::StatusCode => StatusCode::decode_json(json, context)?.into(),
        BuiltInType::QualifiedName => QualifiedName::decode_json(json, context)?.into(),
        BuiltInType::LocalizedText => LocalizedText::decode_json(json, context)?.into(),
        BuiltInType::ExtensionObject => ExtensionObject::decode_json(json, context)?.into(),
        BuiltInType::DataValue | BuiltInType::Variant | BuiltInType::DiagnosticInfo => {
            return Err(JsonError::Expected("a scalar"));
        }
    })
}

fn elements_from_json<T: JsonDecode>(
    elements: &[Json<'_>],
    context: &JsonContext<'_>,
) -> Result<Vec<T>, JsonError> {
    let mut values = Vec::with_capacity(elements.len());
    for element in elements {
        values.push(T::decode_json(element, context)?);
    }
    Ok(values)
}

/// The elements of an array of a known type.
///
/// # Errors
/// An element is not of this type.
pub fn array_from_json(
    kind: BuiltInType,
    elements: &[Json<'_>],
    context: &JsonContext<'_>,
) -> Result<ArrayValues, JsonError> {
    match kind {
        BuiltInType::Variant => elements_from_json(elements, context).map(ArrayValues::Variant),
        BuiltInType::DataValue => elements_from_json(elements, context).map(ArrayValues::DataValue),
        _ => plain_array_from_json(kind, elements, context),
    }
}

macro_rules! array_elements {
    ($($name:ident($type:ty)),*) => {
        fn plain_array_from_json(
            kind: BuiltInType,
            elements: &[Json<'_>],
            context: &JsonContext<'_>,
        ) -> Result<ArrayValues, JsonError> {
            Ok(match kind {
                $(BuiltInType::$name => {
                    ArrayValues::$name(elements_from_json::<$type>(elements, context)?)
                })*
            })
        }
    };
}
for_element_types!(array_elements);

impl JsonDecode for DataValue {
    fn decode_json(json: &Json<'_>, context: &JsonContext<'_>) -> Result<Self, JsonError> {
        if json.is_null() {
            return Ok(Self::default());
        }
        let json = object(json, "a DataValue")?;
        let value = variant_members(json, context)?;
        Ok(Self {
            value: Some(value).filter(|value| !value.is_empty()),
            status: optional(json, "Status", context)?,
            source_timestamp: optional(json, "SourceTimestamp", context)?,
            server_timestamp: optional(json, "ServerTimestamp", context)?,
            source_picoseconds: optional(json, "SourcePicoseconds", context)?,
            server_picoseconds: optional(json, "ServerPicoseconds", context)?,
        })
    }
}
