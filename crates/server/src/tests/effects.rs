//! Effects of abandoned requests: they count for their client until they are done, and those that have not begun never
//! run.

use super::attribute::{add, variable};
use super::method::add_method;
use super::session::login;
use super::*;
use crate::callback::{CallContext, MethodCall, MethodHandler, SourceRead, ValueSource};
use crate::callback::{WriteCall, WriteHandler};
use crate::config::UserTokenConfig;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU32, Ordering};
use schema::ids::object_ids;
use schema::{
    CallMethodRequest, CallRequest, CancelRequest, CloseSessionRequest, ReadRequest, ReadValueId,
    WriteRequest, WriteValue,
};
use taktwerk_types::{BuiltInType, DataValue, Variant};

const MAX: usize = 8;
const PER_CONNECTION: usize = 3;

/// Counts its runs.
struct Slow(Arc<AtomicU32>);

impl ValueSource for Slow {
    fn read(&self) -> SourceRead {
        let ran = Arc::clone(&self.0);
        SourceRead::Blocking(Box::new(move || DataValue::new(f64::from(ran.fetch_add(1, Ordering::Relaxed)))))
    }
}

/// A server with low limits, and how often its slow variable was read.
fn server() -> (Server, Arc<AtomicU32>) {
    let mut server = Server::with(|config| {
        config.limits.effects_max = MAX;
        config.limits.effects_per_connection_max = PER_CONNECTION;
        // In addition to Anonymous.
        config.endpoints[0].user_tokens.push(UserTokenConfig::user_name());
        config.verifier = Some(Arc::new(|_: &str, _: &[u8]| Ok(())));
        config.allow_clear_passwords = true;
    });
    let ran = Arc::new(AtomicU32::new(0));
    add(&server, variable(1, BuiltInType::Double, 0.5).source(Arc::new(Slow(Arc::clone(&ran)))));
    server.from = Some(IpAddr::from([10, 0, 0, 1]));
    (server, ran)
}

fn read(client: &mut Client, server: &mut Server, count: usize) -> (u32, u32) {
    let slow = ReadValueId { node_id: NodeId::numeric(1, 1), attribute_id: 13, ..ReadValueId::default() };
    let request = ReadRequest {
        request_header: client.header(),
        nodes_to_read: vec![slow; count],
        ..ReadRequest::default()
    };
    let handle = request.request_header.request_handle;
    (client.send(server, ReadRequest::BINARY_ENCODING_ID, &request), handle)
}

/// How many of several reads are accepted now.
fn fits(client: &mut Client, server: &mut Server) -> usize {
    let (id, _) = read(client, server, MAX);
    // It waits if at least one was accepted.
    while !client.has_response(id) && server.run_effect() {
        client.drain(server);
    }
    let results = client.response::<schema::ReadResponse>(id).unwrap().unwrap().results;
    let is_expected = |status: StatusCode| status.is_good() || status == StatusCode::BAD_SERVER_TOO_BUSY;
    assert!(results.iter().all(|value| is_expected(value.status())));
    results.iter().filter(|value| value.status().is_good()).count()
}

#[test]
fn abandoned_reads_count_until_they_are_done() {
    /// How a client abandons its requests.
    type GivesUp = fn(&mut Server, &mut Client, u32);
    let ways: [(&str, GivesUp); 5] = [
        ("timeout", |server, _, _| server.pass(Duration::from_secs(11))),
        ("cancel", |server, client, request_handle| {
            let cancel = CancelRequest { request_header: client.header(), request_handle };
            assert_eq!(client.call(server, &cancel).unwrap().cancel_count, 1);
        }),
        ("another user", |server, client, _| {
            let ann = login(client, "ann", "x");
            let id = client.send(server, schema::ActivateSessionRequest::BINARY_ENCODING_ID, &ann);
            assert!(client.response::<schema::ActivateSessionResponse>(id).unwrap().is_ok());
        }),
        ("end of the session", |server, client, _| {
            let close = CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
            client.call(server, &close).unwrap();
            *client = server.session();
        }),
        ("end of the connection", |server, client, _| {
            server.shard.closed(client.connection, server.now);
            *client = connect_keeping_effects(server);
        }),
    ];
    for (way, gives_up) in ways {
        let (mut server, ran) = server();
        let mut client = server.session();
        let (_, handle) = read(&mut client, &mut server, PER_CONNECTION);
        // Threads that hang have taken the effects.
        let hanging: Vec<Effect> = core::iter::from_fn(|| server.shard.poll_effect()).collect();
        assert_eq!(hanging.len(), PER_CONNECTION);
        gives_up(&mut server, &mut client, handle);
        client.drain(&mut server);
        client.responses.clear();
        assert_eq!(fits(&mut client, &mut server), 0, "{way}: the effects still run");
        // Other clients do not have to wait.
        server.from = Some(IpAddr::from([10, 0, 0, 2]));
        let mut other = server.session();
        assert_eq!(fits(&mut other, &mut server), PER_CONNECTION, "{way}");
        // The requests are abandoned, so effects that begin now do nothing.
        ran.store(0, Ordering::Relaxed);
        for Effect { token, job, .. } in hanging {
            let Job::Blocking(run) = job else { panic!("it blocks") };
            let result = run();
            server.shard.done(token, result, server.now);
        }
        assert_eq!(ran.load(Ordering::Relaxed), 0, "{way}");
        assert_eq!(fits(&mut client, &mut server), PER_CONNECTION, "{way}: reads are accepted again");
    }
}

