//! Methods for published data: folders and data sets of Variables (Part 14 §9.1.4).

use super::{INVALID, Inputs, Outcome, called_on, passed, take_positions, usable};
use crate::pubsub_model::authorized::Caller;
use crate::pubsub_model::live::Live;
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_crypto::Entropy;
use taktwerk_net::entropy::OsEntropy;
use taktwerk_pubsub::config::update::{free_name, remove_writers_of};
use taktwerk_pubsub::config::{Configuration, DataSetSource, Element, PublishedDataSet};
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_schema::{
    ConfigurationVersionDataType, DataSetFieldFlags, DataSetMetaDataType, FieldMetaData, PermissionType,
    PublishedVariableDataType,
};
use taktwerk_server::callback::CallContext;
use taktwerk_types::{Guid, NodeId, StatusCode, UaString, Variant};

/// The published attribute.
const VALUE: u32 = 13;
/// Most nested folders.
const DEPTH_MAX: usize = 16;

/// A Variable to be published, with its settings.
struct Candidate {
    alias: String,
    is_promoted: bool,
    variable: PublishedVariableDataType,
}

/// Combines argument arrays, which must have the same length.
fn candidates(
    aliases: Vec<UaString>,
    promoted: Vec<bool>,
    variables: Vec<PublishedVariableDataType>,
) -> Result<Vec<Candidate>, StatusCode> {
    if aliases.len() != variables.len() || promoted.len() != variables.len() {
        return Err(INVALID);
    }
    let all = aliases.into_iter().zip(promoted).zip(variables);
    Ok(all
        .map(|((alias, is_promoted), variable)| Candidate {
            alias: alias.as_str().to_owned(),
            is_promoted,
            variable,
        })
        .collect())
}

/// Describes a Variable as a field.
fn field(
    live: &Live,
    caller: &Caller<'_>,
    mode: SecurityMode,
    candidate: &Candidate,
    names: &BTreeSet<&str>,
) -> Result<FieldMetaData, StatusCode> {
    let variable = &candidate.variable;
    // Check first, so that errors do not reveal whether a node exists.
    caller.check(mode, &variable.published_variable, PermissionType::READ)?;
    if variable.attribute_id != 0 && variable.attribute_id != VALUE {
        return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    }
    if !variable.index_range.is_empty() || variable.deadband_type != 0 {
        return Err(StatusCode::BAD_NOT_SUPPORTED);
    }
    if names.contains(candidate.alias.as_str()) {
        return Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED);
    }
    let id = &variable.published_variable;
    let shape = live.space()?.declared_shape(id);
    let (shape, kind) = shape.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let mut bytes = [0; 16];
    OsEntropy.fill(&mut bytes);
    let flags = if candidate.is_promoted { DataSetFieldFlags::PROMOTED_FIELD } else { Default::default() };
    let name = if candidate.alias.is_empty() { free_name("Field", names) } else { candidate.alias.clone() };
    Ok(FieldMetaData {
        name: name.as_str().into(),
        field_flags: flags,
        built_in_type: kind.number(),
        data_type: shape.data_type,
        value_rank: shape.value_rank,
        array_dimensions: shape.array_dimensions,
        data_set_field_id: Guid::from_bytes(bytes),
        ..FieldMetaData::default()
    })
}

/// Appends Variables to a data set, as far as they can be published.
fn append(
    live: &Live,
    caller: &CallContext,
    mode: SecurityMode,
    data_set: &mut PublishedDataSet,
    candidates: Vec<Candidate>,
) -> Result<Vec<StatusCode>, StatusCode> {
    let DataSetSource::Items(items) = &mut data_set.source else { return Err(StatusCode::BAD_INVALID_STATE) };
    let space = live.space()?;
    let rights = Caller::new(&space, &caller.roles);
    let mut results = Vec::new();
    for candidate in candidates {
        let fields = &mut data_set.meta_data.fields;
        let names = fields.iter().map(|field| field.name.as_str()).collect();
        results.push(match field(live, &rights, mode, &candidate, &names) {
            Ok(field) => {
                fields.push(field);
                items.push(candidate.variable);
                StatusCode::GOOD
            }
            Err(status) => status,
        });
    }
    Ok(results)
}

