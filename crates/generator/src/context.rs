//! The context of a load: receives progress, and can end the load.

use crate::client::Tell;
use crate::error::GeneratorError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taktwerk_load::clock;

/// Maximum sleep between checks for the end of the load, in nanoseconds.
const SLICE: u64 = 100_000_000;

/// Shows progress to a user; `()` shows nothing.
pub trait Attendant: Tell + Sync {
    /// Starts a step with this many parts. The step ends when the returned value is dropped.
    fn step(&self, what: &str, total: u64) -> Box<dyn Step>;
    /// Starts a step without intermediate progress and with this expected duration.
    fn wait(&self, what: &str, span: Duration) -> Box<dyn Step>;
    /// Path of the command `taktwerk`, because relays, servers and gateways run in separate processes.
    ///
    /// # Errors
    /// If it cannot be found.
    fn program(&self) -> io::Result<PathBuf>;
}

/// A displayed step.
pub trait Step {
    /// Sets the number of completed parts.
    fn at(&mut self, position: u64);
}

/// Shows nothing, and has no command.
impl Attendant for () {
    fn step(&self, _: &str, _: u64) -> Box<dyn Step> {
        Box::new(())
    }

    fn wait(&self, _: &str, _: Duration) -> Box<dyn Step> {
        Box::new(())
    }

    fn program(&self) -> io::Result<PathBuf> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Step for () {
    fn at(&mut self, _: u64) {}
}

/// Inputs of a generator in addition to its specification.
#[derive(Clone)]
pub struct Context<'a> {
    attendant: &'a dyn Attendant,
    end: Arc<AtomicBool>,
}

impl<'a> Context<'a> {
    /// A load ends soon after `end` is set, and returns its measurements so far.
    pub fn new(attendant: &'a dyn Attendant, end: Arc<AtomicBool>) -> Self {
        Self { attendant, end }
    }

    /// Whether the load should end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// The flag that ends the load.
    #[must_use]
    pub fn end(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.end)
    }

    /// Starts a step with this many parts.
    #[must_use]
    pub fn step(&self, what: &str, total: u64) -> Box<dyn Step> {
        self.attendant.step(what, total)
    }

    /// Starts a step that takes a fixed time; its parts are seconds.
    #[must_use]
    pub fn time(&self, what: &str, span: Duration) -> Box<dyn Step> {
        self.attendant.step(what, span.as_secs())
    }

    /// Starts a step without intermediate progress and with this expected duration.
    #[must_use]
    pub fn wait(&self, what: &str, span: Duration) -> Box<dyn Step> {
        self.attendant.wait(what, span)
    }

    /// Path of the command `taktwerk`.
    ///
    /// # Errors
    /// If it cannot be found.
    pub fn program(&self) -> Result<PathBuf, GeneratorError> {
        let missing = |error| GeneratorError::Environment(format!("cannot find this program: {error}"));
        self.attendant.program().map_err(missing)
    }

    /// Sleeps for a time, or until the load should end.
    pub fn sleep(&self, span: Duration) {
        self.sleep_until(clock::monotonic().saturating_add(nanos(span)));
    }

    /// Sleeps until a time of the monotonic clock in nanoseconds, or until the load should end.
    pub fn sleep_until(&self, end: u64) {
        let mut now = clock::monotonic();
        while now < end && !self.is_ended() {
            clock::sleep_until(end.min(now.saturating_add(SLICE)));
            now = clock::monotonic();
        }
    }

    /// Starts a measurement that ends after this many parts, or after its duration.
    pub(crate) fn measuring(
        &self,
        what: &str,
        count: Option<u64>,
        start: u64,
        duration: Duration,
    ) -> Measuring {
        let step = match count {
            Some(count) => self.step(what, count),
            None => self.time("measuring", duration),
        };
        let end = if count.is_some() { u64::MAX } else { start.saturating_add(nanos(duration)) };
        Measuring { step, start, end, count: count.unwrap_or(u64::MAX), is_counted: count.is_some() }
    }
}

impl Tell for Context<'_> {
    fn tell(&self, line: &str) {
        self.attendant.tell(line);
    }
}

/// A measurement that ends after a number of parts, or after its duration.
pub(crate) struct Measuring {
    step: Box<dyn Step>,
    start: u64,
    /// End on the monotonic clock in nanoseconds; never for a number of parts.
    pub(crate) end: u64,
    /// Number of parts; unlimited for a duration.
    pub(crate) count: u64,
    is_counted: bool,
}

impl Measuring {
    /// Shows the number of completed parts.
    pub(crate) fn at(&mut self, done: u64) {
        let seconds = || clock::monotonic().saturating_sub(self.start) / 1_000_000_000;
        let position = if self.is_counted { done } else { seconds() };
        self.step.at(position);
    }
}

/// Converts to nanoseconds.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sleeps_end_with_the_load() {
        let context = Context::new(&(), Arc::new(AtomicBool::new(true)));
        context.sleep(Duration::from_secs(365 * 86_400));
        context.end().store(false, Ordering::Relaxed);
        let begin = clock::monotonic();
        context.sleep(Duration::from_millis(1));
        assert!(clock::monotonic() >= begin + 1_000_000);
    }

    #[test]
    fn a_measurement_ends_by_its_number_or_by_its_time() {
        let context = Context::new(&(), Arc::default());
        let ends = |count| {
            let measuring = context.measuring("requests", count, 5, Duration::from_secs(10));
            (measuring.count, measuring.end)
        };
        assert_eq!(ends(Some(7)), (7, u64::MAX));
        assert_eq!(ends(None), (u64::MAX, 10_000_000_005));
    }
}
