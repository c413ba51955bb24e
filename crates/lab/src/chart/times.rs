//! Charts of times: distribution, density, percentiles.

use super::{Axis, Chart, Content, Mark, Point, Scale, Series, svg};
use crate::latency::Times;

impl Chart {
    /// Empirical distribution functions: the share of samples up to each time.
    #[must_use]
    pub fn distribution(title: &str, times: &[(String, Times)]) -> Self {
        let (divisor, unit) = unit(times);
        let series = times.iter().enumerate().filter(|(_, (_, times))| times.count() > 0);
        let series = series.map(|(colour, (name, times))| {
            let total = times.count() as f64;
            let mut seen = 0;
            let points = times.values().map(|(value, count)| {
                seen += count;
                Point::new(value as f64 / divisor, seen as f64 / total * 100.0)
            });
            Series { name: name.clone(), mark: Mark::Steps(thin(points.collect())), colour }
        });
        Self::plane(
            title,
            "Each curve shows the share of samples that took at most the time below it. Further left is faster; \
             steeper is more regular.",
            Axis::log(&format!("time, {unit}")),
            Axis::linear("share of the samples, %"),
            series.collect(),
        )
    }

    /// Empirical densities, as printed in the papers. All curves share the same bins. Bins and axis are logarithmic if
    /// a curve extends much further right than the median of the fastest one.
    #[must_use]
    pub fn density(title: &str, times: &[(String, Times)]) -> Self {
        const FAR_APART: f64 = 20.0;
        const CLASSES: usize = 80;
        let (divisor, unit) = unit(times);
        let seen: Vec<(usize, &(String, Times))> =
            times.iter().enumerate().filter(|(_, (_, times))| times.count() > 0).collect();
        let of = |percent: f64| seen.iter().map(move |(_, (_, times))| times.percentile(percent) as f64);
        let least = of(50.0).filter(|time| *time > 0.0).fold(f64::MAX, f64::min);
        // Beyond the 99th percentile, densities are too small to see.
        let (first, last) = (of(0.0).fold(f64::MAX, f64::min), of(99.0).fold(0.0, f64::max));
        let is_log = last > least * FAR_APART;
        let scaled = |value: f64| if is_log { value.max(1.0).ln() } else { value };
        let (low, high) = (scaled(first), scaled(last));
        let width = ((high - low) / CLASSES as f64).max(if is_log { 1e-3 } else { 1.0 });
        let series = seen.iter().map(|(colour, (name, times))| {
            let mut counts = vec![0u64; CLASSES];
            for (value, count) in times.values() {
                let place = scaled(value as f64);
                let class = ((place - low) / width).max(0.0) as usize;
                // The last bin includes its upper edge.
                let class = if place <= high { class.min(CLASSES - 1) } else { class };
                if let Some(cell) = counts.get_mut(class) {
                    *cell += count;
                }
            }
            let total = times.count() as f64;
            let shares: Vec<f64> = counts.iter().map(|count| *count as f64 / total * 100.0).collect();
            let smooth = smoothed(&shares, times.count());
            // Draws only bins with samples and one neighbour on each side.
            let used = |share: &f64| *share > 0.01;
            let begin = smooth.iter().position(used).unwrap_or(0).saturating_sub(1);
            let end = smooth.iter().rposition(used).map_or(0, |at| at + 2);
            let points = smooth.iter().enumerate().take(end).skip(begin).map(|(class, share)| {
                let middle = low + (class as f64 + 0.5) * width;
                let time = if is_log { middle.exp() } else { middle };
                Point::new(time / divisor, *share)
            });
            Series { name: name.clone(), mark: Mark::Line(points.collect()), colour: *colour }
        });
        let axis = if is_log { Axis::log } else { Axis::linear };
        Self::plane(
            title,
            &format!(
                "Estimated density of each time (Gaussian kernel over {CLASSES} bins shared by all curves, up to the \
                 99th percentile). A narrow peak means regular times."
            ),
            axis(&format!("time, {unit}")),
            Axis::linear("share of the samples in a bin, %"),
            series.collect(),
        )
    }

    /// Adds published times as vertical lines to a chart of times. Each has a name and nanoseconds. If they are far
    /// from the measured times, the axis becomes logarithmic.
    #[must_use]
    pub fn with_published(mut self, published: &[(String, f64)]) -> Self {
        const FAR: f64 = 3.0;
        let Content::Plane { x, series, .. } = &mut self.content else { return self };
        if series.is_empty() {
            return self;
        }
        let divisor = if x.label.ends_with("ms") { 1e6 } else { 1e3 };
        let most = series.iter().flat_map(|one| one.mark.points()).map(|point| point.x).fold(0.0, f64::max);
        for (name, nanos) in published {
            if nanos / divisor > most * FAR {
                x.scale = Scale::Log;
            }
            let mark = Mark::Vertical(nanos / divisor);
            series.push(Series { name: format!("published: {name}"), mark, colour: svg::STYLES - 1 });
        }
        self
    }

