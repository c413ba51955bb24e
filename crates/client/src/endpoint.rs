//! Choosing one of a server's endpoints (Part 4 §5.5.4, §7.14).

use crate::config::{EndpointUrl, Identity, Security, Target};
use crate::error::SecurityProblem;
use crate::event::Note;
use taktwerk_crypto::{MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_schema::{EndpointDescription, UserTokenPolicy, UserTokenType};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Encode, UaString};

/// The transport profile of opc.tcp with secure conversation and the binary encoding (Part 7).
const TRANSPORT_PROFILE: &str = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";

/// The connection target and the chosen endpoint.
#[derive(Debug, Default)]
pub(crate) struct Dialled {
    /// The target that the application has given.
    pub(crate) target: Option<Target>,
    /// The chosen endpoint.
    pub(crate) chosen: Option<Chosen>,
    /// All endpoints of the server.
    pub(crate) discovered: Vec<EndpointDescription>,
}

/// The endpoint that the client has chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) policy: SecurityPolicy,
    pub(crate) mode: MessageSecurityMode,
    pub(crate) description: EndpointDescription,
    /// The URL to connect to, also sent in Hello and CreateSession.
    pub(crate) url: EndpointUrl,
    pub(crate) note: Option<Note>,
}

/// The token type of an identity.
pub(crate) fn token_type(identity: &Identity) -> (UserTokenType, &'static str) {
    match identity {
        Identity::Anonymous => (UserTokenType::ANONYMOUS, "anonymous"),
        Identity::UserName { .. } => (UserTokenType::USER_NAME, "user name"),
        Identity::X509 { .. } => (UserTokenType::CERTIFICATE, "certificate"),
        Identity::IssuedToken { .. } => (UserTokenType::ISSUED_TOKEN, "issued token"),
    }
}

/// The endpoint's token policy for an identity: the one with the strongest encryption.
pub(crate) fn token_policy<'a>(
    policies: &'a [UserTokenPolicy],
    identity: &Identity,
    channel: SecurityPolicy,
    provider: &dyn Provider,
) -> Option<&'a UserTokenPolicy> {
    let (wanted, _) = token_type(identity);
    // A user certificate determines its policies itself, independently of the application certificate.
    let provider = match identity {
        Identity::X509 { provider } => provider.as_ref(),
        _ => provider,
    };
    let level = |policy: &UserTokenPolicy| match SecurityPolicy::from_uri(policy.security_policy_uri.as_str())
    {
        // Broken policies protect no secret. ECC policies agree on keys with any peer, so the channel must authenticate
        // the server.
        Some(policy) if policy.is_secure() && policy.info().security_level == 0 => None,
        Some(policy) if policy.info().is_ecc() && !channel.is_secure() => None,
        Some(policy) if provider.supports(policy) => Some(u16::from(policy.info().security_level) + 1),
        Some(_) => None,
        // Without its own policy, the channel's applies.
        None if policy.security_policy_uri.is_empty() => Some(0),
        None => None,
    };
    let usable = policies.iter().filter(|policy| policy.token_type == wanted && level(policy).is_some());
    usable.max_by_key(|policy| level(policy))
}

/// Resolves [`Security::Automatic`] for a client with this provider.
pub(crate) fn resolve(security: Security, provider: &dyn Provider) -> Security {
    let is_secured = |policy: &SecurityPolicy| policy.is_secure() && provider.supports(*policy);
    match security {
        Security::Automatic if SecurityPolicy::ALL.iter().any(is_secured) => Security::Best,
        Security::Automatic => Security::Exactly(SecurityPolicy::None, MessageSecurityMode::None),
        other => other,
    }
}

/// The policy of an endpoint, and how much a client prefers it: the greatest wins. The policy's own rank counts more than the
/// server's SecurityLevel, which was received without protection. `None` if this client cannot use the endpoint.
#[must_use]
pub fn endpoint_rank(
    endpoint: &EndpointDescription,
) -> Option<(SecurityPolicy, (MessageSecurityMode, u8, u8))> {
    let policy = SecurityPolicy::from_uri(endpoint.security_policy_uri.as_str())?;
    let mode = MessageSecurityMode::from_number(endpoint.security_mode.0)?;
    let is_secured = policy != SecurityPolicy::None;
    let fits = is_ours(endpoint) && is_secured == (mode != MessageSecurityMode::None);
    fits.then(|| (policy, (mode, policy.info().security_level, endpoint.security_level)))
}

