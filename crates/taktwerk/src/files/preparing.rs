//! Temporary files whose content the application generates or processes asynchronously (FileTransferStateMachineType, Part 20
//! §4.4.6).

use super::methods::{Inputs, Outcome};
use super::transfer::{self, Begun, Done, Transfer};
use super::{Inner, nodes};
use crate::lock::lock;
use crate::state_machine::{Named, Shown};
use std::sync::{Arc, Weak};
use std::time::Instant;
use taktwerk_schema::ids::{object_ids as o, object_type_ids};
use taktwerk_server::callback::CallContext;
use taktwerk_types::{NodeId, StatusCode, Variant};

/// The transitions of a file that is read or written asynchronously, with their states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transition {
    IdleToReadPrepare,
    ReadPrepareToReadTransfer,
    ReadPrepareToError,
    IdleToApplyWrite,
    ApplyWriteToIdle,
    ApplyWriteToError,
    ErrorToIdle,
}

const IDLE: Named<'static> = named("Idle", o::FILE_TRANSFER_STATE_MACHINE_TYPE_IDLE, 1);
const READ_PREPARE: Named<'static> =
    named("ReadPrepare", o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_PREPARE, 2);
const READ_TRANSFER: Named<'static> =
    named("ReadTransfer", o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_TRANSFER, 3);
const APPLY_WRITE: Named<'static> = named("ApplyWrite", o::FILE_TRANSFER_STATE_MACHINE_TYPE_APPLY_WRITE, 4);
const ERROR: Named<'static> = named("Error", o::FILE_TRANSFER_STATE_MACHINE_TYPE_ERROR, 5);

const fn named(name: &'static str, id: u32, number: u32) -> Named<'static> {
    Named { name, id: NodeId::numeric(0, id), number }
}

impl Transition {
    const fn named(self) -> Named<'static> {
        match self {
            Self::IdleToReadPrepare => {
                named("IdleToReadPrepare", o::FILE_TRANSFER_STATE_MACHINE_TYPE_IDLE_TO_READ_PREPARE, 12)
            }
            Self::ReadPrepareToReadTransfer => named(
                "ReadPrepareToReadTransfer",
                o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_PREPARE_TO_READ_TRANSFER,
                23,
            ),
            Self::ReadPrepareToError => {
                named("ReadPrepareToError", o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_PREPARE_TO_ERROR, 25)
            }
            Self::IdleToApplyWrite => {
                named("IdleToApplyWrite", o::FILE_TRANSFER_STATE_MACHINE_TYPE_IDLE_TO_APPLY_WRITE, 14)
            }
            Self::ApplyWriteToIdle => {
                named("ApplyWriteToIdle", o::FILE_TRANSFER_STATE_MACHINE_TYPE_APPLY_WRITE_TO_IDLE, 41)
            }
            Self::ApplyWriteToError => {
                named("ApplyWriteToError", o::FILE_TRANSFER_STATE_MACHINE_TYPE_APPLY_WRITE_TO_ERROR, 45)
            }
            Self::ErrorToIdle => named("ErrorToIdle", o::FILE_TRANSFER_STATE_MACHINE_TYPE_ERROR_TO_IDLE, 51),
        }
    }

    const fn ends(self) -> (Named<'static>, Named<'static>) {
        match self {
            Self::IdleToReadPrepare => (IDLE, READ_PREPARE),
            Self::ReadPrepareToReadTransfer => (READ_PREPARE, READ_TRANSFER),
            Self::ReadPrepareToError => (READ_PREPARE, ERROR),
            Self::IdleToApplyWrite => (IDLE, APPLY_WRITE),
            Self::ApplyWriteToIdle => (APPLY_WRITE, IDLE),
            Self::ApplyWriteToError => (APPLY_WRITE, ERROR),
            Self::ErrorToIdle => (ERROR, IDLE),
        }
    }
}

/// Shows a transition, if the machine was not deleted. A client that waits for a state then also sees the transition.
fn show(shown: &Shown, transition: Transition) {
    if !shown.is_there() {
        return;
    }
    let (from, to) = transition.ends();
    let transition = transition.named();
    shown.show_transition(&transition);
    shown.show_state(&to);
    shown.raise(object_type_ids::TRANSITION_EVENT_TYPE, &transition, (&from, &to));
}

fn shown(inner: &Inner, machine: &NodeId) -> Shown {
    let (space, id) = (Arc::downgrade(&inner.space), machine.clone());
    Shown::at(space, id, "TransferState")
}

/// What the application does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Generate,
    Apply,
}

impl Task {
    const fn begins(self) -> Transition {
        match self {
            Self::Generate => Transition::IdleToReadPrepare,
            Self::Apply => Transition::IdleToApplyWrite,
        }
    }

