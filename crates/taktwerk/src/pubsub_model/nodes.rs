//! The objects of a configuration (Part 14 §9.1.4 to §9.1.9).

use super::set;
use super::states::States;
use crate::error::BuildError;
use crate::space::{Space, now, ns0};
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_pubsub::component::Component;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetSource, DataSetWriter, GroupSecurity, PublishedDataSet,
    ReaderGroup, WriterGroup,
};
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::{GroupIndex, PublisherId, ReaderIndex};
use taktwerk_schema::ids::{
    object_ids, object_type_ids, reference_type_ids, variable_ids, variable_type_ids,
};
use taktwerk_schema::{KeyValuePair, MessageSecurityMode};
use taktwerk_server::space::NodeSpec;
use taktwerk_server::space::build::{Under, ValueShape};
use taktwerk_types::{BuiltInType, LocalizedText, NodeId, QualifiedName, UaString, Variant};

/// The transports there are.
const PROFILES: [&str; 4] = [
    taktwerk_pubsub::config::TRANSPORT_UDP_UADP,
    taktwerk_pubsub::config::TRANSPORT_ETH_UADP,
    taktwerk_pubsub::config::TRANSPORT_MQTT_UADP,
    taktwerk_pubsub::config::TRANSPORT_MQTT_JSON,
];

/// Adds everything.
pub(super) fn add(
    space: &Space,
    configuration: &Configuration,
    states: &Arc<States>,
) -> Result<(), BuildError> {
    let profiles: Vec<UaString> = PROFILES.iter().map(|uri| (*uri).into()).collect();
    set(space, &ns0(variable_ids::PUBLISH_SUBSCRIBE_SUPPORTED_TRANSPORT_PROFILES), profiles)?;
    let version = ns0(variable_ids::PUBLISH_SUBSCRIBE_CONFIGURATION_VERSION);
    set(space, &version, configuration.configuration_version)?;
    let mut adder = Adder { space, states, data_sets: BTreeMap::new() };
    for data_set in &configuration.data_sets {
        adder.data_set(data_set)?;
    }
    for (index, connection) in configuration.connections.iter().enumerate() {
        adder.connection(index, connection)?;
    }
    Ok(())
}

struct Adder<'a> {
    space: &'a Space,
    states: &'a Arc<States>,
    /// The objects of the PublishedDataSets by name.
    data_sets: BTreeMap<String, NodeId>,
}

/// An instance that was added, with its members by their paths.
struct Added<'a> {
    space: &'a Space,
    id: NodeId,
    members: BTreeMap<String, NodeId>,
}

impl Added<'_> {
    /// Sets a member's value; members that the type does not have are left out.
    fn set(&self, path: &str, value: impl Into<Variant>) -> Result<(), BuildError> {
        match self.members.get(path) {
            Some(id) => set(self.space, id, value),
            None => Err(BuildError::NoMember { type_id: self.id.clone(), path: path.to_owned() }),
        }
    }

    fn properties(&self, path: &str, properties: &[KeyValuePair]) -> Result<(), BuildError> {
        self.set(path, Variant::from_structures(properties))
    }

    fn security(&self, security: &GroupSecurity) -> Result<(), BuildError> {
        let mode = match security.mode {
            SecurityMode::None => MessageSecurityMode::NONE,
            SecurityMode::Sign => MessageSecurityMode::SIGN,
            SecurityMode::SignAndEncrypt => MessageSecurityMode::SIGN_AND_ENCRYPT,
        };
        self.set("SecurityMode", mode.0)?;
        self.set("SecurityGroupId", security.security_group_id.as_str())?;
        self.set("SecurityKeyServices", Variant::from_structures(&security.security_key_services))
    }
}

/// A PublisherId as the value of a Property.
fn publisher_id(id: Option<&PublisherId>) -> Variant {
    id.map(PublisherId::to_variant).unwrap_or_default()
}

