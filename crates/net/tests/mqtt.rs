//! Publishers and subscribers with a mosquitto broker, if it is installed (`lab peers install mosquitto`).

#![allow(clippy::unwrap_used)] // a test may

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::pubsub::mqtt::{
    BrokerStatus, MqttOptions, MqttVersion, QualityOfService, StatusMessages, publisher_link,
    subscriber_inlet,
};
use taktwerk_net::pubsub::{
    Closing, Inlet, PublisherDriverOptions, RunningPublisher, RunningSubscriber, SubscriberChange,
    SubscriberDriverOptions,
};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup};
use taktwerk_pubsub::uadp::announcement::Announcement;
use taktwerk_pubsub::{DataSetMessage, GroupIndex, PublisherId, Sink, SubscriberEvent};
use taktwerk_schema::PubSubState;
use taktwerk_types::{BuiltInType, DataValue, Variant};

fn program() -> Option<PathBuf> {
    let known = [Path::new("/usr/sbin/mosquitto"), Path::new("/usr/local/sbin/mosquitto")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|folder| folder.join("mosquitto"));
    all.find(|file| file.is_file())
        .or_else(|| known.iter().find(|file| file.is_file()).map(|file| file.into()))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A broker that stops when dropped; `None` if mosquitto is not installed.
struct Mosquitto {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Mosquitto {
    fn start(port: u16, tls: Option<(&str, &str)>) -> Option<Self> {
        let program = program();
        let required = std::env::var_os("TAKTWERK_TEST_MOSQUITTO").is_some_and(|wish| wish == "required");
        assert!(program.is_some() || !required, "no mosquitto");
        let program = program?;
        let folder = tempfile::tempdir().unwrap();
        let mut text =
            format!("listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nuser root\n");
        if let Some((certificate, key)) = tls {
            for (name, pem) in [("cert.pem", certificate), ("key.pem", key)] {
                std::fs::write(folder.path().join(name), pem).unwrap();
            }
            let path = |name: &str| folder.path().join(name).display().to_string();
            text.push_str(&format!("certfile {}\nkeyfile {}\n", path("cert.pem"), path("key.pem")));
        }
        let conf = folder.path().join("conf");
        std::fs::File::create(&conf).unwrap().write_all(text.as_bytes()).unwrap();
        let child = Command::new(program)
            .arg("-c")
            .arg(&conf)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let broker = Self { child, _folder: folder };
        assert!(until(|| TcpStream::connect(("127.0.0.1", port)).is_ok()), "mosquitto does not start");
        Some(broker)
    }
}

fn until(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn configuration(url: &str) -> Configuration {
    let is_json = url.contains("+json");
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let fields = vec![field("count", BuiltInType::UInt32), field("value", BuiltInType::Double)];
    configuration.data_sets.push(PublishedDataSet::new("set", fields));
    let mut connection = Connection::new("c", Some(PublisherId::UInt16(7)), url);
    let (mut group, writer) = if is_json {
        (WriterGroup::json("fast", 1, 20.0), DataSetWriter::json("w", 1, "set"))
    } else {
        (WriterGroup::dynamic("fast", 1, 20.0), DataSetWriter::dynamic("w", 1, "set"))
    };
    group.writers.push(writer);
    connection.writer_groups.push(group);
    configuration.connections.push(connection);
    configuration
}

fn options(version: MqttVersion, quality: QualityOfService) -> MqttOptions {
    let mut options = MqttOptions::default();
    (options.version, options.quality_of_service) = (version, quality);
    options
}

fn publish(configuration: &Configuration, options: &MqttOptions) -> (RunningPublisher, BrokerStatus) {
    let (link, status) = publisher_link(&configuration.connections[0], options).unwrap();
    let mut driver = PublisherDriverOptions::default();
    driver.links.push((0, link));
    let mut count = 0u32;
    let values = move |_: usize, fields: &mut [DataValue]| {
        count += 1;
        fields[0] = DataValue::new(count);
        fields[1] = DataValue::new(f64::from(count) / 4.0);
    };
    let provider = Arc::new(AwsPubSubProvider);
    (RunningPublisher::start(configuration.clone(), values, provider, driver).unwrap(), status)
}

type Counts = Arc<Mutex<Vec<(u32, Vec<String>)>>>;

fn subscribe(
    configuration: &Configuration,
    options: &MqttOptions,
) -> (RunningSubscriber, BrokerStatus, Counts) {
    let (inlet, status) = subscriber_inlet(&configuration.connections[0], options).unwrap();
    let mut driver = SubscriberDriverOptions::default();
    driver.inlets.push((0, inlet));
    let counts = Counts::default();
    let theirs = Arc::clone(&counts);
    let sink = move |message: &DataSetMessage<'_>| {
        let count = match message.fields.first().and_then(|field| field.value.value.clone()) {
            Some(Variant::UInt32(count)) => count,
            _ => return,
        };
        let names = message.meta_data.fields.iter().map(|field| field.name.as_str().to_owned()).collect();
        theirs.lock().unwrap().push((count, names));
    };
    let provider = Arc::new(AwsPubSubProvider);
    let running = RunningSubscriber::start(configuration.clone(), sink, provider, driver).unwrap();
    (running, status, counts)
}

fn in_order(counts: &Counts, at_least: usize) {
    assert!(until(|| counts.lock().unwrap().len() >= at_least), "{:?}", counts.lock().unwrap().len());
    let counts = counts.lock().unwrap();
    assert!(counts.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "{counts:?}");
}

#[test]
fn binary_and_json_in_both_versions_and_all_qualities() {
    let port = free_port();
    let Some(_broker) = Mosquitto::start(port, None) else { return };
    let cases = [
        ("mqtt", MqttVersion::V311, QualityOfService::AtMostOnce),
        ("mqtt", MqttVersion::V5, QualityOfService::ExactlyOnce),
        ("mqtt+json", MqttVersion::V311, QualityOfService::AtLeastOnce),
        ("mqtt+json", MqttVersion::V5, QualityOfService::AtMostOnce),
    ];
    for (scheme, version, quality) in cases {
        let configuration = configuration(&format!("{scheme}://127.0.0.1:{port}"));
        let mut options = options(version, quality);
        options.prefix = format!("{scheme}-{version:?}-{quality:?}").to_lowercase().replace('+', "-");
        let theirs = Configuration::subscriber_of(&configuration);
        let (_subscriber, heard, counts) = subscribe(&theirs, &options);
        assert!(until(|| heard.is_connected()), "{}", heard.error());
        let (publisher, status) = publish(&configuration, &options);
        in_order(&counts, 10);
        assert_eq!(status.connections(), 1);
        assert_eq!((status.outbox().1, heard.lost()), (0, 0));
        publisher.stop();
    }
}

#[test]
fn a_plain_mqtt_client_reads_the_json_and_the_retained_metadata() {
    let port = free_port();
    let Some(_broker) = Mosquitto::start(port, None) else { return };
    let configuration = configuration(&format!("mqtt+json://127.0.0.1:{port}"));
    let options = options(MqttVersion::V311, QualityOfService::AtMostOnce);
    let (publisher, _) = publish(&configuration, &options);
    assert!(until(|| publisher.sent().messages > 5));
    // Subscribed after the metadata was sent, which therefore arrives only because it is retained.
    let settings = rumqttc::MqttOptions::new("plain", "127.0.0.1", port);
    let (client, mut connection) = rumqttc::Client::new(settings, 10);
    client.subscribe("opcua/json/#", rumqttc::QoS::AtMostOnce).unwrap();
    let (mut data, mut meta_data) = (None, None);
    let end = Instant::now() + Duration::from_secs(30);
    while (data.is_none() || meta_data.is_none()) && Instant::now() < end {
        let Ok(Ok(event)) = connection.recv_timeout(Duration::from_secs(1)) else { continue };
        let rumqttc::Event::Incoming(rumqttc::Packet::Publish(publish)) = event else { continue };
        let json: serde_json::Value = serde_json::from_slice(&publish.payload).unwrap();
        match publish.topic.as_str() {
            "opcua/json/data/7/fast" => data = Some(json),
            "opcua/json/metadata/7/fast/w" => {
                assert!(publish.retain);
                meta_data = Some(json);
            }
            _ => {}
        }
    }
    let (data, meta_data) = (data.unwrap(), meta_data.unwrap());
    assert_eq!(data["MessageType"], "ua-data", "{data}");
    assert_eq!(data["PublisherId"], "7");
    let payload = &data["Messages"][0]["Payload"];
    let number = |field: &str| {
        let value = &payload[field];
        value.as_f64().or_else(|| value["Value"].as_f64()).unwrap()
    };
    assert_eq!(number("value"), number("count") / 4.0, "{data}");
    assert_eq!(meta_data["MessageType"], "ua-metadata", "{meta_data}");
    assert_eq!(meta_data["MetaData"]["Fields"][0]["Name"], "count");
}

#[test]
fn a_subscriber_learns_from_retained_metadata() {
    let port = free_port();
    let Some(_broker) = Mosquitto::start(port, None) else { return };
    let configuration = configuration(&format!("mqtt://127.0.0.1:{port}"));
    let options = options(MqttVersion::V311, QualityOfService::AtLeastOnce);
    let (publisher, _) = publish(&configuration, &options);
    assert!(until(|| publisher.sent().messages > 5));
    let mut theirs = Configuration::subscriber_of(&configuration);
    theirs.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let (_subscriber, _, counts) = subscribe(&theirs, &options);
    assert!(until(|| {
        let counts = counts.lock().unwrap();
        counts.last().is_some_and(|(_, names)| names == &["count", "value"])
    }));
}

#[test]
fn publisher_and_subscriber_survive_a_broker_restart() {
    let port = free_port();
    let Some(broker) = Mosquitto::start(port, None) else { return };
    let configuration = configuration(&format!("mqtt://127.0.0.1:{port}"));
    let mut options = options(MqttVersion::V311, QualityOfService::AtMostOnce);
    options.outbox = 10;
    let (_subscriber, heard, counts) = subscribe(&Configuration::subscriber_of(&configuration), &options);
    let (publisher, status) = publish(&configuration, &options);
    assert!(until(|| counts.lock().unwrap().len() >= 5));
    drop(broker);
    assert!(until(|| !status.is_connected() && !status.error().is_empty()));
    // Publishing continues; the outbox is bounded, and dropped messages are counted.
    let before = publisher.sent().turns;
    assert!(until(|| status.outbox().1 >= 20 && publisher.sent().turns >= before + 20));
    let group = GroupIndex { connection: 0, group: 0 };
    let failed = publisher.ask(move |engine, _| engine.counters(group).failed_transmissions).unwrap();
    assert!(failed >= 20, "dropped messages count as failed: {failed}");
    assert!(status.outbox().0 <= 10);
    let last = counts.lock().unwrap().last().unwrap().0;
    let _broker = Mosquitto::start(port, None).unwrap();
    assert!(until(|| counts.lock().unwrap().last().unwrap().0 > last + 20), "{status:?} {heard:?}");
    assert!(status.connections() >= 2 && heard.connections() >= 2);
    // The new broker has no state, so metadata must have been announced again.
    let mut theirs = Configuration::subscriber_of(&configuration);
    theirs.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let (_late, _, names) = subscribe(&theirs, &options);
    assert!(until(|| names.lock().unwrap().last().is_some_and(|(_, names)| names.len() == 2)));
}

#[test]
fn tls_needs_the_configured_authority() {
    let port = free_port();
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let Some(_broker) = Mosquitto::start(port, Some((&certificate, &key))) else { return };
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, &certificate).unwrap();
    let configuration = configuration(&format!("mqtts://localhost:{port}"));
    for version in [MqttVersion::V311, MqttVersion::V5] {
        let mut options = options(version, QualityOfService::AtLeastOnce);
        options.ca_file = Some(ca_file.clone());
        options.prefix = format!("tls-{version:?}").to_lowercase();
        let (_subscriber, heard, counts) = subscribe(&Configuration::subscriber_of(&configuration), &options);
        assert!(until(|| heard.is_connected()), "{}", heard.error());
        let (_publisher, _) = publish(&configuration, &options);
        in_order(&counts, 5);
    }
    // Another authority has not signed this broker's certificate.
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&ca_file, other.cert.pem()).unwrap();
    let mut options = options(MqttVersion::V311, QualityOfService::AtMostOnce);
    options.ca_file = Some(ca_file);
    let (_publisher, status) = publish(&configuration, &options);
    assert!(until(|| !status.error().is_empty()));
    assert_eq!(status.connections(), 0);
}

