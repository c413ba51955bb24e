//! The nodes of a state machine type (Part 16 §4.4.6 to §4.4.12).

use super::Named;
use super::definition::{Definition, Machine};
use crate::error::BuildError;
use crate::space::{Namespace, Node, arguments, ns0};
use std::sync::Arc;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids as r};
use taktwerk_server::space::NodeSpec;
use taktwerk_types::{NodeId, QualifiedName};

/// The bit of EventNotifier that lets clients monitor events (Part 3 §8.59).
const SUBSCRIBE_TO_EVENTS: u8 = 1;

/// A sub-machine, and one of its states.
pub(super) type Inside = (usize, usize);

struct Inner {
    machine: Machine,
    id: NodeId,
    /// The namespace of its BrowseNames.
    namespace: u16,
    /// The Objects of the type, in the order of the definition.
    states: Vec<NodeId>,
    transitions: Vec<NodeId>,
}

/// A state machine type in the address space. [`Node::state_machine`] adds instances. Clones refer to the same type.
#[derive(Clone)]
pub struct StateMachineType(Arc<Inner>);

/// Types are equal if they are the same object.
impl PartialEq for StateMachineType {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl core::fmt::Debug for StateMachineType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StateMachineType").field("id", &self.0.id).field("machine", &self.0.machine).finish()
    }
}

impl Namespace {
    /// Adds a subtype of FiniteStateMachineType with its states, transitions and causing Methods.
    ///
    /// # Errors
    /// The definition is invalid, or a node with this name exists.
    pub fn state_machine_type(&self, definition: Definition) -> Result<StateMachineType, BuildError> {
        let name = definition.name.clone();
        let machine = definition
            .compile()
            .map_err(|problem| BuildError::StateMachine { name: name.clone(), problem })?;
        let base = self.node(ns0(object_type_ids::FINITE_STATE_MACHINE_TYPE))?;
        let id = base.child_id(&name);
        base.add(NodeSpec::object_type(id.clone(), base.child_name(&name)), r::HAS_SUBTYPE, None)?;
        let node = Node { id: id.clone(), ..base };
        let added = add_parts(&node, &machine);
        let (states, transitions) = match added {
            Ok(added) => added,
            Err(error) => {
                // Delete the partial type.
                let _ = node.delete();
                return Err(error);
            }
        };
        let namespace = self.index();
        Ok(StateMachineType(Arc::new(Inner { machine, id, namespace, states, transitions })))
    }
}

/// Adds the states, transitions and Methods of a type.
fn add_parts(node: &Node, machine: &Machine) -> Result<(Vec<NodeId>, Vec<NodeId>), BuildError> {
    let refer = |from: &NodeId, kind: u32, to: &NodeId| node.space.add_reference(from, &ns0(kind), to);
    let event_type = ns0(object_type_ids::TRANSITION_EVENT_TYPE);
    refer(&node.id, r::GENERATES_EVENT, &event_type)?;
    let mut states = Vec::new();
    for (at, name) in machine.states.iter().enumerate() {
        let kind = if at == 0 { object_type_ids::INITIAL_STATE_TYPE } else { object_type_ids::STATE_TYPE };
        states.push(add_part(node, name, kind, ("StateNumber", at))?);
    }
    let mut causes = Vec::new();
    let mandatory = ns0(object_ids::MODELLING_RULE_MANDATORY);
    let arguments_of = machine.inputs.iter().zip(&machine.outputs);
    for (name, (inputs, outputs)) in machine.causes.iter().zip(arguments_of) {
        let id = node.child_id(name);
        let method = NodeSpec::method(id.clone(), node.child_name(name), None);
        node.add(method, r::HAS_COMPONENT, None)?;
        refer(&id, r::HAS_MODELLING_RULE, &mandatory)?;
        let method = Node { id: id.clone(), ..node.clone() };
        for (property, what, declared) in
            [("InputArguments", "inputs", inputs), ("OutputArguments", "outputs", outputs)]
        {
            if declared.types.is_empty() {
                continue;
            }
            method.standard_property(property, arguments(name, what, &declared.names, &declared.types)?)?;
            let property = method.child_named(&QualifiedName::new(0, property))?;
            refer(&property.id, r::HAS_MODELLING_RULE, &mandatory)?;
        }
        causes.push(id);
    }
    let mut transitions = Vec::new();
    for (at, transition) in machine.transitions.iter().enumerate() {
        let kind = object_type_ids::TRANSITION_TYPE;
        let id = add_part(node, &transition.name, kind, ("TransitionNumber", at))?;
        // Part 16 §4.5.4: a transition to a state of a sub-machine refers to that state of the sub-machine's type.
        let inside = transition
            .into
            .and_then(|(sub, state)| machine.machines.get(sub).and_then(|sub| sub.kind.states().get(state)));
        let to = inside.or_else(|| states.get(transition.to));
        for (kind, state) in [(r::FROM_STATE, states.get(transition.from)), (r::TO_STATE, to)] {
            if let Some(state) = state {
                refer(&id, kind, state)?;
            }
        }
        if let Some(cause) = transition.cause.and_then(|cause| causes.get(cause)) {
            refer(&id, r::HAS_CAUSE, cause)?;
        }
        refer(&id, r::HAS_EFFECT, &event_type)?;
        transitions.push(id);
    }
    for sub in &machine.machines {
        let id = node.child_id(&sub.name);
        let declared =
            NodeSpec::object(id.clone(), node.child_name(&sub.name)).event_notifier(SUBSCRIBE_TO_EVENTS);
        node.add(declared, r::HAS_COMPONENT, Some(sub.kind.id()))?;
        refer(&id, r::HAS_MODELLING_RULE, &mandatory)?;
        if let Some(state) = states.get(sub.state) {
            refer(state, r::HAS_SUB_STATE_MACHINE, &id)?;
        }
    }
    Ok((states, transitions))
}

