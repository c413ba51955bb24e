//! CreateSession, ActivateSession, CloseSession and Cancel (Part 4 §5.7).

use super::Outcome;
use super::context::Context;
use super::discovery::endpoints;
use super::reply::Reply;
use super::request::Request;
use crate::audit::AuditAction;
use crate::authorization::Decisions;
use crate::config::{Authentication, EndpointConfig, UserTokenKind};
use crate::diagnostics::session::SessionEntry;
use crate::error::Fault;
use crate::session::continuation::Continuations;
use crate::session::table::TokenOwner;
use crate::session::{NONCE_LEN, SECRET_LEN, Session, SessionKey, User};
use crate::shard::ConnectionId;
use crate::shard::deferred::{Kind, deadline};
use crate::shard::effect::{Job, JobResult};
use std::sync::Arc;
use taktwerk_crypto::{Entropy, SecurityPolicy};
use taktwerk_schema::{
    ActivateSessionRequest, ActivateSessionResponse, AnonymousIdentityToken, ApplicationDescription,
    CancelRequest, CancelResponse, CloseSessionRequest, CloseSessionResponse, CreateSessionRequest,
    CreateSessionResponse, UserNameIdentityToken,
};
use taktwerk_types::time::nanos_from_millis;
use taktwerk_types::{ExtensionObject, StatusCode, UaString};

const CLAUSE_CREATE: &str = "Part 4 §5.7.2";
const CLAUSE_ACTIVATE: &str = "Part 4 §5.7.3";

/// An ActivateSession whose user is being checked.
#[derive(Debug)]
pub(crate) struct Activation {
    user: User,
    connection: ConnectionId,
    channel_id: u32,
    locale_ids: Vec<UaString>,
}

pub(crate) fn create(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let wanted: CreateSessionRequest = request.decode()?;
    let shared = Arc::clone(cx.shared);
    let (config, live) = (shared.config(), shared.live());
    let limits = &config.limits;
    if endpoint(cx).is_none() {
        live.counters.security_rejected_session_count.up();
        return Err(Fault::peer(StatusCode::BAD_SECURITY_POLICY_REJECTED, "Part 4 §5.5.1"));
    }
    if cx.peer.policy != SecurityPolicy::None {
        let nonce = wanted.client_nonce.as_bytes();
        if !(32..=128).contains(&nonce.len()) {
            return Err(Fault::peer(StatusCode::BAD_NONCE_INVALID, CLAUSE_CREATE));
        }
        // Signatures come with the policies; a secured channel must not get a session without them.
        return Err(Fault::local(StatusCode::BAD_NOT_SUPPORTED, "no session signatures yet"));
    }
    if !cx.may_have_session(limits.sessions_per_connection_max) {
        live.counters.rejected_session_count.up();
        return Err(Fault::limit(StatusCode::BAD_TOO_MANY_SESSIONS, "sessions_per_connection_max"));
    }
    if !live.counters.current_session_count.up_to(limits.sessions_max) {
        // Part 4 §5.7.2.1: the oldest session that was never activated gives way.
        match cx.sessions.oldest_unactivated() {
            Some(oldest) => cx.close_session(oldest, true, None),
            None => {
                live.counters.rejected_session_count.up();
                return Err(Fault::limit(StatusCode::BAD_TOO_MANY_SESSIONS, "sessions_max"));
            }
        }
        live.counters.current_session_count.up();
    }
    live.counters.cumulated_session_count.up();
    let timeout = revised_timeout(wanted.requested_session_timeout, limits);
    let number = live.next_session();
    let name = unique_name(wanted.session_name.as_str(), number, limits.session_name_len_max, |name| {
        live.session_name_taken(name)
    });
    let entry = Arc::new(SessionEntry::new(
        number,
        name,
        trimmed(wanted.client_description),
        wanted.endpoint_url.clone(),
        timeout,
        wanted.max_response_message_size,
        cx.now.utc,
    ));
    live.add_session(Arc::clone(&entry));
    let mut secret = [0; SECRET_LEN];
    cx.entropy.fill(&mut secret);
    let server_nonce = nonce(cx.entropy);
    let session = Session {
        entry: Arc::clone(&entry),
        secret,
        server_nonce,
        connection: Some(cx.peer.connection),
        channel_id: cx.peer.channel_id,
        policy: cx.peer.policy,
        mode: cx.peer.mode,
        client_certificate: cx.peer.certificate.clone(),
        user: None,
        decisions: Arc::new(Decisions::nothing()),
        timeout_ns: nanos_from_millis(timeout),
        last_contact: cx.now.instant,
        max_response_len: wanted.max_response_message_size,
        continuations: Continuations::default(),
    };
    let activate_until = cx.now.instant.plus_millis_f64(limits.session_activation_timeout.min(timeout));
    let key = cx.sessions.insert(session, activate_until);
    cx.attached.push((cx.peer.connection, key, true));
    let token = cx.sessions.token(key);
    let server_endpoints = endpoints(config, wanted.endpoint_url.as_str());
    reply.send(|response_header| CreateSessionResponse {
        response_header,
        session_id: entry.id(),
        authentication_token: token,
        revised_session_timeout: timeout,
        server_nonce: server_nonce.as_slice().into(),
        server_certificate: taktwerk_types::ByteString::from(config.provider.own_certificate(cx.peer.policy)),
        server_endpoints,
        max_request_message_size: config.channel.message_size_max,
        ..CreateSessionResponse::default()
    });
    Ok(Outcome::Answered)
}

