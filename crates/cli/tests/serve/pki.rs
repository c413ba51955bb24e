//! `taktwerk pki`: every subcommand, its output and its files.

use std::path::{Path, PathBuf};
use std::time::Duration;
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(120);

/// A directory for one test, and commands on a store in it.
struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs `taktwerk pki` on a store, checks its exit code, and returns standard output.
    fn pki(&self, code: i32, store: &str, arguments: &[&str]) -> String {
        self.run(code, store, arguments).0
    }

    /// The same, but returns standard error.
    fn error(&self, code: i32, store: &str, arguments: &[&str]) -> String {
        self.run(code, store, arguments).1
    }

    fn run(&self, code: i32, store: &str, arguments: &[&str]) -> (String, String) {
        let store = self.at(store);
        let arguments = [&["pki"], arguments, &["--pki", &store]].concat();
        let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(&arguments).run(LIMIT).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{stdout}\n{stderr}");
        // Lines contain paths of any length, so join them.
        let people = !arguments.contains(&"--json");
        let mut lines = stdout.lines().filter(|line| people && !line.contains('/'));
        assert!(lines.all(|line| line.chars().count() <= 120), "{stdout}");
        assert!(!stdout.contains("PRIVATE KEY"), "{arguments:?}");
        (stdout, stderr)
    }

    fn json(&self, code: i32, store: &str, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.pki(code, store, &[arguments, &["--json"]].concat())).unwrap()
    }

    /// The only file of a directory.
    fn file(&self, folder: &str) -> PathBuf {
        let mut files = std::fs::read_dir(self.at(folder)).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none(), "{folder} holds more than one file");
        file
    }

    fn count(&self, folder: &str) -> usize {
        std::fs::read_dir(Path::new(&self.at(folder))).map_or(0, Iterator::count)
    }
}

#[test]
fn certificates_are_created_shown_and_renewed() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::new();
    let made = workspace.pki(
        0,
        "a",
        &[
            "init",
            "--name",
            "Boiler",
            "--uri",
            "urn:example:boiler",
            "--host",
            "boiler.example",
            "--key",
            "p256",
        ],
    );
    for expected in ["CN=Boiler", "urn:example:boiler", "boiler.example", "NIST P-256"] {
        assert!(made.contains(expected), "{expected} is missing in {made}");
    }
    let key = workspace.file("a/own/private");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let before = workspace.file("a/own/certs");
    assert!(workspace.pki(0, "a", &["init", "--key", "p256"]).contains("there is a certificate already"));
    assert_eq!(workspace.file("a/own/certs"), before);
    let shown = workspace.pki(0, "a", &["show"]);
    assert!(shown.contains("CN=Boiler") && shown.contains("own"), "{shown}");
    workspace.pki(0, "a", &["init", "--key", "p256", "--renew"]);
    let after = workspace.file("a/own/certs");
    assert_ne!(after, before);
    let renewed = workspace.pki(0, "a", &["show"]);
    assert!(renewed.contains("CN=Boiler"), "{renewed}");
}

#[test]
fn keys_of_another_kind_belong_to_the_same_application() {
    let workspace = Workspace::new();
    workspace.pki(0, "a", &["init", "--name", "Boiler", "--uri", "urn:example:boiler", "--key", "p256"]);
    let second = workspace.pki(0, "a", &["init", "--key", "ed25519"]);
    assert!(second.contains("CN=Boiler") && second.contains("urn:example:boiler"), "{second}");
    // `pki doctor` finds own certificates by thumbprint, and reports what a store for users would need.
    let own = workspace.json(0, "a", &["show"])["Own"][0]["Thumbprint"].as_str().unwrap().to_owned();
    let told = workspace.pki(3, "a", &["doctor", &own[..8]]);
    assert!(told.contains("our own certificate"), "{told}");
    let file = std::fs::read_dir(workspace.at("a/own/certs")).unwrap().next().unwrap().unwrap().path();
    let told = workspace.pki(3, "b", &["doctor", file.to_str().unwrap(), "--as", "user"]);
    assert!(told.contains("pki trust") && told.contains("--users"), "{told}");
}

