//! The services (Part 4 §5): from a request's type id to its answer.
//!
//! - [`request`], [`reply`]: the two headers; [`context`]: what services reach; [`value`], [`data_type`]: values;
//! - [`discovery`], [`session`], [`activate`], [`identity`]: before and around sessions; [`gate`]: what services need; [`browse`], [`translate`], [`register`]: the View services;
//! - [`read`], [`write`], [`call`]: values and methods;
//! - [`subscription`], [`monitored_item`]: what the subscription engine does; [`transfer`]: between engines too.

pub(crate) mod activate;
pub(crate) mod browse;
pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod data_type;
pub(crate) mod discovery;
pub(crate) mod gate;
pub(crate) mod identity;
pub(crate) mod monitored_item;
pub(crate) mod read;
pub(crate) mod register;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod subscription;
pub(crate) mod subscription_context;
pub(crate) mod transfer;
pub(crate) mod translate;
pub(crate) mod value;
pub(crate) mod write;

use crate::authorization::Decisions;
use crate::diagnostics::session::Counted;
use crate::error::{Fault, Severity};
use crate::session::table::TokenOwner;
use crate::subscription::publish::Ticket;
use context::Context;
use gate::{Gate, gate};
use reply::Reply;
use request::Request;
use smallvec::SmallVec;
use std::sync::Arc;
use subscription_context::SubscriptionContext;
use taktwerk_schema as schema;
use taktwerk_types::{Decoder, StatusCode, Structure};

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The response stands in the reply.
    Answered,
    /// The response comes later.
    Deferred,
    /// The request is for a session of another shard: the connection has to go there, with the request.
    Move(usize),
}

/// Whether a service writes nothing but its own response, so that this can be written where it is sent from. The
/// others also answer requests that wait, and their own response has to stand aside meanwhile.
#[inline]
pub(crate) fn answers_alone(type_id: u32) -> bool {
    matches!(
        type_id,
        schema::ReadRequest::BINARY_ENCODING_ID
            | schema::WriteRequest::BINARY_ENCODING_ID
            | schema::BrowseRequest::BINARY_ENCODING_ID
            | schema::BrowseNextRequest::BINARY_ENCODING_ID
            | schema::TranslateBrowsePathsToNodeIdsRequest::BINARY_ENCODING_ID
            | schema::CallRequest::BINARY_ENCODING_ID
            | schema::GetEndpointsRequest::BINARY_ENCODING_ID
            | schema::CreateMonitoredItemsRequest::BINARY_ENCODING_ID
    )
}

/// Answers a request: every one is answered, now or later.
pub(crate) fn dispatch(cx: &mut Context<'_>, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let result = route(cx, request, reply);
    if cx.audit.notes_sessions() {
        cx.audit_service(request, result.as_ref().err().map_or(StatusCode::GOOD, |fault| fault.status()));
    }
    let owner = cx.sessions.owner(request.header.token);
    if let TokenOwner::Here(key) = owner {
        if let Some(session) = cx.sessions.get(key) {
            session.entry.count(counted(request.type_id), result.is_err(), cx.now.utc);
        }
    }
    let fault = match result {
        Ok(outcome) => return outcome,
        Err(fault) => fault,
    };
    tracing::debug!(service = schema::message_name(request.type_id), %fault, "request refused");
    count_refusal(cx, request, fault);
    if let (Severity::CloseSession, TokenOwner::Here(key)) = (fault.severity(), owner) {
        cx.shared.live().counters.session_abort_count.up();
        cx.close_session(key, true, None);
    }
    reply.fault(fault);
    Outcome::Answered
}

/// Counts a refused request for ServerDiagnosticsSummary.
fn count_refusal(cx: &Context<'_>, request: &Request<'_>, fault: Fault) {
    let counters = &cx.shared.live().counters;
    counters.rejected_requests_count.up();
    let is_security = matches!(fault, Fault::Crypto { .. })
        || matches!(
            fault.status(),
            StatusCode::BAD_SESSION_ID_INVALID
                | StatusCode::BAD_SESSION_NOT_ACTIVATED
                | StatusCode::BAD_SECURE_CHANNEL_ID_INVALID
                | StatusCode::BAD_USER_ACCESS_DENIED
        );
    if is_security {
        counters.security_rejected_requests_count.up();
        if let TokenOwner::Here(key) = cx.sessions.owner(request.header.token) {
            if let Some(session) = cx.sessions.get(key) {
                session.entry.count_unauthorized();
            }
        }
    }
}

