//! Subscribes to values of a server for publishing.

use crate::connection::{ConnectionArgs, SecurityArgs};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::node::NodeSpec;
use crate::resolve;
use crate::session::{self, Session};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use taktwerk_client::{Delivery, Event, SubscriptionEvent, SubscriptionParams};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::{MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId};
use taktwerk_types::{DataValue, NodeId, StatusCode};

/// The Value attribute.
const VALUE: u32 = 13;
/// Timeout for the first values.
const FIRST: Duration = Duration::from_secs(10);

/// The current values, shared by the subscription and the publisher.
pub(super) type Values = Arc<Mutex<Current>>;

/// The current values of the server.
#[derive(Debug)]
pub(super) struct Current {
    /// One value per node.
    pub(super) values: Vec<DataValue>,
    /// The server does not respond: these are its last values.
    is_lost: bool,
}

impl Current {
    fn new(count: usize) -> Self {
        let waiting = DataValue::from_status(StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        Self { values: vec![waiting; count], is_lost: false }
    }

    /// The subscription was created again: values are old until the server has sent them again.
    fn reset(&mut self) {
        self.is_lost = false;
        self.values.iter_mut().for_each(age);
    }

    fn set(&mut self, handle: u32, value: DataValue) {
        if let Some(slot) = self.values.get_mut(handle as usize) {
            *slot = value;
        }
    }

    /// Copies values into fields, with their quality.
    fn copy(&self, first: usize, fields: &mut [DataValue]) {
        for (field, value) in fields.iter_mut().zip(self.values.iter().skip(first)) {
            field.clone_from(value);
            if self.is_lost {
                age(field);
            }
        }
    }
}

/// Marks a value as possibly outdated. A Bad status is kept.
fn age(value: &mut DataValue) {
    if !value.status().is_bad() {
        value.status = Some(StatusCode::UNCERTAIN_NO_COMMUNICATION_LAST_USABLE_VALUE);
    }
}

fn lock(values: &Values) -> std::sync::MutexGuard<'_, Current> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A subscription to a server.
pub(super) struct Bridge {
    session: Session,
    /// The monitored nodes.
    pub(super) nodes: Vec<NodeId>,
    /// The current values.
    pub(super) values: Values,
    /// Set when all first values have arrived. Later errors of items do not end the bridge.
    is_open: bool,
}

impl Bridge {
    /// Connects, subscribes, and waits for a first value of each node.
    pub(super) fn open(
        endpoint: &Endpoint,
        security: &SecurityArgs,
        specs: &[NodeSpec],
        interval: Duration,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let connection = ConnectionArgs { endpoint: endpoint.clone(), security: security.clone() };
        let mut session = Session::connect_for_good(&connection)?;
        let resolve::WithValues { ids: nodes, skipped } = resolve::with_values(&mut session, specs)?;
        if skipped > 0 {
            let nodes =
                if skipped == 1 { "node that is not a Variable" } else { "nodes that are not Variables" };
            tell!("skipped {skipped} {nodes}");
        }
        let millis = interval.as_secs_f64() * 1e3;
        let params = SubscriptionParams { publishing_interval_ms: millis, ..SubscriptionParams::default() };
        let items = (0u32..).zip(&nodes).map(|(client_handle, node)| MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId { node_id: node.clone(), attribute_id: VALUE, ..Default::default() },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters {
                client_handle,
                sampling_interval: millis,
                queue_size: 1,
                discard_oldest: true,
                ..Default::default()
            },
        });
        let items: Vec<_> = items.collect();
        let core = session.client().core();
        let handle = core.create_subscription(params, monotonic());
        core.add_items(handle, items, monotonic()).map_err(|error| Failure::Usage(error.to_string()))?;
        let values = Arc::new(Mutex::new(Current::new(nodes.len())));
        let mut bridge = Self { session, nodes, values, is_open: false };
        let end = monotonic() + FIRST;
        while monotonic() < end && !interrupt.asked() && bridge.is_waiting() {
            bridge.turn(Duration::from_millis(100))?;
        }
        bridge.is_open = true;
        Ok(bridge)
    }

    fn is_waiting(&self) -> bool {
        let held = lock(&self.values);
        held.values.iter().any(|value| value.status() == StatusCode::BAD_WAITING_FOR_INITIAL_DATA)
    }

