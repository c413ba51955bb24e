//! The processors of 2010: what messages, RSA and certificates cost, fitted to Table 2.

use super::{ENCRYPTED, Failed, NONE, POLICY, link};
use std::time::Duration;
use taktwerk_model::HostProfile;
use taktwerk_model::host::Cost;
use taktwerk_sim::Transport;
use taktwerk_sim::authority::{Authority, Protocol};
use taktwerk_sim::calls::{Block, Checks, Remote, Setup, call};
use taktwerk_sim::network::soap::{self, Body, Soap};

/// SOAP as in the paper's Figure 5: the security layer makes chunks, the transport layer wraps them in envelopes.
const SOAP: Soap = Soap {
    body: Body::Binary,
    security: soap::Security::UaSecureConversation,
    per_message: Duration::ZERO,
    per_secured_message: Duration::ZERO,
    per_byte_ps: 0,
};

/// Costs in nanoseconds, the same on the client's and the server's machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Machine {
    /// Per chunk sent or received.
    pub(super) chunk: f64,
    /// Per session opened, in addition to its messages: reading certificates and starting threads.
    pub(super) session: f64,
    /// An operation with a private key.
    pub(super) rsa: f64,
    /// Per answer of the local certificate authority, in addition to its messages and its signature.
    pub(super) local_authority: f64,
    /// Per byte sent or received.
    pub(super) byte: f64,
}

/// Cost of a public-key operation relative to a private-key operation: RSA with 2 048 bits and exponent 65 537.
const PUBLIC: f64 = 1.0 / 30.0;
/// Maximum number of steps of a fit, and the accepted relative error.
const STEPS: u32 = 40;
const EXACT: f64 = 1e-4;

impl Machine {
    /// The host profile. Servers, clients and certificate authorities have such machines.
    pub(super) fn profile(&self) -> HostProfile {
        let mut profile = HostProfile::free(1);
        profile.name = "2010".into();
        profile.source = "fitted to Cavalieri and Chiacchio 2013, Table 2, rows 1 to 3".into();
        for costs in [&mut profile.server, &mut profile.client] {
            for name in ["chunks_received", "chunks_sent"] {
                costs.insert(name.into(), self.chunk);
            }
            for name in ["bytes_received", "bytes_sent"] {
                costs.insert(name.into(), self.byte);
            }
        }
        let (private, public) = (self.rsa, self.rsa * PUBLIC);
        let policy = POLICY.name();
        let jobs = [
            (format!("open-channel/{policy}"), private + public),
            (format!("answer-channel/{policy}"), private + public),
            (format!("sign-session/{policy}"), private),
            (format!("prove-session/{policy}"), public),
        ];
        profile.jobs.extend(jobs.map(|(name, cost)| (name, Cost::Fixed(cost))));
        let jobs = [
            (format!("seal-chunk/{policy}"), private + public),
            (format!("open-chunk/{policy}"), private + public),
            (format!("sign/{policy}"), private),
            (format!("verify/{policy}"), public),
        ];
        profile.client_jobs.extend(jobs.map(|(name, cost)| (name, Cost::Fixed(cost))));
        profile
    }
}

/// How certificates are checked: the paper's scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    /// 1: no security.
    None,
    /// 2: a secure channel without certificate validation.
    Unchecked,
    /// 3: a certificate authority on the same machine.
    Local,
    /// 4: a hierarchy of remote certificate authorities.
    Remote,
}

/// The authorities from the issuer of a certificate to the root.
const LEVELS: [&str; 3] = ["issuer", "intermediate", "root"];
/// The line of each remote authority.
const FAR: &str = "rate=2mbit,delay=50ms";
/// Two round trips over it: one for the connection, one for request and answer.
const FAR_TRIPS: Duration = Duration::from_millis(200);
/// Bytes of an OCSP answer with the certificate of its signer, and of one with a chain of certificates.
const LOCAL_ANSWER: usize = 1_900;
const FAR_ANSWER: usize = 4_000;

fn authority(name: &str, response_len: usize, processing: Duration) -> Authority {
    Authority { name: name.to_owned(), protocol: Protocol::Ocsp, response_len, processing }
}

/// The remote hierarchy. The paper took its delays from real authorities and does not print them. Its §3.1 calls 5 to
/// 10 s usual for validating one certificate. We divide the middle of this range among three authorities behind a wide
/// area network. Each has a machine like those of server and client.
fn hierarchy(one_certificate: Duration, machine: &Machine) -> Result<Vec<Remote>, Failed> {
    let far = link(FAR)?;
    let processing = (one_certificate / LEVELS.len() as u32).saturating_sub(FAR_TRIPS);
    let remote = |name: &str| Remote {
        authority: authority(name, FAR_ANSWER, processing),
        link: far.clone(),
        host: Some(machine.profile()),
    };
    Ok(LEVELS.map(remote).to_vec())
}

/// Usual time to validate one certificate according to the paper's §3.1: the middle of 5 and 10 s.
pub(super) const USUAL_CHECK: Duration = Duration::from_millis(7_500);

/// Everything that opening a session depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assumptions {
    pub(super) machine: Machine,
    pub(super) soap: Soap,
    /// Time to validate one certificate with the remote hierarchy, if nobody else asks.
    pub(super) remote: Duration,
    /// Other clients and servers that open a session at the same time.
    pub(super) others: u32,
}

