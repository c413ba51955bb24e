//! Runs loads against a server in this process: no command line, no output except the document.

#![allow(clippy::unwrap_used)] // a test that panics has failed

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use taktwerk::{RunningServer, Server};
use taktwerk_generator::client::Tell;
use taktwerk_generator::{Attendant, Context, Finished, GeneratorError, Step, signals};
use taktwerk_load::Specification;
use taktwerk_load::connection::{ConnectionArgs, SecurityArgs};
use taktwerk_load::result::{Ending, Head, Requests, Subscribed};
use taktwerk_load::specification::{Common, Fan, Request, Subscribe};

fn server(count: u32) -> RunningServer {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    signals::add(&server, count).unwrap();
    server.spawn().unwrap()
}

fn common(url: &str) -> Common {
    let security = SecurityArgs { policy: Some("None".to_owned()), ..SecurityArgs::default() };
    Common {
        connection: ConnectionArgs { endpoint: url.parse().unwrap(), security },
        duration: Duration::from_millis(300),
        warmup: Duration::ZERO,
        ..Common::default()
    }
}

fn run(mut load: Specification, is_ended: bool) -> Result<Finished, GeneratorError> {
    let context = Context::new(&(), Arc::new(AtomicBool::new(is_ended)));
    taktwerk_generator::run(&mut load, &context)
}

#[test]
fn a_read_load_returns_a_typed_document() {
    let server = server(10);
    let common = common(&server.url());
    let load = Request { common, count: Some(25), batch: 4, ..Request::default() };
    let finished = run(Specification::Read(load), false).unwrap();
    let head: Head = finished.document.part().unwrap();
    assert_eq!(
        (head.command.as_str(), head.url.trim_end_matches('/')),
        ("read", server.url().trim_end_matches('/'))
    );
    let requests: Requests = finished.document.part().unwrap();
    assert_eq!((requests.requests, requests.bad, requests.nodes), (25, 0, 4));
    assert_eq!((requests.requested.count, requests.requested.batch), (Some(25), 4));
    assert!(finished.lines.times.iter().any(|(what, times)| what == "round trip" && times.count == 25));
    assert!(finished.lines.facts.iter().any(|(what, _)| what == "throughput"), "{:?}", finished.lines);
}

#[test]
fn stopped_loads_are_marked_in_their_document() {
    let server = server(2);
    let load = Subscribe {
        common: common(&server.url()),
        interval: Duration::from_millis(20),
        ..Subscribe::default()
    };
    match run(Specification::Subscribe(load), true) {
        // It was stopped before there was a result.
        Err(GeneratorError::Interrupted) => {}
        other => panic!("{other:?}"),
    }
    let load = Request { common: common(&server.url()), ..Request::default() };
    let finished = run(Specification::Read(load), true).unwrap();
    assert!(matches!(finished.outcome, Err(GeneratorError::Interrupted)), "{:?}", finished.outcome);
    assert!(finished.document.part::<Ending>().unwrap().interrupted);
}

#[test]
fn invalid_loads_and_missing_servers_are_typed_errors() {
    let server = server(1);
    let fan = Fan { common: Common { clients: 1, ..common(&server.url()) }, ..Fan::default() };
    assert!(matches!(run(Specification::Fan(fan), false), Err(GeneratorError::Usage(_))));
    drop(server);
    // No server listens on port 1.
    let load = Request { common: common("opc.tcp://127.0.0.1:1"), ..Request::default() };
    assert!(matches!(run(Specification::Read(load), false), Err(GeneratorError::Connect(_))));
}

/// Records progress.
#[derive(Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

struct Noted(Arc<Mutex<Vec<String>>>, String);

impl Step for Noted {
    fn at(&mut self, position: u64) {
        self.0.lock().unwrap().push(format!("{} {position}", self.1));
    }
}

impl Tell for Notes {
    fn tell(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

impl Attendant for Notes {
    fn step(&self, what: &str, total: u64) -> Box<dyn Step> {
        self.0.lock().unwrap().push(format!("{what} of {total}"));
        Box::new(Noted(Arc::clone(&self.0), what.to_owned()))
    }

    fn wait(&self, what: &str, _: Duration) -> Box<dyn Step> {
        self.step(what, 0)
    }

    fn program(&self) -> std::io::Result<std::path::PathBuf> {
        std::env::current_exe()
    }
}

#[test]
fn an_attendant_is_shown_every_step() {
    let server = server(3);
    let notes = Notes::default();
    let context = Context::new(&notes, Arc::default());
    let load = Subscribe {
        common: common(&server.url()),
        interval: Duration::from_millis(20),
        items: Some(3),
        ..Subscribe::default()
    };
    let finished = taktwerk_generator::run(&mut Specification::Subscribe(load), &context).unwrap();
    assert_eq!(finished.document.part::<Subscribed>().unwrap().nodes, 3);
    let notes = notes.0.lock().unwrap();
    assert!(notes.iter().any(|note| note == "subscribing of 4"), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("measuring of ")), "{notes:?}");
}
