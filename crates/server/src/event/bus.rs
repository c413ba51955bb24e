//! Delivery of events to the shards whose items monitor them.
//!
//! Each event that is handed over has a number. A new item notes the number of the next event and ignores earlier ones,
//! so that events already in a ring need not be removed.

use super::model::Event;
use super::verbosity::ModelChangeEvents;
use crate::limits::cost;
use crate::node_ix::NodeIx;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use crossbeam_queue::ArrayQueue;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use taktwerk_types::{ByteString, UtcTime};

/// Length of a shard's ring. Beyond it, events are lost, and all event items on the shard report an overflow.
pub(crate) const RING_LEN: usize = 8192;

/// The rings of all shards, and the items on each node.
#[derive(Debug)]
pub struct EventBus {
    /// Number of event items, including those that move to another shard. While it is 0, raising an event only reads
    /// this.
    watching: AtomicUsize,
    /// Number of events handed over.
    raised: AtomicU64,
    /// The prefix of EventIds of this run, and the number of the next EventId.
    run: AtomicI64,
    next_id: AtomicU64,
    /// [`ModelChangeEvents`] as bits.
    model_changes: AtomicU8,
    /// Number of items that each shard has on each node.
    notifiers: RwLock<BTreeMap<NodeIx, Box<[u32]>>>,
    shards: Box<[ShardEvents]>,
}

/// Events in transit to one shard.
#[derive(Debug)]
struct ShardEvents {
    ring: ArrayQueue<Handed>,
    /// Size of the events in it, in bytes.
    bytes: AtomicUsize,
    /// The number of the newest lost event plus one; 0: none.
    lost: AtomicU64,
    /// How many events were lost.
    lost_count: AtomicU64,
    /// The ring is half full, and the shard was woken.
    pressed: AtomicBool,
}

/// An event that was handed over.
#[derive(Debug, Clone)]
pub(crate) struct Handed {
    /// Its number: how many events were handed over before.
    pub(crate) number: u64,
    /// The event.
    pub(crate) event: Arc<Event>,
}

impl ShardEvents {
    fn push(&self, handed: Handed) -> Result<(), u64> {
        let (size, number) = (handed.event.size(), handed.number);
        if self.bytes.fetch_add(size, Ordering::AcqRel).saturating_add(size) > cost::EVENT_RING
            || self.ring.push(handed).is_err()
        {
            self.bytes.fetch_sub(size, Ordering::AcqRel);
            return Err(number);
        }
        Ok(())
    }

    fn pop(&self) -> Option<Handed> {
        let handed = self.ring.pop()?;
        self.bytes.fetch_sub(handed.event.size(), Ordering::AcqRel);
        Some(handed)
    }

    fn is_half_full(&self) -> bool {
        self.ring.len() * 2 >= RING_LEN || self.bytes.load(Ordering::Relaxed) * 2 >= cost::EVENT_RING
    }
}

impl EventBus {
    pub(crate) fn new(shards: usize) -> Self {
        let shards = (0..shards.max(1)).map(|_| ShardEvents {
            ring: ArrayQueue::new(RING_LEN),
            bytes: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            lost_count: AtomicU64::new(0),
            pressed: AtomicBool::new(false),
        });
        Self {
            watching: AtomicUsize::new(0),
            raised: AtomicU64::new(0),
            run: AtomicI64::new(0),
            next_id: AtomicU64::new(1),
            model_changes: AtomicU8::new(ModelChangeEvents::default().to_bits()),
            notifiers: RwLock::default(),
            shards: shards.collect(),
        }
    }

