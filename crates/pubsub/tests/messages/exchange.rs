//! A publisher and a subscriber derived from its configuration understand each other, in every layout.

use crate::common::{Got, at, configuration, keys, publisher, subscriber, values};
use taktwerk_pubsub::config::{
    Configuration, DataSetWriter, DataSetWriterMessage, WriterGroup, WriterGroupMessage,
};
use taktwerk_pubsub::security::SecurityError;
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::subscriber::Drop;
use taktwerk_pubsub::uadp::announcement::{Announcement, NumberedAnnouncement};
use taktwerk_pubsub::uadp::header::NetworkMessageHeader;
use taktwerk_pubsub::uadp::probe::Probe;
use taktwerk_pubsub::uadp::{DataSetMessageKind, NetworkMessageType, SecurityMode};
use taktwerk_pubsub::{
    DatagramKind, GroupIndex, PublisherEvent, PublisherIdRef, SubscriberEvent, Transmit, Values,
};
use taktwerk_schema::{
    DataSetFieldContentMask, DataSetOrderingType, UadpDataSetMessageContentMask,
    UadpNetworkMessageContentMask,
};
use taktwerk_types::{DataValue, Decoder, Encode, StatusCode, Variant};

const GROUP: GroupIndex = GroupIndex { connection: 0, group: 0 };

/// Runs one cycle and returns the datagrams.
fn cycle(
    publisher: &mut taktwerk_pubsub::Publisher,
    now: taktwerk_pubsub::Now,
    source: &mut dyn Values,
) -> Vec<Vec<u8>> {
    let mut out = Transmit::new();
    publisher.poll(now, source, &mut out);
    out.iter().map(|datagram| datagram.bytes.to_vec()).collect()
}

fn check(configuration: Configuration, expected: usize) -> usize {
    let mut subscriber = subscriber(Configuration::subscriber_of(&configuration));
    let writers = configuration.connections[0].writer_groups[0].writers.len();
    let secured = configuration.connections[0].writer_groups[0].security.mode != SecurityMode::None;
    let mut publisher = publisher(configuration);
    let mut got = Got::default();
    publisher.start(at(0).instant, at(0));
    subscriber.start(at(0), &mut got);
    if secured {
        let request = publisher.poll_key_request(at(0)).unwrap();
        assert_eq!(request.security_group_id, "group");
        publisher.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
        subscriber.poll_key_request(at(0)).unwrap();
        subscriber.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
    }
    let mut datagrams = 0;
    for count in 0..5u16 {
        let now = at(u64::from(count) * 10);
        assert_eq!(publisher.poll_timeout(), Some(now.instant));
        let sent = cycle(&mut publisher, now, &mut values(count));
        assert_eq!(sent.len(), expected);
        datagrams += sent.len();
        got.messages.clear();
        for mut datagram in sent {
            subscriber.receive(0, &mut datagram, now, &mut got);
        }
        assert_eq!(got.messages.len(), writers, "{:?}", got.events);
        for (index, message) in got.messages.iter().enumerate() {
            assert_eq!((message.reader.reader, message.kind), (index, DataSetMessageKind::KeyFrame));
            let fields: Vec<_> =
                message.fields.iter().map(|field| field.value.value.clone().unwrap()).collect();
            let expected: [Variant; 3] =
                [(f32::from(count) + 0.5).into(), format!("s{index}").into(), (count + index as u16).into()];
            assert_eq!(fields, expected);
            assert_eq!(message.missing, 0);
        }
    }
    let counters = subscriber.counters();
    assert_eq!((counters.malformed, counters.security_errors, counters.unwanted), (0, 0, 0));
    let of_group: Vec<_> = subscriber.group_counters().map(|(_, counters)| counters).collect();
    assert_eq!(of_group.len(), 1);
    let of_group = of_group[0];
    // A message for several readers counts once.
    assert_eq!((of_group.network_messages, of_group.malformed), (counters.network_messages, 0));
    subscriber.receive(0, &mut [0xf1, 1], at(60), &mut got);
    let of_group = subscriber.group_counters().next().unwrap().1;
    assert_eq!((of_group.malformed, of_group.security_errors), (1, 0));
    let states = got
        .events
        .iter()
        .filter(|event| matches!(event, SubscriberEvent::State { state: PubSubState::OPERATIONAL, .. }));
    assert_eq!(states.count(), writers);
    // After the first layout, values are only patched: no size changes here.
    assert_eq!(publisher.counters(GROUP).layouts, writers as u64);
    datagrams
}

