//! Removing conditions, and conditions whose state is kept elsewhere.

use super::alarms::{alarm, events, level, plant, set, watching_fields};
use super::attribute::{add, variable};
use super::*;
use crate::alarm::{ConditionSpec, Kind};
use crate::space::ConditionReport;
use taktwerk_types::{BuiltInType, LocalizedText, QualifiedName, Variant};

const FIELDS: [&str; 5] = ["Message", "Retain", "ActiveState/Id", "Severity", "Quality"];

#[test]
fn a_removed_condition_has_a_last_event_and_leaves_nothing() {
    let mut server = plant(2, |_| {});
    let mut client = watching_fields(&mut server, &FIELDS);
    set(&mut server, 1, 85.0);
    set(&mut server, 2, 85.0);
    assert_eq!(events(&mut client, &mut server).len(), 2);
    let limit = server.space.child(&alarm(1), &QualifiedName::new(0, "HighLimit")).unwrap();
    assert!(server.space.remove_condition(&alarm(1), server.now.utc));
    let told = events(&mut client, &mut server);
    let [last] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(last[1..3], [false.into(), false.into()]);
    assert!(!server.space.remove_condition(&alarm(1), server.now.utc), "it no longer exists");
    assert!(!server.space.contains(&alarm(1)) && !server.space.contains(&limit));
    assert_eq!(server.space.conditions(false, 10).len(), 1);
    assert_eq!(server.space.alarms().unwrap().len(), 1);
    // Its Variable is no longer monitored; the other one is.
    set(&mut server, 1, 99.0);
    set(&mut server, 2, 20.0);
    assert_eq!(events(&mut client, &mut server).len(), 1);
    // It is not saved either: a condition of the same name starts anew, in the freed slot.
    let saved = server.space.save_alarms();
    set(&mut server, 1, 20.0);
    server.space.add_condition(level(1), server.now.utc).unwrap();
    assert_eq!(server.space.alarms().unwrap().len(), 2);
    server.space.poll_alarms(server.now.utc);
    assert!(!server.space.condition(&alarm(1)).unwrap().state.active);
    set(&mut server, 1, 85.0);
    let told = events(&mut client, &mut server);
    assert_eq!(told[0][0], LocalizedText::from("v1: 85 is beyond the High limit 80").into());
    assert_eq!(crate::space::Alarms::default().restore(&saved).unwrap(), 1);
}

#[test]
fn a_hidden_condition_is_removed_with_its_pending_delay() {
    let mut server = plant(1, |spec| {
        spec.rules.on_delay = 5_000.0;
        spec.is_shown = false;
    });
    let mut client = watching_fields(&mut server, &FIELDS);
    set(&mut server, 1, 85.0);
    assert!(server.space.poll_alarms(server.now.utc).is_some(), "the delay is due");
    assert!(server.space.remove_condition(&alarm(1), server.now.utc));
    assert_eq!(server.space.poll_alarms(server.now.utc), None);
    assert!(events(&mut client, &mut server).is_empty(), "it was not active yet");
}

fn report(is_active: bool, message: &str, quality: StatusCode, is_news: bool) -> ConditionReport<'_> {
    let time = UtcTime::parse("2026-01-02T03:04:05Z").unwrap();
    ConditionReport { is_active, severity: 700, quality, message, own: Vec::new(), is_news, time }
}

#[test]
fn a_reported_state_raises_one_event() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let spec = ConditionSpec::new(alarm(1), "Leak", NodeId::numeric(1, 1), Kind::Set);
    server.space.add_condition(spec, server.now.utc).unwrap();
    let mut client = watching_fields(&mut server, &[&FIELDS[..], &["Time"]].concat());
    let mut told = |server: &mut Server, report: ConditionReport<'_>| {
        server.space.report_condition(&alarm(1), report, server.now.utc).unwrap();
        events(&mut client, server)
    };
    let good = StatusCode::GOOD;
    let lost = StatusCode::BAD_NO_COMMUNICATION;
    let time = UtcTime::parse("2026-01-02T03:04:05Z").unwrap();
    let event = |message: &str, active: bool, quality: StatusCode| -> Vec<Variant> {
        let message = LocalizedText::from(message).into();
        vec![message, true.into(), active.into(), 700u16.into(), quality.into(), time.into()]
    };
    assert_eq!(told(&mut server, report(true, "wet", good, false)), [event("wet", true, good)]);
    // Only the message changes; then nothing.
    assert_eq!(told(&mut server, report(true, "very wet", good, true)), [event("very wet", true, good)]);
    let last = |server: &Server| server.space.condition(&alarm(1)).unwrap().event_id;
    let before = last(&server);
    let same = report(true, "very wet", good, false);
    server.space.report_condition(&alarm(1), same, server.now.utc).unwrap();
    assert_eq!(last(&server), before);
    assert_eq!(told(&mut server, report(true, "very wet", lost, false)), [event("very wet", true, lost)]);
    assert_eq!(told(&mut server, report(false, "dry", good, false)), [event("dry", false, good)]);
    let unknown = server.space.report_condition(&alarm(2), report(true, "", good, false), server.now.utc);
    assert!(unknown.is_err());
}
