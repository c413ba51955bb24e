//! The mapping between nodes and files, in both directions.

use super::Target;
use super::disk::Route;
use std::collections::BTreeMap;
use std::ops::Bound;
use taktwerk_types::NodeId;

/// The nodes of all shared directories.
#[derive(Debug, Default)]
pub(super) struct Shown {
    by_node: BTreeMap<NodeId, Target>,
    /// By the index of the shared directory.
    by_route: BTreeMap<usize, BTreeMap<Route, NodeId>>,
}

impl Shown {
    pub(super) fn insert(&mut self, node: NodeId, target: Target) {
        self.remove(&node);
        let routes = self.by_route.entry(target.folder).or_default();
        if let Some(old) = routes.insert(target.route.clone(), node.clone()) {
            self.by_node.remove(&old);
        }
        self.by_node.insert(node, target);
    }

    pub(super) fn remove(&mut self, node: &NodeId) -> Option<Target> {
        let target = self.by_node.remove(node)?;
        if let Some(routes) = self.by_route.get_mut(&target.folder) {
            routes.remove(&target.route);
        }
        Some(target)
    }

    pub(super) fn target(&self, node: &NodeId) -> Option<&Target> {
        self.by_node.get(node)
    }

    pub(super) fn node(&self, folder: usize, route: &Route) -> Option<&NodeId> {
        self.by_route.get(&folder)?.get(route)
    }

    /// The number of nodes of a shared directory, including its own.
    pub(super) fn count(&self, folder: usize) -> usize {
        self.by_route.get(&folder).map_or(0, BTreeMap::len)
    }

    /// The nodes of a shared directory at and below a route, directories before their content.
    pub(super) fn within(&self, folder: usize, route: &Route) -> Vec<(NodeId, Target)> {
        // Routes with a common prefix are adjacent.
        let range = (Bound::Included(route), Bound::Unbounded);
        let routes = self.by_route.get(&folder).into_iter().flat_map(|routes| routes.range(range));
        let within = routes.take_while(|(known, _)| known.is_within(route));
        within.filter_map(|(_, node)| Some((node.clone(), self.by_node.get(node)?.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_routes_find_each_other() {
        let mut shown = Shown::default();
        let route = |names: &str| {
            names
                .split('/')
                .filter(|name| !name.is_empty())
                .fold(Route::default(), |route, name| route.join(name).unwrap())
        };
        let names = ["", "a", "a/b", "a/b/c", "a!", "ab", "b"];
        for (number, name) in (0..).zip(names) {
            for folder in [0, 1] {
                let target = Target { folder, route: route(name), is_directory: true };
                shown.insert(NodeId::numeric(1, number * 10 + folder as u32), target);
            }
        }
        let within = |shown: &Shown, name: &str| {
            let found = shown.within(1, &route(name));
            found.into_iter().map(|(_, target)| target.route).collect::<Vec<_>>()
        };
        assert_eq!(within(&shown, "a"), ["a", "a/b", "a/b/c"].map(route));
        assert_eq!(within(&shown, "").len(), names.len());
        assert_eq!(within(&shown, "c"), []);
        assert_eq!(shown.node(0, &route("a/b")), Some(&NodeId::numeric(1, 20)));
        let removed = shown.remove(&NodeId::numeric(1, 21)).unwrap();
        assert_eq!((removed.folder, removed.route), (1, route("a/b")));
        assert_eq!((shown.count(0), shown.count(1), shown.count(2)), (7, 6, 0));
        assert_eq!(shown.node(1, &route("a/b")), None);
        // A new node for a route replaces the previous one.
        shown.insert(NodeId::numeric(1, 99), Target { folder: 1, route: route("b"), is_directory: false });
        assert_eq!(shown.count(1), 6);
        assert_eq!(shown.target(&NodeId::numeric(1, 61)), None);
        assert!(!shown.target(&NodeId::numeric(1, 99)).unwrap().is_directory);
    }
}
