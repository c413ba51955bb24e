//! Age of values at the client, from the source timestamp of the write.

use super::Figure;
use super::subscribe::every_value;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Stand, VersusError};
use std::time::Duration;

/// A load with its limits.
struct Load {
    id: &'static str,
    what: &'static str,
    clients: &'static str,
    items: usize,
    /// Interval of writes and of publishing.
    interval_ms: u32,
    /// Limits in µs for the median, and optionally for the 99th percentile.
    p50_max: f64,
    p99_max: Option<f64>,
}

const LOADS: [Load; 4] = [
    Load {
        id: "delay-1",
        what: "write to client, 100 ms, 1 client",
        clients: "1",
        items: 1_000,
        interval_ms: 100,
        p50_max: 5_000.0,
        p99_max: Some(10_000.0),
    },
    Load {
        id: "delay-30",
        what: "write to client, 100 ms, 30 clients",
        clients: "30",
        items: 3_000,
        interval_ms: 100,
        p50_max: 5_000.0,
        p99_max: Some(10_000.0),
    },
    Load {
        id: "delay-300",
        what: "write to client, 100 ms, 300 clients",
        clients: "300",
        items: 3_000,
        interval_ms: 100,
        p50_max: 5_000.0,
        p99_max: Some(10_000.0),
    },
    Load {
        id: "delay-10ms",
        what: "write to client, 10 ms, 1 client",
        clients: "1",
        items: 1_000,
        interval_ms: 10,
        p50_max: 2_000.0,
        p99_max: None,
    },
];

/// The delay from a write to the client. The phase between writer and subscriptions is random: each repetition starts a
/// new server.
pub(super) struct Delay {
    load: &'static Load,
    quick: bool,
}

impl Delay {
    pub(super) fn all(quick: bool) -> impl Iterator<Item = Box<dyn Figure>> {
        LOADS.iter().map(move |load| Box::new(Self { load, quick }) as Box<dyn Figure>)
    }
}

impl Figure for Delay {
    fn id(&self) -> &'static str {
        self.load.id
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let Load { clients, items, interval_ms, .. } = *self.load;
        let server = stand.server_with_times(side, items, interval_ms)?;
        let (items, interval) = (items.to_string(), interval_ms.to_string());
        let seconds = if self.quick { "4" } else { "10" };
        let mut arguments = every_value(clients, &items, seconds).to_vec();
        for name in ["-I", "--sampling", "--update"] {
            if let Some(at) = arguments.iter().position(|argument| *argument == name) {
                arguments[at + 1] = &interval;
            }
        }
        arguments.push("--time-in-value");
        let outcome = stand.bench(&server, &arguments, Duration::from_secs(120))?;
        Ok(vec![("p50", outcome.number("/delay/p50_us")?), ("p99", outcome.number("/delay/p99_us")?)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = |name: &'static str, required: Option<f64>| {
            let row = Row::new(self.load.id, format!("{}, {name}", self.load.what), Unit::Micros);
            let row = row.figures(samples.median(Side::Ours, name), samples.median(Side::Peer, name), None);
            match required {
                Some(most) => row.absolute(
                    samples.of(Side::Ours, name),
                    Required::AtMost(most),
                    &format!("≤ {}", crate::figures::micros(most)),
                ),
                None => row.for_information(),
            }
        };
        vec![row("p50", Some(self.load.p50_max)), row("p99", self.load.p99_max)]
    }
}
