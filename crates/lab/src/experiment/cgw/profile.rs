//! CPU profile of the gateway.

use super::gateway;
use crate::chart::{Axis, Chart};
use crate::experiment::{
    Experiment, Plan, Wish, conditions, is_under, network_name, stack_name, stacks, time, valid_groups,
};
use crate::figures;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::scenario::{Kind, LoadSpec, Scenario, Sweep};
use crate::statistics::{Repeated, mean};
use std::collections::BTreeSet;
use taktwerk_load::result::Figure;

pub(super) struct Profile;

/// Networks for which the CPU of the processes is profiled.
const PROFILED: [&str; 2] = ["ethernet-100m", "ethernet-100m+vpn"];

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
        // A pause instead of a schedule. Only CPU is measured, so a request that is late by a millisecond does no harm.
        load.pause_ms = Some(2.0);
        let mut scenario = Scenario::new("cgw-profile", load);
        scenario.server.signals = 5_000;
        scenario.server.update_ms = 10.0;
        // As in the paper, the server publishes its own profile; the cost of this is included.
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
        let mut plan = Plan { conditions: conditions(wish, scenarios), skipped };
        gateway::add(wish, &scenario.time, &mut plan);
        plan
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let (with_adapters, groups): (Vec<Group<'_>>, Vec<Group<'_>>) = valid_groups(measurements)
            .into_iter()
            .partition(|group| group.condition.server.adapters.is_some());
        gateway::evaluate(&with_adapters, outcome);
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
                        "sum of the threads {} %, process {} %; setting 5 000 values every 10 ms takes {} %",
                        figures::number(total),
                        maybe(group.mean(Figure::SERVER_CPU_PERCENT)),
                        figures::number(used(group, adapter))
                    ),
                );
            }
        }
        outcome.remark(
            "As in the paper, our server can publish these figures as variables (taktwerk serve --profile, folder \
             Process, which has the adapters, a VPN and the network, too). The laboratory reads the figures shown here \
             from /proc, which works for every stack. Stacks with a single thread show as one part.",
        );
        outcome.remark(
            "Comparable: how the server's share grows with the nodes per Read, and which process takes most (in the paper \
             the server takes nearly the whole load). Not comparable: CPU percent and Reads per second on a different \
             processor; the adapters, which use field protocols in the paper and make their values here; the VPN client \
             and Wi-Fi driver, which are emulated here. Loads without adapters compare stacks: a thread of each server \
             generates 5 000 values.",
        );
    }
}

/// Maximum number of threads listed separately; the remaining threads of a process are one part.
const THREADS: usize = 7;
const OTHERS: &str = "other threads";

/// CPU of the threads of that name, in percent of a core.
fn used(group: &Group<'_>, thread: &str) -> f64 {
    let threads = group.valid.iter().flat_map(|one| one.threads_percent());
    let used: Vec<f64> = threads.filter(|(name, _)| *name == thread).map(|(_, percent)| percent).collect();
    mean(&used).unwrap_or(0.0)
}

/// The share of the server's CPU that the sum of its threads does not account for.
fn unexplained(measurement: &Measurement) -> Option<f64> {
    let threads: f64 = measurement.threads_percent().map(|(_, percent)| percent).sum();
    Some((threads / measurement.get(Figure::SERVER_CPU_PERCENT)? - 1.0).abs())
}

/// Names of the threads that ran under these loads, sorted.
fn threads(groups: &[&Group<'_>]) -> Vec<String> {
    let measurements = groups.iter().flat_map(|group| &group.valid);
    let names: BTreeSet<&str> =
        measurements.flat_map(|one| one.threads_percent()).map(|(name, _)| name).collect();
    let ran = |name: &&str| groups.iter().any(|group| used(group, name) > 0.005);
    names.into_iter().filter(ran).map(str::to_owned).collect()
}

/// CPU by process and in total, with the share of the emulated network. The cost of a VPN is the difference between the
/// network with and without it.
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
            group.mean(Figure::SERVER_CPU_PERCENT),
            group.mean(Figure::GENERATOR_CPU_PERCENT),
            group.mean(Figure::GENERATOR_MACHINE_PERCENT),
        ) else {
            continue;
        };
        // The machine's total is counted in clock ticks.
        let others = (total - server - load).max(0.0);
        let network = group.condition.link.as_deref().unwrap_or("loopback");
        let nodes = group.condition.batch.unwrap_or(1).to_string();
        let cells = [server, load, others, total, others / total.max(1e-9) * 100.0].map(figures::number);
        grid.row([network.to_owned(), nodes.clone()].into_iter().chain(cells));
        let link = network_name(group.condition.link.as_deref());
        bars.push((format!("{link}, {nodes} per Read"), vec![server, load, others]));
        others_of.push((network.to_owned(), group.mean(Figure::PER_SECOND), others));
    }
    if bars.is_empty() {
        return;
    }
    outcome.grids.push(grid);
    outcome.charts.extend(Chart::stacks_apart(
        &format!("CPU by process: {name}"),
        "Each bar is a load. 'Others' are all other programs on this machine: the emulated network, with or without a \
         VPN, and the system.",
        &Axis::linear("CPU, % of one core"),
        &parts.map(str::to_owned),
        bars,
    ));
    let of = |link: &str| others_of.iter().find(|(network, ..)| network == link);
    if let [Some((_, Some(plain_rate), plain)), Some((_, Some(vpn_rate), vpn))] = PROFILED.map(of) {
        outcome.remark(format!(
            "{name}: the emulated network takes {} µs of CPU per Read without a VPN and {} with it. (The VPN adds \
             bytes and packets; its cipher is not emulated.)",
            figures::number(plain * 1e4 / plain_rate.max(1e-9)),
            figures::number(vpn * 1e4 / vpn_rate.max(1e-9))
        ));
    }
}

/// CPU of a stack's server by thread.
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
        let system = group.mean(Figure::SERVER_SYSTEM_S).zip(group.mean(Figure::WINDOW_S));
        let nodes = group.condition.batch.unwrap_or(1).to_string();
        let mut row = vec![nodes.clone(), maybe(group.mean(Figure::PER_SECOND))];
        row.extend(sizes.iter().map(|size| figures::number(*size)));
        row.extend([
            maybe(group.mean(Figure::SERVER_CPU_PERCENT)),
            maybe(system.map(|(system, window)| system / window * 100.0)),
            maybe(group.mean(Figure::GENERATOR_CPU_PERCENT)),
        ]);
        grid.rows.push(row);
        bars.push((if nodes == "1" { "1 node".to_owned() } else { format!("{nodes} nodes") }, sizes));
    }
    outcome.grids.push(grid);
    outcome.charts.extend(Chart::stacks_apart(
        &format!("Server CPU by thread: {name}"),
        "Each bar is a load; its parts are the server's threads. In Taktwerk, 'signals' is the thread that sets the \
         values, as a protocol adapter does.",
        &Axis::linear("CPU, % of one core"),
        &parts,
        bars,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use serde_json::json;

    #[test]
    fn profiles_list_few_threads_and_merge_the_rest() {
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
}
