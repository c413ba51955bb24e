//! The data types known at run time.

use super::DynamicError;
use crate::description::{self, StructureKind};
use crate::ns0::Ns0;
use crate::{EnumDefinition, StructureDefinition, StructureType as WireKind, ids::data_type_ids};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taktwerk_types::{BuiltInType, ExtensionObject, NodeId};

/// A structure or union.
#[derive(Debug, Clone, PartialEq)]
pub struct StructureType {
    /// The DataType.
    pub data_type: NodeId,
    /// Its name.
    pub name: Arc<str>,
    /// The id of its binary encoding; null if there is none.
    pub encoding: NodeId,
    /// How it is encoded.
    pub kind: StructureKind,
    /// Its fields, inherited ones first.
    pub fields: Vec<FieldType>,
}

/// A field of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldType {
    /// Its name.
    pub name: Arc<str>,
    /// Its DataType.
    pub data_type: NodeId,
    /// −1 for a scalar, 1 for an array, more for a matrix.
    pub value_rank: i32,
    /// The field is optional; in kinds with subtyped values, subtypes are allowed.
    pub is_optional: bool,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnumType {
    /// Its name.
    pub name: Arc<str>,
    /// Numbers and names.
    pub values: Vec<(i64, Arc<str>)>,
}

impl EnumType {
    /// The name of a number.
    #[must_use]
    pub fn name_of(&self, value: i64) -> Option<&Arc<str>> {
        self.values.iter().find(|entry| entry.0 == value).map(|entry| &entry.1)
    }
}

/// How a field is encoded.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    BuiltIn(BuiltInType),
    Enumeration(Arc<EnumType>),
    Structure(Arc<StructureType>),
}

/// The data types of a server's own namespaces. Namespace 0 is built in.
#[derive(Debug, Clone, Default)]
pub struct TypeRegistry {
    types: BTreeMap<NodeId, Kind>,
    encodings: BTreeMap<NodeId, NodeId>,
}

impl TypeRegistry {
    /// A registry that contains namespace 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type from the value of its DataTypeDefinition attribute. `base` is its supertype, which matters only for
    /// option sets: their definition does not contain the integer type.
    ///
    /// # Errors
    /// The attribute is not a StructureDefinition or EnumDefinition, or it is malformed.
    pub fn add(
        &mut self,
        data_type: NodeId,
        name: &str,
        base: &NodeId,
        definition: &ExtensionObject,
    ) -> Result<(), DynamicError> {
        if definition.is::<StructureDefinition>() {
            return self.add_structure(data_type, name, &definition.decode()?);
        }
        if definition.is::<EnumDefinition>() {
            self.add_enumeration(data_type, name, base, &definition.decode()?);
            return Ok(());
        }
        let reason = "it is neither a StructureDefinition nor an EnumDefinition";
        Err(DynamicError::BadDefinition { data_type, reason })
    }

    /// Adds a structure or union.
    ///
    /// # Errors
    /// [`DynamicError::BadDefinition`].
    pub fn add_structure(
        &mut self,
        data_type: NodeId,
        name: &str,
        definition: &StructureDefinition,
    ) -> Result<(), DynamicError> {
        let kind = match definition.structure_type {
            WireKind::STRUCTURE => StructureKind::Plain,
            WireKind::STRUCTURE_WITH_OPTIONAL_FIELDS => StructureKind::WithOptionalFields,
            WireKind::UNION => StructureKind::Union,
            WireKind::STRUCTURE_WITH_SUBTYPED_VALUES => StructureKind::WithSubtypedValues,
            WireKind::UNION_WITH_SUBTYPED_VALUES => StructureKind::UnionWithSubtypedValues,
            _ => {
                return Err(DynamicError::BadDefinition {
                    data_type,
                    reason: "its StructureType is unknown",
                });
            }
        };
        let optional = definition.fields.iter().filter(|field| field.is_optional).count();
        if kind == StructureKind::WithOptionalFields && optional > 32 {
            let reason = "it has more optional fields than its mask has bits";
            return Err(DynamicError::BadDefinition { data_type, reason });
        }
        let fields = definition.fields.iter().map(|field| FieldType {
            name: field.name.as_str().into(),
            data_type: field.data_type.clone(),
            value_rank: field.value_rank,
            is_optional: field.is_optional,
        });
        let encoding = definition.default_encoding_id.clone();
        if !encoding.is_null() {
            self.encodings.insert(encoding.clone(), data_type.clone());
        }
        let structure = StructureType {
            data_type: data_type.clone(),
            name: name.into(),
            encoding,
            kind,
            fields: fields.collect(),
        };
        self.types.insert(data_type, Kind::Structure(structure.into()));
        Ok(())
    }

    /// Adds an enumeration or option set.
    pub fn add_enumeration(
        &mut self,
        data_type: NodeId,
        name: &str,
        base: &NodeId,
        definition: &EnumDefinition,
    ) {
        let base = if base.ns0() == Some(data_type_ids::OPTION_SET) {
            Ok(Kind::Structure(option_set().into()))
        } else {
            self.resolve(base)
        };
        let kind = match base {
            // An option set: an integer or, based on the OptionSet structure, two ByteStrings.
            Ok(Kind::BuiltIn(kind)) if kind != BuiltInType::Int32 && kind != BuiltInType::Variant => {
                Kind::BuiltIn(kind)
            }
            Ok(Kind::Structure(base)) => Kind::Structure(
                StructureType {
                    data_type: data_type.clone(),
                    name: name.into(),
                    ..StructureType::clone(&base)
                }
                .into(),
            ),
            _ => {
                let values = definition.fields.iter().map(|field| (field.value, field.name.as_str().into()));
                Kind::Enumeration(EnumType { name: name.into(), values: values.collect() }.into())
            }
        };
        self.types.insert(data_type, kind);
    }

