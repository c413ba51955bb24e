//! The Diagnostics objects (Part 14 §9.1.11): counters of states for all elements, counters of messages for elements that engines
//! run, and live values.
//!
//! States are counted where they change. Counters of engines are fetched when a client reads them, at most every [`FRESH`], so
//! that publishing and receiving have no additional cost.

use super::live::Live;
use super::states::States;
use super::{administers, computed, lock};
use crate::error::BuildError;
use crate::space::{Space, ns0};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use taktwerk_net::clock;
use taktwerk_pubsub::component::{Component, StateCounters};
use taktwerk_pubsub::config::{Element, without_credentials};
use taktwerk_pubsub::publisher::{GroupCounters, WriterCounters};
use taktwerk_pubsub::subscriber::{ReaderCounters, ReaderGroupCounters};
use taktwerk_schema::ids::{method_ids, variable_ids};
use taktwerk_schema::{DiagnosticsLevel, PubSubDiagnosticsCounterClassification};
use taktwerk_server::callback::{CallContext, SourceRead, ValueSource};
use taktwerk_types::{DataValue, Instant, NodeId, StatusCode, Variant};

/// Maximum age of engine counters when they are read.
const FRESH: Duration = Duration::from_millis(50);

/// A counter of states: its name, and whether it counts errors.
type StateCounter = (&'static str, bool, fn(&StateCounters) -> u32);

const STATES: [StateCounter; 6] = [
    ("StateError", true, |counters| counters.error),
    ("StateOperationalByMethod", false, |counters| counters.operational_by_method),
    ("StateOperationalByParent", false, |counters| counters.operational_by_parent),
    ("StateOperationalFromError", false, |counters| counters.operational_from_error),
    ("StatePausedByParent", false, |counters| counters.paused_by_parent),
    ("StateDisabledByMethod", false, |counters| counters.disabled_by_method),
];

/// The same for PublishSubscribe, in the same order.
const ROOT: [u32; 6] = [
    variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_ERROR,
    variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_OPERATIONAL_BY_METHOD,
    variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_OPERATIONAL_BY_PARENT,
    variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_OPERATIONAL_FROM_ERROR,
    variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_PAUSED_BY_PARENT,
    variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_DISABLED_BY_METHOD,
];

fn total(counters: &StateCounters, of_faults: bool) -> u32 {
    let counted = STATES.iter().filter(|(_, is_fault, _)| *is_fault == of_faults);
    counted.map(|(_, _, count)| count(counters)).fold(0, u32::saturating_add)
}

/// The engine counters of one element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Counted {
    Group(GroupCounters),
    Writer(WriterCounters),
    ReaderGroup(ReaderGroupCounters),
    Reader(ReaderCounters),
}

/// An engine counter: its name, and whether it counts errors.
type EngineCounter = (&'static str, bool, fn(&Counted) -> u64);

/// Defines a counter for one kind of element.
macro_rules! counter {
    ($name:literal, $is_fault:literal, $kind:ident, $count:expr) => {
        ($name, $is_fault, |counted| match counted {
            Counted::$kind(counters) => {
                let count: fn(&_) -> u64 = $count;
                count(counters)
            }
            _ => 0,
        })
    };
}

const GROUP: [EngineCounter; 3] = [
    counter!("SentNetworkMessages", false, Group, |counters: &GroupCounters| {
        counters.network_messages.saturating_sub(counters.failed_transmissions)
    }),
    counter!("FailedTransmissions", true, Group, |counters: &GroupCounters| counters.failed_transmissions),
    counter!("EncryptionErrors", true, Group, |counters: &GroupCounters| counters.security_errors),
];
const WRITER: [EngineCounter; 1] =
    [counter!("FailedDataSetMessages", true, Writer, |counters: &WriterCounters| counters.failed)];
const READER_GROUP: [EngineCounter; 3] = [
    counter!("ReceivedNetworkMessages", false, ReaderGroup, |counters: &ReaderGroupCounters| {
        counters.network_messages
    }),
    counter!("ReceivedInvalidNetworkMessages", true, ReaderGroup, |counters: &ReaderGroupCounters| {
        counters.malformed
    }),
    counter!("DecryptionErrors", true, ReaderGroup, |counters: &ReaderGroupCounters| {
        counters.security_errors
    }),
];
const READER: [EngineCounter; 2] = [
    counter!("FailedDataSetMessages", true, Reader, |counters: &ReaderCounters| counters.failed),
    counter!("DecryptionErrors", true, Reader, |counters: &ReaderCounters| counters.security_errors),
];

fn engine_counters(element: &Element) -> &'static [EngineCounter] {
    match element {
        Element::WriterGroup { .. } => &GROUP,
        Element::Writer { .. } => &WRITER,
        Element::ReaderGroup { .. } => &READER_GROUP,
        Element::Reader { .. } => &READER,
        _ => &[],
    }
}

