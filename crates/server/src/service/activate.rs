//! ActivateSession (Part 4 §5.7.3): verifies that the client is still the same, and the identity of the user.
//!
//! Three steps, of which the first two may run elsewhere: the [`Proof`] (signatures, decryption), the verifier's check
//! of the credential, and the activation itself. Other requests run with the user that the session had when they
//! arrived.

use super::Outcome;
use super::context::Context;
use super::deferred::{Asked, Asker, Checked, Kind, Purpose, Refused, deadline};
use super::identity::{Claim, TokenContext, claim};
use super::reply::Reply;
use super::request::Request;
use super::session::{endpoint, key_header, key_policy, nonce};
use crate::account::{Account, Category, HeapSize, heap_size};
use crate::audit::{AuditAction, AuditRecord};
use crate::config::{UserTokenConfig, UserTokenKind};
use crate::discovery::server_certificate;
use crate::effect::{Job, JobResult, SessionResult, SessionWork, Task};
use crate::error::Fault;
use crate::identity::{Accepted, Credential, User, Verdict, Verification};
use crate::ids::{ConnectionId, ReplyTo};
use crate::job_kind::JobKind;
use crate::session::continuation::Points;
use crate::session::lockout::{Attempt, Client, NotNow, Suspect};
use crate::session::proof::{OfferedKey, Proof, Proved, Proven, Refusal, SignatureProof};
use crate::session::table::TokenOwner;
use crate::session::{NONCE_LEN, Session, SessionKey, session_size};
use std::sync::Arc;
use taktwerk_channel::ephemeral;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy, SessionBinding};
use taktwerk_schema::{ActivateSessionRequest, ActivateSessionResponse, ResponseHeader, SignatureData};
use taktwerk_types::{Instant, StatusCode, UaString, UtcTime};

const CLAUSE: &str = "Part 4 §5.7.3";

/// An ActivateSession in progress.
#[derive(Debug)]
pub(crate) struct Activation {
    to: ReplyTo,
    key: SessionKey,
    connection: ConnectionId,
    channel_id: u32,
    /// The nonce that was signed. It can be used only once.
    server_nonce: [u8; NONCE_LEN],
    locale_ids: Vec<UaString>,
    claim: Claim,
    /// The trust list change count when the user's certificate was checked, or an earlier one.
    checked_at: u64,
    /// When the user's certificate expires.
    certificate_until: Option<UtcTime>,
    until: Instant,
    /// The client, for taking turns in the credential queue.
    client: Client,
    attempt: Option<Attempt>,
    next_key: Option<OfferedKey>,
    /// The audit record to complete at the end.
    note: Option<Box<AuditRecord>>,
}

heap_size!(Activation {
    locale_ids, claim, next_key, note;
    to, key, connection, channel_id, server_nonce, checked_at, certificate_until, until, client, attempt,
});

impl Activation {
    /// The client, for taking turns in the credential queue.
    pub(crate) fn client(&self) -> Client {
        self.client
    }

    /// Whether the user has logged on from there before.
    pub(crate) fn is_familiar(&self) -> bool {
        self.attempt.as_ref().is_some_and(Attempt::is_familiar)
    }

