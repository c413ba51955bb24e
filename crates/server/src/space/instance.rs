//! Instances of types: their members and copies of declarations (Part 3 §6.2.6, §6.3.3.3).

use super::NodeIx;
use super::build::ValueShape;
use super::error::NodeError;
use super::nodes::{Nodes, ValueAt};
use super::spec::NodeSpec;
use crate::account::Account;
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_schema::{AccessLevelType, NodeClass};
use taktwerk_types::{Decode, DecodeLimits, Identifier, NodeId, QualifiedName, UtcTime, Variant};

/// Types nest only a few levels deep; the bound stops declarations that contain their own type.
const INSTANCE_DEPTH_MAX: usize = 16;

/// Maximum number of members of an instance that a client adds: nobody else can use the nodes meanwhile, and a type with two
/// members of its own type has 2^16 of them. Takes some milliseconds.
const CLIENT_INSTANCE_NODES_MAX: usize = 2_000;

/// A child that a type declares for its instances (InstanceDeclaration, Part 3 §6.2.6).
struct Member {
    declaration: NodeIx,
    /// Declarations of the same name that it overrides; their children are inherited.
    overridden: Vec<NodeIx>,
    reference_type: NodeIx,
    name: QualifiedName,
    is_mandatory: bool,
}

/// Whether instances of a type have mandatory members.
pub(crate) fn has_mandatory_members(nodes: &Nodes, type_definition: NodeIx) -> bool {
    members(nodes, &[type_definition]).iter().any(|member| member.is_mandatory)
}

/// The members of declarations and types. Earlier sources override later ones by BrowseName (Part 3 §6.3.3.3).
fn members(nodes: &Nodes, sources: &[NodeIx]) -> Vec<Member> {
    let aggregates = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
    let subtype = NodeIx::ns0(reference_type_ids::HAS_SUBTYPE);
    let mandatory = NodeIx::ns0(object_ids::MODELLING_RULE_MANDATORY);
    let optional = NodeIx::ns0(object_ids::MODELLING_RULE_OPTIONAL);
    let mut names = BTreeMap::new();
    let mut found: Vec<Member> = Vec::new();
    for source in with_supertypes(nodes, sources) {
        nodes.references(source, |reference| {
            if reference.is_forward
                && reference.reference_type != subtype
                && nodes.is_subtype(reference.reference_type, aggregates)
                && let Some(rule) =
                    nodes.forward_target(reference.target, reference_type_ids::HAS_MODELLING_RULE)
                && (rule == mandatory || rule == optional)
                && let Some(node) = nodes.view(reference.target)
            {
                let known = *names.entry(node.browse_name()).or_insert(found.len());
                if let Some(known) = found.get_mut(known) {
                    known.overridden.push(reference.target);
                    return true;
                }
                found.push(Member {
                    declaration: reference.target,
                    overridden: Vec::new(),
                    reference_type: reference.reference_type,
                    name: node.browse_name(),
                    is_mandatory: rule == mandatory,
                });
            }
            true
        });
    }
    found
}

/// Each source followed by its supertypes, then the interfaces of all of them (Part 3 §4.10).
fn with_supertypes(nodes: &Nodes, sources: &[NodeIx]) -> Vec<NodeIx> {
    let mut all = Vec::new();
    let mut interfaces = Vec::new();
    let mut sources = sources.to_vec();
    let mut at = 0;
    loop {
        let Some(source) = sources.get(at).copied() else {
            sources.append(&mut interfaces);
            if at >= sources.len() {
                return all;
            }
            continue;
        };
        at += 1;
        let mut next = Some(source);
        while let Some(ix) = next.filter(|ix| !all.contains(ix)) {
            all.push(ix);
            next = None;
            nodes.references(ix, |reference| {
                if !reference.is_forward
                    && reference.reference_type == NodeIx::ns0(reference_type_ids::HAS_SUBTYPE)
                {
                    next = next.or(Some(reference.target));
                }
                if reference.is_forward
                    && nodes
                        .is_subtype(reference.reference_type, NodeIx::ns0(reference_type_ids::HAS_INTERFACE))
                {
                    interfaces.push(reference.target);
                }
                true
            });
        }
    }
}

/// The optional members of an instance, and the owner of its nodes.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) optional: &'a [&'a str],
    pub(super) owner: Option<&'a Arc<Account>>,
}

