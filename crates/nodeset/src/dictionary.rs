//! The data types of all loaded models and how their values are encoded.

use crate::definition::{Definition, Field};
use crate::error::Problem;
use crate::model::{NodeClass, NodeSet};
use std::collections::BTreeMap;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{BuiltInType, Encode, ExtensionObject, LocalizedText, NodeId, UaString};

/// Numeric ids of fundamental types in namespace 0.
mod ids {
    pub(super) const STRUCTURE: u32 = 22;
    pub(super) const BASE_DATA_TYPE: u32 = 24;
    pub(super) const NUMBER: u32 = 26;
    pub(super) const INTEGER: u32 = 27;
    pub(super) const U_INTEGER: u32 = 28;
    pub(super) const ENUMERATION: u32 = 29;
    pub(super) const HAS_ENCODING: u32 = 38;
    pub(super) const HAS_SUBTYPE: u32 = 45;
    pub(super) const UNION: u32 = 12756;
    pub(super) const STRUCTURE_DEFINITION_BINARY: u32 = 122;
    pub(super) const ENUM_DEFINITION_BINARY: u32 = 123;
}

/// Maximum length of a supertype chain; a longer one is circular.
const SUPERTYPES_MAX: usize = 64;

/// The data of a DataType in the loaded models.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataType {
    /// The name for generated code: the SymbolicName, otherwise the BrowseName.
    pub name: String,
    /// Its supertype.
    pub base: Option<NodeId>,
    /// Whether only its subtypes have values.
    pub is_abstract: bool,
    /// Its own fields.
    pub definition: Option<Definition>,
    /// Its "Default Binary" encoding.
    pub binary_encoding: Option<NodeId>,
    /// Its "Default XML" encoding.
    pub xml_encoding: Option<NodeId>,
    /// Its "Default JSON" encoding.
    pub json_encoding: Option<NodeId>,
}

/// How values of a DataType are encoded.
#[derive(Debug, Clone, PartialEq)]
pub enum DataTypeKind {
    /// As this built-in type: includes subtypes such as Duration, abstract numbers (Variant) and abstract structures
    /// (ExtensionObject).
    BuiltIn(BuiltInType),
    /// As Int32.
    Enumeration,
    /// As the fields of a structure.
    Structure(StructureLayout),
}

/// The fields of a structure in the order of the binary encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct StructureLayout {
    /// The DataType.
    pub data_type: NodeId,
    /// Its name.
    pub name: String,
    /// Whether only one field is encoded, after a switch.
    pub is_union: bool,
    /// Whether an encoding mask says which fields are present.
    pub has_optional_fields: bool,
    /// Inherited fields first.
    pub fields: Vec<Field>,
}

/// The data types of all loaded models.
#[derive(Debug, Clone, Default)]
pub struct TypeDictionary {
    types: BTreeMap<NodeId, DataType>,
    encodings: BTreeMap<NodeId, NodeId>,
}

impl TypeDictionary {
    /// Adds the data types of a file, which was remapped to the server's namespace indexes.
    pub fn add(&mut self, set: &NodeSet) {
        for node in &set.nodes {
            let NodeClass::DataType { is_abstract, definition } = &node.class else { continue };
            let entry = self.types.entry(node.node_id.clone()).or_default();
            entry.name =
                node.symbolic_name.clone().unwrap_or_else(|| node.browse_name.name.as_str().to_owned());
            entry.is_abstract = *is_abstract;
            entry.definition.clone_from(definition);
        }
        // A reference may be listed at either end, but the encoding's name is only in its own node.
        let encodings: BTreeMap<&NodeId, &str> = set
            .nodes
            .iter()
            .filter(|node| matches!(node.class, NodeClass::Object { .. }))
            .map(|node| (&node.node_id, node.browse_name.name.as_str()))
            .filter(|(_, name)| name.starts_with("Default "))
            .collect();
        for node in &set.nodes {
            for reference in &node.references {
                let (from, to) = if reference.is_forward {
                    (&node.node_id, &reference.target)
                } else {
                    (&reference.target, &node.node_id)
                };
                match reference.reference_type.ns0() {
                    Some(ids::HAS_SUBTYPE) => {
                        if let Some(subtype) = self.types.get_mut(to) {
                            subtype.base = Some(from.clone());
                        }
                    }
                    Some(ids::HAS_ENCODING) => self.add_encoding(from, to, encodings.get(to).copied()),
                    _ => {}
                }
            }
        }
    }

