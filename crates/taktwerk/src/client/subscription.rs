//! Changes of values as a stream (Part 4 §5.13, §5.14).

use super::{Attribute, Client, Error, SubscriptionEvent, ToNodeId};
use crate::value::{Value, typed};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use futures_core::Stream;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_client::{ItemResult, SubscriptionHandle, SubscriptionParams};
use taktwerk_net::client::{AsyncClient, SubscriptionMessage, SubscriptionMessages};
use taktwerk_schema::{
    DataChangeFilter, DataChangeTrigger, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters,
    ReadValueId,
};
use taktwerk_types::{DataValue, ExtensionObject, NodeId, StatusCode, UtcTime, Variant};

/// Deadband as a number of the value's unit (Part 4 §7.22.2).
const DEADBAND_ABSOLUTE: u32 = 1;
/// Deadband as a share of the EURange (Part 8 §7.2).
const DEADBAND_PERCENT: u32 = 2;

/// How a subscription publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionOptions {
    params: SubscriptionParams,
}

impl Default for SubscriptionOptions {
    /// Once per second.
    fn default() -> Self {
        Self::every(Duration::from_secs(1))
    }
}

/// The interval alone.
impl From<Duration> for SubscriptionOptions {
    fn from(interval: Duration) -> Self {
        Self::every(interval)
    }
}

impl SubscriptionOptions {
    /// Publishes changes once per interval. The server says that it is alive every ten seconds or ten intervals,
    /// whichever is longer, and keeps the subscription at least one minute without hearing from the client.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        let publishing_interval_ms = interval.as_secs_f64() * 1000.0;
        let cycles = |millis: f64| (millis / publishing_interval_ms.max(1.0)).ceil() as u32;
        let keep_alive_count = cycles(10_000.0).max(10);
        let lifetime_count = cycles(60_000.0).max(keep_alive_count.saturating_mul(3));
        let defaults = SubscriptionParams::default();
        Self {
            params: SubscriptionParams {
                publishing_interval_ms,
                keep_alive_count,
                lifetime_count,
                ..defaults
            },
        }
    }

    /// After how many intervals without a change the server says that it is alive.
    #[must_use]
    pub fn keep_alive_count(mut self, count: u32) -> Self {
        self.params.keep_alive_count = count;
        self.params.lifetime_count = self.params.lifetime_count.max(count.saturating_mul(3));
        self
    }

    /// How many intervals the server keeps the subscription without hearing from the client.
    #[must_use]
    pub fn lifetime_count(mut self, count: u32) -> Self {
        self.params.lifetime_count = count;
        self
    }

    /// Relative to the session's other subscriptions; higher goes first.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.params.priority = priority;
        self
    }
}

/// What is to be watched, and how closely.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    node: NodeId,
    attribute: Attribute,
    sampling_interval: f64,
    queue_size: u32,
    trigger: DataChangeTrigger,
    deadband: Option<(u32, f64)>,
}

impl Item {
    /// The value of a node: sampled once per publishing interval, the newest value only.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            attribute: Attribute::Value,
            sampling_interval: -1.0,
            queue_size: 1,
            trigger: DataChangeTrigger::STATUS_VALUE,
            deadband: None,
        }
    }

    /// Another attribute than Value.
    #[must_use]
    pub fn attribute(mut self, attribute: Attribute) -> Self {
        self.attribute = attribute;
        self
    }

    /// How often the server looks at the value; zero asks for every single change.
    #[must_use]
    pub fn sampling(mut self, interval: Duration) -> Self {
        self.sampling_interval = interval.as_secs_f64() * 1000.0;
        self
    }

    /// How many values the server keeps between two publishes; beyond, the oldest are dropped and the next one has
    /// the Overflow bit.
    #[must_use]
    pub fn queue(mut self, size: u32) -> Self {
        self.queue_size = size;
        self
    }

    /// Reports a value also when only its source timestamp is new.
    #[must_use]
    pub fn every_timestamp(mut self) -> Self {
        self.trigger = DataChangeTrigger::STATUS_VALUE_TIMESTAMP;
        self
    }

    /// Reports a number only when it has changed by more than this.
    #[must_use]
    pub fn deadband(mut self, distance: f64) -> Self {
        self.deadband = Some((DEADBAND_ABSOLUTE, distance));
        self
    }

    /// Reports a number only when it has changed by more than this share of its EURange, in percent.
    #[must_use]
    pub fn percent_deadband(mut self, percent: f64) -> Self {
        self.deadband = Some((DEADBAND_PERCENT, percent));
        self
    }

    fn request(&self, client_handle: u32) -> MonitoredItemCreateRequest {
        let needs_filter = self.deadband.is_some() || self.trigger != DataChangeTrigger::STATUS_VALUE;
        let (deadband_type, deadband_value) = self.deadband.unwrap_or_default();
        let filter = DataChangeFilter { trigger: self.trigger, deadband_type, deadband_value };
        MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: self.node.clone(),
                attribute_id: self.attribute as u32,
                ..ReadValueId::default()
            },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters {
                client_handle,
                sampling_interval: self.sampling_interval,
                filter: if needs_filter { ExtensionObject::new(&filter) } else { ExtensionObject::NULL },
                queue_size: self.queue_size,
                discard_oldest: true,
            },
        }
    }
}

