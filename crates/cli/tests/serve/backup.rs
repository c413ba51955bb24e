//! Backup and restore of an installation.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(120);
const CONFIG: &str = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\nnone = true\n\
                      policies = [\"Basic256Sha256\"]\n[identities]\nanonymous = true\nclear_passwords = true\nusers_file = \"users.toml\"\n\
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

/// The number of history values of the boiler before a time.
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
    // Committed once per second.
    std::thread::sleep(Duration::from_millis(1500));
    let archive = folder.path().join("backup.tar.gz");
    let (code, said) = run(&["backup", &config, text(&archive)]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(run(&["backup", &config, text(&archive)]).0, 2, "a backup is not replaced");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    // A restore over a running server is refused.
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
fn a_directory_of_nodesets_is_restored_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    fs::create_dir_all(old.join("sets")).unwrap();
    fs::write(old.join("sets/a.xml"), "<UANodeSet/>").unwrap();
    let config = old.join("server.toml");
    let text_of = "[server]\nnodesets = [\"sets\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    fs::write(&config, text_of).unwrap();
    let archive = folder.path().join("backup.tar.gz");
    let (code, said) = run(&["backup", text(&config), text(&archive)]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = run(&["restore", text(&archive), text(&new)]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(new.join("sets/a.xml")).unwrap(), "<UANodeSet/>");
    // And again over the restored one, where the directory exists.
    let (code, said) = run(&["restore", text(&archive), text(&new), "--force"]);
    assert_eq!(code, 0, "{said}");
    assert!(new.join("sets.before-restore/a.xml").exists());
}

/// Data that a backup does not have is named, and the restored installation starts without it.
#[test]
fn data_that_is_not_in_a_backup_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    for name in ["recipes", "sets", "loaded", "values"] {
        fs::create_dir_all(old.join(name)).unwrap();
    }
    fs::write(old.join("recipes/bread.txt"), "flour").unwrap();
    fs::write(old.join("audit.jsonl"), "{}\n").unwrap();
    fs::write(old.join("horn.wav"), "RIFF").unwrap();
    let mut config_text = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n\
        [audit]\nfile = \"audit.jsonl\"\n[nodeset_methods]\nenabled = true\nfolder = \"loaded\"\n\
        [[files]]\nname = \"Recipes\"\nfolder = \"recipes\"\n\
        [[alarms.alarm]]\nvariable = \"i=2258\"\nnormal = 0\nsound = \"horn.wav\"\n"
        .to_owned();
    let mut expected = vec!["recipes (data of files.folder,", "audit.jsonl (the audit file;"];
    if cfg!(feature = "gateway") {
        config_text += "[[destination]]\nname = \"csv\"\ntype = \"file\"\nfolder = \"values\"\n";
        expected.push("values (data of destination.folder,");
    }
    let config = old.join("server.toml");
    fs::write(&config, &config_text).unwrap();
    let archive = folder.path().join("backup.tar.gz");
    let (code, said) = run(&["backup", text(&config), text(&archive)]);
    assert_eq!(code, 0, "{said}");
    for expected in expected {
        assert!(said.contains(&format!("left out: {expected}")), "{expected}: {said}");
    }
    let (code, said) = run(&["restore", text(&archive), text(&new)]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("recipes is empty") && said.contains("copy it"), "{said}");
    // Its content is in the archive: there was none.
    assert!(!said.contains("loaded"), "{said}");
    assert_eq!(fs::read(new.join("horn.wav")).unwrap(), b"RIFF");
    assert!(new.join("recipes").is_dir() && new.join("loaded").is_dir());
    assert!(!new.join("recipes/bread.txt").exists() && !new.join("audit.jsonl").exists());
    // The server does not start without it.
    fs::remove_dir_all(old.join("recipes")).unwrap();
    let (code, said) = run(&["backup", text(&config), text(&folder.path().join("second.tar.gz"))]);
    assert!(code == 0 && said.contains("files.folder: there is no recipes yet"), "{said}");
    // A history in PostgreSQL is not in it either. Its password is not printed.
    for (number, address) in [
        "postgresql://u:secret@db/plant",
        "postgresql://u@db/plant?password=secret",
        "host=db password=secret",
    ]
    .into_iter()
    .enumerate()
    {
        let of_database = format!(
            "[security]\nnone = true\n[identities]\nanonymous = true\n[history]\npostgresql = \"{address}\"\n"
        );
        fs::write(&config, of_database).unwrap();
        let archive = folder.path().join(format!("database-{number}.tar.gz"));
        let (code, said) = run(&["backup", text(&config), text(&archive)]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("history.postgresql") && said.contains("pg_dump"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn existing_files_are_moved_aside_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let config = installation(folder.path(), CONFIG);
    drop(serve(&config));
    let outside = tempfile::tempdir().unwrap();
    let archive = outside.path().join("backup.tar.gz");
    assert_eq!(run(&["backup", &config, text(&archive)]).0, 0);
    // A certificate that was trusted after the backup is not trusted after the restore.
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
fn damaged_archives_are_refused_completely() {
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

/// A gateway with one file of each kind. `URL` is that of a server that it mirrors.
const GATEWAY: &str = r#"
[server]
bind = ["127.0.0.1:0"]
[security]
none = true
policies = []
[identities]
anonymous = true
[permissions]
unspecified = "open"
[[source]]
name = "server"
type = "opcua"
url = "URL"
security = "best"
user = "olaf"
password_file = "secrets/server.password"
retry = "100 ms"
retry_max = "200 ms"
[[tag]]
source = "server"
name = "T"
address = "nsu=urn:taktwerk:demo-plant;s=Plant/Boiler/Temperature"
[[source]]
name = "table"
type = "simulation"
tags = "tags.csv"
[[source]]
name = "script"
type = "program"
command = ["sh", "adapters/oven.sh"]
[[tag]]
source = "script"
name = "oven"
[[source]]
name = "recording"
type = "replay"
file = "recording.csv"
[[tag]]
source = "recording"
name = "flow"
[[destination]]
name = "broker"
type = "mqtt"
url = "mqtt://127.0.0.1:9"
user = "gateway"
password_file = "secrets/server.password"
"#;

/// Waits until the gateway has the value of the server.
#[cfg(feature = "gateway")]
fn until_mirrored(gateway: &Running) {
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let (code, said) = run(&["read", gateway.url(), "nsu=urn:taktwerk:gateway;s=server/T", "--json"]);
        if code == 0 && said.contains("\"Value\"") && !said.contains("Bad") {
            return;
        }
        assert!(std::time::Instant::now() < end, "{code} {said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The certificates that are in a directory.
#[cfg(feature = "gateway")]
fn certificates(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    // Hidden files are still being written.
    paths.filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
}

/// Trusts the only certificate in a directory.
#[cfg(feature = "gateway")]
fn trust(from: &Path, pki: &Path) {
    let end = std::time::Instant::now() + LIMIT;
    while certificates(from).is_empty() {
        assert!(std::time::Instant::now() < end, "no certificate in {}", from.display());
        std::thread::sleep(Duration::from_millis(50));
    }
    let (code, said) = run(&["pki", "trust", text(&certificates(from)[0]), "--pki", text(pki)]);
    assert_eq!(code, 0, "{said}");
}

#[cfg(feature = "gateway")]
#[test]
fn a_gateway_runs_elsewhere_with_its_tables_secrets_and_trust() {
    let folder = tempfile::tempdir().unwrap();
    let (plant, old, new) =
        (folder.path().join("plant"), folder.path().join("old"), folder.path().join("new"));
    fs::create_dir(&plant).unwrap();
    let secured = CONFIG.replace("none = true\n", "").replace("anonymous = true\n", "");
    let server = serve(&installation(&plant, &secured));
    for inner in ["", "secrets", "adapters"] {
        fs::create_dir(old.join(inner)).unwrap();
    }
    let secret = old.join("secrets/server.password");
    fs::write(&secret, "correct horse\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(old.join("tags.csv"), "name,signal\nSine,sine\nRamp,ramp\n").unwrap();
    fs::write(old.join("recording.csv"), "flow\n1\n2\n").unwrap();
    let script = "while :; do echo '{\"name\":\"oven\",\"value\":20.5}'; sleep 1; done\n";
    fs::write(old.join("adapters/oven.sh"), script).unwrap();
    // Not named by the configuration.
    fs::write(old.join("notes"), "x").unwrap();
    let config = old.join("gateway.toml");
    fs::write(&config, GATEWAY.replace("URL", server.url())).unwrap();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    let gateway = serve(text(&config));
    trust(&old.join("pki-gateway/own/certs"), &plant.join("pki"));
    trust(&plant.join("pki/own/certs"), &old.join("pki-gateway"));
    until_mirrored(&gateway);
    // The running gateway holds its queue.
    let archive = folder.path().join("backup.tar.gz");
    let (code, said) = run(&["backup", text(&config), text(&archive)]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("left out: broker.queue.db (values that are not sent yet"), "{said}");
    assert_eq!(said.lines().count(), 2, "nothing else is missing: {said}");
    drop(gateway);
    let (code, said) = run(&["restore", text(&archive), text(&new)]);
    assert_eq!(code, 0, "{said}");
    let kept = ["secrets/server.password", "tags.csv", "recording.csv", "adapters/oven.sh", "gateway.toml"];
    for path in kept {
        assert_eq!(fs::read(old.join(path)).unwrap(), fs::read(new.join(path)).unwrap(), "{path}");
    }
    assert_eq!(fs::metadata(new.join(kept[0])).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!new.join("notes").exists() && !new.join("broker.queue.db").exists());
    let (code, said) = run(&["config", "check", text(&new.join("gateway.toml"))]);
    assert_eq!(code, 0, "{said}");
    // Without the certificates of the backup, each end would refuse the other.
    until_mirrored(&serve(text(&new.join("gateway.toml"))));
}

#[cfg(feature = "gateway")]
#[test]
fn large_recordings_and_files_elsewhere_are_not_in_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, outside) = (folder.path().join("inside"), folder.path().join("oven.sh"));
    fs::create_dir(&inside).unwrap();
    let recording = fs::File::create(inside.join("recording.csv")).unwrap();
    // Sparse: the file needs no space.
    recording.set_len((256 << 20) + 1).unwrap();
    fs::write(&outside, "exit\n").unwrap();
    let config = inside.join("gateway.toml");
    let gateway = format!(
        "{CONFIG}[[source]]\nname = \"r\"\ntype = \"replay\"\nfile = \"recording.csv\"\n[[source]]\nname = \"p\"\n\
         type = \"program\"\ncommand = [\"sh\", \"../oven.sh\"]\n"
    );
    fs::write(&config, gateway).unwrap();
    let archive = folder.path().join("backup.tar.gz");
    let (code, said) = run(&["backup", text(&config), text(&archive), "--json"]);
    assert_eq!(code, 0, "{said}");
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["LeftOut"], serde_json::json!(["recording.csv"]), "{said}");
    assert_eq!(report["Files"], 1, "only the configuration: {said}");
}

/// Creates an archive as an attacker would.
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
fn archives_cannot_write_to_unexpected_paths() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, target) = (folder.path().join("forged.tar.gz"), folder.path().join("target"));
    let victim = folder.path().join("victim");
    let fine = "[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    let outside = format!("{fine}[headroom]\ncalibration = \"{}\"\n", victim.display());
    let upward = format!("{fine}[headroom]\ncalibration = \"../victim\"\n");
    let queue = format!("{fine}[[destination]]\nname = \"q\"\ntype = \"mqtt\"\nqueue = \"q.db\"\n");
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
        (&queue, manifest("server.toml", "destination.queue", "q.db", None), "names"),
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

/// Its configuration names a directory elsewhere, of which it has no files.
#[test]
fn archives_cannot_move_directories_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, target) = (folder.path().join("forged.tar.gz"), folder.path().join("target"));
    let (victim, database) = (folder.path().join("victim"), folder.path().join("victim.db"));
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("key"), "x").unwrap();
    fs::write(&database, "x").unwrap();
    let config = format!(
        "[security]\npolicies = []\nnone = true\npki = {:?}\n[identities]\nanonymous = true\n[history]\nfile = {database:?}\n",
        text(&victim)
    );
    let manifest =
        serde_json::json!({ "Version": 1, "Program": "0", "Configuration": "server.toml", "Files": [] });
    forged(&archive, &config, &manifest, &[]);
    for more in [&["--force"][..], &["--force", "--outside"]] {
        let (code, said) = run(&[&["restore", text(&archive), text(&target)], more].concat());
        assert_eq!(code, 0, "{said}");
        assert_eq!(fs::read(victim.join("key")).unwrap(), b"x");
        assert_eq!(fs::read(&database).unwrap(), b"x");
    }
    // With files of it, only with permission.
    let entry = serde_json::json!({
        "Setting": "security.pki", "Path": text(&victim), "Inner": "own", "Mode": 0o600, "Len": 4,
    });
    let manifest =
        serde_json::json!({ "Version": 1, "Program": "0", "Configuration": "server.toml", "Files": [entry] });
    forged(&archive, &config, &manifest, &["fine"]);
    let (code, said) = run(&["restore", text(&archive), text(&target), "--force"]);
    assert!(code == 2 && said.contains("--outside"), "{said}");
    assert_eq!(fs::read(victim.join("key")).unwrap(), b"x");
    let (code, said) = run(&["restore", text(&archive), text(&target), "--force", "--outside"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read(victim.join("own")).unwrap(), b"fine");
    assert_eq!(fs::read(folder.path().join("victim.before-restore/key")).unwrap(), b"x");
}

/// A directory in which nothing can be renamed comes after one that can be moved.
#[test]
fn a_restore_that_cannot_move_everything_moves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, target) = (folder.path().join("forged.tar.gz"), folder.path().join("target"));
    // The name of the copy would be too long.
    let long = "z".repeat(250);
    let config = format!(
        "[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n[headroom]\ncalibration = \"{long}\"\n"
    );
    let entry =
        serde_json::json!({ "Setting": "headroom.calibration", "Path": long, "Mode": 0o644, "Len": 4 });
    let manifest =
        serde_json::json!({ "Version": 1, "Program": "0", "Configuration": "server.toml", "Files": [entry] });
    forged(&archive, &config, &manifest, &["fine"]);
    fs::create_dir_all(target.join("pki/own")).unwrap();
    fs::write(target.join(&long), "old").unwrap();
    let (code, said) = run(&["restore", text(&archive), text(&target), "--force"]);
    assert!(code != 0 && said.contains("nothing was restored"), "{code} {said}");
    assert!(target.join("pki/own").is_dir(), "{said}");
    assert_eq!(fs::read(target.join(&long)).unwrap(), b"old");
}

