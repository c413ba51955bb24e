//! Medians, spread and confidence intervals of repeated measurements.

use serde::Serialize;

/// The quantile `q` (0 to 1) of the values, by linear interpolation; `None` without values.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = *sorted.get(position.floor() as usize)?;
    let above = *sorted.get(position.ceil() as usize)?;
    Some(below + (above - below) * position.fract())
}

/// The median; `None` without values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The mean; `None` without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample standard deviation; `None` with fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let count = values.len().checked_sub(1).filter(|count| *count > 0)?;
    Some((values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / count as f64).sqrt())
}

/// Repetitions of one measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repeated {
    /// All repetitions, in the order they were made.
    pub values: Vec<f64>,
    /// Their median, the reported figure.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// 95 % confidence interval of the mean, if there are at least two values.
    pub mean_ci95: Option<(f64, f64)>,
}

impl Repeated {
    /// From the repetitions; `None` if there are none.
    #[must_use]
    pub fn new(values: Vec<f64>) -> Option<Self> {
        Some(Self {
            median: median(&values)?,
            min: quantile(&values, 0.0)?,
            max: quantile(&values, 1.0)?,
            mean_ci95: mean_ci95(&values),
            values,
        })
    }
}

/// Student's 95 % confidence interval of the mean; `None` with fewer than two values.
#[must_use]
pub fn mean_ci95(values: &[f64]) -> Option<(f64, f64)> {
    let (centre, deviation) = (mean(values)?, deviation(values)?);
    let half = student_t95((values.len() - 1) as f64) * deviation / (values.len() as f64).sqrt();
    Some((centre - half, centre + half))
}

/// The same from mean and standard deviation of `count` samples.
#[must_use]
pub fn summary_ci95(mean: f64, deviation: f64, count: u64) -> Option<(f64, f64)> {
    let degrees = count.checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    let half = student_t95(degrees) * deviation / (count as f64).sqrt();
    Some((mean - half, mean + half))
}

/// Wilson's 95 % confidence interval of a share, from `count` of `all`; `None` if `all` is zero.
#[must_use]
pub fn share_ci95(count: usize, all: usize) -> Option<(f64, f64)> {
    const Z2: f64 = 1.959_96 * 1.959_96;
    let all = Some(all).filter(|all| *all > 0)? as f64;
    let share = count as f64 / all;
    let centre = (share + Z2 / (2.0 * all)) / (1.0 + Z2 / all);
    let half = (Z2 * (share * (1.0 - share) / all + Z2 / (4.0 * all * all))).sqrt() / (1.0 + Z2 / all);
    Some((centre - half, centre + half))
}

/// Welch's 95 % confidence interval of the difference of two means with different variances; `None` if a series has
/// fewer than two values.
#[must_use]
pub fn difference_ci95(one: &[f64], two: &[f64]) -> Option<(f64, f64)> {
    let difference = mean(one)? - mean(two)?;
    let of = |values: &[f64]| Some(deviation(values)?.powi(2) / values.len() as f64);
    let (first, second) = (of(one)?, of(two)?);
    let share = |variance: f64, values: &[f64]| variance.powi(2) / (values.len() - 1) as f64;
    let degrees = (first + second).powi(2) / (share(first, one) + share(second, two));
    // Constant values have no uncertainty and no degrees of freedom.
    let half = if degrees.is_finite() { student_t95(degrees) * (first + second).sqrt() } else { 0.0 };
    Some((difference - half, difference + half))
}

/// The same for the ratio of two geometric means: Welch's interval of their logarithms. Also `None` if a value is not
/// positive.
#[must_use]
pub fn ratio_ci95(one: &[f64], two: &[f64]) -> Option<(f64, f64)> {
    let logarithms = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|value| (*value > 0.0 && value.is_finite()).then(|| value.ln())).collect()
    };
    let (low, high) = difference_ci95(&logarithms(one)?, &logarithms(two)?)?;
    Some((low.exp(), high.exp()))
}

