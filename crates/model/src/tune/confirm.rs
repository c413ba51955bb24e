//! Writes laboratory scenarios that measure a recommended point, to verify the prediction.

use super::problem::Problem;
use super::search::Tuned;
use super::settings::{Metric, Security, Settings, Transport};
use std::fmt::Write;

/// Maximum relative difference between measured and predicted figures.
pub const ALLOWED: f64 = 0.15;
/// The same for short delays, in milliseconds: without a host profile, work and scheduling of the machine take no time.
pub const ALLOWED_MS: f64 = 0.5;
/// Load before the window in seconds, and the number of measurements.
const WARMUP_S: f64 = 3.0;
const REPETITIONS: u32 = 5;

/// Why there is no such scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoScenario {
    /// The laboratory's links have a line for each direction.
    #[error(
        "a line that both directions share cannot be measured: the laboratory's links have one for each direction"
    )]
    Shared,
    /// The laboratory's publisher does not send over emulated links.
    #[error(
        "PubSub cannot be measured over an emulated link: the laboratory's publisher and subscriber are one process. \
         Measure them without a link by a scenario with load.kind = \"pubsub\", or let `tune` recommend a session \
         (--set tune.search.transport=session)"
    )]
    PubSub,
}

/// The setting of clients without configuration: 500 ms, a queue of one value, everything else as in `chosen`.
#[must_use]
pub fn default_setting(chosen: &Settings) -> Settings {
    let publishing_ms = Settings::usual().publishing_ms;
    Settings { publishing_ms, sampling_ms: 0.0, queue_size: 1, ..chosen.clone() }
}

/// The scenario for `taktwerk lab run`: the recommended settings over the same link. Its thresholds are ±15 % around
/// the predicted delays and bandwidth. The laboratory's server follows writes: delays of a server that does not are only
/// bounded from above.
///
/// # Errors
/// See [`NoScenario`].
pub fn scenario(problem: &Problem, tuned: &Tuned) -> Result<String, NoScenario> {
    let figures = &tuned.recommended.figures;
    let mut text = format!(
        "# Verifies the prediction of `taktwerk tune`: mean delay {}, {}.\n# Run: taktwerk lab run confirm.toml\n",
        Metric::DelayMeanMs.text(figures.delay_mean_ms),
        Metric::BandwidthBitsS.text(figures.bandwidth_bits_s)
    );
    text.push_str(&load("recommended", problem, &tuned.recommended.settings, tuned.queue_size)?);
    let promised = [
        ("age.mean_us", Metric::DelayMeanMs, 1e3),
        ("age.p99_us", Metric::DelayP99Ms, 1e3),
        ("line.busier_bits_s", Metric::BandwidthBitsS, 1.0),
    ];
    for (name, metric, unit) in promised {
        let (below, above) = allowed(metric, metric.of(figures).unwrap_or(0.0), problem.follows_writes);
        // Writing to a String does not fail.
        let _ = writeln!(text, "[[threshold]]\nmetric = {name:?}\nbelow = {}", (below * unit).round());
        if let Some(above) = above {
            let _ = writeln!(text, "above = {}", (above * unit).round());
        }
        text.push('\n');
    }
    Ok(text)
}

/// The largest and smallest measured value that keeps a promise, in the unit of the figure. The measured server follows
/// writes, so the delays of one that does not may be shorter.
#[must_use]
pub fn allowed(metric: Metric, promised: f64, follows_writes: bool) -> (f64, Option<f64>) {
    let by = if is_short(metric, promised) { ALLOWED_MS } else { promised * ALLOWED };
    // No delay is below zero.
    let above = Some(promised - by).filter(|above| *above > 0.0 && (follows_writes || !is_delay(metric)));
    (promised + by, above)
}

fn is_delay(metric: Metric) -> bool {
    matches!(metric, Metric::DelayMeanMs | Metric::DelayP99Ms | Metric::DelayMaxMs)
}

/// Whether a promise is a delay so short that [`ALLOWED_MS`] applies instead of [`ALLOWED`].
#[must_use]
pub fn is_short(metric: Metric, promised: f64) -> bool {
    is_delay(metric) && promised * ALLOWED < ALLOWED_MS
}

