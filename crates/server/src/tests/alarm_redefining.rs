//! Conditions whose definition changes.

use super::alarms::{alarm, events, level, plant, set, watching_fields};
use super::attribute::{add, variable};
use super::*;
use crate::alarm::{ConditionSpec, Dialog, Kind, Limits, Method, Operation, Quantity, Shelving};
use core::time::Duration;
use taktwerk_types::{BuiltInType, LocalizedText, QualifiedName, Variant};

const FIELDS: [&str; 6] = ["Severity", "ActiveState/Id", "AckedState/Id", "Retain", "HighLimit", "EventId"];

fn with_limits(spec: &mut ConditionSpec, change: impl Fn(&mut Limits)) {
    let Kind::Limit { limits, .. } = &mut spec.kind else { panic!("{spec:?}") };
    change(limits);
}

/// The first alarm with another definition.
fn changed(change: impl Fn(&mut ConditionSpec)) -> ConditionSpec {
    let mut spec = level(1);
    change(&mut spec);
    spec
}

fn operate(server: &Server, method: Method) {
    let event = server.space.condition(&alarm(1)).unwrap().event_id;
    let operation = Operation::new(method).event(event).comment("seen").by("ann");
    server.space.operate_condition(&alarm(1), &operation, server.now.utc).unwrap();
}

fn member(server: &Server, path: &str) -> Option<Variant> {
    let mut id = alarm(1);
    for name in path.split('/') {
        id = server.space.child(&id, &QualifiedName::new(0, name))?;
    }
    server.space.variable(&id).map_or(Some(Variant::Empty), |variable| variable.get().value)
}

fn shown(events: &[Vec<Variant>]) -> Vec<[Variant; 5]> {
    events.iter().map(|event| core::array::from_fn(|at| event[at].clone())).collect()
}

#[test]
fn what_operators_did_survives_other_limits() {
    let mut server = plant(2, |_| {});
    let mut client = watching_fields(&mut server, &FIELDS);
    set(&mut server, 1, 85.0);
    operate(&server, Method::Acknowledge);
    operate(&server, Method::OneShotShelve);
    events(&mut client, &mut server);
    let before = server.space.condition(&alarm(1)).unwrap();
    // It is still active: clients get the new limit.
    let spec = changed(|spec| with_limits(spec, |limits| limits.high = Some(70.0)));
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    let told = shown(&events(&mut client, &mut server));
    let event = |severity: u16, active: bool, limit: f64| -> [Variant; 5] {
        [severity.into(), active.into(), true.into(), active.into(), limit.into()]
    };
    assert_eq!(told, [event(500, true, 70.0)]);
    let after = server.space.condition(&alarm(1)).unwrap();
    assert!(after.state.acked && after.state.comment.text.as_str() == "seen");
    assert_eq!((&after.id, after.state.shelving), (&before.id, Shelving::OneShotShelved { until: None }));
    assert_eq!(member(&server, "HighLimit"), Some(70.0.into()));
    // With the next one, the value is no longer beyond it.
    let spec = changed(|spec| with_limits(spec, |limits| limits.high = Some(90.0)));
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    assert_eq!(shown(&events(&mut client, &mut server)), [event(500, false, 90.0)]);
    set(&mut server, 1, 91.0);
    let told = shown(&events(&mut client, &mut server));
    assert_eq!(told, [[500u16.into(), true.into(), false.into(), true.into(), 90.0.into()]]);
}

/// Operators do not see an alarm that is inactive and acknowledged, so they need no event.
#[test]
fn an_inactive_alarm_changes_silently() {
    let mut server = plant(1, |_| {});
    let mut client = watching_fields(&mut server, &FIELDS);
    let spec = changed(|spec| {
        with_limits(spec, |limits| limits.high = Some(50.0));
        spec.severities.inner = 600;
    });
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    assert!(events(&mut client, &mut server).is_empty());
    assert_eq!(
        (member(&server, "HighLimit"), member(&server, "Severity")),
        (Some(50.0.into()), Some(600u16.into()))
    );
    set(&mut server, 1, 51.0);
    let told = shown(&events(&mut client, &mut server));
    assert_eq!(told, [[600u16.into(), true.into(), false.into(), true.into(), 50.0.into()]]);
}

