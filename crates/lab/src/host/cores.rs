//! Runs client and server cores in virtual time and times them with a real clock.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use taktwerk_crypto::{MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_netem::Profile;
use taktwerk_sim::host::costs::{client_counts, server_counts};
use taktwerk_sim::meter::{Meter, Piece};
use taktwerk_sim::scenario::instruments::Providers;
use taktwerk_sim::scenario::{
    Clients, Host, Instruments, Lines, Link, Load, Login, Operation, Pace, PubSub, Requests, RunError,
    Scenario, Server, Signals, Subscription, run_with,
};

/// Amount of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Enough for reliable figures.
    Full,
    /// The minimum, for tests only.
    Smoke,
}

/// A step of a core.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Work counters, in the order of their names.
    pub counts: Vec<u64>,
    /// Whether the step served deadlines.
    pub is_timer: bool,
    /// Duration in nanoseconds.
    pub nanos: f64,
}

/// The timed steps and jobs.
#[derive(Debug, Default)]
pub struct Samples {
    /// Steps of servers.
    pub server: Vec<Step>,
    /// Steps of clients.
    pub client: Vec<Step>,
    /// Steps of servers after a pause in which the processor slept.
    pub server_asleep: Vec<Step>,
    /// The same for clients.
    pub client_asleep: Vec<Step>,
    /// Steps of servers after a long pause.
    pub server_deep: Vec<Step>,
    /// The same for clients.
    pub client_deep: Vec<Step>,
    /// Slow jobs of servers, in nanoseconds.
    pub jobs: BTreeMap<String, Vec<f64>>,
    /// Slow jobs of clients.
    pub client_jobs: BTreeMap<String, Vec<f64>>,
}

/// Maximum number of steps kept per end and run.
const STEPS_MAX: usize = 60_000;
/// One in this many steps follows a pause, until there are enough samples.
const PAUSE_EVERY: u64 = 13;
/// Length of the pause; long enough that processors sleep.
pub(super) const PAUSE: Duration = Duration::from_millis(4);
/// Length of a long pause, as between publishing intervals: deeper sleep.
pub(super) const LONG_PAUSE: Duration = Duration::from_millis(100);
/// One in this many pauses is a long one.
const LONG_EVERY: u32 = 25;

#[derive(Debug)]
struct Clock {
    began: Instant,
    /// Cost of reading the clock.
    overhead: f64,
    server_left: usize,
    client_left: usize,
    /// Number of steps begun, and remaining pauses.
    begun: u64,
    pauses_left: u32,
    /// Whether this step follows a pause.
    is_asleep: bool,
    /// Whether that pause is a long one.
    is_deep: bool,
    samples: Arc<Mutex<Samples>>,
}

impl Clock {
    fn new(samples: &Arc<Mutex<Samples>>, extent: Extent) -> Self {
        let mut looks: Vec<f64> = (0..1_001)
            .map(|_| {
                let began = Instant::now();
                began.elapsed().as_secs_f64() * 1e9
            })
            .collect();
        looks.sort_by(f64::total_cmp);
        let overhead = looks.get(looks.len() / 2).copied().unwrap_or(0.0);
        let samples = Arc::clone(samples);
        Self {
            began: Instant::now(),
            overhead,
            server_left: STEPS_MAX,
            client_left: STEPS_MAX,
            begun: 0,
            pauses_left: if extent == Extent::Full { 100 } else { 3 },
            is_asleep: false,
            is_deep: false,
            samples,
        }
    }
}

impl Meter for Clock {
    fn begin(&mut self) {
        self.begun += 1;
        self.is_asleep = self.pauses_left > 0 && self.begun.is_multiple_of(PAUSE_EVERY);
        if self.is_asleep {
            self.is_deep = self.pauses_left.is_multiple_of(LONG_EVERY);
            self.pauses_left -= 1;
            std::thread::sleep(if self.is_deep { LONG_PAUSE } else { PAUSE });
        }
        self.began = Instant::now();
    }

    fn end(&mut self, piece: Piece<'_>) {
        let nanos = (self.began.elapsed().as_secs_f64() * 1e9 - self.overhead).max(1.0);
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        match piece {
            Piece::Server(work, is_timer) if self.is_asleep => {
                let steps = if self.is_deep { &mut samples.server_deep } else { &mut samples.server_asleep };
                steps.push(Step { counts: server_counts(work), is_timer, nanos });
            }
            Piece::Client(work, is_timer) if self.is_asleep => {
                let steps = if self.is_deep { &mut samples.client_deep } else { &mut samples.client_asleep };
                steps.push(Step { counts: client_counts(work), is_timer, nanos });
            }
            // The first job after a pause is not representative.
            Piece::Job(_) | Piece::ClientJob(_) if self.is_asleep => {}
            Piece::Server(work, is_timer) if self.server_left > 0 => {
                self.server_left -= 1;
                samples.server.push(Step { counts: server_counts(work), is_timer, nanos });
            }
            Piece::Client(work, is_timer) if self.client_left > 0 => {
                self.client_left -= 1;
                samples.client.push(Step { counts: client_counts(work), is_timer, nanos });
            }
            Piece::Job(name) => samples.jobs.entry(name.to_owned()).or_default().push(nanos),
            Piece::ClientJob(name) => {
                samples.client_jobs.entry(name.to_owned()).or_default().push(nanos);
            }
            _ => {}
        }
    }
}

