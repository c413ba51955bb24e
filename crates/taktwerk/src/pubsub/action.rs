//! Actions (Part 14 §5.4.3): something is asked for over PubSub, done once, and its results come back.
//!
//! ```no_run
//! use std::time::Duration;
//! use taktwerk::pubsub::{ActionRequestor, ActionResponder, SecurityMode, StaticKeys};
//! use taktwerk::{StatusCode, Variant};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = StaticKeys::new(); // with the keys of the group, or a KeyServiceClient
//! let responder = ActionResponder::builder("opc.udp://239.0.0.1:4840", 7)
//!     .security(SecurityMode::SignAndEncrypt, "plant", keys.clone())
//!     .action(1, 1, |inputs| match inputs.first() {
//!         Some(Variant::Double(setpoint)) => Ok(vec![(setpoint * 2.0).into()]),
//!         _ => Err(StatusCode::BAD_INVALID_ARGUMENT),
//!     })
//!     .start()?;
//!
//! let requestor = ActionRequestor::builder("opc.udp://239.0.0.1:4840", 9)
//!     .security(SecurityMode::SignAndEncrypt, "plant", keys)
//!     .start()?;
//! let results = requestor.invoke(7, 1, 1, vec![21.0.into()], Duration::from_secs(5))?;
//! # Ok(())
//! # }
//! ```

use super::action_methods::MethodAction;
use super::setters::{datagram_setters, transport_setters};
use super::{KeySource, PubSubStartError, PublisherId, SecurityMode, UdpOptions};
use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use taktwerk_crypto::PubSubProvider;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::entropy::OsEntropy;
use taktwerk_net::pubsub::{ActionDriverOptions, ActionUser, Commander, PubSubError, RunningActions};
use taktwerk_pubsub::Now;
use taktwerk_pubsub::action::{
    ActionDescription, ActionError, ActionTarget, Execution, Outcome, Request, RequestId, Requestor,
    RequestorOptions, Responder, ResponderOptions,
};
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetSource, DataSetWriter, GroupSecurity, WriterGroup,
};
use taktwerk_pubsub::uadp::announcement::Announcement;
use taktwerk_schema::{ActionTargetDataType, DataSetMetaDataType};
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{Instant, NodeId, StatusCode, Variant};

/// Does what an Action is for; called on a worker thread, one call after the other.
type Handler = Box<dyn FnMut(Vec<Variant>) -> Result<Vec<Variant>, StatusCode> + Send>;

/// What both builders are given.
struct Common {
    connection: Connection,
    /// Where responses come, if not where requests go.
    response: Option<String>,
    security: GroupSecurity,
    allow_unsecured: bool,
    interval: Duration,
    options: ActionDriverOptions,
    #[cfg(feature = "mqtt")]
    mqtt: taktwerk_net::pubsub::mqtt::MqttOptions,
    provider: Arc<dyn PubSubProvider>,
}

impl Common {
    fn new(url: &str, publisher_id: Option<PublisherId>) -> Self {
        Self {
            connection: Connection::new("actions", publisher_id, url),
            response: None,
            security: GroupSecurity::default(),
            allow_unsecured: false,
            interval: Duration::from_millis(100),
            options: ActionDriverOptions::default(),
            #[cfg(feature = "mqtt")]
            mqtt: Default::default(),
            provider: Arc::new(AwsPubSubProvider),
        }
    }

    fn interval_nanos(&self) -> u64 {
        u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX)
    }

    fn is_broker(&self) -> bool {
        self.connection.url.starts_with("mqtt")
    }
}

fn refused(error: &ActionError) -> PubSubStartError {
    tracing::debug!(%error, "Actions");
    PubSubStartError::UnsecuredActions
}

macro_rules! common_setters {
    () => {
        transport_setters! { options: common.options, mqtt: common.mqtt, provider: common.provider }
        datagram_setters! { common.options }

        /// Where keys of the security group come from, if not said with `security()`.
        pub fn keys(mut self, keys: impl KeySource + 'static) -> Self {
            self.common.options.keys = Some(Box::new(keys));
            self
        }

        fn connection(mut self, set: impl FnOnce(&mut Connection)) -> Self {
            set(&mut self.common.connection);
            self
        }

        fn secured(mut self, set: impl FnOnce(&mut GroupSecurity)) -> Self {
            set(&mut self.common.security);
            self
        }

        /// Works without message security: whoever reaches the address may ask and answer. Default: no.
        pub fn allow_unsecured(mut self) -> Self {
            self.common.allow_unsecured = true;
            self
        }

        /// Between repetitions of requests or responses. Default: 100 ms.
        pub fn interval(mut self, interval: Duration) -> Self {
            self.common.interval = interval;
            self
        }
    };
}

