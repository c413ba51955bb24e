//! Progress of a run: a bar, lines without a terminal, or with `--tui` a live view.
//!
//! - [`state`]: the state; [`view`]: drawing; [`screen`]: the terminal and its keys.

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

/// Where progress is displayed.
pub(super) enum Live {
    /// A bar, with the estimator for durations.
    Bar(ProgressBar, Pace),
    /// Periodic lines, with the completed seconds.
    Lines(Progress, Pace, f64),
    /// The live view.
    Screen(Screen),
}

impl Live {
    /// Starts the display.
    ///
    /// # Errors
    /// `--tui` without a terminal.
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

    /// Shows a step.
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

/// A bar in tenths of seconds, because measurements have different durations.
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
    fn lines_count_measured_seconds() {
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
