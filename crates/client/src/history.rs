//! Reads history in pages (Part 11 §6.5), without I/O: a [`HistoryReader`] makes requests, takes responses, and follows
//! continuation points until all is read.

use core::time::Duration;
use taktwerk_schema::{
    AggregateConfiguration, Annotation, EventFilter, HistoryData, HistoryEvent, HistoryModifiedData,
    HistoryReadRequest, HistoryReadResponse, HistoryReadValueId, ModificationInfo, ReadAtTimeDetails,
    ReadEventDetails, ReadProcessedDetails, ReadRawModifiedDetails, TimestampsToReturn,
};
use taktwerk_types::{
    ByteString, DataValue, DecodeError, ExtensionObject, NodeId, StatusCode, UtcTime, Variant,
};

/// Maximum number of values per response.
const PAGE: u32 = 100_000;

/// The time range to read. If the end is before the start, the latest values come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRange {
    /// Start of the range; `None` starts at the end and reads backwards.
    pub start: Option<UtcTime>,
    /// End of the range, exclusive. `None` is unlimited.
    pub end: Option<UtcTime>,
    /// Maximum number of values.
    pub limit: Option<usize>,
}

impl HistoryRange {
    /// All values from one time up to another.
    #[must_use]
    pub const fn between(start: UtcTime, end: UtcTime) -> Self {
        Self { start: Some(start), end: Some(end), limit: None }
    }

    /// The last values before a time, latest first.
    #[must_use]
    pub const fn before(end: UtcTime, limit: usize) -> Self {
        Self { start: None, end: Some(end), limit: Some(limit) }
    }

    /// Limits the number of values.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// NumValuesPerNode. Without an end time it is the total number of values, otherwise the number per response (Part
    /// 11 §6.5.3.1).
    fn page(&self) -> u32 {
        let limit = self.limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
        match (self.start, self.end) {
            (Some(_), Some(_)) => limit.unwrap_or(PAGE).min(PAGE),
            _ => limit.unwrap_or(PAGE),
        }
    }
}

/// What to read from a node's history.
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryQuery {
    /// Raw values.
    Raw {
        /// The range.
        range: HistoryRange,
        /// Include the bounding values before and after the range.
        bounds: bool,
    },
    /// Inserted, replaced and deleted values.
    Modified(HistoryRange),
    /// Values at given times, interpolated if necessary.
    AtTimes(Vec<UtcTime>),
    /// An aggregate per interval (Part 13).
    Processed {
        /// Start of the first interval.
        start: UtcTime,
        /// End of the last interval.
        end: UtcTime,
        /// The AggregateFunction object, such as `i=2342` for Average.
        aggregate: NodeId,
        /// Length of an interval.
        interval: Duration,
        /// Handling of values that are not good; `None` uses the server's default.
        configuration: Option<AggregateConfiguration>,
    },
    /// Events of an Object.
    Events {
        /// The range.
        range: HistoryRange,
        /// The fields to select and the condition.
        filter: EventFilter,
    },
}

impl HistoryQuery {
    /// Raw values of a range.
    #[must_use]
    pub const fn raw(range: HistoryRange) -> Self {
        Self::Raw { range, bounds: false }
    }

    fn limit(&self) -> usize {
        match self {
            Self::Raw { range, .. } | Self::Modified(range) | Self::Events { range, .. } => range.limit,
            Self::AtTimes(_) | Self::Processed { .. } => None,
        }
        .unwrap_or(usize::MAX)
    }

