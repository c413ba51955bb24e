//! The path of readings from a source into variables: scaling, deadband, rate limit, and quality.
//!
//! A value that does not arrive in time keeps its last value with Uncertain_LastUsableValue. After the configured time it becomes
//! Bad_NoCommunication (Part 8 §6.3). Both timestamps then say when this was detected.
//!
//! - `reading`: a reading of a tag; `held`: a tag with its variable; `budget`: the rate limit;
//! - `writes`: writes of clients; `watching`: connection state and missing values; `telling`: which errors are logged.

mod budget;
mod held;
mod reading;
mod telling;
mod watching;
mod writes;

pub use reading::Reading;
pub use writes::{Write, Writes};

use crate::destination::tap::Tap;
use crate::plant::{Given, OnCall, Plant, Signature};
use crate::settings::SourceSettings;
use crate::statistics::{Count, Statistics};
use crate::tag::{Access, Tag};
use crate::value::Kind;
use budget::{Budget, Outcome};
use held::{Held, Quality};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk::BuildError;
use taktwerk_net::clock::wall;
use taktwerk_server::space::{NodeError, VariableHandle};
use taktwerk_types::{NodeId, StatusCode, Variant};
use telling::Telling;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use watching::Down;
use writes::Queued;

/// Writes queued for a source.
const WRITES_MAX: usize = 1024;

struct Shared {
    settings: SourceSettings,
    statistics: Statistics,
    plant: Arc<Plant>,
    /// Locked after `held`.
    taps: Mutex<Vec<Arc<Tap>>>,
    held: Mutex<Vec<Held>>,
    /// Positions without a variable, to be used again. Locked after `held`.
    free: Mutex<Vec<usize>>,
    /// The number of variables so far. Unlike positions, these numbers are not used again.
    generations: AtomicU64,
    budget: Mutex<Budget>,
    down: Mutex<Down>,
    telling: Mutex<Telling>,
    /// Notified when a reading is queued and none was before.
    begins_to_wait: Notify,
    writes: mpsc::Sender<Queued>,
    name: Arc<str>,
    /// Whether the source runs. Variables added from then on were found by the source.
    is_running: AtomicBool,
    is_closed: AtomicBool,
}

/// Stores the readings of a source. Cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

