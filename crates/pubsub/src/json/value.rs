//! Decodes field values in any encoding.

use taktwerk_types::json::{Json, JsonContext, JsonDecode, JsonError, variant_from_json};
use taktwerk_types::{BuiltInType, DataValue, Variant};

/// Decodes a field with its type, if the metadata has it.
pub(crate) fn value(
    kind: Option<BuiltInType>,
    json: &Json<'_>,
    context: &JsonContext<'_>,
) -> Result<DataValue, JsonError> {
    let has = |name: &str| json.get(name).is_some();
    if has("UaType") {
        let mut value = DataValue::decode_json(json, context)?;
        // A StatusCode with its type instead of another type is the status of the field.
        if let Some(Variant::StatusCode(status)) = value.value
            && kind != Some(BuiltInType::StatusCode)
        {
            value.value = None;
            value.status = Some(status);
        }
        return Ok(value);
    }
    if has("Type") && has("Body") {
        let number = u8::decode_json(json.get("Type").unwrap_or(&Json::Null), context)?;
        let kind = BuiltInType::from_number(number).ok_or(JsonError::Expected("Type from 1 to 25"))?;
        return Ok(DataValue::new(variant_from_json(
            kind,
            json.get("Body").unwrap_or(&Json::Null),
            context,
        )?));
    }
    let is_structure = matches!(kind, Some(BuiltInType::ExtensionObject | BuiltInType::LocalizedText));
    let is_data_value = !is_structure
        && kind != Some(BuiltInType::StatusCode)
        && json.as_object().is_some_and(|members| {
            members.iter().all(|(name, _)| {
                matches!(
                    &**name,
                    "Value"
                        | "Status"
                        | "SourceTimestamp"
                        | "ServerTimestamp"
                        | "SourcePicoseconds"
                        | "ServerPicoseconds"
                        | "Dimensions"
                )
            })
        });
    if is_data_value {
        let inner = json.get("Value").map(|inner| value(kind, inner, context)).transpose()?;
        let mut rest = DataValue::decode_json(json, context)?;
        rest.value = inner.and_then(|inner| inner.value);
        return Ok(rest);
    }
    let variant = match kind {
        // A field of unknown type, in an encoding without types.
        Some(BuiltInType::Variant) | None => guess(json),
        Some(kind) => variant_from_json(kind, json, context)?,
    };
    Ok(DataValue { value: Some(variant).filter(|value| !value.is_empty()), ..DataValue::default() })
}

/// A value of unknown type: derived from the JSON type.
fn guess(json: &Json<'_>) -> Variant {
    match json {
        Json::Null => Variant::Empty,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.parse::<i64>() {
            Ok(value) => value.into(),
            Err(_) => number.parse::<f64>().unwrap_or(f64::NAN).into(),
        },
        Json::String(text) => (&**text).into(),
        Json::Array(values) => values.iter().map(guess).collect::<Vec<_>>().into(),
        // The members of an object are kept as text, which preserves names and order.
        Json::Object(members) => {
            let names = members.iter().map(|(name, value)| vec![Variant::from(&**name), guess(value)]);
            names.flatten().collect::<Vec<_>>().into()
        }
    }
}
