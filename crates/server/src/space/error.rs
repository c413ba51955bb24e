//! Errors of adding or changing nodes and references.

use taktwerk_types::{NodeId, QualifiedName, StatusCode};

/// Why a node or reference could not be added or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The id is in use.
    #[error("the NodeId {0} exists already: choose another one")]
    IdExists(NodeId),
    /// There is no such node.
    #[error("no node {0}: add it first")]
    Unknown(NodeId),
    /// The namespace index is beyond the NamespaceArray.
    #[error("namespace {0} is not registered: call add_namespace first")]
    Namespace(u16),
    /// The parent already has a child of that name.
    #[error("{parent} already has a child named {name}")]
    BrowseNameExists {
        /// The parent.
        parent: NodeId,
        /// The name.
        name: QualifiedName,
    },
    /// The id is not a ReferenceType.
    #[error("{0} is not a ReferenceType")]
    ReferenceType(NodeId),
    /// The same reference exists.
    #[error("the reference from {0} to {1} exists already")]
    ReferenceExists(NodeId, NodeId),
    /// A table is full.
    #[error("too many nodes: the limit is {0}")]
    Full(usize),
    /// Files have too many different permissions.
    #[error(
        "the nodes of all files together have more than {0} different RolePermissions and AccessRestrictions: let nodes share them"
    )]
    Permissions(usize),
    /// The table of permissions is full.
    #[error(
        "the server has no room for {0} more different RolePermissions and AccessRestrictions: let nodes share them, or restart the server to free those of deleted nodes"
    )]
    NoPermissionsLeft(usize),
    /// A type has too many members for a client's instance.
    #[error(
        "a client cannot add an instance of this type: the server would have to add or compare more than {0} members or references; add its instances in the server's program or a NodeSet"
    )]
    InstanceTooLarge(usize),
    /// The limit for nodes added by clients is reached.
    #[error(transparent)]
    Exhausted(#[from] crate::account::Exhausted),
    /// There is no history store.
    #[error("the server has no history store: set one with ServerBuilder::history")]
    NoHistoryStore,
    /// Namespace 0's own nodes cannot be changed.
    #[error("{0} belongs to the static namespace 0")]
    Static(NodeId),
}

impl NodeError {
    /// The status for a service result (Part 4 §5.8).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::IdExists(_) => StatusCode::BAD_NODE_ID_EXISTS,
            Self::Unknown(_) => StatusCode::BAD_NODE_ID_UNKNOWN,
            Self::Namespace(_) => StatusCode::BAD_NODE_ID_REJECTED,
            Self::BrowseNameExists { .. } => StatusCode::BAD_BROWSE_NAME_DUPLICATED,
            Self::ReferenceType(_) => StatusCode::BAD_REFERENCE_TYPE_ID_INVALID,
            Self::ReferenceExists(..) => StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED,
            Self::Exhausted(exhausted) => exhausted.status(),
            Self::Full(_) | Self::InstanceTooLarge(_) | Self::Permissions(_) | Self::NoPermissionsLeft(_) => {
                StatusCode::BAD_RESOURCE_UNAVAILABLE
            }
            Self::NoHistoryStore => StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED,
            Self::Static(_) => StatusCode::BAD_USER_ACCESS_DENIED,
        }
    }
}
