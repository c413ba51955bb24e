//! Prints values.

use super::{Array, ArrayValues, Variant};
use crate::extension_object::ExtensionObjectBody;
use core::fmt::{self, Display, Write as _};

impl Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("null"),
            Self::Boolean(value) => value.fmt(f),
            Self::SByte(value) => value.fmt(f),
            Self::Byte(value) => value.fmt(f),
            Self::Int16(value) => value.fmt(f),
            Self::UInt16(value) => value.fmt(f),
            Self::Int32(value) => value.fmt(f),
            Self::UInt32(value) => value.fmt(f),
            Self::Int64(value) => value.fmt(f),
            Self::UInt64(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
            Self::String(value) => value.fmt(f),
            Self::DateTime(value) => value.fmt(f),
            Self::Guid(value) => value.fmt(f),
            Self::ByteString(value) => write!(f, "{value:?}"),
            Self::XmlElement(value) => value.fmt(f),
            Self::NodeId(value) => value.fmt(f),
            Self::ExpandedNodeId(value) => value.fmt(f),
            Self::StatusCode(value) => value.fmt(f),
            Self::QualifiedName(value) => value.fmt(f),
            Self::LocalizedText(value) => value.fmt(f),
            Self::ExtensionObject(value) => match &value.body {
                ExtensionObjectBody::None => write!(f, "{{{}}}", value.type_id),
                ExtensionObjectBody::Binary(bytes) => write!(f, "{{{}: {bytes:?}}}", value.type_id),
                ExtensionObjectBody::Xml(xml) => write!(f, "{{{}: {xml}}}", value.type_id),
            },
            Self::DataValue(value) => write!(f, "{value:?}"),
            Self::DiagnosticInfo(value) => write!(f, "{value:?}"),
            Self::Array(array) => array.fmt(f),
        }
    }
}

impl Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T>(
            values: &[T],
            shape: &[u32],
            f: &mut fmt::Formatter<'_>,
            one: &dyn Fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
        ) -> fmt::Result {
            f.write_char('[')?;
            match shape {
                [_, inner @ ..] if !inner.is_empty() => {
                    // An empty matrix may have any inner lengths.
                    let width =
                        inner.iter().fold(1usize, |width, length| width.saturating_mul(*length as usize));
                    let width = width.max(1);
                    for (index, row) in values.chunks(width).enumerate() {
                        if index > 0 {
                            f.write_str(", ")?;
                        }
                        list(row, inner, f, one)?;
                    }
                }
                _ => {
                    for (index, value) in values.iter().enumerate() {
                        if index > 0 {
                            f.write_str(", ")?;
                        }
                        one(value, f)?;
                    }
                }
            }
            f.write_char(']')
        }
        macro_rules! arms {
            ($($plain:ident)*; $($wrapped:ident)*) => {
                match &self.values {
                    $(ArrayValues::$plain(values) => list(values, &self.dimensions, f, &|value, f| value.fmt(f)),)*
                    $(ArrayValues::$wrapped(values) => list(values, &self.dimensions, f, &|value, f| {
                        Variant::from(value.clone()).fmt(f)
                    }),)*
                }
            };
        }
        arms!(
            Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid XmlElement
            NodeId ExpandedNodeId StatusCode QualifiedName LocalizedText Variant;
            ByteString ExtensionObject DataValue DiagnosticInfo
        )
    }
}
