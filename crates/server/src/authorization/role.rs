//! Roles and who is granted them (Part 18 §4.3, §4.4).

use super::identity::{Identity, UserIdentity};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_schema::{IdentityCriteriaType, PermissionType};
use taktwerk_types::NodeId;

/// The numeric ids of the well-known roles in namespace 0 (Part 3 §4.9.2, Part 14 §8.7.2).
#[allow(missing_docs)] // the names are the specification's
pub mod well_known {
    use taktwerk_schema::ids::object_ids as o;

    pub const ANONYMOUS: u32 = o::WELL_KNOWN_ROLE_ANONYMOUS;
    pub const AUTHENTICATED_USER: u32 = o::WELL_KNOWN_ROLE_AUTHENTICATED_USER;
    pub const TRUSTED_APPLICATION: u32 = o::WELL_KNOWN_ROLE_TRUSTED_APPLICATION;
    pub const OBSERVER: u32 = o::WELL_KNOWN_ROLE_OBSERVER;
    pub const OPERATOR: u32 = o::WELL_KNOWN_ROLE_OPERATOR;
    pub const ENGINEER: u32 = o::WELL_KNOWN_ROLE_ENGINEER;
    pub const SUPERVISOR: u32 = o::WELL_KNOWN_ROLE_SUPERVISOR;
    pub const CONFIGURE_ADMIN: u32 = o::WELL_KNOWN_ROLE_CONFIGURE_ADMIN;
    pub const SECURITY_ADMIN: u32 = o::WELL_KNOWN_ROLE_SECURITY_ADMIN;
    pub const SECURITY_KEY_SERVER_ADMIN: u32 = o::WELL_KNOWN_ROLE_SECURITY_KEY_SERVER_ADMIN;
    pub const SECURITY_KEY_SERVER_ACCESS: u32 = o::WELL_KNOWN_ROLE_SECURITY_KEY_SERVER_ACCESS;
    pub const SECURITY_KEY_SERVER_PUSH: u32 = o::WELL_KNOWN_ROLE_SECURITY_KEY_SERVER_PUSH;

    /// All well-known roles with their BrowseNames.
    pub const ALL: [(&str, u32); 12] = [
        ("Anonymous", ANONYMOUS),
        ("AuthenticatedUser", AUTHENTICATED_USER),
        ("TrustedApplication", TRUSTED_APPLICATION),
        ("Observer", OBSERVER),
        ("Operator", OPERATOR),
        ("Engineer", ENGINEER),
        ("Supervisor", SUPERVISOR),
        ("ConfigureAdmin", CONFIGURE_ADMIN),
        ("SecurityAdmin", SECURITY_ADMIN),
        ("SecurityKeyServerAdmin", SECURITY_KEY_SERVER_ADMIN),
        ("SecurityKeyServerAccess", SECURITY_KEY_SERVER_ACCESS),
        ("SecurityKeyServerPush", SECURITY_KEY_SERVER_PUSH),
    ];
}

/// A role: one of the specification's, or one of the server's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Role {
    /// The Role object's id.
    pub id: NodeId,
    /// Its BrowseName, without a namespace.
    pub name: String,
    /// A client must match one of these rules.
    pub identities: Vec<IdentityRule>,
    /// Restricts the role to applications; `None`: any application.
    pub applications: Option<Restriction<String>>,
    /// Restricts the role to endpoints; `None`: any endpoint.
    pub endpoints: Option<Restriction<EndpointRestriction>>,
}

/// An include list or an exclude list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restriction<T> {
    /// Whether the list excludes (ApplicationsExclude, EndpointsExclude).
    pub exclude: bool,
    /// The list.
    pub list: Vec<T>,
}

/// An EndpointType: fields that are `None` match every endpoint (Part 18 §4.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointRestriction {
    /// The configured URL.
    pub url: Option<String>,
    /// The security mode.
    pub mode: Option<MessageSecurityMode>,
    /// The security policy.
    pub policy: Option<SecurityPolicy>,
}

/// One IdentityMappingRuleType (Part 18 §4.4.3, §4.4.4).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IdentityRule {
    /// The user with this name.
    UserName(String),
    /// The user with the certificate of this thumbprint, in upper case hexadecimal digits.
    Thumbprint(String),
    /// Users whose access token lists this role.
    Role(String),
    /// Users whose access token lists this group.
    GroupId(String),
    /// Clients without a user.
    Anonymous,
    /// Every user.
    AuthenticatedUser,
    /// The application with this ApplicationUri, on a signed channel.
    Application(String),
    /// Users whose certificate, or its issuer's, has this subject: `CN="…"/O="…"`.
    X509Subject(String),
    /// Every application that the server trusts, on a signed channel.
    TrustedApplication,
}

