//! The first Ctrl-C ends a load, which prints its partial result even if requests are slow. Commands without a result
//! end at once.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(60);

/// A relay in front of a server that reports when clients send data.
fn watched(server: &Running) -> (String, Receiver<()>) {
    let address: SocketAddr =
        server.url().trim_start_matches("opc.tcp://").trim_end_matches('/').parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("opc.tcp://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(address).unwrap());
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            let tell = tell.clone();
            thread::spawn(move || {
                let mut bytes = [0; 8192];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    server.write_all(&bytes[..count]).unwrap();
                    // The receiver is gone at the end of the test.
                    let _ = tell.send(());
                }
                let _ = server.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    (url, told)
}

#[test]
fn a_paused_load_ends_with_the_first_ctrl_c() {
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--no-plant", "--signals", "10", "--port", "0", "--policy", "None"])
        .arg("--exit-with-stdin")
        .serve(LIMIT)
        .unwrap();
    let (url, told) = watched(&server);
    let mut bench = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["bench", "read", &url, "-n", "1000", "--pause", "50", "--warmup", "0", "--json"])
        .args(["--nodes", "ns=1;i=100000", "--exit-with-stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Waiting for the output would close it.
    let held = bench.stdin.take();
    // Connecting and finding the node take fewer messages, so it is reading by now.
    for _ in 0..60 {
        told.recv_timeout(LIMIT).unwrap();
    }
    kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
    let output = bench.wait_with_output().unwrap();
    drop(held);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["interrupted"], true);
    let requests = document["requests"].as_u64().unwrap();
    assert!((1..256).contains(&requests), "{document:#}");
}

/// Starts a command on a server that never responds, and sends a signal after the command has sent data.
fn interrupted(signal: Signal, arguments: impl Fn(&str) -> Vec<String>) -> Output {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("opc.tcp://{}", listener.local_addr().unwrap());
    let child = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(arguments(&url))
        .args(["--policy", "None", "--timeout", "600s", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = listener.accept().unwrap().0;
    client.read_exact(&mut [0; 8]).unwrap();
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn pending_sessions_end_with_the_first_ctrl_c() {
    let output =
        interrupted(Signal::INT, |url| ["bench", "connect", url, "-n", "3"].map(str::to_owned).to_vec());
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["interrupted"], &document["sessions"]), (&true.into(), &0.into()), "{document:#}");
}

#[test]
fn commands_without_a_result_end_at_once() {
    for arguments in [&["read", "i=2258"][..], &["write", "i=2258", "1"], &["endpoints"]] {
        // Shells start background processes with SIGINT ignored, including these tests; SIGTERM is not affected.
        let output = interrupted(Signal::TERM, |url| {
            let (command, rest) = arguments.split_first().unwrap();
            [command, url].into_iter().chain(rest.iter().copied()).map(str::to_owned).collect()
        });
        assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
    }
}
