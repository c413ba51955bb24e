//! `pubsub publish` and `pubsub listen`, with each other, a server, a key service and a broker.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use taktwerk::pki::Pki;
use taktwerk::pubsub::config::{Configuration, Connection};
use taktwerk::pubsub_model::PubSubModel;
use taktwerk::schema::SecurityGroupDataType;
use taktwerk::server::authorization::{Authorization, IdentityRule};
use taktwerk::{MessageSecurityMode, SecurityPolicy, Server};
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_lab::program::{Program, Running};
use taktwerk_pki::{CertificateSettings, NewKey};

const LIMIT: Duration = Duration::from_secs(60);

/// A publisher with keys from a file that is killed repeatedly uses no nonce twice, and a running subscriber accepts
/// its messages.
#[test]
fn a_killed_publisher_uses_no_nonce_twice() {
    use std::collections::BTreeSet;
    use taktwerk_pubsub::uadp::NetworkMessageHeader;
    use taktwerk_types::{DecodeLimits, Decoder};
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("plant.keys");
    let made =
        Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["pubsub", "keys", "plant"]).run(LIMIT).unwrap();
    std::fs::write(&keys, made.stdout).unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let secured = ["--security", "sign-and-encrypt", "--keys", keys.to_str().unwrap()];
    // The messages are recorded and relayed to the subscriber.
    let tap = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    tap.set_read_timeout(Some(LIMIT)).unwrap();
    let there = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (from, to) = (format!("opc.udp://{}", tap.local_addr().unwrap()), format!("opc.udp://{there}"));
    let listener = Background::start(&[&["pubsub", "listen", &to, "--json"], secured.as_slice()].concat());
    let mut nonces = BTreeSet::new();
    let mut last = 0;
    let mut datagram = [0; 2048];
    for restart in 0..6 {
        let publish = ["pubsub", "publish", &from, "-I", "5", "--layout", "dynamic"];
        let mut publisher = Background::start(&[publish.as_slice(), secured.as_slice()].concat());
        let mut count = 0;
        // It is killed at a random sequence number within its reserved range.
        while count < 40 + restart {
            let len = tap.recv(&mut datagram).unwrap();
            let mut decoder = Decoder::new(&datagram[..len], DecodeLimits::DEFAULT);
            let Ok(header) = NetworkMessageHeader::decode(&mut decoder) else { continue };
            let Some(security) = header.security else { continue };
            let nonce: [u8; 8] = security.nonce.try_into().unwrap();
            let number = u32::from_le_bytes(nonce[4..].try_into().unwrap());
            assert!(number > last, "{number} after {last}: receivers take it for a replay");
            last = number;
            assert!(nonces.insert((security.token_id, nonce)), "{nonce:?} was used before");
            count += 1;
            tap.send_to(&datagram[..len], there).unwrap();
        }
        publisher.child.kill().unwrap();
        publisher.child.wait().unwrap();
        // Messages in flight.
        tap.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        while tap.recv(&mut datagram).is_ok() {}
        tap.set_read_timeout(Some(LIMIT)).unwrap();
        listener.message(|message| message["Fields"].is_object());
        while listener.lines.recv_timeout(Duration::from_millis(100)).is_ok() {}
    }
    // Without a file for nonces, nothing is sent.
    std::fs::remove_file(folder.path().join("plant.keys.nonces")).unwrap();
    std::fs::create_dir(folder.path().join("plant.keys.nonces")).unwrap();
    let publish = ["pubsub", "publish", &from, "-d", "1"];
    let refused = [publish.as_slice(), secured.as_slice()].concat();
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(&refused).run(LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("plant.keys.nonces"), "{output:?}");
}

/// A group for each test, and a port for each run of the tests.
fn url(number: u32) -> String {
    format!("opc.udp://239.192.9.{number}:{}", 30_000 + std::process::id() % 20_000)
}

/// A running command with its output lines; ends when dropped.
struct Background {
    child: Child,
    lines: Receiver<String>,
}

