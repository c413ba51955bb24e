//! Burger et al. 2019: CPU, memory and bandwidth of a server against the signals it publishes.

use super::beside::{self, Beside};
use super::footprint;
use super::publishing;
use super::removed;
use super::{
    Experiment, Plan, Wish, all_hold, clients, conditions, is_below, is_less, is_under, percentile, scaled,
    shown, stack_name, stacks, time, times_as, valid_groups,
};
use crate::chart::{Axis, Chart, Mark, Point, Series};
use crate::figures;
use crate::latency::Times;
use crate::links::switch::Switch;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::place::can_encrypt;
use crate::scenario::{Condition, Kind, LoadSpec, Scenario, SecuritySpec, Sweep};
use crate::statistics::{Repeated, mean, median};
use taktwerk_load::result::Figure;

pub(super) static ALL: [&dyn Experiment; 6] =
    [&Cpu, &footprint::Memory, &footprint::Network, &Security, &Threads, &Igmp];

const SOURCE_CPU: &str = "Burger et al. 2019, Figures 6 and 7 (RQ1), Raspberry Pi Zero, commercial C++ SDK";

pub(super) struct Cpu;
struct Security;
struct Threads;
struct Igmp;

/// Publishing, sampling and update interval of all loads.
pub(super) const INTERVAL_MS: f64 = 100.0;

/// Additional rates for the short form, used to test the CPU model.
const TRIED: [u32; 12] =
    [13_000, 17_000, 22_000, 28_000, 37_000, 65_000, 82_000, 105_000, 130_000, 165_000, 260_000, 360_000];

/// The number of items that gives these signals per second at [`INTERVAL_MS`].
fn items(signals_per_s: &[u32]) -> Sweep<u32> {
    Sweep::Many(signals_per_s.iter().map(|rate| rate / 10).collect())
}

fn scenario(name: &str, quick: bool, clients: &[u32], signals_per_s: &[u32]) -> Scenario {
    let mut load = LoadSpec::new(Kind::Subscribe);
    load.clients = Some(Sweep::Many(clients.to_vec()));
    load.items = Some(items(signals_per_s));
    load.publishing_ms = Some(INTERVAL_MS.into());
    load.sampling_ms = Some(INTERVAL_MS);
    load.queue = Some(1);
    let mut scenario = Scenario::new(name, load);
    scenario.server.update_ms = INTERVAL_MS;
    scenario.server.random = true;
    // The paper discards the first 20 s. The short form waits until the load is steady instead.
    scenario.time = if quick { time(0.05, 1.0, 2) } else { time(20.0, 30.0, 5) };
    scenario.time.steady = true;
    scenario
}

