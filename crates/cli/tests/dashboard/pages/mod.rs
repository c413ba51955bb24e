//! Servers with a dashboard, and its user in a browser.

#![allow(dead_code)] // each test uses some of it

use crate::devtools::Devtools;
use crate::lines;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");

/// A server that ends with the test.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, and the address of its dashboard.
pub(crate) fn serve(arguments: &[&str]) -> (Server, String) {
    // A release build is used for measurements.
    let program = std::env::var_os("TAKTWERK_PROGRAM").unwrap_or_else(|| BINARY.into());
    let mut child = Command::new(program)
        .args(["serve", "--exit-with-stdin"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines::of(&mut child);
    let server = Server(child);
    let url = loop {
        let line = lines.recv_timeout(Duration::from_secs(60)).unwrap();
        if let Some((_, url)) = line.split_once("dashboard: ") {
            break url.trim().to_owned();
        }
    };
    (server, url)
}

/// Adds a user.
pub(crate) fn add_olga(folder: &Path) {
    let (users, password) = (folder.join("users.toml"), folder.join("password"));
    std::fs::write(&password, "a long password\n").unwrap();
    let mut add = Command::new(BINARY);
    add.args(["user", "add", "olga", "--role", "SecurityAdmin", "--role", "Operator", "--file"]).arg(&users);
    assert!(add.arg("--password-file").arg(&password).status().unwrap().success());
}

/// Logs on. The button is enabled when the page's script has run.
pub(crate) fn log_on(page: &mut Devtools) {
    page.wait_for("(button => button?.disabled === false && button.textContent === 'Log on')(document.getElementById('logbutton'))");
    page.evaluate(
        "document.getElementById('login-user').value = 'olga';
         document.getElementById('login-password').value = 'a long password';
         document.getElementById('login-form').requestSubmit()",
    );
    page.wait_for("document.getElementById('logbutton').textContent === 'Log off'");
}

/// A gateway with open permissions, an alarm, and working and failing sources and destinations.
pub(crate) const EVERYTHING: &str = r#"[server]
bind = ["127.0.0.1:0"]
application_name = "Packing line 3"
simulated_plant = true
[security]
none = true
[identities]
anonymous = true
users_file = "users.toml"
[permissions]
unspecified = "open"
[web]
bind = "127.0.0.1:0"
[history]
file = "history.db"
[pubsub]
configuration = "line.toml"
[[source]]
name = "boiler-house"
type = "simulation"
interval = "200 ms"
[[source]]
name = "plc-7"
type = "modbus"
address = "127.0.0.1:9"
[[tag]]
source = "boiler-house"
name = "Temperature"
path = "Line 1/Oven"
signal = "sine"
units = "°C"
range = [0, 200]
historize = true
[[tag]]
source = "boiler-house"
name = "Level of the tank behind the second filling station"
path = "Line 1/Tank"
signal = "walk"
[[tag]]
source = "plc-7"
name = "Pressure"
address = "holding:0"
[[destination]]
name = "day-files"
type = "file"
folder = "out"
[[destination]]
name = "cloud"
type = "mqtt"
url = "mqtt://127.0.0.1:1"
[[alarms.alarm]]
variable = "nsu=urn:taktwerk:demo-plant;s=Plant/Cycles"
name = "Running"
high = 5.0
severity = 950
"#;

/// A PubSub configuration for UDP on this machine: a connection with a group and a writer.
pub(crate) const LINE: &str = r#"[[data-set]]
name = "oven"
fields = [{ name = "temperature", type = "Double", node = "ns=3;s=Line 1/Oven/Temperature" }]
[[connection]]
name = "udp-of-line-3"
publisher-id = { uint16 = 2234 }
url = "opc.udp://127.0.0.1:14841"
[[connection.writer-group]]
name = "fast"
id = 1
interval = 500.0
writers = [{ name = "oven", id = 1, data-set = "oven" }]
"#;

/// A server with [`EVERYTHING`], and the address of its dashboard.
pub(crate) fn everything(folder: &Path) -> (Server, String) {
    let config = folder.join("server.toml");
    std::fs::write(&config, EVERYTHING).unwrap();
    std::fs::write(folder.join("line.toml"), LINE).unwrap();
    add_olga(folder);
    serve(&["--config", config.to_str().unwrap()])
}
