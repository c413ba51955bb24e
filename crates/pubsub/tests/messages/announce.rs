//! Cyclic announcements of publishers (DiscoveryAnnounceRate, Part 14 §6.4.1.2.3, §6.4.1.3.7).

use crate::common::{Got, at, configuration, publisher, subscriber, values};
use taktwerk_pubsub::config::{
    Configuration, ConnectionTransport, DataSetWriter, DataSetWriterTransport, WriterGroup,
};
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::uadp::announcement::Announcement;
use taktwerk_pubsub::{DatagramKind, Publisher, SubscriberEvent, Transmit};
use taktwerk_schema::BrokerDataSetWriterTransportDataType;

/// Announcements of a publisher in a time range, as a subscriber receives them.
fn heard(sending: &mut Publisher, reading: &Configuration, from: u64, to: u64) -> Vec<(u64, Announcement)> {
    let mut receiving = subscriber(reading.clone());
    let (mut got, mut out, mut all) = (Got::default(), Transmit::new(), Vec::new());
    receiving.start(at(from), &mut got);
    for millis in from..to {
        out.clear();
        sending.poll(at(millis), &mut values(1), &mut out);
        for datagram in out.iter().filter(|datagram| datagram.kind != DatagramKind::Data) {
            receiving.receive(0, &mut datagram.bytes.to_vec(), at(millis), &mut got);
        }
        all.extend(got.events.drain(..).filter_map(|event| match event {
            SubscriberEvent::Announcement { announcement, .. } => Some((millis, announcement.announcement)),
            _ => None,
        }));
    }
    all
}

#[test]
fn a_publisher_announces_itself_as_often_as_it_is_configured() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 100.0), 2, DataSetWriter::dynamic);
    configuration.connections[0].announce_every(2);
    let reading = Configuration::subscriber_of(&configuration);
    let mut sending = publisher(configuration.clone());
    assert!(heard(&mut sending, &reading, 0, 100).is_empty(), "not before it runs");
    sending.start(at(100).instant, at(100));
    let all = heard(&mut sending, &reading, 100, 4_200);
    let status: Vec<_> = all
        .iter()
        .filter_map(|(millis, announcement)| match announcement {
            Announcement::Status { state, cyclic } => Some((*millis, *state, cyclic.unwrap())),
            _ => None,
        })
        .collect();
    // At once, and then every two seconds; each contains the time of the next one.
    assert_eq!(status.iter().map(|(millis, ..)| *millis).collect::<Vec<_>>(), [100, 2_100, 4_100]);
    for (millis, state, (next, sent)) in status {
        assert_eq!((state, sent, next), (PubSubState::OPERATIONAL, at(millis).utc, at(millis + 2_000).utc));
    }
    let count = |wanted: fn(&Announcement) -> bool| all.iter().filter(|(_, one)| wanted(one)).count();
    assert_eq!(
        count(|one| matches!(one, Announcement::DataSetMetaData { .. })),
        6,
        "two writers, three times"
    );
    assert_eq!(count(|one| matches!(one, Announcement::DataSetWriters { .. })), 3);
    assert_eq!(count(|one| matches!(one, Announcement::PubSubConnections(_))), 3);
    sending.stop(at(4_200));
    assert!(heard(&mut sending, &reading, 4_200, 9_000).is_empty(), "a stopped publisher sends nothing");
}

#[test]
fn disabled_parts_are_not_announced_and_intervals_apply_at_once() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 100.0), 1, DataSetWriter::dynamic);
    let reading = Configuration::subscriber_of(&configuration);
    let mut sending = publisher(configuration.clone());
    sending.start(at(0).instant, at(0));
    assert!(heard(&mut sending, &reading, 0, 3_000).is_empty(), "0: only when it is asked");
    configuration.connections[0].announce_every(1);
    configuration.connections[0].writer_groups[0].enabled = false;
    sending.reconfigure(configuration.clone(), at(3_000)).unwrap();
    let all = heard(&mut sending, &reading, 3_000, 4_500);
    assert_eq!(all.len(), 4, "status and connections, twice, and nothing of the group: {all:?}");
    configuration.connections[0].enabled = false;
    sending.reconfigure(configuration, at(4_500)).unwrap();
    assert!(heard(&mut sending, &reading, 4_500, 6_500).is_empty());
}

