//! Corrects the costs of a profile by whole loads.
//!
//! Two bare sockets cost less than a server, whose programs and data do not fit into the same caches. Loads of a real
//! server and client show the difference:
//!
//! | load | corrects |
//! | --- | --- |
//! | few values, without pauses | the system's part of a turn |
//! | few values, after pauses in which processors fall asleep | a cold cache |
//! | few values, after long pauses | a cold cache after deep sleep |
//! | many values read, or delivered | a value |
//! | few and many values read with encryption, after pauses | a signature, and a signed and encrypted byte |
//! | few values over an emulated link, without and after pauses | a turn and a cold cache behind the emulator, where a send does not wake the processor of the other end, and the emulator runs just before a turn and uses part of the caches |
//!
//! None of these loads or their link is used in `lab truth`. Two measurements of a load after pauses differ by 18 %.
//! Therefore there are as few costs as can explain the loads, and each is corrected by as many measurements as
//! possible. Deep sleep, a delivered value and a signature cost the same with and without the emulator, within the
//! error; loads of both kinds correct them.

use crate::measurement::{Group, Measurement};
use crate::scenario::{Condition, Kind, LoadSpec, Scenario, SecuritySpec, Sweep};
use crate::statistics::median;
use crate::truth::{Predicted, lateness, predict_shortly, shards_percent};
use core::time::Duration;
use std::collections::BTreeMap;
use taktwerk_model::HostProfile;

use super::cores::Extent;
use taktwerk_load::result::Figure;

/// Nodes per request, and per request with many nodes.
const BATCH: u32 = 3;
const LARGE_BATCH: u32 = 600;
/// The pause after which processors have fallen asleep, in milliseconds.
const ASLEEP_MS: f64 = 4.0;
/// A link slower than loopback, but not the bottleneck.
const LINK: &str = "rate=50mbit,delay=300us";
/// The interval with deep sleep, in milliseconds; the one that profiles define for deep sleep.
const DEEP_MS: f64 = 100.0;
/// Number of delivered values.
const ITEMS: u32 = 30;
const MANY_ITEMS: u32 = 4_000;
/// Rounds of corrections; each correction changes the others slightly.
const ROUNDS: usize = 3;
/// The system's part of a turn; its costs are scaled by one factor.
const TURN: [&str; 4] = ["wake", "turn", "receive", "send"];
/// Costs that grow with the values of a read.
const READING: [&str; 4] = ["operations", "units", "bytes_received", "bytes_sent"];
/// Costs that grow with the delivered values.
const DELIVERING: [&str; 3] = ["items_walked", "writes_queued", "notifications"];
/// Costs that grow with the signed and encrypted bytes.
const SEALING: [&str; 2] = ["sealed_bytes_received", "sealed_bytes_sent"];
/// Range of the factor.
const FACTOR: (f64, f64) = (0.25, 4.0);
/// Maximum cost of a cold cache, in nanoseconds.
const COLD_MAX: f64 = 1e6;

/// The costs of server and client that a load corrects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Correction {
    /// Scales these costs by one factor.
    Factor(&'static [&'static str]),
    /// Sets one cost, which is not below the other one.
    Above(&'static str, Option<&'static str>),
}

/// A load and the costs that it corrects.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Teller {
    kind: Kind,
    /// Nodes per request, or monitored items.
    values: u32,
    pause_ms: f64,
    encrypted: bool,
    place: Place,
    correction: Correction,
}

/// The kind of link for which a load is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Loopback,
    /// Behind the emulator, which has separate costs.
    Emulated,
    /// Both kinds, with a single cost.
    Both,
}

impl Place {
    /// The links of its loads.
    const fn links(self) -> &'static [Option<&'static str>] {
        match self {
            Self::Loopback => &[None],
            Self::Emulated => &[Some(LINK)],
            Self::Both => &[None, Some(LINK)],
        }
    }
}

impl Teller {
    const fn read(values: u32, pause_ms: f64, correction: Correction) -> Self {
        Self { kind: Kind::Read, values, pause_ms, encrypted: false, place: Place::Loopback, correction }
    }

    const fn subscribe(values: u32, correction: Correction) -> Self {
        Self {
            kind: Kind::Subscribe,
            values,
            pause_ms: 0.0,
            encrypted: false,
            place: Place::Loopback,
            correction,
        }
    }

