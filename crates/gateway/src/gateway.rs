//! A running gateway: its nodes, tasks and statistics.

use crate::configuration::{GatewayConfig, SourceConfig, TagConfig};
use crate::destination::forward::{Destination, DestinationView};
use crate::destination::tap::Tap;
use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::lease::{LeaseConfig, Leases};
use crate::outlets::{self, Changes, LeftQueue, Outlet, Ready, Replacement, Unusable};
use crate::plant::{Plant, Wanted};
use crate::source::{Adapter, Placement};
use crate::statistics::Snapshot;
use crate::supervisor::{supervise, watch};
use crate::tag::Tag;
use crate::value::Kind;
use core::time::Duration;
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use taktwerk::{BuildError, Namespace, Server};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The node of a tag cannot be created.
    #[error("source {source_name}, tag {tag}: {error}")]
    Node {
        /// The source.
        source_name: String,
        /// The tag.
        tag: String,
        /// Why.
        error: Box<BuildError>,
    },
    /// The queue of a destination cannot be used.
    #[error(transparent)]
    Queue(#[from] Unusable),
    /// The operating system cannot start the threads.
    #[error("cannot start the threads of the gateway: {0}")]
    Threads(#[from] io::Error),
}

/// A gateway whose nodes exist and whose sources are not running yet.
pub struct PreparedGateway {
    threads: usize,
    namespace: String,
    plant: Arc<Plant>,
    sources: Vec<PreparedSource>,
    destinations: Vec<Ready>,
    lease: Option<LeaseConfig>,
    lease_fingerprint: u64,
}

struct PreparedSource {
    adapter: Box<dyn Adapter>,
    feed: Feed,
    writes: Writes,
    fingerprint: u64,
    adds: Option<&'static str>,
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
    /// A node of that name exists already, or a queue cannot be used.
    pub fn new(config: GatewayConfig, server: &Server) -> Result<Self, GatewayError> {
        let namespace = server.namespace(&config.namespace);
        Self::within(config, namespace)
    }

    /// Checks whether the nodes of a gateway can be added to a namespace. Adds none.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(config: &GatewayConfig, namespace: Namespace) -> Result<(), GatewayError> {
        let plant = Plant::new(namespace);
        for (tag, _) in config.sources.iter().flat_map(|source| variables(&source.tags)) {
            plant.check(tag, &HashSet::new()).map_err(|error| failed(tag, error))?;
        }
        Ok(outlets::check(&[], &config.destinations)?)
    }

    /// Adds the nodes of a gateway to a namespace. The server may be running already.
    ///
    /// # Errors
    /// As [`Self::new`]. No nodes are left then.
    pub fn within(config: GatewayConfig, namespace: Namespace) -> Result<Self, GatewayError> {
        let plant = Arc::new(Plant::new(namespace));
        let destinations = outlets::open(config.destinations, &[])?;
        let taps: Vec<_> = destinations.iter().map(Ready::tap).collect();
        let sources = config.sources.into_iter().map(|source| prepare(source, &plant, &taps));
        // A later configuration may have the same names.
        let sources = sources.collect::<Result<_, _>>().inspect_err(|_| plant.clear())?;
        Ok(Self {
            threads: config.threads,
            namespace: config.namespace,
            sources,
            plant,
            destinations,
            lease: config.lease,
            lease_fingerprint: config.lease_fingerprint,
        })
    }

    /// Starts the sources.
    ///
    /// # Errors
    /// A thread cannot be started. No nodes are left then.
    pub fn start(self) -> Result<Gateway, GatewayError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(self.threads)
            .thread_name("taktwerk-gateway")
            .enable_all()
            .build()
            .inspect_err(|_| self.plant.clear())?;
        let start = |ready: Ready| ready.start(&runtime, &self.plant);
        let outlets: Vec<Outlet> = self.destinations.into_iter().map(start).collect();
        let leases = self.lease.as_ref().map(|_| Leases::default());
        let start = |source| run(&runtime, source, leases.as_ref());
        let running: Vec<Running> = self.sources.into_iter().map(start).collect();
        if let (Some(leases), Some(config)) = (&leases, self.lease) {
            runtime.spawn(leases.clone().keep(config));
        }
        let gateway = Gateway {
            runtime: Some(runtime),
            threads: self.threads,
            namespace: self.namespace,
            plant: self.plant,
            running,
            sources: Sources::default(),
            outlets,
            destinations: Destinations::default(),
            leases,
            lease_fingerprint: self.lease_fingerprint,
        };
        gateway.show();
        Ok(gateway)
    }
}

