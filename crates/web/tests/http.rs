//! A web server with a real server, used by browsers, scrapers and attackers.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use taktwerk::history::{
    HistoryStore, HistoryValue, MemoryStore, NodeKey, Order, ReadLimit, Span, StoreError,
};
use taktwerk::pki::Pki;
use taktwerk::{MessageSecurityMode, RunningServer, SecurityPolicy, Server, StatusCode, UtcTime, Variable};
use taktwerk_pki::{CertificateSettings, NewKey};
use taktwerk_server::authorization::{Authorization, IdentityRule};
use taktwerk_server::{Accepted, Credential, IdentityVerifier, Verification};
use taktwerk_web::sources::{DestinationState, SourceList, SourceState};
use taktwerk_web::{HistoryMetrics, Settings, Subject, WebServer};

#[derive(Debug)]
struct OneSource;

impl SourceList for OneSource {
    fn sources(&self) -> Vec<SourceState> {
        vec![SourceState {
            name: "plc".to_owned(),
            description: "Modbus TCP 192.0.2.7:502".to_owned(),
            tags: 3,
            lost: 1,
            invalid: 4,
            missed: 5,
            write_errors: 6,
            last_answer: Some(1_700_000_000_123),
            incomplete: Some("too many nodes".to_owned()),
            ..SourceState::default()
        }]
    }

    fn destinations(&self) -> Vec<DestinationState> {
        vec![DestinationState {
            name: "archive".to_owned(),
            description: "files in /var/values".to_owned(),
            queued: 7,
            parked: 1,
            queued_bytes: 300,
            queue_bytes_max: 1000,
            oldest: Some(1_700_000_000_456),
            dropped: 2,
            last_error: Some("disk full".to_owned()),
            ..DestinationState::default()
        }]
    }
}

/// A verifier with the users ada, bob, eve, and new, who has to change the password.
#[derive(Default, Clone)]
struct Users {
    /// Set when eve has to change the password too.
    is_eve_limited: Arc<AtomicBool>,
    /// Set when bob's password has changed.
    has_bob_changed: Arc<AtomicBool>,
    /// Number of refused logins.
    refused: Arc<AtomicU32>,
}

impl IdentityVerifier for Users {
    fn verify(&self, credential: Credential) -> Verification {
        let Credential::Password { user_name, password } = credential else { return Verification::refused() };
        let is_limited = self.is_eve_limited.load(Ordering::Relaxed);
        let has_changed = self.has_bob_changed.load(Ordering::Relaxed);
        Verification::Now(match (&*user_name, password.expose()) {
            ("ada", b"secret") => Ok(Accepted::default()),
            ("bob", b"secret") if !has_changed => Ok(Accepted::default()),
            ("bob", b"another") if has_changed => Ok(Accepted::default()),
            ("eve", b"secret") if !is_limited => Ok(Accepted::default()),
            ("new" | "eve", b"secret") => Ok(Accepted::default().changing_password()),
            _ => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(StatusCode::BAD_USER_ACCESS_DENIED)
            }
        })
    }

    fn still_knows(&self, user_name: &str, _: u64) -> bool {
        match user_name {
            "eve" => !self.is_eve_limited.load(Ordering::Relaxed),
            "bob" => !self.has_bob_changed.load(Ordering::Relaxed),
            _ => true,
        }
    }
}

/// A server with one variable and its web server.
struct Plant {
    web: WebServer,
    temperature: Variable<f64>,
    running: RunningServer,
    users: Users,
}

fn plant(change: impl FnOnce(&mut Settings)) -> Plant {
    plant_with(Arc::new(MemoryStore::new(10_000)), change)
}

