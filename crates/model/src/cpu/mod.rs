//! Predicts the CPU cost of a load from the application's profile.
//!
//! Burger et al. 2019 (§6) fit `cpu = w₀ + w₁ · ns·spr·nc^0.3` by least squares. Cross-validation compares this form
//! with richer ones ([`form`]). Errors are relative: predicting 2 % for a measured 1 % is as wrong as 80 % for 40 %.

mod form;
mod linear;
mod noise;
mod solve;
mod trial;

pub(crate) use solve::least_squares;

pub use form::Form;
pub use noise::Noise;
pub use trial::{ALLOWED, Split, Trial, own_interval};

use linear::Linear;

use crate::figures;
use crate::statistics::{deviation, mean, median, quantile};
use serde::{Deserialize, Serialize};

/// A load and its measured cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Clients, each with one subscription.
    pub clients: f64,
    /// Values delivered per second over all clients.
    pub signals_per_s: f64,
    /// Messages per second over all clients.
    pub messages_per_s: f64,
    /// Whether messages are signed and encrypted.
    pub encrypted: bool,
    /// The server's CPU in percent of one core.
    pub cpu_percent: f64,
    /// Wake-ups of the server's threads per second, counted as voluntary context switches; `None` for planned loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_per_s: Option<f64>,
}

impl Observation {
    /// A load to be predicted: `items` values over all clients, each of which changes at least once per interval.
    #[must_use]
    pub fn planned(items: f64, clients: f64, publishing_ms: f64, encrypted: bool) -> Self {
        let rate = 1e3 / publishing_ms.max(1e-3);
        Self {
            clients,
            signals_per_s: items * rate,
            messages_per_s: clients * rate,
            encrypted,
            cpu_percent: f64::NAN,
            wakes_per_s: None,
        }
    }
}

/// The memory of a server under a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemorySample {
    /// Number of the load; repetitions have the same number.
    pub load: usize,
    /// Monitored items over all clients.
    pub items: f64,
    /// Clients.
    pub clients: f64,
    /// Resident memory in bytes.
    pub bytes: f64,
}

/// The bandwidth of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WireSample {
    /// Number of the load; repetitions have the same number.
    pub load: usize,
    /// Values delivered per second over all clients.
    pub signals_per_s: f64,
    /// Messages per second over all clients.
    pub messages_per_s: f64,
    /// Bytes per second as Ethernet carries them, both directions.
    pub bytes_per_s: f64,
}

/// A form with its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The form.
    pub form: Form,
    /// A weight for each of the form's terms.
    pub weights: Vec<f64>,
    /// Explained share of the variance in the data of the fit.
    pub r2: f64,
}

impl Fit {
    /// Fits a form; `None` if there is too little data for it.
    #[must_use]
    pub fn new(form: Form, data: &[Observation]) -> Option<Self> {
        let weights = form.fit(data)?;
        let mut fit = Self { form, weights, r2: 0.0 };
        let mean = data.iter().map(|one| one.cpu_percent).sum::<f64>() / data.len() as f64;
        let (mut residual, mut total) = (0.0, 0.0);
        for one in data {
            residual += (one.cpu_percent - fit.predict(one)).powi(2);
            total += (one.cpu_percent - mean).powi(2);
        }
        fit.r2 = if total > 0.0 { 1.0 - residual / total } else { 0.0 };
        Some(fit)
    }

    /// CPU in percent of one core.
    #[must_use]
    pub fn predict(&self, load: &Observation) -> f64 {
        self.form.predict(&self.weights, load)
    }

    /// Signed errors of its predictions, relative to the measurements: 0.1 means 10 % too much.
    #[must_use]
    pub fn errors(&self, data: &[Observation]) -> Vec<f64> {
        data.iter().map(|one| self.predict(one) / one.cpu_percent - 1.0).collect()
    }
}

/// Median of the absolute errors.
#[must_use]
pub fn median_abs(errors: &[f64]) -> Option<f64> {
    median(&errors.iter().map(|error| error.abs()).collect::<Vec<_>>())
}

