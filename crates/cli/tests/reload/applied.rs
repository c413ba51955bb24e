//! Reloading of a running server's configuration, and notifications to the service manager.

use crate::installation::{BASE, Installation, LIMIT, apply, folder_of, nodeset, run, until};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use taktwerk::client::{Item, Update};
use taktwerk::{Client, DataValue, NodeId, StatusCode};

/// Removes all permissions in the plant's namespace.
const CLOSED: &str =
    "[[namespace]]\nuri = \"urn:taktwerk:demo-plant\"\n[namespace.permissions]\nEngineer = [\"Browse\"]\n";

/// Whether an anonymous client can read the plant's mode.
fn reads(url: &str) -> bool {
    let (code, text) = run(&["read", url, "ns=2;s=Plant/Mode"]);
    assert!(matches!(code, 0 | 4), "{text}");
    code == 0
}

#[test]
fn permissions_change_at_once_and_other_settings_need_a_restart() {
    let installation = Installation::new();
    let file = installation.file();
    assert!(apply(&file).1.contains("no server runs with"), "{}", apply(&file).1);
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    assert!(reads(&url));
    assert_eq!(apply(&file), (0, "no setting that a running server can apply has changed\n".to_owned()));
    installation.write(&format!("{CLOSED}[limits]\nsessions = 7\n"));
    assert!(reads(&url), "not requested yet");
    let (code, text) = apply(&file);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("applied: namespace\n"), "{text}");
    assert!(text.contains("waiting for a restart: limits.sessions\n"), "{text}");
    assert!(!reads(&url));
    // Settings that need a restart are reported until they are reverted.
    installation.write("");
    let (_, json) = run(&["config", "apply", file.to_str().unwrap(), "--json"]);
    let outcome: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(outcome, serde_json::json!({ "Applied": ["namespace"], "Waiting": [], "Problem": null }));
    assert!(reads(&url));
}

