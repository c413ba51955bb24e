//! Logs go to standard error; standard output belongs to results. While a live view has the screen, they are kept for it.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing_subscriber::EnvFilter;

/// Starts logging: warnings by default, more with each `-v`, or as `RUST_LOG` says.
pub(crate) fn start(verbosity: u8) {
    let default = match verbosity {
        // The embedded broker takes each client that leaves for an error.
        0 => "warn,rumqttd=off",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let color =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .with_ansi(color)
        // It would tell by a macro that panics, on the very standard error that nobody reads any more.
        .log_internal_errors(false)
        .init();
}

/// Lines that wait for the screen to be free again; none while nobody has it.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Vec<u8>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *held() {
            Some(kept) => kept.write(bytes),
            None => io::stderr().write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs are held back as long as this lives, and written when it is dropped.
#[derive(Debug)]
pub(crate) struct Diversion;

/// Holds logs back from now on.
pub(crate) fn divert() -> Diversion {
    held().get_or_insert_default();
    Diversion
}

/// The last lines that are held back: level and message, without time, module and colours.
pub(crate) fn last(lines: usize) -> Vec<String> {
    let text = held().as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    let all: Vec<&str> = text.lines().collect();
    let skipped = all.len().saturating_sub(lines);
    all.into_iter().skip(skipped).map(|line| short(&plain(line))).collect()
}

/// Level and message of a line: `TIME LEVEL MODULE: MESSAGE`.
fn short(line: &str) -> String {
    let mut words = line.split_whitespace().skip(1);
    match (words.next(), words.next(), line.split_once(": ")) {
        (Some(level), Some(module), Some((_, message))) if module.ends_with(':') => {
            format!("{level} {message}")
        }
        _ => line.to_owned(),
    }
}

/// A line without the escape sequences that colour it.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        // A sequence ends with its first letter.
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        text + part.get(end..).unwrap_or_default()
    })
}

impl Drop for Diversion {
    fn drop(&mut self) {
        if let Some(kept) = held().take() {
            // Nobody is left to be told if this fails.
            let _ = io::stderr().write_all(&kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_held_back_without_their_colours() {
        let diversion = divert();
        let first = b"\x1b[2m2026-11-22T00:00:00Z\x1b[0m \x1b[33m WARN\x1b[0m \x1b[2mtaktwerk::lab\x1b[0m: one: two\n";
        Log.write_all(first).unwrap();
        Log.write_all(b"two\nthree\n").unwrap();
        assert_eq!(last(2), ["two", "three"]);
        assert_eq!(last(9)[0], "WARN one: two");
        drop(diversion);
        assert!(last(9).is_empty());
    }
}
