//! One client as a tokio task.
//!
//! - [`AsyncClient`]: the handle, cheap to clone; the task ends when the last handle is dropped;
//! - `driver`: the task, which owns core and socket;
//! - `queue`: bounded queues to the application;
//! - `waiting`: calls that wait for results.

mod driver;
mod queue;
mod waiting;

use crate::clock::{self, monotonic};
use crate::entropy::OsEntropy;
use core::task::{Context, Poll};
use core::time::Duration;
use driver::{Command, Driver};
use queue::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_client::{
    Client, ClientConfig, ClientError, Event, ItemResult, Misuse, Namespaces, OwnedReply, RequestHandle,
    SessionInfo, Splittable, SubscriptionEvent, SubscriptionHandle, SubscriptionParams, Target, TypeQuestion,
    TypeReader, WantedItem,
};
use taktwerk_schema::MonitoringMode;
use taktwerk_schema::service::Request;
use taktwerk_types::{DataValue, UtcTime, Variant};
use tokio::sync::{mpsc, oneshot};
use waiting::{Answer, Change};

/// Maximum number of queued value changes, events and state changes per subscription. When the queue is full, the
/// oldest messages are dropped and [`SubscriptionMessage::Lagged`] reports how many.
const SUBSCRIPTION_QUEUE_MAX: usize = 1_000_000;
/// Maximum number of queued state changes of the client.
const EVENT_QUEUE_MAX: usize = 1_000;
/// Additional timeout per item of a call that creates items.
const PER_ITEM: Duration = Duration::from_millis(1);

/// A handle to a client that runs as a task. Dropping the last handle closes session and connection.
///
/// Every call ends: with the server's answer, or with [`ClientError::Timeout`] after the configured request timeout.
/// Dropping the future of a call cancels its effect: items and subscriptions that it asked for are deleted.
#[derive(Debug, Clone)]
pub struct AsyncClient {
    commands: mpsc::UnboundedSender<Command>,
    info: Arc<Mutex<Arc<SessionInfo>>>,
    timeout: Duration,
}

/// Undoes the request of a call unless the call has succeeded.
struct TakeBack<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> TakeBack<F> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for TakeBack<F> {
    fn drop(&mut self) {
        if let Some(take_back) = self.0.take() {
            take_back();
        }
    }
}

/// Receives state changes of a client.
#[derive(Debug)]
pub struct ClientEvents(Receiver<Event>);

/// Receives the messages of a subscription.
#[derive(Debug)]
pub struct SubscriptionMessages(Receiver<SubscriptionMessage>);

/// A message of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionMessage {
    /// Values changed.
    DataChanges {
        /// Number of the notification message.
        sequence_number: u32,
        /// When the server sent it.
        publish_time: UtcTime,
        /// Client handle and value of each change.
        values: Vec<(u32, DataValue)>,
    },
    /// Events happened.
    Events {
        /// Number of the notification message.
        sequence_number: u32,
        /// Client handle and fields of each event.
        events: Vec<(u32, Vec<Variant>)>,
    },
    /// The subscription's state changed.
    State(SubscriptionEvent),
    /// The application was too slow: this number of changes and events was dropped.
    Lagged(usize),
}

impl SubscriptionMessage {
    /// How many entries of the queue limit the message takes.
    fn weight(&self) -> usize {
        match self {
            Self::DataChanges { values, .. } => values.len().max(1),
            Self::Events { events, .. } => events.len().max(1),
            Self::State(_) | Self::Lagged(_) => 1,
        }
    }
}

impl AsyncClient {
    /// Connects. Returns when the session is active, with its data. Must be called within a tokio runtime with I/O and
    /// time enabled. With [`ReconnectPolicy::retry_first`](taktwerk_client::ReconnectPolicy::retry_first) it retries
    /// for as long as the policy allows.
    ///
    /// # Errors
    /// The first connection failed and is not retried.
    pub async fn connect(
        config: Arc<ClientConfig>,
        target: Target,
    ) -> Result<(Self, SessionInfo, ClientEvents), ClientError> {
        let timeout = config.request_timeout;
        let mut core = Client::new(config, Box::new(OsEntropy));
        core.set_utc_origin(clock::origin());
        core.connect(target, monotonic())?;
        let (commands, receiver) = mpsc::unbounded_channel();
        let (events, mut received) = channel(EVENT_QUEUE_MAX);
        let info = Arc::<Mutex<Arc<SessionInfo>>>::default();
        tokio::spawn(Driver::new(core, receiver, events, Arc::clone(&info)).run());
        loop {
            match received.next().await {
                Some(Event::Connected(known)) => {
                    return Ok((Self { commands, info, timeout }, *known, ClientEvents(received)));
                }
                Some(Event::Disconnected(error)) => return Err(error.unwrap_or_else(ended)),
                Some(_) => {}
                None => return Err(ended()),
            }
        }
    }

