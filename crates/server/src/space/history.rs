//! Variables with history (Part 11 §5).
//!
//! - `annotations`: their Annotations Properties; `capabilities`: what HistoryServerCapabilities announce;
//! - `configuration`: HistoricalDataConfiguration and HistoricalEventConfiguration.

mod annotations;
mod capabilities;
mod configuration;

use super::AddressSpace;
use super::error::NodeError;
use super::node::NodeKind;
use super::nodes::{Nodes, ValueAt};
use crate::history::{HistoryStore, NodeHistory, NodeKey, Rule};
use crate::node_ix::NodeIx;
use crate::source::Sampled;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{AccessLevelType, PermissionType};
use taktwerk_slots::{SlotHandle, Snapshot};
use taktwerk_types::{BuiltInType, NodeId, StatusCode, UtcTime, Variant};

/// The history store, and what the recorder must still be told.
#[derive(Debug, Default)]
pub(super) struct Registry {
    store: OnceLock<Arc<dyn HistoryStore>>,
    orders: Mutex<Vec<RecorderOrder>>,
}

/// What the recorder is told.
#[derive(Debug)]
pub(crate) enum RecorderOrder {
    /// Record a Variable, by another rule if it is recorded already.
    Record(Registration),
    /// Stop recording the Variable of a slot.
    Stop(u32),
}

/// A Variable to be recorded.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) slot: SlotHandle,
    /// Its value at registration. Every later write is recorded.
    pub(crate) present: Snapshot,
    /// Since when it is recorded. `None`: it has a source, and only its samples count.
    pub(crate) since: Option<UtcTime>,
    pub(crate) history: Arc<NodeHistory>,
    pub(crate) rule: Rule,
}

/// The history of a Variable that was deleted, or is recorded by another rule for the time being.
#[derive(Debug)]
pub(super) struct KeptHistory {
    history: Arc<NodeHistory>,
    writable: bool,
    historizing: bool,
    /// Whether it is recorded by the rule of a subtree.
    is_ruled: bool,
}

impl AddressSpace {
    /// Sets the default history store. Only the first call counts.
    pub fn set_history_store(&self, store: Arc<dyn HistoryStore>) {
        // A second store would split histories.
        let _ = self.history.store.set(store);
    }

    /// The default history store.
    #[must_use]
    pub fn history_store(&self) -> Option<&Arc<dyn HistoryStore>> {
        self.history.store.get()
    }

    /// Records a Variable in the default store. Clients may read its history, and change it if `writable`.
    ///
    /// Values of floating-point types are interpolated on lines, other values are stepped.
    ///
    /// # Errors
    /// The Variable does not exist outside the static namespace 0, or there is no store.
    pub fn historize(&self, id: &NodeId, writable: bool, rule: Rule, now: UtcTime) -> Result<(), NodeError> {
        self.write().no_longer_ruled(id);
        self.historize_by_rule(id, writable, rule, now)
    }

    /// [`Self::historize`] for a Variable of a recorded subtree.
    pub(super) fn historize_by_rule(
        &self,
        id: &NodeId,
        writable: bool,
        rule: Rule,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let store = self.history_store().ok_or(NodeError::NoHistoryStore)?;
        let mut history = NodeHistory::new(Arc::clone(store), self.node_key(id));
        history.stepped = !self.declared_shape(id).is_some_and(|(shape, kind)| {
            shape.value_rank == -1 && matches!(kind, BuiltInType::Float | BuiltInType::Double)
        });
        history.rule = rule;
        self.record(id, history, writable, now)
    }

    /// Records a Variable in the store of `history`, by its rule.
    fn record(
        &self,
        id: &NodeId,
        history: NodeHistory,
        writable: bool,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let rule = history.rule;
        self.set_history(id, history, writable, true, now)?;
        let (slot, history, since) = {
            let nodes = self.read();
            let ix = nodes.find(id)?;
            let is_sampled = matches!(nodes.value_at(ix), ValueAt::Source(..));
            (nodes.slot_handle(ix), nodes.history(ix).map(Arc::clone), (!is_sampled).then_some(now))
        };
        if let (Some(slot), Some(history), Some(recorder)) = (slot, history, self.slots().recorder()) {
            let mut orders = self.history.lock();
            let present = slot.set_recorded(recorder, true);
            orders.push(RecorderOrder::Record(Registration { slot, present, since, history, rule }));
        }
        self.sample_recorded(id);
        Ok(())
    }

