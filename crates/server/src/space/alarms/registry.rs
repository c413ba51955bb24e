//! The registry of a server's conditions: their inputs, deadlines and events.
//!
//! A driver calls [`AddressSpace::poll_alarms`]. Writers of Variables only set the bit that they set for every shard.
//! The lock is held for a few conditions at a time, because shards need it for Methods.

use super::condition::Condition;
use super::replaced::Gone;
use super::saved::Saved;
use super::watchers::Watchers;
use crate::alarm::condition::Certified;
use crate::alarm::detector::Input;
use crate::alarm::fields::{fields, name_of};
use crate::alarm::limits::LimitSet;
use crate::alarm::machine::{Finding, Note, Notes};
use crate::alarm::message::message;
use crate::alarm::shelving::later;
use crate::alarm::{ConditionView, Operation, State};
use crate::event::{Event, NewEvent};
use crate::space::{AddressSpace, Wake};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use taktwerk_slots::{PAGE_SLOTS, Page};
use taktwerk_types::{ByteString, NodeId, StatusCode, UtcTime, Variant};

/// Conditions evaluated per lock, because a shard may be waiting for it.
const SLICE: usize = 4;
/// Conditions copied per lock.
const VIEWED: usize = 32;
/// Delay before a due but undecided condition is evaluated again, in milliseconds.
const AGAIN_MS: f64 = 1_000.0;

/// The conditions of an address space.
#[derive(Debug, Default)]
pub struct Alarms {
    inner: Mutex<Inner>,
    /// Incremented by every state change; saved states are then outdated.
    changes: AtomicU64,
    /// Whether a driver calls [`AddressSpace::poll_alarms`].
    is_driven: AtomicBool,
    waker: OnceLock<Waker>,
}

/// Wakes the thread that calls [`AddressSpace::poll_alarms`].
struct Waker(Box<dyn Wake>);

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) conditions: Vec<Condition>,
    /// Slots of removed conditions.
    pub(super) vacant: Vec<u32>,
    pub(super) by_id: BTreeMap<NodeId, u32>,
    /// Ids of conditions that are being added.
    pub(super) adding: BTreeSet<NodeId>,
    /// Groups and metrics, if there are any.
    pub(super) watchers: Option<Box<Watchers>>,
    /// The conditions with an input, by the index of its slot.
    pub(super) by_slot: BTreeMap<u32, Vec<u32>>,
    pub(super) due: BTreeSet<(i64, u32)>,
    /// States from before the restart, by the keys of their conditions.
    pub(super) saved: BTreeMap<String, Saved>,
    pages: Vec<Arc<Page>>,
    /// Changed slots that have not been handled yet.
    pub(super) dirty: Vec<u32>,
    /// Slots of deleted Variables.
    pub(super) gone: BTreeMap<u32, Gone>,
}

impl Alarms {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of conditions.
    #[must_use]
    pub fn len(&self) -> usize {
        let inner = self.lock();
        inner.conditions.len() - inner.vacant.len()
    }

    /// Whether there are no conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Declares that the caller will call [`AddressSpace::poll_alarms`] from now on. `false`: there is a driver
    /// already.
    #[must_use]
    pub fn claim_driver(&self) -> bool {
        !self.is_driven.swap(true, Ordering::AcqRel)
    }

    /// Sets how to wake the thread that calls [`AddressSpace::poll_alarms`]. Only the first call counts.
    pub fn set_waker(&self, waker: Box<dyn Wake>) {
        let _ = self.waker.set(Waker(waker));
    }

    /// Wakes that thread, because the conditions have changed.
    pub fn wake_driver(&self) {
        if let Some(Waker(waker)) = self.waker.get() {
            waker.wake();
        }
    }

    /// Whether a condition or group has Variables as inputs, or metrics are shown. If not, only time changes states.
    #[must_use]
    pub fn watches_variables(&self) -> bool {
        let inner = self.lock();
        !inner.by_slot.is_empty() || inner.watchers.is_some()
    }

