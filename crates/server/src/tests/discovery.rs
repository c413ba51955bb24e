//! FindServers and GetEndpoints.

use super::*;
use schema::{FindServersRequest, GetEndpointsRequest};

#[test]
fn endpoints_need_no_session_and_echo_the_clients_host() {
    let mut server = Server::new();
    let mut client = server.connect();
    let mut request = GetEndpointsRequest {
        request_header: client.header(),
        endpoint_url: "opc.tcp://10.1.2.3:4841".into(),
        ..Default::default()
    };
    let endpoints = client.call(&mut server, &request).unwrap().endpoints;
    assert_eq!(endpoints.len(), 1);
    assert_eq!(endpoints[0].endpoint_url.as_str(), "opc.tcp://10.1.2.3:4841/test");
    assert_eq!(endpoints[0].server.application_uri.as_str(), APPLICATION);
    assert_eq!(endpoints[0].security_mode, schema::MessageSecurityMode::NONE);
    assert_eq!(endpoints[0].user_identity_tokens.len(), 1);
    request.profile_uris = vec!["http://opcfoundation.org/UA-Profile/Transport/https-uabinary".into()];
    assert!(client.call(&mut server, &request).unwrap().endpoints.is_empty());
    request.profile_uris = vec![endpoints[0].transport_profile_uri.clone()];
    assert_eq!(client.call(&mut server, &request).unwrap().endpoints.len(), 1);
}

/// A server with two addresses is seen under the address that the client used: one endpoint, not two equal ones.
#[test]
fn equal_addresses_are_listed_once() {
    let mut server = Server::with(|config| {
        let mut other = config.endpoints[0].clone();
        other.url = other.url.replace("opc.tcp://", "opc.tcp://other.");
        assert_ne!(other.url, config.endpoints[0].url);
        config.endpoints.push(other);
    });
    let mut client = server.connect();
    let request = GetEndpointsRequest {
        request_header: client.header(),
        endpoint_url: "opc.tcp://10.1.2.3:4841".into(),
        ..Default::default()
    };
    assert_eq!(client.call(&mut server, &request).unwrap().endpoints.len(), 1);
}

#[test]
fn servers_are_found_by_uri() {
    let mut server = Server::new();
    let mut client = server.connect();
    let mut request = FindServersRequest { request_header: client.header(), ..Default::default() };
    assert_eq!(client.call(&mut server, &request).unwrap().servers.len(), 1);
    request.server_uris = vec!["urn:other".into()];
    assert!(client.call(&mut server, &request).unwrap().servers.is_empty());
    request.server_uris.push(APPLICATION.into());
    assert_eq!(client.call(&mut server, &request).unwrap().servers.len(), 1);
}
