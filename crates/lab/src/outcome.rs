//! The outcome of an experiment: tables, charts, findings with their verdicts, and remarks. The terminal, the report and JSON
//! show the same outcome.

use crate::chart::Chart;
use crate::figures;
use crate::statistics::Repeated;
use crate::table::{Align, Table};
use serde::Serialize;
use std::fmt::Write;

/// A table with a title.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Grid {
    /// What it shows.
    pub title: String,
    /// Column titles. The first columns are text, see [`Self::text_columns`].
    pub columns: Vec<String>,
    /// How many columns from the left are text; the others are numbers.
    pub text_columns: usize,
    /// Cells, ready to be read.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// An empty table.
    #[must_use]
    pub fn new(title: &str, text_columns: usize, columns: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            text_columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

/// A claim of the source or of theory with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What should hold.
    pub claim: String,
    /// The verdict; `None` is open: the measurements do not decide.
    pub holds: Option<bool>,
    /// The figures.
    pub evidence: String,
}

/// What an experiment found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Its id.
    pub id: String,
    /// What it asks.
    pub question: String,
    /// Where the published figures come from.
    pub source: String,
    /// Tables.
    pub grids: Vec<Grid>,
    /// Charts.
    pub charts: Vec<Chart>,
    /// What came out as it should, and what not.
    pub findings: Vec<Finding>,
    /// What can be compared with the published figures and what cannot, and other remarks.
    pub remarks: Vec<String>,
    /// Invalid measurements and parts that were left out, each with its reason.
    pub skipped: Vec<String>,
    /// Why findings may be missing that should be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl Outcome {
    /// Notes whether something holds.
    pub fn finding(&mut self, claim: &str, holds: Option<bool>, evidence: impl Into<String>) {
        self.findings.push(Finding { claim: claim.to_owned(), holds, evidence: evidence.into() });
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// For a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = match self.question.as_str() {
            "" => wrapped("", &self.id),
            question => wrapped("", &format!("{}: {question}", self.id)),
        };
        if !self.source.is_empty() {
            text.push_str(&wrapped("  ", &self.source));
        }
        for grid in &self.grids {
            let align = |at: usize| if at < grid.text_columns { Align::Wrap } else { Align::Right };
            let columns: Vec<(&str, Align)> =
                grid.columns.iter().enumerate().map(|(at, title)| (title.as_str(), align(at))).collect();
            let mut table = Table::new(&columns);
            grid.rows.iter().for_each(|row| table.row(row.iter()));
            // Writing to a String does not fail.
            let _ = write!(text, "\n{}{table}", wrapped("", &grid.title));
        }
        if !self.findings.is_empty() {
            text.push('\n');
        }
        for finding in &self.findings {
            let sign = match finding.holds {
                Some(true) => "holds",
                Some(false) => "FAILS",
                None => "open ",
            };
            text.push_str(&wrapped(
                &format!("{sign}  "),
                &format!("{}: {}", finding.claim, finding.evidence),
            ));
        }
        for error in &self.errors {
            text.push_str(&wrapped("ERROR  ", error));
        }
        for remark in &self.remarks {
            text.push_str(&wrapped("note   ", remark));
        }
        for skipped in &self.skipped {
            text.push_str(&wrapped("skipped  ", skipped));
        }
        text
    }
}

/// Text in lines of at most 100 columns, indented behind its head.
#[must_use]
pub fn wrapped(head: &str, text: &str) -> String {
    const WIDTH: usize = 98;
    let indent = head.chars().count();
    let (mut lines, mut column) = (head.to_owned(), indent);
    // Not at the narrow space that holds figures together, which is white space as well.
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column + length > WIDTH && column > indent {
            lines.truncate(lines.trim_end().len());
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            column = indent;
        }
        lines.push_str(word);
        lines.push(' ');
        column += length + 1;
    }
    lines.truncate(lines.trim_end().len());
    lines.push('\n');
    lines
}

/// A figure over repetitions with its interval: `12.3 ± 0.4`.
#[must_use]
pub fn interval(repeated: Option<&Repeated>) -> String {
    let Some(repeated) = repeated else { return "–".to_owned() };
    let mean = crate::statistics::mean(&repeated.values).unwrap_or(repeated.median);
    match repeated.mean_ci95 {
        Some((low, high)) => format!("{} ± {}", figures::number(mean), figures::number((high - low) / 2.0)),
        None => figures::number(mean),
    }
}

/// A figure that may not be there.
#[must_use]
pub fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), figures::number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn fits_a_terminal() {
        let long = |text: &str| text.repeat(30);
        let mut outcome = Outcome {
            id: "x".into(),
            question: long("how ") + "?",
            source: long("there "),
            ..Outcome::default()
        };
        let mut grid = Grid::new(&long("title "), 1, &["stack", "CPU %"]);
        grid.row(["own", "1.0"]);
        outcome.grids.push(grid);
        outcome.finding("more clients cost more", Some(false), "word ".repeat(60));
        outcome.remark("10\u{202f}000 ".repeat(40));
        let text = outcome.text();
        assert!(text.lines().all(|line| line.width() <= 100 && line.trim_end() == line), "{text}");
        assert!(text.contains("FAILS  more clients") && text.contains("CPU %"));
        assert_eq!(text.matches("10\u{202f}000").count(), 40, "{text}");
    }

    #[test]
    fn intervals() {
        let repeated = Repeated::new(vec![10.0, 12.0, 11.0, 13.0, 9.0]).unwrap();
        assert_eq!(interval(Some(&repeated)), "11.0 ± 1.96");
        assert_eq!((interval(None), maybe(Some(2.0))), ("–".into(), "2.00".into()));
    }
}
