//! Counters of a client's work, of the same kind as the server's. The simulator uses them as CPU cost.

use core::ops::AddAssign;

/// Work of a client since the counters were last taken (see [`Client::take_work`](crate::Client::take_work)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// Chunks received.
    pub chunks_received: u64,
    /// Chunks sent.
    pub chunks_sent: u64,
    /// Bytes received and consumed.
    pub bytes_received: u64,
    /// Bytes of service requests sent.
    pub bytes_sent: u64,
    /// Chunks that were signed or verified with symmetric keys, and encrypted or decrypted if the channel's mode
    /// requires it.
    pub signatures: u64,
    /// Service requests sent.
    pub requests: u64,
    /// Responses received.
    pub responses: u64,
    /// Value changes and events delivered.
    pub notifications: u64,
    /// Slow jobs passed to the driver.
    pub jobs: u64,
}

impl Work {
    /// The counters' names, in the order of [`Self::counts`].
    pub const NAMES: [&'static str; 9] = [
        "chunks_received",
        "chunks_sent",
        "bytes_received",
        "bytes_sent",
        "signatures",
        "requests",
        "responses",
        "notifications",
        "jobs",
    ];

    /// The counters, in the order of [`Self::NAMES`].
    #[must_use]
    pub const fn counts(&self) -> [u64; 9] {
        [
            self.chunks_received,
            self.chunks_sent,
            self.bytes_received,
            self.bytes_sent,
            self.signatures,
            self.requests,
            self.responses,
            self.notifications,
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
            responses,
            notifications,
            jobs,
        } = more;
        self.chunks_received += chunks_received;
        self.chunks_sent += chunks_sent;
        self.bytes_received += bytes_received;
        self.bytes_sent += bytes_sent;
        self.signatures += signatures;
        self.requests += requests;
        self.responses += responses;
        self.notifications += notifications;
        self.jobs += jobs;
    }
}