    /// Data of the session, as of the last successful connect.
    #[must_use]
    pub fn session_info(&self) -> Arc<SessionInfo> {
        Arc::clone(&self.info.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the client has ended for good: it was disconnected, or an error occurred that is not retried.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.commands.is_closed()
    }

    /// Runs a closure on the core, in the driver's task.
    fn command(&self, act: impl FnOnce(&mut Driver) + Send + 'static) -> Result<(), ClientError> {
        self.commands.send(Box::new(act)).map_err(|_| Misuse::NotConnected.into())
    }

    /// Runs a closure on the core and waits for its result.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Driver) -> T + Send + 'static,
    ) -> Result<T, ClientError> {
        let (answer, answered) = oneshot::channel();
        self.command(move |driver| {
            // The caller may have given up.
            let _ = answer.send(ask(driver));
        })?;
        answered.await.map_err(|_| ended())
    }

    async fn reply(
        &self,
        send: impl FnOnce(&mut Client) -> Result<RequestHandle, ClientError> + Send + 'static,
    ) -> Result<OwnedReply, ClientError> {
        let (answer, answered) = oneshot::channel();
        self.command(move |driver| match send(driver.core()) {
            Ok(handle) => driver.wait_for(handle, answer),
            Err(error) => {
                // The caller may have given up.
                let _ = answer.send(Err(error));
            }
        })?;
        answered.await.map_err(|_| ended())?
    }

    /// Sends a request of any service and waits for the answer. `timeout` defaults to the configured one.
    ///
    /// # Errors
    /// The request failed or was not answered in time.
    pub async fn request<R>(
        &self,
        mut request: R,
        timeout: Option<Duration>,
    ) -> Result<R::Response, ClientError>
    where
        R: Request + Send + 'static,
        R::Response: 'static,
    {
        self.reply(move |core| core.request(&mut request, timeout, monotonic())).await?.decode()
    }

    /// Sends a list of operations, split into as many requests as the server's limits require, and waits for all
    /// results.
    ///
    /// # Errors
    /// A request failed or was not answered in time.
    pub async fn operate<R: Splittable>(&self, request: R) -> Result<R::Response, ClientError> {
        self.reply(move |core| core.operate(request, monotonic())).await?.decode()
    }

    /// Like [`Self::operate`], for a request whose namespace indexes refer to the given NamespaceArray.
    ///
    /// # Errors
    /// [`Misuse::NamespacesChanged`] if the server's NamespaceArray is different now. Otherwise as [`Self::operate`].
    pub async fn operate_in<R: Splittable>(
        &self,
        namespaces: &Namespaces,
        request: R,
    ) -> Result<R::Response, ClientError> {
        let namespaces = namespaces.clone();
        self.reply(move |core| core.operate_in(&namespaces, request, monotonic())).await?.decode()
    }

    /// Reads type definitions from the server until the reader has all it needs.
    ///
    /// # Errors
    /// A request failed. The next call continues where the reader stopped.
    pub async fn learn(&self, reader: &mut TypeReader) -> Result<(), ClientError> {
        while let Some(question) = reader.question() {
            match question {
                TypeQuestion::Browse(request) => reader.browsed(self.operate(request).await)?,
                TypeQuestion::Read(request) => reader.read(self.operate(request).await)?,
            }
        }
        Ok(())
    }

    /// Waits for the result of a call.
    async fn wait<T>(
        &self,
        service: &'static str,
        limit: Duration,
        answered: oneshot::Receiver<Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        match tokio::time::timeout(limit, answered).await {
            Ok(answer) => answer.map_err(|_| ended())?,
            Err(_) => Err(ClientError::Timeout(service)),
        }
    }

    /// Requests a change of a subscription and waits until the server has made it.
    async fn change(
        &self,
        service: &'static str,
        subscription: SubscriptionHandle,
        change: Change,
        ask: impl FnOnce(&mut Client) -> Result<bool, Misuse> + Send + 'static,
    ) -> Result<(), ClientError> {
        let (answer, answered) = oneshot::channel();
        self.command(move |driver| match ask(driver.core()) {
            Ok(true) => driver.calls().change(subscription, change, answer),
            done => {
                // The caller may have given up.
                let _ = answer.send(done.map(drop).map_err(Into::into));
            }
        })?;
        self.wait(service, self.timeout, answered).await
    }

