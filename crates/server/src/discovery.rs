//! Descriptions of the server and its endpoints (Part 4 §7.2, §7.14), and the encoded discovery responses.

use crate::config::{EndpointConfig, ServerConfig};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_crypto::SecurityPolicy;
use taktwerk_schema::{
    ApplicationDescription, ApplicationType, EndpointDescription, MessageSecurityMode, UserTokenPolicy,
    UserTokenType,
};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{ByteString, Encode, Instant, LocalizedText, UaString};

/// UA-TCP UA-SC UA-Binary (Part 7).
pub(crate) const TRANSPORT_PROFILE: &str =
    "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";

/// Discovery responses, encoded once for each host name by which clients reach the server.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryCache {
    known: Mutex<Vec<Arc<Known>>>,
    has_warned: AtomicBool,
}

/// The responses for one host.
#[derive(Debug)]
pub(crate) struct Known {
    host: Box<str>,
    made: Instant,
    /// The array of EndpointDescriptions.
    pub(crate) endpoints: Vec<u8>,
    /// The array of ApplicationDescriptions.
    pub(crate) servers: Vec<u8>,
}

/// Maximum number of cached hosts. A client that invents more costs one encoding each.
const KNOWN_MAX: usize = 16;
/// How long a response is cached. Certificates can change while a server runs.
const KNOWN_FOR: Duration = Duration::from_secs(1);

impl DiscoveryCache {
    pub(crate) fn get(&self, config: &ServerConfig, used_url: &str, now: Instant) -> Arc<Known> {
        let host = plain_host(used_url).unwrap_or_default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.made + KNOWN_FOR > now);
        if let Some(known) = known.iter().find(|known| *known.host == *host) {
            return Arc::clone(known);
        }
        let mut servers = Vec::new();
        encode_len(1, &mut servers);
        application(config, used_url).encode(&mut servers);
        let (told, endpoints) = bounded_endpoints(config, used_url);
        let told = told.len();
        if told < config.endpoints.len() && !self.has_warned.swap(true, Ordering::Relaxed) {
            // Logged once: unauthenticated clients decide how often this happens.
            tracing::error!(
                told,
                of = config.endpoints.len(),
                "the list of endpoints exceeds discovery_response_len_max: clients get only the first endpoints; raise the limit or offer fewer endpoints"
            );
        }
        let new = Arc::new(Known { host: host.into(), made: now, endpoints, servers });
        if known.len() >= KNOWN_MAX {
            known.remove(0);
        }
        known.push(Arc::clone(&new));
        new
    }
}

/// The endpoints that fit into a response to unauthenticated clients, and their encoding.
pub(crate) fn bounded_endpoints(
    config: &ServerConfig,
    used_url: &str,
) -> (Vec<EndpointDescription>, Vec<u8>) {
    let max = config.limits.discovery_response_len_max;
    let mut all = endpoints(config, used_url);
    let mut out = Vec::new();
    all.encode(&mut out);
    if out.len() > max {
        tracing::debug!(
            len = out.len(),
            max,
            "the list of endpoints is too long: issuer certificates are left out"
        );
        for endpoint in &mut all {
            let leaf = leaf(endpoint.server_certificate.as_bytes());
            endpoint.server_certificate = ByteString::from(leaf);
        }
        out.clear();
        all.encode(&mut out);
    }
    while out.len() > max && all.pop().is_some() {
        out.clear();
        all.encode(&mut out);
    }
    (all, out)
}

/// The first certificate of a chain: one DER SEQUENCE (X.690 §8.1). Other data is returned unchanged.
fn leaf(chain: &[u8]) -> &[u8] {
    let len = match *chain {
        [0x30, short @ 0..=0x7f, ..] => 2 + usize::from(short),
        [0x30, 0x81, len, ..] => 3 + usize::from(len),
        [0x30, 0x82, high, low, ..] => 4 + usize::from(u16::from_be_bytes([high, low])),
        _ => chain.len(),
    };
    chain.get(..len).unwrap_or(chain)
}

/// All endpoints, with the host name that the client used.
fn endpoints(config: &ServerConfig, used_url: &str) -> Vec<EndpointDescription> {
    let server = application(config, used_url);
    let mut all: Vec<EndpointDescription> = Vec::with_capacity(config.endpoints.len());
    // Many clients take the first endpoint and do not support elliptic-curve policies.
    let mut in_order: Vec<&EndpointConfig> = config.endpoints.iter().collect();
    in_order.sort_by_key(|endpoint| match endpoint.policy {
        SecurityPolicy::None => 2,
        policy => u8::from(policy.info().is_ecc()),
    });
    for endpoint in in_order {
        let described = description(config, endpoint, &server, used_url);
        // Several addresses of one server become equal when their host is replaced by the one that the client used.
        if !all.contains(&described) {
            all.push(described);
        }
    }
    all
}

