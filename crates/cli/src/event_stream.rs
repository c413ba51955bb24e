//! A subscription to the events of one node, for commands that print events.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::reconnection::{self, Notice, Reconnection};
use crate::session::{self, Session};
use std::collections::VecDeque;
use std::time::Duration;
use taktwerk_client::{
    Delivery, Event, EventQuery, SubscriptionEvent, SubscriptionHandle, SubscriptionParams,
};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::{MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId};
use taktwerk_types::{ExtensionObject, Instant, NodeId, StatusCode, Variant};

/// Interval at which interruption is checked.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(200);
/// The EventNotifier attribute, which is monitored for events.
const EVENT_NOTIFIER: u32 = 12;

/// Events of one monitored item. It continues after a reconnection, if the session reconnects.
pub(crate) struct EventStream {
    waiting: VecDeque<Next>,
    handle: SubscriptionHandle,
    node: NodeId,
    reconnection: Reconnection,
}

/// The next item of the stream.
pub(crate) enum Next {
    /// The selected fields of an event.
    Event(Vec<Variant>),
    /// The server monitors the item, for the first time or after a lost connection. Earlier events may be lost.
    Ready,
    /// A message about the connection.
    Notice(Notice),
    /// The time is over, or the user has interrupted the command.
    End,
}

impl EventStream {
    /// Creates the subscription. [`Next::Ready`] follows when the server has accepted the item. `loss` is appended to
    /// "the server lost the subscription: it is created again".
    pub(crate) fn open(
        session: &mut Session,
        node: NodeId,
        query: &EventQuery,
        interval: Duration,
        queue: u32,
        loss: &'static str,
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
        Ok(Self { waiting: VecDeque::new(), handle, node, reconnection: Reconnection::new(loss) })
    }

    /// The SubscriptionId.
    pub(crate) fn subscription_id(&self, session: &mut Session) -> u32 {
        session.client().core().subscription_id(self.handle).unwrap_or(0)
    }

    /// Waits for the next item.
    pub(crate) fn next(
        &mut self,
        session: &mut Session,
        end: Option<Instant>,
        interrupt: &Interrupt,
    ) -> Result<Next, Failure> {
        loop {
            if interrupt.asked() {
                return Ok(Next::End);
            }
            if let Some(next) = self.waiting.pop_front() {
                return Ok(next);
            }
            let now = monotonic();
            if end.is_some_and(|end| now >= end) {
                return Ok(Next::End);
            }
            let until = end.map_or(now + INTERRUPT_INTERVAL, |end| end.min(now + INTERRUPT_INTERVAL));
            self.take(session, until)?;
        }
    }

    /// Waits for deliveries until a time, and queues them.
    fn take(&mut self, session: &mut Session, until: Instant) -> Result<(), Failure> {
        match session.client().wait(until) {
            Some(Delivery::Events { events, .. }) => {
                self.waiting.extend(events.into_iter().map(|(_, fields)| Next::Event(fields)));
            }
            Some(Delivery::Event(event)) => {
                self.waiting.extend(self.reconnection.notice(&event).map(Next::Notice));
                match event {
                    Event::Subscription(_, event) => self.on_event(event)?,
                    Event::Disconnected(error) => return Err(reconnection::ended(error)),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn on_event(&mut self, event: SubscriptionEvent) -> Result<(), Failure> {
        match event {
            SubscriptionEvent::Items(results) => {
                let Some(result) = results.first() else { return Ok(()) };
                if result.status.is_bad() {
                    let why = result.status.description().unwrap_or_default();
                    return Err(Failure::BadStatus(format!(
                        "cannot monitor the events of {}: {}: {} {}",
                        self.node,
                        result.status,
                        why,
                        advice(result.status)
                    )));
                }
                self.waiting.push_back(Next::Ready);
            }
            SubscriptionEvent::Kept | SubscriptionEvent::Transferred => self.waiting.push_back(Next::Ready),
            SubscriptionEvent::CreateFailed(error) => return Err(session::failure(&error)),
            SubscriptionEvent::DataLost { from, to } => {
                tell!("messages {from} to {to} are lost");
                // The messages contained events.
                self.waiting.push_back(Next::Ready);
            }
            SubscriptionEvent::Ended(status) => {
                return Err(Failure::BadStatus(format!("the server ended the subscription: {status}")));
            }
            _ => {}
        }
        Ok(())
    }
}

/// What to do if a server refuses an item of events.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_EVENT_FILTER_INVALID
        | StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID
        | StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED => {
            "The server does not know a type, a field or an operator of the filter. Servers without alarms do not know \
             the fields of alarms"
        }
        _ => {
            "The node has no events (bit 0 of its EventNotifier is not set). Name an Object above it, or i=2253, the \
             Server Object, which has all events"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_about_the_filter_if_the_filter_was_refused() {
        assert!(advice(StatusCode::BAD_EVENT_FILTER_INVALID).contains("operator of the filter"));
        assert!(advice(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED).contains("without alarms"));
        for status in [StatusCode::BAD_ATTRIBUTE_ID_INVALID, StatusCode::BAD_NODE_ID_UNKNOWN] {
            assert!(advice(status).contains("EventNotifier"));
        }
    }
}
