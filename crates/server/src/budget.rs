//! What all shards together may use (design §11): shares that are taken and given back.
//!
//! A limit of one connection or session bounds what one client can do; a budget bounds what all of them can do, so that
//! the memory of a server has a sum that can be written down ([`Limits::memory_max`](crate::Limits::memory_max)).

use crate::limits::Limits;
use crate::subscription::SubscriptionLimits;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Something countable of which there is only so much.
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    pub(crate) const fn new(max: usize) -> Self {
        Self { used: AtomicUsize::new(0), max }
    }

    /// Takes `count`, or nothing if that is not left. Returns whether it was taken.
    #[must_use]
    pub(crate) fn take(&self, count: usize) -> bool {
        let next = |used: usize| used.checked_add(count).filter(|used| *used <= self.max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Takes as much of `count` as is left and says how much that is.
    pub(crate) fn take_up_to(&self, count: usize) -> usize {
        let mut taken = 0;
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            taken = count.min(self.max.saturating_sub(used));
            Some(used + taken)
        });
        taken
    }

    /// Takes `count` whether it is left or not: for what is there already. Look at [`Self::is_over`] then.
    pub(crate) fn force(&self, count: usize) {
        self.used.fetch_add(count, Ordering::Relaxed);
    }

    /// Gives back.
    pub(crate) fn give(&self, count: usize) {
        let before = self.used.fetch_sub(count, Ordering::Relaxed);
        debug_assert!(before >= count, "more was given back than taken");
    }

    /// Changes a share from `before` to `after`.
    #[inline]
    pub(crate) fn change(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(0) => {}
            Some(more) => self.force(more),
            None => self.give(before - after),
        }
    }

    /// Whether more is used than there should be.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.used() > self.max
    }

    /// How much is in use.
    #[must_use]
    #[inline]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// How much there is.
    #[must_use]
    pub fn max(&self) -> usize {
        self.max
    }
}

/// The budgets of a server. All of them are back at zero when all clients are gone.
#[derive(Debug)]
#[non_exhaustive]
pub struct Budgets {
    /// Bytes of chunks and messages that have not arrived whole, beyond
    /// [`ALLOWANCE`](crate::limits::ALLOWANCE) for each connection.
    pub reassembly: Budget,
    /// Bytes that clients have not taken yet, beyond [`ALLOWANCE`](crate::limits::ALLOWANCE) for each connection.
    pub unsent: Budget,
    /// OpenSecureChannel exchanges that are being computed.
    pub handshakes: Budget,
    /// Subscriptions.
    pub subscriptions: Budget,
    /// MonitoredItems.
    pub monitored_items: Budget,
    /// Places in the queues of MonitoredItems beyond the first of each.
    pub queue_places: Budget,
    /// Bytes of messages kept for Republish.
    pub retransmission: Budget,
}

impl Budgets {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            reassembly: Budget::new(limits.reassembly_bytes_max),
            unsent: Budget::new(limits.unsent_bytes_max),
            handshakes: Budget::new(limits.handshakes_max),
            ..Self::of_subscriptions(&limits.subscriptions)
        }
    }

    /// Those that an engine needs.
    pub(crate) fn of_subscriptions(subscriptions: &SubscriptionLimits) -> Self {
        Self {
            reassembly: Budget::new(0),
            unsent: Budget::new(0),
            handshakes: Budget::new(0),
            subscriptions: Budget::new(subscriptions.subscriptions_max as usize),
            monitored_items: Budget::new(subscriptions.monitored_items_max as usize),
            queue_places: Budget::new(subscriptions.queue_places_max),
            retransmission: Budget::new(subscriptions.retransmission_bytes_total_max),
        }
    }

    /// What is in use of each, for people.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Budget)> {
        [
            ("reassembly bytes", &self.reassembly),
            ("unsent bytes", &self.unsent),
            ("handshakes", &self.handshakes),
            ("subscriptions", &self.subscriptions),
            ("monitored items", &self.monitored_items),
            ("queue places", &self.queue_places),
            ("retransmission bytes", &self.retransmission),
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_taken_up_to_the_limit_and_given_back() {
        let budget = Budget::new(10);
        assert!(budget.take(10) && !budget.take(1));
        budget.give(4);
        assert_eq!((budget.take_up_to(9), budget.take_up_to(9)), (4, 0));
        budget.change(10, 12);
        assert!(budget.is_over());
        budget.change(12, 0);
        assert_eq!(budget.used(), 0);
        assert!(!budget.take(usize::MAX) && budget.take(10));
    }

    #[test]
    fn nothing_is_not_unlimited() {
        let none = Budget::new(0);
        assert!(!none.take(1));
        assert_eq!(none.take_up_to(5), 0);
        none.force(1);
        assert!(none.is_over());
    }
}
