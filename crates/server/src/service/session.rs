//! CreateSession, CloseSession and Cancel (Part 4 §5.7). ActivateSession is in `activate`.

use super::Outcome;
use super::audit::session_creation;
use super::context::{Context, Peer};
use super::deferred::{Asked, Deferred, Kind, Purpose, deadline};
use super::gate::Caller;
use super::reply::Reply;
use super::request::Request;
use crate::account::{Category, Exhausted, HeapSize, Level, heap_size};
use crate::audit::AuditAction;
use crate::authorization::Decisions;
use crate::config::{EndpointConfig, ServerConfig, UserTokenKind};
use crate::diagnostics::session::SessionEntry;
use crate::discovery::{bounded_endpoints, server_certificate};
use crate::effect::{JobResult, SessionResult, SessionWork, Task};
use crate::error::Fault;
use crate::eviction::Kind as Evicted;
use crate::ids::ConnectionId;
use crate::job_kind::JobKind;
use crate::limits::Limits;
use crate::session::continuation::Points;
use crate::session::proof::{Introduced, Introduction, OfferedKey};
use crate::session::table::TokenOwner;
use crate::session::{NONCE_LEN, SECRET_LEN, Session, SessionKey, session_size};
use std::sync::Arc;
use taktwerk_channel::ephemeral;
use taktwerk_crypto::der::leaf;
use taktwerk_crypto::secret::uses_ephemeral_keys;
use taktwerk_crypto::{Entropy, SecurityPolicy, SessionBinding};
use taktwerk_schema::{
    ApplicationDescription, CancelRequest, CancelResponse, CloseSessionRequest, CloseSessionResponse,
    CreateSessionRequest, CreateSessionResponse, EphemeralKeyType, ResponseHeader, SignatureData,
};
use taktwerk_types::time::nanos_from_millis;
use taktwerk_types::{ByteString, ExtensionObject, Instant, StatusCode, UaString};

const CLAUSE_CREATE: &str = "Part 4 §5.7.2";

/// Length of client nonces, in bytes (Part 4 §5.7.2.2).
const CLIENT_NONCE_LEN: core::ops::RangeInclusive<usize> = 32..=128;

/// A CreateSession whose response is being signed. The session does not exist yet, so a client that disconnects now
/// leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Creation {
    peer: Peer,
    wanted: Wanted,
    server_nonce: [u8; NONCE_LEN],
    server_certificate: ByteString,
    /// The status in the response if the client requested a key for secrets that it cannot get.
    no_key: Option<StatusCode>,
}

heap_size!(Creation { wanted, server_certificate; peer, server_nonce, no_key });

/// The stored data of a CreateSession request.
#[derive(Debug)]
struct Wanted {
    client: ApplicationDescription,
    endpoint_url: UaString,
    session_name: Box<str>,
    client_nonce: Box<[u8]>,
    /// In ms.
    session_timeout: f64,
    max_response_message_size: u32,
}

heap_size!(Wanted {
    client, endpoint_url, session_name, client_nonce;
    session_timeout, max_response_message_size,
});

impl Wanted {
    /// Extracts the data from a request whose fields are within their limits.
    ///
    /// # Errors
    /// Bad_NonceInvalid, Bad_EncodingLimitsExceeded, Bad_CertificateInvalid.
    fn new(request: CreateSessionRequest, policy: SecurityPolicy, limits: &Limits) -> Result<Self, Fault> {
        let nonce = request.client_nonce.as_bytes();
        // Part 4 §5.7.2.1: without security, nonces may be omitted.
        if !(CLIENT_NONCE_LEN.contains(&nonce.len()) || (nonce.is_empty() && !policy.is_secure())) {
            return Err(Fault::peer(StatusCode::BAD_NONCE_INVALID, CLAUSE_CREATE));
        }
        if request.client_certificate.as_bytes().len() > limits.client_certificate_len_max {
            return Err(Fault::limit(StatusCode::BAD_CERTIFICATE_INVALID, "client_certificate_len_max"));
        }
        let client = trimmed(request.client_description);
        let ApplicationDescription {
            application_uri,
            product_uri,
            application_name,
            application_type: _,
            gateway_server_uri,
            discovery_profile_uri,
            discovery_urls,
        } = &client;
        let strings = [
            application_uri,
            product_uri,
            &application_name.locale,
            &application_name.text,
            gateway_server_uri,
            discovery_profile_uri,
            &request.endpoint_url,
            &request.server_uri,
        ];
        let is_long = |text: &UaString| text.as_str().len() > limits.client_string_len_max;
        if strings.into_iter().chain(discovery_urls).any(is_long) {
            return Err(Fault::limit(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED, "client_string_len_max"));
        }
        Ok(Self {
            client_nonce: nonce.into(),
            session_name: cut(request.session_name.as_str(), limits.session_name_len_max).into(),
            endpoint_url: request.endpoint_url,
            session_timeout: request.requested_session_timeout,
            max_response_message_size: request.max_response_message_size,
            client,
        })
    }
}

