//! `taktwerk events` and `taktwerk alarms` during restarts of their server.

use crate::following::{BINARY, POLICY, Running, pki, renew};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use taktwerk::{MessageSecurityMode, Node, RunningServer, Server, ServerBuilder};
use taktwerk_types::StatusCode;

const LIMIT: Duration = Duration::from_secs(60);

/// A server with two alarms, of which these are active. The node is a notifier of the server.
fn plant(builder: ServerBuilder, active: &[&str]) -> (RunningServer, Node) {
    let server = builder.build().unwrap();
    let boiler = server.namespace("urn:test:plant").object("Boiler").event_notifier().add().unwrap();
    for name in ["Leak", "Power"] {
        let alarm = boiler.alarm(name).add().unwrap();
        if active.contains(&name) {
            alarm.set_active(true, &format!("{name} has tripped"));
        }
    }
    (server.spawn().unwrap(), boiler)
}

fn open(address: &str) -> ServerBuilder {
    Server::builder().bind(address).anonymous().authorization(taktwerk::server::Authorization::open())
}

fn address(running: &RunningServer) -> String {
    running.url().trim_start_matches("opc.tcp://").to_owned()
}

fn restart(running: RunningServer, active: &[&str]) -> (RunningServer, Node) {
    let address = address(&running);
    running.stop(Duration::from_millis(100));
    plant(open(&address), active)
}

