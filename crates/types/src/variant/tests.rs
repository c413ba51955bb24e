use super::*;
use crate::codec::DecodeLimits;
use proptest::prelude::*;

fn leaf() -> impl Strategy<Value = Variant> {
    prop_oneof![
        Just(Variant::Empty),
        any::<bool>().prop_map(Variant::from),
        any::<i8>().prop_map(Variant::from),
        any::<u8>().prop_map(Variant::from),
        any::<i64>().prop_map(Variant::from),
        any::<u16>().prop_map(Variant::from),
        any::<f32>().prop_map(Variant::from),
        any::<f64>().prop_map(Variant::from),
        ".{0,12}".prop_map(Variant::from),
        any::<[u8; 16]>().prop_map(|bytes| Variant::from(Guid::from_bytes(bytes))),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Variant::ByteString(bytes.into())),
        any::<(u16, u32)>().prop_map(|(index, value)| Variant::from(NodeId::numeric(index, value))),
        (any::<u16>(), "[a-z]{0,9}").prop_map(|(index, text)| Variant::from(NodeId::string(index, text))),
        any::<u32>().prop_map(|code| Variant::from(StatusCode(code))),
        ("[a-z]{2}", ".{0,9}").prop_map(|(locale, text)| Variant::from(LocalizedText::new(locale, text))),
        (any::<u16>(), ".{0,9}").prop_map(|(index, text)| Variant::from(QualifiedName::new(index, text))),
        (any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(id, body)| Variant::from(
            ExtensionObject::from_binary(NodeId::numeric(2, u32::from(id)), body)
        )),
    ]
}

fn variant() -> impl Strategy<Value = Variant> {
    leaf().prop_recursive(3, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Variant::from),
            prop::collection::vec(any::<i32>(), 0..9).prop_map(Variant::from),
            prop::collection::vec(any::<f64>(), 6)
                .prop_map(|values| Variant::matrix(values, vec![2, 3]).unwrap()),
            (inner, any::<u32>(), any::<i64>()).prop_map(|(value, status, ticks)| {
                Variant::from(DataValue {
                    value: Some(value),
                    status: Some(StatusCode(status)),
                    source_timestamp: Some(UtcTime::from_ticks(ticks)),
                    source_picoseconds: Some(7),
                    ..DataValue::default()
                })
            }),
        ]
    })
}

proptest! {
    #[test]
    fn round_trip(value in variant()) {
        let bytes = value.encode_to_vec();
        let mut decoder = Decoder::new(&bytes, DecodeLimits::DEFAULT);
        let back = Variant::decode(&mut decoder).unwrap();
        prop_assert_eq!(decoder.remaining(), 0);
        prop_assert_eq!(back.encode_to_vec(), bytes);
        prop_assert!(back.same_as(&value));
        let _ = value.to_string();
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = Variant::decode_from(&bytes, DecodeLimits::DEFAULT) {
            let again = value.encode_to_vec();
            prop_assert_eq!(Variant::decode_from(&again, DecodeLimits::DEFAULT).unwrap().encode_to_vec(), again);
        }
    }
}

#[test]
fn a_variant_is_three_words() {
    assert!(size_of::<Variant>() <= 24);
}

#[test]
fn nesting_is_bounded() {
    // An array of one Variant that contains an array of one Variant, …
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        bytes.extend_from_slice(&[24 | ARRAY_BIT, 1, 0, 0, 0]);
    }
    bytes.push(0);
    assert!(matches!(
        Variant::decode_from(&bytes, DecodeLimits::DEFAULT),
        Err(DecodeError::Limit { what: "nesting depth", .. })
    ));
}

#[test]
fn dimensions_must_match_the_length() {
    let mut bytes = vec![BuiltInType::Byte.number() | ARRAY_BIT | DIMENSIONS_BIT];
    bytes.extend_from_slice(&[6, 0, 0, 0, 1, 2, 3, 4, 5, 6]);
    bytes.extend_from_slice(&[2, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0]);
    assert!(Variant::decode_from(&bytes, DecodeLimits::DEFAULT).is_err());
    let last = bytes.len() - 4;
    bytes[last] = 3;
    let matrix = Variant::decode_from(&bytes, DecodeLimits::DEFAULT).unwrap();
    assert_eq!(matrix.to_string(), "[[1, 2, 3], [4, 5, 6]]");
}

/// The encoding of a Byte matrix with the given elements.
fn matrix_bytes(elements: &[u8], dimensions: &[i32]) -> Vec<u8> {
    let mut bytes = vec![BuiltInType::Byte.number() | ARRAY_BIT | DIMENSIONS_BIT];
    elements.encode(&mut bytes);
    dimensions.encode(&mut bytes);
    bytes
}

#[test]
fn invalid_dimensions_do_not_panic() {
    let empty = matrix_bytes(&[], &[0, i32::MAX, i32::MAX, i32::MAX]);
    let value = Variant::decode_from(&empty, DecodeLimits::DEFAULT).unwrap();
    assert_eq!(value.to_string(), "[]");
    let deep = matrix_bytes(&[1], &[1; 100_000]);
    let error = Variant::decode_from(&deep, DecodeLimits::DEFAULT).unwrap_err();
    assert!(matches!(error, DecodeError::Limit { what: "array dimensions", .. }));
}
