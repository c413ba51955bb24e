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

    /// All of them with their BrowseNames.
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
    /// A client has to meet one of these.
    pub identities: Vec<IdentityRule>,
    /// The applications that it may use; `None` if that does not matter.
    pub applications: Option<Restriction<String>>,
    /// The endpoints that it may use; `None` if that does not matter.
    pub endpoints: Option<Restriction<EndpointRestriction>>,
}

/// A list of what is allowed, or of what is not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restriction<T> {
    /// Whether the list says what is not allowed (ApplicationsExclude, EndpointsExclude).
    pub exclude: bool,
    /// The list.
    pub list: Vec<T>,
}

/// An EndpointType: fields that are `None` match every endpoint (Part 18 §4.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointRestriction {
    /// The URL, as it is configured.
    pub url: Option<String>,
    /// What is done to messages.
    pub mode: Option<MessageSecurityMode>,
    /// The algorithms.
    pub policy: Option<SecurityPolicy>,
}

/// One IdentityMappingRuleType (Part 18 §4.4.3, §4.4.4).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IdentityRule {
    /// The user of this name.
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
    /// A role that nobody is granted yet.
    #[must_use]
    pub fn new(id: NodeId, name: &str) -> Self {
        Self { id, name: name.to_owned(), identities: Vec::new(), applications: None, endpoints: None }
    }

    /// The roles of the specification with its default mappings (Part 18 §4.3): Anonymous for everybody with or without
    /// a user, AuthenticatedUser for every user, TrustedApplication for those; nobody has any other role.
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

    /// Whether a client has this role: one of the identities fits, and neither its application nor its endpoint is
    /// shut out.
    #[must_use]
    pub fn is_granted_to(&self, identity: &Identity) -> bool {
        self.identities.iter().any(|rule| rule.fits(identity))
            && self.applications.as_ref().is_none_or(|applications| match &identity.application_uri {
                Some(uri) => applications.list.contains(uri) != applications.exclude,
                // Who it is cannot be known: it is not on a list of the allowed, and may be on one of the others.
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
    /// Whether a client meets the rule.
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

    /// The rule of a criteriaType and its criteria; `None` if they make no rule (Part 18 §4.4.3).
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

    /// The rule as the specification's structure has it: criteriaType and criteria.
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

/// What Part 3 §4.9.2 suggests for each role. Anonymous is allowed nothing outside namespace 0.
pub(super) fn suggested_permissions() -> Vec<(NodeId, PermissionType)> {
    use PermissionType as P;
    let look = P::BROWSE | P::READ;
    let observe = look | P::READ_HISTORY | P::RECEIVE_EVENTS;
    let configure = observe | P::WRITE | P::WRITE_ATTRIBUTE | P::WRITE_HISTORIZING | P::CALL;
    // Part 3 leaves it open who may change the structure: it is configuration.
    let structure = P::ADD_NODE | P::DELETE_NODE | P::ADD_REFERENCE | P::REMOVE_REFERENCE;
    [
        (well_known::AUTHENTICATED_USER, look),
        (well_known::TRUSTED_APPLICATION, look),
        (well_known::OBSERVER, observe),
        (well_known::OPERATOR, observe | P::WRITE | P::CALL),
        (well_known::ENGINEER, configure),
        (well_known::SUPERVISOR, observe | P::CALL),
        (well_known::CONFIGURE_ADMIN, configure | structure),
        // AuditEvents need ReceiveEvents on their type, which the NodeSet gives, and on their source.
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
    fn each_rule_meets_just_its_own_identity() {
        use IdentityRule as R;
        let users = [UserIdentity::Anonymous, UserIdentity::UserName("a".into()), certificate(), token()];
        // Which of the users meet the rule, on a signed channel of urn:a.
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
                // Without a signature nobody's word is taken for which application it is.
                let unsigned = client(user.clone(), Some("urn:a"), NONE);
                let is_application = matches!(rule, R::Application(_) | R::TrustedApplication);
                assert_eq!(rule.fits(&unsigned), expected && !is_application, "{rule:?} {user:?}");
            }
        }
    }

    #[test]
    fn rules_come_from_criteria_and_go_back() {
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
    fn applications_are_let_in_or_shut_out() {
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
        // An application that hides who it is may be the one that is shut out.
        assert!(!granted(true, &["urn:a"], None));
        assert!(granted(true, &[], None));
    }

    #[test]
    fn endpoints_are_let_in_or_shut_out() {
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
    fn the_specification_grants_three_roles_by_itself() {
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
