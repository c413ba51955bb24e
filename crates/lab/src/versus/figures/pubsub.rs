//! PubSub: CPU per signal, lateness of cycles and delivery time, compared with our own client/server, with open62541's
//! publisher, and with MQTT through mosquitto.

use super::Figure;
use super::subscribe::every_value;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Stand, VersusError};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(150);
/// Unicast, so that both stacks send in the same way.
const UNICAST: &str = "opc.udp://127.0.0.1:14856";

/// CPU per signal of 10 000 floats every 100 ms, all of them new in each cycle.
pub(super) struct Cpu {
    pub(super) quick: bool,
}

impl Figure for Cpu {
    fn id(&self) -> &'static str {
        "pubsub-cpu"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let seconds = if self.quick { "2" } else { "5" };
        if side == Side::Peer {
            // 330 floats fit into a frame, as in our messages. A single message with all of them is possible only over
            // loopback.
            let mut each = Vec::new();
            for per_message in ["330", "10000"] {
                let arguments = ["--signals", "10000", "--per-message", per_message, "--seconds", seconds];
                each.push(
                    stand.peer_publisher(&arguments, LIMIT)?.number("/publisher_cpu_ns_per_signal")? / 1e3,
                );
            }
            let [framed, whole] = each.as_slice() else { return Ok(Vec::new()) };
            return Ok(vec![("publisher", framed.min(*whole)), ("framed", *framed), ("whole", *whole)]);
        }
        let mut quantities = Vec::new();
        for (name, extra) in [
            ("publisher", ["--layout", "periodic-fixed"]),
            ("dynamic", ["--layout", "dynamic"]),
            ("encrypted", ["--security", "sign-and-encrypt"]),
        ] {
            let arguments = [UNICAST, "--signals", "10000", "-d", seconds, "--rounds", "1", "--no-bare"];
            let arguments = [arguments.as_slice(), &extra].concat();
            let outcome = stand.pubsub(&arguments, LIMIT)?;
            quantities.push((name, outcome.number("/publisher_cpu_ns_per_signal")? / 1e3));
        }
        let server = stand.server(Side::Ours, 10_000, 100)?;
        let arguments = every_value("1", "10000", seconds);
        let outcome = stand.bench(&server, &arguments, LIMIT)?;
        quantities.push(("client_server", outcome.number("/server/cpu_us_per_signal")?));
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let ours = |name| samples.of(Side::Ours, name);
        let against_peer = Row::new(self.id(), "publisher CPU per signal", Unit::Micros)
            .figures(samples.median(Side::Ours, "publisher"), samples.median(Side::Peer, "publisher"), None)
            .ratio(ours("publisher"), samples.of(Side::Peer, "publisher"), Required::AtMost(0.2), "of peer");
        let against_own = |what: &str, name: &'static str| {
            Row::new(self.id(), what, Unit::Micros)
                .figures(samples.median(Side::Ours, name), samples.median(Side::Ours, "client_server"), None)
                .ratio(ours(name), ours("client_server"), Required::AtMost(1.0 / 3.0), "of client/server")
        };
        vec![
            against_peer,
            against_own("  against our client/server", "publisher"),
            Row::new(self.id(), "  with the dynamic layout", Unit::Micros)
                .figures(
                    samples.median(Side::Ours, "dynamic"),
                    samples.median(Side::Ours, "client_server"),
                    None,
                )
                .for_information(),
            Row::new(self.id(), "  signed and encrypted", Unit::Micros)
                .figures(
                    samples.median(Side::Ours, "encrypted"),
                    samples.median(Side::Ours, "client_server"),
                    None,
                )
                .for_information(),
        ]
    }
}

/// The number of signals that one core publishes without losing a cycle.
pub(super) struct Rate {
    pub(super) quick: bool,
}

impl Figure for Rate {
    fn id(&self) -> &'static str {
        "pubsub-rate"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours]
    }

    fn measure(&mut self, _: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let seconds = if self.quick { "2" } else { "5" };
        let arguments =
            [UNICAST, "--signals", "100000", "-I", "10", "-d", seconds, "--rounds", "1", "--no-bare"];
        let outcome = stand.pubsub(&arguments, LIMIT)?;
        Ok(vec![
            ("per_second", outcome.number("/signals_per_s")?),
            ("cpu_percent", outcome.number("/publisher_cpu_percent")?),
            ("lost", outcome.number("/cycles_missed")? + outcome.number("/messages_failed")?),
        ])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let own = |what: &str, unit, name: &'static str| {
            Row::new(self.id(), what, unit).figures(samples.median(Side::Ours, name), None, None)
        };
        vec![
            own("signals from one core", Unit::PerSecond, "per_second").absolute(
                samples.of(Side::Ours, "per_second"),
                Required::AtLeast(5e6),
                "≥ 5 000 000/s",
            ),
            own("  CPU of that core", Unit::Percent, "cpu_percent").for_information(),
            own("  cycles and messages lost", Unit::Count, "lost").for_information(),
        ]
    }
}

