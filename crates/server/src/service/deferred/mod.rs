//! Requests whose answer waits for effects.
//!
//! A Read, Write or Call is encoded at once, with a gap where a slow value or method belongs. The gaps are filled as results
//! come in, and with the last one the response is sent.
//!
//! `room`: how many effects there may be, of whom; `credential_queue`: where credentials wait.

mod credential_queue;
mod room;

pub(crate) use credential_queue::PART as CREDENTIAL_PART;
pub(crate) use room::{Asker, Purpose};

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
use credential_queue::{CredentialQueue, Place};
use room::Room;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_types::{Instant, StatusCode};

/// The deferred requests of a shard and their effects.
#[derive(Debug)]
pub(crate) struct Deferrals {
    slab: Slab<Deferred>,
    deadlines: BTreeSet<(Instant, Key)>,
    effects: VecDeque<Effect>,
    room: Room,
    /// For the audit.
    noted: Vec<AuditRecord>,
    /// Where credentials wait.
    credentials: CredentialQueue,
}

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(crate) reply_to: Option<ReplyTo>,
    /// Where it comes from.
    origin: Option<Origin>,
    pub(crate) session: Option<SessionKey>,
    deadline: Instant,
    pub(crate) kind: Kind,
    /// For all of it. `None` for what no peer has asked for, and for handshakes, which are counted.
    charge: Option<Charge>,
}

/// What a job and the tables' entries of a deferred request take, in bytes, without what the job works on.
const JOB: usize = 256;

/// A request that cannot wait, because it would pass a limit.
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
    /// A channel's own work; there is no request.
    Channel(ConnectionId, Charge),
    /// A peer's certificate after a trust list has changed, with the number of the change; there is no request.
    Trust(ConnectionId, u64),
    /// The certificate of a session's user after a trust list has changed; there is no request.
    UserTrust(SessionKey, Arc<[u8]>),
    /// The value of a monitored item; there is no request.
    Sample(PendingSample),
    /// A write of durable subscriptions; there is no request.
    Durable(Arc<Vec<Change>>),
    /// A TransferSubscriptions that other shards have to answer.
    Transfer { send_initial_values: bool, results: Vec<Option<Transferred>> },
}

impl Deferred {
    /// Whether its response goes to a connection.
    fn is_of(&self, connection: ConnectionId) -> bool {
        self.reply_to.is_some_and(|to| to.connection == connection)
    }
}

impl Kind {
    /// How many effects it waits for.
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

/// What became of a credential that was handed in.
#[derive(Debug)]
pub(crate) enum Checked {
    /// It waits.
    Waits,
    /// It waits, and this request does not any more.
    InsteadOf(Deferred),
    /// There is no place.
    NoPlace(Box<activate::Activation>),
    /// It would pass a limit.
    Refused(Refused),
}

/// A response with gaps.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) encoding_id: u32,
    /// What follows the ResponseHeader.
    body: Vec<u8>,
    gaps: Vec<Gap>,
    missing: usize,
    /// Longest body that the client takes.
    len_max: usize,
    /// The response has grown beyond what the client takes or the account allows: what comes in is dropped.
    is_given_up: bool,
    /// The request is gone: effects that have not begun do nothing.
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

/// A place in a response that a result goes to.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Offset into the body.
    pub(crate) at: usize,
    pub(crate) fill: Fill,
    bytes: Option<Vec<u8>>,
}