    const fn ends(self, is_good: bool) -> Transition {
        match (self, is_good) {
            (Self::Generate, true) => Transition::ReadPrepareToReadTransfer,
            (Self::Generate, false) => Transition::ReadPrepareToError,
            (Self::Apply, true) => Transition::ApplyWriteToIdle,
            (Self::Apply, false) => Transition::ApplyWriteToError,
        }
    }
}

/// A file with which the application is occupied. It does not keep the server alive.
struct Work {
    inner: Weak<Inner>,
    task: Task,
    file: NodeId,
    begun: Begun,
    shown: Shown,
    is_done: bool,
}

impl Work {
    fn end(&mut self, done: Result<Done, StatusCode>) {
        self.is_done = true;
        let _order = lock(&self.begun.order);
        let Some(inner) = self.inner.upgrade() else { return };
        let is_good = lock(&inner.transfers).ended(&self.file, &self.begun.content, done, Instant::now());
        show(&self.shown, self.task.ends(is_good));
        inner.tidy_transfers();
    }
}

impl Drop for Work {
    /// The application panicked, or the thread could not be started.
    fn drop(&mut self) {
        if !self.is_done {
            self.end(Err(StatusCode::BAD_INTERNAL_ERROR));
        }
    }
}

/// Calls the application on a separate thread. Returns the state machine.
fn start(
    inner: &Arc<Inner>,
    caller: &CallContext,
    transfer: &Transfer,
    (file, task): (&NodeId, Task),
    call: impl FnOnce() -> Result<Done, StatusCode> + Send + 'static,
) -> Result<NodeId, StatusCode> {
    let added = nodes::add_machine(inner, transfer, &caller.object_id, file);
    let nodes = added.map_err(|error| error.status())?;
    let machine = nodes.first().cloned().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
    let occupied = lock(&inner.transfers).occupy(caller, file, nodes);
    let begun = occupied.map_err(|(gone, status)| {
        gone.forget(&inner.space);
        status
    })?;
    let mut work = Work {
        inner: Arc::downgrade(inner),
        task,
        file: file.clone(),
        begun,
        shown: shown(inner, &machine),
        is_done: false,
    };
    show(&work.shown, task.begins());
    // At most one thread per file. Worker threads are reserved for short work.
    let thread = std::thread::Builder::new().name("file transfer".to_owned()).spawn(move || {
        let done = call();
        work.end(done);
    });
    thread.map_err(|_| StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
    Ok(machine)
}

/// Lets the application generate the content of a file. Returns the state machine.
pub(super) fn generate(
    inner: &Arc<Inner>,
    caller: &CallContext,
    transfer: &Arc<Transfer>,
    file: &NodeId,
    options: Variant,
) -> Result<NodeId, StatusCode> {
    let (of_thread, called) = (Arc::clone(transfer), caller.clone());
    let call = move || transfer::generate(&of_thread, &called, &options).map(Done::Made);
    start(inner, caller, transfer, (file, Task::Generate), call)
}

/// Lets the application process the content that a client has written. Returns the state machine.
pub(super) fn apply(
    inner: &Arc<Inner>,
    caller: &CallContext,
    transfer: &Arc<Transfer>,
    file: &NodeId,
    written: transfer::Written,
) -> Result<NodeId, StatusCode> {
    let (of_thread, called) = (Arc::clone(transfer), caller.clone());
    let call = move || transfer::commit(&of_thread, &called, written).map(|()| Done::Applied);
    start(inner, caller, transfer, (file, Task::Apply), call)
}

/// Reset (Part 20 §4.4.7).
pub(super) fn reset(inner: &Arc<Inner>, caller: &CallContext, _: Inputs) -> Outcome {
    let order = lock(&inner.transfers).order(caller)?;
    let _order = lock(&order);
    lock(&inner.transfers).reset(caller)?;
    show(&shown(inner, &caller.object_id), Transition::ErrorToIdle);
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ns0::Ns0;

    #[test]
    fn names_are_those_of_the_objects() {
        use Transition as T;
        let reading = [T::IdleToReadPrepare, T::ReadPrepareToReadTransfer, T::ReadPrepareToError];
        let writing = [T::IdleToApplyWrite, T::ApplyWriteToIdle, T::ApplyWriteToError, T::ErrorToIdle];
        for transition in reading.into_iter().chain(writing) {
            let (from, to) = transition.ends();
            let named = transition.named();
            assert_eq!(named.name, format!("{}To{}", from.name, to.name));
            for object in [named, from, to] {
                let id = object.id.ns0().unwrap();
                assert_eq!(Ns0::get().node(id).unwrap().browse_name(), object.name);
            }
        }
    }
}
