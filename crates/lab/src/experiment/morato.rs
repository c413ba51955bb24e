//! Morato et al. 2021: CPU, read time and subscription delivery of open stacks on a Raspberry Pi.

use super::{
    Experiment, Plan, Wish, compiled_before_interpreted, conditions, is_below, isolation_shortens,
    network_name, percentile, published, removed, shown, stack_name, time, times_as, times_grid,
    valid_groups,
};
use crate::chart::Chart;
use crate::figures;
use crate::latency::Times;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::scenario::{CpuCondition, Kind, LoadSpec, Scenario};
use crate::statistics::Repeated;
use taktwerk_load::result::{Figure, Head};

pub(super) static ALL: [&dyn Experiment; 4] = [&Cpu, &Read, &Subscription, &PubSub];

const SOURCE: &str = "Morato, Vitturi, Tramarin, Cenedese 2021, on a Raspberry Pi 3B+";

/// CPU conditions for the delivery experiments: the paper's two, and a CPU with a competing program.
const CPUS: [CpuCondition; 3] = CpuCondition::PLACED;

/// The link for the fastest network in the paper.
const QUICKEST: &str = "ethernet-100m";

struct Cpu;
struct Read;
struct Subscription;
struct PubSub;

fn reads(name: &str, quick: bool, condition: CpuCondition) -> Scenario {
    let mut load = LoadSpec::new(Kind::Read);
    load.count = Some(if quick { 15_000 } else { 100_000 });
    let mut scenario = Scenario::new(name, load);
    scenario.server.signals = 1;
    scenario.server.update_ms = 1_000.0;
    scenario.cpu.condition = condition;
    scenario.time = if quick { time(0.2, 1.0, 3) } else { time(2.0, 1.0, 5) };
    scenario
}

impl Experiment for Cpu {
    fn id(&self) -> &'static str {
        "morato-cpu"
    }
    fn question(&self) -> &'static str {
        "How much CPU does a server use while one client reads one variable as fast as it can?"
    }
    fn source(&self) -> &'static str {
        "Morato et al. 2021, Tables II and III, Raspberry Pi 3B+"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let conditions = conditions(wish, vec![reads("morato-cpu", wish.quick, CpuCondition::Isolated)]);
        Plan { conditions, skipped: Vec::new() }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "Server under reads, per 100 000 reads",
            1,
            &["stack", "CPU %", "kernel %", "user %", "CPU µs/read", "switches", "migrations", "cycles"],
        );
        for group in &groups {
            let per = |figure: Figure| -> Option<f64> {
                let requests = group.mean(Figure::LATENCY_UNCORRECTED_COUNT)?;
                Some(group.mean(figure)? / requests * 1e5)
            };
            let share =
                |figure: Figure| Some(group.mean(figure)? / group.mean(Figure::SERVER_CPU_S)? * 100.0);
            let switches = per(Figure::SERVER_VOLUNTARY_SWITCHES)
                .zip(per(Figure::SERVER_INVOLUNTARY_SWITCHES))
                .map(|(a, b)| a + b);
            grid.row([
                stack_name(&group.condition.stack).to_owned(),
                shown(group, Figure::SERVER_CPU_PERCENT),
                maybe(share(Figure::SERVER_SYSTEM_S)),
                maybe(share(Figure::SERVER_USER_S)),
                shown(group, Figure::SERVER_CPU_US_PER_REQUEST),
                maybe(switches),
                maybe(per(Figure::SERVER_MIGRATIONS)),
                maybe(per(Figure::SERVER_CYCLES)),
            ]);
        }
        for name in ["open62541", "freeopcua-cpp", "freeopcua-python", "prosys-java"] {
            let get = |metric| published::morato_cpu(name, metric);
            grid.row([
                format!("{name} (published)"),
                maybe(get("cpu_mean")),
                maybe(get("kernel_share")),
                maybe(get("user_share")),
                "–".to_owned(),
                maybe(get("context_switches")),
                maybe(get("cpu_migrations")),
                maybe(get("cpu_cycles")),
            ]);
        }
        outcome.grids.push(grid);
        let bars = groups.iter().map(|group| {
            let us = |figure: Figure| {
                let requests = group.mean(Figure::LATENCY_UNCORRECTED_COUNT).unwrap_or(1.0);
                group.mean(figure).unwrap_or(0.0) * 1e6 / requests
            };
            (
                stack_name(&group.condition.stack).to_owned(),
                vec![us(Figure::SERVER_USER_S), us(Figure::SERVER_SYSTEM_S)],
            )
        });
        outcome.charts.push(Chart::stack(
            "Server CPU per read",
            "Lower part: the stack itself. Upper part: the kernel's network code. Stacks differ mostly in the lower \
             part.",
            crate::chart::Axis::linear("CPU per read, µs"),
            vec!["user".into(), "kernel".into()],
            bars.collect(),
        ));
        let costs: Vec<(&str, Option<Repeated>)> = groups
            .iter()
            .map(|group| (group.condition.stack.as_str(), group.metric(Figure::SERVER_CPU_US_PER_REQUEST)))
            .collect();
        compiled_before_interpreted(outcome, "CPU per read, µs", &costs);
        let claim = "Taktwerk needs less CPU per read than the peer";
        compare(outcome, groups.iter(), Figure::SERVER_CPU_US_PER_REQUEST, claim);
        if groups.iter().all(|group| group.mean(Figure::SERVER_CYCLES).is_none()) {
            outcome
                .remark("CPU cycles: hardware counters are not available to this process on this machine.");
        }
        outcome.remark(
            "Comparable: the order of the stacks, the kernel's share, and one to two context switches per read. Not \
             comparable: absolute CPU percent. A read takes a fraction of the time it took on the Raspberry Pi, so \
             more reads are answered per second.",
        );
    }
}