/// Waits until a status topic has a value, as a plain client sees it.
fn status_is(connection: &mut rumqttc::Connection, topic: &str, wanted: u64) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        let Ok(Ok(event)) = connection.recv_timeout(Duration::from_secs(1)) else { continue };
        let rumqttc::Event::Incoming(rumqttc::Packet::Publish(publish)) = event else { continue };
        let json: serde_json::Value = serde_json::from_slice(&publish.payload).unwrap();
        assert_eq!((publish.topic.as_str(), &json["MessageType"]), (topic, &"ua-status".into()), "{json}");
        assert_eq!((&json["PublisherId"], &json["IsCyclic"]), (&"7".into(), &false.into()));
        if json["Status"] == wanted {
            return true;
        }
    }
    false
}

#[test]
fn the_broker_publishes_the_status_of_a_publisher() {
    const OPERATIONAL: u64 = 2;
    const ERROR: u64 = 3;
    const DISABLED: u64 = 0;
    let port = free_port();
    let Some(_broker) = Mosquitto::start(port, None) else { return };
    for version in [MqttVersion::V311, MqttVersion::V5] {
        let configuration = configuration(&format!("mqtt+json://127.0.0.1:{port}"));
        let mut options = options(version, QualityOfService::AtMostOnce);
        options.prefix = format!("status-{version:?}").to_lowercase();
        options.client_id = format!("one-{version:?}");
        let topic = format!("{}/json/status/7", options.prefix);
        let watch = |name: &str| {
            let settings = rumqttc::MqttOptions::new(name, "127.0.0.1", port);
            let (client, connection) = rumqttc::Client::new(settings, 10);
            client.subscribe(topic.as_str(), rumqttc::QoS::AtLeastOnce).unwrap();
            (client, connection)
        };
        let (publisher, status) = publish(&configuration, &options);
        let (_client, mut watching) = watch("watching");
        assert!(status_is(&mut watching, &topic, OPERATIONAL));
        // A client with the same id takes over the session, and the broker publishes the will. Then the publisher
        // reconnects.
        let thief = rumqttc::MqttOptions::new(options.client_id.as_str(), "127.0.0.1", port);
        let (thief, mut connection) = rumqttc::Client::new(thief, 10);
        let mut is_in = false;
        for _ in 0..20 {
            let event = connection.recv_timeout(Duration::from_secs(1));
            is_in |= matches!(event, Ok(Ok(rumqttc::Event::Incoming(rumqttc::Packet::ConnAck(_)))));
            if is_in {
                break;
            }
        }
        assert!(is_in);
        assert!(status_is(&mut watching, &topic, ERROR));
        thief.disconnect().unwrap();
        while connection.recv_timeout(Duration::from_secs(1)).is_ok_and(|event| event.is_ok()) {}
        assert!(status_is(&mut watching, &topic, OPERATIONAL));
        assert!(status.connections() >= 2);
        publisher.stop();
        assert!(status_is(&mut watching, &topic, DISABLED));
        // Retained, so later subscribers receive it, too.
        let (_client, mut late) = watch("late");
        assert!(status_is(&mut late, &topic, DISABLED));
    }
}

