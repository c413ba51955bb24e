//! Authorization (Part 18; Part 3 §4.9, §5.2.9 to §5.2.11, §8.55, §8.56).
//!
//! Two separate steps, as in the specification. First, the identity of a client decides, once per activation, which
//! [`Role`]s its session has: [`identity`] and [`role`]. Second, the node or its namespace specifies what each role may
//! do: [`access`]. A `Decisions` table combines both. It is built when a session is activated, shared by all sessions
//! with the same roles and security mode, and rebuilt when roles or permissions change. A service checks a node with
//! one index and one comparison.
//!
//! - [`role`]: the well-known roles and the rules for granting roles; [`identity`]: the identity of a client;
//! - [`access`]: RolePermissions and AccessRestrictions of nodes and namespaces;
//! - `decisions`: the permissions of a session for each set of nodes, and the status for missing ones.
//!
//! # Status codes
//! - Its roles allow it, but not over this channel: Bad_SecurityModeInsufficient.
//! - Its roles allow other operations on the node, but not this one: Bad_UserAccessDenied.
//! - Its roles allow nothing on the node: the same status as for a node that does not exist. The nodes of the
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

/// A server's roles, and their default permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Authorization {
    /// The roles and the rules for granting them.
    pub roles: Vec<Role>,
    /// Permissions for nodes where neither the node nor its namespace specifies any.
    pub unspecified: Unspecified,
    /// The DefaultRolePermissions and DefaultAccessRestrictions of namespaces, by URI. They take precedence over a
    /// NodeSet.
    pub namespaces: BTreeMap<String, Access>,
}

/// The rule for nodes without permissions of their own in namespaces without defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unspecified {
    /// Every session may do everything.
    Open,
    /// Roles have the listed permissions; all others have none.
    Permissions {
        /// For the nodes of namespace 0: the Server object, the types, the folders.
        namespace_zero: Vec<(NodeId, PermissionType)>,
        /// For all other nodes.
        others: Vec<(NodeId, PermissionType)>,
    },
}

impl Authorization {
    /// Every session may do everything that no node or namespace restricts. For demonstrations, tests, and servers that
    /// decide in their own handlers.
    #[must_use]
    pub fn open() -> Self {
        Self { roles: Role::well_known(), unspecified: Unspecified::Open, namespaces: BTreeMap::new() }
    }

    /// The well-known roles with the permissions that Part 3 §4.9.2 suggests. Anonymous sees only the server object and
    /// the types; writing and calling require at least Operator.
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

    /// The role with a name.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// The role with a name, to be changed.
    pub fn role_mut(&mut self, name: &str) -> Option<&mut Role> {
        self.roles.iter_mut().find(|role| role.name == name)
    }

    /// The roles of a client, sorted by id.
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
