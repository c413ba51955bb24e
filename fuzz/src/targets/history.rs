//! History: arbitrary stored chunks, and nearly valid requests.

use super::server::finish;
use crate::input::Input;
use crate::server::Server;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_history::chunk;
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    ActivateSessionRequest, AggregateConfiguration, AggregateFilter, Annotation, CreateMonitoredItemsRequest,
    CreateSessionRequest, CreateSubscriptionRequest, DeleteAtTimeDetails, DeleteRawModifiedDetails,
    HistoryReadRequest, HistoryReadValueId, HistoryUpdateRequest, MonitoredItemCreateRequest, MonitoringMode,
    MonitoringParameters, PerformUpdateType, PublishRequest, ReadAnnotationDataDetails, ReadAtTimeDetails,
    ReadProcessedDetails, ReadRawModifiedDetails, ReadValueId, RequestHeader, TimestampsToReturn,
    UpdateDataDetails, UpdateStructureDataDetails,
};
use taktwerk_server::history::aggregate::Aggregate;
use taktwerk_server::history::{HistoryStore, HistoryValue, MemoryStore, NodeHistory};
use taktwerk_sim::plant::variable_id;
use taktwerk_types::{
    ByteString, DataValue, Decode, DecodeLimits, ExtensionObject, NodeId, StatusCode, UtcTime, Variant,
};

/// Arbitrary bytes of a stored chunk or batch do not panic, and readable content survives writing and reading.
pub fn stored(data: &[u8]) {
    let mut values = Vec::new();
    if chunk::decode(data, &mut values).is_ok() {
        let mut again = Vec::new();
        chunk::decode(&chunk::encode(&values), &mut again).expect("it was just written");
        assert!(same(&values, &again), "{values:?} was read as {again:?}");
    }
    if let Ok(batch) = chunk::decode_batch(data) {
        let borrowed: Vec<(u32, &HistoryValue)> = batch.iter().map(|(node, value)| (*node, value)).collect();
        let again = chunk::decode_batch(&chunk::encode_batch(&borrowed)).expect("it was just written");
        assert!(again.len() == batch.len());
        assert!(again.iter().zip(&batch).all(|(one, other)| one.0 == other.0 && one.1.same_as(&other.1)));
    }
    // Values chosen by the input.
    let mut input = Input::new(data);
    let mut values = Vec::new();
    while !input.is_empty() {
        values.push(value(&mut input));
    }
    values.sort_by_key(|value| value.source);
    values.dedup_by_key(|value| value.source);
    let mut again = Vec::new();
    chunk::decode(&chunk::encode(&values), &mut again).expect("it was just written");
    assert!(same(&values, &again), "{values:?} was read as {again:?}");
}

fn same(values: &[HistoryValue], others: &[HistoryValue]) -> bool {
    values.len() == others.len() && values.iter().zip(others).all(|(one, other)| one.same_as(other))
}

/// A time near the server's values, or at the limits.
fn time(input: &mut Input<'_>) -> UtcTime {
    const BASE: i64 = 133_000_000_000_000_000;
    UtcTime::from_ticks(match input.byte() {
        0xff => i64::MAX,
        0xfe => i64::MIN,
        0xfd => 0,
        0xfc => 1,
        near => BASE + i64::from(near) * 10_000 + i64::from(input.byte() % 3),
    })
}

fn value(input: &mut Input<'_>) -> HistoryValue {
    let source = time(input);
    let server = if input.flag() { source } else { time(input) };
    let status = match input.below(5) {
        0 => StatusCode::BAD,
        1 => StatusCode::UNCERTAIN,
        2 => StatusCode(input.u32()),
        _ => StatusCode::GOOD,
    };
    let value = match input.below(8) {
        0 => Variant::Empty,
        1 => Variant::from(input.u32()),
        2 => Variant::from(input.flag()),
        3 => Variant::decode_from(input.piece(), DecodeLimits::DEFAULT).unwrap_or_default(),
        4 => Variant::from(i64::from(input.u16()) - 300),
        _ => Variant::from(input.f64()),
    };
    HistoryValue { source, server, status, value }
}

/// HistoryRead and HistoryUpdate, and items with AggregateFilters.
pub fn requests(data: &[u8]) {
    let mut input = Input::new(data);
    let mut scene = Scene::new();
    while !input.is_empty() {
        scene.act(&mut input);
    }
    finish(scene.server);
}

