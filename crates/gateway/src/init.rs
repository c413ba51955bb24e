//! Configuration files to begin with: they run as they are.

use crate::connect::{host_and_port, target};
use core::fmt::Write;

/// The sources that a file is for.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Modbus devices, as `host[:port]`.
    pub modbus: Vec<String>,
    /// MQTT brokers, as `mqtt://host[:port]`.
    pub mqtt: Vec<String>,
    /// OPC UA servers, as `opc.tcp://host[:port]`.
    pub opcua: Vec<String>,
}

const HEAD: &str = r#"# A gateway: taktwerk serve --config FILE
#
# It listens on loopback only, where all clients can read. `taktwerk config init server.toml` writes a file with
# all settings of the server: certificates, users, roles, limits, audit.

[server]
application_name = "Taktwerk gateway"
bind = ["127.0.0.1:4840"]

[security]
# For clients on other machines: remove this line, list their addresses under bind, add users, and trust certificates.
none = true

[identities]
anonymous = true

# Permissions of clients for the tags below.
[[namespace]]
uri = "urn:taktwerk:gateway"
[namespace.permissions]
Anonymous = ["Browse", "Read"]
AuthenticatedUser = ["Browse", "Read"]
Operator = ["Browse", "Read", "Write", "ReadHistory"]
Engineer = ["Browse", "Read", "Write", "ReadHistory"]

[web]
# A dashboard with live values, and /metrics for Prometheus:
# bind = "127.0.0.1:8080"

[gateway]
namespace = "urn:taktwerk:gateway"
"#;

const MODBUS_TAGS: &str = r#"
# One [[tag]] for each value. Addresses count from 0: "holding:100" is register 40101 of most manuals. See docs/gateway.md.
# [[tag]]
# source = "SOURCE"
# name = "Temperature"
# path = "Line 1/Oven"           # folders; default: the name of the source
# address = "holding:100"        # or "input:7", "coil:0", "discrete:12", "holding:3.5" for a bit
# format = "int16"               # int16 … uint64, float32, float64, string (with length), bit
# scale = 0.1                    # the register has tenths of a degree
# units = "°C"
# range = [0.0, 300.0]
# access = "read-write"          # default: "read"
"#;

const MQTT: &str = r##"
[[source]]
name = "NAME"
type = "mqtt"
url = "URL"
version = "3.1.1"                # or "5"
nodes_max = 1000                 # variables that messages may add
# user = "gateway"
# password_file = "mqtt.password"

# All topics of the broker: a variable for each topic and for each value of a JSON object.
[[tag]]
source = "NAME"
name = "{last}"
path = "NAME/{parent}"
topic = "#"
expand = true

# [[tag]]
# source = "NAME"
# name = "Oven temperature"
# topic = "plant/oven/state"
# json = "$.temperature"
# type = "Double"
# units = "°C"
"##;

const OPCUA: &str = r#"
[[source]]
name = "NAME"
type = "opcua"
url = "URL"
# Nodes to mirror, with everything below them. i=85 is the Objects folder; `taktwerk browse` shows nodes.
mirror = ["i=85"]
publishing_interval = "500 ms"
security = "none"                # "best" takes certificates from the folder pki
# pki = "pki-gateway"
# user = "gateway"
# password_file = "opcua.password"
"#;

/// A file with these sections that runs as it is.
#[must_use]
pub fn file_of(sections: &str) -> String {
    format!("{HEAD}\n{sections}")
}