impl Background {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The first matching message within the time limit.
    fn message(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LIMIT;
        loop {
            let line = self.lines.recv_timeout(end - Instant::now()).expect("no such message in time");
            let message: Value = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(port: &str) -> Running {
    Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--port", port, "--signals", "2", "--update", "20", "--policy", "None"])
        .args(["--no-plant", "--exit-with-stdin"])
        .serve(LIMIT)
        .unwrap()
}

#[test]
fn values_are_received_with_their_names() {
    let url = url(1);
    // All publishers of this machine announce their names at the same address: only the PublisherId distinguishes them.
    let id = (20_000 + std::process::id() % 20_000).to_string();
    let publisher = ["pubsub", "publish", &url, "--interface", "lo", "-I", "20", "--signals", "2"];
    let publisher = [publisher.as_slice(), &["--publisher-id", &id]].concat();
    let _publisher = Background::start(&publisher);
    let listener = Background::start(&["pubsub", "listen", &url, "--interface", "lo", "--json"]);
    // The publisher sends the names on request.
    let message = listener.message(|message| !message["Fields"]["s1"].is_null());
    assert_eq!((&message["PublisherId"], &message["DataSetWriterId"]), (&id.into(), &1.into()));
    assert!(message["Fields"]["s2"]["Value"].is_number(), "{message}");
}

#[test]
fn a_bridge_continues_after_a_restart_of_its_server() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let server = serve(&port);
    let (url, from) = (url(2), server.url().to_owned());
    let bridge = Background::start(&[
        "pubsub",
        "publish",
        &url,
        "--interface",
        "lo",
        "-I",
        "20",
        "--from",
        &from,
        "--nodes",
        "ns=1;i=100000",
    ]);
    let listener = Background::start(&["pubsub", "listen", &url, "--interface", "lo", "--json"]);
    let field =
        |message: &Value| message["Fields"].as_object().and_then(|fields| fields.values().next().cloned());
    let code = |message: &Value| field(message).and_then(|field| field["StatusCode"]["Code"].as_u64());
    let is_good = |message: &Value| code(message).is_some_and(|code| code == 0);
    let uncertain = 0x408F_0000;
    let first = listener.message(is_good);
    assert!(field(&first).unwrap()["SourceTimestamp"].is_string(), "{first}");
    drop(server);
    listener.message(|message| code(message).is_some_and(|code| code == uncertain));
    let _server = serve(&port);
    listener.message(is_good);
    drop(bridge);
}

/// Wild cards publish the Variables that they match, and skip other nodes with a message.
#[test]
fn wild_cards_publish_only_variables() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let boiler = server.namespace("urn:test:boilers").object("Boiler").add().unwrap();
    boiler.object("Pump").add().unwrap();
    boiler.method("Reset").handler(|_, ()| Ok(())).unwrap();
    boiler.variable("Temperature", 21.5).add().unwrap();
    boiler.variable("Level", 4.0).add().unwrap();
    let running = server.spawn().unwrap();
    let (url, from) = (url(8), running.url());
    let publish = |nodes: &str| {
        let arguments = ["pubsub", "publish", &url, "--interface", "lo", "-I", "20", "-d", "1"];
        let arguments = [arguments.as_slice(), &["--from", &from, "--nodes", nodes]].concat();
        let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(&arguments).run(LIMIT).unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let listener = Background::start(&["pubsub", "listen", &url, "--interface", "lo", "--json"]);
    let (code, said) = publish("/Objects/2:Boiler/*");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("skipped 2 nodes that are not Variables"), "{said}");
    let message = listener.message(|message| message["Fields"].is_object());
    assert_eq!(message["Fields"].as_object().unwrap().len(), 2, "{message}");
    // Without any Variable, nothing is published.
    let (code, said) = publish("/Objects/2:Boil*");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("matches no Variable, only 1 other node.") && said.contains("taktwerk browse"),
        "{said}"
    );
    // A node that is named exactly is not skipped.
    let (code, said) = publish("/Objects/2:Boiler");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("Only Variables have a Value"), "{said}");
    running.stop(Duration::from_secs(1));
}

