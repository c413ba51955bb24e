use super::*;
use crate::config::GroupSecurity;
use crate::publisher_id::PublisherId;
use crate::security::{SecurityError, SecurityKeys};
use crate::time::Now;
use crate::transmit::Transmit;
use crate::uadp::SecurityMode;
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubSecurityPolicy, SeededEntropy};
use taktwerk_crypto_dummy::DummyPubSubProvider;
use taktwerk_types::{Instant, StatusCode, UtcTime, Variant};

mod forms;

const TARGET: ActionTarget = ActionTarget { data_set_writer_id: 5, action_target_id: 2 };
const RESPONDER: PublisherId = PublisherId::UInt16(7);

fn at(millis: u64) -> Now {
    Now { instant: Instant::from_nanos(millis * 1_000_000), utc: UtcTime::from_ticks(millis as i64) }
}

fn security(mode: SecurityMode) -> GroupSecurity {
    GroupSecurity { mode, security_group_id: "g".into(), ..GroupSecurity::default() }
}

fn keys() -> SecurityKeys {
    SecurityKeys {
        security_policy_uri: PubSubSecurityPolicy::Aes128Ctr.uri().into(),
        first_token_id: 1,
        keys: vec![vec![1; 52]; 2],
        time_to_next_key: 1e9,
        key_lifetime: 1e9,
        current_token_id: None,
        nonces: None,
    }
}

fn both(mode: SecurityMode, seed: u64) -> (Requestor, Responder) {
    let provider = Arc::new(DummyPubSubProvider);
    let entropy = |number: u64| Box::new(SeededEntropy::new(seed * 10 + number));
    let mut options = RequestorOptions::new(PublisherId::UInt16(9), security(mode));
    options.allow_unsecured = true;
    options.response_address = Some("opc.udp://10.0.0.9:4840".into());
    let mut requestor = Requestor::new(options, provider.clone(), entropy(1)).unwrap();
    let mut options = ResponderOptions::new(RESPONDER, security(mode));
    options.allow_unsecured = true;
    let mut responder = Responder::new(options, [TARGET], provider, entropy(2)).unwrap();
    if mode != SecurityMode::None {
        requestor.set_keys("g", Ok(&keys()), at(0)).unwrap();
        responder.set_keys("g", Ok(&keys()), at(0)).unwrap();
    }
    (requestor, responder)
}

fn request(target: ActionTarget, number: u32) -> Request {
    Request {
        connection: 0,
        responder: RESPONDER,
        data_set_writer_id: target.data_set_writer_id,
        action_target_id: target.action_target_id,
        inputs: vec![number.into()],
        timeout_nanos: 5_000_000_000,
    }
}

fn sent(out: &mut Transmit) -> Vec<Vec<u8>> {
    let all = out.iter().map(|datagram| datagram.bytes.to_vec()).collect();
    out.clear();
    all
}

#[test]
fn a_request_is_executed_and_answered() {
    for mode in [SecurityMode::None, SecurityMode::Sign, SecurityMode::SignAndEncrypt] {
        let (mut requestor, mut responder) = both(mode, 1);
        let mut out = Transmit::new();
        let id = requestor.request(request(TARGET, 20), at(0)).unwrap();
        assert_eq!(requestor.poll_timeout(), Some(at(0).instant));
        requestor.poll(at(0), &mut out).unwrap();
        let executions = responder.receive(&mut sent(&mut out)[0], at(1)).unwrap();
        let [execution] = executions.as_slice() else { panic!("{executions:?}") };
        assert_eq!(
            (execution.target, execution.inputs.as_slice()),
            (TARGET, [Variant::from(20u32)].as_slice())
        );
        // It reports Executing to the given address.
        responder.poll(at(1), &mut out).unwrap();
        assert_eq!(out.iter().next().unwrap().address, Some("opc.udp://10.0.0.9:4840"));
        let mut executing = sent(&mut out);
        // The request is repeated in every interval and not executed again.
        requestor.poll(at(100), &mut out).unwrap();
        assert_eq!(responder.receive(&mut sent(&mut out)[0], at(101)).unwrap(), []);
        // After the state Executing, the requestor stops repeating (Part 14 Table 83).
        requestor.receive(0, &mut executing[0], at(102)).unwrap();
        requestor.poll(at(1_000), &mut out).unwrap();
        assert!(out.is_empty());
        assert_eq!(requestor.poll_outcome(), None);
        assert!(responder.finish(execution.id, StatusCode::GOOD, vec!["done".into()], at(1_110)));
        assert!(!responder.finish(execution.id, StatusCode::GOOD, vec![], at(1_110)));
        responder.poll(at(1_110), &mut out).unwrap();
        requestor.receive(0, &mut sent(&mut out)[0], at(1_111)).unwrap();
        let outcome = Outcome { request_id: id, status: StatusCode::GOOD, outputs: vec!["done".into()] };
        assert_eq!(requestor.poll_outcome(), Some(outcome));
        // Both agree that it is finished.
        requestor.poll(at(1_111), &mut out).unwrap();
        assert_eq!(responder.receive(&mut sent(&mut out)[0], at(1_112)).unwrap(), []);
        responder.poll(at(1_112), &mut out).unwrap();
        requestor.receive(0, &mut sent(&mut out)[0], at(1_113)).unwrap();
        assert_eq!((requestor.poll_timeout(), requestor.poll_outcome()), (None, None));
        // After a while the responder removes it.
        responder.poll(at(62_000), &mut out).unwrap();
        assert!(responder.is_empty() && out.is_empty());
    }
}

