//! The client's application: subscribes, and records delays instead of values.

use crate::client::Application;
use crate::histogram::Histogram;
use crate::scenario::clock::TIMEOUT;
use core::time::Duration;
use taktwerk_client::{
    Client, ClientError, Delivery, Event, OwnedReply, RequestHandle, SubscriptionEvent, SubscriptionParams,
};
use taktwerk_schema::{
    CreateMonitoredItemsRequest, CreateMonitoredItemsResponse, CreateSubscriptionRequest,
    CreateSubscriptionResponse, DataChangeNotification, MonitoredItemCreateRequest, PublishRequest,
    PublishResponse, SubscriptionAcknowledgement,
};
use taktwerk_server::Now;
use taktwerk_types::{DataValue, Instant, StatusCode, UtcTime};

/// InfoBits: DataValue, and Overflow in it (Part 4 §7.39.1).
const OVERFLOW: u32 = 0x0480;

/// Delays of one group.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) values: Histogram,
    pub(super) messages: u64,
    /// Sums over messages, in nanoseconds.
    pub(super) min: u128,
    pub(super) mean: f64,
    pub(super) max: u128,
    pub(super) arrived: u64,
    pub(super) overflows: u64,
}

/// Delays of a group in one message.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) params: SubscriptionParams,
    pub(super) items: Vec<MonitoredItemCreateRequest>,
    /// Group of each client handle.
    pub(super) group_of: Vec<usize>,
    pub(super) groups: Vec<Group>,
    parts: Vec<Part>,
    /// Start of the window: only values written within it count.
    pub(super) from: UtcTime,
    pub(super) until: UtcTime,
    pub(super) messages: u64,
    pub(super) connected_at: Option<Instant>,
    pub(super) trouble: Option<String>,
    pub(super) interval_ms: f64,
    pub(super) values: Histogram,
    /// Interval of Publish requests sent by a clock; `None` lets the client decide.
    pub(super) by_clock: Option<Duration>,
    /// Number of Publish requests sent before the first one by the clock. A clock faster than the server fills the
    /// server's queue eventually. Starting with a full queue makes the figures independent of the simulated time.
    pub(super) ahead: u32,
    /// Number of Publish requests refused because there were too many.
    pub(super) refused: u64,
    asked: Option<(RequestHandle, Asked)>,
    subscription_id: u32,
    is_monitoring: bool,
    acknowledgements: Vec<SubscriptionAcknowledgement>,
}

/// Pending requests of a client with a clock, except Publish requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Subscription,
    Items,
}

impl Collector {
    pub(super) fn new(params: SubscriptionParams, groups: usize) -> Self {
        Self { params, groups: vec![Group::default(); groups], ..Self::default() }
    }

    fn data_changes(&mut self, values: &[(u32, DataValue)], now: UtcTime) {
        self.parts.clear();
        self.parts.resize(self.groups.len(), Part::default());
        let mut counts = false;
        for (handle, value) in values {
            let group = self.group_of.get(*handle as usize).copied();
            let (Some(group), Some(written)) = (group, value.source_timestamp) else { continue };
            if written < self.from || written >= self.until {
                continue;
            }
            counts = true;
            let ticks = now.ticks().saturating_sub(written.ticks());
            let delay = u64::try_from(ticks).unwrap_or(0).saturating_mul(100);
            let (Some(part), Some(group)) = (self.parts.get_mut(group), self.groups.get_mut(group)) else {
                continue;
            };
            group.values.record(delay);
            self.values.record(delay);
            group.arrived += 1;
            let status = value.status.map_or(0, |status| status.0);
            group.overflows += u64::from(status & OVERFLOW == OVERFLOW);
            part.min = if part.count == 0 { delay } else { part.min.min(delay) };
            part.max = part.max.max(delay);
            part.sum += u128::from(delay);
            part.count += 1;
        }
        self.messages += u64::from(counts);
        for (part, group) in self.parts.iter().zip(&mut self.groups).filter(|(part, _)| part.count > 0) {
            group.messages += 1;
            group.min += u128::from(part.min);
            group.max += u128::from(part.max);
            group.mean += part.sum as f64 / part.count as f64;
        }
    }
}

