//! Clients that do what they must not, and clients that stop half way.

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use taktwerk_pki::{PrivateKey, create};

/// An authority with a name.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(name: &str) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = Certificate::from_der(params.self_signed(&key).unwrap().der()).unwrap();
    Authority { certificate, issuer: Issuer::new(params, key) }
}

impl Authority {
    /// Makes a certificate of the server, as if its request was signed.
    fn sign(&self, key: &PrivateKey) -> Certificate {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "server");
        params.subject_alt_names.push(SanType::URI("urn:test:server".try_into().unwrap()));
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::ContentCommitment];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let signed = params.signed_by(&KeyPair::from_pem(&key.pem()).unwrap(), &self.issuer).unwrap();
        Certificate::from_der(signed.der()).unwrap()
    }
}

/// The key that waits for its certificate.
fn requested(folder: &Folder) -> PrivateKey {
    let files =
        std::fs::read_dir(folder.0.join("server/own/private")).unwrap().map(|file| file.unwrap().path());
    let is_requested = |path: &PathBuf| path.to_string_lossy().contains("requested-");
    let path = files.into_iter().find(is_requested).unwrap();
    PrivateKey::read(&std::fs::read(path).unwrap()).unwrap()
}

/// A certificate that the server could have, with its key.
pub(super) fn fitting() -> (Certificate, PrivateKey) {
    let key = PrivateKey::generate(NewKey::NistP256).unwrap();
    (create::self_signed(&CertificateSettings::new("server", "urn:test:server"), &key).unwrap(), key)
}

pub(super) fn list_of(certificates: &[&Certificate]) -> TrustListDataType {
    let trusted_certificates = certificates.iter().map(|certificate| der(certificate)).collect();
    TrustListDataType { specified_lists: 1, trusted_certificates, ..TrustListDataType::default() }
}

/// Messages that are signed can be read: private keys must not be in them.
#[tokio::test]
async fn a_channel_that_does_not_encrypt_is_not_enough() {
    let folder = Folder::new("sign");
    let (ours, theirs) = pair(&folder);
    let running = serve_with(&ours, "SecurityAdmin", true, MessageSecurityMode::Sign);
    let client = connect(&running, &theirs).await;
    let (certificate, key) = fitting();
    assert!(send(&client, certificate.der(), &[], key.pem().as_bytes()).await.is_err());
    assert!(call(&client, LIST, OPEN, vec![6u8.into()]).await.is_err());
    let other = folder.pki("other");
    assert!(call(&client, LIST, ADD, vec![der(&own(&other)).into(), true.into()]).await.is_err());
    assert_eq!(trusted(&ours), [own(&theirs)]);
}