    /// Stops recording a Variable. Its history stays, and clients can still read it; it ends with Bad_DataLost (Part 11
    /// §6.3). [`Self::historize`] continues it.
    ///
    /// # Errors
    /// The Variable does not exist outside the static namespace 0.
    pub fn stop_recording(&self, id: &NodeId) -> Result<(), NodeError> {
        let slot = {
            let mut nodes = self.write();
            let ix = nodes.find(id)?;
            nodes.variable_mut(ix).ok_or_else(|| NodeError::Unknown(id.clone()))?;
            if let Some(extra) = nodes.variable_extra_mut(ix) {
                extra.historizing = false;
            }
            nodes.slot_handle(ix)
        };
        if let (Some(slot), Some(_)) = (slot, self.slots().recorder()) {
            self.sources().stop_sampling(slot.index());
            self.history.lock().push(RecorderOrder::Stop(slot.index()));
        }
        Ok(())
    }

    /// Reads the source of a recorded Variable at the interval of its rule, or at its MinimumSamplingInterval. Otherwise the
    /// history would only have what clients ask for.
    pub(super) fn sample_recorded(&self, id: &NodeId) {
        if self.slots().recorder().is_none() {
            return;
        }
        let nodes = self.read();
        let Some(ix) = nodes.resolve(id.as_ref()) else { return };
        let is_recorded =
            nodes.dynamic(ix).and_then(|node| node.variable_extra()).is_some_and(|extra| extra.historizing);
        let (Some(history), Some(slot), ValueAt::Source(source, _), true) =
            (nodes.history(ix), nodes.slot_handle(ix), nodes.value_at(ix), is_recorded)
        else {
            return;
        };
        let minimum = nodes.view(ix).map_or(0.0, |view| view.minimum_sampling_interval());
        let minimum = Duration::try_from_secs_f64(minimum / 1e3).unwrap_or_default();
        let interval = if history.rule.interval.is_zero() { minimum } else { history.rule.interval };
        // Samples do not arrive at exactly equal distances: without a tolerance, the rule would skip some of them.
        let rule = Rule { interval: history.rule.interval / 4 * 3, ..history.rule };
        let (present, history) = (slot.read(), Arc::clone(history));
        let registration = Registration { slot: slot.clone(), present, since: None, history, rule };
        self.history.lock().push(RecorderOrder::Record(registration));
        let source = Arc::clone(source);
        // The source is application code: it must not run while the address space is locked.
        drop(nodes);
        self.sources().sample(source, Box::new(slot), interval);
    }

    /// Gives a Variable that was deleted and added again the history that it had, unless it has one.
    pub(super) fn restore_history(&self, id: &NodeId, before: KeptHistory, now: UtcTime) {
        if self.has_history(id) {
            return;
        }
        if before.is_ruled {
            self.write().ruled_again(id);
        }
        self.set_kept_history(id, before, now);
    }

    /// Gives a Variable a history that it had before.
    pub(super) fn set_kept_history(&self, id: &NodeId, before: KeptHistory, now: UtcTime) {
        let KeptHistory { history, writable, historizing, .. } = before;
        let history = NodeHistory::clone(&history);
        // The only possible error is that the node no longer exists, or is no longer a Variable.
        let _ = if historizing {
            self.record(id, history, writable, now)
        } else {
            self.set_history(id, history, writable, false, now)
        };
    }

    pub(crate) fn take_orders(&self) -> Vec<RecorderOrder> {
        core::mem::take(&mut *self.history.lock())
    }

    /// Ends the recording of a slot with `end`, unless the slot is to be recorded again.
    pub(crate) fn end_recording(&self, slot: u32, end: impl FnOnce()) -> bool {
        let orders = self.history.lock();
        let is_it =
            |order: &RecorderOrder| matches!(order, RecorderOrder::Record(one) if one.slot.index() == slot);
        let is_over = !orders.iter().any(is_it);
        if is_over {
            end();
        }
        is_over
    }

