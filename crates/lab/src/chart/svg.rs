//! Renders charts as SVG.

use super::axis::Range;
use super::{Chart, Content, Mark, Point, Quartiles, Series};
use std::fmt::Write;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 52.0;
/// Horizontal start of the legend in chart files.
pub(super) const LEGEND_X: f64 = 330.0;
/// Number of colours and dash patterns in the style sheet.
pub(super) const STYLES: usize = 8;

/// Escapes text for XML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

struct Canvas {
    text: String,
    x: Range,
    y: Range,
}

/// Formats a number on an axis with no more digits than a tick needs.
fn label(value: f64) -> String {
    let size = value.abs();
    let rounded = |value: f64, unit: &str| {
        let text = format!("{value:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{text}{unit}")
    };
    match size {
        s if s >= 1e9 => rounded(value / 1e9, "G"),
        s if s >= 1e6 => rounded(value / 1e6, "M"),
        s if s >= 1e4 => rounded(value / 1e3, "k"),
        s if s > 0.0 && s < 0.01 => format!("{value:.0e}"),
        _ => rounded(value, ""),
    }
}

impl Canvas {
    fn new(title: &str, x: Range, y: Range) -> Self {
        let text = format!(
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}" xmlns="http://www.w3.org/2000/svg">"#,
            escape(title)
        );
        Self { text, x, y }
    }

    fn across(&self, x: f64) -> f64 {
        LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT)
    }

    fn up(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(y) * (HEIGHT - TOP - BOTTOM)
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.text.write_fmt(arguments);
    }

    fn vertical_axis(&mut self, name: &str) {
        for tick in self.y.ticks() {
            let y = self.up(tick);
            self.put(format_args!(
                r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}"/><text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.5,
                label(tick)
            ));
        }
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        self.put(format_args!(
            r#"<text class="axis" transform="translate(15 {middle:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
            escape(name)
        ));
    }

    fn horizontal_axis(&mut self, name: &str) {
        let bottom = HEIGHT - BOTTOM;
        let mut last = f64::MIN;
        for tick in self.x.ticks() {
            let x = self.across(tick);
            self.put(format_args!(
                r#"<line class="grid" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom}"/>"#
            ));
            // Overlapping labels are left out; their grid lines stay.
            if x - last >= 44.0 {
                let anchor = if x > WIDTH - RIGHT - 12.0 { "end" } else { "middle" };
                let text = label(tick);
                self.put(format_args!(
                    r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="{anchor}">{text}</text>"#,
                    x.min(WIDTH - 2.0),
                    bottom + 17.0
                ));
                last = x;
            }
        }
        self.put(format_args!(
            r#"<text class="axis" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 12.0,
            escape(name)
        ));
    }

    fn error_bars(&mut self, points: &[Point], style: usize) {
        for point in points {
            let Some((low, high)) = point.interval else { continue };
            let (x, top, bottom) = (self.across(point.x), self.up(high), self.up(low));
            self.put(format_args!(
                r#"<path class="bar s{style}" d="M{:.1} {top:.1}h6m-3 0V{bottom:.1}m-3 0h6"/>"#,
                x - 3.0
            ));
        }
    }

    fn dots(&mut self, points: &[Point], style: usize) {
        for point in points {
            let (x, y) = (self.across(point.x), self.up(point.y));
            self.put(format_args!(r#"<circle class="dot s{style}" cx="{x:.1}" cy="{y:.1}" r="3.2"/>"#));
        }
    }

    fn path(&mut self, points: &[Point], style: usize, is_stair: bool) {
        let mut path = String::new();
        for (index, point) in points.iter().enumerate() {
            let (x, y) = (self.across(point.x), self.up(point.y));
            let _ = match (index, is_stair) {
                (0, _) => write!(path, "M{x:.1} {y:.1}"),
                (_, true) => write!(path, "H{x:.1}V{y:.1}"),
                (_, false) => write!(path, "L{x:.1} {y:.1}"),
            };
        }
        self.put(format_args!(r#"<path class="line s{style}" d="{path}"/>"#));
    }

    fn band(&mut self, points: &[Point], style: usize) {
        let corner = |canvas: &Self, point: &Point, is_high: bool| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            format!("{:.1} {:.1}", canvas.across(point.x), canvas.up(if is_high { high } else { low }))
        };
        let there: Vec<String> = points.iter().map(|point| corner(self, point, true)).collect();
        let back: Vec<String> = points.iter().rev().map(|point| corner(self, point, false)).collect();
        if !there.is_empty() {
            let path = format!("M{}L{}Z", there.join("L"), back.join("L"));
            self.put(format_args!(r#"<path class="band s{style}" d="{path}"/>"#));
        }
    }

    fn series(&mut self, series: &Series) {
        let style = series.colour % STYLES;
        match &series.mark {
            Mark::Line(points) => {
                self.path(points, style, false);
                self.error_bars(points, style);
                if points.len() <= 16 {
                    self.dots(points, style);
                }
            }
            Mark::Dots(points) => {
                self.error_bars(points, style);
                self.dots(points, style);
            }
            Mark::Steps(points) => self.path(points, style, true),
            Mark::Band(points) => self.band(points, style),
            Mark::Vertical(at) => {
                let x = self.across(*at);
                let beside = if x > WIDTH - RIGHT - 24.0 { x - 5.0 } else { x + 14.0 };
                self.put(format_args!(
                    r#"<path class="line s{style}" d="M{x:.1} {TOP}V{:.1}"/><text class="tick" transform="translate({beside:.1} {:.1}) rotate(-90)" text-anchor="end">{}</text>"#,
                    HEIGHT - BOTTOM,
                    TOP + 4.0,
                    escape(&series.name)
                ));
            }
        }
    }

    /// The name of a column; split into two lines at a space near the middle.
    fn column(&mut self, x: f64, width: f64, name: &str) {
        let most = (width / 6.5).max(3.0) as usize;
        let cut = |text: &str| -> String {
            if text.chars().count() <= most {
                return text.to_owned();
            }
            text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
        };
        let (first, second) = match name.split_once(", ").or_else(|| name.split_once(' ')) {
            Some((first, second)) if name.chars().count() > most => (first, second),
            _ => (name, ""),
        };
        for (line, text) in [first, second].into_iter().enumerate() {
            self.put(format_args!(
                r#"<text class="tick" x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                HEIGHT - BOTTOM + 17.0 + 15.0 * line as f64,
                escape(&cut(text))
            ));
        }
    }

    fn boxes(&mut self, boxes: &[Quartiles]) {
        let width = (WIDTH - LEFT - RIGHT) / boxes.len().max(1) as f64;
        for (index, one) in boxes.iter().enumerate() {
            let x = LEFT + width * (index as f64 + 0.5);
            let half = (width * 0.28).min(26.0);
            let style = index % STYLES;
            let [low, first, median, third, high, max] =
                [one.low, one.first, one.median, one.third, one.high, one.max].map(|value| self.up(value));
            self.put(format_args!(
                r#"<path class="bar s{style}" d="M{x:.1} {low:.1}V{first:.1}M{x:.1} {third:.1}V{high:.1}M{a:.1} {low:.1}H{b:.1}M{a:.1} {high:.1}H{b:.1}"/><rect class="box s{style}" x="{c:.1}" y="{third:.1}" width="{d:.1}" height="{e:.1}"/><path class="median s{style}" d="M{c:.1} {median:.1}h{d:.1}"/><circle class="dot s{style}" cx="{x:.1}" cy="{max:.1}" r="2.4"/>"#,
                a = x - half / 2.0,
                b = x + half / 2.0,
                c = x - half,
                d = half * 2.0,
                e = (first - third).max(0.5),
            ));
            self.column(x, width, &one.label);
        }
    }

    fn stack(&mut self, bars: &[(String, Vec<f64>)]) {
        let width = (WIDTH - LEFT - RIGHT) / bars.len().max(1) as f64;
        for (index, (name, sizes)) in bars.iter().enumerate() {
            let x = LEFT + width * (index as f64 + 0.5);
            let half = (width * 0.32).min(40.0);
            let mut below = 0.0;
            for (part, size) in sizes.iter().enumerate() {
                let (top, bottom) = (self.up(below + size), self.up(below));
                self.put(format_args!(
                    r#"<rect class="part s{}" x="{:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"/>"#,
                    part % STYLES,
                    x - half,
                    half * 2.0,
                    (bottom - top).max(0.0)
                ));
                below += size;
            }
            self.column(x, width, name);
        }
    }

    fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }
}

/// An unused range, for the horizontal axis of charts with columns.
fn columns() -> Range {
    Range::around(&super::Axis::linear(""), std::iter::empty())
}

pub(super) fn draw(chart: &Chart) -> String {
    match &chart.content {
        Content::Plane { x, y, series } => {
            let all = || series.iter().flat_map(|series| series.mark.points());
            let vertical = series.iter().filter_map(|series| match series.mark {
                Mark::Vertical(x) => Some(x),
                _ => None,
            });
            let heights = all().flat_map(|point| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                [point.y, low, high]
            });
            let mut canvas = Canvas::new(
                &chart.title,
                Range::around(x, all().map(|point| point.x).chain(vertical)),
                Range::around(y, heights),
            );
            canvas.vertical_axis(&y.label);
            canvas.horizontal_axis(&x.label);
            series.iter().for_each(|series| canvas.series(series));
            canvas.finish()
        }
        Content::Boxes { y, boxes } => {
            let heights = boxes.iter().flat_map(|one| [one.low, one.high, one.max]);
            let mut canvas = Canvas::new(&chart.title, columns(), Range::around(y, heights));
            canvas.vertical_axis(&y.label);
            canvas.boxes(boxes);
            canvas.finish()
        }
        Content::Stack { y, bars, .. } => {
            let heights = bars.iter().map(|(_, parts)| parts.iter().sum());
            let mut canvas = Canvas::new(&chart.title, columns(), Range::around(y, heights));
            canvas.vertical_axis(&y.label);
            canvas.stack(bars);
            canvas.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_labels_are_short() {
        let shown: Vec<String> =
            [0.0, 0.25, 1.5, 200.0, 10_000.0, 2.5e6, 0.001].into_iter().map(label).collect();
        assert_eq!(shown, ["0", "0.25", "1.5", "200", "10k", "2.5M", "1e-3"]);
    }
}
