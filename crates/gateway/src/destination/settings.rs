//! Settings common to all destinations.

use super::nodes::NodeField;
use super::pattern::{self, Pattern};
use super::queue::{QueueLimits, WhenFull};
use crate::fields::{Fields, Mistake};
use core::time::Duration;
use std::path::PathBuf;

/// Settings common to all destinations.
#[derive(Debug, Clone)]
pub struct DestinationSettings {
    /// Its name.
    pub name: String,
    /// Patterns of its tags; empty means all.
    pub include: Vec<Pattern>,
    /// The line of `tags`.
    pub tags_line: usize,
    /// Patterns of excluded tags.
    pub exclude: Vec<Pattern>,
    /// Variables of the address space.
    pub nodes: Vec<NodeField>,
    /// Sampling interval of these variables.
    pub nodes_every: Duration,
    /// Whether unchanged values are sent too.
    pub every: bool,
    /// The file of its queue.
    pub queue: PathBuf,
    /// Capacity and durability of the queue.
    pub limits: QueueLimits,
    /// Interval for writing values to the queue. A killed process loses at most the values of this time.
    pub flush: Duration,
    /// Most values per batch.
    pub batch_max: usize,
    /// Timeout of a batch.
    pub deadline: Duration,
    /// Pause after the first failure. It doubles with each further failure …
    pub retry: Duration,
    /// … up to this maximum.
    pub retry_max: Duration,
}

impl DestinationSettings {
    /// Whether a tag is sent.
    #[must_use]
    pub fn takes(&self, tag: &str) -> bool {
        pattern::takes(&self.include, &self.exclude, tag)
    }

    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, name: String) -> Result<Self, Mistake> {
        let patterns = |texts: Option<Vec<String>>| {
            texts.unwrap_or_default().iter().map(|text| Pattern::new(text)).collect()
        };
        let nodes = NodeField::take(fields)?;
        let tags_line = fields.line_of("tags");
        let include = patterns(fields.texts("tags")?);
        let mut exclude: Vec<Pattern> = patterns(fields.texts("except")?);
        // With nodes, only explicitly listed tags are sent.
        if !nodes.is_empty() && include.is_empty() {
            exclude.push(Pattern::new("**"));
        }
        let queue = fields.text("queue")?.unwrap_or_else(|| format!("{name}.queue.db"));
        let full = [("drop-oldest", WhenFull::DropOldest), ("drop-newest", WhenFull::DropNewest)];
        Ok(Self {
            include,
            tags_line,
            exclude,
            nodes,
            nodes_every: fields
                .span("fields_interval")?
                .unwrap_or(Duration::from_secs(1))
                .clamp(Duration::from_millis(10), Duration::from_secs(3600)),
            every: fields.word("values", &[("changes", false), ("all", true)])?.unwrap_or(false),
            queue: fields.path().parent().map(|folder| folder.join(&queue)).unwrap_or_else(|| queue.into()),
            limits: QueueLimits {
                bytes_max: fields.integer("queue_mb_max", 1, 1 << 20)?.unwrap_or(1024) << 20,
                age_max: fields.span("age_max")?,
                when_full: fields.word("when_full", &full)?.unwrap_or(WhenFull::DropOldest),
                parked_max: fields.integer("parked_max", 1, 10_000_000)?.unwrap_or(100_000),
                sync: fields.flag("sync")?.unwrap_or(false),
            },
            flush: fields
                .span("flush")?
                .unwrap_or(Duration::from_millis(100))
                .clamp(Duration::from_millis(1), Duration::from_secs(10)),
            batch_max: fields.integer("batch_max", 1, 100_000)?.unwrap_or(5000) as usize,
            deadline: fields.span("deadline")?.unwrap_or(Duration::from_secs(10)),
            retry: fields.span("retry")?.unwrap_or(Duration::from_millis(500)),
            retry_max: fields.span("retry_max")?.unwrap_or(Duration::from_secs(30)),
            name,
        })
    }
}
