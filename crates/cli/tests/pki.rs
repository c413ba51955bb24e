//! The built program's `taktwerk pki`: every subcommand, what it says and what it leaves behind.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::{Path, PathBuf};
use std::time::Duration;
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(120);

/// A folder for one test, with commands on a store in it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs `taktwerk pki` on a store, checks its exit code, and gives standard output.
    fn pki(&self, code: i32, store: &str, arguments: &[&str]) -> String {
        let store = self.at(store);
        let arguments = [&["pki"], arguments, &["--pki", &store]].concat();
        let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(&arguments).run(LIMIT).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{stdout}\n{stderr}");
        // Paths are as long as the test's folder, and programs read any line.
        let people = !arguments.contains(&"--json");
        let mut lines = stdout.lines().filter(|line| people && !line.contains('/'));
        assert!(lines.all(|line| line.chars().count() <= 120), "{stdout}");
        assert!(!stdout.contains("PRIVATE KEY"), "{arguments:?}");
        stdout
    }

    fn json(&self, code: i32, store: &str, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.pki(code, store, &[arguments, &["--json"]].concat())).unwrap()
    }

    /// The only file of a folder.
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
fn certificates_are_made_shown_and_renewed() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let made = place.pki(
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
    let key = place.file("a/own/private");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let before = place.file("a/own/certs");
    assert!(place.pki(0, "a", &["init", "--key", "p256"]).contains("there is a certificate already"));
    assert_eq!(place.file("a/own/certs"), before);
    let shown = place.pki(0, "a", &["show"]);
    assert!(shown.contains("CN=Boiler") && shown.contains("own"), "{shown}");
    place.pki(0, "a", &["init", "--key", "p256", "--renew"]);
    let after = place.file("a/own/certs");
    assert_ne!(after, before);
    let renewed = place.pki(0, "a", &["show"]);
    assert!(renewed.contains("CN=Boiler"), "{renewed}");
}

#[test]
fn a_certificate_is_diagnosed_trusted_and_rejected() {
    let place = Place::new();
    for store in ["server", "client"] {
        place.pki(0, store, &["init", "--name", store, "--uri", &format!("urn:example:{store}")]);
    }
    let certificate = place.file("client/own/certs").display().to_string();
    let refused = place.pki(3, "server", &["doctor", &certificate, "--as", "client"]);
    assert!(refused.contains("nobody has said that this certificate is trusted"), "{refused}");
    assert!(refused.contains("taktwerk pki trust"), "{refused}");
    let findings = place.json(3, "server", &["doctor", &certificate, "--as", "client"]);
    assert!(findings.to_string().contains("BadCertificateUntrusted"), "{findings}");

    assert!(place.pki(0, "server", &["trust", &certificate]).contains("trusted: CN=client"));
    let accepted = place.pki(0, "server", &["doctor", &certificate, "--as", "client"]);
    assert!(accepted.contains("The certificate is accepted"), "{accepted}");
    // It is somebody else's certificate for whoever calls himself otherwise.
    let other = ["doctor", &certificate, "--as", "client", "--uri", "urn:example:other"];
    assert!(place.json(3, "server", &other).to_string().contains("BadCertificateUriInvalid"));

    let thumbprint = Path::new(&certificate).file_stem().unwrap().to_str().unwrap();
    let short = thumbprint.get(..8).unwrap();
    assert!(place.pki(0, "server", &["show"]).contains("trusted"));
    place.pki(0, "server", &["reject", short]);
    assert_eq!(place.count("server/trusted/certs"), 0);
    place.pki(3, "server", &["doctor", &certificate, "--as", "client"]);
    place.pki(2, "server", &["trust", "0000000"]);
    // Users have a list of their own.
    place.pki(0, "server", &["trust", &certificate, "--users"]);
    assert_eq!((place.count("server/trusted/certs"), place.count("server/users/trusted/certs")), (0, 1));
}

#[test]
fn requests_leave_and_certificates_come() {
    let place = Place::new();
    let request = place.at("request.csr");
    place.pki(0, "a", &["csr", "--name", "Pump", "--uri", "urn:example:pump", "--out", &request]);
    assert!(std::fs::read_to_string(&request).unwrap().starts_with("-----BEGIN CERTIFICATE REQUEST-----"));
    assert_eq!(place.count("a/own/private"), 1);
    assert_eq!(place.count("a/own/certs"), 0);

    // A certificate with its key from elsewhere becomes ours; without its key it cannot.
    place.pki(0, "b", &["init", "--name", "Valve", "--key", "p256"]);
    let certificate = place.file("b/own/certs").display().to_string();
    let key = place.file("b/own/private").display().to_string();
    place.pki(2, "a", &["import", "--own", &certificate]);
    let imported = place.json(0, "a", &["import", "--own", &certificate, "--key", &key]);
    assert!(imported.to_string().contains("CN=Valve"), "{imported}");
    assert_eq!(place.count("a/own/certs"), 1);
    place.pki(0, "c", &["import", &certificate]);
    place.pki(0, "c", &["import", "--issuer", &certificate]);
    assert_eq!((place.count("c/trusted/certs"), place.count("c/issuer/certs")), (1, 1));
    let nonsense = place.at("nonsense.der");
    std::fs::write(&nonsense, b"\x30\x03abc").unwrap();
    place.pki(2, "c", &["import", &nonsense]);
    place.pki(2, "c", &["doctor", "nobody"]);
}
