//! Logged-on browsers and their OPC UA clients.
//!
//! A visitor has a cookie and an OPC UA session with the visitor's identity. Anonymous visitors share one session. The
//! server checks all permissions. Only pages about the machine (certificates and the log) require the role
//! SecurityAdmin or ConfigureAdmin here, checked for each request.

use crate::reach;
use crate::streams::Streams;
use crate::subject::Subject;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use taktwerk::client::Error;
use taktwerk::{Client, NodeId};
use taktwerk_client::ReconnectPolicy;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ids::variable_ids;
use taktwerk_server::ServerShared;
use taktwerk_server::authorization::role::well_known;
use taktwerk_server::diagnostics::SessionRights;
use taktwerk_types::hexadecimal;
use tokio::sync::{Mutex as AsyncMutex, watch};

/// Maximum number of logged-on visitors.
const VISITORS_MAX: usize = 64;
/// Maximum number of logged-on visitors with the same user.
const OF_USER_MAX: usize = 8;
/// Idle time after which a visitor is logged off.
const IDLE: Duration = Duration::from_secs(30 * 60);

const SERVER_STATE: NodeId = NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS_STATE);

/// A browser with a session.
#[derive(Debug)]
pub(crate) struct Visitor {
    /// The user name; `None` for anonymous visitors.
    pub(crate) user: Option<String>,
    /// The token that requests with side effects must contain.
    pub(crate) csrf: String,
    /// The session on the server.
    pub(crate) client: Client,
    /// Security mode of the session.
    pub(crate) mode: MessageSecurityMode,
    /// The server, which tells the current rights of the session.
    server: Arc<ServerShared>,
    /// The open streams.
    pub(crate) streams: Arc<Streams>,
    /// Set when the visitor is logged off. Streams end then.
    ended: watch::Sender<bool>,
    seen: Mutex<Instant>,
}

impl Visitor {
    /// Whether the visitor may see and change certificates and the log.
    pub(crate) async fn is_administrator(&self) -> bool {
        self.user.is_some() && self.rights().await.is_some_and(|rights| is_administrator(&rights))
    }

    /// Whether the visitor may trust application certificates.
    pub(crate) async fn may_trust(&self) -> bool {
        self.user.is_some() && self.rights().await.is_some_and(|rights| may_trust(&rights))
    }

    /// The current rights of the visitor's session. `None` if the server does not answer, has closed the session, or
    /// allows only changing the password.
    pub(crate) async fn rights(&self) -> Option<SessionRights> {
        // The server applies changed permissions when a request arrives. The value is not used.
        self.client.read(SERVER_STATE).await.ok()?;
        self.session_rights().filter(|rights| !rights.must_change_password)
    }

    fn session_rights(&self) -> Option<SessionRights> {
        self.server.session_rights(&self.client.session_info().session_id)
    }

    /// The names of roles.
    pub(crate) fn names(&self, rights: &SessionRights) -> Vec<String> {
        let authorization = self.server.authorization();
        let granted = authorization.roles.iter().filter(|role| rights.roles.contains(&role.id));
        granted.map(|role| role.name.clone()).collect()
    }

    /// Notifies when the visitor is logged off.
    pub(crate) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    fn touch(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Sort key: longest idle first. Visitors with an open stream count as active.
    fn idle_rank(&self) -> (bool, Instant) {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.client.has_ended() && !self.streams.is_empty(), seen)
    }

    fn is_idle(&self, now: Instant) -> bool {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.client.has_ended() || (self.streams.is_empty() && now.saturating_duration_since(seen) > IDLE)
    }
}

fn has_any(rights: &SessionRights, wanted: &[u32]) -> bool {
    rights.roles.iter().any(|role| role.ns0().is_some_and(|role| wanted.contains(&role)))
}

/// Whether a session may see and change certificates and the log.
pub(crate) fn is_administrator(rights: &SessionRights) -> bool {
    has_any(rights, &[well_known::SECURITY_ADMIN, well_known::CONFIGURE_ADMIN])
}

