//! TLS to a real PostgreSQL server, to a real broker and to an imitation of InfluxDB, with a test authority. Without it, with another authority, or
//! with another host name the connection fails, and the error names the setting to change.

use crate::authority::{Signed, sign};
use crate::broker;
use crate::counting;
use crate::database;
use crate::stand::Stand;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

const LAST: u32 = 500;

/// The configuration of a server that requires certificates of `clients`.
fn requiring(signed: &Signed, clients: &Signed) -> Arc<ServerConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(clients.authority.as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
    let certificate = CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

fn config(signed: &Signed) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

/// An HTTPS server that accepts all lines. Returns its port, and the lines.
fn imitation(config: Arc<ServerConfig>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&lines);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let taken = Arc::clone(&taken);
            std::thread::spawn(move || serve(StreamOwned::new(connection, stream), &taken));
        }
    });
    (port, lines)
}

fn serve(stream: impl Read + Write, lines: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut len = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; len];
        stream.read_exact(&mut body)?;
        lines.lock().unwrap().extend(String::from_utf8(body).unwrap().lines().map(str::to_owned));
        stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
        stream.get_mut().flush()?;
    }
}

/// Writes the authority's certificate into a file. Returns the setting.
fn ca_file(folder: &Path, name: &str, signed: &Signed) -> String {
    let file = folder.join(name);
    std::fs::write(&file, &signed.authority).unwrap();
    format!("ca_file = {:?}\n", file.display().to_string())
}

