//! The library's client against the library's server.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use taktwerk::client::{Attribute, BrowseOptions, Error, Item, Update};
use taktwerk::schema::Range;
use taktwerk::{Client, RunningServer, Server, StatusCode, Struct, Unit, Variant};

fn server(fill: impl FnOnce(&Server)) -> RunningServer {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    fill(&server);
    server.spawn().unwrap()
}

async fn connect(running: &RunningServer) -> Client {
    Client::builder(&running.url()).unsecured().connect().await.unwrap()
}

/// The application's own product, or this library.
#[tokio::test]
async fn clients_read_the_product_of_the_server() {
    use taktwerk::server::BuildInfo;
    let default = server(|_| {});
    let client = connect(&default).await;
    assert_eq!(client.read_value::<String>("i=2261").await.unwrap(), "Taktwerk");
    assert_eq!(client.read_value::<String>("i=2264").await.unwrap(), env!("CARGO_PKG_VERSION"));
    let info = BuildInfo::new("Example Ltd", "Boiler control", "4.2").built_at(Some("1764403200"));
    let own =
        Server::builder().bind("127.0.0.1:0").anonymous().product_uri("urn:example:boiler").build_info(info);
    let own = own.build().unwrap().spawn().unwrap();
    let client = connect(&own).await;
    let whole: Struct<taktwerk::schema::BuildInfo> = client.read_value("i=2260").await.unwrap();
    let text = |text: &taktwerk::types::UaString| text.as_str().to_owned();
    let found = [
        text(&whole.0.product_uri),
        text(&whole.0.manufacturer_name),
        text(&whole.0.product_name),
        text(&whole.0.software_version),
        text(&whole.0.build_number),
        whole.0.build_date.to_string(),
    ];
    let expected =
        ["urn:example:boiler", "Example Ltd", "Boiler control", "4.2", "4.2", "2025-11-29T08:00:00Z"];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn values_of_all_shapes_are_read_and_written() {
    let running = server(|server| {
        let plant = server.namespace("urn:plant").folder("Plant").unwrap();
        plant.variable("Number", 1.5).writable().add().unwrap();
        plant.variable("Text", "one").writable().add().unwrap();
        plant.variable("List", [1i32, 2, 3]).writable().add().unwrap();
        plant.variable("Range", Struct(Range { low: 1.0, high: 2.0 })).writable().add().unwrap();
        let matrix = Variant::matrix(vec![0u8, 1, 2, 3, 4, 5], vec![2, 3]).unwrap();
        plant.variable("Matrix", matrix).add().unwrap();
        plant.variable("Anything", Variant::from(7i64)).data_type(24u32).writable().add().unwrap();
        plant.variable_of::<f32>("Later").add().unwrap();
        plant.variable("Fixed", true).add().unwrap();
    });
    let client = connect(&running).await;
    let node = |name: &str| format!("nsu=urn:plant;s=Plant/{name}");

    assert_eq!(client.read_value::<f64>(node("Number")).await.unwrap(), 1.5);
    client.write(node("Number"), 2.5).await.unwrap();
    assert_eq!(client.read_value::<f64>(node("Number")).await.unwrap(), 2.5);
    client.write(node("Text"), "two").await.unwrap();
    assert_eq!(client.read_value::<String>(node("Text")).await.unwrap(), "two");
    client.write(node("List"), vec![4i32]).await.unwrap();
    assert_eq!(client.read_value::<Vec<i32>>(node("List")).await.unwrap(), [4]);
    client.write(node("Range"), Struct(Range { low: -1.0, high: 0.0 })).await.unwrap();
    let range = client.read_value::<Struct<Range>>(node("Range")).await.unwrap();
    assert_eq!(range.0, Range { low: -1.0, high: 0.0 });
    let matrix = client.read_value::<Variant>(node("Matrix")).await.unwrap();
    assert_eq!(matrix.as_array().unwrap().shape(), [2, 3]);
    client.write(node("Anything"), "a text now").await.unwrap();

    let refused = client.write(node("Number"), "text").await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_TYPE_MISMATCH);
    let refused = client.write(node("Fixed"), false).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_NOT_WRITABLE);
    let waiting = client.read_value::<f32>(node("Later")).await.unwrap_err();
    assert_eq!(waiting.status(), StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    let wrong = client.read_value::<i32>(node("Number")).await.unwrap_err();
    assert!(matches!(wrong, Error::WrongType { .. }) && wrong.to_string().contains("Double, not Int32"));
    let missing = client.read_value::<i32>(node("Nothing")).await.unwrap_err();
    assert_eq!(missing.status(), StatusCode::BAD_NODE_ID_UNKNOWN);

    for (name, data_type, rank) in [
        ("Number", 11, -1),
        ("Text", 12, -1),
        ("List", 6, 1),
        ("Range", 884, -1),
        ("Matrix", 3, 2),
        ("Later", 10, -1),
    ] {
        let id = client.read_attribute(node(name), Attribute::DataType).await.unwrap().value.unwrap();
        assert_eq!(id, taktwerk::NodeId::numeric(0, data_type).into(), "{name}");
        let value = client.read_attribute(node(name), Attribute::ValueRank).await.unwrap().value.unwrap();
        assert_eq!(value, rank.into(), "{name}");
    }
    client.disconnect().await;
}

