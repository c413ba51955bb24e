//! `cavalieri-rtt`: Table 3 and Figures 8 to 12: round trip of a Read by size.

use super::cells::{Cell, Cells};
use super::machine::{self, Assumptions, Scenario, assumptions};
use super::{ENCRYPTED, Failed, NONE, POLICY, RATES, attempt, no_measurements, seconds, session};
use crate::chart::{Axis, Chart, Mark, Point, Series};
use crate::experiment::{Experiment, Plan, Wish, published};
use crate::figures;
use crate::measurement::Measurement;
use crate::outcome::{Grid, Outcome};
use std::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_sim::calls::{Block, call};

pub(super) struct RoundTrip;

/// Bytes of the sets of variables.
const SIZES: [u32; 7] = [4, 1024, 2048, 4096, 8192, 16_384, 32_768];
/// Maximum number of variables per request in variants with a limit.
const LIMITED: u32 = 512;
const SIGNED: (SecurityPolicy, MessageSecurityMode) = (POLICY, MessageSecurityMode::Sign);

/// How a set of variables is read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Bytes of each variable; 0 is one variable with all of them.
    value_len: u32,
    per_request: u32,
}

impl Reading {
    fn block(self, size: u32) -> Block {
        let value_len = if self.value_len == 0 { size } else { self.value_len.min(size) };
        Block {
            variables: size / value_len.max(1),
            value_len: value_len as usize,
            per_request: self.per_request,
        }
    }
}

/// A machine, a link and a way of reading.
#[derive(Debug, Clone)]
struct Given {
    assumptions: Assumptions,
    reading: Reading,
    line: String,
    delayed_ack: Option<Duration>,
}

impl Given {
    /// Seconds for each size without validation of certificates.
    fn all(
        &self,
        security: (SecurityPolicy, MessageSecurityMode),
        is_soap: bool,
    ) -> Result<Vec<f64>, Failed> {
        self.all_of(Scenario::Unchecked, security, is_soap)
    }

    /// Seconds for each size.
    fn all_of(
        &self,
        scenario: Scenario,
        security: (SecurityPolicy, MessageSecurityMode),
        is_soap: bool,
    ) -> Result<Vec<f64>, Failed> {
        let mut setup = self.assumptions.setup(scenario, is_soap, &self.line)?;
        setup.security = security;
        setup.delayed_ack = self.delayed_ack;
        let blocks = SIZES.map(|size| self.reading.block(size));
        let calls = call(&setup, &blocks).map_err(|error| error.to_string())?;
        Ok(calls.round_trips.iter().map(Duration::as_secs_f64).collect())
    }
}

fn simulate(is_short: bool, outcome: &mut Outcome) -> Result<(), Failed> {
    let rows = session::rows()?;
    let fitted = machine::fitted(&rows)?;
    let base = Given {
        assumptions: assumptions(fitted),
        reading: Reading { value_len: 4, per_request: 0 },
        line: "ppp-2m".to_owned(),
        delayed_ack: None,
    };
    let split = session::split(&rows)?;
    let light = Given { assumptions: assumptions(split), ..base.clone() };
    let mut cells = Vec::new();
    for size in SIZES {
        let figure = published::cavalieri_rtt(size).ok_or("a figure of Table 3 is missing")?;
        cells.push(Cell::new(format!("{size} B"), figure));
    }
    let mut table = Cells {
        title: "Table 3: round trip without security over UA TCP",
        unit: "s",
        cells,
        rows: Vec::new(),
    };
    table.add("the profile of Table 2, variables of 4 bytes in one Read", &[], base.all(NONE, false))?;
    table.add(
        "message cost from the 4-byte round trip, session cost from the rest of row 1 of Table 2",
        &[0],
        light.all(NONE, false),
    )?;
    let reading =
        |value_len, per_request| Given { reading: Reading { value_len, per_request }, ..light.clone() };
    let eight = reading(8, 0);
    table.add("as B, variables of 8 bytes", &[0], eight.all(NONE, false))?;
    table.add(
        format!("as C, at most {LIMITED} variables in a Read, sent without waiting"),
        &[0],
        reading(8, LIMITED).all(NONE, false),
    )?;
    table.add("as B, one variable of that size", &[0], reading(0, 0).all(NONE, false))?;
    let segments =
        Given { line: "ppp-2m,mtu=588".to_owned(), delayed_ack: Some(Duration::ZERO), ..eight.clone() };
    table.add("as C, segments of 536 bytes, each acknowledged at once", &[0], segments.all(NONE, false))?;
    outcome.charts.push(absolute(&table));
    table.report(outcome);
    ratios(&eight, outcome)?;
    other_rates(&eight, is_short, outcome)?;
    outcome.remark(format!(
        "Machine of A: {}. Machine of B to F: {}.",
        session::told(&fitted),
        session::told(&split)
    ));
    outcome.remark(
        "Comparable: how the round trip grows, and the order of scenarios and transports in Figures 8 to 12. Not \
         comparable: the ratios of Figures 8 to 12, which are not printed as numbers. A Read carries a NodeId for each \
         variable, so the cost of reading a number of bytes depends on the size of one variable, which the paper does \
         not state. Variant D shows that overlapping requests and responses can explain why the published figures grow \
         more slowly from 8 kB on. It does not prove that the paper's client worked this way.",
    );
    outcome.remark(
        "The paper calls the influence of signature and encryption on small sizes very large and prints no number. \
         Here only their bytes on the line are counted: the paper prints no figure for the cost of symmetric \
         cryptography on those processors.",
    );
    outcome.remark(
        "Scenarios 2.c, 3.c and 4.c give the same results, because certificates are validated when a session is \
         opened, not when it is used. Scenario 4.a equals scenario 1: without signature and encryption, the messages \
         are the same. The full form simulates all of them.",
    );
    Ok(())
}

