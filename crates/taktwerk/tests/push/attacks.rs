//! Malicious clients, and clients that stop half way.

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use taktwerk_crypto::certificate::RevocationList;
use taktwerk_pki::{PrivateKey, create};

/// An authority with a name.
pub(super) struct Authority {
    pub(super) certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

pub(super) fn authority(name: &str) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = Certificate::from_der(params.self_signed(&key).unwrap().der()).unwrap();
    Authority { certificate, issuer: Issuer::new(params, key) }
}

impl Authority {
    /// Its revocation list, without entries.
    pub(super) fn revocation_list(&self) -> RevocationList {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2050, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        RevocationList::from_der(params.signed_by(&self.issuer).unwrap().der()).unwrap()
    }

    /// Creates a certificate for the server, as if its request was signed.
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

/// The key whose certificate is requested.
fn requested(folder: &Folder) -> PrivateKey {
    let files =
        std::fs::read_dir(folder.0.join("server/own/private")).unwrap().map(|file| file.unwrap().path());
    let is_requested = |path: &PathBuf| path.to_string_lossy().contains("requested-");
    let path = files.into_iter().find(is_requested).unwrap();
    PrivateKey::read(&std::fs::read(path).unwrap()).unwrap()
}

/// A certificate that is suitable for the server, with its key.
pub(super) fn fitting() -> (Certificate, PrivateKey) {
    let key = PrivateKey::generate(NewKey::NistP256).unwrap();
    (create::self_signed(&CertificateSettings::new("server", "urn:test:server"), &key).unwrap(), key)
}

pub(super) fn list_of(certificates: &[&Certificate]) -> TrustListDataType {
    let trusted_certificates = certificates.iter().map(|certificate| der(certificate)).collect();
    TrustListDataType { specified_lists: 1, trusted_certificates, ..TrustListDataType::default() }
}

/// Signed but unencrypted messages can be read, so they must not contain private keys.
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

/// Changes of two administrators do not mix, and end with the session.
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
    // One administrator is writing the trust list.
    let handle = written(&first, &list_of(&[&mine, &other])).await.unwrap();
    assert_eq!(update(&second).await, pending);
    assert_eq!(call(&second, LIST, OPEN, vec![6u8.into()]).await, pending);
    assert_eq!(add(&second).await, Err(StatusCode::BAD_INVALID_STATE));
    assert_eq!(apply(&first).await, Err(StatusCode::BAD_INVALID_STATE), "it is open");
    assert_eq!(apply(&second).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    // The trust list is written, and so is a certificate: both wait for one ApplyChanges.
    call(&first, LIST, UPDATE, vec![handle]).await.unwrap();
    update(&first).await.unwrap();
    assert_eq!(
        (update(&second).await, add(&second).await, add(&first).await),
        (pending.clone(), pending.clone(), pending.clone())
    );
    assert_eq!(call(&second, LIST, OPEN, vec![6u8.into()]).await, pending);
    for end in [apply(&second).await, cancel(&second).await] {
        assert_eq!(end, pending);
    }
    // Others read the unchanged trust list.
    let handle = call(&second, LIST, OPEN, vec![1u8.into()]).await.unwrap().remove(0);
    assert_eq!(
        call(&second, LIST, WRITE, vec![handle, ByteString::from(vec![1]).into()]).await,
        Err(StatusCode::BAD_INVALID_STATE)
    );
    assert_eq!((own(&ours), trusted(&ours)), (before.clone(), vec![mine.clone()]));
    // When the session ends, nothing of the transaction remains.
    first.disconnect().await;
    assert_eq!(apply(&second).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!((own(&ours), trusted(&ours)), (before.clone(), vec![mine.clone()]));
    // Cancelled and invalid changes are not applied; the transaction continues with the others.
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
async fn forged_or_incomplete_chains_are_rejected() {
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
    // With the issuer it is valid. An issuer that is needed by others stays.
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
    // The answer to the request, with unrelated issuers, which are omitted.
    let unrelated = authority("Unrelated");
    send(&certificate, &[&unrelated.certificate, &root.certificate]).await.unwrap();
    apply(&client).await.unwrap();
    let own = ours.store().own(&mut Vec::new()).remove(0);
    assert_eq!(own.certificate, certificate);
    assert_eq!(own.chain, [certificate.der(), root.certificate.der()].concat());
}

/// A private key of another certificate, and a certificate for another key.
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
    // Requested keys do not fill the directory.
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

/// Sizes beyond the limits.
#[tokio::test]
async fn too_large_content_is_rejected() {
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
    // Endless writes.
    let handle = call(&client, LIST, OPEN, vec![6u8.into()]).await.unwrap().remove(0);
    let piece = ByteString::from(vec![7; 1 << 20]);
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.push(call(&client, LIST, WRITE, vec![handle.clone(), piece.clone().into()]).await.map(|_| ()));
    }
    assert_eq!(sent, [Ok(()), Ok(()), Ok(()), Ok(()), Err(large)]);
    // Too many open trust lists; those of an idle session are closed with it.
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
    // Opened and closed: a transaction without changes.
    let handle = call(&client, LIST, OPEN, vec![6u8.into()]).await.unwrap().remove(0);
    call(&client, LIST, CLOSE, vec![handle]).await.unwrap();
    assert_eq!(apply(&client).await, Ok(Vec::new()));
    // The current certificate again.
    let key = ours.store().own(&mut Vec::new()).remove(0).key;
    send(&client, before.0.der(), &[], key.pem().as_bytes()).await.unwrap();
    assert_eq!(apply(&client).await, Ok(Vec::new()));
    assert_eq!((own(&ours), trusted(&ours)), (before.0, before.1));
    assert_eq!(ours.store().own(&mut Vec::new()).len(), 1);
}

/// A client whose connection breaks keeps its transaction only as long as its session lives (Part 12 §7.10.9).
#[test]
fn a_transaction_ends_when_its_session_times_out() {
    let folder = Folder::new("timeout");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let (certificate, key) = fitting();
    let update = async |client: &Client| send(client, certificate.der(), &[], key.pem().as_bytes()).await;
    let gone = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = gone.block_on(async {
        let client = Client::builder(&running.url()).pki(&theirs);
        let client = client.session_timeout(core::time::Duration::from_secs(3)).connect().await.unwrap();
        update(&client).await.unwrap();
        client
    });
    // It sends nothing any more, not even a disconnect.
    gone.shutdown_background();
    let here = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    here.block_on(async {
        let second = connect(&running, &theirs).await;
        assert_eq!(update(&second).await, Err(StatusCode::BAD_TRANSACTION_PENDING));
        let started = std::time::Instant::now();
        while let Err(status) = update(&second).await {
            assert_eq!(status, StatusCode::BAD_TRANSACTION_PENDING);
            assert!(started.elapsed() < core::time::Duration::from_secs(60), "the session never times out");
            tokio::time::sleep(core::time::Duration::from_millis(50)).await;
        }
        cancel(&second).await.unwrap();
    });
    drop(client);
}

/// The specification allows this. Clients that are no longer trusted are disconnected.
#[tokio::test]
async fn an_empty_trust_list_is_applied() {
    let folder = Folder::new("empty");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let handle = written(&client, &list_of(&[])).await.unwrap();
    call(&client, LIST, UPDATE, vec![handle]).await.unwrap();
    apply(&client).await.unwrap();
    assert!(trusted(&ours).is_empty());
    assert!(Client::builder(&running.url()).pki(&theirs).connect().await.is_err());
}
