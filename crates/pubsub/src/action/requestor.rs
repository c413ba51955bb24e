//! The requestor: asks, repeats until there is an answer, and says when it has it (Part 14 §6.2.11.2).

use super::responder::ActionTarget;
use super::wire::{ActionEngine, ActionError, Opened, Sending, Wire};
use crate::config::GroupSecurity;
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
    /// Good, what the responder says, or Bad_Timeout.
    pub status: StatusCode,
    /// The fields of the response.
    pub outputs: Vec<Variant>,
}

#[derive(Debug)]
struct Pending {
    request: Request,
    /// What we want of the responder: Executing, then Idle.
    state: ActionState,
    next: Instant,
    deadline: Instant,
}

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
}

/// Announcements kept for the user; more than these overwrite the oldest.
const ANNOUNCEMENTS_KEPT: usize = 256;

impl Requestor {
    /// A requestor without requests.
    ///
    /// # Errors
    /// [`ActionError::Unsecured`].
    pub fn new(
        options: RequestorOptions,
        provider: Arc<dyn PubSubProvider>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Self, ActionError> {
        let mut wire = Wire::new(options.security.clone(), options.allow_unsecured, provider, entropy)?;
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
        })
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
        let pending = Pending { request, state: ActionState::EXECUTING, next: now.instant, deadline };
        self.pending.insert(id, pending);
        Ok(id)
    }

    /// Takes a received datagram. What is no response to this requestor is ignored.
    ///
    /// # Errors
    /// Why it was dropped.
    pub fn receive(&mut self, connection: usize, datagram: &mut [u8], now: Now) -> Result<(), ActionError> {
        let message = match self.wire.open(datagram, now)? {
            Some(Opened::Action(message)) => message,
            Some(Opened::Announcement(publisher_id, announcement)) => {
                self.asker.answered(connection, Some(publisher_id), &announcement);
                let is_about_actions = matches!(
                    *announcement,
                    Announcement::ActionResponder(_) | Announcement::ActionMetaData { .. }
                );
                if is_about_actions {
                    if self.announcements.len() >= ANNOUNCEMENTS_KEPT {
                        self.announcements.pop_front();
                    }
                    self.announcements.push_back((publisher_id.to_owned(), *announcement));
                }
                return Ok(());
            }
            Some(Opened::Probe(publisher_id, probe)) => {
                self.asker.overheard(connection, publisher_id, &probe, now.instant);
                return Ok(());
            }
            None => return Ok(()),
        };
        let ours = self.options.requestor_id.to_variant();
        let is_ours = !message.header.is_request
            && message.header.correlation_data == Some(self.correlation.as_slice())
            && message.header.requestor_id.as_ref().is_none_or(|id| *id == ours);
        if !is_ours {
            return Ok(());
        }
        for part in message.parts {
            let id = part.body.request_id;
            let Some(pending) = self.pending.get_mut(&id) else { continue };
            let request = &pending.request;
            let fits = request.connection == connection
                && request.responder.as_ref() == message.responder
                && request.data_set_writer_id == part.writer_id
                && request.action_target_id == part.body.target_id;
            match part.body.state {
                ActionState::DONE if fits && pending.state == ActionState::EXECUTING => {
                    pending.state = ActionState::IDLE;
                    pending.next = now.instant;
                    // The responder is told so for some time, not as long as the request might have taken.
                    pending.deadline = later(now.instant, self.options.interval_nanos.saturating_mul(10));
                    let outcome = Outcome { request_id: id, status: part.status, outputs: part.fields };
                    self.outcomes.push_back(outcome);
                }
                ActionState::IDLE if fits && pending.state == ActionState::IDLE => {
                    self.pending.remove(&id);
                }
                _ => {}
            }
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
        let (wire, options) = (&mut self.wire, &self.options);
        let (outcomes, correlation) = (&mut self.outcomes, self.correlation.as_slice());
        let mut result = Ok(());
        self.pending.retain(|id, pending| {
            if now.instant >= pending.deadline {
                if pending.state == ActionState::EXECUTING {
                    let status = StatusCode::BAD_TIMEOUT;
                    outcomes.push_back(Outcome { request_id: *id, status, outputs: Vec::new() });
                }
                return false;
            }
            if now.instant < pending.next {
                return true;
            }
            pending.next = later(now.instant, options.interval_nanos.max(1));
            let request = &pending.request;
            let sending = Sending {
                connection: request.connection,
                kind: DatagramKind::ActionRequest,
                address: None,
                responder: request.responder.as_ref(),
                header: ActionHeader {
                    is_request: true,
                    response_address: options.response_address.as_deref(),
                    correlation_data: Some(correlation),
                    requestor_id: Some(options.requestor_id.to_variant()),
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
                fields: match pending.state {
                    ActionState::EXECUTING => request.inputs.clone(),
                    _ => Vec::new(),
                },
            };
            if let Err(error) = wire.send(sending, now, out) {
                result = Err(error);
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
