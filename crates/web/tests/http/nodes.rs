//! Nodes, values, history and alarms.

use crate::plant::plant;
use serde_json::{Value, json};
use std::time::Duration;
use taktwerk::UtcTime;

#[test]
fn nodes_are_browsed_read_and_written_with_the_visitors_rights() {
    let plant = plant(|_| {});
    let objects = plant.get("/api/browse").json();
    let boiler =
        objects["children"].as_array().unwrap().iter().find(|child| child["name"] == "Boiler").unwrap();
    let all = objects["children"].as_array().unwrap();
    assert_eq!((&objects["hasMore"], &objects["next"]), (&json!(false), &json!(null)));
    // In parts: with the continuation point, and by position after the server has released it.
    let mut parts = Vec::new();
    let mut after = String::new();
    loop {
        let part = plant.get(&format!("/api/browse?limit=1&keep=true{after}")).json();
        parts.extend(part["children"].as_array().unwrap().clone());
        if part["hasMore"] == false {
            break;
        }
        let forgotten = "0011223344556677";
        let next = match parts.len() {
            1 => part["next"].as_str().unwrap(),
            2 => forgotten,
            _ => part["next"].as_str().unwrap_or(forgotten),
        };
        after = format!("&from={}&next={next}", part["from"]);
    }
    assert_eq!(&parts, all);
    let first = plant.get("/api/browse?limit=1&keep=true").json();
    let next = first["next"].as_str().unwrap();
    let far = plant.get(&format!("/api/browse?limit=1&from={}&next={next}", u64::MAX)).json();
    assert_eq!((&far["children"][0], &far["from"]), (&all[1], &json!(u64::MAX)), "it does not overflow");
    let end = plant.get(&format!("/api/browse?from={}", objects["from"])).json();
    assert_eq!((&end["children"], &end["hasMore"]), (&json!([]), &json!(false)));
    let path = format!("/api/browse?node={}", boiler["id"].as_str().unwrap().replace(' ', "%20"));
    let child = plant.get(&path).json()["children"][0].clone();
    assert_eq!((&child["name"], &child["class"]), (&json!("Temperature"), &json!("Variable")));
    let id = child["id"].as_str().unwrap();
    let node = plant.get(&format!("/api/node?node={id}")).json();
    assert_eq!(
        (&node["value"][0], &node["high"], &node["isWritable"]),
        (&json!(21.5), &json!(150.0), &json!(true))
    );
    let csrf = format!("X-CSRF-Token: {}\r\n", plant.csrf());
    let body = json!({ "node": id, "value": "48,25" }).to_string();
    assert_eq!(plant.send("POST", "/api/write", &csrf, &body).status, 200);
    assert_eq!(plant.temperature.get().unwrap(), 48.25);
    let wrong = json!({ "node": id, "value": "warm" }).to_string();
    let refused = plant.send("POST", "/api/write", &csrf, &wrong);
    assert!(
        refused.status == 400 && refused.body.contains("is not a value of the type Double"),
        "{}",
        refused.body
    );
    for node in ["i=999999", "nonsense", ""] {
        assert_eq!(plant.get(&format!("/api/node?node={node}")).status, 400, "{node}");
    }
    let by_uri = plant.get("/api/node?node=nsu=urn:web-test;s=Boiler/Temperature");
    assert_eq!((by_uri.status, &by_uri.json()["id"]), (200, &json!(id)));
    let unknown = plant.get("/api/node?node=nsu=urn:nothing;s=Boiler/Temperature");
    assert!(unknown.status == 400 && unknown.body.contains("urn:nothing"), "{}", unknown.body);
}

#[test]
fn more_values_than_points_are_shown_as_averages() {
    let plant = plant(|_| {});
    let second = 10_000_000;
    let start = UtcTime::from_ticks(134_000_000_000_000_000);
    for at in 0..40 {
        plant.temperature.set_at(f64::from(at), UtcTime::from_ticks(start.ticks() + i64::from(at) * second));
    }
    let from = (start.ticks() - 116_444_736_000_000_000) / 10_000;
    let node = plant.temperature.id().to_string();
    let of = |points: u32| {
        let path = format!("/api/history?node={node}&from={from}&to={}&points={points}", from + 40_000);
        let answer = plant.get(&path);
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str::<Value>(&answer.body).unwrap()
    };
    // Recorded within a second.
    let count = |found: &Value| found["values"].as_array().unwrap().len();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while count(&of(1_000)) < 40 && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    let raw = of(1_000);
    assert!(raw["isRaw"] == true && count(&raw) >= 40, "{raw}");
    let averages = of(10);
    assert!(averages["isRaw"] == false && count(&averages) == 10, "{averages}");
}

#[test]
fn alarms_are_listed_and_operators_act_on_them() {
    let plant = plant(|_| {});
    let list = || plant.get("/api/alarms").json();
    assert_eq!(list(), json!({ "alarms": [], "count": 0 }));
    plant.temperature.set(120.0);
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let alarm = loop {
        if let Some(alarm) = list()["alarms"].as_array().unwrap().first() {
            break alarm.clone();
        }
        assert!(std::time::Instant::now() < end, "the alarm does not appear");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(
        (&alarm["severity"], &alarm["active"], &alarm["acked"]),
        (&json!(700), &json!(true), &json!(false))
    );
    assert!(alarm["message"].as_str().unwrap().contains("High limit"), "{alarm}");
    let token = format!("x-csrf-token: {}\r\n", plant.csrf());
    let act = |headers: &str, body: Value| plant.send("POST", "/api/alarms", headers, &body.to_string());
    let acknowledge =
        json!({ "action": "acknowledge", "id": alarm["id"], "event": alarm["event"], "comment": "seen" });
    assert_eq!(act("", acknowledge.clone()).status, 403, "without the page's token");
    let other = json!({ "action": "acknowledge", "id": alarm["id"], "event": "00", "comment": "" });
    assert_eq!(act(&token, other).status, 400, "of another event");
    let answer = act(&token, acknowledge.clone());
    assert_eq!(answer.status, 200, "{}", answer.body);
    let now = list()["alarms"][0].clone();
    assert_eq!((&now["acked"], &now["comment"]), (&json!(true), &json!("seen")));
    assert_eq!(act(&token, acknowledge).status, 400, "it is acknowledged already");
    let shelve = |minutes: Value| json!({ "action": "shelve", "id": alarm["id"], "minutes": minutes });
    assert_eq!(act(&token, shelve(json!(-1))).status, 400);
    assert_eq!(act(&token, shelve(json!(5))).status, 200);
    assert_eq!(list()["alarms"][0]["shelving"], "for a time");
    let unshelve = json!({ "action": "unshelve", "id": alarm["id"] });
    assert_eq!(act(&token, unshelve).status, 200);
    assert_eq!(list()["alarms"][0]["shelving"], Value::Null);
    assert_eq!(act(&token, json!({ "action": "explode", "id": "i=1" })).status, 422);
}
