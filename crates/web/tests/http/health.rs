//! Health checks, metrics and the page.

use crate::plant::{Full, plant, plant_with};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use taktwerk::pki::Pki;
use taktwerk::{MessageSecurityMode, SecurityPolicy, Server};
use taktwerk_pki::{CertificateSettings, NewKey};
use taktwerk_web::{Settings, Subject, WebServer};

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
fn the_grafana_dashboard_uses_existing_metrics() {
    // The metrics of gateways are checked with a gateway, by a test of the command.
    let of_gateway = ["taktwerk_source_", "taktwerk_destination_"];
    let metrics = plant(|_| {}).get("/metrics").body;
    let dashboard = include_str!("../../../../docs/grafana/taktwerk.json");
    let words = dashboard.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names: Vec<&str> =
        words.filter(|word| word.starts_with("taktwerk_") || word.starts_with("process_")).collect();
    assert!(names.len() > 10);
    for name in names.into_iter().filter(|name| !of_gateway.iter().any(|start| name.starts_with(start))) {
        assert!(metrics.contains(&format!("\n{name}")), "there is no metric {name}");
    }
}
