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

use super::setters::{datagram_setters, transport_setters};
use super::{KeySource, PubSubStartError, PublisherId, SecurityMode, UdpOptions};
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use taktwerk_crypto::PubSubProvider;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::entropy::OsEntropy;
use taktwerk_net::pubsub::{ActionDriverOptions, ActionUser, Commander, PubSubError, RunningActions};
use taktwerk_pubsub::Now;
use taktwerk_pubsub::action::{
    ActionError, ActionTarget, Execution, Outcome, Request, RequestId, Requestor, RequestorOptions,
    Responder, ResponderOptions,
};
use taktwerk_pubsub::config::{Connection, GroupSecurity};
use taktwerk_types::{StatusCode, Variant};

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

    /// Starts answering.
    ///
    /// # Errors
    /// What is wrong with the address, or what the kernel did not give; there is no message security.
    pub fn start(self) -> Result<ActionResponder, PubSubStartError> {
        let Self { common, publisher_id, mut handlers } = self;
        let interval_nanos = common.interval_nanos();
        let mut options = ResponderOptions::new(publisher_id, common.security.clone());
        options.interval_nanos = interval_nanos;
        options.allow_unsecured = common.allow_unsecured;
        let targets: Vec<ActionTarget> = handlers.keys().copied().collect();
        let entropy = Box::new(OsEntropy);
        let engine = Responder::new(options, targets, Arc::clone(&common.provider), entropy);
        let engine = engine.map_err(|error| refused(&error))?;
        let (to_do, work) = mpsc::channel::<Execution>();
        #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // brokers' ends are added
        let mut driver = common.options;
        #[cfg(feature = "mqtt")]
        if common.connection.url.starts_with("mqtt") {
            use taktwerk_net::pubsub::mqtt;
            let topic = mqtt::topics::action_request_topic(&common.mqtt.prefix, &common.connection);
            driver.inlet = Some(mqtt::action_inlet(&common.connection, topic, &common.mqtt)?.0);
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
        ActionResponderBuilder { common, publisher_id, handlers: BTreeMap::new() }
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
            common.options.inlet = Some(mqtt::action_inlet(&common.connection, topic, &common.mqtt)?.0);
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
        let user = Asking { engine, waiting: BTreeMap::new() };
        let running = RunningActions::start(user, &common.connection, &from, common.options)?;
        Ok(ActionRequestor { running })
    }
}

struct Asking {
    engine: Requestor,
    waiting: BTreeMap<RequestId, mpsc::Sender<Outcome>>,
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
