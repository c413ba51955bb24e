//! Honest clients that log on during an attack, with slow links and slow users: a round trip of 50 ms, and 300 ms
//! between CreateSession and ActivateSession.
//!
//! Each client calls GetEndpoints on its own connection, connects again, logs on, reads a value and closes its session.

use crate::Run;
use crate::guessed::HONEST;
use crate::report::{Findings, Tally};
use crate::wire::{Wire, WireError, dial};
use core::sync::atomic::{AtomicBool, Ordering};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use taktwerk_channel::OpenParams;
use taktwerk_crypto::{
    MessageSecurityMode, NullProvider, Provider, SealSecret, Secret, SecurityPolicy, SessionBinding,
};
use taktwerk_net::clock::wall;
use taktwerk_schema::{
    ActivateSessionRequest, ApplicationDescription, CloseSessionRequest, CreateSessionRequest,
    GetEndpointsRequest, ReadRequest, ReadValueId, SignatureData, UserNameIdentityToken,
};
use taktwerk_types::{ExtensionObject, NodeId};

const ROUND_TRIP: Duration = Duration::from_millis(50);
/// Time between CreateSession and ActivateSession.
const HESITATION: Duration = Duration::from_millis(300);
/// Duration of the attack before the first login.
const BEFORE: Duration = Duration::from_secs(2);
/// Number of logins of each kind, and how many must succeed.
const LOGINS: u16 = 15;
const LOGINS_MIN: usize = 14;
const URL: &str = "opc.tcp://localhost:4840";
const POLICY: SecurityPolicy = SecurityPolicy::Basic256Sha256;

/// The kind of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// With certificate and password, from the address of the canary.
    Known,
    /// With certificate and password, each from an address and network of its own.
    Certified,
    /// Anonymous and without security, each from an address and network of its own.
    Anonymous,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Known, Self::Certified, Self::Anonymous];

    /// The names for facts and for claims.
    const fn titles(self) -> (&'static str, &'static str) {
        match self {
            Self::Known => ("newcomers, known address", "with certificate and password from a known address"),
            Self::Certified => {
                ("newcomers, new addresses", "with certificate and password from new addresses")
            }
            Self::Anonymous => ("newcomers, anonymous", "anonymous over None from new addresses"),
        }
    }

    /// The address of a login.
    fn source(self, number: u16) -> Option<IpAddr> {
        let [_, low] = number.to_be_bytes();
        match self {
            Self::Known => None,
            Self::Certified => Some(IpAddr::V4(Ipv4Addr::new(127, 64, low, 7))),
            Self::Anonymous => Some(IpAddr::V4(Ipv4Addr::new(127, 65, low, 7))),
        }
    }
}

/// Logins of one kind.
#[derive(Debug, Default)]
struct Logins {
    times: Vec<Duration>,
    failures: Tally,
}

/// Runs an attack for at least `run.duration` and until all newcomers have finished, and reports which of them logged
/// on.
///
/// `attack` must return when it is told to stop.
pub(crate) fn beside<T: Send>(
    run: &Run<'_>,
    findings: &mut Findings,
    attack: impl FnOnce(&AtomicBool) -> T + Send,
) -> Result<T, String> {
    let over = AtomicBool::new(false);
    let (outcome, all) = thread::scope(|scope| {
        let attacker = scope.spawn(|| attack(&over));
        let began = Instant::now();
        let honest: Vec<_> = Kind::ALL.map(|kind| scope.spawn(move || log_on(run, kind))).into();
        let all: Vec<_> = honest.into_iter().map(|kind| kind.join().unwrap_or_default()).collect();
        while began.elapsed() < run.duration && !run.is_over() {
            thread::sleep(Duration::from_millis(50));
        }
        over.store(true, Ordering::Relaxed);
        (attacker.join(), all)
    });
    for (kind, Logins { mut times, failures }) in Kind::ALL.into_iter().zip(all) {
        times.sort_unstable();
        let count = times.len();
        let at = |index: usize| times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let figures = format!(
            "{count} of {LOGINS} ({:.0} ms, at most {:.0} ms)",
            at(count / 2),
            at(count.saturating_sub(1))
        );
        let (name, which) = kind.titles();
        findings.fact(name, format!("{figures}; failed: {failures}"));
        findings.claim(format!("{LOGINS_MIN} of {LOGINS} logins get in {which}"), count >= LOGINS_MIN);
    }
    outcome.map_err(|_| "the attacker's thread panicked".to_owned())
}

fn log_on(run: &Run<'_>, kind: Kind) -> Logins {
    let mut logins = Logins::default();
    thread::sleep(BEFORE);
    for number in 0..LOGINS {
        if run.is_over() {
            break;
        }
        let began = Instant::now();
        match try_to(run, kind, number) {
            Ok(()) => logins.times.push(began.elapsed()),
            Err((step, error)) => logins.failures.add(format!("{step}: {error}")),
        }
    }
    logins
}