fn plant_with(store: Arc<dyn HistoryStore>, change: impl FnOnce(&mut Settings)) -> Plant {
    let users = Users::default();
    let mut authorization = Authorization::open();
    let administrators = ["eve", "new"].map(|name| IdentityRule::UserName(name.to_owned()));
    authorization.role_mut("ConfigureAdmin").unwrap().identities.extend(administrators);
    let server = Server::builder()
        .application_name("Web test")
        .authorization(authorization)
        .bind("127.0.0.1:0")
        .anonymous()
        .users(users.clone())
        .allow_clear_passwords()
        .history(store)
        .build()
        .unwrap();
    let boiler = server.namespace("urn:web-test").object("Boiler").add().unwrap();
    let temperature =
        boiler.variable("Temperature", 21.5).range(0.0..=150.0).writable().historize().add().unwrap();
    temperature.alarm().high(100.0).severity(700).add().unwrap();
    let running = server.spawn().unwrap();
    let recorder = running.recorder().unwrap();
    let subject = Subject {
        shared: Arc::clone(running.shared()),
        url: running.url(),
        server_pki: None,
        dashboard: None,
        is_anonymous_allowed: true,
        collectors: vec![Arc::new(HistoryMetrics(Arc::clone(recorder)))],
        sources: Some(Arc::new(OneSource)),
        history: Some(Arc::clone(recorder)),
        log: None,
    };
    let mut settings = Settings::at(SocketAddr::from(([127, 0, 0, 1], 0)));
    change(&mut settings);
    let web = WebServer::start(subject, settings).unwrap();
    Plant { web, temperature, running, users }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Plant {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.web.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = self.connect();
        let host = if headers.to_ascii_lowercase().contains("host:") { "" } else { "Host: localhost\r\n" };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }

    /// The token of anonymous visitors.
    fn csrf(&self) -> String {
        self.get("/api/session").json()["csrf"].as_str().unwrap().to_owned()
    }
}

/// A store that cannot be written.
#[derive(Debug)]
struct Full;

impl HistoryStore for Full {
    fn append(&self, _: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        Err(StoreError::unavailable("/var/lib/history.db: the disk is full"))
    }

