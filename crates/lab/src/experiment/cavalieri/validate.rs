//! `cavalieri-validate`: Table 1: the figures that the paper validated its model with.

use super::cells::{Cell, Cells};
use super::machine::{self, Assumptions, Machine, Scenario, assumptions};
use super::{Failed, NONE, attempt, link, no_measurements, session};
use crate::experiment::{Experiment, Plan, Wish, published};
use crate::measurement::Measurement;
use crate::outcome::Outcome;
use taktwerk_sim::calls::{Block, Setup, call};

pub(super) struct Validate;

/// The blocks: 1 kB and 2.5 MB, each the value of one variable.
const BLOCKS: [(&str, usize); 2] = [("1 kB", 1_024), ("2.5 MB", 2_500_000)];
/// 1 Gbit/s Ethernet through one switch.
const LINE: &str = "rate=1gbit,overhead=38,delay=30us";

/// Milliseconds for each block.
fn all(given: &Assumptions) -> Result<Vec<f64>, Failed> {
    let base = given.setup(Scenario::None, false, "ppp-2m")?;
    let setup = Setup { link: link(LINE)?, security: NONE, ..base };
    let blocks = BLOCKS.map(|(_, len)| Block::new(1, len));
    let calls = call(&setup, &blocks).map_err(|error| error.to_string())?;
    Ok(calls.round_trips.iter().map(|time| time.as_secs_f64() * 1e3).collect())
}

fn simulate(outcome: &mut Outcome) -> Result<(), Failed> {
    let rows = session::rows()?;
    let base = machine::fitted(&rows)?;
    let split = session::split(&rows)?;
    let free = Machine::default();
    for (study, title) in [
        ("opcua-model", "Table 1: round trip of a block at 1 Gbit/s, the paper's model"),
        ("intel", "Table 1: round trip of a block at 1 Gbit/s, measured by Intel"),
    ] {
        let mut cells = Vec::new();
        for (block, _) in BLOCKS {
            let published =
                published::cavalieri_validation(study, block).ok_or("a figure of Table 1 is missing")?;
            cells.push(Cell { name: block.to_owned(), published, is_fitted: false });
        }
        let middle = |at: usize| {
            let (low, high) = cells.get(at).map_or((0.0, 0.0), |cell: &Cell| cell.published);
            f64::midpoint(low, high)
        };
        let (small, large) = (middle(0), middle(1));
        let mut table = Cells { title, unit: "ms", cells, rows: Vec::new() };
        table.add("the profile of Table 2", &[], all(&assumptions(base)))?;
        table.add("message cost from the 4-byte round trip in Table 3", &[], all(&assumptions(split)))?;
        let byte = machine::fit("a byte", large, 10_000.0, |byte| {
            Ok(all(&assumptions(Machine { byte, ..split }))?.get(1).copied().unwrap_or(f64::NAN))
        })?;
        table.add(
            format!("as B, each byte costs {byte:.0} ns at each end, fitted to 2.5 MB"),
            &[1],
            all(&assumptions(Machine { byte, ..split })),
        )?;
        let chunk = machine::fit("a message", small, split.chunk * 2.0, |chunk| {
            Ok(all(&assumptions(Machine { chunk, byte, ..split }))?.first().copied().unwrap_or(f64::NAN))
        })?;
        table.add(
            format!("as C, each message costs {} at each end, fitted to 1 kB", super::seconds(chunk / 1e9)),
            &[0, 1],
            all(&assumptions(Machine { chunk, byte, ..split })),
        )?;
        table.add("the line only: no processor cost", &[], all(&assumptions(free)))?;
        table.report(outcome);
    }
    outcome.remark(
        "Comparable: 1 kB, which shows the cost of a message in addition to the line. Not comparable: 2.5 MB, unless a \
         cost is fitted to it. Table 2 does not show the cost per byte on those processors, and copying takes longer \
         there than transmission.",
    );
    outcome.remark(format!(
        "Transmission and propagation of a 1 kB read over this line take {}.",
        super::seconds(all(&assumptions(free))?.first().copied().unwrap_or(f64::NAN) / 1e3)
    ));
    Ok(())
}

impl Experiment for Validate {
    fn id(&self) -> &'static str {
        "cavalieri-validate"
    }
    fn question(&self) -> &'static str {
        "Do simulated round trips of 1 kB and 2.5 MB blocks at 1 Gbit/s agree with published ones?"
    }
    fn source(&self) -> &'static str {
        "Cavalieri and Chiacchio 2013, Table 1: 1.5 to 2.0 ms and 225 to 420 ms; Intel measured 1.2 to 1.4 ms and 118 to 300 ms"
    }
    fn is_simulated(&self) -> bool {
        true
    }
    fn simulate(&self, _: bool, outcome: &mut Outcome) {
        attempt(outcome, simulate);
    }
    fn plan(&self, _: &Wish<'_>) -> Plan {
        Plan::default()
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        no_measurements(measurements, outcome);
    }
}