    /// Adds a subscription and waits until the server has created it. The client creates it again whenever the server
    /// has lost it.
    ///
    /// # Errors
    /// The server refuses or does not answer, or the client has ended. The subscription does not exist then.
    pub async fn create_subscription(
        &self,
        params: SubscriptionParams,
    ) -> Result<(SubscriptionHandle, SubscriptionMessages), ClientError> {
        let (answer, answered) = oneshot::channel();
        let own = self.clone();
        let (handle, messages, delete) = self
            .ask(move |driver| {
                let handle = driver.core().create_subscription(params, monotonic());
                let (sender, receiver) = channel(SUBSCRIPTION_QUEUE_MAX);
                driver.subscribe(handle, sender);
                driver.calls().change(handle, Change::Create, answer);
                // From here on the caller may drop the future before the answer arrives.
                let delete = TakeBack(Some(move || own.delete_subscription(handle)));
                (handle, SubscriptionMessages(receiver), delete)
            })
            .await?;
        self.wait("CreateSubscription", self.timeout, answered).await?;
        delete.keep();
        Ok((handle, messages))
    }

    /// Adds monitored items and waits until the server has created or refused them. Returns one result per item, in the
    /// order of the list. Later results, such as those after a reconnect, arrive as [`SubscriptionEvent::Items`].
    ///
    /// # Errors
    /// There is no such subscription, the server does not answer, or the client has ended. None of the items is kept
    /// then.
    pub async fn add_items(
        &self,
        subscription: SubscriptionHandle,
        items: impl IntoIterator<Item = impl Into<WantedItem>>,
    ) -> Result<Vec<ItemResult>, ClientError> {
        self.add(subscription, None, items.into_iter().map(Into::into).collect()).await
    }

    /// Like [`Self::add_items`], for items whose namespace indexes refer to the given NamespaceArray.
    ///
    /// # Errors
    /// [`Misuse::NamespacesChanged`] if the server's NamespaceArray is different now. Otherwise as [`Self::add_items`].
    pub async fn add_items_in(
        &self,
        namespaces: &Namespaces,
        subscription: SubscriptionHandle,
        items: impl IntoIterator<Item = impl Into<WantedItem>>,
    ) -> Result<Vec<ItemResult>, ClientError> {
        self.add(subscription, Some(namespaces.clone()), items.into_iter().map(Into::into).collect()).await
    }

