//! The history of a server, and what clients read of it.
//!
//! The store is in memory and outlives the processes of a server. Its work takes the time that the host profile says.
//! As in production, values are stored every half a second, and a crash loses those that are not stored yet.

use super::application::{Shape, Worker};
use super::site::{FIRST, Site};
use super::{Server, Signals};
use crate::plant::variable_id;
use crate::signals::value;
use crate::world::World;
use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_schema::{
    HistoryData, HistoryReadRequest, HistoryReadResponse, HistoryReadValueId, ReadRawModifiedDetails,
    TimestampsToReturn,
};
use taktwerk_server::AddressSpace;
use taktwerk_server::history::{
    HistoryStore, HistoryValue, MemoryStore, NodeKey, Order, ReadLimit, Rule, Span, StoreCapabilities,
    StoreError,
};
use taktwerk_server::space::NodeError;
use taktwerk_types::{DataValue, ExtensionObject, Instant, StatusCode, UtcTime};

/// Interval for storing values, and the longest queue of values that wait for it, as in `taktwerk`.
pub(crate) const STORE_EVERY: Duration = Duration::from_millis(500);
pub(super) const QUEUE_LEN: usize = 1 << 17;
/// Maximum number of values in the response to a request: the server's limit.
pub(super) const VALUES_MAX: u64 = 100_000;
/// Interval between the stored values of variables that do not change.
const STILL: Duration = Duration::from_secs(1);

/// Maximum number of stored values of a server: each takes about 150 bytes.
const STORED_MAX: u64 = 5_000_000;

/// What is wrong with the history of a server.
pub(super) fn check_server(server: &Server) -> Result<(), String> {
    if server.history == 0 {
        return Ok(());
    }
    let variables: u64 = server.signals.iter().map(|signals| u64::from(signals.count)).sum();
    let all = variables.saturating_mul(u64::from(server.count)).saturating_mul(u64::from(server.history));
    if all > STORED_MAX {
        return Err(format!("{all} stored values are more than {STORED_MAX}: write a smaller number"));
    }
    let moving = server.signals.iter().filter(|signals| !signals.period.is_zero());
    let rate: f64 = moving.map(|signals| f64::from(signals.count) / signals.period.as_secs_f64()).sum();
    let most = QUEUE_LEN as f64 / STORE_EVERY.as_secs_f64();
    if rate > most {
        return Err(format!("the variables change {rate:.0} times a second, history records {most:.0}"));
    }
    Ok(())
}

/// The key of requests for history that is wrong, and why.
pub(super) fn check_request(server: &Server, batch: u32, values: u32) -> Result<(), (&'static str, String)> {
    if server.history == 0 {
        let problem = "the server has no history: write history = 1000 for it, the values of each variable";
        return Err(("kind", problem.to_owned()));
    }
    let all = u64::from(batch) * u64::from(values);
    if values == 0 || all > VALUES_MAX {
        let problem = format!(
            "{batch} variables with {values} values each: write 1 to {VALUES_MAX} values in a request"
        );
        return Err(("values", problem));
    }
    Ok(())
}

/// The store of a server.
#[derive(Debug)]
pub(super) struct Archive {
    store: MemoryStore,
    /// Number of values that were read, for the cost of the job that reads them.
    pub(super) values_read: Arc<AtomicU64>,
}

impl Archive {
    /// A store for the history of a server; `None` if it has none.
    pub(super) fn of(server: &Server) -> Option<Arc<Self>> {
        let size = usize::try_from(server.history).ok().filter(|size| *size > 0)?;
        Some(Arc::new(Self { store: MemoryStore::new(size), values_read: Arc::default() }))
    }

    /// Records the variables of a server's new process. The first process finds a full history.
    pub(super) fn record(
        self: &Arc<Self>,
        space: &AddressSpace,
        server: &Server,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        space.set_history_store(Arc::clone(self) as Arc<dyn HistoryStore>);
        let mut variable = FIRST;
        for signals in &server.signals {
            for id in (variable..variable + signals.count).map(variable_id) {
                self.fill(&space.node_key(&id), signals, server.history, now);
                space.historize(&id, false, Rule::default(), now)?;
            }
            variable += signals.count;
        }
        Ok(())
    }

    fn fill(&self, node: &NodeKey, signals: &Signals, count: u32, now: UtcTime) {
        let mut known = Vec::new();
        // A store in memory does not fail.
        let _ = self.store.read(node, Span::ALL, Order::Forward, ReadLimit::count(1), &mut known);
        if !known.is_empty() {
            return;
        }
        let period = if signals.period.is_zero() { STILL } else { signals.period };
        let ticks = i64::try_from(period.as_nanos() / 100).unwrap_or(i64::MAX);
        let values: Vec<_> = (1..=i64::from(count))
            .rev()
            .map(|before| {
                let time = UtcTime::from_ticks(now.ticks().saturating_sub(before.saturating_mul(ticks)));
                let value = value(signals.value_len, 0);
                (
                    NodeKey::clone(node),
                    HistoryValue { source: time, server: time, status: StatusCode::GOOD, value },
                )
            })
            .collect();
        let _ = self.append(&values);
    }
}

