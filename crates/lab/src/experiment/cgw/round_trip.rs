//! Round-trip delay over access networks.

use super::with_adapters;
use crate::chart::Chart;
use crate::experiment::{
    Experiment, Plan, Wish, conditions, is_less, network_name, percentile, published, scaled, stack_name,
    stacks, time, times_as, times_grid, valid_groups,
};
use crate::figures;
use crate::latency::Times;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::processes;
use crate::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};
use crate::statistics::Repeated;

pub(super) struct RoundTrip;

/// What the paper counts as the payload of one node: 128 bit.
const NODE_BITS: f64 = 128.0;
/// The paper's environments with the emulated link used for each.
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
        // Five seconds between 1 000 requests take 83 minutes. The short form pauses for 50 ms, which is enough for a CPU
        // to sleep.
        if !is_slow {
            scenarios.push(make(30.into(), Some(50.0), 30));
        }
    } else {
        scenarios.push(make(30.into(), Some(5_000.0), 1_000));
    }
    scenarios
}

/// The processes of the gateway, one row for each network: of scenario C if its window was long enough, else of
/// another.
fn of_processes(groups: &[Group<'_>]) -> Option<Grid> {
    let mut chosen: Vec<&Group<'_>> = Vec::new();
    let mut profiled: Vec<&Group<'_>> =
        groups.iter().filter(|group| !processes::profiles(group).is_empty()).collect();
    profiled.sort_by_key(|group| letter(group.condition) != "C");
    for group in profiled {
        if chosen.iter().all(|known| known.condition.link != group.condition.link) {
            chosen.push(group);
        }
    }
    let named = |group: &&Group<'_>| {
        let condition = group.condition;
        format!("{}, {}", network_name(condition.link.as_deref()), letter(condition))
    };
    let labelled: Vec<(String, &Group<'_>)> =
        chosen.into_iter().map(|group| (named(&group), group)).collect();
    processes::grid(
        "Processes of the gateway: mean CPU in % of one core, memory and context switches",
        &labelled,
    )
}

/// The stack, and whether its values come from adapters.
fn name(condition: &Condition) -> String {
    let is_alone = condition.stack == "own" && condition.server.adapters.is_none();
    format!("{}{}", stack_name(&condition.stack), if is_alone { " without adapters" } else { "" })
}

fn letter(measurement: &Condition) -> &'static str {
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
        let near = conditions(wish, rtd(wish.quick, None, false));
        // The same without adapters shows what they cost. Pauses say nothing about that.
        let alone = near.iter().filter(|one| one.stack == "own" && one.pause_ms.is_none()).cloned();
        let mut plan = Plan { conditions: alone.collect(), skipped: Vec::new() };
        plan.conditions.extend(near.into_iter().map(with_adapters));
        for (environment, link) in LINKS {
            match wish.place.know_link(link) {
                Ok(()) => {
                    let scenarios = rtd(wish.quick, Some(link), link.starts_with("3g"));
                    plan.conditions.extend(conditions(wish, scenarios).into_iter().map(with_adapters));
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
            "Round-trip delay in ms, measured and published",
            3,
            &[
                "stack", "network", "scenario", "mean", "paper", "std", "paper", "min", "paper", "max",
                "paper",
            ],
        );
        let mut grid = Grid::new(
            "Payload throughput b·n/t with b = 128 bit, measured and published",
            3,
            &["stack", "network", "scenario", "kbit/s", "published kbit/s"],
        );
        for group in &groups {
            let stack = name(group.condition);
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
            let near = |batch: u32, has_adapters: bool, percent: f64| {
                let of = groups.iter().find(|group| {
                    group.condition.stack == stack
                        && group.condition.server.adapters.is_some() == has_adapters
                        && group.condition.link.is_none()
                        && group.condition.batch == Some(batch)
                        && group.condition.pause_ms.is_none()
                });
                percentile(of?, "latency", percent)
            };
            let p50 = |batch: u32| near(batch, true, 50.0).or_else(|| near(batch, false, 50.0));
            if let (Some(one), Some(thirty)) = (p50(1), p50(30)) {
                outcome.finding(
                    "a Read of 30 nodes takes fewer times as long as a Read of 1 than in the paper",
                    scaled(&one, PUBLISHED).and_then(|limit| is_less(&thirty, &limit)),
                    format!(
                        "{}: {} as long (p50; published on Ethernet: {})",
                        stack_name(&stack),
                        times_as(thirty.median / one.median),
                        times_as(PUBLISHED)
                    ),
                );
            }
            let [usual, slowest] =
                [50.0, 99.0].map(|percent| (near(30, true, percent), near(30, false, percent)));
            let both = |with: &Repeated, alone: &Repeated| {
                let [with, alone] = [with, alone].map(|one| figures::micros(one.median));
                format!("{}: {with} with adapters, {alone} without", stack_name(&stack))
            };
            if let (Some(with), Some(alone)) = usual {
                outcome.finding(
                    "adapters at work lengthen a Read of 30 nodes by less than 10 % (p50)",
                    scaled(&alone, 1.1).and_then(|limit| is_less(&with, &limit)),
                    both(&with, &alone),
                );
            }
            if let (Some(with), Some(alone)) = slowest {
                outcome.finding(
                    "adapters at work make slow Reads of 30 nodes slower (p99)",
                    is_less(&alone, &with),
                    both(&with, &alone),
                );
            }
        }
        outcome.grids.extend(of_processes(&groups));
        outcome.remark(
            "Two adapters are processes of their own that set the 30 values of Taktwerk every 10 ms. They share the \
             server's CPU, as on the paper's gateway with its single core. In other stacks, a thread of the server sets \
             the values.",
        );
        outcome.remark(
            "Without a link, client and server communicate over this machine's loopback interface; compare with the \
             paper's Ethernet row. Comparable: the growth from A to C, the cost of pauses (D), and the order of the \
             networks. Not comparable: absolute times without an emulated link.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Content;
    use serde_json::json;

    #[test]
    fn spread_and_extremes_are_compared_with_the_paper() {
        let scenarios = [None, Some("ethernet-100m"), Some("3g+vpn")].map(|link| rtd(false, link, false));
        let conditions = scenarios.into_iter().flatten().flat_map(|scenario| scenario.conditions());
        let measured = |condition: Condition| {
            let mut times = Times::new();
            [2_000_000, 4_000_000].into_iter().for_each(|nanos| times.record(nanos));
            let mut one = Measurement::from_document("cgw-rtd", condition, 0, json!({}));
            one.histograms.insert("latency".to_owned(), times);
            one
        };
        let all: Vec<Measurement> = conditions.map(measured).collect();
        let mut outcome = Outcome::default();
        RoundTrip.evaluate(&all, &mut outcome);
        let beside =
            outcome.grids.iter().find(|grid| grid.title.starts_with("Round-trip delay in ms")).unwrap();
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
        // Measured once, so the single value decides: 30 nodes take as long as 1 here.
        assert_eq!(outcome.findings[0].holds, Some(true));
    }

    #[test]
    fn adapters_work_in_all_scenarios_and_their_cost_is_measured() {
        let place = crate::place::Place::new("/bin/true".into(), "/none".into());
        let wish = Wish { quick: true, stacks: vec!["own".into(), "milo".into()], place: &place };
        let conditions = RoundTrip.plan(&wish).conditions;
        let count = |is_it: &dyn Fn(&Condition) -> bool| conditions.iter().filter(|one| is_it(one)).count();
        assert_eq!(count(&|one| one.stack == "milo" && one.server.adapters.is_some()), 0);
        assert_eq!(count(&|one| one.stack == "milo"), count(&|one| one.server.adapters.is_some()));
        let is_alone = |one: &Condition| one.stack == "own" && one.server.adapters.is_none();
        assert_eq!(count(&|one| is_alone(one) && one.link.is_none() && one.pause_ms.is_none()), 3);
        assert_eq!(count(&is_alone), 3);
        // Reads with adapters take twice as long as without, but the slowest do not.
        let measured = |condition: &Condition, repetition: u32| {
            let mut times = Times::new();
            let usual = if condition.server.adapters.is_some() { 400_000 } else { 200_000 };
            (0..100).for_each(|_| times.record(usual));
            (0..10).for_each(|_| times.record(2_000_000 + u64::from(repetition)));
            let mut one = Measurement::from_document("cgw-rtd", condition.clone(), repetition, json!({}));
            one.histograms.insert("latency".to_owned(), times);
            one
        };
        let all: Vec<Measurement> =
            conditions.iter().flat_map(|one| [measured(one, 0), measured(one, 1)]).collect();
        let mut outcome = Outcome::default();
        RoundTrip.evaluate(&all, &mut outcome);
        let verdict = |claim: &str| {
            let found: Vec<_> = outcome.findings.iter().filter(|one| one.claim.starts_with(claim)).collect();
            assert_eq!(found.len(), 1, "{:?}", outcome.findings);
            (found[0].holds, found[0].evidence.clone())
        };
        let (holds, evidence) = verdict("adapters at work lengthen a Read of 30 nodes by less than 10 %");
        assert!(
            holds == Some(false) && evidence.contains("400 µs with adapters, 200 µs without"),
            "{evidence}"
        );
        assert_eq!(verdict("adapters at work make slow Reads").0, None);
        let names: Vec<&str> = outcome.grids[1].rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names.iter().filter(|name| **name == "taktwerk without adapters").count(), 3);
    }
}
