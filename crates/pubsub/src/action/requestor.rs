//! The requestor: asks, repeats until there is an answer, and says when it has it (Part 14 §6.2.11.2).

use super::describe::ActionDescription;
use super::form::{Form, Forms};
use super::message::UNKNOWN;
use super::responder::ActionTarget;
use super::wire::{ActionEngine, ActionError, ActionMapping, Opened, Sending, Wire};
use crate::config::{Connection, GroupSecurity};
use crate::publisher_id::PublisherId;
use crate::security::{KeyStore, SecurityError};
use crate::subscriber::ask::Asker;
use crate::time::Now;
use crate::transmit::{DatagramKind, Transmit};
use crate::uadp::action::ActionHeader;
use crate::uadp::announcement::Announcement;
use crate::uadp::probe::Probe;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider};
use taktwerk_schema::ActionState;
use taktwerk_types::{Instant, StatusCode, Variant};

/// What a requestor is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestorOptions {
    /// Who asks.
    pub requestor_id: PublisherId,
    /// Where responses are to be sent, if not to the responder's own address.
    pub response_address: Option<String>,
    /// How messages are written.
    pub mapping: ActionMapping,
    /// The transport repeats by itself what has not arrived (Part 14 §6.2.11.2.2): a request is sent once.
    pub reliable: bool,
    /// Requests have an address: that of their DataSetWriter, which [`Requestor::set_address`] tells and they wait for, or
    /// the [`Self::request_address`].
    pub needs_address: bool,
    /// Where requests go to DataSetWriters of which nothing is told.
    pub request_address: Option<String>,
    /// Nanoseconds between repetitions: the responder's publishing interval.
    pub interval_nanos: u64,
    /// Message security of requests and responses.
    pub security: GroupSecurity,
    /// Works without message security too.
    pub allow_unsecured: bool,
    /// Requests that may wait for their responses at the same time.
    pub requests_max: usize,
}

impl RequestorOptions {
    /// A requestor that repeats every 100 ms.
    #[must_use]
    pub fn new(requestor_id: PublisherId, security: GroupSecurity) -> Self {
        Self {
            requestor_id,
            response_address: None,
            mapping: ActionMapping::default(),
            reliable: false,
            needs_address: false,
            request_address: None,
            interval_nanos: 100_000_000,
            security,
            allow_unsecured: false,
            requests_max: 256,
        }
    }
}

/// What is asked, and of whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Position of the connection.
    pub connection: usize,
    /// The responder.
    pub responder: PublisherId,
    /// Its DataSetWriter.
    pub data_set_writer_id: u16,
    /// The Action.
    pub action_target_id: u16,
    /// The fields of the request.
    pub inputs: Vec<Variant>,
    /// How long to wait, in nanoseconds.
    pub timeout_nanos: u64,
}

/// Names a request of a requestor.
pub type RequestId = u16;

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Which one.
    pub request_id: RequestId,
    /// Good, what the responder says, or Bad_Timeout: it may or may not have been executed. It was not if nothing was sent:
    /// Bad_NoCommunication without a connection, Bad_WaitingForInitialData if the responder has not said what there is, and
    /// Bad_TypeMismatch and the like if the inputs are something else.
    pub status: StatusCode,
    /// The fields of the response.
    pub outputs: Vec<Variant>,
}

#[derive(Debug)]
struct Pending {
    request: Request,
    /// What we want of the responder: Executing, then Idle.
    state: ActionState,
    is_sent: bool,
    next: Instant,
    deadline: Instant,
}

/// What a responder has said of itself.
#[derive(Debug, Default)]
struct Known {
    forms: Forms,
    addresses: BTreeMap<u16, String>,
}

/// Responders that are known; of more than these nothing is kept.
const KNOWN_MAX: usize = 256;

/// Asks responders for Actions.
#[derive(Debug)]
pub struct Requestor {
    options: RequestorOptions,
    wire: Wire,
    /// Ours among all that share an id and a security group, and of this run.
    correlation: [u8; 8],
    next_id: RequestId,
    pending: BTreeMap<RequestId, Pending>,
    outcomes: VecDeque<Outcome>,
    asker: Asker,
    announcements: VecDeque<(PublisherId, Announcement)>,
    known: BTreeMap<PublisherId, Known>,
    is_connected: bool,
}

