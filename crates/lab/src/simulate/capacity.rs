//! Finds links that cannot carry their load, without simulating.

mod pubsub;

use taktwerk_netem::profile::rate_text;
use taktwerk_sim::scenario::{Lines, Load, Pace, Scenario};

/// Minimum bytes of a notification: client handle, mask, type, and two timestamps (Part 6 §5.2.2.17).
const NOTIFICATION: f64 = 22.0;
/// Minimum bytes of a message with its IP and TCP headers.
const MESSAGE: f64 = 100.0;

/// The key of the first contradiction, and what to do about it.
pub(super) fn problem(scenario: &Scenario) -> Option<(String, String)> {
    scenario.links.iter().enumerate().find_map(|(at, link)| {
        let rate = link.profile.down.usable_rate()?;
        let key = format!("link.{at}.rate");
        if rate < 100.0 {
            return Some((key, "the link has no capacity left: check rate and busy".to_owned()));
        }
        let needs = needs(scenario, at, link.lines);
        if let Some(problem) = pubsub::problem(scenario, at, needs, key.clone()) {
            return Some(problem);
        }
        (needs > rate).then(|| {
            let [needs, rate] = [needs, rate].map(|bits| rate_text(Some(bits)));
            let times = needs_times(scenario);
            (
                key,
                format!(
                    "link {:?} carries {rate} from the server, but its clients need at least {needs}. Raise the rate, \
                     {times}monitor fewer items, or publish less often with queue = 1",
                    link.name
                ),
            )
        })
    })
}

fn needs_times(scenario: &Scenario) -> &'static str {
    let shared = scenario.clients.iter().any(|clients| clients.count > 1);
    if shared { "write lines = \"per-client\" if each client has a line of its own, " } else { "" }
}

/// Minimum bits per second for all clients of one line.
fn needs(scenario: &Scenario, link: usize, lines: Lines) -> f64 {
    let all = scenario.clients.iter().filter(|clients| clients.link == Some(link)).filter_map(|clients| {
        let server = scenario.servers.get(clients.server)?;
        let signals: f64 = server.signals.iter().map(|signals| f64::from(signals.count)).sum();
        let share = clients.items.map_or(1.0, |items| (f64::from(items) / signals.max(1.0)).min(1.0));
        let of_one = match &clients.load {
            Load::Subscribe(it) => {
                let interval = it.publishing_interval.as_secs_f64().max(1e-9);
                let values = server.signals.iter().map(|signals| {
                    let changes = 1.0 / signals.period.as_secs_f64();
                    let changes = if changes.is_finite() { changes } else { 0.0 };
                    // Values that the server leaves out need no bandwidth.
                    let sampled = match it.sampling_interval.as_secs_f64() {
                        sampling if sampling > 0.0 => changes.min(1.0 / sampling),
                        _ => changes,
                    };
                    let queue = it.queue_size.map_or(f64::MAX, |size| f64::from(size) / interval);
                    let bytes = NOTIFICATION + signals.value_len as f64;
                    f64::from(signals.count) * share * sampled.min(queue) * bytes
                });
                values.sum::<f64>() * 8.0
            }
            Load::Request(it) => match it.pace {
                Pace::Every(period) => {
                    let len = server.signals.first().map_or(8, |signals| signals.value_len) as f64;
                    let value = if it.writes { 4.0 } else { len + 2.0 };
                    (MESSAGE + f64::from(it.batch) * value) * 8.0 / period.as_secs_f64().max(1e-9)
                }
                Pace::Pause(_) => 0.0,
            },
        };
        let clients_of_line = match lines {
            Lines::One => f64::from(server.count) * f64::from(clients.count),
            Lines::PerServer => f64::from(clients.count),
            Lines::PerClient => 1.0,
        };
        Some(of_one * clients_of_line)
    });
    all.sum()
}
