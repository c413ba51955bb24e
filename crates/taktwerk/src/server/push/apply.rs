//! ApplyChanges and CancelChanges (Part 12 §7.10.9).

use super::certificates::{own_of, validated};
use super::content::Lists;
use super::transaction::{NewCertificate, Transaction};
use super::{Inputs, Push, Run, unavailable};
use crate::lock::lock;
use crate::space::ns0;
use taktwerk_pki::Group;
use taktwerk_server::callback::{CallContext, MethodResult};
use taktwerk_types::StatusCode;

pub(super) const METHODS: &[(&str, Run)] =
    &[("ApplyChanges", apply_changes), ("CancelChanges", cancel_changes)];

/// Writes the changes, if all of them are still valid. The server uses a new certificate within a few seconds, and closes the
/// channels of the old one.
fn apply_changes(push: &Push, caller: &CallContext, _: Inputs) -> MethodResult {
    let changing = lock(&push.changing);
    let transaction = {
        let mut state = push.state();
        if state.own(caller).is_some() && state.handles.are_written() {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        state.end(caller)?
    };
    check(push, &transaction)?;
    let store = push.trust.store();
    // Trust lists first: they are for the new certificate, too. A crash in between leaves the old certificate in use.
    for list in &transaction.lists {
        list.replacement.apply(store, list.group)?;
    }
    for new in &transaction.certificates {
        replace(push, new).map_err(|error| unavailable(&error))?;
    }
    drop(changing);
    push.show_types();
    push.trust.refresh();
    Ok(Vec::new())
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

/// The new certificate is whole before the old one goes.
fn replace(push: &Push, new: &NewCertificate) -> std::io::Result<()> {
    let store = push.trust.store();
    let before = own_of(store, &ns0(new.kind)).ok();
    let (path, _) = store.keep_own(&new.chain, &new.key)?;
    if let Some(before) = before.filter(|before| before.path != path) {
        store.retire(&before)?;
    }
    if let Some(certificate) = new.chain.first() {
        store.remove_requested_key(new.kind, certificate)?;
    }
    Ok(())
}

fn cancel_changes(push: &Push, caller: &CallContext, _: Inputs) -> MethodResult {
    push.state().end(caller)?;
    Ok(Vec::new())
}
