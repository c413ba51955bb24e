//! Many clients at once: connection storms, clients that stop reading, clients that die.

use crate::common;
use crate::common::{after, monitor, start, wait_until};
use core::time::Duration;
use std::io::{Read, Write};
use std::sync::Arc;
use taktwerk_client::{
    Client, ClientConfig, ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionHandle,
    SubscriptionParams,
};
use taktwerk_net::client::{Fleet, FleetOptions, FleetSink, MemberId};
use taktwerk_net::clock::monotonic;
use taktwerk_net::{ServerOptions, SocketOptions};
use taktwerk_schema::ids::variable_ids;
use taktwerk_schema::{ReadRequest, ReadValueId};
use taktwerk_types::{Instant, NodeId};

/// Counts deliveries.
#[derive(Default)]
struct Counts {
    connected: usize,
    failed: Vec<String>,
    /// Arrival times of changes, per member.
    arrivals: Vec<Vec<Instant>>,
    changes: usize,
    /// Whether members read the server's time when their first changes arrive.
    asks: bool,
    /// Members that have just received changes.
    to_ask: Vec<u32>,
    answered: Vec<u32>,
}

impl FleetSink for Counts {
    fn event(&mut self, _: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.connected += 1,
            Event::Disconnected(Some(error)) => self.failed.push(error.to_string()),
            Event::ConnectionLost { error, .. } => self.failed.push(error.to_string()),
            _ => {}
        }
    }
    fn response(
        &mut self,
        member: MemberId,
        _: RequestHandle,
        reply: Result<Reply<'_>, ClientError>,
        _: Instant,
    ) {
        assert!(reply.is_ok());
        self.answered.push(member.0);
    }
    fn data_changes(
        &mut self,
        member: MemberId,
        _: SubscriptionHandle,
        changes: DataChanges<'_>,
        now: Instant,
    ) {
        self.changes += changes.filter(|change| change.is_ok()).count();
        let at = member.0 as usize;
        if self.arrivals.len() <= at {
            self.arrivals.resize_with(at + 1, Vec::new);
        }
        self.arrivals[at].push(now);
        if self.asks && self.arrivals[at].len() == 1 {
            self.to_ask.push(member.0);
        }
    }

    fn react(&mut self, member: MemberId, client: &mut Client, now: Instant) {
        // `react` is called only for members that have just received bytes.
        assert!(self.to_ask.iter().all(|asking| *asking == member.0));
        if self.to_ask.pop().is_some() {
            let nodes = vec![ReadValueId {
                node_id: NodeId::from(variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME),
                attribute_id: 13,
                ..ReadValueId::default()
            }];
            let mut request = ReadRequest { nodes_to_read: nodes, ..ReadRequest::default() };
            client.request(&mut request, None, now).unwrap();
        }
    }
}

fn fleet(server: &common::TestServer, count: usize, sink: &mut Counts) -> Fleet {
    let config = ClientConfig { read_limits: false, ..ClientConfig::default() };
    let mut fleet = Fleet::new(Arc::new(config), FleetOptions::default()).unwrap();
    for _ in 0..count {
        fleet.add(server.target());
    }
    let end = after(Duration::from_secs(60));
    while fleet.pending() > 0 {
        assert!(fleet.run_once(end, sink).unwrap() < end, "{} of {count} connected", sink.connected);
    }
    assert_eq!((sink.connected, sink.failed.as_slice()), (count, [].as_slice()));
    fleet
}

fn subscribe(fleet: &mut Fleet, member: u32, items: u32, interval: f64, sink: &mut Counts) {
    fleet
        .with(
            MemberId(member),
            |client, now| {
                let params = SubscriptionParams { publishing_interval_ms: interval, ..Default::default() };
                let subscription = client.create_subscription(params, now);
                client.add_items(subscription, (0..items).map(|item| monitor(item, interval)), now).unwrap();
            },
            sink,
        )
        .unwrap();
}

#[test]
fn two_thousand_clients_connect_and_all_are_served() {
    let files = taktwerk_net::files::raise_file_limit();
    assert!(
        files.is_none_or(|files| files > 4100),
        "two ends of 2000 connections need more than {files:?} files"
    );
    let server = start(2, 2, ServerOptions::default());
    let mut sink = Counts::default();
    let mut fleet = fleet(&server, 2000, &mut sink);
    assert_eq!(server.running.connections(), 2000);
    for member in 0..2000 {
        subscribe(&mut fleet, member, 1, 500.0, &mut sink);
    }
    let end = after(Duration::from_secs(60));
    while sink.changes < 2000 {
        assert!(fleet.run_once(end, &mut sink).unwrap() < end, "{} of 2000", sink.changes);
    }
    assert_eq!(sink.changes, 2000);
    let stats = fleet.stats();
    assert!(stats.cpu > Duration::ZERO && stats.bytes_received > 0 && stats.bytes_sent > 0);
    drop(fleet);
    wait_until("all are gone", || server.running.connections() == 0);
}

