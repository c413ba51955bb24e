//! The history of events over the wire (Part 11 §6.5.2, §6.9.4, §6.9.7).

use super::attribute::{add, variable};
use super::*;
use crate::NewEvent;
use crate::history::{HistoryStore, MemoryStore};
use crate::recorder::Recorder;
use crate::space::build::Under;
use crate::space::spec::NodeSpec;
use schema::ids::{object_ids, object_type_ids, reference_type_ids, variable_ids};
use schema::{
    ContentFilter, ContentFilterElement, DeleteEventDetails, EventFilter, FilterOperator, HistoryEvent,
    HistoryEventFieldList, HistoryReadRequest, HistoryReadResult, HistoryReadValueId, HistoryUpdateRequest,
    HistoryUpdateResult, LiteralOperand, PerformUpdateType, ReadEventDetails, ReadRequest, ReadValueId,
    SimpleAttributeOperand, TimestampsToReturn, UpdateEventDetails,
};
use taktwerk_types::{BuiltInType, ByteString, ExtensionObject, QualifiedName, Variant};

const EVENT_NOTIFIER: u32 = 12;

/// A server with events in memory, and their recorder.
struct Kept {
    server: Server,
    recorder: Recorder,
    store: Arc<MemoryStore>,
}

impl Kept {
    fn new(writable: bool) -> Self {
        Self::with(writable, |_| {})
    }

    fn with(writable: bool, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
        let mut config = ServerConfig::new("Test", APPLICATION, URL, utc);
        change(&mut config);
        let space = Arc::new(AddressSpace::with_recorder(1, 64, 64, APPLICATION));
        let store = Arc::new(MemoryStore::new(100_000));
        space.set_history_store(Arc::clone(&store) as Arc<dyn HistoryStore>);
        let shared = ServerShared::new(config, Arc::clone(&space), 1, utc);
        let shard = Shard::new(0, shared, Box::new(SeededEntropy::new(1)));
        let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
        let server = Server { shard, space: Arc::clone(&space), now, from: None };
        add(&server, variable(1, BuiltInType::Double, 1.0));
        let under = Under {
            parent: &object_ids::OBJECTS_FOLDER.into(),
            reference_type: &reference_type_ids::HAS_COMPONENT.into(),
            type_definition: Some(&object_type_ids::BASE_OBJECT_TYPE.into()),
        };
        let spec = NodeSpec::object(boiler(), QualifiedName::new(1, "Boiler")).event_notifier(1);
        server.space.add_node(spec, under, utc).unwrap();
        space.historize_events(writable, utc).unwrap();
        let recorder = Recorder::new(&space).unwrap();
        Self { server, recorder, store }
    }

    /// Raises an event some seconds after the start.
    fn raise(&self, second: u64, severity: u16) -> ByteString {
        self.raise_from(NodeId::numeric(0, object_ids::SERVER), second, severity)
    }

    fn raise_from(&self, source: NodeId, second: u64, severity: u16) -> ByteString {
        let time = self.server.now.utc.plus(Duration::from_secs(second));
        let event = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), source);
        let event = event.severity(severity).time(time).message(format!("event {second}").as_str());
        self.server.space.raise(event, time).unwrap()
    }

    fn record(&mut self) {
        while let Some((history, events)) = self.recorder.take_events(self.server.now.utc) {
            self.store.append_events(&history.key, &events).unwrap();
        }
    }

    fn time(&self, second: u64) -> UtcTime {
        self.server.now.utc.plus(Duration::from_secs(second))
    }

    fn read(&mut self, client: &mut Client, details: &ReadEventDetails, point: &[u8]) -> HistoryReadResult {
        self.read_of(client, object_ids::SERVER.into(), details, point)
    }

    fn read_of(
        &mut self,
        client: &mut Client,
        node_id: NodeId,
        details: &ReadEventDetails,
        point: &[u8],
    ) -> HistoryReadResult {
        let request = HistoryReadRequest {
            request_header: client.header(),
            history_read_details: ExtensionObject::new(details),
            timestamps_to_return: TimestampsToReturn::SOURCE,
            nodes_to_read: vec![HistoryReadValueId {
                node_id,
                continuation_point: point.to_vec().into(),
                ..Default::default()
            }],
            ..Default::default()
        };
        client.call(&mut self.server, &request).unwrap().results.remove(0)
    }

    fn update(&mut self, client: &mut Client, details: ExtensionObject) -> HistoryUpdateResult {
        let request =
            HistoryUpdateRequest { request_header: client.header(), history_update_details: vec![details] };
        client.call(&mut self.server, &request).unwrap().results.remove(0)
    }
}

fn boiler() -> NodeId {
    NodeId::numeric(1, 2)
}

fn operand(name: &str) -> SimpleAttributeOperand {
    SimpleAttributeOperand {
        type_definition_id: object_type_ids::BASE_EVENT_TYPE.into(),
        browse_path: vec![QualifiedName::new(0, name)],
        attribute_id: 13,
        ..Default::default()
    }
}

