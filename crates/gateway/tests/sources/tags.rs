//! Settings of a tag other than its value: its alarm, and its roles.

use crate::device::Device;
use crate::stand::{MS, Stand};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk::alarms::ConditionView;
use taktwerk_gateway::GatewayConfig;
use taktwerk_types::{NodeId, StatusCode};
use tokio::time::sleep;

fn source(device: &Device) -> String {
    format!(
        "[[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"{}\"\ninterval = \"20 ms\"\nretry = \"50 ms\"\n",
        device.address
    )
}

fn tag(name: &str, address: &str, more: &str) -> String {
    format!("[[tag]]\nsource = \"plc\"\nname = \"{name}\"\naddress = \"{address}\"\n{more}")
}

/// Waits until the alarms that operators should see are these, by source name.
async fn until(stand: &Stand, expected: &[(&str, u16)]) -> Vec<ConditionView> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let all = stand.server.conditions().retained();
        let seen: Vec<_> = all.iter().map(|view| (&*view.source_name, view.state.severity)).collect();
        if seen == expected {
            return all;
        }
        assert!(Instant::now() < end, "{all:?}");
        sleep(10 * MS).await;
    }
}

fn apply(stand: &mut Stand, text: &str) -> Vec<String> {
    let config = GatewayConfig::parse(Path::new("g.toml"), text).unwrap().unwrap();
    tokio::task::block_in_place(|| stand.gateway.apply(config)).unwrap().changed
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_is_removed_with_its_tag() {
    let device = Device::start(10);
    let set = |device: &Arc<Device>, at: usize, word: u16| device.holding.lock().unwrap()[at] = word;
    set(&device, 0, 50);
    let high = "alarm_high = 80\nalarm_high_high = 95\nalarm_deadband = 1\nalarm_severity = 400\nalarm_confirm = true\n";
    let normal = "alarm_normal = true\nalarm_severity = 300\nalarm_name = \"Door\"\n";
    let text = [
        source(&device),
        tag("Level", "holding:0", high),
        tag("Closed", "coil:0", normal),
        tag("Plain", "holding:1", ""),
    ];
    device.coils.lock().unwrap()[0] = true;
    let mut stand = Stand::new(&text.concat()).await;
    stand.value("plc/Level", 50u16).await;
    stand.value("plc/Closed", true).await;
    assert!(until(&stand, &[]).await.is_empty());
    set(&device, 0, 90);
    let alarm = until(&stand, &[("plc/Level", 400)]).await.remove(0);
    assert_eq!((&*alarm.name, alarm.confirms), ("LevelAlarm", true));
    assert_eq!(alarm.source, NodeId::string(2, "plc/Level"));
    // Clients see it, with the limits.
    let listed = stand.client.conditions().list().await.unwrap().remove(0);
    assert_eq!((listed.limit.as_str(), listed.severity), ("High", 400));
    let limit = stand.client.find(listed.condition_id.clone(), "HighLimit").await.unwrap();
    assert_eq!(stand.client.read_value::<f64>(limit).await.unwrap(), 80.0);
    device.coils.lock().unwrap()[0] = false;
    let both = until(&stand, &[("plc/Level", 400), ("plc/Closed", 300)]).await;
    assert_eq!(&*both[1].name, "Door");
    // With another limit the alarm is replaced, and the value is within the limit.
    let next = text.concat().replace("alarm_high = 80", "alarm_high = 91");
    assert_eq!(apply(&mut stand, &next), ["plc"]);
    stand.value("plc/Level", 90u16).await;
    until(&stand, &[("plc/Closed", 300)]).await;
    set(&device, 0, 92);
    until(&stand, &[("plc/Level", 400), ("plc/Closed", 300)]).await;
    // Without the tags no alarms remain.
    assert_eq!(apply(&mut stand, &[source(&device), tag("Plain", "holding:1", "")].concat()), ["plc"]);
    until(&stand, &[]).await;
    assert!(stand.server.conditions().all().is_empty());
    assert!(!stand.server.space().contains(&listed.condition_id));
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_control_access_to_a_tag() {
    let device = Device::start(10);
    device.holding.lock().unwrap()[3] = 7;
    let text = [
        source(&device),
        tag("Hidden", "holding:0", "roles = [\"Operator\"]\nrange = [0, 10]\n"),
        tag(
            "Seen",
            "holding:3",
            "access = \"read-write\"\nroles = \"Engineer\"\nread_roles = [\"Anonymous\"]\n",
        ),
        tag("Written", "holding:4", "access = \"read-write\"\nroles = \"Anonymous\"\n"),
        tag("Open", "holding:5", "access = \"read-write\"\n"),
    ];
    let stand = Stand::new(&text.concat()).await;
    stand.value("plc/Open", 0u16).await;
    // The client is anonymous.
    assert_eq!(stand.read("plc/Hidden").await.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    let range = stand.client.find("nsu=urn:taktwerk:gateway;s=plc/Hidden", "EURange").await;
    assert!(range.is_err(), "{range:?}");
    stand.value("plc/Seen", 7u16).await;
    assert_eq!(stand.write("plc/Seen", 1u16).await, Err(StatusCode::BAD_USER_ACCESS_DENIED));
    stand.write("plc/Written", 5u16).await.unwrap();
    stand.value("plc/Written", 5u16).await;
    stand.write("plc/Open", 6u16).await.unwrap();
    stand.end().await;
    let wrong = text.concat().replace("\"Engineer\"", "\"Enginer\"");
    let error = GatewayConfig::parse(Path::new("g.toml"), &wrong).unwrap_err().to_string();
    assert!(error.contains("there is no role \"Enginer\"; did you mean \"Engineer\"?"), "{error}");
    let own = format!("[[role]]\nname = \"Enginer\"\n{wrong}");
    assert!(GatewayConfig::parse(Path::new("g.toml"), &own).is_ok());
}
