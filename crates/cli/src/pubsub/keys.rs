//! Files with the keys of a security group, for networks without a key service.

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::Path;
use taktwerk::pubsub::{SecurityKeys, StaticKeys};
use taktwerk_crypto::{Entropy, PubSubSecurityPolicy};
use taktwerk_net::OsEntropy;
use zeroize::Zeroizing;

/// Milliseconds that a key from a file is used: as long as the program runs.
const LIFETIME: f64 = 365.0 * 86_400_000.0;

/// Arguments of `taktwerk pubsub keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// The security group.
    #[arg(value_name = "GROUP")]
    group: String,

    /// The key of AES: 128 or 256 bits.
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
}

/// A file that was read.
pub(super) struct KeyFile {
    pub(super) group: String,
    keys: SecurityKeys,
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
    };
    if output.is_json() {
        return output.document(&serde_json::json!(text));
    }
    let toml = toml::to_string(&text).map_err(|error| Failure::Usage(error.to_string()))?;
    let warning = "# Whoever has this file can read and forge the messages of the group: keep it from others (chmod 600).\n";
    output.text(&format!("{warning}{toml}"))
}

impl KeyFile {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Environment(format!("cannot read {name}: {error}")))?;
        Self::parse(&Zeroizing::new(text)).map_err(|reason| Failure::Usage(format!("{name}: {reason}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let text: Text = toml::from_str(text).map_err(|error| error.to_string())?;
        let policy: PubSubSecurityPolicy =
            text.policy.parse().map_err(|_| format!("there is no policy {:?}", text.policy))?;
        let pairs = text.key.as_bytes().chunks(2);
        let key: Option<Vec<u8>> =
            pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
        let key = key.filter(|key| key.len() == policy.key_data_len());
        let key =
            key.ok_or_else(|| format!("the key is not {} bytes in hexadecimal", policy.key_data_len()))?;
        Ok(Self {
            group: text.group,
            keys: SecurityKeys {
                security_policy_uri: policy.uri().to_owned(),
                first_token_id: text.token,
                keys: vec![key],
                time_to_next_key: LIFETIME,
                key_lifetime: LIFETIME,
                current_token_id: None,
            },
        })
    }
}

/// All of them as a source.
pub(super) fn source(files: &[KeyFile]) -> StaticKeys {
    files.iter().fold(StaticKeys::new(), |all, file| all.with(file.group.clone(), file.keys.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        let key = "ab".repeat(PubSubSecurityPolicy::Aes128Ctr.key_data_len());
        let policy = PubSubSecurityPolicy::Aes128Ctr;
        let file = format!("group = \"g\"\npolicy = \"{policy}\"\ntoken = 3\nkey = \"{key}\"\n");
        let read = KeyFile::parse(&file).unwrap();
        assert_eq!((read.group.as_str(), read.keys.first_token_id), ("g", 3));
        assert_eq!(read.keys.keys, [vec![0xab; policy.key_data_len()]]);
        assert!(
            KeyFile::parse(&file.replace("abab", "ab")).is_err_and(|reason| reason.contains("hexadecimal"))
        );
        assert!(KeyFile::parse(&file.replace("Aes128", "Aes512")).is_err());
        assert!(KeyFile::parse("group = 1").is_err());
    }
}
