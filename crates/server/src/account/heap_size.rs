//! How much heap a value owns.

use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_schema::ApplicationDescription;
use taktwerk_types::{
    Array, ArrayValues, ByteString, DataValue, DiagnosticInfo, ExpandedNodeId, ExtensionObject,
    ExtensionObjectBody, Guid, Identifier, LocalizedText, NodeId, NumericRange, QualifiedName, StatusCode,
    UaString, UtcTime, Variant, XmlElement,
};

/// The allocator's overhead per allocation, in bytes.
pub(crate) const ALLOCATION: usize = 16;

/// Bytes of heap that a value owns: capacities plus the allocator's overhead per allocation. Data behind a reference
/// count counts fully for each owner.
pub trait HeapSize {
    /// Bytes of heap, without the value itself.
    fn heap_size(&self) -> usize;

    /// Bytes of the value itself and its heap.
    fn size(&self) -> usize {
        size_of_val(self) + self.heap_size()
    }
}

/// Bytes of one allocation.
#[inline]
pub(crate) const fn allocation(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes.saturating_add(ALLOCATION) }
}

/// Implements [`HeapSize`] for a structure. Every field is listed: fields that own heap, then after `;` those that do
/// not.
macro_rules! heap_size {
    ($type:ty { $($field:ident),* $(,)? $(; $($flat:ident),* $(,)?)? }) => {
        impl $crate::account::HeapSize for $type {
            fn heap_size(&self) -> usize {
                let Self { $($field,)* $($($flat: _,)*)? } = self;
                0usize $(.saturating_add($crate::account::HeapSize::heap_size($field)))*
            }
        }
    };
}
pub(crate) use heap_size;

macro_rules! without_heap {
    ($($type:ty),*) => {
        $(impl HeapSize for $type {
            #[inline]
            fn heap_size(&self) -> usize {
                0
            }
        })*
    };
}

without_heap!(
    bool,
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    u64,
    f32,
    f64,
    usize,
    Guid,
    StatusCode,
    UtcTime,
    &'static str
);

impl<T: HeapSize> HeapSize for Option<T> {
    #[inline]
    fn heap_size(&self) -> usize {
        self.as_ref().map_or(0, T::heap_size)
    }
}

impl<T: HeapSize, E: HeapSize> HeapSize for Result<T, E> {
    #[inline]
    fn heap_size(&self) -> usize {
        match self {
            Ok(value) => value.heap_size(),
            Err(error) => error.heap_size(),
        }
    }
}

impl<T: HeapSize + ?Sized> HeapSize for Box<T> {
    fn heap_size(&self) -> usize {
        allocation(size_of_val::<T>(self)).saturating_add((**self).heap_size())
    }
}

impl<T: HeapSize + ?Sized> HeapSize for Arc<T> {
    fn heap_size(&self) -> usize {
        // Two reference counts precede the value.
        allocation(size_of_val::<T>(self) + 2 * size_of::<usize>()).saturating_add((**self).heap_size())
    }
}

impl HeapSize for str {
    fn heap_size(&self) -> usize {
        0
    }
}

impl<T: HeapSize> HeapSize for [T] {
    fn heap_size(&self) -> usize {
        self.iter().fold(0, |sum, value| sum.saturating_add(value.heap_size()))
    }
}

impl<T: HeapSize> HeapSize for Vec<T> {
    fn heap_size(&self) -> usize {
        allocation(self.capacity().saturating_mul(size_of::<T>())).saturating_add(self.as_slice().heap_size())
    }
}

impl<T: HeapSize> HeapSize for VecDeque<T> {
    fn heap_size(&self) -> usize {
        let places = allocation(self.capacity().saturating_mul(size_of::<T>()));
        self.iter().fold(places, |sum, value| sum.saturating_add(value.heap_size()))
    }
}

impl HeapSize for UaString {
    #[inline]
    fn heap_size(&self) -> usize {
        allocation(self.as_str().len())
    }
}

impl HeapSize for ByteString {
    #[inline]
    fn heap_size(&self) -> usize {
        allocation(self.as_bytes().len())
    }
}

impl HeapSize for XmlElement {
    fn heap_size(&self) -> usize {
        allocation(self.as_deref().map_or(0, str::len))
    }
}

impl HeapSize for NumericRange {
    fn heap_size(&self) -> usize {
        allocation(self.capacity_bytes())
    }
}

impl HeapSize for Identifier {
    fn heap_size(&self) -> usize {
        match self {
            Self::Numeric(_) | Self::Guid(_) => 0,
            Self::String(text) => text.heap_size(),
            Self::Opaque(bytes) => bytes.heap_size(),
        }
    }
}

heap_size!(NodeId { identifier; namespace_index });
heap_size!(ExpandedNodeId { node_id, namespace_uri; server_index });
heap_size!(QualifiedName { name; namespace_index });
heap_size!(LocalizedText { locale, text });
heap_size!(ExtensionObject { type_id, body });
heap_size!(DataValue {
    value;
    status, source_timestamp, server_timestamp, source_picoseconds, server_picoseconds,
});
heap_size!(DiagnosticInfo {
    additional_info, inner_diagnostic_info;
    symbolic_id, namespace_uri, locale, localized_text, inner_status_code,
});
heap_size!(Array { values, dimensions });
heap_size!(ApplicationDescription {
    application_uri, product_uri, application_name, gateway_server_uri, discovery_profile_uri, discovery_urls;
    application_type,
});

impl HeapSize for ExtensionObjectBody {
    fn heap_size(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Binary(bytes) => bytes.heap_size(),
            Self::Xml(text) => text.heap_size(),
        }
    }
}

impl HeapSize for ArrayValues {
    fn heap_size(&self) -> usize {
        macro_rules! each {
            (flat: $($flat:ident)*; deep: $($deep:ident)*) => {
                match self {
                    // Arrays of numbers are measured by capacity, not element by element: they can be long.
                    $(Self::$flat(values) => allocation(values.capacity().saturating_mul(element_size(values))),)*
                    $(Self::$deep(values) => values.heap_size(),)*
                }
            };
        }
        each! {
            flat: Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double DateTime Guid StatusCode;
            deep: String ByteString XmlElement NodeId ExpandedNodeId QualifiedName LocalizedText ExtensionObject
                DataValue Variant DiagnosticInfo
        }
    }
}

const fn element_size<T>(_: &Vec<T>) -> usize {
    size_of::<T>()
}

impl HeapSize for Variant {
    fn heap_size(&self) -> usize {
        match self {
            Self::Empty
            | Self::Boolean(_)
            | Self::SByte(_)
            | Self::Byte(_)
            | Self::Int16(_)
            | Self::UInt16(_)
            | Self::Int32(_)
            | Self::UInt32(_)
            | Self::Int64(_)
            | Self::UInt64(_)
            | Self::Float(_)
            | Self::Double(_)
            | Self::DateTime(_)
            | Self::Guid(_)
            | Self::StatusCode(_) => 0,
            Self::String(text) => text.heap_size(),
            Self::ByteString(bytes) => bytes.heap_size(),
            Self::XmlElement(text) => text.heap_size(),
            Self::NodeId(value) => value.heap_size(),
            Self::ExpandedNodeId(value) => value.heap_size(),
            Self::QualifiedName(value) => value.heap_size(),
            Self::LocalizedText(value) => value.heap_size(),
            Self::ExtensionObject(value) => value.heap_size(),
            Self::DataValue(value) => value.heap_size(),
            Self::DiagnosticInfo(value) => value.heap_size(),
            Self::Array(value) => value.heap_size(),
        }
    }
}
