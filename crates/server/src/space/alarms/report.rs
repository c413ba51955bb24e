//! What an application says of a condition: fields of its own type, or all that it knows of a state that is kept elsewhere, as
//! a gateway does.

use super::condition::Condition;
use super::error::AlarmError;
use crate::alarm::OwnFields;
use crate::alarm::limits::LimitSet;
use crate::alarm::machine::Finding;
use crate::space::{AddressSpace, NodeError};
use std::sync::Arc;
use taktwerk_types::{NodeId, StatusCode, UtcTime};

/// What is known of a condition, for one event.
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
    /// Fields of the condition's own type. Others keep their values.
    pub own: OwnFields,
    /// Whether an event is raised even if none of these has changed.
    pub is_news: bool,
    /// When it happened (Time).
    pub time: UtcTime,
}

impl AddressSpace {
    /// Sets fields of a condition's own type. The next event has them; until then, clients see the values of the last event.
    ///
    /// # Errors
    /// There is no such condition, or its type does not add such a field.
    pub fn set_condition_fields(&self, id: &NodeId, own: OwnFields) -> Result<(), AlarmError> {
        let unknown = || AlarmError::Node(NodeError::Unknown(id.clone()));
        let alarms = self.alarms().ok_or_else(unknown)?;
        self.check_fields_of(id, &own)?;
        let mut inner = alarms.lock();
        let number = inner.by_id.get(id).copied().ok_or_else(unknown)?;
        inner.conditions.get_mut(number as usize).ok_or_else(unknown)?.set_own(own);
        Ok(())
    }

    /// Takes over all that is known of a condition. One event tells of it: it has the new values of the fields.
    ///
    /// # Errors
    /// There is no such condition, or its type does not add such a field. Nothing has changed then.
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

    /// Checks fields for a condition. Not under the lock of the conditions: it takes that of the nodes.
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
    /// Fields of its own type get values, which the next event has.
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