#[tokio::test]
async fn callbacks_compute_and_check_values() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let running = server(|server| {
        let plant = server.namespace("urn:plant");
        plant.variable("Quick", 0u32).source(move || counted.fetch_add(1, Ordering::Relaxed)).add().unwrap();
        plant
            .variable("Slow", 0.0)
            .blocking_source(|| {
                std::thread::sleep(Duration::from_millis(20));
                Ok(42.0)
            })
            .add()
            .unwrap();
        plant
            .variable("Later", 0.0)
            .async_source(|| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(StatusCode::BAD_NO_COMMUNICATION)
            })
            .add()
            .unwrap();
        plant
            .variable("Even", 2i32)
            .on_write(
                |_, value| {
                    if value % 2 == 0 { Ok(value.min(100)) } else { Err(StatusCode::BAD_OUT_OF_RANGE) }
                },
            )
            .add()
            .unwrap();
    });
    let client = connect(&running).await;
    assert_eq!(client.read_value::<u32>("ns=2;s=Quick").await.unwrap(), 0);
    assert_eq!(client.read_value::<u32>("ns=2;s=Quick").await.unwrap(), 1);
    let (slow, quick) = tokio::join!(client.read_value::<f64>("ns=2;s=Slow"), client.read("ns=2;s=Quick"));
    assert_eq!(slow.unwrap(), 42.0);
    assert!(quick.unwrap().source_timestamp.is_some());
    let later = client.read_value::<f64>("ns=2;s=Later").await.unwrap_err();
    assert_eq!(later.status(), StatusCode::BAD_NO_COMMUNICATION);
    client.write("ns=2;s=Even", 500i32).await.unwrap();
    assert_eq!(client.read_value::<i32>("ns=2;s=Even").await.unwrap(), 100);
    let odd = client.write("ns=2;s=Even", 5i32).await.unwrap_err();
    assert_eq!(odd.status(), StatusCode::BAD_OUT_OF_RANGE);
}

#[tokio::test]
async fn methods_of_three_kinds_are_called() {
    let running = server(|server| {
        let machine = server.namespace("urn:plant").object("Machine").add().unwrap();
        machine
            .method("Add")
            .inputs(["a", "b"])
            .outputs(["sum"])
            .handler(|_, (a, b): (i32, i32)| Ok((a + b,)))
            .unwrap();
        machine
            .method("Sleep")
            .inputs(["span"])
            .outputs(["names"])
            .blocking_handler(|_, (span,): (Duration,)| {
                std::thread::sleep(span);
                Ok((vec!["a".to_owned(), "b".to_owned()],))
            })
            .unwrap();
        machine
            .method("Wait")
            .async_handler(|context, ()| async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                if context.session_id.is_null() { Err(StatusCode::BAD_SESSION_ID_INVALID) } else { Ok(()) }
            })
            .unwrap();
        let error = machine.method("Odd").inputs(["one"]).handler(|_, ()| Ok(())).unwrap_err();
        assert!(error.to_string().contains("0 inputs but 1 names"), "{error}");
    });
    let client = connect(&running).await;
    let machine = client.find("i=85", "2:Machine").await.unwrap();
    let method = |name: &str| format!("ns=2;s=Machine/{name}");
    let (sum,): (i32,) = client.call(&machine, method("Add"), (20, 22)).await.unwrap();
    assert_eq!(sum, 42);
    let (names,): (Vec<String>,) =
        client.call(&machine, method("Sleep"), (Duration::from_millis(10),)).await.unwrap();
    assert_eq!(names, ["a", "b"]);
    let (): () = client.call(&machine, method("Wait"), ()).await.unwrap();
    let wrong = client.call::<_, (i32,)>(&machine, method("Add"), (1.0, 2)).await.unwrap_err();
    assert_eq!(wrong.status(), StatusCode::BAD_INVALID_ARGUMENT);
    assert!(wrong.to_string().contains("argument 1"), "{wrong}");
    let few = client.call::<_, (i32,)>(&machine, method("Add"), (1,)).await.unwrap_err();
    assert_eq!(few.status(), StatusCode::BAD_ARGUMENTS_MISSING);
    let arguments = client.find(&machine, "2:Add/InputArguments").await.unwrap();
    assert!(client.read(&arguments).await.unwrap().value.is_some());
}

