//! The conditions of a server: who watches which Variable, what is due when, and where events go.
//!
//! A driver calls [`AddressSpace::poll_alarms`]; writers of Variables do nothing for alarms but set the bit that they set for
//! every shard. The lock is held for a few conditions at a time, because shards want it for Methods.

use super::condition::Condition;
use super::saved::Saved;
use super::watchers::Watchers;
use crate::alarm::detector::{Detector, Input};
use crate::alarm::fields::{fields, name_of};
use crate::alarm::limits::{LimitSet, LimitsProblem};
use crate::alarm::machine::{Finding, Machine, Note, Notes};
use crate::alarm::message::message;
use crate::alarm::shelving::later;
use crate::alarm::{ConditionSpec, ConditionView, Operation, OwnFields, State};
use crate::event::filter::Types;
use crate::event::{Event, FieldName, NewEvent};
use crate::space::data_type::{Expected, Fit};
use crate::space::page::{PAGE_SLOTS, Page};
use crate::space::{AddressSpace, NodeError};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_types::{ByteString, NodeId, StatusCode, UtcTime, Variant};

/// Conditions that are looked at while the lock is held once: a shard may wait for it.
const SLICE: usize = 4;
/// Conditions that are copied while it is held once.
const VIEWED: usize = 32;
/// When what is due and could not be decided is looked at again, in milliseconds.
const AGAIN_MS: f64 = 1_000.0;

/// Why a condition is not added.
#[derive(Debug, thiserror::Error)]
pub enum AlarmError {
    /// The limits of an alarm cannot be meant.
    #[error("the alarm {name}: {problem}")]
    Limits {
        /// ConditionName.
        name: Box<str>,
        /// What is wrong.
        problem: LimitsProblem,
    },
    /// There is a condition of this id.
    #[error("there is a condition {0} already: give the alarm another name")]
    Taken(NodeId),
    /// The type of an alarm does not say what the alarm does.
    #[error("the alarm {name}: {type_id} is no subtype of {base}, which an alarm that watches this has")]
    Type {
        /// ConditionName.
        name: Box<str>,
        /// The type that was given.
        type_id: NodeId,
        /// The type of its kind.
        base: NodeId,
    },
    /// A value is for a field that cannot have one.
    #[error(
        "the alarm {name}: {field} is no field that {type_id} adds to {base}: the alarm itself sets the others"
    )]
    Field {
        /// ConditionName.
        name: Box<str>,
        /// The path of the field.
        field: String,
        /// The type of the alarm.
        type_id: NodeId,
        /// The type of its kind.
        base: NodeId,
    },
    /// A value has another type than its field.
    #[error(
        "the alarm {name}: {field} is a field of {wanted}, which {found} is not: give a value of that type"
    )]
    FieldType {
        /// ConditionName.
        name: Box<str>,
        /// The path of the field.
        field: String,
        /// The DataType of the field, and whether it is an array.
        wanted: String,
        /// The type of the value.
        found: String,
    },
    /// What is to get the behaviour of an alarm is no instance of a condition.
    #[error("{0} is no Object of a ConditionType: name an instance that an imported NodeSet has")]
    NoInstance(NodeId),
    /// A group has a member that it cannot have.
    #[error("the group {group}: {member} is no alarm{}. Add alarms before their groups",
        if *.suppresses { " and no Boolean variable" } else { "" })]
    Member {
        /// What the group is called.
        group: Box<str>,
        /// The member.
        member: NodeId,
        /// Whether it is a member of a group that suppresses, which may be a Variable too.
        suppresses: bool,
    },
    /// A group has no member (§5.8.3).
    #[error("the group {0} has no alarms: add at least one")]
    Empty(Box<str>),
    /// Its nodes cannot be added, or there is no such Variable.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// The conditions of an address space.
#[derive(Debug, Default)]
pub struct Alarms {
    inner: Mutex<Inner>,
    /// Goes up with every change of a state: what is saved is old then.
    changes: AtomicU64,
    /// Somebody calls [`AddressSpace::poll_alarms`].
    is_driven: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) conditions: Vec<Condition>,
    pub(super) by_id: BTreeMap<NodeId, u32>,
    /// What watches conditions, if there is something.
    pub(super) watchers: Option<Box<Watchers>>,
    /// The conditions that watch a slot, by its index.
    by_slot: BTreeMap<u32, Vec<u32>>,
    due: BTreeSet<(i64, u32)>,
    /// States of before the restart, by the keys of their conditions.
    saved: BTreeMap<String, Saved>,
    pages: Vec<Arc<Page>>,
    /// Changed slots that were not looked at yet.
    pub(super) dirty: Vec<u32>,
}

