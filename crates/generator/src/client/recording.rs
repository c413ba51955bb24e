//! `--allow-key-log`: keys and captures for Wireshark, in files named by environment variables. The variables alone
//! have no effect, so that a forgotten variable cannot disclose protected messages.

use super::Tell;
use crate::error::GeneratorError;
use std::path::PathBuf;
use std::sync::Arc;
use taktwerk_crypto::KeyLog;
use taktwerk_net::capture::{Capture, KeyLogFile};

/// The variable with the path of the key log.
const KEY_LOG: &str = "OPCUA_KEYLOGFILE";
/// The variable with the path of the capture.
const CAPTURE: &str = "OPCUA_PCAP_FILE";

/// Active recordings.
#[derive(Debug, Default)]
pub struct Recording {
    /// Destination of keys.
    pub key_log: Option<Arc<dyn KeyLog>>,
    /// Destination of messages.
    pub capture: Option<Arc<Capture>>,
}

impl Recording {
    /// Opens the files named in the environment, if allowed.
    pub fn open(is_allowed: bool, tell: &dyn Tell) -> Result<Self, GeneratorError> {
        let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let (keys, messages) = (named(KEY_LOG), named(CAPTURE));
        if !is_allowed {
            for (name, _) in
                [(KEY_LOG, &keys), (CAPTURE, &messages)].iter().filter(|(_, path)| path.is_some())
            {
                tracing::info!("{name} is set but ignored: pass --allow-key-log to use it");
            }
            return Ok(Self::default());
        }
        if keys.is_none() && messages.is_none() {
            return Err(GeneratorError::Usage(format!(
                "--allow-key-log needs a file: set {KEY_LOG} or {CAPTURE} to its path"
            )));
        }
        let mut recording = Self::default();
        let failed = |path: &PathBuf| {
            let path = path.display().to_string();
            move |error: std::io::Error| GeneratorError::Environment(format!("{path}: {error}"))
        };
        if let Some(path) = keys {
            tell.tell(&format!("WARNING: the keys of connections are written to {}", path.display()));
            recording.key_log = Some(KeyLogFile::open(&path).map_err(failed(&path))?);
        }
        if let Some(path) = messages {
            tell.tell(&format!("WARNING: all messages are written to {}", path.display()));
            recording.capture = Some(Capture::create(&path).map_err(failed(&path))?);
        }
        Ok(recording)
    }
}
