//! Clients: connecting, reading, writing, browsing, calling, subscribing.
//!
//! - [`builder`]: settings of a connection; [`error`]: errors; [`node_id`]: ways to name a node;
//! - [`attribute`], [`browse`], [`call`], [`history`], [`node_management`]: the services;
//! - [`subscription`]: subscriptions, with changes as a stream; [`item`]: monitored items;
//! - [`condition`]: conditions and alarms;
//! - [`dynamic`]: structures whose types only the server defines.

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

/// A connected client. Cheap to clone; all clones share one session. The session is closed when the last clone and all its
/// subscriptions are dropped.
///
/// The client maintains the connection: after a loss it reconnects, reactivates its session or creates a new one, and continues
/// its subscriptions. Requests in progress fail, because only the application knows whether they may be sent twice. Every call
/// ends with the server's answer, or with an error after the [request timeout](ClientBuilder::request_timeout).
///
/// # Namespaces
/// A server may have another NamespaceArray after a restart. Prefer `nsu=urn:plant;s=Boiler` to `ns=2;s=Boiler`: the URI is
/// resolved in the current array when the request is sent. Monitored items follow the URIs of their namespaces in any case. A
/// [`NodeId`] kept by the application, for example from [`Client::find`], does not: look it up again after
/// [`Note::NamespacesChanged`](taktwerk_client::Note::NamespacesChanged) among the [`Client::events`].
#[derive(Debug, Clone)]
pub struct Client {
    inner: AsyncClient,
    events: Arc<Mutex<Option<ClientEvents>>>,
    types: Arc<tokio::sync::Mutex<TypeReader>>,
}

impl Client {
    /// Connects to a server anonymously, with the best security that both sides support. Must be called within a tokio runtime
    /// with I/O and time enabled.
    ///
    /// # Errors
    /// Why the connection failed.
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
    /// Why the request failed.
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

    /// Information about the session, as of the last connection.
    #[must_use]
    pub fn session_info(&self) -> Arc<SessionInfo> {
        self.inner.session_info()
    }

    /// The server's NamespaceArray, as of the last connection.
    #[must_use]
    pub fn namespaces(&self) -> Namespaces {
        self.inner.session_info().namespaces.clone()
    }

    /// The index of a namespace.
    #[must_use]
    pub fn namespace_index(&self, uri: &str) -> Option<u16> {
        self.namespaces().index(uri)
    }

    /// State changes: connection lost, restored, ended. The receiver can be taken once; until then changes are dropped.
    #[must_use]
    pub fn events(&self) -> Option<ClientEvents> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the client has ended permanently: it was disconnected, or an error occurred that is not retried.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    /// Sends a request of any service, for services without a method here.
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

    /// Sends a list of operations, split into requests to respect the server's limits.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn operate<R: Splittable>(&self, request: R) -> Result<R::Response, Error> {
        Ok(self.inner.operate(request).await?)
    }

    /// Closes session and connection, and returns when that is done.
    pub async fn disconnect(&self) {
        self.inner.disconnect().await;
    }

    /// Sends operations that are built from the NamespaceArray. They are built again if the NamespaceArray changes before they
    /// are sent.
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
