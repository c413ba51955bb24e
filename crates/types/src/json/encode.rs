//! Converts values to text.

use super::JsonContext;
use super::write::{Members, array, double, float, plain, string};
use crate::node_id::base64;
use crate::variant::for_element_types;
use crate::{
    Array, ArrayValues, ByteString, DataValue, DiagnosticInfo, ExpandedNodeId, ExtensionObject,
    ExtensionObjectBody, Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, UtcTime, Variant,
    XmlElement,
};

/// Appends the JSON encoding of `self`.
pub trait JsonEncode {
    /// Appends the encoding as an array element: default values are written.
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>);

    /// Whether the value is its type's default: the compact encoding omits such members.
    fn is_json_default(&self) -> bool;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl JsonEncode for $type {
            fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
                plain(self, out);
            }
            fn is_json_default(&self) -> bool {
                *self == <$type>::default()
            }
        }
    )*};
}
numbers!(bool, i8, u8, i16, u16, i32, u32);

/// 64-bit integers are strings, because many JSON readers only have Doubles (Part 6 §5.4.2.3).
macro_rules! long_numbers {
    ($($type:ty),*) => {$(
        impl JsonEncode for $type {
            fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
                out.push(b'"');
                plain(self, out);
                out.push(b'"');
            }
            fn is_json_default(&self) -> bool {
                *self == 0
            }
        }
    )*};
}
long_numbers!(i64, u64);

impl JsonEncode for f32 {
    fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
        float(*self, out);
    }
    fn is_json_default(&self) -> bool {
        self.to_bits() == 0
    }
}

impl JsonEncode for f64 {
    fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
        double(*self, out);
    }
    fn is_json_default(&self) -> bool {
        self.to_bits() == 0
    }
}

fn nullable(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        Some(text) => string(text, out),
        None => out.extend_from_slice(b"null"),
    }
}

impl JsonEncode for UaString {
    fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
        nullable(self.as_deref(), out);
    }
    fn is_json_default(&self) -> bool {
        self.is_null()
    }
}

impl JsonEncode for XmlElement {
    fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
        nullable(self.as_deref(), out);
    }
    fn is_json_default(&self) -> bool {
        self.as_deref().is_none()
    }
}

impl JsonEncode for ByteString {
    fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
        nullable(self.as_deref().map(base64).as_deref(), out);
    }
    fn is_json_default(&self) -> bool {
        self.is_null()
    }
}

impl JsonEncode for UtcTime {
    fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
        // Times outside the text's range become the first and the last representable one (Part 6 §5.4.2.6).
        let last = Self::from_civil(9999, 12, 31, 23, 59, 59).unwrap_or(Self::MAX);
        match *self {
            time if time.ticks() <= 0 => out.extend_from_slice(b"\"0001-01-01T00:00:00Z\""),
            time if time >= last => out.extend_from_slice(b"\"9999-12-31T23:59:59Z\""),
            time => string(&time.to_string(), out),
        }
    }
    fn is_json_default(&self) -> bool {
        self.is_null()
    }
}

impl JsonEncode for Guid {
    fn encode_json(&self, _: &JsonContext<'_>, out: &mut Vec<u8>) {
        string(&self.to_string(), out);
    }
    fn is_json_default(&self) -> bool {
        *self == Self::NULL
    }
}

fn namespace<'a>(context: &JsonContext<'a>, index: u16) -> Option<&'a str> {
    context.namespaces.get(usize::from(index)).copied().filter(|_| index > 0)
}

impl JsonEncode for NodeId {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        match namespace(context, self.namespace_index) {
            Some(uri) => {
                string(&ExpandedNodeId { namespace_uri: uri.into(), ..self.clone().into() }.to_string(), out)
            }
            None => string(&self.to_string(), out),
        }
    }
    fn is_json_default(&self) -> bool {
        self.is_null()
    }
}

impl JsonEncode for ExpandedNodeId {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        match namespace(context, self.node_id.namespace_index) {
            Some(uri) if self.namespace_uri.is_null() => {
                string(&Self { namespace_uri: uri.into(), ..self.clone() }.to_string(), out);
            }
            _ => string(&self.to_string(), out),
        }
    }
    fn is_json_default(&self) -> bool {
        self.is_null()
    }
}