/// A changed value.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The item's number in its subscription, from [`Subscription::monitor`].
    pub item: u32,
    /// The node.
    pub node: NodeId,
    /// The value with its quality and times.
    pub value: DataValue,
    /// When the server sent it.
    pub publish_time: UtcTime,
}

impl Change {
    /// The value as a Rust type.
    ///
    /// # Errors
    /// The value's status if it is bad, Bad_TypeMismatch if it is of another type.
    pub fn value<T: Value>(self) -> Result<T, StatusCode> {
        typed(self.value)
    }
}

/// What comes from a subscription.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// A value changed.
    Change(Change),
    /// An event happened: the item's number and the fields that its filter selected.
    Event(u32, Vec<Variant>),
    /// The subscription's state changed: lost and made again, values lost for good, ended.
    State(SubscriptionEvent),
    /// The application was too slow: this many changes were dropped.
    Lagged(usize),
}

/// A subscription: a stream of [`Update`]s. Dropping it deletes it on the server.
///
/// It survives lost connections and restarts of the server; [`Update::State`] tells when values may be missing.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    handle: SubscriptionHandle,
    messages: SubscriptionMessages,
    items: BTreeMap<u32, NodeId>,
    next_item: u32,
    /// Messages that were received while something else was waited for.
    kept: VecDeque<SubscriptionMessage>,
    /// Updates of the message that was taken apart last.
    updates: VecDeque<Update>,
}

impl Client {
    /// Creates a subscription; `options` can be the publishing interval alone.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
    /// use std::time::Duration;
    ///
    /// let mut subscription = client.subscribe(Duration::from_millis(100)).await?;
    /// subscription.monitor("ns=2;s=Boiler 1/Temperature").await?;
    /// while let Some(change) = subscription.next_change().await {
    ///     println!("{} is {:?}", change.node, change.value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server refuses, or the client has ended.
    pub async fn subscribe(&self, options: impl Into<SubscriptionOptions>) -> Result<Subscription, Error> {
        let options = options.into();
        let (handle, mut messages) = self.inner.create_subscription(options.params).await?;
        let mut kept = VecDeque::new();
        loop {
            match messages.next().await {
                Some(SubscriptionMessage::State(SubscriptionEvent::Created { .. })) => break,
                Some(SubscriptionMessage::State(SubscriptionEvent::CreateFailed(error))) => {
                    return Err(error.into());
                }
                Some(other) => kept.push_back(other),
                None => return Err(ended()),
            }
        }
        Ok(Subscription {
            client: self.clone(),
            handle,
            messages,
            items: BTreeMap::new(),
            next_item: 0,
            kept,
            updates: VecDeque::new(),
        })
    }
}

fn ended() -> Error {
    taktwerk_client::ClientError::Connection("the client has ended".into()).into()
}

impl Subscription {
    /// Watches the value of a node; returns the item's number, which its changes carry.
    ///
    /// # Errors
    /// The server refuses, or the client has ended.
    pub async fn monitor(&mut self, node: impl ToNodeId) -> Result<u32, Error> {
        let item = Item::new(self.client.resolve(node)?);
        self.monitor_item(item).await
    }

