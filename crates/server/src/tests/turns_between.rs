//! Long requests are processed in slices: what may happen between them.

use super::flow::subscribe;
use super::turns::{browse, post, read, slow, turn, values, with_variables, write};
use super::*;
use crate::account::Category;
use crate::authorization::access::Access;
use schema::{
    BrowseResponse, CancelRequest, CloseSessionRequest, CreateMonitoredItemsRequest,
    MonitoredItemCreateRequest, MonitoringMode, PermissionType, PublishRequest, ReadResponse,
    TimestampsToReturn, WriteResponse,
};
use taktwerk_schema::ids::object_ids;
use taktwerk_types::Variant;

/// A server with a client whose Read of 600 values and a structure is in progress.
fn under_way() -> (Server, Client, u32) {
    let mut server = with_variables(600);
    let mut client = server.session();
    slow(&mut server);
    let request = read(&mut client, values(1..=600));
    let id = post(&mut client, &mut server, &request);
    assert!(client.responses.is_empty() && !server.shard.turns.is_idle());
    (server, client, id)
}

#[test]
fn requests_of_a_connection_stay_in_order() {
    let (mut server, mut client, first) = under_way();
    let request = write(&mut client, 1..=600, 77.0);
    let second = post(&mut client, &mut server, &request);
    let request = read(&mut client, values(1..=600));
    let third = post(&mut client, &mut server, &request);
    let mut order = Vec::new();
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
        let new = client.responses.iter().map(|(id, _)| *id).filter(|id| !order.contains(id));
        order.extend(new.collect::<Vec<_>>());
    }
    assert_eq!(order, [first, second, third]);
    let before = client.response::<ReadResponse>(first).unwrap().unwrap().results;
    assert_eq!(before[599].value, Some(Variant::from(600.0)), "it was sent before the Write");
    assert_eq!(client.response::<WriteResponse>(second).unwrap().unwrap().results, [StatusCode::GOOD; 600]);
    let after = client.response::<ReadResponse>(third).unwrap().unwrap().results;
    assert!(after.iter().all(|value| value.value == Some(Variant::from(77.0))));
}

#[test]
fn a_client_with_many_requests_is_no_longer_read() {
    let (mut server, mut client, _) = under_way();
    let mut asked = 0;
    while server.shard.wants_read(client.connection) {
        let request = read(&mut client, values(1..=600));
        post(&mut client, &mut server, &request);
        asked += 1;
        assert!(asked < 100);
    }
    // All are answered in the end, and no charge remains.
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    assert_eq!(client.responses.len(), asked + 1);
    assert_eq!(server.shard.shared().account().used(Category::Requests), 0);
}

#[test]
fn postponed_requests_are_charged_and_released() {
    let mut server = with_variables(1);
    let mut client = server.session();
    slow(&mut server);
    let request = read(&mut client, values(1..=9_000));
    post(&mut client, &mut server, &request);
    assert!(server.shard.shared().account().used(Category::Requests) > 100_000);
    server.shard.closed(client.connection, server.now);
    assert_eq!(server.shard.shared().account().used(Category::Requests), 0);
    assert!(server.shard.turns.is_idle());
    assert_eq!(server.shard.session_count(), 1);
}

#[test]
fn a_cancel_ends_running_requests_and_those_queued_behind() {
    let (mut server, mut client, first) = under_way();
    let first_handle = client.header().request_handle - 1;
    let request = write(&mut client, 1..=600, 5.0);
    let write_handle = request.request_header.request_handle;
    let second = post(&mut client, &mut server, &request);
    for (handle, id) in [(first_handle, first), (write_handle, second)] {
        let cancel = CancelRequest { request_header: client.header(), request_handle: handle };
        let cancel = post(&mut client, &mut server, &cancel);
        let cancelled = client.response::<schema::CancelResponse>(cancel).unwrap().unwrap();
        assert_eq!(cancelled.cancel_count, 1);
        let fault = client.response::<ReadResponse>(id).unwrap().unwrap_err();
        assert_eq!(fault, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT);
    }
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    assert!(client.responses.is_empty());
    let value = super::attribute::read(&mut client, &mut server, NodeId::numeric(1, 600), 13);
    assert_eq!(value.value, Some(Variant::from(600.0)), "the Write was never begun");
}

