//! Alarms from a server of the library to a client of the library.

use core::time::Duration;
use taktwerk::client::{ConditionEvent, TableChange};
use taktwerk::{Client, RunningServer, Server, StatusCode, Variable};

const SOON: Duration = Duration::from_secs(20);
const PERIOD: Duration = Duration::from_millis(50);

struct Plant {
    server: RunningServer,
    temperature: Variable<f64>,
    client: Client,
}

async fn plant() -> Plant {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let boiler = server.namespace("urn:plant").object("Boiler").event_notifier().add().unwrap();
    let temperature = boiler.variable("Temperature", 20.0).add().unwrap();
    temperature.alarm().high(80.0).high_high(95.0).deadband(1.0).confirm().add().unwrap();
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    Plant { server, temperature, client }
}

async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, wait).await.unwrap_or_else(|_| panic!("{what}: not within {SOON:?}"))
}

#[tokio::test]
async fn an_operator_follows_an_alarm_to_its_end() {
    let Plant { server: _server, temperature, client } = plant().await;
    let conditions = client.conditions();
    let mut list = within("the list", conditions.watch(PERIOD)).await.unwrap();
    assert!(list.sorted().is_empty());
    temperature.set(96.0);
    assert_eq!(within("the alarm", list.next()).await, Some(TableChange::Changed));
    let alarm: ConditionEvent = list.sorted()[0].clone();
    assert_eq!((alarm.severity, alarm.active, alarm.acked), (800, Some(true), Some(false)));
    assert_eq!(
        (&*alarm.source_name, &*alarm.name, &*alarm.limit),
        ("Boiler/Temperature", "LevelAlarm", "HighHigh")
    );
    conditions.acknowledge(&alarm, "on my way").await.unwrap();
    within("the acknowledgement", list.next()).await;
    let acknowledged = list.sorted()[0].clone();
    assert_eq!((acknowledged.acked, acknowledged.confirmed), (Some(true), Some(false)));
    assert_eq!(acknowledged.comment, "on my way");
    let again = conditions.acknowledge(&alarm, "").await.unwrap_err();
    assert_eq!(again.status(), StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED);
    // A later client lists the current conditions.
    let listed = within("a list", conditions.list()).await.unwrap();
    assert_eq!(listed.as_slice(), core::slice::from_ref(&acknowledged));
    conditions.shelve(&alarm.condition_id, Some(Duration::from_secs(60))).await.unwrap();
    within("shelving", list.next()).await;
    assert!(list.sorted()[0].suppressed_or_shelved);
    conditions.unshelve(&alarm.condition_id).await.unwrap();
    within("unshelving", list.next()).await;
    temperature.set(20.0);
    within("back to normal", list.next()).await;
    assert_eq!(list.sorted()[0].active, Some(false));
    conditions.confirm(&acknowledged, "repaired").await.unwrap();
    assert_eq!(within("the end", list.next()).await, Some(TableChange::Removed));
    assert!(list.sorted().is_empty());
}

#[tokio::test]
async fn the_server_lists_and_acknowledges_in_its_own_process() {
    let Plant { server, temperature, client: _client } = plant().await;
    let conditions = server.conditions();
    assert_eq!((conditions.retained().len(), conditions.all().len()), (0, 1));
    temperature.set(85.0);
    let found = within("the alarm", async {
        loop {
            if let Some(view) = conditions.retained().into_iter().next() {
                return view;
            }
            tokio::time::sleep(PERIOD).await;
        }
    })
    .await;
    assert_eq!(&*found.state.message, "Boiler/Temperature: 85 is beyond the High limit 80");
    conditions.acknowledge(&found, "ann", "seen").unwrap();
    let now = conditions.retained().remove(0);
    assert!(now.state.acked && &*now.state.user == "ann");
    // The earlier event identifies the state, which is acknowledged already.
    let again = conditions.acknowledge(&found, "bob", "");
    assert_eq!(again, Err(StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED));
}

