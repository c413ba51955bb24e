//! What is read of a server after connecting.

use crate::limits::OperationLimits;
use crate::namespaces::Namespaces;

/// What is read of a server after connecting.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// As published, and as learned from requests that were too large.
    pub(crate) limits: OperationLimits,
    /// Its NamespaceArray; empty if it was not read.
    pub(crate) namespaces: Namespaces,
}
