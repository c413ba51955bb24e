//! Users on secured channels: required proofs, and the statuses of failed logins.

mod admission;
mod change;
mod ends;

use super::secured::{ENCRYPT, Party, SIGN, Security, server_with};
use super::*;
use crate::config::{ConfigProblem, EndpointConfig, UserTokenConfig};
use crate::identity::{Accepted, Credential, IdentityVerifier, User, Verification};
use proptest::prelude::*;
use schema::{
    ActivateSessionRequest, ActivateSessionResponse, IssuedIdentityToken, UserNameIdentityToken,
    X509IdentityToken,
};
use std::collections::VecDeque;
use taktwerk_channel::ephemeral;
use taktwerk_crypto::secret::uses_ephemeral_keys;
use taktwerk_crypto::{MessageSecurityMode, SealSecret, Secret, SecurityPolicy};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_types::ExtensionObject;

const NONE: Security = (SecurityPolicy::None, MessageSecurityMode::None);
const BOUND: Security = (SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt);

/// Knows joe and ann by their passwords, a certificate called "joe", and tokens that start with "for ".
struct Staff;

impl IdentityVerifier for Staff {
    fn verify(&self, credential: Credential) -> Verification {
        let verdict = match credential {
            Credential::Password { user_name, password } => {
                let right = matches!(&*user_name, "joe" | "ann") && password.expose() == b"secret";
                right.then(Accepted::default)
            }
            Credential::Certificate { certificate, .. } => {
                certificate.ends_with(b"joe").then(|| Accepted::named("joe").with_subject("CN=\"joe\"", ""))
            }
            Credential::IssuedToken { token } => {
                let token = core::str::from_utf8(token.expose()).unwrap_or_default();
                token.strip_prefix("for ").map(|rest| {
                    let roles = vec!["Operator".into()];
                    let (name, until) = rest.split_once(" until ").unwrap_or((rest, ""));
                    let accepted = Accepted::named(name.trim_end()).with_claims(roles, Vec::new());
                    match until.parse() {
                        Ok(ticks) => accepted.until(UtcTime::from_ticks(ticks)),
                        Err(_) => accepted,
                    }
                })
            }
        };
        Verification::Blocking(Box::new(move || verdict.ok_or(StatusCode::BAD_USER_ACCESS_DENIED)))
    }
}

fn tokens() -> Vec<UserTokenConfig> {
    vec![
        UserTokenConfig::anonymous(),
        UserTokenConfig::user_name(),
        UserTokenConfig::certificate(),
        UserTokenConfig::issued_token("{}"),
    ]
}

fn staffed(security: &[Security]) -> Server {
    server_with(security, &tokens(), |config| config.verifier = Some(Arc::new(Staff)))
}

impl Party {
    /// Encrypts for the server according to its policy.
    fn seal(&self, policy: SecurityPolicy, secret: &[u8]) -> taktwerk_crypto::EncryptedSecret {
        let seal = SealSecret {
            policy,
            receiver_certificate: Arc::clone(&self.binding.server_certificate),
            server_nonce: self.binding.server_nonce.clone(),
            secret: Secret::new(secret.to_vec()),
            signing_time: UtcTime::parse("2026-01-01T00:00:00Z").unwrap(),
            receiver_key: self.receiver_key.clone(),
        };
        seal.run(&*self.provider).unwrap()
    }

    fn password(&self, name: &str, password: &[u8]) -> UserNameIdentityToken {
        let sealed = self.seal(self.policy(), password);
        UserNameIdentityToken {
            policy_id: "username".into(),
            user_name: name.into(),
            password: sealed.bytes.into(),
            encryption_algorithm: sealed.algorithm.into(),
        }
    }

    fn log_on(&mut self, server: &mut Server, name: &str, password: &str) -> Result<(), StatusCode> {
        let token = ExtensionObject::new(&self.password(name, password.as_bytes()));
        self.activate(server, &token)
    }

    fn issued(&self, token: &str) -> ExtensionObject {
        let sealed = self.seal(self.policy(), token.as_bytes());
        ExtensionObject::new(&IssuedIdentityToken {
            policy_id: "jwt".into(),
            token_data: sealed.bytes.into(),
            encryption_algorithm: sealed.algorithm.into(),
        })
    }

