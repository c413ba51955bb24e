//! The interactive table on a terminal: keys and events are passed to the [`View`], which decides.

use super::Live;
use super::pace::Pace;
use super::screen::draw;
use super::view::{Command, Key, Operation, View};
use crate::event_stream::Next;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::logging;
use crate::output::{ColorChoice, Output};
use crate::terminal::{self, Screen, Stream};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal};
use std::time::Duration;
use taktwerk_client::condition::{ConditionEvent, TableChange};
use taktwerk_net::clock::monotonic;

/// Longest time until a key is noticed.
const KEYS_EVERY: Duration = Duration::from_millis(40);

/// Restores the terminal.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        terminal::restore();
    }
}

/// Whether the user can see a table and press keys.
pub(super) fn is_possible(output: Output) -> bool {
    !output.is_json() && io::stdout().is_terminal() && io::stdin().is_terminal()
}

fn failed(error: io::Error) -> Failure {
    Failure::Environment(format!("cannot use the terminal: {error}"))
}

impl Live {
    /// Shows the table until the user leaves it or `duration` is over.
    pub(super) fn interact(
        &mut self,
        title: &str,
        duration: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let end = duration.map(|span| monotonic() + span);
        // Held log lines are written when the terminal is restored.
        let _diversion = logging::divert();
        let mut screen = terminal::take(Stream::Output).map_err(failed)?;
        let _restore = Restore;
        let mut view = View::default();
        let mut notice: Option<String> = None;
        let mut pace = Pace::new(monotonic());
        loop {
            let now = monotonic();
            if pace.is_due(now, false) {
                self.draw(&mut screen, &mut view, title, notice.as_deref())?;
                pace.drawn(now, monotonic());
            }
            while event::poll(Duration::ZERO).map_err(failed)? {
                pace.at_once(monotonic());
                let Some(key) = key(&event::read().map_err(failed)?) else { continue };
                match view.key(key, &self.table) {
                    None => {}
                    Some(Command::Quit) => return Ok(()),
                    Some(Command::Interrupt) => return Err(Failure::Interrupted),
                    Some(Command::Call(operation)) => {
                        // The call may take a while.
                        self.draw(&mut screen, &mut view, title, notice.as_deref())?;
                        self.operate(&mut view, &operation);
                    }
                }
            }
            let now = monotonic();
            if pace.is_due(now, false) {
                continue;
            }
            let until = [Some(now + KEYS_EVERY), end, pace.due()].into_iter().flatten().min();
            match self.stream.next(&mut self.session, until, interrupt)? {
                Next::End if interrupt.asked() || end.is_some_and(|end| monotonic() >= end) => return Ok(()),
                Next::End => {}
                Next::Ready => {
                    self.refresh()?;
                    // Messages may have been printed over the table.
                    screen.clear().map_err(failed)?;
                    pace.at_once(monotonic());
                }
                Next::Notice(news) => {
                    let plain = Output::new(false, ColorChoice::Never);
                    notice = Some(news.text(plain));
                    pace.soon(monotonic());
                }
                Next::Event(fields) => {
                    match self.table.take(ConditionEvent::read(&fields)) {
                        TableChange::RefreshRequired => self.refresh()?,
                        TableChange::RefreshEnded => notice = None,
                        _ => {}
                    }
                    pace.soon(monotonic());
                }
            }
        }
    }

    fn draw(
        &self,
        screen: &mut Screen,
        view: &mut View,
        title: &str,
        notice: Option<&str>,
    ) -> Result<(), Failure> {
        screen.draw(|frame| draw(frame, view, &self.table, title, notice)).map(drop).map_err(failed)
    }

    /// Calls a Method. Errors are shown, because the user may try again.
    fn operate(&mut self, view: &mut View, operation: &Operation) {
        let result = self.call(operation.call.clone()).map_err(|failure| failure.to_string());
        view.answered(operation, result);
    }
}

/// The key of a terminal event.
fn key(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) =
        event
    else {
        return None;
    };
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(_) if modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => return None,
        KeyCode::Char(letter) => Key::Char(*letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
