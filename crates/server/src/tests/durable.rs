//! Durable subscriptions over the wire: they survive the server, with what was not delivered.

use super::attribute::{add, variable};
use super::flow::{publish, values};
use super::transfer::Pair;
use super::*;
use crate::durable::{Change, DurableConfig, DurableStore, Log};
use crate::history::StoreError;
use schema::ids::{method_ids, object_ids, object_type_ids};
use schema::{
    CallMethodRequest, CallMethodResult, CallRequest, CreateMonitoredItemsRequest, CreateSubscriptionRequest,
    DataChangeNotification, DeleteMonitoredItemsRequest, DeleteSubscriptionsRequest, EventFilter,
    EventNotificationList, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters,
    NotificationMessage, PublishResponse, ReadValueId, RepublishRequest, SetMonitoringModeRequest,
    SimpleAttributeOperand, SubscriptionAcknowledgement, TimestampsToReturn, TransferResult,
    TransferSubscriptionsRequest,
};
use std::collections::BTreeMap;
use std::sync::Mutex;
use taktwerk_types::{BuiltInType, ExtensionObject, QualifiedName, Variant};

/// A store that outlives servers, and can be full.
#[derive(Debug, Default)]
pub(super) struct Memory {
    logs: Mutex<BTreeMap<u32, Vec<Vec<u8>>>>,
    is_full: Mutex<bool>,
    /// Bytes that the last write was to store.
    asked: Mutex<usize>,
}

impl DurableStore for Memory {
    fn load(&self) -> Result<Vec<Log>, StoreError> {
        let logs = self.logs.lock().unwrap();
        Ok(logs.iter().map(|(id, records)| Log { subscription: *id, records: records.clone() }).collect())
    }

    fn write(&self, changes: &[Change]) -> Result<(), StoreError> {
        let len = |change: &Change| match change {
            Change::Append { record, .. } | Change::Replace { record, .. } => record.len(),
            Change::Delete { .. } => 0,
        };
        *self.asked.lock().unwrap() = changes.iter().map(len).sum();
        if *self.is_full.lock().unwrap() {
            return Err(StoreError::unavailable("the disk is full".to_owned()));
        }
        let mut logs = self.logs.lock().unwrap();
        for change in changes {
            match change.clone() {
                Change::Append { subscription, record } => logs.entry(subscription).or_default().push(record),
                Change::Replace { subscription, record } => {
                    logs.insert(subscription, vec![record]);
                }
                Change::Delete { subscription } => {
                    logs.remove(&subscription);
                }
            }
        }
        Ok(())
    }

    fn records(&self, subscription: u32) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.logs.lock().unwrap().get(&subscription).cloned().unwrap_or_default())
    }
}

fn started(store: &Arc<Memory>, change: impl FnOnce(&mut DurableConfig)) -> Server {
    started_with(store, change, |_| {})
}

fn started_with(
    store: &Arc<Memory>,
    change: impl FnOnce(&mut DurableConfig),
    change_server: impl FnOnce(&mut ServerConfig),
) -> Server {
    let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
    let mut config = ServerConfig::new("Test", APPLICATION, URL, utc);
    let mut durable = DurableConfig::new(Arc::clone(store) as Arc<dyn DurableStore>);
    change(&mut durable);
    config.durable = Some(durable);
    change_server(&mut config);
    let space = Arc::new(AddressSpace::new(1, 4096, APPLICATION));
    let shared = ServerShared::new(config, Arc::clone(&space), 1, utc);
    let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
    shared.load_durable().unwrap();
    let shard = Shard::new(0, shared, Box::new(SeededEntropy::new(1)));
    let server = Server { shard, space, now, from: None };
    add(&server, variable(1, BuiltInType::Double, 0.0));
    server
}

pub(super) fn server(store: &Arc<Memory>) -> Server {
    started(store, |_| {})
}

impl Server {
    fn set(&self, value: f64) {
        self.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(value, self.now.utc);
    }

    /// Time passes, and everything that is to be written is.
    pub(super) fn settle(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(10) {
            self.pass(Duration::from_millis(10));
            while self.run_effect() {}
        }
    }
}

fn create(client: &mut Client, server: &mut Server) -> u32 {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(server, &request).unwrap().subscription_id
}

