//! Why a measurement is worth nothing. A generator that could not keep up measures itself; the result is then
//! *invalid*, not slow.

use crate::latency::Times;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One reason. Each says what to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Invalid {
    /// The generator used nearly all of its CPU, so it may have been the bottleneck.
    GeneratorSaturated {
        /// Its CPU use in percent of one core.
        cpu_percent: f64,
    },
    /// Requests went out later than their schedule said.
    GeneratorLate {
        /// 99th percentile of the lateness.
        p99_us: f64,
        /// What is allowed.
        allowed_us: f64,
    },
    /// Half of the requests went out later than the next one was due.
    PaceNotKept {
        /// Median of the lateness.
        p50_us: f64,
        /// Time between two requests.
        interval_us: f64,
    },
    /// Fewer requests were sent than scheduled.
    NotSent {
        /// Requests that were due in the window.
        due: u64,
        /// Requests sent.
        sent: u64,
    },
    /// So many requests had no answer at the end that percentiles say too little: their times are known from below only.
    Unanswered {
        /// Requests without an answer.
        unanswered: u64,
        /// Requests that were due in the window.
        due: u64,
    },
    /// Connections broke during the window.
    ConnectionsLost {
        /// How many.
        lost: usize,
    },
    /// Messages that a transport without acknowledgements has lost.
    MessagesLost {
        /// How many.
        lost: u64,
    },
    /// A publisher was listened to, and nothing came that could be read.
    NothingHeard {
        /// Where.
        url: String,
        /// What came and could not be read.
        datagrams: u64,
    },
    /// Messages came without the times that are to be measured.
    NoTimes {
        /// How many.
        messages: u64,
    },
    /// Nothing was measured.
    NoSamples,
}

/// Reasons as one text.
#[must_use]
pub fn in_words(reasons: &[Invalid]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneratorSaturated { cpu_percent } => write!(
                f,
                "the load generator used {cpu_percent:.0} % of its core, so it measured itself: lower the load, or \
                 give it a core of its own (--cpu)"
            ),
            Self::GeneratorLate { p99_us, allowed_us } => write!(
                f,
                "the load generator was late (p99 {p99_us:.0} µs, allowed {allowed_us:.0} µs): lower --rate, give it \
                 a core of its own (--cpu), or stop what else runs on this machine"
            ),
            Self::PaceNotKept { p50_us, interval_us } => write!(
                f,
                "the schedule was not kept: half of the requests were late by {p50_us:.0} µs or more, one is due every \
                 {interval_us:.0} µs: lower --rate, or stop what else runs on this machine"
            ),
            Self::NotSent { due, sent } => write!(
                f,
                "only {sent} of {due} scheduled requests were sent: the server or the generator cannot keep this \
                 rate; lower --rate or add clients (-c)"
            ),
            Self::Unanswered { unanswered, due } => write!(
                f,
                "{unanswered} of {due} had no answer when the measurement ended, so that their times are known from below \
                 only: lower the load, or see why the server stood still"
            ),
            Self::ConnectionsLost { lost } => {
                write!(f, "{lost} connections were lost during the measurement: see the log for the reasons")
            }
            Self::MessagesLost { lost } => {
                write!(f, "{lost} messages did not arrive: fewer stations (-c), or larger socket buffers")
            }
            Self::NothingHeard { url, datagrams: 0 } => write!(
                f,
                "nothing came to {url}: see whether the publisher runs, and whether it sends to this address and through this \
                 interface (--interface)"
            ),
            Self::NothingHeard { url, datagrams } => write!(
                f,
                "{datagrams} datagrams came to {url}, and none was a message that could be read: it has to be UADP without \
                 message security, of the publisher that is listened to (--publisher-id)"
            ),
            Self::NoTimes { messages } => write!(
                f,
                "{messages} messages came, and none says when it was ready or when its value had changed: let the publisher send \
                 a Timestamp with them, and SourceTimestamps with their fields, by the clock of this machine"
            ),
            Self::NoSamples => {
                write!(f, "nothing was measured: extend the duration (-d) or lower the interval")
            }
        }
    }
}