    const fn encrypted(self) -> Self {
        Self { encrypted: true, ..self }
    }

    const fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }
}

/// In the order of correction.
const TELLERS: [Teller; 9] = [
    Teller::read(BATCH, 0.0, Correction::Factor(&TURN)),
    Teller::read(BATCH, 0.0, Correction::Factor(&TURN)).at(Place::Emulated),
    Teller::read(BATCH, ASLEEP_MS, Correction::Above("cold", None)),
    Teller::read(BATCH, ASLEEP_MS, Correction::Above("cold", None)).at(Place::Emulated),
    Teller::subscribe(ITEMS, Correction::Above("cold_deep", Some("cold"))).at(Place::Both),
    Teller::read(LARGE_BATCH, ASLEEP_MS, Correction::Factor(&READING)),
    Teller::subscribe(MANY_ITEMS, Correction::Factor(&DELIVERING)).at(Place::Both),
    Teller::read(BATCH, ASLEEP_MS, Correction::Above("signatures", None)).encrypted().at(Place::Both),
    Teller::read(LARGE_BATCH, ASLEEP_MS, Correction::Factor(&SEALING)).encrypted(),
];

/// Each correction with the links of its loads.
fn loads() -> impl Iterator<Item = (Teller, Option<&'static str>)> {
    TELLERS.into_iter().flat_map(|teller| teller.place.links().iter().map(move |link| (teller, *link)))
}

/// The loads, in the order of their corrections.
#[must_use]
pub fn conditions(extent: Extent) -> Vec<Condition> {
    let (window_s, repetitions) = if extent == Extent::Full { (1.0, 15) } else { (0.3, 1) };
    let of = |(teller, link): (Teller, Option<&str>)| {
        let mut load = LoadSpec::new(teller.kind);
        if teller.kind == Kind::Subscribe {
            load.items = Some(Sweep::One(teller.values));
            load.publishing_ms = Some(Sweep::One(DEEP_MS));
            (load.sampling_ms, load.queue) = (Some(DEEP_MS), Some(1));
        } else {
            (load.batch, load.pause_ms) = (Some(Sweep::One(teller.values)), Some(teller.pause_ms));
        }
        let mut scenario = Scenario::new("calibration", load);
        scenario.link = link.map(str::to_owned);
        scenario.security =
            if teller.encrypted { SecuritySpec::encrypted() } else { SecuritySpec::default() };
        scenario.server.update_ms = DEEP_MS;
        let time = &mut scenario.time;
        (time.warmup_s, time.duration_s) = (0.3, window_s);
        (time.repetitions, time.steady) = (repetitions, true);
        scenario.conditions()
    };
    loads().flat_map(of).collect()
}

/// Answers per second of a load. For a subscription this is fixed: one message per interval.
fn rate(condition: &Condition, answers_per_s: f64) -> Option<f64> {
    let of_interval =
        condition.publishing_ms.filter(|_| condition.kind == Kind::Subscribe).map(|ms| 1e3 / ms);
    Some(of_interval.unwrap_or(answers_per_s)).filter(|rate| *rate > 0.0)
}

/// Processor time of server and client per answer or message, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerAnswer {
    server: f64,
    client: f64,
}

