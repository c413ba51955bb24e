//! Evaluates settings by simulation with the production client and server cores in virtual time.

use crate::model::Model;
use crate::simulate::convert::{awake, of_settings, place_both, spread};
use std::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::host::HostProfile;
use taktwerk_model::tune::analytic::{Analytic, complete};
use taktwerk_model::tune::{Evaluate, EvaluateError, Figures, Problem, Security, Settings, Transport};
use taktwerk_sim::publishing::{self, Outcome, PublishRequests, Setup, Signals, SimulateError};
use taktwerk_sim::scenario::{self, RunError};

/// The machines of a plant.
#[derive(Debug, Clone, PartialEq)]
pub struct Processors {
    /// That of the server or publisher.
    pub server: HostProfile,
    /// That of all clients or subscribers together.
    pub client: HostProfile,
}

/// Simulates the settings over the plant's link.
///
/// - Subscriptions without processors are simulated for one client; several share the link's rate evenly.
/// - With processors, all clients and all threads of the server are simulated. A client that sends Publish requests by a
///   clock is an exception: one client and one thread.
/// - PubSub is simulated with a publisher and all subscribers.
///
/// CPU figures that the simulation does not have come from the cost model, if there is one.
#[derive(Debug)]
pub struct Simulation<'a> {
    problem: &'a Problem,
    formulas: Analytic<'a>,
    setup: Setup,
    processors: Option<Processors>,
}

/// Virtual time before the window: until the session is active and queues have their usual length.
const WARMUP: Duration = Duration::from_secs(2);

/// The results of a simulation, in the units of the simulator.
struct Simulated {
    /// Delays in nanoseconds.
    mean: f64,
    p99: f64,
    max: f64,
    written: u64,
    lost: u64,
    /// Bits per second.
    up: f64,
    down: f64,
    /// CPU shares.
    server: Option<f64>,
    client: Option<f64>,
}

impl<'a> Simulation<'a> {
    /// For a problem, optionally with a cost model of the server's CPU.
    #[must_use]
    pub fn new(problem: &'a Problem, cpu: Option<&'a Model>) -> Self {
        Self { problem, formulas: Analytic::new(problem, cpu), setup: setup(problem), processors: None }
    }

    /// Simulates with these machines.
    #[must_use]
    pub fn with_processors(mut self, processors: Option<Processors>) -> Self {
        self.processors = processors;
        self
    }

    /// The parameters of the simulation, to change what a plant file does not define: processors, and TCP
    /// acknowledgements.
    pub fn setup_mut(&mut self) -> &mut Setup {
        &mut self.setup
    }

    /// Simulates settings of a session.
    ///
    /// # Errors
    /// See [`publishing::simulate`].
    pub(crate) fn outcome(&self, settings: &Settings, seed: u64) -> Result<Outcome, SimulateError> {
        let spread = spread(self.problem, settings);
        let mut setup = Setup { seed, spread, ..self.setup.clone() };
        if let Some(processors) = &self.processors {
            let server = awake(&processors.server, settings);
            (setup.server, setup.client) = (Some(server), Some(processors.client.clone()));
        }
        publishing::simulate(&setup, &simulated(self.problem, settings))
    }

    fn figures(&self, settings: &Settings, simulated: &Simulated) -> Figures {
        let milliseconds = |nanos: f64| nanos / 1e6;
        let cpu = |share: Option<f64>| share.map(|share| share * 100.0);
        let mut figures = Figures {
            delay_mean_ms: milliseconds(simulated.mean),
            delay_p99_ms: milliseconds(simulated.p99),
            delay_max_ms: milliseconds(simulated.max),
            bandwidth_bits_s: self.problem.busiest(simulated.up, simulated.down),
            utilisation: self.problem.utilisation(simulated.up, simulated.down),
            total_utilisation: self.problem.total_utilisation(simulated.up, simulated.down),
            loss: simulated.lost as f64 / simulated.written.max(1) as f64,
            server_cpu: cpu(simulated.server).or_else(|| self.formulas.server_cpu(settings)),
            client_cpu: cpu(simulated.client),
            energy_w: None,
        };
        // With processors, waking a thread is part of the simulation.
        let wake_us = if self.processors.is_some() { 0.0 } else { self.problem.wake_us };
        complete(self.problem, settings, &mut figures, wake_us);
        figures
    }

