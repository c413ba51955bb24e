//! Streams of values.

use crate::plant::{Plant, plant};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use taktwerk::Variable;

impl Plant {
    /// Opens a stream of values.
    fn live(&self) -> TcpStream {
        let body = json!({ "nodes": ["ns=2;s=Boiler/Temperature", "i=999999"], "interval": 100 }).to_string();
        let mut stream = self.connect();
        let request = format!(
            "POST /api/live HTTP/1.1\r\nHost: localhost\r\nX-CSRF-Token: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.csrf(),
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Waits until the server has `count` subscriptions.
    fn wait_for_subscriptions(&self, count: u64, patience: Duration) {
        let end = std::time::Instant::now() + patience;
        while self.get("/api/server").json()["subscriptionCount"] != json!(count) {
            assert!(std::time::Instant::now() < end, "there are not {count} subscriptions");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn streams_of_closed_connections_end_at_once() {
    let plant = plant(|_| {});
    let streams: Vec<TcpStream> = (0..5).map(|_| plant.live()).collect();
    plant.wait_for_subscriptions(5, Duration::from_secs(60));
    drop(streams);
    // Sooner than the next keep-alive comment after 15 seconds would fail.
    plant.wait_for_subscriptions(0, Duration::from_secs(10));
}

#[test]
fn one_shot_streams_end_after_the_first_values() {
    let plant = plant(|_| {});
    let token = format!("X-CSRF-Token: {}\r\n", plant.csrf());
    let nodes = ["ns=2;s=Boiler/Temperature", "i=999999"];
    let body = json!({ "nodes": nodes, "interval": 100, "once": true }).to_string();
    let answer = plant.send("POST", "/api/live", &token, &body);
    assert!(answer.status == 200 && answer.body.contains("[[0,21.5]]"), "{}", answer.body);
    // Also if no item has a value.
    let body = json!({ "nodes": ["i=999999"], "interval": 100, "once": true }).to_string();
    let answer = plant.send("POST", "/api/live", &token, &body);
    assert!(answer.status == 200 && answer.body.contains("NodeIdUnknown"), "{}", answer.body);
    plant.wait_for_subscriptions(0, Duration::from_secs(10));
}

/// Open streams end when their user logs off or is replaced.
#[test]
fn streams_end_with_the_login() {
    let plant = plant(|_| {});
    let login = || {
        let answer =
            plant.send("POST", "/api/login", "", &json!({ "user": "ada", "password": "secret" }).to_string());
        let cookie = answer.cookie();
        let csrf = plant.send("GET", "/api/session", &cookie, "").json()["csrf"].as_str().unwrap().to_owned();
        format!("{cookie}X-CSRF-Token: {csrf}\r\n")
    };
    let stream = |headers: &str| {
        let body = json!({ "nodes": ["ns=2;s=Boiler/Temperature"], "interval": 100 }).to_string();
        let mut stream = plant.connect();
        let request = format!(
            "POST /api/live HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let rest = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.contains("event: items"), "{text}");
    };
    let first = login();
    let open = stream(&first);
    plant.wait_for_subscriptions(1, Duration::from_secs(20));
    assert_eq!(plant.send("POST", "/api/logout", &first, "{}").status, 204);
    rest(open);
    // Visitors with an open page are not idle: if all eight have one, the oldest login is replaced.
    let mut streams: Vec<TcpStream> = (0..8).map(|_| stream(&login())).collect();
    plant.wait_for_subscriptions(8, Duration::from_secs(20));
    login();
    rest(streams.remove(0));
    plant.wait_for_subscriptions(7, Duration::from_secs(20));
}

#[test]
fn changes_arrive_as_events() {
    let plant = plant(|_| {});
    let stream = plant.live();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = || -> Value {
        let line = lines.find(|line| line.starts_with("data: ")).unwrap();
        serde_json::from_str(&line[6..]).unwrap()
    };
    let items = next();
    assert_eq!(items[0], Value::Null);
    assert!(items[1].as_str().unwrap().contains("NodeIdUnknown"), "{items}");
    let first = next();
    assert_eq!(first["changes"], json!([[0, 21.5]]));
    assert!(first["time"].as_i64().is_some_and(|time| time > 1_700_000_000_000), "{first}");
    plant.temperature.set(22.5);
    assert_eq!(next()["changes"], json!([[0, 22.5]]));
}

const VALUE_LEN: usize = 900;
const NODES: usize = 1_000;
const STREAMS: usize = 4;

impl Plant {
    /// The value of a metric without labels.
    fn metric(&self, name: &str) -> usize {
        let text = self.get("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("there is no metric {name}")).parse::<f64>().unwrap() as usize
    }

    /// Opens a stream of these variables with a small receive buffer, which is not read.
    fn unread(&self, runtime: &tokio::runtime::Runtime, variables: &[Variable<String>]) -> TcpStream {
        let address = self.web.address();
        let mut stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4_096).unwrap();
            socket.connect(address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        let nodes: Vec<String> = variables.iter().map(|variable| variable.id().to_string()).collect();
        let body = json!({ "nodes": nodes, "interval": 100 }).to_string();
        let head = format!(
            "POST /api/live HTTP/1.1\r\nHost: localhost\r\nX-CSRF-Token: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.csrf(),
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        stream
    }
}

/// However often its nodes change, a page that does not read costs one state of them.
#[test]
fn streams_that_are_not_read_keep_only_the_newest_values() {
    let plant = plant(|_| {});
    let line = plant.namespace.object("Line").add().unwrap();
    let add = |number: usize| line.variable(&format!("Text {number}"), "x".repeat(VALUE_LEN)).add().unwrap();
    let variables: Vec<Variable<String>> = (0..NODES).map(add).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let unread: Vec<TcpStream> = (0..STREAMS).map(|_| plant.unread(&runtime, &variables)).collect();
    plant.wait_for_subscriptions(STREAMS as u64, Duration::from_secs(60));
    assert_eq!(plant.metric("taktwerk_dashboard_streams"), STREAMS);
    // An entry has up to 128 bytes beside its content in quotation marks.
    let whole = STREAMS * NODES * (VALUE_LEN + 2 + 128);
    let end = std::time::Instant::now() + Duration::from_secs(120);
    let mut rounds_when_full = 0;
    for round in 0.. {
        for variable in &variables {
            variable.set(format!("{round:0VALUE_LEN$}"));
        }
        std::thread::sleep(Duration::from_millis(100));
        let waiting = plant.metric("taktwerk_dashboard_stream_backlog_bytes");
        assert!(waiting <= whole, "{waiting} bytes wait after {round} rounds; one state has {whole}");
        // The buffers of the system are full, and every further change meets one that was not sent.
        rounds_when_full += u32::from(waiting > whole * 9 / 10);
        if rounds_when_full >= 20 {
            break;
        }
        assert!(std::time::Instant::now() < end, "the backlog never fills: {waiting} bytes of {whole}");
    }
    // Others are not affected.
    let mut lines = BufReader::new(plant.live()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("[[0,21.5]]")));
    drop(unread);
    drop(lines);
    plant.wait_for_subscriptions(0, Duration::from_secs(20));
    assert_eq!(plant.metric("taktwerk_dashboard_stream_backlog_bytes"), 0);
}
