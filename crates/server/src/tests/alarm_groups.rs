//! Alarm groups and metrics, in the address space and over the wire (Part 9 §5.8.2 to §5.8.4, §5.8.16, §9.2).

use super::alarms::{alarm, events, level, plant, set, watching_fields};
use super::attribute::{add, variable};
use super::*;
use crate::alarm::{GroupKind, GroupSpec, Method, Operation};
use crate::authorization::Access;
use crate::space::build::Under;
use crate::space::{AlarmError, NodeSpec};
use core::time::Duration;
use schema::ids::{method_ids as m, object_ids, object_type_ids, reference_type_ids as r};
use schema::{BrowseDescription, BrowseDirection, BrowseRequest, CallMethodRequest, CallRequest};
use taktwerk_types::{BuiltInType, QualifiedName, Variant};

const GROUP: NodeId = NodeId::numeric(1, 9_000);
const OBJECTS: NodeId = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);

fn group(kind: GroupKind, members: &[u32]) -> GroupSpec {
    let members = members.iter().map(|number| alarm(*number)).collect();
    GroupSpec { members, ..GroupSpec::new(GROUP, "Boiler", OBJECTS, kind) }
}

fn state(server: &Server, number: u32) -> crate::alarm::State {
    server.space.condition(&alarm(number)).unwrap().state
}

fn value(server: &Server, object: &NodeId, path: &str) -> Variant {
    let id = path.split('/').fold(object.clone(), |id, name| {
        let found =
            (0..2).find_map(|namespace| server.space.child(&id, &QualifiedName::new(namespace, name)));
        found.unwrap_or_else(|| panic!("{path}"))
    });
    server.space.variable(&id).unwrap().get().value.unwrap_or_default()
}

fn later(server: &mut Server, span: Duration) {
    server.pass(span);
    server.space.poll_alarms(server.now.utc);
}

/// The targets of a node's references.
fn targets(server: &mut Server, node: &NodeId, reference: u32) -> Vec<NodeId> {
    let mut client = server.session();
    let request = BrowseRequest {
        request_header: client.header(),
        nodes_to_browse: vec![BrowseDescription {
            node_id: node.clone(),
            browse_direction: BrowseDirection::FORWARD,
            reference_type_id: NodeId::numeric(0, reference),
            include_subtypes: false,
            ..Default::default()
        }],
        ..Default::default()
    };
    let found = client.call(server, &request).unwrap().results.remove(0).references;
    found.into_iter().map(|reference| reference.node_id.node_id).collect()
}

#[test]
fn the_first_alarm_of_a_group_is_flagged_until_all_are_inactive() {
    let mut server = plant(3, |spec| spec.is_shown = *spec.id.to_string() != *alarm(3).to_string());
    server.space.add_alarm_group(&group(GroupKind::FirstInGroup, &[1, 2, 3]), server.now.utc).unwrap();
    let mut client = watching_fields(&mut server, &["Message", "FirstInGroupFlag", "ActiveState/Id"]);
    for number in [2, 1] {
        set(&mut server, number, 85.0);
    }
    let told: Vec<Variant> =
        events(&mut client, &mut server).into_iter().map(|event| event[1].clone()).collect();
    assert_eq!(told, [true.into(), false.into()], "in their events");
    assert_eq!(value(&server, &alarm(2), "FirstInGroupFlag"), true.into());
    set(&mut server, 2, 20.0);
    set(&mut server, 3, 85.0);
    assert_eq!(state(&server, 2).first_in_group, Some(true), "others are still active");
    set(&mut server, 1, 20.0);
    set(&mut server, 3, 20.0);
    assert_eq!(value(&server, &alarm(2), "FirstInGroupFlag"), false.into());
    set(&mut server, 3, 85.0);
    let flags: Vec<_> = (1..=3).map(|number| state(&server, number).first_in_group).collect();
    assert_eq!(flags, [Some(false), Some(false), Some(true)]);
    // Conditions with nodes and their group refer to each other.
    assert_eq!(targets(&mut server, &GROUP, r::ALARM_GROUP_MEMBER), [alarm(1), alarm(2)]);
    assert!(targets(&mut server, &alarm(1), r::HAS_COMPONENT).contains(&GROUP));
    let kinds = targets(&mut server, &GROUP, r::HAS_TYPE_DEFINITION);
    assert_eq!(kinds, [NodeId::numeric(0, object_type_ids::ALARM_GROUP_TYPE)]);
    assert_eq!(
        server.space.child(&alarm(1), &QualifiedName::new(0, "FirstInGroup")),
        Some(GROUP),
        "it has the name from the type"
    );
    assert_eq!(memberships(&mut server, &alarm(3)), [GROUP]);
}

