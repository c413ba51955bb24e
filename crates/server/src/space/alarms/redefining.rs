//! Changed definitions of existing conditions, as from a configuration that is read again.

use super::condition::Condition;
use super::error::AlarmError;
use super::registry::Inner;
use super::saved::Saved;
use crate::alarm::ConditionSpec;
use crate::alarm::machine::{Change, Note, Notes};
use crate::space::{AddressSpace, NodeError};
use std::sync::Arc;
use taktwerk_slots::SlotHandle;
use taktwerk_types::{NodeId, UtcTime};

impl AddressSpace {
    /// Replaces the definition of the condition with this id, and evaluates it at once.
    ///
    /// The condition keeps what operators did: acknowledgement, comment, shelving, suppression and branches. If
    /// operators see it or have seen it (Retain), an event reports the new definition. A condition with another type, source, input,
    /// name or place is removed and added again, with a new state and without its groups.
    ///
    /// # Errors
    /// As [`Self::add_condition`], or the condition does not exist. Nothing has changed then.
    pub fn redefine_condition(&self, mut spec: ConditionSpec, now: UtcTime) -> Result<(), AlarmError> {
        let unknown = || AlarmError::Node(NodeError::Unknown(spec.id.clone()));
        let alarms = Arc::clone(self.alarms().ok_or_else(unknown)?);
        let (mut old, state, dialog) = {
            let inner = alarms.lock();
            let condition = inner.condition_with(&spec.id).ok_or_else(unknown)?;
            let dialog = condition.machine.state().dialog.clone().map(|dialog| *dialog);
            (condition.definition(), Saved::of(condition), dialog)
        };
        self.check_condition(&mut spec)?;
        self.watched_slot(spec.input.as_ref())?;
        let target = self.watched_slot(spec.target.as_ref())?;
        self.name_source(&mut spec);
        if !is_same(&old, &spec) {
            self.check_place(&old, &spec)?;
            self.remove_condition(&spec.id, now);
            let added = self.add_condition(spec, now);
            if added.is_err() {
                // For example, the table of nodes is full. Its nodes were there before.
                let key = self.node_key(&old.id).to_string();
                alarms.lock().saved.insert(key, state);
                old.dialog = dialog;
                let id = old.id.clone();
                if self.add_condition(old, now).is_ok() {
                    alarms.lock().report_again(self, &id, now);
                    alarms.count(true);
                }
            }
            return added;
        }
        // Without the lock of the conditions, because it locks the nodes.
        if spec.is_shown && !spec.is_bound {
            self.add_condition_members(&spec, now)?;
            self.delete_condition_members(&old, &spec, now);
        }
        let nodes = if spec.is_shown { Some(self.nodes_of_condition(&spec, now)?) } else { None };
        let mut inner = alarms.lock();
        let number = inner.by_id.get(&spec.id).copied();
        let Some(number) = number else { return Err(NodeError::Unknown(spec.id).into()) };
        if old.target != spec.target {
            inner.retarget(self, number, target);
        }
        let Some(condition) = inner.conditions.get_mut(number as usize) else { return Ok(()) };
        condition.nodes = nodes;
        let notes = condition.redefine(spec, now);
        if notes.is_empty() {
            condition.show(condition.last.clone(), now);
        }
        inner.tell(self, number, notes, now);
        inner.arm(number, now);
        alarms.count(true);
        Ok(())
    }

    /// Whether the nodes of a condition can be added where its new definition says, after the present ones were removed.
    fn check_place(&self, old: &ConditionSpec, new: &ConditionSpec) -> Result<(), NodeError> {
        if !new.is_shown {
            return Ok(());
        }
        let nodes = self.read();
        for id in core::iter::once(&new.source).chain(&new.parent) {
            nodes.find(id)?;
        }
        let has_own_nodes = old.is_shown && !old.is_bound;
        if !new.is_bound && !has_own_nodes && nodes.resolve(new.id.as_ref()).is_some() {
            return Err(NodeError::IdExists(new.id.clone()));
        }
        Ok(())
    }
}

/// Whether a definition can replace another one in place.
fn is_same(old: &ConditionSpec, new: &ConditionSpec) -> bool {
    let place = |spec: &ConditionSpec| {
        let kinds = (spec.type_id(), spec.kind_type_id(), spec.is_dialog());
        let nodes = (spec.source.clone(), spec.input.clone(), spec.parent.clone());
        let names = (spec.name.clone(), spec.browse_name.clone(), spec.access.clone());
        (kinds, nodes, names, spec.is_bound, spec.is_shown)
    };
    place(old) == place(new)
}

impl Inner {
    /// The condition with an id. Ids of ShelvingStates are none of conditions.
    fn condition_with(&self, id: &NodeId) -> Option<&Condition> {
        let condition = self.conditions.get(*self.by_id.get(id)? as usize)?;
        (condition.spec.id == *id).then_some(condition)
    }

    /// Reports a condition that has come back with its state: clients have received its last event, without Retain.
    fn report_again(&mut self, space: &AddressSpace, id: &NodeId, now: UtcTime) {
        let Some(number) = self.by_id.get(id).copied() else { return };
        let Some(condition) = self.conditions.get_mut(number as usize) else { return };
        let machine = &mut condition.machine;
        let branches = machine.branches().iter();
        let mut notes: Notes = branches
            .map(|branch| {
                let branch = Some((branch.number, Box::new(branch.state.clone())));
                Note { branch, change: Change::Stated }
            })
            .collect();
        let state = machine.state();
        if state.retain() {
            let (severity, message) = (state.severity, state.message.clone());
            notes.extend(machine.restated(severity, &message, now));
        }
        self.tell(space, number, notes, now);
    }

    /// Compares a condition with another setpoint or target from now on.
    fn retarget(&mut self, space: &AddressSpace, number: u32, target: Option<SlotHandle>) {
        let Some(condition) = self.conditions.get_mut(number as usize) else { return };
        let before = core::mem::replace(&mut condition.target, target.clone());
        if let Some(slot) = &target {
            self.watch(space, number, slot);
        }
        if let Some(slot) = before {
            self.unwatch(space, number, &slot);
        }
    }
}

impl Condition {
    /// Its definition, with the present values of its own fields.
    fn definition(&self) -> ConditionSpec {
        let own = self.own.as_deref().cloned().unwrap_or_default();
        ConditionSpec { own, ..self.spec.clone() }
    }

    /// Takes over a definition for the same type, source and input.
    fn redefine(&mut self, mut spec: ConditionSpec, now: UtcTime) -> Notes {
        let was_seen = self.machine.state().retain();
        let own = core::mem::take(&mut spec.own);
        self.own = (!own.is_empty()).then(|| Arc::new(own));
        let mut notes = self.machine.redefine(spec.rules.clone(), now);
        let is_evaluated = spec.input.is_some() || spec.date.is_some();
        if is_evaluated {
            // A condition that operators have acknowledged stays so if only its severity is defined differently.
            self.machine.reclassify(now, |limits| spec.severities.of(limits));
        }
        self.detector.redefine(spec.kind.clone(), spec.severities, now);
        self.spec = spec;
        if is_evaluated {
            notes.extend(self.look(now));
        }
        let state = self.machine.state();
        if notes.iter().all(|note| note.branch.is_some()) && (was_seen || state.retain()) {
            let (severity, message) = (state.severity, state.message.clone());
            notes.extend(self.machine.restated(severity, &message, now));
        }
        notes
    }
}