#[test]
fn unknown_actions_and_missing_responses() {
    let (mut requestor, mut responder) = both(SecurityMode::SignAndEncrypt, 2);
    let mut out = Transmit::new();
    let other = ActionTarget { action_target_id: 99, ..TARGET };
    let unknown = requestor.request(request(other, 1), at(0)).unwrap();
    requestor.poll(at(0), &mut out).unwrap();
    assert_eq!(responder.receive(&mut sent(&mut out)[0], at(0)).unwrap(), []);
    responder.poll(at(0), &mut out).unwrap();
    requestor.receive(0, &mut sent(&mut out)[0], at(0)).unwrap();
    let outcome = requestor.poll_outcome().unwrap();
    assert_eq!((outcome.request_id, outcome.status), (unknown, StatusCode::BAD_NOT_FOUND));
    // There is no answer.
    let silent = requestor.request(request(TARGET, 1), at(1000)).unwrap();
    for millis in (1000..6100).step_by(100) {
        requestor.poll(at(millis), &mut out).unwrap();
    }
    let outcome = requestor.poll_outcome().unwrap();
    assert_eq!((outcome.request_id, outcome.status), (silent, StatusCode::BAD_TIMEOUT));
    assert_eq!(requestor.poll_timeout(), None);
}

#[test]
fn unsecured_engines_must_be_allowed() {
    let provider = Arc::new(DummyPubSubProvider);
    let entropy = || Box::new(SeededEntropy::new(1));
    let options = ResponderOptions::new(RESPONDER, GroupSecurity::default());
    assert!(matches!(
        Responder::new(options, [TARGET], provider.clone(), entropy()),
        Err(ActionError::Unsecured)
    ));
    let options = RequestorOptions::new(RESPONDER, GroupSecurity::default());
    assert!(matches!(Requestor::new(options, provider, entropy()), Err(ActionError::Unsecured)));
    // Unsecured messages are not accepted by secured engines, nor are signed ones where encryption is required.
    let (_, mut responder) = both(SecurityMode::SignAndEncrypt, 3);
    for mode in [SecurityMode::None, SecurityMode::Sign] {
        let (mut weaker, _) = both(mode, 3);
        let mut out = Transmit::new();
        weaker.request(request(TARGET, 1), at(0)).unwrap();
        weaker.poll(at(0), &mut out).unwrap();
        let refused = responder.receive(&mut sent(&mut out)[0], at(0));
        let expected = SecurityError::ModeInsufficient { actual: mode, wanted: SecurityMode::SignAndEncrypt };
        assert_eq!(refused, Err(ActionError::Security(expected)));
    }
    assert!(responder.is_empty());
}

#[test]
fn a_full_responder_refuses_and_removes_only_finished_executions() {
    let (mut requestor, _) = both(SecurityMode::None, 4);
    let mut options = ResponderOptions::new(RESPONDER, GroupSecurity::default());
    options.allow_unsecured = true;
    options.executions_max = 2;
    let entropy = Box::new(SeededEntropy::new(4));
    let mut responder = Responder::new(options, [TARGET], Arc::new(DummyPubSubProvider), entropy).unwrap();
    let mut out = Transmit::new();
    let mut ask = |requestor: &mut Requestor, millis| {
        requestor.request(request(TARGET, 0), at(millis)).unwrap();
        requestor.poll(at(millis), &mut out).unwrap();
        sent(&mut out).pop().unwrap()
    };
    let first = responder.receive(&mut ask(&mut requestor, 0), at(0)).unwrap().remove(0);
    responder.receive(&mut ask(&mut requestor, 1), at(1)).unwrap();
    let third = ask(&mut requestor, 2);
    let refused = responder.receive(&mut third.clone(), at(2));
    assert_eq!(refused, Err(ActionError::TooManyRequests(2)));
    // A finished execution makes space.
    assert!(responder.finish(first.id, StatusCode::GOOD, Vec::new(), at(3)));
    let mut none = Transmit::new();
    responder.poll(at(10_003), &mut none).unwrap();
    assert_eq!(responder.receive(&mut third.clone(), at(10_004)).unwrap().len(), 1);
    assert_eq!(responder.len(), 2);
}