#[tokio::test]
async fn the_space_is_browsed_by_pages_and_types_are_instantiated() {
    let running = server(|server| {
        let many = server.namespace("urn:plant").folder("Many").unwrap();
        for number in 0..1000 {
            many.variable(&format!("Signal {number}"), 0.0).add().unwrap();
        }
        many.variable("Level", 1.0).units(Unit::METRE).range(0.0..=3.0).add().unwrap();
        let state = many.object("State").of_type(2771u32).with("AvailableStates").add().unwrap();
        let error = many.object("Odd").of_type(2771u32).with("Availability").add().unwrap_err().to_string();
        assert!(error.contains("i=2771 has no member Availability"), "{error}");
        assert!(many.child("Odd").is_err());
        assert!(state.child_named(&taktwerk::QualifiedName::new(0, "CurrentState")).is_ok());
    });
    let client = connect(&running).await;
    let children = client.browse("ns=2;s=Many").await.unwrap();
    assert_eq!(children.len(), 1002);
    let request = taktwerk::schema::BrowseRequest {
        requested_max_references_per_node: 7,
        nodes_to_browse: vec![taktwerk::schema::BrowseDescription {
            node_id: "ns=2;s=Many".parse().unwrap(),
            ..Default::default()
        }],
        ..Default::default()
    };
    assert!(!client.operate(request).await.unwrap().results[0].continuation_point.is_null());
    let properties = client.browse("ns=2;s=Many/Level").await.unwrap();
    let names: Vec<&str> = properties.iter().map(|reference| reference.browse_name.name.as_str()).collect();
    assert_eq!(names, ["EURange", "EngineeringUnits"]);
    let parts: Vec<String> = client
        .browse("ns=2;s=Many/State")
        .await
        .unwrap()
        .iter()
        .map(|reference| reference.browse_name.to_string())
        .collect();
    assert_eq!(parts, ["CurrentState", "AvailableStates"]);
    let types = BrowseOptions { reference_type: taktwerk::NodeId::numeric(0, 40), ..Default::default() };
    let kind = client.browse_with("ns=2;s=Many/State", &types).await.unwrap();
    assert_eq!(kind[0].node_id.node_id, taktwerk::NodeId::numeric(0, 2771));
    let gone = client.browse("ns=2;s=Nothing").await.unwrap_err();
    assert_eq!(gone.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
}

#[tokio::test]
async fn changes_arrive_as_a_stream() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let level = plant.variable("Level", 0.0).range(0.0..=100.0).add().unwrap();
    let count = plant.variable("Count", 0u32).add().unwrap();
    let running = server.spawn().unwrap();
    let client = connect(&running).await;
    let mut subscription = client.subscribe(Duration::from_millis(20)).await.unwrap();
    let coarse = Item::new(level.id().clone()).percent_deadband(10.0).sampling(Duration::from_millis(10));
    let level_item = subscription.monitor_item(coarse).await.unwrap();
    let every = Item::new(count.id().clone()).queue(1000).sampling(Duration::ZERO);
    let count_item = subscription.monitor_item(every).await.unwrap();
    let refused = subscription.monitor("ns=2;s=Nothing").await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_NODE_ID_UNKNOWN);

    let writer = tokio::task::spawn_blocking(move || {
        for round in 1..=100u32 {
            level.set(f64::from(round) / 10.0);
            count.set(round);
            std::thread::sleep(Duration::from_millis(2));
        }
        level.set(50.0);
    });
    let (mut counts, mut levels) = (Vec::new(), Vec::new());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while levels.last() != Some(&50.0) || counts.last() != Some(&100) {
        let change = tokio::time::timeout_at(deadline, subscription.next_change()).await.unwrap().unwrap();
        match change.item {
            item if item == level_item => levels.push(change.value::<f64>().unwrap()),
            item if item == count_item => counts.push(change.value::<u32>().unwrap()),
            other => panic!("item {other}"),
        }
    }
    writer.await.unwrap();
    // The queue keeps every value; the deadband passes changes of 10 or more.
    assert_eq!(counts, (0..=100).collect::<Vec<_>>());
    assert!(levels.windows(2).all(|pair| (pair[0] - pair[1]).abs() > 9.9), "{levels:?}");
    subscription.unmonitor([count_item]).await.unwrap();
    drop(subscription);
    // Another subscription still works.
    let mut again = client.subscribe(Duration::from_millis(20)).await.unwrap();
    again.monitor("ns=2;s=Level").await.unwrap();
    loop {
        if let Some(Update::Change(change)) = again.next().await {
            assert_eq!(change.value::<f64>().unwrap(), 50.0);
            break;
        }
    }
}

