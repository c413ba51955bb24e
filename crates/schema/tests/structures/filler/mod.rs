//! Random values, encoded from the run-time descriptions. That they decode as the generated types to the last byte
//! shows that both agree.

use taktwerk_schema::description::{self, StructureDescription, StructureKind};
use taktwerk_types::{
    BuiltInType, ByteString, DataValue, DiagnosticInfo, Encode, ExpandedNodeId, ExtensionObject, Guid,
    LocalizedText, NodeId, QualifiedName, StatusCode, UaString, UtcTime, Variant,
};

/// A reproducible source of values.
pub(crate) struct Filler(u64);

impl Filler {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(0x7461_6b74_7765_726b))
    }

    fn next(&mut self) -> u64 {
        // xorshift64*: reproducible, without a dependency.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 32) % limit
    }

    fn text(&mut self) -> Option<String> {
        let len = self.below(5);
        (len < 4).then(|| "äbc".chars().cycle().take(len as usize).collect())
    }

    /// A value of a structure.
    pub(crate) fn structure(&mut self, structure: &StructureDescription, out: &mut Vec<u8>) {
        let masked = structure.kind == StructureKind::WithOptionalFields;
        let mut mask = u32::MAX;
        if masked {
            let optional = structure.fields.iter().filter(|field| field.is_optional).count();
            mask = (self.next() as u32) & ((1 << optional) - 1);
            mask.encode(out);
        }
        for field in structure.fields {
            if masked && field.is_optional {
                let present = mask & 1 != 0;
                mask >>= 1;
                if !present {
                    continue;
                }
            }
            let subtyped = field.is_optional && structure.kind == StructureKind::WithSubtypedValues;
            let count = if field.value_rank < 0 { 1 } else { self.below(3) };
            if field.value_rank >= 0 {
                u32::try_from(count).unwrap().encode(out);
            }
            for _ in 0..count {
                self.field(field.type_id, subtyped, out);
            }
        }
    }

    fn field(&mut self, type_id: u32, subtyped: bool, out: &mut Vec<u8>) {
        match description::structure(type_id) {
            Some(_) if subtyped => self.built_in(BuiltInType::ExtensionObject, out),
            Some(structure) => self.structure(structure, out),
            None => self.built_in(description::built_in_type(type_id).unwrap(), out),
        }
    }

    fn built_in(&mut self, kind: BuiltInType, out: &mut Vec<u8>) {
        let number = self.next();
        match kind {
            BuiltInType::Boolean => (number & 1 == 1).encode(out),
            BuiltInType::SByte | BuiltInType::Byte => (number as u8).encode(out),
            BuiltInType::Int16 | BuiltInType::UInt16 => (number as u16).encode(out),
            BuiltInType::Int32 | BuiltInType::UInt32 => (number as u32).encode(out),
            BuiltInType::Int64 | BuiltInType::UInt64 => number.encode(out),
            BuiltInType::Float => (number as i16 as f32).encode(out),
            BuiltInType::Double => (number as i32 as f64).encode(out),
            BuiltInType::String | BuiltInType::XmlElement => {
                UaString::from(self.text().as_deref()).encode(out)
            }
            BuiltInType::DateTime => UtcTime::from_ticks(number as i64).encode(out),
            BuiltInType::Guid => Guid::from_bytes([number as u8; 16]).encode(out),
            BuiltInType::ByteString => {
                ByteString::from(self.text().as_deref().map(str::as_bytes)).encode(out)
            }
            BuiltInType::NodeId => self.node_id().encode(out),
            BuiltInType::ExpandedNodeId => {
                let uri = UaString::from(self.text().as_deref());
                ExpandedNodeId {
                    node_id: self.node_id(),
                    namespace_uri: uri,
                    server_index: self.below(3) as u32,
                }
                .encode(out);
            }
            BuiltInType::StatusCode => StatusCode(number as u32).encode(out),
            BuiltInType::QualifiedName => {
                QualifiedName { namespace_index: number as u16, name: self.text().as_deref().into() }
                    .encode(out);
            }
            BuiltInType::LocalizedText => {
                LocalizedText { locale: self.text().as_deref().into(), text: self.text().as_deref().into() }
                    .encode(out);
            }
            BuiltInType::ExtensionObject => self.extension_object().encode(out),
            BuiltInType::DataValue => {
                let status = (number & 1 == 1).then_some(StatusCode(number as u32));
                DataValue { value: Some(self.variant()), status, ..DataValue::default() }.encode(out);
            }
            BuiltInType::Variant => self.variant().encode(out),
            BuiltInType::DiagnosticInfo => {
                let inner = (number & 1 == 1).then(|| Box::new(DiagnosticInfo::default()));
                let symbolic_id = (number & 2 == 2).then_some(number as i32);
                DiagnosticInfo { symbolic_id, inner_diagnostic_info: inner, ..DiagnosticInfo::default() }
                    .encode(out);
            }
        }
    }

    fn node_id(&mut self) -> NodeId {
        let number = self.next();
        match number % 4 {
            0 => NodeId::numeric(0, self.below(256) as u32),
            1 => NodeId::numeric(self.below(300) as u16, number as u32),
            2 => NodeId::string(1, self.text().unwrap_or_default()),
            _ => NodeId::guid(2, Guid::from_bytes([number as u8; 16])),
        }
    }

    fn extension_object(&mut self) -> ExtensionObject {
        match self.below(3) {
            0 => ExtensionObject::NULL,
            _ => ExtensionObject::from_binary(self.node_id(), self.next().to_le_bytes().to_vec()),
        }
    }

    fn variant(&mut self) -> Variant {
        match self.below(5) {
            0 => Variant::Empty,
            1 => Variant::from(self.next() as i32),
            2 => Variant::from(vec![self.next(), self.next()]),
            3 => Variant::from(self.text().unwrap_or_default()),
            _ => Variant::from(self.extension_object()),
        }
    }
}