#[test]
fn an_invalid_file_changes_nothing() {
    let installation = Installation::new();
    let file = installation.file();
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    for (wrong, said) in [
        (format!("{CLOSED}[limits]\nsessons = 7\n"), "unknown field `sessons`"),
        (format!("{CLOSED}[[namespace]]\nuri = \"urn:typo\"\n"), "urn:typo"),
        (format!("{CLOSED}[audit]\nfile = \"no/audit.jsonl\"\n"), "does not exist"),
        // Valid, but the address is used by the OPC UA server.
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
fn a_tag_that_cannot_be_recorded_is_refused() {
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

/// Whoever asks for the reload, the same rules hold as for `config check`.
#[cfg(feature = "gateway")]
#[test]
fn a_signal_does_not_apply_destinations_with_missing_nodes() {
    let destination = |node: &str| {
        format!(
            "{CLOSED}[[destination]]\nname = \"d\"\ntype = \"file\"\nfolder = \"f\"\nfields = [{{ name = \"a\", node = \"{node}\" }}]\n"
        )
    };
    let installation = Installation::new();
    let service = Service::start(&installation);
    let ready = service.hear("READY=1");
    let url = ready.lines().find_map(|line| line.strip_prefix("STATUS=serving ")).unwrap().to_owned();
    for (node, said, is_applied) in
        [("Plant/Moode", "stays as it was", false), ("Plant/Mode", "was read again", true)]
    {
        installation.write(&destination(&format!("nsu=urn:taktwerk:demo-plant;s={node}")));
        service.send("-HUP");
        let told = service.hear("READY=1");
        assert!(told.contains(said), "{told}");
        assert_eq!(reads(&url), !is_applied, "{node}");
    }
}

#[test]
fn a_signal_and_a_changed_file_both_reload() {
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
    assert_eq!(apply(&file), (0, "no setting that a running server can apply has changed\n".to_owned()));
    // One stays, one changes, one is new.
    std::fs::write(&line, nodeset(&[(1, 1.0), (2, 2.5), (3, 3.0)])).unwrap();
    let (code, text) = apply(&file);
    assert_eq!((code, text.contains("applied: server.nodesets")), (0, true), "{text}");
    assert!(value(1).contains("7.5"), "a value that was written stays: {}", value(1));
    assert!(value(2).contains("2.5") && value(3).contains('3'), "{} {}", value(2), value(3));
    // A file with a mistake changes nothing.
    std::fs::write(&line, nodeset(&[(4, 4.0)]).replace("<Double", "<Dooble")).unwrap();
    let (code, text) = apply(&file);
    assert!(code != 0 && text.contains("line.xml"), "{text}");
    assert!(value(1).contains("7.5"));
    // Without the setting, the nodes are removed.
    std::fs::write(&file, NODESETS.replace("\"line.xml\"", "")).unwrap();
    let (code, text) = apply(&file);
    assert_eq!((code, text.contains("applied: server.nodesets")), (0, true), "{text}");
    assert!(value(1).contains("BadNodeIdUnknown"), "{}", value(1));
}

/// A reload replaces the Variable: what is published, and what is received, follows it.
#[test]
fn pubsub_follows_a_changed_nodeset() {
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let group = format!("opc.udp://239.192.10.1:{port}");
    let installation = Installation::new();
    let (file, line) = (installation.file(), installation.folder.path().join("line.xml"));
    let pubsub = format!(
        "[[data-set]]\nname = \"out\"\nfields = [{{ name = \"v\", type = \"Double\", node = \"ns=2;i=1\" }}]\n\
         [[connection]]\nname = \"udp\"\npublisher-id = {{ uint16 = 7 }}\nurl = \"{group}\"\ninterface = \"lo\"\n\
         [[connection.writer-group]]\nname = \"g\"\nid = 1\ninterval = 20.0\n\
         writers = [{{ name = \"w\", id = 1, data-set = \"out\" }}]\n\
         [[connection.reader-group]]\nname = \"in\"\nreaders = [{{ name = \"r\", publisher-id = {{ uint16 = 7 }}, \
         writer-id = 1, fields = [{{ name = \"v\", type = \"Double\", node = \"ns=2;i=2\" }}] }}]\n"
    );
    std::fs::write(installation.folder.path().join("pubsub.toml"), pubsub).unwrap();
    let text = BASE
        .replace("[server]\n", "[server]\nnodesets = [\"line.xml\"]\n")
        .replace("simulated_plant = true\n", "");
    std::fs::write(&file, format!("{text}[pubsub]\nconfiguration = \"pubsub.toml\"\n")).unwrap();
    std::fs::write(&line, nodeset(&[(1, 1.5), (2, 0.0)])).unwrap();
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    // The server receives its own messages and writes the value into the second Variable.
    let value = |id: u32| run(&["read", &url, &format!("ns=2;i={id}"), "--json"]).1;
    until("the first value is received", || value(2).contains("1.5"));
    std::fs::write(&line, nodeset(&[(1, 2.5), (2, 0.25)])).unwrap();
    let (code, text) = apply(&file);
    assert_eq!((code, text.contains("applied: server.nodesets")), (0, true), "{text}");
    until("the value of the new Variable is sent, and written into the new target", || {
        value(2).contains("2.5")
    });
    let (code, text) = run(&["write", &url, "ns=2;i=1", "3.5"]);
    assert_eq!(code, 0, "{text}");
    until("a later value", || value(2).contains("3.5"));
}

/// Recorded variables and alarms follow a NodeSet that changes; nothing else is affected.
#[test]
fn recording_and_alarms_follow_a_changed_nodeset() {
    const RULES: &str = "[history]\nfile = \"h.db\"\n\
                         [[history.record]]\nbelow = \"nsu=urn:line;i=100\"\n\
                         [[alarms.alarm]]\nvariable = \"nsu=urn:line;i=2\"\nhigh = 80.0\n";
    let installation = Installation::new();
    let (file, line) = (installation.file(), installation.folder.path().join("line.xml"));
    let text = format!("{BASE}{RULES}").replace("[server]\n", "[server]\nnodesets = [\"line.xml\"]\n");
    std::fs::write(&file, text.replace("simulated_plant = true", "simulated_plant = false")).unwrap();
    std::fs::write(&line, folder_of(&[(1, 1.0), (2, 2.0)])).unwrap();
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    let write = |id: u32, value: &str| {
        let (code, text) = run(&["write", &url, &format!("ns=2;i={id}"), value]);
        assert_eq!(code, 0, "{text}");
    };
    // The alarm's own nodes.
    let shows = |path: &str, value: &str| {
        let (code, text) = run(&["read", &url, &format!("ns=2;s=2/LevelAlarm/{path}"), "--json"]);
        assert_eq!(code, 0, "{text}");
        text.contains(value)
    };
    let is_active = |value: &str| shows("ActiveState/Id", value);
    let recorded = |id: u32, value: &str| {
        let (code, text) = run(&["history", &url, &format!("ns=2;i={id}"), "--from", "-1h", "--csv"]);
        code == 0 && text.lines().any(|line| line.split(',').any(|field| field == value))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut subscription = runtime.block_on(async {
        let client = Client::builder(&url).unsecured().connect().await.unwrap();
        let subscription = client.subscribe(Duration::from_millis(50)).await.unwrap();
        subscription.monitor_item(Item::new(NodeId::numeric(2, 1)).queue(100)).await.unwrap();
        subscription
    });
    write(2, "90.25");
    until("the alarm", || is_active("true"));
    let (code, text) = run(&["alarms", &url, "--acknowledge", "LevelAlarm", "--comment", "seen"]);
    assert_eq!(code, 0, "{text}");
    // One variable stays, one changes, one is new.
    std::fs::write(&line, folder_of(&[(1, 1.0), (2, 95.5), (3, 3.0)])).unwrap();
    let (code, text) = apply(&file);
    assert_eq!((code, text.contains("applied: server.nodesets")), (0, true), "{text}");
    assert!(
        is_active("true") && shows("AckedState/Id", "true") && shows("Comment", "seen"),
        "its state is kept"
    );
    for (id, value) in [(1, "11.25"), (2, "22.25"), (3, "33.25")] {
        write(id, value);
        until(value, || recorded(id, value));
    }
    assert!(recorded(2, "90.25") && recorded(2, "95.5"), "values from before and the value of the file");
    until("the alarm follows the new variable", || is_active("false"));
    // The variable goes, and comes back with a later file.
    std::fs::write(&line, folder_of(&[(1, 1.0), (3, 3.0)])).unwrap();
    let (code, text) = apply(&file);
    assert!(code == 2 && text.contains("alarms.alarm.variable: this server has no node"), "{code} {text}");
    let hangup = Command::new("kill").args(["-HUP", &server.pid().to_string()]).status().unwrap();
    assert!(hangup.success());
    until("the alarm reports that it is missing", || shows("Quality", "BadNodeIdUnknown"));
    std::fs::write(&line, folder_of(&[(1, 1.0), (2, 99.5), (3, 3.0)])).unwrap();
    assert_eq!(apply(&file).0, 0);
    until("the alarm is active again", || is_active("true"));
    until("it is recorded again", || recorded(2, "99.5"));
    write(1, "12.25");
    // The item of the variable that has stayed got every value, and nothing else.
    let values: Vec<DataValue> = runtime.block_on(async {
        let mut values = Vec::new();
        while values.len() < 3 {
            match tokio::time::timeout(LIMIT, subscription.next()).await.unwrap().unwrap() {
                Update::Change(change) => values.push(change.value),
                other => {
                    let told = format!("{other:?}");
                    let is_expected =
                        ["State(Items(", "State(KeepAlive"].iter().any(|one| told.starts_with(one));
                    assert!(is_expected, "{told}");
                }
            }
        }
        values
    });
    let values: Vec<_> = values.into_iter().map(|one| (one.status(), one.value)).collect();
    let expected = [1.0, 11.25, 12.25].map(|value| (StatusCode::GOOD, Some(value.into())));
    assert_eq!(values, expected);
}

/// Files in a directory are added, changed and removed.
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

/// A server and its service manager.
struct Service {
    server: Child,
    manager: UnixDatagram,
}

impl Service {
    fn start(installation: &Installation) -> Self {
        let socket = installation.folder.path().join("notify");
        let manager = UnixDatagram::bind(&socket).unwrap();
        manager.set_read_timeout(Some(LIMIT)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        command.args(["serve", "--config"]).arg(installation.file()).env("NOTIFY_SOCKET", &socket);
        command.env("WATCHDOG_USEC", "20000000").stdout(Stdio::null()).stderr(Stdio::null());
        Self { server: command.spawn().unwrap(), manager }
    }

    /// Waits for a message that has a line with this beginning.
    fn hear(&self, word: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            let length = self.manager.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|line| line.starts_with(word)) {
                return text;
            }
        }
    }

    fn send(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.server.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn the_service_manager_is_notified_of_all_states() {
    let installation = Installation::new();
    let service = Service::start(&installation);
    let hear = |word: &str| service.hear(word);
    assert!(hear("READY=1").contains("STATUS=serving opc.tcp://"));
    hear("WATCHDOG=1");
    installation.write(&format!("{CLOSED}[limits]\nsessions = 7\n"));
    assert_eq!(apply(&installation.file()).0, 0);
    assert!(hear("RELOADING=1").contains("MONOTONIC_USEC="));
    assert!(hear("READY=1").contains("waiting for a restart: limits.sessions"));
    installation.write("[nonsense]\n");
    service.send("-HUP");
    assert!(hear("READY=1").contains("the configuration stays as it was"));
    service.send("-TERM");
    hear("STOPPING=1");
}

#[test]
fn destinations_are_applied_and_unused_queues_are_named() {
    const TAG: &str = "[[source]]\nname = \"sim\"\ntype = \"simulation\"\ninterval = \"20 ms\"\n\
                       [[tag]]\nsource = \"sim\"\nname = \"v\"\nsignal = \"noise\"\n";
    let archive = |folder: &str| {
        format!(
            "{TAG}[[destination]]\nname = \"archive\"\ntype = \"file\"\nfolder = \"{folder}\"\nflush = \"10 ms\"\n"
        )
    };
    let installation = Installation::new();
    let file = installation.file();
    installation.write(TAG);
    let server = installation.serve(&[]);
    installation.write(&archive("values"));
    let (code, text) = apply(&file);
    assert_eq!((code, text.as_str()), (0, "applied: destination\n"));
    let folder = installation.folder.path().join("values");
    until("values are written", || std::fs::read_dir(&folder).is_ok_and(|entries| entries.count() > 0));
    installation.write(&archive("elsewhere"));
    assert_eq!(apply(&file), (0, "applied: destination\n".to_owned()));
    let folder = installation.folder.path().join("elsewhere");
    until("values are written", || std::fs::read_dir(&folder).is_ok_and(|entries| entries.count() > 0));
    installation.write(TAG);
    let (code, text) = apply(&file);
    assert!(
        code == 0 && text.contains("destination archive:") && text.contains("archive.queue.db"),
        "{text}"
    );
    assert!(installation.folder.path().join("archive.queue.db").exists());
    drop(server);
}
