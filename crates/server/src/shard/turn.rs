//! A turn of the shard: received chunks, requests, deadlines, results.

use super::{Shard, outbox, rearm};
use crate::account::Category;
use crate::audit::AuditAction;
use crate::callback::SourceRead;
use crate::connection::outbox::{finish, schedule};
use crate::effect::{Job, JobResult, SessionResult, SessionWork, Task, Token};
use crate::error::Fault;
use crate::ids::{ConnectionId, ReplyTo};
use crate::job_kind::JobKind;
use crate::now::Now;
use crate::reply::Reply;
use crate::request::Request;
use crate::service::context::{Context, Peer};
use crate::service::deferred::{Deferred, Kind, Purpose, deadline};
use crate::service::table::{self, Service};
use crate::service::turns::{Suspended, Waiting};
use crate::service::{Outcome, activate, dispatch, session, transfer};
use crate::subscription::publish::Responder;
use crate::subscription::sampling::SampleJob;
use crate::work::unit;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::{Event, Received};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_schema::PublishRequest;
use taktwerk_types::{Instant, StatusCode, Structure};

/// Maximum number of sessions, of requests and of connections checked per timer call.
const LOOKS_PER_TIMER: usize = 64;
/// Largest scratch buffer that is kept, in bytes.
const SCRATCH_LEN_MAX: usize = 1 << 20;
/// How often a shard publishes its subscription diagnostics while they are read.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The kind of a channel's job.
fn handshake_kind(job: &taktwerk_crypto::Job) -> JobKind {
    use taktwerk_crypto::Job as Crypto;
    match job {
        Crypto::OpenChunk(open) => JobKind::OpenChannel(open.policy),
        Crypto::SealChunk(seal) => JobKind::AnswerChannel(seal.policy),
        _ => JobKind::ValidateCertificate,
    }
}

