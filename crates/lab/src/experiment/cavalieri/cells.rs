//! Compares published figures with ours and explains the differences by changing one assumption at a time.

use super::Failed;
use crate::figures;
use crate::outcome::{Grid, Outcome};

/// Largest relative difference that needs no explanation.
const ALLOWED: f64 = 0.15;

/// A published figure.
pub(super) struct Cell {
    pub(super) name: String,
    /// Lowest and highest value; both are the same if the paper prints a single figure.
    pub(super) published: (f64, f64),
    /// Whether the base was fitted to this figure. If so, agreement proves nothing.
    pub(super) is_fitted: bool,
}

impl Cell {
    pub(super) fn new(name: impl Into<String>, published: f64) -> Self {
        Self { name: name.into(), published: (published, published), is_fitted: false }
    }

    pub(super) fn fitted(self) -> Self {
        Self { is_fitted: true, ..self }
    }

    /// Relative distance between our figure and the published one: 0 within the published range.
    fn off(&self, ours: f64) -> f64 {
        let (low, high) = self.published;
        if ours < low { ours / low - 1.0 } else { (ours / high - 1.0).max(0.0) }
    }

    fn is_near(&self, ours: f64) -> bool {
        self.off(ours).abs() <= ALLOWED
    }

    fn text(&self, digits: impl Fn(f64) -> String) -> String {
        let (low, high) = self.published;
        if low < high { format!("{}–{}", digits(low), digits(high)) } else { digits(low) }
    }
}

/// A set of assumptions and the resulting figures.
pub(super) struct Row {
    /// In words. The first row is the base; each other row says what it changes.
    pub(super) assumption: String,
    /// One for each cell.
    pub(super) ours: Vec<f64>,
    /// Cells that this row was fitted to, by position.
    pub(super) fitted: Vec<usize>,
}

/// A published table.
pub(super) struct Cells {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) cells: Vec<Cell>,
    pub(super) rows: Vec<Row>,
}

impl Cells {
    /// Adds the figures for one set of assumptions.
    pub(super) fn add(
        &mut self,
        assumption: impl Into<String>,
        fitted: &[usize],
        ours: Result<Vec<f64>, Failed>,
    ) -> Result<(), Failed> {
        self.rows.push(Row { assumption: assumption.into(), ours: ours?, fitted: fitted.to_vec() });
        Ok(())
    }

    /// The first row that is near the published figure, except the base and rows that were fitted to it.
    fn explaining(&self, at: usize) -> Option<&Row> {
        let cell = self.cells.get(at)?;
        let predicted = self.rows.iter().skip(1).filter(|row| !row.fitted.contains(&at));
        { predicted }.find(|row| row.ours.get(at).is_some_and(|ours| cell.is_near(*ours)))
    }

    /// A row that was fitted to this figure. It shows only how large a cost would have to be.
    fn sizing(&self, at: usize) -> Option<&Row> {
        self.rows.iter().skip(1).find(|row| row.fitted.contains(&at))
    }

