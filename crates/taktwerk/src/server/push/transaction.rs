//! The transaction that waits for ApplyChanges (Part 12 §7.10.2): one at a time, owned by one session. It ends with the session,
//! or when its client is away for too long.

use super::content::Replacement;
use super::open::Handles;
use crate::lock::lock;
use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use taktwerk_crypto::certificate::Certificate;
use taktwerk_pki::{Group, PrivateKey};
use taktwerk_server::account::Charge;
use taktwerk_server::audit::AuditChange;
use taktwerk_server::callback::{CallContext, SessionActivity, SessionLife};
use taktwerk_types::{NodeId, StatusCode};

/// After this time without a connection the session's transaction ends. The same as the timeout of open trust lists.
const LOST_MAX: Duration = Duration::from_secs(60);
/// After this time without any request the session's transaction ends: the network may have failed silently.
const SILENT_MAX: Duration = Duration::from_secs(300);

/// When a session was last active.
#[derive(Default)]
struct Contact {
    /// The count of requests, and when it last changed.
    silent: Option<(u64, Instant)>,
    /// When its connection was lost.
    lost: Option<Instant>,
}

impl Contact {
    /// Checks the session. Returns why its transaction ends, if it does.
    fn look(&mut self, activity: SessionActivity, now: Instant) -> Option<&'static str> {
        let is_longer = |since: Instant, max| now.saturating_duration_since(since) >= max;
        self.lost = if activity.is_connected { None } else { self.lost.or(Some(now)) };
        let since = match self.silent {
            Some((requests, since)) if requests == activity.requests => since,
            _ => now,
        };
        self.silent = Some((activity.requests, since));
        if self.lost.is_some_and(|since| is_longer(since, LOST_MAX)) {
            return Some("its client has lost the connection, and did not come back within 60 s");
        }
        is_longer(since, SILENT_MAX).then_some("its client has sent nothing for 300 s")
    }
}

/// A new certificate with its key.
#[derive(Clone)]
pub(super) struct NewCertificate {
    /// Its CertificateType.
    pub(super) kind: u32,
    /// The certificate, and the issuers that are sent to peers with it.
    pub(super) chain: Vec<Certificate>,
    pub(super) key: Arc<PrivateKey>,
}

/// A new trust list.
pub(super) struct NewTrustList {
    pub(super) group: Group,
    pub(super) replacement: Replacement,
    /// The charge for its content.
    _charge: Option<Charge>,
}

/// The changes of a session.
pub(super) struct Transaction {
    session: NodeId,
    life: SessionLife,
    contact: Contact,
    /// At most one per CertificateType.
    pub(super) certificates: Vec<NewCertificate>,
    /// At most one per group.
    pub(super) lists: Vec<NewTrustList>,
    /// Its changes, for the audit, while it is applied. After a panic, they may have been made in part.
    pub(super) changes: Vec<AuditChange>,
}

impl Transaction {
    fn is_empty(&self) -> bool {
        self.certificates.is_empty() && self.lists.is_empty()
    }

    /// Whether the transaction must end: its session has ended, or its client is away.
    fn is_abandoned(&mut self, now: Instant) -> bool {
        if self.life.is_over() {
            return true;
        }
        let reason = self.life.activity().and_then(|activity| self.contact.look(activity, now));
        if let Some(reason) = reason.filter(|_| !self.is_empty()) {
            tracing::warn!(session = %self.session, reason, "changes of certificates are discarded");
        }
        reason.is_some()
    }

    /// The pending trust list of a group.
    pub(super) fn replacement_of(&self, group: Group) -> Option<&Replacement> {
        self.lists.iter().find(|list| list.group == group).map(|list| &list.replacement)
    }

    /// A later certificate of the same type replaces an earlier one.
    pub(super) fn add_certificate(&mut self, new: NewCertificate) {
        self.certificates.retain(|other| other.kind != new.kind);
        self.certificates.push(new);
    }

    /// If a list is written twice, the later one counts.
    ///
    /// # Errors
    /// Bad_OutOfMemory if the session's memory limit is reached; the earlier list stays.
    pub(super) fn add_list(
        &mut self,
        caller: &CallContext,
        group: Group,
        new: Replacement,
    ) -> Result<(), StatusCode> {
        let earlier = self.lists.iter().position(|list| list.group == group);
        let before = earlier.and_then(|at| self.lists.get(at)).map(|list| list.replacement.clone());
        let replacement = match before {
            Some(before) => before.then(new),
            None => new,
        };
        let charge = caller.session_account.charge(replacement.len())?;
        if let Some(at) = earlier {
            self.lists.swap_remove(at);
        }
        self.lists.push(NewTrustList { group, replacement, _charge: charge });
        Ok(())
    }
}

