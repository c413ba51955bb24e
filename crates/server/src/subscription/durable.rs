//! Durable subscriptions in the engine (Part 4 §6.8): changes become log entries, messages are sent once they are
//! written, and subscriptions are restored from their logs.
//!
//! There is at most one write in progress per engine. Meanwhile, changes are collected. A failed write is repeated
//! before anything else, so that a log has no gaps.

use super::events::may_see;
use super::item::{Item, flag};
use super::item_ids::ItemIds;
use super::journal::{self, Answer, Held, Identity, Journal};
use super::manage::id_of;
use super::phase::Phase;
use super::publish::{Responder, Ticket};
use super::response::{respond_notifications, respond_republished};
use super::sample::Sample;
use super::subscription::{Kept, Parameters, Subscription};
use super::timer::Due;
use super::{Engine, SessionKey};
use crate::account::{Account, Exhausted};
use crate::authorization::Decisions;
use crate::durable::marks::Marks;
use crate::durable::record::{self, Section};
use crate::durable::saved::{Saved, SavedQueue};
use crate::durable::work::{Batch, Written};
use crate::durable::{Change, DurableConfig};
use crate::error::Fault;
use crate::event::{Event, NewEvent};
use crate::history::StoredEvent;
use crate::now::Now;
use crate::space::AddressSpace;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_types::time::nanos_from_millis;
use taktwerk_types::{DataValue, Instant, StatusCode};

/// Maximum number of values and events per write, for all subscriptions together: what a shard encodes in one turn.
const VALUES_PER_WRITE: usize = 20_000;
/// Delay before a failed write is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// The engine's data about its durable subscriptions.
#[derive(Debug, Default)]
pub(super) struct Durables {
    config: Option<DurableConfig>,
    /// Their positions.
    places: Vec<u32>,
    /// Ids of ended subscriptions whose logs must be deleted.
    gone: Vec<u32>,
    in_flight: bool,
    /// When to write next.
    write_at: Option<Instant>,
    /// Whether responses wait for the next write.
    is_urgent: bool,
    /// The last write failed: messages are sent without being written.
    is_failing: bool,
    /// Changes that could not be written.
    failed: Option<Arc<Vec<Change>>>,
    end: End,
}

/// Progress of the regular shutdown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum End {
    #[default]
    NotYet,
    /// The next write is the last one.
    Begun,
    Written,
}

impl Durables {
    /// Whether messages are sent without being written.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// When the engine must write.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.in_flight || self.end == End::Written {
            return None;
        }
        if self.is_urgent && self.failed.is_none() { Some(Instant::ZERO) } else { self.write_at }
    }
}

/// Records that the queue of an item has changed.
#[inline]
pub(super) fn note(index: u32, item: &mut Item, subscription: &mut Subscription) {
    if let Some(journal) = &mut subscription.journal
        && !item.has(flag::NOTED)
    {
        item.flags |= flag::NOTED;
        journal.noted.push(index);
    }
}

impl Engine {
    /// Enables durable subscriptions.
    pub(crate) fn with_durable(mut self, config: Option<DurableConfig>) -> Self {
        self.durables.config = config;
        self
    }

    /// The settings for durable subscriptions, if they are enabled.
    pub(crate) fn durable_config(&self) -> Option<&DurableConfig> {
        self.durables.config.as_ref()
    }

    /// Whether a subscription is durable.
    pub(crate) fn is_durable(&self, place: u32) -> bool {
        self.subscription(place).is_some_and(|subscription| subscription.journal.is_some())
    }

    /// The longest lifetime of a durable subscription, in hours; `None` for others.
    pub(crate) fn durable_lifetime_max(&self, place: u32) -> Option<u32> {
        self.durables.config.as_ref().filter(|_| self.is_durable(place)).map(|config| config.revised_hours(0))
    }

    /// Longest queue of a subscription's items.
    pub(super) fn queue_size_max(&self, place: u32) -> u32 {
        let durable = self.durables.config.as_ref().filter(|_| self.is_durable(place));
        durable.map_or(self.limits.queue_size_max, |config| config.queue_size_max).max(1)
    }

