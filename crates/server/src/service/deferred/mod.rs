//! Deferred requests: their responses wait for effects.
//!
//! A Read, Write or Call is encoded at once, with gaps for slow values or methods. The gaps are filled as results
//! arrive, and the last one sends the response.
//!
//! `effect_counts`: limits on effects; `credential_queue`: the queue of credential checks.

mod credential_queue;
mod effect_counts;

pub(crate) use credential_queue::PART as CREDENTIAL_PART;
pub(crate) use effect_counts::{Asker, Purpose};

use super::shard_message::Waiting;
use super::transfer::Transferred;
use super::{activate, call, history, read, session, write};
use crate::account::{Account, Category, Charge, Exhausted, HeapSize, heap_size};
use crate::audit::AuditRecord;
use crate::durable::Change;
use crate::effect::{Effect, JobResult, Task, Token};
use crate::ids::{ConnectionId, ReplyTo};
use crate::limits::Limits;
use crate::now::Now;
use crate::origin::Origin;
use crate::session::SessionKey;
use crate::slab::{Key, Slab};
use crate::subscription::sampling::PendingSample;
use core::sync::atomic::{AtomicBool, Ordering};
use credential_queue::{Capacity, CredentialQueue};
use effect_counts::EffectCounts;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_types::{Instant, StatusCode};

/// The deferred requests of a shard and their effects.
#[derive(Debug)]
pub(crate) struct Deferrals {
    slab: Slab<Deferred>,
    deadlines: BTreeSet<(Instant, Key)>,
    effects: VecDeque<Effect>,
    counts: EffectCounts,
    /// Audit records.
    noted: Vec<AuditRecord>,
    /// The queue of credential checks.
    credentials: CredentialQueue,
}

/// A deferred request.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(crate) reply_to: Option<ReplyTo>,
    /// The origin of its client.
    origin: Option<Origin>,
    pub(crate) session: Option<SessionKey>,
    deadline: Instant,
    pub(crate) kind: Kind,
    /// The charge for all of it. `None` for work without a request, and for handshakes, which are counted.
    charge: Option<Charge>,
}

/// Bytes of a job and the table entries of a deferred request, without its data.
const JOB: usize = 256;

/// A request that cannot wait because it would exceed a limit.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) kind: Kind,
    pub(crate) exhausted: Exhausted,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// A Read, Write or Call with gaps.
    Gather(Gather),
    /// A CreateSession whose response is being signed.
    Create(Box<session::Creation>),
    /// An ActivateSession whose client and user are being checked.
    Activate(Box<activate::Activation>),
    /// Work of a channel; there is no request.
    Channel(ConnectionId, Charge),
    /// Validation of a peer's certificate after a trust list change, with the change count; there is no request.
    Trust(ConnectionId, u64),
    /// Validation of the certificate of a session's user after a trust list change; there is no request.
    UserTrust(SessionKey, Arc<[u8]>),
    /// The value of a monitored item; there is no request.
    Sample(PendingSample),
    /// A write of durable subscriptions; there is no request.
    Durable(Arc<Vec<Change>>),
    /// A TransferSubscriptions that waits for other shards.
    Transfer { send_initial_values: bool, results: Vec<Option<Transferred>> },
}

impl Deferred {
    /// Whether its response goes to a connection.
    fn is_of(&self, connection: ConnectionId) -> bool {
        self.reply_to.is_some_and(|to| to.connection == connection)
    }
}

impl Kind {
    /// Number of effects that it waits for.
    fn effects(&self) -> usize {
        match self {
            Self::Gather(gather) => gather.missing,
            _ => 1,
        }
    }

    const fn is_apart(&self) -> bool {
        matches!(self, Self::Channel(..) | Self::Trust(..) | Self::UserTrust(..) | Self::Durable(..))
    }
}

impl HeapSize for Kind {
    fn heap_size(&self) -> usize {
        match self {
            Self::Gather(gather) => gather.heap_size(),
            Self::Create(creation) => creation.heap_size(),
            Self::Activate(activation) => activation.heap_size(),
            Self::UserTrust(_, certificate) => certificate.heap_size(),
            Self::Transfer { results, .. } => results.heap_size(),
            Self::Channel(..) | Self::Trust(..) | Self::Sample { .. } | Self::Durable(..) => 0,
        }
    }
}

/// The result of queueing a credential check.
#[derive(Debug)]
pub(crate) enum Checked {
    /// It is queued.
    Waits,
    /// It is queued, and this request was removed from the queue.
    InsteadOf(Deferred),
    /// The queue is full.
    QueueFull(Box<activate::Activation>),
    /// It would exceed a limit.
    Refused(Refused),
}