/// Adds the nodes of a source.
fn prepare(
    source: SourceConfig,
    plant: &Arc<Plant>,
    taps: &[Arc<Tap>],
) -> Result<PreparedSource, GatewayError> {
    let (prepared, failures) = prepare_all(source, plant, taps);
    match failures.into_iter().next() {
        None => Ok(prepared),
        Some(error) => {
            prepared.feed.close();
            Err(error)
        }
    }
}

/// As [`prepare`], but tags whose nodes cannot be created are skipped and reported.
fn prepare_all(
    source: SourceConfig,
    plant: &Arc<Plant>,
    taps: &[Arc<Tap>],
) -> (PreparedSource, Vec<GatewayError>) {
    let SourceConfig { settings, adapter, tags, fingerprint, .. } = source;
    let (feed, writes) = Feed::new(settings, Arc::clone(plant), taps.to_vec());
    let mut failures = Vec::new();
    for (tag, kind) in variables(&tags) {
        if let Err(error) = feed.add(tag, kind) {
            // Keep the position: the source addresses its tags by position.
            let _ = feed.add_without_variable(tag, kind);
            failures.push(failed(tag, error));
        }
    }
    feed.run();
    // Tags whose variables are known only then: those of topics, and of another server without a type.
    let has_later = tags.iter().any(|it| it.placement == Placement::Later);
    let adds = adapter.adds().or(has_later.then_some("further tags"));
    (PreparedSource { adapter, feed, writes, fingerprint, adds }, failures)
}

/// The tags that are variables.
fn variables(tags: &[TagConfig]) -> impl Iterator<Item = (&Tag, Kind)> {
    tags.iter().filter_map(|it| match it.placement {
        Placement::Variable(kind) => Some((&it.tag, kind)),
        Placement::Later => None,
    })
}

fn failed(tag: &Tag, error: BuildError) -> GatewayError {
    let (source_name, tag) = (tag.source.clone(), tag.name.clone());
    GatewayError::Node { source_name, tag, error: Box::new(error) }
}

fn run(runtime: &Runtime, source: PreparedSource, leases: Option<&Leases>) -> Running {
    let PreparedSource { adapter, feed, writes, fingerprint, adds } = source;
    let description = adapter.describe();
    let settings = feed.settings();
    let lease = leases.filter(|_| settings.is_leased);
    let lease = lease.map(|leases| leases.lease(&settings.name, settings.interval));
    let tasks =
        [runtime.spawn(watch(feed.clone())), runtime.spawn(supervise(adapter, feed.clone(), writes, lease))];
    Running { description, adds, feed, fingerprint, tasks }
}

/// A running source.
#[derive(Debug)]
struct Running {
    description: String,
    adds: Option<&'static str>,
    feed: Feed,
    fingerprint: u64,
    tasks: [JoinHandle<()>; 2],
}

/// A running gateway. It stops when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    runtime: Option<Runtime>,
    threads: usize,
    namespace: String,
    plant: Arc<Plant>,
    running: Vec<Running>,
    sources: Sources,
    outlets: Vec<Outlet>,
    destinations: Destinations,
    leases: Option<Leases>,
    lease_fingerprint: u64,
}

/// How long tasks may take to stop.
const GRACE: Duration = Duration::from_millis(500);

/// The result of applying another configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// New sources.
    pub added: Vec<String>,
    /// Sources whose settings or tags changed. They were restarted.
    pub changed: Vec<String>,
    /// Removed sources.
    pub removed: Vec<String>,
    /// Destinations. Changed ones were restarted.
    pub destinations: Changes,
    /// Queues that no destination uses any more. They stay on disk.
    pub left: Vec<LeftQueue>,
    /// Sections that take effect only after a restart.
    pub waiting: Vec<&'static str>,
    /// Tags of running sources without a node, and why: their name was taken by another node in the meantime.
    pub failed: Vec<String>,
}

impl Applied {
    /// Whether any source, tag or destination has changed.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.has_changed_sources() || !self.destinations.is_empty()
    }

    /// Whether any source or tag has changed.
    #[must_use]
    pub fn has_changed_sources(&self) -> bool {
        !(self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty())
    }
}

