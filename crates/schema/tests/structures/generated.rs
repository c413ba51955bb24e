//! Every generated structure through the codec: default values, random values, and invalid bytes.

use crate::filler::Filler;
use proptest::prelude::*;
use taktwerk_schema::*;
use taktwerk_types::{Decode, DecodeLimits, Decoder, Encode};

fn decode_all<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Option<(T, usize)> {
    let mut decoder = Decoder::new(bytes, DecodeLimits::DEFAULT);
    let value = T::decode(&mut decoder).ok()?;
    Some((value, bytes.len() - decoder.remaining()))
}

/// Encodes, decodes and encodes again; then truncates the bytes.
fn survives<T>(value: &T, name: &str)
where
    T: Encode + for<'a> Decode<'a> + PartialEq + std::fmt::Debug,
{
    let bytes = value.encode_to_vec();
    assert!(
        bytes.len() >= T::MIN_LEN,
        "{name}: MIN_LEN is {} but {value:?} takes {}",
        T::MIN_LEN,
        bytes.len()
    );
    let (back, used) = decode_all::<T>(&bytes).unwrap_or_else(|| panic!("{name}: {value:?} does not decode"));
    assert_eq!(used, bytes.len(), "{name}");
    assert_eq!(back.encode_to_vec(), bytes, "{name}: {value:?}");
    for len in (0..bytes.len()).step_by((bytes.len() / 64).max(1)) {
        assert!(
            decode_all::<T>(&bytes[..len]).is_none(),
            "{name}: decodes from {len} of {} bytes",
            bytes.len()
        );
    }
}

/// Round-trips random values, encoded from the type's description.
fn filled<T>(name: &str)
where
    T: Encode + for<'a> Decode<'a> + PartialEq + std::fmt::Debug,
{
    let structure = description::structures().iter().find(|structure| structure.name == name).unwrap();
    for seed in 0..40 {
        let mut bytes = Vec::new();
        Filler::new(seed).structure(structure, &mut bytes);
        let (value, used) =
            decode_all::<T>(&bytes).unwrap_or_else(|| panic!("{name}: {bytes:?} does not decode"));
        assert_eq!(used, bytes.len(), "{name}: the description writes more than the type reads");
        survives(&value, name);
    }
}

macro_rules! every_structure {
    ($($name:ident),* $(,)?) => {
        #[test]
        fn default_values_survive() {
            $(survives(&$name::default(), stringify!($name));)*
        }

        #[test]
        fn filled_values_survive() {
            $(filled::<$name>(stringify!($name));)*
        }

        fn decode_as_everything(bytes: &[u8]) {
            $(if let Some((value, _)) = decode_all::<$name>(bytes) {
                let again = value.encode_to_vec();
                let (back, _) = decode_all::<$name>(&again).unwrap();
                assert_eq!(back.encode_to_vec(), again, stringify!($name));
            })*
        }
    };
}
for_each_structure!(every_structure);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        decode_as_everything(&bytes);
    }
}

#[test]
fn ids_are_those_of_the_specification() {
    use taktwerk_types::Structure;
    assert_eq!((ReadRequest::DATA_TYPE_ID, ReadRequest::BINARY_ENCODING_ID), (629, 631));
    assert_eq!(ids::encoding_ids::READ_REQUEST_BINARY, 631);
    assert_eq!((Argument::DATA_TYPE_ID, Argument::BINARY_ENCODING_ID), (296, 298));
    assert_eq!(message_name(631), Some("ReadRequest"));
    assert_eq!(message_name(397), Some("ServiceFault"));
    assert_eq!(message_name(298), None);
}

#[test]
fn headers_are_reached_through_the_traits() {
    use taktwerk_schema::service::{Request, Response};
    fn answer<R: Request>(request: &R) -> R::Response
    where
        R::Response: Default,
    {
        let mut response = R::Response::default();
        response.header_mut().request_handle = request.header().request_handle;
        response
    }
    let mut request = BrowseRequest::default();
    request.header_mut().request_handle = 7;
    assert_eq!(answer(&request).header().request_handle, 7);
}

#[test]
fn optional_fields_follow_their_mask() {
    let record = LogRecord { severity: 9, source_name: Some("boiler".into()), ..LogRecord::default() };
    let bytes = record.encode_to_vec();
    assert_eq!(bytes[..4], [4, 0, 0, 0], "SourceName is the third optional field");
    assert_eq!(LogRecord::decode_from(&bytes, DecodeLimits::DEFAULT), Ok(record));
    let mut unknown = bytes;
    unknown[3] = 0x80;
    assert!(LogRecord::decode_from(&unknown, DecodeLimits::DEFAULT).is_err());
}

#[test]
fn unknown_enumeration_values_survive() {
    let class = NodeClass(4711);
    assert_eq!(NodeClass::decode_from(&class.encode_to_vec(), DecodeLimits::DEFAULT), Ok(class));
    assert_eq!((class.name(), format!("{class:?}")), (None, "4711".to_owned()));
    assert_eq!(format!("{}", NodeClass::VARIABLE), "Variable");
}

#[test]
fn option_sets_print_their_bits() {
    let access = AccessLevelType::CURRENT_READ | AccessLevelType::CURRENT_WRITE;
    assert_eq!(access.bits(), 3);
    assert_eq!(access.to_string(), "CurrentRead|CurrentWrite");
    assert!(
        access.contains(AccessLevelType::CURRENT_READ) && !access.contains(AccessLevelType::HISTORY_READ)
    );
    assert_eq!(AccessLevelType(0x83).to_string(), "CurrentRead|CurrentWrite|0x80");
    assert_eq!(AccessLevelType::EMPTY.to_string(), "0");
}

#[test]
fn descriptions_agree_with_the_types() {
    use taktwerk_schema::description::StructureKind;
    use taktwerk_types::Structure;
    let read = description::structure(ReadRequest::DATA_TYPE_ID).unwrap();
    assert_eq!((read.name, read.binary_encoding_id, read.kind), ("ReadRequest", 631, StructureKind::Plain));
    assert_eq!(description::structure_by_encoding(631), Some(read));
    let fields: Vec<_> = read.fields.iter().map(|field| (field.name, field.value_rank)).collect();
    assert_eq!(
        fields,
        [("RequestHeader", -1), ("MaxAge", -1), ("TimestampsToReturn", -1), ("NodesToRead", 1)]
    );
    assert!(description::structures().windows(2).all(|pair| pair[0].data_type_id < pair[1].data_type_id));
    assert!(description::enumerations().windows(2).all(|pair| pair[0].data_type_id < pair[1].data_type_id));
    for structure in description::structures() {
        for field in structure.fields {
            assert!(description::built_in_type(field.type_id).is_some(), "{}.{}", structure.name, field.name);
        }
    }
}
