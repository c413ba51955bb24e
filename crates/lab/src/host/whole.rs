//! The prices of the system's part, corrected by loads that are measured as a whole.
//!
//! What two bare sockets take is not what a server takes whose programs and data do not fit into the same caches. Three loads of
//! a real server and client over loopback say by how much: one without pauses, one whose processors fall asleep between two
//! requests, one where they sleep for long. Two more over an emulated link say what is different there: a send does not wake the
//! processor of the other end, and the emulator runs right before a turn. None of them is a load of `lab truth`, nor is the link.

use crate::measurement::{Group, Measurement};
use crate::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};
use crate::truth::{Predicted, lateness, predict_shortly, shards_percent};
use core::time::Duration;
use std::collections::BTreeMap;
use taktwerk_model::HostProfile;

use super::cores::Extent;
use taktwerk_load::result::Figure;

/// Nodes of a request.
const BATCH: u32 = 3;
/// The pause after which processors have fallen asleep, in milliseconds.
const ASLEEP_MS: f64 = 4.0;
/// A link that is slower than loopback, but not so slow that it sets the pace.
const LINK: &str = "rate=50mbit,delay=300us";
/// The interval in which they sleep for long, in milliseconds.
const DEEP_MS: f64 = 150.0;
/// Values that are delivered after it.
const ITEMS: u32 = 30;
/// Rounds of corrections: each price changes what the others have to be, but not by much.
const ROUNDS: usize = 2;
/// The system's part of a turn: wrong by a factor, if at all.
const TURN: [&str; 4] = ["wake", "turn", "receive", "send"];
/// The factor.
const FACTOR: (f64, f64) = (0.25, 4.0);
/// What a cold cache costs at most, in nanoseconds.
const COLD_MAX: f64 = 1e6;

/// The loads: awake, asleep, and asleep for long; the latter two also over a link.
#[must_use]
pub fn conditions(extent: Extent) -> Vec<Condition> {
    let (window_s, repetitions) = if extent == Extent::Full { (1.5, 3) } else { (0.3, 1) };
    let read = |pause_ms| {
        let mut load = LoadSpec::new(Kind::Read);
        (load.batch, load.pause_ms) = (Some(Sweep::One(BATCH)), Some(pause_ms));
        load
    };
    let mut subscribe = LoadSpec::new(Kind::Subscribe);
    subscribe.items = Some(Sweep::One(ITEMS));
    subscribe.publishing_ms = Some(Sweep::One(DEEP_MS));
    (subscribe.sampling_ms, subscribe.queue) = (Some(DEEP_MS), Some(1));
    let of = |(load, link): (LoadSpec, Option<&str>)| {
        let mut scenario = Scenario::new("calibration", load);
        scenario.link = link.map(str::to_owned);
        scenario.server.update_ms = DEEP_MS;
        let time = &mut scenario.time;
        (time.warmup_s, time.duration_s) = (0.3, window_s);
        (time.repetitions, time.steady) = (repetitions, true);
        scenario.conditions()
    };
    let here = [read(0.0), read(ASLEEP_MS), subscribe.clone()].map(|load| (load, None));
    let over_link = [read(ASLEEP_MS), subscribe].map(|load| (load, Some(LINK)));
    here.into_iter().chain(over_link).flat_map(of).collect()
}

/// Answers of a load in a second; those of a subscription are known: one message in each interval.
fn rate(condition: &Condition, answers_per_s: f64) -> Option<f64> {
    let of_interval =
        condition.publishing_ms.filter(|_| condition.kind == Kind::Subscribe).map(|ms| 1e3 / ms);
    Some(of_interval.unwrap_or(answers_per_s)).filter(|rate| *rate > 0.0)
}

/// Processor time of server and client for one answer or message, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerAnswer {
    server: f64,
    client: f64,
}

impl PerAnswer {
    /// The least of the repetitions, as other programs only add to it; `None` if there is no valid one.
    fn measured(group: &Group<'_>) -> Option<Self> {
        let of = |percent: fn(&Measurement) -> f64| {
            let each = group.valid.iter().filter_map(|one| {
                let window_s = one.get(Figure::WINDOW_S).filter(|window_s| *window_s > 0.0)?;
                let name = crate::truth::histogram(group.condition.kind);
                let answers = one.histograms.get(name).map(crate::latency::Times::count)?;
                Some(percent(one) / 100.0 / rate(group.condition, answers as f64 / window_s)? * 1e9)
            });
            each.min_by(f64::total_cmp)
        };
        Some(Self {
            server: of(shards_percent)?,
            client: of(|one| one.get(Figure::GENERATOR_CPU_PERCENT).unwrap_or(0.0))?,
        })
    }

