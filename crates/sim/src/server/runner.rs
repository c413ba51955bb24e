//! One shard with its sockets: what `taktwerk-net` does on one thread.

use crate::alarm::Alarm;
use crate::fabric::Fabric;
use crate::host::machine::ThreadId;
use crate::ids::HostId;
use crate::network::{End, LinkId};
use crate::violation::Broken;
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_server::space::Wake;
use taktwerk_server::{ConnectionId, ConnectionState, JobResult, Now, Shard, ShardMessage, Token};

/// An input of a shard.
#[derive(Debug)]
pub(super) enum Input {
    Accepted(End, Option<IpAddr>),
    Moved(End, Box<ConnectionState>, Vec<u8>),
    Readable(LinkId),
    Writable(LinkId),
    Closed(LinkId),
    Message(ShardMessage),
    Done(Token, JobResult),
}

impl Input {
    /// The name of its handling in traces.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Accepted(..) => "accept",
            Self::Moved(..) => "take over",
            Self::Readable(_) => "receive",
            Self::Writable(_) => "writable",
            Self::Closed(_) => "closed",
            Self::Message(_) => "message of a shard",
            Self::Done(..) => "job done",
        }
    }
}

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) end: End,
    /// Bytes received and not consumed.
    pub(super) inbox: Vec<u8>,
}

/// Set by writes to variables.
#[derive(Debug)]
pub(super) struct Awake {
    pub(super) flag: AtomicBool,
    /// Flag of the world: some shard was woken.
    any: Arc<AtomicBool>,
}

struct Waker(Arc<Awake>);

impl Wake for Waker {
    fn wake(&self) {
        self.0.flag.store(true, Ordering::Relaxed);
        self.0.any.store(true, Ordering::Relaxed);
    }
}

/// A shard, its connections, and its pending inputs.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) shard: Shard,
    pub(super) woken: Arc<Awake>,
    pub(super) sockets: BTreeMap<ConnectionId, Socket>,
    pub(super) by_link: BTreeMap<LinkId, ConnectionId>,
    /// The shard does not accept bytes from these connections: they stay in the network, which slows the clients down.
    pub(super) paused: BTreeSet<ConnectionId>,
    pub(super) alarm: Alarm,
    // The following fields are used only by shards that have a processor.
    pub(super) thread: Option<ThreadId>,
    pub(super) is_awake: bool,
    pub(super) inputs: VecDeque<Input>,
    /// Number of inputs left in this turn; deadlines are handled after them.
    pub(super) batch: usize,
    /// Connections that have something to send, and the one being sent to.
    pub(super) outgoing: VecDeque<ConnectionId>,
    pub(super) sending: Option<ConnectionId>,
}

impl Runner {
    pub(super) fn new(number: usize, shard: Shard, any: &Arc<AtomicBool>) -> Self {
        let woken = Arc::new(Awake { flag: AtomicBool::new(false), any: Arc::clone(any) });
        shard.shared().space().set_waker(number, Box::new(Waker(Arc::clone(&woken))));
        Self {
            shard,
            woken,
            sockets: BTreeMap::new(),
            by_link: BTreeMap::new(),
            paused: BTreeSet::new(),
            alarm: Alarm::default(),
            thread: None,
            is_awake: false,
            inputs: VecDeque::new(),
            batch: 0,
            outgoing: VecDeque::new(),
            sending: None,
        }
    }

