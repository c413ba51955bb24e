//! Alarms of variables and objects, and dialogs (OPC 10000-9).
//!
//! ```
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! # let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build()?;
//! let boiler = server.namespace("urn:example:plant").object("Boiler").event_notifier().add()?;
//! let temperature = boiler.variable("Temperature", 21.5).add()?;
//! temperature.alarm().high(80.0).high_high(95.0).deadband(1.0).on_delay(Duration::from_secs(2)).add()?;
//!
//! let door = boiler.variable("DoorClosed", true).add()?;
//! door.alarm().off_normal(true).name("Door").severity(300).add()?;
//!
//! let leak = boiler.alarm("Leak").severity(900).add()?;
//! leak.set_active(true, "The leak detector of the boiler has tripped");
//!
//! let service = boiler.acknowledgeable("Service").severity(200).add()?;
//! service.set_active(true, "The filter is due for replacement");
//! # Ok(())
//! # }
//! ```

use super::alarm_thread::watch;
use super::{Node, Space, Variable, now};
use crate::value::Value;
use core::time::Duration;
use taktwerk_server::FieldName;
use taktwerk_server::alarm::{
    ConditionSpec, ConditionView, Dialog, Kind, Limits, Method, Operation, Quantity,
};
use taktwerk_server::authorization::Access;
use taktwerk_server::space::{AlarmError, ConditionReport};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// Settings of an alarm; [`AlarmBuilder::add`] adds it.
#[derive(Debug, Clone)]
#[must_use = "nothing is added before add()"]
pub struct AlarmBuilder {
    source: Node,
    name: Option<String>,
    limits: Limits,
    quantity: Quantity,
    is_exclusive: bool,
    spec: ConditionSpec,
}

/// A condition of the server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Alarm {
    space: Space,
    id: NodeId,
    severity: u16,
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

impl<T: Value> Variable<T> {
    /// Begins an alarm that watches the value: with [limits](AlarmBuilder::high), for an [off-normal
    /// value](AlarmBuilder::off_normal), or for a value that [does not follow](AlarmBuilder::discrepancy) another. After the
    /// variable was written, the alarm is evaluated within 100 ms; shorter peaks are not seen.
    pub fn alarm(&self) -> AlarmBuilder {
        let mut builder = AlarmBuilder::new(self.node().clone(), Kind::Set);
        builder.spec.input = Some(self.id().clone());
        builder
    }
}

impl<T: Value> Variable<T> {
    /// Begins an alarm that watches the value as [`Self::alarm`] does. The alarm is an existing instance of an alarm type from an
    /// imported NodeSet, as for [`Node::bind_alarm`].
    pub fn bind_alarm(&self, instance: impl Into<NodeId>) -> AlarmBuilder {
        let mut builder = self.alarm();
        (builder.spec.is_bound, builder.spec.id) = (true, instance.into());
        builder
    }
}

impl Node {
    /// Begins an alarm that the application [sets](Alarm::set_active) itself.
    pub fn alarm(&self, name: &str) -> AlarmBuilder {
        AlarmBuilder::new(self.clone(), Kind::Set).name(name)
    }

    /// Begins a condition that is not an alarm but must be acknowledged (AcknowledgeableConditionType), such as the need
    /// for maintenance. The application [sets](Alarm::set_active) whether the reason persists.
    pub fn acknowledgeable(&self, name: &str) -> AlarmBuilder {
        AlarmBuilder::new(self.clone(), Kind::Acknowledgeable).name(name)
    }

    /// Begins a condition of a concrete subtype of ConditionType. The application [sets](Alarm::set_active) whether
    /// operators should see it (Retain). Types of alarms and of acknowledgeable conditions have their acknowledgement.
    pub fn condition(&self, name: &str, condition_type: impl Into<NodeId>) -> AlarmBuilder {
        AlarmBuilder::new(self.clone(), Kind::Condition).name(name).of_type(condition_type)
    }

