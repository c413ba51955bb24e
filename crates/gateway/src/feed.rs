//! Where the readings of a source go, and what becomes of them: scaling, deadband, budget, and above all quality.
//!
//! A value that does not come in time is first the last one with Uncertain_LastUsableValue, and after the time that was
//! configured Bad_NoCommunication (Part 8 §6.3). Both timestamps then say when that was found out.

use crate::destination::tap::{Tap, Tapped};
use crate::fault::Fault;
use crate::plant::{Given, OnCall, Plant, Signature, Wanted};
use crate::settings::SourceSettings;
use crate::statistics::{Count, Statistics};
use crate::tag::{Access, Scaling, Tag};
use crate::value::Kind;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use taktwerk::BuildError;
use taktwerk_net::clock::wall;
use taktwerk_server::space::{NodeError, VariableHandle};
use taktwerk_types::{BuiltInType, DataValue, NodeId, StatusCode, UtcTime, Variant};
use tokio::sync::{Notify, mpsc};

/// Writes that wait for a source.
const WRITES_MAX: usize = 1024;

/// What a source says of a tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The value.
    pub value: Variant,
    /// Its status.
    pub status: StatusCode,
    /// When it was made, if the source says so.
    pub time: Option<UtcTime>,
}

impl Reading {
    /// A good value.
    pub fn good(value: impl Into<Variant>) -> Self {
        Self { value: value.into(), status: StatusCode::GOOD, time: None }
    }

    /// There is no value, and why.
    #[must_use]
    pub fn bad(status: StatusCode) -> Self {
        Self { value: Variant::Empty, status, time: None }
    }

    /// A value of another server.
    #[must_use]
    pub fn of(data: DataValue) -> Self {
        let status = data.status();
        Self { value: data.value.unwrap_or_default(), status, time: data.source_timestamp }
    }

    /// The same with the time when it was made.
    #[must_use]
    pub fn at(mut self, time: Option<UtcTime>) -> Self {
        self.time = time.filter(|time| !time.is_null());
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quality {
    /// No value has come yet.
    Waiting,
    Fresh,
    /// Uncertain_LastUsableValue.
    Stale,
    /// Bad_NoCommunication.
    Lost,
}

/// A tag with its variable.
struct Held {
    /// `None` if there is a node of another one with its name.
    variable: Option<VariableHandle>,
    kind: Kind,
    is_writable: bool,
    scaling: Option<Scaling>,
    deadband: f64,
    last_number: Option<f64>,
    every: Option<Duration>,
    answered: Instant,
    quality: Quality,
    name: Arc<str>,
    /// The destinations that get its values.
    taps: Vec<Tapped>,
    /// What they were given last.
    last_tapped: Option<(Variant, StatusCode)>,
    /// Whether another gateway asks the source: then it fills the destinations.
    is_standby: bool,
    /// Whether the destinations have been given nothing since another gateway filled them.
    is_untold: bool,
    /// The newest reading, if it waits until the source may store it.
    waits: Option<Box<Reading>>,
    /// Whether its position is in the line of [`Budget`].
    is_queued: bool,
}

/// A value on its way to a source, as the source understands it.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The tag.
    pub position: usize,
    /// The value, scaled back.
    pub value: Variant,
}

/// What clients write.
#[derive(Debug)]
pub struct Writes(mpsc::Receiver<Write>);

impl Writes {
    /// The next write.
    pub async fn next(&mut self) -> Write {
        match self.0.recv().await {
            Some(write) => write,
            // The feed, which holds the other end, outlives the source's task.
            None => core::future::pending().await,
        }
    }

    /// A write that waits.
    pub fn try_next(&mut self) -> Option<Write> {
        self.0.try_recv().ok()
    }