/// The result of GetGroupMemberships.
fn memberships(server: &mut Server, alarm: &NodeId) -> Vec<NodeId> {
    let mut client = server.session();
    let request = CallRequest {
        request_header: client.header(),
        methods_to_call: vec![CallMethodRequest {
            object_id: alarm.clone(),
            method_id: NodeId::numeric(0, m::ALARM_CONDITION_TYPE_GET_GROUP_MEMBERSHIPS),
            input_arguments: Vec::new(),
        }],
    };
    let mut result = client.call(server, &request).unwrap().results.remove(0);
    assert_eq!((result.status_code, result.output_arguments.len()), (StatusCode::GOOD, 1));
    result.output_arguments.remove(0).try_into().unwrap()
}

#[test]
fn memberships_omit_groups_that_are_hidden_from_the_caller() {
    let other = NodeId::numeric(1, 9_001);
    let mut server = plant(2, |_| {});
    server.space.add_alarm_group(&group(GroupKind::Related, &[1, 2]), server.now.utc).unwrap();
    let mut second = group(GroupKind::Related, &[1]);
    second.id = other.clone();
    server.space.add_alarm_group(&second, server.now.utc).unwrap();
    assert_eq!(memberships(&mut server, &alarm(1)), [GROUP, other.clone()]);
    server.space.set_access(&GROUP, Access::roles([])).unwrap();
    assert_eq!(memberships(&mut server, &alarm(1)), [other]);
    assert_eq!(memberships(&mut server, &alarm(2)), [] as [NodeId; 0]);
    server.space.set_access(&GROUP, Access::default()).unwrap();
    assert_eq!(memberships(&mut server, &alarm(2)), [GROUP]);
}

#[test]
fn a_group_added_later_knows_the_first_alarm() {
    let mut server = plant(3, |_| {});
    for number in [3, 1] {
        set(&mut server, number, 85.0);
        server.pass(Duration::from_secs(1));
    }
    server.space.add_alarm_group(&group(GroupKind::FirstInGroup, &[1, 2, 3]), server.now.utc).unwrap();
    let flags: Vec<_> = (1..=3).map(|number| state(&server, number).first_in_group).collect();
    assert_eq!(flags, [Some(false), Some(false), Some(true)]);
    assert_eq!(value(&server, &alarm(3), "FirstInGroupFlag"), true.into());
}

