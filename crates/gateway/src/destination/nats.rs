//! Messages to NATS JetStream: a batch is confirmed when a stream has stored each message.
//!
//! The key of a value is the message id, by which a stream recognizes what is sent again within its duplicate window.

use super::settings::DestinationSettings;
use super::template::{Template, json_text};
use super::{Batch, Sink, Taken};
use crate::connect::{host_and_port, is_local};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use async_nats::jetstream::context::{PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context, stream};
use async_nats::{Client, ConnectOptions};
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::path::PathBuf;

/// Messages that wait for their confirmation.
const UNCONFIRMED_MAX: usize = 1000;
/// What a message has besides its payload, at most: its id and the name of that header.
const HEADERS_LEN: usize = 100;
const SUBJECT: &str = "taktwerk.{tag}";
const PAYLOAD: &str = r#"{"key":"{key}","tag":"{tag}","time":"{time}","status":"{status}","value":{value}}"#;

/// A NATS server that values are sent to.
pub struct NatsSink {
    address: String,
    target: String,
    is_tls: bool,
    ca_file: Option<PathBuf>,
    user: Option<(String, PathBuf)>,
    credentials_file: Option<PathBuf>,
    subject: Template,
    payload: Template,
    /// The stream to be made if there is none, with its subjects.
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
        let (is_tls, rest) = match (url.strip_prefix("nats://"), url.strip_prefix("tls://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, ""),
        };
        let Some((host, port)) = host_and_port(rest.trim_end_matches('/'), 4222) else {
            let hint =
                "write \"nats://host:4222\", or \"tls://host:4222\"; the user has a setting of its own";
            return Err(fields.mistake_in(line, "url", "this is no URL of a NATS server", hint));
        };
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let user = match (fields.text("user")?, fields.text("password_file")?) {
            (Some(user), Some(file)) => Some((user, folder.join(file))),
            (None, None) => None,
            _ => {
                let hint = "set user and password_file";
                return Err(fields.mistake("a user needs a name and a password", hint));
            }
        };
        let is_open = fields.flag("allow_plaintext_password")?.unwrap_or(false);
        if user.is_some() && !is_tls && !is_local(&host) && !is_open {
            let hint = "use tls://, or set allow_plaintext_password = true on a trusted network";
            return Err(fields.mistake("the password would cross the network readably", hint));
        }
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
            address: format!(
                "{}://{}",
                if is_tls { "tls" } else { "nats" },
                crate::connect::target(&host, port)
            ),
            target: crate::connect::target(&host, port),
            is_tls,
            ca_file: crate::tls::take_ca(fields)?,
            user,
            credentials_file: fields.text("credentials_file")?.map(|file| folder.join(file)),
            subject: Template::parse(&subject),
            payload: Template::parse(fields.text("payload")?.as_deref().unwrap_or(PAYLOAD)),
            stream: stream.map(|name| (name, subjects.unwrap_or_else(|| vec![default]))),
            deadline: settings.deadline,
            link: None,
        })
    }

    fn failed(&self, error: &dyn core::fmt::Display) -> Fault {
        let told = error.to_string();
        Fault::other(self.target.as_str(), crate::tls::advice(&told).unwrap_or(&told))
    }

    async fn connect(&self) -> Result<(Client, Context), Fault> {
        let mut options = ConnectOptions::new()
            .name("taktwerk-gateway")
            .connection_timeout(self.deadline)
            .client_capacity(UNCONFIRMED_MAX);
        if self.is_tls {
            let config = crate::tls::client(self.ca_file.as_deref())?;
            options = options.require_tls(true).tls_client_config((*config).clone());
        }
        if let Some((user, file)) = &self.user {
            let password = taktwerk_config::file::read_text(file, 4096);
            let password = password.map_err(|error| Fault::connect(file.display().to_string(), &error))?;
            options =
                options.user_and_password(user.clone(), password.trim_end_matches(['\r', '\n']).to_owned());
        }
        if let Some(file) = &self.credentials_file {
            let text = taktwerk_config::file::read_text(file, 64 << 10);
            let text = text.map_err(|error| Fault::connect(file.display().to_string(), &error))?;
            options = options
                .credentials(&text)
                .map_err(|error| Fault::connect(file.display().to_string(), &error))?;
        }
        let client = options.connect(&self.address).await.map_err(|error| self.failed(&error))?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(self.deadline);
        if let Some((name, subjects)) = &self.stream {
            let config = stream::Config {
                name: name.clone(),
                subjects: subjects.clone(),
                ..stream::Config::default()
            };
            context.get_or_create_stream(config).await.map_err(|error| self.failed(&error))?;
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
            waiting.push_back(sent.map_err(|error| self.failed(&error))?);
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
                    self.failed(&"no stream takes these subjects; make one, or set stream = \"NAME\"")
                }
                PublishErrorKind::TimedOut => {
                    Fault::NoAnswer { target: self.target.clone(), after: self.deadline }
                }
                _ => self.failed(&error),
            }),
        }
    }
}

/// A text as part of a subject: levels of a path become tokens, and what has a meaning is replaced.
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
        format!("NATS JetStream {}", self.target)
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
