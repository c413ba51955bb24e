//! The subscription engine of one shard (Part 4 §5.13, §5.14; design §5).
//!
//! Cost follows changes, not items. A write marks its slot dirty; at the next deadline the engine takes the dirty
//! slots, walks the items on each, and puts those into their subscription's ready list. Publishing walks that list
//! once, reads each slot, filters, and encodes straight into a recycled buffer. Idle items and idle subscriptions are
//! never looked at, except for one keep-alive count per cycle.
//!
//! - [`state`]: the publishing state table; [`subscription`]: its variables;
//! - [`item`], [`filter`], [`sample`], [`kept_values`]: MonitoredItems; [`groups`], [`sampling`]: rate groups; [`changes`], [`watch`]: from dirty slots to
//!   ready lists; `triggering`: items that trigger others;
//! - `events`: items that report events; `event_items`: which there are, and how far they are; `refresh`: conditions told of again; `aggregates`, `aggregate_item`: items that report aggregates;
//! - [`phase`]: when in its interval a subscription publishes;
//! - [`publish`]: cycles and the sessions' Publish queues; `notifications`: messages; `response`: their encoding; [`retransmission`]: what can be republished;
//! - [`manage`]: creating, modifying and deleting, as the services ask; `settings`: how items sample and queue; `methods`: as methods ask; `places`: where
//!   items lie; [`timer`]: deadlines;
//! - `durable`, `journal`: what durable subscriptions write down, and how they are made again;
//! - `access`: items that their client may see, or not any more;
//! - [`moving`]: to another session, and to another shard's engine; [`item_ids`], [`homes`]: what finds them there.

mod access;
pub(crate) mod aggregate_item;
mod aggregates;
mod changes;
mod durable;
mod event_items;
pub(crate) mod events;
pub(crate) mod filter;
mod groups;
pub(crate) mod homes;
pub(crate) mod item;
mod item_ids;
pub(crate) mod journal;
mod kept_values;
pub(crate) mod manage;
mod message;
mod methods;
pub(crate) mod moving;
mod notifications;
mod phase;
mod places;
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
// the engine's directory and one Subscription bear the specification's name
pub(crate) mod subscription;
mod timer;
mod triggering;
mod watch;

#[cfg(test)]
mod tests;

use crate::account::Account;
use crate::event::EventBus;
use crate::headroom::{Headroom, Share};
use crate::limits::SubscriptionLimits;
use crate::space::page::{PAGE_SLOTS, Page};
use crate::space::slot::Snapshot;
use crate::space::store::SlotStore;
use crate::work::Work;
use durable::Durables;
use event_items::EventItems;
use groups::Groups;
use homes::Homes;
use item::Item;
use phase::SharedPhases;
use publish::{PublishQueue, ServedEvents};
use retransmission::BufferPool;
use sampling::SampleJob;
use shared_filters::SharedFilters;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use subscription::Subscription;
use taktwerk_types::Instant;
use timer::Timers;
use watch::Watch;

/// A session's place in its shard's session table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionKey(pub(crate) u32);

/// All subscriptions and MonitoredItems of one shard.
#[derive(Debug)]
pub(crate) struct Engine {
    shard: usize,
    limits: SubscriptionLimits,
    store: Arc<SlotStore>,
    /// Which subscriptions live on which shard.
    homes: Arc<Homes>,
    /// Where events come from.
    events: Arc<EventBus>,
    /// The items that watch for events.
    event_items: EventItems,
    /// Their filters.
    filters: SharedFilters,
    /// What the requests of this turn were answered with, and the sessions whose requests wait for the next one.
    served_events: ServedEvents,
    postponed: VecDeque<SessionKey>,
    /// Links of items that trigger others that were followed since a run was charged for them.
    links_followed: usize,
    /// Whether the last run served timers before them.
    timers_first: bool,
    /// For sessions that have no account of their own.
    account: Arc<Account>,
    /// Predicts the CPU of what clients ask for, if that is wanted.
    headroom: Option<Arc<Headroom>>,
    /// The shard's own list of the store's pages.
    pages: Vec<Arc<Page>>,
    /// The first item on each slot.
    watch: Watch,
    items: Vec<Item>,
    /// Places that were left. Some may be taken or gone by now, see `places`.
    free_items: Vec<u32>,
    alive_items: usize,
    subscriptions: Vec<Option<Box<Subscription>>>,
    free_subscriptions: Vec<u32>,
    /// Subscription ids to places.
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
    /// What was done, until somebody asks.
    work: Work,
    /// The number of the last one.
    last_job: u64,
    /// Refreshes of conditions under way, and when the next one goes on.
    refreshes: Vec<refresh::Refresh>,
    refresh_at: Option<Instant>,
    /// Values of the queue that are due to be taken, some in each turn.
    queued_due: usize,
    /// Room for one look at the changes: slots with items that may not have got every write, and the newest one.
    behind: Vec<(u32, Snapshot)>,
    /// Room for one look at the changes: slots whose values have another meaning.
    meanings: Vec<u32>,
}

impl Engine {
    /// What was done since the last call.
    pub(crate) fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.work)
    }

    /// The same engine, which reckons with what clients ask for.
    pub(crate) fn with_headroom(self, headroom: Option<Arc<Headroom>>) -> Self {
        Self { headroom, ..self }
    }

    /// The publishing interval in milliseconds with which a subscription fits: `interval_ms` if nothing else is wanted.
    pub(crate) fn fitting_interval(&self, place: Option<u32>, interval_ms: f64) -> f64 {
        let Some(headroom) = &self.headroom else { return interval_ms };
        let longest = self.limits.publishing_interval_max;
        match place.and_then(|place| self.subscription(place)) {
            Some(subscription) => {
                let share = subscription.share.as_ref();
                share.map_or(interval_ms, |share| {
                    share.revise(subscription.enabled_items, interval_ms, longest)
                })
            }
            // One that does not exist yet will have one item at least.
            None => Share::new(headroom).revise(1, interval_ms, longest),
        }
    }

    /// An empty engine. `first_id` is where subscription ids start; ids of different shards must not meet.
    pub(crate) fn new(
        shard: usize,
        limits: SubscriptionLimits,
        store: Arc<SlotStore>,
        homes: Arc<Homes>,
        events: Arc<EventBus>,
        first_id: u32,
    ) -> Self {
        let maxima = crate::Limits { subscriptions: limits.clone(), ..crate::Limits::default() }.maxima();
        let account = Account::server(maxima);
        Self {
            shard,
            limits,
            store,
            homes,
            events,
            event_items: EventItems::default(),
            filters: SharedFilters::default(),
            served_events: ServedEvents::default(),
            postponed: VecDeque::new(),
            links_followed: 0,
            timers_first: false,
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

    /// When the engine wants its next [`Engine::run`].
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let has_events = self.event_items.is_pressing() || !self.postponed.is_empty();
        let at_once = (has_events || self.queued_due > 0).then_some(Instant::ZERO);
        [self.timers.next(), self.refresh_at, at_once].into_iter().flatten().min()
    }

    /// When [`Engine::collect_durable`] has something to write.
    pub(crate) fn write_deadline(&self) -> Option<Instant> {
        self.durables.next_deadline()
    }

    /// How many subscriptions there are.
    pub(crate) fn subscription_count(&self) -> usize {
        self.by_id.len()
    }

    /// How many MonitoredItems there are.
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
