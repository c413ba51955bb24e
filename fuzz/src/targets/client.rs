//! The client against a malicious server.
//!
//! The server's channel is correct, so that its responses reach the client; the input determines their content: valid
//! responses with any content, faults, other types, random bytes, missing, repeated and reordered responses.

use super::driven::{Driven, Scene, choose};
use crate::input::Input;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use taktwerk_channel::{Channel, ChannelConfig, Event as ChannelEvent};
use taktwerk_client::{
    ClientConfig, ConnectionId, Delivery, Effect, Event, SubscriptionEvent, SubscriptionHandle,
    SubscriptionParams, Target,
};
use taktwerk_schema::{
    ActivateSessionResponse, CallRequest, CallResponse, CreateMonitoredItemsRequest,
    CreateMonitoredItemsResponse, CreateSessionResponse, CreateSubscriptionResponse, DataChangeNotification,
    GetEndpointsResponse, MonitoredItemCreateResult, MonitoredItemNotification, NotificationMessage,
    PublishResponse, ReadRequest, ReadResponse, RepublishRequest, RepublishResponse, RequestHeader,
    ResponseHeader, ServiceFault, StatusChangeNotification, TransferResult, TransferSubscriptionsRequest,
    TransferSubscriptionsResponse, ids::encoding_ids as id, service::Response,
};
use taktwerk_sim::plant::{monitor, value_of};
use taktwerk_types::{
    DataValue, Decode, DecodeLimits, Decoder, Encode, ExtensionObject, Instant, NodeId, StatusCode,
};

/// A conversation.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut scene = Talk::new(&mut input);
    while !input.is_empty() {
        scene.act(&mut input);
    }
    scene.end();
    assert!(scene.link.is_none());
}

struct Talk {
    driven: Driven,
    link: Option<Link>,
    /// The required sequence number of each subscription's next message.
    expected: BTreeMap<SubscriptionHandle, u32>,
}

/// The server's side of the connection.
struct Link {
    connection: ConnectionId,
    channel: Channel,
    out: Vec<u8>,
    /// Bytes to the server.
    inbox: Vec<u8>,
    /// Bytes to the client, not consumed yet.
    outbox: Vec<u8>,
    requests: VecDeque<Asked>,
    numbers: Numbers,
}

/// Counters of a correct server.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Of the next notification message.
    next_message: u32,
    sessions: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { next_message: 1, sessions: 0 }
    }
}

/// A request as received by the server.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) request_id: u32,
    pub(super) type_id: u32,
    /// After the type id.
    pub(super) body: Vec<u8>,
}

impl Talk {
    fn new(input: &mut Input<'_>) -> Self {
        let mut config = ClientConfig { read_limits: input.flag(), ..ClientConfig::default() };
        config.reconnect.retry_first = input.flag();
        let target =
            if input.flag() { Target::new("opc.tcp://host") } else { Target::direct("opc.tcp://host") };
        let driven = Driven::new(config, target.expect("a URL"));
        let mut scene = Self { driven, link: None, expected: BTreeMap::new() };
        scene.settle();
        scene
    }

    fn act(&mut self, input: &mut Input<'_>) {
        match input.below(16) {
            0..7 => self.answer(input),
            7 => self.fault(input),
            8 => self.garbage(input),
            9 => self.unasked(input),
            10 => self.pass(Duration::from_millis(u64::from(input.byte()) * 50)),
            11 => self.pass(Duration::from_secs(u64::from(input.byte()))),
            12 => self.break_connection(),
            _ => self.command(input),
        }
        self.settle();
    }

    // ---- the application