    fn details(&self) -> ExtensionObject {
        let null = |time: Option<UtcTime>| time.unwrap_or(UtcTime::NULL);
        let raw = |range: &HistoryRange, is_read_modified, return_bounds| {
            ExtensionObject::new(&ReadRawModifiedDetails {
                is_read_modified,
                start_time: null(range.start),
                end_time: null(range.end),
                num_values_per_node: range.page(),
                return_bounds,
            })
        };
        match self {
            Self::Raw { range, bounds } => raw(range, false, *bounds),
            Self::Modified(range) => raw(range, true, false),
            Self::AtTimes(times) => ExtensionObject::new(&ReadAtTimeDetails {
                req_times: times.clone(),
                use_simple_bounds: false,
            }),
            Self::Processed { start, end, aggregate, interval, configuration } => {
                let default = || AggregateConfiguration {
                    use_server_capabilities_defaults: true,
                    ..Default::default()
                };
                ExtensionObject::new(&ReadProcessedDetails {
                    start_time: *start,
                    end_time: *end,
                    processing_interval: interval.as_secs_f64() * 1e3,
                    aggregate_type: vec![aggregate.clone()],
                    aggregate_configuration: configuration.clone().unwrap_or_else(default),
                })
            }
            Self::Events { range, filter } => ExtensionObject::new(&ReadEventDetails {
                num_values_per_node: range.page(),
                start_time: null(range.start),
                end_time: null(range.end),
                filter: filter.clone(),
            }),
        }
    }
}

/// The values or events read. The query determines which lists are used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HistoryPage {
    /// Values.
    pub values: Vec<DataValue>,
    /// For modified values: one entry per value.
    pub modifications: Vec<ModificationInfo>,
    /// For events: the selected fields of each.
    pub events: Vec<Vec<Variant>>,
}

impl HistoryPage {
    /// Number of values or events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() + self.events.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends another page.
    pub fn append(&mut self, mut other: Self) {
        self.values.append(&mut other.values);
        self.modifications.append(&mut other.modifications);
        self.events.append(&mut other.events);
    }

    /// The values as annotations with their annotated times: after reading raw data of an Annotations Property (Part 11
    /// §5.1.2).
    ///
    /// # Errors
    /// A value is not an annotation.
    pub fn annotations(&self) -> Result<Vec<(UtcTime, Annotation)>, DecodeError> {
        let one = |value: &DataValue| match &value.value {
            Some(Variant::ExtensionObject(object)) => {
                Ok((value.source_timestamp.unwrap_or(UtcTime::NULL), object.decode()?))
            }
            _ => Err(DecodeError::Invalid("Annotation")),
        };
        self.values.iter().map(one).collect()
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.modifications.truncate(len);
        self.events.truncate(len);
    }
}

/// Why reading a node's history failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The server refused the request.
    #[error("{0}")]
    Status(StatusCode),
    /// The server's response is invalid.
    #[error("the server's response cannot be decoded: {0}")]
    Damaged(#[from] DecodeError),
}

impl HistoryError {
    /// The corresponding StatusCode.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Status(status) => *status,
            Self::Damaged(_) => StatusCode::BAD_DECODING_ERROR,
        }
    }
}

/// The value to write for an annotation, with the annotated time as its SourceTimestamp (Part 11 §6.9.3).
#[must_use]
pub fn annotation_value(time: UtcTime, annotation: &Annotation) -> DataValue {
    DataValue {
        value: Some(Variant::from_structure(annotation)),
        source_timestamp: Some(time),
        ..DataValue::default()
    }
}

/// Reads the history of one node.
#[derive(Debug)]
pub struct HistoryReader {
    node: NodeId,
    details: ExtensionObject,
    continuation: ByteString,
    left: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// The limit is reached; the continuation point has to be released.
    Releasing,
    Done,
}

impl HistoryReader {
    /// Starts reading.
    #[must_use]
    pub fn new(node: NodeId, query: &HistoryQuery) -> Self {
        Self {
            node,
            details: query.details(),
            continuation: ByteString::default(),
            left: query.limit(),
            state: State::Reading,
        }
    }

    /// The next request; `None` when all values were read.
    #[must_use]
    pub fn request(&self) -> Option<HistoryReadRequest> {
        let release = match self.state {
            State::Reading => false,
            State::Releasing => true,
            State::Done => return None,
        };
        Some(HistoryReadRequest {
            history_read_details: self.details.clone(),
            timestamps_to_return: TimestampsToReturn::BOTH,
            release_continuation_points: release,
            nodes_to_read: vec![HistoryReadValueId {
                node_id: self.node.clone(),
                continuation_point: self.continuation.clone(),
                ..Default::default()
            }],
            ..Default::default()
        })
    }