    /// SetSubscriptionDurable (Part 5 §9.3) for a subscription without items. Its memory is charged to `account` from
    /// now on.
    pub(crate) fn make_durable(
        &mut self,
        place: u32,
        hours: u32,
        identity: Identity,
        account: &Arc<Account>,
        now: Now,
    ) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        subscription.parameters = subscription.parameters.durable(hours);
        subscription.reset_lifetime();
        let own = Arc::clone(subscription.kept.account());
        match &mut subscription.journal {
            Some(journal) => (journal.lifetime_hours, journal.header_changed) = (hours, true),
            none => {
                let next = subscription.next_sequence_number;
                *none = Some(Box::new(Journal::new(identity, hours, next, &own)));
                own.move_to(account);
                self.durables.places.push(place);
            }
        }
        self.write_soon(now);
    }

    fn write_soon(&mut self, now: Now) {
        let interval = self.durables.config.as_ref().map_or(0.0, |config| config.write_interval);
        let at = now.instant.plus_millis_f64(interval.max(1.0));
        self.durables.write_at = Some(self.durables.write_at.map_or(at, |known| known.min(at)));
    }

    /// Lets `write` append the change of a durable subscription.
    pub(crate) fn journal(&mut self, place: u32, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(journal) = self.subscription_mut(place).and_then(|it| it.journal.as_mut()) {
            journal.add(write);
        }
    }

    /// The links of an item have changed.
    pub(crate) fn journal_links(&mut self, place: u32, triggering: u32) {
        if !self.is_durable(place) {
            return;
        }
        let (Some(subscription), Some(item)) =
            (self.subscription(place), self.items.get(triggering as usize))
        else {
            return;
        };
        let links = item.ext.as_ref().map_or(&[][..], |ext| &ext.links);
        let linked = links
            .iter()
            .filter_map(|index| Some(id_of(subscription, self.items.get(*index as usize)?, *index)));
        let section =
            Section::Links { item: id_of(subscription, item, triggering), linked: linked.collect() };
        self.journal(place, |out| section.encode(out));
    }

    /// Reserves a section of `bytes` in the next entry of a durable subscription.
    ///
    /// # Errors
    /// Bad_OutOfMemory: the user's limit is reached, or the store has failed and too much data waits for it.
    pub(crate) fn journal_room(&mut self, place: u32, bytes: usize) -> Result<(), StatusCode> {
        let is_failing = self.durables.is_failing;
        let journal = self.subscription_mut(place).and_then(|subscription| subscription.journal.as_mut());
        journal.map_or(Ok(()), |journal| journal.reserve(bytes, is_failing)).map_err(|full| full.status())
    }

    /// Reserves the section of an item that gets further links.
    ///
    /// # Errors
    /// As [`journal_room`](Self::journal_room).
    pub(crate) fn journal_links_room(
        &mut self,
        place: u32,
        triggering: u32,
        more: usize,
    ) -> Result<(), Fault> {
        let links = self.items.get(triggering as usize).and_then(|item| item.ext.as_ref());
        let count = links.map_or(0, |ext| ext.links.len()) + more;
        self.journal_room(place, record::ITEM_BYTES + count * size_of::<u32>())
            .map_err(|status| Fault::limit(status, "log of a durable subscription"))
    }

    /// A subscription ends, and its log is deleted, except during a regular shutdown.
    pub(super) fn durable_gone(&mut self, place: u32, id: u32, journal: &Journal) {
        self.durables.places.retain(|other| *other != place);
        // One that was never written has no log: subscriptions may come and go while a store fails.
        if self.durables.end == End::NotYet && !journal.is_new {
            self.durables.gone.push(id);
            self.durables.is_urgent = true;
        }
    }

    /// A durable subscription moves to another engine. Its unwritten changes move too, so that the other engine writes
    /// them first.
    pub(super) fn durable_leaves(&mut self, place: u32, id: u32, journal: &mut Journal) {
        self.durables.places.retain(|other| *other != place);
        let Some(failed) = self.durables.failed.take() else { return };
        let (own, others): (Vec<Change>, Vec<Change>) = Arc::try_unwrap(failed)
            .unwrap_or_else(|failed| (*failed).clone())
            .into_iter()
            .partition(|change| change.subscription() == id);
        journal.unwritten.extend(own);
        if others.is_empty() {
            // Nothing must be repeated; new changes may be written at once.
            self.durables.is_urgent = true;
        } else {
            self.durables.failed = Some(Arc::new(others));
        }
    }

    /// A durable subscription has arrived from another engine.
    pub(super) fn durable_arrives(&mut self, place: u32, now: Now) {
        let Self { subscriptions, items, durables, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return };
        let Some(journal) = &mut subscription.journal else { return };
        journal.noted.clone_from(&subscription.items);
        for index in &subscription.items {
            if let Some(item) = items.get_mut(*index as usize) {
                item.flags |= flag::NOTED;
            }
        }
        durables.places.push(place);
        self.write_soon(now);
    }

    /// Whether a subscription must stay on its shard until a write is done.
    pub(crate) fn is_writing(&self, place: u32) -> bool {
        self.subscription(place)
            .and_then(|subscription| subscription.journal.as_ref())
            .is_some_and(|journal| journal.is_busy())
    }

    // ---- waiting responses

    /// Whether so many responses wait that no further message may be created: the oldest would be dropped.
    pub(super) fn holds_all(&self, place: u32) -> bool {
        let journal = self.subscription(place).and_then(|subscription| subscription.journal.as_ref());
        let max = (self.limits.retransmission_len_max as usize).max(2) - 1;
        journal.is_some_and(|journal| journal.held.len() >= max)
    }

    /// Holds a response of a durable subscription until what it reports is written.
    pub(super) fn hold(&mut self, place: u32, ticket: Ticket, answer: Answer) {
        if let Some(journal) = self.subscription_mut(place).and_then(|it| it.journal.as_mut()) {
            // If the entry in progress contains everything, its end is enough.
            let is_collected = match &answer {
                Answer::Publish(number) | Answer::Republish(number) => journal.available.contains(number),
                Answer::Changed(_) => !journal.has_uncollected_changes(),
            };
            let is_covered = journal.in_flight && is_collected;
            journal.held.push_back(Held { ticket, answer, is_covered });
            self.durables.is_urgent = true;
        }
    }

    /// Whether there is a durable subscription.
    pub(crate) fn has_durable(&self) -> bool {
        !self.durables.places.is_empty()
    }

    /// Whether the response of a request that has changed this subscription of a session must wait, because the change
    /// is not written yet: the client would rely on items that are gone after a crash. Returns the position of the
    /// subscription.
    pub(crate) fn must_write_changes(&self, session: SessionKey, id: u32) -> Option<u32> {
        if self.durables.places.is_empty() || self.durables.is_failing() {
            return None;
        }
        let place = self.find(session, id).ok()?;
        let journal = self.subscription(place)?.journal.as_ref()?;
        (journal.has_unwritten_changes() && !self.holds_all(place)).then_some(place)
    }

    /// Holds the response of a request that has changed a durable subscription.
    pub(crate) fn hold_response(&mut self, place: u32, ticket: Ticket, response: Vec<u8>) {
        self.hold(place, ticket, Answer::Changed(response));
    }

    /// Whether a message must be written before a client may receive it.
    pub(super) fn must_be_written(&self, place: u32, sequence_number: u32) -> bool {
        let journal = self.subscription(place).and_then(|subscription| subscription.journal.as_ref());
        journal.is_some_and(|journal| !journal.has_written(sequence_number))
    }

    /// The subscription ends or moves to another session: Publish requests that wait for a write return to their session;
    /// Republish requests are refused.
    pub(super) fn release_held(&mut self, place: u32, responder: &mut dyn Responder) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        let (session, Some(journal)) = (subscription.session, &mut subscription.journal) else { return };
        let held = core::mem::take(&mut journal.held);
        let Some(session) = session else { return };
        let requests = &mut self.queue_mut(session).requests;
        for Held { ticket, answer, .. } in held.into_iter().rev() {
            match answer {
                Answer::Publish(_) => requests.push_front(ticket),
                Answer::Republish(_) => responder.fault(&ticket, StatusCode::BAD_SUBSCRIPTION_ID_INVALID),
                Answer::Changed(response) => {
                    responder.respond(&ticket, &mut |out| out.extend_from_slice(&response));
                }
            }
        }
    }

    /// Refuses the requests of a session that wait for a write. Their messages can be republished.
    pub(super) fn refuse_held(
        &mut self,
        session: SessionKey,
        status: StatusCode,
        responder: &mut dyn Responder,
    ) {
        if self.durables.places.is_empty() {
            return;
        }
        let Some(Some(queue)) = self.queues.get(session.0 as usize) else { return };
        for place in &queue.subscriptions {
            let subscription = self.subscriptions.get_mut(*place as usize).and_then(Option::as_mut);
            let Some(journal) = subscription.and_then(|it| it.journal.as_mut()) else { continue };
            for held in journal.held.drain(..) {
                responder.fault(&held.ticket, status);
            }
        }
    }

    // ---- writing

    /// The changes to write now, if any.
    pub(crate) fn collect_durable(&mut self, space: &AddressSpace, now: Now) -> Option<Batch> {
        if self.durables.next_deadline().is_none_or(|at| at > now.instant) {
            return None;
        }
        let is_last = self.durables.end == End::Begun;
        let failed = self.durables.failed.take();
        // A failed store gets no new changes until it works again, because they would pile up while a disk is full.
        // Values wait in their bounded queues.
        if let Some(changes) = failed.as_ref().filter(|_| !is_last) {
            self.durables.write_at = None;
            self.durables.in_flight = true;
            let changes = Arc::clone(changes);
            // None of the subscriptions may move to another engine in the meantime.
            for change in &*changes {
                let place = self.find_any(change.subscription());
                if let Some(journal) =
                    place.and_then(|place| self.subscription_mut(place)).and_then(|it| it.journal.as_mut())
                {
                    journal.in_flight = true;
                }
            }
            return Some(Batch { changes, shorten: Vec::new() });
        }
        self.refresh_pages();
        self.drain_changes(now.instant);
        if is_last {
            self.drain_events(space, now);
        } else {
            // Further events are written with one of the next entries, when they are in the queues.
            self.catch_up_events(space, now);
        }
        let mut changes = failed.map_or_else(Vec::new, |failed| {
            Arc::try_unwrap(failed).unwrap_or_else(|failed| (*failed).clone())
        });
        let mut shorten = Vec::new();
        let mut left = if is_last { usize::MAX } else { VALUES_PER_WRITE };
        let Self { subscriptions, items, durables, .. } = self;
        for place in &durables.places {
            let Some(Some(subscription)) = subscriptions.get_mut(*place as usize) else { continue };
            let id = subscription.id;
            let mut older = 0;
            if let Some(journal) = &mut subscription.journal
                && !journal.unwritten.is_empty()
            {
                journal.in_flight = true;
                older = journal.unwritten.iter().map(Change::kept).sum();
                changes.append(&mut journal.unwritten);
            }
            let Some(entry) = write_entry(subscription, items, &mut left, is_last, older) else { continue };
            let Some(journal) = &mut subscription.journal else { continue };
            if journal.grow(entry.len()) && !is_last {
                shorten.push(id);
            }
            changes.push(if core::mem::take(&mut journal.is_new) {
                Change::Replace { subscription: id, record: entry }
            } else {
                Change::Append { subscription: id, record: entry }
            });
        }
        changes.extend(durables.gone.drain(..).map(|subscription| Change::Delete { subscription }));
        // The next write begins with another subscription, so that one with many values does not use up the limit.
        if !durables.places.is_empty() {
            durables.places.rotate_left(1);
        }
        durables.is_urgent = left == 0;
        if is_last {
            durables.end = End::Written;
        }
        durables.write_at = None;
        if changes.is_empty() {
            if !durables.places.is_empty() {
                self.write_soon(now);
            }
            return None;
        }
        durables.in_flight = true;
        Some(Batch { changes: Arc::new(changes), shorten })
    }

    /// A write is done: sends the messages that it contained.
    pub(crate) fn durable_written(
        &mut self,
        changes: Arc<Vec<Change>>,
        written: Written,
        now: Now,
        responder: &mut dyn Responder,
    ) {
        self.durables.in_flight = false;
        self.durables.is_failing = written.result.is_err();
        let is_written = written.result.is_ok();
        if let Err(error) = written.result {
            tracing::error!(
                "durable subscriptions cannot be written: {error}. They go on, but would not survive the server; it is \
                 tried again every second"
            );
            self.durables.failed = Some(changes);
            self.durables.write_at = Some(now.instant + RETRY);
        } else if !self.durables.places.is_empty() {
            self.write_soon(now);
        }
        for (id, bytes) in written.shortened {
            let place = self.find_any(id);
            if let Some(journal) =
                place.and_then(|place| self.subscription_mut(place)).and_then(|it| it.journal.as_mut())
            {
                journal.shortened(bytes);
            }
        }
        let mut sessions: Vec<SessionKey> = Vec::new();
        for at in 0..self.durables.places.len() {
            let Some(place) = self.durables.places.get(at).copied() else { break };
            if is_written
                && let Some(journal) = self.subscription_mut(place).and_then(|it| it.journal.as_mut())
            {
                journal.collected(0);
            }
            sessions.extend(self.send_held(place, now, responder));
        }
        for session in sessions {
            self.connection_ready(session, now, responder);
        }
    }

    /// Sends the messages of a subscription that have been written. Returns its session if there were any.
    fn send_held(&mut self, place: u32, now: Now, responder: &mut dyn Responder) -> Option<SessionKey> {
        // If the store fails, no response waits for it: later ones would overtake it.
        let waits_for_none = self.durables.is_failing();
        let subscription = self.subscription_mut(place)?;
        let journal = subscription.journal.as_mut()?;
        let was_in_flight = core::mem::take(&mut journal.in_flight);
        if waits_for_none {
            journal.give_up_before(subscription.next_sequence_number);
        } else if was_in_flight {
            journal.wrote();
        }
        let count = journal.held.iter().take_while(|held| held.is_covered || waits_for_none).count();
        let covered: Vec<Held> = journal.held.drain(..count).collect();
        for Held { ticket, answer, .. } in &covered {
            let message = |number: &u32| subscription.retransmission.find(*number);
            match answer {
                Answer::Publish(number) if message(number).is_some() => {
                    respond_notifications(responder, ticket, now, subscription, *number);
                }
                // The account limit is reached. The client notices the missing sequence number.
                Answer::Publish(_) => responder.fault(ticket, StatusCode::BAD_OUT_OF_MEMORY),
                Answer::Republish(number) => match message(number) {
                    Some(message) => respond_republished(responder, ticket, now, message),
                    None => responder.fault(ticket, StatusCode::BAD_MESSAGE_NOT_AVAILABLE),
                },
                Answer::Changed(response) => {
                    responder.respond(ticket, &mut |out| out.extend_from_slice(response));
                }
            }
        }
        subscription.session.filter(|_| !covered.is_empty())
    }

    // ---- shutdown

    /// Begins a regular shutdown: durable subscriptions stay in their logs.
    pub(crate) fn end_durable(&mut self, now: Now) {
        if self.durables.end == End::NotYet {
            self.durables.end = End::Begun;
            self.durables.write_at = Some(now.instant);
            self.durables.is_urgent = true;
        }
    }

    /// Whether data must still be written before shutdown.
    pub(crate) fn is_ending_durable(&self) -> bool {
        let has_some = self.durables.config.is_some() && !self.durables.places.is_empty();
        self.durables.in_flight || (has_some && self.durables.end == End::Begun)
    }

    /// Whether durable subscriptions stay although their session ends with DeleteSubscriptions.
    pub(super) fn keeps(&self, place: u32) -> bool {
        self.durables.end != End::NotYet && self.is_durable(place)
    }

    // ---- restoring

    /// Restores a subscription from its log, without its items and without a session.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(crate) fn restore_subscription(
        &mut self,
        saved: &mut Saved,
        account: &Arc<Account>,
        decisions: Arc<Decisions>,
        now: Now,
    ) -> Result<u32, StatusCode> {
        let header = &saved.header;
        let parameters = Parameters::from(&header.parameters);
        let kept = Kept::new(account).map_err(Exhausted::status)?;
        let phase =
            Phase::new(now.instant, nanos_from_millis(parameters.publishing_interval), &mut self.phases);
        let first = phase.first();
        let mut subscription = Box::new(Subscription::new(
            saved.id,
            SessionKey(u32::MAX),
            parameters,
            header.publishing_enabled,
            decisions,
            phase,
            kept,
        ));
        subscription.session = None;
        subscription.next_sequence_number = saved.next_sequence_number.max(1);
        let identity = Identity { namespaces: header.namespaces.clone(), owner: header.owner.clone() };
        let own = Arc::clone(subscription.kept.account());
        let next = subscription.next_sequence_number;
        let mut journal = Journal::new(identity, header.lifetime_hours, next, &own);
        let limits = &self.limits;
        for (number, message) in saved.messages.drain(..) {
            journal.available.push(number);
            subscription.retransmission.push(
                number,
                message,
                limits.retransmission_len_max as usize,
                limits.retransmission_bytes_max,
                &mut self.pool,
            );
        }
        journal.next = next;
        journal.restored(saved.log_len);
        subscription.journal = Some(Box::new(journal));
        subscription.share =
            self.headroom.as_ref().map(|headroom| Box::new(crate::headroom::Share::new(headroom)));
        let place = self.insert_subscription(subscription);
        self.timers.push(first, Due::Publish(place));
        self.durables.places.push(place);
        // The next entry revokes the mark of a regular shutdown.
        self.durables.write_at = Some(now.instant);
        Ok(place)
    }

    /// Gives the items of a restored subscription the ids that their client knows.
    pub(crate) fn restore_ids(&mut self, place: u32, known: &[(u32, u32)]) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        let mut ids = ItemIds::default();
        // A subscription may have very many items, so they are not searched one by one.
        let known: BTreeMap<u32, u32> = known.iter().map(|(id, of)| (*of, *id)).collect();
        for index in &subscription.items {
            let id = known.get(index).copied().unwrap_or(index + 1);
            ids.push(id, *index);
        }
        subscription.ids = Some(Box::new(ids));
        // The sections recorded while creating them contain other ids.
        if let Some(journal) = &mut subscription.journal {
            journal.take_pending(&mut Vec::new());
            journal.header_changed = true;
        }
    }

    /// Puts unsent values before those that have arrived since. If the log is incomplete, the first newer value gets the
    /// Overflow bit; if there is none yet, the last restored value.
    pub(crate) fn restore_values(&mut self, index: u32, saved: SavedQueue<DataValue>, is_complete: bool) {
        let Some(item) = self.items.get_mut(index as usize).filter(|item| item.is_queued()) else { return };
        let Some(ext) = &mut item.ext else { return };
        let fresh: Vec<Sample> = core::iter::from_fn(|| ext.values.pop_front()).collect();
        let len = saved.elements.len();
        for value in saved.elements {
            ext.values.push_back(Sample::from(value));
        }
        ext.values.mark(Marks::restored(saved.first, len));
        if saved.overflow {
            ext.values.mark_oldest();
        }
        let excess = len.saturating_sub(ext.queue_size.max(1) as usize);
        for _ in 0..excess {
            ext.values.pop_front();
        }
        if excess > 0 {
            ext.values.mark_oldest();
        }
        let has_queue = ext.queue_size > 1;
        if fresh.is_empty() && !is_complete && has_queue && !ext.values.is_empty() {
            ext.values.mark_newest();
        }
        for (at, mut sample) in fresh.into_iter().enumerate() {
            if at == 0 && !is_complete && has_queue {
                sample.set_overflow();
            }
            item.keep(sample);
        }
        self.after_enqueue(index, false);
    }

    /// Restores unsent events, as far as their client may still see them. If the log is incomplete, the queue reports
    /// an overflow.
    pub(crate) fn restore_events(
        &mut self,
        index: u32,
        saved: SavedQueue<StoredEvent>,
        is_complete: bool,
        space: &AddressSpace,
    ) {
        let events: Vec<Arc<Event>> = saved
            .elements
            .into_iter()
            .map(|event| space.shared_event_again(NewEvent::again(event)))
            .collect();
        let Self { items, subscriptions, .. } = self;
        let Some(item) = items.get_mut(index as usize) else { return };
        let Some(Some(subscription)) = subscriptions.get_mut(item.subscription as usize) else { return };
        let Some(queue) = item.event_queue_mut() else { return };
        for event in &events {
            queue.push(Arc::clone(event));
        }
        queue.mark(Marks::restored(saved.first, events.len()));
        if events.len() > queue.len() || events.iter().any(|event| !may_see(&subscription.decisions, event)) {
            queue.retain(|event| may_see(&subscription.decisions, event));
        }
        if saved.overflow || !is_complete {
            queue.note_lost();
        }
        self.make_events_ready(index);
    }
}