    fn command(&mut self, input: &mut Input<'_>) {
        let driven = &mut self.driven;
        driven.commands += 1;
        let now = driven.now;
        let pick = |subscriptions: &[SubscriptionHandle], input: &mut Input<'_>| match subscriptions.len() {
            0 => SubscriptionHandle(99),
            len => subscriptions[input.below(len)],
        };
        let subscription = pick(&driven.subscriptions, input);
        match input.below(9) {
            0 if driven.subscriptions.len() < 4 => {
                let handle = driven.client.create_subscription(params(input), now);
                driven.subscriptions.push(handle);
            }
            0 | 1 => {
                let items: Vec<_> =
                    (0..input.below(4)).map(|_| monitor(u32::from(input.byte() % 8), 1)).collect();
                let _ = driven.client.add_items(subscription, items, now);
            }
            2 => {
                let handle = u32::from(input.byte() % 8);
                let _ = driven.client.remove_items(subscription, &[handle], now);
            }
            3 => {
                let _ = driven.client.modify_subscription(subscription, params(input), now);
            }
            4 => {
                let _ = driven.client.delete_subscription(subscription, now);
            }
            5 => {
                let read = ReadRequest {
                    nodes_to_read: vec![value_of(0); input.below(9)],
                    ..ReadRequest::default()
                };
                let asked = driven.client.operate(read, now);
                driven.asked(asked);
            }
            6 => {
                let mut call = CallRequest::default();
                let asked = driven.client.request(&mut call, None, now);
                driven.asked(asked);
            }
            7 if input.one_in(8) => driven.client.disconnect(now),
            _ => driven.connect(|| Target::direct("opc.tcp://host").expect("a URL")),
        }
    }

    // ---- the server

    /// Takes an outstanding request: usually the oldest.
    fn take(&mut self, input: &mut Input<'_>) -> Option<Asked> {
        let requests = &mut self.link.as_mut()?.requests;
        requests.remove(choose(requests, input))
    }

    fn send(&mut self, request_id: u32, message: &[u8]) {
        let Some(link) = &mut self.link else { return };
        if link.channel.is_open() {
            let start = link.channel.begin(&mut link.out);
            link.out.extend_from_slice(message);
            let _ = link.channel.finish(start, request_id, &mut link.out);
            link.outbox.append(&mut link.out);
        }
    }

    /// Sends a valid response; sometimes twice.
    fn answer(&mut self, input: &mut Input<'_>) {
        let Some(asked) = self.take(input) else { return };
        let Some(link) = &mut self.link else { return };
        let Some(message) = proper(&asked, &mut link.numbers, input) else { return };
        self.send(asked.request_id, &message);
        if input.byte() == 0xff {
            self.send(asked.request_id, &message);
        }
    }

    fn fault(&mut self, input: &mut Input<'_>) {
        let Some(asked) = self.take(input) else { return };
        let status = input.pick(&[
            StatusCode::BAD_SESSION_ID_INVALID,
            StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
            StatusCode::BAD_NO_SUBSCRIPTION,
            StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS,
            StatusCode::BAD_TOO_MANY_OPERATIONS,
            StatusCode::BAD_TIMEOUT,
            StatusCode::BAD_SERVICE_UNSUPPORTED,
            StatusCode::BAD_MESSAGE_NOT_AVAILABLE,
            StatusCode::GOOD,
        ]);
        let response_header = ResponseHeader { service_result: status, ..ResponseHeader::default() };
        let message = encode(&ServiceFault { response_header });
        self.send(asked.request_id, &message);
    }

    /// Sends random bytes, or the beginning of a response.
    fn garbage(&mut self, input: &mut Input<'_>) {
        let Some(asked) = self.take(input) else { return };
        let message = if input.flag() {
            input.piece().to_vec()
        } else {
            let Some(link) = &mut self.link else { return };
            let mut message = proper(&asked, &mut link.numbers, input).unwrap_or_default();
            for _ in 0..input.below(4) {
                let at = usize::from(input.u16());
                let change = input.byte();
                if let Some(byte) = message.get_mut(at) {
                    *byte ^= change;
                }
            }
            if input.flag() {
                message.truncate(usize::from(input.u16()));
            }
            message
        };
        // The client may accept damaged responses, so the expected numbers are unknown from now on.
        self.expected.clear();
        self.send(asked.request_id, &message);
    }

    /// Sends a response without a request, or raw bytes.
    fn unasked(&mut self, input: &mut Input<'_>) {
        if input.flag() {
            let message = encode(&ReadResponse::default());
            self.send(input.edgy_u32(), &message);
        } else if let Some(link) = &mut self.link {
            link.outbox.extend_from_slice(input.piece());
        }
    }

    fn break_connection(&mut self) {
        if let Some(link) = self.link.take() {
            self.driven.closed(link.connection);
        }
    }
}

impl Scene for Talk {
    fn driven(&mut self) -> &mut Driven {
        &mut self.driven
    }

    fn perform(&mut self, effect: Effect) {
        let driven = &mut self.driven;
        match effect {
            Effect::Connect { connection, .. } => {
                let channel = Channel::server(Arc::new(ChannelConfig::default()), 7, driven.now);
                self.link = Some(Link {
                    connection,
                    channel,
                    out: Vec::new(),
                    inbox: Vec::new(),
                    outbox: Vec::new(),
                    requests: VecDeque::new(),
                    numbers: Numbers::default(),
                });
                driven.client.handle_connected(connection, driven.now, &mut driven.deliveries);
            }
            Effect::Disconnect { connection, .. } => {
                self.link.take_if(|link| link.connection == connection);
            }
            Effect::Crypto { token, job, provider } => {
                let result = job.run(provider.as_ref());
                driven.client.complete(token, result, driven.now, &mut driven.deliveries);
            }
        }
    }

    fn carry(&mut self) -> bool {
        let Some(link) = &mut self.link else {
            self.driven.client.transmit().clear();
            return false;
        };
        let busy = !self.driven.client.transmit().is_empty();
        link.inbox.append(self.driven.client.transmit());
        link.read(self.driven.now);
        self.driven.receive(link.connection, &mut link.outbox) || busy
    }

