//! Actions (Part 14 §5.4.3): request-response over PubSub. A requestor invokes an Action of a responder and receives its results.
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

/// Executes an Action; called on a worker thread, one call at a time.
type Handler = Box<dyn FnMut(Vec<Variant>) -> Result<Vec<Variant>, StatusCode> + Send>;

/// Settings common to both builders.
struct Common {
    connection: Connection,
    /// The address of responses, if different from that of requests.
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

        /// The source of the security group's keys, if not set with `security()`.
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

        /// Works without message security: anyone who can reach the address may invoke and answer. Default: no. Required for
        /// JSON, which has no message security; there the broker must protect it with TLS and permissions per topic.
        pub fn allow_unsecured(mut self) -> Self {
            self.common.allow_unsecured = true;
            self
        }

        /// Interval between repetitions of requests or responses. Default: 100 ms.
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

/// Settings of a responder. Each has a default.
#[must_use = "nothing happens before start()"]
pub struct ActionResponderBuilder {
    common: Common,
    publisher_id: PublisherId,
    handlers: BTreeMap<ActionTarget, Handler>,
    descriptions: Vec<ActionDescription>,
    methods: Vec<(ActionTarget, MethodAction)>,
    raw_data: bool,
    /// State handed over by the previous responder.
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

    /// Sets the function that executes an Action. It is called on a worker thread, one call at a time, and may block.
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

    /// Stores in a file which secured messages were received, so that recorded requests are not executed again after a restart.
    /// Messages of the last second before a crash are not covered. Each responder needs its own file. Default: nothing is stored.
    pub fn replay_floor(mut self, path: impl Into<PathBuf>) -> Self {
        self.common.options.replay_floor = Some(path.into());
        self
    }

    /// Describes Actions to requestors: their names, and the fields of requests and responses. Actions without description are
    /// announced by their ids only.
    pub fn describe(mut self, description: ActionDescription) -> Self {
        self.descriptions.retain(|one| one.data_set_writer_id != description.data_set_writer_id);
        self.descriptions.push(description);
        self
    }

    /// Sends fields as RawData, that is without types, as in the descriptions, which are then required for all Actions. Default:
    /// Variants.
    pub fn raw_data(mut self) -> Self {
        self.raw_data = true;
        self
    }

    /// Offers Methods of a server as Actions, one for each target of the description (PublishedActionMethodDataType, Part 14
    /// §6.2.3.10.6). They are called with the permissions of `roles`, as over a channel with the security of the requests. For
    /// Methods that Anonymous may not call, add a role that may. Every holder of the security group's keys can invoke them.
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

    /// Takes over the settings of a WriterGroup.
    fn follow(&mut self, group: &WriterGroup) {
        let millis = group.publishing_interval.clamp(1.0, 60_000.0);
        self.common.interval = Duration::from_secs_f64(millis / 1e3);
        self.common.security = group.security.clone();
    }

    /// Completes the answering WriterGroup with the DataSetWriters of all Actions.
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

    /// Starts the responder.
    ///
    /// # Errors
    /// The address or the settings are wrong, or the kernel refused a resource. There is no message security. Fields are
    /// configured as DataValues, or as RawData without descriptions.
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
        // The driver decides when to announce.
        engine.describe(common.connection.clone(), descriptions, Now::default()).map_err(refused)?;
        let results = legacy.as_ref().map_or_else(Arc::default, |legacy| Arc::clone(&legacy.results));
        if let Some(legacy) = legacy {
            engine.succeed(legacy.memory);
        }
        let (to_do, work) = mpsc::channel::<Work>();
        #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // broker connections are added
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
        // The thread ends when the engine is dropped, after the current execution.
        let worker = std::thread::Builder::new().name("pubsub-execute".to_owned());
        let worker = worker.spawn(move || {
            while let Ok(Work { execution, until }) = work.recv() {
                let outcome = match handlers.get_mut(&execution.target) {
                    // The requestor has timed out while other requests were executed.
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

/// The result of an execution.
type Finished = (ExecutionId, Result<Vec<Variant>, StatusCode>);

/// The receiver of execution results.
enum Target {
    /// The running responder.
    Responder(Commander<Answering>),
    /// None at present: results are queued.
    Nobody(Vec<Finished>),
}

/// Delivers the results of executions to the running responder, which may be another one than the one that took the request.
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

    /// Delivers results to this responder from now on, including queued ones.
    fn go_to(&self, commander: Commander<Answering>) {
        let mut target = lock(&self.0);
        if let Target::Nobody(waiting) = &mut *target {
            for (id, outcome) in core::mem::take(waiting) {
                tell(&commander, id, outcome);
            }
        }
        *target = Target::Responder(commander);
    }

    /// Queues results from now on.
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

/// State that a responder hands over to its successor.
#[derive(Debug, Clone)]
struct Legacy {
    memory: ResponderMemory,
    results: Arc<Results>,
}

/// A task for the worker.
struct Work {
    execution: Execution,
    /// When the requestor times out.
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
                    // A span that overflows means no timeout.
                    let until = span.and_then(|span| std::time::Instant::now().checked_add(span));
                    // Fails only if the worker has ended.
                    drop(self.to_do.send(Work { execution, until }));
                }
            }
            Err(error) => tracing::debug!(%error, "a request for an Action was dropped"),
        }
    }

    fn turn(&mut self, _: Now) {}
}

/// Executes Actions for requestors. It stops on drop.
#[derive(Debug)]
pub struct ActionResponder {
    running: RunningActions<Answering>,
    results: Arc<Results>,
}

impl ActionResponder {
    /// Stops, and hands its state over to the successor: repeated requests are not executed again, and running executions are
    /// answered.
    fn hand_over(self) -> Legacy {
        // Messages sent before it has stopped are in front of this in its queue.
        self.results.wait();
        let (tell, told) = mpsc::channel();
        self.running.run(move |user, _| {
            let _ = tell.send(user.engine.retire());
        });
        let memory = told.recv_timeout(Duration::from_secs(10)).unwrap_or_else(|_| {
            tracing::error!(
                "a responder of Actions did not hand over its state: requests may be executed again"
            );
            ResponderMemory::default()
        });
        Legacy { memory, results: Arc::clone(&self.results) }
    }

    /// Stops, and waits at most for this time. Returns whether it has stopped.
    fn end_within(&self, most: Duration) -> bool {
        self.running.end_within(most)
    }

    /// Requests new keys of a security group immediately, because they are known to have changed.
    pub fn refresh_keys(&self, security_group_id: &str) {
        let group = security_group_id.to_owned();
        self.running.run(move |user, now| user.engine.refresh_keys(&group, now));
    }

    /// Sets keys that a key service has pushed, if the responder uses the security group.
    pub fn set_keys(&self, security_group_id: &str, keys: SecurityKeys) {
        let group = security_group_id.to_owned();
        self.running.run(move |user, now| {
            // Ignore groups that it does not use.
            let _ = user.engine.set_keys(&group, Ok(&keys), now);
        });
    }

    /// Begins a responder at an address: `opc.udp://…`, `mqtt://…` and `mqtts://…` (UADP), `mqtt+json://…` and `mqtts+json://…`.
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

    /// Creates responders for the Methods that a configuration publishes as Actions: one for each WriterGroup with DataSetWriters
    /// of PublishedActionMethods. Methods are called with the permissions of `roles`; keys of groups with message security must
    /// be set with `keys()`. Use [`ActionResponders`] for a configuration that changes.
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
