//! Variables and events of any finite state machine, as clients see them.

use crate::error::BuildError;
use crate::space::{Node, now, ns0};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, Weak};
use taktwerk_server::AddressSpace;
use taktwerk_server::space::NodeError;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, StatusCode, Variant};

/// The severity of a transition, as in the examples of Part 10 for ordinary ones.
const SEVERITY: u16 = 100;

/// The Object of a state machine. Weak: the address space owns the Methods, which own the state machine.
pub(crate) struct Shown {
    pub(crate) space: Weak<AddressSpace>,
    pub(crate) id: NodeId,
    pub(crate) namespace: u16,
    pub(crate) name: String,
    /// It was deleted. Its NodeId may now belong to another node.
    is_deleted: AtomicBool,
    /// Called when the object deletes itself.
    deleted: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// A state or a transition.
#[derive(Clone)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: NodeId,
    pub(crate) number: u32,
}

impl Shown {
    pub(crate) fn new(node: &Node, name: &str) -> Self {
        let space = std::sync::Arc::downgrade(&node.space);
        Self { namespace: node.namespace, ..Self::at(space, node.id.clone(), name) }
    }

    /// An object whose children are in its own namespace.
    pub(crate) fn at(space: Weak<AddressSpace>, id: NodeId, name: &str) -> Self {
        let deleted = OnceLock::new();
        let is_deleted = AtomicBool::new(false);
        Self { space, namespace: id.namespace_index, id, name: name.to_owned(), is_deleted, deleted }
    }

    /// The object; `None` if it was deleted, or the server has stopped.
    pub(crate) fn node(&self) -> Option<Node> {
        if self.is_deleted.load(Ordering::Acquire) {
            return None;
        }
        Some(Node { space: self.space.upgrade()?, id: self.id.clone(), namespace: self.namespace })
    }

    /// Whether the object still exists.
    pub(crate) fn is_there(&self) -> bool {
        self.node().is_some_and(|node| node.space.contains(&node.id))
    }

    /// Sets a function to call when the object deletes itself. Only the first call has an effect.
    pub(crate) fn when_deleted(&self, told: impl Fn() + Send + Sync + 'static) {
        let _ = self.deleted.set(Box::new(told));
    }

    /// Deletes the object with all its components.
    pub(crate) fn delete(&self) {
        if self.is_deleted.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(space) = self.space.upgrade() {
            space.delete_tree(&self.id, now());
        }
        if let Some(told) = self.deleted.get() {
            told();
        }
    }

    /// FinalResultData (Part 10 §5.2.1). Added if it does not exist.
    pub(crate) fn final_results(&self) -> Result<Node, BuildError> {
        let node = self.node().filter(|node| node.space.contains(&node.id));
        let node = node.ok_or_else(|| NodeError::Unknown(self.id.clone()))?;
        let name = QualifiedName::new(0, "FinalResultData");
        match node.child_named(&name) {
            Ok(results) => Ok(results),
            Err(_) => node.object("FinalResultData").browse_name(name).add(),
        }
    }

    pub(crate) fn set(&self, path: &[&str], value: impl Into<Variant>) {
        let Some(Node { space, id, .. }) = self.node() else { return };
        let id = path.iter().try_fold(id, |id, name| space.child(&id, &QualifiedName::new(0, *name)));
        // Skip variables that the type does not have, or that were deleted.
        if let Some(variable) = id.and_then(|id| space.variable(&id).ok()) {
            variable.set_at(value, now());
        }
    }

    /// Shows that the machine is inactive (Part 16 §4.4.6).
    pub(crate) fn show_inactive(&self) {
        self.blank("CurrentState", StatusCode::BAD_STATE_NOT_ACTIVE);
        self.blank("LastTransition", StatusCode::BAD_STATE_NOT_ACTIVE);
    }

    /// Shows that there has been no transition yet.
    pub(crate) fn show_no_transition(&self) {
        self.blank("LastTransition", StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    }

    /// Removes the value of the variable of a state or a transition.
    fn blank(&self, variable: &str, status: StatusCode) {
        let Some(Node { space, id, .. }) = self.node() else { return };
        let Some(id) = space.child(&id, &QualifiedName::new(0, variable)) else { return };
        let parts = ["Id", "Name", "Number", "TransitionTime"].map(|name| QualifiedName::new(0, name));
        let parts = parts.iter().filter_map(|name| space.child(&id, name));
        for variable in parts.chain([id.clone()]).filter_map(|id| space.variable(&id).ok()) {
            let now = now();
            variable.set_with(Variant::Empty, status, now, now);
        }
    }

    /// Shows a state or a transition. Returns the name of its variable.
    fn show(&self, variable: &str, value: &Named<'_>) {
        self.set(&[variable], text(value.name));
        self.set(&[variable, "Id"], value.id.clone());
        self.set(&[variable, "Name"], QualifiedName::new(value.id.namespace_index, value.name));
        self.set(&[variable, "Number"], value.number);
    }

    pub(crate) fn show_state(&self, state: &Named<'_>) {
        self.show("CurrentState", state);
    }

    pub(crate) fn show_transition(&self, transition: &Named<'_>) {
        self.show("LastTransition", transition);
        self.set(&["LastTransition", "TransitionTime"], now());
    }

    /// Raises an event of TransitionEventType (Part 16 §4.4.16) or of a type that derives from it.
    pub(crate) fn raise(&self, event_type: u32, transition: &Named<'_>, ends: (&Named<'_>, &Named<'_>)) {
        self.raise_with(event_type, transition, ends, &[]);
    }

    /// The same with fields of that type.
    pub(crate) fn raise_with(
        &self,
        event_type: u32,
        transition: &Named<'_>,
        (from, to): (&Named<'_>, &Named<'_>),
        fields: &[(&str, Variant)],
    ) {
        let Some(node) = self.node() else { return };
        let event = node
            .event(ns0(event_type))
            .severity(SEVERITY)
            .message(text(&format!("{} is {}", self.name, to.name)))
            .field("Transition", text(transition.name))
            .field("Transition/Id", transition.id.clone())
            .field("FromState", text(from.name))
            .field("FromState/Id", from.id.clone())
            .field("ToState", text(to.name))
            .field("ToState/Id", to.id.clone());
        let all = fields.iter().fold(event, |event, (name, value)| event.field(*name, value.clone()));
        all.emit();
    }
}

fn text(text: &str) -> LocalizedText {
    LocalizedText::new("en", text)
}