/// Whether a session may trust application certificates.
pub(crate) fn may_trust(rights: &SessionRights) -> bool {
    has_any(rights, &[well_known::SECURITY_ADMIN])
}

/// All visitors.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    by_cookie: Mutex<BTreeMap<String, Arc<Visitor>>>,
    /// The session that all anonymous visitors share.
    anonymous: AsyncMutex<Option<Arc<Visitor>>>,
}

/// Why a login is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The server refuses the login or does not answer.
    #[error("{0}")]
    Server(#[from] Error),
    /// The user may only change the password, which the dashboard cannot do.
    #[error(
        "this password has to be changed first: use `taktwerk user passwd`, or a client that calls ChangePassword"
    )]
    MustChangePassword,
    /// No random numbers are available.
    #[error("the operating system provides no random numbers")]
    Entropy,
}

impl Visitors {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Visitor>>> {
        self.by_cookie.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The visitor with this cookie. Visitors that the server no longer accepts are logged off.
    pub(crate) fn find(&self, cookie: &str) -> Option<Arc<Visitor>> {
        let visitor = self.lock().get(cookie).cloned()?;
        if visitor.client.has_ended() {
            self.log_off(cookie);
            return None;
        }
        visitor.touch();
        Some(visitor)
    }

    /// The session of anonymous visitors.
    pub(crate) async fn anonymous(&self, subject: &Subject) -> Result<Arc<Visitor>, Refusal> {
        let mut anonymous = self.anonymous.lock().await;
        if let Some(visitor) = anonymous.as_ref().filter(|visitor| !visitor.client.has_ended()) {
            return Ok(Arc::clone(visitor));
        }
        let visitor = Arc::new(connect(subject, None).await?);
        *anonymous = Some(Arc::clone(&visitor));
        Ok(visitor)
    }

    /// Logs on. Returns the cookie.
    pub(crate) async fn log_on(
        &self,
        subject: &Subject,
        user: &str,
        password: &str,
    ) -> Result<(String, Arc<Visitor>), Refusal> {
        self.forget_idle(Instant::now());
        let visitor = Arc::new(connect(subject, Some((user, password))).await?);
        if visitor.session_rights().is_some_and(|rights| rights.must_change_password) {
            return Err(Refusal::MustChangePassword);
        }
        let cookie = random_text()?;
        let mut visitors = self.lock();
        let all = visitors.iter().map(|(cookie, visitor)| (cookie, user_of(visitor), visitor.idle_rank()));
        if let Some(replaced) = replaced(all, user).cloned().and_then(|cookie| visitors.remove(&cookie)) {
            replaced.ended.send_replace(true);
            let user = user_of(&replaced);
            tracing::info!(user, "a dashboard user was logged off, because too many are logged on");
        }
        visitors.insert(cookie.clone(), Arc::clone(&visitor));
        drop(visitors);
        Ok((cookie, visitor))
    }

    /// Logs off and ends the visitor's streams. The session is closed with the last of them.
    pub(crate) fn log_off(&self, cookie: &str) -> bool {
        let visitor = self.lock().remove(cookie);
        visitor.map(|visitor| visitor.ended.send_replace(true)).is_some()
    }

    /// Logs off visitors that are idle.
    pub(crate) fn forget_idle(&self, now: Instant) {
        self.lock().retain(|_, visitor| !visitor.is_idle(now));
    }