/// A response with gaps.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) encoding_id: u32,
    /// The body after the ResponseHeader.
    body: Vec<u8>,
    gaps: Vec<Gap>,
    missing: usize,
    /// Longest body that the client accepts.
    len_max: usize,
    /// The response exceeds the client's limit or the account's: further results are dropped.
    is_given_up: bool,
    /// The request no longer exists: effects that have not begun do nothing.
    is_abandoned: Arc<AtomicBool>,
}

heap_size!(Gather { body, gaps; encoding_id, missing, len_max, is_given_up, is_abandoned });
heap_size!(Gap { bytes, fill; at });

impl HeapSize for Fill {
    fn heap_size(&self) -> usize {
        match self {
            Self::Value(value) => value.heap_size(),
            Self::Method(method) => method.heap_size(),
            Self::Write(write) => write.heap_size(),
            Self::History(history) => history.heap_size(),
        }
    }
}

/// A position in a response for a result.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Offset into the body.
    pub(crate) at: usize,
    pub(crate) fill: Fill,
    bytes: Option<Vec<u8>>,
}

/// The content of a gap. The service encodes the result.
#[derive(Debug)]
pub(crate) enum Fill {
    /// A DataValue of a Read.
    Value(read::PendingValue),
    /// A CallMethodResult.
    Method(call::PendingMethod),
    /// A StatusCode of a Write.
    Write(write::PendingWrite),
    /// The results of a HistoryRead or HistoryUpdate.
    History(history::PendingHistory),
}

impl Gap {
    fn take_notes(&mut self) -> Vec<AuditRecord> {
        match &mut self.fill {
            Fill::Method(method) => method.take_note().into_iter().collect(),
            Fill::Write(write) => write.take_note().map(|note| *note).into_iter().collect(),
            Fill::History(history) => history.take_notes(),
            Fill::Value(_) => Vec::new(),
        }
    }

    pub(crate) fn new(at: usize, fill: Fill) -> Self {
        Self { at, fill, bytes: None }
    }

    /// Refuses all results without running the jobs.
    fn refuse(&mut self, status: StatusCode, noted: &mut Vec<AuditRecord>, now: Now) {
        let mut bytes = Vec::new();
        match &mut self.fill {
            Fill::Value(value) => value.refuse(status, now.utc, &mut bytes),
            Fill::Method(method) => noted.extend(method.finish(Err(status), &mut bytes)),
            Fill::Write(write) => noted.extend(write.finish(status, &mut bytes)),
            Fill::History(history) => history.refuse(status, noted, &mut bytes),
        }
        self.bytes = Some(bytes);
    }

    fn fill(&mut self, result: JobResult, noted: &mut Vec<AuditRecord>, now: Now) {
        let mut bytes = Vec::new();
        match (&mut self.fill, result) {
            (Fill::Value(value), JobResult::Value(result)) => value.finish(result, now.utc, &mut bytes),
            (Fill::Value(value), _) => {
                let failed = taktwerk_types::DataValue::from_status(StatusCode::BAD_INTERNAL_ERROR);
                value.finish(failed, now.utc, &mut bytes);
            }
            (Fill::History(history), JobResult::History(result)) => history.finish(result, noted, &mut bytes),
            (Fill::History(history), _) => {
                history.refuse(StatusCode::BAD_INTERNAL_ERROR, noted, &mut bytes);
            }
            (Fill::Method(method), JobResult::Method(result)) => {
                noted.extend(method.finish(result, &mut bytes))
            }
            (Fill::Method(method), _) => {
                noted.extend(method.finish(Err(StatusCode::BAD_INTERNAL_ERROR), &mut bytes));
            }
            (Fill::Write(write), JobResult::Written(status)) => {
                noted.extend(write.finish(status, &mut bytes))
            }
            (Fill::Write(write), _) => {
                noted.extend(write.finish(StatusCode::BAD_INTERNAL_ERROR, &mut bytes));
            }
        }
        self.bytes = Some(bytes);
    }
}

impl Gather {
    /// Whether there will be no response.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Drops all results, present and future.
    fn give_up(&mut self) {
        self.is_given_up = true;
        self.body = Vec::new();
        for gap in &mut self.gaps {
            gap.bytes = gap.bytes.is_some().then(Vec::new);
        }
    }

    /// Number of bytes that [`Self::write`] appends.
    pub(crate) fn len(&self) -> usize {
        let filled = self.gaps.iter().filter_map(|gap| gap.bytes.as_ref()).map(Vec::len).sum::<usize>();
        self.body.len() + filled
    }