/// Keeps of a client's description what diagnostics show, without lists of any length.
fn trimmed(client: ApplicationDescription) -> ApplicationDescription {
    ApplicationDescription { discovery_urls: client.discovery_urls.into_iter().take(4).collect(), ..client }
}

/// The session timeout, ms (Part 4 §5.7.2.2); a client without a wish gets the longest.
fn revised_timeout(requested: f64, limits: &crate::limits::Limits) -> f64 {
    if requested.is_finite() && requested > 0.0 {
        requested.clamp(limits.session_timeout_min, limits.session_timeout_max)
    } else {
        limits.session_timeout_max
    }
}

/// A name that no other session has: it names the session's diagnostics object.
fn unique_name(wanted: &str, number: u32, len_max: usize, taken: impl Fn(&str) -> bool) -> Box<str> {
    if wanted.is_empty() {
        return format!("Session {number}").into();
    }
    let mut end = wanted.len().min(len_max);
    while !wanted.is_char_boundary(end) {
        end -= 1;
    }
    let name = wanted.get(..end).unwrap_or("");
    if taken(name) { format!("{name} ({number})").into() } else { name.into() }
}

fn nonce(entropy: &mut dyn Entropy) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    entropy.fill(&mut nonce);
    nonce
}

/// The endpoint that the connection's channel belongs to.
fn endpoint<'a>(cx: &'a Context<'_>) -> Option<&'a EndpointConfig> {
    let (policy, mode) = (cx.peer.policy, cx.peer.mode);
    cx.shared.config().endpoints.iter().find(|endpoint| endpoint.policy == policy && endpoint.mode == mode)
}

pub(crate) fn activate(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let key = match cx.sessions.owner(request.header.token) {
        TokenOwner::Here(key) => key,
        TokenOwner::Shard(shard) if shard < cx.shared.shards() => return Ok(Outcome::Move(shard)),
        TokenOwner::Shard(_) | TokenOwner::Nobody => {
            return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, CLAUSE_ACTIVATE));
        }
    };
    let wanted: ActivateSessionRequest = request.decode()?;
    let limits = &cx.shared.config().limits;
    let session = cx.sessions.get(key);
    let Some(session) = session else {
        return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, CLAUSE_ACTIVATE));
    };
    let same_channel =
        session.connection == Some(cx.peer.connection) && session.channel_id == cx.peer.channel_id;
    if !same_channel && !session.is_activated() {
        return Err(Fault::peer(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID, CLAUSE_ACTIVATE));
    }
    // A session moves to another channel only with the same client, policy and mode.
    if session.policy != cx.peer.policy
        || session.mode != cx.peer.mode
        || session.client_certificate != cx.peer.certificate
    {
        return Err(Fault::Crypto { status: StatusCode::BAD_SECURITY_CHECKS_FAILED });
    }
    let previous = session.user.clone();
    let (user, check) = identify(cx, &wanted.user_identity_token)?;
    if !same_channel && previous.is_some_and(|previous| previous != user) {
        return Err(Fault::peer(StatusCode::BAD_IDENTITY_CHANGE_NOT_SUPPORTED, CLAUSE_ACTIVATE));
    }
    let activation = Activation {
        user,
        connection: cx.peer.connection,
        channel_id: cx.peer.channel_id,
        locale_ids: wanted.locale_ids.into_iter().take(limits.locale_ids_max).collect(),
    };
    let wrap: fn(Result<(), StatusCode>) -> JobResult = JobResult::Authenticated;
    let job = match check {
        None => {
            finish_activation(cx, key, activation, reply)?;
            return Ok(Outcome::Answered);
        }
        Some(Authentication::Now(Ok(()))) => {
            finish_activation(cx, key, activation, reply)?;
            return Ok(Outcome::Answered);
        }
        Some(Authentication::Now(Err(status))) => return Err(refused(cx, status)),
        Some(Authentication::Blocking(run)) => Job::blocking(run, wrap),
        Some(Authentication::Later(future)) => Job::future(future, wrap),
    };
    if !cx.deferrals.has_room_for(cx.peer.connection, 1) {
        return Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "effects_max"));
    }
    let until = deadline(cx.now.instant, request.header.timeout_hint, limits.deferred_timeout);
    let to = cx.reply_to(request);
    cx.deferrals.wait(Some(to), Some(key), until, Kind::Activate(activation), job);
    Ok(Outcome::Deferred)
}

