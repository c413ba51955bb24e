//! A server whose names and values try to control the terminal.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use taktwerk::Server;
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);
const NAME: &str = "a\u{1b}]0;pwned\u{7}\u{1b}[2J\u{202e}b\r\n└─ Admin";
const VALUE: &str = "\u{9b}2J\u{1b}[1A\rgood\u{0}";

/// Every command that prints data of a server, as tables, lists and JSON.
#[test]
fn server_data_is_escaped_on_the_terminal() {
    let server = Server::builder().anonymous().bind("127.0.0.1:0").build().unwrap();
    let namespace = server.namespace("urn:hostile");
    let folder = namespace.folder(NAME).unwrap();
    folder.variable("value", VALUE).description(NAME).add().unwrap();
    let plant = namespace.object("Plant").event_notifier().add().unwrap();
    plant.alarm(NAME).severity(900).without_nodes().add().unwrap().set_active(true, VALUE);
    let running = server.spawn().unwrap();
    // `events` needs an event while it listens.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let raising = std::thread::spawn(move || {
        while ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
            plant.base_event().severity(700).message(VALUE).emit();
        }
    });
    let url = running.url();
    let node = format!("nsu=urn:hostile;s={NAME}/value");
    let mut seen = 0;
    for arguments in [
        vec!["browse", &url, "-r"],
        vec!["browse", &url, "-r", "--list"],
        vec!["browse", &url, "-r", "--json"],
        vec!["read", &url, &node],
        vec!["read", &url, &node, &node],
        vec!["read", &url, &node, "--json"],
        vec!["watch", &url, &node, "-n", "1"],
        vec!["watch", &url, &node, "-n", "1", "--json"],
        vec!["events", &url, "-n", "1"],
        vec!["events", &url, "-n", "1", "--json"],
        vec!["alarms", &url, "--list"],
        vec!["alarms", &url, "--list", "--json"],
        vec!["read", &url, &format!("{node}\u{1b}[2J")],
    ] {
        let shown: Vec<String> = arguments.iter().map(|text| text.escape_debug().to_string()).collect();
        let found = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(&arguments).run(LIMIT).unwrap();
        let text = [found.stdout, found.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        let steers = |char: char| {
            (char.is_control() && !matches!(char, '\n' | '\t')) || ('\u{202a}'..='\u{202e}').contains(&char)
        };
        assert!(!text.contains(steers), "{shown:?}: {:?}", text.escape_debug().to_string());
        // No name starts a line of its own.
        assert!(!text.contains("\n└─ Admin"), "{shown:?}: {text}");
        seen += usize::from(text.contains("pwned") || text.contains("good"));
    }
    assert!(seen >= 12, "{seen}");
    drop(end);
    raising.join().unwrap();
}
