//! What a run tells while it goes on: a bar, lines where there is no terminal, or with `--tui` a live view of the whole terminal.
//!
//! - [`state`]: what there is to show; [`view`]: how it is drawn; [`screen`]: the terminal and its keys.

mod screen;
mod state;
mod view;

use super::session::span;
use crate::failure::Failure;
use crate::progress::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use screen::Screen;
use state::State;
use std::io::IsTerminal;
use std::time::Duration;
use taktwerk_lab::runner::Step;
use taktwerk_lab::scenario::{Condition, Pace, seconds};

/// Where progress is told.
pub(super) enum Live {
    /// In a line, as far as measurements take time.
    Bar(ProgressBar, Pace),
    /// In a line every now and then, with the seconds that are done.
    Lines(Progress, Pace, f64),
    /// On the whole terminal.
    Screen(Screen),
}

impl Live {
    /// Begins to tell.
    ///
    /// # Errors
    /// If a live view is wanted where there is no terminal.
    pub(super) fn begin(
        is_screen: bool,
        name: &str,
        what: &str,
        conditions: &[(String, Condition)],
    ) -> Result<Self, Failure> {
        if is_screen {
            return Ok(Self::Screen(Screen::open(State::new(name, what, conditions))?));
        }
        let total = seconds(conditions.iter().map(|(_, condition)| condition));
        Ok(match std::io::stderr().is_terminal() {
            true => Self::Bar(bar(total), Pace::default()),
            false => Self::lines(total),
        })
    }

    fn lines(total: f64) -> Self {
        tracing::info!("this takes about {}", span(total));
        Self::Lines(Progress::new("measuring, seconds", total.ceil() as u64), Pace::default(), 0.0)
    }

    /// Tells a step.
    pub(super) fn step(&mut self, step: &Step<'_>) {
        match self {
            Self::Screen(screen) => screen.with(|state| state.step(step)),
            Self::Bar(bar, pace) => match step {
                Step::Begin { condition, seconds_left, .. } => {
                    bar.set_message(format!("{} left · {}", span(*seconds_left), condition.label()));
                }
                Step::End(measurement) => bar.inc((pace.seconds(&measurement.condition) * 10.0) as u64),
            },
            Self::Lines(progress, pace, done) => {
                if let Step::End(measurement) = step {
                    *done += pace.seconds(&measurement.condition);
                }
                progress.at(*done as u64);
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Self::Bar(bar, _) = self {
            bar.finish_and_clear();
        }
    }
}

/// A bar of tenths of seconds: measurements differ in length, time does not.
fn bar(total: f64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some((total * 10.0) as u64), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{bar:24} {percent:>3} % · {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    if total > 2.0 {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(2));
        bar.enable_steady_tick(Duration::from_secs(1));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_lab::measurement::Measurement;
    use taktwerk_lab::scenario::{Kind, LoadSpec, Scenario};

    #[test]
    fn lines_count_the_seconds_of_what_was_measured() {
        let conditions = Scenario::new("x", LoadSpec::new(Kind::Read)).conditions();
        let measured = Measurement::failed("x", conditions[0].clone(), 0, "no server".to_owned());
        let mut live = Live::lines(seconds(&conditions));
        live.step(&Step::End(&measured));
        let Live::Lines(_, _, first) = live else { panic!() };
        live = Live::lines(seconds(&conditions));
        (0..2).for_each(|_| live.step(&Step::End(&measured)));
        let Live::Lines(_, _, both) = live else { panic!() };
        assert!(first >= 1.0 && both > first, "{first} {both}");
    }
}
