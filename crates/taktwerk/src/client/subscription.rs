//! Subscriptions (Part 4 §5.13, §5.14): a handle to change what is monitored, and a stream of updates.

use super::{Client, Error, Item, SubscriptionEvent, ToNodeId};
use crate::value::{Value, typed};
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::{Context, Poll};
use core::time::Duration;
use futures_core::Stream;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_client::{
    ClientError, ItemResult, Misuse, SubscriptionHandle as Id, SubscriptionParams, WantedItem,
};
use taktwerk_net::client::{AsyncClient, SubscriptionMessage, SubscriptionMessages};
use taktwerk_schema::MonitoringMode;
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime, Variant};

/// Publishing settings of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionOptions {
    pub(super) params: SubscriptionParams,
}

impl Default for SubscriptionOptions {
    /// Once per second.
    fn default() -> Self {
        Self::every(Duration::from_secs(1))
    }
}

/// Only the interval; the rest is default.
impl From<Duration> for SubscriptionOptions {
    fn from(interval: Duration) -> Self {
        Self::every(interval)
    }
}

impl SubscriptionOptions {
    /// Publishes changes once per interval. The server sends keep-alives every ten seconds or ten intervals, whichever is longer.
    /// It keeps the subscription for at least one minute without hearing from the client.
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

    /// Number of intervals without changes after which the server sends a keep-alive.
    #[must_use]
    pub fn keep_alive_count(mut self, count: u32) -> Self {
        self.params.keep_alive_count = count;
        self.params.lifetime_count = self.params.lifetime_count.max(count.saturating_mul(3));
        self
    }

    /// Number of intervals for which the server keeps the subscription without hearing from the client.
    #[must_use]
    pub fn lifetime_count(mut self, count: u32) -> Self {
        self.params.lifetime_count = count;
        self
    }

    /// Priority relative to the session's other subscriptions; higher goes first.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.params.priority = priority;
        self
    }
}

/// A changed value.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The item's number in its subscription, from [`SubscriptionHandle::monitor`].
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

/// An update from a subscription.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// A value changed.
    Change(Change),
    /// An event: the item's number and the fields that its filter selected.
    Event(u32, Vec<Variant>),
    /// The subscription's state changed: lost and recreated, values lost, ended.
    State(SubscriptionEvent),
    /// The application reads too slowly: this many changes were dropped.
    Lagged(usize),
}

/// The state shared by the handles and the stream of a subscription.
#[derive(Debug)]
struct Shared {
    client: Client,
    id: Id,
    publishes: AtomicBool,
    next_item: AtomicU32,
    /// The items' nodes by their numbers.
    nodes: Mutex<BTreeMap<u32, NodeId>>,
}

impl Shared {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<u32, NodeId>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of items being created. Their first changes may arrive before the call ends.
struct Numbers<'a> {
    shared: &'a Shared,
    numbers: Vec<u32>,
}

impl<'a> Numbers<'a> {
    fn of(shared: &'a Shared, wanted: &[WantedItem]) -> Self {
        let mut nodes = shared.nodes();
        let number = |WantedItem { request, .. }: &WantedItem| {
            let number = request.requested_parameters.client_handle;
            nodes.insert(number, request.item_to_monitor.node_id.clone());
            number
        };
        Self { shared, numbers: wanted.iter().map(number).collect() }
    }

    fn keep(mut self) {
        self.numbers.clear();
    }
}

/// The call failed or was cancelled.
impl Drop for Numbers<'_> {
    fn drop(&mut self) {
        let mut nodes = self.shared.nodes();
        for number in &self.numbers {
            nodes.remove(number);
        }
    }
}

/// Changes a subscription while another task reads its stream. Cheap to clone.
///
/// Dropping handles has no effect. Dropping the stream deletes the subscription; calls of its handles then fail.
#[derive(Debug, Clone)]
pub struct SubscriptionHandle(Arc<Shared>);

/// The stream of [`Update`]s of a subscription. Dropping it deletes the subscription on the server.
#[derive(Debug)]
pub struct Updates {
    shared: Arc<Shared>,
    messages: SubscriptionMessages,
    /// Updates from the last message that are not yet delivered.
    updates: VecDeque<Update>,
}

