//! A small scripted server: the services that the tests need, and knobs for faulty behaviour.

mod nodes;
mod sessions;
mod subscriptions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_channel::{Channel, ChannelConfig, Event};
use taktwerk_client::ConnectionId;
use taktwerk_crypto::{Job, JobOutput, SecurityPolicy};
use taktwerk_schema::ids::{method_ids, variable_ids};
use taktwerk_schema::service::Response;
use taktwerk_schema::*;
use taktwerk_types::{
    DataValue, Decode, DecodeLimits, Decoder, Encode, ExtensionObject, Identifier, Instant, NodeId,
    StatusCode, Structure, UtcTime, Variant,
};

pub struct Connection {
    channel: Channel,
    inbox: Vec<u8>,
    pub out: Vec<u8>,
}

#[derive(Default)]
pub struct Session {
    pub connection: ConnectionId,
    pub activated: bool,
    nonce: Vec<u8>,
    client_certificate: Vec<u8>,
    pub publish_queue: VecDeque<(ConnectionId, u32, u32)>,
    pub identity: Option<ExtensionObject>,
}

pub struct Subscription {
    pub session: u32,
    pub interval_ms: f64,
    pub keep_alive_count: u32,
    idle: u32,
    next_cycle: Instant,
    pub next_number: u32,
    pub items: BTreeMap<u32, MonitoredItemCreateRequest>,
    pub pending: Vec<MonitoredItemNotification>,
    pub retransmission: BTreeMap<u32, NotificationMessage>,
    pub status_change: Option<StatusCode>,
}

/// Deviations from correct behaviour.
pub struct Knobs {
    /// MaxNodesPerRead and MaxMonitoredItemsPerCall as published.
    pub published_max: u32,
    /// The limits that are enforced.
    pub enforced_max: usize,
    /// Requests with these encoding ids are not answered.
    pub silent: BTreeSet<u32>,
    /// The next responses to requests with this encoding id are these faults.
    pub faults: Vec<(u32, StatusCode)>,
    /// All responses to requests with this encoding id are this fault.
    pub always: BTreeMap<u32, StatusCode>,
    /// The NamespaceArray.
    pub namespaces: Vec<&'static str>,
    /// Targets of browse paths, by their last name.
    pub paths: BTreeMap<&'static str, NodeId>,
    pub publish_max: usize,
    pub transfer: bool,
    /// Notification messages with these numbers are not sent, only kept for Republish.
    pub swallow: BTreeSet<u32>,
    /// Notification messages with these numbers are neither sent nor kept.
    pub forget: BTreeSet<u32>,
    pub keep_alives: bool,
    pub announced_host: Option<String>,
    pub endpoints_in_session: Option<Vec<EndpointDescription>>,
    /// Every nonce is the same.
    pub stale_nonce: bool,
    /// Sent in CreateSession instead of the server's own certificate.
    pub certificate: Option<Vec<u8>>,
    /// Changes the GetEndpoints response, as an attacker on the network could.
    pub edit_discovery: Option<fn(&mut Vec<EndpointDescription>)>,
    /// Changes the CreateSession response after signing.
    pub edit_created: Option<fn(&mut CreateSessionResponse)>,
    /// Changes the ActivateSession response.
    pub edit_activated: Option<fn(&mut ActivateSessionResponse)>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            published_max: 0,
            enforced_max: usize::MAX,
            silent: BTreeSet::new(),
            faults: vec![],
            always: BTreeMap::new(),
            namespaces: vec!["http://opcfoundation.org/UA/", "urn:plc"],
            paths: BTreeMap::new(),
            publish_max: 100,
            transfer: true,
            swallow: BTreeSet::new(),
            forget: BTreeSet::new(),
            keep_alives: true,
            announced_host: None,
            endpoints_in_session: None,
            stale_nonce: false,
            certificate: None,
            edit_discovery: None,
            edit_created: None,
            edit_activated: None,
        }
    }
}

/// A server-specific DataType.
pub struct FakeType {
    pub data_type: NodeId,
    pub encoding: Option<NodeId>,
    pub base: NodeId,
    pub name: &'static str,
    pub definition: Option<ExtensionObject>,
}

