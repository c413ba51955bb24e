//! Conditions over the wire: events, Methods on instances and types, ConditionRefresh.

use super::attribute::{add, variable};
use super::events::{create, filter, item, next, parameters, subscription};
use super::transfer::Pair;
use super::*;
use crate::alarm::{ConditionSpec, Kind, Limits, Operation, Quantity, Rules};
use schema::ids::{method_ids as m, object_ids, object_type_ids as t};
use schema::{CallMethodRequest, CallRequest};
use taktwerk_types::{BuiltInType, ByteString, LocalizedText, QualifiedName, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const FIELDS: [&str; 8] =
    ["EventType", "EventId", "Message", "Severity", "Retain", "AckedState/Id", "ActiveState/Id", "BranchId"];

pub(super) fn alarm(number: u32) -> NodeId {
    NodeId::string(1, format!("alarm {number}"))
}

pub(super) fn level(number: u32) -> ConditionSpec {
    let limits = Limits { high: Some(80.0), high_high: Some(95.0), deadband: 1.0, ..Limits::default() };
    let kind = Kind::Limit { quantity: Quantity::Level, limits, is_exclusive: true };
    let source = NodeId::numeric(1, number);
    ConditionSpec {
        input: Some(source.clone()),
        ..ConditionSpec::new(alarm(number), "LevelAlarm", source, kind)
    }
}

/// A server with Variables 1 to `count`, each with an alarm.
pub(super) fn plant(count: u32, change: impl Fn(&mut ConditionSpec)) -> Server {
    let server = Server::new();
    for number in 1..=count {
        add(&server, variable(number, BuiltInType::Double, 20.0));
        let mut spec = level(number);
        change(&mut spec);
        server.space.add_condition(spec, server.now.utc).unwrap();
    }
    server.space.poll_alarms(server.now.utc);
    server
}

pub(super) fn set(server: &mut Server, number: u32, value: f64) {
    let handle = server.space.variable(&NodeId::numeric(1, number)).unwrap();
    handle.set_at(value, server.now.utc);
    server.space.poll_alarms(server.now.utc);
}

fn watching(server: &mut Server) -> (Client, u32) {
    let mut client = server.session();
    let id = subscription(&mut client, server);
    let result = create(&mut client, server, id, item(SERVER, parameters(&filter(&FIELDS), 0)));
    assert_eq!(result.status_code, StatusCode::GOOD);
    (client, id)
}

/// A client that gets these fields of all events.
pub(super) fn watching_fields(server: &mut Server, fields: &[&str]) -> Client {
    let mut client = server.session();
    let id = subscription(&mut client, server);
    let result = create(&mut client, server, id, item(SERVER, parameters(&filter(fields), 0)));
    assert_eq!(result.status_code, StatusCode::GOOD);
    client
}

pub(super) fn call(
    client: &mut Client,
    server: &mut Server,
    object: NodeId,
    method: NodeId,
    inputs: Vec<Variant>,
) -> StatusCode {
    let request = CallRequest {
        request_header: client.header(),
        methods_to_call: vec![CallMethodRequest {
            object_id: object,
            method_id: method,
            input_arguments: inputs,
        }],
    };
    client.call(server, &request).unwrap().results[0].status_code
}

fn acknowledge(client: &mut Client, server: &mut Server, object: NodeId, event: &Variant) -> StatusCode {
    let method = NodeId::numeric(0, m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE);
    call(client, server, object, method, vec![event.clone(), LocalizedText::from("seen").into()])
}

pub(super) fn events(client: &mut Client, server: &mut Server) -> Vec<Vec<Variant>> {
    next(client, server).into_iter().map(|(_, fields)| fields).collect()
}

fn read(server: &Server, path: &str) -> Variant {
    let mut id = alarm(1);
    for name in path.split('/') {
        id = server.space.child(&id, &QualifiedName::new(0, name)).unwrap_or_else(|| panic!("{path}"));
    }
    server.space.variable(&id).unwrap().get().value.unwrap_or_default()
}

#[test]
fn an_alarm_is_reported_shown_and_acknowledged() {
    let mut server = plant(1, |_| {});
    let (mut client, _) = watching(&mut server);
    set(&mut server, 1, 85.0);
    let told = events(&mut client, &mut server);
    let [event] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(event[0], NodeId::numeric(0, t::EXCLUSIVE_LEVEL_ALARM_TYPE).into());
    assert_eq!(event[2], LocalizedText::from("v1: 85 is beyond the High limit 80").into());
    let expected: [Variant; 5] = [500u16.into(), true.into(), false.into(), true.into(), NodeId::NULL.into()];
    assert_eq!(event[3..], expected);
    // The instance shows the same.
    assert_eq!(read(&server, "ActiveState/Id"), true.into());
    assert_eq!(read(&server, "LimitState/CurrentState"), LocalizedText::new("en", "High").into());
    assert_eq!(read(&server, "HighLimit"), 80.0.into());
    assert_eq!(read(&server, "EventId"), event[1]);
    assert_eq!(acknowledge(&mut client, &mut server, alarm(1), &event[1]), StatusCode::GOOD);
    let again = acknowledge(&mut client, &mut server, alarm(1), &event[1]);
    assert_eq!(again, StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED);
    let forged: Variant = ByteString::from(vec![1, 2, 3]).into();
    assert_eq!(acknowledge(&mut client, &mut server, alarm(1), &forged), StatusCode::BAD_EVENT_ID_UNKNOWN);
    assert_eq!(read(&server, "AckedState/Id"), true.into());
    assert_eq!(read(&server, "Comment"), LocalizedText::from("seen").into());
    let told = events(&mut client, &mut server);
    assert_eq!(told[0][5], true.into());
    set(&mut server, 1, 20.0);
    let told = events(&mut client, &mut server);
    assert_eq!((told[0][4].clone(), told[0][6].clone()), (false.into(), false.into()), "done with");
}

#[test]
fn methods_work_on_instances_and_types_and_without_nodes() {
    for is_shown in [true, false] {
        let mut server = plant(1, |spec| spec.is_shown = is_shown);
        let mut client = server.session();
        set(&mut server, 1, 85.0);
        let by_type = |number| NodeId::numeric(0, number);
        let shelve = |client: &mut Client, server: &mut Server, object, method, millis: f64| {
            call(client, server, object, method, vec![millis.into()])
        };
        for method in
            [m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE, m::ALARM_CONDITION_TYPE_SHELVING_STATE_TIMED_SHELVE]
        {
            let status = shelve(&mut client, &mut server, alarm(1), by_type(method), 5_000.0);
            assert_eq!(status, StatusCode::GOOD, "{method} shown: {is_shown}");
            let status = call(
                &mut client,
                &mut server,
                alarm(1),
                by_type(m::SHELVED_STATE_MACHINE_TYPE_UNSHELVE),
                vec![],
            );
            assert_eq!(status, StatusCode::GOOD);
        }
        for millis in [-1.0, 1e-300] {
            let method = by_type(m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE);
            let wrong = shelve(&mut client, &mut server, alarm(1), method, millis);
            assert_eq!(wrong, StatusCode::BAD_SHELVING_TIME_OUT_OF_RANGE, "{millis}");
        }
        let missing =
            call(&mut client, &mut server, alarm(1), by_type(m::CONDITION_TYPE_ADD_COMMENT), vec![]);
        assert_eq!(missing, StatusCode::BAD_ARGUMENTS_MISSING);
        let disable = by_type(m::CONDITION_TYPE_DISABLE);
        assert_eq!(call(&mut client, &mut server, alarm(1), disable.clone(), vec![]), StatusCode::GOOD);
        let again = call(&mut client, &mut server, alarm(1), disable, vec![]);
        assert_eq!(again, StatusCode::BAD_CONDITION_ALREADY_DISABLED);
        if !is_shown {
            continue;
        }
        assert_eq!(read(&server, "EnabledState/Id"), false.into());
        // With the instance's own Methods; the shelving Methods also on the ShelvingState.
        let child = |path: &[&str]| {
            path.iter()
                .fold(alarm(1), |id, name| server.space.child(&id, &QualifiedName::new(0, *name)).unwrap())
        };
        let (enable, shelving) = (child(&["Enable"]), child(&["ShelvingState"]));
        let (shelve, acknowledge) = (child(&["ShelvingState", "OneShotShelve"]), child(&["Acknowledge"]));
        assert_eq!(call(&mut client, &mut server, alarm(1), enable, vec![]), StatusCode::GOOD);
        assert_eq!(call(&mut client, &mut server, shelving.clone(), shelve, vec![]), StatusCode::GOOD);
        let inputs = vec![ByteString::from(vec![1]).into(), LocalizedText::from("x").into()];
        let status = call(&mut client, &mut server, shelving, acknowledge, inputs);
        assert!(status.is_bad(), "the ShelvingState only has shelving Methods");
        assert_eq!(
            read(&server, "ShelvingState/CurrentState"),
            LocalizedText::new("en", "One Shot Shelved").into()
        );
    }
}

/// All events until the refresh ends, without start and end events.
fn refreshed(client: &mut Client, server: &mut Server) -> Vec<Vec<Variant>> {
    let (mut found, mut has_started) = (Vec::new(), false);
    for _ in 0..2_000 {
        for fields in events(client, server) {
            if fields[0] == NodeId::numeric(0, t::REFRESH_START_EVENT_TYPE).into() {
                assert!(!has_started);
                has_started = true;
            } else if fields[0] == NodeId::numeric(0, t::REFRESH_END_EVENT_TYPE).into() {
                assert!(has_started);
                return found;
            } else {
                assert_ne!(fields[0], NodeId::numeric(0, t::EVENT_QUEUE_OVERFLOW_EVENT_TYPE).into());
                found.push(fields);
            }
        }
    }
    panic!("the refresh does not end; {} events", found.len());
}

fn refresh(client: &mut Client, server: &mut Server, subscription: u32) -> StatusCode {
    let object = NodeId::numeric(0, t::CONDITION_TYPE);
    let method = NodeId::numeric(0, m::CONDITION_TYPE_CONDITION_REFRESH);
    call(client, server, object, method, vec![subscription.into()])
}

#[test]
fn a_refresh_reports_retained_conditions_with_the_same_event_ids() {
    let mut server = plant(3, |_| {});
    // No client monitors events, so the events were never created.
    set(&mut server, 1, 85.0);
    set(&mut server, 3, 99.0);
    let (mut client, id) = watching(&mut server);
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::GOOD);
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::BAD_REFRESH_IN_PROGRESS);
    let first = refreshed(&mut client, &mut server);
    assert_eq!(
        first.iter().map(|fields| fields[3].clone()).collect::<Vec<_>>(),
        [500u16.into(), 800u16.into()]
    );
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::GOOD);
    assert_eq!(refreshed(&mut client, &mut server), first);
    assert_eq!(acknowledge(&mut client, &mut server, alarm(3), &first[1][1]), StatusCode::GOOD);
    assert_eq!(refresh(&mut client, &mut server, 4711), StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
    let empty = subscription(&mut client, &mut server);
    assert_eq!(refresh(&mut client, &mut server, empty), StatusCode::BAD_NOTHING_TO_DO);
}