#[test]
fn events_continue_after_a_restart_or_a_new_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (pki(folder.path(), "server"), pki(folder.path(), "client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    let secure =
        |address: &str| open(address).pki(&ours).security(POLICY, MessageSecurityMode::SignAndEncrypt);
    let (running, boiler) = plant(secure("127.0.0.1:0"), &[]);
    let place = folder.path().join("client").display().to_string();
    let (url, policy) = (running.url(), POLICY.to_string());
    let events = Running::start(&["events", &url, "-I", "50", "--policy", &policy, "--pki", &place]);
    emit_until(&events, &boiler, "first");
    let address = address(&running);
    running.stop(Duration::from_millis(100));
    events.until("connection lost");
    let (running, boiler) = plant(secure(&address), &[]);
    events.until("it is created again; events in between are lost");
    emit_until(&events, &boiler, "second");
    // The server gets another certificate, which the user has to trust.
    renew(folder.path(), "server");
    let told = events.until("cannot connect");
    assert!(told.contains("taktwerk pki trust"), "{told}");
    theirs.trust_those_of(&ours).unwrap();
    events.until("connected again");
    emit_until(&events, &boiler, "third");
    drop(running);
}

/// Raises events until one is printed, because it is unknown when the subscription exists.
fn emit_until(events: &Running, node: &Node, message: &str) {
    let end = Instant::now() + LIMIT;
    while !has_soon(events, message) {
        assert!(Instant::now() < end, "no event");
        node.base_event().message(message).emit();
    }
}

/// Whether a line with this text arrives within half a second.
fn has_soon(events: &Running, text: &str) -> bool {
    let end = Instant::now() + Duration::from_millis(500);
    let mut lines =
        core::iter::from_fn(|| events.lines.recv_timeout(end.saturating_duration_since(Instant::now())).ok());
    lines.any(|line| line.contains(text))
}

#[test]
fn alarms_are_refreshed_after_a_restart() {
    let (running, _) = plant(open("127.0.0.1:0"), &["Leak", "Power"]);
    let alarms = Running::start(&["alarms", &running.url(), "-I", "50", "--policy", "None", "--json"]);
    alarms.until("Leak has tripped");
    let (_running, _) = restart(running, &["Power"]);
    alarms.until("\"ConnectionLost\"");
    // Power still exists and is reported before the end of the refresh, which shows what is gone.
    let still: Value = serde_json::from_str(&alarms.until("Power has tripped")).unwrap();
    assert_eq!((&still["Retain"], &still["Active"]), (&true.into(), &true.into()), "{still}");
    let gone: Value = serde_json::from_str(&alarms.until("Leak has tripped")).unwrap();
    assert_eq!((&gone["Retain"], &gone["Active"]), (&false.into(), &Value::Null), "{gone}");
}

/// A command on its own terminal.
struct Screen {
    child: Child,
    shown: Receiver<String>,
}

impl Screen {
    fn start(arguments: &[&str]) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let end = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = Command::new(BINARY);
        let child = command.args(arguments).stdin(Stdio::null()).stdout(end()).stderr(end()).spawn().unwrap();
        let (tell, shown) = channel();
        let mut terminal = File::from(terminal);
        std::thread::spawn(move || {
            let (mut block, mut screen) = ([0; 4096], String::new());
            while let Ok(count @ 1..) = terminal.read(&mut block) {
                screen.push_str(&String::from_utf8_lossy(&block[..count]));
                // Only the text after the last clearing of the screen is visible.
                if let Some(at) = screen.rfind("\u{1b}[2J") {
                    screen.drain(..at);
                }
                if tell.send(screen.clone()).is_err() {
                    break;
                }
            }
        });
        Self { child, shown }
    }

    fn until(&self, is_right: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + LIMIT;
        let mut last = String::new();
        loop {
            match self.shown.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(screen) if is_right(&screen) => return screen,
                Ok(screen) => last = screen,
                Err(error) => panic!("{error}; the screen shows {last:?}"),
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_table_shows_that_it_is_stale_and_is_updated_after_a_restart() {
    let (running, _) = plant(open("127.0.0.1:0"), &["Leak", "Power"]);
    let screen = Screen::start(&["alarms", &running.url(), "-I", "50", "--policy", "None"]);
    let shown = screen.until(|screen| screen.contains("Leak has") && screen.contains("Power has"));
    assert!(!shown.contains("connection"), "{shown:?}");
    let address = address(&running);
    running.stop(Duration::from_millis(100));
    let shown =
        screen.until(|screen| screen.contains("connection lost") || screen.contains("cannot connect"));
    assert!(shown.contains("Leak has") && shown.contains("Power has"), "{shown:?}");
    let (running, _) = plant(open(&address), &["Power"]);
    screen.until(|screen| {
        screen.contains("Power has") && !screen.contains("Leak") && !screen.contains("connect")
    });
    drop(running);
}

#[test]
fn a_refused_user_is_not_retried() {
    let knows = |right: &'static [u8]| {
        move |_: &str, password: &[u8]| {
            if password == right { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "one\n").unwrap();
    for command in ["events", "alarms"] {
        let builder = |address: &str, right| open(address).users(knows(right)).allow_clear_passwords();
        let (running, _) = plant(builder("127.0.0.1:0", b"one"), &["Leak"]);
        let login = ["--policy", "None", "--user", "joe", "--password-file", password.to_str().unwrap()];
        let mut following =
            Running::start(&[&[command, &running.url(), "-I", "50", "-v"], &login[..]].concat());
        following.until("session");
        let address = address(&running);
        running.stop(Duration::from_millis(100));
        following.until("connection lost");
        let (running, _) = plant(builder(&address, b"two"), &["Leak"]);
        let told = following.until("error: ");
        assert!(told.contains("Check the name (--user) and the password"), "{told}");
        assert_eq!(following.child.wait().unwrap().code(), Some(3));
        drop(running);
    }
}

/// Lists and operations do not wait for a server that is down.
#[test]
fn a_list_of_a_server_that_is_down_fails_at_once() {
    let (running, _) = plant(open("127.0.0.1:0"), &["Leak"]);
    let url = running.url();
    running.stop(Duration::from_millis(100));
    let listed = Command::new(BINARY).args(["alarms", &url, "--policy", "None", "--list"]).output().unwrap();
    assert_eq!(listed.status.code(), Some(3), "{listed:?}");
}
