//! Who may do what (Part 18; Part 3 §4.9, §5.2.9 to §5.2.11, §8.55, §8.56).
//!
//! Two steps, kept apart as the specification does. Who a client is decides, once per activation, which [`Role`]s its
//! session has: [`identity`] and [`role`]. What each role may do with a node stands on the node or its namespace:
//! [`access`]. The two meet in a `Decisions` table, which is made when a session is activated, shared by all sessions
//! with the same roles and security mode, and made anew when anything about roles or permissions changes. So a service
//! that reaches a node asks with one index and one comparison.
//!
//! - [`role`]: the well-known roles and what a role is granted for; [`identity`]: what is known of a client;
//! - [`access`]: RolePermissions and AccessRestrictions of nodes and namespaces;
//! - `decisions`: what a session may do with each kind of node, and the answer for what it may not.
//!
//! # What a client is told
//! - Its roles allow it, but not over this channel: Bad_SecurityModeInsufficient.
//! - Its roles allow something with the node, but not this: Bad_UserAccessDenied.
//! - Its roles allow nothing with the node: the same answer as for a node that does not exist. The nodes of the
//!   specification's own namespace exist on every server, so for them it is Bad_UserAccessDenied (Part 3 §4.9.3).

pub mod access;
mod decisions;
pub mod identity;
pub mod role;

pub use access::Access;
pub use identity::{Identity, UserIdentity};
pub use role::{EndpointRestriction, IdentityRule, Restriction, Role};

pub(crate) use access::AccessTable;
pub(crate) use decisions::{Decisions, Denial, Grant};

use std::collections::BTreeMap;
use taktwerk_schema::PermissionType;
use taktwerk_types::NodeId;

/// A server's roles, and what they may do where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Authorization {
    /// The roles and who is granted them.
    pub roles: Vec<Role>,
    /// What roles may do with nodes for which neither the node nor its namespace says anything.
    pub unspecified: Unspecified,
    /// The DefaultRolePermissions and DefaultAccessRestrictions of namespaces, by their URI; what is given here goes
    /// before what a NodeSet says.
    pub namespaces: BTreeMap<String, Access>,
}

/// What applies to nodes without permissions of their own in namespaces without defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unspecified {
    /// Everybody with a session may do everything.
    Open,
    /// Roles may do what is listed; everybody else nothing.
    Permissions {
        /// For the nodes of namespace 0: the Server object, the types, the folders.
        namespace_zero: Vec<(NodeId, PermissionType)>,
        /// For all other nodes.
        others: Vec<(NodeId, PermissionType)>,
    },
}

impl Authorization {
    /// Everybody may do everything that no node or namespace restricts. For demonstrations, tests, and servers that
    /// decide in their own handlers.
    #[must_use]
    pub fn open() -> Self {
        Self { roles: Role::well_known(), unspecified: Unspecified::Open, namespaces: BTreeMap::new() }
    }

    /// The well-known roles with the permissions that Part 3 §4.9.2 suggests: Anonymous sees no more than the server
    /// itself and the types, writing and calling takes at least an Operator.
    #[must_use]
    pub fn suggested() -> Self {
        let others = role::suggested_permissions();
        let mut namespace_zero = others.clone();
        let look = PermissionType::BROWSE | PermissionType::READ;
        namespace_zero.push((NodeId::numeric(0, role::well_known::ANONYMOUS), look));
        Self {
            roles: Role::well_known(),
            unspecified: Unspecified::Permissions { namespace_zero, others },
            namespaces: BTreeMap::new(),
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// The role of that name, to be changed.
    pub fn role_mut(&mut self, name: &str) -> Option<&mut Role> {
        self.roles.iter_mut().find(|role| role.name == name)
    }

    /// The roles of a client, in the order of their ids.
    #[must_use]
    pub fn roles_of(&self, identity: &Identity) -> Vec<NodeId> {
        let mut roles: Vec<NodeId> = self
            .roles
            .iter()
            .filter(|role| role.is_granted_to(identity))
            .map(|role| role.id.clone())
            .collect();
        roles.sort_unstable();
        roles.dedup();
        roles
    }
}

impl Default for Authorization {
    fn default() -> Self {
        Self::open()
    }
}