    /// Number of logged-on visitors.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

fn user_of(visitor: &Visitor) -> &str {
    visitor.user.as_deref().unwrap_or_default()
}

/// The visitor to log off when `user` logs on: the longest idle one of the same user if that user has too many, or of
/// the user with the most if the total limit is reached. So no user can lock out others.
fn replaced<'a, K, R: Ord>(all: impl Iterator<Item = (K, &'a str, R)>, user: &str) -> Option<K> {
    let mut by_user: BTreeMap<&str, Vec<(R, K)>> = BTreeMap::new();
    for (session, of, rank) in all {
        by_user.entry(of).or_default().push((rank, session));
    }
    let count: usize = by_user.values().map(Vec::len).sum();
    let longest_idle =
        |sessions: Vec<(R, K)>| sessions.into_iter().min_by(|(one, _), (other, _)| one.cmp(other));
    if by_user.get(user).is_some_and(|own| own.len() >= OF_USER_MAX) {
        return longest_idle(by_user.remove(user)?).map(|(_, session)| session);
    }
    let most = by_user.values().map(Vec::len).max().filter(|_| count >= VISITORS_MAX)?;
    let greediest = by_user.into_values().filter(|sessions| sessions.len() == most).flatten().collect();
    longest_idle(greediest).map(|(_, session)| session)
}

/// Opens a session on the server for a visitor.
async fn connect(subject: &Subject, user: Option<(&str, &str)>) -> Result<Visitor, Refusal> {
    let csrf = random_text()?;
    // The connection stays within this process, but the server may require security for users and nodes.
    let mode = match &subject.dashboard {
        Some(_) => MessageSecurityMode::SignAndEncrypt,
        None => MessageSecurityMode::None,
    };
    let name = format!("dashboard {}", user.map_or("anonymous", |user| user.0));
    let client = reach::connect(|| {
        let builder = Client::builder(&subject.url)
            .application_name("Taktwerk dashboard")
            .session_name(&name)
            .request_timeout(Duration::from_secs(10))
            // A refused password has been changed. Retrying would lock out the user.
            .reconnect(ReconnectPolicy { retry_refused_user: false, ..ReconnectPolicy::default() });
        let builder = reach::secured(subject, builder);
        match user {
            Some((name, password)) => builder.user(name, password),
            None => builder,
        }
    })
    .await?;
    Ok(Visitor {
        user: user.map(|user| user.0.to_owned()),
        csrf,
        client,
        mode,
        server: Arc::clone(&subject.shared),
        streams: Arc::default(),
        ended: watch::Sender::new(false),
        seen: Mutex::new(Instant::now()),
    })
}

/// 32 random bytes as text.
fn random_text() -> Result<String, Refusal> {
    let mut bytes = [0u8; 32];
    tokio_rustls::rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Refusal::Entropy)?;
    Ok(hexadecimal::text(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The visitor that is logged off when `user` logs on.
    fn logged_off(sessions: &[(&str, u32)], user: &str) -> Option<usize> {
        replaced(sessions.iter().enumerate().map(|(at, (of, since))| (at, *of, *since)), user)
    }

    #[test]
    fn a_user_with_too_many_sessions_loses_the_longest_idle_one() {
        let mut sessions: Vec<(&str, u32)> = (0..7).map(|at| ("eve", 10 - at)).collect();
        sessions.push(("ada", 0));
        assert_eq!(logged_off(&sessions, "eve"), None);
        sessions.push(("eve", 20));
        assert_eq!(logged_off(&sessions, "eve"), Some(6));
        assert_eq!(logged_off(&sessions, "ada"), None);
    }

    #[test]
    fn at_the_total_limit_the_user_with_the_most_sessions_loses_one() {
        let names: Vec<String> = (0..10).map(|at| format!("user {at}")).collect();
        let users = (0..57).map(|at| at % 9).chain([9; 7]);
        let sessions: Vec<(&str, u32)> =
            users.map(|at: usize| (names[at].as_str(), u32::from(at == 1))).collect();
        assert_eq!(sessions.len(), VISITORS_MAX);
        // Six or seven visitors per user; those of user 1 are more active.
        let ended = logged_off(&sessions, "ada").unwrap();
        assert_eq!(sessions.iter().filter(|(user, _)| *user == sessions[ended].0).count(), 7);
        assert_ne!(sessions[ended].0, "user 1");
        assert_eq!(logged_off(&sessions[1..], "ada"), None);
    }
}