/// The open trust lists, and the transaction.
#[derive(Default)]
pub(super) struct State {
    pub(super) handles: Handles,
    transaction: Option<Transaction>,
    /// A transaction is being applied. No other one may begin, because it continues if applying fails.
    is_applying: bool,
    /// Sessions whose changes were discarded in their absence, and that have not been informed yet.
    discarded: Vec<(NodeId, SessionLife)>,
}

impl State {
    /// Ends trust lists and transactions of ended or absent sessions. Called every second. Returns whether trust lists were
    /// closed.
    pub(super) fn tidy(&mut self, now: Instant) -> bool {
        if self.transaction.as_mut().is_some_and(|transaction| transaction.is_abandoned(now))
            && let Some(ended) = self.transaction.take()
            && !ended.is_empty()
        {
            self.discarded.push((ended.session, ended.life));
        }
        self.discarded.retain(|(_, life)| !life.is_over());
        self.handles.tidy(now)
    }

    /// # Errors
    /// Bad_TransactionPending while another session has a transaction or writes a trust list.
    pub(super) fn not_of_others(&self, caller: &CallContext) -> Result<(), StatusCode> {
        let is_other =
            |of: &Transaction| of.session != caller.session_id && !of.is_empty() && !of.life.is_over();
        let is_taken = self.is_applying || self.transaction.as_ref().is_some_and(is_other);
        if is_taken || self.handles.are_written_by_others(caller) {
            return Err(StatusCode::BAD_TRANSACTION_PENDING);
        }
        Ok(())
    }

    /// # Errors
    /// Bad_TransactionPending while any session has a transaction.
    pub(super) fn no_changes(&self) -> Result<(), StatusCode> {
        let is_pending = |of: &Transaction| !of.is_empty() && !of.life.is_over();
        let is_pending = self.is_applying || self.transaction.as_ref().is_some_and(is_pending);
        if is_pending { Err(StatusCode::BAD_TRANSACTION_PENDING) } else { Ok(()) }
    }

    /// Begins or continues a transaction of the caller's session.
    ///
    /// # Errors
    /// As [`Self::not_of_others`]. Bad_InvalidState if changes of the session were discarded, until it calls ApplyChanges or
    /// CancelChanges: otherwise only a part of its changes would be applied.
    pub(super) fn transaction(&mut self, caller: &CallContext) -> Result<&mut Transaction, StatusCode> {
        self.not_of_others(caller)?;
        if self.discarded.iter().any(|(session, _)| *session == caller.session_id) {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        if self.transaction.as_ref().is_some_and(|of| of.session != caller.session_id) {
            self.transaction = None;
        }
        Ok(self.transaction.get_or_insert_with(|| Transaction {
            session: caller.session_id.clone(),
            life: caller.session_life.clone(),
            contact: Contact::default(),
            certificates: Vec::new(),
            lists: Vec::new(),
            changes: Vec::new(),
        }))
    }

    /// The caller's transaction.
    pub(super) fn own(&self, caller: &CallContext) -> Option<&Transaction> {
        self.transaction.as_ref().filter(|of| of.session == caller.session_id)
    }

    /// Ends the transaction of the caller's session.
    ///
    /// # Errors
    /// Bad_NothingToDo without a transaction. Bad_TransactionPending if it belongs to another session, as for the other Methods:
    /// only the session that created it may end it (Part 12 §7.10.9, §7.10.11, which name no code for this). Clients would take
    /// Bad_SessionIdInvalid for the end of their own session.
    pub(super) fn end(&mut self, caller: &CallContext) -> Result<Transaction, StatusCode> {
        if self.own(caller).is_none() {
            // Not informed by Bad_TransactionPending, which is about another session.
            self.no_changes()?;
        }
        self.discarded.retain(|(session, _)| *session != caller.session_id);
        if self.own(caller).is_none() {
            return Err(StatusCode::BAD_NOTHING_TO_DO);
        }
        self.transaction.take().ok_or(StatusCode::BAD_NOTHING_TO_DO)
    }

    /// Takes the transaction of the caller's session in order to apply it.
    ///
    /// # Errors
    /// As [`Self::end`]; Bad_InvalidState while the caller has a trust list open to replace it.
    fn apply(&mut self, caller: &CallContext) -> Result<Transaction, StatusCode> {
        if self.own(caller).is_some() && self.handles.are_written() {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let transaction = self.end(caller)?;
        self.is_applying = true;
        Ok(transaction)
    }
}

/// A transaction that is being applied. No other one can begin until this is dropped. Unless it was [`done`](Self::done), the
/// transaction then continues, after an error or a panic.
pub(super) struct Applying<'a> {
    state: &'a Mutex<State>,
    transaction: Option<Transaction>,
}

impl<'a> Applying<'a> {
    /// # Errors
    /// As [`State::end`]; Bad_InvalidState while the caller has a trust list open to replace it.
    pub(super) fn begin(state: &'a Mutex<State>, caller: &CallContext) -> Result<Self, StatusCode> {
        let mut locked = lock(state);
        locked.tidy(Instant::now());
        let transaction = Some(locked.apply(caller)?);
        drop(locked);
        Ok(Self { state, transaction })
    }