    /// Throws away what waits: nobody knows when the source returns, and by then these would be old wishes.
    pub fn discard(&mut self, feed: &Feed) {
        let mut count = 0;
        while self.0.try_recv().is_ok() {
            count += 1;
        }
        feed.statistics().add(Count::WriteErrors, count);
    }
}

struct Shared {
    settings: SourceSettings,
    statistics: Statistics,
    plant: Arc<Plant>,
    taps: Vec<Arc<Tap>>,
    held: Mutex<Vec<Held>>,
    budget: Mutex<Budget>,
    down: Mutex<Down>,
    /// Told when the first reading begins to wait.
    begins_to_wait: Notify,
    writes: mpsc::Sender<Write>,
    name: Arc<str>,
    /// Whether the source runs: variables that are added then were found by it.
    is_running: AtomicBool,
    is_closed: AtomicBool,
}

/// A way for a source to store readings. Cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

impl core::fmt::Debug for Feed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Feed").field(&self.0.settings.name).finish()
    }
}

/// Times without a connection. Connections that give no answer do not end them: values of a device that only connects
/// again and again are lost as those of one that is gone.
#[derive(Debug, Default)]
struct Down {
    /// Since when there is no connection.
    since: Option<Instant>,
    /// Since when there was none last time, and how many answers had come by then.
    last: Option<(Instant, u64)>,
}

impl Down {
    fn begin(&mut self, answers: u64) {
        if self.since.is_none() {
            let last = self.last.filter(|(_, before)| *before == answers);
            let since = last.map_or_else(Instant::now, |(since, _)| since);
            self.since = Some(since);
            self.last = Some((since, answers));
        }
    }
}

/// Values that may be stored: refilled by the second.
#[derive(Debug)]
struct Budget {
    left: f64,
    filled: Instant,
    /// Tags whose newest reading waits, in the order in which they began to wait.
    line: VecDeque<usize>,
}

/// What has become of readings.
#[derive(Debug, Default)]
struct Outcome {
    stored: usize,
    replaced: usize,
    invalid: usize,
}

impl Budget {
    fn take(&mut self, per_second: u64, wanted: usize, now: Instant) -> usize {
        let per_second = per_second as f64;
        let filled = self.left + now.duration_since(self.filled).as_secs_f64() * per_second;
        self.filled = now;
        let granted = (filled.min(per_second) as usize).min(wanted);
        self.left = filled.min(per_second) - granted as f64;
        granted
    }

    /// Stores readings that wait: as many as may be stored, or all.
    fn store_waiting(
        &mut self,
        all: &mut [Held],
        per_second: Option<u64>,
        (now, utc): (Instant, UtcTime),
        outcome: &mut Outcome,
    ) {
        while let Some(position) = self.line.front() {
            if let Some(held) = all.get_mut(*position) {
                let may = |budget: &mut Self| per_second.is_none_or(|most| budget.take(most, 1, now) > 0);
                if held.waits.is_some() && !may(self) {
                    return;
                }
                held.is_queued = false;
                if let Some(reading) = held.waits.take() {
                    outcome.stored += 1;
                    outcome.invalid += usize::from(!held.store(*reading, now, utc));
                }
            }
            self.line.pop_front();
        }
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
        let budget = Budget {
            left: settings.values_per_second_max as f64,
            filled: Instant::now(),
            line: VecDeque::new(),
        };
        let feed = Self(Arc::new(Shared {
            name: settings.name.as_str().into(),
            is_running: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            settings,
            statistics: Statistics::default(),
            plant,
            taps,
            held: Mutex::default(),
            budget: Mutex::new(budget),
            down: Mutex::default(),
            begins_to_wait: Notify::new(),
            writes,
        }));
        (feed, Writes(taken))
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

    /// What the source counts.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.0.statistics
    }

    /// The source runs from now on.
    pub fn run(&self) {
        self.0.is_running.store(true, Ordering::Relaxed);
    }

    /// Ends: nothing is stored any more, and the variables wait for another feed.
    pub fn close(&self) {
        let mut held = lock(&self.0.held);
        // Under the lock: whoever adds a variable looks at it there.
        self.0.is_closed.store(true, Ordering::Relaxed);
        held.clear();
        drop(held);
        self.0.statistics.disconnected();
        self.0.plant.release(&self.0.name);
    }

