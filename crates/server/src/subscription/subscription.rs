//! The variables of a Subscription (Part 4 §5.14.1.3).

use super::item_ids::ItemIds;
use super::journal::Journal;
use super::phase::Phase;
use super::retransmission::Retransmission;
use super::state::State;
use super::{SessionKey, SubscriptionLimits};
use crate::account::{Account, Category, Charge, Exhausted, Level};
use crate::authorization::{Decisions, Grant};
use crate::headroom::Share;
use crate::limits::cost;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::Instant;
use taktwerk_types::time::nanos_from_millis;

/// Parameters set by the client (Part 4 §5.14.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Parameters {
    /// In ms.
    pub(crate) publishing_interval: f64,
    pub(crate) lifetime_count: u32,
    pub(crate) max_keep_alive_count: u32,
    pub(crate) max_notifications: u32,
    pub(crate) priority: u8,
}

impl Parameters {
    /// The nearest parameters within the limits.
    pub(crate) fn revise(self, limits: &SubscriptionLimits) -> Self {
        let interval = if self.publishing_interval.is_finite() { self.publishing_interval } else { 0.0 };
        // Whole microseconds, so that the client learns the exact interval of the timer.
        let interval = (interval.clamp(limits.publishing_interval_min, limits.publishing_interval_max) * 1e3)
            .round()
            / 1e3;
        let keep_alive = match self.max_keep_alive_count {
            0 => 10,
            count => count.min(limits.keep_alive_count_max),
        };
        // Part 4 §5.14.2.2: the lifetime is at least three keep-alives.
        let lifetime = self.lifetime_count.max(keep_alive.saturating_mul(3)).min(limits.lifetime_count_max);
        let max_notifications = match self.max_notifications {
            0 => limits.notifications_per_publish_max,
            count => count.min(limits.notifications_per_publish_max),
        };
        Self {
            publishing_interval: interval,
            lifetime_count: lifetime,
            max_keep_alive_count: keep_alive,
            max_notifications,
            priority: self.priority,
        }
    }
}

/// Counters for SubscriptionDiagnosticsDataType (Part 5 §12.15).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) modify: u32,
    pub(crate) enable: u32,
    pub(crate) disable: u32,
    pub(crate) republish_requests: u32,
    pub(crate) republished: u32,
    pub(crate) transfer_requests: u32,
    pub(crate) transferred_to_alt_client: u32,
    pub(crate) transferred_to_same_client: u32,
    pub(crate) publish_requests: u32,
    pub(crate) data_changes: u32,
    pub(crate) events: u32,
    pub(crate) event_queue_overflows: u32,
    pub(crate) notifications: u32,
    pub(crate) late: u32,
    pub(crate) discarded_messages: u32,
    pub(crate) queue_overflows: u32,
}

/// The account of a subscription, with the charges for itself and its items.
#[derive(Debug)]
pub(crate) struct Kept {
    account: Arc<Account>,
    _count: Charge,
    item_count: Charge,
    bytes: Charge,
}

impl Kept {
    /// For a subscription of the session with the account.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(crate) fn new(session: &Arc<Account>) -> Result<Self, Exhausted> {
        let account = session.child(Level::Subscription, usize::MAX);
        Ok(Self {
            _count: account.charge(Category::SubscriptionCount, 1)?,
            item_count: account.nothing(Category::MonitoredItemCount),
            bytes: account.charge(Category::MonitoredItems, cost::SUBSCRIPTION)?,
            account,
        })
    }

    /// The subscription's account.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Charges for `items` in total.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(crate) fn resize(&mut self, items: usize) -> Result<(), Exhausted> {
        self.item_count.resize(items)?;
        self.bytes.resize(cost::SUBSCRIPTION + items * cost::MONITORED_ITEM)
    }

    /// Reduces the charge to `items`.
    pub(crate) fn shrink(&mut self, items: usize) {
        self.item_count.resize_anyway(items);
        self.bytes.resize_anyway(cost::SUBSCRIPTION + items * cost::MONITORED_ITEM);
    }
}

/// A Subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: u32,
    /// The session; `None` after it closed without deleting its subscriptions.
    pub(crate) session: Option<SessionKey>,
    pub(crate) parameters: Parameters,
    /// In ns.
    pub(crate) interval: u64,
    /// When the publishing timer expires.
    pub(crate) next_publish: Instant,
    pub(crate) phase: Phase,
    pub(crate) publishing_enabled: bool,
    pub(crate) state: State,
    pub(crate) message_sent: bool,
    pub(crate) more_notifications: bool,
    pub(crate) lifetime_counter: u32,
    pub(crate) keep_alive_counter: u32,
    /// The sequence number of the next message with notifications.
    pub(crate) next_sequence_number: u32,
    pub(crate) retransmission: Retransmission,
    /// Average size of a notification in the last message, in bytes; used to reserve space for the next one.
    pub(crate) notification_len: usize,
    pub(crate) items: Vec<u32>,
    /// The ids of its items, if it came from another shard.
    pub(crate) ids: Option<Box<ItemIds>>,
    /// Items with an AggregateFilter; some may no longer exist.
    pub(crate) aggregates: Vec<u32>,
    /// Number of items that are not disabled.
    pub(crate) enabled_items: u32,
    /// Whether any item has ever triggered another one; most subscriptions never search links.
    pub(crate) has_links: bool,
    /// Whether items were deleted whose notifications could still be republished.
    pub(crate) has_lost_items: bool,
    /// Stored messages contain events that were sent before a change of permissions.
    pub(crate) has_old_events: bool,
    /// Items that may have something to report, in order of arrival.
    pub(crate) ready: VecDeque<u32>,
    /// Items with events to report, in order of arrival.
    pub(crate) ready_events: VecDeque<u32>,
    /// With one notification per message: whether the last message was an event although values waited.
    pub(crate) told_event: bool,
    /// A running number of when this subscription was last served, for fairness between late subscriptions.
    pub(crate) served: u64,
    pub(crate) counters: Counters,
    /// The permissions of its client.
    pub(super) decisions: Arc<Decisions>,
    /// Its account and charges.
    pub(crate) kept: Kept,
    /// Its share of the predicted CPU load, if enabled.
    pub(crate) share: Option<Box<Share>>,
    /// Its journal, if it is durable.
    pub(super) journal: Option<Box<Journal>>,
}