impl Gateway {
    /// The sources, for display.
    #[must_use]
    pub fn sources(&self) -> Sources {
        self.sources.clone()
    }

    /// The destinations, for display.
    #[must_use]
    pub fn destinations(&self) -> Destinations {
        self.destinations.clone()
    }

    fn show(&self) {
        let listed = |it: &Running| Listed {
            description: it.description.clone(),
            adds: it.adds,
            feed: it.feed.clone(),
        };
        let all = self.running.iter().map(listed).collect();
        *self.sources.0.write().unwrap_or_else(PoisonError::into_inner) = all;
        let all = self.outlets.iter().map(|it| it.destination.clone()).collect();
        *self.destinations.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// What applying another configuration would change.
    fn compare(&self, config: &GatewayConfig) -> Applied {
        let mut applied = Applied {
            destinations: outlets::compare(&self.outlets, &config.destinations),
            ..Applied::default()
        };
        for source in &config.sources {
            let name = &source.settings.name;
            match self.running.iter().find(|it| it.feed.settings().name == *name) {
                None => applied.added.push(name.clone()),
                Some(it) if it.fingerprint != source.fingerprint => applied.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        for it in &self.running {
            let name = &it.feed.settings().name;
            if !config.sources.iter().any(|source| source.settings.name == *name) {
                applied.removed.push(name.clone());
            }
        }
        let is_other_place = !config.sources.is_empty() && config.namespace != self.namespace;
        if is_other_place || config.threads != self.threads {
            applied.waiting.push("gateway");
        }
        if config.lease_fingerprint != self.lease_fingerprint {
            applied.waiting.push("lease");
        }
        applied
    }

    /// Checks whether a configuration can be applied.
    ///
    /// # Errors
    /// The name of a tag is taken by a node that does not belong to the changed sources, or the queue of a new destination cannot be
    /// used.
    pub fn check(&self, config: &GatewayConfig) -> Result<(), GatewayError> {
        let Applied { added, changed, removed, .. } = self.compare(config);
        let going: HashSet<String> = changed.iter().chain(&removed).cloned().collect();
        for source in &config.sources {
            let name = &source.settings.name;
            if !added.contains(name) && !changed.contains(name) {
                continue;
            }
            for (tag, _) in variables(&source.tags) {
                self.plant.check(tag, &going).map_err(|error| failed(tag, error))?;
            }
        }
        Ok(outlets::check(&self.outlets, &config.destinations)?)
    }

    /// Applies another configuration. Unchanged sources and destinations keep running. A changed destination keeps its queue, and
    /// receives the current values of its tags first. Of changed sources, variables that look the same to clients
    /// stay, with their values and monitored items; the others are deleted and added again. Call it on a thread that may block.
    ///
    /// # Errors
    /// As [`Self::check`], or a node cannot be added. Nothing has changed then.
    pub fn apply(&mut self, config: GatewayConfig) -> Result<Applied, GatewayError> {
        self.check(&config)?;
        let mut applied = self.compare(&config);
        let Some(runtime) = self.runtime.as_ref().filter(|_| applied.has_changes()) else {
            return Ok(applied);
        };
        let changes: HashSet<String> =
            applied.changed.iter().chain(&applied.removed).chain(&applied.added).cloned().collect();
        let order: Vec<String> = config.sources.iter().map(|source| source.settings.name.clone()).collect();
        let coming: Vec<SourceConfig> =
            config.sources.into_iter().filter(|source| changes.contains(&source.settings.name)).collect();
        let wanted = self.stage(&coming)?;
        let replacement = match Replacement::open(&self.outlets, config.destinations) {
            Ok(replacement) => replacement,
            Err(error) => {
                self.plant.unstage();
                return Err(error.into());
            }
        };
        // Everything that can fail as a whole has been checked: from here on the configuration is applied.
        let (going, mut running): (Vec<Running>, Vec<Running>) = core::mem::take(&mut self.running)
            .into_iter()
            .partition(|it| changes.contains(&it.feed.settings().name));
        stop(runtime, &going);
        for it in &going {
            let settings = it.feed.settings();
            let is_removed = applied.removed.contains(&settings.name);
            if is_removed {
                self.plant.forget(&settings.name);
            }
            let grace = if is_removed { Duration::ZERO } else { settings.lost_after };
            self.plant.sweep(&settings.name, grace, &wanted);
        }
        if !applied.destinations.is_empty() {
            applied.left = replacement.apply(&mut self.outlets, runtime, &self.plant, GRACE, |taps| {
                running.iter().for_each(|it| it.feed.tap_into(taps));
            });
        }
        let taps: Vec<_> = self.outlets.iter().map(|it| it.destination.tap()).collect();
        for source in coming {
            let (prepared, failures) = prepare_all(source, &self.plant, &taps);
            for error in failures {
                prepared.feed.failed(&Fault::other("configuration", &error));
                applied.failed.push(error.to_string());
            }
            running.push(run(runtime, prepared, self.leases.as_ref()));
        }
        self.plant.sweep_types();
        let now = taktwerk_net::clock::wall();
        going.iter().for_each(|it| self.plant.age(&it.feed.settings().name, now));
        running.sort_by_key(|it| order.iter().position(|name| *name == it.feed.settings().name));
        self.running = running;
        self.show();
        Ok(applied)
    }

    /// Adds the nodes of sources that do not run yet, next to the existing ones. Returns the shape of all their variables.
    fn stage(&self, coming: &[SourceConfig]) -> Result<Wanted, GatewayError> {
        let mut wanted = Wanted::default();
        for source in coming {
            let (name, every) = (Arc::from(source.settings.name.as_str()), source.settings.interval);
            for (tag, kind) in variables(&source.tags) {
                let kind = tag.kind_for(kind);
                if let Err(error) = self.plant.stage(&name, tag, kind, every) {
                    self.plant.unstage();
                    return Err(failed(tag, error));
                }
                wanted.add(tag, kind, every);
            }
        }
        Ok(wanted)
    }
}

/// Stops the tasks of sources, so that they store nothing any more.
fn stop(runtime: &Runtime, going: &[Running]) {
    going.iter().flat_map(|it| &it.tasks).for_each(JoinHandle::abort);
    let has_ended = || going.iter().flat_map(|it| &it.tasks).all(JoinHandle::is_finished);
    let wait = async {
        while !has_ended() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // A task that does not stop in time cannot store anything: its feed is closed.
    let _ = runtime.block_on(async { tokio::time::timeout(GRACE, wait).await });
    going.iter().for_each(|it| it.feed.close());
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // On a separate thread, because a runtime must not be waited for within another one.
        let end = std::thread::Builder::new().name("gateway-end".to_owned());
        if let Ok(thread) = end.spawn(move || runtime.shutdown_timeout(GRACE)) {
            // Its result does not matter.
            let _ = thread.join();
        }
        for outlet in &self.outlets {
            let rest = outlet.destination.flush();
            outlet.destination.lose(&rest);
        }
    }
}

/// Read access to the sources of a running gateway. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Sources(Arc<RwLock<Vec<Listed>>>);

/// A source for display.
#[derive(Debug, Clone)]
struct Listed {
    description: String,
    adds: Option<&'static str>,
    feed: Feed,
}

/// Read access to the destinations of a running gateway. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Destinations(Arc<RwLock<Vec<Destination>>>);

impl Destinations {
    /// The current state of all destinations.
    #[must_use]
    pub fn views(&self) -> Vec<DestinationView> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().map(Destination::view).collect()
    }

    /// Writes collected values to the queues, for a process that ends while the [`Gateway`] cannot be dropped. Blocks.
    pub fn flush(&self) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().for_each(Destination::write);
    }
}

/// The current state of a source.
#[derive(Debug, Clone)]
pub struct SourceView {
    /// Its name.
    pub name: String,
    /// Its kind and target.
    pub description: String,
    /// The number of its variables.
    pub tags: usize,
    /// What it adds to them when it is connected, if it does.
    pub adds: Option<&'static str>,
    /// Its counters.
    pub statistics: Snapshot,
}

impl Sources {
    /// The current state of all sources.
    #[must_use]
    pub fn views(&self) -> Vec<SourceView> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let views = all.iter().map(|Listed { description, adds, feed }| SourceView {
            name: feed.settings().name.clone(),
            description: description.clone(),
            tags: feed.len(),
            adds: *adds,
            statistics: feed.statistics().snapshot(),
        });
        views.collect()
    }
}