#[test]
fn a_refresh_interrupted_by_a_move_is_reported() {
    let mut pair = Pair::new();
    // Number 1 is the Variable that every pair has.
    for number in 2..=400 {
        add(&pair.shards[0], variable(number, BuiltInType::Double, 85.0));
        pair.shards[0].space.add_condition(level(number), pair.shards[0].now.utc).unwrap();
    }
    pair.shards[0].space.poll_alarms(pair.shards[0].now.utc);
    let (client, id) = watching(&mut pair.shards[0]);
    let mut client = client;
    assert_eq!(refresh(&mut client, &mut pair.shards[0], id), StatusCode::GOOD);
    let now = pair.shards[0].now;
    pair.shards[0].shard.closed(client.connection, now);
    let mut client = pair.shards[1].session();
    assert_eq!(pair.transfer(&mut client, 1, &[id]), [StatusCode::GOOD]);
    let told = events(&mut client, &mut pair.shards[1]);
    let overflow = NodeId::numeric(0, t::EVENT_QUEUE_OVERFLOW_EVENT_TYPE).into();
    assert!(told.iter().any(|fields| fields[0] == overflow), "{} events", told.len());
    // It can be requested again.
    assert_eq!(refresh(&mut client, &mut pair.shards[1], id), StatusCode::GOOD);
    assert_eq!(refreshed(&mut client, &mut pair.shards[1]).len(), 399);
}