impl JsonEncode for StatusCode {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        if *self != Self::GOOD {
            members.name("Code", out);
            plain(self.0, out);
            if let Some(symbol) = self.name().filter(|_| context.verbose) {
                members.name("Symbol", out);
                string(symbol, out);
            }
        }
        members.close(out);
    }
    fn is_json_default(&self) -> bool {
        *self == Self::GOOD
    }
}

impl JsonEncode for QualifiedName {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        match (namespace(context, self.namespace_index), self.namespace_index) {
            _ if self.is_null() => out.extend_from_slice(b"null"),
            (_, 0) => string(self.name.as_str(), out),
            (Some(uri), _) => {
                string(&format!("nsu={};{}", uri.replace('%', "%25").replace(';', "%3B"), self.name), out);
            }
            (None, index) => string(&format!("{index}:{}", self.name), out),
        }
    }
    fn is_json_default(&self) -> bool {
        self.is_null()
    }
}

/// Writes a member, unless it is a default value and the encoding is compact.
fn member<T: JsonEncode>(
    members: &mut Members,
    name: &str,
    value: &T,
    context: &JsonContext<'_>,
    out: &mut Vec<u8>,
) {
    if context.verbose || !value.is_json_default() {
        members.name(name, out);
        value.encode_json(context, out);
    }
}

impl JsonEncode for LocalizedText {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        member(&mut members, "Locale", &self.locale, context, out);
        member(&mut members, "Text", &self.text, context, out);
        members.close(out);
    }
    fn is_json_default(&self) -> bool {
        self.locale.is_null() && self.text.is_null()
    }
}

impl JsonEncode for ExtensionObject {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        if self.is_null() {
            return out.extend_from_slice(b"{}");
        }
        if let Some(structures) = context.structures {
            let mut fields = Vec::new();
            if let Some(data_type) = structures.encode_fields(self, context, &mut fields) {
                let mut members = Members::open(out);
                members.name("UaTypeId", out);
                data_type.encode_json(context, out);
                if !fields.is_empty() {
                    out.push(b',');
                    out.extend_from_slice(&fields);
                }
                return members.close(out);
            }
        }
        let mut members = Members::open(out);
        members.name("UaTypeId", out);
        self.type_id.encode_json(context, out);
        match &self.body {
            ExtensionObjectBody::None => {}
            ExtensionObjectBody::Binary(bytes) => {
                members.name("UaEncoding", out);
                plain(1, out);
                members.name("UaBody", out);
                bytes.encode_json(context, out);
            }
            ExtensionObjectBody::Xml(xml) => {
                members.name("UaEncoding", out);
                plain(2, out);
                members.name("UaBody", out);
                xml.encode_json(context, out);
            }
        }
        members.close(out);
    }
    fn is_json_default(&self) -> bool {
        self.is_null()
    }
}

impl JsonEncode for DiagnosticInfo {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        let indexes = [
            ("SymbolicId", self.symbolic_id),
            ("NamespaceUri", self.namespace_uri),
            ("Locale", self.locale),
            ("LocalizedText", self.localized_text),
        ];
        for (name, index) in indexes {
            if let Some(index) = index {
                members.name(name, out);
                plain(index, out);
            }
        }
        if let Some(text) = &self.additional_info {
            members.name("AdditionalInfo", out);
            text.encode_json(context, out);
        }
        if let Some(status) = &self.inner_status_code {
            members.name("InnerStatusCode", out);
            status.encode_json(context, out);
        }
        if let Some(inner) = &self.inner_diagnostic_info {
            members.name("InnerDiagnosticInfo", out);
            inner.encode_json(context, out);
        }
        members.close(out);
    }
    fn is_json_default(&self) -> bool {
        *self == Self::default()
    }
}

impl JsonEncode for Variant {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        if self.is_empty() {
            return out.extend_from_slice(b"null");
        }
        let mut members = Members::open(out);
        variant_members(self, &mut members, context, out);
        members.close(out);
    }
    fn is_json_default(&self) -> bool {
        self.is_empty()
    }
}

