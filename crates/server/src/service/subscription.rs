//! The Subscription service set (Part 4 §5.14): parses requests, revises parameters and writes responses. The behaviour
//! is in the subscription engine.

use super::Outcome;
use super::context::Context;
use super::gate::Caller;
use super::list::{self, Cursor};
use super::monitored_item::Ids;
use super::reply::Reply;
use super::request::Request;
use super::subscription_context::SubscriptionContext;
use crate::account::{Category, allocation};
use crate::error::Fault;
use crate::subscription::publish::Ticket;
use crate::subscription::subscription::Parameters;
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_schema::{DeleteSubscriptionsResponse, SetPublishingModeResponse};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Decode, Decoder, Encode, Instant, StatusCode};

/// CreateSubscription (Part 4 §5.14.2).
pub(crate) fn create_subscription(
    context: &mut SubscriptionContext<'_>,
    decoder: &mut Decoder<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let publishing_interval = f64::decode(decoder)?;
    let lifetime_count = u32::decode(decoder)?;
    let max_keep_alive_count = u32::decode(decoder)?;
    let max_notifications = u32::decode(decoder)?;
    let publishing_enabled = bool::decode(decoder)?;
    let priority = u8::decode(decoder)?;
    let mut revised =
        Parameters { publishing_interval, lifetime_count, max_keep_alive_count, max_notifications, priority }
            .revise(&context.limits.subscriptions);
    revised.publishing_interval = context.engine.fitting_interval(None, revised.publishing_interval);
    let place = context
        .engine
        .create_subscription(
            context.session,
            revised,
            publishing_enabled,
            Arc::clone(&context.decisions),
            context.now,
        )
        .map_err(|status| Fault::limit(status, "subscriptions_per_session_max or subscriptions_max"))?;
    context.engine.subscription(place).map_or(0, |subscription| subscription.id).encode(out);
    encode_revised(&revised, out);
    Ok(())
}

fn encode_revised(revised: &Parameters, out: &mut Vec<u8>) {
    revised.publishing_interval.encode(out);
    revised.lifetime_count.encode(out);
    revised.max_keep_alive_count.encode(out);
}

/// ModifySubscription (Part 4 §5.14.3).
pub(crate) fn modify_subscription(
    context: &mut SubscriptionContext<'_>,
    decoder: &mut Decoder<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let place = context.subscription(decoder)?;
    let publishing_interval = f64::decode(decoder)?;
    let lifetime_count = u32::decode(decoder)?;
    let mut revised = Parameters {
        publishing_interval,
        lifetime_count,
        max_keep_alive_count: u32::decode(decoder)?,
        max_notifications: u32::decode(decoder)?,
        priority: u8::decode(decoder)?,
    }
    .revise(&context.limits.subscriptions);
    revised.publishing_interval = context.engine.fitting_interval(Some(place), revised.publishing_interval);
    if let Some(hours) = context.engine.durable_lifetime_max(place) {
        // Part 4 §6.8: the lifetime may be as long as that of durable subscriptions.
        let asked = lifetime_count.max(revised.max_keep_alive_count.saturating_mul(3));
        revised.lifetime_count = asked.min(revised.durable(hours).lifetime_count);
    }
    context.engine.modify_subscription(place, revised, context.now);
    encode_revised(&revised, out);
    Ok(())
}

/// SetPublishingMode (Part 4 §5.14.4).
pub(crate) fn set_publishing_mode(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let enabled = bool::decode(&mut request.body.clone())?;
    encode_len(caller.count, reply.begin::<SetPublishingModeResponse>());
    list::start(cx, caller, request, Cursor::Ids(Ids::SetPublishingMode(enabled)), reply)
}

/// DeleteSubscriptions (Part 4 §5.14.8).
pub(crate) fn delete_subscriptions(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    encode_len(caller.count, reply.begin::<DeleteSubscriptionsResponse>());
    list::start(cx, caller, request, Cursor::Ids(Ids::DeleteSubscriptions), reply)
}

/// Republish (Part 4 §5.14.6). Returns whether the response was written; otherwise it is sent later.
pub(crate) fn republish(
    context: &mut SubscriptionContext<'_>,
    decoder: &mut Decoder<'_>,
    ticket: impl FnOnce() -> Ticket,
    out: &mut Vec<u8>,
) -> Result<bool, Fault> {
    let place = context.subscription(decoder)?;
    let sequence_number = u32::decode(decoder)?;
    let message = context
        .engine
        .republish(place, sequence_number, ticket)
        .map_err(|status| Fault::peer(status, "Part 4 §5.14.6.3"))?;
    if let Some(message) = message {
        out.extend_from_slice(message);
    }
    Ok(message.is_some())
}

/// Publish (Part 4 §5.14.5): the response is sent when there are notifications.
pub(crate) fn publish(
    context: &mut SubscriptionContext<'_>,
    decoder: &mut Decoder<'_>,
    mut ticket: Ticket,
) -> Result<(), Fault> {
    // Clients acknowledge what they received since their last request: a few messages.
    let count = decoder.array_len(8)?.unwrap_or(0);
    if count > context.limits.subscriptions.acknowledgements_per_publish_max as usize {
        return Err(Fault::limit(StatusCode::BAD_TOO_MANY_OPERATIONS, "acknowledgements_per_publish_max"));
    }
    let mut results: SmallVec<[StatusCode; 4]> = SmallVec::with_capacity(count);
    if results.spilled() {
        let bytes = allocation(results.capacity() * size_of::<StatusCode>());
        ticket.charge = Some(context.account.charge(Category::Requests, bytes)?);
    }
    for _ in 0..count {
        let id = u32::decode(decoder)?;
        let sequence_number = u32::decode(decoder)?;
        results.push(context.engine.acknowledge(context.session, id, sequence_number));
    }
    ticket.results = results;
    context
        .engine
        .publish(context.session, ticket, context.now, context.responder)
        .map_err(|status| Fault::peer(status, "Part 4 §5.14.5.3"))
}

/// The deadline of a request with this timeoutHint (ms, 0 for none).
pub(crate) fn expiry(now: Instant, timeout_hint: u32) -> Instant {
    if timeout_hint == 0 { Instant::FAR } else { now.plus_millis_f64(f64::from(timeout_hint)) }
}
