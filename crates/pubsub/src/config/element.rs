//! Elements of a configuration by their names: what stays the same when positions move.

use super::{Configuration, Connection, DataSetReader, DataSetWriter, ReaderGroup, WriterGroup};
use crate::component::Component;
use crate::publisher::GroupIndex;
use crate::subscriber::ReaderIndex;

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

    /// Which component it is in a configuration; `None` for elements without a state and those that are not there.
    #[must_use]
    pub fn component(&self, configuration: &Configuration) -> Option<Component> {
        let connection = |wanted: &str| {
            let at = configuration.connections.iter().position(|connection| connection.name == wanted)?;
            Some((at, configuration.connections.get(at)?))
        };
        Some(match self {
            Self::DataSet { .. } | Self::SubscribedDataSet { .. } | Self::SecurityGroup { .. } => {
                return None;
            }
            Self::Connection { name } => Component::Connection { connection: connection(name)?.0 },
            Self::WriterGroup { connection: of, name } => {
                let (connection, of) = connection(of)?;
                let group = of.writer_groups.iter().position(|group| group.name == *name)?;
                Component::WriterGroup(GroupIndex { connection, group })
            }
            Self::ReaderGroup { connection: of, name } => {
                let (connection, of) = connection(of)?;
                let group = of.reader_groups.iter().position(|group| group.name == *name)?;
                Component::ReaderGroup { connection, group }
            }
            Self::Writer { connection: of, group: group_name, name } => {
                let (connection, of) = connection(of)?;
                let group = of.writer_groups.iter().position(|group| group.name == *group_name)?;
                let writer = of.writer_groups.get(group)?.writers.iter();
                let writer = writer.clone().position(|writer| writer.name == *name)?;
                Component::DataSetWriter { group: GroupIndex { connection, group }, writer }
            }
            Self::Reader { connection: of, group: group_name, name } => {
                let (connection, of) = connection(of)?;
                let group = of.reader_groups.iter().position(|group| group.name == *group_name)?;
                let reader = of.reader_groups.get(group)?.readers.iter();
                let reader = reader.clone().position(|reader| reader.name == *name)?;
                Component::DataSetReader(ReaderIndex { connection, group, reader })
            }
        })
    }

    /// The element that a component is in a configuration; `None` for the root and those that are not there.
    #[must_use]
    pub fn of(component: Component, configuration: &Configuration) -> Option<Self> {
        let connection = |at: usize| configuration.connections.get(at);
        Some(match component {
            Component::Root => return None,
            Component::Connection { connection: at } => {
                Self::Connection { name: connection(at)?.name.clone() }
            }
            Component::WriterGroup(index) => {
                let of = connection(index.connection)?;
                let name = of.writer_groups.get(index.group)?.name.clone();
                Self::WriterGroup { connection: of.name.clone(), name }
            }
            Component::DataSetWriter { group: index, writer } => {
                let of = connection(index.connection)?;
                let group = of.writer_groups.get(index.group)?;
                let name = group.writers.get(writer)?.name.clone();
                Self::Writer { connection: of.name.clone(), group: group.name.clone(), name }
            }
            Component::ReaderGroup { connection: at, group } => {
                let of = connection(at)?;
                let name = of.reader_groups.get(group)?.name.clone();
                Self::ReaderGroup { connection: of.name.clone(), name }
            }
            Component::DataSetReader(index) => {
                let of = connection(index.connection)?;
                let group = of.reader_groups.get(index.group)?;
                let name = group.readers.get(index.reader)?.name.clone();
                Self::Reader { connection: of.name.clone(), group: group.name.clone(), name }
            }
        })
    }
}

impl Configuration {
    /// A connection by name.
    #[must_use]
    pub fn connection(&self, name: &str) -> Option<&Connection> {
        self.connections.iter().find(|connection| connection.name == name)
    }

    /// A connection by name, to be changed.
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

    /// A WriterGroup by name, to be changed.
    pub fn writer_group_mut(&mut self, name: &str) -> Option<&mut WriterGroup> {
        self.writer_groups.iter_mut().find(|group| group.name == name)
    }

    /// A ReaderGroup by name.
    #[must_use]
    pub fn reader_group(&self, name: &str) -> Option<&ReaderGroup> {
        self.reader_groups.iter().find(|group| group.name == name)
    }

    /// A ReaderGroup by name, to be changed.
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

    /// A DataSetReader by name, to be changed.
    pub fn reader_mut(&mut self, name: &str) -> Option<&mut DataSetReader> {
        self.readers.iter_mut().find(|reader| reader.name == name)
    }
}
