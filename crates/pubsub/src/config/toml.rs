//! The configuration as TOML, for people.
//!
//! ```toml
//! [[data-set]]
//! name = "plant"
//! fields = [{ name = "temperature", type = "Float" }, { name = "state", type = "String", max-length = 16 }]
//!
//! [[connection]]
//! name = "udp"
//! publisher-id = { uint16 = 2234 }
//! url = "opc.udp://239.0.0.1:4840"
//!
//! [[connection.writer-group]]
//! name = "fast"
//! id = 1
//! interval = 10.0
//! layout = "periodic-fixed"
//! writers = [{ name = "plant", id = 1, data-set = "plant" }]
//! ```
//!
//! TOML says what is commonly configured. [`to_toml`] refuses a configuration of which it would lose something: that is
//! what the binary file is for.

use super::build::field;
use super::{
    Configuration, Connection, DataSetReader, DataSetReaderMessage, DataSetSource, DataSetWriter,
    DataSetWriterMessage, GroupSecurity, PublishedDataSet, ReaderGroup, SubscribedDataSet, WriterGroup,
    WriterGroupMessage,
};
use crate::publisher_id::PublisherId;
use crate::uadp::SecurityMode;
use serde::{Deserialize, Serialize};
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_schema::{
    ConfigurationVersionDataType, DataSetFieldContentMask, DataSetFieldFlags, DataSetOrderingType,
    EndpointDescription, FieldMetaData, FieldTargetDataType, JsonDataSetMessageContentMask,
    JsonNetworkMessageContentMask, PublishedVariableDataType, SecurityGroupDataType, TargetVariablesDataType,
    UadpDataSetMessageContentMask, UadpNetworkMessageContentMask,
};
use taktwerk_types::{BuiltInType, LocalizedText, NodeId};

/// Why text is no configuration, or a configuration no text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TomlError {
    /// The text is no TOML, or has a key that is not known.
    #[error("{0}")]
    Text(String),
    /// A value that means nothing.
    #[error("{element}: {reason}")]
    Value {
        /// Where.
        element: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The configuration says more than TOML can.
    #[error("the configuration has settings that TOML cannot say: write the binary file")]
    NotExpressible,
}

impl TomlError {
    fn value(element: impl Into<String>, reason: impl ToString) -> Self {
        Self::Value { element: element.into(), reason: reason.to_string() }
    }
}

