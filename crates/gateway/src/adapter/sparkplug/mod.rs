//! Sparkplug B as a host application: receives the metrics of edge nodes and devices at an MQTT broker.
//!
//! - [`host`]: the state of the nodes; `session`: one connection. Messages are in [`crate::sparkplug`].
//!
//! Each metric of a birth becomes a variable. A tag gives a metric another name, scaling and other tag settings.

pub mod host;
mod session;

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::mqtt::Broker;
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::sparkplug::is_level;
use crate::tag::{Access, Tag};
use futures_util::future::BoxFuture;
use host::MetricId;
use std::collections::HashMap;
use std::sync::Arc;

/// A broker with edge nodes.
#[derive(Debug)]
pub struct Sparkplug {
    broker: Broker,
    groups: Vec<String>,
    host_id: Option<String>,
    /// Whether all metrics become variables, or only those named by tags.
    expand: bool,
    writable: bool,
    nodes_max: usize,
    tags: Vec<(Tag, MetricId)>,
    /// The variables by metric; `None` if a variable could not be added.
    added: HashMap<Arc<MetricId>, Option<Place>>,
}

/// The variable of a metric.
#[derive(Debug, Clone, Copy)]
struct Place {
    position: usize,
    datatype: u32,
}

impl Sparkplug {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &SourceSettings) -> Result<Self, Mistake> {
        let broker = Broker::take(fields, &settings.name)?;
        let groups = fields.texts("groups")?.unwrap_or_default();
        if let Some(group) = groups.iter().find(|group| !is_level(group)) {
            let hint = "write groups = [\"Plant 1\"], or leave it out for all";
            return Err(fields.mistake(format!("{group:?} is no group"), hint));
        }
        let host_id = fields.text_at("host_id")?;
        if let Some((line, id)) = host_id.as_ref().filter(|(_, id)| !is_level(id)) {
            let hint = "an id has no / + #";
            return Err(fields.mistake_in(*line, "host_id", format!("{id:?} is no id of a host"), hint));
        }
        Ok(Self {
            broker,
            groups: if groups.is_empty() { vec!["+".to_owned()] } else { groups },
            host_id: host_id.map(|(_, id)| id),
            expand: fields.flag("expand")?.unwrap_or(true),
            writable: fields.flag("writable")?.unwrap_or(false),
            nodes_max: settings.nodes_max,
            tags: Vec::new(),
            added: HashMap::new(),
        })
    }
}

impl Adapter for Sparkplug {
    fn describe(&self) -> String {
        format!("Sparkplug B, {}", self.broker.describe())
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        let (_, group) = fields.required("group", "\"Plant 1\"")?;
        let (_, node) = fields.required("node", "\"Edge 1\"")?;
        let (_, name) = fields.required("metric", "\"Oven/Temperature\"")?;
        let id = MetricId { group, node, device: fields.text("device")?, name };
        if self.tags.iter().any(|(_, other)| *other == id) {
            return Err(fields.mistake("another tag shows this metric", "remove one of them"));
        }
        if tag.access == Access::ReadWrite && tag.kind.is_some() && tag.scaling.is_identity() {
            return Err(fields.mistake(
                "a metric that clients write has the type that its edge node tells",
                "leave type out",
            ));
        }
        self.tags.push((tag.clone(), id));
        // The birth determines the type.
        Ok(Placement::Later)
    }

    fn finds_variables(&self) -> bool {
        self.expand
    }

    fn adds(&self) -> Option<&'static str> {
        self.expand.then_some("the metrics of its devices")
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(session::run(self, feed, writes))
    }
}
