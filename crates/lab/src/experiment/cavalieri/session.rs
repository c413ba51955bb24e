//! `cavalieri-session`: Table 2: time to open and activate a session.

use super::cells::{Cell, Cells};
use super::machine::{self, Assumptions, Machine, Rows, Scenario, assumptions};
use super::{Failed, attempt, no_measurements, seconds};
use crate::chart::{Axis, Chart, Mark, Point, Series};
use crate::experiment::{Experiment, Plan, Wish, published};
use crate::measurement::Measurement;
use crate::outcome::Outcome;
use std::time::Duration;
use taktwerk_sim::network::soap::{Security, Soap};

pub(super) struct Session;

const SCENARIOS: [(u32, Scenario); 4] =
    [(1, Scenario::None), (2, Scenario::Unchecked), (3, Scenario::Local), (4, Scenario::Remote)];

/// Rows 1 to 3 of the table.
pub(super) fn rows() -> Result<Rows, Failed> {
    let of =
        |row| published::cavalieri_session(row, false).ok_or_else(|| format!("Table 2 has no row {row}"));
    Ok(Rows { none: of(1)?, unchecked: of(2)?, local: of(3)? })
}

/// All cells in the order of the table.
fn all(given: &Assumptions) -> Result<Vec<f64>, Failed> {
    let mut all = Vec::new();
    for (_, scenario) in SCENARIOS {
        for is_soap in [false, true] {
            all.push(given.session(scenario, is_soap)?);
        }
    }
    Ok(all)
}

/// SOAP's XML costs, fitted to rows 1 and 2 for SOAP.
fn with_xml(base: &Assumptions) -> Result<[Assumptions; 2], Failed> {
    let of = |row| published::cavalieri_session(row, true).ok_or_else(|| format!("Table 2 has no row {row}"));
    let span = Duration::from_secs_f64;
    let with = |per_message, per_secured_message| Assumptions {
        soap: Soap { per_message, per_secured_message, ..base.soap },
        ..*base
    };
    let plain = machine::fit("XML", of(1)?, 0.1, |cost| {
        with(span(cost), Duration::ZERO).session(Scenario::None, true)
    })?;
    let secured = machine::fit("XML with security", of(2)?, 0.1, |cost| {
        with(span(plain), span(cost)).session(Scenario::Unchecked, true)
    })?;
    Ok([with(span(plain), Duration::ZERO), with(span(plain), span(secured))])
}

fn simulate(outcome: &mut Outcome) -> Result<(), Failed> {
    let rows = rows()?;
    let machine = machine::fitted(&rows)?;
    let base = assumptions(machine);
    let mut cells = Vec::new();
    for (row, _) in SCENARIOS {
        for is_soap in [false, true] {
            let figure =
                published::cavalieri_session(row, is_soap).ok_or("a figure of Table 2 is missing")?;
            let cell = Cell::new(format!("{row} {}", if is_soap { "SOAP" } else { "TCP" }), figure);
            cells.push(if row < 4 && !is_soap { cell.fitted() } else { cell });
        }
    }
    let mut table =
        Cells { title: "Table 2: time until a session is activated", unit: "s", cells, rows: Vec::new() };
    table.add("the profile of rows 1 to 3, XML costs nothing, authorities take 7.5 s", &[], all(&base))?;
    let [xml, canonical] = with_xml(&base)?;
    table.add(
        format!("as A, each XML message costs {} at each end", seconds(xml.soap.per_message.as_secs_f64())),
        &[1],
        all(&xml),
    )?;
    table.add(
        format!(
            "as B, and {} more with security (canonical form)",
            seconds(canonical.soap.per_secured_message.as_secs_f64())
        ),
        &[1, 3],
        all(&canonical),
    )?;
    let wss = Soap { security: Security::WsSecureConversation, ..base.soap };
    table.add("as A, SOAP secured by WS-SecureConversation", &[], all(&Assumptions { soap: wss, ..base }))?;
    for span in [5, 10] {
        let remote = Duration::from_secs(span);
        table.add(
            format!("as A, authorities take {span} s for a certificate"),
            &[],
            all(&Assumptions { remote, ..base }),
        )?;
    }
    let split = split(&rows)?;
    table.add(
        "as A, message cost from the 4-byte round trip in Table 3, session cost from the rest of row 1",
        &[0, 2, 4],
        all(&assumptions(split)),
    )?;
    for others in [1, 3] {
        table.add(
            format!(
                "as A, {} sessions open at the same time and ask the same authorities; the last one",
                others + 1
            ),
            &[],
            all(&Assumptions { others, ..base }),
        )?;
    }
    outcome.charts.push(chart(&table));
    ordering(&table, outcome);
    table.report(outcome);
    outcome.remark(format!(
        "The fitted machine: {}. With the split of the last row: {}.",
        told(&machine),
        told(&split)
    ));
    outcome.remark(
        "Comparable: the predicted figures (SOAP, and row 4) and all orderings. Not comparable: rows 1 to 3 with UA \
         TCP, because the processors are fitted to them. The delay of row 4 is an input of the paper that it does not \
         print. Here, client and server ask three authorities one after the other by OCSP. Each authority has a \
         processor of its own, behind a line of 2 Mbit/s and 50 ms.",
    );
    Ok(())
}