#[test]
fn a_refresh_larger_than_the_queue_loses_nothing() {
    let mut server = plant(700, |spec| spec.is_shown = false);
    for number in 1..=700 {
        set(&mut server, number, 85.0);
    }
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let wanted = item(SERVER, parameters(&filter(&FIELDS), 50));
    assert_eq!(create(&mut client, &mut server, id, wanted).status_code, StatusCode::GOOD);
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::GOOD);
    assert_eq!(refreshed(&mut client, &mut server).len(), 700);
}

#[test]
fn a_refresh_into_the_shortest_queue_ends_and_loses_nothing() {
    let rules = Rules { keeps_branches: true, ..Rules::default() };
    let mut server = plant(60, |spec| (spec.is_shown, spec.rules) = (false, rules.clone()));
    let (mut watcher, _) = watching(&mut server);
    for number in 1..=60 {
        // Conditions with branches need several queue entries.
        let values: &[f64] = if number % 7 == 0 { &[85.0, 20.0, 99.0] } else { &[85.0] };
        values.iter().for_each(|value| set(&mut server, number, *value));
    }
    let retained = server.space.conditions(true, 1_000).len();
    assert!(retained > 60, "{retained}");
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let wanted = item(SERVER, parameters(&filter(&FIELDS), 1));
    let result = create(&mut client, &mut server, id, wanted);
    assert_eq!(result.revised_queue_size, 10);
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::GOOD);
    assert_eq!(refreshed(&mut client, &mut server).len(), retained);
    assert!(!events(&mut watcher, &mut server).is_empty());
}

