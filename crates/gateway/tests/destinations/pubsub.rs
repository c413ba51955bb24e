//! Sends DataSetMessages to a real broker (mosquitto) and our own subscriber. Skipped if the broker is not installed.

use crate::broker::{Broker, free_port};
use crate::counting;
use crate::stand::{MS, Stand};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use taktwerk::Client;
use taktwerk::pki::Pki;
use taktwerk::pubsub::config::{Configuration, Connection};
use taktwerk::pubsub::{
    DataSetMessageKind, PublisherId, SecurityMode, StaticKeys, Subscriber, SubscriberBuilder, named,
};
use taktwerk::pubsub_model::{KeyServiceClient, PubSubModel};
use taktwerk::schema::SecurityGroupDataType;
use taktwerk::server::authorization::{Authorization, IdentityRule};
use taktwerk::{MessageSecurityMode, RunningServer, SecurityPolicy, Server};
use taktwerk_config::pubsub_keys::{KeyFile, new_key};
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_pki::{CertificateSettings, NewKey};
use taktwerk_types::{UtcTime, Variant};

const LAST: u32 = 500;
const LIMIT: Duration = Duration::from_secs(60);

/// Sends the values of a counter to a destination with `settings`, in the directory of the configuration. Checks that the
/// subscriber at `url` receives each with its time. Returns the number of values from key frames.
async fn each_value_comes(
    folder: &Path,
    port: u16,
    url: &str,
    settings: &str,
    set: impl FnOnce(SubscriberBuilder) -> SubscriberBuilder,
) -> usize {
    let (sender, values) = mpsc::channel();
    let builder = Subscriber::builder(url).publisher(PublisherId::String("line-1".into())).writer(7);
    let subscriber = set(builder)
        .on_message(move |message| {
            assert_eq!(message.publisher_id.as_ref().unwrap().to_string(), "line-1");
            assert_eq!(message.data_set_writer_id, Some(7));
            for (name, value) in named(message) {
                let _ = sender.send((name.into_owned(), value.clone(), message.kind));
            }
        })
        .start()
        .unwrap();
    let end = Instant::now() + LIMIT;
    while !subscriber.brokers().iter().all(|broker| broker.is_subscribed()) {
        assert!(Instant::now() < end);
        tokio::time::sleep(10 * MS).await;
    }
    let text = format!(
        "{}[[destination]]\nname = \"cloud\"\ntype = \"pubsub\"\nurl = \"mqtt://127.0.0.1:{port}\"\nqueue = {:?}\n\
         flush = \"10 ms\"\npublisher_id = \"line-1\"\nwriter_id = 7\n{settings}",
        counting::source(LAST),
        folder.join("q.db").display().to_string(),
    );
    let stand = Stand::in_folder(folder, &text).await;
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("cloud", |view| view.counters.sent >= u64::from(LAST) && view.counters.queued == 0)
        .await;
    let mut numbers = Vec::new();
    let mut key_frames = 0;
    while numbers.last() != Some(&i64::from(LAST)) {
        let (name, value, kind) = values.recv_timeout(LIMIT).unwrap();
        assert_eq!(name, "counter/Count");
        let Some(Variant::Int64(number)) = value.value else { panic!("{value:?}") };
        let time = UtcTime::from_unix(Duration::from_secs(1_700_000_000 + number.cast_unsigned()));
        assert_eq!(value.source_timestamp, Some(time));
        numbers.push(number);
        key_frames += usize::from(kind == DataSetMessageKind::KeyFrame);
    }
    // The first values may have been sent before the subscription, or before the subscriber had keys.
    let first = *numbers.first().unwrap();
    assert_eq!(numbers, (first..=i64::from(LAST)).collect::<Vec<_>>());
    let counted = stand.destination("cloud").counters;
    assert_eq!((counted.refused, counted.overrun, counted.evicted), (0, 0, 0), "{counted:?}");
    assert_eq!(subscriber.counters().malformed, 0);
    stand.end().await;
    key_frames
}