/// Whether a recommendation is the [default setting](default_setting): there is nothing to compare.
#[must_use]
pub fn is_default(tuned: &Tuned) -> bool {
    // A queue that is left open has at least two values, the default one has one.
    tuned.recommended.settings == default_setting(&tuned.recommended.settings)
}

/// The load of a setting as a scenario of this name, without thresholds. Items of which the setting leaves the queue
/// size open get `queue`, at least two.
///
/// # Errors
/// See [`NoScenario`].
pub fn load(name: &str, problem: &Problem, settings: &Settings, queue: u32) -> Result<String, NoScenario> {
    if settings.transport != Transport::Session {
        return Err(NoScenario::PubSub);
    }
    if problem.is_shared {
        return Err(NoScenario::Shared);
    }
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(text, "name = {name:?}\nlink = {:?}\n", problem.link.name);
    let sets = problem.signals.iter().map(|one| format!("\"{}:{}:{}\"", one.count, one.period_ms, one.bytes));
    let sets = sets.collect::<Vec<_>>().join(", ");
    let _ = writeln!(text, "[server]\nsets = [{sets}]\nthreads = {}", settings.threads);
    if settings.busy_poll_us > 0 {
        let _ = writeln!(text, "busy_poll_us = {}", settings.busy_poll_us);
    }
    let clients = problem.clients;
    let _ = writeln!(text, "\n[load]\nkind = \"subscribe\"\nclients = {clients}\neach_value = true");
    let _ = writeln!(text, "items = {}", problem.items().saturating_mul(clients));
    let _ = writeln!(text, "publishing_ms = {:?}", settings.publishing_ms);
    let _ = writeln!(text, "sampling_ms = {:?}", settings.sampling_ms);
    let _ = writeln!(text, "keep_alive_count = {}", settings.keep_alive_count);
    let queue = if settings.queue_size > 0 { settings.queue_size } else { queue.max(2) };
    let _ = writeln!(text, "queue = {queue}");
    if let Some(share) = problem.publish_every {
        let _ = writeln!(text, "publish_every = {share:?}");
    }
    for (name, value) in
        [("notifications_max", settings.notifications_max), ("publish_requests", settings.publish_requests)]
    {
        if value > 0 {
            let _ = writeln!(text, "{name} = {value}");
        }
    }
    if settings.security != Security::None {
        let (mode, policy) = settings.security.names();
        let _ = writeln!(text, "\n[security]\npolicy = {policy:?}\nmode = {mode:?}");
    }
    let _ = writeln!(
        text,
        "\n[time]\nwarmup_s = {WARMUP_S:?}\nduration_s = {:?}\nsteady = false\nrepetitions = {REPETITIONS}\n",
        problem.measured_s
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::analytic::Analytic;
    use super::super::problem::Options;
    use super::super::search::tune;
    use super::*;

    const PLANT: &str = "link = \"ppp-2m\"\n[[signals]]\ncount = 15\nperiod_ms = 10\n";

    fn of(text: &str, sets: &[&str]) -> Result<String, NoScenario> {
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        let problem = Problem::parse(text, "p", &Options { sets, ..Options::default() }).unwrap();
        let formulas = Analytic::new(&problem, None);
        scenario(&problem, &tune(&problem, &formulas, &formulas, &mut |_| true).unwrap())
    }

    #[test]
    fn scenarios_have_the_load_and_the_predicted_figures() {
        let text = of(PLANT, &["tune.clients=2", "tune.search.security=\"sign\""]).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(
            (table["name"].as_str(), table["load"]["items"].as_integer()),
            (Some("recommended"), Some(30))
        );
        assert_eq!(
            (table["link"].as_str(), table["security"]["mode"].as_str()),
            (Some("ppp-2m"), Some("Sign"))
        );
        let thresholds = table["threshold"].as_array().unwrap();
        assert_eq!(thresholds.len(), 3);
        for one in thresholds {
            let bound = |key: &str| one[key].as_integer().unwrap() as f64;
            assert!((bound("below") / bound("above") - 1.15 / 0.85).abs() < 0.01, "{one:?}");
        }
    }

    #[test]
    fn delays_of_servers_that_do_not_follow_writes_may_be_shorter() {
        let table: toml::Table = of(PLANT, &["tune.follows_writes=false"]).unwrap().parse().unwrap();
        let thresholds = table["threshold"].as_array().unwrap();
        let bounded: Vec<bool> = thresholds.iter().map(|one| one.get("above").is_some()).collect();
        assert_eq!(bounded, [false, false, true]);
        assert!(thresholds.iter().all(|one| one.get("below").is_some()));
    }

    #[test]
    fn promises_of_short_delays_have_the_noise_of_a_machine() {
        assert_eq!(allowed(Metric::DelayMeanMs, 40.0, true), (46.0, Some(34.0)));
        assert_eq!(allowed(Metric::DelayMeanMs, 1.0, true), (1.5, Some(0.5)));
        assert_eq!(allowed(Metric::DelayP99Ms, 0.4, true), (0.9, None));
        assert_eq!(allowed(Metric::DelayP99Ms, 40.0, false), (46.0, None));
        assert_eq!(allowed(Metric::BandwidthBitsS, 1.0, false), (1.15, Some(0.85)));
        for (metric, promised, expected) in [
            (Metric::DelayMeanMs, 3.3, true),
            (Metric::DelayMeanMs, 29.5, false),
            (Metric::DelayP99Ms, 48.0, false),
            (Metric::BandwidthBitsS, 1.0, false),
            (Metric::BandwidthBitsS, 443_000.0, false),
        ] {
            assert_eq!(is_short(metric, promised), expected, "{metric:?} {promised}");
        }
    }

    #[test]
    fn the_load_has_every_set_of_signals_and_the_clock() {
        let plant = format!("{PLANT}bytes = 4\n[[signals]]\ncount = 1\nperiod_ms = 7.5\n");
        let sets = ["tune.publish_every=0.8", "tune.search.busy_poll_us=50", "tune.measured_s=4"];
        let table: toml::Table = of(&plant, &sets).unwrap().parse().unwrap();
        let all: Vec<_> =
            table["server"]["sets"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
        assert_eq!(all, ["15:10:4", "1:7.5:8"]);
        assert_eq!(table["load"]["publish_every"].as_float(), Some(0.8));
        assert_eq!(table["server"]["busy_poll_us"].as_integer(), Some(50));
        assert_eq!(table["time"]["duration_s"].as_float(), Some(4.0));
    }

    #[test]
    fn the_load_has_the_limits_of_the_subscription() {
        let sets = [
            "tune.search.publish_requests=2",
            "tune.search.notifications_max=40",
            "tune.search.keep_alive_count=3",
        ];
        let table: toml::Table = of(PLANT, &sets).unwrap().parse().unwrap();
        assert_eq!(table["load"]["publish_requests"].as_integer(), Some(2));
        assert_eq!(table["load"]["notifications_max"].as_integer(), Some(40));
        assert_eq!(table["load"]["keep_alive_count"].as_integer(), Some(3));
        let without: toml::Table = of(PLANT, &[]).unwrap().parse().unwrap();
        assert!(without["load"].get("publish_requests").is_none());
    }

    #[test]
    fn unmeasurable_settings_say_why() {
        let shared = PLANT.replace("link = ", "link.shared = true\nlink.profile = ");
        assert_eq!(of(&shared, &[]), Err(NoScenario::Shared));
        let pubsub = ["tune.search.transport=\"pubsub\""];
        assert!(matches!(of(PLANT, &pubsub), Err(NoScenario::PubSub)));
    }

    #[test]
    fn the_default_setting_has_a_queue_of_one_value() {
        let problem = Problem::parse(PLANT, "p", &Options::default()).unwrap();
        let text = load("default", &problem, &default_setting(&Settings::usual()), 9).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!((table["name"].as_str(), table["load"]["queue"].as_integer()), (Some("default"), Some(1)));
        assert_eq!(table["load"]["publishing_ms"].as_float(), Some(500.0));
    }
}
