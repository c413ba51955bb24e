//! Internal identifiers of nodes and references.

/// The index of a node in the address space: dense, `Copy`, and protected against reuse by its generation.
///
/// Indexes below `NodeIx::DYNAMIC` are the numeric ids of namespace 0 itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIx {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl NodeIx {
    /// First index of nodes outside the static namespace 0.
    pub(crate) const DYNAMIC: u32 = 0x1_0000;

    /// A node of the static namespace 0, by its numeric id.
    pub(crate) const fn ns0(id: u32) -> Self {
        Self { index: id, generation: 0 }
    }
}

/// A reference as seen from one of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The ReferenceType node.
    pub reference_type: NodeIx,
    /// Whether it points from the examined node to the target.
    pub is_forward: bool,
    /// The other node.
    pub target: NodeIx,
}
