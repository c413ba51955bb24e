//! Finds the causes of slow answers, if the counters of the scheduler and TCP prove them.
//!
//! The C-GW paper correlated peaks of the round-trip delay with peaks of the CPU load and could not explain all of
//! them. Correlation is not a cause. Here, each slow sample is compared with the events between its request and its
//! answer. The largest event that explains at least half of the excess is its cause.
//! answer; the largest part that explains at least half of the excess is its cause.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;

/// One request with the events during it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was due, in seconds since the start.
    pub at_s: f64,
    /// Time from sending to the answer, in microseconds.
    pub rtt_us: f64,
    /// Whether there was no answer. Then `rtt_us` is the time it has waited, a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
    /// Events during the request.
    pub context: Context,
}

/// The round trip of the fastest answer in microseconds; `None` without answers. Unanswered requests do not count,
/// because a connection can break at once.
#[must_use]
pub fn fastest(samples: &[Sample]) -> Option<f64> {
    samples.iter().filter(|sample| !sample.unanswered).map(|sample| sample.rtt_us).min_by(f64::total_cmp)
}

/// Events between a request and its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// Lateness of the client's timer before the request. It is not part of the round trip, but of the delay since the
    /// scheduled time.
    pub timer_late_us: f64,
    /// Time that the server's threads were ready to run without a CPU.
    pub server_wait_us: f64,
    /// Run time of the server's threads.
    pub server_run_us: f64,
    /// Time that the client was ready to run without a CPU.
    pub client_wait_us: f64,
    /// Time that the hypervisor took from the server's or the client's CPU, according to the kernel. It is counted in
    /// whole clock ticks: a tick counted here was stolen or ended within this time, and most short periods are not
    /// counted. The sum over many samples is correct.
    #[serde(default)]
    pub stolen_us: f64,
    /// Segments retransmitted by TCP, in both directions if the server's end is visible ([`crate::wire::carried`]).
    pub retransmitted: u64,
    /// Total load of the server's CPU in the 100 ms before the answer.
    pub load_percent: Option<f64>,
    /// Whether the server runs on this machine, so that its counters are known.
    pub server_known: bool,
}

/// The cause of a slow answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The server was ready to run, but another program used its CPU.
    ServerRunQueue,
    /// The server itself ran for a long time.
    ServerTurn,
    /// TCP lost and retransmitted a segment.
    Retransmission,
    /// The client's timer was late, so the request was sent late.
    Timer,
    /// The client was ready to run, but another program used its CPU. An error of the measurement.
    Generator,
    /// The hypervisor took a CPU, according to the kernel's stolen time.
    Hypervisor,
    /// No proven cause: the link, an interrupt, or stolen time too short to be counted.
    NotProven,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::ServerRunQueue,
        Self::ServerTurn,
        Self::Retransmission,
        Self::Timer,
        Self::Generator,
        Self::Hypervisor,
        Self::NotProven,
    ];
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerRunQueue => "server waiting for its CPU",
            Self::ServerTurn => "a long turn of the server",
            Self::Retransmission => "TCP retransmission",
            Self::Timer => "a late timer of the client",
            Self::Generator => "client waiting for its CPU",
            Self::Hypervisor => "CPU time stolen by the hypervisor",
            Self::NotProven => "no proven cause",
        })
    }
}

/// A slow sample with its cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Index of the sample.
    pub index: usize,
    /// Time from sending to the answer.
    pub rtt_us: f64,
    /// The time to be explained: beyond the usual delay, counted from when a timer with the usual lateness would have
    /// sent it.
    pub excess_us: f64,
    /// The cause.
    pub cause: Cause,
    /// The figures behind it, in words.
    pub proof: String,
}

/// Medians of the parts of all samples.
struct Usual {
    delay: f64,
    timer: f64,
    wait: f64,
    run: f64,
    client: f64,
}