/// Appends all changes of a subscription to a new log entry; `None` without changes. `older` bytes of unwritten entries
/// are charged as well.
fn write_entry(
    subscription: &mut Subscription,
    items: &mut [Item],
    left: &mut usize,
    is_last: bool,
    older: usize,
) -> Option<Vec<u8>> {
    let grant = subscription.grant();
    let (parameters, enabled) = (subscription.parameters, subscription.publishing_enabled);
    let mut journal = subscription.journal.take()?;
    let mut out = journal::entry();
    if core::mem::take(&mut journal.header_changed) {
        journal::header(&journal, parameters, enabled, grant).encode(&mut out);
    }
    journal.take_pending(&mut out);
    let noted = core::mem::take(&mut journal.noted);
    for index in noted {
        let Some(item) = items.get_mut(index as usize) else { continue };
        let is_here = item.has(flag::NOTED)
            && item.position < u32::try_from(subscription.items.len()).unwrap_or(0)
            && subscription.items.get(item.position as usize) == Some(&index);
        if !is_here {
            continue;
        }
        let id = id_of(subscription, item, index);
        // Removed elements are always written, together with the message that contains them; added ones only as far as
        // the limit allows.
        if let Some(events) = item.events_mut() {
            events.write_retained(id, &mut out);
        }
        let written = item.write_queue(id, *left, &mut out);
        let (count, is_left) = written.unwrap_or((0, false));
        *left -= count.min(*left);
        if is_left {
            journal.noted.push(index);
        } else {
            item.flags &= !flag::NOTED;
        }
    }
    let sent = &subscription.retransmission;
    let next = subscription.next_sequence_number;
    if next != journal.next || !sent.sequence_numbers().eq(journal.available.iter().copied()) {
        let available: Vec<u32> = sent.sequence_numbers().collect();
        let new: Vec<(u32, &[u8])> = available
            .iter()
            .filter(|number| !journal.available.contains(number))
            .filter_map(|number| Some((*number, sent.find(*number)?)))
            .collect();
        record::messages(next, &available, new.into_iter(), &mut out);
        (journal.next, journal.available) = (next, available);
    }
    if is_last {
        Section::Closed.encode(&mut out);
    }
    journal.held.iter_mut().for_each(|held| held.is_covered = true);
    let has_changed = !record::is_empty(&out);
    journal.in_flight |= has_changed;
    journal.collected(older + out.capacity());
    subscription.journal = Some(journal);
    has_changed.then_some(out)
}