/// Counts a refused user and says so; only the reasons that a client may know pass.
pub(crate) fn refused(cx: &Context<'_>, status: StatusCode) -> Fault {
    cx.shared.live().counters.security_rejected_session_count.up();
    let told = match status {
        StatusCode::BAD_IDENTITY_TOKEN_INVALID
        | StatusCode::BAD_SERVER_TOO_BUSY
        | StatusCode::BAD_USER_ACCESS_DENIED => status,
        _ => StatusCode::BAD_IDENTITY_TOKEN_REJECTED,
    };
    Fault::Crypto { status: told }
}

/// Binds the session to the channel and its user, and answers.
pub(crate) fn finish_activation(
    cx: &mut Context<'_>,
    key: SessionKey,
    activation: Activation,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    let server_nonce = nonce(cx.entropy);
    let now = cx.now.instant;
    let Some(session) = cx.sessions.get_mut(key) else {
        return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, CLAUSE_ACTIVATE));
    };
    let Activation { user, connection, channel_id, locale_ids } = activation;
    let old = session.connection.replace(connection);
    session.channel_id = channel_id;
    if session.user.replace(user.clone()).is_some_and(|before| before != user) {
        // What another user has begun is not to be gone on with.
        session.continuations = Continuations::default();
    }
    session.server_nonce = server_nonce;
    session.last_contact = now;
    if !locale_ids.is_empty() {
        session.entry.set_locale_ids(locale_ids);
    }
    let until = session.deadline();
    cx.sessions.watch(key, until);
    cx.authorize(key);
    if old != Some(connection) {
        cx.attached.push((connection, key, true));
        if let Some(old) = old {
            cx.attached.push((old, key, false));
            // What waits there can no longer be answered there.
            cx.engine.refuse_requests(key.into(), StatusCode::BAD_SECURE_CHANNEL_CLOSED, &mut cx.outbox);
        }
    }
    reply.send(|response_header| ActivateSessionResponse {
        response_header,
        server_nonce: server_nonce.as_slice().into(),
        ..ActivateSessionResponse::default()
    });
    Ok(())
}

