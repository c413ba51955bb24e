//! Compares measured with simulated figures.

use super::predict::{Predicted, histogram};
use crate::figures::number;
use crate::latency::Summary as TimesSummary;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome};
use crate::scenario::{Condition, Kind};
use crate::statistics::{median, within};
use serde::Serialize;
use taktwerk_load::result::Figure;
use taktwerk_model::cpu::{Noise, own_interval};

/// One load, measured and simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The load.
    pub load: String,
    /// The link.
    pub link: String,
    /// Number of samples in the measurement.
    pub samples: u64,
    /// Mean, 99th percentile, CPU of the server and CPU of the load: measured, then simulated. Milliseconds and percent of a
    /// core.
    pub figures: [(f64, f64); 4],
    /// The same figures of each repetition.
    pub repetitions: [Vec<f64>; 4],
}

/// The compared figures, and the maximum median error of each.
const FIGURES: [(&str, Option<f64>); 4] = [
    ("mean", Some(0.10)),
    ("99th percentile", Some(0.15)),
    ("CPU of the server", Some(0.10)),
    ("CPU of the load", None),
];

/// The error of a figure over all loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Error {
    /// The figure.
    pub figure: &'static str,
    /// The median of the absolute relative errors.
    pub median: f64,
    /// The median of the signed relative errors: the systematic error.
    pub bias: f64,
    /// Number of loads.
    pub loads: usize,
    /// 95 % interval of the simulator's own median error, for which the noise of the measurements does not count. Without
    /// repetitions, noise may explain all of it. `None` if there are too few loads.
    pub interval: Option<(f64, f64)>,
    /// Median difference between one more measurement of a load and the median of its others; `None` if no load was
    /// repeated.
    pub again: Option<f64>,
    /// The noise floor: the error of a perfect simulator, given how much repetitions differ.
    pub floor: Option<f64>,
}

/// Errors over all loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// By figure.
    pub errors: Vec<Error>,
}

impl Pair {
    /// The relative error of a figure; `None` if nothing was measured.
    #[must_use]
    pub fn error(&self, figure: usize) -> Option<f64> {
        let (measured, simulated) = self.figures.get(figure).copied()?;
        (measured > 0.0).then(|| simulated / measured - 1.0)
    }
}

/// Compares a load; `None` if there is no valid measurement.
#[must_use]
pub fn evaluate(group: &Group<'_>, predicted: &Predicted) -> Option<Pair> {
    let condition = group.condition;
    let times = group.times(histogram(condition.kind));
    let summary = times.summary();
    if summary.count == 0 {
        return None;
    }
    // The median: other programs disturb single repetitions.
    let each = |of: &dyn Fn(&Measurement) -> Option<f64>| -> Vec<f64> {
        group.valid.iter().filter_map(|one| of(one)).collect()
    };
    let time = |of: fn(&TimesSummary) -> f64| {
        each(&|one| {
            let times = one.histograms.get(histogram(condition.kind))?.summary();
            (times.count > 0).then(|| of(&times) / 1e3)
        })
    };
    let repetitions = [
        time(|times| times.mean_us),
        time(|times| times.p99_us),
        each(&|one| Some(shards_percent(one))),
        each(&|one| one.get(Figure::GENERATOR_CPU_PERCENT)),
    ];
    let [mean, p99, server, client] = repetitions.each_ref().map(|each| median(each).unwrap_or(0.0));
    Some(Pair {
        load: label(condition),
        link: condition.link.clone().unwrap_or_else(|| "loopback".to_owned()),
        samples: summary.count,
        figures: [
            (mean, predicted.mean_ms),
            (p99, predicted.p99_ms),
            (server, predicted.server_cpu_percent),
            (client, predicted.client_cpu_percent),
        ],
        repetitions,
    })
}

/// CPU of the server's threads that serve connections, in percent of a core.
pub(crate) fn shards_percent(measurement: &Measurement) -> f64 {
    measurement.threads_percent().filter(|(name, _)| is_shard(name)).map(|(_, percent)| percent).sum()
}