fn description(
    config: &ServerConfig,
    endpoint: &EndpointConfig,
    server: &ApplicationDescription,
    used_url: &str,
) -> EndpointDescription {
    let user_identity_tokens = endpoint
        .user_tokens
        .iter()
        .map(|token| UserTokenPolicy {
            policy_id: token.policy_id.as_str().into(),
            token_type: UserTokenType(token.kind.number()),
            issued_token_type: token.kind.issued_token_type().into(),
            issuer_endpoint_url: token.issuer.as_deref().into(),
            security_policy_uri: token.policy.map_or(UaString::NULL, |policy| policy.uri().into()),
        })
        .collect();
    EndpointDescription {
        endpoint_url: reachable(&endpoint.url, used_url).into(),
        server: server.clone(),
        server_certificate: ByteString::from(server_certificate(config, endpoint)),
        security_mode: MessageSecurityMode(endpoint.mode.number()),
        security_policy_uri: endpoint.policy.uri().into(),
        user_identity_tokens,
        transport_profile_uri: TRANSPORT_PROFILE.into(),
        security_level: match endpoint.policy {
            SecurityPolicy::None => 0,
            policy => policy.info().security_level,
        },
    }
}

/// The certificate of an endpoint. An endpoint without security has the certificate that user secrets are encrypted for
/// (Part 4 §5.5.4.1).
pub(crate) fn server_certificate<'a>(
    config: &'a ServerConfig,
    endpoint: &EndpointConfig,
) -> Option<&'a [u8]> {
    let of_token =
        || endpoint.user_tokens.iter().find_map(|token| token.policy.filter(|policy| policy.is_secure()));
    let policy = if endpoint.policy.is_secure() { Some(endpoint.policy) } else { of_token() };
    config.provider.own_certificate(policy?)
}

/// The server's ApplicationDescription.
pub(crate) fn application(config: &ServerConfig, used_url: &str) -> ApplicationDescription {
    let mut urls: Vec<UaString> = Vec::new();
    for endpoint in &config.endpoints {
        let url = UaString::from(reachable(&endpoint.url, used_url));
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    let locale = config.locale_ids.first().map_or(UaString::NULL, |locale| locale.as_str().into());
    ApplicationDescription {
        application_uri: config.application_uri.as_str().into(),
        product_uri: config.product_uri.as_str().into(),
        application_name: LocalizedText { locale, text: config.application_name.as_str().into() },
        application_type: ApplicationType::SERVER,
        discovery_urls: urls,
        ..ApplicationDescription::default()
    }
}

/// An endpoint's URL with the host name by which the client reached the server. Behind address translation, or with
/// several network interfaces, the configured name may not resolve for the client (Part 4 §5.5.4.2).
fn reachable(url: &str, used: &str) -> String {
    let (Some((scheme, own)), Some(("opc.tcp", used))) = (url.split_once("://"), used.split_once("://"))
    else {
        return url.to_owned();
    };
    let Some(host) = plain(authority(used)) else { return url.to_owned() };
    let path = own.get(authority(own).len()..).unwrap_or("");
    format!("{scheme}://{host}{path}")
}

/// Host and port of a client's URL, if they may be echoed.
fn plain_host(used_url: &str) -> Option<&str> {
    plain(authority(used_url.strip_prefix("opc.tcp://")?))
}

/// Echoed text comes from the network, so only a valid host and port are echoed.
fn plain(host: &str) -> Option<&str> {
    let is_plain = !host.is_empty()
        && host.len() <= 255
        && host.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']' | b'_')
        });
    is_plain.then_some(host)
}

fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_the_client_is_echoed() {
        for (used, expected) in [
            ("opc.tcp://10.0.0.7:4841/other", "opc.tcp://10.0.0.7:4841/path"),
            ("opc.tcp://[::1]:4840", "opc.tcp://[::1]:4840/path"),
            ("", "opc.tcp://host:4840/path"),
            ("http://evil", "opc.tcp://host:4840/path"),
            ("opc.tcp://a b", "opc.tcp://host:4840/path"),
            ("opc.tcp://", "opc.tcp://host:4840/path"),
        ] {
            assert_eq!(reachable("opc.tcp://host:4840/path", used), expected, "{used}");
        }
    }

    #[test]
    fn a_chain_is_cut_after_its_first_certificate() {
        let one = [&[0x30, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        let chain = [&one[..], &[0x30, 0x03, 1, 2, 3]].concat();
        assert_eq!(leaf(&chain), one);
        assert_eq!(leaf(&[0x30, 2, 1, 2, 3]), [0x30, 2, 1, 2]);
        for odd in [&[][..], &[0x30], &[0x31, 0], &[0x30, 0x82, 0xff, 0xff, 1], &[0x30, 0x84, 0, 0, 0, 0]] {
            assert_eq!(leaf(odd), odd);
        }
    }
}
