//! The objects of a configuration (Part 14 §9.1.4 to §9.1.9), kept in step with it.

mod below;

pub(super) use below::{extension_field_of, mirror_parent};

use super::live::Live;
use super::methods::{Inputs, blocking};
use super::{diagnostics, methods, set, settings};
use crate::error::BuildError;
use crate::space::{Space, now, ns0};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taktwerk_pubsub::PublisherId;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetSource, DataSetWriter, Element, GroupSecurity,
    PublishedDataSet, ReaderGroup, WriterGroup,
};
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids, variable_ids};
use taktwerk_schema::{KeyValuePair, MessageSecurityMode, StandaloneSubscribedDataSetDataType};
use taktwerk_server::callback::CallContext;
use taktwerk_server::space::NodeSpec;
use taktwerk_server::space::build::Under;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant};

/// The supported transports.
pub(super) const PROFILES: [&str; 4] = [
    taktwerk_pubsub::config::TRANSPORT_UDP_UADP,
    taktwerk_pubsub::config::TRANSPORT_ETH_UADP,
    taktwerk_pubsub::config::TRANSPORT_MQTT_UADP,
    taktwerk_pubsub::config::TRANSPORT_MQTT_JSON,
];

fn profiles() -> Vec<UaString> {
    PROFILES.iter().map(|uri| (*uri).into()).collect()
}

/// Adds the constant parts.
pub(super) fn add_root(space: &Space) -> Result<(), BuildError> {
    set(space, &ns0(variable_ids::PUBLISH_SUBSCRIBE_SUPPORTED_TRANSPORT_PROFILES), profiles())?;
    methods::offer(space, &ns0(object_ids::PUBLISH_SUBSCRIBE_PUBLISHED_DATA_SETS), methods::of_folders())?;
    methods::offer(
        space,
        &ns0(object_ids::PUBLISH_SUBSCRIBE_SUBSCRIBED_DATA_SETS),
        methods::of_subscribed_folders(),
    )
}

/// The configured part that an object represents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Object {
    Element(Element),
    /// A folder of PublishedDataSets; the empty path is PublishedDataSets itself.
    Folder(Vec<String>),
}

/// An added instance.
#[derive(Debug)]
struct Instance {
    object: Option<Object>,
    /// Its creation settings. If they change, the instance is replaced.
    made: Made,
    /// Its members by path; the empty path is the instance itself.
    members: BTreeMap<String, NodeId>,
    /// Additional nodes that are not in its type.
    others: Vec<NodeId>,
}

#[derive(Debug, PartialEq)]
struct Made {
    parent: NodeId,
    type_id: u32,
    optional: Vec<&'static str>,
    /// Other settings that cannot change after creation.
    fixed: String,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    instances: BTreeMap<NodeId, Instance>,
}

impl Nodes {
    /// The configured part that a node represents.
    pub(super) fn object(&self, id: &NodeId) -> Option<&Object> {
        self.instances.get(id)?.object.as_ref()
    }

    /// The element to which an object below it belongs, such as its ExtensionFields.
    pub(super) fn owner(&self, id: &NodeId) -> Option<&Element> {
        match self.object(&self.instances.get(id)?.made.parent) {
            Some(Object::Element(element)) => Some(element),
            _ => None,
        }
    }

    /// The node of an element.
    pub(super) fn node(&self, element: &Element) -> Option<NodeId> {
        let wanted = Object::Element(element.clone());
        let found = self.instances.iter().find(|(_, instance)| instance.object.as_ref() == Some(&wanted));
        found.map(|(id, _)| id.clone())
    }

    /// Updates the objects to a configuration.
    ///
    /// # Errors
    /// A name is invalid. Only a part of the objects has been updated then.
    pub(super) fn sync(
        &mut self,
        live: &Arc<Live>,
        space: &Space,
        configuration: &Configuration,
        folders: &BTreeSet<Vec<String>>,
    ) -> Result<(), BuildError> {
        let version = ns0(variable_ids::PUBLISH_SUBSCRIBE_CONFIGURATION_VERSION);
        set(space, &version, configuration.configuration_version)?;
        let mut sync = Sync { nodes: self, live, space, data_sets: BTreeMap::new(), seen: BTreeSet::new() };
        sync.all(configuration, folders)?;
        let seen = core::mem::take(&mut sync.seen);
        let gone: Vec<NodeId> = self.instances.keys().filter(|id| !seen.contains(*id)).cloned().collect();
        for id in gone {
            self.remove(live, space, &id);
        }
        Ok(())
    }

