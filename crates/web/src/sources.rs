//! Where a gateway's values come from, as the dashboard shows it.

use core::fmt;

/// Whoever knows the sources of a server.
pub trait SourceList: fmt::Debug + Send + Sync {
    /// All sources as they are now.
    fn sources(&self) -> Vec<SourceState>;
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
}
