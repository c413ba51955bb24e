//! Writes a laboratory scenario that measures a recommended point, to verify the simulation.

use super::problem::Problem;
use super::search::Tuned;
use super::settings::{Security, Transport};
use std::fmt::Write;

/// Size of the laboratory server's values: Double.
const VALUE: usize = 8;
/// Maximum relative difference between measured and predicted delay.
const ALLOWED: f64 = 0.15;

/// Why there is no such scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoScenario {
    /// The laboratory's server changes all signals together.
    #[error(
        "signals with several periods cannot be measured: the laboratory's server changes all signals together"
    )]
    Periods,
    /// The laboratory's values are Doubles.
    #[error("only values of 8 bytes can be measured: the laboratory's server has Doubles")]
    Sizes,
    /// The laboratory's client chooses its own number of requests.
    #[error("Publish requests by a clock cannot be measured: the laboratory's client chooses their number")]
    Clock,
    /// The laboratory's links have a line for each direction.
    #[error(
        "a line that both directions share cannot be measured: the laboratory's links have one for each direction"
    )]
    Shared,
    /// Only sessions are supported here.
    #[error("PubSub cannot be measured this way: use a scenario with load.kind = \"pubsub\"")]
    PubSub,
}

/// The scenario for `taktwerk lab run`: the recommended settings over the same link. Its thresholds are ±15 % around
/// the predicted delay of the oldest value of a message, which the laboratory measures as `delivery`.
///
/// # Errors
/// See [`NoScenario`].
pub fn scenario(problem: &Problem, tuned: &Tuned) -> Result<String, NoScenario> {
    let chosen = &tuned.recommended;
    let settings = &chosen.settings;
    let Some(first) = problem.signals.first() else { return Err(NoScenario::Periods) };
    if problem.signals.iter().any(|one| one.period_ms != first.period_ms) {
        return Err(NoScenario::Periods);
    }
    if problem.signals.iter().any(|one| one.bytes != VALUE) {
        return Err(NoScenario::Sizes);
    }
    if problem.publish_every.is_some() {
        return Err(NoScenario::Clock);
    }
    if problem.is_shared {
        return Err(NoScenario::Shared);
    }
    if settings.transport != Transport::Session {
        return Err(NoScenario::PubSub);
    }
    let mut text = format!(
        "# Verifies the prediction of `taktwerk tune`: mean delay {:.2} ms, {:.1} kbit/s.\n\
         # Run: taktwerk lab run confirm.toml\n",
        chosen.figures.delay_mean_ms,
        chosen.figures.bandwidth_bits_s / 1e3
    );
    // Writing to a String does not fail.
    let _ = writeln!(text, "name = \"confirm\"\nlink = {:?}\n", problem.link.name);
    let _ = writeln!(text, "[server]\nupdate_ms = {:?}\nthreads = {}\n", first.period_ms, settings.threads);
    let clients = problem.clients;
    let _ = writeln!(text, "[load]\nkind = \"subscribe\"\nclients = {clients}");
    let _ = writeln!(text, "items = {}", problem.items().saturating_mul(clients));
    let _ = writeln!(text, "publishing_ms = {:?}", settings.publishing_ms);
    let _ = writeln!(text, "sampling_ms = {:?}", settings.sampling_ms);
    let queue = if settings.queue_size > 0 { settings.queue_size } else { tuned.queue_size.max(2) };
    let _ = writeln!(text, "queue = {queue}\n");
    if settings.security != Security::None {
        let (mode, policy) = settings.security.names();
        let _ = writeln!(text, "[security]\npolicy = {policy:?}\nmode = {mode:?}\n");
    }
    let _ = writeln!(text, "[time]\nwarmup_s = 3\nduration_s = 10\nrepetitions = 5\n");
    // The values of a message were written one period apart, so the oldest is older than their mean by half of the
    // span.
    let promised = oldest_ms(chosen.figures.delay_mean_ms, settings.publishing_ms, first.period_ms) * 1e3;
    for (bound, factor) in [("below", 1.0 + ALLOWED), ("above", 1.0 - ALLOWED)] {
        let limit = (promised * factor).round();
        let _ = writeln!(text, "[[threshold]]\nmetric = \"delivery.mean_us\"\n{bound} = {limit}\n");
    }
    Ok(text)
}

/// Mean delay of the first value in each message, from the mean delay of all values.
fn oldest_ms(mean_ms: f64, publishing_ms: f64, period_ms: f64) -> f64 {
    mean_ms + (publishing_ms - period_ms).max(0.0) / 2.0
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
    fn scenarios_have_the_load_and_the_predicted_delay() {
        let text = of(PLANT, &["tune.clients=2", "tune.search.security=\"sign\""]).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["load"]["items"].as_integer(), Some(30));
        assert_eq!(
            (table["link"].as_str(), table["security"]["mode"].as_str()),
            (Some("ppp-2m"), Some("Sign"))
        );
        let bounds: Vec<f64> = table["threshold"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|one| ["below", "above"].map(|bound| one.get(bound).and_then(toml::Value::as_integer)))
            .flatten()
            .map(|bound| bound as f64)
            .collect();
        assert_eq!(bounds.len(), 2);
        assert!((bounds[0] / bounds[1] - 1.15 / 0.85).abs() < 0.01, "{bounds:?}");
    }

    #[test]
    fn the_oldest_value_waits_longest() {
        // Two values in a message; the newer one is 4.46 ms old.
        assert!((oldest_ms(9.46, 20.0, 10.0) - 14.46).abs() < 1e-9);
        assert_eq!(oldest_ms(3.0, 5.0, 10.0), 3.0);
    }

    #[test]
    fn unmeasurable_settings_say_why() {
        let two = format!("{PLANT}[[signals]]\ncount = 1\nperiod_ms = 20\n");
        assert_eq!(of(&two, &[]), Err(NoScenario::Periods));
        assert_eq!(of(PLANT, &["signals.0.bytes=4"]), Err(NoScenario::Sizes));
        assert_eq!(of(PLANT, &["tune.publish_every=0.8"]), Err(NoScenario::Clock));
        let shared = PLANT.replace("link = ", "link.shared = true\nlink.profile = ");
        assert_eq!(of(&shared, &[]), Err(NoScenario::Shared));
        let pubsub = ["tune.search.transport=\"pubsub\""];
        assert!(matches!(of(PLANT, &pubsub), Err(NoScenario::PubSub)));
    }
}