    /// The activation ends before the credential was checked.
    pub(crate) fn not_checked(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.not_checked();
        }
    }

    /// The audit record for a failure.
    pub(crate) fn note(&self) -> Option<Box<AuditRecord>> {
        self.note.clone()
    }
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
            return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, CLAUSE));
        }
    };
    let wanted: ActivateSessionRequest = request.decode()?;
    let shared = Arc::clone(cx.shared);
    let config = shared.config();
    let limits = &config.limits;
    let Some(session) = cx.sessions.get(key) else {
        return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, CLAUSE));
    };
    check_channel(cx, session)?;
    let server_nonce = session.server_nonce;
    let endpoint =
        endpoint(config, &cx.peer).ok_or(Fault::peer(StatusCode::BAD_SECURITY_POLICY_REJECTED, CLAUSE))?;
    let binding = SessionBinding {
        channel_thumbprint: cx.channel_thumbprint(),
        server_certificate: server_certificate(config, endpoint).unwrap_or_default().into(),
        client_certificate: session.client_certificate.clone().unwrap_or_default(),
        server_nonce: server_nonce.to_vec(),
        client_nonce: session.client_nonce.to_vec(),
    };
    let (claim, user) = claim(
        &TokenContext {
            config,
            endpoint,
            binding: &binding,
            ephemeral: session.ephemeral.as_ref(),
            now: cx.now.utc,
            address: cx.peer_address(),
        },
        &wanted,
    )?;
    let client = match cx.peer.policy {
        SecurityPolicy::None => None,
        _ if wanted.client_signature.signature.as_bytes().len() > limits.signature_len_max => {
            return Err(Fault::Crypto { status: StatusCode::BAD_APPLICATION_SIGNATURE_INVALID });
        }
        policy => Some(client_proof(policy, &binding, wanted.client_signature)?),
    };
    // A client may request another policy; otherwise it gets a new key of the same one.
    let next_key = match ephemeral::wanted(&wanted.request_header.additional_header) {
        Some(policy) => policy.and_then(|policy| key_policy(config, endpoint, policy)).ok(),
        None => session.ephemeral.as_ref().map(|(policy, _)| *policy),
    };
    let proof = Proof { client, user, next_key };
    let mut activation = Activation {
        to: cx.reply_to(request),
        key,
        connection: cx.peer.connection,
        channel_id: cx.peer.channel_id,
        server_nonce,
        locale_ids: wanted
            .locale_ids
            .into_iter()
            .filter(|id| id.as_str().len() <= limits.locale_id_len_max)
            .take(limits.locale_ids_max)
            .collect(),
        claim,
        checked_at: cx.shared.trust_list_changes(),
        certificate_until: None,
        until: deadline(cx.now.instant, request.header.timeout_hint, limits.deferred_timeout),
        client: asking(cx),
        attempt: None,
        note: cx.audit.notes_sessions().then(|| {
            let action = AuditAction::activation(&wanted.user_identity_token);
            Box::new(cx.audit_record(Some(key), request, StatusCode::GOOD, action))
        }),
        next_key: None,
    };
    // While locked out, secrets are not even decrypted.
    activation.begin_attempt(cx)?;
    if proof.is_empty() {
        return verify(cx, activation, Proven::Holds, reply);
    }
    let provider = Arc::clone(&config.provider);
    let charge = match cx.account(Some(key)).charge(Category::Requests, proof.size()) {
        Ok(charge) => charge,
        Err(exhausted) => {
            activation.record_result(None, cx.now.instant);
            return Err(exhausted.into());
        }
    };
    let kind = proof.kind();
    let job = Task::blocking(kind, move || {
        JobResult::Session(SessionResult(SessionWork::Proved(proof.run(&*provider))))
    });
    wait(cx, activation, job.charged(charge))
}

/// Whether the session may be activated over the request's channel (Part 4 §5.7.3.1).
fn check_channel(cx: &Context<'_>, session: &Session) -> Result<(), Fault> {
    let peer = &cx.peer;
    let is_same = session.connection == Some(peer.connection) && session.channel_id == peer.channel_id;
    if !is_same && !session.is_activated() {
        return Err(Fault::peer(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID, CLAUSE));
    }
    // A session can be transferred to another channel only with the same client, policy and mode.
    if session.policy != peer.policy
        || session.mode != peer.mode
        || session.client_certificate != peer.certificate
    {
        return Err(Fault::Crypto { status: StatusCode::BAD_SECURITY_CHECKS_FAILED });
    }
    // In mode Sign, an eavesdropper knows the authentication token, and an Anonymous user has no other proof.
    let is_readable = peer.mode == MessageSecurityMode::Sign;
    if !is_same && is_readable && session.user == Some(User::Anonymous) {
        return Err(Fault::peer(StatusCode::BAD_IDENTITY_CHANGE_NOT_SUPPORTED, CLAUSE));
    }
    Ok(())
}

fn client_proof(
    policy: SecurityPolicy,
    binding: &SessionBinding,
    signature: SignatureData,
) -> Result<SignatureProof, Fault> {
    if !names(&signature, policy) {
        return Err(Fault::Crypto { status: StatusCode::BAD_APPLICATION_SIGNATURE_INVALID });
    }
    let mut data = vec![binding.client_signature(policy)];
    data.extend(binding.client_signature_over_chain(policy));
    let certificate = Arc::clone(&binding.client_certificate);
    Ok(SignatureProof { policy, certificate, data, signature: signature.signature.as_bytes().to_vec() })
}