    /// How many variables it has.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.0.held).len()
    }

    /// Whether clients may write a tag.
    #[must_use]
    pub fn is_writable(&self, position: usize) -> bool {
        lock(&self.0.held).get(position).is_some_and(|held| held.is_writable)
    }

    /// Whether it has no variable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a variable; gives its position.
    ///
    /// # Errors
    /// There is a node of that name.
    pub fn add(&self, tag: &Tag, kind: Kind) -> Result<usize, BuildError> {
        let kind = tag.kind_for(kind);
        let position = self.len();
        let shared = Arc::downgrade(&self.0);
        let on_write = Arc::new(move |value: Variant| {
            let Some(shared) = shared.upgrade() else { return StatusCode::BAD_NO_COMMUNICATION };
            Self(shared).accept(position, value)
        });
        let is_found = self.0.is_running.load(Ordering::Relaxed);
        let interval = self.0.settings.interval;
        let Given { handle, is_kept } =
            self.0.plant.variable(&self.0.name, tag, kind, interval, is_found, on_write)?;
        // A value that was there before is not fresh for longer than any other.
        let has_value = is_kept && !handle.get().status.unwrap_or_default().is_bad();
        self.hold(tag, kind, Some(handle), if has_value { Quality::Fresh } else { Quality::Waiting })?;
        Ok(position)
    }

    /// Adds a method below a folder.
    ///
    /// # Errors
    /// There is a node of that name, or the feed is closed.
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

    /// Takes a tag whose variable cannot be added. Its readings go to the destinations only.
    ///
    /// # Errors
    /// The feed is closed.
    pub fn add_without_variable(&self, tag: &Tag, kind: Kind) -> Result<(), BuildError> {
        self.hold(tag, tag.kind_for(kind), None, Quality::Waiting)
    }

    fn hold(
        &self,
        tag: &Tag,
        kind: Kind,
        variable: Option<VariableHandle>,
        quality: Quality,
    ) -> Result<(), BuildError> {
        let name: Arc<str> = tag.full_name().into();
        // Destinations have no use for the encoding of a structure.
        let is_structure = kind.element == BuiltInType::ExtensionObject;
        let taps = self.0.taps.iter().filter(|_| !is_structure).filter_map(|tap| Tap::of(tap, &name));
        let taps = taps.collect();
        let mut all = lock(&self.0.held);
        if self.0.is_closed.load(Ordering::Relaxed) {
            drop(all);
            self.0.plant.release_one(&name);
            return Err(NodeError::Unknown(NodeId::string(0, &*name)).into());
        }
        all.push(Held {
            name,
            taps,
            last_tapped: None,
            is_standby: false,
            is_untold: false,
            variable,
            kind,
            is_writable: tag.access == Access::ReadWrite,
            scaling: (!tag.scaling.is_identity()).then_some(tag.scaling),
            deadband: tag.deadband,
            last_number: None,
            every: tag.expect_every.or(self.0.settings.interval),
            answered: Instant::now(),
            quality,
            waits: None,
            is_queued: false,
        });
        Ok(())
    }

    /// Takes a client's write; gives its status.
    pub(crate) fn accept(&self, position: usize, value: Variant) -> StatusCode {
        if !self.0.statistics.is_connected() {
            return StatusCode::BAD_NO_COMMUNICATION;
        }
        let (kind, scaling) = match lock(&self.0.held).get(position) {
            Some(held) => (held.kind, held.scaling),
            None => return StatusCode::BAD_NODE_ID_UNKNOWN,
        };
        let Some(value) = kind.coerce(value) else { return StatusCode::BAD_TYPE_MISMATCH };
        let value = match scaling {
            None => value,
            Some(scaling) => match scaling.revert(&value) {
                Ok(value) => value,
                Err(status) => return status,
            },
        };
        match self.0.writes.try_send(Write { position, value }) {
            Ok(()) => StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY,
            Err(_) => StatusCode::BAD_RESOURCE_UNAVAILABLE,
        }
    }

    /// Stores readings. It is one answer of the source, however many there are. Of readings that are more than may be stored,
    /// the newest of each tag waits; those that it replaces are counted.
    pub fn deliver(&self, readings: impl IntoIterator<Item = (usize, Reading)>) {
        let (now, utc) = (Instant::now(), wall());
        self.0.statistics.answered(utc);
        let per_second = self.0.settings.values_per_second_max;
        let mut all = lock(&self.0.held);
        let mut budget = lock(&self.0.budget);
        let mut outcome = Outcome::default();
        // They have waited longer.
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
                // The source is not late, and the value is as old as it is now.
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

    /// Stores readings that wait, as far as they may be stored now. Whether others still wait.
    pub fn store_waiting(&self) -> bool {
        self.store_those(Some(self.0.settings.values_per_second_max))
    }

    fn store_those(&self, per_second: Option<u64>) -> bool {
        let times = (Instant::now(), wall());
        let mut outcome = Outcome::default();
        let mut all = lock(&self.0.held);
        let mut budget = lock(&self.0.budget);
        budget.store_waiting(&mut all, per_second, times, &mut outcome);
        let are_more = !budget.line.is_empty();
        drop(budget);
        drop(all);
        self.count(&outcome);
        are_more
    }

    /// Waits until a reading has to wait.
    pub async fn begins_to_wait(&self) {
        self.0.begins_to_wait.notified().await;
    }

    fn go_down(&self) {
        // What came before the end is the last usable value. There is at most one for each tag.
        self.store_those(None);
        lock(&self.0.down).begin(self.0.statistics.answers());
    }

    /// There is a connection.
    pub fn connected(&self) {
        lock(&self.0.down).since = None;
        self.0.statistics.connected();
    }

    /// Something has failed, and the source goes on.
    pub fn failed(&self, fault: &Fault) {
        self.0.statistics.failed(&fault.to_string());
    }

    /// The connection has failed, and another one is made at once. Values stay as they are meanwhile, unless that takes
    /// longer than one look for values that do not come.
    pub fn faltered(&self, fault: &Fault) {
        self.go_down();
        self.0.statistics.disconnected();
        self.failed(fault);
    }

    /// Another gateway may ask the source, and fill the destinations: they get nothing from here until [`Self::take_over`].
    pub fn wait(&self) {
        for held in lock(&self.0.held).iter_mut() {
            held.is_standby = true;
        }
    }

    /// This gateway asks the source from now on. The destinations get the first value, whatever they had before, and Bad if
    /// none comes. Nothing happens if it did not wait.
    pub fn take_over(&self) {
        let now = Instant::now();
        let mut all = lock(&self.0.held);
        if !all.iter().any(|held| held.is_standby) {
            return;
        }
        for held in all.iter_mut().filter(|held| held.is_standby) {
            held.is_standby = false;
            held.is_untold = true;
            held.last_tapped = None;
            held.last_number = None;
            if held.quality != Quality::Fresh {
                held.answered = now;
            }
        }
        drop(all);
        let mut down = lock(&self.0.down);
        down.last = None;
        if let Some(since) = &mut down.since {
            *since = now;
        }
    }

    /// Another gateway asks the source.
    pub fn stand_by(&self) {
        self.wait();
        self.go_down();
        self.0.statistics.disconnected();
        self.watch();
    }

    /// The source has ended with a fault.
    pub fn disconnected(&self, fault: &Fault) {
        self.go_down();
        self.0.statistics.disconnected();
        self.failed(fault);
        self.watch();
    }

    /// How often [`Self::watch`] has to look.
    #[must_use]
    pub fn watch_interval(&self) -> Duration {
        let every = lock(&self.0.held).iter().filter_map(|held| held.every).min();
        let shortest = every.into_iter().chain(self.0.settings.stale_after).min();
        shortest
            .map_or(Duration::from_secs(1), |shortest| shortest / 2)
            .clamp(Duration::from_millis(50), Duration::from_secs(1))
    }

    /// Looks for values that did not come.
    pub fn watch(&self) {
        let (now, utc) = (Instant::now(), wall());
        let down = lock(&self.0.down).since;
        let settings = &self.0.settings;
        let (mut uncertain, mut lost, mut missed) = (0, 0, 0);
        for held in lock(&self.0.held).iter_mut() {
            let age = now.duration_since(held.answered);
            let stale_after = settings.stale_after.or(held.every.map(|every| every * 2));
            // Values that come by themselves are as old as the connection's end.
            let (is_stale, is_lost) = match (stale_after, down) {
                (Some(after), _) => (age > after, age > after.max(settings.lost_after)),
                (None, Some(since)) => (true, now.duration_since(since) > settings.lost_after),
                (None, None) => (false, false),
            };
            let quality = match held.quality {
                Quality::Waiting if is_lost => Quality::Lost,
                Quality::Waiting => Quality::Waiting,
                _ if is_lost => Quality::Lost,
                Quality::Fresh if is_stale => Quality::Stale,
                other => other,
            };
            // What was lost here before was there for the destinations.
            let is_due = held.is_untold && is_lost && quality == Quality::Lost;
            if quality != held.quality || is_due {
                missed += usize::from(held.quality == Quality::Fresh);
                held.decline(quality, utc);
            }
            uncertain += usize::from(held.quality == Quality::Stale);
            lost += usize::from(held.quality == Quality::Lost);
        }
        self.0.statistics.add(Count::Missed, missed);
        self.0.statistics.set_quality(uncertain, lost);
        // What the source had found before its settings were changed, and has not found again.
        let grace = settings.lost_after + settings.deadline;
        if self.0.plant.sweep(&self.0.name, grace, &Wanted::default())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let plant = Arc::clone(&self.0.plant);
            runtime.spawn_blocking(move || plant.sweep_types());
        }
    }
}

