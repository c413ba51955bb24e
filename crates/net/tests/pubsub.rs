//! Publishers and subscribers over a real network: the loopback.

#![allow(clippy::unwrap_used)] // a test may

use core::time::Duration;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::pubsub::interface::Interface;
use taktwerk_net::pubsub::{
    Prepare, PubSubError, PublisherDriverOptions, RunningPublisher, RunningSubscriber, StaticKeys,
    SubscriberDriverOptions, UdpOptions, UdpReceiver, UdpSender,
};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup};
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::{DataSetMessage, GroupIndex, PublisherId, Sink};
use taktwerk_types::{BuiltInType, DataValue, Variant};

/// One port per test, because tests run in parallel.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() % 20_000) as u16;
    20_000 + own + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn configuration(url: &str, groups: Vec<WriterGroup>) -> Configuration {
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let mut connection = Connection::new("c", Some(PublisherId::UInt16(7)), url);
    connection.network_interface = "lo".to_owned();
    for (position, mut group) in groups.into_iter().enumerate() {
        let name = format!("set{position}");
        let fields = vec![field("count", BuiltInType::UInt32), field("value", BuiltInType::Double)];
        configuration.data_sets.push(PublishedDataSet::new(&name, fields));
        let id = position as u16 + 1;
        group.writers.push(DataSetWriter::dynamic(&format!("w{id}"), id, &name));
        connection.writer_groups.push(group);
    }
    configuration.connections.push(connection);
    configuration
}

fn counting() -> impl FnMut(usize, &mut [DataValue]) + Send {
    let mut counts = [0u32; 8];
    move |set, fields| {
        counts[set] += 1;
        fields[0] = DataValue::new(counts[set]);
        fields[1] = DataValue::new(f64::from(counts[set]) / 2.0);
    }
}

/// Received values: the connection's group and its counts.
#[derive(Clone, Default)]
struct Got(Arc<Mutex<Vec<(usize, u32, u32)>>>);

impl Sink for Got {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        let Some(Variant::UInt32(count)) = message.fields.first().and_then(|field| field.value.value.clone())
        else {
            return;
        };
        let second = message.fields.get(1).and_then(|field| field.value.value.clone());
        assert!(second.is_none_or(|value| value.same_as(&Variant::from(f64::from(count) / 2.0))));
        self.0.lock().unwrap().push((message.reader.group, count, message.missing));
    }
}

impl Got {
    fn wait(&self, what: impl Fn(&[(usize, u32, u32)]) -> bool) -> Vec<(usize, u32, u32)> {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            if what(&self.0.lock().unwrap()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.0.lock().unwrap().clone()
    }
}

fn publish(configuration: &Configuration, options: PublisherDriverOptions) -> RunningPublisher {
    RunningPublisher::start(configuration.clone(), counting(), Arc::new(AwsPubSubProvider), options).unwrap()
}

fn subscribe(configuration: &Configuration, options: SubscriberDriverOptions) -> (RunningSubscriber, Got) {
    let got = Got::default();
    let configuration = Configuration::subscriber_of(configuration);
    let provider = Arc::new(AwsPubSubProvider);
    let running = RunningSubscriber::start(configuration, got.clone(), provider, options).unwrap();
    (running, got)
}

/// Expects ten consecutive messages of the first group.
fn ten_in_order(got: &Got) {
    let messages = got.wait(|messages| messages.len() >= 10);
    assert!(messages.len() >= 10, "{messages:?}");
    assert!(messages.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1), "{messages:?}");
    assert!(messages.iter().skip(1).all(|message| message.2 == 0));
}

#[test]
fn multicast_and_unicast_of_both_families() {
    for host in ["239.1.2.3", "127.0.0.1", "[::1]"] {
        let url = format!("opc.udp://{host}:{}", port());
        let configuration = configuration(&url, vec![WriterGroup::dynamic("g", 1, 5.0)]);
        let (subscriber, got) = subscribe(&configuration, SubscriberDriverOptions::default());
        let publisher = publish(&configuration, PublisherDriverOptions::default());
        ten_in_order(&got);
        let sent = publisher.sent();
        assert!(sent.messages >= 9 && sent.failed == 0 && sent.bytes > 200, "{url}: {sent:?}");
        let lateness = publisher.lateness();
        let [total, encode, send] =
            [&lateness.total, &lateness.encode, &lateness.send].map(|of| (of.count, of.max));
        // A thread that wakes an interval late sends two messages in one turn, which is recorded once.
        let is_whole = sent.turns > 0 && total.0 >= sent.turns;
        assert!(is_whole && encode.1 > 0 && send.1 > 0, "{url}: {total:?} {encode:?} {send:?}, {sent:?}");
        publisher.stop();
        assert!(subscriber.counters().data_set_messages >= 10);
        assert_eq!(subscriber.counters().malformed, 0);
    }
}

