//! Browsers that are logged on, and the OPC UA client behind each.
//!
//! A visitor is a cookie and an OPC UA session with the visitor's identity. Anonymous visitors share one session. What a
//! visitor may do is up to the server: there are no permissions here, apart from what concerns the machine itself
//! (certificates and the log), for which the visitor's session needs the role SecurityAdmin or ConfigureAdmin at that moment.

use crate::streams::Streams;
use crate::subject::Subject;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use taktwerk::client::{Error, Security};
use taktwerk::{Client, NodeId};
use taktwerk_client::ReconnectPolicy;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ids::variable_ids;
use taktwerk_server::ServerShared;
use taktwerk_server::authorization::role::well_known;
use taktwerk_server::diagnostics::SessionRights;
use taktwerk_types::hexadecimal;
use tokio::sync::Mutex as AsyncMutex;

/// Visitors that can be logged on at a time.
const VISITORS_MAX: usize = 64;
/// A visitor who does nothing is logged off after this.
const IDLE: Duration = Duration::from_secs(30 * 60);

const SERVER_STATE: NodeId = NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS_STATE);

/// A browser with a session.
#[derive(Debug)]
pub(crate) struct Visitor {
    /// The user's name; nothing for anonymous visitors.
    pub(crate) user: Option<String>,
    /// What requests that change something have to carry.
    pub(crate) csrf: String,
    /// The session on the server.
    pub(crate) client: Client,
    /// How it is secured.
    pub(crate) mode: MessageSecurityMode,
    /// Knows what the session may do now.
    server: Arc<ServerShared>,
    /// How many streams are open.
    pub(crate) streams: Arc<Streams>,
    seen: Mutex<Instant>,
}

impl Visitor {
    /// Whether the visitor may see and change what concerns the machine.
    pub(crate) async fn is_administrator(&self) -> bool {
        self.user.is_some() && self.rights().await.is_some_and(|rights| is_administrator(&rights))
    }

    /// Whether the visitor may decide which applications are trusted.
    pub(crate) async fn may_trust(&self) -> bool {
        self.user.is_some() && self.rights().await.is_some_and(|rights| may_trust(&rights))
    }

    /// What the server lets the visitor's session do now; `None` if it does not answer, has ended the session, or lets it only
    /// change a password.
    pub(crate) async fn rights(&self) -> Option<SessionRights> {
        // A server looks at what has changed when a request comes. Which value it gives does not matter.
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

    fn touch(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self, now: Instant) -> bool {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.client.has_ended() || (self.streams.is_empty() && now.saturating_duration_since(seen) > IDLE)
    }
}

fn has_any(rights: &SessionRights, wanted: &[u32]) -> bool {
    rights.roles.iter().any(|role| role.ns0().is_some_and(|role| wanted.contains(&role)))
}

/// Whether a user's session may see and change what concerns the machine.
pub(crate) fn is_administrator(rights: &SessionRights) -> bool {
    has_any(rights, &[well_known::SECURITY_ADMIN, well_known::CONFIGURE_ADMIN])
}

/// Whether a user's session may decide which applications are trusted.
pub(crate) fn may_trust(rights: &SessionRights) -> bool {
    has_any(rights, &[well_known::SECURITY_ADMIN])
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    by_cookie: Mutex<BTreeMap<String, Arc<Visitor>>>,
    /// The one session of all who are not logged on.
    anonymous: AsyncMutex<Option<Arc<Visitor>>>,
}

/// Why somebody is not let in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// All places are taken.
    #[error("too many visitors are logged on; try again later")]
    Full,
    /// The server says no, or does not answer.
    #[error("{0}")]
    Server(#[from] Error),
    /// The user may only change the password, which the dashboard cannot do.
    #[error(
        "this password has to be changed first: use a client with the method ChangePassword, or `taktwerk user passwd`"
    )]
    MustChangePassword,
    /// There is no randomness to be had.
    #[error("the system has no random numbers")]
    Entropy,
}

impl Visitors {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Visitor>>> {
        self.by_cookie.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The visitor with a cookie. Visitors whom the server no longer accepts are logged off.
    pub(crate) fn find(&self, cookie: &str) -> Option<Arc<Visitor>> {
        let visitor = self.lock().get(cookie).cloned()?;
        if visitor.client.has_ended() {
            self.log_off(cookie);
            return None;
        }
        visitor.touch();
        Some(visitor)
    }

    /// The session of those who are not logged on.
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
        if self.lock().len() >= VISITORS_MAX {
            return Err(Refusal::Full);
        }
        let visitor = Arc::new(connect(subject, Some((user, password))).await?);
        if visitor.session_rights().is_some_and(|rights| rights.must_change_password) {
            return Err(Refusal::MustChangePassword);
        }
        let cookie = random_text()?;
        self.lock().insert(cookie.clone(), Arc::clone(&visitor));
        Ok((cookie, visitor))
    }

    /// Logs off. The session on the server ends when the last stream of the visitor has ended.
    pub(crate) fn log_off(&self, cookie: &str) -> bool {
        self.lock().remove(cookie).is_some()
    }

    /// Logs those off who have done nothing for half an hour.
    pub(crate) fn forget_idle(&self, now: Instant) {
        self.lock().retain(|_, visitor| !visitor.is_idle(now));
    }

    /// How many are logged on.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// Opens a session on the server for a visitor.
async fn connect(subject: &Subject, user: Option<(&str, &str)>) -> Result<Visitor, Refusal> {
    let csrf = random_text()?;
    let mut builder = Client::builder(&subject.url)
        .application_name("Taktwerk dashboard")
        .session_name(&format!("dashboard {}", user.map_or("anonymous", |user| user.0)))
        .request_timeout(Duration::from_secs(10))
        // A password that is refused has been changed. Tried again, it would lock out the user.
        .reconnect(ReconnectPolicy { retry_refused_user: false, ..ReconnectPolicy::default() });
    // The connection stays within this process, but the server may demand security for users and nodes.
    let mode = match &subject.dashboard_pki {
        Some(pki) => {
            builder = builder.pki(pki).security(Security::Best);
            MessageSecurityMode::SignAndEncrypt
        }
        None => {
            builder = builder.unsecured().allow_plaintext_password();
            MessageSecurityMode::None
        }
    };
    if let Some((name, password)) = user {
        builder = builder.user(name, password);
    }
    let client = builder.connect().await?;
    Ok(Visitor {
        user: user.map(|user| user.0.to_owned()),
        csrf,
        client,
        mode,
        server: Arc::clone(&subject.shared),
        streams: Arc::default(),
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
