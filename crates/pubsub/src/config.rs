//! The typed PubSub configuration: enums for what Part 14 §6.2 puts into ExtensionObjects.
//!
//! It converts without loss from and to the standard structures ([`Configuration::from_schema`],
//! [`Configuration::to_schema`]) and the standard binary file ([`binary_file`]), and with the feature `serde` from and
//! to TOML (`toml`). [`validate`] reports its problems.

use crate::publisher_id::PublisherId;
use crate::uadp::SecurityMode;
use taktwerk_schema::{
    BrokerConnectionTransportDataType, BrokerDataSetReaderTransportDataType,
    BrokerDataSetWriterTransportDataType, BrokerWriterGroupTransportDataType, DataSetFieldContentMask,
    DataSetMetaDataType, DatagramConnectionTransport2DataType, DatagramConnectionTransportDataType,
    DatagramDataSetReaderTransportDataType, DatagramWriterGroupTransport2DataType,
    DatagramWriterGroupTransportDataType, EndpointDescription, JsonDataSetReaderMessageDataType,
    JsonDataSetWriterMessageDataType, JsonWriterGroupMessageDataType, KeyValuePair,
    PubSubKeyPushTargetDataType, PublishedActionDataType, PublishedActionMethodDataType,
    PublishedEventsDataType, PublishedVariableDataType, SecurityGroupDataType,
    StandaloneSubscribedDataSetDataType, SubscribedDataSetMirrorDataType, TargetVariablesDataType,
    UadpDataSetReaderMessageDataType, UadpDataSetWriterMessageDataType, UadpWriterGroupMessageDataType,
};
use taktwerk_types::ExtensionObject;

pub mod binary_file;
pub mod build;
pub mod element;
pub mod layouts;
pub mod reserve;
mod schema;
#[cfg(feature = "serde")]
pub mod toml;
pub mod unused;
pub mod update;
pub mod validate;
pub mod version;

pub use element::Element;
pub use schema::ConversionError;
pub use validate::{Problem, validate};

/// UADP over UDP.
pub const TRANSPORT_UDP_UADP: &str = "http://opcfoundation.org/UA-Profile/Transport/pubsub-udp-uadp";
/// UADP over Ethernet.
pub const TRANSPORT_ETH_UADP: &str = "http://opcfoundation.org/UA-Profile/Transport/pubsub-eth-uadp";
/// UADP over MQTT.
pub const TRANSPORT_MQTT_UADP: &str = "http://opcfoundation.org/UA-Profile/Transport/pubsub-mqtt-uadp";
/// JSON over MQTT.
pub const TRANSPORT_MQTT_JSON: &str = "http://opcfoundation.org/UA-Profile/Transport/pubsub-mqtt-json";

/// A URL without the user and password of a broker, for display.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://{host}"),
        None => url.to_owned(),
    }
}

/// A broker's URL with the password of the user in it.
///
/// # Errors
/// It contains no user, contains a password already, or is not a broker's, or the password would end the user part of
/// the URL.
pub fn with_password(url: &str, password: &str) -> Result<String, &'static str> {
    let rest = url.split_once("://").filter(|(scheme, _)| scheme.starts_with("mqtt"));
    let Some((scheme, rest)) = rest else { return Err("a password is for brokers: mqtts://user@host") };
    let Some((user, host)) = rest.rsplit_once('@').filter(|(user, _)| !user.is_empty()) else {
        return Err("a password was given, but the URL names no user: write mqtts://user@host");
    };
    if user.contains(':') {
        return Err("the URL has a password already: remove one of the two");
    }
    if password.is_empty() || password.contains(['/', '\n', '\r']) {
        return Err("the password is empty or contains a /, which would end the user part of the URL");
    }
    Ok(format!("{scheme}://{user}:{password}@{host}"))
}

