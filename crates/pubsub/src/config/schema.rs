//! Conversion between the typed configuration and the standard structures. Lossless: settings of unknown kinds are
//! kept.

use super::{
    Configuration, Connection, ConnectionTransport, DataSetReader, DataSetReaderMessage,
    DataSetReaderTransport, DataSetSource, DataSetWriter, DataSetWriterMessage, DataSetWriterTransport,
    GroupSecurity, PublishedDataSet, ReaderGroup, SubscribedDataSet, WriterGroup, WriterGroupMessage,
    WriterGroupTransport,
};
use crate::publisher_id::PublisherId;
use crate::uadp::SecurityMode;
use taktwerk_schema::{
    DataSetReaderDataType, DataSetWriterDataType, EndpointDescription, MessageSecurityMode,
    NetworkAddressUrlDataType, PubSubConfiguration2DataType, PubSubConnectionDataType,
    PublishedDataItemsDataType, PublishedDataSetCustomSourceDataType, PublishedDataSetDataType,
    ReaderGroupDataType, WriterGroupDataType,
};
use taktwerk_types::{DecodeError, ExtensionObject, Structure, UaString, Variant};

/// A standard structure that is not a valid configuration.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{element}: {reason}")]
pub struct ConversionError {
    /// The part of the configuration, such as `connection "udp" / writer group "fast"`.
    pub element: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ConversionError {
    fn new(element: impl Into<String>, reason: impl ToString) -> Self {
        Self { element: element.into(), reason: reason.to_string() }
    }

    fn inside(mut self, element: &str) -> Self {
        self.element = format!("{element} / {}", self.element);
        self
    }
}

type Result<T> = core::result::Result<T, ConversionError>;

/// Settings of several kinds: an ExtensionObject becomes a variant of an enumeration and converts back to the same
/// ExtensionObject. Unknown kinds are kept.
macro_rules! settings {
    ($($target:ident { $([$none:ident])? $($variant:ident: $type:ty),* $(,)? })*) => {$(
        impl $target {
            fn from_object(object: &ExtensionObject, what: &str) -> Result<Self> {
                $(if object.is_null() {
                    return Ok(Self::$none);
                })?
                $(if object.is::<$type>() {
                    let value: core::result::Result<$type, DecodeError> = object.decode();
                    return value.map(Self::$variant).map_err(|error| ConversionError::new(what, error));
                })*
                Ok(Self::Other(object.clone()))
            }

            fn to_object(&self) -> ExtensionObject {
                match self {
                    $(Self::$none => ExtensionObject::NULL,)?
                    $(Self::$variant(settings) => object(settings),)*
                    Self::Other(settings) => settings.clone(),
                }
            }
        }
    )*};
}

settings! {
    ConnectionTransport {
        [None]
        Datagram: taktwerk_schema::DatagramConnectionTransportDataType,
        Datagram2: taktwerk_schema::DatagramConnectionTransport2DataType,
        Broker: taktwerk_schema::BrokerConnectionTransportDataType,
    }
    WriterGroupTransport {
        [None]
        Datagram: taktwerk_schema::DatagramWriterGroupTransportDataType,
        Datagram2: taktwerk_schema::DatagramWriterGroupTransport2DataType,
        Broker: taktwerk_schema::BrokerWriterGroupTransportDataType,
    }
    DataSetWriterTransport {
        [None]
        Broker: taktwerk_schema::BrokerDataSetWriterTransportDataType,
    }
    DataSetReaderTransport {
        [None]
        Datagram: taktwerk_schema::DatagramDataSetReaderTransportDataType,
        Broker: taktwerk_schema::BrokerDataSetReaderTransportDataType,
    }
    SubscribedDataSet {
        [None]
        TargetVariables: taktwerk_schema::TargetVariablesDataType,
        Mirror: taktwerk_schema::SubscribedDataSetMirrorDataType,
    }
    WriterGroupMessage {
        Uadp: taktwerk_schema::UadpWriterGroupMessageDataType,
        Json: taktwerk_schema::JsonWriterGroupMessageDataType,
    }
    DataSetWriterMessage {
        Uadp: taktwerk_schema::UadpDataSetWriterMessageDataType,
        Json: taktwerk_schema::JsonDataSetWriterMessageDataType,
    }
    DataSetReaderMessage {
        Uadp: taktwerk_schema::UadpDataSetReaderMessageDataType,
        Json: taktwerk_schema::JsonDataSetReaderMessageDataType,
    }
}

fn text(value: &UaString) -> String {
    value.as_str().to_owned()
}

fn texts(values: &[UaString]) -> Vec<String> {
    values.iter().map(text).collect()
}

fn ua(value: &str) -> UaString {
    if value.is_empty() { UaString::NULL } else { value.into() }
}

fn uas(values: &[String]) -> Vec<UaString> {
    values.iter().map(|value| value.as_str().into()).collect()
}

fn object<T: Structure>(value: &T) -> ExtensionObject {
    ExtensionObject::new(value)
}

fn publisher_id(value: &Variant, what: &str) -> Result<Option<PublisherId>> {
    if value.is_empty() {
        return Ok(None);
    }
    match PublisherId::from_variant(value) {
        Some(id) => Ok(Some(id)),
        None => {
            let reason = format!("PublisherId is {}, not an unsigned integer or String", value.type_name());
            Err(ConversionError::new(what, reason))
        }
    }
}

fn mode(mode: MessageSecurityMode, what: &str) -> Result<SecurityMode> {
    match mode {
        // Invalid is the structure's default and means that it is not configured here.
        MessageSecurityMode::NONE | MessageSecurityMode::INVALID => Ok(SecurityMode::None),
        MessageSecurityMode::SIGN => Ok(SecurityMode::Sign),
        MessageSecurityMode::SIGN_AND_ENCRYPT => Ok(SecurityMode::SignAndEncrypt),
        other => Err(ConversionError::new(what, format!("SecurityMode {other} is unknown"))),
    }
}

fn wire_mode(mode: SecurityMode) -> MessageSecurityMode {
    match mode {
        SecurityMode::None => MessageSecurityMode::NONE,
        SecurityMode::Sign => MessageSecurityMode::SIGN,
        SecurityMode::SignAndEncrypt => MessageSecurityMode::SIGN_AND_ENCRYPT,
    }
}

fn security(
    wire: MessageSecurityMode,
    group_id: &UaString,
    services: &[EndpointDescription],
    what: &str,
) -> Result<GroupSecurity> {
    Ok(GroupSecurity {
        mode: mode(wire, what)?,
        security_group_id: text(group_id),
        security_key_services: services.to_vec(),
    })
}

impl Configuration {
    /// From the standard structure.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn from_schema(source: &PubSubConfiguration2DataType) -> Result<Self> {
        Ok(Self {
            enabled: source.enabled,
            data_sets: source
                .published_data_sets
                .iter()
                .map(PublishedDataSet::from_schema)
                .collect::<Result<_>>()?,
            connections: source.connections.iter().map(Connection::from_schema).collect::<Result<_>>()?,
            subscribed_data_sets: source.subscribed_data_sets.clone(),
            data_set_classes: source.data_set_classes.clone(),
            default_security_key_services: source.default_security_key_services.clone(),
            security_groups: source.security_groups.clone(),
            key_push_targets: source.pub_sub_key_push_targets.clone(),
            configuration_version: source.configuration_version,
            properties: source.configuration_properties.clone(),
        })
    }