/// Sending at a given time needs a suitable queueing discipline, so the test uses an interface with one in its own
/// network namespace.
#[test]
fn the_kernel_sends_at_the_given_time_where_permitted() {
    let in_namespace = || {
        if nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).is_err() {
            return;
        }
        let run = |program: &str, arguments: &str| {
            let done = std::process::Command::new(program).args(arguments.split(' ')).status();
            done.is_ok_and(|status| status.success())
        };
        if !run("ip", "link add v0 type veth peer name v1") || !run("tc", "qdisc replace dev v0 root fq") {
            return;
        }
        assert!(run("ip", "addr add 10.79.0.1/24 dev v0"));
        assert!(run("ip", "link set v0 up") && run("ip", "link set v1 up"));
        let to = "239.1.2.3:4840".parse().unwrap();
        let (out, back) = (Interface::find("v0").unwrap(), Interface::find("v1").unwrap());
        // What is sent on v0 arrives at v1.
        std::fs::write("/proc/sys/net/ipv4/conf/v1/rp_filter", "0").unwrap();
        std::fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0").unwrap();
        std::fs::write("/proc/sys/net/ipv4/conf/v1/accept_local", "1").unwrap();
        let mut receiver = UdpReceiver::new(to, &back).unwrap();
        let mut options = UdpOptions::default();
        (options.send_time, options.loopback) = (true, false);
        let sender = UdpSender::new(to, &out, &options).unwrap();
        // The first ones may be lost while the interfaces come up.
        for attempt in 1.. {
            let at = taktwerk_net::clock::monotonic().as_nanos() + 30_000_000;
            assert_eq!(sender.send(&[b"on time"], Some(at)).failed, 0);
            let mut came = None;
            let end = Instant::now() + Duration::from_millis(500);
            while came.is_none() && Instant::now() < end {
                receiver.receive(|_| came = Some(taktwerk_net::clock::monotonic().as_nanos())).unwrap();
            }
            if let Some(came) = came {
                assert!(came >= at, "{} ns early", at - came);
                return;
            }
            assert!(attempt < 20, "nothing came");
        }
    };
    std::thread::spawn(in_namespace).join().unwrap();
}

/// The loopback does not carry IPv6 multicast, so the test uses a pair of interfaces in its own network namespace.
#[test]
fn ipv6_multicast_where_permitted() {
    let in_namespace = || {
        if nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).is_err() {
            return;
        }
        let ip = |arguments: &str| {
            let done = std::process::Command::new("ip").args(arguments.split(' ')).status();
            done.is_ok_and(|status| status.success())
        };
        if !ip("link add v0 type veth peer name v1") {
            return;
        }
        // Skip duplicate address detection, so that the address can be used at once.
        std::fs::write("/proc/sys/net/ipv6/conf/v0/accept_dad", "0").unwrap();
        assert!(ip("link set lo up") && ip("link set v0 up") && ip("link set v1 up"));
        let url = format!("opc.udp://[ff02::1234]:{}", port());
        let mut configuration = configuration(&url, vec![WriterGroup::dynamic("g", 1, 5.0)]);
        configuration.connections[0].network_interface = "v0".to_owned();
        let (_subscriber, got) = subscribe(&configuration, SubscriberDriverOptions::default());
        let _publisher = publish(&configuration, PublisherDriverOptions::default());
        ten_in_order(&got);
    };
    std::thread::spawn(in_namespace).join().unwrap();
}

