//! The interop test nodes of `interop/TESTNODES.md`: expected values, and values to write.

use std::time::Duration;
use taktwerk::schema::{EUInformation, Range};
use taktwerk::types::{
    ByteString, ExpandedNodeId, Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, UtcTime,
    Variant, XmlElement,
};

/// The namespace of the test nodes.
pub(crate) const NAMESPACE_URI: &str = "urn:taktwerk:interop";

/// Number of types.
pub(crate) const TYPES: usize = 22;

/// A type with the values of its scalar and its array.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The DataType's numeric id in namespace 0.
    pub(crate) data_type: u32,
    pub(crate) scalar: Variant,
    /// The value that tests write to the scalar.
    pub(crate) other: Variant,
    pub(crate) array: Variant,
    /// The array in reverse order.
    pub(crate) reversed: Variant,
}

fn row<T>(name: &'static str, data_type: u32, scalar: T, array: [T; 5]) -> Row
where
    T: Clone,
    Variant: From<T> + From<Vec<T>>,
{
    let reversed: Vec<T> = array.iter().rev().cloned().collect();
    Row {
        name,
        data_type,
        scalar: scalar.into(),
        other: array[1].clone().into(),
        array: array.to_vec().into(),
        reversed: reversed.into(),
    }
}

/// All types; `ns` is the index of the interop namespace.
pub(crate) fn rows(ns: u16) -> [Row; TYPES] {
    [
        row("Boolean", 1, true, [true, false, true, false, true]),
        row("SByte", 2, -12i8, [i8::MIN, -1, 0, 1, i8::MAX]),
        row("Byte", 3, 200u8, [0, 1, 127, 128, 255]),
        row("Int16", 4, -12_345i16, [i16::MIN, -1, 0, 1, i16::MAX]),
        row("UInt16", 5, 54_321u16, [0, 1, 0x7fff, 0x8000, 0xffff]),
        row("Int32", 6, -123_456_789i32, [i32::MIN, -1, 0, 1, i32::MAX]),
        row("UInt32", 7, 3_123_456_789u32, [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX]),
        row("Int64", 8, -1_234_567_890_123_456_789i64, [i64::MIN, -1, 0, 1, i64::MAX]),
        row("UInt64", 9, 12_345_678_901_234_567_890u64, [0, 1, u64::MAX >> 1, 1 << 63, u64::MAX]),
        row("Float", 10, 3.5f32, [-1.5, 0.0, 0.25, 1.5, 65_536.0]),
        row("Double", 11, std::f64::consts::E, [-1.5, 0.0, 0.25, 1.5, 1e300]),
        row(
            "String",
            12,
            "Grüße, Welt! ☃".into(),
            ["one", "zwei", "très", "четыре", "五"].map(UaString::from),
        ),
        row("DateTime", 13, leap_day(), [0, 1, 2, 3, 4].map(new_year_at)),
        row("Guid", 14, guid(0x63), [0x60, 0x61, 0x62, 0x63, 0x64].map(guid)),
        row(
            "ByteString",
            15,
            ByteString::from(vec![0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff]),
            [0u8, 1, 2, 3, 4].map(|byte| vec![byte; usize::from(byte) + 1].into()),
        ),
        row(
            "XmlElement",
            16,
            XmlElement::from("<taktwerk>1</taktwerk>"),
            ["<v>0</v>", "<v>1</v>", "<v>2</v>", "<v>3</v>", "<v>4</v>"].map(XmlElement::from),
        ),
        row("NodeId", 17, answer(ns), node_ids(ns)),
        row("ExpandedNodeId", 18, elsewhere(1, true, NodeId::numeric(0, 77)), expanded_node_ids(ns)),
        row(
            "StatusCode",
            19,
            StatusCode(0x4092_0000),
            [0, 0x4000_0000, 0x8000_0000, 0x808d_0000, 0x4092_0000].map(StatusCode),
        ),
        row(
            "QualifiedName",
            20,
            QualifiedName::new(ns, "qualified"),
            [(ns, "q0"), (ns, "q1"), (ns, "q2"), (ns, "q3"), (0, "q4")]
                .map(|(ns, name)| QualifiedName::new(ns, name)),
        ),
        row(
            "LocalizedText",
            21,
            LocalizedText::new("en", "localized"),
            [Some("en"), Some("de"), Some("en"), Some("de"), None].map(localized()),
        ),
        Row { other: (-7i32).into(), ..row("Variant", 24, "any".into(), variants()) },
    ]
}

fn leap_day() -> UtcTime {
    UtcTime::from_civil(2024, 2, 29, 12, 34, 56).unwrap_or_default().plus(Duration::from_micros(789_012))
}

fn new_year_at(hour: u32) -> UtcTime {
    UtcTime::from_civil(2024, 1, 1, hour, 0, 0).unwrap_or_default()
}

fn guid(last: u8) -> Guid {
    let mut bytes = 0x7296_2b91_fa75_4ae6_8d28_b404_dc7d_af00u128.to_be_bytes();
    bytes[15] = last;
    Guid::from_bytes(bytes)
}

fn answer(ns: u16) -> NodeId {
    NodeId::string(ns, "the.answer")
}

fn node_ids(ns: u16) -> [NodeId; 5] {
    let opaque = NodeId::opaque(ns, vec![1, 2]);
    [NodeId::numeric(0, 84), NodeId::numeric(ns, 1000), answer(ns), NodeId::guid(ns, guid(0x63)), opaque]
}

fn elsewhere(server_index: u32, has_uri: bool, node_id: NodeId) -> ExpandedNodeId {
    let namespace_uri = has_uri.then_some("urn:example:remote").into();
    ExpandedNodeId { node_id, namespace_uri, server_index }
}

fn expanded_node_ids(ns: u16) -> [ExpandedNodeId; 5] {
    [
        elsewhere(0, false, NodeId::numeric(0, 84)),
        elsewhere(0, false, answer(ns)),
        elsewhere(0, true, NodeId::numeric(0, 77)),
        elsewhere(1, true, NodeId::string(0, "far")),
        elsewhere(2, false, NodeId::numeric(0, 5)),
    ]
}

/// Texts `t0`, `t1`, … in the given locales.
fn localized() -> impl FnMut(Option<&str>) -> LocalizedText {
    let mut number = 0;
    move |locale| {
        let text = format!("t{number}");
        number += 1;
        LocalizedText::new(locale, text)
    }
}

fn variants() -> [Variant; 5] {
    [true.into(), (-7i32).into(), 2.5f64.into(), "mixed".into(), 9u8.into()]
}

/// Rows (1, 2, 3) and (4, `middle`, 6); initially `middle` is 5.
pub(crate) fn matrix(middle: f64) -> Variant {
    Variant::matrix(vec![1.0, 2.0, 3.0, 4.0, middle, 6.0], vec![2, 3]).unwrap_or_default()
}

/// Initially `low` is 0.
pub(crate) fn range(low: f64) -> Variant {
    Variant::from_structure(&Range { low, high: 100.0 })
}

/// °C; initially with its UNECE code, 4 408 652.
pub(crate) fn unit(unit_id: i32) -> Variant {
    Variant::from_structure(&EUInformation {
        namespace_uri: "http://www.opcfoundation.org/UA/units/un/cefact".into(),
        unit_id,
        display_name: LocalizedText::new("en", "°C"),
        description: LocalizedText::new("en", "degree Celsius"),
    })
}

/// The code of °C.
pub(crate) const CELSIUS: i32 = 4_408_652;
