//! Burger et al. 2019, RQ1, for PubSub: CPU of a publisher, and whether its period grows with the rate.

use super::burger::INTERVAL_MS;
use super::removed;
use super::{all_hold, is_less, is_under, shown, times_as, valid_groups};
use crate::chart::{Chart, Mark, Point, Series};
use crate::figures;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::statistics::{Repeated, mean, median};
use std::fmt::Write;
use taktwerk_load::result::Figure;

/// PubSub as an additional line in the chart of CPU against published signals.
pub(super) fn line(published: &[Measurement], colour: usize) -> Option<Series> {
    let groups = valid_groups(published);
    let points = groups.iter().filter_map(|group| {
        let cpu = group.metric(Figure::PROCESS_CPU_PERCENT)?;
        let interval = cpu.mean_ci95.map(|(low, high)| (low.max(0.0), high));
        Some(Point { x: group.mean(Figure::SIGNALS_PER_S)?, y: mean(&cpu.values)?, interval })
    });
    let mut points: Vec<Point> = points.collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    (!points.is_empty()).then(|| Series { name: "PubSub".to_owned(), mark: Mark::Line(points), colour })
}

/// The results of PubSub, and whether the period grows with the rate as in the paper.
pub(super) fn curve(sessions: &[Group<'_>], published: &[Measurement], outcome: &mut Outcome) {
    let groups = valid_groups(published);
    if groups.is_empty() {
        return;
    }
    let mut grid = Grid::new(
        "Publisher over UDP multicast, 100 ms",
        1,
        &[
            "signals/s",
            "CPU %",
            "publishing thread %",
            "ns/signal",
            "period ms",
            "std µs",
            "p99 ms",
            "late p99 µs",
            "missed",
        ],
    );
    let (mut curves, mut compared, mut periods) = (Vec::new(), Vec::new(), Vec::new());
    for group in &groups {
        let signals = group.condition.items.unwrap_or(0);
        let rate = figures::thousands(i64::from(signals) * 10);
        let period = group.times("period_at_subscriber");
        let summary = period.summary();
        let error = group.metric(Figure::MEAN_PERIOD_ERROR_NS);
        let middle = error.as_ref().map(|error| INTERVAL_MS + error.median / 1e6);
        let cycles = group.mean(Figure::CYCLES).zip(group.mean(Figure::CYCLES_MISSED));
        periods.extend(error.map(|error| Period { rate: rate.clone(), errors_ns: error.values, cycles }));
        grid.row([
            rate.clone(),
            shown(group, Figure::PROCESS_CPU_PERCENT),
            shown(group, Figure::PUBLISHER_CPU_PERCENT),
            maybe(group.mean(Figure::PUBLISHER_CPU_NS_PER_SIGNAL)),
            maybe(middle),
            figures::number(summary.std_us),
            figures::number(summary.p99_us / 1e3),
            figures::number(group.times("lateness").percentile(99.0) as f64 / 1e3),
            maybe(group.mean(Figure::CYCLES_MISSED)),
        ]);
        curves.push((format!("{rate} signals/s"), period));
        let session = sessions.iter().find(|session| {
            session.condition.stack == "own"
                && session.condition.clients == 1
                && session.condition.items == group.condition.items
        });
        let pair = group
            .metric(Figure::PUBLISHER_CPU_PERCENT)
            .zip(session.and_then(|session| session.metric(Figure::SERVER_CPU_PERCENT)));
        let ratio = |(publisher, server): (Repeated, Repeated)| {
            (publisher.median / server.median, is_less(&publisher, &server))
        };
        compared.extend(pair.map(ratio));
    }
    outcome.grids.push(grid);
    let title = "Time between two cycles at a PubSub subscriber";
    outcome.charts.extend(Chart::apart(Chart::distribution, title, &curves));
    let (ratios, verdicts): (Vec<f64>, Vec<Option<bool>>) = compared.into_iter().unzip();
    if let Some(middle) = median(&ratios) {
        outcome.finding(
            "a publisher process needs less CPU for the same signals than a server process with one client",
            all_hold(verdicts),
            format!("{} the CPU of the server (median over {} rates)", times_as(middle), ratios.len()),
        );
    }
    let (holds, evidence) = judge_periods(&periods);
    outcome.finding(
        "the publisher's period does not grow with the rate (in the paper it did, on an idle CPU)",
        holds,
        evidence,
    );
    removed::drift(&groups, outcome);
}

/// The mean period of a publisher at one rate.
struct Period {
    rate: String,
    /// Deviation from the configured period in each repetition; positive if the period is too long.
    errors_ns: Vec<f64>,
    /// Cycles per repetition: run and skipped.
    cycles: Option<(f64, f64)>,
}

/// Whether the mean period at the higher half of the rates deviates by less than 0.1 %. Their repetitions are pooled,
/// because a period that grows with the rate is longest there. Skipped cycles do not count as a longer period: cycles
/// are numbered by their schedule.
fn judge_periods(periods: &[Period]) -> (Option<bool>, String) {
    const ALLOWED: f64 = 0.001;
    let relative = |nanos: &f64| nanos / (INTERVAL_MS * 1e6);
    let high = periods.get(periods.len() / 2..).unwrap_or_default();
    let errors = high.iter().flat_map(|period| period.errors_ns.iter().map(relative)).collect();
    let (Some(errors), Some(first)) = (Repeated::new(errors), high.first()) else {
        return (None, "no period was measured".to_owned());
    };
    let negative = Repeated::new(errors.values.iter().map(|value| -value).collect());
    let sides = [Some(&errors), negative.as_ref()].map(|side| is_under(side?, ALLOWED));
    let holds = if sides.contains(&Some(false)) { Some(false) } else { all_hold(sides) };
    let percent = |share: f64| format!("{:.4} %", share * 100.0);
    let between = errors.mean_ci95.map_or_else(String::new, |(low, high)| {
        format!(" (95 % interval {} to {})", percent(low), percent(high))
    });
    let mut evidence = format!(
        "at {} signals/s and above, it is off by {}{between} in {} windows",
        first.rate,
        percent(mean(&errors.values).unwrap_or(errors.median)),
        errors.values.len()
    );
    let skipped: f64 = periods.iter().filter_map(|period| period.cycles).map(|(_, skipped)| skipped).sum();
    if skipped > 0.0 {
        let run: f64 = periods.iter().filter_map(|period| period.cycles).map(|(run, _)| run).sum();
        let _ = write!(
            evidence,
            "; {} of {} cycles were skipped, which does not count as a longer period",
            figures::count(skipped),
            figures::count(run + skipped)
        );
    }
    (holds, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_period_is_distinguished_from_a_busy_machine() {
        let of = |errors_ns: &[f64], skipped: f64| Period {
            rate: "10 000".into(),
            errors_ns: errors_ns.to_vec(),
            cycles: Some((10.0, skipped)),
        };
        let holds = |periods: &[Period]| judge_periods(periods).0;
        let fine = || of(&[20_000.0, -30_000.0, 10_000.0], 0.0);
        assert_eq!(holds(&[]), None);
        assert_eq!(holds(&[fine(), fine()]), Some(true));
        // 102.2 ms instead of 100 ms each time, and 97.8 ms.
        assert_eq!(holds(&[fine(), of(&[2_200_000.0, 2_300_000.0, 2_100_000.0], 0.0)]), Some(false));
        assert_eq!(holds(&[fine(), of(&[-2_200_000.0, -2_300_000.0, -2_100_000.0], 0.0)]), Some(false));
        // One window of three is off: perhaps the machine was busy.
        let (open, why) = judge_periods(&[fine(), of(&[2_200_000.0, 9_000.0, -8_000.0], 1.0)]);
        assert!(open.is_none() && why.contains("1 of 21 cycles"), "{open:?} {why}");
        assert_eq!(holds(&[of(&[99_000.0], 0.0)]), None);
        assert_eq!(holds(&[of(&[20_000.0], 0.0)]), Some(true));
    }
}
