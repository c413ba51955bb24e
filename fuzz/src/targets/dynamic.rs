//! Structures known only at run time: both definitions and bytes are untrusted.

use crate::input::Input;
use taktwerk_schema::dynamic::{DynamicError, TypeRegistry};
use taktwerk_schema::{EnumDefinition, EnumField, StructureDefinition, StructureField, StructureType};
use taktwerk_types::{DecodeLimits, ExtensionObject, NodeId, Variant};

/// Number of types that an input defines.
const TYPES: u32 = 4;

/// Definitions of a few types that may use each other, then values of these types.
pub fn structure(data: &[u8]) {
    let mut input = Input::new(data);
    let mut types = TypeRegistry::new();
    for number in 1..=TYPES {
        define(&mut types, number, &mut input);
    }
    let _ = types.missing();
    for number in 1..=TYPES {
        let body = input.piece().to_vec();
        round_trip(&types, &ExtensionObject::from_binary(encoding(number), body));
    }
    // Again with all remaining bytes, for long bodies.
    round_trip(&types, &ExtensionObject::from_binary(encoding(1), input.rest().to_vec()));
}

fn data_type(number: u32) -> NodeId {
    NodeId::numeric(2, number)
}

fn encoding(number: u32) -> NodeId {
    NodeId::numeric(2, 100 + number)
}

fn define(types: &mut TypeRegistry, number: u32, input: &mut Input<'_>) {
    match input.below(4) {
        0 => {
            let fields = (0..input.below(4)).map(|_| EnumField {
                value: i64::from(input.byte()),
                name: "value".into(),
                ..EnumField::default()
            });
            let definition = EnumDefinition { fields: fields.collect() };
            let base = NodeId::numeric(0, input.pick(&[29, 7, 3, 12755]));
            types.add_enumeration(data_type(number), "Enumeration", &base, &definition);
        }
        _ => {
            let structure_type = StructureType(input.below(5) as i32);
            let fields: Vec<StructureField> = (0..input.below(6)).map(|at| field(at, input)).collect();
            let definition = StructureDefinition {
                default_encoding_id: encoding(number),
                structure_type,
                fields,
                ..StructureDefinition::default()
            };
            let _ = types.add_structure(data_type(number), "Structure", &definition);
        }
    }
}

fn field(at: usize, input: &mut Input<'_>) -> StructureField {
    let choice = input.byte();
    let data_type = match u32::from(choice) {
        own @ 0..TYPES => data_type(own + 1),
        // Built-in types, abstract types, and structures of namespace 0.
        choice => NodeId::numeric(0, choice - TYPES),
    };
    StructureField {
        name: ["a", "b", "c", "d", "e", "a"][at].into(),
        data_type,
        value_rank: input.pick(&[-1, -1, 1, 1, 2, 0, -2, -3, i32::MAX]),
        is_optional: input.flag(),
        ..StructureField::default()
    }
}

/// Encoding a decoded value and decoding it again gives the same value.
pub(crate) fn round_trip(types: &TypeRegistry, object: &ExtensionObject) {
    let Ok(value) = types.decode(object, DecodeLimits::DEFAULT) else { return };
    let _ = types.print(&Variant::from(object.clone())).to_string();
    let again = match types.encode(&value) {
        Ok(again) => again,
        // A duplicate field name is ambiguous, so this error is correct.
        Err(DynamicError::UnknownField { .. } | DynamicError::NotOneField(_)) => return,
        Err(error) => panic!("what was decoded cannot be encoded: {error}\n{value:?}"),
    };
    let second = types.decode(&again, DecodeLimits::DEFAULT).expect("what we encode can be decoded");
    let third = types.encode(&second).expect("it was encoded before");
    assert_eq!(third.binary(), again.binary());
}