struct Scene {
    server: Server,
    client: usize,
    token: NodeId,
    handle: u32,
    subscription: u32,
    points: Vec<ByteString>,
}

impl Scene {
    fn new() -> Self {
        let mut server = Server::with(|config| {
            config.limits.history_values_max = 20;
            config.limits.history_raw_values_max = 200;
            config.limits.history_continuation_points_max = 3;
        });
        let store = Arc::new(MemoryStore::new(60));
        for number in 0..2 {
            let id = variable_id(number);
            let key = server.space.node_key(&id);
            let mut history = NodeHistory::new(Arc::clone(&store) as Arc<dyn HistoryStore>, key);
            history.stepped = number == 0;
            server
                .space
                .set_history(&id, history, true, true, server.now.utc)
                .expect("the variable is there");
        }
        let client = server.connect();
        let mut scene =
            Self { server, client, token: NodeId::NULL, handle: 0, subscription: 0, points: Vec::new() };
        let create = CreateSessionRequest { requested_session_timeout: 60_000.0, ..Default::default() };
        scene.token = scene.send(create).map(|response| response.authentication_token).unwrap_or_default();
        scene.send(ActivateSessionRequest::default());
        let subscribe = CreateSubscriptionRequest {
            requested_publishing_interval: 10.0,
            requested_lifetime_count: 1_000,
            requested_max_keep_alive_count: 100,
            publishing_enabled: true,
            ..Default::default()
        };
        scene.subscription = scene.send(subscribe).map_or(0, |response| response.subscription_id);
        scene
    }

    fn send<R: Request>(&mut self, mut request: R) -> Option<R::Response> {
        self.handle += 1;
        *request.header_mut() = RequestHeader {
            authentication_token: self.token.clone(),
            request_handle: self.handle,
            timeout_hint: 5_000,
            ..RequestHeader::default()
        };
        self.server.call(self.client, &request)
    }

    fn act(&mut self, input: &mut Input<'_>) {
        match input.below(8) {
            0..3 => self.read(input),
            3..5 => self.update(input),
            5 => self.monitor(input),
            6 => {
                self.send(PublishRequest::default());
                self.server.pass(Duration::from_millis(u64::from(input.byte()) * 4));
            }
            _ => {
                let variable = &self.server.variables[input.below(2)];
                variable.set_at(i64::from(input.byte()), self.server.now.utc);
            }
        }
    }

    fn node(input: &mut Input<'_>) -> NodeId {
        match input.below(8) {
            7 => NodeId::numeric(0, 2258),
            6 => variable_id(3),
            number => variable_id(number as u32 % 2),
        }
    }

    fn read(&mut self, input: &mut Input<'_>) {
        let nodes: Vec<HistoryReadValueId> = (0..=input.below(3))
            .map(|_| HistoryReadValueId {
                node_id: Self::node(input),
                index_range: input.pick(&["", "", "", "0", "1:2", "x"]).into(),
                continuation_point: match input.below(4) {
                    0 if !self.points.is_empty() => self.points[input.below(self.points.len())].clone(),
                    1 if input.one_in(8) => input.piece().to_vec().into(),
                    _ => ByteString::default(),
                },
                ..Default::default()
            })
            .collect();
        let (start_time, end_time) = (time(input), time(input));
        let details = match input.below(6) {
            0 => ExtensionObject::new(&ReadProcessedDetails {
                start_time,
                end_time,
                processing_interval: interval(input),
                aggregate_type: nodes.iter().map(|_| aggregate(input)).collect(),
                aggregate_configuration: configuration(input),
            }),
            1 => ExtensionObject::new(&ReadAtTimeDetails {
                req_times: (0..input.below(30)).map(|_| time(input)).collect(),
                use_simple_bounds: input.flag(),
            }),
            2 => ExtensionObject::new(&ReadAnnotationDataDetails {
                req_times: (0..input.below(30)).map(|_| time(input)).collect(),
            }),
            3 if input.one_in(4) => {
                let type_id = NodeId::numeric(0, input.pick(&[646, 649, 652, 655, 23500]));
                ExtensionObject::from_binary(type_id, input.piece().to_vec())
            }
            _ => ExtensionObject::new(&ReadRawModifiedDetails {
                is_read_modified: input.one_in(4),
                start_time,
                end_time,
                num_values_per_node: u32::from(input.byte() % 32),
                return_bounds: input.flag(),
            }),
        };
        let count = nodes.len();
        let request = HistoryReadRequest {
            history_read_details: details,
            timestamps_to_return: TimestampsToReturn(i32::from(input.byte() % 5)),
            release_continuation_points: input.one_in(8),
            nodes_to_read: nodes,
            ..Default::default()
        };
        let Some(response) = self.send(request) else { return };
        assert_eq!(response.results.len(), count);
        for result in response.results {
            if !result.continuation_point.as_bytes().is_empty() {
                self.points.push(result.continuation_point);
            }
        }
        if self.points.len() > 8 {
            self.points.drain(..4);
        }
    }

