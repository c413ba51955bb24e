//! `taktwerk tune URL` reads a running server, and leaves it as it was.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use taktwerk::server::{BuildInfo, Server};
use taktwerk_lab::program::{Program, Running};
use taktwerk_schema::ids::variable_ids as ids;
use taktwerk_schema::{ActivateSessionRequest, GetEndpointsRequest, PublishRequest};
use taktwerk_schema::{
    BrowseNextRequest, BrowseRequest, CloseSecureChannelRequest, CloseSessionRequest,
    CreateMonitoredItemsRequest, CreateSessionRequest, CreateSubscriptionRequest, ReadRequest,
};
use taktwerk_types::Structure;

const LIMIT: Duration = Duration::from_secs(120);

fn taktwerk() -> Program {
    Program::new(env!("CARGO_BIN_EXE_taktwerk"))
}

/// Three signals that change every 50 ms, two that change every 200 ms, and the interop nodes, of which only the counter
/// changes, every 100 ms.
fn server() -> Running {
    taktwerk()
        .args(["serve", "--no-plant", "--port", "0", "--policy", "None", "--exit-with-stdin", "--interop"])
        .args(["--signal-set", "3:50:4", "--signal-set", "2:200:8"])
        .serve(LIMIT)
        .unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = taktwerk().args(arguments).arg("--json").run(LIMIT).unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The numbers of requests by the id of their encoding, of all connections of a relay.
type Requests = Arc<Mutex<BTreeMap<u16, u32>>>;

/// A relay in front of a server that counts the requests of the clients.
fn counting(server: &Running) -> (String, Requests) {
    let address: SocketAddr =
        server.url().trim_start_matches("opc.tcp://").trim_end_matches('/').parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("opc.tcp://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let counted = Arc::clone(&requests);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(address).unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            let counted = Arc::clone(&counted);
            thread::spawn(move || relay(client, server, &counted));
        }
    });
    (url, requests)
}