impl Assumptions {
    /// The setup of a scenario. Whether messages are signed or encrypted is not part of it.
    pub(super) fn setup(&self, scenario: Scenario, is_soap: bool, line: &str) -> Result<Setup, Failed> {
        let checks = match scenario {
            Scenario::None | Scenario::Unchecked => Checks::None,
            Scenario::Local => {
                let processing = Duration::from_secs_f64(self.machine.local_authority / 1e9);
                Checks::Local(authority("local", LOCAL_ANSWER, processing))
            }
            Scenario::Remote => Checks::Remote(hierarchy(self.remote, &self.machine)?),
        };
        let profile = self.machine.profile();
        Ok(Setup {
            transport: if is_soap { Transport::Soap(self.soap) } else { Transport::UaTcp },
            security: if scenario == Scenario::None { NONE } else { ENCRYPTED },
            server: Some(profile.clone()),
            client: Some(profile),
            checks,
            others: self.others,
            ..Setup::new(link(line)?)
        })
    }

    /// Seconds until a session, or the last of several, is activated over the 2 Mbit/s line.
    pub(super) fn session(&self, scenario: Scenario, is_soap: bool) -> Result<f64, Failed> {
        let setup = self.setup(scenario, is_soap, "ppp-2m")?;
        let calls = call(&setup, &[]).map_err(|error| error.to_string())?;
        Ok(calls.session_up.as_secs_f64() + self.machine.session / 1e9)
    }

    /// Seconds to read one 4-byte value over that line without security.
    fn smallest(&self) -> Result<f64, Failed> {
        let setup = self.setup(Scenario::None, false, "ppp-2m")?;
        let calls = call(&setup, &[Block::new(1, 4)]).map_err(|error| error.to_string())?;
        Ok(calls.round_trips.first().map_or(f64::NAN, Duration::as_secs_f64))
    }
}

/// The value at which a growing function reaches a target, by false position. Fails if no value between 0 and `most`
/// reaches it.
pub(super) fn fit(
    what: &str,
    target: f64,
    most: f64,
    of: impl Fn(f64) -> Result<f64, Failed>,
) -> Result<f64, Failed> {
    let off = |value: f64| of(value).map(|reached| reached - target);
    let (mut low, mut high) = ((0.0, off(0.0)?), (most, off(most)?));
    if low.1 > 0.0 || high.1 < 0.0 {
        return Err(format!("{what} cannot be fitted: no value up to {most} leads to {target}"));
    }
    let (mut best, mut last_is_low) = (low, None);
    for _ in 0..STEPS {
        let value = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
        best = (value, off(value)?);
        if best.1.abs() <= target * EXACT {
            break;
        }
        let is_low = best.1 < 0.0;
        if is_low {
            low = best;
        } else {
            high = best;
        }
        // Halve the weight of an end that stays (the Illinois rule); otherwise the other end converges slowly.
        if last_is_low == Some(is_low) {
            if is_low { high.1 /= 2.0 } else { low.1 /= 2.0 }
        }
        last_is_low = Some(is_low);
    }
    Ok(best.0)
}

/// Rows 1 to 3 of Table 2 with UA TCP, seconds.
pub(super) struct Rows {
    pub(super) none: f64,
    pub(super) unchecked: f64,
    pub(super) local: f64,
}

/// Largest cost tried, in nanoseconds.
const MOST: f64 = 1e9;

/// Fits RSA to row 2 and the local authority to row 3 for a machine that is already fitted to row 1.
fn fit_security(machine: Machine, rows: &Rows) -> Result<Machine, Failed> {
    let base = assumptions(machine);
    let session = |machine: Machine, scenario| Assumptions { machine, ..base }.session(scenario, false);
    let rsa =
        fit("RSA", rows.unchecked, MOST, |rsa| session(Machine { rsa, ..machine }, Scenario::Unchecked))?;
    let machine = Machine { rsa, ..machine };
    let local_authority = fit("the local authority", rows.local, MOST, |local_authority| {
        session(Machine { local_authority, ..machine }, Scenario::Local)
    })?;
    Ok(Machine { local_authority, ..machine })
}

/// A machine on which all messages cost the same.
pub(super) fn fitted(rows: &Rows) -> Result<Machine, Failed> {
    let of = |chunk| assumptions(Machine { chunk, ..Machine::default() }).session(Scenario::None, false);
    let chunk = fit("a message", rows.none, MOST, of)?;
    fit_security(Machine { chunk, ..Machine::default() }, rows)
}

/// A machine whose message cost is fitted to the round trip of 4 bytes and whose session cost is the rest of row 1.
pub(super) fn split(rows: &Rows, round_trip: f64) -> Result<Machine, Failed> {
    let of = |chunk| assumptions(Machine { chunk, ..Machine::default() }).smallest();
    let chunk = fit("a message", round_trip, MOST, of)?;
    let of = |session| {
        assumptions(Machine { chunk, session, ..Machine::default() }).session(Scenario::None, false)
    };
    let session = fit("a session", rows.none, MOST, of)?;
    fit_security(Machine { chunk, session, ..Machine::default() }, rows)
}

/// The default assumptions for a machine.
pub(super) fn assumptions(machine: Machine) -> Assumptions {
    Assumptions { machine, soap: SOAP, remote: USUAL_CHECK, others: 0 }
}