fn make_durable(client: &mut Client, server: &mut Server, id: u32, hours: u32) -> CallMethodResult {
    let what = CallMethodRequest {
        object_id: object_ids::SERVER.into(),
        method_id: method_ids::SERVER_SET_SUBSCRIPTION_DURABLE.into(),
        input_arguments: vec![id.into(), hours.into()],
    };
    let request = CallRequest { request_header: client.header(), methods_to_call: vec![what] };
    client.call(server, &request).unwrap().results.remove(0)
}

fn add_item(client: &mut Client, server: &mut Server, id: u32, queue_size: u32, handle: u32) -> u32 {
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, 1),
            attribute_id: 13,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: handle,
            sampling_interval: 0.0,
            queue_size,
            discard_oldest: true,
            ..Default::default()
        },
    };
    create_items(client, server, id, item)
}

fn create_items(client: &mut Client, server: &mut Server, id: u32, item: MonitoredItemCreateRequest) -> u32 {
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id: id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: vec![item],
    };
    let result = client.call(server, &request).unwrap().results.remove(0);
    assert_eq!(result.status_code, StatusCode::GOOD);
    result.monitored_item_id
}

pub(super) fn durable(client: &mut Client, server: &mut Server) -> u32 {
    let id = create(client, server);
    let result = make_durable(client, server, id, 0);
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert_eq!(result.output_arguments, [Variant::from(168u32)]);
    id
}

fn transfer(client: &mut Client, server: &mut Server, id: u32) -> TransferResult {
    let request = TransferSubscriptionsRequest {
        request_header: client.header(),
        subscription_ids: vec![id],
        send_initial_values: false,
    };
    client.call(server, &request).unwrap().results.remove(0)
}

fn next(client: &mut Client, server: &mut Server) -> PublishResponse {
    let request = publish(client, server);
    server.settle(300);
    client.drain(server);
    client.response::<PublishResponse>(request).unwrap().unwrap()
}

/// The values of one item with their Overflow bits.
fn of_item(message: &NotificationMessage, handle: u32) -> Vec<(f64, bool)> {
    let data =
        message.notification_data.iter().filter_map(|data| data.decode::<DataChangeNotification>().ok());
    data.flat_map(|data| data.monitored_items)
        .filter(|item| item.client_handle == handle)
        .map(|item| {
            let overflow = item.value.status().has_overflow();
            (item.value.value.as_ref().and_then(Variant::as_f64).unwrap_or(f64::NAN), overflow)
        })
        .collect()
}

#[test]
fn what_was_not_delivered_survives_the_server() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    let item = add_item(&mut client, &mut first, id, 100, 5);
    let other = add_item(&mut client, &mut first, id, 100, 6);
    assert_eq!(of_item(&next(&mut client, &mut first).notification_message, 5), [(0.0, false)]);
    for value in [1.0, 2.0] {
        first.set(value);
    }
    // A message that was sent and not acknowledged, and values that were not sent.
    let sent = next(&mut client, &mut first).notification_message;
    assert_eq!(of_item(&sent, 5), [(1.0, false), (2.0, false)]);
    for value in [3.0, 4.0] {
        first.set(value);
        first.settle(100);
    }
    // Not written: the server dies before.
    first.set(5.0);
    drop(first);

    let mut second = server(&store);
    let mut stranger = second.connect();
    stranger.create(&mut second).unwrap();
    stranger.activate(&mut second).unwrap();
    let result = transfer(&mut stranger, &mut second, id);
    assert_eq!(
        result.status_code,
        StatusCode::GOOD,
        "anonymous clients of one application are the same user"
    );
    assert!(result.available_sequence_numbers.contains(&sent.sequence_number));
    let request = RepublishRequest {
        request_header: stranger.header(),
        subscription_id: id,
        retransmit_sequence_number: sent.sequence_number,
    };
    let again = stranger.call(&mut second, &request).unwrap().notification_message;
    assert_eq!(again, sent);
    let message = next(&mut stranger, &mut second).notification_message;
    assert_eq!(message.sequence_number, sent.sequence_number + 1);
    // The value that the variable has now says that some before it may be missing.
    for handle in [5, 6] {
        assert_eq!(of_item(&message, handle), [(3.0, false), (4.0, false), (0.0, true)]);
    }
    second.set(7.0);
    assert_eq!(of_item(&next(&mut stranger, &mut second).notification_message, 5), [(7.0, false)]);
    // Items have the ids that the client knows.
    let request = DeleteMonitoredItemsRequest {
        request_header: stranger.header(),
        subscription_id: id,
        monitored_item_ids: vec![item],
    };
    assert_eq!(stranger.call(&mut second, &request).unwrap().results, [StatusCode::GOOD]);
    second.settle(200);
    drop(second);
    let mut third = server(&store);
    let mut client = third.session();
    assert_eq!(transfer(&mut client, &mut third, id).status_code, StatusCode::GOOD);
    let message = next(&mut client, &mut third).notification_message;
    assert_eq!(of_item(&message, 5), []);
    assert_eq!(of_item(&message, 6), [(0.0, true)]);
    let request = SetMonitoringModeRequest {
        request_header: client.header(),
        subscription_id: id,
        monitoring_mode: MonitoringMode::SAMPLING,
        monitored_item_ids: vec![other],
    };
    assert_eq!(client.call(&mut third, &request).unwrap().results, [StatusCode::GOOD]);
    let request = DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![id] };
    assert_eq!(client.call(&mut third, &request).unwrap().results, [StatusCode::GOOD]);
    third.settle(200);
    assert!(store.logs.lock().unwrap().is_empty());
}

