//! `pubsub publish` and `pubsub listen` with brokers that are missing, do not respond, or refuse: the loss is reported,
//! counted, and a failure.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a command. Returns exit code, standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Publishes for a second. Returns exit code, messages sent and lost, and standard error.
fn publish(url: &str, more: &[&str]) -> (Option<i32>, u64, u64, String) {
    let arguments = [&["pubsub", "publish", url, "-I", "50", "-d", "1", "--json"], more].concat();
    let (code, stdout, stderr) = run(&arguments);
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    (code, summary["messages"].as_u64().unwrap(), summary["failed"].as_u64().unwrap(), stderr)
}

/// Everything is lost, and the reason is reported.
fn nothing_arrives(url: &str, more: &[&str], why: &str) {
    let (code, made, lost, said) = publish(url, more);
    assert_eq!(code, Some(3), "{said}");
    assert!(made > 0 && lost >= made, "{lost} of {made}: {said}");
    assert!(
        said.contains("nothing has arrived") && said.contains(&format!("{lost} messages are lost")),
        "{said}"
    );
    assert!(said.contains(why), "{why}: {said}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_missing_broker_is_reported() {
    let port = free_port();
    for scheme in ["mqtt", "mqtts", "mqtt+json"] {
        let url = format!("{scheme}://127.0.0.1:{port}");
        nothing_arrives(&url, &["--qos", "1"], "Connection refused");
    }
    let (code, _, said) = run(&["pubsub", "listen", &format!("mqtt://127.0.0.1:{port}"), "-d", "1"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("nothing was received") && said.contains("Connection refused"), "{said}");
}

#[test]
fn a_silent_broker_is_reported() {
    // The kernel accepts connections, but nothing reads from them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for scheme in ["mqtt", "mqtts"] {
        nothing_arrives(&format!("{scheme}://127.0.0.1:{port}"), &["--mqtt", "5"], "it has not responded");
    }
    drop(listener);
}

struct Broker(Child);

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts mosquitto; `None` if it is not installed.
fn mosquitto(folder: &Path, port: u16, settings: &str) -> Option<Broker> {
    let known = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto", "/usr/bin/mosquitto"];
    let Some(program) = known.iter().find(|path| Path::new(path).is_file()) else {
        assert!(
            std::env::var_os("TAKTWERK_TEST_MOSQUITTO").is_none_or(|wish| wish != "required"),
            "no mosquitto"
        );
        println!("skipped: there is no mosquitto");
        return None;
    };
    let conf = folder.join(format!("{port}.conf"));
    std::fs::write(&conf, format!("listener {port} 127.0.0.1\npersistence false\nuser root\n{settings}"))
        .unwrap();
    let mut command = Command::new(program);
    command.arg("-c").arg(conf).stdout(Stdio::null()).stderr(Stdio::null());
    let broker = Broker(command.spawn().unwrap());
    let end = Instant::now() + LIMIT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "mosquitto does not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(broker)
}

#[test]
fn a_broker_that_refuses_the_user_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = mosquitto(folder.path(), port, "allow_anonymous false\n") else { return };
    for version in ["3.1.1", "5"] {
        let url = format!("mqtt://me:secret@127.0.0.1:{port}");
        nothing_arrives(&url, &["--mqtt", version], "check the user and the password");
        let (.., said) = publish(&url, &["--mqtt", version]);
        assert!(!said.contains("secret"), "the password must not be printed: {said}");
    }
}

