//! Establishing a session, and restoring it after a lost connection (Part 4 §6.7).

use crate::batch::{BatchOwner, DynRequest};
use crate::client::Client;
use crate::config::{EndpointUrl, Security, Target};
use crate::effect::{ConnectionId, Effect};
use crate::endpoint::{Chosen, choose, resolve};
use crate::error::{ClientError, Misuse, SecurityProblem, is_busy};
use crate::event::{Event, Note, Restored, Sink};
use crate::limits::{LIMIT_NODES, OperationLimits};
use crate::link::Answer;
use crate::outstanding::Purpose;
use crate::phase::Phase;
use crate::subscription::State;
use core::any::Any;
use core::time::Duration;
use taktwerk_channel::{Channel, ChannelError, OpenParams};
use taktwerk_crypto::{MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_schema::{
    CloseSessionRequest, EndpointDescription, GetEndpointsRequest, GetEndpointsResponse, ReadRequest,
    ReadResponse, ReadValueId, TimestampsToReturn, TransferSubscriptionsRequest,
    TransferSubscriptionsResponse, ids::variable_ids,
};
use taktwerk_types::{ArrayValues, Instant, NodeId, UaString, Variant};

/// AttributeId of Value (Part 6 Annex A).
const VALUE: u32 = 13;
/// A connection that is lost sooner than this after it was established counts as a failed attempt. So the back-off also
/// grows if a server accepts clients and disconnects them at once.
const SHORT_LIVED: Duration = Duration::from_secs(10);
/// How long to wait for the CloseSession response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

impl Client {
    /// Connects to a server and reconnects as configured. [`Event::Connected`] or [`Event::Disconnected`] follows.
    ///
    /// # Errors
    /// [`Misuse::AlreadyConnected`]; [`SecurityProblem::NoEndpoint`] if security is required without discovery, but not
    /// specified.
    pub fn connect(&mut self, target: Target, now: Instant) -> Result<(), ClientError> {
        if self.phase != Phase::Idle {
            return Err(Misuse::AlreadyConnected.into());
        }
        check_target(&target, &*self.config.channel.provider)?;
        self.dialled.chosen = (!target.discover || !target.session).then(|| undiscovered(&target));
        self.dialled.target = Some(target);
        self.tries.failed = 0;
        self.tries.short_lived = 0;
        self.tries.was_up = false;
        self.start_attempt(now);
        Ok(())
    }

    /// Closes session, channel and connection. Outstanding requests fail and subscriptions are dropped.
    /// [`Event::Disconnected`] follows, even if the client has already ended, because callers wait for it.
    pub fn disconnect(&mut self, now: Instant) {
        let deadline = if self.phase == Phase::Up && self.session.is_some() {
            let mut request = CloseSessionRequest { delete_subscriptions: true, ..Default::default() };
            let handle = self.link.next_handle();
            let sent = self.link.send(&mut request, handle, Purpose::CloseSession, Some(CLOSE_TIMEOUT), now);
            if sent.is_ok() { now + CLOSE_TIMEOUT } else { now }
        } else {
            now
        };
        self.phase = Phase::Closing { deadline };
    }

    fn start_attempt(&mut self, now: Instant) {
        let Some(target) = &self.dialled.target else { return };
        let url = self.dialled.chosen.as_ref().map_or(&target.url, |chosen| &chosen.url).clone();
        self.dial(url, now);
    }

    fn dial(&mut self, url: EndpointUrl, now: Instant) {
        // The application has disconnected, and an answer to an earlier step of the handshake arrives.
        if matches!(self.phase, Phase::Closing { .. }) {
            return;
        }
        self.link.connection = ConnectionId(self.link.connection.0.wrapping_add(1));
        self.phase = Phase::Connecting { deadline: now + self.config.request_timeout };
        let url = self.dialled.target.as_ref().and_then(|target| target.via.clone()).unwrap_or(url);
        self.effects.push_back(Effect::Connect { connection: self.link.connection, url });
    }

    /// The driver has established the connection.
    pub fn handle_connected(&mut self, connection: ConnectionId, now: Instant, sink: &mut dyn Sink) {
        if connection != self.link.connection || !matches!(self.phase, Phase::Connecting { .. }) {
            return;
        }
        let Some(target) = &self.dialled.target else { return };
        // Before an endpoint is chosen, the channel is used for discovery, which needs no security.
        let params = match &self.dialled.chosen {
            None => OpenParams {
                // It becomes the session's channel if the endpoint has no security either.
                lifetime_ms: self.config.token_lifetime_ms,
                ..OpenParams::insecure(target.url.to_string())
            },
            Some(chosen) => OpenParams {
                endpoint_url: chosen.url.to_string().into(),
                policy: chosen.policy,
                mode: chosen.mode,
                server_certificate: chosen.description.server_certificate.as_deref().map(Into::into),
                lifetime_ms: self.config.token_lifetime_ms,
            },
        };
        self.link.out.clear();
        self.link.last_heard = now;
        self.phase = Phase::Opening;
        match Channel::client(self.config.channel.clone(), params, now, &mut self.link.out) {
            Ok(channel) => self.link.channel = Some(channel),
            Err(error) => self.lose(error.into(), now, sink),
        }
    }

    /// The connection could not be established or has ended. `reason` is for display.
    pub fn handle_closed(
        &mut self,
        connection: ConnectionId,
        reason: &str,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        if connection != self.link.connection || matches!(self.phase, Phase::Idle | Phase::Waiting { .. }) {
            return;
        }
        if matches!(self.phase, Phase::Closing { .. }) {
            return self.finish_close(now, sink);
        }
        self.lose(ClientError::Connection(reason.into()), now, sink);
    }

    pub(crate) fn on_channel_open(&mut self, now: Instant, sink: &mut dyn Sink) {
        let (Some(target), Some(_)) = (&self.dialled.target, &self.dialled.chosen) else {
            return self.ask_for_endpoints(now, sink);
        };
        if !target.session {
            return self.on_activated(Restored::NewSession, now, sink);
        }
        if self.can_reactivate() {
            if let Err(error) = self.activate(None, now, sink) {
                self.lose(error, now, sink);
            }
        } else {
            self.forget_session();
            self.create_session(now, sink);
        }
    }

    /// Sends a request of the handshake. A failure to send is a failure to connect.
    pub(crate) fn send_step(
        &mut self,
        request: &mut dyn DynRequest,
        purpose: Purpose,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        if let Err(error) = self.link.send(request, handle, purpose, timeout, now) {
            self.lose(error, now, sink);
        }
    }

    fn ask_for_endpoints(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(target) = &self.dialled.target else { return };
        let mut request = GetEndpointsRequest {
            endpoint_url: target.url.to_string().into(),
            ..GetEndpointsRequest::default()
        };
        self.send_step(&mut request, Purpose::GetEndpoints, now, sink);
    }

    pub(crate) fn on_endpoints(
        &mut self,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let response = match result.and_then(|answer| answer.read::<GetEndpointsResponse>("GetEndpoints")) {
            Ok(response) => response,
            Err(error) => return self.lose(error, now, sink),
        };
        let Some(target) = &self.dialled.target else { return };
        let chosen = match choose(&response.endpoints, target, self.config.channel.provider.as_ref()) {
            Ok(chosen) => chosen,
            Err(problem) => return self.lose(problem.into(), now, sink),
        };
        if let Some(note) = chosen.note.clone() {
            Self::note(note, sink);
        }
        let same_channel = chosen.policy == SecurityPolicy::None && chosen.url == target.url;
        let url = chosen.url.clone();
        self.dialled.chosen = Some(chosen);
        self.dialled.discovered = response.endpoints;
        if same_channel {
            return self.on_channel_open(now, sink);
        }
        self.hang_up(now);
        self.dial(url, now);
    }

    /// Closes channel and connection in an orderly way.
    fn hang_up(&mut self, now: Instant) {
        if let Some(mut channel) = self.link.channel.take() {
            channel.close(now, &mut self.link.out);
        }
        self.jobs.waiting.clear();
        self.activation = None;
        let unsent = core::mem::take(&mut self.link.out);
        self.effects.push_back(Effect::Disconnect { connection: self.link.connection, unsent });
        // Ignore everything that still arrives on it.
        self.link.connection = ConnectionId(self.link.connection.0.wrapping_add(1));
    }

    /// The connection has failed: fails everything on it and decides what comes next.
    pub(crate) fn lose(&mut self, error: ClientError, now: Instant, sink: &mut dyn Sink) {
        let was_up = self.phase == Phase::Up;
        if matches!(self.phase, Phase::Idle | Phase::Waiting { .. }) {
            return;
        }
        if matches!(self.phase, Phase::Closing { .. }) {
            return self.finish_close(now, sink);
        }
        self.hang_up(now);
        self.fail_all(&error, sink);
        self.mark_interrupted();
        if !self.may_retry(&error) {
            return self.end(Some(error), sink);
        }
        let is_refusal = match &error {
            ClientError::Security(_) => true,
            // A busy server is not asked for its endpoints, too.
            ClientError::Service { status, .. } => !is_busy(*status),
            ClientError::Channel(ChannelError::Crypto(_) | ChannelError::Peer(_)) => true,
            // A server may send this if it cannot decrypt a message because its key has changed.
            ClientError::ServerClosed { status, .. } => !is_busy(*status),
            _ => false,
        };
        if is_refusal {
            // A restarted server can have another certificate and other endpoints: discover them again.
            if self.dialled.target.as_ref().is_some_and(|target| target.discover && target.session) && !was_up
            {
                self.dialled.chosen = None;
            }
        }
        if was_up {
            let lasted = now.since(self.tries.up_since) >= SHORT_LIVED;
            self.tries.short_lived = if lasted { 0 } else { self.tries.short_lived.saturating_add(1) };
        }
        let retry_at = now + self.back_off(&error);
        self.tries.failed = self.tries.failed.saturating_add(1);
        self.phase = Phase::Waiting { until: retry_at };
        sink.event(if was_up {
            Event::ConnectionLost { error, retry_at }
        } else {
            Event::ConnectFailed { error, retry_at }
        });
    }

    fn may_retry(&self, error: &ClientError) -> bool {
        let policy = &self.config.reconnect;
        let allowed = policy.enabled && (self.tries.was_up || policy.retry_first);
        let left = policy.attempts_max.is_none_or(|max| self.tries.failed < max);
        // The target cannot be reached as configured. After a first success, only the server can have changed.
        let hopeless =
            !self.tries.was_up && matches!(error, ClientError::Security(_) | ClientError::Local(_));
        let is_refused = error.is_refused_user() && !policy.retry_refused_user;
        allowed && left && !hopeless && !is_refused
    }

    /// The delay doubles with each attempt. Jitter spreads clients that lost the same server. It is longer if the
    /// server reports that it is busy.
    fn back_off(&mut self, error: &ClientError) -> Duration {
        let policy = &self.config.reconnect;
        // The first short-lived connection does not count.
        let failures = self.tries.failed.saturating_add(self.tries.short_lived.saturating_sub(1));
        let factor = 1u32 << (failures.min(20) + if is_busy(error.status()) { 2 } else { 0 });
        let delay = policy.delay_min.saturating_mul(factor).min(policy.delay_max);
        self.jittered(delay)
    }

    /// A random time between half of a delay and the whole delay.
    pub(crate) fn jittered(&mut self, delay: Duration) -> Duration {
        let half_nanos = u64::try_from(delay.as_nanos() / 2).unwrap_or(u64::MAX / 2);
        Duration::from_nanos(half_nanos + self.entropy.below(half_nanos + 1))
    }

    /// Fails all outstanding requests.
    fn fail_all(&mut self, error: &ClientError, sink: &mut dyn Sink) {
        while let Some(entry) = self.link.outstanding.pop() {
            if entry.purpose == Purpose::User {
                sink.response(entry.handle, Err(error.clone()));
            }
            self.note_unanswered(entry.purpose);
        }
        self.batches.failed.clear();
        self.drop_batches(error, sink);
    }

    /// Operations in progress on the server have an unknown result.
    fn mark_interrupted(&mut self) {
        for subscription in &mut self.subscriptions {
            self.publisher.orphans |= subscription.state == State::Creating;
            subscription.interrupted();
        }
    }

    /// The client has ended.
    fn end(&mut self, error: Option<ClientError>, sink: &mut dyn Sink) {
        self.forget_session();
        self.subscriptions.clear();
        self.dialled.target = None;
        self.dialled.chosen = None;
        self.dialled.discovered = Vec::new();
        self.phase = Phase::Idle;
        sink.event(Event::Disconnected(error));
    }

    pub(crate) fn on_phase_deadline(&mut self, now: Instant, sink: &mut dyn Sink) {
        match self.phase {
            Phase::Waiting { .. } => self.start_attempt(now),
            Phase::Connecting { .. } => {
                self.lose(ClientError::Connection("timeout while connecting".into()), now, sink);
            }
            Phase::Closing { .. } => self.finish_close(now, sink),
            Phase::Idle | Phase::Opening | Phase::Up => {}
        }
    }

    pub(crate) fn finish_close(&mut self, now: Instant, sink: &mut dyn Sink) {
        self.hang_up(now);
        self.fail_all(&ClientError::Connection("closed by the client".into()), sink);
        self.end(None, sink);
    }

    /// The session was activated; without a session, the channel is open.
    pub(crate) fn on_activated(&mut self, restored: Restored, now: Instant, sink: &mut dyn Sink) {
        let wants_limits = self.config.read_limits && self.session.is_some();
        if wants_limits {
            // Also with the old session: the server's namespaces may have changed in the meantime.
            let ids = LIMIT_NODES.iter().map(|(_, id)| *id).chain([variable_ids::SERVER_NAMESPACE_ARRAY]);
            let nodes_to_read = ids.map(value_of).collect();
            let request = ReadRequest {
                nodes_to_read,
                timestamps_to_return: TimestampsToReturn::NEITHER,
                ..ReadRequest::default()
            };
            self.start_batch(request, BatchOwner::Limits(restored));
            return self.pump(now);
        }
        self.on_up(restored, now, sink);
    }

    pub(crate) fn on_limits(
        &mut self,
        restored: Restored,
        result: Result<Box<dyn Any + Send>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        match result.map(|joined| joined.downcast::<ReadResponse>()) {
            Ok(Ok(response)) => {
                if restored == Restored::NewSession {
                    // Limits learned before the server restarted may be outdated.
                    self.learned.limits = OperationLimits::default();
                }
                let (limits, rest) = response.results.split_at(LIMIT_NODES.len().min(response.results.len()));
                self.learned.limits.take(limits);
                let namespaces = rest.first().and_then(|value| strings(value.value.as_ref()?));
                if let Some(namespaces) = namespaces.filter(|found| **found != *self.learned.namespaces) {
                    let changed = !self.learned.namespaces.is_empty();
                    self.learned.namespaces = namespaces.into();
                    if changed {
                        Self::note(Note::NamespacesChanged, sink);
                    }
                }
            }
            Err(error) if error.is_connection() => return self.lose(error, now, sink),
            // If the server does not allow reading its limits, they are learned.
            Ok(Err(_)) | Err(_) => {}
        }
        self.on_up(restored, now, sink);
    }

    fn on_up(&mut self, restored: Restored, now: Instant, sink: &mut dyn Sink) {
        // The application has disconnected before it was up: the server must not keep the session.
        if matches!(self.phase, Phase::Closing { .. }) {
            self.phase = Phase::Up;
            return self.disconnect(now);
        }
        self.phase = Phase::Up;
        self.tries.failed = 0;
        self.tries.up_since = now;
        let transfer_due = self.session.as_mut().is_some_and(|session| {
            session.is_reported = true;
            session.transfer_due
        });
        let info = self.session_info();
        let first = !core::mem::replace(&mut self.tries.was_up, true);
        sink.event(if first { Event::Connected(info) } else { Event::Restored(restored, info) });
        if transfer_due {
            self.transfer(now, sink)
        } else {
            self.recover_all(now, sink)
        }
        self.pump(now);
    }

    fn recover_all(&mut self, now: Instant, sink: &mut dyn Sink) {
        let recovering = self.subscriptions.iter().filter(|known| known.state == State::Recovering);
        let handles: Vec<_> = recovering.map(|known| known.handle).collect();
        for handle in handles {
            self.recover(handle, now, sink);
        }
    }

    /// Transfers the subscriptions of the old session (Part 4 §5.14.7).
    fn transfer(&mut self, now: Instant, sink: &mut dyn Sink) {
        // Subscriptions being deleted with the old session are left to their lifetime.
        self.subscriptions.retain(|known| known.state != State::Deleting);
        let recovering = self.subscriptions.iter().filter(|known| known.state == State::Recovering);
        let subscription_ids: Vec<u32> = recovering.map(|known| known.server_id).collect();
        if subscription_ids.is_empty() {
            return self.transfer_done();
        }
        let mut request = TransferSubscriptionsRequest {
            subscription_ids,
            send_initial_values: false,
            ..TransferSubscriptionsRequest::default()
        };
        if let Some(session) = &mut self.session {
            session.transfers = session.transfers.saturating_add(1);
        }
        self.send_step(&mut request, Purpose::Transfer, now, sink);
    }

    fn transfer_done(&mut self) {
        if let Some(session) = &mut self.session {
            session.transfer_due = false;
        }
    }

    pub(crate) fn on_transferred(
        &mut self,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let repeated = self.session.as_ref().is_some_and(|session| session.transfers > 1);
        self.transfer_done();
        let recovering = self.subscriptions.iter().filter(|known| known.state == State::Recovering);
        let handles: Vec<_> = recovering.map(|known| known.handle).collect();
        let service = "TransferSubscriptions";
        let results = match result.and_then(|answer| answer.read::<TransferSubscriptionsResponse>(service)) {
            Ok(response) => response.results,
            // If the server does not transfer, the subscriptions have to be created again.
            Err(error) => {
                for handle in handles {
                    self.recreate(handle, error.status(), sink);
                }
                return;
            }
        };
        let mut results = results.into_iter();
        for handle in handles {
            let result = results.next().unwrap_or_default();
            if !result.status_code.is_good() && !repeated {
                self.recreate(handle, result.status_code, sink);
                continue;
            }
            // The first attempt may have succeeded although its response was lost, so that there is nothing left to
            // transfer. Requesting the next message then shows whether the subscription is in our session.
            if let (Some(subscription), true) = (self.subscription(handle), result.status_code.is_good()) {
                subscription.transferred = true;
                subscription.available = result.available_sequence_numbers;
            }
            self.recover(handle, now, sink);
        }
    }

    /// When the server's state has to be read, to keep the session alive and detect a dead connection.
    pub(crate) fn probe_at(&self) -> Instant {
        let Some(session) = &self.session else { return Instant::FAR };
        if self.link.outstanding.has(|purpose| purpose == Purpose::Probe) {
            return Instant::FAR;
        }
        let silent = self.link.last_heard + self.config.idle_probe;
        silent.min(self.link.last_sent.plus_millis_f64(session.revised_timeout_ms.max(2.0) / 2.0))
    }

    pub(crate) fn probe(&mut self, now: Instant) {
        let mut request = ReadRequest {
            nodes_to_read: vec![value_of(variable_ids::SERVER_SERVER_STATUS_STATE)],
            timestamps_to_return: TimestampsToReturn::NEITHER,
            ..ReadRequest::default()
        };
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        // If sending fails, the channel has already reported why.
        let _ = self.link.send(&mut request, handle, Purpose::Probe, timeout, now);
    }
}

fn value_of(variable: u32) -> ReadValueId {
    ReadValueId { node_id: NodeId::numeric(0, variable), attribute_id: VALUE, ..ReadValueId::default() }
}

fn strings(value: &Variant) -> Option<Vec<UaString>> {
    match &value.as_array()?.values {
        ArrayValues::String(values) => Some(values.clone()),
        _ => None,
    }
}

/// The endpoint of a target without discovery.
fn undiscovered(target: &Target) -> Chosen {
    let (policy, mode) = match target.security {
        Security::Exactly(policy, mode) if target.session => (policy, mode),
        _ => (SecurityPolicy::None, MessageSecurityMode::None),
    };
    let description = EndpointDescription {
        server_certificate: target.server_certificate.as_deref().into(),
        ..EndpointDescription::default()
    };
    Chosen { policy, mode, description, url: target.url.clone(), note: None }
}

/// Refuses inconsistent targets.
fn check_target(target: &Target, provider: &dyn Provider) -> Result<(), SecurityProblem> {
    let is_strongest = resolve(target.security, provider) == Security::Best;
    let strongest_unasked = target.session && !target.discover && is_strongest;
    if strongest_unasked {
        return Err(SecurityProblem::NoEndpoint {
            wanted: "security, without discovery".into(),
            offered: vec![],
        });
    }
    Ok(())
}