#[test]
fn an_orderly_end_loses_nothing() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 100, 5);
    next(&mut client, &mut first);
    first.set(1.0);
    let now = first.now;
    first.shard.command(crate::shard::Command::Shutdown, now);
    while first.shard.is_ending() {
        assert!(first.run_effect());
    }
    drop(first);
    let mut second = server(&store);
    second.set(0.0);
    let mut client = second.session();
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let message = next(&mut client, &mut second).notification_message;
    assert_eq!(of_item(&message, 5), [(1.0, false), (0.0, false)]);
}

#[test]
fn messages_are_written_before_they_are_sent() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    add_item(&mut client, &mut server, id, 100, 5);
    let request = publish(&mut client, &mut server);
    server.pass(Duration::from_millis(300));
    client.drain(&mut server);
    assert!(client.response::<PublishResponse>(request).is_none());
    while server.run_effect() {}
    client.drain(&mut server);
    let response = client.response::<PublishResponse>(request).unwrap().unwrap();
    assert_eq!(of_item(&response.notification_message, 5), [(0.0, false)]);
    // A connection that is lost meanwhile loses the answer, and not the message.
    server.set(1.0);
    publish(&mut client, &mut server);
    server.pass(Duration::from_millis(300));
    let now = server.now;
    server.shard.closed(client.connection, now);
    while server.run_effect() {}
    let mut client = server.session();
    let result = transfer(&mut client, &mut server, id);
    let lost = response.notification_message.sequence_number + 1;
    assert!(result.available_sequence_numbers.contains(&lost));
    let request = RepublishRequest {
        request_header: client.header(),
        subscription_id: id,
        retransmit_sequence_number: lost,
    };
    let message = client.call(&mut server, &request).unwrap().notification_message;
    assert_eq!(of_item(&message, 5), [(1.0, false)]);
}

#[test]
fn a_full_disk_stops_nothing() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 100, 5);
    next(&mut client, &mut first);
    *store.is_full.lock().unwrap() = true;
    for value in [1.0, 2.0, 3.0] {
        first.set(value);
        let message = next(&mut client, &mut first).notification_message;
        assert_eq!(of_item(&message, 5), [(value, false)]);
    }
    first.set(4.0);
    *store.is_full.lock().unwrap() = false;
    first.settle(1_500);
    drop(first);
    let mut second = server(&store);
    let mut client = second.session();
    let result = transfer(&mut client, &mut second, id);
    assert_eq!(result.available_sequence_numbers.len(), 4);
    let message = next(&mut client, &mut second).notification_message;
    assert_eq!(of_item(&message, 5), [(4.0, false), (0.0, true)]);
}

#[test]
fn what_waits_for_a_full_disk_does_not_grow() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 10, 5);
    next(&mut client, &mut first);
    *store.is_full.lock().unwrap() = true;
    first.set(1.0);
    first.settle(300);
    let asked = *store.asked.lock().unwrap();
    for round in 0..10 {
        for value in 0..10 {
            first.set(f64::from(100 * round + value));
            first.settle(110);
        }
    }
    assert!(*store.asked.lock().unwrap() <= asked, "{} > {asked}", store.asked.lock().unwrap());
    *store.is_full.lock().unwrap() = false;
    first.settle(1_500);
    drop(first);
    let mut second = server(&store);
    let mut client = second.session();
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let values = of_item(&next(&mut client, &mut second).notification_message, 5);
    // The newest ten, the first of which says that others are missing; then the value of now.
    let newest: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
    assert_eq!(newest[newest.len() - 2..], [909.0, 0.0], "{values:?}");
    assert!(values[0].1, "{values:?}");
}

