//! Files with the key of a security group (Part 14), for networks without a Security Key Service.

use crate::file;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use taktwerk::pubsub::{NonceFile, SecurityKeys, StaticKeys};
use taktwerk_crypto::{Entropy, PubSubSecurityPolicy};
use taktwerk_net::OsEntropy;
use taktwerk_pki::permissions::{self, Protection};
use taktwerk_types::hexadecimal;
use zeroize::Zeroizing;

/// Lifetime of a key from a file, in milliseconds: one year.
const LIFETIME: f64 = 365.0 * 86_400_000.0;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Other users can read or change the file.
    #[error("{0}")]
    Exposed(String),
    /// The file does not contain a valid key.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file for the nonces of the key cannot be written.
    #[error(
        "cannot write {}: {error}. This file records which nonces were used with the key of the security group {group:?}, \
         so that none is reused after a restart. To use another file, set nonces = \"FILE\" in the key file",
        path.display()
    )]
    Nonces {
        /// The file for the nonces.
        path: PathBuf,
        /// The security group.
        group: String,
        /// Why.
        error: std::io::Error,
    },
}

/// The content of a key file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Text {
    group: String,
    policy: String,
    token: u32,
    key: String,
    /// The file that records the used nonces. Default: a file beside this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    nonces: Option<PathBuf>,
}

/// The content of a key file with a new key for a security group, for TOML or JSON.
pub fn new_key(group: &str, policy: PubSubSecurityPolicy) -> impl Serialize + use<> {
    let mut key = Zeroizing::new(vec![0; policy.key_data_len()]);
    OsEntropy.fill(&mut key);
    Text {
        group: group.to_owned(),
        policy: policy.to_string(),
        token: 1,
        key: hexadecimal::text(&key),
        nonces: None,
    }
}

/// A key file that was read.
#[derive(Debug, Clone)]
pub struct KeyFile {
    /// The security group.
    pub group: String,
    keys: SecurityKeys,
    nonces: NonceFile,
}

impl KeyFile {
    /// Reads a key file. Files that other users can read or change are refused.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let unreadable = |error| KeyFileError::Read { path: path.to_owned(), error };
        permissions::check(path, Protection::ReadAndWrite).map_err(|error| match error.get_ref() {
            // This variant names the file and says what to do.
            Some(exposure) => KeyFileError::Exposed(exposure.to_string()),
            None => unreadable(error),
        })?;
        let text = Zeroizing::new(file::read_text(path, file::SECRET_LEN_MAX).map_err(unreadable)?);
        Self::parse(path, &text).map_err(|reason| KeyFileError::Content { path: path.to_owned(), reason })
    }

    /// Checks that the file for nonces can be written. Publishers need it.
    ///
    /// # Errors
    /// [`KeyFileError::Nonces`]
    pub fn check_nonces(&self) -> Result<(), KeyFileError> {
        self.nonces.check().map_err(|error| KeyFileError::Nonces {
            path: self.nonces.path().to_owned(),
            group: self.group.clone(),
            error,
        })
    }

    /// Adds the key to `all`.
    #[must_use]
    pub fn add_to(&self, all: StaticKeys) -> StaticKeys {
        all.with_kept(self.group.clone(), self.keys.clone(), self.nonces.clone())
    }

    fn parse(path: &Path, text: &str) -> Result<Self, String> {
        // The full error shows the line, which may be the one with the key.
        let text: Text = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            format!("line {}: {}", crate::line_of(text, at), error.message())
        })?;
        let policy: PubSubSecurityPolicy =
            text.policy.parse().map_err(|_| format!("there is no policy {:?}", text.policy))?;
        let key = hexadecimal::bytes(&text.key).filter(|key| key.len() == policy.key_data_len());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_do_not_show_the_key() {
        let (path, key) = (Path::new("plant.keys"), "5ec2e7".repeat(20));
        for text in [
            format!("group = \"g\"\nkey = \"{key}"),
            format!("group = \"g\"\nkey = {key}\n"),
            format!("group = \"g\"\npolicy = \"p\"\ntoken = 1\nkey = [\"{key}\"]\n"),
            format!("group = \"g\"\npolicy = \"PubSub-Aes256-CTR\"\ntoken = 1\nkey = \"+f{key}\"\n"),
        ] {
            let reason = KeyFile::parse(path, &text).unwrap_err();
            assert!(!reason.contains("5ec2e7"), "{reason}");
        }
        let reason = KeyFile::parse(path, &format!("group = \"g\"\nkey = \"{key}")).unwrap_err();
        assert!(reason.starts_with("line 2: "), "{reason}");
    }

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
        assert!(KeyFile::parse(path, &file.replacen("ab", "+f", 1)).is_err(), "not hexadecimal digits");
        let made = toml::to_string(&new_key("g", policy)).unwrap();
        let again = KeyFile::parse(path, &made).unwrap();
        assert_eq!((again.group.as_str(), again.keys.keys[0].len()), ("g", policy.key_data_len()));
    }
}