#[test]
fn another_severity_needs_no_new_acknowledgement() {
    let mut server = plant(1, |_| {});
    set(&mut server, 1, 85.0);
    operate(&server, Method::Acknowledge);
    let mut client = watching_fields(&mut server, &FIELDS);
    let spec = changed(|spec| (spec.severities.inner, spec.severities.outer) = (700, 900));
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    let told = shown(&events(&mut client, &mut server));
    assert_eq!(told, [[700u16.into(), true.into(), true.into(), true.into(), 80.0.into()]]);
    // A worse value does.
    set(&mut server, 1, 96.0);
    let told = shown(&events(&mut client, &mut server));
    assert_eq!(told, [[900u16.into(), true.into(), false.into(), true.into(), 80.0.into()]]);
}

/// 85.5 is inside of the deadband of 86, but has never been beyond 86.
#[test]
fn the_deadband_of_a_changed_limit_does_not_keep_an_alarm() {
    let mut server = plant(1, |_| {});
    set(&mut server, 1, 85.5);
    let is_active = |server: &Server| server.space.condition(&alarm(1)).unwrap().state.active;
    let spec = changed(|spec| with_limits(spec, |limits| limits.high = Some(86.0)));
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    assert!(!is_active(&server));
    // The deadband of an unchanged limit does.
    set(&mut server, 1, 86.5);
    set(&mut server, 1, 85.5);
    let spec = changed(|spec| {
        with_limits(spec, |limits| (limits.high, limits.low) = (Some(86.0), Some(1.0)));
    });
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    assert!(is_active(&server));
}

#[test]
fn members_of_the_instance_come_and_go_and_the_others_stay() {
    let mut server = plant(1, |_| {});
    let state = server.space.child(&alarm(1), &QualifiedName::new(0, "ActiveState")).unwrap();
    let handle = server.space.variable(&state).unwrap();
    let present = ["HighHighLimit", "HighHighDeadband"];
    let added = ["LowLimit", "OnDelay", "ConfirmedState/Id", "ConfirmedState/TransitionTime", "Confirm"];
    let is_there = |server: &Server, path: &str| member(server, path).is_some();
    assert!(present.iter().all(|path| is_there(&server, path)));
    assert!(!added.iter().any(|path| is_there(&server, path)));
    let spec = changed(|spec| {
        with_limits(spec, |limits| (limits.high_high, limits.low) = (None, Some(5.0)));
        spec.rules.on_delay = 2_000.0;
        spec.rules.confirms = true;
    });
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    assert!(!present.iter().any(|path| is_there(&server, path)), "they are removed");
    for path in added {
        assert!(is_there(&server, path), "{path}");
    }
    assert_eq!(member(&server, "LowLimit"), Some(5.0.into()));
    set(&mut server, 1, 85.0);
    server.pass(Duration::from_secs(3));
    server.space.poll_alarms(server.now.utc);
    let text = handle.get().value.unwrap();
    assert_eq!(text, LocalizedText::new("en", "Active").into(), "the node of its state is the same");
    operate(&server, Method::Acknowledge);
    assert!(!server.space.condition(&alarm(1)).unwrap().state.confirmed);
    server.space.redefine_condition(level(1), server.now.utc).unwrap();
    assert!(present.iter().all(|path| is_there(&server, path)));
    assert!(!added.iter().any(|path| is_there(&server, path)));
    let state = server.space.condition(&alarm(1)).unwrap().state;
    assert!(state.confirmed && state.acked && state.active, "nothing waits for a Method that is gone");
}

#[test]
fn a_delay_that_has_begun_gets_its_new_length() {
    let delayed = |delay: f64| changed(|spec| spec.rules.on_delay = delay);
    let is_active = |server: &Server| server.space.condition(&alarm(1)).unwrap().state.active;
    for (delay, first, second) in [(60_000.0, false, true), (2_000.0, true, true), (0.0, true, true)] {
        let mut server = plant(1, |spec| spec.rules.on_delay = 10_000.0);
        set(&mut server, 1, 85.0);
        server.pass(Duration::from_secs(1));
        server.space.redefine_condition(delayed(delay), server.now.utc).unwrap();
        let mut after = |span| {
            server.pass(Duration::from_secs(span));
            server.space.poll_alarms(server.now.utc);
            is_active(&server)
        };
        assert_eq!((after(10), after(50)), (first, second), "{delay}");
    }
}

