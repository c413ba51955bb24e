//! Parses TOML into a configuration.

use super::shape::{Conn, Field, File, Id, Layout, Reader, Readers, Security, Set, Writer, Writers, rank_of};
use super::{Result, TomlError};
use crate::config::build::field;
use crate::config::{
    Configuration, Connection, DataSetReader, DataSetReaderMessage, DataSetSource, DataSetWriter,
    DataSetWriterMessage, DataSetWriterTransport, GroupSecurity, PublishedDataSet, ReaderGroup,
    SubscribedDataSet, TRANSPORT_MQTT_JSON, WriterGroup, WriterGroupMessage, WriterGroupTransport,
    with_password,
};
use crate::publisher_id::PublisherId;
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_explain::Mistake;
use taktwerk_schema::{
    ActionMethodDataType, ActionTargetDataType, BrokerDataSetWriterTransportDataType,
    ConfigurationVersionDataType, DataSetFieldContentMask, DataSetFieldFlags, DataSetMetaDataType,
    DataSetOrderingType, DatagramWriterGroupTransportDataType, EndpointDescription, FieldMetaData,
    FieldTargetDataType, JsonDataSetMessageContentMask, JsonNetworkMessageContentMask,
    PublishedActionDataType, PublishedActionMethodDataType, PublishedVariableDataType, SecurityGroupDataType,
    TargetVariablesDataType, UadpDataSetMessageContentMask, UadpNetworkMessageContentMask,
};
use taktwerk_types::{BuiltInType, LocalizedText, NodeId};

/// Parses a configuration that refers to no files.
///
/// # Errors
/// See [`TomlError`]; also for a `password-file`, which only [`from_toml_with`] reads.
pub fn from_toml(text: &str) -> Result<Configuration> {
    let nowhere = |_: &str| Err("files are not read here: write the password into the URL".to_owned());
    from_toml_with(text, nowhere)
}

