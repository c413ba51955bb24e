//! Events in transit to a shard: no turn processes the whole ring, and items receive only their own events.

use super::durable::{durable, server as durable_server};
use super::events::{
    AREA, create, filter, item, next, parameters, plant, raise, severities, severity_at_least, watching,
};
use super::transfer::Pair;
use super::*;
use crate::event::bus::RING_LEN;
use schema::ids::object_ids;
use schema::{
    CreateMonitoredItemsRequest, ModifyMonitoredItemsRequest, MonitoredItemModifyRequest, MonitoringMode,
    MonitoringParameters, SetMonitoringModeRequest, TimestampsToReturn,
};
use taktwerk_types::Variant;

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
/// Maximum number of items visited per slice.
const SLICE: u64 = 256;
/// Client handle of items created in large numbers.
const OTHERS: u32 = 8;

fn create_many(
    client: &mut Client,
    server: &mut Server,
    subscription_id: u32,
    node: NodeId,
    count: usize,
) -> Vec<u32> {
    let parameters = MonitoringParameters { client_handle: OTHERS, ..parameters(&filter(&["Severity"]), 10) };
    let wanted = item(node, parameters);
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: vec![wanted; count],
    };
    let results = client.call(server, &request).unwrap().results;
    assert!(results.iter().all(|result| result.status_code == StatusCode::GOOD));
    results.iter().map(|result| result.monitored_item_id).collect()
}

