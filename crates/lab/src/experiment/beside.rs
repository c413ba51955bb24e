//! Burger et al. 2019 and Rocha et al. 2019, Figure 12: the figures in their text next to our measurements.

use super::published::{burger, rocha_fanin};
use super::{stack_name, times_as, valid_groups};
use crate::chart::{Mark, Point, Series};
use crate::figures;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, maybe};
use taktwerk_load::result::Figure;

/// A table with one row per published figure: the paper's value and ours.
pub(super) struct Beside {
    grid: Grid,
}

impl Beside {
    pub(super) fn new() -> Self {
        Self {
            grid: Grid::new(
                "Published and measured figures",
                2,
                &["figure", "measured stack", "published", "measured"],
            ),
        }
    }

    fn row(&mut self, figure: &str, stack: &str, published: String, measured: String) {
        self.grid.row([figure.to_owned(), stack_name(stack).to_owned(), published, measured]);
    }

    pub(super) fn grid(self) -> Option<Grid> {
        (!self.grid.rows.is_empty()).then_some(self.grid)
    }
}

fn with(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{} {unit}", figures::number(value)))
}

/// Signals per second that the load requested, at an interval of 100 ms.
fn asked(group: &Group<'_>) -> f64 {
    f64::from(group.condition.items.unwrap_or(0)) * 10.0
}

/// Whether every cycle of 100 ms was kept.
pub(super) fn is_kept(group: &Group<'_>) -> bool {
    let is_late = group.mean(Figure::MESSAGE_INTERVAL_MEAN_US).is_some_and(|us| us > 110_000.0);
    let is_behind = group.mean(Figure::PROGRESS_WORST_ITEM_RATIO).is_some_and(|ratio| ratio < 0.9);
    !is_late && !is_behind
}

/// Same as a verdict: true if every repetition kept its cycles, false if none did, otherwise undecided.
pub(super) fn kept(group: &Group<'_>) -> Option<bool> {
    let is_kept = |one: &&&Measurement| {
        !one.get(Figure::MESSAGE_INTERVAL_MEAN_US).is_some_and(|us| us > 110_000.0)
            && !one.get(Figure::PROGRESS_WORST_ITEM_RATIO).is_some_and(|ratio| ratio < 0.9)
    };
    match group.valid.iter().filter(is_kept).count() {
        0 => Some(false),
        all if all == group.valid.len() => Some(true),
        _ => None,
    }
}

/// The group with this number of clients whose rate is nearest to `rate`.
fn nearest<'a, 'm>(groups: &'a [&'a Group<'m>], clients: u32, rate: f64) -> Option<&'a Group<'m>> {
    let of = groups.iter().filter(|group| group.condition.clients == clients);
    let distance = |group: &&&Group<'_>| (asked(group) / rate).ln().abs();
    of.min_by(|a, b| distance(a).total_cmp(&distance(b))).copied()
}

