//! Draws charts as SVG text, so that a report needs no scripts, fonts or network access.
//!
//! Colours are classes (`s0` … `s7`). The page's style sheet defines them for light mode, dark mode and print.

mod axis;
mod svg;
mod times;

pub use axis::Scale;

use crate::latency::Times;
use serde::Serialize;

/// Maximum number of curves per chart: the number of colours.
const CURVES: usize = svg::STYLES;

/// Style for charts in separate files: the colours of light pages.
const FILE_STYLE: &str = "svg text,text{font:13px system-ui,\"DejaVu Sans\",sans-serif;fill:#1b1f24}.tick{font-size:12.5px;\
    fill:#5b6570}.grid{stroke:#e6eaee;stroke-width:1}.line,.bar{fill:none;stroke-width:2.2;stroke-linejoin:round}.dot{stroke:none}\
    .line.s0,.bar.s0{stroke:#0072b2}.dot.s0{fill:#0072b2}.line.s1,.bar.s1{stroke:#d55e00}.dot.s1{fill:#d55e00}\
    .line.s2,.bar.s2{stroke:#009e73}.dot.s2{fill:#009e73}.line.s3,.bar.s3{stroke:#c2378f}.dot.s3{fill:#c2378f}\
    .line.s4,.bar.s4{stroke:#8a7400}.dot.s4{fill:#8a7400}.line.s5,.bar.s5{stroke:#1b1f24}.dot.s5{fill:#1b1f24}\
    .line.s6,.bar.s6{stroke:#6b4fbb}.dot.s6{fill:#6b4fbb}.line.s7,.bar.s7{stroke:#888}.dot.s7{fill:#888}";

/// Maximum number of columns with readable names.
const COLUMNS: usize = 10;

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Mapping from values to positions.
    pub scale: Scale,
    /// Whether the axis starts at zero even if no value is near zero.
    pub from_zero: bool,
}

impl Axis {
    /// A linear axis from zero.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, from_zero: true }
    }

    /// A linear axis around the values, not from zero.
    #[must_use]
    pub fn around(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, from_zero: false }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Log, from_zero: false }
    }
}

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Interval of the vertical value.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A value without an interval.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }
}

/// The numbers of a box plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quartiles {
    /// Name below the box.
    pub label: String,
    /// 5th percentile.
    pub low: f64,
    /// 25th percentile.
    pub first: f64,
    /// The median.
    pub median: f64,
    /// 75th percentile.
    pub third: f64,
    /// 95th percentile.
    pub high: f64,
    /// Largest value.
    pub max: f64,
}

impl Quartiles {
    /// From a histogram, in milliseconds.
    #[must_use]
    pub fn of(label: &str, times: &Times) -> Self {
        let ms = |percent: f64| times.percentile(percent) as f64 / 1e6;
        Self {
            label: label.to_owned(),
            low: ms(5.0),
            first: ms(25.0),
            median: ms(50.0),
            third: ms(75.0),
            high: ms(95.0),
            max: times.max() as f64 / 1e6,
        }
    }

    /// From a paper that prints mean, median, standard deviation, maximum and minimum in milliseconds. The quartiles
    /// assume a normal distribution.
    #[must_use]
    pub fn published(label: &str, [_, median, deviation, max, min]: [f64; 5]) -> Self {
        let [first, third] = [-0.674, 0.674].map(|z| (median + z * deviation).clamp(min, max.max(min)));
        let [low, high] = [-1.645, 1.645].map(|z| (median + z * deviation).clamp(min, max.max(min)));
        Self { label: format!("{label}, published"), low, first, median, third, high, max }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Points joined by lines, with error bars where there is an interval.
    Line(Vec<Point>),
    /// Points alone, with error bars where there is an interval.
    Dots(Vec<Point>),
    /// A step line, as for distribution functions.
    Steps(Vec<Point>),
    /// The area between the ends of each point's interval.
    Band(Vec<Point>),
    /// A vertical line at a horizontal value.
    Vertical(f64),
}

impl Mark {
    /// The points; empty for a vertical line.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        match self {
            Self::Line(points) | Self::Dots(points) | Self::Steps(points) | Self::Band(points) => points,
            Self::Vertical(_) => &[],
        }
    }
}

/// A named part of the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Shape and data.
    pub mark: Mark,
    /// Colour number; series with the same number belong together.
    pub colour: usize,
}

/// The content of a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Two numeric axes.
    Plane {
        /// Horizontal axis.
        x: Axis,
        /// Vertical axis.
        y: Axis,
        /// Series; the last one is drawn on top.
        series: Vec<Series>,
    },
    /// Box plots side by side.
    Boxes {
        /// The vertical axis.
        y: Axis,
        /// The boxes.
        boxes: Vec<Quartiles>,
    },
    /// Stacked bars.
    Stack {
        /// The vertical axis.
        y: Axis,
        /// Names of the parts.
        parts: Vec<String>,
        /// Bars, each with the sizes of its parts.
        bars: Vec<(String, Vec<f64>)>,
    },
}

