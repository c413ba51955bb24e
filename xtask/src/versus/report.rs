//! The table for people and the document for programs.

use super::samples::Samples;
use serde_json::{Value, json};
use taktwerk_lab::figures;
use taktwerk_lab::machine::Machine;
use taktwerk_lab::table::{Align, Table};

/// Instead of a requirement, in rows that are there to be looked at.
const NOTHING_REQUIRED: &str = "–";

/// The unit of a row's figures.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    /// Microseconds.
    Micros,
    /// Percent of one core.
    Percent,
    /// Bytes.
    Bytes,
    /// A rate per second.
    PerSecond,
    /// A plain number.
    Count,
}

impl Unit {
    fn show(self, value: Option<f64>) -> String {
        let Some(value) = value else { return "–".to_owned() };
        match self {
            Self::Micros => figures::micros(value),
            Self::Percent => format!("{} %", figures::number(value)),
            Self::Bytes => figures::bytes(value),
            Self::PerSecond => format!("{}/s", figures::number(value)),
            Self::Count => figures::number(value),
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    id: &'static str,
    what: String,
    unit: Unit,
    ours: Option<f64>,
    peer: Option<f64>,
    floor: Option<f64>,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    required: String,
    holds: bool,
    problems: Vec<String>,
    doubt: Option<&'static str>,
    samples: Value,
}

/// What must be true of a ratio.
#[derive(Debug, Clone, Copy)]
pub(super) enum Required {
    AtMost(f64),
    AtLeast(f64),
}

impl Required {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }

    fn show(self, what: &str) -> String {
        match self {
            Self::AtMost(limit) => format!("≤ {} {what}", figures::number(limit)),
            Self::AtLeast(limit) => format!("≥ {} {what}", figures::number(limit)),
        }
    }
}

impl Row {
    /// A row with its medians; it does not hold until a condition is given.
    pub(super) fn new(id: &'static str, what: impl Into<String>, unit: Unit) -> Self {
        Self {
            id,
            what: what.into(),
            unit,
            ours: None,
            peer: None,
            floor: None,
            ratio: None,
            interval: None,
            required: String::new(),
            holds: false,
            problems: Vec::new(),
            doubt: None,
            samples: Value::Null,
        }
    }

    /// The three medians.
    pub(super) fn figures(mut self, ours: Option<f64>, peer: Option<f64>, floor: Option<f64>) -> Self {
        (self.ours, self.peer, self.floor) = (ours, peer, floor);
        self
    }

    /// Requires the ratio of two series' medians: `of` names what ours is divided by.
    pub(super) fn ratio(mut self, ours: &[f64], other: &[f64], required: Required, of: &str) -> Self {
        if let Some((ratio, interval)) = taktwerk_lab::statistics::median_ratio(ours, other) {
            self.ratio = Some(ratio);
            self.interval = Some(interval);
        }
        self.holds = self.ratio.is_some_and(|ratio| required.holds(ratio));
        self.required = required.show(of);
        self
    }

    /// Requires nothing.
    pub(super) fn for_information(mut self) -> Self {
        self.ratio = self.ours.zip(self.peer).map(|(ours, peer)| ours / peer);
        self.holds = true;
        NOTHING_REQUIRED.clone_into(&mut self.required);
        self
    }

    /// Requires our own figure.
    pub(super) fn absolute(mut self, required: Required, shown: &str) -> Self {
        self.ratio = self.ours.zip(self.peer).map(|(ours, peer)| ours / peer);
        self.holds = self.ours.is_some_and(|ours| required.holds(ours));
        self.required = shown.to_owned();
        self
    }

    /// Requires that the figures can be believed.
    pub(super) fn and_only_if(mut self, is_credible: bool, otherwise: &'static str) -> Self {
        if !is_credible {
            self.doubt = Some(otherwise);
            self.holds = false;
        }
        self
    }

    /// Adds what could not be measured: a row with too few repetitions does not hold.
    pub(super) fn with_problems(mut self, samples: &Samples) -> Self {
        self.problems = samples.problems().iter().map(|(side, what)| format!("{side}: {what}")).collect();
        self.problems.extend(self.doubt.map(str::to_owned));
        self.samples = samples.document();
        self.holds &= self.problems.is_empty();
        self
    }

    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    fn document(&self) -> Value {
        json!({
            "id": self.id,
            "what": self.what,
            "unit": format!("{:?}", self.unit),
            "ours": self.ours,
            "peer": self.peer,
            "floor": self.floor,
            "ratio": self.ratio,
            "ratio_ci95": self.interval,
            "required": self.required,
            "holds": self.holds,
            "problems": self.problems,
            "samples": self.samples,
        })
    }
}

/// The table, with what went wrong below it.
pub(super) fn table(rows: &[Row]) -> String {
    // PubSub is compared with several: the row says with whom.
    let is_pubsub = rows.iter().any(|row| row.id.starts_with("pubsub"));
    let mut table = Table::new(&[
        ("what", Align::Left),
        ("ours", Align::Right),
        (if is_pubsub { "other" } else { "open62541" }, Align::Right),
        ("floor", Align::Right),
        ("ratio", Align::Right),
        ("required", Align::Left),
        ("holds", Align::Left),
    ]);
    for row in rows {
        table.row([
            row.what.clone(),
            row.unit.show(row.ours),
            row.unit.show(row.peer),
            row.unit.show(row.floor),
            row.ratio.map_or_else(|| "–".to_owned(), figures::number),
            row.required.clone(),
            match row.holds {
                true if row.required == NOTHING_REQUIRED => NOTHING_REQUIRED,
                true => "yes",
                false => "NO",
            }
            .to_owned(),
        ]);
    }
    let mut text = table.to_string();
    for row in rows {
        for problem in &row.problems {
            text.push_str(&format!("\n{}: {problem}", row.id));
        }
    }
    text
}

/// The document.
pub(super) fn document(rows: &[Row], repetitions: usize, quick: bool, load_average: f64) -> Value {
    json!({
        "tool": "xtask versus",
        "peer": "open62541",
        "machine": Machine::this(),
        "load_average_at_start": load_average,
        "repetitions": repetitions,
        "quick": quick,
        "holds": rows.iter().all(Row::holds),
        "rows": rows.iter().map(Row::document).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::samples::Side;

    #[test]
    fn a_row_holds_by_its_ratio_and_without_problems() {
        let row = || {
            Row::new("x", "a row", Unit::Micros).figures(Some(1.0), Some(10.0), None).ratio(
                &[1.0, 1.1],
                &[10.0, 10.5],
                Required::AtMost(0.2),
                "of the peer",
            )
        };
        let mut samples = Samples::default();
        assert!(row().with_problems(&samples).holds());
        samples.problem(Side::Peer, "the generator was late".into());
        let bad = row().with_problems(&samples);
        assert!(!bad.holds());
        let text = table(&[bad]);
        assert!(text.contains("NO") && text.contains("x: open62541: the generator was late"), "{text}");
        assert!(
            !Row::new("y", "nothing measured", Unit::Count).absolute(Required::AtMost(1.0), "≤ 1").holds()
        );
    }
}
