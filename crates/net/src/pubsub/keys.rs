//! Sources of the keys of security groups. Requests run on their own thread, because a key service may be slow.

use super::nonces::NonceFile;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use taktwerk_pubsub::security::{KeyRequest, SecurityKeys};
use taktwerk_types::StatusCode;

/// Fetches keys; called on a thread that may block.
pub trait KeySource: Send {
    /// Fetches the keys of a group (GetSecurityKeys, Part 14 §8.3.2).
    ///
    /// # Errors
    /// The status with which the request failed; it is repeated later.
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode>;
}

/// Keys that were configured by hand and are never renewed: for tests and closed installations. The publisher stops
/// when it has used up their nonces.
#[derive(Debug, Clone, Default)]
pub struct StaticKeys {
    groups: BTreeMap<String, Given>,
}

#[derive(Debug, Clone)]
struct Given {
    keys: SecurityKeys,
    /// The file in which nonce numbers are reserved.
    nonces: Option<NonceFile>,
    has_failed: bool,
}

impl StaticKeys {
    /// No keys yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds keys that no other process has used or will use, such as those of a test. Nonces begin with number 1. Keys
    /// that are used again in another process or after a restart need [`Self::with_kept`].
    #[must_use]
    pub fn with(self, security_group_id: impl Into<String>, keys: SecurityKeys) -> Self {
        self.add(security_group_id.into(), keys, None)
    }

    /// Adds keys that are used again after a restart. A file keeps which nonce numbers were used with them.
    #[must_use]
    pub fn with_kept(
        self,
        security_group_id: impl Into<String>,
        keys: SecurityKeys,
        nonces: NonceFile,
    ) -> Self {
        self.add(security_group_id.into(), keys, Some(nonces))
    }

    fn add(mut self, id: String, keys: SecurityKeys, nonces: Option<NonceFile>) -> Self {
        self.groups.insert(id, Given { keys, nonces, has_failed: false });
        self
    }
}

impl KeySource for StaticKeys {
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
        let given = self.groups.get_mut(&request.security_group_id).ok_or(StatusCode::BAD_NOT_FOUND)?;
        let mut keys = given.keys.clone();
        if let Some(nonces) = &mut given.nonces {
            let reserved = nonces.reserve();
            if let (Err(error), false) = (&reserved, given.has_failed) {
                let (path, group) = (nonces.path().display(), &request.security_group_id);
                tracing::error!(%path, %error, group, "cannot reserve nonce numbers: nothing is sent with the key until this works");
            }
            given.has_failed = reserved.is_err();
            // Without a range, messages can still be decrypted.
            keys.nonces = Some(reserved.unwrap_or_default());
        }
        Ok(keys)
    }
}

/// The group and the result of a request.
pub(crate) type Answer = (String, Result<SecurityKeys, StatusCode>);

/// The thread that makes the requests.
#[derive(Debug)]
pub(crate) struct KeyThread {
    requests: Sender<KeyRequest>,
    answers: Receiver<Answer>,
}

impl KeyThread {
    /// Starts the thread. `wake` is called after every answer.
    pub(crate) fn start(
        mut source: Box<dyn KeySource>,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (requests, asked) = mpsc::channel::<KeyRequest>();
        let (tell, answers) = mpsc::channel();
        // The thread ends when its owner is dropped: at once, or when the current request has ended.
        std::thread::Builder::new().name("pubsub-keys".to_owned()).spawn(move || {
            while let Ok(request) = asked.recv() {
                let outcome = source.fetch(&request);
                if tell.send((request.security_group_id, outcome)).is_err() {
                    return;
                }
                wake();
            }
        })?;
        Ok(Self { requests, answers })
    }

    pub(crate) fn ask(&self, request: KeyRequest) {
        // The thread ends only after this sender is dropped.
        let _ = self.requests.send(request);
    }

    pub(crate) fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

/// How often loops poll for what cannot wake them.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
