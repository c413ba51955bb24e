//! Errors of clients, with advice.

use crate::value::WrongType;
use taktwerk_client::ClientError;
use taktwerk_schema::dynamic::DynamicError;
use taktwerk_types::{NodeId, ParseNodeIdError, StatusCode};

/// Why a client's call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request failed or got no answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server refused one operation.
    #[error("{what}: {status}{}", description(.status))]
    Status {
        /// The operation, for example `write ns=2;s=Setpoint`.
        what: String,
        /// The server's answer.
        status: StatusCode,
    },
    /// A value has another type than the program expects.
    #[error("{what}: {source}")]
    WrongType {
        /// The operation.
        what: String,
        /// The type that was found.
        source: WrongType,
    },
    /// The text is not a NodeId.
    #[error("{text:?} is not a NodeId ({source}): write i=85, ns=2;s=Boiler or nsu=urn:plant;s=Boiler")]
    NodeId {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: ParseNodeIdError,
    },
    /// The server has no namespace with that URI.
    #[error("the server has no namespace {uri:?}; it has {}", known.join(", "))]
    Namespace {
        /// The URI.
        uri: String,
        /// The server's namespaces.
        known: Vec<String>,
    },
    /// The server does not define the structure, or the structure does not match its definition.
    #[error("{what}: {source}")]
    Dynamic {
        /// The type.
        what: NodeId,
        /// What is wrong.
        source: DynamicError,
    },
}

fn description(status: &StatusCode) -> String {
    status.description().map_or_else(String::new, |text| format!(" ({text})"))
}

impl Error {
    pub(crate) fn status_of(what: impl Into<String>, status: StatusCode) -> Self {
        Self::Status { what: what.into(), status }
    }

    /// The status code that corresponds to this error.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Client(error) => error.status(),
            Self::Status { status, .. } => *status,
            Self::WrongType { .. } => StatusCode::BAD_TYPE_MISMATCH,
            Self::NodeId { .. } | Self::Namespace { .. } => StatusCode::BAD_NODE_ID_INVALID,
            Self::Dynamic { .. } => StatusCode::BAD_DATA_TYPE_ID_UNKNOWN,
        }
    }
}