/// A chart with its explanation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Caption: how to read the chart.
    pub reading: String,
    /// Content.
    pub content: Content,
}

impl Chart {
    /// A chart with two numeric axes.
    #[must_use]
    pub fn plane(title: &str, reading: &str, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self {
            title: title.to_owned(),
            reading: reading.to_owned(),
            content: Content::Plane { x, y, series },
        }
    }

    /// Lines with two numeric axes. Splits into several charts as [`Self::apart`] does if there are more lines than
    /// colours.
    #[must_use]
    pub fn lines_apart(
        title: &str,
        reading: &str,
        (x, y): (Axis, Axis),
        lines: Vec<(String, Vec<Point>)>,
    ) -> Vec<Self> {
        let lines = lines.into_iter().filter(|(_, points)| !points.is_empty()).collect();
        let draw = |(title, part): (String, Vec<(String, Vec<Point>)>)| {
            let series = part.into_iter().enumerate();
            let series =
                series.map(|(colour, (name, points))| Series { name, mark: Mark::Line(points), colour });
            Self::plane(&title, reading, x.clone(), y.clone(), series.collect())
        };
        parts(title, lines, CURVES).into_iter().map(draw).collect()
    }

    /// Box plots of times in milliseconds. Splits into several charts as [`Self::apart`] does if the names do not fit.
    /// The axis is logarithmic if a linear axis would flatten the boxes.
    #[must_use]
    pub fn boxes_apart(title: &str, boxes: Vec<Quartiles>) -> Vec<Self> {
        const FLAT: f64 = 20.0;
        let reading = "The box shows the middle 50 %, the line in it the median. Whiskers show the 5th and the 95th \
                       percentile, the dot the maximum.";
        let named = boxes.into_iter().map(|one| (one.label.clone(), one)).collect();
        let draw = |(title, part): (String, Vec<(String, Quartiles)>)| {
            let boxes: Vec<Quartiles> =
                part.into_iter().map(|(label, one)| Quartiles { label, ..one }).collect();
            let [most, least] = [
                part_of(&boxes, |one| one.max).fold(0.0, f64::max),
                part_of(&boxes, |one| one.median).fold(f64::MAX, f64::min),
            ];
            let axis = if most > least * FLAT { Axis::log } else { Axis::linear };
            Self::boxes(&title, reading, axis("time, ms"), boxes)
        };
        parts(title, named, COLUMNS).into_iter().map(draw).collect()
    }

    /// Stacked bars. Splits into several charts as [`Self::apart`] does if the names do not fit.
    #[must_use]
    pub fn stacks_apart(
        title: &str,
        reading: &str,
        y: &Axis,
        names: &[String],
        bars: Vec<(String, Vec<f64>)>,
    ) -> Vec<Self> {
        let draw = |(title, bars): (String, Vec<(String, Vec<f64>)>)| {
            Self::stack(&title, reading, y.clone(), names.to_vec(), bars)
        };
        parts(title, bars, COLUMNS).into_iter().map(draw).collect()
    }

    /// Box plots.
    #[must_use]
    pub fn boxes(title: &str, reading: &str, y: Axis, boxes: Vec<Quartiles>) -> Self {
        Self { title: title.to_owned(), reading: reading.to_owned(), content: Content::Boxes { y, boxes } }
    }

    /// Stacked bars.
    #[must_use]
    pub fn stack(
        title: &str,
        reading: &str,
        y: Axis,
        parts: Vec<String>,
        bars: Vec<(String, Vec<f64>)>,
    ) -> Self {
        Self {
            title: title.to_owned(),
            reading: reading.to_owned(),
            content: Content::Stack { y, parts, bars },
        }
    }

    /// Charts of curves named `stack, network, …`. A single chart if it has enough colours. Otherwise one chart for
    /// each last part of the names, and so on recursively.
    #[must_use]
    pub fn apart(
        draw: fn(&str, &[(String, Times)]) -> Self,
        title: &str,
        times: &[(String, Times)],
    ) -> Vec<Self> {
        let times: Vec<(String, Times)> =
            times.iter().filter(|(_, times)| times.count() > 0).cloned().collect();
        parts(title, times, CURVES).iter().map(|(title, part)| draw(title, part)).collect()
    }

