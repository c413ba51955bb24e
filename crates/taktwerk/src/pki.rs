//! Certificates and trust from a folder: what servers and clients need for every policy but None.
//!
//! `renewal`: our certificates, read again while a server runs.

mod renewal;

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

/// How soon servers and clients notice that a trust list has changed.
pub(crate) const TRUST_LIST_INTERVAL: Duration = Duration::from_secs(1);

/// Our certificates with their keys, and whom we trust: a folder laid out as other OPC UA stacks do it.
///
/// ```text
/// own/certs  own/private     our certificates and their keys
/// trusted/certs              whom we trust
/// rejected/certs             who was refused: look at them, then move them to trusted/certs
/// ```
///
/// Changes of the trust lists are noticed while a server or client runs, changes of our certificates while a server runs.
#[derive(Debug, Clone)]
pub struct Pki {
    validator: Arc<StoreValidator>,
    provider: Arc<AwsLcProvider>,
    renewal: Arc<Renewal>,
    application_uri: Option<String>,
    created: Vec<PathBuf>,
    problems: Vec<Problem>,
}

/// Why a folder cannot be used.
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
    /// A certificate could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
}

/// How a folder is opened.
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
    /// The store in a folder, which need not exist yet.
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

    /// What servers and clients take.
    #[must_use]
    pub fn provider(&self) -> Arc<dyn Provider> {
        self.provider.clone()
    }

    /// The store with its trust lists.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.validator.store()
    }

    /// Who decides about other people's certificates.
    #[must_use]
    pub fn validator(&self) -> &Arc<StoreValidator> {
        &self.validator
    }

    /// Looks at the files every second from a thread of its own, and counts the changes of the trust lists: what
    /// [`ClientConfig::trust_list_changes`](taktwerk_client::ClientConfig::trust_list_changes) takes. Builders of servers
    /// and clients do this themselves.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn watch(&self) -> std::io::Result<Arc<AtomicU64>> {
        self.validator.watch(TRUST_LIST_INTERVAL)?;
        Ok(self.validator.change_counter())
    }

    /// Reads our certificates again, and uses those that have changed from now on. Builders of servers look every second
    /// themselves. Returns whether there are new ones.
    ///
    /// # Errors
    /// [`PkiError`]: the old ones stay in use. The new ones must have the same ApplicationUri and serve the same policies.
    pub fn renew(&self) -> Result<bool, PkiError> {
        self.renewal.renew()
    }

    /// What reads our certificates again.
    pub(crate) fn renewal(&self) -> &Arc<Renewal> {
        &self.renewal
    }

    /// The ApplicationUri in our certificate; an application has to call itself exactly that.
    #[must_use]
    pub fn application_uri(&self) -> Option<&str> {
        self.application_uri.as_deref()
    }

    /// The policies that our certificates serve, the most secure first; without those that are only used when asked for
    /// by name.
    #[must_use]
    pub fn policies(&self) -> Vec<SecurityPolicy> {
        let mut policies = self.provider.usable_policies();
        policies.retain(|policy| !policy.is_deprecated());
        policies
    }

    /// The certificates that [`PkiBuilder::open`] has made.
    #[must_use]
    pub fn created(&self) -> &[PathBuf] {
        &self.created
    }

    /// Files that are broken, exposed or foreign; they do not count.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Trusts the certificates of another folder, such as those of a client on this machine.
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
    /// What certificates that are made here say about the application: its name, its ApplicationUri, and the hosts by
    /// which clients dial it. Default: `Taktwerk`, `urn:taktwerk`, this machine.
    pub fn settings(mut self, settings: CertificateSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Makes self-signed certificates with these kinds of keys where the folder has none of the kind. Default: none.
    pub fn create_missing(mut self, keys: impl Into<Vec<NewKey>>) -> Self {
        self.create = keys.into();
        self
    }

    /// Takes our certificate and key from these files, DER or PEM, instead of the folder's.
    pub fn own_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.own = Some((certificate.into(), key.into()));
        self
    }

    /// What is forgiven when certificates are checked. Default: nothing.
    pub fn options(mut self, options: ValidationOptions) -> Self {
        self.options = options;
        self
    }

    /// Trusts a server for good when it is met for the first time. Whoever answers that once is trusted: only on networks
    /// where nobody else can.
    pub fn trust_on_first_use(mut self, on: bool) -> Self {
        self.trust_on_first_use = on;
        self
    }

    /// Keeps the keys of channels so that a key log can be told of them; see
    /// [`ServerBuilder::key_log`](crate::server::ServerBuilder::key_log). Whoever has them reads everything.
    pub fn disclose_keys(mut self, on: bool) -> Self {
        self.disclose_keys = on;
        self
    }

    /// Reads the folder, and makes what is missing in it.
    ///
    /// # Errors
    /// [`PkiError`]. Broken files in the folder are no error; see [`Pki::problems`].
    pub fn open(self) -> Result<Pki, PkiError> {
        let store = Store::at(&self.folder);
        let mut created = Vec::new();
        if self.own.is_none() {
            // Before anything is made: a key that cannot be used must not be followed by a new one in silence.
            store.check_permissions().map_err(|problem| at(&problem.path)(problem.what))?;
            store.create().map_err(|error| at(&self.folder)(error.to_string()))?;
            let own = store.own(&mut Vec::new());
            for wanted in &self.create {
                if own.iter().any(|own| wanted.serves_as(own.key.kind())) {
                    continue;
                }
                let key = PrivateKey::generate(*wanted).map_err(CreateError::from)?;
                let certificate = create::self_signed(&self.settings, &key)?;
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

/// Our certificates with their keys: those of the store, or those of two files.
fn identities(
    store: &Store,
    files: Option<&(PathBuf, PathBuf)>,
    problems: &mut Vec<Problem>,
) -> Result<Vec<(Identity, Certificate)>, PkiError> {
    let mut identities = Vec::new();
    let Some((certificate, key)) = files else {
        for own in store.own(problems) {
            match Identity::new(own.chain, own.key.pkcs8()) {
                Ok(identity) => identities.push((identity, own.certificate)),
                Err(reason) => problems.push(Problem::new(&own.path, reason)),
            }
        }
        return Ok(identities);
    };
    let read = |path: &Path| std::fs::read(path).map_err(|error| at(path)(error.to_string()));
    let chain =
        encoding::certificates(&read(certificate)?).map_err(|error| at(certificate)(error.to_string()))?;
    permissions::check(key, Protection::ReadAndWrite).map_err(|error| at(key)(error.to_string()))?;
    let key_file = PrivateKey::read(&read(key)?).map_err(|error| at(key)(error.to_string()))?;
    let bytes = chain.iter().flat_map(|one| one.der()).copied().collect();
    let identity = Identity::new(bytes, key_file.pkcs8())
        .map_err(|reason| PkiError::Identity { path: certificate.clone(), reason })?;
    let leaf = chain.into_iter().next();
    identities.push((identity, leaf.ok_or_else(|| at(certificate)("it holds no certificate".into()))?));
    Ok(identities)
}
