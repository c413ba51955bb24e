//! What watches conditions: their groups (Part 9 §5.8.3, §5.8.4) and metrics (§9.2).
//!
//! A change of an alarm changes its groups before it is told of, so that its event says whether it was first. The alarms that
//! a group suppresses wait in a list: there may be many, and each is told of by itself. An alarm that changes meanwhile finds
//! out about its groups first.

use super::metrics::ShownMetrics;
use super::registry::Inner;
use crate::alarm::group::{Group, GroupChange, GroupKind, Member};
use crate::alarm::machine::Notes;
use crate::space::AddressSpace;
use crate::space::store::SlotHandle;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_types::{NodeId, UtcTime, Variant};

/// A group that is registered.
#[derive(Debug)]
pub(super) struct Grouped {
    pub(super) id: NodeId,
    pub(super) kind: GroupKind,
    pub(super) machine: Group,
    /// The Variables among its members.
    pub(super) variables: Vec<SlotHandle>,
    /// The alarms that it suppresses.
    pub(super) suppresses: Vec<u32>,
}

/// The groups that an alarm has to do with, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Ties {
    /// Groups that it is a member of.
    pub(super) member_of: Vec<u32>,
    /// Groups that suppress it.
    pub(super) suppressed_by: Vec<u32>,
    /// Metrics that count it.
    pub(super) counted_by: Vec<u32>,
}

/// The groups and metrics of an address space.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    pub(super) groups: Vec<Grouped>,
    pub(super) ties: BTreeMap<u32, Ties>,
    /// Groups with a Variable, by its slot: the group and the number of the Variable in it.
    pub(super) by_slot: BTreeMap<u32, Vec<(u32, u32)>>,
    pub(super) metrics: Vec<ShownMetrics>,
    /// Alarms whose groups have changed and that were not told yet.
    suppressed: BTreeSet<u32>,
}

impl Watchers {
    /// Whether a group suppresses an alarm now.
    fn suppresses(&self, number: u32) -> bool {
        let groups = self.ties.get(&number).map_or(&[][..], |ties| &ties.suppressed_by);
        groups
            .iter()
            .filter_map(|group| self.groups.get(*group as usize))
            .any(|group| group.machine.is_active())
    }

    /// A member of a group is active or not. Returns what that changes for the alarm that is first.
    pub(super) fn member(&mut self, group: u32, member: Member, is_active: bool) -> GroupChange {
        let Some(group) = self.groups.get_mut(group as usize) else { return GroupChange::None };
        let change = group.machine.member(member, is_active);
        if change != GroupChange::None {
            self.suppressed.extend(&group.suppresses);
        }
        change
    }
}

impl Inner {
    /// Brings the groups and metrics of a condition up to date. Returns what is to be told.
    pub(super) fn follow(&mut self, number: u32, notes: Notes, now: UtcTime) -> Notes {
        let Self { watchers: Some(watchers), conditions, .. } = self else { return notes };
        let Some(condition) = conditions.get_mut(number as usize) else { return notes };
        let is_active = condition.machine.state().active;
        watchers.suppressed.remove(&number);
        // §5.8.2: an event of its own, unless one of the condition itself is on its way anyway. One of a branch does not tell it.
        let own = condition.machine.group_suppresses(watchers.suppresses(number), now);
        let mut notes = notes;
        if notes.iter().all(|note| note.branch.is_some()) {
            notes.extend(own);
        }
        let state = condition.machine.state();
        let (is_acked, re_alarms) = (state.acked, state.re_alarms);
        let Some(ties) = watchers.ties.get(&number) else { return notes };
        let (member_of, counted_by) = (ties.member_of.clone(), ties.counted_by.clone());
        for at in counted_by {
            if let Some(shown) = watchers.metrics.get_mut(at as usize) {
                shown.metrics.observe(number, is_active, is_acked, re_alarms, now);
            }
        }
        for at in member_of {
            let change = watchers.member(at, Member::Alarm(number), is_active);
            if watchers.groups.get(at as usize).is_none_or(|group| group.kind != GroupKind::FirstInGroup) {
                continue;
            }
            let (first, is_first) = match change {
                GroupChange::Activated => (Member::Alarm(number), true),
                GroupChange::Deactivated { first } => (first, false),
                GroupChange::None => continue,
            };
            let Member::Alarm(first) = first else { continue };
            if let Some(first) = conditions.get_mut(first as usize) {
                first.flag_first(is_first, now);
            }
        }
        notes
    }

    /// A condition is new: it may be counted.
    pub(super) fn added(&mut self, space: &AddressSpace, number: u32, now: UtcTime) {
        let Some(watchers) = &self.watchers else { return };
        for at in 0..watchers.metrics.len() {
            self.count_in(space, at, number, now);
        }
    }

    /// A Variable was written that may be a member of groups.
    pub(super) fn look_at_member(&mut self, slot: u32) {
        let Some(watchers) = &mut self.watchers else { return };
        for (group, variable) in watchers.by_slot.get(&slot).cloned().unwrap_or_default() {
            let handle =
                watchers.groups.get(group as usize).and_then(|group| group.variables.get(variable as usize));
            // §5.8.4: true is active. What is Bad says nothing.
            let snapshot = handle.map(SlotHandle::read).filter(|snapshot| !snapshot.status.is_bad());
            if let Some(snapshot) = snapshot {
                let is_active = snapshot.value() == Variant::Boolean(true);
                watchers.member(group, Member::Variable(variable), is_active);
            }
        }
    }

    /// Some alarms whose groups have changed.
    pub(super) fn take_suppressed(&mut self, max: usize) -> Vec<u32> {
        let Some(watchers) = &mut self.watchers else { return Vec::new() };
        let some = watchers.suppressed.iter().copied().take(max).collect::<Vec<_>>();
        for number in &some {
            watchers.suppressed.remove(number);
        }
        some
    }
}
