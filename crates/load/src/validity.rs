//! Reasons why a measurement is invalid. If the generator could not keep up, it measured itself; such a result is
//! *invalid*, not slow.

use crate::latency::Times;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One reason. Its message says what to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Invalid {
    /// The generator used nearly all of its CPU, so it may have been the bottleneck.
    GeneratorSaturated {
        /// Its CPU use in percent of one core.
        cpu_percent: f64,
    },
    /// Requests were sent later than scheduled.
    GeneratorLate {
        /// 99th percentile of the lateness.
        p99_us: f64,
        /// Maximum lateness.
        allowed_us: f64,
    },
    /// Half of the requests were later than the time of the next one.
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
    /// So many requests were unanswered at the end that percentiles are not meaningful, because only a lower bound of
    /// their times is known.
    Unanswered {
        /// Requests without an answer.
        unanswered: u64,
        /// Requests that were due in the window.
        due: u64,
    },
    /// Connections were lost within the window.
    ConnectionsLost {
        /// Their number.
        lost: usize,
    },
    /// Messages were lost on a transport without acknowledgements.
    MessagesLost {
        /// Their number.
        lost: u64,
    },
    /// The subscriber received no readable message from the publisher.
    NothingHeard {
        /// The address.
        url: String,
        /// Number of received datagrams that could not be read.
        datagrams: u64,
    },
    /// Messages lacked the times to be measured.
    NoTimes {
        /// Their number.
        messages: u64,
    },
    /// There are no samples.
    NoSamples,
}

/// Joins reasons to one text.
#[must_use]
pub fn in_words(reasons: &[Invalid]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneratorSaturated { cpu_percent } => write!(
                f,
                "the load generator used {cpu_percent:.0} % of its core and may have been the bottleneck: lower the \
                 load, or give it a separate core (--cpu)"
            ),
            Self::GeneratorLate { p99_us, allowed_us } => write!(
                f,
                "the load generator was late (p99 {p99_us:.0} µs, allowed {allowed_us:.0} µs): lower --rate, give it a \
                 separate core (--cpu), or stop other programs on this machine"
            ),
            Self::PaceNotKept { p50_us, interval_us } => write!(
                f,
                "the schedule was not kept: half of the requests were late by {p50_us:.0} µs or more, with one request every \
                 {interval_us:.0} µs: lower --rate, or stop other programs on this machine"
            ),
            Self::NotSent { due, sent } => write!(
                f,
                "only {sent} of {due} scheduled requests were sent: the server or the generator cannot sustain this \
                 rate; lower --rate or add clients (-c)"
            ),
            Self::Unanswered { unanswered, due } => write!(
                f,
                "{unanswered} of {due} had no answer when the measurement ended, so only a lower bound of their times \
                 is known: lower the load, or check why the server stalled"
            ),
            Self::ConnectionsLost { lost } => {
                write!(f, "{lost} connections were lost during the measurement: see the log for the reasons")
            }
            Self::MessagesLost { lost } => {
                write!(f, "{lost} messages did not arrive: use fewer stations (-c) or larger socket buffers")
            }
            Self::NothingHeard { url, datagrams: 0 } => write!(
                f,
                "nothing was received at {url}: check whether the publisher runs, and whether it sends to this address \
                 and through this interface (--interface)"
            ),
            Self::NothingHeard { url, datagrams } => write!(
                f,
                "{datagrams} datagrams were received at {url}, but none could be read: the publisher must send UADP \
                 without message security, and match --publisher-id"
            ),
            Self::NoTimes { messages } => write!(
                f,
                "{messages} messages were received, but without times: configure the publisher to send the Timestamp \
                 of messages and the SourceTimestamp of fields, and use the clock of this machine"
            ),
            Self::NoSamples => {
                write!(f, "no samples: extend the duration (-d) or lower the interval")
            }
        }
    }
}

/// CPU share in percent above which a generator counts as saturated.
pub const SATURATED_PERCENT: f64 = 95.0;

/// Checks the generator's CPU time over a window.
#[must_use]
pub fn check_cpu(cpu_ns: u64, window_ns: u64, cores: usize) -> Option<Invalid> {
    let cpu_percent = cpu_ns as f64 / (window_ns.max(1) as f64 * cores.max(1) as f64) * 100.0;
    (cpu_percent > SATURATED_PERCENT).then_some(Invalid::GeneratorSaturated { cpu_percent })
}

/// Checks the generator's lateness. Its 99th percentile may be a tenth of the interval between two sends of one client.
/// 1 ms is always allowed, because ordinary kernels do not guarantee less.
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

/// Checks the number of unanswered requests. If more than 1 % are unanswered, the 99th percentile is not meaningful.
#[must_use]
pub fn check_answers(unanswered: u64, due: u64) -> Option<Invalid> {
    (unanswered > 0 && unanswered.saturating_mul(100) >= due)
        .then_some(Invalid::Unanswered { unanswered, due })
}

/// Checks that a schedule was roughly kept: half of the requests may be late by at most an interval. For measurements
/// whose times do not count from the schedule, so that pauses of the machine do not invalidate them.
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
        // Late, but sent before the next one is due.
        assert_eq!(check_pace(&late, 10_000_000), None);
        assert!(check_pace(&late, 1_000_000).unwrap().to_string().contains("late by 50"));
        assert_eq!(check_pace(&Times::new(), 0), None);
    }

    #[test]
    fn missing_messages_say_what_to_check() {
        let nothing = |datagrams| Invalid::NothingHeard { url: "opc.udp://239.0.0.1:1".into(), datagrams };
        let (silence, noise) = (nothing(0).to_string(), nothing(7).to_string());
        assert!(silence.contains("239.0.0.1") && silence.contains("--interface"), "{silence}");
        assert!(noise.starts_with("7 datagrams") && noise.contains("--publisher-id"), "{noise}");
        assert!(Invalid::NoTimes { messages: 3 }.to_string().contains("SourceTimestamp"));
    }

    #[test]
    fn one_percent_unanswered_is_invalid() {
        assert_eq!(
            (check_answers(0, 0), check_answers(0, 1_000), check_answers(9, 1_000)),
            (None, None, None)
        );
        let said = check_answers(10, 1_000).unwrap().to_string();
        assert!(said.starts_with("10 of 1000 had no answer"), "{said}");
        assert!(check_answers(1, 0).is_some());
    }
}
