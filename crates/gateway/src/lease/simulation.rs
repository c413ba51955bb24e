//! Simulates gateways that share sources through a bucket, in virtual time. Connections are cut and delayed, the server restarts
//! with or without its keys, gateways are killed, started, and suspended for longer than their leases.

use super::bucket::{Bucket, Change, Connect, Keys};
use super::registry::Write;
use super::{Lease, LeaseConfig, Leases, Unreachable, lease_time};
use crate::fault::Fault;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;
use futures_util::future::{BoxFuture, join, join_all};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

const INTERVAL: Duration = Duration::from_millis(500);
const SOURCES: usize = 6;
const MS: Duration = Duration::from_millis(1);

struct Random(u64);

impl Random {
    /// A random number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

struct World {
    random: Random,
    /// The server's keys; `None` if there is no bucket.
    keys: Option<BTreeMap<String, (u64, String)>>,
    log: Vec<(String, String, u64, Duration)>,
    /// When the bucket was created.
    made: Instant,
    revision: u64,
    /// The end of the server's outage.
    down: Instant,
    /// The gateways without network, and until when.
    cut: BTreeMap<usize, Instant>,
    /// The number of each connection, by gateway id.
    connections: BTreeMap<String, u64>,
    /// The gateway of each id.
    gateways: BTreeMap<String, usize>,
    /// Number of connections so far.
    connected: u64,
    ids: u64,
    /// How often each source was polled.
    asked: [u64; SOURCES],
}

#[derive(Clone)]
struct Server(Arc<Mutex<World>>);

impl Server {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(World {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            keys: None,
            log: Vec::new(),
            made: Instant::now(),
            revision: 0,
            down: Instant::now(),
            cut: BTreeMap::new(),
            connections: BTreeMap::new(),
            gateways: BTreeMap::new(),
            connected: 0,
            ids: 0,
            asked: [0; SOURCES],
        })))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn below(&self, end: u64) -> u64 {
        self.world().random.below(end)
    }

    /// The network between a gateway and the server. During a cut, messages are delayed and not lost.
    async fn travel(&self, gateway: usize) {
        sleep(MS * (1 + self.below(10) as u32)).await;
        loop {
            let until = self.world().cut.get(&gateway).copied();
            match until.filter(|until| *until > Instant::now()) {
                Some(until) => sleep_until(until + MS * self.below(50) as u32).await,
                None => return,
            }
        }
    }

    /// Closes the connections of a gateway.
    fn close(&self, gateway: usize) {
        let mut world = self.world();
        let World { connections, gateways, .. } = &mut *world;
        connections.retain(|id, _| gateways.get(id) != Some(&gateway));
    }

    fn restart(&self, down: Duration, loses_keys: bool) {
        let mut world = self.world();
        world.down = Instant::now() + down;
        world.connections.clear();
        if loses_keys {
            world.keys = None;
            world.log.clear();
            world.revision = 0;
        }
    }
}

impl World {
    /// Whether a connection is open.
    fn has(&self, id: &str, connection: u64) -> bool {
        self.connections.get(id) == Some(&connection)
    }
}

struct Wire {
    server: Server,
    gateway: usize,
    id: String,
    connection: u64,
    at: usize,
    probed: Arc<Mutex<(Vec<String>, BTreeSet<String>)>>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        let mut world = self.server.world();
        if world.has(&self.id, self.connection) {
            world.connections.remove(&self.id);
        }
    }
}

impl Wire {
    /// Performs an operation at the server, even if the caller stops waiting for the answer.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        let (server, gateway) = (self.server.clone(), self.gateway);
        let (id, connection) = (self.id.clone(), self.connection);
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            server.travel(gateway).await;
            let done = {
                let mut world = server.world();
                world.has(&id, connection).then(|| work(&mut world))
            };
            server.travel(gateway).await;
            let _ = answer.send(done.filter(|_| server.world().has(&id, connection)));
        });
        Box::pin(async move { answered.await.ok().flatten().ok_or_else(closed) })
    }
}

fn closed() -> Fault {
    Fault::Closed { target: "server".to_owned() }
}