#[test]
fn multicast_without_a_route_uses_the_loopback() {
    let url = format!("opc.udp://239.1.2.4:{}", port());
    let mut configuration = configuration(&url, vec![WriterGroup::dynamic("g", 1, 5.0)]);
    configuration.connections[0].network_interface.clear();
    let (_subscriber, got) = subscribe(&configuration, SubscriberDriverOptions::default());
    let _publisher = publish(&configuration, PublisherDriverOptions::default());
    ten_in_order(&got);
}

#[test]
fn several_groups_share_a_timer_thread() {
    let url = format!("opc.udp://239.1.2.5:{}", port());
    let fast = WriterGroup::dynamic("fast", 1, 2.0);
    let slow = WriterGroup::dynamic("slow", 2, 20.0);
    let configuration = configuration(&url, vec![fast, slow]);
    let (_subscriber, got) = subscribe(&configuration, SubscriberDriverOptions::default());
    let mut options = PublisherDriverOptions::default();
    options.prepare = Prepare::Early(Duration::from_micros(200));
    let publisher = publish(&configuration, options);
    let messages = got.wait(|messages| messages.iter().filter(|message| message.0 == 1).count() >= 5);
    let of = |group| messages.iter().filter(|message| message.0 == group).map(|message| message.1).max();
    let (fast, slow) = (of(0).unwrap(), of(1).unwrap());
    assert!(slow >= 5 && fast > 5 * slow, "{fast} {slow}");
    let counters =
        publisher.ask(|engine, _| engine.counters(GroupIndex { connection: 0, group: 1 })).unwrap();
    assert!(counters.cycles >= 5 && counters.layouts == 1);
}

fn keys() -> SecurityKeys {
    SecurityKeys {
        security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().to_owned(),
        first_token_id: 1,
        keys: (1..4).map(|byte| vec![byte; PubSubSecurityPolicy::Aes256Ctr.key_data_len()]).collect(),
        time_to_next_key: 3_600_000.0,
        key_lifetime: 3_600_000.0,
        current_token_id: None,
        nonces: None,
    }
}

#[test]
fn secured_messages_need_keys() {
    let url = format!("opc.udp://239.1.2.6:{}", port());
    let mut group = WriterGroup::dynamic("g", 1, 5.0);
    group.security.mode = SecurityMode::SignAndEncrypt;
    group.security.security_group_id = "plant".to_owned();
    let configuration = configuration(&url, vec![group]);
    let source = || Some(Box::new(StaticKeys::new().with("plant", keys())) as _);
    let mut options = SubscriberDriverOptions::default();
    options.keys = source();
    let (subscriber, got) = subscribe(&configuration, options);
    let (keyless, nothing) = subscribe(&configuration, SubscriberDriverOptions::default());
    let mut options = PublisherDriverOptions::default();
    options.keys = source();
    let publisher = publish(&configuration, options);
    ten_in_order(&got);
    let state = publisher.ask(|engine, _| engine.state(GroupIndex { connection: 0, group: 0 }));
    assert_eq!(state, Some(PubSubState::OPERATIONAL));
    assert_eq!(subscriber.counters().security_errors, 0);
    assert!(keyless.counters().security_errors >= 10);
    assert!(nothing.0.lock().unwrap().is_empty());
}

#[test]
fn a_large_data_set_comes_in_chunks_that_fit_a_frame() {
    let url = format!("opc.udp://239.1.2.7:{}", port());
    let mut configuration = configuration(&url, vec![WriterGroup::dynamic("g", 1, 10.0)]);
    let fields = (0..1000).map(|number| field(&format!("f{number}"), BuiltInType::UInt32)).collect();
    configuration.data_sets[0] = PublishedDataSet::new("set0", fields);
    let got = Got::default();
    let provider = Arc::new(AwsPubSubProvider);
    let complete = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&complete);
    let sink = move |message: &DataSetMessage<'_>| {
        if message.fields.len() == 1000 {
            let last = message.fields.last().and_then(|field| field.value.value.clone());
            assert!(last.unwrap().same_as(&Variant::from(999u32)));
            *counted.lock().unwrap() += 1;
        }
    };
    let theirs = Configuration::subscriber_of(&configuration);
    let _subscriber =
        RunningSubscriber::start(theirs, sink, provider.clone(), SubscriberDriverOptions::default()).unwrap();
    let values = |_: usize, fields: &mut [DataValue]| {
        for (number, field) in fields.iter_mut().enumerate() {
            *field = DataValue::new(number as u32);
        }
    };
    let publisher =
        RunningPublisher::start(configuration, values, provider, PublisherDriverOptions::default()).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while *complete.lock().unwrap() < 5 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(*complete.lock().unwrap() >= 5);
    let sent = publisher.sent();
    assert!(
        sent.bytes / sent.messages <= 1472 && sent.messages >= 4 * sent.turns && sent.failed == 0,
        "{sent:?}"
    );
    drop(got);
}

