//! Known attacks on servers, each with the required reaction: the twelve of the Claroty framework under their original
//! names, and the rules for headers, channels, sequence numbers and sessions of Part 6 §6.7, §7.1 and Part 4 §5.6,
//! §5.7.
//!
//! All tests use a connection without security: the rules before a session apply to any client. The channel's own crate
//! tests what policies add.

use super::attribute::{add, read, variable};
use super::flow::publish;
use super::*;
use schema::{
    BrowseDescription, BrowsePath, BrowseRequest, CallMethodRequest, CallRequest, CloseSessionRequest,
    CreateSubscriptionRequest, GetEndpointsRequest, ReadRequest, ReadValueId, RelativePath,
    RelativePathElement, TranslateBrowsePathsToNodeIdsRequest,
};
use taktwerk_types::{BuiltInType, Variant};

/// A connection that sends raw bytes.
struct Raw {
    id: ConnectionId,
    tail: Vec<u8>,
    said: Vec<u8>,
    closed: bool,
}

impl Raw {
    fn new(server: &mut Server) -> Self {
        let id = server.shard.opened(server.now);
        Self { id, tail: Vec::new(), said: Vec::new(), closed: false }
    }

    /// After Hello and Acknowledge.
    fn greeted(server: &mut Server) -> Self {
        let mut raw = Self::new(server);
        raw.send(server, &hello());
        assert!(raw.said.starts_with(b"ACKF"));
        raw.said.clear();
        raw
    }

    /// With an open channel; returns its id.
    fn opened(server: &mut Server) -> (Self, u32) {
        let mut raw = Self::greeted(server);
        raw.send(server, &open(0, 0, 1, 1));
        assert!(raw.said.starts_with(b"OPNF"), "{:?}", raw.error());
        let id = u32::from_le_bytes(raw.said[8..12].try_into().unwrap());
        raw.said.clear();
        (raw, id)
    }

    fn send(&mut self, server: &mut Server, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        if !self.closed {
            let done = server.shard.received(self.id, &mut self.tail, server.now);
            self.tail.drain(..done);
        }
        self.listen(server);
    }

    fn listen(&mut self, server: &mut Server) {
        while let Some(id) = server.shard.poll_transmit() {
            if id == self.id {
                self.said.extend_from_slice(server.shard.unsent(id));
            }
            let len = server.shard.unsent(id).len();
            server.shard.sent(id, len);
        }
        while let Some(id) = server.shard.poll_close() {
            self.closed |= id == self.id;
        }
    }

    /// The status of the last Error message.
    fn error(&self) -> Option<StatusCode> {
        let at = self.said.windows(4).rposition(|window| window == b"ERRF")?;
        Some(StatusCode(u32::from_le_bytes(self.said[at + 8..at + 12].try_into().unwrap())))
    }

    #[track_caller]
    fn is_refused(&self, status: StatusCode) {
        assert_eq!((self.error(), self.closed), (Some(status), true));
    }
}

fn sized(mut message: Vec<u8>) -> Vec<u8> {
    let len = u32::try_from(message.len()).unwrap();
    message[4..8].copy_from_slice(&len.to_le_bytes());
    message
}

fn hello() -> Vec<u8> {
    hello_with(65_536, URL)
}

fn hello_with(buffer: u32, url: &str) -> Vec<u8> {
    let mut message = b"HELF\0\0\0\0".to_vec();
    for field in [0u32, buffer, buffer, 0, 0] {
        field.encode(&mut message);
    }
    taktwerk_types::UaString::from(url).encode(&mut message);
    sized(message)
}

/// An OpenSecureChannel request without security: request type 0 is Issue, 1 is Renew.
fn open(channel: u32, request_type: i32, sequence: u32, request: u32) -> Vec<u8> {
    let mut message = b"OPNF\0\0\0\0".to_vec();
    channel.encode(&mut message);
    taktwerk_types::UaString::from("http://opcfoundation.org/UA/SecurityPolicy#None").encode(&mut message);
    (-1i32).encode(&mut message);
    (-1i32).encode(&mut message);
    sequence.encode(&mut message);
    request.encode(&mut message);
    NodeId::numeric(0, schema::OpenSecureChannelRequest::BINARY_ENCODING_ID).encode(&mut message);
    schema::OpenSecureChannelRequest {
        request_type: schema::SecurityTokenRequestType(request_type),
        security_mode: schema::MessageSecurityMode::NONE,
        requested_lifetime: 60_000,
        ..Default::default()
    }
    .encode(&mut message);
    sized(message)
}

