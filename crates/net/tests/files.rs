//! Behaviour without free file descriptors. A separate test binary, because the test changes the process's limit.

#![allow(clippy::unwrap_used)] // a helper that fails is a test that fails

mod common;

use core::time::Duration;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::net::TcpStream;
use taktwerk_net::{ServerOptions, clock};

#[test]
fn without_descriptors_connections_wait_and_no_thread_spins() {
    let server = common::start(0, 1, ServerOptions::default());
    let address = server.running.addresses()[0];
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum: limit.maximum }).unwrap();
    let mut clients: Vec<_> = (0..60).map(|_| TcpStream::connect(address).unwrap()).collect();
    common::wait_until("all are accepted", || server.running.connections() == clients.len());
    // Use up all descriptors; the last one goes to a client, so that none is left to accept it with.
    let mut spare: Vec<File> = core::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(spare.pop().is_some(), "the limit leaves descriptors to take");
    clients.push(TcpStream::connect(address).unwrap());
    let before = clock::process_cpu();
    std::thread::sleep(Duration::from_millis(500));
    let used = clock::process_cpu() - before;
    assert!(used < Duration::from_millis(50), "{used:?} of CPU while there was nothing to do");
    assert_eq!(server.running.connections() + 1, clients.len());
    drop(spare);
    setrlimit(Resource::Nofile, limit).unwrap();
    common::wait_until("all are accepted", || server.running.connections() == clients.len());
}
