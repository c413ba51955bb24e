//! What a change of the loaded NodeSets removes.

use core::fmt;
use std::collections::BTreeSet;
use taktwerk_server::AddressSpace;
use taktwerk_types::{ExpandedNodeId, NodeId};

/// What would be removed if a NodeSet were unloaded, or replaced by a newer one ([`NodeSetMethods::keep`]).
///
/// [`NodeSetMethods::keep`]: super::NodeSetMethods::keep
pub struct NodeSetRemoval<'a> {
    pub(super) space: &'a AddressSpace,
    pub(super) namespaces: Vec<&'a str>,
    pub(super) nodes: BTreeSet<&'a NodeId>,
}

impl fmt::Debug for NodeSetRemoval<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("NodeSetRemoval");
        all.field("namespaces", &self.namespaces).field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl NodeSetRemoval<'_> {
    /// The namespaces that no loaded NodeSet would define any more.
    #[must_use]
    pub fn namespaces(&self) -> &[&str] {
        &self.namespaces
    }

    /// The nodes that would no longer exist, or could not be used as before: they get another NodeClass, BrowseName, DataType,
    /// ValueRank, type definition or supertype, or are types that lose members, or depend on such types.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.iter().copied()
    }

    /// Whether nothing would be removed.
    pub(super) fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.nodes.is_empty()
    }

    /// Whether a namespace would be removed.
    #[must_use]
    pub fn has_namespace(&self, uri: &str) -> bool {
        self.namespaces.contains(&uri)
    }

    /// Whether [`Self::nodes`] has a node that is named with the URI or the index of its namespace: `nsu=urn:line;i=1`,
    /// `ns=3;i=1`. The names of [`AddressSpace::node_key`] are such names, too.
    #[must_use]
    pub fn has_node(&self, name: &str) -> bool {
        let Ok(ExpandedNodeId { mut node_id, namespace_uri, server_index: 0 }) = name.parse() else {
            return false;
        };
        if !namespace_uri.is_empty() {
            match self.space.namespace_index(namespace_uri.as_str()) {
                Some(index) => node_id.namespace_index = index,
                None => return false,
            }
        }
        self.nodes.contains(&node_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each removed node is found by its names, and others are not.
    #[test]
    fn nodes_are_found_by_the_uri_and_the_index_of_their_namespaces() {
        let space = AddressSpace::new(1, 16, "urn:own");
        let index = space.add_namespace("http://x/a%20b;c");
        let removed = [
            NodeId::numeric(index, 1),
            NodeId::string(index, "Tank 1"),
            NodeId::numeric(0, 90_001),
            NodeId::string(0, "a;b"),
            NodeId::string(1, "own"),
        ];
        let nodes = removed.iter().collect();
        let removal = NodeSetRemoval { space: &space, namespaces: vec!["http://x/a%20b;c"], nodes };
        for id in &removed {
            for name in [space.node_key(id).to_string(), id.to_string()] {
                assert!(removal.has_node(&name), "{name}");
            }
        }
        let uri = "nsu=http://x/a%2520b%3Bc";
        assert!(removal.has_node(&format!("{uri};i=1")));
        for other in ["i=12", "s=Tank", "s=Tank 12", "s=own"] {
            assert!(!removal.has_node(&format!("{uri};{other}")), "{other}");
        }
        for other in ["nsu=http://x/a%20b;i=1", "nsu=urn:other;i=1", "svr=1;s=a;b", "i=1", "Tank 1", ""] {
            assert!(!removal.has_node(other), "{other}");
        }
        assert!(removal.has_namespace("http://x/a%20b;c") && !removal.has_namespace("http://x/"));
        assert_eq!((removal.nodes().count(), removal.namespaces().len()), (5, 1));
    }
}
