//! Delay and bandwidth by formulas: fast, and accurate enough to rule out bad settings.
//!
//! A message of a subscription has a fixed part and a part per value. Each cycle with values carries one message and the Publish
//! request for the next. Values of a set change together: if the period is longer than the interval, one message has all of
//! them. Values wait for half of the difference between interval and period, or of the interval if the server does not
//! follow the writes, then for the line. If the server follows the writes, the messages of all clients come together and wait for
//! each other. If the line is nearly full, messages queue (M/D/1). Sizes are those of UA Binary with source and server
//! timestamps.

use super::problem::Problem;
use super::search::{Evaluate, EvaluateError};
use super::settings::{Figures, Security, Settings, Transport};
use crate::cpu::{Model, Observation};

/// Headers of IPv4 and TCP with timestamps.
const TCP: f64 = 52.0;
/// Headers of IPv4 and UDP.
const UDP: f64 = 28.0;
/// A Publish response without values, with its chunk header.
const RESPONSE: f64 = 124.0;
/// A Publish request with one acknowledgement, with its chunk header.
const REQUEST: f64 = 110.0;
/// Client handle, encoding mask, type and two timestamps of each value.
const PER_VALUE: f64 = 22.0;
/// Signature, and the mean padding.
const SECURED: f64 = 48.0;
/// A NetworkMessage with one DataSetMessage: headers, writer ids, sequence number, timestamp.
const NETWORK_MESSAGE: f64 = 36.0;

/// How long after the writes a server that follows them publishes, as a share of the publishing interval: at the mean, and
/// rarely. Fitted to the simulation.
const BEHIND: (f64, f64) = (0.01, 0.02);

/// The formulas, with a cost model of the server's CPU if there is one.
#[derive(Debug)]
pub struct Analytic<'a> {
    problem: &'a Problem,
    cpu: Option<&'a Model>,
}

impl<'a> Analytic<'a> {
    /// For a problem.
    #[must_use]
    pub fn new(problem: &'a Problem, cpu: Option<&'a Model>) -> Self {
        Self { problem, cpu }
    }

    /// CPU of the server in percent of one core for a load; `None` without a cost model.
    #[must_use]
    pub fn server_cpu(&self, settings: &Settings) -> Option<f64> {
        let delivered: f64 = self
            .problem
            .signals
            .iter()
            .map(|one| f64::from(one.count) * 1e3 / spacing(one.period_ms, settings))
            .sum();
        let clients =
            if settings.transport == Transport::PubSub { 1.0 } else { f64::from(self.problem.clients) };
        let load = Observation {
            clients,
            signals_per_s: delivered * clients,
            messages_per_s: clients * messages_per_s(self.problem, settings),
            encrypted: settings.security.is_secured(),
            cpu_percent: f64::NAN,
            wakes_per_s: None,
        };
        Some(self.cpu?.predict(&load).cpu_percent)
    }
}

/// Milliseconds between the transferred values of a signal.
fn spacing(period_ms: f64, settings: &Settings) -> f64 {
    let sampled = period_ms.max(settings.sampling_ms);
    let kept = match settings.transport {
        // A cycle carries one value of each signal.
        Transport::PubSub => settings.publishing_ms,
        // A queue of this size is emptied once per interval.
        Transport::Session if settings.queue_size > 0 => {
            settings.publishing_ms / f64::from(settings.queue_size)
        }
        Transport::Session => 0.0,
    };
    sampled.max(kept)
}

/// Whether publishing can be in step with the writes: one of interval and period is a multiple of the other. With several
/// sets, the writes are near each other.
fn is_aligned(problem: &Problem, settings: &Settings) -> bool {
    let [one] = problem.signals.as_slice() else { return true };
    let (interval, period) = (settings.publishing_ms, one.period_ms);
    let ratio = interval.max(period) / interval.min(period);
    (ratio - ratio.round()).abs() < 0.01
}

/// Messages per second to one client: one per publishing interval, but none without values.
fn messages_per_s(problem: &Problem, settings: &Settings) -> f64 {
    let each_interval = 1e3 / settings.publishing_ms;
    if settings.transport == Transport::PubSub {
        return each_interval;
    }
    let with_values: f64 =
        problem.signals.iter().map(|one| 1e3 / spacing(one.period_ms, settings).max(1e-3)).sum();
    each_interval.min(with_values)
}

