//! The costs of a host profile, prepared for computation.

use super::machine::{Cold, nanoseconds};
use core::time::Duration;
use std::collections::BTreeMap;
use taktwerk_client::Work as ClientWork;
use taktwerk_crypto::{Job as CryptoJob, SecurityPolicy};
use taktwerk_model::host::{Cost, HostProfile, ProfileError};
use taktwerk_server::{JobKind, UserProofKind, Work as ServerWork};

/// Costs of a driver in addition to the core, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DriverCosts {
    /// Putting a thread to sleep and waking it.
    pub wake: f64,
    /// Polling the system for events and reading the clocks.
    pub turn: f64,
    /// Receiving from one connection.
    pub receive: f64,
    /// Sending on one connection.
    pub send: f64,
    /// Serving deadlines.
    pub timer: f64,
    /// Additional time of a turn after the processor has slept.
    pub cold: f64,
    /// The same after a long sleep.
    pub cold_deep: f64,
}

impl DriverCosts {
    pub(crate) fn cold(&self) -> Cold {
        let asleep = nanoseconds(self.cold);
        Cold { asleep, deep: nanoseconds(self.cold_deep).max(asleep) }
    }
}

/// The name of the cost of storing values of history.
pub const RECORDING: &str = "append-history";

/// The names of the fields of [`DriverCosts`], in their order.
pub const DRIVER_NAMES: [&str; 7] = ["wake", "turn", "receive", "send", "timer", "cold", "cold_deep"];

/// Additional costs per byte of messages that are signed or encrypted with symmetric keys, received and sent.
const SEALED_NAMES: [&str; 2] = ["sealed_bytes_received", "sealed_bytes_sent"];
const SERVER_COUNT: usize = ServerWork::NAMES.len() + SEALED_NAMES.len();
const CLIENT_COUNT: usize = ClientWork::NAMES.len() + SEALED_NAMES.len();

/// Names of the counters of a server's work in profiles.
#[must_use]
pub fn server_names() -> Vec<&'static str> {
    ServerWork::NAMES.into_iter().chain(SEALED_NAMES).collect()
}

/// Names of the counters of a client's work in profiles.
#[must_use]
pub fn client_names() -> Vec<&'static str> {
    ClientWork::NAMES.into_iter().chain(SEALED_NAMES).collect()
}

/// Counters of a server's work, in the order of [`server_names`].
#[must_use]
pub fn server_counts(work: &ServerWork) -> Vec<u64> {
    let sealed = sealed(work.signatures, work.bytes_received, work.bytes_sent);
    work.counts().into_iter().chain(sealed).collect()
}

/// Counters of a client's work, in the order of [`client_names`].
#[must_use]
pub fn client_counts(work: &ClientWork) -> Vec<u64> {
    let sealed = sealed(work.signatures, work.bytes_received, work.bytes_sent);
    work.counts().into_iter().chain(sealed).collect()
}

/// Bytes count as sealed if the step has signatures.
const fn sealed(signatures: u64, received: u64, sent: u64) -> [u64; 2] {
    if signatures > 0 { [received, sent] } else { [0, 0] }
}

/// Costs of a machine's work.
#[derive(Debug, Clone)]
pub struct Costs {
    pub(crate) cores: u32,
    pub(crate) slice: Duration,
    pub(crate) wake: Cost,
    pub(crate) wake_asleep: Option<Cost>,
    pub(crate) asleep: Duration,
    pub(crate) deep: Duration,
    pub(crate) noise: Cost,
    pub(crate) server: DriverCosts,
    server_work: [f64; SERVER_COUNT],
    pub(crate) client: DriverCosts,
    client_work: [f64; CLIENT_COUNT],
    jobs: BTreeMap<String, Cost>,
    client_jobs: BTreeMap<String, Cost>,
}

