//! Keys of security groups: from files, or from a server with a Security Key Service.

use crate::connection::SecurityArgs;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Output;
use crate::tell::StandardError;
use crate::{security, session};
use clap::Args;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk::Client;
use taktwerk::pubsub::{KeyRequest, KeySource, SecurityKeys, StaticKeys};
use taktwerk::pubsub_model::KeyServiceClient;
pub(crate) use taktwerk_config::pubsub_keys::KeyFile;
use taktwerk_config::pubsub_keys::{self, KeyFileError};
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_pki::permissions::{self, Protection};
use taktwerk_types::StatusCode;

/// Arguments of `taktwerk pubsub keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// The security group.
    #[arg(value_name = "GROUP")]
    group: String,

    /// Length of the AES key in bits.
    #[arg(long, value_name = "BITS", default_value = "256", value_parser = ["128", "256"])]
    bits: String,
}

/// Creates new keys and prints them.
pub(super) fn run(arguments: &KeysArgs, output: Output) -> Result<(), Failure> {
    let policy = match arguments.bits.as_str() {
        "128" => PubSubSecurityPolicy::Aes128Ctr,
        _ => PubSubSecurityPolicy::Aes256Ctr,
    };
    let text = pubsub_keys::new_key(&arguments.group, policy);
    if output.is_json() {
        return output.document(&serde_json::json!(text));
    }
    let toml = toml::to_string(&text).map_err(|error| Failure::Usage(error.to_string()))?;
    let warning =
        "# With this file, messages of the group can be read and forged: keep it private (chmod 600).\n";
    output.text(&format!("{warning}{toml}"))
}

impl From<KeyFileError> for Failure {
    fn from(error: KeyFileError) -> Self {
        match error {
            KeyFileError::Read { .. } | KeyFileError::Nonces { .. } => Self::Environment(error.to_string()),
            _ => Self::Usage(error.to_string()),
        }
    }
}

/// Refuses a file that other users can read or change.
pub(super) fn guarded(path: &Path, protection: Protection) -> Result<(), Failure> {
    permissions::check(path, protection).map_err(|error| match error.get_ref() {
        // This error names the file and says what to do.
        Some(exposure) => Failure::Usage(exposure.to_string()),
        None => Failure::Environment(format!("cannot read {}: {error}", path.display())),
    })
}

/// Warns if other users can read a file with a secret.
pub(super) fn warn_if_exposed(path: &Path, secret: &str) {
    if taktwerk_config::file::is_exposed(path).unwrap_or(false) {
        let name = path.display();
        tracing::warn!("{name}: others can read {secret}; make it private with `chmod 600 {name}`");
    }
}

/// The keys of all files.
pub(crate) fn fixed(files: &[KeyFile]) -> StaticKeys {
    files.iter().fold(StaticKeys::new(), |all, file| file.add_to(all))
}

/// The source of keys for an engine.
pub(super) struct Keys {
    /// The security groups of key files; empty for a key service.
    groups: Vec<String>,
    source: Source,
    progress: Progress,
}

/// Whether keys have been received from a key service. Shared with the engine's key source.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Received>>);

#[derive(Debug, Default)]
struct Received {
    any: bool,
    why: Option<String>,
}

impl Progress {
    /// Why no keys were received; `None` if some were.
    pub(super) fn failure(&self) -> Option<String> {
        let came = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let why = || came.why.clone().unwrap_or_else(|| "the key service has not responded".to_owned());
        (!came.any).then(why)
    }

    fn note(&self, why: Option<&str>) {
        let mut came = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        came.any |= why.is_none();
        came.why = why.map(str::to_owned);
    }
}

enum Source {
    Files(StaticKeys),
    Service(Box<KeyServiceClient>),
}

impl Keys {
    /// Keys from files.
    pub(super) fn of_files(files: &[KeyFile]) -> Self {
        let progress = Progress::default();
        progress.note(None);
        let groups = files.iter().map(|file| file.group.clone()).collect();
        Self { groups, source: Source::Files(fixed(files)), progress }
    }

    /// Keys from a server. They need an encrypted channel, so the default policy is the strongest one.
    pub(super) fn of_service(
        endpoint: &Endpoint,
        security: &SecurityArgs,
        group: &str,
    ) -> Result<Self, Failure> {
        let mut security = security.clone();
        if security.policy.is_none() && security.cert.is_none() {
            security.policy = Some("best".to_owned());
        }
        let target = session::target(endpoint, &security)?;
        if security::is_none(target.security) {
            return Err(Failure::Usage(
                "--policy None: keys are sent over encrypted connections only".to_owned(),
            ));
        }
        let provider = security::pki(endpoint, &security, &StandardError)?.map(|pki| pki.provider());
        let timeout = security.timeout;
        let connect = move |url: &str| {
            let builder = Client::builder(url)
                .security(target.security)
                .identity(target.identity.clone())
                .application_name("taktwerk")
                .request_timeout(timeout);
            match &provider {
                Some(provider) => builder.provider(Arc::clone(provider)),
                None => builder,
            }
        };
        let client =
            KeyServiceClient::new(connect).map_err(|error| Failure::Environment(error.to_string()))?;
        let client = client.default_service(&endpoint.to_string());
        let (groups, source) = (vec![group.to_owned()], Source::Service(Box::new(client)));
        Ok(Self { groups, source, progress: Progress::default() })
    }

    /// The security group of a publisher or subscriber without a configuration.
    pub(super) fn group(&self) -> &str {
        self.groups.first().map_or("", String::as_str)
    }

    /// The security groups with keys; `None` if a key service decides.
    pub(super) fn groups(&self) -> Option<&[String]> {
        matches!(self.source, Source::Files(_)).then_some(self.groups.as_slice())
    }

    /// Whether keys have been received.
    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl KeySource for Keys {
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
        match &mut self.source {
            Source::Files(keys) => keys.fetch(request),
            Source::Service(client) => {
                let outcome = client.fetch(request);
                self.progress.note(client.last_error());
                outcome
            }
        }
    }
}