#[test]
fn what_could_not_be_written_moves_along_to_another_shard() {
    let store = Arc::new(Memory::default());
    let mut pair = Pair::with(|config| {
        config.durable = Some(DurableConfig::new(Arc::clone(&store) as Arc<dyn DurableStore>));
    });
    let settle = |pair: &mut Pair, ms: u64| {
        for _ in 0..ms.div_ceil(10) {
            for server in &mut pair.shards {
                server.settle(10);
            }
            pair.deliver();
        }
    };
    let mut client = pair.shards[0].session();
    let id = durable(&mut client, &mut pair.shards[0]);
    add_item(&mut client, &mut pair.shards[0], id, 100, 5);
    assert_eq!(of_item(&next(&mut client, &mut pair.shards[0]).notification_message, 5), [(1.0, false)]);
    // Another one stays behind, with changes of its own.
    let other = durable(&mut client, &mut pair.shards[0]);
    add_item(&mut client, &mut pair.shards[0], other, 100, 6);
    settle(&mut pair, 300);
    *store.is_full.lock().unwrap() = true;
    pair.set(2.0);
    settle(&mut pair, 300);
    let now = pair.shards[0].now;
    pair.shards[0].shard.closed(client.connection, now);
    let mut client = pair.shards[1].session();
    assert_eq!(pair.transfer(&mut client, 1, &[id]), [StatusCode::GOOD]);
    // The new shard writes first what the old one could not.
    *store.is_full.lock().unwrap() = false;
    pair.set(3.0);
    pair.shards[1].settle(2_000);
    let written = store.records(id).unwrap().len();
    pair.shards[0].settle(2_000);
    assert_eq!(store.records(id).unwrap().len(), written, "the old shard has nothing of it left");
    drop(pair);
    let mut second = server(&store);
    let mut client = second.session();
    for (id, handle) in [(id, 5), (other, 6)] {
        assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
        let values = of_item(&next(&mut client, &mut second).notification_message, handle);
        let expected = if handle == 5 { vec![] } else { vec![(1.0, false)] };
        let rest = [(2.0, false), (3.0, false), (0.0, true)];
        assert_eq!(values, [expected, rest.to_vec()].concat(), "{handle}");
    }
}

#[test]
fn what_could_not_be_written_is_paid_for_on_every_shard() {
    let store = Arc::new(Memory::default());
    let mut pair = Pair::with(|config| {
        config.durable = Some(DurableConfig::new(Arc::clone(&store) as Arc<dyn DurableStore>));
    });
    let mut client = pair.shards[0].session();
    let id = durable(&mut client, &mut pair.shards[0]);
    let item = add_item(&mut client, &mut pair.shards[0], id, 10, 5);
    pair.shards[0].settle(300);
    *store.is_full.lock().unwrap() = true;
    let before = pair.shards[0].used(Category::Requests);
    for mode in [MonitoringMode::SAMPLING, MonitoringMode::REPORTING] {
        let request = SetMonitoringModeRequest {
            request_header: client.header(),
            subscription_id: id,
            monitoring_mode: mode,
            monitored_item_ids: vec![item; 5_000],
        };
        client.call(&mut pair.shards[0], &request).unwrap();
    }
    pair.shards[0].settle(300);
    let kept = pair.shards[0].used(Category::Requests) - before;
    assert!(kept > 20_000, "{kept}");
    for at in [1, 0, 1] {
        let now = pair.shards[1 - at].now;
        pair.shards[1 - at].shard.closed(client.connection, now);
        client = pair.shards[at].session();
        assert_eq!(pair.transfer(&mut client, at, &[id]), [StatusCode::GOOD]);
        for _ in 0..50 {
            pair.shards[at].settle(10);
            pair.deliver();
        }
        let now = pair.shards[at].used(Category::Requests) - before;
        assert!(now >= kept, "shard {at}: {now} of {kept} bytes");
    }
}