#[test]
fn a_certificate_is_diagnosed_trusted_and_rejected() {
    let workspace = Workspace::new();
    for store in ["server", "client"] {
        workspace.pki(0, store, &["init", "--name", store, "--uri", &format!("urn:example:{store}")]);
    }
    let certificate = workspace.file("client/own/certs").display().to_string();
    let refused = workspace.pki(3, "server", &["doctor", &certificate, "--as", "client"]);
    assert!(refused.contains("the certificate is not trusted"), "{refused}");
    assert!(refused.contains("taktwerk pki trust"), "{refused}");
    let at_home = workspace.pki(3, "client", &["doctor", &certificate, "--as", "client"]);
    assert!(at_home.contains("this is our own certificate"), "{at_home}");
    assert!(at_home.contains("to the other machine"), "{at_home}");
    let findings = workspace.json(3, "server", &["doctor", &certificate, "--as", "client"]);
    assert!(findings.to_string().contains("BadCertificateUntrusted"), "{findings}");

    assert!(workspace.pki(0, "server", &["trust", &certificate]).contains("trusted: CN=client"));
    let accepted = workspace.pki(0, "server", &["doctor", &certificate, "--as", "client"]);
    assert!(accepted.contains("The certificate is accepted"), "{accepted}");
    // With another ApplicationUri it is not valid for the application.
    let other = ["doctor", &certificate, "--as", "client", "--uri", "urn:example:other"];
    assert!(workspace.json(3, "server", &other).to_string().contains("BadCertificateUriInvalid"));

    let thumbprint = Path::new(&certificate).file_stem().unwrap().to_str().unwrap();
    let short = thumbprint.get(..8).unwrap();
    assert!(workspace.pki(0, "server", &["show"]).contains("trusted"));
    workspace.pki(0, "server", &["reject", short]);
    assert_eq!(workspace.count("server/trusted/certs"), 0);
    workspace.pki(3, "server", &["doctor", &certificate, "--as", "client"]);
    workspace.pki(2, "server", &["trust", "0000000"]);
    // Users have a separate trust list.
    workspace.pki(0, "server", &["trust", &certificate, "--users"]);
    assert_eq!(
        (workspace.count("server/trusted/certs"), workspace.count("server/users/trusted/certs")),
        (0, 1)
    );
}

/// The last rejected certificate may be that of an attacker with the honest client's name, so certificates are trusted
/// by thumbprint only.
#[test]
fn certificates_are_not_trusted_by_name() {
    let workspace = Workspace::new();
    workspace.pki(0, "server", &["init", "--name", "server"]);
    let mut thumbprints = Vec::new();
    for client in ["honest", "stranger"] {
        workspace.pki(0, client, &["init", "--name", "Boiler", "--uri", "urn:example:boiler"]);
        let certificate = workspace.file(&format!("{client}/own/certs"));
        let name = certificate.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::copy(&certificate, Path::new(&workspace.at("server/rejected/certs")).join(&name)).unwrap();
        thumbprints.push(name.split('.').next().unwrap().to_owned());
    }
    let told = workspace.error(2, "server", &["trust"]);
    for thumbprint in &thumbprints {
        assert!(told.contains(thumbprint.as_str()), "{told}");
    }
    assert!(told.contains("CN=Boiler") && told.contains("name the thumbprint"), "{told}");
    workspace.pki(2, "server", &["trust", "--json"]);
    workspace.pki(2, "server", &["trust", &thumbprints[0][..7]]);
    assert_eq!(workspace.count("server/trusted/certs"), 0);
    workspace.pki(0, "server", &["trust", &thumbprints[0][..8]]);
    assert_eq!(workspace.count("server/trusted/certs"), 1);
    assert!(
        Path::new(&workspace.at("server/trusted/certs")).join(format!("{}.der", thumbprints[0])).is_file()
    );
}