/// A client with a clock: it sends Publish requests at fixed times, with the acknowledgements since the last one.
impl Collector {
    fn subscribe(&mut self, client: &mut Client, now: Now) {
        let mut request = CreateSubscriptionRequest {
            requested_publishing_interval: self.params.publishing_interval_ms,
            requested_lifetime_count: self.params.lifetime_count,
            requested_max_keep_alive_count: self.params.keep_alive_count,
            max_notifications_per_publish: self.params.notifications_max,
            publishing_enabled: true,
            ..CreateSubscriptionRequest::default()
        };
        let sent = client.request(&mut request, None, now.instant);
        self.asked = sent.ok().map(|handle| (handle, Asked::Subscription));
    }

    fn monitor(&mut self, client: &mut Client, now: Now) {
        let mut request = CreateMonitoredItemsRequest {
            subscription_id: self.subscription_id,
            timestamps_to_return: self.params.timestamps,
            items_to_create: core::mem::take(&mut self.items),
            ..CreateMonitoredItemsRequest::default()
        };
        let sent = client.request(&mut request, None, now.instant);
        self.asked = sent.ok().map(|handle| (handle, Asked::Items));
    }

    /// Sends a due Publish request.
    pub(super) fn publish(&mut self, client: &mut Client, now: Now) {
        if !self.is_monitoring {
            return;
        }
        let mut request = PublishRequest {
            subscription_acknowledgements: core::mem::take(&mut self.acknowledgements),
            ..PublishRequest::default()
        };
        if let Err(error) = client.request(&mut request, Some(TIMEOUT), now.instant) {
            self.trouble = Some(error.to_string());
        }
    }

    fn answer(
        &mut self,
        handle: RequestHandle,
        reply: Result<OwnedReply, ClientError>,
        client: &mut Client,
        now: Now,
    ) {
        let done = match self.asked.filter(|(asked, _)| *asked == handle) {
            Some((_, Asked::Subscription)) => {
                reply.and_then(|reply| reply.decode::<CreateSubscriptionResponse>()).map(|response| {
                    self.subscription_id = response.subscription_id;
                    self.interval_ms = response.revised_publishing_interval;
                    self.monitor(client, now);
                })
            }
            Some((_, Asked::Items)) => {
                reply.and_then(|reply| reply.decode::<CreateMonitoredItemsResponse>()).map(|response| {
                    self.is_monitoring = response.results.iter().all(|one| one.status_code.is_good());
                    for _ in 0..core::mem::take(&mut self.ahead) {
                        self.publish(client, now);
                    }
                })
            }
            None => reply
                .and_then(|reply| reply.decode::<PublishResponse>())
                .map(|response| self.published(&response, now)),
        };
        match done {
            Err(ClientError::Service { status: StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS, .. }) => {
                self.refused += 1;
            }
            Err(error) => self.trouble = Some(error.to_string()),
            Ok(()) => {}
        }
    }

    fn published(&mut self, response: &PublishResponse, now: Now) {
        let message = &response.notification_message;
        // Keep-alives are not acknowledged.
        if message.notification_data.is_empty() {
            return;
        }
        self.acknowledgements.push(SubscriptionAcknowledgement {
            subscription_id: response.subscription_id,
            sequence_number: message.sequence_number,
        });
        let changes =
            message.notification_data.iter().flat_map(|data| data.decode::<DataChangeNotification>());
        let values: Vec<(u32, DataValue)> = changes
            .flat_map(|changes| changes.monitored_items)
            .map(|item| (item.client_handle, item.value))
            .collect();
        self.data_changes(&values, now.utc);
    }
}

impl Application for Collector {
    fn deliver(&mut self, delivery: Delivery, client: &mut Client, now: Now) {
        match delivery {
            Delivery::DataChanges { values, .. } => self.data_changes(&values, now.utc),
            Delivery::Event(Event::Connected(_)) => {
                if self.connected_at.is_none() {
                    self.connected_at = Some(now.instant);
                    if self.by_clock.is_some() {
                        return self.subscribe(client, now);
                    }
                    let subscription = client.create_subscription(self.params.clone(), now.instant);
                    // The subscription has just been created, so it exists.
                    let _ = client.add_items(subscription, core::mem::take(&mut self.items), now.instant);
                }
            }
            Delivery::Event(Event::Subscription(
                _,
                SubscriptionEvent::Created { publishing_interval_ms, .. },
            )) => {
                self.interval_ms = publishing_interval_ms;
            }
            Delivery::Event(event) => self.trouble = Some(format!("{event:?}")),
            Delivery::Response(handle, reply) => self.answer(handle, reply, client, now),
            Delivery::Events { .. } => {}
        }
    }
}