    /// Whether a variable that the shard watches was written.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.flag.load(Ordering::Relaxed)
    }

    pub(super) fn is_due(&self, now: Now) -> bool {
        self.is_woken() || self.shard.poll_timeout().is_some_and(|(at, _)| at <= now.instant)
    }

    /// Passes an input to the shard.
    pub(super) fn apply(&mut self, input: Input, host: HostId, now: Now, fabric: &mut Fabric) {
        match input {
            Input::Accepted(end, address) => {
                let id = match address {
                    Some(address) => self.shard.opened_from(address, now),
                    None => self.shard.opened(now),
                };
                self.adopt(id, end, Vec::new());
            }
            Input::Moved(end, state, inbox) => {
                let id = self.shard.import(*state, now);
                self.adopt(id, end, inbox);
                self.feed(id, host, now, fabric);
            }
            Input::Readable(link) => {
                if let Some(id) = self.by_link.get(&link).copied() {
                    self.feed(id, host, now, fabric);
                }
            }
            Input::Writable(link) => {
                if let Some(id) = self.by_link.get(&link) {
                    self.shard.writable(*id);
                }
            }
            Input::Closed(link) => {
                if let Some(id) = self.by_link.remove(&link) {
                    self.sockets.remove(&id);
                    self.paused.remove(&id);
                    self.shard.closed(id, now);
                }
            }
            Input::Message(message) => self.shard.message(message, now),
            Input::Done(token, result) => self.shard.done(token, result, now),
        }
    }

    fn adopt(&mut self, id: ConnectionId, end: End, inbox: Vec<u8>) {
        self.sockets.insert(id, Socket { end, inbox });
        self.by_link.insert(end.link, id);
    }

    /// Removes a connection, to close or move it.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Socket> {
        let socket = self.sockets.remove(&id)?;
        self.by_link.remove(&socket.end.link);
        self.paused.remove(&id);
        Some(socket)
    }

    /// Sends what the shard has for one connection.
    pub(super) fn send(&mut self, id: ConnectionId, now: Now, fabric: &mut Fabric) {
        let Some(socket) = self.sockets.get(&id) else { return };
        let unsent = self.shard.unsent(id);
        let taken = fabric.write(socket.end, unsent);
        let is_blocked = taken < unsent.len();
        self.shard.sent(id, taken);
        if is_blocked {
            self.shard.blocked(id, now);
        }
    }

    /// Passes received bytes of a connection to the shard, if it accepts them.
    fn feed(&mut self, id: ConnectionId, host: HostId, now: Now, fabric: &mut Fabric) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if !self.shard.wants_read(id) {
            self.paused.insert(id);
            return;
        }
        self.paused.remove(&id);
        fabric.read(socket.end, &mut socket.inbox);
        let given = socket.inbox.len();
        let consumed = self.shard.received(id, &mut socket.inbox, now);
        if consumed > given {
            fabric.broken(Broken::Consumed { host, consumed, given });
        }
        socket.inbox.drain(..consumed.min(given));
        if !self.shard.wants_read(id) {
            self.paused.insert(id);
        }
    }

    /// The connections whose bytes waited and are accepted again.
    pub(super) fn resumable(&self) -> Vec<ConnectionId> {
        self.paused.iter().copied().filter(|id| self.shard.wants_read(*id)).collect()
    }

    /// Resumes reading where the shard accepts bytes again. Returns whether there was anything to read.
    pub(super) fn resume(&mut self, host: HostId, now: Now, fabric: &mut Fabric) -> bool {
        let ready = self.resumable();
        for id in &ready {
            self.feed(*id, host, now, fabric);
        }
        !ready.is_empty()
    }

    pub(super) fn check(&self, host: HostId, response_len_max: usize, fabric: &mut Fabric) {
        let (counted, real) = (self.shard.connection_count(), self.sockets.len());
        if counted != real {
            fabric.broken(Broken::Connections { host, counted, real });
        }
        let budget = self.shard.shared().config().limits.send_budget;
        let limit = budget + response_len_max;
        for (id, socket) in &self.sockets {
            let len = self.shard.unsent(*id).len();
            if len > limit {
                fabric.broken(Broken::Unsent { host, link: socket.end.link, len, limit });
            }
        }
        if self.thread.is_some() {
            // It handles its deadlines when it gets a processor.
            return;
        }
        // A deadline that is due right now is handled by an event that is still in the queue.
        let missed = self.shard.poll_timeout().filter(|(at, _)| *at < fabric.queue.now());
        if let Some((_, reason)) = missed {
            fabric.broken(Broken::Restless { host, reason });
        }
    }
}