/// A server that provides the keys of one group, and the directory of a client that it trusts.
fn key_service(folder: &std::path::Path) -> (taktwerk::RunningServer, String) {
    let pki = |name: &str, uri: &str| {
        let settings = CertificateSettings::new(name, uri);
        let pki = Pki::in_folder(folder.join(name)).settings(settings);
        pki.create_missing([NewKey::NistP256]).open().unwrap()
    };
    let (ours, theirs) = (pki("server", "urn:test:sks"), pki("taktwerk", "urn:taktwerk:client"));
    let demo = pki("demo", "urn:taktwerk:demo-server");
    for client in [&theirs, &demo] {
        ours.trust_those_of(client).unwrap();
        client.trust_those_of(&ours).unwrap();
    }
    let mut authorization = Authorization::open();
    let role = authorization.role_mut("SecurityKeyServerAccess").unwrap();
    role.identities.push(IdentityRule::Anonymous);
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .pki(&ours)
        .security(SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt)
        .authorization(authorization)
        .build()
        .unwrap();
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    configuration.connections.push(Connection::new("udp", None, "opc.udp://127.0.0.1:9"));
    configuration.security_groups.push(SecurityGroupDataType {
        name: "plant".into(),
        security_group_id: "plant".into(),
        security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
        key_lifetime: 3.6e6,
        max_future_key_count: 3,
        ..SecurityGroupDataType::default()
    });
    let model = PubSubModel::add_to(&server, &configuration).unwrap();
    model.serve_security_keys().unwrap();
    (server.spawn().unwrap(), folder.join("taktwerk").display().to_string())
}

#[test]
fn keys_are_received_from_a_key_service() {
    let folder = tempfile::tempdir().unwrap();
    let (server, pki) = key_service(folder.path());
    let (url, service) = (url(3), server.url());
    let secured = [
        "--interface",
        "lo",
        "--security",
        "sign-and-encrypt",
        "--key-service",
        &service,
        "--security-group",
        "plant",
        "--pki",
        &pki,
    ];
    let with = |arguments: &[&'static str]| -> Background {
        let all: Vec<&str> =
            ["pubsub", arguments[0], &url].into_iter().chain(arguments[1..].to_vec()).collect();
        Background::start(&[all.as_slice(), &secured].concat())
    };
    let _publisher = with(&["publish", "-I", "20", "--layout", "dynamic"]);
    let listener = with(&["listen", "--json"]);
    let message = listener.message(|message| message["Fields"].is_object());
    assert_eq!(message["MessageType"], "KeyFrame", "{message}");
    // Without the keys, nothing is received.
    let listener = ["pubsub", "listen", &url, "--interface", "lo", "--json", "-d", "1"];
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(listener).run(LIMIT).unwrap();
    let end: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&end["Event"], &end["DataSetMessages"]), (&"End".into(), &0.into()), "{end}");
    // The security group must be given.
    let vague = ["pubsub", "publish", &url, "--security", "sign", "--key-service", &service];
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(vague).run(LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    server.stop(Duration::from_secs(1));
}

#[test]
fn the_embedded_broker_works_or_gives_advice() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("mqtt+json://127.0.0.1:{port}");
    if cfg!(feature = "embedded-broker") {
        let _publisher = Background::start(&["pubsub", "publish", &url, "--embedded-broker", "-I", "50"]);
        let listener = Background::start(&["pubsub", "listen", &url, "--json"]);
        // With names, from retained metadata.
        let message = listener.message(|message| !message["Fields"]["s1"].is_null());
        assert_eq!(message["PublisherId"], "1", "{message}");
    } else {
        let publisher = ["pubsub", "publish", &url, "--embedded-broker"];
        let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(publisher).run(LIMIT).unwrap();
        assert_eq!(output.status.code(), Some(6));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("built without a broker"), "{stderr}");
    }
}

