//! Observes a running server read-only: one session, one subscription, bounded lists.

use super::TuneArgs;
use super::source::{Target, parse};
use crate::connection::ConnectionArgs;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::session::{self, Session};
use crate::{resolve, walk};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;
use taktwerk_client::{Delivery, Event, SubscriptionEvent, SubscriptionParams};
use taktwerk_lab::statistics::median;
use taktwerk_model::tune::problem::Options;
use taktwerk_net::clock::monotonic;
use taktwerk_schema::ids::{object_ids, variable_ids};
use taktwerk_schema::{
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, NodeClass, ReadValueId,
};
use taktwerk_types::{DataValue, Encode, NodeId, StatusCode, Variant};

/// Maximum number of monitored variables. A probe must not be a load.
const VARIABLES_MAX: usize = 200;
/// Maximum number of browsed nodes.
const BROWSED_MAX: usize = 2_000;
/// Publishing interval of the observation, in milliseconds.
const WATCHING_MS: f64 = 250.0;
/// Queue size of an item.
const QUEUE: u32 = 100;
/// Number of reads for the round-trip time.
const READS: usize = 11;
/// Maximum ratio of periods within one group.
const ALIKE: f64 = 1.25;
/// ProductName of a Taktwerk server.
const OWN_PRODUCT: &str = "Taktwerk";
/// AttributeId of Value (Part 6 Annex A).
const VALUE: u32 = 13;

/// Observations of one variable.
#[derive(Debug, Clone, Default)]
struct Seen {
    changes: u64,
    /// Source times of the first and last change, in ticks of 100 ns.
    first: Option<i64>,
    last: Option<i64>,
    bytes: usize,
}

impl Seen {
    fn value(&mut self, value: &DataValue) {
        let time = value.source_timestamp.or(value.server_timestamp).map(|time| time.ticks());
        self.first = self.first.or(time);
        self.last = time.or(self.last);
        self.changes += 1;
        if let Some(value) = &value.value {
            self.bytes = self.bytes.max(bytes(value));
        }
    }

    /// Mean time between changes in milliseconds; `None` if the variable does not change.
    fn period_ms(&self) -> Option<f64> {
        let gaps = self.changes.checked_sub(1).filter(|gaps| *gaps > 0)? as f64;
        let span = self.last?.checked_sub(self.first?).filter(|span| *span > 0)? as f64 / 1e4;
        Some((span / gaps).max(0.1))
    }
}

/// Encoded size of a value without its type, in bytes.
fn bytes(value: &Variant) -> usize {
    value.encode_to_vec().len().saturating_sub(1).clamp(1, 65_536)
}