    fn delivered(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::DataChanges { subscription, sequence_number, .. } => {
                if let Some(expected) = self.expected.get_mut(&subscription) {
                    assert_eq!(sequence_number, *expected, "{subscription:?}");
                    *expected = following(sequence_number);
                }
            }
            Delivery::Event(Event::Subscription(handle, event)) => match event {
                SubscriptionEvent::Created { .. } => {
                    self.expected.insert(handle, 1);
                }
                SubscriptionEvent::DataLost { from, to } => {
                    if let Some(expected) = self.expected.get_mut(&handle) {
                        assert_eq!(from, *expected, "{handle:?}");
                        *expected = following(to);
                    }
                }
                SubscriptionEvent::Ended(_) | SubscriptionEvent::Deleted => {
                    self.expected.remove(&handle);
                }
                _ => {}
            },
            Delivery::Event(Event::Disconnected(_)) => self.expected.clear(),
            _ => {}
        }
    }
}

impl Link {
    fn read(&mut self, now: Instant) {
        let mut at = 0;
        while !self.channel.is_closed() {
            let buf = &mut self.inbox[at..];
            let received = self.channel.receive(buf, now, &mut self.out);
            let received = received.unwrap_or_else(|error| panic!("the client breaks the protocol: {error}"));
            match received.event {
                ChannelEvent::NeedMore { .. } => break,
                ChannelEvent::Message { request_id, body } => {
                    let message = body.bytes(buf);
                    let mut decoder = Decoder::new(message, DecodeLimits::DEFAULT);
                    let type_id =
                        NodeId::decode(&mut decoder).expect("a type id").ns0().expect("of namespace 0");
                    let body = decoder.rest().to_vec();
                    RequestHeader::decode(&mut decoder).expect("a request header");
                    self.requests.push_back(Asked { request_id, type_id, body });
                }
                _ => {}
            }
            at += received.consumed;
        }
        self.inbox.drain(..at);
        self.outbox.append(&mut self.out);
    }
}

/// Zero is skipped (Part 4 §7.26).
const fn following(number: u32) -> u32 {
    if number == u32::MAX { 1 } else { number + 1 }
}

pub(super) fn params(input: &mut Input<'_>) -> SubscriptionParams {
    SubscriptionParams {
        publishing_interval_ms: f64::from(input.byte()) * 10.0,
        lifetime_count: u32::from(input.byte()),
        keep_alive_count: u32::from(input.byte()),
        ..SubscriptionParams::default()
    }
}

pub(super) fn encode<T: Response>(response: &T) -> Vec<u8> {
    let mut message = NodeId::numeric(0, T::BINARY_ENCODING_ID).encode_to_vec();
    response.encode(&mut message);
    message
}

