//! Who has a load generated: is told how far it is, and can end it.

use crate::client::Tell;
use crate::error::GeneratorError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taktwerk_load::clock;

/// How long a sleep goes on before the next look at whether the load is to end, nanoseconds.
const SLICE: u64 = 100_000_000;

/// Shows a user, or nobody, what happens.
pub trait Attendant: Tell + Sync {
    /// A step of so many parts begins. It is over when the returned value is dropped.
    fn step(&self, what: &str, total: u64) -> Box<dyn Step>;
    /// Something begins that says nothing until it is over, and should take this long.
    fn wait(&self, what: &str, span: Duration) -> Box<dyn Step>;
    /// The command `taktwerk`: relays, servers and gateways run in processes of their own.
    ///
    /// # Errors
    /// If it cannot be found.
    fn program(&self) -> io::Result<PathBuf>;
}

/// A step that is shown.
pub trait Step {
    /// It is as far as this.
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

/// What a generator is given beside its specification.
#[derive(Clone)]
pub struct Context<'a> {
    attendant: &'a dyn Attendant,
    end: Arc<AtomicBool>,
}

impl<'a> Context<'a> {
    /// A load ends soon after `end` is set, and returns what it has measured until then.
    pub fn new(attendant: &'a dyn Attendant, end: Arc<AtomicBool>) -> Self {
        Self { attendant, end }
    }

    /// Whether the load is to end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// What is set when the load is to end.
    #[must_use]
    pub fn end(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.end)
    }

    /// A step of so many parts begins.
    #[must_use]
    pub fn step(&self, what: &str, total: u64) -> Box<dyn Step> {
        self.attendant.step(what, total)
    }

    /// A step of time begins; its parts are seconds.
    #[must_use]
    pub fn time(&self, what: &str, span: Duration) -> Box<dyn Step> {
        self.attendant.step(what, span.as_secs())
    }

    /// Something begins that says nothing until it is over, and should take this long.
    #[must_use]
    pub fn wait(&self, what: &str, span: Duration) -> Box<dyn Step> {
        self.attendant.wait(what, span)
    }

    /// The command `taktwerk`.
    ///
    /// # Errors
    /// If it cannot be found.
    pub fn program(&self) -> Result<PathBuf, GeneratorError> {
        let missing = |error| GeneratorError::Environment(format!("cannot find this program: {error}"));
        self.attendant.program().map_err(missing)
    }

    /// Sleeps, or until the load is to end.
    pub fn sleep(&self, span: Duration) {
        self.sleep_until(clock::monotonic().saturating_add(nanos(span)));
    }

    /// Sleeps until the monotonic clock reads so many nanoseconds, or until the load is to end.
    pub fn sleep_until(&self, end: u64) {
        let mut now = clock::monotonic();
        while now < end && !self.is_ended() {
            clock::sleep_until(end.min(now.saturating_add(SLICE)));
            now = clock::monotonic();
        }
    }

    /// A measurement begins that ends after so many parts, or without a number when its time is over.
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

/// A measurement that ends after so many parts, or when its time is over.
pub(crate) struct Measuring {
    step: Box<dyn Step>,
    start: u64,
    /// When its time is over, nanoseconds of the monotonic clock; never for a number of parts.
    pub(crate) end: u64,
    /// Its parts; all that fit into its time without a number.
    pub(crate) count: u64,
    is_counted: bool,
}

impl Measuring {
    /// Shows that so many parts are done.
    pub(crate) fn at(&mut self, done: u64) {
        let seconds = || clock::monotonic().saturating_sub(self.start) / 1_000_000_000;
        let position = if self.is_counted { done } else { seconds() };
        self.step.at(position);
    }
}

/// Whole nanoseconds.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_of_a_year_ends_when_the_load_is_to_end() {
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