#[test]
fn a_refresh_ends_if_the_client_does_not_read() {
    let mut server = plant(60, |spec| spec.is_shown = false);
    (1..=60).for_each(|number| set(&mut server, number, 85.0));
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let wanted = item(SERVER, parameters(&filter(&FIELDS), 10));
    assert_eq!(create(&mut client, &mut server, id, wanted).status_code, StatusCode::GOOD);
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::GOOD);
    server.pass(core::time::Duration::from_secs(5));
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::BAD_REFRESH_IN_PROGRESS);
    server.pass(core::time::Duration::from_secs(10));
    let told = events(&mut client, &mut server);
    let kinds: Vec<&Variant> = told.iter().map(|fields| &fields[0]).collect();
    let overflow = NodeId::numeric(0, t::EVENT_QUEUE_OVERFLOW_EVENT_TYPE).into();
    let end = NodeId::numeric(0, t::REFRESH_END_EVENT_TYPE).into();
    assert!(kinds.contains(&&overflow) && kinds.last() == Some(&&end), "{kinds:?}");
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::GOOD);
}

/// The most items visited and the most notifications sent in one turn, and the number of turns that did much of both.
#[derive(Debug, Default)]
struct Longest {
    items: u64,
    notifications: u64,
    both: usize,
}

/// Runs the shard for a while.
fn longest_turns(server: &mut Server, span: core::time::Duration) -> Longest {
    let end = server.now.instant + span;
    let mut most = Longest::default();
    server.shard.take_work();
    while let Some((at, _)) = server.shard.poll_timeout().filter(|(at, _)| *at <= end) {
        let at = at.max(server.now.instant);
        server.now.utc = server.now.utc.plus(at.since(server.now.instant));
        server.now.instant = at;
        server.shard.timer(server.now);
        let work = server.shard.take_work();
        most.items = most.items.max(work.items_walked);
        most.notifications = most.notifications.max(work.notifications);
        most.both += usize::from(work.items_walked > 200 && work.notifications > 16);
    }
    most
}

