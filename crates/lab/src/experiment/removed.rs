//! Faults that the papers found but did not explain: expensive sessions, drifting publisher periods, cycles with a long
//! tail, and PubSub that is slower than a subscription. Compares our figures, the peers' and the published ones.

use super::beside::is_kept;
use super::published::{burger, morato_delivery, morato_pubsub};
use super::{clients, is_below, is_less, is_under, percentile, stack_name, times_as};
use crate::figures;
use crate::measurement::Group;
use crate::outcome::{Grid, Outcome, interval, maybe};
use crate::scenario::{CpuCondition, Kind};
use crate::statistics::{Repeated, difference_ci95, median};
use taktwerk_load::result::Figure;

/// Clients of the paper's smallest and largest load.
const FEW: u32 = 1;
const MANY: u32 = 30;
/// Points of CPU percent as microseconds per second.
const POINT_US: f64 = 1e4;
/// Limit for the publisher's drift, in parts per million: above the drift of a quartz, and 360 ms per hour.
const DRIFT_PPM: f64 = 100.0;

/// Cost of each session beyond the first for a server.
struct Session {
    /// Percentage points of CPU in each repetition.
    points: Repeated,
    /// Messages per second and session.
    messages: f64,
    /// CPU of all clients relative to one client.
    times: Option<f64>,
}