pub(crate) fn create(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let wanted: CreateSessionRequest = request.decode()?;
    let shared = Arc::clone(cx.shared);
    let (config, live) = (shared.config(), shared.live());
    let Some(endpoint) = endpoint(config, &cx.peer) else {
        live.counters.security_rejected_session_count.up();
        return Err(Fault::peer(StatusCode::BAD_SECURITY_POLICY_REJECTED, "Part 4 §5.5.1"));
    };
    let limits = &config.limits;
    let counters = &live.counters;
    let class = cx.holder(cx.peer.connection).class;
    let max = class.sessions_max(limits);
    if counters.current_session_count.value() as usize >= max
        && !shared.evictable().is_there(Evicted::Session, class, max)
    {
        counters.rejected_session_count.up();
        return Err(Fault::limit(StatusCode::BAD_TOO_MANY_SESSIONS, "sessions_max"));
    }
    if !cx.may_have_session(cx.peer.connection, limits.sessions_per_connection_max) {
        counters.rejected_session_count.up();
        return Err(Fault::limit(StatusCode::BAD_TOO_MANY_SESSIONS, "sessions_per_connection_max"));
    }
    let key = ephemeral::wanted(&wanted.request_header.additional_header)
        .map(|policy| policy.and_then(|policy| key_policy(config, endpoint, policy)));
    let named = wanted.client_certificate.clone();
    let creation = Creation {
        no_key: key.and_then(Result::err),
        peer: cx.peer.clone(),
        wanted: Wanted::new(wanted, cx.peer.policy, limits).inspect_err(|fault| match fault {
            Fault::Peer { .. } => live.counters.security_rejected_session_count.up(),
            _ => live.counters.rejected_session_count.up(),
        })?,
        server_nonce: nonce(cx.entropy),
        server_certificate: server_certificate(config, endpoint).into(),
    };
    if cx.peer.policy == SecurityPolicy::None {
        finish_creation(cx, creation, SignatureData::default(), None, reply)?;
        return Ok(Outcome::Answered);
    }
    let introduction =
        introduction(cx, &creation, named.as_bytes(), key.and_then(Result::ok)).inspect_err(|_| {
            live.counters.security_rejected_session_count.up();
        })?;
    if !cx.deferrals.has_capacity_for(cx.asker(), Purpose::Session, 1) {
        return Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "effects_max"));
    }
    let provider = Arc::clone(&config.provider);
    let account = Arc::clone(cx.account(None));
    // The work owns a copy of its data.
    let charge = account.charge(Category::Requests, creation.size())?;
    let kind = JobKind::SignSession { policy: introduction.policy, offers_key: introduction.key.is_some() };
    let job = Task::blocking(kind, move || {
        JobResult::Session(SessionResult(SessionWork::Introduced(introduction.run(&*provider))))
    });
    let deadline = deadline(cx.now.instant, request.header.timeout_hint, limits.deferred_timeout);
    let origin = cx.asker().origin;
    let asked = Asked { reply_to: cx.reply_to(request), origin, session: None, deadline, account: &account };
    let kind = Kind::Create(Box::new(creation));
    cx.deferrals.wait(asked, kind, job.charged(charge)).map_err(|refused| refused.exhausted)?;
    Ok(Outcome::Deferred)
}

