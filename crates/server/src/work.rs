//! What a shard has done, counted.
//!
//! The counters are plain integers of the shard, which the driver takes with [`Shard::take_work`](crate::Shard::take_work).
//! Fairness between connections is reckoned in the units that they come to: see [`unit`].

use core::ops::AddAssign;

/// Work units: what a request may cost before other connections have their turn. One is about as long as it takes to
/// read one scalar value, some 25 ns on a server CPU. They only have to be right to a factor of two or so.
pub(crate) mod unit {
    /// A request and its response, without operations.
    pub(crate) const REQUEST: i64 = 8;
    /// An operation that is decoded in general and looks at a node.
    pub(crate) const OPERATION: i64 = 8;
    /// An operation that changes a monitored item.
    pub(crate) const ITEM: i64 = 16;
    /// A node or reference that is added or deleted.
    pub(crate) const NODE: i64 = 64;
    /// A reference that is followed.
    pub(crate) const REFERENCE: i64 = 2;
    /// Bytes of a response that cost one unit.
    pub(crate) const BYTES: usize = 32;

    /// The units of a part of a response.
    #[inline]
    pub(crate) const fn bytes(len: usize) -> i64 {
        (len / BYTES) as i64
    }
}

/// What a shard has done since the counters were taken last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// Chunks received.
    pub chunks_received: u64,
    /// Chunks made and handed to the driver to be sent.
    pub chunks_sent: u64,
    /// Bytes received, as far as they were used.
    pub bytes_received: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Chunks whose signature was made or checked with symmetric keys, and which were encrypted or decrypted if the
    /// channel's mode says so.
    pub signatures: u64,
    /// Service requests taken up.
    pub requests: u64,
    /// Operations of their lists: nodes read, written or browsed, methods called, items created.
    pub operations: u64,
    /// References followed by Browse, BrowseNext and TranslateBrowsePathsToNodeIds.
    pub references: u64,
    /// Times that a request was left so that others had their turn.
    pub suspensions: u64,
    /// Units that requests have come to.
    pub units: u64,
    /// Monitored items looked at because their variable has changed or their sampling interval was over.
    pub items_walked: u64,
    /// Writes taken from the queue of variables whose items want every one.
    pub writes_queued: u64,
    /// Notifications put into messages.
    pub notifications: u64,
    /// Publish responses: NotificationMessages and keep-alives.
    pub publish_responses: u64,
    /// Slow jobs handed out (see [`JobKind`](crate::JobKind)).
    pub jobs: u64,
}

impl Work {
    /// The counters' names, in the order of [`Self::counts`].
    pub const NAMES: [&'static str; 15] = [
        "chunks_received",
        "chunks_sent",
        "bytes_received",
        "bytes_sent",
        "signatures",
        "requests",
        "operations",
        "references",
        "suspensions",
        "units",
        "items_walked",
        "writes_queued",
        "notifications",
        "publish_responses",
        "jobs",
    ];

    /// The counters, in the order of [`Self::NAMES`].
    #[must_use]
    pub const fn counts(&self) -> [u64; 15] {
        [
            self.chunks_received,
            self.chunks_sent,
            self.bytes_received,
            self.bytes_sent,
            self.signatures,
            self.requests,
            self.operations,
            self.references,
            self.suspensions,
            self.units,
            self.items_walked,
            self.writes_queued,
            self.notifications,
            self.publish_responses,
            self.jobs,
        ]
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        let Self {
            chunks_received,
            chunks_sent,
            bytes_received,
            bytes_sent,
            signatures,
            requests,
            operations,
            references,
            suspensions,
            units,
            items_walked,
            writes_queued,
            notifications,
            publish_responses,
            jobs,
        } = more;
        self.chunks_received += chunks_received;
        self.chunks_sent += chunks_sent;
        self.bytes_received += bytes_received;
        self.bytes_sent += bytes_sent;
        self.signatures += signatures;
        self.requests += requests;
        self.operations += operations;
        self.references += references;
        self.suspensions += suspensions;
        self.units += units;
        self.items_walked += items_walked;
        self.writes_queued += writes_queued;
        self.notifications += notifications;
        self.publish_responses += publish_responses;
        self.jobs += jobs;
    }
}