    /// Ends early. The next request releases the continuation point, if there is one.
    pub fn finish(&mut self) {
        if self.state == State::Reading {
            self.state = if self.continuation.as_bytes().is_empty() { State::Done } else { State::Releasing };
        }
    }

    /// Takes the response to the last request.
    ///
    /// # Errors
    /// The server refused, or its response is invalid. No more requests follow then.
    pub fn accept(&mut self, response: HistoryReadResponse) -> Result<HistoryPage, HistoryError> {
        if core::mem::replace(&mut self.state, State::Done) != State::Reading {
            return Ok(HistoryPage::default());
        }
        let none = HistoryError::Status(StatusCode::BAD_UNEXPECTED_ERROR);
        let result = response.results.into_iter().next().ok_or(none)?;
        if result.status_code.is_bad() {
            return Err(HistoryError::Status(result.status_code));
        }
        let mut page = page(&result.history_data)?;
        let is_stuck = page.is_empty() && self.continuation == result.continuation_point;
        self.continuation = result.continuation_point;
        // A server that returns no values and the same continuation point would be asked without end.
        if !self.continuation.as_bytes().is_empty() && !is_stuck {
            self.state = if page.len() >= self.left { State::Releasing } else { State::Reading };
        }
        page.truncate(self.left);
        self.left -= page.len();
        Ok(page)
    }
}

