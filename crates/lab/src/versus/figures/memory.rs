//! Memory of an idle server, per session, and per monitored item with its node.

use super::Figure;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Programs, Stand, VersusError, settled};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SERVERS: [Side; 2] = [Side::Ours, Side::Peer];

/// RSS per session with one subscription.
pub(super) struct PerSession {
    pub(super) quick: bool,
}

impl Figure for PerSession {
    fn id(&self) -> &'static str {
        "session-rss"
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let clients: u32 = if self.quick { 200 } else { 1_000 };
        let server = stand.server(side, 0, 0)?;
        let before = settled(&server)?;
        let clients_text = clients.to_string();
        let arguments =
            ["subscribe", "-c", &clients_text, "--items", "0", "-I", "1000", "-d", "2", "--warmup", "1"];
        let outcome = stand.bench(&server, &arguments, LIMIT)?;
        let added = outcome.number("/server/rss_bytes")? - before.rss as f64;
        Ok(vec![("bytes", added / f64::from(clients))])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("session-rss", "RSS per session with subscription", Unit::Bytes)
            .figures(samples.median(Side::Ours, "bytes"), samples.median(Side::Peer, "bytes"), None)
            .absolute(samples.of(Side::Ours, "bytes"), Required::AtMost(16_000.0), "≤ 16 kB");
        vec![row]
    }
}

/// RSS per monitored item, including its node.
pub(super) struct PerItem;

impl Figure for PerItem {
    fn id(&self) -> &'static str {
        "item-rss"
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let items: u32 = 100_000;
        let rss = |items: u32| -> Result<f64, VersusError> {
            let server = stand.server(side, items as usize, 1_000)?;
            let items = items.to_string();
            // Slow changes, because only memory is measured.
            let arguments = [
                "subscribe",
                "-c",
                "1",
                "--items",
                &items,
                "-I",
                "1000",
                "--sampling",
                "1000",
                "--update",
                "1000",
                "-d",
                "3",
                "--warmup",
                "2",
            ];
            stand.bench(&server, &arguments, LIMIT)?.number("/server/rss_bytes")
        };
        let few = 100;
        Ok(vec![("bytes", (rss(items)? - rss(few)?) / f64::from(items - few))])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("item-rss", "RSS per monitored item with node", Unit::Bytes)
            .figures(samples.median(Side::Ours, "bytes"), samples.median(Side::Peer, "bytes"), None)
            .absolute(samples.of(Side::Ours, "bytes"), Required::AtMost(350.0), "≤ 350 B");
        vec![row]
    }
}

/// RSS of a server without clients. Ours has the complete namespace 0, the peer's a reduced one. The peer's server is a
/// small program with its library, so it is compared with such a program of ours. The whole command, with laboratory
/// and demo certificates, is listed for information.
pub(super) struct Idle;

impl Figure for Idle {
    fn id(&self) -> &'static str {
        "idle-rss"
    }

    fn lacks(&self, programs: &Programs) -> Option<&'static str> {
        programs
            .library
            .is_none()
            .then_some("the example `minimal` is missing: `cargo xtask versus` builds it")
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let command = settled(&stand.server(side, 0, 0)?)?.rss as f64;
        let library = match side {
            Side::Peer => command,
            Side::Ours | Side::Floor => settled(&stand.library_server()?)?.rss as f64,
        };
        Ok(vec![("library", library), ("command", command)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = |id, what, series| {
            Row::new(id, what, Unit::Bytes).figures(
                samples.median(Side::Ours, series),
                samples.median(Side::Peer, series),
                None,
            )
        };
        vec![
            row("idle-rss", "idle RSS, program with the library", "library").absolute(
                samples.of(Side::Ours, "library"),
                Required::AtMost(8_000_000.0),
                "≤ 8 MB",
            ),
            row("idle-rss-command", "idle RSS, taktwerk serve", "command").for_information(),
        ]
    }
}
