//! The responder: executes what is asked for, once, and says how it stands until the requestor knows
//! (Part 14 §6.2.11.2).

use super::describe::{ActionDescription, Describer};
use super::form::Forms;
use super::requestor::later;
use super::wire::{ActionEngine, ActionError, ActionMapping, Opened, Sending, Wire};
use crate::config::{Connection, GroupSecurity};
use crate::publisher_id::PublisherId;
use crate::security::{KeyStore, ReplayFloor, SecurityError};
use crate::time::Now;
use crate::transmit::{DatagramKind, Transmit};
use crate::uadp::action::ActionHeader;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider};
use taktwerk_schema::ActionState;
use taktwerk_types::{Encode, Instant, StatusCode, Variant};

/// An Action that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionTarget {
    /// The DataSetWriter that answers.
    pub data_set_writer_id: u16,
    /// The Action among those of its ActionMetaData.
    pub action_target_id: u16,
}

/// What a responder is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResponderOptions {
    /// Who answers.
    pub publisher_id: PublisherId,
    /// Position of its connection.
    pub connection: usize,
    /// How messages are written.
    pub mapping: ActionMapping,
    /// The transport repeats by itself what has not arrived (Part 14 §6.2.11.2.2): a response is sent once.
    pub reliable: bool,
    /// Nanoseconds between responses: the publishing interval.
    pub interval_nanos: u64,
    /// Message security of requests and responses.
    pub security: GroupSecurity,
    /// Works without message security too: whoever reaches the address may ask for anything.
    pub allow_unsecured: bool,
    /// Executions that are known at the same time, those that are over and remembered included.
    pub executions_max: usize,
    /// Nanoseconds for which responses are repeated when the requestor says nothing any more.
    pub patience_nanos: u64,
    /// Nanoseconds for which an execution that is over is remembered, so that a late request does not repeat it.
    pub memory_nanos: u64,
    /// Largest announcement in one piece, in bytes; `None`: a broker takes any.
    pub announcement_len_max: Option<usize>,
}

impl ResponderOptions {
    /// A responder that answers every 100 ms.
    #[must_use]
    pub fn new(publisher_id: PublisherId, security: GroupSecurity) -> Self {
        Self {
            publisher_id,
            connection: 0,
            mapping: ActionMapping::default(),
            reliable: false,
            interval_nanos: 100_000_000,
            security,
            allow_unsecured: false,
            executions_max: 1_024,
            patience_nanos: 10_000_000_000,
            memory_nanos: 60_000_000_000,
            announcement_len_max: Some(1_472),
        }
    }
}

/// Names an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId(u64);

/// Something to do for a requestor; [`Responder::finish`] when it is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Its name.
    pub id: ExecutionId,
    /// What is to be done.
    pub target: ActionTarget,
    /// The fields of the request, in the order of the ActionMetaData; null for those that JSON leaves out.
    pub inputs: Vec<Variant>,
    /// When the requestor gives up (TimeoutHint): what has not begun until then is not worth beginning.
    pub deadline: Option<Instant>,
}

/// What tells executions apart: the requestor, its data, the request and what it asks for.
type Key = (Vec<u8>, Vec<u8>, u16, ActionTarget);

#[derive(Debug, Clone)]
struct Running {
    id: ExecutionId,
    state: ActionState,
    requestor_id: Option<Variant>,
    response_address: Option<String>,
    status: StatusCode,
    outputs: Vec<Variant>,
    /// When a response is due; `None`: not before something happens.
    next: Option<Instant>,
    /// Forgotten then, whatever its state.
    until: Instant,
}

/// What a responder knows of requests: those that execute, and those that are over and must not be executed again, and which
/// messages it has received. For a successor that answers in its place.
#[derive(Debug, Clone, Default)]
pub struct ResponderMemory {
    running: BTreeMap<Key, Running>,
    next_id: u64,
    floor: ReplayFloor,
}

impl ResponderMemory {
    /// How many requests are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
}

/// Executes Actions for requestors.
#[derive(Debug)]
pub struct Responder {
    options: ResponderOptions,
    wire: Wire,
    targets: BTreeSet<ActionTarget>,
    running: BTreeMap<Key, Running>,
    next_id: u64,
    describer: Describer,
    forms: Forms,
    /// Another one answers.
    is_over: bool,
}