/// Errors for unseen loads by cross-validation: the loads are split into `folds` parts in a fixed random order, and
/// each part is predicted from the others. All repetitions of a load are in the same part. Otherwise a form that
/// overfits single loads would look good.
///
/// `None` if there are fewer than two loads, or too few for the form.
#[must_use]
pub fn cross_validate(form: Form, data: &[Observation], folds: usize) -> Option<Vec<f64>> {
    let loads = loads(data);
    let fits = held_out(form, &loads, folds, 0)?;
    Some(loads.iter().zip(fits).flat_map(|(load, fit)| fit.errors(load)).collect())
}

/// For each load, a fit without it. Each `deal` splits the loads differently.
fn held_out(form: Form, loads: &[Vec<Observation>], folds: usize, deal: u64) -> Option<Vec<Fit>> {
    let folds = folds.clamp(2, loads.len().max(2));
    let mut place = vec![0; loads.len()];
    for (at, index) in shuffled(loads.len(), deal).into_iter().enumerate() {
        *place.get_mut(index)? = at % folds;
    }
    let fit = |fold: usize| {
        let others = loads.iter().zip(&place).filter(|(_, own)| **own != fold);
        Fit::new(form, &others.flat_map(|(load, _)| load).copied().collect::<Vec<_>>())
    };
    let fits: Vec<Fit> = (0..folds).map(fit).collect::<Option<_>>()?;
    place.iter().map(|fold| fits.get(*fold).cloned()).collect()
}

/// Errors of predictions for unseen loads, load by load, averaged over several deals. The reference is the median over
/// the repetitions, which has less noise than a single one.
fn off_by_load(form: Form, loads: &[Vec<Observation>], folds: usize) -> Option<Vec<f64>> {
    const DEALS: u64 = 4;
    /// Limit for the logarithm of an error, about a factor of two; larger errors count the same.
    const WRONG: f64 = 0.7;
    let mut sums = vec![0.0; loads.len()];
    for deal in 0..DEALS {
        for ((sum, load), fit) in sums.iter_mut().zip(loads).zip(held_out(form, loads, folds, deal)?) {
            let middle = middle(load)?;
            let off = (fit.predict(&middle).max(1e-9) / middle.cpu_percent).ln().abs();
            *sum += off.min(WRONG) / DEALS as f64;
        }
    }
    Some(sums)
}

/// The median over the repetitions of a load; `None` without any. Models cannot predict the differences between
/// repetitions, which are noise.
#[must_use]
pub fn middle(load: &[Observation]) -> Option<Observation> {
    let of = |value: fn(&Observation) -> f64| median(&load.iter().map(value).collect::<Vec<_>>());
    Some(Observation {
        cpu_percent: of(|one| one.cpu_percent)?,
        signals_per_s: of(|one| one.signals_per_s)?,
        ..*load.first()?
    })
}

/// Groups observations by load. The delivered rate is never exactly the requested one.
fn loads(data: &[Observation]) -> Vec<Vec<Observation>> {
    const SAME_RATE: f64 = 1.05;
    let key = |one: &Observation| [one.clients, one.messages_per_s, f64::from(u8::from(one.encrypted))];
    let mut sorted = data.to_vec();
    sorted.sort_by(|a, b| {
        let by_key = key(a).iter().zip(key(b)).map(|(a, b)| a.total_cmp(&b)).find(|order| order.is_ne());
        by_key.unwrap_or_else(|| a.signals_per_s.total_cmp(&b.signals_per_s))
    });
    let mut loads: Vec<Vec<Observation>> = Vec::new();
    for one in sorted {
        match loads.last_mut().and_then(|load| load.last().copied().map(|last| (load, last))) {
            Some((load, last))
                if key(&last) == key(&one) && one.signals_per_s <= last.signals_per_s * SAME_RATE =>
            {
                load.push(one);
            }
            _ => loads.push(vec![one]),
        }
    }
    loads
}

/// The numbers below `count` in a random order that is fixed for each `deal`.
#[must_use]
pub fn shuffled(count: usize, deal: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut random = 0x7461_6b74_u64 ^ (deal << 32);
    for last in (1..count).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, (random >> 33) as usize % (last + 1));
    }
    order
}

