//! What came of an attack.

use super::FloodArgs;
use super::canary::Song;
use crate::failure::Failure;
use crate::output::Output;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use taktwerk_lab::table::{Align, Table};
use taktwerk_types::StatusCode;

/// Something that has to hold.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Claim {
    claim: String,
    holds: bool,
}

/// What an attack saw.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    facts: Vec<(String, String)>,
    claims: Vec<Claim>,
}

impl Findings {
    /// Notes a figure.
    pub(crate) fn fact(&mut self, name: &str, value: impl ToString) {
        self.facts.push((name.to_owned(), value.to_string()));
    }

    /// Notes whether something holds.
    pub(crate) fn claim(&mut self, claim: impl Into<String>, holds: bool) {
        self.claims.push(Claim { claim: claim.into(), holds });
    }
}

/// How often each thing happened.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    /// Adds what another has counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }

    pub(crate) fn status(&mut self, status: Option<StatusCode>) {
        self.add(status.map_or_else(|| "closed without a word".to_owned(), |status| status.to_string()));
    }

    /// What happened, without how often.
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
pub(crate) struct Memory {
    pub(crate) before: u64,
    pub(crate) peak: u64,
    pub(crate) after: u64,
}

impl Memory {
    /// What has to hold of it, `settled` seconds after the attack.
    fn claim(&self, settled: u64) -> (String, bool) {
        let about = |bytes: u64| bytes + bytes / 20 + (8 << 20);
        (format!("memory is back within 5 % + 8 MiB after {settled} s"), self.after <= about(self.before))
    }
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Report {
    attack: String,
    connections: usize,
    took: Duration,
    limits: &'static str,
    findings: Findings,
    memory: Memory,
    song: Song,
}

impl Report {
    pub(crate) fn new(
        arguments: &FloodArgs,
        connections: usize,
        took: Duration,
        mut findings: Findings,
        memory: Memory,
        song: Song,
    ) -> Self {
        let p99 = if arguments.no_times { f64::INFINITY } else { arguments.p99 };
        match song.complaint(p99) {
            None => findings.claim("the canary noticed nothing", true),
            Some(complaint) => findings.claim(format!("the canary noticed nothing: {complaint}"), false),
        }
        if !arguments.no_times {
            let (claim, holds) = memory.claim(arguments.settle);
            findings.claim(claim, holds);
        }
        Self {
            attack: arguments.attack.name(),
            connections,
            took,
            limits: if arguments.wide { "loopback" } else { "strangers" },
            findings,
            memory,
            song,
        }
    }

    /// Drops all claims: the attack was cut short.
    pub(crate) fn judge_nothing(&mut self) {
        self.findings.claims.clear();
    }

    /// The first claim that does not hold.
    pub(crate) fn first_failure(&self) -> Option<String> {
        self.findings.claims.iter().find(|claim| !claim.holds).map(|claim| claim.claim.clone())
    }

    pub(crate) fn print(&self, output: Output) -> Result<(), Failure> {
        if output.is_json() {
            return output.line(&json!({
                "attack": self.attack,
                "limits": self.limits,
                "connections": self.connections,
                "seconds": self.took.as_secs_f64(),
                "facts": self.findings.facts.iter().cloned().collect::<BTreeMap<_, _>>(),
                "claims": self.findings.claims,
                "memory": self.memory,
                "canary": self.song,
            }));
        }
        let mebi = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let mut facts = Table::new(&[("", Align::Left), ("", Align::Left)]);
        facts.row(["attack", &format!("{} ({} connections)", self.attack, self.connections)]);
        facts.row(["limits", &format!("for {}", self.limits)]);
        facts.row(["took", &format!("{:.1} s", self.took.as_secs_f64())]);
        for (name, value) in &self.findings.facts {
            facts.row([name, value]);
        }
        let Memory { before, peak, after } = self.memory;
        facts.row([
            "memory",
            &format!("{} before, {} at most, {} after", mebi(before), mebi(peak), mebi(after)),
        ]);
        let song = &self.song;
        facts.row([
            "canary reads",
            &format!(
                "{}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
                song.reads, song.read_p50_ms, song.read_p99_ms, song.read_max_ms
            ),
        ]);
        facts.row(["canary values", &format!("{}, {} lost", song.values, song.lost_values)]);
        output.text(&facts.to_string())?;
        if self.findings.claims.is_empty() {
            return output.text("cut short: nothing is judged");
        }
        let mut claims = Table::new(&[("holds", Align::Left), ("claim", Align::Left)]);
        for claim in &self.findings.claims {
            claims.row([if claim.holds { "yes" } else { "NO" }, &claim.claim]);
        }
        output.text(&claims.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_are_told() {
        let mut tally = Tally::default();
        assert_eq!(tally.to_string(), "nothing");
        tally.status(None);
        tally.status(Some(StatusCode::BAD_TIMEOUT));
        tally.status(Some(StatusCode::BAD_TIMEOUT));
        assert_eq!(tally.to_string(), "2 x BadTimeout, 1 x closed without a word");
        assert_eq!((tally.count("BadTimeout"), tally.count("other")), (2, 0));
        let mut sum = Tally::default();
        sum.merge(&tally);
        sum.merge(&tally);
        assert_eq!(sum.to_string(), "4 x BadTimeout, 2 x closed without a word");
    }

    #[test]
    fn memory_comes_back() {
        let mebi = |bytes: u64| bytes << 20;
        for (after, expected) in [(20, true), (29, true), (30, false)] {
            let memory = Memory { before: mebi(20), peak: mebi(200), after: mebi(after) };
            assert_eq!(memory.claim(60).1, expected, "{memory:?}");
        }
    }
}
