//! Transfers a subscription between sessions on different shards, over loopback.

use crate::common::{monitor, start};
use core::time::Duration;
use std::sync::Arc;
use taktwerk_net::ServerOptions;
use taktwerk_net::client::BlockingClient;
use taktwerk_schema::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataChangeNotification, PublishRequest,
    TimestampsToReturn, TransferSubscriptionsRequest,
};
use taktwerk_types::{StatusCode, Variant};

/// The next values delivered to a client.
fn values(client: &mut BlockingClient) -> Vec<(u32, Option<Variant>)> {
    loop {
        let response = client.call(&mut PublishRequest::default()).unwrap();
        let data = response.notification_message.notification_data.into_iter();
        let changes = data.filter_map(|data| data.decode::<DataChangeNotification>().ok());
        let values: Vec<_> = changes
            .flat_map(|change| change.monitored_items)
            .map(|item| (item.client_handle, item.value.value))
            .collect();
        if !values.is_empty() {
            return values;
        }
    }
}

fn subscribe(client: &mut BlockingClient) -> u32 {
    let mut request = CreateSubscriptionRequest {
        requested_publishing_interval: 20.0,
        requested_lifetime_count: 10_000,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(&mut request).unwrap().subscription_id
}

fn transfer(client: &mut BlockingClient, id: u32) {
    let mut request = TransferSubscriptionsRequest { subscription_ids: vec![id], ..Default::default() };
    let result = client.call(&mut request).unwrap().results.remove(0);
    assert_eq!(result.status_code, StatusCode::GOOD);
}

#[test]
fn a_subscription_moves_to_another_shard_and_back() {
    let server = start(3, 2, ServerOptions::default());
    // Connections are distributed, so these are on different shards.
    let (mut one, _) = BlockingClient::connect(Arc::default(), server.target()).unwrap();
    let (mut two, _) = BlockingClient::connect(Arc::default(), server.target()).unwrap();
    let subscription_id = subscribe(&mut one);
    let mut items = CreateMonitoredItemsRequest {
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: (0..3).map(|number| monitor(number, 20.0)).collect(),
        ..Default::default()
    };
    assert_eq!(one.call(&mut items).unwrap().results.len(), 3);
    assert_eq!(values(&mut one).len(), 3);
    for round in 1..20u32 {
        let (number, value) = (round % 3, f64::from(round));
        server.variables[number as usize].set_at(value, taktwerk_net::clock::wall());
        let client = if round % 2 == 0 { &mut one } else { &mut two };
        transfer(client, subscription_id);
        // No other value is delivered again.
        assert_eq!(values(client), [(number, Some(Variant::from(value)))]);
    }
    server.running.stop(Duration::ZERO);
}

/// Collects values of an item with a queue: value, and whether the overflow bit is set.
fn collect(client: &mut BlockingClient, into: &mut Vec<(f64, bool)>) {
    let response = client.call(&mut PublishRequest::default()).unwrap();
    for data in response.notification_message.notification_data {
        let Ok(change) = data.decode::<DataChangeNotification>() else { continue };
        into.extend(change.monitored_items.into_iter().map(|item| {
            let overflow = item.value.status().has_overflow();
            (item.value.value.and_then(|value| value.as_f64()).unwrap(), overflow)
        }));
    }
}

#[test]
fn no_value_is_lost_silently_during_transfers() {
    let server = start(1, 2, ServerOptions::default());
    let (mut one, _) = BlockingClient::connect(Arc::default(), server.target()).unwrap();
    let (mut two, _) = BlockingClient::connect(Arc::default(), server.target()).unwrap();
    let subscription_id = subscribe(&mut one);
    let mut every_write = monitor(0, 0.0);
    every_write.requested_parameters.queue_size = 1000;
    let mut items = CreateMonitoredItemsRequest {
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: vec![every_write],
        ..Default::default()
    };
    one.call(&mut items).unwrap();
    let writer = server.write_every(Duration::from_micros(50));
    let mut received = Vec::new();
    collect(&mut one, &mut received);
    for round in 1..60 {
        let client = if round % 2 == 0 { &mut one } else { &mut two };
        transfer(client, subscription_id);
        for _ in 0..3 {
            collect(client, &mut received);
        }
    }
    drop(writer);
    assert!(received.len() > 1000, "{}", received.len());
    for pair in received.windows(2) {
        let ((before, _), (after, overflow)) = (pair[0], pair[1]);
        assert!(after == before + 1.0 || (after > before && overflow), "{pair:?}");
    }
    let gaps = received.iter().filter(|value| value.1).count();
    // Each transfer may lose some values and sets the overflow bit; otherwise none is lost.
    assert!(gaps < 60, "{gaps}");
}
