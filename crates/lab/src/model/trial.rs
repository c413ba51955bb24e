//! How far a model is off on loads that it has not seen, and how sure that is.

use super::{Model, Noise, Observation, median_abs, middle, shuffled};
use crate::statistics::bootstrap_ci95;
use std::collections::BTreeMap;

/// What a prediction may be wrong by, as a share of what was measured.
pub const ALLOWED: f64 = 0.1;

/// Loads from which resampling tells what others would have said.
const RESAMPLED: usize = 4;

/// What a model is fitted to, and which loads it is tried on.
#[derive(Debug, Clone)]
pub struct Split {
    /// All measurements of the loads that may be seen.
    pub train: Vec<Observation>,
    /// Places of the others among all loads.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Loads that are for fitting, loads that are for trying; what is neither is left out.
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

    /// Random thirds of the loads, each with the rest. One third is a handful of loads, whose median error says as much about the
    /// deal as about the model.
    #[must_use]
    pub fn thirds(loads: &[Vec<Observation>]) -> Vec<Self> {
        const DEALS: u64 = 8;
        let deal = |deal: u64| {
            let mut split = Self { train: Vec::new(), held_out: Vec::new() };
            for (at, index) in shuffled(loads.len(), deal).into_iter().enumerate() {
                if at % 3 == 0 {
                    split.held_out.push(index);
                } else {
                    split.train.extend(loads.get(index).into_iter().flatten());
                }
            }
            split
        };
        (0..DEALS).map(deal).collect()
    }

    /// The loads that it is tried on, each as the median over its repetitions.
    #[must_use]
    pub fn test(&self, loads: &[Vec<Observation>]) -> Vec<Observation> {
        self.held_out.iter().filter_map(|at| middle(loads.get(*at)?)).collect()
    }
}

/// What came of predicting loads that the fit and the choice of its form have not seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The form that was chosen, most often if there were several splits.
    pub form: String,
    /// Median absolute error relative to the median over the repetitions of each load.
    pub error: f64,
    /// Where it lies at 95 %, by what other loads of this kind could have said (a bootstrap over the loads); `None` of less than four.
    pub interval: Option<(f64, f64)>,
    /// What it would be if the model knew what each of these loads costs; `None` if none was measured twice.
    pub floor: Option<f64>,
}

impl Trial {
    /// Tries a model of `stack` on each split in turn; `None` if there is too little data for one of them.
    #[must_use]
    pub fn of(stack: &str, loads: &[Vec<Observation>], splits: &[Split]) -> Option<Self> {
        let mut forms = BTreeMap::<String, usize>::new();
        // A load that is in several of the random thirds stays one load.
        let mut errors = BTreeMap::<usize, Vec<f64>>::new();
        for split in splits {
            let model = Model::new(stack, &split.train)?;
            *forms.entry(model.fit.form.to_string()).or_default() += 1;
            for (at, error) in split.held_out.iter().zip(model.fit.errors(&split.test(loads))) {
                errors.entry(*at).or_default().push(error);
            }
        }
        let known: Vec<Vec<Observation>> = errors.keys().filter_map(|at| loads.get(*at).cloned()).collect();
        let errors: Vec<Vec<f64>> = errors.into_values().collect();
        Some(Self {
            form: forms.into_iter().max_by_key(|(_, count)| *count).map(|(form, _)| form)?,
            error: median_abs(&errors.concat())?,
            interval: interval(&errors),
            floor: Noise::of(&known).map(|noise| noise.floor),
        })
    }

    /// Whether the model is good enough: yes if its error is at most [`ALLOWED`]; no if that is so of no error in the interval,
    /// without what the loads are off by themselves; otherwise nobody can tell.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        if self.error <= ALLOWED {
            return Some(true);
        }
        let own = (self.interval?.0.powi(2) - self.floor?.powi(2)).max(0.0).sqrt();
        (own > ALLOWED).then_some(false)
    }
}

/// By resampling the loads, each with all of its errors.
fn interval(errors: &[Vec<f64>]) -> Option<(f64, f64)> {
    if errors.len() < RESAMPLED {
        return None;
    }
    let places: Vec<f64> = (0..errors.len()).map(|at| at as f64).collect();
    let of = |places: &[f64], _: &[f64]| {
        let those = places.iter().filter_map(|at| errors.get(*at as usize));
        median_abs(&those.flatten().copied().collect::<Vec<_>>())
    };
    bootstrap_ci95(&places, &[0.0], of)
}