/// Lateness of cycles, compared with a bare loop that sends the same datagrams, alternating with the publisher.
pub(super) struct Period {
    pub(super) quick: bool,
}

/// Interval in milliseconds, and the names of its p99 and of the bare loop's p99.
const PERIODS: [(&str, &str, &str); 3] =
    [("100", "late 100", "bare 100"), ("10", "late 10", "bare 10"), ("1", "late 1", "bare 1")];

impl Figure for Period {
    fn id(&self) -> &'static str {
        "pubsub-period"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let seconds = if self.quick { "2" } else { "5" };
        if side == Side::Peer {
            let arguments = ["--signals", "100", "--interval", "1", "--seconds", seconds];
            let outcome = stand.peer_publisher(&arguments, LIMIT)?;
            return Ok(vec![("lost", outcome.number("/cycles_missed_percent")?)]);
        }
        let mut quantities = Vec::new();
        for (interval, late, bare) in PERIODS {
            // At 100 ms, a short window would have too few cycles for a percentile.
            let seconds = if interval == "100" && !self.quick { "10" } else { seconds };
            let arguments = [UNICAST, "--signals", "100", "-I", interval, "-d", seconds, "--rounds", "5"];
            let outcome = stand.pubsub(&arguments, LIMIT)?;
            quantities.push((late, outcome.number("/lateness/p99_us")?));
            quantities.push((bare, outcome.number("/bare_lateness/p99_us")?));
            if interval == "1" {
                let share = |lost: f64, run: f64| lost / (lost + run) * 100.0;
                let (run, missed) = (outcome.number("/cycles")?, outcome.number("/cycles_missed")?);
                let (bare, bare_missed) =
                    (outcome.number("/bare_cycles")?, outcome.number("/bare_cycles_missed")?);
                // Messages that the subscriber misses were sent, but lost on the way.
                quantities.push(("lost", share(missed + outcome.number("/received/missing")?, run)));
                quantities.push(("lost busy", share(outcome.number("/cycles_missed_busy")?, run)));
                quantities.push(("lost bare", share(bare_missed, bare)));
            }
        }
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let mut rows: Vec<Row> = PERIODS
            .into_iter()
            .map(|(interval, late, bare)| {
                Row::new(self.id(), format!("lateness p99, {interval} ms"), Unit::Micros)
                    .figures(samples.median(Side::Ours, late), None, samples.median(Side::Ours, bare))
                    .ratio(
                        samples.of(Side::Ours, late),
                        samples.of(Side::Ours, bare),
                        Required::AtMost(1.2),
                        "of floor",
                    )
            })
            .collect();
        // If other programs occupy the machine for longer than a cycle, the bare loop loses cycles too.
        let bare = samples.median(Side::Ours, "lost bare");
        rows.push(
            Row::new(self.id(), "cycles lost at 1 ms", Unit::Percent)
                .figures(samples.median(Side::Ours, "lost"), samples.median(Side::Peer, "lost"), bare)
                .absolute(
                    samples.of(Side::Ours, "lost"),
                    Required::AtMost(bare.unwrap_or(0.0) * 1.2),
                    "≤ 1.20 of floor",
                ),
        );
        rows.push(
            Row::new(self.id(), "  of these not asleep", Unit::Percent)
                .figures(samples.median(Side::Ours, "lost busy"), None, None)
                .for_information(),
        );
        rows
    }
}

/// Whether cycles become later with more signals, as the paper observed without an explanation.
pub(super) struct Growth {
    pub(super) quick: bool,
}

/// Signals every 10 ms, with the names of their median, their p99, and the bare loop's p99.
const RATES: [(&str, &str, &str, &str); 4] = [
    ("100", "p50 100", "p99 100", "bare 100"),
    ("1000", "p50 1000", "p99 1000", "bare 1000"),
    ("10000", "p50 10000", "p99 10000", "bare 10000"),
    ("50000", "p50 50000", "p99 50000", "bare 50000"),
];

