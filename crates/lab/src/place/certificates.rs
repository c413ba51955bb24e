//! Directories with certificates for measurements: for our server and its load, and for loads of other servers. Each
//! laboratory has its own, and removes those of laboratories that have ended.

use super::{LONGEST, PlaceError};
use crate::orphans::{self, Fate};
use crate::program::Program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use taktwerk_crypto::SecurityPolicy;
use taktwerk_crypto::policy::KeyExchange;

/// Timeout for creating a key or trusting a certificate.
const LIMIT: Duration = Duration::from_secs(60);
/// Directory for loads of other servers.
const LOADS: &str = "load-pki";
/// Directory for our server and its load.
const OWN: &str = "own-pki";

/// A server and a client that trust each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// The server's directory; its certificate contains the server's address.
    pub(super) server: PathBuf,
    /// The client's directory.
    pub(super) client: PathBuf,
}

/// The certificates of one laboratory, which are removed with it.
#[derive(Debug)]
pub(super) struct Certificates {
    /// The parent of the certificate directories, where programs are also installed.
    root: PathBuf,
    /// By address and kind of key, because creating keys is slow.
    pairs: Mutex<BTreeMap<(IpAddr, &'static str), Pair>>,
}

impl Certificates {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, pairs: Mutex::default() }
    }

    /// An empty certificate directory for a load. A newly started peer has a new, unknown certificate, and the user's
    /// trust lists must not be used.
    pub(super) fn of_load(&self) -> PathBuf {
        let own = self.folder(LOADS);
        // The old content was trusted for one measurement only. If removing it fails, the load reports the problem.
        let _ = std::fs::remove_dir_all(&own);
        own
    }

    /// Certificates for a load of our server at this address. The demo server's certificate does not contain the
    /// addresses of emulated links, and clients refuse that (Part 4 §6.1.3, host name).
    pub(super) fn pair(&self, exe: &Path, address: IpAddr, policy: &str) -> Result<Pair, PlaceError> {
        let key = key_of(policy);
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = pairs.get(&(address, key)) {
            return Ok(pair.clone());
        }
        let own = self.folder(OWN);
        if pairs.is_empty() {
            let _ = std::fs::remove_dir_all(&own);
        }
        let folder = own.join(format!("{key}-{}", pairs.len()));
        let pair = Pair { server: folder.join("server"), client: folder.join("client") };
        let host = address.to_string();
        let server = made(exe, key, &pair.server, &["--uri", "urn:taktwerk:demo-server", "--host", &host])?;
        let client = made(exe, key, &pair.client, &["--uri", "urn:taktwerk:client"])?;
        trust(exe, &pair.server, &client)?;
        trust(exe, &pair.client, &server)?;
        pairs.insert((address, key), pair.clone());
        Ok(pair)
    }

    /// The directory of this laboratory. Removes those of laboratories that have ended. Those of other containers are
    /// not visible here and are removed when they are older than any measurement.
    fn folder(&self, name: &str) -> PathBuf {
        let all = self.root.join(name);
        let own = orphans::mark();
        for entry in std::fs::read_dir(&all).into_iter().flatten().flatten() {
            let is_old = || {
                let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
                changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > LONGEST)
            };
            let file = entry.file_name();
            let keeps = file.to_str().is_some_and(|name| {
                name == own
                    || orphans::fate(name).is_some_and(|fate| match fate {
                        Fate::Runs => true,
                        Fate::Gone => false,
                        Fate::Unknown => !is_old(),
                    })
            });
            if !keeps {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        all.join(own)
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let has_pairs = !self.pairs.get_mut().unwrap_or_else(PoisonError::into_inner).is_empty();
        if has_pairs {
            let _ = std::fs::remove_dir_all(self.root.join(OWN).join(orphans::mark()));
        }
    }
}

/// The kind of key for a policy, as named by `taktwerk pki init`.
fn key_of(policy: &str) -> &'static str {
    let exchange = policy.parse::<SecurityPolicy>().ok().map(|policy| policy.info().key_exchange);
    match exchange {
        Some(KeyExchange::NistP256) => "p256",
        Some(KeyExchange::NistP384) => "p384",
        Some(KeyExchange::Curve25519) => "ed25519",
        _ => "rsa2048",
    }
}

