//! A running gateway: its nodes, its tasks and its statistics.

use crate::configuration::{DestinationConfig, GatewayConfig, SourceConfig, TagConfig};
use crate::destination::Sink;
use crate::destination::forward::{Destination, DestinationView};
use crate::destination::queue::QueueError;
use crate::feed::{Feed, Writes};
use crate::plant::Plant;
use crate::source::{Adapter, Placement};
use crate::statistics::Snapshot;
use crate::supervisor::{supervise, watch};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use taktwerk::{BuildError, Server};
use tokio::runtime::{Builder, Runtime};

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// A tag did not become a node.
    #[error("source {source_name}, tag {tag}: {error}")]
    Node {
        /// The source.
        source_name: String,
        /// The tag.
        tag: String,
        /// Why.
        error: Box<BuildError>,
    },
    /// A destination has no queue.
    #[error("destination {destination}: {error}")]
    Queue {
        /// The destination.
        destination: String,
        /// Why.
        error: QueueError,
    },
    /// The operating system has no thread for it.
    #[error("cannot start the threads of the gateway: {0}")]
    Threads(#[from] io::Error),
}

/// A gateway whose nodes are there, and whose sources are not asked yet.
pub struct PreparedGateway {
    threads: usize,
    sources: Vec<(Box<dyn Adapter>, Feed, Writes)>,
    destinations: Vec<(Destination, Box<dyn Sink>)>,
}

impl core::fmt::Debug for PreparedGateway {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PreparedGateway").field("sources", &self.sources.len()).finish()
    }
}

impl PreparedGateway {
    /// Adds the nodes of a gateway to a server.
    ///
    /// # Errors
    /// A node of that name is there already, or a queue cannot be used.
    pub fn new(config: GatewayConfig, server: &Server) -> Result<Self, GatewayError> {
        let plant = Arc::new(Plant::new(server, &config.namespace));
        let mut destinations = Vec::new();
        for DestinationConfig { settings, sink } in config.destinations {
            let name = settings.name.clone();
            let destination = Destination::open(settings, sink.describe())
                .map_err(|error| GatewayError::Queue { destination: name, error })?;
            destinations.push((destination, sink));
        }
        let taps: Vec<_> = destinations.iter().map(|(destination, _)| destination.tap()).collect();
        let mut sources = Vec::new();
        for SourceConfig { settings, adapter, tags, .. } in config.sources {
            let (feed, writes) = Feed::new(settings, Arc::clone(&plant), taps.clone());
            for TagConfig { tag, placement, .. } in &tags {
                let Placement::Variable(kind) = placement else { continue };
                feed.add(tag, *kind).map_err(|error| GatewayError::Node {
                    source_name: tag.source.clone(),
                    tag: tag.name.clone(),
                    error: Box::new(error),
                })?;
            }
            sources.push((adapter, feed, writes));
        }
        Ok(Self { threads: config.threads, sources, destinations })
    }

    /// Starts asking.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self) -> Result<Gateway, GatewayError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(self.threads)
            .thread_name("taktwerk-gateway")
            .enable_all()
            .build()?;
        let mut destinations = Vec::new();
        for (destination, sink) in self.destinations {
            runtime.spawn(destination.clone().store());
            runtime.spawn(destination.clone().forward(sink));
            destinations.push(destination);
        }
        let mut sources = Vec::new();
        for (adapter, feed, writes) in self.sources {
            sources.push((adapter.describe(), feed.clone()));
            runtime.spawn(watch(feed.clone()));
            runtime.spawn(supervise(adapter, feed, writes));
        }
        let (sources, destinations) = (Sources(sources.into()), Destinations(destinations.into()));
        Ok(Gateway { runtime: Some(runtime), sources, destinations })
    }
}

/// A running gateway. It stops when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    runtime: Option<Runtime>,
    sources: Sources,
    destinations: Destinations,
}

/// How long tasks may take to end.
const GRACE: Duration = Duration::from_millis(500);

impl Gateway {
    /// The sources, for those that show them.
    #[must_use]
    pub fn sources(&self) -> Sources {
        self.sources.clone()
    }

    /// The destinations, for those that show them.
    #[must_use]
    pub fn destinations(&self) -> Destinations {
        self.destinations.clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // On a thread of its own, because a runtime must not be waited for within another one.
        let end = std::thread::Builder::new().name("gateway-end".to_owned());
        if let Ok(thread) = end.spawn(move || runtime.shutdown_timeout(GRACE)) {
            // It has nothing to tell.
            let _ = thread.join();
        }
        for destination in &*self.destinations.0 {
            destination.flush();
        }
    }
}

/// What can be seen of the sources of a running gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sources(Arc<[(String, Feed)]>);

/// What can be seen of the destinations of a running gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Destinations(Arc<[Destination]>);

impl Destinations {
    /// All destinations as they are now.
    #[must_use]
    pub fn views(&self) -> Vec<DestinationView> {
        self.0.iter().map(Destination::view).collect()
    }
}

/// A source as it is shown.
#[derive(Debug, Clone)]
pub struct SourceView {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its variables.
    pub tags: usize,
    /// What it has counted.
    pub statistics: Snapshot,
}

impl Sources {
    /// All sources as they are now.
    #[must_use]
    pub fn views(&self) -> Vec<SourceView> {
        let views = self.0.iter().map(|(description, feed)| SourceView {
            name: feed.settings().name.clone(),
            description: description.clone(),
            tags: feed.len(),
            statistics: feed.statistics().snapshot(),
        });
        views.collect()
    }
}
