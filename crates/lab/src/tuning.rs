//! Evaluates settings by simulation with the production client and server cores in virtual time.

use crate::model::Model;
use std::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::tune::analytic::{Analytic, complete};
use taktwerk_model::tune::{Evaluate, EvaluateError, Figures, Problem, Security, Settings, Transport};
use taktwerk_sim::publishing::{self, Outcome, PublishRequests, Setup, Signals, SimulateError};

/// Simulates the subscription of one client over the plant's link.
///
/// Clients are simulated one by one; several share the link's rate evenly. CPU figures that the simulation does not
/// have come from the cost model, if there is one.
#[derive(Debug)]
pub struct Simulation<'a> {
    problem: &'a Problem,
    formulas: Analytic<'a>,
    setup: Setup,
}

/// Virtual time before the window: until the session is active and queues have their usual length.
const WARMUP: Duration = Duration::from_secs(2);

impl<'a> Simulation<'a> {
    /// For a problem, optionally with a cost model of the server's CPU.
    #[must_use]
    pub fn new(problem: &'a Problem, cpu: Option<&'a Model>) -> Self {
        Self { problem, formulas: Analytic::new(problem, cpu), setup: setup(problem) }
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
        let setup = Setup { seed, ..self.setup.clone() };
        publishing::simulate(&setup, &simulated(self.problem, settings))
    }

    fn figures(&self, settings: &Settings, outcome: &Outcome) -> Figures {
        let written: u64 = outcome.groups.iter().map(|group| group.written).sum();
        let milliseconds = |nanos: f64| nanos / 1e6;
        let clients = f64::from(self.problem.clients);
        let [up, down] = [&outcome.up, &outcome.down].map(|line| line.bits_per_second * clients);
        let cpu = |share: Option<f64>| share.map(|share| share * 100.0 * clients);
        let mut figures = Figures {
            delay_mean_ms: milliseconds(outcome.values.mean()),
            delay_p99_ms: milliseconds(outcome.values.quantile(0.99) as f64),
            delay_max_ms: milliseconds(outcome.values.max() as f64),
            bandwidth_bits_s: self.problem.busiest(up, down),
            utilisation: self.problem.utilisation(up, down),
            total_utilisation: self.problem.total_utilisation(up, down),
            loss: outcome.lost() as f64 / written.max(1) as f64,
            server_cpu: cpu(outcome.server.cpu).or_else(|| self.formulas.server_cpu(settings)),
            client_cpu: cpu(outcome.client.cpu),
            energy_w: None,
        };
        complete(self.problem, settings, &mut figures);
        figures
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

impl Evaluate for Simulation<'_> {
    fn name(&self) -> &'static str {
        "simulation"
    }

    fn evaluate(&self, settings: &Settings, seed: u64) -> Result<Figures, EvaluateError> {
        if settings.transport == Transport::PubSub {
            return Err(EvaluateError::Unsupported("PubSub is not simulated here"));
        }
        match self.outcome(settings, seed) {
            Ok(outcome) => Ok(self.figures(settings, &outcome)),
            Err(error @ SimulateError::Broken(_)) => {
                Err(EvaluateError::Failed(format!("seed {seed} at {} ms: {error}", settings.publishing_ms)))
            }
            Err(error) => Err(EvaluateError::Failed(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn unsimulated_figures_come_from_formulas() {
        let settings = Settings { transport: Transport::PubSub, ..Settings::usual() };
        let problem = problem(&[]);
        let error = Simulation::new(&problem, None).evaluate(&settings, 1).unwrap_err();
        assert!(matches!(error, EvaluateError::Unsupported(_)));
    }
}