    /// Simulates all clients or subscribers.
    fn whole(&self, settings: &Settings, seed: u64) -> Result<Simulated, EvaluateError> {
        let mut plant = of_settings(self.problem, settings);
        if let Some(processors) = &self.processors {
            place_both(&mut plant, settings, &processors.server, &processors.client);
        }
        let outcome = scenario::run(&plant, seed, &mut |_| true).map_err(|error| match error {
            RunError::Broken(_) => failed(seed, settings, &error),
            error => EvaluateError::Failed(error.to_string()),
        })?;
        let line = outcome.lines.first().copied().unwrap_or_default();
        let times =
            |times: &publishing::Histogram| (times.mean(), times.quantile(0.99) as f64, times.max() as f64);
        let first = |hosts: &[scenario::HostOutcome]| hosts.first().and_then(|host| host.cpu);
        let missing = || EvaluateError::Failed("the simulation has no load".to_owned());
        if settings.transport == Transport::PubSub {
            let one = outcome.pubsub.subscribers.first().ok_or_else(missing)?;
            let (mean, p99, max) = times(&one.figures.times);
            return Ok(Simulated {
                mean,
                p99,
                max,
                written: one.due,
                lost: one.due.saturating_sub(one.figures.arrived),
                up: line.down_bits_s,
                down: line.up_bits_s,
                server: outcome.pubsub.publishers.first().and_then(|publisher| publisher.cpu),
                client: one.cpu,
            });
        }
        let load = outcome.loads.first().ok_or_else(missing)?;
        let (mean, p99, max) = times(&load.times);
        Ok(Simulated {
            mean,
            p99,
            max,
            written: load.due,
            lost: load.due.saturating_sub(load.arrived),
            up: line.up_bits_s,
            down: line.down_bits_s,
            server: first(&outcome.servers),
            client: first(&outcome.clients),
        })
    }

    /// Simulates the subscription of one client.
    fn one_client(&self, settings: &Settings, seed: u64) -> Result<Simulated, EvaluateError> {
        let outcome = self.outcome(settings, seed).map_err(|error| match error {
            SimulateError::Broken(_) => failed(seed, settings, &error),
            error => EvaluateError::Failed(error.to_string()),
        })?;
        let clients = f64::from(self.problem.clients);
        Ok(Simulated {
            mean: outcome.values.mean(),
            p99: outcome.values.quantile(0.99) as f64,
            max: outcome.values.max() as f64,
            written: outcome.groups.iter().map(|group| group.written).sum(),
            lost: outcome.lost(),
            up: outcome.up.bits_per_second * clients,
            down: outcome.down.bits_per_second * clients,
            server: outcome.server.cpu.map(|cpu| cpu * clients),
            client: outcome.client.cpu.map(|cpu| cpu * clients),
        })
    }
}

/// The simulated plant of one client.
fn setup(problem: &Problem) -> Setup {
    let mut link = problem.link.clone();
    for conditions in [&mut link.up, &mut link.down] {
        conditions.rate = conditions.rate.map(|rate| (rate / u64::from(problem.clients.max(1))).max(1));
    }
    let signals = problem.signals.iter().map(|one| Signals {
        count: one.count,
        period: Duration::from_secs_f64(one.period_ms / 1e3),
        value_len: one.bytes,
    });
    Setup {
        is_half_duplex: problem.is_shared,
        warmup: WARMUP,
        measured: Duration::from_secs_f64(problem.measured_s),
        ..Setup::new(link, signals.collect())
    }
}