    /// The transaction.
    pub(super) fn get(&mut self) -> Option<&mut Transaction> {
        self.transaction.as_mut()
    }

    /// Marks the transaction as applied.
    pub(super) fn done(mut self) -> Option<Transaction> {
        self.transaction.take()
    }
}

impl Drop for Applying<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.is_applying = false;
        state.transaction = self.transaction.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use taktwerk_schema::TrustListDataType;
    use taktwerk_types::Encode;

    fn session(id: u32) -> CallContext {
        let mut caller = CallContext::in_process(NodeId::NULL, &[], true);
        caller.session_id = NodeId::numeric(1, id);
        caller
    }

    fn pending(caller: &CallContext) -> Mutex<State> {
        let state = Mutex::new(State::default());
        change(&mut lock(&state), caller);
        state
    }

    fn change(state: &mut State, caller: &CallContext) {
        let change = Replacement::read(&TrustListDataType::default().encode_to_vec()).unwrap();
        state.transaction(caller).unwrap().add_list(caller, Group::Users, change).unwrap();
    }

    #[test]
    fn a_transaction_can_be_retried_or_cancelled_after_a_panic() {
        let (caller, other) = (session(1), session(2));
        let state = pending(&caller);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut applying = Applying::begin(&state, &caller).unwrap();
            assert_eq!(
                lock(&state).transaction(&caller).map(|_| ()),
                Err(StatusCode::BAD_TRANSACTION_PENDING)
            );
            applying.get().unwrap().lists.clear();
            panic!("while it is applied");
        }));
        assert!(panicked.is_err());
        assert!(lock(&state).own(&caller).is_some());
        lock(&state).end(&caller).unwrap();
        assert!(lock(&state).transaction(&other).is_ok());
    }

    /// A client that dies must not block others until its session times out, which may take an hour.
    #[test]
    fn the_transaction_of_an_absent_client_ends() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let activity = |is_connected, requests| {
            let mut activity = SessionActivity::default();
            (activity.is_connected, activity.requests) = (is_connected, requests);
            activity
        };
        let looks = |looks: &[(u64, bool, u64)]| {
            let mut contact = Contact::default();
            let ended = looks.iter().find(|(second, is_connected, requests)| {
                contact.look(activity(*is_connected, *requests), at(*second)).is_some()
            });
            ended.map(|look| look.0)
        };
        // Without a connection, counted from its loss.
        assert_eq!(looks(&[(0, true, 1), (50, false, 1), (109, false, 1), (110, false, 1)]), Some(110));
        // The client reconnects in time, and is lost again.
        assert_eq!(looks(&[(0, false, 1), (59, true, 2), (70, false, 2), (129, false, 2)]), None);
        // The connection seems to be open.
        assert_eq!(looks(&[(0, true, 1), (299, true, 1), (300, true, 1)]), Some(300));
        assert_eq!(looks(&[(0, true, 1), (299, true, 2), (598, true, 3), (897, true, 4)]), None);
    }

    /// A client that returns must not apply the second half of its changes without the first.
    #[test]
    fn a_client_is_informed_that_its_changes_were_discarded() {
        let (caller, other) = (session(1), session(2));
        let state = pending(&caller);
        {
            let mut locked = lock(&state);
            let ended = locked.transaction.take().unwrap();
            locked.discarded.push((ended.session, ended.life));
            let again = |locked: &mut State| locked.transaction(&caller).map(|_| ());
            assert_eq!(again(&mut locked), Err(StatusCode::BAD_INVALID_STATE));
            change(&mut locked, &other);
            // The transaction of another session says nothing about the caller's own.
            assert_eq!(locked.end(&caller).map(|_| ()), Err(StatusCode::BAD_TRANSACTION_PENDING));
            locked.end(&other).unwrap();
            assert_eq!(again(&mut locked), Err(StatusCode::BAD_INVALID_STATE));
            assert_eq!(locked.end(&caller).map(|_| ()), Err(StatusCode::BAD_NOTHING_TO_DO));
            assert_eq!(again(&mut locked), Ok(()));
        }
    }

    #[test]
    fn an_applied_transaction_ends_and_a_failed_one_continues() {
        let caller = session(1);
        let state = pending(&caller);
        drop(Applying::begin(&state, &caller).unwrap());
        assert_eq!(lock(&state).no_changes(), Err(StatusCode::BAD_TRANSACTION_PENDING));
        assert!(Applying::begin(&state, &caller).unwrap().done().is_some());
        assert_eq!(lock(&state).no_changes(), Ok(()));
        assert_eq!(Applying::begin(&state, &caller).map(|_| ()), Err(StatusCode::BAD_NOTHING_TO_DO));
    }
}
