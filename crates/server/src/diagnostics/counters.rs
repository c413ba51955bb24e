//! Server-wide counts (ServerDiagnosticsSummary, Part 5 §12.9).

use core::sync::atomic::{AtomicU32, Ordering};

/// A count that any shard can change and anybody can read.
#[derive(Debug, Default)]
pub struct Count(AtomicU32);

impl Count {
    /// One more.
    pub fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Changes by a signed amount.
    pub fn change(&self, by: i32) {
        self.0.fetch_add(by as u32, Ordering::Relaxed);
    }

    /// The count now.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, unless `max` is reached. Returns whether it was counted.
    #[must_use]
    pub fn up_to(&self, max: usize) -> bool {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < max).then(|| count + 1))
            .is_ok()
    }
}

/// The counts of ServerDiagnosticsSummary, and those that limits of the whole server need.
#[derive(Debug, Default)]
#[allow(missing_docs)] // the names are the specification's
pub struct ServerCounters {
    pub current_session_count: Count,
    pub cumulated_session_count: Count,
    pub security_rejected_session_count: Count,
    pub rejected_session_count: Count,
    pub session_timeout_count: Count,
    pub session_abort_count: Count,
    pub current_subscription_count: Count,
    pub cumulated_subscription_count: Count,
    pub security_rejected_requests_count: Count,
    pub rejected_requests_count: Count,
    /// Connections of all shards.
    pub current_connection_count: Count,
    /// Connections that were refused because of their address or its pace.
    pub refused_connection_count: Count,
    /// Connections that were closed because budgets of the whole server were used up.
    pub evicted_connection_count: Count,
    /// OpenSecureChannel requests that were refused before any cryptography because too many were under way.
    pub shed_handshake_count: Count,
    /// Monitored items of all shards.
    pub current_monitored_item_count: Count,
}

impl ServerCounters {
    /// RejectedSessionCount: those that were rejected for the sake of security are among them (Part 5 §12.9).
    pub(crate) fn all_rejected_sessions(&self) -> u32 {
        self.rejected_session_count.value().saturating_add(self.security_rejected_session_count.value())
    }
}
