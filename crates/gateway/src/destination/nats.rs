//! Messages to NATS JetStream: a batch is confirmed when a stream has stored each message.
//!
//! The key of a value is the message id, by which a stream detects repeated messages within its duplicate window.

use super::settings::DestinationSettings;
use super::template::{Template, json_text};
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::nats::NatsServer;
use async_nats::jetstream::context::{PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context, stream};
use async_nats::{Client, ConnectOptions};
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;

/// Most messages that wait for confirmation.
const UNCONFIRMED_MAX: usize = 1000;
/// Most bytes of a message in addition to its payload: id and header name.
const HEADERS_LEN: usize = 100;
const SUBJECT: &str = "taktwerk.{tag}";
const PAYLOAD: &str = r#"{"key":"{key}","tag":"{tag}","time":"{time}","status":"{status}","value":{value}}"#;

/// A NATS server that receives values.
pub struct NatsSink {
    server: NatsServer,
    subject: Template,
    payload: Template,
    /// The stream to create if it does not exist, with its subjects.
    stream: Option<(String, Vec<String>)>,
    deadline: Duration,
    link: Option<(Client, Context)>,
}

impl NatsSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let (line, url) = fields.required("url", "\"nats://broker:4222\"")?;
        let server = NatsServer::take(fields, (line, &url))?;
        let subject = fields.text_at("subject")?;
        if let Some((line, text)) = &subject
            && (text.is_empty() || text.contains(['*', '>', ' ', '\0']))
        {
            let hint = "write a subject without * and >, such as subject = \"plant.{tag}\"";
            return Err(fields.mistake_in(*line, "subject", "nothing can be sent to this subject", hint));
        }
        let subject = subject.map_or_else(|| SUBJECT.to_owned(), |(_, text)| text);
        let stream = fields.text("stream")?;
        let subjects = fields.texts("stream_subjects")?;
        let first = subject.split(['.', '{']).next().unwrap_or_default();
        let default = if first.is_empty() { ">".to_owned() } else { format!("{first}.>") };
        Ok(Self {
            server,
            subject: Template::parse(&subject),
            payload: Template::parse(fields.text("payload")?.as_deref().unwrap_or(PAYLOAD)),
            stream: stream.map(|name| (name, subjects.unwrap_or_else(|| vec![default]))),
            deadline: settings.deadline,
            link: None,
        })
    }

    async fn connect(&self) -> Result<(Client, Context), Fault> {
        let set = |options: ConnectOptions| options.name("taktwerk-gateway").client_capacity(UNCONFIRMED_MAX);
        let client = self.server.connect(self.deadline, set).await?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(self.deadline);
        if let Some((name, subjects)) = &self.stream {
            let config = stream::Config {
                name: name.clone(),
                subjects: subjects.clone(),
                ..stream::Config::default()
            };
            context.get_or_create_stream(config).await.map_err(|error| self.server.failed(&error))?;
        }
        Ok((client, context))
    }

    async fn send_all(&mut self, batch: &Batch) -> Result<Taken, Fault> {
        let (client, context) = match self.link.take() {
            Some(link) => link,
            None => self.connect().await?,
        };
        let most = client.server_info().max_payload;
        let mut taken = Taken::default();
        let mut waiting: VecDeque<PublishAckFuture> = VecDeque::new();
        for record in &batch.records {
            let subject = subject(&self.subject.fill(batch, record, subject_text));
            let payload = self.payload.fill(batch, record, json_text);
            if payload.len() + HEADERS_LEN > most {
                taken.refused += 1;
                taken.reason =
                    Some(format!("{} bytes are larger than the server's max_payload", payload.len()));
                continue;
            }
            if waiting.len() >= UNCONFIRMED_MAX
                && let Some(first) = waiting.pop_front()
            {
                self.confirmed(first).await?;
            }
            let message = PublishMessage::build().payload(payload.into()).message_id(batch.key(record));
            let sent = context.send_publish(subject, message).await;
            waiting.push_back(sent.map_err(|error| self.server.failed(&error))?);
        }
        for ack in waiting {
            self.confirmed(ack).await?;
        }
        self.link = Some((client, context));
        Ok(taken)
    }

    async fn confirmed(&self, ack: PublishAckFuture) -> Result<(), Fault> {
        match ack.await {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.kind() {
                PublishErrorKind::StreamNotFound => {
                    self.server.failed(&"no stream takes these subjects; make one, or set stream = \"NAME\"")
                }
                PublishErrorKind::TimedOut => {
                    Fault::NoAnswer { target: self.server.target().to_owned(), after: self.deadline }
                }
                _ => self.server.failed(&error),
            }),
        }
    }
}

/// A text as part of a subject. Levels of a path become tokens, and special characters are replaced.
fn subject_text(text: &str) -> String {
    let plain = |char: char| match char {
        '/' => '.',
        '.' | '*' | '>' => '_',
        char if char.is_whitespace() || char.is_control() => '_',
        char => char,
    };
    text.chars().map(plain).collect()
}

/// A subject without empty tokens.
fn subject(text: &str) -> String {
    let tokens: Vec<&str> = text.split('.').filter(|token| !token.is_empty()).collect();
    tokens.join(".")
}

impl Sink for NatsSink {
    fn describe(&self) -> String {
        format!("NATS JetStream {}", self.server.target())
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(self.send_all(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_subjects() {
        assert_eq!(
            subject(&format!("plant.{}", subject_text("Line 1/Oven/T.1>*"))),
            "plant.Line_1.Oven.T_1__"
        );
        assert_eq!(subject(&subject_text("/a//b/")), "a.b");
    }
}
