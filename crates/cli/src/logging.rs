//! Logging to standard error. While a live view uses the screen, lines are held back.
//!
//! A repeated warning is printed at most once a minute, so that a client that connects again and again cannot fill the
//! log. The next one contains the number of suppressed ones. Audit records are never suppressed, and neither is what limits
//! itself: messages of the gateway, of outages of a store, and about a configuration that an administrator applies.

use crate::output::ColorChoice;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// The log levels by target for the command line options.
fn levels(verbosity: u8, quiet: bool) -> &'static str {
    match verbosity {
        0 if quiet => "error,rumqttd=off,tokio_modbus=off",
        // The embedded broker logs each client that disconnects as an error. The Modbus library logs each refused
        // request as an error, which the gateway reports itself.
        0 => "warn,rumqttd=off,tokio_modbus=off",
        1 => "info,taktwerk_client=debug,tokio_modbus=off",
        2 => "debug",
        _ => "trace",
    }
}

/// Starts logging. Default: warnings; `quiet`: errors; each `-v`: more. `RUST_LOG` has precedence.
pub(crate) fn start(verbosity: u8, quiet: bool, color: ColorChoice) {
    let default = levels(verbosity, quiet);
    // `Targets` needs no regular expressions, unlike the filter by spans and fields.
    let wanted = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    let filter: Targets = wanted.unwrap_or_else(|| default.parse().unwrap_or_default());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Log)
        .with_ansi(color.is_on(io::stderr().is_terminal()))
        // Its error messages use a macro that panics if standard error is closed.
        .log_internal_errors(false)
        .with_filter(RateLimit::default());
    let registry = tracing_subscriber::registry().with(lines.with_filter(filter));
    #[cfg(feature = "web")]
    let registry = {
        // Spans are disabled unless traces are exported.
        let (off, handle) = tracing_subscriber::reload::Layer::new(Targets::new());
        let on = |services: bool| {
            let targets = Targets::new().with_target(taktwerk_web::otlp::spans::TARGET, Level::DEBUG);
            if services { targets.with_target(taktwerk_server::trace::TARGET, Level::DEBUG) } else { targets }
        };
        let _ = TRACE.set(Box::new(move |services| drop(handle.reload(on(services)))));
        let recent = recent().with_filter(tracing_subscriber::filter::LevelFilter::INFO);
        registry.with(recent).with(spans().with_filter(off))
    };
    registry.init();
}

/// The last lines of the log, for the dashboard: from level INFO on, whatever level is printed.
#[cfg(feature = "web")]
pub(crate) fn recent() -> taktwerk_web::log::Recent {
    static RECENT: std::sync::OnceLock<taktwerk_web::log::Recent> = std::sync::OnceLock::new();
    RECENT.get_or_init(Default::default).clone()
}

/// Enables the collection of spans.
#[cfg(feature = "web")]
static TRACE: std::sync::OnceLock<Box<dyn Fn(bool) + Send + Sync>> = std::sync::OnceLock::new();

/// Enables spans for traces, including one per service request if `services` is set.
#[cfg(feature = "web")]
pub(crate) fn trace(services: bool) {
    if let Some(trace) = TRACE.get() {
        trace(services);
    }
}

/// The collected spans.
#[cfg(feature = "web")]
pub(crate) fn spans() -> taktwerk_web::otlp::spans::Spans {
    static SPANS: std::sync::OnceLock<taktwerk_web::otlp::spans::Spans> = std::sync::OnceLock::new();
    SPANS.get_or_init(Default::default).clone()
}

/// Interval at which the same warning is printed.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Messages that no client can cause at will, and that are limited where they are made. Their texts are the same, but they are
/// about different sources, reasons or mistakes, of which each must be named.
const LIMITED_THERE: [&str; 5] = [
    "taktwerk::audit",
    "taktwerk::source",
    "taktwerk::outage",
    "taktwerk_gateway",
    "taktwerk::serve::reload",
];

/// Limits each warning and error to one per [`WARNING_INTERVAL`].
#[derive(Debug, Default)]
struct RateLimit {
    /// When each was last printed, and how many were suppressed since. Bounded by the number of warnings in the
    /// program.
    printed: Mutex<HashMap<Identifier, (Instant, u64)>>,
}

