//! The services (Part 4 §5): from a request to its response.
//!
//! - [`context`]: the context of services; [`deferred`]: requests that wait for effects; [`turns`]: postponed requests;
//!   [`shard_message`]: messages between shards; [`value`]: encoding values;
//! - [`table`]: properties of each service; [`gate`]: the check of incoming requests; [`list`]: requests with operation
//!   lists;
//! - [`discovery`], [`session`], [`activate`], [`identity`]: discovery and session services;
//! - [`browse`], [`translate`], [`register`]: the View services;
//! - [`query`]: nodes by type, attributes and relations;
//! - [`read`], [`write`], [`call`]: values and methods; [`history`]: historical data;
//! - [`node_management`]: nodes and references that clients add and delete;
//! - [`subscription`], [`monitored_item`]: services of the subscription engine; [`transfer`]: transfers, also between
//!   shards.

pub(crate) mod activate;
mod aggregate_filter;
pub(crate) mod audit;
pub(crate) mod authorize;
pub(crate) mod browse;
pub(crate) mod call;
mod call_in_process;
mod condition;
pub(crate) mod context;
pub(crate) mod deferred;
pub(crate) mod diagnostics;
pub(crate) mod discovery;
pub(crate) mod durable;
mod event_item;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod identity;
pub(crate) mod list;
pub(crate) mod monitored_item;
pub(crate) mod node_management;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod register;
pub(crate) mod session;
pub(crate) mod shard_message;
pub(crate) mod subscription;
pub(crate) mod subscription_context;
pub(crate) mod table;
pub(crate) mod transfer;
pub(crate) mod translate;
pub(crate) mod trust;
pub(crate) mod turns;
pub(crate) mod value;
pub(crate) mod write;

use crate::error::{Fault, Severity};
use crate::session::SessionKey;
use crate::session::table::TokenOwner;
use crate::subscription::publish::Ticket;
pub(crate) use crate::{reply, request};
use context::Context;
use gate::{Caller, admit};
use list::Paused;
use reply::Reply;
use request::Request;
use smallvec::SmallVec;
use std::sync::Arc;
use subscription_context::SubscriptionContext;
use table::{Changes, Gate, Handler, Service};
use taktwerk_schema as schema;
use taktwerk_types::StatusCode;

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The reply contains the response.
    Answered,
    /// The response is sent later.
    Deferred,
    /// The session is on another shard: the connection must move there with the request.
    Move(usize),
    /// Other connections get their turn before the request continues. The reply contains the response so far.
    Suspended(SessionKey, Box<Paused>),
}

/// Handles a request. Every request is answered, now or later.
pub(crate) fn dispatch(
    cx: &mut Context<'_>,
    service: &Service,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let owner = cx.sessions.owner(request.header.token);
    cx.work.requests += 1;
    let result = run(cx, service, owner, request, reply);
    conclude(cx, service, owner, request, result, reply)
}

/// Continues a postponed request.
pub(crate) fn resume(
    cx: &mut Context<'_>,
    service: &Service,
    session: SessionKey,
    paused: Paused,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    // The permissions are looked up again: they may have changed in the meantime.
    let owner = TokenOwner::Here(session);
    let result =
        admit(cx, service, owner, request).and_then(|caller| paused.resume(cx, &caller, request, reply));
    conclude(cx, service, owner, request, result, reply)
}

