//! The built program as a gateway: a file that it wrote itself, and files with mistakes.

#![cfg(feature = "gateway")]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);

fn taktwerk(arguments: &[&str]) -> Output {
    Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Whoever can write the file could change what the server does.
fn private(path: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_file_that_was_written_for_a_device_runs_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let file = file.to_str().unwrap();
    // Nobody answers at that port.
    let output = taktwerk(&["config", "init", file, "--modbus", "127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let check = taktwerk(&["config", "check", file]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    assert!(text(&check.stdout).contains("1 with 1 tags"), "{}", text(&check.stdout));
    let wrong = taktwerk(&["config", "init", file, "--modbus", "127.0.0.1:9"]);
    assert!(text(&wrong.stderr).contains("exists already"));
    let wrong = folder.path().join("wrong.toml");
    let wrong = taktwerk(&["config", "init", wrong.to_str().unwrap(), "--modbus", "a b"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("\"a b\" is no address"), "{}", text(&wrong.stderr));
    // Only the port is changed, because tests run side by side.
    let ours = std::fs::read_to_string(file).unwrap().replace("127.0.0.1:4840", "127.0.0.1:0");
    std::fs::write(file, ours).unwrap();
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    let server = server.args(["serve", "--exit-with-stdin", "--config", file]).serve(LIMIT).unwrap();
    let node = "nsu=urn:taktwerk:gateway;s=modbus-1/Holding registers";
    let begin = Instant::now();
    loop {
        let read = taktwerk(&["read", server.url(), node, "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
        if json.to_string().contains("BadNoCommunication") || json.to_string().contains("Bad_NoCommunication")
        {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{json}");
    }
    let browse = taktwerk(&["browse", server.url(), "/Objects/2:modbus-1"]);
    assert!(text(&browse.stdout).contains("Holding registers"), "{}", text(&browse.stdout));
    server.stop().unwrap();
}

#[test]
fn mistakes_in_sources_and_tags_are_found_before_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let base = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    let source = "[[source]]\nname = \"s\"\ntype = \"simulation\"\n";
    let tag = "[[tag]]\nsource = \"s\"\nname = \"a\"\n";
    for (number, (more, said)) in [
        (
            format!("{source}{tag}signl = \"sine\"\n"),
            "14: signl: there is no such setting here; did you mean `signal`?",
        ),
        (format!("{source}{tag}historize = true\n"), "set file = \"history.db\" under [history]"),
        (format!("{source}{}", tag.replace("\"s\"", "\"t\"")), "there is no source \"t\""),
    ]
    .into_iter()
    .enumerate()
    {
        let file = write(folder.path(), &format!("{number}.toml"), &format!("{base}{more}"));
        private(&file);
        for command in [&["config", "check", &file][..], &["serve", "--config", &file]] {
            let output = taktwerk(command);
            assert_eq!(output.status.code(), Some(2), "{more}");
            assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
        }
    }
}
