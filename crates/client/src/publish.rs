//! Publish requests in flight, notification messages in order, and gaps filled by Republish (Part 4 §5.14.5, §5.14.6).

use crate::client::Client;
use crate::error::ClientError;
use crate::event::{Event, Sink, SubscriptionEvent};
use crate::link::Answer;
use crate::notification::{DataChanges, EventNotifications, MessageView, Part, PublishView};
use crate::outstanding::Purpose;
use crate::subscription::{Gap, State, Subscription, SubscriptionHandle, before, following};
use core::cell::Cell;
use core::time::Duration;
use taktwerk_schema::{
    CallMethodRequest, CallRequest, RepublishRequest,
    ids::{method_ids, object_ids},
};
use taktwerk_types::{DecodeError, DecodeLimits, Instant, NodeId, StatusCode, Variant};

/// Delay of the next Publish request after a fault; it doubles with each fault in a row.
const FAULT_DELAY_MIN: Duration = Duration::from_millis(100);
/// Maximum delay.
const FAULT_DELAY_MAX: Duration = Duration::from_secs(10);
/// Minimum tolerance, in addition to the round trip, before a subscription counts as inactive.
const SLACK_MIN: Duration = Duration::from_millis(500);

impl Client {
    fn slack(&self) -> Duration {
        (self.link.round_trip * 4).max(SLACK_MIN)
    }

    /// Target number of Publish requests in flight: one per subscription, plus the number of publishing cycles of the
    /// fastest one in a round trip, plus one spare so that the server always has one.
    fn publish_target(&self) -> usize {
        let live = self.subscriptions.iter().filter(|subscription| subscription.is_live());
        let (mut count, mut fastest_ms) = (0usize, f64::INFINITY);
        for subscription in live {
            count += 1;
            fastest_ms = fastest_ms.min(subscription.interval_ms);
        }
        if count == 0 {
            return 0;
        }
        let round_trip_ms = self.link.round_trip.as_secs_f64() * 1e3;
        // `as` saturates, and a non-finite quotient gives the maximum or zero; both are harmless.
        let in_a_round_trip = (round_trip_ms / fastest_ms.max(1.0)).ceil() as usize;
        count.saturating_add(in_a_round_trip).saturating_add(1).min(self.publisher.max)
    }

    /// Sends Publish requests up to the target. Not during recovery: missed messages come first.
    pub(crate) fn pump_publishes(&mut self, now: Instant) {
        let recovering =
            self.subscriptions.iter().any(|subscription| subscription.state == State::Recovering);
        let refused = self.publisher.resume_at.is_some_and(|at| now < at);
        if recovering || refused || self.link.outstanding.has(|purpose| purpose == Purpose::Transfer) {
            return;
        }
        let target = self.publish_target();
        while self.link.outstanding.publishes() < target {
            let handle = self.link.next_handle();
            // No timeout: the server may hold the request as long as it likes, and the subscriptions are monitored.
            let sent = self.link.send(&mut self.publisher.request, handle, Purpose::Publish, None, now);
            if sent.is_err() {
                return;
            }
            self.publisher.request.subscription_acknowledgements.clear();
        }
    }