    /// Processes messages of the server for at most `span`. If the server is down, its last values stay, with the
    /// status Uncertain.
    pub(super) fn turn(&mut self, span: Duration) -> Result<(), Failure> {
        match self.session.client().wait(monotonic() + span) {
            Some(Delivery::DataChanges { values, .. }) => {
                let mut held = lock(&self.values);
                values.into_iter().for_each(|(handle, value)| held.set(handle, value));
            }
            Some(Delivery::Event(Event::Subscription(_, event))) => return self.subscription(event),
            Some(Delivery::Event(Event::ConnectionLost { error, .. })) => {
                lock(&self.values).is_lost = true;
                tracing::warn!(%error, "connection to the server lost; its last values are published as Uncertain");
            }
            Some(Delivery::Event(Event::Restored(..))) => tracing::warn!("reconnected to the server"),
            Some(Delivery::Event(Event::Disconnected(error))) => {
                let reason = error.map_or_else(|| "disconnected".to_owned(), |error| error.to_string());
                return Err(Failure::Connect(reason));
            }
            _ => {}
        }
        Ok(())
    }

    fn subscription(&mut self, event: SubscriptionEvent) -> Result<(), Failure> {
        match event {
            SubscriptionEvent::Items(results) => {
                for bad in results.iter().filter(|result| result.status.is_bad()) {
                    let id = self.nodes.get(bad.client_handle as usize);
                    let node = id.map_or_else(String::new, ToString::to_string);
                    if !self.is_open {
                        let why = bad.status.description().unwrap_or_default();
                        let advice = id.map_or_else(String::new, |id| session::advice(id, bad.status));
                        return Err(Failure::BadStatus(format!("{node}: {}: {why}{advice}", bad.status)));
                    }
                    // After a restart of the server, a node may be missing. The other nodes continue.
                    tracing::warn!(node, status = %bad.status, "the server no longer has this node");
                    lock(&self.values).set(bad.client_handle, DataValue::from_status(bad.status));
                }
            }
            SubscriptionEvent::Inactive => lock(&self.values).is_lost = true,
            SubscriptionEvent::Active | SubscriptionEvent::Kept | SubscriptionEvent::Transferred => {
                lock(&self.values).is_lost = false;
            }
            SubscriptionEvent::Recreating(_) => lock(&self.values).reset(),
            SubscriptionEvent::CreateFailed(error) => return Err(session::failure(&error)),
            SubscriptionEvent::Ended(status) => {
                return Err(Failure::BadStatus(format!("the server ended the subscription: {status}")));
            }
            _ => {}
        }
        Ok(())
    }

    /// Closes the session.
    pub(super) fn close(self) {
        self.session.close();
    }
}

/// Marks the values as outdated.
pub(super) fn lost(values: &Values) {
    lock(values).is_lost = true;
}

/// Copies values into the fields. If the lock is taken, the fields keep their values.
pub(super) fn copy(values: &Values, first: usize, fields: &mut [DataValue]) {
    if let Ok(held) = values.try_lock() {
        held.copy(first, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_uncertain_while_the_server_is_down() {
        let mut held = Current::new(3);
        held.set(0, DataValue::new(1));
        held.set(1, DataValue::from_status(StatusCode::BAD_SENSOR_FAILURE));
        held.set(9, DataValue::new(9));
        let statuses = |held: &Current| {
            let mut fields = vec![DataValue::default(); 3];
            held.copy(0, &mut fields);
            fields.iter().map(DataValue::status).collect::<Vec<_>>()
        };
        let waiting = StatusCode::BAD_WAITING_FOR_INITIAL_DATA;
        let last = StatusCode::UNCERTAIN_NO_COMMUNICATION_LAST_USABLE_VALUE;
        let broken = StatusCode::BAD_SENSOR_FAILURE;
        assert_eq!(statuses(&held), [StatusCode::GOOD, broken, waiting]);
        held.is_lost = true;
        assert_eq!(statuses(&held), [last, broken, waiting]);
        // The subscription was kept: unchanged values are current again.
        held.is_lost = false;
        assert_eq!(statuses(&held), [StatusCode::GOOD, broken, waiting]);
        // The subscription was created again: values are old until they arrive again.
        held.reset();
        held.set(1, DataValue::new(2));
        assert_eq!(statuses(&held), [last, StatusCode::GOOD, waiting]);
    }
}
