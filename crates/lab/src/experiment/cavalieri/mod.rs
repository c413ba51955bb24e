//! Cavalieri and Chiacchio 2013: an OPC UA model in OMNeT++, repeated with the production cores in virtual time.
//!
//! Nothing is measured here: [`taktwerk_sim`] runs the production client and server over modelled lines. The processors
//! of 2010 are a host profile ([`machine`]), fitted to the first rows of Table 2; all other figures are predictions. If
//! a prediction is off, one assumption at a time is changed and the figures are shown again ([`cells`]).

mod cells;
mod knee;
mod machine;
mod publish;
mod rtt;
mod session;
mod validate;

use super::Experiment;
use crate::measurement::Measurement;
use crate::outcome::Outcome;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};

pub(super) static ALL: [&dyn Experiment; 4] =
    [&validate::Validate, &session::Session, &rtt::RoundTrip, &publish::Publishing];

/// The paper signs with 128-bit keys, RSA 1.5 and SHA-1. This is the nearest policy that is not broken; its signatures
/// have 32 bytes instead of 20.
const POLICY: SecurityPolicy = SecurityPolicy::Basic256Sha256;
const NONE: (SecurityPolicy, MessageSecurityMode) = (SecurityPolicy::None, MessageSecurityMode::None);
const ENCRYPTED: (SecurityPolicy, MessageSecurityMode) = (POLICY, MessageSecurityMode::SignAndEncrypt);

/// Bits per second of the paper's lines, in millions.
const RATES: [u32; 3] = [2, 5, 10];

/// Why a simulation has no outcome.
type Failed = String;

/// Parses a link profile.
fn link(text: &str) -> Result<taktwerk_netem::Profile, Failed> {
    text.parse().map_err(|error: taktwerk_netem::profile::ParseProfileError| error.to_string())
}

/// Runs a part of an experiment. An error is recorded in the outcome.
fn attempt(outcome: &mut Outcome, run: impl FnOnce(&mut Outcome) -> Result<(), Failed>) {
    if let Err(error) = run(outcome) {
        outcome.errors.push(error);
    }
}

/// Simulated experiments do not use measurements.
fn no_measurements(_: &[Measurement], outcome: &mut Outcome) {
    outcome.skipped.push("simulated, not measured: run `taktwerk lab reproduce`".to_owned());
}

/// Formats seconds as milliseconds or seconds.
fn seconds(value: f64) -> String {
    crate::figures::micros(value * 1e6)
}

#[cfg(test)]
#[allow(clippy::print_stdout)] // the outcome itself, with --nocapture
mod tests {
    use super::*;
    use crate::experiment::simulate;

    fn outcome_of(experiment: &dyn Experiment) -> Outcome {
        let outcome = simulate(experiment, true);
        println!("{}", outcome.text());
        assert!(outcome.errors.is_empty() && !outcome.grids.is_empty(), "{outcome:?}");
        let said = outcome.remarks.join(" ");
        assert!(said.contains("Comparable: ") && said.contains("Not comparable: "), "{said}");
        assert!(experiment.is_simulated() && experiment.missing().is_none());
        outcome
    }

    #[test]
    fn session_times_match_the_paper_or_are_explained() {
        let outcome = outcome_of(&session::Session);
        assert!(outcome.findings.iter().all(|one| one.holds != Some(false)), "{:?}", outcome.findings);
        // Fitted figures are reproduced exactly.
        let grid = &outcome.grids[0];
        let row = |name: &str| grid.rows.iter().find(|row| row[0] == name).unwrap();
        for (name, fitted) in [("1 TCP", "0.054"), ("2 TCP", "0.160"), ("3 TCP", "0.310")] {
            assert_eq!((row(name)[2].as_str(), row(name)[3].as_str()), (fitted, "fitted"));
        }
    }

    #[test]
    fn round_trips_match_the_paper_or_are_explained() {
        let outcome = outcome_of(&rtt::RoundTrip);
        assert!(outcome.findings.iter().all(|one| one.holds != Some(false)), "{:?}", outcome.findings);
        assert_eq!(outcome.grids[0].rows.len(), 7);
        let whole = simulate(&rtt::RoundTrip, false);
        assert!(whole.findings.iter().all(|one| one.holds != Some(false)), "{:?}", whole.findings);
        // Six scenarios over two transports, for each line.
        let lines: Vec<usize> = whole.grids.iter().rev().take(3).map(|grid| grid.rows.len()).collect();
        assert_eq!(lines, [12; 3], "{:?}", whole.errors);
    }

    #[test]
    fn blocks_match_the_paper_or_the_required_byte_cost_is_shown() {
        let outcome = outcome_of(&validate::Validate);
        assert!(outcome.findings.iter().all(|one| one.holds != Some(false)), "{:?}", outcome.findings);
    }

    #[test]
    fn impossible_fits_are_reported() {
        let wrong = machine::fit("x", 10.0, 1.0, |value| Ok(value * 2.0)).unwrap_err();
        assert!(wrong.contains("x cannot be fitted"), "{wrong}");
        let right = machine::fit("x", 1.5, 1.0, |value| Ok(value * 2.0)).unwrap();
        assert!((right - 0.75).abs() < 1e-6);
    }
}
