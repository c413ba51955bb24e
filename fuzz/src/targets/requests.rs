//! Nearly valid requests in any order on activated sessions.

use super::server::finish;
use crate::input::Input;
use crate::server::{Server, VARIABLES};
use core::time::Duration;
use std::collections::BTreeMap;
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    ActivateSessionRequest, BrowseDescription, BrowseDirection, BrowseNextRequest, BrowsePath, BrowseRequest,
    CallMethodRequest, CallRequest, CancelRequest, CloseSessionRequest, CreateMonitoredItemsRequest,
    CreateSessionRequest, CreateSubscriptionRequest, DataChangeFilter, DataChangeNotification,
    DataChangeTrigger, DeleteMonitoredItemsRequest, DeleteSubscriptionsRequest, FindServersRequest,
    GetEndpointsRequest, ModifyMonitoredItemsRequest, ModifySubscriptionRequest, MonitoredItemCreateRequest,
    MonitoredItemModifyRequest, MonitoringMode, MonitoringParameters, PublishRequest, PublishResponse,
    ReadRequest, ReadValueId, RegisterNodesRequest, RelativePath, RelativePathElement, RepublishRequest,
    RequestHeader, SetMonitoringModeRequest, SetPublishingModeRequest, SetTriggeringRequest,
    SubscriptionAcknowledgement, TimestampsToReturn, TransferSubscriptionsRequest,
    TranslateBrowsePathsToNodeIdsRequest, UnregisterNodesRequest, WriteRequest, WriteValue,
};
use taktwerk_server::ConnectionId;
use taktwerk_sim::plant::variable_id;
use taktwerk_types::{
    ByteString, DataValue, Decode, DecodeLimits, ExtensionObject, Instant, NodeId, QualifiedName, StatusCode,
    Variant,
};

/// Number of clients with sessions.
const CLIENTS: usize = 2;

/// A sequence of requests, writes of the application, and pauses.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut scene = Scene::new();
    while !input.is_empty() {
        scene.act(&mut input);
        scene.check();
    }
    finish(scene.server);
}

/// A client with its session.
#[derive(Debug, Default)]
struct Actor {
    /// Its number with the server.
    client: usize,
    /// The connection with that number.
    connection: Option<ConnectionId>,
    /// Time of its last message.
    heard: Instant,
    token: NodeId,
    handle: u32,
    continuation_points: Vec<ByteString>,
    /// The last sequence number of each subscription in Publish responses.
    numbers: BTreeMap<u32, u32>,
}

struct Scene {
    server: Server,
    actors: [Actor; CLIENTS],
    /// Subscription ids of all sessions.
    subscriptions: Vec<u32>,
    items: Vec<u32>,
    written: i64,
}

impl Scene {
    fn new() -> Self {
        let mut scene = Self {
            server: Server::new(),
            actors: [Actor::default(), Actor::default()],
            subscriptions: Vec::new(),
            items: Vec::new(),
            written: 0,
        };
        for at in 0..CLIENTS {
            scene.open(at);
        }
        scene
    }

    /// Connects, with a new session.
    fn open(&mut self, at: usize) {
        self.actors[at] = Actor::default();
        self.connect(at);
        let client = self.actors[at].client;
        let create = CreateSessionRequest {
            requested_session_timeout: 60_000.0,
            ..self.with_header(at, CreateSessionRequest::default())
        };
        if let Some(response) = self.server.call(client, &create) {
            self.actors[at].token = response.authentication_token;
            let activate = self.with_header(at, ActivateSessionRequest::default());
            self.server.call(client, &activate);
        }
    }

    fn connect(&mut self, at: usize) {
        let client = self.server.connect();
        let actor = &mut self.actors[at];
        actor.client = client;
        actor.connection = self.server.connection(client);
        actor.heard = self.server.now.instant;
    }

