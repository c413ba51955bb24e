//! The C-GW paper: round-trip delay over access networks, why some answers are late, and what uses the gateway's CPU.

use super::{
    Experiment, Plan, Wish, conditions, is_less, is_under, network_name, percentile, published, scaled,
    stack_name, stacks, time, times_as, times_grid, valid_groups,
};
use crate::chart::{Axis, Chart, Mark, Point, Series};
use crate::figures;
use crate::latency::Times;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Finding, Grid, Outcome, maybe};
use crate::outliers::{Cause, Sample, Slow, explain, fastest, kulczynski, pearson, stolen_share};
use crate::scenario::{CpuCondition, Kind, LoadSpec, Scenario, Sweep};
use crate::statistics::{Repeated, mean, quantile, share_ci95, within};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) static ALL: [&dyn Experiment; 3] = [&RoundTrip, &Outliers, &Profile];

struct RoundTrip;
struct Outliers;
struct Profile;

/// An answer is slow from so many times the fastest on.
const SLOW: f64 = 5.0;
/// A network on which TCP has to send again what got lost.
const LOSSY: &str = "ethernet-100m,loss=3%";
/// Networks over which the CPU of the processes is profiled.
const PROFILED: [&str; 2] = ["ethernet-100m", "ethernet-100m+vpn"];
/// What the paper counts as the payload of one node: 128 bit.
const NODE_BITS: f64 = 128.0;
/// Its environments with the link that stands for each here.
const LINKS: [(&str, &str); 5] = [
    ("Ethernet", "ethernet-100m"),
    ("WiFi-AP", "wifi-802.11g"),
    ("Ethernet-VPN", "ethernet-100m+vpn"),
    ("WiFi-VPN", "wifi-802.11g+vpn"),
    ("3G-VPN", "3g+vpn"),
];

fn rtd(quick: bool, link: Option<&str>, is_slow: bool) -> Vec<Scenario> {
    let count = match (quick, is_slow) {
        (true, true) => 10,
        (true, false) => 300,
        (false, _) => 1_000,
    };
    let make = |batch: Sweep<u32>, pause_ms: Option<f64>, count: u64| {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(batch);
        load.pause_ms = pause_ms;
        load.count = Some(count);
        let mut scenario = Scenario::new("cgw-rtd", load);
        scenario.link = link.map(str::to_owned);
        scenario.server.signals = 30;
        scenario.server.update_ms = 10.0;
        scenario.time = time(0.2, 1.0, if quick { 1 } else { 5 });
        scenario
    };
    // The short form leaves scenario B out over links.
    let batches = if quick && link.is_some() { vec![1, 30] } else { vec![1, 10, 30] };
    let mut scenarios = vec![make(Sweep::Many(batches), None, count)];
    if quick {
        // Five seconds between 1 000 requests take 83 minutes. The short form pauses for 50 ms, which is enough for a CPU to sleep.
        if !is_slow {
            scenarios.push(make(30.into(), Some(50.0), 30));
        }
    } else {
        scenarios.push(make(30.into(), Some(5_000.0), 1_000));
    }
    scenarios
}

fn letter(measurement: &crate::scenario::Condition) -> &'static str {
    match (measurement.batch, measurement.pause_ms) {
        (_, Some(_)) => "D",
        (Some(1), _) => "A",
        (Some(10), _) => "B",
        _ => "C",
    }
}