fn chunk(flag: u8, channel: u32, token: u32, sequence: u32, request: u32, body: &[u8]) -> Vec<u8> {
    let mut message = b"MSG".to_vec();
    message.push(flag);
    for field in [0, channel, token, sequence, request] {
        field.encode(&mut message);
    }
    message.extend_from_slice(body);
    sized(message)
}

fn get_endpoints() -> Vec<u8> {
    let mut body = Vec::new();
    NodeId::numeric(0, GetEndpointsRequest::BINARY_ENCODING_ID).encode(&mut body);
    GetEndpointsRequest::default().encode(&mut body);
    body
}

/// A server with another client, which must not be affected.
fn with_canary() -> (Server, Client) {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let canary = server.session();
    (server, canary)
}

#[track_caller]
fn canary_holds(server: &mut Server, canary: &mut Client) {
    assert_eq!(read(canary, server, NodeId::numeric(1, 1), 13).value, Some(Variant::from(1.0)));
}

// ---- headers (Part 6 §7.1.2.2)

#[test]
fn f_header_sizes() {
    let (mut server, mut canary) = with_canary();
    for kind in [b"HELF", b"MSGF", b"OPNF", b"CLOF"] {
        for size in [0u32, 1, 7, 0x7fff_ffff, u32::MAX] {
            let mut raw = Raw::new(&mut server);
            raw.send(&mut server, &[kind.as_slice(), &size.to_le_bytes()].concat());
            assert!(raw.closed && raw.error().is_some(), "{kind:?} {size}");
        }
    }
    // Eight bytes are a complete message without its body.
    let mut raw = Raw::new(&mut server);
    raw.send(&mut server, b"HELF\x08\0\0\0");
    assert!(raw.closed && raw.error().is_some());
    canary_holds(&mut server, &mut canary);
}

#[test]
fn f_header_types() {
    let (mut server, mut canary) = with_canary();
    for start in [b"HELX", b"XXXF", b"hELF", b"ACKF", b"RHEF", b"GET ", b"\x16\x03\x01\x02", b"\0\0\0\0"] {
        let mut raw = Raw::new(&mut server);
        raw.send(&mut server, &[start.as_slice(), &32u32.to_le_bytes(), &[0; 24]].concat());
        raw.is_refused(StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID);
    }
    canary_holds(&mut server, &mut canary);
}

#[test]
fn f_header_hello_comes_once_and_within_its_limits() {
    let (mut server, _) = with_canary();
    let mut raw = Raw::greeted(&mut server);
    raw.send(&mut server, &hello());
    raw.is_refused(StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID);
    let mut raw = Raw::new(&mut server);
    raw.send(&mut server, &hello_with(65_536, &"a".repeat(4_096)));
    assert!(raw.said.starts_with(b"ACKF"));
    let mut raw = Raw::new(&mut server);
    raw.send(&mut server, &hello_with(65_536, &"a".repeat(4_097)));
    raw.is_refused(StatusCode::BAD_TCP_ENDPOINT_URL_INVALID);
    let mut raw = Raw::new(&mut server);
    raw.send(&mut server, &hello_with(8_191, URL));
    raw.is_refused(StatusCode::BAD_CONNECTION_REJECTED);
}

#[test]
fn f_header_in_single_bytes() {
    let (mut server, _) = with_canary();
    let mut raw = Raw::new(&mut server);
    for byte in hello() {
        assert!(raw.said.is_empty());
        raw.send(&mut server, &[byte]);
    }
    assert!(raw.said.starts_with(b"ACKF"));
}

#[test]
fn f_header_stages_have_deadlines() {
    for (what, bytes) in
        [("nothing", Vec::new()), ("a part of a Hello", hello()[..20].to_vec()), ("a Hello", hello())]
    {
        let (mut server, _) = with_canary();
        let mut raw = Raw::new(&mut server);
        raw.send(&mut server, &bytes);
        // Single bytes do not help: the deadline is that of the stage.
        for _ in 0..9 {
            server.pass(Duration::from_secs(1));
            raw.listen(&mut server);
            assert!(!raw.closed, "{what}");
        }
        server.pass(Duration::from_millis(1_100));
        raw.listen(&mut server);
        raw.is_refused(StatusCode::BAD_TIMEOUT);
    }
}

