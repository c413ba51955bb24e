//! Burger et al. 2019, RQ2 and RQ3: memory and bandwidth of the loads of `burger-cpu`.

use super::beside::{self, Beside};
use super::burger::{self, by_clients};
use super::{Experiment, Plan, Wish, stack_name, stacks, valid_groups};
use crate::chart::{Axis, Chart, Point};
use crate::figures;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use taktwerk_load::result::Figure;

pub(super) struct Memory;
pub(super) struct Network;

/// Items at the highest rates that the paper measured, 50 000 signals/s.
const PUBLISHED_ITEMS: u32 = 5_000;

impl Experiment for Memory {
    fn id(&self) -> &'static str {
        "burger-memory"
    }
    fn question(&self) -> &'static str {
        "How much memory does the server need for these loads?"
    }
    fn source(&self) -> &'static str {
        "Burger et al. 2019, Figure 8 (RQ2): 11 to 15 MB for all loads"
    }
    fn data(&self) -> &'static str {
        "burger-cpu"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        burger::Cpu.plan(wish)
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "Resident memory at the end of the window",
            1,
            &["stack", "clients", "items", "RSS MB", "growth in the window kB"],
        );
        for group in &groups {
            grid.row([
                stack_name(&group.condition.stack).to_owned(),
                group.condition.clients.to_string(),
                group.condition.items.unwrap_or(0).to_string(),
                maybe(group.mean(Figure::SERVER_RSS_BYTES).map(|bytes| bytes / 1e6)),
                maybe(group.mean(Figure::SERVER_RSS_GROWTH_BYTES).map(|bytes| bytes / 1e3)),
            ]);
        }
        outcome.grids.push(grid);
        let mut beside = Beside::new();
        for stack in stacks(measurements) {
            let mut series = by_clients(&groups, &stack, Figure::SERVER_RSS_BYTES, 1e-6);
            let most =
                series.iter().flat_map(|one| one.mark.points()).map(|point| point.x).fold(0.0, f64::max);
            series.push(beside::published_memory(most, series.len()));
            outcome.charts.push(Chart::plane(
                &format!("Memory against signals per second: {}", stack_name(&stack)),
                "The distance between lines is the memory of sessions, the slope that of nodes and items.",
                Axis::linear("signals/s"),
                Axis::linear("resident memory, MB"),
                series,
            ));
            let sizes = of_stack(&groups, &stack).filter_map(|group| group.mean(Figure::SERVER_RSS_BYTES));
            let (low, high) = sizes.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
            if high < low {
                continue;
            }
            beside::memory(&stack, low, high, &mut beside);
        }
        outcome.grids.extend(beside.grid());
        outcome.remark(
            "Comparable: the order of magnitude, and that memory hardly depends on the rate. Not comparable: \
             megabytes, because page size and libraries differ, and rates that the paper's server did not reach.",
        );
    }
}

