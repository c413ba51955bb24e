//! NodeVersions and model changes (Part 3 §9.32): which nodes have a NodeVersion, and their unreported changes.
//!
//! Only nodes with a NodeVersion Property are involved (Part 3 §9.32.2). Each change of their references gives them a
//! new NodeVersion and is reported by a GeneralModelChangeEvent of the Server Object. If no node has a NodeVersion, the
//! cost is one comparison per added reference.

use super::alias_changes::AliasChanges;
use super::nodes::{Nodes, ValueAt};
use super::{AddressSpace, NodeIx};
use crate::authorization::role::well_known;
use crate::event::{ModelChangeEvents, NewEvent};
use std::collections::BTreeMap;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_schema::{
    AccessRestrictionType, ModelChangeStructureDataType, ModelChangeStructureVerbMask as Verb, NodeClass,
    PermissionType,
};
use taktwerk_types::{Array, ArrayValues, ExtensionObject, NodeId, StatusCode, UtcTime, Variant};

/// The BrowseName of the Property.
const NODE_VERSION: &str = "NodeVersion";
/// Maximum number of changes per event. Such an event has about 25 kB.
const CHANGES_PER_EVENT: usize = 1000;

/// The nodes with a NodeVersion, and their unreported changes.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// The Property of each node.
    properties: BTreeMap<NodeIx, NodeIx>,
    /// At most one entry per node, so that successive changes give one event (Part 3 §9.32.4).
    changes: BTreeMap<NodeIx, Change>,
    /// The alias categories, and changes that LastChange does not show yet.
    pub(super) aliases: AliasChanges,
}

#[derive(Debug)]
struct Change {
    affected: NodeId,
    affected_type: NodeId,
    /// Bits of ModelChangeStructureVerbMask.
    verb: u8,
    /// Whether all clients may know that the node exists.
    is_public: bool,
}

/// One bit of a verb.
fn bit(verb: Verb) -> u8 {
    verb.0 as u8
}

impl Versions {
    fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// Whether all changes have been reported.
    fn is_current(&self) -> bool {
        self.changes.is_empty() && self.aliases.is_empty()
    }
}

impl Nodes {
    /// A node got a reference.
    pub(super) fn note_reference_added(
        &mut self,
        at: NodeIx,
        reference_type: u32,
        is_forward: bool,
        target: NodeIx,
    ) {
        if is_forward
            && reference_type == reference_type_ids::HAS_PROPERTY
            && self
                .dynamic(target)
                .is_some_and(|node| node.browse_namespace() == 0 && node.browse_name.as_str() == NODE_VERSION)
        {
            self.versions.properties.insert(at, target);
        }
        if is_forward {
            self.note_alias_reference(at, reference_type, target);
            self.note_below_recorded(at, reference_type, target);
        }
        self.note_change(at, Verb::REFERENCE_ADDED);
    }

    /// A node lost a reference.
    pub(super) fn note_reference_deleted(
        &mut self,
        at: NodeIx,
        reference_type: u32,
        is_forward: bool,
        target: NodeIx,
    ) {
        if is_forward {
            self.note_alias_reference(at, reference_type, target);
        }
        if self.versions.is_empty() {
            return;
        }
        self.note_change(at, Verb::REFERENCE_DELETED);
        if is_forward && self.versions.properties.get(&at) == Some(&target) {
            // Without the Property there is no event.
            self.versions.properties.remove(&at);
            self.versions.changes.remove(&at);
        }
    }

    /// A new node is complete: its initial references are not changes.
    pub(super) fn note_added(&mut self, ix: NodeIx) {
        if self.versions.is_empty() {
            return;
        }
        self.versions.changes.remove(&ix);
        self.note_change(ix, Verb::NODE_ADDED);
    }

    /// A node will be deleted.
    pub(super) fn note_deleted(&mut self, ix: NodeIx) {
        self.note_alias_deleted(ix);
        if self.versions.is_empty() {
            return;
        }
        let is_new =
            self.versions.changes.remove(&ix).is_some_and(|change| change.verb & bit(Verb::NODE_ADDED) != 0);
        if !is_new {
            self.note_change(ix, Verb::NODE_DELETED);
        }
        self.versions.properties.remove(&ix);
    }

    fn note_change(&mut self, ix: NodeIx, verb: Verb) {
        if self.versions.is_empty() || self.node_version(ix).is_none() {
            return;
        }
        if let Some(change) = self.versions.changes.get_mut(&ix) {
            if change.verb & bit(Verb::NODE_ADDED) == 0 {
                change.verb |= bit(verb);
            }
            return;
        }
        let class = self.view(ix).map(|view| view.class());
        let type_definition = match class {
            Some(NodeClass::OBJECT | NodeClass::VARIABLE) => {
                self.forward_target(ix, reference_type_ids::HAS_TYPE_DEFINITION)
            }
            _ => None,
        };
        let change = Change {
            affected: self.id_of(ix),
            affected_type: type_definition.map(|kind| self.id_of(kind)).unwrap_or_default(),
            verb: bit(verb),
            is_public: self.is_public(ix),
        };
        self.versions.changes.insert(ix, change);
    }

