//! Which Variables have history, and what namespace 0 says about it (Part 11 §5).

use super::AddressSpace;
use super::build::{Under, add_instance};
use super::error::NodeError;
use super::nodes::Nodes;
use super::slot::Snapshot;
use super::spec::NodeSpec;
use super::store::SlotHandle;
use crate::history::aggregate::{Aggregate, Configuration};
use crate::history::{HistoryStore, NodeHistory, NodeKey, Rule};
use crate::node_ix::NodeIx;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids, variable_ids as v};
use taktwerk_schema::{AccessLevelType, NodeClass, PermissionType};
use taktwerk_types::{BuiltInType, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// Where history goes, and Variables that the recorder does not know yet.
#[derive(Debug, Default)]
pub(super) struct Registry {
    store: OnceLock<Arc<dyn HistoryStore>>,
    registrations: Mutex<Vec<Registration>>,
}

/// A Variable that is to be recorded.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) slot: SlotHandle,
    /// Its value when it was registered. From then on every write is recorded.
    pub(crate) present: Snapshot,
    pub(crate) history: Arc<NodeHistory>,
    pub(crate) rule: Rule,
}

impl AddressSpace {
    /// Sets the store of all history that names no other one. Only the first call counts.
    pub fn set_history_store(&self, store: Arc<dyn HistoryStore>) {
        // A second store would split histories.
        let _ = self.history.store.set(store);
    }

    /// The store of all history that names no other one.
    #[must_use]
    pub fn history_store(&self) -> Option<&Arc<dyn HistoryStore>> {
        self.history.store.get()
    }

    /// Records a Variable into the server's store. Clients may read its history, and change it if `writable`.
    ///
    /// Variables of floating-point types lie on lines between their values, others hold them.
    ///
    /// # Errors
    /// There is no such Variable outside the static namespace 0, or no store.
    pub fn historize(&self, id: &NodeId, writable: bool, rule: Rule, now: UtcTime) -> Result<(), NodeError> {
        let store = self.history_store().ok_or(NodeError::NoHistoryStore)?;
        let mut history = NodeHistory::new(Arc::clone(store), self.node_key(id));
        history.stepped = !self.declared_shape(id).is_some_and(|(shape, kind)| {
            shape.value_rank == -1 && matches!(kind, BuiltInType::Float | BuiltInType::Double)
        });
        self.set_history(id, history, writable, true, now)?;
        let (slot, history) = {
            let nodes = self.read();
            let ix = nodes.find(id)?;
            (nodes.slot_handle(ix), nodes.history(ix).map(Arc::clone))
        };
        if let (Some(slot), Some(history), Some(recorder)) = (slot, history, self.slots().recorder()) {
            let mut registrations = self.history.registrations.lock().unwrap_or_else(PoisonError::into_inner);
            let present = slot.set_recorded(recorder, true);
            registrations.push(Registration { slot, present, history, rule });
        }
        Ok(())
    }

    /// Records all Variables below a node that have values of their own; gives their number. Properties are left out.
    ///
    /// # Errors
    /// There is no such node, or no store.
    pub fn historize_below(
        &self,
        root: &NodeId,
        writable: bool,
        rule: Rule,
        now: UtcTime,
    ) -> Result<usize, NodeError> {
        let found = self.variables_below(root)?;
        for id in &found {
            self.historize(id, writable, rule, now)?;
        }
        Ok(found.len())
    }