/// Chooses one of the endpoints that a server offers.
pub(crate) fn choose(
    endpoints: &[EndpointDescription],
    target: &Target,
    provider: &dyn Provider,
) -> Result<Chosen, SecurityProblem> {
    let security = resolve(target.security, provider);
    let candidates = endpoints.iter().filter_map(|endpoint| {
        let (policy, (mode, ..)) = endpoint_rank(endpoint)?;
        let secured = policy != SecurityPolicy::None;
        let fits = provider.supports(policy)
            && match security {
                Security::Exactly(wanted_policy, wanted_mode) => {
                    (wanted_policy, wanted_mode) == (policy, mode)
                }
                // Deprecated policies only with [`Security::Exactly`].
                Security::Best | Security::Automatic => secured && !policy.is_deprecated(),
                Security::BestOrNone => !secured || !policy.is_deprecated(),
            };
        fits.then_some((endpoint, policy, mode))
    });
    let candidates: Vec<_> = candidates.collect();
    if candidates.is_empty() {
        let wanted = match security {
            // The server may offer exactly this endpoint.
            Security::Exactly(policy, mode) if !provider.supports(policy) => {
                format!("{policy}/{mode} that one of the client's certificates supports")
            }
            Security::Exactly(policy, mode) => format!("{policy}/{mode}"),
            Security::Best | Security::Automatic => "a security policy that both sides support".to_owned(),
            Security::BestOrNone => "a security policy that both sides support, or None".to_owned(),
        };
        let offered = endpoints.iter().map(|endpoint| {
            let uri = endpoint.security_policy_uri.as_str();
            (uri.rsplit('#').next().unwrap_or(uri).into(), endpoint.security_mode.0)
        });
        return Err(SecurityProblem::NoEndpoint { wanted: wanted.into(), offered: offered.collect() });
    }
    let accepts = |endpoint: &EndpointDescription, policy: SecurityPolicy| {
        token_policy(&endpoint.user_identity_tokens, &target.identity, policy, provider).is_some()
            || !target.session
            || endpoint.user_identity_tokens.is_empty() && matches!(target.identity, Identity::Anonymous)
    };
    let accepted = candidates.into_iter().filter(|(endpoint, policy, _)| accepts(endpoint, *policy));
    let best = accepted.max_by_key(|(endpoint, ..)| endpoint_rank(endpoint).map(|(_, rank)| rank));
    let Some((description, policy, mode)) = best else {
        return Err(SecurityProblem::NoTokenPolicy(token_type(&target.identity).1));
    };
    let (url, note) = rewrite(description, &target.url);
    Ok(Chosen { policy, mode, description: description.clone(), url, note })
}

/// The URL to connect to. Servers behind routers and in containers announce names that only they can resolve. The name
/// that was used for discovery works, so it replaces the announced one.
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

/// Whether an endpoint has our transport profile or names none. Such endpoints may be chosen, so they must be compared,
/// too.
fn is_ours(endpoint: &EndpointDescription) -> bool {
    let profile = endpoint.transport_profile_uri.as_str();
    profile.is_empty() || profile == TRANSPORT_PROFILE
}

/// Whether two endpoint lists are the same in any order. Compares the fields of Part 4 §5.5.1, of the endpoints with
/// our transport profile.
pub(crate) fn same_endpoints(one: &[EndpointDescription], other: &[EndpointDescription]) -> bool {
    let keys = |list: &[EndpointDescription]| {
        let mut keys: Vec<_> = list.iter().filter(|endpoint| is_ours(endpoint)).map(compared).collect();
        keys.sort();
        keys
    };
    keys(one) == keys(other)
}

