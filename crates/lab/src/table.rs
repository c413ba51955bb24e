//! Text tables that fit into a terminal.

use std::fmt;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Default maximum width of a table.
pub const WIDTH: usize = 100;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
    /// Left, for paths and ids. If they do not fit, the beginning is cut off, because the end identifies them.
    Tail,
    /// Left, for names and texts. Nothing is cut off: they wrap after a space or a slash. Only words longer than the
    /// column are split.
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

    /// Sets a width other than [`WIDTH`].
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

    /// Column widths. Starts with the width of the content. If the table is too wide, titles wrap first, then names,
    /// then the widest columns shrink.
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
        // The longest word of a name, without indentation.
        let bare_names: Vec<usize> = columns()
            .zip(&narrow_names)
            .map(|((at, (title, align)), width)| {
                match align {
                    Align::Wrap => cells(at).flat_map(|cell| words(cell)).map(UnicodeWidthStr::width).max(),
                    _ => Some(*width),
                }
                .unwrap_or(0)
                .max(word(title))
            })
            .collect();
        let broken_names: Vec<usize> = columns()
            .zip(&bare_names)
            .map(|((_, (_, align)), width)| if *align == Align::Wrap { (*width).min(NAME) } else { *width })
            .collect();
        let mut widths: Vec<usize> = content
            .iter()
            .zip(&self.columns)
            .map(|(width, (title, _))| (*width).max(title.width()))
            .collect();
        let gaps = 2 * widths.len().saturating_sub(1);
        for floor in [narrow_titles, narrow_names, bare_names, broken_names, vec![4; widths.len()]] {
            while widths.iter().sum::<usize>() + gaps > self.width {
                let above = widths.iter_mut().zip(&floor).filter(|(width, floor)| **width > **floor);
                let Some((widest, _)) = above.max_by_key(|(width, _)| **width) else { break };
                *widest -= 1;
            }
        }
        widths
    }
}

/// Minimum column width before words in names are split: words like "unacknowledged" stay whole.
const NAME: usize = 14;

/// Indentation of the continuation lines of a name.
const INDENT: usize = 2;

/// The parts of a name that are split last: words, and path components with their slashes.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(' ').flat_map(|word| word.split_inclusive('/'))
}

/// The smallest width at which no word of a name is split, including the indentation.
fn narrowest(name: &str) -> usize {
    let indented = |(at, word): (usize, &str)| word.width() + if at == 0 { 0 } else { INDENT };
    words(name).enumerate().map(indented).max().unwrap_or(0)
}

/// Splits a figure and its interval into two lines if they fit.
fn figure(text: &str, width: usize) -> Vec<String> {
    let parts = lines(text, width, false);
    if parts.len() <= 2 { parts } else { vec![cut(text, width)] }
}

/// Wraps `text` to lines of `width` columns, at spaces, and for names also after slashes. Words are split only if they
/// are wider than a line. Continuation lines of names are indented, unless a word needs the whole width.
fn lines(text: &str, width: usize, is_name: bool) -> Vec<String> {
    let indent = if is_name && width > INDENT + 4 { INDENT } else { 0 };
    let (mut lines, mut line, mut used, mut start) = (Vec::new(), String::new(), 0, 0);
    for (at, word) in text.split(' ').enumerate() {
        // Names may also be wrapped after slashes.
        let slash = if is_name { '/' } else { ' ' };
        let parts = word.split_inclusive(slash).chain(word.is_empty().then_some(""));
        for (part_at, part) in parts.enumerate() {
            let gap = usize::from(part_at == 0 && at > 0 && used > start);
            if used > start && used + gap + part.width() > width {
                start = if part.width() > width - indent && part.width() <= width { 0 } else { indent };
                lines.push(std::mem::replace(&mut line, " ".repeat(start)));
                used = start;
            } else if gap > 0 {
                line.push(' ');
                used += 1;
            }
            for character in part.chars() {
                let wide = character.width().unwrap_or(0);
                if used + wide > width && used > start {
                    lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
                    (used, start) = (indent, indent);
                }
                line.push(character);
                used += wide;
            }
        }
    }
    lines.push(line);
    lines
}

/// Values may contain line breaks and control characters, which a table row must not contain.
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
        // Cells may have several lines; titles are aligned to the rule below them.
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
            self.columns.iter().zip(&widths).map(|((title, _), width)| lines(title, *width, false)).collect();
        row(&titles, true, f)?;
        let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        line(&rules.iter().map(String::as_str).collect::<Vec<_>>(), f)?;
        for cells in &self.rows {
            let shown = |((cell, width), (_, align)): ((&String, &usize), &(String, Align))| match align {
                Align::Tail => vec![tail(cell, *width)],
                Align::Wrap => lines(cell, *width, true),
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
    fn names_wrap_and_figures_stay_whole() {
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
        // Words that are too wide are split, but nothing is lost.
        let text = table.clone().with_width(34).to_string();
        assert!(text.lines().all(|line| line.width() <= 34) && !text.contains('…'), "{text}");
        assert!(text.contains("taktwerk,        12.5 ± 0.3      1\n  clients=10,\n  items=1000\n"), "{text}");
    }

    #[test]
    fn lines_lose_nothing() {
        assert_eq!(
            lines("opc.tcp://plc.example:4840, a=1", 12, true),
            ["opc.tcp://", "  plc.exampl", "  e:4840,", "  a=1"]
        );
        assert_eq!(lines("", 5, true), [""]);
        assert_eq!(lines("水水水", 4, false), ["水水", "水"]);
        assert_eq!(lines("a b", 1, true), ["a", "b"]);
        assert_eq!(figure("123 456 ± 654 321", 10), ["123 456 ±", "654 321"]);
        assert_eq!(figure("a long text of some words", 10), ["a long te…"]);
    }

    #[test]
    fn words_and_parts_of_paths_stay_whole() {
        let text = "Utilities/CompressedAir: back to normal";
        assert_eq!(lines(text, 18, true), ["Utilities/", "  CompressedAir:", "  back to normal"]);
        // A word that needs the whole width is not indented.
        assert_eq!(lines(text, 14, true), ["Utilities/", "CompressedAir:", "  back to", "  normal"]);
        assert_eq!(lines("active, unacknowledged", 14, true), ["active,", "unacknowledged"]);
        // Only longer words are split.
        assert_eq!(lines("CompressedAir: low", 10, true), ["Compressed", "  Air: low"]);
        assert_eq!(lines("a/b c/d", 100, true), ["a/b c/d"]);
        // Figures have units.
        assert_eq!(lines("12345 ops/s", 6, false), ["12345", "ops/s"]);
        let mut table = Table::new(&[("source", Align::Wrap), ("message", Align::Wrap)]).with_width(32);
        table.row(["Utilities/CompressedAir", "unacknowledged: low"]);
        let shown: Vec<String> = table.to_string().lines().skip(2).map(str::to_owned).collect();
        assert_eq!(shown, ["Utilities/       unacknowledged:", "  CompressedAir    low"]);
        let text = table.with_width(30).to_string();
        assert!(text.contains("\nCompressedAir    low\n"), "{text}");
    }

    #[test]
    fn wide_characters_count_double() {
        assert_eq!(cut("水水水", 5), "水水…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(tail("ns=2;s=Plant/Boiler/Level", 12), "…oiler/Level");
        assert_eq!(tail("水水水", 5), "…水水");
    }
}