/// What a gap is for. The service says how a result becomes bytes.
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
            Fill::Method(method) => method.take_note().map(|note| *note).into_iter().collect(),
            Fill::Write(write) => write.take_note().map(|note| *note).into_iter().collect(),
            Fill::History(history) => history.take_notes(),
            Fill::Value(_) => Vec::new(),
        }
    }

    pub(crate) fn new(at: usize, fill: Fill) -> Self {
        Self { at, fill, bytes: None }
    }

    /// Answers without having asked.
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

    /// Drops what has come and what will.
    fn give_up(&mut self) {
        self.is_given_up = true;
        self.body = Vec::new();
        for gap in &mut self.gaps {
            gap.bytes = gap.bytes.is_some().then(Vec::new);
        }
    }

    /// Bytes that [`Self::write`] appends.
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
            room: Room::new(limits),
            noted: Vec::new(),
            credentials: CredentialQueue::new(
                limits.credential_checks_max,
                limits.credential_checks_waiting_max,
            ),
        }
    }

    /// Whether `more` effects fit.
    pub(crate) fn has_room(&self, purpose: Purpose, more: usize) -> bool {
        self.room.has(purpose, more)
    }

    /// Whether `more` effects fit, of which a request of this client waits for all: one connection does not get all there
    /// are.
    pub(crate) fn has_room_for(&self, asker: Asker, purpose: Purpose, more: usize) -> bool {
        let waits_for = || {
            let all = self.slab.iter().filter(|(_, deferred)| deferred.is_of(asker.connection));
            all.map(|(_, deferred)| deferred.kind.effects()).sum()
        };
        self.room.has(purpose, more) && self.room.has_for(asker, more, waits_for)
    }

    /// Lets a request wait for the results of jobs, one per gap; gives it back if there is nothing to wait for. `len_max`
    /// is the longest body that its client takes.
    ///
    /// # Errors
    /// A limit of the session's account that it would pass.
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
        // There was room for each when it was asked for. Others may have taken it while the request was left.
        while !jobs.is_empty() && !self.has_room_for(asked.asker(), Purpose::Operation, jobs.len()) {
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

    /// Lets another request wait for one job.
    ///
    /// # Errors
    /// A limit of the account that it would pass, with what was to wait.
    pub(crate) fn wait(&mut self, asked: Asked<'_>, kind: Kind, job: Task) -> Result<(), Refused> {
        let deferred = asked.keep(kind, JOB)?;
        self.start(deferred, [job]);
        Ok(())
    }

    /// Runs what no request waits for.
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

    /// Lets an ActivateSession wait for its turn to have a credential checked. If there is no place, it comes back; if
    /// another one gives way for it, that one does.
    pub(crate) fn check(
        &mut self,
        asked: Asked<'_>,
        activation: Box<activate::Activation>,
        job: Task,
    ) -> Checked {
        let (client, is_familiar) = (activation.client(), activation.is_familiar());
        let gives_way = match self.credentials.place(client, is_familiar) {
            Place::Free => None,
            Place::InsteadOf(key) => self.abandon(key),
            Place::None => return Checked::NoPlace(activation),
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

    /// Has the next credentials checked.
    fn call_next(&mut self) {
        while let Some((key, Task { kind, job })) = self.credentials.next() {
            let token = Token { index: key.index, generation: key.generation, part: CREDENTIAL_PART };
            self.effects.push_back(Effect { token, kind, job });
            self.room.began();
        }
    }

    /// Lets a TransferSubscriptions wait for the operations that have no result yet.
    ///
    /// # Errors
    /// A limit of the session's account that it would pass.
    pub(crate) fn wait_for_transfers(
        &mut self,
        asked: Asked<'_>,
        send_initial_values: bool,
        results: Vec<Option<Transferred>>,
    ) -> Result<Key, Exhausted> {
        let kind = Kind::Transfer { send_initial_values, results };
        let deferred = asked.keep(kind, JOB).map_err(|refused| refused.exhausted)?;
        self.room.began();
        Ok(self.start(deferred, []))
    }

    /// The session of a TransferSubscriptions that still waits, and whether it asked for initial values.
    pub(crate) fn transfer(&self, request: Key) -> Option<(SessionKey, bool)> {
        let Deferred { session: Some(session), kind: Kind::Transfer { send_initial_values, .. }, .. } =
            self.slab.get(request)?
        else {
            return None;
        };
        Some((*session, *send_initial_values))
    }

    /// Takes the result of an operation of a TransferSubscriptions; gives all of them when it was the last one.
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
            self.room.set_apart(true);
        }
        let key = self.slab.insert(deferred);
        if deadline != Instant::FAR {
            self.deadlines.insert((deadline, key));
        }
        for (part, Task { kind, job }) in (0..).zip(jobs) {
            let token = Token { index: key.index, generation: key.generation, part };
            self.effects.push_back(Effect { token, kind, job });
            self.room.began();
        }
        key
    }

    /// What the audit is to be told.
    pub(crate) fn take_noted(&mut self) -> Vec<AuditRecord> {
        core::mem::take(&mut self.noted)
    }

    /// The next effect to run.
    pub(crate) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Takes a result; gives the request back when it was the last one. Results of requests that are gone vanish.
    pub(crate) fn done(
        &mut self,
        token: Token,
        result: JobResult,
        now: Now,
    ) -> Option<(Deferred, Option<JobResult>)> {
        let key = Key { index: token.index, generation: token.generation };
        self.room.ended(key);
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
            self.room.set_apart(false);
        }
        if let Kind::Transfer { .. } = deferred.kind {
            self.room.answered();
        }
        Some(deferred)
    }

    /// Takes out a request whose effects may still run. Those that have not begun do not begin.
    fn abandon(&mut self, key: Key) -> Option<Deferred> {
        let mut deferred = self.remove(key)?;
        let mut running = deferred.kind.effects();
        match &mut deferred.kind {
            Kind::Activate(activation) if self.credentials.leave(key) => {
                activation.not_looked_at();
                running = 0;
            }
            Kind::Gather(gather) => gather.is_abandoned.store(true, Ordering::Release),
            // It waits for other shards, which give what they have in any case.
            Kind::Transfer { .. } => running = 0,
            _ => {}
        }
        if let Some(to) = deferred.reply_to {
            self.room.abandon(key, Asker { connection: to.connection, origin: deferred.origin }, running);
        }
        Some(deferred)
    }

    /// Notes the methods of a request that is gone: nobody waits for them any more, and what they do is not known.
    fn note_left(&mut self, kind: &mut Kind) {
        if let Kind::Gather(gather) = kind {
            let status = StatusCode::BAD_REQUEST_INTERRUPTED;
            let left = gather.gaps.iter_mut().flat_map(Gap::take_notes);
            self.noted.extend(left.map(|note| AuditRecord { status, ..note }));
        }
    }

    /// The next request that waits for too long.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// A request whose time is over.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Deferred> {
        let (at, key) = *self.deadlines.first()?;
        if at > now { None } else { self.abandon(key) }
    }

    /// Takes the requests of a session out, or those of them with one handle.
    pub(crate) fn cancel(&mut self, session: SessionKey, handle: Option<u32>) -> Vec<Deferred> {
        self.take(|deferred| {
            deferred.session == Some(session)
                && handle.is_none_or(|handle| deferred.reply_to.is_some_and(|to| to.request_handle == handle))
        })
    }

    /// Takes the requests of a session out, but for those that decide on whose session it is.
    pub(crate) fn cancel_operations(&mut self, session: SessionKey) -> Vec<Deferred> {
        self.take(|deferred| deferred.session == Some(session) && !matches!(deferred.kind, Kind::Activate(_)))
    }

    /// Takes out what waits for a connection that is evicted.
    pub(crate) fn interrupt(&mut self, connection: ConnectionId) -> Vec<Deferred> {
        self.take(|deferred| deferred.is_of(connection))
    }

    /// Forgets what waits for a connection that is gone.
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

/// Who asks, until when, and who pays.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) reply_to: ReplyTo,
    /// Where it comes from.
    pub(crate) origin: Option<Origin>,
    /// `None` before there is a session.
    pub(crate) session: Option<SessionKey>,
    pub(crate) deadline: Instant,
    /// The account of the session, or of the connection before there is one.
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

/// When a request that starts now gives up: the client's hint, but not longer than the server waits for anything.
pub(crate) fn deadline(now: Instant, timeout_hint_ms: u32, max_ms: f64) -> Instant {
    let hint = f64::from(timeout_hint_ms);
    now.plus_millis_f64(if hint > 0.0 { hint.min(max_ms) } else { max_ms })
}