// ---- channels (Part 4 §5.6.2)

#[test]
fn f_opn_only_one_issue() {
    let (mut server, mut canary) = with_canary();
    let (mut raw, id) = Raw::opened(&mut server);
    raw.send(&mut server, &open(id, 0, 2, 2));
    raw.is_refused(StatusCode::BAD_REQUEST_TYPE_INVALID);
    // With the id omitted, as in the first request.
    let (mut raw, _) = Raw::opened(&mut server);
    raw.send(&mut server, &open(0, 0, 2, 2));
    assert!(raw.closed && raw.error().is_some());
    canary_holds(&mut server, &mut canary);
}

#[test]
fn f_opn_renew_names_the_channel_and_comes_second() {
    let (mut server, _) = with_canary();
    let mut raw = Raw::greeted(&mut server);
    raw.send(&mut server, &open(0, 1, 1, 1));
    raw.is_refused(StatusCode::BAD_REQUEST_TYPE_INVALID);
    let (mut raw, id) = Raw::opened(&mut server);
    raw.send(&mut server, &open(id + 1, 1, 2, 2));
    raw.is_refused(StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    let (mut raw, id) = Raw::opened(&mut server);
    raw.send(&mut server, &open(id, 1, 2, 2));
    assert!(raw.said.starts_with(b"OPNF") && !raw.closed);
}

#[test]
fn f_opn_is_one_chunk_of_bounded_size() {
    let (mut server, mut canary) = with_canary();
    let mut raw = Raw::greeted(&mut server);
    let mut part = open(0, 0, 1, 1);
    part[3] = b'C';
    raw.send(&mut server, &part);
    assert!(raw.closed && raw.error().is_some());
    // A MiB of RSA blocks: refused because of its header.
    let mut raw = Raw::greeted(&mut server);
    raw.send(&mut server, &[b"OPNF".as_slice(), &(1u32 << 20).to_le_bytes()].concat());
    raw.is_refused(StatusCode::BAD_TCP_MESSAGE_TOO_LARGE);
    canary_holds(&mut server, &mut canary);
}

#[test]
fn f_opn_policies_that_are_broken_are_refused_before_any_cryptography() {
    let (mut server, _) = with_canary();
    for policy in ["Basic128Rsa15", "Basic256", "Basic256Sha256", "Nonsense"] {
        let mut raw = Raw::greeted(&mut server);
        let mut message = b"OPNF\0\0\0\0\0\0\0\0".to_vec();
        let uri = format!("http://opcfoundation.org/UA/SecurityPolicy#{policy}");
        taktwerk_types::UaString::from(uri.as_str()).encode(&mut message);
        taktwerk_types::codec::encode_bytes(Some(&[0x30; 900]), &mut message);
        taktwerk_types::codec::encode_bytes(Some(&[1; 20]), &mut message);
        message.extend_from_slice(&[7; 256]);
        raw.send(&mut server, &sized(message));
        raw.is_refused(StatusCode::BAD_SECURITY_POLICY_REJECTED);
        assert!(server.shard.poll_effect().is_none());
    }
}

// ---- sequence numbers and tokens (Part 6 §6.7.2.4, §6.7.7)

#[test]
fn f_seq_every_chunk_follows_the_one_before() {
    for (next, follows) in [(2u32, true), (1, false), (0, false), (3, false), (u32::MAX, false)] {
        let (mut server, _) = with_canary();
        let (mut raw, id) = Raw::opened(&mut server);
        raw.send(&mut server, &chunk(b'F', id, 1, next, 2, &get_endpoints()));
        if follows {
            assert!(raw.said.starts_with(b"MSGF") && !raw.closed);
        } else {
            // Also without security, and without a reason.
            raw.is_refused(StatusCode::BAD_SECURITY_CHECKS_FAILED);
        }
    }
}

#[test]
fn f_seq_tokens_and_channels_are_exact() {
    let (mut server, mut canary) = with_canary();
    for (token, wrong_channel, status) in [
        (2u32, 0u32, StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN),
        (0, 0, StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN),
        (1, 1, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN),
    ] {
        let (mut raw, id) = Raw::opened(&mut server);
        raw.send(&mut server, &chunk(b'F', id + wrong_channel, token, 2, 2, &get_endpoints()));
        raw.is_refused(status);
    }
    // Another connection's channel cannot be used either.
    let (mut raw, _) = Raw::opened(&mut server);
    raw.send(&mut server, &chunk(b'F', canary.channel.id(), 1, 2, 2, &get_endpoints()));
    raw.is_refused(StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    canary_holds(&mut server, &mut canary);
}

#[test]
fn f_seq_messages_are_not_interleaved() {
    let (mut server, _) = with_canary();
    let (mut raw, id) = Raw::opened(&mut server);
    raw.send(&mut server, &chunk(b'C', id, 1, 2, 2, &[0; 100]));
    raw.send(&mut server, &chunk(b'C', id, 1, 3, 3, &[0; 100]));
    raw.is_refused(StatusCode::BAD_SECURITY_CHECKS_FAILED);
}

// ---- the gate (Part 4 §5.7.2.1)

/// All services, including those that this server does not support, except those available to anyone and those for
/// opening and closing sessions.
const SERVICES: &[u32] = &[
    479, 488, 494, 500, 506, 527, 533, 554, 560, 566, 615, 621, 631, 664, 673, 700, 712, 751, 763, 769, 775,
    781, 787, 793, 799, 826, 832, 841, 847,
];

fn knock(server: &mut Server, client: &mut Client, service: u32) -> StatusCode {
    let header = client.header();
    let id = client.send(server, service, &header);
    let (_, body) = client.responses.iter().find(|(request, _)| *request == id).expect("an answer");
    let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
    let kind = NodeId::decode(&mut decoder).unwrap();
    assert_eq!(kind, NodeId::numeric(0, ServiceFault::BINARY_ENCODING_ID));
    let fault = ServiceFault::decode(&mut decoder).unwrap();
    client.responses.clear();
    fault.response_header.service_result
}

#[test]
fn f_gate_no_service_without_an_activated_session() {
    let refusals = [
        StatusCode::BAD_SESSION_ID_INVALID,
        StatusCode::BAD_SESSION_NOT_ACTIVATED,
        StatusCode::BAD_SECURE_CHANNEL_ID_INVALID,
        StatusCode::BAD_SESSION_CLOSED,
        StatusCode::BAD_SERVICE_UNSUPPORTED,
    ];
    let (mut server, mut canary) = with_canary();
    for service in SERVICES {
        // Without a token.
        let mut client = server.connect();
        let status = knock(&mut server, &mut client, *service);
        assert!(refusals.contains(&status), "{service} without a token: {status}");
        // With the token of a session that is not activated: the session is closed.
        let mut client = server.connect();
        client.create(&mut server).unwrap();
        let status = knock(&mut server, &mut client, *service);
        assert!(refusals.contains(&status), "{service} before activation: {status}");
        // With the token of another client.
        let mut client = server.connect();
        client.token = canary.token.clone();
        let status = knock(&mut server, &mut client, *service);
        assert!(refusals.contains(&status), "{service} with a token of another channel: {status}");
        // After closing.
        let mut client = server.session();
        let close = CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
        client.call(&mut server, &close).unwrap();
        let status = knock(&mut server, &mut client, *service);
        assert!(refusals.contains(&status), "{service} after CloseSession: {status}");
    }
    canary_holds(&mut server, &mut canary);
}

// ---- the twelve of the Claroty framework

#[test]
fn chunk_flood() {
    let (mut server, mut canary) = with_canary();
    let (mut raw, id) = Raw::opened(&mut server);
    let body = [0x41; 60_000];
    let mut sent = 0;
    for sequence in 2.. {
        raw.send(&mut server, &chunk(b'C', id, 1, sequence, 2, &body));
        if raw.closed {
            break;
        }
        sent += body.len();
        let limit = server.shard.shared().config().channel.message_size_max as usize;
        assert!(sent <= limit, "{sent} bytes are kept");
        assert!(server.used(Category::IncompleteMessages) <= limit);
    }
    raw.is_refused(StatusCode::BAD_TCP_MESSAGE_TOO_LARGE);
    assert_eq!(server.used(Category::IncompleteMessages), 0);
    canary_holds(&mut server, &mut canary);
}

#[test]
fn chunk_flood_of_empty_chunks() {
    let (mut server, _) = with_canary();
    let (mut raw, id) = Raw::opened(&mut server);
    let max = server.shard.shared().config().channel.chunk_count_max;
    for sequence in 0..=max {
        assert!(!raw.closed);
        raw.send(&mut server, &chunk(b'C', id, 1, 2 + sequence, 2, &[]));
    }
    raw.is_refused(StatusCode::BAD_TCP_MESSAGE_TOO_LARGE);
}

#[test]
fn open_multiple_secure_channels() {
    let (mut server, mut canary) = with_canary();
    for _ in 0..100 {
        let (mut raw, _) = Raw::opened(&mut server);
        raw.send(&mut server, &open(0, 0, 2, 2));
        assert!(raw.closed);
    }
    assert_eq!(server.shard.connection_count(), 1);
    canary_holds(&mut server, &mut canary);
}

#[test]
fn complex_nested_message() {
    let (mut server, _) = with_canary();
    let mut client = server.session();
    // A Write of Variants nested ten thousand levels deep; each level is an array of one Variant.
    let mut body = client.header().encode_to_vec();
    1i32.encode(&mut body);
    NodeId::numeric(1, 1).encode(&mut body);
    13u32.encode(&mut body);
    (-1i32).encode(&mut body);
    body.push(1);
    for _ in 0..10_000 {
        body.push(24 | 0x80);
        1i32.encode(&mut body);
    }
    body.push(0);
    let id = client.send(&mut server, schema::WriteRequest::BINARY_ENCODING_ID, &Bytes(body));
    let status = client.response::<schema::WriteResponse>(id).unwrap().unwrap_err();
    assert_eq!(status, StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
    // The channel stays usable.
    canary_holds(&mut server, &mut client);
}

#[test]
fn translate_browse_path_call_stack_overflow() {
    let (mut server, _) = with_canary();
    let mut client = server.session();
    let element = RelativePathElement {
        reference_type_id: 33.into(),
        is_inverse: true,
        target_name: taktwerk_types::QualifiedName::new(0, "Server"),
        ..Default::default()
    };
    let request = TranslateBrowsePathsToNodeIdsRequest {
        request_header: client.header(),
        browse_paths: vec![BrowsePath {
            starting_node: 2253.into(),
            relative_path: RelativePath { elements: vec![element; 16_000] },
        }],
    };
    let result = client.call(&mut server, &request).unwrap().results.remove(0);
    assert!(result.status_code.is_bad(), "{}", result.status_code);
    assert!(result.targets.is_empty());
    canary_holds(&mut server, &mut client);
}

#[test]
fn thread_pool_wait_starvation() {
    let (mut server, _) = with_canary();
    let mut client = server.session();
    for _ in 0..200 {
        // A Write that ends in the middle of its header's last string.
        let mut body = client.header().encode_to_vec();
        body.truncate(body.len() - 3);
        let id = client.send(&mut server, schema::WriteRequest::BINARY_ENCODING_ID, &Bytes(body));
        let status = client.response::<schema::WriteResponse>(id).unwrap().unwrap_err();
        assert_eq!(status, StatusCode::BAD_DECODING_ERROR);
    }
    canary_holds(&mut server, &mut client);
}

#[test]
fn malformed_utf8() {
    let (mut server, mut canary) = with_canary();
    let mut client = server.connect();
    let mut request = schema::CreateSessionRequest { request_header: client.header(), ..Default::default() };
    request.client_description.application_uri = "u".repeat(300).into();
    let mut body = request.encode_to_vec();
    let at = body.windows(300).position(|window| window == [b'u'; 300]).unwrap();
    body[at + 299] = 0xc8;
    let id = client.send(&mut server, schema::CreateSessionRequest::BINARY_ENCODING_ID, &Bytes(body));
    let status = client.response::<schema::CreateSessionResponse>(id).unwrap().unwrap_err();
    assert_eq!(status, StatusCode::BAD_DECODING_ERROR);
    canary_holds(&mut server, &mut canary);
}

#[test]
fn function_call_null_deref() {
    let (mut server, mut canary) = with_canary();
    let mut client = server.session();
    for _ in 0..100 {
        let call =
            CallMethodRequest { object_id: 2253.into(), method_id: 11492.into(), ..Default::default() };
        let request = CallRequest { request_header: client.header(), methods_to_call: vec![call; 28_671] };
        let status = client.call(&mut server, &request).unwrap_err();
        assert_eq!(status, StatusCode::BAD_TOO_MANY_OPERATIONS);
    }
    let close = CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &close).unwrap();
    assert!(server.shard.poll_effect().is_none());
    canary_holds(&mut server, &mut canary);
}

#[test]
fn unlimited_persistent_subscriptions() {
    let (mut server, mut canary) = with_canary();
    let mut refused = 0;
    for _ in 0..60 {
        let mut client = server.session();
        for _ in 0..101 {
            let request = CreateSubscriptionRequest {
                request_header: client.header(),
                requested_publishing_interval: 100.0,
                requested_lifetime_count: 100,
                requested_max_keep_alive_count: 10,
                publishing_enabled: true,
                ..Default::default()
            };
            match client.call(&mut server, &request) {
                Ok(_) => {}
                Err(status) => {
                    assert_eq!(status, StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
                    refused += 1;
                }
            }
        }
        let close = CloseSessionRequest { request_header: client.header(), delete_subscriptions: false };
        client.call(&mut server, &close).unwrap();
    }
    let count = server.used(Category::SubscriptionCount);
    assert_eq!(count, server.shard.shared().account().max(Category::SubscriptionCount));
    assert_eq!(refused + count, 60 * 101);
    // Without a session they live until their lifetime expires.
    server.pass(Duration::from_secs(12));
    assert_eq!(server.used(Category::SubscriptionCount), 0);
    canary_holds(&mut server, &mut canary);
}

#[test]
fn unlimited_condition_refresh() {
    // Methods are called as fast as possible without reading responses: the server stops reading.
    let (mut server, mut canary) = with_canary();
    let mut client = server.session();
    server.shard.blocked(client.connection, server.now);
    let budget = server.shard.shared().config().limits.send_budget;
    let mut asked = 0;
    while server.shard.wants_read(client.connection) {
        let call = CallMethodRequest { object_id: 2253.into(), method_id: 3875.into(), ..Default::default() };
        let request = CallRequest { request_header: client.header(), methods_to_call: vec![call; 1_000] };
        let start = client.channel.begin(&mut client.out);
        NodeId::numeric(0, CallRequest::BINARY_ENCODING_ID).encode(&mut client.out);
        request.encode(&mut client.out);
        let request_id = client.channel.next_request_id();
        client.channel.finish(start, request_id, &mut client.out).unwrap();
        let mut sent = core::mem::take(&mut client.out);
        server.shard.received(client.connection, &mut sent, server.now);
        asked += 1;
        assert!(asked < 1_000, "the server never stops reading");
    }
    assert!(server.shard.unsent(client.connection).len() < budget + 100_000);
    canary_holds(&mut server, &mut canary);
}

#[test]
fn close_session_with_old_timestamp() {
    let (mut server, mut canary) = with_canary();
    let mut client = server.session();
    let mut request = CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    request.request_header.timestamp = UtcTime::parse("1980-01-01T00:00:00Z").unwrap();
    let id = client.send(&mut server, CloseSessionRequest::BINARY_ENCODING_ID, &request);
    let (_, body) = client.responses.iter().find(|(request, _)| *request == id).unwrap();
    assert!(body.len() <= 200, "{} bytes", body.len());
    for word in [b".rs", b"src", b"at "] {
        assert!(!body.windows(3).any(|window| window == word));
    }
    canary_holds(&mut server, &mut canary);
}

#[test]
fn certificate_inf_chain_loop() {
    // Without a policy that uses certificates, a certificate in the OpenSecureChannel request is not examined. The
    // chains are tested where they are validated.
    let (mut server, mut canary) = with_canary();
    let mut raw = Raw::greeted(&mut server);
    let mut message = b"OPNF\0\0\0\0\0\0\0\0".to_vec();
    let uri = "http://opcfoundation.org/UA/SecurityPolicy#Aes256_Sha256_RsaPss";
    taktwerk_types::UaString::from(uri).encode(&mut message);
    taktwerk_types::codec::encode_bytes(Some(&[0x30; 10_000]), &mut message);
    taktwerk_types::codec::encode_bytes(Some(&[1; 20]), &mut message);
    message.extend_from_slice(&[7; 512]);
    raw.send(&mut server, &sized(message));
    raw.is_refused(StatusCode::BAD_SECURITY_POLICY_REJECTED);
    assert!(server.shard.poll_effect().is_none());
    canary_holds(&mut server, &mut canary);
}

#[test]
fn race_change_and_browse_address_space() {
    let mut server = Server::new();
    for number in 1..200 {
        add(&server, variable(number, BuiltInType::Double, 1.0));
    }
    let mut client = server.session();
    let node = BrowseDescription { node_id: 85.into(), result_mask: 63, ..Default::default() };
    let request = BrowseRequest {
        request_header: client.header(),
        requested_max_references_per_node: 10,
        nodes_to_browse: vec![node],
        ..Default::default()
    };
    let mut result = client.call(&mut server, &request).unwrap().results.remove(0);
    let mut number = 1;
    while !result.continuation_point.is_null() {
        // After and before the continuation point.
        for _ in 0..3 {
            server.space.delete_node(&NodeId::numeric(1, number)).unwrap();
            number += 1;
        }
        let request = schema::BrowseNextRequest {
            request_header: client.header(),
            continuation_points: vec![result.continuation_point],
            ..Default::default()
        };
        result = client.call(&mut server, &request).unwrap().results.remove(0);
        assert!(
            result.status_code.is_good() || result.status_code == StatusCode::BAD_CONTINUATION_POINT_INVALID
        );
    }
    let nodes_to_read =
        vec![ReadValueId { node_id: NodeId::numeric(1, 1), attribute_id: 13, ..Default::default() }];
    let request = ReadRequest { request_header: client.header(), nodes_to_read, ..Default::default() };
    let value = client.call(&mut server, &request).unwrap().results.remove(0);
    assert_eq!(value.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
}

// ---- small floods (f_flood)

#[test]
fn f_flood_publish_requests() {
    let (mut server, _) = with_canary();
    let mut client = server.session();
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 1_000_000.0,
        requested_lifetime_count: 100,
        requested_max_keep_alive_count: 30,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(&mut server, &request).unwrap();
    let max = server.shard.shared().config().limits.subscriptions.publish_requests_per_session_max;
    for _ in 0..max {
        publish(&mut client, &mut server);
    }
    assert!(client.responses.is_empty());
    let _one_more = publish(&mut client, &mut server);
    assert_eq!(client.responses.len(), 1);
    let (oldest, _) = client.responses[0];
    let result = client.response::<schema::PublishResponse>(oldest);
    assert_eq!(result, Some(Err(StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS)));
}

#[test]
fn f_flood_sessions_that_are_never_activated() {
    let mut server = Server::with(|config| config.limits.sessions_max = 20);
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut canary = server.session();
    let mut attackers: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for round in 0..1_000 {
        let at = round % attackers.len();
        let _ = attackers[at].create(&mut server);
        assert!(server.shard.session_count() <= 20);
    }
    canary_holds(&mut server, &mut canary);
    // A regular client gets a session in between.
    let mut honest = server.session();
    canary_holds(&mut server, &mut honest);
}

#[test]
fn f_flood_register_server_with_a_long_url() {
    let (mut server, mut canary) = with_canary();
    let mut client = server.connect();
    let mut request =
        schema::RegisterServer2Request { request_header: client.header(), ..Default::default() };
    request.server.discovery_urls = vec!["u".repeat(64 << 10).as_str().into()];
    let id = client.send(&mut server, schema::RegisterServer2Request::BINARY_ENCODING_ID, &request);
    let status = client.response::<schema::RegisterServer2Response>(id).unwrap().unwrap_err();
    assert_eq!(status, StatusCode::BAD_SERVICE_UNSUPPORTED);
    canary_holds(&mut server, &mut canary);
}

/// Raw bytes.
struct Bytes(Vec<u8>);

impl Encode for Bytes {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}
