//! Values, their changes and their history.

use crate::plant::plant;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
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
}

#[test]
fn changes_arrive_as_events() {
    let plant = plant(|_| {});
    let stream = plant.live();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = || -> Value {
        let line = lines.find(|line| line.starts_with("data: ")).unwrap();
        serde_json::from_str(&line[6..]).unwrap()
    };
    let items = next();
    assert_eq!(items[0], Value::Null);
    assert!(items[1].as_str().unwrap().contains("NodeIdUnknown"), "{items}");
    let first = next();
    assert_eq!(first["changes"], json!([[0, 21.5]]));
    assert!(first["time"].as_i64().is_some_and(|time| time > 1_700_000_000_000), "{first}");
    plant.temperature.set(22.5);
    assert_eq!(next()["changes"], json!([[0, 22.5]]));
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
