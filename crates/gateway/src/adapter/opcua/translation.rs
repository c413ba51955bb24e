//! Translates ids between the namespace indexes of another server and of this one.

use super::mirror::Nature;
use crate::plant::Plant;
use crate::tag::Model;
use std::collections::HashSet;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_types::{ArrayValues, ExtensionObject, NodeId, QualifiedName, UaString, Variant};

const CONDITION: NodeId = NodeId::numeric(0, object_type_ids::CONDITION_TYPE);

/// Maps the namespace indexes of one connection to local ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Translation {
    /// The local index of each remote namespace, if it is registered here.
    here: Vec<Option<u16>>,
    /// The local encoding ids of structures that have the same meaning on every server.
    encodings: HashSet<NodeId>,
}

impl Translation {
    pub(super) fn new(namespaces: &[UaString], plant: &Plant) -> Self {
        let here = plant.space().namespaces();
        let index = |uri: &UaString| {
            let position = here.iter().position(|known| known == uri.as_str())?;
            u16::try_from(position).ok()
        };
        Self { here: namespaces.iter().map(index).collect(), encodings: HashSet::new() }
    }

    /// Allows the structures that the gateway knows.
    pub(super) fn with_structures(mut self, plant: &Plant) -> Self {
        self.encodings = plant.catalogue().encodings();
        self
    }

    fn index_here(&self, index: u16) -> Option<u16> {
        if index == 0 { Some(0) } else { self.here.get(usize::from(index)).copied().flatten() }
    }

    /// The local id of a remote node, if its namespace is registered here.
    pub(super) fn here(&self, node: &NodeId) -> Option<NodeId> {
        let namespace_index = self.index_here(node.namespace_index)?;
        Some(NodeId { namespace_index, identifier: node.identifier.clone() })
    }

    /// The remote id of a local node.
    pub(super) fn there(&self, node: &NodeId) -> Option<NodeId> {
        let index = node.namespace_index;
        let namespace_index = match index {
            0 => 0,
            _ => u16::try_from(self.here.iter().position(|here| *here == Some(index))?).ok()?,
        };
        Some(NodeId { namespace_index, identifier: node.identifier.clone() })
    }

    /// The local form of a remote name, if its namespace is registered here.
    pub(super) fn name(&self, name: &QualifiedName) -> Option<QualifiedName> {
        Some(QualifiedName::new(self.index_here(name.namespace_index)?, name.name.clone()))
    }

    /// The remote form of a local name.
    pub(super) fn name_there(&self, name: &QualifiedName) -> Option<QualifiedName> {
        let id = self.there(&NodeId::numeric(name.namespace_index, 0))?;
        Some(QualifiedName::new(id.namespace_index, name.name.clone()))
    }

    /// The local types of a node, as far as they exist here.
    pub(super) fn model(&self, plant: &Plant, nature: &Nature, data_type: Option<&NodeId>) -> Model {
        // Check the node class: the other server may name any node as a type.
        let own = |id: &NodeId, classes: &[NodeClass]| {
            // From namespace 0, objects keep only condition types: other objects are folders.
            let is_wanted =
                |here: &NodeId| id.namespace_index != 0 || plant.space().is_event_subtype(here, &CONDITION);
            let here = self.here(id).filter(is_wanted)?;
            plant.space().node_class(&here).is_some_and(|class| classes.contains(&class)).then_some(here)
        };
        let is_named = nature.browse_name.namespace_index != 0;
        Model {
            type_definition: own(
                &nature.type_definition,
                &[NodeClass::OBJECT_TYPE, NodeClass::VARIABLE_TYPE],
            ),
            data_type: data_type.and_then(|id| own(id, &[NodeClass::DATA_TYPE])),
            browse_name: self.name(&nature.browse_name).filter(|_| is_named),
        }
    }

    /// Translates a remote value; `None` if it contains an unknown structure.
    pub(super) fn value_here(&self, value: Variant) -> Option<Variant> {
        structures(value, |encoding| self.here(encoding).filter(|here| self.encodings.contains(here)))
    }

    /// Translates a call result or an event field; `None` if it has a meaning only there.
    pub(super) fn argument_here(&self, value: Variant) -> Option<Variant> {
        argument(value, |encoding| self.here(encoding).filter(|here| self.encodings.contains(here)))
    }

    /// Translates a call argument; `None` if it has a meaning only here.
    pub(super) fn argument_there(&self, value: Variant) -> Option<Variant> {
        argument(value, |encoding| self.encodings.contains(encoding).then(|| self.there(encoding)).flatten())
    }

    /// Translates a local value; `None` if it contains an unknown structure.
    pub(super) fn value_there(&self, value: Variant) -> Option<Variant> {
        let pass = |encoding: &NodeId| {
            if self.encodings.contains(encoding) { self.there(encoding) } else { None }
        };
        structures(value, pass)
    }
}