    /// The name of a node in history stores: its NodeId with the namespace URI.
    #[must_use]
    pub fn node_key(&self, id: &NodeId) -> NodeKey {
        let nodes = self.read();
        let identifier = NodeId { namespace_index: 0, identifier: id.identifier.clone() };
        match nodes.namespaces().get(usize::from(id.namespace_index)).filter(|_| id.namespace_index != 0) {
            Some(uri) => format!("nsu={};{identifier}", escape(uri)).into(),
            None => identifier.to_string().into(),
        }
    }

    /// Sets the history of a Variable. Clients may read it, and change it if `writable` and the store can be changed;
    /// `historizing` tells whether the server records it. The Variable gets a reference to the "HA Configuration" of its
    /// kind (Part 11 §5.2.2), and the Annotations Property if clients may annotate its history (§5.1.2).
    ///
    /// # Errors
    /// The Variable does not exist outside the static namespace 0.
    pub fn set_history(
        &self,
        id: &NodeId,
        history: NodeHistory,
        writable: bool,
        historizing: bool,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let capabilities = history.store.capabilities();
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        let variable = nodes.variable_mut(ix).ok_or_else(|| NodeError::Unknown(id.clone()))?;
        variable.access_level |= AccessLevelType::HISTORY_READ.0;
        if writable && capabilities.update {
            variable.access_level |= AccessLevelType::HISTORY_WRITE.0;
        } else {
            variable.access_level &= !AccessLevelType::HISTORY_WRITE.0;
        }
        nodes.set_configuration(ix, &history, now)?;
        nodes.set_annotations(ix, &history, writable && capabilities.annotations, now)?;
        if let Some(extra) = nodes.variable_extra_mut(ix) {
            extra.history = Some(Arc::new(history));
            extra.historizing = historizing;
        }
        nodes.announce_history(writable, capabilities, now)?;
        drop(nodes);
        self.raise_noted_changes(now);
        Ok(())
    }

    /// Records all events in the default store. Clients may read those of every Object with an EventNotifier, and
    /// change them if `writable` and the store allows it.
    ///
    /// The specification allows only administrators to read the history of the Server Object. In this server all
    /// receivers of its events may read it; for each event, permissions are checked as when it was raised.
    ///
    /// # Errors
    /// There is no store.
    pub fn historize_events(&self, writable: bool, now: UtcTime) -> Result<(), NodeError> {
        let store = self.history_store().ok_or(NodeError::NoHistoryStore)?;
        let server = NodeId::numeric(0, object_ids::SERVER);
        let history = NodeHistory::new(Arc::clone(store), self.node_key(&server));
        let mut nodes = self.write();
        let is_first = nodes.event_history().is_none();
        let writable = writable && history.store.capabilities().events;
        nodes.describe_event_history(now)?;
        nodes.set_event_history(history, writable);
        nodes.publish_event_history(now);
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

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Vec<RecorderOrder>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptHistory {
    /// Whether the server recorded it.
    pub(super) fn is_recorded(&self) -> bool {
        self.historizing
    }
}

impl Sampled for SlotHandle {
    fn index(&self) -> u32 {
        Self::index(self)
    }

    fn is_gone(&self) -> bool {
        self.is_closed()
    }

    fn write(&self) -> u32 {
        self.read().write
    }

    fn set_since(&self, write: u32, value: Variant, status: StatusCode, times: (UtcTime, UtcTime)) {
        Self::set_since(self, write, value, status, times);
    }
}

/// A URI in the form before `;`.
fn escape(uri: &str) -> String {
    uri.replace('%', "%25").replace(';', "%3B")
}

impl Nodes {
    /// The history of a Variable that will be deleted and added again.
    pub(super) fn kept_history(&self, ix: NodeIx) -> Option<KeptHistory> {
        let NodeKind::Variable(variable) = &self.dynamic(ix)?.kind else { return None };
        let writable = variable.access_level & AccessLevelType::HISTORY_WRITE.0 != 0;
        // The history of an Annotations Property comes back with its Variable's.
        let history = self.history(ix).filter(|history| history.annotates.is_none())?;
        let history = Arc::clone(history);
        let historizing = self.dynamic(ix)?.variable_extra().is_some_and(|extra| extra.historizing);
        Some(KeptHistory { history, writable, historizing, is_ruled: self.is_ruled(ix) })
    }

    /// Grants ReadHistory to all roles with ReceiveEvents on a node.
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
}
