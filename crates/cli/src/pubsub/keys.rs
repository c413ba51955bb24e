//! Where keys of security groups come from: files, for networks without a key service, or a server that is one.

use crate::connection::SecurityArgs;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Output;
use crate::{security, session};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk::Client;
use taktwerk::pubsub::{KeyRequest, KeySource, NonceFile, SecurityKeys, StaticKeys};
use taktwerk::pubsub_model::KeyServiceClient;
use taktwerk_crypto::{Entropy, PubSubSecurityPolicy};
use taktwerk_net::OsEntropy;
use taktwerk_pki::permissions::{self, Protection};
use taktwerk_types::StatusCode;
use zeroize::Zeroizing;

/// Milliseconds that a key from a file is used: as long as the program runs.
const LIFETIME: f64 = 365.0 * 86_400_000.0;

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

/// What such a file says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Text {
    group: String,
    policy: String,
    token: u32,
    key: String,
    /// The file in which it is kept which numbers were used with the key; beside this file without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    nonces: Option<PathBuf>,
}

/// A file that was read.
pub(crate) struct KeyFile {
    /// The security group.
    pub(crate) group: String,
    keys: SecurityKeys,
    nonces: NonceFile,
}

/// Makes new keys and prints them.
pub(super) fn run(arguments: &KeysArgs, output: Output) -> Result<(), Failure> {
    let policy = match arguments.bits.as_str() {
        "128" => PubSubSecurityPolicy::Aes128Ctr,
        _ => PubSubSecurityPolicy::Aes256Ctr,
    };
    let mut key = Zeroizing::new(vec![0; policy.key_data_len()]);
    OsEntropy.fill(&mut key);
    let text = Text {
        group: arguments.group.clone(),
        policy: policy.to_string(),
        token: 1,
        key: key.iter().map(|byte| format!("{byte:02x}")).collect(),
        nonces: None,
    };
    if output.is_json() {
        return output.document(&serde_json::json!(text));
    }
    let toml = toml::to_string(&text).map_err(|error| Failure::Usage(error.to_string()))?;
    let warning =
        "# With this file, messages of the group can be read and forged: keep it private (chmod 600).\n";
    output.text(&format!("{warning}{toml}"))
}

impl KeyFile {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        guarded(path, Protection::ReadAndWrite)?;
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Environment(format!("cannot read {name}: {error}")))?;
        Self::parse(path, &Zeroizing::new(text)).map_err(|reason| Failure::Usage(format!("{name}: {reason}")))
    }

    /// Whoever sends with the keys keeps which numbers were used with them, and learns now whether that is possible.
    pub(crate) fn check_nonces(&self) -> Result<(), Failure> {
        let path = self.nonces.path().display();
        self.nonces.check().map_err(|error| {
            Failure::Environment(format!(
                "cannot write {path}: {error}. It is kept there which numbers were used with the key of the security group \
                 {:?}, so that none is used again after a restart; nonces = \"FILE\" in the file with the key names another \
                 file",
                self.group
            ))
        })
    }

    fn parse(path: &Path, text: &str) -> Result<Self, String> {
        let text: Text = toml::from_str(text).map_err(|error| error.to_string())?;
        let policy: PubSubSecurityPolicy =
            text.policy.parse().map_err(|_| format!("there is no policy {:?}", text.policy))?;
        let pairs = text.key.as_bytes().chunks(2);
        let key: Option<Vec<u8>> =
            pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
        let key = key.filter(|key| key.len() == policy.key_data_len());
        let key =
            key.ok_or_else(|| format!("the key is not {} bytes in hexadecimal", policy.key_data_len()))?;
        let nonces = match &text.nonces {
            Some(nonces) => path.parent().unwrap_or(Path::new("")).join(nonces),
            None => {
                let mut beside = path.as_os_str().to_owned();
                beside.push(".nonces");
                beside.into()
            }
        };
        Ok(Self {
            nonces: NonceFile::new(nonces),
            group: text.group,
            keys: SecurityKeys {
                security_policy_uri: policy.uri().to_owned(),
                first_token_id: text.token,
                keys: vec![key],
                time_to_next_key: LIFETIME,
                key_lifetime: LIFETIME,
                current_token_id: None,
                nonces: None,
            },
        })
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
    let add = |all: StaticKeys, file: &KeyFile| {
        all.with_kept(file.group.clone(), file.keys.clone(), file.nonces.clone())
    };
    files.iter().fold(StaticKeys::new(), add)
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
        let provider = security::pki(endpoint, &security)?.map(|pki| pki.provider());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        let key = "ab".repeat(PubSubSecurityPolicy::Aes128Ctr.key_data_len());
        let policy = PubSubSecurityPolicy::Aes128Ctr;
        let file = format!("group = \"g\"\npolicy = \"{policy}\"\ntoken = 3\nkey = \"{key}\"\n");
        let path = Path::new("a/plant.keys");
        let read = KeyFile::parse(path, &file).unwrap();
        assert_eq!(read.nonces.path(), Path::new("a/plant.keys.nonces"));
        let named = KeyFile::parse(path, &format!("{file}nonces = \"n\"\n")).unwrap();
        assert_eq!(named.nonces.path(), Path::new("a/n"));
        assert_eq!((read.group.as_str(), read.keys.first_token_id), ("g", 3));
        assert_eq!(read.keys.keys, [vec![0xab; policy.key_data_len()]]);
        assert!(
            KeyFile::parse(path, &file.replace("abab", "ab"))
                .is_err_and(|reason| reason.contains("hexadecimal"))
        );
        assert!(KeyFile::parse(path, &file.replace("Aes128", "Aes512")).is_err());
        assert!(KeyFile::parse(path, "group = 1").is_err());
    }
}