    /// Percentiles on a scale on which each additional nine has the same length.
    #[must_use]
    pub fn percentiles(title: &str, times: &[(String, Times)]) -> Self {
        let (divisor, unit) = unit(times);
        let series = times.iter().enumerate().filter(|(_, (_, times))| times.count() > 0);
        let series = series.map(|(colour, (name, times))| {
            // 1 / (1 − q): 1 is the minimum, 10 the 90th percentile, 1 000 the 99.9th.
            let last = (times.count() as f64).log10();
            let steps = (last * 12.0).ceil().max(1.0) as usize;
            let points = (0..=steps).map(|step| {
                let rarity = 10f64.powf(last * step as f64 / steps as f64);
                let percent = 100.0 * (1.0 - 1.0 / rarity);
                // At the last step, one sample in `count` is the maximum.
                let time = if step == steps { times.max() } else { times.percentile(percent) };
                Point::new(rarity, time as f64 / divisor)
            });
            Series { name: name.clone(), mark: Mark::Line(points.collect()), colour }
        });
        Self::plane(
            title,
            "One sample in N (horizontal) took at least the time shown (vertical): N = 100 is the 99th percentile, N = \
             1 000 the 99.9th. The last point is the maximum. A flat curve has no tail.",
            Axis::log("one in N samples"),
            Axis::log(&format!("time, {unit}")),
            series.collect(),
        )
    }
}

/// Density from the shares of bins, by a Gaussian kernel with Silverman's bandwidth. The sum is preserved at the ends.
fn smoothed(shares: &[f64], samples: u64) -> Vec<f64> {
    let total: f64 = shares.iter().sum();
    let at = |wanted: f64| {
        let mut sum = 0.0;
        shares.iter().position(|share| {
            sum += share;
            sum >= wanted * total
        })
    };
    let mean = shares.iter().enumerate().map(|(at, share)| at as f64 * share).sum::<f64>() / total.max(1e-9);
    let variance =
        shares.iter().enumerate().map(|(at, share)| (at as f64 - mean).powi(2) * share).sum::<f64>();
    let quartiles = at(0.75).zip(at(0.25)).map_or(0.0, |(third, first)| (third - first) as f64 / 1.34);
    // Quartiles within one bin do not show the spread inside the bin.
    let spread = (variance / total.max(1e-9)).sqrt().min(quartiles.max(0.3));
    let bandwidth = 0.9 * spread * (samples.max(1) as f64).powf(-0.2);
    if bandwidth < 0.2 {
        return shares.to_vec();
    }
    let mut smooth = vec![0.0; shares.len()];
    for (from, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let weight = |to: usize| (-0.5 * ((to as f64 - from as f64) / bandwidth).powi(2)).exp();
        let sum: f64 = (0..shares.len()).map(weight).sum();
        smooth.iter_mut().enumerate().for_each(|(to, value)| *value += share * weight(to) / sum);
    }
    smooth
}

/// Nanoseconds per unit, and the unit that suits most of the times.
fn unit(times: &[(String, Times)]) -> (f64, &'static str) {
    let largest = times.iter().map(|(_, times)| times.percentile(50.0)).max().unwrap_or(0);
    if largest >= 10_000_000 { (1e6, "ms") } else { (1e3, "µs") }
}