impl Experiment for Cpu {
    fn id(&self) -> &'static str {
        "burger-cpu"
    }
    fn question(&self) -> &'static str {
        "How much CPU does a server need, by signals per second and number of clients?"
    }
    fn source(&self) -> &'static str {
        SOURCE_CPU
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let rates: &[u32] = if wish.quick {
            &[10_000, 50_000, 200_000, 500_000]
        } else {
            &[1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 200_000, 300_000, 500_000]
        };
        let mut scenario = scenario("burger-cpu", wish.quick, &[1, 5, 10, 20, 30], rates);
        let mut conditions = conditions(wish, vec![scenario.clone()]);
        if wish.quick && wish.stacks.iter().any(|stack| stack == "own") {
            // The paper's model is fitted to the loads with ten clients only.
            for one in conditions.iter_mut().filter(|one| one.stack == "own" && one.clients == 10) {
                one.time.repetitions = 3;
            }
            // It is tested on the loads with 5 and 20 clients.
            scenario.load.clients = Some(Sweep::Many(vec![5, 20]));
            scenario.load.items = Some(items(&TRIED));
            scenario.time.duration_s = 0.6;
            conditions.extend(scenario.conditions());
        }
        if wish.stacks.iter().any(|stack| stack == "own") {
            let mut load = LoadSpec::new(Kind::PubSub);
            load.items = Some(items(rates));
            load.publishing_ms = Some(INTERVAL_MS.into());
            let mut pubsub = Scenario::new("burger-cpu", load);
            // All values are new in every cycle.
            pubsub.server.update_ms = 0.0;
            pubsub.time = if wish.quick { time(0.3, 1.0, 2) } else { time(20.0, 30.0, 5) };
            conditions.extend(pubsub.conditions());
        }
        Plan { conditions, skipped: Vec::new() }
    }
    fn uses(&self, _: Kind) -> bool {
        true
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let (published, measurements): (Vec<_>, Vec<_>) =
            measurements.iter().cloned().partition(|one| one.condition.kind == Kind::PubSub);
        let measurements = measurements.as_slice();
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "Server CPU and client cycle, 100 ms, mean ± 95 % interval",
            1,
            &[
                "stack",
                "clients",
                "signals/s",
                "CPU %",
                "µs/signal",
                "cycle p50 ms",
                "p99 ms",
                "worst item %",
                "steady",
            ],
        );
        for group in &groups {
            grid.row([
                stack_name(&group.condition.stack).to_owned(),
                group.condition.clients.to_string(),
                maybe(group.mean(Figure::PER_SECOND)),
                shown(group, Figure::SERVER_CPU_PERCENT),
                maybe(group.mean(Figure::SERVER_CPU_US_PER_SIGNAL)),
                maybe(group.mean(Figure::PROGRESS_CYCLE_P50_MS)),
                maybe(group.mean(Figure::PROGRESS_CYCLE_P99_MS)),
                maybe(group.mean(Figure::PROGRESS_WORST_ITEM_RATIO).map(|ratio| ratio * 100.0)),
                format!("{} of {}", group.valid.len() - group.unsteady(), group.valid.len()),
            ]);
        }
        outcome.grids.push(grid);
        for stack in stacks(measurements) {
            let name = stack_name(&stack);
            let mut series = by_clients(&groups, &stack, Figure::SERVER_CPU_PERCENT, 1.0);
            if stack == "own" {
                series.extend(publishing::line(&published, series.len()));
            }
            series.push(beside::published_cpu(series.len()));
            outcome.charts.push(Chart::plane(
                &format!("Server CPU against signals per second: {name}"),
                "One line per number of clients; the clients share the signals. The distance between lines is the cost \
                 of sessions. The PubSub line is a publisher without sessions (all threads of its process). Error bars \
                 are 95 % confidence intervals of the mean.",
                Axis::log("signals/s"),
                Axis::log("CPU, % of one core"),
                series,
            ));
            let series = by_clients(&groups, &stack, Figure::MESSAGE_INTERVAL_MEAN_US, 1e-3);
            outcome.charts.push(Chart::plane(
                &format!("Client cycle against signals per second: {name}"),
                "Time between two messages at a client; 100 ms is expected. Where a line leaves 100 ms, the server \
                 misses its publishing interval.",
                Axis::log("signals/s"),
                Axis::around("mean time between messages, ms"),
                series,
            ));
        }
        let curves: Vec<(String, Times)> = stacks(measurements)
            .iter()
            .flat_map(|stack| {
                [1, 30].map(|clients| {
                    let mut all = Times::new();
                    let of = |group: &&Group<'_>| {
                        group.condition.stack == *stack && group.condition.clients == clients
                    };
                    groups.iter().filter(of).for_each(|group| all.merge(&group.times("message_interval")));
                    (format!("{}, {}", stack_name(stack), self::clients(clients)), all)
                })
            })
            .collect();
        let title = "Time between two messages at a client";
        outcome.charts.extend(Chart::apart(Chart::distribution, title, &curves));
        outcome.grids.extend(beside::cpu(&groups, &stacks(measurements), &published));
        overhead(&groups, &stacks(measurements), outcome);
        removed::sessions(&groups, &stacks(measurements), outcome);
        removed::tails(&groups, &stacks(measurements), outcome);
        publishing::curve(&groups, &published, outcome);
        let rates: Vec<u32> = {
            let mut rates: Vec<u32> = groups.iter().filter_map(|group| group.condition.items).collect();
            rates.sort_unstable();
            rates.dedup();
            rates
        };
        for stack in stacks(measurements).iter().filter(|stack| *stack != "own") {
            cheaper(&groups, stack, outcome);
        }
        outcome.remark(format!(
            "Published: 35 % with 1 client and 80 % with 30 clients at 10 000 signals/s. The highest rate is 25 000 \
             signals/s with 1 client and 10 000 with 30. The 100 ms cycle is missed above 75 % CPU. Taktwerk's signals \
             change to random values every 100 ms, as in the paper; they are Doubles, the paper's are Floats. \
             Comparable: the order of the lines, the cost of sessions relative to one client, and the knee. Not \
             comparable: CPU percent, because a core here is much faster than that of a Raspberry Pi Zero. Rates here: \
             {} signals/s.",
            rates.iter().map(|rate| figures::thousands(i64::from(rate * 10))).collect::<Vec<_>>().join(", ")
        ));
    }
}