impl Experiment for RoundTrip {
    fn id(&self) -> &'static str {
        "cgw-rtd"
    }
    fn question(&self) -> &'static str {
        "How long does a Read take over real access networks, for 1, 10 and 30 nodes?"
    }
    fn source(&self) -> &'static str {
        "C-GW paper, Table II, Figures 5 and 6, a gateway with an 800 MHz ARM Cortex-A8"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let mut plan =
            Plan { conditions: conditions(wish, rtd(wish.quick, None, false)), skipped: Vec::new() };
        for (environment, link) in LINKS {
            match wish.place.know_link(link) {
                Ok(()) => {
                    let scenarios = rtd(wish.quick, Some(link), link.starts_with("3g"));
                    plan.conditions.extend(conditions(wish, scenarios));
                }
                Err(error) => plan.skipped.push(format!("{environment}: {error}")),
            }
        }
        plan
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut rows = Vec::new();
        let mut curves: Vec<(String, Times)> = Vec::new();
        let mut beside = Grid::new(
            "Round-trip delay in ms, each figure measured beside the paper's",
            3,
            &[
                "stack", "network", "scenario", "mean", "paper", "std", "paper", "min", "paper", "max",
                "paper",
            ],
        );
        let mut grid = Grid::new(
            "Payload throughput b·n/t with b = 128 bit, measured beside published",
            3,
            &["stack", "network", "scenario", "kbit/s", "published kbit/s"],
        );
        for group in &groups {
            let stack = stack_name(&group.condition.stack).to_owned();
            let network = group.condition.link.clone().unwrap_or_else(|| "loopback".to_owned());
            let scenario = letter(group.condition);
            let times = group.times("latency");
            let summary = times.summary();
            let mean_ms = summary.mean_us / 1e3;
            let nodes = f64::from(group.condition.batch.unwrap_or(1));
            let environment = LINKS.iter().find(|(_, link)| *link == network).map(|(name, _)| *name);
            let paper = published::cgw_rtd(environment.unwrap_or("Ethernet"), scenario);
            let who = [stack.clone(), network.clone(), scenario.to_owned()];
            let ours = [summary.mean_us, summary.std_us, summary.min_us, summary.max_us].map(|us| us / 1e3);
            let mut row = who.to_vec();
            for (at, ours) in ours.into_iter().enumerate() {
                row.push(figures::number(ours));
                row.push(maybe(paper.and_then(|paper| paper.get(at).copied())));
            }
            beside.rows.push(row);
            let throughput = [
                figures::number(NODE_BITS * nodes / mean_ms),
                maybe(paper.map(|[.., throughput]| throughput)),
            ];
            grid.row(who.into_iter().chain(throughput));
            let link = network_name(group.condition.link.as_deref());
            curves.push((format!("{stack}, {link}, {scenario}"), times.clone()));
            rows.push((vec![stack, network, scenario.to_owned()], times));
        }
        outcome.grids.push(times_grid(
            "Round-trip delay, measured",
            &["stack", "network", "scenario"],
            &rows,
            true,
        ));
        outcome.grids.push(beside);
        outcome.grids.push(grid);
        let (near, far): (Vec<_>, Vec<_>) =
            curves.iter().cloned().partition(|(name, _)| name.contains("loopback"));
        let mark = |environment: &str, scenario: &str| {
            let [mean, ..] = published::cgw_rtd(environment, scenario)?;
            Some((format!("{environment}, {scenario}"), mean * 1e6))
        };
        let marks = |pairs: &[(&str, &str)]| -> Vec<(String, f64)> {
            pairs.iter().filter_map(|(environment, scenario)| mark(environment, scenario)).collect()
        };
        let (ethernet, mobile) =
            (marks(&[("Ethernet", "A"), ("Ethernet", "C")]), marks(&[("3G-VPN", "A"), ("Ethernet", "A")]));
        let near = Chart::apart(Chart::density, "Round-trip delay on loopback", &near);
        outcome.charts.extend(near.into_iter().map(|chart| chart.with_published(&ethernet)));
        let far = Chart::apart(Chart::density, "Round-trip delay over links", &far);
        outcome.charts.extend(far.into_iter().map(|chart| chart.with_published(&mobile)));
        outcome.charts.extend(Chart::apart(Chart::distribution, "Round-trip delay, all networks", &curves));
        /// Means of scenarios C and A on Ethernet.
        const PUBLISHED: f64 = 6.7 / 3.0;
        for stack in stacks(measurements) {
            let p50 = |batch: u32| {
                let of = groups.iter().find(|group| {
                    group.condition.stack == stack
                        && group.condition.link.is_none()
                        && group.condition.batch == Some(batch)
                        && group.condition.pause_ms.is_none()
                });
                percentile(of?, "latency", 50.0)
            };
            if let (Some(one), Some(thirty)) = (p50(1), p50(30)) {
                outcome.finding(
                    "a Read of 30 nodes takes less of the time of a Read of 1 than in the paper",
                    scaled(&one, PUBLISHED).and_then(|limit| is_less(&thirty, &limit)),
                    format!(
                        "{}: {} as long (p50; published on Ethernet: {})",
                        stack_name(&stack),
                        times_as(thirty.median / one.median),
                        times_as(PUBLISHED)
                    ),
                );
            }
        }
        outcome.remark(
            "Without a link, everything is on this machine's loopback interface and stands beside the paper's Ethernet row. \
             Comparable: the growth from A to C, the cost of pauses (D), and the order of the networks. Not comparable: absolute \
             times without an emulated link.",
        );
    }
}

fn samples(measurement: &Measurement) -> Vec<Sample> {
    let list = measurement.document.get("samples").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|value| serde_json::from_value(value.clone()).ok()).collect()
}

/// The samples of a measurement and the fastest of them; `None` if there are none.
fn with_fastest(measurement: &Measurement) -> Option<(Vec<Sample>, f64)> {
    let samples = samples(measurement);
    let fastest = fastest(&samples)?;
    Some((samples, fastest))
}

