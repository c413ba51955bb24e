//! Tables of text that fit a terminal.

use std::fmt;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The width that every table fits into unless its terminal is known to be wider.
pub const WIDTH: usize = 100;

/// Where the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
    /// Paths and ids: left, but if they do not fit, their end is what tells them apart.
    Tail,
}

/// A table under construction.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    width: usize,
}

impl Table {
    /// A table with these columns: title and alignment.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|(title, align)| ((*title).to_owned(), *align)).collect();
        Self { columns, rows: Vec::new(), width: WIDTH }
    }

    /// Another width than [`WIDTH`].
    #[must_use]
    pub fn with_width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// Adds a row. Missing cells are empty, cells beyond the columns are left out.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut row: Vec<String> = cells.into_iter().map(|cell| one_line(&cell.into())).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Column widths: as wide as the content, then the widest ones give way until the table fits.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(title, _)| title.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let gaps = 2 * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > self.width {
            let Some(widest) = widths.iter_mut().max() else { break };
            if *widest <= 4 {
                break;
            }
            *widest -= 1;
        }
        widths
    }
}

/// Values may contain line breaks and control characters; a table row may not.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '␣' } else { character }).collect()
}

/// The end of `text` in `width` columns, with an ellipsis if something is missing.
#[must_use]
pub fn tail(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let backwards: String = text.chars().rev().collect();
    cut(&backwards, width).chars().rev().collect()
}

/// `text` cut to `width` columns, with an ellipsis if something is missing.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        kept.push(character);
    }
    kept.push('…');
    kept
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let line = |cells: &[String], f: &mut fmt::Formatter<'_>| -> fmt::Result {
            let mut text = String::new();
            for (index, ((cell, width), (_, align))) in
                cells.iter().zip(&widths).zip(&self.columns).enumerate()
            {
                if index > 0 {
                    text.push_str("  ");
                }
                let cell = if *align == Align::Tail { tail(cell, *width) } else { cut(cell, *width) };
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                match align {
                    Align::Left | Align::Tail => {
                        text.push_str(&cell);
                        text.push_str(&padding);
                    }
                    Align::Right => {
                        text.push_str(&padding);
                        text.push_str(&cell);
                    }
                }
            }
            writeln!(f, "{}", text.trim_end())
        };
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        line(&titles, f)?;
        let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        line(&rules, f)?;
        self.rows.iter().try_for_each(|row| line(row, f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_fit() {
        let mut table = Table::new(&[("node", Align::Left), ("value", Align::Right)]);
        table.row(["i=2258", "17"]);
        table.row(["ns=2;s=Häuser", "1\n2"]);
        assert_eq!(
            table.to_string(),
            "node           value\n─────────────  ─────\ni=2258            17\nns=2;s=Häuser    1␣2\n"
        );
        table.row([&"x".repeat(300), "y"]);
        assert!(table.to_string().lines().all(|line| line.width() <= WIDTH));
        assert!(table.to_string().contains('…'));
    }

    #[test]
    fn wide_characters_count_double() {
        assert_eq!(cut("水水水", 5), "水水…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(tail("ns=2;s=Plant/Boiler/Level", 12), "…oiler/Level");
        assert_eq!(tail("水水水", 5), "…水水");
    }
}