/// All waiting notifications of a client.
fn all(client: &mut Client, server: &mut Server) -> Vec<(u32, Vec<Variant>)> {
    let mut all = Vec::new();
    loop {
        let more = next(client, server);
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

/// Runs the shard for a while. Returns the most items visited in one turn, and the total.
fn turns(server: &mut Server, span: Duration) -> (u64, u64) {
    let end = server.now.instant + span;
    let (mut most, mut sum) = (0, 0);
    server.shard.take_work();
    while let Some((at, _)) = server.shard.poll_timeout().filter(|(at, _)| *at <= end) {
        let at = at.max(server.now.instant);
        server.now.utc = server.now.utc.plus(at.since(server.now.instant));
        server.now.instant = at;
        server.shard.timer(server.now);
        let asked = server.shard.take_work().items_walked;
        (most, sum) = (most.max(asked), sum + asked);
    }
    (most, sum)
}

#[test]
fn items_are_created_and_enabled_beside_a_full_ring_in_bounded_turns() {
    let mut server = Server::new();
    let (mut client, id, _) = watching(&mut server, SERVER, &filter(&["Severity"]));
    let watching_before = create_many(&mut client, &mut server, id, SERVER, 29);
    (0..RING_LEN - 1).for_each(|_| raise(&server, SERVER, 5));
    assert_eq!(server.space.events().len(0), RING_LEN - 1);
    // Neither creating nor disabling and enabling offers an event to an item.
    server.shard.take_work();
    create_many(&mut client, &mut server, id, SERVER, 50);
    for monitoring_mode in [MonitoringMode::DISABLED, MonitoringMode::REPORTING] {
        let request = SetMonitoringModeRequest {
            request_header: client.header(),
            subscription_id: id,
            monitoring_mode,
            monitored_item_ids: watching_before.clone(),
        };
        client.call(&mut server, &request).unwrap();
    }
    let asked = server.shard.take_work().items_walked;
    assert_eq!(asked, 0, "{} events wait", server.space.events().len(0));
    raise(&server, SERVER, 9);
    let (most, sum) = turns(&mut server, Duration::from_millis(150));
    assert!(sum >= (RING_LEN * 80) as u64 && most > SLICE * 3 / 4 && most <= SLICE, "{most} of {sum}");
    // The earlier item received everything; the others only later events.
    let told = severities(&all(&mut client, &mut server));
    assert_eq!(told.iter().filter(|severity| **severity == Variant::from(9u16)).count(), 80);
    assert_eq!(told.iter().filter(|severity| **severity == Variant::from(5u16)).count(), 999);
}

#[test]
fn a_loss_in_transit_is_reported_to_all_in_bounded_turns() {
    let mut server = Server::new();
    plant(&server.space);
    let names = filter(&["Severity"]);
    let (mut client, id, _) = watching(&mut server, SERVER, &names);
    let mut items = 1;
    for _ in 0..3 {
        items += create_many(&mut client, &mut server, id, AREA, 900).len();
    }
    (0..RING_LEN + 1).for_each(|_| raise(&server, SERVER, 5));
    // Created after the loss, so it does not report it.
    let late = MonitoringParameters { client_handle: 9, ..parameters(&names, 10) };
    create(&mut client, &mut server, id, item(AREA, late));
    let (most, _) = turns(&mut server, Duration::from_millis(150));
    assert!(most > SLICE && most <= SLICE + SLICE / 2, "{most} of {items}");
    // An EventQueueOverflowEvent; the others have 5.
    let overflow = Variant::from(500u16);
    let mut told = all(&mut client, &mut server);
    told.retain(|(_, fields)| fields[0] == overflow);
    assert_eq!(told.len(), items);
    assert!(told.iter().all(|(handle, _)| *handle != 9));
}

#[test]
fn the_previous_filter_applies_to_events_before_the_change() {
    let mut server = Server::new();
    let (mut client, id, item_id) = watching(&mut server, SERVER, &filter(&["Severity"]));
    raise(&server, SERVER, 1);
    let modify = |client: &mut Client, server: &mut Server, names: &[&str], least: u16| {
        let mut filter = filter(names);
        filter.where_clause = severity_at_least(least);
        let request = ModifyMonitoredItemsRequest {
            request_header: client.header(),
            subscription_id: id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_modify: vec![MonitoredItemModifyRequest {
                monitored_item_id: item_id,
                requested_parameters: parameters(&filter, 50),
            }],
        };
        client.call(server, &request).unwrap().results.remove(0).status_code
    };
    server.shard.take_work();
    assert_eq!(modify(&mut client, &mut server, &["Severity"], 500), StatusCode::GOOD);
    assert_eq!(server.shard.take_work().items_walked, 0);
    raise(&server, SERVER, 2);
    raise(&server, SERVER, 600);
    let told = next(&mut client, &mut server);
    assert_eq!(severities(&told), [Variant::from(1u16), Variant::from(600u16)]);
}

#[test]
fn a_subscription_moves_after_its_events_were_delivered() {
    let mut pair = Pair::new();
    let (mut old, id, _) = watching(&mut pair.shards[0], SERVER, &filter(&["Severity"]));
    create_many(&mut old, &mut pair.shards[0], id, SERVER, 30);
    for number in 0..1_000 {
        raise(&pair.shards[0], SERVER, number + 1);
    }
    let mut new = pair.shards[1].session();
    pair.shards[0].shard.take_work();
    let request = pair.ask(&mut new, 1, &[id]);
    pair.deliver();
    let asked = pair.shards[0].shard.take_work().items_walked;
    // Their filters are equal: four items with a shared result count as one.
    assert!(asked <= 4 * SLICE, "{asked}");
    assert!(pair.results(&mut new, 1, request).is_none(), "events are still in transit to it");
    let (most, _) = turns(&mut pair.shards[0], Duration::ZERO);
    assert!(most <= 4 * SLICE, "{most}");
    pair.deliver();
    let results = pair.results(&mut new, 1, request).unwrap();
    assert_eq!(results[0].status_code, StatusCode::GOOD);
    let mut told = all(&mut new, &mut pair.shards[1]);
    told.retain(|(handle, _)| *handle != OTHERS);
    let expected: Vec<Variant> = (1..=1_000u16).map(Variant::from).collect();
    assert_eq!(severities(&told), expected, "all, in order, and none is reported as lost");
}

#[test]
fn a_log_is_collected_beside_a_full_ring_in_bounded_turns() {
    let store = Arc::default();
    let mut server = durable_server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    create_many(&mut client, &mut server, id, SERVER, 30);
    server.pass_and_write(200);
    (0..RING_LEN).for_each(|_| raise(&server, SERVER, 5));
    let (most, sum) = turns(&mut server, Duration::from_millis(300));
    // A slice of the engine or of the log. Their filters are equal: four items with a shared result count as one.
    assert!(sum >= (RING_LEN * 30) as u64 && most <= 4 * SLICE, "{most} of {sum}");
}
