//! Server diagnostics.

use super::attribute::read;
use super::*;
use schema::{
    BrowseDescription, BrowseRequest, CreateSubscriptionRequest, NodeClass, ReferenceDescription,
    ServerDiagnosticsSummaryDataType, SessionDiagnosticsDataType, SubscriptionDiagnosticsDataType,
};
use taktwerk_schema::ids::{object_ids, variable_ids};
use taktwerk_types::{ArrayValues, Variant};

fn children(client: &mut Client, server: &mut Server, node_id: NodeId) -> Vec<ReferenceDescription> {
    let what = BrowseDescription {
        node_id,
        reference_type_id: 33.into(),
        include_subtypes: true,
        result_mask: 63,
        ..Default::default()
    };
    let request =
        BrowseRequest { request_header: client.header(), nodes_to_browse: vec![what], ..Default::default() };
    client.call(server, &request).unwrap().results.remove(0).references
}

pub(super) fn structures<T: Structure>(value: Option<Variant>) -> Vec<T> {
    match value {
        Some(Variant::ExtensionObject(object)) => vec![object.decode().unwrap()],
        Some(Variant::Array(array)) => match array.values {
            ArrayValues::ExtensionObject(all) => all.iter().map(|object| object.decode().unwrap()).collect(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn subscribe(client: &mut Client, server: &mut Server) -> u32 {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 100,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(server, &request).unwrap().subscription_id
}

#[test]
fn sessions_have_objects_while_they_exist() {
    let mut server = Server::new();
    let mut client = server.session();
    let mut other = server.session();
    let summary: NodeId = object_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY.into();
    let found = children(&mut client, &mut server, summary.clone());
    let objects: Vec<_> = found.iter().filter(|child| child.node_class == NodeClass::OBJECT).collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0].browse_name.name.as_str(), "test");
    assert_eq!(objects[1].browse_name.name.as_str(), "test (2)");
    assert_eq!(objects[1].type_definition.node_id, 2029.into());
    let session = objects[1].node_id.node_id.clone();
    let parts = children(&mut client, &mut server, session.clone());
    let names: Vec<_> = parts.iter().map(|part| part.browse_name.name.as_str().to_owned()).collect();
    assert_eq!(names, ["SessionDiagnostics", "SubscriptionDiagnosticsArray"]);
    let details = parts[0].node_id.node_id.clone();
    let fields = children(&mut client, &mut server, details.clone());
    assert_eq!(fields.len(), 43);
    // Every node can be read, and every field equals that in the structure.
    let value = read(&mut client, &mut server, details, 13);
    let whole = structures::<SessionDiagnosticsDataType>(value.value).remove(0);
    assert_eq!(whole.session_id, session);
    assert_eq!(whole.actual_session_timeout, 60_000.0);
    assert_eq!(whole.browse_count.total_count, 0);
    for field in &fields {
        let value = read(&mut client, &mut server, field.node_id.node_id.clone(), 13);
        assert_eq!(value.status(), StatusCode::GOOD, "{}", field.browse_name);
        assert!(value.value.is_some_and(|value| !value.is_empty()), "{}", field.browse_name);
        for attribute_id in [1, 2, 3, 4, 14, 15, 17] {
            let value = read(&mut client, &mut server, field.node_id.node_id.clone(), attribute_id);
            assert_eq!(value.status(), StatusCode::GOOD);
        }
    }
    // The session's security is not visible to all users.
    let security = crate::diagnostics::nodes::node_id(2, crate::diagnostics::nodes::SECURITY);
    let user = variable_ids::SESSION_SECURITY_DIAGNOSTICS_TYPE_CLIENT_USER_ID_OF_SESSION;
    let user = crate::diagnostics::nodes::node_id(2, user);
    let array =
        variable_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_SECURITY_DIAGNOSTICS_ARRAY;
    for id in [security, user, array.into()] {
        assert_eq!(read(&mut client, &mut server, id, 13).status(), StatusCode::BAD_USER_ACCESS_DENIED);
    }
    let close = schema::CloseSessionRequest { request_header: other.header(), delete_subscriptions: true };
    other.call(&mut server, &close).unwrap();
    assert_eq!(read(&mut client, &mut server, session, 1).status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    let found = children(&mut client, &mut server, summary);
    assert_eq!(found.iter().filter(|child| child.node_class == NodeClass::OBJECT).count(), 1);
}

#[test]
fn services_are_counted_per_session_and_subscriptions_are_shown() {
    let mut server = Server::new();
    let mut client = server.session();
    let id = subscribe(&mut client, &mut server);
    let bad = schema::ReadRequest { request_header: client.header(), ..Default::default() };
    client.call(&mut server, &bad).unwrap_err();
    let array =
        variable_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY;
    let value = read(&mut client, &mut server, array.into(), 13);
    let sessions = structures::<SessionDiagnosticsDataType>(value.value);
    assert_eq!(sessions.len(), 1);
    assert_eq!((sessions[0].read_count.total_count, sessions[0].read_count.error_count), (1, 1));
    assert_eq!(sessions[0].create_subscription_count.total_count, 1);
    assert_eq!(sessions[0].current_subscriptions_count, 1);
    assert_eq!(sessions[0].client_last_contact_time, server.now.utc);
    let array = variable_ids::SERVER_SERVER_DIAGNOSTICS_SUBSCRIPTION_DIAGNOSTICS_ARRAY;
    let value = read(&mut client, &mut server, array.into(), 13);
    let subscriptions = structures::<SubscriptionDiagnosticsDataType>(value.value);
    assert_eq!(subscriptions.len(), 1);
    assert_eq!(subscriptions[0].subscription_id, id);
    assert_eq!(subscriptions[0].session_id, sessions[0].session_id);
    assert_eq!(subscriptions[0].publishing_interval, 100.0);
    assert!(subscriptions[0].publishing_enabled);
}

#[test]
fn the_summary_counts() {
    let mut server = Server::new();
    let mut client = server.session();
    let mut other = server.connect();
    other.token = NodeId::opaque(0, vec![1, 2, 3]);
    let bad = schema::ReadRequest { request_header: other.header(), ..Default::default() };
    other.call(&mut server, &bad).unwrap_err();
    subscribe(&mut client, &mut server);
    let id = variable_ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY;
    let value = read(&mut client, &mut server, id.into(), 13);
    let summary = structures::<ServerDiagnosticsSummaryDataType>(value.value).remove(0);
    assert_eq!((summary.current_session_count, summary.cumulated_session_count), (1, 1));
    assert_eq!((summary.rejected_requests_count, summary.security_rejected_requests_count), (1, 1));
    assert_eq!((summary.current_subscription_count, summary.cumulated_subscription_count), (1, 1));
    assert_eq!((summary.publishing_interval_count, summary.session_abort_count), (1, 0));
    let count = variable_ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CURRENT_SESSION_COUNT;
    assert_eq!(read(&mut client, &mut server, count.into(), 13).value, Some(1u32.into()));
}