/// A whole PubSub configuration (PubSubConfiguration2DataType, Part 14 §6.2.12.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Configuration {
    /// Whether PubSub runs.
    pub enabled: bool,
    /// Published data sets.
    pub data_sets: Vec<PublishedDataSet>,
    /// Connections, with everything that is sent and received on them.
    pub connections: Vec<Connection>,
    /// Standalone subscribed data sets.
    pub subscribed_data_sets: Vec<StandaloneSubscribedDataSetDataType>,
    /// DataSetClasses that the application knows.
    pub data_set_classes: Vec<DataSetMetaDataType>,
    /// Key services for groups without their own.
    pub default_security_key_services: Vec<EndpointDescription>,
    /// Groups whose keys this server manages.
    pub security_groups: Vec<SecurityGroupDataType>,
    /// Servers that keys are pushed to.
    pub key_push_targets: Vec<PubSubKeyPushTargetDataType>,
    /// VersionTime of the last change.
    pub configuration_version: u32,
    /// Other properties.
    pub properties: Vec<KeyValuePair>,
}

/// A PublishedDataSet (Part 14 §6.2.3).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PublishedDataSet {
    /// Unique name.
    pub name: String,
    /// Folders that contain it.
    pub folder: Vec<String>,
    /// Its fields.
    pub meta_data: DataSetMetaDataType,
    /// Constant fields.
    pub extension_fields: Vec<KeyValuePair>,
    /// Source of its values.
    pub source: DataSetSource,
}

/// Source of a PublishedDataSet's values.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DataSetSource {
    /// Variables of a server, one for each field.
    Items(Vec<PublishedVariableDataType>),
    /// Events of a server.
    Events(Box<PublishedEventsDataType>),
    /// The application itself.
    Custom {
        /// Values are sent in every cycle; otherwise when the application provides some.
        cyclic: bool,
    },
    /// Actions of the application.
    Actions(Box<PublishedActionDataType>),
    /// Actions that are Methods of a server.
    ActionMethods(Box<PublishedActionMethodDataType>),
}

impl Default for DataSetSource {
    fn default() -> Self {
        Self::Custom { cyclic: true }
    }
}

/// A PubSubConnection (Part 14 §6.2.7).
#[derive(Clone, PartialEq, Default)]
pub struct Connection {
    /// Unique name.
    pub name: String,
    /// Whether it runs.
    pub enabled: bool,
    /// PublisherId for publishing.
    pub publisher_id: Option<PublisherId>,
    /// The transport: one of the `TRANSPORT_` constants.
    pub transport_profile_uri: String,
    /// Network interface; empty for the default one.
    pub network_interface: String,
    /// Address: `opc.udp://239.0.0.1:4840`, `opc.eth://01-00-5E-00-00-01`, `mqtt://broker:1883`.
    pub url: String,
    /// Settings of the transport.
    pub transport: ConnectionTransport,
    /// Other properties.
    pub properties: Vec<KeyValuePair>,
    /// WriterGroups.
    pub writer_groups: Vec<WriterGroup>,
    /// ReaderGroups.
    pub reader_groups: Vec<ReaderGroup>,
}

impl core::fmt::Debug for Connection {
    /// Prints everything except the password in the URL.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name)
            .field("enabled", &self.enabled)
            .field("publisher_id", &self.publisher_id)
            .field("transport_profile_uri", &self.transport_profile_uri)
            .field("network_interface", &self.network_interface)
            .field("url", &without_credentials(&self.url))
            .field("transport", &self.transport)
            .field("properties", &self.properties)
            .field("writer_groups", &self.writer_groups)
            .field("reader_groups", &self.reader_groups)
            .finish()
    }
}

/// Transport settings of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
#[allow(missing_docs)] // each is the structure it holds
pub enum ConnectionTransport {
    #[default]
    None,
    Datagram(DatagramConnectionTransportDataType),
    Datagram2(DatagramConnectionTransport2DataType),
    Broker(BrokerConnectionTransportDataType),
    /// An unknown kind.
    Other(ExtensionObject),
}

/// Message security of a group or reader.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupSecurity {
    /// Required security; received messages with less are refused.
    pub mode: SecurityMode,
    /// The SecurityGroup of the keys.
    pub security_group_id: String,
    /// Servers that provide the keys.
    pub security_key_services: Vec<EndpointDescription>,
}

