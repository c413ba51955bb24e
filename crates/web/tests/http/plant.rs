//! A web server with a real server.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use taktwerk::history::{
    HistoryStore, HistoryValue, MemoryStore, NodeKey, Order, ReadLimit, Span, StoreError,
};
use taktwerk::{RunningServer, Server, StatusCode, Variable};
use taktwerk_server::authorization::{Authorization, IdentityRule};
use taktwerk_server::{Accepted, Credential, IdentityVerifier, Verification};
use taktwerk_web::sources::{DestinationState, SourceList, SourceState};
use taktwerk_web::{HistoryMetrics, Settings, Subject, WebServer};

#[derive(Debug)]
pub(crate) struct OneSource;

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
pub(crate) struct Users {
    /// Set when eve has to change the password too.
    pub(crate) is_eve_limited: Arc<AtomicBool>,
    /// Set when bob's password has changed.
    pub(crate) has_bob_changed: Arc<AtomicBool>,
    /// Number of refused logins.
    pub(crate) refused: Arc<AtomicU32>,
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
pub(crate) struct Plant {
    pub(crate) web: WebServer,
    pub(crate) temperature: Variable<f64>,
    pub(crate) running: RunningServer,
    pub(crate) users: Users,
}

pub(crate) fn plant(change: impl FnOnce(&mut Settings)) -> Plant {
    plant_with(Arc::new(MemoryStore::new(10_000)), change)
}

pub(crate) fn plant_with(store: Arc<dyn HistoryStore>, change: impl FnOnce(&mut Settings)) -> Plant {
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

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Plant {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.web.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
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

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }

    /// The token of anonymous visitors.
    pub(crate) fn csrf(&self) -> String {
        self.get("/api/session").json()["csrf"].as_str().unwrap().to_owned()
    }
}

/// A store that cannot be written.
#[derive(Debug)]
pub(crate) struct Full;

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

impl Plant {
    /// Opens a stream of values.
    pub(crate) fn live(&self) -> TcpStream {
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
    pub(crate) fn wait_for_subscriptions(&self, count: u64, patience: Duration) {
        let end = std::time::Instant::now() + patience;
        while self.get("/api/server").json()["subscriptionCount"] != json!(count) {
            assert!(std::time::Instant::now() < end, "there are not {count} subscriptions");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
