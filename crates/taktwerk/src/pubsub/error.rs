//! Why a publisher or subscriber does not start.

use taktwerk_net::pubsub::PubSubError;
use taktwerk_pubsub::action::ActionError;
use taktwerk_server::space::NodeError;
use taktwerk_types::StatusCode;

/// A publisher or subscriber could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PubSubStartError {
    /// The configuration, an address, a socket or a thread.
    #[error(transparent)]
    PubSub(#[from] PubSubError),
    /// A published or target Variable is not there.
    #[error("field {field:?} of {data_set:?}: {source}")]
    Variable {
        /// The data set.
        data_set: String,
        /// The field.
        field: String,
        /// What is wrong with the node.
        source: NodeError,
    },
    /// A data set names Variables, but no server was given that has them.
    #[error(
        "{data_set:?} names Variables of a server: give the builder the address space they are in (space())"
    )]
    NoSpace {
        /// The data set or reader.
        data_set: String,
    },
    /// A data set gets its values from the application, but the application gives none.
    #[error("the data set {data_set:?} has no source of values: call values() with its name")]
    NoValues {
        /// The data set.
        data_set: String,
    },
    /// Actions do something in the world, so they want message security.
    #[error("Actions without message security: call security(), or allow_unsecured() if that is on purpose")]
    UnsecuredActions,
    /// Actions that are to be answered in a form that there is not, or in JSON without saying that this is on purpose.
    #[error("Actions: {0}")]
    Actions(ActionError),
    /// Something the configuration asks for is not supported here.
    #[error("field {field:?} of {data_set:?}: {what} is not supported")]
    Unsupported {
        /// The data set or reader.
        data_set: String,
        /// The field.
        field: String,
        /// What was asked for.
        what: &'static str,
    },
}

impl PubSubStartError {
    /// The matching status.
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