/// A response of the right type; `None` to send nothing.
pub(super) fn proper(asked: &Asked, numbers: &mut Numbers, input: &mut Input<'_>) -> Option<Vec<u8>> {
    let body = asked.body.as_slice();
    let limits = DecodeLimits::DEFAULT;
    Some(match asked.type_id {
        id::GET_ENDPOINTS_REQUEST_BINARY => {
            let mut endpoint = taktwerk_schema::EndpointDescription {
                endpoint_url: "opc.tcp://host".into(),
                security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#None".into(),
                security_mode: taktwerk_schema::MessageSecurityMode(1),
                ..Default::default()
            };
            endpoint.user_identity_tokens.push(taktwerk_schema::UserTokenPolicy::default());
            encode(&GetEndpointsResponse { endpoints: vec![endpoint], ..Default::default() })
        }
        id::CREATE_SESSION_REQUEST_BINARY => {
            numbers.sessions += 1;
            encode(&CreateSessionResponse {
                session_id: NodeId::numeric(1, numbers.sessions),
                authentication_token: NodeId::numeric(1, 1000 + u32::from(input.byte())),
                revised_session_timeout: f64::from(input.byte()) * 1000.0,
                ..Default::default()
            })
        }
        id::ACTIVATE_SESSION_REQUEST_BINARY => encode(&ActivateSessionResponse::default()),
        id::READ_REQUEST_BINARY => {
            let request = ReadRequest::decode_from(body, limits).expect("the client encodes well");
            let values = request.nodes_to_read.iter().map(|_| DataValue::new(u32::from(input.byte() % 8)));
            encode(&ReadResponse { results: values.collect(), ..Default::default() })
        }
        id::CREATE_SUBSCRIPTION_REQUEST_BINARY => {
            numbers.next_message = 1;
            encode(&CreateSubscriptionResponse {
                subscription_id: 1 + u32::from(input.byte() % 4),
                revised_publishing_interval: f64::from(input.byte()) * 10.0,
                revised_lifetime_count: 30,
                revised_max_keep_alive_count: u32::from(input.byte()),
                ..Default::default()
            })
        }
        id::CREATE_MONITORED_ITEMS_REQUEST_BINARY => {
            let request =
                CreateMonitoredItemsRequest::decode_from(body, limits).expect("the client encodes well");
            let results = request.items_to_create.iter().map(|_| MonitoredItemCreateResult {
                status_code: if input.one_in(8) { StatusCode::BAD_NODE_ID_UNKNOWN } else { StatusCode::GOOD },
                monitored_item_id: u32::from(input.byte()),
                ..Default::default()
            });
            encode(&CreateMonitoredItemsResponse { results: results.collect(), ..Default::default() })
        }
        id::PUBLISH_REQUEST_BINARY => {
            let number = number(numbers, input);
            let message = notification(number, input);
            encode(&PublishResponse {
                subscription_id: 1 + u32::from(input.byte() % 4),
                available_sequence_numbers: available(numbers, input),
                more_notifications: input.flag(),
                notification_message: message,
                ..Default::default()
            })
        }
        id::REPUBLISH_REQUEST_BINARY => {
            let request = RepublishRequest::decode_from(body, limits).expect("the client encodes well");
            let number = request.retransmit_sequence_number;
            let mut notification_message = notification(number, input);
            if notification_message.notification_data.is_empty() {
                notification_message = data(number);
            }
            encode(&RepublishResponse { notification_message, ..Default::default() })
        }
        id::TRANSFER_SUBSCRIPTIONS_REQUEST_BINARY => {
            let request =
                TransferSubscriptionsRequest::decode_from(body, limits).expect("the client encodes well");
            let results = request.subscription_ids.iter().map(|_| TransferResult {
                status_code: input.pick(&[
                    StatusCode::GOOD,
                    StatusCode::GOOD,
                    StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
                ]),
                available_sequence_numbers: available(numbers, input),
            });
            encode(&TransferSubscriptionsResponse { results: results.collect(), ..Default::default() })
        }
        id::CALL_REQUEST_BINARY => encode(&CallResponse::default()),
        id::MODIFY_SUBSCRIPTION_REQUEST_BINARY => encode(&taktwerk_schema::ModifySubscriptionResponse {
            revised_publishing_interval: f64::from(input.byte()),
            revised_lifetime_count: 30,
            revised_max_keep_alive_count: 10,
            ..Default::default()
        }),
        id::DELETE_SUBSCRIPTIONS_REQUEST_BINARY => encode(&taktwerk_schema::DeleteSubscriptionsResponse {
            results: vec![StatusCode::GOOD],
            ..Default::default()
        }),
        id::DELETE_MONITORED_ITEMS_REQUEST_BINARY => {
            encode(&taktwerk_schema::DeleteMonitoredItemsResponse::default())
        }
        id::CLOSE_SESSION_REQUEST_BINARY => encode(&taktwerk_schema::CloseSessionResponse::default()),
        _ => return None,
    })
}

/// The number of the next message: usually the right one, sometimes with a gap, or an earlier one.
fn number(numbers: &mut Numbers, input: &mut Input<'_>) -> u32 {
    let number = match input.byte() {
        0xf0.. => input.edgy_u32().max(1),
        0xe0.. => numbers.next_message.wrapping_add(u32::from(input.byte() % 4)).max(1),
        0xd0.. => numbers.next_message.wrapping_sub(1).max(1),
        _ => numbers.next_message,
    };
    numbers.next_message = following(number);
    number
}

fn available(numbers: &Numbers, input: &mut Input<'_>) -> Vec<u32> {
    let next = numbers.next_message;
    (0..input.below(5)).map(|_| next.wrapping_sub(u32::from(input.byte() % 8)).max(1)).collect()
}

/// Values, a keep-alive, or the end of the subscription.
fn notification(sequence_number: u32, input: &mut Input<'_>) -> NotificationMessage {
    match input.byte() {
        0xf8.. => NotificationMessage { sequence_number, ..Default::default() },
        0xf4.. => {
            let status = input.pick(&[StatusCode::BAD_TIMEOUT, StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED]);
            let mut message = data(sequence_number);
            let change = StatusChangeNotification { status, ..Default::default() };
            message.notification_data.push(ExtensionObject::new(&change));
            message
        }
        _ => data(sequence_number),
    }
}

fn data(sequence_number: u32) -> NotificationMessage {
    let item = MonitoredItemNotification { client_handle: 1, value: DataValue::new(sequence_number) };
    let changes = DataChangeNotification { monitored_items: vec![item], ..Default::default() };
    NotificationMessage {
        sequence_number,
        notification_data: vec![ExtensionObject::new(&changes)],
        ..Default::default()
    }
}