/// A configuration with missing Variables and keys of another server: the rest works.
#[test]
fn serve_publishes_existing_variables_with_foreign_keys() {
    let folder = tempfile::tempdir().unwrap();
    let (sks, pki) = key_service(folder.path());
    let (url, service) = (url(4), sks.url());
    let configuration = folder.path().join("line.toml");
    let text = format!(
        r#"
key-services = ["{service}"]
[[data-set]]
name = "there"
fields = [{{ name = "value", type = "Float", node = "ns=1;i=100000" }}]
[[data-set]]
name = "gone"
fields = [{{ name = "value", type = "Float", node = "ns=1;s=Gone" }}]
[[connection]]
name = "udp"
publisher-id = {{ uint16 = 7 }}
url = "{url}"
interface = "lo"
[[connection.writer-group]]
name = "g"
id = 1
interval = 20.0
security = {{ mode = "SignAndEncrypt", group = "plant" }}
writers = [{{ name = "there", id = 1, data-set = "there" }}, {{ name = "gone", id = 2, data-set = "gone" }}]
[[connection.reader-group]]
name = "in"
readers = [{{ name = "r", publisher-id = {{ uint16 = 8 }}, writer-id = 1, fields = [{{ name = "x", type = "Float", node = "ns=1;s=Gone" }}] }}]
"#
    );
    std::fs::write(&configuration, text).unwrap();
    // The key service identifies its client by the server's own certificate.
    let demo = folder.path().join("demo").display().to_string();
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--port", "0", "--signals", "2", "--update", "20", "--no-plant", "--exit-with-stdin"])
        .args(["--policy", "None", "ECC_nistP256_AesGcm", "--pki", &demo])
        .args(["--pubsub", configuration.to_str().unwrap()])
        .serve(LIMIT)
        .unwrap();
    let secured = ["--security", "sign-and-encrypt", "--key-service", &service, "--security-group", "plant"];
    let listen = ["pubsub", "listen", &url, "--interface", "lo", "--json", "--pki", &pki];
    let listener = Background::start(&[listen.as_slice(), secured.as_slice()].concat());
    let message = listener.message(|message| message["Fields"].is_object());
    assert_eq!(message["DataSetWriterId"], 1, "{message}");
    let state = |path: &str| {
        let node = format!("ns=1;s=PubSub/udp/{path}/Status/State");
        let read = ["read", server.url(), &node, "--json"];
        let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(read).run(LIMIT).unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        told[0]["Value"].clone()
    };
    let states = ["g/there", "g/gone", "in/r"].map(state);
    assert_eq!(states, [2, 3, 3].map(Value::from), "Operational, and twice Error");
    sks.stop(Duration::from_secs(1));
}