#[test]
fn signing_requests_are_created_and_certificates_imported() {
    let workspace = Workspace::new();
    let request = workspace.at("request.csr");
    workspace.pki(0, "a", &["csr", "--name", "Pump", "--uri", "urn:example:pump", "--out", &request]);
    assert!(std::fs::read_to_string(&request).unwrap().starts_with("-----BEGIN CERTIFICATE REQUEST-----"));
    assert_eq!(workspace.count("a/own/private"), 1);
    assert_eq!(workspace.count("a/own/certs"), 0);

    // A certificate can be imported with its key, but not without it.
    workspace.pki(0, "b", &["init", "--name", "Valve", "--key", "p256"]);
    let certificate = workspace.file("b/own/certs").display().to_string();
    let key = workspace.file("b/own/private").display().to_string();
    workspace.pki(2, "a", &["import", "--own", &certificate]);
    let imported = workspace.json(0, "a", &["import", "--own", &certificate, "--key", &key]);
    assert!(imported.to_string().contains("CN=Valve"), "{imported}");
    assert_eq!(workspace.count("a/own/certs"), 1);
    workspace.pki(0, "c", &["import", &certificate]);
    workspace.pki(0, "c", &["import", "--issuer", &certificate]);
    assert_eq!((workspace.count("c/trusted/certs"), workspace.count("c/issuer/certs")), (1, 1));
    let nonsense = workspace.at("nonsense.der");
    std::fs::write(&nonsense, b"\x30\x03abc").unwrap();
    workspace.pki(2, "c", &["import", &nonsense]);
    workspace.pki(2, "c", &["doctor", "nobody"]);
}

#[test]
fn wrong_kinds_of_files_are_named_and_not_imported() {
    let workspace = Workspace::new();
    let request = workspace.at("request.csr");
    workspace.pki(0, "a", &["csr", "--out", &request]);
    let key = workspace.file("a/own/private").display().to_string();
    let text = workspace.at("notes.txt");
    std::fs::write(&text, "hello\n").unwrap();
    for (file, expected) in [
        (&request, "this is a request for a certificate"),
        (&key, "this is a private key"),
        (&text, "this is text"),
    ] {
        for command in [&["import"][..], &["import", "--own"], &["trust"], &["reject"]] {
            let told = workspace.error(2, "b", &[command, &[file.as_str()]].concat());
            assert!(told.contains(expected) && told.contains(file.as_str()), "{command:?}: {told}");
        }
        let told = workspace.pki(3, "b", &["doctor", file]);
        assert!(told.contains(expected) && !told.contains("sent"), "{told}");
    }
    assert!(!Path::new(&workspace.at("b")).exists(), "a store was made for nothing");
}