    fn update(&mut self, input: &mut Input<'_>) {
        let node_id = Self::node(input);
        let perform_insert_replace = PerformUpdateType(i32::from(input.byte() % 6));
        let data_value = |input: &mut Input<'_>| {
            let value = value(input);
            DataValue {
                value: Some(value.value).filter(|value| !value.is_empty()),
                status: Some(value.status),
                source_timestamp: Some(value.source),
                ..DataValue::default()
            }
        };
        let details = match input.below(5) {
            0 => ExtensionObject::new(&DeleteRawModifiedDetails {
                node_id,
                is_delete_modified: input.flag(),
                start_time: time(input),
                end_time: time(input),
            }),
            1 => ExtensionObject::new(&DeleteAtTimeDetails {
                node_id,
                req_times: (0..input.below(8)).map(|_| time(input)).collect(),
            }),
            2 => {
                let annotation = Annotation {
                    message: "m".into(),
                    user_name: input.pick(&["a", "b"]).into(),
                    annotation_time: time(input),
                };
                let value = DataValue {
                    source_timestamp: Some(time(input)),
                    ..DataValue::new(Variant::from_structure(&annotation))
                };
                ExtensionObject::new(&UpdateStructureDataDetails {
                    node_id,
                    perform_insert_replace,
                    update_values: vec![value],
                })
            }
            _ => ExtensionObject::new(&UpdateDataDetails {
                node_id,
                perform_insert_replace,
                update_values: (0..input.below(12)).map(|_| data_value(input)).collect(),
            }),
        };
        let request = HistoryUpdateRequest { history_update_details: vec![details], ..Default::default() };
        if let Some(response) = self.send(request) {
            assert_eq!(response.results.len(), 1);
        }
    }

    fn monitor(&mut self, input: &mut Input<'_>) {
        let filter = AggregateFilter {
            start_time: time(input),
            aggregate_type: aggregate(input),
            processing_interval: interval(input),
            aggregate_configuration: configuration(input),
        };
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: Self::node(input),
                attribute_id: 13,
                ..Default::default()
            },
            monitoring_mode: MonitoringMode(i32::from(input.byte() % 3)),
            requested_parameters: MonitoringParameters {
                client_handle: 1,
                sampling_interval: interval(input),
                filter: ExtensionObject::new(&filter),
                queue_size: u32::from(input.byte() % 8),
                discard_oldest: input.flag(),
            },
        };
        self.send(CreateMonitoredItemsRequest {
            subscription_id: self.subscription,
            timestamps_to_return: TimestampsToReturn(2),
            items_to_create: vec![item],
            ..Default::default()
        });
    }
}

fn aggregate(input: &mut Input<'_>) -> NodeId {
    let number = usize::from(input.byte()) % (Aggregate::ALL.len() + 1);
    Aggregate::ALL.get(number).map_or(NodeId::numeric(0, 2253), |aggregate| aggregate.node_id())
}

/// Milliseconds, and special values of a Double.
fn interval(input: &mut Input<'_>) -> f64 {
    match input.byte() {
        0xff => input.f64(),
        0xfe => f64::NAN,
        0xfd => f64::MIN_POSITIVE,
        0xfc => 1e300,
        millis => f64::from(millis) / 4.0,
    }
}

fn configuration(input: &mut Input<'_>) -> AggregateConfiguration {
    AggregateConfiguration {
        use_server_capabilities_defaults: input.flag(),
        treat_uncertain_as_bad: input.flag(),
        percent_data_bad: input.byte() % 110,
        percent_data_good: 100 - input.byte() % 101,
        use_sloped_extrapolation: input.flag(),
    }
}
