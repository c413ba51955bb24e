//! The requestor of Actions.

use super::{Common, refused};
use crate::pubsub::setters::{datagram_setters, transport_setters};
use crate::pubsub::{KeySource, PubSubStartError, PublisherId, SecurityMode, UdpOptions};
use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use taktwerk_crypto::PubSubProvider;
use taktwerk_net::entropy::OsEntropy;
use taktwerk_net::pubsub::{ActionUser, RunningActions};
use taktwerk_pubsub::Now;
use taktwerk_pubsub::action::{
    ActionDescription, ActionMapping, Outcome, Request, RequestId, Requestor, RequestorOptions,
};
use taktwerk_pubsub::config::Connection;
#[cfg(feature = "mqtt")]
use taktwerk_pubsub::config::{DataSetWriter, DataSetWriterTransport};
use taktwerk_pubsub::uadp::announcement::Announcement;
use taktwerk_types::{Instant, StatusCode, Variant};

/// Settings of a requestor. Each has a default.
#[must_use = "nothing happens before start()"]
pub struct ActionRequestorBuilder {
    common: Common,
    requestor_id: PublisherId,
    request_topic: Option<String>,
    descriptions: Vec<(PublisherId, ActionDescription)>,
}

impl fmt::Debug for ActionRequestorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionRequestorBuilder").field("id", &self.requestor_id).finish_non_exhaustive()
    }
}

impl ActionRequestorBuilder {
    common_setters!();

    /// The responder, on a broker: messages of others are not received. Default: all responders of the broker.
    pub fn responder(mut self, publisher_id: impl Into<PublisherId>) -> Self {
        self.common.connection.publisher_id = Some(publisher_id.into());
        self
    }

    /// The topic of requests on a broker, for responders that do not announce it. Default: the topic in their ActionResponder
    /// message; requests wait for that.
    pub fn request_topic(mut self, topic: &str) -> Self {
        self.request_topic = Some(topic.to_owned());
        self
    }

    /// Describes an Action of a responder that does not announce it: JSON needs the names of the fields. Default: the description
    /// in its ActionMetaData message; requests in JSON wait for that.
    pub fn describe(mut self, responder: impl Into<PublisherId>, description: ActionDescription) -> Self {
        self.descriptions.push((responder.into(), description));
        self
    }

    /// The address for responses: one of this station. Default: the address itself, which must then be a multicast group; on a
    /// broker, a topic of this requestor.
    pub fn response_address(mut self, url: &str) -> Self {
        self.common.response = Some(url.to_owned());
        self
    }

    /// Starts the requestor.
    ///
    /// # Errors
    /// The addresses are wrong, the kernel refused a resource, or there is no message security.
    pub fn start(self) -> Result<ActionRequestor, PubSubStartError> {
        #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // broker connections are added
        let Self { mut common, requestor_id, request_topic, descriptions } = self;
        let is_broker = common.is_broker();
        let mut from = common.connection.clone();
        #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))]
        let mut broker = Broker::default();
        #[cfg(feature = "mqtt")]
        if is_broker {
            use taktwerk_net::pubsub::mqtt;
            let topic = common.response.clone().unwrap_or_else(|| {
                mqtt::topics::action_response_topic(&common.mqtt.prefix, &from, &requestor_id)
            });
            common.response = Some(topic.clone());
            let mut filters = mqtt::topics::action_filters(&common.mqtt.prefix, &common.connection);
            filters.push(topic);
            let (inlet, status) = mqtt::action_inlet(&common.connection, filters, &common.mqtt)?;
            common.options.inlet = Some(inlet);
            common.options.link = Some(mqtt::publisher_link(&common.connection, &common.mqtt)?.0);
            let (prefix, quality) = (common.mqtt.prefix.clone(), common.mqtt.quality_of_service);
            broker = Broker { status: Some(status), prefix, quality, queues: BTreeSet::new() };
        }
        if let Some(url) = common.response.as_ref().filter(|_| !is_broker) {
            from.url.clone_from(url);
        }
        let mut options = RequestorOptions::new(requestor_id, common.security.clone());
        options.interval_nanos = common.interval_nanos();
        options.allow_unsecured = common.allow_unsecured;
        options.response_address.clone_from(&common.response);
        options.mapping = common.mapping();
        options.reliable = is_broker;
        options.needs_address = is_broker;
        options.request_address = request_topic.filter(|_| is_broker);
        let engine = Requestor::new(options, Arc::clone(&common.provider), Box::new(OsEntropy));
        let mut engine = engine.map_err(refused)?;
        for (responder, description) in &descriptions {
            engine.describe(responder, description, Now::default());
        }
        engine.set_connected(!is_broker, Now::default());
        let is_json = common.mapping() == ActionMapping::Json;
        #[cfg(feature = "mqtt")]
        let broker_status = broker.status.clone();
        let (waiting, known, curious) = (BTreeMap::new(), Vec::new(), Vec::new());
        let user = Asking { engine, is_json, broker, waiting, known, curious };
        let running = RunningActions::start(user, &common.connection, &from, common.options)?;
        Ok(ActionRequestor {
            running,
            is_json,
            #[cfg(feature = "mqtt")]
            broker_status,
        })
    }
}