pub struct Server {
    pub types: Vec<FakeType>,
    pub config: Arc<ChannelConfig>,
    pub connections: BTreeMap<ConnectionId, Connection>,
    pub sessions: BTreeMap<u32, Session>,
    pub subscriptions: BTreeMap<u32, Subscription>,
    pub knobs: Knobs,
    next_channel: u32,
    next_session: u32,
    next_subscription: u32,
    next_item: u32,
    /// Encoding ids of the requests received, in order.
    pub received: Vec<u32>,
    pub written: Vec<(NodeId, DataValue)>,
    /// The EndpointUrl of each CreateSession.
    pub named: Vec<String>,
    pub resends: Vec<u32>,
    pub audits: u32,
    /// Values of messages that were neither sent nor kept.
    pub forgotten: Vec<f64>,
    pub token_policies: Vec<UserTokenPolicy>,
}

impl Server {
    pub fn new(config: Arc<ChannelConfig>) -> Self {
        let anonymous = UserTokenPolicy { policy_id: "anon".into(), ..Default::default() };
        let user = UserTokenPolicy {
            policy_id: "user".into(),
            token_type: UserTokenType::USER_NAME,
            security_policy_uri: SecurityPolicy::Basic256Sha256.uri().into(),
            ..Default::default()
        };
        Self {
            types: vec![],
            config,
            connections: BTreeMap::new(),
            sessions: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            knobs: Knobs::default(),
            next_channel: 0,
            next_session: 100,
            next_subscription: 0,
            next_item: 0,
            received: vec![],
            written: vec![],
            named: vec![],
            resends: vec![],
            audits: 0,
            forgotten: vec![],
            token_policies: vec![anonymous, user],
        }
    }

    pub fn accept(&mut self, id: ConnectionId, now: Instant) {
        self.next_channel += 1;
        let channel = Channel::server(self.config.clone(), self.next_channel, now);
        self.connections.insert(id, Connection { channel, inbox: vec![], out: vec![] });
    }

    pub fn hang_up(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        for session in self.sessions.values_mut() {
            session.publish_queue.retain(|(connection, ..)| *connection != id);
        }
    }

    /// Loses everything except its configuration.
    pub fn restart(&mut self) {
        self.connections.clear();
        self.sessions.clear();
        self.subscriptions.clear();
    }

    pub fn forget_sessions(&mut self) {
        self.sessions.clear();
    }

    pub fn receive(&mut self, id: ConnectionId, bytes: &[u8], now: Instant) {
        let Some(mut connection) = self.connections.remove(&id) else { return };
        connection.inbox.extend_from_slice(bytes);
        let mut inbox = core::mem::take(&mut connection.inbox);
        let mut at = 0;
        loop {
            let buf = &mut inbox[at..];
            match connection.channel.receive(buf, now, &mut connection.out) {
                Ok(received) => {
                    match received.event {
                        Event::NeedMore { .. } => break,
                        Event::Message { request_id, body } => {
                            let body = body.bytes(buf).to_vec();
                            self.serve(id, &mut connection, request_id, &body, now);
                        }
                        Event::Effect(job) => self.run(*job, &mut connection, now),
                        _ => {}
                    }
                    at += received.consumed;
                }
                Err(_) => {
                    at = inbox.len();
                    break;
                }
            }
        }
        inbox.drain(..at);
        connection.inbox = inbox;
        self.connections.insert(id, connection);
        self.flush(now);
    }

    fn run(&mut self, job: Job, connection: &mut Connection, now: Instant) {
        let result = job.run(self.config.provider.as_ref());
        if let Ok(Event::Effect(job)) = connection.channel.complete(result, now, &mut connection.out) {
            self.run(*job, connection, now);
        }
    }

    pub fn due(&self) -> Instant {
        self.subscriptions.values().map(|subscription| subscription.next_cycle).min().unwrap_or(Instant::FAR)
    }

