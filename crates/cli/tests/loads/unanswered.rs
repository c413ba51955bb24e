//! Loads on servers and brokers that stop responding: unanswered requests count with the time that they have waited.
//! From one in a hundred on, the measurement is invalid.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    command.arg("bench").args(arguments).arg("--json").stdin(Stdio::null()).output().unwrap()
}

/// The document of a measurement that is invalid because of unanswered requests.
fn invalid(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reasons = document["invalid"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["reason"] == "unanswered"), "{document:#}");
    assert_eq!(document["valid"], false);
    document
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {document:#}"))
}

fn server() -> Running {
    Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--no-plant", "--signals", "10", "--port", "0", "--policy", "None"])
        .arg("--exit-with-stdin")
        .serve(Duration::from_secs(60))
        .unwrap()
}

/// What a relay does after it has relayed its number of messages.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// Drop the rest: to clients, the server has stopped responding.
    Stall,
    /// Close the connection instead of the next response.
    Close,
    /// The same, and for all later connections.
    CloseForGood,
}

/// A relay that drops the rest.
fn stalling(server: &Running, messages: impl Fn(usize) -> usize + Send + 'static) -> String {
    relay(server, Then::Stall, messages)
}

/// A relay in front of a server that relays `messages` server messages per connection, by connection number.
fn relay(server: &Running, then: Then, messages: impl Fn(usize) -> usize + Send + 'static) -> String {
    let address = server.url().trim_start_matches("opc.tcp://").trim_end_matches('/');
    let address: SocketAddr = address.parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("opc.tcp://{}", listener.local_addr().unwrap());
    let is_over = Arc::new(AtomicBool::new(false));
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (client, allowed) = (client.unwrap(), messages(number));
            if is_over.load(Ordering::Relaxed) {
                continue;
            }
            let is_over = Arc::clone(&is_over);
            let server = TcpStream::connect(address).unwrap();
            server.set_nodelay(true).unwrap();
            client.set_nodelay(true).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            thread::spawn(move || {
                let has_ended = answer(server, &client, allowed, then != Then::Stall);
                is_over.fetch_or(has_ended && then == Then::CloseForGood, Ordering::Relaxed);
                let _ = client.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    url
}

/// Relays the messages of a server: four bytes type, four bytes length (Part 6 §7.1.2.2). Returns whether it closed the
/// connection itself.
fn answer(mut server: TcpStream, mut client: &TcpStream, allowed: usize, ends: bool) -> bool {
    let mut message = vec![0; 8];
    for count in 0.. {
        message.resize(8, 0);
        if server.read_exact(&mut message).is_err() {
            return false;
        }
        let length = u32::from_le_bytes(message[4..8].try_into().unwrap()) as usize;
        message.resize(length, 0);
        if server.read_exact(&mut message[8..]).is_err() {
            return false;
        }
        if ends && count >= allowed {
            return true;
        }
        if count < allowed && client.write_all(&message).is_err() {
            return false;
        }
    }
    false
}

#[test]
fn unanswered_requests_are_counted() {
    let server = server();
    // Finding nodes needs fewer messages. The measurement gets hello, channel, session and about 60 responses.
    let url = stalling(&server, |_| 64);
    let read = ["read", &url, "--rate", "100", "-n", "100", "--warmup", "0", "--nodes", "ns=1;i=100000"];
    let document = invalid(&bench(&read));
    let [answered, unanswered] = ["/requests", "/unanswered"].map(|it| number(&document, it));
    assert!(answered > 10.0 && unanswered > 10.0, "{document:#}");
    assert_eq!(answered + unanswered, 100.0, "{document:#}");
    // The drain takes two seconds. The last request was sent at the end of the window, the first one earlier.
    assert_eq!(number(&document, "/latency/corrected/count"), 100.0);
    assert!(number(&document, "/latency/corrected/p99_us") > 1.99e6, "{document:#}");
}

/// A probe with a request every 10 ms.
fn probe(url: &str, count: &str) -> Output {
    let probe = ["probe", url, "--rate", "100", "-n", count, "--warmup", "0", "--timeout", "1s"];
    bench(&[&probe[..], &["--nodes", "ns=1;i=100000"]].concat())
}

#[test]
fn a_probe_counts_unanswered_requests_and_ends_on_schedule() {
    let server = server();
    let document = invalid(&probe(&stalling(&server, |_| 24), "50"));
    let [due, sent, answered] = ["/due", "/sent", "/requests"].map(|it| number(&document, it));
    // The timeout of one second is longer than the rest of the schedule, so that nothing is sent after it.
    assert_eq!((due, number(&document, "/unanswered")), (50.0, 1.0), "{document:#}");
    assert!(answered > 10.0 && sent == answered + 1.0, "{document:#}");
    assert_eq!(number(&document, "/latency/corrected/count"), 50.0);
    assert!(number(&document, "/latency/uncorrected/max_us") > 0.99e6, "{document:#}");
    assert!(document["invalid"].as_array().unwrap().iter().any(|reason| reason["reason"] == "not_sent"));
    let samples = document["samples"].as_array().unwrap();
    assert_eq!(samples.iter().filter(|sample| sample["unanswered"] == true).count(), 1);
}

#[test]
fn a_probe_continues_after_a_lost_connection() {
    let server = server();
    let document = invalid(&probe(&relay(&server, Then::Close, |_| 24), "50"));
    let lost = number(&document, "/connections_lost");
    assert!(lost >= 2.0 && lost == number(&document, "/unanswered"), "{document:#}");
    assert_eq!((number(&document, "/sent"), number(&document, "/requests")), (50.0, 50.0 - lost));
}

#[test]
fn a_probe_reports_an_unreachable_server() {
    let server = server();
    let output = probe(&relay(&server, Then::CloseForGood, |_| 24), "1000");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("could not be restored within 5 s"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((number(&document, "/unanswered"), number(&document, "/connections_lost")), (1.0, 1.0));
    assert!(number(&document, "/requests") > 10.0, "{document:#}");
}

#[test]
fn a_closed_loop_counts_unanswered_requests() {
    let server = server();
    let url = stalling(&server, |_| 24);
    let read = |clients: &str, count: &str| {
        let read = ["read", &url, "-c", clients, "-n", count, "--warmup", "0", "--timeout", "1s"];
        bench(&[&read[..], &["--nodes", "ns=1;i=100000"]].concat())
    };
    // One client on the blocking driver, whose time is over, and two of a fleet.
    for (clients, count) in [("1", "23"), ("2", "43")] {
        let document = invalid(&read(clients, count));
        assert!(number(&document, "/unanswered") >= 1.0 && number(&document, "/requests") >= 10.0);
        assert!(number(&document, "/latency/uncorrected/max_us") > 0.99e6, "{document:#}");
    }
}

#[test]
fn unopened_sessions_are_counted() {
    let server = server();
    // One fails while its channel is opened, one while its session is created.
    let url = stalling(&server, |number| if number == 0 { usize::MAX } else { number });
    let document = invalid(&bench(&["connect", &url, "-n", "3", "--policy", "None", "--timeout", "1s"]));
    assert_eq!((number(&document, "/sessions"), number(&document, "/unanswered")), (1.0, 2.0));
    assert!(number(&document, "/latency/uncorrected/p90_us") > 0.99e6, "{document:#}");
}

#[test]
fn waiting_for_a_session_is_not_counted() {
    let server = server();
    let url = stalling(&server, |number| if number == 0 { 1 } else { usize::MAX });
    let connect = ["connect", &url, "-n", "5", "-c", "2", "--policy", "None", "--timeout", "3s"];
    let document = invalid(&bench(&connect));
    assert_eq!((number(&document, "/sessions"), number(&document, "/unanswered")), (4.0, 1.0));
    let [window_s, waited_us] = ["/window_s", "/latency/uncorrected/max_us"].map(|it| number(&document, it));
    assert!(waited_us > 2.99e6 && window_s * 1e6 < waited_us, "{document:#}");
}

/// A broker for MQTT 3.1.1 with QoS 0 that forwards `messages` messages and then no more.
fn broker(messages: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let subscribers: Arc<Mutex<Vec<(String, TcpStream)>>> = Arc::default();
    let left = Arc::new(Mutex::new(messages));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, subscribers, left) = (client.unwrap(), Arc::clone(&subscribers), Arc::clone(&left));
            client.set_nodelay(true).unwrap();
            thread::spawn(move || serve(client, &subscribers, &left));
        }
    });
    address
}