/// Adds a state or a transition with its number.
fn add_part(node: &Node, name: &str, kind: u32, (number, at): (&str, usize)) -> Result<NodeId, BuildError> {
    let id = node.child_id(name);
    node.add(NodeSpec::object(id.clone(), node.child_name(name)), r::HAS_COMPONENT, Some(&ns0(kind)))?;
    let part = Node { id: id.clone(), ..node.clone() };
    part.standard_property(number, number_of(at))?;
    Ok(id)
}

fn number_of(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
}

impl StateMachineType {
    /// The ObjectType.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.0.id
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.0.machine
    }

    pub(super) fn states(&self) -> &[NodeId] {
        &self.0.states
    }

    pub(super) fn transitions(&self) -> &[NodeId] {
        &self.0.transitions
    }

    pub(super) fn state(&self, at: usize) -> Option<Named<'_>> {
        let (name, id) = (self.0.machine.states.get(at)?, self.0.states.get(at)?);
        Some(Named { name, id: id.clone(), number: number_of(at) })
    }

    pub(super) fn transition(&self, at: usize) -> Option<Named<'_>> {
        let (transition, id) = (self.0.machine.transitions.get(at)?, self.0.transitions.get(at)?);
        Some(Named { name: &transition.name, id: id.clone(), number: number_of(at) })
    }

    /// The states before and after a transition, and the state that a sub-machine of the latter enters.
    pub(super) fn ends(&self, at: usize) -> Option<(usize, usize, Option<Inside>)> {
        let transition = self.0.machine.transitions.get(at)?;
        Some((transition.from, transition.to, transition.into))
    }

    /// The name of a state of a sub-machine.
    pub(super) fn inner_state(&self, (sub, state): (usize, usize)) -> Option<&str> {
        let sub = self.0.machine.machines.get(sub)?;
        sub.kind.machine().states.get(state).map(String::as_str)
    }

    /// The object of a sub-machine of an instance.
    pub(super) fn sub_of(&self, instance: &Node, name: &str) -> Result<Node, BuildError> {
        instance.child_named(&QualifiedName::new(self.0.namespace, name))
    }

    /// The Methods of an instance.
    pub(super) fn methods_of(&self, instance: &Node) -> Result<Vec<NodeId>, BuildError> {
        let causes = self.0.machine.causes.iter();
        let names = causes.map(|cause| QualifiedName::new(self.0.namespace, cause.as_str()));
        names.map(|name| instance.child_named(&name).map(|method| method.id)).collect()
    }
}
