//! The roles of a session, and the resulting permissions of its monitored items.

use super::context::Context;
use crate::authorization::role::well_known;
use crate::authorization::{Decisions, Grant, Identity, UserIdentity};
use crate::diagnostics::session::{Security, SessionRights};
use crate::identity::User;
use crate::session::{Session, SessionKey};
use crate::shared::ServerShared;
use std::sync::Arc;
use taktwerk_types::NodeId;

/// Maximum number of cached tables for sessions with the same roles and mode.
const TABLES_MAX: usize = 64;

/// A shard's decision tables.
#[derive(Debug, Default)]
pub(crate) struct Authorizer {
    /// The generation of rights by which the shard's sessions were authorized.
    pub(crate) generation: u64,
    tables: Vec<Arc<Decisions>>,
}

impl Authorizer {
    /// The current table of a grant.
    pub(crate) fn decisions(&mut self, shared: &ServerShared, grant: Grant) -> Arc<Decisions> {
        let nodes = shared.space().read();
        let generation = nodes.access().generation();
        self.tables.retain(|table| table.generation == generation);
        if let Some(known) = self.tables.iter().find(|table| table.grant == grant) {
            return Arc::clone(known);
        }
        let table = Arc::new(Decisions::new(nodes.access(), grant));
        if self.tables.len() < TABLES_MAX {
            self.tables.push(Arc::clone(&table));
        }
        table
    }
}

impl Context<'_> {
    /// Assigns a session the roles of its user and applies them to its monitored items. Call it after activation, and
    /// after any change of roles or permissions.
    pub(crate) fn authorize(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get(key) else { return };
        let Some(identity) = identity(session, self.shared) else { return };
        let roles = if session.must_change_password {
            // Part 18 §5.2.8: only Anonymous until the password is changed, whatever the rules grant.
            [NodeId::numeric(0, well_known::ANONYMOUS)].into()
        } else {
            self.shared.authorization().roles_of(&identity).into()
        };
        let grant = Grant { roles, mode: identity.mode, is_limited: session.must_change_password };
        let decisions = self.authorizer.decisions(self.shared, grant);
        if let Some(session) = self.sessions.get_mut(key) {
            session.decisions = Arc::clone(&decisions);
            session.entry.set_security(security(&identity, session));
            session.entry.set_rights(SessionRights {
                roles: Arc::clone(&decisions.grant.roles),
                must_change_password: session.must_change_password,
            });
        }
        self.engine.authorize_session(key.into(), &decisions, self.now, self.shared.space());
    }
}

/// The identity of an activated session's client.
fn identity(session: &Session, shared: &ServerShared) -> Option<Identity> {
    let user = match session.user.as_ref()? {
        User::Anonymous => UserIdentity::Anonymous,
        User::Named(name) => UserIdentity::UserName(name.to_string()),
        User::Certificate { thumbprint, subject, issuer, .. } => UserIdentity::Certificate {
            thumbprint: thumbprint.to_string(),
            subject: subject.to_string(),
            issuer: issuer.to_string(),
        },
        User::Issued { user_id, roles, groups } => UserIdentity::Issued {
            subject: user_id.to_string(),
            roles: roles.iter().map(ToString::to_string).collect(),
            groups: groups.iter().map(ToString::to_string).collect(),
        },
    };
    let endpoint = shared
        .config()
        .endpoints
        .iter()
        .find(|endpoint| endpoint.policy == session.policy && endpoint.mode == session.mode);
    let url = endpoint.map_or("", |endpoint| endpoint.url.as_str());
    let uri = session.entry.client.application_uri.as_str();
    Some(Identity::new(user, Some(uri), url, session.policy, session.mode))
}

/// The security diagnostics of the session, shown to SecurityAdmins.
fn security(identity: &Identity, session: &Session) -> Security {
    let (user, mechanism): (&str, _) = match &identity.user {
        UserIdentity::Anonymous => ("", "Anonymous"),
        UserIdentity::UserName(name) => (name, "UserName"),
        UserIdentity::Certificate { subject, .. } => (subject, "Certificate"),
        UserIdentity::Issued { subject, .. } => (subject, "IssuedToken"),
    };
    Security {
        user: user.into(),
        history: Vec::new(),
        mechanism,
        mode: identity.mode as i32,
        policy_uri: identity.policy.uri(),
        certificate: session.client_certificate.clone(),
    }
}
