//! Errors of building an address space, with advice.

use std::path::PathBuf;
use taktwerk_server::space::NodeError;
use taktwerk_server::space::import::ImportError;
use taktwerk_types::{NodeId, StatusCode};

/// The address space cannot be built as requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A node cannot be added.
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
    /// Another import came in between, such as a NodeSet that a client has loaded.
    #[error("other NodeSets were loaded in the meantime: prepare the files again")]
    Outdated,
    /// A type does not declare a requested member.
    #[error(
        "the type {type_id} has no member {path}: give the path of an optional child, in names without namespace"
    )]
    NoMember {
        /// The type.
        type_id: NodeId,
        /// The path.
        path: String,
    },
    /// The number of argument names differs from the function's.
    #[error("the method {method} has {typed} {what} but {named} names: give one name for each")]
    Arguments {
        /// The Method's name.
        method: String,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// The number of names.
        named: usize,
        /// The number of arguments or results of the function.
        typed: usize,
    },
    /// The definition of a state machine type is invalid.
    #[error("the state machine {name} cannot be built: {problem}")]
    StateMachine {
        /// The name of the type.
        name: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The settings of a PubSub SecurityGroup are invalid.
    #[error("the security group {id:?} cannot be served: {status}")]
    SecurityGroup {
        /// Its id.
        id: String,
        /// What is wrong: Bad_SecurityPolicyRejected, Bad_InvalidArgument (lifetime), Bad_BrowseNameDuplicated.
        status: StatusCode,
    },
}

impl BuildError {
    /// The corresponding status code.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Node(error) => error.status(),
            Self::Import(error) => error.status(),
            Self::File { .. } => StatusCode::BAD_CONFIGURATION_ERROR,
            Self::NoMember { .. } => StatusCode::BAD_NOT_FOUND,
            Self::Arguments { .. } | Self::StateMachine { .. } => StatusCode::BAD_INVALID_ARGUMENT,
            Self::Outdated => StatusCode::BAD_INVALID_STATE,
            Self::SecurityGroup { status, .. } => *status,
        }
    }
}
