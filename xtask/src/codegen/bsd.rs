//! The binary type dictionary `Opc.Ua.Types.bsd`. It provides the data types that occur only in services, which the
//! NodeSet omits. The others are compared with the NodeSet.

use super::node_ids::NodeIds;
use crate::Failure;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use taktwerk_nodeset::dictionary::DataType;
use taktwerk_nodeset::{DataTypeKind, Definition, Field, TypeDictionary};
use taktwerk_types::{BuiltInType, NodeId};

/// Names of the dictionary for parts of built-in types, which are not data types.
const BUILT_IN_PARTS: [&str; 16] = [
    "XmlElement",
    "NodeIdType",
    "TwoByteNodeId",
    "FourByteNodeId",
    "NumericNodeId",
    "StringNodeId",
    "GuidNodeId",
    "ByteStringNodeId",
    "NodeId",
    "ExpandedNodeId",
    "DiagnosticInfo",
    "QualifiedName",
    "LocalizedText",
    "DataValue",
    "ExtensionObject",
    "Variant",
];

/// A type of the dictionary.
pub(crate) struct Type {
    name: String,
    /// `None` for enumerations.
    base: Option<String>,
    fields: Vec<TypeField>,
}

struct TypeField {
    name: String,
    /// Without its namespace prefix; empty for enumeration values.
    type_name: String,
    is_array: bool,
    is_optional: bool,
    is_inherited: bool,
    value: i64,
}

/// Parses the structures and enumerations.
pub(crate) fn parse(text: &str) -> Result<Vec<Type>, Failure> {
    let document = Document::parse(text).map_err(|error| format!("Opc.Ua.Types.bsd: {error}"))?;
    let mut types = Vec::new();
    for node in document.root_element().children().filter(Node::is_element) {
        let name = node.attribute("Name").unwrap_or("").to_owned();
        if BUILT_IN_PARTS.contains(&name.as_str()) {
            continue;
        }
        match node.tag_name().name() {
            "StructuredType" => types.push(structure(node, name)?),
            "EnumeratedType" => types.push(enumeration(node, name)?),
            _ => {}
        }
    }
    Ok(types)
}

fn structure(node: Node<'_, '_>, name: String) -> Result<Type, Failure> {
    let entries = || {
        node.children()
            .filter(|child| child.has_tag_name((child.tag_name().namespace().unwrap_or(""), "Field")))
    };
    let lengths: Vec<&str> = entries().filter_map(|field| field.attribute("LengthField")).collect();
    let mut fields = Vec::new();
    for field in entries() {
        let required = |attribute| {
            field
                .attribute(attribute)
                .ok_or_else(|| format!("Opc.Ua.Types.bsd: a field of {name} has no {attribute}"))
        };
        let (field_name, type_name) = (required("Name")?, required("TypeName")?);
        if lengths.contains(&field_name) || type_name == "opc:Bit" {
            continue;
        }
        fields.push(TypeField {
            name: field_name.to_owned(),
            type_name: local(type_name),
            is_array: field.attribute("LengthField").is_some(),
            is_optional: field.attribute("SwitchField").is_some(),
            is_inherited: field.attribute("SourceType").is_some(),
            value: -1,
        });
    }
    let base = node
        .attribute("BaseType")
        .map(local)
        .ok_or_else(|| format!("Opc.Ua.Types.bsd: {name} has no BaseType"))?;
    Ok(Type { name, base: Some(base), fields })
}

fn enumeration(node: Node<'_, '_>, name: String) -> Result<Type, Failure> {
    let mut fields = Vec::new();
    for value in node.children().filter(|child| child.tag_name().name() == "EnumeratedValue") {
        let number = value.attribute("Value").and_then(|value| value.parse().ok());
        fields.push(TypeField {
            name: value.attribute("Name").unwrap_or("").to_owned(),
            type_name: String::new(),
            is_array: false,
            is_optional: false,
            is_inherited: false,
            value: number.ok_or_else(|| format!("Opc.Ua.Types.bsd: a value of {name} has no number"))?,
        });
    }
    Ok(Type { name, base: None, fields })
}

fn local(name: &str) -> String {
    name.rsplit(':').next().unwrap_or(name).to_owned()
}

fn built_in(name: &str) -> Option<BuiltInType> {
    Some(match name {
        "CharArray" => BuiltInType::String,
        "ExtensionObject" => BuiltInType::ExtensionObject,
        _ => BuiltInType::ALL.into_iter().find(|kind| kind.to_string() == name)?,
    })
}

