//! Commands that follow a server, for tests that restart the server.

#[path = "../../lines/mod.rs"]
mod lines;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use taktwerk::SecurityPolicy;
use taktwerk::pki::Pki;
use taktwerk_pki::{CertificateSettings, NewKey};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
pub(crate) const POLICY: SecurityPolicy = SecurityPolicy::ECC_nistP256_AesGcm;

/// A command that prints lines; it ends with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let command = Command::new(BINARY)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = command.unwrap();
        let lines = lines::of(&mut child);
        Self { child, lines }
    }

    /// Reads lines until one contains a text.
    pub(crate) fn until(&self, text: &str) -> String {
        let end = Instant::now() + Duration::from_secs(60);
        let mut all = Vec::new();
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => all.push(line),
                Err(error) => panic!("no {text:?} ({error}) in {all:#?}"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The certificate store of a server or client in a directory.
pub(crate) fn pki(folder: &Path, name: &str) -> Pki {
    let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
    Pki::in_folder(folder.join(name)).settings(settings).create_missing([NewKey::NistP256]).open().unwrap()
}

/// Replaces the certificate of a store.
pub(crate) fn renew(folder: &Path, name: &str) {
    let place = folder.join(name).display().to_string();
    let renewed = Command::new(BINARY).args(["pki", "init", "--renew", "--pki", &place]).output().unwrap();
    assert!(renewed.status.success(), "{}", String::from_utf8_lossy(&renewed.stderr));
}
