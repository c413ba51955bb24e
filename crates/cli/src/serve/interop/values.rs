//! The initial values of the interop node set, as `interop/TESTNODES.md` lists them.

use taktwerk_schema::{EUInformation, Range};
use taktwerk_types::{
    BuiltInType, ByteString, ExpandedNodeId, Guid, LocalizedText, NodeId, QualifiedName, StatusCode,
    UaString, UtcTime, Variant, XmlElement,
};

/// A type of the table with its scalar and array values.
#[derive(Debug)]
pub(crate) struct TestValue {
    /// The built-in type; `Variant` stands for BaseDataType.
    pub(crate) kind: BuiltInType,
    /// The value of `s=scalar/<Type>`.
    pub(crate) scalar: Variant,
    /// The value of `s=array/<Type>`.
    pub(crate) array: Variant,
}

const GUID: Guid = Guid::from_bytes([
    0x72, 0x96, 0x2b, 0x91, 0xfa, 0x75, 0x4a, 0xe6, 0x8d, 0x28, 0xb4, 0x04, 0xdc, 0x7d, 0xaf, 0x63,
]);

/// All types of the table in its order; `ns` is the index of the interop namespace.
pub(crate) fn table(ns: u16) -> Vec<TestValue> {
    let row = |kind, scalar: Variant, array: Variant| TestValue { kind, scalar, array };
    vec![
        row(BuiltInType::Boolean, true.into(), vec![true, false, true, false, true].into()),
        row(BuiltInType::SByte, (-12i8).into(), vec![i8::MIN, -1, 0, 1, i8::MAX].into()),
        row(BuiltInType::Byte, 200u8.into(), vec![0u8, 1, 127, 128, 255].into()),
        row(BuiltInType::Int16, (-12345i16).into(), vec![i16::MIN, -1, 0, 1, i16::MAX].into()),
        row(BuiltInType::UInt16, 54321u16.into(), vec![0u16, 1, 32767, 32768, 65535].into()),
        row(BuiltInType::Int32, (-123_456_789i32).into(), vec![i32::MIN, -1, 0, 1, i32::MAX].into()),
        row(
            BuiltInType::UInt32,
            3_123_456_789u32.into(),
            vec![0u32, 1, i32::MAX as u32, 1 << 31, u32::MAX].into(),
        ),
        row(
            BuiltInType::Int64,
            (-1_234_567_890_123_456_789i64).into(),
            vec![i64::MIN, -1, 0, 1, i64::MAX].into(),
        ),
        row(
            BuiltInType::UInt64,
            12_345_678_901_234_567_890u64.into(),
            vec![0u64, 1, i64::MAX as u64, 1 << 63, u64::MAX].into(),
        ),
        row(BuiltInType::Float, 3.5f32.into(), vec![-1.5f32, 0.0, 0.25, 1.5, 65536.0].into()),
        row(BuiltInType::Double, std::f64::consts::E.into(), vec![-1.5, 0.0, 0.25, 1.5, 1e300].into()),
        row(
            BuiltInType::String,
            "Grüße, Welt! ☃".into(),
            ["one", "zwei", "très", "четыре", "五"].map(UaString::from).to_vec().into(),
        ),
        row(BuiltInType::DateTime, leap_day().into(), (0..5).map(hour).collect::<Vec<_>>().into()),
        row(BuiltInType::Guid, GUID.into(), (0x60..0x65).map(guid_ending).collect::<Vec<_>>().into()),
        row(
            BuiltInType::ByteString,
            ByteString::from(vec![0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff]).into(),
            (0u8..5).map(|k| ByteString::from(vec![k; usize::from(k) + 1])).collect::<Vec<_>>().into(),
        ),
        row(
            BuiltInType::XmlElement,
            XmlElement::from("<taktwerk>1</taktwerk>").into(),
            (0..5).map(|k| XmlElement::from(format!("<v>{k}</v>").as_str())).collect::<Vec<_>>().into(),
        ),
        row(BuiltInType::NodeId, answer(ns).into(), node_ids(ns).into()),
        row(
            BuiltInType::ExpandedNodeId,
            remote(1, Some("urn:example:remote"), NodeId::numeric(0, 77)).into(),
            expanded(ns).into(),
        ),
        row(
            BuiltInType::StatusCode,
            StatusCode(0x4092_0000).into(),
            [0, 0x4000_0000, 0x8000_0000, 0x808D_0000, 0x4092_0000].map(StatusCode).to_vec().into(),
        ),
        row(
            BuiltInType::QualifiedName,
            QualifiedName::new(ns, "qualified").into(),
            [(ns, "q0"), (ns, "q1"), (ns, "q2"), (ns, "q3"), (0, "q4")]
                .map(|(ns, name)| QualifiedName::new(ns, name))
                .to_vec()
                .into(),
        ),
        row(
            BuiltInType::LocalizedText,
            LocalizedText::new("en", "localized").into(),
            vec![
                LocalizedText::new("en", "t0"),
                LocalizedText::new("de", "t1"),
                LocalizedText::new("en", "t2"),
                LocalizedText::new("de", "t3"),
                LocalizedText::from_text("t4"),
            ]
            .into(),
        ),
        row(
            BuiltInType::Variant,
            "any".into(),
            vec![Variant::from(true), (-7i32).into(), 2.5f64.into(), "mixed".into(), 9u8.into()].into(),
        ),
    ]
}

