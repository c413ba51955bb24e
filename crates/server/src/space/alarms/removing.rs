//! Removing a condition when its source no longer exists, for example a tag removed from a gateway's configuration, and
//! removing a group.

use super::condition::FIRST_IN_GROUP_FLAG;
use super::registry::Inner;
use crate::alarm::GroupKind;
use crate::alarm::group::Member;
use crate::space::AddressSpace;
use taktwerk_slots::SlotHandle;
use taktwerk_types::{NodeId, QualifiedName, UtcTime};

impl AddressSpace {
    /// Removes a condition with its branches and nodes. Clients receive a last event without Retain (Part 9 §5.5.2).
    /// Returns whether it existed.
    pub fn remove_condition(&self, id: &NodeId, now: UtcTime) -> bool {
        let Some(alarms) = self.alarms() else { return false };
        let mut inner = alarms.lock();
        let Some(number) = inner.by_id.get(id).copied() else { return false };
        // A ShelvingState is not a condition.
        let known = inner.conditions.get_mut(number as usize).filter(|condition| condition.spec.id == *id);
        let Some(condition) = known else { return false };
        let notes = condition.machine.end(now);
        inner.tell(self, number, notes, now);
        let is_shown = inner.unregister(self, number, now);
        alarms.count(true);
        drop(inner);
        // Without the lock of the conditions, because it locks the nodes.
        if is_shown {
            self.delete_tree(id, now);
        }
        true
    }

    /// Removes a group. The next [`Self::poll_alarms`] reports the alarms that it has suppressed. Returns whether it
    /// existed.
    pub fn remove_alarm_group(&self, id: &NodeId, now: UtcTime) -> bool {
        let Some(alarms) = self.alarms() else { return false };
        let Some(unflagged) = alarms.lock().ungroup(self, id, now) else { return false };
        // Without the lock of the conditions, because this locks the nodes.
        for alarm in unflagged {
            if let Some(flag) = self.child(&alarm, &QualifiedName::new(0, FIRST_IN_GROUP_FLAG)) {
                self.delete_tree(&flag, now);
            }
        }
        self.delete_tree(id, now);
        true
    }
}

impl Inner {
    /// Removes a group. Returns alarms whose FirstInGroupFlag has no meaning any more.
    fn ungroup(&mut self, space: &AddressSpace, id: &NodeId, now: UtcTime) -> Option<Vec<NodeId>> {
        let Self { watchers, conditions, by_slot, .. } = self;
        let watchers = watchers.as_mut()?;
        let (group, alarms) = watchers.remove_group(id)?;
        for (_, slot) in &group.variables {
            let index = slot.index();
            if !watchers.by_slot.contains_key(&index) && !by_slot.contains_key(&index) {
                slot.set_watched(space.slots().alarms(), false);
            }
        }
        let mut unflagged = Vec::new();
        for number in alarms.into_iter().filter(|_| group.kind == GroupKind::FirstInGroup) {
            let Some(condition) = conditions.get_mut(number as usize) else { continue };
            match watchers.is_first(number) {
                Some(is_first) => condition.flag_first(is_first, now),
                // Its instance has the flag also without a group.
                None if condition.nodes.is_some() && !condition.has_added_flag => {
                    condition.flag_first(false, now);
                }
                None => {
                    condition.machine.state.first_in_group = None;
                    if let Some(nodes) = &mut condition.nodes {
                        nodes.remove(FIRST_IN_GROUP_FLAG);
                        unflagged.push(condition.spec.id.clone());
                    }
                    condition.has_added_flag = false;
                }
            }
        }
        Some(unflagged)
    }

    /// Removes all links to a condition and frees its slot. Returns whether it has nodes of its own.
    fn unregister(&mut self, space: &AddressSpace, number: u32, now: UtcTime) -> bool {
        self.forget_ties(number, now);
        let Some(condition) = self.conditions.get_mut(number as usize) else { return false };
        condition.is_removed = true;
        condition.last = None;
        (condition.own, condition.machine.state.own) = (None, None);
        let (due, nodes, is_bound) =
            (condition.deadline.take(), condition.nodes.take(), condition.spec.is_bound);
        let slots = [condition.input.take(), condition.target.take()];
        self.by_id.remove(&condition.spec.id);
        if let Some(due) = due {
            self.due.remove(&(due.ticks(), number));
        }
        if let Some(shelving) = nodes.as_ref().and_then(|nodes| nodes.shelving.as_ref()) {
            self.by_id.remove(shelving);
        }
        for slot in slots.into_iter().flatten() {
            self.unwatch(space, number, &slot);
        }
        self.vacant.push(number);
        // The nodes of a bound instance stay.
        nodes.is_some() && !is_bound
    }

    /// Evaluates a condition from now on when a slot is written.
    pub(super) fn watch(&mut self, space: &AddressSpace, number: u32, slot: &SlotHandle) {
        slot.set_watched(space.slots().alarms(), true);
        self.by_slot.entry(slot.index()).or_default().push(number);
        self.dirty.push(slot.index());
    }

    /// Undoes one [`Self::watch`].
    pub(super) fn unwatch(&mut self, space: &AddressSpace, number: u32, slot: &SlotHandle) {
        let index = slot.index();
        if let Some(numbers) = self.by_slot.get_mut(&index) {
            if let Some(at) = numbers.iter().position(|known| *known == number) {
                numbers.remove(at);
            }
            if numbers.is_empty() {
                self.by_slot.remove(&index);
            }
        }
        let is_member = self.watchers.as_ref().is_some_and(|watchers| watchers.by_slot.contains_key(&index));
        if !is_member && !self.by_slot.contains_key(&index) {
            slot.set_watched(space.slots().alarms(), false);
        }
    }

    /// Removes a condition from groups and metrics.
    fn forget_ties(&mut self, number: u32, now: UtcTime) {
        let Self { watchers: Some(watchers), conditions, .. } = self else { return };
        let ties = watchers.ties.remove(&number).unwrap_or_default();
        for group in ties.member_of {
            let Some(group) = watchers.groups.get_mut(group as usize) else { continue };
            if let Some(Member::Alarm(next)) = group.machine.forget(Member::Alarm(number))
                && group.kind == GroupKind::FirstInGroup
                && let Some(condition) = conditions.get_mut(next as usize)
            {
                condition.flag_first(true, now);
            }
        }
        watchers.groups.iter_mut().for_each(|group| group.suppresses.retain(|known| *known != number));
    }
}