/// Compares our figure with each peer's; lower is better. Undecided if the repetitions vary by more than the
/// difference.
fn compare<'a>(
    outcome: &mut Outcome,
    groups: impl Iterator<Item = &'a Group<'a>> + Clone,
    figure: Figure,
    claim: &str,
) {
    let is_own = |group: &&Group<'_>| group.condition.stack == "own";
    let Some(own) = groups.clone().find(is_own).and_then(|group| group.metric(figure)) else { return };
    for group in groups.filter(|group| !is_own(group)) {
        let Some(peer) = group.metric(figure) else { continue };
        let evidence = format!(
            "{}, {} for {}: {}",
            figures::number(own.median),
            figures::number(peer.median),
            group.condition.stack,
            times_as(own.median / peer.median)
        );
        outcome.finding(claim, is_below(Some(&own), Some(&peer)), evidence);
    }
}

impl Experiment for Read {
    fn id(&self) -> &'static str {
        "morato-read"
    }
    fn question(&self) -> &'static str {
        "How long does one Read take, and how much does it vary?"
    }
    fn source(&self) -> &'static str {
        "Morato et al. 2021, Tables IV to VI, Figures 4 to 8, Raspberry Pi 3B+"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let kinds = [CpuCondition::Isolated, CpuCondition::Shared, CpuCondition::Loaded, CpuCondition::Same];
        let scenarios = kinds.map(|kind| reads("morato-read", wish.quick, kind));
        let mut plan = Plan { conditions: conditions(wish, scenarios.into()), skipped: Vec::new() };
        for link in [QUICKEST, "wifi-802.11g"] {
            match wish.place.know_link(link) {
                Ok(()) => {
                    // Both columns of the paper. The short form measures both only over the fastest network.
                    let kinds: &[CpuCondition] = if wish.quick && link != QUICKEST {
                        &[CpuCondition::Isolated]
                    } else {
                        &[CpuCondition::Isolated, CpuCondition::Shared, CpuCondition::Loaded]
                    };
                    let over = kinds.iter().map(|kind| {
                        let mut scenario = reads("morato-read", wish.quick, *kind);
                        scenario.link = Some(link.to_owned());
                        scenario.load.count = Some(if wish.quick { 1_000 } else { 100_000 });
                        scenario
                    });
                    plan.conditions.extend(conditions(wish, over.collect()));
                }
                Err(error) => plan.skipped.push(error.to_string()),
            }
        }
        if !wish.place.has_two_cpus() {
            plan.skipped
                .push("this process may use only one CPU, so 'isolated' and 'same' are identical".to_owned());
        }
        plan
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut rows = Vec::new();
        let mut curves = Vec::new();
        for group in &groups {
            let times = group.times("latency");
            let network = group.condition.link.clone().unwrap_or_else(|| "loopback".to_owned());
            let cpu = group.condition.cpu.condition.name();
            let stack = stack_name(&group.condition.stack);
            rows.push((vec![stack.to_owned(), network.clone(), cpu.to_owned()], times.clone()));
            let link = network_name(group.condition.link.as_deref());
            curves.push((format!("{stack}, {link}, {cpu}"), times));
        }
        outcome.grids.push(times_grid(
            "Round trip of one Read, measured",
            &["stack", "network", "CPU"],
            &rows,
            false,
        ));
        let is_real_time =
            measurements.iter().any(|one| one.part::<Head>().is_some_and(|head| head.machine.real_time));
        let kernel = if is_real_time { "real-time" } else { "generic" };
        let mut grid = Grid::new(
            &format!("Published, {kernel} kernel"),
            3,
            &["stack", "network", "CPU", "mean µs", "std µs"],
        );
        for network in ["ethernet", "wifi"] {
            for isolated in [false, true] {
                for name in ["open62541", "freeopcua-cpp", "freeopcua-python", "prosys-java"] {
                    if let Some((mean, std)) = published::morato_read(name, network, isolated, is_real_time) {
                        let cpu = if isolated { "isolated" } else { "shared" };
                        grid.row([
                            name.into(),
                            network.into(),
                            cpu.into(),
                            figures::number(mean),
                            figures::number(std),
                        ]);
                    }
                }
            }
        }
        outcome.grids.push(grid);
        let marks: Vec<(String, f64)> = [("ethernet", "Ethernet"), ("wifi", "Wi-Fi")]
            .into_iter()
            .filter_map(|(network, name)| {
                let (mean, _) = published::morato_read("open62541", network, true, is_real_time)?;
                Some((format!("open62541, {name}, isolated"), mean * 1e3))
            })
            .collect();
        let densities = Chart::apart(Chart::density, "Distribution density of the round trip", &curves);
        outcome.charts.extend(densities.into_iter().map(|chart| chart.with_published(&marks)));
        outcome.charts.extend(Chart::apart(Chart::percentiles, "Tail of the round trip", &curves));
        let mut networks: Vec<Option<&String>> = Vec::new();
        for link in groups.iter().map(|group| group.condition.link.as_ref()) {
            if !networks.contains(&link) {
                networks.push(link);
            }
        }
        for stack in super::stacks(measurements) {
            for link in &networks {
                let p99 = |cpu: CpuCondition| {
                    let of = |group: &&Group<'_>| {
                        let condition = group.condition;
                        condition.stack == stack
                            && condition.cpu.condition == cpu
                            && condition.link.as_ref() == *link
                    };
                    percentile(groups.iter().find(of)?, "latency", 99.0)
                };
                let network = link.map_or("loopback", String::as_str);
                let what = format!("{}, {network}", stack_name(&stack));
                for cpu in [CpuCondition::Shared, CpuCondition::Loaded] {
                    isolation_shortens(outcome, &what, p99(CpuCondition::Isolated), (cpu, p99(cpu)));
                }
            }
        }
        let same: Vec<(&str, Option<Repeated>)> = groups
            .iter()
            .filter(|group| group.condition.cpu.condition == CpuCondition::Same)
            .map(|group| (group.condition.stack.as_str(), percentile(group, "latency", 50.0)))
            .collect();
        compiled_before_interpreted(outcome, "round trip p50, µs", &same);
        let same = groups.iter().filter(|group| group.condition.cpu.condition == CpuCondition::Same);
        compare(
            outcome,
            same,
            Figure::LATENCY_UNCORRECTED_P50_US,
            "with both ends on one CPU, the round trip is shorter than the peer's (p50 µs)",
        );
        outcome.remark(
            "Comparable: the order of the stacks, compiled stacks before interpreted ones, and the effect of a shared \
             CPU. Not comparable: absolute times. Here both ends run on one machine. On a virtual machine, waking a \
             sleeping CPU takes longer than the whole protocol, so 'same' (both ends on one CPU) is the figure for the \
             stack itself. CPU conditions: 'isolated' pins server and load to one CPU each, 'shared' pins nothing (the \
             paper's second column), 'loaded' adds a program that competes for the server's CPU.",
        );
        outcome.remark(format!(
            "{SOURCE}, with a generic and a real-time kernel. The rows shown are for a {kernel} kernel, as on this \
             machine."
        ));
    }
}