    /// Appends the body with its gaps filled.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut from = 0;
        for gap in &self.gaps {
            out.extend_from_slice(self.body.get(from..gap.at).unwrap_or_default());
            out.extend_from_slice(gap.bytes.as_deref().unwrap_or_default());
            from = gap.at;
        }
        out.extend_from_slice(self.body.get(from..).unwrap_or_default());
    }
}

impl Deferrals {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            slab: Slab::default(),
            deadlines: BTreeSet::new(),
            effects: VecDeque::new(),
            counts: EffectCounts::new(limits),
            noted: Vec::new(),
            credentials: CredentialQueue::new(
                limits.credential_checks_max,
                limits.credential_checks_waiting_max,
            ),
        }
    }

    /// Whether `more` effects fit.
    pub(crate) fn has_capacity(&self, purpose: Purpose, more: usize) -> bool {
        self.counts.has(purpose, more)
    }

    /// Whether `more` effects fit that one request of this client waits for. A single connection cannot use all of
    /// them.
    pub(crate) fn has_capacity_for(&self, asker: Asker, purpose: Purpose, more: usize) -> bool {
        let waits_for = || {
            let all = self.slab.iter().filter(|(_, deferred)| deferred.is_of(asker.connection));
            all.map(|(_, deferred)| deferred.kind.effects()).sum()
        };
        self.counts.has(purpose, more) && self.counts.has_for(asker, more, waits_for)
    }

    /// Defers a request until the results of its jobs have arrived, one per gap. Returns the request if there is
    /// nothing to wait for. `len_max` is the longest body that its client accepts.
    ///
    /// # Errors
    /// A limit of the session's account would be exceeded.
    pub(crate) fn gather(
        &mut self,
        asked: Asked<'_>,
        encoding_id: u32,
        body: Vec<u8>,
        gaps: Vec<(Gap, Task)>,
        len_max: usize,
        now: Now,
    ) -> Result<Option<Gather>, Exhausted> {
        let (mut gaps, mut jobs): (Vec<Gap>, Vec<Task>) = gaps.into_iter().unzip();
        // Each fitted when it was added, but others may have used the capacity while the request was postponed.
        while !jobs.is_empty() && !self.has_capacity_for(asked.asker(), Purpose::Operation, jobs.len()) {
            jobs.pop();
        }
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let jobs: Vec<Task> = jobs.into_iter().map(|job| job.unless(&is_abandoned)).collect();
        let missing = jobs.len();
        for gap in gaps.iter_mut().skip(missing) {
            gap.refuse(StatusCode::BAD_SERVER_TOO_BUSY, &mut self.noted, now);
        }
        let gather = Gather { encoding_id, body, gaps, missing, len_max, is_given_up: false, is_abandoned };
        if missing == 0 {
            return Ok(Some(gather));
        }
        match asked.keep(Kind::Gather(gather), JOB * jobs.len()) {
            Ok(deferred) => {
                self.start(deferred, jobs);
                Ok(None)
            }
            Err(Refused { kind, exhausted }) => {
                let mut kind = kind;
                self.note_left(&mut kind);
                Err(exhausted)
            }
        }
    }

    /// Defers a request until one job is done.
    ///
    /// # Errors
    /// A limit of the account would be exceeded; returns the request.
    pub(crate) fn wait(&mut self, asked: Asked<'_>, kind: Kind, job: Task) -> Result<(), Refused> {
        let deferred = asked.keep(kind, JOB)?;
        self.start(deferred, [job]);
        Ok(())
    }

    /// Runs a job that no request waits for.
    pub(crate) fn run_apart(&mut self, kind: Kind, job: Task) {
        let deferred = Deferred {
            reply_to: None,
            origin: None,
            session: None,
            deadline: Instant::FAR,
            kind,
            charge: None,
        };
        self.start(deferred, [job]);
    }

    /// Queues an ActivateSession for its credential check. If the queue is full, returns it; if another one was removed
    /// instead, returns that one.
    pub(crate) fn check(
        &mut self,
        asked: Asked<'_>,
        activation: Box<activate::Activation>,
        job: Task,
    ) -> Checked {
        let (client, is_familiar) = (activation.client(), activation.is_familiar());
        let gives_way = match self.credentials.capacity_for(client, is_familiar) {
            Capacity::Free => None,
            Capacity::InsteadOf(key) => self.abandon(key),
            Capacity::None => return Checked::QueueFull(activation),
        };
        let deferred = match asked.keep(Kind::Activate(activation), JOB) {
            Ok(deferred) => deferred,
            Err(refused) => return Checked::Refused(refused),
        };
        let key = self.start(deferred, []);
        self.credentials.put(key, job, client, is_familiar);
        self.call_next();
        gives_way.map_or(Checked::Waits, Checked::InsteadOf)
    }

    /// Starts the next credential checks.
    fn call_next(&mut self) {
        while let Some((key, Task { kind, job })) = self.credentials.next() {
            let token = Token { index: key.index, generation: key.generation, part: CREDENTIAL_PART };
            self.effects.push_back(Effect { token, kind, job });
            self.counts.began();
        }
    }

    /// Defers a TransferSubscriptions until all operations have a result.
    ///
    /// # Errors
    /// A limit of the session's account would be exceeded.
    pub(crate) fn wait_for_transfers(
        &mut self,
        asked: Asked<'_>,
        send_initial_values: bool,
        results: Vec<Option<Transferred>>,
    ) -> Result<Key, Exhausted> {
        let kind = Kind::Transfer { send_initial_values, results };
        let deferred = asked.keep(kind, JOB).map_err(|refused| refused.exhausted)?;
        self.counts.began();
        Ok(self.start(deferred, []))
    }

    /// The session of a waiting TransferSubscriptions, and whether it requested initial values.
    pub(crate) fn transfer(&self, request: Key) -> Option<(SessionKey, bool)> {
        let Deferred { session: Some(session), kind: Kind::Transfer { send_initial_values, .. }, .. } =
            self.slab.get(request)?
        else {
            return None;
        };
        Some((*session, *send_initial_values))
    }

    /// Stores the result of one operation of a TransferSubscriptions. After the last one, returns all results.
    pub(crate) fn transferred(
        &mut self,
        waiting: Waiting,
        result: Transferred,
    ) -> Option<(ReplyTo, Vec<Option<Transferred>>)> {
        let Kind::Transfer { results, .. } = &mut self.slab.get_mut(waiting.request)?.kind else {
            return None;
        };
        *results.get_mut(waiting.part)? = Some(result);
        if results.iter().any(Option::is_none) {
            return None;
        }
        match self.remove(waiting.request)? {
            Deferred { reply_to: Some(to), kind: Kind::Transfer { results, .. }, .. } => Some((to, results)),
            _ => None,
        }
    }

    fn start(&mut self, deferred: Deferred, jobs: impl IntoIterator<Item = Task>) -> Key {
        let deadline = deferred.deadline;
        if deferred.kind.is_apart() {
            self.counts.set_apart(true);
        }
        let key = self.slab.insert(deferred);
        if deadline != Instant::FAR {
            self.deadlines.insert((deadline, key));
        }
        for (part, Task { kind, job }) in (0..).zip(jobs) {
            let token = Token { index: key.index, generation: key.generation, part };
            self.effects.push_back(Effect { token, kind, job });
            self.counts.began();
        }
        key
    }

    /// Removes and returns the audit records.
    pub(crate) fn take_noted(&mut self) -> Vec<AuditRecord> {
        core::mem::take(&mut self.noted)
    }

    /// The next effect to run.
    pub(crate) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Handles a result. Returns the request after its last one. Results of removed requests are dropped.
    pub(crate) fn done(
        &mut self,
        token: Token,
        result: JobResult,
        now: Now,
    ) -> Option<(Deferred, Option<JobResult>)> {
        let key = Key { index: token.index, generation: token.generation };
        self.counts.ended(key);
        if token.part == CREDENTIAL_PART {
            self.credentials.ended();
            self.call_next();
        }
        let deferred = self.slab.get_mut(key)?;
        let mut rest = Some(result);
        if let Kind::Gather(gather) = &mut deferred.kind {
            let gap = gather.gaps.get_mut(token.part as usize).filter(|gap| gap.bytes.is_none())?;
            if let Some(result) = rest.take() {
                gap.fill(result, &mut self.noted, now);
            }
            gather.missing -= 1;
            let is_too_long = gather.is_given_up || gather.len() > gather.len_max;
            let kept = size_of::<Deferred>() + JOB * gather.gaps.len() + gather.heap_size();
            if is_too_long || deferred.charge.as_mut().is_some_and(|charge| charge.resize(kept).is_err()) {
                gather.give_up();
            }
            if gather.missing > 0 {
                return None;
            }
        }
        self.remove(key).map(|deferred| (deferred, rest))
    }

    fn remove(&mut self, key: Key) -> Option<Deferred> {
        let mut deferred = self.slab.remove(key)?;
        self.note_left(&mut deferred.kind);
        self.deadlines.remove(&(deferred.deadline, key));
        if deferred.kind.is_apart() {
            self.counts.set_apart(false);
        }
        if let Kind::Transfer { .. } = deferred.kind {
            self.counts.answered();
        }
        Some(deferred)
    }

    /// Removes a request whose effects may still run. Effects that have not begun will not run.
    fn abandon(&mut self, key: Key) -> Option<Deferred> {
        let mut deferred = self.remove(key)?;
        let mut running = deferred.kind.effects();
        match &mut deferred.kind {
            Kind::Activate(activation) if self.credentials.leave(key) => {
                activation.not_checked();
                running = 0;
            }
            Kind::Gather(gather) => gather.is_abandoned.store(true, Ordering::Release),
            // It waits for other shards, which answer in any case.
            Kind::Transfer { .. } => running = 0,
            _ => {}
        }
        if let Some(to) = deferred.reply_to {
            self.counts.abandon(key, Asker { connection: to.connection, origin: deferred.origin }, running);
        }
        Some(deferred)
    }

    /// Records the methods of a removed request for the audit: their results are unknown.
    fn note_left(&mut self, kind: &mut Kind) {
        if let Kind::Gather(gather) = kind {
            let status = StatusCode::BAD_REQUEST_INTERRUPTED;
            let left = gather.gaps.iter_mut().flat_map(Gap::take_notes);
            self.noted.extend(left.map(|note| AuditRecord { status, ..note }));
        }
    }

    /// The next timeout of a deferred request.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Removes and returns a request that has timed out.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Deferred> {
        let (at, key) = *self.deadlines.first()?;
        if at > now { None } else { self.abandon(key) }
    }

    /// Removes the requests of a session, or those with one handle.
    pub(crate) fn cancel(&mut self, session: SessionKey, handle: Option<u32>) -> Vec<Deferred> {
        self.take(|deferred| {
            deferred.session == Some(session)
                && handle.is_none_or(|handle| deferred.reply_to.is_some_and(|to| to.request_handle == handle))
        })
    }

    /// Removes the requests of a session, except those that decide on its user.
    pub(crate) fn cancel_operations(&mut self, session: SessionKey) -> Vec<Deferred> {
        self.take(|deferred| deferred.session == Some(session) && !matches!(deferred.kind, Kind::Activate(_)))
    }

    /// Removes the requests of a connection that is evicted.
    pub(crate) fn interrupt(&mut self, connection: ConnectionId) -> Vec<Deferred> {
        self.take(|deferred| deferred.is_of(connection))
    }

    /// Removes the requests of a connection that no longer exists.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId) {
        if self.slab.len() > 0 {
            self.take(|deferred| deferred.is_of(connection));
        }
    }

    fn take(&mut self, which: impl Fn(&Deferred) -> bool) -> Vec<Deferred> {
        let keys: Vec<Key> =
            self.slab.iter().filter(|(_, deferred)| which(deferred)).map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.abandon(key)).collect()
    }
}

