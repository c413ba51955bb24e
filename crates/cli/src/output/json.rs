//! Values as JSON, following Part 6 §5.4: 64-bit integers are strings, and so are numbers that JSON cannot represent.

use serde_json::{Value, json};
use taktwerk_types::node_id::base64;
use taktwerk_types::{
    Array, ArrayValues, DataValue, ExtensionObject, ExtensionObjectBody, StatusCode, Variant,
};

/// A value without its type.
pub(crate) fn variant(value: &Variant) -> Value {
    match value {
        Variant::Empty => Value::Null,
        Variant::Boolean(value) => json!(value),
        Variant::SByte(value) => json!(value),
        Variant::Byte(value) => json!(value),
        Variant::Int16(value) => json!(value),
        Variant::UInt16(value) => json!(value),
        Variant::Int32(value) => json!(value),
        Variant::UInt32(value) => json!(value),
        Variant::Int64(value) => json!(value.to_string()),
        Variant::UInt64(value) => json!(value.to_string()),
        // Via the shortest decimal form: 0.1 must not become 0.10000000149011612.
        Variant::Float(value) => float(value.to_string().parse().unwrap_or(f64::from(*value))),
        Variant::Double(value) => float(*value),
        Variant::String(text) => json!(text.as_deref()),
        Variant::DateTime(time) => json!(time.to_string()),
        Variant::Guid(guid) => json!(guid.to_string()),
        Variant::ByteString(bytes) => json!(bytes.as_deref().map(base64)),
        Variant::XmlElement(xml) => json!(xml.to_string()),
        Variant::NodeId(id) => json!(id.to_string()),
        Variant::ExpandedNodeId(id) => json!(id.to_string()),
        Variant::StatusCode(code) => status(*code),
        Variant::QualifiedName(name) => json!(name.to_string()),
        Variant::LocalizedText(text) => json!({
            "Locale": text.locale.as_deref(),
            "Text": text.text.as_deref(),
        }),
        Variant::ExtensionObject(object) => extension_object(object),
        Variant::DataValue(value) => data_value(value),
        Variant::DiagnosticInfo(info) => json!(format!("{info:?}")),
        Variant::Array(array) => self::array(array),
    }
}

fn float(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(value)
    }
}

fn extension_object(object: &ExtensionObject) -> Value {
    match &object.body {
        ExtensionObjectBody::None => json!({ "TypeId": object.type_id.to_string() }),
        ExtensionObjectBody::Binary(bytes) => json!({
            "TypeId": object.type_id.to_string(),
            "Encoding": 1,
            "Body": bytes.as_deref().map(base64),
        }),
        ExtensionObjectBody::Xml(xml) => json!({
            "TypeId": object.type_id.to_string(),
            "Encoding": 2,
            "Body": xml.to_string(),
        }),
    }
}

fn array(array: &Array) -> Value {
    let elements = elements(&array.values);
    let mut shape = array.dimensions.as_slice();
    let mut rows = elements;
    // From the innermost dimension outwards: each pass groups elements into arrays of one row.
    while let [rest @ .., length] = shape {
        if rest.is_empty() {
            break;
        }
        let length = (*length as usize).max(1);
        rows = rows.chunks(length).map(|row| Value::Array(row.to_vec())).collect();
        shape = rest;
    }
    Value::Array(rows)
}

fn elements(values: &ArrayValues) -> Vec<Value> {
    macro_rules! each {
        ($($kind:ident)*) => {
            match values {
                $(ArrayValues::$kind(values) =>
                    values.iter().map(|value| variant(&Variant::from(value.clone()))).collect(),)*
                ArrayValues::Variant(values) => values.iter().map(variant).collect(),
            }
        };
    }
    each!(
        Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString
        XmlElement NodeId ExpandedNodeId StatusCode QualifiedName LocalizedText ExtensionObject DataValue
        DiagnosticInfo
    )
}

/// A status code as its number and its name.
pub(crate) fn status(code: StatusCode) -> Value {
    json!({ "Code": code.0, "Symbol": code.to_string() })
}

/// A DataValue with its fields; a missing status means Good.
pub(crate) fn data_value(value: &DataValue) -> Value {
    let mut object = serde_json::Map::new();
    if let Some(inner) = &value.value {
        let type_number = inner.built_in_type().map(|kind| kind.number());
        object.insert("Type".into(), json!(type_number));
        object.insert("Value".into(), variant(inner));
        if let Some(array) = inner.as_array().filter(|array| array.dimensions.len() > 1) {
            object.insert("Dimensions".into(), json!(array.dimensions));
        }
    }
    object.insert("StatusCode".into(), status(value.status()));
    if let Some(time) = value.source_timestamp {
        object.insert("SourceTimestamp".into(), json!(time.to_string()));
    }
    if let Some(time) = value.server_timestamp {
        object.insert("ServerTimestamp".into(), json!(time.to_string()));
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{ByteString, LocalizedText};

    #[test]
    fn scalars() {
        for (value, expected) in [
            (Variant::from(0.1f32), json!(0.1)),
            (Variant::from(f64::NAN), json!("NaN")),
            (Variant::from(f64::NEG_INFINITY), json!("-Infinity")),
            (Variant::from(i64::MIN), json!("-9223372036854775808")),
            (Variant::from(ByteString::from(vec![1u8, 2, 3])), json!("AQID")),
            (Variant::from(LocalizedText::new("en", "x")), json!({ "Locale": "en", "Text": "x" })),
            (Variant::from(StatusCode::GOOD), json!({ "Code": 0, "Symbol": "Good" })),
            (Variant::Empty, Value::Null),
        ] {
            assert_eq!(variant(&value), expected);
        }
    }

    #[test]
    fn matrices_nest() {
        let matrix = Variant::matrix((0i32..12).collect::<Vec<_>>(), vec![2, 3, 2]).unwrap();
        assert_eq!(variant(&matrix), json!([[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]));
        let value = data_value(&DataValue::new(matrix));
        assert_eq!(value["Dimensions"], json!([2, 3, 2]));
        assert_eq!(value["Type"], json!(6));
        assert_eq!(variant(&vec![Variant::from(1i32), Variant::from("a")].into()), json!([1, "a"]));
    }
}