/// A responder to be. Whatever is not set has the default that is named with it.
#[must_use = "nothing happens before start()"]
pub struct ActionResponderBuilder {
    common: Common,
    publisher_id: PublisherId,
    handlers: BTreeMap<ActionTarget, Handler>,
    descriptions: Vec<ActionDescription>,
    methods: Vec<(ActionTarget, MethodAction)>,
}

impl fmt::Debug for ActionResponderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionResponderBuilder")
            .field("actions", &self.handlers.len())
            .finish_non_exhaustive()
    }
}

impl ActionResponderBuilder {
    common_setters!();

    /// What is done for an Action: called on a worker thread, one call after the other, so it may wait.
    pub fn action(
        mut self,
        data_set_writer_id: u16,
        action_target_id: u16,
        handler: impl FnMut(Vec<Variant>) -> Result<Vec<Variant>, StatusCode> + Send + 'static,
    ) -> Self {
        let target = ActionTarget { data_set_writer_id, action_target_id };
        self.handlers.insert(target, Box::new(handler));
        self
    }

    /// Describes Actions to requestors: their names, and the fields of requests and responses. What is not described is
    /// announced with its ids only.
    pub fn describe(mut self, description: ActionDescription) -> Self {
        self.descriptions.retain(|one| one.data_set_writer_id != description.data_set_writer_id);
        self.descriptions.push(description);
        self
    }

    /// Methods of a server as Actions, one for each target of the description (PublishedActionMethodDataType, Part 14
    /// §6.2.3.10.6). They are called with the rights of `roles`, as if over a channel that is secured like the requests;
    /// for more than Anonymous may, there has to be a role here that may it. Whoever has the keys of the security group
    /// can ask for them.
    pub fn methods(
        mut self,
        space: &Arc<AddressSpace>,
        description: ActionDescription,
        roles: &[NodeId],
    ) -> Self {
        for (target, method) in description.targets.iter().zip(&description.methods) {
            let action = MethodAction::new(space, method, roles);
            self.methods.push((
                ActionTarget {
                    data_set_writer_id: description.data_set_writer_id,
                    action_target_id: target.action_target_id,
                },
                action,
            ));
        }
        self.describe(description)
    }

    /// The WriterGroup that answers, with the DataSetWriters of all Actions.
    fn complete(&mut self) {
        let ids: BTreeSet<u16> = self.handlers.keys().map(|target| target.data_set_writer_id).collect();
        for id in ids {
            if self.descriptions.iter().any(|one| one.data_set_writer_id == id) {
                continue;
            }
            let targets = self.handlers.keys().filter(|target| target.data_set_writer_id == id);
            let targets = targets.map(|target| ActionTargetDataType {
                action_target_id: target.action_target_id,
                ..ActionTargetDataType::default()
            });
            let targets = targets.collect();
            let meta_data = DataSetMetaDataType { name: format!("Action{id}").into(), ..Default::default() };
            self.descriptions.push(ActionDescription {
                data_set_writer_id: id,
                targets,
                request: meta_data.clone(),
                response: meta_data,
                methods: Vec::new(),
            });
        }
        let connection = &mut self.common.connection;
        if connection.writer_groups.is_empty() {
            let millis = self.common.interval.as_secs_f64() * 1e3;
            let mut group = WriterGroup::dynamic("actions", 1, millis);
            group.security = self.common.security.clone();
            for description in &self.descriptions {
                let name = description.request.name.as_str();
                group.writers.push(DataSetWriter::dynamic(name, description.data_set_writer_id, ""));
            }
            connection.writer_groups.push(group);
        }
    }