    /// Converts to the standard structure.
    #[must_use]
    pub fn to_schema(&self) -> PubSubConfiguration2DataType {
        PubSubConfiguration2DataType {
            published_data_sets: self.data_sets.iter().map(PublishedDataSet::to_schema).collect(),
            connections: self.connections.iter().map(Connection::to_schema).collect(),
            enabled: self.enabled,
            subscribed_data_sets: self.subscribed_data_sets.clone(),
            data_set_classes: self.data_set_classes.clone(),
            default_security_key_services: self.default_security_key_services.clone(),
            security_groups: self.security_groups.clone(),
            pub_sub_key_push_targets: self.key_push_targets.clone(),
            configuration_version: self.configuration_version,
            configuration_properties: self.properties.clone(),
        }
    }
}

impl PublishedDataSet {
    /// From the standard structure.
    ///
    /// # Errors
    /// The source is malformed or of an unknown kind.
    pub fn from_schema(source: &PublishedDataSetDataType) -> Result<Self> {
        let what = || format!("data set {:?}", source.name.as_str());
        let object = &source.data_set_source;
        let malformed = |error: DecodeError| ConversionError::new(what(), error);
        let data_source = if object.is::<PublishedDataItemsDataType>() {
            let items: PublishedDataItemsDataType = object.decode().map_err(malformed)?;
            DataSetSource::Items(items.published_data)
        } else if object.is::<taktwerk_schema::PublishedEventsDataType>() {
            DataSetSource::Events(Box::new(object.decode().map_err(malformed)?))
        } else if object.is::<taktwerk_schema::PublishedActionMethodDataType>() {
            DataSetSource::ActionMethods(Box::new(object.decode().map_err(malformed)?))
        } else if object.is::<taktwerk_schema::PublishedActionDataType>() {
            DataSetSource::Actions(Box::new(object.decode().map_err(malformed)?))
        } else if object.is::<PublishedDataSetCustomSourceDataType>() {
            let custom: PublishedDataSetCustomSourceDataType = object.decode().map_err(malformed)?;
            DataSetSource::Custom { cyclic: custom.cyclic_data_set }
        } else if object.is_null() {
            DataSetSource::Custom { cyclic: false }
        } else {
            let reason = format!("a source of type {} is not known", object.type_id);
            return Err(ConversionError::new(what(), reason));
        };
        Ok(Self {
            name: text(&source.name),
            folder: texts(&source.data_set_folder),
            meta_data: source.data_set_meta_data.clone(),
            extension_fields: source.extension_fields.clone(),
            source: data_source,
        })
    }