/// Waits for an error that contains a text.
async fn fails(text: &str, said: &str) {
    let stand = Stand::new(text).await;
    let has = |error: &Option<String>| error.as_ref().is_some_and(|error| error.contains(said));
    stand.until_destination("db", |view| has(&view.counters.last_error)).await;
    let counted = stand.destination("db").counters;
    assert_eq!((counted.sent, counted.refused), (0, 0), "{counted:?}");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn influx_is_reached_with_the_right_authority_and_name_only() {
    let (right, wrong) = (sign("right"), sign("wrong"));
    let (port, lines) = imitation(config(&right));
    let folder = tempfile::tempdir().unwrap();
    let destination = |host: &str, more: &str| {
        format!(
            "{}[[destination]]\nname = \"db\"\ntype = \"influx\"\nurl = \"https://{host}:{port}\"\ndatabase = \"d\"\n\
             queue = {:?}\nretry = \"20 ms\"\nflush = \"10 ms\"\n{more}",
            counting::source(LAST),
            folder.path().join("q.db").display().to_string(),
        )
    };
    let is_untrusted = "an authority that is not trusted; set ca_file to the authority's file";
    fails(&destination("localhost", &ca_file(folder.path(), "wrong.pem", &wrong)), is_untrusted).await;
    let trusted = ca_file(folder.path(), "right.pem", &right);
    fails(
        &destination("127.0.0.1", &trusted),
        "its certificate is for another host name; write that name in url",
    )
    .await;
    assert!(lines.lock().unwrap().is_empty());
    let stand = Stand::new(&destination("localhost", &trusted)).await;
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("db", |view| {
            view.counters.accepted >= u64::from(LAST) && view.counters.queued == 0
        })
        .await;
    stand.end().await;
    assert!(lines.lock().unwrap().iter().any(|line| line.contains(&format!("value={LAST} "))));
}

/// Writes a certificate and its key into files. Returns the settings.
fn identity(folder: &Path, name: &str, signed: &Signed) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = |end: &str| folder.join(format!("{name}.{end}"));
    std::fs::write(file("pem"), &signed.certificate).unwrap();
    std::fs::write(file("key"), &signed.key).unwrap();
    std::fs::set_permissions(file("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    format!(
        "certificate_file = {:?}\nkey_file = {:?}\n",
        file("pem").display().to_string(),
        file("key").display().to_string()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_require_client_certificates_are_reached_with_the_right_one_only() {
    let (server, clients, others) = (sign("server"), sign("clients"), sign("others"));
    let (port, lines) = imitation(requiring(&server, &clients));
    let folder = tempfile::tempdir().unwrap();
    let trusted = ca_file(folder.path(), "ca.pem", &server);
    let destination = |more: &str| {
        format!(
            "{}[[destination]]\nname = \"db\"\ntype = \"influx\"\nurl = \"https://localhost:{port}\"\ndatabase = \"d\"\n\
             queue = {:?}\nretry = \"20 ms\"\nflush = \"10 ms\"\n{trusted}{more}",
            counting::source(LAST),
            folder.path().join("q.db").display().to_string(),
        )
    };
    for more in [String::new(), identity(folder.path(), "others", &others)] {
        let stand = Stand::new(&destination(&more)).await;
        stand.until_destination("db", |view| view.counters.errors > 0).await;
        let counted = stand.destination("db").counters;
        assert_eq!((counted.sent, counted.is_connected), (0, false), "{counted:?}");
        stand.end().await;
    }
    assert!(lines.lock().unwrap().is_empty());
    let stand = Stand::new(&destination(&identity(folder.path(), "right", &clients))).await;
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("db", |view| {
            view.counters.accepted >= u64::from(LAST) && view.counters.queued == 0
        })
        .await;
    stand.end().await;
    assert!(lines.lock().unwrap().iter().any(|line| line.contains(&format!("value={LAST} "))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_requires_client_certificates_is_reached_with_one() {
    let (server, clients) = (sign("server"), sign("clients"));
    let folder = tempfile::tempdir().unwrap();
    let port = broker::free_port();
    identity(folder.path(), "server", &server);
    std::fs::write(folder.path().join("clients.pem"), &clients.authority).unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let more = format!(
        "cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\n",
        at("clients.pem"),
        at("server.pem"),
        at("server.key")
    );
    let Some(_broker) = broker::Broker::start(folder.path(), port, &more) else { return };
    let destination = |more: &str| {
        format!(
            "{}[[destination]]\nname = \"db\"\ntype = \"mqtt\"\nurl = \"mqtts://localhost:{port}\"\nqueue = {:?}\n\
             retry = \"20 ms\"\nretry_max = \"200 ms\"\nflush = \"10 ms\"\n{}{more}",
            counting::source(LAST),
            at("q.db"),
            ca_file(folder.path(), "ca.pem", &server),
        )
    };
    let stand = Stand::new(&destination("")).await;
    stand.until_destination("db", |view| view.counters.errors > 0).await;
    assert_eq!(stand.destination("db").counters.sent, 0);
    stand.end().await;
    let stand = Stand::new(&destination(&identity(folder.path(), "client", &clients))).await;
    stand.until_destination("db", |view| view.counters.sent >= u64::from(LAST)).await;
    stand.end().await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_reached_with_the_right_authority_only() {
    let (right, wrong) = (sign("right"), sign("wrong"));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let database = database::Database::start_with_tls(port, &right.certificate, &right.key);
    let Some(database) = database else { return };
    let client = database::client(&database).await;
    let destination = |more: &str| {
        format!(
            "{}[[destination]]\nname = \"db\"\ntype = \"postgres\"\nurl = \"postgresql://taktwerk@localhost:{port}/postgres\"\n\
             tls = true\nqueue = {:?}\nretry = \"20 ms\"\nflush = \"10 ms\"\n{more}",
            counting::source(LAST),
            database.folder().join("q.db").display().to_string(),
        )
    };
    let is_untrusted = "an authority that is not trusted; set ca_file to the authority's file";
    fails(&destination(&ca_file(database.folder(), "wrong.pem", &wrong)), is_untrusted).await;
    let stand = Stand::new(&destination(&ca_file(database.folder(), "right.pem", &right))).await;
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("db", |view| {
            view.counters.accepted >= u64::from(LAST) && view.counters.queued == 0
        })
        .await;
    let sql = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'taktwerk-gateway'";
    let secured: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(secured, 1);
    let sql = format!("SELECT count(*) FROM tag_values WHERE value = {LAST}");
    let stored: i64 = client.query_one(&sql, &[]).await.unwrap().get(0);
    assert!(stored >= 1);
    stand.end().await;
}
