//! `pubsub` and `serve --pubsub` with invalid requests: nothing is sent unencrypted, simulated or dropped without a
//! message.

use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a command. Returns exit code, standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Starts a server that ends at once, because its standard input is closed. Returns standard error.
fn served(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    command.args(["serve", "--port", "0", "--policy", "None", "--exit-with-stdin", "--pubsub"]);
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// Checks that a command fails with this code, and that its error contains these texts.
fn refused(code: i32, arguments: &[&str], expected: &[&str]) {
    let (was, _, said) = run(arguments);
    assert_eq!(was, Some(code), "{arguments:?}: {said}");
    for expected in expected {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// A group for each test, and a port for each run of the tests.
fn url(number: u32) -> String {
    format!("opc.udp://239.192.11.{number}:{}", 30_000 + std::process::id() % 20_000)
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    path
}

fn keys(folder: &Path, group: &str) -> PathBuf {
    let (code, made, said) = run(&["pubsub", "keys", group]);
    assert_eq!(code, Some(0), "{said}");
    written(folder, &format!("{group}.keys"), &made)
}

/// One WriterGroup; `node` belongs to the field, `security` to the group.
fn writers(url: &str, node: &str, security: &str) -> String {
    format!(
        "[[data-set]]\nname = \"boiler\"\nfields = [{{ name = \"T\", type = \"Double\"{node} }}]\n\
         [[connection]]\nname = \"udp\"\ninterface = \"lo\"\npublisher-id = {{ uint16 = 18 }}\nurl = \"{url}\"\n\
         [[connection.writer-group]]\nname = \"v\"\nid = 1\ninterval = 50.0\n{security}\n\
         writers = [{{ name = \"b\", id = 1, data-set = \"boiler\" }}]\n"
    )
}

fn readers(url: &str) -> String {
    format!(
        "[[connection]]\nname = \"udp\"\ninterface = \"lo\"\nurl = \"{url}\"\n[[connection.reader-group]]\nname = \"g\"\n\
         readers = [{{ name = \"r\", writer-id = 1, fields = [{{ name = \"T\", type = \"Double\" }}] }}]\n"
    )
}

/// A process that is killed when dropped.
struct Background(Child);

impl Background {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The messages and the summary of `listen`.
fn heard(arguments: &[&str]) -> (Vec<Value>, Value) {
    let common = ["pubsub", "listen", "--json", "-d", "3"];
    let (code, printed, said) = run(&[common.as_slice(), arguments].concat());
    assert_eq!(code, Some(0), "{said}");
    let mut lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = lines.pop().unwrap();
    lines.retain(|line| line["Event"].is_null());
    (lines, end)
}

/// `--security` also applies to unsecured parts of a configuration.
#[test]
fn the_security_option_applies_to_configurations() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(1);
    let config = written(folder.path(), "vals.toml", &writers(&url, "", ""));
    let reader = written(folder.path(), "rd.toml", &readers(&url));
    let keys = keys(folder.path(), "plant");
    let (config, reader, keys) = (config.to_str().unwrap(), reader.to_str().unwrap(), keys.to_str().unwrap());
    let security = ["--security", "sign-and-encrypt", "--keys", keys];
    let publish = ["pubsub", "publish", "--config", config];
    {
        let _publisher = Background::start(&[publish.as_slice(), &security].concat());
        let (messages, end) = heard(&["--config", reader]);
        assert_eq!(messages, Vec::<Value>::new());
        assert!(end["UnwantedSecured"].as_u64().unwrap() > 0, "{end}");
        let (messages, _) = heard(&[&["--config", reader], security.as_slice()].concat());
        assert!(messages.iter().any(|message| message["Fields"]["T"]["Value"].is_number()), "{messages:?}");
        let (code, _, said) = run(&["pubsub", "listen", "--config", reader, "-d", "1"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("secured, but no keys are given") && said.contains("--keys"), "{said}");
    }
    let _publisher = Background::start(&publish);
    let (messages, end) = heard(&[&["--config", reader], security.as_slice()].concat());
    assert_eq!(messages, Vec::<Value>::new());
    assert!(end["SecurityErrors"].as_u64().unwrap() > 1, "{end}");
    // Repeated reasons are counted and printed once.
    let (_, _, said) =
        run(&[["pubsub", "listen", "--config", reader, "-d", "1"].as_slice(), &security].concat());
    assert_eq!(said.matches("further ones are only counted").count(), 1, "{said}");
    assert!(said.contains("dropped ") && said.contains(" times: security"), "{said}");
    // Keys that no part would use.
    refused(2, &[publish.as_slice(), &["--keys", keys, "-d", "1"]].concat(), &["--security"]);
    refused(2, &["pubsub", "listen", "--config", reader, "--keys", keys, "-d", "1"], &["--security"]);
    refused(2, &[publish.as_slice(), &["--signals", "3"]].concat(), &["--signals", "--config"]);
}

#[test]
fn values_of_nodes_are_simulated_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let config = written(folder.path(), "v.toml", &writers(&url(2), ", node = \"ns=2;s=T\"", ""));
    let publish = ["pubsub", "publish", "--config", config.to_str().unwrap(), "-d", "0.3"];
    refused(2, &publish, &["\"boiler\"", "--from", "--simulate"]);
    let (code, printed, said) = run(&[publish.as_slice(), &["--simulate"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("simulated values: \"boiler\"") && printed.contains("cycles"), "{said}");
}

#[test]
fn secured_parts_need_keys() {
    let folder = tempfile::tempdir().unwrap();
    let security = "security = { mode = \"SignAndEncrypt\", group = \"plant\" }";
    let config = written(folder.path(), "vs.toml", &writers(&url(3), "", security));
    let publish = ["pubsub", "publish", "--config", config.to_str().unwrap(), "-d", "1"];
    refused(2, &publish, &["writer group \"v\"", "\"plant\"", "--keys", "--key-service"]);
    let other = keys(folder.path(), "other");
    refused(
        2,
        &[publish.as_slice(), &["--keys", other.to_str().unwrap()]].concat(),
        &["\"plant\"", "\"other\""],
    );
    // A key service that is not reachable.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (service, pki) = (format!("opc.tcp://127.0.0.1:{port}"), folder.path().join("pki"));
    let service = ["--key-service", &service, "--pki", pki.to_str().unwrap()];
    let nobody = ["no keys were received", service[1], "check that it runs"];
    refused(3, &[publish.as_slice(), &service].concat(), &nobody);
    let short = ["pubsub", "listen", &url(3), "-d", "1", "--security", "sign", "--security-group", "plant"];
    refused(3, &[short.as_slice(), &service].concat(), &nobody);
    // Key files that others can read are refused, and so are configurations that others can change.
    let keys = keys(folder.path(), "plant");
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).unwrap();
    let publish = [publish.as_slice(), &["--keys", keys.to_str().unwrap()]].concat();
    refused(2, &publish, &["others can read", "chmod 600"]);
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(run(&publish).0, Some(0));
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o666)).unwrap();
    refused(2, &publish, &["others can change", "chmod go-w"]);
}

/// A server warns and runs, because a client may add the group.
#[test]
fn a_server_without_keys_warns() {
    let folder = tempfile::tempdir().unwrap();
    let security = "security = { mode = \"SignAndEncrypt\", group = \"plant\" }";
    let node = ", node = \"ns=2;s=Plant/Boiler/Temperature\"";
    let config = written(folder.path(), "vs.toml", &writers(&url(4), node, security));
    let says = |more: &[&str]| served(&[&[config.to_str().unwrap()], more].concat());
    let said = says(&[]);
    assert!(said.contains("no keys for it are known") && said.contains("--pubsub-keys"), "{said}");
    assert!(said.contains("\"v\"") && said.contains("\"plant\""), "{said}");
    let keys = keys(folder.path(), "plant");
    let said = says(&["--pubsub-keys", keys.to_str().unwrap()]);
    assert!(!said.contains("no keys for it are known"), "{said}");
    let own = format!(
        "[[security-group]]\nid = \"plant\"\nkey-lifetime = 3600000.0\npolicy = \"PubSub-Aes256-CTR\"\n{}",
        writers(&url(4), node, security)
    );
    let own = written(folder.path(), "own.toml", &own);
    let serve = ["serve", "--port", "0", "--policy", "None", "--pubsub", own.to_str().unwrap()];
    refused(
        2,
        &[serve.as_slice(), &["--pubsub-keys", keys.to_str().unwrap()]].concat(),
        &["remove one of the two"],
    );
}

/// A broker's password must not be in a readable file or in the list of processes.
#[test]
fn passwords_are_protected() {
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (theirs, password) = (folder.path().join("wr.toml"), written(folder.path(), "p", "secret\n"));
    let url = format!("mqtt+json://olaf:secret@127.0.0.1:{port}");
    let write = ["--write-subscriber", theirs.to_str().unwrap(), "-d", "0.2"];
    let (code, _, said) = run(&[&["pubsub", "publish", &url], write.as_slice()].concat());
    assert_eq!(code, Some(3), "{said}");
    let text = std::fs::read_to_string(&theirs).unwrap();
    assert!(!text.contains("secret") && !text.contains("olaf"), "{text}");
    assert!(text.starts_with("# The publisher's user and password are not in this file."), "{text}");
    let of = taktwerk::pubsub::config::toml::from_toml(&text).unwrap();
    assert_eq!(of.connections[0].url, format!("mqtt://127.0.0.1:{port}"));
    // From a file, as an option and in TOML, relative to the file.
    let file = ["--broker-password-file", password.to_str().unwrap()];
    let url = format!("mqtt://127.0.0.1:{port}");
    refused(2, &[&["pubsub", "publish", &url, "-d", "0.2"], file.as_slice()].concat(), &["names no user"]);
    let url = format!("mqtt://olaf@127.0.0.1:{port}");
    refused(
        3,
        &[&["pubsub", "publish", &url, "-d", "0.2"], file.as_slice()].concat(),
        &["Connection refused"],
    );
    let text = writers(&url, "", "").replace("interface = \"lo\"\n", "password-file = \"p\"\n");
    let config = written(folder.path(), "pw.toml", &text);
    let publish = ["pubsub", "publish", "--config", config.to_str().unwrap(), "-d", "0.2"];
    refused(3, &publish, &["Connection refused"]);
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o644)).unwrap();
    refused(3, &publish, &["others can read the password", "chmod 600"]);
    std::fs::remove_file(&password).unwrap();
    refused(2, &publish, &["cannot read"]);
    // A configuration that a server has saved.
    let saved = folder.path().join("saved.uabinary");
    let config = written(
        folder.path(),
        "in.toml",
        &writers(&format!("mqtt://olaf:secret@127.0.0.1:{port}"), ", node = \"i=2258\"", ""),
    );
    let said = served(&[config.to_str().unwrap(), "--pubsub-save", saved.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&saved).unwrap().permissions().mode() & 0o777, 0o600, "{said}");
}

#[test]
fn an_interrupted_call_ends_at_once() {
    let url = url(5);
    let call = [
        "pubsub",
        "call",
        &url,
        "--interface",
        "lo",
        "--responder",
        "7",
        "--allow-unsecured",
        "--timeout",
        "50",
    ];
    let mut call = Background::start(&call);
    // The signal is caught as soon as the process runs; an earlier one ends it without an exit code.
    std::thread::sleep(Duration::from_secs(1));
    let sent = Command::new("kill").args(["-INT", &call.0.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(call.0.wait().unwrap().code(), Some(130));
    let folder = tempfile::tempdir().unwrap();
    let keys = keys(folder.path(), "plant");
    let asked =
        ["pubsub", "call", &url, "--responder", "7", "--keys", keys.to_str().unwrap(), "--allow-unsecured"];
    refused(2, &asked, &["--security"]);
}
