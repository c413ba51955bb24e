//! Threads shared by clients, as in a program with many connections.

use super::machine::{MachineId, ThreadId};
use crate::ids::ClientId;
use std::collections::{BTreeSet, VecDeque};

/// A thread of clients in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientThreadId(pub(crate) u32);

/// A thread, and the clients that wait for it.
#[derive(Debug)]
pub(crate) struct ClientThread {
    pub(crate) machine: MachineId,
    pub(crate) thread: ThreadId,
    ready: VecDeque<ClientId>,
    queued: BTreeSet<ClientId>,
    /// The client whose work is running.
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

    /// Queues a client that has work.
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