fn version_of(live: &Live, name: &str) -> ConfigurationVersionDataType {
    let configuration = live.states.configuration();
    configuration.data_set(name).map(|set| set.meta_data.configuration_version.clone()).unwrap_or_default()
}

/// The folder on which a Method is called.
fn folder(live: &Live, caller: &CallContext) -> Result<Vec<String>, StatusCode> {
    live.folder(&caller.object_id).ok_or(StatusCode::BAD_NODE_ID_INVALID)
}

fn is_free(configuration: &Configuration, name: &str) -> Result<(), StatusCode> {
    match configuration.data_set(name) {
        Some(_) => Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED),
        None => Ok(()),
    }
}

/// AddPublishedDataItems (Part 14 §9.1.4.5.2).
pub(super) fn add_items(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let folder = folder(live, caller)?;
    let name = inputs.text()?;
    usable(&name)?;
    let (aliases, flags): (Vec<UaString>, Vec<u16>) = (inputs.list()?, inputs.list()?);
    let promoted =
        flags.into_iter().map(|flags| DataSetFieldFlags(flags).contains(DataSetFieldFlags::PROMOTED_FIELD));
    let candidates = candidates(aliases, promoted.collect(), inputs.structures()?)?;
    let results = live.change_for(caller, |configuration, _| {
        is_free(configuration, &name)?;
        let meta_data = DataSetMetaDataType { name: name.as_str().into(), ..DataSetMetaDataType::default() };
        let source = DataSetSource::Items(Vec::new());
        let mut data_set =
            PublishedDataSet { name: name.clone(), folder, meta_data, source, ..PublishedDataSet::default() };
        let results = append(live, caller, SecurityMode::SignAndEncrypt, &mut data_set, candidates)?;
        configuration.data_sets.push(data_set);
        Ok(results)
    })?;
    let version = version_of(live, &name);
    let node = live.node(&Element::DataSet { name });
    Ok(vec![node.into(), Variant::from_structure(&version), results.into()])
}

/// AddPublishedDataItemsTemplate (Part 14 §9.1.4.5.4): the caller supplies the metadata.
pub(super) fn add_items_template(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let folder = folder(live, caller)?;
    let name = inputs.text()?;
    usable(&name)?;
    let meta_data: DataSetMetaDataType = inputs.structure()?;
    let variables: Vec<PublishedVariableDataType> = inputs.structures()?;
    if variables.len() != meta_data.fields.len() {
        return Err(INVALID);
    }
    let space = live.space()?;
    // The metadata fix the number of fields, so a single unusable Variable rejects the whole data set.
    let rights = Caller::new(&space, &caller.roles);
    let may = |variable: &PublishedVariableDataType| {
        rights.check(SecurityMode::SignAndEncrypt, &variable.published_variable, PermissionType::READ)
    };
    let results: Vec<StatusCode> = variables
        .iter()
        .map(|variable| match space.declared_shape(&variable.published_variable) {
            _ if may(variable).is_err() => may(variable).err().unwrap_or_default(),
            None => StatusCode::BAD_NODE_ID_UNKNOWN,
            Some(_) if variable.attribute_id != 0 && variable.attribute_id != VALUE => {
                StatusCode::BAD_ATTRIBUTE_ID_INVALID
            }
            Some(_) if !variable.index_range.is_empty() || variable.deadband_type != 0 => {
                StatusCode::BAD_NOT_SUPPORTED
            }
            Some(_) => StatusCode::GOOD,
        })
        .collect();
    if results.iter().any(|status| status.is_bad()) {
        return Ok(vec![NodeId::NULL.into(), results.into()]);
    }
    live.change_for(caller, |configuration, _| {
        is_free(configuration, &name)?;
        let source = DataSetSource::Items(variables);
        let data_set =
            PublishedDataSet { name: name.clone(), folder, meta_data, source, ..PublishedDataSet::default() };
        configuration.data_sets.push(data_set);
        Ok(())
    })?;
    Ok(vec![live.node(&Element::DataSet { name }).into(), results.into()])
}

/// AddPublishedEvents and AddPublishedEventsTemplate are not supported: only the application supplies events.
pub(super) fn no_events(_: &Arc<Live>, _: &CallContext, _: &mut Inputs) -> Outcome {
    Err(StatusCode::BAD_NOT_SUPPORTED)
}

