//! Limits of subscriptions and MonitoredItems (design §11), with the reasons for their defaults.

/// Limits by which the server revises or refuses requests. Published under ServerCapabilities where a node exists.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SubscriptionLimits {
    /// Shortest publishing interval, ms.
    pub publishing_interval_min: f64,
    /// Longest publishing interval, ms.
    pub publishing_interval_max: f64,
    /// Shortest sampling interval other than 0 (every change), ms.
    pub sampling_interval_min: f64,
    /// Longest sampling interval, ms.
    pub sampling_interval_max: f64,
    /// Most keep-alive cycles.
    pub keep_alive_count_max: u32,
    /// Most lifetime cycles.
    pub lifetime_count_max: u32,
    /// Most notifications in one message; a client's 0 (no limit) is revised to this.
    pub notifications_per_publish_max: u32,
    /// Longest MonitoredItem queue. Each entry takes about 64 bytes.
    pub queue_size_max: u32,
    /// Most entries in the queues of all items of the server, beyond the first of each: queue sizes are revised to what
    /// is left.
    pub queue_places_max: usize,
    /// Most bytes of payloads (strings, arrays, structures) in the queues of all items of the server, and of the
    /// previous values used for comparison. Beyond, values are lost with the Overflow bit. A payload in several queues
    /// counts for each of them.
    pub queued_value_bytes_max: usize,
    /// Most subscriptions of one session.
    pub subscriptions_per_session_max: u32,
    /// Most subscriptions of the server.
    pub subscriptions_max: u32,
    /// Most MonitoredItems of one subscription.
    pub monitored_items_per_subscription_max: u32,
    /// Most MonitoredItems of the server.
    pub monitored_items_max: u32,
    /// Most queued Publish requests of one session.
    pub publish_requests_per_session_max: u32,
    /// Most acknowledgements of one Publish request; beyond: Bad_TooManyOperations. The default covers all
    /// subscriptions of a session.
    pub acknowledgements_per_publish_max: u32,
    /// Most unacknowledged messages kept for Republish, per subscription.
    pub retransmission_len_max: u32,
    /// Most bytes of unacknowledged messages, per subscription.
    pub retransmission_bytes_max: usize,
    /// Most bytes of unacknowledged messages of all subscriptions of the server. When exhausted, messages are not kept
    /// for Republish.
    pub retransmission_bytes_total_max: usize,
    /// Most items one item can trigger.
    pub links_per_item_max: u32,
}

impl Default for SubscriptionLimits {
    fn default() -> Self {
        Self {
            publishing_interval_min: 1.0,
            publishing_interval_max: 3_600_000.0,
            sampling_interval_min: 1.0,
            sampling_interval_max: 3_600_000.0,
            keep_alive_count_max: 100_000,
            lifetime_count_max: 300_000,
            notifications_per_publish_max: 1_000_000,
            queue_size_max: 10_000,
            queue_places_max: 4_000_000,
            queued_value_bytes_max: 256 << 20,
            subscriptions_per_session_max: 100,
            subscriptions_max: 5_000,
            monitored_items_per_subscription_max: 200_000,
            monitored_items_max: 1_000_000,
            publish_requests_per_session_max: 100,
            acknowledgements_per_publish_max: 2_000,
            retransmission_len_max: 20,
            retransmission_bytes_max: 64 << 20,
            retransmission_bytes_total_max: 256 << 20,
            links_per_item_max: 1000,
        }
    }
}

impl SubscriptionLimits {
    /// For load generators on the same machine.
    #[must_use]
    pub fn laboratory() -> Self {
        Self {
            queue_places_max: 50_000_000,
            queued_value_bytes_max: 2 << 30,
            subscriptions_per_session_max: 500,
            subscriptions_max: 20_000,
            monitored_items_per_subscription_max: 500_000,
            monitored_items_max: 4_000_000,
            retransmission_bytes_total_max: 2 << 30,
            ..Self::default()
        }
    }

    /// Raises every zero to one.
    pub(crate) fn at_least_one(mut self) -> Self {
        for limit in [
            &mut self.queue_size_max,
            &mut self.subscriptions_per_session_max,
            &mut self.subscriptions_max,
            &mut self.monitored_items_per_subscription_max,
            &mut self.monitored_items_max,
            &mut self.publish_requests_per_session_max,
            &mut self.acknowledgements_per_publish_max,
            &mut self.notifications_per_publish_max,
            &mut self.keep_alive_count_max,
            &mut self.lifetime_count_max,
        ] {
            *limit = (*limit).max(1);
        }
        self
    }
}