/// UaType, Value and Dimensions: common members of Variant and DataValue.
fn variant_members(value: &Variant, members: &mut Members, context: &JsonContext<'_>, out: &mut Vec<u8>) {
    let Some(kind) = value.built_in_type() else { return };
    members.name("UaType", out);
    plain(kind.number(), out);
    members.name("Value", out);
    encode_value(value, context, out);
    if let Variant::Array(array) = value
        && array.dimensions.len() > 1
    {
        members.name("Dimensions", out);
        super::write::array(&array.dimensions, out, plain);
    }
}

/// Appends the value without its type, as in RawData and structure fields. Matrices are flat.
pub fn encode_value(value: &Variant, context: &JsonContext<'_>, out: &mut Vec<u8>) {
    match value {
        Variant::Empty => out.extend_from_slice(b"null"),
        Variant::Boolean(value) => value.encode_json(context, out),
        Variant::SByte(value) => value.encode_json(context, out),
        Variant::Byte(value) => value.encode_json(context, out),
        Variant::Int16(value) => value.encode_json(context, out),
        Variant::UInt16(value) => value.encode_json(context, out),
        Variant::Int32(value) => value.encode_json(context, out),
        Variant::UInt32(value) => value.encode_json(context, out),
        Variant::Int64(value) => value.encode_json(context, out),
        Variant::UInt64(value) => value.encode_json(context, out),
        Variant::Float(value) => value.encode_json(context, out),
        Variant::Double(value) => value.encode_json(context, out),
        Variant::String(value) => value.encode_json(context, out),
        Variant::DateTime(value) => value.encode_json(context, out),
        Variant::Guid(value) => value.encode_json(context, out),
        Variant::ByteString(value) => value.encode_json(context, out),
        Variant::XmlElement(value) => value.encode_json(context, out),
        Variant::NodeId(value) => value.encode_json(context, out),
        Variant::ExpandedNodeId(value) => value.encode_json(context, out),
        Variant::StatusCode(value) => value.encode_json(context, out),
        Variant::QualifiedName(value) => value.encode_json(context, out),
        Variant::LocalizedText(value) => value.encode_json(context, out),
        Variant::ExtensionObject(value) => value.encode_json(context, out),
        Variant::DataValue(value) => value.encode_json(context, out),
        Variant::DiagnosticInfo(value) => value.encode_json(context, out),
        Variant::Array(value) => value.encode_json(context, out),
    }
}

macro_rules! array_elements {
    ($($name:ident($type:ty)),*) => {
        impl JsonEncode for Array {
            fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
                match &self.values {
                    $(ArrayValues::$name(values) => {
                        array(values, out, |value, out| value.encode_json(context, out));
                    })*
                }
            }
            fn is_json_default(&self) -> bool {
                self.values.is_empty()
            }
        }
    };
}
for_element_types!(array_elements);

impl JsonEncode for DataValue {
    fn encode_json(&self, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        if let Some(value) = &self.value {
            variant_members(value, &mut members, context, out);
        }
        if let Some(status) = self.status.filter(|status| *status != StatusCode::GOOD) {
            members.name("Status", out);
            status.encode_json(context, out);
        }
        let times = [
            ("SourceTimestamp", "SourcePicoseconds", self.source_timestamp, self.source_picoseconds),
            ("ServerTimestamp", "ServerPicoseconds", self.server_timestamp, self.server_picoseconds),
        ];
        for (time_name, pico_name, time, picoseconds) in times {
            if let Some(time) = time.filter(|time| !time.is_null()) {
                members.name(time_name, out);
                time.encode_json(context, out);
            }
            if let Some(picoseconds) = picoseconds.filter(|picoseconds| *picoseconds != 0) {
                members.name(pico_name, out);
                plain(picoseconds, out);
            }
        }
        members.close(out);
    }
    fn is_json_default(&self) -> bool {
        self.value.as_ref().is_none_or(Variant::is_empty)
            && self.status() == StatusCode::GOOD
            && self.source_timestamp.is_none()
            && self.server_timestamp.is_none()
    }
}