/// Announcements kept for the user; more than these overwrite the oldest.
const ANNOUNCEMENTS_KEPT: usize = 256;

impl Requestor {
    /// A requestor without requests.
    ///
    /// # Errors
    /// [`ActionError::Unsecured`], [`ActionError::JsonSecured`].
    pub fn new(
        options: RequestorOptions,
        provider: Arc<dyn PubSubProvider>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Self, ActionError> {
        let security = options.security.clone();
        let mut wire = Wire::new(options.mapping, security, options.allow_unsecured, provider, entropy)?;
        let mut correlation = [0; 8];
        wire.entropy().fill(&mut correlation);
        Ok(Self {
            options,
            wire,
            correlation,
            next_id: 1,
            pending: BTreeMap::new(),
            outcomes: VecDeque::new(),
            asker: Asker::default(),
            announcements: VecDeque::new(),
            known: BTreeMap::new(),
            is_connected: true,
        })
    }

    /// Whether responses would arrive now: requests wait for that. A requestor begins connected.
    pub fn set_connected(&mut self, is_connected: bool, now: Now) {
        if core::mem::replace(&mut self.is_connected, is_connected) != is_connected {
            self.wake(now);
        }
    }

    /// Where requests to a DataSetWriter of a responder go.
    pub fn set_address(
        &mut self,
        responder: &PublisherId,
        data_set_writer_id: u16,
        address: String,
        now: Now,
    ) {
        if let Some(known) = self.known(responder) {
            known.addresses.insert(data_set_writer_id, address);
            self.wake(now);
        }
    }

    /// What an Action of a responder is, if the responder does not say so itself. An announcement replaces it.
    pub fn describe(&mut self, responder: &PublisherId, description: &ActionDescription, now: Now) {
        if let Some(known) = self.known(responder) {
            known.forms.description(description);
            self.wake(now);
        }
    }

    /// What is known of a responder; `None`: too many are known.
    fn known(&mut self, responder: &PublisherId) -> Option<&mut Known> {
        let responder = self.wire.known(responder);
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&responder) {
            let asked = |id: &PublisherId| {
                self.pending.values().any(|pending| self.wire.known(&pending.request.responder) == *id)
            };
            let other = self.known.keys().find(|id| !asked(id)).cloned()?;
            self.known.remove(&other);
        }
        Some(self.known.entry(responder).or_default())
    }

    /// What could not be sent until now is tried.
    fn wake(&mut self, now: Now) {
        for pending in self.pending.values_mut().filter(|pending| !pending.is_sent) {
            pending.next = now.instant;
        }
    }

    fn learn(&mut self, responder: &PublisherId, announcement: &Announcement, now: Now) {
        let Some(known) = self.known(responder) else { return };
        if let Some(description) = ActionDescription::from_announcement(announcement) {
            known.forms.description(&description);
        }
        if let Announcement::ActionResponder(connections) = announcement {
            // One that is not understood says nothing about the form of requests either.
            for connection in connections.iter().filter_map(|one| Connection::from_schema(one).ok()) {
                known.forms.settings(&connection);
            }
        }
        self.wake(now);
    }

    /// Asks a responder what can be asked of it. The answers come from [`Self::poll_announcement`].
    pub fn discover(&mut self, connection: usize, responder: &PublisherId, now: Now) {
        let all = Probe::PubSubConnections { include_writer_groups: true, include_data_set_writers: true };
        for probe in [all, Probe::DataSetMetaData(Vec::new())] {
            self.asker.ask(connection, Some(responder.clone()), probe, now.instant);
        }
    }

    /// The next announcement about Actions, asked for or not: ActionResponder and ActionMetaData
    /// ([`super::ActionDescription::from_announcement`]).
    pub fn poll_announcement(&mut self) -> Option<(PublisherId, Announcement)> {
        self.announcements.pop_front()
    }