    /// Starts answering.
    ///
    /// # Errors
    /// What is wrong with the address, or what the kernel did not give; there is no message security.
    pub fn start(mut self) -> Result<ActionResponder, PubSubStartError> {
        for (target, mut action) in core::mem::take(&mut self.methods) {
            action.secured_like(self.common.security.mode);
            self.handlers.insert(target, Box::new(move |inputs| action.call(inputs)));
        }
        self.complete();
        let Self { common, publisher_id, mut handlers, descriptions, .. } = self;
        let interval_nanos = common.interval_nanos();
        let mut options = ResponderOptions::new(publisher_id, common.security.clone());
        options.interval_nanos = interval_nanos;
        options.allow_unsecured = common.allow_unsecured;
        if common.is_broker() {
            options.announcement_len_max = None;
        }
        let targets: Vec<ActionTarget> = handlers.keys().copied().collect();
        let entropy = Box::new(OsEntropy);
        let engine = Responder::new(options, targets, Arc::clone(&common.provider), entropy);
        let mut engine = engine.map_err(|error| refused(&error))?;
        // Nothing is announced before the driver says so.
        engine.describe(common.connection.clone(), descriptions, Now::default());
        let (to_do, work) = mpsc::channel::<Execution>();
        #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // brokers' ends are added
        let mut driver = common.options;
        #[cfg(feature = "mqtt")]
        if common.connection.url.starts_with("mqtt") {
            use taktwerk_net::pubsub::mqtt;
            let topic = mqtt::topics::action_request_topic(&common.mqtt.prefix, &common.connection);
            driver.inlet = Some(mqtt::action_inlet(&common.connection, vec![topic], &common.mqtt)?.0);
            driver.link = Some(mqtt::publisher_link(&common.connection, &common.mqtt)?.0);
        }
        let user = Answering { engine, to_do };
        let running = RunningActions::start(user, &common.connection, &common.connection, driver)?;
        let commander = running.commander();
        // It ends when the engine is gone, after what it is doing.
        let worker = std::thread::Builder::new().name("pubsub-execute".to_owned());
        let worker = worker.spawn(move || {
            while let Ok(execution) = work.recv() {
                let outcome = match handlers.get_mut(&execution.target) {
                    Some(handler) => handler(execution.inputs),
                    None => Err(StatusCode::BAD_NOT_FOUND),
                };
                finish(&commander, execution.id, outcome);
            }
        });
        worker.map_err(|source| PubSubError::Thread { thread: "Actions' worker", source })?;
        Ok(ActionResponder { _running: running })
    }
}

fn finish(
    commander: &Commander<Answering>,
    id: taktwerk_pubsub::action::ExecutionId,
    outcome: Result<Vec<Variant>, StatusCode>,
) {
    let (status, outputs) = match outcome {
        Ok(outputs) => (StatusCode::GOOD, outputs),
        Err(status) => (status, Vec::new()),
    };
    commander.run(move |user, now| {
        user.engine.finish(id, status, outputs, now);
    });
}

struct Answering {
    engine: Responder,
    to_do: mpsc::Sender<Execution>,
}

impl ActionUser for Answering {
    type Engine = Responder;

    fn engine(&mut self) -> &mut Responder {
        &mut self.engine
    }

    fn receive(&mut self, datagram: &mut [u8], now: Now) {
        match self.engine.receive(datagram, now) {
            // The worker ends after this.
            Ok(executions) => executions.into_iter().for_each(|execution| drop(self.to_do.send(execution))),
            Err(error) => tracing::debug!(%error, "a request for an Action was dropped"),
        }
    }

    fn turn(&mut self, _: Now) {}
}

/// Executes Actions for requestors. It stops when it is dropped.
#[derive(Debug)]
pub struct ActionResponder {
    _running: RunningActions<Answering>,
}

impl ActionResponder {
    /// A responder at an address: `opc.udp://…`, `mqtt://…` (UADP).
    pub fn builder(url: &str, publisher_id: u16) -> ActionResponderBuilder {
        let publisher_id = PublisherId::UInt16(publisher_id);
        let common = Common::new(url, Some(publisher_id.clone()));
        ActionResponderBuilder {
            common,
            publisher_id,
            handlers: BTreeMap::new(),
            descriptions: Vec::new(),
            methods: Vec::new(),
        }
    }