    /// Makes this node, an instance of an alarm type from an imported NodeSet, an alarm that the application
    /// [sets](Alarm::set_active) itself. It keeps its type and name. Its source is that of its HasCondition reference or else the
    /// Object that it is a component of.
    pub fn bind_alarm(&self) -> AlarmBuilder {
        let mut builder = AlarmBuilder::new(self.clone(), Kind::Set);
        (builder.spec.is_bound, builder.spec.id) = (true, self.id.clone());
        builder
    }

    /// The alarm with a name that was added before.
    #[must_use]
    pub fn alarm_named(&self, name: &str) -> Option<Alarm> {
        let id = self.child_id(name);
        let view = self.space.condition(&id)?;
        Some(Alarm { space: self.space.clone(), id, severity: view.state.severity })
    }

    /// Begins a question to operators (DialogConditionType). The first response is the default, the last one cancels.
    /// [`Alarm::ask`] asks it.
    pub fn dialog(&self, name: &str, prompt: &str, responses: &[&str]) -> AlarmBuilder {
        let mut builder = AlarmBuilder::new(self.clone(), Kind::Set).name(name);
        builder.spec.dialog = Some(Dialog::new(prompt, responses));
        builder.spec.rules.acknowledges = false;
        builder
    }
}

impl AlarmBuilder {
    fn new(source: Node, kind: Kind) -> Self {
        let spec = ConditionSpec::new(NodeId::NULL, "", source.id.clone(), kind);
        Self {
            source,
            name: None,
            limits: Limits::default(),
            quantity: Quantity::Level,
            is_exclusive: true,
            spec,
        }
    }

    /// ConditionName, and the name of the node. Default: derived from the kind of alarm, such as `LevelAlarm`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// HighLimit: active above.
    pub fn high(mut self, limit: f64) -> Self {
        self.limits.high = Some(limit);
        self
    }

    /// HighHighLimit, above HighLimit and more urgent.
    pub fn high_high(mut self, limit: f64) -> Self {
        self.limits.high_high = Some(limit);
        self
    }

    /// LowLimit: active below.
    pub fn low(mut self, limit: f64) -> Self {
        self.limits.low = Some(limit);
        self
    }

    /// LowLowLimit, below LowLimit and more urgent.
    pub fn low_low(mut self, limit: f64) -> Self {
        self.limits.low_low = Some(limit);
        self
    }

    /// How far a value must return past a limit to count as normal again. Default: 0.
    pub fn deadband(mut self, distance: f64) -> Self {
        self.limits.deadband = distance;
        self
    }

    /// Shows every exceeded limit separately. Default: only the outermost one.
    pub fn non_exclusive(mut self) -> Self {
        self.is_exclusive = false;
        self
    }

    /// The limits apply to the distance from a setpoint.
    pub fn deviation_from<T: Value>(mut self, setpoint: &Variable<T>) -> Self {
        self.quantity = Quantity::Deviation;
        self.spec.target = Some(setpoint.id().clone());
        self
    }

    /// The limits apply to the change per second.
    pub fn rate_of_change(mut self) -> Self {
        self.quantity = Quantity::RateOfChange;
        self
    }

    /// Active while the value differs from `normal`.
    pub fn off_normal(mut self, normal: impl Value) -> Self {
        self.spec.kind = Kind::OffNormal { normal: normal.into_variant() };
        self
    }

    /// Active when the value has differed from a target by more than `tolerance` for longer than `expected_time`.
    pub fn discrepancy<T: Value>(
        mut self,
        target: &Variable<T>,
        tolerance: f64,
        expected_time: Duration,
    ) -> Self {
        self.spec.kind = Kind::Discrepancy { tolerance, expected_time: millis(expected_time) };
        self.spec.target = Some(target.id().clone());
        self
    }

    /// The value is the time at which something expires, such as a certificate. Active from `before` that time on.
    pub fn expires(mut self, before: Duration) -> Self {
        self.spec.kind = Kind::Expiration { limit: millis(before) };
        self
    }