    /// An activation by the owner of a certificate.
    fn certified(&mut self, name: &str) -> ActivateSessionRequest {
        let token = X509IdentityToken {
            policy_id: "certificate".into(),
            certificate_data: certificate(name, 2048).into(),
        };
        let mut request = self.activate_request(&ExtensionObject::new(&token));
        let policy = self.policy();
        let user = DummyProvider::new(name, 2048);
        let mut signature = Vec::new();
        let data = self.binding.user_signature(policy).bytes(policy, &user).unwrap();
        user.sign(policy, &[&data], &mut signature).unwrap();
        request.user_token_signature.algorithm = policy.info().asymmetric_signature.uri().into();
        request.user_token_signature.signature = signature.into();
        request
    }
}

fn user(server: &Server) -> Option<User> {
    server.shard.sessions.iter().next().and_then(|(_, session)| session.user.clone())
}

#[test]
fn passwords_are_decrypted_and_checked() {
    for security in [SIGN, ENCRYPT, (SecurityPolicy::Aes256_Sha256_RsaPss, MessageSecurityMode::Sign), BOUND]
    {
        let mut server = staffed(&[security]);
        let mut party = Party::created(&mut server, "client", security);
        for (name, password) in [("joe", "guess"), ("nobody", "secret"), ("joe", ""), ("joe", "secret\0")] {
            let status = party.log_on(&mut server, name, password).unwrap_err();
            assert_eq!(status, StatusCode::BAD_USER_ACCESS_DENIED, "{name} {password}");
        }
        // Long passwords have another format.
        let long = "x".repeat(500);
        assert_eq!(party.log_on(&mut server, "joe", &long).unwrap_err(), StatusCode::BAD_USER_ACCESS_DENIED);
        let mut party = Party::created(&mut server, "another", security);
        party.log_on(&mut server, "joe", "secret").unwrap();
        party.works(&mut server).unwrap();
    }
}

/// A modification of a token.
type Change<'a> = &'a dyn Fn(&Party, &mut UserNameIdentityToken);

#[test]
fn all_errors_in_a_secret_have_the_same_status() {
    let refused = |change: &dyn Fn(&Party, &mut UserNameIdentityToken)| {
        let mut server = staffed(&[ENCRYPT]);
        let mut party = Party::created(&mut server, "client", ENCRYPT);
        let mut token = party.password("joe", b"secret");
        change(&party, &mut token);
        party.activate(&mut server, &ExtensionObject::new(&token)).err()
    };
    assert_eq!(refused(&|_, _| {}), None);
    let denied = Some(StatusCode::BAD_USER_ACCESS_DENIED);
    let rsa = |party: &Party, plain: &[u8]| {
        let mut cipher = Vec::new();
        let key = party.provider.peer_key(ENCRYPT.0, &party.binding.server_certificate).unwrap();
        key.encrypt(plain, &mut cipher).unwrap();
        cipher.into()
    };
    let cases: [Change<'_>; 9] = [
        &|_, token| token.password = vec![9; 256].into(),
        &|_, token| token.password = vec![9; 255].into(),
        &|_, token| token.password = vec![9].into(),
        &|party, token| token.password = rsa(party, b"\x06\0\0\0secret"),
        &|party, token| token.password = rsa(party, &[b"\x26\0\0\0secret".as_slice(), &[0; 32]].concat()),
        &|party, token| {
            let nonce = &party.binding.server_nonce;
            token.password = rsa(party, &[b"\x25\0\0\0secret".as_slice(), nonce].concat());
        },
        &|party, token| {
            let nonce = &party.binding.server_nonce;
            token.password = rsa(party, &[b"\xff\xff\xff\xffsecret".as_slice(), nonce].concat());
        },
        // A weaker algorithm is not even tried.
        &|_, token| token.encryption_algorithm = "http://www.w3.org/2001/04/xmlenc#rsa-1_5".into(),
        &|_, token| token.encryption_algorithm = "".into(),
    ];
    for (number, change) in cases.iter().enumerate() {
        assert_eq!(refused(*change), denied, "{number}");
    }
    let invalid = Some(StatusCode::BAD_IDENTITY_TOKEN_INVALID);
    assert_eq!(refused(&|_, token| token.password = Vec::new().into()), invalid);
    assert_eq!(refused(&|_, token| token.password = vec![0; 1 << 20].into()), invalid);
    assert_eq!(refused(&|_, token| token.user_name = "".into()), invalid);
    assert_eq!(refused(&|_, token| token.user_name = "j".repeat(2000).as_str().into()), invalid);
    assert_eq!(refused(&|_, token| token.policy_id = "other".into()), invalid);
}

