//! A thread that calls a function at fixed times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use taktwerk_lab::clock;

/// Runs a function every period until dropped.
///
/// The times are absolute: cycle `k` is due at `start + k · period`, however long earlier cycles took. A cycle that is
/// overdue is skipped and counted: running late cycles back to back would cause a burst.
pub(crate) struct Updater {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Maximum sleep before the thread checks whether to end, in nanoseconds.
const CHECK_INTERVAL_NS: u64 = 100_000_000;

impl Updater {
    /// Starts the thread. `cycle` gets the number of the cycle, starting with 1.
    pub(crate) fn start(
        name: &str,
        period_ns: u64,
        cycle: impl FnMut(u64) + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::start_at(name, clock::monotonic(), period_ns, cycle)
    }

    /// The same with cycles at `start_ns + k · period`, in nanoseconds of the monotonic clock.
    pub(crate) fn start_at(
        name: &str,
        start_ns: u64,
        period_ns: u64,
        mut cycle: impl FnMut(u64) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let late = late(name);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut cycles = Cycles::new(start_ns, period_ns);
            while !asked.load(Ordering::Relaxed) {
                let now = clock::monotonic();
                match cycles.next(now) {
                    Err(due) => clock::sleep_until(due.min(now + CHECK_INTERVAL_NS)),
                    Ok((number, skipped)) => {
                        if skipped > 0 {
                            tracing::warn!(skipped, "{late}");
                        }
                        cycle(number);
                    }
                }
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

/// The warning for skipped cycles, with the option that leads to them, if there is one.
fn late(name: &str) -> String {
    let advice = match name {
        "signals" => "lower --signals or raise --update",
        "events" => "lower --events",
        _ => "this process gets too little CPU",
    };
    format!("updates of the {name} take longer than their period: {advice}")
}

/// The schedule of cycles.
struct Cycles {
    start: u64,
    period: u64,
    /// The last cycle that ran.
    number: u64,
}

impl Cycles {
    fn new(now: u64, period: u64) -> Self {
        Self { start: now, period: period.max(1), number: 0 }
    }

    /// The due cycle and the number of missed ones before it; or the time of the next one.
    fn next(&mut self, now: u64) -> Result<(u64, u64), u64> {
        let due = self.start.saturating_add((self.number + 1).saturating_mul(self.period));
        if now < due {
            return Err(due);
        }
        let missed = (now - due) / self.period;
        self.number += 1 + missed;
        Ok((self.number, missed))
    }
}

impl Drop for Updater {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_name_the_option_that_was_used() {
        assert!(late("signals").contains("--signals") && late("events").contains("--events"));
        assert!(!late("plant").contains("--"));
    }
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn cycles_do_not_drift_and_late_ones_are_skipped() {
        let start = 7;
        let mut cycles = Cycles::new(start, 100);
        assert_eq!(cycles.next(start), Err(start + 100));
        assert_eq!(cycles.next(start + 100), Ok((1, 0)));
        // Late by less than a period: the next cycle keeps its time.
        assert_eq!(cycles.next(start + 260), Ok((2, 0)));
        assert_eq!(cycles.next(start + 261), Err(start + 300));
        assert_eq!(cycles.next(start + 655), Ok((6, 3)));
        assert_eq!(cycles.next(start + 699), Err(start + 700));
    }

    #[test]
    fn the_thread_runs_rising_cycles_until_it_is_dropped() {
        let (tell, told) = mpsc::channel();
        let updater = Updater::start("test", 1_000_000, move |number| tell.send(number).unwrap()).unwrap();
        let numbers: Vec<u64> = (0..4).map(|_| told.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
        drop(updater);
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        // Receives until the sender is dropped.
        while let Ok(number) = told.recv() {
            assert!(number > numbers[3]);
        }
    }
}
