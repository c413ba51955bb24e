//! Actions over a real network: invoked once, executed once, answered.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use taktwerk::pubsub::{ActionRequestor, ActionResponder, SecurityKeys, SecurityMode, StaticKeys};
use taktwerk::{StatusCode, Variant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A separate loopback address: a port that was free a moment ago may be taken by another program.
fn free_url() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    format!("opc.udp://127.{high}.{low}.{}:4840", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn keys() -> StaticKeys {
    let keys = SecurityKeys {
        security_policy_uri: taktwerk_crypto::PubSubSecurityPolicy::Aes256Ctr.uri().to_owned(),
        first_token_id: 1,
        keys: vec![vec![7; 68]; 2],
        time_to_next_key: 3.6e6,
        key_lifetime: 3.6e6,
        current_token_id: None,
        nonces: None,
    };
    StaticKeys::new().with("plant", keys)
}

fn double(inputs: Vec<Variant>) -> Result<Vec<Variant>, StatusCode> {
    match inputs.first() {
        Some(Variant::Double(value)) => Ok(vec![(value * 2.0).into(), "done".into()]),
        _ => Err(StatusCode::BAD_INVALID_ARGUMENT),
    }
}

#[test]
fn an_action_is_invoked_executed_once_and_answered() {
    let (there, here) = (free_url(), free_url());
    let refused = ActionResponder::builder(&there, 7).action(1, 1, double).start().unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    let executed = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&executed);
    let interval = Duration::from_millis(5);
    let _responder = ActionResponder::builder(&there, 7)
        .security(SecurityMode::SignAndEncrypt, "plant", keys())
        .interval(interval)
        .action(1, 1, double)
        .action(1, 2, move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            // Longer than several repetitions of the request.
            std::thread::sleep(Duration::from_millis(50));
            Ok(Vec::new())
        })
        .start()
        .unwrap();
    let requestor = ActionRequestor::builder(&there, 9)
        .response_address(&here)
        .security(SecurityMode::SignAndEncrypt, "plant", keys())
        .interval(interval)
        .start()
        .unwrap();
    let invoke = |target, inputs| requestor.invoke(7, 1, target, inputs, PATIENCE);
    assert_eq!(invoke(1, vec![21.0.into()]), Ok(vec![42.0.into(), "done".into()]));
    assert_eq!(invoke(1, vec!["no number".into()]), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(invoke(3, Vec::new()), Err(StatusCode::BAD_NOT_FOUND));
    assert_eq!(invoke(2, Vec::new()), Ok(Vec::new()));
    assert_eq!(executed.load(Ordering::Relaxed), 1);
    // Several invocations at the same time, from several threads.
    std::thread::scope(|scope| {
        for number in 0..8 {
            let requestor = &requestor;
            scope.spawn(move || {
                let value = f64::from(number);
                let results = requestor.invoke(7, 1, 1, vec![value.into()], PATIENCE);
                assert_eq!(results, Ok(vec![(value * 2.0).into(), "done".into()]));
            });
        }
    });
    // There is no such responder.
    let nobody = requestor.invoke(8, 1, 1, vec![1.0.into()], Duration::from_millis(50));
    assert_eq!(nobody, Err(StatusCode::BAD_TIMEOUT));
    // Messages without the keys are ignored.
    let stranger = ActionRequestor::builder(&there, 10).response_address(&free_url()).allow_unsecured();
    let stranger = stranger.interval(interval).start().unwrap();
    let unheard = stranger.invoke(7, 1, 2, Vec::new(), Duration::from_millis(100));
    assert_eq!((unheard, executed.load(Ordering::Relaxed)), (Err(StatusCode::BAD_TIMEOUT), 1));
}

/// A responder that stores what it has received does not execute recorded requests again after a restart. Otherwise it cannot
/// recognize them.
#[test]
fn recorded_requests_are_not_executed_again_after_a_restart() {
    let path = std::env::temp_dir().join(format!("taktwerk-responder-{}.replay", std::process::id()));
    let (there, here) = (free_url(), free_url());
    // Requests pass through this test, which records them.
    let between = UdpSocket::bind("127.0.0.1:0").unwrap();
    between.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let detour = format!("opc.udp://{}", between.local_addr().unwrap());
    let address = there.strip_prefix("opc.udp://").unwrap().to_owned();
    let executed = Arc::new(AtomicU32::new(0));
    let start = |path: Option<&std::path::Path>| {
        let counter = Arc::clone(&executed);
        let mut builder = ActionResponder::builder(&there, 7)
            .security(SecurityMode::SignAndEncrypt, "plant", keys())
            .interval(Duration::from_millis(5))
            .action(1, 1, move |_| {
                counter.fetch_add(1, Ordering::SeqCst);
                Ok(Vec::new())
            });
        if let Some(path) = path {
            builder = builder.replay_floor(path);
        }
        builder.start().unwrap()
    };
    let requestor = ActionRequestor::builder(&detour, 9)
        .response_address(&here)
        .security(SecurityMode::SignAndEncrypt, "plant", keys())
        .interval(Duration::from_millis(20))
        .start()
        .unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    // Invokes the Action, forwards the request, and returns all recorded messages.
    let ask = || {
        is_over.store(false, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let result = requestor.invoke(7, 1, 1, Vec::new(), PATIENCE);
                is_over.store(true, Ordering::SeqCst);
                result
            });
            let mut recorded = Vec::new();
            let mut buffer = [0; 2048];
            while !is_over.load(Ordering::SeqCst) {
                // No message at present.
                let Ok(len) = between.recv(&mut buffer) else { continue };
                between.send_to(&buffer[..len], &address).unwrap();
                recorded.push(buffer[..len].to_vec());
            }
            assert_eq!(asked.join().unwrap(), Ok(Vec::new()));
            recorded
        })
    };
    let responder = start(Some(&path));
    // Once it answers, it has its keys. Earlier messages were never accepted, and could be accepted once.
    ask();
    let recorded = ask();
    // Messages after the recorded ones are received after them.
    ask();
    assert_eq!(executed.load(Ordering::SeqCst), 3);
    drop(responder);
    for (keeps, after) in [(true, 4), (false, 6)] {
        let responder = start(keeps.then_some(path.as_path()));
        ask();
        for request in &recorded {
            between.send_to(request, &address).unwrap();
        }
        if keeps {
            let before = executed.load(Ordering::SeqCst);
            ask();
            assert_eq!(executed.load(Ordering::SeqCst), before + 1);
            executed.fetch_sub(1, Ordering::SeqCst);
        }
        let end = std::time::Instant::now() + PATIENCE;
        while executed.load(Ordering::SeqCst) < after && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(executed.load(Ordering::SeqCst), after, "{keeps}");
        drop(responder);
    }
    std::fs::remove_file(&path).unwrap();
}