/// A form considered in the choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The fit to all data.
    pub fit: Fit,
    /// Median absolute error of single measurements in cross-validation.
    pub error: f64,
}

/// A fitted model: the chosen form, with the data needed to judge predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The modelled stack.
    pub stack: String,
    /// The chosen fit.
    pub fit: Fit,
    /// All forms: the chosen one first, then the others from best to worst.
    pub candidates: Vec<Candidate>,
    /// Number of observations in the fit.
    pub observations: usize,
    /// 5th and 95th percentile of measured over predicted, in cross-validation.
    pub ratio90: (f64, f64),
    /// Smallest and largest number of clients in the data.
    pub clients: (f64, f64),
    /// Smallest and largest signals per second in the data.
    pub signals_per_s: (f64, f64),
    /// Smallest and largest messages per second in the data.
    pub messages_per_s: (f64, f64),
    /// Whether the data include encryption.
    pub encrypted: bool,
    /// Memory in bytes: idle, per item, per client. Empty without measurements.
    #[serde(default)]
    pub memory: Vec<f64>,
    /// 5th and 95th percentile of measured over predicted memory, in cross-validation.
    #[serde(default = "unknown")]
    pub memory_ratio90: (f64, f64),
    /// Bytes per second on Ethernet: per signal, per message. Empty without measurements.
    #[serde(default)]
    pub wire: Vec<f64>,
    /// 5th and 95th percentile of measured over predicted bytes on the wire, in cross-validation.
    #[serde(default = "unknown")]
    pub wire_ratio90: (f64, f64),
    /// Origin of the observations, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Origin of the observations of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The processor's name.
    pub machine: String,
    /// The version of the program.
    pub version: String,
    /// Date and time of the measurements.
    pub measured: String,
}

/// Default error range of memory and bandwidth, for files of earlier versions.
fn unknown() -> (f64, f64) {
    (0.85, 1.15)
}

/// A prediction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prediction {
    /// CPU in percent of one core.
    pub cpu_percent: f64,
    /// 90 % of the measurements should be in this range.
    pub interval90: (f64, f64),
    /// Whether the load is outside the range of the measurements; then the interval is too optimistic.
    pub extrapolated: bool,
}