    pub fn tick(&mut self, now: Instant) {
        for connection in self.connections.values_mut() {
            let _ = connection.channel.handle_timeout(now, &mut connection.out);
        }
        for subscription in
            self.subscriptions.values_mut().filter(|subscription| subscription.next_cycle <= now)
        {
            subscription.next_cycle = now.plus_millis_f64(subscription.interval_ms);
            subscription.idle += 1;
        }
        self.flush(now);
    }

    /// Queues a value change for an item.
    pub fn change(&mut self, subscription: u32, client_handle: u32, value: f64) {
        if let Some(subscription) = self.subscriptions.get_mut(&subscription) {
            subscription
                .pending
                .push(MonitoredItemNotification { client_handle, value: DataValue::new(value) });
        }
    }

    /// Sends pending messages, as far as there are Publish requests.
    pub fn flush(&mut self, now: Instant) {
        let ids: Vec<u32> = self.subscriptions.keys().copied().collect();
        for id in ids {
            let Some(subscription) = self.subscriptions.get_mut(&id) else { continue };
            let has_data = !subscription.pending.is_empty() || subscription.status_change.is_some();
            let keep_alive = self.knobs.keep_alives && subscription.idle >= subscription.keep_alive_count;
            if !has_data && !keep_alive {
                continue;
            }
            let number = subscription.next_number;
            let swallowed =
                has_data && (self.knobs.swallow.contains(&number) || self.knobs.forget.contains(&number));
            let Some(session) = self.sessions.get_mut(&subscription.session) else { continue };
            if session.publish_queue.is_empty() && !swallowed {
                continue;
            }
            let mut message = NotificationMessage {
                sequence_number: number,
                publish_time: UtcTime::from_ticks(1),
                ..Default::default()
            };
            if has_data {
                if !subscription.pending.is_empty() {
                    let monitored_items = core::mem::take(&mut subscription.pending);
                    if self.knobs.forget.contains(&number) {
                        let values =
                            monitored_items.iter().filter_map(|item| item.value.value.as_ref()?.as_f64());
                        self.forgotten.extend(values);
                    }
                    let changes = DataChangeNotification { monitored_items, ..Default::default() };
                    message.notification_data.push(ExtensionObject::new(&changes));
                }
                if let Some(status) = subscription.status_change {
                    let change = StatusChangeNotification { status, ..Default::default() };
                    message.notification_data.push(ExtensionObject::new(&change));
                }
                subscription.next_number = number.checked_add(1).unwrap_or(1);
                if !self.knobs.forget.contains(&number) {
                    subscription.retransmission.insert(number, message.clone());
                }
            }
            subscription.idle = 0;
            let ended = subscription.status_change.is_some();
            if !swallowed {
                let available = subscription.retransmission.keys().copied().collect();
                let (connection, request_id, handle) = session.publish_queue.pop_front().unwrap();
                let response = PublishResponse {
                    response_header: ResponseHeader { request_handle: handle, ..Default::default() },
                    subscription_id: id,
                    available_sequence_numbers: available,
                    notification_message: message,
                    ..Default::default()
                };
                if let Some(connection) = self.connections.get_mut(&connection) {
                    answer(connection, request_id, &response);
                }
            }
            if ended {
                self.subscriptions.remove(&id);
            }
        }
        let _ = now;
    }

