//! Faults in a scenario.

use core::time::Duration;

/// A fault. Times are relative to the start of the measured window.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Start.
    pub at: Duration,
    /// Duration; ignored for instantaneous faults.
    pub lasts: Duration,
    /// Kind.
    pub kind: FaultKind,
}

/// The affected clients or servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Which {
    /// The group of clients, or the kind of server.
    pub group: usize,
    /// The number of one of them, from 0; `None` for all.
    pub number: Option<u32>,
}

/// The process that a fault affects, other than servers and clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Publishers.
    Publisher,
    /// Subscribers.
    Subscriber,
    /// A broker.
    Broker,
    /// A certificate authority.
    Authority,
}

impl Role {
    /// The name used in scenario files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
            Self::Broker => "broker",
            Self::Authority => "authority",
        }
    }
}

/// The effect of a fault on such a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFault {
    /// Its connection breaks; both ends are notified.
    Cut,
    /// Nothing gets through, and no end is notified.
    Partition,
    /// The process dies and is started again when the fault ends.
    Crash,
    /// The process dies and is started again immediately.
    Restart,
    /// Its clock is wrong by this many nanoseconds until the fault ends.
    Clock(i64),
    /// It does not read from its sockets.
    SlowReader,
    /// All connections of a broker break at the same instant.
    Storm,
    /// Each answer of a certificate authority takes this much longer.
    Slow(Duration),
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Connections break; both ends are notified.
    Cut(Which),
    /// Nothing gets through between clients and their server, and no end is notified.
    Partition(Which),
    /// A server's process dies and is started again when the fault ends.
    Crash(Which),
    /// A server's process dies and is started again immediately.
    Restart(Which),
    /// A server's clock is wrong by this many nanoseconds until the fault ends.
    ServerClock(Which, i64),
    /// A client's clock is wrong by this many nanoseconds until the fault ends.
    ClientClock(Which, i64),
    /// Clients do not read from their sockets.
    SlowReader(Which),
    /// All connections of a server break at the same instant, so that all clients reconnect at the same time.
    Storm(Which),
    /// A fault of publishers, subscribers, brokers or certificate authorities.
    Node(Role, Which, NodeFault),
}

impl FaultKind {
    /// The name used in scenario files.
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
            Self::Node(_, _, NodeFault::Slow(_)) => "slow",
        }
    }

    /// Whether it has a duration.
    #[must_use]
    pub fn lasts(&self) -> bool {
        use NodeFault::{Cut, Restart, Storm};
        let is_short = |what: &NodeFault| matches!(what, Cut | Restart | Storm);
        !matches!(self, Self::Cut(_) | Self::Restart(_) | Self::Storm(_))
            && !matches!(self, Self::Node(_, _, what) if is_short(what))
    }

    /// Whether it affects servers.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::Crash(_) | Self::Restart(_) | Self::ServerClock(..) | Self::Storm(_))
    }

    /// How much longer each answer takes.
    #[must_use]
    pub fn slowdown(&self) -> Option<Duration> {
        match self {
            Self::Node(_, _, NodeFault::Slow(span)) => Some(*span),
            _ => None,
        }
    }

    /// The process that it affects, if not a server or clients.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Node(role, ..) => Some(*role),
            _ => None,
        }
    }

    /// Whether it affects clients.
    #[must_use]
    pub fn is_of_client(&self) -> bool {
        !self.is_of_server() && self.role().is_none()
    }

    /// The error of the clock in nanoseconds.
    #[must_use]
    pub fn offset(&self) -> Option<i64> {
        match self {
            Self::ServerClock(_, nanos)
            | Self::ClientClock(_, nanos)
            | Self::Node(_, _, NodeFault::Clock(nanos)) => Some(*nanos),
            _ => None,
        }
    }

    /// The same fault for another group.
    #[must_use]
    pub fn with_group(self, group: usize) -> Self {
        self.with(Which { group, ..self.which() })
    }

    /// The same fault for one member of the group, or for all.
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

    /// The affected group and member.
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