#[test]
fn a_publish_does_not_wait_for_a_long_request() {
    let mut server = with_variables(600);
    let mut client = server.session();
    subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    slow(&mut server);
    let request = read(&mut client, values(1..=600));
    let id = post(&mut client, &mut server, &request);
    let request = PublishRequest { request_header: client.header(), ..Default::default() };
    let publish = post(&mut client, &mut server, &request);
    server.now.instant = server.now.instant + Duration::from_millis(200);
    turn(&mut server, &mut client);
    assert!(client.response::<schema::PublishResponse>(publish).is_some());
    assert!(client.response::<ReadResponse>(id).is_none());
}

#[test]
fn a_session_ends_with_its_requests() {
    let (mut server, mut client, id) = under_way();
    let key = server.shard.sessions.iter().next().unwrap().0;
    server.shard.context(None, server.now).close_session(key, true, None);
    client.drain(&mut server);
    assert_eq!(client.response::<ReadResponse>(id).unwrap().unwrap_err(), StatusCode::BAD_SESSION_CLOSED);
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    assert!(client.responses.is_empty());
}

#[test]
fn a_close_session_waits_for_earlier_requests() {
    let (mut server, mut client, id) = under_way();
    let request = CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    let close = post(&mut client, &mut server, &request);
    assert_eq!(server.shard.session_count(), 1);
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    assert_eq!(client.response::<ReadResponse>(id).unwrap().unwrap().results.len(), 600);
    client.response::<schema::CloseSessionResponse>(close).unwrap().unwrap();
    assert_eq!(server.shard.session_count(), 0);
}

#[test]
fn a_request_ends_at_its_timeout() {
    let (mut server, mut client, id) = under_way();
    let mut request = read(&mut client, values([1]));
    request.request_header.timeout_hint = 50;
    let behind = post(&mut client, &mut server, &request);
    server.now.instant = server.now.instant + Duration::from_secs(11);
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    for id in [id, behind] {
        assert_eq!(client.response::<ReadResponse>(id).unwrap().unwrap_err(), StatusCode::BAD_TIMEOUT);
    }
}

#[test]
fn changed_permissions_apply_to_remaining_operations() {
    let (mut server, mut client, id) = under_way();
    let nobody = Access {
        role_permissions: Some(vec![(
            object_ids::WELL_KNOWN_ROLE_OPERATOR.into(),
            PermissionType::READ | PermissionType::BROWSE,
        )]),
        access_restrictions: None,
    };
    for number in [1, 600] {
        server.space.set_access(&NodeId::numeric(1, number), nobody.clone()).unwrap();
    }
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    let results = client.response::<ReadResponse>(id).unwrap().unwrap().results;
    assert_eq!(results[0].value, Some(Variant::from(1.0)), "it was read while permitted");
    assert_eq!(results[599].status(), StatusCode::BAD_NODE_ID_UNKNOWN);
}

#[test]
fn nodes_may_be_deleted_while_they_are_browsed() {
    let mut server = with_variables(600);
    let mut client = server.session();
    slow(&mut server);
    let request = browse(&mut client, object_ids::OBJECTS_FOLDER, 2);
    let id = post(&mut client, &mut server, &request);
    for number in 300..=600 {
        server.space.delete_node(&NodeId::numeric(1, number)).unwrap();
    }
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    let results = client.response::<BrowseResponse>(id).unwrap().unwrap().results;
    assert!(results.iter().all(|result| result.status_code == StatusCode::GOOD));
    let names = |at: usize| results[at].references.iter().filter(|to| to.browse_name.name.as_str() == "v299");
    assert_eq!((names(0).count(), names(1).count()), (1, 1));
    assert!(results[1].references.iter().all(|to| to.browse_name.name.as_str() != "v600"));
}

#[test]
fn a_subscription_may_end_while_items_are_created() {
    let mut server = with_variables(600);
    let mut client = server.session();
    let subscription_id = subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    slow(&mut server);
    let item = |number| MonitoredItemCreateRequest {
        item_to_monitor: values([number]).remove(0),
        monitoring_mode: MonitoringMode::REPORTING,
        ..Default::default()
    };
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: (1..=600).map(item).collect(),
    };
    let id = post(&mut client, &mut server, &request);
    assert!(server.shard.context(None, server.now).engine.item_count() > 1);
    let key = server.shard.sessions.iter().next().unwrap().0;
    {
        let cx = &mut server.shard.context(None, server.now);
        let place = cx.engine.find(key.into(), subscription_id).unwrap();
        cx.engine.delete_subscription(place, &mut cx.outbox);
    }
    turn(&mut server, &mut client);
    let fault = client.response::<schema::CreateMonitoredItemsResponse>(id).unwrap().unwrap_err();
    assert_eq!(fault, StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
    assert_eq!(server.shard.context(None, server.now).engine.item_count(), 0);
}