/// The optional members of an element's Diagnostics that are shown.
pub(super) fn optional(element: &Element) -> &'static [&'static str] {
    match element {
        Element::WriterGroup { .. } => &["Diagnostics", "Diagnostics/Counters/EncryptionErrors"],
        Element::Writer { .. } => &["Diagnostics", "Diagnostics/LiveValues/MessageSequenceNumber"],
        Element::ReaderGroup { .. } => &[
            "Diagnostics",
            "Diagnostics/Counters/ReceivedInvalidNetworkMessages",
            "Diagnostics/Counters/DecryptionErrors",
        ],
        Element::Reader { .. } => &[
            "Diagnostics",
            "Diagnostics/Counters/DecryptionErrors",
            "Diagnostics/LiveValues/MessageSequenceNumber",
        ],
        _ => &["Diagnostics"],
    }
}

/// Fetches engine counters and caches them.
#[derive(Default)]
pub(super) struct Engines {
    last: Mutex<Option<Snapshot>>,
    /// The counters at the last call of Reset.
    bases: Mutex<BTreeMap<Element, Counted>>,
}

struct Snapshot {
    taken: Instant,
    counted: Arc<BTreeMap<Component, Counted>>,
}

impl Engines {
    /// May wait for the engines' threads.
    fn counted(&self, states: &States, element: &Element) -> Option<Counted> {
        let component = element.component(&states.configuration())?;
        let mut last = lock(&self.last);
        let now = clock::monotonic();
        if let Some(last) = &*last
            && now.since(last.taken) < FRESH
        {
            return last.counted.get(&component).copied();
        }
        let mut counted = BTreeMap::new();
        if let Some(publisher) = states.publisher() {
            let of_groups = publisher.publisher().ask(|engine, _| {
                let mut of = Vec::new();
                for group in engine.groups() {
                    of.push((Component::WriterGroup(group), Counted::Group(engine.counters(group))));
                    of.extend(engine.writer_counters(group).enumerate().map(|(writer, counters)| {
                        (Component::DataSetWriter { group, writer }, Counted::Writer(counters))
                    }));
                }
                of
            });
            counted.extend(of_groups.unwrap_or_default());
        }
        if let Some(subscriber) = states.subscriber() {
            let of_readers = subscriber.subscriber().ask(|engine, _, _| {
                let readers = engine.reader_counters();
                let readers = readers
                    .map(|(index, counters)| (Component::DataSetReader(index), Counted::Reader(counters)));
                let groups = engine.group_counters().map(|(index, counters)| {
                    let component =
                        Component::ReaderGroup { connection: index.connection, group: index.group };
                    (component, Counted::ReaderGroup(counters))
                });
                readers.chain(groups).collect::<Vec<_>>()
            });
            counted.extend(of_readers.unwrap_or_default());
        }
        let counted = Arc::new(counted);
        *last = Some(Snapshot { taken: now, counted: Arc::clone(&counted) });
        counted.get(&component).copied()
    }

