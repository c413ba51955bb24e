//! Instances of types: their members and copies of declarations (Part 3 §6.2.6, §6.3.3.3).

mod interface;
mod members;

pub(crate) use interface::{Coverage, apply_interface, coverage, is_interface};
pub(crate) use members::{Walk, has_mandatory_members};

use super::NodeIx;
use super::build::ValueShape;
use super::error::NodeError;
use super::nodes::{Nodes, ValueAt};
use super::spec::NodeSpec;
use crate::account::Account;
use members::{members, sources_of, text_cost};
use std::sync::Arc;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{AccessLevelType, NodeClass};
use taktwerk_types::{Decode, DecodeLimits, Identifier, NodeId, QualifiedName, UtcTime, Variant};

/// Types nest only a few levels deep; the bound stops declarations that contain their own type.
const INSTANCE_DEPTH_MAX: usize = 16;

/// Maximum number of members of an instance that a client adds: the nodes are locked meanwhile, and a type with two members
/// of its own type has 2^16 of them.
const CLIENT_INSTANCE_NODES_MAX: usize = 2_000;

/// The optional members of an instance, the owner of its nodes, and the time of the change.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) optional: &'a [&'a str],
    pub(crate) owner: Option<&'a Arc<Account>>,
    pub(crate) now: UtcTime,
}

/// Adds the members that a node of an instance lacks. `at` is the path of the node from the instance.
pub(super) fn add_members(
    nodes: &mut Nodes,
    (at, instance): (&str, NodeIx),
    sources: &[NodeIx],
    wanted: Wanted<'_>,
    added: &mut Vec<(String, NodeId, NodeIx)>,
    walk: &mut Walk,
) -> Result<(), NodeError> {
    if at.matches('/').count() >= INSTANCE_DEPTH_MAX {
        return Ok(());
    }
    let parent_id = nodes.id_of(instance);
    for member in members(nodes, sources, walk)? {
        if !member.is_mandatory && wanted.optional.is_empty() {
            continue;
        }
        let name = member.name.name.as_str();
        walk.look(text_cost(at.len() + name.len()))?;
        let path = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
        let is_below = |wanted: &&str| wanted.starts_with(&format!("{path}/"));
        let has_wanted_below = wanted.optional.iter().any(is_below);
        if !member.is_mandatory && !has_wanted_below && !wanted.optional.contains(&path.as_str()) {
            continue;
        }
        let inner = sources_of(nodes, &member);
        if let Some(child) = nodes.child_indexed(instance, &member.name) {
            // An Object that gets an interface may have some of its members, but not all members of those. Many paths
            // can lead to one child.
            if has_wanted_below || walk.enters(child, &inner) {
                add_members(nodes, (&path, child), &inner, wanted, added, walk)?;
            }
            continue;
        }
        if wanted.owner.is_some() && added.len() >= CLIENT_INSTANCE_NODES_MAX {
            return Err(NodeError::InstanceTooLarge(CLIENT_INSTANCE_NODES_MAX));
        }
        let id = child_id(nodes, &parent_id, name);
        let Some(spec) = copy_of(nodes, member.declaration, id.clone()) else { continue };
        let ix = nodes.add_owned(spec, wanted.owner, wanted.now)?;
        added.push((path.clone(), id, ix));
        nodes.add_reference(instance, member.reference_type, ix, true)?;
        let type_definition = NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION);
        if let Some(kind) = nodes.forward_target(member.declaration, type_definition.index) {
            nodes.add_reference(ix, type_definition, kind, false)?;
        }
        add_members(nodes, (&path, ix), &inner, wanted, added, walk)?;
    }
    Ok(())
}

/// Adds the members of a type or an interface that an instance lacks. Returns the number of added nodes.
///
/// # Errors
/// The limits of the owner and of the walk. Nothing is added then.
pub(super) fn complete(
    nodes: &mut Nodes,
    instance: NodeIx,
    kind: NodeIx,
    wanted: Wanted<'_>,
    walk: &mut Walk,
) -> Result<usize, NodeError> {
    walk.start();
    let mut added = Vec::new();
    let result = add_members(nodes, ("", instance), &[kind], wanted, &mut added, walk);
    for (_, _, ix) in &added {
        nodes.note_added(*ix);
    }
    if let Err(error) = result {
        for (_, _, ix) in added.into_iter().rev() {
            // They were just added, so this cannot fail.
            let _ = nodes.delete(ix);
        }
        return Err(error);
    }
    Ok(added.len())
}