impl Bucket for Wire {
    fn put<'a>(&self, write: &'a Write) -> BoxFuture<'a, Result<Option<u64>, Fault>> {
        let (write, probed) = (write.clone(), Arc::clone(&self.probed));
        self.ask(move |world| {
            let mut probed = probed.lock().unwrap();
            let (ids, silent) = &mut *probed;
            silent.extend(ids.drain(..).filter(|id| !world.connections.contains_key(id)));
            let keys = world.keys.as_mut().unwrap();
            if keys.get(&write.key).map_or(0, |(revision, _)| *revision) != write.revision {
                return None;
            }
            world.revision += 1;
            keys.insert(write.key.clone(), (world.revision, write.value.clone()));
            let age = world.made.elapsed();
            let revision = world.revision;
            world.log.push((write.key, write.value, revision, age));
            Some(world.revision)
        })
    }

    fn read<'a>(&self, key: &'a str) -> BoxFuture<'a, Result<Option<Change>, Fault>> {
        let key = key.to_owned();
        self.ask(move |world| {
            let (revision, value) = world.keys.as_ref().unwrap().get(&key)?.clone();
            Some(Change { key, value, revision, age: world.made.elapsed() })
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Change, Fault>> {
        Box::pin(async {
            loop {
                {
                    let world = self.server.world();
                    if !world.has(&self.id, self.connection) {
                        return Err(closed());
                    }
                    if let Some((key, value, revision, age)) = world.log.get(self.at).cloned() {
                        self.at += 1;
                        return Ok(Change { key, value, revision, age });
                    }
                }
                sleep(MS).await;
            }
        })
    }

    fn probe<'a>(&self, ids: &'a [String]) -> BoxFuture<'a, Result<(), Fault>> {
        *self.probed.lock().unwrap() = (ids.to_vec(), BTreeSet::new());
        Box::pin(core::future::ready(Ok(())))
    }

    fn unconnected(&mut self) -> BTreeSet<String> {
        core::mem::take(&mut self.probed.lock().unwrap().1)
    }

    fn broken(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            while self.server.world().has(&self.id, self.connection) {
                sleep(5 * MS).await;
            }
        })
    }
}

struct Connector {
    server: Server,
    gateway: usize,
}

impl Connect for Connector {
    type Bucket = Wire;

    fn describe(&self) -> String {
        "simulated".to_owned()
    }

    fn connect<'a>(&'a self, _: &'a str, id: &'a str) -> BoxFuture<'a, Result<Wire, Fault>> {
        Box::pin(async move {
            self.server.travel(self.gateway).await;
            let connection = {
                let mut world = self.server.world();
                if world.down > Instant::now() {
                    return Err(closed());
                }
                if world.keys.is_none() {
                    world.keys = Some(BTreeMap::new());
                    world.made = Instant::now();
                }
                world.connected += 1;
                let connection = world.connected;
                world.connections.insert(id.to_owned(), connection);
                world.gateways.insert(id.to_owned(), self.gateway);
                connection
            };
            let (server, id) = (self.server.clone(), id.to_owned());
            Ok(Wire { server, gateway: self.gateway, id, connection, at: 0, probed: Arc::default() })
        })
    }

    fn name(&self) -> String {
        let mut world = self.server.world();
        world.ids += 1;
        format!("{:04}", world.ids)
    }
}

/// The end of a process's suspension.
type Stopped = Arc<Mutex<Instant>>;

