//! Events from a server to a client of the library: filters, fields, overflow.

use core::time::Duration;
use taktwerk::client::{EventQuery, Item, Subscription, Update};
use taktwerk::{Client, Node, NodeId, RunningServer, Server, Variant};

const PERIOD: Duration = Duration::from_millis(20);
const SERVER: NodeId = NodeId::numeric(0, 2253);
const SOON: Duration = Duration::from_secs(10);

async fn plant() -> (RunningServer, Node, Client) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let area = server.namespace("urn:plant").object("Area").event_notifier().add().unwrap();
    let pump = area.object("Pump 7").add().unwrap();
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    (server, pump, client)
}

async fn next(subscription: &mut Subscription) -> Vec<Variant> {
    let next = async {
        loop {
            match subscription.next().await.unwrap() {
                Update::Event(_, fields) => return fields,
                _ => continue,
            }
        }
    };
    tokio::time::timeout(SOON, next).await.unwrap()
}

#[tokio::test]
async fn a_client_receives_selected_fields_of_matching_events() {
    let (_server, pump, client) = plant().await;
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let query = EventQuery::new()
        .select("message")
        .select("severity")
        .select("SourceName")
        .select("Reason")
        .filter("severity >= 500 and message like '%pump%' and SourceNode = ns=2;s=Area/Pump 7");
    // A NodeId with a space is invalid in a condition; the error names the position.
    assert!(query.is_err());
    let query = EventQuery::new()
        .select("message")
        .select("severity")
        .select("SourceName")
        .select("Reason")
        .filter("severity >= 500 and message like '%pump%' and SourceName = 'Pump 7'")
        .unwrap();
    // At the area above the pump, and at the Server Object.
    subscription.monitor_item(Item::events("ns=2;s=Area".parse().unwrap(), query.clone())).await.unwrap();
    subscription.monitor_item(Item::events(SERVER, query)).await.unwrap();
    pump.base_event().severity(499).message("the pump is warm").emit().unwrap();
    pump.base_event().severity(900).message("something else").emit().unwrap();
    pump.base_event()
        .severity(700)
        .message("the pump has stopped")
        .field("Reason", "no power")
        .emit()
        .unwrap();
    for _ in 0..2 {
        let fields = next(&mut subscription).await;
        let Variant::LocalizedText(message) = &fields[0] else { panic!("{fields:?}") };
        assert_eq!(message.text.as_str(), "the pump has stopped");
        let expected: [Variant; 3] = [700u16.into(), "Pump 7".into(), "no power".into()];
        assert_eq!(fields[1..], expected);
    }
}

#[tokio::test]
async fn the_location_of_a_source_can_be_a_condition() {
    let (_server, pump, client) = plant().await;
    let valve = pump.object("Valve").add().unwrap();
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    // BaseObjectType, HasComponent: the pump has the valve as a component, the valve has none.
    let query = EventQuery::new().select("SourceName");
    let query = query.filter("relatedto (i=58, relatedto (i=58, i=58, i=47, 1), i=47, 1)");
    let area = Item::events(SERVER, query.unwrap());
    assert!(subscription.monitor_item(area).await.is_ok());
    let query = EventQuery::new().select("SourceName").filter("relatedto (i=58, i=58, i=47, 1)").unwrap();
    subscription.monitor_item(Item::events(SERVER, query)).await.unwrap();
    valve.base_event().message("stuck").emit().unwrap();
    pump.base_event().message("stopped").emit().unwrap();
    assert_eq!(next(&mut subscription).await, [Variant::from("Pump 7")]);
    let query = EventQuery::new().select("SourceName").filter("inview i=85").unwrap();
    subscription.monitor_item(Item::events(SERVER, query)).await.unwrap();
    valve.base_event().message("stuck").emit().unwrap();
    pump.base_event().message("stopped").emit().unwrap();
    // The Objects folder is not a View: only the other item reports.
    assert_eq!(next(&mut subscription).await, [Variant::from("Pump 7")]);
}

#[tokio::test]
async fn a_full_queue_reports_lost_events() {
    let (_server, pump, client) = plant().await;
    let mut subscription = client.subscribe(Duration::from_millis(500)).await.unwrap();
    let query = EventQuery::new().select("EventType").select("message");
    subscription.monitor_item(Item::events(SERVER, query).queue(10)).await.unwrap();
    for number in 0..30 {
        pump.base_event().message(&*format!("{number}")).emit().unwrap();
    }
    let first = next(&mut subscription).await;
    // EventQueueOverflowEventType
    assert_eq!(first[0], NodeId::numeric(0, 3035).into());
    for number in 20..30 {
        let Variant::LocalizedText(message) = &next(&mut subscription).await[1] else { panic!() };
        assert_eq!(message.text.as_str(), number.to_string());
    }
}

#[tokio::test]
async fn no_event_is_raised_without_monitoring_clients() {
    let (_server, pump, _client) = plant().await;
    assert_eq!(pump.base_event().message("nobody hears this").emit(), None);
}

#[tokio::test]
async fn progress_and_shutdown_are_events() {
    let (server, pump, client) = plant().await;
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let query = EventQuery::new().select("Progress").select("Context").select("SystemState");
    let query = query.filter("oftype i=11436 or oftype i=11446").unwrap();
    subscription.monitor_item(Item::events(SERVER, query)).await.unwrap();
    pump.progress("priming", 250).emit().expect("somebody watches");
    assert_eq!(next(&mut subscription).await, [100u16.into(), "priming".into(), Variant::Empty]);
    let stopping = tokio::task::spawn_blocking(move || server.stop(SOON));
    // ServerState Shutdown.
    assert_eq!(next(&mut subscription).await[2], 4i32.into());
    drop((subscription, client));
    stopping.await.unwrap();
}