/// A machine fitted to row 1 and the round trip of 4 bytes.
pub(super) fn split(rows: &Rows) -> Result<Machine, Failed> {
    let smallest = published::cavalieri_rtt(4).ok_or("Table 3 has no figure of 4 bytes")?;
    machine::split(rows, smallest)
}

/// Describes a machine in words.
pub(super) fn told(machine: &Machine) -> String {
    let ns = |cost: f64| seconds(cost / 1e9);
    let session =
        if machine.session > 0.0 { format!(", {} per session", ns(machine.session)) } else { String::new() };
    format!(
        "{} per chunk sent or received{session}, {} per operation with a private key, {} per certificate checked locally",
        ns(machine.chunk),
        ns(machine.rsa),
        ns(machine.local_authority)
    )
}

fn ordering(table: &Cells, outcome: &mut Outcome) {
    let Some(base) = table.rows.first() else { return };
    let tcp: Vec<f64> = base.ours.iter().step_by(2).copied().collect();
    let soap: Vec<f64> = base.ours.iter().skip(1).step_by(2).copied().collect();
    outcome.finding(
        "a session takes longer over SOAP in every scenario",
        Some(tcp.iter().zip(&soap).all(|(tcp, soap)| tcp < soap)),
        pairs(&tcp, &soap),
    );
    let most = tcp.last().copied().unwrap_or_default();
    outcome.finding(
        "remote authorities cost more than everything else together",
        tcp.get(2).map(|local| most > 10.0 * local),
        format!(
            "{} against {} with a local one",
            seconds(most),
            seconds(tcp.get(2).copied().unwrap_or_default())
        ),
    );
}

fn pairs(tcp: &[f64], soap: &[f64]) -> String {
    let pair = |(tcp, soap): (&f64, &f64)| format!("{} and {}", seconds(*tcp), seconds(*soap));
    tcp.iter().zip(soap).map(pair).collect::<Vec<_>>().join(", ")
}

fn chart(table: &Cells) -> Chart {
    let dots = |values: Vec<f64>, offset: usize| {
        let of = |(at, value): (usize, &f64)| Point::new((at + 1) as f64, *value);
        let values: Vec<f64> = values.into_iter().skip(offset).step_by(2).collect();
        values.iter().enumerate().map(of).collect::<Vec<_>>()
    };
    let published: Vec<f64> = table.cells.iter().map(|cell| cell.published.0).collect();
    let ours = table.rows.first().map(|row| row.ours.clone()).unwrap_or_default();
    let series = [("UA TCP", 0), ("SOAP", 1)].into_iter().flat_map(|(name, offset)| {
        [
            Series {
                name: format!("published, {name}"),
                mark: Mark::Dots(dots(published.clone(), offset)),
                colour: offset,
            },
            Series {
                name: format!("ours, {name}"),
                mark: Mark::Line(dots(ours.clone(), offset)),
                colour: offset + 2,
            },
        ]
    });
    Chart::plane(
        "As Table 2: time until a session is activated",
        "Dots are published, lines are simulated under assumption A. Rows 1 to 3 over UA TCP were fitted.",
        Axis::linear("scenario"),
        Axis::log("s"),
        series.collect(),
    )
}

impl Experiment for Session {
    fn id(&self) -> &'static str {
        "cavalieri-session"
    }
    fn question(&self) -> &'static str {
        "How long does opening a session take with certificate authorities, over UA TCP and SOAP?"
    }
    fn source(&self) -> &'static str {
        "Cavalieri and Chiacchio 2013, Table 2: 0.054 s without security, 14 s with remote certificate authorities"
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
