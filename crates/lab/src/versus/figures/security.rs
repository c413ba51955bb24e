//! Cost of security: round trips, sessions, and CPU per signal, with and without it.
//!
//! Round trips and single connections are measured with each stack's own client; sessions per second and CPU per signal
//! with our client for both servers.

use super::Figure;
use super::subscribe::every_value;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Outcome, Programs, Secured, Stand, VersusError};
use std::collections::BTreeMap;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SERVERS: [Side; 2] = [Side::Ours, Side::Peer];
const RSA: &str = "Basic256Sha256";

/// The modes, including no security as the baseline.
const MODES: [(&str, Option<Secured>); 3] = [
    ("None", None),
    ("Sign", Some(Secured { policy: RSA, encrypts: false })),
    ("SignAndEncrypt", Some(Secured { policy: RSA, encrypts: true })),
];

/// A row for a time with an upper limit relative to the peer's.
fn at_most_of_peer(
    figure: &'static str,
    what: String,
    samples: &Samples,
    name: &'static str,
    most: f64,
) -> Row {
    Row::new(figure, what, Unit::Micros)
        .figures(samples.median(Side::Ours, name), samples.median(Side::Peer, name), None)
        .ratio(samples.of(Side::Ours, name), samples.of(Side::Peer, name), Required::AtMost(most), "of peer")
}

/// Read round trip of one node, client and server on one CPU.
pub(super) struct SecureRead {
    pub(super) quick: bool,
}

impl Figure for SecureRead {
    fn id(&self) -> &'static str {
        "secure-read"
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let rounds = if self.quick { "10000" } else { "50000" };
        let mut quantities = Vec::new();
        for (name, security) in MODES {
            let server = stand.secured_server(side, 100, 0, security, true)?;
            let p50 = if side == Side::Ours {
                let arguments =
                    ["read", "--closed", "-n", rounds, "--batch", "1", "--nodes", "ns=1;i=100000"];
                let outcome = stand.secured_bench(&server, &arguments, security, true, LIMIT)?;
                outcome.number("/latency/uncorrected/p50_us")?
            } else {
                let arguments = ["--nodes", "1", "--requests", rounds, "--warmup", "1000"];
                stand
                    .peer_client("read-rtt", &server, &arguments, security, true, LIMIT)?
                    .number("/p50_us")?
            };
            quantities.push((name, p50));
        }
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = |(name, security): (&'static str, Option<Secured>)| {
            let most = if security.is_some_and(|security| security.encrypts) { 0.5 } else { 1.0 };
            at_most_of_peer("secure-read", format!("read round trip, one cpu, {name}"), samples, name, most)
        };
        MODES.into_iter().map(row).collect()
    }
}

/// Time from connecting to the activated session, one after the other.
pub(super) struct SecureConnect {
    pub(super) quick: bool,
}

/// Policy, and the names of the medians of the first and of later connections.
const CONNECTIONS: [(&str, &str, &str); 9] = [
    ("None", "None", "None, cold"),
    ("Basic256Sha256", "Basic256Sha256", "Basic256Sha256, cold"),
    ("Aes128_Sha256_RsaOaep", "Aes128_Sha256_RsaOaep", "Aes128_Sha256_RsaOaep, cold"),
    ("Aes256_Sha256_RsaPss", "Aes256_Sha256_RsaPss", "Aes256_Sha256_RsaPss, cold"),
    ("ECC_nistP256", "ECC_nistP256", "ECC_nistP256, cold"),
    ("ECC_nistP256_AesGcm", "ECC_nistP256_AesGcm", "ECC_nistP256_AesGcm, cold"),
    ("ECC_nistP256_ChaChaPoly", "ECC_nistP256_ChaChaPoly", "ECC_nistP256_ChaChaPoly, cold"),
    ("ECC_nistP384", "ECC_nistP384", "ECC_nistP384, cold"),
    ("ECC_curve25519", "ECC_curve25519", "ECC_curve25519, cold"),
];

/// Policies that the peer does not support, for information.
const OURS_ALONE: [(&str, &str, &str); 3] = [
    ("RSA_DH_AesGcm", "RSA_DH_AesGcm", "RSA_DH_AesGcm, cold"),
    ("ECC_nistP384_AesGcm", "ECC_nistP384_AesGcm", "ECC_nistP384_AesGcm, cold"),
    ("ECC_curve25519_AesGcm", "ECC_curve25519_AesGcm", "ECC_curve25519_AesGcm, cold"),
];

