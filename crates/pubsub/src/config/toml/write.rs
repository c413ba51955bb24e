//! Writes a configuration as TOML.

use super::read::plain_reader;
use super::shape::{
    Action, Conn, Field, File, Group, Id, Layout, Reader, Readers, Security, Set, Writer, Writers,
    first_version, rank_of,
};
use super::{Result, TomlError, from_toml};
use crate::config::{
    Configuration, Connection, DataSetReader, DataSetReaderMessage, DataSetSource, DataSetWriter,
    DataSetWriterMessage, DataSetWriterTransport, GroupSecurity, PublishedDataSet, ReaderGroup,
    SubscribedDataSet, WriterGroup, WriterGroupMessage, WriterGroupTransport, layouts,
};
use crate::publisher_id::PublisherId;
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_schema::{
    ActionMethodDataType, ActionTargetDataType, DataSetFieldFlags, DataSetOrderingType, EndpointDescription,
    FieldMetaData, JsonNetworkMessageContentMask,
};
use taktwerk_types::{BuiltInType, NodeId};

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
    let built_in = NodeId::numeric(0, u32::from(source.built_in_type));
    Field {
        data_type: (source.data_type != built_in).then(|| source.data_type.to_string()),
        value_rank: Some(source.value_rank).filter(|rank| *rank != rank_of(&source.array_dimensions)),
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
    let (request, actions) = match &source.source {
        DataSetSource::Actions(of) => {
            (&of.request_data_set_meta_data.fields, write_actions(&of.action_targets, &[]))
        }
        DataSetSource::ActionMethods(of) => {
            (&of.request_data_set_meta_data.fields, write_actions(&of.action_targets, &of.action_methods))
        }
        _ => (&Vec::new(), Vec::new()),
    };
    Set {
        request: request.iter().map(write_field).collect(),
        actions,
        name: source.name.clone(),
        version: [version.major_version, version.minor_version],
        cyclic: !matches!(source.source, DataSetSource::Custom { cyclic: false }),
        fields,
    }
}

fn write_actions(targets: &[ActionTargetDataType], methods: &[ActionMethodDataType]) -> Vec<Action> {
    let write = |(at, target): (usize, &ActionTargetDataType)| {
        let method = methods.get(at);
        Action {
            id: target.action_target_id,
            name: target.name.as_str().to_owned(),
            description: target.description.text.as_str().to_owned(),
            object: method.map(|method| method.object_id.to_string()),
            method: method.map(|method| method.method_id.to_string()),
        }
    };
    targets.iter().enumerate().map(write).collect()
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
        // The password is in the URL; the file it came from is not known.
        password_file: None,
        interface: source.network_interface.clone(),
        transport: Some(source.transport_profile_uri.clone()).filter(|profile| *profile != plain),
        announce_every: source.announces_every(),
        writer_group: source.writer_groups.iter().map(write_writers).collect(),
        reader_group: source.reader_groups.iter().map(write_readers).collect(),
    }
}

/// The layout to write, if it has to be written.
fn said(layout: Layout) -> Option<Layout> {
    Some(layout).filter(|layout| *layout != Layout::Dynamic)
}

fn write_writers(source: &WriterGroup) -> Writers {
    let layout = match &source.message {
        WriterGroupMessage::Json(_) => Layout::Json,
        _ if source.header_layout_uri == layouts::PERIODIC_FIXED_URI => Layout::PeriodicFixed,
        _ => Layout::Dynamic,
    };
    let repeats = match &source.transport {
        WriterGroupTransport::Datagram(of) => (of.message_repeat_count, of.message_repeat_delay),
        WriterGroupTransport::Datagram2(of) => (of.message_repeat_count, of.message_repeat_delay),
        _ => (0, 0.0),
    };
    let mut writers = Writers {
        name: source.name.clone(),
        id: source.writer_group_id,
        enabled: source.enabled,
        interval: source.publishing_interval,
        keep_alive: Some(source.keep_alive_time).filter(|time| *time != source.publishing_interval * 10.0),
        priority: source.priority,
        max_message_size: source.max_network_message_size,
        layout: said(layout),
        network_message_content: None,
        group_version: None,
        one_writer_per_message: false,
        repeat: repeats.0,
        repeat_delay: repeats.1,
        sampling_offset: None,
        publishing_offsets: Vec::new(),
        security: write_security(&source.security),
        writers: source.writers.iter().map(|writer| write_writer(writer, layout)).collect(),
    };
    match &source.message {
        WriterGroupMessage::Uadp(uadp) => {
            let standard = match layout {
                Layout::PeriodicFixed => layouts::periodic_fixed_group(),
                _ => layouts::dynamic_group(),
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
        metadata_interval: match &source.transport {
            DataSetWriterTransport::Broker(of) => of.meta_data_update_time,
            _ => 0.0,
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
    let mut reader = Reader {
        name: source.name.clone(),
        enabled: source.enabled,
        publisher_id: source.publisher_id.as_ref().map(write_id),
        writer_group_id: source.writer_group_id,
        writer_id: source.data_set_writer_id,
        timeout: source.message_receive_timeout,
        layout: said(match &source.message {
            DataSetReaderMessage::Json(_) => Layout::Json,
            _ if source.header_layout_uri == layouts::PERIODIC_FIXED_URI => Layout::PeriodicFixed,
            _ => Layout::Dynamic,
        }),
        interval: 0.0,
        key_frame_count: None,
        network_message_content: None,
        message_content: None,
        field_content: None,
        group_version: None,
        message_number: 0,
        offset: 0,
        data_set: source.meta_data.name.as_str().to_owned(),
        version: if fields.is_empty() {
            first_version()
        } else {
            [version.major_version, version.minor_version]
        },
        fields,
    };
    let plain = plain_reader(&reader);
    let other = |ours: u32, plain: u32| (ours != plain).then_some(ours);
    reader.key_frame_count = other(source.key_frame_count, plain.key_frame_count);
    reader.field_content = other(source.field_content_mask.bits(), plain.field_content_mask.bits());
    match (&source.message, &plain.message) {
        (DataSetReaderMessage::Uadp(uadp), DataSetReaderMessage::Uadp(plain)) => {
            reader.interval = uadp.publishing_interval;
            reader.message_number = uadp.network_message_number;
            reader.offset = uadp.data_set_offset;
            reader.group_version = other(uadp.group_version, plain.group_version);
            let bits = uadp.network_message_content_mask.bits();
            let is_standard =
                bits == plain.network_message_content_mask.bits() && !source.header_layout_uri.is_empty();
            reader.network_message_content = (!is_standard).then_some(bits);
            reader.message_content =
                other(uadp.data_set_message_content_mask.bits(), plain.data_set_message_content_mask.bits());
        }
        (DataSetReaderMessage::Json(json), DataSetReaderMessage::Json(plain)) => {
            reader.network_message_content =
                other(json.network_message_content_mask.bits(), plain.network_message_content_mask.bits());
            reader.message_content =
                other(json.data_set_message_content_mask.bits(), plain.data_set_message_content_mask.bits());
        }
        _ => {}
    }
    reader
}
