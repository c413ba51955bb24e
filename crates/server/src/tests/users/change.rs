//! Users who must change their password (Part 18 §5.2.8, Part 4 §5.7.3.3).

use super::*;
use crate::authorization::role::well_known;
use crate::authorization::{Authorization, IdentityRule};

/// Knows the user joe, and the user new, who must change the password.
struct Newcomers;

impl IdentityVerifier for Newcomers {
    fn verify(&self, credential: Credential) -> Verification {
        let Credential::Password { user_name, password } = credential else { return Verification::refused() };
        let accepted = match (&*user_name, password.expose()) {
            ("joe", b"secret") => Ok(Accepted::default()),
            ("new", b"secret") => Ok(Accepted::default().changing_password()),
            _ => Err(StatusCode::BAD_USER_ACCESS_DENIED),
        };
        Verification::Now(accepted)
    }
}

fn server() -> Server {
    server_with(&[ENCRYPT], &tokens(), |config| {
        let mut authorization = Authorization::suggested();
        let operator = authorization.role_mut("Operator").unwrap();
        // Not even the roles granted to all users.
        operator.identities = vec![
            IdentityRule::UserName("new".into()),
            IdentityRule::UserName("joe".into()),
            IdentityRule::Anonymous,
        ];
        config.authorization = authorization;
        config.verifier = Some(Arc::new(Newcomers));
    })
}

/// Logs on and returns the result.
fn result(party: &mut Party, server: &mut Server, name: &str) -> StatusCode {
    let token = ExtensionObject::new(&party.password(name, b"secret"));
    let request = party.activate_request(&token);
    let response: ActivateSessionResponse = party.client.call(server, &request).unwrap();
    party.binding.server_nonce = response.server_nonce.as_bytes().to_vec();
    response.response_header.service_result
}

/// Each user after each other one, in the same session.
#[test]
fn a_session_has_the_role_anonymous_only_until_the_password_is_changed() {
    let mut server = server();
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let anonymous = NodeId::numeric(0, well_known::ANONYMOUS);
    let operator = NodeId::numeric(0, well_known::OPERATOR);
    for name in ["new", "new", "joe", "joe", "new", "joe"] {
        let status = result(&mut party, &mut server, name);
        let (_, session) = server.shard.sessions.iter().next().unwrap();
        let context = session.call_context(NodeId::NULL);
        assert_eq!(session.user, Some(User::Named(name.into())));
        // Resources of the user's other sessions, such as subscriptions with events, are not for this one.
        assert_eq!(session.owner().is_none(), name == "new");
        if name == "new" {
            assert_eq!(status, StatusCode::GOOD_PASSWORD_CHANGE_REQUIRED);
            assert_eq!(*context.roles, *core::slice::from_ref(&anonymous));
            assert_eq!((context.user.as_deref(), context.user_to_change.as_deref()), (None, Some("new")));
        } else {
            assert_eq!(status, StatusCode::GOOD);
            assert!(context.roles.contains(&operator));
            assert_eq!((context.user.as_deref(), context.user_to_change.as_deref()), (Some("joe"), None));
        }
        // A change of roles in the meantime does not affect this.
        let authorization = server.shard.shared().authorization();
        server.shard.shared().set_authorization((*authorization).clone(), server.now.utc);
        party.works(&mut server).ok();
        let (_, session) = server.shard.sessions.iter().next().unwrap();
        assert_eq!(session.decisions.grant.roles.contains(&operator), name != "new");
    }
}