fn is_same_load(group: &Group<'_>, load: &Condition, stack: &str) -> bool {
    group.condition.stack == stack
        && group.condition.clients == load.clients
        && group.condition.items == load.items
        && group.condition.security == load.security
}

/// Whether our server needs less CPU than a peer for the same signals. Loads in which either stack missed cycles are
/// left out, because that stack delivered fewer signals.
fn cheaper(groups: &[Group<'_>], stack: &str, outcome: &mut Outcome) {
    let own = groups.iter().filter(|group| group.condition.stack == "own");
    let pairs = own.filter_map(|ours| {
        let peer = groups.iter().find(|group| is_same_load(group, ours.condition, stack))?;
        Some((ours, peer))
    });
    let (kept, missed): (Vec<_>, Vec<_>) =
        pairs.partition(|(ours, peer)| beside::is_kept(ours) && beside::is_kept(peer));
    let cpu = |group: &Group<'_>| group.metric(Figure::SERVER_CPU_PERCENT);
    let compared = kept.iter().filter_map(|(ours, peer)| {
        let (ours, peer) = (cpu(ours)?, cpu(peer)?);
        Some((mean(&ours.values)? / mean(&peer.values)?, is_less(&ours, &peer)))
    });
    let (ratios, verdicts): (Vec<f64>, Vec<Option<bool>>) = compared.unzip();
    let left_out = match missed.len() {
        0 => String::new(),
        missed => format!("; left out: {missed} loads in which one of the two missed cycles"),
    };
    let claim = "Taktwerk needs less CPU for the same signals than the peer";
    let Some(middle) = median(&ratios) else {
        if !missed.is_empty() {
            outcome.finding(
                claim,
                None,
                format!("{stack}: in every load, one of the two missed cycles{left_out}"),
            );
        }
        return;
    };
    let open = verdicts.iter().filter(|verdict| verdict.is_none()).count();
    let open = match open {
        0 => String::new(),
        open => format!("; {open} of them undecided: too few repetitions or too much noise"),
    };
    outcome.finding(
        claim,
        all_hold(verdicts),
        format!(
            "{} the CPU of {stack} (median; worst {}) over {} loads{open}{left_out}",
            times_as(middle),
            times_as(ratios.iter().copied().fold(f64::MIN, f64::max)),
            ratios.len()
        ),
    );
}

/// One line per number of clients: a figure against the signals per second that were delivered.
pub(super) fn by_clients(groups: &[Group<'_>], stack: &str, figure: Figure, factor: f64) -> Vec<Series> {
    let mut clients: Vec<u32> =
        groups.iter().filter(|group| group.condition.stack == stack).map(|g| g.condition.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let line = |(colour, count): (usize, u32)| {
        let of = |group: &&Group<'_>| group.condition.stack == stack && group.condition.clients == count;
        let mut points: Vec<Point> = groups
            .iter()
            .filter(of)
            .filter_map(|group| {
                let figure = group.metric(figure)?;
                let y = mean(&figure.values)? * factor;
                let interval = figure.mean_ci95.map(|(low, high)| (low.max(0.0) * factor, high * factor));
                Some(Point { x: group.mean(Figure::PER_SECOND)?, y, interval })
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { name: self::clients(count), mark: Mark::Line(points), colour }
    };
    clients.into_iter().enumerate().map(line).collect()
}

/// The cost of sessions: 30 clients compared with 1 at the same rate (the paper's RQ1), and whether cycles are kept.
fn overhead(groups: &[Group<'_>], stacks: &[String], outcome: &mut Outcome) {
    for stack in stacks {
        let name = stack_name(stack);
        let at = |clients: u32, items: Option<u32>| {
            groups.iter().find(|group| {
                group.condition.stack == *stack
                    && group.condition.clients == clients
                    && group.condition.items == items
            })
        };
        let Some(lowest) = groups.iter().filter_map(|group| group.condition.items).min() else { return };
        let cpu =
            |clients| at(clients, Some(lowest)).and_then(|group| group.metric(Figure::SERVER_CPU_PERCENT));
        if let (Some(few), Some(many)) = (cpu(1), cpu(30)) {
            let middle = |figure: &Repeated| mean(&figure.values).unwrap_or(figure.median);
            let (one, thirty) = (middle(&few), middle(&many));
            outcome.finding(
                "more clients cost more at the same rate",
                is_less(&few, &many),
                format!(
                    "{name} at {} signals/s: {} % with 1 client, {} % with 30, {} (published: 35 % and 80 %, {})",
                    figures::thousands(i64::from(lowest * 10)),
                    figures::number(one),
                    figures::number(thirty),
                    times_as(thirty / one),
                    times_as(80.0 / 35.0)
                ),
            );
        }
        let own: Vec<&Group<'_>> = groups.iter().filter(|group| group.condition.stack == *stack).collect();
        let missed: Vec<&&Group<'_>> = own.iter().filter(|group| beside::kept(group) != Some(true)).collect();
        let evidence = match missed.first() {
            None => format!("{name}: all {} loads", own.len()),
            Some(group) => format!(
                "{name}: {} of {} loads miss cycles in some or all repetitions; the first has {} and {} signals/s",
                missed.len(),
                own.len(),
                self::clients(group.condition.clients),
                figures::thousands(i64::from(group.condition.items.unwrap_or(0) * 10))
            ),
        };
        outcome.finding(
            "every 100 ms cycle is kept and every item gets its values",
            all_hold(own.iter().map(|group| beside::kept(group))),
            evidence,
        );
    }
}

impl Experiment for Security {
    fn id(&self) -> &'static str {
        "burger-security"
    }
    fn question(&self) -> &'static str {
        "What does Basic256Sha256 with SignAndEncrypt add to the server's CPU?"
    }
    fn source(&self) -> &'static str {
        "Burger et al. 2019, Figure 10 (RQ5): 50 % without and 60 % with, at 10 000 signals/s and 10 clients"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let rates: &[u32] = if wish.quick { &[50_000, 200_000] } else { &[5_000, 10_000, 50_000, 100_000] };
        let clients: &[u32] = if wish.quick { &[10] } else { &[1, 5, 10, 20, 30] };
        let plain = scenario("burger-security", wish.quick, clients, rates);
        let mut secret = plain.clone();
        secret.security = SecuritySpec::encrypted();
        let (stacks, others): (Vec<_>, Vec<_>) =
            wish.stacks.iter().cloned().partition(|stack| can_encrypt(stack));
        let note = |stack: String| {
            format!("{stack}: its test server here has no security, so there is nothing to compare")
        };
        let wish = Wish { stacks, ..*wish };
        Plan {
            conditions: conditions(&wish, vec![plain, secret]),
            skipped: others.into_iter().map(note).collect(),
        }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "Server CPU % without and with encryption",
            1,
            &["stack", "clients", "signals/s", "None", "Basic256Sha256", "points more", "times"],
        );
        let mut series: Vec<Series> = Vec::new();
        for (colour, stack) in stacks(measurements).iter().enumerate() {
            for is_secret in [false, true] {
                let of = |group: &&Group<'_>| {
                    group.condition.stack == *stack && group.condition.security.is_none() != is_secret
                };
                let mut points: Vec<Point> = groups
                    .iter()
                    .filter(of)
                    .filter(|group| group.condition.clients == 10)
                    .filter_map(|group| {
                        let cpu = group.metric(Figure::SERVER_CPU_PERCENT)?;
                        Some(Point {
                            x: group.mean(Figure::PER_SECOND)?,
                            y: mean(&cpu.values)?,
                            interval: cpu.mean_ci95,
                        })
                    })
                    .collect();
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                let name =
                    format!("{}, {}", stack_name(stack), if is_secret { "Basic256Sha256" } else { "None" });
                series.push(Series {
                    name,
                    mark: Mark::Line(points),
                    colour: colour * 2 + usize::from(is_secret),
                });
            }
        }
        let mut any = false;
        let mut beside = Beside::new();
        // The rate nearest to the paper's 10 000 signals/s; both with 10 clients.
        let distance = |items: &u32| items.abs_diff(1_000);
        let at = groups.iter().filter_map(|group| group.condition.items).min_by_key(distance);
        for plain in groups.iter().filter(|group| group.condition.security.is_none()) {
            let secret = groups.iter().find(|group| {
                !group.condition.security.is_none()
                    && group.condition.stack == plain.condition.stack
                    && group.condition.clients == plain.condition.clients
                    && group.condition.items == plain.condition.items
            });
            let Some(secret) = secret else { continue };
            let (Some(without), Some(with)) =
                (plain.mean(Figure::SERVER_CPU_PERCENT), secret.mean(Figure::SERVER_CPU_PERCENT))
            else {
                continue;
            };
            any = true;
            if (plain.condition.items, plain.condition.clients) == (at, 10) {
                let rate = plain.mean(Figure::PER_SECOND).unwrap_or(f64::NAN);
                beside::security(&plain.condition.stack, rate, without, with, &mut beside);
            }
            grid.row([
                stack_name(&plain.condition.stack).to_owned(),
                plain.condition.clients.to_string(),
                maybe(plain.mean(Figure::PER_SECOND)),
                shown(plain, Figure::SERVER_CPU_PERCENT),
                shown(secret, Figure::SERVER_CPU_PERCENT),
                figures::number(with - without),
                figures::number(with / without),
            ]);
            let cost = |group: &Group<'_>| group.metric(Figure::SERVER_CPU_US_PER_SIGNAL);
            outcome.finding(
                "encryption costs CPU",
                is_below(cost(plain).as_ref(), cost(secret).as_ref()),
                format!(
                    "{}, {} clients, {} signals/s: {} % and {} %, {} (published: {})",
                    stack_name(&plain.condition.stack),
                    plain.condition.clients,
                    maybe(plain.mean(Figure::PER_SECOND)),
                    figures::number(without),
                    figures::number(with),
                    times_as(with / without),
                    times_as(1.2)
                ),
            );
            if plain.condition.stack != "own" {
                let ours = groups.iter().find(|group| {
                    group.condition.stack == "own"
                        && !group.condition.security.is_none()
                        && group.condition.clients == plain.condition.clients
                        && group.condition.items == plain.condition.items
                });
                if let Some(ours) = ours {
                    outcome.finding(
                        "with encryption, Taktwerk needs less CPU than the peer with encryption",
                        is_below(cost(ours).as_ref(), cost(secret).as_ref()),
                        format!(
                            "{} signals/s: {} % against {} % of {} (and {} % of it without encryption)",
                            maybe(plain.mean(Figure::PER_SECOND)),
                            maybe(ours.mean(Figure::SERVER_CPU_PERCENT)),
                            figures::number(with),
                            plain.condition.stack,
                            figures::number(without),
                        ),
                    );
                }
            }
        }
        if any {
            outcome.grids.push(grid);
            outcome.grids.extend(beside.grid());
            outcome.charts.push(Chart::plane(
                "Server CPU with and without encryption, 10 clients",
                "The distance between two lines of one stack is the cost of signing and encrypting.",
                Axis::linear("signals/s"),
                Axis::linear("CPU, % of one core"),
                series,
            ));
        }
        outcome.remark(
            "Comparable: that encryption costs CPU, and its order of magnitude. Not comparable: the ratio to the load \
             without encryption. The cheaper a signal is, the larger is the share of encryption. The processor here \
             has instructions for AES and SHA; a Raspberry Pi Zero has none.",
        );
    }
}

impl Experiment for Threads {
    fn id(&self) -> &'static str {
        "burger-threads"
    }
    fn question(&self) -> &'static str {
        "Do more threads update the server's values faster?"
    }
    fn source(&self) -> &'static str {
        "Burger et al. 2019, Figures 11 and 12 (RQ6): 35 % less with 2 or 3 more threads on 4 cores, up to 50 % more on 1"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let sizes: &[u32] = &[100, 200_000];
        let scenarios = sizes.iter().map(|signals| {
            let mut load = LoadSpec::new(Kind::Update);
            load.threads = Some(Sweep::Many(vec![1, 2, 3, 4]));
            load.count = Some(15);
            load.publishing_ms = Some((if wish.quick { 50.0 } else { 500.0 }).into());
            let mut scenario = Scenario::new("burger-threads", load);
            scenario.server.signals = *signals;
            scenario.time = time(0.0, 1.0, if wish.quick { 2 } else { 15 });
            scenario
        });
        // Only the application's own threads are measured, so no peer is involved.
        let conditions = scenarios.flat_map(|scenario| scenario.conditions()).collect();
        Plan { conditions, skipped: Vec::new() }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "Run span of one cycle",
            0,
            &["signals", "threads", "p50 µs", "p95 µs", "max µs", "against 1"],
        );
        let mut beside = Beside::new();
        let mut sizes: Vec<u32> = groups.iter().map(|group| group.condition.server.signals).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in &sizes {
            let of = |group: &&Group<'_>| group.condition.server.signals == *size;
            let span = |group: &Group<'_>| group.times("run_span").percentile(50.0) as f64 / 1e3;
            let mut curves = Vec::new();
            // Among the runs with more than one thread; the run with one thread is the baseline.
            let mut best: Option<(u32, &Group<'_>)> = None;
            let alone = groups.iter().filter(of).find(|group| group.condition.threads == Some(1));
            let one = alone.map_or(f64::NAN, span);
            let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
            for group in groups.iter().filter(of) {
                let times = group.times("run_span");
                let threads = group.condition.threads.unwrap_or(1);
                if threads > 1 && best.is_none_or(|(_, quickest)| span(group) < span(quickest)) {
                    best = Some((threads, group));
                }
                let change = (span(group) / one - 1.0) * 100.0;
                if threads > 1 {
                    (least, most) = (least.min(change), most.max(change));
                }
                grid.row([
                    figures::thousands(i64::from(*size)),
                    threads.to_string(),
                    figures::number(span(group)),
                    figures::number(times.percentile(95.0) as f64 / 1e3),
                    figures::number(times.max() as f64 / 1e3),
                    format!("{change:+.0} %"),
                ]);
                let name = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
                curves.push((name, times));
            }
            if least.is_finite() {
                beside::threads(*size, least, most, &mut beside);
            }
            curves.sort_by(|a, b| a.0.cmp(&b.0));
            outcome.charts.push(Chart::distribution(
                &format!("Run span of {} signals", figures::thousands(i64::from(*size))),
                &curves,
            ));
            let (Some((threads, quickest)), Some(alone)) = (best, alone) else { continue };
            let of = |group: &Group<'_>| percentile(group, "run_span", 50.0);
            let (Some(few), Some(many)) = (of(alone), of(quickest)) else { continue };
            // A gain counts from 10 % on.
            let gains = scaled(&few, 0.9).and_then(|limit| is_less(&many, &limit));
            let (claim, holds) = if *size <= 1_000 {
                (
                    "with 100 signals, more threads do not help, because waking them takes longer than the work",
                    gains.map(|gains| !gains),
                )
            } else {
                ("with 200 000 signals, more threads shorten the run span by a tenth or more", gains)
            };
            outcome.finding(
                claim,
                holds,
                format!(
                    "{} with 1 thread; {} with {threads} (best)",
                    figures::micros(few.median),
                    figures::micros(many.median)
                ),
            );
        }
        outcome.grids.push(grid);
        outcome.grids.extend(beside.grid());
        outcome.remark(
            "The server runs and serves a client that subscribes to 100 of the signals. The paper's server was slow \
             enough that more threads paid for 100 signals on 4 cores. Taktwerk sets 100 signals in microseconds, so \
             the protocol is also run with 200 000 signals, where threads can help. The number of CPUs is listed at \
             the end of the report.",
        );
        outcome.remark(
            "Comparable: whether more threads pay off, and that they do not if there are fewer CPUs than threads. Not \
             comparable: absolute times, and percentages between machines with different numbers of CPUs (4 and 1 in \
             the paper, whose threads also had real-time priority).",
        );
    }
}