    async fn add(
        &self,
        subscription: SubscriptionHandle,
        namespaces: Option<Namespaces>,
        items: Vec<WantedItem>,
    ) -> Result<Vec<ItemResult>, ClientError> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let handle_of = |item: &WantedItem| item.request.requested_parameters.client_handle;
        let client_handles: Arc<[u32]> = items.iter().map(handle_of).collect();
        let (answer, answered) = oneshot::channel();
        let wanted = Arc::clone(&client_handles);
        self.command(move |driver| add_wanted(driver, subscription, namespaces, items, &wanted, answer))?;
        let limit = self.timeout + PER_ITEM * u32::try_from(client_handles.len()).unwrap_or(u32::MAX);
        let remove = TakeBack(Some(|| {
            // If the client has ended, the items are gone, too.
            let _ = self.command(move |driver| {
                let _ = driver.core().remove_items(subscription, &client_handles, monotonic());
            });
        }));
        let results = self.wait("CreateMonitoredItems", limit, answered).await?;
        remove.keep();
        Ok(results)
    }

    /// Removes monitored items by their client handles.
    ///
    /// # Errors
    /// There is no such subscription, or the client has ended.
    pub async fn remove_items(
        &self,
        subscription: SubscriptionHandle,
        client_handles: Vec<u32>,
    ) -> Result<(), ClientError> {
        Ok(self
            .ask(move |driver| driver.core().remove_items(subscription, &client_handles, monotonic()))
            .await??)
    }

    /// Changes the monitoring mode of items.
    ///
    /// # Errors
    /// There is no such subscription, or the client has ended.
    pub async fn set_monitoring_mode(
        &self,
        subscription: SubscriptionHandle,
        client_handles: Vec<u32>,
        mode: MonitoringMode,
    ) -> Result<(), ClientError> {
        Ok(self
            .ask(move |driver| {
                driver.core().set_monitoring_mode(subscription, &client_handles, mode, monotonic())
            })
            .await??)
    }

    /// Changes the parameters of a subscription and waits until the server has accepted them. Without a connection, the
    /// change applies from the next connection on.
    ///
    /// # Errors
    /// There is no such subscription, the server refuses or does not answer, or the client has ended.
    pub async fn modify_subscription(
        &self,
        subscription: SubscriptionHandle,
        params: SubscriptionParams,
    ) -> Result<(), ClientError> {
        let ask = move |core: &mut Client| core.modify_subscription(subscription, params, monotonic());
        self.change("ModifySubscription", subscription, Change::Modify, ask).await
    }

    /// Enables or disables publishing and waits until the server has accepted it. Without a connection, the change
    /// applies from the next connection on.
    ///
    /// # Errors
    /// As [`Self::modify_subscription`].
    pub async fn set_publishing_mode(
        &self,
        subscription: SubscriptionHandle,
        enabled: bool,
    ) -> Result<(), ClientError> {
        let ask = move |core: &mut Client| core.set_publishing_mode(subscription, enabled, monotonic());
        self.change("SetPublishingMode", subscription, Change::Publishing, ask).await
    }

    /// Deletes a subscription and waits for the server's answer. The client drops the subscription in any case.
    ///
    /// # Errors
    /// There is no such subscription, the server does not answer, or the client has ended.
    pub async fn end_subscription(&self, subscription: SubscriptionHandle) -> Result<(), ClientError> {
        let ask = move |core: &mut Client| {
            core.delete_subscription(subscription, monotonic())?;
            Ok(core.knows_subscription(subscription))
        };
        let deleted = self.change("DeleteSubscriptions", subscription, Change::Delete, ask).await;
        self.delete_subscription(subscription);
        deleted
    }

    /// Deletes a subscription, without waiting for the server.
    pub fn delete_subscription(&self, subscription: SubscriptionHandle) {
        // If the client has ended, the subscription is gone, too.
        let _ = self.command(move |driver| {
            let _ = driver.core().delete_subscription(subscription, monotonic());
            driver.unsubscribe(subscription);
        });
    }

    /// The server's ids of a subscription and of one of its items. `None` while the server does not have them.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn server_ids(
        &self,
        subscription: SubscriptionHandle,
        client_handle: u32,
    ) -> Result<(Option<u32>, Option<u32>), ClientError> {
        self.ask(move |driver| {
            let core = driver.core();
            (core.subscription_id(subscription), core.monitored_item_id(subscription, client_handle))
        })
        .await
    }

    /// Closes session and connection and waits until that is done.
    pub async fn disconnect(&self) {
        let (answer, answered) = oneshot::channel();
        if self.command(move |driver| driver.disconnect(Some(answer))).is_ok() {
            // An error means that the driver has ended, as intended.
            let _ = answered.await;
        }
    }
}

/// Adds items if their namespace indexes refer to the current NamespaceArray, and registers a call that waits for their
/// results.
fn add_wanted(
    driver: &mut Driver,
    subscription: SubscriptionHandle,
    namespaces: Option<Namespaces>,
    items: Vec<WantedItem>,
    client_handles: &[u32],
    answer: Answer<Vec<ItemResult>>,
) {
    let core = driver.core();
    let added = match namespaces {
        Some(namespaces) if !core.has_namespaces(&namespaces) => Err(Misuse::NamespacesChanged),
        _ => core.add_items(subscription, items, monotonic()),
    };
    match added {
        Ok(()) => driver.calls().items(subscription, client_handles.iter().copied(), answer),
        Err(misuse) => {
            // The caller may have given up.
            let _ = answer.send(Err(misuse.into()));
        }
    }
}

fn ended() -> ClientError {
    ClientError::Connection("the client has ended".into())
}

impl ClientEvents {
    /// The next state change; `None` when the client has ended.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.next().await
    }

    /// Like [`Self::next`], for hand-written futures and streams.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_next(context)
    }
}

impl SubscriptionMessages {
    /// The next message; `None` when the subscription was deleted or the client has ended.
    pub async fn next(&mut self) -> Option<SubscriptionMessage> {
        self.0.next().await
    }

    /// Like [`Self::next`], for hand-written futures and streams.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<SubscriptionMessage>> {
        self.0.poll_next(context)
    }
}
