//! The result of an attack.

use crate::{CanaryReport, Limits, Options};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;
use taktwerk_types::StatusCode;

/// A requirement and whether it holds.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// The requirement.
    pub claim: String,
    /// Whether it holds.
    pub holds: bool,
}

/// Measurements and claims of an attack.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    facts: Vec<(String, String)>,
    claims: Vec<Claim>,
}

impl Findings {
    /// Records a measurement.
    pub(crate) fn fact(&mut self, name: &str, value: impl ToString) {
        self.facts.push((name.to_owned(), value.to_string()));
    }

    /// Records whether a requirement holds.
    pub(crate) fn claim(&mut self, claim: impl Into<String>, holds: bool) {
        self.claims.push(Claim { claim: claim.into(), holds });
    }
}

/// Counts of outcomes.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    /// Adds another tally.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }

    pub(crate) fn status(&mut self, status: Option<StatusCode>) {
        self.add(
            status.map_or_else(|| "closed without an Error message".to_owned(), |status| status.to_string()),
        );
    }

    /// The outcomes without their counts.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

impl core::fmt::Display for Tally {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (at, (what, count)) in self.0.iter().enumerate() {
            write!(f, "{}{count} x {what}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Memory of the server in bytes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    /// Before the attack.
    pub before: u64,
    /// Maximum during the attack.
    pub peak: u64,
    /// After the settling time.
    pub after: u64,
}

impl Memory {
    /// The claim about memory `settled` seconds after the attack.
    fn claim(&self, settled: u64) -> (String, bool) {
        let about = |bytes: u64| bytes + bytes / 20 + (8 << 20);
        (format!("memory is back within 5 % + 8 MiB after {settled} s"), self.after <= about(self.before))
    }
}

/// The result of an attack.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the attack.
    pub attack: &'static str,
    /// The server's limits.
    pub limits: Limits,
    /// Connections of the attacker.
    pub connections: usize,
    /// Duration, s.
    pub seconds: f64,
    /// Measurements, in display order.
    #[serde(serialize_with = "as_map")]
    pub facts: Vec<(String, String)>,
    /// The requirements; empty if the attack was interrupted.
    pub claims: Vec<Claim>,
    /// Memory of the server.
    pub memory: Memory,
    /// What the canary measured.
    pub canary: CanaryReport,
}

fn as_map<S: Serializer>(facts: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(facts.iter().map(|(name, value)| (name, value)))
}

impl Report {
    pub(crate) fn new(
        options: &Options,
        connections: usize,
        took: Duration,
        mut findings: Findings,
        memory: Memory,
        canary: CanaryReport,
    ) -> Self {
        let p99 = if options.judges_times { options.p99_max_ms } else { f64::INFINITY };
        match canary.complaint(p99) {
            None => findings.claim("the canary was not affected", true),
            Some(complaint) => findings.claim(format!("the canary was not affected: {complaint}"), false),
        }
        if options.judges_times {
            let (claim, holds) = memory.claim(options.settle.as_secs());
            findings.claim(claim, holds);
        }
        let Findings { facts, claims } = findings;
        let (attack, limits) = (options.attack.name(), options.limits);
        Self { attack, limits, connections, seconds: took.as_secs_f64(), facts, claims, memory, canary }
    }

    /// Removes all claims, because the attack was interrupted.
    pub(crate) fn drop_claims(&mut self) {
        self.claims.clear();
    }

    /// The first claim that does not hold.
    #[must_use]
    pub fn first_failure(&self) -> Option<&str> {
        self.claims.iter().find(|claim| !claim.holds).map(|claim| claim.claim.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_are_displayed() {
        let mut tally = Tally::default();
        assert_eq!(tally.to_string(), "nothing");
        tally.status(None);
        tally.status(Some(StatusCode::BAD_TIMEOUT));
        tally.status(Some(StatusCode::BAD_TIMEOUT));
        assert_eq!(tally.to_string(), "2 x BadTimeout, 1 x closed without an Error message");
        assert_eq!((tally.count("BadTimeout"), tally.count("other")), (2, 0));
        let mut sum = Tally::default();
        sum.merge(&tally);
        sum.merge(&tally);
        assert_eq!(sum.to_string(), "4 x BadTimeout, 2 x closed without an Error message");
    }

    #[test]
    fn memory_must_return_to_the_baseline() {
        let mebi = |bytes: u64| bytes << 20;
        for (after, expected) in [(20, true), (29, true), (30, false)] {
            let memory = Memory { before: mebi(20), peak: mebi(200), after: mebi(after) };
            assert_eq!(memory.claim(60).1, expected, "{memory:?}");
        }
    }
}