#[test]
fn dynamic_layout() {
    check(configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic), 1);
    check(configuration(WriterGroup::dynamic("g", 1, 10.0), 3, DataSetWriter::dynamic), 1);
}

#[test]
fn periodic_fixed_layout() {
    check(configuration(WriterGroup::periodic_fixed("g", 1, 10.0), 1, DataSetWriter::periodic_fixed), 1);
    check(configuration(WriterGroup::periodic_fixed("g", 1, 10.0), 4, DataSetWriter::periodic_fixed), 1);
}

#[test]
fn secured_layouts() {
    for mode in [SecurityMode::Sign, SecurityMode::SignAndEncrypt] {
        let mut dynamic = WriterGroup::dynamic("g", 1, 10.0);
        dynamic.security.mode = mode;
        dynamic.security.security_group_id = "group".into();
        let mut fixed = WriterGroup::periodic_fixed("g", 1, 10.0);
        fixed.security = dynamic.security.clone();
        check(configuration(dynamic, 3, DataSetWriter::dynamic), 1);
        check(configuration(fixed, 3, DataSetWriter::periodic_fixed), 1);
    }
}

/// Every combination of the bits of both content masks and of the field encodings.
#[test]
fn every_header_combination() {
    let mut combinations = 0;
    for network_bits in 0..(1u32 << 11) {
        let network = UadpNetworkMessageContentMask(network_bits);
        let has = |bit| network.contains(bit);
        let group_bits = UadpNetworkMessageContentMask::WRITER_GROUP_ID
            | UadpNetworkMessageContentMask::GROUP_VERSION
            | UadpNetworkMessageContentMask::NETWORK_MESSAGE_NUMBER
            | UadpNetworkMessageContentMask::SEQUENCE_NUMBER;
        let invalid = (network.intersects(group_bits) && !has(UadpNetworkMessageContentMask::GROUP_HEADER))
            || (has(UadpNetworkMessageContentMask::PICO_SECONDS)
                && !has(UadpNetworkMessageContentMask::TIMESTAMP));
        if invalid {
            continue;
        }
        // The other masks rotate, so that each is combined with many of these.
        let message = UadpDataSetMessageContentMask(combinations % 64);
        let fields = match combinations % 3 {
            0 => DataSetFieldContentMask::EMPTY,
            1 => DataSetFieldContentMask::RAW_DATA,
            _ => DataSetFieldContentMask::STATUS_CODE | DataSetFieldContentMask::SOURCE_TIMESTAMP,
        };
        combinations += 1;
        let mut group = WriterGroup::dynamic("g", 7, 10.0);
        group.header_layout_uri.clear();
        if let WriterGroupMessage::Uadp(uadp) = &mut group.message {
            uadp.network_message_content_mask = network;
            uadp.group_version = 5;
        }
        // Without a PayloadHeader only one message per NetworkMessage can be identified without sizes.
        let writers = if has(UadpNetworkMessageContentMask::PAYLOAD_HEADER) { 2 } else { 1 };
        let mut configuration = configuration(group, writers, DataSetWriter::dynamic);
        let promoted = has(UadpNetworkMessageContentMask::PROMOTED_FIELDS);
        for writer in &mut configuration.connections[0].writer_groups[0].writers {
            writer.field_content_mask = fields;
            if let DataSetWriterMessage::Uadp(uadp) = &mut writer.message {
                uadp.data_set_message_content_mask = message;
            }
        }
        if promoted {
            let flags = &mut configuration.data_sets[0].meta_data.fields[0].field_flags;
            *flags |= taktwerk_schema::DataSetFieldFlags::PROMOTED_FIELD;
        }
        check(configuration, if promoted { usize::from(writers) } else { 1 });
    }
    assert!(combinations > 600, "{combinations}");
}

