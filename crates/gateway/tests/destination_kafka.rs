//! Sends values to a real Kafka broker (KRaft), which is killed and restarted. The test is skipped without Java or without
//! Kafka's jars in `target/peers/kafka` (install them with `interop/servers.sh`).

#![cfg(feature = "kafka")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it skips

mod authority;
mod counting;
mod missing;
mod stand;

use rskafka::client::partition::UnknownTopicHandling;
use rskafka::client::{Client, ClientBuilder};
use stand::Stand;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LAST: u32 = 2000;
const TOPIC: &str = "plant.values";

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

struct Broker {
    child: Child,
    jars: PathBuf,
    file: PathBuf,
}

fn java(jars: &Path) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xmx256m", "-cp"]).arg(jars.join("*")).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Broker {
    /// `None` if it is not installed. The listener of clients has a protocol; `more` is added to the configuration, and `users`
    /// to the arguments that format the log.
    fn start(folder: &Path, port: u16, protocol: &str, more: &str, users: &[&str]) -> Option<Self> {
        let jars = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/kafka");
        let has_java = Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok();
        if !has_java || !jars.is_dir() {
            missing::skip(missing::SERVERS, "Kafka is not installed (Java, and interop/servers.sh)");
            return None;
        }
        let host = if protocol == "PLAINTEXT" { "127.0.0.1" } else { "localhost" };
        let (file, controller) = (folder.join("server.properties"), free_port());
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners={protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners={protocol}://{host}:{port}\ncontroller.listener.names=CONTROLLER\n\
             listener.security.protocol.map={protocol}:{protocol},CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name={protocol}\n\
             log.dirs={}\nauto.create.topics.enable=false\noffsets.topic.replication.factor=1\n\
             message.max.bytes=20000\n{more}",
            folder.join("log").display()
        );
        std::fs::write(&file, text).unwrap();
        let format = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c"];
        assert!(java(&jars).args(format).arg(&file).args(users).status().unwrap().success());
        let child = java(&jars).arg("kafka.Kafka").arg(&file).spawn().unwrap();
        Some(Self { child, jars, file })
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn go_on(&mut self) {
        self.child = java(&self.jars).arg("kafka.Kafka").arg(&self.file).spawn().unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All records of a partition: key, header `key`, value.
async fn read(client: &Client, partition: i32) -> Vec<(String, String, serde_json::Value)> {
    let client = client.partition_client(TOPIC, partition, UnknownTopicHandling::Retry).await.unwrap();
    let (mut found, mut offset) = (Vec::new(), 0);
    loop {
        let (records, end) = client.fetch_records(offset, 1..1_000_000, 1000).await.unwrap();
        for it in records {
            offset = it.offset + 1;
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let value = serde_json::from_slice(&it.record.value.unwrap()).unwrap();
            found.push((text(&it.record.key.unwrap()), text(&it.record.headers["key"]), value));
        }
        if offset >= end {
            return found;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_reach_a_killed_broker_in_order_per_tag() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(mut broker) = Broker::start(folder.path(), port, "PLAINTEXT", "", &[]) else { return };
    let second = counting::source(LAST).replace("Count", "Other").replace("counter", "second");
    let long = r#"printf '{\"name\":\"Long\",\"value\":\"%030000d\"}\\n' 0; exec sleep 1000"#;
    let text = format!(
        "{}{second}[[source]]\nname = \"more\"\ntype = \"program\"\ncommand = [\"sh\", \"-c\", \"{long}\"]\n\
         [[tag]]\nsource = \"more\"\nname = \"Long\"\ntype = \"String\"\n\
         [[destination]]\nname = \"kafka\"\ntype = \"kafka\"\nbrokers = [\"127.0.0.1:{port}\"]\n\
         topic = \"{TOPIC}\"\npartitions = 3\nqueue = {:?}\nretry = \"50 ms\"\nretry_max = \"500 ms\"\nflush = \"10 ms\"\n\
         batch_max = 400\ndeadline = \"30 s\"\n",
        counting::source(LAST),
        folder.path().join("q.db").display().to_string(),
    );
    let stand = Stand::new(&text).await;
    // Later errors are those of connections to the killed broker.
    let is_refused = |error: &String| error.contains("too large");
    stand.until_destination("kafka", |view| view.counters.last_error.as_ref().is_some_and(is_refused)).await;
    for until in [50, 1500] {
        stand.until_destination("kafka", |view| view.counters.sent > until).await;
        broker.kill();
        let failed = stand.destination("kafka").counters.errors;
        stand
            .until_destination("kafka", |view| view.counters.errors > failed && view.counters.queued > 20)
            .await;
        broker.go_on();
    }
    stand
        .until_destination("kafka", |view| {
            view.counters.sent >= 2 * u64::from(LAST) && view.counters.queued == 0
        })
        .await;
    let counted = stand.destination("kafka").counters;
    // The long value, and possibly the same after it has become uncertain.
    assert!((1..=2).contains(&counted.refused), "{counted:?}");
    assert_eq!((counted.overrun, counted.evicted), (0, 0), "{counted:?}");
    let client = ClientBuilder::new(vec![format!("127.0.0.1:{port}")]).build().await.unwrap();
    let mut all = Vec::new();
    for partition in 0..3 {
        all.push(read(&client, partition).await);
    }
    for tag in ["counter/Count", "second/Other"] {
        let of_tag: Vec<&Vec<_>> =
            all.iter().filter(|records| records.iter().any(|(key, ..)| key == tag)).collect();
        assert_eq!(of_tag.len(), 1, "all values of a tag are in one partition");
        let numbers = of_tag[0].iter().filter(|(key, ..)| key == tag).filter_map(|(_, key, value)| {
            assert_eq!(value["tag"], tag);
            Some((key.as_str(), value["value"].as_i64().filter(|_| value["status"] == "Good")?))
        });
        assert_eq!(counting::once(numbers), (1..=i64::from(LAST)).collect::<Vec<_>>());
    }
    stand.end().await;
    tokio::time::timeout(Duration::from_secs(10), async { broker.kill() }).await.unwrap();
}

/// The broker's settings for users and certificates.
fn secured(signed: &authority::Signed) -> String {
    let line = |pem: &str| pem.trim().replace('\n', "\\n");
    let (listener, modules) = ("listener.name.sasl_ssl", "org.apache.kafka.common.security");
    let scram = |number: u32| {
        format!("{listener}.scram-sha-{number}.sasl.jaas.config={modules}.scram.ScramLoginModule required;\n")
    };
    format!(
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\nsasl.mechanism.inter.broker.protocol=PLAIN\n\
         {listener}.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required username=\"gateway\" \
         password=\"secret\" user_gateway=\"secret\";\n{}{}\
         ssl.keystore.type=PEM\nssl.keystore.certificate.chain={}\nssl.keystore.key={}\nssl.truststore.type=PEM\n\
         ssl.truststore.certificates={}\n",
        scram(256),
        scram(512),
        line(&signed.certificate),
        line(&signed.key),
        line(&signed.authority)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn users_authenticate_with_each_mechanism_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (port, signed) = (free_port(), authority::sign("right"));
    let users =
        ["SCRAM-SHA-256", "SCRAM-SHA-512"].map(|name| format!("{name}=[name=gateway,password=secret]"));
    let users = ["--add-scram", &users[0], "--add-scram", &users[1]];
    let broker = Broker::start(folder.path(), port, "SASL_SSL", &secured(&signed), &users);
    let Some(_broker) = broker else { return };
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (ca, right, wrong) =
        (file("ca.pem", &signed.authority), file("right", "secret\n"), file("wrong", "guess\n"));
    let text = |mechanism: &str, password: &str| {
        format!(
            "{}[[destination]]\nname = \"kafka\"\ntype = \"kafka\"\nbrokers = [\"localhost:{port}\"]\ntls = true\n\
             ca_file = {ca:?}\nuser = \"gateway\"\npassword_file = {password:?}\nmechanism = \"{mechanism}\"\n\
             topic = \"{mechanism}\"\npartitions = 1\nqueue = {:?}\nretry = \"50 ms\"\nretry_max = \"500 ms\"\n\
             deadline = \"20 s\"\n",
            counting::source(50),
            folder
                .path()
                .join(format!("{mechanism}-{}.db", password.ends_with("right")))
                .display()
                .to_string(),
        )
    };
    for mechanism in ["plain", "scram-sha-256", "scram-sha-512"] {
        let stand = Stand::new(&text(mechanism, &right)).await;
        stand.until_destination("kafka", |view| view.counters.sent >= 50).await;
        stand.end().await;
    }
    let stand = Stand::new(&text("scram-sha-512", &wrong)).await;
    let is_refused = |error: &Option<String>| {
        error.as_ref().is_some_and(|error| error.to_lowercase().contains("authentication"))
    };
    stand.until_destination("kafka", |view| is_refused(&view.counters.last_error)).await;
    assert_eq!(stand.destination("kafka").counters.sent, 0);
    stand.end().await;
}
