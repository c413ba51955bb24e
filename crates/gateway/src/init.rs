//! Sample configuration files that run unchanged.

use crate::connect::{host_and_port, target};
use crate::offer::quoted;
use core::fmt::Write;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};

/// The sources for which a file is created.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Modbus devices, as `host[:port]`.
    pub modbus: Vec<String>,
    /// MQTT brokers, as `mqtt://host[:port]`.
    pub mqtt: Vec<String>,
    /// OPC UA servers, as `opc.tcp://host[:port]`.
    pub opcua: Vec<String>,
    /// JSON over HTTP, as `http://host[:port]/path` or with `https`.
    pub http: Vec<String>,
    /// Files that are read whole, by their paths.
    pub files: Vec<String>,
    /// Files to which lines are appended, by their paths.
    pub logs: Vec<String>,
    /// Recordings in CSV.
    pub recordings: Vec<Recording>,
}

/// A recording in CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    path: String,
    delimiter: char,
    columns: Vec<String>,
}

/// Most columns of a recording that become tags.
const COLUMNS_MAX: usize = 1000;
/// Longest first line of a recording, in bytes.
const HEAD_LEN_MAX: u64 = 1 << 20;
/// Usual names of the time column.
const TIME_COLUMNS: [&str; 5] = ["time", "timestamp", "datetime", "date", "ts"];

impl Recording {
    /// Reads the column names of a CSV file.
    ///
    /// # Errors
    /// Why the file cannot be played.
    pub fn read(path: &str) -> Result<Self, String> {
        let fail = |error: std::io::Error| format!("{path}: {error}");
        let file = taktwerk_config::file::open_regular(std::path::Path::new(path)).map_err(fail)?;
        let mut head = String::new();
        BufReader::new(file.take(HEAD_LEN_MAX)).read_line(&mut head).map_err(fail)?;
        let head = head.trim_start_matches('\u{feff}');
        let delimiter = [',', ';', '\t'].into_iter().max_by_key(|delimiter| {
            // If several delimiters are equally frequent, prefer the usual one.
            (head.matches(*delimiter).count(), *delimiter == ',')
        });
        let delimiter = delimiter.unwrap_or(',');
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(u8::try_from(delimiter).unwrap_or(b','))
            .from_reader(head.as_bytes());
        let columns = reader.records().next().and_then(Result::ok).unwrap_or_default();
        let columns: Vec<String> =
            columns.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        if columns.is_empty() || columns.len() > COLUMNS_MAX {
            return Err(format!(
                "{path}: its first line names {} columns; 1 to {COLUMNS_MAX} can be tags",
                columns.len()
            ));
        }
        Ok(Self { path: path.to_owned(), delimiter, columns })
    }

    fn section(&self, name: &str) -> String {
        let is_time = |column: &&String| TIME_COLUMNS.contains(&column.to_lowercase().as_str());
        let time = self.columns.iter().find(is_time);
        let mut text = format!(
            "\n[[source]]\nname = \"{name}\"\ntype = \"replay\"\nfile = {}\ninterval = \"1 s\"\n",
            quoted(&self.path)
        );
        match self.delimiter {
            ';' => text.push_str("delimiter = \";\"\n"),
            '\t' => text.push_str("delimiter = \"tab\"\n"),
            _ => {}
        }
        match time {
            Some(column) => {
                let _ = writeln!(text, "time_column = {}", quoted(column));
            }
            None => text
                .push_str("# time_column = \"time\"         # without it, one row is played per interval\n"),
        }
        let mut names = HashSet::new();
        for column in self.columns.iter().filter(|column| Some(*column) != time) {
            // Names become parts of paths. Two columns may become equal when characters are replaced.
            let mut tag = column.replace(|char: char| char.is_control() || char == '/', "_");
            while !names.insert(tag.clone()) {
                tag.push('_');
            }
            let _ = writeln!(text, "\n[[tag]]\nsource = \"{name}\"\nname = {}", quoted(&tag));
            if tag != *column {
                let _ = writeln!(text, "column = {}", quoted(column));
            }
        }
        text
    }
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
# ReceiveEvents and Call: to see alarms and to acknowledge them.
Operator = ["Browse", "Read", "Write", "ReadHistory", "ReceiveEvents", "Call"]
Engineer = ["Browse", "Read", "Write", "ReadHistory", "ReceiveEvents", "Call"]

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

const HTTP: &str = r#"
[[source]]
name = "NAME"
type = "http"
url = URL
interval = "1 s"
# token_file = "NAME.token"

# All that comes, as a text. One [[tag]] for each value is better:
[[tag]]
source = "NAME"
name = "Answer"
json = "$"
type = "String"

# [[tag]]
# source = "NAME"
# name = "Power"
# json = "$.emeters[0].power"
# units = "W"
"#;

const FILE: &str = r#"
[[source]]
name = "NAME"
type = "TYPE"
file = PATH

# The whole text. With a pattern, the value is what matches: its group `value`, or its first group.
[[tag]]
source = "NAME"
name = "Text"
type = "String"

# [[tag]]
# source = "NAME"
# name = "Force"
# pattern = 'force=(?<value>[0-9.]+)'
# units = "kN"
"#;

/// A file with these sections that runs unchanged.
#[must_use]
pub fn file_of(sections: &str) -> String {
    format!("{HEAD}\n{sections}")
}

impl Wishes {
    /// Whether no source was requested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.modbus.is_empty()
            && self.mqtt.is_empty()
            && self.opcua.is_empty()
            && self.http.is_empty()
            && self.files.is_empty()
            && self.logs.is_empty()
            && self.recordings.is_empty()
    }

