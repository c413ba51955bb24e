//! Values of data types that a server defines itself (Part 6 §5.2.2.15, Part 3 §8.48). The session reads their
//! definitions.

use crate::failure::Failure;
use crate::output;
use crate::value;
use serde_json::{Map, Value, json};
use taktwerk_client::TypeReader;
use taktwerk_schema::description;
use taktwerk_schema::dynamic::{DynamicStructure, DynamicValue, TypeRegistry};
use taktwerk_types::{ArrayValues, BuiltInType, DecodeLimits, ExtensionObject, NodeId, Variant};

/// The known data types of a server.
#[derive(Debug, Default)]
pub(crate) struct Types(TypeReader);

impl Types {
    pub(crate) fn registry(&self) -> &TypeRegistry {
        self.0.registry()
    }

    /// The structures of a value with the names of their fields.
    pub(crate) fn document(&self, value: &Variant) -> Option<Value> {
        let decode = |object: &ExtensionObject| {
            let decoded = self.registry().decode(object, DecodeLimits::DEFAULT).ok()?;
            Some(structure(self, &decoded))
        };
        match value {
            Variant::ExtensionObject(object) => decode(object),
            Variant::Array(array) => match &array.values {
                ArrayValues::ExtensionObject(objects) => {
                    objects.iter().map(decode).collect::<Option<Vec<Value>>>().map(Value::Array)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The reader that collects the required types and their definitions.
    pub(crate) fn reader(&mut self) -> &mut TypeReader {
        &mut self.0
    }

    /// Parses a structure, or an array of structures, from JSON with field names. Its definition must have been read.
    pub(crate) fn parse(&self, data_type: &NodeId, text: &str) -> Result<Variant, Failure> {
        let usage = |error: String| Failure::Usage(format!("{data_type}: {error}"));
        let document: Value = serde_json::from_str(text)
            .map_err(|error| usage(format!("write a structure as JSON, {{\"Field\": value}}: {error}")))?;
        let encode = |document: &Value| -> Result<ExtensionObject, Failure> {
            let dynamic = self.structure_value(data_type, document).map_err(&usage)?;
            self.registry().encode(&dynamic).map_err(|error| usage(error.to_string()))
        };
        match &document {
            Value::Array(elements) => Ok(elements.iter().map(encode).collect::<Result<Vec<_>, _>>()?.into()),
            single => Ok(encode(single)?.into()),
        }
    }

    fn structure_value(&self, data_type: &NodeId, document: &Value) -> Result<DynamicStructure, String> {
        let known = self.registry().structure(data_type).ok_or("its structure is not known".to_owned())?;
        let fields = document.as_object().ok_or("write a structure as {\"Field\": value}".to_owned())?;
        let mut dynamic = DynamicStructure::new(data_type.clone(), &known.name);
        for (name, value) in fields {
            let field = known.fields.iter().find(|field| &*field.name == name.as_str()).ok_or_else(|| {
                let names: Vec<&str> = known.fields.iter().map(|field| &*field.name).collect();
                format!("{} has no field {name}: it has {}", known.name, names.join(", "))
            })?;
            dynamic = dynamic.with(name, self.field_value(&field.data_type, value)?);
        }
        Ok(dynamic)
    }

    fn field_value(&self, data_type: &NodeId, document: &Value) -> Result<DynamicValue, String> {
        if self.registry().structure(data_type).is_some() {
            return match document {
                Value::Array(elements) => {
                    let values = elements.iter().map(|element| self.structure_value(data_type, element));
                    Ok(DynamicValue::structures(values.collect::<Result<_, _>>()?))
                }
                single => Ok(DynamicValue::Structure(self.structure_value(data_type, single)?)),
            };
        }
        // Everything else has the syntax of the command line. Enumerations are numbers.
        let kind = data_type.ns0().and_then(description::built_in_type).unwrap_or(BuiltInType::Int32);
        let text = match document {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        value::parse(&text, kind, !document.is_array())
            .map(DynamicValue::Variant)
            .map_err(|error| error.to_string())
    }
}

fn structure(types: &Types, value: &DynamicStructure) -> Value {
    let fields: Map<String, Value> =
        value.fields.iter().map(|(name, value)| (name.to_string(), dynamic(types, value))).collect();
    Value::Object(fields)
}

fn dynamic(types: &Types, value: &DynamicValue) -> Value {
    match value {
        DynamicValue::Variant(value) => types.document(value).unwrap_or_else(|| output::variant(value)),
        DynamicValue::Enumeration { value, name: Some(name) } => json!(format!("{name}_{value}")),
        DynamicValue::Enumeration { value, name: None } => json!(value),
        DynamicValue::Structure(value) => structure(types, value),
        DynamicValue::Array { values, .. } => values.iter().map(|value| dynamic(types, value)).collect(),
    }
}
