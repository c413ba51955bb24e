//! Namespace 0: every node, attribute, value and reference of the NodeSet, read in place from a blob.
//!
//! There is no parsing at startup and no heap: a node is a view of a record in the program's read-only data, of which
//! the operating system loads only the used pages.
//!
//! # Format of the blob
//!
//! All numbers are little-endian. `TWNS0`, two zero bytes and the version 1; the lengths in bytes of the seven
//! sections (u32 each); the sections:
//!
//! 1. index: u16 for every id up to the largest: 0 if there is no such node, else the number of its record from 1;
//! 2. records, 24 bytes each, in the order of the ids (see below);
//! 3. references, 3 bytes each, those of a node together: u8 index into section 4, bit 7 set if inverse; u16 target;
//! 4. reference types: u16 each;
//! 5. string offsets: u32 each into section 6, one more than there are strings;
//! 6. strings, UTF-8, each once; the first is empty;
//! 7. extras: what only some nodes have.
//!
//! A record: u16 id · u8 NodeClass · u8 flags · i8 ValueRank · u8 AccessLevel or EventNotifier · u16 BrowseName ·
//! u16 DisplayName · u16 Description (strings) · u16 TypeDefinition of an instance or supertype of a type · u16 DataType,
//! or InverseName (string) of a ReferenceType · u32 first reference (a number, not an offset) · u32 offset into the
//! extras.
//!
//! Flags and, for those marked +, what stands in the extras, in this order: 0 IsAbstract; 1 Symmetric, Executable,
//! Historizing or ContainsNoLoops by class; 2 ArrayDimensions + (u8 count, u32 each); 3 MinimumSamplingInterval +
//! (f64); 4 Value + (u32 length, an encoded Variant); 5 DataTypeDefinition + (u32 length, an encoded
//! ExtensionObject); 6 RolePermissions + (u8 count, u16 role and u32 permissions each); 7 AccessRestrictions + (u16).

use crate::NodeClass;

mod extras;
#[cfg(test)]
mod tests;

pub use extras::Extras;

const SECTIONS: usize = 7;
const HEADER_LEN: usize = 8 + 4 * SECTIONS;
const MAGIC: [u8; 8] = *b"TWNS0\0\0\x01";
const RECORD_LEN: usize = 24;
const REFERENCE_LEN: usize = 3;

static BLOB: &[u8] = include_bytes!("generated/ns0.bin");
// Evaluated at compile time: a blob with another layout does not compile.
static NS0: Ns0 = Ns0::from_blob(BLOB);

/// Namespace 0.
#[derive(Debug)]
pub struct Ns0 {
    index: &'static [u8],
    records: &'static [u8],
    references: &'static [u8],
    reference_types: &'static [u8],
    string_offsets: &'static [u8],
    strings: &'static [u8],
    extras: &'static [u8],
}

/// A node of namespace 0.
#[derive(Clone, Copy)]
pub struct Ns0Node {
    record: &'static [u8; RECORD_LEN],
    ordinal: u16,
}

/// A reference of a node of namespace 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ns0Reference {
    /// The ReferenceType.
    pub reference_type: u32,
    /// Whether it points from the node to the target.
    pub is_forward: bool,
    /// The other end.
    pub target: u32,
}