/// Runs a future except while the process is suspended.
async fn stoppable(stopped: Stopped, run: impl Future<Output = ()>) {
    let mut run = Box::pin(run);
    let mut wake: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(move |context| {
        let until = *stopped.lock().unwrap();
        if until > Instant::now() {
            let sleeps = wake.insert(Box::pin(sleep_until(until)));
            if sleeps.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        run.as_mut().poll(context)
    })
    .await;
}

struct Gateway {
    task: JoinHandle<()>,
    stopped: Stopped,
    /// For inspection only.
    leases: Vec<Lease>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gateway {
    fn start(server: &Server, gateway: usize) -> Self {
        let leases = Leases::default();
        let lease = |at: usize| leases.lease(&format!("source {at}"), Some(INTERVAL));
        let sources = (0..SOURCES).map(|at| ask(server.clone(), at, lease(at)));
        let cluster = Box::new(Keys::new(Connector { server: server.clone(), gateway }, "plant"));
        let config = LeaseConfig { cluster, check_every: None, unreachable: Unreachable::Stop };
        let run = join(leases.clone().keep(config), join_all(sources));
        let stopped = Arc::new(Mutex::new(Instant::now()));
        let run = stoppable(Arc::clone(&stopped), async {
            run.await;
        });
        Self { task: tokio::spawn(run), stopped, leases: (0..SOURCES).map(lease).collect() }
    }

    fn is_running(&self) -> bool {
        *self.stopped.lock().unwrap() <= Instant::now()
    }

    fn has(&self, source: usize) -> bool {
        self.is_running() && self.leases[source].is_held()
    }

    fn count(&self) -> usize {
        (0..SOURCES).filter(|source| self.has(*source)).count()
    }
}

/// Polls a source.
async fn ask(server: Server, source: usize, mut lease: Lease) {
    loop {
        let running = lease.held().await;
        let run = async {
            loop {
                server.world().asked[source] += 1;
                sleep(INTERVAL).await;
            }
        };
        let outcome: Option<()> = lease.guard(run).await;
        assert!(outcome.is_none());
        drop(running);
    }
}

/// Observations of the gateways.
#[derive(Debug, Default)]
struct Seen {
    /// How long each source was polled by two gateways without interruption, and the maximum.
    twice: [Duration; SOURCES],
    twice_max: Duration,
    /// The same for sources polled by no gateway.
    none: [Duration; SOURCES],
    none_max: Duration,
}

impl Seen {
    /// Observes for some time.
    async fn look(&mut self, gateways: &[Option<Gateway>], time: Duration) {
        let step = 5 * MS;
        let end = Instant::now() + time;
        while Instant::now() < end {
            for source in 0..SOURCES {
                let count = gateways.iter().flatten().filter(|it| it.has(source)).count();
                let count_up = |is_so: bool, time: &mut Duration, max: &mut Duration| {
                    *time = if is_so { *time + step } else { Duration::ZERO };
                    *max = (*max).max(*time);
                };
                count_up(count > 1, &mut self.twice[source], &mut self.twice_max);
                count_up(count == 0, &mut self.none[source], &mut self.none_max);
            }
            sleep(step).await;
        }
    }
}

fn counts(gateways: &[Option<Gateway>]) -> Vec<usize> {
    gateways.iter().flatten().map(Gateway::count).collect()
}

/// The random seeds; the environment sets their number.
fn seeds(default: u64) -> core::ops::RangeInclusive<u64> {
    let count = std::env::var("TAKTWERK_LEASE_SEEDS").ok().and_then(|text| text.parse().ok());
    1..=count.unwrap_or(default)
}

fn within(time: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(time);
}

#[test]
fn each_gateway_has_its_share() {
    for seed in seeds(6) {
        within(async move {
            let server = Server::new(seed);
            let mut gateways = vec![Some(Gateway::start(&server, 0)), None, None];
            let mut seen = Seen::default();
            // No lease is taken while the bucket is new.
            seen.look(&gateways, Duration::from_secs(4)).await;
            assert_eq!(counts(&gateways), [6], "seed {seed}: one has everything");
            gateways[1] = Some(Gateway::start(&server, 1));
            gateways[2] = Some(Gateway::start(&server, 2));
            seen.look(&gateways, Duration::from_secs(10)).await;
            assert_eq!(counts(&gateways), [2, 2, 2], "seed {seed}");
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
            // One gateway stops; the others share its sources.
            gateways[(seed % 3) as usize] = None;
            seen.look(&gateways, Duration::from_secs(10)).await;
            assert_eq!(counts(&gateways), [3, 3], "seed {seed}");
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
        });
    }
}

#[test]
fn a_killed_gateway_is_replaced_within_two_intervals() {
    for seed in seeds(10) {
        within(async move {
            let server = Server::new(seed);
            let mut gateways: Vec<_> = (0..2).map(|at| Some(Gateway::start(&server, at))).collect();
            let mut seen = Seen::default();
            seen.look(&gateways, Duration::from_secs(8)).await;
            assert_eq!(counts(&gateways), [3, 3], "seed {seed}");
            seen = Seen::default();
            seen.look(&gateways, Duration::from_millis(server.below(500))).await;
            gateways[0] = None;
            seen.look(&gateways, 3 * INTERVAL).await;
            assert_eq!(counts(&gateways), [6], "seed {seed}");
            assert!(seen.none_max < 2 * INTERVAL, "seed {seed}: {seen:?}");
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
        });
    }
}

#[test]
fn a_gateway_suspended_for_longer_than_its_lease_polls_nothing_on_resume() {
    for seed in seeds(10) {
        within(async move {
            let server = Server::new(seed);
            let gateways: Vec<_> = (0..2).map(|at| Some(Gateway::start(&server, at))).collect();
            let mut seen = Seen::default();
            seen.look(&gateways, Duration::from_secs(8)).await;
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
            seen = Seen::default();
            let resumes = Instant::now() + Duration::from_secs(5);
            *gateways[0].as_ref().unwrap().stopped.lock().unwrap() = resumes;
            seen.look(&gateways, Duration::from_millis(4900)).await;
            assert_eq!(counts(&gateways), [0, 6], "seed {seed}");
            // Its machine may be lost, so its lease must expire first.
            assert!(seen.none_max < lease_time(INTERVAL / 2) + INTERVAL, "seed {seed}: {seen:?}");
            let before: u64 = server.world().asked.iter().sum();
            seen.look(&gateways, Duration::from_secs(1)).await;
            let after: u64 = server.world().asked.iter().sum();
            assert!(after - before <= 6 * 3, "seed {seed}: {}", after - before);
            seen.look(&gateways, Duration::from_secs(8)).await;
            assert_eq!(counts(&gateways), [3, 3], "seed {seed}");
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
        });
    }
}

/// A gateway loses its connection, which the others detect immediately, but it keeps running.
#[test]
fn a_disconnected_gateway_stops_before_others_take_its_sources() {
    for seed in seeds(20) {
        within(async move {
            let server = Server::new(seed);
            let gateways: Vec<_> = (0..2).map(|at| Some(Gateway::start(&server, at))).collect();
            let mut seen = Seen::default();
            seen.look(&gateways, Duration::from_secs(8)).await;
            assert_eq!(counts(&gateways), [3, 3], "seed {seed}");
            seen = Seen::default();
            seen.look(&gateways, MS * server.below(300) as u32).await;
            server.close(0);
            server.world().cut.insert(0, Instant::now() + Duration::from_secs(5));
            seen.look(&gateways, 3 * INTERVAL).await;
            assert_eq!(counts(&gateways), [0, 6], "seed {seed}");
            assert!(seen.none_max < 2 * INTERVAL, "seed {seed}: {seen:?}");
            seen.look(&gateways, Duration::from_secs(13)).await;
            assert_eq!(counts(&gateways), [3, 3], "seed {seed}");
            // Reconnecting immediately stops nothing.
            let before = seen.none_max;
            server.close(0);
            seen.none_max = Duration::ZERO;
            seen.look(&gateways, Duration::from_secs(5)).await;
            assert_eq!(seen.none_max, Duration::ZERO, "seed {seed}: {before:?}");
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
        });
    }
}

#[test]
fn a_short_restart_of_the_server_stops_nothing() {
    within(async {
        let server = Server::new(7);
        let gateways: Vec<_> = (0..2).map(|at| Some(Gateway::start(&server, at))).collect();
        let mut seen = Seen::default();
        seen.look(&gateways, Duration::from_secs(8)).await;
        seen = Seen::default();
        server.restart(Duration::from_millis(100), false);
        seen.look(&gateways, Duration::from_secs(8)).await;
        assert_eq!((seen.none_max, seen.twice_max), (Duration::ZERO, Duration::ZERO));
        assert_eq!(counts(&gateways), [3, 3]);
        // If the server lost its keys, the lease holders are unknown: everything stops before anything is taken.
        server.restart(Duration::from_millis(100), true);
        seen.look(&gateways, Duration::from_secs(8)).await;
        assert!(seen.none_max > Duration::ZERO);
        assert_eq!(seen.twice_max, Duration::ZERO);
        assert_eq!(counts(&gateways), [3, 3]);
    });
}

/// The number of gateways does not divide that of the sources: their counts differ by at most one.
#[test]
fn four_gateways_share_six_sources_evenly() {
    for seed in seeds(10) {
        within(async move {
            let server = Server::new(seed);
            let mut gateways: Vec<Option<Gateway>> = Vec::new();
            let mut seen = Seen::default();
            for at in 0..4 {
                gateways.push(Some(Gateway::start(&server, at)));
                seen.look(&gateways, MS * server.below(5000) as u32).await;
            }
            seen.look(&gateways, Duration::from_secs(15)).await;
            let mut shares = counts(&gateways);
            shares.sort_unstable();
            assert_eq!(shares, [1, 1, 2, 2], "seed {seed}");
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
        });
    }
}

/// The bucket is lost and created anew while gateways still poll their sources, and a starting gateway finds it.
#[test]
fn a_new_gateway_takes_nothing_in_a_new_bucket() {
    for seed in seeds(10) {
        within(async move {
            let server = Server::new(seed);
            let mut gateways = vec![Some(Gateway::start(&server, 0)), None, None];
            let mut seen = Seen::default();
            seen.look(&gateways, Duration::from_secs(5)).await;
            assert_eq!(counts(&gateways), [6], "seed {seed}");
            // The gateway with the leases cannot reach the server, which loses its keys.
            server.world().cut.insert(0, Instant::now() + Duration::from_secs(5));
            server.restart(MS, true);
            gateways[1] = Some(Gateway::start(&server, 1));
            seen.look(&gateways, MS * (20 + server.below(200) as u32)).await;
            gateways[2] = Some(Gateway::start(&server, 2));
            seen.look(&gateways, Duration::from_secs(15)).await;
            assert_eq!(seen.twice_max, Duration::ZERO, "seed {seed}: {seen:?}");
            assert_eq!(counts(&gateways), [2, 2, 2], "seed {seed}");
        });
    }
}

/// In any world no source is polled twice for longer than one interval, and all are polled in the end.
#[test]
fn random_worlds() {
    for seed in seeds(16) {
        within(async move {
            let server = Server::new(seed);
            let mut gateways: Vec<_> = (0..3).map(|at| Some(Gateway::start(&server, at))).collect();
            let mut seen = Seen::default();
            for _ in 0..15 {
                let at = server.below(3) as usize;
                let time = MS * server.below(3000) as u32;
                match server.below(7) {
                    0 => gateways[at] = None,
                    1 | 2 => {
                        server.world().cut.insert(at, Instant::now() + time);
                    }
                    5 => server.close(at),
                    3 => server.restart(time, server.below(4) == 0),
                    4 => {
                        if let Some(gateway) = &gateways[at] {
                            *gateway.stopped.lock().unwrap() = Instant::now() + time;
                        }
                    }
                    _ => {}
                }
                let pause = MS * server.below(2000) as u32;
                seen.look(&gateways, pause).await;
                if gateways[at].is_none() && server.below(2) == 0 {
                    gateways[at] = Some(Gateway::start(&server, at));
                }
            }
            assert!(seen.twice_max <= INTERVAL, "seed {seed}: {seen:?}");
            gateways.resize_with(3, || None);
            for (at, gateway) in gateways.iter_mut().enumerate() {
                gateway.get_or_insert_with(|| Gateway::start(&server, at));
            }
            seen.look(&gateways, Duration::from_secs(20)).await;
            assert_eq!(counts(&gateways), [2, 2, 2], "seed {seed}: {seen:?}");
            assert!(seen.twice_max <= INTERVAL, "seed {seed}: {seen:?}");
        });
    }
}