#[tokio::test(flavor = "multi_thread")]
async fn our_subscriber_reads_each_value_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let url = format!("mqtt+json://127.0.0.1:{port}");
    let key_frames = each_value_comes(folder.path(), port, &url, "", |builder| builder).await;
    assert_eq!(key_frames, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn uadp_fields_are_named_by_the_metadata_that_the_broker_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let url = format!("mqtt://127.0.0.1:{port}");
    let settings = "encoding = \"uadp\"\nkey_frame_count = 10\nvalues = \"all\"\n";
    let key_frames = each_value_comes(folder.path(), port, &url, settings, |builder| builder).await;
    // The first values may be missing.
    assert!((LAST as usize / 20..=LAST as usize / 10).contains(&key_frames), "{key_frames}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_encrypted_with_the_key_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let file = folder.path().join("plant.keys");
    let text = toml::to_string(&new_key("plant", PubSubSecurityPolicy::Aes256Ctr)).unwrap();
    taktwerk_config::file::replace(&file, text.as_bytes(), 0o600).unwrap();
    let url = format!("mqtt://127.0.0.1:{port}");
    let settings = "encoding = \"uadp\"\nkeys = \"plant.keys\"\n";
    let keys = KeyFile::read(&file).unwrap().add_to(StaticKeys::new());
    let secured = |builder: SubscriberBuilder| builder.security(SecurityMode::SignAndEncrypt, "plant", keys);
    each_value_comes(folder.path(), port, &url, settings, secured).await;
    // The used nonces are stored.
    assert!(folder.path().join("plant.keys.nonces").exists());
}

/// A key service with the security group "plant", and a client's certificates. Both trust each other.
fn key_service(folder: &Path) -> (RunningServer, Pki) {
    let pki = |name: &str, uri: &str| {
        let settings = CertificateSettings::new(name, uri);
        let pki = Pki::in_folder(folder.join(name)).settings(settings);
        pki.create_missing([NewKey::Rsa2048]).open().unwrap()
    };
    let (ours, theirs) = (pki("server", "urn:test:sks"), pki("pki-gateway", "urn:taktwerk:gateway:client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    let mut authorization = Authorization::open();
    let role = authorization.role_mut("SecurityKeyServerAccess").unwrap();
    role.identities.push(IdentityRule::Anonymous);
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .pki(&ours)
        .security(SecurityPolicy::Aes256_Sha256_RsaPss, MessageSecurityMode::SignAndEncrypt)
        .authorization(authorization)
        .build()
        .unwrap();
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    configuration.connections.push(Connection::new("udp", None, "opc.udp://127.0.0.1:9"));
    configuration.security_groups.push(SecurityGroupDataType {
        name: "plant".into(),
        security_group_id: "plant".into(),
        key_lifetime: 60_000.0,
        security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
        max_future_key_count: 2,
        max_past_key_count: 2,
        ..SecurityGroupDataType::default()
    });
    let model = PubSubModel::add_to(&server, &configuration).unwrap();
    model.serve_security_keys().unwrap();
    (server.spawn().unwrap(), theirs)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_signed_with_keys_of_a_key_service() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let (service, pki) = key_service(folder.path());
    let url = format!("mqtt://127.0.0.1:{port}");
    let settings = format!(
        "encoding = \"uadp\"\nmessage_security = \"sign\"\nsecurity_group = \"plant\"\nkey_service = {:?}\n",
        service.url()
    );
    let keys = KeyServiceClient::new(move |url| Client::builder(url).pki(&pki))
        .unwrap()
        .default_service(&service.url());
    let secured = |builder: SubscriberBuilder| builder.security(SecurityMode::Sign, "plant", keys);
    each_value_comes(folder.path(), port, &url, &settings, secured).await;
    service.stop(Duration::from_secs(1));
}
