//! The responder: executes each request once and sends its state until the requestor has confirmed it (Part 14
//! §6.2.11.2).

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

/// An Action that can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionTarget {
    /// The DataSetWriter of the responses.
    pub data_set_writer_id: u16,
    /// Id of the Action in its ActionMetaData.
    pub action_target_id: u16,
}

/// Options of a responder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResponderOptions {
    /// PublisherId of the responder.
    pub publisher_id: PublisherId,
    /// Position of its connection.
    pub connection: usize,
    /// Message mapping.
    pub mapping: ActionMapping,
    /// The transport retransmits (Part 14 §6.2.11.2.2), so each response is sent once.
    pub reliable: bool,
    /// Nanoseconds between responses: the publishing interval.
    pub interval_nanos: u64,
    /// Message security of requests and responses.
    pub security: GroupSecurity,
    /// Allow operation without message security: anyone who reaches the address may request anything.
    pub allow_unsecured: bool,
    /// Maximum number of known executions, including remembered ones.
    pub executions_max: usize,
    /// Nanoseconds for which responses are repeated without hearing from the requestor.
    pub patience_nanos: u64,
    /// Nanoseconds for which a finished execution is remembered, so that a late request does not repeat it.
    pub memory_nanos: u64,
    /// Maximum announcement without chunks, in bytes; `None` for brokers, which have no limit.
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

/// Identifies an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId(u64);

/// An execution to perform; call [`Responder::finish`] when it is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// The requested Action.
    pub target: ActionTarget,
    /// The fields of the request, in the order of the ActionMetaData; null for fields that JSON omits.
    pub inputs: Vec<Variant>,
    /// When the requestor gives up (TimeoutHint): do not start the execution after that.
    pub deadline: Option<Instant>,
}

/// Identity of an execution: requestor, correlation data, RequestId and target.
type Key = (Vec<u8>, Vec<u8>, u16, ActionTarget);

#[derive(Debug, Clone)]
struct Running {
    id: ExecutionId,
    state: ActionState,
    requestor_id: Option<Variant>,
    response_address: Option<String>,
    status: StatusCode,
    outputs: Vec<Variant>,
    /// When a response is due; `None` until something happens.
    next: Option<Instant>,
    /// Removed at this time, whatever its state.
    until: Instant,
}

/// A responder's knowledge of requests: running executions, finished ones that must not be repeated, and received
/// messages. For a successor that replaces the responder.
#[derive(Debug, Clone, Default)]
pub struct ResponderMemory {
    running: BTreeMap<Key, Running>,
    next_id: u64,
    floor: ReplayFloor,
}

impl ResponderMemory {
    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether it is empty.
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
    /// The responder was replaced by another one.
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

    /// Returns its memory and stops accepting requests: a successor replaces it.
    pub fn retire(&mut self) -> ResponderMemory {
        self.is_over = true;
        let running = core::mem::take(&mut self.running);
        ResponderMemory { running, next_id: self.next_id, floor: self.wire.keys().replay_floor() }
    }

    /// Continues from a retired responder with the same PublisherId. Repeated requests are not executed again, and
    /// [`Self::finish`] accepts running executions with their old ids. Call it after [`Self::describe`] and before
    /// anything is received.
    pub fn succeed(&mut self, memory: ResponderMemory) {
        self.next_id = self.next_id.max(memory.next_id);
        self.wire.keys().restore(memory.floor);
        self.running = memory.running;
        for ((.., target), running) in &mut self.running {
            let form = self.forms.get(target.data_set_writer_id).filter(|_| !running.outputs.is_empty());
            // Outputs for another form cannot be encoded in this one.
            if let Some(Err(error)) = form.map(|form| form.check(false, &running.outputs)) {
                running.outputs = Vec::new();
                if !running.status.is_bad() {
                    running.status = error;
                }
            }
        }
    }

    /// Describes the Actions to requestors with announcements: the connection, and the DataSetWriters of its
    /// WriterGroups with their targets and form. New descriptions replace the previous ones and are announced.
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

    /// Processes a received datagram and returns the new executions. Ignores everything except requests to this
    /// responder.
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
                // A repeated request: our response may have been lost. Finished executions stay finished.
                (Some(running), ActionState::EXECUTING) if running.state != ActionState::IDLE => {
                    running.until = running.until.max(heard_until);
                    running.next = running.next.or(Some(now.instant));
                }
                // The requestor has the result.
                (Some(running), ActionState::IDLE) => {
                    // While it is executing, this is a cancellation: the execution continues, but its result is not
                    // sent.
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
                        // With reliable delivery, only the result is sent.
                        next: (!self.options.reliable || !is_new).then_some(now.instant),
                        until: heard_until,
                    };
                    self.running.insert(key, running);
                    if let Ok(inputs) = inputs {
                        fresh.push(Execution { id, target, inputs, deadline });
                    }
                }
                // Only responders send Done; unknown and finished executions are idle already.
                _ => {}
            }
        }
        Ok(fresh)
    }

    /// Makes space for one execution, by removing the oldest remembered one.
    fn has_room(&mut self) -> bool {
        if self.running.len() < self.options.executions_max {
            return true;
        }
        let over = self.running.iter().filter(|(_, running)| running.state == ActionState::IDLE);
        let oldest = over.min_by_key(|(_, running)| running.until).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.running.remove(&key).is_some())
    }

    /// An execution has ended. False if its result is not wanted any more. Outputs that do not match the ActionMetaData
    /// and cannot be encoded are not sent: the requestor gets Bad_TypeMismatch or similar.
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

    /// Number of known executions, including remembered ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether no execution is known.
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
                    // A result that was not fetched is remembered for a while.
                    ActionState::DONE => {
                        running.state = ActionState::IDLE;
                        running.outputs = Vec::new();
                        running.next = None;
                        running.until = later(now.instant, options.memory_nanos);
                    }
                    // A running execution is kept, but no state is sent until the request is repeated.
                    ActionState::EXECUTING => running.next = None,
                    _ => return false,
                }
            }
            let Some(next) = running.next.filter(|next| now.instant >= *next) else { return true };
            // Idle is sent once per request for it.
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
                // Delivery is reliable and there is no confirmation.
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

/// The deadline of a timeout in milliseconds from now; `None` if there is none.
fn deadline(now: Instant, millis: f64) -> Option<Instant> {
    let is_said = millis.is_finite() && millis > 0.0;
    // Too large values saturate.
    is_said.then(|| later(now, (millis * 1e6) as u64))
}