/// Requirements on a request over a secured channel before anything is signed for it (Part 4 §5.7.2.2).
fn introduction(
    cx: &Context<'_>,
    creation: &Creation,
    named: &[u8],
    key: Option<SecurityPolicy>,
) -> Result<Introduction, Fault> {
    let Creation { peer, wanted, server_nonce, server_certificate, .. } = creation;
    let policy = peer.policy;
    // The channel's certificate is trusted and its key was used. With another certificate, the server would sign data
    // chosen by a third party.
    let certificate =
        peer.certificate.as_ref().filter(|known| !named.is_empty() && leaf(known) == leaf(named));
    let Some(certificate) = certificate else {
        return Err(Fault::Crypto { status: StatusCode::BAD_SECURITY_CHECKS_FAILED });
    };
    let own = cx.shared.config().provider.own_certificate(policy).unwrap_or_default();
    if leaf(own) == leaf(certificate) {
        // Only this server has the key, so this is its own signature, reflected.
        return Err(Fault::Crypto { status: StatusCode::BAD_SECURITY_CHECKS_FAILED });
    }
    let binding = SessionBinding {
        channel_thumbprint: cx.channel_thumbprint(),
        server_certificate: server_certificate.as_bytes().into(),
        client_certificate: Arc::clone(certificate),
        server_nonce: server_nonce.to_vec(),
        client_nonce: wanted.client_nonce.to_vec(),
    };
    Ok(Introduction {
        policy,
        application_uri: wanted.client.application_uri.as_str().into(),
        certificate: Arc::clone(certificate),
        data: binding.server_signature(policy),
        key,
    })
}

/// Whether a client can get a key of a policy. A user token of the endpoint must use it, and the channel must be
/// secured, because a key agreement does not authenticate the peer.
///
/// # Errors
/// Bad_SecurityPolicyRejected.
pub(crate) fn key_policy(
    config: &ServerConfig,
    endpoint: &EndpointConfig,
    policy: SecurityPolicy,
) -> Result<SecurityPolicy, StatusCode> {
    let is_used = endpoint.user_tokens.iter().any(|token| {
        token.kind != UserTokenKind::Anonymous && token.policy.unwrap_or(endpoint.policy) == policy
    });
    let is_good = endpoint.policy.is_secure()
        && is_used
        && uses_ephemeral_keys(policy)
        && config.provider.supports(policy);
    if is_good { Ok(policy) } else { Err(StatusCode::BAD_SECURITY_POLICY_REJECTED) }
}

/// The additional header of a response with a key.
pub(crate) fn key_header(key: Option<&OfferedKey>, no_key: Option<StatusCode>) -> ExtensionObject {
    match (key, no_key) {
        (Some(OfferedKey { policy, key, signature }), _) => {
            let key = EphemeralKeyType {
                public_key: key.public_key().into(),
                signature: signature.as_slice().into(),
            };
            ephemeral::offer(Some(*policy), Ok(key))
        }
        (None, Some(status)) => ephemeral::offer(None, Err(status)),
        (None, None) => ExtensionObject::NULL,
    }
}

/// Signing the response has succeeded or failed.
pub(crate) fn introduced(
    cx: &mut Context<'_>,
    creation: Creation,
    introduced: Result<Introduced, StatusCode>,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    let Introduced { signature, key } = introduced.map_err(|status| {
        cx.shared.live().counters.security_rejected_session_count.up();
        Fault::Crypto { status }
    })?;
    let algorithm = creation.peer.policy.info().asymmetric_signature.uri().into();
    let signature = SignatureData { algorithm, signature: signature.into() };
    finish_creation(cx, creation, signature, key, reply)
}

