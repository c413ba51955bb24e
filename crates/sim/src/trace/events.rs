//! The trace event format: one JSON object per event, in one list.

use core::fmt;
use std::io;
use taktwerk_types::Instant;

/// A process and one of its threads.
type Thread = (u32, u32);
/// Minimum duration of a slice in nanoseconds: events that take no time still get it, so that they are visible and
/// flows can be attached.
const LEAST: u64 = 1;

/// Writes events.
pub(super) struct Events {
    out: Box<dyn io::Write + Send>,
    is_first: bool,
    failed: Option<io::Error>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("failed", &self.failed).finish_non_exhaustive()
    }
}

/// Microseconds with three decimals.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A JSON string.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                character if (character as u32) < 0x20 => write!(f, "\\u{:04x}", character as u32)?,
                character => write!(f, "{character}")?,
            }
        }
        f.write_str("\"")
    }
}

impl Events {
    pub(super) fn new(out: Box<dyn io::Write + Send>) -> Self {
        let mut events = Self { out, is_first: true, failed: None };
        events.raw(format_args!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":["));
        events
    }

    /// Ends the list. Returns the first error that occurred.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.raw(format_args!("\n]}}\n"));
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn raw(&mut self, text: fmt::Arguments<'_>) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_fmt(text)
        {
            self.failed = Some(error);
        }
    }

    fn event(&mut self, fields: fmt::Arguments<'_>) {
        let comma = if core::mem::take(&mut self.is_first) { "" } else { "," };
        self.raw(format_args!("{comma}\n{{{fields}}}"));
    }

    pub(super) fn name_process(&mut self, process: u32, name: &str) {
        let name = Text(name);
        self.event(format_args!(
            r#""ph":"M","name":"process_name","pid":{process},"tid":0,"args":{{"name":{name}}}"#
        ));
    }

    pub(super) fn name_thread(&mut self, (process, thread): Thread, name: &str) {
        let name = Text(name);
        self.event(format_args!(
            r#""ph":"M","name":"thread_name","pid":{process},"tid":{thread},"args":{{"name":{name}}}"#
        ));
    }

    pub(super) fn begin(&mut self, (process, thread): Thread, at: Instant, name: &str) {
        let (at, name) = (Micros(at.as_nanos()), Text(name));
        self.event(format_args!(r#""ph":"B","pid":{process},"tid":{thread},"ts":{at},"name":{name}"#));
    }

    pub(super) fn end(&mut self, (process, thread): Thread, at: Instant) {
        let at = Micros(at.as_nanos());
        self.event(format_args!(r#""ph":"E","pid":{process},"tid":{thread},"ts":{at}"#));
    }

    pub(super) fn instant(&mut self, (process, thread): Thread, at: Instant, name: &str) {
        let (at, name) = (Micros(at.as_nanos()), Text(name));
        self.event(format_args!(
            r#""ph":"i","s":"g","pid":{process},"tid":{thread},"ts":{at},"name":{name}"#
        ));
    }

    /// A finished slice.
    pub(super) fn slice(
        &mut self,
        (process, thread): Thread,
        from: Instant,
        until: Instant,
        name: &str,
        bytes: Option<usize>,
    ) {
        let span = until.as_nanos().saturating_sub(from.as_nanos()).max(LEAST);
        let (at, span, name) = (Micros(from.as_nanos()), Micros(span), Text(name));
        let head =
            format_args!(r#""ph":"X","pid":{process},"tid":{thread},"ts":{at},"dur":{span},"name":{name}"#);
        match bytes {
            Some(bytes) => self.event(format_args!(r#"{head},"args":{{"bytes":{bytes}}}"#)),
            None => self.event(head),
        }
    }

    /// An arrow between the slices that cover these times. Both ends are written together, so no arrow lacks an end.
    pub(super) fn flow(
        &mut self,
        id: u64,
        name: &str,
        bytes: u64,
        (from, sent): (Thread, Instant),
        (to, received): (Thread, Instant),
    ) {
        let name = Text(name);
        let ends = [("s", from, sent), ("f", to, received)];
        for (phase, (process, thread), at) in ends {
            let at = Micros(at.as_nanos());
            self.event(format_args!(
                r#""ph":"{phase}","bp":"e","cat":"message","id":{id},"pid":{process},"tid":{thread},"ts":{at},"name":{name},"args":{{"bytes":{bytes}}}"#
            ));
        }
    }
}