#[test]
fn one_message_for_each_writer_and_limits_on_size() {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    if let WriterGroupMessage::Uadp(uadp) = &mut group.message {
        uadp.data_set_ordering = DataSetOrderingType::ASCENDING_WRITER_ID_SINGLE;
    }
    check(configuration(group, 3, DataSetWriter::dynamic), 3);
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.max_network_message_size = 60;
    check(configuration(group, 4, DataSetWriter::dynamic), 4);
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.max_network_message_size = 150;
    check(configuration(group, 4, DataSetWriter::dynamic), 2);
}

#[test]
fn chunks_are_split_and_reassembled() {
    for mode in [SecurityMode::None, SecurityMode::SignAndEncrypt] {
        let mut group = WriterGroup::dynamic("g", 1, 10.0);
        group.max_network_message_size = if mode == SecurityMode::None { 40 } else { 80 };
        group.security.mode = mode;
        group.security.security_group_id = "group".into();
        let configuration = configuration(group, 2, DataSetWriter::dynamic);
        let limit = configuration.connections[0].writer_groups[0].max_network_message_size as usize;
        let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
        let mut sending = publisher(configuration);
        let mut got = Got::default();
        sending.start(at(0).instant, at(0));
        receiving.start(at(0), &mut got);
        if mode != SecurityMode::None {
            sending.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
            receiving.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
        }
        let mut sent = cycle(&mut sending, at(0), &mut values(1));
        assert!(sent.len() > 3 && sent.iter().all(|datagram| datagram.len() <= limit), "{sent:?}");
        sent.reverse();
        for mut datagram in sent {
            receiving.receive(0, &mut datagram, at(0), &mut got);
        }
        assert_eq!(got.messages.len(), 2, "{:?}", got.events);
        assert_eq!(got.messages[0].fields.len(), 3);
    }
}

#[test]
fn delta_frames_keep_alives_and_loss() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic);
    configuration.connections[0].writer_groups[0].writers[0].key_frame_count = 100;
    configuration.connections[0].writer_groups[0].keep_alive_time = 30.0;
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut sending = publisher(configuration);
    let mut got = Got::default();
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    let number = std::cell::Cell::new(5u16);
    let mut source = |_: usize, fields: &mut [DataValue]| {
        fields[0] = DataValue::new(1.5f32);
        fields[1] = DataValue::new("same");
        fields[2] = DataValue::new(number.get());
    };
    let mut kinds = Vec::new();
    for tick in 0..9u64 {
        number.set(if tick < 3 { tick as u16 } else { 3 });
        for (index, mut datagram) in cycle(&mut sending, at(tick * 10), &mut source).into_iter().enumerate() {
            // The third message is lost.
            if tick != 2 {
                assert_eq!(index, 0);
                receiving.receive(0, &mut datagram, at(tick * 10), &mut got);
            }
        }
    }
    for message in &got.messages {
        kinds.push((message.kind, message.sequence_number.unwrap(), message.missing, message.fields.len()));
    }
    use DataSetMessageKind::{DeltaFrame, KeepAlive, KeyFrame};
    // The keep-alive carries the number of the next message.
    let expected = [(KeyFrame, 1, 0, 3), (DeltaFrame, 2, 0, 1), (DeltaFrame, 4, 1, 1), (KeepAlive, 5, 0, 0)];
    assert_eq!(kinds, expected);
    assert_eq!(got.messages[1].fields[0].index, 2);
    assert_eq!(receiving.counters().missing, 1);
}

