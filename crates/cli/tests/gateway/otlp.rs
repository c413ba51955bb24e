//! The program with a collector: metrics of server, sources and destinations, and spans.

#![cfg(feature = "web")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);

/// A collector: its address, and the requests that it receives.
fn collector() -> (std::net::SocketAddr, mpsc::Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut path, mut len) = (String::new(), 0);
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                match line.trim_end().to_ascii_lowercase() {
                    line if line.is_empty() => break,
                    line if path.is_empty() => path = line.split(' ').nth(1).unwrap().to_owned(),
                    line => {
                        len = line.strip_prefix("content-length: ").map_or(len, |len| len.parse().unwrap())
                    }
                }
            }
            let mut body = vec![0; len];
            stream.read_exact(&mut body).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            if sender.send((path, String::from_utf8_lossy(&body).into_owned())).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

/// Waits until messages with these parts have arrived.
fn until(requests: &mpsc::Receiver<(String, String)>, wanted: &[(&str, &str)]) {
    let mut wanted = wanted.to_vec();
    let begin = Instant::now();
    while !wanted.is_empty() {
        let (path, body) = requests.recv_timeout(LIMIT).unwrap();
        wanted.retain(|(at, part)| *at != path || !body.contains(part));
        assert!(begin.elapsed() < LIMIT, "{wanted:?}");
    }
}

#[test]
fn metrics_of_later_sources_are_exported() {
    let (address, requests) = collector();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let begin = format!(
        "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\nnone = true\n[identities]\nanonymous = true\n\
         [otlp]\nurl = \"http://{address}\"\nevery_seconds = 1\n"
    );
    let write = |text: &str| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(&begin);
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    let server = server.args(["serve", "--exit-with-stdin", "--config", file.to_str().unwrap()]);
    let server = server.serve(LIMIT).unwrap();
    until(&requests, &[("/v1/metrics", "taktwerk_sessions")]);
    let source = "[[source]]\nname = \"later\"\ntype = \"simulation\"\ninterval = \"100 ms\"\n\
                  [[tag]]\nsource = \"later\"\nname = \"a\"\nsignal = \"sine\"\n";
    write(&format!("{begin}{source}"));
    let mut apply = std::process::Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    let applied = apply.args(["config", "apply"]).arg(&file).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    let wanted = ["taktwerk_source_values", "later", "taktwerk_otlp_exports"];
    until(&requests, &wanted.map(|part| ("/v1/metrics", part)));
    server.stop().unwrap();
}

#[test]
fn metrics_and_spans_of_the_gateway_are_exported() {
    let (address, requests) = collector();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let text = format!(
        "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\nnone = true\n[identities]\nanonymous = true\n\
         [otlp]\nurl = \"http://{address}\"\nevery_seconds = 1\ntraces = true\nservices = true\nservice_name = \"Plant 1\"\n\
         [[source]]\nname = \"s\"\ntype = \"simulation\"\ninterval = \"100 ms\"\n\
         [[tag]]\nsource = \"s\"\nname = \"a\"\nsignal = \"sine\"\n\
         [[destination]]\nname = \"day-files\"\ntype = \"file\"\nfolder = {:?}\n",
        folder.path().join("out").display().to_string()
    );
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    let server = server.args(["serve", "--exit-with-stdin", "--config", file.to_str().unwrap()]);
    let server = server.serve(LIMIT).unwrap();
    let wanted = [
        ("/v1/metrics", "Plant 1"),
        ("/v1/metrics", "taktwerk_sessions"),
        ("/v1/metrics", "taktwerk_source_values"),
        ("/v1/metrics", "day-files"),
        ("/v1/traces", "destination.send"),
        ("/v1/traces", "day-files"),
    ];
    until(&requests, &wanted);
    // Spans of a client's requests.
    let mut read = std::process::Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    let read = read.args(["read", server.url(), "i=2258"]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    until(&requests, &["opcua.request", "opcua.service", "ReadRequest"].map(|part| ("/v1/traces", part)));
    server.stop().unwrap();
}