    /// Whether the server has closed a client's connection.
    fn is_gone(&self, at: usize) -> bool {
        let actor = &self.actors[at];
        self.server.connection(actor.client) != actor.connection
    }

    fn with_header<R: Request>(&mut self, at: usize, mut request: R) -> R {
        let actor = &mut self.actors[at];
        actor.heard = self.server.now.instant;
        actor.handle += 1;
        *request.header_mut() = RequestHeader {
            authentication_token: actor.token.clone(),
            request_handle: actor.handle,
            timeout_hint: 5000,
            ..RequestHeader::default()
        };
        request
    }

    fn send<R: Request>(&mut self, at: usize, request: R) -> Option<R::Response> {
        let request = self.with_header(at, request);
        self.server.call(self.actors[at].client, &request)
    }

    fn act(&mut self, input: &mut Input<'_>) {
        let at = input.below(CLIENTS);
        match input.below(16) {
            0..3 => self.publish(at, input),
            3 | 4 => self.server.pass(Duration::from_millis(pause(input))),
            5 | 6 => self.write(input),
            7 => self.create_subscription(at, input),
            8 => self.create_items(at, input),
            9 => self.change_items(at, input),
            10 => self.change_subscriptions(at, input),
            11 => self.read_and_write(at, input),
            12 => self.view(at, input),
            13 => self.call_methods(at, input),
            14 => self.session(at, input),
            _ => self.spoilt(at, input),
        }
    }

    /// The application writes.
    fn write(&mut self, input: &mut Input<'_>) {
        let variable = &self.server.variables[input.below(VARIABLES as usize)];
        let utc = self.server.now.utc;
        for _ in 0..=input.below(4) {
            self.written += 1;
            match input.below(4) {
                0 => variable.set_with(self.written, StatusCode::BAD_SENSOR_FAILURE, utc, utc),
                1 => variable.set_at(f64::NAN, utc),
                2 => variable.set_at(Variant::from(vec![self.written; input.below(5)]), utc),
                _ => variable.set_at(self.written, utc),
            }
        }
    }

    fn subscription(&self, input: &mut Input<'_>) -> u32 {
        pick_or_edge(&self.subscriptions, input)
    }

    fn item(&self, input: &mut Input<'_>) -> u32 {
        pick_or_edge(&self.items, input)
    }

    fn items(&self, input: &mut Input<'_>) -> Vec<u32> {
        (0..input.below(4)).map(|_| self.item(input)).collect()
    }

    fn publish(&mut self, at: usize, input: &mut Input<'_>) {
        let acknowledgements = (0..input.below(3)).map(|_| SubscriptionAcknowledgement {
            subscription_id: self.subscription(input),
            sequence_number: input.edgy_u32(),
        });
        let acknowledgements = acknowledgements.collect();
        let request =
            PublishRequest { subscription_acknowledgements: acknowledgements, ..PublishRequest::default() };
        let request = self.with_header(at, request);
        self.server.request(self.actors[at].client, &request);
    }

    fn create_subscription(&mut self, at: usize, input: &mut Input<'_>) {
        let response = self.send(
            at,
            CreateSubscriptionRequest {
                requested_publishing_interval: interval(input),
                requested_lifetime_count: input.edgy_u32(),
                requested_max_keep_alive_count: input.edgy_u32(),
                max_notifications_per_publish: u32::from(input.byte() % 8),
                publishing_enabled: !input.one_in(8),
                priority: input.byte(),
                ..CreateSubscriptionRequest::default()
            },
        );
        if let Some(response) = response {
            assert!(response.revised_lifetime_count >= 3 * response.revised_max_keep_alive_count);
            assert!(response.revised_publishing_interval >= 1.0);
            self.subscriptions.push(response.subscription_id);
        }
    }