#[test]
fn neither_many_events_nor_a_refresh_makes_a_turn_long() {
    const ALARMS: u32 = 600;
    let mut server = plant(ALARMS, |spec| spec.is_shown = false);
    let mut clients: Vec<(Client, u32)> = (0..2).map(|_| watching(&mut server)).collect();
    for (client, id) in &mut clients {
        // Many items each: every event is for all of them.
        for _ in 0..9 {
            let wanted = item(SERVER, parameters(&filter(&FIELDS), 2_000));
            assert_eq!(create(client, &mut server, *id, wanted).status_code, StatusCode::GOOD);
        }
        for _ in 0..5 {
            super::flow::publish(client, &mut server);
        }
    }
    server.pass(core::time::Duration::from_secs(1));
    (1..=ALARMS).for_each(|number| set(&mut server, number, 85.0));
    let storm = longest_turns(&mut server, core::time::Duration::from_secs(1));
    // Their filters are equal: four items with a shared result count as one.
    assert!(storm.items > 250 && storm.items < 1_000, "{storm:?} of {} items asked", ALARMS * 20);
    // They share encoded fields: copying those of 512 events takes as long as encoding 32.
    assert!(storm.notifications > 16 && storm.notifications <= 2 * 512, "{storm:?}");
    // Clients that keep asking during a flood: items and messages take turns, except for the last items of a burst.
    let mut both = 0;
    for round in 0..20 {
        for (client, _) in &mut clients {
            super::flow::publish(client, &mut server);
        }
        (1..=ALARMS).for_each(|number| set(&mut server, number, [50.0, 85.0][round % 2]));
        both += longest_turns(&mut server, core::time::Duration::from_millis(10)).both;
    }
    assert!(both <= 2, "{both} turns did much of both");
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let wanted = item(SERVER, parameters(&filter(&FIELDS), 2_000));
    assert_eq!(create(&mut client, &mut server, id, wanted).status_code, StatusCode::GOOD);
    assert_eq!(refresh(&mut client, &mut server, id), StatusCode::GOOD);
    let refreshing = longest_turns(&mut server, core::time::Duration::from_millis(50));
    assert!(refreshing.items > 0 && refreshing.items <= 16, "{refreshing:?}");
    let told = refreshed(&mut client, &mut server);
    assert_eq!(told.len(), ALARMS as usize);
}

#[test]
fn states_survive_a_restart() {
    let rules = Rules { confirms: true, keeps_branches: true, ..Rules::default() };
    let with_rules = |spec: &mut ConditionSpec| spec.rules = rules.clone();
    let mut server = plant(2, with_rules);
    let (mut client, _) = watching(&mut server);
    set(&mut server, 1, 85.0);
    let event = events(&mut client, &mut server).remove(0);
    assert_eq!(acknowledge(&mut client, &mut server, alarm(1), &event[1]), StatusCode::GOOD);
    set(&mut server, 2, 85.0);
    set(&mut server, 2, 20.0);
    set(&mut server, 2, 99.0);
    let before = server.space.conditions(true, 100);
    assert_eq!(before.len(), 3, "two conditions and a branch");
    let bytes = server.space.save_alarms();

    let server = Server::new();
    assert_eq!(server.space.alarms_or_new().restore(&bytes).unwrap(), 2);
    for (number, value) in [(1, 85.0), (2, 99.0)] {
        add(&server, variable(number, BuiltInType::Double, value));
        let mut spec = level(number);
        with_rules(&mut spec);
        server.space.add_condition(spec, server.now.utc).unwrap();
    }
    server.space.poll_alarms(server.now.utc);
    assert_eq!(server.space.conditions(true, 100), before);
    let confirm = Operation::new(crate::alarm::Method::Confirm).event(before[0].event_id.clone());
    server.space.operate_condition(&alarm(1), &confirm, server.now.utc).unwrap();
}