type Result<T> = core::result::Result<T, TomlError>;

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    enabled: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    configuration_version: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    key_services: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    security_group: Vec<Group>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    data_set: Vec<Set>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    connection: Vec<Conn>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Group {
    id: String,
    /// Milliseconds.
    key_lifetime: f64,
    policy: String,
    #[serde(default, skip_serializing_if = "is_default")]
    future_keys: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    past_keys: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Set {
    name: String,
    /// Major and minor version.
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    version: [u32; 2],
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    cyclic: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
}

fn first_version() -> [u32; 2] {
    [1, 1]
}

fn is_first_version(version: &[u32; 2]) -> bool {
    *version == first_version()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    /// The Variable it is read from, or at a reader written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Milliseconds; for Variables.
    #[serde(default, skip_serializing_if = "is_default")]
    sampling: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    max_length: u32,
    /// The largest lengths of an array's dimensions; 0: not bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dimensions: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    promoted: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    description: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Id {
    Byte(u8),
    UInt16(u16),
    UInt32(u32),
    UInt64(u64),
    String(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Conn {
    name: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    publisher_id: Option<Id>,
    url: String,
    #[serde(default, skip_serializing_if = "is_default")]
    interface: String,
    /// The URI of the transport profile, if the URL does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transport: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writer_group: Vec<Writers>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reader_group: Vec<Readers>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Security {
    mode: SecurityMode,
    #[serde(default, skip_serializing_if = "is_default")]
    group: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    key_services: Vec<String>,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Default)]
#[serde(rename_all = "kebab-case")]
enum Layout {
    #[default]
    Dynamic,
    PeriodicFixed,
    Json,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Writers {
    name: String,
    #[serde(default, skip_serializing_if = "is_default")]
    id: u16,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    enabled: bool,
    /// Milliseconds.
    interval: f64,
    /// Milliseconds; ten intervals unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_alive: Option<f64>,
    #[serde(default, skip_serializing_if = "is_default")]
    priority: u8,
    #[serde(default, skip_serializing_if = "is_default")]
    max_message_size: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    layout: Layout,
    /// Bits of the NetworkMessageContentMask, if they are not those of the layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network_message_content: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group_version: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    one_writer_per_message: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sampling_offset: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    publishing_offsets: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    security: Option<Security>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writers: Vec<Writer>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Writer {
    name: String,
    id: u16,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    enabled: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    data_set: String,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    key_frame_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field_content: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_content: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    configured_size: u16,
}

fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Readers {
    name: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    security: Option<Security>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    readers: Vec<Reader>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Reader {
    name: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    publisher_id: Option<Id>,
    #[serde(default, skip_serializing_if = "is_default")]
    writer_group_id: u16,
    #[serde(default, skip_serializing_if = "is_default")]
    writer_id: u16,
    /// Milliseconds; 0: never in error.
    #[serde(default, skip_serializing_if = "is_default")]
    timeout: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    layout: Layout,
    /// Offset of the DataSetMessage in messages without PayloadHeader.
    #[serde(default, skip_serializing_if = "is_default")]
    offset: u16,
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    version: [u32; 2],
    /// The fields, if the publisher is not to be asked; with `node` their targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
}

/// Reads a configuration.
///
/// # Errors
/// See [`TomlError`].
pub fn from_toml(text: &str) -> Result<Configuration> {
    let file: File = ::toml::from_str(text).map_err(|error| TomlError::Text(error.to_string()))?;
    let services = |urls: &[String]| urls.iter().map(|url| service(url)).collect();
    let groups = file.security_group.iter().map(|group| {
        let policy: core::result::Result<PubSubSecurityPolicy, _> = group.policy.parse();
        let element = || format!("security group {:?}", group.id);
        let policy = policy.map_err(|_| {
            TomlError::value(element(), "its policy is not PubSub-Aes128-CTR or PubSub-Aes256-CTR")
        })?;
        Ok(SecurityGroupDataType {
            name: group.id.as_str().into(),
            key_lifetime: group.key_lifetime,
            security_policy_uri: policy.uri().into(),
            max_future_key_count: group.future_keys,
            max_past_key_count: group.past_keys,
            security_group_id: group.id.as_str().into(),
            ..SecurityGroupDataType::default()
        })
    });
    Ok(Configuration {
        enabled: file.enabled,
        data_sets: file.data_set.iter().map(read_set).collect::<Result<_>>()?,
        connections: file.connection.iter().map(read_connection).collect::<Result<_>>()?,
        default_security_key_services: services(&file.key_services),
        security_groups: groups.collect::<Result<_>>()?,
        configuration_version: file.configuration_version,
        ..Configuration::default()
    })
}

fn service(url: &str) -> EndpointDescription {
    EndpointDescription { endpoint_url: url.into(), ..EndpointDescription::default() }
}

fn read_field(element: &str, source: &Field) -> Result<FieldMetaData> {
    let known = BuiltInType::ALL.into_iter().find(|kind| kind.to_string() == source.kind);
    let element = format!("{element} / field {:?}", source.name);
    let kind = known.ok_or_else(|| {
        TomlError::value(element, format!("{:?} is no built-in type such as Float or String", source.kind))
    })?;
    let flags = if source.promoted { DataSetFieldFlags::PROMOTED_FIELD } else { DataSetFieldFlags::EMPTY };
    let description = match source.description.as_str() {
        "" => LocalizedText::default(),
        text => text.into(),
    };
    Ok(FieldMetaData {
        description,
        field_flags: flags,
        max_string_length: source.max_length,
        value_rank: match source.dimensions.len() {
            0 => -1,
            rank => i32::try_from(rank).unwrap_or(i32::MAX),
        },
        array_dimensions: source.dimensions.clone(),
        ..field(&source.name, kind)
    })
}

fn node(element: &str, source: &Field) -> Result<NodeId> {
    let text = source.node.as_deref().unwrap_or("");
    text.parse().map_err(|error| TomlError::value(format!("{element} / field {:?}", source.name), error))
}

fn read_set(source: &Set) -> Result<PublishedDataSet> {
    let element = format!("data set {:?}", source.name);
    let fields = source.fields.iter().map(|field| read_field(&element, field)).collect::<Result<_>>()?;
    let mut set = PublishedDataSet::new(&source.name, fields);
    let [major_version, minor_version] = source.version;
    set.meta_data.configuration_version = ConfigurationVersionDataType { major_version, minor_version };
    set.source = DataSetSource::Custom { cyclic: source.cyclic };
    let with_node = source.fields.iter().filter(|field| field.node.is_some()).count();
    if with_node > 0 {
        if with_node < source.fields.len() {
            return Err(TomlError::value(element, "give all fields a node, or none"));
        }
        let items = source.fields.iter().map(|field| {
            Ok(PublishedVariableDataType {
                published_variable: node(&element, field)?,
                attribute_id: 13,
                sampling_interval_hint: field.sampling,
                ..PublishedVariableDataType::default()
            })
        });
        set.source = DataSetSource::Items(items.collect::<Result<_>>()?);
    }
    Ok(set)
}

fn read_id(id: &Id) -> PublisherId {
    match id {
        Id::Byte(id) => PublisherId::Byte(*id),
        Id::UInt16(id) => PublisherId::UInt16(*id),
        Id::UInt32(id) => PublisherId::UInt32(*id),
        Id::UInt64(id) => PublisherId::UInt64(*id),
        Id::String(id) => PublisherId::String(id.as_str().into()),
    }
}

fn read_security(security: Option<&Security>) -> GroupSecurity {
    security.map_or_else(GroupSecurity::default, |security| GroupSecurity {
        mode: security.mode,
        security_group_id: security.group.clone(),
        security_key_services: security.key_services.iter().map(|url| service(url)).collect(),
    })
}

fn read_connection(source: &Conn) -> Result<Connection> {
    let has_json = source.writer_group.iter().any(|group| group.layout == Layout::Json)
        || source
            .reader_group
            .iter()
            .flat_map(|group| &group.readers)
            .any(|reader| reader.layout == Layout::Json);
    let mut connection =
        Connection::new(&source.name, source.publisher_id.as_ref().map(read_id), &source.url);
    if has_json && source.url.starts_with("mqtt") {
        connection.transport_profile_uri = super::TRANSPORT_MQTT_JSON.to_owned();
    }
    if let Some(transport) = &source.transport {
        connection.transport_profile_uri.clone_from(transport);
    }
    connection.enabled = source.enabled;
    connection.network_interface.clone_from(&source.interface);
    connection.writer_groups = source.writer_group.iter().map(read_writers).collect();
    connection.reader_groups = source.reader_group.iter().map(read_readers).collect::<Result<_>>()?;
    Ok(connection)
}

fn read_writers(source: &Writers) -> WriterGroup {
    let make = match source.layout {
        Layout::Dynamic => WriterGroup::dynamic,
        Layout::PeriodicFixed => WriterGroup::periodic_fixed,
        Layout::Json => WriterGroup::json,
    };
    let mut group = make(&source.name, source.id, source.interval);
    group.enabled = source.enabled;
    group.keep_alive_time = source.keep_alive.unwrap_or(group.keep_alive_time);
    group.priority = source.priority;
    group.max_network_message_size = source.max_message_size;
    group.security = read_security(source.security.as_ref());
    if source.network_message_content.is_some() {
        group.header_layout_uri.clear();
    }
    match &mut group.message {
        WriterGroupMessage::Uadp(uadp) => {
            if let Some(bits) = source.network_message_content {
                uadp.network_message_content_mask = UadpNetworkMessageContentMask(bits);
            }
            uadp.group_version = source.group_version.unwrap_or(uadp.group_version);
            uadp.sampling_offset = source.sampling_offset.unwrap_or(uadp.sampling_offset);
            uadp.publishing_offset.clone_from(&source.publishing_offsets);
            if source.one_writer_per_message {
                uadp.data_set_ordering = DataSetOrderingType::ASCENDING_WRITER_ID_SINGLE;
            }
        }
        WriterGroupMessage::Json(json) => {
            if let Some(bits) = source.network_message_content {
                json.network_message_content_mask = JsonNetworkMessageContentMask(bits);
            }
        }
        WriterGroupMessage::Other(_) => {}
    }
    group.writers = source.writers.iter().map(|writer| read_writer(writer, source.layout)).collect();
    group
}

fn read_writer(source: &Writer, layout: Layout) -> DataSetWriter {
    let make = match layout {
        Layout::Dynamic => DataSetWriter::dynamic,
        Layout::PeriodicFixed => DataSetWriter::periodic_fixed,
        Layout::Json => DataSetWriter::json,
    };
    let mut writer = make(&source.name, source.id, &source.data_set);
    writer.enabled = source.enabled;
    writer.key_frame_count = source.key_frame_count;
    writer.field_content_mask =
        source.field_content.map_or(writer.field_content_mask, DataSetFieldContentMask);
    match &mut writer.message {
        DataSetWriterMessage::Uadp(uadp) => {
            uadp.configured_size = source.configured_size;
            if let Some(bits) = source.message_content {
                uadp.data_set_message_content_mask = UadpDataSetMessageContentMask(bits);
            }
        }
        DataSetWriterMessage::Json(json) => {
            if let Some(bits) = source.message_content {
                json.data_set_message_content_mask = JsonDataSetMessageContentMask(bits);
            }
        }
        DataSetWriterMessage::Other(_) => {}
    }
    writer
}

fn read_readers(source: &Readers) -> Result<ReaderGroup> {
    let readers = source.readers.iter().map(read_reader).collect::<Result<_>>()?;
    Ok(ReaderGroup {
        enabled: source.enabled,
        security: read_security(source.security.as_ref()),
        ..ReaderGroup::new(&source.name, readers)
    })
}

fn read_reader(source: &Reader) -> Result<DataSetReader> {
    let element = format!("reader {:?}", source.name);
    let fields: Vec<_> =
        source.fields.iter().map(|field| read_field(&element, field)).collect::<Result<_>>()?;
    let mut group = match source.layout {
        Layout::Dynamic => WriterGroup::dynamic("", source.writer_group_id, 0.0),
        Layout::PeriodicFixed => WriterGroup::periodic_fixed("", source.writer_group_id, 0.0),
        Layout::Json => WriterGroup::json("", source.writer_group_id, 0.0),
    };
    group.keep_alive_time = 0.0;
    let make = match source.layout {
        Layout::Dynamic => DataSetWriter::dynamic,
        Layout::PeriodicFixed => DataSetWriter::periodic_fixed,
        Layout::Json => DataSetWriter::json,
    };
    let writer = make(&source.name, source.writer_id, "");
    let mut set = PublishedDataSet::new("", fields);
    if source.fields.is_empty() {
        set.meta_data = Default::default();
    } else {
        let [major_version, minor_version] = source.version;
        set.meta_data.configuration_version = ConfigurationVersionDataType { major_version, minor_version };
    }
    let mut reader = DataSetReader::of(source.publisher_id.as_ref().map(read_id), &group, &writer, &set);
    reader.enabled = source.enabled;
    reader.message_receive_timeout = source.timeout;
    if let DataSetReaderMessage::Uadp(uadp) = &mut reader.message {
        uadp.data_set_offset = source.offset;
    }
    let targets: Vec<_> = source
        .fields
        .iter()
        .filter(|field| field.node.is_some())
        .map(|field| {
            Ok(FieldTargetDataType {
                target_node_id: node(&element, field)?,
                attribute_id: 13,
                ..FieldTargetDataType::default()
            })
        })
        .collect::<Result<_>>()?;
    if !targets.is_empty() {
        if targets.len() < source.fields.len() {
            return Err(TomlError::value(element, "give all fields a node, or none"));
        }
        reader.subscribed_data_set =
            SubscribedDataSet::TargetVariables(TargetVariablesDataType { target_variables: targets });
    }
    Ok(reader)
}

/// Writes a configuration.
///
/// # Errors
/// [`TomlError::NotExpressible`] if reading the text would give another configuration.
pub fn to_toml(configuration: &Configuration) -> Result<String> {
    let urls = |services: &[EndpointDescription]| -> Vec<String> {
        services.iter().map(|service| service.endpoint_url.as_str().to_owned()).collect()
    };
    let groups = configuration.security_groups.iter().map(|group| Group {
        id: group.security_group_id.as_str().to_owned(),
        key_lifetime: group.key_lifetime,
        policy: PubSubSecurityPolicy::from_uri(group.security_policy_uri.as_str())
            .map_or_else(String::new, |policy| policy.to_string()),
        future_keys: group.max_future_key_count,
        past_keys: group.max_past_key_count,
    });
    let file = File {
        enabled: configuration.enabled,
        configuration_version: configuration.configuration_version,
        key_services: urls(&configuration.default_security_key_services),
        security_group: groups.collect(),
        data_set: configuration.data_sets.iter().map(write_set).collect(),
        connection: configuration.connections.iter().map(write_connection).collect(),
    };
    let text = ::toml::to_string(&file).map_err(|error| TomlError::Text(error.to_string()))?;
    match from_toml(&text) {
        Ok(again) if again == *configuration => Ok(text),
        _ => Err(TomlError::NotExpressible),
    }
}

fn write_field(source: &FieldMetaData) -> Field {
    Field {
        name: source.name.as_str().to_owned(),
        kind: BuiltInType::from_number(source.built_in_type)
            .map_or_else(String::new, |kind| kind.to_string()),
        node: None,
        sampling: 0.0,
        max_length: source.max_string_length,
        dimensions: source.array_dimensions.clone(),
        promoted: source.field_flags.contains(DataSetFieldFlags::PROMOTED_FIELD),
        description: source.description.text.as_str().to_owned(),
    }
}

fn write_set(source: &PublishedDataSet) -> Set {
    let version = &source.meta_data.configuration_version;
    let mut fields: Vec<_> = source.meta_data.fields.iter().map(write_field).collect();
    if let DataSetSource::Items(items) = &source.source {
        for (field, item) in fields.iter_mut().zip(items) {
            field.node = Some(item.published_variable.to_string());
            field.sampling = item.sampling_interval_hint;
        }
    }
    Set {
        name: source.name.clone(),
        version: [version.major_version, version.minor_version],
        cyclic: !matches!(source.source, DataSetSource::Custom { cyclic: false }),
        fields,
    }
}

fn write_id(id: &PublisherId) -> Id {
    match id {
        PublisherId::Byte(id) => Id::Byte(*id),
        PublisherId::UInt16(id) => Id::UInt16(*id),
        PublisherId::UInt32(id) => Id::UInt32(*id),
        PublisherId::UInt64(id) => Id::UInt64(*id),
        PublisherId::String(id) => Id::String(id.to_string()),
    }
}

fn write_security(security: &GroupSecurity) -> Option<Security> {
    (*security != GroupSecurity::default()).then(|| Security {
        mode: security.mode,
        group: security.security_group_id.clone(),
        key_services: security
            .security_key_services
            .iter()
            .map(|service| service.endpoint_url.as_str().to_owned())
            .collect(),
    })
}

fn write_connection(source: &Connection) -> Conn {
    let plain = Connection::new("", None, &source.url).transport_profile_uri;
    Conn {
        name: source.name.clone(),
        enabled: source.enabled,
        publisher_id: source.publisher_id.as_ref().map(write_id),
        url: source.url.clone(),
        interface: source.network_interface.clone(),
        transport: Some(source.transport_profile_uri.clone()).filter(|profile| *profile != plain),
        writer_group: source.writer_groups.iter().map(write_writers).collect(),
        reader_group: source.reader_groups.iter().map(write_readers).collect(),
    }
}

fn write_writers(source: &WriterGroup) -> Writers {
    let layout = match &source.message {
        WriterGroupMessage::Json(_) => Layout::Json,
        _ if source.header_layout_uri == super::layouts::PERIODIC_FIXED_URI => Layout::PeriodicFixed,
        _ => Layout::Dynamic,
    };
    let mut writers = Writers {
        name: source.name.clone(),
        id: source.writer_group_id,
        enabled: source.enabled,
        interval: source.publishing_interval,
        keep_alive: Some(source.keep_alive_time).filter(|time| *time != source.publishing_interval * 10.0),
        priority: source.priority,
        max_message_size: source.max_network_message_size,
        layout,
        network_message_content: None,
        group_version: None,
        one_writer_per_message: false,
        sampling_offset: None,
        publishing_offsets: Vec::new(),
        security: write_security(&source.security),
        writers: source.writers.iter().map(|writer| write_writer(writer, layout)).collect(),
    };
    match &source.message {
        WriterGroupMessage::Uadp(uadp) => {
            let standard = match layout {
                Layout::PeriodicFixed => super::layouts::periodic_fixed_group(),
                _ => super::layouts::dynamic_group(),
            };
            let bits = uadp.network_message_content_mask;
            let is_standard =
                bits == standard.network_message_content_mask && !source.header_layout_uri.is_empty();
            writers.network_message_content = (!is_standard).then_some(bits.bits());
            writers.group_version =
                Some(uadp.group_version).filter(|version| *version != standard.group_version);
            writers.one_writer_per_message =
                uadp.data_set_ordering == DataSetOrderingType::ASCENDING_WRITER_ID_SINGLE;
            writers.sampling_offset =
                Some(uadp.sampling_offset).filter(|offset| *offset != standard.sampling_offset);
            writers.publishing_offsets.clone_from(&uadp.publishing_offset);
        }
        WriterGroupMessage::Json(json) => {
            let standard = match WriterGroup::json("", 0, 1.0).message {
                WriterGroupMessage::Json(standard) => standard.network_message_content_mask,
                _ => JsonNetworkMessageContentMask::EMPTY,
            };
            let bits = json.network_message_content_mask;
            writers.network_message_content = (bits != standard).then_some(bits.bits());
        }
        WriterGroupMessage::Other(_) => {}
    }
    writers
}

fn write_writer(source: &DataSetWriter, layout: Layout) -> Writer {
    let standard = match layout {
        Layout::Dynamic => DataSetWriter::dynamic("", 0, ""),
        Layout::PeriodicFixed => DataSetWriter::periodic_fixed("", 0, ""),
        Layout::Json => DataSetWriter::json("", 0, ""),
    };
    let bits = |message: &DataSetWriterMessage| match message {
        DataSetWriterMessage::Uadp(uadp) => uadp.data_set_message_content_mask.bits(),
        DataSetWriterMessage::Json(json) => json.data_set_message_content_mask.bits(),
        DataSetWriterMessage::Other(_) => 0,
    };
    let content = bits(&source.message);
    Writer {
        name: source.name.clone(),
        id: source.data_set_writer_id,
        enabled: source.enabled,
        data_set: source.data_set_name.clone(),
        key_frame_count: source.key_frame_count,
        field_content: (source.field_content_mask != standard.field_content_mask)
            .then_some(source.field_content_mask.bits()),
        message_content: (content != bits(&standard.message)).then_some(content),
        configured_size: match &source.message {
            DataSetWriterMessage::Uadp(uadp) => uadp.configured_size,
            _ => 0,
        },
    }
}

fn write_readers(source: &ReaderGroup) -> Readers {
    Readers {
        name: source.name.clone(),
        enabled: source.enabled,
        security: write_security(&source.security),
        readers: source.readers.iter().map(write_reader).collect(),
    }
}

fn write_reader(source: &DataSetReader) -> Reader {
    let version = &source.meta_data.configuration_version;
    let mut fields: Vec<_> = source.meta_data.fields.iter().map(write_field).collect();
    if let SubscribedDataSet::TargetVariables(targets) = &source.subscribed_data_set {
        for (field, target) in fields.iter_mut().zip(&targets.target_variables) {
            field.node = Some(target.target_node_id.to_string());
        }
    }
    Reader {
        name: source.name.clone(),
        enabled: source.enabled,
        publisher_id: source.publisher_id.as_ref().map(write_id),
        writer_group_id: source.writer_group_id,
        writer_id: source.data_set_writer_id,
        timeout: source.message_receive_timeout,
        layout: match &source.message {
            DataSetReaderMessage::Json(_) => Layout::Json,
            _ if source.header_layout_uri == super::layouts::PERIODIC_FIXED_URI => Layout::PeriodicFixed,
            _ => Layout::Dynamic,
        },
        offset: match &source.message {
            DataSetReaderMessage::Uadp(uadp) => uadp.data_set_offset,
            _ => 0,
        },
        version: if fields.is_empty() {
            first_version()
        } else {
            [version.major_version, version.minor_version]
        },
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
key-services = ["opc.tcp://sks:4840"]

[[security-group]]
id = "plant"
key-lifetime = 3600000.0
policy = "PubSub-Aes256-CTR"
future-keys = 5

[[data-set]]
name = "plant"
fields = [
    { name = "temperature", type = "Float", node = "ns=2;s=T", sampling = 10.0 },
    { name = "state", type = "String", max-length = 16, node = "ns=2;s=S", promoted = true },
]

[[connection]]
name = "udp"
publisher-id = { uint16 = 2234 }
url = "opc.udp://239.0.0.1:4840"

[[connection.writer-group]]
name = "fast"
id = 1
interval = 10.0
layout = "periodic-fixed"
security = { mode = "SignAndEncrypt", group = "plant" }
publishing-offsets = [1.0, 2.0]
writers = [{ name = "plant", id = 1, data-set = "plant", configured-size = 100 }]

[[connection]]
name = "mqtt"
publisher-id = { string = "p" }
url = "mqtt://localhost:1883"

[[connection.writer-group]]
name = "json"
interval = 1000.0
layout = "json"
writers = [{ name = "plant", id = 1, data-set = "plant" }]

[[connection.reader-group]]
name = "in"
readers = [
    { name = "r", publisher-id = { byte = 7 }, writer-id = 3, timeout = 500.0, layout = "json" },
    { name = "s", writer-id = 4, fields = [{ name = "x", type = "Int32", node = "ns=1;i=5" }] },
]
"#;

    #[test]
    fn text_to_configuration_and_back() {
        let configuration = from_toml(TEXT).unwrap();
        assert_eq!(super::super::validate(&configuration), []);
        assert_eq!(configuration.connections[0].publisher_id, Some(PublisherId::UInt16(2234)));
        assert_eq!(configuration.connections[1].transport_profile_uri, super::super::TRANSPORT_MQTT_JSON);
        let text = to_toml(&configuration).unwrap();
        assert_eq!(from_toml(&text).unwrap(), configuration);
        let schema = Configuration::from_schema(&configuration.to_schema()).unwrap();
        assert_eq!(schema, configuration);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, expected) in [
            ("bogus = 1", "unknown field `bogus`"),
            ("[[data-set]]\nname = \"d\"\nfields = [{ name = \"x\", type = \"Flaot\" }]", "Flaot"),
            ("[[security-group]]\nid = \"g\"\nkey-lifetime = 1.0\npolicy = \"None\"", "PubSub-Aes128-CTR"),
            (
                "[[data-set]]\nname = \"d\"\nfields = [{ name = \"x\", type = \"Byte\", node = \"x\" }]",
                "not a NodeId",
            ),
        ] {
            let error = from_toml(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        let mut configuration = from_toml(TEXT).unwrap();
        configuration.connections[0].properties.push(Default::default());
        assert_eq!(to_toml(&configuration), Err(TomlError::NotExpressible));
    }
}
