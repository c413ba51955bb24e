//! Alarm metrics in the address space: an AlarmMetricsType below the Object whose alarms it counts (Part 9 §9.2).

use super::error::AlarmError;
use super::registry::Inner;
use crate::alarm::metrics::Metrics;
use crate::alarm::shelving::later;
use crate::callback::{CallContext, MethodCall, MethodHandler};
use crate::space::build::Under;
use crate::space::{AddressSpace, NodeSpec, VariableHandle};
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_schema::ids::{object_type_ids, reference_type_ids};
use taktwerk_types::{NodeId, QualifiedName, UtcTime, Variant};

/// Update interval of the Variables, in milliseconds.
const SHOW_EVERY_MS: f64 = 1_000.0;

/// Metrics with their Variables.
#[derive(Debug)]
pub(super) struct ShownMetrics {
    /// The Object whose alarms are counted.
    pub(super) object: NodeId,
    pub(super) metrics: Metrics,
    variables: BTreeMap<String, VariableHandle>,
    /// Set by Reset.
    reset: Arc<AtomicBool>,
    next: UtcTime,
}

/// The Method Reset: counts are cleared at the next poll of alarms.
struct Reset(Arc<AtomicBool>);

impl MethodHandler for Reset {
    fn call(&self, _: &CallContext, _: Vec<Variant>) -> MethodCall {
        self.0.store(true, Ordering::Release);
        MethodCall::Now(Ok(Vec::new()))
    }
}

impl ShownMetrics {
    fn show(&mut self, now: UtcTime) {
        if self.reset.swap(false, Ordering::AcqRel) {
            self.metrics.reset(now);
        } else if now.ticks() < self.next.ticks() {
            return;
        }
        self.next = later(now, SHOW_EVERY_MS);
        let values = self.metrics.values(now);
        let rate = Variant::from(self.metrics.rate_minutes());
        let all: [(&str, Variant); 11] = [
            ("AlarmCount", values.count.into()),
            ("StartTime", values.start.into()),
            ("MaximumActiveState", values.active_max.into()),
            ("MaximumUnAck", values.unacked_max.into()),
            ("CurrentAlarmRate", values.rate.into()),
            ("CurrentAlarmRate/Rate", rate.clone()),
            ("MaximumAlarmRate", values.rate_max.into()),
            ("MaximumAlarmRate/Rate", rate.clone()),
            ("MaximumReAlarmCount", values.re_alarms_max.into()),
            ("AverageAlarmRate", values.rate_average.into()),
            ("AverageAlarmRate/Rate", rate),
        ];
        for (path, value) in all {
            let variable =
                self.variables.get(path).filter(|known| known.get().value.as_ref() != Some(&value));
            if let Some(variable) = variable {
                variable.set_at(value, now);
            }
        }
    }
}

impl Inner {
    /// Counts a condition in metrics, if their Object receives its events.
    pub(super) fn count_in(&mut self, space: &AddressSpace, at: usize, number: u32, now: UtcTime) {
        let Self { watchers: Some(watchers), conditions, .. } = self else { return };
        let Some(shown) = watchers.metrics.get_mut(at) else { return };
        let Some(condition) = conditions.get(number as usize).filter(|it| !it.is_removed) else { return };
        if condition.spec.is_dialog() || !space.sees_events_of(&shown.object, &condition.spec.source) {
            return;
        }
        let state = condition.machine.state();
        shown.metrics.observe(number, state.active, state.acked, state.re_alarms, now);
        if let Ok(at) = u32::try_from(at) {
            watchers.ties.entry(number).or_default().counted_by.push(at);
        }
    }

    /// Updates the Variables of metrics. Returns when the next update is due.
    pub(super) fn show_metrics(&mut self, now: UtcTime) -> Option<UtcTime> {
        let watchers = self.watchers.as_mut()?;
        watchers.metrics.iter_mut().for_each(|shown| shown.show(now));
        watchers.metrics.iter().map(|shown| shown.next).min()
    }
}

impl AddressSpace {
    /// Adds an AlarmMetricsType with this id to an Object with an EventNotifier. It counts the alarms at and below the
    /// Object; at the Server Object, those of the whole server. Rates are alarms per `minutes`.
    ///
    /// # Errors
    /// The Object does not exist, or the node cannot be added.
    pub fn add_alarm_metrics(
        &self,
        object: &NodeId,
        id: NodeId,
        minutes: u16,
        now: UtcTime,
    ) -> Result<(), AlarmError> {
        let namespace = id.namespace_index;
        let under = Under {
            parent: object,
            reference_type: &NodeId::numeric(0, reference_type_ids::HAS_COMPONENT),
            type_definition: Some(&NodeId::numeric(0, object_type_ids::ALARM_METRICS_TYPE)),
        };
        let spec = NodeSpec::object(id, QualifiedName::new(namespace, "AlarmMetrics"));
        let reset = Arc::new(AtomicBool::new(false));
        let mut variables = BTreeMap::new();
        for (path, id) in self.add_instance(spec, under, &[], now)? {
            if path == "Reset" {
                self.set_method(&id, Arc::new(Reset(Arc::clone(&reset))))?;
            } else if let Ok(variable) = self.variable(&id) {
                variables.insert(path, variable);
            }
        }
        let alarms = Arc::clone(self.alarms_or_new());
        let mut inner = alarms.lock();
        let watchers = inner.watchers.get_or_insert_default();
        let at = watchers.metrics.len();
        watchers.metrics.push(ShownMetrics {
            object: object.clone(),
            metrics: Metrics::new(minutes, now),
            variables,
            reset,
            next: now,
        });
        for number in 0..u32::try_from(inner.conditions.len()).unwrap_or(u32::MAX) {
            inner.count_in(self, at, number, now);
        }
        inner.show_metrics(now);
        Ok(())
    }
}