/// RQ1: CPU, sessions, sustained rates, and from which load on cycles are missed.
pub(super) fn cpu(groups: &[Group<'_>], stacks: &[String], published: &[Measurement]) -> Option<Grid> {
    let mut beside = Beside::new();
    for stack in stacks {
        let own: Vec<&Group<'_>> = groups.iter().filter(|group| group.condition.stack == *stack).collect();
        let cpu = |clients| nearest(&own, clients, 10_000.0)?.mean(Figure::SERVER_CPU_PERCENT);
        let at = nearest(&own, 1, 10_000.0).map_or(10_000.0, asked);
        let rate = figures::number(at);
        let paper = [1, 30].map(|clients| {
            burger(&format!(
                "cpu at 10000 signals/s with {clients} client{}",
                if clients > 1 { "s" } else { "" }
            ))
        });
        beside.row(
            &format!("CPU at {rate} signals/s, 1 client"),
            stack,
            with(paper[0], "%"),
            with(cpu(1), "%"),
        );
        beside.row(
            &format!("CPU at {rate} signals/s, 30 clients"),
            stack,
            with(paper[1], "%"),
            with(cpu(30), "%"),
        );
        let times = |pair: Option<(f64, f64)>| pair.map_or_else(|| "–".to_owned(), |(a, b)| times_as(b / a));
        let ours = cpu(1).zip(cpu(30));
        beside.row("CPU of 30 clients relative to 1", stack, times(paper[0].zip(paper[1])), times(ours));
        let more = ours.map(|(one, thirty)| thirty - one);
        beside.row(
            "CPU of 30 clients minus 1",
            stack,
            with(burger("session overhead of 30 clients"), "points"),
            with(more, "points"),
        );
        for (clients, finding) in
            [(1, "client/server max rate 1 client"), (30, "client/server max rate 30 clients")]
        {
            beside.row(
                &format!("most signals/s, {}", super::clients(clients)),
                stack,
                maybe(burger(finding)),
                sustained(own.iter().filter(|group| group.condition.clients == clients).copied()),
            );
        }
        let missed = own.iter().filter(|group| !is_kept(group));
        let missed =
            missed.filter_map(|group| group.mean(Figure::SERVER_CPU_PERCENT)).fold(f64::INFINITY, f64::min);
        let kept = own.iter().filter(|group| is_kept(group));
        let kept = kept.filter_map(|group| group.mean(Figure::SERVER_CPU_PERCENT)).fold(f64::NAN, f64::max);
        beside.row(
            "CPU above which the 100 ms cycle is missed",
            stack,
            with(burger("server cpu above which the 100 ms cycle is missed"), "%"),
            if missed.is_finite() {
                format!("{} % missed it", figures::number(missed))
            } else {
                format!("kept up to {} %", figures::number(kept))
            },
        );
        if let Some(group) = nearest(&own, 10, 25_000.0) {
            beside.row(
                &format!("client cycle, 10 clients, {} signals/s", figures::number(asked(group))),
                stack,
                with(burger("client cycle time with 10 clients at 25000 signals/s"), "ms"),
                with(group.mean(Figure::MESSAGE_INTERVAL_MEAN_US).map(|us| us / 1e3), "ms"),
            );
        }
        let most = own.iter().filter(|group| is_kept(group)).map(|group| group.condition.clients).max();
        beside.row(
            "sessions without an error",
            stack,
            maybe(burger("max sessions before server errors")),
            most.map_or_else(|| "–".to_owned(), |most| format!("{most} (highest number tried)")),
        );
    }
    let publishers = valid_groups(published);
    if let Some(first) = publishers.first() {
        let kept = publishers.iter().filter(|group| group.mean(Figure::CYCLES_MISSED) == Some(0.0));
        let most = kept.map(asked).fold(f64::NAN, f64::max);
        beside.row(
            "most signals/s, PubSub",
            &first.condition.stack,
            maybe(burger("pubsub max rate before cpu saturation")),
            if most.is_finite() { format!("at least {}", figures::number(most)) } else { "–".to_owned() },
        );
    }
    beside.grid()
}

/// The highest rate up to which all cycles were kept, and the lowest rate that missed cycles.
fn sustained<'a, 'm: 'a>(groups: impl Iterator<Item = &'a Group<'m>>) -> String {
    let groups: Vec<&Group<'_>> = groups.collect();
    let missed =
        groups.iter().filter(|group| !is_kept(group)).map(|group| asked(group)).fold(f64::INFINITY, f64::min);
    let below = groups.iter().filter(|group| is_kept(group) && asked(group) < missed);
    let most = below.map(|group| asked(group)).fold(f64::NAN, f64::max);
    let most = figures::number(most);
    if missed.is_finite() {
        format!("{most}, not {}", figures::number(missed))
    } else {
        format!("at least {most}")
    }
}

/// The paper's CPU against signals per second on a Raspberry Pi Zero.
pub(super) fn published_cpu(colour: usize) -> Series {
    let figure = |clients: &str| burger(&format!("cpu at 10000 signals/s with {clients}"));
    let dots = ["1 client", "30 clients"].into_iter().filter_map(figure).map(|cpu| Point::new(10_000.0, cpu));
    Series {
        name: "published: 1 client (lower) and 30 (upper)".to_owned(),
        mark: Mark::Dots(dots.collect()),
        colour,
    }
}

/// The paper's memory range for all loads, as a band up to a rate.
pub(super) fn published_memory(most: f64, colour: usize) -> Series {
    let between = burger("server memory low").zip(burger("server memory high"));
    let point = |x: f64| between.map(|(low, high)| Point { x, y: high, interval: Some((low, high)) });
    let band = [0.0, most].into_iter().filter_map(point).collect();
    Series { name: "published, all loads".to_owned(), mark: Mark::Band(band), colour }
}

/// RQ2: memory.
pub(super) fn memory(stack: &str, low: f64, high: f64, beside: &mut Beside) {
    for (figure, finding, bytes) in
        [("least memory", "server memory low", low), ("most memory", "server memory high", high)]
    {
        beside.row(figure, stack, with(burger(finding), "MB"), with(Some(bytes / 1e6), "MB"));
    }
}

/// RQ3: bandwidth at the paper's rates.
pub(super) fn network(stack: &str, most: f64, beside: &mut Beside) {
    let bound = burger("network load upper bound");
    beside.row(
        "bandwidth of all loads up to 50 000 signals/s",
        stack,
        format!("below {}", with(bound, "Mbit/s")),
        format!("at most {}", with(Some(most), "Mbit/s")),
    );
}

