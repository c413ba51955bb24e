//! Server data that is read after connecting.

use crate::limits::OperationLimits;
use crate::namespaces::Namespaces;

/// Server data that is read after connecting.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// Published limits, and lower ones learned from refused requests.
    pub(crate) limits: OperationLimits,
    /// Its NamespaceArray; empty if it was not read.
    pub(crate) namespaces: Namespaces,
}
