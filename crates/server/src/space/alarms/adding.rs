//! Adding conditions, and what is checked before: their types and the fields that these add.

use super::condition::Condition;
use super::error::AlarmError;
use super::registry::Alarms;
use crate::alarm::detector::Detector;
use crate::alarm::machine::Machine;
use crate::alarm::{ConditionSpec, OwnFields, State};
use crate::event::FieldName;
use crate::event::filter::Types;
use crate::space::data_type::{Expected, Fit};
use crate::space::{AddressSpace, NodeError};
use std::sync::Arc;
use taktwerk_schema::ids::variable_ids;
use taktwerk_types::{NodeId, UtcTime};

/// Longest sound of an alarm, in bytes.
const SOUND_LEN_MAX: usize = 1 << 20;

impl AddressSpace {
    /// Says that Retain is kept for each client's filter (Part 9 §5.5.2): `subscription/retained.rs` does it.
    pub(crate) fn install_filtered_retain(&self, now: UtcTime) {
        let property = NodeId::numeric(0, variable_ids::CONDITION_TYPE_SUPPORTS_FILTERED_RETAIN);
        // Namespace 0 has it.
        if let Ok(property) = self.variable(&property) {
            property.set_at(true, now);
        }
    }

    /// Adds a condition, in the state that it had before a restart if that was [restored](Alarms::restore).
    ///
    /// # Errors
    /// The limits cannot be meant, the id is taken, the type is none of its kind, or the source, the input or the target does not exist.
    pub fn add_condition(&self, mut spec: ConditionSpec, now: UtcTime) -> Result<(), AlarmError> {
        if let Err(problem) = spec.kind.check() {
            return Err(AlarmError::Limits { name: spec.name, problem });
        }
        if let Some(len) =
            spec.sound.as_ref().map(|sound| sound.as_bytes().len()).filter(|len| *len > SOUND_LEN_MAX)
        {
            return Err(AlarmError::Sound { name: spec.name, len });
        }
        if spec.is_bound && !self.bind_condition(&mut spec)? {
            return Err(AlarmError::NoInstance(spec.id));
        }
        self.check_condition_type(&spec)?;
        self.check_own_fields(&spec, &spec.own)?;
        let alarms = Arc::clone(self.alarms_or_new());
        // The id is taken from now on: another thread may be adding the same condition.
        let id = spec.id.clone();
        {
            let mut inner = alarms.lock();
            if inner.by_id.contains_key(&id) || !inner.adding.insert(id.clone()) {
                return Err(AlarmError::Taken(id));
            }
        }
        let added = self.add_reserved(&alarms, spec, now);
        alarms.lock().adding.remove(&id);
        added
    }

    /// Adds a condition whose id nobody else adds meanwhile.
    fn add_reserved(
        &self,
        alarms: &Arc<Alarms>,
        mut spec: ConditionSpec,
        now: UtcTime,
    ) -> Result<(), AlarmError> {
        let slot = |id: &Option<NodeId>| -> Result<_, NodeError> {
            let Some(id) = id else { return Ok(None) };
            let nodes = self.read();
            let handle = nodes.slot_handle(nodes.find(id)?);
            handle.map(Some).ok_or_else(|| NodeError::Unknown(id.clone()))
        };
        let (input, target) = (slot(&spec.input)?, slot(&spec.target)?);
        if spec.source_name.is_empty() {
            spec.source_name = self.source_name_of(&spec.source).into();
        }
        let nodes = if spec.is_shown { Some(self.add_condition_nodes(&spec, now)?) } else { None };
        let key = self.node_key(&spec.id);
        let mut state = State::new(spec.severities.inner, now);
        state.dialog = spec.dialog.clone().map(Box::new);
        let own = (!spec.own.is_empty()).then(|| Arc::new(core::mem::take(&mut spec.own)));
        state.own.clone_from(&own);
        let mut condition = Condition {
            detector: Detector::new(spec.kind.clone(), spec.severities),
            machine: Machine::new(spec.rules.clone(), state),
            input,
            target,
            nodes,
            last: None,
            deadline: None,
            is_removed: false,
            own,
            spec,
        };
        let shard = self.slots().alarms();
        let has_date = condition.input.is_none() && condition.spec.date.is_some();
        let mut inner = alarms.lock();
        if let Some(saved) = inner.saved.remove(&*key) {
            saved.restore(&mut condition, now);
        }
        let next = u32::try_from(inner.conditions.len()).unwrap_or(u32::MAX);
        let number = inner.vacant.pop().unwrap_or(next);
        for slot in [&condition.input, &condition.target].into_iter().flatten() {
            slot.set_watched(shard, true);
            inner.by_slot.entry(slot.index()).or_default().push(number);
            inner.dirty.push(slot.index());
        }
        let shelving = condition.nodes.as_ref().and_then(|nodes| nodes.shelving.clone());
        inner.by_id.extend(shelving.map(|id| (id, number)));
        inner.by_id.insert(condition.spec.id.clone(), number);
        condition.show(None, now);
        match inner.conditions.get_mut(number as usize) {
            Some(place) => *place = condition,
            None => inner.conditions.push(condition),
        }
        inner.added(self, number, now);
        if has_date {
            // No Variable has it, so nothing else would have it looked at.
            alarms.count(inner.look(self, number, now));
        } else {
            inner.arm(number, now);
        }
        Ok(())
    }

