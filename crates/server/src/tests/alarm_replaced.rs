//! Conditions whose Variables or instances are deleted and added again.

use super::alarms::{alarm, events, level, plant, set, watching_fields};
use super::attribute::{add, variable};
use super::*;
use crate::alarm::{ConditionSpec, GroupKind, GroupSpec, Kind, Limits, Method, Operation, Quantity};
use core::time::Duration;
use schema::ids::object_ids;
use taktwerk_types::{BuiltInType, LocalizedText, QualifiedName, Variant};

const FIELDS: [&str; 4] = ["Message", "ActiveState/Id", "Quality", "Retain"];
const V1: NodeId = NodeId::numeric(1, 1);

fn delete(server: &mut Server) {
    server.space.delete_node(&V1).unwrap();
    server.space.poll_alarms(server.now.utc);
}

fn add_again(server: &mut Server, value: f64) {
    add(server, variable(1, BuiltInType::Double, value));
    server.space.poll_alarms(server.now.utc);
}

fn later(server: &mut Server, span: Duration) {
    server.pass(span);
    server.space.poll_alarms(server.now.utc);
}

#[test]
fn an_alarm_follows_a_variable_that_is_added_again() {
    let mut server = plant(2, |spec| spec.rules.confirms = true);
    let mut client = watching_fields(&mut server, &FIELDS);
    set(&mut server, 1, 85.0);
    server.space.operate_condition(&alarm(1), &Operation::new(Method::Silence), server.now.utc).unwrap();
    let before = server.space.condition(&alarm(1)).unwrap();
    assert!(!events(&mut client, &mut server).is_empty());
    for _ in 0..3 {
        delete(&mut server);
        later(&mut server, Duration::from_millis(500));
        add_again(&mut server, 85.0);
        later(&mut server, Duration::from_secs(5));
    }
    assert!(events(&mut client, &mut server).is_empty(), "nothing has changed for operators");
    assert_eq!(server.space.condition(&alarm(1)).unwrap(), before);
    set(&mut server, 1, 20.0);
    set(&mut server, 2, 90.0);
    let told = events(&mut client, &mut server);
    let active: Vec<Variant> = told.iter().map(|event| event[1].clone()).collect();
    assert_eq!(active, [false.into(), true.into()], "{told:?}");
    // Its nodes are still connected with the source.
    let nodes = server.space.read();
    let has_condition = NodeId::numeric(0, schema::ids::reference_type_ids::HAS_CONDITION);
    let [source, kind, condition] = [&V1, &has_condition, &alarm(1)].map(|id| nodes.find(id).unwrap());
    assert!(nodes.has_reference(source, kind, condition));
}

/// A value that differs is evaluated at once, and a value written between two calls is not missed.
#[test]
fn the_new_value_is_evaluated() {
    let mut server = plant(1, |_| {});
    let mut client = watching_fields(&mut server, &FIELDS);
    server.space.delete_node(&V1).unwrap();
    add(&server, variable(1, BuiltInType::Double, 99.0));
    server.space.poll_alarms(server.now.utc);
    let told = events(&mut client, &mut server);
    assert_eq!(told[0][0], LocalizedText::from("v1: 99 is beyond the HighHigh limit 95").into());
    assert_eq!(told.len(), 1);
    // No share of the old slot is kept.
    let free = server.space.slots().free_slots();
    delete(&mut server);
    add_again(&mut server, 99.0);
    assert_eq!((server.space.slots().free_slots(), free > 0), (free, true));
}

#[test]
fn a_missing_variable_makes_the_quality_bad() {
    let mut server = plant(1, |_| {});
    let mut client = watching_fields(&mut server, &FIELDS);
    set(&mut server, 1, 85.0);
    events(&mut client, &mut server);
    server.space.delete_node(&V1).unwrap();
    let next = server.space.poll_alarms(server.now.utc).unwrap();
    assert_eq!(next.ticks() - server.now.utc.ticks(), 10_000_000, "it is reported in a second");
    assert!(events(&mut client, &mut server).is_empty());
    let state = |server: &Server| server.space.condition(&alarm(1)).unwrap().state;
    assert_eq!(state(&server).quality, StatusCode::GOOD);
    later(&mut server, Duration::from_secs(1));
    // Nobody has permissions for events of a source that does not exist. The nodes of the alarm show its state.
    let quality = server.space.child(&alarm(1), &QualifiedName::new(0, "Quality")).unwrap();
    let quality = server.space.variable(&quality).unwrap().get().value;
    assert_eq!(quality, Some(StatusCode::BAD_NODE_ID_UNKNOWN.into()));
    let (is_active, told_at) = (state(&server).active, state(&server).time);
    assert!(is_active);
    later(&mut server, Duration::from_secs(10));
    assert_eq!(state(&server).time, told_at, "it is reported once");
    // Much later it is there again.
    add_again(&mut server, 20.0);
    let told = events(&mut client, &mut server);
    assert_eq!(told[0][1..3], [false.into(), StatusCode::GOOD.into()]);
    // A removed condition is not looked for any more.
    delete(&mut server);
    assert!(server.space.remove_condition(&alarm(1), server.now.utc));
    assert_eq!(server.space.poll_alarms(server.now.utc), None);
    add_again(&mut server, 99.0);
    server.space.add_condition(level(1), server.now.utc).unwrap();
    server.space.poll_alarms(server.now.utc);
    assert!(server.space.condition(&alarm(1)).unwrap().state.active);
}

