//! A shard's records until the driver takes them.

use super::AuditConfig;
use super::record::{AuditAction, AuditClass, AuditRecord};
use crate::now::Now;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_types::{Instant, StatusCode};

/// The span that records are counted in.
const WINDOW: Duration = Duration::from_secs(1);
/// Of the quota of a class that is open to all, one address has one of so many parts.
const SHARES: u32 = 8;
/// Addresses that are counted in a window; those beyond share one count.
const ADDRESSES_MAX: usize = 1024;

/// The records of a shard.
#[derive(Debug)]
pub(crate) struct AuditLog {
    config: AuditConfig,
    queue: VecDeque<AuditRecord>,
    /// When the present second began.
    window: Instant,
    /// What was noted in this second, and what was too much, by class.
    counts: [Count; AuditClass::ALL.len()],
    /// Records of this second by class and address, where everybody can cause them.
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

    /// Notes a record of a class that an address has caused, if there are not too many.
    pub(crate) fn push(
        &mut self,
        now: Now,
        class: AuditClass,
        address: Option<IpAddr>,
        record: impl FnOnce() -> AuditRecord,
    ) {
        self.settle(now);
        let has_room = self.takes(class, address);
        let Some(count) = self.counts.get_mut(class.index()) else { return };
        if has_room {
            count.noted += 1;
            self.queue.push_back(AuditRecord { class, ..record() });
        } else {
            count.suppressed = count.suppressed.saturating_add(1);
        }
    }

    /// Notes a record that says itself whose it is.
    pub(crate) fn push_made(&mut self, now: Now, record: AuditRecord) {
        self.push(now, record.class, record.client_address, || record);
    }

    /// Whether the quotas leave room for one more.
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

    /// Begins a new second when one is over, and says how many records were too many in the last one.
    pub(crate) fn settle(&mut self, now: Now) {
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

    /// When there is something to say about records that were too many.
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
    fn what_is_too_much_is_counted() {
        let mut log = log(3);
        for ms in 0..100 {
            log.push(at(ms), AuditClass::Trusted, None, record);
        }
        assert_eq!(taken(&mut log).len(), 3);
        assert_eq!(log.next_deadline(), Some(at(1000).instant));
        log.settle(at(999));
        assert!(log.take().is_none());
        log.settle(at(1000));
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
            log.settle(at(1000));
            let said: Vec<_> = taken(&mut log).into_iter().map(|record| record.action).collect();
            assert_eq!(said, [AuditAction::Suppressed { class: flooding, count: 9_985 }]);
        }
    }

    #[test]
    fn a_stranger_does_not_suppress_another_one() {
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
