//! Backups of an installation, and what a restore takes and refuses.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(120);
const CONFIG: &str = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\nnone = true\n\
                      policies = [\"Basic256Sha256\"]\n[identities]\nanonymous = true\nusers_file = \"users.toml\"\n\
                      [permissions]\nunspecified = \"open\"\n[history]\nfile = \"history.db\"\n\
                      [[history.record]]\nbelow = \"ns=2;s=Plant/Boiler\"\n";

fn run(arguments: &[&str]) -> (i32, String) {
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn installation(folder: &Path, config: &str) -> String {
    let path = folder.join("server.toml");
    fs::write(&path, config).unwrap();
    fs::write(folder.join("password"), "correct horse\n").unwrap();
    let (users, password) = (folder.join("users.toml"), folder.join("password"));
    let (code, said) =
        run(&["user", "add", "olaf", "--file", text(&users), "--password-file", text(&password)]);
    assert_eq!(code, 0, "{said}");
    path.display().to_string()
}

fn serve(config: &str) -> Running {
    let program = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    program.args(["serve", "--exit-with-stdin", "--config", config]).serve(LIMIT).unwrap()
}

/// Values that a server's history has of the boiler before a time.
fn recorded(server: &Running) -> usize {
    let (code, said) =
        run(&["history", server.url(), "ns=2;s=Plant/Boiler/Temperature", "--from", "-1h", "--json"]);
    assert_eq!(code, 0, "{said}");
    said.matches("SourceTimestamp").count()
}

#[test]
fn a_running_server_is_backed_up_and_runs_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    fs::create_dir(&old).unwrap();
    let config = installation(&old, CONFIG);
    let server = serve(&config);
    let end = std::time::Instant::now() + LIMIT;
    while recorded(&server) < 5 {
        assert!(std::time::Instant::now() < end, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(200));
    }
    // Committed once a second.
    std::thread::sleep(Duration::from_millis(1500));
    let archive = folder.path().join("backup.tar.gz");
    let (code, said) = run(&["backup", &config, text(&archive)]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(run(&["backup", &config, text(&archive)]).0, 2, "a backup is not replaced");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    // In the place of a running server nothing is restored.
    let (code, said) = run(&["restore", text(&archive), text(&old), "--force"]);
    assert!(code == 2 && said.contains("a server runs with"), "{said}");
    drop(server);
    let restored = Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["restore", "backup.tar.gz", "new"])
        .in_directory(folder.path());
    let output = restored.run(LIMIT).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().any(|line| line == "new/server.toml"), "paths as they were named: {said}");
    for path in ["users.toml", "server.toml"] {
        assert_eq!(fs::read(old.join(path)).unwrap(), fs::read(new.join(path)).unwrap(), "{path}");
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&new.join("users.toml")), 0o600);
    for key in fs::read_dir(new.join("pki/own/private")).unwrap() {
        assert_eq!(mode(&key.unwrap().path()), 0o600);
    }
    let (code, said) = run(&["config", "check", text(&new.join("server.toml"))]);
    assert_eq!(code, 0, "{said}");
    let again = serve(text(&new.join("server.toml")));
    assert!(recorded(&again) >= 5);
}

#[test]
fn what_is_there_is_moved_aside_only_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let config = installation(folder.path(), CONFIG);
    drop(serve(&config));
    let outside = tempfile::tempdir().unwrap();
    let archive = outside.path().join("backup.tar.gz");
    assert_eq!(run(&["backup", &config, text(&archive)]).0, 0);
    // Trusted after the backup: not any more when it is restored.
    fs::write(folder.path().join("pki/trusted/certs/later.der"), "x").unwrap();
    let (code, said) = run(&["restore", text(&archive), text(folder.path())]);
    assert!(code == 2 && said.contains("--force"), "{said}");
    let (code, said) = run(&["restore", text(&archive), text(folder.path()), "--force", "--dry-run"]);
    assert_eq!(code, 0, "{said}");
    assert!(!folder.path().join("pki.before-restore").exists());
    for number in ["", "-1"] {
        assert_eq!(run(&["restore", text(&archive), text(folder.path()), "--force"]).0, 0);
        assert!(folder.path().join(format!("pki.before-restore{number}")).is_dir());
    }
    assert!(!folder.path().join("pki/trusted/certs/later.der").exists());
    assert!(folder.path().join("pki.before-restore/trusted/certs/later.der").exists());
    drop(serve(&config));
}

