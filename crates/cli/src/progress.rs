//! Progress on standard error of operations that take longer than two seconds: a bar on a terminal, otherwise a line
//! every ten seconds. `--quiet` disables both.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval of lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Whether progress is disabled.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Sets once whether progress is disabled.
pub(crate) fn start(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Where progress is displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Nowhere,
    Bar,
    Lines,
}

impl View {
    fn of_standard_error() -> Self {
        match (QUIET.load(Ordering::Relaxed), std::io::stderr().is_terminal()) {
            (true, _) => Self::Nowhere,
            (false, true) => Self::Bar,
            (false, false) => Self::Lines,
        }
    }
}

/// A bar that appears after two seconds, or lines.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    view: View,
    shown: bool,
    next_line: Duration,
}

impl Progress {
    /// A bar for `total` steps.
    pub(crate) fn new(what: impl Into<String>, total: u64) -> Self {
        Self::with(what, total, "{msg} {bar:30} {pos}/{len} {elapsed}{left}")
    }

    /// A bar of time, in seconds.
    pub(crate) fn of_time(what: impl Into<String>, span: Duration) -> Self {
        Self::new(what, span.as_secs())
    }

    fn with(what: impl Into<String>, total: u64, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", |state: &ProgressState, text: &mut dyn Write| {
            if let Some(left) = left(state.elapsed(), state.pos(), state.len().unwrap_or(0)) {
                // Writing to a terminal that is gone is not an error.
                let _ = write!(text, ", {} s left", left.as_secs_f64().ceil());
            }
        }));
        bar.set_message(what.into());
        let view = View::of_standard_error();
        Self { bar, started: Instant::now(), view, shown: false, next_line: LINE_INTERVAL }
    }

    /// Updates message, position and total.
    pub(crate) fn of(&mut self, what: &'static str, position: u64, total: u64) {
        self.bar.set_message(what);
        self.bar.set_length(total);
        self.at(position);
    }

    /// Updates the position.
    pub(crate) fn at(&mut self, position: u64) {
        let elapsed = self.started.elapsed();
        if self.view == View::Lines && elapsed >= self.next_line {
            self.next_line = elapsed + LINE_INTERVAL;
            tell!("{}", line(&self.bar.message(), elapsed, position, self.bar.length().unwrap_or(0)));
        }
        if !self.shown && self.view == View::Bar && elapsed > Duration::from_secs(2) {
            // Two frames per second, because drawing must not disturb a measurement.
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(2));
            self.shown = true;
        }
        self.bar.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The text of a line.
fn line(what: &str, elapsed: Duration, position: u64, total: u64) -> String {
    let left = left(elapsed, position, total).map(|left| format!(", {} s left", left.as_secs_f64().ceil()));
    format!("{what}: {position} of {total} after {} s{}", elapsed.as_secs(), left.unwrap_or_default())
}

/// The estimated remaining time; unknown before the first step.
fn left(elapsed: Duration, position: u64, total: u64) -> Option<Duration> {
    let ahead = total.checked_sub(position)?;
    (position > 0)
        .then(|| Duration::try_from_secs_f64(elapsed.as_secs_f64() * ahead as f64 / position as f64).ok())?
}

/// A bar that moves by itself, for an operation that reports no progress.
pub(crate) struct Waiting {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// For an operation of about this duration. If it takes longer, the bar stays at its end.
    pub(crate) fn of_time(what: impl Into<String>, span: Duration) -> Self {
        let total = span.as_secs().max(1);
        Self::beside(Progress::new(what, total), move |started| started.as_secs().min(total))
    }

    /// For one of several steps of unknown duration: shows the number of the step and the elapsed time.
    pub(crate) fn of_step(what: &str, before: usize, steps: usize) -> Self {
        let what = format!("{what} ({} of {steps})", before + 1);
        let progress = Progress::with(what, steps as u64, "{spinner} {msg} {elapsed}");
        Self::beside(progress, move |_| before as u64)
    }

    fn beside(mut progress: Progress, position: impl Fn(Duration) -> u64 + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let show = move || {
            while !ended.load(Ordering::Relaxed) {
                progress.at(position(progress.started.elapsed()));
                progress.bar.tick();
                std::thread::park_timeout(Duration::from_millis(500));
            }
        };
        // Without a thread, no bar is shown.
        let thread = (View::of_standard_error() != View::Nowhere)
            .then(|| std::thread::Builder::new().spawn(show).ok());
        Self { is_over, thread: thread.flatten() }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_extrapolated() {
        let seconds = |elapsed, position, total| {
            left(Duration::from_secs(elapsed), position, total).map(|left| left.as_secs())
        };
        assert_eq!((seconds(5, 1, 10), seconds(9, 3, 10), seconds(9, 10, 10)), (Some(45), Some(21), Some(0)));
        // Unknown before the first step and after the last.
        assert_eq!((seconds(5, 0, 10), seconds(5, 11, 10)), (None, None));
        assert_eq!(left(Duration::MAX, 1, u64::MAX), None);
    }

    #[test]
    fn lines_show_the_position() {
        assert_eq!(line("reads", Duration::from_secs(20), 40, 100), "reads: 40 of 100 after 20 s, 30 s left");
        assert_eq!(line("starting", Duration::from_secs(10), 0, 1), "starting: 0 of 1 after 10 s");
    }
}
