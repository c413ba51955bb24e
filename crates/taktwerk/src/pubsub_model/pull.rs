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
    last_error: Option<String>,
}

/// Why a key service gave no keys.
struct Refused {
    status: StatusCode,
    /// What failed, and what can be done about it.
    why: String,
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
        Ok(Self { connect: Box::new(connect), default_url: None, runtime, last_error: None })
    }

    /// The key service of groups whose configuration names none.
    #[must_use]
    pub fn default_service(mut self, url: &str) -> Self {
        self.default_url = Some(url.to_owned());
        self
    }

    /// Why the last request brought no keys, and what can be done about it; none if it brought some.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

impl KeySource for KeyServiceClient {
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
        let configured = request.services.iter().map(|service| service.endpoint_url.as_str());
        let mut urls: Vec<&str> = configured.filter(|url| !url.is_empty()).collect();
        if urls.is_empty() {
            urls.extend(self.default_url.as_deref());
        }
        let group = &request.security_group_id;
        let mut outcome = Err(StatusCode::BAD_CONFIGURATION_ERROR);
        self.last_error = Some(format!("no key service is configured for the security group {group:?}"));
        for url in urls {
            let asked: Result<SecurityKeys, Refused> = self.runtime.block_on(async {
                let client = (self.connect)(url).connect().await.map_err(|error| {
                    let status = error.status();
                    Refused { status, why: format!("cannot connect to it: {error}: {}", advice(status)) }
                })?;
                get_security_keys(&client, request).await.map_err(|status| Refused {
                    status,
                    why: format!("it refuses GetSecurityKeys with {status}: {}", advice(status)),
                })
            });
            match asked {
                Ok(keys) => {
                    self.last_error = None;
                    return Ok(keys);
                }
                Err(Refused { status, why }) => {
                    tracing::warn!(url, group, %status, "the key service gave no keys: {why}");
                    self.last_error = Some(format!("the key service {url} gave no keys of {group:?}: {why}"));
                    outcome = Err(status);
                }
            }
        }
        outcome
    }
}

/// What can be done where a key service does not give keys.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_USER_ACCESS_DENIED => {
            "there, the user has to have a role that the security group lets Call, or SecurityKeyServerAccess if it names none"
        }
        StatusCode::BAD_NOT_FOUND | StatusCode::BAD_NO_MATCH => {
            "it has no such security group: is the name right?"
        }
        StatusCode::BAD_IDENTITY_TOKEN_REJECTED | StatusCode::BAD_IDENTITY_TOKEN_INVALID => {
            "it does not know this user and password"
        }
        StatusCode::BAD_CERTIFICATE_UNTRUSTED | StatusCode::BAD_SECURITY_CHECKS_FAILED => {
            "each has to trust the certificate of the other: taktwerk pki trust"
        }
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT => "keys are given over encrypting channels only",
        StatusCode::BAD_METHOD_INVALID | StatusCode::BAD_NOT_IMPLEMENTED | StatusCode::BAD_NOT_EXECUTABLE => {
            "it is a server, and no key service"
        }
        _ => "does it run there, and is the address right?",
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
        nonces: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A status alone tells nobody what to do.
    #[test]
    fn what_failed_is_said() {
        let mut client =
            KeyServiceClient::new(Client::builder).unwrap().default_service("opc.tcp://127.0.0.1:1");
        let request = KeyRequest {
            security_group_id: "plant".to_owned(),
            starting_token_id: 0,
            requested_key_count: 1,
            services: Vec::new(),
        };
        assert!(client.fetch(&request).is_err());
        let said = client.last_error().unwrap();
        assert!(said.contains("opc.tcp://127.0.0.1:1") && said.contains("plant"), "{said}");
        assert!(said.contains("cannot connect") && said.contains("does it run there"), "{said}");
        assert!(advice(StatusCode::BAD_USER_ACCESS_DENIED).contains("SecurityKeyServerAccess"));
        assert!(advice(StatusCode::BAD_CERTIFICATE_UNTRUSTED).contains("pki trust"));
    }
}
