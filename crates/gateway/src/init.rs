//! Configuration files to begin with: they run as they are.

use crate::connect::{host_and_port, target};
use core::fmt::Write;

/// The sources that a file is for.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Modbus devices, as `host[:port]`.
    pub modbus: Vec<String>,
}

const HEAD: &str = r#"# A gateway: taktwerk serve --config FILE
#
# It listens on this machine only, and lets everybody on it read. `taktwerk config init server.toml` writes a file with
# all settings of the server: certificates, users, roles, limits, audit.

[server]
application_name = "Taktwerk gateway"
bind = ["127.0.0.1:4840"]

[security]
# For clients on other machines: remove this line, list their addresses under bind, add users, and trust certificates.
none = true

[identities]
anonymous = true

# What clients may do with the tags below.
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
# scale = 0.1                    # the register says tenths of a degree
# units = "°C"
# range = [0.0, 300.0]
# access = "read-write"          # default: "read"
"#;

impl Wishes {
    /// Whether nothing was wished for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.modbus.is_empty()
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
        let wishes = Wishes { modbus: vec!["plc7".to_owned(), "[::1]:1502".to_owned()] };
        let text = wishes.file().unwrap();
        let file = ConfigFile::parse(Path::new("g.toml"), &text).unwrap();
        assert!(!file.config().server.simulated_plant && file.is_loopback());
        let gateway = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
        assert_eq!(gateway.sources.len(), wishes.modbus.len());
        assert!(gateway.sources.iter().all(|source| !source.tags.is_empty()));
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
        GatewayConfig::parse(
            Path::new("g.toml"),
            &all.replace("source = \"modbus-2\"\nname = \"Temp", "source = \"modbus-2\"\nname = \"Temp2"),
        )
        .unwrap();
        assert!(Wishes { modbus: vec!["a b".to_owned()] }.file().is_err());
    }
}