#[test]
fn a_group_suppresses_as_long_as_one_of_its_members_is_active() {
    let mut server = plant(30, |_| {});
    add(&server, variable(500, BuiltInType::Boolean, false));
    let mut spec = group(GroupKind::Suppression, &[1]);
    spec.members.push(NodeId::numeric(1, 500));
    spec.suppresses = (2..=30).map(alarm).collect();
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    let mut client = watching_fields(&mut server, &["Message", "SuppressedState/Id", "ActiveState/Id"]);
    set(&mut server, 1, 85.0);
    assert!((2..=30).all(|number| state(&server, number).suppressed), "{:?}", state(&server, 30));
    assert!(!state(&server, 1).suppressed, "the suppressing alarm itself is not suppressed");
    let told = events(&mut client, &mut server);
    let suppressed = told.iter().filter(|event| event[1] == true.into()).count();
    assert_eq!((told.len(), suppressed), (30, 29));
    // It becomes active nevertheless (§5.8.2): suppression is only a state for clients to evaluate.
    set(&mut server, 2, 85.0);
    assert_eq!((state(&server, 2).active, state(&server, 2).suppressed), (true, true));
    // Unsuppress has no effect on suppression by a group, and Suppress outlasts the group's.
    let call = |server: &Server, number, method| {
        server.space.operate_condition(&alarm(number), &Operation::new(method), server.now.utc).unwrap();
    };
    call(&server, 3, Method::Unsuppress);
    call(&server, 4, Method::Suppress);
    assert!(state(&server, 3).suppressed);
    let flag = server.space.variable(&NodeId::numeric(1, 500)).unwrap();
    flag.set_at(true, server.now.utc);
    set(&mut server, 1, 20.0);
    assert!(state(&server, 3).suppressed, "the variable is true");
    flag.set_at(false, server.now.utc);
    later(&mut server, Duration::from_millis(100));
    assert_eq!((state(&server, 3).suppressed, state(&server, 4).suppressed), (false, true));
    assert_eq!(value(&server, &alarm(3), "SuppressedState/Id"), false.into());
    call(&server, 4, Method::Unsuppress);
    assert!(!state(&server, 4).suppressed);
    assert_eq!(targets(&mut server, &alarm(9), r::HAS_ALARM_SUPPRESSION_GROUP), [GROUP]);
    let members = targets(&mut server, &GROUP, r::ALARM_SUPPRESSION_GROUP_MEMBER);
    assert_eq!(members, [alarm(1), NodeId::numeric(1, 500)]);
}

#[test]
fn an_alarm_raised_with_its_group_is_reported_as_suppressed() {
    let mut server = plant(2, |_| {});
    let mut spec = group(GroupKind::Suppression, &[1]);
    spec.suppresses = vec![alarm(2)];
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    let mut client = watching_fields(&mut server, &["SourceName", "SuppressedState/Id", "ActiveState/Id"]);
    for number in [1, 2] {
        let handle = server.space.variable(&NodeId::numeric(1, number)).unwrap();
        handle.set_at(85.0, server.now.utc);
    }
    server.space.poll_alarms(server.now.utc);
    let second = |event: &&Vec<Variant>| event[0] == "v2".into() && event[2] == true.into();
    let told = events(&mut client, &mut server);
    let last = told.iter().rfind(second).expect("it is active");
    assert_eq!(last[1], true.into());
    // Suppression by groups is not saved as if an operator had done it.
    let bytes = server.space.save_alarms();
    let other = Server::new();
    other.space.alarms_or_new().restore(&bytes).unwrap();
    add(&other, variable(2, BuiltInType::Double, 85.0));
    other.space.add_condition(level(2), other.now.utc).unwrap();
    assert_eq!((state(&other, 2).active, state(&other, 2).suppressed), (true, false));
}

#[test]
fn a_removed_group_leaves_its_alarms_without_flags() {
    let other = NodeId::numeric(1, 9_001);
    let mut server = plant(3, |_| {});
    let first = group(GroupKind::FirstInGroup, &[1, 2, 3]);
    let second = GroupSpec { id: other.clone(), ..group(GroupKind::FirstInGroup, &[2, 3]) };
    for spec in [&first, &second] {
        server.space.add_alarm_group(spec, server.now.utc).unwrap();
    }
    set(&mut server, 1, 85.0);
    set(&mut server, 2, 85.0);
    assert!(server.space.remove_alarm_group(&GROUP, server.now.utc));
    assert!(!server.space.remove_alarm_group(&GROUP, server.now.utc), "it is gone");
    assert!(!server.space.contains(&GROUP));
    let flags =
        |server: &Server| (1..=3).map(|number| state(server, number).first_in_group).collect::<Vec<_>>();
    assert_eq!(flags(&server), [None, Some(true), Some(false)], "of the other group");
    assert_eq!(server.space.child(&alarm(1), &QualifiedName::new(0, "FirstInGroupFlag")), None);
    assert_eq!(value(&server, &alarm(2), "FirstInGroupFlag"), true.into());
    assert_eq!(memberships(&mut server, &alarm(2)), std::slice::from_ref(&other));
    assert_eq!(memberships(&mut server, &alarm(1)), [] as [NodeId; 0]);
    // The next group in the same place has only its own alarms.
    server.space.add_alarm_group(&group(GroupKind::FirstInGroup, &[3]), server.now.utc).unwrap();
    set(&mut server, 3, 85.0);
    assert_eq!(flags(&server), [None, Some(true), Some(true)]);
    assert_eq!(memberships(&mut server, &alarm(3)), [other, GROUP]);
}

