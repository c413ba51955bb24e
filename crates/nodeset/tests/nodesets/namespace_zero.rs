//! The generated schema matches the published file of namespace 0.

use crate::files;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_nodeset::{DataTypeKind, Node, NodeClass, NodeSet, StructureLayout, TypeDictionary};
use taktwerk_schema::ns0::{Ns0, Ns0Node};
use taktwerk_types::{Encode, LocalizedText};

const FILE: &str = "Opc.Ua.NodeSet2.xml";

fn dictionary() -> TypeDictionary {
    let mut types = TypeDictionary::default();
    types.add(&files::load(FILE));
    types
}

fn text(texts: &[LocalizedText]) -> Option<&str> {
    texts.first().map(|text| text.text.as_str())
}

/// The references of every node, collected from both ends as in the file.
fn references(set: &NodeSet) -> BTreeMap<u32, BTreeSet<(u32, bool, u32)>> {
    let mut all: BTreeMap<u32, BTreeSet<(u32, bool, u32)>> = BTreeMap::new();
    for node in &set.nodes {
        let from = node.node_id.ns0().unwrap();
        for reference in &node.references {
            let (kind, to) = (reference.reference_type.ns0().unwrap(), reference.target.ns0().unwrap());
            all.entry(from).or_default().insert((kind, reference.is_forward, to));
            all.entry(to).or_default().insert((kind, !reference.is_forward, from));
        }
    }
    all
}

#[test]
fn the_blob_has_every_node_attribute_and_reference_of_the_file() {
    let (set, types, ns0) = (files::load(FILE), dictionary(), Ns0::get());
    assert_eq!(ns0.len(), set.nodes.len());
    let references = references(&set);
    assert_eq!(ns0.reference_count(), references.values().map(BTreeSet::len).sum::<usize>());
    let mut without_value = Vec::new();
    for node in &set.nodes {
        let id = node.node_id.ns0().unwrap();
        let blob = ns0.node(id).unwrap_or_else(|| panic!("{id} is missing"));
        assert_eq!(i32::from(node.class.number()), blob.class().0, "{blob:?}");
        assert_eq!(node.browse_name.name.as_str(), blob.browse_name());
        assert_eq!(text(&node.display_names), Some(blob.display_name()));
        assert_eq!(text(&node.descriptions), blob.description(), "{blob:?}");
        let own: BTreeSet<_> =
            blob.references().map(|it| (it.reference_type, it.is_forward, it.target)).collect();
        assert_eq!(Some(&own), references.get(&id), "{blob:?}");
        class_attributes(node, &blob);
        let extras = blob.extras();
        let permissions: Vec<_> = extras.role_permissions().collect();
        let expected = node.role_permissions.iter().map(|it| (it.role.ns0().unwrap(), it.permissions));
        assert_eq!(permissions, expected.collect::<Vec<_>>(), "{blob:?}");
        assert_eq!(extras.access_restrictions, node.access_restrictions, "{blob:?}");
        let value = set.value(node, &types).unwrap().map(|value| value.encode_to_vec());
        match (value.as_deref(), extras.value) {
            (Some(_), None) => without_value.push(id),
            (one, two) => assert_eq!(one, two, "{blob:?}"),
        }
        let definition =
            types.definition_attribute(&node.node_id).unwrap().map(|value| value.encode_to_vec());
        assert_eq!(definition.as_deref(), extras.definition, "{blob:?}");
    }
    // The deprecated type dictionaries are omitted.
    assert_eq!(without_value, [7617, 8252]);
}

fn class_attributes(node: &Node, blob: &Ns0Node) {
    match &node.class {
        NodeClass::Object { event_notifier } => assert_eq!(*event_notifier, blob.event_notifier()),
        NodeClass::Variable { shape, access_level, minimum_sampling_interval, historizing, .. } => {
            assert_eq!(*access_level, u32::from(blob.access_level()), "{blob:?}");
            assert_eq!(*minimum_sampling_interval, blob.extras().minimum_sampling_interval);
            assert_eq!(*historizing, blob.historizing());
            assert_eq!(shape.data_type.ns0(), blob.data_type());
            assert_eq!(shape.value_rank, blob.value_rank());
            assert_eq!(
                shape.array_dimensions,
                blob.extras().array_dimensions().collect::<Vec<_>>(),
                "{blob:?}"
            );
        }
        NodeClass::VariableType { shape, is_abstract, .. } => {
            assert_eq!(*is_abstract, blob.is_abstract());
            assert_eq!((shape.data_type.ns0(), shape.value_rank), (blob.data_type(), blob.value_rank()));
        }
        NodeClass::Method { executable, .. } => assert_eq!(*executable, blob.executable()),
        NodeClass::ReferenceType { is_abstract, symmetric, inverse_names } => {
            assert_eq!((*is_abstract, *symmetric), (blob.is_abstract(), blob.symmetric()));
            assert_eq!(text(inverse_names), blob.inverse_name());
        }
        NodeClass::ObjectType { is_abstract } | NodeClass::DataType { is_abstract, .. } => {
            assert_eq!(*is_abstract, blob.is_abstract());
        }
        NodeClass::View { .. } => panic!("namespace 0 had no views so far"),
    }
}

#[test]
fn the_schema_knows_what_the_file_knows() {
    let (from_file, from_schema) = (dictionary(), TypeDictionary::namespace_zero());
    assert_eq!(from_file.iter().count(), from_schema.iter().count());
    for (id, data_type) in from_file.iter() {
        let other = from_schema.get(id).unwrap_or_else(|| panic!("{id}"));
        assert_eq!(
            (&data_type.base, data_type.is_abstract, &data_type.binary_encoding, &data_type.xml_encoding),
            (&other.base, other.is_abstract, &other.binary_encoding, &other.xml_encoding),
            "{id}"
        );
        match (from_file.kind(id).unwrap(), from_schema.kind(id).unwrap()) {
            (DataTypeKind::Structure(one), DataTypeKind::Structure(two)) => {
                assert_eq!(
                    (one.is_union, one.has_optional_fields),
                    (two.is_union, two.has_optional_fields),
                    "{id}"
                );
                let fields = |layout: StructureLayout| -> Vec<_> {
                    let fields = layout.fields.into_iter();
                    fields
                        .map(|it| (it.name, it.data_type, it.value_rank, it.is_optional, it.allow_sub_types))
                        .collect()
                };
                assert_eq!(fields(one), fields(two), "{id}");
            }
            (one, two) => assert_eq!(one, two, "{id}"),
        }
    }
}