impl Held {
    /// Stores a reading; false if it does not fit the type.
    fn store(&mut self, reading: Reading, now: Instant, utc: UtcTime) -> bool {
        let Reading { value, status, time } = reading;
        self.answered = now;
        let was_fresh = core::mem::replace(&mut self.quality, Quality::Fresh) == Quality::Fresh;
        let time = time.unwrap_or(utc);
        if status.is_bad() {
            self.last_number = None;
            self.set(Variant::Empty, status, time, utc);
            return true;
        }
        let converted = match self.scaling {
            Some(scaling) => scaling.apply(&value, self.kind.element),
            None => self.kind.coerce(value).map(|value| (value, StatusCode::GOOD)),
        };
        let Some((value, limited)) = converted else {
            self.last_number = None;
            self.set(Variant::Empty, StatusCode::BAD_TYPE_MISMATCH, time, utc);
            return false;
        };
        let status = if status == StatusCode::GOOD { limited } else { status };
        if self.deadband > 0.0 {
            let number = value.as_f64();
            let is_near = |last: f64| number.is_some_and(|number| (number - last).abs() < self.deadband);
            if was_fresh && status == StatusCode::GOOD && self.last_number.is_some_and(is_near) {
                return true;
            }
            self.last_number = number.filter(|_| status == StatusCode::GOOD);
        }
        self.set(value, status, time, utc);
        true
    }

