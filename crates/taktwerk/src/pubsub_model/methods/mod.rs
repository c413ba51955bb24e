//! The Methods that change the configuration (Part 14 §9.1.3 to §9.1.9). The types own them: each object refers to its type's
//! Methods, and the ObjectId of the call identifies the element.
//!
//! - `structure`: connections, groups, writers, readers; `data_sets`, `extension_fields`: published data; `targets`: processing
//!   of received values.

mod data_sets;
mod extension_fields;
mod structure;
mod targets;

use super::administers;
use super::live::Live;
use crate::error::BuildError;
use crate::space::{Space, ns0};
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_pubsub::config::Element;
use taktwerk_schema::ids::{method_ids, reference_type_ids};
use taktwerk_schema::{ConfigurationVersionDataType, RolePermissionType};
use taktwerk_server::authorization::Access;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_types::{ExtensionObject, NodeId, StatusCode, Structure, UaString, Variant};

/// The result of a Method.
pub(super) type Outcome = Result<Vec<Variant>, StatusCode>;

/// The arguments of a call. Number and types have been checked.
pub(super) struct Inputs(std::vec::IntoIter<Variant>);

const INVALID: StatusCode = StatusCode::BAD_INVALID_ARGUMENT;

impl Inputs {
    pub(super) fn new(inputs: Vec<Variant>) -> Self {
        Self(inputs.into_iter())
    }

    pub(super) fn take<T: TryFrom<Variant>>(&mut self) -> Result<T, StatusCode> {
        self.0.next().and_then(|value| value.try_into().ok()).ok_or(INVALID)
    }

    /// A value of any type.
    pub(super) fn any(&mut self) -> Result<Variant, StatusCode> {
        self.0.next().ok_or(INVALID)
    }

    pub(super) fn text(&mut self) -> Result<String, StatusCode> {
        match self.0.next() {
            None | Some(Variant::Empty) => Ok(String::new()),
            Some(value) => {
                UaString::try_from(value).map(|text| text.as_str().to_owned()).map_err(|_| INVALID)
            }
        }
    }

    /// An array; null means an empty one.
    pub(super) fn list<T>(&mut self) -> Result<Vec<T>, StatusCode>
    where
        Vec<T>: TryFrom<Variant>,
    {
        match self.0.next() {
            None | Some(Variant::Empty) => Ok(Vec::new()),
            Some(value) => value.try_into().map_err(|_| INVALID),
        }
    }

    pub(super) fn structure<T: Structure>(&mut self) -> Result<T, StatusCode> {
        let object: ExtensionObject = self.take()?;
        decode(&object)
    }

    pub(super) fn structures<T: Structure>(&mut self) -> Result<Vec<T>, StatusCode> {
        self.list::<ExtensionObject>()?.iter().map(decode).collect()
    }

    /// All remaining arguments.
    pub(super) fn rest(self) -> Vec<Variant> {
        self.0.collect()
    }

    fn version(&mut self) -> Result<ConfigurationVersionDataType, StatusCode> {
        self.structure()
    }
}

fn decode<T: Structure>(object: &ExtensionObject) -> Result<T, StatusCode> {
    if !object.is::<T>() {
        return Err(StatusCode::BAD_TYPE_MISMATCH);
    }
    object.decode().map_err(|_| INVALID)
}

/// A Method that may block: it runs on a worker thread.
pub(super) fn blocking(
    run: impl Fn(&CallContext, Inputs) -> Outcome + Send + Sync + 'static,
) -> Arc<dyn MethodHandler> {
    struct Blocking<F>(Arc<F>);
    impl<F: Fn(&CallContext, Inputs) -> Outcome + Send + Sync + 'static> MethodHandler for Blocking<F> {
        fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
            let (run, context) = (Arc::clone(&self.0), context.clone());
            MethodCall::Blocking(Box::new(move || run(&context, Inputs::new(inputs))))
        }

        fn may_block(&self) -> bool {
            true
        }
    }
    Arc::new(Blocking(Arc::new(run)))
}

/// The access that nodes need.
pub(super) fn access(permissions: &[RolePermissionType]) -> Access {
    if permissions.is_empty() {
        return Access::default();
    }
    let roles = permissions.iter().map(|one| (one.role_id.clone(), one.permissions));
    Access::roles(roles.collect::<Vec<_>>())
}

type Run = fn(&Arc<Live>, &CallContext, &mut Inputs) -> Outcome;