#[test]
fn requests_made_in_react_are_sent_and_answered() {
    let server = start(1, 1, ServerOptions::default());
    let mut sink = Counts { asks: true, ..Counts::default() };
    let mut fleet = fleet(&server, 20, &mut sink);
    for member in 0..20 {
        subscribe(&mut fleet, member, 1, 20.0, &mut sink);
    }
    let end = after(Duration::from_secs(60));
    while sink.answered.len() < 20 {
        assert!(fleet.run_once(end, &mut sink).unwrap() < end, "{:?}", sink.answered);
    }
    sink.answered.sort_unstable();
    assert_eq!(sink.answered, (0..20).collect::<Vec<_>>());
}

/// The worst delay of a delivery, over all members: the distance between neighbouring arrivals minus the interval.
fn worst_delay(arrivals: &[Vec<Instant>], interval: Duration) -> Duration {
    let gaps = arrivals.iter().flat_map(|times| times.windows(2).map(|pair| pair[1].since(pair[0])));
    gaps.map(|gap| gap.saturating_sub(interval)).max().unwrap_or_default()
}

#[test]
fn a_subscriber_that_stops_reading_does_not_delay_others() {
    const ITEMS: u32 = 2000;
    let socket = SocketOptions { send_buffer: Some(32 << 10), ..SocketOptions::default() };
    let mut options = ServerOptions::default();
    options.socket = socket;
    let server = start(ITEMS, 1, options);
    let _writer = server.write_every(Duration::from_millis(20));
    let interval = Duration::from_millis(100);

    let (mut sink, mut slow_sink) = (Counts::default(), Counts::default());
    let mut slow = fleet(&server, 1, &mut slow_sink);
    subscribe(&mut slow, 0, ITEMS, 20.0, &mut slow_sink);
    let slow_start = after(Duration::from_millis(300));
    slow.run_until(slow_start, &mut slow_sink).unwrap();
    assert!(slow_sink.changes > 0);

    let mut quick = fleet(&server, 20, &mut sink);
    for member in 0..20 {
        subscribe(&mut quick, member, 10, 100.0, &mut sink);
    }
    quick.run_until(after(Duration::from_millis(300)), &mut sink).unwrap();
    // From here on `slow` does not run any more, and its socket fills up.
    sink.arrivals.clear();
    quick.run_until(after(Duration::from_secs(3)), &mut sink).unwrap();
    assert_eq!(sink.arrivals.len(), 20);
    assert!(sink.arrivals.iter().all(|times| times.len() >= 20), "{:?}", sink.arrivals);
    // Tests share their CPUs, so only a stall can be detected: a server that waits for the slow reader would be silent
    // for three seconds. `cargo xtask versus` measures more precisely.
    let worst = worst_delay(&sink.arrivals, interval);
    assert!(worst < Duration::from_secs(1), "{worst:?}");
    // The slow client reads again and gets the newest values.
    let before = slow_sink.changes;
    slow.run_until(after(Duration::from_millis(500)), &mut slow_sink).unwrap();
    assert!(slow_sink.changes > before, "{:?}", slow_sink.failed);
}

#[test]
fn vanished_and_malformed_clients_do_not_affect_others() {
    let server = start(10, 1, ServerOptions::default());
    let _writer = server.write_every(Duration::from_millis(20));
    let mut sink = Counts::default();
    let mut steady = fleet(&server, 1, &mut sink);
    subscribe(&mut steady, 0, 10, 50.0, &mut sink);
    for _ in 0..5 {
        // As after kill -9: the sockets are closed while sessions are open.
        let mut doomed = Counts::default();
        let mut fleet = fleet(&server, 20, &mut doomed);
        for member in 0..20 {
            subscribe(&mut fleet, member, 10, 20.0, &mut doomed);
        }
        fleet.run_until(after(Duration::from_millis(50)), &mut doomed).unwrap();
        drop(fleet);
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 3000], b"HEL", b"OPNF\xff\xff\xff\x7f"] {
            let mut stream = std::net::TcpStream::connect(server.running.addresses()[0]).unwrap();
            stream.write_all(garbage).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            // The server sends an Error message or nothing, and closes.
            let _ = stream.read_to_end(&mut Vec::new());
        }
        steady.run_until(monotonic() + Duration::from_millis(50), &mut sink).unwrap();
    }
    wait_until("only one is left", || server.running.connections() == 1);
    let before = sink.changes;
    steady.run_until(after(Duration::from_millis(500)), &mut sink).unwrap();
    assert!(sink.changes >= before + 60, "{} {:?}", sink.changes - before, sink.failed);
}

#[test]
fn a_stopping_server_notifies_all_clients() {
    let server = start(1, 2, ServerOptions::default());
    let mut sink = Counts::default();
    let mut fleet = fleet(&server, 50, &mut sink);
    let running = server.running;
    let begun = monotonic();
    let stopping = std::thread::spawn(move || running.stop(Duration::from_secs(5)));
    let end = after(Duration::from_secs(10));
    while sink.failed.len() < 50 {
        assert!(fleet.run_once(end, &mut sink).unwrap() < end, "{:?}", sink.failed);
    }
    stopping.join().unwrap();
    assert!(monotonic().since(begun) < Duration::from_secs(4), "it did not wait for its deadline");
}
