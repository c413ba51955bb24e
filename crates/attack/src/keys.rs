//! The server's and the canary's certificates for one run, which trust each other, in a temporary directory.

use crate::{AttackError, ServerProgram};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk::pki::Pki;
use taktwerk_crypto::{Provider, SecurityPolicy};
use taktwerk_pki::{CertificateSettings, NewKey};

/// Key types of each application.
const NEW_KEYS: [NewKey; 2] = [NewKey::Rsa2048, NewKey::NistP256];

/// The certificates. Dropping this removes the directory.
pub(crate) struct Keys {
    folder: PathBuf,
    provider: Arc<dyn Provider>,
    server: Arc<dyn Provider>,
}

impl Keys {
    pub(crate) fn make(program: &ServerProgram) -> Result<Self, AttackError> {
        let folder = std::env::temp_dir().join(format!("taktwerk-flood-{}", std::process::id()));
        let open = |name: &str, settings| {
            Pki::in_folder(folder.join(name)).settings(settings).create_missing(NEW_KEYS).open()
        };
        let settings = CertificateSettings::new(&program.application_name, &program.application_uri);
        let server = open("server", settings).map_err(AttackError::environment)?;
        let settings = CertificateSettings::new("Taktwerk canary", "urn:taktwerk:canary");
        let client = open("client", settings).map_err(AttackError::environment)?;
        server.trust_those_of(&client).map_err(AttackError::environment)?;
        client.trust_those_of(&server).map_err(AttackError::environment)?;
        Ok(Self { provider: client.provider(), server: server.provider(), folder })
    }

    /// The server's certificate store.
    pub(crate) fn server(&self) -> PathBuf {
        self.folder.join("server")
    }

    /// The temporary directory of the run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The server's certificate for a policy.
    pub(crate) fn server_certificate(&self, policy: SecurityPolicy) -> Option<&[u8]> {
        self.server.own_certificate(policy)
    }

    /// The canary's certificates.
    pub(crate) fn canary(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Errors are ignored, because the directory is temporary.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
