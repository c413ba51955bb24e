//! Clients: connecting, reading, writing, browsing, calling, subscribing.
//!
//! - [`builder`]: how to connect; [`error`]: what can go wrong; [`node_id`]: what can stand for a node;
//! - [`attribute`], [`browse`], [`call`]: the services; [`subscription`]: changes of values as a stream;
//! - [`dynamic`]: structures that only the server knows.

pub mod attribute;
pub mod browse;
pub mod builder;
pub mod call;
pub mod dynamic;
pub mod error;
pub mod node_id;
pub mod subscription;

pub use attribute::Attribute;
pub use browse::BrowseOptions;
pub use builder::ClientBuilder;
pub use error::Error;
pub use node_id::ToNodeId;
pub use subscription::{Change, Item, Subscription, SubscriptionOptions, Update};
pub use taktwerk_client::{
    ClientConfig, ClientError, Event, Identity, ReconnectPolicy, Secret, Security, SessionInfo, Splittable,
    SubscriptionEvent, Target,
};
pub use taktwerk_net::client::ClientEvents;

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_client::TypeReader;
use taktwerk_net::client::AsyncClient;
use taktwerk_schema::service::Request;
use taktwerk_schema::{EndpointDescription, GetEndpointsRequest};
use taktwerk_types::{NodeId, UaString};

/// A connected client. Cheap to clone; all clones share one session. When the last one and all its subscriptions are
/// gone, the session is closed.
///
/// The connection is kept: after it was lost, the client connects again, takes its session up or makes a new one, and
/// its subscriptions go on. Requests that were under way fail, because only the application knows whether they may be
/// sent twice.
#[derive(Debug, Clone)]
pub struct Client {
    inner: AsyncClient,
    info: Arc<SessionInfo>,
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

    pub(crate) fn new(inner: AsyncClient, info: SessionInfo, events: ClientEvents) -> Self {
        Self {
            inner,
            info: Arc::new(info),
            events: Arc::new(Mutex::new(Some(events))),
            types: Arc::default(),
        }
    }

    /// What was known of the session when it was made.
    #[must_use]
    pub fn session_info(&self) -> &SessionInfo {
        &self.info
    }

    /// The server's NamespaceArray as it was when the session was made.
    #[must_use]
    pub fn namespaces(&self) -> &[UaString] {
        &self.info.namespaces
    }

    /// The index of a namespace.
    #[must_use]
    pub fn namespace_index(&self, uri: &str) -> Option<u16> {
        u16::try_from(self.namespaces().iter().position(|known| known == uri)?).ok()
    }

    /// State changes: connection lost, restored, ended. They can be taken once; without anybody listening they are
    /// dropped.
    #[must_use]
    pub fn events(&self) -> Option<ClientEvents> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take()
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

    fn resolve(&self, node: impl ToNodeId) -> Result<NodeId, Error> {
        node.to_node_id(self.namespaces())
    }
}