#[test]
fn a_full_disk_bounds_what_clients_can_change() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    let item = add_item(&mut client, &mut server, id, 10, 5);
    next(&mut client, &mut server);
    *store.is_full.lock().unwrap() = true;
    server.set(1.0);
    server.settle(300);
    let mut set_mode = |server: &mut Server, mode: MonitoringMode, count: usize| {
        let request = SetMonitoringModeRequest {
            request_header: client.header(),
            subscription_id: id,
            monitoring_mode: mode,
            monitored_item_ids: vec![item; count],
        };
        client.call(server, &request).unwrap().results
    };
    // Every change waits for the disk, and only so many can.
    let before = server.used(Category::Requests);
    let mut refused = 0;
    for round in 0..60 {
        let mode = if round % 2 == 0 { MonitoringMode::SAMPLING } else { MonitoringMode::REPORTING };
        let results = set_mode(&mut server, mode, 5_000);
        refused += results.iter().filter(|status| **status == StatusCode::BAD_OUT_OF_MEMORY).count();
    }
    let kept = server.used(Category::Requests) - before;
    assert!(refused > 100_000 && kept < 3 << 20, "{refused} refused, {kept} bytes kept");
    // Other items can go: what makes the log longer then is bounded by how many there were.
    *store.is_full.lock().unwrap() = false;
    server.settle(2_000);
    assert_eq!(set_mode(&mut server, MonitoringMode::REPORTING, 1), [StatusCode::GOOD]);
    // Subscriptions that came and went meanwhile have left nothing.
    let request = DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![id] };
    assert_eq!(client.call(&mut server, &request).unwrap().results, [StatusCode::GOOD]);
    server.settle(2_000);
    assert!(store.logs.lock().unwrap().is_empty());
}

#[test]
fn strangers_have_one_limit_whatever_they_call_themselves() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let stranger = |server: &mut Server, uri: &str| {
        let mut client = server.connect();
        let mut request = schema::CreateSessionRequest {
            request_header: client.header(),
            endpoint_url: URL.into(),
            requested_session_timeout: 60_000.0,
            ..Default::default()
        };
        request.client_description.application_uri = uri.into();
        client.token = client.call(server, &request).unwrap().authentication_token;
        client.activate(server).unwrap();
        client
    };
    let mut made = 0;
    let refused = 'all: loop {
        let mut client = stranger(&mut server, &format!("urn:stranger:{made}"));
        for _ in 0..40 {
            let id = create(&mut client, &mut server);
            let result = make_durable(&mut client, &mut server, id, 0);
            if result.status_code != StatusCode::GOOD {
                break 'all result.status_code;
            }
            made += 1;
        }
        let now = server.now;
        server.shard.closed(client.connection, now);
    };
    assert_eq!((made, refused), (100, StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS));
}

#[test]
fn limits_and_states_are_told() {
    let store = Arc::new(Memory::default());
    let mut server = started(&store, |durable| {
        durable.lifetime_hours_max = 2;
        durable.queue_size_max = 50;
        durable.bytes_per_user_max = 64 << 10;
    });
    let mut client = server.session();
    let plain = create(&mut client, &mut server);
    add_item(&mut client, &mut server, plain, 10, 1);
    assert_eq!(make_durable(&mut client, &mut server, plain, 1).status_code, StatusCode::BAD_INVALID_STATE);
    assert_eq!(
        make_durable(&mut client, &mut server, 9, 1).status_code,
        StatusCode::BAD_SUBSCRIPTION_ID_INVALID
    );
    let id = create(&mut client, &mut server);
    let mut other = server.session();
    assert_eq!(make_durable(&mut other, &mut server, id, 1).status_code, StatusCode::BAD_USER_ACCESS_DENIED);
    for (asked, revised) in [(1, 1u32), (9, 2), (0, 2)] {
        let result = make_durable(&mut client, &mut server, id, asked);
        assert_eq!(result.output_arguments, [Variant::from(revised)]);
    }
    add_item(&mut client, &mut server, id, 1_000_000, 5);
    next(&mut client, &mut server);
    // Half an hour without a client: an ordinary subscription would have gone.
    let request =
        DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![plain] };
    client.call(&mut server, &request).unwrap();
    let now = server.now;
    server.shard.closed(client.connection, now);
    for value in 1..=100 {
        server.set(f64::from(value));
        server.settle(20);
    }
    server.pass(Duration::from_secs(60));
    while server.run_effect() {}
    let mut client = server.session();
    assert_eq!(transfer(&mut client, &mut server, id).status_code, StatusCode::GOOD);
    let values = of_item(&next(&mut client, &mut server).notification_message, 5);
    assert_eq!(values.len(), 50);
    assert_eq!((values[0], values[49]), ((51.0, true), (100.0, false)));
    // What one user keeps has a limit, whatever the number of subscriptions.
    let mut refused = 0;
    for _ in 0..50 {
        let id = create(&mut client, &mut server);
        let result = make_durable(&mut client, &mut server, id, 1);
        if result.status_code == StatusCode::BAD_OUT_OF_MEMORY {
            refused += 1;
            continue;
        }
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: NodeId::numeric(1, 1),
                attribute_id: 13,
                ..Default::default()
            },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters { queue_size: 50, ..Default::default() },
        };
        let request = CreateMonitoredItemsRequest {
            request_header: client.header(),
            subscription_id: id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![item],
        };
        client.call(&mut server, &request).unwrap();
    }
    assert!(refused > 10, "{refused}");
    // Without a store there are none.
    let mut other = Server::new();
    let mut client = other.session();
    let id = create(&mut client, &mut other);
    assert_eq!(make_durable(&mut client, &mut other, id, 1).status_code, StatusCode::BAD_NOT_EXECUTABLE);
}

