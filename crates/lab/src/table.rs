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
    /// Names that tell rows apart: nothing of them is cut off, what does not fit goes on in the next line.
    Wrap,
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

    /// Column widths: as wide as the content. If that is too much, titles go on in the next line, then names do, and then the
    /// widest columns give way until the table fits.
    fn widths(&self) -> Vec<usize> {
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let columns = || self.columns.iter().enumerate();
        let content: Vec<usize> =
            columns().map(|(at, _)| cells(at).map(|cell| cell.width()).max().unwrap_or(0)).collect();
        let word = |title: &str| title.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0);
        let narrow_titles: Vec<usize> =
            content.iter().zip(&self.columns).map(|(width, (title, _))| (*width).max(word(title))).collect();
        let narrow_names: Vec<usize> = columns()
            .zip(&narrow_titles)
            .map(|((at, (title, align)), width)| match align {
                Align::Wrap => cells(at).map(|cell| narrowest(cell)).max().unwrap_or(0).max(word(title)),
                _ => *width,
            })
            .collect();
        let broken_names: Vec<usize> = columns()
            .zip(&narrow_names)
            .map(|((_, (_, align)), width)| if *align == Align::Wrap { (*width).min(NAME) } else { *width })
            .collect();
        let mut widths: Vec<usize> = content
            .iter()
            .zip(&self.columns)
            .map(|(width, (title, _))| (*width).max(title.width()))
            .collect();
        let gaps = 2 * widths.len().saturating_sub(1);
        for floor in [narrow_titles, narrow_names, broken_names, vec![4; widths.len()]] {
            while widths.iter().sum::<usize>() + gaps > self.width {
                let above = widths.iter_mut().zip(&floor).filter(|(width, floor)| **width > **floor);
                let Some((widest, _)) = above.max_by_key(|(width, _)| **width) else { break };
                *widest -= 1;
            }
        }
        widths
    }
}

/// The width from which on a word in a name may be broken: words like "controllers", set in, stay whole.
const NAME: usize = 14;

/// How far the lines of a name are set in after the first.
const INDENT: usize = 2;

/// The least width in which no word of a name is broken.
fn narrowest(name: &str) -> usize {
    let indented = |(at, word): (usize, &str)| word.width() + if at == 0 { 0 } else { INDENT };
    name.split(' ').enumerate().map(indented).max().unwrap_or(0)
}

/// A figure and its interval in two lines if that is enough.
fn figure(text: &str, width: usize) -> Vec<String> {
    let parts = lines(text, width, 0);
    if parts.len() <= 2 { parts } else { vec![cut(text, width)] }
}

/// All of `text` in lines of `width` columns, broken at spaces; within a word only if that is wider than a line.
fn lines(text: &str, width: usize, indent: usize) -> Vec<String> {
    let indent = if width > indent + 4 { indent } else { 0 };
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split(' ') {
        let is_first = used == if lines.is_empty() { 0 } else { indent };
        if !is_first && used + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            used = indent;
        } else if !is_first {
            line.push(' ');
            used += 1;
        }
        for character in word.chars() {
            let wide = character.width().unwrap_or(0);
            if used + wide > width && used > indent {
                lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
                used = indent;
            }
            line.push(character);
            used += wide;
        }
    }
    lines.push(line);
    lines
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
        let line = |cells: &[&str], f: &mut fmt::Formatter<'_>| -> fmt::Result {
            let mut text = String::new();
            for (index, ((cell, width), (_, align))) in
                cells.iter().zip(&widths).zip(&self.columns).enumerate()
            {
                if index > 0 {
                    text.push_str("  ");
                }
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                match align {
                    Align::Left | Align::Tail | Align::Wrap => {
                        text.push_str(cell);
                        text.push_str(&padding);
                    }
                    Align::Right => {
                        text.push_str(&padding);
                        text.push_str(cell);
                    }
                }
            }
            writeln!(f, "{}", text.trim_end())
        };
        // Cells of several lines each; the last lines of titles stand on the rule.
        let row = |cells: &[Vec<String>], is_title: bool, f: &mut fmt::Formatter<'_>| {
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            (0..height).try_for_each(|at| {
                let part = |cell: &Vec<String>| {
                    let at = if is_title { (at + cell.len()).checked_sub(height) } else { Some(at) };
                    at.and_then(|at| cell.get(at)).cloned().unwrap_or_default()
                };
                let parts: Vec<String> = cells.iter().map(part).collect();
                line(&parts.iter().map(String::as_str).collect::<Vec<_>>(), f)
            })
        };
        let titles: Vec<Vec<String>> =
            self.columns.iter().zip(&widths).map(|((title, _), width)| lines(title, *width, 0)).collect();
        row(&titles, true, f)?;
        let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        line(&rules.iter().map(String::as_str).collect::<Vec<_>>(), f)?;
        for cells in &self.rows {
            let shown = |((cell, width), (_, align)): ((&String, &usize), &(String, Align))| match align {
                Align::Tail => vec![tail(cell, *width)],
                Align::Wrap => lines(cell, *width, INDENT),
                Align::Left => vec![cut(cell, *width)],
                Align::Right => figure(cell, *width),
            };
            let cells: Vec<Vec<String>> = cells.iter().zip(&widths).zip(&self.columns).map(shown).collect();
            row(&cells, false, f)?;
        }
        Ok(())
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
    fn names_go_on_in_the_next_line_and_figures_are_whole() {
        let mut table = Table::new(&[
            ("load", Align::Wrap),
            ("figure", Align::Right),
            ("a title that is long", Align::Right),
        ])
        .with_width(40);
        table.row(["taktwerk, clients=10, items=1000", "12.5 ± 0.3", "1"]);
        table.row(["asyncua, clients=10", "1", "2"]);
        let expected = [
            "                                       a",
            "                                   title",
            "                                    that",
            "                                      is",
            "load                       figure   long",
            "─────────────────────  ──────────  ─────",
            "taktwerk, clients=10,  12.5 ± 0.3      1",
            "  items=1000",
            "asyncua, clients=10             1      2",
        ];
        assert_eq!(table.to_string().lines().collect::<Vec<_>>(), expected);
        // Where even words do not fit they are broken, and still all there.
        let text = table.clone().with_width(34).to_string();
        assert!(text.lines().all(|line| line.width() <= 34) && !text.contains('…'), "{text}");
        assert!(text.contains("taktwerk,        12.5 ± 0.3      1\n  clients=10,\n  items=1000\n"), "{text}");
    }

    #[test]
    fn lines_lose_nothing() {
        assert_eq!(
            lines("opc.tcp://plc.example:4840, a=1", 12, 2),
            ["opc.tcp://pl", "  c.example:", "  4840, a=1"]
        );
        assert_eq!(lines("", 5, 2), [""]);
        assert_eq!(lines("水水水", 4, 0), ["水水", "水"]);
        assert_eq!(lines("a b", 1, 2), ["a", "b"]);
        assert_eq!(figure("123 456 ± 654 321", 10), ["123 456 ±", "654 321"]);
        assert_eq!(figure("a long text of some words", 10), ["a long te…"]);
    }

    #[test]
    fn wide_characters_count_double() {
        assert_eq!(cut("水水水", 5), "水水…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(tail("ns=2;s=Plant/Boiler/Level", 12), "…oiler/Level");
        assert_eq!(tail("水水水", 5), "…水水");
    }
}
