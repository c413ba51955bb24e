//! Values as JSON, and history of variables.

use super::nodes::parse;
use super::{Problem, Who};
use axum::Json;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use taktwerk::{Client, DataValue, NodeId, StatusCode, UtcTime};
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{
    AggregateConfiguration, HistoryData, HistoryReadRequest, HistoryReadValueId, ReadProcessedDetails,
    ReadRawModifiedDetails, TimestampsToReturn,
};
use taktwerk_types::json::{JsonContext, encode_value};
use taktwerk_types::{ExtensionObject, Structure};

/// Maximum length of a value in characters; longer values are truncated on the server.
const VALUE_LEN_MAX: usize = 10_000;
/// Maximum number of points of a curve.
const POINTS_MAX: u32 = 2_000;

/// Milliseconds since 1970.
pub(crate) fn millis(time: UtcTime) -> i64 {
    // Saturates, because clients can write any timestamp.
    time.ticks().saturating_sub(UtcTime::from_unix(std::time::Duration::ZERO).ticks()) / 10_000
}

/// The time at milliseconds since 1970.
fn time(millis: i64) -> UtcTime {
    let epoch = UtcTime::from_unix(std::time::Duration::ZERO).ticks();
    UtcTime::from_ticks(epoch.saturating_add(millis.saturating_mul(10_000)))
}

/// A number as typed by users: a comma counts as a decimal point.
pub(crate) fn number_text(text: &str) -> Option<String> {
    let text = text.replace(',', ".");
    (!text.is_empty()).then_some(text)
}

/// Appends a value as `value,"status",milliseconds`; the status is `null` if it is good.
pub(crate) fn append(value: &DataValue, out: &mut Vec<u8>) {
    append_content(value, out);
    out.push(b',');
    append_status(value.status(), out);
    out.extend_from_slice(format!(",{}", time_of(value)).as_bytes());
}

/// The source timestamp, or else the server timestamp, in milliseconds since 1970; 0 if both are missing.
pub(crate) fn time_of(value: &DataValue) -> i64 {
    value.source_timestamp.or(value.server_timestamp).map(millis).unwrap_or_default()
}

/// Appends a status as text, or `null` if it is good.
pub(crate) fn append_status(status: StatusCode, out: &mut Vec<u8>) {
    if status == StatusCode::GOOD {
        out.extend_from_slice(b"null");
    } else {
        out.extend_from_slice(format!("\"{status}\"").as_bytes());
    }
}

/// Appends the value without status and time.
fn append_content(value: &DataValue, out: &mut Vec<u8>) {
    append_content_up_to(VALUE_LEN_MAX, value, out);
}

/// Appends the value without status and time; if it is longer than `len_max` bytes, the name of its type.
pub(crate) fn append_content_up_to(len_max: usize, value: &DataValue, out: &mut Vec<u8>) {
    let start = out.len();
    match &value.value {
        Some(variant) => encode_value(variant, &JsonContext::default(), out),
        None => out.extend_from_slice(b"null"),
    }
    if out.len() - start > len_max || out.len() == start {
        out.truncate(start);
        let text = value.value.as_ref().map(|value| format!("\"{}\"", value.type_name())).unwrap_or_default();
        out.extend_from_slice(if text.is_empty() { b"null" } else { text.as_bytes() });
    }
}

