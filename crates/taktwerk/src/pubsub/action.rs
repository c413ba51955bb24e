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
use crate::lock::lock;
use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use taktwerk_crypto::PubSubProvider;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::entropy::OsEntropy;
use taktwerk_net::pubsub::{ActionDriverOptions, ActionUser, Commander, PubSubError, RunningActions};
use taktwerk_pubsub::Now;
use taktwerk_pubsub::action::{
    ActionDescription, ActionEngine, ActionError, ActionMapping, ActionTarget, Execution, ExecutionId,
    Responder, ResponderMemory, ResponderOptions,
};
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetSource, DataSetWriter, GroupSecurity, TRANSPORT_MQTT_JSON, WriterGroup,
    unused,
};
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_schema::{ActionTargetDataType, DataSetFieldContentMask, DataSetMetaDataType};
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{NodeId, StatusCode, Variant};

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

    fn mapping(&self) -> ActionMapping {
        match self.connection.transport_profile_uri.as_str() {
            TRANSPORT_MQTT_JSON => ActionMapping::Json,
            _ => ActionMapping::Uadp,
        }
    }
}

fn refused(error: ActionError) -> PubSubStartError {
    match error {
        ActionError::Unsecured => PubSubStartError::UnsecuredActions,
        error => PubSubStartError::Actions(error),
    }
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

        fn secured(mut self, mode: SecurityMode, security_group_id: &str) -> Self {
            (self.common.security.mode, self.common.security.security_group_id) =
                (mode, security_group_id.to_owned());
            self
        }

        /// Works without message security: whoever reaches the address may ask and answer. Default: no. JSON has no
        /// message security, and needs this: what protects it is the broker, with TLS and rights for each topic.
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

mod requestor;
mod responders;

pub use requestor::{ActionRequestor, ActionRequestorBuilder};
pub use responders::{ActionResponders, ActionRespondersBuilder, FailedResponder};

/// A responder to be. Whatever is not set has the default that is named with it.
#[must_use = "nothing happens before start()"]
pub struct ActionResponderBuilder {
    common: Common,
    publisher_id: PublisherId,
    handlers: BTreeMap<ActionTarget, Handler>,
    descriptions: Vec<ActionDescription>,
    methods: Vec<(ActionTarget, MethodAction)>,
    raw_data: bool,
    /// Of the responder that answered before in its place.
    legacy: Option<Legacy>,
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

    /// Keeps in a file what was received of secured messages, so that no recorded request is executed again after a restart
    /// (but what came in the last second before a crash). Each responder needs a file of its own. Default: nothing is kept.
    pub fn replay_floor(mut self, path: impl Into<PathBuf>) -> Self {
        self.common.options.replay_floor = Some(path.into());
        self
    }

    /// Describes Actions to requestors: their names, and the fields of requests and responses. What is not described is
    /// announced with its ids only.
    pub fn describe(mut self, description: ActionDescription) -> Self {
        self.descriptions.retain(|one| one.data_set_writer_id != description.data_set_writer_id);
        self.descriptions.push(description);
        self
    }

    /// Fields are sent as RawData: without types, as the descriptions have them, which all Actions need then. Default: as
    /// Variants.
    pub fn raw_data(mut self) -> Self {
        self.raw_data = true;
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

    /// Answers as a WriterGroup does.
    fn follow(&mut self, group: &WriterGroup) {
        let millis = group.publishing_interval.clamp(1.0, 60_000.0);
        self.common.interval = Duration::from_secs_f64(millis / 1e3);
        self.common.security = group.security.clone();
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
        let is_json = self.common.mapping() == ActionMapping::Json;
        let connection = &mut self.common.connection;
        if connection.writer_groups.is_empty() {
            let millis = self.common.interval.as_secs_f64() * 1e3;
            let mut group = match is_json {
                true => WriterGroup::json("actions", 1, millis),
                false => WriterGroup::dynamic("actions", 1, millis),
            };
            group.security = self.common.security.clone();
            for description in &self.descriptions {
                let (name, id) = (description.request.name.as_str(), description.data_set_writer_id);
                let mut writer = match is_json {
                    true => DataSetWriter::json(name, id, ""),
                    false => DataSetWriter::dynamic(name, id, ""),
                };
                writer.field_content_mask = match self.raw_data {
                    true => DataSetFieldContentMask::RAW_DATA,
                    false => DataSetFieldContentMask::EMPTY,
                };
                group.writers.push(writer);
            }
            connection.writer_groups.push(group);
        }
    }

    /// Starts answering.
    ///
    /// # Errors
    /// What is wrong with the address, or what the kernel did not give; there is no message security; fields are to be
    /// DataValues, or RawData that they cannot be.
    pub fn start(mut self) -> Result<ActionResponder, PubSubStartError> {
        for (target, mut action) in core::mem::take(&mut self.methods) {
            action.secured_like(self.common.security.mode);
            self.handlers.insert(target, Box::new(move |inputs| action.call(inputs)));
        }
        self.complete();
        let Self { common, publisher_id, mut handlers, descriptions, legacy, .. } = self;
        let interval_nanos = common.interval_nanos();
        let mut options = ResponderOptions::new(publisher_id, common.security.clone());
        options.interval_nanos = interval_nanos;
        options.allow_unsecured = common.allow_unsecured;
        options.mapping = common.mapping();
        options.reliable = common.is_broker();
        if common.is_broker() {
            options.announcement_len_max = None;
        } else if let Some(wanted) = unused::discovery_message_len_max(&common.connection) {
            options.announcement_len_max = options.announcement_len_max.map(|room| room.min(wanted));
        }
        let targets: Vec<ActionTarget> = handlers.keys().copied().collect();
        let entropy = Box::new(OsEntropy);
        let engine = Responder::new(options, targets, Arc::clone(&common.provider), entropy);
        let mut engine = engine.map_err(refused)?;
        // Nothing is announced before the driver says so.
        engine.describe(common.connection.clone(), descriptions, Now::default()).map_err(refused)?;
        let results = legacy.as_ref().map_or_else(Arc::default, |legacy| Arc::clone(&legacy.results));
        if let Some(legacy) = legacy {
            engine.succeed(legacy.memory);
        }
        let (to_do, work) = mpsc::channel::<Work>();
        #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // brokers' ends are added
        let mut driver = common.options;
        #[cfg(feature = "mqtt")]
        if common.connection.url.starts_with("mqtt") {
            use taktwerk_net::pubsub::mqtt;
            let groups = common.connection.writer_groups.iter();
            let (prefix, connection) = (&common.mqtt.prefix, &common.connection);
            let topics = groups.map(|group| mqtt::topics::action_request_topic(prefix, connection, group));
            let (inlet, status) = mqtt::action_inlet(&common.connection, topics.collect(), &common.mqtt)?;
            driver.inlet = Some(inlet);
            driver.hears = Some(Box::new(move || status.is_subscribed()));
            driver.link = Some(mqtt::publisher_link(&common.connection, &common.mqtt)?.0);
        }
        let user = Answering { engine, to_do };
        let running = RunningActions::start(user, &common.connection, &common.connection, driver)?;
        let their_results = Arc::clone(&results);
        // It ends when the engine is gone, after what it is doing.
        let worker = std::thread::Builder::new().name("pubsub-execute".to_owned());
        let worker = worker.spawn(move || {
            while let Ok(Work { execution, until }) = work.recv() {
                let outcome = match handlers.get_mut(&execution.target) {
                    // Whoever asked has given up while others were served.
                    _ if until.is_some_and(|until| until <= std::time::Instant::now()) => {
                        Err(StatusCode::BAD_TIMEOUT)
                    }
                    Some(handler) => handler(execution.inputs),
                    None => Err(StatusCode::BAD_NOT_FOUND),
                };
                their_results.finish(execution.id, outcome);
            }
        });
        worker.map_err(|source| PubSubError::Thread { thread: "Actions' worker", source })?;
        results.go_to(running.commander());
        Ok(ActionResponder { running, results })
    }
}

/// What came of an execution.
type Finished = (ExecutionId, Result<Vec<Variant>, StatusCode>);

/// Where the results of executions go.
enum Target {
    /// To the responder that runs.
    Responder(Commander<Answering>),
    /// They wait for it.
    Nobody(Vec<Finished>),
}

/// Brings the results of executions to the responder that runs when they are there: it may be another one than that which
/// took the request.
struct Results(Mutex<Target>);

impl Default for Results {
    fn default() -> Self {
        Self(Mutex::new(Target::Nobody(Vec::new())))
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").finish_non_exhaustive()
    }
}

impl Results {
    fn finish(&self, id: ExecutionId, outcome: Result<Vec<Variant>, StatusCode>) {
        match &mut *lock(&self.0) {
            Target::Responder(commander) => tell(commander, id, outcome),
            Target::Nobody(waiting) => waiting.push((id, outcome)),
        }
    }

    /// From now on they go to this responder, and those that wait.
    fn go_to(&self, commander: Commander<Answering>) {
        let mut target = lock(&self.0);
        if let Target::Nobody(waiting) = &mut *target {
            for (id, outcome) in core::mem::take(waiting) {
                tell(&commander, id, outcome);
            }
        }
        *target = Target::Responder(commander);
    }

    /// From now on they wait.
    fn wait(&self) {
        *lock(&self.0) = Target::Nobody(Vec::new());
    }
}

fn tell(commander: &Commander<Answering>, id: ExecutionId, outcome: Result<Vec<Variant>, StatusCode>) {
    let (status, outputs) = match outcome {
        Ok(outputs) => (StatusCode::GOOD, outputs),
        Err(status) => (status, Vec::new()),
    };
    commander.run(move |user, now| {
        user.engine.finish(id, status, outputs, now);
    });
}

/// What a responder leaves to the one that answers in its place.
#[derive(Debug, Clone)]
struct Legacy {
    memory: ResponderMemory,
    results: Arc<Results>,
}

/// Something for the worker.
struct Work {
    execution: Execution,
    /// When nobody waits for it any more.
    until: Option<std::time::Instant>,
}

struct Answering {
    engine: Responder,
    to_do: mpsc::Sender<Work>,
}

impl ActionUser for Answering {
    type Engine = Responder;

    fn engine(&mut self) -> &mut Responder {
        &mut self.engine
    }

    fn receive(&mut self, datagram: &mut [u8], now: Now) {
        match self.engine.receive(datagram, now) {
            Ok(executions) => {
                for execution in executions {
                    let span = execution.deadline.map(|deadline| deadline.since(now.instant));
                    // What is too long to be said never ends.
                    let until = span.and_then(|span| std::time::Instant::now().checked_add(span));
                    // The worker ends after this.
                    drop(self.to_do.send(Work { execution, until }));
                }
            }
            Err(error) => tracing::debug!(%error, "a request for an Action was dropped"),
        }
    }

    fn turn(&mut self, _: Now) {}
}

/// Executes Actions for requestors. It stops when it is dropped.
#[derive(Debug)]
pub struct ActionResponder {
    running: RunningActions<Answering>,
    results: Arc<Results>,
}

impl ActionResponder {
    /// Ends, and leaves what it knows to the one that follows: requests that come again are not executed again, and what
    /// executes is answered.
    fn hand_over(self) -> Legacy {
        // What comes before it has retired is in its queue in front of that.
        self.results.wait();
        let (tell, told) = mpsc::channel();
        self.running.run(move |user, _| {
            let _ = tell.send(user.engine.retire());
        });
        let memory = told.recv_timeout(Duration::from_secs(10)).unwrap_or_else(|_| {
            tracing::error!(
                "a responder of Actions did not say what it knows: requests may be executed again"
            );
            ResponderMemory::default()
        });
        Legacy { memory, results: Arc::clone(&self.results) }
    }

    /// The keys of a security group are known to be others now: they are asked for at once.
    pub fn refresh_keys(&self, security_group_id: &str) {
        let group = security_group_id.to_owned();
        self.running.run(move |user, now| user.engine.refresh_keys(&group, now));
    }

    /// Keys that a key service pushes, if the security group is this responder's.
    pub fn set_keys(&self, security_group_id: &str, keys: SecurityKeys) {
        let group = security_group_id.to_owned();
        self.running.run(move |user, now| {
            // A group that it does not use is none of its business.
            let _ = user.engine.set_keys(&group, Ok(&keys), now);
        });
    }

    /// A responder at an address: `opc.udp://…`, `mqtt://…` and `mqtts://…` (UADP), `mqtt+json://…` and `mqtts+json://…`.
    pub fn builder(url: &str, publisher_id: impl Into<PublisherId>) -> ActionResponderBuilder {
        let publisher_id = publisher_id.into();
        let common = Common::new(url, Some(publisher_id.clone()));
        ActionResponderBuilder {
            common,
            publisher_id,
            handlers: BTreeMap::new(),
            descriptions: Vec::new(),
            methods: Vec::new(),
            raw_data: false,
            legacy: None,
        }
    }

    /// Responders for the Methods that a configuration publishes as Actions: one for each WriterGroup with DataSetWriters
    /// of PublishedActionMethods. Methods are called with the rights of `roles`; keys of groups with message security
    /// have to be given with `keys()`. [`ActionResponders`] are those of a configuration that changes.
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
                let mut builder = Self::builder(&connection.url, publisher_id.clone());
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
                builder.follow(&group);
                builder.common.connection = connection.clone();
                builder.common.connection.writer_groups = vec![group];
                builder.common.connection.reader_groups.clear();
                builders.push(builder);
            }
        }
        builders
    }
}
