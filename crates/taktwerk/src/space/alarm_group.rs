//! Groups of alarms and their metrics (OPC 10000-9 §5.8.3, §5.8.4, §9.2).
//!
//! ```
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build()?;
//! let pump = server.namespace("urn:example:plant").object("Pump").event_notifier().add()?;
//! let power = pump.alarm("PowerFailure").add()?;
//! let flow = pump.alarm("FlowTooLow").add()?;
//! // Which of them was first?
//! pump.alarm_group("Pump trip").members([&power, &flow]).first_in_group().add()?;
//!
//! // Without power there is no flow, and during maintenance neither counts.
//! let maintenance = pump.variable("Maintenance", false).add()?;
//! pump.alarm_group("No power").members([&power]).variable(&maintenance).suppresses([&flow]).add()?;
//!
//! pump.alarm_metrics(10)?;
//! # Ok(())
//! # }
//! ```

use super::alarm::Alarm;
use super::alarm_thread::watch;
use super::{Node, Variable, now};
use taktwerk_server::alarm::{GroupKind, GroupSpec};
use taktwerk_server::space::AlarmError;
use taktwerk_types::NodeId;

/// Settings of a group of alarms; [`AlarmGroupBuilder::add`] adds it.
#[derive(Debug, Clone)]
#[must_use = "nothing is added before add()"]
pub struct AlarmGroupBuilder {
    parent: Node,
    spec: GroupSpec,
}

impl Node {
    /// Begins a group of related alarms. The node organizes it.
    pub fn alarm_group(&self, name: &str) -> AlarmGroupBuilder {
        let spec = GroupSpec::new(self.child_id(name), name, self.id.clone(), GroupKind::Related);
        AlarmGroupBuilder { parent: self.clone(), spec }
    }

    /// Computes metrics of the alarms at and below the node, which must have an EventNotifier: number, duration, and rate per
    /// `rate_minutes`. Clients find them as the component AlarmMetrics. Returns its NodeId.
    ///
    /// # Errors
    /// The node has metrics already.
    pub fn alarm_metrics(&self, rate_minutes: u16) -> Result<NodeId, AlarmError> {
        let id = self.child_id("AlarmMetrics");
        self.space.add_alarm_metrics(&self.id, id.clone(), rate_minutes, now())?;
        watch(&self.space);
        Ok(id)
    }
}

impl AlarmGroupBuilder {
    /// Adds alarms to the group.
    pub fn members<'a>(mut self, alarms: impl IntoIterator<Item = &'a Alarm>) -> Self {
        self.spec.members.extend(alarms.into_iter().map(|alarm| alarm.id().clone()));
        self
    }

    /// Adds a variable, which counts as an active alarm while it is true. Only for groups that [suppress](Self::suppresses).
    pub fn variable(mut self, variable: &Variable<bool>) -> Self {
        self.spec.members.push(variable.id().clone());
        self
    }

    /// Marks the alarm that became active first, until none is active (FirstInGroupFlag).
    pub fn first_in_group(mut self) -> Self {
        self.spec.kind = GroupKind::FirstInGroup;
        self
    }

    /// Suppresses these alarms while a member of the group is active (SuppressedState), because they are consequences of it.
    pub fn suppresses<'a>(mut self, alarms: impl IntoIterator<Item = &'a Alarm>) -> Self {
        self.spec.kind = GroupKind::Suppression;
        self.spec.suppresses.extend(alarms.into_iter().map(|alarm| alarm.id().clone()));
        self
    }

    /// Adds the group. Returns its NodeId.
    ///
    /// # Errors
    /// The group has no member, or the node has a child with that name.
    pub fn add(self) -> Result<NodeId, AlarmError> {
        let Self { parent, spec } = self;
        parent.space.add_alarm_group(&spec, now())?;
        watch(&parent.space);
        Ok(spec.id)
    }
}