/// Thins to at most 400 points, which is more than a screen resolves. First and last point stay.
fn thin(points: Vec<Point>) -> Vec<Point> {
    const MOST: usize = 400;
    if points.len() <= MOST {
        return points;
    }
    let step = (points.len() - 1) as f64 / (MOST - 1) as f64;
    (0..MOST).filter_map(|at| points.get((at as f64 * step).round() as usize).copied()).collect()
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
    fn distributions_end_at_a_hundred_percent() {
        let chart = Chart::distribution("t", &[("a".into(), times()), ("empty".into(), Times::new())]);
        let Content::Plane { series, .. } = &chart.content else { panic!() };
        assert_eq!(series.len(), 1);
        let Mark::Steps(points) = &series[0].mark else { panic!() };
        assert!(points.len() <= 400);
        assert_eq!(points.last().unwrap().y, 100.0);
        assert!(points.windows(2).all(|pair| pair[0].x <= pair[1].x && pair[0].y <= pair[1].y));
    }

    #[test]
    fn percentiles_rise_and_a_density_sums_up() {
        let Content::Plane { series, .. } = Chart::percentiles("t", &[("a".into(), times())]).content else {
            panic!()
        };
        let Mark::Line(points) = &series[0].mark else { panic!() };
        assert!(points.windows(2).all(|pair| pair[0].y <= pair[1].y));
        let Content::Plane { series, .. } = Chart::density("t", &[("a".into(), times())]).content else {
            panic!()
        };
        let Mark::Line(points) = &series[0].mark else { panic!() };
        let sum: f64 = points.iter().map(|point| point.y).sum();
        assert!((97.0..=100.1).contains(&sum), "{sum}");
    }

    #[test]
    fn the_maximum_is_shown() {
        let line = |chart: Chart| -> Vec<Point> {
            let Content::Plane { mut series, .. } = chart.content else { panic!() };
            let Mark::Line(points) = series.remove(0).mark else { panic!() };
            points
        };
        let mut few = Times::new();
        (1..=10u64).for_each(|value| few.record(value * 30_000_000));
        let sum: f64 = line(Chart::density("t", &[("a".into(), few)])).iter().map(|point| point.y).sum();
        assert!((sum - 100.0).abs() < 0.5, "{sum}");
        // One slow sample in ten thousand must be visible in the tail.
        let mut tail = Times::new();
        (0..9_999).for_each(|_| tail.record(100_000));
        tail.record(3_000_000_000);
        let points = line(Chart::percentiles("t", &[("a".into(), tail)]));
        let last = points.last().unwrap();
        assert!((last.x - 10_000.0).abs() < 1e-6 && last.y > 2_900_000.0, "{last:?}");
        assert!(points[points.len() - 2].y < 200.0);
    }

    #[test]
    fn distant_densities_share_a_logarithmic_axis() {
        let slow = {
            let mut slow = Times::new();
            (1..=10_000u64).for_each(|value| slow.record(value * 50_000));
            slow
        };
        let axis = |all: &[(String, Times)]| match Chart::density("t", all).content {
            Content::Plane { x, series, .. } => (x.scale, series),
            _ => panic!(),
        };
        assert_eq!(axis(&[("a".into(), times())]).0, Scale::Linear);
        let (scale, series) = axis(&[("a".into(), times()), ("b".into(), slow)]);
        assert_eq!(scale, Scale::Log);
        for one in series {
            let Mark::Line(points) = one.mark else { panic!() };
            let sum: f64 = points.iter().map(|point| point.y).sum();
            assert!((97.0..=100.1).contains(&sum), "{sum}");
        }
    }

    #[test]
    fn few_samples_give_a_smooth_curve() {
        let mut few = Times::new();
        (0..10u64).for_each(|at| few.record(1_000_000 + at * 90_000));
        let Content::Plane { series, .. } = Chart::density("t", &[("a".into(), few)]).content else {
            panic!()
        };
        let points = series[0].mark.points();
        let peaks = points.windows(3).filter(|at| at[1].y > at[0].y && at[1].y >= at[2].y).count();
        assert!(peaks <= 2, "{peaks}");
    }

    #[test]
    fn densities_share_their_classes() {
        let narrow = {
            let mut narrow = Times::new();
            (0..10_000u64).for_each(|value| narrow.record(5_000_000 + value * 10));
            narrow
        };
        let all = [("wide".to_owned(), times()), ("narrow".to_owned(), narrow)];
        let Content::Plane { series, .. } = Chart::density("t", &all).content else { panic!() };
        let most = |at: usize| series[at].mark.points().iter().map(|point| point.y).fold(0.0, f64::max);
        // 10 ms and 0.1 ms: with separate bins, the narrow distribution would look as wide as the other.
        assert!(most(0) < 3.0 && most(1) > 40.0, "{} {}", most(0), most(1));
        let step = |at: usize| series[at].mark.points()[1].x - series[at].mark.points()[0].x;
        assert!((step(0) - step(1)).abs() < 1e-6);
    }

    #[test]
    fn distant_published_times_make_the_axis_logarithmic() {
        let chart =
            |us: f64| Chart::density("t", &[("a".into(), times())]).with_published(&[("b".into(), us * 1e3)]);
        let axis = |chart: &Chart| match &chart.content {
            Content::Plane { x, .. } => x.scale,
            _ => panic!(),
        };
        assert_eq!((axis(&chart(9_000.0)), axis(&chart(90_000.0))), (Scale::Linear, Scale::Log));
        let chart = chart(9_000.0);
        assert_eq!(chart.legend().len(), 1);
        assert!(chart.svg().contains(">published: b</text>"), "{}", chart.svg());
        assert!(Chart::density("t", &[]).with_published(&[("b".into(), 1.0)]).is_empty());
    }
}
