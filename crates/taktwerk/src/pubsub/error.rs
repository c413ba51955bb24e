//! Errors of starting a publisher or subscriber.

use taktwerk_net::pubsub::PubSubError;
use taktwerk_pubsub::action::ActionError;
use taktwerk_server::space::NodeError;
use taktwerk_types::StatusCode;

/// Why a publisher or subscriber could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PubSubStartError {
    /// The configuration, an address, a socket or a thread is the problem.
    #[error(transparent)]
    PubSub(#[from] PubSubError),
    /// A published or target Variable does not exist.
    #[error("field {field:?} of {data_set:?}: {source}")]
    Variable {
        /// The data set.
        data_set: String,
        /// The field.
        field: String,
        /// What is wrong with the node.
        source: NodeError,
    },
    /// A data set refers to Variables, but no address space was set.
    #[error(
        "{data_set:?} names Variables of a server: give the builder the address space they are in (space())"
    )]
    NoSpace {
        /// The data set or reader.
        data_set: String,
    },
    /// The application must supply the values of a data set, but did not.
    #[error("the data set {data_set:?} has no source of values: call values() with its name")]
    NoValues {
        /// The data set.
        data_set: String,
    },
    /// Actions require message security, because they have effects.
    #[error("Actions without message security: call security(), or allow_unsecured() if that is on purpose")]
    UnsecuredActions,
    /// Actions in an unsupported encoding, or in JSON without permission to be unsecured.
    #[error("Actions: {0}")]
    Actions(ActionError),
    /// The configuration requests something that is not supported.
    #[error("field {field:?} of {data_set:?}: {what} is not supported")]
    Unsupported {
        /// The data set or reader.
        data_set: String,
        /// The field.
        field: String,
        /// The unsupported feature.
        what: &'static str,
    },
}

impl PubSubStartError {
    /// The corresponding status code.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::PubSub(error) => error.status(),
            Self::Variable { source, .. } => source.status(),
            Self::NoSpace { .. } | Self::NoValues { .. } => StatusCode::BAD_CONFIGURATION_ERROR,
            Self::UnsecuredActions | Self::Actions(ActionError::JsonSecured) => {
                StatusCode::BAD_SECURITY_MODE_INSUFFICIENT
            }
            Self::Actions(_) => StatusCode::BAD_CONFIGURATION_ERROR,
            Self::Unsupported { .. } => StatusCode::BAD_NOT_SUPPORTED,
        }
    }
}