impl Shard {
    /// Bytes have arrived: `buf` holds everything received and not consumed. Returns how many bytes were consumed; the
    /// driver keeps the rest.
    pub fn received(&mut self, id: ConnectionId, buf: &mut [u8], now: Now) -> usize {
        let mut done = 0;
        let quantum = self.turns.quantum(now.instant);
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.heard = now.instant;
            if connection.refilled != now.instant {
                connection.refill(quantum, now.instant);
            }
        }
        while self.wants_read(id) {
            let Some(connection) = self.connections.get_mut(id.0) else { break };
            let Some(rest) = buf.get_mut(done..) else { break };
            if connection.allowance <= 0 && !rest.is_empty() && !self.turns.is_busy(id) {
                // Other connections get their turn first.
                self.turns.rest(id);
                break;
            }
            connection.ensure_buffer(&mut self.output.buffers);
            let Received { consumed, event } =
                match connection.channel.receive(rest, now.instant, &mut connection.out) {
                    Ok(received) => received,
                    Err(error) => {
                        tracing::debug!(%error, "channel closed");
                        self.audit_failure(id, error.status(), now);
                        self.close(id, now);
                        done = buf.len();
                        break;
                    }
                };
            match event {
                Event::Message { request_id, body } => {
                    let body = body.bytes(rest);
                    self.request(id, request_id, body, now);
                }
                Event::NeedMore { .. } => break,
                other => self.on_event(id, other, now),
            }
            done += consumed;
            self.work.chunks_received += 1;
        }
        self.work.bytes_received += done as u64;
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.account_incomplete(buf.len() - done);
        }
        self.update_connection(id, now);
        self.check_account(id, now);
        done
    }

    /// Closes a connection that exceeds the limit of its address. If the server's limit is exceeded, closes the
    /// connections that hold most.
    pub(super) fn check_account(&mut self, id: ConnectionId, now: Now) {
        for category in [Category::IncompleteMessages, Category::UnsentMessages, Category::Requests] {
            let Some(connection) = self.connections.get(id.0) else { return };
            // Unsent data are checked when the socket accepts no more.
            let is_looked_at = category != Category::UnsentMessages || connection.is_blocked();
            if !is_looked_at || connection.charged(category) == 0 {
                continue;
            }
            if connection.account.parent().is_some_and(|address| address.is_over(category)) {
                self.close_over_limit(id, category, now);
            }
            self.relieve(now);
        }
    }

    /// Handles a channel's events other than messages.
    fn on_event(&mut self, id: ConnectionId, event: Event, now: Now) {
        match event {
            Event::Effect(mut job) => {
                if self.may_handshake(id, now)
                    && let Ok(charge) = self.shared.account().charge(Category::HandshakeCount, 1)
                {
                    self.handshake_begins(id, &mut job);
                    let provider = Arc::clone(&self.shared.config().provider);
                    let kind = handshake_kind(&job);
                    let job = Task::blocking(kind, move || JobResult::Crypto(job.run(&*provider)));
                    self.deferrals.run_apart(Kind::Channel(id, charge), job);
                } else {
                    // Before any cryptography (Part 2 §5.1.2.2).
                    self.shared.live().counters.shed_handshake_count.up();
                    self.fail(id, StatusCode::BAD_TCP_SERVER_TOO_BUSY, now);
                }
            }
            Event::Closed(_) | Event::ReverseHello { .. } => {
                self.audit_channel(id, now, StatusCode::GOOD, |_| AuditAction::CloseSecureChannel);
                self.close(id, now);
            }
            Event::Opened => {
                self.handshake_succeeded(id);
                self.identify(id);
                self.audit_open(id, StatusCode::GOOD, false, now);
            }
            Event::Renewed => {
                self.handshake_succeeded(id);
                self.audit_open(id, StatusCode::GOOD, true, now);
            }
            Event::NeedMore { .. } | Event::Handled | Event::Message { .. } | Event::Aborted { .. } => {}
        }
    }

    /// Whether a handshake may be computed now. A flood of handshakes must leave capacity for other clients.
    fn may_handshake(&self, id: ConnectionId, now: Now) -> bool {
        let Some(connection) = self.connections.get(id.0) else { return false };
        let channel = &connection.channel;
        let is_signed = channel.is_open() && channel.policy().is_secure();
        let under_way = self.shared.account().used(Category::HandshakeCount);
        self.shared.admission().may_handshake(connection.address, is_signed, under_way, now.instant)
    }

    /// Updates a connection's state after an event.
    pub(super) fn update_connection(&mut self, id: ConnectionId, _now: Now) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.account_unsent();
        if connection.unsent_len() == 0 {
            if connection.out.capacity() > 0 {
                connection.on_sent(0, &mut self.output.buffers);
            }
        } else {
            schedule(id, connection, &mut self.output.transmit);
        }
        self.watch(id);
    }

    /// Schedules the next check of a connection for its channel's deadline.
    pub(super) fn watch(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if let Some((at, _)) = connection.channel.poll_timeout() {
            rearm(&mut self.attention.deadlines, id, connection, at);
        }
        if connection.sessions.is_empty() && !connection.is_closing {
            let at = connection.heard.plus_millis_f64(self.shared.config().limits.sessionless_timeout);
            rearm(&mut self.attention.deadlines, id, connection, at);
        }
        self.register_evictable(id);
    }

    /// The service context for a request on a connection.
    pub(crate) fn context(&mut self, peer: Option<Peer>, now: Now) -> Context<'_> {
        let limits = &self.shared.config().limits;
        let peer = peer.unwrap_or(Peer {
            connection: ConnectionId(crate::slab::Key { index: u32::MAX, generation: 0 }),
            channel_id: 0,
            policy: SecurityPolicy::None,
            mode: MessageSecurityMode::None,
            certificate: None,
            response_len_max: usize::MAX,
            request_id: 0,
        });
        Context {
            shared: &self.shared,
            now,
            peer,
            sessions: &mut self.sessions,
            authorizer: &mut self.authorizer,
            audit: &mut self.audit,
            engine: &mut self.engine,
            deferrals: &mut self.deferrals,
            transfers: &mut self.transfers,
            entropy: &mut *self.entropy,
            attached: &mut self.attention.attached,
            published: &mut self.synced.published,
            turns: &mut self.turns,
            work: &mut self.work,
            units: i64::MAX,
            ends: None,
            outbox: outbox(
                &mut self.connections,
                &mut self.output.transmit,
                &mut self.output.buffers,
                now,
                limits,
            ),
        }
    }

    /// Handles a request.
    pub(super) fn request(&mut self, id: ConnectionId, request_id: u32, body: &[u8], now: Now) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.spans.begin(request_id, body);
        }
        if !self.waits(id, request_id, body, now) {
            self.answer(id, request_id, body, now.instant, now);
        }
    }

    /// The connection of a request.
    pub(super) fn peer(&self, id: ConnectionId, request_id: u32) -> Option<Peer> {
        let connection = self.connections.get(id.0)?;
        let channel = &connection.channel;
        Some(Peer {
            connection: id,
            channel_id: channel.id(),
            policy: channel.policy(),
            mode: channel.mode(),
            certificate: channel.peer_certificate().cloned(),
            response_len_max: connection.response_len_max(),
            request_id,
        })
    }

    /// Answers a request, or the part of it that fits the connection's allowance.
    pub(super) fn answer(
        &mut self,
        id: ConnectionId,
        request_id: u32,
        body: &[u8],
        arrived: Instant,
        now: Now,
    ) {
        self.refresh_authorization(now);
        self.refresh_trust(now);
        let limits = &self.shared.config().limits;
        let parsed = Request::parse(body, limits.decode());
        let service = table::find(parsed.as_ref().map_or(0, |request| request.type_id));
        let (alone, handle, hint) = match &parsed {
            Ok(request) => (service.answers_alone, request.header.handle, request.header.timeout_hint),
            Err((_, handle)) => (true, *handle, 0),
        };
        let until = deadline(arrived, hint, limits.deferred_timeout);
        let Some(peer) = self.peer(id, request_id) else { return };
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.ensure_buffer(&mut self.output.buffers);
        let units = connection.allowance;
        let unsent = connection.unsent_len();
        let span = connection.spans.service(request_id);
        // The response is written directly behind unsent data, or to a separate buffer if other responses may precede
        // it.
        let (mut out, start) = if alone {
            let start = connection.channel.begin(&mut connection.out);
            (core::mem::take(&mut connection.out), Some(start))
        } else {
            (core::mem::take(&mut self.output.scratch), None)
        };
        let before = out.len();
        let mut reply = Reply::new(&mut out, handle, now.utc);
        let mut cx = self.context(Some(peer), now);
        cx.units = units - unit::REQUEST;
        let outcome = match parsed {
            // It has waited too long behind other requests.
            Ok(_) if until <= now.instant => {
                reply.fault(Fault::limit(StatusCode::BAD_TIMEOUT, "deferred_timeout"));
                Outcome::Answered
            }
            Ok(request) => span.in_scope(|| dispatch(&mut cx, service, &request, &mut reply)),
            Err((fault, _)) => {
                reply.fault(fault);
                Outcome::Answered
            }
        };
        drop(span);
        let (after, ends) = (cx.units, cx.ends);
        self.spend(id, units - after);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let answered = matches!(outcome, Outcome::Answered);
        let waits = service.request == PublishRequest::BINARY_ENCODING_ID
            && matches!(outcome, Outcome::Deferred)
            && connection.unsent_len() == unsent;
        if !waits {
            connection.asked = now.instant;
        }
        if answered && let Some(start) = start {
            debug_assert!(connection.out.is_empty(), "the service did not answer alone");
            connection.out = out;
            finish(connection, start, request_id, handle, now);
        } else {
            if answered {
                connection.ensure_buffer(&mut self.output.buffers);
                let start = connection.channel.begin(&mut connection.out);
                connection.out.extend_from_slice(out.get(before..).unwrap_or_default());
                finish(connection, start, request_id, handle, now);
            }
            let response = match &outcome {
                Outcome::Suspended(..) => out.get(before..).unwrap_or_default().to_vec(),
                _ => Vec::new(),
            };
            if let Some(start) = start {
                out.truncate(start.offset());
                debug_assert!(connection.out.is_empty(), "the service did not answer alone");
                connection.out = out;
            } else if out.capacity() <= SCRATCH_LEN_MAX {
                out.clear();
                self.output.scratch = out;
            }
            self.keep_request(id, request_id, handle, service, body, response, until, outcome, now);
        }
        if let Some(key) = ends {
            self.context(None, now).close_session(key, true, None);
        }
        self.after_request(now);
    }

    /// Keeps a request that is not answered yet.
    #[allow(clippy::too_many_arguments)] // what a request is known by
    fn keep_request(
        &mut self,
        id: ConnectionId,
        request_id: u32,
        handle: u32,
        service: &'static Service,
        body: &[u8],
        response: Vec<u8>,
        deadline: Instant,
        outcome: Outcome,
        now: Now,
    ) {
        match outcome {
            Outcome::Answered | Outcome::Deferred => return,
            Outcome::Move(shard) => {
                self.driver.moves.push_back((id, shard));
                self.turns.hold(id, Waiting { request_id, body: body.to_vec(), arrived: now.instant });
                if let Some(connection) = self.connections.get_mut(id.0) {
                    connection.is_moving = true;
                }
            }
            Outcome::Suspended(session, paused) => {
                self.work.suspensions += 1;
                let body = body.to_vec();
                let left =
                    Suspended { request_id, handle, session, service, paused, body, response, deadline };
                self.turns.suspend(id, left);
            }
        }
        self.account_backlog(id);
    }

    /// Updates the shard's counts and registrations after a request.
    pub(super) fn after_request(&mut self, now: Now) {
        self.count_engine();
        self.apply_attached(now);
        self.audit_deferred(now);
        self.write_durable(now);
    }

    /// Updates the server's counts of subscriptions and items.
    pub(super) fn count_engine(&mut self) {
        let now = (self.engine.subscription_count(), self.engine.item_count());
        if now == self.synced.counted {
            return;
        }
        let change = |now: usize, before: usize| i32::try_from(now as i64 - before as i64).unwrap_or(0);
        let counters = &self.shared.live().counters;
        if now.0 < self.synced.counted.0 {
            let engine = &self.engine;
            self.sessions.tidy(|id| engine.find_any(id).is_some());
        }
        counters.current_subscription_count.change(change(now.0, self.synced.counted.0));
        counters.current_monitored_item_count.change(change(now.1, self.synced.counted.1));
        self.synced.counted = now;
    }

    /// Updates the sessions of connections.
    pub(super) fn apply_attached(&mut self, now: Now) {
        while let Some((id, key, is_here)) = self.attention.attached.pop() {
            let Some(connection) = self.connections.get_mut(id.0) else { continue };
            connection.sessions.retain(|other| *other != key);
            if !is_here {
                // Its client will find out that the session has ended, and may open another one.
                connection.heard = now.instant;
                self.watch(id);
            } else {
                connection.sessions.push(key);
                if let Some(session) = self.sessions.get(key).filter(|session| session.max_response_len > 0) {
                    let max = session.max_response_len as usize;
                    connection.session_len_max = connection.session_len_max.min(max);
                }
                self.register_evictable(id);
            }
        }
    }

    /// When [`Self::timer`] is to be called, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let mut first: Option<(Instant, &'static str)> = None;
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at {
                if first.is_none_or(|(earliest, _)| at < earliest) {
                    first = Some((at, reason));
                }
            }
        };
        consider(self.engine.next_deadline(), "publishing or sampling");
        consider(self.engine.write_deadline(), "durable subscriptions");
        consider((!self.restoring.is_empty()).then_some(Instant::ZERO), "durable subscriptions");
        consider(self.sessions.next_deadline(), "session timeout");
        consider(self.deferrals.next_deadline(), "deferred request");
        consider(self.audit.next_deadline(), "audit");
        consider(self.attention.deadlines.first().map(|(at, _)| *at), "connection");
        consider(self.output.buffers.tidy_at(), "spare buffers");
        consider((!self.turns.is_idle()).then_some(Instant::ZERO), "requests under way");
        consider((!self.attention.resumed.is_empty()).then_some(Instant::ZERO), "congestion is over");
        consider((!self.output.transmit.ended.is_empty()).then_some(Instant::ZERO), "a channel has ended");
        if self.synced.looks != self.shared.live().looks() {
            consider(Some(self.synced.published + PUBLISH_EVERY), "subscription diagnostics");
        }
        first
    }

    /// Handles what is due, up to a bound. While [`Self::poll_timeout`] is due, send and call again.
    pub fn timer(&mut self, now: Now) {
        self.restore(now);
        self.refresh_authorization(now);
        self.refresh_trust(now);
        self.audit.start_window(now);
        self.output.buffers.tidy(now.instant);
        self.resume(now);
        {
            let limits = &self.shared.config().limits;
            let mut outbox = outbox(
                &mut self.connections,
                &mut self.output.transmit,
                &mut self.output.buffers,
                now,
                limits,
            );
            self.engine.run(now, self.shared.space(), &mut outbox);
        }
        for ask in self.transfers.take_behind_events() {
            self.asked(ask, now);
        }
        self.write_durable(now);
        self.start_samples();
        self.end_sessions(now);
        for _ in 0..LOOKS_PER_TIMER {
            let Some(deferred) = self.deferrals.expired(now.instant) else { break };
            self.give_up(deferred, StatusCode::BAD_TIMEOUT, now);
        }
        while let Some(id) = self.output.transmit.ended.pop() {
            self.watch(id);
        }
        for _ in 0..LOOKS_PER_TIMER {
            let Some((at, id)) = self.attention.deadlines.first().copied() else { break };
            if at > now.instant {
                break;
            }
            self.attention.deadlines.remove(&(at, id));
            self.look_at(id, now);
        }
        // After everything that has a deadline.
        self.take_turns(now);
        self.audit_deferred(now);
        self.count_engine();
        let looks = self.shared.live().looks();
        if self.synced.looks != looks && self.synced.published + PUBLISH_EVERY <= now.instant {
            self.publish_diagnostics(now);
        }
    }

    /// Continues with the waiting data of sessions whose connections accept data again.
    fn resume(&mut self, now: Now) {
        let limits = &self.shared.config().limits;
        while let Some(id) = self.attention.resumed.pop() {
            let Some(connection) = self.connections.get(id.0) else { continue };
            for key in connection.sessions.clone() {
                let mut outbox = outbox(
                    &mut self.connections,
                    &mut self.output.transmit,
                    &mut self.output.buffers,
                    now,
                    limits,
                );
                self.engine.connection_ready(key.into(), now, &mut outbox);
            }
        }
    }

    /// Starts asynchronous samples, as many as are allowed; the others wait.
    fn start_samples(&mut self) {
        while self.deferrals.has_capacity(Purpose::Sample, 1) {
            let Some(SampleJob { sample, read }) = self.engine.take_job() else { return };
            let wrap: fn(taktwerk_types::DataValue) -> JobResult = JobResult::Value;
            let job = match read {
                SourceRead::Now(value) => Job::Blocking(Box::new(move || JobResult::Value(value))),
                SourceRead::Blocking(run) => Job::blocking(run, wrap),
                SourceRead::Later(future) => Job::future(future, wrap),
            };
            self.deferrals.run_apart(Kind::Sample(sample), Task::new(JobKind::SampleValue, job));
        }
    }

    /// Ends sessions that timed out (Part 4 §5.7.2.1), or whose user's credential has expired. Their subscriptions stay
    /// until the end of their lifetimes, so that a reconnecting client can take them over.
    fn end_sessions(&mut self, now: Now) {
        for _ in 0..LOOKS_PER_TIMER {
            let Some(key) = self.sessions.expired(now.instant) else { break };
            if activate::continue_as_anonymous(&mut self.context(None, now), key) {
                continue;
            }
            if self.sessions.get(key).is_some_and(crate::session::Session::is_activated) {
                self.shared.live().counters.session_timeout_count.up();
            }
            self.context(None, now).close_session(key, false, None);
        }
        self.apply_attached(now);
    }

    /// Checks a connection whose deadline has come.
    fn look_at(&mut self, id: ConnectionId, now: Now) {
        let blocked_timeout = self.shared.config().limits.blocked_timeout;
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.timer = Instant::FAR;
        let since = connection.blocked_since;
        if connection.is_closing
            || since.is_some_and(|since| since.plus_millis_f64(blocked_timeout) <= now.instant)
        {
            // The client had time to read its data.
            self.detach(id, now);
            if let Some(connection) = self.connections.get_mut(id.0) {
                connection.is_closing = true;
                self.register_evictable(id);
                self.driver.closes.push_back(id);
            }
            return;
        }
        let due = connection.channel.poll_timeout().is_some_and(|(at, _)| at <= now.instant);
        if due {
            connection.ensure_buffer(&mut self.output.buffers);
            match connection.channel.handle_timeout(now.instant, &mut connection.out) {
                Ok(Some(event)) => self.on_event(id, event, now),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "channel closed");
                    self.close(id, now);
                }
            }
        }
        let silence_max = self.shared.config().limits.sessionless_timeout;
        if let Some(connection) = self.connections.get_mut(id.0)
            && connection.sessions.is_empty()
            && !connection.is_closing
            && !connection.is_moving
            && connection.heard.plus_millis_f64(silence_max) <= now.instant
        {
            tracing::debug!("closing a connection without a session that was silent for too long");
            self.fail(id, StatusCode::BAD_TIMEOUT, now);
        }
        if let Some(connection) = self.connections.get_mut(id.0) {
            if let Some(since) = connection.blocked_since {
                rearm(&mut self.attention.deadlines, id, connection, since.plus_millis_f64(blocked_timeout));
            }
        }
        self.update_connection(id, now);
    }

    /// Handles the result of an effect.
    pub fn done(&mut self, token: Token, result: JobResult, now: Now) {
        self.refresh_authorization(now);
        let Some((deferred, rest)) = self.deferrals.done(token, result, now) else { return };
        let Deferred { reply_to, kind, .. } = deferred;
        match (kind, rest) {
            (Kind::Gather(gather), _) => {
                let Some(to) = reply_to else { return };
                let limits = &self.shared.config().limits;
                let mut outbox = outbox(
                    &mut self.connections,
                    &mut self.output.transmit,
                    &mut self.output.buffers,
                    now,
                    limits,
                );
                if gather.is_given_up() || gather.len() > outbox.body_len_max(to.connection) {
                    // The response is not even written, because its values may have any size.
                    outbox.fault_to(to, StatusCode::BAD_RESPONSE_TOO_LARGE);
                } else {
                    outbox.send(to.connection, to.request_id, to.request_handle, |out| {
                        let mut reply = Reply::new(out, to.request_handle, now.utc);
                        gather.write(reply.begin_id(gather.encoding_id, StatusCode::GOOD));
                    });
                }
            }
            (Kind::Create(creation), result) => {
                let Some(to) = reply_to else { return };
                let refused = self.respond(to, now, |cx, reply| match result {
                    Some(JobResult::Session(SessionResult(SessionWork::Introduced(signature)))) => {
                        session::introduced(cx, *creation, signature, reply).map(|()| Outcome::Answered)
                    }
                    _ => Err(Fault::local(StatusCode::BAD_INTERNAL_ERROR, "signing failed")),
                });
                self.audit_creation(to.connection, refused, now);
            }
            (Kind::Activate(activation), result) => {
                let Some(to) = reply_to else { return };
                let note = activation.note();
                let refused = self.respond(to, now, |cx, reply| match result {
                    Some(JobResult::Session(SessionResult(SessionWork::Proved(proof)))) => {
                        activate::proved(cx, *activation, proof, reply)
                    }
                    Some(JobResult::Session(SessionResult(SessionWork::Verified(verdict)))) => {
                        activate::verified(cx, *activation, verdict, reply).map(|()| Outcome::Answered)
                    }
                    _ => Err(activate::failed(cx, *activation)),
                });
                if let Some(status) = refused {
                    self.context(None, now).audit_refused(note, status);
                }
            }
            (Kind::Channel(id, charge), result) => {
                drop(charge);
                let Some(connection) = self.connections.get_mut(id.0) else { return };
                let result = match result {
                    Some(JobResult::Crypto(result)) => result,
                    _ => Err(taktwerk_crypto::CryptoError::Internal),
                };
                connection.ensure_buffer(&mut self.output.buffers);
                let refused = match &result {
                    Err(taktwerk_crypto::CryptoError::Certificate(refusal)) => Some(refusal.status()),
                    _ => None,
                };
                match connection.channel.complete(result, now.instant, &mut connection.out) {
                    Ok(event) => self.on_event(id, event, now),
                    Err(error) => {
                        tracing::debug!(%error, "channel closed");
                        if let Some(status) = refused {
                            self.audit_certificate(id, status, now);
                        }
                        self.audit_failure(id, error.status(), now);
                        self.close(id, now);
                    }
                }
                self.update_connection(id, now);
            }
            (Kind::Trust(id, change), result) => self.certificate_checked(id, change, result, now),
            (Kind::UserTrust(key, certificate), result) => {
                self.user_checked(key, &certificate, result, now);
            }
            (Kind::Sample(sample), result) => {
                let value = match result {
                    Some(JobResult::Value(value)) => value,
                    _ => taktwerk_types::DataValue::from_status(StatusCode::BAD_INTERNAL_ERROR),
                };
                self.engine.sample_done(&sample, value, now);
            }
            (Kind::Durable(changes), result) => self.durable_written(changes, result, now),
            // Transfers have no effects.
            (Kind::Transfer { .. }, _) => {}
        }
        self.audit_deferred(now);
        self.start_samples();
        self.relieve(now);
    }

    /// Answers a deferred request, unless it continues to wait. Returns the status if it was refused.
    fn respond(
        &mut self,
        to: ReplyTo,
        now: Now,
        work: impl FnOnce(&mut Context<'_>, &mut Reply<'_>) -> Result<Outcome, Fault>,
    ) -> Option<StatusCode> {
        let mut refused = None;
        let mut out = core::mem::take(&mut self.output.scratch);
        let mut reply = Reply::new(&mut out, to.request_handle, now.utc);
        let mut cx = self.context(None, now);
        let outcome = work(&mut cx, &mut reply).unwrap_or_else(|fault| {
            tracing::debug!(%fault, "request refused");
            refused = Some(fault.status());
            reply.fault(fault);
            Outcome::Answered
        });
        if matches!(outcome, Outcome::Answered) {
            let body = &out;
            cx.outbox.send(to.connection, to.request_id, to.request_handle, |into| {
                into.extend_from_slice(body);
            });
        }
        out.clear();
        self.output.scratch = out;
        self.apply_attached(now);
        refused
    }

    fn give_up(&mut self, deferred: Deferred, status: StatusCode, now: Now) {
        let Some(to) = deferred.reply_to else { return };
        let mut cx = self.context(None, now);
        if let Kind::Activate(activation) = &deferred.kind {
            cx.audit_refused(activation.note(), status);
        }
        let mut outbox = cx.outbox;
        match deferred.kind {
            // Operations that succeeded have their own results.
            Kind::Transfer { results, .. } => transfer::respond(&mut outbox, to, &results),
            _ => outbox.fault_to(to, status),
        }
    }

    /// Publishes the diagnostics of this shard's subscriptions to all shards.
    fn publish_diagnostics(&mut self, now: Now) {
        self.synced.looks = self.shared.live().looks();
        self.synced.published = now.instant;
        crate::service::diagnostics::publish(&self.shared, &self.sessions, &self.engine);
    }
}