    /// Incremented by every state change.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The condition and its source for an ObjectId of a call: a condition, or its ShelvingState.
    pub(crate) fn condition_of(&self, object: &NodeId) -> Option<(NodeId, NodeId)> {
        let inner = self.lock();
        let condition = inner.conditions.get(*inner.by_id.get(object)? as usize)?;
        Some((condition.spec.id.clone(), condition.spec.source.clone()))
    }

    /// Restores states from before a restart, for conditions that are added from now on.
    ///
    /// # Errors
    /// The bytes were not created by [`AddressSpace::save_alarms`].
    pub fn restore(&self, bytes: &[u8]) -> Result<usize, super::saved::NotSaved> {
        let saved = super::saved::read(bytes)?;
        let count = saved.len();
        self.lock().saved.extend(saved);
        Ok(count)
    }

    /// The events of retained conditions for ConditionRefresh: of those in `range`, until there are at least
    /// `events_max`. Returns the next position, or `None` at the end.
    pub(crate) fn retained(
        &self,
        space: &AddressSpace,
        range: core::ops::Range<usize>,
        events_max: usize,
        now: UtcTime,
        out: &mut Vec<Arc<Event>>,
    ) -> Option<usize> {
        let inner = self.lock();
        let len = inner.conditions.len();
        let mut at = range.start;
        while at < range.end.min(len) && out.len() < events_max {
            if let Some(condition) = inner.conditions.get(at) {
                condition.retained(space, now, out);
            }
            at += 1;
        }
        (at < len).then_some(at)
    }
}

impl AddressSpace {
    /// The conditions, if there are any.
    #[must_use]
    pub fn alarms(&self) -> Option<&Arc<Alarms>> {
        self.alarms.get()
    }

    /// The conditions; creates the registry if necessary.
    pub fn alarms_or_new(&self) -> &Arc<Alarms> {
        self.alarms.get_or_init(Arc::default)
    }

    /// Evaluates inputs written since the last call, and due deadlines. Returns when the next deadline is due. Call it
    /// repeatedly: abnormal inputs are detected only here.
    pub fn poll_alarms(&self, now: UtcTime) -> Option<UtcTime> {
        let alarms = self.alarms()?;
        alarms.lock().take_dirty(self);
        loop {
            let mut inner = alarms.lock();
            let rest = inner.dirty.len().saturating_sub(SLICE);
            let slots = inner.dirty.split_off(rest);
            if slots.is_empty() {
                break;
            }
            for slot in slots {
                if inner.is_gone(slot) {
                    inner.gone.entry(slot).or_insert_with(|| Gone::since(now));
                    continue;
                }
                inner.look_at_member(slot);
                for number in inner.by_slot.get(&slot).cloned().unwrap_or_default() {
                    alarms.count(inner.look(self, number, now));
                }
            }
        }
        let retry = self.find_added_again(alarms, now);
        loop {
            let mut inner = alarms.lock();
            let numbers = inner.take_suppressed(SLICE);
            if numbers.is_empty() {
                break;
            }
            for number in numbers {
                alarms.count(inner.tell(self, number, Notes::new(), now));
            }
        }
        let shows = alarms.lock().show_metrics(now);
        loop {
            let mut inner = alarms.lock();
            for _ in 0..SLICE {
                match inner.due.first().copied() {
                    Some((at, number)) if at <= now.ticks() => alarms.count(inner.tick(self, number, now)),
                    first => {
                        let first = first.map(|(at, _)| UtcTime::from_ticks(at));
                        return [first, shows, retry].into_iter().flatten().min();
                    }
                }
            }
        }
    }

    /// Executes a Method of a condition for an operator.
    ///
    /// # Errors
    /// Bad_NodeIdUnknown if the condition does not exist, or the result codes of the Method's clause.
    pub fn operate_condition(
        &self,
        condition: &NodeId,
        operation: &Operation,
        now: UtcTime,
    ) -> Result<(), StatusCode> {
        self.change_condition(condition, now, |condition| condition.machine.operate(operation, now))
    }

