//! The store on disk: writing, reading, damage, and detection of changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use taktwerk_crypto::certificate::{Certificate, KeyKind, TrustList, ValidationOptions, ValidationRequest};
use taktwerk_crypto::{CertificatePurpose, CertificateValidator, CryptoError};
use taktwerk_pki::import::{ImportError, Role, import};
use taktwerk_pki::{
    CertificateSettings, Folder, Group, NewKey, PrivateKey, REJECTED_MAX, RejectedStore, Store,
    StoreValidator, create, encoding,
};
use taktwerk_types::StatusCode;

/// A directory that is removed after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("taktwerk-pki-{}-{name}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> Store {
        let store = Store::at(self.0.join("pki"));
        store.create().unwrap();
        store
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn made(name: &str) -> (Certificate, PrivateKey) {
    let key = PrivateKey::generate(NewKey::NistP256).unwrap();
    let mut settings = CertificateSettings::new(name, &format!("urn:test:{}", name.len()));
    settings.hosts = vec!["peer.example".to_owned(), "10.0.0.1".to_owned()];
    (create::self_signed(&settings, &key).unwrap(), key)
}

fn server() -> CertificatePurpose {
    CertificatePurpose::Server { host_name: "peer.example".to_owned() }
}

fn status(result: Result<(), CryptoError>) -> StatusCode {
    match result {
        Ok(()) => StatusCode::GOOD,
        Err(CryptoError::Certificate(refusal)) => refusal.status(),
        Err(other) => panic!("{other}"),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every kind of key: created, stored, read again, in a certificate that passes validation.
#[test]
fn own_certificates_of_every_kind() {
    let folder = Scratch::new("own");
    for kind in NewKey::ALL {
        let store = Store::at(folder.0.join(kind.name()));
        let key = PrivateKey::generate(kind).unwrap();
        let certificate =
            create::self_signed(&CertificateSettings::new("Boiler", "urn:test:boiler"), &key).unwrap();
        assert_eq!(certificate.key(), key.kind());
        assert!(key.belongs_to(&certificate));
        let (path, key_path) = store.keep_own(core::slice::from_ref(&certificate), &key).unwrap();
        let mut problems = Vec::new();
        let own = store.own(&mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(own.len(), 1);
        assert_eq!((&own[0].path, &own[0].key_path), (&path, &key_path));
        assert_eq!(own[0].chain, certificate.der());
        assert_eq!(own[0].key.pkcs8(), key.pkcs8());
        store.trust(Group::Applications, &certificate).unwrap();
        let validator = StoreValidator::new(store, ValidationOptions::default());
        for purpose in [
            CertificatePurpose::Client { address: None },
            CertificatePurpose::Server { host_name: "localhost".into() },
        ] {
            let request = ValidationRequest {
                application_uri: Some("urn:test:boiler"),
                ..ValidationRequest::new(&purpose)
            };
            let report = validator.report(certificate.der(), &request, true);
            assert_eq!(report.findings(), [], "{kind}");
        }
    }
}

#[test]
#[cfg(unix)]
fn private_keys_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Scratch::new("private");
    let store = folder.store();
    let (certificate, key) = made("a");
    let (path, key_path) = store.keep_own(&[certificate], &key).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&key_path), 0o600);
    assert_eq!(mode(key_path.parent().unwrap()), 0o700);
    assert_eq!(mode(&path) & 0o400, 0o400);
    fs::set_permissions(&key_path, fs::Permissions::from_mode(0o644)).unwrap();
    let mut problems = Vec::new();
    assert_eq!(store.own(&mut problems).len(), 0, "a key that others can read is refused");
    assert!(problems[0].what.contains("chmod 600"), "{problems:?}");
    assert!(!format!("{key:?}").contains("pkcs8"), "keys are not printed");
}