    /// Converts to the standard structure.
    #[must_use]
    pub fn to_schema(&self) -> PublishedDataSetDataType {
        PublishedDataSetDataType {
            name: ua(&self.name),
            data_set_folder: uas(&self.folder),
            data_set_meta_data: self.meta_data.clone(),
            extension_fields: self.extension_fields.clone(),
            data_set_source: match &self.source {
                DataSetSource::Items(items) => {
                    object(&PublishedDataItemsDataType { published_data: items.clone() })
                }
                DataSetSource::Events(events) => object(&**events),
                DataSetSource::Custom { cyclic } => {
                    object(&PublishedDataSetCustomSourceDataType { cyclic_data_set: *cyclic })
                }
                DataSetSource::Actions(actions) => object(&**actions),
                DataSetSource::ActionMethods(actions) => object(&**actions),
            },
        }
    }
}

impl Connection {
    /// From the standard structure.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn from_schema(source: &PubSubConnectionDataType) -> Result<Self> {
        let what = format!("connection {:?}", source.name.as_str());
        let address = if source.address.is_null() {
            NetworkAddressUrlDataType::default()
        } else {
            source.address.decode().map_err(|error| ConversionError::new(format!("{what} address"), error))?
        };
        let transport = ConnectionTransport::from_object(&source.transport_settings, &what)?;
        let writer_groups = source.writer_groups.iter().map(WriterGroup::from_schema).collect::<Result<_>>();
        let reader_groups = source.reader_groups.iter().map(ReaderGroup::from_schema).collect::<Result<_>>();
        Ok(Self {
            name: text(&source.name),
            enabled: source.enabled,
            publisher_id: publisher_id(&source.publisher_id, &what)?,
            transport_profile_uri: text(&source.transport_profile_uri),
            network_interface: text(&address.network_interface),
            url: text(&address.url),
            transport,
            properties: source.connection_properties.clone(),
            writer_groups: writer_groups.map_err(|error| error.inside(&what))?,
            reader_groups: reader_groups.map_err(|error| error.inside(&what))?,
        })
    }

    /// Converts to the standard structure.
    #[must_use]
    pub fn to_schema(&self) -> PubSubConnectionDataType {
        let address =
            NetworkAddressUrlDataType { network_interface: ua(&self.network_interface), url: ua(&self.url) };
        PubSubConnectionDataType {
            name: ua(&self.name),
            enabled: self.enabled,
            publisher_id: self.publisher_id.as_ref().map(PublisherId::to_variant).unwrap_or_default(),
            transport_profile_uri: ua(&self.transport_profile_uri),
            address: object(&address),
            connection_properties: self.properties.clone(),
            transport_settings: self.transport.to_object(),
            writer_groups: self.writer_groups.iter().map(WriterGroup::to_schema).collect(),
            reader_groups: self.reader_groups.iter().map(ReaderGroup::to_schema).collect(),
        }
    }
}