/// Receives values and Status messages.
#[derive(Default)]
struct Told(Arc<Mutex<Vec<(String, PubSubState, bool)>>>);

impl Sink for Told {
    fn message(&mut self, _: &DataSetMessage<'_>) {}

    fn event(&mut self, event: SubscriberEvent) {
        if let SubscriberEvent::Announcement { publisher_id: Some(id), announcement, .. } = event
            && let Announcement::Status { state, cyclic } = announcement.announcement
        {
            self.0.lock().unwrap().push((id.to_string(), state, cyclic.is_some()));
        }
    }
}

#[test]
fn subscribers_receive_status_and_removal_does_not_block() {
    let port = free_port();
    let Some(_broker) = Mosquitto::start(port, None) else { return };
    for scheme in ["mqtt", "mqtt+json"] {
        let sending = configuration(&format!("{scheme}://127.0.0.1:{port}"));
        let receiving = Configuration::subscriber_of(&sending);
        let mut options = options(MqttVersion::V311, QualityOfService::AtMostOnce);
        options.prefix = format!("told-{}", scheme.len());
        options.receive_status = true;
        let (inlet, _status) = subscriber_inlet(&receiving.connections[0], &options).unwrap();
        let mut driver = SubscriberDriverOptions::default();
        driver.inlets.push((0, inlet));
        let told = Told::default();
        let heard = Arc::clone(&told.0);
        let provider = Arc::new(AwsPubSubProvider);
        let subscriber = RunningSubscriber::start(receiving, told, provider, driver).unwrap();
        let has = |state: PubSubState, is_cyclic: bool| {
            let heard = Arc::clone(&heard);
            move || heard.lock().unwrap().contains(&("7".to_owned(), state, is_cyclic))
        };
        let (publisher, _) = publish(&sending, &options);
        assert!(until(has(PubSubState::OPERATIONAL, false)), "{scheme}");
        publisher.stop();
        assert!(until(has(PubSubState::DISABLED, false)), "{scheme}");
        // With a shared PublisherId, Status messages are cyclic and there is none at the end.
        options.status = StatusMessages::Cyclic(Duration::from_millis(20));
        let (publisher, _) = publish(&sending, &options);
        let cyclic = || heard.lock().unwrap().iter().filter(|(_, _, is_cyclic)| *is_cyclic).count();
        assert!(until(|| cyclic() >= 5), "{scheme}");
        publisher.stop();
        let last = heard.lock().unwrap().last().cloned();
        assert_eq!(last, Some(("7".to_owned(), PubSubState::OPERATIONAL, true)), "{scheme}");
        // The subscriber's thread closes no connection itself.
        let closed = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&closed);
        let name = move || std::thread::current().name().map(str::to_owned);
        let slow = Slow { event: eventfd(), closed: Box::new(move || *theirs.lock().unwrap() = name()) };
        let mut change = SubscriberChange::new(Configuration::subscriber_of(&sending));
        change.inlets.push((0, Box::new(move || Ok(Box::new(slow) as Box<dyn Inlet>))));
        subscriber.reconfigure(change).unwrap();
        subscriber
            .reconfigure(SubscriberChange::new(Configuration { enabled: true, ..Default::default() }))
            .unwrap();
        assert!(until(|| closed.lock().unwrap().is_some()));
        assert_eq!(closed.lock().unwrap().as_deref(), Some("pubsub-close"));
        subscriber.stop();
    }
}