impl Alarms {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many conditions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().conditions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says that the caller will call [`AddressSpace::poll_alarms`] from now on. `false`: somebody else does already.
    #[must_use]
    pub fn claim_driver(&self) -> bool {
        !self.is_driven.swap(true, Ordering::AcqRel)
    }

    /// Goes up with every change of a state.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The ConditionId that an ObjectId of a call means: a condition, or its ShelvingState.
    pub(crate) fn condition_of(&self, object: &NodeId) -> Option<(NodeId, NodeId)> {
        let inner = self.lock();
        let condition = inner.conditions.get(*inner.by_id.get(object)? as usize)?;
        Some((condition.spec.id.clone(), condition.spec.source.clone()))
    }

    /// Takes over states of before a restart, for conditions that are added from now on.
    ///
    /// # Errors
    /// The bytes are no states that [`AddressSpace::save_alarms`] has made.
    pub fn restore(&self, bytes: &[u8]) -> Result<usize, super::saved::NotSaved> {
        let saved = super::saved::read(bytes)?;
        let count = saved.len();
        self.lock().saved.extend(saved);
        Ok(count)
    }

    /// The events of some retained conditions, for ConditionRefresh: of those in `range`, until there are `events_max`, and
    /// those of the last one. Gives the next place, or `None` at the end.
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
    /// The conditions, if there are some.
    #[must_use]
    pub fn alarms(&self) -> Option<&Arc<Alarms>> {
        self.alarms.get()
    }

    /// The conditions; there may be some from now on.
    pub fn alarms_or_new(&self) -> &Arc<Alarms> {
        self.alarms.get_or_init(Arc::default)
    }

    /// Adds a condition, in the state that it had before a restart if that was [restored](Alarms::restore).
    ///
    /// # Errors
    /// The limits cannot be meant, the id is taken, the type is none of its kind, or the source, the input or the target does not exist.
    pub fn add_condition(&self, mut spec: ConditionSpec, now: UtcTime) -> Result<(), AlarmError> {
        if let Err(problem) = spec.kind.check() {
            return Err(AlarmError::Limits { name: spec.name, problem });
        }
        if spec.is_bound && !self.bind_condition(&mut spec)? {
            return Err(AlarmError::NoInstance(spec.id));
        }
        self.check_condition_type(&spec)?;
        self.check_own_fields(&spec, &spec.own)?;
        let alarms = Arc::clone(self.alarms_or_new());
        if alarms.lock().by_id.contains_key(&spec.id) {
            return Err(AlarmError::Taken(spec.id));
        }
        let slot = |id: &Option<NodeId>| -> Result<_, NodeError> {
            let Some(id) = id else { return Ok(None) };
            let nodes = self.read();
            let handle = nodes.slot_handle(nodes.find(id)?);
            handle.map(Some).ok_or_else(|| NodeError::Unknown(id.clone()))
        };
        let (input, target) = (slot(&spec.input)?, slot(&spec.target)?);
        if spec.source_name.is_empty() {
            spec.source_name = self.source_name_of(&spec.source).into();
        }
        let nodes = if spec.is_shown { Some(self.add_condition_nodes(&spec, now)?) } else { None };
        let key = self.node_key(&spec.id);
        let mut state = State::new(spec.severities.inner, now);
        state.dialog = spec.dialog.clone().map(Box::new);
        let own = (!spec.own.is_empty()).then(|| Arc::new(core::mem::take(&mut spec.own)));
        state.own.clone_from(&own);
        let mut condition = Condition {
            detector: Detector::new(spec.kind.clone(), spec.severities),
            machine: Machine::new(spec.rules.clone(), state),
            input,
            target,
            nodes,
            last: None,
            deadline: None,
            own,
            spec,
        };
        let shard = self.slots().alarms();
        let mut inner = alarms.lock();
        if let Some(saved) = inner.saved.remove(&*key) {
            saved.restore(&mut condition, now);
        }
        let number = u32::try_from(inner.conditions.len()).unwrap_or(u32::MAX);
        for slot in [&condition.input, &condition.target].into_iter().flatten() {
            slot.set_watched(shard, true);
            inner.by_slot.entry(slot.index()).or_default().push(number);
            inner.dirty.push(slot.index());
        }
        let shelving = condition.nodes.as_ref().and_then(|nodes| nodes.shelving.clone());
        inner.by_id.extend(shelving.map(|id| (id, number)));
        inner.by_id.insert(condition.spec.id.clone(), number);
        condition.show(None, now);
        inner.conditions.push(condition);
        inner.added(self, number, now);
        inner.arm(number, now);
        Ok(())
    }