    /// Another type than that of the kind has to be one of its subtypes: clients expect its fields.
    ///
    /// # Errors
    /// It is no such type, or there is no such node.
    pub fn check_condition_type(&self, spec: &ConditionSpec) -> Result<(), AlarmError> {
        let Some(type_id) = &spec.type_id else { return Ok(()) };
        let base = spec.kind_type_id();
        let nodes = self.read();
        if nodes.is_subtype(nodes.find(type_id)?, nodes.find(&base)?) {
            return Ok(());
        }
        Err(AlarmError::Type { name: spec.name.clone(), type_id: type_id.clone(), base })
    }

    /// Own fields are those that the type has and the type of its kind has not. Their values are of the DataType and the rank
    /// that the type declares (Part 9 §5.5.2 has clients read them by it), or null.
    pub(super) fn check_own_fields(&self, spec: &ConditionSpec, own: &OwnFields) -> Result<(), AlarmError> {
        if own.is_empty() {
            return Ok(());
        }
        let (type_id, base) = (spec.type_id(), spec.kind_type_id());
        let nodes = self.read();
        let (kind, base_kind) = (nodes.find(&type_id)?, nodes.find(&base)?);
        let fits =
            |name: &FieldName| nodes.has_field(kind, name.path()) && !nodes.has_field(base_kind, name.path());
        for (name, value) in own {
            if !fits(name) {
                let field = name.to_string();
                return Err(AlarmError::Field { name: spec.name.clone(), field, type_id, base });
            }
            let declared = nodes.event_field(kind, name.path()).and_then(|field| nodes.view(field));
            // A field that is no Variable has no type.
            let expected = declared.as_ref().and_then(|view| Expected::of_variable(&nodes, view).ok());
            let (Some(view), Some(expected), false) = (declared, expected, value.is_empty()) else {
                continue;
            };
            if !matches!(expected.fit(&nodes, value.clone()), Fit::Yes(_)) {
                let data_type = view.data_type().unwrap_or_default();
                let kind = nodes.resolve(data_type.as_ref()).and_then(|ix| nodes.view(ix));
                let called = kind.map_or_else(
                    || data_type.to_string(),
                    |view| view.browse_name().name.as_str().to_owned(),
                );
                let array = |is_array| if is_array { "array of " } else { "" };
                let wanted = format!("{}{called}", array(view.value_rank().is_some_and(|rank| rank >= 0)));
                let kind = value.built_in_type().map_or_else(String::new, |kind| kind.to_string());
                return Err(AlarmError::FieldType {
                    name: spec.name.clone(),
                    field: name.to_string(),
                    wanted,
                    found: format!("{}{kind}", array(value.as_array().is_some())),
                });
            }
        }
        Ok(())
    }
}