impl Experiment for Outliers {
    fn id(&self) -> &'static str {
        "cgw-outliers"
    }
    fn question(&self) -> &'static str {
        "Are late answers caused by CPU load, and if not, by what?"
    }
    fn source(&self) -> &'static str {
        "C-GW paper, Table III, Figure 7: peaks of delay and load, correlated"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let make = |kind: CpuCondition, link: Option<&str>, rate: f64, count: u64| {
            let mut load = LoadSpec::new(Kind::Probe);
            load.batch = Some(30.into());
            load.rate = Some(rate.into());
            load.count = Some(count);
            let mut scenario = Scenario::new("cgw-outliers", load);
            scenario.server.signals = 30;
            scenario.server.update_ms = 10.0;
            scenario.link = link.map(str::to_owned);
            scenario.cpu.condition = kind;
            scenario.time = time(0.2, 1.0, if wish.quick { 1 } else { 5 });
            scenario
        };
        let count = if wish.quick { 400 } else { 10_000 };
        let mut scenarios = vec![
            make(CpuCondition::Loaded, None, 100.0, count),
            make(CpuCondition::Isolated, None, 100.0, count),
        ];
        let mut skipped = Vec::new();
        match wish.place.know_link(LOSSY) {
            // Each loss costs a fifth of a second, which most requests should not have to wait for.
            Ok(()) => scenarios.push(make(CpuCondition::Isolated, Some(LOSSY), 20.0, count * 3 / 10)),
            Err(error) => skipped.push(format!("lost packets: {error}")),
        }
        Plan { conditions: conditions(wish, scenarios), skipped }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let mut causes = Grid::new(
            "Slow answers (more than 5 times the fastest) by their proved cause",
            2,
            &[
                "stack",
                "CPU",
                "network",
                "samples",
                "slow",
                "run queue",
                "turn",
                "TCP",
                "timer",
                "client",
                "hypervisor",
                "not proved",
            ],
        );
        let mut table = Grid::new(
            "Correlation of delay peaks (> N times the fastest) and load peaks (CPU > K)",
            2,
            &["stack", "CPU", "N", "K %", "peaks", "Pearson", "published", "Kulczynski", "published"],
        );
        let mut worst: Vec<(String, Slow)> = Vec::new();
        for group in valid_groups(measurements) {
            // Each repetition has a fastest and a usual answer of its own; what they show is added up.
            let runs: Vec<(Vec<Sample>, f64)> =
                group.valid.iter().filter_map(|one| with_fastest(one)).collect();
            let stack = stack_name(&group.condition.stack);
            let cpu = group.condition.cpu.condition.name();
            let explained: Vec<Vec<Slow>> = runs.iter().map(|(samples, _)| explain(samples, SLOW)).collect();
            let slow: Vec<&Slow> = explained.iter().flatten().collect();
            let count = |cause: Cause| slow.iter().filter(|one| one.cause == cause).count().to_string();
            let network = group.condition.link.as_deref();
            causes.row([
                stack.to_owned(),
                cpu.to_owned(),
                network.unwrap_or("loopback").to_owned(),
                runs.iter().map(|(samples, _)| samples.len()).sum::<usize>().to_string(),
                slow.len().to_string(),
                count(Cause::ServerRunQueue),
                count(Cause::ServerTurn),
                count(Cause::Retransmission),
                count(Cause::Timer),
                count(Cause::Generator),
                count(Cause::Hypervisor),
                count(Cause::NotProven),
            ]);
            if let Some(network) = network {
                outcome.findings.extend(lost(stack, network, &runs, &slow));
                let mut slowest: Vec<Slow> = explained.into_iter().flatten().collect();
                slowest.sort_by(|a, b| b.rtt_us.total_cmp(&a.rtt_us));
                worst.extend(slowest.into_iter().take(3).map(|one| (format!("{stack}, {network}"), one)));
                continue;
            }
            for gain in [5, 10, 20] {
                for threshold in [40, 50, 60] {
                    let all = || {
                        runs.iter()
                            .flat_map(|(samples, fastest)| samples.iter().map(move |one| (one, *fastest)))
                    };
                    let late: Vec<bool> =
                        all().map(|(sample, fastest)| sample.rtt_us > f64::from(gain) * fastest).collect();
                    let loaded: Vec<bool> = all()
                        .zip(&late)
                        .map(|((sample, _), late)| {
                            // As the paper defines it: a load peak is one that comes with a delay peak.
                            *late
                                && sample.context.load_percent.is_some_and(|load| load > f64::from(threshold))
                        })
                        .collect();
                    let paper = published::cgw_correlation(gain, threshold);
                    table.row([
                        stack.to_owned(),
                        cpu.to_owned(),
                        gain.to_string(),
                        threshold.to_string(),
                        late.iter().filter(|late| **late).count().to_string(),
                        maybe(pearson(&late, &loaded)),
                        maybe(paper.map(|(pearson, _)| pearson)),
                        maybe(kulczynski(&late, &loaded)),
                        maybe(paper.map(|(_, kulczynski)| kulczynski)),
                    ]);
                }
            }
            if let Some((samples, _)) = runs.first() {
                outcome.charts.push(over_time(&format!("{stack}, CPU {cpu}"), samples));
            }
            let proved = slow.iter().filter(|one| one.cause != Cause::NotProven).count();
            if group.condition.cpu.condition == CpuCondition::Loaded && slow.len() >= 5 {
                // Stolen time is counted in ticks longer than most late answers: it is known in sum, not for each answer.
                let shares = runs
                    .iter()
                    .zip(&explained)
                    .filter_map(|((samples, _), slow)| stolen_share(samples, slow));
                let stolen = mean(&shares.collect::<Vec<f64>>()).unwrap_or(0.0);
                // Yes if the whole interval of the share is above one half, no if it is below.
                let open = share_ci95(slow.len() - proved, slow.len()).and_then(|it| within(it, 0.5));
                let (holds, said) = match open {
                    Some(false) if stolen >= 0.5 => (
                        None,
                        format!(
                            "; the hypervisor took {} % of the delay of the others, in ticks that belong to no single answer",
                            figures::number(stolen * 100.0)
                        ),
                    ),
                    other => (other, String::new()),
                };
                outcome.finding(
                    "with a competing program, most late answers have a proved cause",
                    holds,
                    format!("{stack}: {proved} of {} have a proved cause{said}", slow.len()),
                );
            }
            let mut slowest: Vec<Slow> = explained.into_iter().flatten().collect();
            slowest.sort_by(|a, b| b.rtt_us.total_cmp(&a.rtt_us));
            worst.extend(slowest.into_iter().take(5).map(|one| (format!("{stack}, {cpu}"), one)));
        }
        let late = |kind: CpuCondition, stack: &str| {
            let of = |one: &&Measurement| {
                one.is_valid()
                    && one.condition.link.is_none()
                    && one.condition.cpu.condition == kind
                    && one.condition.stack == stack
            };
            let p95 = |one: &Measurement| {
                quantile(&samples(one).iter().map(|sample| sample.rtt_us).collect::<Vec<_>>(), 0.95)
            };
            Repeated::new(measurements.iter().filter(of).filter_map(p95).collect())
        };
        for stack in stacks(measurements) {
            if let (Some(shared), Some(alone)) =
                (late(CpuCondition::Loaded, &stack), late(CpuCondition::Isolated, &stack))
            {
                outcome.finding(
                    "load on the server's CPU makes answers late (p95)",
                    is_less(&alone, &shared).filter(|_| alone.values.len().min(shared.values.len()) > 1),
                    format!(
                        "{}: p95 {} with a competing program, {} without",
                        stack_name(&stack),
                        figures::micros(shared.median),
                        figures::micros(alone.median)
                    ),
                );
            }
        }
        outcome.grids.push(causes);
        let mut proofs =
            Grid::new("The slowest answers, each with its cause and the proof", 2, &["where", "proof", "µs"]);
        for (place, slow) in worst {
            proofs.row([place, slow.proof, figures::number(slow.rtt_us)]);
        }
        outcome.grids.push(proofs);
        outcome.grids.push(table);
        outcome.remark(
            "A correlation is no cause: 'proved' means that at least half of the time beyond the usual one stands in the \
             scheduler's, TCP's, the client's timer's or the hypervisor's own account of this request, beyond what stands there of \
             a usual one (TCP tells how much it sent again, not how long that took: it is the cause where nothing else is). What \
             is not proved is a link, an interrupt, or stolen time that is shorter than the clock tick by which it is counted. \
             'turn' is a long one of the server itself, 'timer' a request that was sent late, which is added to its time. The \
             load peaks of the table follow the paper's definition, which counts a load peak only where there is a delay peak; \
             that alone makes the coefficients high.",
        );
        outcome.remark(
            "Comparable: that delay peaks come with load peaks, and the coefficients at the same N and K. Not comparable: how many \
             there are and how late, because the gateway had a Cortex-A8 and other programs. The paper names no causes.",
        );
        outcome.remark(
            "The paper's gateway was loaded by its own protocol adapters; here a program that computes in bursts of 1 to 16 ms, \
             half of the time, competes for the server's CPU ('loaded').",
        );
    }
}