    /// The text of the file.
    ///
    /// # Errors
    /// What is wrong with an address.
    pub fn file(&self) -> Result<String, String> {
        let mut text = HEAD.to_owned();
        for (index, address) in self.modbus.iter().enumerate() {
            let name = format!("modbus-{}", index + 1);
            let way = if address.starts_with('/') {
                // Most devices leave the factory with these settings of the line.
                let device = quoted(address);
                format!("device = {device}\nbaud = 19_200\nparity = \"even\"        # or \"odd\", \"none\"")
            } else {
                let (host, port) = host_and_port(address, 502).ok_or_else(|| {
                    format!(
                        "{address:?} is no address; write HOST or HOST:PORT, such as plc7:502, or the path of a serial \
                         line, such as /dev/ttyUSB0"
                    )
                })?;
                format!("address = {}", quoted(&target(&host, port)))
            };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[[source]]\nname = \"{name}\"\ntype = \"modbus\"\n{way}\nunit = 1\ninterval = \"1 s\"\n\
                 \n[[tag]]\nsource = \"{name}\"\nname = \"Holding registers\"\naddress = \"holding:0\"\ncount = 10\n"
            );
            text.push_str(&MODBUS_TAGS.replace("SOURCE", &name));
        }
        for (index, url) in self.mqtt.iter().enumerate() {
            if url.contains('@') {
                return Err(
                    "the URL must not contain a user; set user and password_file in the file instead"
                        .to_owned(),
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
        for (index, url) in self.http.iter().enumerate() {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            let address = rest.map(|rest| rest.split('/').next().unwrap_or_default());
            let is_plain = url.chars().all(|char| char.is_ascii_graphic() && char != '@');
            if !is_plain || address.and_then(|address| host_and_port(address, 80)).is_none() {
                return Err(format!("{url:?} is no URL; write http://HOST/PATH or https://HOST/PATH"));
            }
            text.push_str(&HTTP.replace("NAME", &format!("http-{}", index + 1)).replace("URL", &quoted(url)));
        }
        for (kind, paths) in [("file", &self.files), ("log", &self.logs)] {
            for (index, path) in paths.iter().enumerate() {
                let section = FILE.replace("NAME", &format!("{kind}-{}", index + 1)).replace("TYPE", kind);
                let format = "format = \"text\"                  # or \"json\", \"csv\"";
                text.push_str(&section.replace("PATH", &format!("{}\n{format}", quoted(path))));
            }
        }
        for (index, recording) in self.recordings.iter().enumerate() {
            text.push_str(&recording.section(&format!("replay-{}", index + 1)));
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
    fn the_written_file_is_a_valid_configuration() {
        let wishes = Wishes {
            modbus: vec!["plc7".to_owned(), "[::1]:1502".to_owned(), "/dev/ttyUSB0".to_owned()],
            mqtt: vec!["mqtt://broker".to_owned()],
            opcua: vec!["opc.tcp://plc:4841/path".to_owned()],
            http: vec!["https://meter.example.com/status?all=1".to_owned()],
            files: vec!["/proc/loadavg".to_owned()],
            logs: vec!["C:\\logs\\press.log".to_owned()],
            recordings: Vec::new(),
        };
        let text = wishes.file().unwrap();
        let file = ConfigFile::parse(Path::new("g.toml"), &text).unwrap();
        assert!(!file.config().server.simulated_plant && file.is_loopback());
        let gateway = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
        assert_eq!(gateway.sources.len(), 8);
        assert_eq!(gateway.sources[2].adapter.describe(), "Modbus RTU /dev/ttyUSB0");
        // The settings in comments must be valid too.
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
        // The sample tags of several devices have the same path.
        let all = [2, 3].into_iter().fold(all, |all, number| {
            let own = format!("source = \"modbus-{number}\"\nname = \"Temp");
            all.replace(&own, &format!("{own}{number} "))
        });
        let all = all.replace("security = \"none\"", "security = \"best\"");
        // The sample with a user requires TLS.
        let all = all.replace("mqtt://broker", "mqtts://broker");
        GatewayConfig::parse(Path::new("g.toml"), &all).unwrap();
        for wrong in ["a b", "mqtt://", "opc.tcp://", "mqtt://u:p@h", "opc.tcp://h\"", ""] {
            let list = || vec![wrong.to_owned()];
            assert!(Wishes { modbus: list(), ..Wishes::default() }.file().is_err(), "{wrong}");
            assert!(Wishes { mqtt: list(), ..Wishes::default() }.file().is_err(), "{wrong}");
            assert!(Wishes { opcua: list(), ..Wishes::default() }.file().is_err(), "{wrong}");
            assert!(Wishes { http: list(), ..Wishes::default() }.file().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_columns_of_a_recording_become_tags() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oven.csv");
        let file = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Recording::read(path.to_str().unwrap())
        };
        let recording =
            file("\u{feff}Timestamp;Temperature;\"Flow; l/min\";Flow; l_min\n2026-11-25T00:00:00Z;1;2;3;4\n");
        let wishes = Wishes { recordings: vec![recording.unwrap()], ..Wishes::default() };
        let text = wishes.file().unwrap();
        let gateway = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
        assert_eq!((gateway.sources.len(), gateway.tag_count()), (1, 4), "{text}");
        assert!(text.contains("time_column = \"Timestamp\"") && text.contains("delimiter = \";\""), "{text}");
        assert!(text.contains("column = \"Flow; l/min\""), "{text}");
        // Without times, one row per interval.
        let wishes = Wishes { recordings: vec![file("a,b\n1,2\n").unwrap()], ..Wishes::default() };
        let text = wishes.file().unwrap();
        assert!(!text.contains("\ntime_column"), "{text}");
        assert_eq!(GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap().tag_count(), 2);
        assert!(file("").is_err());
        assert!(Recording::read(folder.path().join("none.csv").to_str().unwrap()).is_err());
    }
}