    /// The Variables that hierarchical references lead to, properties left out, in the order of their ids.
    ///
    /// # Errors
    /// There is no such node.
    pub fn variables_below(&self, root: &NodeId) -> Result<Vec<NodeId>, NodeError> {
        let nodes = self.read();
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let property = NodeIx::ns0(reference_type_ids::HAS_PROPERTY);
        let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![nodes.find(root)?], Vec::new());
        while let Some(ix) = open.pop() {
            if !seen.insert(ix) {
                continue;
            }
            let is_variable = nodes.view(ix).is_some_and(|view| view.class() == NodeClass::VARIABLE);
            if is_variable && nodes.dynamic(ix).is_some() {
                found.push(nodes.id_of(ix));
            }
            nodes.references(ix, |reference| {
                if reference.is_forward
                    && nodes.is_subtype(reference.reference_type, hierarchical)
                    && !nodes.is_subtype(reference.reference_type, property)
                {
                    open.push(reference.target);
                }
                true
            });
        }
        found.sort();
        Ok(found)
    }

    pub(crate) fn take_registrations(&self) -> Vec<Registration> {
        let mut registrations = self.history.registrations.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut *registrations)
    }

    /// The name of a node in stores of history: its NodeId with the namespace's URI.
    #[must_use]
    pub fn node_key(&self, id: &NodeId) -> NodeKey {
        let nodes = self.read();
        let identifier = NodeId { namespace_index: 0, identifier: id.identifier.clone() };
        match nodes.namespaces().get(usize::from(id.namespace_index)).filter(|_| id.namespace_index != 0) {
            Some(uri) => format!("nsu={};{identifier}", escape(uri)).into(),
            None => identifier.to_string().into(),
        }
    }

    /// Gives a Variable a history. Clients may read it, and change it if `writable`; `historizing` says whether the server
    /// records it. The Variable gets a reference to the "HA Configuration" of its kind (Part 11 §5.2.2).
    ///
    /// # Errors
    /// There is no such Variable outside the static namespace 0.
    pub fn set_history(
        &self,
        id: &NodeId,
        history: NodeHistory,
        writable: bool,
        historizing: bool,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let (stepped, aggregates) = (history.stepped, history.aggregates);
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        let variable = nodes.variable_mut(ix).ok_or_else(|| NodeError::Unknown(id.clone()))?;
        variable.access_level |= AccessLevelType::HISTORY_READ.0;
        if writable {
            variable.access_level |= AccessLevelType::HISTORY_WRITE.0;
        } else {
            variable.access_level &= !AccessLevelType::HISTORY_WRITE.0;
        }
        if let Some(extra) = nodes.variable_extra_mut(ix) {
            extra.history = Some(Arc::new(history));
            extra.historizing = historizing;
        }
        let configuration = configuration(&mut nodes, stepped, aggregates, now)?;
        let kind = NodeIx::ns0(reference_type_ids::HAS_HISTORICAL_CONFIGURATION);
        if nodes.forward_target(ix, reference_type_ids::HAS_HISTORICAL_CONFIGURATION).is_none() {
            // Without the way back: one configuration serves many Variables.
            nodes.add_reference(ix, kind, configuration, false)?;
        }
        nodes.history_begins(now)
    }

    /// Keeps all events in the server's store. Clients may read those of every Object with an EventNotifier, and change
    /// them if `writable`.
    ///
    /// The specification lets only administrators read the history of the Server Object. Here those may read it who may
    /// receive its events; of each event, permissions are asked as when it was raised.
    ///
    /// # Errors
    /// There is no store.
    pub fn historize_events(&self, writable: bool, now: UtcTime) -> Result<(), NodeError> {
        let store = self.history_store().ok_or(NodeError::NoHistoryStore)?;
        let server = NodeId::numeric(0, object_ids::SERVER);
        let history = NodeHistory::new(Arc::clone(store), self.node_key(&server));
        let mut nodes = self.write();
        let is_first = nodes.event_history().is_none();
        nodes.set_event_history(history, writable);
        nodes.publish_event_history(writable, now);
        nodes.let_receivers_read_history(NodeIx::ns0(object_ids::SERVER))?;
        drop(nodes);
        if let Some(recorder) = self.slots().recorder().filter(|_| is_first) {
            self.events().watch(recorder, NodeIx::ns0(object_ids::SERVER));
        }
        Ok(())
    }

    /// Whether a Variable has a history.
    #[must_use]
    pub fn has_history(&self, id: &NodeId) -> bool {
        let nodes = self.read();
        nodes.resolve(id.as_ref()).is_some_and(|ix| nodes.history(ix).is_some())
    }
}

/// A URI as it stands before `;`.
fn escape(uri: &str) -> String {
    uri.replace('%', "%25").replace(';', "%3B")
}

/// The HA Configuration that all Variables of a kind share.
fn configuration(
    nodes: &mut Nodes,
    stepped: bool,
    aggregates: Configuration,
    now: UtcTime,
) -> Result<NodeIx, NodeError> {
    let Configuration {
        treat_uncertain_as_bad,
        percent_data_bad,
        percent_data_good,
        use_sloped_extrapolation,
    } = aggregates;
    let name = format!(
        "HA Configuration/{stepped}/{treat_uncertain_as_bad}/{percent_data_bad}/{percent_data_good}/{use_sloped_extrapolation}"
    );
    let id = NodeId::string(1, name.as_str());
    if let Some(ix) = nodes.resolve(id.as_ref()) {
        return Ok(ix);
    }
    let spec = NodeSpec::object(id.clone(), QualifiedName::new(0, "HA Configuration"));
    let under = Under {
        parent: &object_ids::HISTORY_SERVER_CAPABILITIES.into(),
        reference_type: &reference_type_ids::HAS_COMPONENT.into(),
        type_definition: Some(&object_type_ids::HISTORICAL_DATA_CONFIGURATION_TYPE.into()),
    };
    let values: [(&str, Variant); 5] = [
        ("Stepped", stepped.into()),
        ("AggregateConfiguration/TreatUncertainAsBad", treat_uncertain_as_bad.into()),
        ("AggregateConfiguration/PercentDataBad", percent_data_bad.into()),
        ("AggregateConfiguration/PercentDataGood", percent_data_good.into()),
        ("AggregateConfiguration/UseSlopedExtrapolation", use_sloped_extrapolation.into()),
    ];
    for (path, _, ix) in add_instance(nodes, spec, under, &[], None, now)? {
        let value = values.iter().find(|(name, _)| *name == path);
        if let (Some((_, value)), Some(slot)) = (value, nodes.slot_handle(ix)) {
            slot.set(value.clone(), StatusCode::GOOD, now, now);
        }
    }
    nodes.find(&id)
}

