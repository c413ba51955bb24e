//! Groups of alarms in the address space (Part 9 §5.8.3, §5.8.4).

use super::condition::FIRST_IN_GROUP_FLAG;
use super::error::AlarmError;
use super::registry::Inner;
use super::watchers::{Grouped, Ties};
use crate::alarm::group::{Group, GroupKind, GroupSpec, Member};
use crate::space::build::Under;
use crate::space::instance::child_id;
use crate::space::{AddressSpace, NodeError, NodeIx, NodeSpec, VariableHandle};
use std::sync::Arc;
use taktwerk_schema::ids::{data_type_ids, object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_slots::SlotHandle;
use taktwerk_types::{BuiltInType, LocalizedText, NodeId, QualifiedName, UtcTime, Variant};

fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

/// The resolved members of a group.
#[derive(Default)]
struct Found {
    alarms: Vec<u32>,
    variables: Vec<(NodeId, SlotHandle)>,
    /// Nodes that references can point to.
    shown: Vec<NodeId>,
}

impl Inner {
    fn number_of(&self, id: &NodeId) -> Option<u32> {
        let number = *self.by_id.get(id)?;
        // The map also contains ids of ShelvingStates.
        (self.conditions.get(number as usize)?.spec.id == *id).then_some(number)
    }

    fn is_shown(&self, number: u32) -> bool {
        self.conditions.get(number as usize).is_some_and(|condition| condition.nodes.is_some())
    }
}

impl AddressSpace {
    /// Adds a group of existing alarms. Alarms without nodes in the address space become members without a reference.
    ///
    /// # Errors
    /// A member is not an alarm, there are no members, or the group's node cannot be added.
    pub fn add_alarm_group(&self, spec: &GroupSpec, now: UtcTime) -> Result<(), AlarmError> {
        let suppresses = spec.kind == GroupKind::Suppression;
        let alarms = Arc::clone(self.alarms_or_new());
        let refused = |member: &NodeId, suppresses| AlarmError::Member {
            group: spec.name.clone(),
            member: member.clone(),
            suppresses,
        };
        let (mut members, mut suppressed) = (Found::default(), Found::default());
        {
            let inner = alarms.lock();
            for (ids, found, may_be_variable) in
                [(&spec.members, &mut members, suppresses), (&spec.suppresses, &mut suppressed, false)]
            {
                for id in ids {
                    if let Some(number) = inner.number_of(id) {
                        found.alarms.push(number);
                        if inner.is_shown(number) {
                            found.shown.push(id.clone());
                        }
                    } else if let Some(slot) = may_be_variable.then(|| self.boolean_slot(id)).flatten() {
                        found.variables.push((id.clone(), slot));
                        found.shown.push(id.clone());
                    } else {
                        return Err(refused(id, may_be_variable));
                    }
                }
            }
        }
        if members.alarms.is_empty() && members.variables.is_empty() {
            return Err(AlarmError::Empty(spec.name.clone()));
        }
        self.add_group_object(spec)?;
        let added = self.add_group_references(spec, &members, &suppressed).and_then(|()| match spec.kind {
            GroupKind::FirstInGroup => self.add_first_flags(&members.shown),
            GroupKind::Related | GroupKind::Suppression => Ok(Vec::new()),
        });
        // Otherwise the group could not be added after its definition was corrected.
        let flags = added.inspect_err(|_| {
            self.delete_tree(&spec.id, now);
        })?;
        let shard = self.slots().alarms();
        let mut inner = alarms.lock();
        let Inner { watchers, conditions, by_id, .. } = &mut *inner;
        let watchers = watchers.get_or_insert_default();
        let number = watchers.add_group(Grouped {
            id: spec.id.clone(),
            kind: spec.kind,
            machine: Group::default(),
            variables: members.variables.clone(),
            suppresses: suppressed.alarms.clone(),
        });
        for alarm in &members.alarms {
            watchers.ties.entry(*alarm).or_default().member_of.push(number);
        }
        for alarm in &suppressed.alarms {
            watchers.ties.entry(*alarm).or_default().suppressed_by.push(number);
        }
        for (at, (_, slot)) in (0u32..).zip(&members.variables) {
            slot.set_watched(shard, true);
            watchers.by_slot.entry(slot.index()).or_default().push((number, at));
        }
        for (alarm, variable) in flags {
            let condition = by_id.get(&alarm).and_then(|number| conditions.get_mut(*number as usize));
            let Some(condition) = condition else { continue };
            if let Some(nodes) = &mut condition.nodes {
                nodes.add(FIRST_IN_GROUP_FLAG, variable);
                condition.has_added_flag = true;
            }
        }
        // Members that are already active, the first one first.
        let mut active: Vec<(UtcTime, u32)> = Vec::new();
        for number in &members.alarms {
            let Some(condition) = conditions.get_mut(*number as usize) else { continue };
            let state = condition.machine.state();
            let (is_active, since) = (state.active, state.times.active);
            if spec.kind == GroupKind::FirstInGroup && state.first_in_group.is_none() {
                condition.flag_first(false, now);
            }
            if is_active {
                active.push((since, *number));
            }
        }
        active.sort_unstable_by_key(|(since, number)| (since.ticks(), *number));
        for (at, (_, alarm)) in active.into_iter().enumerate() {
            watchers.member(number, Member::Alarm(alarm), true);
            if at == 0
                && spec.kind == GroupKind::FirstInGroup
                && let Some(condition) = conditions.get_mut(alarm as usize)
            {
                condition.flag_first(true, now);
            }
        }
        // Before any alarm is evaluated: if the group replaces another one, its alarms are still suppressed.
        members.variables.iter().for_each(|(_, slot)| inner.look_at_member(slot.index()));
        Ok(())
    }

    /// Whether a group with all these alarms and Variables exists. A condition that was removed and added again belongs to no
    /// group, and such a Variable is not shown as a member.
    #[must_use]
    pub fn has_alarm_group(&self, spec: &GroupSpec) -> bool {
        let Some(alarms) = self.alarms() else { return false };
        let is_shown = |variable: &NodeId| {
            let nodes = self.read();
            let ends = [&spec.id, variable].map(|id| nodes.resolve(id.as_ref()));
            let kind = NodeIx::ns0(reference_type_ids::ALARM_SUPPRESSION_GROUP_MEMBER);
            matches!(ends, [Some(group), Some(variable)] if nodes.has_reference(group, kind, variable))
        };
        let inner = alarms.lock();
        let Some(watchers) = &inner.watchers else { return false };
        let Some(number) = watchers.group_number(&spec.id) else { return false };
        let Some(group) = watchers.groups.get(number as usize) else { return false };
        let is_tied = |id: &NodeId, of: fn(&Ties) -> &Vec<u32>| match inner.number_of(id) {
            Some(alarm) => watchers.ties.get(&alarm).is_some_and(|ties| of(ties).contains(&number)),
            None => group.variables.iter().any(|(variable, _)| variable == id) && is_shown(id),
        };
        spec.members.iter().all(|id| is_tied(id, |ties| &ties.member_of))
            && spec.suppresses.iter().all(|id| is_tied(id, |ties| &ties.suppressed_by))
    }

    /// The groups that an alarm is a member of (GetGroupMemberships, Part 9 §5.8.16).
    #[must_use]
    pub fn alarm_groups(&self, condition: &NodeId) -> Option<Vec<NodeId>> {
        let inner = self.alarms()?.lock();
        let number = inner.number_of(condition)?;
        let watchers = inner.watchers.as_ref();
        let ties = watchers.and_then(|watchers| watchers.ties.get(&number));
        let groups = ties.map_or(&[][..], |ties| &ties.member_of).iter();
        Some(
            groups
                .filter_map(|group| watchers?.groups.get(*group as usize))
                .map(|group| group.id.clone())
                .collect(),
        )
    }

    /// The slot of a Boolean Variable.
    fn boolean_slot(&self, id: &NodeId) -> Option<SlotHandle> {
        let is_boolean = self.declared_shape(id).is_some_and(|(_, kind)| kind == BuiltInType::Boolean);
        let nodes = self.read();
        nodes.find(id).ok().filter(|_| is_boolean).and_then(|node| nodes.slot_handle(node))
    }

    fn add_group_object(&self, spec: &GroupSpec) -> Result<(), NodeError> {
        let kind = match spec.kind {
            GroupKind::Suppression => object_type_ids::ALARM_SUPPRESSION_GROUP_TYPE,
            GroupKind::Related | GroupKind::FirstInGroup => object_type_ids::ALARM_GROUP_TYPE,
        };
        // Part 9 §5.8.2, Table 40: the name under which alarms refer to it.
        let name = match spec.kind {
            GroupKind::FirstInGroup => QualifiedName::new(0, "FirstInGroup"),
            _ => QualifiedName::new(spec.id.namespace_index, &*spec.name),
        };
        let object = NodeSpec::object(spec.id.clone(), name)
            .display_name(LocalizedText::from(&*spec.name))
            .description(LocalizedText::from(&*spec.name));
        let under = Under {
            parent: &spec.parent,
            reference_type: &ns0(reference_type_ids::ORGANIZES),
            type_definition: Some(&ns0(kind)),
        };
        self.add_node(object, under, UtcTime::NULL).map(drop)
    }

    /// Adds the references between a group and its alarms.
    fn add_group_references(
        &self,
        spec: &GroupSpec,
        members: &Found,
        suppressed: &Found,
    ) -> Result<(), NodeError> {
        let member = match spec.kind {
            GroupKind::Suppression => reference_type_ids::ALARM_SUPPRESSION_GROUP_MEMBER,
            GroupKind::Related | GroupKind::FirstInGroup => reference_type_ids::ALARM_GROUP_MEMBER,
        };
        for id in &members.shown {
            self.add_reference(&spec.id, &ns0(member), id)?;
            if spec.kind == GroupKind::FirstInGroup {
                self.add_reference(id, &ns0(reference_type_ids::HAS_COMPONENT), &spec.id)?;
            }
        }
        for id in &suppressed.shown {
            self.add_reference(id, &ns0(reference_type_ids::HAS_ALARM_SUPPRESSION_GROUP), &spec.id)?;
        }
        Ok(())
    }

    /// Adds FirstInGroupFlags to alarms without one.
    fn add_first_flags(&self, alarms: &[NodeId]) -> Result<Vec<(NodeId, VariableHandle)>, NodeError> {
        let name = QualifiedName::new(0, FIRST_IN_GROUP_FLAG);
        let mut added = Vec::new();
        for alarm in alarms.iter().filter(|alarm| self.child(alarm, &name).is_none()) {
            let id = child_id(&self.read(), alarm, FIRST_IN_GROUP_FLAG);
            let under = Under {
                parent: alarm,
                reference_type: &ns0(reference_type_ids::HAS_COMPONENT),
                type_definition: Some(&ns0(variable_type_ids::BASE_DATA_VARIABLE_TYPE)),
            };
            let boolean = ns0(data_type_ids::BOOLEAN);
            let spec = NodeSpec::variable(id.clone(), name.clone(), boolean, Some(Variant::Boolean(false)));
            self.add_node(spec, under, UtcTime::NULL)?;
            added.push((alarm.clone(), self.variable(&id)?));
        }
        Ok(added)
    }
}