/// Observes a server and returns the tuning problem.
pub(super) fn server(
    arguments: &TuneArgs,
    options: &Options,
    endpoint: Endpoint,
    interrupt: &Interrupt,
) -> Result<Target, Failure> {
    let url = endpoint.to_string();
    let connection = ConnectionArgs { endpoint, security: arguments.security.clone() };
    let mut session = Session::connect(&connection)?;
    let round_trip = round_trip(&mut session)?;
    let nodes = if arguments.node.is_empty() {
        variables(&mut session, interrupt)?
    } else {
        resolve::with_values(&mut session, &arguments.node)?.ids
    };
    if nodes.is_empty() {
        return Err(Failure::Usage(format!("{url} has no variables below Objects: name some with --node")));
    }
    let sampling = least_sampling(&mut session)?;
    let product = product(&mut session)?;
    let is_named = !arguments.node.is_empty();
    let Watched { seen, revised, refused } =
        watch(&mut session, &nodes, is_named, arguments.watch, interrupt)?;
    session.close();
    if interrupt.asked() {
        return Err(Failure::Interrupted);
    }
    let groups = groups(&nodes, &seen);
    if groups.is_empty() {
        return Err(Failure::Usage(format!(
            "none of {} variables of {url} has changed within {} s: watch longer with --watch, or name others with --node",
            nodes.len(),
            arguments.watch.as_secs()
        )));
    }
    let changing: usize = groups.iter().map(|group| group.nodes.len()).sum();
    let mut notes = vec![format!(
        "watched {} variables for {} s: {changing} change; a read takes {} ms",
        nodes.len(),
        arguments.watch.as_secs_f64(),
        taktwerk_model::figures::number(round_trip * 1e3),
    )];
    if refused > 0 {
        notes.push(format!("the server does not let this user monitor {refused} of them"));
    }
    if nodes.len() >= VARIABLES_MAX {
        notes.push(format!(
            "only the first {VARIABLES_MAX} variables were watched: name those that matter with --node"
        ));
    }
    if let Some(sampling) = sampling {
        notes
            .push(format!("the server samples every {sampling} ms at the shortest (MinSupportedSampleRate)"));
    }
    notes.push(format!("the shortest publishing interval that it grants is {revised} ms"));
    let follows_writes = product.as_deref() == Some(OWN_PRODUCT);
    if !follows_writes {
        notes.push(format!(
            "{}: values are promised to wait for half an interval. For a server made with Taktwerk, which publishes right \
             after the writes of steady writers, add --set tune.follows_writes=true",
            product.map_or_else(|| "the server does not say its product".to_owned(), |name| format!("the product is {name:?}")),
        ));
    }
    let text = plant(&url, &groups, round_trip, revised, follows_writes);
    Ok(Target { problem: parse(&text, &url, options)?, endpoint: url, notes })
}

/// The median duration of a read, in seconds.
fn round_trip(session: &mut Session) -> Result<f64, Failure> {
    let time = || ReadValueId {
        node_id: NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME),
        attribute_id: VALUE,
        ..Default::default()
    };
    let mut times = Vec::new();
    for _ in 0..READS {
        let start = monotonic();
        session.read(vec![time()])?;
        times.push(monotonic().since(start).as_secs_f64());
    }
    Ok(median(&times).unwrap_or(0.0))
}

/// ProductName of the server, if it has one.
fn product(session: &mut Session) -> Result<Option<String>, Failure> {
    let node_id = NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS_BUILD_INFO_PRODUCT_NAME);
    let results = session.read(vec![ReadValueId { node_id, attribute_id: VALUE, ..Default::default() }])?;
    Ok(match results.first().and_then(|result| result.value.as_ref()) {
        Some(Variant::String(name)) => Some(name.to_string()).filter(|name| !name.is_empty()),
        _ => None,
    })
}

/// MinSupportedSampleRate, if the server has it.
fn least_sampling(session: &mut Session) -> Result<Option<f64>, Failure> {
    let node_id = NodeId::numeric(0, variable_ids::SERVER_SERVER_CAPABILITIES_MIN_SUPPORTED_SAMPLE_RATE);
    let results = session.read(vec![ReadValueId { node_id, attribute_id: VALUE, ..Default::default() }])?;
    Ok(match results.first().and_then(|result| result.value.as_ref()) {
        Some(Variant::Double(ms)) if *ms > 0.0 => Some(*ms),
        _ => None,
    })
}

/// The variables below Objects, except those of the Server Object.
fn variables(session: &mut Session, interrupt: &Interrupt) -> Result<Vec<NodeId>, Failure> {
    let mut seen = BTreeSet::from([NodeId::numeric(0, object_ids::SERVER)]);
    let mut level = vec![NodeId::numeric(0, object_ids::OBJECTS_FOLDER)];
    let mut found = Vec::new();
    while !level.is_empty() && found.len() < VARIABLES_MAX && seen.len() < BROWSED_MAX && !interrupt.asked() {
        let mut next = Vec::new();
        for children in walk::children(session, &level)?.into_iter().flatten() {
            for child in children {
                if !seen.insert(child.node_id.clone()) || seen.len() > BROWSED_MAX {
                    continue;
                }
                if child.node_class == NodeClass::VARIABLE
                    && child.node_id.namespace_index != 0
                    && found.len() < VARIABLES_MAX
                {
                    found.push(child.node_id.clone());
                }
                next.push(child.node_id);
            }
        }
        level = next;
    }
    Ok(found)
}