/// Adds the members that a node of an instance lacks. `at` is the path of the node from the instance.
pub(super) fn add_members(
    nodes: &mut Nodes,
    (at, instance): (&str, NodeIx),
    sources: &[NodeIx],
    wanted: Wanted<'_>,
    added: &mut Vec<(String, NodeId, NodeIx)>,
    now: UtcTime,
) -> Result<(), NodeError> {
    if at.matches('/').count() >= INSTANCE_DEPTH_MAX {
        return Ok(());
    }
    let parent_id = nodes.id_of(instance);
    for member in members(nodes, sources) {
        let name = member.name.name.as_str();
        let path = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
        let is_wanted = |wanted: &&str| **wanted == path || wanted.starts_with(&format!("{path}/"));
        if !member.is_mandatory && !wanted.optional.iter().any(is_wanted) {
            continue;
        }
        if let Some(child) = nodes.child(instance, &member.name) {
            // An Object that gets an interface may have some of its members, but not all members of those.
            add_members(nodes, (&path, child), &sources_of(nodes, &member), wanted, added, now)?;
            continue;
        }
        if wanted.owner.is_some() && added.len() >= CLIENT_INSTANCE_NODES_MAX {
            return Err(NodeError::InstanceTooLarge(CLIENT_INSTANCE_NODES_MAX));
        }
        let id = child_id(nodes, &parent_id, name);
        let Some(spec) = copy_of(nodes, member.declaration, id.clone()) else { continue };
        let ix = nodes.add_owned(spec, wanted.owner, now)?;
        added.push((path.clone(), id, ix));
        nodes.add_reference(instance, member.reference_type, ix, true)?;
        let type_definition = NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION);
        if let Some(kind) = nodes.forward_target(member.declaration, type_definition.index) {
            nodes.add_reference(ix, type_definition, kind, false)?;
        }
        add_members(nodes, (&path, ix), &sources_of(nodes, &member), wanted, added, now)?;
    }
    Ok(())
}

/// The nodes that declare the members of a member: its declaration, that one's type, and the declarations it overrides.
fn sources_of(nodes: &Nodes, member: &Member) -> Vec<NodeIx> {
    let kind = nodes.forward_target(member.declaration, reference_type_ids::HAS_TYPE_DEFINITION);
    core::iter::once(member.declaration).chain(kind).chain(member.overridden.iter().copied()).collect()
}

/// Whether a node is an interface (Part 3 §4.10.2).
pub(crate) fn is_interface(nodes: &Nodes, ix: NodeIx) -> bool {
    nodes.is_subtype(ix, NodeIx::ns0(object_type_ids::BASE_INTERFACE_TYPE))
}

/// How much of an interface an Object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All mandatory members.
    Complete,
    /// Some mandatory members are missing.
    Incomplete,
    /// A child has the name of a member, but another NodeClass: the interface cannot be applied.
    Collision,
}

/// Compares an Object with the members of an interface.
pub(crate) fn coverage(nodes: &Nodes, object: NodeIx, interface: NodeIx) -> Coverage {
    coverage_of(nodes, object, &[interface], 0)
}

fn coverage_of(nodes: &Nodes, at: NodeIx, sources: &[NodeIx], depth: usize) -> Coverage {
    let class = |ix| nodes.view(ix).map(|view| view.class());
    let mut found = Coverage::Complete;
    if depth > INSTANCE_DEPTH_MAX {
        return found;
    }
    for member in members(nodes, sources) {
        let inner = match nodes.child(at, &member.name) {
            Some(child) if class(child) != class(member.declaration) => Coverage::Collision,
            Some(child) => coverage_of(nodes, child, &sources_of(nodes, &member), depth + 1),
            None if member.is_mandatory => Coverage::Incomplete,
            None => Coverage::Complete,
        };
        match inner {
            Coverage::Collision => return inner,
            Coverage::Incomplete => found = inner,
            Coverage::Complete => {}
        }
    }
    found
}

/// Adds the mandatory members of an interface to an Object that lacks them.
///
/// # Errors
/// The limits of the owner. Nothing is added then.
pub(crate) fn apply_interface(
    nodes: &mut Nodes,
    object: NodeIx,
    interface: NodeIx,
    owner: Option<&Arc<Account>>,
    now: UtcTime,
) -> Result<(), NodeError> {
    complete(nodes, object, interface, Wanted { optional: &[], owner }, now).map(drop)
}

/// Adds the members of a type or an interface that an instance lacks. Returns the number of added nodes.
///
/// # Errors
/// The limits of the owner. Nothing is added then.
pub(super) fn complete(
    nodes: &mut Nodes,
    instance: NodeIx,
    kind: NodeIx,
    wanted: Wanted<'_>,
    now: UtcTime,
) -> Result<usize, NodeError> {
    let mut added = Vec::new();
    let result = add_members(nodes, ("", instance), &[kind], wanted, &mut added, now);
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
