//! Measures the cost of work on this machine in about a minute: the host profile for the simulator.
//!
//! - `cores`: client and server cores, run in virtual time and timed with a real clock;
//! - `fit`: costs per counter from these times;
//! - `drivers`: the operating system's cost of a message over loopback;
//! - `whole`: correction of the system's costs by loads of a real server and client.

mod cores;
mod drivers;
mod fit;
mod whole;

pub use cores::{Extent, Samples};
pub use whole::{conditions, correct, misses};

use crate::machine::Machine;
use crate::report::date;
use std::collections::BTreeMap;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use taktwerk_model::HostProfile;
use taktwerk_model::host::{BuildFacts, EmulatedCosts, FORMAT, MachineFacts, SchedulerCosts};
use taktwerk_sim::scenario::RunError;
use taktwerk_sim::scenario::instruments::Providers;

/// A host profile cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A run failed.
    #[error("a calibration run failed: {0}")]
    Run(#[from] RunError),
    /// A system call failed.
    #[error("cannot measure the system's part: {0}")]
    System(#[from] io::Error),
    /// Too few samples.
    #[error("{0} has too few samples for a fit: measure again on a machine with less load")]
    TooFew(&'static str),
}

/// A profile with its fit errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The profile.
    pub profile: HostProfile,
    /// Median relative error of one step of a server.
    pub server_error: f64,
    /// Median relative error of one step of a client.
    pub client_error: f64,
    /// Number of timed steps.
    pub steps: usize,
}

/// Measures this machine. `providers` are the real cryptography of both ends. `report` receives the completed share and
/// returns whether to continue.
///
/// # Errors
/// [`HostError`]; [`RunError::Stopped`] if `report` returns false.
pub fn measure(
    providers: &Providers,
    extent: Extent,
    report: &mut dyn FnMut(f64) -> bool,
) -> Result<Measured, HostError> {
    let samples = cores::run(providers, extent, report)?;
    let drivers = drivers::measure(extent)?;
    let server = fit::fit(&samples.server, &samples.server_asleep, &samples.server_deep)
        .ok_or(HostError::TooFew("the server"))?;
    let client = fit::fit(&samples.client, &samples.client_asleep, &samples.client_deep)
        .ok_or(HostError::TooFew("the client"))?;
    let with_drivers = |fitted: &fit::Fitted, names: &[&str]| {
        let mut costs: BTreeMap<String, f64> =
            names.iter().zip(&fitted.costs).map(|(name, cost)| ((*name).to_owned(), *cost)).collect();
        costs.insert("timer".to_owned(), fitted.timer);
        costs.insert("wake".to_owned(), drivers.wake);
        costs.insert("turn".to_owned(), drivers.turn);
        costs.insert("receive".to_owned(), drivers.receive);
        costs.insert("send".to_owned(), drivers.send);
        costs.insert("cold".to_owned(), drivers.cold + fitted.cold);
        costs.insert("cold_deep".to_owned(), drivers.cold_deep + fitted.cold_deep);
        costs.retain(|_, cost| *cost > 0.0);
        costs.values_mut().for_each(|cost| *cost = rounded(*cost));
        costs
    };
    let machine = Machine::this();
    let build = if machine.optimised { "" } else { "; a debug build: do not use it for predictions" };
    let profile = HostProfile {
        format: FORMAT,
        name: machine.cpu.clone(),
        source: format!(
            "measured on {} by `taktwerk lab calibrate --host`: medians of {} steps{build}",
            date(now_ms()),
            samples.server.len() + samples.client.len()
        ),
        machine: MachineFacts {
            cpu: machine.cpu,
            cores: u32::try_from(machine.cpus).unwrap_or(u32::MAX),
            kernel: machine.kernel,
        },
        build: BuildFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        },
        scheduler: SchedulerCosts {
            wake: drivers.latency,
            wake_asleep: Some(drivers.latency_asleep),
            asleep: cores::PAUSE.as_secs_f64() * 1e9,
            deep: cores::LONG_PAUSE.as_secs_f64() * 1e9,
            ..SchedulerCosts::default()
        },
        server: with_drivers(&server, &taktwerk_sim::host::costs::server_names()),
        client: with_drivers(&client, &taktwerk_sim::host::costs::client_names()),
        emulated: EmulatedCosts::default(),
        jobs: samples.jobs.into_iter().map(|(name, times)| (name, fit::distribution(times))).collect(),
        client_jobs: samples
            .client_jobs
            .into_iter()
            .map(|(name, times)| (name, fit::distribution(times)))
            .collect(),
    };
    let steps = samples.server.len() + samples.client.len();
    Ok(Measured { profile, server_error: server.error, client_error: client.error, steps })
}

impl Measured {
    /// Adds jobs of servers that were timed elsewhere, in nanoseconds, by their names in profiles. Existing times from
    /// a run of client and server are kept.
    pub fn add_jobs(&mut self, times: BTreeMap<String, Vec<f64>>) {
        for (name, times) in times.into_iter().filter(|(_, times)| !times.is_empty()) {
            self.profile.jobs.entry(name).or_insert_with(|| fit::distribution(times));
        }
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Rounds to four significant digits; more would suggest false precision.
fn rounded(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(3 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests;