/// The two-sided 95 % point of Student's t distribution. Welch's degrees of freedom are fractional; between table
/// entries, the logarithm of t is nearly linear in their inverse.
fn student_t95(degrees: f64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    let degrees = degrees.max(1.0);
    let whole = degrees.floor();
    // Beyond the table, the error of this approximation is below 0.002.
    let at = |degrees: f64| TABLE.get(degrees as usize - 1).copied().unwrap_or(1.959_96 + 2.372 / degrees);
    let (below, above) = (at(whole).ln(), at(whole + 1.0).ln());
    let part = (1.0 / whole - 1.0 / degrees) / (1.0 / whole - 1.0 / (whole + 1.0));
    (below + (above - below) * part).exp()
}

/// The verdict on a limit, by the same rule for all claims. True if the upper end of the interval is within the limit,
/// false if the lower end is beyond it, otherwise undecided (`None`).
#[must_use]
pub fn within((low, high): (f64, f64), limit: f64) -> Option<bool> {
    match (high <= limit, low > limit) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// A 95 % percentile-bootstrap interval of `statistic` over two independent series: for example the ratio of two
/// medians. The generator is seeded, so the same data give the same interval. `None` without values.
pub fn bootstrap_ci95(
    one: &[f64],
    two: &[f64],
    statistic: impl Fn(&[f64], &[f64]) -> Option<f64>,
) -> Option<(f64, f64)> {
    const RESAMPLES: usize = 2_000;
    if one.is_empty() || two.is_empty() {
        return None;
    }
    let mut random = SplitMix(0x7461_6b74);
    let mut results = Vec::with_capacity(RESAMPLES);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        random.resample(one, &mut left);
        random.resample(two, &mut right);
        results.extend(statistic(&left, &right));
    }
    Some((quantile(&results, 0.025)?, quantile(&results, 0.975)?))
}

/// Minimum number of values on each side for resampling. With fewer, the most extreme resamples are the extremes
/// themselves: the interval would be `min/max` to `max/min`. With two values on each side, it would miss 1 in a third
/// of all cases without a difference.
const RESAMPLED: usize = 4;

/// The ratio of the medians of two series with a 95 % interval: by bootstrap from four values on each side on,
/// otherwise [`ratio_ci95`]. If nothing is known, as for a single value, the interval is 0 to infinity.
#[must_use]
pub fn median_ratio(one: &[f64], two: &[f64]) -> Option<(f64, (f64, f64))> {
    let ratio = |one: &[f64], two: &[f64]| Some(median(one)? / median(two).filter(|value| *value != 0.0)?);
    let interval = if one.len().min(two.len()) < RESAMPLED {
        ratio_ci95(one, two)
    } else {
        bootstrap_ci95(one, two, ratio)
    };
    Some((ratio(one, two)?, interval.unwrap_or((0.0, f64::INFINITY))))
}

/// A least-squares line `y = intercept + slope · x`; `None` with fewer than two different x.
#[must_use]
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let spread: f64 = points.iter().map(|point| (point.0 - mean_x).powi(2)).sum();
    if spread <= 0.0 || spread.is_nan() {
        return None;
    }
    let slope = points.iter().map(|point| (point.0 - mean_x) * (point.1 - mean_y)).sum::<f64>() / spread;
    Some((mean_y - slope * mean_x, slope))
}

