//! Conditions in the address space (Part 9 §5.5.2, §6): instances of their types, with their Variables and Methods.

use crate::alarm::fields::{Field, optional_members};
use crate::alarm::operation::GROUP_MEMBERSHIPS;
use crate::alarm::{ConditionSpec, Method};
use crate::authorization::Access;
use crate::callback::{CallContext, MethodCall, MethodHandler};
use crate::event::FieldName;
use crate::event::filter::Types;
use crate::space::build::Under;
use crate::space::instance::{Walk, Wanted, complete};
use crate::space::{AddressSpace, NodeError, NodeIx, NodeSpec, VariableHandle};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::{object_ids, reference_type_ids};
use taktwerk_types::{NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// Makes the Methods of instances executable. Client calls are handled earlier (`service/condition.rs`); only other
/// calls get here.
struct Answered;

impl MethodHandler for Answered {
    fn call(&self, _: &CallContext, _: Vec<Variant>) -> MethodCall {
        MethodCall::Now(Err(StatusCode::BAD_NOT_SUPPORTED))
    }
}

/// The Variables of a condition with nodes in the address space.
#[derive(Debug)]
pub(super) struct ConditionNodes {
    variables: BTreeMap<String, VariableHandle>,
    /// Its ShelvingState, on which Methods can also be called.
    pub(super) shelving: Option<NodeId>,
}

impl ConditionNodes {
    /// Sets the Variables whose values differ from the fields.
    pub(super) fn show(&self, fields: &[Field], now: UtcTime) {
        for (path, value) in fields {
            self.set(path, value, now);
        }
    }

    /// Adds a Variable.
    pub(super) fn add(&mut self, path: &str, variable: VariableHandle) {
        self.variables.insert(path.to_owned(), variable);
    }

    /// Removes a Variable.
    pub(super) fn remove(&mut self, path: &str) {
        self.variables.remove(path);
    }

    /// Sets a Variable.
    pub(super) fn set(&self, path: &str, value: &Variant, now: UtcTime) {
        let Some(variable) = self.variables.get(path) else { return };
        if variable.get().value.as_ref() != Some(value) {
            variable.set_at(value.clone(), now);
        }
    }
}

/// A path of names without namespaces, like those of optional members.
fn path_of(name: &FieldName) -> String {
    name.path().iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join("/")
}

/// The optional members of an instance: those of its definition, and its own fields.
fn optional_of(spec: &ConditionSpec) -> Vec<String> {
    let own = spec.own.iter().map(|(name, _)| path_of(name));
    optional_members(spec).into_iter().map(str::to_owned).chain(own).collect()
}

/// Whether a Method is one of conditions, by its path. Others belong to the application.
fn is_answered(path: &str) -> bool {
    let name = path.strip_prefix("ShelvingState/").unwrap_or(path);
    name == GROUP_MEMBERSHIPS || Method::from_name(name).is_some()
}

/// Maximum depth of members in an instance.
const DEPTH_MAX: usize = 5;

impl AddressSpace {
    /// Takes over type, name and source from an existing instance that a condition is bound to.
    ///
    /// Returns whether it is an Object of a ConditionType.
    ///
    /// # Errors
    /// The node does not exist.
    pub(super) fn bind_condition(&self, spec: &mut ConditionSpec) -> Result<bool, NodeError> {
        let nodes = self.read();
        let ix = nodes.find(&spec.id)?;
        let kind = nodes.forward_target(ix, reference_type_ids::HAS_TYPE_DEFINITION);
        let view = nodes.view(ix).filter(|view| view.class() == NodeClass::OBJECT);
        let (Some(kind), Some(view)) = (kind.filter(|kind| nodes.is_condition(*kind)), view) else {
            return Ok(false);
        };
        spec.type_id = Some(nodes.id_of(kind));
        if spec.name.is_empty() {
            spec.name = view.browse_name().name.as_str().into();
        }
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let (mut source, mut parent) = (None, None);
        nodes.references(ix, |reference| {
            if reference.is_forward {
                return true;
            }
            if reference.reference_type == NodeIx::ns0(reference_type_ids::HAS_CONDITION) {
                source = Some(reference.target);
            } else if nodes.is_subtype(reference.reference_type, hierarchical) {
                parent = Some(reference.target);
            }
            source.is_none()
        });
        // Without its own source, the source is the Object that it is a part of.
        if let Some(found) = source.or(parent.filter(|_| spec.source == spec.id)) {
            spec.source = nodes.id_of(found);
        }
        Ok(true)
    }

    /// The members of an instance, by paths in the format of [`FieldName`]. Of several paths to a node, the shortest one
    /// counts. Nodes that clients added are not members of the application's instances.
    pub(crate) fn members_of(&self, id: &NodeId) -> Vec<(String, NodeId)> {
        let nodes = self.read();
        let aggregates = NodeIx::ns0(reference_type_ids::AGGREGATES);
        let mut found = Vec::new();
        let Some(root) = nodes.resolve(id.as_ref()) else { return found };
        let is_of_client = nodes.is_added(root);
        let mut seen = BTreeSet::from([root]);
        let mut next = VecDeque::from([(String::new(), root, 0)]);
        while let Some((path, ix, depth)) = next.pop_front() {
            if depth < DEPTH_MAX {
                nodes.references(ix, |reference| {
                    if reference.is_forward
                        && nodes.is_subtype(reference.reference_type, aggregates)
                        && (is_of_client || !nodes.is_added(reference.target))
                        && seen.insert(reference.target)
                    {
                        if let Some(view) = nodes.view(reference.target) {
                            // With its namespace: a type may add a member with the name of a standard one.
                            let name = view.browse_name();
                            let path =
                                if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
                            next.push_back((path, reference.target, depth + 1));
                        }
                    }
                    true
                });
            }
            found.push((path, nodes.id_of(ix)));
        }
        found
    }

    /// Adds the instance of a condition and the references to it.
    pub(super) fn add_condition_nodes(
        &self,
        spec: &ConditionSpec,
        now: UtcTime,
    ) -> Result<ConditionNodes, NodeError> {
        let ns0 = |id: u32| NodeId::numeric(0, id);
        let name = spec.browse_name.clone();
        let name = name.unwrap_or_else(|| QualifiedName::new(spec.id.namespace_index, &*spec.name));
        let parent = spec.parent.clone().unwrap_or_else(|| self.condition_parent(&spec.source));
        let under = Under {
            parent: &parent,
            reference_type: &ns0(reference_type_ids::HAS_COMPONENT),
            type_definition: Some(&spec.type_id()),
        };
        if !spec.is_bound {
            let optional = optional_of(spec);
            let optional: Vec<&str> = optional.iter().map(String::as_str).collect();
            self.add_instance(NodeSpec::object(spec.id.clone(), name), under, &optional, now)?;
        }
        // Part 9 §5.12: HasCondition points from the source to the condition. A bound instance may have the reference
        // already.
        if !spec.is_bound || !self.has_condition(&spec.source, &spec.id) {
            self.add_reference(&spec.source, &ns0(reference_type_ids::HAS_CONDITION), &spec.id)?;
        }
        self.nodes_of_condition(spec, now)
    }

    /// Gives the instance of a condition the optional members of a changed definition.
    pub(super) fn add_condition_members(&self, spec: &ConditionSpec, now: UtcTime) -> Result<(), NodeError> {
        let optional = optional_of(spec);
        let optional: Vec<&str> = optional.iter().map(String::as_str).collect();
        let mut nodes = self.write();
        let (instance, kind) = (nodes.find(&spec.id)?, nodes.find(&spec.type_id())?);
        let wanted = Wanted { optional: &optional, owner: None, now };
        let count = complete(&mut nodes, instance, kind, wanted, &mut Walk::unlimited())?;
        drop(nodes);
        if count > 0 {
            self.raise_model_changes(now);
        }
        Ok(())
    }

    /// Deletes the optional members that the instance of a condition does not have with its changed definition.
    pub(super) fn delete_condition_members(&self, old: &ConditionSpec, new: &ConditionSpec, now: UtcTime) {
        let names = |spec: &ConditionSpec| -> BTreeSet<String> {
            let own = spec.own.iter().map(|(name, _)| name.to_string());
            optional_members(spec).into_iter().map(str::to_owned).chain(own).collect()
        };
        let (before, after) = (names(old), names(new));
        // Deeper members are deleted with the ones above them.
        let unwanted = |path: &String| before.contains(path) && !after.contains(path);
        for (_, id) in self.members_of(&old.id).into_iter().filter(|(path, _)| unwanted(path)) {
            self.delete_tree(&id, now);
        }
    }

    /// Finds the Variables of an instance, and makes its Methods executable.
    pub(super) fn nodes_of_condition(
        &self,
        spec: &ConditionSpec,
        now: UtcTime,
    ) -> Result<ConditionNodes, NodeError> {
        let (mut variables, mut shelving) = (BTreeMap::new(), None);
        for (path, id) in self.members_of(&spec.id) {
            if spec.access != Access::default() {
                self.set_access(&id, spec.access.clone())?;
            }
            if path == "ShelvingState" {
                shelving = Some(id.clone());
            }
            if let Ok(variable) = self.variable(&id) {
                variables.insert(path, variable);
            } else if self.node_class(&id) == Some(NodeClass::METHOD) && is_answered(&path) {
                self.set_method(&id, Arc::new(Answered))?;
            }
        }
        let nodes = ConditionNodes { variables, shelving };
        if let Some(sound) = &spec.sound {
            nodes.set("AudibleSound", &sound.clone().into(), now);
        }
        Ok(nodes)
    }

    fn has_condition(&self, source: &NodeId, condition: &NodeId) -> bool {
        let nodes = self.read();
        let (Some(source), Some(condition)) =
            (nodes.resolve(source.as_ref()), nodes.resolve(condition.as_ref()))
        else {
            return false;
        };
        let mut found = false;
        nodes.references(source, |reference| {
            found = reference.is_forward
                && reference.target == condition
                && reference.reference_type == NodeIx::ns0(reference_type_ids::HAS_CONDITION);
            !found
        });
        found
    }

    /// The Object that an instance is a component of: the source, or the nearest Object above it. Objects cannot be
    /// components of Variables (Part 3 §7.7).
    pub(super) fn condition_parent(&self, source: &NodeId) -> NodeId {
        let nodes = self.read();
        let server = || NodeId::numeric(0, object_ids::SERVER);
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let Some(mut at) = nodes.resolve(source.as_ref()) else { return server() };
        for _ in 0..16 {
            if nodes.view(at).is_some_and(|view| view.class() == NodeClass::OBJECT) {
                return nodes.id_of(at);
            }
            let mut above = None;
            nodes.references(at, |reference| {
                if !reference.is_forward && nodes.is_subtype(reference.reference_type, hierarchical) {
                    above = Some(reference.target);
                }
                above.is_none()
            });
            let Some(above) = above else { break };
            at = above;
        }
        server()
    }

    /// The default name of a source: the DisplayName of the Object above it, then its own.
    #[must_use]
    pub fn source_name_of(&self, source: &NodeId) -> String {
        let parent = self.condition_parent(source);
        let nodes = self.read();
        let name = |id: &NodeId| {
            let view = nodes.resolve(id.as_ref()).and_then(|ix| nodes.view(ix));
            view.map(|view| view.display_name().text.as_str().to_owned()).unwrap_or_default()
        };
        if parent == *source || parent.ns0().is_some() {
            return name(source);
        }
        format!("{}/{}", name(&parent), name(source))
    }
}
