//! Costs of slow jobs without a connection: passwords, certificates, history.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use taktwerk_config::users::Users;
use taktwerk_crypto::{CertificatePurpose, CertificateValidator};
use taktwerk_history::{Retention, SqliteStore};
use taktwerk_schema::HistoryUpdateType;
use taktwerk_server::history::{
    HistoryStore, HistoryValue, Modification, NodeKey, Order, Perform, ReadLimit, Span,
};
use taktwerk_sim::host::costs::RECORDING;
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Values per history request, as most clients use.
const VALUES: usize = 1_000;
/// Number of stored values.
const STORED: usize = 20_000;
/// Number of variables whose values are recorded together, each with the same number of values.
const RECORDED: usize = 100;

/// Durations of a job in nanoseconds.
fn times(rounds: usize, mut job: impl FnMut() -> Result<(), Failure>) -> Result<Vec<f64>, Failure> {
    let mut all = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        job()?;
        all.push(began.elapsed().as_secs_f64() * 1e9);
    }
    Ok(all)
}

fn environment(error: &dyn std::fmt::Display) -> Failure {
    Failure::Environment(error.to_string())
}

/// Measures all jobs. `certificate` must be trusted by `validator`.
pub(super) fn measure(
    validator: &dyn CertificateValidator,
    certificate: &[u8],
    quick: bool,
) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
    let rounds = if quick { 3 } else { 100 };
    let mut all = BTreeMap::new();
    let purpose = CertificatePurpose::Client { address: None };
    let validated =
        times(rounds, || validator.validate(certificate, &purpose).map_err(|error| environment(&error)))?;
    all.insert("validate-certificate".to_owned(), validated);
    all.insert("check-credential".to_owned(), passwords(rounds)?);
    history(rounds, &mut all)?;
    Ok(all)
}

/// Argon2id with the default parameters of `taktwerk user add`.
fn passwords(rounds: usize) -> Result<Vec<f64>, Failure> {
    let (name, password) = ("calibration", b"a password of usual length");
    let mut users = Users::default();
    users.add(name, password, Vec::new()).map_err(|error| environment(&error))?;
    times(rounds.div_ceil(3), || {
        if users.verify(name, password) {
            Ok(())
        } else {
            Err(Failure::Environment("a password does not match its own hash".to_owned()))
        }
    })
}

/// Reading, replacing and recording 1000 values in SQLite.
fn history(rounds: usize, all: &mut BTreeMap<String, Vec<f64>>) -> Result<(), Failure> {
    let directory = tempfile::tempdir().map_err(|error| environment(&error))?;
    let retention = Retention { age: Duration::from_secs(365 * 86_400), size: u64::MAX };
    let store = SqliteStore::open(directory.path().join("history.db"), retention)
        .map_err(|error| environment(&error))?;
    let node: NodeKey = "nsu=urn:taktwerk:calibration;s=Variable".into();
    let start = UtcTime::from_unix(Duration::from_secs(1_700_000_000));
    let value = |at: usize| {
        let time = UtcTime::from_ticks(start.ticks() + at as i64 * 1_000_000);
        let value = Variant::from(at as f64 * 0.1);
        HistoryValue { source: time, server: time, status: StatusCode::GOOD, value }
    };
    for first in (0..STORED).step_by(VALUES) {
        let values: Vec<_> = (first..first + VALUES).map(|at| (node.clone(), value(at))).collect();
        store.append(&values).map_err(|error| environment(&error))?;
    }
    let mut round = 0;
    let mut next_span = || {
        round += 1;
        let first = round * 997 % (STORED - VALUES);
        (first, Span { first: value(first).source, last: value(first + VALUES - 1).source })
    };
    let read = times(rounds, || {
        let (_, span) = next_span();
        let mut out = Vec::with_capacity(VALUES);
        store
            .read(&node, span, Order::Forward, ReadLimit::count(VALUES), &mut out)
            .map_err(|error| environment(&error))?;
        if out.len() == VALUES {
            Ok(())
        } else {
            Err(Failure::Environment(format!("the store has {} of {VALUES} values", out.len())))
        }
    })?;
    all.insert("read-history".to_owned(), read);
    let mut round = 0;
    let updated = times(rounds.div_ceil(5), || {
        round += 1;
        let first = round * 997 % (STORED - VALUES);
        let by = Modification { time: start, kind: HistoryUpdateType::REPLACE, user: "calibration".into() };
        let values = (first..first + VALUES).map(value).collect();
        let update = store.update(&node, Perform::Replace, values, &by);
        update.map(drop).map_err(|error| environment(&error))
    })?;
    all.insert("update-history".to_owned(), updated);
    let nodes: Vec<NodeKey> =
        (0..RECORDED).map(|at| format!("nsu=urn:taktwerk:calibration;s=Recorded{at}").into()).collect();
    let mut round = 0;
    let recorded = times(rounds, || {
        // As the recorder gives them to the store: in the order of their times, those of all variables mixed.
        let first = round * VALUES / RECORDED;
        round += 1;
        let moments = first..first + VALUES / RECORDED;
        let values: Vec<_> =
            moments.flat_map(|at| nodes.iter().map(move |node| (node.clone(), value(at)))).collect();
        store.append(&values).map_err(|error| environment(&error))
    })?;
    let (mut out, stored) = (Vec::new(), round * VALUES / RECORDED);
    let span = Span { first: start, last: value(stored).source };
    for node in &nodes {
        store
            .read(node, span, Order::Forward, ReadLimit::count(stored + 1), &mut out)
            .map_err(|error| environment(&error))?;
    }
    if out.len() != round * VALUES {
        let problem = format!("the store has {} of {} recorded values", out.len(), round * VALUES);
        return Err(Failure::Environment(problem));
    }
    all.insert(RECORDING.to_owned(), recorded);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::CryptoError;

    #[derive(Debug)]
    struct Known(&'static [u8]);

    impl CertificateValidator for Known {
        fn validate(&self, chain: &[u8], _: &CertificatePurpose) -> Result<(), CryptoError> {
            if chain == self.0 { Ok(()) } else { Err(CryptoError::PolicyUnsupported) }
        }
    }

    #[test]
    fn all_jobs_are_timed() {
        let all = measure(&Known(b"known"), b"known", true).unwrap();
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["append-history", "check-credential", "read-history", "update-history", "validate-certificate"]
        );
        assert!(all.values().all(|times| !times.is_empty() && times.iter().all(|nanos| *nanos > 0.0)));
        // A password hash is expensive by design.
        assert!(all["check-credential"][0] > all["validate-certificate"][0]);
        assert!(measure(&Known(b"known"), b"unknown", true).is_err());
    }
}
