//! One connection to another server, with one subscription for all tags.

use super::OpcUa;
use super::budget::Budget;
use super::explore::{Explored, Explorer, explored};
use super::follow::{self, Known, ModelChanges, Watched};
use super::methods;
use super::mirror::Found;
use super::notices::{Items, Place};
use super::own::OwnFields;
use super::passage::{Ending, RemoteHistory};
use super::redundancy;
use super::relations;
use super::translation::Translation;
use super::updates::take;
use crate::catalogue::Form;
use crate::fault::Fault;
use crate::feed::{Feed, Reading, Write, Writes};
use crate::opcua::{address, kind_of};
use crate::settings::SourceSettings;
use crate::statistics::Count;
use crate::tag::{Access, Model, Scaling, Tag};
use crate::value::Kind;
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use taktwerk::Client;
use taktwerk::client::{Attribute, Error, ToNodeId, Update};
use taktwerk_client::{Event, SubscriptionEvent};
use taktwerk_server::history::NodeHistory;
use taktwerk_types::{BuiltInType, DataValue, NodeId, StatusCode, UaString, Variant};
use tokio::time::timeout;

/// Interval for checking operators' actions.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most changes stored together.
const BATCH_MAX: usize = 4096;

pub(super) async fn run(server: &mut OpcUa, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
    let deadline = feed.settings().deadline;
    // Of several redundant servers the next one is tried immediately, until all have failed.
    let mut failed = 0;
    let steady = redundancy::steady(server.publishing_interval, feed.settings().retry);
    loop {
        let target = server.remote.target().to_owned();
        let fault = match timeout(deadline, connect(server, feed.settings())).await {
            Err(_) => Fault::ConnectTimeout { target, after: deadline },
            Ok(Err(fault)) => fault,
            Ok(Ok(client)) => {
                let mut served_since = None;
                let ending = Ending::new(&server.passage, &client, deadline);
                let outcome = serve(server, &client, feed, writes, &target, &mut served_since).await;
                drop(ending);
                server.remote.turn();
                if served_since.is_some_and(|since| since.elapsed() >= steady) {
                    failed = 0;
                }
                match outcome {
                    Ok(()) => Fault::Closed { target },
                    Err(fault) => fault,
                }
            }
        };
        failed += 1;
        if failed >= server.remote.count() {
            return Err(fault);
        }
        feed.faltered(&fault);
    }
}

pub(super) async fn connect(server: &OpcUa, settings: &SourceSettings) -> Result<Client, Fault> {
    server.remote.connect(&format!("gateway source {}", settings.name), settings.deadline).await
}

/// The mapping between local variables and remote nodes, and the monitored items.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) nodes: HashMap<usize, NodeId>,
    pub(super) translation: Translation,
}

impl Links {
    /// The nodes in the order of their variables. Servers walk through items in the order of their creation, and their variables
    /// usually lie in memory in the order of the address space: any other order costs them far more time per value.
    pub(super) fn in_order(&self) -> Vec<(usize, NodeId)> {
        let mut all: Vec<_> = self.nodes.iter().map(|(at, node)| (*at, node.clone())).collect();
        all.sort_unstable_by_key(|(at, _)| *at);
        all
    }
}