/// TLS with a private authority: the right one, another one, another host name, and client certificates.
#[test]
fn tls_errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (plant, stranger) = (authority("Plant"), authority("Stranger"));
    let ca = file("ca.pem", &plant.pem());
    let other = file("other.pem", &stranger.pem());
    let issue = |name: &str, host: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &plant).unwrap();
        (file(&format!("{name}.pem"), &certificate.pem()), file(&format!("{name}.key"), &key.serialize_pem()))
    };
    let (certificate, key) = issue("broker", "localhost");
    let (mine, my_key) = issue("client", "publisher");
    let settings = format!("allow_anonymous true\ncertfile {certificate}\nkeyfile {key}\n");
    let port = free_port();
    let Some(_broker) = mosquitto(folder.path(), port, &settings) else { return };
    let url = format!("mqtts://localhost:{port}");
    for version in ["3.1.1", "5"] {
        for qos in ["0", "1", "2"] {
            let settings = ["--broker-ca", &ca, "--mqtt", version, "--qos", qos];
            let (code, made, lost, said) = publish(&url, &settings);
            assert_eq!((code, lost), (Some(0), 0), "MQTT {version}, QoS {qos}: {said}");
            assert!(made > 0);
        }
    }
    nothing_arrives(&url, &["--broker-ca", &other], "certificate authority is not trusted");
    let by_address = format!("mqtts://127.0.0.1:{port}");
    nothing_arrives(
        &by_address,
        &["--broker-ca", &ca],
        "use a host name that the broker's certificate contains",
    );
    nothing_arrives(&format!("mqtt://localhost:{port}"), &[], "");

    // A broker that requires client certificates.
    let port = free_port();
    let settings = format!("{settings}cafile {ca}\nrequire_certificate true\n");
    let Some(_strict) = mosquitto(folder.path(), port, &settings) else { return };
    let url = format!("mqtts+json://localhost:{port}");
    nothing_arrives(&url, &["--broker-ca", &ca], "the broker requires a client certificate");
    let known = ["--broker-ca", &ca, "--broker-certificate", &mine, "--broker-key", &my_key];
    let (code, made, lost, said) = publish(&url, &[known.as_slice(), &["--qos", "1"]].concat());
    assert_eq!((code, lost), (Some(0), 0), "{said}");
    assert!(made > 0);
}

/// A password is not sent without TLS unless that is allowed, however it is configured.
#[test]
fn passwords_are_sent_over_tls_only() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing answers at this address (RFC 5737), and nothing is sent.
    let (host, url) = ("192.0.2.1", "mqtt://me:secret@192.0.2.1");
    let refused = |arguments: &[&str], advice: &str| {
        let (code, _, said) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("the password would") && said.contains("mqtts://") && said.contains(advice),
            "{said}"
        );
        assert!(said.contains(host) && !said.contains("secret"), "{said}");
    };
    let json = format!("mqtt+json://me:secret@{host}");
    for url in [url, json.as_str()] {
        refused(&["pubsub", "publish", url, "-d", "1"], "--allow-plaintext-password");
        refused(&["pubsub", "listen", url, "-d", "1"], "--allow-plaintext-password");
        let call = ["pubsub", "call", url, "--responder", "7", "--allow-unsecured"];
        refused(&call, "--allow-plaintext-password");
    }
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let connection =
        format!("[[connection]]\nname = \"m\"\npublisher-id = {{ string = \"p\" }}\nurl = \"{url}\"\n");
    let set =
        "[[data-set]]\nname = \"d\"\nfields = [{ name = \"x\", type = \"Float\", node = \"i=2258\" }]\n";
    let group = "[[connection.writer-group]]\nname = \"g\"\nid = 1\ninterval = 100.0\nwriters = [{ name = \"w\", id = 1, \
                 data-set = \"d\" }]\n";
    let line = file("line.toml", &format!("{set}{connection}{group}"));
    refused(&["pubsub", "publish", "--config", &line, "--simulate", "-d", "1"], "--allow-plaintext-password");
    let serve = ["serve", "--port", "0", "--policy", "None", "--no-plant", "--pubsub", &line];
    refused(&serve, "--pubsub-allow-plaintext-password");
    // If allowed, the connection is tried.
    let (code, .., said) = publish(url, &["--allow-plaintext-password"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("nothing has arrived"), "{said}");
    let (code, _, said) = run(&["bench", "mqtt", "mqtt://me:secret@127.0.0.1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("remove them") && !said.contains("secret"), "{said}");
}
