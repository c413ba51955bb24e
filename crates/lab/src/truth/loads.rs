//! The loads for testing the simulator.

use crate::scenario::{Condition, Kind, LoadSpec, Scenario, SecuritySpec, Sweep};
use taktwerk_netem::Profile;

/// The links, from 2 Mbit/s to this machine's loopback interface, which has no name.
pub const LINKS: [Option<&str>; 5] =
    [Some("ppp-2m"), Some("ppp-10m"), Some("wifi-802.11g"), Some("ethernet-100m"), None];
/// Nodes in a request.
const BATCHES: [u32; 3] = [1, 30, 1_000];
/// Monitored items.
const ITEMS: [u32; 4] = [10, 100, 1_000, 10_000];
/// Publishing intervals in milliseconds. A load gets the shortest at which it uses at most half of its link.
const INTERVALS: [f64; 4] = [100.0, 250.0, 500.0, 1_000.0];
/// Bytes of a value in a notification, including its share of the headers.
const VALUE: f64 = 34.0;
/// Below this rate, windows are longer, because the same number of answers takes more time.
const SLOW: f64 = 20e6;

/// Amount of measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Seconds per measurement; doubled over slow links.
    pub window_s: f64,
    /// Repetitions.
    pub repetitions: u32,
}

/// All loads over these links, and the loads that are left out because the link is too slow.
#[must_use]
pub fn conditions(links: &[Option<String>], extent: Extent) -> (Vec<Condition>, Vec<String>) {
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for link in links {
        let rate = link.as_deref().and_then(|text| text.parse::<Profile>().ok()?.down.usable_rate());
        for security in [SecuritySpec::default(), SecuritySpec::encrypted()] {
            for batch in BATCHES {
                let mut load = LoadSpec::new(Kind::Read);
                load.batch = Some(Sweep::One(batch));
                load.pause_ms = Some(5.0);
                all.extend(with(load, link.as_ref(), &security, rate, extent));
            }
            for items in ITEMS {
                let Some(interval) = interval(items, rate) else {
                    if security.is_none() {
                        let link = link.as_deref().unwrap_or("loopback");
                        left_out
                            .push(format!("subscription of {items} items: exceeds the capacity of {link}"));
                    }
                    continue;
                };
                let mut load = LoadSpec::new(Kind::Subscribe);
                load.items = Some(Sweep::One(items));
                load.publishing_ms = Some(Sweep::One(interval));
                load.sampling_ms = Some(interval);
                load.queue = Some(1);
                all.extend(with(load, link.as_ref(), &security, rate, extent));
            }
        }
    }
    (all, left_out)
}

/// The shortest interval at which a subscription uses at most half of the link.
fn interval(items: u32, rate: Option<f64>) -> Option<f64> {
    let Some(rate) = rate else { return INTERVALS.first().copied() };
    let bits = f64::from(items) * VALUE * 8.0;
    INTERVALS.into_iter().find(|interval| bits * 1e3 / interval <= rate / 2.0)
}

fn with(
    load: LoadSpec,
    link: Option<&String>,
    security: &SecuritySpec,
    rate: Option<f64>,
    extent: Extent,
) -> Vec<Condition> {
    let mut scenario = Scenario::new("truth", load);
    scenario.server.update_ms = scenario.load.publishing_ms.as_ref().map_or(100.0, |sweep| match sweep {
        Sweep::One(interval) => *interval,
        Sweep::Many(all) => all.first().copied().unwrap_or(100.0),
    });
    scenario.link = link.cloned();
    scenario.security = security.clone();
    let time = &mut scenario.time;
    let stretch = if rate.is_some_and(|rate| rate < SLOW) { 2.0 } else { 1.0 };
    (time.warmup_s, time.duration_s) = (0.3, extent.window_s * stretch);
    (time.repetitions, time.steady) = (extent.repetitions, true);
    scenario.conditions()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_has_reads_and_subscriptions_with_and_without_encryption() {
        let links: Vec<Option<String>> = LINKS.iter().map(|link| link.map(str::to_owned)).collect();
        let (all, left_out) = conditions(&links, Extent { window_s: 0.8, repetitions: 1 });
        for link in &links {
            let of = |kind: Kind, is_none: bool| {
                let is_one = |one: &&Condition| {
                    one.link == *link && one.kind == kind && one.security.is_none() == is_none
                };
                all.iter().filter(is_one).count()
            };
            for is_none in [true, false] {
                assert_eq!(of(Kind::Read, is_none), 3, "{link:?}");
                assert!(of(Kind::Subscribe, is_none) >= 3, "{link:?}");
            }
        }
        assert_eq!(left_out, ["subscription of 10000 items: exceeds the capacity of ppp-2m"]);
        // Excluding the loads for calibration.
        let seconds = crate::scenario::seconds(&all);
        assert!(seconds < 210.0, "{seconds}");
        let slow = all.iter().find(|one| one.items == Some(1_000) && one.link.as_deref() == Some("ppp-2m"));
        assert_eq!(slow.and_then(|one| one.publishing_ms), Some(500.0));
        assert_eq!(slow.map(|one| one.server.update_ms), Some(500.0));
    }
}