#[test]
fn delayed_alarms_are_raised_by_time_alone() {
    let mut server = plant(1, |spec| spec.rules.on_delay = 5_000.0);
    let (mut client, _) = watching(&mut server);
    let start = server.now.utc;
    set(&mut server, 1, 85.0);
    let later = |millis: i64| UtcTime::from_ticks(start.ticks() + millis * 10_000);
    assert_eq!(server.space.poll_alarms(later(4_999)), Some(later(5_000)));
    assert!(events(&mut client, &mut server).is_empty());
    assert_eq!(server.space.poll_alarms(later(5_000)), None);
    assert_eq!(events(&mut client, &mut server).len(), 1);
}

#[test]
fn invalid_conditions_are_refused() {
    let server = plant(1, |_| {});
    let taken = server.space.add_condition(level(1), server.now.utc).unwrap_err();
    assert!(taken.to_string().contains("give the alarm another name"), "{taken}");
    let missing = server.space.add_condition(level(2), server.now.utc);
    assert!(missing.is_err(), "there is no such Variable");
    let mut turned = level(2);
    turned.kind = Kind::Limit {
        quantity: Quantity::Level,
        limits: Limits { high: Some(1.0), low: Some(2.0), ..Limits::default() },
        is_exclusive: true,
    };
    let error = server.space.add_condition(turned, server.now.utc).unwrap_err();
    assert!(error.to_string().contains("must rise"), "{error}");
}

#[test]
fn alarms_of_other_types_have_branches_too() {
    use crate::space::NodeSpec;
    use crate::space::build::Under;
    let kind = NodeId::string(1, "BoilerAlarmType");
    let mut server = Server::new();
    let add_type = |server: &Server, id: &NodeId, base: u32| {
        let under = Under {
            parent: &NodeId::numeric(0, base),
            reference_type: &NodeId::numeric(0, schema::ids::reference_type_ids::HAS_SUBTYPE),
            type_definition: None,
        };
        let spec = NodeSpec::object_type(id.clone(), QualifiedName::new(1, id.to_string()));
        server.space.add_node(spec, under, server.now.utc).unwrap();
    };
    add_type(&server, &kind, t::EXCLUSIVE_LEVEL_ALARM_TYPE);
    // The instance has the mandatory members of its own type.
    let under = Under {
        parent: &kind,
        reference_type: &NodeId::numeric(0, schema::ids::reference_type_ids::HAS_PROPERTY),
        type_definition: Some(&NodeId::numeric(0, schema::ids::variable_type_ids::PROPERTY_TYPE)),
    };
    let property = NodeId::string(1, "Line");
    let string = NodeId::numeric(0, schema::ids::data_type_ids::STRING);
    let spec = NodeSpec::variable(property.clone(), QualifiedName::new(1, "Line"), string, Some("7".into()));
    server.space.add_node(spec, under, server.now.utc).unwrap();
    let rule = NodeId::numeric(0, schema::ids::reference_type_ids::HAS_MODELLING_RULE);
    let mandatory = NodeId::numeric(0, object_ids::MODELLING_RULE_MANDATORY);
    server.space.add_reference(&property, &rule, &mandatory).unwrap();
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let mut spec = level(1);
    spec.rules = Rules { keeps_branches: true, ..Rules::default() };
    spec.type_id = Some(kind.clone());
    server.space.add_condition(spec, server.now.utc).unwrap();
    let (mut client, _) = watching(&mut server);
    for value in [85.0, 20.0, 99.0] {
        set(&mut server, 1, value);
    }
    let told = events(&mut client, &mut server);
    assert!(told.iter().all(|event| event[0] == kind.clone().into()), "{told:?}");
    let branch = told.iter().find(|event| event[7] != NodeId::NULL.into()).expect("a branch");
    assert_eq!(acknowledge(&mut client, &mut server, alarm(1), &branch[1]), StatusCode::GOOD);
    assert_eq!(server.space.conditions(true, 10).len(), 1, "the branch has ended");
    assert!(server.space.child(&alarm(1), &QualifiedName::new(1, "Line")).is_some());

    let other = NodeId::string(1, "OtherType");
    add_type(&server, &other, t::OFF_NORMAL_ALARM_TYPE);
    let mut spec = level(1);
    (spec.id, spec.type_id) = (alarm(2), Some(other));
    let refused = server.space.add_condition(spec, server.now.utc).unwrap_err();
    assert!(refused.to_string().contains("is not a subtype of"), "{refused}");
}