/// Whether a signature names the policy's algorithm. Several clients omit the name; the policy decides in any case.
pub(super) fn names(signature: &SignatureData, policy: SecurityPolicy) -> bool {
    let (named, uri) = (signature.algorithm.as_str(), policy.info().asymmetric_signature.uri());
    !signature.signature.as_bytes().is_empty() && (named.is_empty() || uri.is_empty() || named == uri)
}

fn wait(cx: &mut Context<'_>, activation: Activation, job: Task) -> Result<Outcome, Fault> {
    let asker = activation.asker(cx);
    if !cx.deferrals.has_capacity_for(asker, Purpose::Session, 1) {
        activation.record_result(None, cx.now.instant);
        return Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "effects_max"));
    }
    let account = Arc::clone(cx.account(Some(activation.key)));
    let asked = activation.asked(asker, &account);
    match cx.deferrals.wait(asked, Kind::Activate(Box::new(activation)), job) {
        Ok(()) => Ok(Outcome::Deferred),
        Err(refused) => Err(refused_by_account(cx, refused)),
    }
}

/// Queues the activation for a credential check that may block.
fn check(cx: &mut Context<'_>, activation: Activation, job: Task) -> Result<Outcome, Fault> {
    let account = Arc::clone(cx.account(Some(activation.key)));
    let asked = activation.asked(activation.asker(cx), &account);
    match cx.deferrals.check(asked, Box::new(activation), job) {
        Checked::Refused(refused) => Err(refused_by_account(cx, refused)),
        Checked::Waits => Ok(Outcome::Deferred),
        Checked::InsteadOf(other) => {
            tracing::debug!("too many password checks of one client are waiting");
            let status = StatusCode::BAD_SERVER_TOO_BUSY;
            if let Kind::Activate(other) = &other.kind {
                cx.audit_refused(other.note(), status);
            }
            if let Some(to) = other.reply_to {
                cx.outbox.fault_to(to, status);
            }
            Ok(Outcome::Deferred)
        }
        Checked::QueueFull(activation) => {
            activation.record_result(None, cx.now.instant);
            Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "credential_checks_waiting_max"))
        }
    }
}

/// An activation cannot wait, so its credential was not checked.
fn refused_by_account(cx: &Context<'_>, refused: Refused) -> Fault {
    if let Kind::Activate(activation) = refused.kind {
        activation.record_result(None, cx.now.instant);
    }
    refused.exhausted.into()
}

/// The client: the application if a certificate identifies it, otherwise the address.
fn asking(cx: &Context<'_>) -> Client {
    match &cx.peer.certificate {
        Some(certificate) => Client::Application(cx.shared.config().provider.thumbprint(certificate)),
        None => cx.peer_address().map_or(Client::Unknown, |address| Client::Address(address.into())),
    }
}

impl Activation {
    /// The asker for its effects.
    fn asker(&self, cx: &Context<'_>) -> Asker {
        let connection = self.connection;
        Asker { connection, origin: cx.address_of(connection).map(Into::into) }
    }

    fn asked<'a>(&self, asker: Asker, account: &'a Arc<Account>) -> Asked<'a> {
        let origin = asker.origin;
        Asked { reply_to: self.to, origin, session: Some(self.key), deadline: self.until, account }
    }

    fn begin_attempt(&mut self, cx: &Context<'_>) -> Result<(), Fault> {
        let Some(user) = self.claim.suspect() else { return Ok(()) };
        let suspect = Suspect::new(user, self.client);
        match Attempt::begin(cx.shared.lockout(), suspect, cx.now.instant) {
            Ok(attempt) => {
                self.attempt = Some(attempt);
                Ok(())
            }
            Err(NotNow::LockedOut) => {
                tracing::debug!("too many failures: locked out for a while");
                Err(refused(cx, &self.claim))
            }
            Err(NotNow::Busy) => Err(Fault::local(
                StatusCode::BAD_SERVER_TOO_BUSY,
                "other logins of this user and client are in progress",
            )),
        }
    }

    /// Records the result of the login attempt.
    pub(crate) fn record_result(mut self, success: Option<bool>, now: Instant) {
        if let Some(attempt) = self.attempt.take() {
            attempt.ended(success, now);
        }
    }
}