impl Figure for Growth {
    fn id(&self) -> &'static str {
        "pubsub-growth"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours]
    }

    fn measure(&mut self, _: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let seconds = if self.quick { "2" } else { "4" };
        let mut quantities = Vec::new();
        for (signals, p50, p99, bare) in RATES {
            let arguments = [UNICAST, "--signals", signals, "-I", "10", "-d", seconds, "--rounds", "4"];
            let outcome = stand.pubsub(&arguments, LIMIT)?;
            // Below 1 µs, the clock's resolution would be compared.
            quantities.push((p50, outcome.number("/lateness/p50_us")?.max(1.0)));
            quantities.push((p99, outcome.number("/lateness/p99_us")?));
            quantities.push((bare, outcome.number("/bare_lateness/p99_us")?));
        }
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let (_, few, ..) = RATES[0];
        let ours = |name| samples.of(Side::Ours, name);
        let row = |what: String, name, other| {
            let (name, other) = (samples.median(Side::Ours, name), samples.median(Side::Ours, other));
            Row::new(self.id(), what, Unit::Micros).figures(name, None, other)
        };
        RATES[1..]
            .iter()
            .flat_map(|(signals, p50, p99, bare)| {
                // The slowest cycles depend on the machine, so they are compared with a loop that sends as much.
                let (limit, of) = (Required::AtMost(1.2), "of 100 signals");
                [
                    row(format!("late p50, {signals} per 10 ms"), p50, few).ratio(
                        ours(p50),
                        ours(few),
                        limit,
                        of,
                    ),
                    row(format!("late p99, {signals} per 10 ms"), p99, bare).ratio(
                        ours(p99),
                        ours(bare),
                        limit,
                        "of floor",
                    ),
                ]
            })
            .collect()
    }
}

/// The mean period over a minute. Measured once, because a minute is long enough.
pub(super) struct Drift {
    pub(super) quick: bool,
    pub(super) done: bool,
}

const DRIFTS: [(&str, &str); 3] = [("100", "drift 100"), ("10", "drift 10"), ("1", "drift 1")];

impl Figure for Drift {
    fn id(&self) -> &'static str {
        "pubsub-drift"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours]
    }

    fn measure(&mut self, _: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let mut quantities = Vec::new();
        if self.done {
            return Ok(quantities);
        }
        let seconds = if self.quick { "5" } else { "60" };
        for (interval, name) in DRIFTS {
            let arguments =
                [UNICAST, "--signals", "100", "-I", interval, "-d", seconds, "--rounds", "1", "--no-bare"];
            quantities.push((name, stand.pubsub(&arguments, LIMIT)?.number("/drift_ppm")?.abs()));
        }
        self.done = true;
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = |(interval, name): (&str, &'static str)| {
            Row::new(self.id(), format!("mean period error, {interval} ms, ppm"), Unit::Count)
                .figures(samples.median(Side::Ours, name), None, None)
                .once(Required::AtMost(1.0), "≤ 1 ppm")
        };
        DRIFTS.into_iter().map(row).collect()
    }
}

/// Delivery time over PubSub and over a subscription, measured in the same way (`morato-pubsub`).
pub(super) struct Delivery {
    pub(super) quick: bool,
}

impl Figure for Delivery {
    fn id(&self) -> &'static str {
        "pubsub-delivery"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours]
    }

    fn measure(&mut self, _: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let seconds = if self.quick { "4" } else { "8" };
        let arguments =
            ["--signals", "1", "-I", "100", "--update", "31", "-d", seconds, "--rounds", "1", "--no-bare"];
        let pubsub = stand.pubsub(&arguments, LIMIT)?;
        let asleep: Vec<&str> = arguments.iter().copied().chain(["--only-sleep"]).collect();
        let asleep = stand.pubsub(&asleep, LIMIT)?;
        let server = stand.server(Side::Ours, 1, 31)?;
        let arguments = [
            "subscribe",
            "-c",
            "1",
            "--items",
            "1",
            "-I",
            "100",
            "--sampling",
            "100",
            "--update",
            "31",
            "-d",
            seconds,
            "--warmup",
            "2",
        ];
        let subscription = stand.bench(&server, &arguments, LIMIT)?;
        Ok(vec![
            ("pubsub", pubsub.number("/transfer/p50_us")?),
            ("asleep", asleep.number("/transfer/p50_us")?),
            ("subscriber", pubsub.number("/subscriber_cpu_percent")?),
            ("subscriber asleep", asleep.number("/subscriber_cpu_percent")?),
            ("pubsub whole", pubsub.number("/delivery/mean_us")?),
            ("encode", pubsub.number("/encode/p50_us")?),
            ("subscription", subscription.number("/transfer/p50_us")?),
            ("subscription whole", subscription.number("/delivery/mean_us")?),
        ])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let pair = |what: &str, ours: &'static str, other: &'static str| {
            Row::new(self.id(), what, Unit::Micros).figures(
                samples.median(Side::Ours, ours),
                samples.median(Side::Ours, other),
                None,
            )
        };
        vec![
            pair("delivery p50, ready to received", "pubsub", "subscription").ratio(
                samples.of(Side::Ours, "pubsub"),
                samples.of(Side::Ours, "subscription"),
                Required::AtMost(1.0),
                "of subscription",
            ),
            pair("  receiver asleep until it comes", "asleep", "subscription").for_information(),
            Row::new(self.id(), "  receiver's CPU (other: asleep)", Unit::Percent)
                .figures(
                    samples.median(Side::Ours, "subscriber"),
                    samples.median(Side::Ours, "subscriber asleep"),
                    None,
                )
                .for_information(),
            pair("  mean, value changed to received", "pubsub whole", "subscription whole").for_information(),
            Row::new(self.id(), "  of it making the message", Unit::Micros)
                .figures(samples.median(Side::Ours, "encode"), None, None)
                .for_information(),
        ]
    }
}

