//! Stopping a server from other threads.

use crate::alarms::AlarmSaver;
use crate::history::Recording;
use core::time::Duration;
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Instant;

/// How often the end of connections is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Stops a server from any thread, also while the thread that owns the [`RunningServer`](super::RunningServer) is blocked. For
/// processes that end then.
#[derive(Debug, Clone)]
pub struct Stopper {
    inner: taktwerk_net::Stopper,
    recording: Option<Arc<Recording>>,
    alarms: Weak<AlarmSaver>,
}

impl Stopper {
    pub(super) const fn new(
        inner: taktwerk_net::Stopper,
        recording: Option<Arc<Recording>>,
        alarms: Weak<AlarmSaver>,
    ) -> Self {
        Self { inner, recording, alarms }
    }

    /// Stops listening and ends all sessions. Closes connections that have not ended after `grace`. Then it stores the history,
    /// which takes at most ten seconds.
    pub fn stop(&self, grace: Duration) {
        let end = Instant::now() + grace;
        self.inner.stop(grace);
        while self.inner.connections() > 0 && Instant::now() < end {
            sleep(LOOK_EVERY);
        }
        if let Some(recording) = &self.recording {
            recording.stop();
        }
    }

    /// Writes the states of alarms to their file, if there is one. For a process that ends after [`Self::stop`]. Blocks.
    pub fn save_alarms(&self) {
        if let Some(alarms) = self.alarms.upgrade() {
            alarms.save();
        }
    }

    /// How many values and events of the history are not stored, and would be lost if the process ended now. No further ones are
    /// recorded after a call.
    #[must_use]
    pub fn unstored_history(&self) -> u64 {
        self.recording.as_ref().map_or(0, |recording| recording.unstored())
    }
}
