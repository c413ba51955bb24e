//! The client: one state machine for connection, session and subscriptions.

use crate::batch::{ActiveBatch, BatchOwner, Batches, Parts, Splittable};
use crate::config::ClientConfig;
use crate::effect::{ConnectionId, Effect, JobToken};
use crate::endpoint::Dialled;
use crate::error::{ClientError, Misuse, SecurityProblem};
use crate::event::{Event, Note, Reply, ReplyBody, RequestHandle, SessionInfo, Sink};
use crate::learned::Learned;
use crate::limits::OperationLimits;
use crate::link::{Answer, Link};
use crate::namespaces::Namespaces;
use crate::outstanding::{Entry, Purpose};
use crate::phase::{Phase, Tries};
use crate::publisher::Publisher;
use crate::session::{Activation, JobPurpose, Jobs, Nonces, Session};
use crate::subscription::Subscription;
use crate::work::Work;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_channel::Event as ChannelEvent;
use taktwerk_crypto::{CertificatePurpose, CryptoError, Entropy, Job, JobOutput};
use taktwerk_schema::ServiceFault;
use taktwerk_schema::service::Request;
use taktwerk_types::{Instant, Structure, UtcTime};

/// An OPC UA client without I/O. The crate documentation describes how a driver uses it.
pub struct Client {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) dialled: Dialled,
    pub(crate) phase: Phase,
    pub(crate) link: Link,
    pub(crate) session: Option<Session>,
    pub(crate) activation: Option<Activation>,
    pub(crate) nonces: Nonces,
    pub(crate) learned: Learned,
    pub(crate) batches: Batches,
    /// Events that occurred in calls without a sink; delivered with the next call that has one.
    pub(crate) pending_events: Vec<Event>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) next_subscription: u32,
    pub(crate) publisher: Publisher,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) jobs: Jobs,
    pub(crate) tries: Tries,
    /// Number of renewed security tokens.
    pub(crate) renewals: u64,
    /// Value of the trust list counter when the server's certificate was last validated.
    trusted_at: u64,
    pub(crate) work: Work,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut debug = f.debug_struct("Client");
        debug.field("phase", &self.phase).field("link", &self.link).finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client that is not connected.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>, entropy: Box<dyn Entropy>) -> Self {
        let utc_origin = config.channel.utc_origin;
        let publisher = Publisher::new(config.publish_max);
        Self {
            config,
            entropy,
            dialled: Dialled::default(),
            phase: Phase::Idle,
            link: Link::new(utc_origin),
            session: None,
            activation: None,
            nonces: Nonces::default(),
            learned: Learned::default(),
            batches: Batches::default(),
            pending_events: Vec::new(),
            subscriptions: Vec::new(),
            next_subscription: 0,
            publisher,
            effects: VecDeque::new(),
            jobs: Jobs::default(),
            tries: Tries::default(),
            renewals: 0,
            trusted_at: 0,
            work: Work::default(),
        }
    }

    /// Sets the wall time at [`Instant::ZERO`], which is used for request timestamps.
    pub fn set_utc_origin(&mut self, utc_origin: UtcTime) {
        self.link.utc_origin = utc_origin;
    }

    /// The current step of connecting or staying connected, as text, such as `ActivateSession`.
    #[must_use]
    pub fn step(&self) -> &'static str {
        match self.phase {
            Phase::Idle => "not connected",
            Phase::Waiting { .. } => "waiting for the next attempt",
            Phase::Connecting { .. } => "TCP connection",
            Phase::Opening if !self.jobs.waiting.is_empty() => "verify keys and certificates",
            Phase::Opening => self.link.outstanding.newest().unwrap_or("OpenSecureChannel"),
            Phase::Up => "session up",
            Phase::Closing { .. } => "CloseSession",
        }
    }

    /// Whether requests can be sent.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// The server's limits: published ones, and lower ones learned from refused requests.
    #[must_use]
    pub fn limits(&self) -> &OperationLimits {
        &self.learned.limits
    }

    /// The server's NamespaceArray as read after the last connect; empty if it was not read.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.learned.namespaces
    }

    /// Whether namespace indexes that were looked up in this array are still valid.
    #[must_use]
    pub fn has_namespaces(&self, namespaces: &Namespaces) -> bool {
        self.learned.namespaces.is(namespaces)
    }

    /// A smoothed round-trip time of requests other than Publish; zero before the first response.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.link.round_trip
    }

    /// How often the channel's keys have been renewed, over all connections (Part 4 §5.6.2).
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    /// Number of outstanding requests: (Publish requests, others).
    #[must_use]
    pub fn outstanding(&self) -> (usize, usize) {
        (self.link.outstanding.publishes(), self.link.outstanding.len())
    }

    /// Sends a request of any service. Its header is filled in (token, time, handle, timeout hint); the request can be
    /// used again. Requests are not split: see [`Client::operate`] for that. `timeout` defaults to the configured one.
    ///
    /// # Errors
    /// [`Misuse::NotConnected`], [`Misuse::TooManyRequests`], or the message is larger than the server accepts. Nothing
    /// was sent then, and no response follows.
    pub fn request<R: Request>(
        &mut self,
        request: &mut R,
        timeout: Option<Duration>,
        now: Instant,
    ) -> Result<RequestHandle, ClientError> {
        self.check_up()?;
        let handle = self.link.next_handle();
        let timeout = Some(timeout.unwrap_or(self.config.request_timeout));
        self.link.send(request, handle, Purpose::User, timeout, now)?;
        Ok(handle)
    }

    /// Sends a list of operations, split to fit the server's limits. The results are joined in order. Parts that the
    /// server still finds too large are halved and sent again.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn operate<R: Splittable>(&mut self, request: R, now: Instant) -> Result<RequestHandle, ClientError> {
        self.check_up()?;
        let handle = self.link.next_handle();
        self.start_batch(request, BatchOwner::User(handle));
        self.pump(now);
        Ok(handle)
    }

    /// Like [`Client::operate`], for a request whose namespace indexes refer to the given array.
    ///
    /// # Errors
    /// [`Misuse::NamespacesChanged`] if the server's NamespaceArray is different now: the request would address other
    /// nodes.
    pub fn operate_in<R: Splittable>(
        &mut self,
        namespaces: &Namespaces,
        request: R,
        now: Instant,
    ) -> Result<RequestHandle, ClientError> {
        self.check_up()?;
        if !self.has_namespaces(namespaces) {
            return Err(Misuse::NamespacesChanged.into());
        }
        self.operate(request, now)
    }

    fn check_up(&self) -> Result<(), Misuse> {
        if self.phase != Phase::Up {
            return Err(Misuse::NotConnected);
        }
        if self.link.outstanding.len() + self.batches.active.len() >= self.config.outstanding_max {
            return Err(Misuse::TooManyRequests);
        }
        Ok(())
    }

    pub(crate) fn start_batch<R: Splittable>(&mut self, request: R, owner: BatchOwner) {
        let parts = Parts::new(request, self.learned.limits.max(R::KIND));
        self.batches.last = self.batches.last.wrapping_add(1);
        let batch = ActiveBatch { parts: Box::new(parts), owner, in_flight: 0 };
        self.batches.active.insert(self.batches.last, batch);
    }

    /// The send buffer. The driver sends from its front and removes what was sent.
    pub fn transmit(&mut self) -> &mut Vec<u8> {
        &mut self.link.out
    }

    /// The next action for the driver. Drain it after every call.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Counters of the work done since the last call.
    pub fn take_work(&mut self) -> Work {
        self.link.count_sent(&mut self.work);
        core::mem::take(&mut self.work)
    }

    /// Bytes have arrived. `buf` holds all bytes received on the connection and not consumed yet. Returns how many were
    /// consumed; keep the rest in front of the next bytes.
    pub fn received(
        &mut self,
        connection: ConnectionId,
        buf: &mut [u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> usize {
        let mut at = 0;
        let mut chunks = 0;
        loop {
            let rest = buf.get_mut(at..).unwrap_or_default();
            let channel = self.link.channel.as_mut().filter(|_| connection == self.link.connection);
            // Ignore bytes of a connection that has ended.
            let Some(channel) = channel else { return buf.len() };
            match channel.receive(rest, now, &mut self.link.out) {
                Ok(received) => match received.event {
                    ChannelEvent::NeedMore { .. } => break,
                    ChannelEvent::Message { request_id, body } => {
                        chunks += 1;
                        self.link.last_heard = now;
                        self.on_message(request_id, body.bytes(rest), now, sink);
                        at += received.consumed;
                    }
                    other => {
                        chunks += 1;
                        at += received.consumed;
                        self.on_channel_event(other, now, sink);
                    }
                },
                Err(error) => {
                    self.lose(error.into(), now, sink);
                    return buf.len();
                }
            }
        }
        self.work.chunks_received += chunks;
        self.work.bytes_received += at as u64;
        if self.link.is_secured() {
            self.work.signatures += chunks;
        }
        self.pump(now);
        at
    }

    /// A complete message has arrived.
    fn on_message(&mut self, request_id: u32, message: &[u8], now: Instant, sink: &mut dyn Sink) {
        let answer = match Answer::parse(message, self.config.decode_limits) {
            Ok(answer) => answer,
            Err(error) => return self.lose(error.into(), now, sink),
        };
        // The response to a request that has timed out.
        let Some(entry) = self.link.outstanding.take(request_id) else { return };
        self.work.responses += 1;
        if entry.purpose != Purpose::Publish {
            self.link.measure(entry.sent_at, now);
        }
        let result = if answer.type_id == ServiceFault::BINARY_ENCODING_ID || answer.status.is_bad() {
            Err(ClientError::Service { service: entry.service, status: answer.status })
        } else {
            Ok(answer)
        };
        self.on_answer(entry, result, now, sink);
    }

    /// A request was answered or has failed.
    pub(crate) fn on_answer(
        &mut self,
        entry: Entry,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        if let Err(error) = &result
            && self.phase == Phase::Up
            && error.is_session_gone()
        {
            // Whichever request fails first triggers the reconnect with a new session.
            let error = error.clone();
            if entry.purpose == Purpose::User {
                sink.response(entry.handle, Err(error.clone()));
            }
            return self.lose(error, now, sink);
        }
        match entry.purpose {
            Purpose::User => {
                let limits = self.config.decode_limits;
                let reply = result
                    .map(|Answer { type_id, body, .. }| Reply(ReplyBody::Wire { type_id, body, limits }));
                sink.response(entry.handle, reply);
            }
            Purpose::Publish => self.on_publish(result, now, sink),
            Purpose::Part { batch, part } => self.on_part(batch, part, result, now, sink),
            Purpose::GetEndpoints => self.on_endpoints(result, now, sink),
            Purpose::CreateSession => self.on_session_created(result, now, sink),
            Purpose::ActivateSession => self.on_session_activated(result, now, sink),
            Purpose::CloseSession => self.finish_close(now, sink),
            Purpose::Transfer => self.on_transferred(result, now, sink),
            Purpose::Republish { subscription, sequence_number } => {
                self.on_republish(subscription, sequence_number, result, now, sink);
            }
            Purpose::CreateSubscription(handle) => self.on_subscription_created(handle, result, now, sink),
            Purpose::ModifySubscription(handle) => self.on_subscription_modified(handle, result, now, sink),
            Purpose::SetPublishingMode(handle, enabled) => {
                self.on_publishing_mode_set(handle, enabled, result, sink);
            }
            Purpose::DeleteSubscription(handle) => self.on_subscription_deleted(handle, result, now, sink),
            Purpose::Audit(handle) => self.on_audited(handle, result, now),
            // Any answer shows that the connection works.
            Purpose::Probe | Purpose::ResendData(_) | Purpose::Ignore => {}
        }
    }

    fn on_channel_event(&mut self, event: ChannelEvent, now: Instant, sink: &mut dyn Sink) {
        match event {
            ChannelEvent::Opened => self.on_channel_open(now, sink),
            ChannelEvent::Effect(job) => {
                let provider = self.config.channel.provider.clone();
                if matches!(*job, Job::OpenChunk(_)) {
                    // The channel validates the server's certificate when it opens.
                    self.trusted_at = self.trust_list_changes();
                }
                self.start_job(JobPurpose::Channel, *job, provider);
            }
            ChannelEvent::Aborted { request_id, status, .. } => {
                if let Some(entry) = self.link.outstanding.take(request_id) {
                    let error = ClientError::Service { service: entry.service, status };
                    self.on_answer(entry, Err(error), now, sink);
                }
            }
            ChannelEvent::Closed(taktwerk_channel::Closed::Error { status, reason }) => {
                self.lose(ClientError::ServerClosed { status, reason }, now, sink);
            }
            ChannelEvent::Closed(taktwerk_channel::Closed::Close) => {
                self.lose(ClientError::Connection("the server closed the channel".into()), now, sink);
            }
            ChannelEvent::Renewed => self.renewals += 1,
            ChannelEvent::NeedMore { .. }
            | ChannelEvent::Handled
            | ChannelEvent::ReverseHello { .. }
            | ChannelEvent::Message { .. } => {}
        }
    }

    /// Takes the result of [`Effect::Crypto`].
    pub fn complete(
        &mut self,
        token: JobToken,
        result: Result<JobOutput, CryptoError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        // A job of a connection that has ended in the meantime is ignored.
        let Some(at) = self.jobs.waiting.iter().position(|(known, _)| *known == token) else { return };
        let (_, purpose) = self.jobs.waiting.swap_remove(at);
        match purpose {
            JobPurpose::Channel => {
                let Some(channel) = &mut self.link.channel else { return };
                match channel.complete(result, now, &mut self.link.out) {
                    Ok(event) => self.on_channel_event(event, now, sink),
                    Err(error) => self.lose(error.into(), now, sink),
                }
            }
            JobPurpose::Activation(step) => self.on_activation_job(step, result, now, sink),
            JobPurpose::Trust => {
                if let Err(error) = result {
                    self.lose(SecurityProblem::from(error).into(), now, sink);
                }
            }
        }
        self.pump(now);
    }

    fn trust_list_changes(&self) -> u64 {
        self.config.trust_list_changes.load(Ordering::Acquire)
    }

    /// Starts validating the server's certificate if a trust list has changed since the last validation.
    fn refresh_trust(&mut self) {
        let change = self.trust_list_changes();
        if change == self.trusted_at || self.phase != Phase::Up {
            return;
        }
        self.trusted_at = change;
        let certificate = self.link.channel.as_ref().and_then(|channel| channel.peer_certificate()).cloned();
        let (Some(certificate), Some(chosen)) = (certificate, &self.dialled.chosen) else { return };
        let purpose = CertificatePurpose::Server { host_name: chosen.url.host.clone().into() };
        let provider = self.config.channel.provider.clone();
        self.start_job(JobPurpose::Trust, Job::Validate { certificate, purpose }, provider);
    }

    /// When [`Client::handle_timeout`] has to be called, and the reason.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let mut first = (Instant::FAR, "");
        let mut consider = |at: Instant, reason| {
            if at < first.0 {
                first = (at, reason);
            }
        };
        if !self.batches.failed.is_empty() || !self.pending_events.is_empty() {
            consider(Instant::ZERO, "report requests that could not be sent");
        }
        if let Some((at, reason)) = self.phase.deadline() {
            consider(at, reason);
        }
        if let Some((at, reason)) = self.link.channel.as_ref().and_then(|channel| channel.poll_timeout()) {
            consider(at, reason);
        }
        if let Some(at) = self.link.outstanding.deadline() {
            consider(at, "request timeout");
        }
        if self.phase == Phase::Up {
            consider(self.probe_at(), "keep the session alive");
            for subscription in self.subscriptions.iter().filter(|subscription| subscription.is_live()) {
                consider(subscription.alive_by, "subscription keep-alive");
            }
            if let Some(at) = self.publisher.resume_at {
                consider(at, "publish again");
            }
            for at in self.subscriptions.iter().filter_map(|subscription| subscription.retry_at) {
                consider(at, "create a subscription again");
            }
        }
        (first.0 != Instant::FAR).then_some(first)
    }

    /// Handles everything that is due.
    pub fn handle_timeout(&mut self, now: Instant, sink: &mut dyn Sink) {
        for event in core::mem::take(&mut self.pending_events) {
            sink.event(event);
        }
        for (batch, error) in core::mem::take(&mut self.batches.failed) {
            self.fail_batch(batch, &error, now, sink);
        }
        if self.phase.deadline().is_some_and(|(at, _)| at <= now) {
            self.on_phase_deadline(now, sink);
        }
        if let Some(channel) = &mut self.link.channel {
            match channel.handle_timeout(now, &mut self.link.out) {
                Ok(None) => {}
                Ok(Some(event)) => self.on_channel_event(event, now, sink),
                Err(error) => self.lose(error.into(), now, sink),
            }
        }
        while let Some(entry) = self.link.outstanding.take_overdue(now) {
            self.on_overdue(entry, now, sink);
        }
        if self.phase == Phase::Up {
            self.watch_subscriptions(now, sink);
            self.publisher.resume(now);
            for known in &mut self.subscriptions {
                known.retry_at = known.retry_at.filter(|at| *at > now);
            }
            if self.probe_at() <= now {
                self.probe(now);
            }
        }
        self.pump(now);
    }

    fn on_overdue(&mut self, entry: Entry, now: Instant, sink: &mut dyn Sink) {
        let error = ClientError::Timeout(entry.service);
        let is_own = match entry.purpose {
            Purpose::User | Purpose::Publish | Purpose::CloseSession => false,
            Purpose::Part { batch, .. } => self
                .batches
                .active
                .get(&batch)
                .is_some_and(|batch| !matches!(batch.owner, BatchOwner::User(_))),
            _ => true,
        };
        if is_own {
            // The server is unresponsive if it does not answer the client's internal requests. The client must repeat
            // them itself on the next connection.
            self.note_unanswered(entry.purpose);
            self.lose(error, now, sink);
        } else {
            self.on_answer(entry, Err(error), now, sink);
        }
    }

    /// Sends pending parts of requests, changes of subscriptions, and Publish requests.
    pub(crate) fn pump(&mut self, now: Instant) {
        if self.phase == Phase::Up {
            self.refresh_trust();
            self.sync_subscriptions(now);
        }
        self.pump_batches(now);
        if self.phase == Phase::Up {
            self.pump_publishes(now);
        }
    }

    /// The session data for events.
    pub(crate) fn session_info(&self) -> Box<SessionInfo> {
        let (session_id, revised_timeout_ms) = match &self.session {
            Some(session) => (session.id.clone(), session.revised_timeout_ms),
            None => Default::default(),
        };
        let channel = self.link.channel.as_ref();
        Box::new(SessionInfo {
            session_id,
            revised_timeout_ms,
            policy: channel.map(|channel| channel.policy()).unwrap_or_default(),
            mode: channel.map(|channel| channel.mode()).unwrap_or_default(),
            limits: self.learned.limits,
            namespaces: self.learned.namespaces.clone(),
        })
    }

    pub(crate) fn note(note: Note, sink: &mut dyn Sink) {
        sink.event(Event::Note(note));
    }
}