impl Subscription {
    pub(crate) fn new(
        id: u32,
        session: SessionKey,
        parameters: Parameters,
        publishing_enabled: bool,
        decisions: Arc<Decisions>,
        phase: Phase,
        kept: Kept,
    ) -> Self {
        Self {
            id,
            session: Some(session),
            parameters,
            interval: nanos_from_millis(parameters.publishing_interval),
            next_publish: phase.first(),
            phase,
            publishing_enabled,
            state: State::Normal,
            message_sent: false,
            more_notifications: false,
            lifetime_counter: parameters.lifetime_count,
            keep_alive_counter: parameters.max_keep_alive_count,
            next_sequence_number: 1,
            retransmission: Retransmission::new(kept.account()),
            notification_len: 32,
            items: Vec::new(),
            ids: None,
            aggregates: Vec::new(),
            enabled_items: 0,
            has_links: false,
            has_lost_items: false,
            has_old_events: false,
            ready: VecDeque::new(),
            ready_events: VecDeque::new(),
            told_event: false,
            served: 0,
            counters: Counters::default(),
            decisions,
            kept,
            share: None,
            journal: None,
        }
    }

    /// The grant of its last authorization.
    pub(crate) fn grant(&self) -> Grant {
        self.decisions.grant.clone()
    }

    /// The client has shown that it is alive.
    pub(crate) fn reset_lifetime(&mut self) {
        self.lifetime_counter = self.parameters.lifetime_count;
    }

    pub(crate) fn reset_keep_alive(&mut self) {
        self.keep_alive_counter = self.parameters.max_keep_alive_count;
    }

    /// Takes a sequence number for a message; 0 is skipped when the counter wraps (Part 4 §5.14.1.1).
    pub(crate) fn take_sequence_number(&mut self) -> u32 {
        let number = self.next_sequence_number;
        self.next_sequence_number = number.checked_add(1).unwrap_or(1);
        number
    }

    /// The number of the next message that the client will receive. Messages of a durable subscription that are not
    /// written yet come first.
    pub(super) fn next_to_send(&self) -> u32 {
        self.journal.as_ref().map_or(self.next_sequence_number, |journal| journal.unwritten_from())
    }

    /// The sequence numbers available for Republish. Messages that are not written yet are the last ones.
    pub(super) fn available(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        let all = self.retransmission.sequence_numbers();
        let unwritten = self.journal.as_ref().map_or(0, |journal| {
            let numbers = self.retransmission.sequence_numbers();
            numbers.filter(|number| !journal.has_written(*number)).count()
        });
        let count = all.len() - unwritten;
        all.take(count)
    }

    /// Number of disabled items.
    pub(crate) fn disabled_items(&self) -> u32 {
        u32::try_from(self.items.len()).unwrap_or(u32::MAX).saturating_sub(self.enabled_items)
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase::SharedPhases;
    use super::*;

    #[test]
    fn parameters_are_revised_into_the_limits() {
        let limits = SubscriptionLimits::default();
        let asked = Parameters {
            publishing_interval: f64::NAN,
            lifetime_count: 0,
            max_keep_alive_count: 0,
            max_notifications: 0,
            priority: 3,
        };
        let revised = asked.revise(&limits);
        assert_eq!(revised.publishing_interval, limits.publishing_interval_min);
        assert_eq!((revised.lifetime_count, revised.max_keep_alive_count), (30, 10));
        assert_eq!(revised.max_notifications, limits.notifications_per_publish_max);
        let huge = Parameters { lifetime_count: u32::MAX, max_keep_alive_count: u32::MAX, ..asked };
        let revised = huge.revise(&limits);
        assert!(revised.lifetime_count >= 3 * revised.max_keep_alive_count);
    }

    #[test]
    fn sequence_numbers_wrap_to_one() {
        let parameters = Parameters {
            publishing_interval: 1.0,
            lifetime_count: 3,
            max_keep_alive_count: 1,
            max_notifications: 1,
            priority: 0,
        };
        let mut subscription = Subscription::new(
            1,
            SessionKey(0),
            parameters,
            true,
            Arc::new(Decisions::nothing()),
            Phase::new(Instant::ZERO, 1_000_000, &mut SharedPhases::default()),
            Kept::new(&Account::server(crate::Limits::default().maxima())).unwrap(),
        );
        assert_eq!(subscription.take_sequence_number(), 1);
        subscription.next_sequence_number = u32::MAX;
        assert_eq!(subscription.take_sequence_number(), u32::MAX);
        assert_eq!(subscription.take_sequence_number(), 1);
    }
}