/// Who a token says the client is, and what remains to be checked (Part 4 §7.40).
fn identify(cx: &Context<'_>, token: &ExtensionObject) -> Result<(User, Option<Authentication>), Fault> {
    let invalid = Fault::peer(StatusCode::BAD_IDENTITY_TOKEN_INVALID, "Part 4 §7.40");
    let rejected = Fault::peer(StatusCode::BAD_IDENTITY_TOKEN_REJECTED, "Part 4 §7.40");
    let endpoint = endpoint(cx).ok_or(rejected)?;
    let offers = |kind: UserTokenKind, policy_id: &str| {
        endpoint.user_tokens.iter().find(|offered| {
            // Anonymous clients often leave the policy's name out; there is nothing to get wrong.
            let named = offered.policy_id == policy_id;
            offered.kind == kind && (named || (kind == UserTokenKind::Anonymous && policy_id.is_empty()))
        })
    };
    if token.type_id.is_null() || token.is::<AnonymousIdentityToken>() {
        let policy_id =
            token.decode::<AnonymousIdentityToken>().map(|token| token.policy_id).unwrap_or_default();
        offers(UserTokenKind::Anonymous, policy_id.as_str()).ok_or(rejected)?;
        return Ok((User::Anonymous, None));
    }
    if !token.is::<UserNameIdentityToken>() {
        return Err(invalid);
    }
    let token: UserNameIdentityToken = token.decode().map_err(|_| invalid)?;
    let offered = offers(UserTokenKind::UserName, token.policy_id.as_str()).ok_or(invalid)?;
    let limit = cx.shared.config().limits.user_secret_len_max;
    let (name, password) = (token.user_name.as_str(), token.password.as_bytes());
    if name.is_empty() || name.len() > limit || password.len() > limit {
        return Err(invalid);
    }
    if offered.policy.unwrap_or(cx.peer.policy) != SecurityPolicy::None {
        // Encrypted secrets come with the policies.
        return Err(rejected);
    }
    if !token.encryption_algorithm.is_empty() || core::str::from_utf8(password).is_err() {
        return Err(invalid);
    }
    let authenticator = cx.shared.config().authenticator.as_ref().ok_or(rejected)?;
    Ok((User::Named(name.into()), Some(authenticator.authenticate(name, password))))
}

pub(crate) fn close(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    // A session that was not activated can be closed too (Part 4 §5.7.4.1).
    let (key, _) = cx.any_session(request)?;
    let wanted: CloseSessionRequest = request.decode()?;
    cx.close_session(key, wanted.delete_subscriptions, None);
    reply.send(|response_header| CloseSessionResponse { response_header });
    Ok(Outcome::Answered)
}

pub(crate) fn cancel(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let (key, _) = cx.session(request)?;
    let wanted: CancelRequest = request.decode()?;
    let mut cancel_count = cx.engine.cancel(key.into(), wanted.request_handle, &mut cx.outbox);
    for deferred in cx.deferrals.cancel(key, Some(wanted.request_handle)) {
        cancel_count += 1;
        if let Some(to) = deferred.reply_to {
            cx.outbox.fault_to(to, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT);
        }
    }
    reply.send(|response_header| CancelResponse { response_header, cancel_count });
    Ok(Outcome::Answered)
}

impl Context<'_> {
    /// Ends a session: what waits is answered, subscriptions go or stay, and nothing is kept. `connection` is the one
    /// whose list of sessions is being worked on, if any.
    pub(crate) fn close_session(
        &mut self,
        key: SessionKey,
        delete_subscriptions: bool,
        connection: Option<ConnectionId>,
    ) {
        self.audit_session(key, StatusCode::GOOD, AuditAction::CloseSession);
        let Some(session) = self.sessions.remove(key) else { return };
        for deferred in self.deferrals.cancel(key, None) {
            if let Some(to) = deferred.reply_to {
                self.outbox.fault_to(to, StatusCode::BAD_SESSION_CLOSED);
            }
        }
        if let (false, Some(user)) = (delete_subscriptions, &session.user) {
            let left = self.engine.session_subscriptions(key.into()).map(|subscription| subscription.id);
            self.sessions.leave_behind(left, user);
            let engine = &*self.engine;
            self.sessions.tidy(engine.subscription_count(), |id| engine.find_any(id).is_some());
        }
        self.engine.close_session(key.into(), delete_subscriptions, &mut self.outbox);
        if let Some(connection) = session.connection.filter(|at| Some(*at) != connection) {
            self.attached.push((connection, key, false));
        }
        let live = self.shared.live();
        live.remove_session(session.entry.number);
        live.counters.current_session_count.down();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_unique_and_cut_at_characters() {
        assert_eq!(&*unique_name("", 7, 10, |_| false), "Session 7");
        assert_eq!(&*unique_name("a", 7, 10, |name| name == "a"), "a (7)");
        assert_eq!(&*unique_name("aé", 7, 2, |_| false), "a");
    }

    #[test]
    fn timeouts_are_revised() {
        let limits = crate::limits::Limits::default();
        assert_eq!(revised_timeout(f64::NAN, &limits), limits.session_timeout_max);
        assert_eq!(revised_timeout(0.0, &limits), limits.session_timeout_max);
        assert_eq!(revised_timeout(1.0, &limits), limits.session_timeout_min);
        assert_eq!(revised_timeout(60_000.0, &limits), 60_000.0);
    }
}