impl Experiment for Igmp {
    fn id(&self) -> &'static str {
        "burger-igmp"
    }
    fn question(&self) -> &'static str {
        "Is multicast filtered, or does it flood hosts that did not join?"
    }
    fn source(&self) -> &'static str {
        "Burger et al. 2019, §2 and §4.2"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        if let Err(error) = Switch::new(1) {
            let reason =
                format!("cannot create a bridge with IGMP snooping between network namespaces: {error}");
            return Plan { conditions: Vec::new(), skipped: vec![reason] };
        }
        let mut load = LoadSpec::new(Kind::Igmp);
        load.publishing_ms = Some(10.0.into());
        let mut scenario = Scenario::new("burger-igmp", load);
        // The switch learns during the warm-up which hosts joined.
        scenario.time = if wish.quick { time(4.0, 1.0, 2) } else { time(4.0, 10.0, 5) };
        Plan { conditions: scenario.conditions(), skipped: Vec::new() }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let Some(group) = groups.first() else { return };
        let mut grid = Grid::new(
            "Multicast packets at each host behind a kernel bridge",
            1,
            &[
                "switch",
                "messages sent",
                "messages received",
                "packets at joined host",
                "packets at unjoined host",
            ],
        );
        let snooping = [
            Figure::SNOOPING_MESSAGES_SENT,
            Figure::SNOOPING_MESSAGES_HEARD,
            Figure::SNOOPING_PACKETS_AT_JOINED,
            Figure::SNOOPING_PACKETS_AT_UNJOINED,
        ];
        let flooding = [
            Figure::FLOODING_MESSAGES_SENT,
            Figure::FLOODING_MESSAGES_HEARD,
            Figure::FLOODING_PACKETS_AT_JOINED,
            Figure::FLOODING_PACKETS_AT_UNJOINED,
        ];
        for (name, figures) in [("with IGMP snooping", snooping), ("without IGMP snooping", flooding)] {
            let counts = figures.map(|figure| shown(group, figure));
            grid.row(std::iter::once(name.to_owned()).chain(counts));
        }
        outcome.grids.push(grid);
        let unjoined = [Figure::SNOOPING_UNJOINED_PERCENT, Figure::FLOODING_UNJOINED_PERCENT];
        if let [Some(snooping), Some(flooding)] = unjoined.map(|figure| group.metric(figure)) {
            // Some packets arrive in any case: IGMP queries go to all hosts.
            outcome.finding(
                "a switch with IGMP snooping keeps multicast from hosts that did not join",
                is_under(&snooping, 2.0),
                format!(
                    "the unjoined host receives {} % of the packets sent",
                    figures::number(snooping.median)
                ),
            );
            outcome.finding(
                "a switch without IGMP snooping floods hosts that did not join",
                is_under(&flooding, 95.0).map(|is_kept_away| !is_kept_away),
                format!(
                    "the unjoined host receives {} % of the packets sent",
                    figures::number(flooding.median)
                ),
            );
        }
        outcome.remark(
            "The switch is the kernel's bridge between network namespaces, which are removed when the program ends. \
             The bridge is also the querier. In a plant, a switch or router must be the querier: without one, even a \
             switch with snooping floods.",
        );
        outcome.remark(
            "Comparable: whether multicast reaches hosts that did not join. The paper warns of this and gives no \
             figures. Not comparable: how fast a hardware switch learns and forgets members, and how many groups it \
             holds before it floods.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Content;
    use crate::measurement::group;
    use serde_json::json;

    /// Two repetitions of a load that differ by one per cent.
    fn measured(stack: &str, clients: u32, items: u32, cpu: f64, worst_item: f64) -> Vec<Measurement> {
        let mut scenario = scenario("burger-cpu", true, &[clients], &[items * 10]);
        scenario.stacks = vec![stack.to_owned()];
        let condition = scenario.conditions().remove(0);
        let one = |repetition: u32| {
            let document = json!({
                "per_second": items * 10,
                "server": {"cpu_percent": cpu * (1.0 + f64::from(repetition) / 100.0)},
                "message_interval": {"mean_us": 100_000.0}, "progress": {"worst_item_ratio": worst_item},
            });
            Measurement::from_document("burger-cpu", condition.clone(), repetition, document)
        };
        (0..2).map(one).collect()
    }

    #[test]
    fn loads_with_missed_cycles_are_not_compared() {
        let judge = |theirs: [(f64, f64); 2]| {
            let mut all = Vec::new();
            for (items, (cpu, worst_item)) in [1_000, 20_000].into_iter().zip(theirs) {
                all.extend(measured("own", 1, items, 5.0, 1.0));
                all.extend(measured("gopcua", 1, items, cpu, worst_item));
            }
            let mut outcome = Outcome::default();
            cheaper(&group(&all), "gopcua", &mut outcome);
            outcome.findings.remove(0)
        };
        let fine = judge([(20.0, 1.0), (40.0, 1.0)]);
        assert!(fine.holds == Some(true) && fine.evidence.contains("over 2 loads"), "{fine:?}");
        assert!(!fine.evidence.contains("left out"), "{fine:?}");
        // The peer uses less CPU, but delivers only a third of the requested signals.
        let behind = judge([(20.0, 1.0), (3.0, 0.3)]);
        assert_eq!(behind.holds, Some(true));
        assert!(behind.evidence.contains("over 1 loads; left out: 1 loads in which"), "{behind:?}");
        assert_eq!(judge([(20.0, 1.0), (3.0, 1.0)]).holds, Some(false));
        let open = judge([(20.0, 1.0), (5.1, 1.0)]);
        assert!(open.holds.is_none() && open.evidence.contains("1 of them undecided"), "{open:?}");
        assert_eq!(judge([(3.0, 0.1), (3.0, 0.3)]).holds, None);
    }

    #[test]
    fn chart_has_a_pubsub_line() {
        let mut load = LoadSpec::new(Kind::PubSub);
        load.items = Some(items(&[10_000, 50_000]));
        let published = Scenario::new("burger-cpu", load).conditions().into_iter().map(|condition| {
            let rate = condition.items.unwrap_or(0) * 10;
            let document = json!({"signals_per_s": rate, "process_cpu_percent": 0.5});
            Measurement::from_document("burger-cpu", condition, 0, document)
        });
        let mut all = measured("own", 1, 1_000, 2.0, 1.0);
        all.extend(measured("own", 30, 1_000, 6.0, 1.0));
        all.extend(published);
        let mut outcome = Outcome::default();
        Cpu.evaluate(&all, &mut outcome);
        let chart =
            outcome.charts.iter().find(|chart| chart.title.starts_with("Server CPU against")).unwrap();
        let Content::Plane { series, .. } = &chart.content else { panic!("{chart:?}") };
        let names: Vec<(&str, usize)> = series.iter().map(|one| (one.name.as_str(), one.colour)).collect();
        assert_eq!(names[..3], [("1 client", 0), ("30 clients", 1), ("PubSub", 2)]);
        assert!(names[3].0.starts_with("published"), "{names:?}");
        let Mark::Line(points) = &series[2].mark else { panic!("{series:?}") };
        assert_eq!(points.iter().map(|point| point.x).collect::<Vec<_>>(), [10_000.0, 50_000.0]);
        let more = outcome.findings.iter().find(|finding| finding.claim.starts_with("more clients")).unwrap();
        assert_eq!(more.holds, Some(true));
    }
}