impl Figure for SecureConnect {
    fn id(&self) -> &'static str {
        "secure-connect"
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let count = if self.quick { "10" } else { "30" };
        let mut quantities = Vec::new();
        let alone = if side == Side::Ours { &OURS_ALONE[..] } else { &[] };
        for (policy, warm, cold) in CONNECTIONS.iter().chain(alone).copied() {
            let security = (policy != "None").then_some(Secured { policy, encrypts: true });
            let server = stand.secured_server(side, 10, 0, security, true)?;
            // Cold: the first connection of a new client to a new server.
            for (count, name) in [("1", cold), (count, warm)] {
                let p50 = if side == Side::Ours {
                    let arguments = ["connect", "-c", "1", "-n", count];
                    let outcome = stand.secured_bench(&server, &arguments, security, false, LIMIT)?;
                    outcome.number("/latency/uncorrected/p50_us")?
                } else {
                    let arguments = ["--count", count];
                    stand
                        .peer_client("connect", &server, &arguments, security, false, LIMIT)?
                        .number("/connect/p50_us")?
                };
                quantities.push((name, p50));
            }
        }
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = |name: &'static str| {
            at_most_of_peer("secure-connect", format!("connect, {name}"), samples, name, 1.0)
        };
        let alone = |name: &'static str| {
            let row = Row::new("secure-connect", format!("connect, {name}"), Unit::Micros);
            row.figures(samples.median(Side::Ours, name), None, None).for_information()
        };
        let rows = CONNECTIONS.iter().flat_map(|(_, warm, cold)| [row(warm), row(cold)]);
        rows.chain(OURS_ALONE.iter().flat_map(|(_, warm, cold)| [alone(warm), alone(cold)])).collect()
    }
}

/// Sessions per second with Basic256Sha256: opened and closed, eight at a time, by one or two generators that share two
/// CPUs with the server.
pub(super) struct SecureSessions {
    pub(super) quick: bool,
}

/// Session rate of a server over all generators.
struct SessionRate {
    per_second: f64,
    /// CPU time of the server per session, in microseconds.
    cpu: f64,
}

impl SessionRate {
    fn of(outcomes: &[Outcome]) -> Result<Self, VersusError> {
        let (mut per_second, mut busy) = (0.0, 0.0);
        for outcome in outcomes {
            let rate = outcome.number("/per_second")?;
            per_second += rate;
            // Each generator divides the server's total CPU time by its own sessions.
            busy += outcome.number("/server/cpu_us_per_session")? * rate / outcomes.len() as f64;
        }
        Ok(Self { per_second, cpu: busy / per_second })
    }
}

impl Figure for SecureSessions {
    fn id(&self) -> &'static str {
        "secure-sessions"
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let security = Some(Secured { policy: RSA, encrypts: true });
        let server = stand.secured_server(side, 10, 0, security, false)?;
        // One generator is a single thread that signs and decrypts as often as a server, so it may be the bottleneck.
        // One generator on each CPU takes CPU time from a single-threaded server. Each server is measured with the load
        // that suits it better.
        let duration = if self.quick { "2" } else { "5" };
        let load = |clients, beside| {
            let arguments = ["connect", "-c", clients, "-d", duration];
            stand.secured_bench(&server, &arguments, security, beside, LIMIT)
        };
        let one = SessionRate::of(&[load("8", false)?])?;
        let two = std::thread::scope(|scope| {
            let other = scope.spawn(|| load("4", true));
            let this = load("4", false)?;
            let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            SessionRate::of(&[this, other])
        })?;
        let SessionRate { per_second, cpu } = if two.per_second > one.per_second { two } else { one };
        // The load uses a share of both CPUs. The capacity of a server with both CPUs is computed from its CPU time:
        // ours signs on one thread per CPU, the peer on one thread.
        let threads = if side == Side::Ours { 2.0 } else { 1.0 };
        Ok(vec![("per_second", per_second), ("server_cpu", cpu), ("capacity", threads * 1e6 / cpu)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = |what: &str, name: &'static str, unit: Unit| {
            Row::new("secure-sessions", what, unit).figures(
                samples.median(Side::Ours, name),
                samples.median(Side::Peer, name),
                None,
            )
        };
        let of = |name, side| samples.of(side, name);
        vec![
            row("sessions, clients on the same cpus", "per_second", Unit::PerSecond).ratio(
                of("per_second", Side::Ours),
                of("per_second", Side::Peer),
                Required::AtLeast(2.0),
                "× peer",
            ),
            row("server CPU per session", "server_cpu", Unit::Micros).ratio(
                of("server_cpu", Side::Ours),
                of("server_cpu", Side::Peer),
                Required::AtMost(1.0),
                "of peer",
            ),
            // Computed, not measured: it shows the limit of the first row.
            row("computed for 2 dedicated cpus", "capacity", Unit::PerSecond).for_information(),
        ]
    }
}

/// Server CPU per signal at 50 000 signals/s, without security and with all of it.
pub(super) struct SecureSignals {
    pub(super) quick: bool,
    pub(super) clients: &'static str,
}