    /// Sets, on behalf of the application, whether a condition is active, its severity and its message.
    ///
    /// # Errors
    /// The condition does not exist.
    pub fn set_condition(
        &self,
        condition: &NodeId,
        is_active: bool,
        severity: u16,
        text: &str,
        now: UtcTime,
    ) -> Result<(), StatusCode> {
        self.change_condition(condition, now, |condition| {
            condition.detector.set(is_active);
            let limits = LimitSet::NONE;
            let finding = Finding { active: is_active, limits, severity, quality: StatusCode::GOOD };
            Ok(condition.machine.found(finding, text, now))
        })
    }

    /// Changes the date of a date alarm without an input Variable, for example for a new certificate.
    ///
    /// # Errors
    /// The condition does not exist.
    pub fn set_condition_date(
        &self,
        condition: &NodeId,
        date: UtcTime,
        certified: Option<Certified>,
        now: UtcTime,
    ) -> Result<(), StatusCode> {
        self.change_condition(condition, now, |condition| {
            (condition.spec.date, condition.spec.certified) = (Some(date), certified);
            let notes = condition.look(now);
            if notes.is_empty() {
                condition.show(condition.last.clone(), now);
            }
            Ok(notes)
        })
    }

    /// Activates a dialog until an operator responds.
    ///
    /// # Errors
    /// The condition does not exist.
    pub fn ask(&self, condition: &NodeId, now: UtcTime) -> Result<(), StatusCode> {
        self.change_condition(condition, now, |condition| Ok(condition.machine.ask(now)))
    }

    fn change_condition(
        &self,
        id: &NodeId,
        now: UtcTime,
        change: impl FnOnce(&mut Condition) -> Result<Notes, StatusCode>,
    ) -> Result<(), StatusCode> {
        let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
        let alarms = self.alarms().ok_or(unknown)?;
        let mut inner = alarms.lock();
        let number = inner.by_id.get(id).copied().ok_or(unknown)?;
        let condition = inner.conditions.get_mut(number as usize).ok_or(unknown)?;
        let notes = change(condition)?;
        let changed = inner.tell(self, number, notes, now);
        inner.arm(number, now);
        alarms.count(changed);
        Ok(())
    }

    /// At most `count` conditions with their branches: those with Retain, or all.
    #[must_use]
    pub fn conditions(&self, only_retained: bool, count: usize) -> Vec<ConditionView> {
        let Some(alarms) = self.alarms() else { return Vec::new() };
        let mut found = Vec::new();
        let mut from = 0;
        loop {
            let inner = alarms.lock();
            let slice = inner.conditions.get(from..).unwrap_or_default();
            if slice.is_empty() || found.len() >= count {
                found.truncate(count);
                return found;
            }
            let wanted = |view: &ConditionView| !only_retained || view.state.retain();
            found.extend(slice.iter().take(VIEWED).flat_map(Condition::views).filter(wanted));
            from += VIEWED;
        }
    }

    /// One condition.
    #[must_use]
    pub fn condition(&self, id: &NodeId) -> Option<ConditionView> {
        let inner = self.alarms()?.lock();
        inner.conditions.get(*inner.by_id.get(id)? as usize)?.views().next()
    }

    /// The states of all conditions, for [`Alarms::restore`] after a restart.
    #[must_use]
    pub fn save_alarms(&self) -> Vec<u8> {
        let Some(alarms) = self.alarms() else { return Vec::new() };
        // States of conditions that have not been added yet are kept.
        let mut all: Vec<(String, Saved)> =
            alarms.lock().saved.iter().map(|(key, saved)| (key.clone(), saved.clone())).collect();
        let mut from = 0;
        loop {
            let inner = alarms.lock();
            let slice = inner.conditions.get(from..).unwrap_or_default();
            if slice.is_empty() {
                break;
            }
            all.extend(
                slice
                    .iter()
                    .take(VIEWED)
                    .filter(|condition| !condition.is_removed)
                    .map(|condition| (self.node_key(&condition.spec.id).to_string(), Saved::of(condition))),
            );
            from += VIEWED;
        }
        super::saved::write(all)
    }
}

