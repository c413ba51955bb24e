//! The check of each incoming request against its row of the service table: session, permissions and number of
//! operations.

use super::context::Context;
use super::request::{Request, skip_extension_object};
use super::table::{Gate, ListAt, Operations, Service};
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::limits::Limits;
use crate::session::SessionKey;
use crate::session::table::TokenOwner;
use std::sync::Arc;
use taktwerk_types::{Decode, Decoder, NodeIdRef, StatusCode};

/// The session of a request, with the results of the check.
#[derive(Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) session: SessionKey,
    /// The permissions of the session's user.
    pub(crate) decisions: Arc<Decisions>,
    /// Number of operations, from one to the limit; 0 for services without a list.
    pub(crate) count: usize,
    /// Positioned at the first operation.
    pub(crate) operations: Decoder<'a>,
}

/// Finds the session of a request and records that its client is alive.
///
/// # Errors
/// Bad_SessionIdInvalid, Bad_SecureChannelIdInvalid, Bad_SessionNotActivated; Bad_NothingToDo, Bad_TooManyOperations.
#[inline]
pub(crate) fn admit<'a>(
    cx: &mut Context<'_>,
    service: &Service,
    owner: TokenOwner,
    request: &Request<'a>,
) -> Result<Caller<'a>, Fault> {
    let invalid = Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, "Part 4 §7.32");
    let TokenOwner::Here(key) = owner else { return Err(invalid) };
    let session = cx.sessions.get_mut(key).ok_or(invalid)?;
    if session.connection != Some(cx.peer.connection) || session.channel_id != cx.peer.channel_id {
        return Err(Fault::peer(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID, "Part 4 §5.7.2.1"));
    }
    if service.gate == Gate::Activated {
        if !session.is_activated() {
            return Err(Fault::peer(StatusCode::BAD_SESSION_NOT_ACTIVATED, "Part 4 §5.7.2.1"));
        }
        session.last_contact = cx.now.instant;
    }
    let mut operations = request.body.clone();
    let count = match &service.operations {
        Some(list) => count(&mut operations, list, &cx.shared.config().limits)?,
        None => 0,
    };
    Ok(Caller { session: key, decisions: Arc::clone(&session.decisions), count, operations })
}

/// Counts the operations of a request and moves `body` to the first one.
#[inline]
fn count(body: &mut Decoder<'_>, operations: &Operations, limits: &Limits) -> Result<usize, Fault> {
    let offset = match operations.at {
        ListAt::Offset(offset) => offset,
        ListAt::BehindObject(offset) => {
            skip_extension_object(body)?;
            offset
        }
        ListAt::BehindView(offset) => {
            let _view_id = NodeIdRef::decode(body)?;
            // Timestamp and ViewVersion.
            8 + 4 + offset
        }
    };
    body.take(offset)?;
    let mut count = body.array_len(operations.len_min)?.unwrap_or(0);
    let mut behind = body.clone();
    let mut last = count;
    for _ in 1..operations.lists {
        behind.take(last * operations.len_min)?;
        last = behind.array_len(operations.len_min)?.unwrap_or(0);
        count += last;
    }
    match count {
        0 => Err(Fault::peer(StatusCode::BAD_NOTHING_TO_DO, "Part 4 §7.38")),
        count if count > (operations.limit.max)(limits) as usize => {
            Err(Fault::limit(StatusCode::BAD_TOO_MANY_OPERATIONS, operations.limit.name))
        }
        count => Ok(count),
    }
}
