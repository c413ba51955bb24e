//! Clients that want few notifications per message receive those of all items, even if one item has very many.

use super::attribute::{add, variable};
use super::events::{filter, item, parameters, raise};
use super::flow::publish;
use super::*;
use schema::ids::object_ids;
use schema::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataChangeNotification, EventNotificationList,
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, PublishResponse, ReadValueId,
    TimestampsToReturn,
};
use std::collections::BTreeMap;
use taktwerk_types::BuiltInType;

const ROUNDS: u32 = 60;

/// A subscription with one notification per message, and these items.
fn subscribe(client: &mut Client, server: &mut Server, items: Vec<MonitoredItemCreateRequest>) {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 100,
        max_notifications_per_publish: 1,
        publishing_enabled: true,
        ..Default::default()
    };
    let subscription_id = client.call(server, &request).unwrap().subscription_id;
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: items,
    };
    let results = client.call(server, &request).unwrap().results;
    assert!(results.iter().all(|result| result.status_code == StatusCode::GOOD));
}

/// Every item gets something in every interval, and the client receives one notification. Returns the counts by client
/// handle.
fn told(client: &mut Client, server: &mut Server, say: impl Fn(&Server, u32)) -> BTreeMap<u32, u32> {
    let mut told = BTreeMap::new();
    for round in 0..ROUNDS {
        say(server, round);
        server.pass(Duration::from_millis(100));
        let request = publish(client, server);
        client.drain(server);
        let response = client.response::<PublishResponse>(request).unwrap().unwrap();
        let mut handles = Vec::new();
        for data in &response.notification_message.notification_data {
            if let Ok(values) = data.decode::<DataChangeNotification>() {
                handles.extend(values.monitored_items.iter().map(|item| item.client_handle));
            }
            if let Ok(events) = data.decode::<EventNotificationList>() {
                handles.extend(events.events.iter().map(|event| event.client_handle));
            }
        }
        assert_eq!(handles.len(), 1, "round {round}");
        *told.entry(handles[0]).or_default() += 1;
    }
    told
}

#[test]
fn values_of_all_items_alternate() {
    let mut server = Server::new();
    (1..=3).for_each(|number| add(&server, variable(number, BuiltInType::UInt32, 0u32)));
    let item = |number: u32| MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, number),
            attribute_id: 13,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: number,
            sampling_interval: 0.0,
            queue_size: 100,
            discard_oldest: true,
            ..Default::default()
        },
    };
    let mut client = server.session();
    subscribe(&mut client, &mut server, (1..=3).map(item).collect());
    let told = told(&mut client, &mut server, |server, round| {
        for number in 1..=3 {
            server.space.variable(&NodeId::numeric(1, number)).unwrap().set_at(round + 1, server.now.utc);
        }
    });
    assert_eq!(told, BTreeMap::from([(1, 20), (2, 20), (3, 20)]));
}

#[test]
fn values_and_events_alternate() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::UInt32, 0u32));
    let from = NodeId::numeric(0, object_ids::SERVER);
    let value = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, 1),
            attribute_id: 13,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: 1,
            queue_size: 100,
            ..Default::default()
        },
    };
    let parameters = MonitoringParameters { client_handle: 2, ..parameters(&filter(&["Severity"]), 100) };
    let mut client = server.session();
    subscribe(&mut client, &mut server, vec![value, item(from.clone(), parameters)]);
    let told = told(&mut client, &mut server, |server, round| {
        server.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(round + 1, server.now.utc);
        raise(server, from.clone(), 5);
    });
    assert_eq!(told, BTreeMap::from([(1, 30), (2, 30)]));
}

#[test]
fn events_of_all_items_alternate() {
    let mut server = Server::new();
    let from = NodeId::numeric(0, object_ids::SERVER);
    let item = |client_handle| {
        let parameters = MonitoringParameters { client_handle, ..parameters(&filter(&["Severity"]), 100) };
        item(from.clone(), parameters)
    };
    let mut client = server.session();
    subscribe(&mut client, &mut server, [1, 2].map(item).into());
    let told = told(&mut client, &mut server, |server, _| raise(server, from.clone(), 5));
    assert_eq!(told, BTreeMap::from([(1, 30), (2, 30)]));
}