#[inline]
fn route(cx: &mut Context<'_>, request: &Request<'_>, reply: &mut Reply<'_>) -> Result<Outcome, Fault> {
    use subscription as s;
    if gate(request.type_id) == Gate::Activated {
        cx.session(request)?;
    }
    match request.type_id {
        schema::ReadRequest::BINARY_ENCODING_ID => read::read(cx, request, reply),
        schema::PublishRequest::BINARY_ENCODING_ID => publish(cx, request),
        schema::WriteRequest::BINARY_ENCODING_ID => write::write(cx, request, reply),
        schema::CallRequest::BINARY_ENCODING_ID => call::call(cx, request, reply),
        schema::BrowseRequest::BINARY_ENCODING_ID => browse::browse(cx, request, reply),
        schema::BrowseNextRequest::BINARY_ENCODING_ID => browse::browse_next(cx, request, reply),
        schema::TranslateBrowsePathsToNodeIdsRequest::BINARY_ENCODING_ID => {
            translate::translate(cx, request, reply)
        }
        schema::RegisterNodesRequest::BINARY_ENCODING_ID => register::register(cx, request, reply),
        schema::UnregisterNodesRequest::BINARY_ENCODING_ID => register::unregister(cx, request, reply),
        schema::FindServersRequest::BINARY_ENCODING_ID => discovery::find_servers(cx, request, reply),
        schema::GetEndpointsRequest::BINARY_ENCODING_ID => discovery::get_endpoints(cx, request, reply),
        schema::CreateSessionRequest::BINARY_ENCODING_ID => session::create(cx, request, reply),
        schema::ActivateSessionRequest::BINARY_ENCODING_ID => activate::activate(cx, request, reply),
        schema::CloseSessionRequest::BINARY_ENCODING_ID => session::close(cx, request, reply),
        schema::CancelRequest::BINARY_ENCODING_ID => session::cancel(cx, request, reply),
        schema::CreateSubscriptionRequest::BINARY_ENCODING_ID => {
            let outcome =
                engine::<schema::CreateSubscriptionResponse>(cx, request, reply, s::create_subscription)?;
            cx.shared.live().counters.cumulated_subscription_count.up();
            Ok(outcome)
        }
        schema::ModifySubscriptionRequest::BINARY_ENCODING_ID => {
            engine::<schema::ModifySubscriptionResponse>(cx, request, reply, s::modify_subscription)
        }
        schema::SetPublishingModeRequest::BINARY_ENCODING_ID => {
            engine::<schema::SetPublishingModeResponse>(cx, request, reply, s::set_publishing_mode)
        }
        schema::DeleteSubscriptionsRequest::BINARY_ENCODING_ID => {
            engine::<schema::DeleteSubscriptionsResponse>(cx, request, reply, s::delete_subscriptions)
        }
        schema::TransferSubscriptionsRequest::BINARY_ENCODING_ID => transfer::transfer(cx, request, reply),
        schema::RepublishRequest::BINARY_ENCODING_ID => {
            engine::<schema::RepublishResponse>(cx, request, reply, s::republish)
        }
        schema::CreateMonitoredItemsRequest::BINARY_ENCODING_ID => {
            let service = monitored_item::create_monitored_items;
            engine::<schema::CreateMonitoredItemsResponse>(cx, request, reply, service)
        }
        schema::ModifyMonitoredItemsRequest::BINARY_ENCODING_ID => {
            let service = monitored_item::modify_monitored_items;
            engine::<schema::ModifyMonitoredItemsResponse>(cx, request, reply, service)
        }
        schema::SetMonitoringModeRequest::BINARY_ENCODING_ID => {
            let service = monitored_item::set_monitoring_mode;
            engine::<schema::SetMonitoringModeResponse>(cx, request, reply, service)
        }
        schema::SetTriggeringRequest::BINARY_ENCODING_ID => {
            engine::<schema::SetTriggeringResponse>(cx, request, reply, monitored_item::set_triggering)
        }
        schema::DeleteMonitoredItemsRequest::BINARY_ENCODING_ID => {
            let service = monitored_item::delete_monitored_items;
            engine::<schema::DeleteMonitoredItemsResponse>(cx, request, reply, service)
        }
        _ => Err(Fault::local(StatusCode::BAD_SERVICE_UNSUPPORTED, "the service is not implemented")),
    }
}

/// A service of the subscription engine, which writes what follows the ResponseHeader.
type EngineService = fn(&mut SubscriptionContext<'_>, &mut Decoder<'_>, &mut Vec<u8>) -> Result<(), Fault>;