/// Signals that change every 100 ms.
const SIGNALS: usize = 5_000;
/// Messages are signed and encrypted in chunks of at most this many bytes.
const CHUNK_LEN: f64 = 65_536.0;
/// Limit: a quarter of the cost without security, or 20 % more than the bare cryptography.
const SHARE_MAX: f64 = 0.25;
const OF_FLOOR_MAX: f64 = 1.2;
/// Additional cost of a signal with encryption: the median of pairs of windows.
const ADDED: &str = "added";

impl Figure for SecureSignals {
    fn id(&self) -> &'static str {
        if self.clients == "1" { "secure-signals-1" } else { "secure-signals-10" }
    }

    fn lacks(&self, programs: &Programs) -> Option<&'static str> {
        programs
            .cipher
            .is_none()
            .then_some("the floor of cryptography is missing: `cargo xtask versus` builds it")
    }

    fn sides(&self) -> &[Side] {
        &SERVERS
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        // The difference is small. Both modes are measured in one process, because memory layout differs between
        // processes, and alternately, because the machine may slow down. Short windows and the median of pairs limit
        // the effect of other programs.
        let (rounds, seconds) = match (self.quick, side) {
            (true, _) => (1, "2"),
            (false, Side::Ours) => (3, "3"),
            (false, _) => (1, "4"),
        };
        let security = MODES[2].1;
        let server = stand.secured_server(side, SIGNALS, 100, security, true)?;
        let items = SIGNALS.to_string();
        let mut cpu_of = BTreeMap::<&'static str, Vec<f64>>::new();
        let mut bytes = None;
        for (name, security) in [MODES[0], MODES[2], MODES[2], MODES[0]].repeat(rounds) {
            let arguments = every_value(self.clients, &items, seconds);
            let outcome = stand.secured_bench(&server, &arguments, security, false, LIMIT)?;
            cpu_of.entry(name).or_default().push(outcome.number("/server/cpu_us_per_signal")?);
            if security.is_some() {
                let signals = outcome.number("/window_s")? * SIGNALS as f64 * 10.0;
                bytes = Some(outcome.number("/wire/payload_in_bytes")? / signals);
            }
        }
        let mut quantities = Vec::new();
        if let (Some(bytes), Side::Ours) = (bytes, side) {
            let per_message = bytes * SIGNALS as f64 / self.clients.parse::<f64>().unwrap_or(1.0);
            let length = per_message.clamp(64.0, CHUNK_LEN);
            let seal = stand.cipher(length as usize, LIMIT)?.number("/seal_ns")?;
            // Nanoseconds per byte at this length, multiplied by the bytes per signal.
            quantities.extend([("floor", seal / length * bytes / 1e3), ("bytes", bytes)]);
        }
        let median = |values: &[f64]| crate::statistics::median(values);
        if let (Some(none), Some(all)) = (cpu_of.get(MODES[0].0), cpu_of.get(MODES[2].0)) {
            let pairs: Vec<f64> = none.iter().zip(all).map(|(none, all)| all - none).collect();
            quantities.extend(median(&pairs).map(|added| (ADDED, added)));
        }
        quantities.extend(cpu_of.iter().filter_map(|(name, values)| Some((*name, median(values)?))));
        Ok(quantities)
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let (none, all) = (MODES[0].0, MODES[2].0);
        let (ours, peer) = (samples.of(Side::Ours, ADDED), samples.of(Side::Peer, ADDED));
        let median = |values: &[f64]| crate::statistics::median(values);
        let limits = samples.of(Side::Ours, none).iter().zip(samples.of(Side::Ours, "floor"));
        let limits: Vec<f64> =
            limits.map(|(none, floor)| (SHARE_MAX * none).max(OF_FLOOR_MAX * floor)).collect();
        let clients =
            if self.clients == "1" { "1 client".to_owned() } else { format!("{} clients", self.clients) };
        let plain = |what: &str, name: &'static str| {
            at_most_of_peer(self.id(), format!("CPU per signal, {clients}, {what}"), samples, name, 1.0)
        };
        vec![
            plain("None", none),
            plain("SignAndEncrypt", all),
            Row::new(self.id(), format!("added by encryption, {clients}"), Unit::Micros)
                .figures(median(ours), median(peer), samples.median(Side::Ours, "floor"))
                .ratio(ours, &limits, Required::AtMost(1.0), "of allowed")
                .and_only_if(
                    median(ours).zip(samples.median(Side::Ours, "floor")).is_some_and(|(added, floor)| added >= floor / 2.0),
                    "encryption appears to cost less than half of its bare cryptography: this is noise, measure again",
                ),
        ]
    }
}