impl Experiment for Subscription {
    fn id(&self) -> &'static str {
        "morato-subscription"
    }
    fn question(&self) -> &'static str {
        "How long does a published value take from the server to the client's application?"
    }
    fn source(&self) -> &'static str {
        "Morato et al. 2021, Tables VII and VIII, Figures 9 and 10, Raspberry Pi 3B+"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let scenarios = CPUS.map(|kind| {
            let mut load = LoadSpec::new(Kind::Subscribe);
            load.items = Some(1.into());
            load.publishing_ms = Some(100.0.into());
            load.sampling_ms = Some(100.0);
            let mut scenario = Scenario::new("morato-subscription", load);
            scenario.server.update_ms = 30.0;
            scenario.server.signals = 1;
            scenario.cpu.condition = kind;
            // 6 000 samples take ten minutes over all repetitions.
            scenario.time = if wish.quick { time(0.3, 3.0, 2) } else { time(2.0, 120.0, 5) };
            scenario
        });
        Plan { conditions: conditions(wish, scenarios.into()), skipped: Vec::new() }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut rows = Vec::new();
        let mut curves: Vec<(String, Times)> = Vec::new();
        for group in &groups {
            let cpu = group.condition.cpu.condition.name();
            let stack = stack_name(&group.condition.stack);
            let times = group.times("transfer");
            if times.count() == 0 {
                outcome.skipped.push(format!("{stack}, {cpu}: PublishTime is null in its messages"));
                continue;
            }
            rows.push((vec![stack.to_owned(), cpu.to_owned()], times.clone()));
            curves.push((format!("{stack}, {cpu}"), times));
        }
        outcome.grids.push(times_grid(
            "From the PublishTime of the message to the client's application, measured",
            &["stack", "CPU"],
            &rows,
            false,
        ));
        let mut grid = Grid::new("Published", 2, &["stack", "CPU", "mean µs", "std µs"]);
        for name in ["open62541", "prosys-java"] {
            for isolated in [false, true] {
                if let Some((mean, std)) = published::morato_delivery(name, isolated) {
                    let cpu = if isolated { "isolated" } else { "shared" };
                    grid.row([name.to_owned(), cpu.to_owned(), figures::number(mean), figures::number(std)]);
                }
            }
        }
        outcome.grids.push(grid);
        let marks: Vec<(String, f64)> = ["open62541", "prosys-java"]
            .into_iter()
            .filter_map(|name| {
                Some((format!("{name}, isolated"), published::morato_delivery(name, true)?.0 * 1e3))
            })
            .collect();
        let densities = Chart::apart(Chart::density, "Distribution density of the delivery time", &curves);
        outcome.charts.extend(densities.into_iter().map(|chart| chart.with_published(&marks)));
        outcome.charts.extend(Chart::apart(Chart::distribution, "Delivery time", &curves));
        let alone = groups.iter().filter(|group| group.condition.cpu.condition == CpuCondition::Isolated);
        compare(outcome, alone, Figure::TRANSFER_P50_US, "delivery is not slower than the peer's (p50 µs)");
        outcome.remark(
            "The delay starts at the PublishTime of the message, when the response is ready. Server and client share a \
             clock. Comparable: order and shape. Not comparable: absolute times.",
        );
    }
}