/// Relays chunks (Part 6 §6.7.2), and counts those that begin a request.
fn relay(mut client: TcpStream, mut server: TcpStream, requests: &Requests) {
    let mut header = [0; 8];
    let mut is_begun = false;
    while client.read_exact(&mut header).is_ok() {
        let len = u32::from_le_bytes(header[4..].try_into().unwrap()) as usize;
        let mut rest = vec![0; len - header.len()];
        if client.read_exact(&mut rest).is_err() {
            return;
        }
        // After channel, token and sequence: the NodeId of the encoding, with two bytes for the number.
        if &header[..3] == b"MSG" {
            if !is_begun {
                assert_eq!(rest[16..18], [1, 0], "an encoding of namespace 0");
                *requests.lock().unwrap().entry(u16::from_le_bytes([rest[18], rest[19]])).or_default() += 1;
            }
            is_begun = header[3] == b'C';
        }
        if server.write_all(&header).and_then(|()| server.write_all(&rest)).is_err() {
            return;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Write);
}

/// A counter of the server's diagnostics.
fn counter(server: &Running, number: u32) -> u64 {
    let read = json(&["read", server.url(), &format!("i={number}")]);
    read[0]["Value"].as_u64().unwrap_or_else(|| panic!("{read}"))
}

/// All values of the interop nodes.
fn values(server: &Running) -> Value {
    let names = ["Boolean", "Double", "Int32", "String"].map(|name| format!("ns=2;s=scalar/{name}"));
    let mut arguments = vec!["read", server.url()];
    arguments.extend(names.iter().map(String::as_str));
    let mut read = json(&arguments);
    for one in read.as_array_mut().unwrap() {
        // The time of the answer.
        one.as_object_mut().unwrap().remove("ServerTimestamp");
    }
    read
}

#[test]
fn a_running_server_is_only_read_and_left_as_it_was() {
    let server = server();
    let before = values(&server);
    let sessions =
        counter(&server, ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CUMULATED_SESSION_COUNT);
    let (url, requests) = counting(&server);
    let told = json(&["tune", &url, "--watch", "3", "--no-simulation", "--set", "link=ppp-2m"]);

    // What it has seen: six of the variables change, in three groups.
    assert_eq!(told["signals"], 6, "{told:#}");
    let rate = told["values_per_s"].as_f64().unwrap();
    assert!((rate / 80.0 - 1.0).abs() < 0.15, "{rate}");
    let notes =
        told["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    assert!(notes.contains("6 change") && notes.contains("a read takes"), "{notes}");
    // This server follows writes.
    assert!(!notes.contains("follows_writes"), "{notes}");
    // A revised limit of the server: it is the shortest interval of the search.
    let shortest = notes.split("publishing interval that it grants is ").nth(1).unwrap();
    let shortest: f64 = shortest.split(' ').next().unwrap().parse().unwrap();
    assert!(shortest > 0.0 && told["recommended"]["publishing_ms"].as_f64().unwrap() >= shortest, "{notes}");

    // What it has sent: nothing but these, and few of them.
    let requests = requests.lock().unwrap().clone();
    let count = |id: u32| requests.get(&(id as u16)).copied().unwrap_or(0);
    let allowed = [
        GetEndpointsRequest::BINARY_ENCODING_ID,
        CreateSessionRequest::BINARY_ENCODING_ID,
        ActivateSessionRequest::BINARY_ENCODING_ID,
        ReadRequest::BINARY_ENCODING_ID,
        BrowseRequest::BINARY_ENCODING_ID,
        BrowseNextRequest::BINARY_ENCODING_ID,
        CreateSubscriptionRequest::BINARY_ENCODING_ID,
        CreateMonitoredItemsRequest::BINARY_ENCODING_ID,
        PublishRequest::BINARY_ENCODING_ID,
        CloseSessionRequest::BINARY_ENCODING_ID,
        CloseSecureChannelRequest::BINARY_ENCODING_ID,
    ];
    let others: Vec<_> = requests.keys().filter(|id| !allowed.contains(&u32::from(**id))).collect();
    assert!(others.is_empty(), "{others:?} of {requests:?}");
    assert_eq!(count(CreateSessionRequest::BINARY_ENCODING_ID), 1, "{requests:?}");
    assert_eq!(count(CloseSessionRequest::BINARY_ENCODING_ID), 1, "{requests:?}");
    assert!((1..=2).contains(&count(CreateSubscriptionRequest::BINARY_ENCODING_ID)), "{requests:?}");
    assert!(count(CreateMonitoredItemsRequest::BINARY_ENCODING_ID) >= 1, "{requests:?}");
    assert!(count(ReadRequest::BINARY_ENCODING_ID) >= 12, "round trips, and capabilities: {requests:?}");

    // What is left: nothing. The reader of the counters has the only session.
    assert_eq!(values(&server), before);
    let summary = |id| counter(&server, id);
    assert_eq!(summary(ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CURRENT_SESSION_COUNT), 1);
    assert_eq!(
        summary(ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CURRENT_SUBSCRIPTION_COUNT),
        0
    );
    assert!(
        summary(ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CUMULATED_SESSION_COUNT)
            > sessions + 1
    );
}

#[test]
fn a_server_whose_values_do_not_change_is_told() {
    let server = server();
    let arguments = ["tune", server.url(), "--watch", "1", "--node", "ns=2;s=scalar/Double"];
    let output = taktwerk().args(arguments).run(LIMIT).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("none of 1 variables") && said.contains("--watch"), "{said}");
}

#[test]
fn nodes_that_the_server_does_not_have_are_told_at_once() {
    let server = server();
    let arguments =
        ["tune", server.url(), "--watch", "100", "--node", "ns=2;s=scalar/Double", "--node", "ns=2;s=none"];
    let output = taktwerk().args(arguments).run(LIMIT / 2).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("--node ns=2;s=none: BadNodeIdUnknown"), "{said}");
}

#[test]
fn servers_of_others_are_not_promised_to_follow_writes() {
    let build = BuildInfo::new("Example", "Boiler control", "1.2");
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build_info(build).build().unwrap();
    let level = server.namespace("urn:plant").variable("Level", 0.0).add().unwrap();
    let running = server.spawn().unwrap();
    let (stop, is_stopped) = channel::<()>();
    let writer = thread::spawn(move || {
        let mut value = 0.0;
        while is_stopped
            .recv_timeout(Duration::from_millis(100))
            .is_err_and(|error| error == RecvTimeoutError::Timeout)
        {
            value += 1.0;
            level.set(value);
        }
    });
    let url = running.url();
    // A busy machine writes later, and 50 ms are in step with 100 ms only.
    let search = ["--set", "tune.search.publishing_ms=50", "--set", "signals.0.period_ms=100"];
    let fixed = [&["tune", &url, "--watch", "2", "--no-simulation"][..], &search].concat();
    let told = json(&fixed);
    let notes = told["notes"].to_string();
    assert!(notes.contains("Boiler control") && notes.contains("follows_writes=true"), "{notes}");
    let delay = |told: &Value| told["recommended"]["delay_mean_ms"].as_f64().unwrap();
    // Half an interval, or none: the values change every 100 ms.
    assert!((24.0..30.0).contains(&delay(&told)), "{told:#}");
    let followed = json(&[&fixed[..], &["--set", "tune.follows_writes=true"]].concat());
    assert!(delay(&followed) < 2.0, "{followed:#}");
    drop(stop);
    writer.join().unwrap();
}