/// A subtype of ExclusiveLevelAlarmType with these mandatory Properties.
fn add_type_with(server: &Server, names: &[&str]) -> NodeId {
    use crate::space::NodeSpec;
    use crate::space::build::Under;
    use schema::ids::{data_type_ids, reference_type_ids as r, variable_type_ids};
    let ns0 = |id: u32| NodeId::numeric(0, id);
    let kind = NodeId::string(1, "OwnAlarmType");
    let under = Under {
        parent: &ns0(t::EXCLUSIVE_LEVEL_ALARM_TYPE),
        reference_type: &ns0(r::HAS_SUBTYPE),
        type_definition: None,
    };
    let spec = NodeSpec::object_type(kind.clone(), QualifiedName::new(1, "OwnAlarmType"));
    server.space.add_node(spec, under, server.now.utc).unwrap();
    for name in names {
        let under = Under {
            parent: &kind,
            reference_type: &ns0(r::HAS_PROPERTY),
            type_definition: Some(&ns0(variable_type_ids::PROPERTY_TYPE)),
        };
        let property = NodeId::string(1, format!("OwnAlarmType/{name}"));
        let string = ns0(data_type_ids::STRING);
        let spec =
            NodeSpec::variable(property.clone(), QualifiedName::new(1, *name), string, Some("".into()));
        server.space.add_node(spec, under, server.now.utc).unwrap();
        let mandatory = ns0(object_ids::MODELLING_RULE_MANDATORY);
        server.space.add_reference(&property, &ns0(r::HAS_MODELLING_RULE), &mandatory).unwrap();
    }
    kind
}

#[test]
fn an_own_field_with_a_standard_name_is_a_different_field() {
    let mut server = Server::new();
    let kind = add_type_with(&server, &["ConditionName", "Message", "Severity"]);
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let mut spec = level(1);
    spec.type_id = Some(kind);
    spec.own = vec![("1:ConditionName".into(), "mine".into()), ("1:Message".into(), "my message".into())];
    server.space.add_condition(spec, server.now.utc).unwrap();
    let mut client = watching_fields(&mut server, &["ConditionName", "1:ConditionName", "1:Message"]);
    set(&mut server, 1, 85.0);
    let told = events(&mut client, &mut server);
    assert_eq!(told, [["LevelAlarm".into(), "mine".into(), Variant::from("my message")]]);
    let shown = |namespace, name: &str| {
        let id = server.space.child(&alarm(1), &QualifiedName::new(namespace, name)).unwrap();
        server.space.variable(&id).unwrap().get().value.unwrap_or_default()
    };
    assert_eq!((shown(0, "ConditionName"), shown(1, "ConditionName")), ("LevelAlarm".into(), "mine".into()));
    let text = LocalizedText::from("v1: 85 is beyond the High limit 80");
    assert_eq!((shown(0, "Message"), shown(1, "Message")), (text.into(), "my message".into()));
    // A field without a value from the application keeps that of the type.
    assert_eq!((shown(0, "Severity"), shown(1, "Severity")), (500u16.into(), "".into()));
    let refused = server.space.set_condition_fields(&alarm(1), vec![("Message".into(), "no".into())]);
    assert!(refused.unwrap_err().to_string().contains("is not a field that"));
}

