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
}

impl FaultKind {
    /// As scenario files call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cut(_) => "cut",
            Self::Partition(_) => "partition",
            Self::Crash(_) => "crash",
            Self::Restart(_) => "restart",
            Self::ServerClock(..) | Self::ClientClock(..) => "clock",
            Self::SlowReader(_) => "slow-reader",
            Self::Storm(_) => "storm",
        }
    }

    /// Whether it goes on until its time is over.
    #[must_use]
    pub fn lasts(&self) -> bool {
        !matches!(self, Self::Cut(_) | Self::Restart(_) | Self::Storm(_))
    }

    /// Whether it is about servers.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::Crash(_) | Self::Restart(_) | Self::ServerClock(..) | Self::Storm(_))
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
            | Self::Storm(which) => which,
        }
    }
}
