//! The noise of measurements: repetitions of a load differ, and no model can predict that.

use super::Observation;
use crate::statistics::median;

/// Relative differences between repetitions of a load, as medians over the loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Difference between one more measurement of a load and the median of the earlier ones.
    pub again: f64,
    /// The noise floor: the error of a perfect model against the median over the repetitions.
    pub floor: f64,
}

impl Noise {
    /// From the CPU of the repetitions of each load; `None` if no load was repeated.
    #[must_use]
    pub fn of(loads: &[Vec<Observation>]) -> Option<Self> {
        let cpu = |load: &Vec<Observation>| load.iter().map(|one| one.cpu_percent).collect();
        Self::of_values(&loads.iter().map(cpu).collect::<Vec<_>>())
    }

    /// From any figure of the repetitions of each load; `None` if no load was repeated.
    #[must_use]
    pub fn of_values(loads: &[Vec<f64>]) -> Option<Self> {
        let (mut again, mut halves) = (Vec::new(), Vec::new());
        for values in loads {
            again.extend((0..values.len()).filter_map(|out| apart(values, |at| at == out)));
            // Both halves are spread over the whole time, so that a slow drift of the machine affects both.
            let half = values.len() / 2;
            let splits = (0..values.len())
                .filter_map(|turn| apart(values, |at| (at * half.max(1) + turn) % values.len() < half));
            halves.extend(splits);
        }
        // The medians of two halves differ by twice the error of the overall median: each half has twice the variance,
        // and both contribute.
        Some(Self { again: median(&again)?, floor: median(&halves)? / 2.0 })
    }
}

/// Relative distance between the medians of two parts; `None` if a part is empty.
fn apart(values: &[f64], is_first: impl Fn(usize) -> bool) -> Option<f64> {
    let part = |wanted: bool| {
        let those = values.iter().enumerate().filter(|(at, _)| is_first(*at) == wanted);
        median(&those.map(|(_, value)| *value).collect::<Vec<_>>())
    };
    let ratio = part(true)? / part(false)?;
    (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln().abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(cpu: &[f64]) -> Vec<Observation> {
        let one = Observation::planned(100.0, 1.0, 100.0, false);
        cpu.iter().map(|cpu| Observation { cpu_percent: *cpu, ..one }).collect()
    }

    #[test]
    fn one_measurement_has_no_noise_estimate() {
        assert_eq!(Noise::of(&[load(&[3.0]), load(&[])]), None);
        let noise = Noise::of(&[load(&[3.0]), load(&[2.0, 2.0, 2.0])]).unwrap();
        assert_eq!((noise.again, noise.floor), (0.0, 0.0));
    }

    #[test]
    fn repetitions_lower_only_the_noise_floor() {
        // Log-normal, e^(σ·z) with normal z: σ = 20 %.
        let mut random = 7u64;
        let mut uniform = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let mut of = |repetitions: usize| {
            let cpu = |_| -> Vec<f64> { (0..repetitions).map(|_| (0.2 * normal()).exp()).collect() };
            let loads: Vec<_> = (0..400).map(cpu).collect();
            let off = |cpu: &Vec<f64>| median(cpu).unwrap().ln().abs();
            let known = median(&loads.iter().map(off).collect::<Vec<_>>()).unwrap();
            let noise = Noise::of(&loads.iter().map(|cpu| load(cpu)).collect::<Vec<_>>()).unwrap();
            (noise, known)
        };
        for repetitions in [2, 3, 4, 9, 16] {
            let (noise, known) = of(repetitions);
            // The apparent error of a model that knows that each load costs 1.
            assert!((noise.floor / known - 1.0).abs() < 0.25, "{repetitions}: {noise:?} {known}");
            assert!((0.13..0.21).contains(&noise.again), "{repetitions}: {noise:?}");
        }
    }
}