impl Wishes {
    /// Whether nothing was wished for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.modbus.is_empty() && self.mqtt.is_empty() && self.opcua.is_empty()
    }

    /// The text of the file.
    ///
    /// # Errors
    /// What is wrong with an address.
    pub fn file(&self) -> Result<String, String> {
        let mut text = HEAD.to_owned();
        for (index, address) in self.modbus.iter().enumerate() {
            let (host, port) = host_and_port(address, 502).ok_or_else(|| {
                format!("{address:?} is no address; write HOST or HOST:PORT, such as plc7:502")
            })?;
            let name = format!("modbus-{}", index + 1);
            let address = target(&host, port);
            // Writing into a text does not fail.
            let _ = write!(
                text,
                "\n[[source]]\nname = \"{name}\"\ntype = \"modbus\"\naddress = \"{address}\"\nunit = 1\ninterval = \"1 s\"\n\
                 \n[[tag]]\nsource = \"{name}\"\nname = \"Holding registers\"\naddress = \"holding:0\"\ncount = 10\n"
            );
            text.push_str(&MODBUS_TAGS.replace("SOURCE", &name));
        }
        for (index, url) in self.mqtt.iter().enumerate() {
            if url.contains('@') {
                return Err(
                    "users do not belong into the URL; write user and password_file into the file".to_owned()
                );
            }
            let address = url.strip_prefix("mqtt://").or_else(|| url.strip_prefix("mqtts://"));
            if address.and_then(|address| host_and_port(address.trim_end_matches('/'), 1883)).is_none() {
                return Err(format!(
                    "{url:?} is no URL of a broker; write mqtt://HOST:1883 or mqtts://HOST:8883"
                ));
            }
            text.push_str(&MQTT.replace("NAME", &format!("mqtt-{}", index + 1)).replace("URL", url));
        }
        for (index, url) in self.opcua.iter().enumerate() {
            let address =
                url.strip_prefix("opc.tcp://").map(|rest| rest.split('/').next().unwrap_or_default());
            let is_plain =
                url.chars().all(|char| char.is_ascii_graphic() && !matches!(char, '"' | '\\' | '@'));
            if !is_plain || address.and_then(|address| host_and_port(address, 4840)).is_none() {
                return Err(format!("{url:?} is no URL of an OPC UA server; write opc.tcp://HOST:4840"));
            }
            text.push_str(&OPCUA.replace("NAME", &format!("opcua-{}", index + 1)).replace("URL", url));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatewayConfig;
    use std::path::Path;
    use taktwerk_config::ConfigFile;

    #[test]
    fn what_is_written_is_a_configuration() {
        let wishes = Wishes {
            modbus: vec!["plc7".to_owned(), "[::1]:1502".to_owned()],
            mqtt: vec!["mqtt://broker".to_owned()],
            opcua: vec!["opc.tcp://plc:4841/path".to_owned()],
        };
        let text = wishes.file().unwrap();
        let file = ConfigFile::parse(Path::new("g.toml"), &text).unwrap();
        assert!(!file.config().server.simulated_plant && file.is_loopback());
        let gateway = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
        assert_eq!(gateway.sources.len(), 4);
        // The settings in comments exist, too.
        let all: String = text
            .lines()
            .map(|line| {
                match line.strip_prefix("# ").filter(|rest| rest.starts_with('[') || rest.contains(" = ")) {
                    Some(setting) => format!("{setting}\n"),
                    None => format!("{line}\n"),
                }
            })
            .collect();
        ConfigFile::parse(Path::new("g.toml"), &all).unwrap();
        let second = "source = \"modbus-2\"\nname = \"Temp";
        let all =
            all.replace(second, &format!("{second}2 ")).replace("security = \"none\"", "security = \"best\"");
        // The sample with a user is for a machine with TLS.
        let all = all.replace("mqtt://broker", "mqtts://broker");
        GatewayConfig::parse(Path::new("g.toml"), &all).unwrap();
        for wrong in ["a b", "mqtt://", "opc.tcp://", "mqtt://u:p@h", "opc.tcp://h\"", ""] {
            let list = || vec![wrong.to_owned()];
            assert!(Wishes { modbus: list(), ..Wishes::default() }.file().is_err(), "{wrong}");
            assert!(Wishes { mqtt: list(), ..Wishes::default() }.file().is_err(), "{wrong}");
            assert!(Wishes { opcua: list(), ..Wishes::default() }.file().is_err(), "{wrong}");
        }
    }
}
