//! Work counters of a shard.
//!
//! The counters are plain integers of the shard, which the driver takes with
//! [`Shard::take_work`](crate::Shard::take_work). Fairness between connections is based on work units derived from
//! them: see [`unit`].

use core::ops::AddAssign;

/// Work units: the cost of a request before other connections get their turn. One unit is about the time to read one
/// scalar value, some 25 ns on a server CPU. The factors only have to be right within a factor of two.
pub(crate) mod unit {
    /// A request and its response, without operations.
    pub(crate) const REQUEST: i64 = 8;
    /// An operation on a node with general decoding.
    pub(crate) const OPERATION: i64 = 8;
    /// An operation that changes a monitored item.
    pub(crate) const ITEM: i64 = 16;
    /// Adding or deleting a node or reference.
    pub(crate) const NODE: i64 = 64;
    /// Following a reference.
    pub(crate) const REFERENCE: i64 = 2;
    /// Monitored items looked at per unit.
    pub(crate) const LOOKED_AT: usize = 8;
    /// References and members of types looked at, but not followed, per unit.
    pub(crate) const SKIMMED: usize = 2;
    /// Bytes of a response per unit.
    pub(crate) const BYTES: usize = 32;

    /// The units for a part of a response.
    #[inline]
    pub(crate) const fn bytes(len: usize) -> i64 {
        (len / BYTES) as i64
    }

    /// The units for references and members of types that were looked at.
    #[inline]
    pub(crate) const fn skimmed(count: usize) -> i64 {
        (count / SKIMMED) as i64
    }
}

/// The work of a shard since the counters were last taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// Chunks received.
    pub chunks_received: u64,
    /// Chunks created and handed to the driver.
    pub chunks_sent: u64,
    /// Bytes received and consumed.
    pub bytes_received: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Chunks signed or verified with symmetric keys, and encrypted or decrypted if the channel's mode requires it.
    pub signatures: u64,
    /// Service requests started.
    pub requests: u64,
    /// Operations of their lists: nodes read, written or browsed, methods called, items created.
    pub operations: u64,
    /// References followed by Browse, BrowseNext and TranslateBrowsePathsToNodeIds.
    pub references: u64,
    /// Number of times that a request was postponed for other connections.
    pub suspensions: u64,
    /// Work units of all requests.
    pub units: u64,
    /// Monitored items examined because their variable has changed or their sampling interval has elapsed.
    pub items_walked: u64,
    /// Writes taken from the queue for items that want every write.
    pub writes_queued: u64,
    /// Notifications in messages.
    pub notifications: u64,
    /// Publish responses: NotificationMessages and keep-alives.
    pub publish_responses: u64,
    /// Slow jobs created (see [`JobKind`](crate::JobKind)).
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
