//! Reconfiguration of running publishers and subscribers: unchanged parts continue without a gap.

use crate::common;
use crate::common::{Got, at, configuration, data_set, keys, publisher, subscriber, values};
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::reserve::Reservations;
use taktwerk_pubsub::config::update::{Context, update};
use taktwerk_pubsub::config::version::touch;
use taktwerk_pubsub::config::{Configuration, DataSetWriter, WriterGroup, validate};
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::{GroupIndex, PublisherEvent, PublisherId, ReaderIndex, SubscriberEvent, Transmit};
use taktwerk_schema::{PubSubConfigurationRefDataType, PubSubConfigurationRefMask as Mask};
use taktwerk_types::{BuiltInType, DataValue, NodeId, StatusCode};

const GROUP: GroupIndex = GroupIndex { connection: 0, group: 0 };

fn start() -> (Configuration, taktwerk_pubsub::Publisher, taktwerk_pubsub::Subscriber, Got) {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.security.mode = SecurityMode::SignAndEncrypt;
    group.security.security_group_id = "group".into();
    let configuration = configuration(group, 2, DataSetWriter::dynamic);
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut sending = publisher(configuration.clone());
    let mut got = Got::default();
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    sending.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
    receiving.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
    (configuration, sending, receiving, got)
}

/// Runs cycles in a time range, without loss.
fn run(
    sending: &mut taktwerk_pubsub::Publisher,
    receiving: &mut taktwerk_pubsub::Subscriber,
    got: &mut Got,
    from: u64,
    to: u64,
) {
    let mut out = Transmit::new();
    let mut fill = |set: usize, fields: &mut [DataValue]| {
        values(7)(set, fields);
        if let Some(extra) = fields.get_mut(3) {
            *extra = DataValue::new(42i32);
        }
    };
    for millis in from..to {
        let now = at(millis);
        out.clear();
        sending.poll(now, &mut fill, &mut out);
        for datagram in out.iter() {
            receiving.receive(datagram.connection, &mut datagram.bytes.to_vec(), now, got);
        }
    }
}

fn numbers(got: &Got, reader: usize) -> Vec<u32> {
    let of = got.messages.iter().filter(|message| message.reader.reader == reader);
    of.map(|message| message.sequence_number.unwrap()).collect()
}

#[test]
fn unchanged_groups_continue_without_a_gap() {
    let (old, mut sending, mut receiving, mut got) = start();
    run(&mut sending, &mut receiving, &mut got, 0, 50);
    let cycles = sending.counters(GROUP).cycles;
    assert_eq!((got.messages.len(), cycles), (10, 5));
    // Another connection before it and another data set before its own: all positions change.
    let mut new = old.clone();
    let mut other = common::connection();
    other.name = "other".into();
    let mut group = WriterGroup::dynamic("slow", 9, 20.0);
    group.writers.push(DataSetWriter::dynamic("w", 77, "new"));
    other.writer_groups.push(group);
    new.connections.insert(0, other);
    new.data_sets.insert(0, data_set("new"));
    sending.reconfigure(new.clone(), at(50)).unwrap();
    let mut readers = Configuration::subscriber_of(&new);
    readers.connections[0].reader_groups.clear();
    receiving.reconfigure(readers, at(50), &mut got).unwrap();
    let moved = GroupIndex { connection: 1, group: 0 };
    let events: Vec<_> = std::iter::from_fn(|| sending.poll_event()).collect();
    let operational =
        |group| PublisherEvent::GroupState { group, state: PubSubState::OPERATIONAL, reason: None };
    assert!(events.contains(&operational(moved)) && events.contains(&operational(GROUP)), "{events:?}");
    got.messages.clear();
    got.events.clear();
    run(&mut sending, &mut receiving, &mut got, 50, 100);
    assert_eq!(sending.counters(moved).cycles, cycles + 5);
    assert_eq!(sending.counters(GROUP).cycles, 3, "at once, and every 20 ms");
    assert!(got.messages.iter().all(|message| message.missing == 0 && message.reader.connection == 1));
    assert_eq!((numbers(&got, 0), numbers(&got, 1)), (vec![6, 7, 8, 9, 10], vec![6, 7, 8, 9, 10]));
    let dropped = got.events.iter().any(|event| matches!(event, SubscriberEvent::Dropped { .. }));
    assert!(!dropped, "{:?}", got.events);
    // An invalid configuration changes nothing.
    let mut broken = new.clone();
    broken.connections[1].writer_groups[0].publishing_interval = -1.0;
    assert!(sending.reconfigure(broken, at(100)).is_err());
    assert_eq!(**sending.configuration(), new);
    // The connection is removed with its group.
    sending.reconfigure(old, at(100)).unwrap();
    assert_eq!(sending.groups().collect::<Vec<_>>(), [GROUP]);
    assert_eq!(sending.counters(GROUP).cycles, cycles + 5);
}