/// Mean number of values in a message.
pub(super) fn values_per_message(problem: &Problem, settings: &Settings) -> f64 {
    let values: f64 = problem
        .signals
        .iter()
        .map(|one| f64::from(one.count) * 1e3 / spacing(one.period_ms, settings).max(1e-3))
        .sum();
    values / messages_per_s(problem, settings).max(1e-9)
}

/// Share of the publishing interval for which the server polls.
fn awake(settings: &Settings) -> f64 {
    f64::from(settings.busy_poll_us) / 1e3 / settings.publishing_ms
}

/// Whether the server polls until the next message, so that it never sleeps.
#[must_use]
pub fn is_always_awake(settings: &Settings) -> bool {
    awake(settings) >= 1.0
}

/// Effects of busy-polling and energy on the figures, the same for formulas and simulation.
///
/// A server that sleeps needs `wake_us` longer per message. A server that polls longer than an interval never sleeps, so
/// its threads use their CPUs completely.
pub fn complete(problem: &Problem, settings: &Settings, figures: &mut Figures, wake_us: f64) {
    let awake = awake(settings);
    if !is_always_awake(settings) {
        for delay in [&mut figures.delay_mean_ms, &mut figures.delay_p99_ms, &mut figures.delay_max_ms] {
            *delay += wake_us / 1e3;
        }
    }
    if settings.busy_poll_us > 0 {
        let polling = 100.0 * awake.min(1.0) * f64::from(settings.threads);
        figures.server_cpu = figures.server_cpu.map(|cpu| cpu.max(polling));
    }
    figures.energy_w = figures.server_cpu.zip(problem.core_watts).map(|(cpu, watts)| cpu / 100.0 * watts);
}

