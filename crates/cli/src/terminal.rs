//! A terminal in raw mode on its alternate screen. It is restored at the end and before a panic is printed.

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

/// A terminal for a view.
pub(crate) type Screen = Terminal<CrosstermBackend<Stream>>;

/// The stream that is connected with the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Output = 1,
    /// Standard error, so that results on standard output can be redirected.
    Error = 2,
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Output => io::stdout().write(bytes),
            Self::Error => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Output => io::stdout().flush(),
            Self::Error => io::stderr().flush(),
        }
    }
}

/// The stream of the terminal in use; 0 if there is none.
static IN_USE: AtomicU8 = AtomicU8::new(0);

/// Enters the alternate screen. If this fails, the terminal is as before.
pub(crate) fn take(mut stream: Stream) -> io::Result<Screen> {
    restore_on_panic();
    IN_USE.store(stream as u8, Ordering::Relaxed);
    let mut take = || {
        enable_raw_mode()?;
        execute!(stream, EnterAlternateScreen, cursor::Hide)?;
        Terminal::new(CrosstermBackend::new(stream))
    };
    take().inspect_err(|_| restore())
}

/// Restores the terminal. Does nothing if it is not in use.
pub(crate) fn restore() {
    let mut stream = match IN_USE.swap(0, Ordering::Relaxed) {
        0 => return,
        1 => Stream::Output,
        _ => Stream::Error,
    };
    let _ = execute!(stream, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic is printed.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}