/// Creates a certificate with its key in a directory. Returns the path of the certificate.
fn made(exe: &Path, key: &str, folder: &Path, says: &[&str]) -> Result<String, PlaceError> {
    let program = Program::new(exe).args(["--json", "pki", "init", "--key", key, "--pki"]);
    let program = program.arg(folder.display()).args(says);
    let document = super::run(&program, &program.line(), LIMIT, None)?;
    let path = document.pointer("/Own/0/Path").and_then(Value::as_str).map(str::to_owned);
    path.ok_or_else(|| PlaceError::Certificate { line: program.line() })
}

fn trust(exe: &Path, folder: &Path, certificate: &str) -> Result<(), PlaceError> {
    let program = Program::new(exe).args(["--json", "pki", "trust", certificate, "--pki"]);
    let program = program.arg(folder.display());
    super::run(&program, &program.line(), LIMIT, None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn certificates_of_a_load_are_of_one_laboratory() {
        let root = tempfile::tempdir().unwrap();
        let all = Certificates::new(root.path().to_owned());
        let own = all.of_load();
        let (before, namespace) = own.to_str().unwrap().rsplit_once('-').unwrap();
        // Ours; the same process in another container, recent and old; one that cannot exist; and the formats of
        // earlier versions: a running process, one that cannot exist, and no process.
        let (unseen, old) = (PathBuf::from(format!("{before}-1")), PathBuf::from(format!("{before}-2")));
        let gone = root.path().join(format!("load-pki/4194999-77-{namespace}"));
        let earlier = ["1", "4194999", "own"].map(|name| root.path().join("load-pki").join(name));
        for folder in [&own, &unseen, &old, &gone].into_iter().chain(&earlier) {
            std::fs::create_dir_all(folder.join("trusted")).unwrap();
        }
        let long_ago = SystemTime::now() - LONGEST - Duration::from_secs(60);
        std::fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(all.of_load(), own);
        let mut left: Vec<_> =
            std::fs::read_dir(root.path().join("load-pki")).unwrap().map(|it| it.unwrap().path()).collect();
        left.sort();
        let mut kept = vec![earlier[0].clone(), unseen];
        kept.sort();
        assert_eq!(left, kept);
    }

    /// Records its arguments and answers as `taktwerk pki` does.
    const SCRIPT: &str = r#"#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
for last; do :; done
case "$3" in init) mkdir -p "$7"; echo "{\"Own\": [{\"Path\": \"$7/own.der\"}]}";; *) echo '{}';; esac
"#;

    #[test]
    fn certificate_pairs_trust_each_other_and_are_created_once() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let exe = root.path().join("taktwerk");
        std::fs::write(&exe, SCRIPT).unwrap();
        std::fs::set_permissions(&exe, std::fs::Permissions::from_mode(0o755)).unwrap();
        let all = Certificates::new(root.path().to_owned());
        let address = IpAddr::from([10, 77, 0, 1]);
        let pair = all.pair(&exe, address, "Basic256Sha256").unwrap();
        assert_eq!(all.pair(&exe, address, "Aes256_Sha256_RsaPss").unwrap(), pair, "the same kind of key");
        let other = all.pair(&exe, address, "ECC_nistP256").unwrap();
        assert_ne!(other, pair);
        let asked = std::fs::read_to_string(root.path().join("asked")).unwrap();
        let asked: Vec<&str> = asked.lines().collect();
        assert_eq!(asked.len(), 8, "{asked:?}");
        assert!(asked[0].contains("--host 10.77.0.1") && asked[0].contains("rsa2048"), "{asked:?}");
        let (server, client) = (pair.server.display().to_string(), pair.client.display().to_string());
        assert!(asked[2].contains(&format!("{client}/own.der --pki {server}")), "{asked:?}");
        assert!(asked[3].contains(&format!("{server}/own.der --pki {client}")), "{asked:?}");
        assert!(asked[4].contains("p256"), "{asked:?}");
        drop(all);
        assert!(!pair.server.exists() && !pair.client.exists());
    }

    #[test]
    fn missing_certificates_are_an_error() {
        let root = tempfile::tempdir().unwrap();
        let all = Certificates::new(root.path().to_owned());
        let error = all.pair(Path::new("/bin/false"), IpAddr::from([127, 0, 0, 1]), "Basic256Sha256");
        assert!(matches!(error, Err(PlaceError::Load { .. })), "{error:?}");
        let error = all.pair(Path::new("/bin/echo"), IpAddr::from([127, 0, 0, 1]), "Basic256Sha256");
        assert!(error.is_err());
    }
}
