//! Tests a model's predictions for unseen loads, and judges the result.

use super::{Fit, Model, Noise, Observation, median_abs, middle, shuffled};
use crate::statistics::{bootstrap_ci95, within};
use std::collections::BTreeMap;

/// Maximum acceptable relative error of a prediction.
pub const ALLOWED: f64 = 0.1;

/// Minimum number of loads for an interval of their median: six loads are all on one side of the true median in 3 % of
/// cases.
const FEWEST: usize = 6;

/// A split of the loads into those for fitting and those to predict.
#[derive(Debug, Clone)]
pub struct Split {
    /// All measurements of the loads for fitting.
    pub train: Vec<Observation>,
    /// Indices of the held-out loads among all loads.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Selects loads for fitting and loads to predict. Loads that are neither are ignored.
    #[must_use]
    pub fn new(
        loads: &[Vec<Observation>],
        is_train: impl Fn(&Observation) -> bool,
        is_held_out: impl Fn(&Observation) -> bool,
    ) -> Self {
        let train = loads.iter().flatten().copied().filter(|one| is_train(one)).collect();
        let test = |load: &Vec<Observation>| load.first().is_some_and(&is_held_out);
        let held_out = loads.iter().enumerate().filter(|(_, load)| test(load)).map(|(at, _)| at).collect();
        Self { train, held_out }
    }

    /// Random fifths of the loads, each predicted from the other four: every load is held out once.
    #[must_use]
    pub fn fifths(loads: &[Vec<Observation>]) -> Vec<Self> {
        const FOLDS: usize = 5;
        let order = shuffled(loads.len(), 0);
        let fold = |fold: usize| {
            let mut split = Self { train: Vec::new(), held_out: Vec::new() };
            for (at, index) in order.iter().enumerate() {
                if at % FOLDS == fold {
                    split.held_out.push(*index);
                } else {
                    split.train.extend(loads.get(*index).into_iter().flatten());
                }
            }
            split
        };
        (0..FOLDS).map(fold).filter(|split| !split.held_out.is_empty()).collect()
    }

    /// The held-out loads, each as the median over its repetitions.
    #[must_use]
    pub fn test(&self, loads: &[Vec<Observation>]) -> Vec<Observation> {
        self.held_out.iter().filter_map(|at| middle(loads.get(*at)?)).collect()
    }
}

/// Result for loads that neither the fit nor the choice of its form used.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The chosen form; the most frequent one if there were several splits.
    pub form: String,
    /// Number of predicted loads.
    pub loads: usize,
    /// Median absolute error, relative to the median over the repetitions of each load.
    pub error: f64,
    /// 95 % interval of the model's own error (see [`own_error`]). `None` if there are too few loads or no repetitions.
    pub interval: Option<(f64, f64)>,
    /// The noise floor: the error of a perfect model, given how much repetitions differ. `None` without repetitions.
    pub floor: Option<f64>,
}

impl Trial {
    /// Fits a model to each split and predicts its held-out loads; `None` if there is too little data for a split.
    #[must_use]
    pub fn of(stack: &str, loads: &[Vec<Observation>], splits: &[Split]) -> Option<Self> {
        let mut forms = BTreeMap::<String, usize>::new();
        let mut errors = BTreeMap::<usize, f64>::new();
        for split in splits {
            let model = Model::new(stack, &split.train)?;
            *forms.entry(model.fit.form.to_string()).or_default() += 1;
            errors.extend(split.held_out.iter().copied().zip(model.fit.errors(&split.test(loads))));
        }
        let form = forms.into_iter().max_by_key(|(_, count)| *count).map(|(form, _)| form)?;
        let predicted: Vec<Vec<Observation>> =
            errors.keys().filter_map(|at| loads.get(*at).cloned()).collect();
        Self::judged(form, &errors.into_values().collect::<Vec<_>>(), &predicted)
    }

    /// The same for one split with a given fit; `None` if no load is held out.
    #[must_use]
    pub fn with(fit: &Fit, loads: &[Vec<Observation>], split: &Split) -> Option<Self> {
        let predicted: Vec<_> = split.held_out.iter().filter_map(|at| loads.get(*at).cloned()).collect();
        Self::judged(fit.form.to_string(), &fit.errors(&split.test(loads)), &predicted)
    }

    /// From the error of each load and the repetitions of these loads.
    fn judged(form: String, errors: &[f64], loads: &[Vec<Observation>]) -> Option<Self> {
        let floor = Noise::of(loads).map(|noise| noise.floor);
        Some(Self {
            form,
            loads: errors.len(),
            error: median_abs(errors)?,
            interval: floor.and_then(|floor| own_interval(errors, floor)),
            floor,
        })
    }