    /// Deletes an instance and everything below it.
    fn remove(&mut self, live: &Live, space: &Space, id: &NodeId) {
        let below: Vec<NodeId> = self
            .instances
            .iter()
            .filter(|(other, instance)| *other != id && instance.made.parent == *id)
            .map(|(other, _)| other.clone())
            .collect();
        for child in below {
            self.remove(live, space, &child);
        }
        let Some(instance) = self.instances.remove(id) else { return };
        if let Some(Object::Element(element)) = &instance.object {
            live.states.hide(element);
            live.counted.forget(element);
        }
        for node in instance.others.iter().chain(instance.members.values()) {
            // The node may already have been deleted by a client.
            let _ = space.delete_node(node);
        }
    }
}

struct Sync<'a> {
    nodes: &'a mut Nodes,
    live: &'a Arc<Live>,
    space: &'a Space,
    /// The objects of the PublishedDataSets by name.
    data_sets: BTreeMap<String, NodeId>,
    seen: BTreeSet<NodeId>,
}

/// An instance with its members by path.
struct Added<'a> {
    space: &'a Space,
    id: NodeId,
    members: BTreeMap<String, NodeId>,
    is_new: bool,
}

impl Added<'_> {
    /// Sets a member's value.
    fn set(&self, path: &str, value: impl Into<Variant>) -> Result<(), BuildError> {
        match self.members.get(path) {
            Some(id) => {
                let variable = self.space.variable(id)?;
                let value = value.into();
                // Do not report unchanged values.
                if variable.get().value.as_ref().is_none_or(|is| !is.same_as(&value)) {
                    let status = match value.is_empty() {
                        // A setting that is not configured has no good value.
                        true => StatusCode::BAD_WAITING_FOR_INITIAL_DATA,
                        false => StatusCode::GOOD,
                    };
                    variable.set_with(value, status, now(), now());
                }
                Ok(())
            }
            None => Err(BuildError::NoMember { type_id: self.id.clone(), path: path.to_owned() }),
        }
    }

    /// Hides a member whose value names nodes from users who may not see those nodes.
    fn show_to_those_who_know(&self, path: &str, named: &[NodeId]) -> Result<(), BuildError> {
        match self.members.get(path) {
            Some(id) => Ok(self.space.show_to_those_who_know(id, named)?),
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

/// The settings of an instance to be added.
struct Wanted<'a> {
    parent: &'a NodeId,
    reference_type: u32,
    name: &'a str,
    id: String,
    type_id: u32,
    optional: Vec<&'static str>,
    object: Option<Object>,
    fixed: String,
}

impl<'a> Sync<'a> {
    /// Adds an instance under a parent, or returns the existing one if its creation settings are equal.
    fn instance(&mut self, mut wanted: Wanted<'_>) -> Result<Added<'a>, BuildError> {
        let id = NodeId::string(1, wanted.id);
        if let Some(Object::Element(element)) = &wanted.object
            && wanted.optional.contains(&"Status/Enable")
        {
            wanted.optional.extend(diagnostics::optional(element));
        }
        let made = Made {
            parent: wanted.parent.clone(),
            type_id: wanted.type_id,
            optional: wanted.optional,
            fixed: wanted.fixed,
        };
        self.seen.insert(id.clone());
        if let Some(known) = self.known(&id, &made) {
            return Ok(known);
        }
        self.nodes.remove(self.live, self.space, &id);
        let name = QualifiedName::new(1, wanted.name);
        self.add(id, name, wanted.reference_type, made, wanted.object)
    }

    /// The existing instance with the same creation settings.
    fn known(&self, id: &NodeId, made: &Made) -> Option<Added<'a>> {
        let known = self.nodes.instances.get(id).filter(|known| known.made == *made)?;
        Some(Added { space: self.space, id: id.clone(), members: known.members.clone(), is_new: false })
    }

    fn add(
        &mut self,
        id: NodeId,
        name: QualifiedName,
        reference_type: u32,
        made: Made,
        object: Option<Object>,
    ) -> Result<Added<'a>, BuildError> {
        let display_name = LocalizedText::from(name.name.as_str());
        let spec = NodeSpec::object(id.clone(), name).display_name(display_name);
        let (reference_type, type_id) = (ns0(reference_type), ns0(made.type_id));
        let under =
            Under { parent: &made.parent, reference_type: &reference_type, type_definition: Some(&type_id) };
        let members = self.space.add_instance(spec, under, &made.optional, now())?;
        let members: BTreeMap<String, NodeId> = members.into_iter().collect();
        let instance = Instance { object, made, members: members.clone(), others: Vec::new() };
        self.nodes.instances.insert(id.clone(), instance);
        Ok(Added { space: self.space, id, members, is_new: true })
    }

    /// An additional node of an instance. It is deleted with the instance.
    fn other(
        &mut self,
        added: &Added<'_>,
        id: NodeId,
        spec: NodeSpec,
        under: Under<'_>,
    ) -> Result<(), BuildError> {
        self.space.add_node(spec, under, now())?;
        if let Some(instance) = self.nodes.instances.get_mut(&added.id) {
            instance.others.push(id);
        }
        Ok(())
    }

    /// Connects the Status object with the element's state and Methods.
    fn status(&self, added: &Added<'_>, element: &Element) -> Result<(), BuildError> {
        if let Some(state) = added.members.get("Status/State") {
            self.live.states.show(Some(element.clone()), self.space.variable(state)?);
        }
        if !added.is_new {
            return Ok(());
        }
        diagnostics::add(self.space, self.live, element, &added.members)?;
        for (path, enabled) in [("Status/Enable", true), ("Status/Disable", false)] {
            if let Some(id) = added.members.get(path) {
                let (live, element) = (Arc::clone(self.live), element.clone());
                let handler = move |caller: &CallContext, _: Inputs| {
                    super::administers(caller)?;
                    live.set_element_enabled(&element, enabled)?;
                    Ok(Vec::new())
                };
                // Responders hand over their state before their successors start; a shard must not wait for that.
                self.space.set_method(id, blocking(handler))?;
            }
        }
        Ok(())
    }

    fn all(
        &mut self,
        configuration: &Configuration,
        folders: &BTreeSet<Vec<String>>,
    ) -> Result<(), BuildError> {
        let mut wanted = folders.clone();
        for data_set in &configuration.data_sets {
            for depth in 1..=data_set.folder.len() {
                wanted.insert(data_set.folder.get(..depth).unwrap_or_default().to_vec());
            }
        }
        // Shorter paths first, so that parents exist.
        for path in &wanted {
            self.folder(path)?;
        }
        for data_set in &configuration.data_sets {
            self.data_set(data_set)?;
        }
        for set in &configuration.subscribed_data_sets {
            self.subscribed_data_set(set)?;
        }
        configuration.connections.iter().try_for_each(|connection| self.connection(connection))
    }

    fn folder(&mut self, path: &[String]) -> Result<(), BuildError> {
        let Some((name, above)) = path.split_last() else { return Ok(()) };
        let added = self.instance(Wanted {
            parent: &folder_id(above),
            reference_type: reference_type_ids::ORGANIZES,
            name,
            id: format!("PubSub/DataSetFolders/{}", path.join("/")),
            type_id: object_type_ids::DATA_SET_FOLDER_TYPE,
            optional: Vec::new(),
            object: Some(Object::Folder(path.to_vec())),
            fixed: String::new(),
        })?;
        if added.is_new {
            methods::offer(self.space, &added.id, methods::of_folders())?;
        }
        Ok(())
    }

    fn data_set(&mut self, data_set: &PublishedDataSet) -> Result<(), BuildError> {
        let type_id = match data_set.source {
            DataSetSource::Items(_) => object_type_ids::PUBLISHED_DATA_ITEMS_TYPE,
            _ => object_type_ids::PUBLISHED_DATA_SET_TYPE,
        };
        let name = data_set.name.as_str();
        let mut optional = vec!["DataSetClassId"];
        if matches!(data_set.source, DataSetSource::Custom { .. }) {
            optional.push("CyclicDataSet");
        }
        let added = self.instance(Wanted {
            parent: &folder_id(&data_set.folder),
            reference_type: reference_type_ids::HAS_COMPONENT,
            name,
            id: format!("PubSub/PublishedDataSets/{name}"),
            type_id,
            optional,
            object: Some(Object::Element(Element::DataSet { name: name.to_owned() })),
            fixed: String::new(),
        })?;
        let meta_data = &data_set.meta_data;
        added.set("ConfigurationVersion", Variant::from_structure(&meta_data.configuration_version))?;
        added.set("DataSetMetaData", Variant::from_structure(meta_data))?;
        added.set("DataSetClassId", meta_data.data_set_class_id)?;
        if let DataSetSource::Items(items) = &data_set.source {
            added.set("PublishedData", Variant::from_structures(items))?;
            let named: Vec<NodeId> = items.iter().map(|item| item.published_variable.clone()).collect();
            added.show_to_those_who_know("PublishedData", &named)?;
            if added.is_new {
                methods::offer(self.space, &added.id, methods::of_items())?;
            }
        }
        if let DataSetSource::Custom { cyclic } = &data_set.source {
            added.set("CyclicDataSet", *cyclic)?;
        }
        self.extension_fields(&added, data_set)?;
        self.data_sets.insert(data_set.name.clone(), added.id);
        Ok(())
    }

    fn subscribed_data_set(&mut self, set: &StandaloneSubscribedDataSetDataType) -> Result<(), BuildError> {
        let name = set.name.as_str();
        let added = self.instance(Wanted {
            parent: &ns0(object_ids::PUBLISH_SUBSCRIBE_SUBSCRIBED_DATA_SETS),
            reference_type: reference_type_ids::HAS_COMPONENT,
            name,
            id: format!("PubSub/SubscribedDataSets/{name}"),
            type_id: object_type_ids::STANDALONE_SUBSCRIBED_DATA_SET_TYPE,
            optional: Vec::new(),
            object: Some(Object::Element(Element::SubscribedDataSet { name: name.to_owned() })),
            fixed: String::new(),
        })?;
        added.set("DataSetMetaData", Variant::from_structure(&set.data_set_meta_data))?;
        added.set("IsConnected", false)?;
        self.subscribed_standalone(&added, &set.subscribed_data_set)
    }

    fn connection(&mut self, connection: &Connection) -> Result<(), BuildError> {
        let element = Element::Connection { name: connection.name.clone() };
        let id = format!("PubSub/{}", connection.name);
        let added = self.instance(Wanted {
            parent: &ns0(object_ids::PUBLISH_SUBSCRIBE),
            reference_type: reference_type_ids::HAS_PUB_SUB_CONNECTION,
            name: &connection.name,
            id: id.clone(),
            type_id: object_type_ids::PUB_SUB_CONNECTION_TYPE,
            optional: vec!["Status/Enable", "Status/Disable"],
            object: Some(Object::Element(element.clone())),
            fixed: String::new(),
        })?;
        added.set("PublisherId", publisher_id(connection.publisher_id.as_ref()))?;
        added.set("TransportProfileUri", connection.transport_profile_uri.as_str())?;
        added.set("TransportProfileUri/Selections", profiles())?;
        added.properties("ConnectionProperties", &connection.properties)?;
        self.address(&added, "Address", &connection.network_interface, &connection.url)?;
        self.settings(&added, "TransportSettings", settings::of_connection(&connection.transport))?;
        self.status(&added, &element)?;
        if added.is_new {
            methods::offer(self.space, &added.id, methods::of_connections())?;
        }
        for group in &connection.writer_groups {
            self.writer_group(&added.id, &id, &connection.name, group)?;
        }
        for group in &connection.reader_groups {
            self.reader_group(&added.id, &id, &connection.name, group)?;
        }
        Ok(())
    }

    fn writer_group(
        &mut self,
        parent: &NodeId,
        prefix: &str,
        connection: &str,
        group: &WriterGroup,
    ) -> Result<(), BuildError> {
        let element = Element::WriterGroup { connection: connection.to_owned(), name: group.name.clone() };
        let id = format!("{prefix}/{}", group.name);
        let added = self.instance(Wanted {
            parent,
            reference_type: reference_type_ids::HAS_WRITER_GROUP,
            name: &group.name,
            id: id.clone(),
            type_id: object_type_ids::WRITER_GROUP_TYPE,
            optional: vec!["Status/Enable", "Status/Disable", "SecurityGroupId", "SecurityKeyServices"],
            object: Some(Object::Element(element.clone())),
            fixed: String::new(),
        })?;
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
        let transport = settings::of_writer_group_transport(&group.transport);
        self.settings(&added, "TransportSettings", transport)?;
        self.settings(&added, "MessageSettings", settings::of_writer_group_message(&group.message))?;
        self.status(&added, &element)?;
        if added.is_new {
            methods::offer(self.space, &added.id, methods::of_writer_groups())?;
        }
        for writer in &group.writers {
            let element = Element::Writer {
                connection: connection.to_owned(),
                group: group.name.clone(),
                name: writer.name.clone(),
            };
            self.writer(&added.id, &id, element, writer)?;
        }
        Ok(())
    }

    fn writer(
        &mut self,
        parent: &NodeId,
        prefix: &str,
        element: Element,
        writer: &DataSetWriter,
    ) -> Result<(), BuildError> {
        let added = self.instance(Wanted {
            parent,
            reference_type: reference_type_ids::HAS_DATA_SET_WRITER,
            name: &writer.name,
            id: format!("{prefix}/{}", writer.name),
            type_id: object_type_ids::DATA_SET_WRITER_TYPE,
            optional: vec!["Status/Enable", "Status/Disable", "KeyFrameCount"],
            object: Some(Object::Element(element.clone())),
            // The reference from the data set.
            fixed: writer.data_set_name.clone(),
        })?;
        added.set("DataSetWriterId", writer.data_set_writer_id)?;
        added.set("DataSetFieldContentMask", writer.field_content_mask.bits())?;
        added.set("KeyFrameCount", writer.key_frame_count)?;
        added.properties("DataSetWriterProperties", &writer.properties)?;
        self.settings(&added, "TransportSettings", settings::of_writer_transport(&writer.transport))?;
        self.settings(&added, "MessageSettings", settings::of_writer_message(&writer.message))?;
        if let Some(data_set) = self.data_sets.get(&writer.data_set_name) {
            let reference_type = ns0(reference_type_ids::DATA_SET_TO_WRITER);
            // The reference exists already unless one of the two is new.
            let _ = self.space.add_reference(data_set, &reference_type, &added.id);
        }
        self.status(&added, &element)
    }

    fn reader_group(
        &mut self,
        parent: &NodeId,
        prefix: &str,
        connection: &str,
        group: &ReaderGroup,
    ) -> Result<(), BuildError> {
        let element = Element::ReaderGroup { connection: connection.to_owned(), name: group.name.clone() };
        let id = format!("{prefix}/{}", group.name);
        let added = self.instance(Wanted {
            parent,
            reference_type: reference_type_ids::HAS_READER_GROUP,
            name: &group.name,
            id: id.clone(),
            type_id: object_type_ids::READER_GROUP_TYPE,
            optional: vec!["Status/Enable", "Status/Disable", "SecurityGroupId", "SecurityKeyServices"],
            object: Some(Object::Element(element.clone())),
            fixed: String::new(),
        })?;
        added.security(&group.security)?;
        added.set("MaxNetworkMessageSize", group.max_network_message_size)?;
        added.properties("GroupProperties", &group.properties)?;
        self.status(&added, &element)?;
        if added.is_new {
            methods::offer(self.space, &added.id, methods::of_reader_groups())?;
        }
        group.readers.iter().try_for_each(|reader| self.reader(&added.id, &id, connection, group, reader))
    }

    fn reader(
        &mut self,
        parent: &NodeId,
        prefix: &str,
        connection: &str,
        group: &ReaderGroup,
        reader: &DataSetReader,
    ) -> Result<(), BuildError> {
        let element = Element::Reader {
            connection: connection.to_owned(),
            group: group.name.clone(),
            name: reader.name.clone(),
        };
        let mut optional = vec!["Status/Enable", "Status/Disable"];
        if reader.security.is_some() {
            optional.extend(["SecurityMode", "SecurityGroupId", "SecurityKeyServices"]);
        }
        let added = self.instance(Wanted {
            parent,
            reference_type: reference_type_ids::HAS_DATA_SET_READER,
            name: &reader.name,
            id: format!("{prefix}/{}", reader.name),
            type_id: object_type_ids::DATA_SET_READER_TYPE,
            optional,
            object: Some(Object::Element(element.clone())),
            fixed: String::new(),
        })?;
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
        self.settings(&added, "TransportSettings", settings::of_reader_transport(&reader.transport))?;
        self.settings(&added, "MessageSettings", settings::of_reader_message(&reader.message))?;
        self.subscribed(&added, connection, &group.name, reader)?;
        if added.is_new {
            methods::offer(self.space, &added.id, methods::of_readers())?;
        }
        self.status(&added, &element)
    }
}

/// The node of a folder of data sets.
pub(super) fn folder_id(path: &[String]) -> NodeId {
    if path.is_empty() {
        return ns0(object_ids::PUBLISH_SUBSCRIBE_PUBLISHED_DATA_SETS);
    }
    NodeId::string(1, format!("PubSub/DataSetFolders/{}", path.join("/")))
}

/// The text of a string id.
fn text(id: &NodeId) -> String {
    match &id.identifier {
        taktwerk_types::Identifier::String(text) => text.as_str().to_owned(),
        _ => id.to_string(),
    }
}