fn eventfd() -> std::os::fd::OwnedFd {
    rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap()
}

/// An inlet that is slow to close.
struct Slow {
    event: std::os::fd::OwnedFd,
    closed: Box<dyn FnOnce() + Send>,
}

impl Inlet for Slow {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.event)
    }

    fn receive(&mut self, _: &mut dyn FnMut(&mut [u8])) -> std::io::Result<bool> {
        Ok(false)
    }

    fn close(self: Box<Self>) -> Option<Closing> {
        Some(self.closed)
    }
}

/// A slow or distant broker: it answers a CONNECT after several intervals in which the driver polls for other work.
#[test]
fn slow_brokers_are_waited_for() {
    for (version, answer) in
        [(MqttVersion::V311, &[0x20, 2, 0, 0][..]), (MqttVersion::V5, &[0x20, 3, 0, 0, 0][..])]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&attempts);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                std::thread::sleep(Duration::from_millis(450));
                let _ = stream.write_all(answer);
                theirs.lock().unwrap().push(stream);
            }
        });
        let configuration = configuration(&format!("mqtt://127.0.0.1:{port}"));
        let (publisher, status) = publish(&configuration, &options(version, QualityOfService::AtMostOnce));
        assert!(until(|| status.is_connected()), "{version:?}: {}", status.error());
        publisher.stop();
        assert_eq!(attempts.lock().unwrap().len(), 1, "{version:?}: connected at the first attempt");
    }
}
