//! A gateway in front of another server: mirroring, merging, writing through, and recovery after a restart.

use crate::stand::{MS, Stand};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::alarms::{Method, Operation};
use taktwerk::history::{HistoryStore, HistoryValue, MemoryStore};
use taktwerk::{Client, RunningServer, Server, Unit, Variable};
use taktwerk_gateway::offer::Question;
use taktwerk_gateway::{GatewayConfig, discover};
use taktwerk_types::{BuiltInType, NodeId, StatusCode, UaString, UtcTime, Variant};
use tokio::time::sleep;

struct Other {
    server: RunningServer,
    temperature: Variable<f64>,
}

/// A plant to mirror. It exists before the gateway connects.
fn other(address: &str) -> Other {
    let server = Server::builder().bind(address).anonymous().build().unwrap();
    let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
    let boiler = plant.object("Boiler").add().unwrap();
    let temperature =
        boiler.variable("Temperature", 21.5).units(Unit::CELSIUS).range(0.0..=150.0).add().unwrap();
    boiler.variable("Setpoint", 60.0).writable().add().unwrap();
    boiler.variable("Names", vec!["a".to_owned(), "b".to_owned()]).add().unwrap();
    boiler.variable("Gone", 1i32).add().unwrap().set_status(StatusCode::BAD_SENSOR_FAILURE);
    // Equal names in two namespaces, and a loop.
    server
        .namespace("urn:example:second")
        .node(boiler.id().clone())
        .unwrap()
        .variable("Temperature", 1u8)
        .add()
        .unwrap();
    boiler.refers_to(NodeId::numeric(0, 35), &plant).unwrap();
    Other { server: server.spawn().unwrap(), temperature }
}

fn source(other: &RunningServer, more: &str) -> String {
    format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{}\"\npublishing_interval = \"50 ms\"\nretry = \"50 ms\"\n\
         retry_max = \"200 ms\"\nlost_after = \"1 s\"\ndeadline = \"2 s\"\n{more}\n",
        other.url()
    )
}

