//! `taktwerk lab peers check`: starts every installed peer and connects to it.
//!
//! Each check runs this program's own executable, so it tests what users run.

use crate::failure::Failure;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use taktwerk_lab::latency::Summary;
use taktwerk_lab::peers::{self, Peer, PeerOptions, Role};
use taktwerk_lab::program::{Program, Running};
use taktwerk_load::result::{Brokered, Document, Part, Requests, RoundTrips, Subscribed};

/// Number of variables of a checked server.
const VARIABLES: u32 = 20;
/// Number of devices of a checked gateway.
const DEVICES: u32 = 2;
/// Interval at which values change.
const UPDATE: Duration = Duration::from_millis(200);
/// Timeout of one check on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A check and its result.
pub(super) struct Check {
    pub(super) name: String,
    pub(super) result: Result<String, String>,
}

impl Check {
    /// The result as JSON.
    pub(super) fn document(&self) -> Value {
        json!({ "check": self.name, "ok": self.result.is_ok(), "detail": self.result.as_ref().unwrap_or_else(|it| it) })
    }
}

/// Runs all checks of a peer.
pub(super) fn run(peer: &'static Peer, directory: &Path) -> Result<Vec<Check>, Failure> {
    let devices = if peer.role == Role::Gateway { field_devices()? } else { Vec::new() };
    let options = PeerOptions { variables: VARIABLES, update: UPDATE, devices, ..PeerOptions::default() };
    let running = match peers::start(peer, directory, &options) {
        Ok(running) => running,
        Err(error) => return Ok(vec![Check { name: "starts".to_owned(), result: Err(error.to_string()) }]),
    };
    let exe = std::env::current_exe()
        .map_err(|error| Failure::Environment(format!("cannot find this program: {error}")))?;
    let mut checks = vec![Check { name: "starts".to_owned(), result: Ok(running.url().to_owned()) }];
    let mut add = |name: &str, result: Result<String, String>| {
        checks.push(Check { name: name.to_owned(), result });
    };
    match peer.role {
        Role::OpcUa => opc_ua(&exe, &running, &mut add),
        Role::Mqtt => mqtt(&exe, &running, &mut add),
        Role::Gateway => gateway(&exe, &running, &mut add),
    }
    let pid = running.pid();
    add(
        "ends when asked",
        match running.stop() {
            Ok(()) if Path::new(&format!("/proc/{pid}")).exists() => {
                Err(format!("process {pid} is still running"))
            }
            Ok(()) => Ok(format!("process {pid} has ended")),
            Err(error) => Err(error.to_string()),
        },
    );
    Ok(checks)
}

/// Modbus TCP devices for a gateway, with as many registers as a checked server has variables.
#[cfg(feature = "gateway")]
fn field_devices() -> Result<Vec<SocketAddr>, Failure> {
    let registers = u16::try_from(VARIABLES).unwrap_or(u16::MAX);
    taktwerk_generator::gateway::field_devices(DEVICES, registers, UPDATE)
        .map_err(|error| Failure::Environment(format!("cannot start the devices: {error}")))
}

#[cfg(not(feature = "gateway"))]
fn field_devices() -> Result<Vec<SocketAddr>, Failure> {
    let what = "checking a gateway needs a `taktwerk` that was built with the feature `gateway`";
    Err(Failure::Environment(what.to_owned()))
}

fn ours(exe: &Path, arguments: &[&str]) -> Result<Value, String> {
    let output =
        Program::new(exe).args(arguments).arg("--json").run(LIMIT).map_err(|error| error.to_string())?;
    let document = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    // On a busy machine a load may be late (exit code 5). Only what was received matters here.
    let is_late = output.status.code() == Some(5) && document.is_object();
    if output.status.success() || is_late {
        return Ok(document);
    }
    Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no reason given").trim().to_owned())
}

/// Runs a load and returns a part of its result.
fn measured<P: Part>(exe: &Path, arguments: &[&str]) -> Result<P, String> {
    Document::from(ours(exe, arguments)?).part().map_err(|error| error.to_string())
}