impl Nodes {
    /// Says what the services can do with history (Part 11 §5.4.2). Values of namespace 0 that are not true are false.
    pub(crate) fn publish_history(&mut self, has_history: bool, values_max: u32, now: UtcTime) {
        let data = [
            v::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_DATA_CAPABILITY,
            v::HISTORY_SERVER_CAPABILITIES_INSERT_DATA_CAPABILITY,
            v::HISTORY_SERVER_CAPABILITIES_REPLACE_DATA_CAPABILITY,
            v::HISTORY_SERVER_CAPABILITIES_UPDATE_DATA_CAPABILITY,
            v::HISTORY_SERVER_CAPABILITIES_DELETE_RAW_CAPABILITY,
            v::HISTORY_SERVER_CAPABILITIES_DELETE_AT_TIME_CAPABILITY,
            v::HISTORY_SERVER_CAPABILITIES_INSERT_ANNOTATION_CAPABILITY,
            v::HISTORY_SERVER_CAPABILITIES_SERVER_TIMESTAMP_SUPPORTED,
        ];
        let data = data.into_iter().map(|id| (id, Variant::from(has_history)));
        let most = [
            (v::HISTORY_SERVER_CAPABILITIES_MAX_RETURN_DATA_VALUES, values_max.into()),
            (v::HISTORY_SERVER_CAPABILITIES_MAX_RETURN_EVENT_VALUES, values_max.into()),
        ];
        for (id, value) in data.chain(most) {
            self.ns0_slot(id).set(value, StatusCode::GOOD, now, now);
        }
        let bits = self.event_history_bits();
        self.publish_event_history(bits & super::events::HISTORY_WRITE != 0, now);
    }

    /// Gives ReadHistory to all who have ReceiveEvents on a node.
    fn let_receivers_read_history(&mut self, ix: NodeIx) -> Result<(), NodeError> {
        let Some(mut access) = self.access().own(self.access_set(ix)).cloned() else { return Ok(()) };
        let Some(roles) = &mut access.role_permissions else { return Ok(()) };
        for (_, permissions) in roles {
            if permissions.contains(PermissionType::RECEIVE_EVENTS) {
                *permissions |= PermissionType::READ_HISTORY;
            }
        }
        self.set_access(ix, access)
    }

    /// Says what the services can do with the history of events.
    fn publish_event_history(&mut self, writable: bool, now: UtcTime) {
        let is_kept = self.event_history().is_some();
        for (id, value) in [
            (v::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_EVENTS_CAPABILITY, is_kept),
            (v::HISTORY_SERVER_CAPABILITIES_INSERT_EVENT_CAPABILITY, writable),
            (v::HISTORY_SERVER_CAPABILITIES_REPLACE_EVENT_CAPABILITY, writable),
            (v::HISTORY_SERVER_CAPABILITIES_UPDATE_EVENT_CAPABILITY, writable),
            (v::HISTORY_SERVER_CAPABILITIES_DELETE_EVENT_CAPABILITY, writable),
        ] {
            self.ns0_slot(id).set(value.into(), StatusCode::GOOD, now, now);
        }
    }

    /// The first Variable with a history: the capabilities become true, and the aggregates are listed.
    fn history_begins(&mut self, now: UtcTime) -> Result<(), NodeError> {
        let folder = NodeIx::ns0(object_ids::HISTORY_SERVER_CAPABILITIES_AGGREGATE_FUNCTIONS);
        let organizes = NodeIx::ns0(reference_type_ids::ORGANIZES);
        if self.has_history() {
            return Ok(());
        }
        for aggregate in Aggregate::ALL {
            let function = NodeIx::ns0(aggregate.id());
            if !self.has_reference(folder, organizes, function) {
                self.add_reference(folder, organizes, function, true)?;
            }
        }
        let max = self.ns0_slot(v::HISTORY_SERVER_CAPABILITIES_MAX_RETURN_DATA_VALUES).read().value();
        let max = if let Variant::UInt32(max) = max { max } else { 0 };
        self.publish_history(true, max, now);
        Ok(())
    }

    /// Whether a Variable has a history.
    pub(crate) fn has_history(&mut self) -> bool {
        let flag = self.ns0_slot(v::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_DATA_CAPABILITY);
        flag.read().value() == Variant::Boolean(true)
    }
}