/// Adds the types that the NodeSet omits, with their published ids.
pub(crate) fn add_missing(
    types: &[Type],
    ids: &NodeIds,
    dictionary: &mut TypeDictionary,
) -> Result<(), Failure> {
    let data_types = ids.get("DataTypeIds").cloned().unwrap_or_default();
    let objects = ids.get("ObjectIds").cloned().unwrap_or_default();
    let mut known: BTreeMap<String, NodeId> =
        dictionary.iter().map(|(id, data_type)| (data_type.name.clone(), id.clone())).collect();
    let missing: Vec<&Type> = types.iter().filter(|entry| !known.contains_key(&entry.name)).collect();
    for entry in &missing {
        let id = data_types.get(&entry.name).ok_or_else(|| format!("{} has no published id", entry.name))?;
        known.insert(entry.name.clone(), NodeId::numeric(0, *id));
    }
    let resolve = |name: &str| -> Result<NodeId, Failure> {
        let built_in = built_in(name).map(|kind| NodeId::numeric(0, u32::from(kind.number())));
        built_in
            .or_else(|| known.get(name).cloned())
            .ok_or_else(|| format!("Opc.Ua.Types.bsd: unknown type {name}"))
    };
    for entry in missing {
        let mut fields = Vec::new();
        // Inherited fields are repeated, and mostly but not always marked as such.
        let inherited = |field: &&TypeField| {
            let base = entry.base.as_ref().and_then(|base| types.iter().find(|other| other.name == *base));
            field.is_inherited
                || base.is_some_and(|base| base.fields.iter().any(|other| other.name == field.name))
        };
        for field in entry.fields.iter().filter(|field| !inherited(field)) {
            let data_type = if entry.base.is_some() { resolve(&field.type_name)? } else { NodeId::NULL };
            fields.push(definition_field(field, data_type));
        }
        let base = match &entry.base {
            Some(base) => resolve(base)?,
            None => NodeId::numeric(0, 29),
        };
        let encoding = |kind: &str| {
            objects.get(&format!("{}_Encoding_{kind}", entry.name)).map(|id| NodeId::numeric(0, *id))
        };
        let data_type = DataType {
            name: entry.name.clone(),
            base: Some(base),
            is_abstract: false,
            definition: Some(Definition { name: entry.name.clone(), fields, ..Definition::default() }),
            binary_encoding: encoding("DefaultBinary"),
            xml_encoding: encoding("DefaultXml"),
            json_encoding: encoding("DefaultJson"),
        };
        dictionary.insert(resolve(&entry.name)?, data_type);
    }
    Ok(())
}

fn definition_field(field: &TypeField, data_type: NodeId) -> Field {
    Field {
        name: field.name.clone(),
        symbolic_name: None,
        display_name: None,
        description: None,
        data_type,
        value_rank: if field.is_array { 1 } else { -1 },
        array_dimensions: Vec::new(),
        max_string_length: 0,
        value: field.value,
        is_optional: field.is_optional,
        allow_sub_types: false,
        line: 0,
    }
}

/// Compares the encoding of every structure that both files define, field by field.
pub(crate) fn compare(types: &[Type], dictionary: &TypeDictionary) -> Result<(), Failure> {
    let by_name: BTreeMap<&str, &NodeId> =
        dictionary.iter().map(|(id, data_type)| (data_type.name.as_str(), id)).collect();
    let mut differences = Vec::new();
    for entry in types.iter().filter(|entry| entry.base.is_some()) {
        let Some(id) = by_name.get(entry.name.as_str()) else { continue };
        if dictionary.get(id).is_some_and(|data_type| data_type.is_abstract) {
            continue;
        }
        let layout = dictionary.layout(id).map_err(|problem| format!("{}: {problem}", entry.name))?;
        let nodeset: Vec<String> =
            layout.fields.iter().map(|field| signature(field, dictionary)).collect::<Result<_, _>>()?;
        let published: Vec<String> =
            entry.fields.iter().map(|field| published(field, dictionary, &by_name)).collect();
        if nodeset != published {
            differences.push(format!("{}: NodeSet {nodeset:?}, dictionary {published:?}", entry.name));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("the NodeSet and the type dictionary disagree:\n{}", differences.join("\n")))
}

fn signature(field: &Field, dictionary: &TypeDictionary) -> Result<String, Failure> {
    let kind = dictionary.field_kind(field).map_err(|problem| format!("{}: {problem}", field.name))?;
    Ok(sign(&field.name, kind, field.value_rank >= 0, field.is_optional))
}

fn published(field: &TypeField, dictionary: &TypeDictionary, by_name: &BTreeMap<&str, &NodeId>) -> String {
    let kind = match built_in(&field.type_name) {
        Some(kind) => Some(DataTypeKind::BuiltIn(kind)),
        None => by_name.get(field.type_name.as_str()).and_then(|id| dictionary.kind(id).ok()),
    };
    match kind {
        Some(kind) => sign(&field.name, kind, field.is_array, field.is_optional),
        None => format!("{}: unknown {}", field.name, field.type_name),
    }
}

fn sign(name: &str, kind: DataTypeKind, is_array: bool, is_optional: bool) -> String {
    let kind = match kind {
        DataTypeKind::BuiltIn(kind) => kind.to_string(),
        DataTypeKind::Enumeration => "Int32".to_owned(),
        DataTypeKind::Structure(layout) => layout.name,
    };
    format!("{name}: {kind}{}{}", if is_array { "[]" } else { "" }, if is_optional { "?" } else { "" })
}