    /// Whether the chart has no data, because nothing could be measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.content {
            Content::Plane { series, .. } => series.iter().all(|series| series.mark.points().is_empty()),
            Content::Boxes { boxes, .. } => boxes.is_empty(),
            Content::Stack { parts, bars, .. } => parts.is_empty() || bars.is_empty(),
        }
    }

    /// The chart as an SVG element, without the caption.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::draw(self)
    }

    /// The chart as a separate file, with the style of light pages and a legend. In a report, the legend is outside of
    /// the SVG.
    #[must_use]
    pub fn file(&self) -> String {
        let drawn = self.svg();
        let (root, rest) = drawn.split_once('>').unwrap_or(("<svg", ""));
        let mut text = root.to_owned();
        if !root.contains("xmlns=") {
            text.push_str(" xmlns=\"http://www.w3.org/2000/svg\"");
        }
        text.push('>');
        text.push_str("<style>");
        text.push_str(FILE_STYLE);
        text.push_str("</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>");
        text.push_str(rest.strip_suffix("</svg>").unwrap_or(rest));
        for (row, (name, colour)) in self.legend().into_iter().enumerate() {
            let y = 26 + 18 * row;
            let style = colour % CURVES;
            let mark = if self.is_dotted(&name) {
                format!("<circle class=\"dot s{style}\" cx=\"{}\" cy=\"{y}\" r=\"4\"/>", svg::LEGEND_X + 13.0)
            } else {
                format!("<path class=\"line s{style}\" d=\"M{} {y}h26\"/>", svg::LEGEND_X)
            };
            text.push_str(&format!(
                "{mark}<text x=\"{}\" y=\"{}\">{}</text>",
                svg::LEGEND_X + 34.0,
                y + 4,
                svg::escape(&name)
            ));
        }
        text.push_str("</svg>\n");
        text
    }

    /// Whether all series with this name are drawn as dots, without a line.
    #[must_use]
    pub fn is_dotted(&self, name: &str) -> bool {
        let Content::Plane { series, .. } = &self.content else { return false };
        series.iter().filter(|one| one.name == name).all(|one| matches!(one.mark, Mark::Dots(_)))
    }

    /// Names and colours for a legend; empty if there is only one series.
    #[must_use]
    pub fn legend(&self) -> Vec<(String, usize)> {
        let mut names: Vec<(String, usize)> = Vec::new();
        match &self.content {
            Content::Plane { series, .. } => {
                // Vertical lines are labelled in the chart.
                let named = |one: &&Series| !one.name.is_empty() && !matches!(one.mark, Mark::Vertical(_));
                for series in series.iter().filter(named) {
                    if !names.iter().any(|(name, _)| *name == series.name) {
                        names.push((series.name.clone(), series.colour));
                    }
                }
            }
            Content::Stack { parts, .. } => {
                names.extend(parts.iter().enumerate().map(|(colour, part)| (part.clone(), colour)));
            }
            Content::Boxes { .. } => {}
        }
        names
    }
}

/// Splits items named `stack, network, …` into parts of at most `most`, each with a title: all items if they fit,
/// otherwise grouped by the last part of the name, and so on recursively.
fn parts<T>(title: &str, all: Vec<(String, T)>, most: usize) -> Vec<(String, Vec<(String, T)>)> {
    if all.len() <= most {
        return vec![(title.to_owned(), all)];
    }
    if all.iter().all(|(name, _)| name.contains(", ")) {
        let mut parts: Vec<(String, Vec<(String, T)>)> = Vec::new();
        for (name, one) in all {
            let (head, last) = name.rsplit_once(", ").unwrap_or((&name, ""));
            match parts.iter_mut().find(|(known, _)| known == last) {
                Some((_, part)) => part.push((head.to_owned(), one)),
                None => parts.push((last.to_owned(), vec![(head.to_owned(), one)])),
            }
        }
        let deeper =
            parts.into_iter().map(|(last, part)| self::parts(&format!("{title}: {last}"), part, most));
        return deeper.flatten().collect();
    }
    // The names do not show how to group the items.
    let count = all.len().div_ceil(most);
    let mut rest = all.into_iter();
    (1..=count).map(|at| (format!("{title}, {at} of {count}"), rest.by_ref().take(most).collect())).collect()
}

