use super::*;
use crate::ids::{data_type_ids, object_ids, reference_type_ids, variable_ids};
use crate::{EnumDefinition, StructureDefinition};
use taktwerk_types::{Decode, DecodeLimits, Decoder, ExtensionObject, Variant};

#[test]
fn every_reference_has_its_inverse() {
    let ns0 = Ns0::get();
    let mut count = 0;
    for node in ns0.nodes() {
        let mut previous = None;
        for reference in node.references() {
            count += 1;
            let key = (reference.reference_type, !reference.is_forward, reference.target);
            assert!(previous < Some(key), "{node:?} {reference:?}: sorted, and no reference stands twice");
            previous = Some(key);
            assert!(ns0.is_subtype_of(reference.reference_type, reference_type_ids::REFERENCES), "{node:?}");
            let back = Ns0Reference {
                reference_type: reference.reference_type,
                is_forward: !reference.is_forward,
                target: node.id(),
            };
            assert!(ns0.contains(reference.target), "{node:?} {reference:?}");
            assert!(ns0.references(reference.target).any(|other| other == back), "{node:?} {reference:?}");
        }
        assert!(node.references().len() > 0, "{node:?} is not connected to anything");
    }
    assert_eq!(count, ns0.reference_count());
}

#[test]
fn every_attribute_reads() {
    let ns0 = Ns0::get();
    let mut values = 0;
    for node in ns0.nodes() {
        assert_eq!(ns0.node(node.id()).map(|other| other.ordinal()), Some(node.ordinal()));
        assert!(!node.browse_name().is_empty() && !node.display_name().is_empty(), "{node:?}");
        assert!(node.class().name().is_some(), "{node:?}");
        let extras = node.extras();
        if let Some(bytes) = extras.value {
            let mut decoder = Decoder::new(bytes, DecodeLimits::DEFAULT);
            let value = Variant::decode(&mut decoder).unwrap();
            assert!(!value.is_empty() && decoder.remaining() == 0, "{node:?}");
            values += 1;
        }
        if let Some(bytes) = extras.definition {
            let object = ExtensionObject::decode_from(bytes, DecodeLimits::DEFAULT).unwrap();
            let known =
                object.decode::<StructureDefinition>().is_ok() || object.decode::<EnumDefinition>().is_ok();
            assert!(known && node.class() == NodeClass::DATA_TYPE, "{node:?}");
        }
        if let Some(data_type) = node.data_type() {
            assert!(ns0.is_subtype_of(data_type, data_type_ids::BASE_DATA_TYPE), "{node:?}");
        }
        if matches!(node.class(), NodeClass::OBJECT | NodeClass::VARIABLE) {
            let type_definition = node.type_definition().and_then(|id| ns0.node(id));
            assert!(type_definition.is_some(), "{node:?} has no TypeDefinition");
        }
        for (role, _) in extras.role_permissions() {
            assert!(ns0.contains(role), "{node:?}");
        }
    }
    assert!(values > 1000, "{values}");
}

#[test]
fn types_have_one_root_and_no_circle() {
    let ns0 = Ns0::get();
    let roots: Vec<u32> = ns0
        .nodes()
        .filter(|node| node.is_type() && node.supertype().is_none())
        .map(|node| node.id())
        .collect();
    // BaseDataType, References, BaseObjectType, BaseVariableType.
    assert_eq!(roots, [24, 31, 58, 62]);
    for node in ns0.nodes().filter(Ns0Node::is_type) {
        assert!(roots.iter().any(|root| ns0.is_subtype_of(node.id(), *root)), "{node:?}");
    }
}

#[test]
fn well_known_nodes() {
    let ns0 = Ns0::get();
    let time = ns0.node(variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME).unwrap();
    assert_eq!((time.id(), time.browse_name(), time.class()), (2258, "CurrentTime", NodeClass::VARIABLE));
    assert_eq!(time.data_type(), Some(data_type_ids::UTC_TIME));
    assert_eq!((time.value_rank(), time.access_level()), (-1, 1));
    let server = ns0.node(object_ids::SERVER).unwrap();
    assert_eq!(server.event_notifier(), 1);
    assert!(server.references().any(|reference| reference
        == Ns0Reference { reference_type: reference_type_ids::ORGANIZES, is_forward: false, target: 85 }));
    let organizes = ns0.node(reference_type_ids::ORGANIZES).unwrap();
    assert_eq!(organizes.inverse_name(), Some("OrganizedBy"));
    assert!(ns0.is_subtype_of(reference_type_ids::ORGANIZES, reference_type_ids::HIERARCHICAL_REFERENCES));
    assert!(!ns0.is_subtype_of(reference_type_ids::ORGANIZES, reference_type_ids::HAS_CHILD));
    assert!(ns0.is_subtype_of(data_type_ids::DURATION, data_type_ids::NUMBER));
    assert!(ns0.node(0).is_none() && ns0.node(u32::MAX).is_none() && ns0.node(ns0.max_id() + 1).is_none());
    assert_eq!(ns0.references(0).len(), 0);
}

#[test]
fn the_blob_is_small() {
    assert!(BLOB.len() < 500_000, "{}", BLOB.len());
}
