//! From those who raise events to the shards whose items want them.

use super::model::Event;
use crate::node_ix::NodeIx;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use crossbeam_queue::ArrayQueue;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use taktwerk_types::{ByteString, UtcTime};

/// Events on their way to one shard at most; beyond, events are lost, and all items on the shard say so.
const RING_LEN: usize = 8192;

/// The rings of all shards, and who watches what.
#[derive(Debug)]
pub struct EventBus {
    /// Items that watch, and items that move to another shard. While there are none, raising an event is looking at this.
    watching: AtomicUsize,
    /// How many events were handed over.
    raised: AtomicU64,
    /// What the ids of this run begin with, and the number of the next one.
    run: AtomicI64,
    next_id: AtomicU64,
    /// How many items each shard has on each node.
    notifiers: RwLock<BTreeMap<NodeIx, Box<[u32]>>>,
    shards: Box<[ShardEvents]>,
}

/// What is on the way to one shard.
#[derive(Debug)]
struct ShardEvents {
    ring: ArrayQueue<Arc<Event>>,
    /// How many had no room.
    lost: AtomicU64,
    /// The ring is half full, and the shard was told.
    pressed: AtomicBool,
}

impl EventBus {
    pub(crate) fn new(shards: usize) -> Self {
        let shards = (0..shards.max(1)).map(|_| ShardEvents {
            ring: ArrayQueue::new(RING_LEN),
            lost: AtomicU64::new(0),
            pressed: AtomicBool::new(false),
        });
        Self {
            watching: AtomicUsize::new(0),
            raised: AtomicU64::new(0),
            run: AtomicI64::new(0),
            next_id: AtomicU64::new(1),
            notifiers: RwLock::default(),
            shards: shards.collect(),
        }
    }

    /// Whether somebody may want events.
    #[inline]
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watching.load(Ordering::Relaxed) != 0
    }

    /// Says when the server has started: ids of events of another run must differ (Part 5 §6.4.2).
    pub(crate) fn set_run(&self, start: UtcTime) {
        self.run.store(start.ticks(), Ordering::Relaxed);
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

    /// How many events were handed over so far. Events that were raised while nobody watched do not count.
    pub(crate) fn raised(&self) -> u64 {
        self.raised.load(Ordering::Acquire)
    }

    /// Notes that a shard has one item more on a node.
    pub(crate) fn watch(&self, shard: usize, node: NodeIx) {
        self.watching.fetch_add(1, Ordering::AcqRel);
        let mut notifiers = self.notifiers.write().unwrap_or_else(PoisonError::into_inner);
        let counts = notifiers.entry(node).or_insert_with(|| vec![0; self.shards.len()].into());
        if let Some(count) = counts.get_mut(shard) {
            *count += 1;
        }
    }

    /// Notes that a shard has one item less on a node.
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

    /// Notes that an item that watches is between two shards. Events go on being counted until it has arrived or is gone.
    pub(crate) fn depart(self: &Arc<Self>) -> Departed {
        self.watching.fetch_add(1, Ordering::AcqRel);
        Departed { bus: Arc::clone(self), raised: self.raised() }
    }

    /// Hands an event over to the shards that have items on its notifiers. `wake` is called with the shards that must not
    /// wait for their next deadline.
    pub(crate) fn hand_over(&self, event: &Arc<Event>, mut wake: impl FnMut(usize)) {
        self.raised.fetch_add(1, Ordering::AcqRel);
        let notifiers = self.notifiers.read().unwrap_or_else(PoisonError::into_inner);
        let watched = event.notifiers().iter().filter_map(|node| notifiers.get(node));
        let watched: smallvec::SmallVec<[&Box<[u32]>; 6]> = watched.collect();
        for (number, shard) in self.shards.iter().enumerate() {
            if !watched.iter().any(|counts| counts.get(number).is_some_and(|count| *count > 0)) {
                continue;
            }
            let is_full = shard.ring.push(Arc::clone(event)).is_err();
            if is_full {
                shard.lost.fetch_add(1, Ordering::AcqRel);
            }
            let is_pressed = is_full || shard.ring.len() * 2 >= RING_LEN;
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

    /// How many events wait for a shard.
    pub(crate) fn len(&self, shard: usize) -> usize {
        self.shards.get(shard).map_or(0, |shard| shard.ring.len())
    }

    /// The next event for a shard.
    pub(crate) fn pop(&self, shard: usize) -> Option<Arc<Event>> {
        self.shards.get(shard)?.ring.pop()
    }

    /// Whether events for a shard were lost since the last call.
    pub(crate) fn take_lost(&self, shard: usize) -> bool {
        self.shards.get(shard).is_some_and(|shard| {
            shard.lost.load(Ordering::Relaxed) != 0 && shard.lost.swap(0, Ordering::AcqRel) != 0
        })
    }
}

/// An item between two shards.
#[derive(Debug)]
pub(crate) struct Departed {
    bus: Arc<EventBus>,
    raised: u64,
}

impl Departed {
    /// Whether events were raised since it left.
    pub(crate) fn has_missed(&self) -> bool {
        self.bus.raised() != self.raised
    }
}

impl Drop for Departed {
    fn drop(&mut self) {
        self.bus.watching.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{NewEvent, Placed};
    use super::*;
    use taktwerk_types::NodeId;

    fn event(notifiers: &[NodeIx]) -> Arc<Event> {
        let placed = Placed { notifiers: notifiers.into(), ..Placed::default() };
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
    fn a_full_ring_loses_events_and_says_so_and_wakes_its_shard_once() {
        let bus = EventBus::new(1);
        bus.watch(0, NodeIx::ns0(1));
        let mut woken = 0;
        for _ in 0..RING_LEN + 5 {
            bus.hand_over(&event(&[NodeIx::ns0(1)]), |_| woken += 1);
        }
        assert_eq!((woken, bus.len(0)), (1, RING_LEN));
        assert!(bus.take_pressed(0) && !bus.take_pressed(0));
        assert!(bus.take_lost(0) && !bus.take_lost(0));
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
