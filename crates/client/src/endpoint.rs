//! Choosing an endpoint from what a server offers (Part 4 §5.5.4, §7.14).

use crate::config::{EndpointUrl, Identity, Security, Target};
use crate::error::SecurityProblem;
use crate::event::Note;
use taktwerk_crypto::{MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_schema::{EndpointDescription, UserTokenPolicy, UserTokenType};

/// The transport profile of opc.tcp with secure conversation and the binary encoding (Part 7).
const TRANSPORT_PROFILE: &str = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";

/// The endpoint a client has chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) policy: SecurityPolicy,
    pub(crate) mode: MessageSecurityMode,
    pub(crate) description: EndpointDescription,
    /// What is dialled, and named in Hello and CreateSession.
    pub(crate) url: EndpointUrl,
    pub(crate) note: Option<Note>,
}

/// The kind of token that an identity needs.
pub(crate) fn token_type(identity: &Identity) -> (UserTokenType, &'static str) {
    match identity {
        Identity::Anonymous => (UserTokenType::ANONYMOUS, "anonymous"),
        Identity::UserName { .. } => (UserTokenType::USER_NAME, "user name"),
        Identity::X509 { .. } => (UserTokenType::CERTIFICATE, "certificate"),
    }
}

/// The token policy of an endpoint that an identity uses: of several, the one with the strongest encryption.
pub(crate) fn token_policy<'a>(
    policies: &'a [UserTokenPolicy],
    identity: &Identity,
    provider: &dyn Provider,
) -> Option<&'a UserTokenPolicy> {
    let (wanted, _) = token_type(identity);
    let level = |policy: &UserTokenPolicy| match SecurityPolicy::from_uri(policy.security_policy_uri.as_str())
    {
        Some(policy) if provider.supports(policy) => Some(u16::from(policy.info().security_level) + 1),
        Some(_) => None,
        // No policy of its own: the channel's.
        None if policy.security_policy_uri.is_empty() => Some(0),
        None => None,
    };
    let usable = policies.iter().filter(|policy| policy.token_type == wanted && level(policy).is_some());
    usable.max_by_key(|policy| level(policy))
}

/// Chooses among the endpoints that a server offers.
pub(crate) fn choose(
    endpoints: &[EndpointDescription],
    target: &Target,
    provider: &dyn Provider,
) -> Result<Chosen, SecurityProblem> {
    let candidates = endpoints.iter().filter_map(|endpoint| {
        let profile = endpoint.transport_profile_uri.as_str();
        if !profile.is_empty() && profile != TRANSPORT_PROFILE {
            return None;
        }
        let policy = SecurityPolicy::from_uri(endpoint.security_policy_uri.as_str())?;
        let mode = MessageSecurityMode::from_number(endpoint.security_mode.0)?;
        let secured = policy != SecurityPolicy::None;
        let fits = provider.supports(policy)
            && secured == (mode != MessageSecurityMode::None)
            && match target.security {
                Security::Exactly(wanted_policy, wanted_mode) => {
                    (wanted_policy, wanted_mode) == (policy, mode)
                }
                // Deprecated policies only when they are asked for by name.
                Security::Best => secured && !policy.is_deprecated(),
                Security::BestOrNone => !secured || !policy.is_deprecated(),
            };
        fits.then_some((endpoint, policy, mode))
    });
    let candidates: Vec<_> = candidates.collect();
    if candidates.is_empty() {
        let wanted = match target.security {
            Security::Exactly(policy, mode) => format!("{policy}/{mode}"),
            Security::Best => "a security policy that both sides have".to_owned(),
            Security::BestOrNone => "a security policy that both sides have, or none".to_owned(),
        };
        let offered = endpoints.iter().map(|endpoint| {
            let uri = endpoint.security_policy_uri.as_str();
            (uri.rsplit('#').next().unwrap_or(uri).into(), endpoint.security_mode.0)
        });
        return Err(SecurityProblem::NoEndpoint { wanted: wanted.into(), offered: offered.collect() });
    }
    let accepts = |endpoint: &EndpointDescription| {
        token_policy(&endpoint.user_identity_tokens, &target.identity, provider).is_some()
            || !target.session
            || endpoint.user_identity_tokens.is_empty() && matches!(target.identity, Identity::Anonymous)
    };
    // The policy's own rank counts more than the level the server claims: that one travelled unprotected.
    let best = candidates.into_iter().filter(|(endpoint, ..)| accepts(endpoint)).max_by_key(
        |(endpoint, policy, mode)| (*mode, policy.info().security_level, endpoint.security_level),
    );
    let Some((description, policy, mode)) = best else {
        return Err(SecurityProblem::NoTokenPolicy(token_type(&target.identity).1));
    };
    let (url, note) = rewrite(description, &target.url);
    Ok(Chosen { policy, mode, description: description.clone(), url, note })
}