#[test]
fn a_timeout_is_an_error_until_the_next_message() {
    let configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic);
    let reading = Configuration::subscriber_of(&configuration);
    assert_eq!(reading.connections[0].reader_groups[0].readers[0].message_receive_timeout, 300.0);
    let mut receiving = subscriber(reading);
    let mut sending = publisher(configuration.clone());
    let (mut got, mut out) = (Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    let index = receiving.readers().next().unwrap();
    assert_eq!(receiving.state(index), PubSubState::PRE_OPERATIONAL);
    for tick in 0..10 {
        for mut datagram in cycle(&mut sending, at(tick * 10), &mut values(1)) {
            receiving.receive(0, &mut datagram, at(tick * 10), &mut got);
        }
    }
    assert_eq!(receiving.state(index), PubSubState::OPERATIONAL);
    assert_eq!(receiving.poll_timeout(), Some(at(390).instant));
    receiving.poll(at(389), &mut got, &mut out);
    assert_eq!(receiving.state(index), PubSubState::OPERATIONAL);
    receiving.poll(at(390), &mut got, &mut out);
    assert_eq!(receiving.state(index), PubSubState::ERROR);
    // A restarted publisher begins with lower numbers: after the timeout they are accepted.
    let mut again = publisher(configuration);
    again.start(at(400).instant, at(400));
    for mut datagram in cycle(&mut again, at(400), &mut values(1)) {
        receiving.receive(0, &mut datagram, at(400), &mut got);
    }
    assert_eq!(receiving.state(index), PubSubState::OPERATIONAL);
    assert_eq!(got.messages.len(), 11);
}

fn secured(mode: SecurityMode) -> Configuration {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.security.mode = mode;
    group.security.security_group_id = "group".into();
    configuration(group, 1, DataSetWriter::dynamic)
}

#[test]
fn less_security_forged_and_replayed_messages_are_refused() {
    let wanted = Configuration::subscriber_of(&secured(SecurityMode::SignAndEncrypt));
    for (mode, first_token) in
        [(SecurityMode::None, 1), (SecurityMode::Sign, 1), (SecurityMode::SignAndEncrypt, 9)]
    {
        let mut receiving = subscriber(wanted.clone());
        let mut sending = publisher(secured(mode));
        let mut got = Got::default();
        receiving.start(at(0), &mut got);
        receiving.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
        sending.start(at(0).instant, at(0));
        if mode != SecurityMode::None {
            sending.set_keys("group", Ok(&keys(first_token, 2, 1e6, 1e6)), at(0)).unwrap();
        }
        let mut sent = cycle(&mut sending, at(0), &mut values(1));
        receiving.receive(0, &mut sent[0], at(0), &mut got);
        assert!(got.messages.is_empty());
        assert_eq!(receiving.counters().security_errors, 1, "{mode:?}");
        let of_group = receiving.group_counters().next().unwrap().1;
        assert_eq!((of_group.security_errors, of_group.network_messages), (1, 0), "{mode:?}");
        assert_eq!(receiving.reader_counters().next().unwrap().1.security_errors, 1, "{mode:?}");
    }
    let mut receiving = subscriber(wanted);
    let mut sending = publisher(secured(SecurityMode::SignAndEncrypt));
    let mut got = Got::default();
    receiving.start(at(0), &mut got);
    sending.start(at(0).instant, at(0));
    for store in [0, 1] {
        match store {
            0 => receiving.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap(),
            _ => sending.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap(),
        }
    }
    let sent = cycle(&mut sending, at(0), &mut values(1));
    // Every bit matters, and a forged message does not consume the number of the genuine one.
    for index in 0..sent[0].len() {
        let mut forged = sent[0].clone();
        forged[index] ^= 0x10;
        receiving.receive(0, &mut forged, at(0), &mut got);
        assert!(got.messages.is_empty(), "byte {index}");
    }
    receiving.receive(0, &mut sent[0].clone(), at(0), &mut got);
    assert_eq!(got.messages.len(), 1);
    receiving.receive(0, &mut sent[0].clone(), at(0), &mut got);
    assert_eq!(got.messages.len(), 1);
    assert_eq!(receiving.counters().replays, 1);
    assert!(got.events.contains(&SubscriberEvent::Dropped {
        connection: 0,
        reason: Drop::Security(SecurityError::Replayed)
    }));
}