impl Role {
    /// A role without rules: it is not granted to any client yet.
    #[must_use]
    pub fn new(id: NodeId, name: &str) -> Self {
        Self { id, name: name.to_owned(), identities: Vec::new(), applications: None, endpoints: None }
    }

    /// The specification's roles with its default mappings (Part 18 §4.3): Anonymous for every client,
    /// AuthenticatedUser for every user, TrustedApplication for trusted applications. The other roles are not granted
    /// to any client.
    #[must_use]
    pub fn well_known() -> Vec<Self> {
        let rules = |id| match id {
            well_known::ANONYMOUS => vec![IdentityRule::Anonymous, IdentityRule::AuthenticatedUser],
            well_known::AUTHENTICATED_USER => vec![IdentityRule::AuthenticatedUser],
            well_known::TRUSTED_APPLICATION => vec![IdentityRule::TrustedApplication],
            _ => Vec::new(),
        };
        let role = |(name, id)| Self { identities: rules(id), ..Self::new(NodeId::numeric(0, id), name) };
        well_known::ALL.into_iter().map(role).collect()
    }

    /// Whether a client has this role: one rule matches, and neither its application nor its endpoint is excluded.
    #[must_use]
    pub fn is_granted_to(&self, identity: &Identity) -> bool {
        self.identities.iter().any(|rule| rule.fits(identity))
            && self.applications.as_ref().is_none_or(|applications| match &identity.application_uri {
                Some(uri) => applications.list.contains(uri) != applications.exclude,
                // The application is unknown: it is not on an include list, and may be on an exclude list.
                None => applications.exclude && applications.list.is_empty(),
            })
            && self.endpoints.as_ref().is_none_or(|endpoints| {
                endpoints.list.iter().any(|endpoint| endpoint.fits(identity)) != endpoints.exclude
            })
    }
}

impl EndpointRestriction {
    fn fits(&self, identity: &Identity) -> bool {
        self.url.as_ref().is_none_or(|url| *url == identity.endpoint_url)
            && self.mode.is_none_or(|mode| mode == identity.mode)
            && self.policy.is_none_or(|policy| policy == identity.policy)
    }
}

impl IdentityRule {
    /// Whether a client matches the rule.
    #[must_use]
    pub fn fits(&self, identity: &Identity) -> bool {
        match (self, &identity.user) {
            (Self::UserName(wanted), UserIdentity::UserName(name)) => wanted == name,
            (Self::Thumbprint(wanted), UserIdentity::Certificate { thumbprint, .. }) => wanted == thumbprint,
            (Self::X509Subject(wanted), UserIdentity::Certificate { subject, issuer, .. }) => {
                wanted == subject || wanted == issuer
            }
            (Self::Role(wanted), UserIdentity::Issued { roles, .. }) => roles.contains(wanted),
            (Self::GroupId(wanted), UserIdentity::Issued { groups, .. }) => groups.contains(wanted),
            (Self::Anonymous, user) => *user == UserIdentity::Anonymous,
            (Self::AuthenticatedUser, user) => *user != UserIdentity::Anonymous,
            (Self::Application(wanted), _) => identity.application_uri.as_ref() == Some(wanted),
            (Self::TrustedApplication, _) => identity.application_uri.is_some(),
            _ => false,
        }
    }

    /// The rule for a criteriaType and its criteria; `None` if they are invalid (Part 18 §4.4.3).
    #[must_use]
    pub fn from_criteria(criteria_type: IdentityCriteriaType, criteria: &str) -> Option<Self> {
        use IdentityCriteriaType as T;
        let text = || (!criteria.is_empty()).then(|| criteria.to_owned());
        Some(match criteria_type {
            T::USER_NAME => Self::UserName(text()?),
            T::THUMBPRINT => {
                let is_thumbprint =
                    criteria.len() == 40 && criteria.bytes().all(|digit| digit.is_ascii_hexdigit());
                Self::Thumbprint(is_thumbprint.then(|| criteria.to_ascii_uppercase())?)
            }
            T::ROLE => Self::Role(text()?),
            T::GROUP_ID => Self::GroupId(text()?),
            T::ANONYMOUS if criteria.is_empty() => Self::Anonymous,
            T::AUTHENTICATED_USER if criteria.is_empty() => Self::AuthenticatedUser,
            T::APPLICATION => Self::Application(text()?),
            T::X509_SUBJECT => Self::X509Subject(text()?),
            T::TRUSTED_APPLICATION if criteria.is_empty() => Self::TrustedApplication,
            _ => return None,
        })
    }

