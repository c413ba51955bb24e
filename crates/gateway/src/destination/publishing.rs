//! Publishes messages with individual confirmation (QoS 1) over a persistent MQTT connection.

use super::Taken;
use crate::fault::Fault;
use crate::mqtt::Broker;
use crate::mqtt::client::{Answer, Client, Connection, Incoming, payload_room};
use core::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// A broker to which messages are published.
pub(super) struct Publishing {
    pub(super) broker: Broker,
    deadline: Duration,
    link: Option<Link>,
    /// The broker's maximum packet size, as last announced.
    packet_max: Option<usize>,
}

/// An open connection. A separate task polls its events, so that it stays alive while nothing is sent.
struct Link {
    client: Client,
    answers: mpsc::UnboundedReceiver<Result<Answer, Fault>>,
    task: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A message with the values of some records.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    /// Whether the broker retains it for later subscribers.
    pub(super) retain: bool,
    pub(super) records: usize,
}

/// The messages of a batch, and the number of records that cannot be sent, with the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Messages {
    pub(super) messages: Vec<Message>,
    pub(super) refused: usize,
    pub(super) reason: Option<String>,
}

impl Publishing {
    pub(super) fn new(broker: Broker, deadline: Duration) -> Self {
        Self { broker, deadline, link: None, packet_max: None }
    }

    /// Connects if there is no connection. Returns whether it connected.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) async fn open(&mut self) -> Result<bool, Fault> {
        if let Some(link) = &mut self.link
            && matches!(link.answers.try_recv(), Err(mpsc::error::TryRecvError::Empty))
        {
            return Ok(false);
        }
        self.link = None;
        self.link = Some(self.connect().await?);
        Ok(true)
    }

    /// Longest payload for a topic, according to the settings and the broker's last announcement.
    pub(super) fn payload_max(&self, topic: &str) -> usize {
        self.broker.payload_max.min(payload_room(self.packet_max, topic))
    }

    /// Why a payload is too large.
    pub(super) fn too_large(&self, len: usize, topic: &str) -> String {
        match payload_room(self.packet_max, topic) {
            room if room < self.broker.payload_max => {
                format!("a message of {len} bytes is larger than the {room} bytes that the broker accepts")
            }
            _ => format!("a message of {len} bytes is larger than payload_max"),
        }
    }

    async fn connect(&mut self) -> Result<Link, Fault> {
        let target = self.broker.target();
        let Connection { client, mut events } = Connection::new(&self.broker, self.deadline, 0)?;
        while events.next(&target).await? != Incoming::Connected {}
        self.packet_max = events.packet_max();
        let (sender, answers) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                let answer = match events.next(&target).await {
                    Ok(Incoming::Taken(answer)) => Ok(answer),
                    Ok(_) => continue,
                    Err(fault) => Err(fault),
                };
                let is_over = answer.is_err();
                if sender.send(answer).is_err() || is_over {
                    return;
                }
            }
        });
        Ok(Link { client, answers, task: task.abort_handle() })
    }

    /// Publishes messages and waits until the broker has confirmed each one. A connection must be open: the caller may need to
    /// know whether it is new before creating the messages.
    pub(super) async fn send(&mut self, messages: Messages) -> Result<Taken, Fault> {
        let Messages { messages, mut refused, mut reason } = messages;
        let target = || self.broker.target();
        let mut link = self.link.take().ok_or_else(|| Fault::Closed { target: target() })?;
        let mut waiting = messages.iter().peekable();
        // Brokers answer in the order of the messages (MQTT 5 §4.6).
        for message in &messages {
            // Send as many as the queue holds. While it is full, others wait for their answers.
            while let Some(next) = waiting.peek()
                && link.client.publish(&next.topic, 1, next.retain, next.payload.clone())
            {
                waiting.next();
            }
            match link.answers.recv().await {
                Some(Ok(Answer::Taken)) => {}
                Some(Ok(Answer::Never(why))) => {
                    refused += message.records;
                    reason = Some(why);
                }
                Some(Ok(Answer::NotNow(why))) => return Err(Fault::other(target(), why)),
                Some(Err(fault)) => return Err(fault),
                None => return Err(Fault::Closed { target: target() }),
            }
        }
        // After a failure answers may be outstanding, so only a connection without any is used again.
        self.link = Some(link);
        Ok(Taken { refused, reason, parked: Vec::new() })
    }
}