#[test]
fn branches_and_latches_end_with_their_rule() {
    let mut server = plant(1, |spec| {
        spec.rules.keeps_branches = true;
        spec.rules.latches = true;
    });
    for value in [85.0, 20.0, 85.0] {
        set(&mut server, 1, value);
    }
    assert_eq!(server.space.conditions(true, 10).len(), 2);
    let mut client = watching_fields(&mut server, &["BranchId", "EnabledState/Id", "Retain"]);
    server.space.redefine_condition(level(1), server.now.utc).unwrap();
    let told = events(&mut client, &mut server);
    let [branch, own] = told.as_slice() else { panic!("{told:?}") };
    assert_ne!(branch[0], NodeId::NULL.into());
    assert_eq!(branch[1..], [false.into(), false.into()], "clients remove it from their lists");
    assert_eq!(own[..], [NodeId::NULL.into(), true.into(), true.into()]);
    assert_eq!(server.space.conditions(true, 10).len(), 1);
    assert!(!server.space.condition(&alarm(1)).unwrap().state.latched);
}

#[test]
fn another_setpoint_is_compared_at_once() {
    let mut server = Server::new();
    for (number, value) in [(1, 10.0), (2, 10.0), (3, 50.0)] {
        add(&server, variable(number, BuiltInType::Double, value));
    }
    let deviation = |setpoint: u32| {
        let limits = Limits { low: Some(-5.0), ..Limits::default() };
        let kind = Kind::Limit { quantity: Quantity::Deviation, limits, is_exclusive: true };
        ConditionSpec { kind, target: Some(NodeId::numeric(1, setpoint)), ..level(1) }
    };
    server.space.add_condition(deviation(2), server.now.utc).unwrap();
    server.space.poll_alarms(server.now.utc);
    let is_active = |server: &Server| server.space.condition(&alarm(1)).unwrap().state.active;
    assert!(!is_active(&server));
    server.space.redefine_condition(deviation(3), server.now.utc).unwrap();
    assert!(is_active(&server));
    set(&mut server, 2, 90.0);
    assert!(is_active(&server), "the former setpoint counts no more");
    set(&mut server, 3, 12.0);
    assert!(!is_active(&server));
}

#[test]
fn another_type_starts_anew_after_a_last_event() {
    let mut server = plant(1, |_| {});
    set(&mut server, 1, 85.0);
    let mut client = watching_fields(&mut server, &["EventType", "Retain"]);
    let spec = changed(|spec| spec.kind = Kind::OffNormal { normal: 20.0.into() });
    server.space.redefine_condition(spec, server.now.utc).unwrap();
    server.space.poll_alarms(server.now.utc);
    let kind = |id: u32| NodeId::numeric(0, id).into();
    let expected: [[Variant; 2]; 2] = [
        [kind(schema::ids::object_type_ids::EXCLUSIVE_LEVEL_ALARM_TYPE), false.into()],
        [kind(schema::ids::object_type_ids::OFF_NORMAL_ALARM_TYPE), true.into()],
    ];
    assert_eq!(events(&mut client, &mut server), expected);
    assert_eq!(server.space.alarms().unwrap().len(), 1);
}

#[test]
fn an_invalid_definition_changes_nothing() {
    let mut server = plant(1, |_| {});
    set(&mut server, 1, 85.0);
    let mut client = watching_fields(&mut server, &FIELDS);
    let before = server.space.condition(&alarm(1)).unwrap();
    let wrong = [
        changed(|spec| with_limits(spec, |limits| limits.high = Some(f64::NAN))),
        changed(|spec| spec.target = Some(NodeId::numeric(1, 77))),
        changed(|spec| spec.input = Some(NodeId::numeric(1, 77))),
        changed(|spec| spec.type_id = Some(NodeId::numeric(1, 77))),
        changed(|spec| spec.id = alarm(7)),
        changed(|spec| spec.parent = Some(NodeId::numeric(1, 77))),
        changed(|spec| spec.source = NodeId::numeric(1, 77)),
    ];
    for spec in wrong {
        assert!(server.space.redefine_condition(spec, server.now.utc).is_err());
        assert_eq!(server.space.condition(&alarm(1)).unwrap(), before);
    }
    assert!(events(&mut client, &mut server).is_empty());
}

/// Clients show an alarm until an event says that they need not (Part 9 §5.5.2).
#[test]
fn an_alarm_that_ends_with_its_rule_is_told() {
    type Change = fn(&mut ConditionSpec);
    let confirms: Change = |spec| spec.rules.confirms = true;
    let latches: Change = |spec| spec.rules.latches = true;
    for rule in [confirms, latches] {
        let mut server = plant(1, rule);
        set(&mut server, 1, 85.0);
        operate(&server, Method::Acknowledge);
        set(&mut server, 1, 20.0);
        let mut client = watching_fields(&mut server, &["Retain"]);
        assert!(server.space.condition(&alarm(1)).unwrap().state.retain());
        server.space.redefine_condition(level(1), server.now.utc).unwrap();
        assert_eq!(events(&mut client, &mut server), [[false.into()]]);
        server.space.redefine_condition(level(1), server.now.utc).unwrap();
        assert!(events(&mut client, &mut server).is_empty(), "it is over");
    }
}