    /// Asks. [`ActionEngine::poll`] sends it, and [`Self::poll_outcome`] tells how it ended.
    ///
    /// # Errors
    /// [`ActionError::TooManyRequests`].
    pub fn request(&mut self, request: Request, now: Now) -> Result<RequestId, ActionError> {
        if self.pending.len() >= self.options.requests_max.min(usize::from(u16::MAX)) {
            return Err(ActionError::TooManyRequests(self.pending.len()));
        }
        while self.pending.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let deadline = later(now.instant, request.timeout_nanos);
        let state = ActionState::EXECUTING;
        let pending = Pending { request, state, is_sent: false, next: now.instant, deadline };
        self.pending.insert(id, pending);
        Ok(id)
    }

    /// Takes a received datagram. What is no response to this requestor is ignored.
    ///
    /// # Errors
    /// Why it was dropped.
    pub fn receive(&mut self, connection: usize, datagram: &mut [u8], now: Now) -> Result<(), ActionError> {
        let known = &self.known;
        let form = |responder: &PublisherId, writer_id: u16| known.get(responder)?.forms.get(writer_id);
        let message = match self.wire.open(datagram, now, &form)? {
            Some(Opened::Action(message)) => message,
            Some(Opened::Announcement(publisher_id, announcement)) => {
                self.asker.answered(connection, Some(publisher_id.as_ref()), &announcement);
                let is_about_actions = matches!(
                    *announcement,
                    Announcement::ActionResponder(_) | Announcement::ActionMetaData { .. }
                );
                if is_about_actions {
                    self.learn(&publisher_id, &announcement, now);
                    if self.announcements.len() >= ANNOUNCEMENTS_KEPT {
                        self.announcements.pop_front();
                    }
                    self.announcements.push_back((publisher_id, *announcement));
                }
                return Ok(());
            }
            Some(Opened::Probe(publisher_id, probe)) => {
                let publisher_id = publisher_id.as_ref().map(PublisherId::as_ref);
                self.asker.overheard(connection, publisher_id, &probe, now.instant);
                return Ok(());
            }
            None => return Ok(()),
        };
        let ours = self.wire.known(&self.options.requestor_id).to_variant();
        let is_ours = !message.is_request
            && message.correlation_data.as_deref() == Some(self.correlation.as_slice())
            && message.requestor_id.as_ref().is_none_or(|id| *id == ours);
        if !is_ours {
            return Ok(());
        }
        let mut is_unknown = false;
        for part in message.parts {
            let id = part.body.request_id;
            let Some(pending) = self.pending.get_mut(&id) else { continue };
            let request = &pending.request;
            let fits = request.connection == connection
                && self.wire.known(&request.responder) == message.responder
                && request.data_set_writer_id == part.writer_id
                && request.action_target_id == part.body.target_id;
            if !fits {
                continue;
            }
            match part.body.state {
                // It has it, and will say when it is done: nothing has to be repeated (Part 14 Table 83).
                ActionState::EXECUTING if pending.state == ActionState::EXECUTING => {
                    pending.next = pending.deadline;
                }
                // It says it again, and we may know then.
                ActionState::DONE if part.fields == Err(UNKNOWN) => is_unknown = true,
                ActionState::DONE if pending.state == ActionState::EXECUTING => {
                    let (status, outputs) = match part.fields {
                        Ok(outputs) => (part.status, outputs),
                        Err(error) => (if part.status.is_bad() { part.status } else { error }, Vec::new()),
                    };
                    self.outcomes.push_back(Outcome { request_id: id, status, outputs });
                    if self.options.reliable {
                        self.pending.remove(&id);
                        continue;
                    }
                    pending.state = ActionState::IDLE;
                    pending.next = now.instant;
                    // The responder is told so for some time, not as long as the request might have taken.
                    pending.deadline = later(now.instant, self.options.interval_nanos.saturating_mul(10));
                }
                ActionState::IDLE if pending.state == ActionState::IDLE => {
                    self.pending.remove(&id);
                }
                _ => {}
            }
        }
        if is_unknown {
            self.discover(connection, &message.responder, now);
        }
        Ok(())
    }

