//! A subscription to the events of one node, for the commands that show them.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::session::{self, Session};
use std::collections::VecDeque;
use std::time::Duration;
use taktwerk_client::{
    Delivery, Event, EventQuery, SubscriptionEvent, SubscriptionHandle, SubscriptionParams,
};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::{MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId};
use taktwerk_types::{ExtensionObject, Instant, NodeId, Variant};

/// How often interruption is looked for.
const LOOK: Duration = Duration::from_millis(200);
/// The attribute that events are monitored with.
const EVENT_NOTIFIER: u32 = 12;

/// Events that come from one monitored item.
pub(crate) struct EventStream {
    waiting: VecDeque<Vec<Variant>>,
    handle: SubscriptionHandle,
    is_open: bool,
}

/// What came.
pub(crate) enum Next {
    /// The selected fields of an event.
    Event(Vec<Variant>),
    /// The time is over, or the user has ended the command.
    End,
}

impl EventStream {
    /// Subscribes and waits until the server has accepted the item.
    pub(crate) fn open(
        session: &mut Session,
        node: &NodeId,
        query: &EventQuery,
        interval: Duration,
        queue: u32,
    ) -> Result<Self, Failure> {
        let params = SubscriptionParams {
            publishing_interval_ms: interval.as_secs_f64() * 1e3,
            ..SubscriptionParams::default()
        };
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: node.clone(),
                attribute_id: EVENT_NOTIFIER,
                ..Default::default()
            },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters {
                client_handle: 0,
                sampling_interval: 0.0,
                filter: ExtensionObject::new(query.event_filter()),
                queue_size: queue,
                discard_oldest: true,
            },
        };
        let core = session.client().core();
        let handle = core.create_subscription(params, monotonic());
        core.add_items(handle, vec![item], monotonic()).map_err(|error| Failure::Usage(error.to_string()))?;
        let mut stream = Self { waiting: VecDeque::new(), handle, is_open: false };
        while !stream.is_open {
            stream.take(session, node, monotonic() + LOOK)?;
        }
        Ok(stream)
    }

    /// The SubscriptionId.
    pub(crate) fn subscription_id(&self, session: &mut Session) -> u32 {
        session.client().core().subscription_id(self.handle).unwrap_or(0)
    }

    /// The next event.
    pub(crate) fn next(
        &mut self,
        session: &mut Session,
        node: &NodeId,
        end: Option<Instant>,
        interrupt: &Interrupt,
    ) -> Result<Next, Failure> {
        loop {
            if interrupt.asked() {
                return Ok(Next::End);
            }
            if let Some(fields) = self.waiting.pop_front() {
                return Ok(Next::Event(fields));
            }
            let now = monotonic();
            if end.is_some_and(|end| now >= end) {
                return Ok(Next::End);
            }
            let until = end.map_or(now + LOOK, |end| end.min(now + LOOK));
            self.take(session, node, until)?;
        }
    }

    /// Takes what comes until a time.
    fn take(&mut self, session: &mut Session, node: &NodeId, until: Instant) -> Result<(), Failure> {
        match session.client().wait(until) {
            Some(Delivery::Events { events, .. }) => {
                self.waiting.extend(events.into_iter().map(|(_, fields)| fields));
            }
            Some(Delivery::Event(Event::Subscription(_, event))) => self.on_event(event, node)?,
            Some(Delivery::Event(Event::Disconnected(error))) => {
                let reason = error.map_or_else(|| "disconnected".to_owned(), |error| error.to_string());
                return Err(Failure::Connect(reason));
            }
            _ => {}
        }
        Ok(())
    }

    fn on_event(&mut self, event: SubscriptionEvent, node: &NodeId) -> Result<(), Failure> {
        match event {
            SubscriptionEvent::Items(results) => {
                let Some(result) = results.first() else { return Ok(()) };
                if result.status.is_bad() {
                    let why = result.status.description().unwrap_or_default();
                    return Err(Failure::BadStatus(format!(
                        "cannot monitor the events of {node}: {}: {} The node has no events (bit 0 of its EventNotifier is \
                         not set). Name an Object above it, or i=2253, the Server Object, which has all events",
                        result.status, why
                    )));
                }
                self.is_open = true;
            }
            SubscriptionEvent::CreateFailed(error) => return Err(session::failure(&error)),
            SubscriptionEvent::DataLost { from, to } => tell!("messages {from} to {to} are lost"),
            SubscriptionEvent::Ended(status) => {
                return Err(Failure::BadStatus(format!("the server ended the subscription: {status}")));
            }
            _ => {}
        }
        Ok(())
    }
}