    /// Whether the error is within [`ALLOWED`]: true if the whole interval is, false if none of it is, otherwise
    /// undecided.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        within(self.interval?, ALLOWED)
    }
}

/// The 95 % interval of a model's own median error, from its relative errors for some loads. `floor` is the noise floor of
/// the measurements. `None` if there are too few loads.
#[must_use]
pub fn own_interval(errors: &[f64], floor: f64) -> Option<(f64, f64)> {
    let seen = (errors.len() >= FEWEST)
        .then(|| bootstrap_ci95(errors, &[0.0], |errors, _| median_abs(errors)))
        .flatten();
    seen.map(|seen| own_error(seen, floor))
}

/// The interval of the model's own error, from that of the observed error. Noise can only add to an error, so the upper
/// end stays. At the lower end, noise may explain up to its floor.
fn own_error((low, high): (f64, f64), floor: f64) -> (f64, f64) {
    ((low.powi(2) - floor.powi(2)).max(0.0).sqrt(), high)
}

#[cfg(test)]
mod tests {
    use super::super::loads;
    use super::super::tests_support::synthetic;
    use super::*;

    fn holds(interval: Option<(f64, f64)>) -> Option<bool> {
        Trial { form: String::new(), loads: 8, error: 0.1, interval, floor: None }.holds()
    }

    #[test]
    fn the_verdict_is_symmetric() {
        assert_eq!(holds(Some((0.02, 0.09))), Some(true));
        assert_eq!(holds(Some((0.11, 0.3))), Some(false));
        assert_eq!(holds(Some((0.02, 0.11))), None);
        assert_eq!(holds(Some((0.09, 0.3))), None);
        assert_eq!(holds(None), None);
    }

    #[test]
    fn noise_lowers_only_the_lower_end() {
        assert_eq!(own_error((0.05, 0.12), 0.05), (0.0, 0.12));
        assert_eq!(own_error((0.05, 0.12), 0.0), (0.05, 0.12));
        assert_eq!(own_error((0.05, 0.12), 0.08), (0.0, 0.12));
        let (low, _) = own_error((0.13, 0.2), 0.05);
        assert!((low - 0.12).abs() < 1e-9, "{low}");
    }

    #[test]
    fn few_loads_give_a_wider_interval() {
        // Half of the loads have an error of 5 %, the other half 25 %: the median depends on the chosen loads.
        let trial = |count: usize| {
            let errors: Vec<f64> = (0..count).map(|at| if at % 2 == 0 { 0.05 } else { -0.25 }).collect();
            let one = Observation { cpu_percent: 1.0, ..Observation::planned(100.0, 1.0, 100.0, false) };
            Trial::judged("x".into(), &errors, &vec![vec![one; 2]; count]).unwrap()
        };
        assert_eq!((trial(5).interval, trial(5).holds()), (None, None));
        let (low, high) = trial(8).interval.unwrap();
        assert!(low < 0.06 && high > 0.24, "{low} {high}");
    }

    #[test]
    fn held_out_loads_are_not_used_for_fitting() {
        let mut data = synthetic();
        // With 5 and 20 clients all costs double, which the other loads do not show.
        data.iter_mut()
            .filter(|one| [5.0, 20.0].contains(&one.clients))
            .for_each(|one| one.cpu_percent *= 2.0);
        let loads = loads(&data);
        let split = Split::new(&loads, |one| one.clients == 10.0, |one| [5.0, 20.0].contains(&one.clients));
        assert_eq!((split.train.len(), split.held_out.len()), (12, 8));
        let found = Trial::of("t", &loads, &[split]).unwrap();
        assert!((0.4..0.6).contains(&found.error) && found.holds() == Some(false), "{found:?}");
        assert!(found.floor.is_some_and(|floor| floor < 0.03), "{found:?}");
    }

    #[test]
    fn a_true_model_holds_and_too_little_data_is_none() {
        let loads = loads(&synthetic());
        let fifths = Split::fifths(&loads);
        assert!(fifths.iter().all(|one| one.held_out.len() == 4 && one.train.len() == 16 * 3), "{fifths:?}");
        let found = Trial::of("t", &loads, &fifths).unwrap();
        assert!(found.holds() == Some(true) && found.loads == 20 && found.error < 0.03, "{found:?}");
        let nothing = Split::new(&loads, |one| one.clients == 7.0, |_| true);
        assert_eq!(Trial::of("t", &loads, &[nothing]), None);
    }
}