/// RQ5: encryption at the lowest measured rate.
pub(super) fn security(stack: &str, rate: f64, without: f64, with_it: f64, beside: &mut Beside) {
    let [plain, secret] =
        ["unencrypted", "encrypted"].map(|how| burger(&format!("cpu at 10000 signals/s 10 clients {how}")));
    let at = format!("10 clients, {} signals/s", figures::number(rate));
    beside.row(&format!("CPU without encryption, {at}"), stack, with(plain, "%"), with(Some(without), "%"));
    beside.row(&format!("CPU with encryption, {at}"), stack, with(secret, "%"), with(Some(with_it), "%"));
    let published = plain.zip(secret).map_or_else(|| "–".to_owned(), |(a, b)| times_as(b / a));
    beside.row("CPU with encryption relative to without", stack, published, times_as(with_it / without));
}

/// RQ6: more threads, as a change of the run span in percent.
pub(super) fn threads(signals: u32, best: f64, worst: f64, beside: &mut Beside) {
    let signed = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:+.0} %"));
    let of = figures::thousands(i64::from(signals));
    beside.row(
        &format!("best run span with 2 to 4 threads, {of} signals"),
        "own",
        signed(burger("server run span change with 2-3 extra threads on 4 cores")),
        signed(Some(best)),
    );
    beside.row(
        &format!("worst run span with 2 to 4 threads, {of} signals"),
        "own",
        signed(burger("server run span change with extra threads on 1 core")),
        signed(Some(worst)),
    );
}

/// Rocha, Figure 12, quoted from its text.
pub(super) fn clients(groups: &[Group<'_>]) -> Option<Grid> {
    let mut beside = Beside::new();
    for group in groups {
        let (clients, stack) = (group.condition.clients, group.condition.stack.as_str());
        let is_mqtt = crate::scenario::broker(stack).is_some();
        let said = rocha_fanin(clients, is_mqtt);
        // The paper has no figures for OPC UA without a server.
        if said.is_empty() || stack == crate::scenario::BROKERLESS || crate::scenario::is_uadp(stack) {
            continue;
        }
        let times = group.times("transaction");
        let measured = format!(
            "p50 {} ms, at most {} ms",
            figures::number(times.percentile(50.0) as f64 / 1e6),
            figures::number(times.max() as f64 / 1e6)
        );
        beside.row(&format!("{clients} clients"), stack, said.join("; "), measured);
    }
    beside.grid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::group;
    use crate::scenario::{Kind, LoadSpec, Scenario, Sweep};
    use serde_json::json;

    fn measured(clients: u32, items: u32, cpu: f64, cycle_us: f64) -> Measurement {
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.clients = Some(Sweep::One(clients));
        load.items = Some(Sweep::One(items));
        load.publishing_ms = Some(100.0.into());
        let condition = Scenario::new("x", load).conditions().remove(0);
        let document = json!({
            "server": {"cpu_percent": cpu}, "message_interval": {"mean_us": cycle_us},
            "progress": {"worst_item_ratio": 1.0},
        });
        Measurement::from_document("burger-cpu", condition, 0, document)
    }

    #[test]
    fn published_and_measured_figures_share_a_row() {
        let all = [
            measured(1, 1_000, 2.0, 100_000.0),
            measured(1, 5_000, 20.0, 130_000.0),
            measured(30, 1_000, 6.0, 100_000.0),
            measured(10, 2_500, 4.0, 100_000.0),
        ];
        let grid = cpu(&group(&all), &["own".to_owned()], &[]).unwrap();
        let row = |figure: &str, at: usize| {
            let found = grid.rows.iter().filter(|row| row[0].starts_with(figure)).nth(at);
            let row = found.unwrap_or_else(|| panic!("{figure}: {:?}", grid.rows));
            (row[2].as_str(), row[3].as_str())
        };
        assert_eq!(row("CPU at 10\u{202f}000 signals/s, 1 client", 0), ("35.0 %", "2.00 %"));
        assert_eq!(row("CPU of 30 clients relative", 0), ("2.29 times", "3.00 times"));
        assert_eq!(row("CPU of 30 clients minus", 0), ("45.0 points", "4.00 points"));
        assert_eq!(row("most signals/s, 1 client", 0), ("25\u{202f}000", "10\u{202f}000, not 50\u{202f}000"));
        assert_eq!(row("CPU above which", 0), ("75.0 %", "20.0 % missed it"));
        assert_eq!(row("client cycle", 0), ("160 ms", "100 ms"));
        assert!(grid.rows.iter().all(|row| row[2] != "–"), "{:?}", grid.rows);
    }
}
