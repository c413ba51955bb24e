//! The forms that take part in the choice.

use super::Observation;
use super::solve::least_squares;
use crate::figures;
use crate::statistics::median;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A formula for CPU in percent with weights that are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A price per message, and one per signal that grows with the items as [`Self::Caches`] says and with the clients as
    /// [`Self::Shared`] says: what these and [`Self::Messages`] have in common.
    Full,
    /// A price per signal and one per message.
    Messages,
    /// Besides, the square root of their product: what neither linear term catches when batches grow.
    Batches,
    /// A price per message, and one per signal that grows with the square root of the items: what does not fit the caches is
    /// missed by such a rule (Hartstein et al. 2006, "Cache miss behavior: is it √2?").
    Caches,
    /// A price per message, and one per signal that grows with the clients as the paper's does.
    Shared,
    /// A price per signal, per message and per client: sessions that cost even when they are idle.
    Sessions,
    /// The paper's terms, but fitted to relative errors.
    PaperRelative,
    /// Burger et al. 2019: `1, ns·spr·nc^0.3`, unweighted least squares as there.
    Paper,
    /// Universal Scalability Law: a price per signal that grows with contention and coherence between clients.
    Usl,
    /// A product of powers of signals and messages.
    Power,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::PaperRelative => "paper, relative",
            Self::Full => "full",
            Self::Messages => "messages",
            Self::Batches => "batches",
            Self::Caches => "caches",
            Self::Sessions => "sessions",
            Self::Shared => "shared",
            Self::Usl => "USL",
            Self::Power => "power",
        })
    }
}

/// Encryption has a price per signal and one per message in every form but the paper's.
fn encrypted(load: &Observation, value: f64) -> f64 {
    if load.encrypted { value } else { 0.0 }
}

/// Items over all clients: each gives a signal in each of its client's messages.
fn items(load: &Observation) -> f64 {
    load.signals_per_s * load.clients / load.messages_per_s.max(1e-9)
}

/// How often measurements are weighed again by how far off they are.
const ROUNDS: usize = 8;

/// How far each measurement is trusted, from how far it is off (Huber): what lies beyond twice the usual error counts less.
/// A window in which the hypervisor took the CPU away says nothing about the server.
fn trust(errors: &[f64]) -> Vec<f64> {
    // 1.4826 times the median is the standard deviation, if errors are normal.
    let usual = (median(errors).unwrap_or(0.0) * 1.4826 * 2.0).max(1e-6);
    let of = |error: &f64| if error.is_finite() { (usual / error.max(1e-12)).min(1.0).sqrt() } else { 0.0 };
    errors.iter().map(of).collect()
}

/// The share of messages that a server is woken for: twice for one that is on its own, when it is due and when the client
/// has asked for the next. Whoever sends many in one turn is woken less often. A half at most: threads that wake each other
/// say nothing. Loads with little CPU count more, as in the fit; `None` if wakes are not known.
fn alone(data: &[Observation]) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for one in data {
        let wakes = one.wakes_per_s.filter(|_| one.messages_per_s > 0.0)?;
        let weight = one.cpu_percent.powi(-2);
        sum += weight * (wakes / one.messages_per_s / 2.0).clamp(0.0, 0.5);
        total += weight;
    }
    Some(sum / total).filter(|share| share.is_finite())
}

impl Form {
    /// All of them, in the order of what they assume. A form that does without a term claims that its price is zero; whoever
    /// has the term finds out, because no price is negative. So what has most terms comes first.
    pub const ALL: [Self; 10] = [
        Self::Full,
        Self::Shared,
        Self::Caches,
        Self::Batches,
        Self::Messages,
        Self::Sessions,
        Self::Power,
        Self::Usl,
        Self::PaperRelative,
        Self::Paper,
    ];