/// A session, while effects of other clients hang.
fn connect_keeping_effects(server: &mut Server) -> Client {
    let mut client = server.connect();
    client.create(server).unwrap();
    client.activate(server).unwrap();
    client
}

/// Many clients whose requests hang leave capacity for logins.
#[test]
fn operations_and_samples_leave_capacity_for_sessions() {
    use crate::service::deferred::Purpose;
    let (mut server, _) = server();
    let (mut clients, mut hanging) = (Vec::new(), 0);
    for last in 1..=4 {
        server.from = Some(IpAddr::from([10, 0, 0, last]));
        let mut client = connect_keeping_effects(&mut server);
        read(&mut client, &mut server, MAX);
        clients.push(client);
        hanging += core::iter::from_fn(|| server.shard.poll_effect()).count();
    }
    assert_eq!(hanging, MAX - MAX / 4);
    let now = server.now;
    let cx = server.shard.context(None, now);
    assert!(
        !cx.deferrals.has_capacity(Purpose::Operation, 1) && !cx.deferrals.has_capacity(Purpose::Sample, 1)
    );
    assert!(cx.deferrals.has_capacity(Purpose::Session, MAX / 4));
}

/// Does a part at once and the rest on a worker thread.
struct Begins(Arc<AtomicU32>);

impl MethodHandler for Begins {
    fn call(&self, _: &CallContext, _: Vec<Variant>) -> MethodCall {
        self.0.fetch_add(1, Ordering::Relaxed);
        MethodCall::Blocking(Box::new(|| Ok(Vec::new())))
    }

    fn may_block(&self) -> bool {
        true
    }
}

impl WriteHandler for Begins {
    fn write(&self, _: &CallContext, _: DataValue) -> Result<DataValue, StatusCode> {
        Err(StatusCode::BAD_NOT_WRITABLE)
    }

    fn begin_write(&self, _: &CallContext, _: DataValue) -> WriteCall {
        self.0.fetch_add(1, Ordering::Relaxed);
        WriteCall::Blocking(Box::new(|| Ok(())))
    }

    fn may_block(&self) -> bool {
        true
    }
}

#[test]
fn blocking_handlers_are_not_called_at_the_limit() {
    let (mut server, _) = server();
    let begun = Arc::new(AtomicU32::new(0));
    let handler = Arc::new(Begins(Arc::clone(&begun)));
    add(&server, variable(70, BuiltInType::Int32, 1i32));
    server.space.set_write_handler(&NodeId::numeric(1, 70), Arc::clone(&handler) as Arc<_>).unwrap();
    add_method(&server, 71, handler, 0);
    let mut client = server.session();
    let value = WriteValue {
        node_id: NodeId::numeric(1, 70),
        attribute_id: 13,
        value: DataValue::new(2i32),
        ..WriteValue::default()
    };
    let nodes_to_write = vec![value; PER_CONNECTION + 2];
    let request = WriteRequest { request_header: client.header(), nodes_to_write };
    let id = client.send(&mut server, WriteRequest::BINARY_ENCODING_ID, &request);
    assert_eq!(begun.swap(0, Ordering::Relaxed), PER_CONNECTION as u32);
    while server.run_effect() {}
    client.drain(&mut server);
    let results = client.response::<schema::WriteResponse>(id).unwrap().unwrap().results;
    assert_eq!(results.iter().filter(|status| **status == StatusCode::BAD_SERVER_TOO_BUSY).count(), 2);
    let method = CallMethodRequest {
        object_id: object_ids::OBJECTS_FOLDER.into(),
        method_id: NodeId::numeric(1, 71),
        input_arguments: Vec::new(),
    };
    let request =
        CallRequest { request_header: client.header(), methods_to_call: vec![method; PER_CONNECTION + 2] };
    let id = client.send(&mut server, CallRequest::BINARY_ENCODING_ID, &request);
    assert_eq!(begun.load(Ordering::Relaxed), PER_CONNECTION as u32);
    while server.run_effect() {}
    client.drain(&mut server);
    let results = client.response::<schema::CallResponse>(id).unwrap().unwrap().results;
    assert_eq!(results.iter().filter(|it| it.status_code == StatusCode::BAD_SERVER_TOO_BUSY).count(), 2);
}