/// An evaluated form.
struct Tried {
    candidate: Candidate,
    /// Signed errors of single measurements in cross-validation.
    errors: Vec<f64>,
    /// Mean error over the loads in cross-validation.
    off: f64,
    /// Standard error of the mean.
    doubt: f64,
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

impl Model {
    /// Fits all forms and chooses one; `None` if there is too little data for any.
    #[must_use]
    pub fn new(stack: &str, data: &[Observation]) -> Option<Self> {
        const FOLDS: usize = 10;
        let first = data.first()?.clients;
        let has_clients = data.iter().any(|one| one.clients != first);
        let loads = loads(data);
        let mut tried: Vec<Tried> = Vec::new();
        for form in Form::ALL.into_iter().filter(|form| has_clients || !form.knows_clients()) {
            let errors = cross_validate(form, data, FOLDS);
            let off = off_by_load(form, &loads, FOLDS);
            let (Some(fit), Some(errors), Some(off)) = (Fit::new(form, data), errors, off) else { continue };
            let (Some(error), Some(mean)) = (median_abs(&errors), mean(&off)) else { continue };
            let doubt = deviation(&off).unwrap_or(0.0) / (off.len() as f64).sqrt();
            tried.push(Tried { candidate: Candidate { fit, error }, errors, off: mean, doubt });
        }
        // The one-standard-error rule: the simplest form whose error is within one standard error of the best
        // (Hastie, Tibshirani, Friedman: The Elements of Statistical Learning, 7.10).
        let best = tried.iter().min_by(|a, b| a.off.total_cmp(&b.off))?;
        let allowed = best.off + best.doubt;
        let simplest = |(_, one): &(usize, &Tried)| (one.candidate.fit.form.terms().len(), one.off);
        let (chosen, _) = tried.iter().enumerate().filter(|(_, one)| one.off <= allowed).min_by(|a, b| {
            let (a, b) = (simplest(a), simplest(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })?;
        let Tried { candidate: best, errors, .. } = tried.remove(chosen);
        tried.sort_by(|a, b| a.off.total_cmp(&b.off));
        let fit = best.fit.clone();
        let candidates = std::iter::once(best).chain(tried.into_iter().map(|one| one.candidate)).collect();
        // measured / predicted = 1 / (1 + error)
        let ratios: Vec<f64> = errors.iter().map(|error| 1.0 / (1.0 + error).max(1e-3)).collect();
        Some(Self {
            stack: stack.to_owned(),
            fit,
            observations: data.len(),
            ratio90: (quantile(&ratios, 0.05)?, quantile(&ratios, 0.95)?),
            clients: extent(data.iter().map(|one| one.clients)),
            signals_per_s: extent(data.iter().map(|one| one.signals_per_s)),
            messages_per_s: extent(data.iter().map(|one| one.messages_per_s)),
            encrypted: data.iter().any(|one| one.encrypted),
            candidates,
            memory: Vec::new(),
            memory_ratio90: unknown(),
            wire: Vec::new(),
            wire_ratio90: unknown(),
            origin: None,
        })
    }

    /// Display name of its stack.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.stack == "own" { "taktwerk" } else { &self.stack }
    }

    /// Also fits memory and bandwidth. They stay unknown if there is too little data.
    #[must_use]
    pub fn with_resources(mut self, memory: &[MemorySample], wire: &[WireSample]) -> Self {
        let (mut of_memory, mut of_wire) = (Linear::default(), Linear::default());
        for one in memory {
            of_memory.add(one.load, vec![1.0, one.items, one.clients], one.bytes);
        }
        for one in wire {
            of_wire.add(one.load, vec![one.signals_per_s, one.messages_per_s], one.bytes_per_s);
        }
        self.memory = of_memory.fit(|_| true).unwrap_or_default();
        self.memory_ratio90 = of_memory.ratio90().unwrap_or_else(unknown);
        self.wire = of_wire.fit(|_| true).unwrap_or_default();
        self.wire_ratio90 = of_wire.ratio90().unwrap_or_else(unknown);
        self
    }

    /// Why this program cannot have written the model, such as a file of another version; `None` if it is valid.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let mut fits = std::iter::once(&self.fit).chain(self.candidates.iter().map(|one| &one.fit));
        let wrong = |fit: &&Fit| fit.weights.len() != fit.form.terms().len();
        if let Some(Fit { form, weights, .. }) = fits.find(wrong) {
            let (found, wanted) = (weights.len(), form.terms().len());
            return Some(format!(
                "the form '{form}' of {} has {found} weights instead of {wanted}: `taktwerk model fit -o` writes it again",
                self.name()
            ));
        }
        let weights = self.fit.weights.iter().chain(&self.memory).chain(&self.wire);
        if let Some(weight) = weights.clone().find(|weight| !(0.0..=1e12).contains(*weight)) {
            return Some(format!(
                "{} has the weight {weight}: weights are positive numbers; `taktwerk model fit -o` writes it again",
                self.name()
            ));
        }
        let lengths = [("memory", self.memory.len(), 3), ("wire", self.wire.len(), 2)];
        let (what, found, wanted) =
            lengths.into_iter().find(|(_, found, wanted)| ![0, *wanted].contains(found))?;
        Some(format!(
            "{what} of {} has {found} weights instead of {wanted}: `taktwerk model fit -o` writes it again",
            self.name()
        ))
    }

    /// CPU in percent of one core: idle, per value, per value times clients^0.3, and per message, per second.
    #[must_use]
    pub fn prices(&self, is_encrypted: bool) -> [f64; 4] {
        let weight = |name: &str| {
            let terms = self.fit.form.terms().iter().zip(&self.fit.weights);
            terms.filter(|(term, _)| **term == name).map(|(_, weight)| *weight).sum::<f64>()
        };
        let more = |name: &str| if is_encrypted { weight(name) } else { 0.0 };
        [
            weight("1"),
            weight("signals/s") + more("encrypted signals/s"),
            weight("ns·spr·nc^0.3"),
            weight("messages/s") + more("encrypted messages/s"),
        ]
    }

