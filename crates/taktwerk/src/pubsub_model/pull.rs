//! The client of a key service, which fetches the keys of an engine's SecurityGroups (Part 14 §8.3.2, §5.4.5.3).

use crate::client::{Client, ClientBuilder, Error};
use crate::space::ns0;
use std::io;
use taktwerk_net::pubsub::KeySource;
use taktwerk_pubsub::security::{KeyRequest, SecurityKeys};
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_types::{ByteString, NodeId, StatusCode, UaString, Variant};
use tokio::runtime::{Builder, Runtime};

/// Creates a client for the URL of a key service.
type Connect = Box<dyn Fn(&str) -> ClientBuilder + Send>;

/// Calls GetSecurityKeys at the configured key services, or at a default one. It connects anew for each call, because calls are
/// hours apart.
pub struct KeyServiceClient {
    connect: Connect,
    default_url: Option<String>,
    runtime: Runtime,
    last_error: Option<String>,
}

/// Why a key service returned no keys.
struct Refused {
    status: StatusCode,
    /// What failed, and how to correct it.
    why: String,
}

impl core::fmt::Debug for KeyServiceClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeyServiceClient").field("default_url", &self.default_url).finish_non_exhaustive()
    }
}

impl KeyServiceClient {
    /// Creates a client that connects with `connect`. It needs certificates, because key services send keys over encrypted
    /// channels only.
    ///
    /// # Errors
    /// The operating system cannot create an event queue.
    pub fn new(connect: impl Fn(&str) -> ClientBuilder + Send + 'static) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { connect: Box::new(connect), default_url: None, runtime, last_error: None })
    }

    /// Sets the key service of groups whose configuration has none.
    #[must_use]
    pub fn default_service(mut self, url: &str) -> Self {
        self.default_url = Some(url.to_owned());
        self
    }

    /// Why the last request returned no keys, and how to correct it; `None` after success.
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

/// How to correct a failed request for keys.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_USER_ACCESS_DENIED => {
            "there, the user has to have a role that the security group lets Call, or SecurityKeyServerAccess if it names none"
        }
        StatusCode::BAD_NOT_FOUND | StatusCode::BAD_NO_MATCH => {
            "it has no such security group: check the name"
        }
        StatusCode::BAD_IDENTITY_TOKEN_REJECTED | StatusCode::BAD_IDENTITY_TOKEN_INVALID => {
            "it rejects this user and password"
        }
        StatusCode::BAD_CERTIFICATE_UNTRUSTED | StatusCode::BAD_SECURITY_CHECKS_FAILED => {
            "each has to trust the certificate of the other: taktwerk pki trust"
        }
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT => {
            "keys are sent over encrypted channels only: connect with encryption"
        }
        StatusCode::BAD_METHOD_INVALID | StatusCode::BAD_NOT_IMPLEMENTED | StatusCode::BAD_NOT_EXECUTABLE => {
            "the server is not a key service"
        }
        _ => "check that it runs and that the address is right",
    }
}

/// Calls GetSecurityKeys.
///
/// # Errors
/// The status of the server or the connection; Bad_TypeMismatch if the results are not keys.
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

    /// A status code alone does not help users.
    #[test]
    fn the_error_says_what_failed() {
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
        assert!(said.contains("cannot connect") && said.contains("check that it runs"), "{said}");
        assert!(advice(StatusCode::BAD_USER_ACCESS_DENIED).contains("SecurityKeyServerAccess"));
        assert!(advice(StatusCode::BAD_CERTIFICATE_UNTRUSTED).contains("pki trust"));
    }
}