/// All Methods.
const METHODS: [(u32, Run); 26] = [
    (method_ids::PUBLISH_SUBSCRIBE_ADD_CONNECTION, structure::add_connection),
    (method_ids::PUBLISH_SUBSCRIBE_REMOVE_CONNECTION, structure::remove_connection),
    (method_ids::PUB_SUB_CONNECTION_TYPE_ADD_WRITER_GROUP, structure::add_writer_group),
    (method_ids::PUB_SUB_CONNECTION_TYPE_ADD_READER_GROUP, structure::add_reader_group),
    (method_ids::PUB_SUB_CONNECTION_TYPE_REMOVE_GROUP, structure::remove_group),
    (method_ids::WRITER_GROUP_TYPE_ADD_DATA_SET_WRITER, structure::add_writer),
    (method_ids::WRITER_GROUP_TYPE_REMOVE_DATA_SET_WRITER, structure::remove_writer),
    (method_ids::READER_GROUP_TYPE_ADD_DATA_SET_READER, structure::add_reader),
    (method_ids::READER_GROUP_TYPE_REMOVE_DATA_SET_READER, structure::remove_reader),
    (method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS, data_sets::add_items),
    (method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS_TEMPLATE, data_sets::add_items_template),
    (method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_EVENTS, data_sets::no_events),
    (method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_EVENTS_TEMPLATE, data_sets::no_events),
    (method_ids::DATA_SET_FOLDER_TYPE_REMOVE_PUBLISHED_DATA_SET, data_sets::remove),
    (method_ids::DATA_SET_FOLDER_TYPE_ADD_DATA_SET_FOLDER, data_sets::add_folder),
    (method_ids::DATA_SET_FOLDER_TYPE_REMOVE_DATA_SET_FOLDER, data_sets::remove_folder),
    (method_ids::PUBLISHED_DATA_ITEMS_TYPE_ADD_VARIABLES, data_sets::add_variables),
    (method_ids::PUBLISHED_DATA_ITEMS_TYPE_REMOVE_VARIABLES, data_sets::remove_variables),
    (method_ids::EXTENSION_FIELDS_TYPE_ADD_EXTENSION_FIELD, extension_fields::add),
    (method_ids::EXTENSION_FIELDS_TYPE_REMOVE_EXTENSION_FIELD, extension_fields::remove),
    (method_ids::TARGET_VARIABLES_TYPE_ADD_TARGET_VARIABLES, targets::add_target_variables),
    (method_ids::TARGET_VARIABLES_TYPE_REMOVE_TARGET_VARIABLES, targets::remove_target_variables),
    (method_ids::SUBSCRIBED_DATA_SET_FOLDER_TYPE_ADD_SUBSCRIBED_DATA_SET, targets::add_subscribed),
    (method_ids::SUBSCRIBED_DATA_SET_FOLDER_TYPE_REMOVE_SUBSCRIBED_DATA_SET, targets::remove_subscribed),
    (method_ids::DATA_SET_READER_TYPE_CREATE_TARGET_VARIABLES, targets::create_target_variables),
    (method_ids::DATA_SET_READER_TYPE_CREATE_DATA_SET_MIRROR, targets::create_mirror),
];

/// Adds the implementations of the Methods.
pub(super) fn add(space: &Space, live: &Arc<Live>) -> Result<(), BuildError> {
    METHODS.iter().try_for_each(|(id, run)| run_at(space, live, &ns0(*id), *run))
}

/// Implements the Method of an instance that does not share its type's.
pub(super) fn implement(space: &Space, live: &Arc<Live>, node: &NodeId, of: u32) -> Result<(), BuildError> {
    let mut known = METHODS.iter().filter(|(id, _)| *id == of);
    known.try_for_each(|(_, run)| run_at(space, live, node, *run))
}

fn run_at(space: &Space, live: &Arc<Live>, node: &NodeId, run: Run) -> Result<(), BuildError> {
    let live = Arc::clone(live);
    let handler = move |caller: &CallContext, mut inputs: Inputs| {
        administers(caller)?;
        run(&live, caller, &mut inputs)
    };
    Ok(space.set_method(node, blocking(handler))?)
}

/// Adds references from an object to Methods of its type.
pub(super) fn offer(space: &Space, object: &NodeId, methods: &[u32]) -> Result<(), BuildError> {
    let component = ns0(reference_type_ids::HAS_COMPONENT);
    for method in methods {
        space.add_reference(object, &component, &ns0(*method))?;
    }
    Ok(())
}

