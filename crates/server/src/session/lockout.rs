//! Lock-out after failed logins (Part 4 §5.7.3.1).
//!
//! Failures are counted per user name *and* client. Guessing a user's password from one application, or without a
//! certificate from one address, locks the user out there only.
//!
//! Successful logins are remembered in the same way: their credentials are checked before those of other clients.

use crate::origin::Origin;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_types::Instant;

/// Number of failures without a delay.
const FAILURES_FREE: u32 = 5;
/// The first delay; each failure doubles it.
const DELAY_MIN_MS: f64 = 1_000.0;
/// The longest delay.
const DELAY_MAX_MS: f64 = 300_000.0;
/// Failures are reset after this time without a failure, in ms.
const FORGET_MS: f64 = 600_000.0;
/// Maximum number of remembered names. Beyond it, the one whose delay ends first is dropped.
const ENTRIES_MAX: usize = 10_000;

/// The user and the client of a failed login.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suspect {
    user: Box<str>,
    client: Client,
}

/// The client that guesses. Guesses of one client do not delay others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// The application with this certificate, by its thumbprint.
    Application([u8; 20]),
    /// Without a certificate: all clients at an address.
    Address(Origin),
    /// For transports without addresses.
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
    /// Checks in progress: parallel guesses count like sequential ones.
    pending: u32,
    until: Instant,
    last: Instant,
}

/// Failed and successful logins of all shards.
#[derive(Debug, Default)]
pub(crate) struct LockOut {
    records: BTreeMap<Suspect, Record>,
    /// Successful logins without a later failure, with their times.
    familiar: BTreeMap<Suspect, Instant>,
}

/// Why an attempt is not possible now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// There were too many failures.
    LockedOut,
    /// Other attempts of the same user and client are in progress with unknown result. Many clients of one user
    /// reconnect at once after a restart.
    Busy,
}

impl LockOut {
    /// Whether an attempt may be made now. If so, call [`Self::ended`] with its result.
    pub(crate) fn begin(&mut self, suspect: &Suspect, now: Instant) -> Result<(), NotNow> {
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
        if is_free || (record.until <= now && record.pending == 0) {
            record.pending += 1;
            return Ok(());
        }
        Err(if record.failures < FAILURES_FREE { NotNow::Busy } else { NotNow::LockedOut })
    }

    /// An attempt has ended. `success` is `None` if the credential was not checked.
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

    /// Whether the last login of this user from this client succeeded.
    pub(crate) fn is_familiar(&self, suspect: &Suspect) -> bool {
        self.familiar.contains_key(suspect)
    }

    /// Removes expired entries. If that is not enough, removes the eighth whose delays end first.
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

/// Records a successful login. Beyond [`ENTRIES_MAX`], removes the quarter with the oldest logins.
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

/// A login attempt, from its admission until its result is known.
#[derive(Debug)]
pub(crate) struct Attempt {
    shared: Arc<Mutex<LockOut>>,
    suspect: Suspect,
    began: Instant,
    open: bool,
    is_familiar: bool,
}

impl Attempt {
    /// Starts an attempt.
    ///
    /// # Errors
    /// It comes too early.
    pub(crate) fn begin(
        shared: &Arc<Mutex<LockOut>>,
        suspect: Suspect,
        now: Instant,
    ) -> Result<Self, NotNow> {
        let mut lockout = shared.lock().unwrap_or_else(PoisonError::into_inner);
        lockout.begin(&suspect, now)?;
        let is_familiar = lockout.is_familiar(&suspect);
        drop(lockout);
        Ok(Self { shared: Arc::clone(shared), suspect, began: now, open: true, is_familiar })
    }

    /// Whether this user has logged on from there before.
    pub(crate) fn is_familiar(&self) -> bool {
        self.is_familiar
    }

    /// The credential was not checked.
    pub(crate) fn not_checked(mut self) {
        self.open = false;
        self.end(None, self.began);
    }

    /// Records the result; `None` if the credential was not checked.
    pub(crate) fn ended(mut self, success: Option<bool>, now: Instant) {
        self.open = false;
        self.end(success, now);
    }

