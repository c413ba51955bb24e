//! RegisterNodes and UnregisterNodes (Part 4 §5.9.5, §5.9.6).
//!
//! Looking up a node costs one hash for any id, so there is nothing to prepare. The ids are returned unchanged, which
//! the specification allows, also for nodes that do not exist.

use super::Outcome;
use super::context::Context;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::reply::Reply;
use super::request::Request;
use crate::error::Fault;
use taktwerk_schema::{RegisterNodesResponse, UnregisterNodesResponse};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Decode, Encode, NodeIdRef, StatusCode};

pub(crate) fn register(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    encode_len(caller.count, reply.begin::<RegisterNodesResponse>());
    list::start(cx, caller, request, Cursor::Register, reply)
}

pub(super) fn work(cx: &Context<'_>, list: &mut List<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let namespaces = cx.shared.space().namespace_count();
    while list.goes_on(reply)? {
        let before = list.body.remaining();
        let id = NodeIdRef::decode(&mut list.body)?;
        // An id that cannot belong to a node makes the whole request fail (Part 4 §5.9.5.3). Whether the node exists is
        // not checked, because the response would reveal it to clients without permission.
        if id.is_null() || usize::from(id.namespace_index) >= namespaces {
            return Err(Fault::peer(StatusCode::BAD_NODE_ID_INVALID, "Part 4 §5.9.5.3"));
        }
        id.encode(reply.out());
        list.done(1, before - list.body.remaining());
    }
    Ok(())
}

pub(crate) fn unregister(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    reply.begin::<UnregisterNodesResponse>();
    list::start(cx, caller, request, Cursor::Unregister, reply)
}

/// Skips ids that were never registered.
pub(super) fn pass(list: &mut List<'_>) -> Result<(), Fault> {
    while list.left > 0 && list.units > 0 {
        NodeIdRef::decode(&mut list.body)?;
        list.done(1, 0);
    }
    Ok(())
}
