//! Threads that clients share, as a program with many connections has them.

use super::machine::{MachineId, ThreadId};
use crate::ids::ClientId;
use std::collections::{BTreeSet, VecDeque};

/// A thread of clients in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientThreadId(pub(crate) u32);

/// One thread and the clients that want it.
#[derive(Debug)]
pub(crate) struct ClientThread {
    pub(crate) machine: MachineId,
    pub(crate) thread: ThreadId,
    ready: VecDeque<ClientId>,
    queued: BTreeSet<ClientId>,
    /// The one whose work is under way.
    pub(crate) current: Option<ClientId>,
    pub(crate) is_awake: bool,
}

impl ClientThread {
    pub(crate) fn new(machine: MachineId, thread: ThreadId) -> Self {
        Self {
            machine,
            thread,
            ready: VecDeque::new(),
            queued: BTreeSet::new(),
            current: None,
            is_awake: false,
        }
    }

    /// A client has something to do.
    pub(crate) fn push(&mut self, client: ClientId) {
        if self.queued.insert(client) {
            self.ready.push_back(client);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<ClientId> {
        let client = self.ready.pop_front()?;
        self.queued.remove(&client);
        Some(client)
    }
}