/// What was observed.
struct Watched {
    seen: Vec<Seen>,
    /// The shortest publishing interval that the server grants, in milliseconds.
    revised: f64,
    /// Number of variables that the server does not let this user monitor.
    refused: usize,
}

/// Monitors nodes. With `is_named`, the user has named them, and it is an error if one of them is refused.
fn watch(
    session: &mut Session,
    nodes: &[NodeId],
    is_named: bool,
    span: Duration,
    interrupt: &Interrupt,
) -> Result<Watched, Failure> {
    const LOOK: Duration = Duration::from_millis(200);
    let params = SubscriptionParams { publishing_interval_ms: WATCHING_MS, ..SubscriptionParams::default() };
    let items: Vec<_> = (0u32..)
        .zip(nodes)
        .map(|(client_handle, node)| MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId { node_id: node.clone(), attribute_id: VALUE, ..Default::default() },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters {
                client_handle,
                sampling_interval: 0.0,
                queue_size: QUEUE,
                discard_oldest: true,
                ..Default::default()
            },
        })
        .collect();
    let core = session.client().core();
    let watching = core.create_subscription(params, monotonic());
    core.add_items(watching, items, monotonic()).map_err(|error| Failure::Usage(error.to_string()))?;
    // An empty subscription costs the server nothing. Its revised interval is the shortest that the server grants.
    let quick = SubscriptionParams { publishing_interval_ms: 0.0, ..SubscriptionParams::default() };
    let quick = core.create_subscription(quick, monotonic());
    let mut revised = WATCHING_MS;
    let mut seen = vec![Seen::default(); nodes.len()];
    let mut refused: Vec<(usize, StatusCode)> = Vec::new();
    let mut bar = Progress::of_time("watching", span);
    let start = monotonic();
    while !interrupt.asked() {
        let now = monotonic();
        let elapsed = now.since(start);
        if elapsed >= span {
            break;
        }
        bar.at(elapsed.as_secs());
        match session.client().wait((now + LOOK).min(start + span)) {
            Some(Delivery::DataChanges { values, .. }) => {
                for (handle, value) in values {
                    if let Some(seen) = seen.get_mut(handle as usize) {
                        seen.value(&value);
                    }
                }
            }
            Some(Delivery::Event(Event::Subscription(handle, event))) => match event {
                SubscriptionEvent::Created { publishing_interval_ms, .. } if handle == quick => {
                    revised = publishing_interval_ms;
                }
                SubscriptionEvent::CreateFailed(error) if handle == watching => {
                    return Err(session::failure(&error));
                }
                SubscriptionEvent::Items(results) if handle == watching => {
                    for result in results.into_iter().filter(|result| result.status.is_bad()) {
                        refused.push((result.client_handle as usize, result.status));
                    }
                    let named = if is_named { refused.first() } else { None };
                    if let Some((at, status)) = named {
                        let node = nodes.get(*at).map(ToString::to_string).unwrap_or_default();
                        let why = status.description().unwrap_or_default();
                        return Err(Failure::BadStatus(format!("--node {node}: {status}: {why}")));
                    }
                }
                SubscriptionEvent::Ended(status) if handle == watching => {
                    return Err(Failure::BadStatus(format!("the server ended the subscription: {status}")));
                }
                _ => {}
            },
            Some(Delivery::Event(Event::Disconnected(error))) => {
                let reason = error.map_or_else(|| "disconnected".to_owned(), |error| error.to_string());
                return Err(Failure::Connect(reason));
            }
            _ => {}
        }
    }
    Ok(Watched { seen, revised, refused: refused.len() })
}

/// Variables with about the same period.
#[derive(Debug, PartialEq)]
struct Group {
    nodes: Vec<NodeId>,
    period_ms: f64,
    bytes: usize,
}

