//! Variables and instances of conditions that are deleted and added again, for example by replacing a NodeSet.
//!
//! A deleted Variable closes its slot, which marks it for the alarms like a write. Its conditions keep their state and
//! monitor the next Variable with the same NodeId. If there is none after [`GRACE_MS`], their Quality becomes
//! Bad_NodeIdUnknown (Part 9 §5.5.2).

use super::condition::Condition;
use super::registry::{Alarms, Inner};
use crate::alarm::ConditionSpec;
use crate::alarm::shelving::later;
use crate::space::{AddressSpace, NodeIx};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_slots::SlotHandle;
use taktwerk_types::{NodeId, UtcTime};

/// How long a Variable can be missing until its conditions report it, in milliseconds. Replacing a large NodeSet takes
/// some hundred milliseconds.
const GRACE_MS: f64 = 1_000.0;
/// Variables looked up per lock.
const SLICE: usize = 16;

/// A deleted Variable.
#[derive(Debug)]
pub(super) struct Gone {
    since: UtcTime,
    /// How many nodes had been added at the last search for its successor.
    searched: Option<u64>,
    /// Its conditions have reported that it is missing.
    is_told: bool,
}

impl Gone {
    pub(super) fn since(now: UtcTime) -> Self {
        Self { since: now, searched: None, is_told: false }
    }
}

impl AddressSpace {
    /// Connects conditions and groups with Variables that were deleted and added again. Returns when the next missing
    /// one must be reported.
    pub(super) fn find_added_again(&self, alarms: &Alarms, now: UtcTime) -> Option<UtcTime> {
        let slots: Vec<u32> = alarms.lock().gone.keys().copied().collect();
        for slots in slots.chunks(SLICE) {
            let mut inner = alarms.lock();
            let shown: Vec<(NodeId, NodeId)> =
                slots.iter().flat_map(|slot| inner.find_one_again(self, alarms, *slot, now)).collect();
            drop(inner);
            // Without the lock of the conditions, because it locks the nodes.
            for (source, condition) in shown {
                self.attach_condition(&source, &condition);
            }
        }
        let inner = alarms.lock();
        let untold = inner.gone.values().filter(|gone| !gone.is_told);
        untold.map(|gone| later(gone.since, GRACE_MS)).min_by_key(|at| at.ticks())
    }

    /// Restores the references to the nodes of a condition whose source was added again.
    fn attach_condition(&self, source: &NodeId, condition: &NodeId) {
        let parent = self.condition_parent(source);
        let mut nodes = self.write();
        let found = [source, condition, &parent].map(|id| nodes.resolve(id.as_ref()));
        let [Some(source), Some(condition), Some(parent)] = found else { return };
        let mut wanted = vec![(source, reference_type_ids::HAS_CONDITION)];
        if nodes.is_orphan(condition) {
            wanted.push((parent, reference_type_ids::HAS_COMPONENT));
        }
        for (from, kind) in wanted {
            let kind = NodeIx::ns0(kind);
            if !nodes.has_reference(from, kind, condition) {
                // All three nodes exist.
                let _ = nodes.add_reference(from, kind, condition, true);
            }
        }
    }

    /// Connects conditions with the nodes of the instances they are bound to, after nodes were replaced.
    pub(crate) fn rebind_instances(&self, now: UtcTime) {
        let Some(alarms) = self.alarms() else { return };
        let is_bound = |condition: &Condition| condition.spec.is_bound && !condition.is_removed;
        let bound: Vec<ConditionSpec> = {
            let inner = alarms.lock();
            let conditions = inner.conditions.iter().filter(|condition| is_bound(condition));
            conditions.filter(|condition| condition.nodes.is_some()).map(|one| one.spec.clone()).collect()
        };
        for spec in bound {
            // An instance that is missing now may come back with the next files.
            let Ok(nodes) = self.add_condition_nodes(&spec, now) else { continue };
            let mut inner = alarms.lock();
            let Some(number) = inner.by_id.get(&spec.id).copied() else { continue };
            inner.by_id.extend(nodes.shelving.clone().map(|id| (id, number)));
            if let Some(condition) = inner.conditions.get_mut(number as usize) {
                condition.nodes = Some(nodes);
                condition.show(condition.last.clone(), now);
            }
        }
    }
}