/// A subscription: a stream of [`Update`]s, with its handle. Dropping it deletes it on the server.
///
/// It survives lost connections and restarts of the server; [`Update::State`] reports when values may be missing. To monitor more
/// items while another task reads, [split](Self::split) it or take a [handle](Self::handle).
#[derive(Debug)]
pub struct Subscription {
    handle: SubscriptionHandle,
    updates: Updates,
}

impl Client {
    /// Creates a subscription; `options` can be the publishing interval alone.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
    /// use std::time::Duration;
    ///
    /// let mut subscription = client.subscribe(Duration::from_millis(100)).await?;
    /// subscription.monitor("nsu=urn:example:boilers;s=Boiler 1/Temperature").await?;
    /// while let Some(change) = subscription.next_change().await {
    ///     println!("{} is {:?}", change.node, change.value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server refuses or does not answer, or the client has ended.
    pub async fn subscribe(&self, options: impl Into<SubscriptionOptions>) -> Result<Subscription, Error> {
        let SubscriptionOptions { params } = options.into();
        let publishes = AtomicBool::new(params.publishing_enabled);
        let (id, messages) = self.inner.create_subscription(params).await?;
        let shared = Arc::new(Shared {
            client: self.clone(),
            id,
            publishes,
            next_item: AtomicU32::new(0),
            nodes: Mutex::default(),
        });
        let updates = Updates { shared: Arc::clone(&shared), messages, updates: VecDeque::new() };
        Ok(Subscription { handle: SubscriptionHandle(shared), updates })
    }
}

impl SubscriptionHandle {
    /// Monitors the value of a node. Returns the item's number, which its changes carry.
    ///
    /// # Errors
    /// The server refuses or does not answer, the subscription is deleted, or the client has ended. The node is not
    /// monitored then.
    pub async fn monitor(&self, node: impl ToNodeId) -> Result<u32, Error> {
        loop {
            let namespaces = self.0.client.namespaces();
            let id = node.to_node_id(&namespaces)?;
            let what = format!("monitor {id}");
            let wanted = [Item::new(id).wanted(self.next_item())];
            let numbers = Numbers::of(&self.0, &wanted);
            match self.inner().add_items_in(&namespaces, self.0.id, wanted).await {
                Err(ClientError::Local(Misuse::NamespacesChanged)) => {}
                results => return self.only(what, &results?, numbers).await,
            }
        }
    }

    /// Monitors an item with its own settings.
    ///
    /// # Errors
    /// As [`Self::monitor`].
    pub async fn monitor_item(&self, item: Item) -> Result<u32, Error> {
        let what = format!("monitor {item}");
        let wanted = [item.wanted(self.next_item())];
        let numbers = Numbers::of(&self.0, &wanted);
        let results = self.inner().add_items(self.0.id, wanted).await?;
        self.only(what, &results, numbers).await
    }

    /// Monitors many items. Returns number and status of each, in the order of the list. Requests are split to respect the
    /// server's limits. Refused items are tried again when the subscription is recreated; [`Self::unmonitor`] removes them.
    ///
    /// # Errors
    /// The server does not answer, the subscription is deleted, or the client has ended. None of the items is monitored
    /// then.
    pub async fn monitor_many(
        &self,
        items: impl IntoIterator<Item = Item>,
    ) -> Result<Vec<(u32, StatusCode)>, Error> {
        let wanted: Vec<WantedItem> = items.into_iter().map(|item| item.wanted(self.next_item())).collect();
        let numbers = Numbers::of(&self.0, &wanted);
        let results = self.inner().add_items(self.0.id, wanted).await?;
        numbers.keep();
        Ok(results.into_iter().map(|result| (result.client_handle, result.status)).collect())
    }

    /// The number of the only item of a call, if the server accepted it.
    async fn only(&self, what: String, results: &[ItemResult], numbers: Numbers<'_>) -> Result<u32, Error> {
        let Some(ItemResult { client_handle, status, .. }) = results.first() else {
            return Err(Error::status_of(what, StatusCode::BAD_UNEXPECTED_ERROR));
        };
        if status.is_bad() {
            self.unmonitor([*client_handle]).await?;
            return Err(Error::status_of(what, *status));
        }
        numbers.keep();
        Ok(*client_handle)
    }

