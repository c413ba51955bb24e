//! A thread that does something at fixed times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use taktwerk_lab::clock;

/// Runs a function every period until dropped.
///
/// The times are absolute: cycle `k` is due at `start + k · period`, however long earlier cycles took. A cycle whose
/// time has passed while another one ran is skipped, and counted: running late cycles back to back would be a burst
/// that no plant produces.
pub(crate) struct Updater {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long the thread sleeps at most before it looks whether it should end.
const LOOK: u64 = 100_000_000;

impl Updater {
    /// Starts the thread. `cycle` gets the number of the cycle, beginning with 1.
    pub(crate) fn start(
        name: &str,
        period_ns: u64,
        mut cycle: impl FnMut(u64) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let period = period_ns.max(1);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let start = phase(clock::monotonic());
            let (mut number, mut skipped) = (0u64, 0u64);
            while !asked.load(Ordering::Relaxed) {
                let due = start.saturating_add((number + 1).saturating_mul(period));
                let now = clock::monotonic();
                if now < due {
                    clock::sleep_until(due.min(now + LOOK));
                    continue;
                }
                let late = (now - due) / period;
                if late > 0 {
                    skipped += late;
                    tracing::warn!(
                        skipped,
                        "updates take longer than their period: lower --signals or raise --update"
                    );
                }
                number += 1 + late;
                cycle(number);
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

/// The server's publishing cycles start at multiples of 5 ms, or of 1 ms for short intervals. Updates start half a
/// step beside both: an update that met a cycle would be published sometimes before and sometimes after it, and a
/// subscription that keeps only the newest value would seem to miss some.
fn phase(now: u64) -> u64 {
    const GRID: u64 = 5_000_000;
    now.div_ceil(GRID) * GRID + GRID / 2
}

impl Drop for Updater {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in the cycle has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn cycles_do_not_drift_and_late_ones_are_skipped() {
        let (tell, told) = mpsc::channel();
        let start = clock::monotonic();
        let updater = Updater::start("test", 10_000_000, move |number| {
            tell.send((number, clock::monotonic())).unwrap();
            if number == 2 {
                thread::sleep(Duration::from_millis(35));
            }
        })
        .unwrap();
        let cycles: Vec<(u64, u64)> =
            (0..4).map(|_| told.recv_timeout(Duration::from_secs(5)).unwrap()).collect();
        drop(updater);
        assert_eq!((cycles[0].0, cycles[1].0), (1, 2));
        assert!(cycles[2].0 >= 5, "{cycles:?}");
        for (number, at) in cycles {
            assert!(at >= phase(start) + number * 10_000_000);
        }
    }
}