impl Usual {
    fn of(samples: &[Sample]) -> Self {
        let of = |value: &dyn Fn(&Sample) -> f64| -> f64 {
            taktwerk_model::statistics::median(&samples.iter().map(value).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        let timer = of(&|sample| sample.context.timer_late_us);
        Self {
            delay: of(&|sample| delay(sample, timer)),
            timer,
            wait: of(&|sample| sample.context.server_wait_us),
            run: of(&|sample| sample.context.server_run_us),
            client: of(&|sample| sample.context.client_wait_us),
        }
    }

    /// The possible causes of a slow sample, each with its excess over the usual value.
    fn parts(&self, context: &Context) -> [(Cause, f64); 4] {
        [
            (Cause::ServerRunQueue, context.server_wait_us - self.wait),
            (Cause::ServerTurn, context.server_run_us - self.run),
            (Cause::Generator, context.client_wait_us - self.client),
            (Cause::Timer, context.timer_late_us - self.timer),
        ]
    }
}

/// The round trip plus the lateness beyond the usual one: a client with a schedule waits for both.
fn delay(sample: &Sample, usual_timer: f64) -> f64 {
    sample.rtt_us + (sample.context.timer_late_us - usual_timer).max(0.0)
}

/// Finds the cause of each sample that takes at least `times` as long as the fastest, if it is slower than usual.
#[must_use]
pub fn explain(samples: &[Sample], times: f64) -> Vec<Slow> {
    let Some(fastest) = fastest(samples) else { return Vec::new() };
    let usual = Usual::of(samples);
    let mut slow = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let delay = delay(sample, usual.timer);
        let excess = delay - usual.delay;
        if delay > fastest * times && excess > 0.0 {
            let (cause, mut proof) = prove(&sample.context, &usual, excess);
            if sample.unanswered {
                proof = format!("no answer; {proof}");
            }
            slow.push(Slow { index, rtt_us: sample.rtt_us, excess_us: excess, cause, proof });
        }
    }
    slow
}

/// The cause of an excess, with its proof in words.
fn prove(context: &Context, usual: &Usual, excess: f64) -> (Cause, String) {
    let beyond = format!("beyond the usual {:.0} µs", usual.delay);
    let largest = usual.parts(context).into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match largest {
        Some((cause, part)) if part >= excess / 2.0 => {
            // The counters are read slightly before and after the request.
            let part = part.min(excess);
            (cause, format!("{cause} for {part:.0} of {excess:.0} µs {beyond}"))
        }
        // No counter has the time until the loss was noticed. Retransmission is the cause if nothing else explains the
        // excess.
        _ if context.retransmitted > 0 => {
            let segments = if context.retransmitted == 1 { "segment" } else { "segments" };
            let proof = format!(
                "TCP retransmitted {} {segments} in {excess:.0} µs {beyond}, half of which nothing else explains",
                context.retransmitted
            );
            (Cause::Retransmission, proof)
        }
        // Counted in ticks, it can explain at most their length.
        _ if context.stolen_us >= excess / 2.0 && context.stolen_us > 0.0 => {
            let proof = format!(
                "the hypervisor took {:.0} µs of CPU during the request, in clock ticks; {excess:.0} µs {beyond}",
                context.stolen_us
            );
            (Cause::Hypervisor, proof)
        }
        _ => {
            let known = if context.server_known { "" } else { " (the server's counters are not known)" };
            let proof = format!(
                "not proven: of {excess:.0} µs {beyond}, the server waited {:.0} µs for its CPU and ran {:.0} µs, the client \
                 waited {:.0} µs and sent {:.0} µs late{known}",
                context.server_wait_us, context.server_run_us, context.client_wait_us, context.timer_late_us
            );
            (Cause::NotProven, proof)
        }
    }
}

/// Stolen time over all slow samples without a proven cause, as a share of their total excess. It is counted in whole
/// clock ticks, which is imprecise for one sample but correct for the sum. `None` if all samples are explained.
#[must_use]
pub fn stolen_share(samples: &[Sample], slow: &[Slow]) -> Option<f64> {
    let open = slow.iter().filter(|one| one.cause == Cause::NotProven || one.cause == Cause::Hypervisor);
    let (stolen, excess) = open.fold((0.0, 0.0), |(stolen, excess), one| {
        let of = samples.get(one.index).map_or(0.0, |sample| sample.context.stolen_us);
        (stolen + of, excess + one.excess_us)
    });
    (excess > 0.0).then(|| stolen / excess)
}

/// Pearson's correlation of two binary sequences (their φ coefficient); `None` if one of them is constant.
#[must_use]
pub fn pearson(one: &[bool], two: &[bool]) -> Option<f64> {
    let [both, first, second, none] = contingency(one, two);
    let product = (both + first) * (second + none) * (both + second) * (first + none);
    (product > 0.0).then(|| (both * none - first * second) / product.sqrt())
}

/// Kulczynski's second coefficient: the mean of P(two | one) and P(one | two); `None` if either never occurs.
#[must_use]
pub fn kulczynski(one: &[bool], two: &[bool]) -> Option<f64> {
    let [both, first, second, _] = contingency(one, two);
    (both + first > 0.0 && both + second > 0.0)
        .then(|| (both / (both + first) + both / (both + second)) / 2.0)
}

fn contingency(one: &[bool], two: &[bool]) -> [f64; 4] {
    let mut table = [0.0; 4];
    for (a, b) in one.iter().zip(two) {
        let [both, first, second, none] = &mut table;
        let cell = match (a, b) {
            (true, true) => both,
            (true, false) => first,
            (false, true) => second,
            (false, false) => none,
        };
        *cell += 1.0;
    }
    table
}

/// The kernel's CPU counters so far, in nanoseconds with the resolution of a clock tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Busy time of the first requested CPU.
    pub busy: u64,
    /// Stolen time of all requested CPUs.
    pub stolen: u64,
}