impl PerAnswer {
    /// Median of the repetitions, as in `lab truth`; `None` without a valid one.
    fn measured(group: &Group<'_>) -> Option<Self> {
        let of = |percent: fn(&Measurement) -> f64| {
            let each: Vec<f64> = group
                .valid
                .iter()
                .filter_map(|one| {
                    let window_s = one.get(Figure::WINDOW_S).filter(|window_s| *window_s > 0.0)?;
                    let name = crate::truth::histogram(group.condition.kind);
                    let answers = one.histograms.get(name).map(crate::latency::Times::count)?;
                    Some(percent(one) / 100.0 / rate(group.condition, answers as f64 / window_s)? * 1e9)
                })
                .collect();
            median(&each)
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

/// Results of a load: the time per answer, and the lateness of its link.
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

/// Costs of a server and of its client.
type Prices<'a> = [&'a mut BTreeMap<String, f64>; 2];

/// The costs of a profile that loads correct.
fn prices(profile: &mut HostProfile, place: Place) -> Prices<'_> {
    let HostProfile { server, client, emulated, .. } = profile;
    match place {
        Place::Loopback | Place::Both => [server, client],
        Place::Emulated => [&mut emulated.server, &mut emulated.client],
    }
}

/// Scales costs by a factor.
fn scale(costs: &mut BTreeMap<String, f64>, names: &[&str], factor: f64) {
    names.iter().filter_map(|name| costs.get_mut(*name).map(|cost| *cost *= factor)).for_each(drop);
}

/// Corrects the costs of a profile by the measurements of the loads of [`conditions`], in their order. Loads without a
/// valid measurement are skipped. Returns the number of corrections.
pub fn correct(profile: &mut HostProfile, groups: &[Group<'_>]) -> usize {
    let mut groups = groups.iter();
    let told: Vec<(Teller, Vec<Told<'_>>)> = TELLERS
        .into_iter()
        .map(|teller| {
            let own = groups.by_ref().take(teller.place.links().len());
            (teller, own.filter_map(Told::of).collect())
        })
        .filter(|(_, told): &(_, Vec<_>)| !told.is_empty())
        .collect();
    let is_emulated = |teller: &Teller| teller.place == Place::Emulated;
    begin_emulated(
        profile,
        told.iter().filter(|(teller, _)| is_emulated(teller)).map(|(one, _)| one.correction),
    );
    for _ in 0..ROUNDS {
        told.iter().for_each(|(teller, told)| correct_by(profile, *teller, told));
    }
    for costs in
        [&mut profile.server, &mut profile.client, &mut profile.emulated.server, &mut profile.emulated.client]
    {
        costs.values_mut().for_each(|cost| *cost = super::rounded(*cost));
    }
    for costs in [&mut profile.server, &mut profile.client] {
        costs.retain(|_, cost| *cost > 0.0);
    }
    told.iter().map(|(_, told)| told.len()).sum()
}

/// Relative error of the profile for the server's CPU under each load, after the corrections.
#[must_use]
pub fn misses(profile: &HostProfile, groups: &[Group<'_>]) -> Vec<(String, f64)> {
    let missed = |group: &Group<'_>| {
        let Told { condition, measured, late } = Told::of(group)?;
        let simulated = PerAnswer::predicted(condition, &predict_shortly(condition, profile, late).ok()?)?;
        Some((condition.label(), simulated.server / measured.server - 1.0))
    };
    groups.iter().filter_map(missed).collect()
}

/// The initial costs behind the emulator are those of loopback.
fn begin_emulated(profile: &mut HostProfile, corrections: impl Iterator<Item = Correction>) {
    let HostProfile { server, client, emulated, .. } = profile;
    for correction in corrections {
        let single;
        let names = match correction {
            Correction::Factor(names) => names,
            Correction::Above(name, _) => {
                single = [name];
                &single[..]
            }
        };
        for (from, to) in [(&*server, &mut emulated.server), (&*client, &mut emulated.client)] {
            to.extend(names.iter().filter_map(|name| Some(((*name).to_owned(), *from.get(*name)?))));
        }
    }
}

fn correct_by(profile: &mut HostProfile, Teller { place, correction, .. }: Teller, told: &[Told<'_>]) {
    match correction {
        Correction::Factor(names) => {
            let set = |costs: &mut BTreeMap<String, f64>, factor: f64| scale(costs, names, factor);
            search(profile, told, place, (0.5, 1.0), FACTOR, &|_| 0.0, &set);
        }
        Correction::Above(name, least) => {
            let set = |costs: &mut BTreeMap<String, f64>, cost: f64| {
                costs.insert(name.to_owned(), cost);
            };
            let least = |costs: &BTreeMap<String, f64>| {
                least.and_then(|name| costs.get(name).copied()).unwrap_or(0.0)
            };
            search(profile, told, place, (0.0, 30_000.0), (0.0, COLD_MAX), &least, &set);
        }
    }
}

/// Finds the value of one cost, for server and client, with which the simulated loads match the measurements on
/// average. Time grows linearly with a cost, so two simulations suffice.
fn search(
    profile: &mut HostProfile,
    told: &[Told<'_>],
    place: Place,
    (low, high): (f64, f64),
    (least, most): (f64, f64),
    above: &dyn Fn(&BTreeMap<String, f64>) -> f64,
    set: &dyn Fn(&mut BTreeMap<String, f64>, f64),
) {
    // A cost for both kinds of link must not be below the reference of either kind.
    let places: &[Place] = if place == Place::Both {
        &[Place::Loopback, Place::Emulated]
    } else {
        core::slice::from_ref(&place)
    };
    let (mut server_above, mut client_above) = (0.0f64, 0.0f64);
    for one in places {
        let [server, client] = prices(profile, *one);
        server_above = server_above.max(above(server));
        client_above = client_above.max(above(client));
    }
    // Ratio of simulated to measured time, averaged over the loads.
    let simulated = |value: f64| {
        let mut changed = profile.clone();
        let [server, client] = prices(&mut changed, place);
        set(server, server_above + value);
        set(client, client_above + value);
        let mut mean = PerAnswer { server: 0.0, client: 0.0 };
        for Told { condition, measured, late } in told {
            let predicted = predict_shortly(condition, &changed, *late).ok()?;
            let PerAnswer { server, client } = PerAnswer::predicted(condition, &predicted)?;
            mean.server += server / measured.server / told.len() as f64;
            mean.client += client / measured.client / told.len() as f64;
        }
        Some(mean)
    };
    let (Some(at_low), Some(at_high)) = (simulated(low), simulated(high)) else { return };
    tracing::debug!("simulated by measured with {low}: {at_low:?}, with {high}: {at_high:?}");
    let value = |at_low: f64, at_high: f64| {
        let slope = (at_high - at_low) / (high - low);
        (slope > 0.0 && slope.is_finite()).then(|| (low + (1.0 - at_low) / slope).clamp(least, most))
    };
    if let Some(value) = value(at_low.server, at_high.server) {
        set(prices(profile, place)[0], server_above + value);
    }
    if let Some(value) = value(at_low.client, at_high.client) {
        set(prices(profile, place)[1], client_above + value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::group;

    /// A profile with round costs.
    fn truth() -> HostProfile {
        let mut profile = HostProfile::free(2);
        for costs in [&mut profile.server, &mut profile.client] {
            let all = [
                ("wake", 6e3),
                ("turn", 1e3),
                ("receive", 3e3),
                ("send", 10e3),
                ("bytes_received", 1.2),
                ("notifications", 25.0),
                ("signatures", 4e3),
                ("sealed_bytes_sent", 0.8),
                ("cold", 9e3),
                ("cold_deep", 70e3),
            ];
            costs.extend(all.map(|(name, cost)| (name.to_owned(), cost)));
        }
        profile.scheduler.deep = 1e8;
        for costs in [&mut profile.emulated.server, &mut profile.emulated.client] {
            let all = [("wake", 3e3), ("turn", 5e2), ("receive", 1.5e3), ("send", 5e3), ("cold", 6e3)];
            costs.extend(all.map(|(name, cost)| (name.to_owned(), cost)));
        }
        profile
    }

    /// The measurements of a machine with these costs.
    fn measurements(profile: &HostProfile) -> Vec<Measurement> {
        let one = |condition: Condition| {
            let predicted = predict_shortly(&condition, profile, Duration::ZERO).unwrap();
            let mut times = crate::latency::Times::new();
            // The delivery histogram has one sample per message on one side and one per value on the other.
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
    fn costs_are_recovered_from_whole_loads() {
        let truth = truth();
        let measurements = measurements(&truth);
        let groups = group(&measurements);
        let mut wrong = truth.clone();
        for costs in [&mut wrong.server, &mut wrong.client] {
            scale(costs, &TURN, 1.7);
            scale(costs, &READING, 1.8);
            scale(costs, &DELIVERING, 0.6);
            scale(costs, &SEALING, 2.2);
            costs.extend(
                [("signatures", 90.0), ("cold", 40e3), ("cold_deep", 41e3)]
                    .map(|(name, cost)| (name.to_owned(), cost)),
            );
        }
        wrong.emulated = Default::default();
        assert_eq!(correct(&mut wrong, &groups), loads().count());
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
        let misses = misses(&wrong, &groups);
        assert_eq!(misses.len(), groups.len());
        assert!(misses.iter().all(|(_, missed)| missed.abs() < 0.05), "{misses:?}");
    }

    #[test]
    fn missing_measurements_correct_nothing() {
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
