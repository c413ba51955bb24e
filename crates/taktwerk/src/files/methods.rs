//! The Methods of FileType (Part 20 §4.2), FileDirectoryType (§4.3) and TemporaryFileTransferType (§4.4). The types own them:
//! each object refers to its type's Methods, and the ObjectId of the call identifies the file or directory.

use super::disk::Route;
use super::handles::{Open, OpenMode, status_of};
use super::transfer::{self, Committed, Content, Made, Phase, Transfer};
use super::{Inner, Shared, Target, nodes, preparing};
use crate::error::BuildError;
use crate::lock::lock;
use crate::space::ns0;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use taktwerk_schema::ids::method_ids;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_types::{ByteString, NodeId, StatusCode, UaString, Variant};

pub(super) type Outcome = Result<Vec<Variant>, StatusCode>;
type Run = fn(&Arc<Inner>, &CallContext, Inputs) -> Outcome;

/// The implementation of each Method.
const METHODS: [(u32, Run); 14] = [
    (method_ids::FILE_TYPE_OPEN, open),
    (method_ids::FILE_TYPE_CLOSE, close),
    (method_ids::FILE_TYPE_READ, read),
    (method_ids::FILE_TYPE_WRITE, write),
    (method_ids::FILE_TYPE_GET_POSITION, get_position),
    (method_ids::FILE_TYPE_SET_POSITION, set_position),
    (method_ids::FILE_DIRECTORY_TYPE_CREATE_DIRECTORY, create_directory),
    (method_ids::FILE_DIRECTORY_TYPE_CREATE_FILE, create_file),
    (method_ids::FILE_DIRECTORY_TYPE_DELETE_FILE_SYSTEM_OBJECT, delete),
    (method_ids::FILE_DIRECTORY_TYPE_MOVE_OR_COPY, move_or_copy),
    (method_ids::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_READ, generate_for_read),
    (method_ids::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_WRITE, generate_for_write),
    (method_ids::TEMPORARY_FILE_TRANSFER_TYPE_CLOSE_AND_COMMIT, close_and_commit),
    (method_ids::FILE_TRANSFER_STATE_MACHINE_TYPE_RESET, preparing::reset),
];

/// The arguments of a call. Number and types have been checked.
pub(super) struct Inputs(std::vec::IntoIter<Variant>);

impl Inputs {
    fn take<T: TryFrom<Variant>>(&mut self) -> Result<T, StatusCode> {
        self.0.next().and_then(|value| value.try_into().ok()).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }

    fn text(&mut self) -> Result<String, StatusCode> {
        match self.0.next() {
            None | Some(Variant::Empty) => Ok(String::new()),
            Some(value) => UaString::try_from(value)
                .map(|text| text.as_str().to_owned())
                .map_err(|_| StatusCode::BAD_INVALID_ARGUMENT),
        }
    }
}

/// A Method that runs on a worker thread.
struct Method(Weak<Inner>, Run);

impl MethodHandler for Method {
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let (inner, run, context) = (self.0.upgrade(), self.1, context.clone());
        MethodCall::Blocking(Box::new(move || {
            let inner = inner.ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
            run(&inner, &context, Inputs(inputs.into_iter()))
        }))
    }

    fn may_block(&self) -> bool {
        true
    }
}

pub(super) fn install(inner: &Arc<Inner>) -> Result<(), BuildError> {
    METHODS.iter().try_for_each(|(id, run)| {
        Ok(inner.space.set_method(&ns0(*id), Arc::new(Method(Arc::downgrade(inner), *run)))?)
    })
}

fn open_file(
    inner: &Inner,
    caller: &CallContext,
    (target, shared): (&Target, &Shared),
    mode: OpenMode,
) -> Result<u32, StatusCode> {
    if mode.write {
        shared.options.check_write(caller)?;
    } else {
        shared.options.check_read(caller)?;
    }
    // Never wait for a disk while the handles are locked: a shard reads their count.
    let file = shared.folder.file(&target.route, mode.write).map_err(|error| status_of(&error))?;
    let open = Open::new(file, mode, shared.options.file_bytes_max).map_err(|error| status_of(&error))?;
    let at = (target.folder, &target.route);
    let (number, open) = lock(&inner.handles).open(caller, at, mode, open)?;
    if mode.erase {
        // The session now has it exclusively.
        shared.shrink(lock(&open).erase()?);
    }
    Ok(number)
}

