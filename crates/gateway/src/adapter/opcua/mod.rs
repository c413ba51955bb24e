//! Other OPC UA servers: single nodes, and whole subtrees that are mirrored.
//!
//! - `mirror`: which nodes a subtree has and what they are, `budget`: how much of it is asked, `bases`: supertypes;
//! - `session`: one connection with one subscription; `methods`: what clients can call, `passage`: calls and history;
//! - `relations`: references between nodes; `notices`: events, `conditions`: alarms, `own`: the fields of their types;
//!   `offers`: the variables of a server;
//! - `types`: the types that a mirror needs, `translation`: their ids here and there.
//!
//! However many clients the gateway has, the other server sees one session with one subscription.

mod bases;
mod budget;
mod conditions;
mod methods;
mod mirror;
mod notices;
mod offers;
mod own;
mod passage;
mod relations;
mod session;
mod translation;
mod types;

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
use futures_util::future::BoxFuture;
use notices::Notices;
use passage::Passage;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Another server.
#[derive(Debug)]
pub struct OpcUa {
    remote: Remote,
    publishing_interval: Duration,
    sampling_interval: Option<Duration>,
    writable: bool,
    /// Whether clients can call the methods of a mirror.
    methods: bool,
    /// Whether the events and alarms of a mirror are passed on.
    events: bool,
    depth_max: usize,
    /// Bytes and time for looking at all mirrors.
    limits: (usize, Duration),
    mirrors: Vec<String>,
    /// Tags that are named one by one: their node, and their position if they have one.
    tags: Vec<(Tag, String, Option<usize>)>,
    /// The positions of variables that were found, by their node with the URI of its namespace.
    known: HashMap<String, usize>,
    /// The methods that were found, by object and method.
    known_methods: HashSet<(String, String)>,
    passage: Arc<Passage>,
    notices: Notices,
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
        Ok(Self {
            remote,
            publishing_interval: fields.span("publishing_interval")?.unwrap_or(Duration::from_millis(500)),
            sampling_interval: fields.span("sampling_interval")?,
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
            known_methods: HashSet::new(),
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
        // Without a type the variable is added when the server has said it.
        let placement = tag.kind.map_or(Placement::Later, |kind| Placement::Variable(Kind::scalar(kind)));
        let position = tag.kind.map(|_| position);
        self.tags.push((tag.clone(), node, position));
        Ok(placement)
    }

    fn finds_variables(&self) -> bool {
        !self.mirrors.is_empty()
    }

    fn offers<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        Box::pin(offers::offers(self, question))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(session::run(self, feed, writes))
    }
}
