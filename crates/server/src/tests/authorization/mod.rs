//! Roles and permissions over the wire.
//!
//! - `matrix`: every access path to a node against an independent `model`;
//! - `live`: permissions and identities that change while clients are connected; `events`: events sent before a change.

mod events;
mod live;
mod matrix;
mod model;

use super::attribute::{add, read, variable};
use super::*;
use crate::authorization::{Access, Authorization, Decisions, Grant, IdentityRule, role};
use crate::config::UserTokenConfig;
use crate::session::table::TokenOwner;
use crate::space::NodeSpec;
use crate::space::build::Under;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{AccessRestrictionType, PermissionType};

fn role_id(name: &str) -> NodeId {
    let (_, id) = role::well_known::ALL.iter().find(|(known, _)| *known == name).unwrap();
    NodeId::numeric(0, *id)
}

impl Shard {
    /// Sets roles and mode of a session without a matching identity, until something changes.
    fn grant(&mut self, token: &NodeId, mut roles: Vec<NodeId>, mode: MessageSecurityMode, now: Now) {
        roles.sort_unstable();
        let TokenOwner::Here(key) = self.sessions.owner(token.as_ref()) else { panic!("no such session") };
        let grant = Grant::new(roles, mode);
        let decisions: Arc<Decisions> = self.authorizer.decisions(&self.shared, grant);
        self.sessions.get_mut(key).unwrap().decisions = Arc::clone(&decisions);
        let space = Arc::clone(self.shared.space());
        self.context(None, now).engine.authorize_session(key.into(), &decisions, now, &space);
    }
}
