//! Sessions with security and users, for hours, with cuts, crashes, renewals and slow signatures.

use crate::common::*;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_client::{Client, ClientConfig, Event, Identity, Restored, Security, Target};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_crypto_dummy::DummyProvider;
use taktwerk_schema::ReadRequest;
use taktwerk_server::{
    Accepted, Credential, EndpointConfig, IdentityVerifier, ServerConfig, UserTokenConfig, Verification,
};
use taktwerk_sim::plant::{monitor, url, value_of};
use taktwerk_sim::{ClientId, EffectTime, Path, Route};
use taktwerk_types::StatusCode;

/// A slow verifier that knows the user joe.
struct Clerk;

impl IdentityVerifier for Clerk {
    fn verify(&self, credential: Credential) -> Verification {
        Verification::Blocking(Box::new(move || match credential {
            Credential::Password { user_name, password }
                if &*user_name == "joe" && password.expose() == b"secret" =>
            {
                Ok(Accepted::default())
            }
            Credential::Certificate { certificate, .. } if certificate.ends_with(b"joe") => {
                Ok(Accepted::named("joe"))
            }
            Credential::IssuedToken { token } if token.expose() == b"token of joe" => {
                Ok(Accepted::named("joe"))
            }
            _ => Err(StatusCode::BAD_USER_ACCESS_DENIED),
        }))
    }
}

const POLICIES: [(SecurityPolicy, MessageSecurityMode); 6] = [
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::Sign),
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt),
    (SecurityPolicy::Aes256_Sha256_RsaPss, MessageSecurityMode::SignAndEncrypt),
    (SecurityPolicy::ECC_nistP384, MessageSecurityMode::SignAndEncrypt),
    (SecurityPolicy::ECC_curve25519_ChaChaPoly, MessageSecurityMode::SignAndEncrypt),
    (SecurityPolicy::RSA_DH_AesGcm, MessageSecurityMode::Sign),
];

fn configure(config: &mut ServerConfig) {
    config.provider = Arc::new(DummyProvider::new("server", 2048));
    config.application_uri = "urn:dummy:server".to_owned();
    config.verifier = Some(Arc::new(Clerk));
    config.endpoints = POLICIES
        .iter()
        .map(|(policy, mode)| EndpointConfig {
            url: url(SERVER),
            policy: *policy,
            mode: *mode,
            user_tokens: vec![
                UserTokenConfig::anonymous(),
                UserTokenConfig::user_name(),
                UserTokenConfig::certificate(),
                UserTokenConfig::issued_token("{}"),
            ],
        })
        .collect();
    config.check().unwrap();
}

fn joe() -> Identity {
    Identity::UserName { name: "joe".into(), password: "secret".into() }
}

fn identities() -> [Identity; 4] {
    [
        Identity::Anonymous,
        joe(),
        Identity::X509 { provider: Arc::new(DummyProvider::new("joe", 2048)) },
        Identity::IssuedToken { token: "token of joe".into() },
    ]
}

/// Adds a client that connects with this identity.
fn connect(
    site: &mut Site,
    security: (SecurityPolicy, MessageSecurityMode),
    identity: Identity,
    token_lifetime_ms: u32,
) -> ClientId {
    let provider = Arc::new(DummyProvider::new("client", 2048));
    let utc_origin = site.world.utc_origin();
    let channel = ChannelConfig { provider, utc_origin, ..ChannelConfig::default() };
    let mut config =
        ClientConfig { channel: Arc::new(channel), token_lifetime_ms, ..ClientConfig::default() };
    config.reconnect.retry_first = true;
    let client = Client::new(Arc::new(config), Box::new(site.world.fork_entropy()));
    let path = Path { jitter: millis(10), ..Path::LAN.with_delay(millis(20)) };
    let subscriber = lasting_subscription(200.0, vec![monitor(0, 1000)]);
    let id = site.world.add_client(client, subscriber, Route::symmetric(path));
    let security = Security::Exactly(security.0, security.1);
    let target = Target { security, identity, ..Target::new(&url(SERVER)).unwrap() };
    site.world.with_client(id, |client, _, now| client.connect(target, now.instant)).unwrap();
    id
}

fn is_same_session(event: &Event) -> bool {
    matches!(event, Event::Restored(Restored::SameSession, _))
}

