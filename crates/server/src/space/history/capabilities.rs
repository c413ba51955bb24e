//! What HistoryServerCapabilities announce (Part 11 §5.4.4): only what at least one node can do.

use crate::history::StoreCapabilities;
use crate::history::aggregate::Aggregate;
use crate::node_ix::NodeIx;
use crate::space::error::NodeError;
use crate::space::events::HISTORY_WRITE;
use crate::space::nodes::Nodes;
use taktwerk_schema::ids::{object_ids, reference_type_ids, variable_ids as v};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// True if a Variable has a history.
const READ: [u32; 2] = [
    v::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_SERVER_TIMESTAMP_SUPPORTED,
];
/// True if clients may change the values of a Variable.
const UPDATE: [u32; 5] = [
    v::HISTORY_SERVER_CAPABILITIES_INSERT_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_REPLACE_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_UPDATE_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_DELETE_RAW_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_DELETE_AT_TIME_CAPABILITY,
];
/// True if clients may annotate the history of a Variable.
const ANNOTATE: [u32; 1] = [v::HISTORY_SERVER_CAPABILITIES_INSERT_ANNOTATION_CAPABILITY];
/// True if clients may change events.
const EVENTS: [u32; 4] = [
    v::HISTORY_SERVER_CAPABILITIES_INSERT_EVENT_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_REPLACE_EVENT_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_UPDATE_EVENT_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_DELETE_EVENT_CAPABILITY,
];

impl Nodes {
    /// Publishes the limits, and the capabilities announced so far. All others are false.
    pub(crate) fn publish_history(&mut self, values_max: u32, now: UtcTime) {
        for id in READ.into_iter().chain(UPDATE).chain(ANNOTATE) {
            let is_announced = self.is_announced(id);
            self.ns0_slot(id).set(is_announced.into(), StatusCode::GOOD, now, now);
        }
        for id in [
            v::HISTORY_SERVER_CAPABILITIES_MAX_RETURN_DATA_VALUES,
            v::HISTORY_SERVER_CAPABILITIES_MAX_RETURN_EVENT_VALUES,
        ] {
            self.ns0_slot(id).set(values_max.into(), StatusCode::GOOD, now, now);
        }
        self.publish_event_history(now);
    }

    /// A Variable has a history, which clients may change if `writable` and the store allows it.
    pub(super) fn announce_history(
        &mut self,
        writable: bool,
        store: StoreCapabilities,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        if !self.is_announced(v::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_DATA_CAPABILITY) {
            self.list_aggregates()?;
        }
        self.announce(&READ, now);
        if writable && store.update {
            self.announce(&UPDATE, now);
        }
        if writable && store.annotations {
            self.announce(&ANNOTATE, now);
        }
        Ok(())
    }

    /// Publishes the capabilities for the history of events.
    pub(super) fn publish_event_history(&mut self, now: UtcTime) {
        let is_kept = self.event_history().is_some();
        let id = v::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_EVENTS_CAPABILITY;
        self.ns0_slot(id).set(is_kept.into(), StatusCode::GOOD, now, now);
        let is_writable = self.event_history_bits() & HISTORY_WRITE != 0;
        for id in EVENTS {
            self.ns0_slot(id).set(is_writable.into(), StatusCode::GOOD, now, now);
        }
    }

    fn announce(&mut self, ids: &[u32], now: UtcTime) {
        for id in ids {
            if !self.is_announced(*id) {
                self.ns0_slot(*id).set(true.into(), StatusCode::GOOD, now, now);
            }
        }
    }

    fn is_announced(&mut self, id: u32) -> bool {
        self.ns0_slot(id).read().value() == Variant::Boolean(true)
    }

    fn list_aggregates(&mut self) -> Result<(), NodeError> {
        let folder = NodeIx::ns0(object_ids::HISTORY_SERVER_CAPABILITIES_AGGREGATE_FUNCTIONS);
        let organizes = NodeIx::ns0(reference_type_ids::ORGANIZES);
        for aggregate in Aggregate::ALL {
            let function = NodeIx::ns0(aggregate.id());
            if !self.has_reference(folder, organizes, function) {
                self.add_reference(folder, organizes, function, true)?;
            }
        }
        Ok(())
    }
}
