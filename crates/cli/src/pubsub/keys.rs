//! Where keys of security groups come from: files, for networks without a key service, or a server that is one.

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

/// Makes new keys and prints them.
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

/// Refuses a file that others can read or change though they must not.
pub(super) fn guarded(path: &Path, protection: Protection) -> Result<(), Failure> {
    permissions::check(path, protection).map_err(|error| match error.get_ref() {
        // Ours: it says which file, and what to do.
        Some(exposure) => Failure::Usage(exposure.to_string()),
        None => Failure::Environment(format!("cannot read {}: {error}", path.display())),
    })
}

/// Says that others can read a file that has a secret.
pub(super) fn warn_if_exposed(path: &Path, secret: &str) {
    if taktwerk_config::file::is_exposed(path).unwrap_or(false) {
        let name = path.display();
        tracing::warn!("{name}: others can read {secret}; make it private with `chmod 600 {name}`");
    }
}

/// All keys of files.
pub(crate) fn fixed(files: &[KeyFile]) -> StaticKeys {
    files.iter().fold(StaticKeys::new(), |all, file| file.add_to(all))
}

/// Where the keys of an engine come from.
pub(super) struct Keys {
    /// Of files: all whose keys there are.
    groups: Vec<String>,
    source: Source,
    progress: Progress,
}

/// Whether keys have come from a key service, looked at while the engine has the source of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Came>>);

#[derive(Debug, Default)]
struct Came {
    any: bool,
    why: Option<String>,
}

impl Progress {
    /// Why no keys have ever come; none if there are some.
    pub(super) fn failure(&self) -> Option<String> {
        let came = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let why = || came.why.clone().unwrap_or_else(|| "the key service has not answered".to_owned());
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
    /// Those of files.
    pub(super) fn of_files(files: &[KeyFile]) -> Self {
        let progress = Progress::default();
        progress.note(None);
        let groups = files.iter().map(|file| file.group.clone()).collect();
        Self { groups, source: Source::Files(fixed(files)), progress }
    }

    /// Those that a server hands out: over an encrypting channel, so without a policy it is the best.
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
                "--policy None: keys are handed out over encrypting connections only".to_owned(),
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

    /// The security group of a publisher or subscriber that has no configuration to say so.
    pub(super) fn group(&self) -> &str {
        self.groups.first().map_or("", String::as_str)
    }

    /// The security groups whose keys there are; none if a key service decides about that.
    pub(super) fn groups(&self) -> Option<&[String]> {
        matches!(self.source, Source::Files(_)).then_some(self.groups.as_slice())
    }

    /// Whether keys come.
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
