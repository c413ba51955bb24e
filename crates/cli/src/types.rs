//! Data types that a server defines itself: read when a value of them turns up (Part 6 §5.2.2.15, Part 3 §8.48).

use crate::failure::Failure;
use crate::output;
use crate::session::Session;
use crate::value;
use serde_json::{Map, Value, json};
use taktwerk_client::TypeReader;
use taktwerk_schema::dynamic::{DynamicStructure, DynamicValue, TypeRegistry};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{BrowseDescription, BrowseDirection, BrowseRequest, description};
use taktwerk_types::{ArrayValues, BuiltInType, DecodeLimits, ExtensionObject, NodeId, Variant};

/// Types nest a few levels deep; the bound ends a circle of supertypes.
const SUPERTYPES_MAX: usize = 32;
/// What is known of a server's own types.
#[derive(Debug, Default)]
pub(crate) struct Types(TypeReader);

impl Types {
    pub(crate) fn registry(&self) -> &TypeRegistry {
        self.0.registry()
    }

    /// Which built-in type values of a DataType have in a Variant.
    pub(crate) fn built_in_type(
        &mut self,
        session: &mut Session,
        data_type: &NodeId,
    ) -> Result<Option<BuiltInType>, Failure> {
        let mut at = data_type.clone();
        for _ in 0..SUPERTYPES_MAX {
            if let Some(kind) = at.ns0().and_then(description::built_in_type) {
                return Ok(Some(kind));
            }
            match supertype(session, &at)? {
                Some(base) => at = base,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Reads the definitions of the structures in a value, and of what they contain.
    pub(crate) fn learn(&mut self, session: &mut Session, value: &Variant) -> Result<(), Failure> {
        self.0.want_all(value);
        session.learn(&mut self.0)
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

    /// A structure, or an array of them, from JSON with names.
    pub(crate) fn parse(
        &mut self,
        session: &mut Session,
        data_type: &NodeId,
        text: &str,
    ) -> Result<Variant, Failure> {
        self.0.want_data_type(data_type);
        session.learn(&mut self.0)?;
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
        // Everything else is written as on the command line; enumerations are numbers.
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

fn supertype(session: &mut Session, data_type: &NodeId) -> Result<Option<NodeId>, Failure> {
    let description = BrowseDescription {
        node_id: data_type.clone(),
        browse_direction: BrowseDirection::INVERSE,
        reference_type_id: NodeId::numeric(0, reference_type_ids::HAS_SUBTYPE),
        include_subtypes: true,
        node_class_mask: 0,
        result_mask: 0,
    };
    let response =
        session.request(BrowseRequest { nodes_to_browse: vec![description], ..Default::default() })?;
    let result = response.results.into_iter().next().unwrap_or_default();
    Ok(result.references.into_iter().find_map(|reference| reference.node_id.local().cloned()))
}
