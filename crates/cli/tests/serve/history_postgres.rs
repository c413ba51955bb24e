//! `serve --config` with a history in PostgreSQL: recording, reading, restarts, and error messages for an unusable
//! database. Without the PostgreSQL programs these tests are skipped, or fail if TAKTWERK_TEST_POSTGRES is "required".

#![cfg(feature = "postgres")]

use crate::database::Database;
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

    let file =
        configuration(folder.path(), &format!("postgresql = \"{}\"\n", self::url(&database, "postgres")));
    let sql = |text: &str| {
        let config: taktwerk_history::postgres::Config = database.url().parse().unwrap();
        config.connect(taktwerk_history::postgres::NoTls).unwrap().batch_execute(text).unwrap();
    };
    sql("ALTER TABLE taktwerk_value RENAME TO taktwerk_old");
    let told = refused(&file);
    let said = [key, "\"postgres\"", "taktwerk_value", "renamed", "Rename it back"];
    assert!(said.iter().all(|part| told.contains(part)) && !told.contains("createdb"), "{told}");
}

/// Current values are more important than recording them.
#[test]
fn a_server_starts_while_its_database_is_down_and_records_later() {
    let Some(mut database) = Database::start() else { return };
    let end = Instant::now() + LIMIT;
    while !ready(&database) {
        assert!(Instant::now() < end, "the database does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    database.kill();
    let folder = tempfile::tempdir().unwrap();
    let record = "[[history.record]]\nbelow = \"ns=2;s=Plant/Boiler/Level\"\n";
    let url = url(&database, "postgres");
    let file = configuration(folder.path(), &format!("postgresql = \"{url}\"\n{record}"));
    let server = serve(&file);
    let ask = |command: &str| {
        Command::new(BINARY).args([command, server.url(), NODE, "--policy", "None"]).output().unwrap()
    };
    assert!(ask("read").status.success());
    assert!(!ask("history").status.success());
    database.go_on();
    let end = Instant::now() + LIMIT;
    while !ask("history").status.success() {
        assert!(Instant::now() < end, "the database is not opened");
        database.start_if_ended();
        std::thread::sleep(Duration::from_millis(300));
    }
    wait_for(4, || history(&server, NODE, &["--from", "-1h", "--csv"]));
    server.stop().unwrap();
}

/// A database that hangs holds neither readers nor the end of the server.
#[test]
fn a_server_stops_while_its_database_hangs() {
    let Some(database) = Database::start() else { return };
    let end = Instant::now() + LIMIT;
    while !ready(&database) {
        assert!(Instant::now() < end, "the database does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    let folder = tempfile::tempdir().unwrap();
    let record = "[[history.record]]\nbelow = \"ns=2;s=Plant/Boiler/Level\"\n";
    let url = url(&database, "postgres");
    let file = configuration(folder.path(), &format!("postgresql = \"{url}\"\n{record}"));
    let log = folder.path().join("log");
    let mut server = Command::new(BINARY)
        .args(["serve", "--quiet", "--config"])
        .arg(&file)
        .stdout(std::process::Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.stdout.take().unwrap()), &mut line)
        .unwrap();
    let address = line.trim().strip_prefix("READY ").unwrap().to_owned();
    let read = || {
        let words = ["history", &address, NODE, "--policy", "None", "--from", "-1h", "--csv"];
        let output = Command::new(BINARY).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    wait_for(3, read);
    database.freeze(true);
    // More values arrive, and the next batch is not answered.
    std::thread::sleep(Duration::from_secs(3));
    let asked = Instant::now();
    let pid = rustix::process::Pid::from_raw(server.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = server.wait().unwrap();
    database.freeze(false);
    // The time of TimeoutStopSec in the package's service.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!(status.code(), Some(6));
    let told = std::fs::read_to_string(&log).unwrap();
    assert!(told.contains("could not be stored and are lost"), "{told}");
}