    /// Whether any item may want events.
    #[inline]
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watching.load(Ordering::Relaxed) != 0
    }

    /// Sets the start time of the server: EventIds of different runs must differ (Part 5 §6.4.2).
    pub(crate) fn set_run(&self, start: UtcTime) {
        self.run.store(start.ticks(), Ordering::Relaxed);
    }

    /// Sets which model change events are raised.
    pub(crate) fn set_model_changes(&self, events: ModelChangeEvents) {
        self.model_changes.store(events.to_bits(), Ordering::Relaxed);
    }

    /// Which model change events to raise; `Off` if no client monitors events.
    pub(crate) fn model_changes(&self) -> ModelChangeEvents {
        if !self.is_watched() {
            return ModelChangeEvents::Off;
        }
        ModelChangeEvents::from_bits(self.model_changes.load(Ordering::Relaxed))
    }

    /// A new EventId.
    #[must_use]
    pub fn next_event_id(&self) -> ByteString {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut id = Vec::with_capacity(16);
        id.extend_from_slice(&self.run.load(Ordering::Relaxed).to_be_bytes());
        id.extend_from_slice(&number.to_be_bytes());
        id.into()
    }

    /// Number of events handed over so far, which is the number of the next one. Events raised while no item monitored
    /// events do not count.
    pub(crate) fn raised(&self) -> u64 {
        self.raised.load(Ordering::Acquire)
    }

    /// Adds an item of a shard on a node. Returns the number of the first event for the item.
    pub(crate) fn watch(&self, shard: usize, node: NodeIx) -> u64 {
        self.watching.fetch_add(1, Ordering::AcqRel);
        let mut notifiers = self.notifiers.write().unwrap_or_else(PoisonError::into_inner);
        let counts = notifiers.entry(node).or_insert_with(|| vec![0; self.shards.len()].into());
        if let Some(count) = counts.get_mut(shard) {
            *count += 1;
        }
        drop(notifiers);
        // After the change: every event with this or a later number sees the item.
        self.raised()
    }

    /// Removes an item of a shard on a node.
    pub(crate) fn unwatch(&self, shard: usize, node: NodeIx) {
        self.watching.fetch_sub(1, Ordering::AcqRel);
        let mut notifiers = self.notifiers.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = notifiers.get_mut(&node) {
            if let Some(count) = counts.get_mut(shard) {
                *count = count.saturating_sub(1);
            }
            if counts.iter().all(|count| *count == 0) {
                notifiers.remove(&node);
            }
        }
    }

    /// Marks an event item as being between two shards. Events are still counted until it has arrived or is deleted.
    /// `has_left`: events for it may still be in the ring that it leaves.
    pub(crate) fn depart(self: &Arc<Self>, has_left: bool) -> Departed {
        self.watching.fetch_add(1, Ordering::AcqRel);
        Departed { bus: Arc::clone(self), raised: self.raised(), has_left }
    }

    /// Hands an event over to the shards that have items on its notifiers. Calls `wake` for shards that must not wait
    /// for their next deadline.
    pub(crate) fn hand_over(&self, event: &Arc<Event>, mut wake: impl FnMut(usize)) {
        let number_of_event = self.raised.fetch_add(1, Ordering::AcqRel);
        let notifiers = self.notifiers.read().unwrap_or_else(PoisonError::into_inner);
        let watched = event.notifiers().iter().filter_map(|node| notifiers.get(node));
        let watched: smallvec::SmallVec<[&Box<[u32]>; 6]> = watched.collect();
        for (number, shard) in self.shards.iter().enumerate() {
            if !watched.iter().any(|counts| counts.get(number).is_some_and(|count| *count > 0)) {
                continue;
            }
            let pushed = shard.push(Handed { number: number_of_event, event: Arc::clone(event) });
            if let Err(lost) = pushed {
                shard.lost_count.fetch_add(1, Ordering::AcqRel);
                shard.lost.fetch_max(lost + 1, Ordering::AcqRel);
            }
            let is_pressed = pushed.is_err() || shard.is_half_full();
            if is_pressed && !shard.pressed.swap(true, Ordering::AcqRel) {
                wake(number);
            }
        }
    }

    /// Whether a shard's ring became half full since the last call.
    #[inline]
    pub(crate) fn take_pressed(&self, shard: usize) -> bool {
        self.shards.get(shard).is_some_and(|shard| {
            shard.pressed.load(Ordering::Relaxed) && shard.pressed.swap(false, Ordering::AcqRel)
        })
    }

    /// Number of events that wait for a shard.
    pub(crate) fn len(&self, shard: usize) -> usize {
        self.shards.get(shard).map_or(0, |shard| shard.ring.len())
    }

    /// The next event for a shard.
    pub(crate) fn pop(&self, shard: usize) -> Option<Handed> {
        self.shards.get(shard)?.pop()
    }

    /// The number of the newest event for a shard that was lost since the last call.
    pub(crate) fn take_lost(&self, shard: usize) -> Option<u64> {
        let lost = &self.shards.get(shard)?.lost;
        if lost.load(Ordering::Relaxed) == 0 {
            return None;
        }
        lost.swap(0, Ordering::AcqRel).checked_sub(1)
    }

    /// How many events for a shard were lost so far.
    pub(crate) fn lost_count(&self, shard: usize) -> u64 {
        self.shards.get(shard).map_or(0, |shard| shard.lost_count.load(Ordering::Acquire))
    }
}

