//! Certificates and trust lists in a directory: needed by servers and clients for every policy but None.
//!
//! `renewal`: own certificates, reloaded while a server runs; `in_process`: a client in the server's process.

mod in_process;
mod renewal;

pub use in_process::InProcessClient;
pub(crate) use renewal::Renewal;

use core::sync::atomic::AtomicU64;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk_crypto::aws_lc::{AwsLcProvider, Identity, IdentityError};
use taktwerk_crypto::certificate::{Certificate, ValidationOptions};
use taktwerk_crypto::{Provider, SecurityPolicy};
use taktwerk_pki::permissions::{self, Protection};
use taktwerk_pki::{
    CertificateSettings, CreateError, Group, NewKey, PrivateKey, Problem, Store, StoreValidator, create,
    encoding,
};

/// Longest file of an own certificate with its issuers, or of a key.
const IDENTITY_LEN_MAX: u64 = 1 << 20;

/// How soon servers and clients detect a changed trust list.
pub(crate) const TRUST_LIST_INTERVAL: Duration = Duration::from_secs(1);

/// Own certificates with their keys, and trust lists, in a directory laid out as in other OPC UA stacks:
///
/// ```text
/// own/certs  own/private     our certificates and their keys
/// trusted/certs              trusted certificates
/// rejected/certs             rejected certificates: review them, then move them to trusted/certs
/// ```
///
/// Changed trust lists are detected while a server or client runs; changed own certificates while a server runs.
#[derive(Debug, Clone)]
pub struct Pki {
    validator: Arc<StoreValidator>,
    provider: Arc<AwsLcProvider>,
    renewal: Arc<Renewal>,
    application_uri: Option<String>,
    created: Vec<PathBuf>,
    problems: Vec<Problem>,
}

/// Why a PKI directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate and its key cannot be used.
    #[error("{path}: {reason}")]
    Identity {
        /// The certificate's file.
        path: PathBuf,
        /// What is wrong with it.
        reason: IdentityError,
    },
    /// A certificate could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
}

/// Settings for opening a PKI directory.
#[derive(Debug)]
#[must_use = "nothing happens before open()"]
pub struct PkiBuilder {
    folder: PathBuf,
    settings: CertificateSettings,
    create: Vec<NewKey>,
    own: Option<(PathBuf, PathBuf)>,
    options: ValidationOptions,
    trust_on_first_use: bool,
    disclose_keys: bool,
}

impl Pki {
    /// Begins with a directory, which need not exist yet.
    pub fn in_folder(folder: impl Into<PathBuf>) -> PkiBuilder {
        PkiBuilder {
            folder: folder.into(),
            settings: CertificateSettings::new("Taktwerk", "urn:taktwerk"),
            create: Vec::new(),
            own: None,
            options: ValidationOptions::default(),
            trust_on_first_use: false,
            disclose_keys: false,
        }
    }

    /// The cryptographic provider for servers and clients.
    #[must_use]
    pub fn provider(&self) -> Arc<dyn Provider> {
        self.provider.clone()
    }

    /// The store with its trust lists.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.validator.store()
    }

    /// The validator of peers' certificates.
    #[must_use]
    pub fn validator(&self) -> &Arc<StoreValidator> {
        &self.validator
    }

    /// Checks the files every second on a separate thread, and counts the changes of the trust lists for
    /// [`ClientConfig::trust_list_changes`](taktwerk_client::ClientConfig::trust_list_changes). The builders of servers and
    /// clients do this themselves.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn watch(&self) -> std::io::Result<Arc<AtomicU64>> {
        self.validator.watch(TRUST_LIST_INTERVAL)?;
        Ok(self.validator.change_counter())
    }

    /// Reloads the own certificates, and uses changed ones from now on. Servers check every second themselves. Returns whether
    /// there are new certificates.
    ///
    /// # Errors
    /// [`PkiError`]: the old certificates stay in use. New ones must have the same ApplicationUri and serve the same policies.
    pub fn renew(&self) -> Result<bool, PkiError> {
        self.renewal.renew()
    }

    /// The reloader of own certificates.
    pub(crate) fn renewal(&self) -> &Arc<Renewal> {
        &self.renewal
    }

    /// The ApplicationUri in the own certificate; the application's description must have the same.
    #[must_use]
    pub fn application_uri(&self) -> Option<&str> {
        self.application_uri.as_deref()
    }

    /// The policies that the own certificates serve, the most secure first, without those that must be requested by name.
    #[must_use]
    pub fn policies(&self) -> Vec<SecurityPolicy> {
        let mut policies = self.provider.usable_policies();
        policies.retain(|policy| !policy.is_deprecated());
        policies
    }

    /// The certificates that [`PkiBuilder::open`] created.
    #[must_use]
    pub fn created(&self) -> &[PathBuf] {
        &self.created
    }

    /// Files that are broken, exposed or foreign. They are ignored.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Trusts the certificates of another PKI directory, such as those of a client on this machine.
    ///
    /// # Errors
    /// [`PkiError::File`].
    pub fn trust_those_of(&self, other: &Self) -> Result<(), PkiError> {
        for own in other.store().own(&mut Vec::new()) {
            let root = self.store().root().to_owned();
            let kept = self.store().trust(Group::Applications, &own.certificate);
            kept.map_err(|error| PkiError::File { path: root, reason: error.to_string() })?;
        }
        self.validator.refresh();
        Ok(())
    }
}