#[test]
fn without_keys_nothing_is_sent_and_expiry_is_an_error() {
    let mut sending = publisher(secured(SecurityMode::SignAndEncrypt));
    sending.start(at(0).instant, at(0));
    assert_eq!(sending.state(GROUP), PubSubState::PRE_OPERATIONAL);
    assert!(cycle(&mut sending, at(0), &mut values(1)).is_empty());
    sending.set_keys("group", Ok(&keys(1, 2, 50.0, 50.0)), at(0)).unwrap();
    assert_eq!(sending.state(GROUP), PubSubState::OPERATIONAL);
    for tick in 0..10 {
        assert_eq!(cycle(&mut sending, at(tick * 10), &mut values(1)).len(), 1);
    }
    assert!(cycle(&mut sending, at(100), &mut values(1)).is_empty());
    assert_eq!(sending.state(GROUP), PubSubState::ERROR);
    let events: Vec<_> = std::iter::from_fn(|| sending.poll_event()).collect();
    assert!(events.contains(&PublisherEvent::GroupState {
        group: GROUP,
        state: PubSubState::ERROR,
        reason: Some(SecurityError::KeysExpired)
    }));
    sending.set_keys("group", Ok(&keys(3, 2, 50.0, 50.0)), at(105)).unwrap();
    assert_eq!(sending.state(GROUP), PubSubState::OPERATIONAL);
    assert_eq!(cycle(&mut sending, at(110), &mut values(1)).len(), 1);
}

#[test]
fn metadata_is_requested_and_announced() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic);
    let writer = &mut configuration.connections[0].writer_groups[0].writers[0];
    writer.field_content_mask = DataSetFieldContentMask::RAW_DATA;
    let mut reading = Configuration::subscriber_of(&configuration);
    reading.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let mut receiving = subscriber(reading);
    let mut sending = publisher(configuration);
    let (mut got, mut out) = (Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    let mut now = at(0);
    while out.is_empty() {
        let due = receiving.poll_timeout().unwrap();
        now = at(due.as_nanos() / 1_000_000 + 1);
        receiving.poll(now, &mut got, &mut out);
    }
    assert!(now >= at(100) && now <= at(501));
    let probes: Vec<_> = out.iter().map(|datagram| datagram.bytes.to_vec()).collect();
    assert_eq!(probes.len(), 1);
    // Repeated requests are answered once.
    for _ in 0..3 {
        sending.receive(0, &probes[0], now);
    }
    out.clear();
    sending.poll(now, &mut values(3), &mut out);
    let answers: Vec<_> = out.iter().map(|datagram| datagram.bytes.to_vec()).collect();
    // A late cycle, the current one, and one announcement.
    assert_eq!(answers.len(), 3);
    for mut answer in answers {
        receiving.receive(0, &mut answer, now, &mut got);
    }
    assert!(got.events.iter().any(|event| matches!(event, SubscriberEvent::MetaDataReceived { .. })));
    let later = at(1000);
    for mut datagram in cycle(&mut sending, later, &mut values(3)) {
        receiving.receive(0, &mut datagram, later, &mut got);
    }
    assert_eq!(got.messages.last().unwrap().fields[2].value.value, Some(3u16.into()));
    assert_eq!(got.messages.last().unwrap().status, StatusCode::GOOD);
}

