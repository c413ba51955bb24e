//! JSON over HTTP, asked for at an interval.

use crate::connect::{self, host_and_port};
use crate::fault::Fault;
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake};
use crate::json_path::JsonPath;
use crate::json_time::time_of;
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::Kind;
use core::time::Duration;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode as HttpStatus};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use std::path::PathBuf;
use std::sync::Arc;
use taktwerk_types::{BuiltInType, StatusCode};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// A URL that answers with JSON.
#[derive(Debug)]
pub struct Http {
    host: String,
    port: u16,
    path: String,
    is_tls: bool,
    ca_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body_max: usize,
    tags: Vec<HttpTag>,
}

#[derive(Debug)]
struct HttpTag {
    value: JsonPath,
    time: Option<JsonPath>,
    kind: Kind,
}

type Sender = SendRequest<Empty<Bytes>>;

impl Http {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let (line, url) = fields.required("url", "\"http://device/status.json\"")?;
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, ""),
        };
        let cut = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        let is_path = path.chars().all(|char| char.is_ascii_graphic() && char != '#');
        let address = host_and_port(authority, if is_tls { 443 } else { 80 }).filter(|_| is_path);
        let Some((host, port)) = address else {
            let hint = "write \"http://host:port/path\" or \"https://host/path\", without a user";
            return Err(fields.mistake_in(line, "url", "this is no URL", hint));
        };
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let token_file = fields.text("token_file")?.map(|file| folder.join(file));
        let is_open = fields.flag("allow_plaintext_token")?.unwrap_or(false);
        let is_local = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        if token_file.is_some() && !is_tls && !is_local && !is_open {
            let hint = "use https://, or set allow_plaintext_token = true where nobody can listen";
            return Err(fields.mistake("the token would cross the network readably", hint));
        }
        let mut headers = Vec::new();
        for entry in fields.texts("headers")?.unwrap_or_default() {
            let header = entry.split_once(':').and_then(|(name, value)| {
                Some((name.trim().parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
            });
            let Some(header) = header else {
                let hint = "write headers = [\"Name: value\"]";
                return Err(fields.mistake(format!("{entry:?} is no header"), hint));
            };
            headers.push(header);
        }
        Ok(Self {
            host,
            port,
            path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
            is_tls,
            ca_file: fields.text("ca_file")?.map(|file| folder.join(file)),
            token_file,
            headers,
            body_max: fields.integer("body_max", 1, 64 << 20)?.unwrap_or(1 << 20) as usize,
            tags: Vec::new(),
        })
    }

    fn target(&self) -> String {
        connect::target(&self.host, self.port)
    }

    async fn open(&self, deadline: Duration) -> Result<Sender, Fault> {
        let target = self.target();
        let fail = |error: &dyn core::fmt::Display| Fault::other(target.clone(), error);
        let stream = connect::tcp(&self.host, self.port, deadline).await?;
        let (sender, driver): (Sender, BoxFuture<'static, ()>) = if self.is_tls {
            let connector = TlsConnector::from(Arc::clone(&crate::tls::client(self.ca_file.as_deref())?));
            let name = ServerName::try_from(self.host.clone()).map_err(|error| fail(&error))?;
            let stream = connector.connect(name, stream).await.map_err(|error| fail(&error))?;
            let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| fail(&error))?;
            (sender, Box::pin(async move { drop(driver.await) }))
        } else {
            let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| fail(&error))?;
            (sender, Box::pin(async move { drop(driver.await) }))
        };
        // It ends with the sender.
        tokio::spawn(driver);
        Ok(sender)
    }

    async fn ask(&self, sender: &mut Sender) -> Result<Json, Fault> {
        let target = self.target();
        let fail = |error: &dyn core::fmt::Display| Fault::other(format!("{target}{}", self.path), error);
        let mut request = Request::builder()
            .uri(&self.path)
            .header(HOST, if matches!(self.port, 80 | 443) { &self.host } else { &target })
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "taktwerk-gateway");
        if let Some(file) = &self.token_file {
            // Read each time: tokens are renewed.
            let token = taktwerk_config::file::read_text(file, 16 << 10);
            let token = token.map_err(|error| Fault::connect(file.display().to_string(), &error))?;
            let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
            let mut value = value.map_err(|_| fail(&"the token has characters that a header cannot have"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Empty::new()).map_err(|error| fail(&error))?;
        sender.ready().await.map_err(|error| fail(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| fail(&error))?;
        if answer.status() != HttpStatus::OK {
            return Err(fail(&format!("the server answers {}", answer.status())));
        }
        let body =
            Limited::new(answer.into_body(), self.body_max).collect().await.map_err(|error| fail(&error))?;
        serde_json::from_slice(&body.to_bytes())
            .map_err(|error| fail(&format!("the answer is no JSON: {error}")))
    }

    fn deliver(&self, json: &Json, feed: &Feed) {
        let readings = self.tags.iter().map(|tag| {
            let value = tag.value.find(json);
            let time = tag.time.as_ref().and_then(|path| path.find(json)).and_then(time_of);
            match value.map(|json| tag.kind.of_json(json)) {
                Some(Some(value)) => Reading::good(value).at(time),
                Some(None) => Reading::bad(StatusCode::BAD_TYPE_MISMATCH),
                None => Reading::bad(StatusCode::BAD_NO_DATA),
            }
        });
        feed.deliver(readings.enumerate());
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let settings = feed.settings();
        let deadline = settings.deadline;
        let mut ticks = interval(settings.interval.unwrap_or(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut sender: Option<Sender> = None;
        loop {
            tokio::select! {
                // No tag of this source can be written.
                _ = writes.next() => feed.statistics().add(Count::WriteErrors, 1),
                _ = ticks.tick() => {
                    feed.statistics().add(Count::Requests, 1);
                    // Servers close connections that are idle.
                    let mut open = match sender.take().filter(|sender| !sender.is_closed()) {
                        Some(open) => open,
                        None => match timeout(deadline, self.open(deadline)).await {
                            Ok(open) => open?,
                            Err(_) => {
                                return Err(Fault::ConnectTimeout { target: self.target(), after: deadline });
                            }
                        },
                    };
                    match timeout(deadline, self.ask(&mut open)).await {
                        Err(_) => return Err(Fault::NoAnswer { target: self.target(), after: deadline }),
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

impl Adapter for Http {
    fn describe(&self) -> String {
        format!("{}://{}{}", if self.is_tls { "https" } else { "http" }, self.target(), self.path)
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

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}
