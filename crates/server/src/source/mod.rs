//! Slow value sources: devices, databases, other servers.
//!
//! A source gets at most one request at a time, with a deadline. After the deadline, its values keep the last known
//! value with Uncertain_LastUsableValue, and from the next interval on they are Bad_NoCommunication. Both timestamps
//! are the time of that change (Part 4 §7.11.3, §7.11.4). A late answer is dropped, because its age is unknown; the
//! source is polled again at the next interval. So a source that hangs affects only its own values and one thread.
//!
//! - `line`: the request state of a source; [`single`]: sources of one value, for services and sampling;
//! - [`group`]: sources of many values, polled at their own interval; `reply`: a future for an answer;
//! - `sampled`: sources of one value that are recorded.
//!
//! This module has no clock and no threads: [`SourceDriver`] provides them.

pub mod group;
mod line;
mod reply;
mod sampled;
mod single;

use crate::callback::{BoxFuture, ValueSource};
use crate::now::Now;
use core::fmt;
use group::Group;
use sampled::Sampler;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_types::{DataValue, Instant, StatusCode, UtcTime, Variant};

pub use crate::callback::DEADLINE_DEFAULT;
pub(crate) use sampled::Sampled;

/// Work of a source. Dropping it without running it means that the source has failed.
pub enum Work {
    /// For a thread that may block.
    Blocking(Box<dyn FnOnce() + Send>),
    /// For an executor.
    Later(BoxFuture<()>),
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking(_) => "Blocking",
            Self::Later(_) => "Later",
        })
    }
}

/// The destination of values. It keeps the last value.
pub trait Target: Send + Sync {
    /// The stored value.
    fn get(&self) -> DataValue;
    /// Stores a value with its status, source time and server time.
    fn set(&self, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime);
}

/// The services of the operating system that sources need.
pub trait SourceDriver: Send + Sync {
    /// The time.
    fn now(&self) -> Now;
    /// Runs work soon. Blocking work must not delay other work for long.
    fn run(&self, work: Work);
    /// Calls `then`, which returns soon, at a time.
    fn at(&self, at: Instant, then: Box<dyn FnOnce() + Send>);
    /// Stops: no further work or call is needed.
    fn stop(&self);
}

impl fmt::Debug for dyn SourceDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceDriver")
    }
}

/// The sources of an address space.
#[derive(Debug, Default)]
pub struct Sources {
    driver: Mutex<Option<Arc<dyn SourceDriver>>>,
    groups: Mutex<Vec<Arc<Group>>>,
    /// By slot.
    samplers: Mutex<BTreeMap<u32, Arc<Sampler>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sources {
    /// Starts polling, with a running driver.
    pub fn start(&self, driver: Arc<dyn SourceDriver>) {
        *lock(&self.driver) = Some(Arc::clone(&driver));
        let groups = lock(&self.groups).clone();
        groups.iter().for_each(|group| group.start(&driver));
        self.start_samplers(&driver);
    }

    /// Stops polling. Requests in progress are abandoned.
    pub fn stop(&self) {
        if let Some(driver) = lock(&self.driver).take() {
            driver.stop();
        }
    }

    fn driver(&self) -> Option<Arc<dyn SourceDriver>> {
        lock(&self.driver).clone()
    }

    /// Wraps a source with a deadline and at most one request at a time, however many clients read its value. Without a
    /// driver it behaves as before.
    #[must_use]
    pub fn guard(self: &Arc<Self>, source: Arc<dyn ValueSource>) -> Arc<dyn ValueSource> {
        Arc::new(single::Guarded::new(Arc::clone(self), source))
    }

    /// Starts polling a source with many values.
    #[must_use]
    pub fn add(self: &Arc<Self>, spec: group::GroupSpec) -> group::SourceHandle {
        let group = Group::new(self, spec);
        let driver = {
            let mut groups = lock(&self.groups);
            groups.retain(|group| !group.is_stopped());
            groups.push(Arc::clone(&group));
            self.driver()
        };
        if let Some(driver) = driver {
            group.start(&driver);
        }
        group::SourceHandle(group)
    }
}

/// The value of a source that does not answer: for a while the last known value.
fn lost(last: Option<DataValue>, is_usable: bool, now: Now) -> DataValue {
    let last = last.filter(|last| is_usable && last.value.is_some() && !last.status().is_bad());
    let value = match last {
        Some(last) => DataValue { status: Some(StatusCode::UNCERTAIN_LAST_USABLE_VALUE), ..last },
        None => DataValue::from_status(StatusCode::BAD_NO_COMMUNICATION),
    };
    value.at(now.utc, now.utc)
}

#[cfg(test)]
mod tests;
