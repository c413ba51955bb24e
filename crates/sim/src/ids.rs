//! Identifiers of the hosts and machines of a world.

/// A process in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostId {
    /// A [`ServerHost`](crate::ServerHost).
    Server(ServerId),
    /// A [`ClientHost`](crate::ClientHost).
    Client(ClientId),
    /// A [`NodeHost`](crate::node::NodeHost).
    Node(NodeId),
}

/// A server in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub(crate) u32);

impl ServerId {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// A client in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub(crate) u32);

/// A publisher, subscriber, broker or certificate authority in a world, or a process that asks authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// A machine in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineId(pub(crate) u32);
