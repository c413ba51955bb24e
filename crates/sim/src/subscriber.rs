//! An application that subscribes as soon as it can and records what it receives.

use crate::client::Application;
use std::collections::BTreeMap;
use taktwerk_client::{
    Client, Delivery, Event, OwnedReply, RequestHandle, SubscriptionEvent, SubscriptionHandle,
    SubscriptionParams,
};
use taktwerk_schema::MonitoredItemCreateRequest;
use taktwerk_server::Now;
use taktwerk_types::{DataValue, Instant};

/// An event that the client reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// When it was delivered.
    pub at: Instant,
    /// Counts deliveries of all kinds, because several may have the same time.
    pub order: u64,
    /// The event.
    pub event: Event,
}

/// A received value.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// When it was delivered.
    pub at: Instant,
    /// Counts deliveries of all kinds, because several may have the same time.
    pub order: u64,
    /// The sequence number of the notification message that contained it.
    pub sequence_number: u32,
    /// The value.
    pub value: DataValue,
}

/// Subscribes once; after that, the client maintains the subscription.
#[derive(Debug, Default)]
pub struct Subscriber {
    params: SubscriptionParams,
    items: Vec<MonitoredItemCreateRequest>,
    /// The subscription, after it was requested.
    pub subscription: Option<SubscriptionHandle>,
    /// Data changes by client handle, oldest first.
    pub values: BTreeMap<u32, Vec<Received>>,
    /// Sequence numbers of the notification messages with data changes, in order of arrival.
    pub sequence_numbers: Vec<u32>,
    /// The events that the client reported.
    pub events: Vec<Happened>,
    deliveries: u64,
    /// The results of requests.
    pub responses: Vec<(Instant, RequestHandle, Result<OwnedReply, taktwerk_client::ClientError>)>,
}

impl Subscriber {
    /// Creates an application that subscribes to these items. Without items, it does not subscribe.
    #[must_use]
    pub fn new(params: SubscriptionParams, items: Vec<MonitoredItemCreateRequest>) -> Self {
        Self { params, items, ..Self::default() }
    }

    /// The number of events of the client that match.
    pub fn count(&self, what: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|happened| what(&happened.event)).count()
    }

    /// The number of events of the subscription that match.
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
            // The subscription was just created, so it is known.
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