/// Names, security and transport of the figures' curves.
const CURVES: [(&str, (SecurityPolicy, MessageSecurityMode), bool); 5] = [
    ("1 SOAP", NONE, true),
    ("b UA TCP", SIGNED, false),
    ("c UA TCP", ENCRYPTED, false),
    ("b SOAP", SIGNED, true),
    ("c SOAP", ENCRYPTED, true),
];

/// Figures 8 to 12: round trips divided by that of scenario 1 over UA TCP.
fn ratios(given: &Given, outcome: &mut Outcome) -> Result<(), Failed> {
    let base = given.all(NONE, false)?;
    let mut grid = Grid::new(
        "As Figures 8 to 12: round trip divided by that without security over UA TCP, 2 Mbit/s, assumptions of C (b signs, c encrypts too)",
        1,
        &["bytes", "1 UA TCP, s", "1 SOAP", "b UA TCP", "c UA TCP", "b SOAP", "c SOAP"],
    );
    let mut curves: Vec<(&str, Vec<f64>)> = Vec::new();
    for (name, security, is_soap) in CURVES {
        let all = given.all(security, is_soap)?;
        curves.push((name, all.iter().zip(&base).map(|(one, base)| one / base).collect()));
    }
    for (at, (size, base)) in SIZES.iter().zip(&base).enumerate() {
        let own =
            curves.iter().map(|(_, ratios)| figures::number(ratios.get(at).copied().unwrap_or(f64::NAN)));
        grid.row([figures::thousands(i64::from(*size)), figures::number(*base)].into_iter().chain(own));
    }
    outcome.grids.push(grid);
    let of =
        |wanted: &str| curves.iter().find(|(name, _)| *name == wanted).map(|(_, ratios)| ratios.as_slice());
    let ends = |ratios: &[f64]| ratios.first().copied().zip(ratios.last().copied());
    for (claim, name) in [
        ("SOAP costs more, mainly with small sizes (Figure 8)", "1 SOAP"),
        ("signature and encryption cost most with small sizes (Figure 12)", "c UA TCP"),
        ("SOAP with security costs most with small sizes (Figures 9 to 11)", "c SOAP"),
    ] {
        let Some(((first, last), ratios)) = of(name).and_then(|ratios| Some((ends(ratios)?, ratios))) else {
            continue;
        };
        let holds = first > last && ratios.iter().all(|ratio| *ratio >= 0.999);
        outcome.finding(
            claim,
            Some(holds),
            format!(
                "{} times with 4 bytes, {} times with 32 768",
                figures::number(first),
                figures::number(last)
            ),
        );
    }
    if let (Some(signed), Some(encrypted)) = (of("b UA TCP"), of("c UA TCP")) {
        let grows =
            signed.iter().zip(encrypted).all(|(signed, encrypted)| *signed >= 0.999 && encrypted >= signed);
        outcome.finding(
            "encryption costs more than a signature alone (Figure 12)",
            Some(grows),
            "at every size",
        );
    }
    let lines = curves.iter().map(|(name, ratios)| {
        let points = SIZES.iter().zip(ratios).map(|(size, ratio)| Point::new(f64::from(*size), *ratio));
        ((*name).to_owned(), points.collect())
    });
    outcome.charts.extend(Chart::lines_apart(
        "As Figures 8 to 12: round trip divided by that without security over UA TCP",
        "1 is scenario 1 over UA TCP. b signs, c signs and encrypts. 2 Mbit/s.",
        (Axis::log("bytes"), Axis::linear("ratio")),
        lines.collect(),
    ));
    Ok(())
}