impl GroupSecurity {
    /// Raises the security to at least `mode`; an existing SecurityGroup stays.
    pub fn strengthen(&mut self, mode: SecurityMode, security_group_id: &str) {
        self.mode = self.mode.max(mode);
        if self.security_group_id.is_empty() && mode != SecurityMode::None {
            self.security_group_id = security_group_id.to_owned();
        }
    }
}

impl Configuration {
    /// Raises the message security of all WriterGroups to at least `mode`; those without a SecurityGroup get this one.
    pub fn strengthen_writers(&mut self, mode: SecurityMode, security_group_id: &str) {
        let groups = self.connections.iter_mut().flat_map(|connection| &mut connection.writer_groups);
        groups.for_each(|group| group.security.strengthen(mode, security_group_id));
    }

    /// The same for all ReaderGroups, and for DataSetReaders with their own settings.
    pub fn strengthen_readers(&mut self, mode: SecurityMode, security_group_id: &str) {
        for group in self.connections.iter_mut().flat_map(|connection| &mut connection.reader_groups) {
            group.security.strengthen(mode, security_group_id);
            let own = group.readers.iter_mut().filter_map(|reader| reader.security.as_mut());
            own.for_each(|security| security.strengthen(mode, security_group_id));
        }
    }
}

/// A WriterGroup (Part 14 §6.2.6).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WriterGroup {
    /// Unique name within the connection.
    pub name: String,
    /// Whether it runs.
    pub enabled: bool,
    /// Its id within the publisher; 0 is none.
    pub writer_group_id: u16,
    /// Message security.
    pub security: GroupSecurity,
    /// Maximum NetworkMessage in bytes; 0 uses the transport's limit.
    pub max_network_message_size: u32,
    /// Milliseconds between cycles.
    pub publishing_interval: f64,
    /// Milliseconds without a message after which a keep-alive is sent.
    pub keep_alive_time: f64,
    /// Priority among groups of a connection.
    pub priority: u8,
    /// Preferred locales.
    pub locale_ids: Vec<String>,
    /// URI of the header layout, if it is one of Annex A.
    pub header_layout_uri: String,
    /// Settings of the transport.
    pub transport: WriterGroupTransport,
    /// The message mapping.
    pub message: WriterGroupMessage,
    /// Other properties.
    pub properties: Vec<KeyValuePair>,
    /// DataSetWriters.
    pub writers: Vec<DataSetWriter>,
}

/// Transport settings of a WriterGroup.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
#[allow(missing_docs)] // each is the structure it holds
pub enum WriterGroupTransport {
    #[default]
    None,
    Datagram(DatagramWriterGroupTransportDataType),
    Datagram2(DatagramWriterGroupTransport2DataType),
    Broker(BrokerWriterGroupTransportDataType),
    /// An unknown kind.
    Other(ExtensionObject),
}

/// The message mapping of a WriterGroup.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // each is the structure it holds
pub enum WriterGroupMessage {
    Uadp(UadpWriterGroupMessageDataType),
    Json(JsonWriterGroupMessageDataType),
    /// An unknown kind.
    Other(ExtensionObject),
}

impl Default for WriterGroupMessage {
    fn default() -> Self {
        Self::Uadp(layouts::dynamic_group())
    }
}

/// A DataSetWriter (Part 14 §6.2.4).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataSetWriter {
    /// Unique name within the group.
    pub name: String,
    /// Whether it runs.
    pub enabled: bool,
    /// Its id within the publisher; not 0.
    pub data_set_writer_id: u16,
    /// What to send of each field.
    pub field_content_mask: DataSetFieldContentMask,
    /// Every n-th message is a key frame; 1: all, 0: for events.
    pub key_frame_count: u32,
    /// The name of its PublishedDataSet; empty for a heartbeat.
    pub data_set_name: String,
    /// Settings of the transport.
    pub transport: DataSetWriterTransport,
    /// Settings of the message mapping.
    pub message: DataSetWriterMessage,
    /// Other properties.
    pub properties: Vec<KeyValuePair>,
}