async fn serve(
    server: &mut OpcUa,
    client: &Client,
    feed: &Feed,
    writes: &mut Writes,
    target: &str,
    served_since: &mut Option<Instant>,
) -> Result<(), Fault> {
    let fail = |error: Error| Fault::other(target, error);
    let mut links = link(server, client, feed, target, None).await?;
    let interval = server.publishing_interval;
    // Frequent keep-alives detect a server that hangs even if no values change.
    let keep_alive = (2000.0 / (interval.as_secs_f64() * 1e3)).ceil().max(1.0) as u32;
    let options = taktwerk::client::SubscriptionOptions::every(interval).keep_alive_count(keep_alive);
    let mut events = client.events();
    let is_redundant = server.remote.count() > 1;
    let mut current = match is_redundant {
        true => redundancy::current(client, &links, target).await?,
        false => Vec::new(),
    };
    let subscription = client.subscribe(options).await.map_err(fail)?;
    let (handle, mut updates) = subscription.split();
    let mut watched = Watched::default();
    watched.add(server, &handle, &links.in_order(), (feed, target)).await?;
    let mut changes = ModelChanges::subscribe(server, &handle).await.map_err(fail)?;
    let passes_events = server.events && !server.mirrors.is_empty();
    let mut items = match passes_events {
        true => {
            let own = OwnFields::of(feed.plant(), &feed.settings().name, &links.translation);
            server.notices.subscribe(&handle, own).await.map_err(fail)?
        }
        false => Items::default(),
    };
    // Only now: a server that answers but rejects the subscription gives no values.
    server.passage.open(client, Arc::new(links.translation.clone()));
    feed.connected();
    *served_since = Some(Instant::now());
    // A value that the server does not monitor would seem current for ever.
    let refused = watched.refused();
    current.retain(|(position, _)| !refused.contains(position));
    if !current.is_empty() {
        feed.deliver(current);
    }
    let alarms = feed.plant().alarms();
    alarms.found(&feed.settings().name);
    if !passes_events {
        alarms.end(&feed.settings().name);
    }
    // Once at the beginning, then whenever events were lost.
    let mut is_refresh_wanted = passes_events;
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Concurrently, because a request that waits for a server that hangs must not delay the switch.
    let probing = redundancy::probe(is_redundant, client, interval, target);
    // Beside the values: it takes many requests.
    let mut exploring = None;
    let serving = async {
        loop {
            if core::mem::take(&mut is_refresh_wanted) {
                server.notices.refresh(client, &handle, (feed, &links.translation)).await.map_err(fail)?;
            }
            tokio::select! {
                _ = look.tick(), if passes_events => server.notices.pass_on(client, feed, target).await.map_err(fail)?,
                write = writes.next() => {
                    let mut all = vec![write];
                    while let Some(write) = writes.try_next() {
                        all.push(write);
                    }
                    carry_out(client, &links, feed, all, target).await?;
                }
                update = updates.next() => {
                    let Some(update) = update else { return Err(Fault::Closed { target: target.to_owned() }) };
                    let mut readings = Vec::new();
                    let mut happened = Vec::new();
                    let mut next = Some(update);
                    // Process further updates of the same message.
                    while let Some(update) = next.take() {
                        match &update {
                            Update::State(SubscriptionEvent::DataLost { .. }) | Update::Lagged(_) => {
                                is_refresh_wanted |= passes_events;
                                changes.happened();
                            }
                            Update::Change(change)
                                if change.value.status() == StatusCode::BAD_NODE_ID_UNKNOWN
                                    && !server.mirrors.is_empty()
                                    && watched.lost(change.item) =>
                            {
                                changes.suspected();
                            }
                            _ => {}
                        }
                        match update {
                            Update::Event(item, _) if changes.is_of(item) => changes.happened(),
                            Update::Event(item, fields) => happened.push((item, fields)),
                            update => {
                                take(update, &watched.positions, &links.translation, &mut readings, feed, target)?;
                            }
                        }
                        if readings.len() + happened.len() < BATCH_MAX {
                            use futures_util::FutureExt;
                            next = updates.next().now_or_never().flatten();
                        }
                    }
                    if !readings.is_empty() {
                        feed.deliver(readings);
                    }
                    for (item, fields) in happened {
                        let taken = server.notices.take(items, item, &fields, client, (feed, &links.translation)).await;
                        is_refresh_wanted |= taken.map_err(fail)?;
                    }
                    if server.notices.has_unknown() {
                        let budget = Budget::new(server.limits.0, server.limits.1);
                        let at = (feed, &mut links.translation);
                        let learnt = server.notices.learn(&mut items, client, &handle, at, (target, budget)).await;
                        is_refresh_wanted |= learnt.map_err(fail)?;
                        server.passage.open(client, Arc::new(links.translation.clone()));
                    }
                }
                () = changes.due(), if exploring.is_none() => {
                    changes.begin();
                    exploring = Some(Box::pin(Explorer::of(server).explore(client, feed, target)));
                }
                found = explored(&mut exploring) => {
                    exploring = None;
                    let found = found?;
                    // Positions change their meaning.
                    let pending: Vec<Write> = core::iter::from_fn(|| writes.try_next()).collect();
                    carry_out(client, &links, feed, pending, target).await?;
                    let begin = found.begin;
                    let newer = link(server, client, feed, target, Some(found)).await?;
                    watched.change(server, &handle, (&links, &newer), (feed, target)).await?;
                    links = newer;
                    changes.browsed_since(begin);
                    server.passage.open(client, Arc::new(links.translation.clone()));
                    is_refresh_wanted |= passes_events;
                }
                event = next(&mut events) => match event {
                    Some(Event::ConnectionLost { error, .. }) => return Err(Fault::other(target, error)),
                    Some(Event::Disconnected(Some(error))) => return Err(Fault::other(target, error)),
                    Some(Event::Disconnected(None)) | None => return Err(Fault::Closed { target: target.to_owned() }),
                    Some(_) => {}
                },
            }
        }
    };
    tokio::select! {
        outcome = serving => outcome,
        fault = probing => Err(fault),
    }
}

