//! The requestor: sends requests, repeats them until they are answered, and confirms the response (Part 14 §6.2.11.2).

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

/// Options of a requestor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestorOptions {
    /// Id of the requestor.
    pub requestor_id: PublisherId,
    /// Address for responses, if not the responder's own.
    pub response_address: Option<String>,
    /// Message mapping.
    pub mapping: ActionMapping,
    /// The transport retransmits (Part 14 §6.2.11.2.2), so each request is sent once.
    pub reliable: bool,
    /// Requests need an address: that of their DataSetWriter, set by [`Requestor::set_address`], for which they wait,
    /// or the [`Self::request_address`].
    pub needs_address: bool,
    /// Address of requests to DataSetWriters without a known address.
    pub request_address: Option<String>,
    /// Nanoseconds between repetitions: the responder's publishing interval.
    pub interval_nanos: u64,
    /// Message security of requests and responses.
    pub security: GroupSecurity,
    /// Allow operation without message security.
    pub allow_unsecured: bool,
    /// Maximum requests waiting for responses.
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

/// A request and its target.
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

/// Identifies a request of a requestor.
pub type RequestId = u16;

/// The result of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The request.
    pub request_id: RequestId,
    /// Good, the responder's status, or Bad_Timeout: then it may have been executed. It was not sent in these cases:
    /// Bad_NoCommunication without a connection, Bad_WaitingForInitialData if the responder has not announced its
    /// fields, and Bad_TypeMismatch and similar if the inputs do not match.
    pub status: StatusCode,
    /// The fields of the response.
    pub outputs: Vec<Variant>,
}

#[derive(Debug)]
struct Pending {
    request: Request,
    /// The state we request from the responder: Executing, then Idle.
    state: ActionState,
    is_sent: bool,
    next: Instant,
    deadline: Instant,
}

/// The announced data of a responder.
#[derive(Debug, Default)]
struct Known {
    forms: Forms,
    addresses: BTreeMap<u16, String>,
}

/// Maximum number of known responders; further ones are ignored.
const KNOWN_MAX: usize = 256;

/// Sends Action requests to responders.
#[derive(Debug)]
pub struct Requestor {
    options: RequestorOptions,
    wire: Wire,
    /// Unique among requestors that share an id and a security group, and among runs.
    correlation: [u8; 8],
    next_id: RequestId,
    pending: BTreeMap<RequestId, Pending>,
    outcomes: VecDeque<Outcome>,
    asker: Asker,
    announcements: VecDeque<(PublisherId, Announcement)>,
    known: BTreeMap<PublisherId, Known>,
    is_connected: bool,
}

/// Maximum announcements kept for the user; further ones replace the oldest.
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

    /// Whether responses would be received now: requests wait for that. A requestor starts connected.
    pub fn set_connected(&mut self, is_connected: bool, now: Now) {
        if core::mem::replace(&mut self.is_connected, is_connected) != is_connected {
            self.wake(now);
        }
    }

    /// Sets the address of requests to a responder's DataSetWriter.
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

    /// Describes a responder's Actions if it does not announce them itself. An announcement replaces the description.
    pub fn describe(&mut self, responder: &PublisherId, description: &ActionDescription, now: Now) {
        if let Some(known) = self.known(responder) {
            known.forms.description(description);
            self.wake(now);
        }
    }

    /// The data of a responder; `None` if there are too many.
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

    /// Retries what could not be sent.
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
            // A connection that cannot be parsed gives no form of requests either.
            for connection in connections.iter().filter_map(|one| Connection::from_schema(one).ok()) {
                known.forms.settings(&connection);
            }
        }
        self.wake(now);
    }

    /// Requests the announcements of a responder. They are returned by [`Self::poll_announcement`].
    pub fn discover(&mut self, connection: usize, responder: &PublisherId, now: Now) {
        let all = Probe::PubSubConnections { include_writer_groups: true, include_data_set_writers: true };
        for probe in [all, Probe::DataSetMetaData(Vec::new())] {
            self.asker.ask(connection, Some(responder.clone()), probe, now.instant);
        }
    }

    /// The next announcement about Actions, requested or not: ActionResponder and ActionMetaData
    /// ([`super::ActionDescription::from_announcement`]).
    pub fn poll_announcement(&mut self) -> Option<(PublisherId, Announcement)> {
        self.announcements.pop_front()
    }

    /// Starts a request. [`ActionEngine::poll`] sends it, and [`Self::poll_outcome`] returns its result.
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

    /// Processes a received datagram. Ignores everything except responses to this requestor.
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
                // The responder has it and will report the end: stop repeating (Part 14 Table 83).
                ActionState::EXECUTING if pending.state == ActionState::EXECUTING => {
                    pending.next = pending.deadline;
                }
                // The response will be repeated, when the fields may be known.
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
                    // Confirm to the responder for some time, not as long as the request's timeout.
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

    /// The next finished request.
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
                // A removal wakes the engine.
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
                // The confirmation need not repeat the inputs.
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

/// Whether requests must wait until the fields are known: JSON needs names, and raw data that is sent only once must be
/// decodable when it arrives.
fn needs_fields(options: &RequestorOptions, form: Option<&Form>) -> bool {
    options.mapping != ActionMapping::Uadp || (options.reliable && form.is_some_and(|form| form.is_raw))
}
