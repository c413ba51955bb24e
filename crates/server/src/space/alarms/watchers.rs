//! Groups (Part 9 §5.8.3, §5.8.4) and metrics (§9.2) of conditions.
//!
//! A change of an alarm updates its groups before the event is raised, so that the event contains FirstInGroupFlag. The
//! alarms suppressed by a group are put on a list, because there may be many and each raises its own event. An alarm
//! that changes in the meantime updates its groups first.

use super::metrics::ShownMetrics;
use super::registry::Inner;
use crate::alarm::group::{Group, GroupChange, GroupKind, Member};
use crate::alarm::machine::Notes;
use crate::space::AddressSpace;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_slots::SlotHandle;
use taktwerk_types::{NodeId, UtcTime, Variant};

/// A registered group.
#[derive(Debug)]
pub(super) struct Grouped {
    pub(super) id: NodeId,
    pub(super) kind: GroupKind,
    pub(super) machine: Group,
    /// The Variables among its members.
    pub(super) variables: Vec<(NodeId, SlotHandle)>,
    /// The alarms that it suppresses.
    pub(super) suppresses: Vec<u32>,
}

impl Grouped {
    /// The place of a removed group, for the next one.
    fn vacant() -> Self {
        let (machine, variables, suppresses) = (Group::default(), Vec::new(), Vec::new());
        Self { id: NodeId::NULL, kind: GroupKind::Related, machine, variables, suppresses }
    }
}

/// The groups and metrics of an alarm, by their numbers.
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
    /// Alarms whose suppression has changed and that have not been updated yet.
    suppressed: BTreeSet<u32>,
}

impl Watchers {
    /// Adds a group. Returns its number.
    pub(super) fn add_group(&mut self, group: Grouped) -> u32 {
        let vacant = self.groups.iter().position(|known| known.id.is_null());
        let at = vacant.unwrap_or(self.groups.len());
        match self.groups.get_mut(at) {
            Some(place) => *place = group,
            None => self.groups.push(group),
        }
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Removes a group. Returns it and its alarms.
    pub(super) fn remove_group(&mut self, id: &NodeId) -> Option<(Grouped, Vec<u32>)> {
        let number = self.group_number(id)?;
        let group = core::mem::replace(self.groups.get_mut(number as usize)?, Grouped::vacant());
        let mut alarms = Vec::new();
        for (alarm, ties) in &mut self.ties {
            if ties.member_of.contains(&number) {
                alarms.push(*alarm);
            }
            for groups in [&mut ties.member_of, &mut ties.suppressed_by] {
                groups.retain(|known| *known != number);
            }
        }
        self.by_slot.retain(|_, members| {
            members.retain(|(known, _)| *known != number);
            !members.is_empty()
        });
        self.suppressed.extend(&group.suppresses);
        Some((group, alarms))
    }

    /// The number of a group.
    pub(super) fn group_number(&self, id: &NodeId) -> Option<u32> {
        let at = self.groups.iter().position(|group| group.id == *id && !id.is_null())?;
        u32::try_from(at).ok()
    }

    /// Whether an alarm was active first in a group that shows it. `None` if it is in no such group.
    pub(super) fn is_first(&self, alarm: u32) -> Option<bool> {
        let groups = self.ties.get(&alarm).map_or(&[][..], |ties| &ties.member_of).iter();
        let groups = groups.filter_map(|group| self.groups.get(*group as usize));
        let first = groups.filter(|group| group.kind == GroupKind::FirstInGroup);
        first
            .map(|group| group.machine.first() == Some(Member::Alarm(alarm)))
            .reduce(|one, other| one || other)
    }

    /// Whether a group currently suppresses an alarm.
    fn suppresses(&self, number: u32) -> bool {
        let groups = self.ties.get(&number).map_or(&[][..], |ties| &ties.suppressed_by);
        groups
            .iter()
            .filter_map(|group| self.groups.get(*group as usize))
            .any(|group| group.machine.is_active())
    }

    /// Sets whether a member of a group is active. Returns the effect on the first alarm.
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
    /// Updates the groups and metrics of a condition. Returns the changes to report.
    pub(super) fn follow(&mut self, number: u32, notes: Notes, now: UtcTime) -> Notes {
        let Self { watchers: Some(watchers), conditions, .. } = self else { return notes };
        let Some(condition) = conditions.get_mut(number as usize) else { return notes };
        let is_active = condition.machine.state().active;
        watchers.suppressed.remove(&number);
        // §5.8.2: it has its own event, unless an event of the condition itself is raised anyway. Events of branches do
        // not count.
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

    /// A condition was added: metrics may count it.
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
            // §5.8.4: true means active. A Bad value is ignored.
            let snapshot = handle.map(|(_, slot)| slot.read()).filter(|snapshot| !snapshot.status.is_bad());
            if let Some(snapshot) = snapshot {
                let is_active = snapshot.value() == Variant::Boolean(true);
                watchers.member(group, Member::Variable(variable), is_active);
            }
        }
    }

    /// Removes and returns alarms whose suppression has changed.
    pub(super) fn take_suppressed(&mut self, max: usize) -> Vec<u32> {
        let Some(watchers) = &mut self.watchers else { return Vec::new() };
        let some = watchers.suppressed.iter().copied().take(max).collect::<Vec<_>>();
        for number in &some {
            watchers.suppressed.remove(number);
        }
        some
    }
}