    /// Resident memory in bytes; `None` if it was not measured.
    #[must_use]
    pub fn memory(&self, items: f64, clients: f64) -> Option<f64> {
        let [rest, item, client] = self.memory[..] else { return None };
        Some(rest + item * items + client * clients)
    }

    /// Bytes per second on the wire; `None` if they were not measured.
    #[must_use]
    pub fn wire(&self, load: &Observation) -> Option<f64> {
        let [signal, message] = self.wire[..] else { return None };
        Some(signal * load.signals_per_s + message * load.messages_per_s)
    }

    /// Predicts the cost of a load.
    #[must_use]
    pub fn predict(&self, load: &Observation) -> Prediction {
        let cpu_percent = self.fit.predict(load).max(0.0);
        Prediction {
            cpu_percent,
            interval90: (cpu_percent * self.ratio90.0, cpu_percent * self.ratio90.1),
            extrapolated: !self.outside(load).is_empty(),
        }
    }

    /// How a load is outside the range of the measurements, in words; empty if it is inside.
    #[must_use]
    pub fn outside(&self, load: &Observation) -> Vec<String> {
        // With a tolerance, because the delivered rate is never exactly the requested one.
        let is_out = |(low, high): (f64, f64), value: f64| value < low * 0.95 || value > high * 1.05;
        let all = [
            ("clients", self.clients, load.clients),
            ("signals/s", self.signals_per_s, load.signals_per_s),
            ("messages/s", self.messages_per_s, load.messages_per_s),
        ];
        let mut outside: Vec<String> = all
            .into_iter()
            .filter(|(_, extent, value)| is_out(*extent, *value))
            .map(|(what, (low, high), value)| {
                let [value, low, high] = [value, low, high].map(figures::count);
                format!("{value} {what} (measured: {low} to {high})")
            })
            .collect();
        if load.encrypted && !self.encrypted {
            outside.push("encryption, which was not measured and is not included in the cost".to_owned());
        }
        outside
    }
}

/// Test data for this and other modules.
#[cfg(test)]
pub(crate) mod tests_support {
    use super::*;

    /// A server that costs 0.3 % when idle, 0.4 µs per signal and 20 µs per message, with 3 % noise.
    pub(crate) fn synthetic() -> Vec<Observation> {
        let mut data = Vec::new();
        let mut random = 7u64;
        for clients in [1.0, 5.0, 10.0, 20.0, 30.0] {
            for signals_per_s in [5_000.0, 20_000.0, 50_000.0, 100_000.0] {
                for _ in 0..3 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let noise = 1.0 + ((random >> 40) as f64 / (1u64 << 24) as f64 - 0.5) * 0.06;
                    let messages_per_s = clients * 10.0;
                    let cpu_percent = (0.3 + signals_per_s * 0.4e-4 + messages_per_s * 20e-4) * noise;
                    data.push(Observation {
                        clients,
                        signals_per_s,
                        messages_per_s,
                        encrypted: false,
                        cpu_percent,
                        wakes_per_s: None,
                    });
                }
            }
        }
        data
    }

