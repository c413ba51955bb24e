//! Converts spans of `tracing` to spans of OTLP.

use super::message::{Any, Span, Status, attribute};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use taktwerk_crypto::Entropy;
use taktwerk_net::OsEntropy;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The target of exported spans. Their level is DEBUG.
pub const TARGET: &str = "taktwerk::trace";
/// Maximum number of spans waiting for the next export.
const WAITING_MAX: usize = 8192;
/// Maximum length of a text in bytes; longer texts are truncated.
const TEXT_LEN_MAX: usize = 1000;

/// Collects ended spans. Clones share the spans.
#[derive(Debug, Clone, Default)]
pub struct Spans(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    ended: Mutex<Vec<Span>>,
    dropped: AtomicU64,
}

/// The current time in nanoseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Spans {
    fn lock(&self) -> MutexGuard<'_, Vec<Span>> {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all ended spans.
    pub(super) fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *self.lock())
    }

    /// Puts back spans that could not be exported. Spans above the limit are dropped and counted.
    pub(super) fn put_back(&self, mut spans: Vec<Span>) {
        let mut ended = self.lock();
        spans.append(&mut ended);
        let excess = spans.len().saturating_sub(WAITING_MAX);
        spans.drain(..excess);
        self.0.dropped.fetch_add(excess as u64, Ordering::Relaxed);
        *ended = spans;
    }

    /// Counts spans that were lost because the collector refused them.
    pub(super) fn lose(&self, count: usize) {
        self.0.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Number of spans that were dropped because the queue was full or the collector refused them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Span>().map(|span| (span.trace_id.clone(), span.span_id.clone()))
        });
        let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
        OsEntropy.fill(&mut trace_id);
        OsEntropy.fill(&mut span_id);
        let mut begun = Span::begun(trace_id, span_id, attributes.metadata().name(), now());
        if let Some((trace_id, span_id)) = parent {
            (begun.trace_id, begun.parent_span_id) = (trace_id, span_id);
        }
        attributes.record(&mut Fields(&mut begun));
        span.extensions_mut().replace(begun);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(begun) = span.extensions_mut().get_mut::<Span>()
        {
            values.record(&mut Fields(begun));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(mut ended) = context.span(&id).and_then(|span| span.extensions_mut().remove::<Span>())
        else {
            return;
        };
        ended.end = now();
        let mut all = self.lock();
        if all.len() < WAITING_MAX {
            all.push(ended);
        } else {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Converts fields to attributes. A field named `error` sets the status of the span.
struct Fields<'a>(&'a mut Span);

impl Fields<'_> {
    fn add(&mut self, field: &Field, value: Any) {
        self.0.attributes.push(attribute(field.name(), value));
    }

    fn text(&mut self, field: &Field, mut text: String) {
        if text.len() > TEXT_LEN_MAX {
            let end = (0..=TEXT_LEN_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
        }
        match field.name() {
            "error" => self.0.status = Some(Status::error(text)),
            _ => self.add(field, Any::Text(text)),
        }
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, Any::Number(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Any::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Any::Integer(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Any::Flag(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn spans_have_parents_attributes_and_errors() {
        let spans = Spans::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(spans.clone()), || {
            let outer = tracing::debug_span!(target: TARGET, "outer", name = "x", count = 3, is_good = true);
            let entered = outer.enter();
            let inner =
                tracing::debug_span!(target: TARGET, "inner", error = tracing::field::Empty, share = 0.5);
            inner.record("error", "it is gone");
            drop(inner);
            drop(entered);
            drop(outer);
            tracing::debug_span!(target: TARGET, "next");
        });
        let ended = spans.take();
        let [inner, outer, next] = ended.as_slice() else { panic!("{ended:?}") };
        assert_eq!((&*inner.name, &*outer.name, &*next.name), ("inner", "outer", "next"));
        assert_eq!((&inner.trace_id, &inner.parent_span_id), (&outer.trace_id, &outer.span_id));
        assert!(outer.parent_span_id.is_empty() && next.trace_id != outer.trace_id);
        assert!(outer.start > 0 && outer.start <= inner.start && inner.end <= outer.end);
        let expected = [
            attribute("name", Any::Text("x".to_owned())),
            attribute("count", Any::Integer(3)),
            attribute("is_good", Any::Flag(true)),
        ];
        assert_eq!((outer.attributes.as_slice(), &outer.status), (&expected[..], &None));
        assert_eq!(inner.attributes, [attribute("share", Any::Number(0.5))]);
        assert_eq!(inner.status, Some(Status::error("it is gone".to_owned())));
        assert!(spans.take().is_empty());
    }

    #[test]
    fn unexported_spans_are_kept_up_to_a_limit() {
        let spans = Spans::default();
        let span = |number: u64| Span::begun([1; 16], [1; 8], "s", number);
        spans.put_back((0..10).map(span).collect());
        assert_eq!((spans.take().len(), spans.dropped()), (10, 0));
        spans.put_back((0..WAITING_MAX as u64 + 5).map(span).collect());
        let waiting = spans.take();
        assert_eq!((waiting.len(), waiting[0].start, spans.dropped()), (WAITING_MAX, 5, 5));
    }
}
