//! A link that loses, duplicates and reorders, reproducible by seed: the guarantees of the receive state machines hold.

use crate::common;
use crate::common::{Got, at, configuration, keys, publisher, subscriber};
use taktwerk_crypto::{Entropy, PubSubSecurityPolicy, SeededEntropy};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Configuration, DataSetWriter, WriterGroup, WriterGroupTransport};
use taktwerk_pubsub::security::KeyService;
use taktwerk_pubsub::uadp::{DataSetMessageKind, SecurityMode};
use taktwerk_pubsub::{SubscriberEvent, Transmit};
use taktwerk_schema::{DataSetFieldContentMask, DatagramWriterGroupTransportDataType, SecurityGroupDataType};
use taktwerk_types::{BuiltInType, DataValue, Variant};

/// One run; returns the deliveries as text, for comparison.
fn run(seed: u64, mode: SecurityMode, chunked: bool, key_frame_count: u32) -> String {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.security.mode = mode;
    group.security.security_group_id = "group".into();
    // Security takes 46 bytes of each chunk.
    group.max_network_message_size = match mode {
        _ if !chunked => 0,
        SecurityMode::None => 40,
        _ => 86,
    };
    let mut configuration = configuration(group, 2, DataSetWriter::dynamic);
    for writer in &mut configuration.connections[0].writer_groups[0].writers {
        writer.key_frame_count = key_frame_count;
    }
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut sending = publisher(configuration);
    let (mut got, mut out) = (Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    if mode != SecurityMode::None {
        sending.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
        receiving.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
    }
    let mut random = SeededEntropy::new(seed);
    let mut wire: Vec<(u64, Vec<u8>)> = Vec::new();
    let (mut sent, mut cycles) = (0u64, 0u16);
    for millis in 0..3_000u64 {
        let now = at(millis);
        if sending.poll_timeout() == Some(now.instant) {
            cycles += 1;
            out.clear();
            let mut values = |set: usize, fields: &mut [DataValue]| {
                fields[0] = DataValue::new(f32::from(cycles));
                fields[1] = DataValue::new(format!("{set}"));
                fields[2] = DataValue::new(cycles);
            };
            sending.poll(now, &mut values, &mut out);
            for datagram in out.iter() {
                sent += 1;
                let copies = match random.below(100) {
                    0..10 => 0,
                    10..20 => 2,
                    _ => 1,
                };
                for _ in 0..copies {
                    // Most are fast; some are overtaken by several others.
                    let delay = if random.below(10) == 0 { random.below(60) } else { 1 };
                    wire.push((millis + delay, datagram.bytes.to_vec()));
                }
            }
        }
        let due: Vec<_> = {
            let (due, later) = wire.drain(..).partition(|(when, _)| *when <= millis);
            wire = later;
            due
        };
        for (_, mut datagram) in due {
            // Noise: flipped bits.
            if random.below(50) == 0 {
                let at = random.below(datagram.len() as u64) as usize;
                let mut noise = datagram.clone();
                noise[at] ^= 1 << random.below(8);
                if mode != SecurityMode::None {
                    let before = got.messages.len();
                    receiving.receive(0, &mut noise, now, &mut got);
                    assert_eq!(got.messages.len(), before, "a forged message was taken");
                }
            }
            receiving.receive(0, &mut datagram, now, &mut got);
        }
        receiving.poll(now, &mut got, &mut out);
    }
    assert!(sent > 250);
    for reader in 0..2 {
        let numbers: Vec<u32> = got
            .messages
            .iter()
            .filter(|message| {
                message.reader.reader == reader && message.kind != DataSetMessageKind::KeepAlive
            })
            .map(|message| message.sequence_number.unwrap())
            .collect();
        assert!(numbers.len() > 150, "{}", numbers.len());
        // Never twice, and always in order.
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        // Missing messages are reported: received and missing numbers together are complete.
        let missing: u32 = got
            .messages
            .iter()
            .filter(|message| message.reader.reader == reader)
            .map(|message| message.missing)
            .sum();
        let span = numbers.last().unwrap() - numbers.first().unwrap() + 1;
        assert_eq!(span, numbers.len() as u32 + missing);
        // The values of a message are consistent.
        for message in got.messages.iter().filter(|message| message.reader.reader == reader) {
            let word = message.fields.iter().find(|field| field.index == 2);
            let float = message.fields.iter().find(|field| field.index == 0);
            if let (Some(word), Some(float)) = (word, float) {
                let Some(Variant::UInt16(word)) = word.value.value else { panic!("{word:?}") };
                assert_eq!(float.value.value, Some(f32::from(word).into()));
            }
        }
    }
    let counters = receiving.counters();
    if chunked {
        // Reassembly has seen duplicate chunks, and has dropped incomplete payloads.
        assert!(counters.chunks > 500 && counters.chunked_dropped > 0);
    } else {
        assert!(counters.duplicates + counters.replays > 0);
    }
    assert!(!got.events.iter().any(|event| matches!(event, SubscriberEvent::MetaDataChanged { .. })));
    format!("{:?}", got.messages)
}

#[test]
fn loss_duplicates_and_reordering() {
    for seed in 0..4 {
        for mode in [SecurityMode::None, SecurityMode::SignAndEncrypt] {
            let first = run(seed, mode, false, 1);
            assert_eq!(first, run(seed, mode, false, 1), "a seed replays exactly");
            run(seed, mode, false, 5);
        }
    }
}

#[test]
fn chunks_on_a_bad_link() {
    for seed in 0..4 {
        for mode in [SecurityMode::None, SecurityMode::Sign, SecurityMode::SignAndEncrypt] {
            let first = run(seed, mode, true, 1);
            assert_eq!(first, run(seed, mode, true, 1), "a seed replays exactly");
        }
    }
}

/// A link in one direction that loses, duplicates and delays.
struct Link {
    random: SeededEntropy,
    wire: Vec<(u64, Vec<u8>)>,
}

impl Link {
    fn new(seed: u64) -> Self {
        Self { random: SeededEntropy::new(seed), wire: Vec::new() }
    }

    fn send(&mut self, millis: u64, out: &Transmit) {
        for datagram in out.iter() {
            let copies = match self.random.below(100) {
                0..10 => 0,
                10..20 => 2,
                _ => 1,
            };
            for _ in 0..copies {
                let delay = if self.random.below(10) == 0 { self.random.below(25) } else { 1 };
                self.wire.push((millis + delay, datagram.bytes.to_vec()));
            }
        }
    }

    fn arrived(&mut self, millis: u64) -> Vec<Vec<u8>> {
        let (due, later) = self.wire.drain(..).partition(|(when, _)| *when <= millis);
        self.wire = later;
        let due: Vec<(u64, Vec<u8>)> = due;
        due.into_iter().map(|(_, bytes)| bytes).collect()
    }
}

/// Keys change every 300 ms, the data set changes in the middle, the subscriber starts without metadata, and everything
/// is sent in chunks over bad links: metadata is learned twice, under message security, and no valid message is
/// refused.
fn rotation_and_discovery(seed: u64, message_size: u32) -> String {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.security.mode = SecurityMode::SignAndEncrypt;
    group.security.security_group_id = "group".into();
    group.max_network_message_size = message_size;
    let mut sending_now = configuration(group, 1, DataSetWriter::dynamic);
    let writer = &mut sending_now.connections[0].writer_groups[0].writers[0];
    writer.field_content_mask = DataSetFieldContentMask::RAW_DATA;
    let mut reading = Configuration::subscriber_of(&sending_now);
    reading.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let mut receiving = subscriber(reading);
    let mut sending = publisher(sending_now.clone());

    let mut service = KeyService::new();
    let mut entropy = SeededEntropy::new(seed ^ 0x5eed);
    let security_group = SecurityGroupDataType {
        security_group_id: "group".into(),
        security_policy_uri: PubSubSecurityPolicy::Aes128Ctr.uri().into(),
        key_lifetime: 300.0,
        max_future_key_count: 3,
        max_past_key_count: 2,
        ..SecurityGroupDataType::default()
    };
    service.add_group(&security_group, &mut entropy, at(0).instant).unwrap();
    let mut ask = |now: taktwerk_pubsub::Now, count: u32| {
        service.get_security_keys("group", 0, count, true, true, &mut entropy, now.instant).unwrap()
    };

    let (mut there, mut back) = (Link::new(seed), Link::new(seed ^ 0xbac4));
    let (mut got, mut out) = (Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    let mut cycles = 0u16;
    for millis in 0..4_000u64 {
        let now = at(millis);
        if let Some(request) = sending.poll_key_request(now) {
            let keys = ask(now, request.requested_key_count);
            sending.set_keys("group", Ok(&keys), now).unwrap();
        }
        if let Some(request) = receiving.poll_key_request(now) {
            let keys = ask(now, request.requested_key_count);
            receiving.set_keys("group", Ok(&keys), now).unwrap();
        }
        if millis == 2_000 {
            // A new first field: a major change.
            let meta_data = &mut sending_now.data_sets[0].meta_data;
            meta_data.fields.insert(0, field("first", BuiltInType::UInt32));
            meta_data.configuration_version.major_version = 2;
            meta_data.configuration_version.minor_version = 2;
            sending.reconfigure(sending_now.clone(), now).unwrap();
        }
        if sending.poll_timeout().is_some_and(|due| due <= now.instant) {
            cycles += 1;
            let is_new = millis >= 2_000;
            let mut values = |_: usize, fields: &mut [DataValue]| {
                let all: [Variant; 4] =
                    [77u32.into(), f32::from(cycles).into(), "text".into(), cycles.into()];
                for (field, value) in fields.iter_mut().zip(all.into_iter().skip(usize::from(!is_new))) {
                    *field = DataValue::new(value);
                }
            };
            out.clear();
            sending.poll(now, &mut values, &mut out);
            there.send(millis, &out);
        }
        for mut datagram in there.arrived(millis) {
            receiving.receive(0, &mut datagram, now, &mut got);
        }
        out.clear();
        receiving.poll(now, &mut got, &mut out);
        back.send(millis, &out);
        for datagram in back.arrived(millis) {
            sending.receive(0, &datagram, now);
        }
    }
    let learned: Vec<_> = got
        .events
        .iter()
        .filter_map(|event| match event {
            SubscriberEvent::MetaDataReceived { version, .. } => Some(version.major_version),
            _ => None,
        })
        .collect();
    assert_eq!(learned, [1, 2]);
    for (fields, least) in [(3, 80), (4, 80)] {
        let with = got.messages.iter().filter(|message| message.fields.len() == fields).count();
        assert!(with > least, "{with} messages with {fields} fields");
    }
    for message in &got.messages {
        let [.., float, _, word] = message.fields.as_slice() else { continue };
        let Some(Variant::UInt16(word)) = word.value.value else { panic!("{word:?}") };
        assert_eq!(float.value.value, Some(f32::from(word).into()), "values belong together");
    }
    // Only duplicates were refused by security.
    let counters = receiving.counters();
    assert_eq!(counters.security_errors, counters.replays);
    assert!(counters.replays > 20);
    format!("{:?}", got.messages)
}

#[test]
fn keys_change_and_metadata_is_learned_on_a_bad_link() {
    for seed in 0..3 {
        let first = rotation_and_discovery(seed, 0);
        assert_eq!(first, rotation_and_discovery(seed, 0), "a seed replays exactly");
        rotation_and_discovery(seed, 90);
    }
}

/// MessageRepeatCount and MessageRepeatDelay (Part 14 §6.4.1.3.1, §6.4.1.3.2) on a link that loses a third of all
/// datagrams. Returns the send times of datagrams, and the numbers of delivered and of sent DataSetMessages.
fn repeated(seed: u64, mode: SecurityMode, count: u8, delay: f64) -> (Vec<u64>, usize, usize) {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.security.mode = mode;
    group.security.security_group_id = "group".into();
    group.transport = WriterGroupTransport::Datagram(DatagramWriterGroupTransportDataType {
        message_repeat_count: count,
        message_repeat_delay: delay,
    });
    let configuration = configuration(group, 1, DataSetWriter::dynamic);
    assert_eq!(taktwerk_pubsub::config::unused::unused_by_publishers(&configuration), []);
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut sending = publisher(configuration);
    let (mut got, mut out) = (Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    if mode != SecurityMode::None {
        sending.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
        receiving.set_keys("group", Ok(&keys(1, 2, 1e6, 1e6)), at(0)).unwrap();
    }
    let mut random = SeededEntropy::new(seed);
    let (mut when, mut bytes) = (Vec::new(), Vec::new());
    for millis in 0..1_000u64 {
        let now = at(millis);
        if sending.poll_timeout().is_none_or(|due| due > now.instant) {
            continue;
        }
        out.clear();
        sending.poll(now, &mut common::values(1), &mut out);
        for datagram in out.iter() {
            assert_eq!(datagram.due, now.instant);
            when.push(millis);
            bytes.push(datagram.bytes.to_vec());
            if random.below(3) > 0 {
                receiving.receive(0, &mut datagram.bytes.to_vec(), now, &mut got);
            }
        }
    }
    let counters = sending.counters(taktwerk_pubsub::GroupIndex { connection: 0, group: 0 });
    assert_eq!(counters.network_messages + counters.repeated, when.len() as u64);
    assert_eq!(counters.repeats_dropped, 0);
    // A repetition is the same message: no nonce is reused for another one.
    bytes.sort();
    bytes.dedup();
    assert_eq!(bytes.len() as u64, counters.network_messages);
    let numbers: Vec<u32> = got.messages.iter().map(|message| message.sequence_number.unwrap()).collect();
    let mut once = numbers.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), numbers.len(), "delivered once, however often it comes");
    (when, numbers.len(), counters.network_messages as usize)
}

#[test]
fn messages_are_repeated_as_configured() {
    for mode in [SecurityMode::None, SecurityMode::SignAndEncrypt] {
        let (when, delivered, made) = repeated(7, mode, 0, 3.0);
        assert_eq!((when.len(), made), (100, 100));
        assert!((50..85).contains(&delivered), "{delivered}");
        let (when, delivered, made) = repeated(7, mode, 2, 3.0);
        // Each cycle's message, repeated after 3 and 6 ms.
        let expected: Vec<u64> =
            (0..100u64).flat_map(|cycle| [0, 3, 6].map(|after| cycle * 10 + after)).collect();
        assert_eq!((when, made), (expected, 100));
        assert!(delivered > 90, "one in 27 is lost: {delivered}");
        // Longer than a cycle: repetitions come between messages of later cycles.
        let (when, _, _) = repeated(7, mode, 1, 25.0);
        let mut expected: Vec<u64> = (0..100u64).flat_map(|cycle| [cycle * 10, cycle * 10 + 25]).collect();
        expected.retain(|millis| *millis < 1_000);
        expected.sort_unstable();
        assert_eq!(when, expected);
        // Without a delay, repeated at once.
        let (when, _, _) = repeated(7, mode, 1, 0.0);
        let expected: Vec<u64> = (0..100u64).flat_map(|cycle| [cycle * 10; 2]).collect();
        assert_eq!(when, expected);
    }
}

/// A stopped publisher repeats nothing.
#[test]
fn nothing_is_repeated_after_a_stop() {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.transport = WriterGroupTransport::Datagram(DatagramWriterGroupTransportDataType {
        message_repeat_count: 3,
        message_repeat_delay: 50.0,
    });
    let mut sending = publisher(configuration(group, 1, DataSetWriter::dynamic));
    let (mut out, index) = (Transmit::new(), taktwerk_pubsub::GroupIndex { connection: 0, group: 0 });
    sending.start(at(0).instant, at(0));
    sending.poll(at(0), &mut common::values(1), &mut out);
    assert_eq!(out.len(), 1);
    sending.set_enabled(index, false, at(5).instant, at(5));
    assert_eq!(sending.poll_timeout(), None);
    sending.set_enabled(index, true, at(95).instant, at(20));
    out.clear();
    for millis in 20..=100 {
        sending.poll(at(millis), &mut common::values(1), &mut out);
    }
    assert_eq!(out.iter().map(|datagram| datagram.due).collect::<Vec<_>>(), [at(95).instant]);
}