/// Label that distinguishes a load from others over its link.
fn label(condition: &Condition) -> String {
    let security = if condition.security.is_none() { "" } else { ", encrypted" };
    match (condition.kind, condition.publishing_ms) {
        (Kind::Subscribe, Some(interval)) => {
            format!("{} items, {interval} ms{security}", condition.items.unwrap_or(0))
        }
        (kind, _) => format!("{} {}{security}", kind.name(), condition.batch.unwrap_or(1)),
    }
}

/// Threads that serve connections are named `taktwerk-0` and so on. The thread that writes the values is not simulated.
fn is_shard(thread: &str) -> bool {
    let number = thread.strip_prefix("taktwerk-");
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

impl Summary {
    /// Over all loads.
    #[must_use]
    pub fn of(pairs: &[Pair]) -> Self {
        let errors = FIGURES.iter().enumerate().filter_map(|(at, (figure, _))| {
            let all: Vec<f64> = pairs.iter().filter_map(|pair| pair.error(at)).collect();
            let absolute: Vec<f64> = all.iter().map(|error| error.abs()).collect();
            let repetitions: Vec<Vec<f64>> =
                pairs.iter().filter_map(|pair| pair.repetitions.get(at).cloned()).collect();
            let noise = Noise::of_values(&repetitions);
            let floor = noise.map_or(f64::INFINITY, |noise| noise.floor);
            Some(Error {
                figure,
                median: median(&absolute)?,
                bias: median(&all)?,
                loads: all.len(),
                interval: own_interval(&all, floor),
                again: noise.map(|noise| noise.again),
                floor: noise.map(|noise| noise.floor),
            })
        });
        Self { errors: errors.collect() }
    }
}

/// Tables and findings.
#[must_use]
pub fn outcome(pairs: &[Pair], skipped: Vec<String>) -> Outcome {
    let mut outcome = Outcome {
        id: "truth".to_owned(),
        question: "How accurate is the simulator?".to_owned(),
        source: "measured on this machine, and simulated with a host profile calibrated with other loads"
            .to_owned(),
        skipped,
        ..Outcome::default()
    };
    let mut grid = Grid::new(
        "Measured → simulated; times in ms, CPU in percent of a core",
        2,
        &[
            "link",
            "load",
            "n",
            "mean",
            "error %",
            "p99",
            "error %",
            "server CPU",
            "error %",
            "load CPU",
            "error %",
        ],
    );
    for pair in pairs {
        let mut row = vec![pair.link.clone(), pair.load.clone(), pair.samples.to_string()];
        for (at, (measured, simulated)) in pair.figures.iter().enumerate() {
            row.push(format!("{} → {}", number(*measured), number(*simulated)));
            row.push(pair.error(at).map_or_else(|| "–".to_owned(), |error| format!("{:+.0}", error * 100.0)));
        }
        grid.row(row);
    }
    outcome.grids.push(grid);
    let summary = Summary::of(pairs);
    let columns = [
        "figure",
        "absolute error %",
        "95 % interval",
        "error %",
        "loads",
        "repeatability ± %",
        "noise floor %",
    ];
    let mut medians = Grid::new("Median over the loads", 1, &columns);
    let percent =
        |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1}", share * 100.0));
    for error in &summary.errors {
        medians.row([
            error.figure.to_owned(),
            format!("{:.1}", error.median * 100.0),
            interval(error).unwrap_or_else(|| "–".to_owned()),
            format!("{:+.1}", error.bias * 100.0),
            error.loads.to_string(),
            percent(error.again),
            percent(error.floor),
        ]);
    }
    outcome.grids.push(medians);
    for (figure, most) in FIGURES {
        let Some(most) = most else { continue };
        let error = summary.errors.iter().find(|error| error.figure == figure);
        outcome.finding(
            &format!("the median error of the {figure} is at most {:.0} %", most * 100.0),
            // A figure without measurements must not count as accurate.
            error.map_or(Some(false), |error| error.interval.and_then(|interval| within(interval, most))),
            error.map_or_else(
                || "not measured".to_owned(),
                |error| {
                    let interval = interval(error).unwrap_or_else(|| "too few for an interval".to_owned());
                    format!("{:.1} % over {} loads, {interval}", error.median * 100.0, error.loads)
                },
            ),
        );
    }
    outcome
}

