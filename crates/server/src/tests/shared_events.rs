//! Items with equal filters share the filter result and the encoded fields, without a difference for clients.

use super::attribute::{add, variable};
use super::events::{
    AREA, create, events, filter, item, parameters, plant, raise, severities, severity_at_least,
    subscription, watching,
};
use super::flow::{publish, subscribe};
use super::*;
use crate::NewEvent;
use proptest::prelude::*;
use schema::ids::{object_ids, object_type_ids};
use schema::{
    EventFilter, ModifyMonitoredItemsRequest, MonitoredItemModifyRequest, MonitoringParameters,
    PublishResponse,
};
use std::collections::VecDeque;
use taktwerk_types::{BuiltInType, LocalizedText, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const PUMP: NodeId = NodeId::numeric(1, 101);

/// Fields to select, in any order and with repetitions.
const FIELDS: [&str; 4] = ["Severity", "SourceName", "Message", "2:Unknown"];

/// A filter: the fields, and the minimum severity.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    fields: Vec<usize>,
    least: Option<u16>,
}

#[derive(Debug, Clone)]
enum Step {
    /// Of the pump or the server.
    Raise(bool, u16),
    /// The item gets another filter.
    Modify(usize, Wanted),
    /// The clients fetch the waiting events, this one first.
    Take(usize),
}

/// Few variants, so that many items have the same.
fn wanted() -> impl Strategy<Value = Wanted> {
    let fields = prop_oneof![Just(vec![0]), Just(vec![2, 1, 0]), Just(vec![0, 3, 3, 1])];
    let least = prop_oneof![Just(None), Just(Some(300)), Just(Some(600))];
    (fields, least).prop_map(|(fields, least)| Wanted { fields, least })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<bool>(), 1..1000u16).prop_map(|(of_pump, severity)| Step::Raise(of_pump, severity)),
        1 => (0..9usize, wanted()).prop_map(|(item, wanted)| Step::Modify(item, wanted)),
        1 => (0..3usize).prop_map(Step::Take),
    ]
}

/// An item with its expected events: whether of the pump, and the severity.
struct Model {
    client: usize,
    id: u32,
    subscription: u32,
    at_area: bool,
    wanted: Wanted,
    events: Vec<(bool, u16)>,
}

impl Model {
    /// Part 4 §7.22.3, event by event and item by item.
    fn expected(&mut self) -> Vec<Vec<Variant>> {
        let field = |of_pump: bool, severity: u16, field: usize| match field {
            0 => Variant::from(severity),
            1 => Variant::from(if of_pump { "Pump" } else { "Server" }),
            2 => LocalizedText::new("en", format!("event {severity}")).into(),
            _ => Variant::Empty,
        };
        let fields = |(of_pump, severity)| {
            self.wanted.fields.iter().map(|at| field(of_pump, severity, *at)).collect::<Vec<_>>()
        };
        core::mem::take(&mut self.events).into_iter().map(fields).collect()
    }
}

fn to_filter(wanted: &Wanted) -> EventFilter {
    let names: Vec<&str> = wanted.fields.iter().filter_map(|at| FIELDS.get(*at).copied()).collect();
    let filter = filter(&names);
    match wanted.least {
        Some(least) => EventFilter { where_clause: severity_at_least(least), ..filter },
        None => filter,
    }
}

/// A client with its waiting Publish requests.
struct Reader {
    client: Client,
    requests: VecDeque<u32>,
}

fn drain_both(one: &mut Client, other: &mut Client, server: &mut Server) {
    while let Some(id) = server.shard.poll_transmit() {
        let bytes = server.shard.unsent(id).to_vec();
        server.shard.sent(id, bytes.len());
        for client in [&mut *one, &mut *other] {
            if client.connection == id {
                client.deliver(&bytes, server.now.instant);
            }
        }
    }
}

/// Delivers the server's output to each client.
fn drain(readers: &mut [Reader], server: &mut Server) {
    while let Some(id) = server.shard.poll_transmit() {
        let bytes = server.shard.unsent(id).to_vec();
        server.shard.sent(id, bytes.len());
        for reader in readers.iter_mut().filter(|reader| reader.client.connection == id) {
            reader.client.deliver(&bytes, server.now.instant);
        }
    }
}

/// Fetches all waiting events of a client, and compares them with those expected for its items.
fn take(number: usize, readers: &mut [Reader], server: &mut Server, items: &mut [Model]) {
    let mut told = Vec::new();
    loop {
        let Some(Reader { client, requests }) = readers.get_mut(number) else { return };
        if requests.len() < 2 {
            requests.push_back(publish(client, server));
        }
        server.pass(Duration::from_millis(200));
        drain(readers, server);
        let Some(Reader { client, requests }) = readers.get_mut(number) else { return };
        let before = requests.len();
        while let Some(response) =
            requests.front().and_then(|first| client.response::<PublishResponse>(*first))
        {
            requests.pop_front();
            told.extend(events(&response.unwrap()));
        }
        if requests.len() == before {
            break;
        }
    }
    for (handle, item) in (0u32..).zip(items).filter(|(_, item)| item.client == number) {
        let of_item: Vec<Vec<Variant>> =
            told.iter().filter(|(of, _)| *of == handle).map(|(_, fields)| fields.clone()).collect();
        assert_eq!(of_item, item.expected(), "item {handle}: {:?}", item.wanted);
    }
}

