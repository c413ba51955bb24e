//! JSON over HTTP, requested at an interval.

use crate::fault::Fault;
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake};
use crate::http::{Endpoint, Sender};
use crate::json_path::{JsonPath, written};
use crate::json_time::time_of;
use crate::offer::{Offer, Question, quoted};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::{Kind, kind_of_json};
use core::time::Duration;
use futures_util::future::BoxFuture;
use hyper::body::Bytes;
use hyper::header::ACCEPT;
use hyper::{Method, StatusCode as HttpStatus};
use serde_json::Value as Json;
use taktwerk_types::{BuiltInType, StatusCode};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// A URL that returns JSON.
#[derive(Debug)]
pub struct Http {
    endpoint: Endpoint,
    body_max: usize,
    tags: Vec<HttpTag>,
}

/// Where the value of a tag is in a response.
#[derive(Debug)]
pub struct HttpTag {
    /// The path to the value.
    pub value: JsonPath,
    /// The path to its time.
    pub time: Option<JsonPath>,
    /// Its type.
    pub kind: Kind,
}

impl HttpTag {
    /// The reading in a response.
    #[must_use]
    pub fn reading(&self, json: &Json) -> Reading {
        let value = self.value.find(json);
        let time = self.time.as_ref().and_then(|path| path.find(json)).and_then(time_of);
        match value.map(|json| self.kind.of_json(json)) {
            Some(Some(value)) => Reading::good(value).at(time),
            Some(None) => Reading::bad(StatusCode::BAD_TYPE_MISMATCH),
            None => Reading::bad(StatusCode::BAD_NO_DATA),
        }
    }
}

impl Http {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        Ok(Self {
            endpoint: Endpoint::take(fields, "\"http://device/status.json\"", "Bearer")?,
            body_max: fields.integer("body_max", 1, 64 << 20)?.unwrap_or(1 << 20) as usize,
            tags: Vec::new(),
        })
    }

    async fn ask(&self, sender: &mut Sender) -> Result<Json, Fault> {
        let wanted = (ACCEPT, "application/json");
        let body_max = self.body_max;
        let (status, body) = self.endpoint.ask(sender, Method::GET, wanted, Bytes::new(), body_max).await?;
        if status != HttpStatus::OK {
            return Err(self.endpoint.failed(&format!("the server answers {status}")));
        }
        serde_json::from_slice(&body)
            .map_err(|error| self.endpoint.failed(&format!("the answer is no JSON: {error}")))
    }

    fn deliver(&self, json: &Json, feed: &Feed) {
        feed.deliver(self.tags.iter().map(|tag| tag.reading(json)).enumerate());
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let settings = feed.settings();
        let deadline = settings.deadline;
        let mut ticks = interval(settings.interval.unwrap_or(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut sender: Option<Sender> = None;
        loop {
            tokio::select! {
                // Tags of this source cannot be written.
                _ = writes.next() => feed.statistics().add(Count::WriteErrors, 1),
                _ = ticks.tick() => {
                    feed.statistics().add(Count::Requests, 1);
                    // Servers close idle connections.
                    let mut open = match sender.take().filter(|sender| !sender.is_closed()) {
                        Some(open) => open,
                        None => match timeout(deadline, self.endpoint.open(deadline)).await {
                            Ok(open) => open?,
                            Err(_) => {
                                return Err(Fault::ConnectTimeout { target: self.endpoint.target(), after: deadline });
                            }
                        },
                    };
                    match timeout(deadline, self.ask(&mut open)).await {
                        Err(_) => return Err(Fault::NoAnswer { target: self.endpoint.target(), after: deadline }),
                        Ok(json) => {
                            feed.connected();
                            self.deliver(&json?, feed);
                        }
                    }
                    sender = Some(open);
                }
            }
        }
    }
}

/// The values in an answer that are not objects, with their paths.
fn leaves<'a>(json: &'a Json, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, &'a Json)>, most: usize) {
    match json {
        // serde_json limits the depth.
        Json::Object(entries) => {
            for (name, value) in entries {
                path.push(name.clone());
                leaves(value, path, found, most);
                path.pop();
            }
        }
        Json::Null => {}
        value if found.len() < most => found.push((path.clone(), value)),
        _ => {}
    }
}

fn offer(path: &[String], json: &Json) -> Option<Offer> {
    let (name, folders) = path.split_last()?;
    let address = written(path)?;
    let kind = kind_of_json(json);
    let mut settings = vec![("json", quoted(&address)), ("type", quoted(&kind.element.to_string()))];
    if kind.is_array {
        settings.push(("array", "true".to_owned()));
    }
    let path = folders.to_vec();
    Some(Offer {
        address,
        name: name.clone(),
        path,
        kind: kind.to_string(),
        value: json.to_string(),
        settings,
    })
}

/// What a response offers, at most so many values.
#[must_use]
pub fn offers_in(json: &Json, most: usize) -> Vec<Offer> {
    let mut parts = Vec::new();
    leaves(json, &mut Vec::new(), &mut parts, most);
    parts.into_iter().filter_map(|(path, json)| offer(&path, json)).collect()
}

impl Adapter for Http {
    fn describe(&self) -> String {
        self.endpoint.describe()
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        let path = |fields: &mut Fields, key: &'static str| -> Result<Option<JsonPath>, Mistake> {
            let Some((line, text)) = fields.text_at(key)? else { return Ok(None) };
            let hint = "write the names from the outside in, such as \"$.machine.axes[0].position\"";
            let path = JsonPath::parse(&text);
            path.map(Some).ok_or_else(|| fields.mistake_in(line, key, format!("{text:?} is no path"), hint))
        };
        let Some(value) = path(fields, "json")? else {
            return Err(fields.mistake("json is missing", "write json = \"$.temperature\""));
        };
        let time = path(fields, "time")?;
        if tag.access == Access::ReadWrite {
            return Err(fields.mistake("tags of HTTP sources cannot be written", "use access = \"read\""));
        }
        let element = tag.kind.filter(|_| tag.scaling.is_identity()).unwrap_or(BuiltInType::Double);
        let kind = Kind { element, is_array: fields.flag("array")?.unwrap_or(false) };
        self.tags.push(HttpTag { value, time, kind });
        Ok(Placement::Variable(kind))
    }

    fn offers<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        Box::pin(async move {
            let (target, deadline) = (self.endpoint.target(), question.settings.deadline);
            let json = timeout(deadline, async { self.ask(&mut self.endpoint.open(deadline).await?).await });
            let json = match json.await {
                Ok(json) => json?,
                Err(_) => return Err(Fault::NoAnswer { target, after: deadline }),
            };
            Ok(offers_in(&json, question.most))
        })
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}
