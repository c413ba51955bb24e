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

/// A group of alarms to be; [`AlarmGroupBuilder::add`] adds it.
#[derive(Debug, Clone)]
#[must_use = "nothing is added before add()"]
pub struct AlarmGroupBuilder {
    parent: Node,
    spec: GroupSpec,
}

impl Node {
    /// Begins a group of alarms that belong together. The node organizes it.
    pub fn alarm_group(&self, name: &str) -> AlarmGroupBuilder {
        let spec = GroupSpec::new(self.child_id(name), name, self.id.clone(), GroupKind::Related);
        AlarmGroupBuilder { parent: self.clone(), spec }
    }

    /// Counts the alarms at and below the node, which has an EventNotifier: how many there were, how long they lasted, and how
    /// many come per `rate_minutes`. Clients find it as the component AlarmMetrics. Returns its NodeId.
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
    /// Adds alarms to it.
    pub fn members<'a>(mut self, alarms: impl IntoIterator<Item = &'a Alarm>) -> Self {
        self.spec.members.extend(alarms.into_iter().map(|alarm| alarm.id().clone()));
        self
    }

    /// Adds a variable: as long as it is true, it counts as an active alarm. Only for groups that
    /// [suppress](Self::suppresses).
    pub fn variable(mut self, variable: &Variable<bool>) -> Self {
        self.spec.members.push(variable.id().clone());
        self
    }

    /// The alarms say which of them was active first, until none is (FirstInGroupFlag).
    pub fn first_in_group(mut self) -> Self {
        self.spec.kind = GroupKind::FirstInGroup;
        self
    }

    /// As long as a member is active, these alarms are suppressed (SuppressedState): they follow from it.
    pub fn suppresses<'a>(mut self, alarms: impl IntoIterator<Item = &'a Alarm>) -> Self {
        self.spec.kind = GroupKind::Suppression;
        self.spec.suppresses.extend(alarms.into_iter().map(|alarm| alarm.id().clone()));
        self
    }

    /// Adds it. Returns the NodeId of the group.
    ///
    /// # Errors
    /// It has no member, or the node has a child of that name.
    pub fn add(self) -> Result<NodeId, AlarmError> {
        let Self { parent, spec } = self;
        parent.space.add_alarm_group(&spec, now())?;
        watch(&parent.space);
        Ok(spec.id)
    }
}
