//! An application that subscribes as soon as it can and writes down what it gets.

use crate::client::Application;
use std::collections::BTreeMap;
use taktwerk_client::{
    Client, Delivery, Event, OwnedReply, RequestHandle, SubscriptionEvent, SubscriptionHandle,
    SubscriptionParams,
};
use taktwerk_schema::MonitoredItemCreateRequest;
use taktwerk_server::Now;
use taktwerk_types::{DataValue, Instant};

/// Something that the client said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// When it was delivered.
    pub at: Instant,
    /// Counts deliveries of all kinds, because many come at one instant.
    pub order: u64,
    /// What.
    pub event: Event,
}

/// A value with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// When it was delivered.
    pub at: Instant,
    /// Counts deliveries of all kinds, because many come at one instant.
    pub order: u64,
    /// The notification message that brought it.
    pub sequence_number: u32,
    /// The value.
    pub value: DataValue,
}

/// Subscribes once; the client keeps the subscription from then on.
#[derive(Debug, Default)]
pub struct Subscriber {
    params: SubscriptionParams,
    items: Vec<MonitoredItemCreateRequest>,
    /// The subscription, once it has been asked for.
    pub subscription: Option<SubscriptionHandle>,
    /// Data changes by client handle, oldest first.
    pub values: BTreeMap<u32, Vec<Received>>,
    /// Numbers of the notification messages with data changes, as they came.
    pub sequence_numbers: Vec<u32>,
    /// What the client said of itself.
    pub events: Vec<Happened>,
    deliveries: u64,
    /// What became of requests.
    pub responses: Vec<(Instant, RequestHandle, Result<OwnedReply, taktwerk_client::ClientError>)>,
}

impl Subscriber {
    /// Wants a subscription with these items. Without items, it wants none.
    #[must_use]
    pub fn new(params: SubscriptionParams, items: Vec<MonitoredItemCreateRequest>) -> Self {
        Self { params, items, ..Self::default() }
    }

    /// How often something happened to the client.
    pub fn count(&self, what: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|happened| what(&happened.event)).count()
    }

    /// How often something happened to the subscription.
    pub fn count_subscription(&self, what: impl Fn(&SubscriptionEvent) -> bool) -> usize {
        self.count(|event| matches!(event, Event::Subscription(_, event) if what(event)))
    }

    /// The values of an item.
    #[must_use]
    pub fn values_of(&self, client_handle: u32) -> &[Received] {
        self.values.get(&client_handle).map_or(&[], Vec::as_slice)
    }

    fn subscribe(&mut self, client: &mut Client, now: Instant) {
        if self.subscription.is_none() && !self.items.is_empty() {
            let subscription = client.create_subscription(self.params.clone(), now);
            // It has just been created, so it is known.
            let _ = client.add_items(subscription, self.items.iter().cloned(), now);
            self.subscription = Some(subscription);
        }
    }
}

impl Application for Subscriber {
    fn deliver(&mut self, delivery: Delivery, client: &mut Client, now: Now) {
        let at = now.instant;
        self.deliveries += 1;
        let order = self.deliveries;
        match delivery {
            Delivery::Event(event) => {
                if let Event::Connected(_) = event {
                    self.subscribe(client, at);
                }
                self.events.push(Happened { at, order, event });
            }
            Delivery::Response(handle, result) => self.responses.push((at, handle, result)),
            Delivery::DataChanges { sequence_number, values, .. } => {
                self.sequence_numbers.push(sequence_number);
                for (handle, value) in values {
                    self.values.entry(handle).or_default().push(Received {
                        at,
                        order,
                        sequence_number,
                        value,
                    });
                }
            }
            Delivery::Events { .. } => {}
        }
    }
}