    /// Adds a type without a definition, such as a subtype of Double: it is encoded like its supertype.
    ///
    /// # Errors
    /// The supertype is not known.
    pub fn add_subtype(&mut self, data_type: NodeId, base: &NodeId) -> Result<(), DynamicError> {
        let kind = self.resolve(base)?;
        self.types.insert(data_type, kind);
        Ok(())
    }

    /// Adds an encoding id of a type, for servers whose definitions have a null DefaultEncodingId.
    pub fn add_encoding(&mut self, encoding: NodeId, data_type: NodeId) {
        self.encodings.insert(encoding, data_type);
    }

    /// Whether values of a type can be decoded.
    #[must_use]
    pub fn knows(&self, data_type: &NodeId) -> bool {
        self.resolve(data_type).is_ok()
    }

    /// Types of fields that are not known yet: read these next.
    #[must_use]
    pub fn missing(&self) -> BTreeSet<NodeId> {
        let structures = self.types.values().filter_map(|kind| match kind {
            Kind::Structure(structure) => Some(structure),
            Kind::BuiltIn(_) | Kind::Enumeration(_) => None,
        });
        let fields = structures.flat_map(|structure| &structure.fields);
        fields.map(|field| &field.data_type).filter(|data_type| !self.knows(data_type)).cloned().collect()
    }

    /// The structure of a DataType.
    #[must_use]
    pub fn structure(&self, data_type: &NodeId) -> Option<Arc<StructureType>> {
        match self.resolve(data_type) {
            Ok(Kind::Structure(structure)) => Some(structure),
            _ => None,
        }
    }

    /// The structure whose binary encoding has this id. The DataType's id is accepted, too, because some servers send
    /// it.
    #[must_use]
    pub fn structure_by_encoding(&self, encoding: &NodeId) -> Option<Arc<StructureType>> {
        if let Some(data_type) = self.encodings.get(encoding) {
            return self.structure(data_type);
        }
        match encoding.ns0().and_then(description::structure_by_encoding) {
            Some(known) => Some(described(known)),
            None => self.structure(encoding),
        }
    }

    pub(super) fn resolve(&self, data_type: &NodeId) -> Result<Kind, DynamicError> {
        if let Some(kind) = self.types.get(data_type) {
            return Ok(kind.clone());
        }
        data_type.ns0().and_then(namespace_zero).ok_or_else(|| DynamicError::UnknownType(data_type.clone()))
    }

    /// How a field is encoded: as ExtensionObject or Variant if subtypes are allowed (Part 6 §5.1.7).
    pub(super) fn field_kind(
        &self,
        structure: &StructureType,
        field: &FieldType,
    ) -> Result<Kind, DynamicError> {
        let subtyped = matches!(
            structure.kind,
            StructureKind::WithSubtypedValues | StructureKind::UnionWithSubtypedValues
        );
        let kind = self.resolve(&field.data_type)?;
        Ok(match kind {
            Kind::Structure(_) if subtyped && field.is_optional => {
                Kind::BuiltIn(BuiltInType::ExtensionObject)
            }
            Kind::BuiltIn(BuiltInType::ExtensionObject) => kind,
            _ if subtyped && field.is_optional => Kind::BuiltIn(BuiltInType::Variant),
            _ => kind,
        })
    }
}

/// The structure of option sets that are too large for an integer (Part 3 §8.40). It is abstract, so fields of this
/// type are ExtensionObjects; subtypes are encoded in place.
fn option_set() -> StructureType {
    let field = |name: &str| FieldType {
        name: name.into(),
        data_type: NodeId::numeric(0, data_type_ids::BYTE_STRING),
        value_rank: -1,
        is_optional: false,
    };
    StructureType {
        data_type: NodeId::numeric(0, data_type_ids::OPTION_SET),
        name: "OptionSet".into(),
        encoding: NodeId::NULL,
        kind: StructureKind::Plain,
        fields: vec![field("Value"), field("ValidBits")],
    }
}

fn namespace_zero(id: u32) -> Option<Kind> {
    if let Some(known) = description::structure(id) {
        return Some(Kind::Structure(described(known)));
    }
    if let Some(known) = description::enumeration(id)
        && !known.is_option_set
    {
        let values = known.values.iter().map(|(name, value)| (*value, Arc::from(*name)));
        return Some(Kind::Enumeration(
            EnumType { name: known.name.into(), values: values.collect() }.into(),
        ));
    }
    if Ns0::get().is_subtype_of(id, data_type_ids::ENUMERATION) {
        return Some(Kind::Enumeration(Arc::default()));
    }
    description::built_in_type(id).map(Kind::BuiltIn)
}

fn described(known: &description::StructureDescription) -> Arc<StructureType> {
    let fields = known.fields.iter().map(|field| FieldType {
        name: field.name.into(),
        data_type: NodeId::numeric(0, field.type_id),
        value_rank: field.value_rank,
        is_optional: field.is_optional,
    });
    Arc::new(StructureType {
        data_type: NodeId::numeric(0, known.data_type_id),
        name: known.name.into(),
        encoding: NodeId::numeric(0, known.binary_encoding_id),
        kind: known.kind,
        fields: fields.collect(),
    })
}
