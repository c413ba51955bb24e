//! Trace spans of requests: from the arrival of a request until its response is written, with a span per service call
//! inside. While tracing is off, a request costs a check of a constant flag, and a response a lookup in an empty map.

use core::fmt;
use std::collections::BTreeMap;
use taktwerk_schema as schema;
use taktwerk_types::StatusCode;
use tracing::field::Empty;
use tracing::{Level, Span};

/// The target of the spans. Their level is DEBUG.
pub const TARGET: &str = "taktwerk::services";

/// Maximum number of simultaneous request spans per connection. Further requests have none.
const SPANS_MAX: usize = 1000;
/// Position of the ServiceResult in a response body with a four-byte type id (Part 6 §5.2.2.9, Part 4 §7.34).
const RESULT: core::ops::Range<usize> = 16..20;

/// The spans of unanswered requests of a connection.
#[derive(Default)]
pub(crate) struct Spans(BTreeMap<u32, Span>);

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spans").field(&self.0.len()).finish()
    }
}

/// The name of a message, by its encoding id.
fn name(type_id: u32) -> &'static str {
    schema::message_name(type_id).unwrap_or("unknown")
}

/// The encoding id of a request, if it is in namespace 0 in the usual format.
fn type_id(body: &[u8]) -> u32 {
    match body {
        [0, id, ..] => u32::from(*id),
        [1, 0, low, high, ..] => u32::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    }
}

impl Spans {
    /// A request has arrived.
    #[inline]
    pub(crate) fn begin(&mut self, request_id: u32, body: &[u8]) {
        if tracing::enabled!(target: TARGET, Level::DEBUG) {
            self.add(request_id, body);
        }
    }

    #[cold]
    fn add(&mut self, request_id: u32, body: &[u8]) {
        if self.0.len() >= SPANS_MAX && !self.0.contains_key(&request_id) {
            return;
        }
        let service = name(type_id(body));
        let span = tracing::debug_span!(
            target: TARGET,
            parent: None,
            "opcua.request",
            service,
            request_id,
            request_bytes = body.len(),
            response_bytes = Empty,
            error = Empty
        );
        self.0.insert(request_id, span);
    }

    /// A span for the current service call of a request; disabled if the request has no span.
    #[inline]
    pub(crate) fn service(&self, request_id: u32) -> Span {
        if self.0.is_empty() {
            return Span::none();
        }
        let within = |parent: &Span| tracing::debug_span!(target: TARGET, parent: parent, "opcua.service");
        self.0.get(&request_id).map_or_else(Span::none, within)
    }

    /// A response was written, with this body.
    #[inline]
    pub(crate) fn end(&mut self, request_id: u32, body: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let Some(span) = self.0.remove(&request_id) else { return };
        span.record("response_bytes", body.len());
        let result = body.get(RESULT).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        if let Some(status) = result.map(StatusCode).filter(|status| status.is_bad()) {
            span.record("error", tracing::field::display(status));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Records span operations for tests.
    #[derive(Clone, Default)]
    struct Notes(Arc<Mutex<(u64, Vec<String>)>>, bool);

    impl Notes {
        fn note(&self, text: String) {
            self.0.lock().unwrap().1.push(text);
        }

        fn taken(&self) -> Vec<String> {
            core::mem::take(&mut self.0.lock().unwrap().1)
        }
    }

    struct Texts(String);

    impl tracing::field::Visit for Texts {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
            self.0 += &format!(" {field}={value:?}");
        }
    }

    impl Subscriber for Notes {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            self.1 && metadata.target() == TARGET
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            let mut texts = Texts(String::new());
            attributes.record(&mut texts);
            let parent = attributes.parent().map(|parent| format!(" in {}", parent.into_u64()));
            let number = {
                let mut notes = self.0.lock().unwrap();
                notes.0 += 1;
                notes.0
            };
            let name = attributes.metadata().name();
            self.note(format!("{number} {name}{}{}", texts.0, parent.unwrap_or_default()));
            Id::from_u64(number)
        }

        fn record(&self, span: &Id, values: &Record<'_>) {
            let mut texts = Texts(String::new());
            values.record(&mut texts);
            self.note(format!("{}{}", span.into_u64(), texts.0));
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}

        fn try_close(&self, id: Id) -> bool {
            self.note(format!("{} ends", id.into_u64()));
            true
        }
    }

    /// A ReadRequest, and a response with a ServiceResult.
    const READ: [u8; 8] = [1, 0, 0x77, 0x02, 0, 0, 0, 0];

    fn answer(result: StatusCode) -> Vec<u8> {
        let mut body = vec![0; 28];
        body[RESULT].copy_from_slice(&result.0.to_le_bytes());
        body
    }

    /// Runs a test in a process of its own. Other threads that are just registering a place of a span turn it off for all
    /// threads, if they have no subscriber.
    fn alone(name: &str, test: fn()) {
        const ALONE: &str = "TAKTWERK_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return test();
        }
        let name = format!("{}::{name}", module_path!().split_once("::").map_or("", |(_, module)| module));
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args([&*name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[test]
    fn a_request_has_a_span_with_its_services_until_it_is_answered() {
        alone("a_request_has_a_span_with_its_services_until_it_is_answered", spans_of_requests);
    }

    fn spans_of_requests() {
        let notes = Notes(Arc::default(), true);
        tracing::subscriber::with_default(notes.clone(), || {
            let mut spans = Spans::default();
            spans.begin(7, &READ);
            assert_eq!(
                notes.taken(),
                ["1 opcua.request service=\"ReadRequest\" request_id=7 request_bytes=8"]
            );
            drop(spans.service(7));
            assert_eq!(notes.taken(), ["2 opcua.service in 1", "2 ends"]);
            spans.end(7, &answer(StatusCode::BAD_TIMEOUT));
            let error = format!("1 error={}", StatusCode::BAD_TIMEOUT);
            assert_eq!(notes.taken(), ["1 response_bytes=28", error.as_str(), "1 ends"]);
            // Unknown requests have no span, and nothing remains after the last one.
            drop(spans.service(8));
            spans.end(8, &answer(StatusCode::GOOD));
            assert!(notes.taken().is_empty() && spans.0.is_empty());
            // The number of spans per client is limited.
            (0..2000).for_each(|request_id| spans.begin(request_id, &READ));
            assert_eq!(spans.0.len(), SPANS_MAX);
            notes.taken();
            spans.begin(1, &[]);
            assert_eq!(
                notes.taken()[0],
                "1003 opcua.request service=\"unknown\" request_id=1 request_bytes=0"
            );
        });
    }

    #[test]
    fn without_tracing_nothing_is_stored() {
        alone("without_tracing_nothing_is_stored", no_spans);
    }

    fn no_spans() {
        let notes = Notes(Arc::default(), false);
        tracing::subscriber::with_default(notes.clone(), || {
            let mut spans = Spans::default();
            spans.begin(7, &READ);
            drop(spans.service(7));
            spans.end(7, &answer(StatusCode::GOOD));
            assert!(spans.0.is_empty() && notes.taken().is_empty());
        });
    }

    #[test]
    fn requests_are_recognized_by_their_encodings() {
        assert_eq!((type_id(&READ), name(type_id(&READ))), (631, "ReadRequest"));
        assert_eq!([&[0, 85][..], &[2, 0, 0, 0, 0], &[1], &[]].map(type_id), [85, 0, 0, 0]);
    }
}