    /// Whether it knows what clients do besides having messages: nothing can be learnt or tested of that in data with one
    /// number of clients. Those that have both a price that grows with clients and one that does not leave it open: what the
    /// data cannot tell apart is shared evenly by both, half-way between the paper's growth and none. What a message costs and
    /// what a server costs that is there is told by how often it is woken.
    #[must_use]
    pub fn knows_clients(self) -> bool {
        matches!(self, Self::Sessions | Self::PaperRelative | Self::Paper | Self::Usl | Self::Power)
    }

    /// What each weight is multiplied with.
    #[must_use]
    pub fn terms(self) -> &'static [&'static str] {
        match self {
            Self::Full => &[
                "1",
                "signals/s",
                "messages/s",
                "signals/s·√items",
                "ns·spr·nc^0.3",
                "encrypted signals/s",
                "encrypted messages/s",
            ],
            Self::Paper | Self::PaperRelative => &["1", "ns·spr·nc^0.3"],
            Self::Messages => {
                &["1", "signals/s", "messages/s", "encrypted signals/s", "encrypted messages/s"]
            }
            Self::Batches => &[
                "1",
                "signals/s",
                "messages/s",
                "√(signals·messages)/s",
                "encrypted signals/s",
                "encrypted messages/s",
            ],
            Self::Caches => &[
                "1",
                "signals/s",
                "messages/s",
                "signals/s·√items",
                "encrypted signals/s",
                "encrypted messages/s",
            ],
            Self::Sessions => {
                &["1", "signals/s", "messages/s", "clients", "encrypted signals/s", "encrypted messages/s"]
            }
            Self::Shared => &[
                "1",
                "signals/s",
                "messages/s",
                "ns·spr·nc^0.3",
                "encrypted signals/s",
                "encrypted messages/s",
            ],
            Self::Usl => &["1", "signals/s", "signals/s·(nc−1)", "signals/s·nc(nc−1)", "encrypted signals/s"],
            Self::Power => &["ln 1", "ln signals/s", "ln messages/s"],
        }
    }

    /// What a weight means, in words with units: CPU is in percent of a core, and one percent are ten milliseconds a second.
    #[must_use]
    pub fn price(term: &str, weight: f64) -> String {
        let time = figures::micros(weight * 1e4);
        match term {
            "1" => format!("{} % at rest", figures::number(weight)),
            "clients" => format!("{} % per client", figures::number(weight)),
            "signals/s" => format!("{time} per signal"),
            "messages/s" => format!("{time} per message"),
            "√(signals·messages)/s" => format!("{time} per √(signals · messages)"),
            "encrypted signals/s" => format!("{time} more per encrypted signal"),
            "encrypted messages/s" => format!("{time} more per encrypted message"),
            "signals/s·√items" => format!("{time} per signal · √items"),
            "ns·spr·nc^0.3" => format!("{time} per signal · clients^0.3"),
            "signals/s·(nc−1)" => format!("{time} per signal · (clients − 1)"),
            "signals/s·nc(nc−1)" => format!("{time} per signal · clients · (clients − 1)"),
            "ln 1" => format!("e^{weight:.3} %"),
            other => format!("({})^{weight:.3}", other.trim_start_matches("ln ")),
        }
    }

    fn features(self, load: &Observation) -> Vec<f64> {
        let Observation { clients, signals_per_s, messages_per_s, .. } = *load;
        let secret = [encrypted(load, signals_per_s), encrypted(load, messages_per_s)];
        let growing = || signals_per_s * items(load).sqrt();
        let paper = || signals_per_s * clients.powf(0.3);
        match self {
            Self::Full => {
                vec![1.0, signals_per_s, messages_per_s, growing(), paper(), secret[0], secret[1]]
            }
            Self::Paper | Self::PaperRelative => vec![1.0, paper()],
            Self::Messages => vec![1.0, signals_per_s, messages_per_s, secret[0], secret[1]],
            Self::Batches => {
                let both = (signals_per_s * messages_per_s).sqrt();
                vec![1.0, signals_per_s, messages_per_s, both, secret[0], secret[1]]
            }
            Self::Caches => vec![1.0, signals_per_s, messages_per_s, growing(), secret[0], secret[1]],
            Self::Sessions => vec![1.0, signals_per_s, messages_per_s, clients, secret[0], secret[1]],
            Self::Shared => vec![1.0, signals_per_s, messages_per_s, paper(), secret[0], secret[1]],
            Self::Usl => vec![
                1.0,
                signals_per_s,
                signals_per_s * (clients - 1.0),
                signals_per_s * clients * (clients - 1.0),
                secret[0],
            ],
            Self::Power => vec![1.0, signals_per_s.max(1e-9).ln(), messages_per_s.max(1e-9).ln()],
        }
    }

    /// What each term gets of that which the data cannot tell apart, 1 where nothing is known.
    ///
    /// Where all loads have the same number of messages, nobody can tell what a server costs that is there from what its
    /// messages cost, but the server's wakes are a hint: see [`alone`]. What messages share costs the same with more of them.
    fn shares(self, data: &[Observation]) -> Vec<f64> {
        let of_messages = 2.0 * alone(data).unwrap_or(0.5);
        let share = |term: &&str| match *term {
            "1" => 2.0 - of_messages,
            "messages/s" => of_messages,
            _ => 1.0,
        };
        self.terms().iter().map(share).collect()
    }

    /// The weights; `None` if there is too little data.
    pub(super) fn fit(self, data: &[Observation]) -> Option<Vec<f64>> {
        let rows: Vec<Vec<f64>> = data.iter().map(|one| self.features(one)).collect();
        let used = |term: usize| rows.iter().any(|row| row.get(term).is_some_and(|value| *value != 0.0));
        let needed = (0..self.terms().len()).filter(|term| used(*term)).count();
        if data.len() <= needed || data.iter().any(|one| one.cpu_percent.is_nan() || one.cpu_percent <= 0.0) {
            return None;
        }
        let (targets, importance, is_positive): (Vec<f64>, Vec<f64>, bool) = match self {
            Self::Paper => (data.iter().map(|one| one.cpu_percent).collect(), vec![1.0; data.len()], false),
            // An error in the logarithm is a relative error already.
            Self::Power => {
                (data.iter().map(|one| one.cpu_percent.ln()).collect(), vec![1.0; data.len()], false)
            }
            _ => (
                data.iter().map(|one| one.cpu_percent).collect(),
                data.iter().map(|one| 1.0 / one.cpu_percent).collect(),
                true,
            ),
        };
        let shares = self.shares(data);
        let mut weights = least_squares(&rows, &targets, &importance, &shares, is_positive)?;
        if self != Self::Paper {
            for _ in 0..ROUNDS {
                let error = |one: &Observation| (self.predict(&weights, one) / one.cpu_percent - 1.0).abs();
                let errors: Vec<f64> = data.iter().map(error).collect();
                let trusted: Vec<f64> =
                    importance.iter().zip(trust(&errors)).map(|(one, trust)| one * trust).collect();
                weights = least_squares(&rows, &targets, &trusted, &shares, is_positive)?;
            }
        }
        if self == Self::Power {
            // The mean of the logarithms is not the logarithm of the mean: put the difference into the constant.
            let mean = data.iter().map(|one| one.cpu_percent / self.predict(&weights, one)).sum::<f64>()
                / data.len() as f64;
            if let Some(first) = weights.first_mut().filter(|_| mean > 0.0) {
                *first += mean.ln();
            }
        }
        Some(weights)
    }

    pub(super) fn predict(self, weights: &[f64], load: &Observation) -> f64 {
        let sum =
            self.features(load).iter().zip(weights).map(|(feature, weight)| feature * weight).sum::<f64>();
        if self == Self::Power { sum.exp() } else { sum }
    }
}
