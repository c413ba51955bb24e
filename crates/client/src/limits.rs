//! The server's OperationLimits (Part 5 §6.3.11), published and learned.

use taktwerk_schema::ids::variable_ids as ids;
use taktwerk_types::{DataValue, Variant};

/// Services with a limited number of operations per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum OperationKind {
    /// MaxNodesPerRead.
    Read,
    /// MaxNodesPerWrite.
    Write,
    /// MaxNodesPerMethodCall.
    Call,
    /// MaxNodesPerBrowse, also for BrowseNext.
    Browse,
    /// MaxNodesPerTranslateBrowsePathsToNodeIds.
    Translate,
    /// MaxNodesPerRegisterNodes, also for UnregisterNodes.
    Register,
    /// MaxMonitoredItemsPerCall.
    MonitoredItems,
    /// MaxNodesPerNodeManagement.
    NodeManagement,
    /// MaxNodesPerHistoryReadData.
    HistoryReadData,
    /// MaxNodesPerHistoryUpdateData.
    HistoryUpdateData,
}

/// The node of each published limit.
pub(crate) const LIMIT_NODES: [(OperationKind, u32); 10] = [
    (OperationKind::Read, ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ),
    (OperationKind::Write, ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_WRITE),
    (OperationKind::Call, ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_METHOD_CALL),
    (OperationKind::Browse, ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_BROWSE),
    (
        OperationKind::Translate,
        ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_TRANSLATE_BROWSE_PATHS_TO_NODE_IDS,
    ),
    (OperationKind::Register, ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_REGISTER_NODES),
    (
        OperationKind::MonitoredItems,
        ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_MONITORED_ITEMS_PER_CALL,
    ),
    (
        OperationKind::NodeManagement,
        ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_NODE_MANAGEMENT,
    ),
    (
        OperationKind::HistoryReadData,
        ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_DATA,
    ),
    (
        OperationKind::HistoryUpdateData,
        ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_UPDATE_DATA,
    ),
];

/// Maximum number of operations per request, by service. 0 means that no limit is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationLimits {
    counts: [u32; LIMIT_NODES.len()],
}

impl OperationLimits {
    /// The limit as a number of operations; 0 (unlimited) gives the largest number.
    #[must_use]
    pub fn max(&self, kind: OperationKind) -> usize {
        match self.counts[kind as usize] {
            0 => usize::MAX,
            count => count as usize,
        }
    }

    /// Stores the published limits, in the order of [`LIMIT_NODES`]. If a node is missing, its limit stays unknown.
    pub(crate) fn take(&mut self, values: &[DataValue]) {
        for ((kind, _), value) in LIMIT_NODES.iter().zip(values) {
            if let (Some(Variant::UInt32(count)), false) = (&value.value, value.status().is_bad()) {
                self.counts[*kind as usize] = *count;
            }
        }
    }

    /// Lowers the limit after the server has refused this many operations.
    pub(crate) fn learn(&mut self, kind: OperationKind, refused: usize) {
        let limit = u32::try_from((refused / 2).max(1)).unwrap_or(u32::MAX);
        if self.max(kind) > limit as usize {
            self.counts[kind as usize] = limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_taken_by_position_and_learned_downwards() {
        let mut limits = OperationLimits::default();
        let mut values = vec![DataValue::new(100u32), DataValue::new(0u32)];
        values.push(DataValue::from_status(taktwerk_types::StatusCode::BAD_NODE_ID_UNKNOWN));
        limits.take(&values);
        assert_eq!(limits.max(OperationKind::Read), 100);
        assert_eq!(limits.max(OperationKind::Write), usize::MAX);
        assert_eq!(limits.max(OperationKind::Call), usize::MAX);
        limits.learn(OperationKind::Write, 1000);
        limits.learn(OperationKind::Read, 1000);
        assert_eq!((limits.max(OperationKind::Write), limits.max(OperationKind::Read)), (500, 100));
        limits.learn(OperationKind::Read, 1);
        assert_eq!(limits.max(OperationKind::Read), 1);
        for (at, (kind, _)) in LIMIT_NODES.iter().enumerate() {
            assert_eq!(*kind as usize, at);
        }
    }
}