/// The BrowseName that a type recommends for its instances (DefaultInstanceBrowseName, Part 3 §4.10.3).
pub(crate) fn default_name(nodes: &Nodes, kind: NodeIx) -> Option<QualifiedName> {
    let property = QualifiedName::new(0, "DefaultInstanceBrowseName");
    let mut next = Some(kind);
    for _ in 0..INSTANCE_DEPTH_MAX {
        let ix = next?;
        if let Some(found) = nodes.child_by(ix, reference_type_ids::HAS_PROPERTY, &property) {
            let Some(Variant::QualifiedName(name)) = fixed_value(nodes, found) else { return None };
            return Some(*name).filter(|name| !name.name.is_empty());
        }
        next = nodes.supertype(ix);
    }
    None
}

/// A free id for a child: the parent's string id plus the name, so that ids are the same after each start.
pub(crate) fn child_id(nodes: &Nodes, parent: &NodeId, name: &str) -> NodeId {
    let namespace = if parent.namespace_index == 0 { 1 } else { parent.namespace_index };
    let base = match &parent.identifier {
        Identifier::String(text) => format!("{}/{name}", text.as_str()),
        Identifier::Numeric(number) => format!("{number}/{name}"),
        Identifier::Guid(guid) => format!("{guid}/{name}"),
        Identifier::Opaque(_) => format!("{parent}/{name}"),
    };
    let first = NodeId::string(namespace, base.as_str());
    if nodes.resolve(first.as_ref()).is_none() {
        return first;
    }
    let numbered = (2u32..).map(|number| NodeId::string(namespace, format!("{base}#{number}")));
    numbered.into_iter().find(|id| nodes.resolve(id.as_ref()).is_none()).unwrap_or(first)
}

/// The attributes copied from a declaration.
fn copy_of(nodes: &Nodes, declaration: NodeIx, id: NodeId) -> Option<NodeSpec> {
    let view = nodes.view(declaration)?;
    let name = view.browse_name();
    let mut spec = match view.class() {
        NodeClass::OBJECT => {
            NodeSpec::object(id, name).event_notifier(view.declared_event_notifier().unwrap_or_default())
        }
        NodeClass::METHOD => {
            let handler = nodes.method_handler(declaration).cloned();
            NodeSpec::method(id, name, handler)
        }
        NodeClass::VARIABLE => variable_copy(nodes, declaration, id, name)?,
        _ => return None,
    };
    let display_name = view.display_name();
    if display_name.text.as_str() != spec.browse_name.name.as_str() {
        spec = spec.display_name(display_name);
    }
    // Restrictions to administrators in a type also apply to its instances.
    spec.access = nodes.access().own(nodes.access_set(declaration)).cloned().unwrap_or_default();
    Some(spec)
}

/// The value of a Variable of a type.
fn fixed_value(nodes: &Nodes, ix: NodeIx) -> Option<Variant> {
    match nodes.value_at(ix) {
        ValueAt::Slot(slot) | ValueAt::Source(_, slot) => {
            nodes.slot(slot).map(|snapshot| snapshot.value()).filter(|value| !value.is_empty())
        }
        ValueAt::Static(bytes) => Variant::decode_from(bytes, DecodeLimits::DEFAULT).ok(),
        ValueAt::Computed(_) | ValueAt::None => None,
    }
}

fn variable_copy(nodes: &Nodes, declaration: NodeIx, id: NodeId, name: QualifiedName) -> Option<NodeSpec> {
    let view = nodes.view(declaration)?;
    let value = fixed_value(nodes, declaration);
    let shape = ValueShape {
        data_type: view.data_type()?,
        value_rank: view.value_rank().unwrap_or(-1),
        array_dimensions: match view.attribute(super::view::attribute::ARRAY_DIMENSIONS) {
            Ok(dimensions) => Vec::try_from(dimensions).unwrap_or_default(),
            Err(_) => Vec::new(),
        },
    };
    let mut access = AccessLevelType::default();
    if view.is_readable() {
        access.0 |= AccessLevelType::CURRENT_READ.0;
    }
    if view.is_writable() {
        access.0 |= AccessLevelType::CURRENT_WRITE.0;
    }
    Some(NodeSpec::variable(id, name, NodeId::NULL, value).shape(shape).access_level(access))
}
