//! A session for commands: one request after the other on the calling thread.

use super::Tell;
use super::recording::Recording;
use super::security;
use crate::error::GeneratorError;
use std::sync::Arc;
use taktwerk_channel::{ChannelConfig, ChannelError};
use taktwerk_client::config::{EndpointUrl, Identity, ReconnectPolicy, Security, Target};
use taktwerk_client::{ClientConfig, ClientError, SecurityProblem, Splittable};
use taktwerk_crypto::{CryptoError, MessageSecurityMode, SecurityPolicy};
use taktwerk_load::attribute::Attribute;
use taktwerk_load::connection::{ConnectionArgs, SecurityArgs};
use taktwerk_load::endpoint::Endpoint;
use taktwerk_net::client::BlockingClient;
use taktwerk_pki::NewKey;
use taktwerk_schema::ids::variable_ids;
use taktwerk_schema::{
    EndpointDescription, GetEndpointsRequest, ReadRequest, ReadValueId, TimestampsToReturn,
};
use taktwerk_types::{DataValue, NodeId, StatusCode};

/// A connected session.
pub struct Session {
    client: BlockingClient,
    namespaces: Option<Vec<String>>,
}

/// Converts a failed request to an error.
pub fn failure(error: &ClientError) -> GeneratorError {
    match error {
        ClientError::Service { .. } => GeneratorError::BadStatus(describe(error)),
        _ => GeneratorError::Connect(describe(error)),
    }
}

/// An error with an explanation of its status.
pub fn describe(error: &ClientError) -> String {
    match error {
        ClientError::ServerClosed { status, .. } if *status == StatusCode::BAD_SECURITY_CHECKS_FAILED => {
            let pki = security::named_pki();
            format!(
                "{error}. The server gives no reason. Most often it does not trust the certificate of this client yet: trust it \
                 there (a Taktwerk server: `taktwerk pki trust --pki DIR`; `taktwerk pki show{pki}` prints what it is). \
                 --policy None goes without security, where the server offers that"
            )
        }
        ClientError::Service { service: "ActivateSession", status } if is_of_user(*status) => {
            format!(
                "{error}: the server does not let this user in. Check the name (--user) and the password or certificate"
            )
        }
        ClientError::Service { status, .. } | ClientError::ServerClosed { status, .. } => {
            let why = status.description().unwrap_or_default();
            format!("{error}: {why}")
        }
        ClientError::Security(SecurityProblem::Crypto(CryptoError::Certificate(refusal)))
        | ClientError::Channel(ChannelError::Crypto(CryptoError::Certificate(refusal))) => {
            let advice = if refusal.status() == StatusCode::BAD_CERTIFICATE_UNTRUSTED {
                untrusted(security::trusts_first_use())
            } else {
                format!("; taktwerk pki doctor{} says more", security::named_pki())
            };
            format!("{error}{advice}")
        }
        ClientError::Security(SecurityProblem::NoEndpoint { wanted, offered }) => {
            // Not named exactly: the best policy was wanted, and there is none.
            let is_best = !wanted.contains('/');
            format!("{error}; try {}", options_for(offered, is_best))
        }
        ClientError::Security(SecurityProblem::NoTokenPolicy(_)) => {
            format!(
                "{error}; log in with --user, or see `taktwerk endpoints` for the kinds of users that it accepts"
            )
        }
        ClientError::Security(SecurityProblem::UserCertificate(_)) => {
            format!("{error}: name a --policy for keys of its kind, or another --user-cert")
        }
        ClientError::Security(SecurityProblem::PlaintextPassword) => {
            format!("{error}: add --allow-plaintext-password if you trust the network")
        }
        other => {
            let text = other.to_string();
            // The text of the operating system; the error type is lost here.
            let advice = if text.contains("Connection refused") {
                ". No program listens there: start the server, or check the port"
            } else if text.contains("failed to lookup address") {
                ". Check the host name"
            } else {
                ""
            };
            format!("{text}{advice}")
        }
    }
}

/// What to do about a server that is not trusted. `is_first` is --trust-on-first-use: with it, the trust list has another
/// certificate of the same application.
fn untrusted(is_first: bool) -> String {
    let trust = format!("taktwerk pki trust{} (it lists what was refused and asks)", security::named_pki());
    match is_first {
        true => format!(
            "; if the owner of the server has replaced its certificate, trust the new one with: {trust}"
        ),
        false => format!(
            "; if it is the right server, trust it with: {trust}, or the first time with --trust-on-first-use"
        ),
    }
}

/// Whether activating a session failed because of the user (Part 4 §5.7.3.3).
fn is_of_user(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_USER_ACCESS_DENIED
            | StatusCode::BAD_IDENTITY_TOKEN_REJECTED
            | StatusCode::BAD_IDENTITY_TOKEN_INVALID
    )
}