impl Responder {
    /// A responder for some Actions.
    ///
    /// # Errors
    /// [`ActionError::Unsecured`], [`ActionError::JsonSecured`].
    pub fn new(
        options: ResponderOptions,
        targets: impl IntoIterator<Item = ActionTarget>,
        provider: Arc<dyn PubSubProvider>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Self, ActionError> {
        let security = options.security.clone();
        let wire = Wire::new(options.mapping, security, options.allow_unsecured, provider, entropy)?;
        let targets = targets.into_iter().collect();
        let (running, describer, forms) = (BTreeMap::new(), Describer::default(), Forms::default());
        Ok(Self { options, wire, targets, running, next_id: 1, describer, forms, is_over: false })
    }

    /// Gives away what it knows, and takes no request any more: another one answers in its place.
    pub fn retire(&mut self) -> ResponderMemory {
        self.is_over = true;
        let running = core::mem::take(&mut self.running);
        ResponderMemory { running, next_id: self.next_id, floor: self.wire.keys().replay_floor() }
    }

    /// Goes on where another one with the same PublisherId has retired: requests that come again are not executed again, and
    /// [`Self::finish`] is told of those that execute, under the names that they had. To be called after
    /// [`Self::describe`], before anything is received.
    pub fn succeed(&mut self, memory: ResponderMemory) {
        self.next_id = self.next_id.max(memory.next_id);
        self.wire.keys().restore(memory.floor);
        self.running = memory.running;
        for ((.., target), running) in &mut self.running {
            let form = self.forms.get(target.data_set_writer_id).filter(|_| !running.outputs.is_empty());
            // What was made for another form cannot be said in this one.
            if let Some(Err(error)) = form.map(|form| form.check(false, &running.outputs)) {
                running.outputs = Vec::new();
                if !running.status.is_bad() {
                    running.status = error;
                }
            }
        }
    }

    /// Describes the Actions to requestors, with announcements: what the connection is, and which of the DataSetWriters
    /// of its WriterGroups answers what, and in which form. Other descriptions replace those that were given before, and
    /// are announced.
    ///
    /// # Errors
    /// [`ActionError::DataValues`], [`ActionError::NoRawData`]; nothing is changed then.
    pub fn describe(
        &mut self,
        connection: Connection,
        descriptions: Vec<ActionDescription>,
        now: Now,
    ) -> Result<(), ActionError> {
        self.forms = Forms::checked(&connection, &descriptions)?;
        let was_described = self.describer.is_described();
        self.describer = Describer::new(connection, descriptions);
        if was_described {
            self.describer.announce(now);
        }
        Ok(())
    }

    /// Takes a received datagram and gives what is to be done now. What is no request to this responder is ignored.
    ///
    /// # Errors
    /// Why it was dropped.
    pub fn receive(&mut self, datagram: &mut [u8], now: Now) -> Result<Vec<Execution>, ActionError> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let forms = &self.forms;
        let message = match self.wire.open(datagram, now, &|_, writer_id| forms.get(writer_id))? {
            Some(Opened::Action(message)) => message,
            Some(Opened::Probe(Some(publisher_id), probe)) if self.options.publisher_id == publisher_id => {
                self.describer.asked(&probe, now);
                return Ok(Vec::new());
            }
            _ => return Ok(Vec::new()),
        };
        if !message.is_request || self.wire.known(&self.options.publisher_id) != message.responder {
            return Ok(Vec::new());
        }
        let deadline = message.timeout_hint.and_then(|millis| deadline(now.instant, millis));
        let requestor_id = message.requestor_id;
        let sender = requestor_id.as_ref().map(Encode::encode_to_vec).unwrap_or_default();
        let correlation = message.correlation_data.unwrap_or_default();
        let mut fresh = Vec::new();
        for part in message.parts {
            let target =
                ActionTarget { data_set_writer_id: part.writer_id, action_target_id: part.body.target_id };
            let key = (sender.clone(), correlation.clone(), part.body.request_id, target);
            let heard_until = later(now.instant, self.options.patience_nanos);
            match (self.running.get_mut(&key), part.body.state) {
                // Once more: it may have missed our response. What is over stays over.
                (Some(running), ActionState::EXECUTING) if running.state != ActionState::IDLE => {
                    running.until = running.until.max(heard_until);
                    running.next = running.next.or(Some(now.instant));
                }
                // It has the result.
                (Some(running), ActionState::IDLE) => {
                    // While it executes this means: never mind. What was begun is not undone, but nobody waits.
                    running.state = ActionState::IDLE;
                    running.outputs = Vec::new();
                    running.next = Some(now.instant);
                    running.until = later(now.instant, self.options.memory_nanos);
                }
                (None, ActionState::EXECUTING) => {
                    if !self.has_room() {
                        return Err(ActionError::TooManyRequests(self.running.len()));
                    }
                    let id = ExecutionId(self.next_id);
                    self.next_id += 1;
                    let inputs = match part.fields {
                        _ if !self.targets.contains(&target) => Err(StatusCode::BAD_NOT_FOUND),
                        fields => fields,
                    };
                    let is_new = inputs.is_ok();
                    let running = Running {
                        id,
                        state: if is_new { ActionState::EXECUTING } else { ActionState::DONE },
                        requestor_id: requestor_id.clone(),
                        response_address: message.response_address.clone(),
                        status: inputs.as_ref().err().copied().unwrap_or(StatusCode::GOOD),
                        outputs: Vec::new(),
                        // What arrives anyway is said once it is done.
                        next: (!self.options.reliable || !is_new).then_some(now.instant),
                        until: heard_until,
                    };
                    self.running.insert(key, running);
                    if let Ok(inputs) = inputs {
                        fresh.push(Execution { id, target, inputs, deadline });
                    }
                }
                // Done is what responders say; what is over or was never heard of is idle already.
                _ => {}
            }
        }
        Ok(fresh)
    }

