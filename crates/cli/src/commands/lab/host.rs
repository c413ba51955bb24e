//! `lab calibrate --host`: measures the processor costs of this machine for the simulator.

use super::host_jobs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk_crypto::Provider;
use taktwerk_crypto::aws_lc::{AwsLcProvider, Identity};
use taktwerk_crypto::certificate::{Certificate, ValidationOptions};
use taktwerk_lab::host::{Extent, HostError, Measured, conditions, measure};
use taktwerk_lab::machine::Machine;
use taktwerk_lab::measurement::{Group as LoadGroup, Measurement, group};
use taktwerk_lab::place::Place;
use taktwerk_lab::runner;
use taktwerk_lab::scenario::Condition;
use taktwerk_model::HostProfile;
use taktwerk_pki::create::self_signed;
use taktwerk_pki::{CertificateSettings, Group, NewKey, PrivateKey, Store, StoreValidator};
use taktwerk_sim::scenario::RunError;
use taktwerk_sim::scenario::instruments::Providers;

const SERVER_URI: &str = "urn:taktwerk:calibration:server";
const CLIENT_URI: &str = "urn:taktwerk:calibration:client";
/// Name of the measurements of whole loads.
pub(super) const DATA: &str = "calibration";
/// Host name of the simulated server in URLs.
const HOST: &str = "server";

/// Kinds of keys with certificates: RSA and elliptic curves.
const KEYS: [NewKey; 4] = [NewKey::Rsa2048, NewKey::NistP256, NewKey::NistP384, NewKey::Ed25519];

/// One end of the connection: its certificates with keys, and its trust list.
struct Party {
    identities: Vec<Identity>,
    certificates: Vec<Certificate>,
    store: Store,
}

impl Party {
    fn new(uri: &str, folder: PathBuf) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::Environment(error.to_string());
        let store = Store::at(folder);
        store.create().map_err(|error| failed(&error))?;
        let (mut identities, mut certificates) = (Vec::new(), Vec::new());
        for kind in KEYS {
            let key = PrivateKey::generate(kind).map_err(|error| failed(&error))?;
            let mut settings = CertificateSettings::new("calibration", uri);
            settings.hosts = vec![HOST.to_owned()];
            let certificate = self_signed(&settings, &key).map_err(|error| failed(&error))?;
            let identity = Identity::new(certificate.der().to_vec(), key.pkcs8());
            identities.push(identity.map_err(|error| failed(&error))?);
            certificates.push(certificate);
        }
        Ok(Self { identities, certificates, store })
    }

    /// Trusts the other end as an installation does: with files, and with all checks of certificates.
    fn trusting(self, other: &[Certificate]) -> Result<(Arc<dyn Provider>, Arc<StoreValidator>), Failure> {
        for certificate in other {
            self.store
                .trust(Group::Applications, certificate)
                .map_err(|error| Failure::Environment(error.to_string()))?;
        }
        let validator = Arc::new(StoreValidator::new(self.store, ValidationOptions::default()));
        let known = Arc::clone(&validator);
        let provider =
            self.identities.into_iter().fold(AwsLcProvider::new(known), AwsLcProvider::with_identity);
        Ok((Arc::new(provider), validator))
    }
}

/// Measures this machine.
fn calibrate(
    place: &Place,
    quick: bool,
    interrupt: &Interrupt,
) -> Result<(Measured, Vec<(String, f64)>), Failure> {
    let mut measured = parts(quick, interrupt)?;
    let conditions = conditions(extent(quick));
    let whole = whole(place, &conditions, interrupt)?;
    let misses = correct(&mut measured.profile, &conditions, &whole);
    Ok((measured, misses))
}

/// The extent of the measurement.
pub(super) const fn extent(quick: bool) -> Extent {
    if quick { Extent::Smoke } else { Extent::Full }
}

