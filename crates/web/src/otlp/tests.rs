//! The export against a local listener that acts as a collector.

use super::message::{Metrics, Traces};
use super::spans::TARGET;
use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};
use taktwerk::Server;
use tracing_subscriber::layer::SubscriberExt;

const LIMIT: Duration = Duration::from_secs(20);

/// A request: path, headers, body.
type Request = (String, Vec<String>, Vec<u8>);

/// Answers requests with these statuses, then with 200.
fn listener(statuses: &'static [&'static str]) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/base", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                match line.trim_end() {
                    "" => break,
                    line => lines.push(line.to_ascii_lowercase()),
                }
            }
            let path = lines[0].split(' ').nth(1).unwrap().to_owned();
            let len = lines.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; len.parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            let status = statuses.next().unwrap_or(&"200 OK");
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            if sender.send((path, lines, body)).is_err() {
                return;
            }
        }
    });
    (url, requests)
}

fn settings(url: &str) -> OtlpSettings {
    OtlpSettings {
        url: url.to_owned(),
        every: Duration::from_millis(50),
        metrics: true,
        traces: true,
        headers_file: None,
        ca_file: None,
        service: ("plant".to_owned(), "urn:plant:1".to_owned()),
    }
}

#[derive(Debug)]
struct Example;

impl Collector for Example {
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let values = ["a", "b"].map(|value| (("kind", value.to_owned()), 2.0));
        out.counters("taktwerk_examples", "Examples", values)
    }
}

#[test]
fn metrics_and_spans_are_exported_and_retried() {
    let folder = tempfile::tempdir().unwrap();
    let headers = folder.path().join("headers");
    std::fs::write(&headers, "X-Scope-OrgID: plant 1\n").unwrap();
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap().spawn().unwrap();
    // The metrics are accepted, the spans only at the second attempt.
    let (url, requests) = listener(&["200 OK", "503 Service Unavailable"]);
    let spans = Spans::default();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(spans.clone()), || {
        tracing::debug_span!(target: TARGET, "destination.send", records = 5);
    });
    let more: Vec<Arc<dyn Collector>> = vec![Arc::new(Example)];
    let settings = OtlpSettings { headers_file: Some(headers), ..settings(&url) };
    let otlp = Otlp::start(settings, Arc::clone(server.shared()), more, spans).unwrap();

    let (path, lines, body) = requests.recv_timeout(LIMIT).unwrap();
    assert_eq!(path, "/base/v1/metrics");
    for header in ["content-type: application/x-protobuf", "x-scope-orgid: plant 1"] {
        assert!(lines.iter().any(|line| line == header), "{lines:?}");
    }
    let Metrics { resources } = Metrics::decode(&*body).unwrap();
    let resource = resources[0].resource.as_ref().unwrap();
    assert_eq!(resource.attributes[0], attribute("service.name", Any::Text("plant".to_owned())));
    let metrics = &resources[0].scopes[0].metrics;
    let named = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().data.clone().unwrap();
    let Data::Gauge(sessions) = named("taktwerk_sessions") else { panic!("a gauge") };
    assert_eq!(sessions.points[0].value, Some(Number::Double(0.0)));
    let Data::Sum(examples) = named("taktwerk_examples") else { panic!("a counter") };
    assert_eq!(examples, Sum::counter(examples.points.clone()));
    let kinds: Vec<_> = examples.points.iter().map(|point| point.attributes[0].clone()).collect();
    let kind = |text: &str| attribute("kind", Any::Text(text.to_owned()));
    assert_eq!(kinds, [kind("a"), kind("b")]);
    assert!(examples.points[0].start > 0 && examples.points[0].start <= examples.points[0].time);

    let mut traces = Vec::new();
    while traces.len() < 2 {
        let (path, _, body) = requests.recv_timeout(LIMIT).unwrap();
        if path == "/base/v1/traces" {
            traces.push(Traces::decode(&*body).unwrap());
        }
    }
    assert_eq!(traces[0], traces[1], "refused spans are sent again");
    let span = &traces[0].resources[0].scopes[0].spans[0];
    assert_eq!((&*span.name, span.trace_id.len(), span.span_id.len()), ("destination.send", 16, 8));
    assert_eq!(span.attributes, [attribute("records", Any::Integer(5))]);
    let counted = crate::exposition::exposition([otlp.collector()]).unwrap();
    assert!(counted.contains("taktwerk_otlp_errors_total 1.0"), "{counted}");
    drop(otlp);
    server.stop(Duration::from_secs(1));
}

#[test]
fn permanently_rejected_metrics_and_spans_are_dropped() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap().spawn().unwrap();
    // First metrics and spans, then metrics and the next spans.
    let (url, requests) = listener(&["404 Not Found", "400 Bad Request", "404 Not Found", "200 OK"]);
    let spans = Spans::default();
    let span = |name: &'static str| {
        tracing::subscriber::with_default(
            tracing_subscriber::registry().with(spans.clone()),
            || match name {
                "first" => drop(tracing::debug_span!(target: TARGET, "first")),
                _ => drop(tracing::debug_span!(target: TARGET, "second")),
            },
        );
    };
    span("first");
    let otlp = Otlp::start(settings(&url), Arc::clone(server.shared()), Vec::new(), spans.clone()).unwrap();
    let mut traces = Vec::new();
    while traces.len() < 2 {
        let (path, _, body) = requests.recv_timeout(LIMIT).unwrap();
        if path == "/base/v1/traces" {
            traces.push(Traces::decode(&*body).unwrap().resources[0].scopes[0].spans[0].name.clone());
            span("second");
        }
    }
    assert_eq!(traces, ["first", "second"], "a rejected span is not sent again");
    assert_eq!(spans.dropped(), 1);
    drop(otlp);
    server.stop(Duration::from_secs(1));
}

#[test]
fn remaining_spans_are_sent_at_the_end_without_blocking() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap().spawn().unwrap();
    let (url, requests) = listener(&[]);
    let spans = Spans::default();
    let settings = OtlpSettings { every: Duration::from_secs(3600), metrics: false, ..settings(&url) };
    let otlp = Otlp::start(settings.clone(), Arc::clone(server.shared()), Vec::new(), spans.clone()).unwrap();
    // After the first tick, which happens at once and has nothing to send.
    std::thread::sleep(Duration::from_millis(200));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(spans.clone()), || {
        tracing::debug_span!(target: TARGET, "last");
    });
    drop(otlp);
    assert_eq!(requests.recv_timeout(LIMIT).unwrap().0, "/base/v1/traces");
    // A collector that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let settings = OtlpSettings { url, metrics: true, ..settings };
    let otlp = Otlp::start(settings, Arc::clone(server.shared()), Vec::new(), spans).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let begin = std::time::Instant::now();
    drop(otlp);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    server.stop(Duration::from_secs(1));
}