fn part_of(boxes: &[Quartiles], value: fn(&Quartiles) -> f64) -> impl Iterator<Item = f64> {
    boxes.iter().map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Times {
        let mut times = Times::new();
        (1..=10_000u64).for_each(|value| times.record(value * 1_000));
        times
    }

    #[test]
    fn more_curves_than_colours_become_several_charts() {
        let of = |names: &[String]| -> Vec<(Vec<String>, String)> {
            let curves: Vec<(String, Times)> = names.iter().map(|name| (name.clone(), times())).collect();
            let charts = Chart::apart(Chart::distribution, "t", &curves);
            let names = |chart: &Chart| chart.legend().into_iter().map(|(name, _)| name).collect();
            charts.iter().map(|chart| (names(chart), chart.title.clone())).collect()
        };
        let all = |stacks: usize, networks: &[&str]| -> Vec<String> {
            let of = |stack: usize| networks.iter().map(move |network| format!("s{stack}, {network}"));
            (0..stacks).flat_map(of).collect()
        };
        assert_eq!(of(&all(4, &["near", "far"])).len(), 1);
        let split = of(&all(5, &["near", "far"]));
        assert_eq!(split.len(), 2);
        assert_eq!(split[1], ((0..5).map(|stack| format!("s{stack}")).collect(), "t: far".to_owned()));
        // One item has a different name, so the items are split in their order.
        let mut odd = all(5, &["near", "far"]);
        odd[7] = "odd".into();
        let split = of(&odd);
        assert_eq!(split.iter().map(|(names, _)| names.len()).collect::<Vec<_>>(), [8, 2]);
        assert_eq!(split[1].1, "t, 2 of 2");
        let boxes = |count: usize| -> usize {
            let one = |at: usize| Quartiles::of(&format!("s{}, {} B", at / 3, at % 3), &times());
            Chart::boxes_apart("t", (0..count).map(one).collect()).len()
        };
        assert_eq!((boxes(9), boxes(12)), (1, 3));
        // Three levels of names.
        let three: Vec<String> = all(5, &["near, A", "near, B", "far, A", "far, B"]);
        assert_eq!(
            of(&three).iter().map(|(_, title)| title.as_str()).collect::<Vec<_>>(),
            ["t: A: near", "t: A: far", "t: B: near", "t: B: far"]
        );
    }

    #[test]
    fn lines_of_a_chart_have_different_colours() {
        let of = |stack: usize| ["1 client", "30 clients"].map(|clients| format!("s{stack}, {clients}"));
        let line = |name: String| (name, vec![Point::new(1.0, 1.0), Point::new(2.0, 3.0)]);
        let axes = (Axis::linear("x"), Axis::linear("y"));
        let mut lines: Vec<_> = (0..8).flat_map(of).map(line).collect();
        lines.push(("empty, 30 clients".into(), Vec::new()));
        let charts = Chart::lines_apart("t", "r", axes, lines);
        assert_eq!(charts.len(), 2);
        for chart in charts {
            let legend = chart.legend();
            let colours: std::collections::BTreeSet<usize> =
                legend.iter().map(|(_, colour)| colour % CURVES).collect();
            assert_eq!((legend.len(), colours.len()), (8, 8));
        }
    }

    #[test]
    fn an_outlier_does_not_flatten_boxes() {
        let mut outlier = times();
        outlier.record(3_000_000_000);
        let scale = |times: &Times| match &Chart::boxes_apart("t", vec![Quartiles::of("a", times)])[0].content
        {
            Content::Boxes { y, .. } => y.scale,
            _ => panic!(),
        };
        assert_eq!((scale(&times()), scale(&outlier)), (Scale::Linear, Scale::Log));
        let published = Quartiles::published("opcua", [433.0, 420.0, 12.0, 1_236.0, 402.0]);
        assert!(
            published.low >= 402.0 && published.first < 420.0 && published.max == 1_236.0,
            "{published:?}"
        );
    }

    #[test]
    fn every_kind_becomes_svg_without_scripts_and_with_escaped_text() {
        let line =
            Mark::Line(vec![Point { x: 1.0, y: 2.0, interval: Some((1.0, 3.0)) }, Point::new(2.0, 4.0)]);
        let series = vec![
            Series { name: "a<b".into(), mark: line.clone(), colour: 0 },
            Series {
                name: "band".into(),
                mark: Mark::Band(vec![Point { x: 1.0, y: 2.0, interval: Some((1.0, 3.0)) }]),
                colour: 1,
            },
            Series { name: "dots".into(), mark: Mark::Dots(vec![Point::new(1.5, 2.5)]), colour: 2 },
        ];
        let charts = [
            Chart::plane("x & y", "r", Axis::log("<x>"), Axis::linear("y"), series),
            Chart::boxes("b", "r", Axis::linear("ms"), vec![Quartiles::of("one", &times())]),
            Chart::stack("s", "r", Axis::linear("%"), vec!["p".into()], vec![("bar".into(), vec![3.0])]),
            Chart::plane("none", "r", Axis::linear("x"), Axis::linear("y"), Vec::new()),
        ];
        for chart in &charts {
            let svg = chart.svg();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
            assert!(!svg.contains("<script") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches('<').count(), svg.matches('>').count());
        }
        assert_eq!(charts.each_ref().map(Chart::is_empty), [false, false, false, true]);
        assert!(charts[0].svg().contains("&lt;x&gt;"));
        assert_eq!(charts[0].legend().len(), 3);
    }
}