#[test]
fn a_removed_group_leaves_the_flags_that_it_has_not_added() {
    let server = plant(2, |_| {});
    // An instance that has the flag, such as one of a type that declares it.
    let flag = NodeId::string(1, "alarm 1/FirstInGroupFlag");
    let under = Under {
        parent: &alarm(1),
        reference_type: &NodeId::numeric(0, r::HAS_COMPONENT),
        type_definition: Some(&NodeId::numeric(0, schema::ids::variable_type_ids::BASE_DATA_VARIABLE_TYPE)),
    };
    let boolean = NodeId::numeric(0, schema::ids::data_type_ids::BOOLEAN);
    let name = QualifiedName::new(0, "FirstInGroupFlag");
    let spec = NodeSpec::variable(flag.clone(), name.clone(), boolean, Some(false.into()));
    server.space.add_node(spec, under, server.now.utc).unwrap();
    for _ in 0..2 {
        server.space.add_alarm_group(&group(GroupKind::FirstInGroup, &[1, 2]), server.now.utc).unwrap();
        assert!(server.space.child(&alarm(2), &name).is_some());
        assert!(server.space.remove_alarm_group(&GROUP, server.now.utc));
        assert_eq!(server.space.child(&alarm(1), &name), Some(flag.clone()));
        assert_eq!(server.space.child(&alarm(2), &name), None);
    }
    assert_eq!((state(&server, 1).first_in_group, state(&server, 2).first_in_group), (Some(false), None));
}

#[test]
fn a_removed_group_no_longer_suppresses() {
    let mut server = plant(3, |_| {});
    add(&server, variable(500, BuiltInType::Boolean, true));
    let mut spec = group(GroupKind::Suppression, &[1]);
    spec.members.push(NodeId::numeric(1, 500));
    spec.suppresses = vec![alarm(2), alarm(3)];
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    later(&mut server, Duration::from_millis(100));
    assert!(state(&server, 2).suppressed && state(&server, 3).suppressed);
    let mut client = watching_fields(&mut server, &["SourceName", "SuppressedState/Id"]);
    assert_eq!(events(&mut client, &mut server), [] as [Vec<Variant>; 0], "only a keep-alive message");
    assert!(server.space.remove_alarm_group(&GROUP, server.now.utc));
    server.space.poll_alarms(server.now.utc);
    assert!(!state(&server, 2).suppressed && !state(&server, 3).suppressed);
    let told: Vec<_> = events(&mut client, &mut server).into_iter().map(|event| event[1].clone()).collect();
    assert_eq!(told, [false.into(), false.into()]);
    // Its Variable means nothing any more, also to the group that gets its place.
    let next = GroupSpec { suppresses: vec![alarm(3)], ..group(GroupKind::Suppression, &[1]) };
    server.space.add_alarm_group(&next, server.now.utc).unwrap();
    server.space.variable(&NodeId::numeric(1, 500)).unwrap().set_at(true, server.now.utc);
    set(&mut server, 2, 85.0);
    set(&mut server, 3, 85.0);
    assert!(!state(&server, 2).suppressed && !state(&server, 3).suppressed);
    // Neither does what it suppressed belong to that one.
    set(&mut server, 1, 85.0);
    set(&mut server, 2, 86.0);
    assert!(!state(&server, 2).suppressed && state(&server, 3).suppressed);
}