impl core::fmt::Debug for Feed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Feed").field(&self.0.settings.name).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// A feed without tags.
    #[must_use]
    pub fn new(settings: SourceSettings, plant: Arc<Plant>, taps: Vec<Arc<Tap>>) -> (Self, Writes) {
        let (writes, taken) = mpsc::channel(WRITES_MAX);
        let budget = Budget::full(settings.values_per_second_max);
        let feed = Self(Arc::new(Shared {
            name: settings.name.as_str().into(),
            is_running: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            settings,
            statistics: Statistics::default(),
            plant,
            taps: Mutex::new(taps),
            held: Mutex::default(),
            free: Mutex::default(),
            generations: AtomicU64::new(0),
            budget: Mutex::new(budget),
            down: Mutex::default(),
            telling: Mutex::default(),
            begins_to_wait: Notify::new(),
            writes,
        }));
        let shared = Arc::downgrade(&feed.0);
        (feed, Writes { taken, shared })
    }

    /// The settings of the source.
    #[must_use]
    pub fn settings(&self) -> &SourceSettings {
        &self.0.settings
    }

    /// The nodes of the gateway.
    #[must_use]
    pub fn plant(&self) -> &Arc<Plant> {
        &self.0.plant
    }

    /// The counters of the source.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.0.statistics
    }

    /// Marks the source as running.
    pub fn run(&self) {
        self.0.is_running.store(true, Ordering::Relaxed);
    }

    /// Closes the feed: nothing is stored any more, and its variables can be taken over by another feed.
    pub fn close(&self) {
        let mut held = lock(&self.0.held);
        // Under the lock, because adding a variable checks the flag under it.
        self.0.is_closed.store(true, Ordering::Relaxed);
        held.clear();
        lock(&self.0.free).clear();
        drop(held);
        self.0.statistics.disconnected();
        self.0.plant.release(&self.0.name);
    }

    /// The number of variables.
    #[must_use]
    pub fn len(&self) -> usize {
        let held = lock(&self.0.held);
        held.len() - lock(&self.0.free).len()
    }

    /// Whether clients may write a tag.
    #[must_use]
    pub fn is_writable(&self, position: usize) -> bool {
        lock(&self.0.held).get(position).is_some_and(|held| held.is_writable)
    }

    /// Whether there are no variables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a variable. Returns its position.
    ///
    /// # Errors
    /// A node of that name exists.
    pub fn add(&self, tag: &Tag, kind: Kind) -> Result<usize, BuildError> {
        let kind = tag.kind_for(kind);
        let position = self.next_position();
        let generation = self.next_generation();
        let shared = Arc::downgrade(&self.0);
        let on_write = Arc::new(move |value: Variant| {
            let Some(shared) = shared.upgrade() else { return StatusCode::BAD_NO_COMMUNICATION };
            Self(shared).accept_for((position, generation), value)
        });
        let is_found = self.0.is_running.load(Ordering::Relaxed);
        let interval = self.0.settings.interval;
        let Given { handle, is_kept } =
            self.0.plant.variable(&self.0.name, tag, kind, interval, is_found, on_write)?;
        // A value kept from an earlier feed expires like any other.
        let has_value = is_kept && !handle.get().status.unwrap_or_default().is_bad();
        let quality = if has_value { Quality::Fresh } else { Quality::Waiting };
        self.hold(tag, kind, Some(handle), (quality, generation))?;
        Ok(position)
    }

    /// The position of the next variable.
    fn next_position(&self) -> usize {
        let held = lock(&self.0.held);
        lock(&self.0.free).last().copied().unwrap_or(held.len())
    }

    /// The generation of the next variable.
    fn next_generation(&self) -> u64 {
        self.0.generations.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes a variable after a last reading. Its node stays until [`Self::add`] takes it over or [`Plant::delete_released`]
    /// deletes it. Returns its name; `None` if there is no such variable.
    pub(crate) fn release(&self, position: usize, last: Option<Reading>) -> Option<String> {
        let (now, utc) = (Instant::now(), wall());
        let mut all = lock(&self.0.held);
        let held = all.get_mut(position).filter(|held| !held.is_released)?;
        if let Some(last) = last {
            // The source cannot repeat it, so it is not limited.
            held.store(last, now, utc);
        }
        held.release();
        let name = held.name.to_string();
        lock(&self.0.free).push(position);
        drop(all);
        self.0.plant.release_one(&name);
        Some(name)
    }

    /// Adds a method below a folder.
    ///
    /// # Errors
    /// A node of that name exists, or the feed is closed.
    pub fn add_method(
        &self,
        path: &[String],
        name: &str,
        signature: Signature,
        on_call: OnCall,
    ) -> Result<(), BuildError> {
        self.0.plant.method(&self.0.name, path, name, signature, on_call)?;
        if self.0.is_closed.load(Ordering::Relaxed) {
            self.0
                .plant
                .release_one(&path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("/"));
        }
        Ok(())
    }

    /// Adds a tag whose variable cannot be created. Its readings go to destinations only.
    ///
    /// # Errors
    /// The feed is closed.
    pub fn add_without_variable(&self, tag: &Tag, kind: Kind) -> Result<(), BuildError> {
        self.hold(tag, tag.kind_for(kind), None, (Quality::Waiting, self.next_generation()))
    }

    fn hold(
        &self,
        tag: &Tag,
        kind: Kind,
        variable: Option<VariableHandle>,
        (quality, generation): (Quality, u64),
    ) -> Result<(), BuildError> {
        let name: Arc<str> = tag.full_name().into();
        let mut all = lock(&self.0.held);
        if self.0.is_closed.load(Ordering::Relaxed) {
            drop(all);
            self.0.plant.release_one(&name);
            return Err(NodeError::Unknown(NodeId::string(0, &*name)).into());
        }
        let mut held = Held {
            name,
            taps: Vec::new(),
            last_tapped: None,
            is_standby: false,
            is_untold: false,
            variable,
            kind,
            is_writable: tag.access == Access::ReadWrite,
            scaling: (!tag.scaling.is_identity()).then_some(tag.scaling),
            deadband: tag.deadband,
            last_number: None,
            stale_after: tag.stale_after_in(&self.0.settings),
            lost_after: tag.lost_after.unwrap_or(self.0.settings.lost_after),
            answered: Instant::now(),
            quality,
            waits: None,
            is_queued: false,
            is_released: false,
            is_silent: false,
            generation,
        };
        held.tap_into(&lock(&self.0.taps));
        let free = lock(&self.0.free).pop();
        match free.and_then(|position| all.get_mut(position)) {
            Some(place) => {
                // The position may still be in the queue of the rate limit.
                held.is_queued = place.is_queued;
                *place = held;
            }
            None => all.push(held),
        }
        Ok(())
    }

    /// Sends values to these destinations from now on. Those that received values before continue; others first receive the
    /// current values.
    pub(crate) fn tap_into(&self, taps: &[Arc<Tap>]) {
        let utc = wall();
        let mut all = lock(&self.0.held);
        *lock(&self.0.taps) = taps.to_vec();
        for held in all.iter_mut() {
            for tapped in held.tap_into(taps) {
                held.tell(&tapped, utc);
            }
        }
    }

    /// Accepts a write of a client to the variable of a position and generation. Returns its status.
    fn accept_for(&self, (position, generation): (usize, u64), value: Variant) -> StatusCode {
        if !self.0.statistics.is_connected() {
            return StatusCode::BAD_NO_COMMUNICATION;
        }
        let (kind, scaling) = match lock(&self.0.held).get(position) {
            Some(held) if held.is_of(generation) && !held.is_silent => (held.kind, held.scaling),
            // The source has removed the variable, or its device does not answer.
            _ => return StatusCode::BAD_NO_COMMUNICATION,
        };
        let Some(value) = kind.coerce(value) else { return StatusCode::BAD_TYPE_MISMATCH };
        let value = match scaling {
            None => value,
            Some(scaling) => match scaling.revert(&value) {
                Ok(value) => value,
                Err(status) => return status,
            },
        };
        match self.0.writes.try_send(Queued { write: Write { position, value }, generation }) {
            Ok(()) => StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY,
            Err(_) => StatusCode::BAD_RESOURCE_UNAVAILABLE,
        }
    }

    /// Writes the variable that has this position now, as a client would.
    #[cfg(test)]
    pub(crate) fn accept(&self, position: usize, value: Variant) -> StatusCode {
        let generation = lock(&self.0.held).get(position).map(|held| held.generation);
        generation.map_or(StatusCode::BAD_NODE_ID_UNKNOWN, |it| self.accept_for((position, it), value))
    }

    /// Whether the device of these positions does not answer, while others of the source may. Clients cannot write to it then.
    pub fn set_silent(&self, positions: impl IntoIterator<Item = usize>, is_silent: bool) {
        let mut all = lock(&self.0.held);
        for position in positions {
            if let Some(held) = all.get_mut(position) {
                held.is_silent = is_silent;
            }
        }
    }

    /// Stores the readings of one answer of the source. Beyond the rate limit, the newest reading of each tag is queued; readings
    /// that it replaces are counted.
    pub fn deliver(&self, readings: impl IntoIterator<Item = (usize, Reading)>) {
        let (now, utc) = (Instant::now(), wall());
        self.0.statistics.answered(utc);
        let per_second = self.0.settings.values_per_second_max;
        let mut all = lock(&self.0.held);
        let mut budget = lock(&self.0.budget);
        let mut outcome = Outcome::default();
        // Store queued readings first, they are older.
        budget.store_waiting(&mut all, Some(per_second), (now, utc), &mut outcome);
        let was_empty = budget.line.is_empty();
        let readings = readings.into_iter();
        let (fewest, _) = readings.size_hint();
        let mut granted = budget.take(per_second, fewest, now);
        for (position, reading) in readings {
            let Some(held) = all.get_mut(position) else { continue };
            if granted == 0 {
                granted = budget.take(per_second, 1, now);
            }
            outcome.replaced += usize::from(held.waits.take().is_some());
            if granted == 0 {
                // The source is not late: the value is simply unchanged.
                held.answered = now;
                let time = reading.time.or(Some(utc));
                held.waits = Some(Box::new(Reading { time, ..reading }));
                if !core::mem::replace(&mut held.is_queued, true) {
                    budget.line.push_back(position);
                }
                continue;
            }
            granted -= 1;
            outcome.stored += 1;
            outcome.invalid += usize::from(!held.store(reading, now, utc));
        }
        let begins = was_empty && !budget.line.is_empty();
        drop(budget);
        drop(all);
        self.count(&outcome);
        if begins {
            self.0.begins_to_wait.notify_one();
        }
    }

    fn count(&self, outcome: &Outcome) {
        self.0.statistics.add(Count::Values, outcome.stored);
        self.0.statistics.add(Count::Replaced, outcome.replaced);
        self.0.statistics.add(Count::Invalid, outcome.invalid);
    }

    /// Stores queued readings as far as the rate limit allows. Returns whether some are still queued.
    pub fn store_waiting(&self) -> bool {
        self.store_those(false)
    }

    /// Stores queued readings: those that the rate limit allows, or all. Returns whether some are still queued.
    fn store_those(&self, are_all: bool) -> bool {
        let per_second = self.0.settings.values_per_second_max;
        let times = (Instant::now(), wall());
        let mut outcome = Outcome::default();
        let mut all = lock(&self.0.held);
        let mut budget = lock(&self.0.budget);
        match are_all {
            true => budget.store_all(&mut all, per_second, times, &mut outcome),
            false => budget.store_waiting(&mut all, Some(per_second), times, &mut outcome),
        }
        let are_more = !budget.line.is_empty();
        drop(budget);
        drop(all);
        self.count(&outcome);
        are_more
    }

    /// Waits until a reading is queued.
    pub async fn begins_to_wait(&self) {
        self.0.begins_to_wait.notified().await;
    }
}

#[cfg(test)]
mod tests;