/// Share of a core above which a generator counts as saturated.
pub const SATURATED_PERCENT: f64 = 95.0;

/// Checks the generator's CPU time over a window.
#[must_use]
pub fn check_cpu(cpu_ns: u64, window_ns: u64, cores: usize) -> Option<Invalid> {
    let cpu_percent = cpu_ns as f64 / (window_ns.max(1) as f64 * cores.max(1) as f64) * 100.0;
    (cpu_percent > SATURATED_PERCENT).then_some(Invalid::GeneratorSaturated { cpu_percent })
}

/// Checks the generator's lateness: its 99th percentile may be a tenth of the interval between the sends of one
/// client, and 1 ms is always allowed because no ordinary kernel promises more.
#[must_use]
pub fn check_lateness(lateness: &Times, interval_ns: u64) -> Option<Invalid> {
    if lateness.count() == 0 {
        return None;
    }
    let allowed = (interval_ns / 10).max(1_000_000);
    let late = lateness.percentile(99.0);
    (late > allowed)
        .then_some(Invalid::GeneratorLate { p99_us: late as f64 / 1e3, allowed_us: allowed as f64 / 1e3 })
}

/// Checks how many of the requests that were due had no answer: one of a hundred is as many as lie above the 99th
/// percentile, which says nothing then.
#[must_use]
pub fn check_answers(unanswered: u64, due: u64) -> Option<Invalid> {
    (unanswered > 0 && unanswered.saturating_mul(100) >= due)
        .then_some(Invalid::Unanswered { unanswered, due })
}

/// Checks that a schedule was kept on the whole: half of the requests may be late by an interval at most. For measurements
/// whose times do not count from the schedule, so that pauses of the machine do not spoil them.
#[must_use]
pub fn check_pace(lateness: &Times, interval_ns: u64) -> Option<Invalid> {
    if lateness.count() == 0 {
        return None;
    }
    let late = lateness.percentile(50.0);
    (late > interval_ns)
        .then_some(Invalid::PaceNotKept { p50_us: late as f64 / 1e3, interval_us: interval_ns as f64 / 1e3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturation_and_lateness() {
        assert_eq!(check_cpu(900, 1_000, 1), None);
        assert!(matches!(check_cpu(990, 1_000, 1), Some(Invalid::GeneratorSaturated { .. })));
        assert_eq!(check_cpu(990, 1_000, 2), None);
        let mut late = Times::new();
        assert_eq!(check_lateness(&late, 0), None);
        (0..100).for_each(|_| late.record(5_000_000));
        assert!(check_lateness(&late, 10_000_000).is_some());
        assert_eq!(check_lateness(&late, 100_000_000), None);
        // Late, but not later than the next one.
        assert_eq!(check_pace(&late, 10_000_000), None);
        assert!(check_pace(&late, 1_000_000).unwrap().to_string().contains("late by 50"));
        assert_eq!(check_pace(&Times::new(), 0), None);
    }

    #[test]
    fn what_was_not_heard_says_what_to_look_at() {
        let nothing = |datagrams| Invalid::NothingHeard { url: "opc.udp://239.0.0.1:1".into(), datagrams };
        let (silence, noise) = (nothing(0).to_string(), nothing(7).to_string());
        assert!(silence.contains("239.0.0.1") && silence.contains("--interface"), "{silence}");
        assert!(noise.starts_with("7 datagrams") && noise.contains("--publisher-id"), "{noise}");
        assert!(Invalid::NoTimes { messages: 3 }.to_string().contains("SourceTimestamp"));
    }

    #[test]
    fn one_of_a_hundred_without_an_answer_is_too_many() {
        assert_eq!(
            (check_answers(0, 0), check_answers(0, 1_000), check_answers(9, 1_000)),
            (None, None, None)
        );
        let said = check_answers(10, 1_000).unwrap().to_string();
        assert!(said.starts_with("10 of 1000 had no answer"), "{said}");
        assert!(check_answers(1, 0).is_some());
    }
}