/// A small deterministic generator, for resampling only.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn resample(&mut self, from: &[f64], to: &mut Vec<f64>) {
        to.clear();
        for _ in 0..from.len() {
            let index = (self.next() % from.len() as u64) as usize;
            to.extend(from.get(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(median(&[1.0, f64::NAN, 2.0, 3.0]), Some(2.0));
    }

    #[test]
    fn student_interval() {
        let (low, high) = mean_ci95(&[10.0, 12.0, 11.0, 13.0, 9.0]).unwrap();
        // s = 1.5811, t(4) = 2.776: 11 ± 1.963
        assert!((low - 9.037).abs() < 0.001 && (high - 12.963).abs() < 0.001, "{low} {high}");
        assert_eq!(mean_ci95(&[1.0]), None);
        assert!((student_t95(40.0) - 2.021).abs() < 0.003);
        assert_eq!((student_t95(1.0), student_t95(2.0), student_t95(0.0)), (12.706, 4.303, 12.706));
        // From tables with fractions: 6.1 for 1.5, 3.6 for 2.5.
        assert!((5.9..6.4).contains(&student_t95(1.5)), "{}", student_t95(1.5));
        assert!((3.5..3.7).contains(&student_t95(2.5)), "{}", student_t95(2.5));
    }

    #[test]
    fn shares_and_summaries_have_an_interval() {
        // Newcombe 1998, Table I: 81 of 263 is 0.2553 to 0.3662.
        let (low, high) = share_ci95(81, 263).unwrap();
        assert!((low - 0.2553).abs() < 1e-4 && (high - 0.3662).abs() < 1e-4, "{low} {high}");
        assert_eq!((share_ci95(0, 0), share_ci95(0, 10).map(|(low, _)| low < 1e-12)), (None, Some(true)));
        assert_eq!(summary_ci95(1.0, 1.0, 1), None);
        let (low, high) = summary_ci95(11.0, 1.5811, 5).unwrap();
        assert!((low - 9.037).abs() < 0.001 && (high - 12.963).abs() < 0.001, "{low} {high}");
        assert_eq!(
            [within((0.0, 1.0), 1.0), within((1.1, 2.0), 1.0), within((0.9, 2.0), 1.0)],
            [Some(true), Some(false), None]
        );
    }

    #[test]
    fn few_values_have_an_interval_of_logarithms() {
        // Differences of 1 with s² of 0.5 on both sides: ±4.303 · √0.5.
        let (low, high) = difference_ci95(&[10.0, 11.0], &[9.0, 10.0]).unwrap();
        assert!((low + 2.043).abs() < 0.001 && (high - 4.043).abs() < 0.001, "{low} {high}");
        assert_eq!(difference_ci95(&[3.0, 3.0], &[1.0, 1.0]), Some((2.0, 2.0)));
        assert_eq!(difference_ci95(&[3.0], &[1.0, 1.0]), None);
        let (low, high) = ratio_ci95(&[2.0, 2.02, 1.98], &[1.0, 1.01, 0.99]).unwrap();
        assert!(low > 1.95 && high < 2.05 && (low * high - 4.0).abs() < 1e-3, "{low} {high}");
        assert_eq!(ratio_ci95(&[0.0, 1.0], &[1.0, 1.0]), None);
        let (ratio, interval) = median_ratio(&[0.0, 1.0, 2.0], &[1.0, 1.0]).unwrap();
        assert_eq!((ratio, interval), (1.0, (0.0, f64::INFINITY)));
        assert_eq!(median_ratio(&[2.0], &[1.0, 1.0]).unwrap().1, (0.0, f64::INFINITY));
    }

    /// Share of pairs of series without a difference for which the interval shows one.
    fn false_verdicts(count: usize, spread: f64) -> f64 {
        // Each pair is resampled two thousand times.
        let pairs = if count < RESAMPLED { 4_000 } else { 500 };
        let mut random = SplitMix(count as u64);
        // The sum of twelve uniform numbers is nearly normal.
        let mut value = || {
            let sum: f64 = (0..12).map(|_| (random.next() >> 11) as f64 / (1u64 << 53) as f64).sum();
            100.0 * ((sum - 6.0) * spread).exp()
        };
        let mut series = || (0..count).map(|_| value()).collect::<Vec<f64>>();
        let wrong = (0..pairs).filter(|_| {
            let (_, (low, high)) = median_ratio(&series(), &series()).unwrap();
            low > 1.0 || high < 1.0
        });
        wrong.count() as f64 / f64::from(pairs)
    }

    #[test]
    fn false_positives_occur_in_five_percent_of_cases() {
        for count in [2, 3, 5] {
            for spread in [0.02, 0.2] {
                let share = false_verdicts(count, spread);
                assert!((0.015..0.075).contains(&share), "{count} values that vary by {spread}: {share}");
            }
        }
    }

    #[test]
    fn ratio_of_medians_has_an_interval_around_it() {
        let one = [10.0, 11.0, 9.0, 10.5, 9.5];
        let two = [2.0, 2.1, 1.9, 2.05, 1.95];
        let (ratio, (low, high)) = median_ratio(&one, &two).unwrap();
        assert!((ratio - 5.0).abs() < 1e-9 && low < 5.0 && high > 5.0 && high - low < 2.0);
        assert_eq!(median_ratio(&one, &two), median_ratio(&one, &two));
        assert_eq!(median_ratio(&one, &[]), None);
    }

    #[test]
    fn fits_a_line() {
        let (intercept, slope) = line(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).unwrap();
        assert!((intercept - 1.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
        assert_eq!(line(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }
}
