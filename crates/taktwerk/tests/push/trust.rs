//! Changes of certificates and trust lists while servers run.

use core::time::Duration;
use std::path::{Path, PathBuf};
use taktwerk::pki::Pki;
use taktwerk::{Client, MessageSecurityMode, SecurityPolicy, Server, StatusCode};
use taktwerk_pki::{CertificateSettings, Group, NewKey};

/// A directory that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("taktwerk-trust-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn pki(&self, name: &str) -> Pki {
        let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
        Pki::in_folder(self.path().join(name))
            .settings(settings)
            .create_missing([NewKey::NistP256])
            .open()
            .unwrap()
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_client_that_is_no_longer_trusted_loses_its_connection() {
    let folder = Folder::new("withdrawn");
    let (ours, theirs) = (folder.pki("server"), folder.pki("client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    let policy = SecurityPolicy::ECC_nistP256_AesGcm;
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .pki(&ours)
        .security(policy, MessageSecurityMode::SignAndEncrypt)
        .build()
        .unwrap();
    let running = server.spawn().unwrap();
    let client = Client::builder(&running.url()).pki(&theirs).connect().await.unwrap();
    client.read_value::<i32>("i=2259").await.unwrap();

    // As another process would do: only the file changes.
    let certificate = &theirs.store().own(&mut Vec::new())[0].certificate;
    assert!(ours.store().reject(Group::Applications, certificate).unwrap());
    while client.read_value::<i32>("i=2259").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let refused = Client::builder(&running.url()).pki(&theirs).connect().await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_SECURITY_CHECKS_FAILED, "{refused}");
}

#[test]
fn an_in_process_client_is_trusted_locally_while_it_lives() {
    use taktwerk_crypto::CertificatePurpose;
    let folder = std::env::temp_dir().join(format!("taktwerk-in-process-{}", std::process::id()));
    let pki = Pki::in_folder(&folder).create_missing([NewKey::NistP256]).open().unwrap();
    let settings = CertificateSettings::new("dashboard", "urn:test:dashboard");
    let client = pki.in_process_client(&settings, [192, 0, 2, 7].into()).unwrap();
    let policy = SecurityPolicy::ECC_nistP256_AesGcm;
    let provider = client.provider();
    let certificate = provider.own_certificate(policy).unwrap().to_vec();
    let from = |address: &str| {
        let purpose = CertificatePurpose::Client { address: Some(address.parse().unwrap()) };
        pki.provider().validate(&certificate, &purpose).is_ok()
    };
    assert!(["127.0.0.1", "::1", "192.0.2.7", "::ffff:192.0.2.7"].iter().all(|address| from(address)));
    assert!(!from("192.0.2.8") && !from("2001:db8::1"));
    let is_refused = |purpose: &CertificatePurpose| pki.provider().validate(&certificate, purpose).is_err();
    assert!(is_refused(&CertificatePurpose::Client { address: None }));
    assert!(is_refused(&CertificatePurpose::User { address: Some([127, 0, 0, 1].into()) }));
    assert!(is_refused(&CertificatePurpose::Server { host_name: "127.0.0.1".to_owned() }));
    // It trusts the server's certificate, but not its own or another one.
    let own = pki.provider().own_certificate(policy).unwrap().to_vec();
    assert!(client.verify(&own).is_ok() && client.verify(&certificate).is_err());
    assert_eq!(std::fs::read_dir(folder.join("trusted/certs")).unwrap().count(), 0, "nothing is in the list");
    drop((client, provider));
    assert!(!from("127.0.0.1"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// `taktwerk pki init` makes an RSA certificate with a URI of its own; the server adds those for its other policies.
#[test]
fn added_certificates_have_the_application_uri_of_the_first() {
    let folder = Folder::new("uri");
    let open = |uri: &str, keys: &[NewKey]| {
        let pki = Pki::in_folder(folder.path()).settings(CertificateSettings::new("server", uri));
        pki.create_missing(keys).open().unwrap()
    };
    open("urn:test:first", &[NewKey::Rsa2048]);
    let pki = open("urn:test:second", &[NewKey::Rsa2048, NewKey::NistP256]);
    let own = pki.store().own(&mut Vec::new());
    assert_eq!(own.len(), 2);
    assert!(own.iter().all(|own| own.certificate.application_uri() == Some("urn:test:first")));
    assert_eq!(pki.application_uri(), Some("urn:test:first"));
    assert!(pki.problems().is_empty(), "{:?}", pki.problems());
    // Certificates of two applications in one store are reported.
    let other = folder.path().join("other");
    let made = Pki::in_folder(&other).settings(CertificateSettings::new("server", "urn:test:other"));
    made.create_missing([NewKey::NistP384]).open().unwrap();
    for part in ["own/certs", "own/private"] {
        for entry in std::fs::read_dir(other.join(part)).unwrap() {
            let from = entry.unwrap();
            std::fs::rename(from.path(), folder.path().join(part).join(from.file_name())).unwrap();
        }
    }
    let problems = open("urn:test:first", &[]).problems().to_vec();
    assert!(
        !problems.is_empty() && problems.iter().all(|one| one.what.contains("clients refuse one")),
        "{problems:?}"
    );
}
