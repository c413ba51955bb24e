//! A shard's audit records until the driver takes them.

use super::AuditConfig;
use super::record::{AuditAction, AuditClass, AuditRecord};
use crate::now::Now;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_types::{Instant, StatusCode};

/// The window in which records are counted.
const WINDOW: Duration = Duration::from_secs(1);
/// In classes that are open to all, one address gets this fraction (1/n) of the quota.
const SHARES: u32 = 8;
/// Number of addresses counted in a window. All further ones share one count.
const ADDRESSES_MAX: usize = 1024;

/// The records of a shard.
#[derive(Debug)]
pub(crate) struct AuditLog {
    config: AuditConfig,
    queue: VecDeque<AuditRecord>,
    /// Start of the current window.
    window: Instant,
    /// Recorded and dropped in this window, by class.
    counts: [Count; AuditClass::ALL.len()],
    /// Records of this window by class and address, for classes that are open to all.
    addresses: BTreeMap<(AuditClass, Option<IpAddr>), u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    noted: u32,
    suppressed: u64,
}

impl AuditLog {
    pub(crate) fn new(config: AuditConfig) -> Self {
        Self {
            config,
            queue: VecDeque::new(),
            window: Instant::ZERO,
            counts: Default::default(),
            addresses: BTreeMap::new(),
        }
    }

    /// Whether channels and sessions are audited.
    #[inline]
    pub(crate) fn notes_sessions(&self) -> bool {
        self.config.sessions
    }

    /// Whether writes and calls are audited.
    #[inline]
    pub(crate) fn notes_updates(&self) -> bool {
        self.config.updates
    }

    /// Adds a record of a class caused by an address, if the quota allows.
    pub(crate) fn push(
        &mut self,
        now: Now,
        class: AuditClass,
        address: Option<IpAddr>,
        record: impl FnOnce() -> AuditRecord,
    ) {
        self.start_window(now);
        let has_room = self.takes(class, address);
        let Some(count) = self.counts.get_mut(class.index()) else { return };
        if has_room {
            count.noted += 1;
            self.queue.push_back(AuditRecord { class, ..record() });
        } else {
            count.suppressed = count.suppressed.saturating_add(1);
        }
    }

    /// Adds a record that names its class and address itself.
    pub(crate) fn push_made(&mut self, now: Now, record: AuditRecord) {
        self.push(now, record.class, record.client_address, || record);
    }

    /// Whether the quotas allow one more record.
    fn takes(&mut self, class: AuditClass, address: Option<IpAddr>) -> bool {
        let max = self.config.records_per_second_max;
        if self.counts.get(class.index()).is_none_or(|count| count.noted >= max) {
            return false;
        }
        if !class.is_open_to_all() || address.is_none() {
            return true;
        }
        let key = (class, address);
        let is_counted = self.addresses.len() < ADDRESSES_MAX || self.addresses.contains_key(&key);
        let count = self.addresses.entry(if is_counted { key } else { (class, None) }).or_default();
        let has_room = *count < (max / SHARES).max(1);
        *count += u32::from(has_room);
        has_room
    }

    /// Starts a new window when the current one is over, and records how many records were dropped.
    pub(crate) fn start_window(&mut self, now: Now) {
        if now.instant < self.window + WINDOW && self.window != Instant::ZERO {
            return;
        }
        self.window = now.instant;
        self.addresses.clear();
        for class in AuditClass::ALL {
            let Some(count) = self.counts.get_mut(class.index()) else { continue };
            let Count { suppressed, .. } = core::mem::take(count);
            if suppressed > 0 {
                let action = AuditAction::Suppressed { class, count: suppressed };
                self.queue.push_back(AuditRecord::new(now.utc, StatusCode::GOOD, action));
            }
        }
    }

    /// When dropped records must be reported.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let is_due = self.counts.iter().any(|count| count.suppressed > 0);
        is_due.then(|| self.window + WINDOW)
    }

    pub(crate) fn take(&mut self) -> Option<AuditRecord> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::UtcTime;

    fn at(ms: u64) -> Now {
        Now {
            instant: Instant::from_nanos(1_000_000_000 + ms * 1_000_000),
            utc: UtcTime::from_ticks(ms as i64),
        }
    }

    fn log(records_per_second_max: u32) -> AuditLog {
        AuditLog::new(AuditConfig { records_per_second_max, ..AuditConfig::all() })
    }

    fn record() -> AuditRecord {
        AuditRecord::new(UtcTime::NULL, StatusCode::GOOD, AuditAction::CloseSession)
    }

    fn taken(log: &mut AuditLog) -> Vec<AuditRecord> {
        core::iter::from_fn(|| log.take()).collect()
    }

    #[test]
    fn records_above_the_quota_are_counted() {
        let mut log = log(3);
        for ms in 0..100 {
            log.push(at(ms), AuditClass::Trusted, None, record);
        }
        assert_eq!(taken(&mut log).len(), 3);
        assert_eq!(log.next_deadline(), Some(at(1000).instant));
        log.start_window(at(999));
        assert!(log.take().is_none());
        log.start_window(at(1000));
        let suppressed = AuditAction::Suppressed { class: AuditClass::Trusted, count: 97 };
        assert_eq!(log.take().unwrap().action, suppressed);
        assert_eq!(log.next_deadline(), None);
        log.push(at(1001), AuditClass::Trusted, None, record);
        assert!(log.take().is_some());
    }

    #[test]
    fn a_flood_of_one_class_suppresses_no_other() {
        for flooding in AuditClass::ALL {
            let mut log = log(16);
            for number in 0..10_000u32 {
                log.push(at(0), flooding, Some(IpAddr::from(number.to_be_bytes())), record);
            }
            for class in AuditClass::ALL {
                log.push(at(1), class, Some(IpAddr::from([1, 2, 3, 4])), record);
            }
            let noted = taken(&mut log);
            for class in AuditClass::ALL {
                let count = noted.iter().filter(|record| record.class == class).count();
                assert_eq!(count, if class == flooding { 16 } else { 1 }, "{flooding:?}: {class:?}");
            }
            log.start_window(at(1000));
            let said: Vec<_> = taken(&mut log).into_iter().map(|record| record.action).collect();
            assert_eq!(said, [AuditAction::Suppressed { class: flooding, count: 9_985 }]);
        }
    }

    #[test]
    fn one_address_does_not_suppress_records_of_another() {
        let mut log = log(16);
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        for _ in 0..1000 {
            log.push(at(0), AuditClass::KnownUser, address(1), record);
        }
        assert_eq!(taken(&mut log).len(), 2, "one address has its share");
        log.push(at(1), AuditClass::KnownUser, address(2), record);
        assert_eq!(taken(&mut log).len(), 1);
    }
}