fn try_to(run: &Run<'_>, kind: Kind, number: u16) -> Result<(), (&'static str, WireError)> {
    let at = |step: &'static str| move |error: WireError| (step, error);
    let source = kind.source(number);
    let insecure = || OpenParams::insecure(URL);
    let stream = dial(run.address, source, None).map_err(WireError::from).map_err(at("connecting"))?;
    let mut wire =
        Wire::open_as(stream, Arc::new(NullProvider), insecure(), ROUND_TRIP).map_err(at("discovery"))?;
    wire.call(&mut GetEndpointsRequest { endpoint_url: URL.into(), ..Default::default() })
        .map_err(at("discovery"))?;
    drop(wire);
    let stream = dial(run.address, source, None).map_err(WireError::from).map_err(at("connecting"))?;
    let mut wire = match kind {
        Kind::Anonymous => {
            let mut wire = Wire::open_as(stream, Arc::new(NullProvider), insecure(), ROUND_TRIP)
                .map_err(at("OpenSecureChannel"))?;
            wire.create_session().map_err(at("CreateSession"))?;
            thread::sleep(HESITATION);
            wire.activate(ExtensionObject::NULL).map_err(at("ActivateSession"))?;
            wire
        }
        Kind::Known | Kind::Certified => {
            let mut user = Certified::connect(run, stream, ROUND_TRIP).map_err(at("OpenSecureChannel"))?;
            user.create().map_err(at("CreateSession"))?;
            thread::sleep(HESITATION);
            user.log_on(HONEST.0, HONEST.1).map_err(at("ActivateSession"))?;
            user.wire
        }
    };
    let node = ReadValueId { node_id: NodeId::numeric(0, 2258), attribute_id: 13, ..ReadValueId::default() };
    wire.call(&mut ReadRequest { nodes_to_read: vec![node], ..ReadRequest::default() })
        .map_err(at("Read"))?;
    wire.call(&mut CloseSessionRequest { delete_subscriptions: true, ..Default::default() })
        .map_err(at("CloseSession"))?;
    Ok(())
}

/// A client with a certificate that the server trusts.
pub(crate) struct Certified {
    pub(crate) wire: Wire,
    provider: Arc<dyn Provider>,
    binding: SessionBinding,
}

impl Certified {
    /// Opens a channel.
    pub(crate) fn connect(
        run: &Run<'_>,
        stream: std::net::TcpStream,
        round_trip: Duration,
    ) -> Result<Self, WireError> {
        let provider = run.keys.canary();
        let missing = || WireError::Protocol("there is no certificate".to_owned());
        let server: Arc<[u8]> = run.keys.server_certificate(POLICY).ok_or_else(missing)?.into();
        let own: Arc<[u8]> = provider.own_certificate(POLICY).ok_or_else(missing)?.into();
        let params = OpenParams {
            policy: POLICY,
            mode: MessageSecurityMode::SignAndEncrypt,
            server_certificate: Some(Arc::clone(&server)),
            ..OpenParams::insecure(URL)
        };
        let wire = Wire::open_as(stream, Arc::clone(&provider), params, round_trip)?;
        let mut client_nonce = vec![0; 32];
        provider.random(&mut client_nonce).map_err(protocol)?;
        let binding = SessionBinding {
            channel_thumbprint: wire.channel().thumbprint().into(),
            server_certificate: server,
            client_certificate: own,
            server_nonce: Vec::new(),
            client_nonce,
        };
        Ok(Self { wire, provider, binding })
    }

    /// Creates a session.
    pub(crate) fn create(&mut self) -> Result<(), WireError> {
        let uri = self.provider.application_uri(&self.binding.client_certificate).unwrap_or_default();
        let mut request = CreateSessionRequest {
            client_description: ApplicationDescription {
                application_uri: uri.as_str().into(),
                ..Default::default()
            },
            endpoint_url: URL.into(),
            session_name: "newcomer".into(),
            client_nonce: self.binding.client_nonce.as_slice().into(),
            client_certificate: (&*self.binding.client_certificate).into(),
            requested_session_timeout: 60_000.0,
            ..CreateSessionRequest::default()
        };
        let response = self.wire.call(&mut request)?;
        self.wire.set_token(response.authentication_token);
        self.binding.server_nonce = response.server_nonce.as_bytes().to_vec();
        Ok(())
    }

    /// Activates the session for a user with a password.
    pub(crate) fn log_on(&mut self, name: &str, password: &str) -> Result<(), WireError> {
        let data = self.binding.client_signature(POLICY).bytes(POLICY, &*self.provider).map_err(protocol)?;
        let mut signature = Vec::new();
        self.provider.sign(POLICY, &[&data], &mut signature).map_err(protocol)?;
        let seal = SealSecret {
            policy: POLICY,
            receiver_certificate: Arc::clone(&self.binding.server_certificate),
            server_nonce: self.binding.server_nonce.clone(),
            secret: Secret::new(password.as_bytes().to_vec()),
            signing_time: wall(),
            receiver_key: None,
        };
        let sealed = seal.run(&*self.provider).map_err(protocol)?;
        let token = UserNameIdentityToken {
            policy_id: "username".into(),
            user_name: name.into(),
            password: sealed.bytes.into(),
            encryption_algorithm: sealed.algorithm.into(),
        };
        let mut request = ActivateSessionRequest {
            client_signature: SignatureData {
                algorithm: POLICY.info().asymmetric_signature.uri().into(),
                signature: signature.into(),
            },
            user_identity_token: ExtensionObject::new(&token),
            ..ActivateSessionRequest::default()
        };
        let response = self.wire.call(&mut request)?;
        self.binding.server_nonce = response.server_nonce.as_bytes().to_vec();
        Ok(())
    }
}

fn protocol(error: taktwerk_crypto::CryptoError) -> WireError {
    WireError::Protocol(error.to_string())
}
