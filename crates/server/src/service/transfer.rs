//! TransferSubscriptions (Part 4 §5.14.7): from another session of this shard at once, from another shard when it has
//! answered.

use super::Outcome;
use super::context::Context;
use super::deferred::{self, Asked};
use super::gate::Caller;
use super::reply::{Reply, no_diagnostics};
use super::request::Request;
use super::shard_message::{Ask, Waiting};
use crate::connection::outbox::Outbox;
use crate::error::Fault;
use crate::ids::ReplyTo;
use crate::session::{Session, SessionKey};
use std::sync::Arc;
use taktwerk_schema::TransferSubscriptionsResponse;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Decode, DecodeError, Encode, StatusCode};

/// The result of one operation: the sequence numbers available for Republish.
pub(crate) type Transferred = Result<Vec<u32>, StatusCode>;

/// Timeout for another shard, in ms. It needs one turn, so a longer wait is an error that the client should see.
const SHARD_TIMEOUT: f64 = 5_000.0;

pub(crate) fn transfer(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let key = caller.session;
    let owner = cx.sessions.get(key).and_then(Session::owner);
    let (count, mut decoder) = (caller.count, caller.operations.clone());
    let ids = (0..count).map(|_| u32::decode(&mut decoder)).collect::<Result<Vec<_>, DecodeError>>()?;
    let send_initial_values = bool::decode(&mut decoder)?;
    let elsewhere = |cx: &Context<'_>, id| match cx.engine.find_any(id) {
        Some(_) => None,
        None => elsewhere(cx, id),
    };
    let is_deferred = ids.iter().any(|id| elsewhere(cx, *id).is_some());
    if is_deferred && !cx.has_capacity_for(1) {
        return Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "effects_max"));
    }
    let mut results = Vec::with_capacity(count);
    let mut asks = Vec::new();
    for (part, id) in ids.into_iter().enumerate() {
        let shard = elsewhere(cx, id);
        asks.extend(shard.map(|shard| (part, id, shard)));
        results.push(match shard {
            Some(_) => None,
            None => Some(within_shard(cx, key, id, send_initial_values)),
        });
    }
    let (Some(owner), false) = (owner, asks.is_empty()) else {
        encode(&results, reply.begin::<TransferSubscriptionsResponse>());
        return Ok(Outcome::Answered);
    };
    let max = cx.shared.config().limits.deferred_timeout.min(SHARD_TIMEOUT);
    let deadline = deferred::deadline(cx.now.instant, request.header.timeout_hint, max);
    let account = Arc::clone(cx.account(Some(key)));
    let origin = cx.asker().origin;
    let asked =
        Asked { reply_to: cx.reply_to(request), origin, session: Some(key), deadline, account: &account };
    let request = cx.deferrals.wait_for_transfers(asked, send_initial_values, results)?;
    let here = cx.sessions.shard();
    for (part, id, shard) in asks {
        let waiting = Waiting { request, part };
        let owner = owner.clone();
        cx.transfers.ask(shard, Ask { id, owner, shard: here, waiting, hops: 0, behind_event: None });
    }
    Ok(Outcome::Deferred)
}

/// The shard that may have a subscription; this shard for one in transit to it.
fn elsewhere(cx: &Context<'_>, id: u32) -> Option<usize> {
    let locations = cx.shared.locations();
    let here = cx.sessions.shard();
    locations.moved_to(id).or_else(|| Some(locations.creating_shard(id)).filter(|shard| *shard != here))
}

/// Transfers a subscription of this shard to one of its sessions.
///
/// # Errors
/// Bad_SubscriptionIdInvalid, Bad_UserAccessDenied, and Bad_NothingToDo if the session has it already (row 22).
pub(crate) fn within_shard(
    cx: &mut Context<'_>,
    key: SessionKey,
    id: u32,
    send_initial_values: bool,
) -> Transferred {
    let place = cx.engine.find_any(id).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
    let from = cx.engine.subscription(place).and_then(|subscription| subscription.session);
    if from == Some(key.into()) {
        return Err(StatusCode::BAD_NOTHING_TO_DO);
    }
    let owner = cx.sessions.get(key).and_then(Session::owner);
    if !owner.is_some_and(|owner| cx.sessions.may_take(&owner, from, id)) {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    let decisions = cx.sessions.get(key).map(|session| Arc::clone(&session.decisions));
    let decisions = decisions.ok_or(StatusCode::BAD_SESSION_ID_INVALID)?;
    // Before anything is sent: the new session may be less secure or have other roles.
    cx.engine.authorize(place, &decisions, cx.now, cx.shared.space());
    Ok(cx.engine.transfer(place, key.into(), send_initial_values, from.is_none(), cx.now, &mut cx.outbox))
}

/// Sends the response to a waiting request. Operations without a result have timed out.
pub(crate) fn respond(outbox: &mut Outbox<'_>, to: ReplyTo, results: &[Option<Transferred>]) {
    let time = outbox.now.utc;
    outbox.send(to.connection, to.request_id, to.request_handle, |out| {
        let mut reply = Reply::new(out, to.request_handle, time);
        encode(results, reply.begin::<TransferSubscriptionsResponse>());
    });
}

fn encode(results: &[Option<Transferred>], out: &mut Vec<u8>) {
    encode_len(results.len(), out);
    for result in results {
        match result {
            Some(Ok(available)) => {
                StatusCode::GOOD.encode(out);
                available.encode(out);
            }
            Some(Err(status)) => {
                status.encode(out);
                encode_len(0, out);
            }
            None => {
                StatusCode::BAD_TIMEOUT.encode(out);
                encode_len(0, out);
            }
        }
    }
    no_diagnostics(out);
}