/// A packet: its first byte, and the bytes after the length (MQTT 3.1.1 §2.2). `None` at the end.
fn packet(client: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut byte = [0];
    client.read_exact(&mut byte).ok()?;
    let (first, mut length) = (byte[0], 0);
    for shift in [0, 7, 14, 21] {
        client.read_exact(&mut byte).ok()?;
        length |= usize::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            break;
        }
    }
    let mut rest = vec![0; length];
    client.read_exact(&mut rest).ok()?;
    Some((first, rest))
}

fn serve(mut client: TcpStream, subscribers: &Mutex<Vec<(String, TcpStream)>>, left: &Mutex<usize>) {
    let text = |bytes: &[u8]| {
        let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        String::from_utf8(bytes[2..2 + length].to_vec()).unwrap()
    };
    while let Some((first, rest)) = packet(&mut client) {
        match first >> 4 {
            // CONNECT, SUBSCRIBE
            1 => client.write_all(&[0x20, 2, 0, 0]).unwrap(),
            8 => {
                subscribers.lock().unwrap().push((text(&rest[2..]), client.try_clone().unwrap()));
                client.write_all(&[0x90, 3, rest[0], rest[1], 0]).unwrap();
            }
            // PUBLISH; all test messages are shorter than 128 bytes.
            3 => {
                let message = [&[first, u8::try_from(rest.len()).unwrap()][..], &rest].concat();
                for (_, stream) in subscribers.lock().unwrap().iter_mut().filter(|it| it.0 == text(&rest)) {
                    let mut left = left.lock().unwrap();
                    if *left > 0 {
                        *left -= 1;
                        stream.write_all(&message).unwrap();
                    }
                }
            }
            _ => {}
        }
    }
}

