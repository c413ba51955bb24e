//! Mirrors follow their server: they are browsed again after model changes, and variables without a node are removed.
//!
//! A server reports changes of nodes with a NodeVersion (Part 3 §9.32). Changes of others are found with the next connection.

use super::OpcUa;
use super::mirror::Subtree;
use super::notices::known;
use super::session::Links;
use crate::fault::Fault;
use crate::feed::{Feed, Reading};
use crate::opcua::address;
use crate::statistics::Count;
use crate::value::Kind;
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use taktwerk::client::{Error, Item, SubscriptionHandle};
use taktwerk_client::EventQuery;
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_types::{NodeId, StatusCode, UaString};
use tokio::time::{Instant, sleep_until};

/// Most items created per request.
const ITEMS_MAX: usize = 1000;
/// Pause before browsing, so that it covers the changes of several requests.
const SETTLE: Duration = Duration::from_millis(300);
/// Browsing takes at most one part in so many of the time.
const SHARE: u32 = 10;
/// Least pause after browsing if only a single item reports that its node is unknown. Some servers report that for nodes that exist.
const DOUBTFUL: Duration = Duration::from_secs(30);
/// Most nodes named in a message.
const NAMED_MAX: usize = 5;

/// A discovered variable.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) position: usize,
    path: Vec<String>,
    kind: Option<Kind>,
}

impl Known {
    pub(super) fn new(position: usize, path: Vec<String>, kind: Option<Kind>) -> Self {
        Self { position, path, kind }
    }
}

/// Releases the variables and methods that the server no longer has, or has elsewhere or with another type. Returns their names:
/// nodes of these names that are not taken over must be deleted.
pub(super) fn release(
    server: &mut OpcUa,
    feed: &Feed,
    found: &[Subtree],
    namespaces: &[UaString],
) -> HashSet<String> {
    let variables = || found.iter().flat_map(|tree| &tree.variables);
    let mut now: HashMap<String, (&Vec<String>, Option<Kind>)> = HashMap::new();
    for it in variables() {
        // A node below two mirrors is a variable of the first.
        now.entry(address(&it.node, namespaces)).or_insert((&it.path, it.kind));
    }
    let paths: HashSet<&Vec<String>> = variables().map(|it| &it.path).collect();
    let (mut released, mut gone) = (HashSet::new(), Vec::new());
    server.known.retain(|key, known| {
        if now.get(key) == Some(&(&known.path, known.kind)) {
            return true;
        }
        // A variable that another node of this name takes over keeps its value until the first one arrives.
        let is_gone = !paths.contains(&known.path);
        let last = is_gone.then(|| Reading::bad(StatusCode::BAD_NODE_ID_UNKNOWN));
        if let Some(name) = feed.release(known.position, last) {
            if is_gone {
                gone.push(name.clone());
            }
            released.insert(name);
        }
        false
    });
    let methods = found.iter().flat_map(|tree| &tree.methods);
    let methods: HashSet<(String, String)> =
        methods.map(|it| (address(&it.object, namespaces), address(&it.node, namespaces))).collect();
    server.known_methods.retain(|key, name| {
        let stays = methods.contains(key);
        if !stays {
            feed.plant().release_one(name);
            gone.push(name.clone());
            released.insert(name.clone());
        }
        stays
    });
    if !gone.is_empty() {
        gone.sort_unstable();
        let more = if gone.len() > NAMED_MAX { ", …" } else { "" };
        let nodes = gone.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ") + more;
        let (source, count) = (feed.settings().name.as_str(), gone.len());
        tracing::warn!(source, count, nodes, "the server no longer has some nodes; the mirror drops them");
    }
    released
}

/// The model changes of a server, and when its mirrors are browsed again.
#[derive(Debug)]
pub(super) struct ModelChanges {
    item: Option<u32>,
    browsed: Instant,
    earliest: Instant,
    due: Option<Instant>,
}

impl ModelChanges {
    /// Monitors the model changes of a server with mirrors. A server need not report them.
    pub(super) async fn subscribe(server: &OpcUa, subscription: &SubscriptionHandle) -> Result<Self, Error> {
        let now = Instant::now();
        let mut changes = Self { item: None, browsed: now, earliest: now, due: None };
        let kind = NodeId::numeric(0, object_type_ids::BASE_MODEL_CHANGE_EVENT_TYPE);
        if let (false, Ok(query)) =
            (server.mirrors.is_empty(), EventQuery::new().select("EventType").of_type(kind, ""))
        {
            let item = Item::events(NodeId::numeric(0, object_ids::SERVER), query);
            changes.item = known(subscription.monitor_item(item).await)?;
        }
        Ok(changes)
    }

