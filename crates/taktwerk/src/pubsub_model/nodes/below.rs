//! Objects below an element whose type depends on the configuration: settings, addresses, processing of received values,
//! extension fields.

use super::super::settings::Settings;
use super::{Added, Instance, Made, Sync, text};
use crate::error::BuildError;
use crate::pubsub::target::mirror_id;
use crate::pubsub_model::{methods, set};
use crate::space::{now, ns0};
use std::collections::BTreeMap;
use taktwerk_pubsub::config::{
    DataSetReader, Element, PublishedDataSet, SubscribedDataSet, without_credentials,
};
use taktwerk_schema::ids::{method_ids, object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_schema::{
    FieldMetaData, KeyValuePair, SubscribedDataSetMirrorDataType, TargetVariablesDataType,
};
use taktwerk_server::space::NodeSpec;
use taktwerk_server::space::build::{Under, ValueShape};
use taktwerk_types::{ExtensionObject, LocalizedText, NodeId, QualifiedName, UaString, Variant};

/// An object that replaces the child declared by its parent's type under the same name.
struct Below<'a> {
    name: &'a str,
    type_id: u32,
    optional: Vec<&'static str>,
    fixed: String,
}

impl<'a> Sync<'a> {
    /// Adds a child object, or returns the existing one.
    fn below(&mut self, above: &Added<'_>, below: Below<'_>) -> Result<Added<'a>, BuildError> {
        let id = NodeId::string(1, format!("{}/{}", text(&above.id), below.name));
        let made = Made {
            parent: above.id.clone(),
            type_id: below.type_id,
            optional: below.optional,
            fixed: below.fixed,
        };
        self.seen.insert(id.clone());
        if let Some(known) = self.known(&id, &made) {
            return Ok(known);
        }
        self.nodes.remove(self.live, self.space, &id);
        // The child that came with the parent's type has only the members of the base type.
        for (path, declared) in &above.members {
            if path.strip_prefix(below.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                // It was already replaced if another object was here before.
                let _ = self.space.delete_node(declared);
            }
        }
        let name = QualifiedName::new(0, below.name);
        self.add(id, name, reference_type_ids::HAS_COMPONENT, made, None)
    }

    /// TransportSettings or MessageSettings, if configured.
    pub(super) fn settings(
        &mut self,
        above: &Added<'_>,
        name: &str,
        settings: Option<Settings>,
    ) -> Result<(), BuildError> {
        let Some(settings) = settings else { return Ok(()) };
        let mut optional: Vec<&str> = settings.values.iter().map(|(name, _)| *name).collect();
        optional.extend(settings.address.as_ref().map(|(name, _)| *name));
        let below = Below { name, type_id: settings.type_id, optional, fixed: String::new() };
        let added = self.below(above, below)?;
        for (name, value) in settings.values {
            added.set(name, value)?;
        }
        match settings.address {
            Some((name, address)) => {
                self.address(&added, name, address.network_interface.as_str(), address.url.as_str())
            }
            None => Ok(()),
        }
    }

    /// An address, as NetworkAddressUrlType, where the parent's type declares the abstract base type.
    pub(super) fn address(
        &mut self,
        above: &Added<'_>,
        name: &str,
        network_interface: &str,
        url: &str,
    ) -> Result<(), BuildError> {
        let type_id = object_type_ids::NETWORK_ADDRESS_URL_TYPE;
        let below = Below { name, type_id, optional: Vec::new(), fixed: String::new() };
        let added = self.below(above, below)?;
        added.set("NetworkInterface", network_interface)?;
        // No restriction: any interface of the machine, by name or address.
        added.set("NetworkInterface/Selections", Vec::<UaString>::new())?;
        // Users who can browse must not see broker credentials. The file contains them, for administrators.
        added.set("Url", without_credentials(url))
    }

    /// The processing of a reader's values (Part 14 §9.1.9).
    pub(super) fn subscribed(
        &mut self,
        above: &Added<'_>,
        connection: &str,
        group: &str,
        reader: &DataSetReader,
    ) -> Result<(), BuildError> {
        match &reader.subscribed_data_set {
            SubscribedDataSet::TargetVariables(targets) => self.target_variables(above, targets),
            SubscribedDataSet::Mirror(mirror) => self.mirror(above, (connection, group), reader, mirror),
            _ => self.nothing(above),
        }
    }

    /// The same for a standalone one, which has no Variables until a reader uses it.
    pub(super) fn subscribed_standalone(
        &mut self,
        above: &Added<'_>,
        subscribed: &ExtensionObject,
    ) -> Result<(), BuildError> {
        if let Ok(targets) = subscribed.decode::<TargetVariablesDataType>() {
            return self.target_variables(above, &targets);
        }
        if subscribed.is::<SubscribedDataSetMirrorDataType>() {
            let type_id = object_type_ids::SUBSCRIBED_DATA_SET_MIRROR_TYPE;
            return self.below(above, subscribed_as(type_id, String::new())).map(|_| ());
        }
        self.nothing(above)
    }

    fn nothing(&mut self, above: &Added<'_>) -> Result<(), BuildError> {
        let type_id = object_type_ids::SUBSCRIBED_DATA_SET_TYPE;
        self.below(above, subscribed_as(type_id, String::new())).map(|_| ())
    }

    fn target_variables(
        &mut self,
        above: &Added<'_>,
        targets: &TargetVariablesDataType,
    ) -> Result<(), BuildError> {
        let type_id = object_type_ids::TARGET_VARIABLES_TYPE;
        let added = self.below(above, subscribed_as(type_id, String::new()))?;
        if added.is_new {
            methods::offer(self.space, &added.id, methods::of_target_variables())?;
        }
        added.set("TargetVariables", Variant::from_structures(&targets.target_variables))?;
        let named: Vec<NodeId> =
            targets.target_variables.iter().map(|target| target.target_node_id.clone()).collect();
        added.show_to_those_who_know("TargetVariables", &named)
    }

    /// The Object with a Variable for each field of a mirrored data set (Part 14 §9.1.9.3).
    fn mirror(
        &mut self,
        above: &Added<'_>,
        (connection, group): (&str, &str),
        reader: &DataSetReader,
        mirror: &SubscribedDataSetMirrorDataType,
    ) -> Result<(), BuildError> {
        let fields: Vec<_> = reader.meta_data.fields.iter().map(made_of).collect();
        let fixed = format!("{mirror:?}{fields:?}");
        let added =
            self.below(above, subscribed_as(object_type_ids::SUBSCRIBED_DATA_SET_MIRROR_TYPE, fixed))?;
        if !added.is_new {
            return Ok(());
        }
        let (component, object_type, variable_type) = (
            ns0(reference_type_ids::HAS_COMPONENT),
            ns0(object_type_ids::BASE_OBJECT_TYPE),
            ns0(variable_type_ids::BASE_DATA_VARIABLE_TYPE),
        );
        let name = mirror.parent_node_name.as_str();
        let parent = mirror_parent(connection, group, &reader.name, name);
        let access = methods::access(&mirror.role_permissions);
        let spec = NodeSpec::object(parent.clone(), QualifiedName::new(1, name))
            .display_name(LocalizedText::from(name))
            .access(access.clone());
        let under =
            Under { parent: &added.id, reference_type: &component, type_definition: Some(&object_type) };
        self.other(&added, parent.clone(), spec, under)?;
        for field in &reader.meta_data.fields {
            let id = mirror_id(connection, group, &reader.name, mirror, field.name.as_str());
            let shape = ValueShape {
                data_type: field.data_type.clone(),
                value_rank: field.value_rank,
                array_dimensions: field.array_dimensions.clone(),
            };
            let name = field.name.as_str();
            let spec =
                NodeSpec::variable(id.clone(), QualifiedName::new(1, name), field.data_type.clone(), None)
                    .shape(shape)
                    .display_name(LocalizedText::from(name))
                    .access(access.clone());
            let under =
                Under { parent: &parent, reference_type: &component, type_definition: Some(&variable_type) };
            self.other(&added, id, spec, under)?;
        }
        Ok(())
    }

    /// The constant fields of a data set (Part 14 §9.1.4.2.2).
    pub(super) fn extension_fields(
        &mut self,
        above: &Added<'_>,
        data_set: &PublishedDataSet,
    ) -> Result<(), BuildError> {
        let below = Below {
            name: "ExtensionFields",
            type_id: object_type_ids::EXTENSION_FIELDS_TYPE,
            optional: Vec::new(),
            fixed: String::new(),
        };
        let added = self.below(above, below)?;
        if added.is_new {
            // The type requires separate Methods for each instance.
            for (name, method) in [
                ("AddExtensionField", method_ids::EXTENSION_FIELDS_TYPE_ADD_EXTENSION_FIELD),
                ("RemoveExtensionField", method_ids::EXTENSION_FIELDS_TYPE_REMOVE_EXTENSION_FIELD),
            ] {
                if let Some(id) = added.members.get(name) {
                    methods::implement(self.space, self.live, id, method)?;
                }
            }
        }
        data_set.extension_fields.iter().try_for_each(|field| self.extension_field(&added, field))
    }

    fn extension_field(&mut self, above: &Added<'_>, field: &KeyValuePair) -> Result<(), BuildError> {
        let id = extension_field_id(&above.id, &field.key);
        let shape = self.space.shape_of(&field.value);
        let made = Made {
            parent: above.id.clone(),
            type_id: variable_type_ids::PROPERTY_TYPE,
            optional: Vec::new(),
            fixed: format!("{shape:?}"),
        };
        self.seen.insert(id.clone());
        // Publishers may hold a handle to it, so keep it if possible.
        if self.known(&id, &made).is_some() {
            return set(self.space, &id, field.value.clone());
        }
        self.nodes.remove(self.live, self.space, &id);
        let (property, kind) = (ns0(reference_type_ids::HAS_PROPERTY), ns0(variable_type_ids::PROPERTY_TYPE));
        let spec = NodeSpec::variable(
            id.clone(),
            field.key.clone(),
            shape.data_type.clone(),
            Some(field.value.clone()),
        );
        let spec = spec.shape(shape).display_name(LocalizedText::from(field.key.name.as_str()));
        let under = Under { parent: &above.id, reference_type: &property, type_definition: Some(&kind) };
        self.space.add_node(spec, under, now())?;
        let members = BTreeMap::from([(String::new(), id.clone())]);
        self.nodes.instances.insert(id, Instance { object: None, made, members, others: Vec::new() });
        Ok(())
    }
}