    /// The next request that ended.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }
}

impl ActionEngine for Requestor {
    fn key_store(&mut self) -> &mut KeyStore {
        self.wire.keys()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let requests = self.pending.values().map(|pending| pending.next.min(pending.deadline));
        requests.chain(self.asker.poll_timeout()).min()
    }

    fn poll(&mut self, now: Now, out: &mut Transmit) -> Result<(), SecurityError> {
        let (wire, options, known) = (&mut self.wire, &self.options, &self.known);
        let (outcomes, correlation) = (&mut self.outcomes, self.correlation.as_slice());
        let is_connected = self.is_connected;
        let requestor_id = wire.known(&options.requestor_id).to_variant();
        let mut result = Ok(());
        self.pending.retain(|id, pending| {
            let request = &pending.request;
            let responder = wire.known(&request.responder);
            let of_responder = known.get(&responder);
            let form = of_responder.and_then(|known| known.forms.get(request.data_set_writer_id));
            let address = of_responder.and_then(|known| known.addresses.get(&request.data_set_writer_id));
            let address = address.or(options.request_address.as_ref());
            let obstacle = match () {
                () if pending.is_sent => None,
                () if !is_connected => Some(StatusCode::BAD_NO_COMMUNICATION),
                () if options.needs_address && address.is_none() => Some(UNKNOWN),
                () if needs_fields(options, form) && form.and_then(|form| form.fields(true)).is_none() => {
                    Some(UNKNOWN)
                }
                () => None,
            };
            let mut end = |status| {
                outcomes.push_back(Outcome { request_id: *id, status, outputs: Vec::new() });
                false
            };
            let is_asking = pending.state == ActionState::EXECUTING;
            if now.instant >= pending.deadline {
                return is_asking && end(obstacle.unwrap_or(StatusCode::BAD_TIMEOUT));
            }
            if now.instant < pending.next {
                return true;
            }
            if obstacle.is_some() {
                // Who removes it wakes us.
                pending.next = pending.deadline;
                return true;
            }
            if let Err(status) = form.map_or(Ok(()), |form| form.check(true, &request.inputs))
                && !pending.is_sent
            {
                return end(status);
            }
            pending.next = match options.reliable {
                true => pending.deadline,
                false => later(now.instant, options.interval_nanos.max(1)),
            };
            let sending = Sending {
                connection: request.connection,
                kind: DatagramKind::ActionRequest,
                address: address.map(String::as_str),
                responder: responder.as_ref(),
                header: ActionHeader {
                    is_request: true,
                    response_address: options.response_address.as_deref(),
                    correlation_data: Some(correlation),
                    requestor_id: Some(requestor_id.clone()),
                    timeout_hint: Some(request.timeout_nanos as f64 / 1e6),
                },
                target: ActionTarget {
                    data_set_writer_id: request.data_set_writer_id,
                    action_target_id: request.action_target_id,
                },
                request_id: *id,
                state: pending.state,
                status: StatusCode::GOOD,
                // Who only says that it has the response need not repeat the request.
                fields: if is_asking { &request.inputs } else { &[] },
                form,
            };
            match wire.send(sending, now, out) {
                Ok(()) => pending.is_sent = true,
                Err(error) => {
                    pending.next = later(now.instant, options.interval_nanos.max(1));
                    result = Err(error);
                }
            }
            true
        });
        let (keys, entropy, security) = self.wire.sending();
        self.asker.poll(now, out, keys, Some(entropy), |_, _, _| security);
        result
    }
}

pub(super) fn later(instant: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(instant.as_nanos().saturating_add(nanos))
}

/// Whether nothing can be asked before it is known what the fields are: JSON has names, and raw data that is said only once
/// has to be understood when it is.
fn needs_fields(options: &RequestorOptions, form: Option<&Form>) -> bool {
    options.mapping != ActionMapping::Uadp || (options.reliable && form.is_some_and(|form| form.is_raw))
}
