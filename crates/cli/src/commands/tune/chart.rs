//! The Pareto front as a chart.

use taktwerk_lab::chart::{Axis, Chart, Mark, Point, Series};
use taktwerk_model::tune::{Figures, Metric, Problem, Tuned};

/// A figure converted to the unit of its axis.
fn scaled(metric: Metric, value: f64) -> f64 {
    match metric {
        Metric::Utilisation | Metric::TotalUtilisation | Metric::Loss => value * 100.0,
        Metric::BandwidthBitsS => value / 1e6,
        _ => value,
    }
}

fn axis(metric: Metric) -> Axis {
    let unit = match metric {
        Metric::DelayMeanMs | Metric::DelayP99Ms | Metric::DelayMaxMs => "ms",
        Metric::BandwidthBitsS => "Mbit/s",
        Metric::EnergyW => "W",
        _ => "%",
    };
    Axis::linear(&format!("{}, {unit}", metric.words()))
}

/// The Pareto front for the first two minimized figures, with all other points.
pub(super) fn front(problem: &Problem, tuned: &Tuned) -> Chart {
    let (x, y) = match problem.minimize[..] {
        [x, y, ..] => (x, y),
        [x] => (x, Metric::BandwidthBitsS),
        [] => (Metric::DelayMeanMs, Metric::BandwidthBitsS),
    };
    let place = |figures: &Figures| {
        x.of(figures).zip(y.of(figures)).map(|(a, b)| Point::new(scaled(x, a), scaled(y, b)))
    };
    let points = |wanted: bool| -> Vec<Point> {
        let those = tuned.points.iter().filter(|point| point.on_front == wanted);
        those.filter_map(|point| place(&point.figures)).collect()
    };
    let mut on_front = points(true);
    on_front.sort_by(|a, b| a.x.total_cmp(&b.x));
    let chosen: Vec<Point> = place(&tuned.recommended.figures).into_iter().collect();
    let series = [
        ("not on the front".to_owned(), Mark::Dots(points(false)), 7),
        ("Pareto front".to_owned(), Mark::Line(on_front.clone()), 0),
        (
            format!(
                "recommended: {} ms",
                taktwerk_model::figures::number(tuned.recommended.settings.publishing_ms)
            ),
            Mark::Dots(chosen),
            1,
        ),
    ];
    let series = series.into_iter().filter(|(_, mark, _)| !mark.points().is_empty());
    Chart::plane(
        &problem.name,
        "Each point is a choice of settings. Left is faster, lower costs less. Points on the line are not dominated by any \
         other point.",
        axis(x),
        axis(y),
        series.map(|(name, mark, colour)| Series { name, mark, colour }).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_model::tune::analytic::Analytic;
    use taktwerk_model::tune::problem::Options;

    #[test]
    fn the_chart_has_the_front_and_the_recommended_point() {
        let text = "link = \"ppp-2m\"\n[[signals]]\ncount = 10\nperiod_ms = 10\n";
        let problem = Problem::parse(text, "x", &Options::default()).unwrap();
        let formulas = Analytic::new(&problem, None);
        let tuned = taktwerk_model::tune::tune(&problem, &formulas, &formulas, &mut |_| true).unwrap();
        let chart = front(&problem, &tuned);
        let svg = chart.file();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("<style>"));
        assert!(svg.contains("recommended: ") && svg.contains("link utilisation, %"), "{svg}");
    }
}