impl Alarms {
    pub(super) fn count(&self, changed: bool) {
        if changed {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Inner {
    /// Whether the Variable of a watched slot was deleted.
    fn is_gone(&self, slot: u32) -> bool {
        self.pages.get(slot as usize / PAGE_SLOTS).is_some_and(|page| page.is_gone(slot))
    }

    /// Records which input slots were written.
    fn take_dirty(&mut self, space: &AddressSpace) {
        let store = space.slots();
        self.pages.extend(store.pages_from(self.pages.len()));
        let Self { pages, dirty, .. } = self;
        let shard = store.alarms();
        store.take_dirty_pages(shard, pages.len(), |number| {
            let Some(page) = pages.get(number) else { return };
            page.take_dirty(shard, |at| dirty.push((number * PAGE_SLOTS + at) as u32));
        });
        dirty.sort_unstable();
        dirty.dedup();
    }

    /// Evaluates the input of a condition.
    pub(super) fn look(&mut self, space: &AddressSpace, number: u32, now: UtcTime) -> bool {
        let Some(condition) = self.conditions.get_mut(number as usize) else { return false };
        let notes = condition.look(now);
        let changed = self.tell(space, number, notes, now);
        self.arm(number, now);
        changed
    }

    /// Handles the deadline of a condition.
    fn tick(&mut self, space: &AddressSpace, number: u32, now: UtcTime) -> bool {
        let Some(condition) = self.conditions.get_mut(number as usize) else { return false };
        let mut changed = false;
        if condition.detector.deadline().is_some_and(|at| at.ticks() <= now.ticks()) {
            let notes = condition.look(now);
            changed = self.tell(space, number, notes, now);
        }
        let Some(condition) = self.conditions.get_mut(number as usize) else { return changed };
        let notes = condition.machine.tick(now);
        changed |= self.tell(space, number, notes, now);
        self.arm(number, now);
        changed
    }

    /// Reports changes of a condition and of its groups.
    pub(super) fn tell(&mut self, space: &AddressSpace, number: u32, notes: Notes, now: UtcTime) -> bool {
        let notes = self.follow(number, notes, now);
        self.conditions.get_mut(number as usize).is_some_and(|condition| condition.tell(space, notes, now))
    }

    /// Updates the list of deadlines.
    pub(super) fn arm(&mut self, number: u32, now: UtcTime) {
        let Some(condition) = self.conditions.get_mut(number as usize) else { return };
        // If the cause remains, as with a Bad input, it is evaluated again later.
        let again = later(now, AGAIN_MS);
        let next = condition.next_deadline();
        let next = next.map(|at| if at.ticks() <= now.ticks() { again } else { at });
        if next == condition.deadline {
            return;
        }
        if let Some(before) = condition.deadline {
            self.due.remove(&(before.ticks(), number));
        }
        if let Some(next) = next {
            self.due.insert((next.ticks(), number));
        }
        condition.deadline = next;
    }
}

impl Condition {
    /// Evaluates the input.
    pub(super) fn look(&mut self, now: UtcTime) -> Notes {
        let (value, status, source) = match (&self.input, self.spec.date) {
            (Some(input), _) => {
                let snapshot = input.read();
                (snapshot.value(), snapshot.status, snapshot.source)
            }
            (None, Some(date)) => (date.into(), StatusCode::GOOD, UtcTime::NULL),
            (None, None) => return Notes::new(),
        };
        if status == StatusCode::BAD_WAITING_FOR_INITIAL_DATA {
            return Notes::new();
        }
        let target = self.target.as_ref().map(|slot| slot.read().value());
        let time = if source.is_null() { now } else { source };
        let input = Input { value: &value, status, time, target: target.as_ref() };
        let finding = self.detector.look(input, now);
        if self.machine.knows(&finding) {
            return Notes::new();
        }
        let text = message(&self.spec, &finding, &value);
        self.machine.found(finding, &text, now)
    }

    /// Raises the events of changes and updates the nodes.
    fn tell(&mut self, space: &AddressSpace, notes: Notes, now: UtcTime) -> bool {
        if notes.is_empty() {
            return false;
        }
        self.machine.state.own.clone_from(&self.own);
        for note in notes {
            let id = space.events().next_event_id();
            space.raise_with(now, || self.event(&note, &id, now));
            let branch = note.branch.as_ref().map(|(number, _)| *number);
            self.machine.told(branch, id.clone());
            if branch.is_none() {
                self.last = Some(id);
            }
        }
        let id = self.last.clone();
        self.show(id, now);
        true
    }

    /// Creates the event for a change.
    fn event(&self, note: &Note, id: &ByteString, now: UtcTime) -> NewEvent {
        let branch = note.branch.as_ref();
        let state = branch.map_or(self.machine.state(), |(_, state)| state);
        self.event_of(state, branch.map(|(number, _)| *number), id, now)
    }

    /// Creates an event for a state.
    fn event_of(&self, state: &State, branch: Option<u32>, id: &ByteString, now: UtcTime) -> NewEvent {
        let spec = &self.spec;
        let event = NewEvent::new(spec.type_id(), spec.source.clone())
            .source_name(&*spec.source_name)
            .event_id(id.clone())
            .time(state.time)
            .severity(state.severity)
            .message(&*state.message)
            .condition(spec.id.clone());
        let own = state.own.iter().flat_map(|own| own.iter());
        let event = own.fold(event, |event, (name, value)| event.field(name, value.clone()));
        let all = fields(spec, &self.machine.rules, state, branch, &self.input_value(), now);
        all.into_iter().fold(event, |event, (path, value)| event.field(name_of(path), value))
    }

    /// Updates the nodes with the state.
    pub(super) fn show(&self, id: Option<ByteString>, now: UtcTime) {
        let Some(nodes) = &self.nodes else { return };
        let (spec, state) = (&self.spec, self.machine.state());
        nodes.show(&fields(spec, &self.machine.rules, state, None, &self.input_value(), now), now);
        let base: [(&str, Variant); 7] = [
            ("EventType", spec.type_id().into()),
            ("SourceNode", spec.source.clone().into()),
            ("SourceName", (&*spec.source_name).into()),
            ("Time", state.time.into()),
            ("ReceiveTime", state.time.into()),
            ("Message", taktwerk_types::LocalizedText::from(&*state.message).into()),
            ("Severity", state.severity.into()),
        ];
        for (path, value) in &base {
            nodes.set(path, value, now);
        }
        for (name, value) in state.own.iter().flat_map(|own| own.iter()) {
            nodes.set(&name.to_string(), value, now);
        }
        nodes.set("EventId", &id.unwrap_or_default().into(), now);
    }

    /// The events of the condition and its branches with Retain (§5.5.7). They are the last events, with the same
    /// EventIds.
    fn retained(&self, space: &AddressSpace, now: UtcTime, out: &mut Vec<Arc<Event>>) {
        let branches = self.machine.branches().iter();
        let branches =
            branches.filter_map(|branch| Some((&branch.state, Some(branch.number), branch.ids.back()?)));
        let state = self.machine.state();
        let own = self.last.as_ref().filter(|_| state.retain()).map(|id| (state, None, id));
        for (state, branch, id) in branches.chain(own) {
            out.push(space.shared_event(self.event_of(state, branch, id, now), now));
        }
    }
}