/// Clients can add nodes below an alarm, with many paths to each.
#[test]
fn nodes_of_clients_below_an_alarm_are_not_its_members() {
    use super::node_management::{add_one, expanded, object, refer, reference};
    use schema::ids::reference_type_ids as r;
    let mut server = Server::with(|config| config.node_management = true);
    add(&server, variable(1, BuiltInType::Double, 20.0));
    server.space.add_condition(level(1), server.now.utc).unwrap();
    let mut client = server.session();
    let (levels, width) = (5, 20);
    let id = |level: usize, at: usize| NodeId::string(1, format!("{level}.{at}"));
    for level in 0..levels {
        for at in 0..width {
            let parent = if level == 0 { alarm(1) } else { id(level - 1, at) };
            let item = schema::AddNodesItem {
                parent_node_id: expanded(parent),
                reference_type_id: r::HAS_COMPONENT.into(),
                ..object(id(level, at), &format!("{at}"))
            };
            assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
        }
    }
    for level in 1..levels {
        for (from, to) in
            (0..width * width).map(|at| (at / width, at % width)).filter(|(from, to)| from != to)
        {
            let item = reference(id(level - 1, from), r::HAS_COMPONENT, id(level, to));
            assert_eq!(refer(&mut client, &mut server, item), StatusCode::GOOD);
        }
    }
    let nodes = server.space.node_count();
    let members = server.space.members_of(&alarm(1));
    assert!(members.len() < 100, "3 200 000 paths: {}", members.len());
    server.space.redefine_condition(level(1), server.now.utc).unwrap();
    assert_eq!(server.space.node_count(), nodes);
    assert_eq!(member(&server, "HighLimit"), Some(80.0.into()));
}

/// The new parent is a node of the condition itself, which is removed first.
fn refused(server: &Server, spec: ConditionSpec) {
    let parent = server.space.child(&spec.id, &QualifiedName::new(0, "EnabledState"));
    let spec = ConditionSpec { parent, ..spec };
    server.space.redefine_condition(spec, server.now.utc).unwrap_err();
    server.space.poll_alarms(server.now.utc);
}

#[test]
fn clients_see_a_condition_again_whose_new_definition_fails_late() {
    let mut server = plant(1, |spec| spec.rules.keeps_branches = true);
    for value in [85.0, 20.0, 85.0] {
        set(&mut server, 1, value);
    }
    let before = server.space.condition(&alarm(1)).unwrap();
    let mut client =
        watching_fields(&mut server, &["BranchId", "Retain", "ActiveState/Id", "AckedState/Id", "Message"]);
    refused(&server, level(1));
    let told = events(&mut client, &mut server);
    let [gone_branch, gone, branch, own] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        [&gone_branch[1], &gone[1], &branch[1], &own[1]],
        [false, false, true, true].map(Variant::from).each_ref()
    );
    assert_eq!((&gone_branch[0], &gone[0]), (&branch[0], &own[0]));
    assert_ne!(branch[0], NodeId::NULL.into());
    let text = LocalizedText::from(&*before.state.message);
    assert_eq!(own[1..], [true.into(), true.into(), false.into(), text.into()]);
    let after = server.space.condition(&alarm(1)).unwrap();
    assert_eq!((after.state.times, server.space.conditions(true, 10).len()), (before.state.times, 2));
    // It can be acknowledged with the new EventId.
    operate(&server, Method::Acknowledge);
}

#[test]
fn a_dialog_whose_new_definition_fails_late_is_still_asked() {
    let mut server = plant(1, |spec| {
        let dialog = Some(Dialog::new("Open the valve?", &["Yes", "No"]));
        *spec = ConditionSpec { kind: Kind::Set, input: None, dialog, ..spec.clone() };
    });
    server.space.ask(&alarm(1), server.now.utc).unwrap();
    let mut client = watching_fields(&mut server, &["Retain", "DialogState/Id"]);
    let before = server.space.condition(&alarm(1)).unwrap();
    refused(&server, ConditionSpec { kind: Kind::Set, input: None, ..level(1) });
    assert_eq!(events(&mut client, &mut server), [[false; 2], [true; 2]].map(|all| all.map(Variant::from)));
    assert_eq!(server.space.condition(&alarm(1)).unwrap().state.dialog, before.state.dialog);
}