#[test]
fn a_group_that_changes_keeps_its_numbers_and_announces_its_metadata() {
    let (old, mut sending, mut receiving, mut got) = start();
    run(&mut sending, &mut receiving, &mut got, 0, 50);
    let mut new = old.clone();
    let group = &mut new.connections[0].writer_groups[0];
    group.publishing_interval = 5.0;
    group.writers[1].enabled = false;
    let meta_data = &mut new.data_sets[0].meta_data;
    meta_data.fields.push(field("extra", BuiltInType::Int32));
    meta_data.configuration_version.minor_version = 500;
    sending.reconfigure(new, at(50)).unwrap();
    assert_eq!(sending.poll_key_request(at(50)), None, "it has its keys");
    got.messages.clear();
    run(&mut sending, &mut receiving, &mut got, 50, 75);
    // Every 5 ms now, with continued numbers, keys and nonces; the disabled writer sends nothing.
    assert_eq!(numbers(&got, 0), [6, 7, 8, 9, 10]);
    assert_eq!(numbers(&got, 1), []);
    assert!(got.messages.iter().all(|message| message.fields.len() == 4));
    let announced = got.events.iter().any(|event| matches!(event, SubscriberEvent::Announcement { .. }));
    assert!(announced, "{:?}", got.events);
    // Enabled again without another configuration.
    got.messages.clear();
    sending.set_writer_enabled(GROUP, 1, true);
    run(&mut sending, &mut receiving, &mut got, 75, 80);
    assert_eq!(numbers(&got, 1), [6]);
    // The whole configuration is disabled.
    let state = sending.state(GROUP);
    sending.reconfigure(Configuration { enabled: false, ..old }, at(80)).unwrap();
    assert_eq!((state, sending.state(GROUP)), (PubSubState::OPERATIONAL, PubSubState::DISABLED));
}

#[test]
fn unchanged_readers_continue_and_others_restart() {
    let (old, mut sending, mut receiving, mut got) = start();
    run(&mut sending, &mut receiving, &mut got, 0, 50);
    let mut new = Configuration::subscriber_of(&old);
    new.connections[0].reader_groups[0].readers.swap(0, 1);
    new.connections[0].reader_groups[0].readers[0].message_receive_timeout = 70.0;
    got.events.clear();
    receiving.reconfigure(new, at(50), &mut got).unwrap();
    let index = |reader| ReaderIndex { connection: 0, group: 0, reader };
    let states: Vec<_> = got
        .events
        .iter()
        .filter_map(|event| match event {
            SubscriberEvent::State { reader, state } => Some((*reader, *state)),
            _ => None,
        })
        .collect();
    let expected = [(index(0), PubSubState::PRE_OPERATIONAL), (index(1), PubSubState::OPERATIONAL)];
    assert_eq!(states, expected);
    got.messages.clear();
    run(&mut sending, &mut receiving, &mut got, 50, 60);
    let of = |reader| got.messages.iter().find(|message| message.reader == index(reader)).unwrap();
    assert_eq!(
        (of(0).fields[1].value.value.clone(), of(1).fields[1].value.value.clone()),
        (Some("s1".into()), Some("s0".into()))
    );
    assert_eq!(of(1).missing, 0);
    receiving.reconfigure(Configuration::default(), at(60), &mut got).unwrap();
    assert_eq!(receiving.readers().count(), 0);
}

/// Whatever a client requests: the result is valid, and running engines accept it.
#[test]
fn any_update_leaves_a_configuration_that_runs() {
    let mut written =
        configuration(WriterGroup::periodic_fixed("", 0, 20.0), 2, DataSetWriter::periodic_fixed);
    written.connections[0].name.clear();
    written.connections[0].publisher_id = None;
    written.connections[0].writer_groups[0].writers[1].data_set_name = "nowhere".into();
    let mut readers = Configuration::subscriber_of(&start().0).connections.remove(0);
    readers.name = "udp".into();
    readers.reader_groups.push(readers.reader_groups[0].clone());
    written.connections.push(readers);
    written.connections.push(start().0.connections.remove(0));
    let (mut changed, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut random = SeededEntropy::new(seed);
        let (mut current, mut sending, mut receiving, mut got) = start();
        for round in 0..4 {
            let references: Vec<_> = (0..1 + random.below(8))
                .map(|_| {
                    let (operation, element) = (1 << random.below(4), 1 << (4 + random.below(9)));
                    // Sometimes random bits.
                    let noise = if random.below(20) == 0 { random.below(1 << 13) as u32 } else { 0 };
                    PubSubConfigurationRefDataType {
                        configuration_mask: Mask(operation | element | noise),
                        element_index: random.below(3) as u16,
                        connection_index: random.below(4) as u16,
                        group_index: random.below(2) as u16,
                    }
                })
                .collect();
            let context = Context {
                session: &NodeId::numeric(1, 1),
                reservations: &Reservations::default(),
                default_publisher_id: &|_| PublisherId::UInt64(77),
                permits_security: random.below(2) == 0,
            };
            let complete = random.below(4) == 0;
            let update = update(&current, &written, &references, complete, &context);
            assert_eq!((update.results.len(), update.elements.len()), (references.len(), references.len()));
            let is_bad = |status: &StatusCode| status.is_bad();
            if complete && update.results.iter().any(is_bad) {
                assert_eq!(update.configuration, current);
            }
            refused += update.results.iter().filter(|status| is_bad(status)).count();
            changed += usize::from(update.configuration != current);
            let mut new = update.configuration;
            touch(&current, &mut new, 100 + round);
            assert_eq!(validate(&new), [], "{references:?}");
            let now = at(u64::from(round) * 40);
            sending.reconfigure(new.clone(), now).unwrap();
            receiving.reconfigure(new.clone(), now, &mut got).unwrap();
            current = new;
            run(&mut sending, &mut receiving, &mut got, u64::from(round) * 40, u64::from(round) * 40 + 40);
        }
    }
    assert!(changed > 60 && refused > 500, "{changed} changes, {refused} refusals");
}