impl Experiment for Network {
    fn id(&self) -> &'static str {
        "burger-network"
    }
    fn question(&self) -> &'static str {
        "How much bandwidth do these loads need?"
    }
    fn source(&self) -> &'static str {
        "Burger et al. 2019, Figure 9 (RQ3): less than 6 Mbit/s for all loads, up to 40 000 signals/s"
    }
    fn data(&self) -> &'static str {
        "burger-cpu"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        burger::Cpu.plan(wish)
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "Bytes on the wire as Ethernet carries them, both directions",
            1,
            &[
                "stack",
                "clients",
                "signals/s",
                "Mbit/s",
                "payload %",
                "TCP/IP %",
                "Ethernet %",
                "byte/signal",
            ],
        );
        for group in &groups {
            let total = group.mean(Figure::WIRE_TOTAL_BYTES);
            let share = |figure: Figure| Some(group.mean(figure)? / total? * 100.0);
            let payload = share(Figure::WIRE_PAYLOAD_IN_BYTES)
                .zip(share(Figure::WIRE_PAYLOAD_OUT_BYTES))
                .map(|(a, b)| a + b);
            let per_signal = || Some(total? / group.mean(Figure::NOTIFICATIONS)?);
            grid.row([
                stack_name(&group.condition.stack).to_owned(),
                group.condition.clients.to_string(),
                maybe(group.mean(Figure::PER_SECOND)),
                maybe(mbit_per_s(group)),
                maybe(payload),
                maybe(share(Figure::WIRE_TCP_IP_BYTES)),
                maybe(share(Figure::WIRE_ETHERNET_BYTES)),
                maybe(per_signal()),
            ]);
        }
        outcome.grids.push(grid);
        outcome.charts.extend(Chart::lines_apart(
            "Bandwidth against signals per second",
            "The slope is the size of a signal on the wire. The offset at the far left is the cost of messages and \
             acknowledgements.",
            (Axis::linear("signals/s"), Axis::linear("Mbit/s")),
            bandwidth_lines(&groups, &stacks(measurements)),
        ));
        let mut beside = Beside::new();
        for stack in stacks(measurements) {
            let own: Vec<&Group<'_>> = of_stack(&groups, &stack).collect();
            let name = stack_name(&stack);
            // The paper's server did not reach higher rates.
            let published = own.iter().filter(|group| group.condition.items.unwrap_or(0) <= PUBLISHED_ITEMS);
            let most = published.filter_map(|group| mbit_per_s(group)).fold(f64::NAN, f64::max);
            if most.is_finite() {
                beside::network(&stack, most, &mut beside);
            }
            first_to_fill(name, &own, outcome);
        }
        outcome.grids.extend(beside.grid());
        outcome.remark(
            "Payload, acknowledgements and retransmissions are the kernel's counts per connection; Ethernet frames and \
             headers are computed from them. Comparable: bytes per signal. (The paper's 6 Mbit/s at 25 000 to 40 000 \
             float signals/s are 19 to 30 bytes each; a Double with both timestamps has 26 bytes without any header.) \
             Not comparable: Mbit/s at rates that the paper's server did not reach.",
        );
    }
}

/// Groups of one stack.
fn of_stack<'a, 'm>(groups: &'a [Group<'m>], stack: &'a str) -> impl Iterator<Item = &'a Group<'m>> {
    groups.iter().filter(move |group| group.condition.stack == stack)
}

/// Bandwidth of a load as carried by Ethernet, in Mbit/s.
fn mbit_per_s(group: &Group<'_>) -> Option<f64> {
    Some(group.mean(Figure::WIRE_TOTAL_BYTES)? * 8.0 / group.mean(Figure::WINDOW_S)? / 1e6)
}

/// Bandwidth against signals for the smallest and the largest number of clients of each stack.
fn bandwidth_lines(groups: &[Group<'_>], stacks: &[String]) -> Vec<(String, Vec<Point>)> {
    let mut lines = Vec::new();
    for stack in stacks {
        for clients in [1, 30] {
            let own = of_stack(groups, stack).filter(|group| group.condition.clients == clients);
            let point =
                |group: &Group<'_>| Some(Point::new(group.mean(Figure::PER_SECOND)?, mbit_per_s(group)?));
            let mut points: Vec<Point> = own.filter_map(point).collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            lines.push((format!("{}, {}", stack_name(stack), super::clients(clients)), points));
        }
    }
    lines
}

/// The first limit reached if the heaviest load grew: a core or a network.
fn first_to_fill(name: &str, groups: &[&Group<'_>], outcome: &mut Outcome) {
    let heaviest = groups.iter().filter_map(|group| {
        let (signals, mbit) = (group.mean(Figure::PER_SECOND)?, mbit_per_s(group)?);
        let cpu = group.mean(Figure::SERVER_CPU_PERCENT).filter(|cpu| *cpu > 0.0)?;
        Some((signals, mbit, cpu))
    });
    let Some((signals, mbit, cpu)) = heaviest.max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let core = signals * 100.0 / cpu;
    let full = |link: f64| signals * link / mbit.max(1e-9);
    let thousands = |value: f64| figures::thousands((value / 1e3).round() as i64 * 1_000);
    let first = match (core < full(100.0), core < full(1_000.0)) {
        (true, _) => "the limit is the CPU on both",
        (false, true) => "the limit is the network on Fast Ethernet and the CPU on Gigabit Ethernet",
        (false, false) => "the limit is the network on both",
    };
    outcome.remark(format!(
        "{name}, extrapolated from its heaviest load: one core is saturated at {} signals/s, Fast Ethernet at {}, \
         Gigabit Ethernet at {}: {first} (on the paper's server, the CPU).",
        thousands(core),
        thousands(full(100.0)),
        thousands(full(1_000.0)),
    ));
}
