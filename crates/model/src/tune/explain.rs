//! Explains each recommended setting in one sentence.

use super::analytic;
use super::problem::Problem;
use super::search::{Alternative, Point, Tuned};
use super::settings::{Metric, Settings};
use crate::figures;
use serde::Serialize;

/// The reason for a setting's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The setting, as in `tune.search`.
    pub setting: &'static str,
    /// Its value, with the unit.
    pub value: String,
    /// The reason in one sentence.
    pub why: String,
}

/// Relative changes below this are ignored.
const SAME: f64 = 0.01;

/// One reason per setting.
#[must_use]
pub fn reasons(problem: &Problem, tuned: &Tuned) -> Vec<Reason> {
    let chosen = &tuned.recommended;
    let mut all = vec![Reason {
        setting: "publishing_ms",
        value: text("publishing_ms", &chosen.settings),
        why: publishing(problem, tuned),
    }];
    for setting in OTHERS {
        let value = match setting {
            "queue_size" if tuned.queue_size > 0 => tuned.queue_size.to_string(),
            setting => text(setting, &chosen.settings),
        };
        all.push(Reason { setting, value, why: why(problem, tuned, setting) });
    }
    all
}

/// All settings except the publishing interval.
const OTHERS: [&str; 9] = [
    "sampling_ms",
    "queue_size",
    "publish_requests",
    "notifications_max",
    "keep_alive_count",
    "security",
    "transport",
    "busy_poll_us",
    "threads",
];

