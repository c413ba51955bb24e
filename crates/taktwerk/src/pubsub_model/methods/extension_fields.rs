//! Methods for constant fields of data sets (Part 14 §9.1.4.2). To publish one, add its Property with AddVariables.

use super::{INVALID, Inputs, Outcome, called_below, usable};
use crate::pubsub_model::live::Live;
use crate::pubsub_model::nodes::extension_field_of;
use std::sync::Arc;
use taktwerk_pubsub::config::{Configuration, DataSetSource, Element, PublishedDataSet};
use taktwerk_schema::KeyValuePair;
use taktwerk_server::callback::CallContext;
use taktwerk_types::{NodeId, QualifiedName, StatusCode, Variant};

/// Most extension fields of one data set.
const FIELDS_MAX: usize = 1_024;

/// The data set whose ExtensionFields object a Method is called on.
fn of(live: &Live, caller: &CallContext) -> Result<Element, StatusCode> {
    let element = called_below(live, caller)?;
    if matches!(element, Element::DataSet { .. }) {
        Ok(element)
    } else {
        Err(StatusCode::BAD_NODE_ID_INVALID)
    }
}

fn data_set<'a>(
    configuration: &'a mut Configuration,
    element: &Element,
) -> Result<&'a mut PublishedDataSet, StatusCode> {
    let mut sets = configuration.data_sets.iter_mut();
    sets.find(|set| set.name == element.name()).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
}

/// Whether a data set publishes a Variable.
fn is_published(configuration: &Configuration, variable: &NodeId) -> bool {
    configuration.data_sets.iter().any(|set| match &set.source {
        DataSetSource::Items(items) => items.iter().any(|item| item.published_variable == *variable),
        _ => false,
    })
}

/// AddExtensionField (Part 14 §9.1.4.2.3).
pub(super) fn add(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let element = of(live, caller)?;
    let key: QualifiedName = inputs.take()?;
    let value: Variant = inputs.any()?;
    usable(key.name.as_str())?;
    let space = live.space()?;
    if usize::from(key.namespace_index) >= space.namespace_count() || value.is_empty() {
        return Err(INVALID);
    }
    let node = extension_field_of(&element, &key);
    live.change_for(caller, |configuration, _| {
        let fields = &mut data_set(configuration, &element)?.extension_fields;
        if fields.iter().any(|field| field.key == key) {
            return Err(StatusCode::BAD_NODE_ID_EXISTS);
        }
        if fields.len() >= FIELDS_MAX {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        fields.push(KeyValuePair { key, value });
        Ok(())
    })?;
    Ok(vec![node.into()])
}

/// RemoveExtensionField (Part 14 §9.1.4.2.4). Published fields cannot be removed.
pub(super) fn remove(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let element = of(live, caller)?;
    let field: NodeId = inputs.take()?;
    let space = live.space()?;
    live.change_for(caller, |configuration, _| {
        let is_it = |one: &KeyValuePair| extension_field_of(&element, &one.key) == field;
        if !data_set(configuration, &element)?.extension_fields.iter().any(is_it) {
            let is_other = space.contains(&field);
            return Err(if is_other {
                StatusCode::BAD_NODE_ID_INVALID
            } else {
                StatusCode::BAD_NODE_ID_UNKNOWN
            });
        }
        if is_published(configuration, &field) {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        data_set(configuration, &element)?.extension_fields.retain(|one| !is_it(one));
        Ok(())
    })?;
    Ok(Vec::new())
}
