//! Guessing passwords gets slower (Part 4 §5.7.3.1).
//!
//! Failures are counted per name *and* client: somebody who guesses a user's password from one application, or without a
//! certificate from one address, locks that user out there, and nowhere else.
//!
//! Who has logged on is remembered in the same way: whoever comes again is checked before strangers are.

use crate::origin::Origin;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_types::Instant;

/// Failures that are free.
const FAILURES_FREE: u32 = 5;
/// The first delay; each failure doubles it.
const DELAY_MIN_MS: f64 = 1_000.0;
/// The longest delay.
const DELAY_MAX_MS: f64 = 300_000.0;
/// Failures are forgotten after so long without one.
const FORGET_MS: f64 = 600_000.0;
/// Names that are remembered. Beyond, the one that may try again soonest is forgotten.
const ENTRIES_MAX: usize = 10_000;

/// Who has failed: what names the user, and what names the client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suspect {
    user: Box<str>,
    client: Client,
}

/// Where guesses come from: somebody else's guesses elsewhere delay nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// The application with this certificate, by its thumbprint.
    Application([u8; 20]),
    /// Without a certificate, everybody at an address.
    Address(Origin),
    /// Where there are no addresses.
    Unknown,
}

impl Suspect {
    pub(crate) fn new(user: &str, client: Client) -> Self {
        Self { user: user.into(), client }
    }
}

#[derive(Debug)]
struct Record {
    failures: u32,
    /// Checks that are under way: guesses side by side count like guesses one after the other.
    pending: u32,
    until: Instant,
    last: Instant,
}

/// Failures to log on, of all shards, and who has logged on.
#[derive(Debug, Default)]
pub(crate) struct LockOut {
    records: BTreeMap<Suspect, Record>,
    /// Who logged on and has not failed since, and when that was.
    familiar: BTreeMap<Suspect, Instant>,
}

impl LockOut {
    /// Whether an attempt may be made now; if so, [`Self::ended`] is to be told what came of it.
    pub(crate) fn begin(&mut self, suspect: &Suspect, now: Instant) -> bool {
        if !self.records.contains_key(suspect) && self.records.len() >= ENTRIES_MAX {
            self.make_room(now);
        }
        let record = self.records.entry(suspect.clone()).or_insert(Record {
            failures: 0,
            pending: 0,
            until: now,
            last: now,
        });
        if record.pending == 0 && record.last.plus_millis_f64(FORGET_MS) <= now {
            record.failures = 0;
        }
        let is_free = record.failures + record.pending < FAILURES_FREE;
        let may = is_free || (record.until <= now && record.pending == 0);
        record.pending += u32::from(may);
        may
    }

    /// An attempt has ended. `success` is `None` if nothing was found out about the credential.
    pub(crate) fn ended(&mut self, suspect: &Suspect, success: Option<bool>, now: Instant) {
        let Some(record) = self.records.get_mut(suspect) else { return };
        record.pending = record.pending.saturating_sub(1);
        match success {
            Some(true) => {
                record.failures = 0;
                remember(&mut self.familiar, suspect, now);
            }
            Some(false) => {
                self.familiar.remove(suspect);
                record.failures = record.failures.saturating_add(1);
                record.last = now;
                if let Some(beyond) = record.failures.checked_sub(FAILURES_FREE) {
                    let delay = DELAY_MIN_MS * f64::from(1u32 << beyond.min(20));
                    record.until = now.plus_millis_f64(delay.min(DELAY_MAX_MS));
                }
            }
            None => {}
        }
        if record.failures == 0 && record.pending == 0 {
            self.records.remove(suspect);
        }
    }

    /// Whether this user has logged on from there before, and not failed since.
    pub(crate) fn is_familiar(&self, suspect: &Suspect) -> bool {
        self.familiar.contains_key(suspect)
    }

    /// Forgets what is over, and if that is not enough, the eighth that may try again soonest.
    fn make_room(&mut self, now: Instant) {
        self.records.retain(|_, record| record.pending > 0 || record.last.plus_millis_f64(FORGET_MS) > now);
        if self.records.len() < ENTRIES_MAX {
            return;
        }
        let mut until: Vec<Instant> =
            self.records.values().filter(|record| record.pending == 0).map(|record| record.until).collect();
        let last = until.len() / 8;
        if last < until.len() {
            let (_, limit, _) = until.select_nth_unstable(last);
            let mut left = last + 1;
            self.records.retain(|_, record| {
                let goes = left > 0 && record.pending == 0 && record.until <= *limit;
                left -= usize::from(goes);
                !goes
            });
        }
    }
}

/// Remembers who has logged on; beyond [`ENTRIES_MAX`] the quarter is forgotten that has not come for longest.
fn remember(familiar: &mut BTreeMap<Suspect, Instant>, suspect: &Suspect, now: Instant) {
    if familiar.insert(suspect.clone(), now).is_none() && familiar.len() > ENTRIES_MAX {
        let mut times: Vec<Instant> = familiar.values().copied().collect();
        let (_, limit, _) = times.select_nth_unstable(ENTRIES_MAX / 4);
        let mut left = ENTRIES_MAX / 4;
        familiar.retain(|_, at| {
            let goes = left > 0 && *at <= *limit;
            left -= usize::from(goes);
            !goes
        });
    }
}

/// An attempt to log on, from when it was let in until it is known what came of it.
#[derive(Debug)]
pub(crate) struct Attempt {
    shared: Arc<Mutex<LockOut>>,
    suspect: Suspect,
    began: Instant,
    open: bool,
    is_familiar: bool,
}