fn milliseconds(ms: f64) -> String {
    // Intervals are rounded to 0.1 ms.
    let text = format!("{ms:.1}");
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A setting's value with its unit.
#[must_use]
pub fn text(setting: &str, settings: &Settings) -> String {
    match setting {
        "publishing_ms" => milliseconds(settings.publishing_ms),
        "sampling_ms" if settings.sampling_ms <= 0.0 => "every change".to_owned(),
        "sampling_ms" => milliseconds(settings.sampling_ms),
        "queue_size" if settings.queue_size == 0 => "as needed".to_owned(),
        "queue_size" => settings.queue_size.to_string(),
        "publish_requests" if settings.publish_requests == 0 => "automatic".to_owned(),
        "publish_requests" => settings.publish_requests.to_string(),
        "notifications_max" if settings.notifications_max == 0 => "no limit".to_owned(),
        "notifications_max" => settings.notifications_max.to_string(),
        "keep_alive_count" => settings.keep_alive_count.to_string(),
        "security" => settings.security.to_string(),
        "transport" => settings.transport.to_string(),
        "busy_poll_us" if settings.busy_poll_us == 0 => "off".to_owned(),
        "busy_poll_us" => format!("{} µs", settings.busy_poll_us),
        _ => settings.threads.to_string(),
    }
}

/// The changes between two points, such as "mean delay 12.0 ms instead of 20.0 ms"; empty if there are none.
fn changes(metrics: &[Metric], from: &Point, to: &Point) -> Vec<String> {
    let changed = |metric: &Metric| {
        let (before, after) = (metric.of(&from.figures)?, metric.of(&to.figures)?);
        let is_same = (after - before).abs() <= SAME * before.abs().max(1e-9);
        (!is_same)
            .then(|| format!("{} {} instead of {}", metric.words(), metric.text(after), metric.text(before)))
    };
    metrics.iter().filter_map(changed).collect()
}

/// The decisive figures: those to minimize, those with a constraint, and lost values.
fn deciding(problem: &Problem) -> Vec<Metric> {
    let mut all = problem.minimize.clone();
    for metric in problem.constraints.iter().map(|one| one.metric).chain([Metric::Loss]) {
        if !all.contains(&metric) {
            all.push(metric);
        }
    }
    all
}

fn publishing(problem: &Problem, tuned: &Tuned) -> String {
    let chosen = &tuned.recommended;
    let metrics = deciding(problem);
    let mut parts = Vec::new();
    for other in tuned.alternatives.iter().filter(|one| one.setting == "publishing_ms") {
        let changes = changes(&metrics, chosen, &other.point);
        let missed = if other.point.is_feasible { "" } else { ", which breaks a constraint" };
        if !changes.is_empty() {
            let interval = milliseconds(other.point.settings.publishing_ms);
            parts.push(format!("with {interval}: {}{missed}", changes.join(" and ")));
        }
    }
    if parts.is_empty() {
        let was_tried = problem.space.is_range || problem.space.publishing_ms.len() > 1;
        return match (was_tried, problem.constraints.is_empty()) {
            (false, _) => "not searched: tune.search has only this interval".to_owned(),
            (true, false) => "no other interval of the search meets the constraints".to_owned(),
            (true, true) => {
                "no other interval of the search changes a figure by 1 %, or has figures".to_owned()
            }
        };
    }
    format!("the knee of the trade-off: {}", parts.join("; "))
}

fn why(problem: &Problem, tuned: &Tuned, setting: &'static str) -> String {
    let chosen = &tuned.recommended;
    let others: Vec<&Alternative> = tuned.alternatives.iter().filter(|one| one.setting == setting).collect();
    let metrics = deciding(problem);
    if setting == "queue_size" && tuned.queue_size > 0 {
        return format!("the smallest queue without lost values in the {}", chosen.by);
    }
    if others.is_empty() {
        return given(problem, setting, &chosen.settings);
    }
    let told = |other: &&Alternative| {
        let changes = changes(&metrics, chosen, &other.point);
        let missed = if other.point.is_feasible { "" } else { ", which breaks a constraint" };
        let value = text(setting, &other.point.settings);
        (!changes.is_empty()).then(|| format!("with {value}: {}{missed}", changes.join(" and ")))
    };
    let told: Vec<String> = others.iter().filter_map(told).take(2).collect();
    if told.is_empty() {
        let values: Vec<String> = others.iter().map(|one| text(setting, &one.point.settings)).collect();
        return format!("{} would change nothing here", values.join(" or "));
    }
    told.join("; ")
}

/// Why a setting that was not searched has its value.
fn given(problem: &Problem, setting: &str, settings: &Settings) -> String {
    match setting {
        "sampling_ms" if settings.sampling_ms <= 0.0 => {
            "the server reports each write, so nothing is sampled".to_owned()
        }
        "publish_requests" if problem.publish_every.is_some() => {
            let share = problem.publish_every.unwrap_or_default();
            format!(
                "given: the client sends one each time {} of an interval has passed",
                figures::number(share)
            )
        }
        "publish_requests" if settings.publish_requests == 0 => {
            "the client chooses the number by round trip and interval".to_owned()
        }
        "notifications_max" if settings.notifications_max == 0 => {
            let per_message = analytic::values_per_message(problem, settings);
            format!(
                "a message carries about {} values; a limit would only add messages",
                figures::number(per_message)
            )
        }
        "keep_alive_count" => {
            let silence = settings.publishing_ms * f64::from(settings.keep_alive_count);
            format!("a client notices a dead server after {}", figures::micros(silence * 1e3))
        }
        "security" if !settings.security.is_secured() => {
            "not searched: add values to tune.search.security to see the cost of security".to_owned()
        }
        _ => "not searched: tune.search has only this value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::analytic::Analytic;
    use super::super::problem::tests::problem;
    use super::super::search::tune;
    use super::*;

    fn all(sets: &[&str]) -> Vec<Reason> {
        let problem = problem(sets);
        let formulas = Analytic::new(&problem, None);
        reasons(&problem, &tune(&problem, &formulas, &formulas, &mut |_| true).unwrap())
    }

    #[test]
    fn every_setting_has_a_sentence_with_figures_of_the_alternatives() {
        let found = all(&["tune.search.security=[\"none\", \"sign\"]", "tune.search.threads=[1, 2]"]);
        assert_eq!(found.len(), 1 + OTHERS.len());
        let of = |setting: &str| found.iter().find(|one| one.setting == setting).unwrap();
        let interval = of("publishing_ms");
        assert!(
            interval.why.contains("instead of") && interval.why.contains("link utilisation"),
            "{interval:?}"
        );
        assert!(of("security").why.contains("with sign:"), "{found:?}");
        assert!(of("publish_requests").why.contains("would change nothing"), "{found:?}");
        assert!(
            of("queue_size").value.parse::<u32>().unwrap() > 1
                && of("queue_size").why.contains("without lost values")
        );
        assert!(of("keep_alive_count").why.contains("ms"), "{found:?}");
        assert_eq!(milliseconds(34.5), "34.5 ms");
        assert_eq!(milliseconds(250.0), "250 ms");
    }

    #[test]
    fn a_single_interval_is_explained() {
        let found = all(&["tune.search.publishing_ms=40"]);
        assert!(found[0].why.contains("only this interval"), "{found:?}");
    }
}