/// Changes of one administrator do not mix with those of another one, and end with the session.
#[tokio::test]
async fn two_administrators_and_half_a_transaction() {
    let folder = Folder::new("two");
    let (ours, theirs) = pair(&folder);
    let other = own(&folder.pki("other"));
    let running = serve(&ours, "SecurityAdmin", true);
    let (first, second) = (connect(&running, &theirs).await, connect(&running, &theirs).await);
    let (certificate, key) = fitting();
    let (before, mine) = (own(&ours), own(&theirs));
    let pending = Err(StatusCode::BAD_TRANSACTION_PENDING);
    let update = async |client: &Client| send(client, certificate.der(), &[], key.pem().as_bytes()).await;
    let add = async |client: &Client| call(client, LIST, ADD, vec![der(&other).into(), true.into()]).await;
    // One is writing the trust list.
    let handle = written(&first, &list_of(&[&mine, &other])).await.unwrap();
    assert_eq!(update(&second).await, pending);
    assert_eq!(call(&second, LIST, OPEN, vec![6u8.into()]).await, pending);
    assert_eq!(add(&second).await, Err(StatusCode::BAD_INVALID_STATE));
    assert_eq!(apply(&first).await, Err(StatusCode::BAD_INVALID_STATE), "it is open");
    assert_eq!(apply(&second).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    // It is written, and so is a certificate: both wait for one ApplyChanges.
    call(&first, LIST, UPDATE, vec![handle]).await.unwrap();
    update(&first).await.unwrap();
    assert_eq!(
        (update(&second).await, add(&second).await, add(&first).await),
        (pending.clone(), pending.clone(), pending.clone())
    );
    assert_eq!(call(&second, LIST, OPEN, vec![6u8.into()]).await, pending);
    for end in [apply(&second).await, cancel(&second).await] {
        assert_eq!(end, Err(StatusCode::BAD_SESSION_ID_INVALID));
    }
    // Others read the trust list as it is.
    let handle = call(&second, LIST, OPEN, vec![1u8.into()]).await.unwrap().remove(0);
    assert_eq!(
        call(&second, LIST, WRITE, vec![handle, ByteString::from(vec![1]).into()]).await,
        Err(StatusCode::BAD_INVALID_STATE)
    );
    assert_eq!((own(&ours), trusted(&ours)), (before.clone(), vec![mine.clone()]));
    // Its session ends: nothing is left of it.
    first.disconnect().await;
    assert_eq!(apply(&second).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!((own(&ours), trusted(&ours)), (before.clone(), vec![mine.clone()]));
    // Cancelled changes are not applied, neither is an invalid one, and the transaction goes on with the others.
    update(&second).await.unwrap();
    cancel(&second).await.unwrap();
    assert_eq!(apply(&second).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    let handle = written(&second, &list_of(&[&mine, &other])).await.unwrap();
    call(&second, LIST, UPDATE, vec![handle]).await.unwrap();
    assert!(send(&second, &[1, 2], &[], &[]).await.is_err());
    let handle = call(&second, LIST, OPEN, vec![6u8.into()]).await.unwrap().remove(0);
    assert!(call(&second, LIST, UPDATE, vec![handle]).await.is_err(), "an empty file is no trust list");
    apply(&second).await.unwrap();
    assert_eq!((own(&ours), trusted(&ours).len()), (before, 2));
}

/// Signatures count, not names.
#[tokio::test]
async fn chains_that_are_forged_or_not_complete_are_refused() {
    let folder = Folder::new("chains");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let (root, forged) = (authority("Root"), authority("Root"));
    ask(&client, "", true, 32).await.unwrap();
    let key = requested(&folder);
    let certificate = root.sign(&key);
    let send = async |certificate: &Certificate, issuers: &[&Certificate]| {
        send(&client, certificate.der(), issuers, &[]).await
    };
    let incomplete = Err(StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE);
    assert_eq!(send(&certificate, &[]).await, incomplete);
    assert!(send(&certificate, &[&forged.certificate]).await.is_err(), "the same name, another key");
    assert!(send(&forged.sign(&key), &[&root.certificate]).await.is_err());
    // The same in a trust list.
    let add = async |certificate: &Certificate, trusted: bool| {
        call(&client, LIST, ADD, vec![der(certificate).into(), trusted.into()]).await
    };
    assert_eq!(add(&certificate, true).await, incomplete);
    let handle = written(&client, &list_of(&[&own(&theirs), &certificate])).await.unwrap();
    assert_eq!(call(&client, LIST, UPDATE, vec![handle]).await, incomplete);
    assert_eq!(trusted(&ours), [own(&theirs)]);
    // With the issuer it is good, and an issuer that others need stays.
    add(&root.certificate, false).await.unwrap();
    add(&certificate, true).await.unwrap();
    let thumbprint = |certificate: &Certificate| {
        taktwerk_pki::thumbprint_text(&taktwerk_crypto::certificate::thumbprint(certificate.der()))
    };
    let remove = async |certificate: &Certificate, trusted: bool| {
        let thumbprint = thumbprint(certificate);
        call(&client, LIST, REMOVE, vec![thumbprint.as_str().into(), trusted.into()]).await
    };
    assert_eq!(remove(&root.certificate, false).await, incomplete);
    assert_eq!(remove(&root.certificate, true).await, Err(StatusCode::BAD_INVALID_ARGUMENT), "another list");
    remove(&certificate, true).await.unwrap();
    remove(&root.certificate, false).await.unwrap();
    // The answer to the request, with issuers that have nothing to do with it: they are left out.
    let unrelated = authority("Unrelated");
    send(&certificate, &[&unrelated.certificate, &root.certificate]).await.unwrap();
    apply(&client).await.unwrap();
    let own = ours.store().own(&mut Vec::new()).remove(0);
    assert_eq!(own.certificate, certificate);
    assert_eq!(own.chain, [certificate.der(), root.certificate.der()].concat());
}

/// A private key that belongs to somebody else's certificate, and a certificate of somebody else's key.
#[tokio::test]
async fn a_key_has_to_belong_to_its_certificate() {
    let folder = Folder::new("keys");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let ((certificate, key), (_, other)) = (fitting(), fitting());
    let refused = Err(StatusCode::BAD_SECURITY_CHECKS_FAILED);
    for wrong in
        [other.pem().as_bytes(), &[], &[0; 40], b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"]
    {
        assert_eq!(send(&client, certificate.der(), &[], wrong).await, refused);
    }
    assert_eq!(apply(&client).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    let inputs = vec![
        NodeId::NULL.into(),
        NodeId::NULL.into(),
        der(&certificate).into(),
        Vec::<ByteString>::new().into(),
        "PFX".into(),
        ByteString::from(key.pem().as_bytes().to_vec()).into(),
    ];
    let update = m::SERVER_CONFIGURATION_UPDATE_CERTIFICATE;
    assert_eq!(configure(&client, update, inputs.clone()).await, Err(StatusCode::BAD_NOT_SUPPORTED));
    // Other groups and types than the server has.
    for at in [0, 1] {
        let mut inputs = inputs.clone();
        inputs[at] = NodeId::numeric(0, 12_345).into();
        assert_eq!(configure(&client, update, inputs).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    }
    // Keys that were asked for do not fill the folder.
    let keys = || std::fs::read_dir(folder.0.join("server/own/private")).unwrap().count();
    ask(&client, "", true, 32).await.unwrap();
    let first = requested(&folder);
    for _ in 0..3 {
        ask(&client, "", true, 32).await.unwrap();
    }
    assert_eq!(keys(), 2, "the one in use and the last new one");
    let root = authority("Root");
    let late = root.sign(&first);
    assert_eq!(send(&client, late.der(), &[&root.certificate], &[]).await, refused, "its key was discarded");
}

/// More than there is room for.
#[tokio::test]
async fn what_is_too_large_is_refused() {
    let folder = Folder::new("large");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let mine = own(&theirs);
    let large = StatusCode::BAD_REQUEST_TOO_LARGE;
    // A certificate of 1 MB, as garbage and as one with a huge length, and a long chain.
    let mut huge = vec![0x30, 0x83, 0x0f, 0xff, 0xff];
    huge.resize(1_000_000, 0x30);
    for certificate in [&vec![7; 1_000_000], &huge] {
        assert_eq!(send(&client, certificate, &[], &[]).await, Err(StatusCode::BAD_CERTIFICATE_INVALID));
    }
    let (certificate, key) = fitting();
    let chain = vec![&certificate; 10];
    let sent = send(&client, certificate.der(), &chain, key.pem().as_bytes()).await;
    assert_eq!(sent, Err(StatusCode::BAD_CERTIFICATE_INVALID));
    // A list with too many certificates.
    let many = list_of(&vec![&mine; 1_001]);
    let handle = written(&client, &many).await.unwrap();
    assert_eq!(call(&client, LIST, UPDATE, vec![handle]).await, Err(large));
    // Bytes without end.
    let handle = call(&client, LIST, OPEN, vec![6u8.into()]).await.unwrap().remove(0);
    let piece = ByteString::from(vec![7; 1 << 20]);
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.push(call(&client, LIST, WRITE, vec![handle.clone(), piece.clone().into()]).await.map(|_| ()));
    }
    assert_eq!(sent, [Ok(()), Ok(()), Ok(()), Ok(()), Err(large)]);
    // Trust lists without end, and what an idle session leaves is closed with it.
    let mut opened = 1;
    while call(&client, LIST, OPEN, vec![1u8.into()]).await.is_ok() {
        opened += 1;
        assert!(opened < 100);
    }
    assert_eq!(opened, 4);
    let other = connect(&running, &theirs).await;
    assert!(call(&other, LIST, OPEN, vec![1u8.into()]).await.is_ok());
    client.disconnect().await;
    assert!(call(&other, LIST, OPEN, vec![6u8.into()]).await.is_ok(), "nobody writes any more");
    let count: u16 = other.read_value(NodeId::numeric(0, lists::open_count())).await.unwrap();
    assert_eq!(count, 2);
    assert_eq!(trusted(&ours), [mine]);
}

/// ApplyChanges without changes.
#[tokio::test]
async fn applying_nothing_changes_nothing() {
    let folder = Folder::new("nothing");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let before = (own(&ours), trusted(&ours), ours.store().own_fingerprint());
    for _ in 0..3 {
        assert_eq!(apply(&client).await, Err(StatusCode::BAD_NOTHING_TO_DO));
        assert_eq!(cancel(&client).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    }
    // Opened and closed: a transaction, but no change.
    let handle = call(&client, LIST, OPEN, vec![6u8.into()]).await.unwrap().remove(0);
    call(&client, LIST, CLOSE, vec![handle]).await.unwrap();
    assert_eq!(apply(&client).await, Ok(Vec::new()));
    // The certificate that it has already.
    let key = ours.store().own(&mut Vec::new()).remove(0).key;
    send(&client, before.0.der(), &[], key.pem().as_bytes()).await.unwrap();
    assert_eq!(apply(&client).await, Ok(Vec::new()));
    assert_eq!((own(&ours), trusted(&ours)), (before.0, before.1));
    assert_eq!(ours.store().own(&mut Vec::new()).len(), 1);
}