/// An event item between two shards.
#[derive(Debug)]
pub(crate) struct Departed {
    bus: Arc<EventBus>,
    raised: u64,
    has_left: bool,
}

impl Departed {
    /// Whether events were raised since it left, or were left in the old ring.
    pub(crate) fn has_missed(&self) -> bool {
        self.has_left || self.bus.raised() != self.raised
    }
}

impl Drop for Departed {
    fn drop(&mut self) {
        self.bus.watching.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{EventNodes, NewEvent};
    use super::*;
    use taktwerk_types::NodeId;

    fn event(notifiers: &[NodeIx]) -> Arc<Event> {
        let placed = EventNodes { notifiers: notifiers.into(), ..EventNodes::default() };
        let new = NewEvent::new(NodeId::numeric(0, 2041), NodeId::NULL);
        Arc::new(Event::new(new, placed, ByteString::default, UtcTime::NULL))
    }

    #[test]
    fn only_shards_with_items_on_a_notifier_get_an_event() {
        let bus = EventBus::new(3);
        let (server, boiler) = (NodeIx::ns0(1), NodeIx::ns0(2));
        assert!(!bus.is_watched());
        bus.watch(1, server);
        bus.watch(2, boiler);
        bus.watch(2, boiler);
        bus.hand_over(&event(&[server]), |_| panic!("nobody has to hurry"));
        bus.hand_over(&event(&[server, boiler]), |_| panic!("nobody has to hurry"));
        assert_eq!([bus.len(0), bus.len(1), bus.len(2)], [0, 2, 1]);
        bus.unwatch(2, boiler);
        bus.hand_over(&event(&[boiler]), |_| {});
        bus.unwatch(2, boiler);
        bus.hand_over(&event(&[boiler]), |_| {});
        assert_eq!(bus.len(2), 2);
        bus.unwatch(1, server);
        assert!(!bus.is_watched() && bus.raised() == 4);
    }

    #[test]
    fn a_full_ring_reports_lost_events_and_wakes_its_shard_once() {
        let bus = EventBus::new(1);
        bus.watch(0, NodeIx::ns0(1));
        let mut woken = 0;
        for _ in 0..RING_LEN + 5 {
            bus.hand_over(&event(&[NodeIx::ns0(1)]), |_| woken += 1);
        }
        assert_eq!((woken, bus.len(0)), (1, RING_LEN));
        assert!(bus.take_pressed(0) && !bus.take_pressed(0));
        assert_eq!((bus.take_lost(0), bus.take_lost(0)), (Some(RING_LEN as u64 + 4), None));
    }

    #[test]
    fn large_events_are_bounded_by_their_bytes() {
        let bus = EventBus::new(1);
        bus.watch(0, NodeIx::ns0(1));
        let placed = || EventNodes { notifiers: [NodeIx::ns0(1)].as_slice().into(), ..EventNodes::default() };
        let large = || {
            let new = NewEvent::new(NodeId::numeric(0, 2041), NodeId::NULL).field(
                "Changes",
                taktwerk_types::Variant::from(ByteString::from(vec![0; cost::EVENT_RING / 8])),
            );
            Arc::new(Event::new(new, placed(), ByteString::default, UtcTime::NULL))
        };
        let mut woken = 0;
        for _ in 0..20 {
            bus.hand_over(&large(), |_| woken += 1);
        }
        assert_eq!((woken, bus.len(0)), (1, 7), "eight and what is around them have no room");
        assert_eq!(bus.take_lost(0), Some(19));
        let taken: Vec<u64> = core::iter::from_fn(|| bus.pop(0)).map(|handed| handed.number).collect();
        assert_eq!(taken, (0..7).collect::<Vec<_>>());
        bus.hand_over(&large(), |_| {});
        assert_eq!(bus.len(0), 1, "the room is given back");
    }

    #[test]
    fn an_item_gets_the_number_of_its_first_event() {
        let bus = EventBus::new(1);
        assert_eq!(bus.watch(0, NodeIx::ns0(1)), 0);
        bus.hand_over(&event(&[NodeIx::ns0(1)]), |_| {});
        assert_eq!(bus.watch(0, NodeIx::ns0(1)), 1);
        assert_eq!(bus.pop(0).map(|handed| handed.number), Some(0));
    }

    #[test]
    fn ids_differ_within_a_run_and_between_runs() {
        let bus = EventBus::new(1);
        let first = bus.next_event_id();
        bus.set_run(UtcTime::from_ticks(5));
        let ids = [first, bus.next_event_id(), bus.next_event_id()];
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids.iter().all(|id| id.as_bytes().len() == 16));
    }
}