/// The options for the best of the offered endpoints: `best`, unless that has failed.
fn options_for(offered: &[(Box<str>, i32)], best_failed: bool) -> String {
    let mode = |number: i32| MessageSecurityMode::from_number(number);
    let known = offered.iter().filter_map(|(name, number)| {
        let policy = name.parse::<SecurityPolicy>().ok()?;
        Some((policy, mode(*number)?))
    });
    let known: Vec<_> = known.collect();
    let is_usual = |(policy, mode): &(SecurityPolicy, MessageSecurityMode)| {
        let has_key = NewKey::for_policy(*policy).is_some_and(|key| security::NEW_KEYS.contains(&key));
        has_key && !policy.is_deprecated() && *mode != MessageSecurityMode::None
    };
    if !best_failed && known.iter().any(is_usual) {
        return "--policy best".to_owned();
    }
    match known.into_iter().max_by_key(|(policy, mode)| {
        (*mode == MessageSecurityMode::SignAndEncrypt, policy.info().security_level)
    }) {
        Some((SecurityPolicy::None, _)) => {
            "--policy None (no security: only on a network that you trust)".to_owned()
        }
        Some((policy, mode)) => format!("--policy {policy} --mode {mode}"),
        None => "`taktwerk endpoints`, which lists what the server offers".to_owned(),
    }
}

/// Client settings for commands: fail fast, without retries.
pub fn config(
    server: &Endpoint,
    security: &SecurityArgs,
    tell: &dyn Tell,
) -> Result<ClientConfig, GeneratorError> {
    let mut channel = ChannelConfig::default();
    let mut trust_list_changes = Arc::default();
    if let Some(pki) = security::pki(server, security, tell)? {
        channel.provider = pki.provider();
        trust_list_changes = pki.watch().map_err(|error| GeneratorError::Environment(error.to_string()))?;
    }
    Ok(ClientConfig {
        channel: Arc::new(channel),
        trust_list_changes,
        request_timeout: security.timeout,
        token_lifetime_ms: u32::try_from(security.token_lifetime.as_millis()).unwrap_or(u32::MAX),
        application_name: "taktwerk".into(),
        reconnect: ReconnectPolicy { enabled: false, ..ReconnectPolicy::default() },
        ..ClientConfig::default()
    })
}

/// The connection target.
pub fn target(endpoint: &Endpoint, security: &SecurityArgs) -> Result<Target, GeneratorError> {
    let mut target = Target::direct(&endpoint.to_string())
        .map_err(|error| GeneratorError::Usage(format!("{endpoint}: {error}")))?;
    target.security = security::wanted(endpoint, security)?;
    target.discover = !security::is_none(target.security);
    if let Some(provider) = security::user(security)? {
        target.identity = Identity::X509 { provider };
    }
    if let Some(name) = &security.user {
        let password = security.read_password()?;
        target.identity =
            Identity::UserName { name: name.as_str().into(), password: password.as_str().into() };
    }
    if let Some(token) = security.read_token()? {
        target.identity = Identity::IssuedToken { token: token.as_str().into() };
    }
    // Loopback traffic does not cross a network.
    target.allow_plaintext_password =
        security.has_secret() && (security.allow_plaintext_password || endpoint.is_loopback());
    Ok(target)
}

/// Requests a server's endpoints, without a session.
pub fn endpoints(arguments: &ConnectionArgs) -> Result<Vec<EndpointDescription>, GeneratorError> {
    endpoints_via(arguments, None)
}

/// Queries a discovery server: the servers that it knows (Part 4 §5.5.2), and its own endpoints.
pub fn discovery(
    arguments: &ConnectionArgs,
) -> Result<(Vec<taktwerk_schema::ApplicationDescription>, Vec<EndpointDescription>), GeneratorError> {
    let url = arguments.endpoint.to_string();
    let mut client = discovery_client(arguments, None)?;
    let mut servers =
        taktwerk_schema::FindServersRequest { endpoint_url: url.as_str().into(), ..Default::default() };
    let servers = client.call(&mut servers).map_err(|error| failure(&error))?.servers;
    let mut endpoints = GetEndpointsRequest { endpoint_url: url.as_str().into(), ..Default::default() };
    let endpoints = client.call(&mut endpoints).map_err(|error| failure(&error))?.endpoints;
    client.disconnect();
    Ok((servers, endpoints))
}

fn endpoints_via(
    arguments: &ConnectionArgs,
    via: Option<EndpointUrl>,
) -> Result<Vec<EndpointDescription>, GeneratorError> {
    let url = arguments.endpoint.to_string();
    let mut client = discovery_client(arguments, via)?;
    let mut request = GetEndpointsRequest { endpoint_url: url.as_str().into(), ..Default::default() };
    let response = client.call(&mut request).map_err(|error| failure(&error))?;
    client.disconnect();
    Ok(response.endpoints)
}