struct Calibrate;

impl crate::callback::MethodHandler for Calibrate {
    fn call(&self, _: &crate::callback::CallContext, _: Vec<Variant>) -> crate::callback::MethodCall {
        crate::callback::MethodCall::Now(Err(StatusCode::BAD_DEVICE_FAILURE))
    }
}

/// An existing instance that becomes an alarm keeps its own Methods.
#[test]
fn an_instance_that_becomes_an_alarm_keeps_the_methods_of_the_application() {
    use crate::space::NodeSpec;
    use crate::space::build::Under;
    use schema::ids::reference_type_ids as r;
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let (component, kind) = (NodeId::numeric(0, r::HAS_COMPONENT), add_type_with(&server, &[]));
    let under = Under { parent: &SERVER, reference_type: &component, type_definition: Some(&kind) };
    let instance = NodeSpec::object(alarm(1), QualifiedName::new(1, "Bound"));
    server.space.add_instance(instance, under, &[], server.now.utc).unwrap();
    let own = NodeId::string(1, "calibrate");
    let under = Under { parent: &alarm(1), reference_type: &component, type_definition: None };
    let method = NodeSpec::method(own.clone(), QualifiedName::new(1, "Calibrate"), None);
    server.space.add_node(method, under, server.now.utc).unwrap();
    server.space.set_method(&own, Arc::new(Calibrate)).unwrap();
    let mut spec = level(1);
    spec.is_bound = true;
    server.space.add_condition(spec, server.now.utc).unwrap();
    let mut client = server.session();
    let called = call(&mut client, &mut server, alarm(1), own, Vec::new());
    assert_eq!(called, StatusCode::BAD_DEVICE_FAILURE);
    let acknowledge = server.space.child(&alarm(1), &QualifiedName::new(0, "Acknowledge")).unwrap();
    let inputs = vec![ByteString::from(vec![1]).into(), LocalizedText::from("seen").into()];
    let called = call(&mut client, &mut server, alarm(1), acknowledge, inputs);
    assert_eq!(called, StatusCode::BAD_EVENT_ID_UNKNOWN);
}

/// The date is not written again when it approaches.
#[test]
fn dates_raise_alarms_in_time() {
    for (kind, base) in [
        (Kind::Expiration { limit: 5_000.0 }, t::CERTIFICATE_EXPIRATION_ALARM_TYPE),
        (
            Kind::OutOfDate { frequency: 5_000.0, trust_list: NodeId::numeric(0, 12_642) },
            t::TRUST_LIST_OUT_OF_DATE_ALARM_TYPE,
        ),
    ] {
        let mut server = Server::new();
        let start = server.now.utc;
        let later = |millis: i64| UtcTime::from_ticks(start.ticks() + millis * 10_000);
        let date = if matches!(kind, Kind::Expiration { .. }) { later(10_000) } else { start };
        add(&server, variable(1, BuiltInType::DateTime, date));
        let mut spec = level(1);
        spec.kind = kind;
        server.space.add_condition(spec, start).unwrap();
        let fields = ["EventType", "ActiveState/Id", "TrustListId", "LastUpdateTime", "UpdateFrequency"];
        let mut client = watching_fields(&mut server, &fields);
        assert_eq!(server.space.poll_alarms(start), Some(later(5_000)));
        assert!(events(&mut client, &mut server).is_empty());
        server.space.poll_alarms(later(5_000));
        let told = events(&mut client, &mut server);
        assert_eq!(told[0][..2], [NodeId::numeric(0, base).into(), true.into()]);
        if base == t::TRUST_LIST_OUT_OF_DATE_ALARM_TYPE {
            let list = NodeId::numeric(0, 12_642);
            assert_eq!(told[0][2..], [list.into(), date.into(), Variant::from(5_000.0)]);
            assert_eq!(read(&server, "UpdateFrequency"), 5_000.0.into());
        }
    }
}
