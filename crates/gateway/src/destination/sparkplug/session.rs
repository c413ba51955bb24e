//! The successive connections of an edge node.

use super::edge::{Edge, Message, Told};
use crate::destination::{Batch, Taken, WriteTag};
use crate::fault::Fault;
use crate::mqtt::Broker;
use crate::mqtt::client::{Client, Connection, Incoming, Will, payload_room};
use crate::pause::jitter;
use crate::sparkplug::elements::are_few;
use crate::sparkplug::payload::{Payload, Value};
use core::time::Duration;
use prost::Message as _;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use taktwerk_net::clock::wall;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Timeout for the state of the primary host. Brokers send retained messages immediately.
const STATE: Duration = Duration::from_secs(2);
/// Topic length assumed for data messages. Longer topics may be rejected.
const TOPIC_LEN: usize = 300;
/// Least time between requested births. One birth answers all requests before it.
const BIRTH_PAUSE: Duration = Duration::from_secs(1);

/// State shared by all connections of an edge node.
pub(super) struct Node {
    pub(super) broker: Broker,
    pub(super) primary_host: Option<String>,
    pub(super) deadline: Duration,
    pub(super) retry: Duration,
    pub(super) retry_max: Duration,
    pub(super) edge: Mutex<Edge>,
    /// Whether hosts may write tags.
    pub(super) obeys: bool,
    pub(super) write: OnceLock<WriteTag>,
}

impl Node {
    fn edge(&self) -> MutexGuard<'_, Edge> {
        self.edge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a command to the node or to a device.
    fn obey(&self, device: Option<&str>, payload: &[u8]) {
        let Some(write) = self.write.get().filter(|_| self.obeys) else { return };
        let Some(payload) = decoded(payload) else { return };
        let commands = self.edge().command(device, &payload);
        let refused = commands.into_iter().filter_map(|command| match command {
            Ok((tag, value)) => {
                let status = write(&tag, value);
                status.is_bad().then(|| format!("{tag}: {status}"))
            }
            Err(reason) => Some(reason),
        });
        let refused: Vec<String> = refused.collect();
        if let Some(first) = refused.first() {
            let (node, count) = (self.edge().topic("NCMD", None), refused.len());
            tracing::warn!(node, count, first, "commands of a host were refused");
        }
    }
}

/// A batch, and a channel for its result.
pub(super) struct Job {
    pub(super) batch: Batch,
    pub(super) reply: oneshot::Sender<Result<Taken, Fault>>,
}

/// Runs the node as long as there are jobs.
pub(super) async fn run(node: std::sync::Arc<Node>, mut jobs: mpsc::Receiver<Job>) {
    // Wait for a job: a node without tags has no birth.
    let Some(first) = jobs.recv().await else { return };
    let mut waiting = Some(first);
    let mut pause = node.retry;
    loop {
        let started = Instant::now();
        let Err(fault) = session(&node, &mut jobs, &mut waiting).await else { return };
        node.edge().disconnected();
        if started.elapsed() > node.retry_max {
            pause = node.retry;
        }
        match waiting.take() {
            // The sender waits before it sends it again.
            Some(Job { reply, .. }) => drop(reply.send(Err(fault))),
            None => tracing::debug!(error = %fault, "the edge node has lost its broker"),
        }
        tokio::select! {
            () = sleep(pause + jitter(pause)) => pause = (pause * 2).min(node.retry_max),
            job = jobs.recv() => match job {
                Some(job) => waiting = Some(job),
                None => return,
            },
        }
    }
}

