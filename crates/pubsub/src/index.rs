//! Positions of the engines' parts in a configuration.

/// A WriterGroup: positions in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIndex {
    /// Of the connection.
    pub connection: usize,
    /// Of the group in it.
    pub group: usize,
}

/// A DataSetReader: positions in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderIndex {
    /// Of the connection.
    pub connection: usize,
    /// Of the group in it.
    pub group: usize,
    /// Of the reader in the group.
    pub reader: usize,
}