    /// A counter since the last Reset.
    fn count(&self, states: &States, element: &Element, counter: fn(&Counted) -> u64) -> u32 {
        let now = self.counted(states, element).map_or(0, |counted| counter(&counted));
        let base = lock(&self.bases).get(element).map_or(0, counter);
        u32::try_from(now.saturating_sub(base)).unwrap_or(u32::MAX)
    }

    fn reset(&self, states: &States, element: &Element) {
        match self.counted(states, element) {
            Some(counted) => lock(&self.bases).insert(element.clone(), counted),
            None => lock(&self.bases).remove(element),
        };
    }

    /// Forgets a removed element.
    pub(super) fn forget(&self, element: &Element) {
        lock(&self.bases).remove(element);
    }
}

/// A value that may have to be waited for.
struct Asked<F>(Arc<F>);

impl<F: Fn() -> DataValue + Send + Sync + 'static> ValueSource for Asked<F> {
    fn read(&self) -> SourceRead {
        let ask = Arc::clone(&self.0);
        SourceRead::Blocking(Box::new(move || ask()))
    }
}

/// Adds the Diagnostics of PublishSubscribe.
pub(super) fn add_root(space: &Space, states: &Arc<States>) -> Result<(), BuildError> {
    for ((_, _, count), id) in STATES.iter().zip(ROOT) {
        let (states, count) = (Arc::clone(states), *count);
        computed(space, id, move || count(&states.counters_of(None)))?;
    }
    for (id, of_faults) in [
        (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_TOTAL_INFORMATION, false),
        (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_TOTAL_ERROR, true),
    ] {
        let states = Arc::clone(states);
        computed(space, id, move || total(&states.counters_of(None), of_faults))?;
    }
    let below = Arc::clone(states);
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_SUB_ERROR, move || below.has_errors(None))?;
    let states = Arc::clone(states);
    let reset = move |caller: &CallContext, _: Vec<Variant>| {
        administers(caller)?;
        states.reset(None);
        Ok(Vec::new())
    };
    let id: NodeId = ns0(method_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_RESET);
    Ok(space.set_method(&id, Arc::new(reset))?)
}

/// Adds the Diagnostics of an element whose members were just added.
pub(super) fn add(
    space: &Space,
    live: &Arc<Live>,
    element: &Element,
    members: &BTreeMap<String, NodeId>,
) -> Result<(), BuildError> {
    for (path, id) in members {
        let Some(path) = path.strip_prefix("Diagnostics/") else { continue };
        // Values that the types leave open. Counters describe themselves.
        match path {
            _ if path.ends_with("/Active") => {
                super::set(space, id, true)?;
                continue;
            }
            "DiagnosticsLevel" | "TotalInformation/DiagnosticsLevel" | "TotalError/DiagnosticsLevel" => {
                super::set(space, id, DiagnosticsLevel::BASIC.0)?;
                continue;
            }
            "TotalInformation/Classification" => {
                super::set(space, id, PubSubDiagnosticsCounterClassification::INFORMATION.0)?;
                continue;
            }
            "TotalError/Classification" => {
                super::set(space, id, PubSubDiagnosticsCounterClassification::ERROR.0)?;
                continue;
            }
            _ => {}
        }
        match source(live, element, path) {
            Some(Shown::Now(value)) => {
                let source = move || DataValue::new(value());
                space.set_source(id, Arc::new(source))?;
            }
            Some(Shown::Asked(value)) => space.set_source(id, Arc::new(Asked(Arc::new(value))))?,
            None => {}
        }
    }
    if let Some(id) = members.get("Diagnostics/Reset") {
        let (live, element) = (Arc::clone(live), element.clone());
        let reset = move |caller: &CallContext, _: super::methods::Inputs| {
            administers(caller)?;
            live.states.reset(Some(&element));
            live.counted.reset(&live.states, &element);
            Ok(Vec::new())
        };
        space.set_method(id, super::methods::blocking(reset))?;
    }
    Ok(())
}

