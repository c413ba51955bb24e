//! Where a gateway's values come from, as the dashboard shows it.

use core::fmt;

/// Whoever knows the sources of a server.
pub trait SourceList: fmt::Debug + Send + Sync {
    /// All sources as they are now.
    fn sources(&self) -> Vec<SourceState>;

    /// All destinations as they are now.
    fn destinations(&self) -> Vec<DestinationState>;
}

/// Where a gateway sends values: a broker, a database, files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DestinationState {
    /// Its name in the configuration.
    pub name: String,
    /// What it is, and where.
    pub description: String,
    /// Whether the last attempt to send succeeded.
    pub is_connected: bool,
    /// Values in its queue.
    pub queued: u64,
    /// Bytes of the values in its queue.
    pub queued_bytes: u64,
    /// When the oldest value in the queue was received, in milliseconds since 1970.
    pub oldest: Option<i64>,
    /// Values that it has confirmed so far.
    pub sent: u64,
    /// Values dropped so far: the queue was full, or they were too old.
    pub dropped: u64,
    /// Values that it refuses, so far.
    pub refused: u64,
    /// Attempts to send that failed so far.
    pub errors: u64,
    /// When it confirmed values last, in milliseconds since 1970.
    pub last_sent: Option<i64>,
    /// Why something failed last.
    pub last_error: Option<String>,
}

/// A source: a device, a broker, another server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceState {
    /// Its name in the configuration.
    pub name: String,
    /// What it is, and where.
    pub description: String,
    /// Whether it is connected, or answered last time.
    pub is_connected: bool,
    /// Its variables.
    pub tags: u64,
    /// Variables that are Uncertain_LastUsableValue.
    pub uncertain: u64,
    /// Variables that are Bad_NoCommunication.
    pub lost: u64,
    /// Questions to the source so far.
    pub requests: u64,
    /// Its answers and messages so far.
    pub answers: u64,
    /// Questions without an answer and connections that failed so far.
    pub errors: u64,
    /// Values stored so far.
    pub values: u64,
    /// Values and messages thrown away so far.
    pub dropped: u64,
    /// When it answered last, in milliseconds since 1970.
    pub last_answer: Option<i64>,
    /// Why something failed last.
    pub last_error: Option<String>,
    /// Why some of what the source has is not here, if that is so now.
    pub incomplete: Option<String>,
}