#[test]
fn acknowledged_messages_do_not_come_back_and_logs_stay_short() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    add_item(&mut client, &mut server, id, 2_000, 5);
    let mut last = next(&mut client, &mut server).notification_message.sequence_number;
    for round in 0..60 {
        for value in 0..1_000 {
            server.set(f64::from(round * 1_000 + value + 1));
        }
        let request = schema::PublishRequest {
            request_header: RequestHeader { timeout_hint: 0, ..client.header() },
            subscription_acknowledgements: vec![SubscriptionAcknowledgement {
                subscription_id: id,
                sequence_number: last,
            }],
        };
        let request = client.send(&mut server, schema::PublishRequest::BINARY_ENCODING_ID, &request);
        server.settle(200);
        client.drain(&mut server);
        let response = client.response::<PublishResponse>(request).unwrap().unwrap();
        assert_eq!(values(&response).len(), 1_000);
        assert_eq!(response.results, [StatusCode::GOOD]);
        last = response.notification_message.sequence_number;
        assert_eq!(response.available_sequence_numbers, [last]);
    }
    server.settle(200);
    let bytes: usize = store.records(id).unwrap().iter().map(Vec::len).sum();
    // 60 messages of 1000 values have about 1.9 MB.
    assert!(bytes < 1_300_000, "{bytes}");
}

