//! Adding conditions, with checks of their types and own fields.

use super::condition::Condition;
use super::error::AlarmError;
use super::registry::Alarms;
use crate::alarm::detector::{Detector, Kind};
use crate::alarm::machine::Machine;
use crate::alarm::{ConditionSpec, OwnFields, State};
use crate::event::FieldName;
use crate::event::filter::Types;
use crate::space::data_type::{Expected, Fit};
use crate::space::{AddressSpace, NodeError, NodeIx};
use std::sync::Arc;
use taktwerk_schema::ids::{object_type_ids, variable_ids};
use taktwerk_slots::SlotHandle;
use taktwerk_types::{NodeId, UtcTime};

/// Longest sound of an alarm, in bytes.
const SOUND_LEN_MAX: usize = 1 << 20;

impl AddressSpace {
    /// Declares that Retain follows each client's filter (Part 9 §5.5.2), which `subscription/retained.rs` implements.
    pub(crate) fn install_filtered_retain(&self, now: UtcTime) {
        let property = NodeId::numeric(0, variable_ids::CONDITION_TYPE_SUPPORTS_FILTERED_RETAIN);
        // Namespace 0 contains this property.
        if let Ok(property) = self.variable(&property) {
            property.set_at(true, now);
        }
    }

    /// Adds a condition, in its state before a restart if that was [restored](Alarms::restore).
    ///
    /// # Errors
    /// The limits are invalid, the id is in use, the type does not fit the kind, or the source, the input or the target
    /// does not exist.
    pub fn add_condition(&self, mut spec: ConditionSpec, now: UtcTime) -> Result<(), AlarmError> {
        self.check_condition(&mut spec)?;
        let alarms = Arc::clone(self.alarms_or_new());
        // Reserve the id: another thread may be adding the same condition.
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

    /// Checks a definition, and completes it with what its instance and its type define.
    pub(super) fn check_condition(&self, spec: &mut ConditionSpec) -> Result<(), AlarmError> {
        if let Err(problem) = spec.kind.check() {
            return Err(AlarmError::Limits { name: spec.name.clone(), problem });
        }
        if let Some(len) =
            spec.sound.as_ref().map(|sound| sound.as_bytes().len()).filter(|len| *len > SOUND_LEN_MAX)
        {
            return Err(AlarmError::Sound { name: spec.name.clone(), len });
        }
        if spec.is_bound && !self.bind_condition(spec)? {
            return Err(AlarmError::NoInstance(spec.id.clone()));
        }
        self.fit_to_type(spec)?;
        self.check_condition_type(spec)?;
        self.check_own_fields(spec, &spec.own)
    }

    /// Gives a condition the name of its source, unless it has one.
    pub(super) fn name_source(&self, spec: &mut ConditionSpec) {
        if spec.source_name.is_empty() {
            spec.source_name = self.source_name_of(&spec.source).into();
        }
    }

    /// The slot of a Variable that a condition watches.
    pub(super) fn watched_slot(&self, id: Option<&NodeId>) -> Result<Option<SlotHandle>, NodeError> {
        let Some(id) = id else { return Ok(None) };
        let nodes = self.read();
        let handle = nodes.slot_handle(nodes.find(id)?);
        handle.map(Some).ok_or_else(|| NodeError::Unknown(id.clone()))
    }

    /// Gives a condition that is not declared as an alarm what its type has, and no more.
    fn fit_to_type(&self, spec: &mut ConditionSpec) -> Result<(), NodeError> {
        if !spec.kind.is_alarm() {
            let nodes = self.read();
            let kind = nodes.find(&spec.type_id())?;
            let is = |base: u32| nodes.is_subtype(kind, NodeIx::ns0(base));
            if is(object_type_ids::ALARM_CONDITION_TYPE) {
                spec.kind = Kind::Set;
            } else if is(object_type_ids::ACKNOWLEDGEABLE_CONDITION_TYPE) {
                spec.kind = Kind::Acknowledgeable;
            }
        }
        if !spec.kind.is_alarm() || spec.is_dialog() {
            let acknowledges = spec.kind == Kind::Acknowledgeable && !spec.is_dialog();
            spec.rules = core::mem::take(&mut spec.rules).without_alarm(acknowledges);
        }
        Ok(())
    }

    /// Adds a condition whose id is reserved.
    fn add_reserved(
        &self,
        alarms: &Arc<Alarms>,
        mut spec: ConditionSpec,
        now: UtcTime,
    ) -> Result<(), AlarmError> {
        let input = self.watched_slot(spec.input.as_ref())?;
        let target = self.watched_slot(spec.target.as_ref())?;
        self.name_source(&mut spec);
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
            has_added_flag: false,
            is_removed: false,
            own,
            spec,
        };
        let has_date = condition.input.is_none() && condition.spec.date.is_some();
        let mut inner = alarms.lock();
        if let Some(saved) = inner.saved.remove(&*key) {
            saved.restore(&mut condition, now);
        }
        let next = u32::try_from(inner.conditions.len()).unwrap_or(u32::MAX);
        let number = inner.vacant.pop().unwrap_or(next);
        for slot in [&condition.input, &condition.target].into_iter().flatten() {
            inner.watch(self, number, slot);
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
            // It has no Variable, so nothing else would trigger its evaluation.
            alarms.count(inner.look(self, number, now));
        } else {
            inner.arm(number, now);
        }
        Ok(())
    }

    /// The type must be concrete. A custom type must be a subtype of the kind's type, because clients expect its
    /// fields.
    ///
    /// # Errors
    /// It is not such a type, or does not exist.
    pub fn check_condition_type(&self, spec: &ConditionSpec) -> Result<(), AlarmError> {
        let (type_id, base) = (spec.type_id(), spec.kind_type_id());
        if spec.type_id.is_none() {
            // Of the types for a kind, only ConditionType is abstract.
            let is_abstract = spec.kind == Kind::Condition && !spec.is_dialog();
            let error = || AlarmError::Abstract { name: spec.name.clone(), type_id };
            return if is_abstract { Err(error()) } else { Ok(()) };
        }
        let nodes = self.read();
        let kind = nodes.find(&type_id)?;
        if !nodes.is_subtype(kind, nodes.find(&base)?) {
            return Err(AlarmError::Type { name: spec.name.clone(), type_id, base });
        }
        if nodes.view(kind).is_some_and(|view| view.is_abstract() == Some(true)) {
            return Err(AlarmError::Abstract { name: spec.name.clone(), type_id });
        }
        Ok(())
    }

    /// Own fields must be fields that the type adds to the kind's type. Their values must have the declared DataType
    /// and rank (clients rely on it, Part 9 §5.5.2), or be null.
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
            // A field that is not a Variable has no type.
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