pub(super) const fn of_folders() -> &'static [u32] {
    &[
        method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS,
        method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS_TEMPLATE,
        method_ids::DATA_SET_FOLDER_TYPE_REMOVE_PUBLISHED_DATA_SET,
        method_ids::DATA_SET_FOLDER_TYPE_ADD_DATA_SET_FOLDER,
        method_ids::DATA_SET_FOLDER_TYPE_REMOVE_DATA_SET_FOLDER,
    ]
}

pub(super) const fn of_subscribed_folders() -> &'static [u32] {
    &[
        method_ids::SUBSCRIBED_DATA_SET_FOLDER_TYPE_ADD_SUBSCRIBED_DATA_SET,
        method_ids::SUBSCRIBED_DATA_SET_FOLDER_TYPE_REMOVE_SUBSCRIBED_DATA_SET,
    ]
}

pub(super) const fn of_items() -> &'static [u32] {
    &[
        method_ids::PUBLISHED_DATA_ITEMS_TYPE_ADD_VARIABLES,
        method_ids::PUBLISHED_DATA_ITEMS_TYPE_REMOVE_VARIABLES,
    ]
}

pub(super) const fn of_target_variables() -> &'static [u32] {
    &[
        method_ids::TARGET_VARIABLES_TYPE_ADD_TARGET_VARIABLES,
        method_ids::TARGET_VARIABLES_TYPE_REMOVE_TARGET_VARIABLES,
    ]
}

pub(super) const fn of_connections() -> &'static [u32] {
    &[
        method_ids::PUB_SUB_CONNECTION_TYPE_ADD_WRITER_GROUP,
        method_ids::PUB_SUB_CONNECTION_TYPE_ADD_READER_GROUP,
        method_ids::PUB_SUB_CONNECTION_TYPE_REMOVE_GROUP,
    ]
}

pub(super) const fn of_writer_groups() -> &'static [u32] {
    &[method_ids::WRITER_GROUP_TYPE_ADD_DATA_SET_WRITER, method_ids::WRITER_GROUP_TYPE_REMOVE_DATA_SET_WRITER]
}

pub(super) const fn of_reader_groups() -> &'static [u32] {
    &[method_ids::READER_GROUP_TYPE_ADD_DATA_SET_READER, method_ids::READER_GROUP_TYPE_REMOVE_DATA_SET_READER]
}

pub(super) const fn of_readers() -> &'static [u32] {
    &[
        method_ids::DATA_SET_READER_TYPE_CREATE_TARGET_VARIABLES,
        method_ids::DATA_SET_READER_TYPE_CREATE_DATA_SET_MIRROR,
    ]
}

/// The element of the object on which a Method is called.
fn called_on(live: &Live, caller: &CallContext) -> Result<Element, StatusCode> {
    live.element(&caller.object_id).ok_or(StatusCode::BAD_NODE_ID_INVALID)
}

/// The parent element of the object on which a Method is called.
fn called_below(live: &Live, caller: &CallContext) -> Result<Element, StatusCode> {
    live.owner(&caller.object_id).ok_or(StatusCode::BAD_NODE_ID_INVALID)
}

/// The element of a NodeId argument.
fn passed(live: &Live, inputs: &mut Inputs) -> Result<Element, StatusCode> {
    let id: NodeId = inputs.take()?;
    live.element(&id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
}

/// Checks the name of an element.
fn usable(name: &str) -> Result<(), StatusCode> {
    let is_usable = !name.is_empty() && name.len() <= 512 && !name.chars().any(char::is_control);
    if is_usable { Ok(()) } else { Err(INVALID) }
}

/// Removes positions from a list. Returns a status for each.
fn take_positions<T>(positions: &[u32], list: &mut Vec<T>) -> Vec<StatusCode> {
    let count = list.len();
    let at = |position: &u32| usize::try_from(*position).ok().filter(|at| *at < count);
    let gone: BTreeSet<usize> = positions.iter().filter_map(at).collect();
    let mut next = 0..;
    list.retain(|_| !next.next().is_some_and(|at| gone.contains(&at)));
    let results =
        positions.iter().map(|position| if at(position).is_some() { StatusCode::GOOD } else { INVALID });
    results.collect()
}
