//! `serve --config` with a history in PostgreSQL: recording, reading, restarts, and error messages for an unusable
//! database. Without the PostgreSQL programs these tests are skipped, or fail if TAKTWERK_TEST_POSTGRES is "required".

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "../../history/src/postgres/database.rs"]
mod database;

use database::Database;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use taktwerk_lab::program::{Program, Running};

const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
const LIMIT: Duration = Duration::from_secs(60);
const NODE: &str = "ns=2;s=Plant/Boiler/Level";

/// A server configuration with the plant and a section `[history]`.
fn configuration(folder: &Path, history: &str) -> PathBuf {
    let file = folder.join("server.toml");
    let text = format!(
        "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\nnone = true\npolicies = []\n[identities]\n\
         anonymous = true\n[permissions]\nunspecified = \"open\"\n[history]\n{history}"
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn serve(file: &Path) -> Running {
    let program = Program::new(BINARY).args(["serve", "--config"]).arg(file.display());
    program.args(["--exit-with-stdin", "--quiet"]).serve(LIMIT).unwrap()
}

/// The error of `serve` if it does not start.
fn refused(file: &Path) -> String {
    let output = Command::new(BINARY).args(["serve", "--config"]).arg(file).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn history(server: &Running, node: &str, arguments: &[&str]) -> Vec<String> {
    let words = ["history", server.url(), node, "--policy", "None"];
    let output = Command::new(BINARY).args(words).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Reads until there are `count` lines.
fn wait_for(count: usize, read: impl Fn() -> Vec<String>) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let found = read();
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < end, "only {} are recorded", found.len());
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// The address as a URL.
fn url(database: &Database, name: &str) -> String {
    let folder = database.folder().display().to_string().replace('/', "%2F");
    format!("postgresql://taktwerk@{folder}/{name}")
}

#[test]
fn values_and_events_are_recorded_in_postgres_and_read_after_a_restart_and_an_outage() {
    let Some(mut database) = Database::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = url(&database, "postgres");
    let record = "events = true\n[[history.record]]\nbelow = \"ns=2;s=Plant/Boiler/Level\"\n";
    let file = configuration(folder.path(), &format!("postgresql = \"{url}\"\n{record}"));
    // It accepts connections a moment later.
    let end = Instant::now() + LIMIT;
    while !ready(&database) {
        assert!(Instant::now() < end, "the database does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    let server = serve(&file);
    let values = |server: &Running| history(server, NODE, &["--from", "-1h", "--csv"]);
    let events = |server: &Running| history(server, "i=2253", &["--events", "--json"]);
    let (before, kept) = (wait_for(4, || values(&server)), wait_for(2, || events(&server)));
    server.stop().unwrap();

    let mut server = serve(&file);
    let after = wait_for(before.len() + 1, || values(&server));
    assert_eq!(after[..before.len()], before);
    assert!(!after.iter().any(|line| line.contains("BadDataLost")), "{after:?}");
    assert_eq!(events(&server)[..kept.len()], kept);

    database.kill();
    std::thread::sleep(Duration::from_secs(2));
    assert!(server.is_running());
    let read = Command::new(BINARY).args(["read", server.url(), NODE, "--policy", "None"]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let failed = Command::new(BINARY).args(["history", server.url(), NODE, "--policy", "None"]).output();
    assert!(!failed.unwrap().status.success());
    database.go_on();
    let end = Instant::now() + LIMIT;
    while !ready(&database) {
        assert!(Instant::now() < end, "the database does not come back");
        std::thread::sleep(Duration::from_millis(100));
    }
    let later = wait_for(after.len() + 2, || values(&server));
    assert_eq!(later[..after.len()], after);
}

/// Whether the database accepts connections.
fn ready(database: &Database) -> bool {
    taktwerk_history::PostgresStore::open(&database.url(), "urn:test", Duration::ZERO).is_ok()
}

#[test]
fn missing_databases_are_reported_with_key_and_advice() {
    let folder = tempfile::tempdir().unwrap();
    let (key, url) =
        ("server.toml:12: history.postgresql", "postgresql = \"postgresql://u@127.0.0.1:1/d\"\n");
    for (history, said) in [
        (url, [key, "check that the database runs"]),
        ("postgresql = \"postgresql://127.0.0.1/d\"\n", [key, "names no user"]),
        ("postgresql = \"postgresql://u:secret@127.0.0.1/d\"\n", [key, "TAKTWERK_HISTORY_PASSWORD"]),
        ("postgresql = \"mysql://u@h/d\"\n", [key, "write \"postgresql://user@host:5432/database\""]),
        (&*format!("{url}file = \"history.db\"\n"), ["server.toml:12: ", "remove one of them"]),
        (&*format!("{url}keep_megabytes = 1\n"), ["history.keep_megabytes", "keep_days"]),
        (&*format!("{url}password_file = \"none\"\n"), ["history.password_file", "none"]),
        ("password_file = \"none\"\n", ["password_file is set", "postgresql = "]),
        (&*format!("{url}tls = true\nca_file = \"none.pem\"\n"), ["history.ca_file", "none.pem"]),
    ] {
        let told = refused(&configuration(folder.path(), history));
        assert!(said.iter().all(|part| told.contains(part)), "{history}{told}");
        assert!(!told.contains("secret"), "{told}");
    }
    let Some(database) = Database::start() else { return };
    let end = Instant::now() + LIMIT;
    while !ready(&database) {
        assert!(Instant::now() < end, "the database does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    let file =
        configuration(folder.path(), &format!("postgresql = \"{}\"\n", self::url(&database, "missing")));
    let told = refused(&file);
    assert!(told.contains(key) && told.contains("does not exist") && told.contains("createdb"), "{told}");
}