    /// Whether an item reports model changes.
    pub(super) fn is_of(&self, item: u32) -> bool {
        self.item == Some(item)
    }

    /// The nodes may have changed.
    pub(super) fn happened(&mut self) {
        if self.item.is_some() {
            self.at((Instant::now() + SETTLE).max(self.earliest));
        }
    }

    /// An item reports that its node is unknown.
    pub(super) fn suspected(&mut self) {
        self.at((Instant::now() + SETTLE).max(self.earliest).max(self.browsed + DOUBTFUL));
    }

    fn at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Waits until the mirrors must be browsed.
    pub(super) async fn due(&self) {
        match self.due {
            Some(at) => sleep_until(at).await,
            None => core::future::pending().await,
        }
    }

    /// The mirrors are being browsed from now on. Later changes are due afterwards.
    pub(super) fn begin(&mut self) {
        self.due = None;
    }

    /// The mirrors have been browsed since this time.
    pub(super) fn browsed_since(&mut self, begin: Instant) {
        self.browsed = Instant::now();
        self.earliest = self.browsed + (self.browsed - begin) * SHARE;
        self.due = self.due.map(|due| due.max(self.earliest));
    }
}

/// The monitored items of a connection.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// The variable of each item.
    pub(super) positions: HashMap<u32, usize>,
    /// Items whose node is unknown.
    dead: HashSet<u32>,
}

impl Watched {
    /// An item reports that its node is unknown. Whether it is a variable of a mirror's.
    pub(super) fn lost(&mut self, item: u32) -> bool {
        self.positions.contains_key(&item) && self.dead.insert(item)
    }

    /// The variables whose nodes the server does not monitor.
    pub(super) fn refused(&self) -> HashSet<usize> {
        self.dead.iter().filter_map(|item| self.positions.get(item)).copied().collect()
    }

    /// Monitors nodes. `at` are the source and its target.
    pub(super) async fn add(
        &mut self,
        server: &OpcUa,
        subscription: &SubscriptionHandle,
        wanted: &[(usize, NodeId)],
        (feed, target): (&Feed, &str),
    ) -> Result<(), Fault> {
        for part in wanted.chunks(ITEMS_MAX) {
            let item = |(_, node): &(usize, NodeId)| {
                let item = Item::new(node.clone()).queue(server.queue_size);
                match server.sampling_interval {
                    Some(sampling) => item.sampling(sampling),
                    None => item,
                }
            };
            let results = subscription.monitor_many(part.iter().map(item)).await;
            let results = results.map_err(|error| Fault::other(target, error))?;
            feed.statistics().add(Count::Requests, 1);
            let mut refused = Vec::new();
            for ((position, _), (number, status)) in part.iter().zip(results) {
                self.positions.insert(number, *position);
                if status.is_bad() {
                    refused.push((*position, Reading::bad(status)));
                    self.dead.insert(number);
                }
            }
            if !refused.is_empty() {
                feed.failed(&Fault::other(target, format!("{} nodes cannot be monitored", refused.len())));
                feed.deliver(refused);
            }
        }
        Ok(())
    }

    /// Monitors the nodes of `newer` instead of those of `older`. Items of nodes in both continue, except those whose node was
    /// unknown in between.
    pub(super) async fn change(
        &mut self,
        server: &OpcUa,
        subscription: &SubscriptionHandle,
        (older, newer): (&Links, &Links),
        (feed, target): (&Feed, &str),
    ) -> Result<(), Fault> {
        let node = |links: &Links, position: &usize| links.nodes.get(position).cloned();
        let dead = core::mem::take(&mut self.dead);
        let mut ending = Vec::new();
        self.positions.retain(|item, position| {
            let stays = !dead.contains(item) && node(older, position) == node(newer, position);
            if !stays {
                ending.push(*item);
            }
            stays
        });
        if !ending.is_empty() {
            subscription.unmonitor(ending).await.map_err(|error| Fault::other(target, error))?;
        }
        let watched: HashSet<usize> = self.positions.values().copied().collect();
        let mut wanted = newer.in_order();
        wanted.retain(|(position, _)| !watched.contains(position));
        self.add(server, subscription, &wanted, (feed, target)).await
    }
}