/// Waits until the mirror exists.
async fn mirrored(stand: &Stand) {
    for _ in 0..1000 {
        if stand.source("up").statistics.values > 3 {
            return;
        }
        sleep(10 * MS).await;
    }
    panic!("{:?}", stand.source("up"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subtree_is_mirrored_with_types_and_written_through() {
    let other = other("127.0.0.1:0");
    let stand = Stand::new(&source(&other.server, "mirror = \"nsu=urn:example:plant;s=Plant\"")).await;
    mirrored(&stand).await;
    stand.value("up/Boiler/Temperature", 21.5).await;
    stand.value("up/Boiler/Names", vec![UaString::from("a"), UaString::from("b")]).await;
    stand.until("up/Boiler/Gone", |value| value.status() == StatusCode::BAD_SENSOR_FAILURE).await;
    let id = |name: &str| format!("nsu=urn:taktwerk:gateway;s=up/Boiler/{name}");
    let data_type =
        stand.client.read_attribute(&*id("Temperature"), taktwerk::client::Attribute::DataType).await;
    let double = NodeId::numeric(0, u32::from(BuiltInType::Double.number()));
    assert_eq!(data_type.unwrap().value, Some(Variant::from(double)));
    let range = stand.client.find(&*id("Temperature"), "EURange").await.unwrap();
    assert!(stand.client.read(range).await.unwrap().value.is_some());
    other.temperature.set(22.5);
    stand.value("up/Boiler/Temperature", 22.5).await;
    stand.write("up/Boiler/Setpoint", 70.0).await.unwrap();
    stand.value("up/Boiler/Setpoint", 70.0).await;
    assert_eq!(stand.write("up/Boiler/Temperature", 1.0).await, Err(StatusCode::BAD_NOT_WRITABLE));
    // The second node with the same name keeps its BrowseName, and gets its identifier appended here.
    stand.value("up/Boiler/Temperature (s=Plant_Boiler_Temperature)", 1u8).await;
    let counted = stand.source("up").statistics;
    assert_eq!((counted.writes, counted.dropped, counted.errors), (1, 0, 0), "{:?}", counted.last_error);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_server_sees_one_session_however_many_clients_there_are() {
    let other = other("127.0.0.1:0");
    let stand = Stand::new(&source(&other.server, "mirror = \"nsu=urn:example:plant;s=Plant\"")).await;
    mirrored(&stand).await;
    let mut clients = Vec::new();
    for _ in 0..10 {
        let client = Client::connect(&stand.server.url()).await.unwrap();
        let mut subscription = client.subscribe(50 * MS).await.unwrap();
        subscription.monitor("nsu=urn:taktwerk:gateway;s=up/Boiler/Temperature").await.unwrap();
        assert!(subscription.next_change().await.is_some());
        clients.push((client, subscription));
    }
    let watch = Client::connect(&other.server.url()).await.unwrap();
    // CurrentSessionCount, CurrentSubscriptionCount: those of the gateway, plus our own session.
    assert_eq!(watch.read_value::<u32>("i=2277").await.unwrap(), 2);
    assert_eq!(watch.read_value::<u32>("i=2285").await.unwrap(), 1);
    other.temperature.set(33.0);
    for (_, subscription) in &mut clients {
        loop {
            let change = tokio::time::timeout(5000 * MS, subscription.next_change()).await.unwrap().unwrap();
            if change.value::<f64>() == Ok(33.0) {
                break;
            }
        }
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_is_found_again() {
    let first = other("127.0.0.1:0");
    let address = first.server.addresses()[0].to_string();
    let tag = "[[tag]]\nsource = \"up\"\nname = \"T\"\naddress = \"nsu=urn:example:plant;s=Plant/Boiler/Temperature\"\n\
               scale = 2.0\n[[tag]]\nsource = \"up\"\nname = \"No\"\ntype = \"Double\"\naddress = \"nsu=urn:example:plant;s=No\"\n";
    let stand =
        Stand::new(&(source(&first.server, "mirror = \"nsu=urn:example:plant;s=Plant\"") + tag)).await;
    mirrored(&stand).await;
    stand.value("up/T", 43.0).await;
    stand.until("up/No", |value| value.status() == StatusCode::BAD_NODE_ID_UNKNOWN).await;
    let tags = stand.source("up").tags;
    first.server.stop(Duration::ZERO);
    stand.until("up/T", |value| value.status() == StatusCode::UNCERTAIN_LAST_USABLE_VALUE).await;
    stand.until("up/Boiler/Temperature", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    assert_eq!(stand.write("up/Boiler/Setpoint", 1.0).await, Err(StatusCode::BAD_NO_COMMUNICATION));
    let second = other(&address);
    second.temperature.set(50.0);
    stand.value("up/T", 100.0).await;
    stand.value("up/Boiler/Temperature", 50.0).await;
    assert_eq!(stand.source("up").tags, tags, "nothing is added twice");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_times_out() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let text = format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"opc.tcp://{address}\"\ndeadline = \"300 ms\"\nretry = \"50 ms\"\n\
         mirror = [\"i=85\"]\n[[source]]\nname = \"ok\"\ntype = \"simulation\"\ninterval = \"20 ms\"\nstale_after = \"1 s\"\n\
         [[tag]]\nsource = \"ok\"\nname = \"v\"\n"
    );
    let stand = Stand::new(&text).await;
    for _ in 0..300 {
        if stand.source("up").statistics.errors > 1 {
            break;
        }
        sleep(10 * MS).await;
    }
    let error = stand.source("up").statistics.last_error.unwrap();
    assert_eq!(error, format!("connection to {address} timed out after 300ms"));
    let other = stand.source("ok").statistics;
    assert!(other.answers > 20 && other.missed == 0, "{other:?}");
    stand.end().await;
}

/// A server with methods, history and events.
struct Rich {
    server: RunningServer,
    boiler: taktwerk::Node,
    leak: taktwerk::alarms::Alarm,
}

fn rich() -> Rich {
    let store = Arc::new(MemoryStore::new(10_000));
    let server =
        Server::builder().bind("127.0.0.1:0").anonymous().history(Arc::clone(&store) as _).build().unwrap();
    let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
    let boiler = plant.object("Boiler").event_notifier().add().unwrap();
    let temperature = boiler.variable("Temperature", 1.0).historize().add().unwrap();
    boiler
        .method("Divide")
        .inputs(["dividend", "divisor"])
        .outputs(["quotient"])
        .handler(|_, (dividend, divisor): (i32, i32)| {
            Ok((dividend.checked_div(divisor).ok_or(StatusCode::BAD_OUT_OF_RANGE)?,))
        })
        .unwrap();
    boiler.method("Wait").async_handler(|_, (): ()| async { Ok(()) }).unwrap();
    let leak = boiler.alarm("Leak").severity(900).confirm().add().unwrap();
    let key = server.space().node_key(temperature.id());
    let past = (0..5).map(|at| {
        let (status, value) = (StatusCode::GOOD, Variant::from(10.0 + f64::from(at)));
        (key.clone(), HistoryValue { source: time(at), server: time(at), status, value })
    });
    store.append(&past.collect::<Vec<_>>()).unwrap();
    Rich { server: server.spawn().unwrap(), boiler, leak }
}

/// Seconds after a noon in the past.
fn time(second: u8) -> UtcTime {
    UtcTime::parse(&format!("2026-03-04T12:00:0{second}Z")).unwrap()
}

const MIRROR: &str = "mirror = \"nsu=urn:example:plant;s=Plant\"";

#[tokio::test(flavor = "multi_thread")]
async fn method_calls_are_forwarded() {
    let rich = rich();
    let stand = Stand::new(&source(&rich.server, MIRROR)).await;
    stand.until_there("up/Boiler/Wait").await;
    let boiler = "nsu=urn:taktwerk:gateway;s=up/Boiler";
    let method = "nsu=urn:taktwerk:gateway;s=up/Boiler/Divide";
    let call = async |inputs: (i32, i32)| stand.client.call::<_, (i32,)>(boiler, method, inputs).await;
    // The nodes exist just before the connection accepts calls.
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let answer = loop {
        match call((7, 2)).await {
            Err(error) if error.status() == StatusCode::BAD_NO_COMMUNICATION => {
                assert!(std::time::Instant::now() < end);
                sleep(20 * MS).await;
            }
            answer => break answer,
        }
    };
    assert_eq!(answer.unwrap(), (3,));
    assert_eq!(call((7, 0)).await.unwrap_err().status(), StatusCode::BAD_OUT_OF_RANGE);
    // Arguments are checked here as there.
    let wrong = stand.client.call::<_, (i32,)>(boiler, method, ("a".to_owned(), 1)).await;
    assert_eq!(wrong.unwrap_err().status(), StatusCode::BAD_INVALID_ARGUMENT);
    stand.client.call::<_, ()>(boiler, "nsu=urn:taktwerk:gateway;s=up/Boiler/Wait", ()).await.unwrap();
    rich.server.stop(Duration::ZERO);
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while call((7, 2)).await.map_err(|error| error.status()) != Err(StatusCode::BAD_NO_COMMUNICATION) {
        assert!(std::time::Instant::now() < end);
        sleep(20 * MS).await;
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_and_events_can_be_disabled() {
    let rich = rich();
    let more = format!("{MIRROR}\nmethods = false\nevents = false");
    let stand = Stand::new(&source(&rich.server, &more)).await;
    stand.value("up/Boiler/Temperature", 1.0).await;
    assert_eq!(stand.read("up/Boiler/Divide").await.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_read_from_the_mirrored_server() {
    use taktwerk::client::{HistoryQuery, HistoryRange};
    let rich = rich();
    let times: Vec<UtcTime> = (0..5).map(time).collect();
    let stand = Stand::new(&source(&rich.server, MIRROR)).await;
    stand.value("up/Boiler/Temperature", 1.0).await;
    let node = "nsu=urn:taktwerk:gateway;s=up/Boiler/Temperature";
    let read = async |range: HistoryRange| {
        let page = stand.client.history(node, HistoryQuery::raw(range)).await.unwrap();
        page.values.iter().map(|value| value.value.as_ref().unwrap().as_f64().unwrap()).collect::<Vec<_>>()
    };
    let all = HistoryRange::between(times[0], UtcTime::parse("2026-03-05T00:00:00Z").unwrap());
    assert_eq!(read(all).await, [10.0, 11.0, 12.0, 13.0, 14.0]);
    assert_eq!(read(HistoryRange::between(times[1], times[3])).await, [11.0, 12.0]);
    assert_eq!(read(HistoryRange::between(times[3], times[0])).await, [13.0, 12.0, 11.0]);
    let before = HistoryRange { start: None, ..HistoryRange::before(times[4], 2) };
    assert_eq!(read(before).await.len(), 2);
    rich.server.stop(Duration::ZERO);
    stand.until("up/Boiler/Temperature", |value| value.status() != StatusCode::GOOD).await;
    let away = stand.client.history(node, HistoryQuery::raw(HistoryRange::between(times[1], times[3]))).await;
    assert_eq!(away.unwrap_err().status(), StatusCode::BAD_NO_COMMUNICATION);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_from_the_node_that_mirrors_their_source() {
    use taktwerk::client::{Item, Update};
    use taktwerk_client::EventQuery;
    let rich = rich();
    let stand = Stand::new(&source(&rich.server, MIRROR)).await;
    stand.until_there("up/Boiler/Temperature").await;
    let boiler = NodeId::string(2, "up/Boiler");
    let mut subscription = stand.client.subscribe(20 * MS).await.unwrap();
    let query = ["EventType", "SourceNode", "SourceName", "Message", "Severity", "Time", "EventId"]
        .iter()
        .fold(EventQuery::new(), |query, name| query.select(name));
    subscription.monitor_item(Item::events(boiler.clone(), query)).await.unwrap();
    let time = time(0);
    // Wait until the gateway monitors events.
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let mut ids = Vec::new();
    let fields = loop {
        assert!(std::time::Instant::now() < end);
        // DeviceFailureEventType, a subtype of SystemEventType.
        let event = rich.boiler.event(2131u32).severity(700).message("Pump 7 has stopped").time(time);
        ids.extend(event.emit());
        let next = tokio::time::timeout(200 * MS, subscription.next()).await;
        if let Ok(Some(Update::Event(_, fields))) = next {
            break fields;
        }
    };
    let expected: [Variant; 6] = [
        NodeId::numeric(0, 2131).into(),
        boiler.into(),
        "Boiler".into(),
        taktwerk_types::LocalizedText::from("Pump 7 has stopped").into(),
        700u16.into(),
        time.into(),
    ];
    assert_eq!(fields[..6], expected);
    assert!(ids.iter().any(|id| fields[6] == Variant::ByteString(id.clone())), "{fields:?}");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alarms_are_shown_acknowledged_and_confirmed_through() {
    let rich = rich();
    rich.leak.set_active_with(true, 900, "The leak detector has tripped");
    let stand = Stand::new(&source(&rich.server, MIRROR)).await;
    let until = async |what: &str, holds: &(dyn Fn() -> bool + Sync)| {
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while !holds() {
            assert!(std::time::Instant::now() < end, "{what}: {:?}", stand.source("up"));
            sleep(20 * MS).await;
        }
    };
    let here = stand.server.conditions();
    let state = || here.all().pop().map(|view| view.state);
    until("it is active here", &|| state().is_some_and(|state| state.active && !state.acked)).await;
    let operators = stand.client.conditions();
    let alarm = operators.list().await.unwrap().pop().unwrap();
    assert_eq!((alarm.name.as_str(), alarm.severity), ("Leak", 900));
    assert_eq!(alarm.message, "The leak detector has tripped");
    assert_eq!(alarm.source, NodeId::string(2, "up/Boiler"));
    operators.acknowledge(&alarm, "seen").await.unwrap();
    let there = || rich.leak.view().unwrap().state;
    until("it is acknowledged there", &|| there().acked).await;
    assert_eq!(there().comment.text.as_str(), "seen");
    rich.leak.set_active_with(false, 900, "dry");
    until("it is inactive here", &|| state().is_some_and(|state| !state.active && !state.confirmed)).await;
    let alarm = operators.list().await.unwrap().pop().unwrap();
    operators.confirm(&alarm, "repaired").await.unwrap();
    until("it is confirmed there", &|| there().confirmed).await;
    // It becomes active again, and is acknowledged there.
    rich.leak.set_active_with(true, 950, "again");
    until("it is active again", &|| state().is_some_and(|state| state.active && !state.acked)).await;
    let view = rich.leak.view().unwrap();
    let operation = Operation::new(Method::Acknowledge).event(view.event_id).comment("seen there").by("olaf");
    rich.leak.operate(&operation).unwrap();
    until("it is acknowledged here", &|| state().is_some_and(|state| state.acked)).await;
    assert_eq!(state().unwrap().comment.text.as_str(), "seen there");
    // An operator acknowledges and confirms at once.
    rich.leak.set_active_with(false, 950, "dry again");
    rich.leak.set_active_with(true, 960, "once more");
    until("it is active once more", &|| state().is_some_and(|state| state.active && !state.acked)).await;
    rich.leak.set_active_with(false, 960, "dry");
    until("it is inactive once more", &|| state().is_some_and(|state| !state.active && !state.acked)).await;
    let alarm = operators.list().await.unwrap().pop().unwrap();
    operators.acknowledge(&alarm, "both").await.unwrap();
    // The state that was listed may be replaced by the one that the other server reports.
    loop {
        let alarm = operators.list().await.unwrap().pop().unwrap();
        match operators.confirm(&alarm, "both").await.map_err(|error| error.status()) {
            Err(StatusCode::BAD_EVENT_ID_UNKNOWN) => {}
            outcome => break outcome.unwrap(),
        }
    }
    until("both are done there", &|| {
        let there = there();
        there.acked && there.confirmed && there.comment.text.as_str() == "both"
    })
    .await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_with_equal_names_stay_distinct() {
    let rich = rich();
    // A second one at the boiler, distinguished by its namespace.
    let second = rich.server.namespace("urn:example:second").node(rich.boiler.id().clone()).unwrap();
    let second = second.alarm("Leak").severity(300).confirm().add().unwrap();
    rich.leak.set_active_with(true, 900, "The first has tripped");
    second.set_active_with(true, 300, "The second has tripped");
    let stand = Stand::new(&source(&rich.server, MIRROR)).await;
    let here = stand.server.conditions();
    let until = async |wanted: [(u16, bool, bool); 2]| {
        let end = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let all = here.all();
            let state = |view: &taktwerk::alarms::ConditionView| {
                (view.state.severity, view.state.active, view.state.acked)
            };
            let mut states: Vec<_> = all.iter().map(state).collect();
            states.sort_unstable();
            if states == wanted {
                break;
            }
            assert!(std::time::Instant::now() < end, "{states:?}: {:?}", stand.source("up"));
            sleep(20 * MS).await;
        }
    };
    until([(300, true, false), (900, true, false)]).await;
    let operators = stand.client.conditions();
    let alarms = operators.list().await.unwrap();
    let alarm = alarms.iter().find(|alarm| alarm.severity == 300).unwrap();
    operators.acknowledge(alarm, "the second").await.unwrap();
    until([(300, true, true), (900, true, false)]).await;
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !second.view().unwrap().state.acked {
        assert!(std::time::Instant::now() < end);
        sleep(20 * MS).await;
    }
    assert!(!rich.leak.view().unwrap().state.acked, "only one of them was acknowledged");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_lost_in_a_queue_are_counted() {
    let other = other("127.0.0.1:0");
    let more = format!("{MIRROR}\nsampling_interval = \"10 ms\"\nqueue_size = 2");
    let text = source(&other.server, &more).replace("\"50 ms\"\nretry", "\"500 ms\"\nretry");
    let stand = Stand::new(&text).await;
    stand.value("up/Boiler/Temperature", 21.5).await;
    assert_eq!(stand.source("up").statistics.dropped, 0);
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let mut number = 100.0;
    while stand.source("up").statistics.dropped == 0 {
        assert!(std::time::Instant::now() < end, "{:?}", stand.source("up"));
        number += 1.0;
        other.temperature.set(number);
        sleep(20 * MS).await;
    }
    // Good without the Overflow bit: the queues of this server's clients have lost nothing.
    stand.value("up/Boiler/Temperature", number).await;
    stand.end().await;
}

#[test]
fn listed_variables_become_tags() {
    let other = other("127.0.0.1:0");
    let mut found = discover::source_of_url(&other.server.url()).unwrap();
    let mut question = Question {
        settings: found.settings.clone(),
        within: MS,
        below: None,
        most: 100,
        stop: Arc::default(),
    };
    let offers = discover::offers(&mut found, &question).unwrap();
    let setpoint = offers.iter().find(|offer| offer.name == "Setpoint").unwrap();
    assert_eq!(setpoint.path, ["Plant", "Boiler"]);
    assert_eq!((setpoint.kind.as_str(), setpoint.value.as_str()), ("Double", "60.0"));
    // The listed tags form a valid configuration.
    let tags: Vec<String> = offers.iter().filter_map(|offer| offer.tag("up")).collect();
    let tags: Vec<&String> = tags.iter().filter(|tag| !tag.contains("second")).collect();
    let text = tags.iter().map(|tag| tag.as_str()).collect::<String>();
    let text = format!("{}{text}", source(&other.server, ""));
    let config = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
    assert_eq!(config.tag_count(), tags.len());
    assert!(config.tag_count() >= 4, "{text}");
    assert!(text.contains("access = \"read-write\""), "{text}");
    question.most = 2;
    assert_eq!(discover::offers(&mut found, &question).unwrap().len(), 2);
    question.below = Some("nsu=urn:example:plant;s=Nothing".to_owned());
    let nothing = discover::offers(&mut found, &question);
    assert!(nothing.as_ref().map_or(true, Vec::is_empty), "{nothing:?}");
}
