//! Requests for reading and monitoring the value of a node.

use std::time::Duration;
use taktwerk_load::attribute::Attribute;
use taktwerk_schema::{MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId};
use taktwerk_types::NodeId;

/// A read of a node's value.
pub(crate) fn of(node_id: NodeId) -> ReadValueId {
    ReadValueId { node_id, attribute_id: Attribute::VALUE.id(), ..Default::default() }
}

/// An item that monitors the value of a node; a sampling interval of zero means immediately.
pub(crate) fn monitored(
    node_id: NodeId,
    client_handle: u32,
    sampling: Duration,
    queue_size: u32,
) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: of(node_id),
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle,
            sampling_interval: sampling.as_secs_f64() * 1e3,
            queue_size,
            discard_oldest: true,
            ..Default::default()
        },
    }
}