#[test]
fn every_policy_accepts_every_identity() {
    for security in POLICIES {
        for identity in identities() {
            let mut site = Site::with(3, 1, configure);
            let name = format!("{security:?} {identity:?}");
            let client = connect(&mut site, security, identity, 3_600_000);
            site.until_up(client);
            site.run(secs(2));
            site.world
                .request(client, ReadRequest { nodes_to_read: vec![value_of(0)], ..Default::default() })
                .unwrap();
            site.write(0, 42);
            site.run(secs(2));
            assert_eq!(site.world.client(client).waiting(), 0, "{name}");
            assert_eq!(numbers(site.app(client), 0), [0, 42], "{name}");
        }
    }
}

/// Every change arrives once and in order in spite of ten cuts and a token renewal every four seconds.
#[test]
fn cuts_and_renewals_lose_nothing() {
    for (seed, security) in POLICIES.into_iter().enumerate() {
        let mut site = Site::with(seed as u64, 1, configure);
        let slow = EffectTime::Between(millis(5), millis(300));
        site.world.server_mut(site.server).effect_time = slow;
        let client = connect(&mut site, security, joe(), 5_000);
        site.world.client_mut(client).effect_time = slow;
        site.until_up(client);
        site.run(secs(3));
        for value in 1..=600i64 {
            site.write(0, value);
            site.run(millis(250));
            if value % 60 == 30 {
                site.world.cut(client);
            }
        }
        site.run(secs(20));
        assert_eq!(numbers(site.app(client), 0), (0..=600).collect::<Vec<_>>(), "{security:?}");
        let events = &site.app(client).events;
        let same = events.iter().filter(|event| is_same_session(&event.event));
        assert_eq!(same.count(), 10, "{security:?}: {events:?}");
        // On the last connection alone.
        assert!(site.world.opens(client) > 5, "{}", site.world.opens(client));
    }
}

/// An anonymous user has no credentials to prove its identity on a channel that others can read, so it gets a new
/// session after each cut; its subscription is transferred.
#[test]
fn anonymous_sessions_do_not_move_between_unencrypted_channels() {
    for (security, same) in [(POLICIES[0], false), (POLICIES[1], true)] {
        let mut site = Site::with(7, 1, configure);
        let client = connect(&mut site, security, Identity::Anonymous, 3_600_000);
        site.until_up(client);
        site.run(secs(2));
        for value in 1..=30i64 {
            site.write(0, value);
            site.run(millis(500));
            if value == 15 {
                site.world.cut(client);
            }
        }
        site.run(secs(10));
        let events = &site.app(client).events;
        let kept = events.iter().any(|event| is_same_session(&event.event));
        assert_eq!(kept, same, "{security:?} {events:?}");
        assert_eq!(numbers(site.app(client), 0), (0..=30).collect::<Vec<_>>(), "{security:?}");
    }
}

#[test]
fn clients_log_on_again_after_a_server_restart() {
    for security in [POLICIES[1], POLICIES[4]] {
        let mut site = Site::with(9, 1, configure);
        let client = connect(&mut site, security, joe(), 3_600_000);
        site.until_up(client);
        site.run(secs(2));
        for round in 1..=3i64 {
            site.restart();
            site.run(secs(60));
            assert!(site.world.client(client).client().is_up(), "{security:?} {round}");
            site.write(0, 1000 + round);
            site.run(secs(2));
            assert_eq!(numbers(site.app(client), 0).last(), Some(&(1000 + round)));
        }
    }
}

#[test]
fn a_wrong_password_is_reported_and_not_retried_forever() {
    let mut site = Site::with(11, 1, configure);
    let wrong = Identity::UserName { name: "joe".into(), password: "guess".into() };
    let client = connect(&mut site, POLICIES[1], wrong, 3_600_000);
    site.run(Duration::from_secs(120));
    assert!(!site.world.client(client).client().is_up());
    let events = &site.app(client).events;
    let denied = |event: &Event| match event {
        Event::ConnectFailed { error, .. } | Event::Disconnected(Some(error)) => {
            error.status() == StatusCode::BAD_USER_ACCESS_DENIED
        }
        _ => false,
    };
    assert!(events.iter().any(|event| denied(&event.event)), "{events:?}");
    // Another client is not delayed by it.
    let other = connect(&mut site, POLICIES[1], Identity::Anonymous, 3_600_000);
    site.run(secs(2));
    assert!(site.world.client(other).client().is_up());
}