/// Announcements about a secured group are secured: only key holders can read them.
#[test]
fn metadata_of_a_secured_group_is_secured() {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.security.mode = SecurityMode::SignAndEncrypt;
    group.security.security_group_id = "group".into();
    let configuration = configuration(group, 1, DataSetWriter::dynamic);
    let mut reading = Configuration::subscriber_of(&configuration);
    reading.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let mut outside = reading.clone();
    outside.connections[0].reader_groups[0].security = Default::default();
    let (mut insider, mut outsider) = (subscriber(reading), subscriber(outside));
    let mut sending = publisher(configuration);
    let (mut learned, mut overheard, mut out) = (Got::default(), Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    insider.start(at(0), &mut learned);
    outsider.start(at(0), &mut overheard);
    let probe = |header: NetworkMessageHeader<'_>, probe: &Probe| {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        probe.encode(&mut bytes);
        bytes
    };
    let header = NetworkMessageHeader {
        publisher_id: Some(PublisherIdRef::UInt16(2234)),
        message_type: NetworkMessageType::DiscoveryProbe,
        ..NetworkMessageHeader::default()
    };
    // Without keys nothing may be announced.
    let all = Probe::PubSubConnections { include_writer_groups: true, include_data_set_writers: true };
    for asked in [Probe::DataSetMetaData(vec![1]), all] {
        sending.receive(0, &probe(header, &asked), at(1));
    }
    sending.poll(at(1), &mut values(1), &mut out);
    assert_eq!(out.iter().count(), 1, "the connection without its secured group");
    let open = String::from_utf8_lossy(out.iter().next().unwrap().bytes).into_owned();
    assert!(open.contains("239.0.0.1") && !open.contains("writer1"), "{open}");
    sending.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(2)).unwrap();
    insider.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(2)).unwrap();
    out.clear();
    for millis in (0..1_000).step_by(10) {
        sending.poll(at(millis), &mut values(1), &mut out);
    }
    let told: Vec<_> = out.iter().filter(|datagram| datagram.kind != DatagramKind::Data).collect();
    for datagram in &told {
        assert!(!String::from_utf8_lossy(datagram.bytes).contains("writer1"), "names are encrypted");
        insider.receive(0, &mut datagram.bytes.to_vec(), at(1_000), &mut learned);
        outsider.receive(0, &mut datagram.bytes.to_vec(), at(1_000), &mut overheard);
    }
    let is_learned = |event: &SubscriberEvent| matches!(event, SubscriberEvent::MetaDataReceived { .. });
    assert!(learned.events.iter().any(is_learned), "{:?}", learned.events);
    assert!(!overheard.events.iter().any(is_learned));
    // A forged announcement without security is ignored.
    let forged = NumberedAnnouncement {
        sequence_number: 9,
        announcement: Announcement::DataSetMetaData {
            writer_id: 1,
            meta_data: Box::default(),
            status: StatusCode::GOOD,
        },
    };
    let mut bytes = Vec::new();
    NetworkMessageHeader { message_type: NetworkMessageType::DiscoveryAnnouncement, ..header }
        .encode(&mut bytes);
    bytes.extend(forged.encode_to_vec());
    learned.events.clear();
    insider.receive(0, &mut bytes, at(1_001), &mut learned);
    assert!(!learned.events.iter().any(is_learned));
}