impl WriterGroup {
    /// From the standard structure.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn from_schema(source: &WriterGroupDataType) -> Result<Self> {
        let what = format!("writer group {:?}", source.name.as_str());
        let transport = WriterGroupTransport::from_object(&source.transport_settings, &what)?;
        let message = WriterGroupMessage::from_object(&source.message_settings, &what)?;
        let writers = source.data_set_writers.iter().map(DataSetWriter::from_schema).collect::<Result<_>>();
        Ok(Self {
            name: text(&source.name),
            enabled: source.enabled,
            writer_group_id: source.writer_group_id,
            security: security(
                source.security_mode,
                &source.security_group_id,
                &source.security_key_services,
                &what,
            )?,
            max_network_message_size: source.max_network_message_size,
            publishing_interval: source.publishing_interval,
            keep_alive_time: source.keep_alive_time,
            priority: source.priority,
            locale_ids: texts(&source.locale_ids),
            header_layout_uri: text(&source.header_layout_uri),
            transport,
            message,
            properties: source.group_properties.clone(),
            writers: writers.map_err(|error| error.inside(&what))?,
        })
    }

    /// Converts to the standard structure.
    #[must_use]
    pub fn to_schema(&self) -> WriterGroupDataType {
        WriterGroupDataType {
            name: ua(&self.name),
            enabled: self.enabled,
            security_mode: wire_mode(self.security.mode),
            security_group_id: ua(&self.security.security_group_id),
            security_key_services: self.security.security_key_services.clone(),
            max_network_message_size: self.max_network_message_size,
            group_properties: self.properties.clone(),
            writer_group_id: self.writer_group_id,
            publishing_interval: self.publishing_interval,
            keep_alive_time: self.keep_alive_time,
            priority: self.priority,
            locale_ids: uas(&self.locale_ids),
            header_layout_uri: ua(&self.header_layout_uri),
            transport_settings: self.transport.to_object(),
            message_settings: self.message.to_object(),
            data_set_writers: self.writers.iter().map(DataSetWriter::to_schema).collect(),
        }
    }
}

impl DataSetWriter {
    /// From the standard structure.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn from_schema(source: &DataSetWriterDataType) -> Result<Self> {
        let what = format!("writer {:?}", source.name.as_str());
        let transport = DataSetWriterTransport::from_object(&source.transport_settings, &what)?;
        Ok(Self {
            name: text(&source.name),
            enabled: source.enabled,
            data_set_writer_id: source.data_set_writer_id,
            field_content_mask: source.data_set_field_content_mask,
            key_frame_count: source.key_frame_count,
            data_set_name: text(&source.data_set_name),
            transport,
            message: DataSetWriterMessage::from_object(&source.message_settings, &what)?,
            properties: source.data_set_writer_properties.clone(),
        })
    }

    /// Converts to the standard structure.
    #[must_use]
    pub fn to_schema(&self) -> DataSetWriterDataType {
        DataSetWriterDataType {
            name: ua(&self.name),
            enabled: self.enabled,
            data_set_writer_id: self.data_set_writer_id,
            data_set_field_content_mask: self.field_content_mask,
            key_frame_count: self.key_frame_count,
            data_set_name: ua(&self.data_set_name),
            data_set_writer_properties: self.properties.clone(),
            transport_settings: self.transport.to_object(),
            message_settings: self.message.to_object(),
        }
    }
}