/// A connection for the discovery services, which need neither a session nor security.
fn discovery_client(
    arguments: &ConnectionArgs,
    via: Option<EndpointUrl>,
) -> Result<BlockingClient, GeneratorError> {
    let mut target = target(&arguments.endpoint, &arguments.security)?;
    target.session = false;
    target.discover = false;
    target.via = via;
    // Discovery needs no certificates, so none are created or loaded.
    let config = ClientConfig {
        request_timeout: arguments.security.timeout,
        reconnect: ReconnectPolicy { enabled: false, ..ReconnectPolicy::default() },
        ..ClientConfig::default()
    };
    let connected = BlockingClient::connect(Arc::new(config), target);
    let (client, _) = connected.map_err(|error| unreachable(&arguments.endpoint, &error))?;
    Ok(client)
}

/// Performs discovery in advance, so that clients connect without it.
pub fn discover(
    arguments: &ConnectionArgs,
    target: &mut Target,
    tell: &dyn Tell,
) -> Result<(), GeneratorError> {
    let endpoints = endpoints_via(arguments, target.via.clone())?;
    let provider = security::pki(&arguments.endpoint, &arguments.security, tell)?.map(|pki| pki.provider());
    let security = |endpoint: &EndpointDescription| {
        let policy = SecurityPolicy::from_uri(endpoint.security_policy_uri.as_str())?;
        Some((MessageSecurityMode::from_number(endpoint.security_mode.0)?, policy))
    };
    let usable = endpoints.iter().filter_map(|endpoint| Some((security(endpoint)?, endpoint)));
    let usable = usable.filter(|((mode, policy), _)| match target.security {
        Security::Exactly(wanted_policy, wanted_mode) => (wanted_policy, wanted_mode) == (*policy, *mode),
        _ => {
            *mode != MessageSecurityMode::None
                && !policy.is_deprecated()
                && provider.as_ref().is_some_and(|provider| provider.supports(*policy))
        }
    });
    let best = usable.max_by_key(|((mode, policy), _)| (*mode, policy.info().security_level));
    let Some(((mode, policy), endpoint)) = best else {
        return Err(GeneratorError::Connect(format!(
            "{} does not offer the requested security; `taktwerk endpoints` shows what it offers",
            arguments.endpoint
        )));
    };
    target.security = Security::Exactly(policy, mode);
    target.server_certificate = endpoint.server_certificate.as_deref().map(Into::into);
    target.discover = false;
    Ok(())
}

/// Connection errors always have exit code 3, for any status.
pub fn unreachable(endpoint: &Endpoint, error: &ClientError) -> GeneratorError {
    GeneratorError::Connect(format!("cannot connect to {endpoint}: {}", describe(error)))
}

impl Session {
    /// Connects.
    pub fn connect(arguments: &ConnectionArgs, tell: &dyn Tell) -> Result<Self, GeneratorError> {
        Self::connect_as(arguments, tell, ReconnectPolicy { enabled: false, ..ReconnectPolicy::default() })
    }

    /// Connects, and reconnects whenever the connection is lost. Fails at once if the first connection fails.
    pub fn connect_for_good(arguments: &ConnectionArgs, tell: &dyn Tell) -> Result<Self, GeneratorError> {
        let delay_max = std::time::Duration::from_secs(5);
        Self::connect_as(arguments, tell, ReconnectPolicy { delay_max, ..ReconnectPolicy::default() })
    }

    /// Connects, and reconnects whenever the connection is lost, unless the server refuses the user. With an
    /// interactive login, retrying an old password could lock the user out.
    pub fn connect_again(arguments: &ConnectionArgs, tell: &dyn Tell) -> Result<Self, GeneratorError> {
        let delay_max = std::time::Duration::from_secs(5);
        let policy = ReconnectPolicy { delay_max, retry_refused_user: false, ..ReconnectPolicy::default() };
        Self::connect_as(arguments, tell, policy)
    }

    fn connect_as(
        arguments: &ConnectionArgs,
        tell: &dyn Tell,
        reconnect: ReconnectPolicy,
    ) -> Result<Self, GeneratorError> {
        let mut target = target(&arguments.endpoint, &arguments.security)?;
        // Discovery costs a round trip, but allows to show what the server offers.
        target.discover = true;
        let recording = Recording::open(arguments.security.allow_key_log, tell)?;
        let mut config =
            ClientConfig { reconnect, ..config(&arguments.endpoint, &arguments.security, tell)? };
        if recording.key_log.is_some() {
            let channel =
                ChannelConfig { key_log: recording.key_log, ..ChannelConfig::clone(&config.channel) };
            config.channel = Arc::new(channel);
        }
        let (client, info) = BlockingClient::connect_captured(Arc::new(config), target, recording.capture)
            .map_err(|error| unreachable(&arguments.endpoint, &error))?;
        let namespaces: Vec<String> = info.namespaces.iter().map(|uri| uri.as_str().to_owned()).collect();
        let namespaces = (!namespaces.is_empty()).then_some(namespaces);
        Ok(Self { client, namespaces })
    }

