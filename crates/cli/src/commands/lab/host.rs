//! `lab calibrate --host`: what work takes on this machine, for the simulator.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use taktwerk_crypto::aws_lc::{AwsLcProvider, Identity};
use taktwerk_crypto::{CertificatePurpose, CertificateValidator, CryptoError, Provider};
use taktwerk_lab::host::{Extent, HostError, Measured, measure};
use taktwerk_lab::machine::Machine;
use taktwerk_pki::create::self_signed;
use taktwerk_pki::{CertificateSettings, NewKey, PrivateKey};
use taktwerk_sim::scenario::RunError;
use taktwerk_sim::scenario::instruments::Providers;

const SERVER_URI: &str = "urn:taktwerk:calibration:server";
const CLIENT_URI: &str = "urn:taktwerk:calibration:client";

/// Both ends are this program.
#[derive(Debug)]
struct Trusting;

impl CertificateValidator for Trusting {
    fn validate(&self, _: &[u8], _: &CertificatePurpose) -> Result<(), CryptoError> {
        Ok(())
    }
}

fn provider(uri: &str) -> Result<Arc<dyn Provider>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Environment(error.to_string());
    let key = PrivateKey::generate(NewKey::Rsa2048).map_err(|error| failed(&error))?;
    let settings = CertificateSettings::new("calibration", uri);
    let certificate = self_signed(&settings, &key).map_err(|error| failed(&error))?;
    let identity = Identity::new(certificate.der().to_vec(), key.pkcs8()).map_err(|error| failed(&error))?;
    Ok(Arc::new(AwsLcProvider::new(Arc::new(Trusting)).with_identity(identity)))
}

/// Measures this machine.
pub(super) fn calibrate(quick: bool, interrupt: &Interrupt) -> Result<Measured, Failure> {
    if !Machine::this().optimised {
        tracing::warn!("this is a debug build: its profile says nothing about a release");
    }
    let server = provider(SERVER_URI)?;
    let providers = Providers { server, server_uri: SERVER_URI.to_owned(), client: provider(CLIENT_URI)? };
    let extent = if quick { Extent::Smoke } else { Extent::Full };
    let mut bar = Progress::new("calibrating", 0);
    let measured = measure(&providers, extent, &mut |share| {
        bar.of("calibrating, percent", (share * 100.0) as u64, 100);
        !interrupt.asked()
    });
    drop(bar);
    measured.map_err(|error| match error {
        HostError::Run(RunError::Stopped) => Failure::Interrupted,
        HostError::System(_) => Failure::Environment(error.to_string()),
        _ => Failure::Worthless(error.to_string()),
    })
}

/// Measures, and writes the profile.
pub(super) fn run(file: &Path, quick: bool, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let measured = calibrate(quick, interrupt)?;
    super::write_whole(file, &measured.profile.to_toml())?;
    let (server, client) = (measured.server_error * 100.0, measured.client_error * 100.0);
    if output.is_json() {
        return output.document(&json!({
            "file": file,
            "profile": measured.profile,
            "steps": measured.steps,
            "server_error_percent": server,
            "client_error_percent": client,
        }));
    }
    let profile = &measured.profile;
    output.text(&format!(
        "{}, {} CPUs: {} steps timed; median error of a step {server:.0} % (server), {client:.0} % (client)\n\
         wrote {}; use it with `taktwerk sim FILE --host-profile {}`",
        profile.machine.cpu,
        profile.machine.cores,
        measured.steps,
        file.display(),
        file.display()
    ))
}
