//! What can go wrong, and what to do about it.

use std::path::PathBuf;
use taktwerk_server::space::NodeError;
use taktwerk_server::space::import::ImportError;
use taktwerk_types::{NodeId, StatusCode};

/// The address space could not be built as asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A node does not fit in.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A NodeSet file has a mistake.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A NodeSet file cannot be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A type does not declare what an instance was to have.
    #[error(
        "the type {type_id} has no member {path}: give the path of an optional child, in names without namespace"
    )]
    NoMember {
        /// The type.
        type_id: NodeId,
        /// The path.
        path: String,
    },
    /// The arguments of a Method do not fit its function.
    #[error("the method {method} has {named} names for {typed} {what}: give one name for each")]
    Arguments {
        /// The Method's name.
        method: String,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many names were given.
        named: usize,
        /// How many the function has.
        typed: usize,
    },
    /// A type of state machines is not in order.
    #[error("the state machine {name} cannot be built: {problem}")]
    StateMachine {
        /// The name of the type.
        name: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A SecurityGroup of PubSub is not in order.
    #[error("the security group {id:?} cannot be served: {status}")]
    SecurityGroup {
        /// Its id.
        id: String,
        /// What is wrong: Bad_SecurityPolicyRejected, Bad_InvalidArgument (lifetime), Bad_BrowseNameDuplicated.
        status: StatusCode,
    },
}

impl BuildError {
    /// The matching status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Node(error) => error.status(),
            Self::Import(error) => error.status(),
            Self::File { .. } => StatusCode::BAD_CONFIGURATION_ERROR,
            Self::NoMember { .. } => StatusCode::BAD_NOT_FOUND,
            Self::Arguments { .. } | Self::StateMachine { .. } => StatusCode::BAD_INVALID_ARGUMENT,
            Self::SecurityGroup { status, .. } => *status,
        }
    }
}