#[test]
fn alarms_that_are_added_again_have_left_their_groups() {
    let server = plant(2, |_| {});
    let mut spec = group(GroupKind::Suppression, &[1]);
    spec.suppresses = vec![alarm(2)];
    assert!(!server.space.has_alarm_group(&spec));
    for number in [1, 2] {
        server.space.add_alarm_group(&spec, server.now.utc).unwrap();
        assert!(server.space.has_alarm_group(&spec));
        server.space.remove_condition(&alarm(number), server.now.utc);
        assert!(!server.space.has_alarm_group(&spec));
        server.space.add_condition(level(number), server.now.utc).unwrap();
        assert!(!server.space.has_alarm_group(&spec));
        server.space.remove_alarm_group(&GROUP, server.now.utc);
    }
}

/// As by a reload. The alarms have new values, which may be evaluated before the Variable.
#[test]
fn a_group_that_replaces_another_one_suppresses_at_once() {
    let mut server = plant(9, |_| {});
    let switch = NodeId::numeric(1, 500);
    add(&server, variable(500, BuiltInType::Boolean, true));
    let mut spec = group(GroupKind::Suppression, &[]);
    spec.members = vec![switch];
    spec.suppresses = (1..=9).map(alarm).collect();
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    let write = |server: &Server, value: f64| {
        for number in 1..=9 {
            server.space.variable(&NodeId::numeric(1, number)).unwrap().set_at(value, server.now.utc);
        }
        server.space.poll_alarms(server.now.utc);
    };
    write(&server, 85.0);
    let mut client = watching_fields(&mut server, &["SourceName", "SuppressedState/Id"]);
    assert_eq!(events(&mut client, &mut server), [] as [Vec<Variant>; 0], "only a keep-alive message");
    for value in [86.0, 87.0] {
        assert!(server.space.remove_alarm_group(&GROUP, server.now.utc));
        server.space.add_alarm_group(&spec, server.now.utc).unwrap();
        write(&server, value);
    }
    assert!((1..=9).all(|number| state(&server, number).suppressed));
    assert_eq!(
        events(&mut client, &mut server),
        [] as [Vec<Variant>; 0],
        "they were suppressed all the time"
    );
}

/// As by a tag with a changed description.
#[test]
fn a_variable_that_is_added_again_is_no_longer_shown_as_a_member() {
    let mut server = plant(2, |_| {});
    let switch = NodeId::numeric(1, 500);
    add(&server, variable(500, BuiltInType::Boolean, true));
    let mut spec = group(GroupKind::Suppression, &[1]);
    spec.members.push(switch.clone());
    spec.suppresses = vec![alarm(2)];
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    assert!(server.space.has_alarm_group(&spec));
    server.space.delete_node(&switch).unwrap();
    add(&server, variable(500, BuiltInType::Boolean, true));
    later(&mut server, Duration::from_millis(100));
    assert!(state(&server, 2).suppressed);
    assert!(!server.space.has_alarm_group(&spec));
    assert!(server.space.remove_alarm_group(&GROUP, server.now.utc));
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    assert!(server.space.has_alarm_group(&spec));
    let shown = targets(&mut server, &GROUP, r::ALARM_SUPPRESSION_GROUP_MEMBER);
    assert_eq!(shown.len(), 2, "{shown:?}");
}

#[test]
fn a_removed_alarm_is_no_longer_the_first_of_its_group() {
    let mut server = plant(2, |_| {});
    server.space.add_alarm_group(&group(GroupKind::FirstInGroup, &[1, 2]), server.now.utc).unwrap();
    set(&mut server, 1, 85.0);
    set(&mut server, 2, 85.0);
    assert_eq!(
        (state(&server, 1).first_in_group, state(&server, 2).first_in_group),
        (Some(true), Some(false))
    );
    server.space.remove_condition(&alarm(1), server.now.utc);
    assert_eq!(state(&server, 2).first_in_group, Some(true));
    // The next alarm gets the number of the removed one.
    server.space.add_condition(level(1), server.now.utc).unwrap();
    set(&mut server, 2, 20.0);
    assert_eq!((state(&server, 1).first_in_group, state(&server, 2).first_in_group), (None, Some(false)));
}