impl Costs {
    /// Reads the costs from a profile.
    ///
    /// # Errors
    /// A value is invalid, or its name is unknown because the profile is of another version.
    pub fn new(profile: &HostProfile) -> Result<Self, ProfileError> {
        profile.check()?;
        let (server, server_work) = split("server", &profile.server, &server_names())?;
        let (client, client_work) = split("client", &profile.client, &client_names())?;
        known("emulated.server", &profile.emulated.server, &server_names())?;
        known("emulated.client", &profile.emulated.client, &client_names())?;
        Ok(Self {
            cores: profile.machine.cores,
            slice: Duration::from_nanos(profile.scheduler.slice as u64),
            wake: profile.scheduler.wake.clone(),
            wake_asleep: profile.scheduler.wake_asleep.clone(),
            asleep: Duration::from_nanos(profile.scheduler.asleep as u64),
            deep: Duration::from_nanos(profile.scheduler.deep as u64),
            noise: profile.scheduler.noise.clone(),
            server,
            server_work,
            client,
            client_work,
            jobs: profile.jobs.clone(),
            client_jobs: profile.client_jobs.clone(),
        })
    }

    /// Nanoseconds of a server's work, without its driver.
    #[must_use]
    pub fn of_server(&self, work: &ServerWork) -> f64 {
        let sealed = sealed(work.signatures, work.bytes_received, work.bytes_sent);
        sum(&self.server_work, work.counts().into_iter().chain(sealed))
    }

    /// Nanoseconds of a client's work, without its driver.
    #[must_use]
    pub fn of_client(&self, work: &ClientWork) -> f64 {
        let sealed = sealed(work.signatures, work.bytes_received, work.bytes_sent);
        sum(&self.client_work, work.counts().into_iter().chain(sealed))
    }

    /// The part of [`Self::of_client`] after the delivery: applications receive values as they are decoded.
    #[must_use]
    pub fn of_client_behind(&self, work: &ClientWork) -> f64 {
        let mut behind = ClientWork::default();
        behind.notifications = work.notifications;
        self.of_client(&behind)
    }

    /// Costs of a server's slow job; `None` if it is not in the profile.
    ///
    /// A profile has no costs for combinations of a handshake with a user: they are composed. A user's secret or a key
    /// for it is one more operation with the server's private key, which costs as much as signing a session; a user's
    /// certificate costs as much as the client's.
    #[must_use]
    pub fn of_job(&self, kind: JobKind) -> Option<Vec<&Cost>> {
        let find = |kind: JobKind| self.jobs.get(&kind.name());
        if let Some(cost) = find(kind) {
            return Some(vec![cost]);
        }
        let sign = |policy| find(JobKind::SignSession { policy, offers_key: false });
        let prove = |policy| {
            let (client, user) = (Some(policy), UserProofKind::None);
            find(JobKind::ProveSession { client, user, offers_key: false })
        };
        let parts = match kind {
            JobKind::SignSession { policy, offers_key: true } => [sign(policy), sign(policy), None],
            JobKind::ProveSession { client, user, offers_key } => {
                let key = client.filter(|_| offers_key).and_then(sign);
                let user = match user {
                    UserProofKind::Secret(policy) => sign(policy),
                    UserProofKind::Signature(policy) => prove(policy),
                    _ => None,
                };
                [client.and_then(prove), user, key]
            }
            _ => [None; 3],
        };
        let parts: Vec<&Cost> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then_some(parts)
    }

    /// Cost of storing up to 1 000 values of history; `None` if it is not in the profile. Profiles of earlier versions
    /// only have the cost of replacing them, which is higher.
    #[must_use]
    pub fn of_recording(&self) -> Option<&Cost> {
        self.jobs.get(RECORDING).or_else(|| self.jobs.get(&JobKind::UpdateHistory.name()))
    }

    /// Mean costs in nanoseconds of making and verifying the signature of a certificate authority: RSA with 2 048 bits
    /// and SHA-256. 0 without a price.
    pub(crate) fn of_signatures(&self) -> (f64, f64) {
        let policy = SecurityPolicy::Basic256Sha256;
        let sign = self.jobs.get(&JobKind::SignSession { policy, offers_key: false }.name());
        let verify = self.client_jobs.get(&format!("verify/{}", policy.name()));
        let mean = |cost: Option<&Cost>| cost.map_or(0.0, Cost::mean);
        (mean(sign), mean(verify))
    }

