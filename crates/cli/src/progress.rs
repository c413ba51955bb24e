//! Progress of what takes longer than two seconds, on standard error: a bar on a terminal, elsewhere a line every ten
//! seconds. `--quiet` turns both off.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often there is a line where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Whether nothing is to be shown.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Says once whether progress is shown at all.
pub(crate) fn start(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Where progress is shown.
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

    /// A bar of time: its steps are seconds.
    pub(crate) fn of_time(what: impl Into<String>, span: Duration) -> Self {
        Self::new(what, span.as_secs())
    }

    fn with(what: impl Into<String>, total: u64, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", |state: &ProgressState, text: &mut dyn Write| {
            if let Some(left) = left(state.elapsed(), state.pos(), state.len().unwrap_or(0)) {
                // Nobody can be told that a terminal is gone.
                let _ = write!(text, ", {} s left", left.as_secs_f64().ceil());
            }
        }));
        bar.set_message(what.into());
        let view = View::of_standard_error();
        Self { bar, started: Instant::now(), view, shown: false, next_line: LINE_INTERVAL }
    }

    /// Shows how far it is, of how much, and with what.
    pub(crate) fn of(&mut self, what: &'static str, position: u64, total: u64) {
        self.bar.set_message(what);
        self.bar.set_length(total);
        self.at(position);
    }

    /// Shows how far it is.
    pub(crate) fn at(&mut self, position: u64) {
        let elapsed = self.started.elapsed();
        if self.view == View::Lines && elapsed >= self.next_line {
            self.next_line = elapsed + LINE_INTERVAL;
            tell!("{}", line(&self.bar.message(), elapsed, position, self.bar.length().unwrap_or(0)));
        }
        if !self.shown && self.view == View::Bar && elapsed > Duration::from_secs(2) {
            // Two frames a second: drawing must not disturb what is measured beside it.
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

/// What a line says.
fn line(what: &str, elapsed: Duration, position: u64, total: u64) -> String {
    let left = left(elapsed, position, total).map(|left| format!(", {} s left", left.as_secs_f64().ceil()));
    format!("{what}: {position} of {total} after {} s{}", elapsed.as_secs(), left.unwrap_or_default())
}

/// How long it will take to go on as until now; unknown before the first step.
fn left(elapsed: Duration, position: u64, total: u64) -> Option<Duration> {
    let ahead = total.checked_sub(position)?;
    (position > 0)
        .then(|| Duration::try_from_secs_f64(elapsed.as_secs_f64() * ahead as f64 / position as f64).ok())?
}

/// A bar that moves by itself, beside something that says nothing until it is done.
pub(crate) struct Waiting {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// For something that should take so long; if it takes longer, the bar stands at its end.
    pub(crate) fn of_time(what: impl Into<String>, span: Duration) -> Self {
        let total = span.as_secs().max(1);
        Self::beside(Progress::new(what, total), move |started| started.as_secs().min(total))
    }

    /// For a step of several of which nobody knows how long each takes: the number of those before it, and time.
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
        // Without a thread there is no bar, and all else goes on.
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
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_on_as_before() {
        let seconds = |elapsed, position, total| {
            left(Duration::from_secs(elapsed), position, total).map(|left| left.as_secs())
        };
        assert_eq!((seconds(5, 1, 10), seconds(9, 3, 10), seconds(9, 10, 10)), (Some(45), Some(21), Some(0)));
        // Nothing is known before the first step, nor beyond the last.
        assert_eq!((seconds(5, 0, 10), seconds(5, 11, 10)), (None, None));
        assert_eq!(left(Duration::MAX, 1, u64::MAX), None);
    }

    #[test]
    fn a_line_says_how_far_it_is() {
        assert_eq!(line("reads", Duration::from_secs(20), 40, 100), "reads: 40 of 100 after 20 s, 30 s left");
        assert_eq!(line("starting", Duration::from_secs(10), 0, 1), "starting: 0 of 1 after 10 s");
    }
}
