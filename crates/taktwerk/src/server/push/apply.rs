//! ApplyChanges and CancelChanges (Part 12 §7.10.9).

use super::certificates::{own_of, validated};
use super::changes::{certificate_change, warn_of_lockout};
use super::content::may_replace;
use super::transaction::{Applying, Transaction};
use super::{Inputs, Push, Run, unavailable};
use crate::lock::lock;
use crate::space::ns0;
use std::io;
use std::path::PathBuf;
use taktwerk_pki::{Group, Lists, OwnCertificate, Store};
use taktwerk_server::audit::AuditChange;
use taktwerk_server::callback::{CallContext, MethodResult};
use taktwerk_types::StatusCode;

pub(super) const METHODS: &[(&str, Run)] =
    &[("ApplyChanges", apply_changes), ("CancelChanges", cancel_changes)];

/// Writes the changes if all of them are still valid. The server uses a new certificate within a few seconds, and closes the
/// channels of the old one. If writing fails, the changes are reverted, and the transaction continues.
fn apply_changes(push: &Push, caller: &CallContext, _: Inputs) -> MethodResult {
    let changing = lock(&push.changing);
    let mut applying = Applying::begin(&push.state, caller)?;
    let transaction = applying.get().ok_or(StatusCode::BAD_NOTHING_TO_DO)?;
    check(push, transaction)?;
    let earlier = transaction.changes.len();
    for change in push.changes_of(transaction) {
        if !transaction.changes.contains(&change) {
            transaction.changes.push(change);
        }
    }
    let locks_out = push.locks_caller_out(caller, transaction);
    let before = Before::of(push.trust.store(), transaction);
    if let Err(error) = before.replace(transaction) {
        // Nothing else records what could not be reverted: the client may cancel the transaction.
        transaction.changes.truncate(earlier);
        push.note(caller, before.changes(push, transaction));
        push.trust.refresh();
        return Err(unavailable(&error));
    }
    if locks_out {
        warn_of_lockout(caller);
    }
    let changes = applying.done().map(|transaction| transaction.changes);
    push.note(caller, changes.into_iter().flatten());
    drop(changing);
    push.show_types();
    push.trust.refresh();
    Ok(Vec::new())
}

/// The files of an own certificate and its key.
type OwnFiles = (PathBuf, PathBuf);

/// What a transaction replaces.
struct Before<'a> {
    store: &'a Store,
    /// The trust lists, in the order of the transaction's.
    lists: Vec<Lists>,
    /// The own certificates, in the order of the transaction's.
    own: Vec<Option<OwnCertificate>>,
}

impl<'a> Before<'a> {
    fn of(store: &'a Store, transaction: &Transaction) -> Self {
        let lists = transaction.lists.iter().map(|list| store.lists(list.group)).collect();
        let own = transaction.certificates.iter().map(|new| own_of(store, &ns0(new.kind)).ok()).collect();
        Self { store, lists, own }
    }

    /// Adds everything new first, then removes what is old, which needs no disk space. A crash in between leaves old and new
    /// entries together. After an error, everything is reverted.
    fn replace(&self, transaction: &Transaction) -> io::Result<()> {
        let mut kept = Vec::new();
        let replaced =
            self.add_new(transaction, &mut kept).and_then(|()| self.remove_old(transaction, &kept));
        if replaced.is_err() {
            self.revert(transaction, &kept);
        }
        replaced
    }

    /// Adds certificates and revocation lists, and own certificates, whose files are recorded in `kept`.
    fn add_new(&self, transaction: &Transaction, kept: &mut Vec<OwnFiles>) -> io::Result<()> {
        // Trust lists first: the new certificate may need them.
        for list in &transaction.lists {
            list.replacement.add(self.store, list.group)?;
        }
        for new in &transaction.certificates {
            kept.push(self.store.keep_own(&new.chain, &new.key)?);
        }
        Ok(())
    }

    /// Removes what was replaced.
    fn remove_old(&self, transaction: &Transaction, kept: &[OwnFiles]) -> io::Result<()> {
        transaction.lists.iter().try_for_each(|list| list.replacement.keep_only(self.store, list.group))?;
        for own in self.replaced_by(kept) {
            self.store.retire(own)?;
        }
        // Last, because it is not reverted. A key that stays does no harm.
        for new in &transaction.certificates {
            if let Some(certificate) = new.chain.first() {
                told(self.store.remove_requested_key(new.kind, certificate));
            }
        }
        Ok(())
    }

    /// The own certificates that new ones replace. The same certificate may have existed before.
    fn replaced_by(&self, kept: &[OwnFiles]) -> impl Iterator<Item = &OwnCertificate> {
        let pairs = self.own.iter().zip(kept);
        pairs.filter_map(|(before, (path, _))| before.as_ref().filter(|before| before.path != *path))
    }

    fn revert(&self, transaction: &Transaction, kept: &[OwnFiles]) {
        for (list, before) in transaction.lists.iter().zip(&self.lists) {
            told(list.replacement.take_back(before, self.store, list.group));
        }
        self.replaced_by(kept).for_each(|own| told(self.store.take_back(own)));
        for (files, before) in kept.iter().zip(&self.own) {
            if before.as_ref().is_none_or(|before| before.path != files.0) {
                told(self.store.forget_own(files));
            }
        }
    }

    /// What differs from before.
    fn changes(&self, push: &Push, transaction: &Transaction) -> Vec<AuditChange> {
        let lists = transaction.lists.iter().zip(&self.lists);
        let lists = lists.filter(|(list, before)| self.store.lists(list.group).differs_from(before));
        let own = transaction.certificates.iter().zip(&self.own).filter(|(new, before)| {
            let now = own_of(self.store, &ns0(new.kind)).ok();
            now.map(|own| own.certificate) != before.as_ref().map(|own| own.certificate.clone())
        });
        let own = own.map(|(new, _)| certificate_change(new.kind));
        lists.filter_map(|(list, _)| push.trust_list_change(list.group)).chain(own).collect()
    }
}

/// Logs an error of reverting. An administrator must check the files.
fn told(result: io::Result<()>) {
    if let Err(error) = result {
        unavailable(&error);
    }
}

/// Whether all changes can still be made. Files may have changed since the first check.
fn check(push: &Push, transaction: &Transaction) -> Result<(), StatusCode> {
    let store = push.trust.store();
    for list in &transaction.lists {
        let before = store.lists(list.group);
        may_replace(&list.replacement.over(before.clone()), &before)?;
    }
    if transaction.certificates.is_empty() {
        return Ok(());
    }
    if !push.renewal.is_possible() {
        return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
    }
    let mut lists = store.lists(Group::Applications);
    if let Some(replacement) = transaction.replacement_of(Group::Applications) {
        lists = replacement.over(lists);
    }
    for new in &transaction.certificates {
        own_of(store, &ns0(new.kind))?;
        let (certificate, issuers) = new.chain.split_first().ok_or(StatusCode::BAD_CERTIFICATE_INVALID)?;
        validated(&lists, certificate.clone(), issuers, &push.application_uri)?;
    }
    Ok(())
}

fn cancel_changes(push: &Push, caller: &CallContext, _: Inputs) -> MethodResult {
    let ended = push.state().end(caller)?;
    // Left by an attempt to apply them that ended in a panic: they may have been made.
    push.note(caller, ended.changes);
    Ok(Vec::new())
}
