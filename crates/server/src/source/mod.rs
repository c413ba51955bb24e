//! Sources of values that take their time: devices, databases, other servers.
//!
//! A source is asked at most one question at a time, and has a deadline for the answer. When that has passed, the values
//! are what the server knew last, with Uncertain_LastUsableValue, and from the next interval on Bad_NoCommunication; both
//! timestamps say when that was found out (Part 4 §7.11.3, §7.11.4). An answer that comes too late is dropped, because
//! nothing says what it is worth by then; the source is asked again with the next interval. So a source that hangs costs
//! its own values and one thread, and nobody else anything.
//!
//! - `line`: whether a source is being asked; [`single`]: sources of one value, asked by services and samplings;
//! - [`group`]: sources of many values, asked at an interval of their own; `reply`: a future for an answer.
//!
//! Nothing here has a clock or a thread: [`SourceDriver`] has.

pub mod group;
mod line;
mod reply;
mod single;

use crate::callback::{BoxFuture, ValueSource};
use crate::now::Now;
use core::fmt;
use group::Group;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_types::{DataValue, Instant, StatusCode, UtcTime, Variant};

pub use crate::callback::DEADLINE_DEFAULT;

/// Work of a source. To drop it without running it is an answer, too: the source has failed.
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

/// Where a value goes, and stays until the next one.
pub trait Target: Send + Sync {
    /// The value that is there.
    fn get(&self) -> DataValue;
    /// Stores a value with its status, source time and server time.
    fn set(&self, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime);
}

/// What sources need of the operating system.
pub trait SourceDriver: Send + Sync {
    /// The time.
    fn now(&self) -> Now;
    /// Runs work soon. Work that blocks must not keep other work waiting for long.
    fn run(&self, work: Work);
    /// Calls `then` at a time. It returns soon.
    fn at(&self, at: Instant, then: Box<dyn FnOnce() + Send>);
    /// No further work or call is wanted.
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sources {
    /// Starts asking, with a driver that runs.
    pub fn start(&self, driver: Arc<dyn SourceDriver>) {
        *lock(&self.driver) = Some(Arc::clone(&driver));
        let groups = lock(&self.groups).clone();
        groups.iter().for_each(|group| group.start(&driver));
    }

    /// Stops asking. Questions under way are left to themselves.
    pub fn stop(&self) {
        if let Some(driver) = lock(&self.driver).take() {
            driver.stop();
        }
    }

    fn driver(&self) -> Option<Arc<dyn SourceDriver>> {
        lock(&self.driver).clone()
    }

    /// The same source with its deadline watched, and asked once at a time however many want its value. Without a driver
    /// it is as it was.
    #[must_use]
    pub fn guard(self: &Arc<Self>, source: Arc<dyn ValueSource>) -> Arc<dyn ValueSource> {
        Arc::new(single::Guarded::new(Arc::clone(self), source))
    }

    /// Starts asking a source of many values.
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

/// A value whose source does not answer: what was known last, for a while.
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