    fn create_items(&mut self, at: usize, input: &mut Input<'_>) {
        let subscription_id = self.subscription(input);
        let items: Vec<_> = (0..=input.below(4))
            .map(|_| MonitoredItemCreateRequest {
                item_to_monitor: read_value_id(input),
                monitoring_mode: MonitoringMode(i32::from(input.byte() % 4)),
                requested_parameters: parameters(input),
            })
            .collect();
        let count = items.len();
        let request = CreateMonitoredItemsRequest {
            subscription_id,
            timestamps_to_return: TimestampsToReturn(i32::from(input.byte() % 5)),
            items_to_create: items,
            ..CreateMonitoredItemsRequest::default()
        };
        if let Some(response) = self.send(at, request) {
            assert_eq!(response.results.len(), count);
            let created = response.results.iter().filter(|result| result.status_code.is_good());
            self.items.extend(created.map(|result| result.monitored_item_id));
        }
    }

    fn change_items(&mut self, at: usize, input: &mut Input<'_>) {
        let subscription_id = self.subscription(input);
        match input.below(4) {
            0 => {
                let items = (0..=input.below(3)).map(|_| MonitoredItemModifyRequest {
                    monitored_item_id: self.item(input),
                    requested_parameters: parameters(input),
                });
                let items_to_modify = items.collect();
                let timestamps_to_return = TimestampsToReturn(i32::from(input.byte() % 5));
                self.send(
                    at,
                    ModifyMonitoredItemsRequest {
                        subscription_id,
                        timestamps_to_return,
                        items_to_modify,
                        ..ModifyMonitoredItemsRequest::default()
                    },
                );
            }
            1 => {
                let monitored_item_ids = self.items(input);
                self.send(
                    at,
                    DeleteMonitoredItemsRequest {
                        subscription_id,
                        monitored_item_ids,
                        ..DeleteMonitoredItemsRequest::default()
                    },
                );
            }
            2 => {
                let request = SetMonitoringModeRequest {
                    subscription_id,
                    monitoring_mode: MonitoringMode(i32::from(input.byte() % 4)),
                    monitored_item_ids: self.items(input),
                    ..SetMonitoringModeRequest::default()
                };
                self.send(at, request);
            }
            _ => {
                let request = SetTriggeringRequest {
                    subscription_id,
                    triggering_item_id: self.item(input),
                    links_to_add: self.items(input),
                    links_to_remove: self.items(input),
                    ..SetTriggeringRequest::default()
                };
                self.send(at, request);
            }
        }
    }

    fn change_subscriptions(&mut self, at: usize, input: &mut Input<'_>) {
        let subscription_id = self.subscription(input);
        let subscription_ids: Vec<u32> = (0..=input.below(2)).map(|_| self.subscription(input)).collect();
        match input.below(6) {
            0 => {
                self.send(
                    at,
                    ModifySubscriptionRequest {
                        subscription_id,
                        requested_publishing_interval: interval(input),
                        requested_lifetime_count: input.edgy_u32(),
                        requested_max_keep_alive_count: input.edgy_u32(),
                        max_notifications_per_publish: u32::from(input.byte() % 8),
                        priority: input.byte(),
                        ..ModifySubscriptionRequest::default()
                    },
                );
            }
            1 => {
                self.send(
                    at,
                    SetPublishingModeRequest {
                        publishing_enabled: input.flag(),
                        subscription_ids,
                        ..SetPublishingModeRequest::default()
                    },
                );
            }
            2 => {
                self.send(
                    at,
                    DeleteSubscriptionsRequest { subscription_ids, ..DeleteSubscriptionsRequest::default() },
                );
            }
            3 | 4 => {
                self.send(
                    at,
                    TransferSubscriptionsRequest {
                        subscription_ids,
                        send_initial_values: input.flag(),
                        ..TransferSubscriptionsRequest::default()
                    },
                );
                // Its notifications are now sent to us.
                for actor in &mut self.actors {
                    actor.numbers.clear();
                }
            }
            _ => {
                self.send(
                    at,
                    RepublishRequest {
                        subscription_id,
                        retransmit_sequence_number: input.edgy_u32(),
                        ..RepublishRequest::default()
                    },
                );
            }
        }
    }

