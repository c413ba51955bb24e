//! Methods for processing received values (Part 14 §9.1.8.5, §9.1.8.6, §9.1.9.4).

use super::{Inputs, Outcome, called_below, called_on, passed, take_positions, usable};
use crate::pubsub_model::authorized::Caller;
use crate::pubsub_model::live::Live;
use crate::pubsub_model::nodes::mirror_parent;
use std::sync::Arc;
use taktwerk_pubsub::config::{Configuration, DataSetReader, Element, SubscribedDataSet};
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_schema::{
    ConfigurationVersionDataType, FieldTargetDataType, PermissionType, StandaloneSubscribedDataSetDataType,
    SubscribedDataSetMirrorDataType, TargetVariablesDataType,
};
use taktwerk_server::callback::CallContext;
use taktwerk_types::{Guid, StatusCode};

/// The written attribute.
const VALUE: u32 = 13;
/// Most targets of one reader.
const TARGETS_MAX: usize = 65_536;

fn reader_of<'a>(
    configuration: &'a mut Configuration,
    element: &Element,
) -> Result<&'a mut DataSetReader, StatusCode> {
    let Element::Reader { connection, group, name } = element else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let group = configuration.connection_mut(connection).and_then(|one| one.reader_group_mut(group));
    group.and_then(|group| group.reader_mut(name)).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
}

/// Checks whether received values can be written to a target.
fn check(
    live: &Live,
    caller: &Caller<'_>,
    mode: SecurityMode,
    reader: &DataSetReader,
    target: &FieldTargetDataType,
) -> StatusCode {
    // Check first, so that errors do not reveal whether a node exists.
    if target.target_node_id.is_null() {
        return StatusCode::BAD_NODE_ID_INVALID;
    }
    if let Err(status) = caller.check(mode, &target.target_node_id, PermissionType::WRITE) {
        return status;
    }
    let fields = &reader.meta_data.fields;
    let is_known = target.data_set_field_id == Guid::NULL
        || fields.iter().any(|field| field.data_set_field_id == target.data_set_field_id);
    let declared = live.space().ok().and_then(|space| space.declared_shape(&target.target_node_id));
    match declared {
        None => StatusCode::BAD_NODE_ID_UNKNOWN,
        Some(_) if target.attribute_id != 0 && target.attribute_id != VALUE => {
            StatusCode::BAD_ATTRIBUTE_ID_INVALID
        }
        Some(_) if !(target.receiver_index_range.is_empty() && target.write_index_range.is_empty()) => {
            StatusCode::BAD_NOT_SUPPORTED
        }
        Some(_) if !is_known => StatusCode::BAD_NOT_FOUND,
        Some(_) => StatusCode::GOOD,
    }
}

/// The security of a reader's messages.
fn mode_of(configuration: &Configuration, element: &Element) -> SecurityMode {
    let Element::Reader { connection, group, name } = element else { return SecurityMode::None };
    let group = configuration.connection(connection).and_then(|one| one.reader_group(group));
    let mode = group.and_then(|group| {
        let reader = group.reader(name)?;
        Some(reader.security.as_ref().unwrap_or(&group.security).mode)
    });
    mode.unwrap_or_default()
}

/// The reader, if its metadata has the version that the caller expects.
fn of_version<'a>(
    configuration: &'a mut Configuration,
    element: &Element,
    version: &ConfigurationVersionDataType,
) -> Result<&'a mut DataSetReader, StatusCode> {
    let reader = reader_of(configuration, element)?;
    if reader.meta_data.fields.is_empty() || reader.meta_data.configuration_version != *version {
        return Err(StatusCode::BAD_INVALID_STATE);
    }
    Ok(reader)
}