#[test]
fn a_secret_of_an_earlier_activation_is_refused() {
    let mut server = staffed(&[ENCRYPT]);
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let token = ExtensionObject::new(&party.password("joe", b"secret"));
    party.activate(&mut server, &token).unwrap();
    assert_eq!(party.activate(&mut server, &token).unwrap_err(), StatusCode::BAD_USER_ACCESS_DENIED);
    party.works(&mut server).unwrap();
}

#[test]
fn users_must_prove_possession_of_their_certificate() {
    for security in [ENCRYPT, BOUND] {
        let mut server = staffed(&[security]);
        let mut party = Party::created(&mut server, "client", security);
        let request = party.certified("joe");
        party.activate_with(&mut server, &request).unwrap();
        assert_eq!(user(&server).unwrap().client_user_id(), Some("joe"));
        let signature = Some(StatusCode::BAD_USER_SIGNATURE_INVALID);
        let rejected = Some(StatusCode::BAD_IDENTITY_TOKEN_REJECTED);
        let refused = |name: &str, change: &dyn Fn(&mut ActivateSessionRequest)| {
            let mut server = staffed(&[security]);
            let mut party = Party::created(&mut server, "client", security);
            let mut request = party.certified(name);
            change(&mut request);
            party.activate_with(&mut server, &request).err()
        };
        assert_eq!(refused("joe", &|_| {}), None);
        assert_eq!(refused("joe", &|request| request.user_token_signature = Default::default()), signature);
        let forge = |request: &mut ActivateSessionRequest| {
            request.user_token_signature.signature = vec![1; 256].into();
        };
        assert_eq!(refused("joe", &forge), signature);
        // Without the key, a client does not learn whether the certificate is trusted.
        assert_eq!(refused("untrusted", &forge), signature);
        assert_eq!(refused("untrusted", &|_| {}), rejected);
        assert_eq!(refused("stranger", &|_| {}), rejected);
    }
}