impl Session {
    /// Computed from the same load with one client and with many, per repetition, because these were measured one after
    /// the other.
    fn of(groups: &[Group<'_>], stack: &str, items: u32) -> Option<Self> {
        let at = |clients: u32| {
            groups.iter().find(|group| {
                let condition = group.condition;
                condition.stack == stack && condition.clients == clients && condition.items == Some(items)
            })
        };
        let (one, many) = (at(FEW)?, at(MANY)?);
        if !is_kept(one) || !is_kept(many) {
            return None;
        }
        let cpu = Figure::SERVER_CPU_PERCENT;
        let pairs = many.valid.iter().filter_map(|more| {
            let less = one.valid.iter().find(|less| less.repetition == more.repetition)?;
            Some((more.get(cpu)? - less.get(cpu)?) / f64::from(MANY - FEW))
        });
        let interval_ms = one.condition.publishing_ms.filter(|ms| *ms > 0.0)?;
        Some(Self {
            points: Repeated::new(pairs.collect())?,
            messages: 1e3 / interval_ms,
            times: many.mean(cpu).zip(one.mean(cpu)).map(|(many, one)| many / one),
        })
    }

    /// Microseconds per message.
    fn us(&self, points: f64) -> f64 {
        points * POINT_US / self.messages
    }

    fn text(&self) -> String {
        let points = self.points.median;
        format!("{} points, {} per message", figures::number(points), figures::micros(self.us(points)))
    }
}

/// Cost of each further session: ours, the peers' and the paper's.
pub(super) fn sessions(groups: &[Group<'_>], stacks: &[String], outcome: &mut Outcome) {
    let Some(items) = groups.iter().filter_map(|group| group.condition.items).min() else { return };
    let of = |stack: &String| Some((stack.clone(), Session::of(groups, stack, items)?));
    let costs: Vec<(String, Session)> = stacks.iter().filter_map(of).collect();
    if costs.is_empty() {
        return;
    }
    let mut grid = Grid::new(
        &format!(
            "Cost of each session beyond the first, {MANY} clients compared with {FEW} at {} signals/s",
            figures::thousands(i64::from(items) * 10)
        ),
        1,
        &["stack", "CPU percentage points", "µs per message", "relative to 1 client"],
    );
    for (stack, cost) in &costs {
        grid.row([
            stack_name(stack).to_owned(),
            interval(Some(&cost.points)),
            figures::number(cost.us(cost.points.median)),
            maybe(cost.times),
        ]);
    }
    // Ten messages per second, as in all of these loads.
    let published = burger("session overhead of 30 clients").map(|points| points / f64::from(MANY - FEW));
    let [one, many] =
        ["1 client", "30 clients"].map(|clients| burger(&format!("cpu at 10000 signals/s with {clients}")));
    grid.row([
        "published, Raspberry Pi Zero".to_owned(),
        maybe(published),
        maybe(published.map(|points| points * POINT_US / 10.0)),
        maybe(many.zip(one).map(|(many, one)| many / one)),
    ]);
    outcome.grids.push(grid);
    let Some((_, own)) = costs.iter().find(|(stack, _)| stack == "own") else { return };
    for (stack, peer) in costs.iter().filter(|(stack, _)| stack != "own") {
        outcome.finding(
            "a further session costs less CPU than the peer's",
            is_smaller(&own.points, &peer.points),
            format!("{}; {stack}: {}", own.text(), peer.text()),
        );
    }
}

/// Whether one difference is smaller than another. Differences may be negative; a single negative sample is noise,
/// because no session can have a negative cost.
fn is_smaller(one: &Repeated, other: &Repeated) -> Option<bool> {
    match difference_ci95(&one.values, &other.values) {
        None if one.median <= 0.0 || other.median <= 0.0 => None,
        None => is_less(one, other),
        Some((_, high)) if high < 0.0 => Some(true),
        Some((low, _)) if low > 0.0 => Some(false),
        Some(_) => None,
    }
}

/// The tail of a client's cycle under one load: p99 divided by p50, per repetition.
fn tail(group: &Group<'_>) -> Option<Repeated> {
    let of = |figure: Figure| -> Vec<f64> {
        group.valid.iter().filter_map(|one| one.get(figure)).filter(|ms| *ms > 0.0).collect()
    };
    let (p99, p50) = (of(Figure::PROGRESS_CYCLE_P99_MS), of(Figure::PROGRESS_CYCLE_P50_MS));
    if p99.len() != p50.len() {
        return None;
    }
    Repeated::new(p99.iter().zip(&p50).map(|(p99, p50)| p99 / p50).collect())
}

/// Regularity of a client's cycle: ours and the peers', for loads that both sustained.
pub(super) fn tails(groups: &[Group<'_>], stacks: &[String], outcome: &mut Outcome) {
    let kept = |stack: &str| -> Vec<(&Group<'_>, Repeated)> {
        let own = groups.iter().filter(|group| group.condition.stack == stack && is_kept(group));
        own.filter_map(|group| Some((group, tail(group)?))).collect()
    };
    let mut grid = Grid::new(
        "Regularity of a client's cycle (p99 ÷ p50), for loads that were sustained",
        1,
        &["stack", "loads", "median", "worst", "clients", "signals/s"],
    );
    for stack in stacks {
        let tails = kept(stack);
        let all: Vec<f64> = tails.iter().map(|(_, tail)| tail.median).collect();
        let worst = tails.iter().max_by(|a, b| a.1.median.total_cmp(&b.1.median));
        let (Some(middle), Some((group, worst))) = (median(&all), worst) else { continue };
        grid.row([
            stack_name(stack).to_owned(),
            all.len().to_string(),
            figures::number(middle),
            figures::number(worst.median),
            group.condition.clients.to_string(),
            figures::thousands(i64::from(group.condition.items.unwrap_or(0)) * 10),
        ]);
    }
    outcome.grids.push(grid);
    let own = kept("own");
    for stack in stacks.iter().filter(|stack| *stack != "own") {
        let theirs = kept(stack);
        let pairs: Vec<(&Group<'_>, &Repeated, &Repeated)> = own
            .iter()
            .filter_map(|(ours, tail)| {
                let is_same = |(group, _): &&(&Group<'_>, Repeated)| {
                    (group.condition.clients, group.condition.items)
                        == (ours.condition.clients, ours.condition.items)
                };
                Some((*ours, tail, &theirs.iter().find(is_same)?.1))
            })
            .collect();
        // The verdict depends on how much the ratios differ between loads.
        let logarithms = pairs.iter().map(|(_, ours, theirs)| (ours.median / theirs.median).ln());
        let Some(ratio) = Repeated::new(logarithms.collect()) else { continue };
        let longest =
            pairs.iter().max_by(|a, b| (a.1.median / a.2.median).total_cmp(&(b.1.median / b.2.median)));
        let worst = longest.map_or_else(String::new, |(group, ours, theirs)| {
            format!(
                "; worst ratio with {} and {} signals/s: {} and {}",
                clients(group.condition.clients),
                figures::thousands(i64::from(group.condition.items.unwrap_or(0)) * 10),
                figures::number(ours.median),
                figures::number(theirs.median)
            )
        });
        outcome.finding(
            "a client's cycle has a shorter tail than with the peer (p99 over p50)",
            is_under(&ratio, 0.0),
            format!(
                "{} that of {stack} (median over {} loads){worst}",
                times_as(ratio.median.exp()),
                pairs.len()
            ),
        );
    }
}

/// Delay of a publisher against its schedule after one hour, in milliseconds, for a drift in parts per million.
fn behind_ms(ppm: f64) -> f64 {
    3.6e6 * ppm / (1e6 + ppm)
}

/// Drift of the publisher's period: ours and the paper's.
pub(super) fn drift(publishers: &[Group<'_>], outcome: &mut Outcome) {
    let mut grid = Grid::new(
        "Drift of the publisher: mean period compared with the configured one",
        1,
        &["publisher", "signals/s", "ppm", "ms behind after an hour"],
    );
    let mut all = Vec::new();
    for group in publishers {
        let Some(ppm) = group.metric(Figure::DRIFT_PPM) else { continue };
        grid.row([
            stack_name(&group.condition.stack).to_owned(),
            figures::thousands(i64::from(group.condition.items.unwrap_or(0)) * 10),
            interval(Some(&ppm)),
            figures::number(behind_ms(ppm.median)),
        ]);
        all.extend(ppm.values);
    }
    let Some(all) = Repeated::new(all) else { return };
    // The paper's text: "up to more than 150 ms", where 100 ms were configured.
    let published =
        burger("pubsub cycle time at the subscriber at high rates").map(|ms| (ms / 100.0 - 1.0) * 1e6);
    if let Some(ppm) = published {
        let text = |value: f64| format!("up to {} and more", figures::number(value));
        grid.row([
            "published, commercial SDK (beta)".to_owned(),
            "high rates".to_owned(),
            text(ppm),
            text(behind_ms(ppm)),
        ]);
    }
    outcome.grids.push(grid);
    outcome.finding(
        &format!("the publisher's period drifts by less than {DRIFT_PPM} ppm"),
        is_within(&all, DRIFT_PPM),
        format!(
            "{} ppm (median of {} windows; mean {}), {} ms behind after an hour (published: {} ms)",
            figures::number(all.median),
            all.values.len(),
            interval(Some(&all)),
            figures::number(behind_ms(all.median)),
            maybe(published.map(behind_ms))
        ),
    );
}

/// From the message being ready to its receipt: PubSub compared with a subscription of the same stack. Both receivers
/// sleep until a message arrives. The receiver that wakes shortly before a message is due has its own column.
pub(super) fn services(groups: &[Group<'_>], stacks: &[String], outcome: &mut Outcome) {
    let mut grid = Grid::new(
        "PubSub compared with a subscription of the same stack: from the message being ready to its receipt",
        2,
        &["stack", "CPU", "PubSub µs", "subscription µs", "ratio", "PubSub, early wake-up µs"],
    );
    for stack in stacks {
        for cpu in CpuCondition::PLACED {
            let of = |kind: Kind, asleep: bool| {
                let is = |group: &&Group<'_>| {
                    let condition = group.condition;
                    condition.stack == *stack
                        && condition.kind == kind
                        && condition.cpu.condition == cpu
                        && condition.asleep == asleep
                };
                percentile(groups.iter().find(is)?, "transfer", 50.0)
            };
            let Some((pubsub, subscription)) = of(Kind::PubSub, true).zip(of(Kind::Subscribe, false)) else {
                continue;
            };
            let awake = of(Kind::PubSub, false).map(|awake| awake.median);
            let ratio = pubsub.median / subscription.median;
            grid.row([
                format!("{}, p50", stack_name(stack)),
                cpu.name().to_owned(),
                figures::number(pubsub.median),
                figures::number(subscription.median),
                figures::number(ratio),
                maybe(awake),
            ]);
            if stack == "own" {
                outcome.finding(
                    "PubSub delivers sooner than a subscription, with sleeping receivers (the paper found the opposite)",
                    is_below(Some(&pubsub), Some(&subscription)),
                    format!(
                        "{}: p50 {} over PubSub, {} over a subscription: {}{}",
                        cpu.name(),
                        figures::micros(pubsub.median),
                        figures::micros(subscription.median),
                        times_as(ratio),
                        awake.map_or_else(String::new, |us| {
                            format!("; {} if the receiver wakes shortly before", figures::micros(us))
                        })
                    ),
                );
            }
        }
    }
    if grid.rows.is_empty() {
        return;
    }
    for (is_isolated, cpu) in [(true, CpuCondition::Isolated), (false, CpuCondition::Shared)] {
        let mean = |of: fn(&str, bool) -> Option<(f64, f64)>| Some(of("open62541", is_isolated)?.0);
        let Some((pubsub, subscription)) = mean(morato_pubsub).zip(mean(morato_delivery)) else { continue };
        grid.row([
            "open62541, mean, published".to_owned(),
            cpu.name().to_owned(),
            figures::number(pubsub),
            figures::number(subscription),
            figures::number(pubsub / subscription),
            "–".to_owned(),
        ]);
    }
    outcome.grids.push(grid);
}

/// Whether a figure lies between `-limit` and `limit`.
fn is_within(figure: &Repeated, limit: f64) -> Option<bool> {
    let negative = Repeated::new(figure.values.iter().map(|value| -value).collect())?;
    match (is_under(figure, limit), is_under(&negative, limit)) {
        (Some(true), Some(true)) => Some(true),
        (Some(false), _) | (_, Some(false)) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Measurement, group};
    use crate::scenario::{LoadSpec, Scenario, Sweep};
    use serde_json::json;

    fn measured(stack: &str, clients: u32, cpu: f64, p99_ms: f64) -> Vec<Measurement> {
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.clients = Some(Sweep::One(clients));
        load.items = Some(Sweep::One(1_000));
        load.publishing_ms = Some(100.0.into());
        let mut scenario = Scenario::new("x", load);
        scenario.stacks = vec![stack.to_owned()];
        let condition = scenario.conditions().remove(0);
        let one = |repetition: u32| {
            let noise = 1.0 + f64::from(repetition) / 100.0;
            let document = json!({
                "server": {"cpu_percent": cpu * noise}, "message_interval": {"mean_us": 100_000.0},
                "progress": {"worst_item_ratio": 1.0, "cycle_p50_ms": 100.0, "cycle_p99_ms": p99_ms * noise},
            });
            Measurement::from_document("burger-cpu", condition.clone(), repetition, document)
        };
        (0..3).map(one).collect()
    }

    fn holds(outcome: &Outcome, claim: &str) -> Vec<Option<bool>> {
        let those = outcome.findings.iter().filter(|finding| finding.claim.contains(claim));
        those.map(|finding| finding.holds).collect()
    }

    fn stacks(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn sessions_more_expensive_than_the_peers_fail() {
        let judge = |ours: f64, theirs: f64| {
            let all: Vec<Measurement> = [
                measured("own", 1, 1.0, 101.0),
                measured("own", 30, ours, 101.0),
                measured("open62541", 1, 2.0, 101.0),
                measured("open62541", 30, theirs, 101.0),
            ]
            .into_iter()
            .flatten()
            .collect();
            let mut outcome = Outcome::default();
            sessions(&group(&all), &stacks(&["own", "open62541"]), &mut outcome);
            outcome
        };
        let fine = judge(3.9, 31.0);
        assert_eq!(holds(&fine, "the peer's"), [Some(true)]);
        // 2.9 percentage points over 29 sessions with ten messages per second each.
        let row = &fine.grids[0].rows[0];
        assert_eq!((row[2].as_str(), row[3].as_str()), ("101", "3.90"), "{row:?}");
        let published = &fine.grids[0].rows[2];
        assert_eq!(published[1..], ["1.55", "1\u{202f}552", "2.29"].map(str::to_owned));
        assert_eq!(holds(&judge(31.0, 3.9), "the peer's"), [Some(false)]);
        assert_eq!(holds(&judge(4.0, 5.0), "the peer's"), [None]);
        let once = |points: f64| Repeated::new(vec![points]).unwrap();
        assert_eq!(is_smaller(&once(0.01), &once(-0.5)), None);
        assert_eq!(is_smaller(&once(0.01), &once(0.5)), Some(true));
        assert_eq!(is_smaller(&once(0.5), &once(0.01)), Some(false));
    }

    #[test]
    fn tails_are_compared_with_the_peers() {
        let judge = |ours: [f64; 2], theirs: [f64; 2]| {
            let mut all = Vec::new();
            for (clients, ours, theirs) in [(1, ours[0], theirs[0]), (30, ours[1], theirs[1])] {
                all.extend(measured("own", clients, 1.0, ours));
                all.extend(measured("milo", clients, 1.0, theirs));
            }
            let mut outcome = Outcome::default();
            tails(&group(&all), &stacks(&["own", "milo"]), &mut outcome);
            assert_eq!(outcome.grids[0].rows.len(), 2);
            holds(&outcome, "tail")
        };
        assert_eq!(judge([101.0, 101.0], [140.0, 141.0]), [Some(true)]);
        assert_eq!(judge([140.0, 141.0], [101.0, 101.0]), [Some(false)]);
        assert_eq!(judge([101.0, 101.0], [100.0, 110.0]), [None]);
    }

    #[test]
    fn drifting_publishers_fail() {
        let judge = |ppm: [f64; 3]| {
            let mut load = LoadSpec::new(Kind::PubSub);
            load.items = Some(Sweep::One(1_000));
            let condition = Scenario::new("x", load).conditions().remove(0);
            let one = |(at, ppm): (usize, f64)| {
                let document = json!({"drift_ppm": ppm});
                Measurement::from_document("burger-cpu", condition.clone(), at as u32, document)
            };
            let all: Vec<Measurement> = ppm.into_iter().enumerate().map(one).collect();
            let mut outcome = Outcome::default();
            drift(&group(&all), &mut outcome);
            assert_eq!(outcome.grids[0].rows.len(), 2);
            holds(&outcome, "drifts")
        };
        assert_eq!(judge([2.0, -3.0, 1.0]), [Some(true)]);
        assert_eq!(judge([22_000.0, 21_000.0, 23_000.0]), [Some(false)]);
        assert_eq!(judge([-22_000.0, -21_000.0, -23_000.0]), [Some(false)]);
        assert_eq!(judge([22_000.0, 3.0, -5.0]), [None]);
        // 150 ms instead of 100 ms: 20 minutes behind after one hour.
        assert!((behind_ms(500_000.0) - 1.2e6).abs() < 1e-6 && (behind_ms(10.0) - 36.0).abs() < 0.01);
    }
}
