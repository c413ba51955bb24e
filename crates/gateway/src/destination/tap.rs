//! Collects the values of tags for one destination until they are written to its queue.

use super::block::{Block, Builder, count};
use super::counters::{Count, Counters};
use super::pattern::{self, Pattern};
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Most bytes that wait for the disk. Further values are dropped and counted; sources are never blocked. While blocks are written,
/// as many can be collected again.
const WAITING_MAX: usize = 32 << 20;

#[derive(Debug, Default)]
struct Waiting {
    full: Vec<Block>,
    full_len: usize,
    builder: Builder,
    tags: u32,
}

/// Collects values for one destination.
#[derive(Debug)]
pub struct Tap {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    /// Whether unchanged values are collected.
    every: bool,
    waiting: Mutex<Waiting>,
    counters: Arc<Counters>,
}

/// A tag of a tap.
#[derive(Debug, Clone)]
pub struct Tapped {
    tap: Arc<Tap>,
    id: u32,
}

impl Tap {
    /// A tap for tags that match one of `include` (or all, if it is empty) and none of `exclude`.
    #[must_use]
    pub fn new(include: Vec<Pattern>, exclude: Vec<Pattern>, every: bool, counters: Arc<Counters>) -> Self {
        Self { include, exclude, every, waiting: Mutex::default(), counters }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a tag if the tap's patterns match.
    #[must_use]
    pub fn of(tap: &Arc<Self>, name: &str) -> Option<Tapped> {
        if !pattern::takes(&tap.include, &tap.exclude, name) {
            return None;
        }
        Some(Self::add(tap))
    }

    /// Registers a tag regardless of the patterns.
    #[must_use]
    pub fn add(tap: &Arc<Self>) -> Tapped {
        let mut waiting = tap.lock();
        let id = waiting.tags;
        waiting.tags += 1;
        drop(waiting);
        Tapped { tap: Arc::clone(tap), id }
    }

    /// Takes the collected values.
    #[must_use]
    pub fn take(&self) -> Vec<Block> {
        let mut waiting = self.lock();
        let mut blocks = core::mem::take(&mut waiting.full);
        waiting.full_len = 0;
        blocks.extend(waiting.builder.take());
        blocks
    }

    /// The number of collected values.
    #[must_use]
    pub fn count(&self) -> u64 {
        let waiting = self.lock();
        count(&waiting.full) + u64::from(waiting.builder.count())
    }

    /// Takes back blocks that could not be written, before those that were collected in the meantime.
    pub fn put_back(&self, mut blocks: Vec<Block>) {
        let mut waiting = self.lock();
        waiting.full_len += blocks.iter().map(|block| block.body.len()).sum::<usize>();
        blocks.append(&mut waiting.full);
        waiting.full = blocks;
    }
}

impl Tapped {
    /// Whether it belongs to a tap.
    #[must_use]
    pub fn is_of(&self, tap: &Arc<Tap>) -> bool {
        Arc::ptr_eq(&self.tap, tap)
    }

    /// Collects a value; `is_change` says whether it differs from the last one.
    pub fn push(
        &self,
        name: &Arc<str>,
        value: &Variant,
        status: StatusCode,
        (time, received): (UtcTime, UtcTime),
        is_change: bool,
    ) {
        if !is_change && !self.tap.every {
            return;
        }
        let mut waiting = self.tap.lock();
        if waiting.full_len + waiting.builder.len() >= WAITING_MAX {
            self.tap.counters.add(Count::Overrun, 1);
            return;
        }
        waiting.builder.push(self.id, name, value, status, time, received);
        if waiting.builder.is_full()
            && let Some(block) = waiting.builder.take()
        {
            waiting.full_len += block.body.len();
            waiting.full.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::block::decode;

    #[test]
    fn a_tap_keeps_order_and_drops_values_when_it_is_full() {
        let counters = Arc::new(Counters::default());
        let tap =
            Tap::new(vec![Pattern::new("L/*")], vec![Pattern::new("L/b")], false, Arc::clone(&counters));
        let tap = Arc::new(tap);
        assert!(Tap::of(&tap, "M/a").is_none() && Tap::of(&tap, "L/b").is_none());
        let tapped = Tap::of(&tap, "L/a").unwrap();
        let name: Arc<str> = "L/a".into();
        let now = UtcTime::from_ticks(5);
        let push = |value: Variant, is_change| {
            tapped.push(&name, &value, StatusCode::GOOD, (now, now), is_change);
        };
        push(1.into(), true);
        push(1.into(), false);
        push(2.into(), true);
        let blocks = tap.take();
        let values: Vec<Variant> =
            decode(&blocks[0].body, 0).unwrap().into_iter().map(|record| record.value).collect();
        assert_eq!((blocks.len(), values), (1, vec![1.into(), 2.into()]));
        assert!(tap.take().is_empty());
        let large: Variant = "x".repeat(1 << 20).as_str().into();
        for _ in 0..40 {
            push(large.clone(), true);
        }
        let kept: u32 = tap.take().iter().map(|block| block.count).sum();
        assert_eq!(u64::from(kept) + counters.snapshot().overrun, 40);
        assert!((30..40).contains(&kept), "{kept}");
    }
}
