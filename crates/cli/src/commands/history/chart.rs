//! Charts of values over time: in the terminal with Braille characters, and as SVG.

use taktwerk_types::{DataValue, UtcTime, Variant};

/// Height of a chart in the terminal, in lines.
const ROWS: usize = 16;

/// Numbers over time. Bad and non-numeric values are gaps.
pub(super) struct Series {
    points: Vec<(i64, Option<f64>)>,
}

impl Series {
    pub(super) fn of(values: &[DataValue]) -> Self {
        let mut points: Vec<(i64, Option<f64>)> = values
            .iter()
            .filter_map(|value| {
                let number = match value.value.as_ref() {
                    Some(Variant::Boolean(value)) => Some(f64::from(u8::from(*value))),
                    Some(value) => value.as_f64(),
                    None => None,
                };
                let number = number.filter(|number| number.is_finite() && !value.status().is_bad());
                Some((value.source_timestamp?.ticks(), number))
            })
            .collect();
        points.sort_by_key(|(time, _)| *time);
        Self { points }
    }

    /// Range of times and numbers; `None` without numbers.
    fn frame(&self) -> Option<Frame> {
        let numbers = || self.points.iter().filter_map(|(_, number)| *number);
        let (low, high) = (numbers().reduce(f64::min)?, numbers().reduce(f64::max)?);
        // A constant line needs a margin above and below.
        let room = if high > low { 0.0 } else { low.abs().max(1.0) * 0.1 };
        let (first, last) = (self.points.first()?.0, self.points.last()?.0);
        Some(Frame { first, last: last.max(first + 1), low: low - room, high: high + room })
    }
}

struct Frame {
    first: i64,
    last: i64,
    low: f64,
    high: f64,
}

impl Frame {
    /// The position of a point, from 0 to 1, from the lower left.
    fn place(&self, time: i64, number: f64) -> (f64, f64) {
        let x = (time - self.first) as f64 / (self.last - self.first) as f64;
        (x, (number - self.low) / (self.high - self.low))
    }
}

/// A canvas of dots, 2 × 4 per character.
struct Dots {
    columns: usize,
    cells: Vec<u8>,
}

impl Dots {
    fn new(columns: usize) -> Self {
        Self { columns, cells: vec![0; columns * ROWS] }
    }

    fn set(&mut self, x: usize, y: usize) {
        let bit = match (x % 2, y % 4) {
            (0, 0) => 0x01,
            (0, 1) => 0x02,
            (0, 2) => 0x04,
            (0, _) => 0x40,
            (_, 0) => 0x08,
            (_, 1) => 0x10,
            (_, 2) => 0x20,
            (_, _) => 0x80,
        };
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell |= bit;
        }
    }

    /// Draws a line.
    fn line(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            let between =
                |from: usize, to: usize| (from as f64 + (to as f64 - from as f64) * part).round() as usize;
            self.set(between(from.0, to.0), between(from.1, to.1));
        }
    }

    fn row(&self, row: usize) -> String {
        let cells = self.cells.iter().skip(row * self.columns).take(self.columns);
        let text: String =
            cells.map(|cell| char::from_u32(0x2800 + u32::from(*cell)).unwrap_or(' ')).collect();
        text.trim_end_matches('\u{2800}').to_owned()
    }
}

/// A chart of `width` columns.
pub(super) fn text(series: &Series, width: usize) -> String {
    let Some(frame) = series.frame() else { return "no numbers in this range".to_owned() };
    let labels: Vec<String> = (0..ROWS)
        .map(|row| {
            let part = 1.0 - row as f64 / (ROWS - 1) as f64;
            if row % 5 == 0 { label(frame.low + (frame.high - frame.low) * part) } else { String::new() }
        })
        .collect();
    let margin = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(margin + 3).max(10);
    let mut dots = Dots::new(columns);
    let (right, bottom) = (columns * 2 - 1, ROWS * 4 - 1);
    let mut last: Option<(usize, usize)> = None;
    for (time, number) in &series.points {
        let Some(number) = number else {
            last = None;
            continue;
        };
        let (x, y) = frame.place(*time, *number);
        let here = ((x * right as f64).round() as usize, bottom - (y * bottom as f64).round() as usize);
        match last {
            Some(last) => dots.line(last, here),
            None => dots.set(here.0, here.1),
        }
        last = Some(here);
    }
    let mut out = String::new();
    for (row, label) in labels.iter().enumerate() {
        let axis = if label.is_empty() { '│' } else { '┤' };
        out.push_str(format!("{label:>margin$} {axis}{}", dots.row(row)).trim_end());
        out.push('\n');
    }
    let (from, to) = (clock_of(frame.first), clock_of(frame.last));
    // If there is no space for both times, only the first is shown.
    let to = if columns > from.len() + to.len() { to } else { String::new() };
    let gap = columns.saturating_sub(from.len() + to.len());
    out.push_str(&format!("{:margin$} └{}\n", "", "─".repeat(columns)));
    let axis = format!("{:margin$}  {from}{}{to}", "", " ".repeat(gap));
    out.push_str(axis.trim_end());
    out.push('\n');
    out
}

