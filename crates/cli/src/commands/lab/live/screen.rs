//! The terminal of a live view: entered, drawn twice a second, and always restored.
//!
//! The view is drawn on standard error, so that results can be redirected. In raw mode Ctrl-C is an ordinary key: it is
//! passed on to the process group, as the terminal would do.

use super::state::State;
use super::view::draw;
use crate::failure::Failure;
use crate::logging::{self, Diversion};
use crate::terminal::{self, Stream};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::process::{Signal, kill_current_process_group};
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Two frames per second, because drawing must not disturb the measurement.
const FRAME: Duration = Duration::from_millis(500);
/// Number of log lines.
const LOG: usize = 4;

/// A live view. Dropping it restores the terminal.
pub(in crate::commands::lab) struct Screen {
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Writes held log lines when the terminal is restored, so it must be dropped last.
    _diversion: Diversion,
}

impl Screen {
    /// Enters the alternate screen.
    pub(super) fn open(state: State) -> Result<Self, Failure> {
        if !io::stderr().is_terminal() {
            return Err(Failure::Usage(
                "--tui needs a terminal on standard error; leave it out, or use --stream for programs"
                    .to_owned(),
            ));
        }
        let failed =
            |error: io::Error| Failure::Environment(format!("cannot use the terminal for --tui: {error}"));
        let diversion = logging::divert();
        let screen = terminal::take(Stream::Error).map_err(failed)?;
        let state = Arc::new(Mutex::new(state));
        let ended = Arc::new(AtomicBool::new(false));
        let (seen, end) = (Arc::clone(&state), Arc::clone(&ended));
        let started = std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            show(screen, &seen, &end);
            terminal::restore();
        });
        let thread = started.map_err(|error| {
            terminal::restore();
            failed(error)
        })?;
        Ok(Self { state, ended, thread: Some(thread), _diversion: diversion })
    }

    /// Changes the state.
    pub(super) fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Draws and handles keys until the end.
fn show(mut screen: terminal::Screen, state: &Mutex<State>, ended: &AtomicBool) {
    let mut cpus = Cpus::default();
    let mut first = 0;
    let mut next = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            next = Instant::now() + FRAME;
            let percents = cpus.sample();
            state.lock().unwrap_or_else(PoisonError::into_inner).sample(&percents);
        }
        let log = logging::last(LOG);
        let drawn = screen.draw(|frame| {
            first = draw(frame, &state.lock().unwrap_or_else(PoisonError::into_inner), &log);
        });
        if drawn.is_err() {
            // The terminal is gone, but the run continues.
            return;
        }
        // In short steps, so that the end of the run is noticed soon.
        while Instant::now() < next && !ended.load(Ordering::Relaxed) {
            match event::poll(Duration::from_millis(50).min(next.saturating_duration_since(Instant::now()))) {
                Ok(false) => {}
                Ok(true) => {
                    let Ok(event) = event::read() else { return };
                    if key(&event, state, first) {
                        break;
                    }
                }
                Err(_) => return,
            }
        }
    }
}

/// Handles a key. Returns whether to redraw.
fn key(event: &Event, state: &Mutex<State>, first: usize) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return matches!(event, Event::Resize(..));
    };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let is_interrupt = *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL);
    match code {
        _ if is_interrupt || *code == KeyCode::Char('q') => {
            if state.is_ending {
                // The second Ctrl-C ends this process at once, so restore the terminal first.
                terminal::restore();
            }
            state.is_ending = true;
            let _ = kill_current_process_group(Signal::INT);
        }
        KeyCode::Up => state.scroll(-1, first),
        KeyCode::Down => state.scroll(1, first),
        KeyCode::PageUp => state.scroll(-10, first),
        KeyCode::PageDown => state.scroll(10, first),
        KeyCode::Char('f') => state.scroll = None,
        _ => return false,
    }
    true
}

/// CPU use, from `/proc/stat`.
#[derive(Default)]
struct Cpus(Vec<(u64, u64)>);

impl Cpus {
    /// Use of each CPU in percent since the previous sample.
    fn sample(&mut self) -> Vec<u64> {
        let now = ticks(&std::fs::read_to_string("/proc/stat").unwrap_or_default());
        let before = std::mem::replace(&mut self.0, now);
        let percent = |(now, before): (&(u64, u64), &(u64, u64))| {
            let all = now.1.saturating_sub(before.1).max(1);
            now.0.saturating_sub(before.0) * 100 / all
        };
        self.0.iter().zip(&before).map(percent).collect()
    }
}

/// Busy and total ticks of each CPU.
fn ticks(stat: &str) -> Vec<(u64, u64)> {
    let cpu = |line: &str| {
        let rest = line.strip_prefix("cpu").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
        let ticks: Vec<u64> = rest.split_whitespace().skip(1).map_while(|it| it.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal. Guest time is included in user.
        let all: u64 = ticks.iter().take(8).sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Some((all - idle, all))
    };
    stat.lines().filter_map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_cpus() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 1 5 80 4 0 0 0 7 7\ncpu1 0 0 0 50\nintr 5\n";
        assert_eq!(ticks(stat), [(16, 100), (0, 50)]);
    }
}