/// Counts and audits the outcome of a request, and writes the fault of a refused one.
fn conclude(
    cx: &mut Context<'_>,
    service: &Service,
    owner: TokenOwner,
    request: &Request<'_>,
    result: Result<Outcome, Fault>,
    reply: &mut Reply<'_>,
) -> Outcome {
    if let Ok(outcome @ Outcome::Suspended(..)) = result {
        return outcome;
    }
    if cx.audit.notes_sessions() {
        cx.audit_service(request, result.as_ref().err().map_or(StatusCode::GOOD, |fault| fault.status()));
    }
    if let TokenOwner::Here(key) = owner
        && let Some(session) = cx.sessions.get(key)
    {
        session.entry.count(service.counted, result.is_err(), cx.now.utc);
    }
    let fault = match result {
        Ok(Outcome::Answered) if service.changes != Changes::Nothing => {
            return durable::answer_when_written(cx, service.changes, owner, request, reply);
        }
        Ok(outcome) => return outcome,
        Err(fault) => fault,
    };
    tracing::debug!(service = schema::message_name(request.type_id), %fault, "request refused");
    count_refusal(cx, owner, fault);
    if let (Severity::CloseSession, TokenOwner::Here(key)) = (fault.severity(), owner) {
        cx.shared.live().counters.session_abort_count.up();
        cx.ends = Some(key);
    }
    reply.fault(fault);
    Outcome::Answered
}

#[inline]
fn run(
    cx: &mut Context<'_>,
    service: &Service,
    owner: TokenOwner,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    if let Handler::Open(handler) = service.handler {
        return handler(cx, request, reply);
    }
    let unsupported = Fault::local(StatusCode::BAD_SERVICE_UNSUPPORTED, "the service is not implemented");
    if service.gate == Gate::Open {
        return Err(unsupported);
    }
    let caller = admit(cx, service, owner, request)?;
    match service.handler {
        Handler::Session(handler) => handler(cx, &caller, request, reply),
        Handler::Engine(response, handler) => {
            let out = reply.begin_id(response, StatusCode::GOOD);
            let result = with_engine(cx, &caller, |context| handler(context, &mut request.body.clone(), out));
            cx.units -= cx.engine.take_owed();
            result?;
            Ok(Outcome::Answered)
        }
        Handler::Open(_) | Handler::Unsupported => Err(unsupported),
    }
}

/// Counts a refused request for ServerDiagnosticsSummary.
fn count_refusal(cx: &Context<'_>, owner: TokenOwner, fault: Fault) {
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
        if let TokenOwner::Here(key) = owner {
            if let Some(session) = cx.sessions.get(key) {
                session.entry.count_unauthorized();
            }
        }
    }
}

/// What a later response to the request needs.
fn ticket(cx: &Context<'_>, request: &Request<'_>) -> Ticket {
    let to = cx.reply_to(request);
    Ticket {
        connection: to.connection,
        request_id: to.request_id,
        request_handle: to.request_handle,
        expires: subscription::expiry(cx.now.instant, request.header.timeout_hint),
        results: SmallVec::new(),
        charge: None,
    }
}

fn republish(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let ticket = ticket(cx, request);
    let out = reply.begin::<schema::RepublishResponse>();
    let is_answered = with_engine(cx, caller, |context| {
        subscription::republish(context, &mut request.body.clone(), || ticket, out)
    })?;
    Ok(if is_answered { Outcome::Answered } else { Outcome::Deferred })
}

fn publish(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    _reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let ticket = ticket(cx, request);
    with_engine(cx, caller, |context| subscription::publish(context, &mut request.body.clone(), ticket))?;
    Ok(Outcome::Deferred)
}

fn create_subscription(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let out = reply.begin::<schema::CreateSubscriptionResponse>();
    with_engine(cx, caller, |context| {
        subscription::create_subscription(context, &mut request.body.clone(), out)
    })?;
    cx.shared.live().counters.cumulated_subscription_count.up();
    Ok(Outcome::Answered)
}

/// Runs a service of the engine for a session.
fn with_engine<T>(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    run: impl FnOnce(&mut SubscriptionContext<'_>) -> T,
) -> T {
    let session = cx.sessions.get(caller.session);
    let mut context = SubscriptionContext {
        engine: cx.engine,
        session: caller.session.into(),
        decisions: Arc::clone(&caller.decisions),
        now: cx.now,
        space: cx.shared.space(),
        limits: &cx.shared.config().limits,
        account: session.map_or(cx.shared.account(), |session| &session.account),
        responder: &mut cx.outbox,
    };
    run(&mut context)
}