/// One client asks and 999 answer (`rocha-clients`): client/server, PubSub, and MQTT QoS 0 through mosquitto.
pub(super) struct Clients {
    pub(super) quick: bool,
}

impl Figure for Clients {
    fn id(&self) -> &'static str {
        "pubsub-clients"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let count = if self.quick { "20" } else { "100" };
        if side == Side::Peer {
            let arguments = ["--pattern", "fan", "-c", "1000", "-n", count];
            return Ok(vec![("mqtt", stand.mosquitto(&arguments, LIMIT)?.number("/transaction/p50_us")?)]);
        }
        let arguments = ["--pattern", "fan", "-c", "1000", "-n", count, "--cpu", "1"];
        let pubsub = stand.stations(&arguments, LIMIT)?.number("/transaction/p50_us")?;
        let server = stand.server(Side::Ours, 1_000, 0)?;
        let arguments = ["fan", "-c", "1000", "-I", "1", "-n", count];
        let client_server = stand.bench(&server, &arguments, LIMIT)?.number("/transaction/p50_us")?;
        Ok(vec![("pubsub", pubsub), ("client_server", client_server)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = |what: &str, name: &'static str| {
            Row::new(self.id(), format!("1 000 clients, {what}"), Unit::Micros)
                .figures(samples.median(Side::Ours, name), samples.median(Side::Peer, "mqtt"), None)
                .ratio(
                    samples.of(Side::Ours, name),
                    samples.of(Side::Peer, "mqtt"),
                    Required::AtMost(1.0),
                    "of MQTT",
                )
        };
        vec![row("PubSub", "pubsub"), row("client/server", "client_server")]
    }
}

/// Bytes on the wire per transfer of a value (`rocha-overhead`).
pub(super) struct Overhead;

/// Payload, the name of its figure, and the number of values.
const PAYLOADS: [(&str, &str, &str); 4] =
    [("10", "10", "500"), ("100", "100", "500"), ("1000", "1000", "500"), ("1000000", "1000000", "20")];

impl Figure for Overhead {
    fn id(&self) -> &'static str {
        "pubsub-overhead"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let mut quantities = Vec::new();
        for (payload, name, count) in PAYLOADS {
            let arguments =
                ["--pattern", "round-trip", "--payload", payload, "-n", count, "--warmup", "100ms"];
            // Through a broker a value crosses the wire twice, over UDP once.
            let (outcome, ways) = match side {
                Side::Peer => (stand.mosquitto(&arguments, LIMIT)?, 2.0),
                _ => (stand.stations(&arguments, LIMIT)?, 1.0),
            };
            let values = outcome.number("/roundtrip/count")?;
            quantities.push((name, outcome.number("/wire/total_bytes")? / values / ways));
        }
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row =
            |(payload, name, _): (&str, &'static str, &str)| {
                let row = Row::new(self.id(), format!("bytes per transfer, {payload} B"), Unit::Bytes)
                    .figures(samples.median(Side::Ours, name), samples.median(Side::Peer, name), None);
                if payload == "10" {
                    return row.for_information();
                }
                row.ratio(
                    samples.of(Side::Ours, name),
                    samples.of(Side::Peer, name),
                    Required::AtMost(1.0),
                    "of MQTT",
                )
            };
        PAYLOADS.into_iter().map(row).collect()
    }
}
