//! Simulates a load of the laboratory as it was measured.

use crate::measurement::Measurement;
use crate::scenario::{Condition, CpuCondition, Kind};
use crate::simulate::convert::{Unsimulated, of_condition, place};
use core::time::Duration;
use taktwerk_load::result::Figure;
use taktwerk_model::HostProfile;
use taktwerk_sim::scenario::{Progress, RunError, Scenario, run};

/// Virtual time before the window, in publishing intervals, until the phases of subscriptions are distributed.
const WARMUP_INTERVALS: f64 = 20.0;
/// Length of the window in publishing intervals, and its minimum in seconds.
const COUNTED_INTERVALS: f64 = 40.0;
const COUNTED_MIN_S: f64 = 4.0;
/// Virtual time of requests that only determine the cost of one answer.
const SHORT: Duration = Duration::from_millis(200);
/// The same for subscriptions, in publishing intervals.
const SHORT_INTERVALS: u32 = 12;

/// Prediction of the simulator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// Mean of the round trips or delays, in milliseconds.
    pub mean_ms: f64,
    /// Their 99th percentile.
    pub p99_ms: f64,
    /// CPU of the server's threads that serve connections, in percent of a core.
    pub server_cpu_percent: f64,
    /// CPU of the load, in percent of a core.
    pub client_cpu_percent: f64,
    /// Answers or messages per second.
    pub answers_per_s: f64,
}

/// A load without a prediction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// The simulator does not support it.
    #[error(transparent)]
    Unsimulated(#[from] Unsimulated),
    /// The simulation failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Additional delay of an emulated link in each direction, as probed before the load. The emulator is a program that
/// must be woken for each packet. Zero without a link.
#[must_use]
pub fn lateness(measurement: &Measurement) -> Duration {
    let (seen, asked) =
        (measurement.get(Figure::LINK_ROUND_TRIPS_P50_MS), measurement.get(Figure::LINK_EXPECTED_P50_MS));
    let late_ms = seen.zip(asked).map_or(0.0, |(seen, asked)| (seen - asked).max(0.0) / 2.0);
    Duration::try_from_secs_f64(late_ms / 1e3).unwrap_or_default()
}

fn scenario(condition: &Condition, profile: &HostProfile, late: Duration) -> Result<Scenario, Unsimulated> {
    let mut scenario = of_condition(condition)?;
    for link in &mut scenario.links {
        link.profile.up.delay.base += late;
        link.profile.down.delay.base += late;
    }
    let interval = condition.publishing_ms.unwrap_or(100.0) / 1e3;
    scenario.warmup = Duration::from_secs_f64(interval * WARMUP_INTERVALS);
    scenario.measured = Duration::from_secs_f64((interval * COUNTED_INTERVALS).max(COUNTED_MIN_S));
    // Server and load have separate CPUs.
    let mut profile = profile.clone();
    profile.machine.cores = 1;
    if condition.link.is_some() {
        profile = behind_emulator(profile);
    }
    place(&mut scenario, &profile, CpuCondition::Isolated);
    Ok(scenario)
}

/// The emulator runs on the receiver's processor just before the receiver, so the processor is already awake. The
/// wake-up time is part of the link's lateness.
fn behind_emulator(profile: HostProfile) -> HostProfile {
    let mut profile = profile.behind_emulator();
    profile.scheduler.wake_asleep = None;
    profile
}

/// Simulates a load. `report` is called regularly and returns whether to continue.
///
/// # Errors
/// The simulator does not support the load, or the simulation fails.
pub fn predict(
    condition: &Condition,
    profile: &HostProfile,
    late: Duration,
    seed: u64,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<Predicted, PredictError> {
    simulate(&scenario(condition, profile, late)?, seed, report)
}

/// Simulates just long enough to determine the cost of one answer.
pub(crate) fn predict_shortly(
    condition: &Condition,
    profile: &HostProfile,
    late: Duration,
) -> Result<Predicted, PredictError> {
    let mut scenario = scenario(condition, profile, late)?;
    let short = match condition.kind {
        Kind::Subscribe => {
            Duration::from_secs_f64(condition.publishing_ms.unwrap_or(100.0) / 1e3) * SHORT_INTERVALS
        }
        _ => SHORT,
    };
    (scenario.warmup, scenario.measured) = (short, short);
    simulate(&scenario, 1, &mut |_| true)
}

fn simulate(
    scenario: &Scenario,
    seed: u64,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<Predicted, PredictError> {
    let outcome = run(scenario, seed, report)?;
    let times = outcome.loads.first().map(|load| load.times.clone()).unwrap_or_default();
    let cpu = |cpu: Option<f64>| cpu.unwrap_or(0.0) * 100.0;
    Ok(Predicted {
        mean_ms: times.mean() / 1e6,
        p99_ms: times.quantile(0.99) as f64 / 1e6,
        server_cpu_percent: cpu(outcome.servers.first().and_then(|host| host.cpu)),
        client_cpu_percent: cpu(outcome.clients.first().and_then(|host| host.cpu)),
        answers_per_s: times.count() as f64 / outcome.measured.max(f64::MIN_POSITIVE),
    })
}

/// Name of the measured histogram to compare with.
pub(crate) fn histogram(kind: Kind) -> &'static str {
    if kind == Kind::Subscribe { "delivery" } else { "latency" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::{Extent, conditions};

    #[test]
    fn a_slow_link_and_slow_processors_are_seen() {
        let (all, _) =
            conditions(&[Some("ppp-2m".to_owned()), None], Extent { window_s: 1.0, repetitions: 1 });
        let find = |kind: Kind, link: Option<&str>| {
            let found = all.iter().find(|one| {
                one.kind == kind
                    && one.link.as_deref() == link
                    && (one.batch == Some(30) || one.items == Some(100))
            });
            found.unwrap().clone()
        };
        let mut profile = HostProfile::free(2);
        let predicted = |kind, link, late| {
            let late = Duration::from_millis(late);
            predict(&find(kind, link), &profile.clone(), late, 1, &mut |_| true).unwrap()
        };
        let slow = predicted(Kind::Read, Some("ppp-2m"), 0);
        // About 600 bytes one way and 900 bytes back at 2 Mbit/s.
        assert!((4.0..9.0).contains(&slow.mean_ms), "{slow:?}");
        let late = predicted(Kind::Read, Some("ppp-2m"), 10);
        assert!((late.mean_ms - slow.mean_ms - 20.0).abs() < 1.0, "{late:?}");
        let values = predicted(Kind::Subscribe, Some("ppp-2m"), 0);
        assert!(values.mean_ms > 10.0 && values.server_cpu_percent == 0.0, "{values:?}");
        profile.server.insert("requests".into(), 1e6);
        let loopback = predict(&find(Kind::Read, None), &profile, Duration::ZERO, 1, &mut |_| true).unwrap();
        // A millisecond of work, then five milliseconds of pause.
        assert!((1.0..1.2).contains(&loopback.mean_ms), "{loopback:?}");
        assert!((14.0..18.0).contains(&loopback.server_cpu_percent), "{loopback:?}");
    }

    #[test]
    fn the_lateness_of_a_link_is_simulated() {
        let condition = conditions(&[None], Extent { window_s: 1.0, repetitions: 1 }).0.remove(0);
        let of = |document| lateness(&Measurement::from_document("truth", condition.clone(), 0, document));
        let probed = serde_json::json!({
            "link": {"round_trips": {"p50_ms": 20.5}, "expected": {"p50_ms": 20.1}}
        });
        assert_eq!(of(probed).as_micros(), 200);
        assert_eq!(of(serde_json::json!({})), Duration::ZERO);
    }
}