    fn read_and_write(&mut self, at: usize, input: &mut Input<'_>) {
        if input.flag() {
            let nodes: Vec<_> = (0..input.below(25)).map(|_| read_value_id(input)).collect();
            let count = nodes.len();
            let response = self.send(
                at,
                ReadRequest {
                    max_age: interval(input),
                    timestamps_to_return: TimestampsToReturn(i32::from(input.byte() % 5)),
                    nodes_to_read: nodes,
                    ..ReadRequest::default()
                },
            );
            if let Some(response) = response {
                assert_eq!(response.results.len(), count);
            }
        } else {
            let nodes: Vec<_> = (0..input.below(25))
                .map(|_| {
                    let ReadValueId { node_id, attribute_id, index_range, .. } = read_value_id(input);
                    let value =
                        Variant::decode_from(input.piece(), DecodeLimits::DEFAULT).unwrap_or_default();
                    WriteValue { node_id, attribute_id, index_range, value: DataValue::new(value) }
                })
                .collect();
            let count = nodes.len();
            if let Some(response) =
                self.send(at, WriteRequest { nodes_to_write: nodes, ..WriteRequest::default() })
            {
                assert_eq!(response.results.len(), count);
            }
        }
    }

    fn view(&mut self, at: usize, input: &mut Input<'_>) {
        match input.below(5) {
            0 | 1 => {
                let nodes = (0..=input.below(3)).map(|_| BrowseDescription {
                    node_id: node_id(input),
                    browse_direction: BrowseDirection(i32::from(input.byte() % 4)),
                    reference_type_id: node_id(input),
                    include_subtypes: input.flag(),
                    node_class_mask: input.edgy_u32(),
                    result_mask: input.edgy_u32(),
                });
                let nodes_to_browse = nodes.collect();
                let response = self.send(
                    at,
                    BrowseRequest {
                        requested_max_references_per_node: u32::from(input.byte() % 5),
                        nodes_to_browse,
                        ..BrowseRequest::default()
                    },
                );
                let results = response.map(|response| response.results).unwrap_or_default();
                let points = results.into_iter().map(|result| result.continuation_point);
                self.actors[at]
                    .continuation_points
                    .extend(points.filter(|point| *point != ByteString::default()));
            }
            2 => {
                let points = &self.actors[input.below(CLIENTS)].continuation_points;
                let continuation_points = match points.len() {
                    0 => vec![ByteString::from(input.piece().to_vec())],
                    len => vec![points[input.below(len)].clone(); 1 + input.below(2)],
                };
                self.send(
                    at,
                    BrowseNextRequest {
                        release_continuation_points: input.flag(),
                        continuation_points,
                        ..BrowseNextRequest::default()
                    },
                );
            }
            3 => {
                let elements = (0..input.below(4)).map(|_| RelativePathElement {
                    reference_type_id: node_id(input),
                    is_inverse: input.flag(),
                    include_subtypes: input.flag(),
                    target_name: input
                        .pick(&NAMES)
                        .map_or_else(QualifiedName::default, |(index, name)| QualifiedName::new(index, name)),
                });
                let relative_path = RelativePath { elements: elements.collect() };
                let browse_paths = vec![BrowsePath { starting_node: node_id(input), relative_path }];
                self.send(
                    at,
                    TranslateBrowsePathsToNodeIdsRequest {
                        browse_paths,
                        ..TranslateBrowsePathsToNodeIdsRequest::default()
                    },
                );
            }
            _ => {
                let nodes: Vec<NodeId> = (0..input.below(4)).map(|_| node_id(input)).collect();
                let nodes_to_register = nodes.clone();
                self.send(at, RegisterNodesRequest { nodes_to_register, ..RegisterNodesRequest::default() });
                self.send(
                    at,
                    UnregisterNodesRequest {
                        nodes_to_unregister: nodes,
                        ..UnregisterNodesRequest::default()
                    },
                );
            }
        }
    }

