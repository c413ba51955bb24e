//! Where the keys of security groups come from: a thread of its own asks, because a key service may be slow.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use taktwerk_pubsub::security::{KeyRequest, SecurityKeys};
use taktwerk_types::StatusCode;

/// Answers requests for keys; called on a thread that may wait.
pub trait KeySource: Send {
    /// Asks for the keys of a group (GetSecurityKeys, Part 14 §8.3.2).
    ///
    /// # Errors
    /// The status with which the request failed; it is made again later.
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode>;
}

/// Keys that were handed over by hand and are never renewed: for tests and closed installations. The publisher stops
/// when it has used them up.
#[derive(Debug, Clone, Default)]
pub struct StaticKeys {
    groups: BTreeMap<String, SecurityKeys>,
}

impl StaticKeys {
    /// No keys yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With the keys of a group.
    #[must_use]
    pub fn with(mut self, security_group_id: impl Into<String>, keys: SecurityKeys) -> Self {
        self.groups.insert(security_group_id.into(), keys);
        self
    }
}

impl KeySource for StaticKeys {
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
        self.groups.get(&request.security_group_id).cloned().ok_or(StatusCode::BAD_NOT_FOUND)
    }
}

/// What came of a request.
pub(crate) type Answer = (String, Result<SecurityKeys, StatusCode>);

/// The thread that asks.
#[derive(Debug)]
pub(crate) struct KeyThread {
    requests: Sender<KeyRequest>,
    answers: Receiver<Answer>,
}

impl KeyThread {
    /// Starts it. `wake` is called after every answer.
    pub(crate) fn start(
        mut source: Box<dyn KeySource>,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (requests, asked) = mpsc::channel::<KeyRequest>();
        let (tell, answers) = mpsc::channel();
        // It ends when its owner is gone: at once, or when the request that runs has failed.
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
        // The thread ends only after this.
        let _ = self.requests.send(request);
    }

    pub(crate) fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

/// How often loops look for what cannot wake them.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