    /// Gives a value to the variable and to the destinations.
    fn set(&mut self, value: Variant, status: StatusCode, time: UtcTime, utc: UtcTime) {
        if !self.taps.is_empty() && !self.is_standby {
            self.is_untold = false;
            let last = self.last_tapped.as_ref();
            let is_change = last.is_none_or(|(last, before)| *before != status || !last.same_as(&value));
            for tap in &self.taps {
                tap.push(&self.name, &value, status, (time, utc), is_change);
            }
            if is_change {
                self.last_tapped = Some((value.clone(), status));
            }
        }
        if let Some(variable) = &self.variable {
            variable.set_with(value, status, time, utc);
        }
    }

    /// No value has come.
    fn decline(&mut self, quality: Quality, utc: UtcTime) {
        self.quality = quality;
        self.last_number = None;
        let last = self.variable.as_ref().map(VariableHandle::get).unwrap_or_default();
        match last.value {
            Some(value) if quality == Quality::Stale && !last.status.unwrap_or_default().is_bad() => {
                self.set(value, StatusCode::UNCERTAIN_LAST_USABLE_VALUE, utc, utc);
            }
            _ => self.set(Variant::Empty, StatusCode::BAD_NO_COMMUNICATION, utc, utc),
        }
    }
}

#[cfg(test)]
mod tests;