fn subscribed_as(type_id: u32, fixed: String) -> Below<'static> {
    Below { name: "SubscribedDataSet", type_id, optional: Vec::new(), fixed }
}

/// The parts of a field on which its mirrored Variable depends.
fn made_of(field: &FieldMetaData) -> (&str, &NodeId, i32) {
    (field.name.as_str(), &field.data_type, field.value_rank)
}

/// The parent of a mirrored data set's Variables.
pub(in crate::pubsub_model) fn mirror_parent(
    connection: &str,
    group: &str,
    reader: &str,
    name: &str,
) -> NodeId {
    NodeId::string(1, format!("PubSub/{connection}/{group}/{reader}/SubscribedDataSet/{name}"))
}

/// The Property of an extension field below its ExtensionFields object.
fn extension_field_id(above: &NodeId, key: &QualifiedName) -> NodeId {
    NodeId::string(1, format!("{}/{}:{}", text(above), key.namespace_index, key.name.as_str()))
}

/// The data set of an ExtensionFields object, and the Property of a field.
pub(in crate::pubsub_model) fn extension_field_of(element: &Element, key: &QualifiedName) -> NodeId {
    let above = NodeId::string(1, format!("PubSub/PublishedDataSets/{}/ExtensionFields", element.name()));
    extension_field_id(&above, key)
}