type Now = Box<dyn Fn() -> Variant + Send + Sync>;
type AskedFor = Box<dyn Fn() -> DataValue + Send + Sync>;

enum Shown {
    Now(Now),
    Asked(AskedFor),
}

/// The source of a member's value; `None` for constant members.
fn source(live: &Arc<Live>, element: &Element, path: &str) -> Option<Shown> {
    let (shared, of) = (Arc::clone(live), element.clone());
    let now = |value: Now| Some(Shown::Now(value));
    let asked = |value: AskedFor| Some(Shown::Asked(value));
    let is_writer = |component: Component| matches!(component, Component::DataSetWriter { .. });
    let is_reader = |component: Component| matches!(component, Component::DataSetReader(_));
    if let Some(name) = path.strip_prefix("Counters/") {
        if let Some((_, _, count)) = STATES.iter().find(|(known, _, _)| *known == name) {
            return now(Box::new(move || count(&shared.states.counters_of(Some(&of))).into()));
        }
        if let Some((_, _, count)) = engine_counters(element).iter().find(|(known, _, _)| *known == name) {
            return asked(Box::new(move || {
                DataValue::new(shared.counted.count(&shared.states, &of, *count))
            }));
        }
        // A name with a slash is a Property of a counter.
        return if name.contains('/') { None } else { Some(not_counted()) };
    }
    match path {
        "TotalInformation" | "TotalError" => {
            let of_faults = path == "TotalError";
            asked(Box::new(move || {
                let of_states = total(&shared.states.counters_of(Some(&of)), of_faults);
                let counters = engine_counters(&of).iter().filter(|(_, is_fault, _)| *is_fault == of_faults);
                let counts = counters.map(|(_, _, count)| shared.counted.count(&shared.states, &of, *count));
                DataValue::new(counts.fold(of_states, u32::saturating_add))
            }))
        }
        "SubError" => now(Box::new(move || shared.states.has_errors(Some(&of)).into())),
        "LiveValues/ConfiguredDataSetWriters" => {
            now(Box::new(move || shared.states.count_below(&of, is_writer, false).into()))
        }
        "LiveValues/OperationalDataSetWriters" => {
            now(Box::new(move || shared.states.count_below(&of, is_writer, true).into()))
        }
        "LiveValues/ConfiguredDataSetReaders" => {
            now(Box::new(move || shared.states.count_below(&of, is_reader, false).into()))
        }
        "LiveValues/OperationalDataSetReaders" => {
            now(Box::new(move || shared.states.count_below(&of, is_reader, true).into()))
        }
        "LiveValues/ResolvedAddress" => now(Box::new(move || {
            let configuration = shared.states.configuration();
            configuration
                .connection(of.name())
                .map_or(Variant::Empty, |connection| without_credentials(&connection.url).into())
        })),
        "LiveValues/MessageSequenceNumber" => asked(Box::new(move || {
            let number = match shared.counted.counted(&shared.states, &of) {
                Some(Counted::Writer(counters)) => Some(counters.sequence_number),
                Some(Counted::Reader(counters)) => counters.sequence_number,
                _ => None,
            };
            match number {
                // UADP transmits 16 bits of it.
                Some(number) => DataValue::new((number & 0xffff) as u16),
                None => DataValue {
                    status: Some(StatusCode::BAD_WAITING_FOR_INITIAL_DATA),
                    ..DataValue::default()
                },
            }
        })),
        _ => None,
    }
}

/// The source of a mandatory counter that is not supported: a bad status.
fn not_counted() -> Shown {
    Shown::Asked(Box::new(|| DataValue {
        status: Some(StatusCode::BAD_NOT_SUPPORTED),
        ..DataValue::default()
    }))
}