/// A responder with changed settings, or one that was restarted: nothing is executed twice, and running executions are
/// answered.
#[test]
fn a_successor_continues_from_a_retired_responder() {
    let mode = SecurityMode::SignAndEncrypt;
    let (mut requestor, mut first) = both(mode, 5);
    let mut out = Transmit::new();
    requestor.request(request(TARGET, 20), at(0)).unwrap();
    requestor.poll(at(0), &mut out).unwrap();
    let recorded = sent(&mut out).remove(0);
    let execution = first.receive(&mut recorded.clone(), at(1)).unwrap().remove(0);
    let memory = first.retire();
    assert_eq!((memory.len(), first.len()), (1, 0));
    requestor.poll(at(100), &mut out).unwrap();
    let repeated = sent(&mut out).remove(0);
    assert_eq!(first.receive(&mut repeated.clone(), at(101)), Ok(Vec::new()), "the responder was replaced");
    let (_, mut second) = both(mode, 6);
    second.succeed(memory);
    second.set_keys("g", Ok(&keys()), at(102)).unwrap();
    assert_eq!(second.receive(&mut repeated.clone(), at(103)), Ok(Vec::new()), "it executes already");
    let replayed = second.receive(&mut recorded.clone(), at(104));
    assert_eq!(replayed, Err(ActionError::Security(SecurityError::Replayed)));
    // Its result is accepted with its old id.
    assert!(second.finish(execution.id, StatusCode::GOOD, vec!["done".into()], at(105)));
    second.poll(at(105), &mut out).unwrap();
    requestor.receive(0, &mut sent(&mut out)[0], at(106)).unwrap();
    assert_eq!(requestor.poll_outcome().map(|one| one.outputs), Some(vec!["done".into()]));
    requestor.request(request(TARGET, 21), at(200)).unwrap();
    requestor.poll(at(200), &mut out).unwrap();
    let fresh: Vec<_> =
        sent(&mut out).iter_mut().flat_map(|datagram| second.receive(datagram, at(201)).unwrap()).collect();
    assert_eq!(fresh.len(), 1);
    assert_ne!(fresh[0].id, execution.id);
}

/// Loss, repetition and reordering: every request gets its result, and nothing is executed twice.
#[test]
fn on_a_bad_link() {
    for seed in 0..20 {
        let (mut requestor, mut responder) = both(SecurityMode::SignAndEncrypt, 100 + seed);
        let mut random = SeededEntropy::new(seed);
        let mut wire: Vec<(u64, bool, Vec<u8>)> = Vec::new();
        let (mut asked, mut executed, mut good) = (0u32, Vec::new(), 0);
        let mut running: Vec<(u64, Execution)> = Vec::new();
        let mut out = Transmit::new();
        for millis in 0..20_000u64 {
            let now = at(millis);
            if millis % 500 == 0 && asked < 20 {
                requestor.request(request(TARGET, asked), now).unwrap();
                asked += 1;
            }
            for is_request in [true, false] {
                let result =
                    if is_request { requestor.poll(now, &mut out) } else { responder.poll(now, &mut out) };
                result.unwrap();
                for datagram in sent(&mut out) {
                    let copies = match random.below(10) {
                        0..4 => 0,
                        4 => 2,
                        _ => 1,
                    };
                    for _ in 0..copies {
                        wire.push((millis + 1 + random.below(300), is_request, datagram.clone()));
                    }
                }
            }
            let (due, left): (Vec<_>, Vec<_>) = wire.drain(..).partition(|(when, ..)| *when <= millis);
            wire = left;
            for (_, is_request, mut datagram) in due {
                if is_request {
                    for execution in responder.receive(&mut datagram, now).unwrap_or_default() {
                        executed.push(execution.inputs.clone());
                        running.push((millis + random.below(800), execution));
                    }
                } else {
                    let _ = requestor.receive(0, &mut datagram, now);
                }
            }
            let (due, left): (Vec<_>, Vec<_>) = running.drain(..).partition(|(when, _)| *when <= millis);
            running = left;
            for (_, execution) in due {
                responder.finish(execution.id, StatusCode::GOOD, execution.inputs, now);
            }
            while let Some(outcome) = requestor.poll_outcome() {
                assert_eq!(outcome.status, StatusCode::GOOD, "seed {seed}");
                assert_eq!(outcome.outputs, [Variant::from(u32::from(outcome.request_id) - 1)]);
                good += 1;
            }
        }
        assert_eq!((asked, good, executed.len()), (20, 20, 20), "seed {seed}");
        let mut executed: Vec<String> = executed.iter().map(|inputs| format!("{inputs:?}")).collect();
        executed.sort();
        executed.dedup();
        assert_eq!(executed.len(), 20, "seed {seed}: something was executed twice");
    }
}