impl Ns0 {
    /// The shared instance.
    #[must_use]
    #[inline]
    pub fn get() -> &'static Self {
        &NS0
    }

    const fn from_blob(blob: &'static [u8]) -> Self {
        let (head, mut rest) = blob.split_at(HEADER_LEN);
        let mut at = 0;
        while at < MAGIC.len() {
            assert!(head[at] == MAGIC[at], "ns0.bin is not a blob of this version: run cargo xtask codegen");
            at += 1;
        }
        let mut sections: [&'static [u8]; SECTIONS] = [&[]; SECTIONS];
        let mut section = 0;
        while section < SECTIONS {
            let at = 8 + 4 * section;
            let len = u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
            (sections[section], rest) = rest.split_at(len);
            section += 1;
        }
        assert!(rest.is_empty(), "ns0.bin has bytes after its sections");
        let [index, records, references, reference_types, string_offsets, strings, extras] = sections;
        Self { index, records, references, reference_types, string_offsets, strings, extras }
    }

    /// Number of nodes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len() / RECORD_LEN
    }

    /// Whether there are no nodes (there are).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The largest id.
    #[must_use]
    pub fn max_id(&self) -> u32 {
        u32::try_from((self.index.len() / 2).saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// The node with a numeric id, in constant time.
    #[must_use]
    #[inline]
    pub fn node(&'static self, id: u32) -> Option<Ns0Node> {
        self.nth(u16_at(self.index, (id as usize).checked_mul(2)?).checked_sub(1)?)
    }

    /// Whether there is a node with this numeric id.
    #[must_use]
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        (id as usize).checked_mul(2).is_some_and(|at| u16_at(self.index, at) != 0)
    }

    /// The node at a position in the order of ids: a dense number below [`Self::len`].
    #[must_use]
    #[inline]
    pub fn nth(&'static self, ordinal: u16) -> Option<Ns0Node> {
        let at = usize::from(ordinal) * RECORD_LEN;
        let record = self.records.get(at..)?.first_chunk::<RECORD_LEN>()?;
        Some(Ns0Node { record, ordinal })
    }

    /// All nodes in the order of their ids.
    pub fn nodes(&'static self) -> impl ExactSizeIterator<Item = Ns0Node> + Clone {
        let (records, _) = self.records.as_chunks::<RECORD_LEN>();
        records
            .iter()
            .enumerate()
            .map(|(at, record)| Ns0Node { record, ordinal: u16::try_from(at).unwrap_or(u16::MAX) })
    }

    /// All ids, ascending.
    pub fn ids(&'static self) -> impl ExactSizeIterator<Item = u32> + Clone {
        self.nodes().map(|node| node.id())
    }

    /// The references of a node in both directions; none if there is no such node.
    pub fn references(&'static self, id: u32) -> impl ExactSizeIterator<Item = Ns0Reference> + Clone {
        let bytes = self.node(id).map_or(&[][..], |node| node.reference_bytes());
        let (entries, _) = bytes.as_chunks::<REFERENCE_LEN>();
        entries.iter().map(|entry| self.reference(*entry))
    }

    fn reference(&self, [kind, low, high]: [u8; REFERENCE_LEN]) -> Ns0Reference {
        Ns0Reference {
            reference_type: u32::from(u16_at(self.reference_types, usize::from(kind & 0x7f) * 2)),
            is_forward: kind & 0x80 == 0,
            target: u32::from(u16::from_le_bytes([low, high])),
        }
    }

    /// Number of references, each counted at both ends.
    #[must_use]
    pub const fn reference_count(&self) -> usize {
        self.references.len() / REFERENCE_LEN
    }

    /// Whether a type is `ancestor` or derives from it; false if there is no such type. Chains have at most ten steps.
    #[must_use]
    pub fn is_subtype_of(&'static self, id: u32, ancestor: u32) -> bool {
        let mut current = id;
        // The bound protects against circles, which a test excludes.
        for _ in 0..64 {
            if current == ancestor {
                return self.contains(current);
            }
            match self.node(current).and_then(|node| node.supertype()) {
                Some(supertype) => current = supertype,
                None => return false,
            }
        }
        false
    }

    #[inline]
    fn string(&self, number: u16) -> &'static str {
        let at = usize::from(number) * 4;
        let (start, end) =
            (u32_at(self.string_offsets, at) as usize, u32_at(self.string_offsets, at + 4) as usize);
        let bytes = self.strings.get(start..end).unwrap_or(&[]);
        core::str::from_utf8(bytes).unwrap_or("")
    }
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk::<2>).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

impl Ns0Node {
    #[inline]
    fn u16_at(&self, at: usize) -> u16 {
        u16_at(self.record, at)
    }

    #[inline]
    fn flag(&self, bit: u8) -> bool {
        self.record[3] >> bit & 1 != 0
    }

