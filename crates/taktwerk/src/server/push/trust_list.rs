//! The Methods of TrustListType (Part 12 §7.8.2).

use super::content::{self, Lists, Replacement};
use super::{Inputs, Push, Run, unavailable};
use crate::lock::lock;
use std::time::Instant;
use taktwerk_crypto::certificate::{Certificate, thumbprint};
use taktwerk_pki::{Folder, Group, thumbprint_text};
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

/// Modes of Open that a trust list has: to read it, and to write another one.
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

/// Readers get the trust list as it is, without what waits for ApplyChanges.
fn opened_to_read(push: &Push, caller: &CallContext, group: Group, masks: u32) -> MethodResult {
    let content = Lists::read(push.trust.store(), group).encode(masks);
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

/// The new list waits for ApplyChanges. If it is not valid, it is closed too, and what the transaction had before stays.
fn close_and_update(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    let group = push.group_of(&caller.object_id)?;
    let handle = inputs.take()?;
    // Open until it is done: no other session begins a transaction meanwhile.
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
        new.over(before.clone()).may_replace(&before)?;
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

/// Changes one certificate at once: not while a transaction or a client that writes would change it, too.
///
/// # Errors
/// Bad_TransactionPending; Bad_InvalidState while a client has the list open to replace it (Part 12 §7.8.2.6).
fn change(
    push: &Push,
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
    let before = Lists::read(push.trust.store(), group);
    let after = change(before.clone())?;
    after.may_replace(&before)?;
    write(&after).map_err(|error| unavailable(&error))?;
    drop(changing);
    push.trust.refresh();
    Ok(Vec::new())
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
    change(push, group, add, |_| {
        let kept =
            if is_trusted { store.trust(group, &certificate) } else { store.add_issuer(group, &certificate) };
        kept.map(|_| ())
    })
}

/// With an authority, its revocation lists go (Part 12 §7.8.2.7).
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
    change(push, group, remove, |left| {
        // The certificate before the lists that revoke what it has issued.
        if is_trusted {
            store.replace_certificates(group, Folder::Trusted, &left.trusted)?;
        } else {
            store.replace_certificates(group, Folder::Issuers, &left.issuers)?;
        }
        store.replace_revocation_lists(group, Folder::TrustedLists, &left.trusted_lists)?;
        store.replace_revocation_lists(group, Folder::IssuerLists, &left.issuer_lists)
    })
}
