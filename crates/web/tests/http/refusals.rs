//! Requests that are refused.

use crate::plant::plant;
use serde_json::json;
use std::io::{Read, Write};
use std::sync::Arc;
use taktwerk_web::{Settings, Subject, WebServer};

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