/// Methods of a server are published as Actions; requestors discover and invoke them.
#[test]
fn methods_of_a_server_are_invoked_as_actions() {
    use taktwerk::pubsub::PublisherId;
    use taktwerk::pubsub::config::{
        Configuration, Connection, DataSetSource, DataSetWriter, PublishedDataSet, WriterGroup,
    };
    use taktwerk_pubsub::config::build::field;
    use taktwerk_schema::ids::object_ids;
    use taktwerk_schema::{
        ActionMethodDataType, ActionTargetDataType, DataSetMetaDataType, PermissionType,
        PublishedActionMethodDataType,
    };
    use taktwerk_server::authorization::access::Access;
    use taktwerk_types::{BuiltInType, NodeId};

    let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let machine = server.namespace("urn:example").object("Machine").add().unwrap();
    let divide = machine
        .method("Divide")
        .inputs(["a", "b"])
        .outputs(["c"])
        .handler(|_, (a, b): (i32, i32)| Ok((a.checked_div(b).ok_or(StatusCode::BAD_OUT_OF_RANGE)?,)));
    let divide = divide.unwrap();
    let slow = machine.method("Slow").inputs(["x"]).outputs(["y"]).blocking_handler(|_, (x,): (f64,)| {
        std::thread::sleep(Duration::from_millis(20));
        Ok((x + 1.0,))
    });
    let slow = slow.unwrap();
    let forbidden = machine.method("Forbidden").handler(|_, (): ()| Ok(())).unwrap();
    let operator: NodeId = object_ids::WELL_KNOWN_ROLE_OPERATOR.into();
    let access = Access::roles([(operator.clone(), PermissionType::CALL | PermissionType::BROWSE)]);
    server.space().set_access(forbidden.id(), access).unwrap();

    let target = |id: u16, name: &str| ActionTargetDataType {
        action_target_id: id,
        name: name.into(),
        ..Default::default()
    };
    let method = |method_id: &NodeId| ActionMethodDataType {
        object_id: machine.id().clone(),
        method_id: method_id.clone(),
    };
    let set = |name: &str, targets: Vec<ActionTargetDataType>, methods: Vec<ActionMethodDataType>| {
        let mut set = PublishedDataSet::new(name, vec![field("c", BuiltInType::Int32)]);
        set.source = DataSetSource::ActionMethods(Box::new(PublishedActionMethodDataType {
            request_data_set_meta_data: DataSetMetaDataType {
                name: name.into(),
                fields: vec![field("a", BuiltInType::Int32), field("b", BuiltInType::Int32)],
                ..Default::default()
            },
            action_targets: targets,
            action_methods: methods,
        }));
        set
    };
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    configuration.data_sets = vec![
        set("divide", vec![target(1, "machine")], vec![method(divide.id())]),
        set(
            "others",
            vec![target(1, "slow"), target(2, "forbidden")],
            vec![method(slow.id()), method(forbidden.id())],
        ),
    ];
    let mut group = WriterGroup::dynamic("actions", 1, 5.0);
    group.security.mode = SecurityMode::SignAndEncrypt;
    group.security.security_group_id = "plant".into();
    group.writers.push(DataSetWriter::dynamic("divide", 1, "divide"));
    group.writers.push(DataSetWriter::dynamic("others", 2, "others"));
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("opc.udp://239.192.7.1:{port}");
    let mut connection = Connection::new("udp", Some(PublisherId::UInt16(7)), &url);
    connection.network_interface = "lo".into();
    connection.writer_groups.push(group);
    configuration.connections.push(connection);

    let start = |roles: &[NodeId]| {
        let mut builders = ActionResponder::of(&configuration, server.space(), roles);
        assert_eq!(builders.len(), 1);
        builders.remove(0).keys(keys()).start().unwrap()
    };
    let requestor = ActionRequestor::builder(&url, 9)
        .interface("lo")
        .security(SecurityMode::SignAndEncrypt, "plant", keys())
        .interval(Duration::from_millis(5))
        .start()
        .unwrap();
    let responder = start(&[]);
    let actions = requestor.discover(7, PATIENCE).unwrap();
    let names: Vec<_> = actions.iter().map(|action| action.request.name.as_str()).collect();
    assert_eq!(names, ["divide", "others"]);
    assert_eq!(actions[0].request.fields.len(), 2);
    assert_eq!(actions[1].targets[1].name.as_str(), "forbidden");
    assert_eq!(actions[1].methods[0].method_id, *slow.id());
    let invoke = |writer, target, inputs| requestor.invoke(7, writer, target, inputs, PATIENCE);
    assert_eq!(invoke(1, 1, vec![7i32.into(), 2i32.into()]), Ok(vec![3i32.into()]));
    assert_eq!(invoke(1, 1, vec![7i32.into(), 0i32.into()]), Err(StatusCode::BAD_OUT_OF_RANGE));
    assert_eq!(invoke(1, 1, vec!["x".into(), 1i32.into()]), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(invoke(2, 1, vec![1.5.into()]), Ok(vec![2.5.into()]));
    assert_eq!(invoke(1, 2, Vec::new()), Err(StatusCode::BAD_NOT_FOUND));
    let refused = invoke(2, 2, Vec::new()).unwrap_err();
    assert!(refused.is_bad(), "nobody said that Actions may what operators may: {refused}");
    drop(responder);
    let _responder = start(&[operator]);
    assert_eq!(invoke(2, 2, Vec::new()), Ok(Vec::new()));
}

/// Over a broker, if mosquitto is installed.
#[cfg(feature = "mqtt")]
#[test]
fn an_action_goes_over_a_broker() {
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Command, Stdio};
    struct Broker(Child);
    impl Drop for Broker {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let known = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto", "/usr/bin/mosquitto"];
    let Some(program) = known.iter().find(|path| std::path::Path::new(path).is_file()) else {
        assert!(
            std::env::var_os("TAKTWERK_TEST_MOSQUITTO").is_none_or(|wish| wish != "required"),
            "no mosquitto"
        );
        println!("skipped: there is no mosquitto");
        return;
    };
    let mut command = Command::new(program);
    command.args(["-p", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let broker = Broker(command.spawn().unwrap());
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Both mappings, with fields as Variants and as raw data.
    let address = format!("127.0.0.1:{port}");
    std::thread::scope(|scope| {
        for (number, raw) in [(7u16, false), (17, true)] {
            let address = &address;
            scope.spawn(move || over_a_broker(&format!("mqtt://{address}"), number, raw));
            scope.spawn(move || over_a_broker(&format!("mqtt+json://{address}"), number + 1, raw));
        }
    });
    meta_data_has_a_queue_of_its_own(&format!("mqtt+json://{address}"));
    // If the broker is down, nothing is sent, and the error says so.
    drop(broker);
    let requestor =
        ActionRequestor::builder(&format!("mqtt://{address}"), 9).allow_unsecured().start().unwrap();
    let unheard = requestor.invoke(7, 1, 1, vec![1.0.into()], Duration::from_millis(200));
    assert_eq!(unheard, Err(StatusCode::BAD_NO_COMMUNICATION));
}

/// The requestor starts before its responder, and knows only its id.
#[cfg(feature = "mqtt")]
fn over_a_broker(url: &str, number: u16, raw: bool) {
    use taktwerk::pubsub::ActionDescription;
    use taktwerk_pubsub::config::build::field;
    use taktwerk_schema::{ActionTargetDataType, DataSetMetaDataType};
    use taktwerk_types::BuiltInType;
    let is_json = url.contains("json");
    let meta_data = |fields| DataSetMetaDataType { name: "double".into(), fields, ..Default::default() };
    let text = |name: &str| {
        let mut text = field(name, BuiltInType::String);
        text.max_string_length = 16;
        text
    };
    let target = ActionTargetDataType { action_target_id: 1, name: "it".into(), ..Default::default() };
    let description = ActionDescription {
        data_set_writer_id: 1,
        targets: vec![target],
        request: meta_data(vec![field("x", BuiltInType::Double)]),
        response: meta_data(vec![field("y", BuiltInType::Double), text("said")]),
        methods: Vec::new(),
    };
    let mut asking = ActionRequestor::builder(url, number + 100);
    let refused = ActionResponder::builder(url, number).action(1, 1, double).start().unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    assert_eq!(refused.to_string().contains("mqtts+json"), is_json, "{refused}");
    let mut answering =
        ActionResponder::builder(url, number).action(1, 1, double).describe(description.clone());
    if raw {
        answering = answering.raw_data();
    }
    if is_json {
        (asking, answering) = (asking.allow_unsecured(), answering.allow_unsecured());
    } else {
        let mode = SecurityMode::SignAndEncrypt;
        asking = asking.security(mode, "plant", keys());
        answering = answering.security(mode, "plant", keys());
    }
    let requestor = asking.start().unwrap();
    let nobody = requestor.invoke(number + 200, 1, 1, vec![1.0.into()], Duration::from_millis(500));
    let unsaid = [StatusCode::BAD_WAITING_FOR_INITIAL_DATA, StatusCode::BAD_NO_COMMUNICATION];
    assert!(nobody.is_err_and(|error| unsaid.contains(&error)));
    std::thread::scope(|scope| {
        let early = scope.spawn(|| requestor.invoke(number, 1, 1, vec![21.0.into()], PATIENCE));
        std::thread::sleep(Duration::from_millis(50));
        let responder = answering.start().unwrap();
        assert_eq!(early.join().unwrap(), Ok(vec![42.0.into(), "done".into()]), "{url}");
        let heard = requestor.discover(number, PATIENCE).unwrap();
        assert_eq!(heard, [description]);
        let wrong = requestor.invoke(number, 1, 1, vec!["text".into()], PATIENCE);
        // Raw data has no place for text, so the request is not sent.
        let status = if raw { StatusCode::BAD_TYPE_MISMATCH } else { StatusCode::BAD_INVALID_ARGUMENT };
        assert!(is_json || wrong == Err(status), "{url}: {wrong:?}");
        assert!(wrong.is_err(), "{url}");
        assert_eq!(
            requestor.invoke(number, 1, 2, vec![1.0.into()], PATIENCE),
            Err(StatusCode::BAD_NOT_FOUND)
        );
        drop(responder);
    });
}

/// A responder that sends its ActionMetaData to its MetaDataQueueName. Requests in JSON need it.
#[cfg(feature = "mqtt")]
fn meta_data_has_a_queue_of_its_own(url: &str) {
    use taktwerk_pubsub::config::build::field;
    use taktwerk_pubsub::config::{
        Configuration, Connection, DataSetSource, DataSetWriter, DataSetWriterTransport, PublishedDataSet,
        WriterGroup,
    };
    use taktwerk_schema::{
        ActionMethodDataType, ActionTargetDataType, BrokerDataSetWriterTransportDataType,
        DataSetMetaDataType, PublishedActionMethodDataType,
    };
    let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let scale = server.objects().method("Scale").inputs(["value"]).outputs(["scaled"]);
    let method = scale.handler(|_, (value,): (f64,)| Ok((value * 3.0,))).unwrap().id().clone();
    let double = taktwerk_types::BuiltInType::Double;
    let mut set = PublishedDataSet::new("scale", vec![field("scaled", double)]);
    let request = DataSetMetaDataType {
        name: "scale".into(),
        fields: vec![field("value", double)],
        configuration_version: set.meta_data.configuration_version.clone(),
        ..Default::default()
    };
    set.source = DataSetSource::ActionMethods(Box::new(PublishedActionMethodDataType {
        request_data_set_meta_data: request,
        action_targets: vec![ActionTargetDataType {
            action_target_id: 1,
            name: "it".into(),
            ..Default::default()
        }],
        action_methods: vec![ActionMethodDataType {
            object_id: taktwerk_types::NodeId::numeric(0, taktwerk_schema::ids::object_ids::OBJECTS_FOLDER),
            method_id: method,
        }],
    }));
    let mut writer = DataSetWriter::json("scale", 1, "scale");
    writer.transport = DataSetWriterTransport::Broker(BrokerDataSetWriterTransportDataType {
        meta_data_queue_name: "somewhere/else".into(),
        ..Default::default()
    });
    let mut group = WriterGroup::json("actions", 1, 10.0);
    group.writers.push(writer);
    let mut connection = Connection::new("broker", Some(77u16.into()), url);
    connection.writer_groups.push(group);
    let configuration = Configuration {
        enabled: true,
        data_sets: vec![set],
        connections: vec![connection],
        ..Default::default()
    };
    let mut responders = ActionResponder::of(&configuration, server.space(), &[]);
    let _responder = responders.remove(0).allow_unsecured().start().unwrap();
    let requestor = ActionRequestor::builder(url, 177).allow_unsecured().start().unwrap();
    assert_eq!(requestor.invoke(77, 1, 1, vec![5.0.into()], PATIENCE), Ok(vec![15.0.into()]));
    assert_eq!(requestor.discover(77, PATIENCE).unwrap().len(), 1);
}
