//! Adding conditions: by several threads, with own dates, with other parents and permissions.

use super::alarms::{alarm, events, level, watching_fields};
use super::attribute::{add, variable};
use super::*;
use crate::alarm::{Certified, ConditionSpec, Kind};
use crate::authorization::Access;
use crate::space::AlarmError;
use schema::PermissionType;
use schema::ids::{object_ids, object_type_ids};
use std::sync::mpsc;
use taktwerk_types::{BuiltInType, ByteString, QualifiedName, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const GROUP: NodeId = NodeId::numeric(0, 14_156);

/// Both threads must pass the first check while the nodes are locked.
#[test]
fn adding_the_same_hidden_condition_concurrently_succeeds_once() {
    let server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 20.0));
    let (sender, results) = mpsc::channel();
    let nodes = server.space.write();
    let threads = [1, 2].map(|_| {
        let (space, sender, now) = (Arc::clone(&server.space), sender.clone(), server.now.utc);
        let mut spec = level(1);
        spec.is_shown = false;
        let add = move || sender.send(space.add_condition(spec, now)).unwrap();
        std::thread::Builder::new().spawn(add).unwrap()
    });
    let first = results.recv_timeout(Duration::from_secs(60));
    let first = first.expect("one fails before it needs the nodes");
    assert!(matches!(first, Err(AlarmError::Taken(id)) if id == alarm(1)));
    drop(nodes);
    results.recv().unwrap().expect("the other one is added");
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(server.space.alarms().unwrap().len(), 1);
    let mut again = level(1);
    again.is_shown = false;
    assert!(matches!(server.space.add_condition(again, server.now.utc), Err(AlarmError::Taken(_))));
}

/// A failure for another reason frees the id.
#[test]
fn an_id_is_free_again_when_the_condition_is_refused() {
    let server = Server::new();
    let refused = server.space.add_condition(level(1), server.now.utc);
    assert!(matches!(refused, Err(AlarmError::Node(_))), "there is no Variable");
    add(&server, variable(1, BuiltInType::Double, 20.0));
    server.space.add_condition(level(1), server.now.utc).unwrap();
}

fn certified(kind: u32, byte: u8) -> Option<Certified> {
    Some(Certified { kind: NodeId::numeric(0, kind), certificate: ByteString::from(vec![byte]) })
}

#[test]
fn a_certificate_that_is_replaced_ends_its_alarm() {
    let mut server = Server::new();
    let start = server.now.utc;
    let later = |millis: i64| UtcTime::from_ticks(start.ticks() + millis * 10_000);
    let id = NodeId::string(1, "CertificateExpired");
    let spec = ConditionSpec {
        date: Some(later(10_000)),
        certified: certified(object_type_ids::RSA_SHA256_APPLICATION_CERTIFICATE_TYPE, 1),
        parent: Some(GROUP),
        browse_name: Some(QualifiedName::new(0, "CertificateExpired")),
        ..ConditionSpec::new(id.clone(), "CertificateExpired", SERVER, Kind::Expiration { limit: 4_000.0 })
    };
    let fields = ["ActiveState/Id", "ExpirationDate", "CertificateType", "Certificate", "Message"];
    let mut client = watching_fields(&mut server, &fields);
    server.space.add_condition(spec, start).unwrap();
    assert_eq!(server.space.child(&GROUP, &QualifiedName::new(0, "CertificateExpired")), Some(id.clone()));
    assert!(events(&mut client, &mut server).is_empty());
    // Nothing is written, and no Variable is monitored.
    assert!(!server.space.alarms().unwrap().watches_variables());
    assert_eq!(server.space.poll_alarms(start), Some(later(6_000)));
    server.space.poll_alarms(later(6_000));
    let told = events(&mut client, &mut server).remove(0);
    let kind: Variant = NodeId::numeric(0, object_type_ids::RSA_SHA256_APPLICATION_CERTIFICATE_TYPE).into();
    assert_eq!(told[..3], [true.into(), later(10_000).into(), kind]);
    assert_eq!(told[3], ByteString::from(vec![1]).into());
    assert!(told[4].to_string().contains("the certificate expires at"), "{}", told[4]);
    // §5.8.24.7: it returns to normal when the certificate is updated.
    let new = certified(object_type_ids::ECC_NIST_P256_APPLICATION_CERTIFICATE_TYPE, 2);
    server.space.set_condition_date(&id, later(90_000), new, later(7_000)).unwrap();
    let told = events(&mut client, &mut server).remove(0);
    assert_eq!(told[..2], [false.into(), later(90_000).into()]);
    assert_eq!(told[3], ByteString::from(vec![2]).into());
    // A certificate replaced in time is updated without an event.
    server.space.set_condition_date(&id, later(99_000), None, later(8_000)).unwrap();
    assert!(events(&mut client, &mut server).is_empty());
    let shown = server.space.child(&id, &QualifiedName::new(0, "ExpirationDate")).unwrap();
    assert_eq!(server.space.variable(&shown).unwrap().get().value, Some(later(99_000).into()));
    assert_eq!(server.space.poll_alarms(later(8_000)), Some(later(95_000)));
    let unknown = server.space.set_condition_date(&SERVER, start, None, start);
    assert_eq!(unknown, Err(StatusCode::BAD_NODE_ID_UNKNOWN));
}

/// A condition that has already expired at start is found by reading, without an event.
#[test]
fn a_past_date_is_an_active_alarm_at_once() {
    let server = Server::new();
    let id = NodeId::string(1, "Old");
    let spec = ConditionSpec {
        date: Some(UtcTime::from_ticks(server.now.utc.ticks() - 1)),
        access: Access::roles(Vec::<(NodeId, PermissionType)>::new()),
        ..ConditionSpec::new(id.clone(), "Old", SERVER, Kind::Expiration { limit: 0.0 })
    };
    server.space.add_condition(spec, server.now.utc).unwrap();
    let view = server.space.condition(&id).unwrap();
    assert!(view.state.active && view.event_id != ByteString::default());
    // Its nodes have its permissions.
    let nodes = server.space.read();
    let none = Access::roles(Vec::<(NodeId, PermissionType)>::new());
    for path in ["", "ActiveState", "Acknowledge"] {
        let id = if path.is_empty() {
            nodes.find(&id).unwrap()
        } else {
            nodes.child(nodes.find(&id).unwrap(), &QualifiedName::new(0, path)).unwrap()
        };
        assert_eq!(nodes.access().own(nodes.access_set(id)), Some(&none), "{path}");
    }
}