impl PkiBuilder {
    /// The content of certificates created here: the application's name, its ApplicationUri, and the hosts by which clients
    /// connect. Default: `Taktwerk`, `urn:taktwerk`, this machine.
    pub fn settings(mut self, settings: CertificateSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Creates a self-signed certificate for each of these kinds of key that the directory lacks. Default: none.
    pub fn create_missing(mut self, keys: impl Into<Vec<NewKey>>) -> Self {
        self.create = keys.into();
        self
    }

    /// Uses an own certificate and key from these files, DER or PEM, instead of the directory's.
    pub fn own_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.own = Some((certificate.into(), key.into()));
        self
    }

    /// Which validation errors are suppressed. Default: none.
    pub fn options(mut self, options: ValidationOptions) -> Self {
        self.options = options;
        self
    }

    /// Trusts a server permanently at the first connection. An attacker who answers first is then trusted, so use this only on
    /// isolated networks.
    pub fn trust_on_first_use(mut self, on: bool) -> Self {
        self.trust_on_first_use = on;
        self
    }

    /// Keeps the keys of channels for a key log; see [`ServerBuilder::key_log`](crate::server::ServerBuilder::key_log). With
    /// these keys, recorded traffic can be decrypted.
    pub fn disclose_keys(mut self, on: bool) -> Self {
        self.disclose_keys = on;
        self
    }

    /// Reads the directory, and creates what is missing.
    ///
    /// # Errors
    /// [`PkiError`]. Broken files in the directory are not an error; see [`Pki::problems`].
    pub fn open(self) -> Result<Pki, PkiError> {
        let store = Store::at(&self.folder);
        let mut created = Vec::new();
        if self.own.is_none() {
            // Check first: an unusable key must not silently be replaced by a new one.
            store.check_permissions().map_err(|problem| at(&problem.path)(problem.what))?;
            store.create().map_err(|error| at(&self.folder)(error.to_string()))?;
            let own = store.own(&mut Vec::new());
            // One application has one ApplicationUri, which clients compare with that of its endpoints (Part 4 §5.5.1).
            let mut settings = self.settings.clone();
            if let Some(uri) = own.iter().find_map(|own| own.certificate.application_uri()) {
                settings.application_uri = uri.to_owned();
            }
            for wanted in &self.create {
                if own.iter().any(|own| wanted.serves_as(own.key.kind())) {
                    continue;
                }
                let key = PrivateKey::generate(*wanted).map_err(CreateError::from)?;
                let certificate = create::self_signed(&settings, &key)?;
                let kept = store.keep_own(&[certificate], &key);
                created.push(kept.map_err(|error| at(&self.folder)(error.to_string()))?.0);
            }
        }
        let mut problems = Vec::new();
        let identities = identities(&store, self.own.as_ref(), &mut problems)?;
        let application_uri =
            identities.first().and_then(|(_, certificate)| certificate.application_uri().map(str::to_owned));
        let validator =
            StoreValidator::new(store.clone(), self.options).trust_on_first_use(self.trust_on_first_use);
        let validator = Arc::new(validator);
        let mut provider = AwsLcProvider::new(validator.clone()).disclosing_keys(self.disclose_keys);
        for (identity, _) in identities {
            provider = provider.with_identity(identity);
        }
        let provider = Arc::new(provider);
        let renewal = Arc::new(Renewal::new(store, self.own, application_uri.clone(), &provider));
        Ok(Pki { validator, provider, renewal, application_uri, created, problems })
    }
}

/// What is wrong with a file.
fn at(path: &Path) -> impl FnOnce(String) -> PkiError + use<> {
    let path = path.to_owned();
    move |reason| PkiError::File { path, reason }
}

/// Own certificates with their keys: from the store, or from two files.
fn identities(
    store: &Store,
    files: Option<&(PathBuf, PathBuf)>,
    problems: &mut Vec<Problem>,
) -> Result<Vec<(Identity, Certificate)>, PkiError> {
    let mut identities = Vec::new();
    let Some((certificate, key)) = files else {
        let mut first_uri = None;
        for own in store.own(problems) {
            let uri = own.certificate.application_uri().unwrap_or("none");
            let expected = first_uri.get_or_insert_with(|| uri.to_owned());
            if uri != expected {
                let problem = format!(
                    "its ApplicationUri is {uri}, but that of another own certificate is {expected}: clients refuse one of \
                     them; remove it, or renew it with `taktwerk pki init --renew --uri {expected}`"
                );
                problems.push(Problem::new(&own.path, problem));
            }
            match Identity::new(own.chain, own.key.pkcs8()) {
                Ok(identity) => identities.push((identity, own.certificate)),
                Err(reason) => problems.push(Problem::new(&own.path, reason)),
            }
        }
        return Ok(identities);
    };
    let read = |path: &Path| {
        taktwerk_files::read_bytes(path, IDENTITY_LEN_MAX).map_err(|error| at(path)(error.to_string()))
    };
    let chain =
        encoding::certificates(&read(certificate)?).map_err(|error| at(certificate)(error.to_string()))?;
    permissions::check(key, Protection::ReadAndWrite).map_err(|error| at(key)(error.to_string()))?;
    let key_file = PrivateKey::read(&read(key)?).map_err(|error| at(key)(error.to_string()))?;
    let bytes = chain.iter().flat_map(|one| one.der()).copied().collect();
    let identity = Identity::new(bytes, key_file.pkcs8())
        .map_err(|reason| PkiError::Identity { path: certificate.clone(), reason })?;
    let leaf = chain.into_iter().next();
    identities
        .push((identity, leaf.ok_or_else(|| at(certificate)("the file contains no certificate".into()))?));
    Ok(identities)
}
