//! Conversion between elements, which have names, and components, which have positions.

use super::Component;
use crate::config::{Configuration, Element};
use crate::index::{GroupIndex, ReaderIndex};

impl Element {
    /// The component of an element; `None` for elements without a state and missing ones.
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

    /// The element of a component; `None` for the root and missing ones.
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
