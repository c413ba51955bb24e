//! Retain for each client's filter (SupportsFilteredRetain, Part 9 §5.5.2), and audible alarms (§5.8.2).

use super::alarms::{alarm, level, plant, set, watching_fields};
use super::attribute::{add, variable};
use super::events::{create, events as notified, filter, item, parameters, severity_at_least, subscription};
use super::flow::publish;
use super::*;
use crate::alarm::{Method, Operation};
use schema::ids::{method_ids as m, object_ids, object_type_ids, variable_ids};
use schema::{CallMethodRequest, CallRequest, PublishResponse};
use taktwerk_types::{BuiltInType, ByteString, QualifiedName, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const FIELDS: [&str; 3] = ["Severity", "Retain", "EventType"];

/// A client and its waiting Publish requests.
struct Watcher {
    client: Client,
    waiting: Vec<u32>,
}

impl Watcher {
    fn of(client: Client) -> Self {
        Self { client, waiting: Vec::new() }
    }

    /// Events received since the last call. A request may be answered by a keep-alive.
    fn events(&mut self, server: &mut Server) -> Vec<Vec<Variant>> {
        self.notified(server).into_iter().map(|(_, fields)| fields).collect()
    }

    /// The same with the handles of the items.
    fn notified(&mut self, server: &mut Server) -> Vec<(u32, Vec<Variant>)> {
        let mut all = Vec::new();
        for _ in 0..3 {
            if self.waiting.is_empty() {
                self.waiting.push(publish(&mut self.client, server));
            }
            server.pass(Duration::from_millis(200));
            self.client.drain(server);
            let client = &mut self.client;
            self.waiting.retain(|request| {
                let Some(response) = client.response::<PublishResponse>(*request) else { return true };
                all.extend(notified(&response.unwrap()));
                false
            });
        }
        all
    }

    /// Severity and Retain of received events.
    fn told(&mut self, server: &mut Server) -> Vec<(u16, bool)> {
        self.events(server).iter().map(|fields| told(fields)).collect()
    }
}

fn told(fields: &[Variant]) -> (u16, bool) {
    match fields {
        [Variant::UInt16(severity), Variant::Boolean(retain), _] => (*severity, *retain),
        other => panic!("{other:?}"),
    }
}

/// A client with a filter for a minimum severity, and its subscription.
fn choosy(server: &mut Server, severity: u16) -> (Watcher, u32) {
    let mut client = server.session();
    let id = subscription(&mut client, server);
    let mut filter = filter(&FIELDS);
    filter.where_clause = severity_at_least(severity);
    let result = create(&mut client, server, id, item(SERVER, parameters(&filter, 0)));
    assert_eq!(result.status_code, StatusCode::GOOD);
    (Watcher::of(client), id)
}

#[test]
fn a_condition_that_leaves_a_filter_is_reported_once_with_retain_false() {
    let mut server = plant(2, |_| {});
    let supports = NodeId::numeric(0, variable_ids::CONDITION_TYPE_SUPPORTS_FILTERED_RETAIN);
    assert_eq!(server.space.variable(&supports).unwrap().get().value, Some(true.into()));
    // Two items with the same filter, one with another, one without.
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    for (handle, severity) in [(1, 700), (2, 700), (3, 900), (4, 0)] {
        let mut filter = filter(&FIELDS);
        if severity > 0 {
            filter.where_clause = severity_at_least(severity);
        }
        let mut item = item(SERVER, parameters(&filter, 0));
        item.requested_parameters.client_handle = handle;
        let result = create(&mut client, &mut server, id, item);
        assert_eq!(result.status_code, StatusCode::GOOD);
    }
    let mut watcher = Watcher::of(client);
    // The alarm and its value; the report of the first two items, and that of the item without a filter.
    let steps = [
        (1, 85.0, None, (500, true)),
        (1, 96.0, Some((800, true)), (800, true)),
        // The condition still exists, but no longer for these items.
        (1, 85.0, Some((500, false)), (500, true)),
        (1, 20.0, None, (500, true)),
        (1, 97.0, Some((800, true)), (800, true)),
        (1, 20.0, Some((800, true)), (800, true)),
        // The other alarm is another condition.
        (2, 85.0, None, (500, true)),
    ];
    for (number, value, filtered, unfiltered) in steps {
        set(&mut server, number, value);
        let mut all: Vec<_> =
            watcher.notified(&mut server).iter().map(|(handle, fields)| (*handle, told(fields))).collect();
        all.sort_unstable();
        let mut expected: Vec<_> = filtered.into_iter().flat_map(|event| [(1, event), (2, event)]).collect();
        expected.push((4, unfiltered));
        assert_eq!(all, expected, "{value}");
    }
}

#[test]
fn refreshed_conditions_leave_too_and_a_refresh_resets_the_list() {
    let mut server = plant(1, |_| {});
    set(&mut server, 1, 96.0);
    let (mut client, id) = choosy(&mut server, 700);
    let refresh = |watcher: &mut Watcher, server: &mut Server| {
        let request = CallRequest {
            request_header: watcher.client.header(),
            methods_to_call: vec![CallMethodRequest {
                object_id: NodeId::numeric(0, object_type_ids::CONDITION_TYPE),
                method_id: NodeId::numeric(0, m::CONDITION_TYPE_CONDITION_REFRESH),
                input_arguments: vec![id.into()],
            }],
        };
        let called = watcher.client.call(server, &request).unwrap();
        assert_eq!(called.results[0].status_code, StatusCode::GOOD);
        let mut all = Vec::new();
        for _ in 0..8 {
            all.extend(watcher.events(server));
        }
        // Without the start and end events.
        all.retain(|fields| fields[1] != Variant::Empty);
        all.len()
    };
    assert_eq!(refresh(&mut client, &mut server), 1);
    set(&mut server, 1, 85.0);
    assert_eq!(client.told(&mut server), [(500, false)]);
    set(&mut server, 1, 96.0);
    assert_eq!(client.told(&mut server), [(800, true)]);
    set(&mut server, 1, 85.0);
    assert_eq!(client.told(&mut server), [(500, false)]);
    // A condition missing from a refresh is no longer retained, so nothing is reported.
    assert_eq!(refresh(&mut client, &mut server), 0);
    set(&mut server, 1, 20.0);
    assert_eq!(client.told(&mut server), []);
}

/// AudibleEnabled in each state.
#[test]
fn an_alarm_is_audible_while_active_and_unacknowledged() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let mut spec = level(1);
    spec.rules.audible = true;
    spec.sound = Some(ByteString::from(vec![1, 2, 3]));
    server.space.add_condition(spec, server.now.utc).unwrap();
    server.space.poll_alarms(server.now.utc);
    let mut client = Watcher::of(watching_fields(&mut server, &["AudibleEnabled"]));
    let shown = |server: &Server, name: &str| {
        let id = server.space.child(&alarm(1), &QualifiedName::new(0, name)).unwrap();
        server.space.variable(&id).unwrap().get().value.unwrap_or_default()
    };
    assert_eq!(shown(&server, "AudibleSound"), ByteString::from(vec![1, 2, 3]).into());
    let operate = |server: &Server, method: Method| {
        let event = server.space.condition(&alarm(1)).unwrap().event_id;
        let mut operation = Operation::new(method).event(event);
        operation.shelving_time = 1e6;
        server.space.operate_condition(&alarm(1), &operation, server.now.utc).unwrap();
    };
    let mut is_heard = |server: &mut Server, expected: bool, what: &str| {
        assert_eq!(shown(server, "AudibleEnabled"), expected.into(), "{what}");
        let told = client.events(server);
        if let Some(last) = told.last() {
            assert_eq!(last[0], expected.into(), "{what}");
        }
    };
    is_heard(&mut server, false, "inactive");
    set(&mut server, 1, 85.0);
    is_heard(&mut server, true, "active");
    operate(&server, Method::Silence);
    is_heard(&mut server, false, "silenced");
    set(&mut server, 1, 96.0);
    is_heard(&mut server, true, "worse");
    operate(&server, Method::TimedShelve);
    is_heard(&mut server, false, "shelved");
    operate(&server, Method::Unshelve);
    is_heard(&mut server, true, "not shelved");
    operate(&server, Method::Suppress);
    is_heard(&mut server, false, "suppressed");
    operate(&server, Method::Unsuppress);
    operate(&server, Method::Acknowledge);
    is_heard(&mut server, false, "acknowledged");
    set(&mut server, 1, 20.0);
    is_heard(&mut server, false, "inactive again");
    operate(&server, Method::Disable);
    is_heard(&mut server, false, "disabled");
}

#[test]
fn a_sound_that_is_too_long_is_refused() {
    let server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let mut spec = level(1);
    spec.sound = Some(ByteString::from(vec![0; (1 << 20) + 1]));
    let refused = server.space.add_condition(spec, server.now.utc).unwrap_err();
    assert!(refused.to_string().contains("1048577 bytes"), "{refused}");
}
