//! The Methods of TrustListType (Part 12 §7.8.2).

use super::changes::{is_locked_out, warn_of_lockout};
use super::content::{self, Replacement};
use super::{Inputs, Push, Run, unavailable};
use crate::lock::lock;
use std::time::Instant;
use taktwerk_crypto::certificate::{Certificate, thumbprint};
use taktwerk_pki::{Group, Lists, thumbprint_text};
use taktwerk_server::callback::{CallContext, MethodResult};
use taktwerk_types::{ByteString, StatusCode, UaString};

pub(super) const METHODS: &[(&str, Run)] = &[
    ("Open", open),
    ("OpenWithMasks", open_with_masks),
    ("Close", close),
    ("Read", read),
    ("Write", write),
    ("GetPosition", get_position),
    ("SetPosition", set_position),
    ("CloseAndUpdate", close_and_update),
    ("AddCertificate", add_certificate),
    ("RemoveCertificate", remove_certificate),
];

/// Modes of Open for a trust list: reading, and writing a new one.
const READ: u8 = 1;
const WRITE_AND_ERASE: u8 = 6;

fn open(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    match inputs.take::<u8>()? {
        READ => opened_to_read(push, caller, group, content::ALL),
        WRITE_AND_ERASE => {
            let mut state = push.state();
            // Opening it begins a transaction (Part 12 §7.8.2.2).
            state.transaction(caller)?;
            let handle = state.handles.open(caller, group, true, Vec::new(), Instant::now())?;
            drop(state);
            push.show_trust_lists();
            Ok(vec![handle.into()])
        }
        _ => Err(StatusCode::BAD_NOT_SUPPORTED),
    }
}

fn open_with_masks(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let masks: u32 = inputs.take()?;
    if masks == 0 || masks & !content::ALL != 0 {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    opened_to_read(push, caller, group, masks)
}

/// Readers get the current trust list, without pending changes.
fn opened_to_read(push: &Push, caller: &CallContext, group: Group, masks: u32) -> MethodResult {
    let content = content::encode(&push.trust.store().lists(group), masks);
    let handle = push.state().handles.open(caller, group, false, content, Instant::now())?;
    push.show_trust_lists();
    Ok(vec![handle.into()])
}

fn close(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    push.state().handles.close(caller, group, inputs.take()?, Instant::now())?;
    push.show_trust_lists();
    Ok(Vec::new())
}

fn read(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let handle = inputs.take()?;
    let bytes = push.state().handles.get(caller, group, handle, Instant::now())?.read(inputs.take()?)?;
    Ok(vec![ByteString::from(bytes).into()])
}

fn write(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let handle = inputs.take()?;
    let bytes: ByteString = inputs.optional()?;
    push.state().handles.get(caller, group, handle, Instant::now())?.write(caller, bytes.as_bytes())?;
    Ok(Vec::new())
}

fn get_position(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let position = push.state().handles.get(caller, group, inputs.take()?, Instant::now())?.position();
    Ok(vec![position.into()])
}

fn set_position(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let handle = inputs.take()?;
    let position = inputs.take()?;
    push.state().handles.get(caller, group, handle, Instant::now())?.set_position(position);
    Ok(Vec::new())
}

/// The new list waits for ApplyChanges. An invalid list is closed too, and the transaction's earlier list stays.
fn close_and_update(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let handle = inputs.take()?;
    // It stays open until the end, so that no other session begins a transaction.
    let content = {
        let mut state = push.state();
        let open = state.handles.get(caller, group, handle, Instant::now())?;
        if !open.is_written {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        core::mem::take(&mut open.content)
    };
    let checked = Replacement::read(&content).and_then(|new| {
        let before = push.lists_of(caller, group);
        content::may_replace(&new.over(before.clone()), &before)?;
        Ok(new)
    });
    let added = {
        let mut state = push.state();
        state.handles.close(caller, group, handle, Instant::now())?;
        checked.and_then(|new| state.transaction(caller)?.add_list(caller, group, new))
    };
    push.show_trust_lists();
    added.map(|()| vec![true.into()])
}

/// Changes one certificate immediately. Refused during a transaction or while a client writes the list.
///
/// # Errors
/// Bad_TransactionPending; Bad_InvalidState while a client has the list open for writing (Part 12 §7.8.2.6).
fn change(
    push: &Push,
    caller: &CallContext,
    group: Group,
    change: impl FnOnce(Lists) -> Result<Lists, StatusCode>,
    write: impl FnOnce(&Lists) -> std::io::Result<()>,
) -> MethodResult {
    let changing = lock(&push.changing);
    {
        let state = push.state();
        state.no_changes()?;
        if state.handles.is_written(group) {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
    }
    let store = push.trust.store();
    let before = store.lists(group);
    let after = change(before.clone())?;
    content::may_replace(&after, &before)?;
    let written = write(&after).map_err(|error| unavailable(&error));
    // A change that failed may have been made in part.
    let now = store.lists(group);
    let is_changed = now.differs_from(&before);
    if is_changed && is_locked_out(caller, group, &before, &now) {
        warn_of_lockout(caller);
    }
    if is_changed {
        push.note(caller, push.trust_list_change(group));
    }
    drop(changing);
    push.trust.refresh();
    written.map(|()| Vec::new())
}

fn add_certificate(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let der: ByteString = inputs.take()?;
    let is_trusted: bool = inputs.take()?;
    let invalid = |_| StatusCode::BAD_CERTIFICATE_INVALID;
    let certificate = Certificate::from_der(der.as_bytes()).map_err(invalid)?;
    let store = push.trust.store();
    let add = |mut lists: Lists| {
        let list = if is_trusted { &mut lists.trusted } else { &mut lists.issuers };
        if !list.contains(&certificate) {
            list.push(certificate.clone());
        }
        Ok(lists)
    };
    change(push, caller, group, add, |_| {
        let kept =
            if is_trusted { store.trust(group, &certificate) } else { store.add_issuer(group, &certificate) };
        kept.map(|_| ())
    })
}

/// Removing an authority also removes its revocation lists (Part 12 §7.8.2.7).
fn remove_certificate(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let wanted: UaString = inputs.take()?;
    let is_trusted: bool = inputs.take()?;
    let is_it = |certificate: &Certificate| {
        thumbprint_text(&thumbprint(certificate.der())).eq_ignore_ascii_case(wanted.as_str())
    };
    let remove = |mut lists: Lists| {
        let list = if is_trusted { &mut lists.trusted } else { &mut lists.issuers };
        let at = list.iter().position(is_it).ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        let removed = list.remove(at);
        let is_left = |other: &Certificate| other.subject() == removed.subject();
        if !lists.trusted.iter().chain(&lists.issuers).any(is_left) {
            lists.trusted_lists.retain(|list| list.issuer() != removed.subject());
            lists.issuer_lists.retain(|list| list.issuer() != removed.subject());
        }
        Ok(lists)
    };
    let store = push.trust.store();
    change(push, caller, group, remove, |left| store.replace_lists(group, left))
}
