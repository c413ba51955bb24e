//! The user of a source: a server that requires a user certificate.

use crate::stand::{MS, Stand};
use std::path::Path;
use std::time::{Duration, Instant};
use taktwerk::pki::Pki;
use taktwerk::{MessageSecurityMode, RunningServer, SecurityPolicy, Server};
use taktwerk_config::users::CertificateVerifier;
use taktwerk_gateway::GatewayConfig;
use taktwerk_pki::{CertificateSettings, Folder, Group, NewKey};
use tokio::time::sleep;

fn pki(folder: &Path, name: &str, uri: &str) -> Pki {
    let pki = Pki::in_folder(folder.join(name)).settings(CertificateSettings::new(name, uri));
    pki.create_missing([NewKey::Rsa2048]).open().unwrap()
}

/// The only file of a folder.
fn only(folder: &Path) -> String {
    let mut files = std::fs::read_dir(folder).unwrap();
    files.next().unwrap().unwrap().path().display().to_string()
}

/// A server for users with certificates, which trusts olaf and not eve.
fn server(folder: &Path) -> RunningServer {
    let (ours, theirs) =
        (pki(folder, "server", "urn:test:server"), pki(folder, "pki-gateway", "urn:taktwerk:gateway:client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    for name in ["olaf", "eve"] {
        pki(folder, name, &format!("urn:test:{name}"));
    }
    let trusted = ours.store().folder(Group::Users, Folder::Trusted);
    std::fs::create_dir_all(&trusted).unwrap();
    std::fs::copy(only(&folder.join("olaf/own/certs")), trusted.join("olaf.der")).unwrap();
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .certificate_users(CertificateVerifier::new())
        .pki(&ours)
        .security(SecurityPolicy::Aes256_Sha256_RsaPss, MessageSecurityMode::SignAndEncrypt)
        .build()
        .unwrap();
    server.namespace("urn:example:plant").folder("Plant").unwrap().variable("Level", 1.5).add().unwrap();
    server.spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_logs_on_with_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = server(folder);
    let text = |user: &str| {
        let (certificate, key) =
            (only(&folder.join(user).join("own/certs")), only(&folder.join(user).join("own/private")));
        format!(
            "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{}\"\npki = \"pki-gateway\"\nretry = \"50 ms\"\n\
             publishing_interval = \"50 ms\"\nmirror = \"nsu=urn:example:plant;s=Plant\"\n\
             user_certificate_file = {certificate:?}\nuser_key_file = {key:?}\n",
            server.url()
        )
    };
    let stand = Stand::in_folder(folder, &text("olaf")).await;
    stand.until_there("up/Level").await;
    stand.value("up/Level", 1.5).await;
    stand.end().await;
    let stand = Stand::in_folder(folder, &text("eve")).await;
    let end = Instant::now() + Duration::from_secs(20);
    while stand.source("up").statistics.last_error.is_none() {
        assert!(Instant::now() < end);
        sleep(10 * MS).await;
    }
    let error = stand.source("up").statistics.last_error.unwrap();
    assert!(error.contains("BadIdentityTokenRejected"), "{error}");
    stand.end().await;
}

#[test]
fn wrong_users_are_mistakes_of_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["olaf", "eve"] {
        pki(folder, name, &format!("urn:test:{name}"));
    }
    let certificate = only(&folder.join("olaf/own/certs"));
    let [key, other] = ["olaf", "eve"].map(|name| only(&folder.join(name).join("own/private")));
    let open = folder.join("open.pem").display().to_string();
    std::fs::copy(&key, &open).unwrap();
    std::process::Command::new("chmod").args(["644", &open]).status().unwrap();
    let both = |certificate: &str, key: &str| {
        format!("user_certificate_file = {certificate:?}\nuser_key_file = {key:?}\n")
    };
    let pki = "pki = \"p\"\n";
    for (settings, said) in [
        (both(&certificate, &key), "a user certificate needs a secured connection"),
        (format!("{pki}{}", both("none.der", &key)), "g.toml:6: user_certificate_file: "),
        (format!("{pki}{}", both(&certificate, "none.pem")), "g.toml:7: user_key_file: "),
        (format!("{pki}{}", both(&certificate, &other)), "is not the key of the certificate"),
        (format!("{pki}{}", both(&certificate, &open)), "chmod 600"),
        (format!("{pki}user_key_file = {key:?}\n"), "g.toml:6: user_key_file: its certificate is missing"),
        (format!("{pki}user_certificate_file = {certificate:?}\n"), "its private key is missing"),
        (
            format!("{pki}user = \"olaf\"\npassword_file = \"p\"\n{}", both(&certificate, &key)),
            "there are a password and a certificate",
        ),
    ] {
        let text = format!("[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"opc.tcp://h\"\n{settings}");
        let path = folder.join("g.toml");
        let error = GatewayConfig::parse(&path, &text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}\n{said}");
    }
    let right = format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"opc.tcp://h\"\n{pki}{}",
        both(&certificate, &key)
    );
    GatewayConfig::parse(&folder.join("g.toml"), &right).unwrap();
}