    /// GetMonitoredItems and ResendData of the Server object, and unknown methods.
    fn call_methods(&mut self, at: usize, input: &mut Input<'_>) {
        let methods = (0..=input.below(2)).map(|_| CallMethodRequest {
            object_id: if input.one_in(8) { node_id(input) } else { NodeId::numeric(0, 2253) },
            method_id: if input.one_in(8) {
                node_id(input)
            } else {
                NodeId::numeric(0, input.pick(&[11492, 12873]))
            },
            input_arguments: match input.below(4) {
                0 => Variant::decode_from(input.piece(), DecodeLimits::DEFAULT).into_iter().collect(),
                _ => vec![self.subscription(input).into()],
            },
        });
        let methods_to_call = methods.collect();
        self.send(at, CallRequest { methods_to_call, ..CallRequest::default() });
    }

    fn session(&mut self, at: usize, input: &mut Input<'_>) {
        match input.below(8) {
            0 => {
                self.send(
                    at,
                    CloseSessionRequest {
                        delete_subscriptions: input.flag(),
                        ..CloseSessionRequest::default()
                    },
                );
                self.server.disconnect(self.actors[at].client);
                self.open(at);
            }
            1 => {
                // The connection breaks, and another one takes over the session.
                self.server.disconnect(self.actors[at].client);
                self.server.pass(Duration::from_millis(pause(input)));
                self.connect(at);
                self.actors[at].numbers.clear();
                self.send(at, ActivateSessionRequest::default());
            }
            2 => {
                self.server.disconnect(self.actors[at].client);
                self.open(at);
            }
            3 => {
                let request_handle = input.edgy_u32();
                self.send(at, CancelRequest { request_handle, ..CancelRequest::default() });
            }
            4 => {
                self.send(at, GetEndpointsRequest::default());
            }
            5 => {
                self.send(at, FindServersRequest::default());
            }
            6 => {
                // Another client with our token.
                let token = self.actors[0].token.clone();
                let own = core::mem::replace(&mut self.actors[1].token, token);
                self.send(1, ReadRequest::default());
                self.actors[1].token = own;
            }
            _ => {
                self.send(at, CreateSessionRequest::default());
            }
        }
    }

    /// A valid request with some bytes changed, or truncated.
    fn spoilt(&mut self, at: usize, input: &mut Input<'_>) {
        use taktwerk_types::{Encode, Structure};
        let request = self.with_header(
            at,
            CreateMonitoredItemsRequest {
                subscription_id: self.subscriptions.first().copied().unwrap_or_default(),
                items_to_create: vec![MonitoredItemCreateRequest {
                    item_to_monitor: read_value_id(input),
                    requested_parameters: parameters(input),
                    ..MonitoredItemCreateRequest::default()
                }],
                ..CreateMonitoredItemsRequest::default()
            },
        );
        let mut body = NodeId::numeric(0, CreateMonitoredItemsRequest::BINARY_ENCODING_ID).encode_to_vec();
        request.encode(&mut body);
        for _ in 0..input.below(4) {
            let place = usize::from(input.u16()) % body.len();
            body[place] ^= input.byte();
        }
        if input.one_in(4) {
            body.truncate(usize::from(input.u16()) % body.len());
        }
        self.server.message(self.actors[at].client, &body);
    }

