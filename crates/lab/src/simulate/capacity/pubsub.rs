//! Finds links that cannot carry the load of their publishers and subscribers.

use super::{Direction, Needs};
use taktwerk_sim::scenario::pubsub::{Publishers, Transport};
use taktwerk_sim::scenario::{Lines, Link, Scenario};

/// Minimum bytes of a NetworkMessage with one DataSetMessage and its IP and UDP headers.
const MESSAGE: f64 = 60.0;

/// The problem and its corrections.
pub(super) fn told(direction: Direction, link: &str, needs: &str, rate: &str) -> String {
    let direction = match direction {
        Direction::Up => "from publishers and clients",
        Direction::Down => "to subscribers and clients",
        Direction::Both => "in both directions",
    };
    format!(
        "link {link:?} carries {rate} {direction}, but at least {needs} are sent. Raise the rate, publish less often, send fewer \
         signals, or write lines = \"per-client\" if each has a line of its own"
    )
}

/// Minimum bits per second that a publisher sends.
fn of_one(publishers: &Publishers) -> f64 {
    let interval = publishers.publishing_interval.as_secs_f64().max(1e-9);
    let values = publishers.signals.iter().map(|signals| {
        // Key frames have all fields; delta frames in between only the changed ones.
        let keys = 1.0 / (interval * f64::from(publishers.key_frame_count.max(1)));
        let changes = 1.0 / signals.period.as_secs_f64();
        let changes = if changes.is_finite() { changes } else { 0.0 };
        let sent = if publishers.key_frame_count <= 1 { keys } else { keys.max(changes.min(1.0 / interval)) };
        f64::from(signals.count) * sent * signals.value_len as f64
    });
    let messages = MESSAGE / (interval * f64::from(publishers.key_frame_count.max(1)));
    (values.sum::<f64>() + messages) * 8.0
}

/// Minimum bits per second from publishers and to subscribers over one line of a link.
pub(super) fn needs(scenario: &Scenario, at: usize, link: &Link) -> Needs {
    let lines = link.lines;
    let parts = &scenario.pubsub;
    let (mut up, mut down) = (0.0, 0.0);
    for (group, publishers) in parts.publishers.iter().enumerate() {
        let each = of_one(publishers);
        let listening = || parts.subscribers.iter().filter(|one| one.publishers.contains(&group));
        if publishers.link == Some(at) {
            let count = if lines == Lines::One { f64::from(publishers.count) } else { 1.0 };
            let copies: f64 = match publishers.transport {
                Transport::Unicast => listening().map(|one| f64::from(one.count)).sum(),
                _ => 1.0,
            };
            up += each * count * copies;
        }
        let mut is_heard = false;
        for subscribers in listening().filter(|one| one.link == Some(at)) {
            let all = each * f64::from(publishers.count);
            let count = if lines == Lines::PerClient { 1.0 } else { f64::from(subscribers.count) };
            let is_shared = publishers.transport == Transport::Multicast && lines != Lines::PerClient;
            down += match (is_shared, core::mem::replace(&mut is_heard, true)) {
                // One copy for all subscribers on the line.
                (true, true) => 0.0,
                (true, false) => all,
                (false, _) => all * count,
            };
        }
    }
    if link.is_half_duplex {
        // On a shared medium, subscribers receive what publishers send there, so it counts once.
        return Needs { up: up.max(down), down: 0.0 };
    }
    Needs { up, down }
}
