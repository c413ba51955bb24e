//! What waits for ApplyChanges (Part 12 §7.10.2): one transaction at a time, of one session. It ends with the session.

use super::content::Replacement;
use super::open::Handles;
use std::sync::Arc;
use std::time::Instant;
use taktwerk_crypto::certificate::Certificate;
use taktwerk_pki::{Group, PrivateKey};
use taktwerk_server::account::Charge;
use taktwerk_server::callback::{CallContext, SessionLife};
use taktwerk_types::{NodeId, StatusCode};

/// A new certificate with its key.
#[derive(Clone)]
pub(super) struct NewCertificate {
    /// Its CertificateType.
    pub(super) kind: u32,
    /// The certificate, and the issuers that peers get with it.
    pub(super) chain: Vec<Certificate>,
    pub(super) key: Arc<PrivateKey>,
}

/// A new trust list.
pub(super) struct NewTrustList {
    pub(super) group: Group,
    pub(super) replacement: Replacement,
    /// For its content.
    _charge: Option<Charge>,
}

/// The changes of a session.
pub(super) struct Transaction {
    session: NodeId,
    life: SessionLife,
    /// One for each CertificateType at most.
    pub(super) certificates: Vec<NewCertificate>,
    /// One for each group at most.
    pub(super) lists: Vec<NewTrustList>,
}

impl Transaction {
    fn is_empty(&self) -> bool {
        self.certificates.is_empty() && self.lists.is_empty()
    }

    /// What is to become of the trust list of a group.
    pub(super) fn replacement_of(&self, group: Group) -> Option<&Replacement> {
        self.lists.iter().find(|list| list.group == group).map(|list| &list.replacement)
    }

    /// A later certificate of the same type replaces an earlier one.
    pub(super) fn add_certificate(&mut self, new: NewCertificate) {
        self.certificates.retain(|other| other.kind != new.kind);
        self.certificates.push(new);
    }

    /// Of lists that are written twice the later ones count.
    ///
    /// # Errors
    /// Bad_OutOfMemory if the session may not keep so much: the earlier one stays.
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
    /// A transaction is being applied: nobody begins another one, as it goes on if it cannot be applied.
    is_applying: bool,
}

impl State {
    /// Forgets what sessions have left that are over. Returns whether trust lists were closed.
    pub(super) fn tidy(&mut self, now: Instant) -> bool {
        if self.transaction.as_ref().is_some_and(|transaction| transaction.life.is_over()) {
            self.transaction = None;
        }
        self.handles.tidy(now)
    }

    /// # Errors
    /// Bad_TransactionPending while another session changes something or writes a trust list.
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
    /// Bad_TransactionPending while a session has changed something.
    pub(super) fn no_changes(&self) -> Result<(), StatusCode> {
        let is_pending = |of: &Transaction| !of.is_empty() && !of.life.is_over();
        let is_pending = self.is_applying || self.transaction.as_ref().is_some_and(is_pending);
        if is_pending { Err(StatusCode::BAD_TRANSACTION_PENDING) } else { Ok(()) }
    }

    /// Begins a transaction of the caller's session, or goes on with it.
    ///
    /// # Errors
    /// As [`Self::not_of_others`].
    pub(super) fn transaction(&mut self, caller: &CallContext) -> Result<&mut Transaction, StatusCode> {
        self.not_of_others(caller)?;
        if self.transaction.as_ref().is_some_and(|of| of.session != caller.session_id) {
            self.transaction = None;
        }
        Ok(self.transaction.get_or_insert_with(|| Transaction {
            session: caller.session_id.clone(),
            life: caller.session_life.clone(),
            certificates: Vec::new(),
            lists: Vec::new(),
        }))
    }

    /// The caller's transaction.
    pub(super) fn own(&self, caller: &CallContext) -> Option<&Transaction> {
        self.transaction.as_ref().filter(|of| of.session == caller.session_id)
    }

    /// Ends the transaction of the caller's session.
    ///
    /// # Errors
    /// Bad_NothingToDo without one; Bad_SessionIdInvalid if it is another session's.
    pub(super) fn end(&mut self, caller: &CallContext) -> Result<Transaction, StatusCode> {
        if self.own(caller).is_none() {
            let is_other = self.no_changes().is_err();
            return Err(if is_other {
                StatusCode::BAD_SESSION_ID_INVALID
            } else {
                StatusCode::BAD_NOTHING_TO_DO
            });
        }
        self.transaction.take().ok_or(StatusCode::BAD_NOTHING_TO_DO)
    }

    /// Takes the transaction of the caller's session to be applied. No other one begins before [`Self::applied`].
    ///
    /// # Errors
    /// As [`Self::end`]; Bad_InvalidState while the caller has a trust list open to replace it.
    pub(super) fn apply(&mut self, caller: &CallContext) -> Result<Transaction, StatusCode> {
        if self.own(caller).is_some() && self.handles.are_written() {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let transaction = self.end(caller)?;
        self.is_applying = true;
        Ok(transaction)
    }

    /// It was applied, or goes on because it could not be.
    pub(super) fn applied(&mut self, left: Option<Transaction>) {
        self.is_applying = false;
        self.transaction = left;
    }
}
