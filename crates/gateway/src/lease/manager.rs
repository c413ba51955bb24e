//! The leases of one gateway: rounds with the lease service, and the sources that wait for leases.

use super::{Cluster, LeaseConfig, Round, Unreachable};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Bounds of the time between two rounds.
const CHECK_MIN: Duration = Duration::from_millis(50);
const CHECK_MAX: Duration = Duration::from_millis(500);
/// The maximum for a configured interval. Together with [`ROUND_MAX`] it is less than the four seconds for which lease services
/// wait.
const CHECK_NAMED_MAX: Duration = Duration::from_secs(1);
/// The assumed interval of sources without one.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// Minimum timeout of a round. Lease services wait longer before they pass a lease to another gateway.
const ROUND_MIN: Duration = Duration::from_secs(1);
const ROUND_MAX: Duration = Duration::from_secs(2);
/// After an outage of the lease service no lease is taken for this time: all leases were lost, and other gateways may not have
/// stopped yet.
const SETTLE: Duration = Duration::from_secs(2);
/// Interval of rounds while leases expire after a lost connection.
const RETRY: Duration = Duration::from_millis(20);
/// Longest time for a source to stop.
const STOP_MAX: Duration = Duration::from_secs(2);

/// Whether a lease is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grant {
    Not,
    /// Until the gateway revokes it.
    Held,
    /// Until this time, independent of further rounds.
    Until(Instant),
}

impl Grant {
    fn is_good(self) -> bool {
        match self {
            Self::Not => false,
            Self::Held => true,
            // Time also passes while the process is suspended.
            Self::Until(end) => Instant::now() < end,
        }
    }
}

#[derive(Debug)]
struct Entry {
    granted: watch::Sender<Grant>,
    running: Arc<AtomicUsize>,
    interval: Duration,
    /// Number of sources that wait for it or have it: two while a configuration is applied.
    users: usize,
}

/// The leases of all sources. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Leases(Arc<Mutex<HashMap<String, Entry>>>);

/// A source's lease.
#[derive(Debug)]
pub struct Lease {
    leases: Leases,
    name: String,
    granted: watch::Receiver<Grant>,
    running: Arc<AtomicUsize>,
}

