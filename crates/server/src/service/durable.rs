//! SetSubscriptionDurable (Part 5 §9.3), and restoring subscriptions when the server starts (Part 4 §6.8).

use super::context::Context;
use super::monitored_item;
use super::subscription_context::SubscriptionContext;
use super::table::Changes;
use super::{Outcome, ticket};
use crate::account::Category;
use crate::authorization::{Decisions, Grant};
use crate::durable::saved::{Saved, SavedItem};
use crate::limits::cost;
use crate::reply::Reply;
use crate::request::Request;
use crate::session::owner::Owner;
use crate::session::table::TokenOwner;
use crate::session::{Session, SessionKey};
use crate::subscription::SessionKey as EngineKey;
use crate::subscription::journal::Identity;
use std::sync::Arc;
use taktwerk_schema::ids::method_ids;
use taktwerk_schema::{CallMethodRequest, MonitoringMode};
use taktwerk_types::{Decode, DecodeLimits, Encode, StatusCode, UaString, Variant};

/// The status with which restoring fails.
type Restored = Result<(), StatusCode>;

/// SetSubscriptionDurable for a subscription of the session. Returns the revised lifetime in hours.
///
/// # Errors
/// Bad_NotSupported if the server does not support durable subscriptions; Bad_InvalidState if the subscription has
/// items; Bad_OutOfMemory if the user's limit in bytes is reached; Bad_TooManySubscriptions if the user has as many
/// durable ones as a session may have, because durable subscriptions outlive sessions.
pub(super) fn set(cx: &mut Context<'_>, key: SessionKey, place: u32, hours: u32) -> Result<u32, StatusCode> {
    let config = cx.engine.durable_config().ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
    let (hours, bytes_max) = (config.revised_hours(hours), config.bytes_per_user_max);
    if cx.engine.subscription(place).is_none_or(|subscription| !subscription.items.is_empty()) {
        return Err(StatusCode::BAD_INVALID_STATE);
    }
    let owner = cx.sessions.get(key).and_then(Session::owner).ok_or(StatusCode::BAD_SESSION_ID_INVALID)?;
    let account = cx.shared.durable_users().account(cx.shared.account(), bytes_max, &owner.account_name());
    let max = cx.shared.config().limits.subscriptions.subscriptions_per_session_max as usize;
    if !cx.engine.is_durable(place) && account.used(Category::SubscriptionCount) >= max {
        return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
    }
    if !cx.engine.is_durable(place) && account.bytes().saturating_add(cost::SUBSCRIPTION) > bytes_max {
        return Err(StatusCode::BAD_OUT_OF_MEMORY);
    }
    let identity = Identity { namespaces: namespaces(cx), owner: owner.encode_to_vec() };
    cx.engine.make_durable(place, hours, identity, &account, cx.now);
    Ok(hours)
}

fn namespaces(cx: &Context<'_>) -> Vec<UaString> {
    cx.shared.space().namespaces().iter().map(|uri| UaString::from(uri.as_str())).collect()
}

/// Restores a subscription.
pub(crate) fn restore(cx: &mut Context<'_>, mut saved: Saved) {
    let id = saved.id;
    match restore_one(cx, &mut saved) {
        Ok(()) => {
            tracing::info!(subscription = id, items = saved.items.len(), "durable subscription restored")
        }
        Err(status) => {
            tracing::error!(subscription = id, %status, "cannot restore a durable subscription; its log is kept");
        }
    }
}