fn open(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    if lock(&inner.transfers).is_file(&caller.object_id) {
        // Only the session with the handle has it open.
        return Err(StatusCode::BAD_INVALID_STATE);
    }
    let (target, shared) = inner.target(&caller.object_id, false)?;
    let mode = OpenMode::new(inputs.take()?)?;
    Ok(vec![open_file(inner, caller, (&target, &shared), mode)?.into()])
}

/// The content for a call on a temporary file; `None` if it is another file.
fn temporary(
    inner: &Inner,
    caller: &CallContext,
    inputs: &mut Inputs,
) -> Result<Option<Arc<Mutex<Content>>>, StatusCode> {
    inner.tidy_transfers();
    let mut transfers = lock(&inner.transfers);
    if !transfers.is_file(&caller.object_id) {
        return Ok(None);
    }
    transfers.get(caller, inputs.take()?, Instant::now()).map(Some)
}

/// The open file of a call, and its directory.
fn opened(
    inner: &Inner,
    caller: &CallContext,
    inputs: &mut Inputs,
) -> Result<(Arc<Mutex<Open>>, Arc<Shared>), StatusCode> {
    let (target, shared) = inner.target(&caller.object_id, false)?;
    let open = lock(&inner.handles).get(caller, (target.folder, &target.route), inputs.take()?)?;
    Ok((open, shared))
}

fn close(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let mut transfers = lock(&inner.transfers);
    if transfers.is_file(&caller.object_id) {
        let gone = transfers.close(caller, inputs.take()?)?;
        drop(transfers);
        gone.forget(&inner.space);
        return Ok(Vec::new());
    }
    drop(transfers);
    let (target, _) = inner.target(&caller.object_id, false)?;
    lock(&inner.handles).close(caller, (target.folder, &target.route), inputs.take()?)?;
    Ok(Vec::new())
}

fn read(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    if let Some(content) = temporary(inner, caller, &mut inputs)? {
        let bytes = lock(&content).read(inputs.take()?)?;
        return Ok(vec![ByteString::from(bytes).into()]);
    }
    let (open, shared) = opened(inner, caller, &mut inputs)?;
    // Roles may have changed since the file was opened.
    shared.options.check_read(caller)?;
    let bytes = lock(&open).read(inputs.take()?)?;
    Ok(vec![ByteString::from(bytes).into()])
}

fn write(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    if let Some(content) = temporary(inner, caller, &mut inputs)? {
        let data: ByteString = inputs.take()?;
        lock(&content).write(data.as_bytes(), caller)?;
        return Ok(Vec::new());
    }
    let (open, shared) = opened(inner, caller, &mut inputs)?;
    shared.options.check_write(caller)?;
    let data: ByteString = inputs.take()?;
    lock(&open).write(data.as_bytes(), |bytes| shared.grow(bytes))?;
    Ok(Vec::new())
}

fn get_position(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    if let Some(content) = temporary(inner, caller, &mut inputs)? {
        return Ok(vec![lock(&content).position().into()]);
    }
    let (open, _) = opened(inner, caller, &mut inputs)?;
    let position = lock(&open).position();
    Ok(vec![position.into()])
}

fn set_position(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    if let Some(content) = temporary(inner, caller, &mut inputs)? {
        lock(&content).seek(inputs.take()?);
        return Ok(Vec::new());
    }
    let (open, _) = opened(inner, caller, &mut inputs)?;
    lock(&open).seek(inputs.take()?)?;
    Ok(Vec::new())
}

/// The directory on which a method is called, if the caller may change it.
fn writable(inner: &Inner, caller: &CallContext) -> Result<(Target, Arc<Shared>), StatusCode> {
    let (target, shared) = inner.target(&caller.object_id, true)?;
    shared.options.check_write(caller)?;
    Ok((target, shared))
}

fn new_route(inner: &Inner, target: &Target, shared: &Shared, name: &str) -> Result<Route, StatusCode> {
    if lock(&inner.nodes).count(target.folder) > shared.options.entries_max {
        return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
    }
    target.route.join(name).ok_or(StatusCode::BAD_BROWSE_NAME_INVALID)
}