fn finish_creation(
    cx: &mut Context<'_>,
    creation: Creation,
    server_signature: SignatureData,
    key: Option<OfferedKey>,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    let Creation { peer, wanted, server_nonce, server_certificate, no_key } = creation;
    let additional_header = key_header(key.as_ref(), no_key);
    let shared = Arc::clone(cx.shared);
    let (config, live) = (shared.config(), shared.live());
    let limits = &config.limits;
    if !cx.may_have_session(peer.connection, limits.sessions_per_connection_max) {
        live.counters.rejected_session_count.up();
        return Err(Fault::limit(StatusCode::BAD_TOO_MANY_SESSIONS, "sessions_per_connection_max"));
    }
    let timeout = revised_timeout(wanted.session_timeout, limits);
    let number = live.next_session();
    let name = unique_name(&wanted.session_name, number, |name| live.session_name_taken(name));
    let address = cx.account(None).parent().unwrap_or_else(|| Arc::clone(shared.account()));
    let account = address.child(Level::Session, limits.bytes_per_session_max);
    let full = |exhausted: Exhausted| {
        live.counters.rejected_session_count.up();
        Fault::from(exhausted)
    };
    let charge =
        account.charge(Category::Sessions, session_size(&wanted.client_nonce, None, None)).map_err(full)?;
    let entry = SessionEntry::new(
        number,
        name,
        wanted.client,
        wanted.endpoint_url.clone(),
        timeout,
        wanted.max_response_message_size,
        cx.now.utc,
        &account,
    );
    let entry = Arc::new(entry.map_err(full)?);
    let created = cx
        .audit
        .notes_sessions()
        .then(|| session_creation(&*config.provider, peer.certificate.as_ref(), timeout));
    let holder = cx.holder(peer.connection);
    let max = holder.class.sessions_max(limits);
    if !live.counters.current_session_count.up_to(max) {
        // Part 4 §5.7.2.1: a session that was never activated is closed.
        let Some(victim) = shared.evictable().evict(Evicted::Session, holder.class, cx.sessions.shard(), max)
        else {
            live.counters.rejected_session_count.up();
            return Err(Fault::limit(StatusCode::BAD_TOO_MANY_SESSIONS, "sessions_max"));
        };
        if victim.shard == cx.sessions.shard() {
            cx.evict_session(victim.into());
        } else {
            cx.transfers.evict(victim, Evicted::Session);
        }
        live.counters.current_session_count.up();
    }
    live.counters.cumulated_session_count.up();
    live.add_session(Arc::clone(&entry));
    let mut secret = [0; SECRET_LEN];
    cx.entropy.fill(&mut secret);
    let session = Session {
        charge,
        looked_at: Instant::FAR,
        points: Points::new(&account),
        history_points: None,
        account: Arc::clone(&account),
        entry: Arc::clone(&entry),
        secret,
        server_nonce,
        connection: Some(peer.connection),
        channel_id: peer.channel_id,
        policy: peer.policy,
        mode: peer.mode,
        client_certificate: peer.certificate,
        client_nonce: wanted.client_nonce,
        ephemeral: key.map(|offered| (offered.policy, offered.key)),
        user: None,
        user_certificate: None,
        user_credential: 0,
        must_change_password: false,
        user_until: Instant::FAR,
        decisions: Arc::new(Decisions::nothing()),
        timeout_ns: nanos_from_millis(timeout),
        last_contact: cx.now.instant,
        max_response_len: wanted.max_response_message_size,
    };
    let activate_until = cx.now.instant.plus_millis_f64(limits.session_activation_timeout.min(timeout));
    let key = cx.sessions.insert(session, holder, activate_until);
    cx.engine.open_session(key.into(), &account);
    cx.attached.push((peer.connection, key, true));
    if let Some(created) = created {
        cx.audit_session(key, StatusCode::GOOD, created);
    }
    let token = cx.sessions.token(key);
    // Clients compare this list with the one from discovery.
    let (server_endpoints, _) = bounded_endpoints(config, wanted.endpoint_url.as_str());
    reply.send(|response_header| CreateSessionResponse {
        response_header: ResponseHeader { additional_header, ..response_header },
        session_id: entry.id(),
        authentication_token: token,
        revised_session_timeout: timeout,
        server_nonce: server_nonce.as_slice().into(),
        server_certificate,
        server_endpoints,
        server_signature,
        max_request_message_size: config.channel.message_size_max,
        ..CreateSessionResponse::default()
    });
    Ok(())
}

/// The fields of a client's description that diagnostics show, without lists of arbitrary length.
fn trimmed(client: ApplicationDescription) -> ApplicationDescription {
    ApplicationDescription { discovery_urls: client.discovery_urls.into_iter().take(4).collect(), ..client }
}

/// The session timeout in ms (Part 4 §5.7.2.2); a client that requests none gets the longest.
fn revised_timeout(requested: f64, limits: &crate::limits::Limits) -> f64 {
    if requested.is_finite() && requested > 0.0 {
        requested.clamp(limits.session_timeout_min, limits.session_timeout_max)
    } else {
        limits.session_timeout_max
    }
}

