//! The subscription engine of one shard (Part 4 §5.13, §5.14; design §5).
//!
//! Cost follows changes, not items. A write marks its slot dirty. At the next deadline the engine takes the dirty
//! slots, visits the items on each, and puts them into their subscription's ready list. Publishing visits that list
//! once, reads each slot, filters, and encodes directly into a reused buffer. Idle items and idle subscriptions cost
//! nothing but one keep-alive count per cycle.
//!
//! - [`state`]: the publishing state table; [`subscription`]: its variables;
//! - [`item`], [`filter`], [`sample`], [`kept_values`]: MonitoredItems; [`groups`], [`sampling`]: rate groups;
//!   [`changes`], [`watch`]: from dirty slots to ready lists; `triggering`: items that trigger others;
//! - `events`: event items; `event_items`: their lists and progress; `refresh`: ConditionRefresh; `aggregates`,
//!   `aggregate_item`: items with an AggregateFilter;
//! - [`phase`]: the phase of a subscription within its publishing interval;
//! - [`publish`]: cycles and the sessions' Publish queues; `notifications`: messages; `response`: their encoding;
//!   [`retransmission`]: messages for Republish;
//! - [`manage`]: creating, modifying and deleting for services; `settings`: sampling and queues of items; `methods`:
//!   the Server object's methods; `item_table`: the item table; [`timer`]: deadlines;
//! - `durable`, `journal`: writing and restoring durable subscriptions;
//! - `access`: permissions of items' clients;
//! - [`moving`]: moving to another session or another shard's engine; [`item_ids`], [`locations`]: finding moved items and
//!   subscriptions.

mod access;
pub(crate) mod aggregate_item;
mod aggregates;
mod changes;
mod demand;
mod durable;
mod event_items;
pub(crate) mod events;
pub(crate) mod filter;
mod groups;
pub(crate) mod item;
mod item_ids;
mod item_table;
pub(crate) mod journal;
mod kept_values;
pub(crate) mod locations;
pub(crate) mod manage;
mod message;
mod methods;
pub(crate) mod moving;
mod notifications;
mod phase;
pub(crate) mod publish;
mod refresh;
mod response;
mod retained;
mod retransmission;
mod sample;
pub(crate) mod sampling;
mod settings;
mod shared_filters;
mod state;
#[allow(clippy::module_inception)]
// The engine's directory and one Subscription both have the specification's name.
pub(crate) mod subscription;
mod timer;
mod triggering;
mod watch;

#[cfg(test)]
mod tests;

use crate::account::Account;
use crate::event::EventBus;
use crate::headroom::Headroom;
use crate::limits::SubscriptionLimits;
use crate::work::{Work, unit};
use durable::Durables;
use event_items::EventItems;
use groups::Groups;
use item::Item;
use locations::Locations;
use phase::SharedPhases;
use publish::{PublishQueue, ServedEvents};
use retransmission::BufferPool;
use sampling::SampleJob;
use shared_filters::SharedFilters;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use subscription::Subscription;
use taktwerk_slots::{PAGE_SLOTS, Page, SlotStore, Snapshot};
use taktwerk_types::Instant;
use timer::Timers;
use watch::Watch;

/// A session's slot in its shard's session table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionKey(pub(crate) u32);

/// All subscriptions and MonitoredItems of one shard.
#[derive(Debug)]
pub(crate) struct Engine {
    shard: usize,
    limits: SubscriptionLimits,
    store: Arc<SlotStore>,
    /// The shard of each subscription.
    locations: Arc<Locations>,
    /// The source of events.
    events: Arc<EventBus>,
    /// The event items.
    event_items: EventItems,
    /// Their shared filters.
    filters: SharedFilters,
    /// Requests of this turn answered with events, and sessions whose requests wait for the next turn.
    served_events: ServedEvents,
    postponed: VecDeque<SessionKey>,
    /// Number of triggering links followed since the last run was charged for them.
    links_followed: usize,
    /// Whether the last run handled timers before event requests.
    timers_first: bool,
    /// The last run left its messages to this one.
    messages_first: bool,
    /// For sessions without their own account.
    account: Arc<Account>,
    /// Predicts the CPU load of requests, if enabled.
    headroom: Option<Arc<Headroom>>,
    /// The shard's own list of the store's pages.
    pages: Vec<Arc<Page>>,
    /// The first item on each slot.
    watch: Watch,
    items: Vec<Item>,
    /// Freed item slots. Some may be in use or cut off again, see `item_table`.
    free_items: Vec<u32>,
    alive_items: usize,
    subscriptions: Vec<Option<Box<Subscription>>>,
    free_subscriptions: Vec<u32>,
    /// Position of each subscription by id.
    by_id: BTreeMap<u32, u32>,
    /// Publish queues by session key.
    queues: Vec<Option<Box<PublishQueue>>>,
    groups: Groups,
    timers: Timers,
    phases: SharedPhases,
    /// Its durable subscriptions.
    durables: Durables,
    pool: BufferPool,
    next_id: u32,
    served: u64,
    jobs: VecDeque<SampleJob>,
    /// Work counters since the last call.
    work: Work,
    /// Work units of the request in progress, beyond those of its operations.
    owed: i64,
    /// The number of the last sampling job.
    last_job: u64,
    /// ConditionRefreshes in progress, and when the next one continues.
    refreshes: Vec<refresh::Refresh>,
    refresh_at: Option<Instant>,
    /// Number of queued values that are due, taken over several turns.
    queued_due: usize,
    /// Scratch list for changes: slots with items that may have missed a write, with the newest value.
    behind: Vec<(u32, Snapshot)>,
    /// Scratch list for changes: slots with semantic changes.
    meanings: Vec<u32>,
}