/// An encoding that is equal if and only if the compared fields of two endpoints are.
fn compared(endpoint: &EndpointDescription) -> Vec<u8> {
    let url = endpoint.endpoint_url.as_str();
    // Host names are case-insensitive (Part 6 §7.2 refers to RFC 3986).
    let url = match EndpointUrl::parse(url) {
        Ok(parsed) => EndpointUrl { host: parsed.host.to_ascii_lowercase().into(), ..parsed }.to_string(),
        Err(_) => url.to_owned(),
    };
    // A null string and an empty one are equivalent.
    let text = |text: &str, out: &mut Vec<u8>| UaString::from(text).encode(out);
    let token = |policy: &UserTokenPolicy| {
        let mut out = Vec::new();
        policy.token_type.0.encode(&mut out);
        text(policy.policy_id.as_str(), &mut out);
        text(policy.issued_token_type.as_str(), &mut out);
        text(policy.issuer_endpoint_url.as_str(), &mut out);
        text(policy.security_policy_uri.as_str(), &mut out);
        out
    };
    let mut tokens: Vec<Vec<u8>> = endpoint.user_identity_tokens.iter().map(token).collect();
    tokens.sort();
    let mut out = Vec::new();
    text(endpoint.server.application_uri.as_str(), &mut out);
    text(&url, &mut out);
    text(endpoint.security_policy_uri.as_str(), &mut out);
    text(endpoint.transport_profile_uri.as_str(), &mut out);
    endpoint.security_mode.0.encode(&mut out);
    endpoint.security_level.encode(&mut out);
    encode_len(tokens.len(), &mut out);
    tokens.iter().for_each(|token| out.extend_from_slice(token));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::NullProvider;
    use taktwerk_crypto_dummy::DummyProvider;

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
    fn unsupported_and_not_offered_policies_have_different_errors() {
        let wanted = |policy, provider: &dyn Provider| {
            let security = Security::Exactly(policy, MessageSecurityMode::SignAndEncrypt);
            let target = Target { security, ..Target::new("plc").unwrap() };
            match choose(&offered(), &target, provider) {
                Err(SecurityProblem::NoEndpoint { wanted, .. }) => wanted,
                other => panic!("{other:?}"),
            }
        };
        let ours = wanted(SecurityPolicy::Basic256Sha256, &NullProvider);
        assert_eq!(&*ours, "Basic256Sha256/SignAndEncrypt that one of the client's certificates supports");
        let theirs = wanted(SecurityPolicy::ECC_nistP256_AesGcm, &DummyProvider::new("client", 2048));
        assert_eq!(&*theirs, "ECC_nistP256_AesGcm/SignAndEncrypt");
    }

    #[test]
    fn the_best_endpoint_is_chosen_and_deprecated_ones_only_explicitly() {
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
        assert_eq!(choose_with(Security::Automatic, &dummy), best);
        assert_eq!(choose_with(Security::Automatic, &NullProvider), Ok(none));
        // An attacker has removed all but None from the list.
        let stripped = &offered()[..1];
        let target = Target::new("plc").unwrap();
        assert!(matches!(choose(stripped, &target, &dummy), Err(SecurityProblem::NoEndpoint { .. })));
        assert!(choose(stripped, &target, &NullProvider).is_ok());
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
    fn announced_hosts_are_rewritten() {
        let target = Target::new("opc.tcp://10.0.0.7:1234").unwrap();
        let chosen = choose(&offered(), &target, &NullProvider).unwrap();
        assert_eq!(chosen.url.to_string(), "opc.tcp://10.0.0.7:1234");
        assert!(matches!(chosen.note, Some(Note::HostRewritten { .. })));
        let target = Target::new("PLC:1234").unwrap();
        let chosen = choose(&offered(), &target, &NullProvider).unwrap();
        assert_eq!((chosen.url.port, chosen.note), (4840, None));
    }

    #[test]
    fn edited_lists_are_detected() {
        let mut other = offered();
        other.reverse();
        assert!(same_endpoints(&offered(), &other));
        other[0].endpoint_url = "opc.tcp://PLC:4840".into();
        assert!(same_endpoints(&offered(), &other));
        other[0].server_certificate = vec![1].into();
        assert!(same_endpoints(&offered(), &other), "certificates are compared with the channel's instead");
        let changes: [fn(&mut Vec<EndpointDescription>); 13] = [
            |list| drop(list.pop()),
            |list| list.push(list[0].clone()),
            |list| list[1].endpoint_url = "opc.tcp://plc:4841".into(),
            |list| list[1].endpoint_url = "opc.tcp://other:4840".into(),
            |list| list[1].server.application_uri = "urn:other".into(),
            |list| list[1].security_mode = taktwerk_schema::MessageSecurityMode::SIGN,
            |list| list[1].security_policy_uri = SecurityPolicy::Basic256.uri().into(),
            |list| list[1].security_level += 1,
            |list| list[1].user_identity_tokens[0].policy_id = "other".into(),
            |list| list[1].user_identity_tokens[0].token_type = UserTokenType::USER_NAME,
            |list| list[1].user_identity_tokens[0].security_policy_uri = SecurityPolicy::None.uri().into(),
            |list| list[1].user_identity_tokens.clear(),
            |list| list.push(EndpointDescription { transport_profile_uri: "".into(), ..list[1].clone() }),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut edited = offered();
            change(&mut edited);
            assert!(!same_endpoints(&offered(), &edited), "{number}");
        }
    }
}