#[test]
fn a_changed_trust_list_ends_the_sessions_of_users_that_are_no_longer_trusted() {
    let provider = DummyProvider::new("server", 2048);
    let trust = provider.clone();
    let mut server = server_with(&[ENCRYPT], &tokens(), |config| {
        config.provider = Arc::new(provider);
        config.verifier = Some(Arc::new(Staff));
    });
    let mut named = Party::created(&mut server, "client", ENCRYPT);
    named.log_on(&mut server, "ann", "secret").unwrap();
    let mut certified = Party::created(&mut server, "client", ENCRYPT);
    let request = certified.certified("joe");
    certified.activate_with(&mut server, &request).unwrap();
    // A client that has used a certificate and then logged on as another user.
    let mut changed = Party::created(&mut server, "client", ENCRYPT);
    let request = changed.certified("joe");
    changed.activate_with(&mut server, &request).unwrap();
    changed.log_on(&mut server, "ann", "secret").unwrap();
    // A change that affects no user.
    server.shard.shared().trust_list_changed();
    for party in [&mut named, &mut certified, &mut changed] {
        party.works(&mut server).unwrap();
        while server.run_effect() {}
    }
    assert_eq!(server.shard.session_count(), 3);
    trust.distrust_users();
    server.shard.shared().trust_list_changed();
    named.works(&mut server).unwrap();
    while server.run_effect() {}
    assert_eq!((server.shard.session_count(), server.shard.connection_count()), (2, 3));
    assert_eq!(certified.works(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
    named.works(&mut server).unwrap();
    changed.works(&mut server).unwrap();
    // It cannot return either.
    certified.create(&mut server).unwrap();
    let request = certified.certified("joe");
    let refused = certified.activate_with(&mut server, &request).unwrap_err();
    assert_eq!(refused, StatusCode::BAD_IDENTITY_TOKEN_REJECTED);
}

/// The list changes after the user's certificate was validated and before the verifier has answered.
#[test]
fn a_trust_list_that_changes_during_an_activation_is_not_missed() {
    let provider = DummyProvider::new("server", 2048);
    let trust = provider.clone();
    let mut server = server_with(&[ENCRYPT], &tokens(), |config| {
        config.provider = Arc::new(provider);
        config.verifier = Some(Arc::new(Staff));
    });
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let request = party.certified("joe");
    let id = party.client.send(&mut server, ActivateSessionRequest::BINARY_ENCODING_ID, &request);
    assert!(server.run_effect(), "the proof");
    trust.distrust_users();
    server.shard.shared().trust_list_changed();
    // The shard notices the change before there is a session with a user.
    server.shard.timer(server.now);
    while server.run_effect() {}
    party.client.drain(&mut server);
    party.client.response::<ActivateSessionResponse>(id).unwrap().unwrap();
    assert_eq!(server.shard.session_count(), 0, "it was activated, validated again, and ended");
}

#[test]
fn issued_tokens_are_checked_by_the_verifier() {
    let mut server = staffed(&[ENCRYPT]);
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let token = party.issued("forged");
    assert_eq!(party.activate(&mut server, &token).unwrap_err(), StatusCode::BAD_USER_ACCESS_DENIED);
    // Tokens are long.
    let token = party.issued(&format!("for ann{}", " ".repeat(8000)));
    party.activate(&mut server, &token).unwrap();
    let Some(User::Issued { user_id, roles, .. }) = user(&server) else { panic!() };
    assert_eq!((&*user_id, &*roles), ("ann", ["Operator".into()].as_slice()));
    let token = party.issued(&"x".repeat(20_000));
    assert_eq!(party.activate(&mut server, &token).unwrap_err(), StatusCode::BAD_USER_ACCESS_DENIED);
}

#[test]
fn identities_that_are_not_offered_are_rejected() {
    let mut server = server_with(&[ENCRYPT], &[UserTokenConfig::user_name()], |config| {
        config.verifier = Some(Arc::new(Staff));
    });
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let rejected = StatusCode::BAD_IDENTITY_TOKEN_REJECTED;
    assert_eq!(party.activate(&mut server, &ExtensionObject::NULL).unwrap_err(), rejected);
    let request = party.certified("joe");
    assert_eq!(party.activate_with(&mut server, &request).unwrap_err(), rejected);
    let token = party.issued("for joe");
    assert_eq!(party.activate(&mut server, &token).unwrap_err(), rejected);
    let nonsense = ExtensionObject::new(&schema::KeyValuePair::default());
    assert_eq!(party.activate(&mut server, &nonsense).unwrap_err(), StatusCode::BAD_IDENTITY_TOKEN_INVALID);
    party.log_on(&mut server, "joe", "secret").unwrap();
}

#[test]
fn guessing_is_slowed_down_without_affecting_others() {
    let mut server = staffed(&[ENCRYPT]);
    let mut attacker = Party::created(&mut server, "attacker", ENCRYPT);
    let mut honest = Party::created(&mut server, "client", ENCRYPT);
    let denied = Err(StatusCode::BAD_USER_ACCESS_DENIED);
    for _ in 0..5 {
        assert_eq!(attacker.log_on(&mut server, "joe", "guess"), denied);
    }
    // Now even the right password is refused without being checked.
    assert_eq!(attacker.log_on(&mut server, "joe", "secret"), denied);
    // The same user on another client, and another user on this one.
    honest.log_on(&mut server, "joe", "secret").unwrap();
    attacker.log_on(&mut server, "ann", "secret").unwrap();
    server.pass(Duration::from_millis(1100));
    let mut attacker = Party::created(&mut server, "attacker", ENCRYPT);
    attacker.log_on(&mut server, "joe", "secret").unwrap();
}

impl Server {
    /// Runs all effects except credential checks, which are kept.
    fn run_all_but_checks(&mut self, checks: &mut VecDeque<Effect>) {
        while let Some(effect) = self.shard.poll_effect() {
            if effect.token.part == crate::service::deferred::CREDENTIAL_PART {
                checks.push_back(effect);
                continue;
            }
            let Job::Blocking(run) = effect.job else { panic!("tests use blocking effects") };
            self.shard.done(effect.token, run(), self.now);
        }
    }

    /// Runs the oldest check. False if there is none.
    fn run_check(&mut self, checks: &mut VecDeque<Effect>) -> bool {
        let Some(Effect { token, job: Job::Blocking(run), .. }) = checks.pop_front() else { return false };
        self.shard.done(token, run(), self.now);
        self.run_all_but_checks(checks);
        true
    }
}

impl Party {
    /// Sends a login without waiting for the answer.
    fn ask(&mut self, server: &mut Server, name: &str, password: &str, checks: &mut VecDeque<Effect>) -> u32 {
        let token = ExtensionObject::new(&self.password(name, password.as_bytes()));
        let mut request = self.activate_request(&token);
        request.request_header.timeout_hint = 5_000;
        let id = self.client.send(server, ActivateSessionRequest::BINARY_ENCODING_ID, &request);
        server.run_all_but_checks(checks);
        // Output drained by another client is lost for this one, and so is its channel.
        self.client.drain(server);
        id
    }

    fn answer(&mut self, server: &mut Server, id: u32) -> Option<Result<(), StatusCode>> {
        self.client.drain(server);
        self.client.response::<ActivateSessionResponse>(id).map(|answer| answer.map(drop))
    }
}

/// Runs checks until this client is answered. Returns their number.
fn checks_until_answered(
    server: &mut Server,
    checks: &mut VecDeque<Effect>,
    party: &mut Party,
    id: u32,
) -> (usize, Result<(), StatusCode>) {
    let mut count = 0;
    loop {
        if let Some(answer) = party.answer(server, id) {
            return (count, answer);
        }
        assert!(server.run_check(checks), "a request without an answer");
        count += 1;
    }
}

/// Three applications send more guesses than can wait, for different user names. A new client waits for one check of
/// each of them; a client with an earlier login waits only for those in progress.
#[test]
fn waiting_guesses_do_not_delay_others() {
    let mut server = staffed(&[ENCRYPT]);
    let limits = server.shard.shared().config().limits.clone();
    let mut known = Party::created(&mut server, "known", ENCRYPT);
    known.log_on(&mut server, "joe", "secret").unwrap();
    let mut checks = VecDeque::new();
    let mut attackers: Vec<Party> =
        ["one", "two", "three"].into_iter().map(|name| Party::created(&mut server, name, ENCRYPT)).collect();
    for number in 0..limits.credential_checks_waiting_max {
        for attacker in &mut attackers {
            attacker.ask(&mut server, &format!("guess {number}"), "guess", &mut checks);
        }
    }
    assert_eq!(checks.len(), limits.credential_checks_max, "few are checked at a time");
    let [one, ..] = &mut attackers[..] else { panic!() };
    let refused = one.ask(&mut server, "one more", "guess", &mut checks);
    assert_eq!(one.answer(&mut server, refused), Some(Err(StatusCode::BAD_SERVER_TOO_BUSY)));
    let mut stranger = Party::created(&mut server, "stranger", ENCRYPT);
    let strange = stranger.ask(&mut server, "joe", "secret", &mut checks);
    let familiar = known.ask(&mut server, "joe", "secret", &mut checks);
    let (first, answer) = checks_until_answered(&mut server, &mut checks, &mut known, familiar);
    assert_eq!(answer, Ok(()));
    assert_eq!(first, limits.credential_checks_max + 1, "those in progress and its own");
    let (second, answer) = checks_until_answered(&mut server, &mut checks, &mut stranger, strange);
    assert_eq!(answer, Ok(()));
    assert!(second <= attackers.len() + limits.credential_checks_max + 1, "{second}");
    // All other queued ones get their turn; one of them lost its place to the new client.
    let mut count = first + second;
    while server.run_check(&mut checks) {
        count += 1;
    }
    let (familiar, stranger) = (1, 1);
    let attacker = limits.credential_checks_max + limits.credential_checks_waiting_max - 1;
    assert_eq!(count, familiar + stranger + attacker);
}

/// An unchecked guess is not a failure, neither when the queue was full nor when it timed out.
#[test]
fn unchecked_logins_do_not_count_as_failures() {
    let mut server = staffed(&[ENCRYPT]);
    let mut checks = VecDeque::new();
    let mut attacker = Party::created(&mut server, "attacker", ENCRYPT);
    for number in 0..10 {
        attacker.ask(&mut server, &format!("guess {number}"), "guess", &mut checks);
    }
    let mut honest = Party::created(&mut server, "client", ENCRYPT);
    for _ in 0..6 {
        let id = honest.ask(&mut server, "joe", "secret", &mut checks);
        // Longer than the client waits, and shorter than the session may exist without activation.
        server.pass(Duration::from_secs(6));
        assert_eq!(honest.answer(&mut server, id), Some(Err(StatusCode::BAD_TIMEOUT)));
        honest = Party::created(&mut server, "client", ENCRYPT);
    }
    while server.run_check(&mut checks) {}
    honest.log_on(&mut server, "joe", "secret").unwrap();
}

#[test]
fn of_ten_thousand_guesses_only_a_few_are_checked() {
    let mut server = staffed(&[ENCRYPT]);
    let mut attacker = Party::created(&mut server, "attacker", ENCRYPT);
    let mut looked_at = 0;
    for number in 0..10_000 {
        let request = {
            let token = attacker.password("joe", b"guess");
            attacker.activate_request(&ExtensionObject::new(&token))
        };
        let id = attacker.client.send(&mut server, ActivateSessionRequest::BINARY_ENCODING_ID, &request);
        looked_at += u32::from(server.run_effect());
        while server.run_effect() {}
        attacker.client.drain(&mut server);
        let answer = attacker.client.response::<ActivateSessionResponse>(id).unwrap();
        assert_eq!(answer.unwrap_err(), StatusCode::BAD_USER_ACCESS_DENIED);
        if number % 1000 == 999 {
            server.pass(Duration::from_secs(3));
            attacker = Party::created(&mut server, "attacker", ENCRYPT);
        }
    }
    assert!((5..=12).contains(&looked_at), "{looked_at}");
}

#[test]
fn keys_are_agreed_on_for_secrets() {
    let policies = SecurityPolicy::ALL.iter().copied().filter(|policy| uses_ephemeral_keys(*policy));
    for policy in policies {
        let security = (policy, MessageSecurityMode::SignAndEncrypt);
        let mut server = staffed(&[security]);
        let mut party = Party::created(&mut server, "client", security);
        let first = party.receiver_key.clone().unwrap();
        assert_eq!(first.len(), policy.info().nonce_len);
        party.log_on(&mut server, "joe", "secret").unwrap();
        let second = party.receiver_key.clone().unwrap();
        assert_ne!(first, second, "{policy}: a key for each activation");
        // With the previous key, nothing can be decrypted.
        party.receiver_key = Some(first);
        let status = party.log_on(&mut server, "joe", "secret").unwrap_err();
        assert_eq!(status, StatusCode::BAD_USER_ACCESS_DENIED, "{policy}");
        party.receiver_key = Some(second);
        party.log_on(&mut server, "joe", "secret").unwrap();
    }
}

#[test]
fn keys_are_not_created_for_policies_without_user_tokens() {
    for (security, wanted) in [
        (ENCRYPT, BOUND.0),
        (BOUND, SecurityPolicy::ECC_nistP384_AesGcm),
        (BOUND, SecurityPolicy::Basic256Sha256),
        (BOUND, SecurityPolicy::None),
    ] {
        let mut server = staffed(&[security]);
        let mut party = Party::connect(&mut server, "client", security);
        let mut request = party.create_request();
        request.request_header.additional_header = ephemeral::ask(wanted);
        let response = party.client.call(&mut server, &request).unwrap();
        let offered = ephemeral::offered(&response.response_header.additional_header);
        assert_eq!(offered, Some(Err(StatusCode::BAD_SECURITY_POLICY_REJECTED)), "{wanted}");
    }
    // A client that does not request a key gets none.
    let mut server = staffed(&[ENCRYPT]);
    let mut party = Party::connect(&mut server, "client", ENCRYPT);
    let response = party.create(&mut server).unwrap();
    assert_eq!(response.response_header.additional_header, ExtensionObject::NULL);
}

#[test]
fn another_user_cannot_move_a_session_to_another_channel() {
    let mut server = staffed(&[SIGN]);
    let mut first = Party::created(&mut server, "client", SIGN);
    first.log_on(&mut server, "joe", "secret").unwrap();
    let mut again = Party::connect(&mut server, "client", SIGN);
    again.adopt(&first);
    let change = Err(StatusCode::BAD_IDENTITY_CHANGE_NOT_SUPPORTED);
    assert_eq!(again.log_on(&mut server, "ann", "secret"), change);
    assert_eq!(again.activate(&mut server, &ExtensionObject::NULL), change);
    first.works(&mut server).unwrap();
    again.log_on(&mut server, "joe", "secret").unwrap();
    again.works(&mut server).unwrap();
    // On the session's own channel the user may change.
    again.log_on(&mut server, "ann", "secret").unwrap();
    assert_eq!(user(&server), Some(User::Named("ann".into())));
}

#[test]
fn invalid_configurations_are_refused() {
    let problem = |security: &[Security], tokens: &[UserTokenConfig], change: &dyn Fn(&mut ServerConfig)| {
        let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
        let mut config = ServerConfig::new("Test", APPLICATION, URL, utc);
        config.provider = Arc::new(DummyProvider::new("server", 2048));
        config.verifier = Some(Arc::new(Staff));
        config.endpoints = security
            .iter()
            .map(|(policy, mode)| EndpointConfig {
                url: URL.to_owned(),
                policy: *policy,
                mode: *mode,
                user_tokens: tokens.to_vec(),
            })
            .collect();
        change(&mut config);
        config.check().err()
    };
    let (name, certificate) = (UserTokenConfig::user_name(), UserTokenConfig::certificate());
    assert_eq!(problem(&[ENCRYPT, SIGN, BOUND], &tokens(), &|_| {}), None);
    assert_eq!(problem(&[NONE], &[UserTokenConfig::anonymous()], &|_| {}), None);
    let clear = Some(ConfigProblem::ClearPassword { mode: MessageSecurityMode::None });
    assert_eq!(problem(&[NONE], core::slice::from_ref(&name), &|_| {}), clear);
    assert_eq!(
        problem(&[NONE], core::slice::from_ref(&name), &|config| config.allow_clear_passwords = true),
        None
    );
    assert_eq!(problem(&[NONE], &[name.clone().with_policy(ENCRYPT.0)], &|_| {}), None);
    let readable = Some(ConfigProblem::ClearPassword { mode: MessageSecurityMode::Sign });
    assert_eq!(problem(&[SIGN], &[name.clone().with_policy(SecurityPolicy::None)], &|_| {}), readable);
    // Message encryption protects the tokens in it.
    assert_eq!(problem(&[ENCRYPT], &[name.clone().with_policy(SecurityPolicy::None)], &|_| {}), None);
    let unproven = Some(ConfigProblem::CertificateWithoutPolicy);
    assert_eq!(problem(&[NONE], core::slice::from_ref(&certificate), &|_| {}), unproven);
    assert_eq!(problem(&[ENCRYPT], &[certificate.with_policy(SecurityPolicy::None)], &|_| {}), unproven);
    let ecc = Some(ConfigProblem::EccWithoutChannel(BOUND.0));
    assert_eq!(problem(&[NONE], &[name.clone().with_policy(BOUND.0)], &|_| {}), ecc);
    assert_eq!(
        problem(&[ENCRYPT], &[name], &|config| config.verifier = None),
        Some(ConfigProblem::NoVerifier)
    );
    let plain = &|config: &mut ServerConfig| config.provider = Arc::new(NullProvider);
    assert_eq!(problem(&[ENCRYPT], &[], plain), Some(ConfigProblem::Unsupported(ENCRYPT.0)));
    let mixed = (SecurityPolicy::None, MessageSecurityMode::Sign);
    assert!(matches!(problem(&[mixed], &[], &|_| {}), Some(ConfigProblem::Mode { .. })));
}

#[test]
fn unchecked_configurations_are_refused_at_run_time() {
    // These configurations have not been checked.
    let mut server = staffed(&[NONE]);
    let mut party = Party::created(&mut server, "client", NONE);
    let token = UserNameIdentityToken {
        policy_id: "username".into(),
        user_name: "joe".into(),
        password: b"secret".to_vec().into(),
        ..Default::default()
    };
    let rejected = StatusCode::BAD_IDENTITY_TOKEN_REJECTED;
    assert_eq!(party.activate(&mut server, &ExtensionObject::new(&token)).unwrap_err(), rejected);
    let token = X509IdentityToken {
        policy_id: "certificate".into(),
        certificate_data: certificate("joe", 2048).into(),
    };
    assert_eq!(party.activate(&mut server, &ExtensionObject::new(&token)).unwrap_err(), rejected);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A login with the right password or not, over the session's own channel or a new one.
    LogOn { who: u8, right: bool, elsewhere: bool },
    /// An effect in progress finishes.
    Effect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let log_on = (0u8..3, any::<bool>(), any::<bool>()).prop_map(|(who, right, elsewhere)| Step::LogOn {
        who,
        right,
        elsewhere,
    });
    prop::collection::vec(prop_oneof![3 => log_on, 2 => Just(Step::Effect)], 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// After any sequence, the session has the user of the last successful activation, is on the channel of that
    /// response, and never on a channel of another user.
    #[test]
    fn a_session_belongs_to_the_last_successful_activation(steps in steps()) {
        let mut server = staffed(&[ENCRYPT]);
        let mut party = Party::created(&mut server, "client", ENCRYPT);
        party.log_on(&mut server, "joe", "secret").unwrap();
        let mut parties = vec![party];
        let (mut owner, mut home) = ("joe", 0);
        // Party, user, request id.
        let mut under_way: Vec<(usize, &str, bool, u32)> = Vec::new();
        for step in steps {
            match step {
                Step::LogOn { who, right, elsewhere } => {
                    let who = ["joe", "ann", ""][usize::from(who)];
                    let at = if elsewhere {
                        while server.run_effect() {}
                        collect(&mut server, &mut parties, &mut under_way, &mut owner, &mut home);
                        let mut party = Party::connect(&mut server, "client", ENCRYPT);
                        party.adopt(&parties[home]);
                        parties.push(party);
                        parties.len() - 1
                    } else {
                        home
                    };
                    let party = &mut parties[at];
                    let token = if who.is_empty() {
                        ExtensionObject::NULL
                    } else {
                        let password: &[u8] = if right { b"secret" } else { b"guess" };
                        ExtensionObject::new(&party.password(who, password))
                    };
                    let request = party.activate_request(&token);
                    let type_id = ActivateSessionRequest::BINARY_ENCODING_ID;
                    let id = party.client.send(&mut server, type_id, &request);
                    under_way.push((at, who, right || who.is_empty(), id));
                }
                Step::Effect => {
                    server.run_effect();
                }
            }
            collect(&mut server, &mut parties, &mut under_way, &mut owner, &mut home);
            let (_, session) = server.shard.sessions.iter().next().unwrap();
            prop_assert_eq!(session.user.as_ref().and_then(User::client_user_id).unwrap_or(""), owner);
            prop_assert_eq!(session.connection, Some(parties[home].client.connection));
        }
    }
}

/// Receives the responses that have arrived.
fn collect(
    server: &mut Server,
    parties: &mut [Party],
    under_way: &mut Vec<(usize, &'static str, bool, u32)>,
    owner: &mut &'static str,
    home: &mut usize,
) {
    // A drain takes the bytes of all connections: each client gets its own.
    while let Some(id) = server.shard.poll_transmit() {
        let bytes = server.shard.unsent(id).to_vec();
        for party in parties.iter_mut().filter(|party| party.client.connection == id) {
            party.client.deliver(&bytes, server.now.instant);
        }
        server.shard.sent(id, bytes.len());
    }
    under_way.retain(|(at, who, right, id)| {
        let Some(answer) = parties[*at].client.response::<ActivateSessionResponse>(*id) else { return true };
        if let Ok(response) = answer {
            assert!(*right, "a wrong password was accepted");
            assert!(*at == *home || *who == *owner, "{who} moved the session of {owner}");
            parties[*at].binding.server_nonce = response.server_nonce.as_bytes().to_vec();
            *owner = who;
            *home = *at;
        }
        false
    });
}
