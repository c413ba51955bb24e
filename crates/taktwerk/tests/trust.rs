//! Certificates and trust lists of servers that run.

#![allow(clippy::unwrap_used)] // a helper that fails is a test that fails

use core::time::Duration;
use std::path::{Path, PathBuf};
use taktwerk::pki::Pki;
use taktwerk::{Client, MessageSecurityMode, SecurityPolicy, Server, StatusCode};
use taktwerk_pki::{CertificateSettings, Group, NewKey};

/// A folder that goes when the test ends.
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

    // Another process would do the same: only the file says it.
    let certificate = &theirs.store().own(&mut Vec::new())[0].certificate;
    assert!(ours.store().reject(Group::Applications, certificate).unwrap());
    while client.read_value::<i32>("i=2259").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let refused = Client::builder(&running.url()).pki(&theirs).connect().await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_SECURITY_CHECKS_FAILED, "{refused}");
}