impl HistoryStore for Archive {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities { update: false, annotations: false, events: false, ..self.store.capabilities() }
    }

    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        #[cfg(test)]
        if let Some(tamper) = TAMPER.with_borrow(|tamper| *tamper) {
            let mut values = values.to_vec();
            tamper(&mut values);
            return self.store.append(&values);
        }
        self.store.append(values)
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        let before = out.len();
        let result = self.store.read(node, span, order, limit, out);
        self.values_read.fetch_add((out.len() - before) as u64, Ordering::Relaxed);
        result
    }
}

/// Lets the server store its values now and in every interval.
pub(super) fn schedule(world: &mut World<Worker>, site: Rc<RefCell<Site>>) {
    let id = site.borrow().id;
    world.after(STORE_EVERY, move |world| {
        world.record(id);
        schedule(world, site);
    });
}

/// A request for the newest values of variables.
pub(super) fn request(variables: &[u32], values: u32, now: UtcTime) -> HistoryReadRequest {
    HistoryReadRequest {
        // Without a start, values are read backwards from the end (Part 11 §6.5.3.1).
        history_read_details: ExtensionObject::new(&ReadRawModifiedDetails {
            is_read_modified: false,
            start_time: UtcTime::NULL,
            end_time: now,
            num_values_per_node: values,
            return_bounds: false,
        }),
        timestamps_to_return: TimestampsToReturn::SOURCE,
        nodes_to_read: variables
            .iter()
            .map(|variable| HistoryReadValueId {
                node_id: variable_id(FIRST + *variable),
                ..HistoryReadValueId::default()
            })
            .collect(),
        ..HistoryReadRequest::default()
    }
}

/// A response that is not as requested.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The request failed.
    Failed(String),
    /// The history is not what was written.
    Broken(String),
}

/// When a request was sent, when variables are no longer written, and when the response arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) asked: Instant,
    pub(super) until: Instant,
    pub(super) now: Instant,
}

/// Values that are older when the history is asked for must be in it. Storing them takes an interval, and slow jobs may
/// wait for processors.
const STORED_WITHIN: Duration = Duration::from_secs(10);

/// Checks the response to a [`request`]: values are in order, none that was written is missing between them, and the
/// newest ones are not missing either.
pub(super) fn check(
    response: &HistoryReadResponse,
    variables: &[u32],
    shape: &Shape,
    times: Times,
) -> Result<(), Wrong> {
    if response.results.len() != variables.len() {
        let (results, asked) = (response.results.len(), variables.len());
        return Err(Wrong::Failed(format!("{results} results for {asked} variables")));
    }
    for (result, variable) in response.results.iter().zip(variables) {
        if result.status_code.is_bad() {
            return Err(Wrong::Failed(result.status_code.to_string()));
        }
        if !result.continuation_point.is_null() {
            return Err(Wrong::Failed("the response does not contain all values".to_owned()));
        }
        let data = result.history_data.decode::<HistoryData>();
        let values = data.map_err(|error| Wrong::Failed(error.to_string()))?.data_values;
        let group = shape.group_of.get(*variable as usize).copied().unwrap_or(0);
        let Some(rhythm) = shape.rhythms.get(group) else { continue };
        let broken = |problem: String| Err(Wrong::Broken(format!("variable {variable}: {problem}")));
        let Some(newest) = values.first() else {
            // The store keeps the newest values only: all that the client asks for may be replaced when it is read.
            let replaced = rhythm.newest(times.now.min(times.until)) - rhythm.newest(times.asked);
            let is_known = shape.has_true_clocks && !shape.has_writers;
            if is_known && replaced < i64::from(shape.history) {
                return broken("its history is empty".to_owned());
            }
            continue;
        };
        for pair in values.windows(2) {
            let [newer, older] = pair else { continue };
            if newer.source_timestamp <= older.source_timestamp {
                let times = (newer.source_timestamp, older.source_timestamp);
                return broken(format!("history is out of order: {times:?}"));
            }
        }
        if rhythm.period.is_zero() || rhythm.value_len < 4 || !shape.has_complete_history {
            continue;
        }
        let number = |one: &DataValue| rhythm.number(one.value.as_ref()?, times.now);
        for pair in values.windows(2) {
            let [newer, older] = pair else { continue };
            match (number(newer), number(older)) {
                (Some(newer), Some(older)) if newer <= 0 || older == newer - 1 => {}
                (Some(newer), Some(older)) => return broken(format!("history has {newer} after {older}")),
                // Such as Bad_DataLost.
                _ => return broken("history has a gap".to_owned()),
            }
        }
        if !shape.has_true_clocks {
            continue;
        }
        // A client that is behind its schedule still asks after the last value was written.
        let stored = times.asked.as_nanos().saturating_sub(STORED_WITHIN.as_nanos() as u64);
        let stored = stored.min(times.until.as_nanos()).max(rhythm.start.as_nanos());
        let expected = rhythm.newest(Instant::from_nanos(stored));
        match number(newest) {
            Some(newest) if newest >= expected => {}
            newest => {
                return broken(format!("history ends with {newest:?}, and {expected} was written before"));
            }
        }
    }
    Ok(())
}

/// What tests do to values before they are stored, to break the promise.
#[cfg(test)]
type Tamper = fn(&mut Vec<(NodeKey, HistoryValue)>);

#[cfg(test)]
thread_local! {
    static TAMPER: RefCell<Option<Tamper>> = const { RefCell::new(None) };
}

#[cfg(test)]
mod tests;
