//! Conditions that are not alarms: AcknowledgeableConditionType, and own subtypes of ConditionType (Part 9 §5.5, §5.7).

use super::alarms::{alarm, call, events, watching_fields};
use super::attribute::{add, variable};
use super::*;
use crate::alarm::{ConditionSpec, Dialog, Kind};
use crate::space::AlarmError;
use crate::space::import::Importer;
use schema::ids::{method_ids as m, object_type_ids as t};
use taktwerk_types::{BuiltInType, LocalizedText, QualifiedName, Variant};

/// A concrete subtype of ConditionType.
const NOTICE: NodeId = NodeId::numeric(2, 1);
const MODEL: &str = r#"<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>urn:notices</Uri></NamespaceUris><Models><Model ModelUri="urn:notices"/></Models>
  <UAObjectType NodeId="ns=1;i=1" BrowseName="1:NoticeType"><References>
    <Reference ReferenceType="i=45" IsForward="false">i=2782</Reference></References></UAObjectType>
</UANodeSet>"#;
const FIELDS: [&str; 6] = [
    "EventType",
    "EventId",
    "Retain",
    "AckedState/Id",
    "ActiveState/Id",
    "EnabledState/EffectiveDisplayName",
];

/// A server with a Variable, the type, and a condition of the Variable.
fn plant(kind: Kind, change: impl Fn(&mut ConditionSpec)) -> (Server, Result<(), AlarmError>) {
    let server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let mut importer = Importer::new(taktwerk_nodeset::TypeDictionary::namespace_zero());
    importer.import(&server.space, &[("n.xml".to_owned(), MODEL.to_owned())], server.now.utc).unwrap();
    let mut spec = ConditionSpec::new(alarm(1), "Service", NodeId::numeric(1, 1), kind);
    change(&mut spec);
    let added = server.space.add_condition(spec, server.now.utc);
    (server, added)
}

fn set(server: &Server, is_set: bool) {
    server.space.set_condition(&alarm(1), is_set, 300, "the filter is old", server.now.utc).unwrap();
}

fn has(server: &Server, name: &str) -> bool {
    server.space.child(&alarm(1), &QualifiedName::new(0, name)).is_some()
}

fn text(text: &str) -> Variant {
    LocalizedText::new("en", text).into()
}

#[test]
fn an_acknowledgeable_condition_is_not_an_alarm() {
    for is_shown in [true, false] {
        let (mut server, added) = plant(Kind::Acknowledgeable, |spec| {
            (spec.is_shown, spec.rules.confirms, spec.rules.on_delay) = (is_shown, true, 5_000.0);
        });
        added.unwrap();
        let mut client = watching_fields(&mut server, &FIELDS);
        set(&server, true);
        let told = events(&mut client, &mut server);
        let [event] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(event[0], NodeId::numeric(0, t::ACKNOWLEDGEABLE_CONDITION_TYPE).into());
        let expected = [true.into(), false.into(), Variant::Empty, text("Enabled/Unacknowledged")];
        assert_eq!(event[2..], expected, "it has no ActiveState");
        if is_shown {
            let shown = ["AckedState", "ConfirmedState", "Acknowledge", "Confirm", "AddComment"];
            assert!(shown.iter().all(|name| has(&server, name)));
            let alarms =
                ["ActiveState", "SuppressedState", "ShelvingState", "Suppress", "Silence", "OnDelay"];
            assert!(!alarms.iter().any(|name| has(&server, name)));
        }
        // The type's Methods work; those of alarms do not exist.
        let mut operate = |server: &mut Server, method: u32, inputs: Vec<Variant>| {
            call(&mut client, server, alarm(1), NodeId::numeric(0, method), inputs)
        };
        let answer = vec![event[1].clone(), LocalizedText::from("ordered").into()];
        for method in [m::ALARM_CONDITION_TYPE_SUPPRESS, m::ALARM_CONDITION_TYPE_SILENCE] {
            assert_eq!(operate(&mut server, method, Vec::new()), StatusCode::BAD_METHOD_INVALID);
        }
        let acknowledge = m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE;
        assert_eq!(operate(&mut server, acknowledge, answer), StatusCode::GOOD);
        set(&server, false);
        let told = events(&mut client, &mut server);
        let [acked, ended] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((&acked[3], &acked[5]), (&true.into(), &text("Enabled/Unconfirmed")));
        assert_eq!(ended[2], true.into(), "it has not been confirmed");
        let confirm = NodeId::numeric(0, m::ACKNOWLEDGEABLE_CONDITION_TYPE_CONFIRM);
        let answer = vec![ended[1].clone(), LocalizedText::from("done").into()];
        assert_eq!(call(&mut client, &mut server, alarm(1), confirm, answer), StatusCode::GOOD);
        let told = events(&mut client, &mut server);
        assert_eq!((&told[0][2], &told[0][5]), (&false.into(), &text("Enabled")));
    }
}

