//! The alarms of a server as a whole: lists for dashboards, operators' actions, and states that survive a restart.

pub use crate::space::alarm::{Alarm, AlarmBuilder};
pub use crate::space::alarm_group::AlarmGroupBuilder;
pub use taktwerk_server::alarm::{
    ConditionSpec, ConditionView, Dialog, GroupKind, GroupSpec, Kind, LimitSet, Limits, Method, Operation,
    OwnFields, Quantity, Rules, Severities, Shelving, State,
};

pub use taktwerk_server::space::{AlarmError, ConditionReport};

use core::time::Duration;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use taktwerk_net::clock;
use taktwerk_server::AddressSpace;
use taktwerk_types::{NodeId, StatusCode};

/// How often changed states are written to their file: what a crash can lose.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// Conditions that a list has at most.
pub const LISTED_MAX: usize = 10_000;

/// Lists conditions and does what operators do: the seam for user interfaces in the server's own process.
#[derive(Debug, Clone)]
pub struct Conditions {
    space: Arc<AddressSpace>,
}

impl Conditions {
    /// Those of an address space.
    #[must_use]
    pub fn of(space: &Arc<AddressSpace>) -> Self {
        Self { space: Arc::clone(space) }
    }

    /// The conditions that operators should see (Retain), with their branches, the most urgent first; at most
    /// [`LISTED_MAX`].
    #[must_use]
    pub fn retained(&self) -> Vec<ConditionView> {
        let mut found = self.space.conditions(true, LISTED_MAX);
        found.sort_by(|one, other| {
            let key = |view: &ConditionView| (view.state.severity, view.state.time);
            key(other).partial_cmp(&key(one)).unwrap_or(core::cmp::Ordering::Equal)
        });
        found
    }

    /// All conditions, at most [`LISTED_MAX`].
    #[must_use]
    pub fn all(&self) -> Vec<ConditionView> {
        self.space.conditions(false, LISTED_MAX)
    }

    /// Acknowledges the state that an event told of.
    ///
    /// # Errors
    /// Bad_NodeIdUnknown, Bad_EventIdUnknown if the state is another one by now, Bad_ConditionBranchAlreadyAcked,
    /// Bad_ConditionDisabled.
    pub fn acknowledge(&self, view: &ConditionView, user: &str, comment: &str) -> Result<(), StatusCode> {
        self.answer(Method::Acknowledge, view, user, comment)
    }

    /// Confirms it.
    ///
    /// # Errors
    /// As [`Self::acknowledge`], with Bad_ConditionBranchAlreadyConfirmed.
    pub fn confirm(&self, view: &ConditionView, user: &str, comment: &str) -> Result<(), StatusCode> {
        self.answer(Method::Confirm, view, user, comment)
    }

    fn answer(
        &self,
        method: Method,
        view: &ConditionView,
        user: &str,
        comment: &str,
    ) -> Result<(), StatusCode> {
        let operation = Operation::new(method).event(view.event_id.clone()).comment(comment).by(user);
        self.operate(&view.id, &operation)
    }

    /// Does anything else that operators do.
    ///
    /// # Errors
    /// The result code of the Method. Whether the user may call it is for the caller to check, with
    /// [`AddressSpace::check_rights`].
    pub fn operate(&self, condition: &NodeId, operation: &Operation) -> Result<(), StatusCode> {
        self.space.operate_condition(condition, operation, clock::wall())
    }
}

/// A file with the states of all conditions. Dropping it writes them a last time.
#[derive(Debug)]
pub(crate) struct AlarmFile {
    path: PathBuf,
    space: Arc<AddressSpace>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl AlarmFile {
    /// Reads the states of before, and writes those of now whenever they have changed.
    ///
    /// # Errors
    /// The file cannot be read or contains something else, or a thread cannot be started.
    pub(crate) fn open(path: &Path, space: &Arc<AddressSpace>) -> io::Result<Self> {
        match fs::read(path) {
            Ok(bytes) => {
                let restored = space.alarms_or_new().restore(&bytes);
                let count = restored.map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
                })?;
                tracing::info!(count, file = %path.display(), "states of alarms were read");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (asked, place, saved) = (Arc::clone(&stop), path.to_owned(), Arc::clone(space));
        let thread = thread::Builder::new().name("taktwerk-alarm-file".to_owned()).spawn(move || {
            let mut last = saved.alarms_or_new().changes();
            loop {
                let flag = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = asked.1.wait_timeout_while(flag, SAVE_EVERY, |stop| !*stop);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                let changes = saved.alarms_or_new().changes();
                if changes != last && save(&place, &saved) {
                    last = changes;
                }
            }
        })?;
        Ok(Self { path: path.to_owned(), space: Arc::clone(space), stop, thread: Some(thread) })
    }
}

impl Drop for AlarmFile {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told already.
            let _ = thread.join();
        }
        save(&self.path, &self.space);
    }
}

/// Writes the states beside the file and puts it in its place, so that there is always a whole one. Says whether it worked.
fn save(path: &Path, space: &AddressSpace) -> bool {
    let bytes = space.save_alarms();
    if bytes.is_empty() {
        return true;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || -> io::Result<()> {
        let mut file = fs::File::create(&beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    match write() {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, file = %path.display(), "states of alarms are not saved; it is tried again");
            false
        }
    }
}