/// Translates a value of a call: structures of namespace 0 are equal everywhere, others need translated encoding ids.
fn argument(value: Variant, encoding: impl Fn(&NodeId) -> Option<NodeId>) -> Option<Variant> {
    let has_structures = match &value {
        Variant::ExtensionObject(_) => true,
        Variant::Array(array) => matches!(array.values, ArrayValues::ExtensionObject(_)),
        _ => false,
    };
    match has_structures {
        true => structures(value, |id| if id.namespace_index == 0 { Some(id.clone()) } else { encoding(id) }),
        false => is_portable(&value).then_some(value),
    }
}

/// Whether a value has the same meaning on every server.
fn is_portable(value: &Variant) -> bool {
    let is_known = |id: &NodeId| id.namespace_index == 0;
    match value {
        Variant::NodeId(id) => is_known(id),
        Variant::ExpandedNodeId(id) => is_known(&id.node_id) && id.server_index == 0,
        Variant::QualifiedName(name) => name.namespace_index == 0,
        Variant::ExtensionObject(object) => is_known(&object.type_id),
        Variant::Array(array) => match &array.values {
            ArrayValues::NodeId(ids) => ids.iter().all(is_known),
            ArrayValues::ExpandedNodeId(ids) => {
                ids.iter().all(|id| is_known(&id.node_id) && id.server_index == 0)
            }
            ArrayValues::QualifiedName(names) => names.iter().all(|name| name.namespace_index == 0),
            ArrayValues::ExtensionObject(objects) => objects.iter().all(|object| is_known(&object.type_id)),
            ArrayValues::Variant(values) => values.iter().all(is_portable),
            _ => true,
        },
        _ => true,
    }
}

/// Translates the encoding ids of structures.
fn structures(mut value: Variant, encoding: impl Fn(&NodeId) -> Option<NodeId>) -> Option<Variant> {
    let rename = |object: &mut ExtensionObject| {
        if !object.is_null() {
            object.type_id = encoding(&object.type_id)?;
        }
        Some(())
    };
    match &mut value {
        Variant::ExtensionObject(object) => rename(object)?,
        Variant::Array(array) => {
            if let ArrayValues::ExtensionObject(objects) = &mut array.values {
                objects.iter_mut().try_for_each(rename)?;
            }
        }
        _ => {}
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_a_meaning_on_one_server_only_are_rejected() {
        assert!(is_portable(&1.5.into()) && is_portable(&vec![1i32].into()) && is_portable(&"a".into()));
        assert!(is_portable(&NodeId::numeric(0, 85).into()));
        assert!(!is_portable(&NodeId::numeric(2, 85).into()));
        let of_type = |type_id| {
            let object = taktwerk_types::ExtensionObject { type_id, ..Default::default() };
            Variant::ExtensionObject(Box::new(object))
        };
        assert!(
            is_portable(&of_type(NodeId::numeric(0, 297))) && !is_portable(&of_type(NodeId::numeric(1, 5)))
        );
    }

    #[test]
    fn encoding_ids_of_structures_are_translated() {
        let own = NodeId::numeric(4, 7);
        let translation =
            Translation { here: vec![Some(0), None, Some(4)], encodings: HashSet::from([own.clone()]) };
        let of = |type_id| {
            Variant::from(vec![ExtensionObject::from_binary(type_id, vec![1, 2]), ExtensionObject::NULL])
        };
        let there = of(NodeId::numeric(2, 7));
        assert_eq!(translation.value_here(there.clone()), Some(of(own.clone())));
        assert_eq!(translation.value_there(of(own)), Some(there));
        // Unknown structures are rejected, plain values pass.
        assert_eq!(translation.value_here(of(NodeId::numeric(2, 8))), None);
        assert_eq!(translation.value_here(of(NodeId::numeric(1, 7))), None);
        assert_eq!(translation.value_there(of(NodeId::numeric(2, 7))), None);
        assert_eq!(translation.value_here(1.5.into()), Some(1.5.into()));
        assert_eq!(translation.here(&NodeId::numeric(1, 1)), None);
        let name = |index| QualifiedName::new(index, "a");
        assert_eq!(translation.name(&name(2)), Some(name(4)));
        assert_eq!(
            (translation.name_there(&name(4)), translation.name_there(&name(0))),
            (Some(name(2)), Some(name(0)))
        );
        assert_eq!(translation.name_there(&name(3)), None);
        // Calls: structures of namespace 0 pass unchanged, known ones with translated ids, and values that name nodes are
        // rejected.
        let range = of(NodeId::numeric(0, 886));
        assert_eq!(translation.argument_here(range.clone()), Some(range.clone()));
        assert_eq!(translation.argument_there(range.clone()), Some(range));
        assert_eq!(translation.argument_there(of(NodeId::numeric(4, 7))), Some(of(NodeId::numeric(2, 7))));
        assert_eq!(translation.argument_here(of(NodeId::numeric(2, 7))), Some(of(NodeId::numeric(4, 7))));
        assert_eq!(translation.argument_there(of(NodeId::numeric(4, 8))), None);
        assert_eq!(translation.argument_there(NodeId::numeric(4, 7).into()), None);
        assert_eq!(translation.argument_there(1.5.into()), Some(1.5.into()));
    }
}