impl Attempt {
    /// Starts an attempt; `None` if it comes too soon after failures.
    pub(crate) fn begin(shared: &Arc<Mutex<LockOut>>, suspect: Suspect, now: Instant) -> Option<Self> {
        let mut lockout = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let may = lockout.begin(&suspect, now);
        let is_familiar = lockout.is_familiar(&suspect);
        drop(lockout);
        may.then(|| Self { shared: Arc::clone(shared), suspect, began: now, open: true, is_familiar })
    }

    /// Whether this user has logged on from there before.
    pub(crate) fn is_familiar(&self) -> bool {
        self.is_familiar
    }

    /// Nobody looked at the credential.
    pub(crate) fn not_looked_at(mut self) {
        self.open = false;
        self.end(None, self.began);
    }

    /// Says what came of it; `None` if nothing was found out about the credential.
    pub(crate) fn ended(mut self, success: Option<bool>, now: Instant) {
        self.open = false;
        self.end(success, now);
    }

    fn end(&self, success: Option<bool>, now: Instant) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).ended(&self.suspect, success, now);
    }
}

impl Drop for Attempt {
    /// Whoever hangs up before the answer has still had somebody look at a guess.
    fn drop(&mut self) {
        if self.open {
            self.end(Some(false), self.began);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;
    use core::time::Duration;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn fail(lockout: &mut LockOut, suspect: &Suspect, now: Instant) -> bool {
        let may = lockout.begin(suspect, now);
        if may {
            lockout.ended(suspect, Some(false), now);
        }
        may
    }

    #[test]
    fn five_failures_are_free_and_then_delays_double_up_to_five_minutes() {
        let (mut lockout, joe) = (LockOut::default(), Suspect::new("joe", Client::Unknown));
        let mut now = START;
        for _ in 0..5 {
            assert!(fail(&mut lockout, &joe, now));
        }
        for delay in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            assert!(!fail(&mut lockout, &joe, now + Duration::from_millis(delay * 1000 - 1)));
            now = now + Duration::from_secs(delay);
            assert!(fail(&mut lockout, &joe, now), "after {delay} s");
        }
        // The right password helps, as soon as it is looked at.
        assert!(!lockout.begin(&joe, now));
        now = now + Duration::from_secs(300);
        assert!(lockout.begin(&joe, now));
        lockout.ended(&joe, Some(true), now);
        assert!(lockout.records.is_empty());
    }

    #[test]
    fn others_and_the_same_user_elsewhere_are_not_delayed() {
        let mut lockout = LockOut::default();
        let attacker = Suspect::new("joe", Client::Application([1; 20]));
        while fail(&mut lockout, &attacker, START) {}
        for other in [
            Suspect::new("joe", Client::Application([2; 20])),
            Suspect::new("joe", Client::Address(IpAddr::from([10, 0, 0, 1]).into())),
            Suspect::new("joe", Client::Unknown),
            Suspect::new("ann", Client::Application([1; 20])),
        ] {
            assert!(lockout.begin(&other, START));
            lockout.ended(&other, Some(true), START);
        }
    }

    #[test]
    fn guesses_side_by_side_are_counted() {
        let (mut lockout, joe) = (LockOut::default(), Suspect::new("joe", Client::Unknown));
        let started = (0..100).filter(|_| lockout.begin(&joe, START)).count();
        assert_eq!(started, 5);
        for _ in 0..started {
            lockout.ended(&joe, None, START);
        }
        assert!(lockout.begin(&joe, START), "an attempt that came to nothing is no failure");
    }

    #[test]
    fn who_has_logged_on_is_remembered_until_a_failure() {
        let (mut lockout, joe) = (LockOut::default(), Suspect::new("joe", Client::Unknown));
        assert!(lockout.begin(&joe, START) && !lockout.is_familiar(&joe));
        lockout.ended(&joe, Some(true), START);
        assert!(lockout.is_familiar(&joe));
        assert!(!lockout.is_familiar(&Suspect::new("joe", Client::Application([1; 20]))), "elsewhere");
        assert!(lockout.begin(&joe, START));
        lockout.ended(&joe, None, START);
        assert!(lockout.is_familiar(&joe), "nothing was found out");
        fail(&mut lockout, &joe, START);
        assert!(!lockout.is_familiar(&joe));
        for number in 0..2 * ENTRIES_MAX {
            let (suspect, now) =
                (Suspect::new(&number.to_string(), Client::Unknown), Instant::from_nanos(number as u64));
            assert!(lockout.begin(&suspect, now));
            lockout.ended(&suspect, Some(true), now);
            assert!(lockout.is_familiar(&suspect) && lockout.familiar.len() <= ENTRIES_MAX);
        }
    }

    #[test]
    fn sporadic_failures_are_forgotten_and_the_table_is_bounded() {
        let (mut lockout, joe) = (LockOut::default(), Suspect::new("joe", Client::Unknown));
        for _ in 0..4 {
            fail(&mut lockout, &joe, START);
        }
        let later = START + Duration::from_secs(601);
        for _ in 0..5 {
            assert!(fail(&mut lockout, &joe, later));
        }
        assert!(!lockout.begin(&joe, later));
        for number in 0..ENTRIES_MAX + 100 {
            fail(&mut lockout, &Suspect::new(&number.to_string(), Client::Unknown), later);
        }
        assert!(lockout.records.len() <= ENTRIES_MAX);
        assert!(!lockout.begin(&joe, later), "whoever is locked out is forgotten last");
    }
}
