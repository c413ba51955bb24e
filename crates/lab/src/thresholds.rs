//! Judges the thresholds of a scenario by the laboratory's rule.
//!
//! The 95 % confidence interval of the mean decides, or that of the ratio to another stack's figure in the same run.
//! A single measurement decides nothing: it has no interval.

use crate::figures::number;
use crate::measurement::{Group, Measurement, group};
use crate::outcome::Finding;
use crate::scenario::{Labels, Threshold};
use crate::statistics::{mean, median_ratio, within};

/// The findings for all thresholds, load by load.
#[must_use]
pub fn judge(thresholds: &[Threshold], measurements: &[Measurement]) -> Vec<Finding> {
    let groups = group(measurements);
    let labels = Labels::of(groups.iter().map(|group| group.condition));
    let mut findings = Vec::new();
    for (group, label) in groups.iter().zip(labels.iter()) {
        for threshold in thresholds {
            let figure = match &threshold.of {
                // A stack is not compared with itself.
                Some(other) if group.condition.stack == *other => continue,
                Some(other) => ratio(group, &groups, other, &threshold.metric),
                None => own(group, &threshold.metric),
            };
            for (word, limit, sign) in [("below", threshold.below, 1.0), ("above", threshold.above, -1.0)] {
                let Some(limit) = limit else { continue };
                let of = threshold.of.as_ref().map(|other| format!(" × {other}")).unwrap_or_default();
                let claim = format!("{label}: {} {word} {}{of}", threshold.metric, number(limit));
                let (holds, evidence) = match &figure {
                    Ok(figure) => (figure.judge(limit, sign), figure.text()),
                    // A missing figure must not count as a passed threshold.
                    Err(problem) => (Some(false), problem.clone()),
                };
                findings.push(Finding { claim, holds, evidence });
            }
        }
    }
    findings
}

/// A figure with its interval.
struct Figure {
    value: f64,
    interval: Option<(f64, f64)>,
    count: usize,
}

impl Figure {
    /// The verdict; `sign` is −1 for a lower limit.
    fn judge(&self, limit: f64, sign: f64) -> Option<bool> {
        let (low, high) = self.interval?;
        let (low, high) = if sign < 0.0 { (-high, -low) } else { (low, high) };
        within((low, high), sign * limit)
    }

    fn text(&self) -> String {
        match self.interval {
            Some((low, high)) => format!(
                "{} ({} to {}), {} measurements",
                number(self.value),
                number(low),
                number(high),
                self.count
            ),
            None => format!("{}, one measurement", number(self.value)),
        }
    }
}

fn own(group: &Group<'_>, metric: &str) -> Result<Figure, String> {
    let missing = || format!("there is no figure {metric}");
    let repeated = group.named(metric).ok_or_else(missing)?;
    let value = mean(&repeated.values).ok_or_else(missing)?;
    Ok(Figure { value, interval: repeated.mean_ci95, count: repeated.values.len() })
}

/// The ratio to the same load of another stack.
fn ratio(group: &Group<'_>, groups: &[Group<'_>], other: &str, metric: &str) -> Result<Figure, String> {
    let mut wanted = group.condition.clone();
    other.clone_into(&mut wanted.stack);
    let peer = groups.iter().find(|group| group.condition.is_repeated_by(&wanted));
    let missing = |stack: &str| format!("there is no figure {metric} of {stack}");
    let ours = group.named(metric).ok_or_else(|| missing(&group.condition.stack))?.values;
    let peer = peer.and_then(|peer| peer.named(metric)).ok_or_else(|| missing(other))?.values;
    let (value, interval) = median_ratio(&ours, &peer).ok_or_else(|| format!("{metric} of {other} is 0"))?;
    let count = ours.len().min(peer.len());
    Ok(Figure { value, interval: (count > 1).then_some(interval), count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Kind, LoadSpec, Scenario};
    use serde_json::json;

    /// Measurements of our stack and of a peer with these CPU figures.
    fn measured(ours: &[f64], peer: &[f64]) -> Vec<Measurement> {
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        scenario.stacks = vec!["own".to_owned(), "open62541".to_owned()];
        let conditions = scenario.conditions();
        let series = conditions.iter().zip([ours, peer]);
        series
            .flat_map(|(condition, values)| {
                values.iter().enumerate().map(|(at, value)| {
                    let document = json!({"server": {"cpu_percent": value}});
                    Measurement::from_document("", condition.clone(), at as u32, document)
                })
            })
            .collect()
    }

    fn threshold(below: Option<f64>, above: Option<f64>, of: Option<&str>) -> Threshold {
        Threshold { metric: "server.cpu_percent".to_owned(), below, above, of: of.map(str::to_owned) }
    }

    fn verdicts(threshold: Threshold, measurements: &[Measurement]) -> Vec<Option<bool>> {
        judge(&[threshold], measurements).iter().map(|finding| finding.holds).collect()
    }

    #[test]
    fn the_interval_of_the_mean_decides() {
        let all = measured(&[10.0, 10.2, 9.9, 10.1, 10.0], &[50.0, 50.5, 49.5, 50.2, 50.1]);
        assert_eq!(verdicts(threshold(Some(20.0), None, None), &all), [Some(true), Some(false)]);
        assert_eq!(verdicts(threshold(None, Some(20.0), None), &all), [Some(false), Some(true)]);
        let noisy = measured(&[5.0, 15.0, 9.0, 12.0, 8.0], &[50.0, 50.0]);
        assert_eq!(verdicts(threshold(Some(10.0), None, None), &noisy), [None, Some(false)]);
        let single = measured(&[9.0], &[11.0]);
        assert_eq!(verdicts(threshold(Some(10.0), None, None), &single), [None, None]);
        assert_eq!(verdicts(threshold(Some(10.0), None, Some("open62541")), &single), [None]);
    }

    #[test]
    fn a_ratio_is_judged_against_the_same_load_of_the_peer() {
        let all = measured(&[10.0, 10.2, 9.9, 10.1, 10.0], &[50.0, 50.5, 49.5, 50.2, 50.1]);
        let found = judge(&[threshold(Some(0.25), None, Some("open62541"))], &all);
        assert_eq!(found.len(), 1, "the peer is not compared with itself");
        assert_eq!(found[0].holds, Some(true), "{found:?}");
        assert!(found[0].claim.contains("below 0.25") && found[0].claim.contains("× open62541"), "{found:?}");
        assert_eq!(verdicts(threshold(Some(0.1), None, Some("open62541")), &all), [Some(false)]);
    }

    #[test]
    fn missing_figures_fail() {
        let all = measured(&[10.0, 10.0], &[50.0, 50.0]);
        let unknown = Threshold { metric: "server.cpu".to_owned(), ..threshold(Some(1.0), None, None) };
        assert_eq!(verdicts(unknown.clone(), &all), [Some(false), Some(false)]);
        let unknown = Threshold { of: Some("open62541".to_owned()), ..unknown };
        assert_eq!(verdicts(unknown, &all), [Some(false)]);
    }
}
