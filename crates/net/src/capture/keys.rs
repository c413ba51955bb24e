//! Key log file of secure channels, in the format that Wireshark reads.

use super::private;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_crypto::{DisclosedKeys, KeyLog, TokenKeys};

/// A key log file. Each token takes six lines: `client_iv_CHANNEL_TOKEN: HEX`, then `client_key`, `client_siglen` and
/// the same for the server. Wireshark 4.4 and later reads it (Preferences, Protocols, OpcUa, key log file) and decrypts
/// AES-CBC traffic. It does not support the authenticated ciphers.
#[derive(Debug)]
pub struct KeyLogFile {
    file: Mutex<File>,
}

impl KeyLogFile {
    /// Appends to a file, or creates one that only its owner can read.
    ///
    /// # Errors
    /// The file cannot be written, belongs to another user, is a symbolic link, or is readable by others.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        let file = private(path, true)?;
        Ok(Arc::new(Self { file: Mutex::new(file) }))
    }
}

impl KeyLog for KeyLogFile {
    fn token(&self, token: &TokenKeys<'_>) {
        let text = lines(token);
        // Written at once, so that the key is in the file before the first message it decrypts is captured.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(text.as_bytes()) {
            tracing::error!(%error, "the key log is incomplete");
        }
    }
}

pub(super) fn lines(token: &TokenKeys<'_>) -> String {
    let mut text = String::with_capacity(512);
    let id = format!("{}_{}", token.channel_id, token.token_id);
    let signature_len = token.policy.info().signature_len;
    for (side, keys) in [("client", token.client), ("server", token.server)] {
        let DisclosedKeys { encrypting_key, iv, .. } = keys;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{side}_iv_{id}: {}", hex(iv));
        let _ = writeln!(text, "{side}_key_{id}: {}", hex(encrypting_key));
        let _ = writeln!(text, "{side}_siglen_{id}: {signature_len}");
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}