    pub(crate) fn on_publish(
        &mut self,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let view = match result.map(|mut answer| PublishView::parse(&mut answer.rest)) {
            Ok(Ok(view)) => view,
            Ok(Err(error)) => return self.lose(error.into(), now, sink),
            Err(ClientError::Service { status, .. }) => return self.on_publish_fault(status, now),
            Err(_) => return,
        };
        self.publisher.accepted();
        let slack = self.slack();
        let server_id = view.subscription_id;
        let found =
            self.subscriptions.iter_mut().find(|known| known.is_live() && known.server_id == server_id);
        let Some(subscription) = found else {
            // A subscription that is being deleted, or that the application has created by itself.
            if !view.message.is_keep_alive() {
                self.publisher.acknowledge(server_id, view.message.sequence_number);
            }
            if self.publisher.orphans {
                self.delete_orphan(server_id, now);
            }
            return;
        };
        subscription.heard(now, slack);
        if core::mem::take(&mut subscription.inactive) {
            sink.event(Event::Subscription(subscription.handle, SubscriptionEvent::Active));
        }
        let handle = subscription.handle;
        let number = view.message.sequence_number;
        if view.message.is_keep_alive() {
            // A keep-alive carries the number of the *next* message (Part 4 §5.14.1.1).
            if !before(subscription.expected, number) {
                if subscription.held.is_empty() {
                    sink.event(Event::Subscription(handle, SubscriptionEvent::KeepAlive));
                }
                return;
            }
            subscription.announced = Some(number);
            subscription.available = view.available().collect();
            return self.close_gap(handle, now, sink);
        }
        self.publisher.acknowledge(server_id, number);
        if number == subscription.expected && subscription.held.is_empty() {
            subscription.expected = following(number);
            self.deliver(handle, view.message, now, sink);
        } else if before(number, subscription.expected) {
            // A duplicate: the server repeats messages whose acknowledgement it has not received.
        } else {
            let full = subscription.held.len() >= self.config.gap_messages_max;
            let position = subscription.held.partition_point(|held| before(held.sequence_number, number));
            let known = subscription.held.get(position).is_some_and(|held| held.sequence_number == number);
            if !known {
                subscription.held.insert(position, view.message.to_owned());
            }
            subscription.available = view.available().collect();
            if full {
                // The limit of held messages is reached: give up the gap.
                subscription.available.clear();
            }
            self.close_gap(handle, now, sink);
        }
    }

    fn on_publish_fault(&mut self, status: StatusCode, now: Instant) {
        let held = self.link.outstanding.publishes();
        if status == StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS {
            self.publisher.max = held.max(1);
            if held > 0 {
                // The server has as many requests as it accepts; this one exceeded the limit.
                return;
            }
        }
        if status == StatusCode::BAD_NO_SUBSCRIPTION {
            self.verify_subscriptions(now);
        }
        // After any fault, wait before the next request: the server would probably refuse it, too, without end. Several
        // faults at once count as one.
        if self.publisher.resume_at.is_none() {
            let factor = 1u32 << self.publisher.faults.min(20);
            let delay = FAULT_DELAY_MIN.saturating_mul(factor).min(FAULT_DELAY_MAX);
            self.publisher.faults = self.publisher.faults.saturating_add(1);
            self.publisher.resume_at = Some(now + self.jittered(delay));
        }
    }

    /// The server reports that there is no subscription: verify each known one.
    fn verify_subscriptions(&mut self, now: Instant) {
        let live: Vec<_> =
            self.subscriptions.iter().filter(|known| known.is_live()).map(|known| known.handle).collect();
        for handle in live {
            self.ask_again(handle, now);
        }
    }

    /// Requests the next message with Republish. Any answer shows whether connection, session and subscription exist.
    fn ask_again(&mut self, handle: SubscriptionHandle, now: Instant) {
        let Some(subscription) = self.subscription(handle) else { return };
        let (server_id, number) = (subscription.server_id, subscription.expected);
        self.republish(handle, server_id, number, now);
    }

    fn republish(&mut self, handle: SubscriptionHandle, server_id: u32, number: u32, now: Instant) {
        let asked =
            |purpose| matches!(purpose, Purpose::Republish { subscription, .. } if subscription == handle);
        if self.link.outstanding.has(asked) {
            return;
        }
        let mut request = RepublishRequest {
            subscription_id: server_id,
            retransmit_sequence_number: number,
            ..RepublishRequest::default()
        };
        let request_handle = self.link.next_handle();
        let purpose = Purpose::Republish { subscription: handle, sequence_number: number };
        let timeout = Some(self.config.request_timeout);
        // If sending fails, the connection is lost and recovery starts over.
        let _ = self.link.send(&mut request, request_handle, purpose, timeout, now);
    }

