//! No visitor takes what others need; streams end with their connection or login.

use crate::plant::plant;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

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