    /// Room for one more; the oldest memory goes for it.
    fn has_room(&mut self) -> bool {
        if self.running.len() < self.options.executions_max {
            return true;
        }
        let over = self.running.iter().filter(|(_, running)| running.state == ActionState::IDLE);
        let oldest = over.min_by_key(|(_, running)| running.until).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.running.remove(&key).is_some())
    }

    /// An execution is over. False: nobody waits for its result any more. Outputs that are not what the ActionMetaData
    /// says, and cannot be sent in its form, are not sent: the requestor gets Bad_TypeMismatch or the like.
    pub fn finish(&mut self, id: ExecutionId, status: StatusCode, outputs: Vec<Variant>, now: Now) -> bool {
        let patience = self.options.patience_nanos;
        let found = self.running.iter_mut().find(|(_, running)| running.id == id);
        let Some(((.., target), running)) = found.filter(|(_, one)| one.state == ActionState::EXECUTING)
        else {
            return false;
        };
        running.state = ActionState::DONE;
        let form = self.forms.get(target.data_set_writer_id).filter(|_| !outputs.is_empty());
        (running.status, running.outputs) = match form.map_or(Ok(()), |form| form.check(false, &outputs)) {
            Ok(()) => (status, outputs),
            Err(error) => (if status.is_bad() { status } else { error }, Vec::new()),
        };
        running.next = Some(now.instant);
        running.until = later(now.instant, patience);
        true
    }

    /// How many executions are known, those that are over and remembered included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
}

impl ActionEngine for Responder {
    fn key_store(&mut self) -> &mut KeyStore {
        self.wire.keys()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = |running: &Running| {
            let ends = (running.state != ActionState::EXECUTING).then_some(running.until);
            running.next.into_iter().chain(ends).min()
        };
        self.running.values().filter_map(due).chain(self.describer.poll_timeout()).min()
    }

    fn announce(&mut self, now: Now) {
        self.describer.announce(now);
    }

    fn poll(&mut self, now: Now, out: &mut Transmit) -> Result<(), SecurityError> {
        let (wire, options, forms) = (&mut self.wire, &self.options, &self.forms);
        let mut result = Ok(());
        self.running.retain(|(_, correlation, request_id, target), running| {
            if now.instant >= running.until {
                match running.state {
                    // It is remembered for a while after nobody has fetched it.
                    ActionState::DONE => {
                        running.state = ActionState::IDLE;
                        running.outputs = Vec::new();
                        running.next = None;
                        running.until = later(now.instant, options.memory_nanos);
                    }
                    // What executes is not forgotten; whoever asked hears nothing until it asks again.
                    ActionState::EXECUTING => running.next = None,
                    _ => return false,
                }
            }
            let Some(next) = running.next.filter(|next| now.instant >= *next) else { return true };
            // Idle is said once for each time that it is asked.
            running.next =
                (running.state != ActionState::IDLE).then(|| later(next, options.interval_nanos.max(1)));
            let sending = Sending {
                connection: options.connection,
                kind: DatagramKind::ActionResponse,
                address: running.response_address.as_deref(),
                responder: options.publisher_id.as_ref(),
                header: ActionHeader {
                    is_request: false,
                    response_address: None,
                    correlation_data: (!correlation.is_empty()).then_some(correlation.as_slice()),
                    requestor_id: running.requestor_id.clone(),
                    timeout_hint: None,
                },
                target: *target,
                request_id: *request_id,
                state: running.state,
                status: running.status,
                fields: &running.outputs,
                form: forms.get(target.data_set_writer_id),
            };
            match wire.send(sending, now, out) {
                // It arrives: nobody will say that it has.
                Ok(()) if options.reliable && running.state == ActionState::DONE => {
                    running.state = ActionState::IDLE;
                    running.outputs = Vec::new();
                    running.next = None;
                    running.until = later(now.instant, options.memory_nanos);
                }
                Ok(()) => {}
                Err(error) => result = Err(error),
            }
            true
        });
        let room = self.options.announcement_len_max;
        let told = self.describer.poll(&mut self.wire, self.options.connection, room, now, out);
        result.and(told)
    }
}

/// When somebody gives up who waits for some milliseconds from now on; `None`: never.
fn deadline(now: Instant, millis: f64) -> Option<Instant> {
    let is_said = millis.is_finite() && millis > 0.0;
    // What is too large becomes the largest.
    is_said.then(|| later(now, (millis * 1e6) as u64))
}