/// Methods of a server as Actions, from a configuration file to the response.
#[test]
fn serve_answers_actions_of_call() {
    let folder = tempfile::tempdir().unwrap();
    // Not one that the system gives to others: they could get it, too, and some of its datagrams.
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let is_free = |port: &u16| std::net::UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    let port = (first..first + 1_000).find(is_free).unwrap();
    let url = format!("opc.udp://127.0.0.1:{port}");
    let configuration = folder.path().join("actions.toml");
    let keys = folder.path().join("plant.keys");
    let run = |arguments: &[&str]| {
        let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let node = |path: &str| format!("ns=2;s=Plant/{path}");
    // The fields of the first Method come from its definition, those of the other one from the file.
    let text = format!(
        r#"
[[data-set]]
name = "sum"
actions = [{{ id = 1, name = "add", object = "{methods}", method = "{add}" }}]
[[data-set]]
name = "greeting"
request = [{{ name = "who", type = "String" }}]
fields = [{{ name = "said", type = "String" }}]
actions = [{{ id = 1, name = "greet", object = "{methods}", method = "{hello}" }}]
[[connection]]
name = "actions"
publisher-id = {{ uint16 = 7 }}
url = "{url}"
interface = "lo"
[[connection.writer-group]]
name = "actions"
id = 1
interval = 10.0
writers = [{{ name = "sum", id = 1, data-set = "sum" }}, {{ name = "greeting", id = 2, data-set = "greeting" }}]
"#,
        methods = node("Methods"),
        add = node("Methods/Add"),
        hello = node("Methods/Hello"),
    );
    std::fs::write(&configuration, text).unwrap();
    let serve = |more: &[&str]| {
        Program::new(env!("CARGO_BIN_EXE_taktwerk"))
            .args(["serve", "--port", "0", "--policy", "None", "--exit-with-stdin"])
            .args(["--pubsub", configuration.to_str().unwrap()])
            .args(more)
            .serve(LIMIT)
    };
    assert!(serve(&[]).is_err(), "without message security, unless that is allowed");
    let _server = serve(&["--pubsub-unsecured-actions"]).unwrap();
    let ask = |more: &[&str]| {
        let call = ["pubsub", "call", &url, "--responder", "7", "--interface", "lo", "--timeout", "20"];
        run(&[call.as_slice(), more].concat())
    };
    let (code, _, said) = ask(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--allow-unsecured"), "{said}");
    let (code, shown, said) = ask(&["--allow-unsecured"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(shown.contains("a: Double, b: Double") && shown.contains("sum: Double"), "{shown}");
    assert!(shown.contains("greet") && shown.contains("who: String"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let (code, shown, said) = ask(&["--allow-unsecured", "--action", "add", "--json", "2", "-0.5"]);
    assert_eq!(code, Some(0), "{said}");
    let told: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&told["Outputs"][0]["Name"], &told["Outputs"][0]["Value"]), (&"sum".into(), &1.5.into()));
    let (code, shown, _) = ask(&["--allow-unsecured", "--action", "greet", "you"]);
    assert_eq!(code, Some(0));
    assert!(shown.contains("Hello, you!"), "{shown}");
    let (code, _, said) = ask(&["--allow-unsecured", "--action", "add", "2"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("takes 2 arguments, not 1"), "{said}");
    // With other keys, the responder does not respond.
    let (code, made, _) = run(&["pubsub", "keys", "plant"]);
    assert_eq!(code, Some(0));
    std::fs::write(&keys, made).unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let secured = ["--security", "sign-and-encrypt", "--keys", keys.to_str().unwrap(), "--timeout", "0.5"];
    let call = ["pubsub", "call", &url, "--responder", "7", "--interface", "lo"];
    let (code, _, said) = run(&[call.as_slice(), secured.as_slice()].concat());
    assert_eq!(code, Some(3), "{said}");
}

/// The output of `bench pubsub --pattern listen` and its exit code.
fn heard(url: &str, more: &[&str]) -> (Option<i32>, Value) {
    let listen = ["bench", "pubsub", url, "--pattern", "listen", "--interface", "lo", "-I", "20", "-d", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args([listen.as_slice(), &["--json"], more].concat())
        .output()
        .unwrap();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), document)
}

#[test]
fn other_publishers_are_measured_by_their_timestamps() {
    let server = serve("0");
    let (url, from) = (url(6), server.url().to_owned());
    let mut bridge = vec!["pubsub", "publish", &url, "--interface", "lo", "-I", "20"];
    bridge.extend(["--from", &from, "--nodes", "ns=1;i=100000"]);
    let _bridge = Background::start(&bridge);
    let listener = Background::start(&["pubsub", "listen", &url, "--interface", "lo", "--json"]);
    listener.message(|message| !message["Fields"].is_null());
    let (code, document) = heard(&url, &[]);
    assert_eq!(code, Some(0), "{document:#}");
    let count = |name: &str| document[name]["count"].as_u64().unwrap();
    assert!(count("delivery") > 0 && count("transfer") >= count("delivery"), "{document:#}");
    assert!(document["received"]["messages"].as_u64() >= Some(count("transfer")), "{document:#}");
    // Messages of other publishers do not count.
    let (code, document) = heard(&url, &["--publisher-id", "4711"]);
    let reason = &document["invalid"][0];
    assert_eq!((code, &reason["reason"]), (Some(5), &"nothing_heard".into()), "{document:#}");
    assert!(reason["message"].as_str().unwrap().contains("--publisher-id"), "{reason}");
}

#[test]
fn an_address_without_publisher_is_reported() {
    let url = url(7);
    let (code, document) = heard(&url, &[]);
    let reason = &document["invalid"][0];
    assert_eq!((code, &reason["reason"]), (Some(5), &"nothing_heard".into()), "{document:#}");
    assert!(reason["message"].as_str().unwrap().contains(&url), "{reason}");
}