#[tokio::test]
async fn states_are_saved_in_a_file() {
    let folder = std::env::temp_dir().join(format!("taktwerk-alarms-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("alarms.bin");
    let start = || {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().alarm_file(&path).build().unwrap();
        let leak = server.namespace("urn:plant").object("Boiler").add().unwrap().alarm("Leak").add().unwrap();
        (server.spawn().unwrap(), leak)
    };
    let (server, leak) = start();
    leak.set_active(true, "The leak detector has tripped");
    let view = leak.view().unwrap();
    server.conditions().acknowledge(&view, "ann", "it drips").unwrap();
    server.stop(Duration::from_millis(100));
    let (server, leak) = start();
    let after = leak.view().unwrap();
    assert!(after.state.active && after.state.acked);
    assert_eq!(after.state.comment.text.as_str(), "it drips");
    assert_eq!(&*after.state.message, "The leak detector has tripped");
    server.stop(Duration::from_millis(100));
    // A file with other content is rejected with an error.
    std::fs::write(&path, "this is something else").unwrap();
    let refused = Server::builder().bind("127.0.0.1:0").anonymous().alarm_file(&path).build();
    assert!(refused.unwrap_err().to_string().contains("invalid file of saved alarm states"));
    // An empty file, as left by a crash, is treated as new.
    std::fs::write(&path, "").unwrap();
    let (server, leak) = start();
    assert!(!leak.view().unwrap().state.active);
    // Another server cannot use the file at the same time.
    let refused = Server::builder().bind("127.0.0.1:0").anonymous().alarm_file(&path).build();
    assert!(refused.unwrap_err().to_string().contains("alarms.bin is used by this process"));
    server.stop(Duration::from_millis(100));
    // Nor can it through a link, also after the first one has saved states through that link.
    let linked = folder.join("link.bin");
    std::os::unix::fs::symlink(&path, &linked).unwrap();
    let start = || Server::builder().bind("127.0.0.1:0").anonymous().alarm_file(&linked).build();
    let first = start().unwrap();
    first.namespace("urn:plant").object("Boiler").add().unwrap().alarm("Leak").add().unwrap();
    first.spawn().unwrap().stop(Duration::from_millis(100));
    assert!(std::fs::symlink_metadata(&linked).unwrap().is_symlink());
    let second = start().unwrap();
    for path in [&path, &linked] {
        let refused = Server::builder().bind("127.0.0.1:0").anonymous().alarm_file(path).build();
        assert!(refused.unwrap_err().to_string().contains("is used by this process"));
    }
    drop(second);
    // Neither is read to its end.
    for (name, make) in [("pipe", "mkfifo \"$0\""), ("endless", "ln -s /dev/zero \"$0\"")] {
        let path = folder.join(name);
        assert!(std::process::Command::new("sh").args(["-c", make]).arg(&path).status().unwrap().success());
        let refused = Server::builder().bind("127.0.0.1:0").anonymous().alarm_file(&path).build();
        assert!(refused.unwrap_err().to_string().contains("name a regular file"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_dialog_is_answered_by_a_client() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant").object("Plant").event_notifier().add().unwrap();
    let dialog = plant.dialog("Stop", "May it be stopped?", &["Yes", "No"]).add().unwrap();
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    assert_eq!(dialog.response(), None);
    dialog.ask();
    let asked = within("the question", client.conditions().list()).await.unwrap().remove(0);
    assert_eq!((&*asked.message, asked.active), ("May it be stopped?", None));
    let respond = taktwerk::client::calls::respond(&asked.condition_id, 1);
    client.conditions().call("respond to", respond.clone()).await.unwrap();
    assert_eq!(dialog.response(), Some(1));
    let again = client.conditions().call("respond to", respond).await.unwrap_err();
    assert_eq!(again.status(), StatusCode::BAD_DIALOG_NOT_ACTIVE);
}

#[tokio::test]
async fn groups_mark_the_first_alarm_and_suppress_its_consequences() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let pump = server.namespace("urn:plant").object("Pump").event_notifier().add().unwrap();
    let [power, flow, pressure] = ["Power", "Flow", "Pressure"].map(|name| pump.alarm(name).add().unwrap());
    let maintenance = pump.variable("Maintenance", false).add().unwrap();
    pump.alarm_group("Trip").members([&power, &flow]).first_in_group().add().unwrap();
    let cause = pump.alarm_group("No power").members([&power]).variable(&maintenance);
    cause.suppresses([&flow, &pressure]).add().unwrap();
    pump.alarm_metrics(10).unwrap();
    assert!(pump.alarm_group("Nothing").add().unwrap_err().to_string().contains("add at least one"));
    power.set_active(true, "The fuse has blown");
    flow.set_active(true, "Nothing flows");
    let state = |alarm: &taktwerk::Alarm| alarm.view().unwrap().state;
    assert_eq!((state(&power).first_in_group, state(&flow).first_in_group), (Some(true), Some(false)));
    assert!(state(&flow).suppressed && !state(&power).suppressed);
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    within("the suppression of an alarm that did not change", async {
        while !state(&pressure).suppressed {
            tokio::time::sleep(PERIOD).await;
        }
    })
    .await;
    let counted = within("the metrics", async {
        loop {
            let value = client.read("ns=2;s=Pump/AlarmMetrics/AlarmCount").await.unwrap().value;
            if value == Some(2u32.into()) {
                return value;
            }
            tokio::time::sleep(PERIOD).await;
        }
    })
    .await;
    assert!(counted.is_some());
    let shown = client.read("ns=2;s=Pump/Power/FirstInGroupFlag").await.unwrap();
    assert_eq!(shown.value, Some(true.into()));
}