impl Evaluate for Analytic<'_> {
    fn name(&self) -> &'static str {
        "model"
    }

    fn evaluate(&self, settings: &Settings, _seed: u64) -> Result<Figures, EvaluateError> {
        let problem = self.problem;
        let interval_s = settings.publishing_ms / 1e3;
        let secured = if settings.security == Security::None { 0.0 } else { SECURED };
        let is_session = settings.transport == Transport::Session;
        let (mut values, mut bytes_s, mut written, mut wait_ms) = (0.0, 0.0, 0.0, 0.0);
        // Values per second of each set, and the bytes of its values in the message that has them.
        let mut sets: Vec<(f64, f64)> = Vec::new();
        for one in &problem.signals {
            let count = f64::from(one.count);
            let spacing = spacing(one.period_ms, settings);
            let per_s = count * 1e3 / spacing;
            written += count * 1e3 / one.period_ms;
            values += per_s;
            let size = one.bytes as f64 + if is_session { PER_VALUE } else { 1.0 };
            bytes_s += per_s * size;
            let usual = per_s * size * interval_s;
            sets.push((per_s, (count * size).max(usual) - usual));
            // Wait until sampled, then until published.
            let sampling = (settings.sampling_ms - one.period_ms).max(0.0) / 2.0;
            let publishing = match is_session {
                // A subscription that publishes right after the writes: the newest value does not wait.
                true if problem.follows_writes && is_aligned(problem, settings) => {
                    (settings.publishing_ms - spacing).max(0.0)
                }
                true => settings.publishing_ms,
                false => one.period_ms.min(settings.publishing_ms),
            };
            wait_ms += per_s * (sampling + publishing / 2.0);
        }
        let wait_ms = wait_ms / values.max(1e-9);
        let messages_s = messages_per_s(problem, settings);
        let clients = if is_session { f64::from(problem.clients) } else { 1.0 };
        let payload = f64::from(problem.link.mtu) - TCP;
        let down = &problem.link.down;
        let fixed = if is_session { RESPONSE } else { NETWORK_MESSAGE } + secured;
        let headers = if is_session { TCP } else { UDP } + down.overhead as f64;
        // Bytes of values to the parts of a message, its packets, and all bytes on the line.
        let on_line = |bytes: f64| {
            let each = bytes_s / values.max(1e-9);
            let split = match settings.notifications_max {
                0 => 1.0,
                most => (bytes / each / f64::from(most)).ceil().max(1.0),
            };
            let message = bytes + split * fixed;
            let packets = (message / payload).ceil().max(split);
            (split, packets, message + packets * headers)
        };
        let (split, packets, message) = on_line(bytes_s / messages_s.max(1e-9));
        // Acknowledgements of the requests.
        let acknowledged = if is_session { split * (TCP + down.overhead as f64) } else { 0.0 };
        let down_bits = (message + acknowledged) * 8.0 * messages_s * clients;
        let up = &problem.link.up;
        // One request per message, or as many as the clock sends.
        let requests_s =
            problem.publish_every.map_or(split * messages_s, |share| split / (share * interval_s));
        let request = REQUEST + secured + TCP + up.overhead as f64;
        let acknowledge = (packets / 2.0).ceil() * (TCP + up.overhead as f64);
        let up_bits =
            if is_session { (request * requests_s + acknowledge * messages_s) * 8.0 * clients } else { 0.0 };
        let load = |bits: f64, usable: Option<f64>| usable.map_or(0.0, |usable| bits / usable);
        let busiest = if problem.is_shared {
            load(down_bits + up_bits, down.usable_rate())
        } else {
            load(down_bits, down.usable_rate()).max(load(up_bits, up.usable_rate()))
        };
        if busiest >= 1.0 {
            return Err(EvaluateError::Saturated { share: busiest });
        }
        // The time on the line of the message with a value, as the mean over values.
        let times = down.usable_rate().map_or(0.0, |rate| {
            let all = sets.iter().map(|(per_s, more)| per_s * on_line(bytes_s * interval_s + more).2);
            all.sum::<f64>() / values.max(1e-9) * 8.0 / rate * 1e3
        });
        // Messages that are sent together wait for each other, half of the others at the mean.
        let together = if is_session && problem.follows_writes { clients - 1.0 } else { 0.0 };
        let (line_ms, others_ms) = (times, times * together);
        let behind_ms = match is_session && problem.follows_writes {
            true => (settings.publishing_ms * BEHIND.0, settings.publishing_ms * BEHIND.1),
            false => (0.0, 0.0),
        };
        let queueing_ms = busiest / (2.0 * (1.0 - busiest)) * line_ms;
        let travel_ms = down.delay.mean() * 1e3;
        let mean = wait_ms + behind_ms.0 + line_ms + others_ms / 2.0 + queueing_ms + travel_ms;
        let lost = if is_session { 0.0 } else { down.loss.share() };
        let mut figures = Figures {
            delay_mean_ms: mean,
            delay_p99_ms: 2.0 * wait_ms * 0.99
                + behind_ms.1
                + line_ms
                + others_ms
                + queueing_ms * 3.0
                + travel_ms
                + down.delay.std() * 2_300.0,
            delay_max_ms: 2.0 * wait_ms
                + behind_ms.1
                + line_ms
                + others_ms
                + queueing_ms * 5.0
                + travel_ms
                + down.delay.std() * 4_000.0,
            bandwidth_bits_s: problem.busiest(up_bits, down_bits),
            utilisation: problem.utilisation(up_bits, down_bits),
            total_utilisation: problem.total_utilisation(up_bits, down_bits),
            loss: 1.0 - (values / written.max(1e-9)).min(1.0) * (1.0 - lost),
            server_cpu: self.server_cpu(settings),
            client_cpu: None,
            energy_w: None,
        };
        complete(problem, settings, &mut figures, problem.wake_us);
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::tests::problem;
    use super::*;

    fn figures(sets: &[&str], settings: &Settings) -> Result<Figures, EvaluateError> {
        Analytic::new(&problem(sets), None).evaluate(settings, 0)
    }

    fn at(publishing_ms: f64) -> Settings {
        Settings { publishing_ms, ..Settings::usual() }
    }

    #[test]
    fn delay_grows_and_bandwidth_falls_with_the_interval() {
        let all: Vec<Figures> = [10.0, 35.0, 100.0, 250.0].map(|ms| figures(&[], &at(ms)).unwrap()).to_vec();
        assert!(all.is_sorted_by(|a, b| a.delay_mean_ms < b.delay_mean_ms), "{all:?}");
        assert!(all.is_sorted_by(|a, b| a.bandwidth_bits_s > b.bandwidth_bits_s), "{all:?}");
        assert!(all.iter().all(|one| one.loss == 0.0 && one.utilisation.unwrap() > 0.45), "{all:?}");
        // 1833 values of 26 bytes: 381 kbit/s beside 30 % of 2 Mbit/s.
        let slow = all[3].utilisation.unwrap();
        assert!((0.5..0.56).contains(&slow), "{slow}");
    }

    #[test]
    fn servers_that_do_not_follow_writes_delay_by_half_an_interval() {
        let delay =
            |follows: &str, ms: f64| figures(&["link=rate=1gbit", follows], &at(ms)).unwrap().delay_mean_ms;
        for ms in [4.0, 20.0, 100.0] {
            let late = delay("tune.follows_writes=false", ms);
            assert!((late / (ms / 2.0) - 1.0).abs() < 0.1, "{ms}: {late}");
            assert!(delay("tune.follows_writes=true", ms) < late, "{ms}");
        }
    }

    #[test]
    fn values_wait_if_publishing_cannot_be_in_step_with_the_writes() {
        let wait = |ms: f64, settings: Settings| {
            let one = ["link=rate=1gbit", "signals=[{count=20,period_ms=100}]"];
            figures(&one, &Settings { publishing_ms: ms, ..settings }).unwrap().delay_mean_ms
        };
        for in_step in [20.0, 50.0, 100.0] {
            assert!(wait(in_step, Settings::usual()) < in_step * 0.05, "{in_step}");
        }
        for out_of_step in [23.0, 70.0, 130.0] {
            let share = wait(out_of_step, Settings::usual()) / out_of_step;
            assert!((0.4..0.6).contains(&share), "{out_of_step}: {share}");
        }
        // Of a queue of one value, the newest is sent.
        assert!(wait(200.0, Settings { queue_size: 1, ..Settings::usual() }) < 10.0);
        assert!(wait(200.0, Settings::usual()) > 50.0);
    }

    #[test]
    fn slow_links_are_saturated() {
        assert!(
            matches!(figures(&["link.rate=300k"], &at(5.0)), Err(EvaluateError::Saturated { share }) if share > 1.0)
        );
        assert!(figures(&["link.rate=10M"], &at(5.0)).is_ok());
    }

    #[test]
    fn values_not_sampled_or_queued_are_lost() {
        let sampled = figures(&[], &Settings { sampling_ms: 15.0, ..at(30.0) }).unwrap();
        // 1000 of 1833 values.
        assert!((sampled.loss - 0.4545).abs() < 0.001, "{sampled:?}");
        let queue = figures(&[], &Settings { queue_size: 1, ..at(15.0) }).unwrap();
        assert!((queue.loss - 0.4545).abs() < 0.001, "{queue:?}");
        let pubsub = figures(&[], &Settings { transport: Transport::PubSub, ..at(15.0) }).unwrap();
        assert!(pubsub.bandwidth_bits_s < queue.bandwidth_bits_s / 2.0 && pubsub.loss > 0.4, "{pubsub:?}");
    }

    #[test]
    fn security_and_batches_cost_bandwidth_and_polling_costs_cpu() {
        let plain = figures(&[], &at(20.0)).unwrap();
        let secured = figures(&[], &Settings { security: Security::Sign, ..at(20.0) }).unwrap();
        let batches = figures(&[], &Settings { notifications_max: 5, ..at(20.0) }).unwrap();
        assert!(secured.bandwidth_bits_s > plain.bandwidth_bits_s);
        assert!(batches.bandwidth_bits_s > plain.bandwidth_bits_s);
        let given = problem(&["tune.core_watts=10"]);
        let model = crate::cpu::tests_support::synthetic_model();
        let of = |settings: &Settings| Analytic::new(&given, Some(&model)).evaluate(settings, 0).unwrap();
        let polling = of(&Settings { busy_poll_us: 50_000, threads: 2, ..at(20.0) });
        assert_eq!((polling.server_cpu, polling.energy_w), (Some(200.0), Some(20.0)));
        let sleeping = of(&at(20.0));
        assert!(sleeping.server_cpu.unwrap() < 2.0 && sleeping.delay_mean_ms > polling.delay_mean_ms);
    }
}