/// Announcements of a responder, requested and unrequested, only for receivers with its keys.
#[test]
fn actions_are_described_only_to_key_holders() {
    use crate::config::{Connection, DataSetWriter, WriterGroup};
    use crate::uadp::announcement::Announcement;
    use taktwerk_schema::{ActionTargetDataType, DataSetMetaDataType};
    for mode in [SecurityMode::None, SecurityMode::SignAndEncrypt] {
        let (mut requestor, mut responder) = both(mode, 7);
        let (mut outsider, _) = both(SecurityMode::None, 8);
        let name = "open the valve of the boiler";
        let meta_data = DataSetMetaDataType { name: name.into(), ..Default::default() };
        let description = ActionDescription {
            data_set_writer_id: TARGET.data_set_writer_id,
            targets: vec![ActionTargetDataType {
                action_target_id: 2,
                name: "boiler 7".into(),
                ..Default::default()
            }],
            request: meta_data.clone(),
            response: meta_data,
            methods: Vec::new(),
        };
        let mut connection = Connection::new("actions", Some(RESPONDER), "opc.udp://239.0.0.1:4840");
        let mut group = WriterGroup::dynamic("group", 1, 100.0);
        group.writers.push(DataSetWriter::dynamic("valves", TARGET.data_set_writer_id, ""));
        group.writers.push(DataSetWriter::dynamic("other", 77, "data"));
        connection.writer_groups.push(group);
        responder.describe(connection, vec![description.clone()], at(0)).unwrap();
        let mut out = Transmit::new();
        responder.poll(at(0), &mut out).unwrap();
        assert!(out.is_empty(), "nothing is announced without a request");
        responder.announce(at(0));
        assert_eq!(responder.poll_timeout(), Some(at(0).instant));
        responder.poll(at(0), &mut out).unwrap();
        let check = |requestor: &mut Requestor, told: Vec<Vec<u8>>, millis| {
            assert_eq!(told.len(), 2);
            for mut datagram in told {
                assert_eq!(String::from_utf8_lossy(&datagram).contains("valve"), mode == SecurityMode::None);
                requestor.receive(0, &mut datagram, at(millis)).unwrap();
            }
            let mut all: Vec<_> = core::iter::from_fn(|| requestor.poll_announcement()).collect();
            all.sort_by_key(|(_, one)| matches!(one, Announcement::ActionResponder(_)));
            let [(from, meta_data), (_, Announcement::ActionResponder(connections))] = all.as_slice() else {
                panic!("{all:?}")
            };
            assert_eq!(
                (from, ActionDescription::from_announcement(meta_data)),
                (&RESPONDER, Some(description.clone()))
            );
            let [connection] = connections.as_slice() else { panic!("{connections:?}") };
            let writers = &connection.writer_groups[0].data_set_writers;
            assert_eq!(writers.len(), 1, "those of Actions only");
            assert_eq!(writers[0].data_set_writer_id, TARGET.data_set_writer_id);
        };
        check(&mut requestor, sent(&mut out), 1);
        // Requested and secured; answered once, however often it is requested.
        requestor.discover(0, &RESPONDER, at(600));
        for millis in (600..1_101).step_by(10) {
            requestor.poll(at(millis), &mut out).unwrap();
        }
        let probes = sent(&mut out);
        assert_eq!(probes.len(), 2);
        for mut probe in probes.iter().chain(&probes).cloned() {
            let _ = responder.receive(&mut probe, at(1_101));
        }
        responder.poll(at(1_101), &mut out).unwrap();
        let answers = sent(&mut out);
        for mut datagram in answers.clone() {
            // Without keys it cannot be read.
            let refused = outsider.receive(0, &mut datagram, at(1_102));
            assert_eq!(refused.is_err(), mode != SecurityMode::None);
        }
        check(&mut requestor, answers, 1_102);
        assert_eq!(requestor.poll_timeout(), None, "it has its answers");
        // A probe for another responder is not answered.
        requestor.discover(0, &PublisherId::UInt16(8), at(2_000));
        for millis in (2_000..2_501).step_by(10) {
            requestor.poll(at(millis), &mut out).unwrap();
        }
        for mut probe in sent(&mut out) {
            responder.receive(&mut probe, at(2_501)).unwrap();
        }
        responder.poll(at(2_502), &mut out).unwrap();
        assert!(out.is_empty());
    }
}
