//! The binary decoder: no panic, and a decoded value survives encoding and decoding.

use super::dynamic;
use crate::input::Input;
use core::fmt::Debug;
use taktwerk_schema::dynamic::TypeRegistry;
use taktwerk_types::{
    Array, DataValue, Decode, DecodeLimits, Decoder, DiagnosticInfo, Encode, ExtensionObject, Variant,
};

/// A Variant; for every second input, a DataValue or DiagnosticInfo, which nest with it.
pub fn variant(data: &[u8]) {
    let mut input = Input::new(data);
    match input.below(4) {
        0 => round_trip::<DataValue>(input.rest()),
        1 => round_trip::<DiagnosticInfo>(input.rest()),
        _ => {
            round_trip::<Variant>(input.rest());
            if let Ok(value) = Variant::decode_from(input.rest(), LIMITS) {
                // Operations of tools and logs on a value.
                let _ = (
                    value.to_string(),
                    value.type_name(),
                    value.as_f64(),
                    value.as_array().map(Array::shape),
                );
                assert!(value.same_as(&value.clone()));
            }
        }
    }
}

/// A structure of namespace 0, selected by two bytes.
pub fn any_structure(data: &[u8]) {
    let mut input = Input::new(data);
    let (_, target) = STRUCTURES[usize::from(input.u16()) % STRUCTURES.len()];
    target(input.rest());
}

/// An ExtensionObject, with its body decoded according to its type id.
pub fn extension_object(data: &[u8]) {
    round_trip::<ExtensionObject>(data);
    let Ok(object) = ExtensionObject::decode_from(data, LIMITS) else { return };
    let Some(body) = object.binary() else { return };
    let id = object.type_id.ns0().unwrap_or_default();
    if let Some(description) = taktwerk_schema::description::structure_by_encoding(id) {
        let (_, target) = STRUCTURES
            .iter()
            .find(|(name, _)| *name == description.name)
            .expect("every described structure is generated");
        target(body);
        // Decoding by description must give the same result as decoding by type.
        let types = TypeRegistry::new();
        dynamic::round_trip(&types, &object);
    }
}

const LIMITS: DecodeLimits = DecodeLimits::DEFAULT;

macro_rules! table {
    ($($name:ident),* $(,)?) => {
        /// All structures of namespace 0 by name.
        pub const STRUCTURES: &[(&str, fn(&[u8]))] =
            &[$((stringify!($name), round_trip::<taktwerk_schema::$name> as fn(&[u8]))),*];
    };
}
taktwerk_schema::for_each_structure!(table);

/// Compares encodings instead of values, because NaN is not equal to itself.
fn round_trip<T: for<'a> Decode<'a> + Encode + Debug>(data: &[u8]) {
    let mut decoder = Decoder::new(data, LIMITS);
    let Ok(value) = T::decode(&mut decoder) else { return };
    assert!(data.len() - decoder.remaining() >= T::MIN_LEN, "MIN_LEN is too large");
    let encoded = value.encode_to_vec();
    let mut decoder = Decoder::new(&encoded, LIMITS);
    let again = T::decode(&mut decoder).expect("what we encode can be decoded");
    assert_eq!(decoder.remaining(), 0, "what we encode is decoded to its end");
    assert_eq!(again.encode_to_vec(), encoded);
}
