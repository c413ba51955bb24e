//! The data types of namespace 0, from the generated schema instead of its 4 MB of XML.

use crate::definition::{Definition, Field};
use crate::dictionary::{DataType, TypeDictionary};
use taktwerk_schema::NodeClass;
use taktwerk_schema::description::{self, StructureDescription, StructureKind};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::ns0::{Ns0, Ns0Node};
use taktwerk_types::NodeId;

impl TypeDictionary {
    /// A dictionary with namespace 0, to which other files are added.
    #[must_use]
    pub fn namespace_zero() -> Self {
        let mut types = Self::default();
        for node in Ns0::get().nodes().filter(|node| node.class() == NodeClass::DATA_TYPE) {
            let mut data_type = DataType {
                name: node.browse_name().to_owned(),
                base: node.supertype().map(NodeId::from),
                is_abstract: node.is_abstract(),
                definition: definition(&node),
                ..DataType::default()
            };
            let is_encoding = |reference_type| reference_type == reference_type_ids::HAS_ENCODING;
            for reference in
                node.references().filter(|entry| is_encoding(entry.reference_type) && entry.is_forward)
            {
                let slot = match Ns0::get().node(reference.target).map(|node| node.browse_name()) {
                    Some("Default Binary") => &mut data_type.binary_encoding,
                    Some("Default XML") => &mut data_type.xml_encoding,
                    Some("Default JSON") => &mut data_type.json_encoding,
                    _ => continue,
                };
                *slot = Some(NodeId::from(reference.target));
            }
            types.insert(NodeId::from(node.id()), data_type);
        }
        types
    }
}

fn definition(node: &Ns0Node) -> Option<Definition> {
    if let Some(structure) = description::structure(node.id()) {
        let fields = structure.fields.iter().skip(inherited(node)).map(|field| Field {
            data_type: NodeId::from(field.type_id),
            value_rank: field.value_rank,
            is_optional: field.is_optional && structure.kind == StructureKind::WithOptionalFields,
            allow_sub_types: field.is_optional && structure.kind == StructureKind::WithSubtypedValues,
            ..named(field.name)
        });
        return Some(Definition {
            name: structure.name.to_owned(),
            fields: fields.collect(),
            ..Definition::default()
        });
    }
    let known = description::enumeration(node.id())?;
    let fields = known.values.iter().map(|(name, value)| Field { value: *value, ..named(name) });
    let (name, is_option_set) = (known.name.to_owned(), known.is_option_set);
    Some(Definition { name, is_option_set, fields: fields.collect(), ..Definition::default() })
}

/// Number of fields that a structure inherits from its nearest described supertype; a description lists all fields.
fn inherited(node: &Ns0Node) -> usize {
    let supertypes = core::iter::successors(node.supertype(), |id| Ns0::get().node(*id)?.supertype());
    let described: Option<&StructureDescription> = supertypes.take(64).find_map(description::structure);
    described.map_or(0, |structure| structure.fields.len())
}

fn named(name: &str) -> Field {
    Field {
        name: name.to_owned(),
        symbolic_name: None,
        display_name: None,
        description: None,
        data_type: NodeId::NULL,
        value_rank: -1,
        array_dimensions: Vec::new(),
        max_string_length: 0,
        value: -1,
        is_optional: false,
        allow_sub_types: false,
        line: 0,
    }
}