    pub(crate) fn synthetic_model() -> Model {
        Model::new("synthetic", &synthetic()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::tests_support::{synthetic, synthetic_model};
    use super::*;

    #[test]
    fn the_true_form_is_found_and_predicts_unseen_loads() {
        let data = synthetic();
        let model = Model::new("synthetic", &data).unwrap();
        assert_eq!(model.candidates.len(), Form::ALL.len());
        assert!(model.candidates[0].error < 0.03, "{:?}", model.candidates);
        let (train, test): (Vec<_>, Vec<_>) =
            data.iter().copied().partition(|one| ![5.0, 20.0].contains(&one.clients));
        let error = median_abs(&Fit::new(Form::Messages, &train).unwrap().errors(&test)).unwrap();
        assert!(error < 0.03, "{error}");
        let blind = Model::new("synthetic", &train).unwrap();
        assert!(median_abs(&blind.fit.errors(&test)).unwrap() < 0.03, "{:?}", blind.fit);
        let paper = model.candidates.iter().find(|one| one.fit.form == Form::Paper).unwrap();
        assert!(paper.error > model.candidates[0].error);
    }

    #[test]
    fn the_simplest_form_within_one_standard_error_wins() {
        let model = Model::new("synthetic", &synthetic()).unwrap();
        assert_eq!(model.fit.form, Form::Messages, "{:?}", model.candidates);
        // A richer form wins if its term explains something.
        let with = |growth: fn(&Observation) -> f64| {
            let data = synthetic().into_iter().map(|one| Observation {
                cpu_percent: one.cpu_percent + 0.4e-4 * one.signals_per_s * growth(&one),
                ..one
            });
            Model::new("synthetic", &data.collect::<Vec<_>>()).unwrap().fit.form
        };
        assert_eq!(with(|one| one.clients.powf(0.3)), Form::Shared);
        let paper = synthetic().into_iter().map(|one| Observation {
            cpu_percent: one.cpu_percent / (0.3 + one.signals_per_s * 0.4e-4 + one.messages_per_s * 20e-4)
                * (0.5 + 1e-4 * one.signals_per_s * one.clients.powf(0.3)),
            ..one
        });
        assert_eq!(Model::new("synthetic", &paper.collect::<Vec<_>>()).unwrap().fit.form, Form::Paper);
    }

    #[test]
    fn unmeasured_numbers_of_clients_are_predicted() {
        let data = synthetic();
        let (ten, others): (Vec<_>, Vec<_>) = data.iter().copied().partition(|one| one.clients == 10.0);
        let others: Vec<_> = others.into_iter().filter(|one| [5.0, 20.0].contains(&one.clients)).collect();
        let model = Model::new("synthetic", &ten).unwrap();
        assert!(model.candidates.iter().all(|one| !one.fit.form.knows_clients()));
        // Idle cost and message cost cannot be separated there, so they share; the true ratio is 3 to 4.
        let fit = Fit::new(Form::Messages, &ten).unwrap();
        assert!(median_abs(&fit.errors(&others)).unwrap() < 0.05, "{fit:?}");
        let error = median_abs(&model.fit.errors(&others)).unwrap();
        assert!(error < 0.1, "{error} {:?}", model.fit);
    }

    #[test]
    fn few_wake_ups_show_that_messages_share_costs() {
        // Most of the non-signal cost is present with one client already, and the server sends many messages per turn.
        let loads = |clients: f64, wakes_per_s: Option<f64>| {
            [1_000.0, 10_000.0, 50_000.0, 100_000.0, 200_000.0].map(|signals_per_s| Observation {
                wakes_per_s,
                cpu_percent: 0.3 + 0.1e-4 * signals_per_s + 9e-4 * 10.0 * clients,
                ..Observation::planned(signals_per_s / 10.0, clients, 100.0, false)
            })
        };
        let others = [loads(5.0, None), loads(20.0, None)].concat();
        let error = |wakes_per_s| {
            let fit = Fit::new(Form::Messages, &loads(10.0, wakes_per_s)).unwrap();
            let errors = fit.errors(&others);
            errors.iter().map(|error| error.abs()).fold(0.0, f64::max)
        };
        assert!(error(Some(45.0)) < 0.02, "{}", error(Some(45.0)));
        assert!(error(None) > 0.15, "{}", error(None));
        // A server whose threads wake each other is treated as if wake-ups were unknown.
        assert!((error(Some(1_000.0)) - error(None)).abs() < 1e-3, "{}", error(Some(1_000.0)));
    }

    #[test]
    fn outliers_do_not_bend_the_fit() {
        let mut data = synthetic();
        data[30].cpu_percent /= 5.0;
        data[7].cpu_percent *= 3.0;
        let fit = Fit::new(Form::Messages, &data).unwrap();
        let error = median_abs(&fit.errors(&synthetic())).unwrap();
        assert!(error < 0.03, "{error} {:?}", fit.weights);
    }

    #[test]
    fn repetitions_of_a_load_stay_together() {
        let mut data = synthetic();
        for (at, one) in data.iter_mut().enumerate() {
            // The delivered rate, not the requested one.
            one.signals_per_s *= 1.0 + 0.002 * (at % 3) as f64;
        }
        data[0].encrypted = true;
        let order = shuffled(data.len(), 0);
        let data: Vec<_> = order.iter().map(|index| data[*index]).collect();
        let loads = loads(&data);
        let mut sizes: Vec<usize> = loads.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        // 20 loads, three times each; one of them once with encryption.
        assert_eq!(sizes, [vec![1, 2], vec![3; 19]].concat());
        assert!(loads.iter().all(|load| load.iter().all(|one| one.clients == load[0].clients)));
    }

    #[test]
    fn a_load_is_the_median_of_its_repetitions() {
        let one = Observation::planned(1_000.0, 10.0, 100.0, false);
        let of = |cpu: &[f64]| {
            let load: Vec<_> = cpu.iter().map(|cpu| Observation { cpu_percent: *cpu, ..one }).collect();
            middle(&load).map(|load| load.cpu_percent)
        };
        assert_eq!([of(&[2.0, 1.0]), of(&[0.94]), of(&[])], [Some(1.5), Some(0.94), None]);
        assert_eq!([of(&[3.0, 1.0, 2.0]), of(&[4.0, 1.0, 9.0, 2.0])], [Some(2.0), Some(3.0)]);
    }

    #[test]
    fn one_load_is_too_little_for_validation() {
        let data: Vec<_> = synthetic().into_iter().take(3).collect();
        assert_eq!(cross_validate(Form::Messages, &data, 10), None);
        assert!(Model::new("synthetic", &data).is_none());
    }

    #[test]
    fn weights_are_those_of_the_server() {
        let fit = Fit::new(Form::Messages, &synthetic()).unwrap();
        let [rest, signal, message] = fit.weights[..3] else { panic!() };
        assert!((rest - 0.3).abs() < 0.05 && (signal / 0.4e-4 - 1.0).abs() < 0.05, "{:?}", fit.weights);
        assert!((message / 20e-4 - 1.0).abs() < 0.1 && fit.r2 > 0.99);
    }

    #[test]
    fn predictions_have_an_interval_and_mark_extrapolation() {
        let model = Model::new("synthetic", &synthetic()).unwrap();
        let inside = model.predict(&Observation::planned(2_000.0, 10.0, 100.0, false));
        let (low, high) = inside.interval90;
        assert!(low < 1.3 && high > 1.3 && high - low < 0.3 && !inside.extrapolated, "{inside:?}");
        assert!(model.predict(&Observation::planned(2_000.0, 60.0, 100.0, false)).extrapolated);
        assert!(model.predict(&Observation::planned(2_000.0, 10.0, 100.0, true)).extrapolated);
        let [clients, encryption] = &model.outside(&Observation::planned(2_000.0, 40.0, 200.0, true))[..]
        else {
            panic!()
        };
        assert!(clients.contains("40 clients") && clients.contains("1 to 30"), "{clients}");
        assert!(encryption.contains("encryption"), "{encryption}");
    }

    #[test]
    fn costs_add_up_to_the_prediction() {
        let model = synthetic_model();
        let [idle, value, growth, message] = model.prices(false);
        let load = Observation::planned(2_000.0, 10.0, 100.0, false);
        let expected = idle + 20_000.0 * (value + growth * 10f64.powf(0.3)) + 100.0 * message;
        assert!((model.predict(&load).cpu_percent - expected).abs() < 1e-9);
        assert!(model.prices(true) >= model.prices(false));
    }

    #[test]
    fn models_of_other_versions_are_refused() {
        let model = synthetic_model();
        assert_eq!(model.problem(), None);
        let mut other = model.clone();
        other.fit.weights.pop();
        assert!(other.problem().unwrap().contains("weights instead of"), "{:?}", other.problem());
        let mut other = model.clone();
        other.wire = vec![1.0; 3];
        assert!(other.problem().unwrap().contains("wire of synthetic has 3 weights instead of 2"));
        for weight in [-1.0, f64::NAN, 1e308] {
            let mut other = model.clone();
            other.fit.weights[1] = weight;
            assert!(other.problem().unwrap().contains("weights are positive numbers"), "{weight}");
        }
    }

    #[test]
    fn too_little_data_is_no_model() {
        assert!(Model::new("x", &[]).is_none());
        assert!(Model::new("x", &synthetic()[..2]).is_none());
    }
}