fn page(data: &ExtensionObject) -> Result<HistoryPage, DecodeError> {
    let mut page = HistoryPage::default();
    if data.is::<HistoryModifiedData>() {
        let data: HistoryModifiedData = data.decode()?;
        (page.values, page.modifications) = (data.data_values, data.modification_infos);
    } else if data.is::<HistoryEvent>() {
        let data: HistoryEvent = data.decode()?;
        page.events = data.events.into_iter().map(|event| event.event_fields).collect();
    } else if !data.is_null() {
        page.values = data.decode::<HistoryData>()?.data_values;
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::{HistoryEventFieldList, HistoryReadResult};
    use taktwerk_types::Structure;

    fn response<T: Structure>(data: &T, point: &[u8]) -> HistoryReadResponse {
        let result = HistoryReadResult {
            status_code: StatusCode::GOOD,
            continuation_point: point.to_vec().into(),
            history_data: ExtensionObject::new(data),
        };
        HistoryReadResponse { results: vec![result], ..Default::default() }
    }

    fn numbers(from: i32, to: i32) -> HistoryData {
        HistoryData { data_values: (from..to).map(DataValue::new).collect() }
    }

    fn query(limit: Option<usize>) -> HistoryQuery {
        let range =
            HistoryRange { start: Some(UtcTime::from_ticks(1)), end: Some(UtcTime::from_ticks(9)), limit };
        HistoryQuery::raw(range)
    }

    #[test]
    fn pages_follow_until_there_is_no_continuation_point() {
        let mut reader = HistoryReader::new(NodeId::numeric(1, 1), &query(None));
        let first = reader.request().unwrap();
        assert!(first.nodes_to_read[0].continuation_point.as_bytes().is_empty());
        assert_eq!(reader.accept(response(&numbers(0, 3), b"p")).unwrap().len(), 3);
        let second = reader.request().unwrap();
        assert_eq!(second.nodes_to_read[0].continuation_point.as_bytes(), b"p");
        assert!(!second.release_continuation_points);
        assert_eq!(reader.accept(response(&numbers(3, 5), b"")).unwrap().len(), 2);
        assert_eq!(reader.request(), None);
    }

    #[test]
    fn at_the_limit_the_continuation_point_is_released() {
        let mut reader = HistoryReader::new(NodeId::numeric(1, 1), &query(Some(4)));
        assert_eq!(reader.accept(response(&numbers(0, 3), b"p")).unwrap().len(), 3);
        assert_eq!(reader.accept(response(&numbers(3, 6), b"q")).unwrap().values, numbers(3, 4).data_values);
        let release = reader.request().unwrap();
        assert!(release.release_continuation_points);
        assert_eq!(release.nodes_to_read[0].continuation_point.as_bytes(), b"q");
        assert!(reader.accept(response(&numbers(0, 1), b"r")).unwrap().is_empty());
        assert_eq!(reader.request(), None);
        let mut early = HistoryReader::new(NodeId::numeric(1, 1), &query(None));
        early.accept(response(&numbers(0, 1), b"p")).unwrap();
        early.finish();
        assert!(early.request().unwrap().release_continuation_points);
    }

    #[test]
    fn hostile_answers_end_it() {
        let reader = || HistoryReader::new(NodeId::numeric(1, 1), &query(None));
        // The same continuation point without data, again and again.
        let mut stuck = reader();
        stuck.accept(response(&numbers(0, 0), b"p")).unwrap();
        stuck.accept(response(&numbers(0, 0), b"p")).unwrap();
        assert_eq!(stuck.request(), None);
        let mut refused = reader();
        let bad = HistoryReadResult { status_code: StatusCode::BAD_USER_ACCESS_DENIED, ..Default::default() };
        let bad = HistoryReadResponse { results: vec![bad], ..Default::default() };
        assert_eq!(refused.accept(bad), Err(HistoryError::Status(StatusCode::BAD_USER_ACCESS_DENIED)));
        assert_eq!(refused.request(), None);
        assert!(reader().accept(HistoryReadResponse::default()).is_err());
        let mut other = reader();
        assert!(matches!(
            other.accept(response(&ModificationInfo::default(), b"")),
            Err(HistoryError::Damaged(_))
        ));
    }

    #[test]
    fn each_query_has_its_details_and_each_answer_its_list() {
        let (start, end) = (UtcTime::from_ticks(1), UtcTime::from_ticks(9));
        let details = |query: &HistoryQuery| HistoryReader::new(NodeId::NULL, query).details;
        let before: ReadRawModifiedDetails =
            details(&HistoryQuery::Modified(HistoryRange::before(end, 7))).decode().unwrap();
        assert!(before.is_read_modified && before.start_time.is_null() && before.num_values_per_node == 7);
        let processed = HistoryQuery::Processed {
            start,
            end,
            aggregate: NodeId::numeric(0, 2342),
            interval: Duration::from_secs(60),
            configuration: None,
        };
        let processed: ReadProcessedDetails = details(&processed).decode().unwrap();
        assert_eq!(processed.processing_interval, 60_000.0);
        assert!(processed.aggregate_configuration.use_server_capabilities_defaults);
        let times: ReadAtTimeDetails = details(&HistoryQuery::AtTimes(vec![start])).decode().unwrap();
        assert_eq!(times.req_times, [start]);
        let range = HistoryRange::between(start, end).limit(5);
        let events = HistoryQuery::Events { range, filter: EventFilter::default() };
        let mut reader = HistoryReader::new(NodeId::NULL, &events);
        assert_eq!(reader.details.decode::<ReadEventDetails>().unwrap().num_values_per_node, 5);
        let event = HistoryEventFieldList { event_fields: vec![7.into()] };
        let page = reader.accept(response(&HistoryEvent { events: vec![event] }, b"")).unwrap();
        assert_eq!(page.events, [vec![Variant::from(7)]]);
        let changes = HistoryModifiedData {
            data_values: vec![DataValue::new(1)],
            modification_infos: vec![ModificationInfo::default()],
        };
        let mut modified = HistoryReader::new(NodeId::NULL, &HistoryQuery::Modified(range));
        assert_eq!(modified.accept(response(&changes, b"")).unwrap().modifications.len(), 1);
    }
}