    fn add_encoding(&mut self, data_type: &NodeId, encoding: &NodeId, name: Option<&str>) {
        self.encodings.insert(encoding.clone(), data_type.clone());
        let Some(entry) = self.types.get_mut(data_type) else { return };
        let slot = match name {
            Some("Default Binary") => &mut entry.binary_encoding,
            Some("Default XML") => &mut entry.xml_encoding,
            Some("Default JSON") => &mut entry.json_encoding,
            _ => return,
        };
        *slot = Some(encoding.clone());
    }

    /// Adds or replaces one type, for callers with types from other sources.
    pub fn insert(&mut self, id: NodeId, data_type: DataType) {
        let encodings = [&data_type.binary_encoding, &data_type.xml_encoding, &data_type.json_encoding];
        for encoding in encodings.into_iter().flatten() {
            self.encodings.insert(encoding.clone(), id.clone());
        }
        self.types.insert(id, data_type);
    }

    /// Removes types and their encodings.
    pub fn remove(&mut self, goes: impl Fn(&NodeId) -> bool) {
        self.types.retain(|id, _| !goes(id));
        self.encodings.retain(|encoding, data_type| !goes(encoding) && !goes(data_type));
    }

    /// A type.
    #[must_use]
    pub fn get(&self, data_type: &NodeId) -> Option<&DataType> {
        self.types.get(data_type)
    }

    /// All types, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeId, &DataType)> {
        self.types.iter()
    }

    /// The DataType of an encoding id; returns the id itself if it is a DataType.
    #[must_use]
    pub fn by_encoding(&self, id: &NodeId) -> Option<&NodeId> {
        self.encodings.get(id).or_else(|| self.types.get_key_value(id).map(|(id, _)| id))
    }

    /// The supertypes of a type, the nearest first, without itself.
    fn supertypes<'a>(&'a self, data_type: &NodeId) -> impl Iterator<Item = &'a NodeId> {
        let base = |id: &NodeId| self.types.get(id).and_then(|entry| entry.base.as_ref());
        core::iter::successors(base(data_type), move |id| base(id)).take(SUPERTYPES_MAX)
    }

    /// Whether a type is `ancestor` or derives from it.
    #[must_use]
    pub fn is_subtype_of(&self, data_type: &NodeId, ancestor: &NodeId) -> bool {
        data_type == ancestor || self.supertypes(data_type).any(|id| id == ancestor)
    }

    /// How values of a type are encoded.
    ///
    /// # Errors
    /// The type or one of its supertypes is not loaded, or it is a structure without a definition.
    pub fn kind(&self, data_type: &NodeId) -> Result<DataTypeKind, Problem> {
        let chain = core::iter::once(data_type).chain(self.supertypes(data_type));
        let root = chain.filter_map(NodeId::ns0).find_map(root_kind);
        match root {
            Some(Root::BuiltIn(kind)) => Ok(DataTypeKind::BuiltIn(kind)),
            Some(Root::Enumeration) => Ok(DataTypeKind::Enumeration),
            Some(Root::Structure) => {
                let is_abstract = data_type.ns0() == Some(ids::STRUCTURE)
                    || self.types.get(data_type).is_some_and(|entry| entry.is_abstract);
                if is_abstract {
                    return Ok(DataTypeKind::BuiltIn(BuiltInType::ExtensionObject));
                }
                self.layout(data_type).map(DataTypeKind::Structure)
            }
            None => Err(Problem::UnknownDataType { node_id: data_type.clone() }),
        }
    }

    /// How a structure field is encoded: like its type, but as ExtensionObject or Variant if subtypes are allowed (Part
    /// 6 §5.2.6).
    ///
    /// # Errors
    /// As [`Self::kind`].
    pub fn field_kind(&self, field: &Field) -> Result<DataTypeKind, Problem> {
        let kind = self.kind(&field.data_type)?;
        Ok(match kind {
            DataTypeKind::Structure(_) if field.allow_sub_types => {
                DataTypeKind::BuiltIn(BuiltInType::ExtensionObject)
            }
            DataTypeKind::BuiltIn(BuiltInType::ExtensionObject) => kind,
            _ if field.allow_sub_types => DataTypeKind::BuiltIn(BuiltInType::Variant),
            _ => kind,
        })
    }

    /// The fields of a structure with those of its supertypes.
    ///
    /// # Errors
    /// The type is not loaded or has no definition.
    pub fn layout(&self, data_type: &NodeId) -> Result<StructureLayout, Problem> {
        let unknown = || Problem::UnknownDataType { node_id: data_type.clone() };
        let entry = self.types.get(data_type).ok_or_else(unknown)?;
        let mut chain: Vec<&DataType> = vec![entry];
        for base in self.supertypes(data_type) {
            if matches!(base.ns0(), Some(ids::STRUCTURE | ids::UNION)) {
                break;
            }
            chain.push(self.types.get(base).ok_or_else(unknown)?);
        }
        let fields: Vec<Field> = chain
            .iter()
            .rev()
            .filter_map(|entry| entry.definition.as_ref())
            // The fields of an option set are bits; its encoding is that of its supertype.
            .filter(|definition| !definition.is_option_set)
            .flat_map(|definition| definition.fields.iter().cloned())
            .collect();
        // A structure may have no fields, but some tools omit the definition of structures with fields. Such values
        // cannot be decoded.
        if chain.iter().all(|entry| entry.definition.is_none())
            && chain.len() == 1
            && entry.binary_encoding.is_none()
        {
            let reason = "is a structure without a definition".to_owned();
            return Err(Problem::BadDataType { node_id: data_type.clone(), reason });
        }
        let is_union = self.is_subtype_of(data_type, &NodeId::numeric(0, ids::UNION))
            || chain.iter().any(|entry| entry.definition.as_ref().is_some_and(|it| it.is_union));
        Ok(StructureLayout {
            data_type: data_type.clone(),
            name: entry.name.clone(),
            is_union,
            has_optional_fields: !is_union && fields.iter().any(|field| field.is_optional),
            fields,
        })
    }

    /// The DataTypeDefinition attribute: a StructureDefinition or EnumDefinition (Part 3 §8.48 to §8.53).
    ///
    /// # Errors
    /// A supertype is not loaded.
    pub fn definition_attribute(&self, data_type: &NodeId) -> Result<Option<ExtensionObject>, Problem> {
        let Some(entry) = self.types.get(data_type) else { return Ok(None) };
        let Some(definition) = &entry.definition else { return Ok(None) };
        if !self.is_subtype_of(data_type, &NodeId::numeric(0, ids::STRUCTURE)) || definition.is_option_set {
            return Ok(Some(enum_definition(definition)));
        }
        let layout = self.layout(data_type)?;
        Ok(Some(structure_definition(entry, &layout)))
    }
}