    /// The value is the time of the last update of a trust list. Active if that was longer than `after` ago.
    pub fn out_of_date(mut self, after: Duration, trust_list: impl Into<NodeId>) -> Self {
        self.spec.kind = Kind::OutOfDate { frequency: millis(after), trust_list: trust_list.into() };
        self
    }

    /// Severity from 1 to 1000; beyond LowLow and HighHigh there is [another one](Self::outer_severity). Default: 500.
    pub fn severity(mut self, severity: u16) -> Self {
        self.spec.severities.inner = severity.clamp(1, 1000);
        self.spec.severities.outer = self.spec.severities.outer.max(self.spec.severities.inner);
        self
    }

    /// Severity beyond LowLow and HighHigh. Default: 800.
    pub fn outer_severity(mut self, severity: u16) -> Self {
        self.spec.severities.outer = severity.clamp(1, 1000);
        self
    }

    /// How long the value must be abnormal before the alarm becomes active (OnDelay).
    pub fn on_delay(mut self, span: Duration) -> Self {
        self.spec.rules.on_delay = millis(span);
        self
    }

    /// How long the value must be normal before the alarm becomes inactive (OffDelay).
    pub fn off_delay(mut self, span: Duration) -> Self {
        self.spec.rules.off_delay = millis(span);
        self
    }

    /// Requires confirmation after acknowledgement, when the cause is removed.
    pub fn confirm(mut self) -> Self {
        self.spec.rules.confirms = true;
        self
    }

    /// Requires no acknowledgement.
    pub fn no_acknowledgement(mut self) -> Self {
        self.spec.rules.acknowledges = false;
        self
    }

    /// Makes it an instance of another ObjectType, such as one of an imported NodeSet. The type must be a subtype of the type for
    /// this kind of alarm. It is the EventType of the alarm's events.
    pub fn of_type(mut self, alarm_type: impl Into<NodeId>) -> Self {
        self.spec.type_id = Some(alarm_type.into());
        self
    }

    /// The initial value of a field that the [type](Self::of_type) adds to those of the specification, by its path: `3:Cause`.
    /// The value must have the field's type. Optional fields with a value are shown. [`Alarm::set_field`] changes it.
    pub fn field(mut self, name: impl Into<FieldName>, value: impl Into<Variant>) -> Self {
        self.spec.own.push((name.into(), value.into()));
        self
    }

    /// The alarm stays until an operator resets it (LatchedState).
    pub fn latching(mut self) -> Self {
        self.spec.rules.latches = true;
        self
    }

    /// The alarm is audible while it is active and unacknowledged, until an operator silences it (AudibleEnabled).
    pub fn audible(mut self) -> Self {
        self.spec.rules.audible = true;
        self
    }

    /// The same with a sound for clients, such as a WAV file (AudibleSound): at most 1 MiB.
    pub fn sound(mut self, file: &[u8]) -> Self {
        self.spec.sound = Some(file.to_vec().into());
        self.audible()
    }

    /// Raises the alarm again if it is still active after this time (ReAlarmTime).
    pub fn re_alarm(mut self, span: Duration) -> Self {
        self.spec.rules.re_alarm_time = millis(span);
        self
    }

    /// The longest time for which operators may shelve it (MaxTimeShelved).
    pub fn max_shelving(mut self, span: Duration) -> Self {
        self.spec.rules.shelving_time_max = Some(millis(span));
        self
    }

    /// Keeps an unacknowledged state as a branch when the alarm becomes active again, at most 8.
    pub fn branches(mut self) -> Self {
        self.spec.rules.keeps_branches = true;
        self
    }

    /// Adds no nodes to the address space. Events and methods work all the same, and it takes less memory.
    pub fn without_nodes(mut self) -> Self {
        self.spec.is_shown = false;
        self
    }

