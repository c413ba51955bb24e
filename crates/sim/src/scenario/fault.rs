//! What goes wrong in a scenario.

use core::time::Duration;

/// Something that goes wrong. Times count from the start of the measured window.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// When.
    pub at: Duration,
    /// How long; faults that are over at once do not use it.
    pub lasts: Duration,
    /// What.
    pub kind: FaultKind,
}

/// Which of the clients of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Which {
    /// The group of clients, or the kind of server.
    pub group: usize,
    /// The number of one of them, from 0; `None` is all.
    pub number: Option<u32>,
}

/// What a fault of PubSub hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Publishers.
    Publisher,
    /// Subscribers.
    Subscriber,
    /// A broker.
    Broker,
}

impl Role {
    /// The key of scenario files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
            Self::Broker => "broker",
        }
    }
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFault {
    /// Its connection breaks; both ends are told.
    Cut,
    /// Nothing gets through, and nobody is told.
    Partition,
    /// The process dies, and is started again when the fault is over.
    Crash,
    /// The process dies and is started again at once.
    Restart,
    /// Its clock is wrong by so many nanoseconds, until the fault is over.
    Clock(i64),
    /// It does not read from its sockets.
    SlowReader,
    /// All connections of a broker break in the same instant.
    Storm,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Connections break; both ends are told.
    Cut(Which),
    /// Nothing gets through between clients and their server, and nobody is told.
    Partition(Which),
    /// A server's process dies, and is started again when the fault is over.
    Crash(Which),
    /// A server's process dies and is started again at once.
    Restart(Which),
    /// A server's clock is wrong by so many nanoseconds, until the fault is over.
    ServerClock(Which, i64),
    /// A client's clock is wrong by so many nanoseconds, until the fault is over.
    ClientClock(Which, i64),
    /// Clients do not read from their sockets.
    SlowReader(Which),
    /// All connections of a server break in the same instant, so that all clients come back together.
    Storm(Which),
    /// To publishers, subscribers or brokers.
    Node(Role, Which, NodeFault),
}

impl FaultKind {
    /// As scenario files call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cut(_) | Self::Node(_, _, NodeFault::Cut) => "cut",
            Self::Partition(_) | Self::Node(_, _, NodeFault::Partition) => "partition",
            Self::Crash(_) | Self::Node(_, _, NodeFault::Crash) => "crash",
            Self::Restart(_) | Self::Node(_, _, NodeFault::Restart) => "restart",
            Self::ServerClock(..) | Self::ClientClock(..) | Self::Node(_, _, NodeFault::Clock(_)) => "clock",
            Self::SlowReader(_) | Self::Node(_, _, NodeFault::SlowReader) => "slow-reader",
            Self::Storm(_) | Self::Node(_, _, NodeFault::Storm) => "storm",
        }
    }

    /// Whether it goes on until its time is over.
    #[must_use]
    pub fn lasts(&self) -> bool {
        use NodeFault::{Cut, Restart, Storm};
        let is_short = |what: &NodeFault| matches!(what, Cut | Restart | Storm);
        !matches!(self, Self::Cut(_) | Self::Restart(_) | Self::Storm(_))
            && !matches!(self, Self::Node(_, _, what) if is_short(what))
    }

    /// Whether it is about servers.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::Crash(_) | Self::Restart(_) | Self::ServerClock(..) | Self::Storm(_))
    }

    /// What of PubSub it is about, if it is.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Node(role, ..) => Some(*role),
            _ => None,
        }
    }

    /// Whether it is about clients.
    #[must_use]
    pub fn is_of_client(&self) -> bool {
        !self.is_of_server() && self.role().is_none()
    }

    /// By how many nanoseconds a clock is wrong.
    #[must_use]
    pub fn offset(&self) -> Option<i64> {
        match self {
            Self::ServerClock(_, nanos)
            | Self::ClientClock(_, nanos)
            | Self::Node(_, _, NodeFault::Clock(nanos)) => Some(*nanos),
            _ => None,
        }
    }

    /// The same of another group.
    #[must_use]
    pub fn with_group(self, group: usize) -> Self {
        self.with(Which { group, ..self.which() })
    }

    /// The same of one of the group, or of all.
    #[must_use]
    pub fn with_number(self, number: Option<u32>) -> Self {
        self.with(Which { number, ..self.which() })
    }

    fn with(self, which: Which) -> Self {
        match self {
            Self::Cut(_) => Self::Cut(which),
            Self::Partition(_) => Self::Partition(which),
            Self::Crash(_) => Self::Crash(which),
            Self::Restart(_) => Self::Restart(which),
            Self::ServerClock(_, offset) => Self::ServerClock(which, offset),
            Self::ClientClock(_, offset) => Self::ClientClock(which, offset),
            Self::SlowReader(_) => Self::SlowReader(which),
            Self::Storm(_) => Self::Storm(which),
            Self::Node(role, _, what) => Self::Node(role, which, what),
        }
    }

    /// Whom it hits.
    #[must_use]
    pub fn which(&self) -> Which {
        match *self {
            Self::Cut(which)
            | Self::Partition(which)
            | Self::Crash(which)
            | Self::Restart(which)
            | Self::ServerClock(which, _)
            | Self::ClientClock(which, _)
            | Self::SlowReader(which)
            | Self::Storm(which)
            | Self::Node(_, which, _) => which,
        }
    }
}
