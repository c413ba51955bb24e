//! Alarms: nearly valid Method calls in every state, saved states, and events as bytes.

use super::server::finish;
use crate::input::Input;
use crate::server::{Server, VARIABLES};
use core::time::Duration;
use taktwerk_schema::ids::{method_ids as m, object_ids};
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    ActivateSessionRequest, CallMethodRequest, CallRequest, CreateSessionRequest, RequestHeader,
};
use taktwerk_server::alarm::machine::BRANCHES_MAX;
use taktwerk_server::alarm::{ConditionSpec, GroupKind, GroupSpec, Kind, Limits, Quantity, Rules};
use taktwerk_server::history::StoredEvent;
use taktwerk_sim::plant::variable_id;
use taktwerk_types::{ByteString, Decode, DecodeLimits, LocalizedText, NodeId, Variant};

/// Methods of alarms by type, and others.
const METHODS: [u32; 20] = [
    m::CONDITION_TYPE_ENABLE,
    m::CONDITION_TYPE_DISABLE,
    m::CONDITION_TYPE_ADD_COMMENT,
    m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE,
    m::ACKNOWLEDGEABLE_CONDITION_TYPE_CONFIRM,
    m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE,
    m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE2,
    m::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVE,
    m::SHELVED_STATE_MACHINE_TYPE_UNSHELVE,
    m::ALARM_CONDITION_TYPE_SUPPRESS,
    m::ALARM_CONDITION_TYPE_UNSUPPRESS2,
    m::ALARM_CONDITION_TYPE_REMOVE_FROM_SERVICE,
    m::ALARM_CONDITION_TYPE_PLACE_IN_SERVICE,
    m::ALARM_CONDITION_TYPE_SILENCE,
    m::ALARM_CONDITION_TYPE_RESET,
    m::DIALOG_CONDITION_TYPE_RESPOND,
    m::ALARM_CONDITION_TYPE_GET_GROUP_MEMBERSHIPS,
    m::CONDITION_TYPE_CONDITION_REFRESH,
    m::CONDITION_TYPE_CONDITION_REFRESH2,
    m::SERVER_TYPE_GET_MONITORED_ITEMS,
];

fn alarm(number: u32) -> NodeId {
    NodeId::string(1, format!("alarm {number}"))
}

/// Adds alarms of all types, a suppression group, and a first-in group.
pub(super) fn add_alarms(server: &Server) {
    for number in 0..VARIABLES {
        let limits = Limits { high: Some(80.0), high_high: Some(95.0), deadband: 1.0, ..Limits::default() };
        let kind = Kind::Limit { quantity: Quantity::Level, limits, is_exclusive: number % 2 == 0 };
        let source = variable_id(number);
        let mut spec = ConditionSpec::new(alarm(number), "Alarm", source.clone(), kind);
        spec.input = Some(source);
        spec.rules = Rules {
            confirms: number % 2 == 0,
            latches: number == 1,
            keeps_branches: number < 2,
            on_delay: if number == 2 { 5_000.0 } else { 0.0 },
            re_alarm_time: if number == 0 { 60_000.0 } else { 0.0 },
            ..Rules::default()
        };
        spec.is_shown = number != 3;
        server.space.add_condition(spec, server.now.utc).expect("the variables exist");
    }
    let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
    for (name, kind) in [("first", GroupKind::FirstInGroup), ("suppressing", GroupKind::Suppression)] {
        let mut spec = GroupSpec::new(NodeId::string(1, name), name, objects.clone(), kind);
        spec.members = vec![alarm(0), alarm(1)];
        if kind == GroupKind::Suppression {
            spec.suppresses = vec![alarm(2), alarm(3)];
        }
        server.space.add_alarm_group(&spec, server.now.utc).expect("the alarms exist");
    }
    server
        .space
        .add_alarm_metrics(
            &NodeId::numeric(0, object_ids::SERVER),
            NodeId::string(1, "metrics"),
            1,
            server.now.utc,
        )
        .expect("there are none yet");
}

/// Calls Methods, changes inputs, and lets time pass.
pub fn methods(data: &[u8]) {
    let mut input = Input::new(data);
    let mut server = Server::new();
    add_alarms(&server);
    let client = server.connect();
    let create = CreateSessionRequest { requested_session_timeout: 3_600_000.0, ..Default::default() };
    let token =
        server.call(client, &create).map(|response| response.authentication_token).unwrap_or_default();
    let header = |token: &NodeId| RequestHeader { authentication_token: token.clone(), ..Default::default() };
    let mut activate = ActivateSessionRequest::default();
    *activate.header_mut() = header(&token);
    server.call(client, &activate);
    while !input.is_empty() {
        match input.below(8) {
            0..3 => {
                let value = input.pick(&[20.0, 79.5, 81.0, 99.0, f64::NAN, f64::INFINITY]);
                let at = input.below(VARIABLES as usize);
                if let Some(variable) = server.variables.get(at) {
                    variable.set_at(value, server.now.utc);
                }
                server.space.poll_alarms(server.now.utc);
            }
            3 => {
                server.pass(Duration::from_millis(u64::from(input.u16())));
                server.space.poll_alarms(server.now.utc);
            }
            4 => restart(&server),
            _ => {
                let calls = (0..1 + input.below(3)).map(|_| call(&server, &mut input)).collect();
                let mut request = CallRequest { methods_to_call: calls, ..Default::default() };
                *request.header_mut() = header(&token);
                server.call(client, &request);
            }
        }
        check(&server);
    }
    finish(server);
}