    /// Permissions for the nodes of the alarm. Default: those of their namespace.
    pub fn access(mut self, access: Access) -> Self {
        self.spec.access = access;
        self
    }

    /// Adds the alarm.
    ///
    /// # Errors
    /// The limits are not in ascending order or are not numbers, or the source has an alarm with that name.
    pub fn add(self) -> Result<Alarm, AlarmError> {
        let Self { source, name, limits, quantity, is_exclusive, mut spec } = self;
        let is_limit = matches!(spec.kind, Kind::Set) && spec.input.is_some();
        if is_limit || limits.all().next().is_some() {
            spec.kind = Kind::Limit { quantity, limits, is_exclusive };
        }
        if spec.is_bound {
            spec.name = name.unwrap_or_default().into();
        } else {
            let name = name.unwrap_or_else(|| spec.kind.default_name().to_owned());
            spec.id = source.child_id(&name);
            spec.name = name.into();
        }
        let (space, id, severity) = (source.space.clone(), spec.id.clone(), spec.severities.inner);
        space.add_condition(spec, now())?;
        watch(&space);
        Ok(Alarm { space, id, severity })
    }
}

impl Alarm {
    /// ConditionId.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// The current state.
    #[must_use]
    pub fn view(&self) -> Option<ConditionView> {
        self.space.condition(&self.id)
    }

    /// Sets whether the alarm is active, with a message. For alarms that watch no variable. Conditions that are not
    /// alarms have no ActiveState: operators see them while this is set or they are unacknowledged (Retain).
    pub fn set_active(&self, is_active: bool, message: &str) {
        self.set_active_with(is_active, self.severity, message);
    }

    /// The same with another severity.
    pub fn set_active_with(&self, is_active: bool, severity: u16, message: &str) {
        // Conditions are never deleted, so it exists.
        let _ = self.space.set_condition(&self.id, is_active, severity.clamp(1, 1000), message, now());
    }

    /// Sets a field that the alarm's type adds. The next event contains the value; ConditionRefresh and the address space show
    /// the values of the last event. Set fields before [`Self::set_active`].
    ///
    /// # Errors
    /// The type does not add such a field, or the field has another type than the value.
    pub fn set_field(&self, name: impl Into<FieldName>, value: impl Into<Variant>) -> Result<(), AlarmError> {
        self.space.set_condition_fields(&self.id, vec![(name.into(), value.into())])
    }

    /// Sets the whole state of an alarm that is managed elsewhere, such as on another server. One event reports it.
    ///
    /// # Errors
    /// As [`Self::set_field`]. The alarm is unchanged then.
    pub fn report(&self, report: ConditionReport<'_>) -> Result<(), AlarmError> {
        self.space.report_condition(&self.id, report, now())
    }

    /// Removes the alarm with its nodes. Clients are notified that operators no longer need to see it (Retain is false).
    pub fn remove(self) {
        self.space.remove_condition(&self.id, now());
    }

    /// Asks the question of a dialog. It is shown to operators until one of them responds.
    pub fn ask(&self) {
        let _ = self.space.ask(&self.id, now());
    }

    /// The index of the last chosen response; `None` if the dialog is waiting or was never asked.
    #[must_use]
    pub fn response(&self) -> Option<usize> {
        let dialog = self.view()?.state.dialog?;
        usize::try_from(dialog.last_response).ok().filter(|_| !dialog.is_active)
    }

    /// Suppresses the alarm by design of the plant (SuppressedState).
    ///
    /// # Errors
    /// The alarm is disabled.
    pub fn suppress(&self, suppressed: bool) -> Result<(), StatusCode> {
        let method = if suppressed { Method::Suppress } else { Method::Unsuppress };
        self.operate(&Operation::new(method))
    }

    /// Performs an operator action.
    ///
    /// # Errors
    /// The result code that a client would receive.
    pub fn operate(&self, operation: &Operation) -> Result<(), StatusCode> {
        self.space.operate_condition(&self.id, operation, now())
    }
}