/// CreateDirectory (Part 20 §4.3.3).
fn create_directory(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let (target, shared) = writable(inner, caller)?;
    let route = new_route(inner, &target, &shared, &inputs.text()?)?;
    shared.folder.create_directory(&route).map_err(|error| status_of(&error))?;
    let node = nodes::show(inner, Target { route, is_directory: true, ..target });
    Ok(vec![node.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?.into()])
}

/// CreateFile (Part 20 §4.3.4).
fn create_file(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let (target, shared) = writable(inner, caller)?;
    let route = new_route(inner, &target, &shared, &inputs.text()?)?;
    let opens: bool = inputs.take()?;
    shared.folder.create_file(&route).map_err(|error| status_of(&error))?;
    let file = Target { route, is_directory: false, ..target };
    let node = nodes::show(inner, file.clone()).ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
    let handle = if opens {
        // Part 20 §4.3.4: the file is opened for reading and writing.
        open_file(inner, caller, (&file, &shared), OpenMode::new(3)?)?
    } else {
        0
    };
    Ok(vec![node.into(), handle.into()])
}

/// An entry of the directory on which a method is called.
fn member(inner: &Inner, directory: &Target, node: &NodeId) -> Result<Target, StatusCode> {
    let target = lock(&inner.nodes).target(node).cloned().ok_or(StatusCode::BAD_NOT_FOUND)?;
    let is_member = target.folder == directory.folder
        && target.route.split().is_some_and(|(parent, _)| parent == directory.route);
    if is_member { Ok(target) } else { Err(StatusCode::BAD_NOT_FOUND) }
}

/// Delete (Part 20 §4.3.5). A directory is deleted with its content.
fn delete(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let (directory, shared) = writable(inner, caller)?;
    let target = member(inner, &directory, &inputs.take()?)?;
    if lock(&inner.handles).is_used(target.folder, &target.route) {
        return Err(StatusCode::BAD_INVALID_STATE);
    }
    let mut freed = 0;
    let deleted = shared.folder.delete(&target.route, &mut freed);
    shared.shrink(freed);
    if let Err(error) = deleted {
        // If a directory could only be deleted in part, remove the nodes of the deleted part.
        nodes::refresh(inner, target.folder).map_err(|error| status_of(&error))?;
        return Err(status_of(&error));
    }
    nodes::hide(inner, target.folder, &target.route);
    Ok(Vec::new())
}