/// A running source.
#[derive(Debug)]
pub struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Lease {
    /// Waits until this gateway has the lease. It is not released while the returned value lives.
    pub async fn held(&mut self) -> Running {
        loop {
            if self.granted.wait_for(|granted| granted.is_good()).await.is_err() {
                // The gateway is stopping.
                core::future::pending::<()>().await;
            }
            self.running.fetch_add(1, Ordering::SeqCst);
            let running = Running(Arc::clone(&self.running));
            // It may have been lost again in the meantime.
            if self.is_held() {
                return running;
            }
        }
    }

    /// Whether this gateway has the lease now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.granted.borrow().is_good()
    }

    /// Waits until this gateway has lost the lease.
    pub async fn lost(&mut self) {
        loop {
            let grant = *self.granted.borrow_and_update();
            let changed = match grant {
                Grant::Until(end) if end > Instant::now() => timeout_at(end, self.granted.changed()).await,
                Grant::Held => Ok(self.granted.changed().await),
                Grant::Not | Grant::Until(_) => return,
            };
            if let Ok(Err(_)) = changed {
                // The gateway is stopping.
                core::future::pending::<()>().await;
            }
        }
    }

    /// Runs a future while this gateway has the lease; `None` if it loses it. The future is never polled without the lease, even
    /// if the process was suspended for longer than the lease.
    pub async fn guard<F: Future>(&mut self, run: F) -> Option<F::Output> {
        let granted = self.granted.clone();
        let mut lost = pin!(self.lost());
        let mut run = pin!(run);
        poll_fn(move |context| {
            if lost.as_mut().poll(context).is_ready() || !granted.borrow().is_good() {
                return Poll::Ready(None);
            }
            run.as_mut().poll(context).map(Some)
        })
        .await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut all = self.leases.lock();
        if let Some(entry) = all.get_mut(&self.name) {
            entry.users = entry.users.saturating_sub(1);
        }
    }
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease of a source. A predecessor with the same name passes it on.
    #[must_use]
    pub fn lease(&self, name: &str, interval: Option<Duration>) -> Lease {
        let interval = interval.unwrap_or(INTERVAL_DEFAULT);
        let mut all = self.lock();
        let entry = all.entry(name.to_owned()).or_insert_with(|| Entry {
            granted: watch::Sender::new(Grant::Not),
            running: Arc::default(),
            interval,
            users: 0,
        });
        entry.users += 1;
        entry.interval = interval;
        let (granted, running) = (entry.granted.subscribe(), Arc::clone(&entry.running));
        Lease { leases: self.clone(), name: name.to_owned(), granted, running }
    }

    /// The sources that need a lease, and the time between two rounds.
    fn wanted(&self, check_every: Option<Duration>, per_interval: u32) -> (Vec<String>, Duration) {
        let all = self.lock();
        let used = || all.iter().filter(|(_, entry)| entry.users > 0);
        let mut names: Vec<String> = used().map(|(name, _)| name.clone()).collect();
        names.sort();
        let shortest = used().map(|(_, entry)| entry.interval).min().unwrap_or(INTERVAL_DEFAULT);
        let default = (shortest / per_interval.max(1)).clamp(CHECK_MIN, CHECK_MAX);
        (names, check_every.map_or(default, |every| every.clamp(CHECK_MIN, CHECK_NAMED_MAX)))
    }

    /// Tells sources which leases are held.
    fn grant(&self, held: &BTreeSet<String>, grant: Grant) {
        for (name, entry) in self.lock().iter() {
            let now = if held.contains(name) { grant } else { Grant::Not };
            entry.granted.send_if_modified(|granted| core::mem::replace(granted, now) != now);
        }
    }

    /// Whether sources outside `held` still run.
    fn is_stopping(&self, held: &BTreeSet<String>) -> bool {
        let all = self.lock();
        all.iter().any(|(name, entry)| !held.contains(name) && entry.running.load(Ordering::SeqCst) > 0)
    }

    /// Waits until sources without a lease have stopped.
    async fn settle(&self, held: &BTreeSet<String>) {
        let wait = async {
            while self.is_stopping(held) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        if timeout(STOP_MAX, wait).await.is_err() {
            tracing::error!("a source that lost its lease does not stop in time");
        }
    }

    /// Maintains the leases forever.
    pub async fn keep(self, config: LeaseConfig) {
        let LeaseConfig { mut cluster, check_every, unreachable } = config;
        if unreachable == Unreachable::GoOn {
            cluster.goes_on();
        }
        let mut held = BTreeSet::new();
        let mut give_back: Vec<String> = Vec::new();
        let mut last_told: Option<String> = None;
        let mut grant = Grant::Not;
        // Start of the current outage.
        let mut lost: Option<Instant> = None;
        // Whether a round has failed since the last successful one; and until when no leases are taken.
        let (mut is_away, mut settled) = (false, Instant::now());
        loop {
            let begin = Instant::now();
            let (wanted, every) = self.wanted(check_every, cluster.rounds_per_interval());
            // Release leases of sources that were removed from the configuration.
            let wants = |name: &String| wanted.binary_search(name).is_ok();
            give_back.extend(held.iter().filter(|name| !wants(name)).cloned());
            let takes = if is_away || begin < settled { &[][..] } else { &wanted[..] };
            let round = round(&mut *cluster, takes, &give_back, every).await;
            give_back.clear();
            let are_lost = unreachable == Unreachable::Stop && !cluster.keeps_leases();
            if core::mem::replace(&mut is_away, round.is_err() && are_lost) && round.is_ok() {
                settled = Instant::now() + SETTLE;
            }
            match round {
                Ok(Round { held: now, excess, members, until }) => {
                    lost = None;
                    if last_told.take().is_some() || now != held {
                        let held = now.iter().cloned().collect::<Vec<_>>().join(", ");
                        tracing::info!(held, members, "leases");
                    }
                    held = now;
                    held.retain(|name| !excess.contains(name));
                    grant = match until {
                        Some(end) if unreachable == Unreachable::Stop => Grant::Until(end),
                        _ => Grant::Held,
                    };
                    self.grant(&held, grant);
                    if !excess.is_empty() {
                        self.settle(&held).await;
                        give_back = excess;
                    }
                }
                Err(told) => {
                    // Leases with an expiration stay valid until then, or until other gateways may detect the lost connection.
                    if let Grant::Until(end) = &mut grant {
                        let lost = *lost.get_or_insert_with(Instant::now);
                        *end = (*end).min(lost + cluster.grace());
                    }
                    if unreachable == Unreachable::Stop {
                        if matches!(grant, Grant::Until(_)) && grant.is_good() {
                            self.grant(&held, grant);
                        } else {
                            held.clear();
                            self.grant(&held, Grant::Not);
                            self.settle(&held).await;
                        }
                    }
                    // Leases without an expiration end with the connection.
                    cluster.leave();
                    if last_told.as_ref() != Some(&told) {
                        tracing::warn!(error = told, ?unreachable, "cannot maintain the leases");
                    }
                    last_told = Some(told);
                }
            }
            // The connection may return before the leases expire.
            let is_ending = lost.is_some() && matches!(grant, Grant::Until(_)) && grant.is_good();
            let next = if is_ending { Instant::now() + RETRY } else { begin + every };
            tokio::select! {
                () = sleep_until(next) => {}
                () = cluster.broken() => lost = Some(Instant::now()),
            }
        }
    }
}

