//! Values from an MQTT broker, 3.1.1 and 5.
//!
//! - [`topic`]: filters and templates; [`payload`]: reads messages; `session`: one connection; `offers`: lists a broker's topics.

mod offers;
pub mod payload;
mod session;
pub mod topic;

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::json_path::JsonPath;
use crate::mqtt::Broker;
use crate::offer::{Offer, Question};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::tag::{Access, Tag};
use crate::value::Kind;
use futures_util::future::BoxFuture;
use payload::Reader;
use std::collections::HashMap;
use taktwerk_types::BuiltInType;
use topic::Filter;

/// A broker.
#[derive(Debug)]
pub struct Mqtt {
    broker: Broker,
    qos: u8,
    maps: Vec<Map>,
    /// Positions of variables added while running, by tag, topic and path within the message.
    added: HashMap<(usize, String, String), Option<usize>>,
}

/// A tag with its topic filter.
#[derive(Debug)]
struct Map {
    tag: Tag,
    filter: Filter,
    topic: String,
    reader: Reader,
    /// `None` if variables are added for each topic.
    position: Option<usize>,
    /// Topic and template of writes, and whether the broker retains them.
    write: Option<(String, String, bool)>,
}

impl Mqtt {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &SourceSettings) -> Result<Self, Mistake> {
        Ok(Self {
            broker: Broker::take(fields, &settings.name)?,
            qos: fields.integer("qos", 0, 2)?.unwrap_or(0) as u8,
            maps: Vec::new(),
            added: HashMap::new(),
        })
    }
}

impl Adapter for Mqtt {
    fn describe(&self) -> String {
        self.broker.describe()
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

    fn offers<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        Box::pin(offers::offers(self, question))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(session::run(self, feed, writes))
    }
}
