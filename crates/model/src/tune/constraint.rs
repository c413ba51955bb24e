//! Constraints such as `delay_p99_ms <= 50`.

use super::settings::{Figures, Metric, UnknownMetric};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// A limit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Constraint {
    /// The figure.
    pub metric: Metric,
    /// Whether `limit` is an upper limit; otherwise it is a lower limit.
    pub at_most: bool,
    /// The limit, in the figure's unit.
    pub limit: f64,
}

/// The text is not a constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// Its syntax is invalid.
    #[error(
        "{0:?} is not a constraint: write a figure, <= or >=, and a number, such as \"delay_p99_ms <= 50\""
    )]
    Form(String),
    /// The figure is unknown.
    #[error("{0}")]
    Metric(#[from] UnknownMetric),
}

impl FromStr for Constraint {
    type Err = ConstraintError;
    fn from_str(text: &str) -> Result<Self, ConstraintError> {
        let form = || ConstraintError::Form(text.to_owned());
        let (at_most, (name, limit)) = match (text.split_once("<="), text.split_once(">=")) {
            (Some(parts), None) => (true, parts),
            (None, Some(parts)) => (false, parts),
            _ => return Err(form()),
        };
        let (number, share) = match limit.trim().strip_suffix('%') {
            Some(number) => (number.trim(), 0.01),
            None => (limit.trim(), 1.0),
        };
        let metric: Metric = name.trim().parse()?;
        // CPU is already in percent.
        let share = if matches!(metric, Metric::ServerCpu | Metric::ClientCpu) { 1.0 } else { share };
        let limit: f64 = number.parse().map_err(|_| form())?;
        if !(limit >= 0.0 && limit.is_finite()) {
            return Err(form());
        }
        Ok(Self { metric, at_most, limit: limit * share })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.metric, if self.at_most { "<=" } else { ">=" }, self.limit)
    }
}

impl Constraint {
    /// Whether it holds; `None` if the figure is unknown.
    #[must_use]
    pub fn holds(&self, figures: &Figures) -> Option<bool> {
        let value = self.metric.of(figures)?;
        Some(if self.at_most { value <= self.limit } else { value >= self.limit })
    }

    /// The constraint in `others` that contradicts this one.
    #[must_use]
    pub fn contradiction<'a>(&self, others: &'a [Self]) -> Option<&'a Self> {
        others.iter().find(|other| {
            let least = if self.at_most { other } else { self };
            let most = if self.at_most { self } else { *other };
            self.metric == other.metric && self.at_most != other.at_most && least.limit > most.limit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_judged() {
        let one: Constraint = "delay_p99_ms <= 50".parse().unwrap();
        assert_eq!((one.metric, one.at_most, one.limit), (Metric::DelayP99Ms, true, 50.0));
        let figures = Figures { delay_p99_ms: 51.0, utilisation: Some(0.5), ..Figures::default() };
        assert_eq!(one.holds(&figures), Some(false));
        assert_eq!("utilisation<=60%".parse::<Constraint>().unwrap().holds(&figures), Some(true));
        assert_eq!("server_cpu <= 20%".parse::<Constraint>().unwrap().limit, 20.0);
        assert_eq!("server_cpu <= 20".parse::<Constraint>().unwrap().holds(&figures), None);
        for wrong in
            ["delay <= 5", "loss < 1", "loss <= x", "", "loss <= -1", "1 <= loss <= 2 >= 3", "loss <= nan"]
        {
            assert!(wrong.parse::<Constraint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn contradictions_are_found() {
        let all: Vec<Constraint> =
            ["loss <= 0", "delay_mean_ms >= 10"].map(|one| one.parse().unwrap()).to_vec();
        let low: Constraint = "delay_mean_ms <= 5".parse().unwrap();
        assert_eq!(low.contradiction(&all), Some(&all[1]));
        assert_eq!("delay_mean_ms <= 10".parse::<Constraint>().unwrap().contradiction(&all), None);
        assert_eq!(all[1].contradiction(&[low]), Some(&low));
    }
}