/// The state of a requestor at a broker.
#[derive(Default)]
struct Broker {
    #[cfg(feature = "mqtt")]
    status: Option<taktwerk_net::pubsub::mqtt::BrokerStatus>,
    #[cfg(feature = "mqtt")]
    prefix: String,
    #[cfg(feature = "mqtt")]
    quality: taktwerk_net::pubsub::mqtt::QualityOfService,
    /// Queues of ActionMetaData announced by responders.
    #[cfg(feature = "mqtt")]
    queues: BTreeSet<String>,
}

/// Most additional queues of ActionMetaData that are subscribed to; further announced queues are ignored.
#[cfg(feature = "mqtt")]
const QUEUES_MAX: usize = 1024;

#[cfg(feature = "mqtt")]
impl Broker {
    /// Subscribes to the ActionMetaData of a DataSetWriter that sends it to its own queue (MetaDataQueueName, Part 14
    /// §6.4.2.5.5).
    fn hear_meta_data_of(&mut self, writer: &DataSetWriter) {
        let DataSetWriterTransport::Broker(transport) = &writer.transport else { return };
        let queue = transport.meta_data_queue_name.as_str();
        // Ignore wildcards: a responder must not make this requestor subscribe to other topics.
        let is_heard = taktwerk_net::pubsub::mqtt::topics::is_topic(queue);
        if !is_heard || self.queues.contains(queue) || self.queues.len() >= QUEUES_MAX {
            return;
        }
        self.queues.insert(queue.to_owned());
        if let Some(status) = &self.status {
            status.subscribe(queue, self.quality);
        }
    }
}

/// A PublisherId in its JSON form.
fn as_said(id: PublisherId, is_json: bool) -> PublisherId {
    if is_json { PublisherId::String(id.to_string().into()) } else { id }
}

/// Most responders whose Actions are stored; beyond, the oldest are forgotten.
const KNOWN_MAX: usize = 256;
/// Most descriptions stored per responder; further DataSetWriters are ignored.
const DESCRIPTIONS_MAX: usize = 1024;

/// What a responder has announced.
#[derive(Debug)]
struct Known {
    responder: PublisherId,
    actions: BTreeMap<u16, ActionDescription>,
    /// The DataSetWriters that it has announced.
    writers: Option<BTreeSet<u16>>,
}

impl Known {
    fn is_complete(&self) -> bool {
        self.writers.as_ref().is_some_and(|ids| ids.iter().all(|id| self.actions.contains_key(id)))
    }

    fn learn(&mut self, announcement: &Announcement) {
        if let Some(description) = ActionDescription::from_announcement(announcement) {
            let id = description.data_set_writer_id;
            if self.actions.len() < DESCRIPTIONS_MAX || self.actions.contains_key(&id) {
                self.actions.insert(id, description);
            }
        }
        if let Announcement::ActionResponder(connections) = announcement {
            let groups = connections.iter().flat_map(|connection| &connection.writer_groups);
            let writers = groups.flat_map(|group| &group.data_set_writers);
            let ids: BTreeSet<u16> = writers.map(|writer| writer.data_set_writer_id).collect();
            self.actions.retain(|id, _| ids.contains(id));
            self.writers = Some(ids);
        }
    }
}

