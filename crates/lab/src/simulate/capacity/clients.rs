//! What clients and their servers send at least.

use super::{Direction, Needs};
use taktwerk_netem::emulator::Conditions;
use taktwerk_netem::tcp::Config;
use taktwerk_sim::scenario::{
    Clients, Lines, Link, Load, Operation, Pace, Requests, Scenario, Server, Subscription,
};

/// Bytes of a notification: client handle, mask, type, and two timestamps (Part 6 §5.2.2.17).
const NOTIFICATION: f64 = 22.0;
/// Bytes of a message's chunk header (Part 6 §6.7.2), its type, and the shortest header of a request or response.
const MESSAGE: f64 = 48.0;
/// Bytes of an acknowledgement in a Publish request.
const ACKNOWLEDGEMENT: f64 = 8.0;
/// Bytes of a ReadValueId with the shortest NodeId.
const READ: f64 = 16.0;
/// Bytes of a WriteValue with the shortest NodeId, without the value.
const WRITE: f64 = 12.0;
/// Bytes of a result: a DataValue without its value, or a StatusCode.
const RESULT: f64 = 2.0;
const STATUS: f64 = 4.0;
/// Bytes of the source time of a value from the history.
const SOURCE_TIME: f64 = 8.0;

/// Minimum bits per second for all clients of one line.
pub(super) fn needs(scenario: &Scenario, at: usize, link: &Link) -> Needs {
    let all = scenario.clients.iter().filter(|clients| clients.link == Some(at)).filter_map(|clients| {
        let server = scenario.servers.get(clients.server)?;
        let one = match &clients.load {
            Load::Subscribe(it) => of_subscription(server, clients, it, link),
            Load::Request(it) => of_requests(server, it, link),
        };
        let count = match link.lines {
            Lines::One => f64::from(server.count) * f64::from(clients.count),
            Lines::PerServer => f64::from(clients.count),
            Lines::PerClient => 1.0,
        };
        Some(Needs { up: one.up * count, down: one.down * count })
    });
    all.fold(Needs::default(), |sum, one| sum + one)
}

/// Bits per second for messages per second with this many bytes per second above TCP.
fn line(messages: f64, bytes_s: f64, conditions: &Conditions, link: &Link) -> f64 {
    (bytes_s + messages.max(bytes_s / segment(link)) * packet(conditions)) * 8.0
}

/// Bytes of a packet without data.
fn packet(conditions: &Conditions) -> f64 {
    (Config::HEADERS + conditions.overhead) as f64
}

/// Bytes of data in a full packet.
fn segment(link: &Link) -> f64 {
    usize::from(link.profile.mtu).saturating_sub(Config::HEADERS).max(1) as f64
}

/// A message per publishing interval, as far as values change, and a Publish request for each. A receiver acknowledges
/// every second full segment (RFC 5681 §4.2), and a request carries one acknowledgement.
fn of_subscription(server: &Server, clients: &Clients, it: &Subscription, link: &Link) -> Needs {
    let signals: f64 = server.signals.iter().map(|signals| f64::from(signals.count)).sum();
    let share = clients.items.map_or(1.0, |items| (f64::from(items) / signals.max(1.0)).min(1.0));
    let interval = it.publishing_interval.as_secs_f64().max(1e-9);
    let (mut bytes_s, mut slowest, mut fastest) = (0.0, f64::MAX, 0.0f64);
    for signals in &server.signals {
        let changes = 1.0 / signals.period.as_secs_f64();
        let changes = if changes.is_finite() { changes } else { 0.0 };
        // Values that the server leaves out need no bandwidth.
        let sampled = match it.sampling_interval.as_secs_f64() {
            sampling if sampling > 0.0 => changes.min(1.0 / sampling),
            _ => changes,
        };
        let queue = it.queue_size.map_or(f64::MAX, |size| f64::from(size) / interval);
        let bytes = NOTIFICATION + signals.value_len as f64;
        bytes_s += f64::from(signals.count) * share * sampled.min(queue) * bytes;
        if signals.count > 0 {
            fastest = fastest.max(sampled);
            slowest = slowest.min(sampled);
        }
    }
    // A client with some of the items may have the slow ones.
    let messages = if share < 1.0 { slowest.min(fastest) } else { fastest }.min(1.0 / interval);
    let bytes_s = bytes_s + messages * MESSAGE;
    let acknowledgements = (bytes_s / segment(link) / 2.0 - 1.5 * messages).max(0.0);
    let up = &link.profile.up;
    Needs {
        up: line(messages, messages * (MESSAGE + ACKNOWLEDGEMENT), up, link)
            + acknowledgements * packet(up) * 8.0,
        down: line(messages, bytes_s, &link.profile.down, link),
    }
}

/// Requests at fixed times. Clients that pause after each response adapt to the link.
fn of_requests(server: &Server, it: &Requests, link: &Link) -> Needs {
    let Pace::Every(period) = it.pace else { return Needs::default() };
    let per_s = 1.0 / period.as_secs_f64().max(1e-9);
    let batch = f64::from(it.batch);
    let len = server.signals.first().map_or(8, |signals| signals.value_len) as f64;
    let (request, response) = match it.operation {
        Operation::Write => (WRITE + len, STATUS),
        Operation::Read => (READ, RESULT + len),
        Operation::ReadHistory(values) => (READ, STATUS + f64::from(values) * (RESULT + SOURCE_TIME + len)),
    };
    Needs {
        up: line(per_s, per_s * (MESSAGE + batch * request), &link.profile.up, link),
        down: line(per_s, per_s * (MESSAGE + batch * response), &link.profile.down, link),
    }
}

/// The problem and its corrections.
pub(super) fn told(scenario: &Scenario, direction: Direction, link: &str, needs: &str, rate: &str) -> String {
    let is_one_of_many = scenario.clients.iter().any(|clients| clients.count > 1);
    let lines = if is_one_of_many {
        "write lines = \"per-client\" if each client has a line of its own, "
    } else {
        ""
    };
    let (what, remedy) = match direction {
        Direction::Down => (
            format!("carries {rate} from the server, but its clients need at least {needs}"),
            "monitor fewer items, or publish less often with queue = 1",
        ),
        Direction::Up => (
            format!("carries {rate} to the server, but its clients send at least {needs}"),
            "publish less often, or send fewer or smaller requests",
        ),
        Direction::Both => (
            format!(
                "carries {rate} in both directions together, but clients and servers send at least {needs}"
            ),
            "monitor fewer items, publish less often with queue = 1, or send fewer requests",
        ),
    };
    format!("link {link:?} {what}. Raise the rate, {lines}{remedy}")
}
