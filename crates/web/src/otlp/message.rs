//! The messages of OTLP 1.x: the fields of `opentelemetry/proto/*/v1` that are sent.

use prost::{Message, Oneof};

/// AGGREGATION_TEMPORALITY_CUMULATIVE
const CUMULATIVE: i32 = 2;
/// SPAN_KIND_INTERNAL
const INTERNAL: i32 = 1;
/// STATUS_CODE_ERROR
const ERROR: i32 = 2;

/// A value of an attribute.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Any {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Number(f64),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 2, 3, 4")]
    pub(super) value: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// An attribute.
pub(super) fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

/// The resource of all metrics and spans.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

impl Scope {
    fn own() -> Self {
        Self { name: "taktwerk".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// ExportMetricsServiceRequest
#[derive(Clone, PartialEq, Message)]
pub(super) struct Metrics {
    #[prost(message, repeated, tag = "1")]
    pub(super) resources: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scopes: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) description: String,
    #[prost(oneof = "Data", tags = "5, 7")]
    pub(super) data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<Point>,
    #[prost(int32, tag = "2")]
    temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

impl Sum {
    /// A cumulative counter since the start of the program.
    pub(super) fn counter(points: Vec<Point>) -> Self {
        Self { points, temporality: CUMULATIVE, is_monotonic: true }
    }
}

/// NumberDataPoint
#[derive(Clone, PartialEq, Message)]
pub(super) struct Point {
    #[prost(fixed64, tag = "2")]
    pub(super) start: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) time: u64,
    #[prost(oneof = "Number", tags = "4")]
    pub(super) value: Option<Number>,
    #[prost(message, repeated, tag = "7")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Number {
    #[prost(double, tag = "4")]
    Double(f64),
}

/// ExportTraceServiceRequest
#[derive(Clone, PartialEq, Message)]
pub(super) struct Traces {
    #[prost(message, repeated, tag = "1")]
    pub(super) resources: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scopes: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

impl Status {
    /// The status of a failed operation.
    pub(super) fn error(message: String) -> Self {
        Self { message, code: ERROR }
    }
}

impl Span {
    /// A new span.
    pub(super) fn begun(trace_id: [u8; 16], span_id: [u8; 8], name: &str, start: u64) -> Self {
        Self {
            trace_id: trace_id.to_vec(),
            span_id: span_id.to_vec(),
            name: name.to_owned(),
            kind: INTERNAL,
            start,
            ..Self::default()
        }
    }
}

/// Metrics of one resource.
pub(super) fn metrics(resource: Resource, metrics: Vec<Metric>) -> Metrics {
    let scopes = vec![ScopeMetrics { scope: Some(Scope::own()), metrics }];
    Metrics { resources: vec![ResourceMetrics { resource: Some(resource), scopes }] }
}

/// Spans of one resource.
pub(super) fn traces(resource: Resource, spans: Vec<Span>) -> Traces {
    let scopes = vec![ScopeSpans { scope: Some(Scope::own()), spans }];
    Traces { resources: vec![ResourceSpans { resource: Some(resource), scopes }] }
}