#[cfg(test)]
mod tests {
    use super::super::loads;
    use super::super::tests_support::synthetic;
    use super::*;

    fn trial(error: f64, interval: Option<(f64, f64)>, floor: Option<f64>) -> Trial {
        Trial { form: String::new(), error, interval, floor }
    }

    #[test]
    fn an_error_that_the_noise_explains_is_open() {
        let sure = |error: f64, floor| trial(error, Some((error, error)), floor).holds();
        assert_eq!(sure(0.099, Some(0.0)), Some(true));
        assert_eq!(sure(0.12, Some(0.0)), Some(false));
        assert_eq!(sure(0.12, Some(0.08)), None);
        assert_eq!(sure(0.2, Some(0.08)), Some(false));
        assert_eq!(sure(0.05, Some(0.3)), Some(true));
        assert_eq!((sure(0.05, None), sure(0.2, None)), (Some(true), None));
    }

    #[test]
    fn an_error_that_other_loads_could_contradict_is_open() {
        assert_eq!(trial(0.15, Some((0.06, 0.3)), Some(0.0)).holds(), None);
        assert_eq!(trial(0.15, Some((0.11, 0.3)), Some(0.0)).holds(), Some(false));
        assert_eq!(trial(0.15, None, Some(0.0)).holds(), None);
        assert_eq!(trial(0.09, Some((0.06, 0.3)), Some(0.0)).holds(), Some(true));
    }

    #[test]
    fn a_few_loads_say_less_than_many() {
        // Half of them are off by 5 %, half of them by 25 %: what the middle is depends on which loads were chosen.
        let mixed = |count: usize| {
            (0..count).map(|at| vec![if at % 2 == 0 { 0.05 } else { -0.25 }]).collect::<Vec<_>>()
        };
        assert_eq!(interval(&mixed(3)), None);
        let (low, high) = interval(&mixed(8)).unwrap();
        assert!(low < 0.06 && high > 0.24, "{low} {high}");
        let alike = vec![vec![0.14], vec![-0.15], vec![0.16], vec![0.15, 0.15]];
        let (low, high) = interval(&alike).unwrap();
        assert!(low >= 0.14 && high <= 0.16, "{low} {high}");
    }

    #[test]
    fn a_load_in_several_thirds_stays_one_load() {
        let errors: Vec<Vec<f64>> = (1..=4).map(|at| vec![f64::from(at) / 10.0; 50]).collect();
        let (low, high) = interval(&errors).unwrap();
        // Four loads, not two hundred.
        assert!(low <= 0.15 && high >= 0.35, "{low} {high}");
    }

    #[test]
    fn what_is_held_out_is_not_seen() {
        let mut data = synthetic();
        // With 5 and 20 clients everything costs twice as much: whoever has not seen that is off by half.
        data.iter_mut()
            .filter(|one| [5.0, 20.0].contains(&one.clients))
            .for_each(|one| one.cpu_percent *= 2.0);
        let loads = loads(&data);
        let split = Split::new(&loads, |one| one.clients == 10.0, |one| [5.0, 20.0].contains(&one.clients));
        assert_eq!((split.train.len(), split.held_out.len()), (12, 8));
        let found = Trial::of("t", &loads, &[split]).unwrap();
        assert!((0.4..0.6).contains(&found.error) && found.holds() == Some(false), "{found:?}");
        // The noise is that of the loads that are predicted, 3 % at most.
        assert!(found.floor.is_some_and(|floor| floor < 0.03), "{found:?}");
        assert!(
            found.interval.is_some_and(|(low, high)| low <= found.error && found.error <= high),
            "{found:?}"
        );
    }

    #[test]
    fn what_follows_the_model_holds_and_too_little_is_none() {
        let loads = loads(&synthetic());
        let thirds = Split::thirds(&loads);
        assert!(thirds.iter().all(|one| one.held_out.len() == 7 && one.train.len() == 13 * 3), "{thirds:?}");
        let found = Trial::of("t", &loads, &thirds).unwrap();
        assert!(found.holds() == Some(true) && found.error < 0.03, "{found:?}");
        let nothing = Split::new(&loads, |one| one.clients == 7.0, |_| true);
        assert_eq!(Trial::of("t", &loads, &[nothing]), None);
    }
}
