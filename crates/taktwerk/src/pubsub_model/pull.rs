//! The client of a key service: asks it for the keys of an engine's SecurityGroups (Part 14 §8.3.2, §5.4.5.3).

use crate::client::{Client, ClientBuilder, Error};
use crate::space::ns0;
use std::io;
use taktwerk_net::pubsub::KeySource;
use taktwerk_pubsub::security::{KeyRequest, SecurityKeys};
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_types::{ByteString, NodeId, StatusCode, UaString, Variant};
use tokio::runtime::{Builder, Runtime};

/// How a client for a key service's URL is made.
type Connect = Box<dyn Fn(&str) -> ClientBuilder + Send>;

/// Calls GetSecurityKeys at the key services of the configuration, or at one that is named here.
///
/// Connects for each call: they are hours apart.
pub struct KeyServiceClient {
    connect: Connect,
    default_url: Option<String>,
    runtime: Runtime,
}

impl core::fmt::Debug for KeyServiceClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeyServiceClient").field("default_url", &self.default_url).finish_non_exhaustive()
    }
}

impl KeyServiceClient {
    /// A client that connects as `connect` says: with certificates, because key services hand out keys over encrypting
    /// channels only.
    ///
    /// # Errors
    /// The operating system gives no event queue.
    pub fn new(connect: impl Fn(&str) -> ClientBuilder + Send + 'static) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { connect: Box::new(connect), default_url: None, runtime })
    }

    /// The key service of groups whose configuration names none.
    #[must_use]
    pub fn default_service(mut self, url: &str) -> Self {
        self.default_url = Some(url.to_owned());
        self
    }
}

impl KeySource for KeyServiceClient {
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
        let configured = request.services.iter().map(|service| service.endpoint_url.as_str());
        let mut urls: Vec<&str> = configured.filter(|url| !url.is_empty()).collect();
        if urls.is_empty() {
            urls.extend(self.default_url.as_deref());
        }
        let mut outcome = Err(StatusCode::BAD_CONFIGURATION_ERROR);
        for url in urls {
            outcome = self.runtime.block_on(async {
                let client = (self.connect)(url).connect().await.map_err(|error| error.status())?;
                get_security_keys(&client, request).await
            });
            match &outcome {
                Ok(_) => break,
                Err(status) => {
                    let group = &request.security_group_id;
                    tracing::warn!(url, group, %status, "the key service gave no keys");
                }
            }
        }
        outcome
    }
}

/// Calls GetSecurityKeys.
///
/// # Errors
/// What the server or the connection answered; Bad_TypeMismatch for results that are no keys.
pub async fn get_security_keys(client: &Client, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
    let (object, method): (NodeId, NodeId) =
        (ns0(object_ids::PUBLISH_SUBSCRIBE), ns0(method_ids::PUBLISH_SUBSCRIBE_GET_SECURITY_KEYS));
    let inputs: Vec<Variant> = vec![
        UaString::from(request.security_group_id.as_str()).into(),
        request.starting_token_id.into(),
        request.requested_key_count.into(),
    ];
    let outputs =
        client.call_variants(object, method, inputs).await.map_err(|error: Error| error.status())?;
    read(outputs).ok_or(StatusCode::BAD_TYPE_MISMATCH)
}

fn read(outputs: Vec<Variant>) -> Option<SecurityKeys> {
    let [policy, first, keys, time_to_next, lifetime] = <[Variant; 5]>::try_from(outputs).ok()?;
    let keys = Vec::<ByteString>::try_from(keys).ok()?;
    Some(SecurityKeys {
        security_policy_uri: UaString::try_from(policy).ok()?.as_str().to_owned(),
        first_token_id: u32::try_from(first).ok()?,
        keys: keys.iter().map(|key| key.as_bytes().to_vec()).collect(),
        time_to_next_key: f64::try_from(time_to_next).ok()?,
        key_lifetime: f64::try_from(lifetime).ok()?,
        current_token_id: None,
    })
}