/// The settings of the simulated client.
fn simulated(problem: &Problem, settings: &Settings) -> publishing::Settings {
    let milliseconds = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    let policy =
        if settings.security.is_secured() { SecurityPolicy::Basic256Sha256 } else { SecurityPolicy::None };
    let mode = match settings.security {
        Security::None => MessageSecurityMode::None,
        Security::Sign => MessageSecurityMode::Sign,
        Security::SignAndEncrypt => MessageSecurityMode::SignAndEncrypt,
    };
    publishing::Settings {
        sampling_interval: milliseconds(settings.sampling_ms),
        queue_size: Some(settings.queue_size).filter(|size| *size > 0),
        notifications_max: settings.notifications_max,
        keep_alive_count: settings.keep_alive_count,
        publish_requests: match (settings.publish_requests, problem.publish_every) {
            (0, None) => PublishRequests::Automatic,
            // `as` saturates.
            (0, Some(share)) => PublishRequests::Every { percent: (share * 100.0).round() as u32 },
            (most, _) => PublishRequests::AtMost(most as usize),
        },
        security: (policy, mode),
        ..publishing::Settings::new(milliseconds(settings.publishing_ms))
    }
}

/// A broken promise of the software, with the seed that shows it.
fn failed(seed: u64, settings: &Settings, error: &dyn core::fmt::Display) -> EvaluateError {
    EvaluateError::Failed(format!("seed {seed} at {} ms: {error}", settings.publishing_ms))
}