/// A caller that waits for all announcements of a responder.
struct Curious {
    responder: PublisherId,
    tell: mpsc::Sender<Vec<ActionDescription>>,
    /// When the caller times out.
    until: Instant,
}

struct Asking {
    engine: Requestor,
    is_json: bool,
    #[cfg_attr(not(feature = "mqtt"), allow(dead_code))]
    broker: Broker,
    waiting: BTreeMap<RequestId, mpsc::Sender<Outcome>>,
    known: Vec<Known>,
    curious: Vec<Curious>,
}

impl Asking {
    /// Holds requests back until responses to them can be received.
    #[cfg(feature = "mqtt")]
    fn look(&mut self, now: Now) {
        if let Some(status) = &self.broker.status {
            self.engine.set_connected(status.is_subscribed(), now);
        }
    }

    #[cfg(not(feature = "mqtt"))]
    fn look(&mut self, _: Now) {}

    /// Sends requests to the announced address.
    #[cfg(feature = "mqtt")]
    fn address(&mut self, responder: &PublisherId, announcement: &Announcement, now: Now) {
        use taktwerk_net::pubsub::mqtt::topics::action_request_topic;
        let Announcement::ActionResponder(connections) = announcement else { return };
        if self.broker.status.is_none() {
            return;
        }
        for connection in connections.iter().filter_map(|one| Connection::from_schema(one).ok()) {
            for group in &connection.writer_groups {
                let topic = action_request_topic(&self.broker.prefix, &connection, group);
                for writer in &group.writers {
                    self.engine.set_address(responder, writer.data_set_writer_id, topic.clone(), now);
                    self.broker.hear_meta_data_of(writer);
                }
            }
        }
    }

    #[cfg(not(feature = "mqtt"))]
    fn address(&mut self, _: &PublisherId, _: &Announcement, _: Now) {}

    fn learn(&mut self, responder: PublisherId, announcement: &Announcement) {
        let at = match self.known.iter().position(|known| known.responder == responder) {
            Some(at) => at,
            None => {
                if self.known.len() >= KNOWN_MAX {
                    self.known.remove(0);
                }
                self.known.push(Known { responder, actions: BTreeMap::new(), writers: None });
                self.known.len() - 1
            }
        };
        if let Some(known) = self.known.get_mut(at) {
            known.learn(announcement);
        }
    }

    /// Notifies callers whose responder has announced everything.
    fn tell(&mut self) {
        let known = &self.known;
        self.curious.retain(|curious| {
            let of = |known: &&Known| known.responder == curious.responder && known.is_complete();
            let Some(known) = known.iter().find(of) else { return true };
            let _ = curious.tell.send(known.actions.values().cloned().collect());
            false
        });
    }
}

impl ActionUser for Asking {
    type Engine = Requestor;

    fn engine(&mut self) -> &mut Requestor {
        &mut self.engine
    }

    fn receive(&mut self, datagram: &mut [u8], now: Now) {
        // There is only one connection.
        if let Err(error) = self.engine.receive(0, datagram, now) {
            tracing::debug!(%error, "a response of an Action was dropped");
        }
    }

    fn turn(&mut self, now: Now) {
        self.look(now);
        while let Some(outcome) = self.engine.poll_outcome() {
            if let Some(waiting) = self.waiting.remove(&outcome.request_id) {
                // The caller may have timed out.
                let _ = waiting.send(outcome);
            }
        }
        while let Some((responder, announcement)) = self.engine.poll_announcement() {
            self.address(&responder, &announcement, now);
            self.learn(as_said(responder, self.is_json), &announcement);
        }
        self.tell();
    }
}

/// Invokes Actions of responders. It stops on drop.
#[derive(Debug)]
pub struct ActionRequestor {
    running: RunningActions<Asking>,
    is_json: bool,
    #[cfg(feature = "mqtt")]
    broker_status: Option<taktwerk_net::pubsub::mqtt::BrokerStatus>,
}

impl ActionRequestor {
    /// The state of the connection to the broker; `None` without a broker.
    #[cfg(feature = "mqtt")]
    #[must_use]
    pub fn broker(&self) -> Option<taktwerk_net::pubsub::mqtt::BrokerStatus> {
        self.broker_status.clone()
    }