    /// The numeric id.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u32 {
        u32::from(self.u16_at(0))
    }

    /// The position in the order of ids, as [`Ns0::nth`] takes it.
    #[must_use]
    #[inline]
    pub fn ordinal(&self) -> u16 {
        self.ordinal
    }

    /// The NodeClass.
    #[must_use]
    #[inline]
    pub fn class(&self) -> NodeClass {
        NodeClass(i32::from(self.record[2]))
    }

    /// The name of the BrowseName, whose namespace index is 0.
    #[must_use]
    pub fn browse_name(&self) -> &'static str {
        NS0.string(self.u16_at(6))
    }

    /// The DisplayName.
    #[must_use]
    pub fn display_name(&self) -> &'static str {
        NS0.string(self.u16_at(8))
    }

    /// The Description; `None` if there is none.
    #[must_use]
    pub fn description(&self) -> Option<&'static str> {
        Some(NS0.string(self.u16_at(10))).filter(|text| !text.is_empty())
    }

    fn is_type(&self) -> bool {
        matches!(
            self.class(),
            NodeClass::OBJECT_TYPE
                | NodeClass::VARIABLE_TYPE
                | NodeClass::REFERENCE_TYPE
                | NodeClass::DATA_TYPE
        )
    }

    fn is_variable_like(&self) -> bool {
        matches!(self.class(), NodeClass::VARIABLE | NodeClass::VARIABLE_TYPE)
    }

    /// The supertype of a type.
    #[must_use]
    #[inline]
    pub fn supertype(&self) -> Option<u32> {
        self.is_type().then(|| u32::from(self.u16_at(12))).filter(|id| *id != 0)
    }

    /// The TypeDefinition of an Object or Variable.
    #[must_use]
    #[inline]
    pub fn type_definition(&self) -> Option<u32> {
        (!self.is_type()).then(|| u32::from(self.u16_at(12))).filter(|id| *id != 0)
    }

    /// IsAbstract, of a type.
    #[must_use]
    pub fn is_abstract(&self) -> bool {
        self.flag(0)
    }

    /// Symmetric, of a ReferenceType.
    #[must_use]
    pub fn symmetric(&self) -> bool {
        self.class() == NodeClass::REFERENCE_TYPE && self.flag(1)
    }

    /// Executable, of a Method.
    #[must_use]
    pub fn executable(&self) -> bool {
        self.class() == NodeClass::METHOD && self.flag(1)
    }

    /// Historizing, of a Variable.
    #[must_use]
    pub fn historizing(&self) -> bool {
        self.class() == NodeClass::VARIABLE && self.flag(1)
    }

    /// ContainsNoLoops, of a View.
    #[must_use]
    pub fn contains_no_loops(&self) -> bool {
        self.class() == NodeClass::VIEW && self.flag(1)
    }

    /// InverseName, of a ReferenceType that has one.
    #[must_use]
    pub fn inverse_name(&self) -> Option<&'static str> {
        let is_reference_type = self.class() == NodeClass::REFERENCE_TYPE;
        is_reference_type.then(|| NS0.string(self.u16_at(14))).filter(|text| !text.is_empty())
    }

    /// DataType, of a Variable or VariableType.
    #[must_use]
    pub fn data_type(&self) -> Option<u32> {
        self.is_variable_like().then(|| u32::from(self.u16_at(14)))
    }

    /// ValueRank, of a Variable or VariableType.
    #[must_use]
    pub fn value_rank(&self) -> i32 {
        i32::from(i8::from_le_bytes([self.record[4]]))
    }

    /// AccessLevel, of a Variable; else 0.
    #[must_use]
    pub fn access_level(&self) -> u8 {
        if self.class() == NodeClass::VARIABLE { self.record[5] } else { 0 }
    }

    /// EventNotifier, of an Object or View; else 0.
    #[must_use]
    pub fn event_notifier(&self) -> u8 {
        if matches!(self.class(), NodeClass::OBJECT | NodeClass::VIEW) { self.record[5] } else { 0 }
    }

    /// The attributes that only some nodes have: value, definition, dimensions, permissions.
    #[must_use]
    pub fn extras(&self) -> Extras {
        Extras::read(self.record[3], NS0.extras.get(u32_at(self.record, 20) as usize..).unwrap_or(&[]))
    }

    /// The references in both directions.
    pub fn references(&self) -> impl ExactSizeIterator<Item = Ns0Reference> + Clone {
        let (entries, _) = self.reference_bytes().as_chunks::<REFERENCE_LEN>();
        entries.iter().map(|entry| NS0.reference(*entry))
    }

    fn reference_bytes(&self) -> &'static [u8] {
        let first = u32_at(self.record, 16) as usize;
        // The references end where those of the next node begin.
        let next = NS0.nth(self.ordinal.saturating_add(1));
        let end = next.map_or(NS0.reference_count(), |next| u32_at(next.record, 16) as usize);
        NS0.references.get(first * REFERENCE_LEN..end * REFERENCE_LEN).unwrap_or(&[])
    }
}

impl core::fmt::Debug for Ns0Node {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "i={} {} ({:?})", self.id(), self.browse_name(), self.class())
    }
}