/// The interval of an error in percent.
fn interval(error: &Error) -> Option<String> {
    error.interval.map(|(low, high)| format!("{:.1} to {:.1}", low * 100.0, high * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(mean: (f64, f64)) -> Pair {
        Pair {
            load: "x".to_owned(),
            link: "loopback".to_owned(),
            samples: 7,
            figures: [mean, (10.0, 11.0), (2.0, 2.0), (0.0, 1.0)],
            repetitions: Default::default(),
        }
    }

    /// The verdict on the mean over twelve loads that are simulated wrong by a share, each measured twice.
    fn verdict(errors: impl Fn(usize) -> f64, noise: f64) -> Option<bool> {
        let pairs: Vec<Pair> = (0..12)
            .map(|at| {
                let mut pair = pair((10.0, 10.0 * (1.0 + errors(at))));
                pair.repetitions[0] = vec![10.0, 10.0 * (1.0 + noise)];
                pair
            })
            .collect();
        outcome(&pairs, Vec::new()).findings[0].holds
    }

    #[test]
    fn intervals_of_median_errors_decide() {
        let pairs = [pair((10.0, 9.5)), pair((10.0, 12.0)), pair((1.0, 1.02))];
        let summary = Summary::of(&pairs);
        let [mean, p99, cpu] = &summary.errors[..] else { panic!("{summary:?}") };
        assert!((mean.median - 0.05).abs() < 1e-9 && (mean.bias - 0.02).abs() < 1e-9, "{mean:?}");
        assert!((p99.median - 0.1).abs() < 1e-9 && cpu.median == 0.0, "{summary:?}");
        assert_eq!(mean.interval, None, "three loads say nothing about others");
        assert_eq!(verdict(|at| 0.04 + 0.004 * at as f64, 0.001), Some(true));
        assert_eq!(verdict(|at| -0.2 - 0.01 * at as f64, 0.001), Some(false));
        assert_eq!(verdict(|at| 0.06 + 0.01 * at as f64, 0.001), None, "on both sides of the limit");
        assert_eq!(verdict(|at| 0.11 + 0.002 * at as f64, 0.3), None, "as much as measurements differ");
        assert_eq!(
            verdict(|at| 0.01 * f64::from(at as u32 % 3), 0.3),
            Some(true),
            "noise only adds to errors"
        );
    }

    #[test]
    fn without_repetitions_an_error_may_be_noise() {
        let of = |simulated: f64| outcome(&vec![pair((10.0, simulated)); 12], Vec::new()).findings[0].holds;
        assert_eq!((of(10.5), of(20.0)), (Some(true), None));
    }

    #[test]
    fn the_noise_floor_follows_from_repetitions() {
        let mut twice = pair((10.0, 10.0));
        twice.repetitions[2] = vec![1.0, 1.0f64.exp()];
        let summary = Summary::of(&[twice, pair((10.0, 10.0))]);
        let [mean, _, cpu] = &summary.errors[..] else { panic!("{summary:?}") };
        assert_eq!((mean.again, mean.floor), (None, None));
        assert!(
            (cpu.again.unwrap() - 1.0).abs() < 1e-9 && (cpu.floor.unwrap() - 0.5).abs() < 1e-9,
            "{cpu:?}"
        );
    }

    #[test]
    fn figures_without_measurements_fail() {
        let mut bare = pair((10.0, 10.0));
        bare.figures[2] = (0.0, 2.0);
        bare.figures[3] = (2.0, 2.0);
        let said = outcome(&vec![bare; 12], Vec::new());
        let holds: Vec<_> = said.findings.iter().map(|finding| finding.holds).collect();
        assert_eq!(holds, [Some(true), Some(true), Some(false)]);
        assert_eq!(said.findings[2].evidence, "not measured");
        assert!(outcome(&[], Vec::new()).findings.iter().all(|finding| finding.holds == Some(false)));
    }

    #[test]
    fn only_threads_that_serve_connections_are_simulated() {
        assert!(is_shard("taktwerk-0"));
        for other in ["signals", "taktwerk", "taktwerk-history"] {
            assert!(!is_shard(other));
        }
    }
}