/// The proof has been checked.
pub(crate) fn proved(
    cx: &mut Context<'_>,
    mut activation: Activation,
    proof: Result<Proved, Refusal>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    match proof {
        Ok(Proved { proven, next_key }) => {
            activation.next_key = next_key;
            verify(cx, activation, proven, reply)
        }
        Err(Refusal::Client) => {
            activation.record_result(None, cx.now.instant);
            count_rejected(cx);
            Err(Fault::Crypto { status: StatusCode::BAD_APPLICATION_SIGNATURE_INVALID })
        }
        Err(Refusal::UserSignature) => {
            activation.record_result(Some(false), cx.now.instant);
            count_rejected(cx);
            Err(Fault::Crypto { status: StatusCode::BAD_USER_SIGNATURE_INVALID })
        }
        Err(Refusal::UserCertificate(status)) => {
            if let Claim::Certificate { chain, .. } = &activation.claim {
                cx.audit_user_certificate(activation.key, status, chain);
            }
            Err(refuse(cx, activation))
        }
        Err(Refusal::User) => Err(refuse(cx, activation)),
    }
}

/// Passes the credential to the application's verifier.
fn verify(
    cx: &mut Context<'_>,
    mut activation: Activation,
    proven: Proven,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let limit = cx.shared.config().limits.user_secret_len_max;
    let credential = match (&mut activation.claim, proven) {
        (Claim::Anonymous, _) => {
            let nobody =
                Admitted { user: User::Anonymous, until: None, credential: 0, must_change_password: false };
            return finish(cx, activation, nobody, reply).map(|()| Outcome::Answered);
        }
        (Claim::Password { user_name, plain }, proven) => {
            let password = match proven {
                Proven::Secret(secret) => Some(secret),
                _ => plain.take(),
            };
            password
                .filter(|password| password.expose().len() <= limit)
                .map(|password| Credential::Password { user_name: user_name.clone(), password })
        }
        (Claim::IssuedToken { plain }, proven) => {
            let token = match proven {
                Proven::Secret(secret) => Some(secret),
                _ => plain.take(),
            };
            token.map(|token| Credential::IssuedToken { token })
        }
        (
            Claim::Certificate { certificate, thumbprint, .. },
            Proven::Certificate { thumbprint: digits, until },
        ) => {
            activation.certificate_until = until;
            thumbprint.clone_from(&digits);
            Some(Credential::Certificate { certificate: Arc::clone(certificate), thumbprint: digits })
        }
        (Claim::Certificate { .. }, _) => None,
    };
    let Some(credential) = credential else { return Err(refuse(cx, activation)) };
    let Some(verifier) = cx.shared.config().verifier.clone() else { return Err(refuse(cx, activation)) };
    let wrap: fn(Verdict) -> JobResult =
        |verdict| JobResult::Session(SessionResult(SessionWork::Verified(verdict)));
    let job = match verifier.verify(credential) {
        Verification::Now(verdict) => {
            return verified(cx, activation, verdict, reply).map(|()| Outcome::Answered);
        }
        Verification::Blocking(run) => {
            let check_it = Task::new(JobKind::CheckCredential, Job::blocking(run, wrap));
            return check(cx, activation, check_it);
        }
        Verification::Later(future) => Job::future(future, wrap),
    };
    wait(cx, activation, Task::new(JobKind::CheckCredential, job))
}

/// The application's verifier has decided.
pub(crate) fn verified(
    cx: &mut Context<'_>,
    activation: Activation,
    verdict: Verdict,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    match verdict {
        Ok(accepted) => {
            let ends = [accepted.valid_until, activation.certificate_until];
            let until = ends.into_iter().flatten().min();
            if until.is_some_and(|until| until <= cx.now.utc) {
                tracing::debug!("the credential has expired");
                return Err(refuse(cx, activation));
            }
            let credential = accepted.credential;
            // Only passwords can be changed.
            let is_password = matches!(activation.claim, Claim::Password { .. });
            let must_change_password = accepted.must_change_password && is_password;
            let user = user(&activation.claim, accepted);
            finish(cx, activation, Admitted { user, until, credential, must_change_password }, reply)
        }
        Err(StatusCode::BAD_SERVER_TOO_BUSY) => {
            activation.record_result(None, cx.now.instant);
            Err(Fault::local(StatusCode::BAD_SERVER_TOO_BUSY, "the verifier is too busy"))
        }
        Err(status) => {
            tracing::debug!(%status, "the verifier refused");
            Err(refuse(cx, activation))
        }
    }
}

