//! A shard's records until the driver takes them.

use super::AuditConfig;
use super::record::{AuditAction, AuditRecord};
use crate::now::Now;
use core::time::Duration;
use std::collections::VecDeque;
use taktwerk_types::{Instant, StatusCode};

/// The span that records are counted in.
const WINDOW: Duration = Duration::from_secs(1);

/// The records of a shard.
#[derive(Debug)]
pub(crate) struct AuditLog {
    config: AuditConfig,
    queue: VecDeque<AuditRecord>,
    /// When the present second began.
    window: Instant,
    /// Records of this second.
    count: u32,
    /// Records that were too many.
    suppressed: u64,
}

impl AuditLog {
    pub(crate) fn new(config: AuditConfig) -> Self {
        Self { config, queue: VecDeque::new(), window: Instant::ZERO, count: 0, suppressed: 0 }
    }

    /// Whether channels and sessions are noted.
    #[inline]
    pub(crate) fn notes_sessions(&self) -> bool {
        self.config.sessions
    }

    /// Whether writes and calls are noted.
    #[inline]
    pub(crate) fn notes_updates(&self) -> bool {
        self.config.updates
    }

    /// Notes a record, if there are not too many.
    pub(crate) fn push(&mut self, now: Now, record: impl FnOnce() -> AuditRecord) {
        self.settle(now);
        if self.count >= self.config.records_per_second_max {
            self.suppressed = self.suppressed.saturating_add(1);
        } else {
            self.count += 1;
            self.queue.push_back(record());
        }
    }

    /// Begins a new second when one is over, and says how many records were too many in the last one.
    pub(crate) fn settle(&mut self, now: Now) {
        if now.instant < self.window + WINDOW && self.window != Instant::ZERO {
            return;
        }
        self.window = now.instant;
        self.count = 0;
        let count = core::mem::take(&mut self.suppressed);
        if count > 0 {
            let action = AuditAction::Suppressed { count };
            self.queue.push_back(AuditRecord::new(now.utc, StatusCode::GOOD, action));
        }
    }

    /// When there is something to say about records that were too many.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (self.suppressed > 0).then(|| self.window + WINDOW)
    }

    pub(crate) fn take(&mut self) -> Option<AuditRecord> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::UtcTime;

    #[test]
    fn what_is_too_much_is_counted() {
        let config = AuditConfig { records_per_second_max: 3, ..AuditConfig::all() };
        let mut log = AuditLog::new(config);
        let at = |ms: u64| Now {
            instant: Instant::from_nanos(1_000_000_000 + ms * 1_000_000),
            utc: UtcTime::from_ticks(ms as i64),
        };
        let record = || AuditRecord::new(UtcTime::NULL, StatusCode::GOOD, AuditAction::CloseSession);
        for ms in 0..100 {
            log.push(at(ms), record);
        }
        assert_eq!(core::iter::from_fn(|| log.take()).count(), 3);
        assert_eq!(log.next_deadline(), Some(at(1000).instant));
        log.settle(at(999));
        assert!(log.take().is_none());
        log.settle(at(1000));
        assert_eq!(log.take().unwrap().action, AuditAction::Suppressed { count: 97 });
        assert_eq!(log.next_deadline(), None);
        log.push(at(1001), record);
        assert!(log.take().is_some());
    }
}
