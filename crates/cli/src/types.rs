//! Data types that a server defines itself: read when a value of them turns up (Part 6 §5.2.2.15, Part 3 §8.48).

use crate::attribute::Attribute;
use crate::failure::Failure;
use crate::output;
use crate::session::Session;
use crate::value;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use taktwerk_schema::dynamic::{DynamicStructure, DynamicValue, TypeRegistry};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{BrowseDescription, BrowseDirection, BrowseRequest, ReadValueId, description};
use taktwerk_types::{ArrayValues, BuiltInType, DecodeLimits, ExtensionObject, NodeId, Variant};

/// Types nest a few levels deep; the bound ends a circle of supertypes.
const SUPERTYPES_MAX: usize = 32;
/// Structures contain structures; the bound ends a server that always names another.
const TYPES_MAX: usize = 1_000;

/// What is known of a server's own types.
#[derive(Debug, Default)]
pub(crate) struct Types {
    registry: TypeRegistry,
    /// Asked for before, with whatever result.
    asked: BTreeSet<NodeId>,
}

/// What a DataType node says.
struct Definition {
    name: String,
    base: NodeId,
    definition: Option<ExtensionObject>,
}

impl Types {
    pub(crate) fn registry(&self) -> &TypeRegistry {
        &self.registry
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
        let mut encodings: Vec<NodeId> = objects(value).map(|object| object.type_id.clone()).collect();
        encodings.sort();
        encodings.dedup();
        for encoding in encodings {
            if encoding.is_null() || self.registry.structure_by_encoding(&encoding).is_some() {
                continue;
            }
            // Some servers send the DataType's id instead of the encoding's.
            let data_type = encoded_type(session, &encoding)?.unwrap_or_else(|| encoding.clone());
            self.define(session, &data_type)?;
            self.registry.add_encoding(encoding, data_type);
        }
        Ok(())
    }

    /// Reads the definition of a DataType and of everything in it. What a server does not define stays undecoded.
    fn define(&mut self, session: &mut Session, data_type: &NodeId) -> Result<(), Failure> {
        let mut open = vec![data_type.clone()];
        while let Some(next) = open.pop() {
            if self.registry.knows(&next) || self.asked.len() > TYPES_MAX || !self.asked.insert(next.clone())
            {
                continue;
            }
            let found = definition(session, &next)?;
            let added = match &found.definition {
                Some(object) => {
                    // An option set needs its base to be known.
                    if !self.registry.knows(&found.base) && !found.base.is_null() {
                        self.define(session, &found.base)?;
                    }
                    self.registry.add(next.clone(), &found.name, &found.base, object)
                }
                None => {
                    self.define(session, &found.base)?;
                    self.registry.add_subtype(next.clone(), &found.base)
                }
            };
            if let Err(error) = added {
                tracing::info!(data_type = %next, %error, "a data type cannot be used");
            }
            open.extend(self.registry.missing());
        }
        Ok(())
    }

    /// The structures of a value with the names of their fields.
    pub(crate) fn document(&self, value: &Variant) -> Option<Value> {
        let decode = |object: &ExtensionObject| {
            let decoded = self.registry.decode(object, DecodeLimits::DEFAULT).ok()?;
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
        self.define(session, data_type)?;
        let usage = |error: String| Failure::Usage(format!("{data_type}: {error}"));
        let document: Value = serde_json::from_str(text)
            .map_err(|error| usage(format!("write a structure as JSON, {{\"Field\": value}}: {error}")))?;
        let encode = |document: &Value| -> Result<ExtensionObject, Failure> {
            let dynamic = self.structure_value(data_type, document).map_err(&usage)?;
            self.registry.encode(&dynamic).map_err(|error| usage(error.to_string()))
        };
        match &document {
            Value::Array(elements) => Ok(elements.iter().map(encode).collect::<Result<Vec<_>, _>>()?.into()),
            single => Ok(encode(single)?.into()),
        }
    }

    fn structure_value(&self, data_type: &NodeId, document: &Value) -> Result<DynamicStructure, String> {
        let known = self.registry.structure(data_type).ok_or("its structure is not known".to_owned())?;
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
        if self.registry.structure(data_type).is_some() {
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

fn objects(value: &Variant) -> impl Iterator<Item = &ExtensionObject> {
    let (single, many): (Option<&ExtensionObject>, &[ExtensionObject]) = match value {
        Variant::ExtensionObject(object) => (Some(object), &[]),
        Variant::Array(array) => match &array.values {
            ArrayValues::ExtensionObject(objects) => (None, objects),
            _ => (None, &[]),
        },
        _ => (None, &[]),
    };
    single.into_iter().chain(many)
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

/// The node that an inverse reference leads to.
fn inverse(session: &mut Session, node: &NodeId, reference_type: u32) -> Result<Option<NodeId>, Failure> {
    let description = BrowseDescription {
        node_id: node.clone(),
        browse_direction: BrowseDirection::INVERSE,
        reference_type_id: NodeId::numeric(0, reference_type),
        include_subtypes: true,
        node_class_mask: 0,
        result_mask: 0,
    };
    let response =
        session.request(BrowseRequest { nodes_to_browse: vec![description], ..Default::default() })?;
    let result = response.results.into_iter().next().unwrap_or_default();
    Ok(result.references.into_iter().find_map(|reference| reference.node_id.local().cloned()))
}

fn supertype(session: &mut Session, data_type: &NodeId) -> Result<Option<NodeId>, Failure> {
    inverse(session, data_type, reference_type_ids::HAS_SUBTYPE)
}

fn encoded_type(session: &mut Session, encoding: &NodeId) -> Result<Option<NodeId>, Failure> {
    inverse(session, encoding, reference_type_ids::HAS_ENCODING)
}

fn definition(session: &mut Session, data_type: &NodeId) -> Result<Definition, Failure> {
    const DATA_TYPE_DEFINITION: u32 = 23;
    let attribute =
        |attribute_id| ReadValueId { node_id: data_type.clone(), attribute_id, ..Default::default() };
    let nodes = vec![attribute(Attribute::BROWSE_NAME.id()), attribute(DATA_TYPE_DEFINITION)];
    let mut results = session.read(nodes)?.into_iter().map(|result| result.value);
    let name = match results.next().flatten() {
        Some(Variant::QualifiedName(name)) => name.name.as_str().to_owned(),
        _ => data_type.to_string(),
    };
    let definition = match results.next().flatten() {
        Some(Variant::ExtensionObject(object)) => Some(*object),
        _ => None,
    };
    let base = supertype(session, data_type)?.unwrap_or_default();
    Ok(Definition { name, base, definition })
}
