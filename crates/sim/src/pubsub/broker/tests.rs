//! Protocol violations by clients. Everything else is tested together with the client's session.

use super::*;
use crate::network::{Network, Route};
use crate::queue::EventQueue;
use rumqttc::{Publish, Unsubscribe};
use taktwerk_crypto::SeededEntropy;

fn broker() -> (Broker, LinkId) {
    let mut network = Network::new(SeededEntropy::new(1));
    let mut queue = EventQueue::<crate::event::Event>::new(Instant::ZERO);
    let link = network.connect(&Route::default(), &mut queue);
    let mut broker = Broker::new(BrokerLimits::default(), Rc::default());
    broker.accepted(link, Instant::ZERO);
    (broker, link)
}

fn bytes(packet: &Packet) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    packet.write(&mut bytes, PACKET_MAX).unwrap();
    bytes.to_vec()
}

fn connect() -> Packet {
    Packet::Connect(Connect::new("c"))
}

/// Sends these packets and returns whether the broker closes the connection.
fn is_closed(packets: &[Packet]) -> bool {
    let (mut broker, link) = broker();
    for packet in packets {
        broker.receive(link, &bytes(packet), Instant::ZERO);
    }
    broker.poll_close().is_some()
}

#[test]
fn protocol_violations_close_the_connection() {
    let mut twice = Publish::new("t", QoS::ExactlyOnce, *b"x");
    twice.pkid = 1;
    assert!(!is_closed(&[connect(), Packet::PingReq]));
    assert!(is_closed(&[Packet::PingReq]), "no packet is allowed before CONNECT");
    assert!(is_closed(&[connect(), connect()]), "CONNECT is allowed only once");
    assert!(is_closed(&[connect(), Packet::PingResp]), "only brokers send PINGRESP");
    assert!(is_closed(&[connect(), Packet::Publish(twice)]), "quality of service 2 is not offered");
    let wild = Packet::Publish(Publish::new("a/+", QoS::AtMostOnce, *b"x"));
    assert!(is_closed(&[connect(), wild]), "publishing to a filter is not allowed");
    let (mut broker, link) = broker();
    broker.receive(link, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Instant::ZERO);
    assert_eq!(broker.poll_close(), Some(link));
    assert_eq!(broker.connections(), 0);
}

#[test]
fn a_silent_connection_is_closed() {
    let (mut broker, link) = broker();
    let at = broker.poll_timeout().unwrap();
    assert_eq!(at, Instant::ZERO + GREETING);
    broker.handle_timeout(at);
    assert_eq!((broker.poll_close(), broker.poll_timeout()), (Some(link), None));
}

#[test]
fn bytes_may_arrive_one_by_one() {
    let (mut broker, link) = broker();
    let mut stream = bytes(&connect());
    stream
        .extend(bytes(&Packet::Subscribe(Subscribe { pkid: 3, ..Subscribe::new("a/#", QoS::ExactlyOnce) })));
    stream.extend(bytes(&Packet::Unsubscribe(Unsubscribe { pkid: 4, topics: vec!["a/#".to_owned()] })));
    for byte in stream {
        broker.receive(link, &[byte], Instant::ZERO);
    }
    // Accepted; granted with quality of service 1; unsubscribed.
    let answers = core::mem::take(broker.transmit(link).unwrap());
    assert_eq!(answers, [0x20, 2, 0, 0, 0x90, 3, 0, 3, 1, 0xb0, 2, 0, 4]);
    assert!(broker.route(&Rc::from("a/b")).is_empty());
    let effort = broker.take_effort();
    assert_eq!((effort.server.chunks_received, effort.server.chunks_sent), (3, 3));
}

#[test]
fn a_new_connection_of_a_client_replaces_the_old_one() {
    let mut network = Network::new(SeededEntropy::new(1));
    let mut queue = EventQueue::<crate::event::Event>::new(Instant::ZERO);
    let [old, new] = [0, 1].map(|_| network.connect(&Route::default(), &mut queue));
    let mut broker = Broker::new(BrokerLimits::default(), Rc::default());
    for link in [old, new] {
        broker.accepted(link, Instant::ZERO);
        broker.receive(link, &bytes(&connect()), Instant::ZERO);
    }
    assert_eq!((broker.poll_close(), broker.poll_close()), (Some(old), None));
    assert_eq!(broker.clients.get("c").and_then(|client| client.link), Some(new));
}
