//! Values from an MQTT broker, 3.1.1 and 5.
//!
//! - [`topic`]: filters and templates; [`payload`]: what a message means; `client`: the library, both versions alike;
//!   `session`: one connection.

mod client;
pub mod payload;
mod session;
pub mod topic;

use crate::connect::host_and_port;
use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::json_path::JsonPath;
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::tag::{Access, Tag};
use crate::value::Kind;
use core::time::Duration;
use futures_util::future::BoxFuture;
use payload::Reader;
use std::collections::HashMap;
use std::path::PathBuf;
use taktwerk_types::BuiltInType;
use topic::Filter;

/// A broker.
#[derive(Debug)]
pub struct Mqtt {
    host: String,
    port: u16,
    is_tls: bool,
    ca_file: Option<PathBuf>,
    user: Option<(String, PathBuf)>,
    client_id: String,
    is_v5: bool,
    qos: u8,
    payload_max: usize,
    keep_alive: Duration,
    maps: Vec<Map>,
    /// Positions of variables that were added while it runs, by the tag, the topic and the path within the message.
    added: HashMap<(usize, String, String), Option<usize>>,
}

/// A tag: the topics that it is fed from.
#[derive(Debug)]
struct Map {
    tag: Tag,
    filter: Filter,
    topic: String,
    reader: Reader,
    /// `None` if variables are added for each topic.
    position: Option<usize>,
    /// Where writes go, as what, and whether the broker keeps them.
    write: Option<(String, String, bool)>,
}

impl Mqtt {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &SourceSettings) -> Result<Self, Mistake> {
        let (line, url) = fields.required("url", "\"mqtt://broker:1883\"")?;
        let (is_tls, rest) = match (url.strip_prefix("mqtt://"), url.strip_prefix("mqtts://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, ""),
        };
        let address = host_and_port(rest.trim_end_matches('/'), if is_tls { 8883 } else { 1883 });
        let Some((host, port)) = address else {
            let hint = "write \"mqtt://host:1883\", or \"mqtts://host:8883\" for TLS; the user has a setting of its own";
            return Err(fields.mistake_in(line, "url", "this is no URL of a broker", hint));
        };
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let user = match (fields.text("user")?, fields.text("password_file")?) {
            (Some(user), Some(file)) => Some((user, folder.join(file))),
            (None, None) => None,
            _ => {
                return Err(
                    fields.mistake("a user needs a name and a password", "set user and password_file")
                );
            }
        };
        let is_open = fields.flag("allow_plaintext_password")?.unwrap_or(false);
        let is_local = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        if user.is_some() && !is_tls && !is_local && !is_open {
            let hint = "use mqtts://, or set allow_plaintext_password = true where nobody can listen";
            return Err(fields.mistake("the password would cross the network readably", hint));
        }
        let client_id = fields.text("client_id")?;
        Ok(Self {
            host,
            port,
            is_tls,
            ca_file: fields.text("ca_file")?.map(|file| folder.join(file)),
            user,
            client_id: client_id
                .unwrap_or_else(|| format!("taktwerk-{}-{}", settings.name, std::process::id())),
            is_v5: fields.word("version", &[("3.1.1", false), ("5", true)])?.unwrap_or(false),
            qos: fields.integer("qos", 0, 2)?.unwrap_or(0) as u8,
            payload_max: fields.integer("payload_max", 1, 64 << 20)?.unwrap_or(256 << 10) as usize,
            keep_alive: fields
                .span("keep_alive")?
                .unwrap_or(Duration::from_secs(10))
                .max(Duration::from_secs(1)),
            maps: Vec::new(),
            added: HashMap::new(),
        })
    }

    fn target(&self) -> String {
        crate::connect::target(&self.host, self.port)
    }
}

impl Adapter for Mqtt {
    fn describe(&self) -> String {
        format!("MQTT {} {}", if self.is_v5 { "5" } else { "3.1.1" }, self.target())
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, position: usize) -> Result<Placement, Mistake> {
        let (line, topic) = fields.required("topic", "\"plant/oven/temperature\"")?;
        let Some(filter) = Filter::parse(&topic) else {
            let hint = "+ stands for one whole level, # for all levels at the end: \"plant/+/temperature\", \"plant/#\"";
            return Err(fields.mistake_in(line, "topic", format!("{topic:?} is no filter of topics"), hint));
        };
        let path = |fields: &mut Fields, key: &'static str| -> Result<Option<JsonPath>, Mistake> {
            let Some((line, text)) = fields.text_at(key)? else { return Ok(None) };
            let hint = "write the names from the outside in, such as \"$.machine.axes[0].position\"";
            JsonPath::parse(&text)
                .map(Some)
                .ok_or_else(|| fields.mistake_in(line, key, format!("{text:?} is no path"), hint))
        };
        let reader = Reader {
            value: path(fields, "json")?,
            time: path(fields, "time")?,
            expand: fields.flag("expand")?.unwrap_or(false),
        };
        let is_many = filter.has_wildcards() || reader.expand;
        let write_topic = fields.text("write_topic")?;
        let write_payload = fields.text("write_payload")?;
        let retain = fields.flag("write_retain")?.unwrap_or(false);
        let write = match (tag.access, write_topic) {
            (Access::Read, None) => None,
            (Access::ReadWrite, Some(topic))
                if !is_many && !topic.contains(['+', '#', '\0']) && !topic.is_empty() =>
            {
                Some((topic, write_payload.unwrap_or_else(|| "{value}".to_owned()), retain))
            }
            (Access::ReadWrite, None) => {
                let hint = "write write_topic = \"plant/oven/setpoint/set\"";
                return Err(fields.mistake("values that clients write need a topic", hint));
            }
            _ => {
                let hint = "a tag that can be written has one topic without wildcards, write_topic and access = \"read-write\"";
                return Err(fields.mistake("this tag cannot be written", hint));
            }
        };
        let placement = match tag.kind {
            Some(kind) if !is_many => Placement::Variable(Kind::scalar(kind)),
            None if !is_many => Placement::Variable(Kind::scalar(BuiltInType::Double)),
            _ => Placement::Later,
        };
        let position = (placement != Placement::Later).then_some(position);
        self.maps.push(Map { tag: tag.clone(), filter, topic, reader, position, write });
        Ok(placement)
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(session::run(self, feed, writes))
    }
}