/// Runs all loads.
pub(super) fn run(
    providers: &Providers,
    extent: Extent,
    report: &mut dyn FnMut(f64) -> bool,
) -> Result<Samples, RunError> {
    let all = Arc::new(Mutex::new(Samples::default()));
    let scenarios = scenarios(extent, &policies(providers));
    let count = scenarios.len() as f64;
    for (number, scenario) in scenarios.iter().enumerate() {
        let instruments = Instruments {
            meter: Some(Box::new(Clock::new(&all, extent))),
            providers: Some(providers.clone()),
            ..Instruments::default()
        };
        let mut tell = |_| report(number as f64 / count);
        run_with(scenario, number as u64, instruments, &mut tell)?;
    }
    let samples = core::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(samples)
}

/// The policies for which both ends have a certificate: RSA, and elliptic curves if there are such keys.
fn policies(providers: &Providers) -> Vec<SecurityPolicy> {
    let has = |provider: &dyn Provider, policy| {
        provider.supports(policy) && provider.own_certificate(policy).is_some()
    };
    let both =
        |policy: &&SecurityPolicy| has(&*providers.server, **policy) && has(&*providers.client, **policy);
    SecurityPolicy::ALL
        .iter()
        .filter(|policy| **policy != SecurityPolicy::None)
        .filter(both)
        .copied()
        .collect()
}

const NONE: (SecurityPolicy, MessageSecurityMode) = (SecurityPolicy::None, MessageSecurityMode::None);
const ENCRYPTED: (SecurityPolicy, MessageSecurityMode) =
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);

/// Loads in which each counter varies independently, from single values to thousands.
fn scenarios(extent: Extent, policies: &[SecurityPolicy]) -> Vec<Scenario> {
    let mut all = Vec::new();
    let subscribe = |interval| Load::Subscribe(Subscription::new(Duration::from_millis(interval)));
    // Only the newest value of each interval, as most clients request; no writes are queued.
    let sample = |interval| {
        let interval = Duration::from_millis(interval);
        let newest = Subscription { sampling_interval: interval, ..Subscription::new(interval) };
        Load::Subscribe(Subscription { queue_size: Some(1), ..newest })
    };
    let request = |operation, batch| {
        let pause = if extent == Extent::Full { 1 } else { 10 };
        let pace = Pace::Pause(Duration::from_millis(pause));
        Load::Request(Requests { operation, batch, pace })
    };
    let (items, batches): (&[u32], &[u32]) = match extent {
        Extent::Full => (&[1, 10, 100, 1_000], &[1, 10, 100, 1_000]),
        Extent::Smoke => (&[1, 50], &[1, 50]),
    };
    for security in [NONE, ENCRYPTED] {
        for items in items {
            all.push(scenario(*items, 100, 8, 1, sample(100), security, extent));
            // Ten values of each item per message, and one value.
            all.push(scenario(*items, 10, 8, 1, subscribe(100), security, extent));
            all.push(scenario(*items, 20, 8, 3, subscribe(20), security, extent));
        }
        if extent == Extent::Full {
            // Too many items to fit into the nearest caches.
            all.push(scenario(10_000, 100, 8, 1, sample(100), security, extent));
        }
        for batch in batches {
            all.push(scenario(1_000, 0, 8, 2, request(Operation::Read, *batch), security, extent));
            all.push(scenario(1_000, 0, 8, 2, request(Operation::Write, *batch), security, extent));
        }
        // More bytes with the same number of values.
        all.push(scenario(10, 10, 1_000, 1, subscribe(100), security, extent));
        all.push(scenario(100, 0, 1_000, 1, request(Operation::Read, 50), security, extent));
    }
    for policy in policies {
        let clients = if extent == Extent::Full { 30 } else { 2 };
        let security = (*policy, MessageSecurityMode::SignAndEncrypt);
        all.push(scenario(1, 0, 8, clients, request(Operation::Read, 1), security, Extent::Smoke));
    }
    all
}

fn scenario(
    count: u32,
    period_ms: u64,
    value_len: usize,
    clients: u32,
    load: Load,
    security: (SecurityPolicy, MessageSecurityMode),
    extent: Extent,
) -> Scenario {
    let host =
        |name: &str| Host { name: name.to_owned(), profile: HostProfile::free(4), competitors: Vec::new() };
    let measured = match extent {
        Extent::Full => Duration::from_secs(4),
        Extent::Smoke => Duration::from_millis(300),
    };
    Scenario {
        hosts: vec![host("server"), host("clients")],
        links: vec![Link {
            name: "line".to_owned(),
            profile: line(),
            is_half_duplex: false,
            lines: Lines::PerClient,
        }],
        servers: vec![Server {
            name: "server".to_owned(),
            count: 1,
            host: Some(0),
            shards: 1,
            signals: vec![Signals { count, period: Duration::from_millis(period_ms), value_len }],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients: vec![Clients {
            name: "clients".to_owned(),
            count: clients,
            server: 0,
            link: Some(0),
            host: Some(1),
            threads: 1,
            items: None,
            load,
            security,
            login: Login::Anonymous,
            session_timeout: Duration::from_secs(60),
            authorities: Vec::new(),
        }],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: Vec::new(),
        warmup: Duration::from_millis(200),
        measured,
        settle: Duration::from_secs(60),
    }
}

fn line() -> Profile {
    Profile {
        name: "line".to_owned(),
        about: "no limits".to_owned(),
        source: "made for calibration".to_owned(),
        up: Default::default(),
        down: Default::default(),
        mtu: u16::MAX,
        vpn: None,
    }
}
