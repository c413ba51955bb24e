//! Load: many Double variables that are updated together (see `interop/TESTNODES.md`), and events.

use super::updater::Updater;
use clap::ValueEnum;
use taktwerk::Server;
use taktwerk_generator::signals;
use taktwerk_load::signals::SignalSet;
use taktwerk_net::clock;
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_server::NewEvent;
use taktwerk_server::space::VariableHandle;
use taktwerk_sim::publishing::value;
use taktwerk_types::{NodeId, UtcTime};

/// Content of the signal values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignalValues {
    /// The number of the update plus the number of the signal.
    Count,
    /// A random number between 0 and 1.
    Random,
    /// The time of the write in seconds since 1970, so that clients can measure the age of a value.
    Time,
    /// A slow sine with noise in the last of three decimals, similar to a sensor.
    Sine,
}

/// Adds `count` signals and, unless the period is zero, starts to update them.
pub(crate) fn start(
    server: &Server,
    count: u32,
    period_ns: u64,
    values: SignalValues,
) -> Result<Option<Updater>, super::ServeError> {
    let handles = signals::add(server, count)?;
    if count == 0 || period_ns == 0 {
        return Ok(None);
    }
    let (mut updates, mut random) = (0, 1);
    let updater = Updater::start("signals", period_ns, move |_| {
        // Not the cycle number: skipped cycles would look like lost values.
        updates += 1;
        match values {
            SignalValues::Count => update(&handles, updates, clock::wall()),
            SignalValues::Random => randomize(&handles, &mut random, clock::wall()),
            SignalValues::Time => set_to_time(&handles),
            SignalValues::Sine => sine(&handles, updates, &mut random, clock::wall()),
        }
    })?;
    Ok(Some(updater))
}

/// Adds sets of signals, and starts to update them. Sets that are due at the same time change at the same time.
pub(crate) fn start_sets(server: &Server, sets: &[SignalSet]) -> Result<Vec<Updater>, super::ServeError> {
    if sets.is_empty() {
        return Ok(Vec::new());
    }
    let start = taktwerk_lab::clock::monotonic();
    let mut updaters = Vec::new();
    for (set, handles) in sets.iter().zip(signals::add_sets(server, sets)?) {
        let period = u64::try_from(set.period().as_nanos()).unwrap_or(u64::MAX);
        let (mut updates, bytes) = (0, set.bytes);
        updaters.push(Updater::start_at("signals", start, period, move |_| {
            updates += 1;
            let now = clock::wall();
            handles.iter().for_each(|handle| handle.set_at(value(bytes, updates), now));
        })?);
    }
    Ok(updaters)
}

/// Interval of raising events in nanoseconds: several at once, as in a plant with cyclic programs.
const EVENTS_EVERY: u64 = 10_000_000;
/// Severities of the events, alternating.
const SEVERITIES: [u16; 2] = [300, 700];

/// Starts to raise `per_second` events per second, unless it is zero.
pub(crate) fn raise_events(server: &Server, per_second: u32) -> Result<Option<Updater>, super::ServeError> {
    if per_second == 0 {
        return Ok(None);
    }
    let space = std::sync::Arc::clone(server.space());
    let mut raised = 0;
    let updater = Updater::start("events", EVENTS_EVERY, move |cycle| {
        // All that are due, including those of skipped cycles.
        let due = cycle.saturating_mul(EVENTS_EVERY).saturating_mul(u64::from(per_second)) / 1_000_000_000;
        for number in raised..due {
            let severity = SEVERITIES.get((number % 2) as usize).copied().unwrap_or_default();
            let event = NewEvent::new(
                NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE),
                NodeId::numeric(0, object_ids::SERVER),
            );
            space.raise(event.severity(severity).message(&*format!("event {number}")), clock::wall());
        }
        raised = raised.max(due);
    })?;
    Ok(Some(updater))
}

/// The next random number between 0 and 1 (xorshift64*).
fn next(random: &mut u64) -> f64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    let value = random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
    value as f64 / (1u64 << 53) as f64
}

/// Sets each signal to a random value between 0 and 1.
fn randomize(handles: &[VariableHandle], random: &mut u64, now: UtcTime) {
    for handle in handles {
        handle.set_at(next(random), now);
    }
}

/// Updates per period of the sine.
const SINE_UPDATES: f64 = 6_000.0;

/// Sets all signals to the same sine with individual noise. A sine for each would take longer than the write.
fn sine(handles: &[VariableHandle], cycle: u64, random: &mut u64, now: UtcTime) {
    let sine = 50.0 + 20.0 * (cycle as f64 / SINE_UPDATES * core::f64::consts::TAU).sin();
    for handle in handles {
        let value = sine + (next(random) - 0.5) * 0.004;
        handle.set_at((value * 1e3).round() / 1e3, now);
    }
}

/// Sets each signal to the time of its write.
fn set_to_time(handles: &[VariableHandle]) {
    for handle in handles {
        let now = clock::wall();
        handle.set_at(now.unix_nanos() as f64 / 1e9, now);
    }
}

/// Signal k has the value t + k in update t, with the same timestamp for all. Update 1 was the initial value.
fn update(handles: &[VariableHandle], cycle: u64, now: UtcTime) {
    let tick = (cycle + 1) as f64;
    for (signal, handle) in handles.iter().enumerate() {
        handle.set_at(tick + signal as f64, now);
    }
}