    /// The underlying client.
    pub fn client(&mut self) -> &mut BlockingClient {
        &mut self.client
    }

    /// Closes the session.
    pub fn close(self) {
        self.client.disconnect();
    }

    /// Sends a request, split into parts if the server has limits.
    pub fn request<R: Splittable>(&mut self, request: R) -> Result<R::Response, GeneratorError> {
        self.client.operate(request).map_err(|error| failure(&error))
    }

    /// Reads attributes with both timestamps, with MaxAge 0.
    pub fn read(&mut self, nodes: Vec<ReadValueId>) -> Result<Vec<DataValue>, GeneratorError> {
        self.read_aged(nodes, 0.0)
    }

    /// Reads attributes with both timestamps and a maximum age of values in milliseconds.
    pub fn read_aged(
        &mut self,
        nodes_to_read: Vec<ReadValueId>,
        max_age: f64,
    ) -> Result<Vec<DataValue>, GeneratorError> {
        let wanted = nodes_to_read.len();
        let timestamps_to_return = TimestampsToReturn::BOTH;
        let request = ReadRequest { max_age, timestamps_to_return, nodes_to_read, ..Default::default() };
        let results = self.request(request)?.results;
        if results.len() == wanted {
            return Ok(results);
        }
        Err(GeneratorError::BadStatus(format!(
            "the server answered {} results for {wanted} reads",
            results.len()
        )))
    }

    /// The NamespaceArray.
    pub fn namespaces(&mut self) -> Result<Vec<String>, GeneratorError> {
        if let Some(known) = &self.namespaces {
            return Ok(known.clone());
        }
        let array = ReadValueId {
            node_id: NodeId::numeric(0, variable_ids::SERVER_NAMESPACE_ARRAY),
            attribute_id: Attribute::VALUE.id(),
            ..Default::default()
        };
        let value = self.read(vec![array])?.into_iter().next().and_then(|result| result.value);
        let uris: Vec<taktwerk_types::UaString> = value
            .and_then(|value| value.try_into().ok())
            .ok_or_else(|| GeneratorError::BadStatus("the server has no NamespaceArray".to_owned()))?;
        let uris: Vec<String> = uris.iter().map(|uri| uri.as_str().to_owned()).collect();
        self.namespaces = Some(uris.clone());
        Ok(uris)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_explained_with_a_remedy() {
        let of = |service, status| describe(&ClientError::Service { service, status });
        for status in [StatusCode::BAD_USER_ACCESS_DENIED, StatusCode::BAD_IDENTITY_TOKEN_REJECTED] {
            assert!(of("ActivateSession", status).contains("--user"), "{status}");
            assert!(!of("Read", status).contains("--user"), "{status}");
        }
        let closed = ClientError::ServerClosed {
            status: StatusCode::BAD_SECURITY_CHECKS_FAILED,
            reason: String::new().into(),
        };
        assert!(describe(&closed).contains("taktwerk pki trust"), "{}", describe(&closed));
    }

    /// The endpoints of a server that offers no messages without security.
    #[test]
    fn the_best_policy_is_suggested_unless_it_has_failed() {
        let offered = |list: &[(&str, i32)]| {
            let offered: Vec<(Box<str>, i32)> =
                list.iter().map(|(name, mode)| ((*name).into(), *mode)).collect();
            let of = |wanted: &str| {
                let problem = SecurityProblem::NoEndpoint { wanted: wanted.into(), offered: offered.clone() };
                describe(&ClientError::Security(problem))
            };
            (of("None/None"), of("a security policy that both sides support"))
        };
        let (none, best) = offered(&[("Basic256Sha256", 3), ("ECC_nistP256_AesGcm", 3)]);
        assert!(none.ends_with("try --policy best"), "{none}");
        assert!(best.ends_with("try --policy ECC_nistP256_AesGcm --mode SignAndEncrypt"), "{best}");
        // The best policy needs a key that is made on request only, or is an old one.
        let (none, _) = offered(&[("ECC_nistP384_AesGcm", 3)]);
        assert!(none.ends_with("try --policy ECC_nistP384_AesGcm --mode SignAndEncrypt"), "{none}");
        let (_, best) = offered(&[("None", 1)]);
        assert!(best.contains("--policy None (no security"), "{best}");
    }
}
