//! A running server takes over its changed configuration, and only a right one; the service manager hears of it.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(120);
const BASE: &str = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\npolicies = []\nnone = true\n\
                    [identities]\nanonymous = true\n[permissions]\nunspecified = \"open\"\n";
/// Takes everything in the plant's namespace from everybody.
const CLOSED: &str =
    "[[namespace]]\nuri = \"urn:taktwerk:demo-plant\"\n[namespace.permissions]\nEngineer = [\"Browse\"]\n";

struct Installation {
    folder: tempfile::TempDir,
}

impl Installation {
    fn new() -> Self {
        let installation = Self { folder: tempfile::tempdir().unwrap() };
        installation.write("");
        installation
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("server.toml")
    }

    fn write(&self, more: &str) {
        // In one step, as `--watch` has to see it whole.
        let other = self.folder.path().join("other");
        std::fs::write(&other, format!("{BASE}{more}")).unwrap();
        std::fs::rename(other, self.file()).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Running {
        let program = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
        let program = program.args(["serve", "--exit-with-stdin", "--config"]).arg(self.file().display());
        program.args(more).serve(LIMIT).unwrap()
    }
}

/// A command's exit code, and what it printed.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

fn apply(file: &Path) -> (i32, String) {
    run(&["config", "apply", file.to_str().unwrap()])
}

/// Whether an anonymous client reads the plant's mode.
fn reads(url: &str) -> bool {
    let (code, text) = run(&["read", url, "ns=2;s=Plant/Mode"]);
    assert!(matches!(code, 0 | 4), "{text}");
    code == 0
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn permissions_change_at_once_and_what_needs_a_restart_is_named() {
    let installation = Installation::new();
    let file = installation.file();
    assert!(apply(&file).1.contains("no server runs with"), "{}", apply(&file).1);
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    assert!(reads(&url));
    assert_eq!(apply(&file), (0, "nothing that a running server can take over has changed\n".to_owned()));
    installation.write(&format!("{CLOSED}[limits]\nsessions = 7\n"));
    assert!(reads(&url), "nobody has asked for it yet");
    let (code, text) = apply(&file);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("taken over: namespace\n"), "{text}");
    assert!(text.contains("waiting for a restart: limits.sessions\n"), "{text}");
    assert!(!reads(&url));
    // What waits is named until it does no longer.
    installation.write("");
    let (_, json) = run(&["config", "apply", file.to_str().unwrap(), "--json"]);
    let outcome: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(outcome, serde_json::json!({ "Applied": ["namespace"], "Waiting": [], "Problem": null }));
    assert!(reads(&url));
}

#[test]
fn a_wrong_file_changes_nothing() {
    let installation = Installation::new();
    let file = installation.file();
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    for (wrong, said) in [
        (format!("{CLOSED}[limits]\nsessons = 7\n"), "unknown field `sessons`"),
        (format!("{CLOSED}[[namespace]]\nuri = \"urn:typo\"\n"), "urn:typo"),
        (format!("{CLOSED}[audit]\nfile = \"no/audit.jsonl\"\n"), "there is no folder"),
        // Right by itself, but the address is taken: by the OPC UA server.
        (
            format!("{CLOSED}[web]\nbind = \"{}\"\n", url.strip_prefix("opc.tcp://").unwrap()),
            "the server stays as it was",
        ),
    ] {
        installation.write(&wrong);
        let (code, text) = apply(&file);
        assert!(matches!(code, 2 | 6) && text.contains(said), "{wrong}: {code} {text}");
        assert!(reads(&url), "{wrong}");
    }
    installation.write(CLOSED);
    assert_eq!(apply(&file).0, 0);
    assert!(!reads(&url));
}

#[test]
fn a_tag_that_cannot_be_recorded_yet_stays_as_it_is() {
    const TAG: &str = "[[source]]\nname = \"sim\"\ntype = \"simulation\"\ninterval = \"50 ms\"\n\
                       [[tag]]\nsource = \"sim\"\nname = \"v\"\n";
    let installation = Installation::new();
    let file = installation.file();
    installation.write(TAG);
    let server = installation.serve(&[]);
    let reads = || run(&["read", server.url(), "nsu=urn:taktwerk:gateway;s=sim/v"]);
    until("the tag has a value", || reads().0 == 0);
    installation.write(&format!("[history]\nfile = \"h.db\"\n{TAG}historize = true\n"));
    let (code, text) = apply(&file);
    assert!(code == 2 && text.contains("started without [history]"), "{code} {text}");
    let (code, text) = reads();
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_signal_and_a_watched_file_do_the_same() {
    let installation = Installation::new();
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    installation.write(CLOSED);
    let hangup = Command::new("kill").args(["-HUP", &server.pid().to_string()]).status().unwrap();
    assert!(hangup.success());
    until("SIGHUP", || !reads(&url));
    drop(server);
    installation.write("");
    let server = installation.serve(&["--watch"]);
    let url = server.url().to_owned();
    assert!(reads(&url));
    installation.write(CLOSED);
    until("--watch", || !reads(&url));
}

/// A NodeSet of Variables: their numbers and values.
fn nodeset(variables: &[(u32, f64)]) -> String {
    let node = |(id, value): &(u32, f64)| {
        format!(
            "<UAVariable NodeId=\"ns=1;i={id}\" BrowseName=\"1:V{id}\" DataType=\"i=11\" AccessLevel=\"3\"><References>\
             <Reference ReferenceType=\"i=35\" IsForward=\"false\">i=85</Reference>\
             <Reference ReferenceType=\"i=40\">i=63</Reference></References>\
             <Value><Double xmlns=\"http://opcfoundation.org/UA/2008/02/Types.xsd\">{value}</Double></Value></UAVariable>"
        )
    };
    format!(
        "<UANodeSet xmlns=\"http://opcfoundation.org/UA/2011/03/UANodeSet.xsd\">\
         <NamespaceUris><Uri>urn:line</Uri></NamespaceUris><Models><Model ModelUri=\"urn:line\"/></Models>{}</UANodeSet>",
        variables.iter().map(node).collect::<String>()
    )
}

#[test]
fn nodesets_are_replaced_while_clients_are_connected() {
    const NODESETS: &str = "[server]\nnodesets = [\"line.xml\"]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\n\
                            none = true\n[identities]\nanonymous = true\n[permissions]\nunspecified = \"open\"\n";
    let installation = Installation::new();
    let (file, line) = (installation.file(), installation.folder.path().join("line.xml"));
    std::fs::write(&file, NODESETS).unwrap();
    std::fs::write(&line, nodeset(&[(1, 1.0), (2, 2.0)])).unwrap();
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    let value = |id: u32| {
        let (code, text) = run(&["read", &url, &format!("ns=2;i={id}"), "--json"]);
        assert!(matches!(code, 0 | 4), "{text}");
        text
    };
    let (code, text) = run(&["write", &url, "ns=2;i=1", "7.5"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(apply(&file), (0, "nothing that a running server can take over has changed\n".to_owned()));
    // One stays, one changes, one is new.
    std::fs::write(&line, nodeset(&[(1, 1.0), (2, 2.5), (3, 3.0)])).unwrap();
    let (code, text) = apply(&file);
    assert_eq!((code, text.contains("taken over: server.nodesets")), (0, true), "{text}");
    assert!(value(1).contains("7.5"), "a value that was written stays: {}", value(1));
    assert!(value(2).contains("2.5") && value(3).contains('3'), "{} {}", value(2), value(3));
    // A file with a mistake changes nothing.
    std::fs::write(&line, nodeset(&[(4, 4.0)]).replace("<Double", "<Dooble")).unwrap();
    let (code, text) = apply(&file);
    assert!(code != 0 && text.contains("line.xml"), "{text}");
    assert!(value(1).contains("7.5"));
    // Without the setting the nodes go.
    std::fs::write(&file, NODESETS.replace("\"line.xml\"", "")).unwrap();
    let (code, text) = apply(&file);
    assert_eq!((code, text.contains("taken over: server.nodesets")), (0, true), "{text}");
    assert!(value(1).contains("BadNodeIdUnknown"), "{}", value(1));
}

/// Files come into a directory, change there and go.
#[test]
fn a_directory_of_nodesets_is_watched() {
    let installation = Installation::new();
    let (file, folder) = (installation.file(), installation.folder.path().join("models"));
    std::fs::create_dir(&folder).unwrap();
    let text = BASE.replace("[server]\n", "[server]\nnodesets = [\"models\"]\n");
    std::fs::write(&file, text.replace("simulated_plant = true", "simulated_plant = false")).unwrap();
    let server = installation.serve(&["--watch"]);
    let url = server.url().to_owned();
    let reads = |id: u32, value: &str| {
        let (_, text) = run(&["read", &url, &format!("ns=2;i={id}"), "--json"]);
        text.contains(value)
    };
    std::fs::write(folder.join("notes.txt"), "not a NodeSet").unwrap();
    std::fs::write(folder.join("line.xml"), nodeset(&[(1, 1.5)])).unwrap();
    until("a file that came", || reads(1, "1.5"));
    std::fs::write(folder.join("line.xml"), nodeset(&[(1, 2.5)])).unwrap();
    until("a file that has changed", || reads(1, "2.5"));
    std::fs::remove_file(folder.join("line.xml")).unwrap();
    until("a file that went", || reads(1, "BadNodeIdUnknown"));
}

/// A server with a service manager.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_service_manager_hears_ready_reloading_watchdog_and_stopping() {
    let installation = Installation::new();
    let socket = installation.folder.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(LIMIT)).unwrap();
    let hear = |word: &str| {
        let mut buffer = [0; 4096];
        loop {
            let length = manager.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|line| line.starts_with(word)) {
                return text;
            }
        }
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    command.args(["serve", "--config"]).arg(installation.file()).env("NOTIFY_SOCKET", &socket);
    command.env("WATCHDOG_USEC", "20000000").stdout(Stdio::null()).stderr(Stdio::null());
    let service = Service(command.spawn().unwrap());
    assert!(hear("READY=1").contains("STATUS=serving opc.tcp://"));
    hear("WATCHDOG=1");
    installation.write(&format!("{CLOSED}[limits]\nsessions = 7\n"));
    assert_eq!(apply(&installation.file()).0, 0);
    assert!(hear("RELOADING=1").contains("MONOTONIC_USEC="));
    assert!(hear("READY=1").contains("waiting for a restart: limits.sessions"));
    installation.write("[nonsense]\n");
    let hangup = Command::new("kill").args(["-HUP", &service.0.id().to_string()]).status().unwrap();
    assert!(hangup.success());
    assert!(hear("READY=1").contains("the configuration stays as it was"));
    let end = Command::new("kill").arg(service.0.id().to_string()).status().unwrap();
    assert!(end.success());
    hear("STOPPING=1");
}