/// `[value, status, milliseconds]`.
pub(crate) fn json_of(value: &DataValue) -> Value {
    let mut out = vec![b'['];
    append(value, &mut out);
    out.push(b']');
    serde_json::from_slice(&out).unwrap_or(Value::Null)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Span {
    node: String,
    /// Milliseconds since 1970.
    from: i64,
    /// Milliseconds since 1970.
    to: i64,
    /// Maximum number of points that the page can draw.
    points: u32,
}

/// A variable's history between two times: raw values if there are few, otherwise averages.
pub(crate) async fn history(Who(visitor): Who, Query(span): Query<Span>) -> Result<Json<Value>, Problem> {
    let node = parse(&visitor.client.namespaces(), &span.node)?;
    let points = span.points.clamp(10, POINTS_MAX);
    if span.from >= span.to {
        return Err(Problem::bad_request("from must be before to"));
    }
    let (start_time, end_time) = (time(span.from), time(span.to));
    let raw = ReadRawModifiedDetails {
        is_read_modified: false,
        start_time,
        end_time,
        num_values_per_node: points,
        return_bounds: true,
    };
    let (mut values, is_all) = read(&visitor.client, &node, &raw).await?;
    if !is_all {
        let average = ReadProcessedDetails {
            start_time,
            end_time,
            processing_interval: step(&span, points),
            aggregate_type: vec![NodeId::numeric(0, object_ids::AGGREGATE_FUNCTION_AVERAGE)],
            aggregate_configuration: AggregateConfiguration {
                use_server_capabilities_defaults: true,
                ..AggregateConfiguration::default()
            },
        };
        (values, _) = read(&visitor.client, &node, &average).await?;
    }
    let mut out = vec![b'['];
    for (index, value) in values.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"[" } else { b",[" });
        append(value, &mut out);
        out.push(b']');
    }
    out.push(b']');
    let values = String::from_utf8(out).ok().and_then(|text| RawValue::from_string(text).ok());
    Ok(Json(json!({ "isRaw": is_all, "values": values })))
}

/// Milliseconds per point.
fn step(span: &Span, points: u32) -> f64 {
    (span.to.saturating_sub(span.from) as f64 / f64::from(points)).max(1.0)
}

/// Reads history, and returns whether these are all values.
async fn read<T: Structure>(
    client: &Client,
    node: &NodeId,
    details: &T,
) -> Result<(Vec<DataValue>, bool), Problem> {
    let ask = |continuation_point, release| HistoryReadRequest {
        history_read_details: ExtensionObject::new(details),
        timestamps_to_return: TimestampsToReturn::SOURCE,
        release_continuation_points: release,
        nodes_to_read: vec![HistoryReadValueId {
            node_id: node.clone(),
            continuation_point,
            ..HistoryReadValueId::default()
        }],
        ..HistoryReadRequest::default()
    };
    let response = client.request(ask(Default::default(), false), None).await?;
    let Some(result) = response.results.into_iter().next() else {
        return Err(Problem::bad_request(format!("{node}: the server returned no result")));
    };
    if result.status_code.is_bad() {
        return Err(Problem::bad_request(format!("{node}: no history: {}", result.status_code)));
    }
    let data: HistoryData = result
        .history_data
        .decode()
        .map_err(|error| Problem::bad_request(format!("{node}: cannot read the history: {error}")))?;
    let is_all = result.continuation_point.as_deref().unwrap_or_default().is_empty();
    if !is_all {
        client.request(ask(result.continuation_point, true), None).await?;
    }
    Ok((data.data_values, is_all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::Variant;

    #[test]
    fn values_are_json_with_status_and_time() {
        let value = DataValue::new(21.5).at(time(1_700_000_000_123), time(0));
        assert_eq!(json_of(&value), json!([21.5, null, 1_700_000_000_123_i64]));
        let bad = DataValue::from_status(StatusCode::BAD_NO_COMMUNICATION);
        assert_eq!(json_of(&bad), json!([null, StatusCode::BAD_NO_COMMUNICATION.to_string(), 0]));
        let long = DataValue::new(Variant::from("x".repeat(VALUE_LEN_MAX)));
        assert_eq!(json_of(&long)[0], json!("String"));
        assert_eq!(json_of(&DataValue::new(f64::NAN))[0], json!("NaN"));
    }

    #[test]
    fn extreme_times_are_saturated() {
        let span = |from, to| Span { node: String::new(), from, to, points: 10 };
        assert_eq!((step(&span(0, 5_000), 10), step(&span(0, 5), 10)), (500.0, 1.0));
        assert!(step(&span(i64::MIN, i64::MAX), 10) > 1e17);
        for ticks in [i64::MIN, -1, 0, i64::MAX] {
            let value = DataValue::new(1).at(UtcTime::from_ticks(ticks), time(0));
            assert!(json_of(&value)[2].is_i64(), "{ticks}");
        }
        assert!(time(i64::MAX) > time(0) && time(i64::MIN) < time(0));
    }
}