    /// Checks that Publish responses are in order, without gaps in their numbers.
    fn check(&mut self) {
        for at in 0..CLIENTS {
            if self.is_gone(at) {
                // Connections stay open for any request; only idle connections without a session may be closed.
                let silence = self.server.now.instant.since(self.actors[at].heard);
                assert!(silence >= Server::silence_max(), "closed after {silence:?}");
                self.open(at);
            }
            for answer in self.server.take_answers(self.actors[at].client) {
                let Some(response) = answer.read::<PublishResponse>() else { continue };
                let message = &response.notification_message;
                let numbers = &mut self.actors[at].numbers;
                let id = response.subscription_id;
                let keep_alive = message.notification_data.is_empty();
                if let Some(last) = numbers.get(&id) {
                    assert_eq!(message.sequence_number, last + 1, "subscription {id}");
                }
                let last = if keep_alive { message.sequence_number - 1 } else { message.sequence_number };
                numbers.insert(id, last);
                let data = message
                    .notification_data
                    .first()
                    .is_some_and(ExtensionObject::is::<DataChangeNotification>);
                if data {
                    let available = &response.available_sequence_numbers;
                    assert!(available.contains(&message.sequence_number), "{available:?}");
                    assert!(available.is_sorted(), "{available:?}");
                }
            }
        }
        assert!(self.server.connected() >= CLIENTS);
    }
}

/// Names of existing child nodes.
const NAMES: [Option<(u16, &str)>; 5] =
    [None, Some((0, "Server")), Some((1, "V0")), Some((0, "ServerStatus")), Some((0, "Objects"))];

fn pick_or_edge(known: &[u32], input: &mut Input<'_>) -> u32 {
    match (known.len(), input.byte()) {
        (0, _) | (_, 0xf0..) => input.edgy_u32(),
        (len, choice) => known[usize::from(choice) % len],
    }
}

fn pause(input: &mut Input<'_>) -> u64 {
    match input.byte() {
        small @ 0..0xc0 => u64::from(small) * 5,
        large => u64::from(large - 0xc0) * 1000,
    }
}

/// Milliseconds, and special values of a Double.
fn interval(input: &mut Input<'_>) -> f64 {
    match input.byte() {
        0xff => input.f64(),
        0xfe => -1.0,
        0xfd => f64::NAN,
        0xfc => f64::INFINITY,
        millis => f64::from(millis) * 2.0,
    }
}

fn node_id(input: &mut Input<'_>) -> NodeId {
    match input.byte() {
        variable @ 0..4 => variable_id(u32::from(variable)),
        4 => NodeId::NULL,
        5 => NodeId::string(1, "nothing"),
        6 => NodeId::opaque(u16::MAX, input.piece().to_vec()),
        // Root, Objects, Server, ServerStatus, CurrentTime, Organizes, HierarchicalReferences, a method, a type.
        choice => {
            NodeId::numeric(0, [84, 85, 2253, 2256, 2258, 35, 33, 11492, 63, 3062][usize::from(choice) % 10])
        }
    }
}

fn read_value_id(input: &mut Input<'_>) -> ReadValueId {
    ReadValueId {
        node_id: node_id(input),
        attribute_id: match input.byte() {
            other @ 0xe0.. => u32::from(other - 0xe0),
            _ => 13,
        },
        index_range: input.pick(&["", "", "", "0", "1:2", "0:1,0:1", "x", "4294967295"]).into(),
        data_encoding: if input.byte() == 0xff {
            QualifiedName::new(0, "Default XML")
        } else {
            QualifiedName::default()
        },
    }
}

fn parameters(input: &mut Input<'_>) -> MonitoringParameters {
    let filter = match input.below(6) {
        0 => ExtensionObject::new(&DataChangeFilter {
            trigger: DataChangeTrigger(i32::from(input.byte() % 4)),
            deadband_type: u32::from(input.byte() % 4),
            deadband_value: interval(input),
        }),
        1 => ExtensionObject::from_binary(NodeId::numeric(0, 724), input.piece().to_vec()),
        _ => ExtensionObject::NULL,
    };
    MonitoringParameters {
        client_handle: u32::from(input.byte()),
        sampling_interval: interval(input),
        filter,
        queue_size: input.edgy_u32(),
        discard_oldest: input.flag(),
    }
}