    /// Cost of a client's slow job; `None` if it is not in the profile. Encrypting a secret is an operation with a
    /// public key, as verifying a signature.
    #[must_use]
    pub fn of_client_job(&self, job: &CryptoJob) -> Option<&Cost> {
        let of = |name: &str| self.client_jobs.get(name);
        match job {
            CryptoJob::SealSecret(seal) => {
                of("seal-secret").or_else(|| of(&format!("verify/{}", seal.policy.name())))
            }
            job => of(&client_job_name(job)),
        }
    }
}

/// Name of a client's slow job in host profiles.
#[must_use]
pub fn client_job_name(job: &CryptoJob) -> String {
    match job {
        CryptoJob::OpenChunk(open) => format!("open-chunk/{}", open.policy.name()),
        CryptoJob::SealChunk(seal) => format!("seal-chunk/{}", seal.policy.name()),
        CryptoJob::Sign { policy, .. } => format!("sign/{}", policy.name()),
        CryptoJob::Verify { policy, .. } => format!("verify/{}", policy.name()),
        CryptoJob::Encrypt { policy, .. } => format!("encrypt/{}", policy.name()),
        CryptoJob::Decrypt { policy, .. } => format!("decrypt/{}", policy.name()),
        CryptoJob::SealSecret(_) => "seal-secret".into(),
        CryptoJob::OpenSecret(_) => "open-secret".into(),
        CryptoJob::Validate { .. } => "validate-certificate".into(),
    }
}

fn sum(costs: &[f64], counts: impl Iterator<Item = u64>) -> f64 {
    costs.iter().zip(counts).map(|(cost, count)| cost * count as f64).sum()
}

/// Checks that all names are counters of this version or costs of its driver.
fn known(section: &str, all: &BTreeMap<String, f64>, names: &[&str]) -> Result<(), ProfileError> {
    for (name, cost) in all {
        if !names.contains(&name.as_str()) && !DRIVER_NAMES.contains(&name.as_str()) {
            return Err(ProfileError::Value {
                key: format!("{section}.{name}"),
                value: cost.to_string(),
                must: "not a counter of this version. Run `taktwerk lab calibrate --host` again",
            });
        }
    }
    Ok(())
}

fn split<const N: usize>(
    section: &str,
    all: &BTreeMap<String, f64>,
    names: &[&str],
) -> Result<(DriverCosts, [f64; N]), ProfileError> {
    known(section, all, names)?;
    let cost = |name: &str| all.get(name).copied().unwrap_or(0.0);
    let mut work = [0.0; N];
    work.iter_mut().zip(names).for_each(|(price, name)| *price = cost(name));
    let [wake, turn, receive, send, timer, cold, cold_deep] = DRIVER_NAMES.map(cost);
    Ok((DriverCosts { wake, turn, receive, send, timer, cold, cold_deep }, work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_multiplied_by_their_costs() {
        let mut profile = HostProfile::free(2);
        profile.server.insert("operations".into(), 30.0);
        profile.server.insert("bytes_sent".into(), 0.5);
        profile.server.insert("signatures".into(), 7.0);
        profile.server.insert("sealed_bytes_sent".into(), 2.0);
        profile.server.insert("send".into(), 4_000.0);
        profile.jobs.insert("open-channel/Basic256Sha256".into(), Cost::Fixed(7e5));
        let costs = Costs::new(&profile).unwrap();
        let mut work = ServerWork::default();
        (work.operations, work.bytes_sent) = (10, 100);
        assert_eq!(costs.of_server(&work), 350.0);
        work.signatures = 2;
        assert_eq!(costs.of_server(&work), 350.0 + 100.0 * 2.0 + 2.0 * 7.0);
        assert_eq!(server_counts(&work).len(), server_names().len());
        assert_eq!(server_counts(&work).last(), Some(&100));
        assert_eq!(costs.server.send, 4_000.0);
        let kind = JobKind::OpenChannel(SecurityPolicy::Basic256Sha256);
        assert_eq!(costs.of_job(kind), Some(vec![&Cost::Fixed(7e5)]));
        assert_eq!(costs.of_job(JobKind::CallMethod), None);
    }

    #[test]
    fn unknown_counters_are_refused() {
        let mut profile = HostProfile::free(2);
        profile.client.insert("widgets".into(), 1.0);
        assert!(
            Costs::new(&profile).unwrap_err().to_string().starts_with("client.widgets = 1: not a counter")
        );
    }
}
