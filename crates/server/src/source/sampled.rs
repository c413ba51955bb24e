//! Sampling for the recorder: a source of one value is also read while no client asks for it.

use super::{SourceDriver, Sources, Work, lock};
use crate::callback::{SourceRead, ValueSource};
use core::fmt;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use taktwerk_types::{DataValue, Instant, StatusCode, UtcTime, Variant};

/// The interval if neither the recording rule nor the Variable has one.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// The shortest interval.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// A recorded Variable.
pub(crate) trait Sampled: fmt::Debug + Send + Sync {
    /// Distinguishes existing Variables.
    fn index(&self) -> u32;
    /// Whether it was deleted.
    fn is_gone(&self) -> bool;
    /// The number of its last write.
    fn write(&self) -> u32;
    /// Stores a value unless it was written after the write with this number.
    fn set_since(&self, write: u32, value: Variant, status: StatusCode, times: (UtcTime, UtcTime));
}

/// Reads a recorded Variable at an interval.
#[derive(Debug)]
pub(super) struct Sampler {
    sources: Weak<Sources>,
    source: Arc<dyn ValueSource>,
    variable: Box<dyn Sampled>,
    interval: Duration,
    is_stopped: AtomicBool,
    is_asking: AtomicBool,
    /// Timers of an earlier driver are ignored.
    run: AtomicU64,
}

/// The answer can be stored as long as this exists. Without an answer the next reading is possible again, too.
struct Asking(Arc<Sampler>, u32);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.is_asking.store(false, Ordering::Relaxed);
    }
}

impl Asking {
    /// Stores an answer, unless the Variable was written since the source was asked: this answer may be older.
    fn answered(self, value: DataValue) {
        let Self(sampler, write) = &self;
        let Some(driver) = sampler.sources.upgrade().and_then(|sources| sources.driver()) else { return };
        let (status, now) = (value.status(), driver.now().utc);
        let times = (value.source_timestamp.unwrap_or(now), value.server_timestamp.unwrap_or(now));
        sampler.variable.set_since(*write, value.value.unwrap_or_default(), status, times);
    }
}

impl Sampler {
    fn start(self: &Arc<Self>, driver: &Arc<dyn SourceDriver>) {
        let run = self.run.fetch_add(1, Ordering::Relaxed) + 1;
        self.tick(driver.now().instant, run);
    }

    fn tick(self: &Arc<Self>, planned: Instant, run: u64) {
        let Some(sources) = self.sources.upgrade() else { return };
        if self.is_stopped.load(Ordering::Relaxed) || self.run.load(Ordering::Relaxed) != run {
            return;
        }
        if self.variable.is_gone() {
            return sources.forget(self);
        }
        let Some(driver) = sources.driver() else { return };
        // Completely missed intervals are skipped. The next one is planned first: a source that panics loses one reading, and
        // not all that follow.
        let next = (planned + self.interval).max(driver.now().instant);
        let sampler = Arc::clone(self);
        driver.at(next, Box::new(move || sampler.tick(next, run)));
        self.ask(&driver);
    }

    fn ask(self: &Arc<Self>, driver: &Arc<dyn SourceDriver>) {
        if self.is_asking.swap(true, Ordering::Relaxed) {
            return;
        }
        let asking = Asking(Arc::clone(self), self.variable.write());
        match self.source.read() {
            SourceRead::Now(value) => asking.answered(value),
            SourceRead::Blocking(run) => driver.run(Work::Blocking(Box::new(move || asking.answered(run())))),
            SourceRead::Later(future) => {
                driver.run(Work::Later(Box::pin(async move { asking.answered(future.await) })));
            }
        }
    }
}

impl Sources {
    /// Reads a recorded Variable's source at an interval, until the Variable is deleted. Replaces an earlier interval.
    pub(crate) fn sample(
        self: &Arc<Self>,
        source: Arc<dyn ValueSource>,
        variable: Box<dyn Sampled>,
        interval: Duration,
    ) {
        let interval = if interval.is_zero() { INTERVAL_DEFAULT } else { interval.max(INTERVAL_MIN) };
        let index = variable.index();
        let sampler = Arc::new(Sampler {
            sources: Arc::downgrade(self),
            source,
            variable,
            interval,
            is_stopped: AtomicBool::new(false),
            is_asking: AtomicBool::new(false),
            run: AtomicU64::new(0),
        });
        if let Some(before) = lock(&self.samplers).insert(index, Arc::clone(&sampler)) {
            before.is_stopped.store(true, Ordering::Relaxed);
        }
        if let Some(driver) = self.driver() {
            sampler.start(&driver);
        }
    }

    /// Ends the sampling of a recorded Variable.
    pub(crate) fn stop_sampling(&self, index: u32) {
        if let Some(sampler) = lock(&self.samplers).remove(&index) {
            sampler.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Begins the sampling with a new driver.
    pub(super) fn start_samplers(&self, driver: &Arc<dyn SourceDriver>) {
        let samplers: Vec<_> = lock(&self.samplers).values().map(Arc::clone).collect();
        samplers.iter().for_each(|sampler| sampler.start(driver));
    }

    fn forget(&self, sampler: &Arc<Sampler>) {
        let mut samplers = lock(&self.samplers);
        let index = sampler.variable.index();
        if samplers.get(&index).is_some_and(|known| Arc::ptr_eq(known, sampler)) {
            samplers.remove(&index);
        }
    }
}
