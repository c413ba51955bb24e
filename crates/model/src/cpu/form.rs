//! Candidate formulas for the CPU cost of a load.

use super::Observation;
use super::solve::least_squares;
use crate::figures;
use crate::statistics::median;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A formula for CPU in percent, with fitted weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Burger et al. 2019: `1, ns·spr·nc^0.3`, fitted by unweighted least squares as in the paper.
    Paper,
    /// A cost per signal and a cost per message.
    Messages,
    /// A cost per message, and a cost per signal that grows with the clients as in the paper.
    Shared,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Messages => "messages",
            Self::Shared => "shared",
        })
    }
}

/// Encryption has a cost per signal and per message in every form except the paper's.
fn encrypted(load: &Observation, value: f64) -> f64 {
    if load.encrypted { value } else { 0.0 }
}

/// Rounds of iterative reweighting.
const ROUNDS: usize = 8;

/// Huber weights: errors beyond twice the usual one count less, because a window in which the hypervisor took the CPU
/// says nothing about the server.
fn trust(errors: &[f64]) -> Vec<f64> {
    // For normally distributed errors, 1.4826 times the median is the standard deviation.
    let usual = (median(errors).unwrap_or(0.0) * 1.4826 * 2.0).max(1e-6);
    let of = |error: &f64| if error.is_finite() { (usual / error.max(1e-12)).min(1.0).sqrt() } else { 0.0 };
    errors.iter().map(of).collect()
}

/// Share of messages that wake the server. A single message wakes it twice: when it is due, and when the client
/// requests the next one. Messages sent in one turn share a wake-up. The share is limited to one half, because threads
/// that wake each other are not informative. Loads with little CPU count more, as in the fit. `None` if wake-ups are
/// unknown.
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
    /// All forms, the simplest first.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Messages, Self::Shared];

    /// Whether its only cost depends on the number of clients. Data with a single number of clients cannot test such a
    /// form.
    #[must_use]
    pub fn knows_clients(self) -> bool {
        self == Self::Paper
    }

    /// The factors of the weights. Every form except the paper's ends with the costs of encryption per signal and per
    /// message.
    #[must_use]
    pub fn terms(self) -> &'static [&'static str] {
        match self {
            Self::Paper => &["1", "ns·spr·nc^0.3"],
            Self::Messages => {
                &["1", "signals/s", "messages/s", "encrypted signals/s", "encrypted messages/s"]
            }
            Self::Shared => &[
                "1",
                "signals/s",
                "messages/s",
                "ns·spr·nc^0.3",
                "encrypted signals/s",
                "encrypted messages/s",
            ],
        }
    }

    /// A weight in words with units. CPU is in percent of a core; 1 % is 10 ms per second.
    #[must_use]
    pub fn price(term: &str, weight: f64) -> String {
        let time = figures::micros(weight * 1e4);
        match term {
            "1" => format!("{} % when idle", figures::number(weight)),
            "signals/s" => format!("{time} per signal"),
            "messages/s" => format!("{time} per message"),
            "ns·spr·nc^0.3" => format!("{time} per signal · clients^0.3"),
            "encrypted signals/s" => format!("{time} more per encrypted signal"),
            "encrypted messages/s" => format!("{time} more per encrypted message"),
            other => format!("{time} per {other}"),
        }
    }

    fn features(self, load: &Observation) -> Vec<f64> {
        let Observation { clients, signals_per_s, messages_per_s, .. } = *load;
        let secret = [encrypted(load, signals_per_s), encrypted(load, messages_per_s)];
        let paper = || signals_per_s * clients.powf(0.3);
        match self {
            Self::Paper => vec![1.0, paper()],
            Self::Messages => vec![1.0, signals_per_s, messages_per_s, secret[0], secret[1]],
            Self::Shared => vec![1.0, signals_per_s, messages_per_s, paper(), secret[0], secret[1]],
        }
    }

    /// How inseparable terms share what they explain together; 1 if unknown.
    ///
    /// If all loads have the same number of messages, idle cost and per-message cost cannot be separated. The server's
    /// wake-ups then give a hint: see [`alone`].
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
        // The paper minimises absolute errors; the other forms minimise relative errors.
        let is_relative = self != Self::Paper;
        let targets: Vec<f64> = data.iter().map(|one| one.cpu_percent).collect();
        let importance: Vec<f64> =
            targets.iter().map(|cpu| if is_relative { 1.0 / cpu } else { 1.0 }).collect();
        let shares = self.shares(data);
        let mut weights = least_squares(&rows, &targets, &importance, &shares, is_relative)?;
        if is_relative {
            for _ in 0..ROUNDS {
                let error = |one: &Observation| (self.predict(&weights, one) / one.cpu_percent - 1.0).abs();
                let errors: Vec<f64> = data.iter().map(error).collect();
                let trusted: Vec<f64> =
                    importance.iter().zip(trust(&errors)).map(|(one, trust)| one * trust).collect();
                weights = least_squares(&rows, &targets, &trusted, &shares, is_relative)?;
            }
        }
        Some(weights)
    }

    pub(super) fn predict(self, weights: &[f64], load: &Observation) -> f64 {
        self.features(load).iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
    }
}