/// RemovePublishedDataSet (Part 14 §9.1.4.5.6), including its DataSetWriters.
pub(super) fn remove(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let folder = folder(live, caller)?;
    let Element::DataSet { name } = passed(live, inputs)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    live.change_for(caller, |configuration, _| {
        let at = configuration.data_sets.iter().position(|set| set.name == name && set.folder == folder);
        configuration.data_sets.remove(at.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?);
        remove_writers_of(configuration, &name);
        Ok(())
    })?;
    Ok(Vec::new())
}

/// AddDataSetFolder (Part 14 §9.1.4.5.7).
pub(super) fn add_folder(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let mut path = folder(live, caller)?;
    let name = inputs.text()?;
    usable(&name)?;
    if path.len() >= DEPTH_MAX {
        return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
    }
    path.push(name);
    live.change_for(caller, |configuration, inner| {
        let is_used = configuration.data_sets.iter().any(|set| set.folder.starts_with(&path));
        if is_used || !inner.folders.insert(path.clone()) {
            return Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED);
        }
        if inner.folders.len() > 1_024 {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        Ok(())
    })?;
    Ok(vec![crate::pubsub_model::nodes::folder_id(&path).into()])
}

/// RemoveDataSetFolder (Part 14 §9.1.4.5.8), including its content.
pub(super) fn remove_folder(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let above = folder(live, caller)?;
    let node: NodeId = inputs.take()?;
    let path = live.folder(&node).filter(|path| path.len() == above.len() + 1 && path.starts_with(&above));
    let path = path.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    live.change_for(caller, |configuration, inner| {
        inner.folders.retain(|folder| !folder.starts_with(&path));
        let (gone, kept) = core::mem::take(&mut configuration.data_sets)
            .into_iter()
            .partition(|set| set.folder.starts_with(&path));
        configuration.data_sets = kept;
        let gone: Vec<PublishedDataSet> = gone;
        gone.iter().for_each(|set| remove_writers_of(configuration, &set.name));
        Ok(())
    })?;
    Ok(Vec::new())
}

/// The data set of a configuration, if it has the version that the caller expects.
fn of_version<'a>(
    configuration: &'a mut Configuration,
    name: &str,
    version: &ConfigurationVersionDataType,
) -> Result<&'a mut PublishedDataSet, StatusCode> {
    let found = configuration.data_sets.iter_mut().find(|set| set.name == name);
    let found = found.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if found.meta_data.configuration_version == *version {
        Ok(found)
    } else {
        Err(StatusCode::BAD_INVALID_STATE)
    }
}

/// AddVariables (Part 14 §9.1.4.3.2).
pub(super) fn add_variables(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::DataSet { name } = called_on(live, caller)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let version = inputs.version()?;
    let (aliases, promoted) = (inputs.list()?, inputs.list()?);
    let candidates = candidates(aliases, promoted, inputs.structures()?)?;
    if candidates.is_empty() {
        return Err(StatusCode::BAD_NOTHING_TO_DO);
    }
    let results = live.change_for(caller, |configuration, _| {
        let mode = Caller::weakest_mode(configuration, &name);
        append(live, caller, mode, of_version(configuration, &name, &version)?, candidates)
    })?;
    Ok(vec![Variant::from_structure(&version_of(live, &name)), results.into()])
}

/// RemoveVariables (Part 14 §9.1.4.3.3).
pub(super) fn remove_variables(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::DataSet { name } = called_on(live, caller)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let version = inputs.version()?;
    let positions: Vec<u32> = inputs.list()?;
    if positions.is_empty() {
        return Err(StatusCode::BAD_NOTHING_TO_DO);
    }
    let results = live.change_for(caller, |configuration, _| {
        let data_set = of_version(configuration, &name, &version)?;
        let DataSetSource::Items(items) = &mut data_set.source else {
            return Err(StatusCode::BAD_INVALID_STATE);
        };
        take_positions(&positions, &mut data_set.meta_data.fields);
        let results = take_positions(&positions, items);
        Ok(results)
    })?;
    Ok(vec![Variant::from_structure(&version_of(live, &name)), results.into()])
}
