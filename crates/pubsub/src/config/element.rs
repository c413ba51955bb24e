//! Elements of a configuration by name, which does not change when positions do.

use super::{Configuration, Connection, DataSetReader, DataSetWriter, ReaderGroup, WriterGroup};

/// An element of a configuration, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the fields are names of what they are named after
pub enum Element {
    /// A PublishedDataSet.
    DataSet { name: String },
    /// A standalone SubscribedDataSet.
    SubscribedDataSet { name: String },
    /// A SecurityGroup.
    SecurityGroup { name: String },
    /// A PubSubConnection.
    Connection { name: String },
    /// A WriterGroup.
    WriterGroup { connection: String, name: String },
    /// A ReaderGroup.
    ReaderGroup { connection: String, name: String },
    /// A DataSetWriter.
    Writer { connection: String, group: String, name: String },
    /// A DataSetReader.
    Reader { connection: String, group: String, name: String },
}

impl Element {
    /// Its own name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::DataSet { name }
            | Self::SubscribedDataSet { name }
            | Self::SecurityGroup { name }
            | Self::Connection { name }
            | Self::WriterGroup { name, .. }
            | Self::ReaderGroup { name, .. }
            | Self::Writer { name, .. }
            | Self::Reader { name, .. } => name,
        }
    }
}

impl Configuration {
    /// A connection by name.
    #[must_use]
    pub fn connection(&self, name: &str) -> Option<&Connection> {
        self.connections.iter().find(|connection| connection.name == name)
    }

    /// A connection by name, mutable.
    pub fn connection_mut(&mut self, name: &str) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.name == name)
    }
}

impl Connection {
    /// A WriterGroup by name.
    #[must_use]
    pub fn writer_group(&self, name: &str) -> Option<&WriterGroup> {
        self.writer_groups.iter().find(|group| group.name == name)
    }

    /// A WriterGroup by name, mutable.
    pub fn writer_group_mut(&mut self, name: &str) -> Option<&mut WriterGroup> {
        self.writer_groups.iter_mut().find(|group| group.name == name)
    }

    /// A ReaderGroup by name.
    #[must_use]
    pub fn reader_group(&self, name: &str) -> Option<&ReaderGroup> {
        self.reader_groups.iter().find(|group| group.name == name)
    }

    /// A ReaderGroup by name, mutable.
    pub fn reader_group_mut(&mut self, name: &str) -> Option<&mut ReaderGroup> {
        self.reader_groups.iter_mut().find(|group| group.name == name)
    }
}

impl WriterGroup {
    /// A DataSetWriter by name.
    #[must_use]
    pub fn writer(&self, name: &str) -> Option<&DataSetWriter> {
        self.writers.iter().find(|writer| writer.name == name)
    }
}

impl ReaderGroup {
    /// A DataSetReader by name.
    #[must_use]
    pub fn reader(&self, name: &str) -> Option<&DataSetReader> {
        self.readers.iter().find(|reader| reader.name == name)
    }

    /// A DataSetReader by name, mutable.
    pub fn reader_mut(&mut self, name: &str) -> Option<&mut DataSetReader> {
        self.readers.iter_mut().find(|reader| reader.name == name)
    }
}