enum Root {
    BuiltIn(BuiltInType),
    Enumeration,
    Structure,
}

/// The supertype that determines a type's encoding, by its id.
fn root_kind(id: u32) -> Option<Root> {
    Some(match id {
        ids::STRUCTURE => Root::Structure,
        ids::BASE_DATA_TYPE | ids::NUMBER | ids::INTEGER | ids::U_INTEGER => {
            Root::BuiltIn(BuiltInType::Variant)
        }
        ids::ENUMERATION => Root::Enumeration,
        _ => Root::BuiltIn(BuiltInType::from_number(u8::try_from(id).ok()?)?),
    })
}

fn structure_definition(entry: &DataType, layout: &StructureLayout) -> ExtensionObject {
    let subtyped = layout.fields.iter().any(|field| field.allow_sub_types);
    // StructureType (Part 3 §8.49).
    let structure_type: i32 = match (layout.is_union, layout.has_optional_fields, subtyped) {
        (true, _, false) => 2,
        (true, _, true) => 4,
        (false, _, true) => 3,
        (false, true, false) => 1,
        (false, false, false) => 0,
    };
    let mut out = Vec::new();
    entry.binary_encoding.clone().unwrap_or_default().encode(&mut out);
    entry.base.clone().unwrap_or_default().encode(&mut out);
    structure_type.encode(&mut out);
    encode_len(layout.fields.len(), &mut out);
    for field in &layout.fields {
        UaString::from(field.name.as_str()).encode(&mut out);
        field.description.clone().unwrap_or_default().encode(&mut out);
        field.data_type.encode(&mut out);
        field.value_rank.encode(&mut out);
        field.array_dimensions.encode(&mut out);
        field.max_string_length.encode(&mut out);
        // In structures with subtyped values, IsOptional means that subtypes are allowed.
        (field.is_optional || field.allow_sub_types).encode(&mut out);
    }
    ExtensionObject::from_binary(NodeId::numeric(0, ids::STRUCTURE_DEFINITION_BINARY), out)
}

fn enum_definition(definition: &Definition) -> ExtensionObject {
    let mut out = Vec::new();
    encode_len(definition.fields.len(), &mut out);
    for field in &definition.fields {
        field.value.encode(&mut out);
        let display_name = field.display_name.clone();
        display_name.unwrap_or_else(|| LocalizedText::from_text(field.name.as_str())).encode(&mut out);
        field.description.clone().unwrap_or_default().encode(&mut out);
        UaString::from(field.name.as_str()).encode(&mut out);
    }
    ExtensionObject::from_binary(NodeId::numeric(0, ids::ENUM_DEFINITION_BINARY), out)
}