/// Severity and EventId of events with at least this severity.
fn filter(severity: Option<u16>) -> EventFilter {
    let elements = severity.map(|severity| ContentFilterElement {
        filter_operator: FilterOperator::GREATER_THAN_OR_EQUAL,
        filter_operands: vec![
            ExtensionObject::new(&operand("Severity")),
            ExtensionObject::new(&LiteralOperand { value: severity.into() }),
        ],
    });
    EventFilter {
        select_clauses: vec![operand("Severity"), operand("EventId")],
        where_clause: ContentFilter { elements: elements.into_iter().collect() },
    }
}

fn severities(result: &HistoryReadResult) -> Vec<u16> {
    let events = result.history_data.decode::<HistoryEvent>().map_or_else(|_| Vec::new(), |data| data.events);
    let severity = |list: &HistoryEventFieldList| match list.event_fields.first() {
        Some(Variant::UInt16(severity)) => *severity,
        other => panic!("{other:?}"),
    };
    events.iter().map(severity).collect()
}

#[test]
fn events_are_read_by_time_and_filter_with_continuation_points() {
    let mut kept = Kept::new(false);
    for second in 0..10 {
        kept.raise(second, 100 + u16::try_from(second).unwrap() * 50);
    }
    kept.record();
    let mut client = kept.server.session();
    let (start, end) = (kept.time(2), kept.time(8));
    let details = |start, end, page, severity| ReadEventDetails {
        num_values_per_node: page,
        start_time: start,
        end_time: end,
        filter: filter(severity),
    };
    let result = kept.read(&mut client, &details(start, end, 0, None), &[]);
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert_eq!(severities(&result), [200, 250, 300, 350, 400, 450], "the end is exclusive");
    let result = kept.read(&mut client, &details(end, start, 0, Some(300)), &[]);
    assert_eq!(severities(&result), [500, 450, 400, 350, 300]);
    // Pages.
    let page = details(start, end, 4, None);
    let first = kept.read(&mut client, &page, &[]);
    assert_eq!(severities(&first), [200, 250, 300, 350]);
    let point = first.continuation_point.as_bytes().to_vec();
    let second = kept.read(&mut client, &page, &point);
    assert_eq!(severities(&second), [400, 450]);
    assert!(second.continuation_point.as_bytes().is_empty());
    let again = kept.read(&mut client, &page, &point);
    assert_eq!(again.status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
    // The last three before a time, and no more than requested.
    let result = kept.read(&mut client, &details(UtcTime::NULL, kept.time(5), 3, None), &[]);
    assert_eq!((severities(&result), result.continuation_point.as_bytes().len()), (vec![350, 300, 250], 0));
    let result = kept.read(&mut client, &details(kept.time(50), kept.time(60), 0, None), &[]);
    assert_eq!(result.status_code, StatusCode::GOOD_NO_DATA);
    let bad = ReadEventDetails { filter: EventFilter::default(), ..details(start, end, 0, None) };
    assert_eq!(kept.read(&mut client, &bad, &[]).status_code, StatusCode::BAD_EVENT_FILTER_INVALID);
    // A Variable has no events.
    let result = kept.read_of(&mut client, NodeId::numeric(1, 1), &details(start, end, 0, None), &[]);
    assert_eq!(result.status_code, StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED);
}

#[test]
fn repeated_nodes_share_the_limit_of_a_request() {
    let mut kept = Kept::with(false, |config| config.limits.history_raw_values_max = 1_500);
    for number in 0..2_100 {
        kept.raise(number, if [5, 1_500].contains(&number) { 900 } else { 1 });
        if number % 50 == 49 {
            kept.record();
        }
    }
    let mut client = kept.server.session();
    let details = ReadEventDetails {
        num_values_per_node: 0,
        start_time: kept.time(0),
        end_time: kept.time(5_000),
        filter: filter(Some(900)),
    };
    let node = HistoryReadValueId { node_id: object_ids::SERVER.into(), ..Default::default() };
    let request = HistoryReadRequest {
        request_header: client.header(),
        history_read_details: ExtensionObject::new(&details),
        timestamps_to_return: TimestampsToReturn::SOURCE,
        nodes_to_read: vec![node; 3],
        ..Default::default()
    };
    let results = client.call(&mut kept.server, &request).unwrap().results;
    let found: Vec<_> = results.iter().map(severities).collect();
    // The first one may examine as many as the request, the others none.
    assert_eq!(found, [vec![900, 900], vec![], vec![]]);
    // Each continues where it stopped.
    let second = kept.read(&mut client, &details, results[1].continuation_point.as_bytes());
    assert_eq!(severities(&second), [900, 900]);
}

#[test]
fn the_server_publishes_its_capabilities() {
    for writable in [false, true] {
        let mut kept = Kept::new(writable);
        let mut client = kept.server.session();
        let node =
            |node_id: NodeId, attribute_id| ReadValueId { node_id, attribute_id, ..Default::default() };
        let request = ReadRequest {
            request_header: client.header(),
            timestamps_to_return: TimestampsToReturn::NEITHER,
            nodes_to_read: vec![
                node(object_ids::SERVER.into(), EVENT_NOTIFIER),
                node(variable_ids::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_EVENTS_CAPABILITY.into(), 13),
                node(variable_ids::HISTORY_SERVER_CAPABILITIES_INSERT_EVENT_CAPABILITY.into(), 13),
            ],
            ..Default::default()
        };
        let results = client.call(&mut kept.server, &request).unwrap().results;
        let values: Vec<_> = results.into_iter().map(|result| result.value.unwrap()).collect();
        let bits: u8 = if writable { 1 | 4 | 8 } else { 1 | 4 };
        assert_eq!(values, [Variant::from(bits), true.into(), writable.into()]);
    }
}

#[test]
fn events_are_inserted_replaced_and_deleted_by_their_ids() {
    let mut kept = Kept::new(true);
    let foreign = kept.raise(1, 10);
    let known = kept.raise_from(boiler(), 1, 100);
    kept.record();
    let mut client = kept.server.session();
    let select = ["EventId", "EventType", "Time", "Severity", "SourceNode"].map(operand).to_vec();
    let fields = |id: &[u8], severity: u16, time: UtcTime| HistoryEventFieldList {
        event_fields: vec![
            ByteString::from(id.to_vec()).into(),
            NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE).into(),
            time.into(),
            severity.into(),
            boiler().into(),
        ],
    };
    let details = |kind, events| {
        ExtensionObject::new(&UpdateEventDetails {
            node_id: boiler(),
            perform_insert_replace: kind,
            filter: EventFilter { select_clauses: select.clone(), ..Default::default() },
            event_data: events,
        })
    };
    let (one, three) = (kept.time(1), kept.time(3));
    let insert = vec![
        fields(b"new", 300, three),
        fields(known.as_bytes(), 1, one),
        fields(b"", 1, one),
        fields(b"no time", 1, UtcTime::NULL),
    ];
    let result = kept.update(&mut client, details(PerformUpdateType::INSERT, insert));
    assert_eq!(
        result.operation_results,
        [
            StatusCode::GOOD_ENTRY_INSERTED,
            StatusCode::BAD_ENTRY_EXISTS,
            StatusCode::BAD_INVALID_ARGUMENT,
            StatusCode::BAD_INVALID_ARGUMENT
        ]
    );
    let replace = vec![fields(known.as_bytes(), 150, one), fields(b"other", 1, one)];
    let result = kept.update(&mut client, details(PerformUpdateType::REPLACE, replace));
    assert_eq!(result.operation_results, [StatusCode::GOOD_ENTRY_REPLACED, StatusCode::BAD_NO_ENTRY_EXISTS]);
    let all = ReadEventDetails {
        num_values_per_node: 0,
        start_time: kept.time(0),
        end_time: kept.time(9),
        filter: filter(None),
    };
    // For an Object, only its own events.
    assert_eq!(severities(&kept.read_of(&mut client, boiler(), &all, &[])), [150, 300]);
    assert_eq!(severities(&kept.read(&mut client, &all, &[])), [10, 150, 300]);
    let delete =
        DeleteEventDetails { node_id: boiler(), event_ids: vec![known, ByteString::from(b"none".to_vec())] };
    let result = kept.update(&mut client, ExtensionObject::new(&delete));
    assert_eq!(result.operation_results, [StatusCode::GOOD, StatusCode::BAD_NO_ENTRY_EXISTS]);
    assert_eq!(severities(&kept.read(&mut client, &all, &[])), [10, 300]);
    // A permission on one Object does not allow changing or taking over events of other Objects.
    let delete = DeleteEventDetails { node_id: boiler(), event_ids: vec![foreign.clone()] };
    let result = kept.update(&mut client, ExtensionObject::new(&delete));
    assert_eq!(result.operation_results, [StatusCode::BAD_NO_ENTRY_EXISTS]);
    let taken = || vec![fields(foreign.as_bytes(), 999, one)];
    for (kind, status) in [
        (PerformUpdateType::REPLACE, StatusCode::BAD_NO_ENTRY_EXISTS),
        (PerformUpdateType::UPDATE, StatusCode::BAD_ENTRY_EXISTS),
        (PerformUpdateType::INSERT, StatusCode::BAD_ENTRY_EXISTS),
    ] {
        assert_eq!(kept.update(&mut client, details(kind, taken())).operation_results, [status]);
    }
    for id in [&b"new"[..], b"another"] {
        let mut moved = fields(id, 999, one);
        moved.event_fields[4] = NodeId::numeric(0, object_ids::SERVER).into();
        let result = kept.update(&mut client, details(PerformUpdateType::UPDATE, vec![moved]));
        assert_eq!(result.operation_results, [StatusCode::BAD_USER_ACCESS_DENIED]);
    }
    assert_eq!(severities(&kept.read(&mut client, &all, &[])), [10, 300]);
    // Without write access, clients change nothing.
    let mut kept = Kept::new(false);
    let mut client = kept.server.session();
    let result = kept.update(&mut client, ExtensionObject::new(&delete));
    assert_eq!(result.status_code, StatusCode::BAD_USER_ACCESS_DENIED);
}