async fn next(events: &mut Option<taktwerk_net::client::ClientEvents>) -> Option<Event> {
    match events {
        Some(events) => events.next().await,
        None => core::future::pending().await,
    }
}

/// Resolves the nodes, and adds variables for new ones. Variables whose nodes this server does not have are removed, or become bad
/// if it was not browsed completely. `found` are its nodes if they have changed and were explored already.
async fn link(
    server: &mut OpcUa,
    client: &Client,
    feed: &Feed,
    target: &str,
    found: Option<Explored<'_>>,
) -> Result<Links, Fault> {
    let links = find(server, client, feed, target, found).await?;
    let gone: Vec<_> = missing(&server.known, &links)
        .map(|position| (position, Reading::bad(StatusCode::BAD_NODE_ID_UNKNOWN)))
        .collect();
    if !gone.is_empty() {
        feed.failed(&Fault::other(target, format!("{} nodes no longer exist", gone.len())));
        feed.deliver(gone);
    }
    Ok(links)
}

/// Previously discovered variables without a node on this connection.
fn missing(known: &HashMap<String, Known>, links: &Links) -> impl Iterator<Item = usize> {
    known.values().map(|known| known.position).filter(|position| !links.nodes.contains_key(position))
}

async fn find(
    server: &mut OpcUa,
    client: &Client,
    feed: &Feed,
    target: &str,
    found: Option<Explored<'_>>,
) -> Result<Links, Fault> {
    let fail = |error: Error| Fault::other(target, error);
    let namespaces = client.namespaces();
    let mut links = Links::default();
    // A namespace that is missing now may exist on the next connection.
    let mut untyped: Vec<(usize, NodeId)> = Vec::new();
    for (index, (tag, node, position)) in server.tags.iter().enumerate() {
        match (node.to_node_id(&namespaces), position) {
            (Ok(node), Some(position)) => {
                links.nodes.insert(*position, node);
            }
            (Ok(node), None) => untyped.push((index, node)),
            (Err(error), position) => {
                feed.failed(&Fault::other(target, format!("tag {}: {error}", tag.name)));
                if let Some(position) = position {
                    feed.deliver([(*position, Reading::bad(StatusCode::BAD_NODE_ID_UNKNOWN))]);
                }
            }
        }
    }
    let wanted: Vec<_> = untyped
        .iter()
        .flat_map(|(_, node)| [(node.clone(), Attribute::DataType), (node.clone(), Attribute::Value)])
        .collect();
    let values = if wanted.is_empty() { Vec::new() } else { client.read_many(wanted).await.map_err(fail)? };
    for ((index, node), values) in untyped.into_iter().zip(values.chunks(2)) {
        let [data_type, value] = values else { continue };
        let data_type = match &data_type.value {
            Some(Variant::NodeId(id)) => (**id).clone(),
            _ => NodeId::NULL,
        };
        let Some((tag, text, position)) = server.tags.get_mut(index) else { continue };
        let Some(kind) = kind_of(&data_type, value.value.as_ref()) else {
            let reason = format!("tag {}: {text} has no value of a built-in type; set `type`", tag.name);
            feed.failed(&Fault::other(target, reason));
            continue;
        };
        match feed.add(tag, kind) {
            Ok(at) => {
                *position = Some(at);
                links.nodes.insert(at, node);
            }
            Err(error) => feed.failed(&Fault::other(target, format!("tag {}: {error}", tag.name))),
        }
    }
    // Redundant servers have the same nodes.
    if server.remote.count() > 1 && !server.known.is_empty() && found.is_none() {
        for (node, known) in &server.known {
            if let Ok(node) = node.to_node_id(&namespaces) {
                links.nodes.insert(known.position, node);
            }
        }
        links.translation = Translation::new(&namespaces, feed.plant()).with_structures(feed.plant());
        return Ok(links);
    }
    server.notices.begin_places();
    let before = server.known.len();
    let mut used = HashSet::new();
    let found = match found {
        Some(found) => found,
        None => Explorer::of(server).explore(client, feed, target).await?,
    };
    let Explored { trees, is_complete, incomplete, learning, .. } = found;
    // Before new nodes are added: they may have the names of old ones.
    let released = match is_complete {
        true => follow::release(server, feed, &trees, &namespaces),
        false => HashSet::new(),
    };
    for found in trees {
        links.translation = Translation::new(&namespaces, feed.plant()).with_structures(feed.plant());
        used.extend(found.types().filter_map(|kind| links.translation.here(&kind)));
        used.extend(feed.plant().alarms().types_of(&feed.settings().name));
        let own = feed.settings().name.clone();
        let local =
            |path: &[String]| -> Vec<String> { core::iter::once(&own).chain(path).cloned().collect() };
        for object in &found.objects {
            let place = Place { path: local(&object.path), is_object: true };
            feed.plant()
                .model_folder(&place.path, links.translation.model(feed.plant(), &object.nature, None));
            server.notices.place(address(&object.node, &namespaces), place);
        }
        for variable in &found.variables {
            let place = Place { path: local(&variable.path), is_object: false };
            server.notices.place(address(&variable.node, &namespaces), place);
        }
        let path = |path: &[String]| local(path).join("/");
        let objects = found.objects.iter().map(|it| (it.node.clone(), path(&it.path)));
        let variables = found.variables.iter().map(|it| (it.node.clone(), path(&it.path)));
        let paths: HashMap<NodeId, String> = objects.chain(variables).collect();
        add(server, feed, &namespaces, found.variables, &mut links, target);
        if server.methods {
            methods::add(
                server,
                feed,
                &links.translation,
                found.methods,
                &found.bases,
                (&namespaces, target),
            );
        }
        relations::add(&found.links, &paths, feed.plant(), &links.translation);
    }
    if server.known.len() != before {
        let (source, variables) = (feed.settings().name.as_str(), server.known.len());
        tracing::info!(source, variables, "mirrors another server");
    }
    feed.plant().delete_released(&released);
    feed.plant().catalogue().use_types(&feed.settings().name, used);
    drop(learning);
    feed.statistics().set_incomplete(incomplete);
    let plant = Arc::clone(feed.plant());
    // Its result does not matter, so it is not awaited.
    drop(tokio::task::spawn_blocking(move || plant.sweep_types()));
    Ok(links)
}