/// Whether answers that are late over a network that loses packets are put down to that: those that are late by as much as it
/// takes TCP to notice a loss. Linux waits for 200 ms at least; RFC 6298 wants a second.
fn lost(stack: &str, network: &str, runs: &[(Vec<Sample>, f64)], slow: &[&Slow]) -> Option<Finding> {
    const NOTICED_US: f64 = 100_000.0;
    let again: u64 =
        runs.iter().flat_map(|(samples, _)| samples).map(|sample| sample.context.retransmitted).sum();
    let late: Vec<_> = slow.iter().filter(|one| one.excess_us >= NOTICED_US).collect();
    let named = late.iter().filter(|one| one.cause == Cause::Retransmission).count();
    if late.is_empty() {
        return None;
    }
    let (holds, said) = match again {
        0 => (
            None,
            "; TCP sent nothing again: without network namespaces, a relay emulates the link, which delays but does not lose"
                .to_owned(),
        ),
        again => (
            share_ci95(late.len() - named, late.len()).and_then(|it| within(it, 0.5)),
            format!("; {again} segments were sent again"),
        ),
    };
    Some(Finding {
        claim:
            "over a network that loses packets, answers late by 100 ms or more are caused by retransmission"
                .to_owned(),
        holds,
        evidence: format!("{stack} over {network}: {named} of {}{said}", late.len()),
    })
}

