//! `--allow-key-log`: keys and captures for Wireshark, in files that the environment names. The environment alone does
//! nothing: a variable that was left somewhere must not give away what channels protect.

use super::Tell;
use crate::error::GeneratorError;
use std::path::PathBuf;
use std::sync::Arc;
use taktwerk_crypto::KeyLog;
use taktwerk_net::capture::{Capture, KeyLogFile};

/// The variable that names the file for keys.
const KEY_LOG: &str = "OPCUA_KEYLOGFILE";
/// The variable that names the file for messages.
const CAPTURE: &str = "OPCUA_PCAP_FILE";

/// What is recorded.
#[derive(Debug, Default)]
pub struct Recording {
    /// Where keys are written.
    pub key_log: Option<Arc<dyn KeyLog>>,
    /// Where messages are written.
    pub capture: Option<Arc<Capture>>,
}

impl Recording {
    /// What the environment names, if it is allowed.
    pub fn open(is_allowed: bool, tell: &dyn Tell) -> Result<Self, GeneratorError> {
        let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let (keys, messages) = (named(KEY_LOG), named(CAPTURE));
        if !is_allowed {
            for (name, _) in
                [(KEY_LOG, &keys), (CAPTURE, &messages)].iter().filter(|(_, path)| path.is_some())
            {
                tracing::info!("{name} is set but not used: that takes --allow-key-log");
            }
            return Ok(Self::default());
        }
        if keys.is_none() && messages.is_none() {
            return Err(GeneratorError::Usage(format!(
                "--allow-key-log needs to know where to write: set {KEY_LOG} or {CAPTURE} to a file"
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
            tell.tell(&format!("WARNING: what goes over connections is written to {}", path.display()));
            recording.capture = Some(Capture::create(&path).map_err(failed(&path))?);
        }
        Ok(recording)
    }
}
