//! Checks whether this machine is idle enough to generate load. On a busy one, the limits found would be its own.

use std::time::Duration;
use taktwerk_lab::capacity::WAITED;
use taktwerk_lab::clock;
use taktwerk_lab::process::{Process, Turns};

/// Duration of the check.
const CHECK_TIME: Duration = Duration::from_millis(600);
/// Work between two pauses, and the pause: similar to a small load.
const WORK: Duration = Duration::from_micros(300);
const PAUSE: Duration = Duration::from_micros(700);

/// Works in short bursts like a load generator. Returns the reason if it had to wait for a CPU.
pub(super) fn disturbance() -> Option<String> {
    let process = Process::own();
    let before = process.turns().ok()?;
    let end = clock::monotonic() + CHECK_TIME.as_nanos() as u64;
    while clock::monotonic() < end {
        let until = clock::thread_cpu() + WORK.as_nanos() as u64;
        while clock::thread_cpu() < until {
            std::hint::spin_loop();
        }
        std::thread::sleep(PAUSE);
    }
    judge(process.turns().ok()?.since(&before))
}

fn judge(turns: Turns) -> Option<String> {
    let share = turns.waiting as f64 / (turns.on_cpu + turns.waiting).max(1) as f64;
    (share > 2.0 * WAITED).then(|| {
        format!(
            "this machine is busy: a small load waited for a CPU during {:.0} % of its time before anything was tried. Stop the \
             other programs, or run the search from another machine",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_busy_if_work_waits_for_a_cpu() {
        let of = |on_cpu: u64, waiting: u64| judge(Turns { on_cpu, waiting });
        assert_eq!((of(180_000_000, 9_000_000), of(0, 0)), (None, None));
        let why = of(180_000_000, 180_000_000).unwrap();
        assert!(why.contains("50 % of its time"), "{why}");
    }
}