    /// The NodeVersion of a node. An InstanceDeclaration of a type does not count.
    fn node_version(&self, ix: NodeIx) -> Option<NodeIx> {
        let property = *self.versions.properties.get(&ix)?;
        self.dynamic(property)?;
        let is_declaration = self.forward_target(property, reference_type_ids::HAS_MODELLING_RULE).is_some();
        (!is_declaration).then_some(property)
    }

    /// Whether neither the node nor its namespace hides it from some users.
    pub(super) fn is_public(&self, ix: NodeIx) -> bool {
        let set = self.access_set(ix);
        let restrictions = self.access().access_restrictions(set).unwrap_or_default();
        let is_shown = restrictions.0 & AccessRestrictionType::APPLY_RESTRICTIONS_TO_BROWSE.0 == 0;
        let everybody = [well_known::ANONYMOUS, well_known::AUTHENTICATED_USER];
        is_shown
            && self.access().role_permissions(set).is_none_or(|permissions| {
                permissions.iter().any(|(role, granted)| {
                    role.ns0().is_some_and(|role| everybody.contains(&role))
                        && granted.contains(PermissionType::BROWSE)
                })
            })
    }

    /// Takes the changes since the last call. Each remaining node gets a new NodeVersion.
    fn take_changes(&mut self, now: UtcTime) -> Vec<Change> {
        let changes = core::mem::take(&mut self.versions.changes);
        for (ix, change) in &changes {
            if change.verb & bit(Verb::NODE_DELETED) == 0
                && let Some(property) = self.node_version(*ix)
                && !matches!(self.value_at(property), ValueAt::Source(..))
                && let Some(slot) = self.slot_handle(property)
            {
                let next = match slot.read().to_data_value().value {
                    // A new node keeps its initial version.
                    Some(Variant::String(_)) if change.verb == bit(Verb::NODE_ADDED) => continue,
                    Some(Variant::String(text)) => {
                        text.as_str().parse().map_or(1, |version: u64| version.wrapping_add(1))
                    }
                    _ => 1,
                };
                slot.set(Variant::from(&*next.to_string()), StatusCode::GOOD, now, now);
            }
        }
        changes.into_values().collect()
    }
}

impl AddressSpace {
    /// Reports the changes of nodes with a NodeVersion since the last call. Each gets a new NodeVersion, and the Server
    /// Object raises one GeneralModelChangeEvent for all (Part 3 §9.32.6). AddNodes, imports and similar operations
    /// call this themselves. After [`Self::delete_node`] and [`Self::add_reference`], call it when the changes are
    /// complete.
    ///
    /// Nodes with restricted visibility are not listed. For them the Server raises a BaseModelChangeEvent without
    /// details. [`ModelChangeEvents`] controls whether the others are listed.
    ///
    /// Variables that were added below a node of [`Self::historize_below`] are recorded from now on.
    pub fn raise_model_changes(&self, now: UtcTime) {
        if self.read().has_unrecorded() {
            self.record_added(now, super::recording::AT_ONCE);
        }
        self.raise_noted_changes(now);
    }

    /// [`Self::raise_model_changes`] without recording added Variables: for the work of recording itself.
    pub(super) fn raise_noted_changes(&self, now: UtcTime) {
        if self.read().versions.is_current() {
            return;
        }
        let (changes, aliases) = {
            let mut nodes = self.write();
            let aliases = nodes.versions.aliases.take();
            (nodes.take_changes(now), aliases)
        };
        if !aliases.is_empty() {
            self.note_alias_changes(aliases, now);
        }
        if changes.is_empty() {
            return;
        }
        let told = self.events().model_changes();
        if told == ModelChangeEvents::Off {
            return;
        }
        let server = NodeId::numeric(0, object_ids::SERVER);
        let new = |kind: u32| NewEvent::new(NodeId::numeric(0, kind), server.clone()).source_name("Server");
        let (mut public, mut hidden): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.is_public);
        if !told.names(public.len(), CHANGES_PER_EVENT) {
            hidden.append(&mut public);
        }
        for changes in public.chunks(CHANGES_PER_EVENT) {
            let structures = changes.iter().map(|change| {
                ExtensionObject::new(&ModelChangeStructureDataType {
                    affected: change.affected.clone(),
                    affected_type: change.affected_type.clone(),
                    verb: change.verb,
                })
            });
            let values = ArrayValues::ExtensionObject(structures.collect());
            let event = new(object_type_ids::GENERAL_MODEL_CHANGE_EVENT_TYPE)
                .message(&*format!("Model change of {} node(s)", changes.len()))
                .field("Changes", Variant::Array(Box::new(Array { values, dimensions: Vec::new() })));
            self.raise(event, now);
        }
        if !hidden.is_empty() {
            let event = new(object_type_ids::BASE_MODEL_CHANGE_EVENT_TYPE).message("Model change");
            self.raise(event, now);
        }
    }
}