#[test]
fn a_removed_alarm_no_longer_suppresses() {
    let mut server = plant(2, |_| {});
    let spec = GroupSpec { suppresses: vec![alarm(2)], ..group(GroupKind::Suppression, &[1]) };
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    set(&mut server, 1, 85.0);
    set(&mut server, 2, 85.0);
    assert!(state(&server, 2).suppressed);
    server.space.remove_condition(&alarm(1), server.now.utc);
    later(&mut server, Duration::from_millis(100));
    assert!(!state(&server, 2).suppressed && state(&server, 2).active);
}

#[test]
fn invalid_members_are_refused() {
    let server = plant(1, |_| {});
    add(&server, variable(500, BuiltInType::Boolean, false));
    let missing = server.space.add_alarm_group(&group(GroupKind::Related, &[1, 7]), server.now.utc);
    let told = missing.unwrap_err().to_string();
    assert!(told.contains("alarm 7 is not an alarm. Add alarms before"), "{told}");
    let empty = server.space.add_alarm_group(&group(GroupKind::Related, &[]), server.now.utc);
    assert!(matches!(empty, Err(AlarmError::Empty(_))));
    let mut spec = group(GroupKind::FirstInGroup, &[1]);
    spec.members.push(NodeId::numeric(1, 500));
    assert!(
        server.space.add_alarm_group(&spec, server.now.utc).is_err(),
        "only groups that suppress have variables"
    );
    let twice = server.space.add_alarm_group(&group(GroupKind::Related, &[1, 1]), server.now.utc);
    assert!(twice.unwrap_err().to_string().contains("exists already"));
    assert!(!server.space.contains(&GROUP), "nothing is left behind");
    server.space.add_alarm_group(&group(GroupKind::Related, &[1]), server.now.utc).unwrap();
    assert_eq!(server.space.alarm_groups(&alarm(1)), Some(vec![GROUP]));
    assert_eq!(state(&server, 1).first_in_group, None);
}

#[test]
fn metrics_count_alarms_and_can_be_reset() {
    let metrics = NodeId::numeric(1, 9_500);
    let mut server = plant(3, |_| {});
    set(&mut server, 1, 85.0);
    server.space.add_alarm_metrics(&SERVER, metrics.clone(), 10, server.now.utc).unwrap();
    let start = server.now.utc;
    later(&mut server, Duration::from_secs(30));
    set(&mut server, 2, 85.0);
    set(&mut server, 1, 20.0);
    // A condition added later is counted too.
    add(&server, variable(4, BuiltInType::Double, 85.0));
    server.space.add_condition(level(4), server.now.utc).unwrap();
    later(&mut server, Duration::from_secs(15));
    let read = |server: &Server, path: &str| value(server, &metrics, path);
    assert_eq!(read(&server, "AlarmCount"), 3u32.into());
    assert_eq!(read(&server, "StartTime"), start.into());
    assert_eq!(read(&server, "MaximumActiveState"), 30_000.0.into());
    assert_eq!(read(&server, "MaximumUnAck"), 45_000.0.into());
    assert_eq!(
        (read(&server, "CurrentAlarmRate"), read(&server, "MaximumAlarmRate")),
        (3.0.into(), 3.0.into())
    );
    assert_eq!(read(&server, "CurrentAlarmRate/Rate"), 10u16.into());
    let reset = server.space.child(&metrics, &QualifiedName::new(0, "Reset")).unwrap();
    let mut client = server.session();
    let request = CallRequest {
        request_header: client.header(),
        methods_to_call: vec![CallMethodRequest {
            object_id: metrics.clone(),
            method_id: reset,
            input_arguments: Vec::new(),
        }],
    };
    assert_eq!(client.call(&mut server, &request).unwrap().results[0].status_code, StatusCode::GOOD);
    later(&mut server, Duration::from_millis(100));
    assert_eq!(read(&server, "AlarmCount"), 0u32.into());
    assert_eq!(read(&server, "MaximumActiveState"), 0.0.into());
    assert_eq!(read(&server, "StartTime"), server.now.utc.into());
    let kinds = targets(&mut server, &metrics, r::HAS_TYPE_DEFINITION);
    assert_eq!(kinds, [NodeId::numeric(0, object_type_ids::ALARM_METRICS_TYPE)]);
}
