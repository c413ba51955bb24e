//! Deleting a node with all its parts.

use super::{AddressSpace, NodeIx};
use std::collections::BTreeSet;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::{NodeId, UtcTime};

impl AddressSpace {
    /// Deletes a node with its components and Properties, recursively. Parts that another node has too stay, and so do
    /// nodes of namespace 0. Returns how many nodes were deleted, 0 if the node does not exist.
    pub fn delete_tree(&self, id: &NodeId, now: UtcTime) -> usize {
        let all: Vec<NodeId> = {
            let nodes = self.read();
            let Some(root) = nodes.resolve(id.as_ref()) else { return 0 };
            let aggregates = NodeIx::ns0(reference_type_ids::AGGREGATES);
            let mut found = BTreeSet::from([root]);
            let mut order = vec![root];
            let mut at = 0;
            while let Some(ix) = order.get(at).copied() {
                at += 1;
                nodes.references(ix, |reference| {
                    let is_part =
                        reference.is_forward && nodes.is_subtype(reference.reference_type, aggregates);
                    if is_part && reference.target.index >= NodeIx::DYNAMIC {
                        let mut is_shared = false;
                        nodes.references(reference.target, |other| {
                            is_shared = !other.is_forward
                                && !found.contains(&other.target)
                                && nodes.is_subtype(other.reference_type, aggregates);
                            !is_shared
                        });
                        if !is_shared && found.insert(reference.target) {
                            order.push(reference.target);
                        }
                    }
                    true
                });
            }
            order.into_iter().map(|ix| nodes.id_of(ix)).collect()
        };
        let count = self.delete_nodes(&all);
        self.raise_model_changes(now);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::NodeSpec;
    use crate::space::build::Under;
    use taktwerk_schema::ids::object_ids;
    use taktwerk_types::QualifiedName;

    #[test]
    fn parts_are_deleted_with_a_node_and_shared_parts_stay() {
        let space = AddressSpace::new(1, 16, "urn:test");
        let now = UtcTime::NULL;
        let id = |number: u32| NodeId::numeric(1, number);
        let component = NodeId::numeric(0, reference_type_ids::HAS_COMPONENT);
        let organizes = NodeId::numeric(0, reference_type_ids::ORGANIZES);
        let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
        let add = |number: u32, parent: &NodeId, reference_type: &NodeId| {
            let spec = NodeSpec::object(id(number), QualifiedName::new(1, format!("n{number}")));
            space.add_node(spec, Under { parent, reference_type, type_definition: None }, now).unwrap();
        };
        add(1, &objects, &organizes);
        add(2, &id(1), &component);
        add(3, &id(2), &component);
        // One that it only organizes, and one that another node also has.
        add(4, &id(1), &organizes);
        add(5, &objects, &component);
        space.add_reference(&id(2), &component, &id(5)).unwrap();
        // A cycle.
        space.add_reference(&id(3), &component, &id(1)).unwrap();
        let before = space.node_count();
        assert_eq!(space.delete_tree(&id(1), now), 3);
        assert_eq!(space.node_count(), before - 3);
        assert_eq!(
            [1, 2, 3, 4, 5].map(|number| space.contains(&id(number))),
            [false, false, false, true, true]
        );
        assert_eq!(space.delete_tree(&id(1), now), 0);
    }
}