fn over_time(name: &str, samples: &[Sample]) -> Chart {
    let delay = samples.iter().map(|sample| Point::new(sample.at_s, sample.rtt_us / 1e3));
    let load = samples.iter().filter_map(|s| Some(Point::new(s.at_s, s.context.load_percent? / 100.0)));
    Chart::plane(
        &format!("Delay and CPU load over time: {name}, first repetition"),
        "Peaks of the delay that stand on load are explained by it; peaks without load have another cause. Load is drawn from 0 \
         to 1, where 1 is a busy CPU.",
        Axis::linear("time, s"),
        Axis::linear("delay, ms, and load of the server's CPU"),
        vec![
            Series { name: "load (0 to 1)".into(), mark: Mark::Line(load.collect()), colour: 5 },
            Series { name: "delay, ms".into(), mark: Mark::Line(delay.collect()), colour: 1 },
        ],
    )
}

impl Experiment for Profile {
    fn id(&self) -> &'static str {
        "cgw-profile"
    }
    fn question(&self) -> &'static str {
        "Which part of the gateway uses the CPU?"
    }
    fn source(&self) -> &'static str {
        "C-GW paper, Figures 8 and 9: server, protocol adapters and VPN from /proc"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::Many(vec![1, 10, 30]));
        // A rest and no schedule: where CPU is what is measured, a generator that is late by a millisecond spoils nothing.
        load.pause_ms = Some(2.0);
        let mut scenario = Scenario::new("cgw-profile", load);
        scenario.server.signals = 5_000;
        scenario.server.update_ms = 10.0;
        // As in the paper, the server shows its own profile; what that costs is part of it.
        scenario.server.profile = true;
        scenario.time = if wish.quick { time(0.3, 1.5, 2) } else { time(2.0, 30.0, 5) };
        let mut scenarios = vec![scenario.clone()];
        let mut skipped = Vec::new();
        // The paper's test case C over Ethernet with and without the VPN.
        for link in PROFILED {
            match wish.place.know_link(link) {
                Ok(()) => {
                    let mut over = scenario.clone();
                    over.load.batch = Some(30.into());
                    over.link = Some(link.to_owned());
                    scenarios.push(over);
                }
                Err(error) => skipped.push(error.to_string()),
            }
        }
        Plan { conditions: conditions(wish, scenarios), skipped }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        for stack in stacks(measurements) {
            let own = groups.iter().filter(|group| group.condition.stack == stack && !group.valid.is_empty());
            let own: Vec<&Group<'_>> = own.collect();
            let (near, _): (Vec<&Group<'_>>, Vec<&Group<'_>>) =
                own.iter().partition(|group| group.condition.link.is_none());
            if !near.is_empty() {
                profile(stack_name(&stack), &near, outcome);
            }
            processes(stack_name(&stack), &own, outcome);
        }
        if let Some(group) = groups.iter().find(|group| group.condition.stack == "own") {
            let threads = threads(&[group]);
            if let Some(adapter) = threads.iter().find(|thread| thread.as_str() == "signals") {
                let total: f64 = threads.iter().map(|thread| used(group, thread)).sum();
                outcome.finding(
                    "the profile accounts for at least 90 % of the server's CPU",
                    Repeated::new(group.valid.iter().filter_map(|one| unexplained(one)).collect())
                        .and_then(|share| is_under(&share, 0.1)),
                    format!(
                        "threads add up to {} %, the process to {} %; setting 5 000 values every 10 ms takes {} %",
                        figures::number(total),
                        maybe(group.mean("server.cpu_percent")),
                        figures::number(used(group, adapter))
                    ),
                );
            }
        }
        outcome.remark(
            "As in the paper, our server shows these figures as variables of its own (taktwerk serve --profile, folder \
             Process); what stands here is read from /proc by the laboratory, which works for every stack. Stacks with one \
             thread for everything show as one part.",
        );
        outcome.remark(
            "Comparable: how the server's part grows with the nodes per Read (in the paper it is nearly the whole load). Not \
             comparable: percent, of another processor; the adapter, which speaks field protocols in the paper and makes 5 000 \
             values up here; its VPN client and Wi-Fi driver, which are emulated or missing here.",
        );
    }
}