/// MoveOrCopy (Part 20 §4.3.6), within one shared directory. Directories can be moved but not copied.
fn move_or_copy(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let (directory, shared) = writable(inner, caller)?;
    let (object, to): (NodeId, NodeId) = (inputs.take()?, inputs.take()?);
    let (copies, name): (bool, String) = (inputs.take()?, inputs.text()?);
    let target = member(inner, &directory, &object)?;
    let (into, _) = inner.target(&to, true).map_err(|_| StatusCode::BAD_NOT_FOUND)?;
    if into.folder != target.folder {
        return Err(StatusCode::BAD_NOT_SUPPORTED);
    }
    let old_name = target.route.split().map(|(_, name)| name.to_owned()).unwrap_or_default();
    let name = if name.is_empty() { old_name } else { name };
    let route = new_route(inner, &into, &shared, &name)?;
    if copies {
        if target.is_directory {
            return Err(StatusCode::BAD_NOT_SUPPORTED);
        }
        let stat = shared.folder.stat(&target.route).map_err(|error| status_of(&error))?;
        if stat.size > shared.options.file_bytes_max {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        shared.grow(stat.size)?;
        if let Err(error) = shared.folder.copy(&target.route, &route) {
            shared.shrink(stat.size);
            return Err(status_of(&error));
        }
        let node = nodes::show(inner, Target { route, ..target });
        Ok(vec![node.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?.into()])
    } else {
        if lock(&inner.handles).is_used(target.folder, &target.route) {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        if route.is_within(&target.route) {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
        shared.folder.rename(&target.route, &route).map_err(|error| status_of(&error))?;
        let node = nodes::relocate(inner, target.folder, &target.route, &route);
        Ok(vec![node.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?.into()])
    }
}

/// The transfer object on which a method is called.
fn transfer_object(inner: &Inner, caller: &CallContext) -> Result<Arc<Transfer>, StatusCode> {
    inner.tidy_transfers();
    lock(&inner.transfers).object(&caller.object_id)
}

/// Adds a temporary file and its node.
fn begin(
    inner: &Inner,
    caller: &CallContext,
    transfer: &Transfer,
    content: (Made, Phase),
    purpose: (bool, Variant),
) -> Result<(NodeId, u32), StatusCode> {
    let (id, handle, gone) =
        lock(&inner.transfers).begin(caller, transfer, content, purpose, Instant::now())?;
    let begun = (id, handle);
    gone.forget(&inner.space);
    if let Err(error) = nodes::add_temporary(inner, transfer, &begun.0) {
        let mut of_file = caller.clone();
        of_file.object_id = begun.0.clone();
        // Adding the node failed, so there is none to delete.
        let _ = lock(&inner.transfers).close(&of_file, begun.1);
        return Err(error.status());
    }
    // The session and with it the file may have ended in the meantime; then delete the node here.
    if !lock(&inner.transfers).has(&begun.0) {
        let _ = inner.space.delete_node(&begun.0);
        return Err(StatusCode::BAD_SESSION_CLOSED);
    }
    Ok(begun)
}

/// GenerateFileForRead (Part 20 §4.4.3). If the content is complete on return, no state machine is created.
fn generate_for_read(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let transfer = transfer_object(inner, caller)?;
    // Check before the application generates content.
    lock(&inner.transfers).has_room(caller)?;
    let options = inputs.0.next().unwrap_or_default();
    // The options are no longer needed once the content exists.
    let purpose = (false, Variant::Empty);
    if transfer.is_asynchronous {
        let content = (transfer::unmade(&transfer, caller)?, Phase::Preparing);
        let (file, handle) = begin(inner, caller, &transfer, content, purpose)?;
        let machine = match preparing::generate(inner, caller, &transfer, &file, options) {
            Ok(machine) => machine,
            Err(status) => {
                let mut of_file = caller.clone();
                of_file.object_id = file;
                let closed = lock(&inner.transfers).close(&of_file, handle);
                if let Ok(gone) = closed {
                    gone.forget(&inner.space);
                }
                return Err(status);
            }
        };
        return Ok(vec![file.into(), handle.into(), machine.into()]);
    }
    let content = (transfer::generate(&transfer, caller, &options)?, Phase::Ready);
    let (file, handle) = begin(inner, caller, &transfer, content, purpose)?;
    Ok(vec![file.into(), handle.into(), NodeId::NULL.into()])
}

/// GenerateFileForWrite (Part 20 §4.4.4).
fn generate_for_write(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let transfer = transfer_object(inner, caller)?;
    let options = inputs.0.next().unwrap_or_default();
    let content = (transfer::empty(&transfer, caller, &options)?, Phase::Ready);
    let (file, handle) = begin(inner, caller, &transfer, content, (true, options))?;
    Ok(vec![file.into(), handle.into()])
}

/// CloseAndCommit (Part 20 §4.4.5). Without a state machine, the application has processed the content on return.
fn close_and_commit(inner: &Arc<Inner>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    let transfer = transfer_object(inner, caller)?;
    let (handle, is_kept) = (inputs.take()?, transfer.is_asynchronous);
    let committed = lock(&inner.transfers).commit(caller, handle, is_kept, Instant::now())?;
    let machine = match committed {
        Committed::Removed(gone, written) => {
            gone.forget(&inner.space);
            written.map_or(Ok(()), |written| transfer::commit(&transfer, caller, written))?;
            NodeId::NULL
        }
        Committed::Kept(file, written) => {
            let started = transfer.options.check_write(caller);
            let started = started.and_then(|()| preparing::apply(inner, caller, &transfer, &file, written));
            started.inspect_err(|_| {
                let gone = lock(&inner.transfers).drop_file(&file);
                gone.forget(&inner.space);
            })?
        }
    };
    Ok(vec![machine.into()])
}
