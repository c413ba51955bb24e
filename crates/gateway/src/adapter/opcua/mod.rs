//! Other OPC UA servers: single nodes, and whole subtrees that are mirrored.
//!
//! - `explore`: explores the mirrors, `mirror`: a subtree, `budget`: its limits, `bases`: supertypes;
//! - `session`: one connection with one subscription; `updates`: its messages; `redundancy`: switching between servers;
//! - `methods`: methods for clients, `passage`: calls and history;
//! - `relations`: references between nodes; `notices`: events, `conditions`: alarms, `own`: additional fields of their types;
//!   `offers`: lists the variables of a server;
//! - `types`: the types that a mirror needs, `translation`: ids on both servers.
//!
//! The other server sees one session with one subscription, however many clients the gateway has.

mod bases;
mod budget;
mod conditions;
mod explore;
mod follow;
mod methods;
mod mirror;
mod notices;
mod offers;
mod own;
mod passage;
mod redundancy;
mod relations;
mod session;
mod translation;
mod types;
mod updates;

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::offer::{Offer, Question};
use crate::opcua::{Remote, check_node};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::tag::Tag;
use crate::value::Kind;
use core::time::Duration;
use follow::Known;
use futures_util::future::BoxFuture;
use notices::Notices;
use passage::Passage;
use std::collections::HashMap;
use std::sync::Arc;

/// Another server.
#[derive(Debug)]
pub struct OpcUa {
    remote: Remote,
    publishing_interval: Duration,
    sampling_interval: Option<Duration>,
    /// How many values the other server queues for each variable.
    queue_size: u32,
    writable: bool,
    /// Whether clients can call the methods of a mirror.
    methods: bool,
    /// Whether events and alarms of a mirror are forwarded.
    events: bool,
    depth_max: usize,
    /// Limits in bytes and time for exploring all mirrors.
    limits: (usize, Duration),
    mirrors: Vec<String>,
    /// Individually configured tags: their node, and their position if they have one.
    tags: Vec<(Tag, String, Option<usize>)>,
    /// The discovered variables, by node with namespace URI.
    known: HashMap<String, Known>,
    /// The names of discovered methods, by object and method.
    known_methods: HashMap<(String, String), String>,
    passage: Arc<Passage>,
    notices: Notices,
}

/// Largest queue of a variable on the other server.
const QUEUE_SIZE_MAX: u32 = 100_000;
/// Largest queue unless it is configured.
const QUEUE_SIZE_DEFAULT_MAX: u32 = 1000;

/// The default queue: all samples between two messages.
fn queue_size_for(publishing: Duration, sampling: Option<Duration>) -> u32 {
    let samples = sampling.map_or(1.0, |sampling| publishing.div_duration_f64(sampling));
    (samples.ceil() as u32).clamp(1, QUEUE_SIZE_DEFAULT_MAX)
}

impl OpcUa {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let remote = Remote::take(fields)?;
        let mirrors = fields.texts("mirror")?.unwrap_or_default();
        for node in &mirrors {
            check_node(fields, fields.line(), "mirror", node)?;
        }
        let publishing_interval = fields.span("publishing_interval")?.unwrap_or(Duration::from_millis(500));
        let sampling_interval = fields.span("sampling_interval")?;
        let queue_size = fields.integer("queue_size", 1, QUEUE_SIZE_MAX.into())?.map(|size| size as u32);
        Ok(Self {
            remote,
            publishing_interval,
            sampling_interval,
            queue_size: queue_size.unwrap_or_else(|| queue_size_for(publishing_interval, sampling_interval)),
            writable: fields.flag("writable")?.unwrap_or(true),
            methods: fields.flag("methods")?.unwrap_or(true),
            events: fields.flag("events")?.unwrap_or(true),
            depth_max: fields.integer("depth_max", 1, 100)?.unwrap_or(20) as usize,
            limits: (
                (fields.integer("mirror_mb_max", 1, 4096)?.unwrap_or(64) as usize) << 20,
                fields.span("mirror_within")?.unwrap_or(Duration::from_secs(300)),
            ),
            mirrors,
            tags: Vec::new(),
            known: HashMap::new(),
            known_methods: HashMap::new(),
            passage: Arc::default(),
            notices: Notices::default(),
        })
    }
}

impl Adapter for OpcUa {
    fn describe(&self) -> String {
        self.remote.describe()
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, position: usize) -> Result<Placement, Mistake> {
        let (line, node) = fields.required("address", "\"nsu=urn:example:plc;s=Temperature\"")?;
        check_node(fields, line, "address", &node)?;
        // Without a configured type the variable is added when the server has returned its type.
        let placement = tag.kind.map_or(Placement::Later, |kind| Placement::Variable(Kind::scalar(kind)));
        let position = tag.kind.map(|_| position);
        self.tags.push((tag.clone(), node, position));
        Ok(placement)
    }

    fn finds_variables(&self) -> bool {
        !self.mirrors.is_empty()
    }

    fn adds(&self) -> Option<&'static str> {
        self.finds_variables().then_some("the nodes of its mirror")
    }

    fn offers<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        Box::pin(offers::offers(self, question))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(session::run(self, feed, writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_queue_holds_all_samples_between_two_messages() {
        let ms = Duration::from_millis;
        assert_eq!(queue_size_for(ms(500), None), 1);
        assert_eq!(queue_size_for(ms(500), Some(ms(500))), 1);
        assert_eq!(queue_size_for(ms(500), Some(ms(2000))), 1);
        assert_eq!(queue_size_for(ms(500), Some(ms(120))), 5);
        assert_eq!(queue_size_for(ms(500), Some(Duration::from_nanos(1))), 1000);
    }
}
