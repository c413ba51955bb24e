//! Server-wide counts (ServerDiagnosticsSummary, Part 5 §12.9).

use core::sync::atomic::{AtomicU32, Ordering};

/// A counter that all shards can change and any thread can read.
#[derive(Debug, Default)]
pub struct Count(AtomicU32);

impl Count {
    /// Adds one.
    pub fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts one.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Changes by a signed amount.
    pub fn change(&self, by: i32) {
        self.0.fetch_add(by as u32, Ordering::Relaxed);
    }

    /// The current value.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds one unless `max` is reached. Returns whether it was added.
    #[must_use]
    pub fn up_to(&self, max: usize) -> bool {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < max).then(|| count + 1))
            .is_ok()
    }
}

/// The counts of ServerDiagnosticsSummary, and those used for server-wide limits.
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
    /// Connections refused because of their address or their rate.
    pub refused_connection_count: Count,
    /// Connections closed because server-wide limits were reached.
    pub evicted_connection_count: Count,
    /// OpenSecureChannel requests refused before any cryptography because too many were in progress.
    pub shed_handshake_count: Count,
    /// Monitored items of all shards.
    pub current_monitored_item_count: Count,
}

impl ServerCounters {
    /// RejectedSessionCount, including sessions rejected for security reasons (Part 5 §12.9).
    pub(crate) fn all_rejected_sessions(&self) -> u32 {
        self.rejected_session_count.value().saturating_add(self.security_rejected_session_count.value())
    }
}