/// The timeout of a round.
fn round_max(every: Duration) -> Duration {
    (2 * every).clamp(ROUND_MIN, ROUND_MAX)
}

async fn round(
    cluster: &mut dyn Cluster,
    wanted: &[String],
    give_back: &[String],
    every: Duration,
) -> Result<Round, String> {
    let after = round_max(every);
    match timeout(after, cluster.round(wanted, give_back, every)).await {
        Ok(Ok(round)) => Ok(round),
        Ok(Err(fault)) => Err(fault.to_string()),
        Err(_) => Err(format!("{} did not answer within {after:?}", cluster.describe())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;
    use futures_util::future::BoxFuture;

    /// A lease service that returns the configured result.
    struct Told(Arc<Mutex<State>>);

    /// The result of a round; released leases; number of closed connections.
    type State = (Result<Round, Fault>, Vec<String>, usize);

    #[test]
    fn a_gateway_without_an_answer_stops_before_others_take_its_leases() {
        let leases = Leases::default();
        let _lease = leases.lease("a", None);
        let hour = Some(Duration::from_secs(3600));
        for (named, expected) in [
            (None, INTERVAL_DEFAULT / 2),
            (hour, CHECK_NAMED_MAX),
            (Some(Duration::ZERO), CHECK_MIN),
            (Some(CHECK_MAX), CHECK_MAX),
        ] {
            let (_, every) = leases.wanted(named, 2);
            assert_eq!(every, expected);
            assert!(every + round_max(every) < Duration::from_secs(4));
        }
    }

    /// Records how many sources were requested in each round.
    struct Counting(Arc<Mutex<Vec<(Instant, usize)>>>);

    impl Cluster for Counting {
        fn describe(&self) -> String {
            "counting".to_owned()
        }

        fn round<'a>(
            &'a mut self,
            wanted: &'a [String],
            _: &'a [String],
            _: Duration,
        ) -> BoxFuture<'a, Result<Round, Fault>> {
            let mut rounds = self.0.lock().unwrap();
            rounds.push((Instant::now(), wanted.len()));
            let round =
                if rounds.len() == 2 { Err(Fault::other("database", "gone")) } else { held(&[], &[]) };
            Box::pin(core::future::ready(round))
        }

        fn leave(&mut self) {}
    }

    #[tokio::test]
    async fn no_leases_are_taken_for_a_while_after_an_outage_of_the_service() {
        for unreachable in [Unreachable::Stop, Unreachable::GoOn] {
            let rounds = Arc::new(Mutex::new(Vec::new()));
            let leases = Leases::default();
            let _lease = leases.lease("a", None);
            let cluster = Box::new(Counting(Arc::clone(&rounds)));
            let task = tokio::spawn(leases.keep(LeaseConfig { cluster, check_every: None, unreachable }));
            while rounds.lock().unwrap().iter().filter(|(_, wanted)| *wanted == 1).count() < 3 {
                sleep(Duration::from_millis(5)).await;
            }
            task.abort();
            let rounds = rounds.lock().unwrap();
            assert_eq!((rounds[0].1, rounds[1].1), (1, 1));
            let (answered, taken) = (rounds[2].0, rounds.last().unwrap().0);
            let is_settled = taken.duration_since(answered) >= SETTLE;
            // Sources that continue during an outage must not stop when the database returns.
            assert_eq!(is_settled, unreachable == Unreachable::Stop);
        }
    }

    impl Cluster for Told {
        fn describe(&self) -> String {
            "told".to_owned()
        }

        fn round<'a>(
            &'a mut self,
            _: &'a [String],
            give_back: &'a [String],
            _: Duration,
        ) -> BoxFuture<'a, Result<Round, Fault>> {
            let mut told = self.0.lock().unwrap();
            told.1.extend(give_back.iter().cloned());
            Box::pin(core::future::ready(told.0.clone()))
        }

        fn leave(&mut self) {
            self.0.lock().unwrap().2 += 1;
        }
    }

    fn held(names: &[&str], excess: &[&str]) -> Result<Round, Fault> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Ok(Round { held: owned(names).into_iter().collect(), excess: owned(excess), members: 1, until: None })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_lease_is_released_after_its_source_has_stopped() {
        let second = Duration::from_secs(20);
        let told = Arc::new(Mutex::new((held(&[], &[]), Vec::new(), 0)));
        let until = async |holds: &(dyn Fn(&[String], usize) -> bool + Sync)| {
            let wait = async {
                let is_so = || {
                    let told = told.lock().unwrap();
                    holds(&told.1, told.2)
                };
                while !is_so() {
                    sleep(Duration::from_millis(5)).await;
                }
            };
            timeout(second, wait).await.unwrap();
        };
        let leases = Leases::default();
        let mut lease = leases.lease("a", Some(Duration::from_millis(100)));
        let config = LeaseConfig {
            cluster: Box::new(Told(Arc::clone(&told))),
            check_every: None,
            unreachable: Unreachable::Stop,
        };
        tokio::spawn(leases.clone().keep(config));
        let short = Duration::from_millis(200);
        assert!(timeout(short, lease.held()).await.is_err(), "another one has it");
        told.lock().unwrap().0 = held(&["a"], &[]);
        let running = timeout(second, lease.held()).await.unwrap();
        assert!(timeout(short, lease.lost()).await.is_err());
        // Another gateway should get it, but it is not released while the source still runs.
        told.lock().unwrap().0 = held(&["a"], &["a"]);
        timeout(second, lease.lost()).await.unwrap();
        sleep(short).await;
        assert!(told.lock().unwrap().1.is_empty());
        told.lock().unwrap().0 = held(&[], &[]);
        drop(running);
        until(&|given, _| given == ["a"]).await;
        // Without the lease service nothing is polled.
        told.lock().unwrap().0 = held(&["a"], &[]);
        let running = timeout(second, lease.held()).await.unwrap();
        told.lock().unwrap().0 = Err(Fault::other("database", "gone"));
        timeout(second, lease.lost()).await.unwrap();
        drop(running);
        until(&|_, left| left > 1).await;
        // The lease of a removed source is released.
        told.lock().unwrap().0 = held(&["a"], &[]);
        drop(timeout(second, lease.held()).await.unwrap());
        told.lock().unwrap().1.clear();
        drop(lease);
        until(&|given, _| given.iter().any(|name| name == "a")).await;
    }
}
