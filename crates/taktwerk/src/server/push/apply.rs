//! ApplyChanges and CancelChanges (Part 12 §7.10.9).

use super::certificates::{own_of, validated};
use super::content::Lists;
use super::transaction::Transaction;
use super::{Inputs, Push, Run, unavailable};
use crate::lock::lock;
use crate::space::ns0;
use std::io;
use std::path::PathBuf;
use taktwerk_pki::{Group, OwnCertificate, Store};
use taktwerk_server::callback::{CallContext, MethodResult};
use taktwerk_types::StatusCode;

pub(super) const METHODS: &[(&str, Run)] =
    &[("ApplyChanges", apply_changes), ("CancelChanges", cancel_changes)];

/// Writes the changes, if all of them are still valid. The server uses a new certificate within a few seconds, and closes the
/// channels of the old one. If they cannot be written, all is as before, and the transaction goes on.
fn apply_changes(push: &Push, caller: &CallContext, _: Inputs) -> MethodResult {
    let changing = lock(&push.changing);
    let transaction = push.state().apply(caller)?;
    let applied = check(push, &transaction).and_then(|()| write(push, &transaction));
    push.state().applied(applied.is_err().then_some(transaction));
    applied?;
    drop(changing);
    push.show_types();
    push.trust.refresh();
    Ok(Vec::new())
}

/// The files of a certificate of ours and its key.
type OwnFiles = (PathBuf, PathBuf);

/// First adds all that is new, which can be taken back, and then removes what is old, which needs no space on the disk. A crash
/// in between leaves old and new together.
fn write(push: &Push, transaction: &Transaction) -> Result<(), StatusCode> {
    let store = push.trust.store();
    let lists: Vec<Lists> = transaction.lists.iter().map(|list| Lists::read(store, list.group)).collect();
    let own: Vec<_> = transaction.certificates.iter().map(|new| own_of(store, &ns0(new.kind)).ok()).collect();
    let mut kept = Vec::new();
    if let Err(error) = add_new(store, transaction, &mut kept) {
        for (list, before) in transaction.lists.iter().zip(&lists) {
            told(list.replacement.take_back(before, store, list.group));
        }
        for (files, before) in kept.iter().zip(&own) {
            // The same certificate may have been there before.
            if before.as_ref().is_none_or(|before| before.path != files.0) {
                told(store.forget_own(files));
            }
        }
        return Err(unavailable(&error));
    }
    remove_old(store, transaction, &own, &kept).map_err(|error| unavailable(&error))
}

/// Adds the certificates and revocation lists, and our own certificates, whose files go into `kept`.
fn add_new(store: &Store, transaction: &Transaction, kept: &mut Vec<OwnFiles>) -> io::Result<()> {
    // Trust lists first: they are for the new certificate, too.
    for list in &transaction.lists {
        list.replacement.add(store, list.group)?;
    }
    for new in &transaction.certificates {
        kept.push(store.keep_own(&new.chain, &new.key)?);
    }
    Ok(())
}

/// Removes what is replaced.
fn remove_old(
    store: &Store,
    transaction: &Transaction,
    own: &[Option<OwnCertificate>],
    kept: &[OwnFiles],
) -> io::Result<()> {
    for (new, (before, (path, _))) in transaction.certificates.iter().zip(own.iter().zip(kept)) {
        if let Some(before) = before.as_ref().filter(|before| before.path != *path) {
            store.retire(before)?;
        }
        if let Some(certificate) = new.chain.first() {
            store.remove_requested_key(new.kind, certificate)?;
        }
    }
    transaction.lists.iter().try_for_each(|list| list.replacement.keep_only(store, list.group))
}

/// Something that is already wrong cannot be taken back either: people have to look.
fn told(result: io::Result<()>) {
    if let Err(error) = result {
        unavailable(&error);
    }
}

/// Whether all changes can be made. Files may have changed since they were checked first.
fn check(push: &Push, transaction: &Transaction) -> Result<(), StatusCode> {
    let store = push.trust.store();
    for list in &transaction.lists {
        let before = Lists::read(store, list.group);
        list.replacement.over(before.clone()).may_replace(&before)?;
    }
    if transaction.certificates.is_empty() {
        return Ok(());
    }
    if !push.renewal.is_possible() {
        return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
    }
    let mut lists = Lists::read(store, Group::Applications);
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
    push.state().end(caller)?;
    Ok(Vec::new())
}
