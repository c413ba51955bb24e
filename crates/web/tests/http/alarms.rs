//! Alarms and dialogs.

use crate::plant::plant;
use serde_json::{Value, json};
use std::time::Duration;

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
    // The time of the alarm, not that of the comment.
    assert!(alarm["since"].is_number() && alarm["since"] == now["since"], "{alarm} {now}");
    assert_eq!(now["dialog"], Value::Null);
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

#[test]
fn operators_respond_to_dialogs() {
    let plant = plant(|_| {});
    let boiler = plant.running.namespace("urn:web-test").object("Kiln").add().unwrap();
    let dialog = boiler.dialog("Question", "Open the valve?", &["Yes", "No"]).add().unwrap();
    dialog.ask();
    let list = || plant.get("/api/alarms").json();
    let asked = list()["alarms"][0].clone();
    assert_eq!(asked["dialog"], json!({ "prompt": "Open the valve?", "responses": ["Yes", "No"] }));
    let token = format!("x-csrf-token: {}\r\n", plant.csrf());
    let act = |headers: &str, body: Value| plant.send("POST", "/api/alarms", headers, &body.to_string());
    let respond = |response: Value| json!({ "action": "respond", "id": asked["id"], "response": response });
    let comment =
        json!({ "action": "comment", "id": asked["id"], "event": asked["event"], "comment": "soon" });
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(act(&token, comment).status, 200);
    let commented = list()["alarms"][0].clone();
    assert_eq!((&commented["comment"], &commented["since"]), (&json!("soon"), &asked["since"]));
    assert_eq!(act("", respond(json!(1))).status, 403, "without the page's token");
    assert_eq!(act(&token, respond(Value::Null)).status, 400);
    assert_eq!(act(&token, respond(json!(2))).status, 400, "there is no such response");
    assert_eq!(dialog.response(), None);
    let answer = act(&token, respond(json!(1)));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(dialog.response(), Some(1));
    assert_eq!(list(), json!({ "alarms": [], "count": 0 }));
    assert_eq!(act(&token, respond(json!(0))).status, 400, "it is answered already");
}
