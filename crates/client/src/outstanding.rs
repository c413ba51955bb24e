//! Outstanding requests.

use crate::event::RequestHandle;
use crate::subscription::SubscriptionHandle;
use std::collections::VecDeque;
use taktwerk_types::Instant;

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A request of the application.
    User,
    /// A part of a split request.
    Part {
        batch: u32,
        part: u32,
    },
    GetEndpoints,
    CreateSession,
    ActivateSession,
    CloseSession,
    Transfer,
    /// Keeps the session alive and checks the connection.
    Probe,
    Publish,
    Republish {
        subscription: SubscriptionHandle,
        sequence_number: u32,
    },
    CreateSubscription(SubscriptionHandle),
    ModifySubscription(SubscriptionHandle),
    SetPublishingMode(SubscriptionHandle, bool),
    DeleteSubscription(SubscriptionHandle),
    ResendData(SubscriptionHandle),
    /// GetMonitoredItems.
    Audit(SubscriptionHandle),
    /// A request whose answer does not matter.
    Ignore,
}

/// An outstanding request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) request_id: u32,
    pub(crate) handle: RequestHandle,
    pub(crate) purpose: Purpose,
    pub(crate) service: &'static str,
    pub(crate) sent_at: Instant,
    pub(crate) deadline: Instant,
}

/// The outstanding requests, in the order they were sent. Ids grow, so lookup is a binary search. The oldest request,
/// which is usually answered first, is found at once.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    entries: VecDeque<Entry>,
    publishes: usize,
}

impl Outstanding {
    /// Number of requests other than Publish.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.publishes
    }

    /// The service of the latest request.
    pub(crate) fn newest(&self) -> Option<&'static str> {
        self.entries.back().map(|entry| entry.service)
    }

    /// Number of Publish requests.
    pub(crate) fn publishes(&self) -> usize {
        self.publishes
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.publishes += usize::from(entry.purpose == Purpose::Publish);
        self.entries.push_back(entry);
    }

    /// Removes the request with this id.
    pub(crate) fn take(&mut self, request_id: u32) -> Option<Entry> {
        let first = self.entries.front()?.request_id;
        // Distances from the oldest id keep the order across a wrap.
        let at = if first == request_id {
            0
        } else {
            let distance = |id: u32| id.wrapping_sub(first);
            self.entries
                .binary_search_by_key(&distance(request_id), |entry| distance(entry.request_id))
                .ok()?
        };
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<Entry> {
        let entry = self.entries.remove(at)?;
        self.publishes -= usize::from(entry.purpose == Purpose::Publish);
        Some(entry)
    }

    /// Removes a request whose deadline has passed.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.deadline <= now)?;
        self.remove(at)
    }

    /// Removes the oldest request.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.remove(0)
    }

    /// The next deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.entries.iter().map(|entry| entry.deadline).min().filter(|at| *at != Instant::FAR)
    }

    /// Whether a request with such a purpose is outstanding.
    pub(crate) fn has(&self, purpose: impl Fn(Purpose) -> bool) -> bool {
        self.entries.iter().any(|entry| purpose(entry.purpose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(request_id: u32, purpose: Purpose) -> Entry {
        Entry {
            request_id,
            handle: RequestHandle(request_id),
            purpose,
            service: "Read",
            sent_at: Instant::ZERO,
            deadline: Instant::from_nanos(u64::from(request_id)),
        }
    }

    #[test]
    fn requests_are_found_in_any_order_across_the_wrap() {
        let mut outstanding = Outstanding::default();
        for id in [u32::MAX - 1, u32::MAX, 1, 2, 3] {
            outstanding.push(entry(id, if id == 2 { Purpose::Publish } else { Purpose::User }));
        }
        assert_eq!((outstanding.len(), outstanding.publishes()), (4, 1));
        for id in [2, u32::MAX - 1, 3, u32::MAX] {
            assert_eq!(outstanding.take(id).map(|entry| entry.request_id), Some(id));
            assert!(outstanding.take(id).is_none());
        }
        assert_eq!((outstanding.len(), outstanding.publishes()), (1, 0));
        assert_eq!(outstanding.deadline(), Some(Instant::from_nanos(1)));
        assert!(outstanding.take_overdue(Instant::ZERO).is_none());
        assert!(outstanding.take_overdue(Instant::from_nanos(1)).is_some());
    }
}