    fn end(&self, success: Option<bool>, now: Instant) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).ended(&self.suspect, success, now);
    }
}

impl Drop for Attempt {
    /// If the client disconnects before the answer, its guess was checked nevertheless.
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
        let may = lockout.begin(suspect, now).is_ok();
        if may {
            lockout.ended(suspect, Some(false), now);
        }
        may
    }

    #[test]
    fn after_five_failures_delays_double_up_to_five_minutes() {
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
        // The right password succeeds as soon as it is checked again.
        assert_eq!(lockout.begin(&joe, now), Err(NotNow::LockedOut));
        now = now + Duration::from_secs(300);
        assert!(lockout.begin(&joe, now).is_ok());
        lockout.ended(&joe, Some(true), now);
        assert!(lockout.records.is_empty());
    }

    #[test]
    fn other_users_and_other_clients_are_not_delayed() {
        let mut lockout = LockOut::default();
        let attacker = Suspect::new("joe", Client::Application([1; 20]));
        while fail(&mut lockout, &attacker, START) {}
        for other in [
            Suspect::new("joe", Client::Application([2; 20])),
            Suspect::new("joe", Client::Address(IpAddr::from([10, 0, 0, 1]).into())),
            Suspect::new("joe", Client::Unknown),
            Suspect::new("ann", Client::Application([1; 20])),
        ] {
            assert!(lockout.begin(&other, START).is_ok());
            lockout.ended(&other, Some(true), START);
        }
    }

    #[test]
    fn parallel_guesses_are_counted() {
        let (mut lockout, joe) = (LockOut::default(), Suspect::new("joe", Client::Unknown));
        let started = (0..100).filter(|_| lockout.begin(&joe, START).is_ok()).count();
        assert_eq!(started, 5);
        // Without a failure, simultaneous logins get Busy and not LockedOut.
        assert_eq!(lockout.begin(&joe, START), Err(NotNow::Busy));
        for _ in 0..started {
            lockout.ended(&joe, None, START);
        }
        assert!(lockout.begin(&joe, START).is_ok(), "an attempt without a result is not a failure");
    }

    #[test]
    fn logins_are_remembered_until_a_failure() {
        let (mut lockout, joe) = (LockOut::default(), Suspect::new("joe", Client::Unknown));
        assert!(lockout.begin(&joe, START).is_ok() && !lockout.is_familiar(&joe));
        lockout.ended(&joe, Some(true), START);
        assert!(lockout.is_familiar(&joe));
        assert!(!lockout.is_familiar(&Suspect::new("joe", Client::Application([1; 20]))), "elsewhere");
        assert!(lockout.begin(&joe, START).is_ok());
        lockout.ended(&joe, None, START);
        assert!(lockout.is_familiar(&joe), "the attempt had no result");
        fail(&mut lockout, &joe, START);
        assert!(!lockout.is_familiar(&joe));
        for number in 0..2 * ENTRIES_MAX {
            let (suspect, now) =
                (Suspect::new(&number.to_string(), Client::Unknown), Instant::from_nanos(number as u64));
            assert!(lockout.begin(&suspect, now).is_ok());
            lockout.ended(&suspect, Some(true), now);
            assert!(lockout.is_familiar(&suspect) && lockout.familiar.len() <= ENTRIES_MAX);
        }
    }

    #[test]
    fn sporadic_failures_expire_and_the_table_is_bounded() {
        let (mut lockout, joe) = (LockOut::default(), Suspect::new("joe", Client::Unknown));
        for _ in 0..4 {
            fail(&mut lockout, &joe, START);
        }
        let later = START + Duration::from_secs(601);
        for _ in 0..5 {
            assert!(fail(&mut lockout, &joe, later));
        }
        assert!(lockout.begin(&joe, later).is_err());
        for number in 0..ENTRIES_MAX + 100 {
            fail(&mut lockout, &Suspect::new(&number.to_string(), Client::Unknown), later);
        }
        assert!(lockout.records.len() <= ENTRIES_MAX);
        assert!(lockout.begin(&joe, later).is_err(), "entries that are locked out are removed last");
    }
}