/// DiscoveryMaxMessageSize (Part 14 §6.4.1.2.4): longer announcements are sent in chunks and reassembled.
#[test]
fn announcements_respect_the_configured_size() {
    let told = |len_max: u32| {
        let mut configuration = configuration(WriterGroup::dynamic("g", 1, 100.0), 2, DataSetWriter::dynamic);
        configuration.connections[0].announce_every(2);
        if let ConnectionTransport::Datagram2(of) = &mut configuration.connections[0].transport {
            of.discovery_max_message_size = len_max;
        }
        let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
        let mut sending = publisher(configuration);
        let (mut got, mut out, mut lens) = (Got::default(), Transmit::new(), Vec::new());
        receiving.start(at(0), &mut got);
        sending.start(at(0).instant, at(0));
        for millis in 0..1_000 {
            out.clear();
            sending.poll(at(millis), &mut values(1), &mut out);
            for datagram in out.iter().filter(|datagram| datagram.kind != DatagramKind::Data) {
                lens.push(datagram.bytes.len());
                receiving.receive(0, &mut datagram.bytes.to_vec(), at(millis), &mut got);
            }
        }
        let is_told = |event: &&SubscriberEvent| matches!(event, SubscriberEvent::Announcement { .. });
        (got.events.iter().filter(is_told).count(), lens)
    };
    let (all, whole) = told(0);
    let (again, pieces) = told(150);
    assert!(all > 0 && whole.iter().any(|len| *len > 150), "{whole:?}");
    assert_eq!(again, all);
    assert!(pieces.iter().all(|len| *len <= 150) && pieces.len() > whole.len(), "{pieces:?}");
}

/// MetaDataUpdateTime (Part 14 §6.4.2.5.6): the interval on brokers; zero and negative values: only on changes.
#[test]
fn metadata_is_sent_to_a_broker_as_often_as_configured() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 100.0), 3, DataSetWriter::dynamic);
    let connection = &mut configuration.connections[0];
    connection.url = "mqtt://broker".to_owned();
    connection.transport_profile_uri = taktwerk_pubsub::config::TRANSPORT_MQTT_UADP.to_owned();
    let every = |millis| {
        DataSetWriterTransport::Broker(BrokerDataSetWriterTransportDataType {
            meta_data_update_time: millis,
            ..Default::default()
        })
    };
    let writers = &mut connection.writer_groups[0].writers;
    (writers[0].transport, writers[1].transport) = (every(2_000.0), every(-1.0));
    assert_eq!(taktwerk_pubsub::config::unused::unused_by_publishers(&configuration), []);
    let reading = Configuration::subscriber_of(&configuration);
    let mut sending = publisher(configuration.clone());
    sending.start(at(100).instant, at(100));
    // As the driver does after connecting.
    sending.announce(0, at(150));
    let told = |all: Vec<(u64, Announcement)>| -> Vec<(u64, u16)> {
        let meta_data = |(millis, one)| match one {
            Announcement::DataSetMetaData { writer_id, .. } => Some((millis, writer_id)),
            _ => None,
        };
        all.into_iter().filter_map(meta_data).collect()
    };
    let all = told(heard(&mut sending, &reading, 100, 6_000));
    assert_eq!(
        all.iter().filter(|(_, id)| *id > 1).map(|(_, id)| *id).collect::<Vec<_>>(),
        [2, 3],
        "once each"
    );
    let first: Vec<u64> = all.iter().filter(|(_, id)| *id == 1).map(|(millis, _)| *millis).collect();
    // With the others after connecting, and then by the schedule.
    assert_eq!(first, [150, 2_100, 4_100]);
    // Another interval applies at once.
    configuration.connections[0].writer_groups[0].writers[0].transport = every(0.0);
    sending.reconfigure(configuration, at(6_000)).unwrap();
    assert_eq!(told(heard(&mut sending, &reading, 6_000, 12_000)), []);
}
