//! One client as a tokio task.
//!
//! - [`AsyncClient`]: the handle, cheap to clone; the task ends when the last one is gone;
//! - `driver`: the task, which owns core and socket; `queue`: what waits for the application.

mod driver;
mod queue;

use crate::clock::{self, monotonic};
use crate::entropy::OsEntropy;
use core::task::{Context, Poll};
use core::time::Duration;
use driver::{Act, Driver};
use queue::{Receiver, channel};
use std::sync::Arc;
use taktwerk_client::{
    Client, ClientConfig, ClientError, Event, Misuse, OwnedReply, RequestHandle, SessionInfo, Splittable,
    SubscriptionEvent, SubscriptionHandle, SubscriptionParams, Target, TypeQuestion, TypeReader,
};
use taktwerk_schema::service::Request;
use taktwerk_schema::{MonitoredItemCreateRequest, MonitoringMode};
use taktwerk_types::{DataValue, UtcTime, Variant};
use tokio::sync::{mpsc, oneshot};

/// Changes of values, events and state changes that wait for the application, per subscription; beyond, the oldest
/// messages are dropped and [`SubscriptionMessage::Lagged`] says so.
const SUBSCRIPTION_QUEUE_MAX: usize = 1_000_000;
/// State changes of the client that wait for the application.
const EVENT_QUEUE_MAX: usize = 1_000;

/// A handle to a client that runs as a task. When the last handle is gone, session and connection are closed.
#[derive(Debug, Clone)]
pub struct AsyncClient {
    acts: mpsc::UnboundedSender<Act>,
}

/// State changes of a client.
#[derive(Debug)]
pub struct ClientEvents(Receiver<Event>);

/// What comes from a subscription.
#[derive(Debug)]
pub struct SubscriptionMessages(Receiver<SubscriptionMessage>);

/// Something from a subscription.
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
    /// The application was too slow: this many changes and events were dropped.
    Lagged(usize),
}

impl SubscriptionMessage {
    /// How much of the queue it takes.
    fn weight(&self) -> usize {
        match self {
            Self::DataChanges { values, .. } => values.len().max(1),
            Self::Events { events, .. } => events.len().max(1),
            Self::State(_) | Self::Lagged(_) => 1,
        }
    }
}

impl AsyncClient {
    /// Connects; returns when the session is up, with what is known of it. Must be called within a tokio runtime with
    /// I/O and time enabled.
    ///
    /// # Errors
    /// Why it could not be.
    pub async fn connect(
        config: Arc<ClientConfig>,
        target: Target,
    ) -> Result<(Self, SessionInfo, ClientEvents), ClientError> {
        let mut core = Client::new(config, Box::new(OsEntropy));
        core.set_utc_origin(clock::origin());
        core.connect(target, monotonic())?;
        let (acts, told) = mpsc::unbounded_channel();
        let (events, mut received) = channel(EVENT_QUEUE_MAX);
        tokio::spawn(Driver::new(core, told, events).run());
        loop {
            match received.next().await {
                Some(Event::Connected(info)) => return Ok((Self { acts }, *info, ClientEvents(received))),
                Some(Event::Disconnected(error)) => return Err(error.unwrap_or_else(ended)),
                Some(_) => {}
                None => return Err(ended()),
            }
        }
    }

    /// Does something with the core, in the driver's task.
    fn act(&self, act: impl FnOnce(&mut Driver) + Send + 'static) -> Result<(), ClientError> {
        self.acts.send(Box::new(act)).map_err(|_| Misuse::NotConnected.into())
    }

    /// Does something with the core and waits for what it says.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Driver) -> T + Send + 'static,
    ) -> Result<T, ClientError> {
        let (answer, answered) = oneshot::channel();
        self.act(move |driver| {
            // Whoever asked may have given up since.
            let _ = answer.send(ask(driver));
        })?;
        answered.await.map_err(|_| ended())
    }

    async fn reply(
        &self,
        send: impl FnOnce(&mut Client) -> Result<RequestHandle, ClientError> + Send + 'static,
    ) -> Result<OwnedReply, ClientError> {
        let (answer, answered) = oneshot::channel();
        self.act(move |driver| match send(driver.core()) {
            Ok(handle) => driver.wait_for(handle, answer),
            Err(error) => {
                // Whoever asked may have given up since.
                let _ = answer.send(Err(error));
            }
        })?;
        answered.await.map_err(|_| ended())?
    }

    /// Sends a request of any service and waits for its answer; `timeout` defaults to the configured one.
    ///
    /// # Errors
    /// Why there is no answer.
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

    /// Sends a list of operations in as many parts as the server wants, and waits for all results.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn operate<R: Splittable>(&self, request: R) -> Result<R::Response, ClientError> {
        self.reply(move |core| core.operate(request, monotonic())).await?.decode()
    }

    /// Asks the server what a reader of types wants to know, until it knows everything.
    ///
    /// # Errors
    /// There was no answer; the reader goes on where it was with the next call.
    pub async fn learn(&self, reader: &mut TypeReader) -> Result<(), ClientError> {
        while let Some(question) = reader.question() {
            match question {
                TypeQuestion::Browse(request) => reader.browsed(self.operate(request).await)?,
                TypeQuestion::Read(request) => reader.read(self.operate(request).await)?,
            }
        }
        Ok(())
    }

    /// Adds a subscription. It is created at once, and again whenever the server loses it.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn create_subscription(
        &self,
        params: SubscriptionParams,
    ) -> Result<(SubscriptionHandle, SubscriptionMessages), ClientError> {
        self.ask(move |driver| {
            let handle = driver.core().create_subscription(params, monotonic());
            let (sender, receiver) = channel(SUBSCRIPTION_QUEUE_MAX);
            driver.subscribe(handle, sender);
            (handle, SubscriptionMessages(receiver))
        })
        .await
    }

    /// Adds monitored items; what becomes of them comes as [`SubscriptionEvent::Items`].
    ///
    /// # Errors
    /// There is no such subscription, or the client has ended.
    pub async fn add_items(
        &self,
        subscription: SubscriptionHandle,
        items: Vec<MonitoredItemCreateRequest>,
    ) -> Result<(), ClientError> {
        Ok(self.ask(move |driver| driver.core().add_items(subscription, items, monotonic())).await??)
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

    /// Changes what is asked of a subscription.
    ///
    /// # Errors
    /// There is no such subscription, or the client has ended.
    pub async fn modify_subscription(
        &self,
        subscription: SubscriptionHandle,
        params: SubscriptionParams,
    ) -> Result<(), ClientError> {
        Ok(self
            .ask(move |driver| driver.core().modify_subscription(subscription, params, monotonic()))
            .await??)
    }

    /// Deletes a subscription, without waiting for the server.
    pub fn delete_subscription(&self, subscription: SubscriptionHandle) {
        // If the client has ended, so has the subscription.
        let _ = self.act(move |driver| {
            let _ = driver.core().delete_subscription(subscription, monotonic());
            driver.unsubscribe(subscription);
        });
    }

    /// The server's ids of a subscription and of one of its items, while they exist there.
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
        if self.act(move |driver| driver.disconnect(Some(answer))).is_ok() {
            // An error means that the driver is gone: that is what was wanted.
            let _ = answered.await;
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
