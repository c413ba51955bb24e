//! The sources and destinations of a gateway, as the dashboard shows them.

use core::fmt;

/// A provider of the sources and destinations of a server.
pub trait SourceList: fmt::Debug + Send + Sync {
    /// Whether the server is a gateway. It may become one while it runs.
    fn is_gateway(&self) -> bool {
        true
    }

    /// The current state of all sources.
    fn sources(&self) -> Vec<SourceState>;

    /// The current state of all destinations.
    fn destinations(&self) -> Vec<DestinationState>;
}

/// A destination of a gateway: a broker, a database, files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DestinationState {
    /// Its name in the configuration.
    pub name: String,
    /// Its type and address.
    pub description: String,
    /// Whether the last attempt to send succeeded.
    pub is_connected: bool,
    /// Values in its queue.
    pub queued: u64,
    /// Values in its queue that wait for single variables while others are sent.
    pub parked: u64,
    /// Size of its queue, in bytes.
    pub queued_bytes: u64,
    /// Capacity of its queue, in bytes.
    pub queue_bytes_max: u64,
    /// When the oldest value in the queue was received, in milliseconds since 1970.
    pub oldest: Option<i64>,
    /// Number of values that it has confirmed.
    pub sent: u64,
    /// Number of values dropped because the queue was full or they were too old.
    pub dropped: u64,
    /// Number of values that it has refused.
    pub refused: u64,
    /// Number of failed attempts to send.
    pub errors: u64,
    /// When it last confirmed values, in milliseconds since 1970.
    pub last_sent: Option<i64>,
    /// The last error.
    pub last_error: Option<String>,
    /// Why values are lost at present, if so.
    pub loss: Option<String>,
}

/// A source: a device, a broker, another server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceState {
    /// Its name in the configuration.
    pub name: String,
    /// Its type and address.
    pub description: String,
    /// Whether it is connected, or has answered the last request.
    pub is_connected: bool,
    /// Number of its variables.
    pub tags: u64,
    /// Number of variables with the status Uncertain_LastUsableValue.
    pub uncertain: u64,
    /// Number of variables with the status Bad_NoCommunication.
    pub lost: u64,
    /// Number of requests to the source.
    pub requests: u64,
    /// Number of its responses and messages.
    pub answers: u64,
    /// Number of unanswered requests and failed connections.
    pub errors: u64,
    /// Number of stored values.
    pub values: u64,
    /// Number of discarded values and messages.
    pub dropped: u64,
    /// Number of values that do not fit the type of their variable.
    pub invalid: u64,
    /// How many times a value was late.
    pub missed: u64,
    /// Number of values that could not be written to the source.
    pub write_errors: u64,
    /// When it last answered, in milliseconds since 1970.
    pub last_answer: Option<i64>,
    /// The last error.
    pub last_error: Option<String>,
    /// Why some data of the source is missing at present, if so.
    pub incomplete: Option<String>,
}
