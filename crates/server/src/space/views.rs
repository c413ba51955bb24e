//! Views as a scope of Browse and Query (Part 3 §5.4, Part 4 §7.45).
//!
//! A View contains the nodes reachable from it by hierarchical references, and all types. Membership is checked by
//! going up from the node, so nothing is stored for a View.

use super::NodeIx;
use super::nodes::Nodes;
use super::view::NodeView;
use crate::authorization::Decisions;
use std::collections::BTreeSet;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{NodeClass, PermissionType};
use taktwerk_types::{DecodeError, Decoder, NodeIdRef, QualifiedName, StatusCode, UtcTime, Variant};

/// Maximum number of nodes searched above a node. A node with more above it is in no View.
const ABOVE_MAX: usize = 4096;

/// The ViewDescription of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    id: NodeIdRef<'a>,
    timestamp: UtcTime,
    version: u32,
}

impl<'a> Scope<'a> {
    pub(crate) fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        use taktwerk_types::Decode;
        Ok(Self {
            id: NodeIdRef::decode(decoder)?,
            timestamp: UtcTime::decode(decoder)?,
            version: u32::decode(decoder)?,
        })
    }

    /// The View; `None` for the whole address space.
    ///
    /// # Errors
    /// The View does not exist, or not in that version: the server has only the current one.
    pub(crate) fn find(self, nodes: &Nodes, decisions: &Decisions) -> Result<Option<NodeIx>, StatusCode> {
        if self.id.is_null() {
            return Ok(None);
        }
        let unknown = StatusCode::BAD_VIEW_ID_UNKNOWN;
        let view = nodes.resolve(self.id).ok_or(unknown)?;
        let is_view = nodes.view(view).is_some_and(|node| node.class() == NodeClass::VIEW);
        if !is_view || !decisions.allows(nodes, view, PermissionType::BROWSE) {
            return Err(unknown);
        }
        match (self.timestamp.is_null(), self.version) {
            (true, 0) => Ok(Some(view)),
            (false, 0) => Err(StatusCode::BAD_VIEW_TIMESTAMP_INVALID),
            (false, _) => Err(StatusCode::BAD_VIEW_PARAMETER_MISMATCH),
            (true, version) if nodes.view_version(view) == Some(version) => Ok(Some(view)),
            (true, _) => Err(StatusCode::BAD_VIEW_VERSION_INVALID),
        }
    }
}

impl Nodes {
    /// The ViewVersion of a View, if it has one.
    fn view_version(&self, view: NodeIx) -> Option<u32> {
        let property = self.child(view, &QualifiedName::new(0, "ViewVersion"))?;
        match self.slot_handle(property)?.read().to_data_value().value {
            Some(Variant::UInt32(version)) => Some(version),
            _ => None,
        }
    }

    /// Whether a View contains a node, and how many references were followed.
    pub(crate) fn is_in_view(&self, view: NodeIx, node: NodeIx) -> (bool, i64) {
        let (is_in_view, followed) = self.is_in_view_within(view, node, i64::MAX);
        (is_in_view.unwrap_or(false), followed)
    }

    /// The same; `None` if more than `max` references or too many nodes would have to be examined.
    pub(crate) fn is_in_view_within(&self, view: NodeIx, node: NodeIx, max: i64) -> (Option<bool>, i64) {
        if self.view(node).is_some_and(NodeView::is_type) {
            return (Some(true), 1);
        }
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let mut seen = BTreeSet::from([node]);
        let mut next = vec![node];
        let mut followed = 0;
        while let Some(ix) = next.pop() {
            if ix == view {
                return (Some(true), followed);
            }
            self.references(ix, |reference| {
                followed += 1;
                if !reference.is_forward
                    && self.is_subtype(reference.reference_type, hierarchical)
                    && seen.insert(reference.target)
                {
                    next.push(reference.target);
                }
                seen.len() < ABOVE_MAX && followed <= max
            });
            if seen.len() >= ABOVE_MAX || followed > max {
                return (None, followed);
            }
        }
        (Some(false), followed)
    }
}