/// Measures the costs of the program's parts, without correction by whole loads.
pub(super) fn parts(quick: bool, interrupt: &Interrupt) -> Result<Measured, Failure> {
    if !Machine::this().optimised {
        tracing::warn!("this is a debug build: its profile is not valid for a release");
    }
    let folder = tempfile::tempdir().map_err(|error| Failure::Environment(error.to_string()))?;
    let server = Party::new(SERVER_URI, folder.path().join("server"))?;
    let client = Party::new(CLIENT_URI, folder.path().join("client"))?;
    let (of_server, of_client) = (server.certificates.clone(), client.certificates.clone());
    let (server, validator) = server.trusting(&of_client)?;
    let (client, _) = client.trusting(&of_server)?;
    let providers = Providers { server, server_uri: SERVER_URI.to_owned(), client };
    let mut bar = Progress::new("calibrating", 0);
    let measured = measure(&providers, extent(quick), &mut |share| {
        bar.of("calibrating, percent", (share * 100.0) as u64, 100);
        !interrupt.asked()
    });
    drop(bar);
    let mut measured = measured.map_err(|error| match error {
        HostError::Run(RunError::Stopped) => Failure::Interrupted,
        HostError::System(_) => Failure::Environment(error.to_string()),
        _ => Failure::InvalidReported(error.to_string()),
    })?;
    let certificate = of_client.first().map(Certificate::der).unwrap_or_default();
    measured.add_jobs(host_jobs::measure(&*validator, certificate, quick)?);
    Ok(measured)
}

/// Corrects prices by measurements of the loads of [`conditions`], in any order. Returns the relative error of the
/// corrected profile for each load.
pub(super) fn correct(
    profile: &mut HostProfile,
    conditions: &[Condition],
    measurements: &[Measurement],
) -> Vec<(String, f64)> {
    let found = group(measurements);
    let group_of = |condition| {
        let of_load = found.iter().find(|group| group.condition.is_repeated_by(condition));
        of_load.cloned().unwrap_or(LoadGroup { condition, valid: Vec::new(), invalid: Vec::new() })
    };
    let groups: Vec<LoadGroup<'_>> = conditions.iter().map(group_of).collect();
    let all = groups.len();
    let told = taktwerk_lab::host::correct(profile, &groups);
    if told < all {
        let why = groups.iter().flat_map(|group| &group.invalid).flat_map(|one| &one.invalid).next();
        tracing::warn!(
            "{} of {all} loads of a whole server gave no figure; the prices that they correct stay those of bare sockets, \
             and of loopback: {}",
            all - told,
            why.map_or("no answers", String::as_str)
        );
    }
    let misses = taktwerk_lab::host::misses(profile, &groups);
    for (load, missed) in &misses {
        tracing::info!("{load}: simulated {:+.0} % off", missed * 100.0);
    }
    misses
}

/// Measures loads of a whole server and client.
fn whole(
    place: &Place,
    conditions: &[Condition],
    interrupt: &Interrupt,
) -> Result<Vec<Measurement>, Failure> {
    let plan: Vec<_> = conditions.iter().cloned().map(|condition| (DATA.to_owned(), condition)).collect();
    let plan: Vec<_> = runner::order(&plan).collect();
    let mut bar = Progress::new("calibrating with whole loads", plan.len() as u64);
    let mut all = Vec::new();
    for (at, repetition) in plan {
        let Some(condition) = conditions.get(at) else { continue };
        bar.at(all.len() as u64);
        let measured = place.measure(DATA, condition, repetition);
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        all.push(measured.unwrap_or_else(|error| {
            Measurement::failed(DATA, condition.clone(), repetition, error.to_string())
        }));
    }
    Ok(all)
}

/// Measures and writes the profile.
pub(super) fn run(
    file: &Path,
    place: &Place,
    quick: bool,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let (measured, misses) = calibrate(place, quick, interrupt)?;
    let off: Vec<f64> = misses.iter().map(|(_, missed)| missed.abs() * 100.0).collect();
    let off = taktwerk_lab::statistics::median(&off);
    super::write_whole(file, &measured.profile.to_toml())?;
    let (server, client) = (measured.server_error * 100.0, measured.client_error * 100.0);
    if output.is_json() {
        return output.document(&json!({
            "file": file,
            "profile": measured.profile,
            "steps": measured.steps,
            "server_error_percent": server,
            "client_error_percent": client,
            "whole_loads_percent":
                misses.iter().map(|(load, missed)| json!({ "load": load, "error": missed * 100.0 })).collect::<Vec<_>>(),
            "whole_loads_error_percent": off,
        }));
    }
    let profile = &measured.profile;
    output.text(&format!(
        "{}, {} CPUs: {} steps timed; median error of a step {server:.0} % (server), {client:.0} % (client){}\n\
         wrote {}; use it with `taktwerk sim FILE --host-profile {}`",
        profile.machine.cpu,
        profile.machine.cores,
        measured.steps,
        off.map_or_else(String::new, |off| format!(", of a whole load {off:.0} %")),
        file.display(),
        file.display()
    ))
}
