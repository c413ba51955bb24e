//! Users, their rights and their passwords.

use crate::plant::plant;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use taktwerk::UtcTime;
use taktwerk_server::authorization::Authorization;

#[test]
fn users_of_the_server_log_on_and_off_and_guessing_is_slowed_down() {
    let plant = plant(|settings| settings.anonymous = false);
    assert_eq!(plant.get("/api/browse").status, 401);
    assert_eq!(plant.get("/api/session").json()["isOpen"], json!(false));
    let login = |password: &str| {
        plant.send("POST", "/api/login", "", &json!({ "user": "ada", "password": password }).to_string())
    };
    assert_eq!(login("wrong").status, 401);
    let entered = login("secret");
    assert_eq!(entered.status, 200, "{}", entered.body);
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(line.contains("httponly") && line.contains("samesite=strict"), "{line}");
    let cookie = format!("Cookie: other=1; {}\r\n", line.split(';').next().unwrap());
    let session = plant.send("GET", "/api/session", &cookie, "").json();
    assert_eq!((&session["user"], &session["isAdministrator"]), (&json!("ada"), &json!(false)));
    assert_eq!(plant.send("GET", "/api/browse", &cookie, "").status, 200);
    for path in ["/api/log", "/api/certificates", "/api/sources"] {
        assert_eq!(plant.send("GET", path, &cookie, "").status, 403, "{path}");
    }
    let csrf = entered.json()["csrf"].as_str().unwrap().to_owned();
    assert_eq!(plant.send("POST", "/api/logout", &cookie, "{}").status, 403);
    let off = plant.send("POST", "/api/logout", &format!("{cookie}X-CSRF-Token: {csrf}\r\n"), "{}");
    assert_eq!(off.status, 204);
    assert_eq!(plant.send("GET", "/api/browse", &cookie, "").status, 401);
    let statuses: Vec<u16> = (0..12).map(|_| login("wrong").status).collect();
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    // Other users behind the same proxy are not limited.
    let other = json!({ "user": "bob", "password": "secret" }).to_string();
    assert_eq!(plant.send("POST", "/api/login", "", &other).status, 200);
}

#[test]
fn administrators_see_the_sources() {
    let plant = plant(|_| {});
    assert_eq!(plant.get("/api/sources").status, 403);
    assert_eq!(plant.get("/api/session").json()["hasSources"], json!(false));
    let login = json!({ "user": "eve", "password": "secret" }).to_string();
    let entered = plant.send("POST", "/api/login", "", &login);
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    assert_eq!(plant.send("GET", "/api/session", &cookie, "").json()["hasSources"], json!(true));
    let sources = plant.send("GET", "/api/sources", &cookie, "").json();
    let source = &sources["sources"][0];
    assert_eq!((&source["name"], &source["tags"], &source["lost"]), (&json!("plc"), &json!(3), &json!(1)));
    assert_eq!(source["lastAnswer"], json!(1_700_000_000_123_i64));
    assert_eq!((&source["isConnected"], &source["lastError"]), (&json!(false), &Value::Null));
    assert_eq!(source["incomplete"], json!("too many nodes"));
    assert_eq!(
        (&source["invalid"], &source["missed"], &source["writeErrors"]),
        (&json!(4), &json!(5), &json!(6))
    );
    let destination = &sources["destinations"][0];
    assert_eq!(
        (&destination["parked"], &destination["queuedBytes"], &destination["queueBytesMax"]),
        (&json!(1), &json!(300), &json!(1000))
    );
    assert_eq!((&destination["name"], &destination["queued"]), (&json!("archive"), &json!(7)));
    assert_eq!((&destination["dropped"], &destination["lastError"]), (&json!(2), &json!("disk full")));
    assert_eq!(
        (&destination["oldest"], &destination["lastSent"]),
        (&json!(1_700_000_000_456_i64), &Value::Null)
    );
}

#[test]
fn administrator_rights_follow_the_server() {
    let plant = plant(|_| {});
    let login = |user: &str| {
        plant.send("POST", "/api/login", "", &json!({ "user": user, "password": "secret" }).to_string())
    };
    // Independent of the roles of the name.
    let refused = login("new");
    assert_eq!(refused.status, 403, "{}", refused.head);
    assert!(refused.body.contains("has to be changed") && !refused.head.contains("set-cookie"));
    let entered = login("eve");
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    let get = |path: &str| plant.send("GET", path, &cookie, "");
    assert_eq!((get("/api/log").status, get("/api/certificates").status), (200, 200));
    assert!(get("/api/session").json()["roles"].to_string().contains("ConfigureAdmin"));
    let shared = plant.running.shared();
    shared.set_authorization(Authorization::open(), UtcTime::from_unix(Duration::from_secs(1_700_000_000)));
    let mut left = 500;
    while get("/api/log").status != 403 {
        std::thread::sleep(Duration::from_millis(10));
        left -= 1;
        assert!(left > 0, "eve is no longer an administrator");
    }
    assert_eq!(get("/api/certificates").status, 403);
    assert!(!get("/api/session").json()["roles"].to_string().contains("ConfigureAdmin"));
}

#[test]
fn a_required_password_change_ends_the_visit() {
    let plant = plant(|_| {});
    plant.temperature.set(120.0);
    let entered =
        plant.send("POST", "/api/login", "", &json!({ "user": "eve", "password": "secret" }).to_string());
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    let get = |path: &str| plant.send("GET", path, &cookie, "");
    let administrated = ["/api/log", "/api/certificates", "/api/sources", "/api/alarms"];
    assert_eq!(administrated.map(|path| get(path).status), [200; 4]);
    // The session is closed, and the new one may only change the password.
    plant.users.is_eve_limited.store(true, Ordering::Relaxed);
    plant.running.shared().trust_list_changed();
    let mut left = 500;
    while get("/api/alarms").status == 200 {
        std::thread::sleep(Duration::from_millis(10));
        left -= 1;
        assert!(left > 0, "the session has ended");
    }
    for _ in 0..20 {
        assert_eq!(administrated.map(|path| get(path).status), [403; 4]);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The dashboard has the old password. Repeated attempts would lock out the user.
#[test]
fn a_changed_password_is_tried_once_and_ends_the_visit() {
    let plant = plant(|_| {});
    let login = |password: &str| {
        plant.send("POST", "/api/login", "", &json!({ "user": "bob", "password": password }).to_string())
    };
    let entered = login("secret");
    let line = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
    let user = || plant.send("GET", "/api/session", &cookie, "").json()["user"].clone();
    assert_eq!(user(), json!("bob"));
    plant.users.has_bob_changed.store(true, Ordering::Relaxed);
    plant.running.shared().trust_list_changed();
    let mut left = 500;
    while user() != Value::Null {
        std::thread::sleep(Duration::from_millis(10));
        left -= 1;
        assert!(left > 0, "bob is logged off");
    }
    assert_eq!(plant.users.refused.load(Ordering::Relaxed), 1);
    assert_eq!(login("another").status, 200);
}