impl ReaderGroup {
    /// From the standard structure.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn from_schema(source: &ReaderGroupDataType) -> Result<Self> {
        let what = format!("reader group {:?}", source.name.as_str());
        let readers = source.data_set_readers.iter().map(DataSetReader::from_schema).collect::<Result<_>>();
        Ok(Self {
            name: text(&source.name),
            enabled: source.enabled,
            security: security(
                source.security_mode,
                &source.security_group_id,
                &source.security_key_services,
                &what,
            )?,
            max_network_message_size: source.max_network_message_size,
            transport: source.transport_settings.clone(),
            message: source.message_settings.clone(),
            properties: source.group_properties.clone(),
            readers: readers.map_err(|error| error.inside(&what))?,
        })
    }

    /// Converts to the standard structure.
    #[must_use]
    pub fn to_schema(&self) -> ReaderGroupDataType {
        ReaderGroupDataType {
            name: ua(&self.name),
            enabled: self.enabled,
            security_mode: wire_mode(self.security.mode),
            security_group_id: ua(&self.security.security_group_id),
            security_key_services: self.security.security_key_services.clone(),
            max_network_message_size: self.max_network_message_size,
            group_properties: self.properties.clone(),
            transport_settings: self.transport.clone(),
            message_settings: self.message.clone(),
            data_set_readers: self.readers.iter().map(DataSetReader::to_schema).collect(),
        }
    }
}

impl DataSetReader {
    /// From the standard structure.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn from_schema(source: &DataSetReaderDataType) -> Result<Self> {
        let what = format!("reader {:?}", source.name.as_str());
        let transport = DataSetReaderTransport::from_object(&source.transport_settings, &what)?;
        let subscribed_data_set = SubscribedDataSet::from_object(&source.subscribed_data_set, &what)?;
        // Invalid: the group's settings apply (Part 14 §6.2.9.9).
        let own_security = match source.security_mode {
            MessageSecurityMode::INVALID => None,
            wire => Some(security(wire, &source.security_group_id, &source.security_key_services, &what)?),
        };
        Ok(Self {
            name: text(&source.name),
            enabled: source.enabled,
            publisher_id: publisher_id(&source.publisher_id, &what)?,
            writer_group_id: source.writer_group_id,
            data_set_writer_id: source.data_set_writer_id,
            meta_data: source.data_set_meta_data.clone(),
            field_content_mask: source.data_set_field_content_mask,
            message_receive_timeout: source.message_receive_timeout,
            key_frame_count: source.key_frame_count,
            header_layout_uri: text(&source.header_layout_uri),
            security: own_security,
            transport,
            message: DataSetReaderMessage::from_object(&source.message_settings, &what)?,
            subscribed_data_set,
            properties: source.data_set_reader_properties.clone(),
        })
    }

    /// Converts to the standard structure.
    #[must_use]
    pub fn to_schema(&self) -> DataSetReaderDataType {
        let security = self.security.as_ref();
        DataSetReaderDataType {
            name: ua(&self.name),
            enabled: self.enabled,
            publisher_id: self.publisher_id.as_ref().map(PublisherId::to_variant).unwrap_or_default(),
            writer_group_id: self.writer_group_id,
            data_set_writer_id: self.data_set_writer_id,
            data_set_meta_data: self.meta_data.clone(),
            data_set_field_content_mask: self.field_content_mask,
            message_receive_timeout: self.message_receive_timeout,
            key_frame_count: self.key_frame_count,
            header_layout_uri: ua(&self.header_layout_uri),
            security_mode: security.map_or(MessageSecurityMode::INVALID, |own| wire_mode(own.mode)),
            security_group_id: security.map_or(UaString::NULL, |own| ua(&own.security_group_id)),
            security_key_services: security.map_or_else(Vec::new, |own| own.security_key_services.clone()),
            data_set_reader_properties: self.properties.clone(),
            transport_settings: self.transport.to_object(),
            message_settings: self.message.to_object(),
            subscribed_data_set: self.subscribed_data_set.to_object(),
        }
    }
}