/// Parses a configuration. `read_file` returns the text of each `password-file`, or an error; its first line is the
/// password. The password becomes part of the connection's URL, so the configuration must be kept secret afterwards.
///
/// # Errors
/// See [`TomlError`].
pub fn from_toml_with(
    text: &str,
    mut read_file: impl FnMut(&str) -> core::result::Result<String, String>,
) -> Result<Configuration> {
    let mut file: File = ::toml::from_str(text).map_err(|error| {
        let mistake = Mistake::of(&error, Some(text));
        match mistake.line {
            0 => TomlError::Text(mistake.to_string()),
            line => TomlError::Text(format!("line {line}: {mistake}")),
        }
    })?;
    for connection in &mut file.connection {
        settle_layouts(connection)?;
        if let Some(path) = connection.password_file.take() {
            let wrong =
                |reason: String| TomlError::value(format!("connection {:?}", connection.name), reason);
            let text = read_file(&path).map_err(wrong)?;
            let password = text.lines().next().unwrap_or_default();
            connection.url =
                with_password(&connection.url, password).map_err(|reason| wrong(reason.to_owned()))?;
        }
    }
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
        TomlError::value(
            element.clone(),
            format!("{:?} is not a built-in type such as Float or String", source.kind),
        )
    })?;
    let data_type = match &source.data_type {
        Some(id) => id.parse().map_err(|error| TomlError::value(element, error))?,
        None => NodeId::numeric(0, u32::from(kind.number())),
    };
    let flags = if source.promoted { DataSetFieldFlags::PROMOTED_FIELD } else { DataSetFieldFlags::EMPTY };
    let description = match source.description.as_str() {
        "" => LocalizedText::default(),
        text => text.into(),
    };
    Ok(FieldMetaData {
        description,
        field_flags: flags,
        max_string_length: source.max_length,
        value_rank: source.value_rank.unwrap_or_else(|| rank_of(&source.dimensions)),
        array_dimensions: source.dimensions.clone(),
        data_type,
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
    if source.actions.is_empty() && !source.request.is_empty() {
        return Err(TomlError::value(element, "request is for actions, and there are none"));
    }
    if !source.actions.is_empty() {
        if with_node > 0 {
            return Err(TomlError::value(
                element,
                "fields of actions have no nodes: their object and method do",
            ));
        }
        set.source = read_actions(&element, source, &set)?;
    }
    Ok(set)
}

/// Reads Actions, which are Methods of a server if they name them.
fn read_actions(element: &str, source: &Set, set: &PublishedDataSet) -> Result<DataSetSource> {
    let fields = source.request.iter().map(|field| read_field(element, field)).collect::<Result<_>>()?;
    // Names and versions of both must be the same (Part 14 §6.2.3.10.2).
    let request = DataSetMetaDataType { fields, ..PublishedDataSet::new(&source.name, Vec::new()).meta_data };
    let request =
        DataSetMetaDataType { configuration_version: set.meta_data.configuration_version.clone(), ..request };
    let targets = source.actions.iter().map(|action| ActionTargetDataType {
        action_target_id: action.id,
        name: action.name.as_str().into(),
        description: match action.description.as_str() {
            "" => LocalizedText::default(),
            text => text.into(),
        },
    });
    let targets = targets.collect();
    let with_method = source.actions.iter().filter(|action| action.method.is_some()).count();
    if with_method == 0 && source.actions.iter().all(|action| action.object.is_none()) {
        return Ok(DataSetSource::Actions(Box::new(PublishedActionDataType {
            request_data_set_meta_data: request,
            action_targets: targets,
        })));
    }
    let methods = source.actions.iter().map(|action| {
        let element = format!("{element} / action {}", action.id);
        let (Some(object), Some(method)) = (&action.object, &action.method) else {
            return Err(TomlError::value(
                element,
                "give each action an object and a method, or none of them",
            ));
        };
        let read = |text: &str| text.parse().map_err(|error| TomlError::value(element.clone(), error));
        Ok(ActionMethodDataType { object_id: read(object)?, method_id: read(method)? })
    });
    Ok(DataSetSource::ActionMethods(Box::new(PublishedActionMethodDataType {
        request_data_set_meta_data: request,
        action_targets: targets,
        action_methods: methods.collect::<Result<_>>()?,
    })))
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

/// Either everything on a connection is JSON, or nothing: determined by the URL, the transport, or otherwise any
/// layout. Groups without a layout get that one.
fn settle_layouts(source: &mut Conn) -> Result<()> {
    let all: Vec<(String, Option<Layout>)> = {
        let groups =
            source.writer_group.iter().map(|group| (format!("writer group {:?}", group.name), group.layout));
        let readers = source.reader_group.iter().flat_map(|group| &group.readers);
        groups.chain(readers.map(|reader| (format!("reader {:?}", reader.name), reader.layout))).collect()
    };
    let by_url = source.url.contains("+json://");
    let by_transport = source.transport.as_deref() == Some(TRANSPORT_MQTT_JSON);
    let is_json = by_url || by_transport || all.iter().any(|(_, layout)| *layout == Some(Layout::Json));
    let wrong = |element: &str, reason: &str| {
        Err(TomlError::value(format!("connection {:?} / {element}", source.name), reason))
    };
    if is_json && !source.url.starts_with("mqtt") {
        let (element, _) =
            all.iter().find(|(_, layout)| *layout == Some(Layout::Json)).cloned().unwrap_or_default();
        return wrong(
            &element,
            "JSON is for brokers: write mqtt+json://… or mqtts+json://…, or another layout",
        );
    }
    if let Some((element, _)) =
        all.iter().find(|(_, layout)| is_json && layout.is_some_and(|layout| layout != Layout::Json))
    {
        let reason = match by_url {
            true => {
                "its layout is binary (UADP), but the URL says JSON: remove the layout, or write mqtt:// or mqtts://"
            }
            false => {
                "its layout is binary (UADP), but others on the connection are JSON: give it a connection of its own"
            }
        };
        return wrong(element, reason);
    }
    let usual = if is_json { Layout::Json } else { Layout::Dynamic };
    for group in &mut source.writer_group {
        group.layout.get_or_insert(usual);
    }
    for reader in source.reader_group.iter_mut().flat_map(|group| &mut group.readers) {
        reader.layout.get_or_insert(usual);
    }
    Ok(())
}

fn read_connection(source: &Conn) -> Result<Connection> {
    let has_json = source.writer_group.iter().any(|group| group.layout == Some(Layout::Json))
        || source
            .reader_group
            .iter()
            .flat_map(|group| &group.readers)
            .any(|reader| reader.layout == Some(Layout::Json));
    let mut connection =
        Connection::new(&source.name, source.publisher_id.as_ref().map(read_id), &source.url);
    if has_json {
        connection.transport_profile_uri = TRANSPORT_MQTT_JSON.to_owned();
    }
    if let Some(transport) = &source.transport {
        connection.transport_profile_uri.clone_from(transport);
    }
    connection.enabled = source.enabled;
    connection.network_interface.clone_from(&source.interface);
    connection.writer_groups = source.writer_group.iter().map(read_writers).collect();
    connection.reader_groups = source.reader_group.iter().map(read_readers).collect::<Result<_>>()?;
    let is_broker = source.url.starts_with("mqtt");
    for group in &source.writer_group {
        let element = || format!("connection {:?} / writer group {:?}", source.name, group.name);
        if is_broker && (group.repeat > 0 || group.repeat_delay > 0.0) {
            return Err(TomlError::value(
                element(),
                "repeat is for datagrams; brokers have a quality of service",
            ));
        }
        if !is_broker && group.writers.iter().any(|writer| writer.metadata_interval > 0.0) {
            return Err(TomlError::value(
                element(),
                "metadata-interval is for brokers; datagrams have announce-every",
            ));
        }
    }
    if source.announce_every > 0 {
        if !source.url.starts_with("opc.") {
            return Err(TomlError::value(
                format!("connection {:?}", source.name),
                "announce-every is for datagrams; a broker retains what was announced",
            ));
        }
        connection.announce_every(source.announce_every);
    }
    Ok(connection)
}

fn read_writers(source: &Writers) -> WriterGroup {
    let layout = source.layout.unwrap_or_default();
    let make = match layout {
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
    if source.repeat > 0 || source.repeat_delay > 0.0 {
        group.transport = WriterGroupTransport::Datagram(DatagramWriterGroupTransportDataType {
            message_repeat_count: source.repeat,
            message_repeat_delay: source.repeat_delay,
        });
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
    group.writers = source.writers.iter().map(|writer| read_writer(writer, layout)).collect();
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
    if source.metadata_interval > 0.0 {
        writer.transport = DataSetWriterTransport::Broker(BrokerDataSetWriterTransportDataType {
            meta_data_update_time: source.metadata_interval,
            ..Default::default()
        });
    }
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

/// A reader with the defaults of its layout.
pub(super) fn plain_reader(source: &Reader) -> DataSetReader {
    let layout = source.layout.unwrap_or_default();
    let mut group = match layout {
        Layout::Dynamic => WriterGroup::dynamic("", source.writer_group_id, 0.0),
        Layout::PeriodicFixed => WriterGroup::periodic_fixed("", source.writer_group_id, 0.0),
        Layout::Json => WriterGroup::json("", source.writer_group_id, 0.0),
    };
    group.keep_alive_time = 0.0;
    let make = match layout {
        Layout::Dynamic => DataSetWriter::dynamic,
        Layout::PeriodicFixed => DataSetWriter::periodic_fixed,
        Layout::Json => DataSetWriter::json,
    };
    let writer = make(&source.name, source.writer_id, "");
    let set = PublishedDataSet { meta_data: Default::default(), ..PublishedDataSet::new("", Vec::new()) };
    DataSetReader::of(source.publisher_id.as_ref().map(read_id), &group, &writer, &set)
}

fn read_reader(source: &Reader) -> Result<DataSetReader> {
    let element = format!("reader {:?}", source.name);
    let fields: Vec<_> =
        source.fields.iter().map(|field| read_field(&element, field)).collect::<Result<_>>()?;
    let mut reader = plain_reader(source);
    reader.meta_data.name = source.data_set.as_str().into();
    if !fields.is_empty() {
        let [major_version, minor_version] = source.version;
        reader.meta_data.fields = fields;
        reader.meta_data.configuration_version =
            ConfigurationVersionDataType { major_version, minor_version };
    }
    reader.enabled = source.enabled;
    reader.message_receive_timeout = source.timeout;
    reader.key_frame_count = source.key_frame_count.unwrap_or(reader.key_frame_count);
    reader.field_content_mask =
        source.field_content.map_or(reader.field_content_mask, DataSetFieldContentMask);
    match &mut reader.message {
        DataSetReaderMessage::Uadp(uadp) => {
            uadp.data_set_offset = source.offset;
            uadp.network_message_number = source.message_number;
            uadp.publishing_interval = source.interval;
            uadp.group_version = source.group_version.unwrap_or(uadp.group_version);
            if let Some(bits) = source.network_message_content {
                reader.header_layout_uri.clear();
                uadp.network_message_content_mask = UadpNetworkMessageContentMask(bits);
            }
            if let Some(bits) = source.message_content {
                uadp.data_set_message_content_mask = UadpDataSetMessageContentMask(bits);
            }
        }
        DataSetReaderMessage::Json(json) => {
            if let Some(bits) = source.network_message_content {
                json.network_message_content_mask = JsonNetworkMessageContentMask(bits);
            }
            if let Some(bits) = source.message_content {
                json.data_set_message_content_mask = JsonDataSetMessageContentMask(bits);
            }
        }
        _ => {}
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
