//! Requests that are refused, and connections that block nobody.

use crate::plant::plant;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

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