    fn serve(
        &mut self,
        id: ConnectionId,
        connection: &mut Connection,
        request_id: u32,
        body: &[u8],
        now: Instant,
    ) {
        let decoder = &mut Decoder::new(body, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(decoder).unwrap().ns0().unwrap();
        let body = decoder.rest();
        self.received.push(type_id);
        if self.knobs.silent.contains(&type_id) {
            return;
        }
        if let Some(at) = self.knobs.faults.iter().position(|(wanted, _)| *wanted == type_id) {
            let (_, status) = self.knobs.faults.remove(at);
            return fault(connection, request_id, status);
        }
        if let Some(status) = self.knobs.always.get(&type_id) {
            return fault(connection, request_id, *status);
        }
        macro_rules! services {
            ($($request:ident => $method:ident),* $(,)?) => {
                match type_id {
                    $($request::BINARY_ENCODING_ID => {
                        let request = $request::decode_from(body, DecodeLimits::DEFAULT).unwrap();
                        let handle = request.request_header.request_handle;
                        assert_ne!(handle, 0);
                        match self.$method(request, id, connection, request_id, now) {
                            Ok(mut response) => {
                                response.header_mut().request_handle = handle;
                                answer(connection, request_id, &response);
                            }
                            Err(StatusCode::GOOD) => {}
                            Err(status) => fault(connection, request_id, status),
                        }
                    })*
                    _ => fault(connection, request_id, StatusCode::BAD_SERVICE_UNSUPPORTED),
                }
            };
        }
        services! {
            GetEndpointsRequest => endpoints, CreateSessionRequest => create_session,
            ActivateSessionRequest => activate, CloseSessionRequest => close_session, ReadRequest => read,
            WriteRequest => write, CallRequest => call, CreateSubscriptionRequest => create_subscription,
            ModifySubscriptionRequest => modify_subscription, DeleteSubscriptionsRequest => delete_subscriptions,
            CreateMonitoredItemsRequest => create_items, DeleteMonitoredItemsRequest => delete_items,
            SetMonitoringModeRequest => set_mode, BrowseRequest => browse,
            SetPublishingModeRequest => set_publishing_mode,
            TranslateBrowsePathsToNodeIdsRequest => translate,
            PublishRequest => publish, RepublishRequest => republish, TransferSubscriptionsRequest => transfer,
        }
    }

    fn session_of(&mut self, header: &RequestHeader, id: ConnectionId) -> Result<u32, StatusCode> {
        let token = token_of(header)?;
        let session = self.sessions.get(&token).ok_or(StatusCode::BAD_SESSION_ID_INVALID)?;
        if !session.activated {
            return Err(StatusCode::BAD_SESSION_NOT_ACTIVATED);
        }
        if session.connection != id {
            return Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
        }
        Ok(token)
    }

    pub fn endpoint_list(&self) -> Vec<EndpointDescription> {
        let host = self.knobs.announced_host.as_deref().unwrap_or("plc");
        self.config
            .security
            .iter()
            .map(|(policy, mode)| EndpointDescription {
                endpoint_url: format!("opc.tcp://{host}:4840").as_str().into(),
                security_policy_uri: policy.uri().into(),
                security_mode: MessageSecurityMode(mode.number()),
                server_certificate: self.config.provider.own_certificate(*policy).into(),
                server: ApplicationDescription {
                    application_uri: "urn:dummy:server".into(),
                    ..Default::default()
                },
                transport_profile_uri: "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary"
                    .into(),
                user_identity_tokens: self.token_policies.clone(),
                ..Default::default()
            })
            .collect()
    }
}

fn token_of(header: &RequestHeader) -> Result<u32, StatusCode> {
    match &header.authentication_token.identifier {
        Identifier::String(text) => text.as_str().parse().map_err(|_| StatusCode::BAD_SESSION_ID_INVALID),
        _ => Err(StatusCode::BAD_SESSION_ID_INVALID),
    }
}

fn answer<R: Response>(connection: &mut Connection, request_id: u32, response: &R) {
    let start = connection.channel.begin(&mut connection.out);
    NodeId::numeric(0, R::BINARY_ENCODING_ID).encode(&mut connection.out);
    response.encode(&mut connection.out);
    if connection.channel.finish(start, request_id, &mut connection.out).is_err() {
        fault(connection, request_id, StatusCode::BAD_RESPONSE_TOO_LARGE);
    }
}

fn fault(connection: &mut Connection, request_id: u32, status: StatusCode) {
    let response_header = ResponseHeader { service_result: status, ..Default::default() };
    let start = connection.channel.begin(&mut connection.out);
    NodeId::numeric(0, ServiceFault::BINARY_ENCODING_ID).encode(&mut connection.out);
    ServiceFault { response_header }.encode(&mut connection.out);
    let _ = connection.channel.finish(start, request_id, &mut connection.out);
}