/// A unique session name: it is the name of the session's diagnostics object.
fn unique_name(wanted: &str, number: u32, taken: impl Fn(&str) -> bool) -> Box<str> {
    if wanted.is_empty() {
        return format!("Session {number}").into();
    }
    if taken(wanted) { format!("{wanted} ({number})").into() } else { wanted.into() }
}

/// The start of a text, cut at a character boundary.
fn cut(text: &str, len_max: usize) -> &str {
    let mut end = text.len().min(len_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}

pub(crate) fn nonce(entropy: &mut dyn Entropy) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    entropy.fill(&mut nonce);
    nonce
}

/// The endpoint of the connection's channel.
pub(crate) fn endpoint<'a>(config: &'a ServerConfig, peer: &Peer) -> Option<&'a EndpointConfig> {
    let (policy, mode) = (peer.policy, peer.mode);
    config.endpoints.iter().find(|endpoint| endpoint.policy == policy && endpoint.mode == mode)
}

pub(crate) fn close(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let wanted: CloseSessionRequest = request.decode()?;
    cx.close_session(caller.session, wanted.delete_subscriptions, None);
    reply.send(|response_header| CloseSessionResponse { response_header });
    Ok(Outcome::Answered)
}

pub(crate) fn cancel(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let key = caller.session;
    let wanted: CancelRequest = request.decode()?;
    let mut cancel_count = cx.engine.cancel(key.into(), wanted.request_handle, &mut cx.outbox);
    let handle = wanted.request_handle;
    for deferred in cx.deferrals.cancel(key, Some(handle)) {
        cancel_count += 1;
        if let Some(to) = deferred.reply_to {
            cx.outbox.fault_to(to, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT);
        }
    }
    // Postponed requests, and those queued behind them.
    let mut left = cx.turns.cancel(key, Some(handle));
    let (limits, sessions) = (cx.shared.config().limits.decode(), &cx.sessions);
    left.extend(cx.turns.cancel_waiting(cx.peer.connection, limits, |request| {
        request.header.handle == handle && sessions.owner(request.header.token) == TokenOwner::Here(key)
    }));
    for to in left {
        cancel_count += 1;
        cx.outbox.fault_to(to, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT);
    }
    reply.send(|response_header| CancelResponse { response_header, cancel_count });
    Ok(Outcome::Answered)
}

impl Context<'_> {
    /// Ends a session that was never activated, to free resources. A login in progress does not count as failed: its
    /// credential remains unchecked.
    pub(crate) fn evict_session(&mut self, key: SessionKey) {
        for deferred in self.deferrals.cancel(key, None) {
            self.interrupted(deferred);
        }
        self.close_session(key, true, None);
    }

    /// A request is not answered because its session or connection is evicted.
    pub(crate) fn interrupted(&mut self, deferred: Deferred) {
        let status = StatusCode::BAD_SERVER_TOO_BUSY;
        if let Kind::Activate(activation) = deferred.kind {
            self.audit_refused(activation.note(), status);
            activation.record_result(None, self.now.instant);
        }
        if let Some(to) = deferred.reply_to {
            self.outbox.fault_to(to, status);
        }
    }

    /// Ends a session: answers waiting requests, deletes or keeps its subscriptions, and frees all its data.
    /// `connection` is the one whose list of sessions is being processed, if any.
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
        for to in self.turns.cancel(key, None) {
            self.outbox.fault_to(to, StatusCode::BAD_SESSION_CLOSED);
        }
        if let (false, Some(owner)) = (delete_subscriptions, session.owner()) {
            let left = self.engine.session_subscriptions(key.into()).map(|subscription| subscription.id);
            let address = session.account.parent().unwrap_or_else(|| Arc::clone(self.shared.account()));
            self.sessions.keep_owner(left, &owner, &address);
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
        assert_eq!(&*unique_name("", 7, |_| false), "Session 7");
        assert_eq!(&*unique_name("a", 7, |name| name == "a"), "a (7)");
        assert_eq!(&*unique_name(cut("aé", 2), 7, |_| false), "a");
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