#[tokio::test]
async fn endpoints_are_listed_and_errors_explained() {
    let running = server(|_| {});
    let endpoints = Client::endpoints(&running.url()).await.unwrap();
    assert_eq!(endpoints.len(), 1);
    assert!(endpoints[0].security_policy_uri.as_str().ends_with("#None"));
    let client = Client::connect(&running.url()).await.unwrap();
    assert_eq!(client.namespaces().len(), 2);
    let error = Client::builder(&running.url()).user("somebody", "secret").connect().await.unwrap_err();
    assert_eq!(error.status(), StatusCode::BAD_IDENTITY_TOKEN_REJECTED, "{error}");
    let url = running.url();
    running.stop(Duration::ZERO);
    let error = Client::connect(&url).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn users_log_on_by_name() {
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .users(|name: &str, password: &[u8]| {
            if (name, password) == ("operator", b"secret") {
                Ok(())
            } else {
                Err(StatusCode::BAD_USER_ACCESS_DENIED)
            }
        })
        .allow_clear_passwords()
        .build()
        .unwrap();
    let running = server.spawn().unwrap();
    let log_on = |password: &'static str| {
        Client::builder(&running.url()).user("operator", password).allow_plaintext_password().connect()
    };
    assert!(log_on("secret").await.is_ok());
    assert_eq!(log_on("wrong").await.unwrap_err().status(), StatusCode::BAD_USER_ACCESS_DENIED);
    assert!(Client::connect(&running.url()).await.is_err());
}

#[test]
fn a_server_with_unencrypted_passwords_cannot_be_built() {
    let builder = Server::builder().bind("127.0.0.1:0").users(|_: &str, _: &[u8]| Ok(()));
    let error = builder.build().unwrap_err();
    assert!(error.to_string().contains("unencrypted"), "{error}");
}

#[test]
fn access_must_be_enabled_explicitly() {
    let builder = || Server::builder().bind("127.0.0.1:0");
    let error = builder().build().unwrap_err();
    assert!(error.to_string().contains("no client can log on"), "{error}");
    assert!(builder().anonymous().build().is_ok());
    // On addresses beyond loopback nothing is offered without security by default.
    let open = || Server::builder().bind("0.0.0.0:0").anonymous();
    let error = open().build().unwrap_err();
    assert!(error.to_string().contains("no endpoint is offered"), "{error}");
    let none = (taktwerk::SecurityPolicy::None, taktwerk::MessageSecurityMode::None);
    assert!(open().security(none.0, none.1).build().is_ok());
}

/// Applications spawn tasks with a client, so all its futures must be Send.
#[test]
fn futures_can_be_spawned() {
    fn check<T: Send>(_: &T) {}
    fn all(client: &Client, subscription: &mut taktwerk::client::Subscription) {
        check(&client.read_value::<f64>("i=1"));
        check(&client.write("i=1", 1.0));
        check(&client.browse("i=1"));
        check(&client.find("i=1", ""));
        check(&client.call::<(f64,), ()>("i=1", "i=2", (1.0,)));
        check(&client.decode(&taktwerk::types::ExtensionObject::NULL));
        check(&client.print(&Variant::Empty));
        check(&client.subscribe(Duration::ZERO));
        check(&client.disconnect());
        check(&Client::connect(""));
        check(&Client::endpoints(""));
        check(&subscription.monitor("i=1"));
        check(&subscription.next());
    }
    let _ = all;
}
