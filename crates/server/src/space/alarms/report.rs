//! Reports of applications about conditions: own fields, or the complete state if it is kept elsewhere, as in a
//! gateway.

use super::condition::Condition;
use super::error::AlarmError;
use crate::alarm::OwnFields;
use crate::alarm::limits::LimitSet;
use crate::alarm::machine::Finding;
use crate::space::{AddressSpace, NodeError};
use std::sync::Arc;
use taktwerk_types::{NodeId, StatusCode, UtcTime};

/// The reported state of a condition, for one event.
#[derive(Debug, Clone)]
pub struct ConditionReport<'a> {
    /// ActiveState.
    pub is_active: bool,
    /// Severity, from 1 to 1000.
    pub severity: u16,
    /// Quality (Part 9 §5.5.2).
    pub quality: StatusCode,
    /// Message.
    pub message: &'a str,
    /// Fields of the condition's own type. The others keep their values.
    pub own: OwnFields,
    /// Whether to raise an event even without changes.
    pub is_news: bool,
    /// The time of the event (Time).
    pub time: UtcTime,
}

impl AddressSpace {
    /// Sets fields of a condition's own type for the next event. Until then, clients see the values of the last event.
    ///
    /// # Errors
    /// The condition does not exist, or its type does not add such a field.
    pub fn set_condition_fields(&self, id: &NodeId, own: OwnFields) -> Result<(), AlarmError> {
        let unknown = || AlarmError::Node(NodeError::Unknown(id.clone()));
        let alarms = self.alarms().ok_or_else(unknown)?;
        self.check_fields_of(id, &own)?;
        let mut inner = alarms.lock();
        let number = inner.by_id.get(id).copied().ok_or_else(unknown)?;
        inner.conditions.get_mut(number as usize).ok_or_else(unknown)?.set_own(own);
        Ok(())
    }

    /// Takes over the reported state of a condition and raises one event with the new values.
    ///
    /// # Errors
    /// The condition does not exist, or its type does not add such a field. Nothing has changed then.
    pub fn report_condition(
        &self,
        id: &NodeId,
        report: ConditionReport<'_>,
        now: UtcTime,
    ) -> Result<(), AlarmError> {
        let ConditionReport { is_active, severity, quality, message, own, is_news, time } = report;
        let unknown = || AlarmError::Node(NodeError::Unknown(id.clone()));
        let alarms = self.alarms().ok_or_else(unknown)?;
        self.check_fields_of(id, &own)?;
        let mut inner = alarms.lock();
        let number = inner.by_id.get(id).copied().ok_or_else(unknown)?;
        let condition = inner.conditions.get_mut(number as usize).ok_or_else(unknown)?;
        condition.set_own(own);
        let is_other = condition.own != condition.machine.state().own;
        condition.detector.set(is_active);
        let finding = Finding { active: is_active, limits: LimitSet::NONE, severity, quality };
        let mut notes = condition.machine.found(finding, message, time);
        if notes.is_empty() && (is_other || is_news) {
            notes = condition.machine.restated(severity, message, time);
        }
        let changed = inner.tell(self, number, notes, now);
        inner.arm(number, now);
        alarms.count(changed);
        Ok(())
    }

    /// Checks fields for a condition. Call it without the lock of the conditions, because it locks the nodes.
    fn check_fields_of(&self, id: &NodeId, own: &OwnFields) -> Result<(), AlarmError> {
        if own.is_empty() {
            return Ok(());
        }
        let unknown = || AlarmError::Node(NodeError::Unknown(id.clone()));
        let alarms = self.alarms().ok_or_else(unknown)?;
        let spec = {
            let inner = alarms.lock();
            let number = inner.by_id.get(id).copied().ok_or_else(unknown)?;
            inner.conditions.get(number as usize).ok_or_else(unknown)?.spec.clone()
        };
        self.check_own_fields(&spec, own)
    }
}

impl Condition {
    /// Sets own fields for the next event.
    fn set_own(&mut self, own: OwnFields) {
        if own.is_empty() {
            return;
        }
        let all = Arc::make_mut(self.own.get_or_insert_default());
        for (name, value) in own {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => all.push((name, value)),
            }
        }
    }
}