fn call(server: &Server, input: &mut Input<'_>) -> CallMethodRequest {
    let number = u32::from(input.byte() % 5);
    let condition = alarm(number);
    let known = server.space.conditions(false, 100);
    let event = match known.get(input.below(known.len().max(1))) {
        Some(view) if !input.one_in(8) => view.event_id.clone(),
        _ => ByteString::from(input.piece().to_vec()),
    };
    let comment = || LocalizedText::new("en", "comment");
    let method = input.pick(&METHODS);
    let mut arguments: Vec<Variant> = match method {
        m::CONDITION_TYPE_ADD_COMMENT
        | m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE
        | m::ACKNOWLEDGEABLE_CONDITION_TYPE_CONFIRM => vec![event.into(), comment().into()],
        m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE => {
            vec![input.pick(&[0.0, 1.0, 60_000.0, -1.0, f64::NAN]).into()]
        }
        m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE2 => vec![input.f64().into(), comment().into()],
        m::ALARM_CONDITION_TYPE_UNSUPPRESS2 => vec![comment().into()],
        m::DIALOG_CONDITION_TYPE_RESPOND => vec![i32::from(input.byte()).into()],
        m::CONDITION_TYPE_CONDITION_REFRESH => vec![u32::from(input.byte()).into()],
        _ => Vec::new(),
    };
    if input.one_in(8) {
        arguments.push(Variant::decode_from(input.piece(), DecodeLimits::DEFAULT).unwrap_or_default());
    }
    CallMethodRequest {
        object_id: condition,
        method_id: NodeId::numeric(0, method),
        input_arguments: arguments,
    }
}

/// Invariants of every state.
fn check(server: &Server) {
    let views = server.space.conditions(false, usize::MAX);
    assert!(views.len() <= VARIABLES as usize * (1 + BRANCHES_MAX));
    for view in &views {
        let state = &view.state;
        assert!(!state.active || state.enabled, "a disabled condition is not active: {view:?}");
        assert!(
            state.enabled || (state.acked && state.confirmed),
            "a disabled condition needs no acknowledgement: {view:?}"
        );
        assert!(view.confirms || state.confirmed, "{view:?}");
        assert!(view.branch == 0 || state.retain(), "a finished branch is removed: {view:?}");
    }
    let is_first = |view: &&taktwerk_server::alarm::ConditionView| {
        view.branch == 0 && view.state.first_in_group == Some(true)
    };
    let trunks = views.iter().filter(|view| view.branch == 0);
    let actives = trunks.clone().take(2).filter(|view| view.state.active).count();
    assert_eq!(
        trunks.clone().filter(is_first).count(),
        usize::from(actives > 0),
        "one of the group is first"
    );
}

/// States must survive a restart.
fn restart(server: &Server) {
    let bytes = server.space.save_alarms();
    let other = Server::new();
    let count = other.space.alarms_or_new().restore(&bytes).expect("it was just written");
    assert_eq!(count, VARIABLES as usize);
    add_alarms(&other);
    let views = |server: &Server| server.space.conditions(false, usize::MAX);
    assert_eq!(views(server).len(), views(&other).len());
    for (one, same) in views(server).into_iter().zip(views(&other)) {
        assert_eq!(
            (one.state.active, one.state.acked, one.branch),
            (same.state.active, same.state.acked, same.branch)
        );
        assert_eq!((one.state.shelving, one.state.comment), (same.state.shelving, same.state.comment));
    }
}

/// Arbitrary bytes as saved states, and as an event of the history.
pub fn stored(data: &[u8]) {
    let server = Server::new();
    if let Ok(count) = server.space.alarms_or_new().restore(data) {
        let again = server.space.save_alarms();
        let other = Server::new();
        assert_eq!(other.space.alarms_or_new().restore(&again).expect("it was just written"), count);
        assert_eq!(other.space.save_alarms(), again, "what was read is written the same");
        add_alarms(&server);
        server.space.poll_alarms(server.now.utc);
    }
    if let Ok(event) = StoredEvent::from_bytes(data) {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        let again = StoredEvent::from_bytes(&bytes).expect("it was just written");
        let mut twice = Vec::new();
        again.encode(&mut twice);
        assert_eq!(bytes, twice, "{event:?}");
        let _ = (event.time(), event.event_id());
    }
}

/// Seeds: saved states and an event.
#[cfg(test)]
pub(crate) fn stored_seeds() -> Vec<Vec<u8>> {
    let server = Server::new();
    add_alarms(&server);
    for value in [85.0, 20.0, 99.0] {
        server.variables.iter().for_each(|variable| {
            variable.set_at(value, server.now.utc);
        });
        server.space.poll_alarms(server.now.utc);
    }
    let mut event = StoredEvent { condition: Some(alarm(1)), fields: Vec::new() };
    for (name, value) in
        [("Severity", Variant::from(700u16)), ("Message", LocalizedText::new("en", "x").into())]
    {
        event.set(vec![taktwerk_types::QualifiedName::new(0, name)], value);
    }
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    vec![server.space.save_alarms(), bytes]
}