/// Without advancing the time, so that no publishing timer helps.
#[test]
fn requests_postponed_to_the_next_turn_are_all_answered_then() {
    let mut server = Server::new();
    plant(&server.space);
    let (mut client, _, _) = watching(&mut server, AREA, &filter(&["Severity"]));
    (1..=100).for_each(|severity| raise(&server, PUMP, severity));
    server.pass(Duration::from_millis(250));
    let requests: Vec<u32> = (0..4).map(|_| publish(&mut client, &mut server)).collect();
    server.pass(Duration::ZERO);
    client.drain(&mut server);
    let told: Vec<_> = requests
        .iter()
        .filter_map(|request| client.response::<PublishResponse>(*request))
        .flat_map(|response| events(&response.unwrap()))
        .collect();
    assert_eq!(severities(&told), (1..=100u16).map(Variant::from).collect::<Vec<_>>());
}

#[test]
fn a_client_reading_many_events_does_not_delay_others() {
    let mut server = Server::new();
    plant(&server.space);
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut reader = server.session();
    let id = subscription(&mut reader, &mut server);
    // With different filters, so that each event is encoded for each item.
    for least in 1..=10 {
        let filter = EventFilter { where_clause: severity_at_least(least), ..filter(&["Severity"]) };
        create(&mut reader, &mut server, id, item(AREA, parameters(&filter, 0)));
    }
    let mut other = server.session();
    subscribe(&mut other, &mut server, NodeId::numeric(1, 1));
    for _ in 0..10 {
        (0..50).for_each(|_| raise(&server, PUMP, 500));
        server.pass(Duration::from_millis(20));
    }
    let initial = publish(&mut other, &mut server);
    server.pass(Duration::from_millis(200));
    drain_both(&mut reader, &mut other, &mut server);
    assert!(other.response::<PublishResponse>(initial).is_some());
    server.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(2.0, server.now.utc);
    let waits = publish(&mut other, &mut server);
    let (mut turns, mut read) = (0, 0);
    loop {
        for _ in 0..3 {
            publish(&mut reader, &mut server);
        }
        server.now.instant = server.now.instant + Duration::from_millis(2);
        server.shard.timer(server.now);
        let before = reader.responses.len();
        drain_both(&mut reader, &mut other, &mut server);
        read += usize::from(reader.responses.len() > before);
        turns += 1;
        if other.response::<PublishResponse>(waits).is_some() {
            break;
        }
        assert!(turns < 60, "other clients wait while one client reads");
    }
    assert!(read + 1 >= turns, "the reader had enough to read: {read} of {turns}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn items_with_equal_filters_report_what_each_would_report_alone(
        items in proptest::collection::vec((0..3usize, any::<bool>(), wanted()), 1..9),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut server = Server::new();
        plant(&server.space);
        let mut clients: Vec<Reader> =
            (0..3).map(|_| Reader { client: server.session(), requests: VecDeque::new() }).collect();
        let ids: Vec<u32> =
            clients.iter_mut().map(|reader| subscription(&mut reader.client, &mut server)).collect();
        let with_handle = |wanted: &Wanted, handle: usize| {
            MonitoringParameters { client_handle: handle as u32, ..parameters(&to_filter(wanted), 0) }
        };
        let mut models: Vec<Model> = Vec::new();
        for (handle, (client, at_area, wanted)) in items.into_iter().enumerate() {
            let node = if at_area { AREA } else { SERVER };
            let request = item(node, with_handle(&wanted, handle));
            let created = create(&mut clients[client].client, &mut server, ids[client], request);
            assert_eq!(created.status_code, StatusCode::GOOD);
            let (id, subscription) = (created.monitored_item_id, ids[client]);
            models.push(Model { client, id, subscription, at_area, wanted, events: Vec::new() });
        }
        for step in steps {
            match step {
                Step::Raise(of_pump, severity) => {
                    let source = if of_pump { PUMP } else { SERVER };
                    let event = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), source)
                        .severity(severity)
                        .message(LocalizedText::new("en", format!("event {severity}")));
                    server.space.raise(event, server.now.utc);
                    for model in &mut models {
                        if (of_pump || !model.at_area) && model.wanted.least.is_none_or(|least| severity >= least) {
                            model.events.push((of_pump, severity));
                        }
                    }
                }
                Step::Modify(item, wanted) => {
                    let handle = item % models.len();
                    let model = &mut models[handle];
                    let client = &mut clients[model.client].client;
                    let request = ModifyMonitoredItemsRequest {
                        request_header: client.header(),
                        subscription_id: model.subscription,
                        timestamps_to_return: schema::TimestampsToReturn::BOTH,
                        items_to_modify: vec![MonitoredItemModifyRequest {
                            monitored_item_id: model.id,
                            requested_parameters: with_handle(&wanted, handle),
                        }],
                    };
                    let results = client.call(&mut server, &request).unwrap().results;
                    assert_eq!(results[0].status_code, StatusCode::GOOD);
                    model.wanted = wanted;
                    // The previous filter applies to events in transit; all waiting events are reported with the fields
                    // of the new one. The other clients fetch theirs in the meantime, with the present fields.
                    for number in 0..clients.len() {
                        take(number, &mut clients, &mut server, &mut models);
                    }
                }
                Step::Take(first) => {
                    // Time advances, so that the other clients are answered too.
                    for number in 0..clients.len() {
                        let number = (first + number) % clients.len();
                        take(number, &mut clients, &mut server, &mut models);
                    }
                }
            }
        }
        for number in 0..clients.len() {
            take(number, &mut clients, &mut server, &mut models);
        }
        for Reader { client, .. } in &mut clients {
            let request =
                schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
            client.call(&mut server, &request).unwrap();
            server.shard.closed(client.connection, server.now);
        }
        server.assert_nothing_is_kept();
    }
}