impl Experiment for PubSub {
    fn id(&self) -> &'static str {
        "morato-pubsub"
    }
    fn question(&self) -> &'static str {
        "The same for PubSub: is its delay below that of a subscription, as expected?"
    }
    fn source(&self) -> &'static str {
        "Morato et al. 2021, Table IX, Figure 11"
    }
    fn uses(&self, _: Kind) -> bool {
        true
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        // The baseline for PubSub is a subscription whose client sleeps until a message arrives. So the subscriber must
        // sleep as well.
        let services = [(Kind::PubSub, true), (Kind::PubSub, false), (Kind::Subscribe, false)];
        let scenarios = CPUS.into_iter().flat_map(|kind| {
            services.map(|(load, asleep)| {
                let mut load = LoadSpec::new(load);
                load.asleep = asleep;
                load.items = Some(1.into());
                load.publishing_ms = Some(100.0.into());
                load.sampling_ms = (load.kind == Kind::Subscribe).then_some(100.0);
                let mut scenario = Scenario::new("morato-pubsub", load);
                // The paper uses 30 ms. Then a cycle of 100 ms samples the changes at only three phases, chosen by
                // chance at the start of each run. 31 ms covers all phases, so that both services wait equally long.
                scenario.server.update_ms = 31.0;
                scenario.server.signals = 1;
                scenario.cpu.condition = kind;
                scenario.time = if wish.quick { time(0.3, 2.0, 3) } else { time(2.0, 120.0, 5) };
                scenario
            })
        });
        // Without a publisher, measuring a subscription alone is pointless here.
        let (mut stacks, mut skipped) = (Vec::new(), Vec::new());
        for stack in &wish.stacks {
            match wish.place.check_publisher(stack) {
                Ok(()) => stacks.push(stack.clone()),
                Err(error) => skipped.push(error.to_string()),
            }
        }
        let wish = Wish { stacks, ..*wish };
        Plan { conditions: conditions(&wish, scenarios.collect()), skipped }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let stacks = super::stacks(measurements);
        let (mut whole, mut added) = (Vec::new(), Vec::new());
        let mut shares = Grid::new(
            "Parts of the delivery time (medians): total, waiting for the cycle, building the message, and from then to the receipt",
            3,
            &["stack", "service", "CPU", "total µs", "until ready µs", "building µs", "to receipt µs"],
        );
        let services = [
            ("PubSub", Kind::PubSub, true),
            ("PubSub, early wake-up", Kind::PubSub, false),
            ("subscription", Kind::Subscribe, false),
        ];
        for (service, kind, asleep) in services {
            let mut curves = Vec::new();
            for stack in &stacks {
                for cpu in CPUS {
                    let of = |group: &&Group<'_>| {
                        let condition = group.condition;
                        condition.stack == *stack
                            && condition.kind == kind
                            && condition.asleep == asleep
                            && condition.cpu.condition == cpu
                    };
                    let Some(group) = groups.iter().find(of) else { continue };
                    let (delivery, transfer) = (group.times("delivery"), group.times("transfer"));
                    if delivery.count() == 0 || transfer.count() == 0 {
                        continue;
                    }
                    let name = Vec::from([stack_name(stack), service, cpu.name()].map(str::to_owned));
                    let median = |times: &Times| times.percentile(50.0) as f64 / 1e3;
                    let cells = [
                        figures::number(median(&delivery)),
                        figures::number((median(&delivery) - median(&transfer)).max(0.0)),
                        maybe(group.mean(Figure::MAKING_P50_US)),
                        figures::number(median(&transfer)),
                    ];
                    shares.row(name.iter().cloned().chain(cells));
                    curves.push((format!("{}, {}", stack_name(stack), cpu.name()), transfer.clone()));
                    whole.push((name.clone(), delivery));
                    added.push((name, transfer));
                }
            }
            if curves.is_empty() {
                continue;
            }
            let title = format!("{service}, from the message ready to be sent to the receipt");
            let figures =
                if kind == Kind::PubSub { published::morato_pubsub } else { published::morato_delivery };
            let marks: Vec<(String, f64)> = figures("open62541", true)
                .map(|(mean, _)| ("open62541, isolated".to_owned(), mean * 1e3))
                .into_iter()
                .collect();
            let densities = Chart::apart(Chart::density, &format!("{title}: how often"), &curves);
            outcome.charts.extend(densities.into_iter().map(|chart| chart.with_published(&marks)));
            outcome.charts.extend(Chart::apart(Chart::distribution, &title, &curves));
        }
        let columns = ["stack", "service", "CPU"];
        outcome.grids.push(times_grid(
            "From the change of the value to its receipt, measured (PubSub: UADP over UDP)",
            &columns,
            &whole,
            false,
        ));
        outcome.grids.push(times_grid(
            "Delivery time as defined in the paper, from the message being ready to its receipt, measured",
            &columns,
            &added,
            false,
        ));
        outcome.grids.push(shares);
        removed::services(&groups, &stacks, outcome);
        let mut grid = Grid::new("Published, open62541", 2, &["service", "CPU", "mean µs", "std µs"]);
        for (service, of) in [
            ("PubSub", published::morato_pubsub as fn(&str, bool) -> Option<(f64, f64)>),
            ("subscription", published::morato_delivery),
        ] {
            for cpu in [CpuCondition::Isolated, CpuCondition::Shared] {
                if let Some((mean, std)) = of("open62541", cpu == CpuCondition::Isolated) {
                    grid.row([service, cpu.name(), &figures::number(mean), &figures::number(std)]);
                }
            }
        }
        outcome.grids.push(grid);
        for cpu in CPUS {
            let pubsub = groups.iter().filter(|group| {
                let condition = group.condition;
                condition.kind == Kind::PubSub && condition.asleep && condition.cpu.condition == cpu
            });
            let claim =
                format!("PubSub is not slower than the peer's, {} CPU (p50 µs to the receipt)", cpu.name());
            compare(outcome, pubsub, Figure::TRANSFER_P50_US, &claim);
        }
        outcome.remark(
            "Both services are measured in the same way. The source timestamps the change of the value. A message is \
             ready when it is passed to the kernel; for a subscription, this is its PublishTime. The rest is the \
             paper's delivery time: the kernel, the wire, and waking the receiver. The verdict compares receivers that \
             sleep until a message arrives. Our subscriber can also wake shortly before a message is due; that result has \
             its own row. The value changes every 31 ms (30 ms in the paper) and is published every 100 ms, so all \
             phases occur. Comparable: the order of the two services. Not comparable: absolute times.",
        );
        if stacks.iter().any(|stack| stack != "own") {
            outcome.remark(
                "The publisher of a peer is a small program that uses its library, on the server's CPU. Subscriber and \
                 client are ours for all stacks, so only the sender differs. open62541 leaves the Timestamp of its \
                 NetworkMessages at zero; the program fills it in when the library hands over the message.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Content, Mark};
    use crate::place::Place;
    use serde_json::json;

    fn plan(quick: bool) -> Vec<(Option<String>, CpuCondition)> {
        let place = Place::new("/bin/true".into(), "/none".into());
        let wish = Wish { quick, stacks: vec!["own".into()], place: &place };
        let kinds = Read.plan(&wish).conditions.into_iter();
        kinds.map(|condition| (condition.link, condition.cpu.condition)).collect()
    }

    #[test]
    fn messages_without_publish_time_are_skipped() {
        let mut scenario = Scenario::new("morato-subscription", LoadSpec::new(Kind::Subscribe));
        scenario.stacks = vec!["own".into(), "node-opcua".into()];
        let measured = |condition: crate::scenario::Condition| {
            let mut one =
                Measurement::from_document("morato-subscription", condition, 0, serde_json::json!({}));
            if one.condition.stack == "own" {
                let mut times = Times::new();
                times.record(150_000);
                one.histograms.insert("transfer".to_owned(), times);
            }
            one
        };
        let all: Vec<Measurement> = scenario.conditions().into_iter().map(measured).collect();
        let mut outcome = Outcome::default();
        Subscription.evaluate(&all, &mut outcome);
        assert_eq!(outcome.grids[0].rows.len(), 1, "{:?}", outcome.grids[0].rows);
        assert!(outcome.skipped[0].starts_with("node-opcua, ") && outcome.skipped[0].contains("null"));
    }

    #[test]
    fn links_are_measured_with_a_shared_cpu_too() {
        let has = |quick: bool, link: &str, cpu: CpuCondition| {
            plan(quick).iter().any(|(name, kind)| name.as_deref() == Some(link) && *kind == cpu)
        };
        for link in [QUICKEST, "wifi-802.11g"] {
            assert!(has(false, link, CpuCondition::Isolated) && has(false, link, CpuCondition::Shared));
        }
        assert!(
            has(true, QUICKEST, CpuCondition::Shared) && !has(true, "wifi-802.11g", CpuCondition::Shared)
        );
    }

    /// A repetition whose samples are spread evenly from zero to twice the median.
    fn measured(
        condition: &crate::scenario::Condition,
        repetition: u32,
        name: &str,
        middle: u64,
    ) -> Measurement {
        let mut one = Measurement::from_document("x", condition.clone(), repetition, json!({}));
        let mut times = Times::new();
        (1..=200).for_each(|at| times.record(at * middle / 100));
        one.histograms.insert(name.to_owned(), times);
        one
    }

    #[test]
    fn tails_are_compared_by_their_repetitions() {
        let holds = |alone: [u64; 3], shared: [u64; 3]| {
            let mut all = Vec::new();
            for (cpu, middles) in [(CpuCondition::Isolated, alone), (CpuCondition::Loaded, shared)] {
                let condition = reads("morato-read", true, cpu).conditions().remove(0);
                for (repetition, middle) in middles.into_iter().enumerate() {
                    all.push(measured(&condition, repetition as u32, "latency", middle * 1_000));
                }
            }
            let mut outcome = Outcome::default();
            Read.evaluate(&all, &mut outcome);
            outcome.findings.iter().find(|one| one.claim.contains("shorter tail")).unwrap().holds
        };
        assert_eq!(holds([100, 101, 99], [300, 310, 290]), Some(true));
        assert_eq!(holds([300, 310, 290], [100, 101, 99]), Some(false));
        // The merged tails differ only because of one slow repetition.
        assert_eq!(holds([100, 101, 99], [90, 102, 400]), None);
    }

    #[test]
    fn pubsub_is_measured_for_stacks_with_a_publisher() {
        let peers = tempfile::tempdir().unwrap();
        let place = Place::new("/bin/true".into(), peers.path().into());
        let plan = || {
            let stacks = ["own", "open62541", "milo"].map(str::to_owned).to_vec();
            PubSub.plan(&Wish { quick: true, stacks, place: &place })
        };
        let told = |plan: &Plan, stack: &str| plan.skipped.iter().any(|why| why.contains(stack));
        let without = plan();
        assert!(without.conditions.iter().all(|one| one.stack == "own"));
        assert!(told(&without, "lab peers install open62541") && told(&without, "milo"));
        let programs = peers.path().join("open62541/bin");
        std::fs::create_dir_all(&programs).unwrap();
        std::fs::write(programs.join("o6-publisher"), "").unwrap();
        let with = plan();
        let theirs: Vec<_> = with.conditions.iter().filter(|one| one.stack == "open62541").collect();
        assert!(theirs.len() == 9 && with.conditions.len() == 18 && told(&with, "milo"));
        assert!(theirs.iter().all(|one| place.check(one).is_ok() || one.kind == Kind::Subscribe));
        assert!(theirs.iter().all(|one| one.server.update_ms == 31.0 && one.signals() == 1));
    }

    /// Both services of both stacks, with their median delivery times in microseconds: PubSub and subscription.
    fn services(own: [u64; 2], theirs: [u64; 2]) -> Outcome {
        let mut all = Vec::new();
        for (stack, [pubsub, subscription]) in [("own", own), ("open62541", theirs)] {
            for (kind, middle) in [(Kind::PubSub, pubsub), (Kind::Subscribe, subscription)] {
                for cpu in CPUS {
                    let mut scenario = Scenario::new("morato-pubsub", LoadSpec::new(kind));
                    scenario.load.asleep = kind == Kind::PubSub;
                    scenario.stacks = vec![stack.to_owned()];
                    scenario.cpu.condition = cpu;
                    let condition = scenario.conditions().remove(0);
                    for repetition in 0..3 {
                        let nanos = (middle + u64::from(repetition)) * 1_000;
                        let mut one = measured(&condition, repetition, "transfer", nanos);
                        one.metrics.insert(Figure::TRANSFER_P50_US.name().to_owned(), nanos as f64 / 1e3);
                        let times = one.histograms["transfer"].clone();
                        one.histograms.insert("delivery".to_owned(), times);
                        all.push(one);
                    }
                }
            }
        }
        let mut outcome = Outcome::default();
        PubSub.evaluate(&all, &mut outcome);
        outcome
    }

    #[test]
    fn the_papers_fault_is_shown_per_stack_and_judged_for_ours_only() {
        let holds = |outcome: &Outcome, claim: &str| -> Vec<Option<bool>> {
            let those = outcome.findings.iter().filter(|one| one.claim.contains(claim));
            those.map(|one| one.holds).collect()
        };
        let fine = services([70, 160], [300, 250]);
        // The peer's fault is shown in the table; only our own result is a finding.
        assert_eq!(holds(&fine, "sooner than a subscription"), [Some(true); 3]);
        assert_eq!(holds(&fine, "PubSub is not slower"), [Some(true); 3]);
        let grid = fine.grids.iter().find(|grid| grid.title.starts_with("PubSub compared with")).unwrap();
        let of = |name: &str| -> Vec<&str> {
            let rows = grid.rows.iter().filter(|row| row[0] == name);
            rows.map(|row| row[4].as_str()).collect()
        };
        assert_eq!(of("open62541, p50"), ["1.20"; 3]);
        assert_eq!(of("open62541, mean, published"), ["1.47", "1.44"]);
        assert_eq!((of("taktwerk, p50").len(), grid.rows.len()), (3, 8));
        for title in ["From the change", "Delivery time", "Parts of the delivery"] {
            let grid = fine.grids.iter().find(|grid| grid.title.starts_with(title)).unwrap();
            assert_eq!((grid.rows.len(), grid.columns[0].as_str()), (12, "stack"));
        }
        let text = fine.text();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let broken = services([160, 70], [80, 250]);
        assert_eq!(holds(&broken, "sooner than a subscription"), [Some(false); 3]);
        assert_eq!(holds(&broken, "PubSub is not slower"), [Some(false); 3]);
        let open = services([100, 101], [101, 250]);
        assert_eq!(holds(&open, "sooner than a subscription"), [None; 3]);
        assert_eq!(holds(&open, "PubSub is not slower"), [None; 3]);
    }

    #[test]
    fn each_service_has_charts_with_all_stacks() {
        let outcome = services([70, 160], [300, 250]);
        for service in ["PubSub, from", "subscription, from"] {
            let those: Vec<_> =
                outcome.charts.iter().filter(|chart| chart.title.starts_with(service)).collect();
            assert_eq!(those.len(), 2, "{service}");
            for chart in those {
                let Content::Plane { series, .. } = &chart.content else { panic!("{}", chart.title) };
                let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
                let curves: Vec<&&str> = names.iter().filter(|name| !name.starts_with("published")).collect();
                assert_eq!(curves.len(), 6, "{names:?}");
                assert_eq!(*curves[0], "taktwerk, isolated");
            }
        }
    }

    #[test]
    fn delivery_has_a_density_beside_its_distribution() {
        let place = Place::new("/bin/true".into(), "/none".into());
        let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
        for experiment in [&Subscription as &dyn Experiment, &PubSub] {
            let conditions = experiment.plan(&wish).conditions;
            let mut all: Vec<Measurement> =
                conditions.iter().map(|condition| measured(condition, 0, "transfer", 50_000)).collect();
            for one in &mut all {
                let times = one.histograms.get("transfer").cloned().unwrap_or_default();
                one.histograms.insert("delivery".to_owned(), times);
            }
            let mut outcome = Outcome::default();
            experiment.evaluate(&all, &mut outcome);
            let is = |steps: bool| {
                outcome.charts.iter().any(|chart| match &chart.content {
                    Content::Plane { series, .. } => {
                        let curves = series.iter().filter(|one| !matches!(one.mark, Mark::Vertical(_)));
                        !series.is_empty()
                            && curves.clone().all(|one| matches!(one.mark, Mark::Steps(_)) == steps)
                    }
                    _ => false,
                })
            };
            assert!(is(true) && is(false), "{}", experiment.id());
        }
    }
}
