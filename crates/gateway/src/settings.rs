//! Settings common to all sources.

use crate::fields::{Fields, Mistake};
use core::time::Duration;

/// Settings common to all sources.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// Its name.
    pub name: String,
    /// The polling interval; `None` if the source sends values on its own.
    pub interval: Option<Duration>,
    /// Timeout for connections and answers.
    pub deadline: Duration,
    /// After this time without a value, the last one becomes Uncertain_LastUsableValue. Default: two intervals.
    pub stale_after: Option<Duration>,
    /// After this time without a value, the tag becomes Bad_NoCommunication.
    pub lost_after: Duration,
    /// Rate limit for stored values, per second. Beyond it, the newest value of each tag is queued; values that it replaces are
    /// counted.
    pub values_per_second_max: u64,
    /// Pause after the first failure. It doubles with each further failure …
    pub retry: Duration,
    /// … up to this maximum.
    pub retry_max: Duration,
    /// Whether gateways that share sources use a lease so that only one polls it.
    pub is_leased: bool,
    /// Most variables that it may add while running.
    pub nodes_max: usize,
}

impl SourceSettings {
    /// Takes the settings of a source; `interval` is the default for polled sources.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, name: String, interval: Option<Duration>) -> Result<Self, Mistake> {
        let interval = match interval {
            // No field bus needs a shorter interval, and polling faster would use a whole core.
            Some(default) => Some(fields.span("interval")?.unwrap_or(default).max(Duration::from_millis(1))),
            None => None,
        };
        let deadline = fields.span("deadline")?.unwrap_or(Duration::from_secs(3));
        let lost_after = fields.span("lost_after")?;
        Ok(Self {
            name,
            interval,
            deadline,
            stale_after: fields.span("stale_after")?,
            lost_after: lost_after
                .unwrap_or_else(|| Duration::from_secs(10).max(interval.unwrap_or_default() * 5)),
            values_per_second_max: fields
                .integer("values_per_second_max", 1, 100_000_000)?
                .unwrap_or(200_000),
            retry: fields.span("retry")?.unwrap_or(Duration::from_millis(500)),
            retry_max: fields.span("retry_max")?.unwrap_or(Duration::from_secs(30)),
            is_leased: fields.flag("lease")?.unwrap_or(true),
            nodes_max: fields.integer("nodes_max", 0, 1_000_000)?.unwrap_or(10_000) as usize,
        })
    }
}