/// Adds targets as far as they are valid. With `keep`, existing targets stay.
fn add_targets(
    live: &Arc<Live>,
    caller: &CallContext,
    element: &Element,
    inputs: &mut Inputs,
    keep: fn(&SubscribedDataSet) -> Result<Vec<FieldTargetDataType>, StatusCode>,
) -> Outcome {
    let version = inputs.version()?;
    let targets: Vec<FieldTargetDataType> = inputs.structures()?;
    if targets.is_empty() {
        return Err(StatusCode::BAD_NOTHING_TO_DO);
    }
    let space = live.space()?;
    let rights = Caller::new(&space, &caller.roles);
    let results = live.change_for(caller, |configuration, _| {
        let mode = mode_of(configuration, element);
        let reader = of_version(configuration, element, &version)?;
        let mut target_variables = keep(&reader.subscribed_data_set)?;
        let results: Vec<StatusCode> =
            targets.iter().map(|target| check(live, &rights, mode, reader, target)).collect();
        let good = targets.into_iter().zip(&results).filter(|(_, status)| !status.is_bad());
        target_variables.extend(good.map(|(target, _)| target));
        if target_variables.len() > TARGETS_MAX {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        if !target_variables.is_empty() {
            reader.subscribed_data_set =
                SubscribedDataSet::TargetVariables(TargetVariablesDataType { target_variables });
        }
        Ok(results)
    })?;
    Ok(vec![results.into()])
}

/// CreateTargetVariables (Part 14 §9.1.8.5).
pub(super) fn create_target_variables(
    live: &Arc<Live>,
    caller: &CallContext,
    inputs: &mut Inputs,
) -> Outcome {
    add_targets(live, caller, &called_on(live, caller)?, inputs, |_| Ok(Vec::new()))
}

fn targets_of(subscribed: &SubscribedDataSet) -> Result<Vec<FieldTargetDataType>, StatusCode> {
    match subscribed {
        SubscribedDataSet::TargetVariables(targets) => Ok(targets.target_variables.clone()),
        _ => Err(StatusCode::BAD_INVALID_STATE),
    }
}

/// AddTargetVariables (Part 14 §9.1.9.2.2).
pub(super) fn add_target_variables(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    add_targets(live, caller, &called_below(live, caller)?, inputs, targets_of)
}

/// RemoveTargetVariables (Part 14 §9.1.9.2.3): by their positions in the list of targets.
pub(super) fn remove_target_variables(
    live: &Arc<Live>,
    caller: &CallContext,
    inputs: &mut Inputs,
) -> Outcome {
    let element = called_below(live, caller)?;
    let version = inputs.version()?;
    let positions: Vec<u32> = inputs.list()?;
    if positions.is_empty() {
        return Err(StatusCode::BAD_NOTHING_TO_DO);
    }
    let results = live.change_for(caller, |configuration, _| {
        let reader = of_version(configuration, &element, &version)?;
        let mut target_variables = targets_of(&reader.subscribed_data_set)?;
        // Targets without a field id belong to the field at their own position, so they must not move.
        let first = positions.iter().filter_map(|position| usize::try_from(*position).ok()).min();
        let mut behind = target_variables.iter().skip(first.unwrap_or(usize::MAX).saturating_add(1));
        if behind.any(|target| target.data_set_field_id == Guid::NULL) {
            return Err(StatusCode::BAD_NOT_SUPPORTED);
        }
        let results = take_positions(&positions, &mut target_variables);
        reader.subscribed_data_set =
            SubscribedDataSet::TargetVariables(TargetVariablesDataType { target_variables });
        Ok(results)
    })?;
    Ok(vec![results.into()])
}

/// CreateDataSetMirror (Part 14 §9.1.8.6).
pub(super) fn create_mirror(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let element = called_on(live, caller)?;
    let Element::Reader { connection, group, name } = &element else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let parent = inputs.text()?;
    usable(&parent)?;
    let role_permissions = inputs.structures()?;
    live.change_for(caller, |configuration, _| {
        let reader = reader_of(configuration, &element)?;
        if reader.meta_data.fields.is_empty() {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let parent_node_name = parent.as_str().into();
        let mirror = SubscribedDataSetMirrorDataType { parent_node_name, role_permissions };
        reader.subscribed_data_set = SubscribedDataSet::Mirror(mirror);
        Ok(())
    })?;
    Ok(vec![mirror_parent(connection, group, name, &parent).into()])
}

/// AddSubscribedDataSet (Part 14 §9.1.9.4.2).
pub(super) fn add_subscribed(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let set: StandaloneSubscribedDataSetDataType = inputs.structure()?;
    let name = set.name.as_str().to_owned();
    usable(&name)?;
    live.change_for(caller, |configuration, _| {
        if configuration.subscribed_data_sets.iter().any(|other| other.name == set.name) {
            return Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED);
        }
        configuration.subscribed_data_sets.push(set);
        Ok(())
    })?;
    Ok(vec![live.node(&Element::SubscribedDataSet { name }).into()])
}

/// RemoveSubscribedDataSet (Part 14 §9.1.9.4.3).
pub(super) fn remove_subscribed(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::SubscribedDataSet { name } = passed(live, inputs)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    live.change_for(caller, |configuration, _| {
        let sets = &mut configuration.subscribed_data_sets;
        let at = sets.iter().position(|set| set.name.as_str() == name);
        sets.remove(at.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?);
        Ok(())
    })?;
    Ok(Vec::new())
}