    /// Another type than that of the kind has to be one of its subtypes: clients expect its fields.
    ///
    /// # Errors
    /// It is no such type, or there is no such node.
    pub fn check_condition_type(&self, spec: &ConditionSpec) -> Result<(), AlarmError> {
        let Some(type_id) = &spec.type_id else { return Ok(()) };
        let base = spec.kind_type_id();
        let nodes = self.read();
        if nodes.is_subtype(nodes.find(type_id)?, nodes.find(&base)?) {
            return Ok(());
        }
        Err(AlarmError::Type { name: spec.name.clone(), type_id: type_id.clone(), base })
    }

    /// Own fields are those that the type has and the type of its kind has not. Their values are of the DataType and the rank
    /// that the type declares (Part 9 §5.5.2 has clients read them by it), or null.
    fn check_own_fields(&self, spec: &ConditionSpec, own: &OwnFields) -> Result<(), AlarmError> {
        if own.is_empty() {
            return Ok(());
        }
        let (type_id, base) = (spec.type_id(), spec.kind_type_id());
        let nodes = self.read();
        let (kind, base_kind) = (nodes.find(&type_id)?, nodes.find(&base)?);
        let fits =
            |name: &FieldName| nodes.has_field(kind, name.path()) && !nodes.has_field(base_kind, name.path());
        for (name, value) in own {
            if !fits(name) {
                let field = name.to_string();
                return Err(AlarmError::Field { name: spec.name.clone(), field, type_id, base });
            }
            let declared = nodes.event_field(kind, name.path()).and_then(|field| nodes.view(field));
            // A field that is no Variable has no type.
            let expected = declared.as_ref().and_then(|view| Expected::of_variable(&nodes, view).ok());
            let (Some(view), Some(expected), false) = (declared, expected, value.is_empty()) else {
                continue;
            };
            if !matches!(expected.fit(&nodes, value.clone()), Fit::Yes(_)) {
                let data_type = view.data_type().unwrap_or_default();
                let kind = nodes.resolve(data_type.as_ref()).and_then(|ix| nodes.view(ix));
                let called = kind.map_or_else(
                    || data_type.to_string(),
                    |view| view.browse_name().name.as_str().to_owned(),
                );
                let array = |is_array| if is_array { "array of " } else { "" };
                let wanted = format!("{}{called}", array(view.value_rank().is_some_and(|rank| rank >= 0)));
                let kind = value.built_in_type().map_or_else(String::new, |kind| kind.to_string());
                return Err(AlarmError::FieldType {
                    name: spec.name.clone(),
                    field: name.to_string(),
                    wanted,
                    found: format!("{}{kind}", array(value.as_array().is_some())),
                });
            }
        }
        Ok(())
    }

