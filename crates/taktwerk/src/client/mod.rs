//! Clients: connecting, reading, writing, browsing, calling, subscribing.
//!
//! - [`builder`]: how to connect; [`error`]: what can go wrong; [`node_id`]: what can stand for a node;
//! - [`attribute`], [`browse`], [`call`], [`history`], [`node_management`]: the services;
//! - [`subscription`]: what is monitored, and changes of values as a stream; [`item`]: what can be monitored;
//! - [`condition`]: conditions and alarms;
//! - [`dynamic`]: structures that only the server knows.

pub mod attribute;
pub mod browse;
pub mod builder;
pub mod call;
pub mod condition;
pub mod dynamic;
pub mod error;
pub mod history;
pub mod item;
pub mod node_id;
pub mod node_management;
pub mod query;
pub mod subscription;

pub use attribute::Attribute;
pub use browse::{BrowseOptions, BrowsePage};
pub use builder::ClientBuilder;
pub use condition::{ConditionList, Conditions};
pub use error::Error;
pub use history::{HistoryPage, HistoryPages, HistoryQuery, HistoryRange};
pub use item::Item;
pub use node_id::ToNodeId;
pub use node_management::NewNode;
pub use query::NodeQuery;
pub use subscription::{Change, Subscription, SubscriptionHandle, SubscriptionOptions, Update, Updates};
pub use taktwerk_client::condition::{ConditionEvent, TableChange, calls};
pub use taktwerk_client::{
    ClientConfig, ClientError, Event, EventQuery, EventQueryError, Identity, ItemResult, Namespaces,
    ReconnectPolicy, Secret, Security, SessionInfo, Splittable, SubscriptionEvent, Target,
};
pub use taktwerk_net::client::ClientEvents;

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_client::{Misuse, TypeReader};
use taktwerk_net::client::AsyncClient;
use taktwerk_schema::service::Request;
use taktwerk_schema::{EndpointDescription, GetEndpointsRequest};
#[cfg(doc)]
use taktwerk_types::NodeId;

/// A connected client. Cheap to clone; all clones share one session. When the last one and all its subscriptions are
/// gone, the session is closed.
///
/// The connection is kept: after it was lost, the client connects again, takes its session up or makes a new one, and
/// its subscriptions go on. Requests that were under way fail, because only the application knows whether they may be
/// sent twice. Every call ends: with the server's answer, or with an error when the
/// [request timeout](ClientBuilder::request_timeout) is over.
///
/// # Namespaces
/// A server can have another NamespaceArray after a restart. Write `nsu=urn:plant;s=Boiler` instead of `ns=2;s=Boiler`:
/// the URI is looked up in the array as it is when the request is sent. Monitored items follow the URIs of their
/// namespaces, however they were named. A [`NodeId`] that the application keeps, for example from [`Client::find`], does
/// not: [`Note::NamespacesChanged`](taktwerk_client::Note::NamespacesChanged) among the [`Client::events`] says that it has
/// to be looked up again.
#[derive(Debug, Clone)]
pub struct Client {
    inner: AsyncClient,
    events: Arc<Mutex<Option<ClientEvents>>>,
    types: Arc<tokio::sync::Mutex<TypeReader>>,
}

impl Client {
    /// Connects to a server, with the best security that both have, anonymously. Must be called within a tokio runtime
    /// with I/O and time enabled.
    ///
    /// # Errors
    /// Why it was not possible.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect().await
    }

    /// Begins a client with other settings.
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder::new(url)
    }

    /// Asks a server for its endpoints, without a session.
    ///
    /// # Errors
    /// Why it was not possible.
    pub async fn endpoints(url: &str) -> Result<Vec<EndpointDescription>, Error> {
        let mut target = Target::direct(url).map_err(ClientError::from)?;
        target.session = false;
        let request =
            GetEndpointsRequest { endpoint_url: target.url.to_string().into(), ..Default::default() };
        let config = ClientConfig { read_limits: false, ..ClientConfig::default() };
        let (inner, ..) = AsyncClient::connect(Arc::new(config), target).await?;
        let response = inner.request(request, None).await;
        inner.disconnect().await;
        Ok(response?.endpoints)
    }

    pub(crate) fn new(inner: AsyncClient, events: ClientEvents) -> Self {
        Self { inner, events: Arc::new(Mutex::new(Some(events))), types: Arc::default() }
    }

    /// What is known of the session, as of the last time that the connection was made.
    #[must_use]
    pub fn session_info(&self) -> Arc<SessionInfo> {
        self.inner.session_info()
    }

    /// The server's NamespaceArray, as of the last time that the connection was made.
    #[must_use]
    pub fn namespaces(&self) -> Namespaces {
        self.inner.session_info().namespaces.clone()
    }

    /// The index of a namespace.
    #[must_use]
    pub fn namespace_index(&self, uri: &str) -> Option<u16> {
        self.namespaces().index(uri)
    }

    /// State changes: connection lost, restored, ended. They can be taken once; without anybody listening they are
    /// dropped.
    #[must_use]
    pub fn events(&self) -> Option<ClientEvents> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the client has ended for good: it was disconnected, or an error came that is not retried.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    /// Sends a request of any service: for what has no method of its own here.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn request<R>(&self, request: R, timeout: Option<Duration>) -> Result<R::Response, Error>
    where
        R: Request + Send + 'static,
        R::Response: 'static,
    {
        Ok(self.inner.request(request, timeout).await?)
    }

    /// Sends a list of operations, in as many requests as the server's limits want.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn operate<R: Splittable>(&self, request: R) -> Result<R::Response, Error> {
        Ok(self.inner.operate(request).await?)
    }

    /// Closes session and connection and waits until that is done.
    pub async fn disconnect(&self) {
        self.inner.disconnect().await;
    }

    /// Sends a list of operations that is made with the NamespaceArray. If the server comes back with another one before
    /// it is sent, it is made again.
    async fn operate_with<R: Splittable, T>(
        &self,
        make: impl Fn(&Namespaces) -> Result<(R, T), Error>,
    ) -> Result<(R::Response, T), Error> {
        loop {
            let namespaces = self.namespaces();
            let (request, about) = make(&namespaces)?;
            match self.inner.operate_in(&namespaces, request).await {
                Err(ClientError::Local(Misuse::NamespacesChanged)) => {}
                result => return Ok((result?, about)),
            }
        }
    }
}