#[test]
fn metadata_is_asked_for_at_the_discovery_address() {
    let url = format!("opc.udp://239.1.2.8:{}", port());
    let configuration = configuration(&url, vec![WriterGroup::dynamic("g", 1, 5.0)]);
    let mut theirs = Configuration::subscriber_of(&configuration);
    let reader = &mut theirs.connections[0].reader_groups[0].readers[0];
    reader.meta_data = Default::default();
    let index = taktwerk_pubsub::ReaderIndex { connection: 0, group: 0, reader: 0 };
    let _publisher = publish(&configuration, PublisherDriverOptions::default());
    let provider = Arc::new(AwsPubSubProvider);
    let got = Got::default();
    let subscriber =
        RunningSubscriber::start(theirs, got.clone(), provider, SubscriberDriverOptions::default()).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let mut names = Vec::new();
    while names.is_empty() && Instant::now() < end {
        names = subscriber
            .ask(move |engine, _, _| {
                let fields = engine.meta_data(index).map(|meta_data| meta_data.fields.clone());
                fields.unwrap_or_default().iter().map(|field| field.name.as_str().to_owned()).collect()
            })
            .unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(names, ["count", "value"]);
}

#[test]
fn datagrams_that_do_not_fit_are_refused_and_the_others_sent() {
    let interface = Interface::find("lo").unwrap();
    let mut receiver = UdpReceiver::new("127.0.0.1:0".parse().unwrap(), &interface).unwrap();
    let to = receiver.address().unwrap();
    let sender = UdpSender::new(to, &interface, &UdpOptions::default()).unwrap();
    let (small, large) = (vec![1u8; 100], vec![2u8; 70_000]);
    let mut datagrams: Vec<&[u8]> = vec![&small; 70];
    datagrams[35] = &large;
    let sent = sender.send(&datagrams, None);
    assert_eq!((sent.datagrams, sent.failed, sent.bytes), (69, 1, 6900));
    assert!(sent.error.is_some());
    let mut received = 0;
    let end = Instant::now() + Duration::from_secs(10);
    while received < 69 && Instant::now() < end {
        receiver
            .receive(|datagram| {
                assert_eq!(datagram, small);
                received += 1;
            })
            .unwrap();
    }
    assert_eq!(received, 69);
}

#[test]
fn ethernet_frames_where_permitted() {
    let configuration = |vlan: &str| {
        configuration(&format!("opc.eth://01-00-5e-7f-00-01{vlan}"), vec![WriterGroup::dynamic("g", 1, 5.0)])
    };
    for vlan in ["", ":5.6"] {
        let configuration = configuration(vlan);
        let theirs = Configuration::subscriber_of(&configuration);
        let (provider, got) = (Arc::new(AwsPubSubProvider), Got::default());
        let options = SubscriberDriverOptions::default();
        match RunningSubscriber::start(theirs, got.clone(), provider, options) {
            Ok(_subscriber) => {
                let _publisher = publish(&configuration, PublisherDriverOptions::default());
                ten_in_order(&got);
            }
            // Without the right to raw sockets, the error names the missing capability.
            Err(error @ PubSubError::Socket { .. }) => {
                assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn invalid_configurations_report_why() {
    let provider = || Arc::new(AwsPubSubProvider);
    let start = |configuration: Configuration| {
        let options = PublisherDriverOptions::default();
        RunningPublisher::start(configuration, counting(), provider(), options).unwrap_err().to_string()
    };
    let with = |url: &str| configuration(url, vec![WriterGroup::dynamic("g", 1, 5.0)]);
    assert!(start(with("tcp://x")).contains("opc.udp://"));
    let mut no_interface = with("opc.udp://239.1.2.9:4899");
    no_interface.connections[0].network_interface = "nosuch0".to_owned();
    assert!(start(no_interface).contains("this machine has"));
    assert!(start(with("opc.udp://")).contains("address"));
    let mut anywhere = with("opc.udp://[ff02::1]:4899");
    anywhere.connections[0].network_interface.clear();
    assert!(start(anywhere).contains("name the network interface"));
    let mut twice = with("opc.udp://239.1.2.9:4899");
    twice.connections[0].publisher_id = None;
    assert!(start(twice).contains("publisher id"));
}

/// Recorded messages are not accepted after a restart if the subscriber keeps the received sequence numbers. A
/// subscriber that does not keep them accepts them.
#[test]
fn recorded_messages_are_not_taken_again_after_a_restart() {
    let url = format!("opc.udp://127.0.0.1:{}", port());
    let mut group = WriterGroup::dynamic("g", 1, 5.0);
    group.security.mode = SecurityMode::SignAndEncrypt;
    group.security.security_group_id = "plant".to_owned();
    let configuration = configuration(&url, vec![group]);
    // An attacker has recorded six messages.
    let entropy = Box::new(taktwerk_crypto::SeededEntropy::new(5));
    let options = taktwerk_pubsub::PublisherOptions::default();
    let mut engine =
        taktwerk_pubsub::Publisher::new(configuration.clone(), options, Arc::new(AwsPubSubProvider), entropy)
            .unwrap();
    let (mut recorded, mut values) = (Vec::new(), counting());
    let at = |millis: u64| taktwerk_pubsub::Now {
        instant: taktwerk_types::Instant::from_nanos(millis * 1_000_000),
        utc: taktwerk_types::UtcTime::default(),
    };
    engine.start(at(0).instant, at(0));
    engine.set_keys("plant", Ok(&keys()), at(0)).unwrap();
    for cycle in 0..7 {
        let mut out = taktwerk_pubsub::Transmit::new();
        engine.poll(at(cycle * 5), &mut values, &mut out);
        recorded.extend(out.iter().map(|datagram| datagram.bytes.to_vec()));
    }
    assert_eq!(recorded.len(), 7);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = url.strip_prefix("opc.udp://").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("line.replay");
    let start = |floor: Option<&std::path::Path>| {
        let mut options = SubscriberDriverOptions::default();
        options.keys = Some(Box::new(StaticKeys::new().with("plant", keys())));
        options.replay_floor = floor.map(ToOwned::to_owned);
        let started = subscribe(&configuration, options);
        // Until the subscriber has its keys.
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end
            && started
                .0
                .ask(|engine, _, _| engine.key_timeout())
                .flatten()
                .is_none_or(|due| due.as_nanos() == 0)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        started
    };
    let send = |range: core::ops::Range<usize>| {
        for message in &recorded[range] {
            socket.send_to(message, address).unwrap();
        }
    };
    let counts = |got: &Got, at_least: usize| -> Vec<u32> {
        got.wait(|messages| messages.len() >= at_least).iter().map(|message| message.1).collect()
    };
    let (running, got) = start(Some(&path));
    send(0..5);
    assert_eq!(counts(&got, 5), [1, 2, 3, 4, 5]);
    drop(running);
    let (running, got) = start(Some(&path));
    send(0..6);
    assert_eq!(counts(&got, 1), [6]);
    assert_eq!(running.ask(|engine, _, _| engine.counters().replays), Some(5));
    // Less than a second after the last message, and the owner does not drop it.
    assert!(running.end_within(Duration::from_secs(20)));
    let (other, got) = start(Some(&path));
    send(0..7);
    assert_eq!(counts(&got, 1), [7]);
    drop((running, other));
    // Without the file, the replay cannot be detected.
    let (running, got) = start(None);
    send(0..6);
    assert_eq!(counts(&got, 6).len(), 6);
    drop(running);
    // A corrupt file is reported.
    std::fs::write(&path, "something else").unwrap();
    let mut options = SubscriberDriverOptions::default();
    options.replay_floor = Some(path.clone());
    let reading = Configuration::subscriber_of(&configuration);
    let refused = RunningSubscriber::start(reading, Got::default(), Arc::new(AwsPubSubProvider), options);
    assert!(matches!(refused, Err(PubSubError::ReplayFloor { path: named, .. }) if named == path));
    assert_eq!(std::fs::read(&path).unwrap(), b"something else");
}