    /// Responders for the Methods that a configuration publishes as Actions: one for each WriterGroup with DataSetWriters
    /// of PublishedActionMethods. Methods are called with the rights of `roles`; keys of groups with message security
    /// have to be given with `keys()`.
    pub fn of(
        configuration: &Configuration,
        space: &Arc<AddressSpace>,
        roles: &[NodeId],
    ) -> Vec<ActionResponderBuilder> {
        let mut builders = Vec::new();
        for connection in configuration.connections.iter().filter(|one| configuration.enabled && one.enabled)
        {
            let Some(publisher_id) = &connection.publisher_id else { continue };
            for group in connection.writer_groups.iter().filter(|group| group.enabled) {
                let mut builder = Self::builder(&connection.url, 0);
                builder.publisher_id = publisher_id.clone();
                let mut group = group.clone();
                group.writers.retain(|writer| {
                    let set = configuration.data_set(&writer.data_set_name);
                    writer.enabled
                        && set.is_some_and(|set| matches!(set.source, DataSetSource::ActionMethods(_)))
                });
                for writer in &group.writers {
                    let Some(set) = configuration.data_set(&writer.data_set_name) else { continue };
                    let DataSetSource::ActionMethods(actions) = &set.source else { continue };
                    let description = ActionDescription {
                        data_set_writer_id: writer.data_set_writer_id,
                        targets: actions.action_targets.clone(),
                        request: actions.request_data_set_meta_data.clone(),
                        response: set.meta_data.clone(),
                        methods: actions.action_methods.clone(),
                    };
                    builder = builder.methods(space, description, roles);
                }
                if builder.descriptions.is_empty() {
                    continue;
                }
                let millis = group.publishing_interval.clamp(1.0, 60_000.0);
                builder.common.interval = Duration::from_secs_f64(millis / 1e3);
                builder.common.security = group.security.clone();
                builder.common.connection = connection.clone();
                builder.common.connection.writer_groups = vec![group];
                builder.common.connection.reader_groups.clear();
                builders.push(builder);
            }
        }
        builders
    }
}

/// A requestor to be. Whatever is not set has the default that is named with it.
#[must_use = "nothing happens before start()"]
pub struct ActionRequestorBuilder {
    common: Common,
    requestor_id: PublisherId,
}

impl fmt::Debug for ActionRequestorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionRequestorBuilder").field("id", &self.requestor_id).finish_non_exhaustive()
    }
}

impl ActionRequestorBuilder {
    common_setters!();

    /// Who is asked: has to be said for brokers only, where each responder has a topic.
    pub fn responder(mut self, publisher_id: u16) -> Self {
        self.common.connection.publisher_id = Some(PublisherId::UInt16(publisher_id));
        self
    }

    /// Where responses are to be sent: an address of this station. Default: to the address itself, which has to be a
    /// multicast group then; on a broker a topic of the requestor's own.
    pub fn response_address(mut self, url: &str) -> Self {
        self.common.response = Some(url.to_owned());
        self
    }

    /// Starts.
    ///
    /// # Errors
    /// What is wrong with the addresses, or what the kernel did not give; there is no message security.
    pub fn start(self) -> Result<ActionRequestor, PubSubStartError> {
        #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // brokers' ends are added
        let Self { mut common, requestor_id } = self;
        let mut from = common.connection.clone();
        #[cfg(feature = "mqtt")]
        if common.is_broker() {
            use taktwerk_net::pubsub::mqtt;
            let topic = common.response.clone().unwrap_or_else(|| {
                mqtt::topics::action_response_topic(&common.mqtt.prefix, &from, &requestor_id)
            });
            common.response = Some(topic.clone());
            let mut filters = mqtt::topics::action_filters(&common.mqtt.prefix, &common.connection);
            filters.push(topic);
            common.options.inlet = Some(mqtt::action_inlet(&common.connection, filters, &common.mqtt)?.0);
            if common.connection.publisher_id.is_none() {
                let reason = "requests go to a topic of their responder: name it with responder()".to_owned();
                return Err(PubSubError::Address { url: from.url, reason }.into());
            }
            common.options.link = Some(mqtt::publisher_link(&common.connection, &common.mqtt)?.0);
        }
        if let Some(url) = common.response.as_ref().filter(|_| !common.is_broker()) {
            from.url.clone_from(url);
        }
        let mut options = RequestorOptions::new(requestor_id, common.security.clone());
        options.interval_nanos = common.interval_nanos();
        options.allow_unsecured = common.allow_unsecured;
        options.response_address.clone_from(&common.response);
        let engine = Requestor::new(options, Arc::clone(&common.provider), Box::new(OsEntropy));
        let engine = engine.map_err(|error| refused(&error))?;
        let user = Asking { engine, waiting: BTreeMap::new(), known: Vec::new(), curious: Vec::new() };
        let running = RunningActions::start(user, &common.connection, &from, common.options)?;
        Ok(ActionRequestor { running })
    }
}