fn add(
    server: &mut OpcUa,
    feed: &Feed,
    namespaces: &[UaString],
    found: Vec<Found>,
    links: &mut Links,
    target: &str,
) {
    for variable in found {
        let key = address(&variable.node, namespaces);
        if let Some(known) = server.known.get(&key) {
            links.nodes.insert(known.position, variable.node);
            continue;
        }
        if feed.len() >= feed.settings().nodes_max {
            feed.statistics().add(Count::Dropped, 1);
            continue;
        }
        let mut tag = tag_of(feed, &variable, server.writable);
        tag.model = links.translation.model(feed.plant(), &variable.nature, Some(&variable.data_type));
        let form = tag.model.data_type.as_ref().and_then(|kind| feed.plant().catalogue().form(kind));
        let kind = match (variable.kind, form) {
            (Some(kind), _) => kind,
            (None, Some(Form::Structure { is_portable: true })) => {
                Kind { element: BuiltInType::ExtensionObject, is_array: variable.is_array }
            }
            // Its values have a meaning only on their own server.
            (None, _) => continue,
        };
        match feed.add(&tag, kind) {
            Ok(position) => {
                if variable.has_history && kind.element != BuiltInType::ExtensionObject {
                    let store = RemoteHistory::new(&server.passage, feed.settings().deadline);
                    let mut history =
                        NodeHistory::new(Arc::new(store), RemoteHistory::key(&variable.node, namespaces));
                    history.stepped = !matches!(kind.element, BuiltInType::Float | BuiltInType::Double);
                    if let Err(error) = feed.plant().keep_history(&tag.full_name(), history) {
                        feed.failed(&Fault::other(target, format!("history of {}: {error}", tag.name)));
                    }
                }
                server.known.insert(key, Known::new(position, variable.path, variable.kind));
                links.nodes.insert(position, variable.node);
            }
            // Nodes of different namespaces may have the same name.
            Err(error) => {
                feed.statistics().add(Count::Dropped, 1);
                feed.failed(&Fault::other(target, format!("{}: {error}", variable.path.join("/"))));
            }
        }
    }
}

