//! Temporary files whose content the application generates asynchronously (FileTransferStateMachineType, Part 20 §4.4.6).

use super::methods::{Inputs, Outcome};
use super::transfer::{self, Content, Transfer};
use super::{Inner, nodes};
use crate::lock::lock;
use crate::state_machine::{Named, Shown};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use taktwerk_schema::ids::{object_ids as o, object_type_ids};
use taktwerk_server::callback::CallContext;
use taktwerk_types::{NodeId, StatusCode, Variant};

/// The transitions of a reader's file, with their states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transition {
    IdleToReadPrepare,
    ReadPrepareToReadTransfer,
    ReadPrepareToError,
    ErrorToIdle,
}

const IDLE: Named<'static> = named("Idle", o::FILE_TRANSFER_STATE_MACHINE_TYPE_IDLE, 1);
const READ_PREPARE: Named<'static> =
    named("ReadPrepare", o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_PREPARE, 2);
const READ_TRANSFER: Named<'static> =
    named("ReadTransfer", o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_TRANSFER, 3);
const ERROR: Named<'static> = named("Error", o::FILE_TRANSFER_STATE_MACHINE_TYPE_ERROR, 5);

const fn named(name: &'static str, id: u32, number: u32) -> Named<'static> {
    Named { name, id: NodeId::numeric(0, id), number }
}

impl Transition {
    const fn named(self) -> Named<'static> {
        match self {
            Self::IdleToReadPrepare => {
                named("IdleToReadPrepare", o::FILE_TRANSFER_STATE_MACHINE_TYPE_IDLE_TO_READ_PREPARE, 1)
            }
            Self::ReadPrepareToReadTransfer => named(
                "ReadPrepareToReadTransfer",
                o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_PREPARE_TO_READ_TRANSFER,
                2,
            ),
            Self::ReadPrepareToError => {
                named("ReadPrepareToError", o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_PREPARE_TO_ERROR, 6)
            }
            Self::ErrorToIdle => named("ErrorToIdle", o::FILE_TRANSFER_STATE_MACHINE_TYPE_ERROR_TO_IDLE, 9),
        }
    }

    const fn ends(self) -> (Named<'static>, Named<'static>) {
        match self {
            Self::IdleToReadPrepare => (IDLE, READ_PREPARE),
            Self::ReadPrepareToReadTransfer => (READ_PREPARE, READ_TRANSFER),
            Self::ReadPrepareToError => (READ_PREPARE, ERROR),
            Self::ErrorToIdle => (ERROR, IDLE),
        }
    }
}

fn show(shown: &Shown, transition: Transition) {
    let (from, to) = transition.ends();
    let transition = transition.named();
    shown.show_state(&to);
    shown.show_transition(&transition);
    shown.raise(object_type_ids::TRANSITION_EVENT_TYPE, &transition, (&from, &to));
}

fn shown(inner: &Inner, machine: &NodeId) -> Shown {
    let (space, id) = (Arc::downgrade(&inner.space), machine.clone());
    Shown::at(space, id, "TransferState")
}

/// Content being generated. It does not keep the server alive.
struct Preparing {
    inner: Weak<Inner>,
    file: NodeId,
    session: NodeId,
    content: Arc<Mutex<Content>>,
    shown: Shown,
    is_done: bool,
}

impl Preparing {
    fn end(&mut self, made: Result<transfer::Made, StatusCode>) {
        self.is_done = true;
        let transition = if lock(&self.content).complete(made) {
            Transition::ReadPrepareToReadTransfer
        } else {
            Transition::ReadPrepareToError
        };
        let Some(inner) = self.inner.upgrade() else { return };
        lock(&inner.transfers).prepared(&self.file, &self.session, Instant::now());
        // If the file was deleted, so were these nodes.
        show(&self.shown, transition);
    }
}

impl Drop for Preparing {
    /// The application panicked, or the thread could not be started.
    fn drop(&mut self) {
        if !self.is_done {
            self.end(Err(StatusCode::BAD_INTERNAL_ERROR));
        }
    }
}

/// Lets the application generate the content of a file on a separate thread. Returns the state machine.
pub(super) fn start(
    inner: &Arc<Inner>,
    caller: &CallContext,
    transfer: &Arc<Transfer>,
    file: &NodeId,
    options: Variant,
) -> Result<NodeId, StatusCode> {
    let added = nodes::add_machine(inner, transfer, &caller.object_id, file);
    let nodes = added.map_err(|error| error.status())?;
    let machine = nodes.first().cloned().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
    let prepared = lock(&inner.transfers).prepare(file, nodes);
    let content = prepared.map_err(|(gone, status)| {
        gone.forget(&inner.space);
        status
    })?;
    let mut preparing = Preparing {
        inner: Arc::downgrade(inner),
        file: file.clone(),
        session: caller.session_id.clone(),
        content,
        shown: shown(inner, &machine),
        is_done: false,
    };
    show(&preparing.shown, Transition::IdleToReadPrepare);
    let (transfer, caller) = (Arc::clone(transfer), caller.clone());
    let make = move || {
        let made = transfer::generate(&transfer, &caller, &options);
        preparing.end(made);
    };
    // At most one thread per file. Worker threads are reserved for short work.
    let thread = std::thread::Builder::new().name("file transfer".to_owned()).spawn(make);
    thread.map_err(|_| StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
    Ok(machine)
}

/// Reset (Part 20 §4.4.7).
pub(super) fn reset(inner: &Arc<Inner>, caller: &CallContext, _: Inputs) -> Outcome {
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
        let all = [T::IdleToReadPrepare, T::ReadPrepareToReadTransfer, T::ReadPrepareToError, T::ErrorToIdle];
        for transition in all {
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
