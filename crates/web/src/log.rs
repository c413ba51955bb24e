//! The last lines of the log, for the dashboard.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Maximum number of lines.
const LINES_MAX: usize = 500;
/// Maximum length of a line in bytes; longer lines are truncated.
const LINE_LEN_MAX: usize = 1000;

/// Stores the last 500 lines at level INFO and above. Clones share the lines.
#[derive(Debug, Clone, Default)]
pub struct Recent(Arc<Mutex<VecDeque<Line>>>);

/// A line of the log.
#[derive(Debug, Clone)]
pub struct Line {
    /// When it was written.
    pub time: SystemTime,
    /// Its level.
    pub level: Level,
    /// The module that wrote it.
    pub target: String,
    /// The message and its fields.
    pub text: String,
}

impl Recent {
    /// The lines, the oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: Line) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let mut text = text.0;
        if text.len() > LINE_LEN_MAX {
            let end = (0..=LINE_LEN_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        self.push(Line {
            time: SystemTime::now(),
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            text,
        });
    }
}

/// The message, followed by `name=value` fields.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a `String` does not fail.
        let _ = match (field.name(), self.0.is_empty()) {
            ("message", true) => write!(self.0, "{value:?}"),
            ("message", false) => {
                let fields = std::mem::take(&mut self.0);
                write!(self.0, "{value:?} {fields}")
            }
            (name, true) => write!(self.0, "{name}={value:?}"),
            (name, false) => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn old_lines_are_dropped_and_long_ones_truncated() {
        let recent = Recent::default();
        let subscriber = tracing_subscriber::registry().with(recent.clone());
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..LINES_MAX + 3 {
                tracing::info!(number, "counted");
            }
            tracing::debug!("not kept");
            tracing::warn!("{}", "é".repeat(LINE_LEN_MAX));
        });
        let lines = recent.lines();
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!(lines[0].text, "counted number=4");
        let last = lines.last().unwrap();
        assert!(last.level == Level::WARN && last.text.ends_with('…') && last.text.len() <= LINE_LEN_MAX + 3);
    }
}