    fn predicted(condition: &Condition, predicted: &Predicted) -> Option<Self> {
        let rate = rate(condition, predicted.answers_per_s)?;
        let per_answer = |percent: f64| percent / 100.0 / rate * 1e9;
        Some(Self {
            server: per_answer(predicted.server_cpu_percent),
            client: per_answer(predicted.client_cpu_percent),
        })
    }
}

/// What a load has told: what an answer takes, and by how much its link was late.
#[derive(Clone, Copy)]
struct Told<'a> {
    condition: &'a Condition,
    measured: PerAnswer,
    late: Duration,
}

impl<'a> Told<'a> {
    fn of(group: &Group<'a>) -> Option<Self> {
        let late = group.valid.first().map(|one| lateness(one)).unwrap_or_default();
        Some(Self { condition: group.condition, measured: PerAnswer::measured(group)?, late })
    }
}

/// The prices of a profile that a load corrects.
type Prices = fn(&mut HostProfile) -> [&mut BTreeMap<String, f64>; 2];

fn of_loopback(profile: &mut HostProfile) -> [&mut BTreeMap<String, f64>; 2] {
    [&mut profile.server, &mut profile.client]
}

fn behind_emulator(profile: &mut HostProfile) -> [&mut BTreeMap<String, f64>; 2] {
    [&mut profile.emulated.server, &mut profile.emulated.client]
}

/// Changes the system's part of a turn by a factor.
fn scale_turn(costs: &mut BTreeMap<String, f64>, factor: f64) {
    TURN.iter().for_each(|name| {
        costs.entry((*name).to_owned()).and_modify(|cost| *cost *= factor);
    });
}