#[test]
fn events_survive_too() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    let select = |name: &str| SimpleAttributeOperand {
        type_definition_id: object_type_ids::BASE_EVENT_TYPE.into(),
        browse_path: vec![QualifiedName::new(0, name)],
        attribute_id: 13,
        ..Default::default()
    };
    let filter =
        EventFilter { select_clauses: vec![select("Message"), select("EventId")], ..Default::default() };
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: object_ids::SERVER.into(),
            attribute_id: 12,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: 9,
            filter: ExtensionObject::new(&filter),
            queue_size: 100,
            discard_oldest: true,
            ..Default::default()
        },
    };
    create_items(&mut client, &mut first, id, item);
    first.settle(200);
    let mut ids: Vec<Variant> = Vec::new();
    for text in ["one", "two"] {
        let event = crate::NewEvent::new(
            NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE),
            NodeId::numeric(0, object_ids::SERVER),
        );
        ids.extend(first.space.raise(event.message(text), first.now.utc).map(Variant::from));
    }
    first.settle(200);
    drop(first);
    let mut second = server(&store);
    let mut client = second.session();
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let message = next(&mut client, &mut second).notification_message;
    let list = message.notification_data[0].decode::<EventNotificationList>().unwrap();
    let fields: Vec<(String, Variant)> = list
        .events
        .iter()
        .map(|event| match event.event_fields.as_slice() {
            [Variant::LocalizedText(text), id] => (text.text.as_str().to_owned(), id.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    // That some may be missing is said first.
    assert_eq!(fields.len(), 3);
    assert!(fields[0].0.contains("lost"));
    assert_eq!(fields[1..], [("one".to_owned(), ids[0].clone()), ("two".to_owned(), ids[1].clone())]);
}

/// The user of a durable subscription had to change the password when the server ended.
#[test]
fn what_a_limited_user_may_not_see_stays_so_after_a_restart() {
    use super::session::{login, with_users};
    use crate::identity::{Accepted, Credential, IdentityVerifier, Verification};
    struct Expiring;
    impl IdentityVerifier for Expiring {
        fn verify(&self, credential: Credential) -> Verification {
            let Credential::Password { password, .. } = credential else { return Verification::refused() };
            let accepted = Accepted::default();
            let expired = password.expose() == b"old";
            Verification::Now(Ok(if expired { accepted.changing_password() } else { accepted }))
        }
    }
    let store = Arc::new(Memory::default());
    let started = || started_with(&store, |_| {}, |config| with_users(config, Arc::new(Expiring)));
    let mut first = started();
    let mut client = first.connect();
    client.create(&mut first).unwrap();
    let request = login(&mut client, "joe", "new");
    client.call(&mut first, &request).unwrap();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 100, 5);
    assert_eq!(of_item(&next(&mut client, &mut first).notification_message, 5), [(0.0, false)]);
    let request = login(&mut client, "joe", "old");
    client.call(&mut first, &request).unwrap();
    first.set(1.0);
    first.settle(300);
    drop(first);
    let mut second = started();
    second.settle(300);
    let now = second.now;
    let cx = second.shard.context(None, now);
    let (_, grant) = cx.engine.orphans().remove(0);
    assert!(grant.is_limited);
    // Values that come now are not kept for a user who may not see them.
    second.set(2.0);
    second.settle(300);
    let mut client = second.connect();
    client.create(&mut second).unwrap();
    let request = login(&mut client, "joe", "new");
    client.call(&mut second, &request).unwrap();
    second.set(3.0);
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(value, _)| *value != 3.0) {
        let message = next(&mut client, &mut second).notification_message;
        seen.extend(of_item(&message, 5));
        assert!(message.sequence_number < 10, "{seen:?}");
    }
    assert!(seen.iter().all(|(value, _)| value.is_nan() || *value >= 3.0), "{seen:?}");
}

/// Filtered Retain (Part 9 §5.5.2) over a restart: the server knows which conditions the client keeps.
#[test]
fn conditions_that_leave_a_filter_after_a_restart_are_told_with_retain_false() {
    use super::alarms::{level, set};
    use super::events::{events, filter, item, parameters, severity_at_least};
    let plant = |server: &mut Server, value: f64| {
        server.space.add_condition(level(1), server.now.utc).unwrap();
        set(server, 1, value);
    };
    let told = |response: &PublishResponse| -> Vec<(Variant, Variant)> {
        let all = events(response);
        // Without the one that says that events may be missing.
        let is_ours = |fields: &&Vec<Variant>| fields[1] != Variant::Empty;
        let all = all.iter().map(|(_, fields)| fields).filter(is_ours);
        all.map(|fields| (fields[0].clone(), fields[1].clone())).collect()
    };
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    plant(&mut first, 20.0);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    let mut filter = filter(&["Severity", "Retain"]);
    filter.where_clause = severity_at_least(700);
    create_items(&mut client, &mut first, id, item(object_ids::SERVER.into(), parameters(&filter, 100)));
    set(&mut first, 1, 96.0);
    let response = next(&mut client, &mut first);
    assert_eq!(told(&response), [(800u16.into(), true.into())]);
    first.settle(300);
    drop(first);
    // The log is read, made shorter and read again.
    for value in [20.0, 85.0] {
        let mut second = server(&store);
        plant(&mut second, 20.0);
        let mut client = second.session();
        assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
        set(&mut second, 1, value);
        let response = next(&mut client, &mut second);
        if value > 80.0 {
            assert_eq!(told(&response), [(500u16.into(), false.into())], "the client still keeps it");
        } else {
            assert_eq!(told(&response), []);
        }
        second.settle(300);
    }
    // It was told: there is nothing to be told of again.
    let mut third = server(&store);
    plant(&mut third, 20.0);
    let mut client = third.session();
    assert_eq!(transfer(&mut client, &mut third, id).status_code, StatusCode::GOOD);
    set(&mut third, 1, 85.0);
    assert_eq!(told(&next(&mut client, &mut third)), []);
}
