//! Names of event fields: browse paths from the event's type.

use crate::account::HeapSize;
use std::sync::{Arc, OnceLock};
use taktwerk_types::QualifiedName;

/// The name of a field: the path to its Variable from the EventType, such as `Severity` or `EnabledState/Id`. Cloning
/// is cheap; comparison uses a hash.
#[derive(Clone)]
pub struct FieldName {
    hash: u64,
    path: Arc<[QualifiedName]>,
}

impl FieldName {
    /// A path.
    #[must_use]
    pub fn new(path: &[QualifiedName]) -> Self {
        Self { hash: hash(path), path: path.into() }
    }

    /// The browse path.
    #[must_use]
    pub fn path(&self) -> &[QualifiedName] {
        &self.path
    }

    /// The hash of the path.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

impl PartialEq for FieldName {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.path == other.path
    }
}

impl Eq for FieldName {}

impl core::fmt::Debug for FieldName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl core::fmt::Display for FieldName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (at, name) in self.path.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            write!(f, "{name}")?;
        }
        Ok(())
    }
}

/// Parses `Severity`, `2:Pressure` or `EnabledState/Id`; names without a number are in namespace 0.
impl From<&str> for FieldName {
    fn from(text: &str) -> Self {
        Self::new(&text.split('/').map(QualifiedName::parse).collect::<Vec<_>>())
    }
}

impl From<QualifiedName> for FieldName {
    fn from(name: QualifiedName) -> Self {
        Self::new(&[name])
    }
}

impl From<&FieldName> for FieldName {
    fn from(name: &FieldName) -> Self {
        name.clone()
    }
}

impl HeapSize for FieldName {
    fn heap_size(&self) -> usize {
        // Shared by all events with the field.
        0
    }
}

/// A hash of the path. It only has to distinguish the fields of one event.
pub(crate) fn hash(path: &[QualifiedName]) -> u64 {
    fnv1a(path.iter().flat_map(|name| {
        let index = name.namespace_index.to_le_bytes().into_iter();
        // A byte that never occurs in UTF-8.
        index.chain(name.name.as_str().bytes()).chain([0xff])
    }))
}

/// FNV-1a: the same in every version of this software.
pub(super) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, add)
}

macro_rules! standard {
    ($($(#[$meta:meta])* $function:ident $name:literal;)*) => {
        /// The fields of BaseEventType (Part 5 §6.4.2), and those needed for conditions.
        struct Standard { $($function: FieldName),* }

        fn standard() -> &'static Standard {
            static NAMES: OnceLock<Standard> = OnceLock::new();
            NAMES.get_or_init(|| Standard { $($function: FieldName::from($name)),* })
        }

        impl FieldName {
            $($(#[$meta])* #[must_use] pub fn $function() -> Self { standard().$function.clone() })*
        }
    };
}

standard! {
    /// EventId.
    event_id "EventId";
    /// EventType.
    event_type "EventType";
    /// SourceNode.
    source_node "SourceNode";
    /// SourceName.
    source_name "SourceName";
    /// Time.
    time "Time";
    /// ReceiveTime.
    receive_time "ReceiveTime";
    /// Message.
    message "Message";
    /// Severity.
    severity "Severity";
    /// Retain of conditions (Part 9 §5.5.2).
    retain "Retain";
    /// BranchId of conditions.
    branch_id "BranchId";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_differ_in_their_numbers() {
        let names = ["Severity", "2:Severity", "EnabledState/Id", "EnabledState", "EnabledStateId", "Id"];
        let names: Vec<FieldName> = names.into_iter().map(FieldName::from).collect();
        for (at, one) in names.iter().enumerate() {
            for (other_at, other) in names.iter().enumerate() {
                assert_eq!(one.hash() == other.hash(), at == other_at, "{one} and {other}");
            }
        }
        assert_eq!(FieldName::severity(), FieldName::from("Severity"));
        assert_eq!(FieldName::from("2:A/B").to_string(), "2:A/B");
    }
}