impl<'a> Adder<'a> {
    /// Adds an instance under a parent; its id is made of the parent's and its name.
    fn instance(
        &self,
        parent: &NodeId,
        reference_type: u32,
        name: &str,
        id: &str,
        type_id: u32,
        optional: &[&str],
    ) -> Result<Added<'a>, BuildError> {
        let (reference_type, type_id) = (ns0(reference_type), ns0(type_id));
        let id = NodeId::string(1, id);
        let spec =
            NodeSpec::object(id.clone(), QualifiedName::new(1, name)).display_name(LocalizedText::from(name));
        let under = Under { parent, reference_type: &reference_type, type_definition: Some(&type_id) };
        let members = self.space.add_instance(spec, under, optional, now())?;
        Ok(Added { space: self.space, id, members: members.into_iter().collect() })
    }

    /// Connects the Status object with the component's state. With Methods, if an engine can do what they say.
    fn status(&self, added: &Added<'_>, component: Component, switched: bool) -> Result<(), BuildError> {
        if let Some(state) = added.members.get("Status/State") {
            self.states.show(component, self.space.variable(state)?);
        }
        for (path, enabled) in [("Status/Enable", true), ("Status/Disable", false)] {
            if let Some(id) = added.members.get(path).filter(|_| switched) {
                self.space.set_method(id, Arc::new(self.states.method(component, enabled)))?;
            }
        }
        Ok(())
    }

    fn data_set(&mut self, data_set: &PublishedDataSet) -> Result<(), BuildError> {
        let type_id = match data_set.source {
            DataSetSource::Items(_) => object_type_ids::PUBLISHED_DATA_ITEMS_TYPE,
            _ => object_type_ids::PUBLISHED_DATA_SET_TYPE,
        };
        let folder = ns0(object_ids::PUBLISH_SUBSCRIBE_PUBLISHED_DATA_SETS);
        let (name, id) = (data_set.name.as_str(), format!("PubSub/PublishedDataSets/{}", data_set.name));
        let added = self.instance(
            &folder,
            reference_type_ids::HAS_COMPONENT,
            name,
            &id,
            type_id,
            &["DataSetClassId"],
        )?;
        let meta_data = &data_set.meta_data;
        added.set("ConfigurationVersion", Variant::from_structure(&meta_data.configuration_version))?;
        added.set("DataSetMetaData", Variant::from_structure(meta_data))?;
        added.set("DataSetClassId", meta_data.data_set_class_id)?;
        if let DataSetSource::Items(items) = &data_set.source {
            added.set("PublishedData", Variant::from_structures(items))?;
        }
        self.data_sets.insert(data_set.name.clone(), added.id);
        Ok(())
    }

    fn connection(&self, index: usize, connection: &Connection) -> Result<(), BuildError> {
        let root = ns0(object_ids::PUBLISH_SUBSCRIBE);
        let id = format!("PubSub/{}", connection.name);
        let added = self.instance(
            &root,
            reference_type_ids::HAS_PUB_SUB_CONNECTION,
            &connection.name,
            &id,
            object_type_ids::PUB_SUB_CONNECTION_TYPE,
            &["Status/Enable", "Status/Disable"],
        )?;
        added.set("PublisherId", publisher_id(connection.publisher_id.as_ref()))?;
        added.set("TransportProfileUri", connection.transport_profile_uri.as_str())?;
        added.properties("ConnectionProperties", &connection.properties)?;
        added.set("Address/NetworkInterface", connection.network_interface.as_str())?;
        self.url(&added, &connection.url)?;
        self.status(&added, Component::Connection { connection: index }, true)?;
        for (group, writers) in connection.writer_groups.iter().enumerate() {
            self.writer_group(&added.id, &id, GroupIndex { connection: index, group }, writers)?;
        }
        for (group, readers) in connection.reader_groups.iter().enumerate() {
            self.reader_group(&added.id, &id, index, group, readers)?;
        }
        Ok(())
    }

    /// The Url of NetworkAddressUrlType, which the abstract type of a connection's Address does not have.
    fn url(&self, connection: &Added<'_>, url: &str) -> Result<(), BuildError> {
        let Some(address) = connection.members.get("Address") else { return Ok(()) };
        let id = NodeId::string(1, format!("{}/Url", text(address)));
        let (component, kind) =
            (ns0(reference_type_ids::HAS_COMPONENT), ns0(variable_type_ids::BASE_DATA_VARIABLE_TYPE));
        let spec = NodeSpec::variable(id, QualifiedName::new(0, "Url"), NodeId::NULL, Some(url.into()))
            .shape(ValueShape::scalar(BuiltInType::String));
        let under = Under { parent: address, reference_type: &component, type_definition: Some(&kind) };
        Ok(self.space.add_node(spec, under, now())?)
    }

    fn writer_group(
        &self,
        parent: &NodeId,
        prefix: &str,
        index: GroupIndex,
        group: &WriterGroup,
    ) -> Result<(), BuildError> {
        let id = format!("{prefix}/{}", group.name);
        let added = self.instance(
            parent,
            reference_type_ids::HAS_WRITER_GROUP,
            &group.name,
            &id,
            object_type_ids::WRITER_GROUP_TYPE,
            &["Status/Enable", "Status/Disable", "SecurityGroupId", "SecurityKeyServices"],
        )?;
        added.security(&group.security)?;
        added.set("MaxNetworkMessageSize", group.max_network_message_size)?;
        added.properties("GroupProperties", &group.properties)?;
        added.set("WriterGroupId", group.writer_group_id)?;
        added.set("PublishingInterval", group.publishing_interval)?;
        added.set("KeepAliveTime", group.keep_alive_time)?;
        added.set("Priority", group.priority)?;
        let locales: Vec<UaString> = group.locale_ids.iter().map(|id| id.as_str().into()).collect();
        added.set("LocaleIds", locales)?;
        added.set("HeaderLayoutUri", group.header_layout_uri.as_str())?;
        self.status(&added, Component::WriterGroup(index), true)?;
        for (writer, config) in group.writers.iter().enumerate() {
            let component = Component::DataSetWriter { group: index, writer };
            self.writer(&added.id, &id, component, config)?;
        }
        Ok(())
    }

    fn writer(
        &self,
        parent: &NodeId,
        prefix: &str,
        component: Component,
        writer: &DataSetWriter,
    ) -> Result<(), BuildError> {
        let added = self.instance(
            parent,
            reference_type_ids::HAS_DATA_SET_WRITER,
            &writer.name,
            &format!("{prefix}/{}", writer.name),
            object_type_ids::DATA_SET_WRITER_TYPE,
            &["KeyFrameCount"],
        )?;
        added.set("DataSetWriterId", writer.data_set_writer_id)?;
        added.set("DataSetFieldContentMask", writer.field_content_mask.bits())?;
        added.set("KeyFrameCount", writer.key_frame_count)?;
        added.properties("DataSetWriterProperties", &writer.properties)?;
        if let Some(data_set) = self.data_sets.get(&writer.data_set_name) {
            let reference_type = ns0(reference_type_ids::DATA_SET_TO_WRITER);
            self.space.add_reference(data_set, &reference_type, &added.id)?;
        }
        self.status(&added, component, false)
    }

    fn reader_group(
        &self,
        parent: &NodeId,
        prefix: &str,
        connection: usize,
        index: usize,
        group: &ReaderGroup,
    ) -> Result<(), BuildError> {
        let id = format!("{prefix}/{}", group.name);
        let added = self.instance(
            parent,
            reference_type_ids::HAS_READER_GROUP,
            &group.name,
            &id,
            object_type_ids::READER_GROUP_TYPE,
            &["Status/Enable", "Status/Disable", "SecurityGroupId", "SecurityKeyServices"],
        )?;
        added.security(&group.security)?;
        added.set("MaxNetworkMessageSize", group.max_network_message_size)?;
        added.properties("GroupProperties", &group.properties)?;
        self.status(&added, Component::ReaderGroup { connection, group: index }, true)?;
        for (reader, config) in group.readers.iter().enumerate() {
            let index = ReaderIndex { connection, group: index, reader };
            self.reader(&added.id, &id, index, config)?;
        }
        Ok(())
    }

    fn reader(
        &self,
        parent: &NodeId,
        prefix: &str,
        index: ReaderIndex,
        reader: &DataSetReader,
    ) -> Result<(), BuildError> {
        let mut optional = vec!["Status/Enable", "Status/Disable"];
        if reader.security.is_some() {
            optional.extend(["SecurityMode", "SecurityGroupId", "SecurityKeyServices"]);
        }
        let added = self.instance(
            parent,
            reference_type_ids::HAS_DATA_SET_READER,
            &reader.name,
            &format!("{prefix}/{}", reader.name),
            object_type_ids::DATA_SET_READER_TYPE,
            &optional,
        )?;
        added.set("PublisherId", publisher_id(reader.publisher_id.as_ref()))?;
        added.set("WriterGroupId", reader.writer_group_id)?;
        added.set("DataSetWriterId", reader.data_set_writer_id)?;
        added.set("DataSetMetaData", Variant::from_structure(&reader.meta_data))?;
        added.set("DataSetFieldContentMask", reader.field_content_mask.bits())?;
        added.set("MessageReceiveTimeout", reader.message_receive_timeout)?;
        added.set("KeyFrameCount", reader.key_frame_count)?;
        added.set("HeaderLayoutUri", reader.header_layout_uri.as_str())?;
        added.properties("DataSetReaderProperties", &reader.properties)?;
        if let Some(security) = &reader.security {
            added.security(security)?;
        }
        self.status(&added, Component::DataSetReader(index), true)
    }
}

/// The text of a string id.
fn text(id: &NodeId) -> String {
    match &id.identifier {
        taktwerk_types::Identifier::String(text) => text.as_str().to_owned(),
        _ => id.to_string(),
    }
}
