//! The outcome of an experiment: tables, charts, findings with verdicts, and remarks. The terminal, the report and JSON
//! output show the same outcome.

use crate::chart::Chart;
use crate::figures;
use crate::statistics::Repeated;
use crate::table::{Align, Table};
use serde::Serialize;
use std::fmt::Write;

/// A table with a title.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Grid {
    /// Title.
    pub title: String,
    /// Column titles. The first columns are text, see [`Self::text_columns`].
    pub columns: Vec<String>,
    /// Number of text columns, from the left; all other columns are numbers.
    pub text_columns: usize,
    /// Formatted cells.
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

/// A claim of the paper or of theory, with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The claim.
    pub claim: String,
    /// The verdict; `None` if the measurements do not decide it.
    pub holds: Option<bool>,
    /// The figures that the verdict is based on.
    pub evidence: String,
}

/// The results of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Its id.
    pub id: String,
    /// The question that it answers.
    pub question: String,
    /// The source of the published figures.
    pub source: String,
    /// Tables.
    pub grids: Vec<Grid>,
    /// Charts.
    pub charts: Vec<Chart>,
    /// Claims with their verdicts.
    pub findings: Vec<Finding>,
    /// What is comparable with the published figures, and other remarks.
    pub remarks: Vec<String>,
    /// Invalid measurements and skipped parts, each with the reason.
    pub skipped: Vec<String>,
    /// Reasons why expected findings may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl Outcome {
    /// Adds a finding.
    pub fn finding(&mut self, claim: &str, holds: Option<bool>, evidence: impl Into<String>) {
        self.findings.push(Finding { claim: claim.to_owned(), holds, evidence: evidence.into() });
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// Formats the outcome for a terminal.
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

/// Wraps text to lines of at most 100 columns, indented below its head.
#[must_use]
pub fn wrapped(head: &str, text: &str) -> String {
    const WIDTH: usize = 98;
    let indent = head.chars().count();
    let (mut lines, mut column) = (head.to_owned(), indent);
    // Do not split at the narrow space within numbers, which also counts as white space.
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

/// Formats a figure over repetitions with its interval: `12.3 ± 0.4`.
#[must_use]
pub fn interval(repeated: Option<&Repeated>) -> String {
    let Some(repeated) = repeated else { return "–".to_owned() };
    let mean = crate::statistics::mean(&repeated.values).unwrap_or(repeated.median);
    match repeated.mean_ci95 {
        Some((low, high)) => format!("{} ± {}", figures::number(mean), figures::number((high - low) / 2.0)),
        None => figures::number(mean),
    }
}

/// Formats an optional figure.
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