/// The paper's scenarios: a neither signs nor encrypts, b signs, c signs and encrypts.
const SCENARIOS: [(&str, Scenario, (SecurityPolicy, MessageSecurityMode)); 6] = [
    ("1", Scenario::None, NONE),
    ("2.c", Scenario::Unchecked, ENCRYPTED),
    ("3.c", Scenario::Local, ENCRYPTED),
    ("4.a", Scenario::Remote, NONE),
    ("4.b", Scenario::Remote, SIGNED),
    ("4.c", Scenario::Remote, ENCRYPTED),
];

/// All scenarios over both transports and all lines. The paper prints nothing for 5 and 10 Mbit/s, because the results
/// were similar. The short form has only scenario 1.
fn other_rates(given: &Given, is_short: bool, outcome: &mut Outcome) -> Result<(), Failed> {
    let scenarios = if is_short { &SCENARIOS[..1] } else { &SCENARIOS[..] };
    let columns: Vec<String> = SIZES.iter().map(|size| figures::thousands(i64::from(*size))).collect();
    let columns: Vec<&str> = std::iter::once("scenario").chain(columns.iter().map(String::as_str)).collect();
    let mut largest = Vec::new();
    let (mut unequal, mut compared) = (0, 0);
    for rate in RATES {
        let given = Given { line: format!("ppp-{rate}m"), ..given.clone() };
        let title = format!("Round trips at {rate} Mbit/s by bytes, under the assumptions of C, ms");
        let mut grid = Grid::new(&title, 1, &columns);
        for (transport, is_soap) in [("UA TCP", false), ("SOAP", true)] {
            let mut rows: Vec<(&str, Vec<f64>)> = Vec::new();
            for (name, scenario, security) in scenarios {
                rows.push((name, given.all_of(*scenario, *security, is_soap)?));
            }
            for (name, times) in &rows {
                let cells = times.iter().map(|time| figures::number(time * 1e3));
                grid.row(std::iter::once(format!("{name} {transport}")).chain(cells));
            }
            let of = |wanted: &str| rows.iter().find(|(name, _)| *name == wanted).map(|(_, times)| times);
            for (one, other) in [("2.c", "3.c"), ("2.c", "4.c"), ("1", "4.a")] {
                if let (Some(one), Some(other)) = (of(one), of(other)) {
                    compared += 1;
                    unequal += u32::from(one != other);
                }
            }
            if !is_soap {
                largest.extend(of("1").and_then(|times| times.last().copied()));
            }
        }
        outcome.grids.push(grid);
    }
    outcome.finding(
        "a faster line shortens large round trips",
        Some(largest.is_sorted_by(|slow, fast| slow > fast)),
        format!("32 768 bytes: {}", largest.iter().map(|time| seconds(*time)).collect::<Vec<_>>().join(", ")),
    );
    if compared > 0 {
        outcome.finding(
            "round trips do not depend on who validated the certificates: 2.c, 3.c and 4.c are equal, and so are 1 and 4.a",
            Some(unequal == 0),
            format!("{unequal} of {compared} rows differ"),
        );
    }
    Ok(())
}

fn absolute(table: &Cells) -> Chart {
    let line = |values: &[f64]| {
        SIZES.iter().zip(values).map(|(size, value)| Point::new(f64::from(*size), *value)).collect::<Vec<_>>()
    };
    let published: Vec<f64> = table.cells.iter().map(|cell| cell.published.0).collect();
    let mut series = vec![Series { name: "published".into(), mark: Mark::Dots(line(&published)), colour: 5 }];
    for (colour, row) in table.rows.iter().enumerate() {
        let letter = char::from(b'A' + u8::try_from(colour).unwrap_or(25));
        let mark = Mark::Line(line(&row.ours));
        series.push(Series {
            name: format!("{letter}"),
            mark,
            colour: if colour >= 5 { colour + 1 } else { colour },
        });
    }
    Chart::plane(
        "As Table 3: round trip without security over UA TCP, 2 Mbit/s",
        "Dots are published. The letters are the assumptions of the table.",
        Axis::log("bytes"),
        Axis::log("s"),
        series,
    )
}

impl Experiment for RoundTrip {
    fn id(&self) -> &'static str {
        "cavalieri-rtt"
    }
    fn question(&self) -> &'static str {
        "How long does a Read of 4 bytes to 32 kB take over a slow line, with security and over SOAP?"
    }
    fn source(&self) -> &'static str {
        "Cavalieri and Chiacchio 2013, Table 3 and Figures 8 to 12: 3 ms for 4 bytes to 390 ms for 32 kB at 2 Mbit/s"
    }
    fn is_simulated(&self) -> bool {
        true
    }
    fn simulate(&self, is_short: bool, outcome: &mut Outcome) {
        attempt(outcome, |outcome| simulate(is_short, outcome));
    }
    fn plan(&self, _: &Wish<'_>) -> Plan {
        Plan::default()
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        no_measurements(measurements, outcome);
    }
}