impl Inner {
    /// Looks for the successor of one deleted Variable. Returns the sources and ids of its conditions with nodes.
    fn find_one_again(
        &mut self,
        space: &AddressSpace,
        alarms: &Alarms,
        slot: u32,
        now: UtcTime,
    ) -> Vec<(NodeId, NodeId)> {
        let Some(id) = self.variable_of(slot) else {
            // Its conditions were removed.
            self.gone.remove(&slot);
            return Vec::new();
        };
        let Some(gone) = self.gone.get_mut(&slot) else { return Vec::new() };
        let found = {
            let nodes = space.read();
            let additions = nodes.additions();
            let has_new = gone.searched.replace(additions) != Some(additions);
            has_new
                .then(|| nodes.resolve(id.as_ref()))
                .flatten()
                .and_then(|ix| nodes.slot_handle(ix))
                .filter(|handle| handle.index() != slot)
        };
        if let Some(handle) = found {
            self.gone.remove(&slot);
            let numbers = self.rebind(space, slot, &handle);
            self.look_at_member(handle.index());
            for number in &numbers {
                alarms.count(self.look(space, *number, now));
            }
            return self.shown(&numbers);
        }
        if !gone.is_told && later(gone.since, GRACE_MS).ticks() <= now.ticks() {
            gone.is_told = true;
            for number in self.by_slot.get(&slot).cloned().unwrap_or_default() {
                alarms.count(self.look(space, number, now));
            }
        }
        Vec::new()
    }

    /// The id of the Variable that conditions and groups have in a slot.
    fn variable_of(&self, slot: u32) -> Option<NodeId> {
        let numbers = self.by_slot.get(&slot).into_iter().flatten();
        let of_condition =
            numbers.filter_map(|number| self.conditions.get(*number as usize)).find_map(|one| {
                let is_it =
                    |handle: &Option<SlotHandle>| handle.as_ref().is_some_and(|it| it.index() == slot);
                let input = one.spec.input.as_ref().filter(|_| is_it(&one.input));
                input.or(one.spec.target.as_ref().filter(|_| is_it(&one.target))).cloned()
            });
        of_condition.or_else(|| {
            let watchers = self.watchers.as_ref()?;
            let (group, variable) = watchers.by_slot.get(&slot)?.first()?;
            let (id, _) = watchers.groups.get(*group as usize)?.variables.get(*variable as usize)?;
            Some(id.clone())
        })
    }

    /// Replaces a slot by another one in conditions and groups. Returns the conditions.
    fn rebind(&mut self, space: &AddressSpace, slot: u32, new: &SlotHandle) -> Vec<u32> {
        let shard = space.slots().alarms();
        let replace = |handle: &mut SlotHandle| {
            if handle.index() == slot {
                // Nobody else watches the old slot for the alarms.
                handle.set_watched(shard, false);
                *handle = new.clone();
            }
        };
        new.set_watched(shard, true);
        let numbers = self.by_slot.remove(&slot).unwrap_or_default();
        for number in &numbers {
            if let Some(condition) = self.conditions.get_mut(*number as usize) {
                [&mut condition.input, &mut condition.target].into_iter().flatten().for_each(replace);
            }
        }
        if !numbers.is_empty() {
            self.by_slot.entry(new.index()).or_default().extend(&numbers);
        }
        if let Some(watchers) = &mut self.watchers
            && let Some(members) = watchers.by_slot.remove(&slot)
        {
            for (group, variable) in &members {
                let group = watchers.groups.get_mut(*group as usize);
                let member = group.and_then(|group| group.variables.get_mut(*variable as usize));
                member.into_iter().for_each(|(_, handle)| replace(handle));
            }
            watchers.by_slot.entry(new.index()).or_default().extend(members);
        }
        numbers
    }

    /// The sources and ids of those conditions that have nodes of their own.
    fn shown(&self, numbers: &[u32]) -> Vec<(NodeId, NodeId)> {
        let conditions = numbers.iter().filter_map(|number| self.conditions.get(*number as usize));
        let shown = conditions.filter(|one| one.nodes.is_some() && !one.spec.is_bound);
        shown.map(|one| (one.spec.source.clone(), one.spec.id.clone())).collect()
    }
}