impl RateLimit {
    /// Whether to print an event now, and how many of the same were suppressed before.
    fn admit(&self, metadata: &Metadata<'_>, now: Instant) -> Option<u64> {
        if *metadata.level() > Level::WARN
            || LIMITED_THERE.iter().any(|own| metadata.target().starts_with(own))
        {
            return Some(0);
        }
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        match printed.get_mut(&metadata.callsite()) {
            Some((last, suppressed)) if now.duration_since(*last) < WARNING_INTERVAL => {
                *suppressed += 1;
                None
            }
            Some(entry) => Some(std::mem::replace(entry, (now, 0)).1),
            None => {
                printed.insert(metadata.callsite(), (now, 0));
                Some(0)
            }
        }
    }
}

impl<S: Subscriber> Filter<S> for RateLimit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let Some(suppressed) = self.admit(event.metadata(), Instant::now()) else { return false };
        if suppressed > 0 {
            // Errors cannot be reported anywhere.
            let _ = writeln!(Log, "({suppressed} warnings like the next one were suppressed)");
        }
        true
    }
}

/// Lines that are held back; `None` if no live view uses the screen.
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

/// Holds logs back while it exists. Dropping it writes them.
#[derive(Debug)]
pub(crate) struct Diversion;

/// Starts holding logs back.
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

/// A line without colour escape sequences.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        // An escape sequence ends with its first letter.
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        text + part.get(end..).unwrap_or_default()
    })
}

impl Drop for Diversion {
    fn drop(&mut self) {
        if let Some(kept) = held().take() {
            // Errors cannot be reported anywhere.
            let _ = io::stderr().write_all(&kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_target_are_parsed() {
        for (verbosity, quiet, shown, hidden) in [
            (0, true, Level::ERROR, Level::WARN),
            (0, false, Level::WARN, Level::INFO),
            (1, false, Level::INFO, Level::DEBUG),
            (2, false, Level::DEBUG, Level::TRACE),
        ] {
            let filter: Targets = levels(verbosity, quiet).parse().unwrap();
            assert!(filter.would_enable("taktwerk_server", &shown), "{verbosity}");
            assert!(!filter.would_enable("taktwerk_server", &hidden), "{verbosity}");
            assert!(verbosity > 1 || !filter.would_enable("tokio_modbus", &Level::ERROR));
        }
        assert!(levels(1, false).parse::<Targets>().unwrap().would_enable("taktwerk_client", &Level::DEBUG));
        let audit: Targets = "taktwerk::audit=info".parse().unwrap();
        assert!(
            audit.would_enable("taktwerk::audit", &Level::INFO)
                && !audit.would_enable("taktwerk", &Level::ERROR)
        );
    }

    #[test]
    fn repeated_warnings_are_printed_once_a_minute() {
        let seldom = RateLimit::default();
        let start = Instant::now();
        let admit =
            |metadata: &Metadata<'_>, seconds| seldom.admit(metadata, start + Duration::from_secs(seconds));
        let printed = std::sync::Arc::new(Mutex::new(Vec::new()));
        /// Calls a function for every event, as if one second had passed since the last one.
        struct Ask<F>(F);
        impl<S: Subscriber, F: Fn(&Metadata<'_>) + 'static> Layer<S> for Ask<F> {
            fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
                (self.0)(event.metadata());
            }
        }
        let seen = std::sync::Arc::clone(&printed);
        let subscriber = tracing_subscriber::registry().with(Ask(move |metadata: &Metadata<'_>| {
            // The metadata of an event is static.
            seen.lock().unwrap().push(metadata.callsite().0.metadata());
        }));
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!("somebody knocks");
            tracing::warn!("something else");
            tracing::info!("news");
            tracing::warn!(target: "taktwerk::audit", "an audit record");
        });
        let events = printed.lock().unwrap().clone();
        let [knock, other, news, audit] = events.as_slice() else { panic!("{} events", events.len()) };
        assert_eq!((admit(knock, 0), admit(knock, 1), admit(knock, 59)), (Some(0), None, None));
        assert_eq!((admit(other, 1), admit(news, 1), admit(news, 1)), (Some(0), Some(0), Some(0)));
        assert_eq!((admit(audit, 1), admit(audit, 1)), (Some(0), Some(0)));
        assert_eq!((admit(knock, 60), admit(knock, 121)), (Some(2), Some(0)));
    }

    #[test]
    fn modules_that_limit_themselves_have_these_names() {
        // The targets are names of modules: a renamed module would be limited again.
        let own = module_path!().strip_suffix("::logging::tests").unwrap();
        assert!(LIMITED_THERE.contains(&&*format!("{own}::serve::reload")));
        #[cfg(feature = "gateway")]
        assert!(std::any::type_name::<taktwerk_gateway::Gateway>().starts_with("taktwerk_gateway::"));
    }

    #[test]
    fn held_lines_have_no_colours() {
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
