//! Server CPU of subscriptions: per signal, over a thousand clients, and per extra publish cycle.

use super::Figure;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Outcome, Stand, VersusError};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SERVERS: [Side; 2] = [Side::Ours, Side::Peer];

/// Subscribes at 100 ms to `items` signals that change every 100 ms, spread over `clients`.
fn subscribe(
    stand: &Stand,
    side: Side,
    items: usize,
    clients: usize,
    quick: bool,
) -> Result<Outcome, VersusError> {
    let server = stand.server(side, items, 100)?;
    let (items, clients) = (items.to_string(), clients.to_string());
    let seconds = if quick { "4" } else { "10" };
    let arguments = every_value(&clients, &items, seconds);
    stand.bench(&server, &arguments, LIMIT)
}

/// Arguments of a load that receives every value of signals that change every 100 ms.
pub(super) fn every_value<'a>(clients: &'a str, items: &'a str, seconds: &'a str) -> [&'a str; 17] {
    [
        "subscribe",
        "-c",
        clients,
        "--items",
        items,
        "-I",
        "100",
        "--sampling",
        "100",
        "--queue",
        "1",
        "--update",
        "100",
        "-d",
        seconds,
        "--warmup",
        "2",
    ]
}

/// Server CPU per signal at 100 000 signals/s to one client.
pub(super) struct PerSignal {
    pub(super) quick: bool,
}

impl Figure for PerSignal {
    fn id(&self) -> &'static str {
        "signal-cpu"
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let outcome = subscribe(stand, side, 10_000, 1, self.quick)?;
        Ok(vec![
            ("cpu_per_signal", outcome.number("/server/cpu_us_per_signal")?),
            ("worst_item", outcome.number("/progress/worst_item_ratio")?),
        ])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("signal-cpu", "server CPU per signal, 100 000/s", Unit::Micros)
            .figures(
                samples.median(Side::Ours, "cpu_per_signal"),
                samples.median(Side::Peer, "cpu_per_signal"),
                None,
            )
            .ratio(
                samples.of(Side::Ours, "cpu_per_signal"),
                samples.of(Side::Peer, "cpu_per_signal"),
                Required::AtMost(1.0 / 8.0),
                "of peer",
            );
        vec![row]
    }
}

/// Server CPU for 10 000 signals/s over 1 000 clients. The floor is receiving and sending as many messages without a
/// protocol.
pub(super) struct ManyClients {
    pub(super) quick: bool,
}

/// Receives and sends per second of 1 000 clients at 100 ms.
const CYCLES: f64 = 10_000.0;

impl Figure for ManyClients {
    fn id(&self) -> &'static str {
        "clients-1000"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Floor, Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        if side == Side::Floor {
            // One percent of a core is 10 000 µs in each second.
            return Ok(vec![(
                "cpu_percent",
                bare_cycle_us(stand, "1000", "10000", self.quick)? * CYCLES / 1e4,
            )]);
        }
        let outcome = subscribe(stand, side, 1_000, 1_000, self.quick)?;
        Ok(vec![("cpu_percent", outcome.number("/server/cpu_percent")?)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("clients-1000", "server CPU, 10 000/s, 1 000 clients", Unit::Percent)
            .figures(
                samples.median(Side::Ours, "cpu_percent"),
                samples.median(Side::Peer, "cpu_percent"),
                samples.median(Side::Floor, "cpu_percent"),
            )
            .ratio(
                samples.of(Side::Ours, "cpu_percent"),
                samples.of(Side::Peer, "cpu_percent"),
                Required::AtMost(1.0 / 3.0),
                "of peer",
            );
        vec![row]
    }
}

/// 10 000 signals/s over 30 clients and over one: the cost of an extra publish cycle, compared with the bare send and
/// receive that it needs.
pub(super) struct Spread {
    pub(super) quick: bool,
}

/// Additional publish cycles per second of 30 clients compared with one, at 100 ms.
const EXTRA_CYCLES: f64 = 290.0;

impl Figure for Spread {
    fn id(&self) -> &'static str {
        "clients-30"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Floor, Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        if side == Side::Floor {
            return Ok(vec![("per_cycle", bare_cycle_us(stand, "30", "300", self.quick)?)]);
        }
        let one = subscribe(stand, side, 1_000, 1, self.quick)?.number("/server/cpu_percent")?;
        let thirty = subscribe(stand, side, 1_000, 30, self.quick)?.number("/server/cpu_percent")?;
        // One percent of a core is 10 000 µs in each second.
        let per_cycle = (thirty - one) * 10_000.0 / EXTRA_CYCLES;
        Ok(vec![("one", one), ("thirty", thirty), ("per_cycle", per_cycle)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let against_peer = |name: &'static str, what: &str| {
            Row::new("clients-30", what, Unit::Percent)
                .figures(samples.median(Side::Ours, name), samples.median(Side::Peer, name), None)
                .ratio(
                    samples.of(Side::Ours, name),
                    samples.of(Side::Peer, name),
                    Required::AtMost(1.0),
                    "of peer",
                )
        };
        let cycle = Row::new("clients-30", "CPU per extra publish cycle", Unit::Micros)
            .figures(
                samples.median(Side::Ours, "per_cycle"),
                samples.median(Side::Peer, "per_cycle"),
                samples.median(Side::Floor, "per_cycle"),
            )
            .ratio(
                samples.of(Side::Ours, "per_cycle"),
                samples.of(Side::Floor, "per_cycle"),
                Required::AtMost(1.5),
                "of floor",
            );
        vec![
            against_peer("one", "server CPU, 10 000/s, 1 client"),
            against_peer("thirty", "server CPU, 10 000/s, 30 clients"),
            cycle,
        ]
    }
}

/// Server CPU in µs per bare receive and send, at a rate over all connections.
fn bare_cycle_us(stand: &Stand, connections: &str, rate: &str, quick: bool) -> Result<f64, VersusError> {
    let seconds = if quick { "4" } else { "10" };
    let arguments = [
        "--send-recv-cost",
        "--connections",
        connections,
        "--rate",
        rate,
        "--seconds",
        seconds,
        "--initiator",
        "server",
        "--server-cpu",
        "0",
        "--client-cpu",
        "1",
    ];
    stand.floor(&arguments, LIMIT)?.number("/server_cpu_us_per_pair")
}
