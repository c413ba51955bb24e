//! What every source has, of whatever kind.

use crate::fields::{Fields, Mistake};
use core::time::Duration;

/// What every source has.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// Its name.
    pub name: String,
    /// How often it is asked; `None` if values come by themselves.
    pub interval: Option<Duration>,
    /// How long a connection or an answer may take.
    pub deadline: Duration,
    /// Without a value for so long, the last one is Uncertain_LastUsableValue. Two intervals unless it is named.
    pub stale_after: Option<Duration>,
    /// Without a value for so long, there is none: Bad_NoCommunication.
    pub lost_after: Duration,
    /// Values that it may store per second. Of more, the newest of each tag waits; those that it replaces are counted.
    pub values_per_second_max: u64,
    /// Pause after the first failure; each one after that doubles it …
    pub retry: Duration,
    /// … up to this.
    pub retry_max: Duration,
    /// Whether gateways that share sources ask it one at a time.
    pub is_leased: bool,
    /// Variables that it may add while it runs.
    pub nodes_max: usize,
}

impl SourceSettings {
    /// Takes the settings of a source; `interval` is the default for those that are asked.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, name: String, interval: Option<Duration>) -> Result<Self, Mistake> {
        let interval = match interval {
            // Faster makes no sense on any field bus, and would burn a core.
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
