//! Credentials that expire during a session.

use super::*;

/// A server that does not offer Anonymous.
fn strict(security: &[Security]) -> Server {
    let tokens: Vec<_> = tokens().split_off(1);
    server_with(security, &tokens, |config| config.verifier = Some(Arc::new(Staff)))
}

#[test]
fn a_session_ends_with_the_token_of_its_user() {
    let mut server = strict(&[ENCRYPT]);
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let until = |server: &Server, seconds| {
        let end = server.now.utc.plus(Duration::from_secs(seconds));
        format!("for ann until {}", end.ticks())
    };
    // An expired token is refused.
    let over = party.issued(&until(&server, 0));
    assert_eq!(party.activate(&mut server, &over).unwrap_err(), StatusCode::BAD_USER_ACCESS_DENIED);
    let token = party.issued(&until(&server, 20));
    party.activate(&mut server, &token).unwrap();
    server.pass(Duration::from_secs(15));
    party.works(&mut server).unwrap();
    // Another token in time extends the session (Part 6 §6.5.2.3).
    let token = party.issued(&until(&server, 30));
    party.activate(&mut server, &token).unwrap();
    server.pass(Duration::from_secs(29));
    party.works(&mut server).unwrap();
    server.pass(Duration::from_secs(2));
    assert_eq!(party.works(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
    assert_eq!(server.shard.session_count(), 0);
    // After another kind of login, the token's expiry no longer applies.
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let token = party.issued(&until(&server, 5));
    party.activate(&mut server, &token).unwrap();
    party.log_on(&mut server, "joe", "secret").unwrap();
    server.pass(Duration::from_secs(10));
    party.works(&mut server).unwrap();
}

#[test]
fn a_session_ends_with_the_validity_of_its_users_certificate() {
    let mut server = strict(&[ENCRYPT]);
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let joe = |server: &Server, seconds| {
        let end = server.now.utc.plus(Duration::from_secs(seconds));
        format!("until {} joe", end.ticks())
    };
    // An expired certificate is refused, even if the certificate validation ignores expiry.
    let request = party.certified(&joe(&server, 0));
    let rejected = StatusCode::BAD_IDENTITY_TOKEN_REJECTED;
    assert_eq!(party.activate_with(&mut server, &request).unwrap_err(), rejected);
    let request = party.certified(&joe(&server, 20));
    party.activate_with(&mut server, &request).unwrap();
    server.pass(Duration::from_secs(15));
    party.works(&mut server).unwrap();
    // Another one in time extends the session (Part 4 §7.40.5).
    let request = party.certified(&joe(&server, 30));
    party.activate_with(&mut server, &request).unwrap();
    server.pass(Duration::from_secs(29));
    party.works(&mut server).unwrap();
    // Even if it is busy.
    server.pass(Duration::from_secs(2));
    assert_eq!(party.works(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
    assert_eq!(server.shard.session_count(), 0);
    // After another kind of login, the certificate's expiry no longer applies.
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let request = party.certified(&joe(&server, 5));
    party.activate_with(&mut server, &request).unwrap();
    party.log_on(&mut server, "joe", "secret").unwrap();
    server.pass(Duration::from_secs(10));
    party.works(&mut server).unwrap();
}

/// Knows every user until the flag is cleared.
struct Roster(std::sync::atomic::AtomicBool);

impl IdentityVerifier for Roster {
    fn verify(&self, _: Credential) -> Verification {
        Verification::Now(Ok(Accepted::default().by(7)))
    }
    fn still_knows(&self, user_name: &str, credential: u64) -> bool {
        assert_eq!(credential, 7);
        user_name != "joe" || self.0.load(core::sync::atomic::Ordering::Relaxed)
    }
}

#[test]
fn a_session_ends_when_its_user_is_removed() {
    let roster = Arc::new(Roster(true.into()));
    let mut server =
        server_with(&[ENCRYPT], &tokens(), |config| config.verifier = Some(Arc::clone(&roster) as _));
    let mut joe = Party::created(&mut server, "client", ENCRYPT);
    joe.log_on(&mut server, "joe", "secret").unwrap();
    let mut ann = Party::created(&mut server, "client", ENCRYPT);
    ann.log_on(&mut server, "ann", "secret").unwrap();
    let mut nobody = Party::anonymous(&mut server, "client", ENCRYPT);
    server.shard.shared().trust_list_changed();
    joe.works(&mut server).unwrap();
    roster.0.store(false, core::sync::atomic::Ordering::Relaxed);
    joe.works(&mut server).unwrap();
    server.shard.shared().trust_list_changed();
    // Any client's request is enough to notice, and the other sessions continue.
    ann.works(&mut server).unwrap();
    assert_eq!(joe.works(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
    nobody.works(&mut server).unwrap();
    assert_eq!(server.shard.session_count(), 2);
    // A user admitted during the change is removed again.
    let mut late = Party::created(&mut server, "client", ENCRYPT);
    late.log_on(&mut server, "joe", "secret").unwrap();
    late.works(&mut server).unwrap();
    server.shard.shared().trust_list_changed();
    server.shard.timer(server.now);
    assert_eq!(late.works(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}

#[test]
fn where_anonymous_is_offered_a_session_outlives_its_users_credential() {
    let mut server = staffed(&[ENCRYPT]);
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let end = server.now.utc.plus(Duration::from_secs(20));
    let request = party.certified(&format!("until {} joe", end.ticks()));
    party.activate_with(&mut server, &request).unwrap();
    let users = |server: &Server| -> Vec<Option<User>> {
        server.shard.sessions.iter().map(|(_, session)| session.user.clone()).collect()
    };
    assert!(matches!(users(&server)[..], [Some(User::Certificate { .. })]), "{:?}", users(&server));
    server.pass(Duration::from_secs(21));
    // Part 4 §7.40.5: valid, with the Role Anonymous.
    party.works(&mut server).unwrap();
    assert_eq!(users(&server), [Some(User::Anonymous)]);
    // A user who logs on again has the same identity, on the same channel.
    party.log_on(&mut server, "joe", "secret").unwrap();
    assert!(matches!(users(&server)[..], [Some(User::Named(_))]), "{:?}", users(&server));
    // A silent session ends together with its credential.
    let mut silent = Party::created(&mut server, "client", ENCRYPT);
    let end = server.now.utc.plus(Duration::from_secs(20));
    let request = silent.certified(&format!("until {} joe", end.ticks()));
    silent.activate_with(&mut server, &request).unwrap();
    server.pass(Duration::from_secs(4_000));
    assert_eq!(server.shard.session_count(), 0);
}

#[test]
fn a_refused_user_certificate_is_audited_with_the_reason() {
    let mut server = server_with(&[ENCRYPT], &tokens(), |config| {
        config.verifier = Some(Arc::new(Staff));
        config.audit = crate::audit::AuditConfig::all();
    });
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let request = party.certified("untrusted");
    let rejected = StatusCode::BAD_IDENTITY_TOKEN_REJECTED;
    assert_eq!(party.activate_with(&mut server, &request).unwrap_err(), rejected);
    let records = crate::tests::audit::taken(&mut server);
    let certificates = records.iter().filter(|record| {
        matches!(&record.action, crate::audit::AuditAction::Certificate { is_overlooked: false, thumbprint, certificate: Some(_) } if !thumbprint.is_empty())
    });
    let found: Vec<_> = certificates.map(|record| (record.status, record.event_type_name())).collect();
    assert_eq!(found, [(StatusCode::BAD_CERTIFICATE_UNTRUSTED, "AuditCertificateUntrustedEventType")]);
}
