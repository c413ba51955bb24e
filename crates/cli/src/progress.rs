//! Progress bars for what takes longer than two seconds. They go to standard error and only to a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A bar that appears after two seconds.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: bool,
}

impl Progress {
    /// A bar for `total` steps.
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Self { bar, started: Instant::now(), shown: false }
    }

    /// A bar of time: its steps are seconds.
    pub(crate) fn of_time(what: &'static str, span: Duration) -> Self {
        Self::new(what, span.as_secs())
    }

    /// Shows how far it is.
    pub(crate) fn at(&mut self, position: u64) {
        if !self.shown && self.started.elapsed() > Duration::from_secs(2) && std::io::stderr().is_terminal() {
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