/// The URL to dial. Servers behind routers and in containers announce names that only they can resolve; we have just
/// reached this one under another name, so that one is used.
fn rewrite(endpoint: &EndpointDescription, dialled: &EndpointUrl) -> (EndpointUrl, Option<Note>) {
    let announced = endpoint.endpoint_url.as_str();
    match EndpointUrl::parse(announced) {
        Ok(url) if url.host.eq_ignore_ascii_case(&dialled.host) => (url, None),
        Ok(url) => {
            let used = EndpointUrl { host: dialled.host.clone(), port: dialled.port, path: url.path };
            let note = Note::HostRewritten { announced: announced.into(), used: used.to_string().into() };
            (used, Some(note))
        }
        Err(_) => (dialled.clone(), None),
    }
}

/// Whether two lists say the same about security, in whatever order: what CreateSession is compared for (Part 4
/// §5.7.2.1). Fields that servers fill differently in the two answers are left out.
pub(crate) fn same_endpoints(one: &[EndpointDescription], other: &[EndpointDescription]) -> bool {
    let key = |endpoint: &EndpointDescription| {
        let mut tokens: Vec<_> = endpoint
            .user_identity_tokens
            .iter()
            .map(|policy| (policy.token_type.0, policy.security_policy_uri.as_str().to_owned()))
            .collect();
        tokens.sort();
        (
            endpoint.security_policy_uri.as_str().to_owned(),
            endpoint.security_mode.0,
            endpoint.transport_profile_uri.as_str().to_owned(),
            tokens,
        )
    };
    let keys = |list: &[EndpointDescription]| {
        let ours =
            list.iter().filter(|endpoint| endpoint.transport_profile_uri.as_str() == TRANSPORT_PROFILE);
        let mut keys: Vec<_> = ours.map(key).collect();
        keys.sort();
        keys.dedup();
        keys
    };
    keys(one) == keys(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::NullProvider;
    use taktwerk_crypto::dummy::DummyProvider;

    fn endpoint(policy: SecurityPolicy, mode: MessageSecurityMode, url: &str) -> EndpointDescription {
        EndpointDescription {
            endpoint_url: url.into(),
            security_policy_uri: policy.uri().into(),
            security_mode: taktwerk_schema::MessageSecurityMode(mode.number()),
            transport_profile_uri: TRANSPORT_PROFILE.into(),
            user_identity_tokens: vec![UserTokenPolicy {
                policy_id: "anonymous".into(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn offered() -> Vec<EndpointDescription> {
        use MessageSecurityMode as M;
        use SecurityPolicy as P;
        vec![
            endpoint(P::None, M::None, "opc.tcp://plc:4840"),
            endpoint(P::Basic128Rsa15, M::SignAndEncrypt, "opc.tcp://plc:4840"),
            endpoint(P::Aes256_Sha256_RsaPss, M::Sign, "opc.tcp://plc:4840"),
            endpoint(P::Basic256Sha256, M::SignAndEncrypt, "opc.tcp://plc:4840"),
        ]
    }

    #[test]
    fn the_best_endpoint_is_chosen_and_deprecated_ones_only_by_name() {
        let dummy = DummyProvider::new("client", 2048);
        let choose_with = |security, provider: &dyn Provider| {
            let target = Target { security, ..Target::new("plc").unwrap() };
            choose(&offered(), &target, provider).map(|chosen| (chosen.policy, chosen.mode))
        };
        let best = Ok((SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt));
        assert_eq!(choose_with(Security::Best, &dummy), best);
        assert_eq!(choose_with(Security::BestOrNone, &dummy), best);
        let none = (SecurityPolicy::None, MessageSecurityMode::None);
        assert_eq!(choose_with(Security::BestOrNone, &NullProvider), Ok(none));
        assert!(matches!(
            choose_with(Security::Best, &NullProvider),
            Err(SecurityProblem::NoEndpoint { .. })
        ));
        let old = (SecurityPolicy::Basic128Rsa15, MessageSecurityMode::SignAndEncrypt);
        assert_eq!(choose_with(Security::Exactly(old.0, old.1), &dummy), Ok(old));
    }

    #[test]
    fn the_identity_must_be_accepted() {
        let identity = Identity::UserName { name: "joe".into(), password: "x".into() };
        let target = Target { identity, ..Target::new("plc").unwrap() };
        assert_eq!(
            choose(&offered(), &target, &NullProvider),
            Err(SecurityProblem::NoTokenPolicy("user name"))
        );
    }

    #[test]
    fn hosts_that_were_not_dialled_are_rewritten() {
        let target = Target::new("opc.tcp://10.0.0.7:1234").unwrap();
        let chosen = choose(&offered(), &target, &NullProvider).unwrap();
        assert_eq!(chosen.url.to_string(), "opc.tcp://10.0.0.7:1234");
        assert!(matches!(chosen.note, Some(Note::HostRewritten { .. })));
        let target = Target::new("PLC:1234").unwrap();
        let chosen = choose(&offered(), &target, &NullProvider).unwrap();
        assert_eq!((chosen.url.port, chosen.note), (4840, None));
    }

    #[test]
    fn edited_lists_are_noticed() {
        let mut other = offered();
        other.reverse();
        assert!(same_endpoints(&offered(), &other));
        other.pop();
        assert!(!same_endpoints(&offered(), &other));
    }
}