/// A subscriber with keys sends secured probes, so that others do not learn what it looks for; a publisher that
/// supports only unsecured ones receives the next one.
#[test]
fn probes_about_secured_groups_are_secured() {
    let configuration = secured(SecurityMode::SignAndEncrypt);
    let mut reading = Configuration::subscriber_of(&configuration);
    reading.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let entropy = |seed| Box::new(taktwerk_crypto::SeededEntropy::new(seed));
    let mut receiving = subscriber(reading.clone()).securing_probes(entropy(5));
    let mut another = subscriber(reading).securing_probes(entropy(6));
    let mut sending = publisher(configuration);
    let (mut got, mut out) = (Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    another.start(at(0), &mut got);
    // Without keys no probe is sent: the answer could not be read.
    for millis in (0..2_000).step_by(10) {
        receiving.poll(at(millis), &mut got, &mut out);
    }
    assert!(out.is_empty());
    let group_keys = keys(1, 2, 1e6, 1e6);
    sending.set_keys("group", Ok(&group_keys), at(2_000)).unwrap();
    receiving.set_keys("group", Ok(&group_keys), at(2_000)).unwrap();
    another.set_keys("group", Ok(&group_keys), at(2_000)).unwrap();
    for millis in (2_000..4_000).step_by(10) {
        receiving.poll(at(millis), &mut got, &mut out);
    }
    let probes: Vec<_> = out.iter().map(|datagram| datagram.bytes.to_vec()).collect();
    let mode = |probe: &Vec<u8>| {
        let header = NetworkMessageHeader::decode(&mut Decoder::new(probe, Default::default())).unwrap();
        header.security.unwrap().mode
    };
    let modes: Vec<_> = probes.iter().map(mode).collect();
    let (secured, open) = (SecurityMode::SignAndEncrypt, SecurityMode::None);
    assert_eq!(modes, [secured, open, secured], "500 ms between them, then a second");
    // Other subscribers with the same question overhear it, and do not count it as a message of the publisher.
    another.receive(0, &mut probes[0].clone(), at(4_000), &mut got);
    assert!(
        !got.events.iter().any(|event| matches!(event, SubscriberEvent::Dropped { .. })),
        "{:?}",
        got.events
    );
    out.clear();
    sending.receive(0, &probes[0], at(4_000));
    sending.poll(at(4_000), &mut values(1), &mut out);
    let told: Vec<_> = out.iter().filter(|datagram| datagram.kind != DatagramKind::Data).collect();
    assert_eq!(told.len(), 1, "the answer");
    let is_learned = |event: &SubscriberEvent| matches!(event, SubscriberEvent::MetaDataReceived { .. });
    receiving.receive(0, &mut told[0].bytes.to_vec(), at(4_001), &mut got);
    assert!(got.events.iter().any(is_learned), "{:?}", got.events);
    got.events.clear();
    another.receive(0, &mut told[0].bytes.to_vec(), at(4_001), &mut got);
    assert!(
        got.events.iter().any(is_learned),
        "the probe has not moved the publisher's window: {:?}",
        got.events
    );
}

/// Limits how long a recording can be replayed to a restarted subscriber, if publishers send timestamps.
#[test]
fn old_and_undated_messages_are_refused_if_configured() {
    use taktwerk_pubsub::{Subscriber, SubscriberOptions};
    let dated = |network: bool, message: bool| {
        let mut configuration = secured(SecurityMode::SignAndEncrypt);
        let group = &mut configuration.connections[0].writer_groups[0];
        group.header_layout_uri.clear();
        let WriterGroupMessage::Uadp(uadp) = &mut group.message else { panic!() };
        let timestamp = UadpNetworkMessageContentMask::TIMESTAMP;
        uadp.network_message_content_mask = UadpNetworkMessageContentMask(
            uadp.network_message_content_mask.bits() & !timestamp.bits()
                | if network { timestamp.bits() } else { 0 },
        );
        let DataSetWriterMessage::Uadp(uadp) = &mut group.writers[0].message else { panic!() };
        let timestamp = UadpDataSetMessageContentMask::TIMESTAMP;
        uadp.data_set_message_content_mask = UadpDataSetMessageContentMask(
            uadp.data_set_message_content_mask.bits() & !timestamp.bits()
                | if message { timestamp.bits() } else { 0 },
        );
        configuration
    };
    for (network, message) in [(true, false), (false, true), (false, false)] {
        let configuration = dated(network, message);
        let fresh = |age_max| {
            let mut options = SubscriberOptions::default();
            options.message_age_max_nanos = age_max;
            let provider = std::sync::Arc::new(taktwerk_crypto_dummy::DummyPubSubProvider);
            let reading = Configuration::subscriber_of(&configuration);
            let mut receiving = Subscriber::new(reading, options, provider).unwrap();
            let mut got = Got::default();
            receiving.start(at(1_000), &mut got);
            receiving.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(1_000)).unwrap();
            (receiving, got)
        };
        let mut sending = publisher(configuration.clone());
        sending.start(at(1_000).instant, at(1_000));
        sending.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(1_000)).unwrap();
        let recorded = cycle(&mut sending, at(1_000), &mut values(1)).remove(0);
        let is_dated = network || message;
        let five_seconds = Some(5_000_000_000);
        for (age_max, when, is_taken) in [
            (None, 60_000, true),
            (five_seconds, 1_000, is_dated),
            (five_seconds, 6_000, is_dated),
            (five_seconds, 6_001, false),
        ] {
            let (mut receiving, mut got) = fresh(age_max);
            receiving.receive(0, &mut recorded.clone(), at(when), &mut got);
            let case = format!("{network} {message} {age_max:?} {when}: {:?}", got.events);
            assert_eq!(got.messages.len(), usize::from(is_taken), "{case}");
            let reason = match is_dated {
                true => SecurityError::Stale { off_millis: 5_001 },
                false => SecurityError::Undated,
            };
            let refused = SubscriberEvent::Dropped { connection: 0, reason: Drop::Security(reason) };
            assert_eq!(got.events.contains(&refused), !is_taken, "{case}");
            assert_eq!(receiving.counters().security_errors, u64::from(!is_taken), "{case}");
        }
        // A clock that is ahead is refused, too.
        let (mut receiving, mut got) = fresh(Some(500_000_000));
        receiving.receive(0, &mut recorded.clone(), at(400), &mut got);
        assert!(got.messages.is_empty());
    }
}