fn restore_one(cx: &mut Context<'_>, saved: &mut Saved) -> Restored {
    let known = namespaces(cx);
    if !known.starts_with(&saved.header.namespaces) {
        tracing::error!(
            "the namespaces of the server have changed: its NodeIds would mean other nodes. Load the same NodeSets in the \
             same order, or delete the file of durable subscriptions"
        );
        return Err(StatusCode::BAD_CONFIGURATION_ERROR);
    }
    let damaged = |_| StatusCode::BAD_DECODING_ERROR;
    let owner = Owner::decode_from(&saved.header.owner, DecodeLimits::DEFAULT).map_err(damaged)?;
    let config = cx.engine.durable_config().ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
    let users = cx.shared.durable_users();
    let account = users.account(cx.shared.account(), config.bytes_per_user_max, &owner.account_name());
    let header = &saved.header;
    let grant = Grant { is_limited: header.is_limited, ..Grant::new(header.roles.as_slice(), header.mode) };
    let decisions = cx.authorizer.decisions(cx.shared, grant);
    let place = cx.engine.restore_subscription(saved, &account, decisions, cx.now)?;
    cx.sessions.keep_owner(core::iter::once(saved.id), &owner, cx.shared.account());
    let items = core::mem::take(&mut saved.items);
    let own = cx.engine.subscription(place).map(|subscription| Arc::clone(subscription.kept.account()));
    let mut context = SubscriptionContext {
        engine: cx.engine,
        session: EngineKey(u32::MAX),
        // Items that the client cannot see now are restored too: its permissions may change.
        decisions: Arc::new(Decisions::everything(cx.shared.space().read().access())),
        now: cx.now,
        space: cx.shared.space(),
        limits: &cx.shared.config().limits,
        account: own.as_ref().unwrap_or(cx.shared.account()),
        responder: &mut cx.outbox,
    };
    let mut made: Vec<(u32, u32)> = Vec::with_capacity(items.len());
    let mut rest: Vec<(u32, SavedItem)> = Vec::with_capacity(items.len());
    for (id, item) in items {
        match monitored_item::create_again(&mut context, place, item.timestamps, &item.request) {
            Ok(index) => {
                made.push((id, index));
                rest.push((index, item));
            }
            Err(status) => {
                let values = item.values.elements.len() + item.events.elements.len();
                tracing::error!(
                    subscription = saved.id, item = id, %status, values,
                    "cannot restore an item of a durable subscription; its values are lost"
                );
            }
        }
    }
    context.engine.restore_ids(place, &made);
    let links: Vec<(u32, Vec<u32>)> =
        rest.iter().map(|(index, item)| (*index, item.linked.clone())).collect();
    for (index, item) in rest {
        restore_item(&mut context, place, index, item, saved.is_complete);
    }
    for (index, linked) in links.into_iter().filter(|(_, linked)| !linked.is_empty()) {
        context.engine.set_triggering(place, index, &linked, &[]);
    }
    context.engine.deny_restored(place, context.now, context.space);
    Ok(())
}

/// Holds the response of a request that has changed a durable subscription until the change is written.
pub(super) fn answer_when_written(
    cx: &mut Context<'_>,
    changes: Changes,
    owner: TokenOwner,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let TokenOwner::Here(key) = owner else { return Outcome::Answered };
    let Some(place) = unwritten(cx, changes, key, request) else { return Outcome::Answered };
    let mut ticket = ticket(cx, request);
    let account = cx.sessions.get(key).map_or(cx.shared.account(), |session| &session.account);
    // Without memory for it, the response is sent now.
    let Ok(charge) = account.charge(Category::Requests, reply.len()) else { return Outcome::Answered };
    ticket.charge = Some(charge);
    cx.engine.hold_response(place, ticket, reply.take());
    Outcome::Deferred
}

/// The first of the changed subscriptions that must be written.
fn unwritten(cx: &Context<'_>, changes: Changes, key: SessionKey, request: &Request<'_>) -> Option<u32> {
    if !cx.engine.has_durable() {
        return None;
    }
    let mut body = request.body.clone();
    let count = match changes {
        Changes::Nothing => 0,
        Changes::Subscription => 1,
        Changes::List(at) => {
            body.take(at).ok()?;
            body.array_len(4).ok()??
        }
        Changes::Methods => body.array_len(8).ok()??,
    };
    let mut ids = (0..count).map_while(|_| match changes {
        Changes::Methods => CallMethodRequest::decode(&mut body).ok().map(|call| made_durable(&call)),
        _ => u32::decode(&mut body).ok().map(Some),
    });
    ids.find_map(|id| cx.engine.must_write_changes(key.into(), id?))
}

/// The subscription that a call makes durable.
fn made_durable(call: &CallMethodRequest) -> Option<u32> {
    match call.input_arguments.first() {
        Some(Variant::UInt32(id)) if call.method_id == method_ids::SERVER_SET_SUBSCRIPTION_DURABLE.into() => {
            Some(*id)
        }
        _ => None,
    }
}

/// Restores the settings of an item.
fn restore_item(
    context: &mut SubscriptionContext<'_>,
    place: u32,
    index: u32,
    item: SavedItem,
    is_complete: bool,
) {
    if let Some((timestamps, parameters)) = &item.modified {
        let modified = monitored_item::modify_again(context, place, index, *timestamps, parameters);
        if let Err(status) = modified {
            tracing::warn!(%status, "cannot restore the changes of an item of a durable subscription; it keeps its original settings");
        }
    }
    if let Some(mode) = item.mode {
        context.engine.set_mode(index, MonitoringMode(mode), context.now, context.space);
    }
    if context.engine.is_event_item(index) {
        context.engine.restore_retained(index, item.retained);
        context.engine.restore_events(index, item.events, is_complete, context.space);
    } else {
        context.engine.restore_values(index, item.values, is_complete);
    }
}
