//! The alarms of a server as a whole: lists for dashboards, operators' actions, and a file for states that must survive a
//! restart.

pub use crate::space::alarm::{Alarm, AlarmBuilder};
pub use crate::space::alarm_group::AlarmGroupBuilder;
pub use taktwerk_server::alarm::{
    ConditionSpec, ConditionView, Dialog, GroupKind, GroupSpec, Kind, LimitSet, Limits, Method, Operation,
    OwnFields, Quantity, Rules, Severities, Shelving, State,
};

pub use taktwerk_server::space::{AlarmError, ConditionReport};

use core::time::Duration;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use taktwerk_files::{FileLock, PRIVATE, read_bytes, replace};
use taktwerk_net::clock;
use taktwerk_server::AddressSpace;
use taktwerk_types::{NodeId, StatusCode};

/// Interval for writing changed states to the file: the most that a crash can lose.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// Longest file of states in bytes: enough for more than a million alarms.
const FILE_LEN_MAX: u64 = 512 << 20;
/// Most conditions in a list.
pub const LISTED_MAX: usize = 10_000;

/// Lists conditions and performs operators' actions, for user interfaces in the server's own process.
#[derive(Debug, Clone)]
pub struct Conditions {
    space: Arc<AddressSpace>,
}

impl Conditions {
    /// The conditions of an address space.
    #[must_use]
    pub fn of(space: &Arc<AddressSpace>) -> Self {
        Self { space: Arc::clone(space) }
    }

    /// Adds a condition that the builders do not support.
    ///
    /// # Errors
    /// As [`AlarmBuilder::add`].
    pub fn add(&self, spec: ConditionSpec) -> Result<(), AlarmError> {
        self.space.add_condition(spec, clock::wall())?;
        crate::space::alarm_thread::watch(&self.space);
        Ok(())
    }

    /// Replaces the definition of the condition with the same id. It keeps what operators did, such as acknowledgement
    /// and shelving, and is evaluated at once. A condition of another type, or with another input, starts anew.
    ///
    /// # Errors
    /// As [`Self::add`], or the condition does not exist. Nothing has changed then.
    pub fn redefine(&self, spec: ConditionSpec) -> Result<(), AlarmError> {
        self.space.redefine_condition(spec, clock::wall())?;
        crate::space::alarm_thread::watch(&self.space);
        Ok(())
    }

    /// Removes a condition. Clients receive a last event without Retain. Returns whether it existed.
    pub fn remove(&self, condition: &NodeId) -> bool {
        self.space.remove_condition(condition, clock::wall())
    }

    /// Adds a group of existing alarms.
    ///
    /// # Errors
    /// As [`AlarmGroupBuilder::add`].
    pub fn add_group(&self, spec: &GroupSpec) -> Result<(), AlarmError> {
        self.space.add_alarm_group(spec, clock::wall())?;
        crate::space::alarm_thread::watch(&self.space);
        Ok(())
    }

    /// Removes a group. Alarms that only it has suppressed are no longer suppressed. Returns whether it existed.
    pub fn remove_group(&self, group: &NodeId) -> bool {
        self.space.remove_alarm_group(group, clock::wall())
    }

    /// Whether a group with all these alarms exists. An alarm that was removed and added again belongs to no group.
    #[must_use]
    pub fn has_group(&self, spec: &GroupSpec) -> bool {
        self.space.has_alarm_group(spec)
    }

    /// The conditions that operators should see (Retain), with their branches, the most urgent first. At most [`LISTED_MAX`].
    #[must_use]
    pub fn retained(&self) -> Vec<ConditionView> {
        let mut found = self.space.conditions(true, LISTED_MAX);
        found.sort_by(|one, other| {
            let key = |view: &ConditionView| (view.state.severity, view.state.since());
            key(other).partial_cmp(&key(one)).unwrap_or(core::cmp::Ordering::Equal)
        });
        found
    }

    /// All conditions, at most [`LISTED_MAX`].
    #[must_use]
    pub fn all(&self) -> Vec<ConditionView> {
        self.space.conditions(false, LISTED_MAX)
    }