#[test]
fn a_damaged_archive_is_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let config = installation(folder.path(), CONFIG);
    drop(serve(&config));
    let archive = folder.path().join("backup.tar.gz");
    assert_eq!(run(&["backup", &config, text(&archive)]).0, 0);
    let whole = fs::read(&archive).unwrap();
    let damaged = folder.path().join("damaged.tar.gz");
    let target = folder.path().join("target");
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&damaged, bytes).unwrap();
        let (code, said) = run(&["restore", text(&damaged), text(&target)]);
        assert!(code == 2 && said.contains("nothing was restored"), "{what}: {code} {said}");
        assert!(!target.exists(), "{what}");
    };
    refused(b"", "empty");
    refused(b"[server]\n", "something else");
    for part in 1..8 {
        refused(&whole[..whole.len() * part / 8], "cut off");
    }
    refused(&whole[..whole.len() - 1], "cut off at the end");
    for part in 1..6 {
        let mut bytes = whole.clone();
        let at = bytes.len() * part / 6;
        bytes[at] ^= 0x55;
        refused(&bytes, "flipped");
    }
    let mut checksum = whole.clone();
    let at = checksum.len() - 6;
    checksum[at] ^= 1;
    refused(&checksum, "checksum");
}

/// Makes an archive by hand, as somebody would who wants to write elsewhere.
fn forged(path: &Path, config: &str, manifest: &serde_json::Value, files: &[&str]) {
    let to = flate2::write::GzEncoder::new(fs::File::create(path).unwrap(), flate2::Compression::default());
    let mut tar = tar::Builder::new(to);
    let mut add = |name: &str, content: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_cksum();
        tar.append_data(&mut header, name, content.as_bytes()).unwrap();
    };
    add("manifest.json", &manifest.to_string());
    add("configuration", config);
    for (index, content) in files.iter().enumerate() {
        add(&format!("files/{index}"), content);
    }
    tar.into_inner().unwrap().finish().unwrap();
}

#[test]
fn nothing_is_written_where_the_user_does_not_expect_it() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, target) = (folder.path().join("forged.tar.gz"), folder.path().join("target"));
    let victim = folder.path().join("victim");
    let fine = "[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    let outside = format!("{fine}[headroom]\ncalibration = \"{}\"\n", victim.display());
    let upward = format!("{fine}[headroom]\ncalibration = \"../victim\"\n");
    let manifest = |configuration: &str, setting: &str, path: &str, inner: Option<&str>| {
        let mut entry = serde_json::json!({ "Setting": setting, "Path": path, "Mode": 0o644, "Len": 4 });
        if let Some(inner) = inner {
            entry["Inner"] = inner.into();
        }
        serde_json::json!({ "Version": 1, "Program": "0", "Configuration": configuration, "Files": [entry] })
    };
    let calibration = "headroom.calibration";
    for (config, manifest, said) in [
        (&outside, manifest("server.toml", calibration, text(&victim), None), "--outside"),
        (&upward, manifest("server.toml", calibration, "../victim", None), "--outside"),
        (&outside, manifest("server.toml", calibration, "/etc/other", None), "names"),
        (&outside, manifest("../victim", calibration, text(&victim), None), "name"),
        (&fine.to_owned(), manifest("server.toml", "security.pki", "pki", Some("../../victim")), "names"),
        (&fine.to_owned(), manifest("server.toml", "security.pki", "pki", Some("/victim")), "names"),
        (&fine.to_owned(), manifest("server.toml", "security.pki", "pki", None), "names"),
    ] {
        forged(&archive, config, &manifest, &["evil"]);
        let (code, text) = run(&["restore", text(&archive), text(&target)]);
        assert!(code != 0 && text.contains(said), "{manifest}: {code} {text}");
        assert!(!victim.exists(), "{manifest}");
        assert!(!target.exists(), "{manifest}: nothing is left of a restore that failed");
    }
    forged(&archive, &outside, &manifest("server.toml", calibration, text(&victim), None), &["fine"]);
    let (code, said) = run(&["restore", text(&archive), text(&target), "--outside"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read(&victim).unwrap(), b"fine");
}
