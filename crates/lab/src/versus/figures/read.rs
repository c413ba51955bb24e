//! Read: round trip of one node, and the server's CPU for a thousand nodes.

use super::Figure;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Stand, VersusError};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Read round trip of one node with client and server on one CPU, compared with a bare TCP ping-pong.
pub(super) struct RoundTrip {
    pub(super) quick: bool,
}

impl Figure for RoundTrip {
    fn id(&self) -> &'static str {
        "read-rtt"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Floor, Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let rounds = if self.quick { "20000" } else { "100000" };
        if side == Side::Floor {
            let arguments = ["--same-cpu", "0", "--rounds", rounds, "--request", "120", "--response", "110"];
            let floor = stand.floor(&arguments, LIMIT)?;
            return Ok(vec![("p50", floor.number("/p50_us")?), ("p99", floor.number("/p99_us")?)]);
        }
        let server = stand.server(side, 100, 0)?;
        let arguments = ["read", "--closed", "-n", rounds, "--batch", "1", "--nodes", "ns=1;i=100000"];
        let outcome = stand.bench_beside(&server, &arguments, LIMIT)?;
        Ok(vec![
            ("p50", outcome.number("/latency/uncorrected/p50_us")?),
            ("p99", outcome.number("/latency/uncorrected/p99_us")?),
            ("server_cpu", outcome.number("/server/cpu_us_per_request")?),
        ])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("read-rtt", "read round trip, 1 node, one cpu", Unit::Micros)
            .figures(
                samples.median(Side::Ours, "p50"),
                samples.median(Side::Peer, "p50"),
                samples.median(Side::Floor, "p50"),
            )
            .ratio(
                samples.of(Side::Ours, "p50"),
                samples.of(Side::Floor, "p50"),
                Required::AtMost(1.35),
                "of floor",
            );
        vec![row]
    }
}

/// Server CPU for a Read of 1 000 nodes. The cost of receiving and sending the bytes is the same for every server and
/// depends on the machine. The limit applies to the rest.
pub(super) struct ThousandNodes {
    pub(super) quick: bool,
}

/// Bytes of the request: an expanded NodeId of seven bytes, 14 for the rest of each ReadValueId, and the headers.
const REQUEST: &str = "21100";
/// Bytes of the response: a mask, a Double with its type, and two timestamps for each value, and the headers.
const RESPONSE: &str = "26100";

impl Figure for ThousandNodes {
    fn id(&self) -> &'static str {
        "read-1000"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Floor, Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        if side == Side::Floor {
            let rounds = if self.quick { "10000" } else { "50000" };
            let sizes = ["--rounds", rounds, "--request", REQUEST, "--response", RESPONSE];
            let arguments = [&sizes[..], &["--server-cpu", "0", "--client-cpu", "1"]].concat();
            let floor = stand.floor(&arguments, LIMIT)?;
            return Ok(vec![("server_cpu", floor.number("/server_cpu_us_per_round")?)]);
        }
        let server = stand.server(side, 1_000, 0)?;
        let seconds = if self.quick { "2" } else { "5" };
        let arguments = ["read", "--closed", "-d", seconds, "--batch", "1000"];
        let outcome = stand.bench(&server, &arguments, LIMIT)?;
        Ok(vec![("server_cpu", outcome.number("/server/cpu_us_per_request")?)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let floor = samples.median(Side::Floor, "server_cpu");
        let row = Row::new("read-1000", "server CPU, Read of 1 000 nodes", Unit::Micros).figures(
            samples.median(Side::Ours, "server_cpu"),
            samples.median(Side::Peer, "server_cpu"),
            floor,
        );
        // Without the floor nothing can be subtracted, and the row is undecided.
        let rest = |side| -> Vec<f64> {
            let of = |floor: f64| samples.of(side, "server_cpu").iter().map(|cpu| cpu - floor).collect();
            floor.map_or_else(Vec::new, of)
        };
        vec![row.ratio(&rest(Side::Ours), &rest(Side::Peer), Required::AtMost(0.2), "of peer above floor")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_subtracted_from_both_sides() {
        let judged = |with_floor: bool, ours: f64| {
            let mut samples = Samples::default();
            for _ in 0..5 {
                if with_floor {
                    samples.add(Side::Floor, "server_cpu", 20.0);
                }
                samples.add(Side::Ours, "server_cpu", ours);
                samples.add(Side::Peer, "server_cpu", 140.0);
            }
            ThousandNodes { quick: false }.judge(&samples).remove(0).holds()
        };
        // 15 and 30 of 120, where 24 is the limit.
        assert_eq!((judged(true, 35.0), judged(true, 50.0)), (Some(true), Some(false)));
        assert_eq!(judged(false, 35.0), None);
    }
}
