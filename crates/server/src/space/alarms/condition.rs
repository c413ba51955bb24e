//! A registered condition: its machine, its inputs, its nodes and its last event.

use super::nodes::ConditionNodes;
use crate::alarm::detector::Detector;
use crate::alarm::machine::Machine;
use crate::alarm::{ConditionSpec, ConditionView, OwnFields, State};
use std::sync::Arc;
use taktwerk_slots::SlotHandle;
use taktwerk_types::{ByteString, UtcTime, Variant};

/// The BrowseName of the flag, in namespace 0 (Part 9 §5.8.2).
pub(super) const FIRST_IN_GROUP_FLAG: &str = "FirstInGroupFlag";

/// A registered condition.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) spec: ConditionSpec,
    /// The own fields of the next event.
    pub(super) own: Option<Arc<OwnFields>>,
    pub(super) detector: Detector,
    pub(super) machine: Machine,
    pub(super) input: Option<SlotHandle>,
    pub(super) target: Option<SlotHandle>,
    pub(super) nodes: Option<ConditionNodes>,
    /// The EventId of the last event. ConditionRefresh creates the event again: stored events would take some 4 kB
    /// each.
    pub(super) last: Option<ByteString>,
    /// Its time in the list of deadlines.
    pub(super) deadline: Option<UtcTime>,
    /// Its node FirstInGroupFlag was added for a group, and is not a part of its instance.
    pub(super) has_added_flag: bool,
    /// It was removed: its slot can be reused.
    pub(super) is_removed: bool,
}

impl Condition {
    /// The condition and its branches.
    pub(super) fn views(&self) -> impl Iterator<Item = ConditionView> {
        let view = |branch: u32, state: &State, event_id: ByteString| ConditionView {
            id: self.spec.id.clone(),
            branch,
            name: self.spec.name.clone(),
            source: self.spec.source.clone(),
            source_name: self.spec.source_name.clone(),
            type_id: self.spec.type_id(),
            event_id,
            confirms: self.machine.rules.confirms,
            state: state.clone(),
        };
        let last = self.last.clone().unwrap_or_default();
        let trunk = (!self.is_removed).then(|| view(0, self.machine.state(), last)).into_iter();
        trunk.chain(self.machine.branches().iter().map(move |branch| {
            view(branch.number, &branch.state, branch.ids.back().cloned().unwrap_or_default())
        }))
    }

    /// Sets whether it was first in its group (FirstInGroupFlag, Part 9 §5.8.2).
    pub(super) fn flag_first(&mut self, is_first: bool, now: UtcTime) {
        self.machine.state.first_in_group = Some(is_first);
        if let Some(nodes) = &self.nodes {
            nodes.set(FIRST_IN_GROUP_FLAG, &is_first.into(), now);
        }
    }

    /// The value of the input for the message.
    pub(super) fn input_value(&self) -> Variant {
        match (&self.input, self.spec.date) {
            (Some(slot), _) => slot.read().value(),
            (None, date) => date.map(Variant::from).unwrap_or_default(),
        }
    }

    /// When the state changes without a new input.
    pub(super) fn next_deadline(&self) -> Option<UtcTime> {
        [self.machine.deadline(), self.detector.deadline()].into_iter().flatten().min()
    }
}