/// Threads of a process that stand for themselves in a profile; the rest of a virtual machine's are one part.
const THREADS: usize = 7;
const OTHERS: &str = "other threads";

const BY_THREAD: &str = "server.threads_percent.";

/// CPU of the threads of that name, in percent of a core.
fn used(group: &Group<'_>, thread: &str) -> f64 {
    group.mean(&format!("{BY_THREAD}{thread}")).unwrap_or(0.0)
}

/// The share of the server's CPU that differs from the sum of its threads.
fn unexplained(measurement: &Measurement) -> Option<f64> {
    let threads: f64 =
        measurement.metrics.iter().filter(|(name, _)| name.starts_with(BY_THREAD)).map(|(_, cpu)| cpu).sum();
    Some((threads / measurement.get("server.cpu_percent")? - 1.0).abs())
}

/// Names of the threads that ran in these loads, in the alphabet's order.
fn threads(groups: &[&Group<'_>]) -> Vec<String> {
    let measurements = groups.iter().flat_map(|group| &group.valid);
    let names: BTreeSet<&str> = measurements
        .flat_map(|one| one.metrics.keys().filter_map(|name| name.strip_prefix(BY_THREAD)))
        .collect();
    let ran = |name: &&str| groups.iter().any(|group| used(group, name) > 0.005);
    names.into_iter().filter(ran).map(str::to_owned).collect()
}

/// CPU by process and in total, with the share that the emulated network takes. That of a VPN is what the network with it takes
/// more than without.
fn processes(name: &str, groups: &[&Group<'_>], outcome: &mut Outcome) {
    let parts = ["server", "load", "others"];
    let mut grid = Grid::new(
        &format!("CPU by process, % of one core: {name}"),
        2,
        &[
            "network",
            "nodes per Read",
            "server",
            "load",
            "others (network emulation, system)",
            "total",
            "others, % of total",
        ],
    );
    let (mut bars, mut others_of) = (Vec::new(), Vec::new());
    for group in groups {
        let (Some(server), Some(load), Some(total)) = (
            group.mean("server.cpu_percent"),
            group.mean("generator.cpu_percent"),
            group.mean("generator.machine_percent"),
        ) else {
            continue;
        };
        // The machine's account counts clock ticks.
        let others = (total - server - load).max(0.0);
        let network = group.condition.link.as_deref().unwrap_or("loopback");
        let nodes = group.condition.batch.unwrap_or(1).to_string();
        let cells = [server, load, others, total, others / total.max(1e-9) * 100.0].map(figures::number);
        grid.row([network.to_owned(), nodes.clone()].into_iter().chain(cells));
        let link = network_name(group.condition.link.as_deref());
        bars.push((format!("{link}, {nodes} per Read"), vec![server, load, others]));
        others_of.push((network.to_owned(), group.mean("per_second"), others));
    }
    if bars.is_empty() {
        return;
    }
    outcome.grids.push(grid);
    outcome.charts.extend(Chart::stacks_apart(
        &format!("CPU by process: {name}"),
        "Each bar is a load. 'Others' are all other programs of this machine: the emulated network, with or without a VPN, and \
         the system.",
        &Axis::linear("CPU, % of one core"),
        &parts.map(str::to_owned),
        bars,
    ));
    let of = |link: &str| others_of.iter().find(|(network, ..)| network == link);
    if let [Some((_, Some(plain_rate), plain)), Some((_, Some(vpn_rate), vpn))] = PROFILED.map(of) {
        outcome.remark(format!(
            "{name}: the emulated network takes {} µs of CPU per Read without a VPN and {} with it (a VPN adds bytes and packets; \
             its cipher is not emulated).",
            figures::number(plain * 1e4 / plain_rate.max(1e-9)),
            figures::number(vpn * 1e4 / vpn_rate.max(1e-9))
        ));
    }
}

/// Where the CPU of a stack's server goes.
fn profile(name: &str, groups: &[&Group<'_>], outcome: &mut Outcome) {
    let all = threads(groups);
    let most = |thread: &String| groups.iter().map(|group| used(group, thread)).fold(0.0, f64::max);
    let mut busiest: Vec<&String> = all.iter().collect();
    busiest.sort_by(|a, b| most(b).total_cmp(&most(a)));
    busiest.truncate(THREADS);
    let mut parts: Vec<String> = all.iter().filter(|thread| busiest.contains(thread)).cloned().collect();
    let others: Vec<&String> = all.iter().filter(|thread| !busiest.contains(thread)).collect();
    if !others.is_empty() {
        parts.push(OTHERS.to_owned());
    }
    let mut columns = vec!["nodes per Read", "Reads/s"];
    columns.extend(parts.iter().map(String::as_str));
    columns.extend(["server %", "kernel %", "load %"]);
    let mut grid = Grid::new(&format!("CPU by thread, % of one core: {name}"), 1, &columns);
    let mut bars = Vec::new();
    for group in groups {
        let size = |part: &String| match part.as_str() {
            OTHERS => others.iter().map(|thread| used(group, thread)).sum(),
            _ => used(group, part),
        };
        let sizes: Vec<f64> = parts.iter().map(size).collect();
        let system = group.mean("server.system_s").zip(group.mean("window_s"));
        let nodes = group.condition.batch.unwrap_or(1).to_string();
        let mut row = vec![nodes.clone(), maybe(group.mean("per_second"))];
        row.extend(sizes.iter().map(|size| figures::number(*size)));
        row.extend([
            maybe(group.mean("server.cpu_percent")),
            maybe(system.map(|(system, window)| system / window * 100.0)),
            maybe(group.mean("generator.cpu_percent")),
        ]);
        grid.rows.push(row);
        bars.push((if nodes == "1" { "1 node".to_owned() } else { format!("{nodes} nodes") }, sizes));
    }
    outcome.grids.push(grid);
    outcome.charts.extend(Chart::stacks_apart(
        &format!("Server CPU by thread: {name}"),
        "Each bar is a load; its parts are the server's threads. In Taktwerk 'signals' is the thread that sets the values, which \
         is what a protocol adapter does.",
        &Axis::linear("CPU, % of one core"),
        &parts,
        bars,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Content;
    use serde_json::json;

    #[test]
    fn spread_and_extremes_stand_beside_the_papers() {
        let scenarios = [None, Some("ethernet-100m"), Some("3g+vpn")].map(|link| rtd(false, link, false));
        let conditions = scenarios.into_iter().flatten().flat_map(|scenario| scenario.conditions());
        let measured = |condition: crate::scenario::Condition| {
            let mut times = Times::new();
            [2_000_000, 4_000_000].into_iter().for_each(|nanos| times.record(nanos));
            let mut one = Measurement::from_document("cgw-rtd", condition, 0, json!({}));
            one.histograms.insert("latency".to_owned(), times);
            one
        };
        let all: Vec<Measurement> = conditions.map(measured).collect();
        let mut outcome = Outcome::default();
        RoundTrip.evaluate(&all, &mut outcome);
        let beside = outcome.grids.iter().find(|grid| grid.title.contains("beside the paper's")).unwrap();
        let row = beside.rows.iter().find(|row| row[1] == "3g+vpn" && row[2] == "A").unwrap();
        assert_eq!([&row[4], &row[6], &row[8], &row[10]], ["262", "135", "144", "1\u{202f}141"]);
        assert!(row[3].starts_with("3.0") && row[7].starts_with("2.0"), "{row:?}");
        assert!(outcome.grids[0].columns.contains(&"min ms".to_owned()));
        let text = outcome.text();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let is_density = |chart: &&crate::chart::Chart| {
            chart.title.starts_with("Round-trip delay over links")
                && matches!(&chart.content, Content::Plane { series, .. } if !series.is_empty())
        };
        assert!(outcome.charts.iter().any(|chart| is_density(&chart)));
        // Measured once, so as it is: 30 nodes take as long as 1 here.
        assert_eq!(outcome.findings[0].holds, Some(true));
    }

    #[test]
    fn many_threads_are_a_few_parts_of_each_stacks_own_profile() {
        let measure = |stack: &str, threads: &[(&str, f64)]| {
            let scenario = Scenario::new("cgw-profile", LoadSpec::new(Kind::Read));
            let mut condition = scenario.conditions().remove(0);
            condition.stack = stack.to_owned();
            let threads: serde_json::Map<String, Value> =
                threads.iter().map(|(name, percent)| ((*name).to_owned(), json!(percent))).collect();
            let server = json!({"cpu_percent": 20.0, "threads_percent": threads});
            Measurement::from_document("cgw-profile", condition, 0, json!({"server": server}))
        };
        let names: Vec<String> = (0..30).map(|at| format!("gc-{at:02}")).collect();
        let many: Vec<(&str, f64)> =
            names.iter().map(|name| (name.as_str(), 0.5)).chain([("main", 5.0)]).collect();
        let mut outcome = Outcome::default();
        let ours = [("server", 15.0), ("signals", 5.0), ("rest", 0.001)];
        let mut spoilt = measure("asyncua", &ours);
        spoilt.invalid.push("the load generator was late".to_owned());
        Profile.evaluate(&[measure("milo", &many), spoilt, measure("own", &ours)], &mut outcome);
        let [own, milo] = &outcome.grids[..] else { panic!("{:?}", outcome.grids.len()) };
        assert_eq!(
            own.columns,
            ["nodes per Read", "Reads/s", "server", "signals", "server %", "kernel %", "load %"]
        );
        assert_eq!((milo.columns.len(), milo.columns[9].as_str()), (13, OTHERS));
        // Of 30 threads six are named.
        assert!(
            milo.columns.contains(&"main".to_owned()) && milo.rows[0][9].starts_with("12"),
            "{:?}",
            milo.rows
        );
        assert!(outcome.charts.iter().all(|chart| chart.legend().len() <= THREADS + 1));
        assert_eq!(outcome.findings[0].holds, Some(true), "{:?}", outcome.findings);
        let text = outcome.text();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn late_answers_of_all_repetitions_count() {
        let mut load = LoadSpec::new(Kind::Probe);
        load.rate = Some(100.0.into());
        let mut scenario = Scenario::new("cgw-outliers", load);
        scenario.cpu.condition = CpuCondition::Loaded;
        let condition = scenario.conditions().remove(0);
        // The second repetition is slower as a whole: what is late in it is measured by its own fastest.
        let measure = |repetition: u32, usual: f64| {
            let sample = |at: usize| {
                let waited = if at % 10 == 9 { usual * 9.0 } else { 0.0 };
                json!({"at_s": at as f64 / 100.0, "rtt_us": usual + waited, "context": {
                    "timer_late_us": 0.0, "server_wait_us": waited, "server_run_us": usual / 2.0, "client_wait_us": 0.0,
                    "retransmitted": 0, "load_percent": if waited > 0.0 { 90.0 } else { 10.0 }, "server_known": true,
                }})
            };
            let document = json!({"samples": (0..50).map(sample).collect::<Vec<_>>()});
            Measurement::from_document("cgw-outliers", condition.clone(), repetition, document)
        };
        let mut outcome = Outcome::default();
        Outliers.evaluate(&[measure(0, 100.0), measure(1, 700.0)], &mut outcome);
        // Network, samples, slow, run queue.
        assert_eq!(outcome.grids[0].rows[0][2..6], ["loopback", "100", "10", "10"].map(str::to_owned));
        let correlated = &outcome.grids[2].rows[0];
        assert_eq!((correlated[4].as_str(), correlated[5].as_str()), ("10", "1.00"));
        assert_eq!(outcome.findings[0].holds, Some(true), "{:?}", outcome.findings);
        assert_eq!(outcome.charts.len(), 1);
    }

    #[test]
    fn what_got_lost_is_told_from_what_only_was_late() {
        let mut load = LoadSpec::new(Kind::Probe);
        load.rate = Some(100.0.into());
        let mut scenario = Scenario::new("cgw-outliers", load);
        scenario.link = Some(LOSSY.to_owned());
        let condition = scenario.conditions().remove(0);
        let findings = |again: u64| {
            let sample = |at: usize| {
                let is_late = at % 10 == 9;
                json!({"at_s": at as f64 / 100.0, "rtt_us": if is_late { 200_500.0 } else { 500.0 }, "context": {
                    "timer_late_us": 60.0, "server_wait_us": 0.0, "server_run_us": 20.0, "client_wait_us": 0.0,
                    "retransmitted": if is_late { again } else { 0 }, "load_percent": 10.0, "server_known": true,
                }})
            };
            let document = json!({"samples": (0..50).map(sample).collect::<Vec<_>>()});
            let one = Measurement::from_document("cgw-outliers", condition.clone(), 0, document);
            let mut outcome = Outcome::default();
            Outliers.evaluate(&[one], &mut outcome);
            outcome.findings
        };
        let [lost] = &findings(1)[..] else { panic!() };
        assert!(lost.holds == Some(true) && lost.evidence.contains("5 of 5; 5 segments"), "{lost:?}");
        let [late] = &findings(0)[..] else { panic!() };
        assert!(late.holds.is_none() && late.evidence.contains("a relay"), "{late:?}");
    }
}