    /// Writes the tables and the finding.
    pub(super) fn report(&self, outcome: &mut Outcome) {
        let mut beside = Grid::new(
            &format!("{}, {}", self.title, self.unit),
            1,
            &["figure", "published", "ours", "off", "explained by", "then", "then off"],
        );
        let (mut near, mut explained, mut sized, mut open) = (0, 0, 0, Vec::new());
        for (at, cell) in self.cells.iter().enumerate() {
            let Some(ours) = self.rows.first().and_then(|row| row.ours.get(at)).copied() else { continue };
            let percent = |ours: f64| format!("{:+.0} %", cell.off(ours) * 100.0);
            let mut row = vec![cell.name.clone(), cell.text(figures::number), figures::number(ours)];
            row.push(if cell.is_fitted { "fitted".to_owned() } else { percent(ours) });
            let letter = |wanted: &Row| self.rows.iter().position(|row| std::ptr::eq(row, wanted));
            let other = |row: &Row| row.ours.get(at).copied().unwrap_or(f64::NAN);
            if cell.is_fitted || cell.is_near(ours) {
                near += 1;
                row.extend([String::new(), String::new(), String::new()]);
            } else if let Some(why) = self.explaining(at) {
                explained += 1;
                row.extend([name(letter(why)), figures::number(other(why)), percent(other(why))]);
            } else if let Some(why) = self.sizing(at) {
                sized += 1;
                row.extend([name(letter(why)), figures::number(other(why)), "fitted".to_owned()]);
            } else {
                open.push(cell.name.clone());
                row.extend(["unexplained".to_owned(), String::new(), String::new()]);
            }
            beside.row(row);
        }
        outcome.grids.push(beside);
        let mut columns = vec!["".to_owned(), "assumption".to_owned()];
        columns.extend(self.cells.iter().map(|cell| cell.name.clone()));
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut shown = Grid::new(&format!("One assumption changed at a time, {}", self.unit), 2, &columns);
        let published = self.cells.iter().map(|cell| cell.text(figures::number));
        shown.row([String::new(), "published".to_owned()].into_iter().chain(published));
        for (at, row) in self.rows.iter().enumerate() {
            let ours = row.ours.iter().map(|ours| figures::number(*ours));
            shown.row([name(Some(at)), row.assumption.clone()].into_iter().chain(ours));
        }
        outcome.grids.push(shown);
        let predicted = self.cells.iter().filter(|cell| !cell.is_fitted).count();
        let fitted = self.cells.len() - predicted;
        let mut evidence = format!(
            "{} of {predicted} predicted figures agree without changes, {explained} agree after one assumption is \
             changed",
            near - fitted
        );
        if fitted > 0 {
            evidence.push_str(&format!(", {fitted} were fitted"));
        }
        if sized > 0 {
            evidence.push_str(&format!(", {sized} agree only with a fitted cost"));
        }
        if !open.is_empty() {
            evidence.push_str(&format!("; unexplained: {}", open.join(", ")));
        }
        outcome.finding(
            "each published figure is within 15 %, or one of the listed assumptions explains the difference",
            Some(open.is_empty() && sized == 0).filter(|holds| *holds || !open.is_empty()),
            evidence,
        );
    }
}

/// The letter of an assumption.
fn name(at: Option<usize>) -> String {
    at.and_then(|at| u8::try_from(at).ok())
        .map_or_else(String::new, |at| char::from(b'A' + at.min(25)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(base: [f64; 4]) -> Outcome {
        let range = Cell { name: "r".into(), published: (1.0, 2.0), is_fitted: false };
        let mut cells = Cells {
            title: "T",
            unit: "s",
            cells: vec![Cell::new("a", 10.0).fitted(), Cell::new("b", 10.0), Cell::new("c", 10.0), range],
            rows: Vec::new(),
        };
        cells.add("base", &[], Ok(base.to_vec())).unwrap();
        cells.add("other", &[], Ok(vec![1.0, 9.0, 30.0, 9.0])).unwrap();
        cells.add("sized", &[2], Ok(vec![1.0, 9.0, 10.0, 9.0])).unwrap();
        let mut outcome = Outcome::default();
        cells.report(&mut outcome);
        outcome
    }

    #[test]
    fn differences_are_explained_sized_or_open() {
        let good = table([10.0, 11.4, 8.6, 1.5]);
        assert_eq!(good.findings[0].holds, Some(true), "{good:?}");
        let explained = table([10.0, 20.0, 10.0, 2.2]);
        assert_eq!(explained.findings[0].holds, Some(true));
        assert_eq!(explained.grids[0].rows[1][3..], ["+100 %", "B", "9.00", "-10 %"]);
        assert_eq!(explained.grids[0].rows[3][3], "+10 %");
        let sized = table([10.0, 10.0, 20.0, 1.5]);
        assert_eq!(sized.findings[0].holds, None);
        assert_eq!(sized.grids[0].rows[2][4..], ["C", "10.0", "fitted"]);
        let open = table([10.0, 10.0, 10.0, 4.0]);
        assert_eq!(open.findings[0].holds, Some(false));
        assert!(open.findings[0].evidence.contains("unexplained: r"), "{open:?}");
    }
}