impl Engine {
    /// Counts that a request has looked at many items.
    fn owe_for_items(&mut self, count: usize) {
        self.owed += (count / unit::LOOKED_AT) as i64;
    }

    /// The work units of the request in progress that depend on the number of items, and not on the request.
    pub(crate) fn take_owed(&mut self) -> i64 {
        core::mem::take(&mut self.owed)
    }

    /// Work counters since the last call.
    pub(crate) fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.work)
    }

    /// Enables admission by predicted CPU load.
    pub(crate) fn with_headroom(self, headroom: Option<Arc<Headroom>>) -> Self {
        Self { headroom, ..self }
    }

    /// Creates an empty engine. Subscription ids start at `first_id`; ids of different shards must not collide.
    pub(crate) fn new(
        shard: usize,
        limits: SubscriptionLimits,
        store: Arc<SlotStore>,
        locations: Arc<Locations>,
        events: Arc<EventBus>,
        first_id: u32,
    ) -> Self {
        let maxima = crate::Limits { subscriptions: limits.clone(), ..crate::Limits::default() }.maxima();
        let account = Account::server(maxima);
        Self {
            shard,
            limits,
            store,
            locations,
            events,
            event_items: EventItems::default(),
            filters: SharedFilters::default(),
            served_events: ServedEvents::default(),
            postponed: VecDeque::new(),
            links_followed: 0,
            timers_first: false,
            messages_first: false,
            account,
            headroom: None,
            pages: Vec::new(),
            watch: Watch::default(),
            items: Vec::new(),
            free_items: Vec::new(),
            alive_items: 0,
            subscriptions: Vec::new(),
            free_subscriptions: Vec::new(),
            by_id: BTreeMap::new(),
            queues: Vec::new(),
            groups: Groups::default(),
            timers: Timers::default(),
            phases: SharedPhases::default(),
            durables: Durables::default(),
            pool: BufferPool::default(),
            next_id: first_id.max(1),
            served: 0,
            jobs: VecDeque::new(),
            work: Work::default(),
            owed: 0,
            last_job: 0,
            refreshes: Vec::new(),
            refresh_at: None,
            queued_due: 0,
            behind: Vec::new(),
            meanings: Vec::new(),
        }
    }

    /// Lets an empty engine share an account with others.
    pub(crate) fn with_account(mut self, account: Arc<Account>) -> Self {
        self.account = account;
        self
    }

    /// When [`Engine::run`] must be called next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let has_events = self.event_items.is_pressing() || !self.postponed.is_empty();
        let at_once = (has_events || self.queued_due > 0).then_some(Instant::ZERO);
        [self.timers.next(), self.refresh_at, at_once].into_iter().flatten().min()
    }

    /// When [`Engine::collect_durable`] must be called.
    pub(crate) fn write_deadline(&self) -> Option<Instant> {
        self.durables.next_deadline()
    }

    /// Number of subscriptions.
    pub(crate) fn subscription_count(&self) -> usize {
        self.by_id.len()
    }

    /// Number of MonitoredItems.
    pub(crate) fn item_count(&self) -> usize {
        self.alive_items
    }

    pub(crate) fn subscription(&self, place: u32) -> Option<&Subscription> {
        self.subscriptions.get(place as usize)?.as_deref()
    }

    fn subscription_mut(&mut self, place: u32) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(place as usize)?.as_deref_mut()
    }

    /// All subscriptions, for diagnostics.
    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        self.by_id.values().filter_map(|place| self.subscription(*place))
    }

    /// The next asynchronous sample to run outside the shard.
    pub(crate) fn take_job(&mut self) -> Option<SampleJob> {
        self.jobs.pop_front()
    }
}

#[inline]
fn page_of(pages: &[Arc<Page>], slot: u32) -> Option<&Page> {
    pages.get(slot as usize / PAGE_SLOTS).map(|page| &**page)
}

#[inline]
fn read_slot(pages: &[Arc<Page>], slot: u32) -> Option<Snapshot> {
    Some(page_of(pages, slot)?.read(slot))
}