/// The work for an activation failed.
pub(crate) fn failed(cx: &Context<'_>, activation: Activation) -> Fault {
    activation.record_result(None, cx.now.instant);
    Fault::local(StatusCode::BAD_INTERNAL_ERROR, "the verifier failed")
}

fn user(claim: &Claim, accepted: Accepted) -> User {
    let Accepted { user_id, subject, issuer, roles, groups, .. } = accepted;
    match claim {
        Claim::Anonymous => User::Anonymous,
        Claim::Password { user_name, .. } => User::Named(user_id.unwrap_or_else(|| user_name.clone())),
        Claim::Certificate { thumbprint, .. } => User::Certificate {
            user_id: user_id.unwrap_or_else(|| thumbprint.clone()),
            thumbprint: thumbprint.clone(),
            subject,
            issuer,
        },
        Claim::IssuedToken { .. } => {
            User::Issued { user_id: user_id.unwrap_or_default(), roles: roles.into(), groups: groups.into() }
        }
    }
}

fn count_rejected(cx: &Context<'_>) {
    cx.shared.live().counters.security_rejected_session_count.up();
}

/// Refuses the user. The client does not learn why a credential is wrong: there is one status for each kind.
fn refuse(cx: &Context<'_>, activation: Activation) -> Fault {
    let fault = refused(cx, &activation.claim);
    activation.record_result(Some(false), cx.now.instant);
    fault
}

fn refused(cx: &Context<'_>, claim: &Claim) -> Fault {
    count_rejected(cx);
    let status = match claim {
        Claim::Certificate { .. } => StatusCode::BAD_IDENTITY_TOKEN_REJECTED,
        _ => StatusCode::BAD_USER_ACCESS_DENIED,
    };
    Fault::Crypto { status }
}

/// An accepted user.
struct Admitted {
    user: User,
    until: Option<UtcTime>,
    credential: u64,
    must_change_password: bool,
}

