//! RegisterNodes and UnregisterNodes (Part 4 §5.9.5, §5.9.6).
//!
//! Looking a node up costs a hash whatever its id, so there is nothing to prepare: the ids are given back as they
//! came, which the specification allows, also for nodes that do not exist.

use super::Outcome;
use super::context::Context;
use super::gate::Caller;
use super::reply::Reply;
use super::request::Request;
use crate::error::Fault;
use taktwerk_schema::{RegisterNodesResponse, UnregisterNodesResponse};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Decode, Encode, NodeIdRef, StatusCode};

pub(crate) fn register(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    _request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let (count, mut body) = (caller.count, caller.operations.clone());
    let out = reply.begin::<RegisterNodesResponse>();
    encode_len(count, out);
    let namespaces = cx.shared.space().namespace_count();
    for _ in 0..count {
        let id = NodeIdRef::decode(&mut body)?;
        // An id that cannot be a node's has the whole request refused (Part 4 §5.9.5.3). Whether there is such a node is
        // not said: who may not see it would learn of it.
        if id.is_null() || usize::from(id.namespace_index) >= namespaces {
            return Err(Fault::peer(StatusCode::BAD_NODE_ID_INVALID, "Part 4 §5.9.5.3"));
        }
        id.encode(out);
    }
    Ok(Outcome::Answered)
}

pub(crate) fn unregister(
    _cx: &mut Context<'_>,
    caller: &Caller<'_>,
    _request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let (count, mut body) = (caller.count, caller.operations.clone());
    for _ in 0..count {
        NodeIdRef::decode(&mut body)?;
    }
    reply.begin::<UnregisterNodesResponse>();
    Ok(Outcome::Answered)
}
