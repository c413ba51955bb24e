//! The objects of files and directories, kept in step with the disk.

use super::disk::{Entry, Route};
use super::{FolderOptions, Inner, Shared, Target, Transfer};
use crate::error::BuildError;
use crate::lock::lock;
use crate::space::{now, ns0};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use taktwerk_schema::PermissionType;
use taktwerk_schema::ids::{
    data_type_ids, method_ids, object_type_ids, reference_type_ids as r, variable_type_ids,
};
use taktwerk_server::authorization::Access;
use taktwerk_server::callback::{SourceRead, ValueSource};
use taktwerk_server::space::build::Under;
use taktwerk_server::space::{NodeError, NodeSpec};
use taktwerk_types::{DataValue, Identifier, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

const OF_FILES: [u32; 6] = [
    method_ids::FILE_TYPE_OPEN,
    method_ids::FILE_TYPE_CLOSE,
    method_ids::FILE_TYPE_READ,
    method_ids::FILE_TYPE_WRITE,
    method_ids::FILE_TYPE_GET_POSITION,
    method_ids::FILE_TYPE_SET_POSITION,
];
const OF_DIRECTORIES: [u32; 4] = [
    method_ids::FILE_DIRECTORY_TYPE_CREATE_DIRECTORY,
    method_ids::FILE_DIRECTORY_TYPE_CREATE_FILE,
    method_ids::FILE_DIRECTORY_TYPE_DELETE_FILE_SYSTEM_OBJECT,
    method_ids::FILE_DIRECTORY_TYPE_MOVE_OR_COPY,
];
const OF_TRANSFERS: [u32; 3] = [
    method_ids::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_READ,
    method_ids::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_WRITE,
    method_ids::TEMPORARY_FILE_TRANSFER_TYPE_CLOSE_AND_COMMIT,
];
const PROPERTIES: [&str; 5] = ["Size", "Writable", "UserWritable", "OpenCount", "LastModifiedTime"];

/// Permissions for the nodes of a directory. Without roles, those of the namespace apply.
fn access(options: &FolderOptions) -> Access {
    if options.read.is_empty() {
        return Access::default();
    }
    let look = PermissionType::BROWSE | PermissionType::READ | PermissionType::CALL;
    // Of state machines.
    let look = look | PermissionType::RECEIVE_EVENTS;
    let mut roles: Vec<NodeId> = options.read.iter().chain(&options.write).cloned().collect();
    roles.sort_unstable();
    roles.dedup();
    Access::roles(roles.into_iter().map(|role| (role, look)).collect::<Vec<_>>())
}

fn offer(inner: &Inner, object: &NodeId, methods: &[u32]) -> Result<(), NodeError> {
    let component = ns0(r::HAS_COMPONENT);
    methods.iter().try_for_each(|method| inner.space.add_reference(object, &component, &ns0(*method)))
}

pub(super) fn add_directory(
    inner: &Inner,
    shared: &Shared,
    id: &NodeId,
    name: QualifiedName,
    parent: &NodeId,
) -> Result<(), BuildError> {
    let under = Under {
        parent,
        reference_type: &ns0(r::ORGANIZES),
        type_definition: Some(&ns0(object_type_ids::FILE_DIRECTORY_TYPE)),
    };
    let spec = NodeSpec::object(id.clone(), name).access(access(&shared.options));
    inner.space.add_node(spec, under, now())?;
    Ok(offer(inner, id, &OF_DIRECTORIES)?)
}

/// Adds an Object of TemporaryFileTransferType.
pub(super) fn add_transfer(
    inner: &Inner,
    transfer: &Transfer,
    id: &NodeId,
    name: QualifiedName,
    parent: &NodeId,
) -> Result<(), BuildError> {
    let under = Under {
        parent,
        reference_type: &ns0(r::HAS_COMPONENT),
        type_definition: Some(&ns0(object_type_ids::TEMPORARY_FILE_TRANSFER_TYPE)),
    };
    let access = access(&transfer.options);
    inner.space.add_node(NodeSpec::object(id.clone(), name).access(access.clone()), under, now())?;
    offer(inner, id, &OF_TRANSFERS)?;
    let value: Variant = (transfer.timeout.as_secs_f64() * 1e3).into();
    let duration = (data_type_ids::DURATION, Some(value), None);
    Ok(add_property(inner, id, "ClientProcessingTimeout", duration, access)?)
}

fn add_property(
    inner: &Inner,
    object: &NodeId,
    name: &str,
    (data_type, value, source): Shown,
    access: Access,
) -> Result<(), NodeError> {
    let property = child_id(object, name);
    let spec = NodeSpec::variable(property.clone(), QualifiedName::new(0, name), ns0(data_type), value);
    let under = Under {
        parent: object,
        reference_type: &ns0(r::HAS_PROPERTY),
        type_definition: Some(&ns0(variable_type_ids::PROPERTY_TYPE)),
    };
    inner.space.add_node(spec.access(access), under, now())?;
    source.map_or(Ok(()), |source| inner.space.set_source(&property, source))
}

/// Adds the node of a temporary file, which clients cannot browse to (Part 20 §4.4.1).
pub(super) fn add_temporary(inner: &Inner, transfer: &Transfer, id: &NodeId) -> Result<(), NodeError> {
    let name = QualifiedName::new(id.namespace_index, "File");
    let spec = NodeSpec::object(id.clone(), name).access(access(&transfer.options));
    inner.space.add_unreferenced(spec, &ns0(object_type_ids::FILE_TYPE), now())
}

/// Adds the state machine of a temporary file as a component of its transfer object. Returns all its nodes, itself first.
pub(super) fn add_machine(
    inner: &Inner,
    transfer: &Transfer,
    object: &NodeId,
    file: &NodeId,
) -> Result<Vec<NodeId>, NodeError> {
    let id = child_id(file, "TransferState");
    let name = match &file.identifier {
        Identifier::String(text) => text.as_str().rsplit('/').next().unwrap_or_default().to_owned(),
        other => format!("{other:?}"),
    };
    let name = QualifiedName::new(id.namespace_index, format!("TransferState{name}"));
    let under = Under {
        parent: object,
        reference_type: &ns0(r::HAS_COMPONENT),
        type_definition: Some(&ns0(object_type_ids::FILE_TRANSFER_STATE_MACHINE_TYPE)),
    };
    let optional = ["CurrentState/Number", "LastTransition/Number", "LastTransition/TransitionTime"];
    let access = access(&transfer.options);
    let spec = NodeSpec::object(id, name).access(access.clone()).event_notifier(1);
    let added = inner.space.add_instance(spec, under, &optional, now())?;
    let nodes: Vec<NodeId> = added.into_iter().map(|(_, id)| id).collect();
    // Who may not see the file may not see the states of its machine either.
    let own = nodes.iter().filter(|node| node.namespace_index == file.namespace_index);
    own.skip(1).try_for_each(|node| inner.space.set_access(node, access.clone()))?;
    Ok(nodes)
}

/// DataType, value and source of a property.
type Shown = (u32, Option<Variant>, Option<Arc<dyn ValueSource>>);

/// A property of a file. A worker thread looks up its value when it is read.
struct Property {
    inner: Weak<Inner>,
    shared: Weak<Shared>,
    folder: usize,
    route: Route,
    is_size: bool,
}

impl ValueSource for Property {
    fn read(&self) -> SourceRead {
        let (Some(_), Some(shared)) = (self.inner.upgrade(), self.shared.upgrade()) else {
            return SourceRead::Now(DataValue::from_status(StatusCode::BAD_NOT_FOUND));
        };
        let (route, is_size) = (self.route.clone(), self.is_size);
        SourceRead::Blocking(Box::new(move || match shared.folder.stat(&route) {
            Ok(stat) if is_size => DataValue::new(stat.size),
            Ok(stat) => {
                let since = stat.modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                DataValue::new(UtcTime::from_unix(since))
            }
            Err(error) => DataValue::from_status(super::handles::status_of(&error)),
        }))
    }
}

pub(super) fn child_id(parent: &NodeId, name: &str) -> NodeId {
    let path = match &parent.identifier {
        Identifier::String(text) => format!("{}/{name}", text.as_str()),
        other => format!("{other:?}/{name}"),
    };
    NodeId::string(parent.namespace_index, path)
}

fn add_file(
    inner: &Arc<Inner>,
    shared: &Arc<Shared>,
    target: &Target,
    id: &NodeId,
    name: QualifiedName,
    parent: &NodeId,
) -> Result<(), NodeError> {
    let under = Under {
        parent,
        reference_type: &ns0(r::ORGANIZES),
        type_definition: Some(&ns0(object_type_ids::FILE_TYPE)),
    };
    let access = access(&shared.options);
    inner.space.add_node(NodeSpec::object(id.clone(), name).access(access.clone()), under, now())?;
    offer(inner, id, &OF_FILES)?;
    let source = |is_size| Property {
        inner: Arc::downgrade(inner),
        shared: Arc::downgrade(shared),
        folder: target.folder,
        route: target.route.clone(),
        is_size,
    };
    let writable = !shared.options.write.is_empty();
    let count = source(false);
    let open_count = move || {
        let open = count.inner.upgrade().map(|inner| lock(&inner.handles).count(count.folder, &count.route));
        DataValue::new(open.unwrap_or(0))
    };
    let values: [Shown; 5] = [
        (data_type_ids::U_INT64, None, Some(Arc::new(source(true)))),
        (data_type_ids::BOOLEAN, Some(writable.into()), None),
        (data_type_ids::BOOLEAN, Some(writable.into()), None),
        (data_type_ids::U_INT16, None, Some(Arc::new(open_count))),
        (data_type_ids::DATE_TIME, None, Some(Arc::new(source(false)))),
    ];
    let mut properties = PROPERTIES.into_iter().zip(values);
    properties.try_for_each(|(name, shown)| add_property(inner, id, name, shown, access.clone()))
}

fn remove(inner: &Inner, id: &NodeId, target: &Target) {
    lock(&inner.nodes).remove(id);
    if !target.is_directory {
        for name in PROPERTIES {
            // It was added with the file, and may have been deleted since.
            let _ = inner.space.delete_node(&child_id(id, name));
        }
    }
    let _ = inner.space.delete_node(id);
}

/// Updates the nodes of a shared directory from the disk.
pub(super) fn refresh(inner: &Arc<Inner>, number: usize) -> std::io::Result<()> {
    let _changing = lock(&inner.changing);
    let Ok(shared) = inner.folder(number) else { return Ok(()) };
    let entries = shared.folder.list(&Route::default(), shared.options.entries_max)?;
    shared.used.store(entries.iter().map(|entry| entry.size).sum(), Ordering::Relaxed);
    let on_disk: BTreeMap<&Route, bool> =
        entries.iter().map(|entry| (&entry.route, entry.is_directory)).collect();
    let known = lock(&inner.nodes).within(number, &Route::default());
    let (gone, kept): (Vec<_>, Vec<_>) = known
        .into_iter()
        .filter(|(_, target)| target.route != Route::default())
        .partition(|(_, target)| on_disk.get(&target.route) != Some(&target.is_directory));
    for (id, target) in &gone {
        remove(inner, id, target);
    }
    let mut is_changed = !gone.is_empty();
    let mut by_route: BTreeMap<Route, NodeId> =
        kept.into_iter().map(|(id, target)| (target.route, id)).collect();
    let root = find(inner, number, &Route::default());
    by_route.extend(root.map(|id| (Route::default(), id)));
    // In order of routes, directories come before their content.
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by(|one, other| one.route.cmp(&other.route));
    for entry in entries {
        if by_route.contains_key(&entry.route) {
            continue;
        }
        let Some((directory, _)) = entry.route.split() else { continue };
        let Some(parent) = by_route.get(&directory) else { continue };
        let target = Target { folder: number, route: entry.route.clone(), is_directory: entry.is_directory };
        if let Some(id) = add(inner, &shared, target, parent) {
            by_route.insert(entry.route.clone(), id);
            is_changed = true;
        }
    }
    if is_changed {
        inner.space.raise_model_changes(now());
    }
    Ok(())
}

/// Adds the node of a file or directory; `None` if that is not possible.
fn add(inner: &Arc<Inner>, shared: &Arc<Shared>, target: Target, parent: &NodeId) -> Option<NodeId> {
    let (_, name) = target.route.split()?;
    let id = child_id(parent, name);
    let browse_name = QualifiedName::new(shared.namespace, name);
    let added = if target.is_directory {
        add_directory(inner, shared, &id, browse_name, parent).map_err(|error| error.to_string())
    } else {
        add_file(inner, shared, &target, &id, browse_name, parent).map_err(|error| error.to_string())
    };
    match added {
        Ok(()) => {
            lock(&inner.nodes).insert(id.clone(), target);
            Some(id)
        }
        Err(error) => {
            tracing::warn!(name, error, "cannot add the node of a file; it is not shown");
            None
        }
    }
}

/// Adds the node of a new entry without reading the whole directory, because clients may add very many files. Returns the node.
pub(super) fn show(inner: &Arc<Inner>, target: Target) -> Option<NodeId> {
    let _changing = lock(&inner.changing);
    // A concurrent refresh may have added it already.
    if let Some(id) = find(inner, target.folder, &target.route) {
        return Some(id);
    }
    let shared = inner.folder(target.folder).ok()?;
    let (directory, _) = target.route.split()?;
    let parent = find(inner, target.folder, &directory)?;
    let id = add(inner, &shared, target, &parent)?;
    inner.space.raise_model_changes(now());
    Some(id)
}

/// Removes the nodes at and below a route, without reading the disk.
pub(super) fn hide(inner: &Inner, folder: usize, route: &Route) {
    let _changing = lock(&inner.changing);
    hide_all(inner, folder, route);
    inner.space.raise_model_changes(now());
}

/// Returns what was removed, directories before their content.
fn hide_all(inner: &Inner, folder: usize, route: &Route) -> Vec<Target> {
    let gone = lock(&inner.nodes).within(folder, route);
    for (id, target) in gone.iter().rev() {
        remove(inner, id, target);
    }
    gone.into_iter().map(|(_, target)| target).collect()
}

/// Moves the nodes at and below a route, without reading the disk. Returns the node of the new route.
pub(super) fn relocate(inner: &Arc<Inner>, folder: usize, from: &Route, to: &Route) -> Option<NodeId> {
    let _changing = lock(&inner.changing);
    let shared = inner.folder(folder).ok()?;
    for target in hide_all(inner, folder, from) {
        // Skip what would be too deep.
        let Some(route) = target.route.rebased(from, to) else { continue };
        if find(inner, folder, &route).is_some() {
            continue;
        }
        let parent = route.split().and_then(|(directory, _)| find(inner, folder, &directory));
        if let Some(parent) = parent {
            add(inner, &shared, Target { route, ..target }, &parent);
        }
    }
    inner.space.raise_model_changes(now());
    find(inner, folder, to)
}

/// The node of a route.
pub(super) fn find(inner: &Inner, folder: usize, route: &Route) -> Option<NodeId> {
    lock(&inner.nodes).node(folder, route).cloned()
}
