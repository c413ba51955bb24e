//! Packets and traces.

use super::plant::{mqtt, simulate, udp};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use taktwerk_pubsub::uadp::header::NetworkMessageHeader;
use taktwerk_sim::Trace;
use taktwerk_sim::capture::Capture;
use taktwerk_sim::scenario::pubsub::{Quality, Transport};
use taktwerk_sim::scenario::{Instruments, Lines, Scenario, run_with};
use taktwerk_types::{DecodeLimits, Decoder};

#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl io::Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn recorded(scenario: &Scenario, instruments: Instruments) {
    let outcome = run_with(scenario, 1, instruments, &mut |_| true).unwrap();
    assert_eq!(outcome, simulate(scenario, 1), "a record must not change the outcome");
}

/// The frames in a capture of the first link.
fn frames(scenario: &Scenario) -> Vec<Vec<u8>> {
    let file = File::default();
    let captures = vec![(0, Capture::new(Box::new(file.clone())))];
    recorded(scenario, Instruments { captures, ..Instruments::default() });
    let bytes = file.0.lock().unwrap().clone();
    let (mut frames, mut at) = (Vec::new(), 24);
    while at < bytes.len() {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        frames.push(bytes[at + 16..at + 16 + len].to_vec());
        at += 16 + len;
    }
    frames
}

/// Source, destination and payload of UDP packets, whose checksums are verified.
fn datagrams(scenario: &Scenario) -> Vec<(String, String, Vec<u8>)> {
    let mut all = Vec::new();
    for frame in frames(scenario) {
        let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4") };
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("no UDP") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!(Ok(udp.checksum()), udp.to_header().calc_checksum_ipv4(&header, udp.payload()));
        assert_eq!((udp.source_port(), udp.destination_port()), (4840, 4840));
        let [from, to] = [ip.header().source_addr(), ip.header().destination_addr()].map(|it| it.to_string());
        if to.starts_with("239.") {
            assert!(frame.starts_with(&[0x01, 0x00, 0x5e]) && header.time_to_live == 1);
        }
        all.push((from, to, udp.payload().to_vec()));
    }
    all
}

#[test]
fn datagrams_are_network_messages_on_port_4840() {
    let all = datagrams(&udp());
    // At least twelve seconds with twenty datagrams per second from each of two publishers, up and down.
    assert!(all.len() > 12 * 20 * 2 * 2 * 8 / 10, "{}", all.len());
    let from: BTreeSet<&str> = all.iter().map(|(from, ..)| from.as_str()).collect();
    let to: BTreeSet<&str> = all.iter().map(|(_, to, _)| to.as_str()).collect();
    assert_eq!((from, to), (["10.32.0.1", "10.32.0.2"].into(), ["239.0.0.1"].into()));
    for (_, _, payload) in &all {
        let header = NetworkMessageHeader::decode(&mut Decoder::new(payload, DecodeLimits::DEFAULT));
        assert!(header.unwrap().publisher_id.is_some());
    }
    let mut unicast = udp();
    unicast.pubsub.publishers[0].transport = Transport::Unicast;
    let to: BTreeSet<String> = datagrams(&unicast).into_iter().map(|(_, to, _)| to).collect();
    assert_eq!(to, ["10.160.0.1".to_owned(), "10.160.0.2".to_owned()].into());
}

#[test]
fn brokers_are_on_port_1883() {
    let mut scenario = mqtt(Quality::AtLeastOnce);
    scenario.links[0].lines = Lines::PerClient;
    let (mut clients, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for frame in frames(&scenario) {
        let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4") };
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("no TCP") };
        if tcp.destination_port() == 1883 {
            assert_eq!(ip.header().destination_addr().to_string(), "10.16.0.1");
            clients.insert(ip.header().source_addr().to_string());
        } else {
            assert_eq!(tcp.source_port(), 1883);
        }
        kinds.extend(tcp.payload().first().map(|first| first >> 4));
    }
    let names = ["10.160.0.1", "10.160.0.2", "10.32.0.1", "10.32.0.2"].map(str::to_owned);
    assert_eq!(clients, names.into());
    // CONNECT, PUBLISH, SUBSCRIBE and their acknowledgements.
    assert!(kinds.is_superset(&[1, 2, 3, 4, 8, 9].into()), "{kinds:?}");
}

#[test]
fn messages_are_arrows_in_the_trace() {
    let trace = |scenario: &Scenario| -> Vec<Value> {
        let file = File::default();
        let trace = Some(Trace::new(Box::new(file.clone())));
        recorded(scenario, Instruments { trace, ..Instruments::default() });
        let text = String::from_utf8(file.0.lock().unwrap().clone()).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        document["traceEvents"].as_array().unwrap().clone()
    };
    let names = |events: &[Value], phase: &str| -> BTreeSet<String> {
        let of_phase = events.iter().filter(|event| event["ph"] == phase);
        of_phase.map(|event| event["name"].as_str().unwrap().to_owned()).collect()
    };
    let processes = |events: &[Value]| -> BTreeSet<String> {
        let named = events.iter().filter(|event| event["name"] == "process_name");
        named.map(|event| event["args"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let events = trace(&udp());
    assert!(names(&events, "s").contains("NetworkMessage"), "{:?}", names(&events, "s"));
    let expected = ["publisher line 1", "publisher line 2", "subscriber scada 1", "subscriber scada 2"];
    assert!(processes(&events).is_superset(&expected.map(str::to_owned).into()), "{:?}", processes(&events));
    let events = trace(&mqtt(Quality::AtLeastOnce));
    let flows = names(&events, "s");
    assert!(flows.is_superset(&["CONNECT", "PUBLISH", "PUBACK"].map(str::to_owned).into()), "{flows:?}");
    assert!(processes(&events).contains("broker"));
}
