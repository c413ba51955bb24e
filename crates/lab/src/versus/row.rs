//! One figure of a comparison with its verdict, as a table row and as JSON.

use super::samples::Samples;
use crate::figures;
use crate::machine::Machine;
use crate::statistics::{bootstrap_ci95, mean_ci95, median, median_ratio, within};
use crate::table::{Align, Table};
use serde_json::{Value, json};

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
#[derive(Debug, Clone)]
pub struct Row {
    id: &'static str,
    what: String,
    unit: Unit,
    ours: Option<f64>,
    peer: Option<f64>,
    floor: Option<f64>,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    /// The limit in words; `None` in rows for information.
    required: Option<String>,
    /// The verdict by the laboratory's rule; `None` if undecided.
    holds: Option<bool>,
    problems: Vec<String>,
    doubt: Option<&'static str>,
    samples: Value,
}

/// Limit of a ratio.
#[derive(Debug, Clone, Copy)]
pub(super) enum Required {
    AtMost(f64),
    AtLeast(f64),
}

impl Required {
    /// The verdict on an interval.
    fn judge(self, (low, high): (f64, f64)) -> Option<bool> {
        match self {
            Self::AtMost(limit) => within((low, high), limit),
            Self::AtLeast(limit) => within((-high, -low), -limit),
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
    /// A row; undecided until a limit is set.
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
            required: None,
            holds: None,
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

    /// Sets a limit for the ratio of two series' medians, judged by the interval of the ratio. `of` names the divisor.
    pub(super) fn ratio(mut self, ours: &[f64], other: &[f64], required: Required, of: &str) -> Self {
        if let Some((ratio, interval)) = median_ratio(ours, other) {
            self.ratio = Some(ratio);
            self.interval = Some(interval);
            self.holds = required.judge(interval);
        }
        self.required = Some(required.show(of));
        self
    }

    /// Sets no limit.
    pub(super) fn for_information(mut self) -> Self {
        self.ratio = self.ours.zip(self.peer).map(|(ours, peer)| ours / peer);
        self
    }

    /// Sets a limit for our own figure, judged by the interval of its median.
    pub(super) fn absolute(mut self, ours: &[f64], required: Required, shown: &str) -> Self {
        self.ratio = self.ours.zip(self.peer).map(|(ours, peer)| ours / peer);
        self.holds = median_ci95(ours).and_then(|interval| required.judge(interval));
        self.required = Some(shown.to_owned());
        self
    }

    /// Sets a limit for our own figure from a single long measurement.
    pub(super) fn once(mut self, required: Required, shown: &str) -> Self {
        self.holds = self.ours.and_then(|value| required.judge((value, value)));
        self.required = Some(shown.to_owned());
        self
    }

    /// Makes the row undecided if the figures are not credible.
    pub(super) fn and_only_if(mut self, is_credible: bool, otherwise: &'static str) -> Self {
        if !is_credible {
            self.doubt = Some(otherwise);
        }
        self
    }

    /// Adds failed measurements; a row with too few repetitions is undecided.
    pub(super) fn with_problems(mut self, samples: &Samples) -> Self {
        self.problems = samples.problems().iter().map(|(side, what)| format!("{side}: {what}")).collect();
        self.problems.extend(self.doubt.map(str::to_owned));
        self.samples = samples.document();
        if !self.problems.is_empty() {
            self.holds = None;
        }
        self
    }

    /// The verdict; `None` if it is undecided or there is no limit.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        self.holds
    }

    /// Problems during the measurement.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether there is a limit, but the measurement does not decide it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.required.is_some() && self.holds.is_none()
    }

    fn verdict(&self) -> &'static str {
        match (self.required.is_some(), self.holds) {
            (false, _) => "–",
            (true, Some(true)) => "yes",
            (true, Some(false)) => "NO",
            (true, None) => "open",
        }
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

/// 95 % confidence interval of a median: by bootstrap from four values on, otherwise of the mean.
fn median_ci95(values: &[f64]) -> Option<(f64, f64)> {
    const RESAMPLED: usize = 4;
    if values.len() < RESAMPLED {
        return mean_ci95(values);
    }
    bootstrap_ci95(values, &[1.0], |values, _| median(values))
}

/// The table, followed by the problems.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    // PubSub is compared with several peers; the row names them.
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
            row.required.clone().unwrap_or_else(|| "–".to_owned()),
            row.verdict().to_owned(),
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
        "tool": "versus",
        "peer": "open62541",
        "machine": Machine::this(),
        "load_average_at_start": load_average,
        "repetitions": repetitions,
        "quick": quick,
        "fails": rows.iter().any(|row| row.holds == Some(false)),
        "rows": rows.iter().map(Row::document).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::samples::Side;

    fn row(ours: &[f64], peer: &[f64]) -> Row {
        let row = Row::new("x", "a row", Unit::Micros).figures(median(ours), median(peer), None);
        row.ratio(ours, peer, Required::AtMost(0.2), "of the peer")
    }

    #[test]
    fn the_interval_of_the_ratio_decides() {
        let peer = [10.0, 10.1, 10.2, 10.3, 10.4];
        assert_eq!(row(&[1.0, 1.1, 1.0, 1.1, 1.0], &peer).holds(), Some(true));
        assert_eq!(row(&[3.0, 3.1, 3.0, 3.1, 3.0], &peer).holds(), Some(false));
        // The ratio is near the limit, so more repetitions are needed.
        let open = row(&[1.5, 2.5, 2.0, 1.8, 2.3], &peer);
        assert!(open.holds().is_none() && open.is_open());
        assert_eq!(row(&[1.0], &[10.0]).holds(), None, "one measurement decides nothing");
        assert_eq!(row(&[], &peer).holds(), None);
    }

    #[test]
    fn own_figures_are_judged_by_their_interval_too() {
        let absolute = |values: &[f64], required| {
            Row::new("x", "a row", Unit::Count)
                .figures(median(values), None, None)
                .absolute(values, required, "…")
        };
        assert_eq!(absolute(&[0.0; 5], Required::AtMost(0.0)).holds(), Some(true));
        assert_eq!(absolute(&[4.9, 5.0, 5.1, 5.2, 4.8], Required::AtLeast(5.0)).holds(), None);
        assert_eq!(absolute(&[6.0, 6.1, 6.0, 6.2, 6.1], Required::AtLeast(5.0)).holds(), Some(true));
        assert_eq!(absolute(&[4.0, 4.1, 4.0, 4.2, 4.1], Required::AtLeast(5.0)).holds(), Some(false));
        assert_eq!(absolute(&[4.0, 4.1], Required::AtMost(5.0)).holds(), Some(true));
        assert_eq!(absolute(&[4.0], Required::AtMost(5.0)).holds(), None);
    }

    #[test]
    fn failed_measurements_leave_a_row_undecided() {
        let mut samples = Samples::default();
        let good = || row(&[1.0, 1.1, 1.0, 1.1, 1.0], &[10.0; 5]);
        assert_eq!(good().with_problems(&samples).holds(), Some(true));
        samples.problem(Side::Peer, "the generator was late".into());
        let bad = good().with_problems(&samples);
        assert_eq!(bad.holds(), None);
        let text = table(&[bad]);
        assert!(text.contains("open") && text.contains("x: open62541: the generator was late"), "{text}");
        let doubted = good().and_only_if(false, "noise").with_problems(&Samples::default());
        assert_eq!((doubted.holds(), doubted.problems().len()), (None, 1));
        assert!(table(&[Row::new("y", "a figure", Unit::Count).for_information()]).contains('–'));
    }
}
