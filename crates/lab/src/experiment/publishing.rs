//! Burger et al. 2019, RQ1, for PubSub: what a publisher needs, and whether its period stretches with the rate.

use super::burger::INTERVAL_MS;
use super::removed;
use super::{all_hold, is_less, shown, times_as, valid_groups};
use crate::chart::{Chart, Mark, Point, Series};
use crate::figures;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::statistics::{Repeated, mean, median};
use std::fmt::Write;

/// PubSub as one more line of CPU against the signals that were published.
pub(super) fn line(published: &[Measurement], colour: usize) -> Option<Series> {
    let groups = valid_groups(published);
    let points = groups.iter().filter_map(|group| {
        let cpu = group.metric("publisher_cpu_percent")?;
        let interval = cpu.mean_ci95.map(|(low, high)| (low.max(0.0), high));
        Some(Point { x: group.mean("signals_per_s")?, y: mean(&cpu.values)?, interval })
    });
    let mut points: Vec<Point> = points.collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    (!points.is_empty()).then(|| Series { name: "PubSub".to_owned(), mark: Mark::Line(points), colour })
}

/// The curve of PubSub, and whether its period stretches with the rate as the paper's did.
pub(super) fn curve(sessions: &[Group<'_>], published: &[Measurement], outcome: &mut Outcome) {
    let groups = valid_groups(published);
    if groups.is_empty() {
        return;
    }
    let mut grid = Grid::new(
        "Publisher over UDP multicast, 100 ms",
        1,
        &["signals/s", "CPU %", "ns/signal", "period ms", "std µs", "p99 ms", "late p99 µs", "missed"],
    );
    let (mut curves, mut compared, mut periods) = (Vec::new(), Vec::new(), Vec::new());
    for group in &groups {
        let signals = group.condition.items.unwrap_or(0);
        let rate = figures::thousands(i64::from(signals) * 10);
        let period = group.times("period_at_subscriber");
        let summary = period.summary();
        let error = group.metric("mean_period_error_ns");
        let middle = error.as_ref().map(|error| INTERVAL_MS + error.median / 1e6);
        let cycles = group.mean("cycles").zip(group.mean("cycles_missed"));
        periods.extend(error.map(|error| Period { rate: rate.clone(), errors_ns: error.values, cycles }));
        grid.row([
            rate.clone(),
            shown(group, "publisher_cpu_percent"),
            maybe(group.mean("publisher_cpu_ns_per_signal")),
            maybe(middle),
            figures::number(summary.std_us),
            figures::number(summary.p99_us / 1e3),
            figures::number(group.times("lateness").percentile(99.0) as f64 / 1e3),
            maybe(group.mean("cycles_missed")),
        ]);
        curves.push((format!("{rate} signals/s"), period));
        let session = sessions.iter().find(|session| {
            session.condition.stack == "own"
                && session.condition.clients == 1
                && session.condition.items == group.condition.items
        });
        let pair = group
            .metric("publisher_cpu_percent")
            .zip(session.and_then(|session| session.metric("server.cpu_percent")));
        let ratio = |(publisher, server): (Repeated, Repeated)| {
            (publisher.median / server.median, is_less(&publisher, &server))
        };
        compared.extend(pair.map(ratio));
    }
    outcome.grids.push(grid);
    let title = "Time between two cycles at a subscriber of PubSub";
    outcome.charts.extend(Chart::apart(Chart::distribution, title, &curves));
    let (ratios, verdicts): (Vec<f64>, Vec<Option<bool>>) = compared.into_iter().unzip();
    if let Some(middle) = median(&ratios) {
        outcome.finding(
            "a publisher needs less CPU for the same signals than a server with one client",
            all_hold(verdicts),
            format!("{} of the server's in the middle, over {} rates", times_as(middle), ratios.len()),
        );
    }
    let (holds, evidence) = judge_periods(&periods);
    outcome.finding(
        "the publisher's period does not stretch with the rate (the paper's did, with an idle CPU)",
        holds,
        evidence,
    );
    removed::drift(&groups, outcome);
}

/// The mean period of a publisher at one rate.
struct Period {
    rate: String,
    /// By how much it is too long, in each repetition.
    errors_ns: Vec<f64>,
    /// Cycles that were run and that were skipped, in a repetition.
    cycles: Option<(f64, f64)>,
}

/// Whether periods are as they should be. A cycle that was skipped is no longer period: it has its number in the plan. Nor is a
/// message that was late once, see `bench pubsub`. What does not come in all repetitions cannot be told from a machine that was
/// busy.
fn judge_periods(periods: &[Period]) -> (Option<bool>, String) {
    const ALLOWED: f64 = 0.001;
    let relative = |nanos: &f64| nanos / (INTERVAL_MS * 1e6);
    let middle = |period: &Period| median(&period.errors_ns).map_or(0.0, |error| relative(&error));
    let Some(worst) = periods.iter().max_by(|a, b| middle(a).abs().total_cmp(&middle(b).abs())) else {
        return (None, "no period was measured".to_owned());
    };
    let percent = |share: f64| format!("{:.4} %", share * 100.0);
    let mut evidence = format!(
        "it is off by {} at worst, at {} signals/s, over {} rates",
        percent(middle(worst)),
        worst.rate,
        periods.len()
    );
    let is_off = |period: &Period| {
        let signs =
            [1.0, -1.0].map(|sign| period.errors_ns.iter().all(|error| relative(error) * sign >= ALLOWED));
        period.errors_ns.len() > 1 && signs.contains(&true)
    };
    let holds = match (middle(worst).abs() < ALLOWED, periods.iter().any(is_off)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    if holds.is_none() {
        let errors: Vec<String> = worst.errors_ns.iter().map(|error| percent(relative(error))).collect();
        let _ = write!(
            evidence,
            "; its repetitions are off by {}: that is the machine, or windows that are too short for it",
            errors.join(", ")
        );
    }
    let skipped: f64 = periods.iter().filter_map(|period| period.cycles).map(|(_, skipped)| skipped).sum();
    if skipped > 0.0 {
        let run: f64 = periods.iter().filter_map(|period| period.cycles).map(|(run, _)| run).sum();
        let _ = write!(
            evidence,
            "; {} of {} cycles were skipped, which is not a longer period: the next one came when it was due",
            figures::number(skipped),
            figures::number(run + skipped)
        );
    }
    (holds, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_that_stretches_is_told_from_a_machine_that_was_busy() {
        let of = |errors_ns: &[f64], skipped: f64| Period {
            rate: "10 000".into(),
            errors_ns: errors_ns.to_vec(),
            cycles: Some((10.0, skipped)),
        };
        let holds = |periods: &[Period]| judge_periods(periods).0;
        let fine = || of(&[20_000.0, -30_000.0, 10_000.0], 0.0);
        assert_eq!(holds(&[]), None);
        assert_eq!(holds(&[fine(), of(&[2_200_000.0, 9_000.0, -8_000.0], 0.0)]), Some(true));
        // 102.2 ms instead of 100 ms each time.
        assert_eq!(holds(&[fine(), of(&[2_200_000.0, 2_300_000.0, 2_100_000.0], 0.0)]), Some(false));
        let (open, why) = judge_periods(&[fine(), of(&[2_200_000.0, 2_100_000.0, -8_000.0], 1.0)]);
        assert_eq!(open, None);
        assert!(
            why.contains("2.2000 %, 2.1000 %, -0.0080 %") && why.contains("1.00 of 21.0 cycles"),
            "{why}"
        );
        assert_eq!(holds(&[of(&[2_200_000.0], 0.0)]), None);
    }
}
