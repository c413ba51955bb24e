//! Settings that are kept, shown and passed on, but have no effect. Users must be told about them.

use super::{
    Configuration, Connection, ConnectionTransport, DataSetReaderTransport, DataSetWriterTransport, Problem,
    WriterGroupTransport,
};
use taktwerk_schema::DatagramConnectionTransport2DataType;
use taktwerk_types::{ExtensionObject, UaString};

const QUALITY: &str =
    "QosCategory and DatagramQos are not used: datagrams are sent with the kernel's default";
const CREDENTIALS: &str =
    "ResourceUri and AuthenticationProfileUri are not used: give the broker's user and password with its URL";

/// Settings of publishers without effect.
#[must_use]
pub fn unused_by_publishers(configuration: &Configuration) -> Vec<Problem> {
    let mut found = Found::default();
    for connection in configuration.connections.iter().filter(|one| !one.writer_groups.is_empty()) {
        let element = format!("connection {:?}", connection.name);
        found.connection(&element, connection);
        for group in &connection.writer_groups {
            let element = format!("{element} / writer group {:?}", group.name);
            if !group.locale_ids.is_empty() {
                found.add(&element, "LocaleIds are not used: texts are sent in their own locale");
            }
            if group.priority != 0 {
                found.add(&element, "Priority is not used: groups are sent in the order of their times");
            }
            match &group.transport {
                WriterGroupTransport::Datagram2(of) => {
                    found.quality(&element, &of.qos_category, &of.datagram_qos);
                    if !of.topic.is_empty() {
                        found.add(&element, "Topic is not used: datagrams have none");
                    }
                }
                WriterGroupTransport::Broker(of) => {
                    found.credentials(&element, &of.resource_uri, &of.authentication_profile_uri);
                }
                _ => {}
            }
            for writer in &group.writers {
                let element = format!("{element} / writer {:?}", writer.name);
                let DataSetWriterTransport::Broker(of) = &writer.transport else { continue };
                found.credentials(&element, &of.resource_uri, &of.authentication_profile_uri);
            }
        }
    }
    found.problems
}

/// Settings of subscribers without effect.
#[must_use]
pub fn unused_by_subscribers(configuration: &Configuration) -> Vec<Problem> {
    let mut found = Found::default();
    for connection in configuration.connections.iter().filter(|one| !one.reader_groups.is_empty()) {
        let element = format!("connection {:?}", connection.name);
        // A connection with publishers reports it there.
        if connection.writer_groups.is_empty() {
            found.connection(&element, connection);
        }
        for group in &connection.reader_groups {
            for reader in &group.readers {
                let element = format!("{element} / reader group {:?} / reader {:?}", group.name, reader.name);
                match &reader.transport {
                    DataSetReaderTransport::Datagram(of) => {
                        found.quality(&element, &of.qos_category, &of.datagram_qos);
                        if !of.address.is_null() {
                            found.add(
                                &element,
                                "Address is not used: give the reader a connection of its own",
                            );
                        }
                        if !of.topic.is_empty() {
                            found.add(&element, "Topic is not used: datagrams have none");
                        }
                    }
                    DataSetReaderTransport::Broker(of) => {
                        found.credentials(&element, &of.resource_uri, &of.authentication_profile_uri);
                    }
                    _ => {}
                }
            }
        }
    }
    found.problems
}

/// Maximum announcement of a connection in bytes (DiscoveryMaxMessageSize, Part 14 §6.4.1.2.4); `None`: unlimited.
#[must_use]
pub fn discovery_message_len_max(connection: &Connection) -> Option<usize> {
    let ConnectionTransport::Datagram2(of) = &connection.transport else { return None };
    usize::try_from(of.discovery_max_message_size).ok().filter(|len| *len > 0)
}

#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
}

impl Found {
    fn add(&mut self, element: &str, message: &str) {
        self.problems.push(Problem { element: element.to_owned(), message: message.to_owned() });
    }

    fn connection(&mut self, element: &str, connection: &Connection) {
        match &connection.transport {
            ConnectionTransport::Datagram2(DatagramConnectionTransport2DataType {
                qos_category,
                datagram_qos,
                ..
            }) => self.quality(element, qos_category, datagram_qos),
            ConnectionTransport::Broker(of) => {
                self.credentials(element, &of.resource_uri, &of.authentication_profile_uri);
            }
            _ => {}
        }
    }

    fn quality(&mut self, element: &str, category: &UaString, qualities: &[ExtensionObject]) {
        if !category.is_empty() || !qualities.is_empty() {
            self.add(element, QUALITY);
        }
    }

    fn credentials(&mut self, element: &str, resource: &UaString, profile: &UaString) {
        if !resource.is_empty() || !profile.is_empty() {
            self.add(element, CREDENTIALS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DataSetReader, DataSetWriter, ReaderGroup, WriterGroup};
    use super::*;
    use taktwerk_schema::{
        BrokerConnectionTransportDataType, BrokerDataSetWriterTransportDataType,
        DatagramDataSetReaderTransportDataType, DatagramWriterGroupTransport2DataType,
    };

    #[test]
    fn settings_without_effect_are_reported() {
        let mut connection = Connection::new("udp", None, "opc.udp://239.0.0.1");
        connection.transport = ConnectionTransport::Datagram2(DatagramConnectionTransport2DataType {
            discovery_announce_rate: 5,
            discovery_max_message_size: 700,
            ..Default::default()
        });
        assert_eq!(discovery_message_len_max(&connection), Some(700));
        let mut group = WriterGroup::dynamic("g", 1, 10.0);
        group.writers.push(DataSetWriter::dynamic("w", 1, "d"));
        connection.writer_groups.push(group);
        let reader = DataSetReader { name: "r".into(), ..DataSetReader::default() };
        connection.reader_groups.push(ReaderGroup::new("in", vec![reader]));
        let mut configuration = Configuration { connections: vec![connection], ..Configuration::default() };
        assert_eq!(unused_by_publishers(&configuration), []);
        assert_eq!(unused_by_subscribers(&configuration), []);
        let connection = &mut configuration.connections[0];
        let group = &mut connection.writer_groups[0];
        (group.priority, group.locale_ids) = (1, vec!["de".into()]);
        group.transport = WriterGroupTransport::Datagram2(DatagramWriterGroupTransport2DataType {
            message_repeat_count: 2,
            qos_category: "opc.qos.cat://priority".into(),
            topic: "t".into(),
            ..Default::default()
        });
        group.writers[0].transport = DataSetWriterTransport::Broker(BrokerDataSetWriterTransportDataType {
            meta_data_update_time: 1000.0,
            resource_uri: "urn:broker".into(),
            ..Default::default()
        });
        connection.reader_groups[0].readers[0].transport =
            DataSetReaderTransport::Datagram(DatagramDataSetReaderTransportDataType {
                address: ExtensionObject::new(&taktwerk_schema::NetworkAddressUrlDataType::default()),
                topic: "t".into(),
                ..Default::default()
            });
        connection.transport = ConnectionTransport::Broker(BrokerConnectionTransportDataType {
            resource_uri: "urn:broker".into(),
            ..Default::default()
        });
        let names = |problems: Vec<Problem>| -> Vec<String> {
            let first = |problem: Problem| problem.message.split(' ').next().unwrap_or_default().to_owned();
            problems.into_iter().map(first).collect()
        };
        assert_eq!(
            names(unused_by_publishers(&configuration)),
            ["ResourceUri", "LocaleIds", "Priority", "QosCategory", "Topic", "ResourceUri"]
        );
        assert_eq!(names(unused_by_subscribers(&configuration)), ["Address", "Topic"]);
    }
}