    fn next_item(&self) -> u32 {
        self.0.next_item.fetch_add(1, Ordering::Relaxed)
    }

    /// Stops monitoring items, by their numbers.
    ///
    /// # Errors
    /// The subscription is deleted, or the client has ended.
    pub async fn unmonitor(&self, items: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        let items: Vec<u32> = items.into_iter().collect();
        {
            let mut nodes = self.0.nodes();
            for item in &items {
                nodes.remove(item);
            }
        }
        Ok(self.inner().remove_items(self.0.id, items).await?)
    }

    /// Disables items, enables them, or sets them to sampling without reporting.
    ///
    /// # Errors
    /// The subscription is deleted, or the client has ended.
    pub async fn set_monitoring_mode(
        &self,
        items: impl IntoIterator<Item = u32>,
        mode: MonitoringMode,
    ) -> Result<(), Error> {
        let items = items.into_iter().collect();
        Ok(self.inner().set_monitoring_mode(self.0.id, items, mode).await?)
    }

    /// Changes the publishing settings, and returns when the server has agreed. Without a connection, they apply from the next
    /// connection on.
    ///
    /// # Errors
    /// The server refuses or does not answer, the subscription is deleted, or the client has ended.
    pub async fn modify(&self, options: impl Into<SubscriptionOptions>) -> Result<(), Error> {
        let publishing_enabled = self.0.publishes.load(Ordering::Relaxed);
        let params = SubscriptionParams { publishing_enabled, ..options.into().params };
        Ok(self.inner().modify_subscription(self.0.id, params).await?)
    }

    /// Enables or disables publishing. While disabled, the server keeps sampling and queues as many values as the items' queues
    /// hold.
    ///
    /// # Errors
    /// As [`Self::modify`].
    pub async fn set_publishing_mode(&self, enabled: bool) -> Result<(), Error> {
        self.inner().set_publishing_mode(self.0.id, enabled).await?;
        self.0.publishes.store(enabled, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the subscription durable (Part 4 §6.8): the server keeps it and its undelivered notifications for so many hours
    /// without this client, also across restarts of the server. 0 asks for the server's maximum. Call this before monitoring
    /// anything. Returns the hours that the server grants.
    ///
    /// If the server loses the subscription all the same, it is recreated and is no longer durable. An [`Update::State`] reports
    /// this.
    ///
    /// # Errors
    /// The server does not support durable subscriptions (Bad_NotExecutable, Bad_NotImplemented or similar), something is
    /// monitored already (Bad_InvalidState), or there is no answer.
    pub async fn make_durable(&self, hours: u32) -> Result<u32, Error> {
        let gone =
            || Error::status_of("make a subscription durable", StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
        let id = self.server_id().await?.ok_or_else(gone)?;
        let server = NodeId::numeric(0, object_ids::SERVER);
        let method = NodeId::numeric(0, method_ids::SERVER_SET_SUBSCRIPTION_DURABLE);
        let (revised,): (u32,) = self.0.client.call(server, method, (id, hours)).await?;
        Ok(revised)
    }

    /// Deletes the subscription, and returns when the server has deleted it. Its stream ends.
    ///
    /// # Errors
    /// The server does not answer, the subscription is deleted already, or the client has ended. In any case the client stops
    /// using it.
    pub async fn delete(&self) -> Result<(), Error> {
        Ok(self.inner().end_subscription(self.0.id).await?)
    }

    /// The SubscriptionId, while the subscription exists on the server.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn server_id(&self) -> Result<Option<u32>, Error> {
        Ok(self.inner().server_ids(self.0.id, 0).await?.0)
    }

    /// The client that it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    fn inner(&self) -> &AsyncClient {
        &self.0.client.inner
    }
}

impl Subscription {
    /// A handle for other tasks, to monitor more items and change the subscription.
    #[must_use]
    pub fn handle(&self) -> SubscriptionHandle {
        self.handle.clone()
    }