#[test]
fn a_condition_of_an_own_type_needs_no_acknowledgement() {
    let (mut server, added) = plant(Kind::Condition, |spec| spec.type_id = Some(NOTICE));
    added.unwrap();
    let mut client = watching_fields(&mut server, &FIELDS);
    set(&server, true);
    let told = events(&mut client, &mut server);
    let [event] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(event[0], NOTICE.into());
    assert_eq!(event[2..], [true.into(), Variant::Empty, Variant::Empty, text("Enabled")]);
    assert!(has(&server, "EnabledState") && has(&server, "AddComment"));
    assert!(!has(&server, "AckedState") && !has(&server, "ActiveState") && !has(&server, "Acknowledge"));
    let answer = vec![event[1].clone(), LocalizedText::from("seen").into()];
    for (method, expected) in [
        (m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE, StatusCode::BAD_METHOD_INVALID),
        (m::CONDITION_TYPE_ADD_COMMENT, StatusCode::GOOD),
    ] {
        let method = NodeId::numeric(0, method);
        assert_eq!(call(&mut client, &mut server, alarm(1), method, answer.clone()), expected);
    }
    events(&mut client, &mut server);
    // After a restart it is still retained.
    let saved = server.space.save_alarms();
    let (restarted, _) = plant(Kind::Set, |spec| spec.id = alarm(2));
    restarted.space.alarms().unwrap().restore(&saved).unwrap();
    let spec = ConditionSpec {
        type_id: Some(NOTICE),
        ..ConditionSpec::new(alarm(1), "Service", NodeId::numeric(1, 1), Kind::Condition)
    };
    restarted.space.add_condition(spec, restarted.now.utc).unwrap();
    let state = restarted.space.condition(&alarm(1)).unwrap().state;
    assert_eq!((state.retain(), state.comment.text.as_str()), (true, "seen"));
    set(&server, false);
    assert_eq!(events(&mut client, &mut server)[0][2], false.into());
}

#[test]
fn types_that_do_not_fit_are_refused() {
    let refused = |kind, type_id: Option<NodeId>| {
        let (server, added) = plant(kind, |spec| spec.type_id.clone_from(&type_id));
        assert_eq!(server.space.alarms().map_or(0, |alarms| alarms.len()), usize::from(added.is_ok()));
        added.err().map(|error| error.to_string()).unwrap_or_default()
    };
    // Part 9 §5.5.2: ConditionType is abstract.
    assert!(refused(Kind::Condition, None).contains("i=2782 is abstract"));
    assert!(refused(Kind::Acknowledgeable, Some(NOTICE)).contains("is not a subtype of i=2881"));
    assert!(refused(Kind::Set, Some(NOTICE)).contains("is not a subtype of i=2915"));
    assert_eq!(refused(Kind::Condition, Some(NOTICE)), "");
    // It is what its type says.
    for (type_id, has_active) in [(t::ACKNOWLEDGEABLE_CONDITION_TYPE, false), (t::ALARM_CONDITION_TYPE, true)]
    {
        let (server, added) = plant(Kind::Condition, |spec| spec.type_id = Some(NodeId::numeric(0, type_id)));
        added.unwrap();
        assert_eq!((has(&server, "AckedState"), has(&server, "ActiveState")), (true, has_active));
        set(&server, true);
        assert!(!server.space.condition(&alarm(1)).unwrap().state.acked);
    }
}

#[test]
fn a_dialog_has_no_methods_of_alarms() {
    let (mut server, added) =
        plant(Kind::Set, |spec| spec.dialog = Some(Dialog::new("Open the valve?", &["Yes", "No"])));
    added.unwrap();
    let mut client = server.session();
    for (method, expected) in [
        (m::ALARM_CONDITION_TYPE_SUPPRESS, StatusCode::BAD_METHOD_INVALID),
        (m::CONDITION_TYPE_DISABLE, StatusCode::GOOD),
    ] {
        let method = NodeId::numeric(0, method);
        assert_eq!(call(&mut client, &mut server, alarm(1), method, Vec::new()), expected);
    }
}