    fn read(
        &self,
        _: &NodeKey,
        _: Span,
        _: Order,
        _: ReadLimit,
        _: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_history_that_cannot_be_stored_is_not_ready_and_has_metrics() {
    let plant = plant_with(Arc::new(Full), |_| {});
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let unready = loop {
        let ready = plant.get("/readyz");
        if ready.status != 200 {
            break ready;
        }
        assert!(std::time::Instant::now() < end, "it stays ready");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(unready.status, 503);
    assert!(unready.body.contains("history") && !unready.body.contains("/var/lib"), "{}", unready.body);
    assert_eq!(plant.get("/readyz?exclude=history").status, 200);
    let metrics = plant.get("/metrics").body;
    for line in [
        "taktwerk_history_failing{store=\"custom\"} 1.0",
        "taktwerk_history_queued{kind=\"values\"} 1.0",
        "taktwerk_history_stored_total{kind=\"values\"} 0.0",
        "taktwerk_history_lost_total{reason=\"queue_full\"} 0.0",
        "taktwerk_history_queue_age_seconds ",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    let history = plant.get("/api/server").json()["history"].clone();
    assert_eq!((&history["queued"], &history["lost"]), (&json!(1), &json!(0)));
    assert!(!history["problem"].is_null(), "{history}");
}

#[test]
fn health_checks_metrics_and_page_are_served() {
    let plant = plant(|_| {});
    assert_eq!((plant.get("/healthz").status, plant.get("/readyz").status), (200, 200));
    let metrics = plant.get("/metrics");
    assert!(metrics.head.contains("application/openmetrics-text"), "{}", metrics.head);
    for name in
        ["taktwerk_sessions 0.0", "process_cpu_seconds_total", "taktwerk_client_memory_bytes{category="]
    {
        assert!(metrics.body.contains(name), "{name} is missing in {}", metrics.body);
    }
    assert!(metrics.body.ends_with("# EOF\n"));
    let page = plant.get("/");
    // The button is disabled until the script runs.
    assert!(page.body.contains("id=\"logbutton\" class=\"quiet\" disabled"), "{}", page.body);
    assert!(page.status == 200 && page.head.contains("default-src 'self'"), "{}", page.head);
    let tag = page.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    assert_eq!(plant.send("GET", "/", &format!("If-None-Match: {tag}\r\n"), "").status, 304);
    let head = plant.send("HEAD", "/app.js", "Accept-Encoding: gzip\r\n", "").head;
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    assert!(!plant.get("/app.js").head.contains("content-encoding"));
    assert_eq!(plant.get("/nothing").status, 404);
}

#[test]
fn nodes_are_browsed_read_and_written_with_the_visitors_rights() {
    let plant = plant(|_| {});
    let objects = plant.get("/api/browse").json();
    let boiler =
        objects["children"].as_array().unwrap().iter().find(|child| child["name"] == "Boiler").unwrap();
    let all = objects["children"].as_array().unwrap();
    assert_eq!((&objects["hasMore"], &objects["next"]), (&json!(false), &json!(null)));
    // In parts: with the continuation point, and by position after the server has released it.
    let mut parts = Vec::new();
    let mut after = String::new();
    loop {
        let part = plant.get(&format!("/api/browse?limit=1&keep=true{after}")).json();
        parts.extend(part["children"].as_array().unwrap().clone());
        if part["hasMore"] == false {
            break;
        }
        let forgotten = "0011223344556677";
        let next = match parts.len() {
            1 => part["next"].as_str().unwrap(),
            2 => forgotten,
            _ => part["next"].as_str().unwrap_or(forgotten),
        };
        after = format!("&from={}&next={next}", part["from"]);
    }
    assert_eq!(&parts, all);
    let first = plant.get("/api/browse?limit=1&keep=true").json();
    let next = first["next"].as_str().unwrap();
    let far = plant.get(&format!("/api/browse?limit=1&from={}&next={next}", u64::MAX)).json();
    assert_eq!((&far["children"][0], &far["from"]), (&all[1], &json!(u64::MAX)), "it does not overflow");
    let end = plant.get(&format!("/api/browse?from={}", objects["from"])).json();
    assert_eq!((&end["children"], &end["hasMore"]), (&json!([]), &json!(false)));
    let path = format!("/api/browse?node={}", boiler["id"].as_str().unwrap().replace(' ', "%20"));
    let child = plant.get(&path).json()["children"][0].clone();
    assert_eq!((&child["name"], &child["class"]), (&json!("Temperature"), &json!("Variable")));
    let id = child["id"].as_str().unwrap();
    let node = plant.get(&format!("/api/node?node={id}")).json();
    assert_eq!(
        (&node["value"][0], &node["high"], &node["isWritable"]),
        (&json!(21.5), &json!(150.0), &json!(true))
    );
    let csrf = format!("X-CSRF-Token: {}\r\n", plant.csrf());
    let body = json!({ "node": id, "value": "48,25" }).to_string();
    assert_eq!(plant.send("POST", "/api/write", &csrf, &body).status, 200);
    assert_eq!(plant.temperature.get().unwrap(), 48.25);
    let wrong = json!({ "node": id, "value": "warm" }).to_string();
    let refused = plant.send("POST", "/api/write", &csrf, &wrong);
    assert!(
        refused.status == 400 && refused.body.contains("is not a value of the type Double"),
        "{}",
        refused.body
    );
    for node in ["i=999999", "nonsense", ""] {
        assert_eq!(plant.get(&format!("/api/node?node={node}")).status, 400, "{node}");
    }
}

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

#[test]
fn one_address_cannot_lock_out_others() {
    let plant = plant(|_| {});
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = plant.web.address();
    let from = |last: u8| {
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
            socket.connect(address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    // Requests with incomplete bodies: the server waits 30 seconds for each.
    let head = b"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let greedy: Vec<TcpStream> = (0..256)
        .map(|_| {
            let mut stream = from(2);
            stream.write_all(head).unwrap();
            stream
        })
        .collect();
    let begin = std::time::Instant::now();
    let mut other = from(3);
    other.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(begin.elapsed() < Duration::from_secs(15), "it took {:?}", begin.elapsed());
    drop(greedy);
}

#[test]
fn incomplete_requests_do_not_lock_out_the_same_machine() {
    let plant = plant(|_| {});
    let head = b"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let half = |_| {
        let mut stream = plant.connect();
        stream.write_all(head).unwrap();
        stream
    };
    let mut halves: Vec<TcpStream> = (0..400).map(half).collect();
    let begin = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(plant.get("/healthz").status, 200);
    }
    halves.extend((0..100).map(half));
    assert_eq!(plant.get("/api/browse").status, 200);
    assert!(begin.elapsed() < Duration::from_secs(8), "it took {:?}", begin.elapsed());
    // The latest incomplete request can still be completed.
    let last = halves.last_mut().unwrap();
    last.write_all(&[b' '; 99]).unwrap();
    let mut status = [0; 12];
    last.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 400");
}

#[test]
fn one_user_cannot_use_all_sessions() {
    let plant = plant(|_| {});
    let login = |user: &str| {
        let answer =
            plant.send("POST", "/api/login", "", &json!({ "user": user, "password": "secret" }).to_string());
        assert_eq!(answer.status, 200, "{}", answer.body);
        let line = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        format!("Cookie: {}\r\n", line.split(';').next().unwrap())
    };
    let is_on = |cookie: &str| plant.send("GET", "/api/session", cookie, "").json()["user"] != Value::Null;
    let administrator = login("eve");
    let cookies: Vec<String> = (0..70).map(|_| login("ada")).collect();
    assert!(is_on(&administrator) && is_on(&login("eve")));
    let on: Vec<bool> = cookies.iter().map(|cookie| is_on(cookie)).collect();
    assert_eq!(on.iter().filter(|is_on| **is_on).count(), 8, "{on:?}");
    assert!(on.ends_with(&[true; 8]));
}

/// Open streams end when their user logs off or is replaced.
#[test]
fn streams_end_with_the_login() {
    let plant = plant(|_| {});
    let login = || {
        let answer =
            plant.send("POST", "/api/login", "", &json!({ "user": "ada", "password": "secret" }).to_string());
        let line = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
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
fn requests_with_repeated_or_invalid_hosts_are_refused() {
    let plant = plant(|_| {});
    for hosts in
        ["Host: localhost\r\nHost: evil\r\n", "Host: 127.0.0.1:28080@evil\r\n", "Host: localhost:x\r\n"]
    {
        assert_eq!(plant.send("GET", "/api/browse", hosts, "").status, 400, "{hosts}");
    }
    assert_eq!(plant.get("http://evil/api/browse").status, 400);
    assert_eq!(plant.get("http://localhost/api/browse").status, 200);
}

#[test]
fn a_dashboard_that_cannot_connect_to_its_server_is_not_ready() {
    let plant = plant(|_| {});
    assert_eq!(plant.get("/readyz").status, 200);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let start = |url: String, dashboard| {
        let subject = Subject {
            shared: Arc::clone(plant.running.shared()),
            url,
            server_pki: None,
            dashboard,
            is_anonymous_allowed: true,
            collectors: Vec::new(),
            sources: None,
            history: None,
            log: None,
        };
        let web = WebServer::start(subject, Settings::at(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        let mut stream = TcpStream::connect(web.address()).unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let answer = start(format!("opc.tcp://{free}"), None);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("not ready: the dashboard"), "{answer}");
    // A server whose certificate the dashboard does not trust.
    let folder = tempfile::tempdir().unwrap();
    let pki = |name: &str| {
        let settings = CertificateSettings::new(name, "urn:web-test");
        Pki::in_folder(folder.path().join(name))
            .settings(settings)
            .create_missing([NewKey::NistP256])
            .open()
            .unwrap()
    };
    let (own, other) = (pki("own"), pki("other"));
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .pki(&own)
        .security(SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt)
        .build()
        .unwrap();
    let running = server.spawn().unwrap();
    let client = |pki: &Pki| {
        let settings = CertificateSettings::new("dashboard", "urn:web-test:dashboard");
        Some(pki.in_process_client(&settings, [127, 0, 0, 1].into()).unwrap())
    };
    let answer = start(running.url(), client(&other));
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("BadCertificateUntrusted"), "{answer}");
    let answer = start(running.url(), client(&own));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
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

#[test]
fn other_origins_and_hosts_are_refused() {
    let plant = plant(|_| {});
    let csrf = plant.csrf();
    let write = json!({ "node": "ns=2;s=Boiler/Temperature", "value": 1.0 }).to_string();
    let refused = [
        "Host: evil.example\r\n".to_owned(),
        String::new(),
        "X-CSRF-Token: 0\r\n".to_owned(),
        format!("X-CSRF-Token: {csrf}\r\nOrigin: http://evil.example\r\n"),
        format!("X-CSRF-Token: {csrf}\r\nSec-Fetch-Site: cross-site\r\n"),
        format!("X-CSRF-Token: {csrf}\r\nOrigin: null\r\n"),
    ];
    for headers in refused {
        assert_eq!(plant.send("POST", "/api/write", &headers, &write).status, 403, "{headers:?}");
    }
    assert_eq!(plant.temperature.get().unwrap(), 21.5);
    assert_eq!(plant.send("GET", "/api/session", "Host: evil.example\r\n", "").status, 403);
    let own = format!("X-CSRF-Token: {csrf}\r\nOrigin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(plant.send("POST", "/api/write", &own, &write).status, 200);
}

#[test]
fn users_of_the_server_log_on_and_off_and_guessing_is_slowed_down() {
    let plant = plant(|settings| settings.anonymous = false);
    assert_eq!(plant.get("/api/browse").status, 401);
    assert_eq!(plant.get("/api/session").json()["isOpen"], json!(false));
    let login = |password: &str| {
        plant.send("POST", "/api/login", "", &json!({ "user": "ada", "password": password }).to_string())
    };
    assert_eq!(login("wrong").status, 401);
    let entered = login("secret");
    assert_eq!(entered.status, 200, "{}", entered.body);
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(line.contains("httponly") && line.contains("samesite=strict"), "{line}");
    let cookie = format!("Cookie: other=1; {}\r\n", line.split(';').next().unwrap());
    let session = plant.send("GET", "/api/session", &cookie, "").json();
    assert_eq!((&session["user"], &session["isAdministrator"]), (&json!("ada"), &json!(false)));
    assert_eq!(plant.send("GET", "/api/browse", &cookie, "").status, 200);
    for path in ["/api/log", "/api/certificates", "/api/sources"] {
        assert_eq!(plant.send("GET", path, &cookie, "").status, 403, "{path}");
    }
    let csrf = entered.json()["csrf"].as_str().unwrap().to_owned();
    assert_eq!(plant.send("POST", "/api/logout", &cookie, "{}").status, 403);
    let off = plant.send("POST", "/api/logout", &format!("{cookie}X-CSRF-Token: {csrf}\r\n"), "{}");
    assert_eq!(off.status, 204);
    assert_eq!(plant.send("GET", "/api/browse", &cookie, "").status, 401);
    let statuses: Vec<u16> = (0..12).map(|_| login("wrong").status).collect();
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    // Other users behind the same proxy are not limited.
    let other = json!({ "user": "bob", "password": "secret" }).to_string();
    assert_eq!(plant.send("POST", "/api/login", "", &other).status, 200);
}

#[test]
fn administrators_see_the_sources() {
    let plant = plant(|_| {});
    assert_eq!(plant.get("/api/sources").status, 403);
    assert_eq!(plant.get("/api/session").json()["hasSources"], json!(false));
    let login = json!({ "user": "eve", "password": "secret" }).to_string();
    let entered = plant.send("POST", "/api/login", "", &login);
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    assert_eq!(plant.send("GET", "/api/session", &cookie, "").json()["hasSources"], json!(true));
    let sources = plant.send("GET", "/api/sources", &cookie, "").json();
    let source = &sources["sources"][0];
    assert_eq!((&source["name"], &source["tags"], &source["lost"]), (&json!("plc"), &json!(3), &json!(1)));
    assert_eq!(source["lastAnswer"], json!(1_700_000_000_123_i64));
    assert_eq!((&source["isConnected"], &source["lastError"]), (&json!(false), &Value::Null));
    assert_eq!(source["incomplete"], json!("too many nodes"));
    assert_eq!(
        (&source["invalid"], &source["missed"], &source["writeErrors"]),
        (&json!(4), &json!(5), &json!(6))
    );
    let destination = &sources["destinations"][0];
    assert_eq!(
        (&destination["parked"], &destination["queuedBytes"], &destination["queueBytesMax"]),
        (&json!(1), &json!(300), &json!(1000))
    );
    assert_eq!((&destination["name"], &destination["queued"]), (&json!("archive"), &json!(7)));
    assert_eq!((&destination["dropped"], &destination["lastError"]), (&json!(2), &json!("disk full")));
    assert_eq!(
        (&destination["oldest"], &destination["lastSent"]),
        (&json!(1_700_000_000_456_i64), &Value::Null)
    );
}

#[test]
fn administrator_rights_follow_the_server() {
    let plant = plant(|_| {});
    let login = |user: &str| {
        plant.send("POST", "/api/login", "", &json!({ "user": user, "password": "secret" }).to_string())
    };
    // Independent of the roles of the name.
    let refused = login("new");
    assert_eq!(refused.status, 403, "{}", refused.head);
    assert!(refused.body.contains("has to be changed") && !refused.head.contains("set-cookie"));
    let entered = login("eve");
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    let get = |path: &str| plant.send("GET", path, &cookie, "");
    assert_eq!((get("/api/log").status, get("/api/certificates").status), (200, 200));
    assert!(get("/api/session").json()["roles"].to_string().contains("ConfigureAdmin"));
    let shared = plant.running.shared();
    shared.set_authorization(Authorization::open(), UtcTime::from_unix(Duration::from_secs(1_700_000_000)));
    let mut left = 500;
    while get("/api/log").status != 403 {
        std::thread::sleep(Duration::from_millis(10));
        left -= 1;
        assert!(left > 0, "eve is no longer an administrator");
    }
    assert_eq!(get("/api/certificates").status, 403);
    assert!(!get("/api/session").json()["roles"].to_string().contains("ConfigureAdmin"));
}

#[test]
fn a_required_password_change_ends_the_visit() {
    let plant = plant(|_| {});
    plant.temperature.set(120.0);
    let entered =
        plant.send("POST", "/api/login", "", &json!({ "user": "eve", "password": "secret" }).to_string());
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    let get = |path: &str| plant.send("GET", path, &cookie, "");
    let administrated = ["/api/log", "/api/certificates", "/api/sources", "/api/alarms"];
    assert_eq!(administrated.map(|path| get(path).status), [200; 4]);
    // The session is closed, and the new one may only change the password.
    plant.users.is_eve_limited.store(true, Ordering::Relaxed);
    plant.running.shared().trust_list_changed();
    let mut left = 500;
    while get("/api/alarms").status == 200 {
        std::thread::sleep(Duration::from_millis(10));
        left -= 1;
        assert!(left > 0, "the session has ended");
    }
    for _ in 0..20 {
        assert_eq!(administrated.map(|path| get(path).status), [403; 4]);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The dashboard has the old password. Repeated attempts would lock out the user.
#[test]
fn a_changed_password_is_tried_once_and_ends_the_visit() {
    let plant = plant(|_| {});
    let login = |password: &str| {
        plant.send("POST", "/api/login", "", &json!({ "user": "bob", "password": password }).to_string())
    };
    let entered = login("secret");
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    let user = || plant.send("GET", "/api/session", &cookie, "").json()["user"].clone();
    assert_eq!(user(), json!("bob"));
    plant.users.has_bob_changed.store(true, Ordering::Relaxed);
    plant.running.shared().trust_list_changed();
    let mut left = 500;
    while user() != Value::Null {
        std::thread::sleep(Duration::from_millis(10));
        left -= 1;
        assert!(left > 0, "bob is logged off");
    }
    assert_eq!(plant.users.refused.load(Ordering::Relaxed), 1);
    assert_eq!(login("another").status, 200);
}

#[test]
fn malformed_and_oversized_requests_are_refused() {
    let plant = plant(|_| {});
    let csrf = format!("X-CSRF-Token: {}\r\n", plant.csrf());
    let many: Vec<String> = (0..20_000).map(|number| format!("i={number}")).collect();
    let bodies = [
        "{".to_owned(),
        "[]".to_owned(),
        json!({ "nodes": [], "interval": 0 }).to_string(),
        json!({ "nodes": many, "interval": 100 }).to_string(),
        json!({ "nodes": ["x"], "interval": 100 }).to_string(),
        json!({ "nodes": ["i=1"], "interval": -1 }).to_string(),
        "x".repeat(2 << 20),
    ];
    for body in bodies {
        let status = plant.send("POST", "/api/live", &csrf, &body).status;
        assert!((400..500).contains(&status), "{status} {:.40}", body);
    }
    for text in ["\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9\r\n\r\n"] {
        let mut stream = plant.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{text:?}");
    }
    let reversed = plant.get("/api/history?node=i=2258&from=2&to=1&points=10");
    assert!(reversed.status == 400 && reversed.body.contains("from must be before to"), "{}", reversed.body);
    assert_eq!(plant.get("/healthz").status, 200);
}

#[test]
fn more_values_than_points_are_shown_as_averages() {
    let plant = plant(|_| {});
    let second = 10_000_000;
    let start = UtcTime::from_ticks(134_000_000_000_000_000);
    for at in 0..40 {
        plant.temperature.set_at(f64::from(at), UtcTime::from_ticks(start.ticks() + i64::from(at) * second));
    }
    let from = (start.ticks() - 116_444_736_000_000_000) / 10_000;
    let node = plant.temperature.id().to_string();
    let of = |points: u32| {
        let path = format!("/api/history?node={node}&from={from}&to={}&points={points}", from + 40_000);
        let answer = plant.get(&path);
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str::<Value>(&answer.body).unwrap()
    };
    // Recorded within a second.
    let count = |found: &Value| found["values"].as_array().unwrap().len();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while count(&of(1_000)) < 40 && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    let raw = of(1_000);
    assert!(raw["isRaw"] == true && count(&raw) >= 40, "{raw}");
    let averages = of(10);
    assert!(averages["isRaw"] == false && count(&averages) == 10, "{averages}");
}

#[test]
fn non_loopback_addresses_need_https() {
    let plant = plant(|_| {});
    let subject = Subject {
        shared: Arc::clone(plant.running.shared()),
        url: plant.running.url(),
        server_pki: None,
        dashboard: None,
        is_anonymous_allowed: true,
        collectors: Vec::new(),
        sources: None,
        history: None,
        log: None,
    };
    let error = WebServer::start(subject, Settings::at("0.0.0.0:0".parse().unwrap())).unwrap_err();
    assert!(error.to_string().contains("does not listen on 0.0.0.0:0 without TLS"), "{error}");
}

#[test]
fn the_grafana_dashboard_uses_existing_metrics() {
    // The metrics of gateways are checked with a gateway, by a test of the command.
    let of_gateway = ["taktwerk_source_", "taktwerk_destination_"];
    let metrics = plant(|_| {}).get("/metrics").body;
    let dashboard = include_str!("../../../docs/grafana/taktwerk.json");
    let words = dashboard.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names: Vec<&str> =
        words.filter(|word| word.starts_with("taktwerk_") || word.starts_with("process_")).collect();
    assert!(names.len() > 10);
    for name in names.into_iter().filter(|name| !of_gateway.iter().any(|start| name.starts_with(start))) {
        assert!(metrics.contains(&format!("\n{name}")), "there is no metric {name}");
    }
}

#[test]
fn alarms_are_listed_and_operators_act_on_them() {
    let plant = plant(|_| {});
    let list = || plant.get("/api/alarms").json();
    assert_eq!(list(), json!({ "alarms": [], "count": 0 }));
    plant.temperature.set(120.0);
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let alarm = loop {
        if let Some(alarm) = list()["alarms"].as_array().unwrap().first() {
            break alarm.clone();
        }
        assert!(std::time::Instant::now() < end, "the alarm does not appear");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(
        (&alarm["severity"], &alarm["active"], &alarm["acked"]),
        (&json!(700), &json!(true), &json!(false))
    );
    assert!(alarm["message"].as_str().unwrap().contains("High limit"), "{alarm}");
    let token = format!("x-csrf-token: {}\r\n", plant.csrf());
    let act = |headers: &str, body: Value| plant.send("POST", "/api/alarms", headers, &body.to_string());
    let acknowledge =
        json!({ "action": "acknowledge", "id": alarm["id"], "event": alarm["event"], "comment": "seen" });
    assert_eq!(act("", acknowledge.clone()).status, 403, "without the page's token");
    let other = json!({ "action": "acknowledge", "id": alarm["id"], "event": "00", "comment": "" });
    assert_eq!(act(&token, other).status, 400, "of another event");
    let answer = act(&token, acknowledge.clone());
    assert_eq!(answer.status, 200, "{}", answer.body);
    let now = list()["alarms"][0].clone();
    assert_eq!((&now["acked"], &now["comment"]), (&json!(true), &json!("seen")));
    // The time of the alarm, not that of the comment.
    assert!(alarm["since"].is_number() && alarm["since"] == now["since"], "{alarm} {now}");
    assert_eq!(now["dialog"], Value::Null);
    assert_eq!(act(&token, acknowledge).status, 400, "it is acknowledged already");
    let shelve = |minutes: Value| json!({ "action": "shelve", "id": alarm["id"], "minutes": minutes });
    assert_eq!(act(&token, shelve(json!(-1))).status, 400);
    assert_eq!(act(&token, shelve(json!(5))).status, 200);
    assert_eq!(list()["alarms"][0]["shelving"], "for a time");
    let unshelve = json!({ "action": "unshelve", "id": alarm["id"] });
    assert_eq!(act(&token, unshelve).status, 200);
    assert_eq!(list()["alarms"][0]["shelving"], Value::Null);
    assert_eq!(act(&token, json!({ "action": "explode", "id": "i=1" })).status, 422);
}

#[test]
fn operators_respond_to_dialogs() {
    let plant = plant(|_| {});
    let boiler = plant.running.namespace("urn:web-test").object("Kiln").add().unwrap();
    let dialog = boiler.dialog("Question", "Open the valve?", &["Yes", "No"]).add().unwrap();
    dialog.ask();
    let list = || plant.get("/api/alarms").json();
    let asked = list()["alarms"][0].clone();
    assert_eq!(asked["dialog"], json!({ "prompt": "Open the valve?", "responses": ["Yes", "No"] }));
    let token = format!("x-csrf-token: {}\r\n", plant.csrf());
    let act = |headers: &str, body: Value| plant.send("POST", "/api/alarms", headers, &body.to_string());
    let respond = |response: Value| json!({ "action": "respond", "id": asked["id"], "response": response });
    let comment =
        json!({ "action": "comment", "id": asked["id"], "event": asked["event"], "comment": "soon" });
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(act(&token, comment).status, 200);
    let commented = list()["alarms"][0].clone();
    assert_eq!((&commented["comment"], &commented["since"]), (&json!("soon"), &asked["since"]));
    assert_eq!(act("", respond(json!(1))).status, 403, "without the page's token");
    assert_eq!(act(&token, respond(Value::Null)).status, 400);
    assert_eq!(act(&token, respond(json!(2))).status, 400, "there is no such response");
    assert_eq!(dialog.response(), None);
    let answer = act(&token, respond(json!(1)));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(dialog.response(), Some(1));
    assert_eq!(list(), json!({ "alarms": [], "count": 0 }));
    assert_eq!(act(&token, respond(json!(0))).status, 400, "it is answered already");
}