/// Transport settings of a DataSetWriter.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
#[allow(missing_docs)] // each is the structure it holds
pub enum DataSetWriterTransport {
    #[default]
    None,
    Broker(BrokerDataSetWriterTransportDataType),
    /// An unknown kind.
    Other(ExtensionObject),
}

/// The message mapping of a DataSetWriter, the same as its group's.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // each is the structure it holds
pub enum DataSetWriterMessage {
    Uadp(UadpDataSetWriterMessageDataType),
    Json(JsonDataSetWriterMessageDataType),
    /// An unknown kind.
    Other(ExtensionObject),
}

impl Default for DataSetWriterMessage {
    fn default() -> Self {
        Self::Uadp(layouts::dynamic_writer())
    }
}

/// A ReaderGroup (Part 14 §6.2.8).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReaderGroup {
    /// Unique name within the connection.
    pub name: String,
    /// Whether it runs.
    pub enabled: bool,
    /// Message security of its readers.
    pub security: GroupSecurity,
    /// Maximum NetworkMessage in bytes; 0 uses the transport's limit.
    pub max_network_message_size: u32,
    /// Settings of the transport.
    pub transport: ExtensionObject,
    /// Settings of the message mapping.
    pub message: ExtensionObject,
    /// Other properties.
    pub properties: Vec<KeyValuePair>,
    /// DataSetReaders.
    pub readers: Vec<DataSetReader>,
}

/// A DataSetReader (Part 14 §6.2.9): selects DataSetMessages and describes their fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataSetReader {
    /// Unique name within the group.
    pub name: String,
    /// Whether it runs.
    pub enabled: bool,
    /// PublisherId to receive from; `None`: any.
    pub publisher_id: Option<PublisherId>,
    /// WriterGroup to receive from; 0: any.
    pub writer_group_id: u16,
    /// DataSetWriter to receive from; 0: any.
    pub data_set_writer_id: u16,
    /// The fields.
    pub meta_data: DataSetMetaDataType,
    /// What is sent of each field.
    pub field_content_mask: DataSetFieldContentMask,
    /// Milliseconds without a message after which the reader is in error; 0: never.
    pub message_receive_timeout: f64,
    /// The writer's KeyFrameCount.
    pub key_frame_count: u32,
    /// URI of the header layout, if it is one of Annex A.
    pub header_layout_uri: String,
    /// Message security, if it differs from the group's.
    pub security: Option<GroupSecurity>,
    /// Settings of the transport.
    pub transport: DataSetReaderTransport,
    /// Settings of the message mapping.
    pub message: DataSetReaderMessage,
    /// Use of the values.
    pub subscribed_data_set: SubscribedDataSet,
    /// Other properties.
    pub properties: Vec<KeyValuePair>,
}

/// Transport settings of a DataSetReader.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
#[allow(missing_docs)] // each is the structure it holds
pub enum DataSetReaderTransport {
    #[default]
    None,
    Datagram(DatagramDataSetReaderTransportDataType),
    Broker(BrokerDataSetReaderTransportDataType),
    /// An unknown kind.
    Other(ExtensionObject),
}

/// The message mapping of a DataSetReader.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // each is the structure it holds
pub enum DataSetReaderMessage {
    Uadp(UadpDataSetReaderMessageDataType),
    Json(JsonDataSetReaderMessageDataType),
    /// An unknown kind.
    Other(ExtensionObject),
}

impl Default for DataSetReaderMessage {
    fn default() -> Self {
        Self::Uadp(UadpDataSetReaderMessageDataType::default())
    }
}

/// Use of received values (Part 14 §6.2.10).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum SubscribedDataSet {
    /// The application receives them.
    #[default]
    None,
    /// They are written to Variables of a server.
    TargetVariables(TargetVariablesDataType),
    /// A server shows them as new Variables.
    Mirror(SubscribedDataSetMirrorDataType),
    /// An unknown kind, or the name of a standalone data set.
    Other(ExtensionObject),
}
