//! FindServers and GetEndpoints (Part 4 §5.5), which need no session, and the descriptions that they give.

use super::Outcome;
use super::context::Context;
use super::reply::Reply;
use super::request::Request;
use crate::config::{EndpointConfig, ServerConfig};
use crate::error::Fault;
use taktwerk_crypto::SecurityPolicy;
use taktwerk_schema::{
    ApplicationDescription, ApplicationType, EndpointDescription, FindServersRequest, FindServersResponse,
    GetEndpointsRequest, GetEndpointsResponse, MessageSecurityMode, UserTokenPolicy, UserTokenType,
};
use taktwerk_types::{ByteString, LocalizedText, UaString};

/// UA-TCP UA-SC UA-Binary (Part 7).
const TRANSPORT_PROFILE: &str = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";
/// Longest list in a discovery request that is looked at; these requests come from anybody.
const FILTER_LEN_MAX: usize = 100;

pub(crate) fn find_servers(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let wanted: FindServersRequest = request.decode()?;
    let config = cx.shared.config();
    let is_wanted = wanted.server_uris.is_empty()
        || wanted.server_uris.iter().take(FILTER_LEN_MAX).any(|uri| *uri == config.application_uri.as_str());
    let servers =
        if is_wanted { vec![application(config, wanted.endpoint_url.as_str())] } else { Vec::new() };
    reply.send(|response_header| FindServersResponse { response_header, servers });
    Ok(Outcome::Answered)
}

pub(crate) fn get_endpoints(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let wanted: GetEndpointsRequest = request.decode()?;
    let is_wanted = wanted.profile_uris.is_empty()
        || wanted.profile_uris.iter().take(FILTER_LEN_MAX).any(|uri| *uri == TRANSPORT_PROFILE);
    let endpoints =
        if is_wanted { endpoints(cx.shared.config(), wanted.endpoint_url.as_str()) } else { Vec::new() };
    reply.send(|response_header| GetEndpointsResponse { response_header, endpoints });
    Ok(Outcome::Answered)
}

/// All endpoints, with the host that the client used.
pub(crate) fn endpoints(config: &ServerConfig, used_url: &str) -> Vec<EndpointDescription> {
    let server = application(config, used_url);
    config.endpoints.iter().map(|endpoint| description(config, endpoint, &server, used_url)).collect()
}

fn description(
    config: &ServerConfig,
    endpoint: &EndpointConfig,
    server: &ApplicationDescription,
    used_url: &str,
) -> EndpointDescription {
    let certificate = config.provider.own_certificate(endpoint.policy);
    let user_identity_tokens = endpoint
        .user_tokens
        .iter()
        .map(|token| UserTokenPolicy {
            policy_id: token.policy_id.as_str().into(),
            token_type: UserTokenType(token.kind.number()),
            security_policy_uri: token.policy.map_or(UaString::NULL, |policy| policy.uri().into()),
            ..UserTokenPolicy::default()
        })
        .collect();
    EndpointDescription {
        endpoint_url: reachable(&endpoint.url, used_url).into(),
        server: server.clone(),
        server_certificate: ByteString::from(certificate),
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

/// How the server describes itself.
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

/// An endpoint's URL with the host by which the client reached the server: behind address translation, or with
/// several network cards, the configured name may mean nothing to it (Part 4 §5.5.4.2).
fn reachable(url: &str, used: &str) -> String {
    let (Some((scheme, own)), Some(("opc.tcp", used))) = (url.split_once("://"), used.split_once("://"))
    else {
        return url.to_owned();
    };
    let host = authority(used);
    // Echoed text comes from the network: only what can be a host and a port is taken over.
    let is_plain = !host.is_empty()
        && host.len() <= 255
        && host.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']' | b'_')
        });
    if !is_plain {
        return url.to_owned();
    }
    let path = own.get(authority(own).len()..).unwrap_or("");
    format!("{scheme}://{host}{path}")
}

fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_the_client_is_echoed_and_nothing_else() {
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
}
