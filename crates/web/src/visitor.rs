//! Browsers that are logged on, and the OPC UA client behind each.
//!
//! A visitor is a cookie and an OPC UA session with the visitor's identity. Anonymous visitors share one session. What a
//! visitor may do is up to the server: there are no permissions here, apart from what concerns the machine itself
//! (certificates and the log), for which the visitor needs the role SecurityAdmin or ConfigureAdmin.

use crate::streams::Streams;
use crate::subject::Subject;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use taktwerk::client::{Error, Security};
use taktwerk::{Client, NodeId};
use taktwerk_client::ReconnectPolicy;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_server::authorization::{Identity, UserIdentity};
use taktwerk_types::hexadecimal;
use tokio::sync::Mutex as AsyncMutex;

/// Visitors that can be logged on at a time.
const VISITORS_MAX: usize = 64;
/// A visitor who does nothing is logged off after this.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// A browser with a session.
#[derive(Debug)]
pub(crate) struct Visitor {
    /// The user's name; nothing for anonymous visitors.
    pub(crate) user: Option<String>,
    /// What requests that change something have to carry.
    pub(crate) csrf: String,
    /// The session on the server.
    pub(crate) client: Client,
    /// Names of the visitor's roles on an encrypted channel.
    pub(crate) roles: Vec<String>,
    /// Their ids, and how the visitor's session is secured.
    pub(crate) role_ids: Vec<NodeId>,
    pub(crate) mode: MessageSecurityMode,
    /// How many streams are open.
    pub(crate) streams: Arc<Streams>,
    seen: Mutex<Instant>,
}

impl Visitor {
    /// Whether the visitor may see and change what concerns the machine.
    pub(crate) fn is_administrator(&self) -> bool {
        self.user.is_some()
            && self.roles.iter().any(|role| role == "SecurityAdmin" || role == "ConfigureAdmin")
    }

    /// Whether the visitor may decide which applications are trusted.
    pub(crate) fn may_trust(&self) -> bool {
        self.user.is_some() && self.roles.iter().any(|role| role == "SecurityAdmin")
    }

    fn touch(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self, now: Instant) -> bool {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.streams.is_empty() && now.saturating_duration_since(seen) > IDLE
    }
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
    /// There is no randomness to be had.
    #[error("the system has no random numbers")]
    Entropy,
}

impl Visitors {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Visitor>>> {
        self.by_cookie.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The visitor with a cookie.
    pub(crate) fn find(&self, cookie: &str) -> Option<Arc<Visitor>> {
        let visitor = self.lock().get(cookie).cloned()?;
        visitor.touch();
        Some(visitor)
    }

    /// The session of those who are not logged on.
    pub(crate) async fn anonymous(&self, subject: &Subject) -> Result<Arc<Visitor>, Refusal> {
        let mut anonymous = self.anonymous.lock().await;
        if let Some(visitor) = &*anonymous {
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
        .reconnect(ReconnectPolicy::default());
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
    let identity = match user {
        Some((name, password)) => {
            builder = builder.user(name, password);
            UserIdentity::UserName(name.to_owned())
        }
        None => UserIdentity::Anonymous,
    };
    let client = builder.connect().await?;
    let policy = if mode == MessageSecurityMode::None {
        SecurityPolicy::None
    } else {
        SecurityPolicy::Aes256_Sha256_RsaPss
    };
    let uri = subject.dashboard_pki.as_ref().and_then(|pki| pki.application_uri());
    let identity = Identity::new(identity, uri, "", policy, mode);
    let authorization = subject.shared.authorization();
    let granted = authorization.roles_of(&identity);
    let roles = authorization
        .roles
        .iter()
        .filter(|role| granted.contains(&role.id))
        .map(|role| role.name.clone())
        .collect();
    Ok(Visitor {
        user: user.map(|user| user.0.to_owned()),
        csrf,
        client,
        roles,
        role_ids: granted,
        mode,
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
