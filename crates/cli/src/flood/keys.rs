//! Certificates for one flood: the server's and the canary's, which trust each other, in a folder that is removed.

use crate::failure::Failure;
use crate::security::{NEW_KEYS, client_pki, environment};
use crate::serve::{APPLICATION_NAME, APPLICATION_URI};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk::pki::Pki;
use taktwerk_crypto::{Provider, SecurityPolicy};
use taktwerk_pki::CertificateSettings;

/// The certificates; dropping this removes them.
pub(crate) struct Keys {
    folder: PathBuf,
    provider: Arc<dyn Provider>,
    server: Arc<dyn Provider>,
}

impl Keys {
    pub(super) fn make() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("taktwerk-flood-{}", std::process::id()));
        let settings = CertificateSettings::new(APPLICATION_NAME, APPLICATION_URI);
        let server = Pki::in_folder(folder.join("server")).settings(settings).create_missing(NEW_KEYS).open();
        let server = server.map_err(environment)?;
        let client = client_pki(Some(&folder.join("client")))?.create_missing(NEW_KEYS).open();
        let client = client.map_err(environment)?;
        server.trust_those_of(&client).map_err(environment)?;
        client.trust_those_of(&server).map_err(environment)?;
        Ok(Self { folder, provider: client.provider(), server: server.provider() })
    }

    /// The server's store.
    pub(super) fn server(&self) -> PathBuf {
        self.folder.join("server")
    }

    /// Where all of it lies, and what else belongs to one flood.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The server's certificate for a policy.
    pub(super) fn server_certificate(&self, policy: SecurityPolicy) -> Option<&[u8]> {
        self.server.own_certificate(policy)
    }

    /// What the canary secures its connection with.
    pub(super) fn canary(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // It lies among temporary files: what cannot be removed now is removed some day.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
