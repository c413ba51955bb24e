use super::parse::{parse, parse_bytes};
use super::*;
use crate::*;
use proptest::prelude::*;

const URIS: [&str; 3] = ["http://opcfoundation.org/UA/", "urn:own", "http://example.org/a;b"];

fn context(verbose: bool) -> JsonContext<'static> {
    JsonContext { verbose, namespaces: &URIS, structures: None }
}

fn text<T: JsonEncode>(value: &T, verbose: bool) -> String {
    let mut out = Vec::new();
    value.encode_json(&context(verbose), &mut out);
    String::from_utf8(out).unwrap()
}

fn read<T: JsonDecode>(json: &str) -> Result<T, JsonError> {
    T::decode_json(&parse(json, JsonLimits::default())?, &context(false))
}

#[test]
fn forms_of_part_6() {
    assert_eq!(text(&Variant::from(5i64), false), r#"{"UaType":8,"Value":"5"}"#);
    assert_eq!(text(&Variant::from(1.5f32), false), r#"{"UaType":10,"Value":1.5}"#);
    assert_eq!(text(&Variant::from(f64::NAN), false), r#"{"UaType":11,"Value":"NaN"}"#);
    assert_eq!(text(&Variant::from(vec![1u8, 2]), false), r#"{"UaType":3,"Value":[1,2]}"#);
    let matrix = Variant::matrix(vec![1i32, 2, 3, 4], vec![2, 2]).unwrap();
    assert_eq!(text(&matrix, false), r#"{"UaType":6,"Value":[1,2,3,4],"Dimensions":[2,2]}"#);
    assert_eq!(text(&StatusCode::BAD_NODE_ID_UNKNOWN, false), r#"{"Code":2150891520}"#);
    let verbose = r#"{"Code":2150891520,"Symbol":"BadNodeIdUnknown"}"#;
    assert_eq!(text(&StatusCode::BAD_NODE_ID_UNKNOWN, true), verbose);
    assert_eq!(text(&NodeId::string(1, "a"), false), r#""nsu=urn:own;s=a""#);
    assert_eq!(text(&NodeId::string(2, "a"), false), r#""nsu=http://example.org/a%3Bb;s=a""#);
    assert_eq!(text(&NodeId::numeric(7, 1), false), r#""ns=7;i=1""#);
    assert_eq!(text(&QualifiedName::new(1, "n"), false), r#""nsu=urn:own;n""#);
    assert_eq!(text(&LocalizedText::from_text("t"), false), r#"{"Text":"t"}"#);
    assert_eq!(text(&LocalizedText::from_text("t"), true), r#"{"Locale":null,"Text":"t"}"#);
    assert_eq!(text(&ByteString::from(&b"foo"[..]), false), r#""Zm9v""#);
    assert_eq!(text(&UtcTime::NULL, false), r#""0001-01-01T00:00:00Z""#);
    let object = ExtensionObject::from_binary(NodeId::numeric(1, 5), vec![1, 2, 3]);
    assert_eq!(text(&object, false), r#"{"UaTypeId":"nsu=urn:own;i=5","UaEncoding":1,"UaBody":"AQID"}"#);
    let value = DataValue { status: Some(StatusCode::UNCERTAIN), ..DataValue::new(true) };
    assert_eq!(text(&value, false), r#"{"UaType":1,"Value":true,"Status":{"Code":1073741824}}"#);
    assert_eq!(text(&Variant::Empty, false), "null");
}

#[test]
fn readers_are_generous() {
    assert_eq!(read::<u64>("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(read::<u64>(r#""18446744073709551615""#), Ok(u64::MAX));
    assert_eq!(read::<StatusCode>("2150891520"), Ok(StatusCode::BAD_NODE_ID_UNKNOWN));
    assert_eq!(read::<StatusCode>("{}"), Ok(StatusCode::GOOD));
    assert_eq!(read::<LocalizedText>(r#""plain""#), Ok("plain".into()));
    assert_eq!(read::<Variant>(r#" { "Value" : 1 , "UaType" : 6 } "#), Ok(1i32.into()));
    assert_eq!(read::<Variant>(r#"{"UaType":6}"#), Ok(0i32.into()));
    assert_eq!(read::<NodeId>(r#""nsu=urn:own;i=5""#), Ok(NodeId::numeric(1, 5)));
    assert!(read::<NodeId>(r#""nsu=urn:unknown;i=5""#).is_err());
    assert_eq!(read::<UaString>(r#""a\u00e4\ud83d\ude00\n\"""#), Ok("aä😀\n\"".into()));
}

#[test]
fn nonsense_is_refused() {
    for json in [
        "",
        "{",
        "[",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "01",
        "1.",
        "1e",
        "-",
        "+1",
        "nul",
        "\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\u12\"",
        "\"\n\"",
        "1 2",
        "[1 2]",
        "\"\\u+123\"",
    ] {
        assert!(parse(json, JsonLimits::default()).is_err(), "{json}");
    }
    assert!(parse_bytes(&[b'"', 0xff, b'"'], JsonLimits::default()).is_err());
    assert!(read::<u8>("256").is_err());
    assert!(read::<u8>("1.5").is_err());
    assert!(read::<Variant>(r#"{"UaType":26,"Value":1}"#).is_err());
    assert!(read::<Variant>(r#"{"UaType":6,"Value":[1,2],"Dimensions":[2,2]}"#).is_err());
    assert!(read::<Variant>(r#"{"UaType":6,"Value":[1,2],"Dimensions":[4294967295,4294967295]}"#).is_err());
}

#[test]
fn limits_hold() {
    let deep = "[".repeat(100_000);
    let limit = parse(&deep, JsonLimits::default());
    assert_eq!(limit, Err(JsonError::Limit { what: "nesting", limit: 256 }));
    let wide = format!("[{}1]", "1,".repeat(100));
    let limits = JsonLimits { values_max: 50, ..JsonLimits::default() };
    assert_eq!(parse(&wide, limits), Err(JsonError::Limit { what: "values", limit: 50 }));
    assert!(parse(&wide, JsonLimits::default()).is_ok());
}

/// Part 6 §5.2.2.12 requires 100 levels. Decoding threads have 1 MiB of stack, and builds without optimization have the
/// largest frames.
#[test]
fn a_hundred_levels_fit_a_small_stack() {
    let deep = |levels: usize| (1..levels).fold(Variant::from(7u8), |inner, _| Variant::from(vec![inner]));
    let test = move || {
        for levels in [2, 50, 100] {
            let value = deep(levels);
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            assert_eq!(Variant::decode_from(&bytes, DecodeLimits::DEFAULT), Ok(value.clone()), "{levels}");
            let mut json = Vec::new();
            value.encode_json(&JsonContext::default(), &mut json);
            let text = core::str::from_utf8(&json).unwrap();
            assert_eq!(read::<Variant>(text), Ok(value), "{levels}");
        }
        let mut bytes = Vec::new();
        deep(102).encode(&mut bytes);
        let limit = Variant::decode_from(&bytes, DecodeLimits::DEFAULT);
        assert!(matches!(limit, Err(DecodeError::Limit { limit: 100, .. })), "{limit:?}");
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(test).unwrap().join().unwrap();
}

fn any_scalar() -> impl Strategy<Value = Variant> {
    prop_oneof![
        any::<bool>().prop_map(Variant::from),
        any::<i8>().prop_map(Variant::from),
        any::<u8>().prop_map(Variant::from),
        any::<i16>().prop_map(Variant::from),
        any::<u16>().prop_map(Variant::from),
        any::<i32>().prop_map(Variant::from),
        any::<u32>().prop_map(Variant::from),
        any::<i64>().prop_map(Variant::from),
        any::<u64>().prop_map(Variant::from),
        any::<f32>().prop_map(Variant::from),
        any::<f64>().prop_map(Variant::from),
        any::<String>().prop_map(Variant::from),
        any::<[u8; 16]>().prop_map(|bytes| Guid::from_bytes(bytes).into()),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| ByteString::from(bytes).into()),
        (0u16..4, any::<u32>()).prop_map(|(index, id)| NodeId::numeric(index, id).into()),
        (0u16..4, "[a-z;:%]{1,8}").prop_map(|(index, id)| NodeId::string(index, &*id).into()),
        (1u16..4, "[a-z]{1,8}").prop_map(|(index, name)| QualifiedName::new(index, &*name).into()),
        any::<u32>().prop_map(|code| StatusCode(code).into()),
        (any::<String>(), any::<String>())
            .prop_map(|(locale, text)| { LocalizedText::new(&*locale, &*text).into() }),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(|body| ExtensionObject::from_binary(
            NodeId::numeric(0, 7),
            body
        )
        .into()),
    ]
}

proptest! {
    #[test]
    fn values_come_back(value in any_scalar(), verbose in any::<bool>(), status in proptest::option::of(1u32..)) {
        let json = text(&value, verbose);
        prop_assert!(read::<Variant>(&json).unwrap().same_as(&value), "{}", json);
        let whole = DataValue {
            status: status.map(StatusCode),
            source_timestamp: Some(UtcTime::from_ticks(133_000_000_000_000_010)),
            ..DataValue::new(value.clone())
        };
        let json = text(&whole, verbose);
        prop_assert!(read::<DataValue>(&json).unwrap().same_as(&whole), "{}", json);
        let array = Variant::from(vec![value.clone(), Variant::Empty, value]);
        let json = text(&array, verbose);
        prop_assert!(read::<Variant>(&json).unwrap().same_as(&array), "{}", json);
    }

    #[test]
    fn any_text_does_not_panic(json in any::<String>()) {
        let _ = read::<Variant>(&json);
    }

    #[test]
    fn near_json_does_not_panic(json in "[\\[\\]{}:,\"0-9a-z\\\\ .eE+-]{0,40}") {
        let _ = read::<DataValue>(&json);
    }
}