/// Binds the session to the channel and its user, and writes the response.
fn finish(
    cx: &mut Context<'_>,
    mut activation: Activation,
    admitted: Admitted,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    let Admitted { user, until, credential, must_change_password } = admitted;
    let fresh_nonce = nonce(cx.entropy);
    let now = cx.now.instant;
    if let Some(attempt) = activation.attempt.take() {
        attempt.ended(Some(true), now);
    }
    let Activation {
        key,
        connection,
        channel_id,
        server_nonce,
        locale_ids,
        claim,
        checked_at,
        next_key,
        note: activation_note,
        ..
    } = activation;
    let additional_header = key_header(next_key.as_ref(), None);
    let Some(session) = cx.sessions.get_mut(key) else {
        return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, CLAUSE));
    };
    if session.server_nonce != server_nonce {
        // Another activation was faster: its nonce is used up, and the session may be elsewhere.
        return Err(Fault::peer(StatusCode::BAD_NONCE_INVALID, CLAUSE));
    }
    let is_same_channel = session.connection == Some(connection) && session.channel_id == channel_id;
    let changes = session.user.as_ref().is_some_and(|before| !before.is_same_as(&user));
    // Anyone can be Anonymous: only a credential or a trusted certificate makes a client familiar.
    let is_credential = user != User::Anonymous || session.policy.is_secure();
    if changes && !is_same_channel {
        return Err(Fault::peer(StatusCode::BAD_IDENTITY_CHANGE_NOT_SUPPORTED, CLAUSE));
    }
    let chain = match claim {
        Claim::Certificate { chain, .. } => Some(chain),
        Claim::Anonymous | Claim::Password { .. } | Claim::IssuedToken { .. } => None,
    };
    session.charge.resize(session_size(&session.client_nonce, Some(&user), chain.as_ref()))?;
    if !locale_ids.is_empty() {
        session.entry.set_locale_ids(locale_ids)?;
    }
    if let Some(address) = cx.outbox.connections.get(connection.0).and_then(|it| it.account.parent()) {
        session.account.move_to(&address);
    }
    let is_first = session.user.replace(user).is_none();
    session.user_credential = credential;
    session.must_change_password = must_change_password;
    session.user_certificate = chain;
    let left_ms = |until: UtcTime| until.ticks().saturating_sub(cx.now.utc.ticks()) as f64 / 1e4;
    session.user_until = until.map_or(Instant::FAR, |until| now.plus_millis_f64(left_ms(until)));
    session.ephemeral = next_key.map(|offered| (offered.policy, offered.key));
    let old = session.connection.replace(connection);
    session.channel_id = channel_id;
    session.entry.set_connected(true);
    session.server_nonce = fresh_nonce;
    session.last_contact = now;
    let until = session.deadline();
    if changes {
        abandon_requests(cx, key);
    }
    if is_first {
        cx.sessions.activated(key);
        // The connection can no longer be evicted.
        cx.attached.push((connection, key, true));
    }
    if let Some(address) = cx.address_of(connection).filter(|_| is_credential) {
        cx.shared.admission().record_login(address, now);
    }
    cx.sessions.watch(key, until);
    let has_changed = checked_at != cx.shared.trust_list_changes();
    if has_changed {
        // The trust list has changed while the certificate was being checked.
        cx.check_user(key);
    }
    cx.authorize(key);
    cx.audit_activated(key, activation_note);
    if old != Some(connection) {
        cx.attached.push((connection, key, true));
        if let Some(old) = old {
            cx.attached.push((old, key, false));
            // Requests waiting on the old channel can no longer be answered there.
            cx.engine.refuse_requests(key.into(), StatusCode::BAD_SECURE_CHANNEL_CLOSED, &mut cx.outbox);
        }
    }
    // Part 4 §5.7.3.3.
    let service_result =
        if must_change_password { StatusCode::GOOD_PASSWORD_CHANGE_REQUIRED } else { StatusCode::GOOD };
    reply.send(|response_header| ActivateSessionResponse {
        response_header: ResponseHeader { additional_header, service_result, ..response_header },
        server_nonce: fresh_nonce.as_slice().into(),
        ..ActivateSessionResponse::default()
    });
    if has_changed {
        cx.end_if_unknown(key);
    }
    Ok(())
}

/// Abandons the requests of the previous user. Effects that cannot be stopped run to their end, but their results are
/// dropped: the new user must not receive what the old one requested (Part 2 §6, Part 4 §5.7.3.1).
fn abandon_requests(cx: &mut Context<'_>, key: SessionKey) {
    if let Some(session) = cx.sessions.get_mut(key) {
        session.points = Points::new(&session.account);
        session.history_points = None;
    }
    for deferred in cx.deferrals.cancel_operations(key) {
        if let Some(to) = deferred.reply_to {
            cx.outbox.fault_to(to, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT);
        }
    }
    for to in cx.turns.cancel(key, None) {
        cx.outbox.fault_to(to, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT);
    }
}

/// Handles a session that has expired. If its user's credential has expired and the client's endpoint offers Anonymous,
/// the session continues with the roles of Anonymous (Part 4 §7.40.5, §7.40.6). Returns whether it continues.
pub(crate) fn continue_as_anonymous(cx: &mut Context<'_>, key: SessionKey) -> bool {
    let now = cx.now.instant;
    let shared = Arc::clone(cx.shared);
    let Some(session) = cx.sessions.get_mut(key) else { return false };
    if session.user_until > now || session.silence_ends() <= now {
        return false;
    }
    let (policy, mode) = (session.policy, session.mode);
    let offered = shared.config().endpoints.iter().any(|endpoint| {
        let is_anonymous = |token: &UserTokenConfig| token.kind == UserTokenKind::Anonymous;
        endpoint.policy == policy && endpoint.mode == mode && endpoint.user_tokens.iter().any(is_anonymous)
    });
    if !offered {
        return false;
    }
    session.user = Some(User::Anonymous);
    session.must_change_password = false;
    session.user_certificate = None;
    session.user_until = Instant::FAR;
    let until = session.deadline();
    tracing::info!("the credential of a session's user has expired; the session continues as Anonymous");
    abandon_requests(cx, key);
    cx.sessions.watch(key, until);
    cx.authorize(key);
    true
}