/// Responders whose Actions are known; of more than these the oldest are forgotten.
const KNOWN_MAX: usize = 256;
/// Descriptions that are kept of a responder; what it says of more DataSetWriters is not.
const DESCRIPTIONS_MAX: usize = 1024;

/// What a responder has said of itself.
#[derive(Debug)]
struct Known {
    responder: PublisherId,
    actions: BTreeMap<u16, ActionDescription>,
    /// The DataSetWriters that it says it has.
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

/// Somebody who waits for all that a responder has to say of itself.
struct Curious {
    responder: PublisherId,
    tell: mpsc::Sender<Vec<ActionDescription>>,
    /// When nobody waits any more.
    until: Instant,
}

struct Asking {
    engine: Requestor,
    waiting: BTreeMap<RequestId, mpsc::Sender<Outcome>>,
    known: Vec<Known>,
    curious: Vec<Curious>,
}

impl Asking {
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

    /// Tells those who wait for a responder of which all is known.
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
        // There is one connection.
        if let Err(error) = self.engine.receive(0, datagram, now) {
            tracing::debug!(%error, "a response of an Action was dropped");
        }
    }

    fn turn(&mut self, _: Now) {
        while let Some(outcome) = self.engine.poll_outcome() {
            if let Some(waiting) = self.waiting.remove(&outcome.request_id) {
                // Nobody waits any more.
                let _ = waiting.send(outcome);
            }
        }
        while let Some((responder, announcement)) = self.engine.poll_announcement() {
            self.learn(responder, &announcement);
        }
        self.tell();
    }
}

/// Asks responders for Actions. It stops when it is dropped.
#[derive(Debug)]
pub struct ActionRequestor {
    running: RunningActions<Asking>,
}

impl ActionRequestor {
    /// A requestor at the address of its responders: `opc.udp://…`, `mqtt://…` (UADP).
    pub fn builder(url: &str, requestor_id: u16) -> ActionRequestorBuilder {
        let requestor_id = PublisherId::UInt16(requestor_id);
        ActionRequestorBuilder { common: Common::new(url, None), requestor_id }
    }

    /// What can be asked of a responder: asks it, and waits until it has said everything; on a broker this is retained.
    ///
    /// # Errors
    /// Bad_Timeout.
    pub fn discover(&self, responder: u16, timeout: Duration) -> Result<Vec<ActionDescription>, StatusCode> {
        let (tell, told) = mpsc::channel();
        let responder = PublisherId::UInt16(responder);
        self.running.run(move |user, now| {
            // Those whom nobody answered have gone.
            user.curious.retain(|curious| curious.until > now.instant);
            user.curious.push(Curious { responder: responder.clone(), tell, until: now.instant + timeout });
            user.engine.discover(0, &responder, now);
        });
        told.recv_timeout(timeout).map_err(|_| StatusCode::BAD_TIMEOUT)
    }

    /// Asks a responder for an Action and waits for its results, from any thread.
    ///
    /// # Errors
    /// What the responder says; Bad_Timeout if it has not said it in time: the Action may or may not have been
    /// executed. Bad_TooManyOperations if too many requests wait already.
    pub fn invoke(
        &self,
        responder: u16,
        data_set_writer_id: u16,
        action_target_id: u16,
        inputs: Vec<Variant>,
        timeout: Duration,
    ) -> Result<Vec<Variant>, StatusCode> {
        let (tell, told) = mpsc::channel();
        let request = Request {
            connection: 0,
            responder: PublisherId::UInt16(responder),
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
                tracing::debug!(%error, "an Action was not asked for");
                let status = StatusCode::BAD_TOO_MANY_OPERATIONS;
                let _ = tell.send(Outcome { request_id: 0, status, outputs: Vec::new() });
            }
        });
        // The engine tells when the time is over; a second more is for its thread.
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
    fn a_responder_that_goes_on_and_on_fills_no_memory() {
        let mut known = Known { responder: PublisherId::UInt16(7), actions: BTreeMap::new(), writers: None };
        for id in 1..=u16::MAX {
            known.learn(&meta_data(id));
        }
        assert_eq!(known.actions.len(), DESCRIPTIONS_MAX);
        // What is known already may still change.
        known.learn(&meta_data(1));
        assert!(known.actions.contains_key(&1));
        assert!(!known.is_complete(), "it has not said what it has");
        known.learn(&Announcement::ActionResponder(Vec::new()));
        assert!(known.actions.is_empty() && known.is_complete());
    }
}