    /// The rule in the form of the specification's structure: criteriaType and criteria.
    #[must_use]
    pub fn criteria(&self) -> (IdentityCriteriaType, &str) {
        use IdentityCriteriaType as T;
        match self {
            Self::UserName(name) => (T::USER_NAME, name),
            Self::Thumbprint(thumbprint) => (T::THUMBPRINT, thumbprint),
            Self::Role(role) => (T::ROLE, role),
            Self::GroupId(group) => (T::GROUP_ID, group),
            Self::Anonymous => (T::ANONYMOUS, ""),
            Self::AuthenticatedUser => (T::AUTHENTICATED_USER, ""),
            Self::Application(uri) => (T::APPLICATION, uri),
            Self::X509Subject(subject) => (T::X509_SUBJECT, subject),
            Self::TrustedApplication => (T::TRUSTED_APPLICATION, ""),
        }
    }
}

/// The permissions that Part 3 §4.9.2 suggests for each role. Anonymous has none outside namespace 0.
pub(super) fn suggested_permissions() -> Vec<(NodeId, PermissionType)> {
    use PermissionType as P;
    let look = P::BROWSE | P::READ;
    let observe = look | P::READ_HISTORY | P::RECEIVE_EVENTS;
    let configure = observe | P::WRITE | P::WRITE_ATTRIBUTE | P::WRITE_HISTORIZING | P::CALL;
    // Part 3 does not say which roles may change the structure: the configuration decides.
    let structure = P::ADD_NODE | P::DELETE_NODE | P::ADD_REFERENCE | P::REMOVE_REFERENCE;
    [
        (well_known::AUTHENTICATED_USER, look),
        (well_known::TRUSTED_APPLICATION, look),
        (well_known::OBSERVER, observe),
        (well_known::OPERATOR, observe | P::WRITE | P::CALL),
        (well_known::ENGINEER, configure),
        (well_known::SUPERVISOR, observe | P::CALL),
        (well_known::CONFIGURE_ADMIN, configure | structure),
        // AuditEvents need ReceiveEvents on their type, which the NodeSet grants, and on their source.
        (
            well_known::SECURITY_ADMIN,
            look | P::RECEIVE_EVENTS | P::READ_ROLE_PERMISSIONS | P::WRITE_ROLE_PERMISSIONS | P::CALL,
        ),
    ]
    .map(|(id, permissions)| (NodeId::numeric(0, id), permissions))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: MessageSecurityMode = MessageSecurityMode::Sign;
    const NONE: MessageSecurityMode = MessageSecurityMode::None;

    fn client(user: UserIdentity, uri: Option<&str>, mode: MessageSecurityMode) -> Identity {
        Identity::new(user, uri, "opc.tcp://a:1", SecurityPolicy::None, mode)
    }

    fn role(rule: IdentityRule) -> Role {
        Role { identities: vec![rule], ..Role::new(NodeId::numeric(1, 1), "Test") }
    }

    fn certificate() -> UserIdentity {
        UserIdentity::Certificate {
            thumbprint: "AB".into(),
            subject: "CN=\"a\"".into(),
            issuer: "CN=\"ca\"".into(),
        }
    }

    fn token() -> UserIdentity {
        UserIdentity::Issued { subject: "a".into(), roles: vec!["r".into()], groups: vec!["g".into()] }
    }

    #[test]
    fn each_rule_matches_only_its_own_identity() {
        use IdentityRule as R;
        let users = [UserIdentity::Anonymous, UserIdentity::UserName("a".into()), certificate(), token()];
        // Which users match the rule, on a signed channel of urn:a.
        let rules = [
            (R::UserName("a".into()), [false, true, false, false]),
            (R::UserName("A".into()), [false; 4]),
            (R::Thumbprint("AB".into()), [false, false, true, false]),
            (R::Thumbprint("a".into()), [false; 4]),
            (R::X509Subject("CN=\"a\"".into()), [false, false, true, false]),
            (R::X509Subject("CN=\"ca\"".into()), [false, false, true, false]),
            (R::X509Subject("CN=\"c\"".into()), [false; 4]),
            (R::Role("r".into()), [false, false, false, true]),
            (R::Role("g".into()), [false; 4]),
            (R::GroupId("g".into()), [false, false, false, true]),
            (R::GroupId("r".into()), [false; 4]),
            (R::Anonymous, [true, false, false, false]),
            (R::AuthenticatedUser, [false, true, true, true]),
            (R::Application("urn:a".into()), [true; 4]),
            (R::Application("urn:ab".into()), [false; 4]),
            (R::TrustedApplication, [true; 4]),
        ];
        for (rule, expected) in rules {
            for (user, expected) in users.iter().zip(expected) {
                let signed = client(user.clone(), Some("urn:a"), SIGNED);
                assert_eq!(rule.fits(&signed), expected, "{rule:?} {user:?}");
                // Without a signature, the claimed application is ignored.
                let unsigned = client(user.clone(), Some("urn:a"), NONE);
                let is_application = matches!(rule, R::Application(_) | R::TrustedApplication);
                assert_eq!(rule.fits(&unsigned), expected && !is_application, "{rule:?} {user:?}");
            }
        }
    }

    #[test]
    fn rules_convert_from_and_to_criteria() {
        use IdentityCriteriaType as T;
        let thumbprint = "ab".repeat(20);
        for (kind, criteria) in [
            (T::USER_NAME, "a"),
            (T::THUMBPRINT, thumbprint.as_str()),
            (T::ROLE, "r"),
            (T::GROUP_ID, "g"),
            (T::ANONYMOUS, ""),
            (T::AUTHENTICATED_USER, ""),
            (T::APPLICATION, "urn:a"),
            (T::X509_SUBJECT, "CN=\"a\""),
            (T::TRUSTED_APPLICATION, ""),
        ] {
            let rule = IdentityRule::from_criteria(kind, criteria).unwrap();
            let (kind_again, again) = rule.criteria();
            assert_eq!((kind_again, again.to_ascii_lowercase()), (kind, criteria.to_ascii_lowercase()));
            let other = if criteria.is_empty() { "x" } else { "" };
            assert_eq!(IdentityRule::from_criteria(kind, other), None, "{kind:?}");
        }
        assert_eq!(IdentityRule::from_criteria(T::THUMBPRINT, "ab"), None);
        assert_eq!(IdentityRule::from_criteria(T(0), "a"), None);
        assert_eq!(IdentityRule::from_criteria(T(99), "a"), None);
    }

    #[test]
    fn applications_are_included_or_excluded() {
        let granted = |exclude, list: &[&str], uri: Option<&str>| {
            let list = list.iter().map(|uri| (*uri).to_owned()).collect();
            let role =
                Role { applications: Some(Restriction { exclude, list }), ..role(IdentityRule::Anonymous) };
            let mode = if uri.is_some() { SIGNED } else { NONE };
            role.is_granted_to(&client(UserIdentity::Anonymous, uri, mode))
        };
        assert!(granted(false, &["urn:a"], Some("urn:a")));
        assert!(!granted(false, &["urn:a"], Some("urn:b")));
        assert!(!granted(false, &["urn:a"], None));
        assert!(!granted(false, &[], Some("urn:a")));
        assert!(!granted(true, &["urn:a"], Some("urn:a")));
        assert!(granted(true, &["urn:a"], Some("urn:b")));
        // An unknown application may be the excluded one.
        assert!(!granted(true, &["urn:a"], None));
        assert!(granted(true, &[], None));
    }

    #[test]
    fn endpoints_are_included_or_excluded() {
        let endpoint =
            |url: Option<&str>, mode| EndpointRestriction { url: url.map(str::to_owned), mode, policy: None };
        let granted = |exclude, endpoint: EndpointRestriction| {
            let restriction = Restriction { exclude, list: vec![endpoint] };
            let role = Role { endpoints: Some(restriction), ..role(IdentityRule::Anonymous) };
            role.is_granted_to(&client(UserIdentity::Anonymous, Some("urn:a"), SIGNED))
        };
        assert!(granted(false, endpoint(None, Some(SIGNED))));
        assert!(!granted(false, endpoint(None, Some(NONE))));
        assert!(granted(false, endpoint(Some("opc.tcp://a:1"), None)));
        assert!(!granted(false, endpoint(Some("opc.tcp://b:1"), Some(SIGNED))));
        assert!(!granted(true, endpoint(None, Some(SIGNED))));
        assert!(granted(true, endpoint(None, Some(NONE))));
    }

    #[test]
    fn only_three_roles_are_granted_by_default() {
        let all = super::super::Authorization::suggested();
        let names = |identity: &Identity| -> Vec<&str> {
            let roles = all.roles_of(identity);
            all.roles.iter().filter(|role| roles.contains(&role.id)).map(|role| role.name.as_str()).collect()
        };
        assert_eq!(names(&Identity::anonymous()), ["Anonymous"]);
        let user = UserIdentity::UserName("a".into());
        assert_eq!(names(&client(user.clone(), None, NONE)), ["Anonymous", "AuthenticatedUser"]);
        let trusted = client(user, Some("urn:a"), SIGNED);
        assert_eq!(names(&trusted), ["Anonymous", "AuthenticatedUser", "TrustedApplication"]);
    }
}