    /// Fetches missing messages or reports them as lost, and delivers the messages after them.
    fn close_gap(&mut self, handle: SubscriptionHandle, now: Instant, sink: &mut dyn Sink) {
        let mut lost = false;
        while let Some(subscription) = self.subscription(handle) {
            match subscription.gap() {
                Gap::Fetch(number) => {
                    let server_id = subscription.server_id;
                    self.republish(handle, server_id, number, now);
                    break;
                }
                Gap::Lost(from, to) => {
                    subscription.expected = following(to);
                    lost = true;
                    sink.event(Event::Subscription(handle, SubscriptionEvent::DataLost { from, to }));
                }
                Gap::None => {
                    subscription.announced = None;
                    let Some(message) = subscription.held.pop_front() else { break };
                    let number = message.sequence_number;
                    if number == subscription.expected {
                        subscription.expected = following(number);
                        self.deliver(handle, message.view(), now, sink);
                    }
                }
            }
        }
        if lost {
            self.resend_data(handle, now);
        }
    }

    /// Asks the server to send the current values of all items: after a loss they would arrive only with the next
    /// change.
    fn resend_data(&mut self, handle: SubscriptionHandle, now: Instant) {
        if !self.config.resend_data {
            return;
        }
        let Some(subscription) = self.subscription(handle) else { return };
        let call = CallMethodRequest {
            object_id: NodeId::numeric(0, object_ids::SERVER),
            method_id: NodeId::numeric(0, method_ids::SERVER_RESEND_DATA),
            input_arguments: vec![Variant::UInt32(subscription.server_id)],
        };
        let mut request = CallRequest { methods_to_call: vec![call], ..CallRequest::default() };
        let request_handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        // A server without the method returns an error, which is ignored.
        let _ = self.link.send(&mut request, request_handle, Purpose::ResendData(handle), timeout, now);
    }

    pub(crate) fn on_republish(
        &mut self,
        handle: SubscriptionHandle,
        number: u32,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let slack = self.slack();
        let Some(subscription) = self.subscription(handle).filter(|subscription| subscription.is_live())
        else {
            return;
        };
        let server_id = subscription.server_id;
        match result.map(|mut answer| MessageView::parse(&mut answer.rest)) {
            Ok(Ok(message)) => {
                subscription.heard(now, slack);
                subscription.unavailable(number);
                self.publisher.acknowledge(server_id, number);
                let Some(subscription) = self.subscription(handle) else { return };
                if number == subscription.expected && message.sequence_number == number {
                    subscription.expected = following(number);
                    self.deliver(handle, message, now, sink);
                }
                let recovering =
                    self.subscription(handle).is_some_and(|known| known.state == State::Recovering);
                if recovering { self.recover(handle, now, sink) } else { self.close_gap(handle, now, sink) }
            }
            Ok(Err(error)) => self.lose(error.into(), now, sink),
            Err(ClientError::Service { status, .. }) => match status {
                StatusCode::BAD_SUBSCRIPTION_ID_INVALID | StatusCode::BAD_NO_SUBSCRIPTION => {
                    self.recreate(handle, status, sink);
                }
                _ => {
                    subscription.unavailable(number);
                    subscription.heard(now, slack);
                    if core::mem::take(&mut subscription.inactive) {
                        sink.event(Event::Subscription(handle, SubscriptionEvent::Active));
                    }
                    if subscription.state == State::Recovering {
                        self.finish_recovery(handle, now, sink);
                    }
                    self.close_gap(handle, now, sink);
                }
            },
            Err(_) => {}
        }
    }

    /// After a reconnect: fetches the next missed message, or ends the recovery (Part 4 §6.7).
    pub(crate) fn recover(&mut self, handle: SubscriptionHandle, now: Instant, sink: &mut dyn Sink) {
        let Some(subscription) = self.subscription(handle) else { return };
        let server_id = subscription.server_id;
        // After a transfer the available messages are known; otherwise request messages until there are no more.
        let next = if subscription.transferred {
            subscription.next_available()
        } else {
            Some(subscription.expected)
        };
        match next {
            Some(number) => {
                let skipped = subscription.expected;
                if number != skipped {
                    subscription.expected = number;
                    let to = crate::subscription::preceding(number);
                    let lost = SubscriptionEvent::DataLost { from: skipped, to };
                    sink.event(Event::Subscription(handle, lost));
                    self.resend_data(handle, now);
                }
                self.republish(handle, server_id, number, now);
            }
            None => self.finish_recovery(handle, now, sink),
        }
    }