/// The client, the deadline and the account of a request.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) reply_to: ReplyTo,
    /// The client's origin.
    pub(crate) origin: Option<Origin>,
    /// `None` if there is no session yet.
    pub(crate) session: Option<SessionKey>,
    pub(crate) deadline: Instant,
    /// The account of the session, or of the connection if there is no session yet.
    pub(crate) account: &'a Arc<Account>,
}

impl Asked<'_> {
    fn asker(&self) -> Asker {
        Asker { connection: self.reply_to.connection, origin: self.origin }
    }

    fn keep(self, kind: Kind, jobs: usize) -> Result<Deferred, Refused> {
        let Self { reply_to, origin, session, deadline, account } = self;
        match account.charge(Category::Requests, size_of::<Deferred>() + jobs + kind.heap_size()) {
            Ok(charge) => Ok(Deferred {
                reply_to: Some(reply_to),
                origin,
                session,
                deadline,
                kind,
                charge: Some(charge),
            }),
            Err(exhausted) => Err(Refused { kind, exhausted }),
        }
    }
}

/// The timeout of a request that starts now: the client's hint, limited by the server's maximum.
pub(crate) fn deadline(now: Instant, timeout_hint_ms: u32, max_ms: f64) -> Instant {
    let hint = f64::from(timeout_hint_ms);
    now.plus_millis_f64(if hint > 0.0 { hint.min(max_ms) } else { max_ms })
}