/// Runs one connection. Returns without error when there are no more jobs.
async fn session(
    node: &Node,
    jobs: &mut mpsc::Receiver<Job>,
    waiting: &mut Option<Job>,
) -> Result<(), Fault> {
    let target = node.broker.target();
    let will = node.edge().connect(wall());
    let will = Will { topic: will.topic, payload: will.payload, retain: false };
    let Connection { client, mut events } =
        Connection::with_will(&node.broker, node.deadline, 3, Some(will))?;
    let connected = async {
        while events.next(&target).await? != Incoming::Connected {}
        Ok(())
    };
    match timeout(node.deadline, connected).await {
        Err(_) => return Err(Fault::ConnectTimeout { target, after: node.deadline }),
        Ok(connected) => connected?,
    }
    let commands = node.edge().topic("NCMD", None);
    // Topics differ in the name of the device.
    let packet_max = events.packet_max();
    let payload_max = node.broker.payload_max.min(payload_room(packet_max, &"x".repeat(TOPIC_LEN)));
    node.edge().limit(payload_max);
    // No messages are published to this topic; see the module.
    let marker = format!("{commands}/taktwerk");
    let state = node.primary_host.as_ref().map(|host| format!("spBv1.0/STATE/{host}"));
    let of_devices = node.edge().topic("DCMD", Some(""));
    client.subscribe(&commands, 1);
    if node.obeys {
        client.subscribe(&format!("{of_devices}+"), 1);
    }
    if let Some(state) = &state {
        client.subscribe(state, 1);
    }
    let mut talk = Talk {
        node,
        client,
        marker,
        out: VecDeque::new(),
        births: Births::default(),
        is_marked: false,
        taken: None,
        packet_max,
    };
    let mut host = Host { is_needed: state.is_some(), is_online: false, until: Instant::now() + STATE };
    if host.is_ready() && node.edge().has_tags() {
        talk.birth()?;
    }
    loop {
        if host.is_ready()
            && talk.taken.is_none()
            && let Some(job) = waiting.as_ref()
        {
            talk.tell(&job.batch)?;
        }
        talk.push();
        if talk.births.is_due(Instant::now(), talk.out.is_empty()) {
            talk.birth()?;
            talk.push();
        }
        // Pending messages wake this task by themselves.
        let birth_at = talk.births.due_at().filter(|_| talk.out.is_empty());
        tokio::select! {
            () = sleep_until(birth_at.unwrap_or(host.until)), if birth_at.is_some() => {}
            job = jobs.recv(), if waiting.is_none() => match job {
                Some(job) => *waiting = Some(job),
                None => return Ok(()),
            },
            () = sleep_until(host.until), if !host.is_ready() && waiting.is_some() => {
                let name = node.primary_host.as_deref().unwrap_or_default();
                return Err(Fault::other(target.as_str(), format!("the primary host {name:?} is offline")));
            }
            incoming = events.next(&target) => match incoming? {
                Incoming::Message(topic, payload, _) if state.as_ref() == Some(&topic) => {
                    let was_online = core::mem::replace(&mut host.is_online, is_online(&payload));
                    if was_online && !host.is_online {
                        // The node is dead until the host returns (Sparkplug 3.0, 6.4.7).
                        return Err(Fault::other(target.as_str(), "the primary host went offline"));
                    }
                    if host.is_online && !was_online && node.edge().has_tags() {
                        talk.birth()?;
                    }
                }
                // A retained command would be carried out again with each connection.
                Incoming::Message(topic, payload, false) if topic == commands => {
                    if host.is_ready() && node.edge().has_tags() && asks_for_birth(&payload) {
                        talk.births.is_wanted = true;
                    }
                    node.obey(None, &payload);
                }
                Incoming::Message(topic, payload, false) if topic.starts_with(&of_devices) => {
                    node.obey(topic.strip_prefix(&of_devices), &payload);
                }
                Incoming::Unsubscribed => {
                    if let Some(taken) = talk.taken.take()
                        && let Some(Job { reply, .. }) = waiting.take()
                    {
                        talk.is_marked = false;
                        drop(reply.send(Ok(taken)));
                    }
                }
                Incoming::Refused => {
                    return Err(Fault::other(target.as_str(), format!("the broker does not let this user read {commands}")));
                }
                Incoming::Connected => return Err(Fault::Closed { target }),
                Incoming::Message(..) | Incoming::Taken(_) | Incoming::Other => {}
            },
        }
    }
}

/// The state of the primary host.
struct Host {
    is_needed: bool,
    is_online: bool,
    /// Timeout for its state.
    until: Instant,
}

impl Host {
    fn is_ready(&self) -> bool {
        !self.is_needed || self.is_online
    }
}

/// Births requested by hosts: any number of requests is answered by one birth at a time.
#[derive(Debug, Default)]
struct Births {
    is_wanted: bool,
    last: Option<Instant>,
}

impl Births {
    /// Whether births are sent now. They wait for other pending messages.
    fn is_due(&self, now: Instant, is_out_empty: bool) -> bool {
        is_out_empty && self.is_wanted && self.due_at().is_none_or(|due| due <= now)
    }