/// The tag for a discovered variable, below a folder with the name of the source.
fn tag_of(feed: &Feed, found: &Found, may_write: bool) -> Tag {
    let source = feed.settings().name.clone();
    let (name, folders) = match found.path.split_last() {
        Some((name, folders)) => (name.clone(), folders),
        None => ("Value".to_owned(), &[][..]),
    };
    let path = core::iter::once(source.clone()).chain(folders.iter().cloned()).collect();
    Tag {
        source,
        name,
        path,
        description: found.description.clone(),
        kind: None,
        scaling: Scaling::IDENTITY,
        units: found.units.clone(),
        range: found.range,
        states: Vec::new(),
        deadband: 0.0,
        access: if may_write && found.is_writable { Access::ReadWrite } else { Access::Read },
        historize: false,
        expect_every: None,
        stale_after: None,
        lost_after: None,
        roles: Default::default(),
        alarm: None,
        model: Model::default(),
    }
}

/// Counts writes as failed if they are dropped without an answer, because the gateway switches to another server.
struct Pending<'a> {
    feed: &'a Feed,
    count: usize,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.feed.statistics().add(Count::WriteErrors, self.count);
    }
}

/// Forwards writes.
async fn carry_out(
    client: &Client,
    links: &Links,
    feed: &Feed,
    writes: Vec<Write>,
    target: &str,
) -> Result<(), Fault> {
    let total = writes.len();
    let values: Vec<(NodeId, DataValue)> = writes
        .into_iter()
        .filter_map(|write| {
            let value = links.translation.value_there(write.value)?;
            Some((links.nodes.get(&write.position)?.clone(), DataValue::new(value)))
        })
        .collect();
    feed.statistics().add(Count::WriteErrors, total - values.len());
    if values.is_empty() {
        return Ok(());
    }
    let count = values.len();
    let mut pending = Pending { feed, count };
    let outcome = client.write_many(values).await;
    pending.count = 0;
    match outcome {
        Ok(results) => {
            let refused: Vec<&StatusCode> = results.iter().filter(|status| status.is_bad()).collect();
            if let Some(status) = refused.first() {
                feed.failed(&Fault::other(target, format!("a write was refused: {status}")));
            }
            feed.statistics().add(Count::WriteErrors, refused.len());
            feed.statistics().add(Count::Writes, count - refused.len());
            Ok(())
        }
        Err(error) => {
            feed.statistics().add(Count::WriteErrors, count);
            Err(Fault::other(target, error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_created_in_the_order_of_the_variables() {
        let nodes = (0..100).rev().map(|at| (at, NodeId::numeric(1, at as u32))).collect();
        let ordered = Links { nodes, ..Links::default() }.in_order();
        assert!(ordered.iter().map(|(at, _)| *at).eq(0..100), "{ordered:?}");
    }

    #[test]
    fn variables_without_a_node_on_this_server_are_found() {
        let known = |position| Known::new(position, Vec::new(), None);
        let known =
            HashMap::from([("nsu=urn:a;i=1".to_owned(), known(0)), ("nsu=urn:b;i=1".to_owned(), known(1))]);
        let links = Links { nodes: HashMap::from([(0, NodeId::numeric(1, 1))]), ..Links::default() };
        assert_eq!(missing(&known, &links).collect::<Vec<_>>(), [1]);
    }
}