    /// Sets fields of a condition's own type. The next event has them; until then, clients see the values of the last event.
    ///
    /// # Errors
    /// There is no such condition, or its type does not add such a field.
    pub fn set_condition_fields(&self, id: &NodeId, own: OwnFields) -> Result<(), AlarmError> {
        let unknown = || AlarmError::Node(NodeError::Unknown(id.clone()));
        let alarms = self.alarms().ok_or_else(unknown)?;
        let spec = {
            let inner = alarms.lock();
            let number = inner.by_id.get(id).copied().ok_or_else(unknown)?;
            inner.conditions.get(number as usize).ok_or_else(unknown)?.spec.clone()
        };
        // Not under the lock of the conditions: it takes that of the nodes.
        self.check_own_fields(&spec, &own)?;
        let mut inner = alarms.lock();
        let number = inner.by_id.get(id).copied().ok_or_else(unknown)?;
        let condition = inner.conditions.get_mut(number as usize).ok_or_else(unknown)?;
        let all = Arc::make_mut(condition.own.get_or_insert_default());
        for (name, value) in own {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => all.push((name, value)),
            }
        }
        Ok(())
    }

    /// Looks at what was written since the last call and at what is due. Gives the next time at which something is due
    /// without a write. To be called again and again: what is abnormal is found when this is called.
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
                inner.look_at_member(slot);
                for number in inner.by_slot.get(&slot).cloned().unwrap_or_default() {
                    alarms.count(inner.look(self, number, now));
                }
            }
        }
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
                        return [first, shows].into_iter().flatten().min();
                    }
                }
            }
        }
    }

    /// An operator calls a Method of a condition.
    ///
    /// # Errors
    /// Bad_NodeIdUnknown if there is no such condition, and the result codes of the Method's clause.
    pub fn operate_condition(
        &self,
        condition: &NodeId,
        operation: &Operation,
        now: UtcTime,
    ) -> Result<(), StatusCode> {
        self.change_condition(condition, now, |condition| condition.machine.operate(operation, now))
    }

    /// The application says whether a condition is active, how urgent that is, and why.
    ///
    /// # Errors
    /// There is no such condition.
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

    /// A dialog asks; it does until somebody responds.
    ///
    /// # Errors
    /// There is no such condition.
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

    /// The conditions with their branches, those that operators should see (Retain) or all, at most `count`.
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
        // States of conditions that were not added yet are not forgotten.
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
                    .map(|condition| (self.node_key(&condition.spec.id).to_string(), Saved::of(condition))),
            );
            from += VIEWED;
        }
        super::saved::write(all)
    }
}

impl Alarms {
    fn count(&self, changed: bool) {
        if changed {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Inner {
    /// Notes which watched slots were written.
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

    /// Looks at the input of a condition.
    fn look(&mut self, space: &AddressSpace, number: u32, now: UtcTime) -> bool {
        let Some(condition) = self.conditions.get_mut(number as usize) else { return false };
        let notes = condition.look(now);
        let changed = self.tell(space, number, notes, now);
        self.arm(number, now);
        changed
    }

    /// Time has come for a condition.
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

    /// Tells of changes of a condition, and of what its groups change.
    fn tell(&mut self, space: &AddressSpace, number: u32, notes: Notes, now: UtcTime) -> bool {
        let notes = self.follow(number, notes, now);
        self.conditions.get_mut(number as usize).is_some_and(|condition| condition.tell(space, notes, now))
    }

    /// Brings the list of deadlines up to date.
    fn arm(&mut self, number: u32, now: UtcTime) {
        let Some(condition) = self.conditions.get_mut(number as usize) else { return };
        // What is due and did not go away, as with a Bad input, is looked at again later.
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
    /// Looks at the input.
    fn look(&mut self, now: UtcTime) -> Notes {
        let Some(input) = &self.input else { return Notes::new() };
        let snapshot = input.read();
        if snapshot.status == StatusCode::BAD_WAITING_FOR_INITIAL_DATA {
            return Notes::new();
        }
        let value = snapshot.value();
        let target = self.target.as_ref().map(|slot| slot.read().value());
        let time = if snapshot.source.is_null() { now } else { snapshot.source };
        let input = Input { value: &value, status: snapshot.status, time, target: target.as_ref() };
        let finding = self.detector.look(input, now);
        if self.machine.knows(&finding) {
            return Notes::new();
        }
        let text = message(&self.spec, &finding, &value);
        self.machine.found(finding, &text, now)
    }

    /// Raises the events of changes and shows them in the address space.
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

    /// The event of a change.
    fn event(&self, note: &Note, id: &ByteString, now: UtcTime) -> NewEvent {
        let branch = note.branch.as_ref();
        let state = branch.map_or(self.machine.state(), |(_, state)| state);
        self.event_of(state, branch.map(|(number, _)| *number), id, now)
    }

    /// An event that tells of a state.
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

    /// Shows the state in the address space.
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

    /// The events of the condition and of its branches, if operators should see them (§5.5.7). They are the same events with
    /// the same EventIds.
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