/// Corrects a profile by what the loads of [`conditions`] took, in their order. A load without a valid measurement corrects
/// nothing. Says how many did.
pub(super) fn correct(profile: &mut HostProfile, groups: &[Group<'_>]) -> usize {
    let told: Vec<Option<Told<'_>>> = groups.iter().map(Told::of).collect();
    let at = |number: usize| told.get(number).copied().flatten();
    for _ in 0..ROUNDS {
        if let Some(told) = at(0) {
            search(profile, told, of_loopback, (0.5, 1.0), FACTOR, &|_| 0.0, &scale_turn);
        }
        for (told, name, least) in [(at(1), "cold", None), (at(2), "cold_deep", Some("cold"))] {
            let Some(told) = told else { continue };
            let set = |costs: &mut BTreeMap<String, f64>, cost: f64| {
                costs.insert(name.to_owned(), cost);
            };
            let least = move |costs: &BTreeMap<String, f64>| {
                least.and_then(|name| costs.get(name).copied()).unwrap_or(0.0)
            };
            search(profile, told, of_loopback, (0.0, 30_000.0), (0.0, COLD_MAX), &least, &set);
        }
    }
    correct_emulated(profile, at(3), at(4));
    for costs in
        [&mut profile.server, &mut profile.client, &mut profile.emulated.server, &mut profile.emulated.client]
    {
        costs.values_mut().for_each(|cost| *cost = super::rounded(*cost));
    }
    for costs in [&mut profile.server, &mut profile.client] {
        costs.retain(|_, cost| *cost > 0.0);
    }
    told.iter().flatten().count()
}

/// The prices behind the emulator begin as those of loopback.
fn correct_emulated(profile: &mut HostProfile, asleep: Option<Told<'_>>, deep: Option<Told<'_>>) {
    let mut copy = |names: &[&str]| {
        let HostProfile { server, client, emulated, .. } = &mut *profile;
        for (from, to) in [(&*server, &mut emulated.server), (&*client, &mut emulated.client)] {
            let of = |name: &&str| Some(((*name).to_owned(), *from.get(*name)?));
            to.extend(names.iter().filter_map(of));
        }
    };
    if asleep.is_some() {
        copy(&TURN);
    }
    if deep.is_some() {
        copy(&["cold_deep"]);
    }
    for _ in 0..ROUNDS {
        if let Some(told) = asleep {
            search(profile, told, behind_emulator, (0.5, 1.0), FACTOR, &|_| 0.0, &scale_turn);
        }
        if let Some(told) = deep {
            let set = |costs: &mut BTreeMap<String, f64>, cost: f64| {
                costs.insert("cold_deep".to_owned(), cost);
            };
            search(profile, told, behind_emulator, (0.0, 30_000.0), (0.0, COLD_MAX), &|_| 0.0, &set);
        }
    }
}

/// Finds the value of one price of the server, and of the same one of the client, with which the simulated load takes what was
/// measured: time grows in proportion, so two simulations tell.
fn search(
    profile: &mut HostProfile,
    told: Told<'_>,
    prices: Prices,
    (low, high): (f64, f64),
    (least, most): (f64, f64),
    above: &dyn Fn(&BTreeMap<String, f64>) -> f64,
    set: &dyn Fn(&mut BTreeMap<String, f64>, f64),
) {
    let Told { condition, measured, late } = told;
    let [server_above, client_above] = prices(profile).map(|costs| above(costs));
    let simulated = |value: f64| {
        let mut changed = profile.clone();
        let [server, client] = prices(&mut changed);
        set(server, server_above + value);
        set(client, client_above + value);
        PerAnswer::predicted(condition, &predict_shortly(condition, &changed, late).ok()?)
    };
    let (Some(at_low), Some(at_high)) = (simulated(low), simulated(high)) else { return };
    let value = |at_low: f64, at_high: f64, measured: f64| {
        let slope = (at_high - at_low) / (high - low);
        (slope > 0.0).then(|| (low + (measured - at_low) / slope).clamp(least, most))
    };
    if let Some(value) = value(at_low.server, at_high.server, measured.server) {
        set(prices(profile)[0], server_above + value);
    }
    if let Some(value) = value(at_low.client, at_high.client, measured.client) {
        set(prices(profile)[1], client_above + value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::group;

    /// A profile with round prices.
    fn truth() -> HostProfile {
        let mut profile = HostProfile::free(2);
        for costs in [&mut profile.server, &mut profile.client] {
            let all = [("wake", 6e3), ("turn", 1e3), ("receive", 3e3), ("send", 10e3), ("requests", 2e3)];
            costs.extend(all.map(|(name, cost)| (name.to_owned(), cost)));
            costs.retain(|name, _| name != "requests");
            costs.extend([("cold".to_owned(), 9e3), ("cold_deep".to_owned(), 70e3)]);
        }
        profile.scheduler.deep = 1e8;
        for costs in [&mut profile.emulated.server, &mut profile.emulated.client] {
            let all = [("wake", 3e3), ("turn", 5e2), ("receive", 1.5e3), ("send", 5e3), ("cold_deep", 40e3)];
            costs.extend(all.map(|(name, cost)| (name.to_owned(), cost)));
        }
        profile
    }

    /// What a machine with these prices would have measured.
    fn measurements(profile: &HostProfile) -> Vec<Measurement> {
        let one = |condition: Condition| {
            let predicted = predict_shortly(&condition, profile, Duration::ZERO).unwrap();
            let mut times = crate::latency::Times::new();
            // The histogram of deliveries has one sample per message on one side, one per value on the other.
            let answers = (predicted.answers_per_s * 10.0).round() as u64
                / if condition.kind == Kind::Subscribe { 7 } else { 1 };
            (0..answers).for_each(|_| times.record(50_000));
            let mut measurement = Measurement::failed("calibration", condition, 0, String::new());
            measurement.invalid.clear();
            measurement.metrics.extend([
                (Figure::WINDOW_S.name().to_owned(), 10.0),
                ("server.threads_percent.taktwerk-0".to_owned(), predicted.server_cpu_percent),
                (Figure::GENERATOR_CPU_PERCENT.name().to_owned(), predicted.client_cpu_percent),
            ]);
            let name = crate::truth::histogram(measurement.condition.kind);
            measurement.histograms.insert(name.to_owned(), times);
            measurement
        };
        conditions(Extent::Smoke).into_iter().map(one).collect()
    }

    #[test]
    fn prices_are_found_again_from_whole_loads() {
        let truth = truth();
        let measurements = measurements(&truth);
        let groups = group(&measurements);
        let mut wrong = truth.clone();
        for costs in [&mut wrong.server, &mut wrong.client] {
            TURN.iter().for_each(|name| *costs.get_mut(*name).unwrap() *= 1.7);
            costs.insert("cold".to_owned(), 40e3);
            costs.insert("cold_deep".to_owned(), 41e3);
        }
        wrong.emulated = Default::default();
        assert_eq!(correct(&mut wrong, &groups), 5);
        let near = |found: &BTreeMap<String, f64>, truth: &BTreeMap<String, f64>| {
            assert_eq!(found.len(), truth.len());
            for (name, found) in found {
                let truth = truth[name];
                assert!((found / truth - 1.0).abs() < 0.15, "{name}: {found} instead of {truth}");
            }
        };
        near(&wrong.server, &truth.server);
        near(&wrong.client, &truth.client);
        near(&wrong.emulated.server, &truth.emulated.server);
        near(&wrong.emulated.client, &truth.emulated.client);
    }

    #[test]
    fn what_was_not_measured_corrects_nothing() {
        let (mut profile, truth) = (truth(), truth());
        profile.emulated = Default::default();
        let truth = HostProfile { emulated: Default::default(), ..truth };
        let failed =
            |one: Measurement| Measurement::failed("calibration", one.condition, 0, "no server".to_owned());
        let measurements: Vec<Measurement> = measurements(&truth).into_iter().map(failed).collect();
        assert_eq!(correct(&mut profile, &group(&measurements)), 0);
        assert_eq!(profile, truth);
    }
}