fn leap_day() -> UtcTime {
    let second = UtcTime::from_civil(2024, 2, 29, 12, 34, 56).unwrap_or_default();
    second.plus(std::time::Duration::from_micros(789_012))
}

fn hour(hour: u32) -> UtcTime {
    UtcTime::from_civil(2024, 1, 1, hour, 0, 0).unwrap_or_default()
}

fn guid_ending(last: u8) -> Guid {
    let mut bytes = *GUID.as_bytes();
    bytes[15] = last;
    Guid::from_bytes(bytes)
}

fn answer(ns: u16) -> NodeId {
    NodeId::string(ns, "the.answer")
}

fn node_ids(ns: u16) -> Vec<NodeId> {
    vec![
        NodeId::numeric(0, 84),
        NodeId::numeric(ns, 1000),
        answer(ns),
        NodeId::guid(ns, GUID),
        NodeId::opaque(ns, vec![1u8, 2]),
    ]
}

fn remote(server_index: u32, uri: Option<&str>, node_id: NodeId) -> ExpandedNodeId {
    ExpandedNodeId { node_id, namespace_uri: uri.into(), server_index }
}

fn expanded(ns: u16) -> Vec<ExpandedNodeId> {
    let uri = Some("urn:example:remote");
    vec![
        NodeId::numeric(0, 84).into(),
        answer(ns).into(),
        remote(0, uri, NodeId::numeric(0, 77)),
        remote(1, uri, NodeId::string(0, "far")),
        remote(2, None, NodeId::numeric(0, 5)),
    ]
}

/// The value of `s=matrix/Double`.
pub(crate) fn matrix() -> Variant {
    let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    Variant::matrix(values, vec![2, 3]).unwrap_or_default()
}

/// The value of `s=struct/Range` and of `s=analog/EURange`.
pub(crate) fn range() -> Variant {
    Variant::from_structure(&Range { low: 0.0, high: 100.0 })
}

/// The value of `s=struct/EUInformation`.
pub(crate) fn unit() -> Variant {
    Variant::from_structure(&EUInformation {
        namespace_uri: "http://www.opcfoundation.org/UA/units/un/cefact".into(),
        unit_id: 4_408_652,
        display_name: LocalizedText::new("en", "°C"),
        description: LocalizedText::new("en", "degree Celsius"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete_and_typed() {
        let table = table(2);
        assert_eq!(table.len(), 22);
        for row in &table {
            let array = row.array.as_array().unwrap();
            assert_eq!((array.values.element_type(), array.values.len()), (row.kind, 5), "{:?}", row.kind);
            if row.kind != BuiltInType::Variant {
                assert_eq!(row.scalar.built_in_type(), Some(row.kind));
            }
        }
        let text = |kind| table.iter().find(|row| row.kind == kind).unwrap().scalar.to_string();
        assert_eq!(text(BuiltInType::DateTime), "2024-02-29T12:34:56.789012Z");
        assert_eq!(text(BuiltInType::ExpandedNodeId), "svr=1;nsu=urn:example:remote;i=77");
        assert_eq!(text(BuiltInType::Guid), "72962b91-fa75-4ae6-8d28-b404dc7daf63");
        assert_eq!(matrix().to_string(), "[[1, 2, 3], [4, 5, 6]]");
    }
}