#[test]
fn a_renewal_keeps_the_kind_of_key_and_the_settings() {
    let workspace = Workspace::new();
    let who = ["--name", "Kiln", "--uri", "urn:example:kiln", "--organization", "Tiles", "--host", "kiln"];
    workspace.pki(0, "a", &[&["init", "--key", "p384"], &who[..]].concat());
    // Without --key, the existing kind is kept.
    assert!(workspace.pki(0, "a", &["init"]).contains("there is a certificate already"));
    workspace.pki(0, "a", &["init", "--key", "rsa3072"]);
    let renewed = workspace.json(0, "a", &["init", "--renew"]);
    let own = renewed["Own"].as_array().unwrap();
    let mut kinds: Vec<_> = own.iter().map(|own| own["Key"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["NIST P-384", "RSA 3072"], "{renewed}");
    for own in own {
        // The second key belongs to the same application from the beginning.
        assert_eq!(own["Subject"], "CN=Kiln, O=Tiles", "{renewed}");
        assert!(own["Previous"].is_string(), "{renewed}");
    }
    assert_eq!((workspace.count("a/own/certs"), workspace.count("a/own/previous")), (2, 4));
    let only = workspace.json(0, "a", &["init", "--renew", "--key", "p384"]);
    assert_eq!(only["Own"].as_array().unwrap().len(), 1, "{only}");
    assert_eq!((workspace.count("a/own/certs"), workspace.count("a/own/previous")), (2, 6));
    // A request uses the existing kind of key too, and RSA if there are several.
    assert_eq!(workspace.json(0, "a", &["csr"])["KeyKind"], "RSA 3072");
    workspace.pki(0, "b", &[&["init", "--key", "p256"], &who[..]].concat());
    let request = workspace.json(0, "b", &["csr"]);
    assert_eq!(
        (&request["KeyKind"], &request["Subject"]),
        (&"NIST P-256".into(), &"CN=Kiln, O=Tiles".into())
    );
    assert_eq!(workspace.json(0, "b", &["csr", "--key", "ed25519"])["KeyKind"], "Ed25519");
    assert_eq!(workspace.json(0, "empty", &["csr"])["KeyKind"], "RSA 2048");
}

#[test]
fn issued_certificates_replace_existing_ones() {
    let workspace = Workspace::new();
    workspace.pki(0, "a", &["init", "--key", "p256", "--uri", "urn:example:fan"]);
    workspace.pki(0, "a", &["init", "--key", "ed25519"]);
    let before = workspace.json(0, "a", &["show"]);
    // It must be used although it expires earlier than the self-signed one.
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let mut authority = rcgen::CertificateParams::new([]).unwrap();
    authority.distinguished_name.push(rcgen::DnType::CommonName, "Plant CA");
    let authority = rcgen::Issuer::new(authority, key);
    let asked = workspace.json(0, "a", &["csr", "--key", "p256"]);
    let asked = std::fs::read_to_string(asked["Key"].as_str().unwrap()).unwrap();
    let asked = rcgen::KeyPair::from_pem(&asked).unwrap();
    let mut parameters = rcgen::CertificateParams::new(["fan.example".to_owned()]).unwrap();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "Fan");
    parameters.not_before = std::time::SystemTime::now().into();
    parameters.not_after = (std::time::SystemTime::now() + Duration::from_secs(86_400)).into();
    let issued = workspace.at("issued.pem");
    std::fs::write(&issued, parameters.signed_by(&asked, &authority).unwrap().pem()).unwrap();
    let told = workspace.pki(0, "a", &["import", "--own", &issued]);
    assert!(told.contains("put aside"), "{told}");
    let after = workspace.json(0, "a", &["show"]);
    let issuers = |shown: &serde_json::Value| -> Vec<String> {
        let own = shown["Own"].as_array().unwrap();
        let mut own: Vec<_> = own.iter().map(|own| format!("{} {}", own["Key"], own["Issuer"])).collect();
        own.sort();
        own
    };
    assert_eq!(issuers(&before), [r#""Ed25519" "CN=taktwerk""#, r#""NIST P-256" "CN=taktwerk""#]);
    assert_eq!(issuers(&after), [r#""Ed25519" "CN=taktwerk""#, r#""NIST P-256" "CN=Plant CA""#]);
    // Renewing would replace it with a self-signed one, so it is refused.
    let told = workspace.error(2, "a", &["init", "--renew", "--key", "p256"]);
    assert!(told.contains("CN=Plant CA") && told.contains("taktwerk pki csr"), "{told}");
    workspace.pki(0, "a", &["init", "--renew", "--key", "ed25519"]);
    // It expires tomorrow, and the command that `pki doctor` suggests works.
    let file =
        after["Own"].as_array().unwrap().iter().find(|own| own["Issuer"] == "CN=Plant CA").unwrap()["Path"]
            .as_str()
            .unwrap()
            .to_owned();
    let told = workspace.json(3, "a", &["doctor", &file]);
    assert!(told["ExpiresSoon"].as_str().unwrap().contains("expires in"), "{told}");
    let command = told["RenewalCommand"].as_str().unwrap();
    assert!(command.starts_with("taktwerk pki csr --out request.csr --key p256"), "{told}");
}