fn groups(nodes: &[NodeId], seen: &[Seen]) -> Vec<Group> {
    let mut all: Vec<(f64, usize, &NodeId)> = nodes
        .iter()
        .zip(seen)
        .filter_map(|(node, seen)| Some((seen.period_ms()?, seen.bytes, node)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut groups: Vec<(f64, Group)> = Vec::new();
    for (period, bytes, node) in all {
        match groups.last_mut() {
            Some((first, group)) if period <= *first * ALIKE => {
                // The mean period of the group.
                let count = group.nodes.len() as f64;
                group.period_ms = (group.period_ms * count + period) / (count + 1.0);
                group.bytes = group.bytes.max(bytes);
                group.nodes.push(node.clone());
            }
            _ => groups.push((period, Group { nodes: vec![node.clone()], period_ms: period, bytes })),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The plant file for the observations.
fn plant(url: &str, groups: &[Group], round_trip: f64, revised_ms: f64, follows_writes: bool) -> String {
    let mut text = String::new();
    // Writing to a `String` does not fail. `Debug` of a string without control characters is a valid TOML string.
    let _ = writeln!(text, "name = {url:?}");
    let _ = writeln!(text, "[link]\ndelay = \"{}us\"", (round_trip * 5e5).round().max(1.0));
    for group in groups {
        let nodes: Vec<String> =
            group.nodes.iter().map(|node| toml::Value::String(node.to_string()).to_string()).collect();
        let _ =
            writeln!(text, "[[signals]]\ncount = {}\nperiod_ms = {:?}", group.nodes.len(), group.period_ms);
        let _ = writeln!(text, "bytes = {}\nnodes = [{}]", group.bytes.max(1), nodes.join(", "));
    }
    let from = revised_ms.clamp(1.0, 500.0);
    let _ = writeln!(text, "[tune]\nfollows_writes = {follows_writes}");
    let _ = writeln!(text, "[tune.search]\npublishing_ms = {{ from = {from:?}, to = 1000.0 }}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(changes: u64, span_ms: i64) -> Seen {
        Seen { changes, first: Some(0), last: Some(span_ms * 10_000), bytes: 8 }
    }

    #[test]
    fn variables_are_grouped_by_how_often_they_change() {
        let nodes: Vec<NodeId> = (0..5).map(|number| NodeId::numeric(2, number)).collect();
        let all = [seen(101, 10_000), seen(96, 9_500), seen(11, 10_000), seen(1, 0), Seen::default()];
        let groups = groups(&nodes, &all);
        let sizes: Vec<usize> = groups.iter().map(|group| group.nodes.len()).collect();
        assert_eq!(sizes, [2, 1]);
        assert!((groups[0].period_ms - 100.0).abs() < 1e-9 && (groups[1].period_ms - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn observations_become_a_plant() {
        let nodes = vec![NodeId::string(2, "a\"b\\c"), NodeId::numeric(2, 7)];
        let groups = [Group { nodes, period_ms: 100.0, bytes: 8 }];
        let text = plant("opc.tcp://x:4840", &groups, 0.004, 10.0, false);
        let problem = parse(&text, "x", &Options::default()).unwrap();
        assert_eq!((problem.items(), problem.space.publishing_ms[0]), (2, 10.0));
        assert_eq!(problem.link.up.delay.base, Duration::from_millis(2));
        assert!(!problem.follows_writes);
        assert_eq!(problem.nodes[0], ["ns=2;s=a\"b\\c", "ns=2;i=7"]);
        let sets = vec!["link=ppp-2m".to_owned()];
        let problem = parse(&text, "x", &Options { sets, ..Options::default() }).unwrap();
        assert_eq!(problem.link.down.rate, Some(2_000_000));
    }

    #[test]
    fn values_have_their_encoded_size() {
        assert_eq!((bytes(&Variant::from(1i32)), bytes(&Variant::from(1.0f64))), (4, 8));
        assert_eq!(bytes(&Variant::from("abc")), 7);
    }
}
