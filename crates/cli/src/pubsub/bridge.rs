//! Values of a server, subscribed to and published.

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
/// How long the first values may take.
const FIRST: Duration = Duration::from_secs(10);

/// The current values, as server and publisher share them.
pub(super) type Values = Arc<Mutex<Vec<DataValue>>>;

/// A subscription to a server.
pub(super) struct Bridge {
    session: Session,
    /// What is watched.
    pub(super) nodes: Vec<NodeId>,
    /// What it has now.
    pub(super) values: Values,
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
        let mut session = Session::connect(&connection)?;
        let nodes = resolve::all(&mut session, specs)?;
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
        let waiting = DataValue::from_status(StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        let values = Arc::new(Mutex::new(vec![waiting; nodes.len()]));
        let mut bridge = Self { session, nodes, values };
        let end = monotonic() + FIRST;
        while monotonic() < end && !interrupt.asked() && bridge.is_waiting() {
            bridge.turn(Duration::from_millis(100))?;
        }
        Ok(bridge)
    }

    fn is_waiting(&self) -> bool {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.iter().any(|value| value.status() == StatusCode::BAD_WAITING_FOR_INITIAL_DATA)
    }

    /// Takes what the server sends for at most so long.
    pub(super) fn turn(&mut self, span: Duration) -> Result<(), Failure> {
        match self.session.client().wait(monotonic() + span) {
            Some(Delivery::DataChanges { values, .. }) => {
                let mut shared = self.values.lock().unwrap_or_else(PoisonError::into_inner);
                for (handle, value) in values {
                    if let Some(slot) = shared.get_mut(handle as usize) {
                        *slot = value;
                    }
                }
            }
            Some(Delivery::Event(Event::Subscription(_, event))) => match event {
                SubscriptionEvent::Items(results) => {
                    if let Some(bad) = results.iter().find(|result| result.status.is_bad()) {
                        let node = self.nodes.get(bad.client_handle as usize);
                        let node = node.map_or_else(String::new, ToString::to_string);
                        return Err(Failure::BadStatus(format!("{node}: {}", bad.status)));
                    }
                }
                SubscriptionEvent::CreateFailed(error) => return Err(session::failure(&error)),
                SubscriptionEvent::Ended(status) => {
                    return Err(Failure::BadStatus(format!("the server ended the subscription: {status}")));
                }
                _ => {}
            },
            Some(Delivery::Event(Event::Disconnected(error))) => {
                let reason = error.map_or_else(|| "disconnected".to_owned(), |error| error.to_string());
                return Err(Failure::Connect(reason));
            }
            _ => {}
        }
        Ok(())
    }

    /// Says goodbye to the server.
    pub(super) fn close(self) {
        self.session.close();
    }
}

/// Says that the values are not current any more.
pub(super) fn lost(values: &Values) {
    let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
    for value in values.iter_mut() {
        value.status = Some(StatusCode::UNCERTAIN_NO_COMMUNICATION_LAST_USABLE_VALUE);
    }
}

/// Copies what is there into the fields; if the server's side is just writing, the fields keep what they have.
pub(super) fn copy(values: &Values, first: usize, fields: &mut [DataValue]) {
    let Ok(values) = values.try_lock() else { return };
    for (field, value) in fields.iter_mut().zip(values.iter().skip(first)) {
        field.clone_from(value);
    }
}