/// A number for an axis.
fn label(number: f64) -> String {
    if number == 0.0 || (0.01..1e6).contains(&number.abs()) {
        let text = format!("{number:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if text == "-0" { "0".to_owned() } else { text.to_owned() }
    } else {
        format!("{number:.2e}")
    }
}

/// A time without fractions of a second.
fn clock_of(ticks: i64) -> String {
    let text = UtcTime::from_ticks(ticks).to_string();
    let text = text.split_once('.').map_or(text.trim_end_matches('Z'), |(seconds, _)| seconds);
    text.replace('T', " ")
}

/// A chart as an SVG document.
pub(super) fn svg(series: &Series, title: &str) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 320.0;
    const LEFT: f64 = 70.0;
    const TOP: f64 = 30.0;
    let (inner_width, inner_height) = (WIDTH - LEFT - 20.0, HEIGHT - TOP - 40.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\">{}</text>\n",
        escaped(title)
    );
    let Some(frame) = series.frame() else {
        out.push_str("</svg>\n");
        return out;
    };
    for step in 0..=4 {
        let part = f64::from(step) / 4.0;
        let y = TOP + inner_height * (1.0 - part);
        let number = label(frame.low + (frame.high - frame.low) * part);
        out.push_str(&format!(
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n<text x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\">{number}</text>\n",
            LEFT + inner_width,
            LEFT - 6.0,
            y + 4.0
        ));
    }
    for (part, anchor) in [(0.0, "start"), (1.0, "end")] {
        let time = frame.first + ((frame.last - frame.first) as f64 * part) as i64;
        out.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            LEFT + inner_width * part,
            TOP + inner_height + 20.0,
            clock_of(time)
        ));
    }
    let mut line: Vec<String> = Vec::new();
    let mut flush = |line: &mut Vec<String>| {
        if !line.is_empty() {
            out.push_str(&format!(
                "<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-linecap=\"round\" points=\"{}\"/>\n",
                line.join(" ")
            ));
            line.clear();
        }
    };
    for (time, number) in &series.points {
        match number {
            Some(number) => {
                let (x, y) = frame.place(*time, *number);
                line.push(format!("{:.1},{:.1}", LEFT + inner_width * x, TOP + inner_height * (1.0 - y)));
            }
            None => flush(&mut line),
        }
    }
    flush(&mut line);
    out.push_str("</svg>\n");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::StatusCode;

    fn series(numbers: &[Option<f64>]) -> Series {
        let values: Vec<DataValue> = (0..)
            .zip(numbers)
            .map(|(at, number)| {
                let time = UtcTime::from_ticks(133_000_000_000_000_000 + at * 10_000_000);
                match number {
                    Some(number) => DataValue::new(*number).at(time, time),
                    None => DataValue::from_status(StatusCode::BAD_DATA_LOST).at(time, time),
                }
            })
            .collect();
        Series::of(&values)
    }

    #[test]
    fn a_rising_line_goes_from_the_lower_left_to_the_upper_right() {
        let chart = text(&series(&[Some(0.0), Some(5.0), Some(10.0)]), 40);
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines.len(), ROWS + 2);
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{chart}");
        assert!(
            lines[0].trim_start().starts_with("10 ┤") && lines[ROWS - 1].trim_start().starts_with("0 ┤"),
            "{chart}"
        );
        let first_dot = |line: &str| line.chars().position(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
        assert!(first_dot(lines[0]) > first_dot(lines[ROWS - 1]), "{chart}");
    }

    #[test]
    fn gaps_split_the_line_and_empty_charts_have_a_message() {
        let chart = svg(&series(&[Some(1.0), Some(2.0), None, Some(1.5), Some(3.0)]), "a<b");
        assert_eq!(chart.matches("<polyline").count(), 2);
        assert!(chart.contains("a&lt;b"));
        assert_eq!(text(&series(&[None, None]), 80), "no numbers in this range");
        assert!(text(&series(&[Some(4.0)]), 80).contains('┤'));
        assert!(svg(&series(&[]), "none").ends_with("</svg>\n"));
    }
}
