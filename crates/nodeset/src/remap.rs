//! Maps a file's namespace indexes to the server's.

use crate::error::{NodeSetError, Problem};
use crate::model::{Node, NodeClass, NodeSet, RolePermission, ValueShape};
use taktwerk_types::{NodeId, QualifiedName};

impl NodeSet {
    /// Changes every id and name to the namespace indexes of a server. `index_of` returns the server's index of a
    /// namespace URI. Values are mapped when [`NodeSet::value`] reads them.
    ///
    /// # Errors
    /// [`Problem::Unmapped`] if `index_of` returns `None` for one of [`NodeSet::namespace_uris`]; nothing is changed
    /// then.
    pub fn remap(&mut self, index_of: impl Fn(&str) -> Option<u16>) -> Result<(), NodeSetError> {
        let mut map = Vec::with_capacity(self.namespace_uris.len());
        for uri in &self.namespace_uris {
            map.push(index_of(uri).ok_or_else(|| NodeSetError {
                file: self.file.clone(),
                line: 1,
                problem: Box::new(Problem::Unmapped { uri: uri.clone() }),
            })?);
        }
        // Ids that were mapped before change from the old server index to the new one.
        let old: Vec<u16> = core::mem::replace(&mut self.namespace_map, map.clone());
        let target = |index: u16| {
            let position = old.iter().position(|mapped| *mapped == index);
            position.and_then(|position| map.get(position).copied()).unwrap_or(index)
        };
        self.models.iter_mut().for_each(|model| permissions(&mut model.role_permissions, &target));
        self.nodes.iter_mut().for_each(|node| remap_node(node, &target));
        Ok(())
    }
}

fn id(id: &mut NodeId, target: &impl Fn(u16) -> u16) {
    id.namespace_index = target(id.namespace_index);
}

fn name(name: &mut QualifiedName, target: &impl Fn(u16) -> u16) {
    name.namespace_index = target(name.namespace_index);
}

fn permissions(list: &mut [RolePermission], target: &impl Fn(u16) -> u16) {
    list.iter_mut().for_each(|entry| id(&mut entry.role, target));
}

fn shape(shape: &mut ValueShape, target: &impl Fn(u16) -> u16) {
    id(&mut shape.data_type, target);
}

fn remap_node(node: &mut Node, target: &impl Fn(u16) -> u16) {
    id(&mut node.node_id, target);
    name(&mut node.browse_name, target);
    if let Some(parent) = &mut node.parent {
        id(parent, target);
    }
    permissions(&mut node.role_permissions, target);
    for reference in &mut node.references {
        id(&mut reference.reference_type, target);
        id(&mut reference.target, target);
    }
    match &mut node.class {
        NodeClass::Variable { shape: it, .. } | NodeClass::VariableType { shape: it, .. } => {
            shape(it, target)
        }
        NodeClass::Method { declaration: Some(declaration), .. } => id(declaration, target),
        NodeClass::DataType { definition: Some(definition), .. } => {
            definition.fields.iter_mut().for_each(|field| id(&mut field.data_type, target));
        }
        _ => {}
    }
}