    fn finish_recovery(&mut self, handle: SubscriptionHandle, now: Instant, sink: &mut dyn Sink) {
        let slack = self.slack();
        let Some(subscription) = self.subscription(handle) else { return };
        subscription.state = State::Live;
        subscription.heard(now, slack);
        let transferred = core::mem::take(&mut subscription.transferred);
        let event = if transferred { SubscriptionEvent::Transferred } else { SubscriptionEvent::Kept };
        sink.event(Event::Subscription(handle, event));
    }

    /// Delivers the notifications of a message to the application.
    fn deliver(
        &mut self,
        handle: SubscriptionHandle,
        message: MessageView<'_>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let mut ended = None;
        let delivered = &mut self.work.notifications;
        if let Err(error) = notify(handle, message, self.config.decode_limits, sink, &mut ended, delivered) {
            return self.lose(error.into(), now, sink);
        }
        if let Some(status) = ended {
            self.on_status_change(handle, status, sink);
        }
    }

    /// The server reports that the subscription has ended (Part 4 §7.25.4).
    fn on_status_change(&mut self, handle: SubscriptionHandle, status: StatusCode, sink: &mut dyn Sink) {
        if status == StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED {
            self.subscriptions.retain(|known| known.handle != handle);
            sink.event(Event::Subscription(handle, SubscriptionEvent::Ended(status)));
        } else if status.is_bad() {
            self.recreate(handle, status, sink);
        }
    }

    /// Creates a subscription again that the server has lost.
    pub(crate) fn recreate(&mut self, handle: SubscriptionHandle, reason: StatusCode, sink: &mut dyn Sink) {
        if let Some(subscription) = self.subscription(handle) {
            subscription.reset();
            sink.event(Event::Subscription(handle, SubscriptionEvent::Recreating(reason)));
        }
    }

    /// Checks for subscriptions that have been silent for too long.
    pub(crate) fn watch_subscriptions(&mut self, now: Instant, sink: &mut dyn Sink) {
        let slack = self.slack() + self.config.request_timeout;
        let overdue = |known: &&mut Subscription| known.is_live() && known.alive_by <= now;
        let mut silent = Vec::new();
        for subscription in self.subscriptions.iter_mut().filter(overdue) {
            // The next check follows after the answer or its timeout.
            subscription.heard(now, slack);
            silent.push(subscription.handle);
            if !core::mem::replace(&mut subscription.inactive, true) {
                sink.event(Event::Subscription(subscription.handle, SubscriptionEvent::Inactive));
            }
        }
        for handle in silent {
            self.ask_again(handle, now);
        }
    }

    pub(crate) fn subscription(&mut self, handle: SubscriptionHandle) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|known| known.handle == handle)
    }
}

/// Passes each part of a message to the sink.
fn notify(
    handle: SubscriptionHandle,
    message: MessageView<'_>,
    limits: DecodeLimits,
    sink: &mut dyn Sink,
    ended: &mut Option<StatusCode>,
    delivered: &mut u64,
) -> Result<(), DecodeError> {
    let fault = Cell::new(None);
    for part in message.parts(limits) {
        match part {
            Part::DataChange(body) => {
                let changes = DataChanges::new(message, body, limits, &fault);
                *delivered += changes.len() as u64;
                sink.data_changes(handle, changes);
            }
            Part::Events(body) => {
                let events = EventNotifications::new(message, body, limits, &fault);
                *delivered += events.announced() as u64;
                sink.events(handle, events);
            }
            Part::StatusChange(status) => *ended = Some(status),
            Part::Other => {}
        }
    }
    fault.get().map_or(Ok(()), Err)
}