    /// When requested births may be sent; `None` if now, or if none are requested.
    fn due_at(&self) -> Option<Instant> {
        let last = self.last.filter(|_| self.is_wanted);
        last.map(|last| last + BIRTH_PAUSE)
    }

    fn told(&mut self, now: Instant) {
        (self.is_wanted, self.last) = (false, Some(now));
    }
}

/// Messages on their way to the broker.
struct Talk<'a> {
    node: &'a Node,
    client: Client,
    marker: String,
    out: VecDeque<Message>,
    births: Births,
    /// Whether the marker after the batch was sent.
    is_marked: bool,
    /// The result to return when the marker is answered.
    taken: Option<Taken>,
    /// The broker's maximum packet size.
    packet_max: Option<usize>,
}

impl Talk<'_> {
    fn birth(&mut self) -> Result<(), Fault> {
        let messages = self.node.edge().birth(wall());
        self.births.told(Instant::now());
        self.add(messages)
    }

    fn tell(&mut self, batch: &Batch) -> Result<(), Fault> {
        let Told { messages, refused, reason } = self.node.edge().tell(batch, wall());
        self.taken = Some(Taken { refused, reason, parked: Vec::new() });
        self.add(messages)
    }

    fn add(&mut self, messages: Vec<Message>) -> Result<(), Fault> {
        let most = |message: &Message| {
            self.node.broker.payload_max.min(payload_room(self.packet_max, &message.topic))
        };
        if let Some(large) = messages.iter().find(|message| message.payload.len() > most(message)) {
            let reason = format!(
                "a message to {} has {} bytes, more than {}; increase payload_max and the broker's maximum packet size, or set \
                 device_levels so that devices have fewer tags",
                large.topic,
                large.payload.len(),
                most(large)
            );
            return Err(Fault::other(self.node.broker.target(), reason));
        }
        self.out.extend(messages);
        Ok(())
    }

    /// Fills the connection's queue.
    fn push(&mut self) {
        while let Some(next) = self.out.front() {
            if !self.client.publish(&next.topic, 0, false, next.payload.clone()) {
                return;
            }
            self.out.pop_front();
        }
        if self.taken.is_some() && !self.is_marked {
            self.is_marked = self.client.unsubscribe(&self.marker);
        }
    }
}

/// Whether a host is online according to its state (Sparkplug 3.0, 6.4.29).
fn is_online(payload: &[u8]) -> bool {
    let json: Option<serde_json::Value> = serde_json::from_slice(payload).ok();
    json.is_some_and(|json| json.get("online").and_then(serde_json::Value::as_bool).unwrap_or(false))
}

fn decoded(payload: &[u8]) -> Option<Payload> {
    are_few(payload).then(|| Payload::decode(payload).ok()).flatten()
}

/// Whether a command requests a rebirth.
fn asks_for_birth(payload: &[u8]) -> bool {
    decoded(payload).is_some_and(|payload| {
        let asks = |metric: &crate::sparkplug::payload::Metric| {
            metric.name.as_deref() == Some(super::edge::REBIRTH) && metric.value == Some(Value::Boolean(true))
        };
        payload.metrics.iter().any(asks)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparkplug::payload::rebirth;

    #[test]
    fn requested_births_are_sent_one_at_a_time() {
        let start = Instant::now();
        let mut births = Births::default();
        births.told(start);
        let mut told = 0;
        for millis in 0..10_000 {
            let now = start + Duration::from_millis(millis);
            births.is_wanted = true;
            assert!(!births.is_due(now, false), "births do not pile up behind others");
            if births.is_due(now, true) {
                births.told(now);
                told += 1;
            }
        }
        assert_eq!(told, 9);
        births.is_wanted = false;
        assert!(births.due_at().is_none() && !births.is_due(start + Duration::from_secs(60), true));
        // A request before the first birth is valid.
        assert!(Births { is_wanted: true, last: None }.is_due(start, true));
    }

    #[test]
    fn commands_and_states_are_read() {
        assert!(asks_for_birth(&rebirth(1)));
        assert!(!asks_for_birth(&Payload::default().encode_to_vec()) && !asks_for_birth(&[0x12, 200]));
        assert!(is_online(br#"{"online":true,"timestamp":1}"#));
        for payload in [&br#"{"online":false,"timestamp":1}"#[..], b"ONLINE", b"", b"[1]"] {
            assert!(!is_online(payload));
        }
    }
}