fn engine<T: Structure>(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
    service: EngineService,
) -> Result<Outcome, Fault> {
    let (key, _) = cx.session(request)?;
    let out = reply.begin::<T>();
    with_engine(cx, key, |context| service(context, &mut request.body.clone(), out))?;
    Ok(Outcome::Answered)
}

fn publish(cx: &mut Context<'_>, request: &Request<'_>) -> Result<Outcome, Fault> {
    let (key, _) = cx.session(request)?;
    let to = cx.reply_to(request);
    let ticket = Ticket {
        connection: to.connection,
        request_id: to.request_id,
        request_handle: to.request_handle,
        expires: subscription::expiry(cx.now.instant, request.header.timeout_hint),
        results: SmallVec::new(),
    };
    with_engine(cx, key, |context| subscription::publish(context, &mut request.body.clone(), ticket))?;
    Ok(Outcome::Deferred)
}

/// Runs a service of the engine for a session.
fn with_engine<T>(
    cx: &mut Context<'_>,
    key: crate::session::SessionKey,
    run: impl FnOnce(&mut SubscriptionContext<'_>) -> T,
) -> T {
    let limits = &cx.shared.config().limits;
    let decisions = cx.sessions.get(key).map(|session| Arc::clone(&session.decisions));
    let mut context = SubscriptionContext {
        engine: cx.engine,
        session: key.into(),
        decisions: decisions.unwrap_or_else(|| Arc::new(Decisions::nothing())),
        now: cx.now,
        space: cx.shared.space(),
        limits: &limits.subscriptions,
        operations_max: limits.monitored_items_per_call_max,
        responder: &mut cx.outbox,
    };
    run(&mut context)
}

/// The service's counter in the session's diagnostics.
fn counted(type_id: u32) -> Option<Counted> {
    use Counted as C;
    Some(match type_id {
        schema::ReadRequest::BINARY_ENCODING_ID => C::Read,
        schema::PublishRequest::BINARY_ENCODING_ID => C::Publish,
        schema::WriteRequest::BINARY_ENCODING_ID => C::Write,
        schema::CallRequest::BINARY_ENCODING_ID => C::Call,
        schema::BrowseRequest::BINARY_ENCODING_ID => C::Browse,
        schema::BrowseNextRequest::BINARY_ENCODING_ID => C::BrowseNext,
        schema::TranslateBrowsePathsToNodeIdsRequest::BINARY_ENCODING_ID => C::TranslateBrowsePathsToNodeIds,
        schema::RegisterNodesRequest::BINARY_ENCODING_ID => C::RegisterNodes,
        schema::UnregisterNodesRequest::BINARY_ENCODING_ID => C::UnregisterNodes,
        schema::CreateSubscriptionRequest::BINARY_ENCODING_ID => C::CreateSubscription,
        schema::ModifySubscriptionRequest::BINARY_ENCODING_ID => C::ModifySubscription,
        schema::SetPublishingModeRequest::BINARY_ENCODING_ID => C::SetPublishingMode,
        schema::DeleteSubscriptionsRequest::BINARY_ENCODING_ID => C::DeleteSubscriptions,
        schema::TransferSubscriptionsRequest::BINARY_ENCODING_ID => C::TransferSubscriptions,
        schema::RepublishRequest::BINARY_ENCODING_ID => C::Republish,
        schema::CreateMonitoredItemsRequest::BINARY_ENCODING_ID => C::CreateMonitoredItems,
        schema::ModifyMonitoredItemsRequest::BINARY_ENCODING_ID => C::ModifyMonitoredItems,
        schema::SetMonitoringModeRequest::BINARY_ENCODING_ID => C::SetMonitoringMode,
        schema::SetTriggeringRequest::BINARY_ENCODING_ID => C::SetTriggering,
        schema::DeleteMonitoredItemsRequest::BINARY_ENCODING_ID => C::DeleteMonitoredItems,
        schema::HistoryReadRequest::BINARY_ENCODING_ID => C::HistoryRead,
        schema::HistoryUpdateRequest::BINARY_ENCODING_ID => C::HistoryUpdate,
        schema::AddNodesRequest::BINARY_ENCODING_ID => C::AddNodes,
        schema::AddReferencesRequest::BINARY_ENCODING_ID => C::AddReferences,
        schema::DeleteNodesRequest::BINARY_ENCODING_ID => C::DeleteNodes,
        schema::DeleteReferencesRequest::BINARY_ENCODING_ID => C::DeleteReferences,
        schema::QueryFirstRequest::BINARY_ENCODING_ID => C::QueryFirst,
        schema::QueryNextRequest::BINARY_ENCODING_ID => C::QueryNext,
        _ => return None,
    })
}
