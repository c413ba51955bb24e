//! Permissions of roles for callers in the server's process, such as PubSub, which reads and writes Variables on behalf
//! of those who configured it.

use super::AddressSpace;
use super::error::NodeError;
use crate::authorization::access::Allowed;
use crate::authorization::{Access, Decisions, Grant};
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::PermissionType;
use taktwerk_types::{NodeId, StatusCode};

/// The permissions of some roles with a given security mode, at the time of the request.
#[derive(Debug)]
pub struct Rights(Decisions);

impl AddressSpace {
    /// The permissions of roles over a channel with this `mode`.
    #[must_use]
    pub fn rights(&self, roles: &[NodeId], mode: MessageSecurityMode) -> Rights {
        let mut roles = roles.to_vec();
        roles.sort();
        Rights(Decisions::new(self.read().access(), Grant::new(roles, mode)))
    }

    /// Checks a permission for a node. Read and write refer to the Value of a Variable, which must allow it.
    ///
    /// # Errors
    /// The status for a client: Bad_NodeIdUnknown if the node does not exist or the roles must not know it;
    /// Bad_UserAccessDenied; Bad_SecurityModeInsufficient; Bad_NotReadable, Bad_NotWritable.
    pub fn check_rights(
        &self,
        rights: &Rights,
        node: &NodeId,
        permission: PermissionType,
    ) -> Result<(), StatusCode> {
        let nodes = self.read();
        let ix = nodes.resolve(node.as_ref()).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        rights.0.check(&nodes, ix, permission)?;
        let level = nodes.view(ix).and_then(|view| view.access_level());
        let lacks = |bit: u8| level.is_some_and(|level| level & bit == 0);
        match permission {
            PermissionType::READ if lacks(1) => Err(StatusCode::BAD_NOT_READABLE),
            PermissionType::WRITE if lacks(2) => Err(StatusCode::BAD_NOT_WRITABLE),
            _ => Ok(()),
        }
    }

    /// Whether roles may know that a node exists. True for nodes that do not exist.
    #[must_use]
    pub fn may_know(&self, rights: &Rights, node: &NodeId) -> bool {
        let nodes = self.read();
        nodes.resolve(node.as_ref()).is_none_or(|ix| rights.0.knows(&nodes, ix))
    }

    /// Restricts a node to roles that may know all of some other nodes, because its value names them. They have the
    /// permissions of its namespace.
    ///
    /// # Errors
    /// The node does not exist, or there are too many sets of permissions.
    pub fn show_to_those_who_know(&self, node: &NodeId, named: &[NodeId]) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(node)?;
        let table = nodes.access();
        let mut knowing: Option<Vec<NodeId>> = None;
        for other in named.iter().filter_map(|id| nodes.resolve(id.as_ref())) {
            if Decisions::is_public(other) {
                continue;
            }
            let Allowed::Permissions(permissions) = table.allowed(nodes.access_set(other)) else { continue };
            let may: Vec<&NodeId> =
                permissions.iter().filter(|(_, may)| !may.is_empty()).map(|(role, _)| role).collect();
            knowing = Some(match knowing {
                None => may.into_iter().cloned().collect(),
                Some(roles) => roles.into_iter().filter(|role| may.contains(&role)).collect(),
            });
        }
        let access = match knowing {
            None => Access::default(),
            Some(roles) => match table.allowed(table.silent(nodes.id_of(ix).namespace_index)) {
                Allowed::Everything => {
                    let may = PermissionType::BROWSE | PermissionType::READ;
                    Access::roles(roles.into_iter().map(|role| (role, may)).collect::<Vec<_>>())
                }
                Allowed::Permissions(permissions) => {
                    let kept = permissions.iter().filter(|(role, _)| roles.contains(role));
                    Access::roles(kept.cloned().collect::<Vec<_>>())
                }
            },
        };
        // Every change of permissions rebuilds the tables of all sessions.
        if table.own(nodes.access_set(ix)) == Some(&access) {
            return Ok(());
        }
        nodes.set_access(ix, access)
    }
}