    /// Begins a requestor at the address of its responders: `opc.udp://…`, `mqtt://…` and `mqtts://…` (UADP), `mqtt+json://…` and
    /// `mqtts+json://…`.
    pub fn builder(url: &str, requestor_id: impl Into<PublisherId>) -> ActionRequestorBuilder {
        ActionRequestorBuilder {
            common: Common::new(url, None),
            requestor_id: requestor_id.into(),
            request_topic: None,
            descriptions: Vec::new(),
        }
    }

    /// Lists the Actions of a responder: requests the announcements, and waits until all have arrived. On a broker they are
    /// retained.
    ///
    /// # Errors
    /// Bad_Timeout.
    pub fn discover(
        &self,
        responder: impl Into<PublisherId>,
        timeout: Duration,
    ) -> Result<Vec<ActionDescription>, StatusCode> {
        let (tell, told) = mpsc::channel();
        let responder = as_said(responder.into(), self.is_json);
        self.running.run(move |user, now| {
            // Callers that timed out are gone.
            user.curious.retain(|curious| curious.until > now.instant);
            user.curious.push(Curious { responder: responder.clone(), tell, until: now.instant + timeout });
            user.engine.discover(0, &responder, now);
        });
        told.recv_timeout(timeout).map_err(|_| StatusCode::BAD_TIMEOUT)
    }

    /// Invokes an Action and waits for its results, from any thread.
    ///
    /// # Errors
    /// The error of the responder. Bad_Timeout if no answer arrived in time: the Action may or may not have been executed.
    ///
    /// The Action was not executed if the status is Bad_TooManyOperations (too many requests are queued), Bad_NoCommunication (no
    /// connection to the broker), or Bad_WaitingForInitialData (the responder has not announced its address, or the fields of the
    /// Action). The same holds if the inputs do not match the announcement (Bad_TypeMismatch, Bad_TooManyArguments,
    /// Bad_ArgumentsMissing).
    pub fn invoke(
        &self,
        responder: impl Into<PublisherId>,
        data_set_writer_id: u16,
        action_target_id: u16,
        inputs: Vec<Variant>,
        timeout: Duration,
    ) -> Result<Vec<Variant>, StatusCode> {
        let (tell, told) = mpsc::channel();
        let request = Request {
            connection: 0,
            responder: responder.into(),
            data_set_writer_id,
            action_target_id,
            inputs,
            timeout_nanos: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
        };
        self.running.run(move |user, now| match user.engine.request(request, now) {
            Ok(id) => {
                user.waiting.insert(id, tell);
            }
            Err(error) => {
                tracing::debug!(%error, "an Action was not invoked");
                let status = StatusCode::BAD_TOO_MANY_OPERATIONS;
                let _ = tell.send(Outcome { request_id: 0, status, outputs: Vec::new() });
            }
        });
        // The engine reports the timeout; its thread gets one second more.
        let outcome =
            told.recv_timeout(timeout + Duration::from_secs(1)).map_err(|_| StatusCode::BAD_TIMEOUT)?;
        if outcome.status.is_bad() { Err(outcome.status) } else { Ok(outcome.outputs) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta_data(writer_id: u16) -> Announcement {
        Announcement::ActionMetaData {
            writer_id,
            targets: Vec::new(),
            request: Box::default(),
            response: Box::default(),
            methods: Vec::new(),
        }
    }

    #[test]
    fn a_responder_with_endless_announcements_cannot_fill_memory() {
        let mut known = Known { responder: PublisherId::UInt16(7), actions: BTreeMap::new(), writers: None };
        for id in 1..=u16::MAX {
            known.learn(&meta_data(id));
        }
        assert_eq!(known.actions.len(), DESCRIPTIONS_MAX);
        // Descriptions that are stored already can still change.
        known.learn(&meta_data(1));
        assert!(known.actions.contains_key(&1));
        assert!(!known.is_complete(), "it has not said what it has");
        known.learn(&Announcement::ActionResponder(Vec::new()));
        assert!(known.actions.is_empty() && known.is_complete());
    }
}