impl Evaluate for Simulation<'_> {
    fn name(&self) -> &'static str {
        "simulation"
    }

    fn evaluate(&self, settings: &Settings, seed: u64) -> Result<Figures, EvaluateError> {
        let is_whole = settings.transport == Transport::PubSub
            || (self.processors.is_some() && self.problem.publish_every.is_none());
        let simulated = if is_whole { self.whole(settings, seed) } else { self.one_client(settings, seed) };
        Ok(self.figures(settings, &simulated?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_model::host::Cost;
    use taktwerk_model::tune::problem::Options;

    const TEXT: &str = "
        [link]
        profile = \"ppp-2m\"
        busy = \"30%\"
        [[signals]]
        count = 5
        period_ms = 10
        bytes = 4
        [tune]
        measured_s = 2
    ";

    fn problem(sets: &[&str]) -> Problem {
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        Problem::parse(TEXT, "p.toml", &Options { sets, ..Options::default() }).unwrap()
    }

    #[test]
    fn the_simulation_and_the_formulas_agree_roughly() {
        let problem = problem(&[]);
        let (simulation, formulas) = (Simulation::new(&problem, None), Analytic::new(&problem, None));
        for publishing_ms in [20.0, 60.0, 200.0] {
            let settings = Settings { publishing_ms, ..Settings::usual() };
            let one = simulation.evaluate(&settings, 1).unwrap();
            let other = formulas.evaluate(&settings, 1).unwrap();
            assert_eq!(one, simulation.evaluate(&settings, 1).unwrap());
            assert_eq!(one.loss, 0.0);
            let delay = one.delay_mean_ms / other.delay_mean_ms;
            let bandwidth = one.bandwidth_bits_s / other.bandwidth_bits_s;
            assert!((0.6..1.4).contains(&delay), "{publishing_ms}: {one:?} {other:?}");
            assert!((0.75..1.3).contains(&bandwidth), "{publishing_ms}: {one:?} {other:?}");
        }
    }

    /// Values of a set change together, and messages of several clients are sent together.
    #[test]
    fn formulas_know_bursts_and_other_clients() {
        let sets = |link: &str, count: u32, period: u32, clients: u32| {
            [
                format!("link={link}"),
                format!("signals.0.count={count}"),
                format!("signals.0.period_ms={period}"),
                "signals.0.bytes=8".to_owned(),
                format!("tune.clients={clients}"),
                "tune.measured_s=4".to_owned(),
            ]
        };
        let mut wrong = Vec::new();
        for (link, count, period, clients) in [
            ("ethernet-100m", 750, 100, 1),
            ("ethernet-100m", 750, 100, 4),
            ("ethernet-100m", 30, 1000, 10),
            ("ppp-10m", 200, 250, 3),
            ("ppp-2m", 50, 500, 1),
        ] {
            let sets = sets(link, count, period, clients);
            let problem = problem(&sets.each_ref().map(String::as_str));
            let (simulation, formulas) = (Simulation::new(&problem, None), Analytic::new(&problem, None));
            for share in [0.05, 0.2, 1.0, 3.0] {
                let settings = Settings { publishing_ms: f64::from(period) * share, ..Settings::usual() };
                let one = simulation.evaluate(&settings, 1).unwrap();
                let other = formulas.evaluate(&settings, 1).unwrap();
                let ratios = [
                    other.delay_mean_ms / one.delay_mean_ms,
                    other.delay_p99_ms / one.delay_p99_ms,
                    other.bandwidth_bits_s / one.bandwidth_bits_s,
                ];
                if !ratios.iter().all(|ratio| (0.5..2.0).contains(ratio)) {
                    wrong.push(format!(
                        "{link} {count} {period} {clients} {share}: {ratios:.2?} {one:?} {other:?}"
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn only_servers_that_follow_writes_promise_no_wait() {
        let text = "[link]\nprofile = \"rate=1gbit\"\n[[signals]]\ncount = 5\nperiod_ms = 100\n";
        let of = |follows_writes: bool, is_whole: bool| {
            let sets = vec![format!("tune.follows_writes={follows_writes}")];
            let problem = Problem::parse(text, "p", &Options { sets, ..Options::default() }).unwrap();
            // Each interval divides the period of the signals.
            [20.0, 25.0, 50.0].map(|publishing_ms| {
                let settings = Settings { publishing_ms, ..Settings::usual() };
                let simulation = Simulation::new(&problem, None);
                let one = match is_whole {
                    true => simulation.figures(&settings, &simulation.whole(&settings, 1).unwrap()),
                    false => simulation.evaluate(&settings, 1).unwrap(),
                };
                assert_eq!(one.loss, 0.0);
                one.delay_mean_ms / publishing_ms
            })
        };
        for is_whole in [false, true] {
            let (followed, other) = (of(true, is_whole), of(false, is_whole));
            assert!(followed.iter().all(|share| *share < 0.1), "{is_whole}: {followed:?}");
            assert!(other.iter().all(|share| (0.4..0.6).contains(share)), "{is_whole}: {other:?}");
        }
    }

    #[test]
    fn publish_requests_by_the_clock_cost_bandwidth() {
        let settings = Settings { publishing_ms: 20.0, ..Settings::usual() };
        let (own, clock) = (problem(&[]), problem(&["tune.publish_every=0.8"]));
        let [own, clock] = [&own, &clock].map(|problem| {
            let formulas = Analytic::new(problem, None).evaluate(&settings, 1).unwrap();
            (Simulation::new(problem, None).evaluate(&settings, 1).unwrap(), formulas)
        });
        let share = |one: f64, other: f64| one / other;
        let simulated = share(clock.0.bandwidth_bits_s, own.0.bandwidth_bits_s);
        let calculated = share(clock.1.bandwidth_bits_s, own.1.bandwidth_bits_s);
        assert!(simulated > 1.02 && (simulated - calculated).abs() < 0.1, "{simulated} {calculated}");
    }

    #[test]
    fn plants_and_settings_with_a_clock_agree() {
        // At long intervals the oldest of the 100 requests in the server's queue is old: 80 s at 1 000 ms.
        let long = ["tune.publish_every=0.8", "tune.measured_s=30", "link.delay=100ms"];
        for (publishing_ms, sets) in [(20.0, &long[..1]), (60.0, &long[..1]), (500.0, &long), (1000.0, &long)]
        {
            let problem = problem(sets);
            let settings = Settings { publishing_ms, ..Settings::usual() };
            let tuned = Simulation::new(&problem, None).evaluate(&settings, 1).unwrap();
            // As `taktwerk sim` runs the plant.
            let plant = of_settings(&problem, &settings);
            let outcome = scenario::run(&plant, 1, &mut |_| true).unwrap();
            let (load, line) = (&outcome.loads[0], outcome.lines[0]);
            assert_eq!((load.due, load.losses), (load.arrived, 0), "{publishing_ms}: {load:?}");
            let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.1;
            assert!(
                near(load.times.mean() / 1e6, tuned.delay_mean_ms),
                "{publishing_ms}: {load:?} {tuned:?}"
            );
            let bits = problem.busiest(line.up_bits_s, line.down_bits_s);
            assert!(near(bits, tuned.bandwidth_bits_s), "{publishing_ms}: {line:?} {tuned:?}");
        }
    }

    #[test]
    fn clients_share_the_link() {
        let settings = Settings { publishing_ms: 50.0, ..Settings::usual() };
        let (few, more) = (problem(&[]), problem(&["tune.clients=3"]));
        let [one, three] =
            [&few, &more].map(|problem| Simulation::new(problem, None).evaluate(&settings, 1).unwrap());
        // Not exactly three times: on a slower line, more acknowledgements are piggybacked on data.
        assert!((2.7..3.1).contains(&(three.bandwidth_bits_s / one.bandwidth_bits_s)), "{one:?} {three:?}");
        assert!(three.utilisation > one.utilisation);
    }

    #[test]
    fn pubsub_is_simulated_and_agrees_roughly_with_the_formulas() {
        let problem = problem(&["tune.clients=2"]);
        let (simulation, formulas) = (Simulation::new(&problem, None), Analytic::new(&problem, None));
        for publishing_ms in [10.0, 40.0] {
            let settings = Settings { publishing_ms, transport: Transport::PubSub, ..Settings::usual() };
            let one = simulation.evaluate(&settings, 1).unwrap();
            let other = formulas.evaluate(&settings, 1).unwrap();
            assert_eq!(one, simulation.evaluate(&settings, 1).unwrap());
            // One message serves both subscribers. A cycle carries one value of each signal.
            let bandwidth = one.bandwidth_bits_s / other.bandwidth_bits_s;
            assert!((0.7..1.3).contains(&bandwidth), "{publishing_ms}: {one:?} {other:?}");
            assert!((one.loss - other.loss).abs() < 0.03, "{publishing_ms}: {one:?} {other:?}");
            assert!(one.delay_mean_ms > 0.0 && one.delay_mean_ms < publishing_ms + 5.0, "{one:?}");
        }
    }

    #[test]
    fn processors_make_cpu_threads_and_polling_simulated_figures() {
        let text = "[[signals]]\ncount = 200\nperiod_ms = 10\n[tune]\nclients = 8\nmeasured_s = 1\n";
        let problem = Problem::parse(text, "p.toml", &Options::default()).unwrap();
        let mut profile = HostProfile::free(4);
        profile.scheduler.wake = Cost::Fixed(40_000.0);
        profile.server.insert("notifications".into(), 2_000.0);
        let processors = Processors { server: profile, client: HostProfile::free(4) };
        let simulation = Simulation::new(&problem, None).with_processors(Some(processors));
        let of = |threads: u32, busy_poll_us: u32| {
            let settings = Settings { publishing_ms: 20.0, threads, busy_poll_us, ..Settings::usual() };
            simulation.evaluate(&settings, 1).unwrap()
        };
        let (one, four, polling) = (of(1, 0), of(4, 0), of(1, 30_000));
        // 160 000 values/s of 2 µs each.
        assert!((25.0..60.0).contains(&one.server_cpu.unwrap()), "{one:?}");
        assert!(one.client_cpu.is_some());
        assert!(four.delay_p99_ms < one.delay_p99_ms * 0.8, "{four:?} {one:?}");
        assert!(polling.delay_mean_ms < one.delay_mean_ms, "{polling:?} {one:?}");
        assert_eq!(polling.server_cpu, Some(100.0));
    }
}