/// The manifest claims the largest length that there is.
#[test]
fn archives_with_a_false_length_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, target) = (folder.path().join("forged.tar.gz"), folder.path().join("target"));
    let config = "[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    let entry = serde_json::json!({
        "Setting": "security.pki", "Path": "pki", "Inner": "own", "Mode": 0o600, "Len": u64::MAX,
    });
    let manifest =
        serde_json::json!({ "Version": 1, "Program": "0", "Configuration": "server.toml", "Files": [entry] });
    forged(&archive, config, &manifest, &["evil"]);
    let (code, said) = run(&["restore", text(&archive), text(&target)]);
    assert!(code == 2 && said.contains("another length"), "{code} {said}");
}

/// Whatever an archive says, restored files have no more permissions than those that the program makes.
#[test]
fn archives_cannot_give_away_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, target) = (folder.path().join("forged.tar.gz"), folder.path().join("target"));
    let mut config = "[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\nclear_passwords = true\nusers_file = \"users.toml\"\n\
                  [headroom]\ncalibration = \"model.json\"\n[history]\nfile = \"history.db\"\n".to_owned();
    let mut files = vec![
        ("headroom.calibration", "model.json", None, 0o755),
        ("identities.users_file", "users.toml", None, 0o700),
        ("history.file", "history.db", None, 0o700),
        ("security.pki", "pki", Some("own/private/key.pem"), 0o700),
        ("security.pki", "pki", Some("own/certs/own.der"), 0o755),
    ];
    if cfg!(feature = "gateway") {
        config += "[[destination]]\nname = \"d\"\ntype = \"mqtt\"\nkey_file = \"own.key\"\n";
        files.push(("destination.key_file", "own.key", None, 0o700));
    }
    let entries = files.iter().map(|(setting, path, inner, _)| {
        let mut entry = serde_json::json!({ "Setting": setting, "Path": path, "Mode": 0o7777, "Len": 4 });
        if let Some(inner) = inner {
            entry["Inner"] = (*inner).into();
        }
        entry
    });
    let entries: Vec<_> = entries.collect();
    let manifest = serde_json::json!({
        "Version": 1, "Program": "0", "Configuration": "server.toml", "Files": entries,
    });
    forged(&archive, &config, &manifest, &vec!["fine"; files.len()]);
    let (code, said) = run(&["restore", text(&archive), text(&target)]);
    assert_eq!(code, 0, "{said}");
    for (_, path, inner, most) in files {
        let path = inner.map_or_else(|| target.join(path), |inner| target.join(path).join(inner));
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, most, "{}: {mode:o}", path.display());
    }
}