fn opc_ua(exe: &Path, running: &Running, add: &mut impl FnMut(&str, Result<String, String>)) {
    let (url, first) = (running.url(), running.first_signal());
    add("endpoints", ours(exe, &["endpoints", url]).map(|_| "told".to_owned()));
    add("browse", ours(exe, &["browse", url, "i=85"]).map(|_| "Objects".to_owned()));
    let value = || -> Result<f64, String> {
        let document = ours(exe, &["read", url, first])?;
        number(&document).ok_or_else(|| format!("no number in {document}"))
    };
    add("read", value().map(|value| format!("{first} = {value}")));
    // The value of the first signal is the number of updates.
    let changes = value().and_then(|before| {
        let tries = 20;
        for _ in 0..tries {
            std::thread::sleep(UPDATE);
            let after = value()?;
            if after > before {
                return Ok(format!("{before} → {after}"));
            }
        }
        Err(format!("it stays {before} for {tries} updates"))
    });
    add("changes", changes);
    add(
        "reads of all",
        measured(exe, &["bench", "read", url, "--batch", "20", "-n", "50", "--warmup", "0"]).and_then(
            |Requests { requests, bad, failed, .. }| match requests {
                50.. if bad == 0 => Ok(format!("{requests} requests")),
                _ => Err(format!("{requests} of 50 requests, {failed} failed, {bad} bad values")),
            },
        ),
    );
    let there_and_back =
        ["bench", "roundtrip", url, "-n", "20", "--payload", "10000", "-I", "10", "--warmup", "0"];
    add(
        "values come back",
        measured(exe, &there_and_back).and_then(|RoundTrips { roundtrip: Summary { count, .. } }| {
            if count >= 20 {
                Ok(format!("{count} of 10 kB"))
            } else {
                Err(format!("{count} of 20 came back"))
            }
        }),
    );
    let subscribe = ["bench", "subscribe", url, "--items", "20", "-I", "200", "-d", "3s", "--warmup", "1s"];
    add(
        "subscription",
        measured(exe, &subscribe).and_then(|it: Subscribed| {
            // 15 updates of 20 items. How many of them are lost is not checked here.
            let (notifications, bad) = (it.notifications, it.progress.bad);
            if notifications >= 40 && bad == 0 {
                Ok(format!("{notifications} notifications"))
            } else {
                Err(format!("only {notifications} notifications, {bad} bad values"))
            }
        }),
    );
}

fn gateway(exe: &Path, running: &Running, add: &mut impl FnMut(&str, Result<String, String>)) {
    let namespace = running.note("NAMESPACE").unwrap_or("2");
    let value = |node: &str| -> Result<f64, String> {
        let document = ours(exe, &["read", running.url(), node])?;
        number(&document).ok_or_else(|| format!("no number in {document}"))
    };
    for device in 0..DEVICES {
        // The last register of the device. If it can be read, all before it exist too.
        let node = format!("ns={namespace};s=d{device}/{}", VARIABLES - 1);
        let end = Instant::now() + LIMIT;
        let mut before = Err("it was not read yet".to_owned());
        let changes = loop {
            // A gateway that has just started has no values yet.
            let now = value(&node);
            match (&before, &now) {
                (Ok(before), Ok(now)) if before != now => break Ok(format!("{node}: {before} → {now}")),
                _ if Instant::now() > end => {
                    let said = now.map_or_else(|error| error, |value| format!("it stays {value}"));
                    break Err(format!("{node} does not change in {} s: {said}", LIMIT.as_secs()));
                }
                _ => before = now,
            }
            std::thread::sleep(UPDATE);
        };
        add(&format!("values of device {device}"), changes);
    }
}

fn mqtt(exe: &Path, running: &Running, add: &mut impl FnMut(&str, Result<String, String>)) {
    for version in ["3.1.1", "5"] {
        let url = if version == "5" { running.note("V5").unwrap_or(running.url()) } else { running.url() };
        for qos in ["0", "1", "2"] {
            let load = ["bench", "mqtt", url, "--qos", qos, "--mqtt", version, "-n", "50", "--warmup", "0"];
            add(
                &format!("MQTT {version}, QoS {qos}"),
                measured(exe, &load).and_then(|it| came_back(&it, 50)),
            );
        }
    }
    let fan = [
        "bench",
        "mqtt",
        running.url(),
        "--pattern",
        "fan",
        "-c",
        "10",
        "-n",
        "10",
        "--warmup",
        "0",
        "--qos",
        "1",
    ];
    add("fan-out and fan-in", measured(exe, &fan).and_then(|it| came_back(&it, 10)));
}

fn came_back(&Brokered { messages, missing, .. }: &Brokered, wanted: u64) -> Result<String, String> {
    if messages >= wanted && missing == 0 {
        return Ok(format!("{messages} came back"));
    }
    Err(format!("{messages} of {wanted} came back, {missing} did not"))
}

/// The first value in a document of `read`.
fn number(document: &Value) -> Option<f64> {
    document.as_array()?.first()?.get("Value")?.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents() {
        assert_eq!(number(&json!([{ "NodeId": "i=1", "Value": 17.5 }])), Some(17.5));
        assert_eq!(number(&json!([{ "NodeId": "i=1", "StatusCode": { "Code": 1 } }])), None);
        assert!(came_back(&Brokered { messages: 50, missing: 0, ..Brokered::default() }, 50).is_ok());
        assert!(came_back(&Brokered { messages: 49, missing: 0, ..Brokered::default() }, 50).is_err());
        assert!(came_back(&Brokered { messages: 50, missing: 1, ..Brokered::default() }, 50).is_err());
    }
}
