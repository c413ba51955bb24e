//! Renewal of certificates while the server runs.

use super::*;
use core::time::Duration;
use taktwerk::{QualifiedName, UtcTime};
use taktwerk_crypto::certificate::CertificateRequest;
use taktwerk_pki::{PrivateKey, create};

/// Waits until the server presents a certificate.
async fn offers(running: &RunningServer, certificate: &Certificate) {
    for _ in 0..600 {
        let endpoints = Client::endpoints(&running.url()).await.unwrap();
        if endpoints.iter().any(|endpoint| endpoint.server_certificate.as_bytes() == certificate.der()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server goes on with the old certificate");
}

fn expiration(running: &RunningServer) -> UtcTime {
    let alarm = NodeId::string(1, "CertificateExpired");
    let id = running.space().child(&alarm, &QualifiedName::new(0, "ExpirationDate")).unwrap();
    running.space().variable(&id).unwrap().get().value.unwrap().try_into().unwrap()
}

#[tokio::test]
async fn a_client_renews_the_certificate_and_clients_reconnect() {
    let folder = Folder::new("renew");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let before = own(&ours);
    assert_eq!(expiration(&running), before.not_after());
    let ask = async |subject: &str, new_key: bool, nonce: usize| ask(&client, subject, new_key, nonce).await;
    assert_eq!(ask("", true, 31).await, Err(StatusCode::BAD_INVALID_ARGUMENT), "the nonce is too short");
    assert_eq!(ask("O=Works", false, 0).await, Err(StatusCode::BAD_INVALID_ARGUMENT), "no common name");
    let request = |outputs: Vec<Variant>| {
        let der = ByteString::try_from(outputs[0].clone()).unwrap();
        CertificateRequest::from_der(der.as_bytes()).unwrap()
    };
    let same_key = request(ask("CN=Press/O=Works", false, 0).await.unwrap());
    assert_eq!(same_key.public_key(), before.public_key());
    assert!(same_key.subject_text().contains("Press"), "{}", same_key.subject_text());
    let new_key = request(ask("", true, 32).await.unwrap());
    assert!(new_key.public_key() != before.public_key());
    // An authority would sign the request; here the test signs with the key.
    let keys = std::fs::read_dir(folder.0.join("server/own/private")).unwrap();
    let keys = keys.map(|file| PrivateKey::read(&std::fs::read(file.unwrap().path()).unwrap()).unwrap());
    let key = keys.into_iter().find(|key| !key.belongs_to(&before)).unwrap();
    let mut settings = CertificateSettings::new("server", "urn:test:server");
    settings.lifetime = Duration::from_secs(86_400 * 5_000);
    let new = create::self_signed(&settings, &key).unwrap();
    let send =
        async |certificate: &Certificate, key: Vec<u8>| send(&client, certificate.der(), &[], &key).await;
    // Unsuitable certificates are rejected.
    let other = CertificateSettings::new("server", "urn:test:other");
    let other = create::self_signed(&other, &key).unwrap();
    assert_eq!(send(&other, Vec::new()).await, Err(StatusCode::BAD_CERTIFICATE_URI_INVALID));
    let rsa = PrivateKey::generate(NewKey::Rsa2048).unwrap();
    let other = create::self_signed(&settings, &rsa).unwrap();
    let refused = send(&other, rsa.pem().as_bytes().to_vec()).await;
    assert_eq!(refused, Err(StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED));
    let foreign = PrivateKey::generate(NewKey::NistP256).unwrap();
    let other = create::self_signed(&settings, &foreign).unwrap();
    assert_eq!(send(&other, Vec::new()).await, Err(StatusCode::BAD_SECURITY_CHECKS_FAILED), "no key");
    assert_eq!(apply(&client).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    // It takes effect when it is applied.
    assert_eq!(send(&new, Vec::new()).await, Ok(vec![true.into()]));
    assert_eq!(own(&ours), before);
    theirs.store().trust(Group::Applications, &new).unwrap();
    theirs.validator().refresh();
    assert_eq!(apply(&client).await, Ok(Vec::new()));
    assert_eq!(own(&ours), new);
    // The key of the request now belongs to the certificate; no other key remains.
    assert_eq!(std::fs::read_dir(folder.0.join("server/own/private")).unwrap().count(), 1);
    offers(&running, &new).await;
    assert!(
        expiration(&running) == new.not_after() || {
            tokio::time::sleep(Duration::from_secs(2)).await;
            expiration(&running) == new.not_after()
        }
    );
    // The client reconnects, and others can connect.
    let state = NodeId::numeric(0, 2259);
    let mut left = 600;
    while client.read(state.clone()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        left -= 1;
        assert!(left > 0, "the client comes back");
    }
    connect(&running, &theirs).await;
}

/// As `taktwerk pki init --renew` next to the server.
#[tokio::test]
async fn externally_renewed_certificates_are_used_if_suitable() {
    let folder = Folder::new("beside");
    let ours = folder.pki("server");
    let running = serve(&ours, "SecurityAdmin", false);
    let store = ours.store();
    let renew = |uri: &str| {
        let before = store.own(&mut Vec::new()).remove(0);
        let key = PrivateKey::generate(NewKey::NistP256).unwrap();
        let mut settings = CertificateSettings::new("server", uri);
        settings.lifetime = Duration::from_secs(86_400 * 4_000);
        let new = create::self_signed(&settings, &key).unwrap();
        store.keep_own(core::slice::from_ref(&new), &key).unwrap();
        store.retire(&before).unwrap();
        new
    };
    let first = own(&ours);
    // Another ApplicationUri is rejected, and the old certificate stays in use.
    renew("urn:test:another");
    assert!(ours.renew().unwrap_err().to_string().contains("urn:test:another"));
    offers(&running, &first).await;
    let new = renew("urn:test:server");
    offers(&running, &new).await;
    // Without any certificate, the last one stays in use.
    let last = store.own(&mut Vec::new()).remove(0);
    store.retire(&last).unwrap();
    assert!(ours.renew().unwrap_err().to_string().contains("no certificate any more"));
    offers(&running, &new).await;
}