#[test]
fn a_target_and_a_member_of_a_group_follow_too() {
    let server = plant(1, |_| {});
    add(&server, variable(8, BuiltInType::Double, 0.0));
    let setpoint = NodeId::numeric(1, 8);
    let limits = Limits { high: Some(50.0), ..Limits::default() };
    let kind = Kind::Limit { quantity: Quantity::Deviation, limits, is_exclusive: true };
    let spec = ConditionSpec { id: alarm(2), kind, target: Some(setpoint.clone()), ..level(1) };
    server.space.add_condition(ConditionSpec { name: "Away".into(), ..spec }, server.now.utc).unwrap();
    server.space.poll_alarms(server.now.utc);
    let is_away = || server.space.condition(&alarm(2)).unwrap().state.active;
    assert!(!is_away());
    server.space.delete_node(&setpoint).unwrap();
    server.space.poll_alarms(server.now.utc);
    add(&server, variable(8, BuiltInType::Double, -100.0));
    server.space.poll_alarms(server.now.utc);
    assert!(is_away());
    add(&server, variable(7, BuiltInType::Boolean, false));
    let member = NodeId::numeric(1, 7);
    let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
    let group = NodeId::numeric(1, 9_000);
    let spec = GroupSpec {
        members: vec![member.clone()],
        suppresses: vec![alarm(1)],
        ..GroupSpec::new(group, "Stopped", objects, GroupKind::Suppression)
    };
    server.space.add_alarm_group(&spec, server.now.utc).unwrap();
    server.space.delete_node(&member).unwrap();
    server.space.poll_alarms(server.now.utc);
    add(&server, variable(7, BuiltInType::Boolean, false));
    server.space.poll_alarms(server.now.utc);
    server.space.variable(&member).unwrap().set_at(true, server.now.utc);
    server.space.poll_alarms(server.now.utc);
    assert!(server.space.condition(&alarm(1)).unwrap().state.suppressed);
}

const BOUND: &str = r#"<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>urn:pumps</Uri></NamespaceUris><Models><Model ModelUri="urn:pumps"/></Models>
  <UAObject NodeId="ns=1;i=1" BrowseName="1:Leak"><References>
    <Reference ReferenceType="i=47" IsForward="false">i=85</Reference>
    <Reference ReferenceType="i=40">i=2915</Reference></References></UAObject>
  <UAVariable NodeId="ns=1;i=2" BrowseName="0:ActiveState" DataType="i=21"><References>
    <Reference ReferenceType="i=47" IsForward="false">ns=1;i=1</Reference>
    <Reference ReferenceType="i=40">i=8995</Reference></References></UAVariable>
  <UAVariable NodeId="ns=1;i=3" BrowseName="0:Id" DataType="i=1"><References>
    <Reference ReferenceType="i=46" IsForward="false">ns=1;i=2</Reference>
    <Reference ReferenceType="i=40">i=68</Reference></References></UAVariable>
</UANodeSet>"#;

/// The nodes of a NodeSet's own instance show the state also after that NodeSet has changed.
#[test]
fn a_bound_instance_is_replaced() {
    use crate::space::import::Importer;
    let server = plant(1, |_| {});
    let mut importer = Importer::new(taktwerk_nodeset::TypeDictionary::namespace_zero());
    let file = |text: &str| vec![("pumps.xml".to_owned(), text.to_owned())];
    let batch = importer.import(&server.space, &file(BOUND), server.now.utc).unwrap().batch;
    let namespace = server.space.namespaces().iter().position(|uri| uri == "urn:pumps").unwrap() as u16;
    let mut spec = level(1);
    (spec.id, spec.is_bound) = (NodeId::numeric(namespace, 1), true);
    (spec.kind, spec.input) = (Kind::Set, None);
    let id = spec.id.clone();
    server.space.add_condition(spec, server.now.utc).unwrap();
    let shown = |server: &Server| {
        let active = server.space.child(&id, &QualifiedName::new(0, "ActiveState")).unwrap();
        let active = server.space.child(&active, &QualifiedName::new(0, "Id")).unwrap();
        server.space.variable(&active).unwrap().get().value
    };
    server.space.set_condition(&id, true, 500, "leak", server.now.utc).unwrap();
    assert_eq!(shown(&server), Some(true.into()));
    let changed = BOUND.replace("0:Id\" DataType", "0:Id\" AccessLevel=\"1\" Historizing=\"true\" DataType");
    for text in [changed.as_str(), "", BOUND] {
        let files = if text.is_empty() { Vec::new() } else { file(text) };
        let prepared = importer.prepare(&server.space, &files, Some(batch)).unwrap();
        let imported = importer.replace(&server.space, prepared, server.now.utc);
        assert!(imported.node_count + imported.deleted_count > 0, "{text}");
        if !text.is_empty() {
            assert_eq!(shown(&server), Some(true.into()), "{text}");
        }
    }
    server.space.set_condition(&id, false, 500, "dry", server.now.utc).unwrap();
    assert_eq!(shown(&server), Some(false.into()));
}
