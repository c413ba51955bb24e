//! When a warm-up is over: not after a time that somebody guessed, but when the load looks the same for a while.

/// Publishing intervals that have to be alike before a load is steady. Servers go on adjusting for a while: this project's
/// watches its first six cycles and then may move once, away from the times at which values are written, so that one
/// message comes up to half an interval late. A window that contained it would seem to miss a message.
pub const INTERVALS: usize = 10;

/// Looks at one figure per slice of time and says when its last slices are alike.
#[derive(Debug, Clone)]
pub struct Steady {
    tolerance: f64,
    slices: usize,
    recent: Vec<f64>,
}

impl Steady {
    /// Steady is when `slices` figures in a row lie within `tolerance` (a share, 0.05 for 5 %) of their mean.
    #[must_use]
    pub fn new(slices: usize, tolerance: f64) -> Self {
        Self { tolerance, slices: slices.max(2), recent: Vec::new() }
    }

    /// Notes the next slice; returns whether the last ones are alike. Nothing at all is not steady.
    pub fn observe(&mut self, figure: f64) -> bool {
        if self.recent.len() == self.slices {
            self.recent.remove(0);
        }
        self.recent.push(figure);
        let mean = self.recent.iter().sum::<f64>() / self.recent.len() as f64;
        self.recent.len() == self.slices
            && mean > 0.0
            && self.recent.iter().all(|value| (value - mean).abs() <= mean * self.tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_not_steady_and_a_plateau_is() {
        let mut steady = Steady::new(3, 0.05);
        let figures = [10.0, 50.0, 90.0, 100.0, 101.0, 99.0];
        let answers: Vec<bool> = figures.iter().map(|figure| steady.observe(*figure)).collect();
        assert_eq!(answers, [false, false, false, false, false, true]);
    }

    #[test]
    fn silence_is_never_steady() {
        let mut steady = Steady::new(3, 0.5);
        assert!((0..10).all(|_| !steady.observe(0.0)));
    }
}