#[test]
fn unreturned_messages_are_counted() {
    let document = invalid(&bench(&["mqtt", &broker(60), "--rate", "100", "-n", "100", "--warmup", "0"]));
    let [came, missing, unanswered] =
        ["/messages", "/missing", "/unanswered"].map(|it| number(&document, it));
    // A busy machine sends fewer than are due, and says so.
    let reasons = document["invalid"].as_array().unwrap();
    let late = reasons.iter().find(|it| it["reason"] == "not_sent");
    let sent = late.map_or(100.0, |it| it["sent"].as_f64().unwrap());
    assert_eq!((came, missing, unanswered), (60.0, sent - 60.0, sent - 60.0), "{document:#}");
    assert!(missing > 0.0, "{document:#}");
    assert_eq!(number(&document, "/latency/corrected/count"), 100.0);
    assert!(number(&document, "/roundtrip/p99_us") > 1.99e6, "{document:#}");
}

#[test]
fn a_message_count_is_not_limited_by_time() {
    let url = broker(usize::MAX);
    let mqtt = ["mqtt", &url, "-n", "100", "-d", "0", "--warmup", "0"];
    for more in [&[][..], &["--busy-poll"]] {
        let output = bench(&[&mqtt[..], more].concat());
        // A generator without its own CPU may have measured itself, but not because it busy-polls.
        assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((number(&document, "/messages"), number(&document, "/roundtrip/count")), (100.0, 100.0));
        // With busy polling, a response may be available at the first poll.
        let polling = number(&document, "/generator/polling_s");
        assert!(polling == 0.0 || !more.is_empty() && polling > 0.0, "{document:#}");
    }
}

#[test]
fn abandoned_transactions_are_counted() {
    // Two receivers and their responses, three times, and one message of the fourth.
    let document =
        invalid(&bench(&["mqtt", &broker(13), "--pattern", "fan", "-c", "3", "-n", "4", "--warmup", "0"]));
    assert_eq!((number(&document, "/messages"), number(&document, "/unanswered")), (3.0, 1.0));
    assert_eq!(number(&document, "/transaction/count"), 4.0);
    assert!(number(&document, "/transaction/max_us") > 9.9e6, "{document:#}");
}