    /// Watches something more closely described.
    ///
    /// # Errors
    /// The server refuses, or the client has ended.
    pub async fn monitor_item(&mut self, item: Item) -> Result<u32, Error> {
        let what = format!("monitor {}", item.node);
        let results = self.monitor_many([item]).await?;
        let (number, status) = results.into_iter().next().unwrap_or_default();
        if status.is_bad() {
            self.items.remove(&number);
            return Err(Error::status_of(what, status));
        }
        Ok(number)
    }

    /// Watches many items; returns the number and status of each, in the order of the list. Requests are split as the
    /// server's limits want.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn monitor_many(
        &mut self,
        items: impl IntoIterator<Item = Item>,
    ) -> Result<Vec<(u32, StatusCode)>, Error> {
        let first = self.next_item;
        let mut requests = Vec::new();
        for item in items {
            requests.push(item.request(self.next_item));
            self.items.insert(self.next_item, item.node);
            self.next_item += 1;
        }
        let mut results: Vec<(u32, StatusCode)> =
            (first..self.next_item).map(|number| (number, StatusCode::BAD_NO_COMMUNICATION)).collect();
        let mut missing = requests.len();
        self.inner().add_items(self.handle, requests).await?;
        while missing > 0 {
            match self.messages.next().await {
                Some(SubscriptionMessage::State(SubscriptionEvent::Items(created))) => {
                    for ItemResult { client_handle, status, .. } in created {
                        let at = client_handle.wrapping_sub(first) as usize;
                        if let Some(result) = results.get_mut(at) {
                            *result = (client_handle, status);
                            missing -= 1;
                        }
                    }
                }
                Some(other) => self.kept.push_back(other),
                None => return Err(ended()),
            }
        }
        Ok(results)
    }

    /// Stops watching items, by their numbers.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn unmonitor(&mut self, items: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        let items: Vec<u32> = items.into_iter().collect();
        for item in &items {
            self.items.remove(item);
        }
        Ok(self.inner().remove_items(self.handle, items).await?)
    }

    /// Switches items off, on, or to sampling without reporting.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn set_monitoring_mode(
        &self,
        items: impl IntoIterator<Item = u32>,
        mode: MonitoringMode,
    ) -> Result<(), Error> {
        let items = items.into_iter().collect();
        Ok(self.inner().set_monitoring_mode(self.handle, items, mode).await?)
    }

    /// Changes how it publishes.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn modify(&self, options: impl Into<SubscriptionOptions>) -> Result<(), Error> {
        Ok(self.inner().modify_subscription(self.handle, options.into().params).await?)
    }

    /// The next update; `None` when the subscription or the client has ended.
    pub async fn next(&mut self) -> Option<Update> {
        core::future::poll_fn(|context| self.poll_update(context)).await
    }

    /// The next changed value, everything else passed over; `None` when the subscription or the client has ended.
    pub async fn next_change(&mut self) -> Option<Change> {
        loop {
            match self.next().await? {
                Update::Change(change) => return Some(change),
                Update::Lagged(count) => {
                    tracing::warn!(count, "changes were dropped: they are taken too slowly")
                }
                Update::Event(..) | Update::State(_) => {}
            }
        }
    }

    fn inner(&self) -> &AsyncClient {
        &self.client.inner
    }

    fn poll_update(&mut self, context: &mut Context<'_>) -> Poll<Option<Update>> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                return Poll::Ready(Some(update));
            }
            let message = match self.kept.pop_front() {
                Some(message) => message,
                None => match self.messages.poll_next(context) {
                    Poll::Ready(Some(message)) => message,
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                },
            };
            self.take_apart(message);
        }
    }

    fn take_apart(&mut self, message: SubscriptionMessage) {
        match message {
            SubscriptionMessage::DataChanges { publish_time, values, .. } => {
                for (item, value) in values {
                    // Of an item that is not watched any more nothing is told.
                    if let Some(node) = self.items.get(&item) {
                        let change = Change { item, node: node.clone(), value, publish_time };
                        self.updates.push_back(Update::Change(change));
                    }
                }
            }
            SubscriptionMessage::Events { events, .. } => {
                self.updates.extend(events.into_iter().map(|(item, fields)| Update::Event(item, fields)));
            }
            SubscriptionMessage::State(event) => self.updates.push_back(Update::State(event)),
            SubscriptionMessage::Lagged(count) => self.updates.push_back(Update::Lagged(count)),
        }
    }
}

impl Stream for Subscription {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        self.get_mut().poll_update(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.client.inner.delete_subscription(self.handle);
    }
}
