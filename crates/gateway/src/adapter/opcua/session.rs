//! One connection to another server, with one subscription for all tags.

use super::OpcUa;
use super::budget::Budget;
use super::methods;
use super::mirror::{self, Found};
use super::notices::{Items, Place};
use super::own::OwnFields;
use super::passage::{Ending, RemoteHistory};
use super::relations;
use super::translation::Translation;
use super::types;
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
use taktwerk::client::{Attribute, Error, Item, ToNodeId, Update};
use taktwerk_client::{Event, SubscriptionEvent};
use taktwerk_server::history::NodeHistory;
use taktwerk_types::{BuiltInType, DataValue, NodeId, StatusCode, UaString, Variant};
use tokio::time::timeout;

/// Items that are created in one request.
const ITEMS_MAX: usize = 1000;
/// How often what operators have done is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Changes that are stored together.
const BATCH_MAX: usize = 4096;

pub(super) async fn run(server: &mut OpcUa, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
    let deadline = feed.settings().deadline;
    // Of several servers that stand for each other the next one is tried at once, until all have failed.
    let mut failed = 0;
    loop {
        let target = server.remote.target().to_owned();
        let fault = match timeout(deadline, connect(server, feed.settings())).await {
            Err(_) => Fault::ConnectTimeout { target, after: deadline },
            Ok(Err(fault)) => fault,
            Ok(Ok(client)) => {
                let begin = Instant::now();
                let mut is_served = false;
                let ending = Ending::new(&server.passage, &client, deadline);
                let outcome = serve(server, &client, feed, writes, &target, &mut is_served).await;
                drop(ending);
                server.remote.turn();
                if is_served && begin.elapsed() > feed.settings().retry {
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

/// The variables of the gateway and the nodes of the other server, and what is monitored.
#[derive(Debug, Default)]
struct Links {
    nodes: HashMap<usize, NodeId>,
    translation: Translation,
}

async fn serve(
    server: &mut OpcUa,
    client: &Client,
    feed: &Feed,
    writes: &mut Writes,
    target: &str,
    is_served: &mut bool,
) -> Result<(), Fault> {
    let fail = |error: Error| Fault::other(target, error);
    let mut links = link(server, client, feed, target).await?;
    let interval = server.publishing_interval;
    // So that a server that hangs is noticed soon, also while nothing changes.
    let keep_alive = (2000.0 / (interval.as_secs_f64() * 1e3)).ceil().max(1.0) as u32;
    let options = taktwerk::client::SubscriptionOptions::every(interval).keep_alive_count(keep_alive);
    let mut events = client.events();
    let subscription = client.subscribe(options).await.map_err(fail)?;
    let mut positions: HashMap<u32, usize> = HashMap::new();
    let wanted: Vec<(usize, NodeId)> = links.nodes.iter().map(|(at, node)| (*at, node.clone())).collect();
    for part in wanted.chunks(ITEMS_MAX) {
        let item = |(_, node): &(usize, NodeId)| {
            let item = Item::new(node.clone());
            match server.sampling_interval {
                Some(sampling) => item.sampling(sampling),
                None => item,
            }
        };
        let results = subscription.monitor_many(part.iter().map(item)).await.map_err(fail)?;
        feed.statistics().add(Count::Requests, 1);
        let mut refused = Vec::new();
        for ((position, _), (number, status)) in part.iter().zip(results) {
            positions.insert(number, *position);
            if status.is_bad() {
                refused.push((*position, Reading::bad(status)));
            }
        }
        if !refused.is_empty() {
            feed.failed(&Fault::other(target, format!("{} nodes cannot be monitored", refused.len())));
            feed.deliver(refused);
        }
    }
    let passes_events = server.events && !server.mirrors.is_empty();
    let (handle, mut updates) = subscription.split();
    let mut items = match passes_events {
        true => {
            let own = OwnFields::of(feed.plant(), &feed.settings().name, &links.translation);
            server.notices.subscribe(&handle, own).await.map_err(fail)?
        }
        false => Items::default(),
    };
    // Not before: a server that answers but refuses a subscription gives no values.
    server.passage.open(client, Arc::new(links.translation.clone()));
    feed.connected();
    *is_served = true;
    let alarms = feed.plant().alarms();
    alarms.found(&feed.settings().name);
    if !passes_events {
        alarms.end(&feed.settings().name);
    }
    // Once for the beginning, then whenever events were lost.
    let mut is_refresh_wanted = passes_events;
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Servers that stand for each other are asked how they are: one that hangs has to be noticed within an interval.
    let is_redundant = server.remote.count() > 1;
    let mut probe = tokio::time::interval(interval / 2);
    probe.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        if core::mem::take(&mut is_refresh_wanted) {
            server.notices.refresh(client, &handle, (feed, &links.translation)).await.map_err(fail)?;
        }
        tokio::select! {
            _ = look.tick(), if passes_events => server.notices.pass_on(client, feed, target).await.map_err(fail)?,
            _ = probe.tick(), if is_redundant => ask(client, interval, target).await?,
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
                // What came with the same message is there already.
                while let Some(update) = next.take() {
                    match update {
                        Update::Event(item, fields) => happened.push((item, fields)),
                        Update::State(SubscriptionEvent::DataLost { .. }) | Update::Lagged(_) if passes_events => {
                            is_refresh_wanted = true;
                            take(update, &positions, &links.translation, &mut readings, feed, target)?;
                        }
                        update => take(update, &positions, &links.translation, &mut readings, feed, target)?,
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
            event = next(&mut events) => match event {
                Some(Event::ConnectionLost { error, .. }) => return Err(Fault::other(target, error)),
                Some(Event::Disconnected(Some(error))) => return Err(Fault::other(target, error)),
                Some(Event::Disconnected(None)) | None => return Err(Fault::Closed { target: target.to_owned() }),
                Some(_) => {}
            },
        }
    }
}

/// How long a server that hangs is waited for, as a share of the interval.
const PATIENCE: f64 = 0.75;

/// Asks a server whether it runs and has data (ServerStatus.State, ServiceLevel; Part 4 §6.6.2).
async fn ask(client: &Client, interval: Duration, target: &str) -> Result<(), Fault> {
    let wanted = [2259, 2267].map(|node| (NodeId::numeric(0, node), Attribute::Value));
    let after = interval.mul_f64(PATIENCE);
    let values = match timeout(after, client.read_many(wanted)).await {
        Err(_) => return Err(Fault::NoAnswer { target: target.to_owned(), after }),
        Ok(values) => values.map_err(|error| Fault::other(target, error))?,
    };
    let number = |at: usize| values.get(at)?.value.as_ref()?.as_f64();
    match (number(0), number(1)) {
        (Some(state), _) if state != 0.0 => {
            Err(Fault::other(target, format!("the server does not run (state {state})")))
        }
        // 0: maintenance; 1: no data.
        (_, Some(level)) if level < 2.0 => {
            Err(Fault::other(target, format!("the server has no data (service level {level})")))
        }
        _ => Ok(()),
    }
}

async fn next(events: &mut Option<taktwerk_net::client::ClientEvents>) -> Option<Event> {
    match events {
        Some(events) => events.next().await,
        None => core::future::pending().await,
    }
}

fn take(
    update: Update,
    positions: &HashMap<u32, usize>,
    translation: &Translation,
    readings: &mut Vec<(usize, Reading)>,
    feed: &Feed,
    target: &str,
) -> Result<(), Fault> {
    match update {
        Update::Change(change) => {
            if let Some(position) = positions.get(&change.item) {
                let time = change.value.source_timestamp;
                let mut reading = Reading::of(change.value).at(time);
                reading = match translation.value_here(reading.value) {
                    Some(value) => Reading { value, ..reading },
                    // A structure of a type that the gateway does not have.
                    None => Reading::bad(StatusCode::BAD_DATA_TYPE_ID_UNKNOWN).at(time),
                };
                readings.push((*position, reading));
            }
        }
        Update::Lagged(count) => feed.statistics().add(Count::Dropped, count),
        Update::State(event) => return end(event, target).map_or(Ok(()), Err),
        _ => {}
    }
    Ok(())
}

/// Why no values come after an event, if it is one that ends the subscription.
fn end(event: SubscriptionEvent, target: &str) -> Option<Fault> {
    match event {
        SubscriptionEvent::CreateFailed(error) => Some(Fault::other(target, error)),
        SubscriptionEvent::Ended(status) => {
            Some(Fault::other(target, format!("the subscription has ended: {status}")))
        }
        // The values would stay good for ever.
        SubscriptionEvent::Inactive => {
            Some(Fault::other(target, "nothing comes any more, not even a sign of life"))
        }
        _ => None,
    }
}

/// Finds the nodes, and adds variables for those that are new. Variables whose nodes this server does not have are bad.
async fn link(server: &mut OpcUa, client: &Client, feed: &Feed, target: &str) -> Result<Links, Fault> {
    let links = find(server, client, feed, target).await?;
    let gone: Vec<_> = missing(&server.known, &links)
        .map(|position| (position, Reading::bad(StatusCode::BAD_NODE_ID_UNKNOWN)))
        .collect();
    if !gone.is_empty() {
        feed.failed(&Fault::other(target, format!("{} nodes are not there any more", gone.len())));
        feed.deliver(gone);
    }
    Ok(links)
}

/// The variables that were found once and have no node on this connection.
fn missing(known: &HashMap<String, usize>, links: &Links) -> impl Iterator<Item = usize> {
    known.values().copied().filter(|position| !links.nodes.contains_key(position))
}

async fn find(server: &mut OpcUa, client: &Client, feed: &Feed, target: &str) -> Result<Links, Fault> {
    let fail = |error: Error| Fault::other(target, error);
    let namespaces = client.namespaces();
    let mut links = Links::default();
    // A namespace that the server does not have now may be there after the next connection.
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
            let reason =
                format!("tag {}: {text} has no value of a plain type; name one with `type`", tag.name);
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
    // Servers that stand for each other have the same nodes.
    if server.remote.count() > 1 && !server.known.is_empty() {
        for (node, position) in &server.known {
            if let Ok(node) = node.to_node_id(&namespaces) {
                links.nodes.insert(*position, node);
            }
        }
        links.translation = Translation::new(&namespaces, feed.plant()).with_structures(feed.plant());
        return Ok(links);
    }
    server.notices.begin_places();
    let learning = feed.plant().catalogue().learning();
    let mut used = HashSet::new();
    let mut budget = Budget::new(server.limits.0, server.limits.1);
    let mut incomplete: Option<String> = None;
    for root in server.mirrors.clone() {
        let root = root.to_node_id(&namespaces).map_err(fail)?;
        let most = feed.settings().nodes_max;
        let found = mirror::subtree(client, target, root, (server.depth_max, most), &mut budget).await?;
        feed.statistics().add(Count::Requests, 1);
        if found.is_cut {
            let reason = format!("there are more than nodes_max = {most} variables or methods");
            feed.failed(&Fault::other(target, &reason));
            incomplete = Some(reason);
        }
        // Without them, values go on as they are.
        if let Err(fault) = types::learn(client, target, feed.plant(), found.types(), &mut budget).await {
            feed.failed(&fault);
            incomplete = Some(fault.to_string());
        }
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
    feed.plant().catalogue().use_types(&feed.settings().name, used);
    drop(learning);
    if let Some(reason) = budget.exceeded() {
        feed.failed(&Fault::other(target, reason));
        incomplete = Some(reason.to_owned());
    }
    feed.statistics().set_incomplete(incomplete);
    let plant = Arc::clone(feed.plant());
    // It has no result but nodes that are gone, and is not waited for.
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
        if let Some(position) = server.known.get(&key) {
            links.nodes.insert(*position, variable.node);
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
            // Its values mean something on their own server only.
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
                server.known.insert(key, position);
                links.nodes.insert(position, variable.node);
            }
            // Two nodes of other namespaces may have the same name.
            Err(error) => {
                feed.statistics().add(Count::Dropped, 1);
                feed.failed(&Fault::other(target, format!("{}: {error}", variable.path.join("/"))));
            }
        }
    }
}

/// A variable of the other server as a tag, below a folder with the name of the source.
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
        scaling: Scaling { factor: 1.0, offset: 0.0, clamp: None },
        units: found.units.clone(),
        range: found.range,
        states: Vec::new(),
        deadband: 0.0,
        access: if may_write && found.is_writable { Access::ReadWrite } else { Access::Read },
        historize: false,
        expect_every: None,
        roles: Default::default(),
        alarm: None,
        model: Model::default(),
    }
}

/// Writes values through.
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
    match client.write_many(values).await {
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
    fn a_subscription_without_a_sign_of_life_ends_the_connection() {
        let fault = end(SubscriptionEvent::Inactive, "plc").unwrap().to_string();
        assert!(fault.contains("not even a sign of life"), "{fault}");
        assert!(end(SubscriptionEvent::Ended(StatusCode::BAD_TIMEOUT), "plc").is_some());
        assert!(end(SubscriptionEvent::DataLost { from: 1, to: 1 }, "plc").is_none());
    }

    #[test]
    fn variables_without_a_node_on_this_server_are_found() {
        let known = HashMap::from([("nsu=urn:a;i=1".to_owned(), 0), ("nsu=urn:b;i=1".to_owned(), 1)]);
        let links = Links { nodes: HashMap::from([(0, NodeId::numeric(1, 1))]), ..Links::default() };
        assert_eq!(missing(&known, &links).collect::<Vec<_>>(), [1]);
    }
}