/// Counters of CPUs in `/proc/stat`; `None` without it, or if the first CPU is missing.
#[must_use]
pub fn counted(cpus: &[usize]) -> Option<Counted> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let of = |cpu: &usize| -> Option<Counted> {
        let name = format!("cpu{cpu} ");
        let ticks: Vec<u64> = text
            .lines()
            .find_map(|line| line.strip_prefix(&name))?
            .split_ascii_whitespace()
            .filter_map(|ticks| ticks.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal: all except the two idle ones and the last.
        let busy = ticks.iter().take(7).enumerate().filter(|(at, _)| ![3, 4].contains(at));
        Some(Counted {
            busy: busy.map(|(_, ticks)| ticks * tick).sum(),
            stolen: ticks.get(7).map_or(0, |ticks| ticks * tick),
        })
    };
    let first = of(cpus.first()?)?;
    let stolen = cpus.iter().filter_map(of).map(|one| one.stolen).sum();
    Some(Counted { stolen, ..first })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rtt_us: f64, context: Context) -> Sample {
        Sample { at_s: 0.0, rtt_us, unanswered: false, context }
    }

    #[test]
    fn each_cause_is_named_by_its_proof() {
        // The server always runs and waits briefly, and the timer is always 60 µs late; these are not causes.
        let quiet = Context {
            server_run_us: 10.0,
            server_wait_us: 5.0,
            timer_late_us: 60.0,
            server_known: true,
            ..Context::default()
        };
        let mut samples = vec![sample(100.0, quiet); 30];
        samples.push(sample(1_100.0, Context { server_wait_us: 905.0, ..quiet }));
        samples.push(sample(1_100.0, Context { server_run_us: 800.0, ..quiet }));
        samples.push(sample(1_100.0, Context { client_wait_us: 700.0, server_wait_us: 100.0, ..quiet }));
        samples.push(sample(200_000.0, Context { retransmitted: 1, server_wait_us: 900.0, ..quiet }));
        samples.push(sample(1_100.0, Context { retransmitted: 1, server_wait_us: 900.0, ..quiet }));
        samples.push(sample(110.0, Context { timer_late_us: 2_060.0, ..quiet }));
        samples.push(sample(1_100.0, Context { server_wait_us: 300.0, ..quiet }));
        let slow = explain(&samples, 5.0);
        let causes: Vec<Cause> = slow.iter().map(|slow| slow.cause).collect();
        assert_eq!(
            causes,
            [
                Cause::ServerRunQueue,
                Cause::ServerTurn,
                Cause::Generator,
                Cause::Retransmission,
                // Also retransmitted, but this did not cause the delay.
                Cause::ServerRunQueue,
                Cause::Timer,
                Cause::NotProven
            ]
        );
        assert!(slow[0].proof.contains("900 of 1000 µs beyond the usual 100 µs"), "{}", slow[0].proof);
        assert!(
            slow[5].proof.contains("a late timer of the client for 2000 of 2010 µs"),
            "{}",
            slow[5].proof
        );
        assert!(explain(&[], 5.0).is_empty());
    }

    #[test]
    fn usual_delays_have_no_cause() {
        // Two thirds of the answers wake a sleeping CPU: more than five times the fastest, without any event.
        let mut samples = vec![sample(20.0, Context::default()); 10];
        samples.extend(vec![sample(150.0, Context::default()); 20]);
        assert_eq!(explain(&samples, 5.0), []);
        samples.push(sample(151.0, Context { client_wait_us: 0.0, ..Context::default() }));
        let causes: Vec<Cause> = explain(&samples, 5.0).iter().map(|slow| slow.cause).collect();
        assert_eq!(causes, [Cause::NotProven]);
    }

    #[test]
    fn unanswered_requests_are_slow_and_never_the_fastest() {
        let unanswered = |rtt_us| Sample { unanswered: true, ..sample(rtt_us, Context::default()) };
        let mut samples = vec![sample(100.0, Context::default()); 30];
        // One at which the connection broke at once, and one at which the time was over.
        samples.extend([unanswered(1.0), unanswered(1e6)]);
        assert_eq!((fastest(&samples), fastest(&samples[30..])), (Some(100.0), None));
        let slow = explain(&samples, 5.0);
        assert_eq!(slow.iter().map(|slow| slow.index).collect::<Vec<_>>(), [31]);
        assert!(slow[0].proof.starts_with("no answer; not proven"), "{}", slow[0].proof);
        assert_eq!(explain(&samples[30..], 5.0), []);
    }

    #[test]
    fn old_samples_count_as_answered() {
        let answered = sample(100.0, Context::default());
        let text = serde_json::to_string(&answered).unwrap();
        assert!(!text.contains("unanswered"), "{text}");
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), answered);
        let unanswered = Sample { unanswered: true, ..answered };
        let text = serde_json::to_string(&unanswered).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), unanswered);
    }

    #[test]
    fn correlations_of_peaks() {
        let t = true;
        let f = false;
        assert_eq!(pearson(&[t, f, t, f], &[t, f, t, f]), Some(1.0));
        assert_eq!(kulczynski(&[t, f, t, f], &[t, f, t, f]), Some(1.0));
        assert_eq!(pearson(&[t, f, t, f], &[f, t, f, t]), Some(-1.0));
        assert_eq!(kulczynski(&[t, t, f, f], &[t, f, f, f]), Some(0.75));
        assert_eq!((pearson(&[t, t], &[t, f]), kulczynski(&[f, f], &[t, f])), (None, None));
    }

    #[test]
    fn a_busy_cpu_is_seen() {
        if let Some(first) = counted(&[0]) {
            assert!(first.busy > 0);
            assert_eq!(counted(&[100_000]), None);
            assert_eq!(counted(&[]), None);
            assert!(counted(&[0, 100_000]).is_some_and(|again| again.stolen >= first.stolen));
        }
    }

    #[test]
    fn stolen_time_is_a_cause_or_a_share() {
        let quiet = Context { server_run_us: 10.0, server_known: true, ..Context::default() };
        let stolen = Context { stolen_us: 10_000.0, ..quiet };
        let mut samples = vec![sample(100.0, quiet); 20];
        samples.push(sample(4_100.0, stolen));
        samples.extend([sample(4_100.0, quiet), sample(4_100.0, quiet)]);
        // Far longer than two ticks, so it has another cause.
        samples.push(sample(60_100.0, stolen));
        let slow = explain(&samples, 5.0);
        let causes: Vec<Cause> = slow.iter().map(|slow| slow.cause).collect();
        assert_eq!(causes, [Cause::Hypervisor, Cause::NotProven, Cause::NotProven, Cause::NotProven]);
        let share = stolen_share(&samples, &slow).unwrap();
        assert!((share - 20_000.0 / 72_000.0).abs() < 1e-9, "{share}");
        assert_eq!(stolen_share(&samples, &[]), None);
    }
}