    /// Acknowledges the state that an event reported.
    ///
    /// # Errors
    /// Bad_NodeIdUnknown, Bad_EventIdUnknown if the state has changed since, Bad_ConditionBranchAlreadyAcked,
    /// Bad_ConditionDisabled.
    pub fn acknowledge(&self, view: &ConditionView, user: &str, comment: &str) -> Result<(), StatusCode> {
        self.answer(Method::Acknowledge, view, user, comment)
    }

    /// Confirms the state that an event reported.
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

    /// Performs any other operator action.
    ///
    /// # Errors
    /// The result code of the Method. The caller must check the user's rights with [`AddressSpace::check_rights`].
    pub fn operate(&self, condition: &NodeId, operation: &Operation) -> Result<(), StatusCode> {
        self.space.operate_condition(condition, operation, clock::wall())
    }
}

/// A file with the states of all conditions. The states are written once more on drop.
#[derive(Debug)]
pub(crate) struct AlarmFile {
    saver: Arc<AlarmSaver>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

/// Writes the states to the file.
#[derive(Debug)]
pub(crate) struct AlarmSaver {
    space: Arc<AddressSpace>,
    /// Released after the last write.
    lock: FileLock,
    /// So that an older state does not replace a newer one.
    saving: Mutex<()>,
}

impl AlarmFile {
    /// Restores the saved states, and saves them whenever they change.
    ///
    /// # Errors
    /// The file is used by another server, cannot be read or has other content, or a thread cannot be started.
    pub(crate) fn open(path: &Path, space: &Arc<AddressSpace>) -> io::Result<Self> {
        let lock = FileLock::of(path)?;
        if let Some(warning) = lock.warning(path) {
            tracing::warn!("{warning}");
        }
        // The file that is locked, even if a link is changed later.
        let path = lock.path();
        match read_bytes(path, FILE_LEN_MAX) {
            // Left by a crash while another program created the file, or by a full disk. There is nothing to restore.
            Ok(bytes) if bytes.is_empty() => {
                tracing::warn!(file = %path.display(), "the file with alarm states is empty: alarms start without saved states");
            }
            Ok(bytes) => {
                let restored = space.alarms_or_new().restore(&bytes);
                let count = restored.map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
                })?;
                tracing::info!(count, file = %path.display(), "alarm states were restored");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let saver = Arc::new(AlarmSaver { space: Arc::clone(space), lock, saving: Mutex::default() });
        let (asked, saved) = (Arc::clone(&stop), Arc::clone(&saver));
        let thread = thread::Builder::new().name("taktwerk-alarm-file".to_owned()).spawn(move || {
            let mut last = saved.space.alarms_or_new().changes();
            loop {
                let flag = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = asked.1.wait_timeout_while(flag, SAVE_EVERY, |stop| !*stop);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                let changes = saved.space.alarms_or_new().changes();
                if changes != last && saved.save() {
                    last = changes;
                }
            }
        })?;
        Ok(Self { saver, stop, thread: Some(thread) })
    }

    /// For a process that ends while this cannot be dropped. Weak, because the last owner releases the file.
    pub(crate) fn saver(&self) -> Weak<AlarmSaver> {
        Arc::downgrade(&self.saver)
    }
}

impl Drop for AlarmFile {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
        self.saver.save();
    }
}

impl AlarmSaver {
    /// Writes a temporary file and renames it, so that there is always a complete one. Returns whether it succeeded.
    pub(crate) fn save(&self) -> bool {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = self.space.save_alarms();
        if bytes.is_empty() {
            return true;
        }
        let path = self.lock.path();
        let written = if bytes.len() as u64 > FILE_LEN_MAX {
            Err(io::Error::other("there are more alarm states than can be restored"))
        } else {
            replace(path, &bytes, PRIVATE)
        };
        match written {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(%error, file = %path.display(), "cannot save the alarm states; retrying");
                false
            }
        }
    }
}