/// No text chosen by a peer becomes part of a path (a common name with `../` could otherwise make the certificate trusted).
#[test]
fn files_are_named_by_thumbprints() {
    let folder = Scratch::new("names");
    let store = folder.store();
    let (certificate, key) = made("../../trusted/certs/x");
    store.keep_own(core::slice::from_ref(&certificate), &key).unwrap();
    store.reject(Group::Applications, &certificate).unwrap();
    RejectedStore::new(store.folder(Group::Users, Folder::Rejected)).offer(certificate.der(), None).unwrap();
    assert!(names(&store.folder(Group::Applications, Folder::Trusted)).is_empty());
    for folder in ["own/certs", "own/private", "rejected/certs", "users/rejected/certs"] {
        let names = names(&store.root().join(folder));
        let [name] = names.as_slice() else { panic!("{folder}: {names:?}") };
        let (print, _) = name.split_once('.').unwrap();
        assert!(print.len() == 40 && print.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
    }
}

#[test]
fn broken_and_foreign_files_are_reported_and_ignored() {
    let folder = Scratch::new("broken");
    let store = folder.store();
    let (good, _) = made("good");
    store.trust(Group::Applications, &good).unwrap();
    let trusted = store.folder(Group::Applications, Folder::Trusted);
    let lists = store.folder(Group::Applications, Folder::IssuerLists);
    fs::write(trusted.join("torn.der"), &good.der()[..good.der().len() / 2]).unwrap();
    fs::write(trusted.join("empty.der"), b"").unwrap();
    fs::write(trusted.join("README.txt"), b"put certificates here").unwrap();
    fs::write(trusted.join("broken.pem"), b"-----BEGIN CERTIFICATE-----\nAAAA\n").unwrap();
    fs::write(trusted.join("huge.der"), vec![0x30; 300_000]).unwrap();
    fs::write(trusted.join(".hidden.der"), b"half").unwrap();
    fs::write(trusted.join(".x.der.1-2.tmp"), b"half").unwrap();
    fs::create_dir(trusted.join("folder")).unwrap();
    fs::write(lists.join("torn.crl"), b"0\x82").unwrap();
    let mut problems = Vec::new();
    let list = store.trust_list(Group::Applications, &mut problems);
    assert_eq!((list.trusted_len(), list.is_trusted(&good)), (1, true));
    let mut reported: Vec<_> =
        problems.iter().map(|it| it.path.file_name().unwrap().to_str().unwrap()).collect();
    reported.sort_unstable();
    assert_eq!(reported, ["README.txt", "broken.pem", "empty.der", "huge.der", "torn.crl", "torn.der"]);
    // A missing store is empty.
    let nowhere = Store::at(folder.0.join("nowhere"));
    let mut problems = Vec::new();
    assert_eq!(nowhere.trust_list(Group::Users, &mut problems).trusted_len(), 0);
    assert!(problems.is_empty() && !nowhere.exists());
}

/// A file may be moved from `rejected/certs` to `trusted/certs`: the issuers in it do not become trusted.
#[test]
fn only_the_first_certificate_of_a_file_is_trusted() {
    let folder = Scratch::new("first");
    let store = folder.store();
    let (leaf, _) = made("leaf");
    let (issuer, _) = made("issuer");
    let trusted = store.folder(Group::Applications, Folder::Trusted);
    fs::write(trusted.join("moved.der"), [leaf.der(), issuer.der()].concat()).unwrap();
    let list = store.trust_list(Group::Applications, &mut Vec::new());
    assert!(list.is_trusted(&leaf) && !list.is_trusted(&issuer));
    assert_eq!(list.issuers_len(), 1);
    // In PEM as well.
    fs::remove_file(trusted.join("moved.der")).unwrap();
    let pem = encoding::certificate_pem(&leaf) + &encoding::certificate_pem(&issuer);
    fs::write(trusted.join("moved.pem"), pem).unwrap();
    let list = store.trust_list(Group::Applications, &mut Vec::new());
    assert!(list.is_trusted(&leaf) && !list.is_trusted(&issuer));
}

#[test]
fn trust_and_rejection() {
    let folder = Scratch::new("trust");
    let store = folder.store();
    let (certificate, _) = made("peer");
    let validator = StoreValidator::new(store.clone(), ValidationOptions::default());
    let changes = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&changes);
    validator.on_change(move |change| seen.store(change, Ordering::Relaxed));
    assert_eq!(
        status(validator.validate(certificate.der(), &server())),
        StatusCode::BAD_CERTIFICATE_UNTRUSTED
    );
    // Rejected certificates are in rejected/certs; trusting moves them.
    let rejected = store.rejected(Group::Applications, &mut Vec::new());
    assert_eq!(rejected[0].certificate, certificate);
    assert_eq!(store.find(Group::Applications, &rejected[0].thumbprint()[..8]).len(), 1);
    assert!(
        store.find(Group::Applications, &rejected[0].thumbprint()[..7]).is_empty(),
        "too short to name one"
    );
    assert!(store.find(Group::Applications, "").is_empty());
    store.trust(Group::Applications, &certificate).unwrap();
    assert!(store.rejected(Group::Applications, &mut Vec::new()).is_empty());
    assert!(validator.refresh());
    assert!(!validator.refresh());
    assert_eq!((validator.changes(), changes.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(status(validator.validate(certificate.der(), &server())), StatusCode::GOOD);
    // Users have a separate list.
    let user = status(validator.validate(certificate.der(), &CertificatePurpose::User { address: None }));
    assert_eq!(user, StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    assert_eq!(store.rejected(Group::Users, &mut Vec::new()).len(), 1);
    assert!(store.reject(Group::Applications, &certificate).unwrap());
    assert!(!store.reject(Group::Applications, &certificate).unwrap());
    assert!(validator.refresh());
    assert_eq!(
        status(validator.validate(certificate.der(), &server())),
        StatusCode::BAD_CERTIFICATE_UNTRUSTED
    );
    assert_eq!(validator.changes(), 2);
}

/// Changes by other programs are detected; truncated files do not affect trusted ones.
#[test]
fn changes_from_outside_are_noticed() {
    let folder = Scratch::new("outside");
    let store = folder.store();
    let (certificate, _) = made("peer");
    let validator = StoreValidator::new(store.clone(), ValidationOptions::default());
    let trusted = store.folder(Group::Applications, Folder::Trusted);
    fs::write(trusted.join("peer.crt"), encoding::certificate_pem(&certificate)).unwrap();
    assert!(validator.refresh());
    assert!(validator.trust_list(Group::Applications).is_trusted(&certificate));
    fs::write(trusted.join("torn.der"), b"0\x82").unwrap();
    assert!(validator.refresh());
    assert!(validator.trust_list(Group::Applications).is_trusted(&certificate));
    fs::remove_file(trusted.join("peer.crt")).unwrap();
    assert!(validator.refresh());
    assert!(!validator.trust_list(Group::Applications).is_trusted(&certificate));
}

/// The number of files is limited, the oldest are deleted first, and a flood cannot exceed the write rate (CVE-2024-45526).
#[test]
fn rejected_certificates_are_bounded() {
    let folder = Scratch::new("rejected");
    let path = folder.0.join("certs");
    fs::create_dir_all(&path).unwrap();
    let (first, _) = made("first");
    for number in 0..REJECTED_MAX {
        let file = fs::File::create(path.join(format!("{number:040x}.der"))).unwrap();
        let age = std::time::Duration::from_secs(1000 - number as u64);
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }
    let rejected = RejectedStore::new(path.clone());
    let kept = rejected.offer(first.der(), None).unwrap();
    assert!(kept.is_file());
    assert_eq!(names(&path).len(), REJECTED_MAX);
    assert!(!path.join(format!("{:040x}.der", 0)).exists(), "the oldest is gone");
    // Junk is not kept, and the same certificate is kept once.
    assert!(rejected.offer(b"junk", None).is_none());
    assert_eq!(rejected.offer(first.der(), None), Some(kept));
    let mut written = 0;
    for number in 0..60 {
        let (certificate, _) = made(&format!("flood {number}"));
        written += u32::from(rejected.offer(certificate.der(), None).is_some());
    }
    assert!(written < 60, "{written} of 60 were written");
    assert!(names(&path).len() <= REJECTED_MAX);
}

/// Strangers on one network displace their own certificates, not those from other networks. An administrator sees the address of
/// each, also after a restart.
#[test]
fn a_flood_of_strangers_does_not_displace_an_honest_client() {
    let folder = Scratch::new("rejected-flood");
    let store = folder.store();
    let path = store.folder(Group::Applications, Folder::Rejected);
    let rejected = RejectedStore::new(path.clone());
    let address = |text: &str| Some(text.parse().unwrap());
    let (honest, _) = made("honest");
    let honest = rejected.offer(honest.der(), address("192.0.2.1")).unwrap();
    for number in 0..REJECTED_MAX {
        let (certificate, _) = made(&format!("flood {number}"));
        let from = address(&format!("198.51.100.{number}"));
        while rejected.offer(certificate.der(), from).is_none() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    assert_eq!(names(&path).len(), REJECTED_MAX);
    assert!(honest.is_file());
    // The flood does not use up the rate of other networks.
    for _ in 0..40 {
        rejected.offer(made("flood").0.der(), address("198.51.100.1"));
    }
    assert!(rejected.offer(made("late").0.der(), address("203.0.113.9")).is_some());
    let addresses = store.rejected_addresses(Group::Applications);
    let name = honest.file_stem().unwrap().to_str().unwrap();
    assert_eq!(addresses.get(name).copied(), address("192.0.2.1"));
    assert_eq!(addresses.len(), REJECTED_MAX);
    let restarted = RejectedStore::new(path.clone());
    assert!(restarted.offer(made("after").0.der(), address("203.0.113.9")).is_some());
    assert!(honest.is_file());
}

#[test]
fn trust_on_first_use_is_once_and_for_servers_only() {
    let folder = Scratch::new("tofu");
    let store = folder.store();
    let (first, _) = made("peer");
    let (second, _) = made("reep");
    assert_eq!(first.application_uri(), second.application_uri());
    let strict = StoreValidator::new(store.clone(), ValidationOptions::default());
    assert_eq!(status(strict.validate(first.der(), &server())), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    let trusting = StoreValidator::new(store.clone(), ValidationOptions::default()).trust_on_first_use(true);
    let client = CertificatePurpose::Client { address: None };
    assert_eq!(status(trusting.validate(first.der(), &client)), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    let wrong_host = CertificatePurpose::Server { host_name: "evil.example".to_owned() };
    let refused = status(trusting.validate(first.der(), &wrong_host));
    assert_eq!(refused, StatusCode::BAD_CERTIFICATE_HOST_NAME_INVALID);
    assert_eq!(status(trusting.validate(first.der(), &server())), StatusCode::GOOD);
    assert!(store.trust_list(Group::Applications, &mut Vec::new()).is_trusted(&first));
    // Another key of the same application is not a first use.
    assert_eq!(status(trusting.validate(second.der(), &server())), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    assert_eq!(status(trusting.validate(first.der(), &server())), StatusCode::GOOD);
}

#[test]
fn requests_and_imports() {
    let folder = Scratch::new("import");
    let store = folder.store();
    // A request: its key is stored until the certificate arrives.
    let settings = CertificateSettings::new("Boiler", "urn:test:boiler");
    let key = PrivateKey::generate(NewKey::NistP384).unwrap();
    let request = create::request(&settings, &key).unwrap();
    assert_eq!(request.key(), KeyKind::NistP384);
    assert_eq!(request.extensions().uris, ["urn:test:boiler"]);
    request.verify(&taktwerk_crypto::certificate::AwsLcVerifier).unwrap();
    store.keep_key(&key, request.der()).unwrap();
    let certificate = create::self_signed(&settings, &key).unwrap();
    let file = folder.0.join("answer.pem");
    fs::write(&file, encoding::certificate_pem(&certificate)).unwrap();
    let done = import(&store, Group::Applications, &file, Role::Own, None).unwrap();
    assert_eq!(done.len(), 2);
    assert_eq!(store.own(&mut Vec::new())[0].certificate, certificate);
    // The key of another certificate.
    let (other, other_key) = made("other");
    fs::write(&file, encoding::certificate_pem(&other)).unwrap();
    let missing = import(&store, Group::Applications, &file, Role::Own, None);
    assert!(matches!(missing, Err(ImportError::NoKey(_))), "{missing:?}");
    let key_file = folder.0.join("key.pem");
    fs::write(&key_file, key.pem().as_bytes()).unwrap();
    let wrong = import(&store, Group::Applications, &file, Role::Own, Some(&key_file));
    assert!(matches!(wrong, Err(ImportError::WrongKey(_))), "{wrong:?}");
    // Key and certificate in one file.
    fs::write(&file, encoding::certificate_pem(&other) + &other_key.pem()).unwrap();
    import(&store, Group::Applications, &file, Role::Own, None).unwrap();
    assert_eq!(store.own(&mut Vec::new()).len(), 2);
    // A trusted chain: the first certificate is trusted, the others complete chains.
    let chain = encoding::certificate_pem(&other) + &encoding::certificate_pem(&certificate);
    fs::write(&file, chain).unwrap();
    import(&store, Group::Applications, &file, Role::Trusted, None).unwrap();
    let list: TrustList = store.trust_list(Group::Applications, &mut Vec::new());
    assert!(list.is_trusted(&other) && !list.is_trusted(&certificate));
    for (name, bytes) in [("pfx", &[0x30, 0x82, 1, 0, 2, 1, 3, 0x30, 0x82][..]), ("text", b"hello")] {
        fs::write(&file, bytes).unwrap();
        let error = import(&store, Group::Applications, &file, Role::Trusted, None).unwrap_err().to_string();
        assert_eq!(error.contains("openssl pkcs12"), name == "pfx", "{error}");
    }
    fs::write(&file, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .unwrap();
    let error = PrivateKey::read(&fs::read(&file).unwrap()).unwrap_err().to_string();
    assert!(error.contains("openssl pkey"), "{error}");
}

/// Keys in the encodings of other tools.
#[test]
fn keys_in_every_encoding() {
    for kind in NewKey::ALL {
        let key = PrivateKey::generate(kind).unwrap();
        for bytes in [key.pkcs8().to_vec(), key.pem().as_bytes().to_vec()] {
            let again = PrivateKey::read(&bytes).unwrap();
            assert_eq!((again.kind(), again.pkcs8()), (key.kind(), key.pkcs8()));
        }
    }
    for junk in [&b""[..], b"0", &[0x30, 0x82, 0xff, 0xff], b"-----BEGIN PRIVATE KEY-----"] {
        assert!(PrivateKey::read(junk).is_err());
    }
    assert!("rsa1024".parse::<NewKey>().is_err());
    assert_eq!("RSA3072".parse::<NewKey>(), Ok(NewKey::Rsa3072));
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let key = PrivateKey::generate(NewKey::NistP256).unwrap();
    for uri in ["", "urn:grüße", "urn:with space", "urn:line\nbreak"] {
        assert!(create::self_signed(&CertificateSettings::new("x", uri), &key).is_err(), "{uri:?}");
    }
    let mut settings = CertificateSettings::new("x", "urn:x");
    settings.hosts = vec!["bad host".to_owned()];
    assert!(create::self_signed(&settings, &key).is_err());
}

#[test]
fn suppressed_findings_are_logged_despite_many_rejections() {
    let scratch = Scratch::new("overlooked");
    let store = scratch.store();
    let (peer, _) = made("peer");
    let (stranger, _) = made("stranger");
    store.trust(Group::Applications, &peer).unwrap();
    let mut options = ValidationOptions::default();
    options.suppress_host_name_invalid = true;
    let validator = StoreValidator::new(store, options);
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = Arc::clone(&told);
    validator.on_overlooked(move |status, thumbprint| {
        hook.lock().unwrap().push((status, thumbprint.to_owned()));
    });
    // Strangers have the same fault, and are rejected.
    let elsewhere = CertificatePurpose::Server { host_name: "other.example".to_owned() };
    for _ in 0..1000 {
        let refused = status(validator.validate(stranger.der(), &elsewhere));
        assert_eq!(refused, StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    }
    assert!(told.lock().unwrap().is_empty());
    assert_eq!(status(validator.validate(peer.der(), &elsewhere)), StatusCode::GOOD);
    let told = told.lock().unwrap();
    let [(status, thumbprint)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(*status, StatusCode::BAD_CERTIFICATE_HOST_NAME_INVALID);
    let expected = taktwerk_crypto::certificate::thumbprint(peer.der());
    assert_eq!(*thumbprint, expected.iter().map(|byte| format!("{byte:02X}")).collect::<String>());
}
