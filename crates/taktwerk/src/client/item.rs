//! Monitored items (Part 4 §5.13.2, §7.22.2).

use super::Attribute;
use super::browse::browse_path;
use core::fmt;
use core::time::Duration;
use taktwerk_client::{EventQuery, WantedItem};
use taktwerk_schema::{
    BrowsePath, DataChangeFilter, DataChangeTrigger, MonitoredItemCreateRequest, MonitoringMode,
    MonitoringParameters, ReadValueId,
};
use taktwerk_types::{ExtensionObject, NodeId};

/// Deadband in the value's unit (Part 4 §7.22.2).
const DEADBAND_ABSOLUTE: u32 = 1;
/// Deadband in percent of the EURange (Part 8 §7.2).
const DEADBAND_PERCENT: u32 = 2;

/// What to monitor, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    node: NodeId,
    browse_path: Option<BrowsePath>,
    attribute: Attribute,
    sampling_interval: f64,
    queue_size: u32,
    trigger: DataChangeTrigger,
    deadband: Option<(u32, f64)>,
    events: Option<Box<EventQuery>>,
}

impl Item {
    /// The value of a node: sampled once per publishing interval, with a queue of one value.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            browse_path: None,
            attribute: Attribute::Value,
            sampling_interval: -1.0,
            queue_size: 1,
            trigger: DataChangeTrigger::STATUS_VALUE,
            deadband: None,
            events: None,
        }
    }

    /// The value of the node at a path of BrowseNames, in the syntax of [`Client::find`](super::Client::find). The path is
    /// resolved when the item is created, and again whenever it is recreated, because the NodeId may change when the server
    /// restarts.
    #[must_use]
    pub fn at_path(start: NodeId, path: &str) -> Self {
        Self { browse_path: Some(browse_path(start, path)), ..Self::new(NodeId::NULL) }
    }

    /// The events of a node with an EventNotifier, such as the Server Object. The selected fields of events that pass the filter
    /// arrive as [`Update::Event`](super::Update::Event).
    #[must_use]
    pub fn events(node: NodeId, query: EventQuery) -> Self {
        Self {
            attribute: Attribute::EventNotifier,
            sampling_interval: 0.0,
            queue_size: 0,
            events: Some(Box::new(query)),
            ..Self::new(node)
        }
    }

    /// An attribute other than Value.
    #[must_use]
    pub fn attribute(mut self, attribute: Attribute) -> Self {
        self.attribute = attribute;
        self
    }

    /// How often the server samples the value; zero asks for every change.
    #[must_use]
    pub fn sampling(mut self, interval: Duration) -> Self {
        self.sampling_interval = interval.as_secs_f64() * 1000.0;
        self
    }

    /// How many values the server queues between two publishes. Beyond, the oldest are dropped and the next one has the Overflow
    /// bit.
    #[must_use]
    pub fn queue(mut self, size: u32) -> Self {
        self.queue_size = size;
        self
    }

    /// Reports a value also if only its source timestamp has changed.
    #[must_use]
    pub fn every_timestamp(mut self) -> Self {
        self.trigger = DataChangeTrigger::STATUS_VALUE_TIMESTAMP;
        self
    }

    /// Reports a number only if it has changed by more than this.
    #[must_use]
    pub fn deadband(mut self, distance: f64) -> Self {
        self.deadband = Some((DEADBAND_ABSOLUTE, distance));
        self
    }

    /// Reports a number only if it has changed by more than this share of its EURange, in percent.
    #[must_use]
    pub fn percent_deadband(mut self, percent: f64) -> Self {
        self.deadband = Some((DEADBAND_PERCENT, percent));
        self
    }

    pub(super) fn wanted(self, client_handle: u32) -> WantedItem {
        let needs_filter = self.deadband.is_some() || self.trigger != DataChangeTrigger::STATUS_VALUE;
        let (deadband_type, deadband_value) = self.deadband.unwrap_or_default();
        let filter = DataChangeFilter { trigger: self.trigger, deadband_type, deadband_value };
        let filter = match &self.events {
            Some(query) => ExtensionObject::new(query.event_filter()),
            None if needs_filter => ExtensionObject::new(&filter),
            None => ExtensionObject::NULL,
        };
        let request = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: self.node,
                attribute_id: self.attribute as u32,
                ..ReadValueId::default()
            },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters {
                client_handle,
                sampling_interval: self.sampling_interval,
                filter,
                queue_size: self.queue_size,
                discard_oldest: true,
            },
        };
        WantedItem { request, browse_path: self.browse_path }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(path) = &self.browse_path else { return self.node.fmt(f) };
        path.starting_node.fmt(f)?;
        path.relative_path.elements.iter().try_for_each(|element| write!(f, "/{}", element.target_name))
    }
}