    /// Separates the handle from the stream. The subscription lives as long as the stream.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
    /// use std::time::Duration;
    ///
    /// let (handle, mut updates) = client.subscribe(Duration::from_millis(100)).await?.split();
    /// let reader = tokio::spawn(async move {
    ///     while let Some(change) = updates.next_change().await {
    ///         println!("{} is {:?}", change.node, change.value);
    ///     }
    /// });
    /// handle.monitor("nsu=urn:example:boilers;s=Boiler 1/Temperature").await?;
    /// handle.monitor("nsu=urn:example:boilers;s=Boiler 2/Temperature").await?;
    /// # handle.delete().await?;
    /// # let _ = reader.await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn split(self) -> (SubscriptionHandle, Updates) {
        (self.handle, self.updates)
    }

    /// As [`SubscriptionHandle::monitor`].
    ///
    /// # Errors
    /// As [`SubscriptionHandle::monitor`].
    pub async fn monitor(&self, node: impl ToNodeId) -> Result<u32, Error> {
        self.handle.monitor(node).await
    }

    /// As [`SubscriptionHandle::monitor_item`].
    ///
    /// # Errors
    /// As [`SubscriptionHandle::monitor_item`].
    pub async fn monitor_item(&self, item: Item) -> Result<u32, Error> {
        self.handle.monitor_item(item).await
    }

    /// As [`SubscriptionHandle::monitor_many`].
    ///
    /// # Errors
    /// As [`SubscriptionHandle::monitor_many`].
    pub async fn monitor_many(
        &self,
        items: impl IntoIterator<Item = Item>,
    ) -> Result<Vec<(u32, StatusCode)>, Error> {
        self.handle.monitor_many(items).await
    }

    /// As [`SubscriptionHandle::unmonitor`].
    ///
    /// # Errors
    /// As [`SubscriptionHandle::unmonitor`].
    pub async fn unmonitor(&self, items: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        self.handle.unmonitor(items).await
    }

    /// As [`Updates::next`].
    pub async fn next(&mut self) -> Option<Update> {
        self.updates.next().await
    }

    /// As [`Updates::next_change`].
    pub async fn next_change(&mut self) -> Option<Change> {
        self.updates.next_change().await
    }
}

impl Stream for Subscription {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        self.get_mut().updates.poll_update(context)
    }
}

impl Updates {
    /// The next update; `None` when the subscription or the client has ended.
    pub async fn next(&mut self) -> Option<Update> {
        core::future::poll_fn(|context| self.poll_update(context)).await
    }

    /// The next changed value, skipping other updates; `None` when the subscription or the client has ended.
    pub async fn next_change(&mut self) -> Option<Change> {
        loop {
            match self.next().await? {
                Update::Change(change) => return Some(change),
                Update::Lagged(count) => {
                    tracing::warn!(count, "changes were dropped: the application reads too slowly")
                }
                Update::Event(..) | Update::State(_) => {}
            }
        }
    }

    fn poll_update(&mut self, context: &mut Context<'_>) -> Poll<Option<Update>> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                return Poll::Ready(Some(update));
            }
            match self.messages.poll_next(context) {
                Poll::Ready(Some(message)) => self.take_apart(message),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn take_apart(&mut self, message: SubscriptionMessage) {
        match message {
            SubscriptionMessage::DataChanges { publish_time, values, .. } => {
                let nodes = self.shared.nodes();
                for (item, value) in values {
                    // Changes of removed items are ignored.
                    if let Some(node) = nodes.get(&item) {
                        let change = Change { item, node: node.clone(), value, publish_time };
                        self.updates.push_back(Update::Change(change));
                    }
                }
            }
            SubscriptionMessage::Events { events, .. } => {
                self.updates.extend(events.into_iter().map(|(item, fields)| Update::Event(item, fields)));
            }
            SubscriptionMessage::State(event) => {
                if let SubscriptionEvent::Items(results) = &event {
                    let mut nodes = self.shared.nodes();
                    for ItemResult { client_handle, node_id, .. } in results {
                        // The item was resolved from a path, or the namespace index changed when the server restarted.
                        if let Some(node) = nodes.get_mut(client_handle) {
                            node.clone_from(node_id);
                        }
                    }
                }
                self.updates.push_back(Update::State(event));
            }
            SubscriptionMessage::Lagged(count) => self.updates.push_back(Update::Lagged(count)),
        }
    }
}

impl Stream for Updates {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        self.get_mut().poll_update(context)
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.shared.client.inner.delete_subscription(self.shared.id);
    }
}
